#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Install the Python package into an empty virtual environment, and run its tests there.

    python3 tests/python.py [--large] [--profile PROFILE] [FOLDER]

The first run of the tests has numpy alone, and skips the tests of other packages, of signals and of processes. The second has the
packages of crates/tfarrow-python/tests/requirements.txt, and a missing package is an error; it installs a Java runtime on Debian
if there is none, which Spark needs. Warnings are errors. FOLDER, by default a temporary one, gets the environment.

With --large there is a third run, for PyTorch and TensorFlow, whose packages take some gigabytes; .ci/run makes it without.
TFARROW_TEST_DATA names folders whose files TensorFlow reads as well (test_tensorflow.py).

The wheel is built in the target folder of the workspace, and with --profile dev in the profile of the tests, so that only the
module itself is compiled after a `cargo test --workspace`.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGE = os.path.join(ROOT, "crates", "tfarrow-python")
# TensorFlow uses what other packages have deprecated.
LOUD = ["-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="test with PyTorch and TensorFlow as well")
    parser.add_argument("--profile", default="release", help="the profile of Cargo, release by default")
    parser.add_argument("folder", nargs="?")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tfarrow-python-") as temporary:
        home = os.path.abspath(options.folder or temporary)
        venv.create(home, with_pip=True, clear=True)
        python = os.path.join(home, "bin", "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        step("pip install .", [*pip, "--config-settings", f"build-args=--profile {options.profile}", ROOT])
        step("the command of the wheel", [os.path.join(home, "bin", "tfarrow"), "count", "testdata/shards/"])
        step("pip install pytest", [*pip, "pytest"])
        # The second run has these, which wait for signals and for processes.
        waiting = ["--ignore-glob=*/test_interrupt.py", "--ignore-glob=*/test_processes.py"]
        step("tests with numpy alone", [*pytest(python), *waiting])
        java()
        step("pip install the other packages", [*pip, "-r", os.path.join(PACKAGE, "tests", "requirements.txt")])
        step("tests with the other packages", pytest(python), TFARROW_TEST_ALL="1")
        stubs = [python, "-m", "mypy.stubtest", "tfarrow._tfarrow"]
        step("type stubs", stubs)
        if options.large:
            step("pip install torch and TensorFlow", [*pip, "torch", "torchdata", "lightning", "ray[train]", "tensorflow-cpu"])
            step("tests with torch and TensorFlow", [*pytest(python, "test_torch.py", "test_tensorflow.py"), *LOUD])


def step(name, command, **environment):
    """Runs a command in the root of the repository, and ends the program if it fails."""
    begun = time.perf_counter()
    print(f"-- {name}", flush=True)
    # Python packages of the caller must not be visible in the environment.
    unset = {"PYTHONPATH", "PYTHONHOME"}
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(command, cwd=ROOT, env={**inherited, **environment})
    if done.returncode != 0:
        sys.exit(f"{name}: exit status {done.returncode}")
    print(f"-- {name}: {time.perf_counter() - begun:.0f} s", flush=True)


def pytest(python, *files):
    """The command that runs all tests, or those of these files."""
    tests = os.path.join(PACKAGE, "tests")
    return [python, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "--durations=10", *([os.path.join(tests, file) for file in files] or [tests])]


def java():
    """Installs a Java runtime on Debian if there is none."""
    if shutil.which("java") is None:
        step("apt-get update", ["apt-get", "-qq", "update"])
        step("apt-get install default-jre-headless", ["apt-get", "-qq", "install", "-y", "default-jre-headless"])


if __name__ == "__main__":
    main()
