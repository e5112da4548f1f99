"""Ray Data reads and writes TFRecord, in other processes."""

import os
import warnings

import pytest

pytest.importorskip("ray.data")
pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

import ray
from cluster_data import SOURCES, TESTDATA, fail_once, write_many, write_uneven
from ray.data.expressions import col

import tfarrow
from tfarrow import _dataset

# Ray leaves files and sockets to the garbage collector, and warns of its own future.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def cluster(s3):
    path = os.pathsep.join([os.path.dirname(os.path.dirname(tfarrow.__file__)), os.path.dirname(__file__)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(
            num_cpus=2, include_dashboard=False, logging_level="ERROR", object_store_memory=256 << 20,
            runtime_env={"env_vars": {"PYTHONPATH": path}},
        )
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        # Otherwise the blocks of the tasks come as these end.
        context.execution_options.preserve_order = True
        yield
        ray.shutdown()


def read(source, blocks=None, **options):
    return ray.data.read_datasource(tfarrow.ray.datasource(source, **options), override_num_blocks=blocks)


def table(dataset):
    return pa.concat_tables(ray.get(dataset.to_arrow_refs()))


@pytest.mark.filterwarnings("ignore::tfarrow.errors.TfarrowWarning")
@pytest.mark.parametrize(("name", "options"), SOURCES)
def test_reads_what_scan_reads(name, options):
    source = f"{TESTDATA}/{name}"
    expected = tfarrow.scan(source, **options).to_arrow()
    found = table(read(source, **options))
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.equals(expected)


def test_every_task_has_the_schema_of_the_data_set(tmp_path):
    write_uneven(tmp_path, tfarrow, pa)
    expected = tfarrow.scan(tmp_path, sample="all").to_arrow()
    assert expected.schema.field("word").type == pa.binary()
    found = table(read(tmp_path, sample="all"))
    assert found.schema == expected.schema
    assert found.equals(expected)


def test_a_record_that_does_not_fit_is_an_error_that_names_it(tmp_path):
    tfarrow.write({"x": [1, 2]}, f"{tmp_path}/0.tfrecord")
    tfarrow.write(pa.table({"x": [[1], [2], [3, 4]]}), f"{tmp_path}/1.tfrecord")
    with pytest.raises(tfarrow.errors.DataError, match="1.tfrecord: record 2 .* expected exactly one value, found 2"):
        read(tmp_path, sample=1, blocks=2).materialize()


def test_groups_of_files(tmp_path):
    rows = write_many(tmp_path, tfarrow)
    source = tfarrow.ray.datasource(tmp_path)
    for count in (1, 3, 5, 100):
        tasks = source.get_read_tasks(count)
        assert len(tasks) == min(count, 12)
        files = [name for task in tasks for name in task.metadata.input_files]
        assert files == [f"{tmp_path}/{shard:03d}.tfrecord" for shard in range(12)]
        sizes = [task.metadata.size_bytes for task in tasks]
        if count in (3, 5):
            assert max(sizes) < 2 * sum(sizes) / count
    dataset = read(tmp_path, blocks=5)
    assert dataset.count() == rows
    assert dataset.sum("id") == rows * (rows - 1) // 2


def test_a_large_file_is_alone():
    def file(size):
        return _dataset.File("x", size)

    data = _dataset.DataSet(None, [file(1), file(1), file(1000), file(1), file(1)])
    assert [[f.size for f in group] for group in data.groups(3)] == [[1, 1], [1000], [1, 1]]
    assert _dataset.DataSet(None, []).groups(3) == []


def test_columns_conditions_and_counts():
    source = f"{TESTDATA}/shards/"
    everything = tfarrow.scan(source).to_arrow()
    found = table(read(source, columns=["price", "city"], where="label = 1"))
    assert found.equals(everything.filter(pc.equal(everything["label"], 1)).select(["price", "city"]))
    scan = tfarrow.scan(source).where("label = 1").select("city")
    assert table(read(scan)).equals(scan.to_arrow())
    dataset = read(source)
    assert dataset.schema().names == everything.schema.names
    assert table(dataset.select_columns(["tags", "city"])).equals(everything.select(["tags", "city"]))
    assert dataset.filter(expr=(col("label") == 1) & (col("city") != "Oslo")).count() == sum(
        row["label"] == 1 and row["city"] != "Oslo" for row in everything.to_pylist()
    )
    # Ray itself compares floats.
    assert dataset.filter(expr=col("price") > 40.0).count() == sum(price > 40 for price in everything["price"].to_pylist())
    assert dataset.limit(7).count() == 7
    assert read(source, where="label = 1").count() == found.num_rows


@pytest.mark.filterwarnings("ignore::tfarrow.errors.TfarrowWarning")
def test_counts_by_tasks():
    file = f"{TESTDATA}/corrupt/data_crc.tfrecord"
    dataset = read(file, on_error="skip")
    assert dataset.count() == len(dataset.take_all()) == tfarrow.scan(file, on_error="skip").to_arrow().num_rows
    source = tfarrow.ray.datasource(f"{TESTDATA}/shards/")
    assert source.get_read_tasks(2)[0].metadata.num_rows is None
    assert ray.data.read_datasource(source).count() == 200


def test_conditions_of_ray_in_sql():
    schema = tfarrow.scan(f"{TESTDATA}/shards/").schema
    condition = tfarrow.ray.condition_of
    assert condition((col("label") >= 1) | (col("city") == "a'b"), schema) == """("label" >= 1) OR ("city" = 'a''b')"""
    assert condition(col("label").is_null(), schema) == '"label" IS NULL'
    assert condition(col("price") > 1.0, schema) is None
    assert condition((col("price") > 1.0) & (col("label") == 1), schema) is None
    assert condition(col("label") == True, schema) is None  # noqa: E712
    assert condition(col("nothing") == 1, schema) is None


@pytest.mark.parametrize("how", ["kill", "raise"])
def test_a_retried_task_yields_the_same_rows(tmp_path, how):
    data = tmp_path / "data"
    rows = write_many(data, tfarrow)
    flag = str(tmp_path / "failed")

    def failing(batch):
        if 1000 in batch["id"].to_pylist():
            fail_once(flag, how)
        return batch

    # Ray retries after the death of a process only, unless it is told to.
    options = {"retry_exceptions": True, "max_retries": 2} if how == "raise" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = read(data, blocks=4).map_batches(failing, batch_format="pyarrow", batch_size=None, **options)
    assert sorted(table(dataset)["id"].to_pylist()) == list(range(rows))
    assert os.path.exists(flag)


@pytest.mark.parametrize("how", ["kill", "raise"])
def test_a_failed_attempt_writes_nothing(tmp_path, how):
    data, out = tmp_path / "data", tmp_path / "out"
    rows = write_many(data, tfarrow)
    flag = str(tmp_path / "failed")

    class FailingSink(tfarrow.ray.TFRecordDatasink):
        def write(self, blocks, ctx):
            part = super().write(blocks, ctx)
            if ctx.task_idx == 1:
                fail_once(flag, how)
            return part

    sink = FailingSink(tfarrow.ray.datasink(out)._output)
    options = {"ray_remote_args": {"retry_exceptions": True, "max_retries": 2}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read(data, blocks=4).write_datasink(sink, **options)
    assert os.path.exists(flag)
    assert sorted(tfarrow.scan(out).to_numpy()["id"].tolist()) == list(range(rows))
    assert not [name for name in os.listdir(out) if not name.startswith("part-")]


def test_a_failed_job_leaves_nothing(tmp_path):
    data, out = tmp_path / "data", tmp_path / "out"
    write_many(data, tfarrow)

    class FailingSink(tfarrow.ray.TFRecordDatasink):
        def write(self, blocks, ctx):
            part = super().write(blocks, ctx)
            if ctx.task_idx == 2:
                raise RuntimeError("fails for good")
            return part

    with pytest.raises(Exception, match="fails for good"):
        read(data, blocks=4).write_datasink(FailingSink(tfarrow.ray.datasink(out)._output))
    assert not out.exists()


@pytest.mark.parametrize("name", ["shards/", "ragged.tfrecord", "sequence.tfrecord", "raw.tfrecord", "states.tfrecord"])
@pytest.mark.parametrize("compression, suffix", [(None, ""), ("gzip", ".gz"), ("snappy", ".snappy")])
def test_writes_what_it_reads(tmp_path, name, compression, suffix):
    expected = tfarrow.scan(f"{TESTDATA}/{name}")
    read(f"{TESTDATA}/{name}").write_datasink(tfarrow.ray.datasink(tmp_path / "out", compression=compression))
    assert tfarrow.scan(tmp_path / "out").to_arrow().equals(expected.to_arrow())
    names = os.listdir(tmp_path / "out")
    assert all(name.endswith(f".tfrecord{suffix}") for name in names)


def test_writes_arrays_and_columns_without_values(tmp_path):
    rows = [{"id": i, "x": [float(i)] * (i % 3), "none": None} for i in range(10)]
    ray.data.from_items(rows, override_num_blocks=2).write_datasink(tfarrow.ray.datasink(tmp_path / "a", lossy=True))
    found = tfarrow.scan(tmp_path / "a").to_arrow().sort_by("id")
    assert found.column_names == ["id", "x"]
    assert found["x"].to_pylist() == [row["x"] for row in rows]
    arrays = ray.data.range_tensor(6, shape=(3,), override_num_blocks=2)
    arrays.write_datasink(tfarrow.ray.datasink(tmp_path / "b"))
    assert sorted(tfarrow.scan(tmp_path / "b").to_arrow()["data"].to_pylist()) == [[i] * 3 for i in range(6)]
    with pytest.raises(Exception, match="a feature has no shape"):
        ray.data.range_tensor(6, shape=(2, 2)).write_datasink(tfarrow.ray.datasink(tmp_path / "c"))


def test_modes(tmp_path):
    out = tmp_path / "out"
    source = f"{TESTDATA}/scalar.tfrecord"
    rows = tfarrow.count(source)
    read(source).write_datasink(tfarrow.ray.datasink(out))
    with pytest.raises(tfarrow.errors.ExistsError, match='mode="append"'):
        read(source).write_datasink(tfarrow.ray.datasink(out))
    read(source).write_datasink(tfarrow.ray.datasink(out, mode="append"))
    assert tfarrow.count(out) == 2 * rows
    read(out).write_datasink(tfarrow.ray.datasink(out, mode="overwrite"))
    assert tfarrow.count(out) == 2 * rows
    (out / "notes.txt").write_text("mine")
    with pytest.raises(tfarrow.errors.ExistsError, match="notes.txt"):
        read(source).write_datasink(tfarrow.ray.datasink(out, mode="overwrite"))
    assert tfarrow.count(f"{out}/*.tfrecord") == 2 * rows


def test_errors_have_the_text_and_the_class(tmp_path):
    file = f"{TESTDATA}/corrupt/data_crc.tfrecord"
    with pytest.raises(tfarrow.errors.CorruptError, match="record 1 .byte 72.: the data's CRC"):
        tfarrow.ray.datasource(file)
    # The driver reads the first record only.
    with pytest.raises(tfarrow.errors.CorruptError, match="record 1 .byte 72.: the data's CRC"):
        read(file, sample=1).materialize()
    with pytest.raises(tfarrow.errors.NotFoundError):
        tfarrow.ray.datasource(tmp_path)
    with pytest.raises(tfarrow.errors.UsageError, match="there is no column 'nope'"):
        tfarrow.ray.datasource(f"{TESTDATA}/shards/", columns=["nope"])
    with pytest.raises(tfarrow.errors.UsageError, match="limit"):
        tfarrow.ray.datasource(tfarrow.scan(f"{TESTDATA}/shards/").limit(3))
    tfarrow.write({"x": [1]}, f"{tmp_path}/a.tfrecord")
    dataset = read(tmp_path)
    tfarrow.write({"x": [1, 2]}, f"{tmp_path}/a.tfrecord", overwrite=True)
    with pytest.raises(tfarrow.errors.IoError, match="the file was changed after it was listed"):
        dataset.materialize()


def test_folders_and_places_are_columns(tmp_path):
    for day in ("1", "2"):
        os.makedirs(tmp_path / f"day={day}")
        tfarrow.write({"x": [1, 2]}, f"{tmp_path}/day={day}/a.tfrecord")
    found = table(read(tmp_path, metadata_columns="_file,_record", where="day = 2 OR x = 1"))
    assert found.to_pylist() == [
        {"x": 1, "_record": 0, "day": 1, "_file": f"{tmp_path}/day=1/a.tfrecord"},
        {"x": 1, "_record": 0, "day": 2, "_file": f"{tmp_path}/day=2/a.tfrecord"},
        {"x": 2, "_record": 1, "day": 2, "_file": f"{tmp_path}/day=2/a.tfrecord"},
    ]


def test_join_sort_and_group():
    dataset = read(f"{TESTDATA}/shards/")
    rows = tfarrow.scan(f"{TESTDATA}/shards/").to_arrow()
    assert [row["price"] for row in dataset.sort("price").take_all()] == sorted(rows["price"].to_pylist())
    counts = {row["city"]: row["count()"] for row in dataset.groupby("city").count().take_all()}
    assert counts == {row["values"]: row["counts"] for row in rows["city"].value_counts().to_pylist()}


def test_stores(bucket, tmp_path):
    rows = write_many(tmp_path, tfarrow)
    read(tmp_path, blocks=5).write_datasink(tfarrow.ray.datasink(f"{bucket}/copy/part=a"))
    read(tmp_path, blocks=2).write_datasink(tfarrow.ray.datasink(f"{bucket}/copy/part=b"))
    found = read(f"{bucket}/copy/", blocks=4)
    assert found.count() == 2 * rows
    expected = tfarrow.scan(tmp_path).to_arrow()
    both = table(found)
    assert both.drop_columns("part").slice(0, rows).equals(expected)
    assert both["part"].to_pylist() == ["a"] * rows + ["b"] * rows
    with pytest.raises(tfarrow.errors.ExistsError):
        read(tmp_path).write_datasink(tfarrow.ray.datasink(f"{bucket}/copy/part=a"))
    read(tmp_path).write_datasink(tfarrow.ray.datasink(f"{bucket}/copy/part=a", mode="append"))
    assert tfarrow.count(f"{bucket}/copy/") == 3 * rows
