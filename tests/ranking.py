#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check with TF-Ranking's parser that ExampleListWithContext records keep their features from TFRecord to Parquet and back.

    python3 tests/ranking.py target/release/tfarrow [FILE ..]

Reads testdata/example_list and the given files. The features that the parser is asked for are those that `schema` lists.
Run by hand: it installs TensorFlow and TF-Ranking from PyPI, 2 GB, into a folder of target/, which later runs use again. They
need Python 3.9 to 3.11.
"""
import json
import os
import subprocess
import sys
import tempfile
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOME = os.path.join(ROOT, "target", "ranking")
PACKAGES = ["tensorflow-cpu==2.15.*", "tensorflow-ranking==0.5.*", "tensorflow-serving-api==2.15.*"]
QUERIES = os.path.join(ROOT, "testdata", "example_list", "queries.tfrecord")


def python():
    """The interpreter of an environment with the packages, which is created if it does not exist."""
    program, done = os.path.join(HOME, "bin", "python"), os.path.join(HOME, "installed")
    if not os.path.exists(done):
        venv.create(HOME, with_pip=True, clear=True)
        subprocess.run([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)
        open(done, "w").close()
    return program


def specs(tf, program, path):
    """The features of the contexts and of the examples, as TF-Ranking takes them."""
    done = subprocess.run([program, "schema", "--format", "json", path], capture_output=True, text=True, check=True)
    dtypes = {"bytes_list": tf.string, "float_list": tf.float32, "int64_list": tf.int64}
    found = {"context": {}, "examples": {}}
    for feature in json.loads(done.stdout)["features"]:
        if feature["role"] in found and feature["kind"]:
            found[feature["role"]][feature["name"]] = tf.io.VarLenFeature(dtypes[feature["kind"]])
    return found["context"], found["examples"]


def check(program, paths):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    # This folder has a tensorflow.py as well.
    sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
    import tensorflow as tf
    import tensorflow_ranking as tfr

    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            parquet, back = os.path.join(folder, "a.parquet"), os.path.join(folder, "a.tfrecord")
            for source, dest in [(path, parquet), (parquet, back)]:
                subprocess.run([program, "-q", "convert", "--overwrite", source, dest], check=True)
            context, examples = specs(tf, program, path)
            parsed = []
            for file in (path, back):
                records = [record.numpy() for record in tf.data.TFRecordDataset(file)]
                features = tfr.data.parse_from_example_list(
                    records, context_feature_spec=context, example_feature_spec=examples
                )
                parsed.append({name: tf.sparse.to_dense(value) for name, value in features.items()})
            assert parsed[0].keys() == parsed[1].keys() == context.keys() | examples.keys(), path
            for name, value in parsed[0].items():
                other = parsed[1][name]
                assert value.shape == other.shape and bool(tf.reduce_all(value == other)), f"{path}: {name}"
            print(f"{os.path.basename(path)}: {len(parsed[0])} features are equal")


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(sys.argv[2], sys.argv[3:])
    else:
        arguments = [os.path.abspath(argument) for argument in sys.argv[1:]]
        command = [python(), os.path.abspath(__file__), "--check", arguments[0], QUERIES, *arguments[1:]]
        sys.exit(subprocess.run(command, check=False).returncode)
