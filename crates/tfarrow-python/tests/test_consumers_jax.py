"""JAX: batches as arrays, without values that are cut off."""

import pytest

import tfarrow
from support import TESTDATA, example, write_records

jax = pytest.importorskip("jax")


def test_batches_are_arrays():
    batches = tfarrow.jax.batches(TESTDATA / "shards", 64, columns=["label", "embedding", "city"], shuffle="global", seed=1)
    loader = tfarrow.scan(TESTDATA / "shards").batches(64, shuffle="global", seed=1, drop_last=True)
    assert len(batches) == 3
    for found, expected in zip(batches, loader, strict=True):
        assert isinstance(found["label"], jax.Array) and found["embedding"].shape == (64, 8)
        assert found["label"].tolist() == expected["label"].tolist()
        assert found["embedding"].tolist() == expected["embedding"].tolist()
        assert found["city"].tolist() == expected["city"].tolist()
    assert batches.epoch == 1


def test_a_state_is_continued():
    def make():
        return tfarrow.jax.batches(TESTDATA / "shards", 16, columns=["label"], shuffle="blocks", seed=1, drop_last=False)

    first = make()
    next(first), next(first)
    second = make()
    second.load_state_dict(first.state_dict())
    rest = [batch["label"].tolist() for batch in first]
    assert [batch["label"].tolist() for batch in second] == rest and len(rest) == 11
    second.set_epoch(0)
    assert len(list(second)) == 13


def test_batches_have_a_sharding():
    mesh = jax.make_mesh((1,), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    batch = next(tfarrow.jax.batches(TESTDATA / "shards", 8, columns=["embedding"], sharding=sharding))
    assert batch["embedding"].sharding == sharding and batch["embedding"].shape == (8, 8)


def test_values_are_not_cut_off(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(i=[1], j=[i]) for i in (0, 2**31 - 1, -(2**31), 2**31)])
    batches = tfarrow.jax.batches(path, 3)
    assert next(batches)["j"].tolist() == [0, 2**31 - 1, -(2**31)]
    with pytest.raises(tfarrow.errors.DataError, match="'j' has 2147483648, .* int32 .*jax_enable_x64") as caught:
        next(tfarrow.jax.batches(path, 4))
    assert caught.value.feature == "j"
    with jax.enable_x64(True):
        assert next(tfarrow.jax.batches(path, 4))["j"].tolist()[3] == 2**31
