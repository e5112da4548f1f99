"""The examples of the documentation: Python snippets of README.md and docs/python.md, the notebook, and docstrings.

Examples run in a folder with a link to ``testdata/``. In snippets and in the notebook, the text after ``# →`` on the last line
of an expression is the ``repr`` of its value. Examples that need a package that is not installed are reported as skipped.
"""

import ast
import contextlib
import doctest
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tfarrow

ROOT = Path(__file__).resolve().parents[3]
PAGES = ["README.md", "docs/python.md"]
# Packages whose examples are left out where they are not installed.
OPTIONAL = ("datafusion", "duckdb", "grain", "jax", "keras", "pandas", "polars", "pyarrow", "pyspark", "ray", "torch", "tqdm")

# Examples read corrupt files, and skip what is corrupt there.
pytestmark = pytest.mark.filterwarnings("default::tfarrow.errors.TfarrowWarning")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """The current directory: an empty folder for outputs, with a link to the test data."""
    (tmp_path / "testdata").symlink_to(ROOT / "testdata")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextlib.contextmanager
def skipping_without_packages(example):
    """Skips an example that needs an optional package which is not installed."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "").split(".")[0]
        if package not in OPTIONAL:
            raise
        pytest.skip(f"{example}: {package} is not installed")


def snippets(page):
    """The Python snippets of a page with their lines. They begin with empty lines, so that tracebacks have the lines of the
    page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        before = text[: block.start(1)].count("\n")
        yield before + 1, "\n" * before + block.group(1)


def run(code, name, namespace):
    """Runs a snippet, and compares the values of its expressions with their comments."""
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        _, arrow, expected = lines[statement.end_lineno - 1].partition("  # → ")
        if not arrow:
            exec(compile(ast.Module([statement], []), name, "exec"), namespace)
            continue
        assert isinstance(statement, ast.Expr), f"{name}:{statement.lineno}: an arrow after what has no value"
        value = eval(compile(ast.Expression(statement.value), name, "eval"), namespace)
        assert repr(value) == expected, f"{name}:{statement.lineno}"


@pytest.mark.parametrize("page", PAGES)
def test_snippets_of_a_page_run(page, workspace, subtests):
    namespace, found = {"__name__": "__main__"}, list(snippets(page))
    assert found
    for line, code in found:
        with subtests.test(page, line=line), skipping_without_packages(f"{page}:{line}"):
            if CLUSTER.search(code):
                run_alone(code, page)
            else:
                run(code, page, namespace)


# Ray and Spark start servers, and keep the settings with which they were started.
CLUSTER = re.compile(r"^(?:import|from) (ray|pyspark)\b", re.MULTILINE)


def run_alone(code, name):
    """Runs code with Ray or Spark in a process of its own."""
    importlib.import_module(CLUSTER.search(code)[1])
    script = f"import sys, tfarrow, test_docs; test_docs.run(sys.argv[1], {name!r}, {{'tfarrow': tfarrow}})"
    folders = [str(Path(__file__).parent), str(Path(tfarrow.__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "-c", script, code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_the_notebook_runs_from_start_to_end(workspace):
    notebook = json.loads((ROOT / "docs/python.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    namespace = {"__name__": "__main__"}
    with skipping_without_packages("docs/python.ipynb"):
        for number, code in enumerate(cells, 1):
            run(code, f"docs/python.ipynb, code cell {number}", namespace)
    assert len(cells) >= 8


def test_the_notebook_has_no_paths_of_a_machine_and_is_small():
    text = (ROOT / "docs/python.ipynb").read_text(encoding="utf-8")
    assert json.loads(text)["metadata"]["kernelspec"]["name"] == "python3"
    assert len(text) < 60_000
    assert not re.search(r"/(home|root|tmp|Users)/", text)


def modules():
    """The names of the modules of the package, except the program and the binary module, whose documentation is in its
    stub."""
    others = (module.name for module in pkgutil.iter_modules(tfarrow.__path__, "tfarrow."))
    return ["tfarrow", *(name for name in others if name not in ("tfarrow.__main__", "tfarrow._tfarrow"))]


@pytest.mark.parametrize("name", modules())
def test_examples_of_docstrings_run(name, workspace, subtests):
    with skipping_without_packages(name):
        module = importlib.import_module(name)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        if test.examples:
            with subtests.test(test.name), skipping_without_packages(test.name):
                run_docstring(test)


def run_docstring(test):
    test.globs = {"tfarrow": tfarrow, "np": np, **test.globs}
    runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    try:
        runner.run(test)
    except doctest.UnexpectedException as error:
        raise error.exc_info[1] from None
    except doctest.DocTestFailure as failure:
        example = failure.example
        pytest.fail(f"{test.name}: {example.source}expected {example.want}found    {failure.got}", pytrace=False)


def test_public_functions_have_examples():
    functions = [name for name in tfarrow.__all__ if type(getattr(tfarrow, name)) is type(tfarrow.scan)]
    assert [name for name in functions if ">>>" not in getattr(tfarrow, name).__doc__] == []
    assert len(functions) >= 14
