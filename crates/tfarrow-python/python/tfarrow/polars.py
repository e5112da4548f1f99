"""Lazy frames of Polars over scans. All code that depends on Polars' plug-in interface, which is not stable, is here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._extras import need

if TYPE_CHECKING:
    import polars as pl

    from ._scan import Rows

__all__ = ["condition_of", "lazy"]


def lazy(rows: Rows) -> pl.LazyFrame:
    """A lazy frame of a scan. Queries of Polars read only the columns that they need, and conditions that compare columns with
    numbers and texts are evaluated while the records are read."""
    pl = need("polars", "polars")
    from polars.io.plugins import register_io_source

    def read(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        found = rows
        if predicate is not None and (condition := condition_of(predicate)) is not None:
            found = found.where(condition)
        if with_columns is not None:
            found = found.select(*with_columns)
        if n_rows is not None and predicate is None:
            found = found.limit(n_rows)
        left = n_rows
        for batch in found.batches(batch_size):
            frame = pl.DataFrame(batch._raw)
            # Polars does not look at the rows again, and the condition above may be weaker than the predicate.
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= len(frame)
            yield frame
            if left == 0:
                return

    return register_io_source(read, schema=pl.DataFrame(rows.limit(0)).schema, validate_schema=False, is_pure=True)


_COMPARISONS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}


def condition_of(predicate: pl.Expr) -> str | None:
    """A condition in SQL that is true for all rows for which a predicate is; None if there is none that helps.

    The predicate's tree is read from its JSON. What is not known there is left out, so that a new version of Polars makes
    reading slower, and not wrong.
    """
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:
        # Predicates with Python functions have no JSON.
        return None
    return _condition(tree)


def _condition(tree: Any) -> str | None:
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            parts = [part for part in (_condition(left), _condition(right)) if part is not None]
            return " AND ".join(parts) or None
        case {"BinaryExpr": {"left": {"Column": str(name)}, "op": op, "right": value}} if op in _COMPARISONS:
            literal = _literal(value)
            return None if literal is None else f"{_quoted(name)} {_COMPARISONS[op]} {literal}"
    return None


def _literal(value: Any) -> str | None:
    match value:
        case {"Literal": {"Dyn": {"Int": int(number)}}} | {"Literal": {"Scalar": {"value": {"Int64" | "Int32": int(number)}}}}:
            return str(number) if abs(number) < 2**63 else None
        case {"Literal": {"Dyn": {"Str": str(text)}}} | {"Literal": {"Scalar": {"value": {"String": str(text)}}}}:
            return "'" + text.replace("'", "''") + "'"
    # Floats are compared by Polars alone: a float32 column and a literal meet in other types there.
    return None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
