#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# TensorFlow writes TFRecord with a "SNAPPY" that no Snappy program reads, and cannot read that of others.
#
# Versions: tensorflow-cpu 2.21.0, cramjam 2.14.0, pyarrow 26.0.1 (PyPI).
# Behaviour: tf.data's TFRecordWriter accepts "SNAPPY", and so does TFRecordDataset; tf.io.TFRecordWriter rejects the word.
#   The file is neither of the two formats that Snappy defines, frames or one raw block: it is a sequence of raw blocks, each behind
#   its length in 4 bytes, big-endian, as in Hadoop but without the length of the decompressed data.
#   Decompressors of the two formats reject it, and TensorFlow rejects Snappy's frames.
#   The file does not begin with a magic number, and its name does not tell the compression.
# Why it matters: data that a pipeline wrote with this compression can only be read by TensorFlow, unless a reader knows the blocks.
# Output seen:
#   tf.io.TFRecordOptions: ValueError
#   TFRecordDataset reads 5 records
#   Snappy's frames: DecompressionError, a raw block: DecompressionError, pyarrow: OSError
#   a raw block behind 4 bytes of length: the TFRecord file
#   TFRecordDataset on Snappy's frames: DataLossError
#
# Exits with 0 while the behaviour is this one. Downloads 0.3 GB.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0 cramjam==2.14.0 pyarrow==26.0.1
cat > blocks.py <<'EOF'
import struct

import cramjam
import pyarrow
import tensorflow as tf

RECORDS = [b"record %d " % number * 20 for number in range(5)]


def error(call, *args, **options):
    """The name of the exception of a call."""
    try:
        call(*args, **options)
    except Exception as found:
        return type(found).__name__
    raise SystemExit(f"{call} succeeds")


def read(path):
    return [record.numpy() for record in tf.data.TFRecordDataset(path, "SNAPPY")]


refused = error(tf.io.TFRecordOptions, "SNAPPY")
print("tf.io.TFRecordOptions:", refused)
tf.data.experimental.TFRecordWriter("blocks", "SNAPPY").write(tf.data.Dataset.from_tensor_slices(RECORDS))
assert read("blocks") == RECORDS
print(f"TFRecordDataset reads {len(RECORDS)} records")

with open("blocks", "rb") as file:
    content = file.read()
frames = error(cramjam.snappy.decompress, content)
raw = error(cramjam.snappy.decompress_raw, content)
codec = error(pyarrow.decompress, content, decompressed_size=1000, codec="snappy")
print(f"Snappy's frames: {frames}, a raw block: {raw}, pyarrow: {codec}")

with tf.io.TFRecordWriter("plain") as writer:
    for record in RECORDS:
        writer.write(record)
with open("plain", "rb") as file:
    plain = file.read()
(length,) = struct.unpack(">I", content[:4])
assert length == len(content) - 4 and bytes(cramjam.snappy.decompress_raw(content[4:])) == plain
print("a raw block behind 4 bytes of length: the TFRecord file")
with open("frames", "wb") as file:
    file.write(bytes(cramjam.snappy.compress(plain)))
loss = error(read, "frames")
print("TFRecordDataset on Snappy's frames:", loss)
assert (refused, loss, codec) == ("ValueError", "DataLossError", "OSError")
EOF
TF_CPP_MIN_LOG_LEVEL=3 venv/bin/python blocks.py 2> log || { tail -n 20 log; exit 1; }
