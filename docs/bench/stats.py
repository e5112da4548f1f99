#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Race `tfarrow stats` against TensorFlow Data Validation, and `tfarrow schema` against `convert --to arrow`.

    TFDV_PYTHON=PYTHON python3 docs/bench/stats.py PROGRAM --corpora FOLDER

PYTHON has TensorFlow Data Validation 1.16.1 (tests/tensorflow.py installs it). FOLDER holds the corpora tabular, embedding
and tokens as race.py makes them. PROGRAM is timed as a whole process, the best of several runs before and after TFDV, which
runs once, without its imports: a machine that others use is not as fast at one time as at another.
"""
import argparse
import glob
import os
import subprocess
import tempfile
import time

RUNS = 5
TFDV = """
import sys, time, tensorflow_data_validation as tfdv
begun = time.perf_counter()
tfdv.generate_statistics_from_tfrecord(sys.argv[1:])
print(time.perf_counter() - begun)
"""


def best(*command):
    """Seconds of the fastest run."""
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - begun)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--corpora", required=True)
    options = parser.parse_args()
    folder = lambda corpus: os.path.join(options.corpora, corpus) + "/"
    for corpus in ["tabular", "embedding"]:
        shards = sorted(glob.glob(folder(corpus) + corpus + "-*"))
        before = best(options.program, "stats", folder(corpus))
        said = subprocess.run([os.environ["TFDV_PYTHON"], "-c", TFDV, *shards], check=True, capture_output=True, text=True)
        theirs = float(said.stdout.split()[-1])
        ours = min(before, best(options.program, "stats", folder(corpus)))
        print(f"stats of {corpus}: {theirs / ours:.0f}x ({ours:.2f} s against {theirs:.1f} s)", flush=True)
    base = "/dev/shm" if os.path.isdir("/dev/shm") else None
    for corpus in ["tabular", "embedding", "tokens"]:
        with tempfile.TemporaryDirectory(dir=base) as out:
            convert = best(options.program, "convert", folder(corpus), out, "--to", "arrow", "--overwrite")
        schema = best(options.program, "schema", folder(corpus))
        print(f"schema of {corpus}: {convert / schema:.1f}x as fast as convert --to arrow ({schema:.2f} s)", flush=True)


main()
