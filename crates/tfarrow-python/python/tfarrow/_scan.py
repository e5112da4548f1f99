"""Lazy reading: scans of TFRecord data sets, and results of SQL."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _tfarrow
from ._batch import Batch
from ._extras import need

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch

    from ._columns import BytesColumn, Ragged

    Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

__all__ = ["Result", "Rows", "Scan", "read_table", "scan", "sql"]


def paths(source: Source) -> list[str]:
    """The names of a source: files, folders, globs, shard specs, URLs."""
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    return [os.fspath(name) for name in source]


class Rows:
    """Rows that are read lazily, and as often as they are asked for: a :class:`Scan` or a :class:`Result`.

    Packages that know Arrow's PyCapsule interface read them directly: ``pyarrow.table(rows)``, ``polars.DataFrame(rows)``,
    ``pandas.DataFrame.from_arrow(rows)``, and DuckDB by the name of a variable: ``duckdb.sql("FROM rows")``.
    """

    def _stream(self, batch_rows: int | None = None) -> _tfarrow.RawStream:
        raise NotImplementedError

    def _lengths(self) -> dict[str, int] | None:
        """The number of values of each row, of columns where it is always the same; None if that is not known."""
        return None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._stream().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._stream().__arrow_c_schema__()

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batches(
        self, batch_size: int | None = None, *, drop_last: bool = False, fill: Any | Mapping[str, Any] = None
    ) -> Iterator[Batch]:
        """Reads the rows in batches, in order.

        Args:
            batch_size: the number of rows of each batch but the last. By default batches are as large as they are decoded,
                which is fastest: up to 8,192 rows.
            drop_last: whether a last batch of fewer rows is left out.
            fill: the value of rows that have none, or have fewer than others: one for all columns of numbers, or a dict by
                their names. Without it such columns are :class:`Ragged`.

        Returns:
            An iterator of :class:`Batch`. Threads decode the next batches while it waits.

        >>> for batch in tfarrow.scan("testdata/shards/").select("price").batches(256):
        ...     prices = batch["price"]
        """
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size: expected a number from 1, found {batch_size}")
        # Batches are slices of what is decoded at once, so that few are made of two parts.
        decoded = None if batch_size is None else max(batch_size, 8192 // batch_size * batch_size)
        stream, lengths = self._stream(decoded), self._lengths()
        while (raw := stream.next_batch(batch_size)) is not None:
            if drop_last and batch_size is not None and raw.num_rows < batch_size:
                continue
            yield Batch(raw, lengths, fill)

    def to_arrow(self) -> pa.Table:
        """Reads all rows into a table of pyarrow."""
        pa = need("pyarrow", "pyarrow")
        return pa.Table.from_batches([pa.record_batch(raw) for raw in self._gathered()])

    def to_polars(self) -> pl.DataFrame:
        """Reads all rows into a data frame of Polars."""
        pl = need("polars", "polars")
        return pl.concat([pl.DataFrame(raw) for raw in self._gathered()], rechunk=False)

    def to_pandas(self) -> pd.DataFrame:
        """Reads all rows into a data frame of pandas. Bytes are ``bytes``, lists are ndarrays, and missing values are NaN or
        None, as pyarrow makes them."""
        need("pandas", "pandas")
        return self.to_arrow().to_pandas()

    def to_numpy(self, *, fill: Any | Mapping[str, Any] = None) -> dict[str, np.ndarray | BytesColumn | Ragged]:
        """Reads all rows into arrays, in the forms of :class:`Batch`."""
        return self._whole(fill).to_numpy()

    def to_torch(self, *, fill: Any | Mapping[str, Any] = None) -> dict[str, torch.Tensor | BytesColumn | Ragged]:
        """Reads all rows into tensors, in the forms of :meth:`Batch.to_torch`."""
        return self._whole(fill).to_torch()

    def _gathered(self) -> list[_tfarrow.RawBatch]:
        """All rows in at least one batch. They are read here, so that errors are those of this package."""
        stream, gathered = self._stream(), []
        while (raw := stream.next_batch()) is not None:
            gathered.append(raw)
        return gathered or [stream.rest()]

    def _whole(self, fill) -> Batch:
        stream = self._stream()
        return Batch(stream.rest(), self._lengths(), fill)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Reads all rows into dicts."""
        return [row for batch in self.batches() for row in batch.to_pylist()]

    def _repr_html_(self) -> str:
        from ._html import rows_html

        return rows_html(self)


class Scan(Rows):
    """The records of a data set as rows, read lazily. Made by :func:`scan`.

    A scan does not change: :meth:`select`, :meth:`where` and :meth:`limit` return new ones, and are applied in their order.
    The files are listed, and the schema is inferred, at the first use; rows are read anew for each consumer. A pickled scan
    is its arguments.
    """

    def __init__(self, source: Source, options: dict[str, Any], steps: tuple = (), raw=None):
        self._source, self._options, self._steps = paths(source), options, steps
        self._raw = _tfarrow.Source(self._source, options) if raw is None else raw

    def _with(self, step) -> Scan:
        return Scan(self._source, self._options, (*self._steps, step), self._raw)

    def select(self, *names: str) -> Scan:
        """The columns of these names, in this order. Only these are decoded."""
        return self._with(list(names))

    def where(self, condition: str) -> Scan:
        """The rows for which a condition in SQL is true, such as ``"price > 40 AND city = 'Oslo'"``. It is evaluated while
        the records are read. Names with capitals, dots or slashes need double quotes."""
        if not isinstance(condition, str):
            raise TypeError(f"where: expected a condition in SQL, found {type(condition).__name__}")
        return self._with(condition)

    def limit(self, rows: int) -> Scan:
        """The first rows."""
        rows = operator.index(rows)
        if rows < 0:
            raise ValueError(f"limit: expected a number from 0, found {rows}")
        return self._with(rows)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows, as pyarrow's. :func:`tfarrow.schema` shows that of a data set without pyarrow."""
        return need("pyarrow", "pyarrow").schema(self)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._raw.columns(list(self._steps))

    def count(self) -> int:
        """The number of rows. Without conditions and ``on_error="skip"``, records are counted by their frames, and not
        decoded."""
        if not self.skips_errors and not any(isinstance(step, str) for step in self._steps):
            from ._jobs import count

            rows = count(self._source, **{name: self._options[name] for name in _COUNTING if name in self._options})
            return min([rows, *(step for step in self._steps if isinstance(step, int))])
        return sum(batch.num_rows for batch in self.batches())

    def lazy(self) -> pl.LazyFrame:
        """A lazy frame of Polars. The columns and conditions that a query of Polars needs reach the scan."""
        from .polars import lazy

        return lazy(self)

    @property
    def is_divisible(self) -> bool:
        """Whether each row is one record, so that rows can be divided by counting records: no :meth:`where` or
        :meth:`limit`."""
        return all(isinstance(step, list) for step in self._steps)

    @property
    def skips_errors(self) -> bool:
        """Whether records may be skipped, so that there are fewer rows than records."""
        return self._options.get("on_error") == "skip"

    def counts(self) -> list[int]:
        """The number of records of each file, in order."""
        return self._raw.counts()

    def stream_of(self, counts: list[int], start: int, end: int, batch_rows: int) -> _tfarrow.RawStream:
        """The rows of the records ``start`` to ``end``, of a divisible scan. For loaders."""
        return self._raw.stream_of(list(self._steps), counts, start, end, batch_rows)

    def _stream(self, batch_rows: int | None = None) -> _tfarrow.RawStream:
        return self._raw.stream(list(self._steps), batch_rows)

    def __arrow_c_schema__(self) -> object:
        return self._raw.schema(list(self._steps))

    def _lengths(self) -> dict[str, int]:
        wanted = self._options.get("metadata_columns") or ()
        wanted = wanted.split(",") if isinstance(wanted, str) else wanted
        places = {name: 1 for name in ("_record", "_offset") if name in wanted or "all" in wanted}
        return places | dict(self._raw.fixed_lengths())

    def __reduce__(self):
        return (Scan, (self._source, self._options, self._steps))

    def __repr__(self) -> str:
        source = self._source[0] if len(self._source) == 1 else self._source
        options = "".join(f", {name}={value!r}" for name, value in self._options.items() if value is not None)
        steps = "".join(_call(step) for step in self._steps)
        return f"tfarrow.scan({source!r}{options}){steps}"


_COUNTING = ("on_error", "partial_tail", "limits", "threads")


def _call(step) -> str:
    match step:
        case str():
            return f".where({step!r})"
        case int():
            return f".limit({step})"
        case _:
            return f".select({', '.join(map(repr, step))})"


def scan(
    source: Source,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    layout: Literal["auto", "list"] | None = None,
    record_type: Literal["auto", "example", "sequence-example", "raw"] | None = None,
    sample: int | Literal["all"] | None = None,
    on_conflict: Literal["error", "split"] | None = None,
    bytes_type: Literal["binary", "binary_view"] = "binary",
    metadata_columns: Literal["none", "all"] | Sequence[str] | None = None,
    verify_crc: Literal["always", "on-parse-failure", "never"] | None = None,
    on_error: Literal["fail", "skip"] | None = None,
    partial_tail: Literal["fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
) -> Scan:
    """Reads TFRecord files of tf.Example, tf.SequenceExample or other records as rows, lazily.

    Args:
        source: a file, a folder, a glob, a shard spec (``train@10``), a URL (``s3://bucket/train/``), or a list of these.
        columns: the names of the columns to read; all by default.
        where: a condition in SQL on the rows, which may use columns that are not read.
        layout: ``"auto"`` makes plain values of features that each record has once, and text of UTF-8 bytes; ``"list"`` makes
            lists of all.
        record_type: the type of the records; detected by default.
        sample: the number of records of each sampled file that the schema is inferred from, or ``"all"``; 1,000 by default.
        on_conflict: what to do about a feature of several kinds: an error, or a column for each.
        bytes_type: the Arrow types of bytes and texts. ``"binary_view"`` copies fewer of them; pyarrow cannot filter or sort
            a table with such a column.
        metadata_columns: columns with the place of each record: ``"_file"``, ``"_record"``, ``"_offset"``, ``"_raw"``.
        verify_crc: when to check the CRC of a record's data; always by default.
        on_error: ``"skip"`` skips corrupt records and those that do not fit, counts them, and warns with the counts.
        partial_tail: ``"ignore"`` ends at a truncated last record, as of a file that is being written.
        limits: limits on input that is not trusted, by name, such as ``{"record-bytes": 64_000_000}``.
        threads: the number of threads; all cores by default.

    Returns:
        A :class:`Scan`. Nothing is read yet.

    Raises:
        UsageError: an option has no such value. Errors of files are raised when they are read.

    >>> tfarrow.scan("testdata/shards/").select("city", "price").where("price > 40").to_pylist()[0]
    {'city': 'Hamburg', 'price': 40.25}
    """
    options = {name: value for name, value in locals().items() if name not in ("source", "columns", "where")}
    found = Scan(source, {name: value for name, value in options.items() if value is not None})
    if where is not None:
        found = found.where(where)
    return found if columns is None else found.select(*columns)


def read_table(source: Source, **options: Any) -> pa.Table:
    """Reads a data set into a table of pyarrow: ``scan(source, **options).to_arrow()``."""
    return scan(source, **options).to_arrow()


class Result(Rows):
    """The rows of a query, which runs each time that they are read. Made by :func:`sql`."""

    def __init__(self, query: str, tables: dict[str, Any], options: dict[str, Any]):
        self._query, self._tables, self._options = query, tables, options

    def _stream(self, batch_rows: int | None = None) -> _tfarrow.RawStream:
        return _tfarrow.sql(self._query, self._tables, self._options, batch_rows)

    def __reduce__(self):
        return (Result, (self._query, self._tables, self._options))

    def __repr__(self) -> str:
        return f"tfarrow.sql({self._query!r}{''.join(f', {name}=..' for name in self._tables)})"


def sql(query: str, /, *, memory_limit: int | None = None, options: Mapping[str, Any] | None = None, **tables: Any) -> Result:
    """Queries TFRecord, Parquet, Arrow, CSV and JSON files, and objects with an Arrow stream, with SQL.

    Args:
        query: one or several statements of DataFusion's SQL. A source after FROM is quoted: ``FROM 'shards/*.tfrecord'``.
        memory_limit: maximum bytes of sorts, joins and groups; beyond it they spill to temporary files.
        options: options of the TFRecord files that the query names, as of :func:`scan`.
        **tables: objects with ``__arrow_c_stream__``, by the names that the query calls them: scans, results, tables of
            pyarrow, frames of Polars and pandas. One whose stream can be read once can be in one place of one query.

    Returns:
        A :class:`Result`. The query runs when it is read, each time anew.

    >>> tfarrow.sql("SELECT city, avg(price) AS mean FROM 'testdata/shards/' GROUP BY city ORDER BY city LIMIT 1").to_pylist()
    [{'city': 'Hamburg', 'mean': 41.5}]
    """
    for name, table in tables.items():
        if not hasattr(table, "__arrow_c_stream__"):
            raise TypeError(f"table {name}: expected an object with __arrow_c_stream__, found {type(table).__name__}")
    given = {"bytes_type": "binary", **(options or {})}
    if memory_limit is not None:
        given["memory_limit"] = memory_limit
    return Result(query, tables, given)
