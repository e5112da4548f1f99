//! What a conversion has done, beside its outputs, so that one that was killed can go on where it was.
//!
//! The journal is a hidden file in the folder of the outputs: a line of JSON for the conversion, one for each unfinished
//! file that is begun, and one for each output that is whole, which is on the disk before the output has its name. It is locked as long as
//! the conversion runs; the system lets go of the lock when its holder dies. At the end it is removed: outputs of a complete
//! run are compared with what the conversion makes when it is [resumed](crate::present).

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    hash::{Hash, Hasher},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    path::{Component, Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use arrow_schema::Schema;
use serde::{Deserialize, Serialize};
use tfarrow_dataset::{Shard, UNFINISHED};
use xxhash_rust::xxh3::Xxh3;

use crate::{
    Error, Result, checksums,
    folders::{NewFolders, folder_of},
    lock_file::open_locked,
};

/// The journal of a conversion that runs.
pub(crate) struct Journal {
    path: PathBuf,
    /// The folder that it stands in, which names in it are relative to.
    folder: PathBuf,
    state: Mutex<State>,
    /// What an earlier run has made, by the name of the output.
    earlier: HashMap<String, CompletedOutput>,
    /// Whether an earlier run has found that the columns have to be looked for in all records.
    tried: bool,
    /// Whether this run resumes another.
    resume: bool,
    /// The folders that were created for it.
    new_folders: NewFolders,
}

struct State {
    file: File,
    /// How many outputs this run has begun.
    begun: u64,
    /// What this run has made.
    made: Vec<CompletedOutput>,
}

/// A line of it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// What was asked for.
    Conversion(String),
    /// An unfinished file is begun.
    Begun(String),
    /// The columns were not those of a sample.
    Tried,
    /// An output is whole.
    #[serde(rename = "made")]
    Completed(CompletedOutput),
}

/// An output that is whole: under its name, or still under that of the unfinished file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CompletedOutput {
    pub(crate) output: String,
    /// The name that it had before.
    pub(crate) part: String,
    pub(crate) bytes: u64,
    /// XXH3 of its bytes.
    pub(crate) hash: u64,
    /// What it was made of, and into which columns: another source, or other columns, make another output.
    pub(crate) source: u64,
    pub(crate) records: u64,
    #[serde(rename = "losses")]
    pub(crate) lossy_changes: Vec<(String, u64)>,
    /// Whether something of the source was damaged and passed over. Such an output is made again: what was lost is told,
    /// and put in quarantine, by the run that ends.
    pub(crate) damaged: bool,
}

impl Journal {
    /// Locks the journal at `path`, of a conversion that `asked` describes. With `resume` it goes on where an earlier run
    /// of the same was; with `overwrite` what is left of one is removed.
    ///
    /// # Errors
    /// Another conversion that runs there, one that was interrupted and is neither resumed nor overwritten, one that was
    /// asked for otherwise; what the system says.
    pub(crate) fn open(path: &Path, asked: &str, resume: bool, overwrite: bool) -> Result<Self> {
        let folder = folder_of(path).to_owned();
        let wrap = |e| Error::io(path, e);
        let new_folders = NewFolders::create(&folder)?;
        let Some(mut file) = open_locked(path).map_err(wrap)? else {
            let folder = folder.display();
            return Err(Error::Usage(format!("{folder}: another conversion is at work here; wait for its end")));
        };
        let Read { asked: known, begun, mut made, tried } = Read::from(&mut file).map_err(wrap)?;
        let refuse = |why: &str| Err(Error::Usage(format!("{}: {why}", folder.display())));
        match known {
            Some(known) if resume && known != asked => {
                return refuse(
                    "the conversion that was interrupted here was asked for otherwise, or by another version; give it the \
                     same options, or begin anew with --overwrite",
                );
            }
            Some(_) if !resume && !overwrite => {
                return refuse("a conversion was interrupted here: --resume goes on with it, --overwrite begins anew");
            }
            _ => {}
        }
        let parts = begun.into_iter().chain(made.values().map(|made| made.part.clone()));
        let parts: HashSet<_> = parts.collect();
        if !resume {
            made.clear();
        }
        // What was begun and is not whole is of no use, and neither is what will be made again.
        let of_use: HashSet<_> = made.values().filter(|made| !made.damaged).map(|made| made.part.as_str()).collect();
        parts.iter().filter(|part| !of_use.contains(part.as_str())).for_each(|part| remove(&folder, part));
        rewrite(&mut file, asked, made.values()).map_err(wrap)?;
        let state = Mutex::new(State { file, begun: 0, made: Vec::new() });
        let tried = tried && resume;
        Ok(Self { path: path.to_owned(), folder, state, earlier: made, tried, resume, new_folders })
    }

    /// Notes that an output is begun, and says under which name, beside its own.
    pub(crate) fn begin(&self, output: &Path) -> Result<PathBuf> {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = {
            let mut state = self.lock();
            state.begun += 1;
            state.begun
        };
        let part = output.with_file_name(format!("{UNFINISHED}{time:x}-{number}.part"));
        self.note(&Line::Begun(self.name_of(&part)))?;
        Ok(part)
    }

    /// Notes that the columns have to be looked for in all records.
    pub(crate) fn record_failed_speculation(&self) -> Result<()> {
        self.note(&Line::Tried)
    }

    /// Whether this run resumes another, so that outputs that are there already are compared and not refused.
    pub(crate) fn resumes(&self) -> bool {
        self.resume
    }

    /// The folders that were created for the outputs, each after its parent.
    pub(crate) fn new_folders(&self) -> impl Iterator<Item = &Path> {
        self.new_folders.paths()
    }

    /// Whether an earlier run has noted that.
    pub(crate) fn speculation_failed(&self) -> bool {
        self.tried
    }

    /// Notes that an output is whole, before it gets its name.
    pub(crate) fn record_completed(&self, made: CompletedOutput) -> Result<()> {
        self.note(&Line::Completed(made.clone()))?;
        let mut state = self.lock();
        // The other lines may be lost with the machine: then a file is left behind, or a shard done again.
        state.file.sync_data().map_err(|e| Error::io(&self.path, e))?;
        state.made.push(made);
        Ok(())
    }

    fn note(&self, line: &Line) -> Result<()> {
        self.lock().file.write_all(to_text(line).as_bytes()).map_err(|e| Error::io(&self.path, e))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an earlier run has made of the same source under the name of `output`, if nothing was lost on the way and its
    /// bytes are still what they were; and where they are.
    pub(crate) fn find_completed(&self, output: &Path, source: u64) -> Option<(CompletedOutput, PathBuf)> {
        let made = self.earlier.get(&self.name_of(output)).filter(|made| made.source == source && !made.damaged)?;
        let part = self.folder.join(&made.part);
        let place = [output, &part].into_iter().find(|path| is_as_made(path, made))?;
        Some((made.clone(), place.to_owned()))
    }

    /// Whether an earlier run says that it has made this output.
    pub(crate) fn has_completed(&self, output: &Path) -> bool {
        self.earlier.contains_key(&self.name_of(output))
    }

    /// What an earlier run has made, and is still as long as it was made, and is not among `outputs`: its source was not
    /// named again. It may be all that there is left of it, and stays.
    pub(crate) fn unclaimed_outputs<'o>(&self, outputs: impl Iterator<Item = &'o Path>) -> Vec<PathBuf> {
        let ours: HashSet<_> = outputs.map(|path| self.name_of(path)).collect();
        let others = self.earlier.values().filter(|made| !ours.contains(&made.output));
        let others = others.map(|made| (made, self.folder.join(&made.output)));
        // They are only told of: to read them would be too much.
        let mut others: Vec<_> = others.filter(|(made, path)| is_as_long(path, made)).map(|(_, path)| path).collect();
        others.sort();
        others
    }

    /// The name of a file below the folder of the outputs.
    pub(crate) fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Ends the journal where nothing is left to be resumed: all is `done`, or nothing is. Whether it goes on.
    pub(crate) fn close(self, done: bool) -> bool {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let is_there =
            |made: &CompletedOutput| [&made.output, &made.part].iter().any(|name| self.folder.join(name).exists());
        if !done && self.earlier.values().chain(&state.made).any(is_there) {
            return true;
        }
        // What an earlier run has left and this one had no use for, as of a source that has changed since.
        self.earlier.values().for_each(|made| remove(&self.folder, &made.part));
        let _ = fs::remove_file(&self.path);
        false
    }
}

/// Begins a journal anew, with what of an earlier run is still good.
fn rewrite<'m>(file: &mut File, asked: &str, made: impl Iterator<Item = &'m CompletedOutput>) -> io::Result<()> {
    let lines = [Line::Conversion(asked.to_owned())].into_iter().chain(made.cloned().map(Line::Completed));
    let text: Vec<_> = lines.map(|line| to_text(&line)).collect();
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text.concat().as_bytes())?;
    file.sync_all()
}

/// What a source and the columns of its output are, in one number.
pub(crate) fn source_of(shard: &Shard, schema: &Schema) -> u64 {
    let modified = fs::metadata(shard.local_path()).and_then(|metadata| metadata.modified());
    let modified = modified.ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let mut hasher = Xxh3::new();
    (&shard.path, shard.size, modified).hash(&mut hasher);
    hash_schema(schema, &mut hasher);
    hasher.finish()
}

/// Adds a schema to a hash, whatever the order of its metadata.
pub(crate) fn hash_schema(schema: &Schema, hasher: &mut impl Hasher) {
    schema.fields().hash(hasher);
    let mut metadata: Vec<_> = schema.metadata().iter().collect();
    metadata.sort();
    metadata.hash(hasher);
}

/// What a journal says. Its last line may be cut short.
#[derive(Default)]
struct Read {
    asked: Option<String>,
    begun: Vec<String>,
    made: HashMap<String, CompletedOutput>,
    tried: bool,
}

impl Read {
    fn from(file: &mut File) -> io::Result<Self> {
        let mut read = Self::default();
        for line in BufReader::new(file).lines() {
            match serde_json::from_str(&line?) {
                Ok(Line::Conversion(asked)) => read.asked = Some(asked),
                Ok(Line::Begun(part)) => read.begun.push(part),
                Ok(Line::Tried) => read.tried = true,
                Ok(Line::Completed(made)) if is_below(&made.output) && is_below(&made.part) => {
                    read.made.insert(made.output.clone(), made);
                }
                Ok(Line::Completed(_)) => {}
                Err(_) => break,
            }
        }
        Ok(read)
    }
}

/// Whether a name leads nowhere but below the folder.
fn is_below(name: &str) -> bool {
    Path::new(name).components().all(|component| matches!(component, Component::Normal(_)))
}

fn to_text(line: &Line) -> String {
    serde_json::to_string(line).unwrap_or_default() + "\n"
}

/// Removes an unfinished file, and no other, whatever a journal says.
fn remove(folder: &Path, part: &str) {
    let name = Path::new(part).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if is_below(part) && name.starts_with(UNFINISHED) {
        let _ = fs::remove_file(folder.join(part));
    }
}

fn is_as_made(path: &Path, made: &CompletedOutput) -> bool {
    is_as_long(path, made) && hash_of(path).is_ok_and(|hash| hash == made.hash)
}

fn is_as_long(path: &Path, made: &CompletedOutput) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == made.bytes)
}

fn hash_of(path: &Path) -> io::Result<u64> {
    let mut hasher = Xxh3::new();
    checksums::hash(File::open(path)?, u64::MAX, &mut hasher)?;
    Ok(hasher.digest())
}
