"""Records by their numbers, and shuffled batches of ranks that are stopped and continued, without torch."""

import collections
import copy
import gzip
import itertools
import json
import pickle
import random
import threading

import numpy as np
import pytest
import tfarrow
from support import TESTDATA, example, frame, program, write_records
from tfarrow import errors

ORDERS = [False, "blocks", "global"]
COUNT = 105


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Files of 0 to 40 records, of which some are compressed: records 0 to 104 by their column i."""
    folder, start = tmp_path_factory.mktemp("source"), 0
    for number, count in enumerate([7, 0, 40, 1, 33, 0, 24]):
        data = b"".join(frame(example(i=[i], s=[f"record {i}"])) for i in range(start, start + count))
        start += count
        if number in (2, 4):
            (folder / f"part-{number:05d}-of-00007.tfrecord.gz").write_bytes(gzip.compress(data))
        else:
            (folder / f"part-{number:05d}-of-00007.tfrecord").write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def dataset(source):
    return tfarrow.Dataset(source)


def read(batches):
    return [batch["i"].tolist() for batch in batches]


def flat(batches):
    return [i for batch in batches for i in batch]


# ------------------------------------------------------------------------------------------------------------- Dataset


def test_records_by_their_numbers(dataset):
    assert len(dataset) == COUNT
    assert dataset[7] == {"i": 7, "s": "record 7"}
    assert dataset[-1] == dataset[COUNT - 1] == dataset[np.int64(COUNT - 1)] == {"i": 104, "s": "record 104"}
    assert dataset[[3, 17, 3]]["i"].tolist() == [3, 17, 3]
    assert dataset[np.array([-1, 0])]["s"].tolist() == ["record 104", "record 0"]
    assert dataset[100:200]["i"].tolist() == [100, 101, 102, 103, 104]
    assert dataset[::-50]["i"].tolist() == [104, 54, 4]
    assert dataset[5:5].num_rows == dataset.take([]).num_rows == 0
    assert [row["i"] for row in dataset] == list(range(COUNT))
    assert dataset.__getitems__([2, 1]) == [dataset[2], dataset[1]]
    for number in (COUNT, -COUNT - 1, 2**70):
        with pytest.raises((IndexError, OverflowError)):
            dataset[number]
        with pytest.raises((IndexError, OverflowError)):
            dataset.take([0, number])
    with pytest.raises(TypeError):
        dataset["i"]


@pytest.mark.parametrize("name", ["scalar", "ragged", "sequence", "raw", "states", "text", "numbers", "names", "tensors"])
def test_a_record_is_the_row_of_its_scan(name):
    path = TESTDATA / f"{name}.tfrecord"
    rows = tfarrow.scan(path).to_pylist()
    dataset = tfarrow.Dataset(path)
    assert len(dataset) == len(rows)
    for number, expected in enumerate(rows):
        assert same(dataset[number], expected), (dataset[number], expected)


def same(found, expected):
    if isinstance(found, dict):
        return list(found) == list(expected) and all(same(found[name], expected[name]) for name in found)
    if isinstance(found, (list, np.ndarray)):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(found, (float, np.floating)) and np.isnan(found):
        return np.isnan(expected)
    return found == expected


def test_types_of_a_record(tmp_path):
    path = write_records(tmp_path / "x", [example(f=[0.5], n=[7], l=[1, 2], b=[b"\xff"], t=["é"], w=[b"a", b"b"]), example(n=[8])])
    row = tfarrow.Dataset(path)[0]
    assert {name: type(value) for name, value in row.items()} == {
        "b": bytes, "f": np.float32, "l": np.ndarray, "n": int, "t": str, "w": list,
    }  # fmt: skip
    row["l"][0] = 5
    assert tfarrow.Dataset(path)[1]["n"] == 8


def test_selected_columns_and_rows(source):
    dataset = tfarrow.Dataset(source, columns=["s"], where="i % 10 = 3")
    assert dataset.columns == ["s"]
    assert [row["s"] for row in dataset] == [f"record {i}" for i in range(3, COUNT, 10)]
    assert len(tfarrow.Dataset(tfarrow.scan(source).where("i > 50").limit(7))) == 7
    # Steps are applied in their order.
    assert [row["i"] for row in tfarrow.Dataset(tfarrow.scan(source).limit(9).where("i > 6"))] == [7, 8]
    assert len(tfarrow.Dataset(source, where="i < 0")) == 0
    with pytest.raises(TypeError, match="threads"):
        tfarrow.Dataset(tfarrow.scan(source), threads=1)
    with pytest.raises(errors.SqlError):
        tfarrow.Dataset(source, where="nothing = 1")


def test_folders_and_metadata(tmp_path):
    for split, start in (("train", 0), ("test", 5)):
        (tmp_path / f"split={split}").mkdir()
        write_records(tmp_path / f"split={split}" / "0.tfrecord", [example(i=[i]) for i in range(start, start + 5)])
    dataset = tfarrow.Dataset(tfarrow.scan(tmp_path, metadata_columns=["_file", "_raw"]).select("split", "_raw", "i", "_file"))
    assert dataset.columns == ["split", "_raw", "i", "_file"]
    batch = dataset[[1, 7]]
    assert batch["split"].tolist() == ["test", "train"]
    assert batch["i"].tolist() == [6, 2]
    assert [path.endswith("0.tfrecord") for path in batch["_file"].tolist()] == [True, True]
    assert dataset[1]["_raw"] == example(i=[6])
    assert len(tfarrow.Dataset(tmp_path, where="split = 'test'")) == 5
    with pytest.raises(errors.TfarrowError, match="_record"):
        tfarrow.Dataset(tmp_path, metadata_columns=["_record"])


def test_a_pickled_dataset_opens_its_files(source, tmp_path):
    copied = tmp_path / "copy"
    copied.mkdir()
    for path in source.iterdir():
        (copied / path.name).write_bytes(path.read_bytes())
    pickled = pickle.dumps(tfarrow.Dataset(copied))
    assert pickle.loads(pickled)[7]["i"] == 7
    assert repr(pickle.loads(pickled)) == repr(tfarrow.Dataset(copied)) == f"tfarrow.Dataset(tfarrow.scan({str(copied)!r}))"
    write_records(copied / "part-00003-of-00007.tfrecord", [example(i=[5]), example(i=[6])])
    with pytest.raises(errors.UsageError, match="part-00003-of-00007.tfrecord"):
        pickle.loads(pickled)


def test_indexes_are_used_and_change_nothing(source, tmp_path):
    for path in source.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    plain = tfarrow.Dataset(tmp_path)
    orders = [read(plain.batches(8, shuffle=shuffle, seed=4)) for shuffle in ORDERS]
    assert program("index", tmp_path)[0] == 0
    indexed = tfarrow.Dataset(tmp_path)
    assert [read(indexed.batches(8, shuffle=shuffle, seed=4)) for shuffle in ORDERS] == orders
    write_records(tmp_path / "part-00003-of-00007.tfrecord", [example(i=[40]), example(i=[41])])
    with pytest.warns(tfarrow.errors.TfarrowWarning, match="part-00003-of-00007.tfrecord.tfindex"):
        assert len(tfarrow.Dataset(tmp_path)) == COUNT + 1


def test_other_files_are_no_dataset(tmp_path):
    path = tmp_path / "a.parquet"
    tfarrow.convert(TESTDATA / "shards", path)
    with pytest.raises(errors.UsageError, match="only the records of TFRecord files"):
        tfarrow.Dataset(path)


def test_damage(tmp_path):
    records = [example(i=[i]) for i in range(20)]
    path = write_records(tmp_path / "x.tfrecord", records)
    data = bytearray(path.read_bytes())
    size = len(data) // 20
    data[7 * size + 14] ^= 1
    path.write_bytes(data)
    dataset = tfarrow.Dataset(path, sample=5)
    assert dataset[6] == {"i": 6}
    with pytest.raises(errors.CorruptError, match="record 7 ") as caught:
        dataset[7]
    assert caught.value.record == 7 and caught.value.file == str(path)
    for shuffle in ORDERS:
        with pytest.raises(errors.CorruptError, match="record 7 "):
            read(dataset.batches(4, shuffle=shuffle))
        skipping = tfarrow.Dataset(path, on_error="skip").batches(4, shuffle=shuffle, seed=1)
        with pytest.warns(errors.TfarrowWarning, match="skipped 1 record; the first: .*record 7 "):
            found = read(skipping)
        assert len(found) == 5 and sorted(flat(found)) == [i for i in range(20) if i != 7]


def test_threads_take_records(dataset):
    found = {}

    def take(start):
        found[start] = [dataset[i]["i"] for i in range(start, COUNT, 4)]

    threads = [threading.Thread(target=take, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {start: list(range(start, COUNT, 4)) for start in range(4)}


def test_convert_has_the_orders_of_loaders(source, tmp_path):
    """Plain files in the order `global`, of which a fraction and a split are the first records."""
    plain = tmp_path / "plain.tfrecord"
    tfarrow.convert(source, plain)
    numbers = lambda path: flat(read(tfarrow.scan(path).batches()))
    for seed in (0, 1):
        out = tmp_path / f"{seed}.tfrecord"
        assert tfarrow.convert(plain, out, shuffle=seed)["records"] == COUNT
        order = flat(read(tfarrow.scan(plain).batches(16, shuffle="global", seed=seed)))
        assert numbers(out) == order
        tfarrow.convert(plain, tmp_path / f"half-{seed}.tfrecord", fraction=0.5, seed=seed)
        half = numbers(tmp_path / f"half-{seed}.tfrecord")
        assert half == sorted(order[:53])
        tfarrow.convert(plain, tmp_path / f"splits-{seed}", to="tfrecord", split={"a": 0.5, "b": 0.25}, seed=seed)
        splits = {name: numbers(tmp_path / f"splits-{seed}" / name) for name in "ab"}
        assert splits == {"a": half, "b": sorted(order[53:79])}
    # Compressed files are read in blocks; all of these fit into one.
    tfarrow.convert(source, tmp_path / "mixed.tfrecord", shuffle=1)
    blocks = flat(read(tfarrow.scan(source).batches(16, shuffle="blocks", seed=1)))
    assert numbers(tmp_path / "mixed.tfrecord") == blocks


# -------------------------------------------------------------------------------------------------------------- Loader


@pytest.mark.parametrize("shuffle", ORDERS)
@pytest.mark.parametrize("ranks, batch_size", list(itertools.product([1, 2, 3], [1, 4, 10, 64, 500])))
def test_each_record_is_in_one_batch(dataset, shuffle, ranks, batch_size):
    loaders = [dataset.batches(batch_size, shuffle=shuffle, seed=1, rank=rank, world_size=ranks) for rank in range(ranks)]
    found = [read(loader) for loader in loaders]
    assert sorted(i for batches in found for i in flat(batches)) == list(range(COUNT))
    assert {len(batches) for batches in found} == {len(loaders[0])} == {-(-COUNT // (batch_size * ranks))}
    assert all(len(batch) == batch_size for batches in found for batch in batches[:-1])
    last = [len(batches[-1]) for batches in found]
    assert max(last) - min(last) <= 1
    # The batches of all ranks together are those of one rank.
    one = flat(read(dataset.batches(batch_size * ranks, shuffle=shuffle, seed=1)))
    assert [i for batches in zip(*found) for i in interleaved(batches)] == one
    assert (one == sorted(one)) is (shuffle is False)


def interleaved(batches):
    return [i for turn in itertools.zip_longest(*batches) for i in turn if i is not None]


@pytest.mark.parametrize("ranks, batch_size", list(itertools.product([1, 2, 3], [1, 4, 64, 500])))
def test_dropped_records_leave_whole_batches(dataset, ranks, batch_size):
    loaders = [dataset.batches(batch_size, shuffle=True, drop_last=True, rank=rank, world_size=ranks) for rank in range(ranks)]
    found = [read(loader) for loader in loaders]
    assert {len(batches) for batches in found} == {len(loaders[0])} == {COUNT // (batch_size * ranks)}
    assert all(len(batch) == batch_size for batches in found for batch in batches)
    seen = [i for batches in found for i in flat(batches)]
    assert len(seen) == len(set(seen))


def test_orders_are_functions_of_seed_and_epoch(source, dataset):
    loader = dataset.batches(16, shuffle="global", seed=5)
    first, second = read(loader), read(loader)
    assert first != second and loader.epoch == 2
    loader.set_epoch(0)
    assert read(loader) == first
    assert read(dataset.batches(16, shuffle="global", seed=5, epoch=1)) == second
    assert read(dataset.batches(16, shuffle="global", seed=6)) != first
    assert read(tfarrow.scan(source).batches(16, shuffle="global", seed=5)) == first
    # `True` is the order of blocks. A data set that fits into memory has no blocks.
    assert read(dataset.batches(16, shuffle=True, seed=5)) == read(dataset.batches(16, shuffle="blocks", seed=5)) == first


def test_the_orders_never_change():
    labels = tfarrow.scan(TESTDATA / "shards").batches(10, shuffle="global", seed=1, epoch=2)
    numbers = tfarrow.Dataset(TESTDATA / "shards", columns=["label"])
    expected = [batch["label"].tolist() for batch in labels][0]
    # tfarrow_loader::Order has a test of the numbers themselves.
    order = [161, 136, 78, 99, 100, 145, 128, 10, 130, 153]
    assert expected == numbers[order]["label"].tolist()


def test_loaders_of_selected_rows(source):
    for shuffle in ORDERS:
        loaders = [tfarrow.scan(source).where("i % 3 = 1").batches(5, shuffle=shuffle, rank=rank, world_size=2) for rank in range(2)]
        found = [read(loader) for loader in loaders]
        assert [len(batches) for batches in found] == [4, 4]
        assert sorted(i for batches in found for i in flat(batches)) == list(range(1, COUNT, 3))


def test_runs_are_stopped_and_continued_with_other_ranks(dataset):
    chance = random.Random(1)
    for shuffle in ("blocks", "global"):
        for _ in range(20):
            state, seen = None, []
            while state is None or state["epoch"] == 3:
                ranks, batch_size = chance.choice([1, 2, 3]), chance.randint(1, 20)
                loaders = [dataset.batches(batch_size, shuffle=shuffle, seed=2, epoch=3, rank=rank, world_size=ranks) for rank in range(ranks)]
                for loader in loaders:
                    if state is not None:
                        loader.load_state_dict(state)
                left = -(-(COUNT - loaders[0].state_dict()["position"]) // (batch_size * ranks))
                batches = chance.randint(0, left)
                for loader in loaders:
                    seen += flat(read(itertools.islice(loader, batches)))
                states = [loader.state_dict() for loader in loaders]
                assert all(found == states[0] for found in states)
                state = json.loads(json.dumps(states[0]))
                if state["position"] == COUNT:
                    assert [list(loader) for loader in loaders] == [[]] * ranks
                    break
            assert sorted(seen) == list(range(COUNT))


def test_a_copied_loader_goes_on(dataset):
    loader = dataset.batches(10, shuffle="blocks", seed=1)
    next(loader), next(loader)
    other = pickle.loads(pickle.dumps(loader))
    third = copy.copy(loader)
    rest = read(loader)
    assert read(other) == read(third) == rest and len(rest) == len(loader) - 2


def test_states_of_other_loaders(source, dataset, tmp_path):
    state = dataset.batches(10, shuffle="global", seed=1).state_dict()
    for options in ({"shuffle": "blocks", "seed": 1}, {"shuffle": "global", "seed": 2}):
        with pytest.raises(errors.UsageError, match="the state has"):
            dataset.batches(10, **options).load_state_dict(state)
    with pytest.raises(errors.UsageError, match="version"):
        dataset.batches(10, shuffle="global", seed=1).load_state_dict({**state, "version": 2})
    path = write_records(tmp_path / "x.tfrecord", [example(i=[1])])
    with pytest.raises(errors.UsageError, match="found 1 files, expected the 7"):
        tfarrow.Dataset(path).batches(10, shuffle="global", seed=1).load_state_dict(state)


def test_columns_of_batches(source, dataset):
    batch = next(tfarrow.scan(source).select("i").batches(10, shuffle=True))
    assert list(batch) == ["i"] and batch["i"].flags.writeable
    for name, count in (("sequence", 9), ("raw", 5)):
        scan = tfarrow.scan(TESTDATA / f"{name}.tfrecord")
        rows = [row for rank in range(2) for batch in scan.batches(1, rank=rank, world_size=2) for row in batch.to_pylist()]
        expected = scan.to_pylist()
        assert rows == expected[::2] + expected[1::2] and len(rows) == count


def test_fill(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(i=[1]), example(), example(i=[3])])
    assert [batch["i"].tolist() for batch in tfarrow.scan(path).batches(3, shuffle=False, fill=0)] == [[1, 0, 3]]
    assert tfarrow.Dataset(path, fill=7)[:]["i"].tolist() == [1, 7, 3]


def test_ranks_without_records(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(i=[0]), example(i=[1])])
    found = [read(tfarrow.scan(path).batches(4, rank=rank, world_size=3)) for rank in range(3)]
    assert found == [[[0]], [[1]], [[]]]


def test_empty_data_sets(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [])
    loader = tfarrow.scan(path).batches(4, shuffle=True)
    assert len(loader) == 0 and list(loader) == [] and list(loader) == []


@pytest.mark.parametrize("change", ["longer", "shorter", "removed"])
def test_changed_files_are_errors(tmp_path, change):
    paths = [write_records(tmp_path / f"{number}.tfrecord", [example(i=[i]) for i in range(10)]) for number in range(3)]
    dataset = tfarrow.Dataset(paths)
    if change == "removed":
        paths[1].unlink()
    else:
        write_records(paths[1], [example(i=[i]) for i in range(13 if change == "longer" else 7)])
    for shuffle in ORDERS:
        if change == "longer":
            # Records that were not counted are not read. Each of the others is still in one batch.
            assert sorted(flat(read(dataset.batches(4, shuffle=shuffle)))) == sorted([*range(10)] * 3)
        else:
            with pytest.raises(errors.TfarrowError):
                read(dataset.batches(4, shuffle=shuffle))


def test_wrong_arguments(dataset, source):
    for options in ({"rank": 0}, {"rank": 2, "world_size": 2}, {"rank": -1, "world_size": 2}, {"shuffle": "all"}, {"epoch": -1}):
        with pytest.raises(ValueError):
            dataset.batches(2, **options)
    with pytest.raises(ValueError, match="batch_size: expected a number from 1, found 0"):
        dataset.batches(0)
    with pytest.raises(TypeError, match="batch_size"):
        tfarrow.scan(source).batches(shuffle=True)


def test_ranks_of_the_environment(dataset, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert read(dataset.batches(8)) == read(dataset.batches(8, rank=1, world_size=2))


# -------------------------------------------------------------------------------------------------------------- mixtures


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Three data sets, whose records have the columns i and s: 0 to 1,999 in two files, 2,000 to 2,499, 2,500 to 2,599."""
    folder = tmp_path_factory.mktemp("mixture")
    for name, start, end in [("b/0", 0, 900), ("b/1", 900, 2000), ("a/0", 2000, 2500), ("c/0", 2500, 2600)]:
        (folder / name).parent.mkdir(exist_ok=True)
        write_records(folder / f"{name}.tfrecord", [example(i=[i], s=[name]) for i in range(start, end)])
    return {folder / "b": 0.6, folder / "a": 0.3, folder / "c": 0.1}


def test_mixtures_have_the_records_of_their_weights(sources):
    mixture = tfarrow.mix(sources, seed=1)
    assert len(mixture) == 2600 and mixture[2599]["i"] == 2599 and mixture._raw.turns() == [600, 300, 100]
    for shuffle in ORDERS:
        loader = mixture.batches(100, shuffle=shuffle)
        # The last source is read once in an epoch.
        epochs = [flat(read(loader)) for _ in range(3)]
        assert [len(epoch) for epoch in epochs] == [1000] * 3
        for epoch in epochs:
            assert sum(i < 2000 for i in epoch) == 600 and sorted(i for i in epoch if i >= 2500) == list(range(2500, 2600))
        # The first source is not read again before it was read to its end.
        of_first = [i for epoch in epochs for i in epoch if i < 2000]
        assert len(set(of_first)) == 1800
    assert read(mixture.batches(100, shuffle="global")) == read(mixture.batches(100, shuffle="global", seed=1))
    assert read(mixture.batches(100, shuffle="global")) != read(mixture.batches(100, shuffle="global", seed=2))


@pytest.mark.parametrize("shuffle", ORDERS)
def test_mixtures_are_stopped_and_continued(sources, shuffle):
    mixture = pickle.loads(pickle.dumps(tfarrow.mix(sources)))
    expected = collections.Counter(flat(read(mixture.batches(10, shuffle=shuffle, epoch=1))))
    loaders = [mixture.batches(10, shuffle=shuffle, epoch=1, rank=rank, world_size=3) for rank in range(3)]
    found = collections.Counter(i for loader in loaders for i in flat(read(itertools.islice(loader, 7))))
    state = json.loads(json.dumps(loaders[0].state_dict()))
    for rank in range(2):
        loader = mixture.batches(16, shuffle=shuffle, rank=rank, world_size=2)
        loader.load_state_dict(state)
        found.update(flat(read(loader)))
    assert found == expected
    other = tfarrow.mix({**sources, next(iter(sources)): 0.7}).batches(10, shuffle=shuffle)
    with pytest.raises(errors.UsageError, match="turns="):
        other.load_state_dict(state)


def test_mixtures_with_conditions_and_columns(sources):
    mixture = tfarrow.mix(sources, where="i % 2 = 0", columns=["i"])
    loader = mixture.batches(64, shuffle="blocks")
    # An epoch is half of a cycle of 1,000 turns.
    epochs = [flat(read(loader)) for _ in range(2)]
    assert len(mixture) == 1300 and [len(epoch) for epoch in epochs] == [500, 500]
    both = epochs[0] + epochs[1]
    assert all(i % 2 == 0 for i in both)
    assert sorted(i for i in both if i >= 2500) == sorted(2 * list(range(2500, 2600, 2)))
    with pytest.raises(errors.UsageError, match="source 1 has no records"):
        tfarrow.mix(sources, where="i < 2000")


def test_wrong_mixtures(sources):
    first, second, _ = sources
    with pytest.raises(errors.UsageError, match="a weight of 0.0001 of 1.0001: expected at least a thousandth"):
        tfarrow.mix({first: 1.0, second: 0.0001})
    with pytest.raises(errors.UsageError, match="a weight of 0: expected a number above 0"):
        tfarrow.mix({first: 1.0, second: 0})
    with pytest.raises(errors.UsageError, match="there are no sources|nothing to read"):
        tfarrow.mix({})
    with pytest.raises(errors.UsageError, match="the same file"):
        tfarrow.mix({first: 1.0, first / "0.tfrecord": 1.0})
