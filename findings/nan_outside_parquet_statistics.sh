#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Queries of Parquet files lose NaN, or take it for another number, because the statistics of the file leave it out.
#
# Versions: DuckDB 2.0.1, DataFusion 55.0.0, PySpark 4.3.0, Polars 2.1.0; pyarrow 26.0.1 writes the file and reads it (PyPI).
# Behaviour: the values are 1, NaN, 1, and the statistics say minimum 1, maximum 1, as the format demands.
#   DuckDB, DataFusion, Spark and Polars order NaN above all numbers, so that NaN is greater than 100.
#   The first three nevertheless skip the row group for `x > 100` and for `x <> 1`; DuckDB and DataFusion also count the row of NaN
#   for `x = 1`, because minimum and maximum are both 1.
#   Filters of pyarrow's datasets lose the row for `is_nan(x)` and `x != 1`, which find it in the table of the same file.
#   Polars gives the right answers. So do all of them on a file without statistics.
# Why it matters: NaN in a feature is what a check of training data searches for, and the check finds none, or removes other rows.
# Output seen (rows found, those of a file without statistics in brackets):
#   DuckDB       x > 100: 0 [1]   x <> 1: 0 [1]   x = 1: 3 [2]   isnan(x): 0 [1]
#   DataFusion   x > 100: 0 [1]   x <> 1: 0 [1]   x = 1: 3 [2]   isnan(x): 0 [1]
#   Spark        x > 100: 0 [1]   x <> 1: 0 [1]   x = 1: 2 [2]   isnan(x): 1 [1]
#   Polars       x > 100: 1 [1]   x <> 1: 1 [1]   x = 1: 2 [2]   isnan(x): 1 [1]
#   pyarrow      x > 100: 0 [0]   x <> 1: 0 [1]   x = 1: 2 [2]   isnan(x): 0 [1]
#
# Exits with 0 while the behaviour is this one. Needs Java 17 for Spark; downloads 0.6 GB.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
    duckdb==2.0.1 datafusion==55.0.0 pyspark==4.3.0 polars==2.1.0 pyarrow==26.0.1
cat > rows.py <<'EOF'
import datafusion
import duckdb
import polars
import pyarrow
import pyarrow.compute as compute
import pyarrow.dataset
import pyarrow.parquet
from pyspark.sql import SparkSession

FILTERS = ["x > 100", "x <> 1", "x = 1", "isnan(x)"]
FILES = ["with.parquet", "without.parquet"]
EXPECTED = {
    "DuckDB": [[0, 1], [0, 1], [3, 2], [0, 1]],
    "DataFusion": [[0, 1], [0, 1], [3, 2], [0, 1]],
    "Spark": [[0, 1], [0, 1], [2, 2], [1, 1]],
    "Polars": [[1, 1], [1, 1], [2, 2], [1, 1]],
    "pyarrow": [[0, 0], [0, 1], [2, 2], [0, 1]],
}

table = pyarrow.table({"x": pyarrow.array([1.0, float("nan"), 1.0], pyarrow.float32())})
for path in FILES:
    pyarrow.parquet.write_table(table, path, write_statistics=path == "with.parquet")
statistics = pyarrow.parquet.read_metadata("with.parquet").row_group(0).column(0).statistics
assert (statistics.min, statistics.max) == (1, 1)
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()


def in_duckdb(path, where):
    return duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE {where}").fetchall()[0][0]


def in_datafusion(path, where):
    context = datafusion.SessionContext()
    context.register_parquet("t", path)
    return context.sql(f"SELECT count(*) AS n FROM t WHERE {where}").to_pydict()["n"][0]


def in_spark(path, where):
    return spark.read.parquet(path).where(where).count()


def in_polars(path, where):
    x = polars.col("x")
    filters = {"x > 100": x > 100, "x <> 1": x != 1, "x = 1": x == 1, "isnan(x)": x.is_nan()}
    return polars.scan_parquet(path).filter(filters[where]).collect().height


def in_pyarrow(path, where):
    x = compute.field("x")
    filters = {"x > 100": x > 100, "x <> 1": x != 1, "x = 1": x == 1, "isnan(x)": compute.is_nan(x)}
    return pyarrow.dataset.dataset(path).to_table(filter=filters[where]).num_rows


engines = dict(zip(EXPECTED, [in_duckdb, in_datafusion, in_spark, in_polars, in_pyarrow]))
found = {name: [[count(path, where) for path in FILES] for where in FILTERS] for name, count in engines.items()}
for name, counts in found.items():
    print(f"{name:10}", *(f"  {where}: {rows} [{right}]" for where, (rows, right) in zip(FILTERS, counts)))
assert found == EXPECTED, found
EOF
venv/bin/python rows.py 2> log || { tail -n 20 log; exit 1; }
