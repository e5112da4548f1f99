"""Data sets that tasks of a cluster read: what :mod:`tfarrow.ray` and :mod:`tfarrow.spark` share.

The driver lists the files and infers the schema, once. A task gets a :class:`Reader`, which is the schema and the options, and
some :class:`File`: both are pickled, and hold no handle. A task never infers a schema: a file without a feature has nulls in
its column, and a record that does not fit its column is an error that names it.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from . import _tfarrow
from ._extras import need
from ._scan import Scan, paths
from .errors import IoError, TfarrowError, TfarrowWarning, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from ._scan import Source

__all__ = ["DataSet", "File", "Reader", "absolute", "conformed", "is_url", "literal", "quoted"]

_READING = ("on_error", "partial_tail", "limits", "threads")


@dataclass(frozen=True)
class File:
    """A file of a data set.

    Attributes:
        path: an absolute path, or a URL.
        size: the number of bytes.
        name: the name in the data set, with the folders ``key=value`` that may be columns.
    """

    path: str
    size: int
    name: str = ""

    @property
    def weight(self) -> int:
        """About proportional to the work. An empty file has a weight, too."""
        return self.size + 1

    @property
    def estimated_bytes(self) -> int:
        """About the number of bytes of the columns in memory."""
        return self.size * (4 if self.path.endswith((".gz", ".gzip", ".zlib", ".zz", ".snappy")) else 1)

    def check(self) -> None:
        """Raises an error if the file was replaced after the driver listed it."""
        if is_url(self.path):
            return
        try:
            size = os.path.getsize(self.path)
        except OSError:
            # The call that reads the file says what is wrong with it.
            return
        if size != self.size:
            text = f"{self.path}: the file was changed after it was listed: expected {self.size:,} bytes, found {size:,}"
            raise IoError(text, file=self.path)


@dataclass(frozen=True)
class Reader:
    """How tasks read files.

    Attributes:
        schema: all columns, as the driver inferred them.
        options: options of :func:`tfarrow.scan`, with the type of the records.
        folders: the names of the columns that are folders.
        columns: the columns to read; None for all.
        where: conditions in SQL.
        is_declared: whether the user gave the schema, so that other features are left out on purpose.
    """

    schema: pa.Schema
    options: dict[str, Any]
    folders: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    where: tuple[str, ...] = ()
    is_declared: bool = False

    def select(self, columns: Sequence[str]) -> Reader:
        """Reads these columns only."""
        for name in columns:
            if name not in self.schema.names:
                shown = ", ".join(map(repr, self.schema.names))
                raise UsageError(f"there is no column {name!r}; the columns are {shown}")
        return replace(self, columns=tuple(columns))

    def filter(self, condition: str) -> Reader:
        """Reads the rows for which a condition is true as well."""
        return replace(self, where=(*self.where, condition))

    @property
    def output(self) -> pa.Schema:
        """The schema of the rows."""
        if self.columns is None:
            return self.schema
        pa = need("pyarrow", "pyarrow")
        return pa.schema([self.schema.field(name) for name in self.columns], self.schema.metadata)

    @property
    def counts_all(self) -> bool:
        """Whether there is a row for each record."""
        return not self.where and self.options.get("on_error") != "skip"

    def read(self, files: Sequence[File]) -> Iterator[pa.RecordBatch]:
        """The rows of files, in order, in batches with the schema :attr:`output`."""
        output = self.output
        for batch in self._batches(files, output.names):
            yield conformed(batch, output)

    def counts(self, files: Sequence[File]) -> Iterator[int]:
        """Numbers of rows whose sum is that of the files. Without conditions, records are counted by their frames."""
        if not self.counts_all:
            # Which records are skipped depends on the columns.
            names = self.output.names if self.options.get("on_error") == "skip" else []
            for batch in self._batches(files, names):
                yield batch.num_rows
            return
        for file in files:
            file.check()
            options = {name: self.options[name] for name in _READING if name in self.options}
            yield from (records for _, records in _tfarrow.count([file.path], options))

    def _batches(self, files: Sequence[File], names: list[str]) -> Iterator[pa.RecordBatch]:
        for file in files:
            file.check()
        if files:
            raw = self.source(files)
            scan = Scan([file.path for file in files], self.options, (*self.where, names), raw)
            yield from self._quiet(scan.batches())

    def source(self, files: Sequence[File]) -> _tfarrow.Source:
        """The files with the declared columns."""
        pa = need("pyarrow", "pyarrow")
        places = _place_columns(self.options)
        declared = pa.schema([field for field in self.schema if field.name not in places], self.schema.metadata)
        paths, names = [file.path for file in files], [file.name for file in files]
        return _tfarrow.Source(paths, self.options, declared, self.folders, names)

    def _quiet(self, batches) -> Iterator[pa.RecordBatch]:
        """The batches as pyarrow's, without warnings of features that are left out on purpose."""
        while True:
            with warnings.catch_warnings():
                if self.is_declared:
                    warnings.filterwarnings("ignore", r".*features? ha(s|ve) no column", TfarrowWarning)
                batch = next(batches, None)
            if batch is None:
                return
            yield batch.to_arrow()


@dataclass
class DataSet:
    """A data set as the driver knows it."""

    reader: Reader
    files: list[File] = field(repr=False)

    @classmethod
    def of(
        cls,
        source: Source | Scan,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        declared: pa.Schema | None = None,
        options: Mapping[str, Any],
    ) -> DataSet:
        """Lists the files of a source, and infers the schema unless it is declared."""
        steps: tuple = ()
        if isinstance(source, Scan):
            if options:
                raise UsageError("a scan has its options already: give them to tfarrow.scan")
            source, options, steps = source._source, source._options, source._steps
            if any(isinstance(step, int) for step in steps):
                raise UsageError("a scan with limit() cannot be divided among tasks")
        source = [absolute(name) for name in paths(source)]
        options = {"bytes_type": "binary", "threads": 1, **{name: value for name, value in options.items() if value is not None}}
        files = list_files(source)
        if declared is None:
            scan = Scan(source, _inferring(options))
            if not scan._raw.has_records():
                raise UsageError(f"{source[0]}: expected TFRecord files; the engine itself reads files of other formats")
            if (scan.schema.metadata or {}).get(b"tfarrow.record_type") == b"message" and "message" not in options:
                # Tasks have no definition of TensorBoard's events.
                options["record_type"] = "raw"
                scan = Scan(source, _inferring(options))
            schema = plain(scan.schema, options)
            places = _place_columns(options)
            folders = [field.name for field in schema if not _has_role(field) and field.name not in places]
        else:
            schema = _with_record_type(declared, source, options)
            keys = set().union(*map(_folders, files))
            folders = [field.name for field in schema if field.name in keys]
        options["record_type"] = (schema.metadata or {}).get(b"tfarrow.record_type", b"example").decode()
        reader = Reader(schema, options, tuple(folders), is_declared=declared is not None)
        if declared is not None and files:
            # The types of columns are checked before tasks start.
            reader.source(files[:1]).columns([])
        for step in steps:
            reader = reader.filter(step) if isinstance(step, str) else reader.select(step)
        if where is not None:
            reader = reader.filter(where)
        return cls(reader if columns is None else reader.select(columns), files)

    def groups(self, count: int) -> list[list[File]]:
        """Divides the files, in their order, into at most this number of groups of about the same number of bytes, as ``--part``
        of the program does."""
        ranges = _tfarrow.divide([file.size for file in self.files], max(count, 1))
        return [self.files[start:end] for start, end in ranges]


def list_files(source: list[str]) -> list[File]:
    """The files of a source, in order."""
    return [File(path, size, name) for path, name, size in _tfarrow.Source(source, {}).files()]


def is_url(name: str) -> bool:
    """Whether the name of a file is a URL."""
    return "://" in name


def absolute(name: str) -> str:
    """A name that means the same in the working folder of a task."""
    if name == "-":
        raise UsageError("standard input cannot be divided among tasks")
    if is_url(name):
        return name
    full = os.path.abspath(os.path.expanduser(name))
    return full + "/" if name.endswith("/") else full


def _inferring(options: dict[str, Any]) -> dict[str, Any]:
    """The options of the driver, which has all cores."""
    return {name: value for name, value in options.items() if name != "threads"}


def _place_columns(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns with the place of a record that the options ask for."""
    wanted = options.get("metadata_columns") or ()
    names = [name.strip() for name in wanted.split(",")] if isinstance(wanted, str) else list(wanted)
    if names == ["none"]:
        return ()
    return ("_record", "_offset", "_raw", "_file") if names == ["all"] else tuple(filter(None, names))


def plain(schema: pa.Schema, options: Mapping[str, Any]) -> pa.Schema:
    """A schema without views, unless these are asked for: folders and names of files are views always."""
    pa = need("pyarrow", "pyarrow")
    if options.get("bytes_type") == "binary_view":
        return schema
    for index, field_ in enumerate(schema):
        if field_.type == pa.string_view():
            schema = schema.set(index, field_.with_type(pa.string()))
    return schema


def _with_record_type(declared: pa.Schema, source: list[str], options: dict[str, Any]) -> pa.Schema:
    """A declared schema with the type of the records, so that no task detects it."""
    pa = need("pyarrow", "pyarrow")
    given = options.get("record_type")
    if given in (None, "auto"):
        is_nested = any(pa.types.is_list(f.type) and pa.types.is_list(f.type.value_type) for f in declared)
        given = "sequence-example" if is_nested else "example"
        # Errors in the data, and features of several kinds, matter only if they are read.
        with contextlib.suppress(TfarrowError), warnings.catch_warnings():
            warnings.simplefilter("ignore", TfarrowWarning)
            found = (Scan(source, _inferring(options)).schema.metadata or {}).get(b"tfarrow.record_type", b"example").decode()
            is_record = [field.name for field in declared] == ["record"]
            given = found if found != "raw" or is_record else given
    return declared.with_metadata({"tfarrow.record_type": given})


def _has_role(field) -> bool:
    """Whether a column of an inferred schema is made of records, and not of the names of files."""
    return b"tfarrow.role" in (field.metadata or {})


def _folders(file: File) -> set[str]:
    """The keys of the folders ``key=value`` of a file."""
    return {unquote(folder.partition("=")[0]) for folder in file.name.split("/")[:-1] if "=" in folder}


def quoted(name: str) -> str:
    """The name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: int | str | bytes | None) -> str:
    """A value in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a batch, in the types of a schema with the same names."""
    pa = need("pyarrow", "pyarrow")
    columns = []
    for index, field in enumerate(schema):
        found = batch.column(index)
        columns.append(found if found.type == field.type and _items(found.type) == _items(field.type) else found.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _items(type_) -> list[str]:
    """The names of the items of list types, which equal types may differ in."""
    pa = need("pyarrow", "pyarrow")
    return [type_.value_field.name, *_items(type_.value_type)] if pa.types.is_list(type_) else []
