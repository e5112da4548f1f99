"""Data sets for the tests of Ray and Spark. Processes of theirs import this module."""

import os
from pathlib import Path

import numpy as np

TESTDATA = Path(__file__).parents[3] / "testdata"

# Data sets with each column type, nulls, ragged columns, feature lists, raw records, renamed columns and compression.
SOURCES = [
    ("shards/", {}),
    ("shards/", {"layout": "list"}),
    ("ragged.tfrecord", {}),
    ("states.tfrecord", {}),
    ("sequence.tfrecord", {}),
    ("sequence.tfrecord", {"layout": "list"}),
    ("names.tfrecord", {}),
    ("raw.tfrecord", {}),
    ("tensors.tfrecord", {}),
    ("text.tfrecord", {}),
    ("scalar.tfrecord", {}),
    ("compressed/", {}),
    ("mixed_kinds/", {"on_conflict": "split"}),
    ("shards/", {"record_type": "raw"}),
    ("corrupt/data_crc.tfrecord", {"on_error": "skip"}),
]


def fail_once(flag, how):
    """Fails in the first process that calls it: raises an error, or kills the process."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    if how == "kill":
        os._exit(1)
    raise RuntimeError("this attempt fails")


def write_many(folder, tfarrow, shards=12, rows=500):
    """Writes shards of different sizes, whose column ``id`` numbers the records."""
    os.makedirs(folder, exist_ok=True)
    start = 0
    for shard in range(shards):
        count = rows * (1 + shard % 3)
        ids = np.arange(start, start + count)
        tfarrow.write({"id": ids, "half": ids.astype("float32") / 2}, f"{folder}/{shard:03d}.tfrecord")
        start += count
    return start


def write_uneven(folder, tfarrow, pa):
    """Writes shards none of which has all features, or all lengths: no shard alone has the schema of the data set."""
    os.makedirs(folder, exist_ok=True)
    tfarrow.write({"id": [0, 1], "word": ["a", "b"]}, f"{folder}/0.tfrecord")
    tfarrow.write({"id": [2, 3], "price": np.array([0.5, 1.5], "float32")}, f"{folder}/1.tfrecord")
    tags = pa.array([["x"], None, [], ["y", "z"]], pa.list_(pa.string()))
    tfarrow.write(pa.table({"id": [4, 5, 6, 7], "tags": tags, "word": [b"\xff", b"b", b"", b"c"]}), f"{folder}/2.tfrecord")
