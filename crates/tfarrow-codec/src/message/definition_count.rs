//! The size of descriptors, which is counted on the wire before they are decoded.
//!
//! A definition takes few bytes of a file and up to 4 KB of memory: `prost-reflect` has each of
//! them as a message of two kinds, in tables of names, and under its full name. The limits bound
//! the memory of all kinds of definitions to less than 192 MiB.

use crate::{
    example::wire::{self, LEN},
    slices,
};

/// Maximum number of definitions. The descriptors of TensorFlow have about 5,000.
const MAX_DEFINITIONS: usize = 50_000;

/// Maximum number of bytes of names and other text, where the name of a definition includes those
/// of its file and of the definitions around it.
const MAX_TEXT: usize = 8 << 20;

/// Maximum depth of groups and of messages in a descriptor. `prost` refuses deeper ones.
const MAX_DEPTH: usize = 100;

/// Number of bytes of a name that an error shows.
const SHOWN: usize = 40;

/// The number of a file's name, and of those of its definitions.
const NAME: u32 = 1;
/// The number of a file's package.
const PACKAGE: u32 = 2;
/// The number of a file's comments and positions.
const SOURCE_CODE_INFO: u32 = 9;

/// The number of definitions in files, and of the bytes of their names.
#[derive(Debug, Default)]
pub struct DefinitionCount {
    definitions: usize,
    text: usize,
    /// Whether an option is text, as parsers of sources make it for compilers.
    has_text_options: bool,
}

/// A part of a descriptor, which takes memory of its own. The names are those of
/// `descriptor.proto`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    File,
    Message,
    Field,
    Oneof,
    ExtensionRange,
    Enum,
    EnumValue,
    Service,
    Method,
    Options,
    UninterpretedOption,
    /// A part without parts: a string, a range or a part of a name.
    Leaf,
}

impl Part {
    /// Returns the part that the field `number` of this part is; `None` for a field that is no
    /// part, or not known.
    fn child(self, number: u32) -> Option<Self> {
        Some(match (self, number) {
            (Self::File, 4) | (Self::Message, 3) => Self::Message,
            (Self::File, 5) | (Self::Message, 4) => Self::Enum,
            (Self::File, 6) => Self::Service,
            (Self::File, 7) | (Self::Message, 2 | 6) => Self::Field,
            (Self::Message, 5) => Self::ExtensionRange,
            (Self::Message, 8) => Self::Oneof,
            (Self::Enum, 2) => Self::EnumValue,
            (Self::Service, 2) => Self::Method,
            (Self::File | Self::Field, 8)
            | (Self::Message, 7)
            | (Self::Enum | Self::EnumValue | Self::Service | Self::ExtensionRange, 3)
            | (Self::Oneof, 2)
            | (Self::Method, 4) => Self::Options,
            (Self::Options, 999) => Self::UninterpretedOption,
            // Dependencies, reserved ranges and names, and parts of the names of options.
            (Self::File, 3)
            | (Self::Message, 9 | 10)
            | (Self::Enum, 4 | 5)
            | (Self::UninterpretedOption, 2) => Self::Leaf,
            _ => return None,
        })
    }

    /// Returns whether the field 1 of the part is its name.
    fn has_name(self) -> bool {
        !matches!(
            self,
            Self::File
                | Self::ExtensionRange
                | Self::Options
                | Self::UninterpretedOption
                | Self::Leaf
        )
    }
}

impl DefinitionCount {
    /// Adds a file, given the bytes of a `google.protobuf.FileDescriptorProto`. Its comments do not
    /// count.
    ///
    /// # Errors
    /// The bytes are no valid message.
    pub fn add_file(&mut self, file: &[u8]) -> Result<(), String> {
        let name = name_of_file(file)?;
        let package = longest(file, PACKAGE)?;
        // Each prefix of a package is a name of its own.
        let prefixes = 1 + package.iter().filter(|byte| **byte == b'.').count();
        self.add(prefixes, package.len());
        self.add_part(Part::File, file, name.len() + package.len(), MAX_DEPTH)
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// There are more definitions or longer names. The message has both numbers, and what to do.
    pub fn check(&self) -> Result<(), String> {
        let advice = "use a file that only has the message and what it refers to";
        if self.definitions > MAX_DEFINITIONS {
            return Err(format!(
                "the number of messages, fields, values of enums and other definitions is {}; expected at most {MAX_DEFINITIONS}: {advice}",
                self.definitions
            ));
        }
        if self.text > MAX_TEXT {
            return Err(format!(
                "the full names of messages, fields and other definitions have {} bytes; expected at most {MAX_TEXT}: {advice}",
                self.text
            ));
        }
        Ok(())
    }

    /// Returns whether an option is text, as parsers of sources make it for compilers.
    pub(super) fn has_text_options(&self) -> bool {
        self.has_text_options
    }

    /// Adds definitions, each with a name of this length.
    fn add(&mut self, definitions: usize, name_length: usize) {
        self.definitions += definitions;
        self.text = self
            .text
            .saturating_add(definitions.saturating_mul(name_length));
    }

    /// Adds a part and the parts in it. `around` is the length of the names around it.
    fn add_part(
        &mut self,
        part: Part,
        bytes: &[u8],
        around: usize,
        depth: usize,
    ) -> Result<(), String> {
        let name = if part.has_name() {
            longest(bytes, NAME)?
        } else {
            &[]
        };
        // The time to find a name grows with the square of its dots.
        if name.contains(&b'.') {
            let start = String::from_utf8_lossy(name.get(..SHOWN).unwrap_or(name));
            return Err(format!(
                "the name of a definition has a dot, which it cannot have: {start:?}"
            ));
        }
        let full_name = around + 1 + name.len();
        self.add(1, full_name);
        self.has_text_options |= part == Part::UninterpretedOption;
        if part == Part::Leaf || depth == 0 {
            self.text = self.text.saturating_add(bytes.len());
            return Ok(());
        }
        let mut rest = bytes;
        while let Some((number, value)) = next_value(&mut rest)? {
            match part.child(number) {
                Some(child) => self.add_part(child, value, full_name, depth - 1)?,
                None if part == Part::File && number == SOURCE_CODE_INFO => {}
                None => self.text = self.text.saturating_add(value.len()),
            }
        }
        Ok(())
    }
}

/// Reads up to the next length-delimited field of a message. Returns its number and its bytes;
/// `None` at the end.
///
/// # Errors
/// The bytes are no valid message.
pub(super) fn next_value<'a>(rest: &mut &'a [u8]) -> Result<Option<(u32, &'a [u8])>, String> {
    let invalid = |error: crate::WireError| error.to_string();
    while !rest.is_empty() {
        match wire::tag(rest).map_err(invalid)? {
            (number, LEN) => return Ok(Some((number, wire::bytes(rest).map_err(invalid)?))),
            other => wire::skip(rest, other, MAX_DEPTH).map_err(invalid)?,
        }
    }
    Ok(None)
}

/// Returns the longest value of a length-delimited field. Of several, the last one counts.
fn longest(message: &[u8], field: u32) -> Result<&[u8], String> {
    let mut rest = message;
    let mut longest = &[][..];
    while let Some((number, value)) = next_value(&mut rest)? {
        if number == field && value.len() >= longest.len() {
            longest = value;
        }
    }
    Ok(longest)
}

/// Returns the name of a file.
pub(super) fn name_of_file(file: &[u8]) -> Result<&[u8], String> {
    longest(file, NAME)
}

/// Returns the bytes of a file without its comments and positions, which take more memory than its
/// definitions.
pub(super) fn without_source_info(file: &[u8]) -> Result<Vec<u8>, String> {
    let mut rest = file;
    let mut kept = Vec::new();
    while !rest.is_empty() {
        let field = rest;
        let tag = wire::tag(&mut rest).map_err(|error| error.to_string())?;
        wire::skip(&mut rest, tag, MAX_DEPTH).map_err(|error| error.to_string())?;
        if tag.0 != SOURCE_CODE_INFO {
            kept.extend_from_slice(slices::part(field, ..field.len() - rest.len()));
        }
    }
    Ok(kept)
}
