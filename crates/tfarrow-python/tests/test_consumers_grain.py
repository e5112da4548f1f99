"""Grain: records as a data source that is shuffled, divided and continued."""

import numpy as np
import pytest

import tfarrow
from support import TESTDATA

grain = pytest.importorskip("grain")
grain_python = pytest.importorskip("grain.python")


@pytest.fixture
def source():
    return tfarrow.grain.source(TESTDATA / "shards", columns=["label", "embedding"])


def test_a_dataset_is_a_data_source(source):
    assert isinstance(source, grain_python.RandomAccessDataSource)
    expected = tfarrow.scan(TESTDATA / "shards").to_numpy()
    batches = grain.MapDataset.source(source).batch(50)
    assert len(batches) == 4
    for start, batch in zip(range(0, 200, 50), batches):
        assert batch["embedding"].dtype == np.float32
        for name in ("label", "embedding"):
            assert np.array_equal(batch[name], expected[name][start : start + 50])


def test_shuffled_slices_have_each_record_once(source):
    seen = []
    for rank in range(2):
        part = grain.MapDataset.source(source).seed(1).shuffle()[rank::2]
        seen += [tuple(record["embedding"].tolist()) for record in part]
    assert len(seen) == 200 == len(set(seen))


def test_a_checkpoint_is_continued(source):
    def iterator():
        return iter(grain.MapDataset.source(source).shuffle(seed=1).batch(32).to_iter_dataset())

    first = iterator()
    next(first), next(first)
    state = first.get_state()
    rest = [batch["label"].tolist() for batch in first]
    second = iterator()
    second.set_state(state)
    assert [batch["label"].tolist() for batch in second] == rest and len(rest) == 5
