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
    """

    file: str | None
    record: int | None
    offset: int | None
    feature: str | None

    def __init__(self, message="", *, file=None, record=None, offset=None, feature=None, errno=None):
        super().__init__(message)
        self.file = file
        self.record = record
        self.offset = offset
        self.feature = feature
        self.errno = errno

    def __reduce__(self):
        # OSError would lose the number of the error.
        return (_error, (type(self), self.args, {**self.__dict__, "errno": self.errno}))


def _error(kind, arguments, attributes):
    error = kind(*arguments)
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


class CorruptError(TfarrowError, OSError):
    """Data is corrupt or truncated: a CRC does not match, or a file ends inside of a record."""


class DataError(TfarrowError, ValueError):
    """A record is intact and does not fit: another kind of feature, more values than the column holds, no TFRecord."""


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
    """A query is invalid, or fails while it runs."""


class TfarrowWarning(UserWarning):
    """Records were skipped, or features have no column."""
