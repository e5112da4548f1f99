"""Writing of rows as TFRecord files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from . import _tfarrow
from ._extras import need

__all__ = ["write"]


def write(
    data: Any,
    target: str | os.PathLike[str],
    *,
    record_type: Literal["example", "sequence-example", "raw"] | None = None,
    compression: Literal["none", "gzip", "zlib"] | None = None,
    shards: int | None = None,
    overwrite: bool = False,
    lossy: bool = False,
) -> int:
    """Writes rows as records of TFRecord files.

    Args:
        data: anything with ``__arrow_c_stream__`` (a scan, a result, a table of pyarrow, a frame of Polars or pandas), a batch
            of pyarrow, an iterable of such batches, or a dict of arrays. The last three need pyarrow.
        target: a file such as ``train.tfrecord``, a folder with a slash at its end, or a URL of a store. Files have their names
            when all of them are complete.
        record_type: the type of the records; ``"sequence-example"`` for columns of lists of lists.
        compression: that of the files; by the extension of ``target`` by default.
        shards: the number of files, with names such as ``train-00000-of-00008.tfrecord``.
        overwrite: replace files that exist.
        lossy: allow changes such as float64 to float32.

    Returns:
        The number of records.

    Raises:
        ExistsError: a file exists.
        SqlError, DataError: a column has a type that no feature has; the text says how to convert it.
    """
    options = {
        "record_type": record_type,
        "compression": compression,
        "shards": shards,
        "overwrite": overwrite or None,
        "lossy": lossy or None,
    }
    return _tfarrow.write(as_stream(data), os.fspath(target), options)


def as_stream(data: Any) -> Any:
    """An object with ``__arrow_c_stream__`` and these rows."""
    if hasattr(data, "__arrow_c_stream__"):
        return data
    pa = need("pyarrow", "pyarrow")
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)])
    if isinstance(data, Mapping):
        return pa.table({name: _array(pa, values) for name, values in data.items()})
    if isinstance(data, Iterable):
        batches = iter(data)
        first = next(batches, None)
        if first is None:
            raise ValueError("no batches to write: an empty iterable has no columns")
        first = pa.record_batch(first)

        def rest():
            yield first
            for batch in batches:
                yield pa.record_batch(batch)

        return pa.RecordBatchReader.from_batches(first.schema, rest())
    raise TypeError(
        f"cannot write {type(data).__name__}: expected an object with __arrow_c_stream__, a dict of arrays, or batches"
    )


def _array(pa, values):
    """Values of a column. Each row of an array of two dimensions is a list."""
    if getattr(values, "ndim", 1) == 2:
        width = values.shape[1]
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), width) if width else _empty_lists(pa, values)
    return values


def _empty_lists(pa, values):
    return pa.array([[]] * len(values), pa.list_(pa.from_numpy_dtype(values.dtype)))
