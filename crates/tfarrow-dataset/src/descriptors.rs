//! Message types from files: descriptor sets, as `protoc` writes them, and `.proto` sources; and
//! the type of TensorBoard's events, which needs no file.

use std::{fs, path::Path};

use prost_reflect::{DescriptorPool, MessageDescriptor};
use tfarrow_codec::{MessageType, descriptor_pool};

use crate::{
    Error, ErrorKind, Result, catch_panic::catch_panic, no_such_name::no_such_name,
    proto_sources::ProtoSources,
};

/// Maximum size in bytes of a file that defines messages. The descriptors of TensorFlow have 1 MB.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum number of folders above a `.proto` source in which its imports are searched.
const MAX_ROOTS: usize = 16;

/// The name of the type of TensorBoard's events.
pub const EVENT_MESSAGE: &str = "tensorflow.Event";

/// The package of the well-known types, which errors do not list.
const WELL_KNOWN: &str = "google.protobuf.";

/// Finds the message `name`, such as `waymo.open_dataset.Scenario`, in a file: a
/// `google.protobuf.FileDescriptorSet` with all imports, or a `.proto` source. The end of the name,
/// such as `Scenario`, is sufficient if only one message has it. Without a file, finds
/// [`EVENT_MESSAGE`].
///
/// The imports of a source are searched in its folder, and then in the folders above it.
///
/// # Errors
/// The file cannot be read, or [`ErrorKind::Descriptors`]: the file is not valid, or does not have
/// the message.
pub fn load_message(file: Option<&Path>, name: &str) -> Result<MessageType> {
    let Some(file) = file else {
        return match name {
            EVENT_MESSAGE => event_message(),
            _ => {
                let why = format!(
                    "only {EVENT_MESSAGE} is defined without a file: name the file that defines {name:?}"
                );
                Err(Error::general(ErrorKind::Descriptors(why)))
            }
        };
    };
    let of_file = |reason: String| Error::new(file, ErrorKind::Descriptors(reason));
    let io = |error| Error::io(file, error);
    let size = fs::metadata(file).map_err(io)?.len();
    if size > MAX_BYTES {
        return Err(of_file(format!(
            "a file of message definitions has at most {MAX_BYTES} bytes, found {size}"
        )));
    }
    let is_source = file
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("proto"));
    let pool = match is_source {
        true => compile(&fs::canonicalize(file).map_err(io)?),
        false => read(&fs::read(file).map_err(io)?),
    };
    find(&pool.map_err(of_file)?, name).map_err(of_file)
}

/// Returns the type of TensorBoard's events, `tensorflow.Event`.
///
/// # Errors
/// None: the crate contains the descriptors.
pub fn event_message() -> Result<MessageType> {
    let descriptors = include_bytes!(concat!(env!("OUT_DIR"), "/event.bin"));
    Ok(MessageType::parse(descriptors, EVENT_MESSAGE)?)
}

/// Reads a descriptor set.
fn read(bytes: &[u8]) -> Result<DescriptorPool, String> {
    let expected = "expected a google.protobuf.FileDescriptorSet with all imports, or a source with the extension .proto";
    let pool = descriptor_pool(bytes).map_err(|error| format!("{error}; {expected}"))?;
    if pool.files().len() == 0 {
        Err(format!("no message is defined; {expected}"))
    } else {
        Ok(pool)
    }
}

/// Compiles a `.proto` source with its imports. The error is that of the folder of the source.
fn compile(file: &Path) -> Result<DescriptorPool, String> {
    let mut first_error = None;
    for root in file.ancestors().skip(1).take(MAX_ROOTS) {
        match catch_panic(|| compile_in(file, root))
            .map_err(|error| error.to_string())
            .flatten()
        {
            Ok(pool) => return Ok(pool),
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    Err(first_error.unwrap_or_else(|| "the file has no folder".to_owned()))
}

/// Bytes of stack for the compiler, which recurses with chains of imports. Without optimization, a
/// chain of a thousand files takes more than the two megabytes of a thread.
const COMPILER_STACK: usize = 16 << 20;

fn compile_in(file: &Path, root: &Path) -> Result<DescriptorPool, String> {
    stacker::maybe_grow(COMPILER_STACK, COMPILER_STACK, || {
        let mut compiler = protox::Compiler::with_file_resolver(ProtoSources::new(root));
        compiler
            .include_imports(true)
            .open_file(file)
            // The debug form has the file, the line and the column before the message.
            .map_err(|error| format!("{error:?}"))?;
        Ok(compiler.descriptor_pool())
    })
}

/// Finds a message by its full name, or by the end of its name.
fn find(pool: &DescriptorPool, name: &str) -> Result<MessageType, String> {
    if let Some(descriptor) = pool.get_message_by_name(name) {
        return Ok(MessageType::new(descriptor));
    }
    let messages: Vec<_> = pool
        .all_messages()
        .filter(|message| !message.is_map_entry())
        .collect();
    let mut ends = Vec::new();
    for message in &messages {
        if let Some(package) = message.full_name().strip_suffix(name)
            && package.ends_with('.')
        {
            ends.push(message);
        }
    }
    match ends.as_slice() {
        [one] => Ok(MessageType::new(MessageDescriptor::clone(one))),
        [] => Err(no_message(&messages, name)),
        [first, second, ..] => {
            let first = first.full_name();
            let second = second.full_name();
            Err(format!(
                "several messages are named {name:?}, such as {first} and {second}: use the full name"
            ))
        }
    }
}

/// The message that no message has the name. A name without a package is compared with names
/// without packages.
fn no_message(messages: &[MessageDescriptor], name: &str) -> String {
    let own = messages
        .iter()
        .filter(|message| !message.full_name().starts_with(WELL_KNOWN));
    let names: Vec<_> = match name.contains('.') {
        true => own.map(MessageDescriptor::full_name).collect(),
        false => own.map(MessageDescriptor::name).collect(),
    };
    no_such_name("message", name, &names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/message");

    fn load(file: &str, name: &str) -> Result<String, String> {
        let message = load_message(Some(&Path::new(FOLDER).join(file)), name);
        message
            .map(|message| message.name().to_owned())
            .map_err(|error| error.into_kind().to_string())
    }

    #[test]
    fn a_source_defines_the_same_message_as_its_descriptors() {
        let [source, set] = ["shapes.proto", "shapes.desc"].map(|file| {
            let message =
                load_message(Some(&Path::new(FOLDER).join(file)), "tfarrow.test.Shape").unwrap();
            message.schema(&tfarrow_codec::Limits::default()).unwrap()
        });
        assert_eq!(source.fields(), set.fields());
    }

    #[test]
    fn the_end_of_a_name_is_sufficient_if_one_message_has_it() {
        assert_eq!(
            load("shapes.desc", "tfarrow.test.Shape").unwrap(),
            "tfarrow.test.Shape"
        );
        assert_eq!(load("shapes.desc", "Shape").unwrap(), "tfarrow.test.Shape");
        assert_eq!(
            load("shapes.desc", "Legacy.Box").unwrap(),
            "tfarrow.test.Legacy.Box"
        );
        assert_eq!(
            load("shapes.desc", "google.protobuf.Timestamp").unwrap(),
            "google.protobuf.Timestamp"
        );
    }

    #[test]
    fn an_unknown_name_is_reported_with_the_most_similar_one() {
        let error = load("shapes.desc", "Shap").unwrap_err();
        assert!(
            error.starts_with(r#"there is no message "Shap" (did you mean "Shape"?); there are "#),
            "{error}"
        );
        let error = load("shapes.desc", "tfarrow.test.Shapes").unwrap_err();
        assert!(
            error.contains(r#"(did you mean "tfarrow.test.Shape"?)"#),
            "{error}"
        );
        assert!(!error.contains("Timestamp"), "{error}");
    }

    #[test]
    fn files_that_define_no_message_are_errors() {
        for file in ["shapes.tfrecord", "shapes.txt", "generate.py"] {
            let error = load(file, "Shape").unwrap_err();
            assert!(
                error.contains("; expected a google.protobuf.FileDescriptorSet"),
                "{file}: {error}"
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.desc");
        fs::write(&empty, b"").unwrap();
        let error = load_message(Some(&empty), "Shape").unwrap_err().to_string();
        assert!(
            error.contains("empty.desc: no message is defined; expected"),
            "{error}"
        );
        assert!(matches!(
            load_message(Some(&folder.path().join("none.desc")), "Shape")
                .unwrap_err()
                .kind(),
            ErrorKind::Io(_)
        ));
    }

    #[test]
    fn errors_in_a_source_name_the_place_or_the_import() {
        let folder = tempfile::tempdir().unwrap();
        let check = |source: &str, expected: &str| {
            let file = folder.path().join("a.proto");
            fs::write(&file, source).unwrap();
            let error = load_message(Some(&file), "A").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("syntax = \"proto3\";\nmessage A { int32 }", "a.proto:2:");
        check(
            "syntax = \"proto3\"; import \"other.proto\"; message A {}",
            "other.proto",
        );
        // Imports are found in the folders above the source.
        fs::create_dir(folder.path().join("deep")).unwrap();
        fs::write(
            folder.path().join("deep/b.proto"),
            "syntax = \"proto3\"; message B { int32 x = 1; }",
        )
        .unwrap();
        let above = folder.path().join("deep/c.proto");
        fs::write(
            &above,
            "syntax = \"proto3\"; import \"deep/b.proto\"; message C { B b = 1; }",
        )
        .unwrap();
        assert_eq!(load_message(Some(&above), "C").unwrap().name(), "C");
    }

    #[test]
    fn sources_and_imports_that_are_nested_too_deeply_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, source: &str| {
            let file = folder.path().join(name);
            fs::write(&file, source).unwrap();
            file
        };
        let error = |file: &Path| load_message(Some(file), "M").unwrap_err().to_string();
        let deep = format!(
            "syntax = \"proto3\";\n{}{}",
            "message M {".repeat(3_000),
            "}".repeat(3_000)
        );
        let expected = "deep.proto:2: messages and options are nested deeper than 100 levels";
        assert!(error(&write("deep.proto", &deep)).ends_with(expected));
        let import = "syntax = \"proto3\"; import \"deep.proto\"; message M { int32 x = 1; }";
        assert!(error(&write("import.proto", import)).ends_with(expected));
        // The value of an option, which is parsed as text.
        let option = format!(
            "syntax = \"proto2\"; import \"google/protobuf/descriptor.proto\"; message M {{ optional M m = 1; }} extend \
             google.protobuf.FileOptions {{ optional M o = 50000; }} option (o) = {{ {}{} }};",
            "m <".repeat(3_000),
            ">".repeat(3_000)
        );
        assert!(error(&write("option.proto", &option)).ends_with("nested deeper than 100 levels"));
        // A chain of imports, of which the first thousand are within the limit.
        for index in 0..1_005 {
            let name = format!("chain{index}.proto");
            write(
                &name,
                &format!(
                    "syntax = \"proto3\"; import \"chain{}.proto\"; message M{index} {{ int32 x = 1; }}",
                    index + 1
                ),
            );
        }
        write(
            "chain1005.proto",
            "syntax = \"proto3\"; message M { int32 x = 1; }",
        );
        assert!(
            error(&folder.path().join("chain0.proto"))
                .ends_with("a source imports at most 1000 files")
        );
        assert_eq!(
            load_message(Some(&folder.path().join("chain5.proto")), "M")
                .unwrap()
                .name(),
            "M"
        );
    }

    /// The parser takes much more memory than the source has bytes.
    #[test]
    fn sources_that_are_too_large_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.proto");
        let error = |source: String| {
            fs::write(&file, source).unwrap();
            load_message(Some(&file), "M").unwrap_err().to_string()
        };
        let message = "syntax = \"proto3\"; message M { int32 x = 1; }";
        let values: String = (0..30_000)
            .map(|value| format!("A{value} = {value};\n"))
            .collect();
        let found = error(format!("{message} enum E {{ {values} }}"));
        assert!(
            found.contains(
                "at most 262144 bytes without comments and white space, found at least 3"
            ),
            "{found}"
        );
        assert!(
            found.ends_with("use a descriptor set with all imports, which protoc writes"),
            "{found}"
        );
        let found = error(format!("{message} // {}", "a".repeat(8 << 20)));
        assert!(
            found.contains("a source has at most 8388608 bytes"),
            "{found}"
        );
        // The names of messages are in those of their fields.
        let fields: String = (1..1_000)
            .map(|field| format!("M a{field} = {field};"))
            .collect();
        let found = error(format!(
            "{message} message {} {{ {fields} }}",
            "F".repeat(9_000)
        ));
        assert!(
            found.contains("the full names of messages, fields and other definitions have 9"),
            "{found}"
        );
        let comments = format!("{message} // {}", "a".repeat(1 << 20));
        fs::write(&file, comments).unwrap();
        assert_eq!(load_message(Some(&file), "M").unwrap().name(), "M");
    }

    #[test]
    fn events_need_no_file() {
        assert_eq!(
            load_message(None, EVENT_MESSAGE).unwrap().name(),
            event_message().unwrap().name()
        );
        let error = load_message(None, "Scenario").unwrap_err().to_string();
        assert_eq!(
            error,
            "only tensorflow.Event is defined without a file: name the file that defines \"Scenario\""
        );
    }
}
