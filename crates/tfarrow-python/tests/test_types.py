"""The stub of the binary module has the names and signatures of the module."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tfarrow


def test_the_stub_describes_the_binary_module(tmp_path):
    pytest.importorskip("mypy")
    folder = Path(tfarrow.__file__).parent.parent
    # Type checkers find installed packages by themselves.
    found = {} if folder.name == "site-packages" else {"MYPYPATH": str(folder)}
    command = [sys.executable, "-m", "mypy.stubtest", "tfarrow._tfarrow"]
    result = subprocess.run(command, env={**os.environ, **found}, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
