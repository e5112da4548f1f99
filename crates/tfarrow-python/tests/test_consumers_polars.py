"""Polars reads scans, eagerly and lazily, and its operations work on every type of column."""

import math
import random
import subprocess
import sys

import pytest
import tfarrow
from columns import DATA, LAYOUTS
from support import ROOT, TESTDATA, example, write_records

pl = pytest.importorskip("polars")


@pytest.fixture(params=LAYOUTS)
def scan(request, tmp_path_factory):
    return DATA[request.param](tmp_path_factory)


def plain(value):
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_frames_have_the_rows(scan):
    rows = scan.to_pylist()
    for frame in (pl.DataFrame(scan), scan.to_polars(), pl.DataFrame(scan), pl.scan_arrow_c_stream(scan).collect()):
        assert frame.to_dicts() == rows
    assert pl.concat([pl.DataFrame(batch) for batch in scan.batches(5)]).to_dicts() == rows


def test_filter_take_sort_and_nulls(scan):
    frame, rows = pl.DataFrame(scan), scan.to_pylist()
    assert frame.filter(pl.col("key") > 2).to_dicts() == [row for row in rows if row["key"] > 2]
    assert frame[[5, 0, 3, 3]].to_dicts() == [rows[row] for row in (5, 0, 3, 3)]
    assert frame.sort("key", descending=True).to_dicts() == rows[::-1]
    for name in frame.columns:
        assert frame[name].null_count() == sum(row[name] is None for row in rows)
        assert frame.filter(pl.col(name).is_not_null()).to_dicts() == [row for row in rows if row[name] is not None]


def test_join_with_itself(scan):
    rows = scan.to_pylist()
    joined = pl.DataFrame(scan).join(pl.DataFrame(scan), on="key", how="inner").sort("key")
    for name in scan.columns:
        if name != "key":
            assert joined[name].to_list() == joined[name + "_right"].to_list() == [row[name] for row in rows]


def test_explode_and_lengths(scan):
    frame, rows = pl.DataFrame(scan), scan.to_pylist()
    for name, kind in frame.schema.items():
        if isinstance(kind, pl.List):
            assert frame[name].list.len().to_list() == [None if row[name] is None else len(row[name]) for row in rows]


# ------------------------------------------------------------------------------------------------------------------ lazy


@pytest.fixture
def lazies(scan):
    if not isinstance(scan, tfarrow.Scan):
        pytest.skip("results of queries have no lazy frames")
    return scan


def test_lazy_frames_have_the_rows(lazies):
    rows = lazies.to_pylist()
    lazy = lazies.lazy()
    for engine in ("in-memory", "streaming"):
        assert lazy.collect(engine=engine).to_dicts() == rows
    assert lazy.collect_schema() == pl.DataFrame(lazies).schema
    assert lazy.select("key").collect().to_dicts() == [{"key": row["key"]} for row in rows]
    assert lazy.select(pl.len()).collect().item() == len(rows)
    for count in (0, 1, 5, 100):
        assert lazy.head(count).collect().to_dicts() == rows[:count]
        assert lazy.filter(pl.col("key") > 3).head(count).collect().to_dicts() == [row for row in rows if row["key"] > 3][:count]
    assert lazy.tail(3).collect().to_dicts() == rows[-3:]
    assert lazy.slice(2, 4).collect().to_dicts() == rows[2:6]
    joined = lazy.join(lazies.lazy(), on="key").sort("key").collect()
    assert joined["key"].to_list() == [row["key"] for row in rows]


def test_only_the_needed_columns_are_decoded(tmp_path):
    # The second column cannot be decoded.
    path = write_records(tmp_path / "x.tfrecord", [example(a=[1], b=[1])] * 3 + [example(a=[2], b=[1, 2])])
    lazy = tfarrow.scan(path, sample=3).lazy()
    assert lazy.select("a").collect()["a"].to_list() == [1, 1, 1, 2]
    assert lazy.filter(pl.col("a") > 1).select("a").collect()["a"].to_list() == [2]
    assert lazy.select(pl.len()).collect().item() == 4
    assert lazy.head(3).collect().height == 3
    with pytest.raises(Exception, match='feature "b"'):
        lazy.collect()


def test_steps_of_a_scan_come_first(tmp_path):
    scan = tfarrow.scan(TESTDATA / "shards").where("label > 0").limit(50).select("label", "city")
    lazy = scan.lazy()
    assert lazy.collect().to_dicts() == scan.to_pylist()
    assert lazy.filter(pl.col("label") == 2).collect().to_dicts() == [row for row in scan.to_pylist() if row["label"] == 2]


def values():
    nan = float("nan")
    ints = [0, 1, -1, 5, 2**53 + 1, 2**53, 2**63 - 1, -(2**63), None]
    floats = [0.0, -0.0, 1.5, nan, float("inf"), float("-inf"), 0.1, 3e38, None]
    # Fewer than a tenth have a control character: more would be bytes.
    texts = ["", "a", "A", "é", "z'\"%_", "ab", None, "ä\u0000b", "a", "b", "B", "c", "d", "ü", "x y"]
    return ints, floats, texts


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    ints, floats, texts = values()
    generator = random.Random(3)
    records = []
    for row in range(400):
        found = {"row": [row]}
        for name, options in (("i", ints), ("f", floats), ("t", texts), ("odd \"name'", ints)):
            value = generator.choice(options)
            if value is not None:
                found[name] = [value]
        found["b"] = [generator.choice([b"\xff", b"", b"a"])]
        found["list"] = [generator.randrange(5) for _ in range(generator.randrange(1, 3))]
        records.append(example(**found))
    path = write_records(tmp_path_factory.mktemp("mixed") / "x.tfrecord", records)
    scan = tfarrow.scan(path, sample="all")
    return scan, pl.DataFrame(scan)


def predicate(generator, depth=0):
    ints, floats, texts = values()
    if depth < 3 and generator.random() < 0.5:
        left, right = predicate(generator, depth + 1), predicate(generator, depth + 1)
        match generator.randrange(5):
            case 0 | 1:
                return left & right
            case 2:
                return left | right
            case 3:
                return ~left
            case 4:
                return left ^ right
    name, options = generator.choice([("i", ints), ("f", floats), ("t", texts), ("odd \"name'", ints), ("row", [0, 7, 399, 3.5, None])])
    column, value = pl.col(name), generator.choice(options)
    match generator.randrange(12):
        case 0:
            return column.is_null()
        case 1:
            return column.is_not_null()
        case 2:
            return column.is_in([value, options[0]])
        case 3 if name == "f":
            return column.is_nan()
        case 4 if name in ("i", "f"):
            return column > generator.choice([0.5, 1, 2**53, True])
        case 5 if name == "t":
            return column.str.starts_with("a")
        case 6:
            return column.eq_missing(value)
        case 7 if name in ("i", "row"):
            return column + 1 > 3
        case 8:
            return pl.lit(value) == column
        case 9 if name in ("i", "row"):
            return column == pl.col("row")
    compare = generator.choice(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
    return getattr(column, compare)(value)


@pytest.mark.filterwarnings("ignore:Comparisons with None")
@pytest.mark.parametrize("seed", range(40))
def test_random_predicates_are_those_of_eager_frames(mixed, seed):
    scan, frame = mixed
    generator = random.Random(seed)
    for _ in range(10):
        condition = predicate(generator)
        try:
            expected = frame.filter(condition)
        except Exception as error:
            # Types that Polars cannot compare.
            with pytest.raises(type(error)):
                scan.lazy().filter(condition).collect()
            continue
        engine = generator.choice(["in-memory", "streaming"])
        found = scan.lazy().filter(condition).collect(engine=engine)
        assert found.equals(expected, null_equal=True), condition
        columns = generator.sample(frame.columns, 2)
        limit = generator.choice([0, 1, 10, 1000])
        found = scan.lazy().filter(condition).select(columns).head(limit).collect(engine=engine)
        assert found.equals(expected.select(columns).head(limit), null_equal=True), condition
        grouped = scan.lazy().filter(condition).group_by("t").agg(pl.col("row").sum()).sort("t").collect(engine=engine)
        assert grouped.equals(expected.group_by("t").agg(pl.col("row").sum()).sort("t")), condition


def test_nan_is_not_lost(mixed):
    scan, frame = mixed
    found = scan.lazy().filter(pl.col("f") >= 1).collect()
    assert any(math.isnan(value) for value in found["f"])
    assert found.equals(frame.filter(pl.col("f") >= 1), null_equal=True)


def test_conditions_reach_the_scan(mixed):
    from tfarrow.polars import condition_of

    schema = mixed[1].schema
    assert condition_of((pl.col("i") > 5) & (pl.col("t") == "a'b"), schema) == "\"i\" > 5 AND \"t\" = 'a''b'"
    assert condition_of((pl.col("i") == 5) & (pl.col("f") > 1.5), schema) == '"i" = 5'
    assert condition_of((pl.col("i") == 5) | (pl.col("t") == "a"), schema) is None
    assert condition_of(pl.col("f") > 1.5, schema) is None
    assert condition_of(pl.col("odd \"name'") == 1, schema) == "\"odd \"\"name'\" = 1"


def test_many_lazy_frames_at_once_do_not_hang():
    code = """
import polars as pl, tfarrow
scan = tfarrow.scan("testdata/shards")
lazies = [scan.lazy().filter(pl.col("label") == k % 4).select("label", "price") for k in range(16)]
frames = pl.collect_all(lazies)
assert sum(frame.height for frame in frames) == 800, [f.height for f in frames]
joined = lazies[0]
for lazy in lazies[4:8]:
    joined = joined.join(lazy, on="label", how="semi")
joined.collect(); joined.collect(engine="streaming")
print(pl.concat(lazies).select(pl.len()).collect().item())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.stdout == "800\n", done.stderr


def test_frames_are_tables_of_sql():
    frame = pl.DataFrame({"x": [1, None, 3], "s": ["a", None, "c"], "l": [[1.5], [], None]})
    assert tfarrow.sql("SELECT * FROM t", t=frame).to_pylist() == frame.to_dicts()
    assert tfarrow.sql("SELECT a.s FROM t a JOIN t b USING (x) ORDER BY 1", t=frame).to_polars().to_dicts() == [{"s": "a"}, {"s": "c"}]
    rows = tfarrow.sql(f"SELECT count(*) AS n FROM '{TESTDATA}/shards/' JOIN t ON label = x", t=frame)
    assert rows.to_polars()["n"].to_list() == rows.to_polars()["n"].to_list()
