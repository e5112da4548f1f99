"""Operations on whole data sets: schema, statistics, validation, verification, conversion, comparison."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _tfarrow
from ._extras import need
from ._scan import paths
from .errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from ._scan import Source

    Progress = bool | Callable[[int, int], object] | None

__all__ = [
    "Report",
    "Schema",
    "Statistics",
    "convert",
    "count",
    "diff",
    "head",
    "merge",
    "read_part",
    "repair",
    "report",
    "schema",
    "stats",
    "validate",
    "verify",
]


@contextlib.contextmanager
def progress_of(progress: Progress, name: str) -> Iterator[Callable[[int, int], object] | None]:
    """A callback of bytes done and bytes in all: None, the caller's, or a bar of tqdm."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with need("tqdm.auto", "progress").tqdm(desc=name, unit="B", unit_scale=True) as bar:

            def update(done: int, total: int) -> None:
                bar.total = total or None
                bar.update(done - bar.n)

            yield update
    else:
        yield progress


def _width() -> int | None:
    """The width of the terminal; None where the output is none."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None


class Report(Mapping[str, Any]):
    """The result of an operation: a mapping with what ``--format json`` of the program has, whose text is the program's.

    ``print(report)`` shows the text, ``report["records"]`` is a value.

    Attributes:
        ok: whether nothing was found: no faults for :func:`verify`, no differences for :func:`diff`, no anomalies for
            :func:`validate`. Always True for other operations.

    >>> report = tfarrow.verify("testdata/shards/")
    >>> report["records"], report.ok
    (200, True)
    >>> print(report)
    4 files, 200 valid records, 56 kB: no faults
    """

    def __init__(self, raw: _tfarrow.RawReport, ok: bool = True):
        self._raw, self._data, self.ok = raw, json.loads(raw.json), ok

    def __getitem__(self, name: str) -> Any:
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def text(self, width: int | None = None) -> str:
        """The text, with tables of at most ``width`` characters."""
        return self._raw.text(width)

    def to_dict(self) -> dict[str, Any]:
        """All values, as the program's JSON has them."""
        return dict(self._data)

    def __str__(self) -> str:
        return self.text(_width())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ._html import text_html

        return text_html(self.text())


class Statistics(Report):
    """Statistics of the values of a data set. Made by :func:`stats`."""

    def __init__(self, raw: _tfarrow.RawReport, message: bytes):
        super().__init__(raw)
        self._message = message

    def to_pb(self) -> bytes:
        """The statistics as a ``tensorflow.metadata.v0.DatasetFeatureStatisticsList``, which TensorFlow Data Validation and
        Facets read."""
        return self._message

    def _repr_html_(self) -> str:
        from ._html import statistics_html

        return statistics_html(self)


class Schema:
    """The schema of a data set: its features, their kinds, how often they are present, and their Arrow types. Made by
    :func:`schema`.

    >>> schema = tfarrow.schema("testdata/shards/")
    >>> schema.num_records
    200
    >>> schema.features[1]["name"], schema.features[1]["arrow"], schema.features[1]["lengths"]
    ('embedding', 'list<float32>', [8, 8])
    """

    def __init__(self, raw: _tfarrow.RawSchema, source: list[str], options: dict[str, Any] | None):
        self._raw, self._source, self._options = raw, source, options

    @property
    def num_records(self) -> int:
        """The number of records that were read."""
        return self._raw.num_records

    @property
    def features(self) -> list[dict[str, Any]]:
        """The features, as ``tfarrow schema --format json`` describes them."""
        features: list[dict[str, Any]] = self.to_dict().get("features", [])
        return features

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``tfarrow schema --format json`` prints it."""
        found: dict[str, Any] = json.loads(self._raw.text("json"))
        return found

    def to_arrow(self) -> pa.Schema:
        """The columns as a schema of pyarrow."""
        return need("pyarrow", "pyarrow").schema(self)

    def to_pbtxt(self) -> str:
        """A ``tensorflow.metadata.v0.Schema`` in text format (``schema.pbtxt``), as TensorFlow Data Validation infers it.
        Reads the data set again, because it depends on the values.

        Raises:
            UsageError: :func:`merge` made the schema, which has no options to read the data set with; or the records are events.

        >>> print(tfarrow.schema("testdata/shards/").to_pbtxt().splitlines()[1].strip())
        name: "city"
        """
        if self._options is None:
            raise UsageError(
                "to_pbtxt: merged parts of a schema have no statistics of values: call tfarrow.schema(source).to_pbtxt(),"
                " or merge parts of `tfarrow schema --format pbtxt` with `tfarrow merge`"
            )
        if "features" not in self.to_dict():
            # An error: the format describes features, and events have none.
            return self._raw.text("pbtxt")
        return _tfarrow.schema_pbtxt(self._source, self._options)

    def to_parse_spec(self) -> str:
        """Python code with a feature spec for ``tf.io.parse_example``. Making it does not need TensorFlow.

        >>> print(tfarrow.schema("testdata/shards/").to_parse_spec().splitlines()[5].strip())
        "embedding": tf.io.FixedLenFeature([8], tf.float32),
        """
        return self._raw.text("python")

    def text(self, width: int | None = None) -> str:
        """The table that the program prints, of at most ``width`` characters."""
        return self._raw.text("table", width)

    def __arrow_c_schema__(self) -> object:
        return self._raw.__arrow_c_schema__()

    def __str__(self) -> str:
        return self.text(_width())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ._html import schema_html

        return schema_html(self)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def schema(
    source: Source,
    *,
    layout: Literal["auto", "list"] | None = None,
    record_type: Literal["auto", "example", "sequence-example", "example-list", "raw"] | None = None,
    sample: int | Literal["all"] = "all",
    on_error: Literal["fail", "skip"] | None = None,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Schema:
    """Infers the schema of a data set. All records are read, unless ``sample`` says otherwise.

    The columns of messages of other types follow from their definition: ``scan(source, proto=.., message=..).schema``. So do those of
    TensorBoard's event files, of which no record is read: the schema has their columns, and no features.

    Args:
        source, layout, record_type, on_error, partial_tail, limits, threads: as of :func:`scan`.
        sample: the number of records of each of up to 16 files, or ``"all"``.
        progress: True for a bar of tqdm, or a callable that gets the bytes done and the bytes in all (0 if unknown), ten times
            a second and at the end, on the calling thread. What it raises stops the operation.

    Warns:
        TfarrowWarning: a feature has several kinds, and so no column; records were skipped.

    >>> print(tfarrow.schema("testdata/shards/").text().splitlines()[0])
    200 tf.Example records in 4 shards
    """
    options = _given(
        layout=layout, record_type=record_type, sample=sample, on_error=on_error, partial_tail=partial_tail, limits=limits,
        threads=threads,
    )
    with progress_of(progress, "schema") as report_progress:
        return Schema(_tfarrow.schema(paths(source), options, report_progress), paths(source), options)


def count(
    source: Source,
    *,
    on_error: Literal["fail", "skip"] | None = None,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> int:
    """The number of records of a data set; Parquet and Arrow files are counted as well.

    Records are counted by their frames: the CRCs of their lengths are checked, those of their data are not.

    Args:
        source: as of :func:`scan`, or Parquet or Arrow files.
        on_error, partial_tail, limits, threads, progress: as of :func:`schema`.

    Raises:
        CorruptError: a length is corrupt, or a file is truncated. ``on_error="skip"`` continues, and warns.

    >>> tfarrow.count("testdata/shards/")
    200
    """
    options = _given(on_error=on_error, partial_tail=partial_tail, limits=limits, threads=threads)
    with progress_of(progress, "count") as report_progress:
        return sum(records for _, records in _tfarrow.count(paths(source), options, report_progress))


def head(source: Source, records: int = 10, **options: Any) -> list[dict[str, Any]]:
    """The first records as dicts: numbers, bytes, texts, and lists of them; None for features that a record does not have.

    Args:
        source: as of :func:`scan`: TFRecord files, also TensorBoard's, or Parquet, Arrow, CSV or JSON files.
        records: the number of records.
        **options: as of :func:`scan`.

    >>> tfarrow.head("testdata/shards/", 2, columns=["city", "label"])
    [{'city': 'Porto', 'label': 3}, {'city': 'Nairobi', 'label': 2}]
    """
    from ._scan import scan

    return scan(source, **options).limit(records).to_pylist()


def stats(
    source: Source,
    *,
    by: str | None = None,
    sample: int | Literal["all"] = "all",
    on_error: Literal["fail", "skip"] | None = None,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Statistics:
    """Statistics of the values of each feature: ranges, means, quantiles, histograms, most frequent values.

    Args:
        source: as of :func:`scan`.
        by: a feature; statistics are also those of the records with each of its values.
        sample, on_error, partial_tail, limits, threads, progress: as of :func:`schema`.

    Returns:
        :class:`Statistics`: ``["records"]``, ``["bytes"]`` (of the records), and ``["features"]``, a list of dicts with
        ``name``, ``present``, ``missing`` and ``kinds``.

    >>> statistics = tfarrow.stats("testdata/shards/")
    >>> statistics["records"], statistics["features"][0]["kinds"][0]["strings"]["distinct"]
    (200, 5)
    """
    options = _given(sample=sample, on_error=on_error, partial_tail=partial_tail, limits=limits, threads=threads)
    with progress_of(progress, "stats") as report_progress:
        return Statistics(*_tfarrow.stats(paths(source), options, by, report_progress))


def _against(
    schema: str | os.PathLike[str] | None, baseline: Source | None, environment: str | None, max_drift: float | None
) -> dict[str, Any]:
    return {
        "schema": schema,
        "baseline": [] if baseline is None else paths(baseline),
        "environment": environment,
        "max_drift": max_drift,
    }


def read_part(
    work: Literal["schema", "stats"],
    source: Source,
    part: tuple[int, int],
    *,
    by: str | None = None,
    layout: Literal["auto", "list"] | None = None,
    record_type: Literal["auto", "example", "sequence-example", "example-list", "raw"] | None = None,
    on_error: Literal["fail", "skip"] | None = None,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> bytes:
    """Reads one part of a data set, in one of several processes or on one of several machines, for :func:`merge`.

    The parts have equal numbers of bytes as far as the sizes of files allow. All processes have to find the same files.

    Args:
        work: the function whose result the parts are merged to: ``"schema"`` or ``"stats"``.
        source: as of :func:`scan`.
        part: the number of the part, from 0, and the number of parts.
        by, layout, record_type, on_error, partial_tail, limits, threads, progress: as of :func:`stats` and :func:`schema`; the
            same for all parts.

    Returns:
        The result of the part, as ``tfarrow stats --part 0/3 --partial FILE`` writes it.

    >>> parts = [tfarrow.read_part("stats", "testdata/shards/", (index, 3)) for index in range(3)]
    >>> tfarrow.merge(parts)["records"]
    200
    """
    if by is not None and work == "schema":
        raise UsageError("by: a schema has no slices")
    options = _given(
        layout=layout, record_type=record_type, on_error=on_error, partial_tail=partial_tail, limits=limits, threads=threads
    )
    with progress_of(progress, work) as report_progress:
        return _tfarrow.read_part(work, paths(source), tuple(part), options, by, report_progress)


def merge(parts: Iterable[bytes]) -> Schema | Statistics:
    """Merges the results of all parts of a data set, in any order: to what one call of :func:`schema` or :func:`stats` returns.

    Args:
        parts: the results of :func:`read_part`, or the contents of the files that ``--partial`` of the program writes. A part
            that was read twice counts once.

    Raises:
        TfarrowError: a part is missing, or parts are of different data sets or were read with different options.

    >>> parts = [tfarrow.read_part("schema", "testdata/shards/", (index, 2)) for index in range(2)]
    >>> print(tfarrow.merge(parts).text().splitlines()[0])
    200 tf.Example records in 4 shards
    """
    found, statistics = _tfarrow.merge(list(parts))
    if found is not None:
        return Schema(found, found.sources, None)
    assert statistics is not None
    return Statistics(*statistics)


class Validation(Report):
    """The anomalies of a data set. ``ok`` tells whether there are none."""

    def __init__(self, raw: _tfarrow.RawReport, has_anomalies: bool, updated: str):
        super().__init__(raw, not has_anomalies)
        self._updated = updated

    @property
    def anomalies(self) -> list[dict[str, Any]]:
        """The anomalies: feature, kind, description, number of records, and the place of the first."""
        anomalies: list[dict[str, Any]] = self["anomalies"]
        return anomalies

    def updated_pbtxt(self) -> str:
        """A schema that accepts the data, in text format."""
        return self._updated


def validate(
    source: Source,
    schema: str | os.PathLike[str] | None = None,
    *,
    baseline: Source | None = None,
    environment: str | None = None,
    max_drift: float | None = None,
    sample: int | Literal["all"] = "all",
    on_error: Literal["fail", "skip"] | None = None,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Validation:
    """Validates a data set against a schema or a baseline, as TensorFlow Data Validation does.

    Args:
        source: as of :func:`scan`.
        schema: a file with a ``tensorflow.metadata.v0.Schema`` in text format, as ``Schema.to_pbtxt`` makes it.
        baseline: a data set to compare with. Its schema is the expected one, unless ``schema`` is given.
        environment: the environment of the schema to validate in.
        max_drift: the largest drift from the baseline, from 0 to 1.
        sample, on_error, partial_tail, limits, threads, progress: as of :func:`schema`.

    Raises:
        UsageError: there is neither a schema nor a baseline.

    >>> tfarrow.validate("testdata/shards/", baseline="testdata/shards/").ok
    True
    """
    if schema is None and baseline is None:
        raise UsageError("validate needs a schema or a baseline")
    options = _given(sample=sample, on_error=on_error, partial_tail=partial_tail, limits=limits, threads=threads)
    against = _against(schema, baseline, environment, max_drift)
    with progress_of(progress, "validate") as report_progress:
        return Validation(*_tfarrow.validate(paths(source), against, options, report_progress))


def report(
    source: Source,
    output: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    schema: str | os.PathLike[str] | None = None,
    baseline: Source | None = None,
    max_drift: float | None = None,
    examples: int = 24,
    sample: int | Literal["all"] = "all",
    on_error: Literal["fail", "skip"] | None = None,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Page:
    """Makes the report of a data set, a page of HTML that stands alone.

    Args:
        source: as of :func:`scan`.
        output: the file to write, replacing it; None writes none, for a notebook.
        title: the title; the sources by default.
        schema, baseline, max_drift: as of :func:`validate`.
        examples: the number of example records.
        sample, on_error, partial_tail, limits, threads, progress: as of :func:`schema`.

    Returns:
        The page, which a notebook shows.

    >>> page = tfarrow.report("testdata/shards/", "report.html", title="Shards")
    >>> "<title>Shards" in page.html
    True
    """
    options = _given(sample=sample, on_error=on_error, partial_tail=partial_tail, limits=limits, threads=threads)
    against = _against(schema, baseline, None, max_drift)
    with progress_of(progress, "report") as report_progress:
        page = Page(_tfarrow.report(paths(source), against, options, title, examples, report_progress))
    if output is not None:
        page.save(output)
    return page


class Page:
    """A page of HTML that stands alone.

    Attributes:
        html: the page.
    """

    def __init__(self, html: str):
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file. The file has the page or what it had before, never a part."""
        temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(self.html)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise

    def __repr__(self) -> str:
        return f"Page({len(self.html):,} bytes of HTML)"

    def _repr_html_(self) -> str:
        from ._html import frame_html

        return frame_html(self.html)


def verify(
    source: Source,
    *,
    record_type: Literal["auto", "example", "sequence-example", "example-list", "raw"] | None = None,
    max_faults: int = 10_000,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Report:
    """Checks every CRC, record and checksum of a data set.

    Returns:
        A report: ``ok`` tells whether there are no faults, ``report["faults"]`` lists at most ``max_faults`` of them, with
        ``file``, ``record``, ``offset``, ``bytes``, ``kind`` and ``message``. Faults raise no exception.

    >>> tfarrow.verify("testdata/shards/").ok
    True
    >>> fault = tfarrow.verify("testdata/corrupt/data.tfrecord")["faults"][0]
    >>> fault["record"], fault["offset"], fault["kind"]
    (1, 72, 'data')
    """
    options = _given(record_type=record_type, partial_tail=partial_tail, limits=limits, threads=threads)
    with progress_of(progress, "verify") as report_progress:
        return Report(*_tfarrow.verify(paths(source), options, max_faults, report_progress))


def convert(
    source: Source,
    dest: str | os.PathLike[str],
    *,
    to: Literal["parquet", "arrow", "tfrecord"] | None = None,
    layout: Literal["auto", "list"] | None = None,
    compression: str | None = None,
    schema: str | os.PathLike[str] | None = None,
    proto: str | os.PathLike[str] | None = None,
    message: str | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    sample: int | Literal["all"] | None = None,
    shards: int | None = None,
    shard_size: int | None = None,
    partition_by: Sequence[str] | None = None,
    shuffle: int | None = None,
    fraction: float | None = None,
    split: Mapping[str, float] | None = None,
    seed: int | None = None,
    exact: bool = False,
    record_type: Literal["auto", "example", "sequence-example", "example-list", "raw"] | None = None,
    on_conflict: Literal["error", "split"] | None = None,
    timestamp_unit: Literal["ns", "us"] | None = None,
    lossy: bool = False,
    overwrite: bool = False,
    verify_crc: Literal["always", "on-parse-failure", "never"] | None = None,
    row_group_rows: int | None = None,
    bloom_filter: Sequence[str] | None = None,
    page_index: bool = True,
    resume: bool = False,
    dry_run: bool = False,
    on_error: Literal["fail", "skip"] | None = None,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    quarantine: str | os.PathLike[str] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Report:
    """Converts TFRecord to Parquet or Arrow files, and back, without loss.

    Args:
        source: as of :func:`scan`, or Parquet, Arrow, CSV or JSON files.
        dest: a folder, or one file with a known extension, which gets the records of all sources in their order. Files have
            their names when they are complete.
        to: the format; by the extension of ``dest`` or Parquet by default.
        layout, record_type, proto, message, on_conflict, verify_crc, on_error, partial_tail, limits, threads: as of
            :func:`scan`. Event files of TensorBoard need no ``message``.
        compression: that of the output: ``none``, ``zstd``, ``snappy``, ``gzip``, ``lz4``, ``zlib`` or ``original``, and a level
            where it has levels, such as ``zstd:9``; zstd for Parquet by default.
        schema: a Parquet, Arrow or JSON file with the columns.
        columns: the columns to convert, in this order: names, or globs such as ``image/*``.
        exclude: columns to leave out: names or globs.
        sample: infer the columns from this number of records of each sampled file instead of all.
        shards, shard_size: cut the output into this number of shards, or into shards of about this number of bytes.
        partition_by: with new shards, the keys of folders ``key=value`` of the sources that the shards are in folders of. Other
            folders become columns.
        shuffle: write the records of TFRecord files in random order, which this seed determines; without ``shards`` or
            ``shard_size``, to as many new shards as there are sources.
        fraction: convert a random part of the records, such as 0.01.
        split: write random parts of the records to folders of these names, such as ``{"train": 0.8, "test": 0.2}``.
        seed: that of the random choice of ``fraction`` and ``split``; 0 by default.
        exact: add a column with each record's wire form, so that converting back gives the same bytes.
        timestamp_unit: that of the timestamps of messages. With ``us``, which Spark reads, a time with nanoseconds is an error.
        lossy: allow changes such as float64 to float32, and warn of them.
        overwrite: replace outputs that exist.
        row_group_rows: maximum number of rows of a Parquet row group.
        bloom_filter: the columns of a Parquet output that get a Bloom filter for each row group: names or globs.
        page_index: write the range of the values of each page of a Parquet output.
        resume: continue an interrupted conversion.
        dry_run: write nothing, and return which outputs would be written from which sources, with their columns.
        quarantine: with ``on_error="skip"``, a TFRecord file for what was skipped.
        progress: as of :func:`schema`.

    Returns:
        A report with ``dest``, ``shards`` (files that were read), ``files`` (that were written), ``records``, ``bytes_in``,
        ``bytes_out``, ``lossy_changes``, ``rounded`` (floats of text files) and ``skipped``; with ``dry_run`` one with ``jobs`` (their ``sources`` and
        ``outputs``), ``columns``, ``files``, ``bytes_in`` and ``replaced``.

    Raises:
        ExistsError: an output exists, or an interrupted conversion is to be resumed.
        DataError: records fit no common columns, or a column cannot be written.
        UsageError: there is no column of a name in ``columns``, ``exclude`` or ``bloom_filter``.

    Warns:
        TfarrowWarning: records or files were skipped, or values were changed (``lossy``).

    >>> tfarrow.convert("testdata/shards/", "parquet/")["records"]
    200
    >>> tfarrow.convert("testdata/shards/", "cities.parquet", columns=["city"])["files"]
    1
    >>> tfarrow.convert("testdata/shards/", "splits/", split={"train": 0.8, "test": 0.2}, seed=1, shuffle=1)["records"]
    200
    >>> tfarrow.convert("testdata/shards/", "labels.parquet", columns=["label"], dry_run=True)["columns"]
    [{'name': 'label', 'type': 'int64'}]
    """
    options = _given(
        to=to, layout=layout, compression=compression, schema=schema, proto=proto, message=message, columns=columns, exclude=exclude, sample=sample,
        shards=shards, shard_size=shard_size, partition_by=partition_by, shuffle=shuffle, fraction=fraction, split=dict(split) if isinstance(split, Mapping) else split, seed=seed, exact=exact, record_type=record_type, on_conflict=on_conflict, timestamp_unit=timestamp_unit, lossy=lossy, overwrite=overwrite, verify_crc=verify_crc,
        row_group_rows=row_group_rows, bloom_filter=bloom_filter, page_index=page_index, resume=resume, on_error=on_error, partial_tail=partial_tail, quarantine=quarantine,
        limits=limits, threads=threads,
    )
    run = _tfarrow.plan_conversion if dry_run else _tfarrow.convert
    with progress_of(progress, "convert") as report_progress:
        return Report(run(paths(source), dest, options, report_progress))


def repair(
    source: Source,
    dest: str | os.PathLike[str],
    *,
    quarantine: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Report:
    """Copies the valid records of TFRecord files, and warns of what was lost.

    Args:
        source: as of :func:`scan`.
        dest: a folder or a TFRecord file.
        quarantine: a TFRecord file for what was lost.
        overwrite, resume, partial_tail, limits, threads, progress: as of :func:`convert`.

    Returns:
        A report as of :func:`convert`; ``report["skipped"]`` counts the lost ``records``, ``ranges`` and ``bytes``.

    Warns:
        TfarrowWarning: something was lost.

    >>> tfarrow.repair("testdata/shards/", "repaired/")["skipped"]
    {'records': 0, 'ranges': 0, 'bytes': 0}
    """
    options = _given(
        quarantine=quarantine, overwrite=overwrite, resume=resume, partial_tail=partial_tail, limits=limits, threads=threads
    )
    with progress_of(progress, "repair") as report_progress:
        return Report(_tfarrow.repair(paths(source), dest, options, report_progress))


def diff(
    left: Source,
    right: Source,
    *,
    on: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    tolerance: float | None = None,
    relative_tolerance: float | None = None,
    only_a: str | os.PathLike[str] | None = None,
    only_b: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    memory_limit: int | None = None,
    records: int = 10,
    record_type: Literal["auto", "example", "sequence-example", "example-list", "raw"] | None = None,
    on_error: Literal["fail", "skip"] | None = None,
    partial_tail: Literal["auto", "fail", "ignore"] | None = None,
    limits: Mapping[str, int] | None = None,
    progress: Progress = None,
) -> Report:
    """Compares two data sets record by record, across formats and shards.

    Args:
        left, right: as of :func:`scan`, or Parquet or Arrow files.
        on: key features, by whose values records are paired, in any order; by default they are paired by their order.
        exclude: features that are not compared: names, or globs such as ``image/*``.
        tolerance, relative_tolerance: floats are equal if they differ by at most ``tolerance + relative_tolerance * abs(right)``,
            as in ``numpy.isclose``; NaN is then equal to NaN. By default their bits must be equal.
        only_a, only_b: TFRecord files for the records without a partner of ``left`` and of ``right``; each is created only if
            there are any.
        overwrite: replace these files if they exist.
        memory_limit: with ``on``, the bytes of memory for the records of ``right``, 1 GiB by default. A larger data set is compared
            in several passes.
        records: maximum number of differing records to list.
        record_type, on_error, partial_tail, limits, progress: as of :func:`schema`.

    Returns:
        A report: ``ok`` tells whether the data sets are equal, ``report["first"]`` lists the first differences.

    >>> tfarrow.diff("testdata/shards/", "testdata/shards/").ok
    True
    >>> tfarrow.diff("testdata/scalar.tfrecord", "testdata/scalar.tfrecord", on=["id"])["keys"]["missing"]
    [0, 0]
    """
    options = _given(record_type=record_type, on_error=on_error, partial_tail=partial_tail, limits=limits)
    rules = _given(
        on=on, exclude=exclude, tolerance=tolerance, relative_tolerance=relative_tolerance, only_a=only_a, only_b=only_b,
        overwrite=overwrite, memory_limit=memory_limit,
    )
    with progress_of(progress, "diff") as report_progress:
        return Report(*_tfarrow.diff(paths(left), paths(right), options, rules, records, report_progress))


