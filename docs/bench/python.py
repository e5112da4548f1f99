#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Race the Python package against tf.data, tfx_bsl and vahidk's tfrecord, and print the tables of docs/benchmarks.md.

    python3 docs/bench/python.py PROGRAM --tf-python PYTHON --torch-python PYTHON [--corpora FOLDER] [--only NAME ..]

The Python that runs this script has tfarrow, numpy, pyarrow and polars. The other two are those of the peers:

    --tf-python       pip install tensorflow-cpu tfx-bsl polars && pip install "pyarrow==17.*"
    --torch-python    pip install torch tfrecord numpy; tfarrow is lent to it

A peer whose Python is not given, or lacks it, is reported. FOLDER holds the corpora as race.py makes them.

Each Python runs in a process of its own for each corpus, without imports in its times. All measurements of a corpus run in
turn, so that what else the machine does meets them all, and the best of 5 counts; what takes more than 30 seconds in all
runs twice. Files are in the page cache. MB are those of records, without their frames. tfarrow's times include listing the
files and inferring the schema, and `convert` is a whole process that writes to memory; tf.data's graphs are built before.

Every run must find all records and all columns: a wrong answer ends the script with an error. A ratio below its target is
printed in bold.
"""
import argparse
import collections
import functools
import glob
import importlib.metadata
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import types

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# The corpora, and how many columns each has.
COLUMNS = {"tabular": 40, "tokens": 7, "ragged": 19, "embedding": 3, "images": 6, "sequence": 5}
BATCH = 256
PARTS = ["speed", "import", "first", "memory"]
log = functools.partial(print, file=sys.stderr, flush=True)


# The jobs. Each prepares what is not timed, and returns what is: a function that returns a table, or the numbers of records
# and columns. They run in the Python that has what they import.


def to_arrow(corpus):
    import pyarrow, tfarrow
    return lambda: tfarrow.scan(corpus.folder).to_arrow()


def batches(corpus):
    import numpy, tfarrow

    def run():
        records = 0
        for batch in tfarrow.scan(corpus.folder).batches(BATCH):
            columns = batch.to_numpy()
            records += batch.num_rows
        return records, len(columns)
    return run


def to_polars(corpus):
    import polars, tfarrow
    return lambda: tfarrow.scan(corpus.folder).to_polars()


def loader(corpus, workers=0):
    """Includes making the dataset, which counts the records, and starting the workers."""
    import tfarrow.torch
    from torch.utils.data import DataLoader

    def run():
        dataset = tfarrow.torch.IterableDataset(corpus.folder, batch_size=BATCH)
        records = 0
        for batch in DataLoader(dataset, batch_size=None, num_workers=workers):
            records += len(next(iter(batch.values())))
        return records, len(batch)
    return run


def loader_2(corpus):
    return loader(corpus, 2)


def vahidk(corpus, index=False):
    """Dicts of records, which is what it has to offer: it makes no batches of lists of different lengths."""
    from tfrecord.reader import tfrecord_loader
    from tfrecord.tools.tfrecord2idx import create_index
    indices = {file: f"{corpus.scratch}/{os.path.basename(file)}.index" if index else None for file in corpus.files}
    for file, path in indices.items():
        if path is not None:
            create_index(file, path)
    is_sequence = corpus.name == "sequence"

    def run():
        records, names = 0, set()
        for file, path in indices.items():
            for record in tfrecord_loader(file, path, None, sequence_description={} if is_sequence else None):
                records += 1
                if len(names) < corpus.columns:
                    names.update(*record if is_sequence else (record,))
        return records, len(names)
    return run


def vahidk_index(corpus):
    return vahidk(corpus, True)


def parsed(corpus, size):
    """The data set as batches of tensors, by the spec that `tfarrow schema` makes."""
    import tensorflow as tf
    spec = {}
    exec(corpus.spec, spec)
    records = tf.data.TFRecordDataset(corpus.files, None, 8 << 20, len(corpus.files)).batch(size)

    def parse(batch):
        if "features" in spec:
            return tf.io.parse_example(batch, spec["features"])
        context, lists, _ = tf.io.parse_sequence_example(batch, spec["context_features"], spec["sequence_features"])
        return context | lists
    return records.map(parse, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def rows(tensor):
    return int(tensor.nrows() if hasattr(tensor, "nrows") else tensor.shape[0])


def large(corpus):
    """The size of batches with which the peers are fastest."""
    return 64 if corpus.name == "images" else 2000


def tf_batches(corpus, size=BATCH):
    dataset = parsed(corpus, size)

    def run():
        records = 0
        for batch in dataset:
            records += rows(next(iter(batch.values())))
        return records, len(batch)
    return run


def tf_decode(corpus):
    return tf_batches(corpus, large(corpus))


def tf_polars(corpus):
    """Numbers pass as numpy's arrays, bytes as lists, and Polars itself groups items to lists: the fastest that we found."""
    import numpy as np
    import polars as pl
    import tensorflow as tf
    dataset = parsed(corpus, large(corpus))

    def flat(tensor):
        values = tensor.numpy()
        if tensor.dtype == tf.string:
            dtype = pl.List(pl.Binary) if values.ndim > 1 else pl.Binary
            return pl.Series(values.tolist(), dtype=dtype)
        # Steps are padded to the longest of a batch: their arrays differ between batches, and lists do not.
        return pl.Series(values).arr.to_list() if values.ndim > 2 else pl.Series(values)

    def lists(items, splits):
        numbers = pl.DataFrame({"row": np.arange(len(splits) - 1)})
        items = pl.DataFrame({"row": np.repeat(numbers["row"], np.diff(splits)), "items": items})
        items = items.group_by("row", maintain_order=True).agg("items")
        return numbers.join(items, on="row", how="left", maintain_order="left")["items"]

    def series(name, tensor):
        if not isinstance(tensor, tf.RaggedTensor):
            return flat(tensor).alias(name)
        splits = [splits.numpy() for splits in reversed(tensor.nested_row_splits)]
        return functools.reduce(lists, splits, flat(tensor.flat_values)).alias(name)

    return lambda: pl.concat([pl.DataFrame([series(*named) for named in batch.items()]) for batch in dataset])


def bsl_decode(corpus):
    import tensorflow as tf
    from tfx_bsl.cc.tfx_bsl_extension import coders
    if corpus.name == "sequence":
        decoder = coders.SequenceExamplesToRecordBatchDecoder("lists")
    else:
        decoder = coders.ExamplesToRecordBatchDecoder()
    dataset = tf.data.TFRecordDataset(corpus.files, None, 8 << 20, len(corpus.files)).batch(large(corpus)).prefetch(2)

    def run():
        records = columns = 0
        for batch in map(decoder.DecodeBatch, dataset.as_numpy_iterator()):
            records += batch.num_rows
            # The lists of a SequenceExample are the fields of one column.
            columns = sum(field.type.num_fields if field.name == "lists" else 1 for field in batch.schema)
        return records, columns
    return run


def first_batch(corpus):
    import numpy, tfarrow

    def run():
        batch = next(tfarrow.scan(corpus.files[0]).batches(BATCH))
        return batch.num_rows, len(batch.to_numpy())
    return run


def endless(corpus):
    import numpy, tfarrow

    def run():
        end, records, peaks = time.perf_counter() + corpus.seconds, 0, []
        while not peaks or time.perf_counter() < end:
            for batch in tfarrow.scan(corpus.folder).batches(BATCH):
                records, columns = records + batch.num_rows, batch.to_numpy()
            with open("/proc/self/status") as status:
                peaks += [int(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM:")]
        return records, len(columns), peaks
    return run


# The name of each measurement, and the Python that it runs in.
JOBS = {
    "convert": ("`tfarrow convert --to arrow`", "program"),
    "to_arrow": ("`scan().to_arrow()`", "own"),
    "batches": ("`scan().batches(256)`, numpy", "own"),
    "to_polars": ("`scan().to_polars()`", "own"),
    "loader": ("`DataLoader`, 0 workers", "torch"),
    "loader_2": ("`DataLoader`, 2 workers", "torch"),
    "vahidk": ("tfrecord, records", "torch"),
    "vahidk_index": ("tfrecord with index, records", "torch"),
    "tf_batches": ("tf.data, parsed batches of 256", "tf"),
    "tf_decode": ("tf.data, parsed large batches", "tf"),
    "bsl_decode": ("tfx_bsl, `RecordBatch`es", "tf"),
    "tf_polars": ("tf.data to numpy to Polars", "tf"),
}
DECODE = {"tabular": 13, "tokens": 8, "ragged": 8, "embedding": 7, "images": 5, "sequence": 7}
# Each row compares a measurement with others, of which the fastest counts, and has a target.
RATIOS = [
    ("to_arrow", ["convert"], 0.9),
    ("batches", ["to_arrow"], 0.9),
    ("batches", ["vahidk"], 20),
    ("batches", ["vahidk_index"], 20),
    ("batches", ["tf_batches"], 5),
    ("loader", ["batches"], 0.8),
    ("loader_2", ["batches"], None),
    ("to_arrow", ["tf_decode", "bsl_decode"], DECODE),
    ("to_polars", ["tf_polars"], 10),
]
PACKAGES = ["numpy", "pyarrow", "polars", "torch", "tfrecord", "tensorflow-cpu", "tensorflow", "tfx-bsl"]


def child():
    """Answers each line of standard input, which names a job and a corpus, with a line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What a package prints is no answer.
    prepared = {}
    for line in sys.stdin:
        request = types.SimpleNamespace(**json.loads(line))
        try:
            answer = versions() if request.job == "versions" else timed(request, prepared)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def timed(request, prepared):
    run = prepared.get(request.job) or prepared.setdefault(request.job, globals()[request.job](request))
    begun = time.perf_counter()
    found = run()
    seconds = time.perf_counter() - begun
    records, columns, *more = found if isinstance(found, tuple) else found.shape
    return {"seconds": seconds, "records": records, "columns": columns, "more": more}


def versions():
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


class Child:
    """A process of a Python that runs jobs."""

    def __init__(self, python, site):
        self.python, self.process = python, None
        if python is not None:
            env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [site, os.environ.get("PYTHONPATH")]))}
            # With -P, no script beside this one is taken for a module of the same name.
            command = [python, "-P", os.path.abspath(__file__), "--child"]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, job, corpus):
        if self.process is None:
            return {"error": "its Python was not given"}
        try:
            print(json.dumps({"job": job} | corpus), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": f"{self.python} ended with status {self.process.wait()}"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()


class Program:
    """The program, as a whole process that writes to memory if there is room."""

    def __init__(self, program):
        self.program = program

    def ask(self, _, corpus):
        out = os.path.join(corpus["scratch"], "arrow")
        begun = time.perf_counter()
        done = subprocess.run([self.program, "convert", corpus["folder"], out, "--to", "arrow"], capture_output=True, text=True)
        seconds = time.perf_counter() - begun
        if done.returncode:
            return {"error": f"exit status {done.returncode}: {done.stderr.strip()}"}
        import pyarrow.dataset
        written = pyarrow.dataset.dataset(out, format="arrow")
        answer = {"seconds": seconds, "records": written.count_rows(), "columns": len(written.schema)}
        del written
        shutil.rmtree(out)
        return answer


class Bench:
    def __init__(self, options, scratch):
        import tfarrow
        self.options, self.scratch, self.tfarrow = options, scratch, tfarrow
        self.failed = collections.defaultdict(set)  # why, and what
        self.versions = {"own": {"tfarrow": tfarrow.__version__}}
        # tfarrow alone is lent to the Python with torch, without the other packages beside it.
        self.site = os.path.join(scratch, "site")
        os.mkdir(self.site)
        os.symlink(os.path.dirname(os.path.abspath(tfarrow.__file__)), os.path.join(self.site, "tfarrow"))

    def child(self, kind):
        pythons = {"own": sys.executable, "torch": self.options.torch_python, "tf": self.options.tf_python}
        return Child(pythons[kind], self.site if kind == "torch" else None)

    def shards(self, name):
        found = sorted(glob.glob(os.path.join(self.options.corpora, name, f"{name}-*")))
        return found or sys.exit(f"{self.options.corpora} has no corpus {name}: docs/bench/race.py makes it")

    def right(self, what, corpus, answer):
        """Whether a job ran. A wrong answer ends the script."""
        if "error" in answer:
            self.failed[answer["error"]].add(what)
            log(f"{corpus['name']:10} {what}: {answer['error']}")
            return False
        found = answer["records"], answer["columns"]
        if found != (corpus["records"], corpus["columns"]):
            expected = f"{corpus['records']} records and {corpus['columns']} columns"
            sys.exit(f"{corpus['name']}, {what}: found {found[0]} records and {found[1]} columns, expected {expected}")
        return True

    def corpus(self, name):
        folder, files = os.path.join(self.options.corpora, name), self.shards(name)
        records = self.tfarrow.count(folder)
        self.payload = sum(map(os.path.getsize, files)) - 16 * records
        log(f"{name}: {records} records, {self.payload / 1e6:.1f} MB")
        spec = self.tfarrow.schema(folder).to_parse_spec()
        return {"name": name, "folder": folder, "files": files, "spec": spec, "scratch": self.scratch, "records": records,
                "columns": COLUMNS[name]}

    def race(self, name):
        """The best seconds of each job on a corpus, and the number of records and bytes."""
        corpus, times = self.corpus(name), collections.defaultdict(list)
        with self.child("own") as own, self.child("torch") as torch, self.child("tf") as tf:
            kinds = {"own": own, "torch": torch, "tf": tf, "program": Program(self.options.program)}
            for kind in ("own", "torch", "tf"):
                if kinds[kind].process is not None:
                    self.versions[kind] = self.versions.get(kind, {}) | kinds[kind].ask("versions", {})
            jobs = dict(JOBS)
            for turn in range(self.options.runs):
                for job, (what, kind) in list(jobs.items()):
                    answer = kinds[kind].ask(job, corpus)
                    if self.right(what, corpus, answer):
                        times[job].append(answer["seconds"])
                    if "error" in answer or turn and sum(times[job]) > 30:
                        del jobs[job]
        best = {job: min(found) for job, found in times.items()}
        for job, seconds in best.items():
            log(f"{name:10} {seconds:8.3f} s {self.payload / 1e6 / seconds:6.0f} MB/s  {JOBS[job][0]}")
        return best, corpus["records"], self.payload

    def import_time(self):
        """Milliseconds of `import tfarrow`: a process that does so, less one that does not."""
        def seconds(code):
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            return time.perf_counter() - begun
        pairs = [(seconds("import tfarrow"), seconds("pass")) for _ in range(4 * self.options.runs)]
        with_import, bare = map(min, zip(*pairs))
        return 1e3 * (with_import - bare)

    def one_file(self, name, path):
        """A file of at least the wanted size: the shards of a corpus one after the other, again and again."""
        with open(path, "wb") as out:
            while out.tell() < self.options.large_gb * 1e9:
                for shard in self.shards(name):
                    with open(shard, "rb") as source:
                        shutil.copyfileobj(source, out, 16 << 20)
        return os.path.getsize(path)

    def many_files(self, name, folder):
        """Links to the shards of a corpus, again and again, of at least the wanted size. A folder has each link, while a list
        of files has each file once."""
        size = 0
        for number in itertools.count():
            shard = self.shards(name)[number % len(self.shards(name))]
            os.symlink(shard, os.path.join(folder, f"{name}-{number:05}.tfrecord"))
            size += os.path.getsize(shard)
            if size >= self.options.large_gb * 1e9:
                return size

    def first(self, name):
        """Milliseconds to the first batch of one large file, each time in a new process; and its gigabytes."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"{name}.tfrecord")
            size = self.one_file(name, path)
            corpus = {"name": name, "files": [path], "records": BATCH, "columns": COLUMNS[name]}
            times = []
            for _ in range(self.options.runs):
                with self.child("own") as own:
                    answer = own.ask("first_batch", corpus)
                if self.right(f"first batch of {name}", corpus, answer):
                    times.append(1e3 * answer["seconds"])
        return min(times, default=math.nan), size / 1e9

    def memory(self, is_one_file):
        """The gigabytes of images, those that a loop over them read, and its peak memory in MB after one and all rounds."""
        with tempfile.TemporaryDirectory() as folder:
            if is_one_file:
                size = self.one_file("images", os.path.join(folder, "images.tfrecord"))
            else:
                size = self.many_files("images", folder)
            records = self.tfarrow.count(folder)
            corpus = {"name": "images", "folder": folder, "seconds": self.options.seconds, "columns": COLUMNS["images"]}
            with self.child("own") as own:
                answer = own.ask("endless", corpus)
        peaks = answer["more"][0] if "more" in answer else []
        if not self.right("endless loop", corpus | {"records": records * len(peaks)}, answer):
            return size / 1e9, math.nan, math.nan, math.nan
        return size / 1e9, len(peaks) * size / 1e9, peaks[0], peaks[-1]


def table(head, body):
    print(*("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body]), sep="\n", end="\n\n", flush=True)


def times(ratio):
    return f"{ratio:.1f}x" if ratio >= 2 else f"{ratio:.2f}"


def print_speeds(results):
    """Records a second, and MB a second, of each measurement and corpus; and the ratios of these."""
    def speed(job, best, records, payload):
        return f"{records / best[job]:,.0f} ({payload / 1e6 / best[job]:,.0f})" if job in best else "not measured"
    body = [[what, *(speed(job, *of) for of in results.values())] for job, (what, _) in JOBS.items()]
    table(["records/s (MB/s)", *results], body)

    body = []
    for job, others, target in RATIOS:
        targets = target if isinstance(target, dict) else dict.fromkeys(results, target)
        row = [f"{JOBS[job][0]} against " + " or ".join(JOBS[other][0] for other in others)]
        for name, (best, _, _) in results.items():
            found = [best[other] for other in others if other in best]
            if job not in best or not found:
                row.append("not measured")
                continue
            ratio = min(found) / best[job]
            is_below = targets[name] is not None and ratio < targets[name]
            row.append(f"**{times(ratio)}**" if is_below else times(ratio))
        said = [times(targets[name]) if targets[name] else "" for name in results]
        body.append([*row, ", ".join(said) if len(set(said)) > 1 else said[0]])
    table(["speed against", *results, "target"], body)


def print_single(bench, parts):
    def row(what, unit, found, target):
        shown = f"{found:.0f} {unit}" if not math.isnan(found) else "not measured"
        return [what, shown if math.isnan(found) or found < target else f"**{shown}**", f"{target} {unit}"]

    body = []
    if "import" in parts:
        body.append(row("`import tfarrow`", "ms", bench.import_time(), 100))
    for name in ["tabular", "images"] if "first" in parts else []:
        found, size = bench.first(name)
        body.append(row(f"first batch of one file of {size:.1f} GB of {name}", "ms", found, 50))
    for is_one_file in [True, False] if "memory" in parts else []:
        size, read, after_one, peak = bench.memory(is_one_file)
        what = f"{size:.1f} GB of images in {'one file' if is_one_file else 'shards'}"
        body.append(row(f"peak memory of a loop over {what}, once", "MB", after_one, 500))
        body.append(row(f"the same, after {read:.0f} GB", "MB", peak, 500))
    if body:
        table(["measurement", "result", "target"], body)


def main():
    if sys.argv[1:] == ["--child"]:
        return child()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("--tf-python", metavar="PYTHON")
    parser.add_argument("--torch-python", metavar="PYTHON")
    parser.add_argument("--corpora", metavar="FOLDER", help="default: that of race.py")
    parser.add_argument("--only", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--large-gb", type=float, default=4, help="the size of large files, which are temporary")
    parser.add_argument("--seconds", type=float, default=20, help="how long the loop for peak memory takes at least")
    options = parser.parse_args()
    options.corpora = os.path.abspath(options.corpora or os.path.join(tempfile.gettempdir(), "tfarrow-bench-256"))
    in_memory = os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 4e9
    with tempfile.TemporaryDirectory(dir="/dev/shm" if in_memory else None) as scratch:
        bench = Bench(options, scratch)
        results = {name: bench.race(name) for name in options.only} if "speed" in options.parts else {}
        if results:
            pythons = [", ".join(f"{name} {version}" for name, version in found.items()) for found in bench.versions.values()]
            print("; ".join(pythons) + f"; {os.cpu_count()} cores\n")
            print_speeds(results)
        print_single(bench, options.parts)
    for why, what in bench.failed.items():
        print(f"- Not measured: {', '.join(sorted(what))}: {why}")


if __name__ == "__main__":
    main()
