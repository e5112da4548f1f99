"""The child process of test_interrupt.py: runs one operation on a data set of many gigabytes until a signal ends it.

    python interrupted.py OPERATION FILE FOLDER

Prints ``ready`` when the operation is about to start, and at its end a JSON list of exceptions: the time, class and text of
each.
"""

import importlib
import json
import signal
import sys
import time
from pathlib import Path

import tfarrow
from tfarrow import _tfarrow

# Symbolic links to one file are as many files. Each has 64 MB, so that no operation can end before the signal.
FILES = 500


def source(path, folder):
    """A folder with many links to a file."""
    links = Path(folder) / "links"
    links.mkdir(exist_ok=True)
    for number in range(FILES):
        link = links / f"part-{number:05d}-of-{FILES:05d}.tfrecord"
        if not link.is_symlink():
            link.symlink_to(path)
    return str(links)


def _consume(batches):
    for _ in batches:
        pass


def _epochs(path, shuffle):
    dataset = tfarrow.Dataset(sorted(map(str, Path(path).iterdir()))[:3])
    loader = dataset.batches(100_000, shuffle=shuffle)
    while True:
        _consume(loader)


def _pyarrow_reader(path):
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(tfarrow.scan(path))
    for _ in reader:
        pass


def _pyarrow_read_all(path):
    import pyarrow as pa

    pa.RecordBatchReader.from_stream(tfarrow.scan(path)).read_all()


def _pyarrow_table(path):
    import pyarrow as pa

    pa.table(tfarrow.scan(path))


def _polars(path):
    import polars as pl

    pl.DataFrame(tfarrow.scan(path))


def _polars_lazy(path):
    import polars as pl

    tfarrow.scan(path).lazy().select(pl.col("i").sum()).collect()


def _polars_lazy_filter(path):
    import polars as pl

    tfarrow.scan(path).lazy().filter(pl.col("i") > 10**9).collect()


def _polars_streaming(path):
    import polars as pl

    tfarrow.scan(path).lazy().select(pl.col("i").sum()).collect(engine="streaming")


def _pandas(path):
    import pandas as pd

    pd.DataFrame.from_arrow(tfarrow.scan(path))


def _duckdb(path, threads, query):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")
    connection.register("rows", tfarrow.scan(path))
    connection.execute(query).fetchall()


def _datafusion(path):
    import datafusion

    datafusion.SessionContext().from_arrow(tfarrow.scan(path), name="t")


CROSS_JOIN = "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b WHERE a.value < b.value"


def _endless():
    import pyarrow as pa

    batch = pa.record_batch({"i": list(range(1000))})
    return pa.RecordBatchReader.from_batches(batch.schema, iter(lambda: batch, None))


OPERATIONS = {
    "count": lambda path, folder: [tfarrow.count(path) for _ in range(1000)],
    "schema": lambda path, folder: tfarrow.schema(path),
    "pbtxt": lambda path, folder: _tfarrow.schema_pbtxt([path], {"sample": "all"}),
    "stats": lambda path, folder: tfarrow.stats(path),
    "stats by": lambda path, folder: tfarrow.stats(path, by="i"),
    "validate": lambda path, folder: tfarrow.validate(path, baseline=path),
    "report": lambda path, folder: tfarrow.report(path),
    "verify": lambda path, folder: tfarrow.verify(path),
    "convert": lambda path, folder: tfarrow.convert(path, folder + "/out/"),
    "convert one": lambda path, folder: tfarrow.convert(path, folder + "/one/", shards=1),
    "convert tfrecord": lambda path, folder: tfarrow.convert(path, folder + "/records/", to="tfrecord"),
    "repair": lambda path, folder: tfarrow.repair(path, folder + "/repaired/"),
    "diff": lambda path, folder: tfarrow.diff(path, path),
    "scan all": lambda path, folder: tfarrow.scan(path, sample="all").columns,
    "batches": lambda path, folder: _consume(tfarrow.scan(path).batches()),
    "dataset": lambda path, folder: [tfarrow.Dataset(path) for _ in range(1000)],
    "dataset where": lambda path, folder: [tfarrow.Dataset(path, where="i < 0") for _ in range(1000)],
    "loader of blocks": lambda path, folder: _epochs(path, "blocks"),
    "loader of all": lambda path, folder: _epochs(path, "global"),
    "batches of 7": lambda path, folder: _consume(tfarrow.scan(path).batches(7)),
    "large batches": lambda path, folder: _consume(tfarrow.scan(path).batches(1 << 40)),
    "where": lambda path, folder: _consume(tfarrow.scan(path).where("i < 0").batches()),
    "scan count": lambda path, folder: tfarrow.scan(path).where("i < 0").count(),
    "to_numpy": lambda path, folder: tfarrow.scan(path).to_numpy(),
    "sql": lambda path, folder: tfarrow.sql(CROSS_JOIN).to_pylist(),
    "sql of files": lambda path, folder: tfarrow.sql(f"SELECT sum(i) FROM '{path}/'").to_pylist(),
    "sql of a scan": lambda path, folder: tfarrow.sql("SELECT sum(i) FROM t", t=tfarrow.scan(path)).to_pylist(),
    "sql of pyarrow": lambda path, folder: tfarrow.sql("SELECT sum(i) FROM t", t=_endless()).to_pylist(),
    "sql sort": lambda path, folder: tfarrow.sql(f"SELECT * FROM '{path}/' ORDER BY s, i DESC").to_numpy(),
    "write": lambda path, folder: tfarrow.write(tfarrow.scan(path), folder + "/written.tfrecord"),
    "write gzip": lambda path, folder: tfarrow.write(tfarrow.scan(path), folder + "/written.tfrecord.gz", shards=2),
    "write of pyarrow": lambda path, folder: tfarrow.write(_endless(), folder + "/written.tfrecord"),
    "to_arrow": lambda path, folder: tfarrow.scan(path).to_arrow(),
    "pyarrow reader": lambda path, folder: _pyarrow_reader(path),
    "pyarrow read_all": lambda path, folder: _pyarrow_read_all(path),
    "pyarrow table": lambda path, folder: _pyarrow_table(path),
    "pyarrow of sql": lambda path, folder: tfarrow.sql(CROSS_JOIN).to_arrow(),
    "polars": lambda path, folder: _polars(path),
    "polars lazy": lambda path, folder: _polars_lazy(path),
    "polars lazy filter": lambda path, folder: _polars_lazy_filter(path),
    "polars streaming": lambda path, folder: _polars_streaming(path),
    "polars of sql": lambda path, folder: tfarrow.sql(CROSS_JOIN).to_polars(),
    "pandas": lambda path, folder: _pandas(path),
    "pandas to_pandas": lambda path, folder: tfarrow.scan(path).to_pandas(),
    "duckdb": lambda path, folder: _duckdb(path, 1, "SELECT sum(i) FROM rows"),
    "duckdb join": lambda path, folder: _duckdb(path, 1, "SELECT count(*) FROM rows a JOIN rows b ON a.i < b.i"),
    "duckdb of two threads": lambda path, folder: _duckdb(path, 2, "SELECT sum(i) FROM rows"),
    "datafusion": lambda path, folder: _datafusion(path),
}


def main(operation, path, folder):
    path = source(path, folder)
    # An import takes seconds on a busy machine.
    for package in ("datafusion", "duckdb", "pandas", "polars", "pyarrow"):
        if package in operation.replace("_", " ").split():
            importlib.import_module(package)
    raised = []
    print("ready", flush=True)
    try:
        try:
            OPERATIONS[operation](path, folder)
        except BaseException as error:
            raised.append((time.monotonic(), type(error).__name__, str(error)))
            # A package that makes an exception of its own from the error of a stream leaves the interrupt to the next
            # instruction of Python.
            for _ in range(5):
                time.sleep(0.01)
    except KeyboardInterrupt as error:
        raised.append((time.monotonic(), type(error).__name__, str(error)))
    # pyarrow may send the signal once more, which would end a process that exits.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(json.dumps(raised), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
