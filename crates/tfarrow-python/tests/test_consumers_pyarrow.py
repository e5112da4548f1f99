"""pyarrow reads scans, and its operations work on every type of column."""

import gc
import warnings

import pytest
import tfarrow
from columns import DATA, LAYOUTS
from support import TESTDATA, scan_all

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")
ds = pytest.importorskip("pyarrow.dataset")


@pytest.fixture(params=LAYOUTS)
def scan(request, tmp_path_factory):
    return DATA[request.param](tmp_path_factory)


def test_tables_have_the_rows(scan):
    rows = scan.to_pylist()
    for table in (pa.table(scan), scan.to_arrow(), pa.RecordBatchReader.from_stream(scan).read_all(), pa.table(scan)):
        table.validate(full=True)
        assert table.to_pylist() == rows
        assert table.schema == scan.schema == pa.schema(scan)


def test_batches_are_record_batches(scan):
    batches = [batch.to_arrow() for batch in scan.batches(3)]
    for batch in batches:
        batch.validate(full=True)
    assert pa.Table.from_batches(batches).to_pylist() == scan.to_pylist()
    assert pa.record_batch(next(scan.batches(3))).to_pylist() == scan.to_pylist()[:3]
    assert pa.table(next(scan.batches(3))).num_rows == 3


def test_no_column_is_a_view(scan):
    assert not any("view" in str(field.type) for field in scan.schema)


def test_filter_and_take_of_every_column(scan):
    table, rows = pa.table(scan), scan.to_pylist()
    assert table.filter(pc.field("key") > 2).to_pylist() == [row for row in rows if row["key"] > 2]
    assert table.take([5, 0, 3, 3]).to_pylist() == [rows[row] for row in (5, 0, 3, 3)]
    assert table.slice(2, 3).to_pylist() == rows[2:5]
    for name in table.column_names:
        valid = table.filter(pc.field(name).is_valid())
        assert valid.to_pylist() == [row for row in rows if row[name] is not None]
        assert table[name].null_count == sum(row[name] is None for row in rows)


def test_sort_of_a_table(scan):
    table = pa.table(scan)
    assert table.sort_by([("key", "descending")]).to_pylist() == sorted(scan.to_pylist(), key=lambda row: -row["key"])


def test_join_on_a_column(scan):
    keys = pa.table({"key": [1, 3, 99], "other": ["a", "b", "c"]})
    plain = [name for name in scan.columns if not pa.types.is_nested(scan.schema.field(name).type)]
    joined = pa.table(scan.select(*plain)).join(keys, "key", join_type="inner").sort_by("key").to_pylist()
    assert [row["other"] for row in joined] == ["a", "b"]
    assert [row["key"] for row in joined] == [1, 3]


def test_comparisons_with_values(scan):
    rows = scan.to_pylist()
    table = pa.table(scan)
    for name in table.column_names:
        kind = table.schema.field(name).type
        if pa.types.is_nested(kind):
            continue
        value = next(row[name] for row in rows if row[name] is not None)
        found = table.filter(pc.field(name) == pa.scalar(value, kind)).to_pylist()
        assert found == [row for row in rows if row[name] == value]


def test_lists_are_flattened(scan):
    rows = scan.to_pylist()
    for name in scan.columns:
        if pa.types.is_nested(scan.schema.field(name).type):
            flat = pc.list_flatten(pa.table(scan)[name]).to_pylist()
            assert flat == [item for row in rows for item in row[name] or []]
            assert pc.list_value_length(pa.table(scan)[name]).to_pylist() == [None if row[name] is None else len(row[name]) for row in rows]


def test_pushed_down_to_a_dataset(scan):
    reader = pa.RecordBatchReader.from_stream(scan)
    found = ds.Scanner.from_batches(reader, columns=["key"], filter=pc.field("key") > 3).to_table()
    assert found.to_pylist() == [{"key": row["key"]} for row in scan.to_pylist() if row["key"] > 3]


def test_memory_of_tables_lives_as_long_as_they(scan):
    table = pa.table(scan)
    rows = scan.to_pylist()
    gc.collect()
    for _ in range(10):
        pa.table(scan)
    assert table.to_pylist() == rows


def test_arrays_and_then_arrow_is_an_error():
    batch = next(scan_all(TESTDATA / "shards").batches(10))
    batch["label"][0] = 7
    with pytest.raises(ValueError, match="was read as numpy arrays"):
        batch.to_arrow()
    other = next(scan_all(TESTDATA / "shards").batches(10))
    table = other.to_arrow()
    assert not other["label"].flags.writeable
    assert table["label"].to_pylist() == other["label"].tolist()


def test_read_table():
    table = tfarrow.read_table(TESTDATA / "shards", columns=["label", "city"], where="label = 1")
    assert table.column_names == ["label", "city"] and set(table["label"].to_pylist()) == {1}


def test_views_on_request():
    schema = tfarrow.scan(TESTDATA / "scalar.tfrecord", bytes_type="binary_view").schema
    assert (schema.field("payload").type, schema.field("title").type) == (pa.binary_view(), pa.string_view())
    views = tfarrow.scan(TESTDATA / "scalar.tfrecord", bytes_type="binary_view")
    assert views.to_pylist() == tfarrow.scan(TESTDATA / "scalar.tfrecord").to_pylist()
    assert [bytes(value) for value in views.to_numpy()["payload"]] == [row["payload"] for row in views.to_pylist()]


def test_schema_is_that_of_tfarrow_schema():
    for name in ("scalar", "ragged", "sequence", "text", "names", "raw"):
        path = TESTDATA / f"{name}.tfrecord"
        # The column of features without a kind is not one of rows.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tfarrow.errors.TfarrowWarning)
            found = [column for column in tfarrow.schema(path).to_arrow() if column.name != "_tfarrow_unset"]
        assert found == list(scan_all(path).schema)


# ------------------------------------------------------------------------------------------------------------------- sql


def test_tables_of_sql():
    table = pa.table({"x": [1, None, 3], "s": ["a", "b", None], "l": [[1], [], None], "d": pa.array(["u", "v", "u"]).dictionary_encode()})
    assert tfarrow.sql("SELECT * FROM t", t=table).to_arrow().to_pylist() == table.to_pylist()
    assert tfarrow.sql("SELECT a.x FROM t a JOIN t b ON a.x = b.x ORDER BY 1", t=table).to_pylist() == [{"x": 1}, {"x": 3}]
    assert tfarrow.sql('SELECT "S" FROM "T"', T=table.rename_columns(["x", "S", "l", "d"])).to_pylist() == [{"S": s} for s in "ab"] + [{"S": None}]


def test_streams_of_one_pass_are_read_once():
    table = pa.table({"x": [1, 2, 3]})
    result = tfarrow.sql("SELECT sum(x) AS n FROM t", t=table.to_reader())
    assert result.to_pylist() == [{"n": 6}]
    # A second pass has no rows, or is an error; it is no panic.
    for query in ("SELECT sum(x) AS n FROM t", "SELECT count(*) AS n FROM t a JOIN t b ON a.x = b.x"):
        reader = table.to_reader()
        once = tfarrow.sql(query, t=reader)
        try:
            first = once.to_pylist()
            assert first in ([{"n": 6}], [{"n": 3}], [{"n": 0}])
            second = once.to_pylist()
        except Exception as error:
            assert isinstance(error, Exception) and "panic" not in str(error)
        else:
            assert second in ([{"n": None}], [{"n": 0}])


def test_second_passes_over_iterators_are_errors():
    def reader():
        return pa.table({"x": [1, 2, 3]}).to_reader()

    with pytest.raises(tfarrow.errors.UsageError, match="an iterator can be read once"):
        tfarrow.sql("SELECT count(*) AS n FROM t a JOIN t b ON a.x = b.x", t=reader()).to_pylist()
    result = tfarrow.sql("SELECT count(*) AS n FROM t", t=reader())
    assert result.to_pylist() == [{"n": 3}]
    with pytest.raises(tfarrow.errors.UsageError, match="table t is an iterator"):
        result.to_pylist()


def test_dictionaries_are_arrays_of_their_values():
    values = pa.array(["a", "b", None, "a"]).dictionary_encode()
    numbers = pa.array([7, 8, 7, 7], "int32").dictionary_encode()
    batch = next(tfarrow.sql("SELECT * FROM t", t=pa.table({"x": values, "n": numbers})).batches())
    assert batch["x"].tolist() == ["a", "b", None, "a"]
    assert batch["n"].dtype == "int32" and batch["n"].tolist() == [7, 8, 7, 7]
    assert batch.to_pylist()[2] == {"x": None, "n": 7}


def test_two_columns_of_one_name_are_an_error():
    batches = tfarrow.sql("SELECT a.x, b.x FROM t a JOIN t b ON a.x = b.x", t=pa.table({"x": [1]})).batches()
    with pytest.raises(tfarrow.errors.UsageError, match="two columns of the result have the name 'x'"):
        next(batches)
