//! Descriptor sets that are not trusted: those of files that a user names, and those in the
//! metadata of Parquet and Arrow files.
//!
//! `prost` limits the nesting of messages to 100 levels. `prost-reflect` follows public imports and
//! parses the text of options by recursion without limits, so that sets which could take the stack
//! or an hour are recognized before they reach it.

use std::collections::HashMap;

use prost_reflect::{
    DescriptorPool,
    prost::Message,
    prost_types::{
        DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
        field_descriptor_proto::Label,
    },
};

use super::{
    definition_count::{DefinitionCount, name_of_file, next_value, without_source_info},
    similar_names::mark_similar_names,
};
use crate::{Error, ErrorKind, Result};

/// The number of the files of a set.
const FILE: u32 = 1;

/// Maximum length of a chain of public imports.
const MAX_IMPORT_DEPTH: u32 = 100;

/// Maximum number of chains of public imports, from each import of each file.
const MAX_IMPORT_CHAINS: u64 = 1 << 20;

/// Reads a `google.protobuf.FileDescriptorSet`. Comments, and options that only extensions define,
/// are not kept.
///
/// # Errors
/// [`ErrorKind::Descriptors`] for bytes that are no valid set, for too many definitions and too
/// long names, for files that import each other, and for options that are text, which compilers do
/// not write.
pub fn descriptor_pool(set: &[u8]) -> Result<DescriptorPool> {
    let pool = check_size(set)
        .and_then(|()| read_files(set))
        .and_then(|files| {
            let set = FileDescriptorSet { file: files };
            DescriptorPool::from_file_descriptor_set(set).map_err(|error| error.to_string())
        });
    pool.map_err(|reason| Error::usage(ErrorKind::Descriptors(reason)))
}

/// Checks that the files of a set are not too large to be decoded.
fn check_size(set: &[u8]) -> Result<(), String> {
    let mut count = DefinitionCount::default();
    let mut rest = set;
    let mut text_options = None;
    while let Some(file) = next_file(&mut rest)? {
        count.add_file(file)?;
        if count.has_text_options() {
            text_options.get_or_insert(file);
        }
    }
    count.check()?;
    match text_options {
        Some(file) => Err(format!(
            "{}: an option is not compiled",
            String::from_utf8_lossy(name_of_file(file)?)
        )),
        None => Ok(()),
    }
}

/// Reads the files of a set, and checks them.
fn read_files(set: &[u8]) -> Result<Vec<FileDescriptorProto>, String> {
    let mut files = Vec::new();
    let mut rest = set;
    while let Some(bytes) = next_file(&mut rest)? {
        let bytes = without_source_info(bytes)?;
        let file =
            FileDescriptorProto::decode(bytes.as_slice()).map_err(|error| error.to_string())?;
        check_syntax(&file)?;
        let mut messages = file.message_type.iter();
        messages
            .try_for_each(check_map_entries)
            .map_err(|reason| format!("{}: {reason}", file.name()))?;
        files.push(file);
    }
    check_imports(&files)?;
    for file in &mut files {
        mark_similar_names(file);
        // protoc takes an empty syntax for proto2; the library knows it only where it is absent.
        file.syntax.take_if(|syntax| syntax.is_empty());
    }
    Ok(files)
}

/// Reads up to the next file of a set; `None` at its end.
fn next_file<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, String> {
    while let Some((number, value)) = next_value(rest)? {
        if number == FILE {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Checks that a file has a syntax that the library knows.
fn check_syntax(file: &FileDescriptorProto) -> Result<(), String> {
    match file.syntax() {
        "" | "proto2" | "proto3" => Ok(()),
        other => Err(format!(
            "{}: the syntax is {other:?}, as of an edition of protobuf; expected proto2 or proto3",
            file.name()
        )),
    }
}

/// Checks that the entries of maps in a message have a key with the number 1, a value with the
/// number 2, and nothing else. The library relies on it.
fn check_map_entries(message: &DescriptorProto) -> Result<(), String> {
    if message
        .options
        .as_ref()
        .is_some_and(|options| options.map_entry())
    {
        let mut numbers: Vec<_> = message
            .field
            .iter()
            .map(FieldDescriptorProto::number)
            .collect();
        numbers.sort_unstable();
        if numbers != [1, 2]
            || message
                .field
                .iter()
                .any(|field| field.label() == Label::Repeated)
        {
            return Err(format!(
                "{} is an entry of a map, and has other fields than one key and one value",
                message.name()
            ));
        }
    }
    message.nested_type.iter().try_for_each(check_map_entries)
}

/// The state of a file in the walk over the imports.
#[derive(Clone, Copy)]
enum Visit {
    New,
    /// Its imports are being walked.
    Open,
    /// The length of its longest chain of public imports, and the number of these chains.
    Done(u32, u64),
}

/// Checks that no file imports itself, and that chains of public imports are few and short.
fn check_imports(files: &[FileDescriptorProto]) -> Result<(), String> {
    let index_of: HashMap<_, _> = files
        .iter()
        .enumerate()
        .map(|(index, file)| (file.name(), index))
        .collect();
    let mut visits = vec![Visit::New; files.len()];
    let mut chains = 0u64;
    // Imports are walked without recursion: a file is taken from the stack before its imports, and
    // once more after them.
    let mut stack: Vec<_> = (0..files.len()).collect();
    while let Some(index) = stack.last().copied() {
        let (Some(file), Some(visit)) = (files.get(index), visits.get(index).copied()) else {
            break;
        };
        let imports = file
            .dependency
            .iter()
            .enumerate()
            .filter_map(|(at, name)| Some((at, *index_of.get(name.as_str())?)));
        match visit {
            Visit::Done(..) => drop(stack.pop()),
            Visit::New => {
                set(&mut visits, index, Visit::Open);
                for (_, import) in imports {
                    match visits.get(import) {
                        Some(Visit::Open) => return Err(format!("{} imports itself", file.name())),
                        Some(Visit::New) => stack.push(import),
                        _ => {}
                    }
                }
            }
            Visit::Open => {
                stack.pop();
                let mut depth = 0;
                let mut own = 1u64;
                for (at, import) in imports {
                    let Some(Visit::Done(below, count)) = visits.get(import).copied() else {
                        continue;
                    };
                    chains = chains.saturating_add(count);
                    if file.public_dependency.contains(&(at as i32)) {
                        (depth, own) = (depth.max(below + 1), own.saturating_add(count));
                    }
                }
                if depth > MAX_IMPORT_DEPTH || chains > MAX_IMPORT_CHAINS {
                    return Err(format!("{}: too many public imports", file.name()));
                }
                set(&mut visits, index, Visit::Done(depth, own));
            }
        }
    }
    Ok(())
}

fn set(visits: &mut [Visit], index: usize, visit: Visit) {
    if let Some(place) = visits.get_mut(index) {
        *place = visit;
    }
}

#[cfg(test)]
mod tests {
    use prost_reflect::prost_types::{
        EnumDescriptorProto, FileOptions, MessageOptions, ServiceDescriptorProto, SourceCodeInfo,
        UninterpretedOption, field_descriptor_proto, uninterpreted_option::NamePart,
    };

    use super::*;

    fn error(files: Vec<FileDescriptorProto>) -> String {
        descriptor_pool(&FileDescriptorSet { file: files }.encode_to_vec())
            .unwrap_err()
            .to_string()
    }

    /// A file that imports others; `public` are the indices of the public imports.
    fn file(name: usize, imports: &[usize], public: &[i32]) -> FileDescriptorProto {
        let dependency = imports.iter().map(usize::to_string).collect();
        FileDescriptorProto {
            name: Some(name.to_string()),
            dependency,
            public_dependency: public.to_vec(),
            ..Default::default()
        }
    }

    #[test]
    fn messages_nested_in_messages_are_an_error_beyond_the_limit_of_prost() {
        let nested = |levels| {
            let inner = DescriptorProto {
                name: Some("M".to_owned()),
                ..Default::default()
            };
            let outer = |inner, _| DescriptorProto {
                name: Some("M".to_owned()),
                nested_type: vec![inner],
                ..Default::default()
            };
            FileDescriptorProto {
                message_type: vec![(0..levels).fold(inner, outer)],
                ..file(0, &[], &[])
            }
        };
        let set = FileDescriptorSet {
            file: vec![nested(90)],
        }
        .encode_to_vec();
        assert_eq!(descriptor_pool(&set).unwrap().all_messages().count(), 91);
        // Deeper messages would overflow the stack of the test as well.
        let mut set = b"\x0a\x01M".to_vec();
        for _ in 0..3_000 {
            let mut length = Vec::new();
            prost_reflect::prost::encode_length_delimiter(set.len(), &mut length).unwrap();
            set = [&b"\x0a\x01M\x1a"[..], &length, &set].concat();
        }
        let mut message = vec![0x22];
        prost_reflect::prost::encode_length_delimiter(set.len(), &mut message).unwrap();
        let body = [message, set].concat();
        let mut whole = vec![0x0a];
        prost_reflect::prost::encode_length_delimiter(body.len(), &mut whole).unwrap();
        let found = descriptor_pool(&[whole, body].concat())
            .unwrap_err()
            .to_string();
        assert!(found.contains("recursion limit"), "{found}");
    }

    /// A definition takes few bytes of a file and much memory.
    #[test]
    fn the_number_of_definitions_has_a_limit() {
        const MANY: usize = 50_001;
        let message = || DescriptorProto {
            name: Some("M".to_owned()),
            ..Default::default()
        };
        let of_message = |message| FileDescriptorProto {
            message_type: vec![message],
            ..file(0, &[], &[])
        };
        let values = EnumDescriptorProto {
            value: vec![Default::default(); MANY],
            ..Default::default()
        };
        let methods = ServiceDescriptorProto {
            method: vec![Default::default(); MANY],
            ..Default::default()
        };
        let kinds = [
            FileDescriptorProto {
                enum_type: vec![values],
                ..file(0, &[], &[])
            },
            FileDescriptorProto {
                service: vec![methods],
                ..file(0, &[], &[])
            },
            FileDescriptorProto {
                extension: vec![Default::default(); MANY],
                ..file(0, &[], &[])
            },
            FileDescriptorProto {
                dependency: vec![String::new(); MANY],
                ..file(0, &[], &[])
            },
            FileDescriptorProto {
                package: Some(".".repeat(MANY)),
                ..file(0, &[], &[])
            },
            of_message(DescriptorProto {
                field: vec![Default::default(); MANY],
                ..message()
            }),
            of_message(DescriptorProto {
                nested_type: vec![Default::default(); MANY],
                ..message()
            }),
            of_message(DescriptorProto {
                oneof_decl: vec![Default::default(); MANY],
                ..message()
            }),
            of_message(DescriptorProto {
                extension_range: vec![Default::default(); MANY],
                ..message()
            }),
            of_message(DescriptorProto {
                reserved_range: vec![Default::default(); MANY],
                ..message()
            }),
            of_message(DescriptorProto {
                reserved_name: vec![String::new(); MANY],
                ..message()
            }),
        ];
        for file in kinds {
            let found = error(vec![file]);
            assert!(
                found.starts_with(
                    "the number of messages, fields, values of enums and other definitions is 50"
                ),
                "{found}"
            );
            assert!(
                found.ends_with("expected at most 50000: use a file that only has the message and what it refers to"),
                "{found}"
            );
        }
        let files = vec![FileDescriptorProto::default(); MANY];
        assert!(error(files).contains("definitions is 100002; expected at most 50000"));
    }

    /// The name of a definition is held with those around it.
    #[test]
    fn the_full_names_of_definitions_have_a_limit() {
        let fields = |name: &str| {
            let field = vec![FieldDescriptorProto::default(); 9_000];
            let message = DescriptorProto {
                name: Some(name.to_owned()),
                field,
                ..Default::default()
            };
            FileDescriptorProto {
                message_type: vec![message],
                ..file(0, &[], &[])
            }
        };
        let long = "a".repeat(1_000);
        let named = FileDescriptorProto {
            name: Some(long.clone()),
            ..fields("M")
        };
        let packaged = FileDescriptorProto {
            package: Some(long.clone()),
            ..fields("M")
        };
        for file in [fields(&long), named, packaged] {
            let found = error(vec![file]);
            assert!(
                found
                    .starts_with("the full names of messages, fields and other definitions have 9"),
                "{found}"
            );
            assert!(found.contains("bytes; expected at most 8388608"), "{found}");
        }
        let found = error(vec![fields("a.b")]);
        assert_eq!(
            found,
            "the name of a definition has a dot, which it cannot have: \"a.b\""
        );
    }

    /// Comments take more memory than definitions, and are not used.
    #[test]
    fn comments_are_not_decoded() {
        let location = vec![Default::default(); 100_000];
        let file = FileDescriptorProto {
            source_code_info: Some(SourceCodeInfo { location }),
            ..file(0, &[], &[])
        };
        let pool =
            descriptor_pool(&FileDescriptorSet { file: vec![file] }.encode_to_vec()).unwrap();
        assert_eq!(
            pool.files()
                .next()
                .unwrap()
                .file_descriptor_proto()
                .source_code_info,
            None
        );
    }

    #[test]
    fn a_syntax_of_editions_is_an_error() {
        let with = |syntax: &str| FileDescriptorProto {
            syntax: Some(syntax.to_owned()),
            ..file(0, &[], &[])
        };
        let found = error(vec![with("editions")]);
        assert_eq!(
            found,
            "0: the syntax is \"editions\", as of an edition of protobuf; expected proto2 or proto3"
        );
        for known in ["", "proto2", "proto3"] {
            assert!(
                descriptor_pool(
                    &FileDescriptorSet {
                        file: vec![with(known)]
                    }
                    .encode_to_vec()
                )
                .is_ok(),
                "{known}"
            );
        }
    }

    #[test]
    fn entries_of_maps_without_a_key_and_a_value_are_an_error() {
        let int = |name: &str, number| FieldDescriptorProto {
            name: Some(name.to_owned()),
            number: Some(number),
            label: Some(Label::Optional.into()),
            r#type: Some(field_descriptor_proto::Type::Int32.into()),
            ..Default::default()
        };
        let with = |fields: &[(&str, i32)]| {
            let entry = DescriptorProto {
                name: Some("NumbersEntry".to_owned()),
                field: fields
                    .iter()
                    .map(|(name, number)| int(name, *number))
                    .collect(),
                options: Some(MessageOptions {
                    map_entry: Some(true),
                    ..Default::default()
                }),
                ..Default::default()
            };
            let numbers = FieldDescriptorProto {
                label: Some(Label::Repeated.into()),
                r#type: Some(field_descriptor_proto::Type::Message.into()),
                type_name: Some(".M.NumbersEntry".to_owned()),
                ..int("numbers", 1)
            };
            let message = DescriptorProto {
                name: Some("M".to_owned()),
                field: vec![numbers],
                nested_type: vec![entry],
                ..Default::default()
            };
            FileDescriptorProto {
                message_type: vec![message],
                ..file(0, &[], &[])
            }
        };
        let valid = FileDescriptorSet {
            file: vec![with(&[("value", 2), ("key", 1)])],
        };
        assert!(descriptor_pool(&valid.encode_to_vec()).is_ok());
        let expected =
            "0: NumbersEntry is an entry of a map, and has other fields than one key and one value";
        for fields in [
            &[][..],
            &[("key", 1)],
            &[("key", 1), ("value", 3)],
            &[("key", 1), ("value", 2), ("more", 3)],
        ] {
            assert_eq!(error(vec![with(fields)]), expected, "{fields:?}");
        }
    }

    #[test]
    fn files_that_import_themselves_are_an_error() {
        assert_eq!(error(vec![file(0, &[0], &[0])]), "0 imports itself");
        assert_eq!(
            error(vec![file(0, &[1], &[0]), file(1, &[0], &[0])]),
            "0 imports itself"
        );
    }

    #[test]
    fn chains_of_public_imports_have_limits() {
        // Each file imports the one after it.
        let chain = |count, public: &[i32]| {
            let all = (0..count).map(|index| {
                if index + 1 < count {
                    file(index, &[index + 1], public)
                } else {
                    file(index, &[], &[])
                }
            });
            all.collect::<Vec<_>>()
        };
        let set = FileDescriptorSet {
            file: chain(5_000, &[]),
        }
        .encode_to_vec();
        assert_eq!(descriptor_pool(&set).unwrap().files().len(), 5_000);
        assert!(
            descriptor_pool(
                &FileDescriptorSet {
                    file: chain(100, &[0])
                }
                .encode_to_vec()
            )
            .is_ok()
        );
        assert!(error(chain(5_000, &[0])).ends_with(": too many public imports"));
        // Each file imports the two after it, so that there are 2^30 chains.
        let pairs = (0..60).map(|index| match index {
            0..58 => file(
                index,
                &[index + 2 - index % 2, index + 3 - index % 2],
                &[0, 1],
            ),
            _ => file(index, &[], &[]),
        });
        assert!(error(pairs.collect()).ends_with(": too many public imports"));
    }

    /// The text of an option is parsed by recursion.
    #[test]
    fn options_that_are_text_are_an_error() {
        let descriptor = DescriptorPool::global()
            .get_file_by_name("google/protobuf/descriptor.proto")
            .unwrap();
        let field = |name: &str, number, label, extendee: Option<&str>| FieldDescriptorProto {
            name: Some(name.to_owned()),
            number: Some(number),
            label: Some(label),
            r#type: Some(field_descriptor_proto::Type::Message.into()),
            type_name: Some(".R".to_owned()),
            extendee: extendee.map(str::to_owned),
            ..Default::default()
        };
        let optional = field_descriptor_proto::Label::Optional.into();
        let name = NamePart {
            name_part: "rec".to_owned(),
            is_extension: true,
        };
        let option = |levels| UninterpretedOption {
            name: vec![name.clone()],
            aggregate_value: Some("r{".repeat(levels) + &"}".repeat(levels)),
            ..Default::default()
        };
        let with = |option| FileDescriptorProto {
            dependency: vec![descriptor.name().to_owned()],
            message_type: vec![DescriptorProto {
                name: Some("R".to_owned()),
                field: vec![field("r", 1, optional, None)],
                ..Default::default()
            }],
            extension: vec![field(
                "rec",
                50_000,
                optional,
                Some(".google.protobuf.FileOptions"),
            )],
            options: Some(FileOptions {
                uninterpreted_option: vec![option],
                ..Default::default()
            }),
            ..file(7, &[], &[])
        };
        let found = error(vec![
            descriptor.file_descriptor_proto().clone(),
            with(option(100_000)),
        ]);
        assert_eq!(found, "7: an option is not compiled");
    }
}
