//! The journal of a conversion, with which an interrupted conversion can be resumed.
//!
//! The journal is a hidden file in the folder of the outputs, with one JSON object a line:
//!
//! | line | written |
//! |---|---|
//! | `{"conversion": fingerprint}` | first |
//! | `{"begun": part}` | before an unfinished file is created |
//! | `"tried"` | after a speculative conversion has failed |
//! | `{"made": {..}}` | when an output is complete, and synced to the disk before the output gets its name |
//!
//! The journal is locked while the conversion runs. The system releases the lock when the process
//! ends. A complete conversion removes its journal; to resume it compares the [existing
//! outputs](crate::output::existing_output).

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use tfarrow_columnar::checksums::hash;
use tfarrow_dataset::internals::{Lock, UNFINISHED};
use xxhash_rust::xxh3::Xxh3;

use self::{
    folders::{NewFolders, folder_of},
    lock_file::open_locked,
};
use crate::{Error, Result};

pub(crate) mod folders;
pub(crate) mod lock_file;

/// The open journal of a running conversion.
pub(crate) struct Journal {
    path: PathBuf,
    /// The folder of the journal. Names in the journal are relative to it.
    folder: PathBuf,
    state: Lock<JournalState>,
    /// The outputs that an interrupted run completed, by name.
    earlier: HashMap<String, CompletedOutput>,
    /// Whether a speculative conversion of the interrupted run failed, so that the columns must be
    /// inferred.
    speculation_failed: bool,
    /// The folders that were created for the outputs.
    new_folders: NewFolders,
}

struct JournalState {
    file: File,
    /// The number of outputs that this run has started.
    started: u64,
}

/// A line of the journal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The fingerprint of the conversion.
    Conversion(String),
    /// The name of an unfinished file.
    #[serde(rename = "begun")]
    Started(String),
    /// A speculative conversion failed.
    #[serde(rename = "tried")]
    SpeculationFailed,
    /// An output is complete.
    #[serde(rename = "made")]
    Completed(CompletedOutput),
}

/// A complete output, which has its name, or still the name of an unfinished file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CompletedOutput {
    /// Its name.
    pub(crate) output: String,
    /// The name of its unfinished file.
    pub(crate) part: String,
    pub(crate) bytes: u64,
    /// XXH3 of its bytes.
    pub(crate) hash: u64,
    /// The [hash](crate::output::made_of::source_of) of its sources and its columns.
    pub(crate) source: u64,
    pub(crate) records: u64,
    #[serde(rename = "losses")]
    pub(crate) lossy_changes: Vec<(String, u64)>,
    /// Whether corrupt data of the source was skipped. A resumed run converts such a source again,
    /// so that it reports all losses and has them in its quarantine.
    pub(crate) damaged: bool,
}

impl Journal {
    /// Opens and locks the journal `path`. With `resume`, the complete outputs of an interrupted
    /// run with the same `fingerprint` are kept. With `overwrite`, its unfinished files are
    /// removed.
    ///
    /// # Errors
    /// [`Error::Usage`] if another conversion holds the lock, if a run was interrupted that is
    /// neither resumed nor overwritten, or if it has another fingerprint; I/O errors.
    pub(crate) fn open(
        path: &Path,
        fingerprint: &str,
        resume: bool,
        overwrite: bool,
    ) -> Result<Self> {
        let folder = folder_of(path).to_owned();
        let new_folders = NewFolders::create(&folder)?;
        let Some(mut file) = open_locked(path).map_err(|e| Error::io(path, e))? else {
            let folder = folder.display();
            return Err(Error::Usage(format!(
                "{folder}: another conversion writes to this folder; wait until it ends"
            )));
        };
        let JournalContents {
            fingerprint: known,
            started,
            mut completed,
            speculation_failed,
        } = JournalContents::read(&mut file).map_err(|e| Error::io(path, e))?;
        match known {
            Some(known) if resume && known != fingerprint => {
                return Err(Error::Interrupted {
                    folder,
                    is_other: true,
                });
            }
            Some(_) if !resume && !overwrite => {
                return Err(Error::Interrupted {
                    folder,
                    is_other: false,
                });
            }
            _ => {}
        }
        let parts: HashSet<_> = started
            .into_iter()
            .chain(completed.values().map(|made| made.part.clone()))
            .collect();
        if !resume {
            completed.clear();
        }
        // Unfinished files cannot be continued, and the outputs of corrupt sources are made again.
        let kept = completed
            .values()
            .filter(|output| !output.damaged)
            .map(|output| output.part.as_str());
        let kept: HashSet<_> = kept.collect();
        parts
            .iter()
            .filter(|part| !kept.contains(part.as_str()))
            .for_each(|part| remove(&folder, part));
        rewrite(&mut file, fingerprint, completed.values()).map_err(|e| Error::io(path, e))?;
        let state = Lock::new(JournalState { file, started: 0 });
        let speculation_failed = speculation_failed && resume;
        Ok(Self {
            path: path.to_owned(),
            folder,
            state,
            earlier: completed,
            speculation_failed,
            new_folders,
        })
    }

    /// Checks that `path` is not the journal of an interrupted conversion. Writes nothing.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if it is, and I/O errors.
    pub(crate) fn check(path: &Path) -> Result<()> {
        // Opening a pipe or a device could block. A conversion reports them.
        if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(());
        }
        let contents = File::open(path).and_then(|mut file| JournalContents::read(&mut file));
        match contents.map_err(|e| Error::io(path, e))?.fingerprint {
            Some(_) => Err(Error::Interrupted {
                folder: folder_of(path).to_owned(),
                is_other: false,
            }),
            None => Ok(()),
        }
    }

    /// Records that an output is started. Returns the path for its unfinished file, in the folder
    /// of the output.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn start_output(&self, output: &Path) -> Result<PathBuf> {
        let time = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        let number = {
            let mut state = self.state.lock();
            state.started += 1;
            state.started
        };
        let part = output.with_file_name(format!("{UNFINISHED}{time:x}-{number}.part"));
        self.append(&Line::Started(self.name_of(&part)))?;
        Ok(part)
    }

    /// Records that a speculative conversion has failed. A resumed run then infers the columns at
    /// once.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn record_failed_speculation(&self) -> Result<()> {
        self.append(&Line::SpeculationFailed)
    }

    /// The folders that were created for the outputs, each after its parent.
    pub(crate) fn new_folders(&self) -> impl Iterator<Item = &Path> {
        self.new_folders.paths()
    }

    /// Whether a speculative conversion of the interrupted run failed.
    pub(crate) fn speculation_failed(&self) -> bool {
        self.speculation_failed
    }

    /// Records that an output is complete, before it gets its name.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn record_completed(&self, output: CompletedOutput) -> Result<()> {
        self.append(&Line::Completed(output))?;
        // Other lines are not synced: if they are lost in a crash, an unfinished file remains, or a
        // shard is converted again.
        self.state
            .lock()
            .file
            .sync_data()
            .map_err(|e| Error::io(&self.path, e))
    }

    fn append(&self, line: &Line) -> Result<()> {
        let text = to_text(line).map_err(|e| Error::io(&self.path, e))?;
        self.state
            .lock()
            .file
            .write_all(text.as_bytes())
            .map_err(|e| Error::io(&self.path, e))
    }

    /// The completed `output` of the interrupted run, and the path where its file is: its name, or
    /// its unfinished file. `None` if its source or columns are not those of the hash `source`, if
    /// corrupt data was skipped, or if the file was changed.
    pub(crate) fn find_completed(
        &self,
        output: &Path,
        source: u64,
    ) -> Option<(CompletedOutput, PathBuf)> {
        let found = self
            .earlier
            .get(&self.name_of(output))
            .filter(|found| found.source == source && !found.damaged)?;
        let part = self.folder.join(&found.part);
        let place = [output, &part]
            .into_iter()
            .find(|path| is_unchanged(path, found))?;
        Some((found.clone(), place.to_owned()))
    }

    /// Whether the interrupted run recorded this output as complete.
    pub(crate) fn has_completed(&self, output: &Path) -> bool {
        self.earlier.contains_key(&self.name_of(output))
    }

    /// Completed outputs of the interrupted run that are not among `outputs`, because their sources
    /// are not among those of this run. They are kept: they may be the only copy of the data.
    pub(crate) fn unclaimed_outputs<'o>(
        &self,
        outputs: impl Iterator<Item = &'o Path>,
    ) -> Vec<PathBuf> {
        let claimed: HashSet<_> = outputs.map(|path| self.name_of(path)).collect();
        let unclaimed = self
            .earlier
            .values()
            .filter(|output| !claimed.contains(&output.output));
        let unclaimed = unclaimed.map(|output| (output, self.folder.join(&output.output)));
        // Comparing the size is enough for a report. Hashing would read all of them.
        let unclaimed = unclaimed
            .filter(|(output, path)| has_size_of(path, output))
            .map(|(_, path)| path);
        let mut unclaimed: Vec<_> = unclaimed.collect();
        unclaimed.sort();
        unclaimed
    }

    /// The path of a file relative to the folder of the outputs.
    pub(crate) fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned()
    }

    /// Whether a completed output exists. The journal lists them, so that a run holds no list of
    /// them. If it cannot be read, an output may exist.
    fn has_output(&self) -> bool {
        let file = &mut self.state.lock().file;
        let contents = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| JournalContents::read(file));
        let Ok(contents) = contents else {
            return true;
        };
        contents.completed.values().any(|made| {
            self.folder.join(&made.output).exists() || self.folder.join(&made.part).exists()
        })
    }

    /// Removes the journal if the conversion is `complete`, or if no completed output exists.
    /// Returns whether the conversion can be resumed.
    pub(crate) fn close(self, complete: bool) -> bool {
        if !complete && self.has_output() {
            return true;
        }
        // Unfinished files of the interrupted run that this run did not use, such as those of a
        // changed source.
        self.earlier
            .values()
            .for_each(|output| remove(&self.folder, &output.part));
        let _ = fs::remove_file(&self.path);
        false
    }
}

/// Replaces the contents of the journal by a new fingerprint and the completed outputs that are
/// kept.
fn rewrite<'m>(
    file: &mut File,
    fingerprint: &str,
    completed: impl Iterator<Item = &'m CompletedOutput>,
) -> io::Result<()> {
    let lines = [Line::Conversion(fingerprint.to_owned())]
        .into_iter()
        .chain(completed.cloned().map(Line::Completed));
    let text = lines
        .map(|line| to_text(&line))
        .collect::<io::Result<String>>()?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The contents of a journal. Its last line may be truncated.
#[derive(Default)]
struct JournalContents {
    fingerprint: Option<String>,
    started: Vec<String>,
    completed: HashMap<String, CompletedOutput>,
    speculation_failed: bool,
}

impl JournalContents {
    fn read(file: &mut File) -> io::Result<Self> {
        let mut contents = Self::default();
        for line in BufReader::new(file).lines() {
            match serde_json::from_str(&line?) {
                Ok(Line::Conversion(fingerprint)) => contents.fingerprint = Some(fingerprint),
                Ok(Line::Started(part)) => contents.started.push(part),
                Ok(Line::SpeculationFailed) => contents.speculation_failed = true,
                Ok(Line::Completed(output))
                    if is_below(&output.output) && is_below(&output.part) =>
                {
                    contents.completed.insert(output.output.clone(), output);
                }
                Ok(Line::Completed(_)) => {}
                Err(_) => break,
            }
        }
        Ok(contents)
    }
}

/// Whether a relative path stays in its folder: it is neither absolute nor contains `..`.
fn is_below(name: &str) -> bool {
    Path::new(name)
        .components()
        .all(|component| matches!(component, Component::Normal(_)))
}

fn to_text(line: &Line) -> io::Result<String> {
    Ok(serde_json::to_string(line)? + "\n")
}

/// Removes an unfinished file. A manipulated journal cannot make it remove any other file.
fn remove(folder: &Path, part: &str) {
    let name = Path::new(part)
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if is_below(part) && name.starts_with(UNFINISHED) {
        let _ = fs::remove_file(folder.join(part));
    }
}

fn is_unchanged(path: &Path, output: &CompletedOutput) -> bool {
    has_size_of(path, output) && hash_of(path).is_ok_and(|hash| hash == output.hash)
}

fn has_size_of(path: &Path, output: &CompletedOutput) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() == output.bytes)
}

fn hash_of(path: &Path) -> io::Result<u64> {
    let mut hasher = Xxh3::new();
    hash(File::open(path)?, u64::MAX, &mut hasher)?;
    Ok(hasher.digest())
}
