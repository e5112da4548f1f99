#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time SQL over TFRecord against the floor under it, and print a Markdown table.

    cargo bench --workspace --bench floor --no-run     prints the path of FLOOR
    python3 docs/bench/sql.py PROGRAM FLOOR --corpora FOLDER

FLOOR reads the same files and checks their CRC32C, or inflates them, and does nothing else. FOLDER holds the corpora tabular,
tokens, images and tabular_gz as race.py makes them (`--mb 1024`); files made of them are put beside, and kept. Times are
those of the whole process, the best of several runs, with the files in the page cache.
"""
import argparse
import glob
import gzip
import os
import shutil
import subprocess
import time

RUNS = 7


def best(*commands):
    """Seconds of each command's fastest run. They run in turn, so that what else the machine does meets them all."""
    times = [[] for _ in commands]
    for _ in range(RUNS):
        for command, found in zip(commands, times):
            found.append(command())
    return [min(found) for found in times]


class Bench:
    def __init__(self, options):
        self.program, self.floor_program, self.corpora = options.program, options.floor, options.corpora

    def shards(self, corpus):
        return sorted(glob.glob(os.path.join(self.corpora, corpus, f"{corpus}-*")))

    def one_file(self, corpus):
        """All shards of a corpus in one file, of one gzip member where they are compressed."""
        path = os.path.join(self.corpora, f"one-{corpus}")
        if not os.path.exists(path):
            is_gzip = corpus.endswith("_gz")
            with (gzip.open if is_gzip else open)(path + ".part", "wb") as out:
                for shard in self.shards(corpus):
                    with (gzip.open if is_gzip else open)(shard, "rb") as source:
                        shutil.copyfileobj(source, out, 1 << 20)
            os.rename(path + ".part", path)
        return path

    def sql(self, query, *options):
        """Runs a query as a whole process, and gives its seconds."""

        def run():
            begun = time.perf_counter()
            subprocess.run([self.program, "sql", *options, query], check=True, stdout=subprocess.DEVNULL)
            return time.perf_counter() - begun

        return run

    def mean(self, source):
        label = {"images": '"image/class/label"', "tokens": "next_sentence_labels"}
        name = os.path.basename(source).removeprefix("one-")
        return self.sql(f"SELECT avg({label.get(name, 'label')}) FROM '{source}'")

    def folder(self, corpus):
        return os.path.join(self.corpora, corpus)

    def floor(self, *files):
        """Reads the files and does nothing else, and gives the seconds of that alone."""

        def run():
            said = subprocess.run([self.floor_program, *files], check=True, stdout=subprocess.PIPE, text=True).stdout
            return float(said.split()[0])

        return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("floor")
    parser.add_argument("--corpora", required=True)
    bench = Bench(parser.parse_args())

    def row(what, found, aim):
        print(f"| {what} | {found} | {aim} |", flush=True)

    print("| what | found | aim |\n| --- | --- | --- |")
    for corpus, aim in [("images", 70), ("tabular_gz", 80)]:
        floor, found = best(bench.floor(*bench.shards(corpus)), bench.mean(bench.folder(corpus)))
        row(f"`avg(label)` of {corpus}, of the speed of the floor", f"{100 * floor / found:.0f} % ({found:.3f} s)", f"{aim} %")
    for corpus in ["tabular", "images"]:
        one, four = best(bench.mean(bench.one_file(corpus)), bench.mean(bench.folder(corpus)))
        row(f"{corpus}: one file, of the speed of four", f"{four / one:.2f} ({one:.3f} s)", "0.9")
    path = bench.one_file("tabular_gz")
    floor, found = best(bench.floor(path), bench.mean(path))
    row("one gzip file, of the speed of the floor", f"{floor / found:.2f} ({found:.3f} s)", "0.9")
    off = ("--option", "pushdown_filters=false")
    lengths = ", ".join(f"sum(octet_length(cat_{i:02d}))" for i in range(26))
    tokens = "max(input_ids[1]), max(input_mask[2]), max(segment_ids[3])"
    for corpus, columns, filtered, aim in [
        ("tabular", lengths, "int_00 < 1000", 3),
        ("tokens", tokens, "masked_lm_ids[1] < 30", 4),
    ]:
        query = f"SELECT {columns} FROM '{bench.folder(corpus)}' WHERE {filtered}"
        inside, above = best(bench.sql(query), bench.sql(query, *off))
        row(f"{corpus}: a filter in the scan, against above it", f"{above / inside:.1f}x ({inside:.3f} s)", f"{aim}x")
    (limit,) = best(bench.sql(f"SELECT * FROM '{bench.one_file('images')}' LIMIT 5"))
    row("`SELECT * .. LIMIT 5` of one file of images", f"{1000 * limit:.0f} ms", "100 ms")


if __name__ == "__main__":
    main()
