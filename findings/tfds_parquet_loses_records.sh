#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# TensorFlow Datasets loses records when it prepares a data set as Parquet.
#
# Versions: tensorflow-datasets 4.9.10, tensorflow-cpu 2.21.0 (PyPI).
# Behaviour: `file_format="parquet"` writes 400 of the 1,000 examples of a shard, without an error or a warning.
#   The metadata beside the shard says 1,000, so that only a later `as_dataset` fails.
#   The writer takes its input in batches of 100, and before each batch it passes over as many examples as it has written so far:
#   it writes 100, skips 100, writes 100, skips 200, and so on.
#   The file has one column, `data`, of serialized tf.train.Example messages.
#   With `file_format="tfrecord"`, all examples are written.
# Why it matters: a Parquet copy of training data lacks most of the data, and the loss grows with the size of the shard.
#   Programs that read the Parquet file itself see a smaller data set that looks complete, in which each row is an opaque message.
# Output seen:
#   tfrecord: metadata 1000, read 1000
#   parquet: metadata 1000, rows 400 of data: binary
#   parquet: reading fails with FailedPreconditionError
#
# Exits with 0 while the behaviour is this one. Downloads 0.3 GB.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check tensorflow-datasets==4.9.10 tensorflow-cpu==2.21.0 pyarrow
cat > numbers_set.py <<'EOF'
import glob

import pyarrow.parquet
import tensorflow as tf
import tensorflow_datasets as tfds


class Numbers(tfds.core.GeneratorBasedBuilder):
    """The numbers 0 to 999."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict({"x": tf.int64}))

    def _split_generators(self, _):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for x in range(1000):
            yield x, {"x": x}


def prepared(file_format):
    builder = Numbers(data_dir=file_format, file_format=file_format)
    builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=1))
    return builder


builder = prepared("tfrecord")
count = sum(1 for _ in builder.as_dataset(split="train"))
print(f"tfrecord: metadata {builder.info.splits['train'].num_examples}, read {count}")
assert count == 1000

builder = prepared("parquet")
(path,) = glob.glob("parquet/**/*.parquet-*", recursive=True)
table = pyarrow.parquet.read_table(path)
column = f"{table.schema[0].name}: {table.schema[0].type}"
print(f"parquet: metadata {builder.info.splits['train'].num_examples}, rows {table.num_rows} of {column}")
assert (builder.info.splits["train"].num_examples, table.num_rows, column) == (1000, 400, "data: binary")
tf.train.Example.FromString(table["data"][0].as_py())
try:
    list(builder.as_dataset(split="train"))
except tf.errors.FailedPreconditionError as error:
    print(f"parquet: reading fails with {type(error).__name__}")
else:
    raise SystemExit("parquet: reading succeeds")
EOF
TF_CPP_MIN_LOG_LEVEL=3 venv/bin/python -c 'import numbers_set' 2> log > out || { tail -n 20 log; exit 1; }
grep -E '^(tfrecord|parquet): ' out
