//! Descriptor sets that are not trusted: those of files that a user names, and those in the metadata of Parquet and Arrow files.
//!
//! `prost` limits the nesting of messages to 100 levels. `prost-reflect` follows public imports and parses the text of options by
//! recursion without limits, so that sets which could take the stack or an hour are recognized before they reach it.

use std::collections::HashMap;

use prost_reflect::{
    DescriptorPool,
    prost::Message,
    prost_types::{
        DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
        field_descriptor_proto::Label,
    },
};

use super::similar_names::mark_similar_names;
use crate::{Error, ErrorKind, Result};

/// Maximum length of a chain of public imports.
const MAX_IMPORT_DEPTH: u32 = 100;

/// Maximum number of chains of public imports, from each import of each file.
const MAX_IMPORT_CHAINS: u64 = 1 << 20;

/// Reads a `google.protobuf.FileDescriptorSet`.
///
/// # Errors
/// [`ErrorKind::Descriptors`] for bytes that are no valid set, for files that import each other, and for options that are text,
/// which compilers do not write.
pub fn descriptor_pool(set: &[u8]) -> Result<DescriptorPool> {
    let invalid = |reason: String| Error::usage(ErrorKind::Descriptors(reason));
    let mut files = FileDescriptorSet::decode(set).map_err(|error| invalid(error.to_string()))?.file;
    for file in &files {
        check_syntax(file).map_err(invalid)?;
        let mut messages = file.message_type.iter();
        messages.try_for_each(check_map_entries).map_err(|reason| invalid(format!("{}: {reason}", file.name())))?;
    }
    check_imports(&files).map_err(invalid)?;
    if let Some(file) = files.iter().find(|file| has_text_options(file)) {
        return Err(invalid(format!("{}: an option is not compiled", file.name())));
    }
    let mut has_changed = false;
    for file in &mut files {
        has_changed |= mark_similar_names(file);
        // protoc takes an empty syntax for proto2; the library knows it only where it is absent.
        if file.syntax.take_if(|syntax| syntax.is_empty()).is_some() {
            has_changed = true;
        }
    }
    let pool = match has_changed {
        true => DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file: files }),
        // The bytes have options that the messages of the library do not.
        false => DescriptorPool::decode(set),
    };
    pool.map_err(|error| invalid(error.to_string()))
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

/// Checks that the entries of maps in a message have a key with the number 1, a value with the number 2, and nothing else. The
/// library relies on it.
fn check_map_entries(message: &DescriptorProto) -> Result<(), String> {
    if message.options.as_ref().is_some_and(|options| options.map_entry()) {
        let mut numbers: Vec<_> = message.field.iter().map(FieldDescriptorProto::number).collect();
        numbers.sort_unstable();
        let is_repeated = |field: &FieldDescriptorProto| field.label() == Label::Repeated;
        if numbers != [1, 2] || message.field.iter().any(is_repeated) {
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
    let index_of: HashMap<_, _> = files.iter().enumerate().map(|(index, file)| (file.name(), index)).collect();
    let mut visits = vec![Visit::New; files.len()];
    let mut chains = 0u64;
    // Imports are walked without recursion: a file is taken from the stack before its imports, and once more after them.
    let mut stack: Vec<_> = (0..files.len()).collect();
    while let Some(index) = stack.last().copied() {
        let (Some(file), Some(visit)) = (files.get(index), visits.get(index).copied()) else { break };
        let imports =
            file.dependency.iter().enumerate().filter_map(|(at, name)| Some((at, *index_of.get(name.as_str())?)));
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
                let (mut depth, mut own) = (0, 1u64);
                for (at, import) in imports {
                    let Some(Visit::Done(below, count)) = visits.get(import).copied() else { continue };
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

/// Returns whether a file has an option whose value is text, as parsers of sources make it for compilers.
fn has_text_options(file: &FileDescriptorProto) -> bool {
    let of_service = |service: &prost_reflect::prost_types::ServiceDescriptorProto| {
        let mut methods = service.method.iter().filter_map(|method| method.options.as_ref());
        service.options.as_ref().is_some_and(|options| !options.uninterpreted_option.is_empty())
            || methods.any(|options| !options.uninterpreted_option.is_empty())
    };
    file.options.as_ref().is_some_and(|options| !options.uninterpreted_option.is_empty())
        || file.message_type.iter().any(message_has_text_options)
        || file.enum_type.iter().any(enum_has_text_options)
        || file.extension.iter().any(field_has_text_options)
        || file.service.iter().any(of_service)
}

fn message_has_text_options(message: &DescriptorProto) -> bool {
    let mut oneofs = message.oneof_decl.iter().filter_map(|oneof| oneof.options.as_ref());
    let mut ranges = message.extension_range.iter().filter_map(|range| range.options.as_ref());
    message.options.as_ref().is_some_and(|options| !options.uninterpreted_option.is_empty())
        || oneofs.any(|options| !options.uninterpreted_option.is_empty())
        || ranges.any(|options| !options.uninterpreted_option.is_empty())
        || message.field.iter().chain(&message.extension).any(field_has_text_options)
        || message.enum_type.iter().any(enum_has_text_options)
        || message.nested_type.iter().any(message_has_text_options)
}

fn enum_has_text_options(descriptor: &EnumDescriptorProto) -> bool {
    let mut values = descriptor.value.iter().filter_map(|value| value.options.as_ref());
    descriptor.options.as_ref().is_some_and(|options| !options.uninterpreted_option.is_empty())
        || values.any(|options| !options.uninterpreted_option.is_empty())
}

fn field_has_text_options(field: &FieldDescriptorProto) -> bool {
    field.options.as_ref().is_some_and(|options| !options.uninterpreted_option.is_empty())
}

#[cfg(test)]
mod tests {
    use prost_reflect::prost_types::{
        FileOptions, MessageOptions, UninterpretedOption, field_descriptor_proto, uninterpreted_option::NamePart,
    };

    use super::*;

    fn error(files: Vec<FileDescriptorProto>) -> String {
        descriptor_pool(&FileDescriptorSet { file: files }.encode_to_vec()).unwrap_err().to_string()
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
            let inner = DescriptorProto { name: Some("M".to_owned()), ..Default::default() };
            let outer = |inner, _| DescriptorProto {
                name: Some("M".to_owned()),
                nested_type: vec![inner],
                ..Default::default()
            };
            FileDescriptorProto { message_type: vec![(0..levels).fold(inner, outer)], ..file(0, &[], &[]) }
        };
        let set = FileDescriptorSet { file: vec![nested(90)] }.encode_to_vec();
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
        let found = descriptor_pool(&[whole, body].concat()).unwrap_err().to_string();
        assert!(found.contains("recursion limit"), "{found}");
    }

    #[test]
    fn a_syntax_of_editions_is_an_error() {
        let with = |syntax: &str| FileDescriptorProto { syntax: Some(syntax.to_owned()), ..file(0, &[], &[]) };
        let found = error(vec![with("editions")]);
        assert_eq!(found, "0: the syntax is \"editions\", as of an edition of protobuf; expected proto2 or proto3");
        for known in ["", "proto2", "proto3"] {
            assert!(descriptor_pool(&FileDescriptorSet { file: vec![with(known)] }.encode_to_vec()).is_ok(), "{known}");
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
                field: fields.iter().map(|(name, number)| int(name, *number)).collect(),
                options: Some(MessageOptions { map_entry: Some(true), ..Default::default() }),
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
            FileDescriptorProto { message_type: vec![message], ..file(0, &[], &[]) }
        };
        let valid = FileDescriptorSet { file: vec![with(&[("value", 2), ("key", 1)])] };
        assert!(descriptor_pool(&valid.encode_to_vec()).is_ok());
        let expected = "0: NumbersEntry is an entry of a map, and has other fields than one key and one value";
        for fields in [&[][..], &[("key", 1)], &[("key", 1), ("value", 3)], &[("key", 1), ("value", 2), ("more", 3)]] {
            assert_eq!(error(vec![with(fields)]), expected, "{fields:?}");
        }
    }

    #[test]
    fn files_that_import_themselves_are_an_error() {
        assert_eq!(error(vec![file(0, &[0], &[0])]), "0 imports itself");
        assert_eq!(error(vec![file(0, &[1], &[0]), file(1, &[0], &[0])]), "0 imports itself");
    }

    #[test]
    fn chains_of_public_imports_have_limits() {
        // Each file imports the one after it.
        let chain = |count, public: &[i32]| {
            let all = (0..count)
                .map(|index| if index + 1 < count { file(index, &[index + 1], public) } else { file(index, &[], &[]) });
            all.collect::<Vec<_>>()
        };
        let set = FileDescriptorSet { file: chain(5_000, &[]) }.encode_to_vec();
        assert_eq!(descriptor_pool(&set).unwrap().files().len(), 5_000);
        assert!(descriptor_pool(&FileDescriptorSet { file: chain(100, &[0]) }.encode_to_vec()).is_ok());
        assert!(error(chain(5_000, &[0])).ends_with(": too many public imports"));
        // Each file imports the two after it, so that there are 2^30 chains.
        let pairs = (0..60).map(|index| match index {
            0..58 => file(index, &[index + 2 - index % 2, index + 3 - index % 2], &[0, 1]),
            _ => file(index, &[], &[]),
        });
        assert!(error(pairs.collect()).ends_with(": too many public imports"));
    }

    /// The text of an option is parsed by recursion.
    #[test]
    fn options_that_are_text_are_an_error() {
        let descriptor = DescriptorPool::global().get_file_by_name("google/protobuf/descriptor.proto").unwrap();
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
        let name = NamePart { name_part: "rec".to_owned(), is_extension: true };
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
            extension: vec![field("rec", 50_000, optional, Some(".google.protobuf.FileOptions"))],
            options: Some(FileOptions { uninterpreted_option: vec![option], ..Default::default() }),
            ..file(7, &[], &[])
        };
        let found = error(vec![descriptor.file_descriptor_proto().clone(), with(option(100_000))]);
        assert_eq!(found, "7: an option is not compiled");
    }
}
