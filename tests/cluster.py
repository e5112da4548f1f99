"""Long measurements of a cluster on this machine, for docs/cluster.md. `.ci/run` does not call this script; its test is
`crates/tfarrow-cluster/tests/cluster/`.

    python3 tests/cluster.py target/release            all measurements
    python3 tests/cluster.py target/release kills      some of them

Each executor has one core unless stated otherwise. The script needs Linux, and no package.
"""

import asyncio
import atexit
import collections
import os
import random
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
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
        atexit.register(self.stop)
        time.sleep(1)

    def _start(self, *args: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([self.programs / "tfarrow-cluster", *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

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

    def work_bytes(self) -> int:
        """The bytes of all files that executors keep."""
        total = 0
        for folder, _, files in os.walk(self.folder):
            for file in files if "executor-" in folder else []:
                try:
                    total += os.stat(os.path.join(folder, file)).st_size
                except FileNotFoundError:
                    pass
        return total

    def stop(self) -> None:
        for process in [*self.executors, self.scheduler]:
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


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
    """Data sets of many shards of one record, with 8, 100 and 1,000 partitions: as many tasks in each of two stages."""
    cluster = Cluster(programs, [16, 16])
    for count in [1_000, 10_000, 100_000]:
        data = shards_of_one_record(cluster.folder / f"data-{count}", count)
        query = f"SELECT label, count(*) FROM '{data}/' GROUP BY label ORDER BY label"
        expected = local(programs, query)
        alone = seconds(lambda: local(programs, query))
        plan = seconds(lambda: cluster.rows(f"EXPLAIN {query}"))
        print(f"shards: {count:,} shards: {alone:.1f} s alone; planned in {plan:.1f} s")
        for partitions in [8, 100, 1_000]:
            statements = f"SET datafusion.execution.target_partitions = {partitions}; {query}"
            before = cpu_seconds(cluster.scheduler)
            begin = time.monotonic()
            assert cluster.rows(statements) == expected
            together, cpu = time.monotonic() - begin, cpu_seconds(cluster.scheduler) - before
            print(
                f"shards: {count:,} shards, {partitions:,} partitions: {together:.1f} s, scheduler {cpu:.2f} s of CPU, "
                f"{cpu / (2 * partitions) * 1000:.2f} ms a task, peak {peak_megabytes(cluster.scheduler):.0f} MB"
            )
        shutil.rmtree(data)
    cluster.stop()


def shards_of_one_record(folder: Path, count: int) -> Path:
    record = SHARD.read_bytes()
    record = record[: 16 + struct.unpack("<Q", record[:8])[0]]
    folder.mkdir()
    for index in range(count):
        (folder / f"{index:06}.tfrecord").write_bytes(record)
    return folder


def names(programs: Path) -> None:
    """A data set of a million shards, all but the first empty: finding and planning in the client."""
    cluster = Cluster(programs, [2])
    data = shards_of_one_record(cluster.folder / "data", 1)
    for index in range(1, 1_000_000):
        (data / f"{index:06}.tfrecord").touch()
    begin = time.monotonic()
    client = cluster.sql(f"EXPLAIN SELECT count(*) FROM '{data}/'")
    assert client.stdout and client.stderr
    plan, messages = client.stdout.read(), client.stderr.read()
    _, status, usage = os.wait4(client.pid, 0)
    assert status == 0 and b"physical_plan" in plan, messages.decode()
    print(f"names: 1,000,000 names planned in {time.monotonic() - begin:.1f} s, client {usage.ru_maxrss / 1000:.0f} MB")
    cluster.stop()


def pieces(programs: Path) -> None:
    """One file of 1 GB, which two executors read in 8 pieces."""
    cluster = Cluster(programs, [1, 1])
    data = cluster.folder / "long.tfrecord"
    content = SHARD.read_bytes()
    data.write_bytes(content * (1_000_000_000 // len(content)))
    query = f"SELECT count(*), sum(label), max(city) FROM '{data}'"
    settings = "SET datafusion.execution.target_partitions = 8; SET tfarrow.piece_bytes = 1000000;"
    explained = cluster.rows(f"{settings} EXPLAIN {query}").decode()
    assert "8 groups" in explained, explained
    expected = local(programs, query)
    assert cluster.rows(f"{settings} {query}") == expected
    whole = median(lambda: cluster.rows(query.replace("count(*)", "count(*) + 0")), 3)
    cut = median(lambda: cluster.rows(f"{settings} {query}"), 3)
    print(f"pieces: 1 GB in 8 pieces: {cut:.2f} s; with the default of 256 MiB: {whole:.2f} s")
    cluster.stop()


def long_rows(programs: Path) -> None:
    """Four rows of 20 MB of random text, in a shuffle and in the result: the bytes of all files of the executors, at most."""
    cluster = Cluster(programs, [1, 1])
    data = cluster.folder / "data"
    data.mkdir()
    for shard in range(2):
        image = f"string_agg(md5(CAST(value AS TEXT) || '{shard}'), '')"
        values = f"SELECT 'image' || (value % 2) AS name, {image} AS image FROM generate_series(1, 1250000) GROUP BY value % 2"
        local(programs, f"COPY ({values}) TO '{data}/{shard}.tfrecord'")
    size = sum(file.stat().st_size for file in data.iterdir())
    for name, query in [
        ("shuffle", f"SELECT name, md5(max(image)) AS image FROM '{data}/' GROUP BY name ORDER BY name"),
        ("result", f"SELECT name, image FROM '{data}/'"),
    ]:
        for bytes_type in ["binary", "binary_view"]:
            client = cluster.sql(f"SET tfarrow.bytes_type = {bytes_type}; {query}")
            rows = []
            reading = threading.Thread(target=lambda: rows.append(finished(client)))
            reading.start()
            most = 0
            while reading.is_alive():
                most = max(most, cluster.work_bytes())
            assert sorted(rows[0].splitlines()) == sorted(local(programs, query).splitlines())
            print(f"long_rows: {name}, {bytes_type}: at most {most / size:.2f} bytes in files for each byte of the data")
            assert most < 1.2 * size
    cluster.stop()


class SlowStore(asyncio.Protocol):
    """An S3 bucket of shards with one content, which arrives after some time. The requests of planning are answered at once."""

    content = SHARD.read_bytes()
    keys: list[str] = []
    wait = 0.0
    # Requests for each shard: those so far, and those of planning.
    requests: collections.Counter[str] = collections.Counter()
    planning: collections.Counter[str] = collections.Counter()

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, self.received = self.received.split(b"\r\n\r\n", 1)
            self.answer(head.decode())

    def answer(self, head: str) -> None:
        path = head.split(" ", 2)[1]
        if "?" in path:
            self.send("200 OK", listing(self.keys, len(self.content)))
            return
        self.requests[path] += 1
        wait = self.wait if self.requests[path] > self.planning[path] else 0
        asked = re.search(r"(?i)^range: bytes=(\d+)-(\d+)", head, re.MULTILINE)
        begin, end = (int(asked[1]), int(asked[2]) + 1) if asked else (0, len(self.content))
        part = self.content[begin:end]
        headers = f"Content-Range: bytes {begin}-{begin + len(part) - 1}/{len(self.content)}\r\n" if asked else ""
        status = "206 Partial Content" if asked else "200 OK"
        asyncio.get_running_loop().call_later(wait, self.send, status, part, headers)

    def send(self, status: str, body: bytes, headers: str = "") -> None:
        date = "Last-Modified: Wed, 01 Jan 2025 00:00:00 GMT"
        answer = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nETag: \"1\"\r\n{date}\r\n{headers}\r\n"
        self.transport.write(answer.encode() + body)


def listing(keys: list[str], size: int) -> bytes:
    """The answer to ListObjectsV2."""
    date = "2025-01-01T00:00:00.000Z"
    objects = [f"<Contents><Key>{key}</Key><LastModified>{date}</LastModified><ETag>1</ETag><Size>{size}</Size></Contents>" for key in keys]
    return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(objects)}</ListBucketResult>".encode()


def scaling(programs: Path) -> None:
    """Tasks that only wait, on executors with 8 cores that this machine does not have: the time that the cluster adds."""
    loop, tasks = asyncio.new_event_loop(), 160
    SlowStore.keys = [f"data/{index:03}.tfrecord" for index in range(tasks)]
    server = loop.run_until_complete(loop.create_server(SlowStore, "127.0.0.1", 0))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_REGION="us-east-1")
    query = "SELECT count(*), sum(label) FROM 's3://bucket/data/'"
    statements = f"SET datafusion.execution.target_partitions = {tasks}; "
    for executors in [1, 2]:
        cluster = Cluster(programs, [8] * executors)
        for wait in [0.01, 0.1, 1.0]:
            SlowStore.wait = 0
            SlowStore.requests.clear()
            planning = seconds(lambda: cluster.rows(f"{statements} EXPLAIN {query}"))
            SlowStore.wait, SlowStore.planning = wait, collections.Counter(SlowStore.requests)
            SlowStore.requests.clear()
            whole = seconds(lambda: cluster.rows(f"{statements} {query}"))
            waits = SlowStore.requests.total() - SlowStore.planning.total()
            assert waits >= tasks, waits
            print(
                f"scaling: {executors} x 8 cores, {waits} waits of {wait * 1000:.0f} ms in {tasks} tasks: {whole - planning:.2f} s after planning; "
                f"{waits * wait / (8 * executors):.2f} s without overhead"
            )
        cluster.stop()


def main() -> None:
    programs, chosen = Path(sys.argv[1]).resolve(), sys.argv[2:]
    measurements = {run.__name__: run for run in (overhead, shards, names, pieces, long_rows, scaling, kills)}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name in chosen or measurements:
        measurements[name](programs)


if __name__ == "__main__":
    main()
