#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that the tools of TensorFlow read the schemas and statistics that the program prints.

    python3 tests/tensorflow.py target/release/tfarrow

- schema.pbtxt, statistics and anomalies: TensorFlow Data Validation reads them, and finds no anomalies in the data.
- the feature spec in Python: TensorFlow parses every record with it.
- features.json: TensorFlow Datasets reads the folder of the file.

Installs TensorFlow Data Validation 1.16.1 (which needs Python 3.11) and TensorFlow Datasets from PyPI into folders of
target/, some gigabytes in ten minutes, so that .ci/run does not call it. TFDV_PYTHON and TFDS_PYTHON name interpreters
that have the packages.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLES = ["scalar.tfrecord", "ragged.tfrecord", "numbers.tfrecord", "states.tfrecord", "text.tfrecord", "shards"]
# The pinned versions of TFDV conflict, so that its packages are installed one group at a time.
TFDV = [
    ["--no-deps", "tensorflow-data-validation==1.16.1", "tfx-bsl==1.16.1", "tensorflow-metadata==1.16.1"],
    ["tensorflow-cpu==2.16.*", "pyarrow==10.0.1", "pandas<2", "numpy<2", "absl-py", "joblib", "pyfarmhash", "six",
     "apache-beam>=2.60,<2.72", "setuptools<80", "dill", "google-crc32c"],
    ["protobuf>=4.25.2,<5"],
]
TFDS = [["tensorflow-cpu==2.21.*", "tensorflow-datasets==4.9.10"]]

READ_BY_TFDV = """
import glob, os, sys, tensorflow as tf, tensorflow_data_validation as tfdv
folder, data = sys.argv[1:]
at = lambda name: os.path.join(folder, name)
schema, stats = tfdv.load_schema_text(at("schema.pbtxt")), tfdv.load_stats_binary(at("stats.pb"))
assert schema.feature and stats.datasets[0].num_examples > 0
found = tfdv.validate_statistics(stats, schema)
assert not found.anomaly_info, found
assert tfdv.load_anomalies_text(at("anomalies.pbtxt")).anomaly_info
if os.path.exists(at("slices.pb")):
    sliced = tfdv.load_stats_binary(at("slices.pb"))
    assert sliced.datasets[0].name == "All Examples" and len(sliced.datasets) == 6
    options = tfdv.StatsOptions(experimental_slice_functions=[tfdv.experimental_get_feature_value_slicer({"city": None})])
    own = tfdv.generate_statistics_from_tfrecord(glob.glob(os.path.join(data, "*.tfrecord")), stats_options=options)
    numbers = lambda all, name: sorted(
        (feature.path.step[0], feature.num_stats.common_stats.num_non_missing, round(feature.num_stats.mean, 5),
         feature.string_stats.unique) for feature in tfdv.get_slice_stats(all, name).datasets[0].features)
    for dataset in sliced.datasets:
        assert numbers(sliced, dataset.name) == numbers(own, dataset.name), dataset.name
scope = {}
exec(open(at("spec.py")).read(), scope)
spec = next(value for value in scope.values() if isinstance(value, dict) and value
            and all(type(item).__module__.startswith("tensorflow") for item in value.values()))
files = sorted(glob.glob(os.path.join(data, "*.tfrecord")) if os.path.isdir(data) else [data])
records = list(tf.data.TFRecordDataset(files))
parsed = tf.io.parse_example([record.numpy() for record in records], spec)
assert set(parsed) == set(spec)
print(f"{len(schema.feature)} features, {len(records)} records, TFDV {tfdv.__version__}, TensorFlow {tf.__version__}")
"""

READ_BY_TFDS = """
import sys, tensorflow_datasets as tfds
builder = tfds.builder_from_directory(sys.argv[1])
count = sum(1 for _ in builder.as_dataset(split="train"))
assert count == int(sys.argv[2]), count
print(f"{count} records, TFDS {tfds.__version__}")
"""


def python(variable, home, packages):
    """The interpreter of an environment with the packages, which is created if it does not exist."""
    if variable in os.environ:
        return os.environ[variable]
    program, done = os.path.join(home, "bin", "python"), os.path.join(home, "installed")
    if not os.path.exists(done):
        venv.create(home, with_pip=True, clear=True)
        for some in packages:
            subprocess.run([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *some], check=True)
        open(done, "w").close()
    return program


def standard_output(program, *args):
    """The standard output of the program. Exit status 3, which reports findings, is allowed."""
    done = subprocess.run([program, *args], stdout=subprocess.PIPE)
    assert done.returncode in (0, 3), (args, done.returncode)
    return done.stdout


def run(interpreter, code, *args):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([interpreter, "-c", code, *args], env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def main():
    program = os.path.abspath(sys.argv[1])
    tfdv = python("TFDV_PYTHON", os.path.join(ROOT, "target", "tfdv"), TFDV)
    for name in EXAMPLES:
        data = os.path.join(ROOT, "testdata", name)
        with tempfile.TemporaryDirectory() as folder:
            write = lambda file, content: open(os.path.join(folder, file), "wb").write(content)
            write("empty.pbtxt", b"")
            write("schema.pbtxt", standard_output(program, "schema", data, "--format", "pbtxt"))
            write("spec.py", standard_output(program, "schema", data, "--format", "python"))
            write("stats.pb", standard_output(program, "stats", data, "--format", "pb"))
            if name == "shards":
                write("slices.pb", standard_output(program, "stats", data, "--by", "city", "--format", "pb"))
            empty = os.path.join(folder, "empty.pbtxt")
            write("anomalies.pbtxt", standard_output(program, "validate", data, "--schema", empty, "--format", "pbtxt"))
            print(f"{name}: {run(tfdv, READ_BY_TFDV, folder, data)}", flush=True)
    tfds = python("TFDS_PYTHON", os.path.join(ROOT, "target", "tfds"), TFDS)
    with tempfile.TemporaryDirectory() as folder:
        shards = os.path.join(folder, "shards")
        shutil.copytree(os.path.join(ROOT, "testdata", "tfds"), shards)
        # Replaces the features.json that TFDS wrote.
        features = standard_output(program, "schema", shards, "--format", "features-json")
        with open(os.path.join(shards, "features.json"), "wb") as out:
            out.write(features)
        count = standard_output(program, "count", shards).decode().strip()
        print(f"features.json: {run(tfds, READ_BY_TFDS, shards, count)}")


main()
