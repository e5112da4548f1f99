#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# TensorFlow reads concatenated gzip shards in full, and of concatenated zlib shards only the first.
#
# Versions: tensorflow-cpu 2.21.0 (PyPI).
# Behaviour: two TFRecord files that TFRecordWriter compressed with GZIP, one after the other in one file, are read as all their
#   records, as gzip defines it for its members.
#   The same with ZLIB gives the records of the first stream: all bytes behind its end are ignored, whatever they are, without an
#   error or a warning.
# Why it matters: compressed shards are often merged by `cat`, or appended to by a job that was started again.
#   With ZLIB, training then sees a part of the data, and a shard that is followed by other bytes counts as complete.
# Output seen:
#   GZIP: 5 + 5 records are read as 10
#   ZLIB: 5 + 5 records are read as 5
#   ZLIB: 5 records and 100 zeros are read as 5
#
# Exits with 0 while the behaviour is this one. Downloads 0.3 GB.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0
cat > streams.py <<'EOF'
import tensorflow as tf


def shard(compression):
    """A compressed file of five records."""
    with tf.io.TFRecordWriter("shard", compression) as writer:
        for number in range(5):
            writer.write(b"record %d" % number)
    with open("shard", "rb") as file:
        return file.read()


def count(content, compression):
    with open("content", "wb") as file:
        file.write(content)
    return sum(1 for _ in tf.data.TFRecordDataset("content", compression))


gzip, zlib = (count(2 * shard(compression), compression) for compression in ("GZIP", "ZLIB"))
zeros = count(shard("ZLIB") + bytes(100), "ZLIB")
print(f"GZIP: 5 + 5 records are read as {gzip}")
print(f"ZLIB: 5 + 5 records are read as {zlib}")
print(f"ZLIB: 5 records and 100 zeros are read as {zeros}")
assert (gzip, zlib, zeros) == (10, 5, 5)
EOF
TF_CPP_MIN_LOG_LEVEL=3 venv/bin/python streams.py 2> log || { tail -n 20 log; exit 1; }
