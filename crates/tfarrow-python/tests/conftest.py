"""The packages that the tests of a run need."""

import os
from importlib.util import find_spec

import pytest

# The packages of requirements.txt by the names that are imported.
PACKAGES = ["datafusion", "duckdb", "mypy", "pandas", "polars", "pyarrow", "pyspark", "ray", "tqdm"]


def pytest_sessionstart(session):
    """Ends the run if a package is missing and TFARROW_TEST_ALL is set. Without it, tests of missing packages are skipped."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing and os.environ.get("TFARROW_TEST_ALL"):
        pytest.exit(f"not installed: {', '.join(missing)}", returncode=2)
