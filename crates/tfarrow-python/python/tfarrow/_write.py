"""Writing of rows as TFRecord files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from . import _tfarrow
from ._columns import BytesColumn, Ragged, StructColumn
from ._extras import need
from ._scan import Scan
from ._tables import Batches, loaded, table_of
from ._warn import warn
from .errors import UsageError

__all__ = ["write"]

# Names of files of other formats, and what writes them.
_QUERY = "tfarrow.sql(\"COPY t TO '{}'\", t=data)"
_WRITERS = {
    **dict.fromkeys((".parquet", ".arrow", ".csv", ".json"), _QUERY),
    **dict.fromkeys((".feather", ".ipc", ".arrows"), "pyarrow.ipc"),
    **dict.fromkeys((".jsonl", ".ndjson"), "tfarrow.sql(\"COPY t TO '{}' STORED AS JSON\", t=data)"),
    **dict.fromkeys((".npz", ".npy"), "numpy.save or numpy.savez"),
}


def write(
    data: Any,
    target: str | os.PathLike[str],
    *,
    record_type: Literal["example", "sequence-example", "example-list", "raw"] | None = None,
    compression: Literal["none", "gzip", "zlib", "snappy"] | None = None,
    shards: int | None = None,
    overwrite: bool = False,
    strict: bool = False,
    lossy: bool = False,
) -> int:
    """Writes rows as records of TFRecord files.

    Args:
        data: one of these; all but the first need pyarrow:

            - anything with ``__arrow_c_stream__``: a scan, a result, a table of pyarrow, a frame of Polars or pandas;
            - a lazy frame of Polars, a data set of pyarrow or of Hugging Face;
            - a dict of the columns by the names of their features: arrays, tensors, lists, and columns of a batch. A row of an
              array of more dimensions is the list of its values in the order of C, which ``tf.io.parse_example`` reads back
              with its shape; with ``record_type="sequence-example"``, the second dimension is that of the steps;
            - a batch of pyarrow, or an iterable of such batches, whose columns are those of the first;
            - an iterable of rows, each a dict of values, as ``to_pylist`` and :func:`tfarrow.head` return them. All rows are
              held in memory.

        target: a file such as ``train.tfrecord``, a folder with a slash at its end, or a URL of a store. Files have their names
            when all of them are complete. The name of a file of another format, such as ``train.parquet``, is an error.
        record_type: the type of the records; ``"sequence-example"`` for columns of lists of lists.
        compression: that of the files; by the extension of ``target`` by default.
        shards: the number of files, with names such as ``train-00000-of-00008.tfrecord``. Rows are dealt in turn: row 0 to the
            first file, row 1 to the second.
        overwrite: replace files that exist.
        strict: refuse float64 values that float32 does not hold exactly. By default they are rounded, with a warning of how many.
        lossy: allow all changes of values, such as large uint64 to negative integers, with a warning of how many.

    Returns:
        The number of records.

    Raises:
        ExistsError: a file exists.
        DataError: a column has a type that no feature has, or a value that the feature cannot hold; the text says how to convert
            it. Or a batch has other columns or types than the first: no column is cast. Or a scan does not have all features of
            its records, because it has sampled them: nothing is written.
        TypeError: ``data`` is none of these.
        Exception: what ``data`` raises while it is iterated, as it is.

    Warns:
        TfarrowWarning: float64 values were rounded; a frame of pandas has NaN, which it exports as missing values.

    >>> import numpy as np
    >>> tfarrow.write({"id": np.arange(10), "vector": np.zeros((10, 4), "float32")}, "out/train.tfrecord", shards=2)
    10
    >>> tfarrow.scan("out/train-00001-of-00002.tfrecord").to_numpy()["id"]
    array([1, 3, 5, 7, 9])
    """
    if strict and lossy:
        raise UsageError("strict refuses changes that lossy allows: give one of them")
    name = os.fspath(target)
    _check_format(name)
    options = {
        "record_type": record_type,
        "compression": compression,
        "shards": shards,
        "overwrite": overwrite or None,
        "round_floats": not strict or None,
        "lossy": lossy or None,
    }
    return _tfarrow.write(_rows_of(data, record_type == "sequence-example"), name, options)


def _check_format(name: str) -> None:
    """Refuses the name of a file of another format."""
    plain = name.lower()
    for compression in (".gz", ".zst", ".bz2", ".xz"):
        plain = plain.removesuffix(compression)
    extension = os.path.splitext(plain)[1]
    if extension in _WRITERS:
        writer = _WRITERS[extension].format(name.replace("'", "''"))
        raise UsageError(f"{name}: write makes TFRecord files, and this is the name of another format: {writer} writes it")


def _rows_of(data: Any, has_steps: bool) -> Any:
    """The rows to write, as the table of a query."""
    if isinstance(data, Scan):
        return _WholeScan(data)
    if isinstance(data, loaded("pandas", "DataFrame")):
        _warn_of_nan(data)
    table = table_of(data)
    if table is not None:
        return table
    if hasattr(data, "__arrow_c_array__"):
        return _batches_of([data])
    if isinstance(data, Mapping):
        return _table(data, has_steps)
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return _rows_of_items(data, has_steps)
    raise TypeError(
        f"cannot write {type(data).__name__}: expected an object with __arrow_c_stream__, a dict of arrays, batches, or dicts of rows"
    )


class _WholeScan:
    """The records of a scan with all of their features."""

    def __init__(self, scan: Scan):
        self._scan = scan

    def _tfarrow_batches(self) -> tuple[Any, Iterator[Any]]:
        return self._scan.all_batches()


def _rows_of_items(data: Iterable[Any], has_steps: bool) -> Any:
    """The rows of an iterable of batches or of rows."""
    items = iter(data)
    first = next(items, None)
    if first is None:
        raise ValueError("nothing to write: an empty iterable has no columns")

    def again() -> Iterator[Any]:
        yield first
        yield from items

    if hasattr(first, "__arrow_c_array__"):
        return _batches_of(again())
    if not isinstance(first, Mapping):
        raise TypeError(f"cannot write items of type {type(first).__name__}: expected batches of Arrow, or dicts of rows")
    rows = list(again())
    names = list(dict.fromkeys(name for row in rows for name in row))
    return _table({name: [row.get(name) for row in rows] for name in names}, has_steps)


def _batches_of(batches: Iterable[Any]) -> Batches:
    """The rows of batches, whose columns are those of the first."""
    pa, batches = need("pyarrow", "pyarrow"), iter(batches)
    first = pa.record_batch(next(batches))

    def rows() -> Iterator[Any]:
        yield first
        for batch in batches:
            yield pa.record_batch(batch)

    return Batches(first.schema, rows, reads_once=True)


def _table(columns: Mapping[str, Any], has_steps: bool) -> Any:
    pa = need("pyarrow", "pyarrow")
    return table_of(pa.table({name: _column(pa, name, values, has_steps) for name, values in columns.items()}))


def _column(pa: Any, name: str, values: Any, has_steps: bool) -> Any:
    """The values of a column as an array of pyarrow, or what pyarrow makes one of."""
    if isinstance(values, BytesColumn):
        return pa.array(values.tolist(), pa.large_string() if values.is_text else pa.large_binary())
    if isinstance(values, StructColumn):
        fields = [pa.array(_column(pa, field, found, False)) for field, found in values.fields.items()]
        missing = None if values.valid is None else pa.array(~values.valid)
        return pa.StructArray.from_arrays(fields, names=list(values.fields), mask=missing)
    if isinstance(values, Ragged):
        items = pa.array(_column(pa, name, values.values, False))
        return _lists(pa, items, values.offsets, values.valid)
    if isinstance(values, loaded("pandas", "Series")):
        _warn_of_nan({name: values})
        return values
    if isinstance(values, (list, tuple)):
        return [_flat(value) for value in values]
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__") or not hasattr(values, "__array__"):
        return values
    return _array(pa, values, has_steps)


def _array(pa: Any, values: Any, has_steps: bool) -> Any:
    """An array of numpy, or a tensor, as an array of pyarrow."""
    import numpy as np

    values = np.asarray(values)
    if values.ndim < 2:
        return values
    if values.ndim > 2 and has_steps:
        rows, steps = values.shape[:2]
        items = _array(pa, values.reshape(rows * steps, -1), False)
        return _lists(pa, items, np.arange(rows + 1) * steps)
    width = int(np.prod(values.shape[1:]))
    return _lists(pa, pa.array(values.reshape(-1)), np.arange(len(values) + 1) * width)


def _lists(pa: Any, items: Any, offsets: Any, valid: Any = None) -> Any:
    """Lists of these items, from one offset to the next."""
    missing = None if valid is None else pa.array(~valid)
    if offsets[-1] < 2**31:
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, mask=missing)
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), items, mask=missing)


def _flat(value: Any) -> Any:
    """The value of a row. That of an array or tensor is the list of its values in the order of C."""
    if not hasattr(value, "__array__") or isinstance(value, (str, bytes)):
        return value
    import numpy as np

    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array.reshape(-1)


def _warn_of_nan(columns: Any) -> None:
    """Warns of NaN in columns of pandas, which pandas exports as missing values, and which may mean both."""
    for name, column in columns.items():
        count = int(column.isna().sum()) if getattr(column.dtype, "kind", "") == "f" and _is_numpy(column.dtype) else 0
        if count:
            warn(
                f"column {name!r}: {count} NaN {'is a missing value' if count == 1 else 'are missing values'} in the records, as"
                " pandas exports them: a dict with the column's to_numpy() keeps NaN, and a nullable type such as Float32 says"
                " that values are missing"
            )


def _is_numpy(dtype: Any) -> bool:
    import numpy as np

    return isinstance(dtype, np.dtype)
