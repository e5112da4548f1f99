"""Scans and batches with numpy alone."""

import gc
import pickle
import random
import sys
import warnings

import numpy as np
import pytest
import tfarrow
from support import TESTDATA, described, described_files, example, rows_of, same_rows, scan_all, write_records
from tfarrow import Batch, BytesColumn, Ragged
from tfarrow.errors import DataError, UsageError

SHARDS = TESTDATA / "shards"
SCALAR = TESTDATA / "scalar.tfrecord"
RAGGED = TESTDATA / "ragged.tfrecord"
SEQUENCE = TESTDATA / "sequence.tfrecord"

# TensorFlow's parsers disagree on these, and tfarrow keeps what the other parser keeps: docs/mapping.md.
DISPUTED = {"sequence_unknown_in_entry", "unknown_in_entry", "wrong_type_map_key", "wrong_type_map_value"}


def record_type(path):
    return "sequence-example" if path.name.startswith("sequence") else "example"


def joined(row):
    """The columns of features of several kinds as one, and columns of reserved names under the names of their features."""
    found = {}
    for name, value in row.items():
        feature = name.removeprefix("features/")
        for kind in ("/bytes_list", "/float_list", "/int64_list"):
            feature = feature.removesuffix(kind)
        if value is not None:
            assert found.get(feature) is None
        if found.get(feature) is None:
            found[feature] = value
    return found


@pytest.mark.parametrize("layout", ["auto", "list"])
@pytest.mark.parametrize("path, values", described_files(), ids=lambda path: str(path.relative_to(TESTDATA)))
def test_values_are_those_of_tensorflow(path, values, layout):
    if path.stem in DISPUTED:
        pytest.skip("TensorFlow's parsers disagree")
    scan = scan_all(path, layout=layout, on_conflict="split", record_type=record_type(path))
    rows = [joined(row) for batch in scan.batches() for row in rows_of(batch)]
    same_rows(rows, described(values))


@pytest.mark.parametrize("batch_size", [1, 3, 7, 50, 64, 200, 201, 10_000])
def test_batches_of_a_folder_are_tensorflows_values(batch_size):
    expected = [row for path in sorted(SHARDS.glob("*.json")) for row in described(path)]
    batches = list(scan_all(SHARDS).batches(batch_size))
    same_rows([row for batch in batches for row in rows_of(batch)], expected)
    sizes = [batch.num_rows for batch in batches]
    assert sizes == [min(batch_size, 200 - start) for start in range(0, 200, batch_size)]
    dropped = [batch.num_rows for batch in scan_all(SHARDS).batches(batch_size, drop_last=True)]
    assert dropped == [batch_size] * (200 // batch_size)


def test_numbers_of_threads_do_not_change_the_rows():
    one = [rows_of(batch) for batch in tfarrow.scan(SHARDS, threads=1).batches(33)]
    for threads in (2, 3, 16):
        assert [rows_of(batch) for batch in tfarrow.scan(SHARDS, threads=threads).batches(33)] == one


# ----------------------------------------------------------------------------------------------------------------- scans


def test_steps_are_applied_in_their_order():
    scan = tfarrow.scan(SCALAR)
    ids = [row["id"] for row in scan.to_pylist()]
    assert scan.columns == ["id", "payload", "score", "title"]
    assert scan.select("title", "id").columns == ["title", "id"]
    assert scan.where("id > 5000").limit(3).to_pylist() == scan.to_pylist()[6:9]
    assert [row["id"] for row in scan.limit(8).where("id > 5000").to_pylist()] == [number for number in ids[:8] if number > 5000]
    assert scan.where("id > 5000").where("score < 0").select("id").to_pylist() == [{"id": 6001}, {"id": 7002}]
    assert scan.limit(0).to_pylist() == []
    assert scan.limit(100).count() == 20
    assert tfarrow.scan(SCALAR, columns=["id"], where="score < 0").to_pylist() == [{"id": number} for number in ids[:8]]
    # A scan does not change.
    assert scan.columns == ["id", "payload", "score", "title"]
    assert scan.count() == 20


def test_count_is_the_number_of_rows():
    scan = tfarrow.scan(SHARDS)
    assert scan.count() == tfarrow.count(SHARDS) == 200
    assert scan.select("city").count() == 200
    assert scan.limit(150).limit(170).count() == 150
    assert scan.limit(np.int64(7)).count() == 7
    assert scan.where("label = 1").count() == sum(row["label"] == 1 for row in scan.to_pylist())
    assert scan.where("label = 1").limit(3).count() == 3


def test_count_of_skipped_records_is_the_number_of_rows():
    scan = tfarrow.scan(TESTDATA / "corrupt" / "data.tfrecord", on_error="skip")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scan.count() == 2


def test_scan_without_columns_has_rows():
    assert [batch.num_rows for batch in tfarrow.scan(SCALAR, columns=[]).batches(15)] == [15, 5]


@pytest.mark.parametrize("rows", [-1, "3", 2.5])
def test_limits_that_are_no_numbers_are_errors(rows):
    with pytest.raises((ValueError, TypeError)):
        tfarrow.scan(SCALAR).limit(rows)


def test_conditions_that_are_no_texts_are_errors():
    with pytest.raises(TypeError):
        tfarrow.scan(SCALAR).where(5)


@pytest.mark.parametrize("size", [0, -1])
def test_batch_sizes_are_numbers_from_1(size):
    with pytest.raises(ValueError, match="batch_size"):
        next(tfarrow.scan(SCALAR).batches(size))


def test_head_is_the_first_rows():
    rows = tfarrow.scan(SHARDS).to_pylist()
    assert tfarrow.head(SHARDS) == rows[:10]
    assert tfarrow.head(SHARDS, 3, columns=["city"]) == [{"city": row["city"]} for row in rows[:3]]
    assert tfarrow.head(TESTDATA / "empty.tfrecord") == []


def test_names_of_features_are_names_of_columns():
    scan = tfarrow.scan(TESTDATA / "names.tfrecord")
    assert {"", "Capital", "capital", "a.b", "a/b", 'Quote"d', "with space", "ünï"} <= set(scan.columns)
    for name in scan.columns:
        rows = scan.select(name).to_pylist()
        assert [list(row) for row in rows] == [[name]] * 3
        quoted = '"' + name.replace('"', '""') + '"'
        assert scan.where(f"{quoted} IS NOT NULL").count() == sum(row[name] is not None for row in rows)


def test_repr_is_the_call():
    scan = tfarrow.scan("a.tfrecord", layout="list").select("x", "y").where("x > 1").limit(3)
    assert repr(scan) == "tfarrow.scan('a.tfrecord', layout='list').select('x', 'y').where('x > 1').limit(3)"
    assert repr(tfarrow.scan(["a", "b"])).startswith("tfarrow.scan(['a', 'b']")


def test_pickled_scans_read_the_same_rows():
    scan = tfarrow.scan(SHARDS, layout="list").select("city", "label").where("label[1] > 1").limit(9)
    again = pickle.loads(pickle.dumps(scan))
    assert repr(again) == repr(scan)
    assert again.to_pylist() == scan.to_pylist()
    assert len(pickle.dumps(scan)) < 1000
    # Nothing is read to make, pickle or print one.
    pickle.loads(pickle.dumps(tfarrow.scan("no/such/file").select("x").where("x > 1")))


def test_pickled_results_run_the_same_query():
    result = tfarrow.sql(f"SELECT city, count(*) AS n FROM '{SHARDS}/' GROUP BY city ORDER BY city")
    assert pickle.loads(pickle.dumps(result)).to_pylist() == result.to_pylist()


@pytest.mark.parametrize("source", [str(SCALAR), SCALAR, [SCALAR], (str(SCALAR),), SCALAR.parent / "scal*.tfrecord"])
def test_sources_are_names_paths_and_lists(source):
    assert tfarrow.scan(source).count() == 20
    assert tfarrow.count(source) == 20


def test_rows_are_read_anew_each_time():
    scan = tfarrow.scan(SHARDS).select("label")
    first, second = iter(scan), iter(scan)
    assert next(first).to_pylist() == next(second).to_pylist()
    assert scan.to_pylist() == scan.to_pylist()


def test_iterators_can_be_left():
    for _ in range(50):
        next(tfarrow.scan(SHARDS).batches(1))
    gc.collect()


def test_metadata_columns_are_the_places_of_records():
    scan = tfarrow.scan(SHARDS, metadata_columns="all")
    assert sorted(scan.columns[-4:]) == ["_file", "_offset", "_raw", "_record"]
    rows = scan.to_pylist()
    files = sorted(map(str, SHARDS.glob("*.tfrecord")))
    assert [row["_file"] for row in rows] == [path for path in files for _ in range(50)]
    assert [row["_record"] for row in rows] == list(range(50)) * 4
    for path in files:
        own, data = [row for row in rows if row["_file"] == path], (SHARDS / path).read_bytes()
        for row in own:
            start = row["_offset"] + 12
            assert data[start : start + len(row["_raw"])] == row["_raw"]
    batch = next(tfarrow.scan(SHARDS, metadata_columns=["_record"]).batches(60))
    assert isinstance(batch["_record"], np.ndarray)
    assert batch["_record"].tolist() == [*range(50), *range(10)]


def test_features_of_several_kinds_have_a_column_of_each():
    scan = tfarrow.scan(TESTDATA / "mixed_kinds", on_conflict="split")
    assert scan.select("x/int64_list", "x/float_list").to_pylist() == [
        *({"x/int64_list": i, "x/float_list": None} for i in range(3)),
        *({"x/int64_list": None, "x/float_list": i + 0.5} for i in range(3)),
    ]


def test_truncated_files_can_be_read_to_their_last_record():
    path = TESTDATA / "corrupt" / "truncated.tfrecord"
    assert tfarrow.scan(path, partial_tail="ignore").select("i").to_pylist() == [{"i": 0}, {"i": 1}]
    assert tfarrow.count(path, partial_tail="ignore") == 2


# --------------------------------------------------------------------------------------------------------------- batches


def test_a_batch_is_a_mapping():
    batch = next(tfarrow.scan(SCALAR).batches(5))
    assert isinstance(batch, Batch)
    assert list(batch) == ["id", "payload", "score", "title"]
    assert len(batch) == 4
    assert batch.num_rows == 5
    assert "id" in batch and "nope" not in batch
    with pytest.raises(KeyError):
        batch["nope"]
    assert batch["id"] is batch["id"]
    assert repr(batch) == "Batch(5 rows: id, payload, score, title)"
    assert batch.to_pylist()[0] == {"id": -5, "payload": b"\xff\0\0", "score": -1.0, "title": "amber 0"}


def test_forms_of_columns():
    batch = next(scan_all(SHARDS).batches(64))
    assert batch["label"].dtype == np.int64 and batch["label"].shape == (64,)
    assert batch["price"].dtype == np.float32 and batch["price"].shape == (64,)
    assert batch["embedding"].dtype == np.float32 and batch["embedding"].shape == (64, 8)
    images, cities, tags = batch["image/encoded"], batch["city"], batch["tags"]
    assert isinstance(images, BytesColumn) and not images.is_text and images.valid is None and len(images) == 64
    assert isinstance(images[0], memoryview) and bytes(images[0][1:4]) == b"PNG"
    assert isinstance(cities, BytesColumn) and cities.is_text and isinstance(cities[0], str)
    assert cities[-1] == cities[63] and cities[2:4] == [cities[2], cities[3]]
    with pytest.raises(IndexError):
        cities[64]
    assert isinstance(tags, Ragged) and isinstance(tags.values, BytesColumn) and len(tags) == 64
    assert tags.offsets.dtype == np.int64 and tags.offsets[-1] == len(tags.values)


def test_layout_list_has_lists_of_all():
    batch = next(scan_all(SHARDS, layout="list").batches(64))
    assert batch["label"].shape == (64, 1)
    assert batch["embedding"].shape == (64, 8)
    assert isinstance(batch["city"], Ragged) and not batch["city"].values.is_text
    assert batch.to_pylist()[0]["label"] == [batch["label"][0, 0]]


def test_ragged_and_missing_numbers():
    rows = described(TESTDATA / "ragged.json")
    whole = scan_all(RAGGED).to_numpy()
    for name in ("floats", "ints"):
        column = whole[name] if name in whole else None
        if column is None:
            continue
        assert isinstance(column, Ragged) and isinstance(column.values, np.ndarray)
        assert column.lengths.tolist() == [len(row.get(name) or ()) for row in rows]
    states = scan_all(TESTDATA / "states.tfrecord").to_numpy()
    expected = [row.get("i") for row in described(TESTDATA / "states.json")]
    assert states["i"].tolist() == expected
    assert states["i"].valid.tolist() == [value is not None for value in expected]


def test_single_values_that_some_records_lack_are_ragged(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1], y=[1.5]), example(y=[2.5]), example(x=[3], y=[3.5])])
    batch = next(tfarrow.scan(path).batches())
    assert isinstance(batch["x"], Ragged)
    assert batch["x"].tolist() == [[1], None, [3]]
    assert batch["x"].valid.tolist() == [True, False, True]
    assert batch["y"].tolist() == [1.5, 2.5, 3.5]
    assert batch.to_pylist()[1] == {"x": None, "y": 2.5}
    # Also where all rows of a batch have one.
    assert all(isinstance(batch["x"], Ragged) for batch in tfarrow.scan(path).batches(1))
    filled = next(tfarrow.scan(path).batches(fill=-1))
    assert filled["x"].tolist() == [1, -1, 3]
    assert next(tfarrow.scan(path).batches(fill={"x": 7}))["x"].tolist() == [1, 7, 3]
    assert isinstance(next(tfarrow.scan(path).batches(fill={"y": 7}))["x"], Ragged)


def test_fill_makes_arrays_of_ragged_numbers(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1, 2]), example(), example(x=[3, 4, 5])])
    filled = tfarrow.scan(path).to_numpy(fill=-1)["x"]
    assert filled.tolist() == [[1, 2, -1], [-1, -1, -1], [3, 4, 5]]
    ragged = tfarrow.scan(path).to_numpy()["x"]
    assert ragged.dense(0).tolist() == [[1, 2, 0], [0, 0, 0], [3, 4, 5]]
    assert ragged.dense(0, width=2).tolist() == [[1, 2], [0, 0], [3, 4]]
    assert ragged.dense(0, width=5).shape == (3, 5)
    with pytest.raises(TypeError):
        tfarrow.scan(SHARDS).to_numpy()["tags"].dense(0)


@pytest.mark.parametrize("fill", [0.5, float("nan"), "x", [1, 2]])
def test_values_to_fill_in_are_not_rounded(tmp_path, fill):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1]), example(), example(x=[2, 3])])
    with pytest.raises((ValueError, TypeError)):
        tfarrow.scan(path).to_numpy(fill=fill)


def test_floats_can_be_filled_with_nan(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1.5]), example()])
    filled = tfarrow.scan(path).to_numpy(fill=float("nan"))["x"]
    assert filled.dtype == np.float32 and filled[0] == 1.5 and np.isnan(filled[1])


def test_rows_that_do_not_fit_the_sampled_form_are_errors(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1, 2])] * 5 + [example(x=[1])])
    scan = tfarrow.scan(path, sample=5)
    batches = scan.batches(4)
    assert next(batches)["x"].shape == (4, 2)
    with pytest.raises(DataError, match="row 1 of the batch has 1 values; all sampled records have 2") as found:
        next(batches)["x"]
    assert found.value.feature == "x"
    # The work that was asked for is done, and nothing is lost.
    assert list(scan.batches(4, fill=0))[1]["x"].tolist() == [[1, 2], [1, 0]]
    assert tfarrow.scan(path, sample="all").to_numpy()["x"].tolist() == [[1, 2]] * 5 + [[1]]


def test_rows_that_are_longer_than_sampled_are_errors_also_with_fill(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1, 2])] * 3 + [example(x=[1]), example(x=[1, 2, 3])])
    with pytest.raises(DataError, match="row 4 of the batch has 3 values"):
        tfarrow.scan(path, sample=3).to_numpy(fill=0)
    with pytest.raises(DataError):
        tfarrow.scan(path, sample=3).to_numpy()


def test_missing_rows_that_were_not_sampled_are_errors(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1.5], y=[1, 2])] * 3 + [example()])
    for name in ("x", "y"):
        with pytest.raises(DataError):
            tfarrow.scan(path, sample=3).select(name).to_numpy()[name]
    filled = tfarrow.scan(path, sample=3).to_numpy(fill=0)
    assert filled["x"].tolist() == [1.5] * 3 + [0]
    assert filled["y"].tolist() == [[1, 2]] * 3 + [[0, 0]]


def test_single_values_that_become_lists_are_errors(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1])] * 3 + [example(x=[1, 2])])
    with pytest.raises(DataError) as found:
        tfarrow.scan(path, sample=3).to_numpy()
    assert (found.value.record, found.value.feature, found.value.file) == (3, "x", str(path))


def test_feature_lists_are_ragged_lists_of_ragged_lists():
    batch = next(scan_all(SEQUENCE).batches())
    frame, token, rates = batch["frame"], batch["token"], batch["rates"]
    assert isinstance(frame, Ragged) and isinstance(frame.values, Ragged) and isinstance(frame.values.values, np.ndarray)
    assert isinstance(token.values.values, BytesColumn) and token.values.values.is_text
    expected = described(TESTDATA / "sequence.json")
    assert frame.lengths.tolist() == [len(row.get("frame") or ()) for row in expected]
    assert [None if row is None else len(row) for row in token] == [None if "token" not in row else len(row["token"]) for row in expected]
    assert isinstance(rates, Ragged)
    # Plain values of Python all the way down.
    rows = batch.to_pylist()
    assert rows[0]["frame"] == [[1.0, 2.0, 3.0], [4.0], []]
    assert rows[0]["token"] == [["a"], ["b", "c"]]
    assert frame.tolist()[0] == rows[0]["frame"]
    assert repr(rows) == repr(eval(repr(rows)))
    assert "array" not in repr(tfarrow.head(SEQUENCE))


def test_raw_records_are_byte_strings():
    scan = tfarrow.scan(TESTDATA / "raw.tfrecord")
    assert scan.columns == ["record"]
    column = scan.to_numpy()["record"]
    assert isinstance(column, BytesColumn)
    assert column.tolist() == [f"line {i}: plain text, no proto".encode() for i in range(5)]
    raw = tfarrow.scan(SCALAR, record_type="raw").to_pylist()
    assert [row["record"] for row in raw] == [row["_raw"] for row in tfarrow.scan(SCALAR, metadata_columns="all").to_pylist()]


def test_empty_files_have_no_rows():
    scan = tfarrow.scan(TESTDATA / "empty.tfrecord")
    assert list(scan.batches()) == []
    assert scan.count() == 0
    assert all(len(column) == 0 for column in scan.to_numpy().values())


def test_empty_selections_have_their_columns():
    whole = tfarrow.scan(SHARDS).where("label > 100").to_numpy()
    assert set(whole) == set(tfarrow.scan(SHARDS).columns)
    assert whole["label"].shape == (0,)
    assert whole["embedding"].shape == (0, 8)
    assert len(whole["city"]) == len(whole["tags"]) == 0


# ---------------------------------------------------------------------------------------------------------------- memory


def arrays(column):
    if isinstance(column, np.ndarray):
        return [column]
    if isinstance(column, Ragged):
        return [column.offsets, *arrays(column.values)]
    return [column.offsets]


def test_memory_of_numbers_is_writable_and_not_copied():
    batch = next(scan_all(SHARDS).batches(64))
    for name in ("label", "price", "embedding", "image/height"):
        array = batch[name]
        assert array.flags.writeable and not array.flags.owndata and array.flags.c_contiguous and array.flags.aligned
        before = array.copy()
        array[:] = 0
        assert (batch[name] == 0).all()
        array[:] = before
        array += 1
        assert (array == before + 1).all()


@pytest.mark.parametrize("path", [SHARDS, SCALAR, RAGGED, SEQUENCE, TESTDATA / "states.tfrecord"])
@pytest.mark.parametrize("layout", ["auto", "list"])
def test_writing_to_batches_does_not_change_others(path, layout):
    expected = [rows_of(batch) for batch in scan_all(path, layout=layout).batches(3)]
    batches = list(scan_all(path, layout=layout).batches(3))
    for batch, rows in zip(batches, expected):
        assert rows_of(batch) == rows
        for name in batch:
            for array in arrays(batch[name]):
                if array.flags.writeable and array.dtype != np.int64:
                    array[...] = 99
    assert [rows_of(batch) for batch in scan_all(path, layout=layout).batches(3)] == expected


def test_memory_lives_as_long_as_an_array():
    array = next(scan_all(SHARDS).batches(64))["embedding"]
    expected = array.copy()
    gc.collect()
    for _ in range(20):
        scan_all(SHARDS).to_numpy()
    assert (array == expected).all()
    image = next(scan_all(SHARDS).batches(64))["image/encoded"][3]
    gc.collect()
    assert bytes(image[1:4]) == b"PNG"


def test_bytes_are_read_only():
    image = next(scan_all(SHARDS).batches(64))["image/encoded"][0]
    with pytest.raises(TypeError):
        image[0] = 1


def test_a_batch_is_read_as_arrays_or_as_arrow():
    batch = next(scan_all(SHARDS).batches(64))
    batch["label"][0] = 5
    with pytest.raises(ValueError, match="was read as numpy arrays"):
        batch.__arrow_c_array__()
    other = next(scan_all(SHARDS).batches(64))
    other.__arrow_c_array__()
    assert not other["label"].flags.writeable
    assert not other["embedding"].flags.writeable
    with pytest.raises(ValueError):
        other["embedding"][0] = 1


def test_results_of_queries_are_read_only():
    # Several columns of a result may have the same memory.
    query = f"SELECT label, label AS again, embedding FROM '{SHARDS}/'"
    whole = tfarrow.sql(query).to_numpy()
    assert not whole["label"].flags.writeable and not whole["again"].flags.writeable
    assert whole["label"].shape == (200,) and whole["embedding"].shape == (200, 8)


def test_texts_and_bytes_are_arrays_of_objects(tmp_path):
    # Texts of which a tenth have a control character are bytes.
    values = {"t": ["x\0", "yy", ""] + ["z"] * 20, "b": [b"\xff\x00", b"\xfe\x01", b"\xfd"] + [b"\xfc"] * 20}
    write_records(tmp_path / "x.tfrecord", [example(t=[t], b=[b]) for t, b in zip(*values.values())])
    whole = tfarrow.scan(tmp_path / "x.tfrecord").to_numpy()
    for name, expected in values.items():
        found = np.asarray(whole[name])
        assert (found.dtype, found.shape, found.tolist()) == (object, (23,), expected)
        assert np.array(whole[name])[1] == expected[1]
    assert np.asarray(whole["t"], dtype="U2").tolist()[:3] == ["x", "yy", ""]
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(whole["t"], copy=False)
    missing = np.asarray(tfarrow.sql("SELECT * FROM (VALUES ('a'), (NULL))").to_numpy()["column1"])
    assert missing.tolist() == ["a", None]


def test_ragged_columns_and_structs_are_arrays_of_objects():
    ragged = tfarrow.scan(RAGGED).to_numpy()["ints"]
    found = np.asarray(ragged)
    assert found.dtype == object and found.shape == (30,) and found[0] is None and found[1].tolist() == ragged[1].tolist()
    # Also where all rows have one length.
    assert np.asarray(Ragged(np.arange(4), np.array([0, 2, 4]))).shape == (2,)
    structs = tfarrow.sql("SELECT named_struct('a', 1, 'b', 'x') AS s").to_numpy()["s"]
    assert np.asarray(structs).tolist() == [{"a": 1, "b": "x"}]


def test_columns_pickle():
    batch = next(scan_all(SHARDS).batches(5)).to_numpy()
    again = pickle.loads(pickle.dumps(batch))
    for name, column in batch.items():
        assert type(again[name]) is type(column)
        assert again[name].tolist() == column.tolist()


# ------------------------------------------------------------------------------------------------------------------- sql


def test_sql_has_types_of_numpy():
    query = """SELECT CAST(1 AS TINYINT) AS a, CAST(2 AS INT UNSIGNED) AS b, CAST(1.5 AS DOUBLE) AS c, true AS d, NULL::BIGINT AS e,
               'x' AS f, make_array(1, 2) AS g, x'00ff' AS h, CAST(1.5 AS REAL) AS i"""
    row = tfarrow.sql(query).to_pylist()[0]
    assert row == {"a": 1, "b": 2, "c": 1.5, "d": True, "e": None, "f": "x", "g": [1, 2], "h": b"\0\xff", "i": 1.5}
    whole = tfarrow.sql(query).to_numpy()
    assert [str(whole[name].dtype) for name in "abcdi"] == ["int8", "uint32", "float64", "bool", "float32"]
    assert whole["g"].shape == (1, 2)
    assert isinstance(whole["e"], Ragged)


def test_sql_reads_scans_and_results_as_tables():
    scan = tfarrow.scan(SHARDS)
    counts = tfarrow.sql("SELECT city, count(*) AS n FROM s GROUP BY city", s=scan)
    assert sum(row["n"] for row in counts.to_pylist()) == 200
    joined_rows = tfarrow.sql("SELECT s.city, n FROM s JOIN c USING (city)", s=scan, c=counts).to_pylist()
    assert len(joined_rows) == 200
    assert len(tfarrow.sql("SELECT 1 FROM s a JOIN s b ON a.city = b.city AND a.label = 1 AND b.label = 1", s=scan).to_pylist()) > 0
    with pytest.raises(TypeError, match="table s"):
        tfarrow.sql("SELECT * FROM s", s=5)


def test_last_of_several_statements_has_the_rows():
    assert tfarrow.sql("CREATE TABLE a AS SELECT 1 AS x; SELECT x + 1 AS y FROM a").to_pylist() == [{"y": 2}]


def test_statements_that_write_run_at_once_and_once(tmp_path):
    path = tmp_path / "c.tfrecord"
    result = tfarrow.sql(f"COPY (SELECT 1 AS a UNION ALL SELECT 2) TO '{path}'")
    assert tfarrow.count(path) == 2
    path.unlink()
    for _ in range(2):
        assert result.to_pylist() == [{"count": 2}]
        assert "count" in result._repr_html_() and [batch.num_rows for batch in result.batches()] == [1]
    assert not path.exists()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(result)
    # The rows of the last statement, also if an earlier one writes.
    both = tfarrow.sql(f"COPY (SELECT 1 AS a) TO '{path}'; SELECT * FROM '{path}'")
    path.unlink()
    assert both.to_pylist() == [{"a": 1}] == both.to_pylist()


def test_insert_runs_once(tmp_path):
    create = f"CREATE EXTERNAL TABLE t (a BIGINT) STORED AS TFRECORD LOCATION '{tmp_path}/rows/'"
    for rows in (1, 2):
        result = tfarrow.sql(f"{create}; INSERT INTO t VALUES (5)")
        assert result.to_pylist() == result.to_pylist() == [{"count": 1}]
        assert tfarrow.count(tmp_path / "rows") == rows
    assert tfarrow.sql(f"{create}; EXPLAIN ANALYZE INSERT INTO t VALUES (7)").to_pylist()
    assert tfarrow.count(tmp_path / "rows") == 3


def test_statements_without_rows_run_at_once():
    with pytest.raises(tfarrow.errors.TfarrowError):
        tfarrow.sql("CREATE TABLE a AS SELECT * FROM 'no/such/file'")
    assert tfarrow.sql("CREATE TABLE a AS SELECT 1 AS x").to_pylist() == []
    assert tfarrow.sql("SET tfarrow.layout = 'list'").to_pylist() == []


@pytest.mark.parametrize("query", ["SELECT 1 / 0", "EXPLAIN COPY (SELECT 1) TO 'x.tfrecord'", "SHOW TABLES", "DESCRIBE t", "SUMMARIZE t", "COPY COPY", "CREATE VIEW v AS SELECT 1; FROM v"])
def test_other_statements_run_when_they_are_read(query, monkeypatch):
    monkeypatch.setattr(tfarrow.Result, "run", None)
    tfarrow.sql(query)


def test_memory_limit_spills_or_fails_with_an_error():
    query = "SELECT count(*) AS n FROM (SELECT value, count(*) FROM generate_series(1, 300000) GROUP BY value)"
    assert tfarrow.sql(query, memory_limit=200_000_000).to_pylist() == [{"n": 300_000}]
    with pytest.raises(tfarrow.errors.TfarrowError):
        tfarrow.sql(query, memory_limit=1000).to_pylist()


def test_random_steps_are_those_of_lists():
    generator = random.Random(7)
    rows = tfarrow.scan(SHARDS).select("label", "price", "image/height").to_pylist()
    for _ in range(40):
        scan, expected = tfarrow.scan(SHARDS).select("label", "price", "image/height"), rows
        for _ in range(generator.randrange(1, 5)):
            match generator.randrange(3):
                case 0:
                    limit = generator.randrange(0, 150)
                    scan, expected = scan.limit(limit), expected[:limit]
                case 1:
                    value = generator.randrange(4)
                    scan, expected = scan.where(f"label <> {value}"), [row for row in expected if row["label"] != value]
                case 2:
                    value = generator.uniform(0, 80)
                    scan, expected = scan.where(f"price < {value}"), [row for row in expected if row["price"] < value]
        size = generator.choice([None, 1, 7, 64])
        assert [row for batch in scan.batches(size) for row in batch.to_pylist()] == expected
        assert scan.count() == len(expected)


# ------------------------------------------------------------------------------------------------------------------ rest


def test_other_packages_are_not_imported():
    import subprocess

    code = f"""
import sys, tfarrow
tfarrow.count({str(SCALAR)!r}); tfarrow.scan({str(SCALAR)!r}).to_numpy(); tfarrow.head({str(SCALAR)!r}); repr(tfarrow.schema({str(SCALAR)!r}))
print([name for name in ("pyarrow", "polars", "pandas", "torch", "duckdb", "tqdm") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize(
    "module, call",
    [
        ("pyarrow", lambda scan: scan.to_arrow()),
        ("pyarrow", lambda scan: scan.schema),
        ("polars", lambda scan: scan.to_polars()),
        ("polars", lambda scan: scan.lazy()),
        ("pandas", lambda scan: scan.to_pandas()),
        ("torch", lambda scan: scan.to_torch()),
        ("torch", lambda scan: tfarrow.torch),
    ],
)
def test_missing_packages_are_named_with_their_extra(monkeypatch, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "tfarrow.torch", raising=False)
    with pytest.raises(ImportError, match=rf"tfarrow\[{module}\]"):
        call(tfarrow.scan(SCALAR))


def test_calls_do_not_print(capfd):
    tfarrow.count(SHARDS)
    tfarrow.stats(SHARDS)
    tfarrow.verify(SHARDS)
    tfarrow.scan(SHARDS).to_numpy()
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        tfarrow.scan(TESTDATA / "corrupt" / "data.tfrecord", on_error="skip").to_numpy()
    assert capfd.readouterr() == ("", "")


def test_unknown_option_values_are_errors_at_once():
    with pytest.raises(UsageError, match="layout"):
        tfarrow.scan("no/such/file", layout="no")


def test_everything_public_has_a_docstring():
    for name in tfarrow.__all__:
        value = getattr(tfarrow, name)
        assert isinstance(value, str) or value.__doc__, name
    assert set(tfarrow.__all__) <= set(dir(tfarrow))
    with pytest.raises(AttributeError):
        tfarrow.nope


def test_examples_of_a_list_are_structs(tmp_path):
    queries = str(TESTDATA / "example_list" / "queries.tfrecord")
    first = {
        "query": "rust arrow",
        "tokens": [17, 4],
        "examples": [
            {"relevance": [2], "scores": [0.5, -0.25], "title": "Arrow in Rust"},
            {"relevance": [0], "scores": [0.125], "title": "Bows"},
        ],
    }
    rows = tfarrow.head(queries, 5)
    assert rows[0] == first
    assert [len(row["examples"]) for row in rows] == [2, 0, 2, 0, 3]
    assert rows[2]["examples"][0] == {"relevance": None, "scores": None, "title": None}
    examples = next(tfarrow.scan(queries).batches(5))["examples"]
    assert examples.offsets.tolist() == [0, 2, 2, 4, 4, 7]
    assert examples.values["title"][1] == "Bows"
    assert [example["relevance"].tolist() for example in examples[0]] == [[2], [0]]
    assert pickle.loads(pickle.dumps(examples.values)).tolist() == examples.values.tolist()
    copy = str(tmp_path / "copy.tfrecord")
    tfarrow.write(tfarrow.scan(queries), copy)
    assert tfarrow.count(copy) == 5
    # Numbers of which some rows have none, maps and missing structs of a query.
    query = "SELECT named_struct('a', CASE WHEN value = 1 THEN 7 END, 'b', value) AS s FROM range(2)"
    assert tfarrow.sql(query).to_pylist() == [{"s": {"a": None, "b": 0}}, {"s": {"a": 7, "b": 1}}]
    assert tfarrow.sql("SELECT MAP {'x': 1, 'y': 2} AS m").to_pylist() == [
        {"m": [{"key": "x", "value": 1}, {"key": "y", "value": 2}]}
    ]


def test_messages_are_read_by_their_descriptors():
    folder = TESTDATA / "message"
    scan = tfarrow.scan(folder / "shapes.tfrecord", proto=folder / "shapes.desc", message="tfarrow.test.Shape")
    rows = scan.select("name", "points", "counts").to_pylist()
    assert rows[0]["name"] == "círculo"
    assert rows[0]["points"] == [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 2.0}]
    assert {entry["keys"]: entry["values"] for entry in rows[0]["counts"]} == {"": 0, "a": 1}
    assert pickle.loads(pickle.dumps(scan)).select("name").to_pylist() == [{"name": row["name"]} for row in rows]
    events = tfarrow.scan(TESTDATA / "events" / "logs", message="tensorflow.Event").select("step", "wall_time")
    assert len(events.to_pylist()) == 11
    with pytest.raises(UsageError, match="Shape"):
        tfarrow.scan(folder / "shapes.tfrecord", proto=folder / "shapes.desc", message="Shap").to_pylist()


def test_messages_are_converted_by_their_descriptors(tmp_path):
    folder, message = TESTDATA / "message", {"proto": TESTDATA / "message" / "shapes.desc", "message": "tfarrow.test.Shape"}
    tfarrow.convert(folder / "shapes.tfrecord", tmp_path / "shapes.parquet", **message)
    tfarrow.convert(tmp_path / "shapes.parquet", tmp_path / "back.tfrecord")
    # Timestamps have no form in numpy.
    columns = ["name", "points", "radius", "far"]
    rows = [tfarrow.scan(file, columns=columns, **message).to_pylist() for file in (folder / "shapes.tfrecord", tmp_path / "back.tfrecord")]
    assert rows[0] == rows[1] and len(rows[0]) == 3
    plan = tfarrow.convert(folder / "shapes.tfrecord", tmp_path / "new.parquet", dry_run=True, **message)
    assert "points" in [column["name"] for column in plan["columns"]]
    with pytest.raises(UsageError, match="proto needs message"):
        tfarrow.convert(folder / "shapes.tfrecord", tmp_path / "new.parquet", proto=message["proto"])
    with pytest.raises(UsageError, match="omit one"):
        tfarrow.convert(folder / "shapes.tfrecord", tmp_path / "new.parquet", schema=tmp_path / "shapes.parquet", **message)
