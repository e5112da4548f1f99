//! What a conversion goes on behind: counted, told with its place, and kept where somebody wants to see it.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use tfarrow_codec::{EncoderBuilder, Records};
use tfarrow_dataset::{Compression, ErrorKind, Fault, Losses, Lost, OutputFile, ShardWriter, UNFINISHED, is_remote};

use crate::{Error, Result, Target};

/// Faults that a report keeps with their places.
pub(crate) const FAULTS: usize = 10_000;

/// Bytes of a stretch that one record of the quarantine holds.
const PIECE: usize = 64 << 20;

/// What all workers of a conversion went on behind.
pub(crate) struct Damage {
    state: Mutex<State>,
}

struct State {
    losses: Losses,
    /// The numbers of the shards that something was lost of.
    shards: HashSet<usize>,
    quarantine: Option<Quarantine>,
}

impl Damage {
    /// Nothing yet. What is lost goes to the file `quarantine`, where one is given, which is begun at once.
    pub(crate) fn new(quarantine: Option<&Path>, overwrite: bool) -> Result<Self> {
        let quarantine = quarantine.map(|path| Quarantine::create(path, overwrite)).transpose()?;
        Ok(Self { state: Mutex::new(State { losses: Losses::new(FAULTS), shards: HashSet::new(), quarantine }) })
    }

    /// Notes a stretch, or a part of one, of the shard of this number.
    pub(crate) fn lost(&self, shard: usize, path: &Path, lost: Lost) -> Result<()> {
        let mut state = self.lock();
        if let Some(quarantine) = &mut state.quarantine {
            if let Some(error) = &lost.error {
                quarantine.stretches.insert(shard, (Fault::record_of(error), error.to_string()));
            }
            let (record, what) = quarantine.stretches.get(&shard).cloned().unwrap_or_default();
            // Damage that has cost no bytes is told as well.
            let nothing = lost.error.is_some() && lost.bytes.is_empty();
            let pieces = lost.bytes.chunks(PIECE).chain(nothing.then_some(&[][..]));
            for (index, piece) in pieces.enumerate() {
                let offset = lost.offset + (index * PIECE) as u64;
                quarantine.add(path, (record, offset), &what, piece, lost.is_stored)?;
            }
        }
        state.shards.insert(shard);
        state.losses.add_lost(shard, lost);
        Ok(())
    }

    /// Notes a record of a shard that is damaged, or does not fit.
    pub(crate) fn record(
        &self,
        shard: usize,
        path: &Path,
        records: &Records,
        error: tfarrow_codec::Error,
    ) -> Result<()> {
        let (record, offset) = (error.position().record, error.position().offset);
        let data = records.data(record.saturating_sub(records.first()) as usize).unwrap_or_default();
        let fault = Fault::of(shard, tfarrow_dataset::Error::codec(path, error));
        let mut state = self.lock();
        if let Some(quarantine) = &mut state.quarantine {
            quarantine.add(path, (record, offset), &fault.error.to_string(), data, false)?;
        }
        state.shards.insert(shard);
        state.losses.add_record(Fault { bytes: data.len() as u64, ..fault });
        Ok(())
    }

    /// Whether something of the shard of this number was lost.
    pub(crate) fn is_of(&self, shard: usize) -> bool {
        self.lock().shards.contains(&shard)
    }

    /// Ends the quarantine, which has its name now, and hands over what was lost.
    pub(crate) fn finish(self) -> Result<Losses> {
        let State { losses, quarantine, .. } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(quarantine) = quarantine {
            quarantine.finish()?;
        }
        Ok(losses)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A TFRecord file of Examples, one for each piece of what was lost: `data`, `fault`, `file`, `offset` and `record`. Where
/// `stored` is 1, it is bytes of a compressed file that do not inflate, as they are stored, and the offset is the file's.
struct Quarantine {
    path: PathBuf,
    file: ShardWriter<OutputFile>,
    /// The record and the fault of the stretch of each shard that was told of last: it may go on.
    stretches: HashMap<usize, (u64, String)>,
}

impl Quarantine {
    fn create(path: &Path, overwrite: bool) -> Result<Self> {
        let refuse = |why: &str| Err(Error::Usage(format!("{}: {why}", path.display())));
        let Some(name) = path.file_name().filter(|_| path.as_os_str() != "-") else {
            return refuse("the quarantine is a file");
        };
        if path.is_dir() || path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR) {
            return refuse("is a folder, and the quarantine is a file");
        }
        if let Some((target, _)) = Target::from_path(path).filter(|(target, _)| *target != Target::TfRecord) {
            return refuse(&format!("the quarantine is TFRecord, and this is called {}", target.extension()));
        }
        let output = if path.to_str().is_some_and(is_remote) {
            OutputFile::create(path, overwrite)
        } else {
            // What a run that was killed has left of it is replaced.
            let mut part = OsString::from(UNFINISHED);
            part.push(name);
            part.push(".part");
            let part = path.with_file_name(part);
            let _ = fs::remove_file(&part);
            OutputFile::create_at(path, &part, overwrite)
        };
        let output = match output {
            Err(error) if matches!(error.kind(), ErrorKind::Exists) => {
                return refuse("is there already; --overwrite replaces it");
            }
            output => output?,
        };
        let (_, compression) = Compression::of_name(path.to_str().unwrap_or_default());
        let file = ShardWriter::new(output, compression.unwrap_or_default());
        Ok(Self { path: path.to_owned(), file, stretches: HashMap::new() })
    }

    fn add(
        &mut self,
        file: &Path,
        (record, offset): (u64, u64),
        fault: &str,
        data: &[u8],
        is_stored: bool,
    ) -> Result<()> {
        let columns: [(&str, ArrayRef); 6] = [
            ("data", Arc::new(BinaryArray::from_iter_values([data]))),
            ("fault", Arc::new(StringArray::from_iter_values([fault]))),
            ("file", Arc::new(StringArray::from_iter_values([file.to_string_lossy()]))),
            ("offset", Arc::new(Int64Array::from_iter_values([offset as i64]))),
            ("record", Arc::new(Int64Array::from_iter_values([record as i64]))),
            ("stored", Arc::new(Int64Array::from_iter_values([i64::from(is_stored)]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).map_err(|e| Error::arrow(&self.path, e))?;
        let mut frame = Vec::new();
        let encoder = EncoderBuilder::new().build(batch.schema());
        let encoded = encoder.and_then(|mut encoder| encoder.encode(&batch, &mut frame));
        encoded.map_err(|e| Error::codec(&self.path, e))?;
        std::io::Write::write_all(&mut self.file, &frame).map_err(|e| Error::io(&self.path, e))
    }

    fn finish(self) -> Result<()> {
        let output = self.file.finish().map_err(|e| Error::io(&self.path, e))?;
        Ok(output.persist()?)
    }
}
