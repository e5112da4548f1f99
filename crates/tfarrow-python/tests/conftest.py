"""The packages that the tests of a run need, and a store."""

import os
import subprocess
import sys
import urllib.request
from importlib.util import find_spec

import pytest

# The backend of Keras that is installed.
os.environ.setdefault("KERAS_BACKEND", "jax")

# The packages of requirements.txt by the names that are imported.
PACKAGES = ["datafusion", "duckdb", "grain", "jax", "keras", "moto", "mypy", "pandas", "PIL", "polars", "pyarrow", "pyspark", "ray", "tqdm"]


def pytest_sessionstart(session):
    """Ends the run if a package is missing and TFARROW_TEST_ALL is set. Without it, tests of missing packages are skipped."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing and os.environ.get("TFARROW_TEST_ALL"):
        pytest.exit(f"not installed: {', '.join(missing)}", returncode=2)


# Modules whose tests start the threads of JAX. A process with these threads warns when it forks.
LAST = ["test_docs", "test_consumers_jax", "test_consumers_keras"]


def pytest_collection_modifyitems(items):
    """Runs the tests that use JAX after those that fork."""
    items.sort(key=lambda item: item.module.__name__ in LAST)


_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
server.start()
print("http://{}:{}".format(*server.get_host_and_port()), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def s3():
    """An S3 server, which the environment of this process and of its children names; None if moto is not installed."""
    if find_spec("moto") is None:
        yield None
        return
    command, pipe = [sys.executable, "-c", _SERVER], subprocess.PIPE
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as child,
        pytest.MonkeyPatch.context() as environment,
    ):
        # The server prints a line of its own.
        endpoint = next(line.strip() for line in child.stdout if line.startswith("http://"))
        environment.setenv("AWS_ENDPOINT_URL", endpoint)
        environment.setenv("AWS_REGION", "us-east-1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "test")
        yield endpoint
        child.kill()


@pytest.fixture
def bucket(s3, request):
    """The URL of an empty folder of the server."""
    if s3 is None:
        pytest.skip("could not import 'moto'")
    name = f"b{abs(hash(request.node.nodeid)):x}"
    urllib.request.urlopen(urllib.request.Request(f"{s3}/{name}", method="PUT")).close()
    return f"s3://{name}"
