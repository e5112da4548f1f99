#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ClickHouse turns bytes in Parquet into text that other readers refuse, when it copies a file.
#
# Versions: chDB 4.4.0 (ClickHouse 26.9), pyarrow 26.0.1, Polars 2.1.0, DuckDB 2.0.1 (PyPI).
# Behaviour: a Parquet column of bytes without annotation is read as ClickHouse's String, which holds any bytes.
#   Written to Parquet again, the column is annotated as String, which the format defines as UTF-8.
#   Polars and DuckDB then refuse to read the column, and pyarrow raises an exception when the values are used.
#   With `output_format_parquet_string_as_string = 0`, no text column is annotated, so that texts become bytes.
# Why it matters: encoded images, tensors and hashes in a training set pass through ClickHouse for filtering or sorting, and the
#   result cannot be read by the libraries that the training uses.
# Output seen:
#   before: image is binary, name is string    after: image is string, name is string
#   Polars: ComputeError, DuckDB: InvalidInputException, pyarrow: UnicodeDecodeError
#   string_as_string = 0: image is binary, name is binary
#
# Exits with 0 while the behaviour is this one. Downloads 0.3 GB.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check chdb==4.4.0 pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.1
cat > bytes.py <<'EOF'
import chdb
import duckdb
import polars
import pyarrow
import pyarrow.parquet


def types(path):
    return ", ".join(f"{field.name} is {field.type}" for field in pyarrow.parquet.read_schema(path))


def error(call):
    """The name of the exception of a call."""
    try:
        call()
    except Exception as found:
        return type(found).__name__
    return "none"


def copy(path, settings=""):
    chdb.query(f"INSERT INTO FUNCTION file('{path}') SELECT * FROM file('before.parquet') {settings}")
    return types(path)


table = pyarrow.table({"image": pyarrow.array([b"\xff\xd8\xff\xe0"], pyarrow.binary()), "name": ["a.jpg"]})
pyarrow.parquet.write_table(table, "before.parquet")
before, after = types("before.parquet"), copy("after.parquet")
print(f"before: {before}    after: {after}")
errors = [
    error(lambda: polars.read_parquet("after.parquet")),
    error(lambda: duckdb.sql("FROM 'after.parquet'").fetchall()),
    error(lambda: pyarrow.parquet.read_table("after.parquet").to_pylist()),
]
print("Polars: {}, DuckDB: {}, pyarrow: {}".format(*errors))
without = copy("without.parquet", "SETTINGS output_format_parquet_string_as_string = 0")
print(f"string_as_string = 0: {without}")
assert before == "image is binary, name is string" and after == "image is string, name is string"
assert errors == ["ComputeError", "InvalidInputException", "UnicodeDecodeError"] and without == "image is binary, name is binary"
EOF
venv/bin/python bytes.py
