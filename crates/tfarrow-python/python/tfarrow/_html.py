"""Values for notebooks, as HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._jobs import Schema, Statistics
    from ._scan import Rows

_ROWS = 10


def table_html(names: list[str], rows: list[list[Any]], caption: str = "") -> str:
    """A table whose cells are escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    caption = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, (bytes, memoryview)):
        return f"<{len(cell):,} bytes>"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    if isinstance(cell, list) and len(cell) > 8:
        return f"[{', '.join(map(_shown, cell[:6]))}, … {len(cell) - 6} more]"
    if isinstance(cell, list):
        return f"[{', '.join(map(_shown, cell))}]"
    text = str(cell)
    return text if len(text) <= 100 else text[:99] + "…"


def rows_html(rows: Rows) -> str:
    """The first rows of a scan or a result."""
    found: list[dict[str, Any]] = []
    names: list[str] = []
    for batch in rows.batches(_ROWS + 1):
        names = list(batch)
        found = batch.to_pylist()
        break
    more = len(found) > _ROWS
    caption = f"the first {_ROWS} rows" if more else f"{len(found)} rows"
    return table_html(names, [[row[name] for name in names] for row in found[:_ROWS]], caption)


def schema_html(schema: Schema) -> str:
    """The features of a schema."""
    caption = schema.text().splitlines()[0]
    features = [feature for feature in schema.features if "present" in feature]
    if not features:
        return text_html(schema.text())
    rows = [
        [
            feature["name"],
            feature["role"],
            feature["kind"] or ", ".join(feature.get("kinds") or ["none"]),
            feature["present"],
            feature["missing"],
            feature["unset"],
            _range(feature.get("steps")),
            _range(feature.get("lengths")),
            feature["arrow"] or "no column",
        ]
        for feature in features
    ]
    names = ["feature", "role", "kind", "present", "missing", "unset", "steps", "lengths", "arrow"]
    return table_html(names, rows, caption)


def _range(bounds: list[int] | None) -> str:
    if bounds is None:
        return ""
    least, most = bounds
    return str(least) if least == most else f"{least}..{most}"


def statistics_html(statistics: Statistics) -> str:
    """The statistics of each feature and kind."""
    names = ["feature", "kind", "missing", "min", "median", "max", "mean", "std", "distinct", "most frequent"]
    rows = []
    for feature in statistics["features"]:
        for kind in feature["kinds"]:
            numbers, strings = kind.get("numbers") or {}, kind.get("strings") or {}
            top = next(iter(strings.get("top") or []), None)
            median, distinct = _shown(numbers.get("median")), _shown(strings.get("distinct"))
            if numbers.get("sampled"):
                median = f"~{median}"
            if strings and not strings["is_distinct_exact"]:
                distinct = f"~{distinct}"
            rows.append(
                [
                    feature["name"],
                    kind["kind"],
                    statistics["records"] - feature["present"],
                    numbers.get("min"),
                    median,
                    *(numbers.get(name) for name in ("max", "mean", "std_dev")),
                    distinct,
                    top["value"] if top else None,
                ]
            )
    return table_html(names, rows, f"{statistics['records']:,} records")


def text_html(text: str) -> str:
    """A text as it is."""
    return f"<pre>{escape(text)}</pre>"


def frame_html(page: str) -> str:
    """A page in a frame of its own, so that its styles and scripts do not meet those of the notebook."""
    return f'<iframe srcdoc="{escape(page, quote=True)}" style="width:100%;height:40em;border:0" sandbox="allow-scripts"></iframe>'
