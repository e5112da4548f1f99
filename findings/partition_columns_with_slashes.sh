#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Folders `key=value` do not keep a column whose name has a slash or an equals sign, in three libraries in three ways.
#
# Versions: pyarrow 26.0.1, Polars 2.1.0, DuckDB 2.0.1 (PyPI).
# Behaviour: a table is written partitioned by the column `image/height`, and read back by the same library.
#   pyarrow takes the slash for a folder of the path and reads the column back as `height`. Of two columns `image/height` and
#   `mask/height`, the second is lost. A column `a=b` comes back as `a` with the values `b=5`.
#   Polars writes the same folders and keeps the column in the files, so that both `image/height` and `height` come back.
#   DuckDB escapes the name, as Hive does, but does not unescape it when it reads: `image%2Fheight`. pyarrow reads DuckDB's folders
#   as `image/height`.
#   None of them reports anything.
# Why it matters: features of TFRecord data are commonly named with slashes (image/height, image/class/label), and such a data set
#   loses or renames the column by which it was divided.
# Output seen:
#   pyarrow image/height: image/height=5 -> ['v', 'height']
#   pyarrow a=b: a=b=5 -> ['v', 'a']
#   Polars image/height: image/height=5 -> ['image/height', 'v', 'height']
#   DuckDB image/height: image%2Fheight=5 -> ['v', 'image%2Fheight']
#   pyarrow image/height, mask/height: image/height=5/mask/height=7 -> {'v': 1, 'height': 5}
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
import pyarrow.parquet

EXPECTED = {
    ("pyarrow", "image/height"): ("image/height=5", ["v", "height"]),
    ("pyarrow", "a=b"): ("a=b=5", ["v", "a"]),
    ("Polars", "image/height"): ("image/height=5", ["image/height", "v", "height"]),
    ("DuckDB", "image/height"): ("image%2Fheight=5", ["v", "image%2Fheight"]),
}


def with_pyarrow(table, key, folder):
    pyarrow.parquet.write_to_dataset(table, folder, partition_cols=[key])
    return pyarrow.parquet.read_table(folder).column_names


def with_polars(table, key, folder):
    polars.from_arrow(table).write_parquet(folder, partition_by=[key])
    return polars.read_parquet(f"{folder}/", hive_partitioning=True).columns


def with_duckdb(table, key, folder):
    duckdb.sql(f"COPY (SELECT * FROM \"table\") TO '{folder}' (FORMAT parquet, PARTITION_BY (\"{key}\"))")
    return duckdb.sql(f"FROM '{folder}/**/*.parquet'").columns


libraries = {"pyarrow": with_pyarrow, "Polars": with_polars, "DuckDB": with_duckdb}
for number, ((library, key), expected) in enumerate(EXPECTED.items()):
    folder = f"set{number}"
    columns = libraries[library](pyarrow.table({key: [5], "v": [1]}), key, folder)
    (path,) = pathlib.Path(folder).glob("**/*.parquet")
    found = (str(path.parent.relative_to(folder)), columns)
    print(f"{library} {key}: {found[0]} -> {columns}")
    assert found == expected, found

table = pyarrow.table({"image/height": [5], "mask/height": [7], "v": [1]})
pyarrow.parquet.write_to_dataset(table, "two", partition_cols=["image/height", "mask/height"])
(path,) = pathlib.Path("two").glob("**/*.parquet")
(row,) = pyarrow.parquet.read_table("two").to_pylist()
print(f"pyarrow image/height, mask/height: {path.parent.relative_to('two')} -> {row}")
assert row == {"v": 1, "height": 5}, row
EOF
