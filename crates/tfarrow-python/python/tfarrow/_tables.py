"""Objects with rows as the tables of a query."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from .errors import UsageError

__all__ = ["Batches", "loaded", "table_of"]

# The number of rows of a batch of a data set of Hugging Face.
_ROWS = 1000


class Batches:
    """Rows as batches that have schemas of their own, each of which is compared with the schema of the rows.

    An array of a stream of Arrow's C interface has no type: a stream that announces other types than its arrays have would be
    read as numbers and bytes that it does not have. A ``RecordBatchReader`` of pyarrow does not compare them.
    """

    def __init__(self, schema: Any, read: Callable[[], Iterator[Any]], reads_once: bool = False):
        self._schema, self._read, self._reads_once, self._is_read = schema, read, reads_once, False

    def _tfarrow_batches(self) -> tuple[Any, Iterator[Any]]:
        """The schema, and an iterator of objects with ``__arrow_c_array__``. Called for each scan of a query."""
        if self._reads_once and self._is_read:
            raise UsageError("a table that is an iterator can be read once, and the query reads it again: make a table of it")
        self._is_read = True
        return self._schema, self._read()


def table_of(data: Any) -> Any:
    """The table of an object, which has ``_tfarrow_batches`` or ``__arrow_c_stream__``; None for other objects."""
    if hasattr(data, "_tfarrow_batches"):
        return data
    if isinstance(data, loaded("pyarrow", "Table")):
        return Batches(data.schema, lambda: iter(data.to_batches()))
    if isinstance(data, loaded("pyarrow.dataset", "Dataset", "Scanner")):
        schema = getattr(data, "projected_schema", None) or data.schema
        return Batches(schema, lambda: data.to_batches())
    if isinstance(data, loaded("polars", "LazyFrame")):
        return _Lazy(data)
    if isinstance(data, loaded("datasets", "Dataset", "IterableDataset")):
        return _of_hugging_face(data)
    if hasattr(data, "__next__") and hasattr(getattr(data, "schema", None), "__arrow_c_schema__"):
        return Batches(data.schema, lambda: data, reads_once=True)
    return data if hasattr(data, "__arrow_c_stream__") else None


class _Lazy:
    """The rows of a lazy frame of Polars, which runs for each scan of a query."""

    def __init__(self, frame: Any):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._frame.collect().__arrow_c_stream__(requested_schema)


def loaded(module: str, *names: str) -> Any:
    """Classes of a package, if it was imported: otherwise no object is of them."""
    found = sys.modules.get(module)
    return tuple(getattr(found, name) for name in names if hasattr(found, name))


def _of_hugging_face(data: Any) -> Any:
    """The rows of a data set of Hugging Face, as its Arrow tables."""
    tables = data.with_format("arrow")

    def batches() -> Iterator[Any]:
        for table in tables.iter(batch_size=_ROWS):
            yield from table.to_batches()

    if data.features is not None:
        return Batches(data.features.arrow_schema, batches)
    # The first table has the columns.
    first = next(iter(tables.iter(batch_size=1)), None)
    if first is None:
        raise UsageError("the data set has no rows, and so no columns")
    return Batches(first.schema, batches)
