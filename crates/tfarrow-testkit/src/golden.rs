//! The values that TensorFlow reads from its own files: reads the JSON next to each file into the
//! model.
//!
//! ```json
//! [{"features": {"x": {"int64": ["7"]}}},
//!  {"context": {"y": null}, "feature_lists": {"z": [{"float": [1065353216]}, {"bytes": ["AP8="]}]}}]
//! ```

use std::path::{Path, PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value as Json;

use crate::{
    Error, Result,
    oracle::{ModelCell, ModelRow, ModelSide, ModelValue},
};

/// A file that TensorFlow wrote, and the values that TensorFlow reads from it.
#[derive(Clone, Debug)]
pub struct Golden {
    /// The TFRecord file.
    pub path: PathBuf,
    /// Whether the records are SequenceExamples.
    pub sequence: bool,
    /// The records.
    pub rows: Vec<ModelRow>,
}

/// Returns every file below `folder` that has a JSON file next to it, ordered by path.
///
/// # Errors
/// Files that cannot be read, and JSON of another form.
pub fn below(folder: &Path) -> Result<Vec<Golden>> {
    let mut goldens = Vec::new();
    for path in files(folder)? {
        if let Some(data) = data_of(&path) {
            let rows = std::fs::read_to_string(&path)?;
            let (sequence, rows) =
                parse(&rows).map_err(|e| Error::new(format!("{}: {e}", path.display())))?;
            goldens.push(Golden {
                path: data,
                sequence,
                rows,
            });
        }
    }
    Ok(goldens)
}

/// Returns every file below `folder`, ordered by path.
///
/// # Errors
/// A folder that cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).map_err(|e| Error::new(format!("{}: {e}", folder.display())))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?)
        } else {
            files.push(path)
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the TFRecord file of a JSON file.
fn data_of(json: &Path) -> Option<PathBuf> {
    let stem = json.to_str()?.strip_suffix(".json")?;
    ["", ".tfrecord", ".tfrecord.gz"]
        .map(|end| PathBuf::from(format!("{stem}{end}")))
        .into_iter()
        .find(|p| p.is_file())
}

/// Reads the JSON: whether the records are SequenceExamples, and the records.
///
/// # Errors
/// JSON of another form.
pub fn parse(json: &str) -> Result<(bool, Vec<ModelRow>)> {
    let Json::Array(records) = serde_json::from_str(json)? else {
        return Err(Error::new("no array"));
    };
    let sequence = records.iter().any(|record| record.get("context").is_some());
    let rows = records.iter().map(row).collect::<Result<_>>()?;
    Ok((sequence, rows))
}

fn row(record: &Json) -> Result<ModelRow> {
    let mut row = ModelRow::new();
    for (part, entries) in record
        .as_object()
        .ok_or_else(|| Error::new("a record is no object"))?
    {
        for (name, json) in entries
            .as_object()
            .ok_or_else(|| Error::new(format!("{part} is no object")))?
        {
            let (side, cell) = match part.as_str() {
                "features" | "context" => (ModelSide::Features, ModelCell::One(value(json)?)),
                "feature_lists" => (
                    ModelSide::Lists,
                    ModelCell::Steps(array(json)?.iter().map(value).collect::<Result<_>>()?),
                ),
                other => return Err(Error::new(format!("what is {other}?"))),
            };
            row.insert((side, name.clone()), cell);
        }
    }
    Ok(row)
}

fn value(json: &Json) -> Result<ModelValue> {
    if json.is_null() {
        return Ok(ModelValue::Unset);
    }
    let odd = || Error::new(format!("no value: {json}"));
    let (kind, values) = json
        .as_object()
        .and_then(|o| o.iter().next())
        .ok_or_else(odd)?;
    let values = array(values)?.iter();
    match kind.as_str() {
        "bytes" => values
            .map(|v| Ok(STANDARD.decode(v.as_str().ok_or_else(odd)?)?))
            .collect::<Result<_>>()
            .map(ModelValue::Bytes),
        "float" => values
            .map(bits)
            .collect::<Option<_>>()
            .map(ModelValue::Float)
            .ok_or_else(odd),
        "int64" => values
            .map(|v| v.as_str()?.parse().ok())
            .collect::<Option<_>>()
            .map(ModelValue::Int64)
            .ok_or_else(odd),
        _ => Err(odd()),
    }
}

fn bits(json: &Json) -> Option<u32> {
    json.as_u64().and_then(|bits| bits.try_into().ok())
}

fn array(json: &Json) -> Result<&Vec<Json>> {
    json.as_array()
        .ok_or_else(|| Error::new(format!("no array: {json}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_json_is_read() {
        let (sequence, rows) = parse(
            r#"[{"features": {"x": {"int64": ["-7"]}}},
                {"context": {"y": null}, "feature_lists": {"z": [{"float": [1065353216]}, {"bytes": ["AP8="]}, null]}}]"#,
        )
        .unwrap();
        assert!(sequence);
        assert_eq!(
            rows[0],
            ModelRow::from([(
                (ModelSide::Features, "x".into()),
                ModelCell::One(ModelValue::Int64(vec![-7]))
            )])
        );
        let steps = vec![
            ModelValue::Float(vec![0x3f80_0000]),
            ModelValue::Bytes(vec![vec![0, 0xff]]),
            ModelValue::Unset,
        ];
        assert_eq!(
            rows[1],
            ModelRow::from([
                (
                    (ModelSide::Features, "y".into()),
                    ModelCell::One(ModelValue::Unset)
                ),
                ((ModelSide::Lists, "z".into()), ModelCell::Steps(steps))
            ])
        );
    }
}
