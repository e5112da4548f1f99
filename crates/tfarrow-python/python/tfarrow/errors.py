"""Exceptions and warnings of the package.

Every exception is a :class:`TfarrowError`, and also one of Python's own classes, so that ``except OSError`` and
``except ValueError`` work as usual. The text is that of the program: file, record, byte, feature, what was found, what was
expected, and what to do.

An error inside of a stream that another package reads (pyarrow, Polars, DuckDB) is raised by that package as an exception of
its own, with the same text.
"""

__all__ = [
    "CorruptError",
    "DataError",
    "ExistsError",
    "IoError",
    "LimitError",
    "NotFoundError",
    "SqlError",
    "TfarrowError",
    "TfarrowWarning",
    "UsageError",
]


class TfarrowError(Exception):
    """An error with its place.

    Attributes:
        file: the name of the file, as the source named it; None if the error is not about a single file.
        record: the number of the record in the file, from 0.
        offset: the first byte of the record in the decompressed file, or of the damage in a compressed one.
        feature: the name of the feature.
        errno: the number of the operating system's error.

    >>> try:
    ...     tfarrow.head("testdata/corrupt/data.tfrecord")
    ... except tfarrow.errors.CorruptError as error:
    ...     print(error.file, error.record, error.offset)
    testdata/corrupt/data.tfrecord 1 72
    """

    file: str | None
    record: int | None
    offset: int | None
    feature: str | None
    errno: int | None

    def __init__(
        self,
        message: str = "",
        *,
        file: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        feature: str | None = None,
        errno: int | None = None,
    ):
        super().__init__(message)
        self.file = file
        self.record = record
        self.offset = offset
        self.feature = feature
        self.errno = errno

    def __reduce__(self):
        # OSError would leave out the number.
        place = {name: getattr(self, name) for name in ("file", "record", "offset", "feature", "errno")}
        return (_again, (type(self), str(self), place))


def _again(kind, message, place):
    """A pickled exception."""
    return kind(message, **place)


class CorruptError(TfarrowError, OSError):
    """Data is corrupt or truncated: a CRC does not match, or a file ends inside of a record."""


class DataError(TfarrowError, ValueError):
    """Data is intact and does not fit: a feature of another kind than its column or of several kinds, more values than the
    column holds, a file of another format, or, in writing, a value that no feature holds."""


class LimitError(TfarrowError, ValueError):
    """A limit on input that is not trusted was exceeded; ``limits={"name": N}`` raises it."""


class UsageError(TfarrowError, ValueError):
    """Arguments are invalid, or do not fit the data set."""


class NotFoundError(TfarrowError, FileNotFoundError):
    """There is no such file, or a folder or glob has no TFRecord files."""


class ExistsError(TfarrowError, FileExistsError):
    """An output exists; ``overwrite=True`` replaces it."""


class IoError(TfarrowError, OSError):
    """The operating system, an object store or a web server failed."""


class SqlError(TfarrowError, ValueError):
    """A query or a condition is invalid or fails while it runs, or names a column that does not exist."""


class TfarrowWarning(UserWarning):
    """Records or files were skipped, shards are missing, features have no column, or values were changed."""
