#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that eight readers find in tfarrow's Parquet files the values of the records.

    python3 tests/readers.py target/release/tfarrow [FOLDER]

Converts the files of testdata/ to Parquet, in both layouts, and reads them with pyarrow, DuckDB, Polars, pandas, Spark,
Hugging Face datasets, hyparquet and chDB. pyarrow's values are compared with those that TensorFlow reads (the JSON beside each
file), and the values of the others with pyarrow's. What a reader is known to lose is a function below, with the reason; a
loss that no longer occurs is an error, so that the table of readers in docs/mapping.md stays right.

Run by hand: it installs 2 GB from PyPI and npm into FOLDER, or into a temporary folder, and needs Java 17 and Node.js.
"""
import base64
import collections
import datetime
import json
import os
import struct
import subprocess
import sys
import tempfile
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TESTDATA = os.path.join(ROOT, "testdata")
PACKAGES = [
    "pyarrow==26.0.1", "duckdb==2.0.1", "polars==2.1.0", "pandas==3.1.1", "pyspark==4.3.0", "datasets==5.2.0", "chdb==4.4.0",
]
SCRIPTS = ["hyparquet@1.33.0", "hyparquet-compressors@1.1.2"]
MESSAGES = {"shapes.tfrecord": "Shape", "legacy.tfrecord": "Legacy"}
# Records that are not valid, and forms that TensorFlow's own parsers read differently.
LEFT_OUT = ["corrupt", "wire_bad", "wire_disputed"]
NODE = """
import fs from 'fs'
import { asyncBufferFromFile, parquetMetadataAsync, parquetRead, parquetSchema } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
const plain = value => {
  if (value === undefined || value === null) return null
  if (typeof value === 'bigint') return { integer: String(value) }
  if (typeof value === 'number') return { number: Object.is(value, -0) ? '-0.0' : String(value) }
  if (value instanceof Date) return { milliseconds: value.getTime() }
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('base64') }
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object') return { object: Object.entries(value).map(([name, part]) => [name, plain(part)]) }
  return value
}
for (const path of process.argv.slice(2)) {
  let result
  try {
    const file = await asyncBufferFromFile(path)
    const metadata = await parquetMetadataAsync(file)
    const names = parquetSchema(metadata).children.map(child => child.element.name)
    let rows = []
    await parquetRead({ file, metadata, compressors, utf8: false, onComplete: all => { rows = all } })
    result = { names, rows: rows.map(row => row.map(plain)) }
  } catch (error) {
    result = { error: String(error) }
  }
  fs.writeSync(1, JSON.stringify(result) + '\\n')
}
"""


def install(folder):
    """The interpreter of an environment with the packages, which is created if it does not exist."""
    program, done = os.path.join(folder, "bin", "python"), os.path.join(folder, "installed")
    wanted = "\n".join(PACKAGES + SCRIPTS)
    if not os.path.exists(done) or open(done).read() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)
        subprocess.run(["npm", "install", "--silent", "--no-save", "--prefix", folder, *SCRIPTS], check=True)
        with open(done, "w") as file:
            file.write(wanted)
    return program


# ------------------------------------------------------------------------------------------------ the files


def sources():
    """The TFRecord files of testdata/ with the options of their conversion in each layout."""
    for folder, folders, files in os.walk(TESTDATA):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        for name in sorted(files):
            path = os.path.join(folder, name)
            if name in MESSAGES:
                descriptors = os.path.join(folder, "shapes.desc")
                yield path, {"message": ["--proto", descriptors, "--message", MESSAGES[name]]}
            elif "tfevents" in name:
                yield path, {"events": []}
            elif ".tfrecord" in name and not name.endswith(".json"):
                yield path, {layout: ["--layout", layout, "--on-conflict", "split"] for layout in ("auto", "list")}


def converted(program, folder):
    """The Parquet files, each with its source."""
    for path, layouts in sources():
        for layout, options in layouts.items():
            name = os.path.relpath(path, TESTDATA).replace(os.sep, "_")
            output = os.path.join(folder, f"{name}.{layout}.parquet")
            done = subprocess.run([program, "--quiet", "convert", *options, path, output], check=False)
            # Status 3: no record is a tf.Example, so that they are bytes.
            assert done.returncode in (0, 3), (path, done.returncode)
            yield path, output


# ------------------------------------------------------------------------------------------------ the values


def normal(value, type):
    """A value of any reader, by the Arrow type of its column, so that equal values compare as equal.

    Every NaN is the same, and -0.0 is not 0.0. Times and durations are nanoseconds, and the keys of maps are text.
    """
    from pyarrow import types

    if value is None:
        return None
    if types.is_map(type):
        entries = value.items() if isinstance(value, dict) else value
        return {text(key): normal(item, type.item_type) for key, item in entries}
    if types.is_struct(type):
        return {field.name: normal(value[field.name], field.type) for field in type}
    if types.is_list(type):
        return [normal(item, type.value_type) for item in value]
    if types.is_temporal(type):
        return nanoseconds(value)
    if types.is_floating(type) or isinstance(value, float):
        return "nan" if value != value else float(value).hex()
    if types.is_boolean(type):
        return bool(value)
    return int(value) if types.is_integer(type) else value


def text(key):
    return key.decode() if isinstance(key, bytes) else str(key).lower() if isinstance(key, bool) else str(key)


def nanoseconds(value):
    if isinstance(value, datetime.datetime) and not hasattr(value, "value"):
        value = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
        value -= datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    if hasattr(value, "value"):
        return value.value
    if isinstance(value, datetime.timedelta):
        return (value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 1000
    return int(value)


def of_tensorflow(path, field):
    """The values of a column that TensorFlow reads from the records; None if there is no JSON of them."""
    metadata = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    part = {"feature": "features", "context": "context", "sequence": "feature_lists"}.get(metadata.get("tfarrow.role"))
    names = [f"{path}.json", path.removesuffix(".gz").removesuffix(".tfrecord") + ".json"]
    expected = [name for name in names if os.path.exists(name)]
    if part is None or not expected:
        return None
    with open(expected[0]) as file:
        values = [record[part].get(metadata.get("tfarrow.feature", field.name)) for record in json.load(file)]
    kind = metadata["tfarrow.kind"].removesuffix("_list")
    if part == "feature_lists":
        steps = lambda value: value and [of_kind(step, kind, field.type.value_type) for step in value]
        return [steps(value) for value in values]
    return [of_kind(value, kind, field.type) for value in values]


def of_kind(value, kind, type):
    """A feature of the JSON as a normal value; None if it has another kind."""
    from pyarrow import types

    if value is None or kind not in value:
        return None
    read = {
        "bytes": base64.b64decode,
        "float": lambda bits: struct.unpack("<f", struct.pack("<I", bits))[0],
        "int64": int,
    }
    is_list = types.is_list(type)
    values = [read[kind](item) for item in value[kind]]
    if types.is_string(type.value_type if is_list else type):
        values = [item.decode() for item in values]
    return normal(values if is_list else values[0], type)


# ------------------------------------------------------------------------------------------------ the readers
#
# Each gives, for each file, a function that returns the names of the columns and their values.


def of_arrow(table):
    return table.column_names, [column.to_pylist() for column in table.columns]


def with_duckdb(paths, _):
    import duckdb

    for path in paths:
        yield lambda path=path: of_arrow(duckdb.sql(f"FROM '{path}'").to_arrow_table())


def with_polars(paths, _):
    import polars

    for path in paths:
        yield lambda path=path: of_arrow(polars.read_parquet(path).to_arrow())


def with_pandas(paths, _):
    import pandas

    for path in paths:
        yield lambda path=path: of_pandas(pandas.read_parquet(path))


def of_pandas(frame):
    return list(frame.columns), [[of_numpy(value) for value in frame.iloc[:, at].tolist()] for at in range(frame.shape[1])]


def of_numpy(value):
    """A value of a column of objects, whose lists are arrays of NumPy. A null time is NaT."""
    import numpy
    import pandas

    if value is pandas.NaT:
        return None
    if isinstance(value, (numpy.ndarray, list)):
        return [of_numpy(item) for item in value]
    if isinstance(value, tuple):
        return tuple(of_numpy(item) for item in value)
    if isinstance(value, dict):
        return {name: of_numpy(item) for name, item in value.items()}
    return value


def with_spark(paths, _):
    from pyspark.sql import SparkSession

    # Names that differ in case are different features.
    options = {"spark.sql.caseSensitive": "true", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master("local[1]")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for path in paths:
        yield lambda path=path: of_arrow(spark.read.parquet(path).toArrow())
    spark.stop()


def with_datasets(paths, folder):
    import datasets

    datasets.disable_progress_bars()
    cache = os.path.join(folder, "cache")
    for path in paths:
        yield lambda path=path: of_arrow(datasets.Dataset.from_parquet(path, cache_dir=cache).data.table)


def with_hyparquet(paths, folder):
    modules = os.path.join(folder, "node_modules")
    if not os.path.exists(modules):
        os.symlink(os.path.join(sys.prefix, "node_modules"), modules)
    script = os.path.join(folder, "read.mjs")
    with open(script, "w") as file:
        file.write(NODE)
    done = subprocess.run(["node", script, *paths], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        yield lambda line=line: of_json(json.loads(line))


def of_json(result):
    if "error" in result:
        raise ValueError(result["error"])
    return result["names"], [[of_javascript(row[at]) for row in result["rows"]] for at in range(len(result["names"]))]


def of_javascript(value):
    if isinstance(value, list):
        return [of_javascript(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((type, content),) = value.items()
    if type == "bytes":
        return base64.b64decode(content)
    if type == "object":
        return {name: of_javascript(item) for name, item in content}
    if type == "milliseconds":
        return content * 10**6
    return int(content) if content.removeprefix("-").isdecimal() else float(content.replace("Infinity", "inf"))


def with_chdb(paths, _):
    import chdb
    import pyarrow

    for path in paths:
        query = f"SELECT * FROM file('{path}', Parquet) SETTINGS output_format_arrow_string_as_string = 0"
        yield lambda query=query: of_arrow(pyarrow.ipc.open_file(chdb.query(query, "Arrow").bytes()).read_all())


# ------------------------------------------------------------------------------------------------ what they lose
#
# A loss of names maps the names of the columns to those that the reader gives. A loss of values maps the values of a column
# and their type to the values that the reader gives.


def names_without_case(names):
    """DuckDB: names of columns do not depend on case, so that a second one gets a number; a name cannot be empty."""
    found = []
    for at, name in enumerate(names):
        name = name or f"C{at}"
        taken = sum(name.lower() == other.lower() for other in found)
        found.append(f"{name}_{taken}" if taken else name)
    return found


def no_empty_name(names):
    """chDB: a column without a name is left out."""
    return [name for name in names if name]


def integers_are_floats(values, type):
    """pandas: integers of a column that has nulls are floats, also within structs."""
    from pyarrow import types

    if types.is_integer(type) and None in values:
        return [None if value is None else float(value).hex() for value in values]
    return within(values, type, integers_are_floats)


def null_is_nan(values, type):
    """pandas: NaN stands for null in a column of numbers or texts."""
    from pyarrow import types

    is_plain = types.is_integer(type) or types.is_floating(type) or types.is_string(type)
    return ["nan" if value is None else value for value in values] if is_plain else values


def no_null_groups(values, type):
    """chDB: a null list or map is empty, and a null struct has fields that are null; structs of scalars in a column, or in items
    that are required, have null."""
    from pyarrow import types

    if types.is_struct(type) and not any(types.is_nested(field.type) for field in type):
        return values
    return no_nested_null(values, type)


def no_nested_null(values, type):
    from pyarrow import types

    empty = [] if types.is_list(type) else {} if types.is_map(type) else None
    if types.is_struct(type):
        empty = {field.name: None for field in type}
    is_required = types.is_list(type) and not type.value_field.nullable
    loss = no_null_in_items if is_required else no_nested_null
    return within([empty if value is None else value for value in values], type, loss)


def no_null_in_items(values, type):
    """The fields of items that are required are like columns."""
    return within(values, type, no_null_groups)


def text_is_bytes(values, type):
    """chDB: one type, String, holds texts and bytes."""
    from pyarrow import types

    if types.is_string(type):
        return [value if value is None else value.encode() for value in values]
    return within(values, type, text_is_bytes)


def milliseconds(values, type):
    """hyparquet: times are JavaScript's Date, which has milliseconds; the rest is cut off, towards 1970."""
    from pyarrow import types

    if types.is_timestamp(type):
        cut = lambda value: abs(value) // 10**6 * 10**6 * (1 if value > 0 else -1)
        return [value if value is None else cut(value) for value in values]
    return within(values, type, milliseconds)


def within(values, type, loss):
    """Applies a loss to the parts of the values, of which those of one name or of all lists are a column."""
    from pyarrow import types

    present = [value for value in values if value is not None]
    if types.is_list(type):
        items = iter(loss([item for value in present for item in value], type.value_type))
        return [value if value is None else [next(items) for _ in value] for value in values]
    if types.is_map(type):
        items = iter(loss([item for value in present for item in value.values()], type.item_type))
        return [value if value is None else {key: next(items) for key in value} for value in values]
    if types.is_struct(type):
        parts = {field.name: iter(of_field(values, field, loss)) for field in type}
        return [value if value is None else {name: next(parts[name]) for name in parts} for value in values]
    return values


def of_field(values, field, loss):
    """Applies a loss to a field of the structs that are not null. An optional field is null in a struct that is null."""
    if not field.nullable:
        return loss([value[field.name] for value in values if value is not None], field.type)
    parts = loss([value and value[field.name] for value in values], field.type)
    return [part for part, value in zip(parts, values) if value is not None]


# For each reader: its function, the loss of names if there is one, losses of values, and files that it refuses, as a part of the
# message and the reason.
READERS = {
    "DuckDB": (with_duckdb, names_without_case, [], {}),
    "Polars": (with_polars, None, [], {}),
    "pandas": (with_pandas, None, [integers_are_floats, null_is_nan], {}),
    "Spark": (with_spark, None, [], {"TIMESTAMP(NANOS": "times in nanoseconds"}),
    "datasets": (
        with_datasets,
        None,
        [],
        {"corresponds to no data": "a file without rows", "does not have a datasets dtype": "maps"},
    ),
    "hyparquet": (with_hyparquet, None, [milliseconds], {}),
    "chDB": (with_chdb, no_empty_name, [no_null_groups, text_is_bytes], {"EMPTY_LIST_OF_COLUMNS": "no column with a name"}),
}


# ------------------------------------------------------------------------------------------------ the checks


def read_with_pyarrow(files):
    """The schema and the values of each Parquet file, which are those of TensorFlow."""
    import pyarrow.parquet

    tables, compared = {}, 0
    for source, path in files:
        table = pyarrow.parquet.read_table(path)
        tables[path] = table.schema, [
            [normal(value, field.type) for value in column.to_pylist()] for field, column in zip(table.schema, table.columns)
        ]
        for field, values in zip(*tables[path]):
            expected = of_tensorflow(source, field)
            compared += expected is not None
            assert expected in (None, values), f"{source}: {field.name}: expected {expected}, found {values}"
    assert compared > 300, compared
    print(f"pyarrow: {len(files)} files, {compared} columns as TensorFlow reads them", flush=True)
    return tables


def difference(expected, found):
    """The first parts of two values that differ."""
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return next(difference(*pair) for pair in zip(expected, found) if pair[0] != pair[1])
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        return next(difference(expected[name], found[name]) for name in expected if expected[name] != found[name])
    return expected, found


def check(name, tables, folder):
    """A reader gives the values of pyarrow, but for its losses and refusals, all of which occur."""
    reader, rename, losses, refusals = READERS[name]
    occurred, read = collections.Counter(), 0
    for (path, (schema, columns)), call in zip(tables.items(), reader(list(tables), folder)):
        at = f"{name}: {os.path.basename(path)}"
        try:
            names, found = call()
        except Exception as error:
            refused = [part for part in refusals if part in str(error)]
            assert refused, f"{at}: {error}"
            occurred.update(refused)
            continue
        read += 1
        expected_names = rename(schema.names) if rename else schema.names
        assert names == expected_names, f"{at}: {names}"
        occurred.update([rename] if names != schema.names else [])
        kept = [(field, values) for field, values in zip(schema, columns) if len(names) == len(schema) or field.name]
        for (field, values), column in zip(kept, found):
            for loss in losses:
                lost = loss(values, field.type)
                occurred.update([loss] if lost != values else [])
                values = lost
            column = [normal(value, field.type) for value in column]
            assert column == values, f"{at}: {field.name}: expected and found: {difference(values, column)}"
    for expected in [*losses, *refusals, *([rename] if rename else [])]:
        assert occurred[expected], f"{name} no longer loses or refuses: {expected}"
    refused = ", ".join(f"{occurred[part]} refused for {reason}" for part, reason in refusals.items())
    print(f"{name}: {read} of {len(tables)} files read{', ' if refused else ''}{refused}", flush=True)


def main(program, home):
    if os.path.realpath(sys.prefix) != os.path.realpath(home):
        # Isolated, because this folder has modules of other names, such as tensorflow.py.
        interpreter = install(home)
        done = subprocess.run([interpreter, "-I", os.path.abspath(__file__), program, home], check=False)
        return done.returncode
    with tempfile.TemporaryDirectory() as folder:
        tables = read_with_pyarrow(list(converted(program, folder)))
        for name in READERS:
            check(name, tables, folder)
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])))
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main(os.path.abspath(sys.argv[1]), folder))
