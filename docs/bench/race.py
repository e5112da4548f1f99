#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Race tfarrow against TensorFlow and tfx_bsl, and print the first table of docs/benchmarks.md.

    python3 docs/bench/race.py PROGRAM [--corpora FOLDER] [--mb 256] [--only NAME ..] [--jobs mean decode parquet back]

needs `pip install tensorflow tfx-bsl pyarrow numpy`. Corpora that FOLDER lacks are made first, four shards each.

    mean      the mean of one integer feature; the peers too decode no other
    decode    every feature of every record: into Arrow IPC files; a peer's into Arrow or ragged tensors in memory
    parquet   the same into Snappy Parquet, a file a shard
    back      to TFRecord again

PROGRAM is timed as a whole process, best of 5. The peers run in one process a corpus and are timed warm and without their
imports, best of 3; the best peer counts. PROGRAM's `back` reads Parquet first, the peer has its batches in memory.
All write to the same place, which is memory where there is a /dev/shm with room.

What PROGRAM wrote is counted, and its mean held against the peers'. A wrong answer ends the script with an error. A cell
of the table is how many times faster than the best peer PROGRAM is, and its speed in megabytes of uncompressed records.
"""
import argparse
import functools
import gzip
import math
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import tensorflow as tf
import tfx_bsl
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.cc.tfx_bsl_extension import coders

# The corpora and how many columns each has. The mean is that of the feature `label` where none is named here.
COLUMNS = {"tabular": 40, "tokens": 7, "ragged": 19, "embedding": 3, "images": 6, "tabular_gz": 40, "sequence": 5}
LABELS = {"tokens": "next_sentence_labels", "ragged": "id", "images": "image/class/label"}
JOBS = ["mean", "decode", "parquet", "back"]
COMPRESSION = {"tabular_gz": "GZIP"}
SHARDS = 4
log = functools.partial(print, file=sys.stderr, flush=True)


def feature(values):
    """A list holds bytes, an array floats or integers."""
    if isinstance(values, list):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values.dtype == np.float32:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def features(named):
    return tf.train.Features(feature={name: feature(values) for name, values in named.items()})


def make_record(name, rng):
    def integers(low, high, count=1): return rng.integers(low, high, count)
    def floats(count): return rng.standard_normal(count).astype(np.float32)
    match name:
        case "tabular" | "tabular_gz":  # clicks: a label, 13 integers and 26 codes of 8 characters
            named = {"label": (rng.random(1) < 0.25).astype(np.int64)}
            named |= {f"int_{i:02}": integers(0, 2**20) for i in range(13)}
            named |= {f"cat_{i:02}": [b"%08x" % code] for i, code in enumerate(integers(0, 2**32, 26))}
        case "tokens":  # text for a masked language model: padded lists of a fixed length
            used, place = rng.integers(60, 128), np.arange(128)
            named = {"input_ids": np.where(place < used, integers(0, 30522, 128), 0),
                     "input_mask": (place < used).astype(np.int64), "segment_ids": (place > used // 2).astype(np.int64),
                     "masked_lm_positions": np.sort(integers(0, used, 20)), "masked_lm_ids": integers(0, 30522, 20),
                     "masked_lm_weights": np.ones(20, np.float32), "next_sentence_labels": integers(0, 2)}
        case "ragged":  # lists of any length, and a third of the features missing
            named = {"id": integers(0, 2**40)}
            for i in range(6):
                named[f"i{i}"] = integers(-1000, 2**30, rng.integers(41))
                named[f"f{i}"] = floats(rng.integers(41))
                named[f"b{i}"] = [rng.bytes(size) for size in integers(0, 24, rng.integers(11))]
            named = {key: values for key, values in named.items() if key == "id" or rng.random() < 2 / 3}
        case "embedding":  # one long list of floats
            named = {"id": [b"%016x" % rng.integers(2**62)], "label": integers(0, 10), "embedding": floats(768)}
        case "images":  # about 110 kB of bytes that nothing compresses, and what is known of them
            number, data = integers(0, 1000), rng.bytes(rng.integers(90_000, 130_000))
            named = {"image/encoded": [b"\xff\xd8\xff\xe0" + data + b"\xff\xd9"], "image/format": [b"jpeg"],
                     "image/height": integers(200, 600), "image/width": integers(200, 600),
                     "image/class/label": number, "image/class/text": [b"class %d" % number[0]]}
        case "sequence":  # speech: a SequenceExample of 5 to 30 steps
            steps = range(rng.integers(5, 31))
            lists = {"frame": [floats(40) for _ in steps],
                     "token": [[b"t%d" % rng.integers(5000)] for _ in steps],
                     "tags": [integers(0, 50, rng.integers(5)) for _ in steps]}
            lists = {key: tf.train.FeatureList(feature=map(feature, steps)) for key, steps in lists.items()}
            return tf.train.SequenceExample(
                context=features({"speaker": [b"spk%03d" % rng.integers(200)], "rate": np.array([16000])}),
                feature_lists=tf.train.FeatureLists(feature_list=lists)).SerializeToString()
    return tf.train.Example(features=features(named)).SerializeToString()


def shard_paths(folder, name):
    end = ".tfrecord.gz" if name in COMPRESSION else ".tfrecord"
    return [os.path.join(folder, f"{name}-{i:05}-of-{SHARDS:05}{end}") for i in range(SHARDS)]


def make_corpus(folder, name, megabytes):
    """Every record is made anew: a corpus that repeats itself would compress too well."""
    log(f"{name}: making {megabytes} MB in {folder}")
    unfinished = folder + ".unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    os.makedirs(unfinished)
    for seed, path in enumerate(shard_paths(unfinished, name)):
        rng, left = np.random.default_rng(seed), megabytes * 1e6 / SHARDS
        with tf.io.TFRecordWriter(path, COMPRESSION.get(name)) as writer:
            while left > 0:
                record = make_record(name, rng)
                writer.write(record)
                left -= len(record) + 16
    os.rename(unfinished, folder)


def count_frames(paths):
    """How many records TFRecord files hold, and how many bytes these are."""
    records = payload = 0
    for path in paths:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            while header := file.read(12):
                length = int.from_bytes(header[:8], "little")
                if len(file.read(length + 4)) != length + 4:
                    sys.exit(f"{path} ends within a record")
                records, payload = records + 1, payload + length
    return records, payload


def best_of(runs, job, out):
    """The shortest time of `job`, and its answer. `out` is an empty folder before each run, and stays after the last."""
    shortest = math.inf
    for _ in range(runs):
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        start = time.perf_counter()
        answer = job()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest, answer


def time_peers(name, files, jobs, out):
    """For each job, by peer: the time, and the answer, which is the mean or the number of records."""
    label, size = LABELS.get(name, "label"), 64 if name == "images" else 2000
    schema = schema_pb2.Schema(feature=[schema_pb2.Feature(name=label, type=schema_pb2.INT)])
    label_decoder = coders.ExamplesToRecordBatchDecoder(schema.SerializeToString())
    decoder = coders.ExamplesToRecordBatchDecoder()
    if name == "sequence":
        decoder = coders.SequenceExamplesToRecordBatchDecoder("lists")

    def batches(files, size, parallel=None):
        return tf.data.TFRecordDataset(files, COMPRESSION.get(name), 8 << 20, parallel).batch(size)

    def tf_parsed(spec):
        serialized = batches(files, size, len(files))
        return serialized.map(lambda batch: tf.io.parse_example(batch, spec), tf.data.AUTOTUNE).prefetch(4)

    def bsl_parsed(decoder):
        return map(decoder.DecodeBatch, batches(files, size, len(files)).prefetch(2).as_numpy_iterator())

    def tf_mean():
        parsed = tf_parsed({label: tf.io.FixedLenFeature([], tf.int64)}).as_numpy_iterator()
        return float(np.concatenate([batch[label] for batch in parsed]).mean())

    def bsl_mean():
        parsed = bsl_parsed(label_decoder)
        return float(np.concatenate([batch.column(0).flatten().to_numpy() for batch in parsed]).mean())

    def tf_decode():
        kinds = {"int64": tf.int64, "float": tf.float32, "large_binary": tf.string}
        columns = [column for column in next(bsl_parsed(decoder)).schema if column.type != pa.null()]
        spec = {c.name: tf.io.RaggedFeature(kinds[str(c.type.value_type)], c.name) for c in columns}
        return sum(int(batch[columns[0].name].nrows()) for batch in tf_parsed(spec))

    def bsl_decode():
        return sum(batch.num_rows for batch in bsl_parsed(decoder))

    def bsl_parquet():
        records = 0
        for file in files:
            writer = None
            for batch in map(decoder.DecodeBatch, batches(file, size * 8).prefetch(2).as_numpy_iterator()):
                path = f"{out}/{os.path.basename(file)}.parquet"
                writer = writer or pq.ParquetWriter(path, batch.schema, compression="snappy")
                writer.write_batch(batch.select(writer.schema.names))
                records += batch.num_rows
            writer.close()
        return records

    def bsl_back():
        encoder = coders.RecordBatchToExamplesEncoder()
        with tf.io.TFRecordWriter(f"{out}/all.tfrecord") as writer:
            for batch in held:
                for record in encoder.Encode(batch):
                    writer.write(record)
        return sum(batch.num_rows for batch in held)

    decoders = [bsl_decode] if name == "sequence" else [tf_decode, bsl_decode]
    peers = {"mean": [tf_mean, bsl_mean], "decode": decoders, "parquet": [bsl_parquet], "back": [bsl_back]}
    held = list(bsl_parsed(decoder)) if "back" in jobs else []
    return {job: {run.__name__: best_of(3, run, out) for run in peers[job]} for job in jobs}


def check(out, job, name, records, payload):
    """End the script where `out` does not hold what the corpus holds."""
    if job == "back":
        found, size = count_frames(entry.path for entry in os.scandir(out))
        right = abs(size - payload) <= payload / 50  # two writers may differ by a few bytes a record
    else:
        table = pa.dataset.dataset(out, format="arrow" if job == "decode" else "parquet").to_table()
        found, filled = len(table), sum(column.null_count < len(table) for column in table.columns)
        right = filled == table.num_columns == COLUMNS[name]
    if not right or found != records:
        sys.exit(f"{name}, {job}: the output has {found} records, the corpus {records}; or it lacks columns or values")


def time_program(program, name, folder, jobs, scratch, records, payload):
    """For each job the time and the answer, as of the peers. What was written is checked here."""
    def run(arguments):
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{program} {' '.join(arguments)}: exit status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    parquet, out, to_parquet = f"{scratch}/parquet", f"{scratch}/out", ["--to", "parquet", "--compression", "snappy"]
    mean = f"""SELECT avg("{LABELS.get(name, 'label')}") FROM '{folder.replace("'", "''")}/'"""
    commands = {"mean": ["sql", "--format", "csv", mean], "decode": ["convert", folder, out, "--to", "arrow"],
                "parquet": ["convert", folder, out, *to_parquet], "back": ["convert", parquet, out, "--to", "tfrecord"]}
    if "back" in jobs:
        run(["convert", folder, parquet, *to_parquet])
    results = {}
    for job in jobs:
        seconds, printed = best_of(5, lambda: run(commands[job]), out)
        results[job] = seconds, float(printed.split()[-1]) if job == "mean" else records
        if job != "mean":
            check(out, job, name, records, payload)
    return results


def race(program, name, folder, jobs):
    """Time all jobs of one corpus, and return its cells of the table."""
    files = shard_paths(folder, name)
    records, payload = count_frames(files)
    log(f"{name}: {records} records, {payload / 1e6:.1f} MB")
    in_memory = os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 4 * payload
    with tempfile.TemporaryDirectory(dir="/dev/shm" if in_memory else None) as scratch:
        ours = time_program(program, name, folder, jobs, scratch, records, payload)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as child:
            theirs = child.submit(time_peers, name, files, jobs, f"{scratch}/out").result()
    cells = {}
    for job, (seconds, answer) in ours.items():
        for peer, (took, said) in (theirs[job] | {program: ours[job]}).items():
            log(f"{name:10} {job:8} {took:8.3f} s {payload / 1e6 / took:6.0f} MB/s  {peer}")
            if not math.isclose(answer, said, rel_tol=1e-9):
                sys.exit(f"{name}, {job}: {program} has {answer}, {peer} has {said}")
        best = min(took for took, _ in theirs[job].values())
        cells[job] = f"{best / seconds:.1f}x ({payload / 1e6 / seconds:.0f} MB/s)"
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("--corpora", metavar="FOLDER", help="default: a folder under the system's temporary folder")
    parser.add_argument("--mb", type=int, default=256, help="the size of a corpus that is made")
    parser.add_argument("--only", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    options = parser.parse_args()
    corpora = os.path.abspath(options.corpora or os.path.join(tempfile.gettempdir(), f"tfarrow-bench-{options.mb}"))
    columns = [job for job in JOBS if job in options.jobs]
    rows = [["corpus", *columns], ["---"] * (len(columns) + 1)]
    for name in options.only:
        folder = os.path.join(corpora, name)
        if not os.path.exists(shard_paths(folder, name)[0]):
            make_corpus(folder, name, options.mb)
        jobs = [job for job in columns if name != "sequence" or job in ("decode", "parquet")]
        cells = race(options.program, name, folder, jobs)
        rows.append([name, *(cells.get(job, "") for job in columns)])
    versions = f"tensorflow {tf.__version__}, tfx_bsl {tfx_bsl.__version__}, pyarrow {pa.__version__}"
    print(f"{versions}, {os.cpu_count()} cores\n")
    print(*("| " + " | ".join(row) + " |" for row in rows), sep="\n")


if __name__ == "__main__":
    main()
