#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Times in seconds that DataFusion writes to Parquet are integers to every other reader.
#
# Versions: DataFusion 55.0.0, pyarrow 26.0.1, DuckDB 2.0.1 (PyPI).
# Behaviour: Parquet has no timestamps in seconds. pyarrow stores them in milliseconds.
#   DataFusion (the parquet crate) stores the numbers of seconds as INT64 without an annotation, and dates in milliseconds (Date64)
#   likewise; only the Arrow schema in the metadata of the file tells their type.
#   DataFusion reads them back as times; pyarrow and DuckDB read integers, although pyarrow knows the Arrow schema.
# Why it matters: to_timestamp_seconds() returns this type, so that a table made by DataFusion loses its times in the next tool,
#   and a comparison with times in milliseconds is wrong by a factor of 1,000.
# Output seen:
#   DataFusion writes, DataFusion reads: Timestamp(s)
#   DataFusion writes, pyarrow reads: int64, DuckDB reads: BIGINT 1577934245
#   pyarrow writes, pyarrow reads: timestamp[ms], DuckDB reads: TIMESTAMP 2020-01-02 03:04:05
#
# Exits with 0 while the behaviour is this one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datafusion==55.0.0 pyarrow==26.0.1 duckdb==2.0.1
venv/bin/python - <<'EOF'
import datafusion
import duckdb
import pyarrow
import pyarrow.parquet

SECONDS = 1577934245


def readings(path):
    type, value = duckdb.sql(f"SELECT typeof(t), t FROM '{path}'").fetchall()[0]
    return str(pyarrow.parquet.read_schema(path).field("t").type), type, str(value)


context = datafusion.SessionContext()
context.sql(f"COPY (SELECT to_timestamp_seconds({SECONDS}) AS t) TO 'datafusion.parquet' STORED AS PARQUET").collect()
context.register_parquet("written", "datafusion.parquet")
own = context.sql("SELECT arrow_typeof(t) AS type FROM written").to_pydict()["type"][0]
print("DataFusion writes, DataFusion reads:", own)
other = readings("datafusion.parquet")
print("DataFusion writes, pyarrow reads: {}, DuckDB reads: {} {}".format(*other))
pyarrow.parquet.write_table(pyarrow.table({"t": pyarrow.array([SECONDS], pyarrow.timestamp("s"))}), "pyarrow.parquet")
right = readings("pyarrow.parquet")
print("pyarrow writes, pyarrow reads: {}, DuckDB reads: {} {}".format(*right))
assert own == "Timestamp(s)" and other == ("int64", "BIGINT", str(SECONDS))
assert right == ("timestamp[ms]", "TIMESTAMP", "2020-01-02 03:04:05")
EOF
