#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what an index costs and what it saves, and print the table of docs/benchmarks.md.

    python3 docs/bench/index.py PROGRAM CORPUS --scratch FOLDER [--before PROGRAM] [--take EXAMPLE] [--array-record PYTHON]

CORPUS is a folder of TFRecord files, such as the tabular corpus of race.py. FOLDER needs eight times its size. PROGRAM
writes a copy whose records have a growing number `n`, an index of it, one file of four times the records, a conversion
to Parquet, and one gzip file. `--before` is an earlier program, for the ratios that compare with one. `--take` is the built
example `take` of tfarrow-index, and `--array-record` a Python with array_record, whose reader reads the same records:

    cargo build --release --package tfarrow-scan --example take
    pip install array_record

Each command is a whole process, in turns with what it is compared with; the best of its runs counts. Files are in the
page cache. Answers with and without an index must be equal.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import time

RUNS = 7
READER = """
import random, sys, time
from array_record.python.array_record_module import ArrayRecordReader
reader = ArrayRecordReader(sys.argv[1])
count, best = reader.num_records(), float("inf")
for _ in range(50):
    numbers = [random.randrange(count) for _ in range(1024)]
    begun = time.perf_counter()
    records = reader.read(numbers)
    best = min(best, time.perf_counter() - begun)
    assert len(records) == 1024
print(1024 / best)
"""
WRITER = """
import struct, sys
from array_record.python.array_record_module import ArrayRecordWriter
writer = ArrayRecordWriter(sys.argv[1], "group_size:1")
for name in sys.argv[2:]:
    with open(name, "rb") as file:
        while header := file.read(12):
            writer.write(file.read(struct.unpack("<Q", header[:8])[0]))
            file.read(4)
writer.close()
"""


def timed(command):
    begun = time.perf_counter()
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - begun, output


def in_turns(*commands, runs=RUNS):
    """The best time of each command, whose outputs must be equal, unless a command has none."""
    best = [float("inf")] * len(commands)
    for _ in range(runs):
        outputs = set()
        for number, command in enumerate(commands):
            seconds, output = timed(command)
            best[number] = min(best[number], seconds)
            outputs.add(output)
        if len(outputs - {""}) > 1:
            sys.exit(f"the answers differ: {commands}")
    return best


def peak(command):
    """The largest memory of a process, in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command} failed")
    return usage.ru_maxrss / 1024


def size(pattern):
    return sum(os.path.getsize(name) for name in glob.glob(pattern))


def prepare(program, corpus, scratch):
    """The sorted copy, one file of four times its records, and its conversion to Parquet."""
    sorted_folder, long_folder, parquet = (os.path.join(scratch, name) for name in ("sorted", "long", "parquet"))
    if not os.path.exists(long_folder):
        rows = f"SELECT row_number() OVER () AS n, * FROM '{corpus}'"
        subprocess.run([program, "sql", f"COPY ({rows}) TO '{sorted_folder}/' STORED AS TFRECORD OPTIONS (shards 4)"], check=True,
                       capture_output=True)
        subprocess.run([program, "convert", sorted_folder, parquet], check=True, capture_output=True)
        os.makedirs(long_folder)
        with open(os.path.join(long_folder, "long.tfrecord"), "wb") as long:
            for name in 4 * sorted(glob.glob(f"{sorted_folder}/*.tfrecord")):
                with open(name, "rb") as file:
                    shutil.copyfileobj(file, long, 8 << 20)
    return sorted_folder, long_folder, parquet


def gzip_rows(program, before, corpus, scratch, sql):
    """The mean of a column of one gzip file, and one record in its middle."""
    path = os.path.join(scratch, "gzip", "one.tfrecord.gz")
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.run([program, "convert", corpus, path], check=True, capture_output=True)
    none = () if before != program else ("--option", "index=none")
    subprocess.run([program, "index", path, "--update"], check=True, capture_output=True)
    mean = f"SELECT avg(label) FROM '{path}'"
    with_index, without = in_turns(sql(mean), sql(mean, before, *none))
    yield "mean of a column of one gzip file", f"{without / with_index:.2f}x ({with_index:.2f} s)"
    middle = str(int(timed([program, "count", path])[1]) // 2)
    head = [program, "head", path, "--record", middle, "-n", "1"]
    with_index, without = in_turns(head, [*head, "--no-index"])
    yield "one record in the middle of it", f"{without / with_index:.0f}x ({1e3 * with_index:.1f} ms)"
    part = 100 * os.path.getsize(path + ".tfindex") / os.path.getsize(path)
    yield "size of its index", f"{part:.1f} % of the file"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("corpus")
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--before")
    parser.add_argument("--take")
    parser.add_argument("--array-record")
    args = parser.parse_args()
    program, before = args.program, args.before or args.program
    sorted_folder, long_folder, parquet = prepare(program, args.corpus, args.scratch)
    shards, long = f"{sorted_folder}/*.tfrecord", f"{long_folder}/long.tfrecord"
    sql = lambda query, tool=program, *options: [tool, "sql", "--format", "csv", *options, query]
    none = ("--option", "index=none")

    for name in glob.glob(f"{sorted_folder}/*.tfindex"):
        os.remove(name)
    schema, index = in_turns([program, "schema", sorted_folder, "--json"], [program, "index", sorted_folder], runs=5)
    subprocess.run([program, "index", long], check=True, capture_output=True)
    records = int(timed([program, "count", sorted_folder])[1])
    written, data = size(f"{sorted_folder}/*.tfindex"), size(shards)
    results = [("building, against `schema` of all records", f"{schema / index:.2f} of its speed ({data / index / 1e6:.0f} MB/s)")]
    results.append(("size, with zone maps", f"{written / records:.1f} bytes a record, {100 * written / data:.2f} % of the data"))
    counted, = in_turns([program, "count", long], runs=20)
    hopped, = in_turns([before, "count", long] + (["--no-index"] if before == program else []))
    results.append(("`count` of 4 GB, whole process", f"{1e3 * counted:.1f} ms (without: {1e3 * hopped:.0f} ms)"))

    low, high = records // 2, records // 2 + records // 100
    where = f"avg(n), count(*) FROM '{{}}' WHERE n > {low} AND n <= {high}"
    query = "SELECT " + where.format(shards)
    with_index, without, of_parquet = in_turns(sql(query), sql(query, program, *none), sql("SELECT " + where.format(f"{parquet}/*.parquet")))
    results.append(("filter on a sorted column that keeps 1 %", f"{without / with_index:.1f}x ({1e3 * with_index:.1f} ms; our Parquet {1e3 * of_parquet:.1f} ms)"))
    middle = 2 * records
    query = f"SELECT n FROM read_tfrecord('{long}', metadata_columns => '_record') WHERE _record BETWEEN {middle} AND {middle + 10}"
    found, read = in_turns(sql(query), sql(query, before, *(none if before == program else ())))
    results.append(("`_record BETWEEN` in the middle of a file of 4 GB", f"{read / found:.0f}x ({1e3 * found:.1f} ms)"))
    query = f"SELECT n FROM '{long}' LIMIT 10 OFFSET {middle}"
    found, read = in_turns(sql(query), sql(query, before, *(none if before == program else ())))
    results.append(("`LIMIT 10 OFFSET` of half of it", f"{read / found:.0f}x ({1e3 * found:.1f} ms)"))
    write = lambda *options: [program, "sql", *options, "-o", os.path.join(args.scratch, "ordered.tfrecord"), "--overwrite", f"SELECT * FROM '{shards}' ORDER BY n"]
    merged, ordered = in_turns(write(), write(*none), runs=3)
    results.append(("all columns ordered by the sorted column, to a file", f"{ordered / merged:.1f}x, {peak(write()):.0f} MB (without: {peak(write(*none)):.0f} MB)"))
    results.extend(gzip_rows(program, before, args.corpus, args.scratch, sql))
    if args.take:
        text = timed([args.take, sorted_folder, "1024"])[1].strip().splitlines()[-1]
        results.append(("`take` of 1,024 random records, one thread", text))
    if args.array_record:
        path = os.path.join(args.scratch, "records.array_record")
        if not os.path.exists(path):
            subprocess.run([args.array_record, "-c", WRITER, path, *sorted(glob.glob(shards))], check=True)
        text = timed([args.array_record, "-c", READER, path])[1]
        results.append(("`array_record`, the same", f"records {float(text):.0f} /s"))
    print("| figure | result |\n|---|---|")
    for figure, result in results:
        print(f"| {figure} | {result} |")


if __name__ == "__main__":
    main()
