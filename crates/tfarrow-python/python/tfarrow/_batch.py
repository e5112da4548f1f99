"""Batches of rows as numpy arrays, torch tensors or Arrow."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from typing import TYPE_CHECKING, Any

from . import _tfarrow
from ._columns import BytesColumn, Ragged, StructColumn, column
from .errors import DataError, UsageError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import torch

__all__ = ["Batch"]


class Batch:
    """Consecutive rows of a scan: a mapping from the names of columns to their values.

    ``batch["x"]`` is:

    - an ndarray of shape ``(rows,)`` for numbers that each row has once;
    - an ndarray of shape ``(rows, length)`` for lists of numbers of one length;
    - a :class:`BytesColumn` for bytes and texts;
    - a :class:`Ragged` for other lists, and for numbers that some rows do not have. ``fill`` of
      :meth:`Scan.batches` makes arrays of these if they are numbers;
    - a :class:`StructColumn` for structs, and a :class:`Ragged` of one for lists of structs.

    Numbers have the dtype of their Arrow type: int64 and float32 for features. The values of numbers without nulls, of bytes
    and of texts are not copied; offsets are copied to int64.

    The form of a column is the same in all batches of a scan: the records that the schema was inferred from decide it. A row
    that does not fit the form is a :class:`DataError`. In a result of SQL, each batch decides the form.

    The arrays of numbers of a scan may be written to, since their memory is that of this batch alone; those of a result of
    SQL, and ``BytesColumn.data``, are read-only. A batch is read as arrays or as Arrow, not as both: the second is a
    ValueError if arrays were read first. Arrays that are read after Arrow are read-only.

    Raises:
        KeyError: there is no column of this name.
        TypeError: the column has a type without a form in numpy, such as a date.
        UsageError: two columns of a result of SQL have the same name.
        DataError: a row does not fit the form of its column.

    >>> batch = next(tfarrow.scan("testdata/shards/").batches(3))
    >>> batch["price"]
    array([ 1.68, 42.62, 40.01], dtype=float32)
    >>> batch["embedding"].shape
    (3, 8)
    >>> batch["city"].tolist()
    ['Porto', 'Nairobi', 'Gdańsk']
    """

    def __init__(self, raw: _tfarrow.RawBatch, lengths: dict[str, int] | None, fill: Any):
        self._raw, self._lengths, self._fill = raw, lengths, fill
        self._fills = fill if isinstance(fill, Mapping) else None
        names = raw.names
        self._places = {name: place for place, name in enumerate(names)}
        if len(self._places) < len(names):
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            raise UsageError(f"two columns of the result have the name {twice!r}: give them other names with AS in the query")
        self._read: dict[str, np.ndarray | BytesColumn | Ragged | StructColumn] = {}

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self._raw.num_rows

    def __getitem__(self, name: str) -> np.ndarray | BytesColumn | Ragged | StructColumn:
        found = self._read.get(name)
        if found is None:
            found = self._read[name] = self._column(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    # The methods of a Mapping, whose subclass a batch is not: Polars takes a Mapping for a dict of columns, and does not look
    # for Arrow.

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def keys(self) -> KeysView[str]:
        """The names of the columns."""
        return self._places.keys()

    def values(self) -> Iterator[np.ndarray | BytesColumn | Ragged | StructColumn]:
        """The values of the columns."""
        return map(self.__getitem__, self)

    def items(self) -> Iterator[tuple[str, np.ndarray | BytesColumn | Ragged | StructColumn]]:
        """The names and the values of the columns."""
        return zip(self, self.values(), strict=True)

    def get(self, name: str, default: Any = None) -> Any:
        """The values of a column, or ``default`` if there is none of this name."""
        return self[name] if name in self else default

    def _column(self, name: str) -> np.ndarray | BytesColumn | Ragged | StructColumn:
        fill = self._fill if self._fills is None else self._fills.get(name)
        parts = self._raw.parts(self._places[name])
        if self._lengths is None:
            # The rows of a query were not sampled: the batch itself decides.
            length = _length(parts)
            return column(parts, length, fill)
        length = self._lengths.get(name)
        found = column(parts, length, fill)
        if length is not None and isinstance(found, Ragged):
            # A value that is filled in makes rows longer, and not shorter.
            row = next(row for row, items in enumerate(found.lengths) if items != length and (fill is None or items > length))
            remedy = f"fill={{{name!r}: value}} fills it in, or " if found.lengths[row] < length else ""
            raise DataError(
                f"column {name!r}: row {row} of the batch has {found.lengths[row]} values; all sampled records have {length}; "
                f'{remedy}sample="all" infers the form from all records',
                feature=name,
            )
        return found

    def to_numpy(self) -> dict[str, np.ndarray | BytesColumn | Ragged | StructColumn]:
        """All columns, as ``batch[name]`` returns them."""
        return {name: self[name] for name in self._places}

    def to_torch(self) -> dict[str, torch.Tensor | BytesColumn | Ragged | StructColumn]:
        """All columns, with a tensor for each array, without a copy. The values, offsets and ``valid`` of ragged columns are
        tensors; bytes and texts remain a :class:`BytesColumn`."""
        from ._extras import need

        torch = need("torch", "torch")
        return {name: _tensor(torch, values) for name, values in self.items()}

    def to_arrow(self) -> pa.RecordBatch:
        """The rows as a batch of pyarrow, without a copy.

        Raises:
            ValueError: columns of the batch were read as arrays, which may have been written to.

        >>> next(tfarrow.scan("testdata/shards/").batches(3)).to_arrow().num_rows
        3
        """
        from ._extras import need

        return need("pyarrow", "pyarrow").record_batch(self._raw)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Copies the rows: a dict for each, with numbers, bytes, texts and lists of them; None where a row has no value."""
        import numpy as np

        columns = {}
        for name, place in self._places.items():
            parts = self._raw.parts(place)
            found = column(parts, None)
            if isinstance(found, Ragged) and parts[0] == "numbers":
                columns[name] = [None if row is None or len(row) == 0 else row[0].item() for row in found]
            else:
                columns[name] = found.tolist()
            assert not isinstance(found, np.ndarray) or len(found) == self.num_rows
        return [{name: values[row] for name, values in columns.items()} for row in range(self.num_rows)]

    def __arrow_c_schema__(self) -> object:
        return self._raw.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._raw.__arrow_c_array__(requested_schema)

    def __repr__(self) -> str:
        return f"Batch({self.num_rows} rows: {', '.join(self)})"


def _length(parts: tuple[Any, ...]) -> int | None:
    """The number of values of each row of these parts; None where it differs."""
    match parts:
        case ("numbers", _, None):
            return 1
        case ("list", offsets, None, ("numbers", *_)):
            lengths = offsets[1:] - offsets[:-1]
            return int(lengths[0]) if len(lengths) and (lengths == lengths[0]).all() else None
    return None


def _tensor(torch: Any, values: Any) -> Any:
    if isinstance(values, BytesColumn):
        return values
    import numpy as np

    if isinstance(values, np.ndarray):
        # The arrays of a query are not its own, and torch has no tensors that may not be written to.
        return torch.from_numpy(values if values.flags.writeable else values.copy())
    if isinstance(values, Ragged):
        valid = None if values.valid is None else torch.from_numpy(np.array(values.valid))
        return Ragged(_tensor(torch, values.values), torch.from_numpy(values.offsets), valid)
    if isinstance(values, StructColumn):
        fields = {name: _tensor(torch, field) for name, field in values.fields.items()}
        return StructColumn(fields, len(values), values.valid, values._singles)
    return values
