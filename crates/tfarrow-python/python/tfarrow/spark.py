"""TFRecord in Spark: a data source in Python, for Spark 4.0 and newer.

>>> spark.dataSource.register(tfarrow.spark.TFRecordDataSource)  # doctest: +SKIP
>>> df = spark.read.format("tfrecord").option("columns", "city,price").load("shards/")  # doctest: +SKIP
>>> df.write.format("tfrecord").mode("append").option("compression", "gzip").save("copy/")  # doctest: +SKIP

Spark gets and gives batches of Arrow. The schema is inferred once, on the driver, or given: ``spark.read.schema("label int")``.
Tasks read groups of files of about equal bytes, one file at least.

tfarrow must be installed on all machines, and files must have the same names there, or be in a store whose credentials each
machine has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._dataset import DataSet, File, conformed
from ._extras import need
from ._output import Output, Part, record_type_of
from .errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

source = need("pyspark.sql.datasource", "spark")

__all__ = ["TFRecordDataSource"]

# The size of a group of files of a task, unless the option group_bytes says otherwise.
_GROUP_BYTES = 256 << 20

_READING = (
    "layout", "record_type", "sample", "on_conflict", "metadata_columns", "verify_crc", "on_error", "partial_tail", "limits",
    "threads",
)
_WRITING = ("record_type", "compression", "strict", "lossy")


class TFRecordDataSource(source.DataSource):
    """The format ``tfrecord``.

    Options of ``spark.read``, all as texts: those of :func:`tfarrow.scan`, where ``columns`` and ``metadata_columns`` are names
    with commas between them, or a list in JSON, and ``limits`` is an object in JSON. ``bytes_type`` is always ``binary``.
    ``threads`` is that of each task, and 1 by default. Besides:

    - ``group_bytes``: the number of bytes of the files of a task, 256 MiB by default;
    - ``min_groups``: the number of groups to make at least, if there are as many files; by default the number of cores of the
      driver's machine.

    Spark does not tell a data source in Python which columns a query needs: ``columns`` or a schema make it faster, as does
    ``where``, a condition in SQL that is evaluated while records are read. Spark's own filters do not reach the files: Spark 4.3
    would apply those of one query to all later queries of the data frame.

    Options of ``df.write``: ``record_type``, ``compression``, ``strict`` and ``lossy`` of :func:`tfarrow.write`. Each task writes a file,
    unless it has no rows; files appear when all tasks have ended. ``mode("overwrite")`` replaces the TFRecord files of the folder
    at the end. Spark has no other mode than ``append`` and ``overwrite`` for such sources; ``option("if_exists", "error")`` with
    ``mode("append")`` raises if the folder has files.

    Types: bytes are ``binary``, texts ``string``, integers ``bigint``, floats ``float``; lists are ``array<..>``, and feature
    lists ``array<array<..>>``.
    """

    @classmethod
    def name(cls) -> str:
        return "tfrecord"

    def schema(self) -> StructType:
        types = need("pyspark.sql.pandas.types", "spark")
        # Spark keeps this object, with the files and the schema, for the tasks.
        self._data = self._listed(None)
        return types.from_arrow_schema(self._data.reader.output)

    def reader(self, schema: StructType) -> source.DataSourceReader:
        arrow = _arrow(schema)
        data = getattr(self, "_data", None) or self._listed(arrow)
        group_bytes = _number(self.options, "group_bytes", _GROUP_BYTES)
        least = _number(self.options, "min_groups", os.cpu_count() or 1)
        return _Reader(data, arrow, group_bytes, least)

    def writer(self, schema: StructType, overwrite: bool) -> source.DataSourceArrowWriter:
        options = {name: self.options[name] for name in _WRITING if name in self.options}
        for name in ("strict", "lossy"):
            if name in options:
                options[name] = _flag(name, options[name])
        mode = "overwrite" if overwrite else self.options.get("if_exists", "append")
        if mode not in ("append", "error", "overwrite"):
            raise UsageError(f"if_exists: expected append or error, found {mode!r}")
        output = Output.of(_path(self.options), mode, **options)
        arrow = _arrow(schema)
        output.record_type = record_type_of(arrow, output.record_type)
        output.prepare()
        return _Writer(output, arrow)

    def _listed(self, declared: pa.Schema | None) -> DataSet:
        given = {name: self.options[name] for name in _READING if name in self.options}
        for name in ("threads", "sample"):
            if name in given and given[name] != "all":
                given[name] = _number(given, name, 0)
        if "limits" in given:
            given["limits"] = _json("limits", given["limits"], dict)
        if "metadata_columns" in given:
            given["metadata_columns"] = _names("metadata_columns", given["metadata_columns"])
            if given["metadata_columns"] in (["all"], ["none"]):
                given["metadata_columns"] = given["metadata_columns"][0]
        columns = self.options.get("columns")
        return DataSet.of(
            _paths(self.options),
            columns=None if columns is None else _names("columns", columns),
            where=self.options.get("where"),
            declared=declared,
            options=given,
        )


def _arrow(schema: StructType) -> pa.Schema:
    """The schema that Spark expects of batches."""
    types = need("pyspark.sql.pandas.types", "spark")
    try:
        return types.to_arrow_schema(schema, timezone="UTC")
    except TypeError:
        # Spark 4.0 has no such argument.
        return types.to_arrow_schema(schema)


def _path(options: Mapping[str, str]) -> str:
    if "path" not in options:
        raise UsageError("no path: give one to load or save")
    return options["path"]


def _paths(options: Mapping[str, str]) -> list[str]:
    """The sources. Spark gives several as a list in JSON."""
    if "paths" in options:
        return _json("paths", options["paths"], list)
    path = _path(options)
    return json.loads(path) if path.startswith("[\"") else [path]


def _json(name: str, text: str, kind: type) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise UsageError(f"{name}: expected {'an object' if kind is dict else 'a list'} in JSON, found {text!r}")
    return value


def _names(name: str, text: str) -> list[str]:
    return _json(name, text, list) if text.startswith("[") else [part.strip() for part in text.split(",")]


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, default)
    try:
        if (number := int(text)) > 0:
            return number
    except ValueError:
        pass
    raise UsageError(f"{name}: expected a number from 1, found {text!r}")


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{name}: expected true or false, found {text!r}")
    return text.lower() == "true"


@dataclass
class _Group(source.InputPartition):
    """The files of a task."""

    files: list[File]


class _Reader(source.DataSourceReader):
    """Has no ``pushFilters``: Spark 4.3 keeps the filters of one query for all later queries of the same data frame, so that
    these miss rows."""

    def __init__(self, data: DataSet, schema: pa.Schema, group_bytes: int, least: int):
        self._reader, self._schema = data.reader, schema
        self._groups = _groups(data, group_bytes, least)

    def __getstate__(self):
        # Each task gets its own group from Spark.
        return {"_reader": self._reader, "_schema": self._schema, "_groups": None}

    def partitions(self) -> list[_Group]:
        return self._groups or [_Group([])]

    def read(self, partition: _Group) -> Iterator[pa.RecordBatch]:
        for batch in self._reader.read(partition.files):
            yield conformed(batch, self._schema)


def _groups(data: DataSet, group_bytes: int, least: int) -> list[_Group]:
    weight = sum(file.weight for file in data.files)
    count = max(-(-weight // group_bytes), least)
    return [_Group(group) for group in data.groups(count)]


@dataclass
class _Message(source.WriterCommitMessage):
    part: Part | None


class _Writer(source.DataSourceArrowWriter):
    def __init__(self, output: Output, schema: pa.Schema):
        self._output, self._schema = output, schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Message:
        context = need("pyspark", "spark").TaskContext.get()
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return _Message(None)

        def rest():
            yield first
            yield from batches

        pa = need("pyarrow", "pyarrow")
        rows = pa.RecordBatchReader.from_batches(first.schema, rest())
        return _Message(self._output.write(rows, context.partitionId()))

    def commit(self, messages: list[_Message | None]) -> None:
        self._output.commit((message.part for message in messages if message is not None), self._schema)

    def abort(self, messages: list[_Message | None]) -> None:
        self._output.abort()
