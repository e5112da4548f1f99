#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ClickHouse does not compute distances of vectors that other writers stored in Parquet, because their numbers may be null.
#
# Versions: chDB 4.4.0 (ClickHouse 26.9), pyarrow 26.0.1 (PyPI).
# Behaviour: elements of lists are optional in the Parquet files of pyarrow, pandas, Polars and DuckDB, even where none is null.
#   ClickHouse reads them as Array(Nullable(Float32)), and L2Distance, cosineDistance and dotProduct reject such arrays.
#   A list with required elements, which pyarrow writes if the schema says so, works.
#   A CAST to Array(Float32) works too, in each query.
# Why it matters: searching a Parquet file of embeddings by distance is what these functions are for.
# Output seen:
#   optional elements: Array(Nullable(Float32)), ILLEGAL_TYPE_OF_ARGUMENT for L2Distance, cosineDistance, dotProduct
#   optional elements, cast: 0, 2.828427
#   required elements: Array(Float32): 0, 2.828427
#
# Exits with 0 while the behaviour is this one. Downloads 0.2 GB.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check chdb==4.4.0 pyarrow==26.0.1
cat > vectors.py <<'EOF'
import chdb
import pyarrow
import pyarrow.parquet

FUNCTIONS = ["L2Distance", "cosineDistance", "dotProduct"]
VECTORS = [[1.0, 2.0], [3.0, 4.0]]


def query(sql):
    """The output of a query in lines."""
    return str(chdb.query(sql, "TSV")).splitlines()


def write(path, nullable):
    element = pyarrow.field("element", pyarrow.float32(), nullable=nullable)
    pyarrow.parquet.write_table(pyarrow.table({"v": pyarrow.array(VECTORS, pyarrow.list_(element))}), path)
    return query(f"SELECT toTypeName(v) FROM file('{path}') LIMIT 1")[0]


def refused(function):
    try:
        query(f"SELECT {function}(v, [1, 2]) FROM file('optional.parquet')")
    except RuntimeError as error:
        return "ILLEGAL_TYPE_OF_ARGUMENT" in str(error)
    return False


type = write("optional.parquet", nullable=True)
assert type == "Array(Nullable(Float32))" and all(refused(function) for function in FUNCTIONS), type
print(f"optional elements: {type}, ILLEGAL_TYPE_OF_ARGUMENT for", ", ".join(FUNCTIONS))
cast = query("SELECT L2Distance(CAST(v AS Array(Float32)), [1, 2]) FROM file('optional.parquet')")
print("optional elements, cast:", ", ".join(cast))
type = write("required.parquet", nullable=False)
required = query("SELECT L2Distance(v, [1, 2]) FROM file('required.parquet')")
print(f"required elements: {type}:", ", ".join(required))
assert type == "Array(Float32)" and cast == required == ["0", "2.828427"]
EOF
venv/bin/python vectors.py
