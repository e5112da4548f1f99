"""The examples of the documentation: Python snippets of README.md and docs/python.md, the notebook, and docstrings.

A snippet runs in a folder with a link to ``testdata/``. In snippets and in the notebook, the text after ``# →`` on the last
line of an expression is the ``repr`` of its value.
"""

import ast
import doctest
import importlib
import importlib.util
import json
import pkgutil
import re
from pathlib import Path

import pytest

import tfarrow

ROOT = Path(__file__).resolve().parents[3]
PAGES = ["README.md", "docs/python.md"]
# Packages whose snippets are left out where they are not installed.
OPTIONAL = ("datafusion", "duckdb", "pandas", "polars", "pyarrow", "pyspark", "ray", "torch", "tqdm")

# Examples read corrupt files, and skip what is corrupt there.
pytestmark = pytest.mark.filterwarnings("default::tfarrow.errors.TfarrowWarning")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """The current directory: an empty folder for outputs, with a link to the test data."""
    (tmp_path / "testdata").symlink_to(ROOT / "testdata")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def snippets(page):
    """The Python snippets of a page, each at its line, so that tracebacks have the lines of the page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield "\n" * text[: block.start(1)].count("\n") + block.group(1)


def missing_packages(code):
    """The optional packages that a snippet imports and that are not installed."""
    imported = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                imported.update(name.name.split(".")[0] for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                imported.add(module.split(".")[0])
    return sorted(name for name in imported.intersection(OPTIONAL) if importlib.util.find_spec(name) is None)


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
    for code in found:
        line = len(code) - len(code.lstrip("\n")) + 1
        with subtests.test(msg=f"{page}:{line}"):
            if missing := missing_packages(code):
                pytest.skip(f"{page}:{line}: not installed: " + ", ".join(missing))
            run(code, page, namespace)


def test_the_notebook_runs_from_start_to_end(workspace):
    notebook = json.loads((ROOT / "docs/python.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if missing := sorted({name for code in cells for name in missing_packages(code)}):
        pytest.skip("not installed: " + ", ".join(missing))
    namespace = {"__name__": "__main__"}
    for number, code in enumerate(cells):
        run(code, f"docs/python.ipynb, code cell {number}", namespace)
    assert len(cells) >= 8


def test_the_notebook_is_portable():
    text = (ROOT / "docs/python.ipynb").read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert len(text) < 60_000
    assert not re.search(r"/(home|tmp|root|Users|work)/", text)


def modules():
    """The modules of the package, with their names."""
    yield "tfarrow"
    for module in pkgutil.iter_modules(tfarrow.__path__, "tfarrow."):
        # The program, and the binary module, whose documentation is in its stub.
        if module.name not in ("tfarrow.__main__", "tfarrow._tfarrow"):
            yield module.name


@pytest.mark.parametrize("name", list(modules()))
def test_docstrings_run(name, workspace):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if error.name not in OPTIONAL:
            raise
        pytest.skip(f"not installed: {error.name}")
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    reports = []
    for test in finder.find(module, name):
        imported = {"tfarrow": tfarrow, "np": importlib.import_module("numpy")}
        test.globs = {**imported, **test.globs}
        code = "".join(example.source for example in test.examples if doctest.SKIP not in example.options)
        if missing_packages(code):
            continue
        runner.run(test, out=reports.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(reports)


def test_public_functions_have_examples():
    """Each public function and each method that makes data has an example in its docstring."""
    without = [
        name
        for name in tfarrow.__all__
        if callable(value := getattr(tfarrow, name)) and not isinstance(value, type) and ">>>" not in (value.__doc__ or "")
    ]
    assert without == []
