//! The `.proto` sources that the compiler reads: the source that a user names, and its imports.
//!
//! The parser of sources recurses with the nesting of messages and of the values of options, and
//! the compiler with chains of imports. Both are measured before, because the stack is limited.

use std::{
    cell::{Cell, RefCell},
    fmt, fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use prost_reflect::prost::Message;
use protox::{
    Error,
    file::{File, FileResolver, GoogleFileResolver, IncludeFileResolver},
};
use tfarrow_codec::DefinitionCount;

/// Maximum size in bytes of a source and its imports. The sources of TensorFlow have 1 MB.
const MAX_BYTES: usize = 8 << 20;

/// Maximum size in bytes of a source and its imports without their comments and white space. The
/// parser takes up to 600 bytes of memory for each.
const MAX_CODE: usize = 256 << 10;

/// What to do with a source that is too large.
const USE_SET: &str = "use a descriptor set with all imports, which protoc writes";

/// Maximum depth of brackets in a source. Descriptors are nested at most 100 messages deep, by the
/// limit of protobuf.
const MAX_DEPTH: usize = 100;

/// Maximum number of files that a source imports, which bounds the length of a chain of imports.
const MAX_IMPORTS: usize = 1_000;

/// An error of [`ProtoSources`]. Its debug form is its message, as that of [`protox::Error`] is.
struct SourceError(String);

impl fmt::Debug for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SourceError {}

fn source_error(reason: String) -> Error {
    Error::new(SourceError(reason))
}

/// Finds sources in a folder, and protobuf's own ones.
pub(crate) struct ProtoSources {
    folder: PathBuf,
    names: IncludeFileResolver,
    google: GoogleFileResolver,
    /// Number of files that were opened.
    opened: Cell<usize>,
    /// Number of bytes in these files, and of those that are neither comments nor white space.
    bytes: Cell<(usize, usize)>,
    /// The definitions in these files.
    definitions: RefCell<DefinitionCount>,
}

impl ProtoSources {
    pub(crate) fn new(folder: &Path) -> Self {
        let folder = folder.to_owned();
        let names = IncludeFileResolver::new(folder.clone());
        Self {
            folder,
            names,
            google: GoogleFileResolver::new(),
            opened: Cell::default(),
            bytes: Cell::default(),
            definitions: RefCell::default(),
        }
    }

    fn parse(&self, name: &str, source: &str) -> Result<File, Error> {
        self.opened.set(self.opened.get() + 1);
        if self.opened.get() > MAX_IMPORTS + 1 {
            return Err(source_error(format!(
                "{name}: a source imports at most {MAX_IMPORTS} files"
            )));
        }
        let code = check_depth(source)
            .map_err(|(line, reason)| source_error(format!("{name}:{line}: {reason}")))?;
        self.check_size(source.len(), code)
            .map_err(|reason| source_error(format!("{name}: {reason}")))?;
        let file = File::from_source(name, source)?;
        let mut definitions = self.definitions.borrow_mut();
        let added = definitions.add_file(&file.file_descriptor_proto().encode_to_vec());
        added
            .and_then(|()| definitions.check())
            .map_err(|reason| source_error(format!("{name}: {reason}")))?;
        Ok(file)
    }

    /// Adds the sizes of a file, and checks those of all files.
    fn check_size(&self, bytes: usize, code: usize) -> Result<(), String> {
        let (all_bytes, all_code) = self.bytes.get();
        let all_bytes = all_bytes + bytes;
        let all_code = all_code + code;
        self.bytes.set((all_bytes, all_code));
        if all_bytes > MAX_BYTES {
            return Err(format!(
                "a source and its imports have at most {MAX_BYTES} bytes, found at least {all_bytes}; {USE_SET}"
            ));
        }
        if all_code > MAX_CODE {
            return Err(format!(
                "a source and its imports have at most {MAX_CODE} bytes without comments and white space, found at least {all_code}; {USE_SET}"
            ));
        }
        Ok(())
    }
}

impl FileResolver for ProtoSources {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        self.names.resolve_path(path)
    }

    fn open_file(&self, name: &str) -> Result<File, Error> {
        let file = self.folder.join(name);
        match read(&file) {
            Ok(source) => self.parse(name, &source),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.google.open_file(name),
            Err(error) => Err(source_error(format!("{name}: {error}"))),
        }
    }
}

/// Reads a source, up to the maximum size.
fn read(file: &Path) -> io::Result<String> {
    let mut source = Vec::new();
    fs::File::open(file)?
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut source)?;
    if source.len() > MAX_BYTES {
        let reason = format!("a source has at most {MAX_BYTES} bytes; {USE_SET}");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    String::from_utf8(source).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Checks the depth of brackets in a source. Returns its size without comments and white space.
///
/// Brackets in comments and strings do not count. The parser continues after an error, so that this
/// reads the same tokens as the parser or fails.
///
/// # Errors
/// The line, and the reason.
fn check_depth(source: &str) -> Result<usize, (usize, String)> {
    let mut open = Vec::new();
    let mut rest = source.as_bytes();
    let mut code = 0;
    let error = |place: usize, reason: &str| {
        let before = source.as_bytes().get(..place).unwrap_or_default();
        (
            1 + before.iter().filter(|byte| **byte == b'\n').count(),
            reason.to_owned(),
        )
    };
    while let Some((byte, after)) = rest.split_first() {
        let place = source.len() - rest.len();
        rest = after;
        code += usize::from(!byte.is_ascii_whitespace());
        match (byte, after.first()) {
            (b'/', Some(b'/')) | (b'#', _) => rest = after_line(rest),
            (b'/', Some(b'*')) => {
                rest = after_comment(rest).ok_or_else(|| {
                    error(place, "a comment has no end, or another comment in it")
                })?;
            }
            (b'"' | b'\'', _) => {
                rest = after_string(rest, *byte).ok_or_else(|| {
                    error(place, "a string has no end, or an escape that is not valid")
                })?;
                code += after.len() - rest.len();
            }
            (b'{' | b'[' | b'(' | b'<', _) => {
                open.push(closing(*byte));
                if open.len() > MAX_DEPTH {
                    return Err(error(
                        place,
                        &format!("messages and options are nested deeper than {MAX_DEPTH} levels"),
                    ));
                }
            }
            (byte, _) if open.last() == Some(byte) => drop(open.pop()),
            _ => {}
        }
    }
    Ok(code)
}

fn closing(bracket: u8) -> u8 {
    match bracket {
        b'{' => b'}',
        b'[' => b']',
        b'(' => b')',
        _ => b'>',
    }
}

fn after_line(rest: &[u8]) -> &[u8] {
    let end = rest
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(rest.len());
    rest.get(end..).unwrap_or_default()
}

/// Returns what follows a comment, whose `/` is before `rest`.
fn after_comment(rest: &[u8]) -> Option<&[u8]> {
    let mut body = rest.get(1..)?;
    loop {
        match body {
            [b'*', b'/', after @ ..] => return Some(after),
            [] | [b'/', b'*', ..] => return None,
            [_, after @ ..] => body = after,
        }
    }
}

/// Returns what follows a string, whose first quote is before `rest`.
fn after_string(mut rest: &[u8], quote: u8) -> Option<&[u8]> {
    loop {
        rest = match rest {
            [byte, after @ ..] if *byte == quote => return Some(after),
            [] | [b'\n' | b'\0', ..] => return None,
            [b'\\', b'x' | b'X', digit, after @ ..] if digit.is_ascii_hexdigit() => after,
            [b'\\', b'u', after @ ..] => after_hex(after, 4)?,
            [b'\\', b'U', after @ ..] => after_hex(after, 8)?,
            [b'\\', byte, after @ ..] if b"abfnrtv?\\'\"01234567".contains(byte) => after,
            [b'\\', ..] => return None,
            [_, after @ ..] => after,
        };
    }
}

/// Returns what follows `count` hexadecimal digits; `None` if there are fewer.
fn after_hex(rest: &[u8], count: usize) -> Option<&[u8]> {
    let (digits, after) = rest.split_at_checked(count)?;
    digits.iter().all(u8::is_ascii_hexdigit).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_of_brackets_has_a_limit() {
        let nested = |levels: usize| "message M {".repeat(levels) + &"}".repeat(levels);
        assert!(check_depth(&nested(MAX_DEPTH)).is_ok());
        let reason = "messages and options are nested deeper than 100 levels".to_owned();
        assert_eq!(
            check_depth(&format!("// one\n\n{}", nested(MAX_DEPTH + 1))),
            Err((3, reason.clone()))
        );
        // Brackets side by side.
        assert!(
            check_depth(
                &"message M { map<int32, string> x = 1 [(a) = { b < c: [1] > }]; }".repeat(1_000)
            )
            .is_ok()
        );
        // Only the bracket of the same kind closes one.
        assert_eq!(check_depth(&"{>".repeat(101)), Err((1, reason.clone())));
        // Closing brackets in comments and strings close nothing, and opening ones open nothing.
        for hidden in [
            "{ // }\n",
            "{ # }\n",
            "{ /* } */",
            "{ /***/",
            "{ /* // * */",
            "{ '}'",
            "{ \"}'\"",
            "{ '\\'}'",
            "{ \"\\\\\\x41}\"",
        ] {
            assert!(check_depth(&hidden.repeat(100)).is_ok(), "{hidden}");
            assert!(
                matches!(check_depth(&hidden.repeat(101)), Err((_, found)) if found == reason),
                "{hidden}"
            );
        }
        assert!(check_depth(&"// {\n/* { */ '{' \"{\"\n".repeat(101)).is_ok());
    }

    #[test]
    fn tokens_that_the_parser_may_read_otherwise_are_errors() {
        for source in [
            "/* ",
            "/*/",
            "/* /* */ */",
            "'a",
            "\"a\n\"",
            "'\\q'",
            "'\\u12'",
            "'\\x'",
            "'\\",
        ] {
            assert!(check_depth(source).is_err(), "{source}");
        }
    }

    /// The parser finds the end of comments and strings where this file does.
    #[test]
    fn the_parser_reads_the_same_tokens() {
        for text in [
            "/***/",
            "/* * / **/",
            "/**\n * a\n **/",
            "// a /*\n",
            "/* ' */",
            "/* // */",
        ] {
            let file = File::from_source(
                "a.proto",
                &format!("syntax = \"proto3\"; {text} message A {{}}"),
            )
            .unwrap();
            assert_eq!(file.file_descriptor_proto().message_type.len(), 1, "{text}");
        }
        for text in [
            r#""'""#,
            r"'\''",
            r#""\"\\""#,
            r"'\x4'",
            r"'\x41a'",
            r"'\1017'",
            r"'\u0041'",
            r"'\U00000041'",
            r"'/*//'",
        ] {
            let source =
                format!("syntax = \"proto3\"; option java_package = {text}; message A {{}}");
            assert!(check_depth(&source).is_ok());
            let file = File::from_source("a.proto", &source).unwrap();
            assert_eq!(file.file_descriptor_proto().message_type.len(), 1, "{text}");
        }
    }
}
