#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `x = 0` loses the rows of -0.0 in Parquet files, in Spark by dictionaries and in DataFusion by Bloom filters.
#
# Versions: PySpark 4.3.0, DataFusion 55.0.0, DuckDB 2.0.1; pyarrow 26.0.1 writes the files (PyPI).
# Behaviour: -0.0 equals 0.0 in all three, and a column of doubles has -0.0 in a third of 3,000 rows.
#   Spark searches the dictionary of the column, and DataFusion the Bloom filter, for the bits of 0.0, does not find them, and skips
#   the row group; comparing the values would find the rows.
#   The dictionary is the default encoding of most writers, so that Spark needs no option to lose the rows.
#   DuckDB finds the rows in all files.
# Why it matters: products, rounding and ReLU-like functions give -0.0, and many features are zero in most records.
# Output seen (rows that equal 0):
#   plain         Spark 1000   DataFusion 1000   DuckDB 1000
#   dictionary    Spark 0      DataFusion 1000   DuckDB 1000
#   Bloom filter  Spark 0      DataFusion 0      DuckDB 1000
#
# Exits with 0 while the behaviour is this one. Needs Java 17 for Spark; downloads 0.6 GB.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyspark==4.3.0 datafusion==55.0.0 duckdb==2.0.1 pyarrow==26.0.1
cat > zeros.py <<'EOF'
import datafusion
import duckdb
import pyarrow
import pyarrow.parquet
from pyspark.sql import SparkSession

FILES = {
    "plain": {"use_dictionary": False},
    "dictionary": {},
    "Bloom filter": {"use_dictionary": False, "bloom_filter_options": {"x": True}},
}
EXPECTED = {"plain": [1000, 1000, 1000], "dictionary": [0, 1000, 1000], "Bloom filter": [0, 0, 1000]}

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
table = pyarrow.table({"x": pyarrow.array([-0.0, 1.5, -3.0] * 1000, pyarrow.float64())})
found = {}
for name, options in FILES.items():
    path = name.replace(" ", "_") + ".parquet"
    pyarrow.parquet.write_table(table, path, **options)
    context = datafusion.SessionContext()
    context.register_parquet("t", path)
    found[name] = [
        spark.read.parquet(path).where("x = 0").count(),
        context.sql("SELECT count(*) AS n FROM t WHERE x = 0").to_pydict()["n"][0],
        duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE x = 0").fetchall()[0][0],
    ]
    print(f"{name:13} Spark {found[name][0]:<6} DataFusion {found[name][1]:<6} DuckDB {found[name][2]}")
assert found == EXPECTED, found
EOF
venv/bin/python zeros.py 2> log || { tail -n 20 log; exit 1; }
