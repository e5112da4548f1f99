"""Long measurements of a cluster on this machine, for docs/cluster.md. `.ci/run` does not call this script; its test is
`crates/tfarrow-cluster/tests/cluster/`.

    python3 tests/cluster.py target/release            all measurements
    python3 tests/cluster.py target/release kills      some of them

Each executor has one core unless stated otherwise. The script needs Linux, and no package.
"""

import os
import random
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARD = ROOT / "testdata/shards/train-00000-of-00004.tfrecord"
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    """A scheduler and executors as processes, in a temporary folder."""

    def __init__(self, programs: Path, cores: list[int]):
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="tfarrow-cluster-"))
        self.address = f"127.0.0.1:{free_port()}"
        self.scheduler = self._start("scheduler", "--bind", self.address)
        assert self.scheduler.stderr
        line = self.scheduler.stderr.readline()
        assert b"listens on" in line, line
        self.executors = [self.executor(count) for count in cores]
        time.sleep(1)

    def _start(self, *args: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([self.programs / "tfarrow-cluster", *args], stderr=subprocess.PIPE)

    def executor(self, cores: int) -> subprocess.Popen[bytes]:
        port = free_port()
        folder = str(self.folder / f"executor-{port}")
        args = ["--scheduler", self.address, "--port", str(port), "--work-dir", folder, "--cores", str(cores)]
        return self._start("executor", *args)

    def sql(self, query: str) -> subprocess.Popen[bytes]:
        args = ["sql", "--cluster", self.address, "--format", "csv", query]
        return subprocess.Popen([self.programs / "tfarrow", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def rows(self, query: str) -> bytes:
        return finished(self.sql(query))

    def stop(self) -> None:
        for process in [*self.executors, self.scheduler]:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder)


def finished(process: subprocess.Popen[bytes]) -> bytes:
    try:
        rows, messages = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, messages.decode()
    return rows


def local(programs: Path, query: str) -> bytes:
    return finished(
        subprocess.Popen([programs / "tfarrow", "sql", "--format", "csv", query], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    )


def seconds(run) -> float:
    begin = time.monotonic()
    run()
    return time.monotonic() - begin


def median(run, times: int) -> float:
    return statistics.median(seconds(run) for _ in range(times))


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def peak_megabytes(process: subprocess.Popen[bytes]) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


def copies(folder: Path, count: int) -> Path:
    folder.mkdir()
    for index in range(count):
        shutil.copy(SHARD, folder / f"{index:05}.tfrecord")
    return folder


def kills(programs: Path) -> None:
    """An executor is killed at a random moment of a query in three stages, 30 times; another one takes its place."""
    cluster = Cluster(programs, [1, 1, 1])
    data = copies(cluster.folder / "data", 48)
    work = "levenshtein(repeat(city, 110), repeat(reverse(city), 110))"
    query = f"""SELECT a.label, a.n, b.n, a.work FROM (SELECT label, count(*) AS n, sum({work}) AS work FROM '{data}/' GROUP BY label) a
                JOIN (SELECT label, count(city) AS n FROM '{data}/' GROUP BY label) b ON a.label = b.label ORDER BY 1"""
    expected = local(programs, query)
    undisturbed = median(lambda: cluster.rows(query), 3)
    print(f"kills: {undisturbed:.1f} s without a loss")
    choice = random.Random(7)
    times = []
    for attempt in range(30):
        begin = time.monotonic()
        client = cluster.sql(query)
        time.sleep(choice.uniform(0, undisturbed))
        victim = choice.randrange(3)
        cluster.executors[victim].kill()
        cluster.executors[victim].wait()
        cluster.executors[victim] = cluster.executor(1)
        found = finished(client)
        times.append(time.monotonic() - begin)
        assert found == expected, f"attempt {attempt}: {found.decode()}"
    print(f"kills: 30 of 30 right; {min(times):.1f} s, median {statistics.median(times):.1f} s, {max(times):.1f} s")
    cluster.stop()


def overhead(programs: Path) -> None:
    """The fixed part of a query, and the rest of a long one, with one executor of two cores."""
    cluster = Cluster(programs, [2])
    small = f"SELECT count(*) FROM '{SHARD.parent}/'"
    data = copies(cluster.folder / "data", 8)
    line = SHARD.read_bytes()
    for shard in data.iterdir():
        shard.write_bytes(line * (125_000_000 // len(line)))
    large = f"SELECT avg(price), max(city) FROM '{data}/'"
    for name, query, times in [("count(*) of 4 shards", small, 15), ("mean and maximum of 1 GB", large, 5)]:
        assert cluster.rows(query) == local(programs, query)
        alone, together = median(lambda: local(programs, query), times), median(lambda: cluster.rows(query), times)
        print(f"overhead: {name}: {alone:.3f} s alone, {together:.3f} s on the cluster, {together / alone:.2f} times")
    cluster.stop()


def shards(programs: Path) -> None:
    """Data sets of many shards of one record, with 8 and 96 partitions."""
    record = SHARD.read_bytes()
    record = record[: 16 + struct.unpack("<Q", record[:8])[0]]
    for cores, label in [([2], "one executor of 2 cores"), ([16, 16], "two executors of 16 tasks")]:
        cluster = Cluster(programs, cores)
        for count in [1_000, 10_000, 100_000]:
            data = cluster.folder / f"data-{count}"
            data.mkdir()
            for index in range(count):
                (data / f"{index:06}.tfrecord").write_bytes(record)
            query = f"SELECT label, count(*) FROM '{data}/' GROUP BY label ORDER BY label"
            before = cpu_seconds(cluster.scheduler)
            expected = local(programs, query)
            alone, together = seconds(lambda: local(programs, query)), seconds(lambda: cluster.rows(query))
            assert cluster.rows(query) == expected
            cpu = (cpu_seconds(cluster.scheduler) - before) / 2
            peak = peak_megabytes(cluster.scheduler)
            print(
                f"shards: {label}, {count:,} shards: {alone:.1f} s alone, {together:.1f} s on the cluster, "
                f"scheduler {cpu:.2f} s of CPU, peak {peak:.0f} MB"
            )
            shutil.rmtree(data)
        cluster.stop()


def main() -> None:
    programs, names = Path(sys.argv[1]).resolve(), sys.argv[2:]
    measurements = {run.__name__: run for run in (overhead, shards, kills)}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name in names or measurements:
        measurements[name](programs)


if __name__ == "__main__":
    main()
