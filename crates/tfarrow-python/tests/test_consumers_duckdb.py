"""DuckDB reads scans by the names of variables, and its operations work on every type of column."""

import pytest
import tfarrow
from columns import DATA, LAYOUTS
from support import TESTDATA

duckdb = pytest.importorskip("duckdb")


@pytest.fixture(params=LAYOUTS)
def scan(request, tmp_path_factory):
    return DATA[request.param](tmp_path_factory)


def dicts(relation):
    return [dict(zip(relation.columns, row)) for row in relation.fetchall()]


def test_rows_by_the_name_of_a_variable(scan):
    rows = scan.to_pylist()
    for _ in range(2):
        assert dicts(duckdb.sql("FROM scan")) == rows
    assert dicts(duckdb.from_arrow(scan)) == rows
    assert duckdb.sql("SELECT count(*) FROM scan").fetchall() == [(len(rows),)]


def test_registered(scan):
    connection = duckdb.connect()
    connection.register("t", scan)
    for _ in range(2):
        assert connection.execute("SELECT key FROM t ORDER BY key DESC").fetchall() == [(key,) for key in range(11, -1, -1)]
    connection.execute("CREATE TABLE copy AS FROM t")
    assert dicts(connection.sql("FROM copy ORDER BY key")) == scan.to_pylist()


def test_filter_sort_and_nulls(scan):
    rows = scan.to_pylist()
    assert dicts(duckdb.sql("FROM scan WHERE key > 2")) == [row for row in rows if row["key"] > 2]
    assert dicts(duckdb.sql("FROM scan ORDER BY key DESC LIMIT 3")) == rows[:-4:-1]
    for name in scan.columns:
        assert dicts(duckdb.sql(f'FROM scan WHERE "{name}" IS NOT NULL')) == [row for row in rows if row[name] is not None]
        assert duckdb.sql(f'SELECT count(*) - count("{name}") FROM scan').fetchall() == [(sum(row[name] is None for row in rows),)]
        assert dicts(duckdb.sql(f'SELECT "{name}" FROM scan')) == [{name: row[name]} for row in rows]


def test_join_with_itself(scan):
    rows = scan.to_pylist()
    found = duckdb.sql("SELECT a.*, b.t AS again FROM scan a JOIN scan b ON a.key = b.key ORDER BY a.key")
    assert dicts(found) == [row | {"again": row["t"]} for row in rows]
    found = duckdb.sql("SELECT a.key, b.key FROM scan a LEFT JOIN scan b ON a.key = b.key + 10 ORDER BY 1").fetchall()
    assert found == [(key, key - 10 if key >= 10 else None) for key in range(12)]


def test_equal_values(scan):
    rows = scan.to_pylist()
    names = [name for name in scan.columns if name != "key"]
    for name in names:
        found = duckdb.sql(f'SELECT a.key, b.key FROM scan a, scan b WHERE a."{name}" = b."{name}" ORDER BY 1, 2').fetchall()
        expected = [(a["key"], b["key"]) for a in rows for b in rows if a[name] is not None and a[name] == b[name]]
        assert found == expected, name


def test_the_issues_query():
    s = tfarrow.scan(TESTDATA / "shards")  # noqa: F841, DuckDB finds it by its name
    found = duckdb.sql("SELECT city, avg(price) FROM s GROUP BY 1 ORDER BY 1").fetchall()
    ours = tfarrow.sql("SELECT city, avg(price) AS p FROM s GROUP BY 1 ORDER BY 1", s=s).to_pylist()
    assert [city for city, _ in found] == [row["city"] for row in ours]
    assert [price for _, price in found] == pytest.approx([row["p"] for row in ours])


def test_results_are_read_anew():
    result = tfarrow.sql(f"SELECT label, count(*) AS n FROM '{TESTDATA}/shards/' GROUP BY label")  # noqa: F841
    for _ in range(2):
        assert duckdb.sql("SELECT sum(n) FROM result").fetchall() == [(200,)]


def test_relations_are_tables_of_sql():
    relation = duckdb.sql("SELECT range AS x, 'a' || range AS s FROM range(5)")
    table = relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.arrow()
    assert tfarrow.sql("SELECT sum(x) AS n FROM t", t=table).to_pylist() == [{"n": 10}]
    if hasattr(relation, "__arrow_c_stream__"):
        assert tfarrow.sql("SELECT sum(x) AS n FROM t", t=relation).to_pylist() == [{"n": 10}]
