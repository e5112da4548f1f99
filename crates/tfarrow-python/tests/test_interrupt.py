"""Ctrl-C ends each call within half a second, with KeyboardInterrupt, also where another package reads."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import tfarrow
from interrupted import OPERATIONS
from support import example, heed_interrupt, write_repeated

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of Unix")

# Seconds between the signal and the exception.
ALLOWED = 0.5

_NEEDS = {"pyarrow": ("pyarrow", "to_arrow"), "polars": ("polars",), "pandas": ("pandas",), "duckdb": ("duckdb",)}


def _packages(operation):
    words = operation.replace("_", " ").split()
    found = {name for name in ("pyarrow", "polars", "pandas", "duckdb", "datafusion") if name in words}
    return found | ({"pyarrow"} if found - {"polars", "duckdb"} or "arrow" in words else set())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A file of 64 MB, which the child reads 500 times."""
    records = [example(i=[number], s=[f"text of record {number}"], x=[float(number)] * 200) for number in range(64)]
    size = sum(len(record) + 16 for record in records)
    return write_repeated(tmp_path_factory.mktemp("data") / "data.tfrecord", records, (64 << 20) // size)


DUCKDB = pytest.mark.xfail(
    strict=False,
    reason="DuckDB sees the signal itself, and then waits for its other thread, which reads the stream to its end",
)
# The thread that reads the object of Python ends after the call, and Python ends the process if it exits before.
OUTLIVES = pytest.mark.xfail(strict=False, reason="a thread that runs Python code outlives an interrupted query")
SILENT = pytest.mark.xfail(strict=False, reason="Polars looks for a signal after each batch, and a condition may let none pass")
MARKS = {"polars lazy filter": SILENT, "duckdb of two threads": DUCKDB, "sql of pyarrow": OUTLIVES, "write of pyarrow": OUTLIVES}  # fmt: skip


@pytest.mark.parametrize("operation", [pytest.param(name, marks=MARKS.get(name, ())) for name in OPERATIONS])
def test_interrupt(operation, data, tmp_path):
    if missing := [name for name in _packages(operation) if find_spec(name) is None]:
        pytest.skip(f"needs {missing}")
    # A busy machine may be late once, and not each time.
    assert any(seconds_to_stop(operation, data, tmp_path / str(attempt)) < ALLOWED for attempt in range(3))


def seconds_to_stop(operation, data, folder):
    """Interrupts an operation, and returns the time from the signal to its end."""
    folder.mkdir()
    script = Path(__file__).with_name("interrupted.py")
    command = [sys.executable, "-W", "error", str(script), operation, str(data), str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupt
    ) as child:
        try:
            assert child.stdout.readline() == "ready\n", child.stderr.read()
            # Long enough for the first rows.
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=1.2)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=30)
        finally:
            child.kill()
    assert err == ""
    assert child.returncode == 0
    ends, classes, _ = zip(*json.loads(out))
    # DuckDB handles the signal itself, as in queries without any stream, and raises a RuntimeError.
    assert classes[-1] == "KeyboardInterrupt" or (operation.startswith("duckdb") and "Query interrupted" in out)
    # An output that has its name is complete.
    outputs = [path for path in folder.rglob("*.*") if path.is_file() and "links" not in path.parts]
    for path in outputs:
        assert path.name.startswith(".") or tfarrow.count(path) == tfarrow.count(data), path
    return ends[-1] - sent
