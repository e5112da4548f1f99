"""Functions that other processes run. Spawned processes import this module."""

import os

import tfarrow


def read(scan):
    """The rows of a scan."""
    return scan.to_pylist()


def read_batches(scan):
    return sum(batch.num_rows for batch in scan.batches(7))


def read_source(path):
    """The number of records of a path, counted in three ways."""
    return tfarrow.count(path), tfarrow.scan(path).count(), len(tfarrow.scan(path).to_pylist())


def query(path):
    return tfarrow.sql(f"SELECT count(*) AS n FROM '{path}'").to_pylist()


def describe(path):
    return tfarrow.stats(path)["records"], tfarrow.verify(path).ok, tfarrow.schema(path).num_records


def write(path):
    return tfarrow.write(tfarrow.scan(path[0]), path[1])


def fail(path):
    """The exception of a corrupt file comes back to the parent."""
    return tfarrow.scan(path).to_pylist()


def process(_):
    return os.getpid()
