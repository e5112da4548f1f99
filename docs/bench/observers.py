#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare `tfarrow stats` of corpora with `tfarrow stats` of their conversions to Parquet and Arrow: figures and time.

    python3 docs/bench/observers.py PROGRAM --corpora FOLDER [--formats parquet,arrow]

FOLDER holds the corpora as race.py makes them. PROGRAM is timed as a whole process; the runs of a corpus take turns, and the
best of each counts. Figures have to be equal, but for the last digits of means and deviations, which depend on the threads,
and estimates of distinct values. Exits with 1 if they are not.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

RUNS = 3
# Relative error of figures that depend on the order of sums.
ROUNDED = {"mean": 1e-9, "std_dev": 1e-9}


def differences(one, other, path="", exact=True):
    """The paths at which two documents differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        exact = one.get("is_distinct_exact", True)
        for key in one:
            yield from differences(one[key], other[key], f"{path}/{key}", exact)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other)):
            yield from differences(*pair, f"{path}/{index}", exact)
    elif one != other:
        name = path.rsplit("/", 1)[-1]
        near = name in ROUNDED and abs(one - other) <= ROUNDED[name] * max(abs(one), abs(other))
        estimated = name == "distinct" and not exact
        if not near and not estimated:
            yield f"{path}: {one} and {other}"


def seconds(*command):
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--corpora", required=True)
    parser.add_argument("--formats", default="parquet,arrow")
    options = parser.parse_args()
    formats = options.formats.split(",")
    base = "/dev/shm" if os.path.isdir("/dev/shm") else None
    failed = False
    for corpus in sorted(os.listdir(options.corpora)):
        source = os.path.join(options.corpora, corpus) + "/"
        with tempfile.TemporaryDirectory(dir=base) as folder:
            places = {"tfrecord": source} | {name: f"{folder}/{name}/" for name in formats}
            for name in formats:
                subprocess.run([options.program, "convert", source, places[name], "--to", name], check=True, capture_output=True)
            stats = lambda place: [options.program, "stats", place, "--format", "json"]
            figures = {name: json.loads(subprocess.check_output(stats(place))) for name, place in places.items()}
            for name in formats:
                found = list(differences(figures["tfrecord"], figures[name]))
                failed |= bool(found)
                for difference in found[:10]:
                    print(f"{corpus} as {name} differs: {difference}", flush=True)
            for command in ["stats", "schema"]:
                times = {name: [] for name in places}
                for _ in range(RUNS):
                    for name, place in places.items():
                        times[name].append(seconds(options.program, command, place))
                best = {name: min(all) for name, all in times.items()}
                shown = ", ".join(f"{name} {best[name]:.2f} s ({best[name] / best['tfrecord']:.1f}x)" for name in formats)
                print(f"{command} of {corpus}: tfrecord {best['tfrecord']:.2f} s, {shown}", flush=True)
    sys.exit(failed)


main()
