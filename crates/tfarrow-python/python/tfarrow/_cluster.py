"""Data sets that tasks of a cluster read and write: what :mod:`tfarrow.ray` and :mod:`tfarrow.spark` share.

The driver lists the files and infers the schema, once. A task gets a :class:`Reader`, which is the schema and the options, and
some :class:`File`: both are pickled, and hold no handle. A task never infers a schema: a file without a feature has nulls in
its column, and a record that does not fit its column is an error that names it.

Tasks write files to a folder of their own inside of the target, with a name for each attempt. The driver moves the files of
the attempts that count to the target when all tasks have ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from . import _tfarrow
from ._extras import need
from ._scan import Rows, Scan, paths, sql
from ._write import write
from .errors import DataError, ExistsError, IoError, NotFoundError, TfarrowError, TfarrowWarning, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from ._scan import Source

__all__ = ["MODES", "DataSet", "File", "Output", "Part", "Reader", "quoted", "literal"]

_READING = ("on_error", "partial_tail", "limits", "threads")


@dataclass(frozen=True)
class File:
    """A file of a data set.

    Attributes:
        path: an absolute path, or a URL.
        size: the number of bytes.
        folders: the values of the folders ``key=value``, which are columns.
    """

    path: str
    size: int
    folders: tuple[tuple[str, str | None], ...] = ()

    @property
    def weight(self) -> int:
        """About proportional to the work. An empty file has a weight, too."""
        return self.size + 1

    @property
    def estimated_bytes(self) -> int:
        """About the number of bytes of the columns in memory."""
        return self.size * (4 if self.path.endswith((".gz", ".zlib", ".z")) else 1)

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

    def _batches(self, files, names) -> Iterator[pa.RecordBatch]:
        for file in files:
            file.check()
        # Files with the same folders are one table.
        while files:
            folders = files[0].folders
            count = next((i for i, file in enumerate(files) if file.folders != folders), len(files))
            table, files = files[:count], files[count:]
            for rows in self._rows([file.path for file in table], dict(folders), names):
                yield from self._quiet(rows.batches())

    def _rows(self, files: list[str], folders: dict[str, str | None], names: list[str]) -> Iterator[Rows]:
        places = _place_columns(self.options)
        features = [field for field in self.schema if field.name not in self.folders and field.name not in places]
        if not self.where:
            # Conditions may use any column.
            renamed = [field for field in features if _is_renamed(field) and field.name in names]
        else:
            renamed = [field for field in features if _is_renamed(field)]
        if not folders:
            pa = need("pyarrow", "pyarrow")
            declared = pa.schema(features, self.schema.metadata)
            raw = _tfarrow.Source(files, self.options, declared)
            yield Scan(files, self.options, (*self.where, list(names)), raw)
        elif renamed:
            # SQL has no way to say which feature such a column is.
            for file in files:
                yield from self._inferred(file, folders, names)
        else:
            declared = ", ".join(f"{quoted(field.name)} {_sql_type(field)}" for field in features if not _is_renamed(field))
            table = f"CREATE EXTERNAL TABLE data {f'({declared})' if declared else ''} STORED AS TFRECORD LOCATION "
            table += f"({', '.join(map(literal, files))}); "
            yield sql(table + self._query(folders, names), options=self.options)

    def _query(self, folders: dict[str, str | None], names: list[str]) -> str:
        data = "data"
        if folders:
            constants = [f"arrow_cast({literal(value)}, {literal(_arrow_name(self.schema.field(name)))}) AS {quoted(name)}"
                         for name, value in folders.items()]
            data = f"(SELECT *, {', '.join(constants)} FROM data)"
        where = f" WHERE {' AND '.join(f'({condition})' for condition in self.where)}" if self.where else ""
        return f"SELECT {', '.join(map(quoted, names)) or '1 AS one'} FROM {data}{where}"

    def _inferred(self, file: str, folders: dict[str, str | None], names: list[str]) -> Iterator[Rows]:
        """The rows of a file whose columns are found by the names and kinds of features."""
        pa = need("pyarrow", "pyarrow")
        scan = Scan(file, {**self.options, "layout": "list", "sample": "all"})
        found = {_feature(field): field.name for field in pa.schema(scan)}
        fields = [field for field in self.schema if field.name not in self.folders]

        def batches():
            for batch in scan.batches():
                batch = batch.to_arrow()
                columns = []
                for field in fields:
                    name = found.get(_feature(field))
                    if name is None:
                        columns.append(pa.nulls(batch.num_rows, field.type))
                    else:
                        columns.append(_unlisted(file, field, batch.column(name)))
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        schema = pa.schema(fields, self.schema.metadata)
        yield sql(self._query(folders, names), data=pa.RecordBatchReader.from_batches(schema, batches()))

    def _quiet(self, batches) -> Iterator[pa.RecordBatch]:
        """The batches as pyarrow's, without warnings of features that are left out on purpose."""
        while True:
            with warnings.catch_warnings():
                if self.is_declared or any(map(_is_renamed, self.schema)):
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
        source = [_absolute(name) for name in paths(source)]
        options = {"bytes_type": "binary", "threads": 1, **{name: value for name, value in options.items() if value is not None}}
        files = list_files(source)
        if declared is None:
            schema = plain(Scan(source, _inferring(options)).schema, options)
            places = _place_columns(options)
            folders = [field.name for field in schema if not _role(field) and field.name not in places]
        else:
            schema = _with_record_type(declared, source, options)
            folders = [field.name for field in schema if files and all(_has_folder(file, field.name, source) for file in files)]
        options["record_type"] = (schema.metadata or {}).get(b"tfarrow.record_type", b"example").decode()
        if folders:
            files = [replace(file, folders=tuple((name, _folder(file.path, name)) for name in folders)) for file in files]
        reader = Reader(schema, options, tuple(folders), is_declared=declared is not None)
        for field in schema:
            if field.name not in (*folders, *_place_columns(options)):
                _sql_type(field)
        for step in steps:
            reader = reader.filter(step) if isinstance(step, str) else reader.select(step)
        if where is not None:
            reader = reader.filter(where)
        return cls(reader if columns is None else reader.select(columns), files)

    def groups(self, count: int) -> list[list[File]]:
        """Divides the files, in their order, into at most this number of groups of about the same number of bytes."""
        files, groups = list(reversed(self.files)), []
        left = sum(file.weight for file in files)
        for groups_left in range(min(max(count, 1), len(files)), 0, -1):
            group, size = [], 0
            # Keep a file for each of the remaining groups.
            while size < -(-left // groups_left) and len(files) >= groups_left:
                # A file that is far larger than the share is better off in a group of its own.
                if group and size + files[-1].weight / 2 > left / groups_left and groups_left > 1:
                    break
                group.append(files.pop())
                size += group[-1].weight
            left -= size
            groups.append(group)
        return groups


def list_files(source: list[str]) -> list[File]:
    """The files of a source, in order."""
    return [File(os.fspath(path), size) for path, size in _tfarrow.Source(source, {}).files()]


def is_url(name: str) -> bool:
    """Whether the name of a file is a URL."""
    return "://" in name


def _absolute(name: str) -> str:
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


def _role(field) -> str | None:
    return (field.metadata or {}).get(b"tfarrow.role", b"").decode() or None


def _is_renamed(field) -> bool:
    """Whether the name of the column is not that of its feature, or the column is one of several of its feature."""
    metadata = field.metadata or {}
    return b"tfarrow.feature" in metadata


def _feature(field) -> tuple[str, str | None, str | None]:
    """What identifies the values of a column in other files."""
    metadata = field.metadata or {}
    role, kind = _role(field), metadata.get(b"tfarrow.kind", b"").decode() or None
    if kind is None:
        return field.name, None, None
    return metadata.get(b"tfarrow.feature", field.name.encode()).decode(), kind, "sequence" if role == "sequence" else "feature"


def _has_folder(file: File, name: str, source: list[str]) -> bool:
    inner = next((file.path[len(root):] for root in source if file.path.startswith(root)), "")
    return any(part.startswith(f"{name}=") for part in map(unquote, inner.split("/")[:-1]))


def _folder(path: str, name: str) -> str | None:
    """The value of a folder ``key=value`` of a file."""
    for part in reversed(path.split("/")[:-1]):
        key, equals, value = part.partition("=")
        if equals and unquote(key) == name:
            value = unquote(value)
            return None if value == "__HIVE_DEFAULT_PARTITION__" else value
    raise UsageError(f"{path}: not in a folder {name}=..")


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


_SQL_TYPES = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "uint8": "TINYINT UNSIGNED",
    "uint16": "SMALLINT UNSIGNED",
    "uint32": "INT UNSIGNED",
    "uint64": "BIGINT UNSIGNED",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "large_string": "VARCHAR",
    "string_view": "VARCHAR",
    "binary": "BYTEA",
    "large_binary": "BYTEA",
    "binary_view": "BYTEA",
}

_ARROW_NAMES = {
    "string": "Utf8", "string_view": "Utf8View", "large_string": "LargeUtf8", "float": "Float32", "double": "Float64",
    "bool": "Boolean",
}


def _sql_type(field) -> str:
    def of(type_) -> str:
        pa = need("pyarrow", "pyarrow")
        if pa.types.is_fixed_size_list(type_):
            return f"{of(type_.value_type)}[{type_.list_size}]"
        if pa.types.is_list(type_):
            return f"{of(type_.value_type)}[]"
        if str(type_) not in _SQL_TYPES:
            raise UsageError(
                f"column {field.name!r}: a feature cannot be read as {field.type}; use numbers, text, bytes, lists of these, or "
                "lists of lists for feature lists",
                feature=field.name,
            )
        return _SQL_TYPES[str(type_)]

    return of(field.type) + ("" if field.nullable else " NOT NULL")


def _arrow_name(field) -> str:
    name = str(field.type)
    if name not in _SQL_TYPES or "binary" in name:
        raise UsageError(f"column {field.name!r}: the name of a folder cannot be read as {field.type}")
    return _ARROW_NAMES.get(name, name.replace("uint", "UInt") if name.startswith("u") else name.capitalize())


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


def _unlisted(file: str, field, values):
    """A column of lists in the type of the field: a column of single values, or of texts."""
    pa = need("pyarrow", "pyarrow")
    pc = need("pyarrow.compute", "pyarrow")
    try:
        if pa.types.is_list(values.type) and not pa.types.is_list(field.type):
            lengths = pc.list_value_length(values)
            wrong = pc.index(pc.fill_null(pc.not_equal(lengths, 1), False), True).as_py()
            if wrong >= 0:
                raise DataError(
                    f"{file}: column {field.name!r}: expected exactly one value, found {lengths[wrong].as_py()}; "
                    'layout="list" reads it',
                    file=file,
                    feature=field.name,
                )
            values = pc.list_element(values, 0)
        return values if values.type == field.type else values.cast(field.type)
    except pa.ArrowInvalid as error:
        text = f"{file}: column {field.name!r}: expected {field.type}: {error}; sample=\"all\" or layout=\"list\" reads it"
        raise DataError(text, file=file, feature=field.name) from error


MODES = ("error", "append", "overwrite")


@dataclass(frozen=True)
class Part:
    """A file that an attempt of a task has written."""

    written: str
    name: str
    records: int


@dataclass
class Output:
    """Files that tasks write to a folder."""

    folder: str
    mode: str = "error"
    record_type: str | None = None
    compression: str | None = None
    lossy: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    is_new: bool = False

    @classmethod
    def of(cls, target: str | os.PathLike[str], mode: str, **options: Any) -> Output:
        """Checks the options."""
        if mode not in MODES:
            raise UsageError(f"mode: expected one of {', '.join(MODES)}, found {mode!r}")
        if (compression := options.get("compression")) not in (None, "none", "gzip", "zlib"):
            raise UsageError(f"compression: expected one of none, gzip, zlib, found {compression!r}")
        folder = _absolute(os.fspath(target)).rstrip("/")
        if mode == "overwrite" and is_url(folder):
            raise UsageError(f"{folder}: files of a store cannot be replaced as a whole; remove them first, and append")
        return cls(folder, mode, **{name: value for name, value in options.items() if value is not None})

    @property
    def _staging(self) -> str:
        # Names that begin with an underscore are not read.
        return os.path.join(self.folder, f"_tfarrow-{self.id}")

    @property
    def _marker(self) -> str:
        """A file that tells attempts that the job has not ended: engines abort a job before its last attempts have ended."""
        return os.path.join(self._staging, "_open")

    def prepare(self) -> None:
        """Checks the target. Called by the driver, before tasks write."""
        if is_url(self.folder):
            if self.mode == "error":
                with contextlib.suppress(NotFoundError):
                    Scan(self.folder + "/", {"record_type": "raw"}).columns
                    raise ExistsError(f"{self.folder}: the folder has files; mode=\"append\" adds others", file=self.folder)
            return
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):
            raise ExistsError(f"{self.folder}: expected a folder, found a file", file=self.folder)
        found = self._found()
        if self.mode == "error" and found:
            text = f'{self.folder}: the folder has files; mode="append" adds others, mode="overwrite" replaces them'
            raise ExistsError(text, file=self.folder)
        if self.mode == "overwrite":
            for path in found:
                if ".tfrecord" not in os.path.basename(path).lower():
                    text = f"{path}: overwrite replaces files with .tfrecord in their names only; remove this one first"
                    raise ExistsError(text, file=path)
        self.is_new = not os.path.exists(self.folder)
        os.makedirs(self._staging, exist_ok=True)
        with open(self._marker, "x"):
            pass

    def _found(self) -> list[str]:
        """The files of the target that a scan of it may read."""
        found = []
        for folder, inner, names in os.walk(self.folder):
            inner[:] = [name for name in inner if not name.startswith((".", "_"))]
            found += [os.path.join(folder, name) for name in names if not name.startswith((".", "_"))]
        return sorted(found)

    def write(self, data: Any, task: int, job: str | None = None) -> Part:
        """Writes rows to a file. Called by a task. ``job`` tells the writings to one target apart."""
        extension = ".tfrecord.gz" if self.compression == "gzip" else ".tfrecord"
        name = f"part-{task:05d}-{job or self.id}{extension}"
        # A store shows a file when it is complete, and a later attempt writes the same one.
        written = f"{self.folder}/{name}"
        if not is_url(self.folder):
            self._check()
            written = os.path.join(self._staging, f"{uuid.uuid4().hex[:8]}-{name}")
        options = {"record_type": self.record_type, "compression": self.compression, "lossy": self.lossy}
        records = write(data, written, overwrite=True, **options)
        if not is_url(self.folder) and not os.path.exists(self._marker):
            self.abort()
            self._check()
        return Part(written, name, records)

    def _check(self) -> None:
        if not os.path.exists(self._marker):
            raise NotFoundError(
                f"{self._staging}: a task does not find this folder, which the driver has made: the job has ended, or the target "
                "is not in a file system that all machines share, nor in a store",
                file=self._staging,
            )

    def commit(self, parts: Iterable[Part | None], schema: pa.Schema | None = None) -> None:
        """Shows the files of all tasks. Without rows, shows one empty file if the schema is given. Called by the driver."""
        parts = [part for part in parts if part is not None]
        if not parts and schema is not None:
            parts = [self.write(schema.empty_table(), 0)]
        if is_url(self.folder):
            return
        old = self._found() if self.mode == "overwrite" else []
        for part in parts:
            if not os.path.exists(part.written):
                raise NotFoundError(
                    f"{part.written}: a task has written this file, and the driver does not find it: the target must be in a "
                    "file system that all machines share, or in a store",
                    file=part.written,
                )
        for part in parts:
            os.replace(part.written, os.path.join(self.folder, part.name))
        for path in old:
            os.remove(path)
        shutil.rmtree(self._staging, ignore_errors=True)

    def abort(self) -> None:
        """Removes what tasks have written. Called by the driver."""
        if not is_url(self.folder):
            shutil.rmtree(self._staging, ignore_errors=True)
            if self.is_new:
                with contextlib.suppress(OSError):
                    os.rmdir(self.folder)


def record_type_of(schema: pa.Schema, given: str | None) -> str | None:
    """The type of the records to write: feature lists are columns of lists of lists."""
    pa = need("pyarrow", "pyarrow")
    known = (schema.metadata or {}).get(b"tfarrow.record_type")
    if given is not None or known is not None:
        return given

    def is_list(type_) -> bool:
        return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)

    is_nested = any(is_list(field.type) and is_list(field.type.value_type) for field in schema)
    return "sequence-example" if is_nested else None
