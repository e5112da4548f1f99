"""Spark reads and writes TFRecord, in other processes."""

import json
import os
import shutil
import sys
import time
import warnings

import pytest

pytest.importorskip("pyspark.sql.datasource")
pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java", allow_module_level=True)

from cluster_data import SOURCES, TESTDATA, write_many, write_uneven
from pyspark.sql import SparkSession
from pyspark.sql.utils import AnalysisException

import tfarrow

# Spark leaves sockets to the garbage collector, and warns of pandas and of its own future.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def spark(s3):
    path = os.pathsep.join([os.path.dirname(os.path.dirname(tfarrow.__file__)), os.path.dirname(__file__)])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Each task is tried three times.
        builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.memory", "1g")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        session = builder.config("spark.sql.caseSensitive", "true").config(PUSHDOWN, "true").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        session.dataSource.register(tfarrow.spark.TFRecordDataSource)
        yield session
        session.stop()


@pytest.fixture
def read(spark):
    def read(source, schema=None, **options):
        reader = spark.read.format("tfrecord")
        for name, value in options.items():
            reader = reader.option(name, value)
        return (reader if schema is None else reader.schema(schema)).load(str(source))

    return read


def write(frame, target, mode="append", **options):
    writer = frame.write.format("tfrecord").mode(mode)
    for name, value in options.items():
        writer = writer.option(name, value)
    writer.save(str(target))


def equal(found, expected):
    """Whether tables have equal columns, in Spark's types."""
    if found.column_names != expected.column_names or found.num_rows != expected.num_rows:
        return False
    # Lists have other names of their items in Spark.
    return all(found[name].cast(expected.schema.field(name).type).equals(expected[name]) for name in expected.column_names)


@pytest.mark.filterwarnings("ignore::tfarrow.errors.TfarrowWarning")
@pytest.mark.parametrize(("name", "options"), SOURCES)
def test_reads_what_scan_reads(read, name, options):
    source = f"{TESTDATA}/{name}"
    expected = tfarrow.scan(source, **options).to_arrow()
    assert equal(read(source, **options).toArrow(), expected)


def test_types(read):
    def types(name, **options):
        return {field.name: field.dataType.simpleString() for field in read(f"{TESTDATA}/{name}", **options).schema}

    assert types("shards/") == {
        "city": "string",
        "embedding": "array<float>",
        "image/encoded": "binary",
        "image/height": "bigint",
        "image/width": "bigint",
        "label": "bigint",
        "price": "float",
        "tags": "array<string>",
    }
    assert types("shards/", layout="list")["city"] == "array<binary>"
    assert types("sequence.tfrecord")["frame"] == "array<array<float>>"
    assert types("raw.tfrecord") == {"record": "binary"}


def test_every_task_has_the_schema_of_the_data_set(read, tmp_path):
    write_uneven(tmp_path, tfarrow, pa)
    expected = tfarrow.scan(tmp_path, sample="all").to_arrow()
    assert equal(read(tmp_path, sample="all", min_groups=3).toArrow(), expected)


def test_a_record_that_does_not_fit_is_an_error_that_names_it(read, tmp_path):
    tfarrow.write({"x": [1, 2]}, f"{tmp_path}/0.tfrecord")
    tfarrow.write(pa.table({"x": [[1], [2], [3, 4]]}), f"{tmp_path}/1.tfrecord")
    with pytest.raises(Exception, match="1.tfrecord: record 2 .* expected exactly one value, found 2"):
        read(tmp_path, sample=1).toArrow()


def test_groups_of_files(read, tmp_path):
    rows = write_many(tmp_path, tfarrow)
    assert read(tmp_path, min_groups=1).rdd.getNumPartitions() == 1
    frame = read(tmp_path, min_groups=5)
    assert frame.rdd.getNumPartitions() == 5
    assert frame.count() == rows
    assert frame.selectExpr("sum(id)").first()[0] == rows * (rows - 1) // 2
    assert read(tmp_path, min_groups=1, group_bytes=1).rdd.getNumPartitions() == 12
    # Several sources.
    reader = read.__closure__[0].cell_contents.read.format("tfrecord")
    assert reader.load([f"{tmp_path}/000.tfrecord", f"{tmp_path}/001.tfrecord"]).count() == 1500


def test_columns_conditions_and_a_given_schema(read):
    source = f"{TESTDATA}/shards/"
    everything = tfarrow.scan(source).to_arrow()
    ones = everything.filter(pc.equal(everything["label"], 1))
    assert equal(read(source, columns="price, city", where="label = 1").toArrow(), ones.select(["price", "city"]))
    assert read(source, columns='["image/width"]').columns == ["image/width"]
    found = read(source, schema="label int, price double, nothing array<bigint>, city binary").toArrow()
    assert [str(field.type) for field in found.schema][:2] == ["int32", "double"]
    assert found["label"].cast(pa.int64()).equals(everything["label"])
    assert found["price"].cast(pa.float32()).equals(everything["price"])
    assert found["nothing"].null_count == found.num_rows
    assert found["city"].cast(pa.string()).equals(everything["city"])
    sequence = read(f"{TESTDATA}/sequence.tfrecord", schema="id bigint, frame array<array<float>>").toArrow()
    assert sequence["frame"].to_pylist() == tfarrow.scan(f"{TESTDATA}/sequence.tfrecord").to_arrow()["frame"].to_pylist()
    with pytest.raises(Exception, match='feature "price": expected int64_list, found float_list'):
        read(source, schema="price bigint").toArrow()
    with pytest.raises(Exception, match="a feature cannot be read as Timestamp"):
        read(source, schema="price timestamp").toArrow()
    with pytest.raises(AnalysisException, match="there is no column 'nope'"):
        read(source, columns="nope")


def test_filters_of_one_query_do_not_reach_another(read):
    # Spark would do that if the reader took filters.
    frame = read(f"{TESTDATA}/shards/")
    assert frame.filter("label = 1").count() == 53
    assert frame.count() == 200
    assert frame.filter("label = 1").union(frame).count() == 253


def test_sql_join_sort_and_nulls(spark, read):
    expected = tfarrow.scan(f"{TESTDATA}/shards/").to_arrow()
    frame = read(f"{TESTDATA}/shards/")
    frame.createOrReplaceTempView("shards")
    found = spark.sql("SELECT city, count(*) AS n FROM shards GROUP BY city ORDER BY city").collect()
    counts = {row["values"]: row["counts"] for row in expected["city"].value_counts().to_pylist()}
    assert [(row.city, row.n) for row in found] == sorted(counts.items())
    prices = [row.price for row in spark.sql("SELECT price FROM shards WHERE price > 40 ORDER BY price").collect()]
    assert prices == sorted(price for price in expected["price"].to_pylist() if price > 40)
    joined = frame.alias("a").join(frame.alias("b"), on="image/encoded").count()
    encoded = [entry["counts"] for entry in expected["image/encoded"].value_counts().to_pylist()]
    assert joined == sum(count * count for count in encoded)
    exploded = spark.sql("SELECT tag, count(*) AS n FROM shards LATERAL VIEW explode(tags) AS tag GROUP BY tag")
    tags = [tag for tags in expected["tags"].to_pylist() for tag in tags or []]
    assert {row.tag: row.n for row in exploded.collect()} == {tag: tags.count(tag) for tag in set(tags)}
    states = tfarrow.scan(f"{TESTDATA}/states.tfrecord").to_arrow()
    nulls = read(f"{TESTDATA}/states.tfrecord").filter("i IS NULL").count()
    assert nulls == states["i"].null_count > 0


def test_a_retried_task_yields_the_same_rows(read, tmp_path):
    data, flag = tmp_path / "data", str(tmp_path / "failed")
    rows = write_many(data, tfarrow)

    def failing(batches):
        from cluster_data import fail_once

        for batch in batches:
            if 1000 in batch.column(0).to_pylist():
                fail_once(flag, "raise")
            yield batch

    frame = read(data, min_groups=4)
    found = frame.mapInArrow(failing, frame.schema).toArrow()
    assert os.path.exists(flag)
    assert found["id"].to_pylist() == list(range(rows))


@pytest.mark.parametrize("how", ["raise", "kill"])
def test_a_failed_attempt_writes_nothing(read, tmp_path, how):
    data, out, flag = tmp_path / "data", tmp_path / "out", str(tmp_path / "failed")
    rows = write_many(data, tfarrow)

    def failing(batches):
        from cluster_data import fail_once

        for batch in batches:
            yield batch
            # The attempt has written rows by now.
            if 1000 in batch.column(0).to_pylist():
                fail_once(flag, how)

    frame = read(data, min_groups=4)
    write(frame.mapInArrow(failing, frame.schema), out)
    assert os.path.exists(flag)
    assert tfarrow.scan(out).to_numpy()["id"].tolist() == list(range(rows))
    assert not [name for name in os.listdir(out) if not name.startswith("part-")]


def test_a_failed_job_leaves_nothing(read, tmp_path):
    data, out = tmp_path / "data", tmp_path / "out"
    write_many(data, tfarrow)

    def failing(batches):
        for batch in batches:
            yield batch
            if 1000 in batch.column(0).to_pylist():
                raise RuntimeError("fails for good")

    frame = read(data, min_groups=4)
    with pytest.raises(Exception, match="fails for good"):
        write(frame.mapInArrow(failing, frame.schema), out)
    # Spark aborts a job before all of its attempts have ended.
    for _ in range(100):
        if not out.exists():
            break
        time.sleep(0.1)
    assert not out.exists()
    # The files of before are left by a job that was to replace them.
    write(frame, out)
    before = sorted(os.listdir(out))
    with pytest.raises(Exception, match="fails for good"):
        write(frame.mapInArrow(failing, frame.schema), out, mode="overwrite")
    assert sorted(name for name in os.listdir(out) if not name.startswith("_")) == before
    assert tfarrow.scan(out).count() == frame.count()


@pytest.mark.parametrize("name", ["shards/", "ragged.tfrecord", "states.tfrecord", "raw.tfrecord"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_writes_what_it_reads(read, tmp_path, name, compression):
    expected = tfarrow.scan(f"{TESTDATA}/{name}").to_arrow()
    options = {"record_type": "raw"} if name.startswith("raw") else {}
    write(read(f"{TESTDATA}/{name}"), tmp_path / "out", compression=compression, **options)
    assert tfarrow.scan(tmp_path / "out").to_arrow().equals(expected)
    ending = ".tfrecord.gz" if compression == "gzip" else ".tfrecord"
    assert all(name.endswith(ending) for name in os.listdir(tmp_path / "out"))


def test_writes_sequence_examples(read, tmp_path):
    expected = tfarrow.scan(f"{TESTDATA}/sequence.tfrecord").select("id", "frame", "token", "speaker", "rates").to_arrow()
    write(read(f"{TESTDATA}/sequence.tfrecord", columns="id,frame,token,speaker,rates"), tmp_path / "out")
    assert tfarrow.scan(tmp_path / "out").select(*expected.column_names).to_arrow().equals(expected)


def test_modes(spark, read, tmp_path):
    out = tmp_path / "out"
    frame = read(f"{TESTDATA}/scalar.tfrecord")
    rows = frame.count()
    write(frame, out, if_exists="error")
    with pytest.raises(Exception, match="the folder has files"):
        write(frame, out, if_exists="error")
    write(frame, out)
    assert tfarrow.count(out) == 2 * rows
    # Rows are read before files are replaced.
    write(read(out), out, mode="overwrite")
    assert tfarrow.count(out) == 2 * rows
    write(frame.filter("id IS NULL"), out, mode="overwrite")
    assert tfarrow.count(out) == 0
    assert len(os.listdir(out)) == 1
    with pytest.raises(Exception, match="cannot be written in the"):
        write(frame, out, mode="error")
    with pytest.raises(Exception, match="[Tt]imestamp"):
        write(spark.sql("SELECT now() AS t"), tmp_path / "times")
    assert not (tmp_path / "times").exists()


def test_errors_have_the_text(read, tmp_path):
    file = f"{TESTDATA}/corrupt/data_crc.tfrecord"
    with pytest.raises(AnalysisException, match="record 1 .byte 72.: the data's CRC"):
        read(file)
    # The driver reads the first record only.
    with pytest.raises(Exception, match="record 1 .byte 72.: the data's CRC"):
        read(file, sample=1).toArrow()
    with pytest.raises(AnalysisException, match="tfarrow.errors.NotFoundError"):
        read(tmp_path / "nothing")
    with pytest.raises(AnalysisException, match="limits: expected an object in JSON"):
        read(file, limits="3")
    with pytest.raises(AnalysisException, match="layout"):
        read(file, layout="wide")
    with pytest.raises(Exception, match="record-bytes"):
        read(f"{TESTDATA}/scalar.tfrecord", limits=json.dumps({"record-bytes": 8})).toArrow()


def test_folders_and_places_are_columns(read, tmp_path):
    for day in ("1", "2"):
        os.makedirs(tmp_path / f"day={day}")
        tfarrow.write({"x": [1, 2]}, f"{tmp_path}/day={day}/a.tfrecord")
    frame = read(tmp_path, metadata_columns="_file,_record", where="day = 2 OR x = 1")
    assert [row.asDict() for row in frame.collect()] == [
        {"x": 1, "_record": 0, "day": 1, "_file": f"{tmp_path}/day=1/a.tfrecord"},
        {"x": 1, "_record": 0, "day": 2, "_file": f"{tmp_path}/day=2/a.tfrecord"},
        {"x": 2, "_record": 1, "day": 2, "_file": f"{tmp_path}/day=2/a.tfrecord"},
    ]
    typed = read(tmp_path, schema="x bigint, day int").collect()
    assert [tuple(row) for row in typed] == [(1, 1), (2, 1), (1, 2), (2, 2)]


def test_stores(read, bucket, tmp_path):
    rows = write_many(tmp_path, tfarrow)
    for half in ("a", "b"):
        write(read(tmp_path), f"{bucket}/copy/part={half}")
    found = read(f"{bucket}/copy/")
    assert found.count() == 2 * rows
    assert equal(found.where("part = 'a'").select("id").orderBy("id").toArrow(), pa.table({"id": range(rows)}))
    write(read(tmp_path), f"{bucket}/copy/part=a")
    assert tfarrow.count(f"{bucket}/copy/") == 3 * rows
