#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# DataFusion reads wrong rows from a large CSV file with line breaks within quotes, and DuckDB refuses the file.
#
# Versions: DataFusion 55.0.0, DuckDB 2.0.1, Polars 2.1.0 (PyPI).
# Behaviour: the file has 600,000 rows of two integers and a quoted text of two lines, the second of which looks like a row.
#   DataFusion divides files of more than 10 MB among its threads at any line break, and so begins rows within texts: there are more
#   rows and other sums, without an error. With `newlines_in_values`, the rows are right.
#   A file of 400 rows of an integer and a quoted text of two lines is read in one piece, but types are inferred from pieces of it:
#   the integers become text, with `newlines_in_values` as well.
#   DuckDB reports for the large file that its parallel reader does not support it; `parallel = false` reads it.
#   Polars reads both files.
# Why it matters: captions, prompts and descriptions have line breaks, and a data set made from such a table has invented rows.
# Output seen (count, sum of the first column; DataFusion with 4 threads):
#   DataFusion: 600003 179999700021    newlines_in_values: 600000 179999700000
#   Polars: 600000 179999700000
#   DuckDB: NotImplementedException   parallel = false: 600000 179999700000
#   400 rows: DataFusion Utf8 Utf8   Polars Int64
#
# Exits with 0 while the behaviour is this one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datafusion==55.0.0 duckdb==2.0.1 polars==2.1.0
cat > tables.py <<'EOF'
import datafusion
import duckdb
import polars

RIGHT = (600_000, 179_999_700_000)
NEWLINES = ", 'format.newlines_in_values' 'true'"

with open("large.csv", "w") as file:
    file.write("id,twice,text\n")
    for id in range(600_000):
        file.write(f'{id},{2 * id},"see table:\n7,8,9"\n')
with open("small.csv", "w") as file:
    file.write("id,text\n")
    for id in range(400):
        file.write(f'{id},"line one\nline two, {id}"\n')


def in_datafusion(path, query, option=""):
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(4))
    options = f"'format.has_header' 'true'{option}"
    context.sql(f"CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{path}' OPTIONS ({options})").collect()
    return tuple(column[0] for column in context.sql(query).to_pydict().values())


TOTALS = "SELECT count(*) AS n, sum(id) AS total FROM t"
wrong, whole = (in_datafusion("large.csv", TOTALS, option) for option in ("", NEWLINES))
print("DataFusion:", *wrong, "   newlines_in_values:", *whole)
frame = polars.read_csv("large.csv")
print("Polars:", frame.height, frame["id"].sum())
assert wrong[0] > RIGHT[0] and wrong[1] != RIGHT[1] and whole == RIGHT == (frame.height, frame["id"].sum())

query = "SELECT count(*), sum(id) FROM read_csv('large.csv'{})"
try:
    raise SystemExit(f"DuckDB: {duckdb.sql(query.format('')).fetchall()[0]}")
except duckdb.NotImplementedException as error:
    single = duckdb.sql(query.format(", parallel = false")).fetchall()[0]
    print(f"DuckDB: {type(error).__name__}   parallel = false:", *single)
assert single == RIGHT

TYPE = "SELECT arrow_typeof(id) AS type FROM t LIMIT 1"
types = [in_datafusion("small.csv", TYPE, option)[0] for option in ("", NEWLINES)]
print("400 rows: DataFusion", *types, "  Polars", polars.read_csv("small.csv").schema["id"])
assert not any("Int" in type for type in types) and polars.read_csv("small.csv").schema["id"] == polars.Int64
EOF
venv/bin/python tables.py
