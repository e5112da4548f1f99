#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# DataFusion's `ORDER BY random()` does not shuffle a table of more than one batch.
#
# Versions: DataFusion 55.0.0, pyarrow 26.0.1 (PyPI).
# Behaviour: batches are sorted one by one and then merged, and both steps compute the sort key, which is another random number
#   each time.
#   The merge therefore compares numbers by which nothing is sorted, and rows stay near the rows of their batch.
#   Of 100,000 rows in ascending order, the quarters of the result should each have 50 % of their rows from the first half.
#   A random number that is a column of a subquery is computed once, and gives a shuffle.
# Why it matters: this is how SQL shuffles records before they are divided into training and test data or written in shards.
#   The order looks random to the eye, and `LIMIT` after it is no fair sample.
# Output seen (rows of the first half in each quarter; the first line differs between runs):
#   ORDER BY random():                53%  22%  65%  60%
#   ORDER BY a column of random():    50%  50%  50%  50%
#
# Exits with 0 while the behaviour is this one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datafusion==55.0.0 pyarrow==26.0.1
venv/bin/python - <<'EOF'
import datafusion
import pyarrow
import pyarrow.parquet

ROWS = 100_000
pyarrow.parquet.write_table(pyarrow.table({"x": range(ROWS)}), "numbers.parquet")
context = datafusion.SessionContext()
context.register_parquet("numbers", "numbers.parquet")


def shares(query):
    """The share of rows of the first half in each quarter of the result."""
    values = context.sql(query).to_arrow_table()["x"].to_pylist()
    assert sorted(values) == list(range(ROWS))
    quarters = [values[start : start + ROWS // 4] for start in range(0, ROWS, ROWS // 4)]
    return [sum(x < ROWS // 2 for x in quarter) / len(quarter) for quarter in quarters]


wrong = shares("SELECT x FROM numbers ORDER BY random()")
right = shares("SELECT x FROM (SELECT x, random() AS r FROM numbers) ORDER BY r")
print("ORDER BY random():              ", *(f"{share:4.0%}" for share in wrong))
print("ORDER BY a column of random():  ", *(f"{share:4.0%}" for share in right))
assert max(abs(share - 0.5) for share in right) < 0.02 and max(abs(share - 0.5) for share in wrong) > 0.1
EOF
