"""Keras: batches by their numbers, for models of any backend."""

import numpy as np
import pytest

import tfarrow
from support import TESTDATA

keras = pytest.importorskip("keras")

OPTIONS = {"batch_size": 64, "inputs": "embedding", "targets": "label"}


@pytest.mark.parametrize("shuffle", [False, "blocks", "global"])
def test_batches_by_their_numbers_are_those_of_a_loader(shuffle):
    data = tfarrow.keras.dataset(TESTDATA / "shards", **OPTIONS, shuffle=shuffle, seed=1)
    loader = tfarrow.scan(TESTDATA / "shards").batches(64, shuffle=shuffle, seed=1)
    for _ in range(2):
        expected = list(loader)
        assert len(data) == len(expected) == 4
        # Threads ask for batches in any order.
        for number in (3, 0, 2, 1):
            inputs, targets = data[number]
            assert np.array_equal(inputs, expected[number]["embedding"])
            assert np.array_equal(targets, expected[number]["label"])
        data.on_epoch_end()


def test_a_model_is_trained():
    model = keras.Sequential([keras.layers.Dense(4, activation="softmax")])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    data = tfarrow.keras.dataset(TESTDATA / "shards", **OPTIONS, shuffle="global", where="label < 4")
    history = model.fit(data, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    assert model.predict(tfarrow.keras.dataset(TESTDATA / "shards", batch_size=50, inputs="embedding"), verbose=0).shape == (200, 4)


def test_columns():
    data = tfarrow.keras.dataset(TESTDATA / "shards", batch_size=8, inputs=["price", "embedding"], targets=["label"])
    inputs, targets = data[0]
    assert list(inputs) == ["price", "embedding"] and targets["label"].shape == (8,)
    assert len(tfarrow.keras.dataset(TESTDATA / "shards", batch_size=8, inputs="price")[24]) == 1
    with pytest.raises(TypeError, match="'city' is a BytesColumn"):
        tfarrow.keras.dataset(TESTDATA / "shards", batch_size=8, inputs="city")[0]
