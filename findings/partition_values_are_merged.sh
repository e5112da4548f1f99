#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Different folders `key=value` become one value, or not, depending on the reader.
#
# Versions: pyarrow 26.0.1, Polars 2.1.0, DuckDB 2.0.1 (PyPI).
# Behaviour: the folders `shard=007` and `shard=7` become the integer 7 in pyarrow and in Polars; DuckDB keeps two texts, since an
#   integer does not give back `007`.
#   The folders `version=1.10` and `version=1.1` become the number 1.1 in Polars; pyarrow and DuckDB keep two texts.
#   A folder of digits that int64 does not hold makes the whole column a text in pyarrow and DuckDB, and Int128 in Polars.
# Why it matters: zip codes, zero-padded identifiers of shards, and versions are common names of folders.
#   Groups and joins by such a column mix data of several folders, and the same query gives other results in another engine.
# Output seen (distinct values and type):
#   shard=007, 7   pyarrow 1 int32   Polars 1 Int64   DuckDB 2 VARCHAR
#   version=1.10, 1.1   pyarrow 2 string   Polars 1 Float64   DuckDB 2 VARCHAR
#   id=7, 100000000000000000000        pyarrow 2 string   Polars 2 Int128    DuckDB 2 VARCHAR
#
# Exits with 0 while the behaviour is this one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.1
venv/bin/python - <<'EOF'
import pathlib

import duckdb
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.parquet

FOLDERS = {"shard": ["007", "7"], "version": ["1.10", "1.1"], "id": ["7", "1" + 20 * "0"]}
EXPECTED = {
    "shard": [(1, "int32"), (1, "Int64"), (2, "VARCHAR")],
    "version": [(2, "string"), (1, "Float64"), (2, "VARCHAR")],
    "id": [(2, "string"), (2, "Int128"), (2, "VARCHAR")],
}

for key, values in FOLDERS.items():
    for value in values:
        folder = pathlib.Path(key, f"{key}={value}")
        folder.mkdir(parents=True)
        pyarrow.parquet.write_table(pyarrow.table({"v": [1]}), folder / "part.parquet")
    table = pyarrow.dataset.dataset(key, partitioning="hive").to_table()
    frame = polars.read_parquet(f"{key}/", hive_partitioning=True)
    query = f"SELECT count(DISTINCT {key}), any_value(typeof({key})) FROM '{key}/**/*.parquet'"
    found = [
        (len(table[key].unique()), str(table.schema.field(key).type)),
        (frame[key].n_unique(), str(frame.schema[key])),
        duckdb.sql(query).fetchall()[0],
    ]
    named = zip(["pyarrow", "Polars", "DuckDB"], found)
    print(f"{key}={', '.join(values)}", *(f"  {name} {count} {type}" for name, (count, type) in named))
    assert found == EXPECTED[key], found
EOF
