"""Writing of rows as TFRecord files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from . import _tfarrow
from ._extras import need
from ._tables import Batches, table_of

__all__ = ["write"]


def write(
    data: Any,
    target: str | os.PathLike[str],
    *,
    record_type: Literal["example", "sequence-example", "example-list", "raw"] | None = None,
    compression: Literal["none", "gzip", "zlib", "snappy"] | None = None,
    shards: int | None = None,
    overwrite: bool = False,
    lossy: bool = False,
) -> int:
    """Writes rows as records of TFRecord files.

    Args:
        data: anything with ``__arrow_c_stream__`` (a scan, a result, a table of pyarrow, a frame of Polars or pandas), a batch
            of pyarrow, an iterable of such batches, or a dict of arrays or lists by the names of their features. The last
            three need pyarrow. Each row of an array of two dimensions is a list.
        target: a file such as ``train.tfrecord``, a folder with a slash at its end, or a URL of a store. Files have their names
            when all of them are complete.
        record_type: the type of the records; ``"sequence-example"`` for columns of lists of lists.
        compression: that of the files; by the extension of ``target`` by default.
        shards: the number of files, with names such as ``train-00000-of-00008.tfrecord``. Rows are dealt in turn: row 0 to the
            first file, row 1 to the second.
        overwrite: replace files that exist.
        lossy: allow changes of values, such as float64 to float32 where it is not exact.

    Returns:
        The number of records.

    Raises:
        ExistsError: a file exists.
        DataError: a column has a type that no feature has, or a value that the feature cannot hold exactly; the text says how
            to convert it. Or a batch has other columns or types than the first: no column is cast.
        TypeError: ``data`` is none of these.
        Exception: what ``data`` raises while it is iterated, as it is.

    >>> import numpy as np
    >>> tfarrow.write({"id": np.arange(10), "vector": np.zeros((10, 4), "float32")}, "out/train.tfrecord", shards=2)
    10
    >>> tfarrow.scan("out/train-00001-of-00002.tfrecord").to_numpy()["id"]
    array([1, 3, 5, 7, 9])
    """
    options = {
        "record_type": record_type,
        "compression": compression,
        "shards": shards,
        "overwrite": overwrite or None,
        "lossy": lossy or None,
    }
    return _tfarrow.write(_rows_of(data), os.fspath(target), options)


def _rows_of(data: Any) -> Any:
    """The rows to write, as the table of a query."""
    if hasattr(data, "_tfarrow_batches") or hasattr(data, "__arrow_c_stream__"):
        return table_of(data)
    if hasattr(data, "__arrow_c_array__"):
        pa = need("pyarrow", "pyarrow")
        return table_of(pa.Table.from_batches([pa.record_batch(data)]))
    if isinstance(data, Mapping):
        pa = need("pyarrow", "pyarrow")
        return table_of(pa.table({name: _array(pa, values) for name, values in data.items()}))
    if isinstance(data, Iterable):
        return _batches_of(data)
    raise TypeError(
        f"cannot write {type(data).__name__}: expected an object with __arrow_c_stream__, a dict of arrays, or batches"
    )


def _batches_of(data: Iterable[Any]) -> Batches:
    """The rows of an iterable of batches, whose columns are those of the first."""
    pa, batches = need("pyarrow", "pyarrow"), iter(data)
    first = next(batches, None)
    if first is None:
        raise ValueError("no batches to write: an empty iterable has no columns")
    first = pa.record_batch(first)

    def rows() -> Iterator[Any]:
        yield first
        for batch in batches:
            yield pa.record_batch(batch)

    return Batches(first.schema, rows, reads_once=True)


def _array(pa: Any, values: Any) -> Any:
    """Values of a column. Each row of an array of two dimensions is a list."""
    if getattr(values, "ndim", 1) == 2:
        rows, width = values.shape
        if width == 0:
            return pa.array([[]] * rows, pa.list_(pa.from_numpy_dtype(values.dtype)))
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), width)
    return values
