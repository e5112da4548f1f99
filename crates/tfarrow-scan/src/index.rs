//! Indexes of the shards of a data set: one pass over all records, on all cores.

use std::{
    mem,
    ops::ControlFlow,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tfarrow_codec::{OnError, Records};
use tfarrow_dataset::{
    Compression, Error, ErrorKind, OnProgress, OutputFile, PartialTail, ReadOptions, Result,
    Segment, Shard, ShardReader, SharedReader, Taken,
    internals::{CollectedPoints, Lock, Payload, ShardIdentity, on_threads, read_heads},
};
use tfarrow_index::{
    IndexBuilder, IndexFault, IndexForm, IndexPlace, IndexWorker, UnusableIndex, write_index,
    write_text_index,
};

use crate::crew::{Crew, Member, Task};

/// Number of bytes of a chunk, which becomes a block of the index. SQL scans read as many at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Number of bytes of a chunk of a gzip or zlib file. Blocks of several chunks begin at the first one
/// after an access point, and the bytes between both are inflated in vain.
const COMPRESSED_CHUNK_BYTES: usize = 128 << 10;

/// Options of indexing.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// Where the indexes are written.
    pub place: IndexPlace,
    /// The form of the indexes. By default that of tfarrow.
    pub form: IndexForm,
    /// Whether an index of tfarrow's form that is that of its shard is kept. By default it is made
    /// again.
    pub update: bool,
    /// Whether text indexes, and files of other programs that have the name of an index, are
    /// replaced. By default they are an error.
    pub overwrite: bool,
    /// Number of threads. By default one.
    pub threads: usize,
    /// Options for reading the shards. No corrupt record is skipped.
    pub read: ReadOptions,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            place: IndexPlace::Beside,
            form: IndexForm::Tfindex,
            update: false,
            overwrite: false,
            threads: 1,
            read: ReadOptions::default(),
        }
    }
}

/// What became of the index of a shard.
#[derive(Debug)]
pub enum Indexed {
    /// It was written.
    Written {
        /// Its path.
        path: PathBuf,
        /// Its number of bytes.
        bytes: u64,
        /// Number of records of the shard.
        records: u64,
    },
    /// It is that of the shard, and was kept.
    Kept {
        /// Its path.
        path: PathBuf,
        /// Number of records of the shard.
        records: u64,
    },
    /// There is none: the shard is damaged, or its index cannot be written.
    Failed(Error),
}

/// Writes the indexes of TFRecord files. A damaged file gets none, and does not end the operation.
///
/// # Errors
/// [A failure of the machine](Error::is_machine) to read a shard, and [`ErrorKind::Stopped`] if
/// `progress` stops the operation.
pub fn index(
    shards: &[Shard],
    options: &IndexOptions,
    progress: &OnProgress<'_>,
) -> Result<Vec<Indexed>> {
    let begin = |number: usize| -> Result<_> {
        let shard = shards.get(number);
        Ok(shard.map(|shard| Arc::new(ShardIndexing::new(shard, options))))
    };
    let indexing = Indexing {
        crew: Crew::new(&begin),
        progress,
        stopped: AtomicBool::new(false),
        results: Lock::new(shards.iter().map(|_| None).collect()),
    };
    let ended = on_threads(options.threads.max(1), || indexing.run());
    for result in ended {
        result?;
    }
    let results = indexing.results.into_inner().into_iter();
    let missing = || Indexed::Failed(Error::general(ErrorKind::Stopped));
    Ok(results.map(|it| it.unwrap_or_else(missing)).collect())
}

/// The state that the threads share.
struct Indexing<'a> {
    crew: Crew<'a, ShardIndexing<'a>, Error>,
    progress: &'a OnProgress<'a>,
    /// Whether an error has ended the operation.
    stopped: AtomicBool,
    results: Lock<Vec<Option<Indexed>>>,
}

/// A shard of which an index is made.
struct ShardIndexing<'a> {
    shard: &'a Shard,
    options: &'a IndexOptions,
    state: Lock<IndexingState>,
}

/// The state of a shard.
enum IndexingState {
    Unopened {
        /// Whether access points are collected if it is a gzip or zlib file.
        collects: bool,
    },
    Open(Box<OpenIndexing>),
    /// Its index was written or kept, or cannot be written.
    Ended,
}

struct OpenIndexing {
    reader: Arc<SharedReader>,
    identity: ShardIdentity,
    target: PathBuf,
    form: IndexForm,
    /// Whether a file of the target's name is replaced.
    replaces: bool,
    builder: IndexBuilder,
    /// The access points of a gzip or zlib file, if they are collected.
    points: Option<CollectedPoints>,
    /// Number of threads that read the shard.
    threads: usize,
    /// Number of chunks that threads have taken.
    chunks: u64,
    /// The first error, by its record.
    error: Option<Error>,
}

impl Task for ShardIndexing<'_> {
    fn bytes(&self) -> u64 {
        self.shard.size
    }
}

impl Indexing<'_> {
    /// Indexes shards until there are none left.
    ///
    /// # Errors
    /// Those that end the operation.
    fn run(&self) -> Result<()> {
        let mut member = Member::default();
        while !self.stopped.load(Ordering::Relaxed)
            && let Some((number, task)) = self.crew.next(&mut member)?
        {
            let result = task.join(self);
            self.crew.end(number, &task);
            match result {
                Ok(None) => {}
                Ok(Some(indexed)) => {
                    if let Some(place) = self.results.lock().get_mut(number) {
                        *place = Some(indexed);
                    }
                }
                Err(error) => {
                    self.stopped.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

impl<'a> ShardIndexing<'a> {
    fn new(shard: &'a Shard, options: &'a IndexOptions) -> Self {
        Self {
            shard,
            options,
            state: Lock::new(IndexingState::Unopened { collects: true }),
        }
    }

    /// Reads the shard together with other threads. The last of them writes the index and returns
    /// the result; the others return `None`.
    fn join(&self, indexing: &Indexing<'_>) -> Result<Option<Indexed>> {
        loop {
            match self.join_once(indexing)? {
                Joined::Again => {}
                Joined::Left => return Ok(None),
                Joined::Indexed(indexed) => return Ok(Some(indexed)),
            }
        }
    }

    fn join_once(&self, indexing: &Indexing<'_>) -> Result<Joined> {
        let reader = {
            let mut state = self.state.lock();
            if let IndexingState::Unopened { collects } = *state {
                *state = IndexingState::Ended;
                match self.open(collects) {
                    Ok(Opened::ToRead(open)) => *state = IndexingState::Open(open),
                    Ok(Opened::Kept(kept)) => return Ok(Joined::Indexed(kept)),
                    Err(error) if error.is_machine() => return Err(error),
                    Err(error) => return Ok(Joined::Indexed(Indexed::Failed(error))),
                }
            }
            let IndexingState::Open(open) = &mut *state else {
                return Ok(Joined::Left);
            };
            open.threads += 1;
            Arc::clone(&open.reader)
        };
        let mut worker = IndexWorker::new(self.options.read.limits);
        let read = self.read(&reader, &mut worker, indexing);
        self.leave(read, &worker)
    }

    /// Opens the shard, unless its index can be kept.
    fn open(&self, collects: bool) -> Result<Opened> {
        let Self { shard, options, .. } = self;
        let Some(target) = options.place.path_of(shard, options.form) else {
            return Err(Error::new(&shard.path, ErrorKind::Usage(NO_PLACE)));
        };
        // A text index does not tell of which version of the shard it is.
        let mut replaces = options.overwrite;
        if options.form == IndexForm::Tfindex {
            match options.place.open(shard) {
                Ok(Some(index)) if options.update => {
                    return Ok(Opened::Kept(Indexed::Kept {
                        path: target,
                        records: index.records(),
                    }));
                }
                Err(UnusableIndex {
                    fault: IndexFault::Foreign,
                    ..
                }) => {}
                Ok(_) | Err(_) => replaces = true,
            }
        }
        if !replaces && matches!(target.try_exists(), Ok(true)) {
            return Err(Error::new(target, ErrorKind::Exists));
        }
        let mut shard = Shard::clone(shard).without_folder_columns();
        read_heads(std::slice::from_mut(&mut shard))?;
        if shard.payload() == Payload::Events {
            return Err(Error::new(&shard.path, ErrorKind::Usage(EVENTS)));
        }
        let chunk_bytes = match shard.compression() {
            Some(Compression::Gzip | Compression::Zlib) if collects => COMPRESSED_CHUNK_BYTES,
            _ => CHUNK_BYTES,
        };
        let read = ReadOptions {
            chunk_bytes,
            on_error: OnError::Fail,
            partial_tail: PartialTail::Fail,
            ..options.read
        };
        // Before the shard is read: a change while it is read makes the index unusable.
        let identity = shard.identity()?;
        if options.form == IndexForm::Dali && shard.compression() != Some(Compression::None) {
            return Err(Error::new(&shard.path, ErrorKind::Usage(COMPRESSED)));
        }
        let collecting = match collects {
            true => ShardReader::open_collecting(&shard, &read)?,
            false => None,
        };
        let (reader, points) = match collecting {
            Some((reader, points)) => (SharedReader::from(reader), Some(points)),
            None => (SharedReader::open(&shard, &read)?, None),
        };
        Ok(Opened::ToRead(Box::new(OpenIndexing {
            reader: Arc::new(reader),
            identity,
            target,
            form: options.form,
            replaces,
            builder: IndexBuilder::new(shard.size, options.read.limits)
                .with_points(points.is_some()),
            points,
            threads: 0,
            chunks: 0,
            error: None,
        })))
    }

    /// Observes chunks until the end of the shard, or an error of any thread.
    fn read(
        &self,
        reader: &SharedReader,
        worker: &mut IndexWorker,
        indexing: &Indexing<'_>,
    ) -> Result<()> {
        let mut memory = None;
        loop {
            if indexing.stopped.load(Ordering::Relaxed) {
                return Err(Error::general(ErrorKind::Stopped));
            }
            let next = reader.next(mem::take(&mut memory), |taken| self.enter(taken));
            let Some((number, records, bytes)) = next.transpose()?.flatten() else {
                return Ok(());
            };
            let wrap = |error| Error::codec(&self.shard.path, error);
            let chunk = worker.observe(&records).map_err(wrap)?;
            let count = records.len() as u64;
            memory = records.reclaim();
            if let IndexingState::Open(open) = &mut *self.state.lock() {
                open.builder.add(number, chunk, worker);
            }
            if (indexing.progress)(bytes, count) == ControlFlow::Break(()) {
                return Err(Error::general(ErrorKind::Stopped));
            }
        }
    }

    /// Numbers the next chunk. `None` after an error of another thread.
    fn enter(&self, taken: Result<Taken>) -> Result<Option<(u64, Records, u64)>> {
        let mut state = self.state.lock();
        let IndexingState::Open(open) = &mut *state else {
            return Ok(None);
        };
        if open.error.is_some() {
            return Ok(None);
        }
        let Taken { segment, bytes } = taken?;
        let number = open.chunks;
        open.chunks += 1;
        match segment {
            Segment::Records(records) => Ok(Some((number, records, bytes))),
            // No byte is skipped.
            Segment::Lost(_) => Ok(None),
        }
    }

    /// Ends the work of a thread. The last one writes the index.
    fn leave(&self, read: Result<()>, worker: &IndexWorker) -> Result<Joined> {
        let mut state = self.state.lock();
        let IndexingState::Open(open) = &mut *state else {
            return Ok(Joined::Left);
        };
        open.threads -= 1;
        if let Err(error) = read.and_then(|()| open.builder.merge(worker)) {
            let is_first = open
                .error
                .as_ref()
                .is_none_or(|first| error.record() < first.record());
            if is_first {
                open.error = Some(error);
            }
        }
        if open.threads > 0 {
            return Ok(Joined::Left);
        }
        let IndexingState::Open(open) = mem::replace(&mut *state, IndexingState::Ended) else {
            return Ok(Joined::Left);
        };
        match open.error {
            None => {
                drop(state);
                open.write().map(Joined::Indexed)
            }
            Some(error) if ends_all(&error) => Err(error),
            // The reader that collects access points is stricter, and its errors are other ones.
            Some(_) if open.points.is_some() => {
                *state = IndexingState::Unopened { collects: false };
                Ok(Joined::Again)
            }
            Some(error) => Ok(Joined::Indexed(Indexed::Failed(error))),
        }
    }
}

/// Whether an error of a shard ends the operation.
fn ends_all(error: &Error) -> bool {
    error.is_machine() || matches!(error.kind(), ErrorKind::Stopped)
}

const NO_PLACE: &str = "only a file, and an object without a query in its URL, can have an index";

const EVENTS: &str = "files of TensorBoard have no index, because they may still be written";
const COMPRESSED: &str = "a compressed file has no text index, because its readers read plain files only: decompress it first";

/// What a thread has to do after it has read a part of a shard.
enum Joined {
    /// Other threads still read.
    Left,
    /// The shard has to be read again.
    Again,
    Indexed(Indexed),
}

/// A shard that was opened.
enum Opened {
    ToRead(Box<OpenIndexing>),
    Kept(Indexed),
}

impl OpenIndexing {
    /// Writes the index. It gets its name when it is complete.
    fn write(self: Box<Self>) -> Result<Indexed> {
        let Self {
            identity,
            target,
            builder,
            points,
            form,
            replaces,
            ..
        } = *self;
        let points = points.map_or_else(Vec::new, |points| points.take());
        let records = builder.records();
        let output = OutputFile::create(&target, replaces)?;
        let written = match form {
            IndexForm::Tfindex => write_index(builder, points, identity, output),
            IndexForm::Dali => write_text_index(builder, output),
        };
        let output = written
            .map_err(|error| Error::io(&target, error))?
            .close()?;
        let bytes = output.size();
        output.persist()?;
        Ok(Indexed::Written {
            path: target,
            bytes,
            records,
        })
    }
}
