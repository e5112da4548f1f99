"""Objects with rows as the tables of a query."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Batches", "table_of"]


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
    """The table of an object: one with ``_tfarrow_batches``, or the object itself, which has ``__arrow_c_stream__``."""
    pa = sys.modules.get("pyarrow")
    if pa is not None and isinstance(data, pa.Table):
        return Batches(data.schema, lambda: iter(data.to_batches()))
    if hasattr(data, "__next__") and hasattr(getattr(data, "schema", None), "__arrow_c_schema__"):
        return Batches(data.schema, lambda: data, reads_once=True)
    return data
