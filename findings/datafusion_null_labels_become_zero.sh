#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# DataFusion writes 0, false or "" to JSON for a null that is stored in a dictionary.
#
# Versions: DataFusion 55.0.0, pyarrow 26.0.1 (PyPI).
# Behaviour: Arrow lets a null of a dictionary-encoded column be a null index, or an index of a null value in the dictionary.
#   pyarrow makes the second form with `dictionary_encode("encode")`.
#   DataFusion counts and displays both forms as null, and CSV has an empty field for both.
#   COPY to JSON leaves the field out for a null index, and writes the bytes that happen to lie under the null for the other form:
#   0 for a number, false for a boolean, "" for a text.
# Why it matters: labels and categories are dictionary-encoded. A missing label becomes class 0, and nothing tells it from a true one.
# Output seen:
#   integers: [5, null, 7] -> {"x": 5} {"x": 0} {"x": 7}
#   booleans: [true, null, false] -> {"x": true} {"x": false} {"x": false}
#   texts: ["a", null, "b"] -> {"x": "a"} {"x": ""} {"x": "b"}
#   integers, null index: {"x": 5} {} {"x": 7}
#
# Exits with 0 while the behaviour is this one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datafusion==55.0.0 pyarrow==26.0.1
venv/bin/python - <<'EOF'
import json

import datafusion
import pyarrow

COLUMNS = {
    "integers": ([5, None, 7], [{"x": 5}, {"x": 0}, {"x": 7}]),
    "booleans": ([True, None, False], [{"x": True}, {"x": False}, {"x": False}]),
    "texts": (["a", None, "b"], [{"x": "a"}, {"x": ""}, {"x": "b"}]),
}


def written(column):
    """The rows that COPY to JSON writes."""
    context = datafusion.SessionContext()
    context.register_record_batches("t", [pyarrow.table({"x": column}).to_batches()])
    assert context.sql("SELECT x FROM t").to_pydict()["x"] == column.to_pylist()
    assert context.sql("SELECT count(x) AS n FROM t").to_pydict()["n"] == [2]
    context.sql("COPY (SELECT x FROM t) TO 'rows.json' STORED AS JSON").collect()
    with open("rows.json") as file:
        return [json.loads(line) for line in file]


for name, (values, expected) in COLUMNS.items():
    rows = written(pyarrow.array(values).dictionary_encode("encode"))
    print(f"{name}: {json.dumps(values)} ->", *map(json.dumps, rows))
    assert rows == expected, rows
rows = written(pyarrow.array([5, None, 7]).dictionary_encode())
print("integers, null index:", *map(json.dumps, rows))
assert rows == [{"x": 5}, {}, {"x": 7}], rows
EOF
