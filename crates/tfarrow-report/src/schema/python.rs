//! The schema as Python code for TensorFlow's parsers.

use std::fmt::Write;

use tfarrow_codec::{Kind, KindSummary, RecordType, Role};

use super::{
    inferred_schema::InferredSchema,
    spec::{Lengths, Spec},
};
use crate::text::{count, escape, is_control, range};

/// A feature specification for `tf.io.parse_example` and `tf.io.parse_sequence_example`.
pub(super) fn spec(found: &InferredSchema) -> String {
    let mut out = format!("# {}\nimport tensorflow as tf\n", escape(&found.headline()));
    // Writing to a `String` cannot fail.
    let _ = match found.record_type() {
        RecordType::Raw => {
            write!(
                out,
                "\n# These records are not tf.Example messages: there is nothing to parse.\nfeatures = {{}}"
            )
        }
        RecordType::Message => {
            write!(
                out,
                "\n# These records are no tf.Example messages: parse them with their own class.\nfeatures = {{}}"
            )
        }
        RecordType::Example => {
            dictionary(&mut out, "features", found, Role::Feature);
            write!(out, "\n\n# tf.io.parse_single_example(record, features)")
        }
        RecordType::ExampleList => {
            dictionary(&mut out, "context_features", found, Role::Context);
            out.push('\n');
            dictionary(&mut out, "example_features", found, Role::Examples);
            write!(
                out,
                "\n\n# tfr.data.parse_from_example_list(records, context_feature_spec=context_features, \
                 example_feature_spec=example_features)"
            )
        }
        RecordType::SequenceExample => {
            dictionary(&mut out, "context_features", found, Role::Context);
            out.push('\n');
            dictionary(&mut out, "sequence_features", found, Role::Sequence);
            write!(
                out,
                "\n\n# tf.io.parse_single_sequence_example(record, context_features, sequence_features)"
            )
        }
    };
    out
}

fn dictionary(out: &mut String, name: &str, found: &InferredSchema, wanted: Role) {
    let _ = write!(out, "\n{name} = {{\n");
    let records = found.inferred().summary.instances(wanted);
    for (feature, role) in found.features().filter(|(_, role)| *role == wanted) {
        let key = string(&feature.name);
        let _ = match Spec::of(feature, role, records) {
            _ if found.is_folder(feature) => {
                writeln!(
                    out,
                    "    # {key}: a folder of the files, and no feature of the records"
                )
            }
            Err(why) => writeln!(out, "    # {key}: {why}"),
            Ok(spec) => {
                let (spec, note) = match role {
                    Role::Sequence => sequence(spec, feature.present < records),
                    _ => single(spec, records),
                };
                writeln!(out, "    {key}: tf.io.{spec},{note}")
            }
        };
    }
    out.push('}');
}

fn single(spec: Spec<'_>, records: u64) -> (String, String) {
    let dtype = dtype(spec.kind);
    match spec.lengths() {
        Lengths::One if spec.always => (format!("FixedLenFeature([], {dtype})"), String::new()),
        Lengths::Fixed(count) if spec.always => (
            format!("FixedLenFeature([{count}], {dtype})"),
            String::new(),
        ),
        _ => (
            format!("RaggedFeature({dtype})"),
            note(spec.seen, records.saturating_sub(spec.seen.lists)),
        ),
    }
}

/// A feature list. Its steps have a fixed length only where each has a kind.
fn sequence(spec: Spec<'_>, is_missing: bool) -> (String, String) {
    let dtype = dtype(spec.kind);
    let missing = if is_missing {
        ", allow_missing=True"
    } else {
        ""
    };
    match spec.lengths() {
        Lengths::One if spec.always => (
            format!("FixedLenSequenceFeature([], {dtype}{missing})"),
            String::new(),
        ),
        Lengths::Fixed(count) if spec.always => (
            format!("FixedLenSequenceFeature([{count}], {dtype}{missing})"),
            String::new(),
        ),
        _ => (format!("RaggedFeature({dtype})"), note(spec.seen, 0)),
    }
}

fn note(seen: &KindSummary, missing: u64) -> String {
    let values = range(seen.min_len, seen.max_len);
    let plural = if seen.max_len == 1 { "" } else { "s" };
    match missing {
        0 => format!("  # {values} value{plural}"),
        missing => format!("  # {values} value{plural}, missing in {}", count(missing)),
    }
}

fn dtype(kind: Kind) -> &'static str {
    match kind {
        Kind::Bytes => "tf.string",
        Kind::Float => "tf.float32",
        Kind::Int64 => "tf.int64",
    }
}

/// A Python string literal.
fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_control(c) && u32::from(c) < 0x100 => {
                out.push_str(&format!("\\x{:02x}", u32::from(c)))
            }
            c if is_control(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_python_strings() {
        assert_eq!(
            super::string("a\"b\\c\n\u{85}\u{202e}é"),
            r#""a\"b\\c\x0a\x85\u202eé""#
        );
    }
}
