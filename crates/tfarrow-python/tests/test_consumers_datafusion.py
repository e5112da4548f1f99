"""datafusion-python reads scans, and its operations work on every type of column."""

import pytest
import tfarrow
from columns import DATA, LAYOUTS

datafusion = pytest.importorskip("datafusion")


@pytest.fixture(params=LAYOUTS)
def scan(request, tmp_path_factory):
    return DATA[request.param](tmp_path_factory)


@pytest.fixture
def context(scan):
    found = datafusion.SessionContext()
    found.from_arrow(scan, name="t")
    return found


def test_rows(context, scan):
    rows = scan.to_pylist()
    for _ in range(2):
        assert context.sql("SELECT * FROM t ORDER BY key").to_pylist() == rows
    assert datafusion.SessionContext().from_arrow(scan).to_pylist() == rows


def test_filter_sort_and_nulls(context, scan):
    rows = scan.to_pylist()
    assert context.sql("SELECT * FROM t WHERE key > 2 ORDER BY key DESC").to_pylist() == rows[:2:-1]
    for name in scan.columns:
        found = context.sql(f'SELECT * FROM t WHERE "{name}" IS NOT NULL ORDER BY key').to_pylist()
        assert found == [row for row in rows if row[name] is not None]


def test_join_with_itself(context, scan):
    rows = scan.to_pylist()
    found = context.sql("SELECT a.*, b.t AS again FROM t a JOIN t b ON a.key = b.key ORDER BY a.key").to_pylist()
    assert found == [row | {"again": row["t"]} for row in rows]


def test_results_of_datafusion_are_tables_of_sql(context, scan):
    frame = context.sql("SELECT key FROM t WHERE key < 5")
    assert tfarrow.sql("SELECT sum(key) AS n FROM f", f=frame).to_pylist() == [{"n": 10}]
    assert tfarrow.sql("SELECT s.key FROM s JOIN f USING (key) ORDER BY 1", f=frame, s=scan).to_pylist() == [{"key": key} for key in range(5)]
