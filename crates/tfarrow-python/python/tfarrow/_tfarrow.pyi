"""The binary module of the package. It is not public: names and signatures change without notice.

Functions release the GIL while they read, write and wait. They raise the exceptions of ``tfarrow.errors``, and
``KeyboardInterrupt`` on Ctrl-C. ``options`` are keyword arguments of the public functions, by name; None is the default.
``progress`` is called on the calling thread with the bytes done and the bytes in all, which are 0 if unknown.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, final

import numpy as np

__all__ = [
    "Memory",
    "RawBatch",
    "RawDataset",
    "RawLoader",
    "RawReport",
    "RawSchema",
    "RawShare",
    "RawStream",
    "RawTable",
    "Source",
    "__version__",
    "convert",
    "count",
    "diff",
    "divide",
    "merge",
    "plan_conversion",
    "read_part",
    "repair",
    "report",
    "run_program",
    "runs_at_once",
    "schema",
    "schema_pbtxt",
    "sql",
    "stats",
    "validate",
    "verify",
    "write",
]

__version__: str

_Path: TypeAlias = str | PathLike[str]
_Options: TypeAlias = dict[str, Any]
_Progress: TypeAlias = Callable[[int, int], object] | None
# The names of the columns to select, a number of first rows, or a condition in SQL.
_Step: TypeAlias = list[str] | int | str

# The parts of a column. The first item is the kind:
#   "numbers": the values, valid
#   "bytes":   whether the values are UTF-8, all bytes, offsets, valid
#   "list":    offsets, valid, the parts of the items
#   "fixed":   the number of rows, the shape of a row, valid, the parts of the items
# Offsets are int64, begin at 0, and are one more than the rows. `valid` has a bool for each row; it is None if no row is null.
_Numbers: TypeAlias = tuple[Literal["numbers"], np.ndarray, np.ndarray | None]
_Bytes: TypeAlias = tuple[Literal["bytes"], bool, np.ndarray, np.ndarray, np.ndarray | None]
_List: TypeAlias = tuple[Literal["list"], np.ndarray, np.ndarray | None, "_Parts"]
_Fixed: TypeAlias = tuple[Literal["fixed"], int, tuple[int, ...], np.ndarray | None, "_Parts"]
_Parts: TypeAlias = _Numbers | _Bytes | _List | _Fixed

@final
class Memory:
    """Bytes of an Arrow array, which numpy borrows through the buffer protocol without a copy."""

    if sys.version_info >= (3, 12):
        # Earlier versions have the buffer protocol without this name.
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class RawBatch:
    """A batch of rows. It is read as memory of numpy or as Arrow, not as both."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""

    @property
    def names(self) -> list[str]:
        """The names of the columns."""

    def to_ipc(self) -> np.ndarray:
        """The batch as a stream of Arrow IPC."""

    @staticmethod
    def of_ipc(stream: memoryview) -> RawBatch:
        """The batch of a stream of Arrow IPC, which it refers to."""

    def parts(self, column: int) -> _Parts:
        """The parts of a column, by its place in ``names``. TypeError for a type without a form in numpy."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class RawStream:
    """The rows of a query that runs. They are read once: in batches, or through Arrow's stream."""

    def next_batch(self, rows: int | None = None, complete: bool = False) -> RawBatch | None:
        """The next batch, of exactly ``rows`` rows or fewer at the end. None at the end, after which warnings are issued; with
        ``complete``, features without a column are a DataError there."""

    def read_all(self) -> RawTable:
        """All rows, after which warnings are issued."""

    def rest(self) -> RawBatch:
        """All rows as one batch, after which warnings are issued."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class RawDataset:
    """The rows of a scan by their numbers."""

    def __len__(self) -> int: ...
    def take(self, numbers: Sequence[int]) -> RawBatch:
        """The rows with these numbers, in this order."""

    def row(self, number: int) -> dict[str, Any]:
        """The row with this number, as a dict. IndexError if there is none."""

    def mixed(self, sources: list[tuple[int, float]]) -> RawDataset:
        """The same rows, which loaders mix. Each source has a number of files and a weight."""

    def turns(self) -> list[int]:
        """How many of 1,000 rows are of each source; empty if loaders mix none."""

    def epoch_records(self) -> int:
        """The number of rows of an epoch of a loader."""

    def fingerprint(self) -> tuple[int, list[int]]:
        """The number of records of all files, and a hash of each file."""

    def check(self, records: int, files: Sequence[int]) -> None:
        """Checks that the files are those of a fingerprint. UsageError otherwise."""

    def unknown_features(self) -> list[str]:
        """The features of the records that were decoded so far that have no column."""

    def batch(self, shuffle: str, seed: int, epoch: int, share: RawShare, number: int) -> RawBatch:
        """The batch of a share with this number, which is read by itself."""

    def load(self, shuffle: str, seed: int, epoch: int, share: RawShare, first: int) -> RawLoader:
        """Starts to load the batches of a share from number ``first`` on."""

@final
class RawShare:
    """The batches of a worker of a rank."""

    def __new__(
        cls, records: int, start: int, batch_size: int, ranks: int, workers: int, drop_last: bool, rank: int, worker: int
    ) -> RawShare: ...
    @property
    def batches(self) -> int:
        """The number of batches of the worker."""

    @property
    def batches_of_rank(self) -> int:
        """The number of batches of each rank."""

    def position_after(self, batches: int) -> int:
        """The first position that is not read after this many batches of each rank."""

@final
class RawLoader:
    """Batches that threads load."""

    def next_batch(self) -> RawBatch | None:
        """The next batch. None at the end, after which a warning tells of skipped records."""

@final
class RawTable:
    """Rows in memory, which other packages read without a copy."""

    def stream(self, batch_rows: int | None = None) -> RawStream:
        """The rows, in batches of at most ``batch_rows`` rows."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Source:
    """A data set and the options of its reading. Files are listed and the schema is inferred at the first use."""

    def __new__(
        cls,
        sources: Sequence[_Path],
        options: _Options,
        declared: object | None = None,
        folders: Sequence[str] = ...,
        names: Sequence[_Path] = ...,
    ) -> Source: ...
    def files(self) -> list[tuple[str, str, int]]:
        """The paths of the files, in order, with their names in the data set and their sizes in bytes. Reads no records."""

    def schema(self, steps: Sequence[_Step]) -> object:
        """The schema of the rows after these steps, as an ``arrow_schema`` capsule."""

    def columns(self, steps: Sequence[_Step]) -> list[str]:
        """The names of the columns after these steps."""

    def stream(self, steps: Sequence[_Step], batch_rows: int | None = None) -> RawStream:
        """Starts to read the rows after these steps, in batches of at most ``batch_rows`` rows."""

    def counts(self) -> list[int]:
        """The number of records of each file, counted by their frames."""

    def dataset(self, steps: list[_Step], images: list[tuple[str, tuple[int, int]]]) -> RawDataset:
        """Opens the rows after these steps for random access, of TFRecord files. ``images`` are columns whose pixels are decoded,
        with their heights and widths."""

    def has_records(self) -> bool:
        """Whether the rows are records of TFRecord files, and not rows of files of another format."""

    def fixed_lengths(self) -> list[tuple[str, int]] | None:
        """The number of values of each row, for each column of numbers where all sampled records have the same number. None for
        files of another format than TFRecord."""

@final
class RawReport:
    """The result of an operation."""

    @property
    def json(self) -> str:
        """The result as JSON."""

    def text(self, width: int | None = None) -> str:
        """The text of the program, with tables of at most ``width`` characters."""

@final
class RawSchema:
    """The inferred schema of a data set."""

    @property
    def sources(self) -> list[str]:
        """The sources."""

    @property
    def num_records(self) -> int:
        """The number of records that were read."""

    def text(
        self,
        format: Literal["table", "json", "arrow", "python", "rust", "sql", "features-json"] = "table",
        width: int | None = None,
    ) -> str:
        """The schema in a format of the program."""

    def __arrow_c_schema__(self) -> object: ...

def sql(query: str, tables: dict[str, Any], options: _Options, batch_rows: int | None = None) -> RawStream:
    """Runs statements, and returns the rows of the last one. ``tables`` have ``_tfarrow_batches`` or ``__arrow_c_stream__``."""

def runs_at_once(query: str) -> bool:
    """Whether statements run when they are given, because one of them writes or the last one has no rows."""

def write(data: object, target: str, options: _Options) -> int:
    """Writes the rows of an object with ``_tfarrow_batches`` or ``__arrow_c_stream__``, and returns the number of records."""

def schema(sources: Sequence[_Path], options: _Options, progress: _Progress = None) -> RawSchema:
    """Infers the schema of a data set."""

def count(sources: Sequence[_Path], options: _Options, progress: _Progress = None) -> list[tuple[str, int]]:
    """The path of each file and its number of records."""

def stats(
    sources: Sequence[_Path], options: _Options, by: str | None = None, progress: _Progress = None
) -> tuple[RawReport, bytes]:
    """Statistics, and the message ``DatasetFeatureStatisticsList``."""

def schema_pbtxt(sources: Sequence[_Path], options: _Options, progress: _Progress = None) -> str:
    """The schema that TensorFlow Data Validation would infer, in text format."""

def validate(
    sources: Sequence[_Path], against: Mapping[str, Any], options: _Options, progress: _Progress = None
) -> tuple[RawReport, bool, str]:
    """The anomalies, whether there are any, and a schema that accepts the data, in text format."""

def report(
    sources: Sequence[_Path],
    against: Mapping[str, Any],
    options: _Options,
    title: str | None = None,
    examples: int = 24,
    progress: _Progress = None,
) -> str:
    """The report page as HTML."""

def verify(
    sources: Sequence[_Path], options: _Options, max_faults: int = 10_000, progress: _Progress = None
) -> tuple[RawReport, bool]:
    """The faults, and whether there are none."""

def convert(sources: Sequence[_Path], dest: _Path, options: _Options, progress: _Progress = None) -> RawReport:
    """Converts a data set."""

def plan_conversion(sources: Sequence[_Path], dest: _Path, options: _Options, progress: _Progress = None) -> RawReport:
    """Plans a conversion, and writes nothing."""

def repair(sources: Sequence[_Path], dest: _Path, options: _Options, progress: _Progress = None) -> RawReport:
    """Copies the valid records of TFRecord files."""

def diff(
    left: Sequence[_Path],
    right: Sequence[_Path],
    options: _Options,
    rules: _Options,
    max_differences: int = 10,
    progress: _Progress = None,
) -> tuple[RawReport, bool]:
    """The differences of two data sets, and whether there are none."""

def read_part(
    command: str,
    sources: list[str],
    part: tuple[int, int],
    options: dict[str, Any],
    by: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> bytes:
    """The result of a part of a data set, for ``stats`` or for ``schema``."""

def merge(parts: list[bytes]) -> tuple[RawSchema | None, tuple[RawReport, bytes] | None]:
    """Merges the results of all parts: a schema, or statistics with their message."""

def divide(sizes: list[int], count: int) -> list[tuple[int, int]]:
    """The first index, and the index after the last, of each range of items of these sizes."""

def run_program(args: Sequence[str]) -> int:
    """Runs a command line, whose first word is the name of the program, and returns its exit status."""
