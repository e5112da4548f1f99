"""The command, as ``python -m tfarrow`` and as the entry point of the wheel."""

import os
import signal
import subprocess
import sys
import time

import pytest
import tfarrow
from support import ROOT, example, heed_interrupt, program, write_repeated


def test_schema():
    status, out, err = program("schema", "testdata/scalar.tfrecord")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "20 tf.Example records in 1 shard"
    assert out == tfarrow.schema(ROOT / "testdata/scalar.tfrecord").text() + ("" if out.endswith("\n\n") else "\n") or (
        out.strip() == tfarrow.schema(ROOT / "testdata/scalar.tfrecord").text().strip()
    )


def test_count():
    status, out, err = program("count", "testdata/shards/")
    assert (status, err) == (0, "")
    assert "200" in out


def test_sql():
    status, out, err = program("sql", "SELECT count(*) AS n FROM 'testdata/shards/'", "--format", "csv")
    assert (status, out, err) == (0, "n\n200\n", "")


def test_version_and_help():
    assert program("--version") == (0, f"tfarrow {tfarrow.__version__}\n", "")
    status, out, err = program("--help")
    assert status == 0 and "Usage: tfarrow [OPTIONS] <COMMAND>" in out and err == ""


@pytest.mark.parametrize("arguments", [["nope"], ["count"], ["count", "--nope", "x"], ["schema", "x", "--layout", "nope"], []])
def test_wrong_usage(arguments):
    status, out, err = program(*arguments)
    assert status == 2
    assert out == "" and "Usage: tfarrow" in err or "possible values" in err or "expected one of" in err


@pytest.mark.parametrize(
    "status, arguments",
    [
        (1, ["count", "no/such/file"]),
        (1, ["stats", "testdata/corrupt/data.tfrecord"]),
        (3, ["stats", "testdata/corrupt/data.tfrecord", "--on-error", "skip"]),
        (3, ["verify", "testdata/corrupt/data.tfrecord"]),
        (0, ["verify", "testdata/scalar.tfrecord"]),
        (0, ["diff", "testdata/scalar.tfrecord", "testdata/scalar.tfrecord"]),
        (3, ["diff", "testdata/scalar.tfrecord", "testdata/text.tfrecord"]),
    ],
)
def test_exit_statuses(status, arguments):
    found, _, err = program(*arguments)
    assert found == status
    assert "Traceback" not in err and "panic" not in err


def test_standard_input():
    with open(ROOT / "testdata/scalar.tfrecord", "rb") as file:
        done = subprocess.run([sys.executable, "-m", "tfarrow", "count", "-"], stdin=file, capture_output=True, text=True)
    assert done.returncode == 0 and "20" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="pipes of Unix")
def test_closed_pipes_are_no_error():
    command = f"{sys.executable} -m tfarrow sql \"SELECT * FROM generate_series(1, 3000000)\" --format csv | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[0] == "value"
    assert "Traceback" not in done.stderr and "panic" not in done.stderr
    assert int(lines[1]) in (0, 1, 141), lines


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize("command", ["stats", "verify", "sql"])
def test_interrupt(command, tmp_path):
    path = write_repeated(tmp_path / "x.tfrecord", [example(x=[1.5] * 1000)] * 10, 1600)
    arguments = ["SELECT count(*) FROM range(1, 100000000) a, range(1, 100000000) b WHERE a.value < b.value"] if command == "sql" else [path] * 1
    if command != "sql":
        for number in range(400):
            (tmp_path / f"{number}.tfrecord").symlink_to(path)
        arguments = [tmp_path]
    # A busy machine may be late once, and not each time.
    assert any(seconds_to_stop(command, arguments) < 1 for _ in range(3))


def seconds_to_stop(command, arguments):
    """Interrupts a command, and returns the time from the signal to its end."""
    with subprocess.Popen([sys.executable, "-m", "tfarrow", command, *map(str, arguments)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=heed_interrupt) as child:
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=1.2)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=20)
        finally:
            child.kill()
    seconds = time.monotonic() - sent
    assert child.returncode in (-signal.SIGINT, 130, 1)
    assert "Traceback" not in err and "panic" not in err
    return seconds


def test_entry_point():
    code = "import sys, tfarrow.cli; sys.argv = ['tfarrow', 'count', 'testdata/scalar.tfrecord']; sys.exit(tfarrow.cli.main())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "20" in done.stdout and done.stderr == ""
