"""Lazy frames of Polars over scans. All code that depends on Polars' plug-in interface, which is not stable, is here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._extras import need

if TYPE_CHECKING:
    import polars as pl

    from ._scan import Scan

__all__ = ["condition_of", "lazy"]


def lazy(rows: Scan) -> pl.LazyFrame:
    """A lazy frame of a scan. Queries of Polars read only the columns that they need, and conditions that compare columns with
    numbers and texts are evaluated while the records are read."""
    polars = need("polars", "polars")
    from polars.io.plugins import register_io_source

    schema = polars.DataFrame(rows.limit(0)).schema

    def read(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        found = rows
        if predicate is not None and (condition := condition_of(predicate, schema)) is not None:
            found = found.where(condition)
        if with_columns is not None:
            found = found.select(*with_columns)
        if n_rows is not None and predicate is None:
            found = found.limit(n_rows)
        left = n_rows
        for batch in found.batches(batch_size):
            frame: pl.DataFrame = polars.DataFrame(batch._raw)
            # Polars does not look at the rows again, and the condition above may be weaker than the predicate.
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= len(frame)
            yield frame
            if left == 0:
                return

    return register_io_source(read, schema=schema, validate_schema=False, is_pure=True)


def condition_of(predicate: pl.Expr, schema: pl.Schema) -> str | None:
    """A condition in SQL that is true for all rows for which a predicate is; None if there is none that helps.

    It compares columns of integers and texts with literals. Polars and SQL order NaN and convert floats in different ways, so
    that Polars alone compares floats. The predicate's tree is read from its JSON. Unknown parts of it are left out, so
    that a new version of Polars makes reading slower, and not wrong.
    """
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:
        # Predicates with Python functions have no JSON.
        return None
    text = need("polars", "polars").String
    kinds = {name: int if kind.is_integer() else str if kind == text else None for name, kind in schema.items()}
    return _condition(tree, kinds)


_COMPARISONS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}


def _condition(tree: Any, kinds: Mapping[str, type | None]) -> str | None:
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
            parts = [part for part in (_condition(left, kinds), _condition(right, kinds)) if part is not None]
            return " AND ".join(parts) or None
        case {"BinaryExpr": {"left": {"Column": str(name)}, "op": op, "right": {"Literal": literal}}} if op in _COMPARISONS:
            value = _value(literal)
            # A bool is an int in Python, and none here.
            if value is not None and type(value) is kinds.get(name):
                return f"{_quoted(name)} {_COMPARISONS[op]} {_literal(value)}"
    return None


def _value(literal: Any) -> int | str | None:
    """The value of a literal: an integer of 64 bits, or a text."""
    match literal:
        case {"Dyn": {"Int": int(value)}} | {"Scalar": {"Int64": int(value)}} | {"Scalar": {"Int32": int(value)}}:
            return value if -(2**63) < value < 2**63 else None
        case {"Dyn": {"Str": str(value)}} | {"Scalar": {"String": str(value)}}:
            return value
    return None


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
