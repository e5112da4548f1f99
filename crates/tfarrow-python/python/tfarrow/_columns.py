"""Columns of a batch for numpy and torch, over the memory of Arrow arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

__all__ = ["BytesColumn", "Ragged", "StructColumn", "column"]


class _Rows:
    """Rows that lie one after the other, from one offset to the next, and may be missing."""

    __slots__ = ("offsets", "valid")
    offsets: np.ndarray
    valid: np.ndarray | None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        if self.valid is not None and not self.valid[row]:
            return None
        return self._row(self.offsets[row], self.offsets[row + 1])

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def _row(self, start: int, end: int) -> Any:
        """A row that is not missing."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """An array of objects, one for each row. numpy's own texts and bytes have no NUL at their end."""
        return _objects(self, dtype, copy)


class BytesColumn(_Rows):
    """Byte strings or texts, one for each row, over one piece of memory.

    Attributes:
        data: all bytes, one after the other: ``uint8`` of shape ``(bytes,)``.
        offsets: where each row begins in ``data``: ``int64`` of shape ``(rows + 1,)``.
        valid: whether each row has a value: ``bool`` of shape ``(rows,)``; None if each has.
        is_text: whether the values are UTF-8.

    ``column[i]`` is a memoryview without a copy, a str if ``is_text``, or None. ``column[a:b]`` is a list of these, and
    ``numpy.asarray(column)`` an array of objects: bytes, str and None.

    >>> batch = next(tfarrow.scan("testdata/shards/").batches(2))
    >>> batch["city"][0]
    'Porto'
    >>> batch["city"].offsets
    array([ 0,  5, 12])
    >>> bytes(batch["image/encoded"][0][:4])
    b'\\x89PNG'
    """

    __slots__ = ("_view", "data", "is_text")

    def __init__(self, data: np.ndarray, offsets: np.ndarray, valid: np.ndarray | None, is_text: bool):
        self.data, self.offsets, self.valid, self.is_text = data, offsets, valid, is_text
        buffer: Any = data
        self._view = memoryview(buffer)

    def _row(self, start: int, end: int) -> memoryview | str:
        value = self._view[start:end]
        return str(value, "utf-8") if self.is_text else value

    def __reduce__(self) -> tuple[Any, ...]:
        return (BytesColumn, (self.data, self.offsets, self.valid, self.is_text))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """An array of objects: bytes, or str if ``is_text``; None where a row has none."""
        return _objects(self.tolist(), dtype, copy)

    def tolist(self) -> list[bytes | str | None]:
        """Copies the values: bytes, or str if ``is_text``; None where a row has none."""
        return [value if value is None or isinstance(value, str) else bytes(value) for value in self]

    def __repr__(self) -> str:
        return f"BytesColumn({len(self)} {'texts' if self.is_text else 'byte strings'}, {len(self.data)} bytes)"


class Ragged(_Rows):
    """Lists of different lengths, or values that some rows do not have.

    Attributes:
        values: the items of all rows, one after the other: an ndarray, a :class:`BytesColumn`, a :class:`Ragged` for lists of
            lists, or a :class:`StructColumn` for the examples of an ExampleListWithContext.
        offsets: where each row begins in ``values``: ``int64`` of shape ``(rows + 1,)``.
        valid: whether each row has a list: ``bool`` of shape ``(rows,)``; None if each has. A row without one has no items.

    ``ragged[i]`` is the items of a row, or None; ``ragged[a:b]`` is a list of these. Nothing is filled in: :meth:`dense` does that.

    >>> ragged = tfarrow.Ragged(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))
    >>> ragged[0]
    array([1, 2])
    >>> ragged.dense(fill=0)
    array([[1, 2],
           [0, 0],
           [3, 0]])
    """

    __slots__ = ("values",)

    def __init__(self, values: Any, offsets: np.ndarray, valid: np.ndarray | None = None):
        self.values, self.offsets, self.valid = values, offsets, valid

    def _row(self, start: int, end: int) -> Any:
        return self.values[start:end]

    @property
    def lengths(self) -> np.ndarray:
        """The number of items of each row: ``int64`` of shape ``(rows,)``."""
        lengths: np.ndarray = self.offsets[1:] - self.offsets[:-1]
        return lengths

    def dense(self, fill: Any, width: int | None = None) -> np.ndarray:
        """An array of shape ``(rows, width)``, in which ``fill`` stands where a row has fewer items.

        Args:
            fill: the value to fill in, which is cast to the dtype of ``values``.
            width: the number of items of a row; the longest row's by default. Longer rows are cut.

        Raises:
            TypeError: the values are no numbers.
        """
        import numpy as np

        if not isinstance(self.values, np.ndarray):
            raise TypeError("only numbers can be filled: these are " + type(self.values).__name__)
        lengths = self.lengths
        width = int(lengths.max(initial=0)) if width is None else width
        dense = np.full((len(self), width), _filler(fill, self.values.dtype))
        places = np.arange(width) < np.minimum(lengths, width)[:, None]
        items = np.arange(width) + self.offsets[:-1, None]
        dense[places] = self.values[items[places]]
        return dense

    def tolist(self) -> list[Any]:
        """Copies the rows to lists; None where a row has no list."""
        return [None if row is None else _plain(row) for row in self]

    def __repr__(self) -> str:
        return f"Ragged({len(self)} rows, {len(self.values)} values)"


class StructColumn:
    """Structs, one for each row, such as the examples of all lists of a batch.

    Attributes:
        fields: the column of each field, by name: an ndarray, a :class:`BytesColumn`, a :class:`Ragged`, or structs in turn.
        valid: whether each row has a struct: ``bool`` of shape ``(rows,)``; None if each has.

    ``structs["name"]`` is a field, ``structs[i]`` a dict of the values of a row, or None, and ``structs[a:b]`` a list of these.

    >>> batch = next(tfarrow.scan("testdata/example_list/queries.tfrecord").batches(2))
    >>> examples = batch["examples"].values
    >>> examples["title"].tolist()
    ['Arrow in Rust', 'Bows']
    >>> examples[1]["relevance"]
    array([0])
    """

    __slots__ = ("_rows", "_singles", "fields", "valid")

    def __init__(
        self, fields: dict[str, Any], rows: int, valid: np.ndarray | None = None, singles: frozenset[str] = frozenset()
    ):
        self.fields, self.valid = fields, valid
        # Numbers of which some rows have none are ragged columns of one value or none.
        self._rows, self._singles = rows, singles

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return self.fields[index]
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        if self.valid is not None and not self.valid[row]:
            return None
        return {name: self._value(name, column[row]) for name, column in self.fields.items()}

    def _value(self, name: str, value: Any) -> Any:
        if name not in self._singles:
            return value
        return None if value is None or len(value) == 0 else value[0]

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return (StructColumn, (self.fields, self._rows, self.valid, self._singles))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """An array of objects: a dict for each row, as ``structs[i]``."""
        return _objects(self, dtype, copy)

    def tolist(self) -> list[dict[str, Any] | None]:
        """Copies the rows to dicts; None where a row has none."""
        return [None if row is None else _item(row) for row in self]

    def __repr__(self) -> str:
        return f"StructColumn({len(self)} rows: {', '.join(self.fields)})"


def _objects(rows: Any, dtype: Any, copy: bool | None) -> np.ndarray:
    """An array of objects, one for each row."""
    import numpy as np

    if copy is False:
        raise ValueError("the rows have no form in numpy without a copy")
    array = np.empty(len(rows), dtype=object)
    for row, value in enumerate(rows):
        array[row] = value
    return array if dtype is None else array.astype(dtype)


def _structs(rows: int, names: list[str], valid: np.ndarray | None, fields: list[tuple[Any, ...]]) -> StructColumn:
    def values(parts: tuple[Any, ...]) -> Any:
        return column(parts, 1 if parts[0] == "numbers" and parts[-1] is None else None)

    columns = {name: values(parts) for name, parts in zip(names, fields, strict=True)}
    singles = frozenset(
        name
        for name, parts in zip(names, fields, strict=True)
        if parts[0] == "numbers" and isinstance(columns[name], Ragged)
    )
    return StructColumn(columns, rows, valid, singles)


def _plain(row: Any) -> list[Any]:
    """The items of a row of a ragged column, which are an ndarray or a list, as a list of plain values and lists."""
    if hasattr(row, "tolist"):
        plain: list[Any] = row.tolist()
        return plain
    return [_item(item) for item in row]


def _item(item: Any) -> Any:
    if isinstance(item, memoryview):
        return bytes(item)
    if isinstance(item, dict):
        return {name: _item(value) for name, value in item.items()}
    if item is None or isinstance(item, str):
        return item
    return item.item() if getattr(item, "ndim", None) == 0 else _plain(item)


def column(
    parts: tuple[Any, ...], length: int | None, fill: Any = None
) -> np.ndarray | BytesColumn | Ragged | StructColumn:
    """The column of its parts (see ``RawBatch.parts``).

    Args:
        length: number of values of each row, where that is always the same: 1 for a single value. None if it may differ.
        fill: the value of rows that have none, or fewer.
    """
    match parts:
        case ("numbers", values, valid):
            return _numbers(values, valid, length, fill)
        case ("bytes", is_text, data, offsets, valid):
            return BytesColumn(data, offsets, valid, is_text)
        case ("fixed", rows, shape, valid, items):
            return _fixed(column(items, 1), rows, shape, valid)
        case ("list", offsets, valid, items):
            # Items cannot be missing: a record has no place for that.
            return _lists(column(items, 1), offsets, valid, length, fill)
        case ("struct", rows, names, valid, fields):
            return _structs(rows, names, valid, fields)
    raise TypeError(f"unknown parts: {parts[0]}")


def _numbers(values: np.ndarray, valid: np.ndarray | None, length: int | None, fill: Any) -> np.ndarray | Ragged:
    if valid is None and (length == 1 or fill is not None):
        return values
    import numpy as np

    if fill is not None and valid is not None:
        return np.where(valid, values, _filler(fill, values.dtype))
    if valid is None:
        return Ragged(values, np.arange(len(values) + 1, dtype="int64"))
    # A row without a value has no item.
    offsets = np.zeros(len(values) + 1, dtype="int64")
    np.cumsum(valid, out=offsets[1:])
    return Ragged(values[valid], offsets, valid)


def _fixed(values: Any, rows: int, shape: tuple[int, ...], valid: np.ndarray | None) -> np.ndarray | Ragged:
    """Lists of one length by their type, or tensors of one shape. A null list has no items."""
    import numpy as np

    if isinstance(values, np.ndarray) and valid is None:
        return values.reshape(rows, *shape)
    width = math.prod(shape)
    if valid is None:
        return Ragged(values, np.arange(rows + 1, dtype="int64") * width)
    offsets = np.zeros(rows + 1, dtype="int64")
    np.cumsum(valid * width, out=offsets[1:])
    if not isinstance(values, np.ndarray):
        raise TypeError("a list of a fixed length that is null has no form in numpy: read it with to_arrow()")
    return Ragged(values.reshape(rows, width)[valid].reshape(-1), offsets, valid)


def _lists(
    values: Any, offsets: np.ndarray, valid: np.ndarray | None, length: int | None, fill: Any
) -> np.ndarray | Ragged:
    import numpy as np

    ragged = Ragged(values, offsets, valid)
    if not isinstance(values, np.ndarray):
        return ragged
    if length is not None and valid is None and (np.diff(offsets) == length).all():
        return values.reshape(len(ragged), length)
    if fill is not None and (length is None or ragged.lengths.max(initial=0) <= length):
        return ragged.dense(fill, length)
    return ragged


def _filler(fill: Any, dtype: np.dtype) -> np.ndarray:
    """A value to fill in, which numbers of this type can have."""
    import numpy as np

    filler = np.asarray(fill, dtype=dtype)
    if filler.ndim or (dtype.kind != "f" and filler != fill):
        raise ValueError(f"fill: {fill!r} is no {dtype}; a dict gives each column a value of its own")
    return filler
