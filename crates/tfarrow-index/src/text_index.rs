//! The text index of DALI and the package tfrecord, read as a hint.
//!
//! A line has the offset of a frame and the number of its bytes. Nothing in it tells which file, or
//! which version of it, the index is of. It is used only where all of it fits: it is not older than
//! the file, its frames follow each other from the start of the file to its end, and each frame that
//! is read has the length that the index says, and a valid CRC of it.

use std::{fs, io, path::Path, time::SystemTime};

use tfarrow_dataset::Shard;

use crate::{
    builder::FRAME_BYTES,
    place::{IndexForm, IndexPlace},
    shard_index::{IndexFault, UnusableIndex},
};

/// Number of bytes that a line has at most: two numbers of 20 digits, a space and an end of line.
const MOST_LINE_BYTES: u64 = 43;

impl IndexPlace {
    /// The offset of each frame of a plain file, and the end of the last one, by the text index of the
    /// file; `None` if it has none.
    ///
    /// # Errors
    /// The index does not fit to the file.
    pub(crate) fn find_text(&self, shard: &Shard) -> Result<Option<Vec<u64>>, UnusableIndex> {
        let Some(path) = self.path_of(shard, IndexForm::Dali) else {
            return Ok(None);
        };
        match offsets(&path, shard) {
            Ok(offsets) => Ok(Some(offsets)),
            Err(TextFault::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(fault) => Err(UnusableIndex {
                path,
                fault: fault.into(),
            }),
        }
    }
}

/// Why a text index is not used.
enum TextFault {
    Io(io::Error),
    /// It is older than the file, or has frames of another one.
    Changed,
    /// A line, counted from 1, is none of an index.
    Line(usize),
}

impl From<io::Error> for TextFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<TextFault> for IndexFault {
    fn from(fault: TextFault) -> Self {
        match fault {
            TextFault::Io(error) => Self::Unreadable(error.to_string()),
            TextFault::Changed => Self::Changed,
            TextFault::Line(line) => Self::Unreadable(format!(
                "line {line} is not the offset and the length of the next record"
            )),
        }
    }
}

fn offsets(path: &Path, shard: &Shard) -> Result<Vec<u64>, TextFault> {
    let changed = |path: &Path| -> io::Result<SystemTime> { fs::metadata(path)?.modified() };
    let size = fs::metadata(path)?.len();
    if size > (shard.size / FRAME_BYTES).saturating_mul(MOST_LINE_BYTES)
        || changed(path)? < changed(shard.local_path())?
    {
        return Err(TextFault::Changed);
    }
    let text = fs::read(path)?;
    let mut offsets = Vec::with_capacity(text.len() / 16);
    let mut end = 0;
    let lines = text.strip_suffix(b"\n").unwrap_or(&text);
    for (number, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        match numbers(line) {
            Some((offset, bytes)) if offset == end && bytes >= FRAME_BYTES => {
                offsets.push(offset);
                end = offset.checked_add(bytes).ok_or(TextFault::Changed)?;
            }
            _ => return Err(TextFault::Line(number + 1)),
        }
    }
    if end != shard.size {
        return Err(TextFault::Changed);
    }
    offsets.push(end);
    Ok(offsets)
}

/// The two numbers of a line.
fn numbers(line: &[u8]) -> Option<(u64, u64)> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let space = line.iter().position(|byte| *byte == b' ')?;
    let (offset, bytes) = line.split_at(space);
    Some((number(offset)?, number(bytes.get(1..)?)?))
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let mut number = 0u64;
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(value.into())?;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tfarrow_dataset::resolve;

    use super::*;

    #[test]
    fn a_text_index_is_used_only_if_all_of_it_fits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, [1; 100]).unwrap();
        let shard = resolve(&[&path]).unwrap().remove(0);
        let index = folder.path().join("a.idx");
        let found = || match IndexPlace::Beside.find_text(&shard) {
            Ok(found) => Ok(found),
            Err(unusable) => Err(unusable.fault),
        };
        assert_eq!(found(), Ok(None));
        for text in ["0 40\n40 60\n", "0 40\r\n40 60"] {
            fs::write(&index, text).unwrap();
            assert_eq!(found(), Ok(Some(vec![0, 40, 100])));
        }
        for text in ["", "0 40\n", "0 40\n40 61\n", &"0 40\n".repeat(100)] {
            fs::write(&index, text).unwrap();
            assert!(found().is_err(), "{text}");
        }
        for text in [
            "0 40\n41 59\n",
            "0 40\n40 6x\n",
            "0 40\n40 10\n50 50\n",
            "0 40\n\n",
            "0 40\n40\n",
            "0 40\n40 18446744073709551616\n",
            "0 40\n40 18446744073709551615\n",
        ] {
            fs::write(&index, text).unwrap();
            assert!(found().is_err(), "{text}");
        }
        fs::write(&index, "0 40\n40 60\n").unwrap();
        let older = fs::metadata(&path).unwrap().modified().unwrap() - Duration::from_secs(5);
        let file = fs::File::options().append(true).open(&index).unwrap();
        file.set_modified(older).unwrap();
        assert_eq!(found(), Err(IndexFault::Changed));
    }
}
