"""What `write` accepts, and which values the records have."""

import json
import warnings

import numpy as np
import pytest
import tfarrow
from support import TESTDATA, program, program_json
from tfarrow.errors import DataError, TfarrowWarning, UsageError

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def target(tmp_path):
    return tmp_path / "x.tfrecord"


def written(data, target, **options):
    """The rows that are read after writing."""
    tfarrow.write(data, target, overwrite=True, **options)
    return tfarrow.scan(target, sample="all").to_pylist()


# --------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["a.parquet", "a.PARQUET", "a.arrow", "a.feather", "a.csv", "a.csv.gz", "a.json", "a.jsonl", "a.npz", "a.npy"])
def test_names_of_other_formats_are_errors(name, tmp_path):
    with pytest.raises(UsageError, match=r"write makes TFRecord files.* writes it$"):
        tfarrow.write({"x": [1]}, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecords", "a.tfr", "a", "a.dat", "a.tfrecord.gz", "a.parquet.tfrecord"])
def test_other_names_are_those_of_records(name, tmp_path):
    assert tfarrow.write({"x": [1]}, tmp_path / name) == 1
    assert tfarrow.count(tmp_path / name) == 1


def test_the_statement_of_the_error_writes_the_format(tmp_path):
    data = pa.table({"x": [1, 2]})
    with pytest.raises(UsageError) as caught:
        tfarrow.write(data, tmp_path / "a.parquet")
    statement = str(caught.value).split("another format: ")[1].removesuffix(" writes it")
    eval(statement, {"tfarrow": tfarrow, "data": data})
    assert (tmp_path / "a.parquet").read_bytes()[:4] == b"PAR1"


# --------------------------------------------------------------------------------------------------------- pandas


def test_nan_of_pandas_is_warned_of(target):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"f": np.array([1, np.nan, 2], "float32"), "i": [1, 2, 3], "t": ["a", None, "c"]})
    for data in (frame, {"f": frame["f"], "i": frame["i"]}):
        with pytest.warns(TfarrowWarning, match=r"^column 'f': 1 NaN is a missing value in the records"):
            rows = written(data, target)
        assert [row["f"] for row in rows] == [1.0, None, 2.0]
    # What the warning says.
    found = [row["f"] for row in written({name: frame[name].to_numpy() for name in ("f", "i")}, target)]
    assert found[0] == 1 and np.isnan(found[1])
    assert [row["f"] for row in written(frame.astype({"f": "Float32"}), target)] == [1.0, None, 2.0]


def test_nan_beside_missing_values_is_warned_of():
    pytest.importorskip("pandas")
    mixed = tfarrow.sql("SELECT column1 AS x FROM (VALUES (1.5::float), ('NaN'::float), (NULL))")
    with pytest.warns(TfarrowWarning, match="^column 'x': missing values and NaN are both NaN in pandas"):
        mixed.to_pandas()
    for values in ("(1.5), (NULL)", "(1.5), ('NaN'::float)"):
        tfarrow.sql(f"SELECT column1 AS x FROM (VALUES {values})").to_pandas()


# --------------------------------------------------------------------------------------------------- all features


@pytest.fixture
def rare(tmp_path):
    """A file with a feature that the first 1,000 records do not have."""
    path = tmp_path / "rare.tfrecord"
    tfarrow.write(pa.table({"id": range(5000), "rare": [None] * 4000 + [7] * 1000}), path)
    return path


def test_features_beyond_the_sample_are_written_or_refused(rare, target, tmp_path):
    with pytest.raises(DataError, match='"rare".*sample="all"'):
        tfarrow.write(tfarrow.scan(rare), target)
    assert sorted(tmp_path.iterdir()) == [rare]
    assert tfarrow.write(tfarrow.scan(rare, sample="all"), target) == 5000
    assert tfarrow.diff(rare, target).ok


def test_features_that_are_not_selected_are_left_out(rare, target):
    with pytest.warns(TfarrowWarning, match='1 feature has no column: "rare"'):
        assert tfarrow.write(tfarrow.scan(rare).select("id"), target) == 5000
    assert tfarrow.schema(target).to_arrow().names == ["id"]


# ---------------------------------------------------------------------------------------------------------- floats


def test_floats_are_rounded_with_a_warning(target):
    data = {"x": [0.1, 0.5, 1 / 3], "y": [[0.25], [1e-320], []]}
    with pytest.warns(TfarrowWarning, match=r'column "x": float64 rounded to float32 \(2 values\).*column "y": .*\(1 value\)'):
        rows = written(data, target)
    assert [row["x"] for row in rows] == [float(np.float32(x)) for x in data["x"]]
    # As CSV files are converted.
    (target.parent / "x.csv").write_text("x\n0.1\n0.5\n0.3333333333333333\n")
    with pytest.warns(TfarrowWarning, match=r'column "x": float64 rounded to float32 \(2 values\)'):
        tfarrow.convert(target.parent / "x.csv", target.parent / "csv.tfrecord")
    assert [row["x"] for row in tfarrow.head(target.parent / "csv.tfrecord")] == [row["x"] for row in rows]


def test_exact_floats_are_written_silently(target):
    assert written({"x": [0.5, float("inf"), -0.0]}, target) == [{"x": 0.5}, {"x": float("inf")}, {"x": -0.0}]


def test_strict_refuses_floats_that_are_rounded(target):
    with pytest.raises(DataError, match="lossy=True"):
        tfarrow.write({"x": [0.1]}, target, strict=True)
    assert not target.exists()
    assert tfarrow.write({"x": [0.5]}, target, strict=True) == 1
    with pytest.raises(UsageError, match="strict"):
        tfarrow.write({"x": [0.5]}, target, strict=True, lossy=True)


def test_integers_wrap_with_lossy_only(target):
    data = {"x": np.array([2**63 + 1], "uint64"), "f": [0.1]}
    with pytest.raises(DataError, match="lossy=True"):
        tfarrow.write(data, target)
    with pytest.warns(TfarrowWarning, match='column "x"'):
        assert written(data, target, lossy=True)[0]["x"] == -(2**63) + 1


# ----------------------------------------------------------------------------------------------------------- forms


def test_rows_as_dicts(target):
    rows = tfarrow.head(TESTDATA / "shards", 50)
    for data in (rows, iter(rows), tuple(rows)):
        assert [{**row, "price": np.float32(row["price"])} for row in written(data, target)] == rows
    # A row may have other keys than the first, and fewer.
    assert written([{"a": 1}, {"b": "x", "a": None}, {}], target) == [{"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": None, "b": None}]


def test_rows_that_are_none_are_errors(target):
    for data, error in (([], ValueError), ([1], TypeError), (5, TypeError), ("text", TypeError), ([{"a": 1}, 5], TypeError)):
        with pytest.raises(error):
            tfarrow.write(data, target)
    assert not target.exists()


def test_arrays_of_more_dimensions_are_lists_of_their_values(target):
    images = np.arange(24, dtype="int64").reshape(2, 3, 2, 2)
    assert [row["x"] for row in written({"x": images}, target)] == images.reshape(2, 12).tolist()
    assert [row["x"] for row in written([{"x": image} for image in images], target)] == images.reshape(2, 12).tolist()
    assert [row["x"] for row in written({"x": images}, target, record_type="sequence-example")] == images.reshape(2, 3, 4).tolist()
    assert [row["x"] for row in written({"x": np.zeros((2, 0, 3)), "y": [1, 2]}, target)] in ([[], []], [None, None])
    assert [row["x"] for row in written({"x": np.float32([[1], [2]])}, target)] in ([1.0, 2.0], [[1.0], [2.0]])


def test_tensors_are_arrays(target):
    torch = pytest.importorskip("torch")
    tensor = torch.arange(12).reshape(2, 2, 3)
    assert [row["x"] for row in written({"x": tensor}, target)] == tensor.reshape(2, 6).tolist()


@pytest.mark.parametrize("name", ["shards", "ragged.tfrecord", "scalar.tfrecord", "text.tfrecord", "example_list/queries.tfrecord"])
def test_columns_of_batches_are_written_back(name, target):
    scan = tfarrow.scan(TESTDATA / name, sample="all")
    tfarrow.write(scan.to_numpy(), target, record_type="example-list" if "list" in name else None)
    assert tfarrow.scan(target, sample="all").to_pylist() == scan.to_pylist()


def test_lazy_frames_and_data_sets(target, tmp_path):
    data = pa.table({"x": [1, 2, 3], "t": ["a", "b", "c"]})
    pl = pytest.importorskip("polars")
    ds = pytest.importorskip("pyarrow.dataset")
    pytest.importorskip("pyarrow.parquet").write_table(data, tmp_path / "x.parquet")
    files = ds.dataset(tmp_path / "x.parquet")
    for rows in (pl.DataFrame(data).lazy(), files, files.scanner(), data.to_reader(), data.to_batches(), data.to_batches()[0]):
        assert written(rows, target) == data.to_pylist()
    assert tfarrow.sql("SELECT sum(x) AS n FROM l JOIN f USING (x)", l=pl.DataFrame(data).lazy(), f=files).to_pylist() == [{"n": 6}]


def test_data_sets_of_hugging_face(target):
    datasets = pytest.importorskip("datasets")
    rows = [{"x": row, "t": f"row {row}", "l": [row] * 2} for row in range(2500)]
    data = datasets.Dataset.from_list(rows)
    for found in (data, data.to_iterable_dataset(), data.with_format("numpy")):
        assert written(found, target) == rows
    # The rows of a selection, in its order.
    assert [row["x"] for row in written(data.select([7, 3, 5]), target)] == [7, 3, 5]


def test_the_error_names_what_was_found(target):
    with pytest.raises(TypeError, match="cannot write items of type list"):
        tfarrow.write([[1, 2]], target)


# ------------------------------------------------------------------------------------------------- files of others


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow", "x.csv", "x.json"])
def test_files_of_other_formats_are_read(name, tmp_path):
    rows = [{"x": row, "t": f"row {row}"} for row in range(30)]
    tfarrow.sql(f"COPY r TO '{tmp_path / name}'", r=pa.Table.from_pylist(rows))
    scan = tfarrow.scan(tmp_path / name)
    assert tfarrow.head(tmp_path / name, 2) == rows[:2]
    assert scan.to_pylist() == rows and scan.count() == 30 and scan.columns == ["x", "t"]
    assert scan.where("x > 27").select("t").to_pylist() == [{"t": "row 28"}, {"t": "row 29"}]
    with pytest.raises(tfarrow.errors.UsageError, match="only the records of TFRecord files"):
        tfarrow.Dataset(scan)
    assert not next(scan.batches())["x"].flags.writeable
    # As the program shows them.
    assert [{"x": row["x"], "t": row["t"]} for row in _printed(tmp_path / name)] == rows[:10]


def _printed(path):
    return [json.loads(line) for line in program("head", path)[1].splitlines()]


# -------------------------------------------------------------------------------------------------- event files

LOGS = TESTDATA / "events" / "logs"


def test_event_files_are_rows_of_events():
    scan = tfarrow.scan(LOGS)
    assert scan.to_pylist() == tfarrow.scan(LOGS, message="tensorflow.Event").to_pylist()
    assert scan.count() == len(scan.to_pylist()) == tfarrow.count(LOGS)
    assert pa.schema(scan) == scan.schema
    # The program leaves out what an event does not have.
    def without_nulls(value):
        if isinstance(value, dict):
            return {name: without_nulls(item) for name, item in value.items() if item is not None}
        return [without_nulls(item) for item in value] if isinstance(value, list) else value

    for ours, theirs in zip(tfarrow.head(LOGS, 3), _printed(LOGS)):
        assert without_nulls(ours)["wall_time"] == theirs["wall_time"]
        assert without_nulls(ours).keys() == theirs.keys()
    assert tfarrow.head(LOGS, 1, record_type="raw")[0].keys() == {"record"}


def test_converted_event_files_are_rows_of_events_and_in_sql_a_table_of_values(tmp_path):
    for to in ["parquet", "arrow"]:
        tfarrow.convert(LOGS, tmp_path / to, to=to)
        assert tfarrow.scan(tmp_path / to).to_pylist() == tfarrow.scan(LOGS).to_pylist()
        assert tfarrow.head(tmp_path / to, 2) == tfarrow.head(LOGS, 2)
        found, expected = (
            tfarrow.sql(f"SELECT run, step, CAST(wall_time AS BIGINT) AS t, tag, kind, value, text FROM '{logs}/' ORDER BY run, tag, step, kind")
            for logs in (tmp_path / to, LOGS)
        )
        assert found.to_pylist() == expected.to_pylist()


def test_schemas_of_event_files_are_those_of_the_program():
    schema = tfarrow.schema(LOGS)
    assert schema.to_dict() == program_json("schema", LOGS)
    assert schema.to_arrow() == tfarrow.scan(LOGS).schema
    assert schema.features == [] and "tensorflow.Event" in schema.text()
    with pytest.raises(UsageError, match="table, json and arrow"):
        schema.to_parse_spec()
    with pytest.raises(UsageError, match="table, json and arrow"):
        schema.to_pbtxt()
    schema._repr_html_()


def test_statistics_of_event_files_are_those_of_the_program():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TfarrowWarning)
        assert tfarrow.stats(LOGS).to_dict() == program_json("stats", LOGS)
