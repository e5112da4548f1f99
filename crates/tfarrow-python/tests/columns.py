"""A data set with each type of column, for the tests of other packages."""

import tfarrow
from support import example, field, feature, write_records

COUNT = 12


def _examples():
    for row in range(COUNT):
        features = {
            "key": [row],
            "i": [row * 10**12 - 5],
            "f": [[row / 4, float("inf"), -0.0][row % 3]],
            "t": [f"tëxt {row % 5}"],
            "b": [bytes([255, row])],
            "fixed": [row, row + 1, row + 2],
            "ragged_i": list(range(row % 4)) or None,
            "ragged_f": [float(k) for k in range(row % 3 + 1)],
            "ragged_t": [f"ü{k}" for k in range(row % 3)] or None,
            "ragged_b": [bytes([200 + k]) for k in range(row % 3 + 1)],
        }
        if row % 2:
            features |= {"null_i": [row], "null_f": [float(row)], "null_t": [f"ö{row}"], "null_b": [bytes([254, row])]}
        if row % 3 == 0:
            features |= {"null_list": [row, row]}
        # Features without a kind have a null in their column.
        yield example(**features)


def _sequences():
    for row in range(COUNT):
        context = {"key": [row], "t": [f"tëxt {row}"]} | ({"null_i": [row]} if row % 2 else {})
        lists = {"steps_i": [[k] * k or None for k in range(row % 4)], "steps_f": [[0.5, float(k)] for k in range(row % 3)], "steps_t": [[f"ö{k}"] for k in range(row % 3)]}
        if row % 2:
            lists["steps_b"] = [[bytes([255, k])] for k in range(3)]
        entries = [field(1, field(1, name.encode()) + field(2, feature(values))) for name, values in context.items()]
        steps = [field(1, field(1, name.encode()) + field(2, b"".join(field(1, feature(step)) for step in found))) for name, found in lists.items()]
        yield field(1, b"".join(entries)) + field(2, b"".join(steps))


def _scan(kind, layout):
    def make(tmp_path_factory):
        path = write_records(tmp_path_factory.mktemp("columns") / "x.tfrecord", _examples() if kind == "examples" else _sequences())
        scan = tfarrow.scan(path, layout=layout, sample="all")
        # The key is one number also where all columns are lists.
        return scan if layout == "auto" else keyed(scan)

    return make


def keyed(scan):
    """The rows of a scan with lists, and their keys as numbers."""
    columns = ", ".join('"' + name + '"' for name in scan.columns if name != "key")
    return Keyed(f"SELECT key[1] AS key, {columns} FROM t", {"t": scan}, {"bytes_type": "binary"})


class Keyed(tfarrow.Result):
    """The rows of a query with the properties of a scan that the tests use."""

    @property
    def schema(self):
        import pyarrow as pa

        return pa.schema(self)

    @property
    def columns(self):
        return self.schema.names

    def select(self, *names):
        columns = ", ".join('"' + name + '"' for name in names)
        return Keyed(f"SELECT {columns} FROM r", {"r": self}, {"bytes_type": "binary"})


DATA = {f"{kind} as {layout}": _scan(kind, layout) for kind in ("examples", "sequences") for layout in ("auto", "list")}
LAYOUTS = list(DATA)

