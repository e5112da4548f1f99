"""Worker processes and threads."""

import http.server
import multiprocessing
import os
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import tfarrow
import workers
from support import TESTDATA
from tfarrow import errors

SHARDS = TESTDATA / "shards"
# Seconds after which a worker hangs.
BOUND = 60

METHODS = multiprocessing.get_all_start_methods()


def run(method, function, items, processes=2):
    """Calls a function in worker processes, which are killed at the end: the interpreter would wait for one that hangs."""
    context = multiprocessing.get_context(method)
    with warnings.catch_warnings():
        # Python warns of a fork of a process that has threads, such as those of a query.
        warnings.simplefilter("ignore", DeprecationWarning)
        with context.Pool(processes) as pool:
            return pool.map_async(function, items).get(BOUND)


@pytest.mark.parametrize("method", METHODS)
def test_workers_read_scans_after_the_parent_did(method):
    scan = tfarrow.scan(SHARDS).select("label", "city", "tags").where("label > 0")
    expected = scan.to_pylist()
    tfarrow.count(SHARDS)
    tfarrow.sql("SELECT count(*) FROM s", s=scan).to_pylist()
    assert run(method, workers.read, [scan] * 4) == [expected] * 4
    # The parent still reads.
    assert scan.to_pylist() == expected


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("function", [workers.read_source, workers.query, workers.describe])
def test_workers_make_all_calls(method, function):
    path = f"{SHARDS}/"
    expected = function(path)
    assert run(method, function, [path] * 3) == [expected] * 3


@pytest.mark.parametrize("method", METHODS)
def test_workers_read_while_the_parent_reads(method):
    scan = tfarrow.scan(SHARDS)
    # A fork copies the state of the threads of the query at that moment, which differs each time.
    for _ in range(20 if method == "fork" else 1):
        batches = scan.batches(10)
        next(batches)
        assert run(method, workers.read_batches, [scan] * 3) == [200] * 3
        assert sum(batch.num_rows for batch in batches) == 190


@pytest.mark.parametrize("method", METHODS)
def test_workers_write(method, tmp_path):
    targets = [(SHARDS, tmp_path / f"{number}.tfrecord") for number in range(3)]
    assert run(method, workers.write, targets) == [200] * 3
    assert [tfarrow.diff(SHARDS, target).ok for _, target in targets] == [True] * 3


@pytest.mark.parametrize("method", METHODS)
def test_exceptions_come_back(method):
    path = TESTDATA / "corrupt" / "data.tfrecord"
    with pytest.raises(errors.CorruptError) as found:
        run(method, workers.fail, [path])
    assert (found.value.file, found.value.record, found.value.offset) == (str(path), 1, 72)


@pytest.mark.skipif("fork" not in METHODS, reason="fork of Unix")
def test_forked_children_of_a_bare_fork():
    scan = tfarrow.scan(SHARDS)
    scan.to_numpy()
    batches = iter(scan.batches(10))
    next(batches)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            with pytest.raises(tfarrow.errors.UsageError, match="before the process forked"):
                next(batches)
            # Also its destructors run in the child.
            del batches
            done = scan.count() == 200 and len(scan.to_pylist()) == 200
            os._exit(0 if done else 1)
        finally:
            os._exit(2)
    pool = ThreadPoolExecutor(1)
    try:
        _, status = pool.submit(os.waitpid, child, 0).result(timeout=BOUND)
    finally:
        if not status_of(child):
            os.kill(child, 9)
        pool.shutdown(wait=False)
    assert os.waitstatus_to_exitcode(status) == 0


def status_of(child):
    """Whether a child has ended and was waited for."""
    try:
        os.kill(child, 0)
    except ProcessLookupError:
        return True
    return False


class Server(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    handler = partial(Server, directory=str(TESTDATA))
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{found.server_port}"
    found.shutdown()
    found.server_close()
    thread.join()


@pytest.mark.parametrize("method", METHODS)
def test_workers_use_a_store_after_the_parent_did(method, server):
    path = f"{server}/scalar.tfrecord"
    assert workers.read_source(path) == (20, 20, 20)
    assert run(method, workers.read_source, [path] * 3) == [(20, 20, 20)] * 3
    assert workers.read_source(path) == (20, 20, 20)


# --------------------------------------------------------------------------------------------------------------- threads


def test_threads_read_one_scan():
    scan = tfarrow.scan(SHARDS)
    expected = tfarrow.scan(SHARDS).to_pylist()
    start = threading.Barrier(4)

    def read(_):
        start.wait(BOUND)
        return [scan.to_pylist() for _ in range(3)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, range(4), timeout=BOUND)) == [[expected] * 3] * 4


def test_threads_share_a_stream():
    stream = tfarrow.scan(SHARDS)._stream(1)
    seen, start = [], threading.Barrier(2)

    def read():
        start.wait(BOUND)
        while (raw := stream.next_batch(1)) is not None:
            seen.append(raw.num_rows)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    assert not any(thread.is_alive() for thread in threads)
    assert seen == [1] * 200


def test_threads_make_all_calls():
    calls = [
        lambda: tfarrow.count(SHARDS),
        lambda: tfarrow.stats(SHARDS)["records"],
        lambda: tfarrow.schema(SHARDS).num_records,
        lambda: tfarrow.verify(SHARDS)["records"],
        lambda: len(tfarrow.scan(SHARDS).to_numpy()["label"]),
        lambda: tfarrow.sql(f"SELECT count(*) AS n FROM '{SHARDS}/'").to_pylist()[0]["n"],
    ]
    with ThreadPoolExecutor(len(calls) * 2) as pool:
        results = [pool.submit(call) for call in calls * 4]
        assert [result.result(timeout=BOUND) for result in results] == [200] * len(results)


def test_other_threads_run_while_one_waits():
    counted, stop = [0], threading.Event()

    def count():
        while not stop.wait(0.001):
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    query = "SELECT count(*) AS n FROM generate_series(1, 4000) a, generate_series(1, 10000) b WHERE (a.value * b.value) % 7 = 1"
    tfarrow.sql(query).to_pylist()
    stop.set()
    thread.join(BOUND)
    assert counted[0] > 5


def test_streams_can_be_read_once():
    stream = tfarrow.scan(SHARDS)._stream()
    stream.__arrow_c_stream__()
    with pytest.raises(ValueError, match="was read"):
        stream.__arrow_c_stream__()
    with pytest.raises(ValueError, match="was read"):
        stream.next_batch()
    with pytest.raises(ValueError, match="was read"):
        stream.__arrow_c_schema__()


def test_pickled_arrays_are_copies():
    batch = next(tfarrow.scan(SHARDS).batches(5)).to_numpy()
    again = pickle.loads(pickle.dumps(batch))
    again["label"][:] = 9
    assert not (batch["label"] == 9).any()
    assert isinstance(again["label"], np.ndarray)
