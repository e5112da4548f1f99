"""Objects of an S3 server are read and written like files."""

import numpy as np
import pytest
import tfarrow
from support import TESTDATA
from tfarrow import errors

SHARDS = TESTDATA / "shards"


@pytest.fixture
def copy(bucket):
    """The URL of a copy of the shards."""
    for path in sorted(SHARDS.glob("*.tfrecord")):
        tfarrow.write(tfarrow.scan(path, record_type="raw"), f"{bucket}/shards/{path.name}")
    return f"{bucket}/shards/"


def test_reads_what_it_writes(copy):
    assert tfarrow.scan(copy).to_pylist() == tfarrow.scan(SHARDS).to_pylist()
    assert tfarrow.count(f"{copy}*.tfrecord") == tfarrow.scan(copy).count() == 200
    assert str(tfarrow.schema(copy)) == str(tfarrow.schema(SHARDS))
    assert tfarrow.verify(copy)["records"] == 200
    assert tfarrow.diff(copy, SHARDS).ok
    assert tfarrow.stats(copy).to_dict() == tfarrow.stats(SHARDS).to_dict()


def test_queries_and_conversions(copy, bucket):
    mean = "SELECT avg(price) AS mean FROM '{}'"
    assert tfarrow.sql(mean.format(copy)).to_pylist() == tfarrow.sql(mean.format(SHARDS)).to_pylist()
    tfarrow.convert(copy, f"{bucket}/parquet/", to="parquet")
    tfarrow.convert(f"{bucket}/parquet/", f"{bucket}/back/", to="tfrecord")
    assert tfarrow.diff(f"{bucket}/back/", SHARDS).ok


def test_an_object_is_complete_or_absent(bucket):
    rows = tfarrow.sql("SELECT CASE WHEN value > 5000 THEN 1 / (value - value) ELSE value END AS x FROM generate_series(1, 9999)")
    with pytest.raises(errors.SqlError):
        tfarrow.write(rows, f"{bucket}/x.tfrecord")
    with pytest.raises(errors.NotFoundError):
        tfarrow.count(f"{bucket}/x.tfrecord")
    tfarrow.write({"x": np.arange(3)}, f"{bucket}/x.tfrecord")
    with pytest.raises(errors.ExistsError):
        tfarrow.write({"x": np.arange(4)}, f"{bucket}/x.tfrecord")
    assert tfarrow.count(f"{bucket}/x.tfrecord") == 3


def test_missing_objects(bucket):
    for url in (f"{bucket}/no.tfrecord", f"{bucket}/no/"):
        with pytest.raises(errors.NotFoundError) as found:
            tfarrow.scan(url).to_numpy()
        assert found.value.file == url
