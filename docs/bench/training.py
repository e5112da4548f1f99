#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times random access, shuffled batches and the first batch of a training run, beside tf.data, vahidk's tfrecord, Grain, MosaicML
streaming, WebDataset and Hugging Face datasets.

    python3 docs/bench/training.py SHARDS [--large SHARDS] [--images FOLDER] [--tf-python PYTHON] [--runs 5] [--only TEXT]

The Python that runs this script has tfarrow, numpy, pyarrow, and optionally torch, array_record with grain, mosaicml-streaming,
webdataset and datasets. Their jobs read files of their own formats, with the first 100,000 records. SHARDS are TFRecord files
of small records, such as `tabular` of race.py; --large has more of them for the time to the first batch (by default SHARDS).
--images is a folder of JPEG images of some 110 kB; if there is none, it gets 4 GB of them, for which Pillow is needed. --only
runs the jobs whose names contain a text.

    --tf-python    pip install tensorflow-cpu tfrecord

Each job runs in a process of its own, all jobs in turn, and the best of the runs counts. Files are in the page cache. Every job
must find all records. A ratio below its target is printed in bold.
"""
import argparse
import functools
import glob
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
BATCH = 256
ROWS = 50_000
SAMPLE = 100_000
log = functools.partial(print, file=sys.stderr, flush=True)


def counted(batches):
    """The number of records of batches, each of which is read as arrays."""
    records = 0
    for batch in batches:
        batch.to_numpy()
        records += batch.num_rows
    return records


def in_order(source):
    import tfarrow
    return lambda: counted(tfarrow.scan(source).batches(BATCH))


def shuffled(source, shuffle):
    import tfarrow
    dataset = tfarrow.Dataset(source)
    return lambda: counted(dataset.batches(BATCH, shuffle=shuffle, seed=1))


def loader(source, workers):
    import tfarrow
    from torch.utils.data import DataLoader
    dataset = tfarrow.torch.IterableDataset(source, batch_size=BATCH, shuffle="blocks", seed=1)
    return lambda: sum(len(next(iter(batch.values()))) for batch in DataLoader(dataset, batch_size=None, num_workers=workers))


def single(source):
    """Records one by one, as dicts."""
    import tfarrow
    dataset = tfarrow.Dataset(source, threads=1)
    numbers = [random.randrange(len(dataset)) for _ in range(ROWS)]
    return lambda: sum(1 for number in numbers if dataset[number])


def grain(source):
    """Records one by one, as bytes that are not parsed."""
    import grain.python
    import tfarrow
    from array_record.python import array_record_module as array_record
    path = os.path.join(tempfile.mkdtemp(), "records.array_record")
    writer = array_record.ArrayRecordWriter(path, "group_size:1")
    # The writer takes its time, and the speed of reading does not depend on the number of records.
    for batch in tfarrow.scan(source, record_type="raw").limit(ROWS).batches():
        for record in batch["record"]:
            writer.write(bytes(record))
    writer.close()
    data = grain.python.ArrayRecordDataSource(path)
    numbers = [random.randrange(len(data)) for _ in range(ROWS)]
    return lambda: sum(1 for number in numbers if data[number])


def sample(source):
    """The first records as batches of columns."""
    import tfarrow
    return tfarrow.scan(source).limit(SAMPLE).batches(1000)


def mosaicml(source):
    """Batches of tensors of a shuffled StreamingDataset."""
    import numpy as np
    from streaming import MDSWriter, StreamingDataset
    from torch.utils.data import DataLoader
    folder = tempfile.mkdtemp()
    columns = {name: "int64" if isinstance(values, np.ndarray) else "str" for name, values in next(sample(source)).items()}
    with MDSWriter(out=folder, columns=columns) as writer:
        for batch in sample(source):
            for row in batch.to_pylist():
                writer.write(row)
    data = StreamingDataset(local=folder, shuffle=True, shuffle_seed=1, batch_size=BATCH)
    return lambda: sum(len(next(iter(batch.values()))) for batch in DataLoader(data, batch_size=BATCH))


def web_dataset(source):
    """Lists of dicts, from a queue of 10,000."""
    import webdataset
    folder = tempfile.mkdtemp()
    with webdataset.ShardWriter(f"{folder}/%05d.tar", maxcount=25_000, verbose=0) as writer:
        number = 0
        for batch in sample(source):
            for row in batch.to_pylist():
                writer.write({"__key__": f"{number:08d}", "row.pyd": row})
                number += 1
    files = sorted(glob.glob(f"{folder}/*.tar"))

    def run():
        data = webdataset.WebDataset(files, shardshuffle=len(files), seed=1).shuffle(10_000).decode().to_tuple("row.pyd")
        return sum(len(rows) for (rows,) in data.batched(BATCH, collation_fn=lambda rows: list(zip(*rows))))
    return run


def hugging_face(source):
    """Batches of arrays of a shuffled Dataset."""
    import datasets
    import tfarrow
    datasets.disable_progress_bars()
    path = os.path.join(tempfile.mkdtemp(), "rows.parquet")
    import pyarrow.parquet
    pyarrow.parquet.write_table(tfarrow.scan(source).limit(SAMPLE).to_arrow(), path)
    data = datasets.Dataset.from_parquet(path, cache_dir=os.path.dirname(path)).with_format("numpy")
    return lambda: sum(len(next(iter(batch.values()))) for batch in data.shuffle(seed=1).iter(BATCH))


def tf_data(source, shuffle=10_000):
    import tensorflow as tf
    files = sorted(glob.glob(f"{source}/*.tfrecord"))
    spec = {}
    for name, feature in tf.train.Example.FromString(next(iter(tf.data.TFRecordDataset(files))).numpy()).features.feature.items():
        kind = {"int64_list": tf.int64, "float_list": tf.float32, "bytes_list": tf.string}[feature.WhichOneof("kind")]
        count = len(getattr(feature, feature.WhichOneof("kind")).value)
        spec[name] = tf.io.FixedLenFeature([] if count == 1 else [count], kind)

    def run():
        data = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE).shuffle(shuffle, seed=1).batch(BATCH)
        data = data.map(lambda records: tf.io.parse_example(records, spec), num_parallel_calls=tf.data.AUTOTUNE)
        return sum(len(next(iter(batch.values()))) for batch in data.prefetch(tf.data.AUTOTUNE))
    return run


def vahidk(source):
    """Dicts of records from a queue of 10,000, in place of batches."""
    from tfrecord import iterator_utils
    from tfrecord.reader import tfrecord_loader

    def records():
        for file in sorted(glob.glob(f"{source}/*.tfrecord")):
            yield from tfrecord_loader(file, None, None)
    return lambda: sum(1 for _ in iterator_utils.shuffle_iterator(records(), 10_000))


def first(source, shuffle, half):
    """Listing, opening, and the first batch, or the one after a state at half."""
    import tfarrow

    def run():
        loader = tfarrow.scan(source).batches(BATCH, shuffle=shuffle, seed=1)
        if half:
            state = loader.state_dict()
            loader.load_state_dict({**state, "position": state["records"] // 2})
        return next(loader).num_rows
    return run


def memory(source, shuffle):
    import tfarrow

    def run():
        counted(tfarrow.scan(source).batches(BATCH, shuffle=shuffle, seed=1))
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return run


IMAGES = {"image/encoded": (224, 224)}


def make_images(folder, total=4 << 30):
    """Writes records of images in the shape of ImageNet's, of which 300 are different."""
    import io

    import numpy as np
    import tfarrow
    from PIL import Image

    rng = np.random.default_rng(1)
    encoded = []
    for _ in range(300):
        coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)).resize((500, 375), Image.Resampling.BICUBIC)
        noisy = np.asarray(coarse).astype(int) + rng.normal(0, 14, (375, 500, 3))
        file = io.BytesIO()
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "jpeg", quality=90)
        encoded.append(file.getvalue())
    log(f"images of {sum(map(len, encoded)) / len(encoded):.0f} bytes")

    def batches():
        import pyarrow as pa
        written = 0
        while written < total:
            chosen = [encoded[number] for number in rng.integers(0, len(encoded), 256)]
            written += sum(map(len, chosen))
            labels = rng.integers(0, 1000, len(chosen))
            yield pa.record_batch({"image/encoded": pa.array(chosen, pa.binary()), "label": pa.array(labels)})

    import pyarrow as pa
    schema = pa.schema({"image/encoded": pa.binary(), "label": pa.int64()})
    tfarrow.write(pa.RecordBatchReader.from_batches(schema, batches()), f"{folder}/images.tfrecord", shards=8)


def images(source):
    import tfarrow
    dataset = tfarrow.Dataset(source, images=IMAGES)
    return lambda: sum(len(batch["image/encoded"]) for batch in dataset.batches(64, shuffle="blocks", seed=1))


def images_of_tf_data(source):
    import tensorflow as tf
    files = sorted(glob.glob(f"{source}/*.tfrecord"))
    spec = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def decode(record):
        parsed = tf.io.parse_single_example(record, spec)
        image = tf.image.resize(tf.io.decode_jpeg(parsed["image/encoded"], channels=3), (224, 224), antialias=True)
        return tf.cast(image, tf.uint8), parsed["label"]

    def run():
        data = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE).shuffle(512, seed=1)
        data = data.map(decode, num_parallel_calls=tf.data.AUTOTUNE).batch(64).prefetch(tf.data.AUTOTUNE)
        return sum(len(labels) for _, labels in data)
    return run


def dali(source):
    """Batches of a DALI pipeline on the CPU, from a queue of 10,000 records."""
    import nvidia.dali.tfrecord as tfrecord
    import tfarrow
    kinds = {"i": (tfrecord.int64, 0), "u": (tfrecord.int64, 0), "f": (tfrecord.float32, 0.0)}
    features = {}
    for name, values in next(tfarrow.scan(source).batches(1)).items():
        kind = getattr(getattr(values, "values", values), "dtype", None)
        if kind is None:
            features[name] = tfrecord.FixedLenFeature((), tfrecord.string, "")
        else:
            features[name] = tfrecord.VarLenFeature(*kinds[kind.kind])
    return pipeline_of(source, features, lambda read: tuple(read.values()), BATCH, 10_000)


def images_of_dali(source):
    import nvidia.dali.fn as fn
    import nvidia.dali.tfrecord as tfrecord
    features = {"image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""), "label": tfrecord.FixedLenFeature((1,), tfrecord.int64, 0)}

    def decoded(read):
        image = fn.decoders.image(read["image/encoded"], device="cpu")
        return fn.resize(image, resize_x=224, resize_y=224, antialias=True), read["label"]
    return pipeline_of(source, features, decoded, 64, 512)


def pipeline_of(source, features, outputs, batch_size, queue):
    """A DALI pipeline over an epoch of the records, with the indexes that DALI needs."""
    import nvidia.dali.fn as fn
    from nvidia.dali import pipeline_def
    files = sorted(glob.glob(f"{source}/*.tfrecord"))
    folder = tempfile.mkdtemp()
    subprocess.run([sys.executable, "-m", "tfarrow", "index", source, "--format", "dali", "--to", folder], check=True)
    indexes = [f"{folder}/{os.path.basename(file)}.idx" for file in files]

    @pipeline_def(batch_size=batch_size, num_threads=os.cpu_count(), device_id=None)
    def pipeline():
        read = fn.readers.tfrecord(
            path=files, index_path=indexes, features=features, random_shuffle=True, initial_fill=queue, pad_last_batch=False, name="reader")
        return outputs(read)

    built = pipeline()
    built.build()
    count = built.epoch_size("reader")

    def run():
        records = 0
        while records < count:
            records += len(built.run()[0])
        return records
    return run


def memory_of_images(source):
    run = images(source)

    def peak():
        run()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return peak


JOBS = {
    "in order": in_order,
    "blocks": functools.partial(shuffled, shuffle="blocks"),
    "global": functools.partial(shuffled, shuffle="global"),
    "loader in order": functools.partial(shuffled, shuffle=False),
    "DataLoader, 0 workers": functools.partial(loader, workers=0),
    "DataLoader, 2 workers": functools.partial(loader, workers=2),
    "ds[i]": single,
    "Grain over ArrayRecord": grain,
    "MosaicML streaming": mosaicml,
    "WebDataset, queue of 10,000": web_dataset,
    "Hugging Face datasets": hugging_face,
    "tf.data, shuffle(10,000)": tf_data,
    "vahidk, queue of 10,000": vahidk,
    "first batch, blocks": functools.partial(first, shuffle="blocks", half=False),
    "first batch, global": functools.partial(first, shuffle="global", half=False),
    "batch at half, blocks": functools.partial(first, shuffle="blocks", half=True),
    "batch at half, global": functools.partial(first, shuffle="global", half=True),
    "peak memory, blocks": functools.partial(memory, shuffle="blocks"),
    "peak memory, global": functools.partial(memory, shuffle="global"),
    "images": images,
    "images, tf.data": images_of_tf_data,
    "DALI, queue of 10,000": dali,
    "images, DALI": images_of_dali,
    "peak memory, images": memory_of_images,
}
PEERS = ("tf.data, shuffle(10,000)", "vahidk, queue of 10,000", "images, tf.data")
# A figure, what it is compared with, and the least ratio.
RATIOS = [
    ("blocks", "in order", 0.9),
    ("global", "in order", 0.7),
    ("blocks", "tf.data, shuffle(10,000)", 8),
    ("blocks", "vahidk, queue of 10,000", 1),
    ("blocks", "MosaicML streaming", 1),
    ("blocks", "WebDataset, queue of 10,000", 1),
    ("global", "Hugging Face datasets", 1),
    ("DataLoader, 0 workers", "in order", 0.9),
    ("DataLoader, 2 workers", "in order", 0.6),
    ("ds[i]", "Grain over ArrayRecord", 1.5),
    ("images", "images, tf.data", 1.5),
    ("blocks", "DALI, queue of 10,000", 1),
    ("images", "images, DALI", 1),
]


def work(name, source):
    """Runs a job, and prints its seconds and its result."""
    run = JOBS[name](source)
    begun = time.perf_counter()
    result = run()
    print(json.dumps([time.perf_counter() - begun, result]))


def measure(name, source, python):
    done = subprocess.run([python, __file__, source, "--job", name], capture_output=True, text=True)
    if done.returncode:
        log(f"{name}: {done.stderr.strip().splitlines()[-1]}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--large")
    parser.add_argument("--images")
    parser.add_argument("--only", default="")
    parser.add_argument("--tf-python")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--job")
    options = parser.parse_args()
    if options.job:
        return work(options.job, options.source)
    if options.images and not glob.glob(f"{options.images}/*.tfrecord"):
        make_images(options.images)
    jobs = [name for name in JOBS if options.only in name and (options.images or "images" not in name)]
    best = {}
    for run in range(options.runs):
        for name in jobs:
            python = options.tf_python if name in PEERS else sys.executable
            is_large = name.startswith(("first", "batch at", "peak"))
            if python is None or (name in best and best[name] is None):
                continue
            source = options.images if "images" in name else options.large or options.source if is_large else options.source
            found = measure(name, source, python)
            if found is None or name not in best or found[0] < best[name][0]:
                best[name] = found
            log(f"run {run + 1}: {name}: {found}")
    best = {name: found for name, found in best.items() if found}
    others = ("ds", "Grain", "MosaicML", "WebDataset", "Hugging", "first", "batch at", "peak", "images")
    for of_images in (False, True):
        names = [name for name in best if (name.startswith("images") if of_images else not name.startswith(others))]
        assert len({best[name][1] for name in names}) <= 1, f"not all records were read: {best}"
    print("| job | result |\n|---|---|")
    for name, (seconds, result) in best.items():
        if name.startswith("peak"):
            print(f"| {name} | {result / 1e6:.0f} MB |")
        elif name.startswith(("first", "batch at")):
            print(f"| {name} | {seconds * 1e3:.0f} ms |")
        else:
            print(f"| {name} | {result / seconds:,.0f} records/s |")
    print("\n| ratio | result | target |\n|---|---|---|")
    for name, other, target in RATIOS:
        if name in best and other in best:
            ratio = best[name][1] / best[name][0] / (best[other][1] / best[other][0])
            text = f"{ratio:.2f}" if ratio >= target else f"**{ratio:.2f}**"
            print(f"| {name}, against {other} | {text} | {target} |")


if __name__ == "__main__":
    main()
