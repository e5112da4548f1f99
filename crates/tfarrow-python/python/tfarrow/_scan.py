"""Lazy reading: scans of TFRecord data sets, and results of SQL."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _tfarrow
from ._batch import Batch
from ._extras import need
from ._tables import table_of
from ._warn import warn
from .errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch

    from ._columns import BytesColumn, Ragged, StructColumn
    from ._loader import Loader

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

    def _tfarrow_batches(self) -> tuple[_tfarrow.RawStream, Iterator[_tfarrow.RawBatch]]:
        """The schema and the batches, for a query of this package: errors and warnings remain what they are."""
        return self._opened(False)

    def _opened(self, complete: bool) -> tuple[_tfarrow.RawStream, Iterator[_tfarrow.RawBatch]]:
        stream = self._stream()
        return stream, iter(lambda: stream.next_batch(None, complete), None)

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
                their names. An array is as wide as the longest row of its batch. Without ``fill`` such columns are
                :class:`Ragged`.

        Returns:
            An iterator of :class:`Batch`. The first step starts threads, which decode the next batches while the caller works
            on one; they end with the iterator. An iterator is read by one process.

        Raises:
            ValueError: ``batch_size`` is below 1.
            TfarrowError: what the files and the query raise, at the batch where it is found.

        Warns:
            TfarrowWarning: at the end, of skipped records and of features without a column.

        >>> [batch.num_rows for batch in tfarrow.scan("testdata/shards/").batches(64)]
        [64, 64, 64, 8]
        >>> batch = next(tfarrow.scan("testdata/ragged.tfrecord").batches(8, fill={"ints": 0}))
        >>> batch["ints"].shape
        (8, 5)
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
        """Reads all rows into a table of pyarrow.

        >>> tfarrow.scan("testdata/shards/").select("label").to_arrow().num_rows
        200
        """
        pa = need("pyarrow", "pyarrow")
        return pa.table(self._stream().read_all())

    def to_polars(self) -> pl.DataFrame:
        """Reads all rows into a data frame of Polars.

        >>> tfarrow.scan("testdata/shards/").select("city", "price").to_polars().shape
        (200, 2)
        """
        frame: pl.DataFrame = need("polars", "polars").DataFrame(self._stream().read_all())
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """Reads all rows into a data frame of pandas. Bytes are ``bytes``, lists are ndarrays, and missing values are NaN or
        None, as pyarrow makes them: an integer column with missing values has the dtype float64.

        Warns:
            TfarrowWarning: a column of floats has both NaN and missing values, which are both NaN in pandas.

        >>> int(tfarrow.scan("testdata/shards/").select("label").to_pandas()["label"].sum())
        341
        """
        need("pandas", "pandas")
        table = self.to_arrow()
        for name in _mixed(table):
            warn(f"column {name!r}: missing values and NaN are both NaN in pandas; to_arrow() tells them apart")
        frame: pd.DataFrame = table.to_pandas()
        return frame

    def to_numpy(self, *, fill: Any | Mapping[str, Any] = None) -> dict[str, np.ndarray | BytesColumn | Ragged | StructColumn]:
        """Reads all rows into arrays, in the forms of :class:`Batch`. ``fill`` is that of :meth:`batches`.

        >>> tfarrow.scan("testdata/shards/").to_numpy()["embedding"].shape
        (200, 8)
        """
        return self._whole(fill).to_numpy()

    def to_torch(self, *, fill: Any | Mapping[str, Any] = None) -> dict[str, torch.Tensor | BytesColumn | Ragged | StructColumn]:
        """Reads all rows into tensors, in the forms of :meth:`Batch.to_torch`."""
        return self._whole(fill).to_torch()

    def _whole(self, fill: Any) -> Batch:
        stream = self._stream()
        return Batch(stream.rest(), self._lengths(), fill)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Reads all rows into dicts, as :meth:`Batch.to_pylist` does.

        >>> tfarrow.scan("testdata/shards/").select("city", "label").where("label = 0").limit(1).to_pylist()
        [{'city': 'Gdańsk', 'label': 0}]
        """
        return [row for batch in self.batches() for row in batch.to_pylist()]

    def _repr_html_(self) -> str:
        from ._html import rows_html

        return rows_html(self)


def _mixed(table: pa.Table) -> list[str]:
    """The names of the columns of floats with both missing values and NaN."""
    pa, pc = need("pyarrow", "pyarrow"), need("pyarrow.compute", "pyarrow")
    floats = [name for name, column in zip(table.column_names, table.columns) if pa.types.is_floating(column.type) and column.null_count]
    return [name for name in floats if pc.any(pc.is_nan(table[name])).as_py()]


class Scan(Rows):
    """The records of a data set as rows, read lazily. Made by :func:`scan`.

    A scan does not change: :meth:`select`, :meth:`where` and :meth:`limit` return new ones, and are applied in their order.
    The files are listed, and the schema is inferred, at the first use; a new scan sees new files. Rows are read anew for each
    consumer, in the order of the files. A pickled scan is its arguments, so that the files are listed again where it is
    unpickled.

    >>> tfarrow.scan("testdata/shards/").select("city").where("price > 40").limit(5)
    tfarrow.scan('testdata/shards/').select('city').where('price > 40').limit(5)
    """

    def __init__(
        self, source: Source, options: dict[str, Any], steps: tuple[Any, ...] = (), raw: _tfarrow.Source | None = None
    ):
        self._source, self._options, self._steps = paths(source), options, steps
        self._raw = _tfarrow.Source(self._source, options) if raw is None else raw

    def _with(self, step: list[str] | int | str) -> Scan:
        return Scan(self._source, self._options, (*self._steps, step), self._raw)

    def select(self, *names: str) -> Scan:
        """The columns of these names, in this order. Only these, and those of conditions, are decoded.

        Raises:
            SqlError: there is no column of this name. Raised when the scan is used, as are all errors of its steps.

        >>> tfarrow.scan("testdata/shards/").select("price", "city").columns
        ['price', 'city']
        """
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"select: expected names of columns, found {type(name).__name__}")
        return self._with(list(names))

    def where(self, condition: str) -> Scan:
        """The rows for which a condition in SQL is true, such as ``"price > 40 AND city = 'Oslo'"``. It is evaluated while
        the records are read. Names with capitals, dots or slashes need double quotes.

        Raises:
            SqlError: the condition is invalid.

        >>> tfarrow.scan("testdata/shards/").where('price > 40 AND "image/width" = 8').count()
        21
        """
        if not isinstance(condition, str):
            raise TypeError(f"where: expected a condition in SQL, found {type(condition).__name__}")
        return self._with(condition)

    def limit(self, rows: int) -> Scan:
        """The first ``rows`` rows.

        >>> tfarrow.scan("testdata/shards/").where("label = 1").limit(5).count()
        5
        """
        rows = operator.index(rows)
        if not 0 <= rows < 2**63:
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
        """The number of rows.

        With a condition or ``on_error="skip"``, the rows are read. Otherwise records are counted by their frames, and not
        decoded.

        >>> tfarrow.scan("testdata/shards/").where("label = 1").count()
        53
        """
        if not self.skips_errors and not any(isinstance(step, str) for step in self._steps):
            return min([sum(self.counts()), *(step for step in self._steps if isinstance(step, int))])
        return sum(batch.num_rows for batch in self.batches())

    def lazy(self) -> pl.LazyFrame:
        """A lazy frame of Polars. A query of Polars reads only the columns that it needs, and conditions that compare columns
        of integers and texts with values are evaluated while the records are read. Needs Polars, and not pyarrow.

        >>> import polars as pl
        >>> tfarrow.scan("testdata/shards/").lazy().filter(pl.col("label") == 1).select("city").collect().shape
        (53, 1)
        """
        from .polars import lazy

        return lazy(self)

    def all_batches(self) -> tuple[_tfarrow.RawStream, Iterator[_tfarrow.RawBatch]]:
        """The schema and the batches, whose end is an error if features of the records have no column. Features that
        :meth:`select` leaves out are left out on purpose. For :func:`tfarrow.write`."""
        return self._opened(not any(isinstance(step, list) for step in self._steps))

    @property
    def skips_errors(self) -> bool:
        """Whether records may be skipped, so that there are fewer rows than records."""
        return self._options.get("on_error") == "skip"

    def counts(self) -> list[int]:
        """The number of records of each file, in order."""
        return self._raw.counts()

    def files(self) -> list[str]:
        """The paths of the files, in order."""
        return [path for path, _, _ in self._raw.files()]

    def opened(self, images: Mapping[str, tuple[int, int]]) -> _tfarrow.RawDataset:
        """The rows by their numbers, for :class:`tfarrow.Dataset`."""
        return self._raw.dataset(list(self._steps), [(name, tuple(size)) for name, size in images.items()])  # type: ignore[misc]

    @overload
    def batches(
        self,
        batch_size: int | None = None,
        *,
        drop_last: bool = False,
        fill: Any | Mapping[str, Any] = None,
        shuffle: None = None,
        rank: None = None,
        images: None = None,
    ) -> Iterator[Batch]: ...
    @overload
    def batches(
        self,
        batch_size: int,
        *,
        drop_last: bool = False,
        fill: Any | Mapping[str, Any] = None,
        shuffle: Literal["blocks", "global"] | bool | None = None,
        seed: int = 0,
        epoch: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        images: Mapping[str, tuple[int, int]] | None = None,
    ) -> Loader: ...
    def batches(
        self,
        batch_size: int | None = None,
        *,
        drop_last: bool = False,
        fill: Any | Mapping[str, Any] = None,
        shuffle: Literal["blocks", "global"] | bool | None = None,
        seed: int = 0,
        epoch: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        images: Mapping[str, tuple[int, int]] | None = None,
    ) -> Iterator[Batch] | Loader:
        """Reads the rows in batches: in order, as :meth:`Rows.batches`, or for training.

        Args:
            batch_size, drop_last, fill: as of :meth:`Rows.batches`.
            shuffle: ``"blocks"`` or True, ``"global"``, or False: the order of a :class:`Loader`, which has a state.
            seed, epoch: the order is a function of both.
            rank, world_size: the rank of this process and the number of ranks; by default those of the environment (``RANK``,
                ``WORLD_SIZE``), else one rank.
            images: columns of encoded images whose pixels are decoded, with their heights and widths: see :class:`Dataset`.

        Returns:
            A :class:`Loader` with ``shuffle``, ``rank`` or ``images``, which finds the records of all files first; otherwise an
            iterator of :class:`Batch`, which reads from the start.

        >>> loader = tfarrow.scan("testdata/shards/").where("label > 0").batches(64, shuffle="global", seed=1, epoch=0)
        >>> [batch.num_rows for batch in loader]
        [64, 64, 37]
        """
        if shuffle is None and rank is None and world_size is None and images is None:
            return super().batches(batch_size, drop_last=drop_last, fill=fill)
        if batch_size is None:
            raise TypeError("batch_size: expected a number with shuffle, rank or images")
        from ._loader import Dataset

        options: dict[str, Any] = {"seed": seed, "epoch": epoch, "drop_last": drop_last, "rank": rank, "world_size": world_size}
        return Dataset(self, fill=fill, images=images).batches(batch_size, shuffle=shuffle, **options)

    def _stream(self, batch_rows: int | None = None) -> _tfarrow.RawStream:
        return self._raw.stream(list(self._steps), batch_rows)

    def __arrow_c_schema__(self) -> object:
        return self._raw.schema(list(self._steps))

    def _lengths(self) -> dict[str, int] | None:
        lengths = self._raw.fixed_lengths()
        return None if lengths is None else dict(lengths)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Scan, (self._source, self._options, self._steps))

    def __repr__(self) -> str:
        source = self._source[0] if len(self._source) == 1 else self._source
        options = "".join(f", {name}={value!r}" for name, value in self._options.items() if value != _DEFAULTS.get(name))
        steps = "".join(_call(step) for step in self._steps)
        return f"tfarrow.scan({source!r}{options}){steps}"


_DEFAULTS = {"bytes_type": "binary"}


def _call(step: list[str] | int | str) -> str:
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
    record_type: Literal["auto", "example", "sequence-example", "example-list", "raw"] | None = None,
    proto: str | os.PathLike[str] | None = None,
    message: str | None = None,
    sample: int | Literal["all"] | None = None,
    on_conflict: Literal["error", "split"] | None = None,
    bytes_type: Literal["binary", "binary_view"] = "binary",
    metadata_columns: Literal["none", "all"] | Sequence[str] | None = None,
    verify_crc: Literal["always", "on-parse-failure", "never"] | None = None,
    on_error: Literal["fail", "skip"] | None = None,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
) -> Scan:
    """Reads TFRecord files of tf.Example, tf.SequenceExample or other records as rows, lazily.

    Event files of TensorBoard are rows of ``tensorflow.Event``; :func:`sql` reads them as a table of values. A file, folder or
    glob of Parquet, Arrow, CSV or JSON files is read as :func:`sql` reads it; options of records do not apply to these.

    Args:
        source: a file, a folder, a glob, a shard spec (``train@10``), a URL (``s3://bucket/train/``), or a list of these.
        columns: the names of the columns to read; all by default.
        where: a condition in SQL on the rows, which may use columns that are not read.
        layout: ``"auto"`` makes plain values of features that each record has once, and text of UTF-8 bytes; ``"list"`` makes
            lists of all.
        record_type: the type of the records; detected by default.
        proto: a file that defines the type of messages of another type: a ``FileDescriptorSet`` (``protoc
            --include_imports --descriptor_set_out``), or a ``.proto`` source.
        message: the name of the message in ``proto``, such as ``"waymo.open_dataset.Scenario"``; ``"tensorflow.Event"`` needs
            no file, and is that of event files by default. Fields become columns, messages structs.
        sample: the number of records of each sampled file that the schema is inferred from, or ``"all"``; 1,000 by default.
        on_conflict: what to do about a feature of several kinds: an error, or a column for each.
        bytes_type: the Arrow types of bytes and texts. ``"binary_view"`` copies fewer of them; pyarrow cannot filter or sort
            a table with such a column.
        metadata_columns: columns with the place of each record: ``"_file"``, ``"_record"``, ``"_offset"``, ``"_raw"``.
        verify_crc: when to check the CRC of a record's data; always by default.
        on_error: ``"skip"`` skips corrupt records and those that do not fit, counts them, and warns with the counts.
        partial_tail: ``"ignore"`` ends at a truncated last record, as of a file that is being written; ``"auto"``, the default,
            does so in TensorBoard's event files only.
        limits: limits on input that is not trusted, by name: ``record-bytes``, ``record-features``, ``values``, ``key-bytes``,
            ``columns``, ``name-bytes``, ``nesting``, ``inflate-ratio``. Example: ``{"record-bytes": 64_000_000}``.
        threads: the number of threads; all cores by default.

    Returns:
        A :class:`Scan`. Nothing is read yet.

    Raises:
        UsageError: an option has no such value. Errors of files are raised when they are read.

    >>> tfarrow.scan("testdata/shards/", columns=["city", "price"], where="price > 40").to_pylist()[0]
    {'city': 'Nairobi', 'price': 42.619998931884766}
    """
    options = {name: value for name, value in locals().items() if name not in ("source", "columns", "where")}
    found = Scan(source, {name: value for name, value in options.items() if value is not None})
    if where is not None:
        found = found.where(where)
    if isinstance(columns, str):
        raise TypeError(f"columns: expected a list of names, found {columns!r}")
    return found if columns is None else found.select(*columns)


def read_table(source: Source, **options: Any) -> pa.Table:
    """Reads a data set into a table of pyarrow: ``scan(source, **options).to_arrow()``.

    >>> tfarrow.read_table("testdata/shards/", columns=["city"], where="label < 2").num_rows
    88
    """
    return scan(source, **options).to_arrow()


class Result(Rows):
    """The rows of a query, which runs each time that they are read, or those of statements that have run. Made by :func:`sql`."""

    def __init__(self, query: str, tables: dict[str, Any], options: dict[str, Any]):
        self._query, self._tables, self._options = query, tables, options
        # The rows of statements that have run.
        self._rows: _tfarrow.RawTable | None = None
        # Iterators, such as a RecordBatchReader of pyarrow, can be read once.
        self._once = [name for name, table in tables.items() if hasattr(table, "__next__")]
        self._is_read = False

    def run(self) -> Result:
        """Runs the statements now, and keeps their rows."""
        self._rows = self._stream().read_all()
        return self

    def _stream(self, batch_rows: int | None = None) -> _tfarrow.RawStream:
        if self._rows is not None:
            return self._rows.stream(batch_rows)
        if self._once and self._is_read:
            raise UsageError(f"table {self._once[0]} is an iterator, which the query has read already: make a table of it")
        self._is_read = True
        tables = {name: table_of(table) for name, table in self._tables.items()}
        return _tfarrow.sql(self._query, tables, self._options, batch_rows)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._rows is not None:
            raise TypeError("the result of statements that have run cannot be pickled: they would run again; pickle to_arrow()")
        return (Result, (self._query, self._tables, self._options))

    def __repr__(self) -> str:
        return f"tfarrow.sql({self._query!r}{''.join(f', {name}=..' for name in self._tables)})"


def sql(query: str, /, *, memory_limit: int | None = None, options: Mapping[str, Any] | None = None, **tables: Any) -> Result:
    """Queries TFRecord, Parquet, Arrow, CSV and JSON files, and objects with an Arrow stream, with SQL.

    Args:
        query: one or several statements of DataFusion's SQL. A source after FROM is quoted: ``FROM 'shards/*.tfrecord'``.
        memory_limit: maximum bytes of sorts, joins and groups; beyond it they spill to temporary files.
        options: options of the TFRecord files that the query names, as of :func:`scan`.
        **tables: objects with ``__arrow_c_stream__``, by the names that the query calls them: scans, results, tables and data
            sets of pyarrow, frames of Polars and pandas. An iterator, such as a ``RecordBatchReader``, can be read once, by one
            query. pandas exports NaN as missing values.

    Returns:
        A :class:`Result`. The query runs when it is read, each time anew; all its statements run, and the rows are those of
        the last one. Statements that write (``COPY``, ``INSERT``), and those whose last one has no rows (``CREATE``, ``SET``), run
        at once, and only once: the result keeps their rows in memory.

    Raises:
        SqlError: the query is invalid or fails. Raised when the query runs, as are exceptions of the tables.
        DataError: a batch of a table has other columns or types than its schema.

    >>> tfarrow.sql("SELECT city, avg(price) AS mean FROM 'testdata/shards/' GROUP BY city ORDER BY city LIMIT 1").to_pylist()
    [{'city': 'Gdańsk', 'mean': 43.35114266531808}]
    >>> names = tfarrow.scan("testdata/shards/").select("label", "city")
    >>> tfarrow.sql("SELECT count(*) AS n FROM names WHERE label = 1", names=names).to_pylist()
    [{'n': 53}]
    """
    for name, table in tables.items():
        if table_of(table) is None:
            raise TypeError(f"table {name}: expected an object with __arrow_c_stream__, found {type(table).__name__}")
    given = {"bytes_type": "binary", **(options or {})}
    if memory_limit is not None:
        given["memory_limit"] = memory_limit
    result = Result(query, tables, given)
    return result.run() if _tfarrow.runs_at_once(query) else result
