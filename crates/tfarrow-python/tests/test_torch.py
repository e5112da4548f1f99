# SPDX-License-Identifier: Apache-2.0
"""PyTorch: tensors without a copy, and a dataset whose records are divided among ranks and workers."""

import collections
import gc
import itertools
import json
import operator
import os
import pickle
import random
import shutil

import numpy as np
import pytest

import tfarrow
from support import TESTDATA

torch = pytest.importorskip("torch")
DataLoader = torch.utils.data.DataLoader

RECORDS = 1003
# Files of very different sizes, so that ranks, workers and batches begin and end within files and between them.
FILES = [400, 1, 3, 599]
FIXED = "make_array(arrow_cast(value, 'Float32'), 0.5, -1.0) AS embedding"
RAGGED = "CASE WHEN value % 3 = 0 THEN make_array(value) ELSE make_array(value, -value) END AS ragged"
# Workers, and how they are started.
WORKERS = [(0, None), (1, "fork"), (2, "fork"), (2, "spawn"), (2, "forkserver")]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder, start = tmp_path_factory.mktemp("shards"), 0
    for number, records in enumerate(FILES):
        numbers = f"generate_series({start}, {start + records - 1})"
        rows = tfarrow.sql(f"SELECT value AS id, {FIXED}, 'text ' || value AS name, {RAGGED} FROM {numbers}")
        tfarrow.write(rows, folder / f"{number}.tfrecord")
        start += records
    assert start == RECORDS
    return folder


def loader(shards, workers=0, context=None, **options):
    dataset = tfarrow.torch.IterableDataset(shards, **{"batch_size": 64} | options)
    return DataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=context)


def ids(batches):
    return [batch["id"].tolist() for batch in batches]


@pytest.mark.parametrize("workers, context", WORKERS)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_each_record_is_in_one_batch_of_one_rank(shards, ranks, workers, context):
    loaders = [loader(shards, workers, context, rank=rank, world_size=ranks) for rank in range(ranks)]
    read = [ids(batches) for batches in loaders]
    seen = collections.Counter(record for batches in read for batch in batches for record in batch)
    assert seen == dict.fromkeys(range(RECORDS), 1)
    assert {len(batches) for batches in read} == {len(loaders[0])}
    assert all(0 < len(batch) <= 64 for batches in read for batch in batches)


@pytest.mark.parametrize("workers, context", WORKERS[:3])
def test_epochs_are_equal(shards, workers, context):
    batches = loader(shards, workers, context)
    assert ids(batches) == ids(batches) == ids(loader(shards, workers, context))


@pytest.mark.parametrize("workers", [0, 2])
def test_all_columns_arrive(shards, workers):
    for batch in loader(shards, workers):
        numbers = batch["id"]
        assert numbers.dtype == torch.int64
        assert torch.equal(batch["embedding"][:, 0], numbers.float())
        assert batch["embedding"].shape == (len(numbers), 3)
        assert batch["name"].tolist() == [f"text {number}" for number in numbers.tolist()]
        ragged = batch["ragged"]
        assert torch.equal(ragged.lengths, torch.where(numbers % 3 == 0, 1, 2))
        assert torch.equal(ragged.values[ragged.offsets[:-1]], numbers)


def test_numbers_become_tensors_without_a_copy(shards, recwarn):
    batch = next(tfarrow.scan(shards).batches(100))
    arrays, tensors = batch.to_numpy(), batch.to_torch()
    for name in ["id", "embedding"]:
        assert tensors[name].data_ptr() == arrays[name].ctypes.data
        assert arrays[name].flags.writeable and not arrays[name].flags.owndata
    assert tensors["ragged"].values.data_ptr() == arrays["ragged"].values.ctypes.data
    assert tensors["ragged"].offsets.data_ptr() == arrays["ragged"].offsets.ctypes.data
    tensors["id"].fill_(-1)
    assert (arrays["id"] == -1).all()
    # Torch warns of arrays that may not be written to.
    assert not recwarn.list


def test_whole_scans_become_tensors(shards, recwarn):
    tensors = tfarrow.scan(shards).to_torch(fill=0)
    assert torch.equal(tensors["id"], torch.arange(RECORDS))
    assert tensors["ragged"].shape == (RECORDS, 2)
    assert not recwarn.list


def test_a_tensor_outlives_its_scan(shards):
    tensors = [batch.to_torch()["id"] for batch in tfarrow.scan(shards).batches(10)]
    assert torch.equal(torch.cat(tensors), torch.arange(RECORDS))


def test_what_is_written_to_a_batch_is_in_no_other(shards):
    seen = []
    for batch in tfarrow.scan(shards).batches(7):
        tensors = batch.to_torch()
        seen += tensors["id"].tolist()
        assert torch.equal(tensors["embedding"][:, 0].long(), tensors["id"])
        tensors["id"].fill_(-1)
        tensors["embedding"].fill_(-1)
    assert seen == list(range(RECORDS))


def test_batches_of_equal_size(shards):
    batches = ids(loader(shards, 2, drop_last=True, rank=1, world_size=2))
    assert [len(batch) for batch in batches] == [64] * 7


@pytest.mark.parametrize("workers", [0, 2])
def test_more_ranks_than_records(shards, workers, recwarn):
    # The ranks without a record have an empty batch, because a training step waits for all ranks.
    one = shards / "1.tfrecord"
    read = [list(loader(one, workers, rank=rank, world_size=3)) for rank in range(3)]
    assert [ids(batches) for batches in read] == [[[400]], [[]], [[]]]
    empty = read[1][0]
    assert empty["id"].dtype == torch.int64
    assert empty["embedding"].shape == (0, 3)
    assert len(empty["name"]) == len(empty["ragged"]) == 0
    assert not recwarn.list


def test_batches_of_one_record(shards):
    read = [ids(loader(shards, batch_size=1, rank=rank, world_size=3)) for rank in range(3)]
    assert {len(batches) for batches in read} == {335}
    assert sorted(sum(sum(read, []), [])) == list(range(RECORDS))


def test_more_workers_than_batches(shards):
    assert sum(ids(loader(shards / "2.tfrecord", 2)), []) == [401, 402, 403]


@pytest.mark.parametrize("workers", [0, 2])
def test_fill_and_transform(shards, workers):
    # Batches of two workers come in turn, so that records are not in the order of their numbers.
    rows = sum(loader(shards, workers, fill={"ragged": 0}, transform=ids_and_ragged), [])
    assert sorted(rows) == [[number, number, -number if number % 3 else 0] for number in range(RECORDS)]


def ids_and_ragged(batch):
    return [[number, *row] for number, row in zip(batch["id"].tolist(), batch["ragged"].tolist())]


def test_selected_columns(shards):
    batch = next(iter(loader(tfarrow.scan(shards).select("name", "id"))))
    assert list(batch) == ["name", "id"]


def test_ranks_of_the_environment(shards, monkeypatch):
    batches = loader(shards)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert ids(batches) == ids(loader(shards, rank=1, world_size=2))
    assert len(batches) == 8


def test_ranks_of_a_process_group(shards, tmp_path, monkeypatch):
    # The environment of another launcher does not count.
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "6")
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        assert sum(ids(loader(shards)), []) == list(range(RECORDS))
    finally:
        torch.distributed.destroy_process_group()


def _train(config):
    """The loop of a worker of Ray Train, whose rank is that of its process group."""
    import ray.train

    rank = ray.train.get_context().get_world_rank()
    batches = loader(config["shards"], batch_size=32, shuffle="global", seed=1)
    epochs = []
    for epoch in range(2):
        batches.dataset.set_epoch(epoch)
        epochs.append(ids(batches))
    with open(os.path.join(config["results"], f"{rank}.json"), "w") as file:
        json.dump(epochs, file)


@pytest.mark.filterwarnings("ignore")
def test_ranks_of_ray_train(shards, tmp_path):
    ray = pytest.importorskip("ray")
    train = pytest.importorskip("ray.train.torch")
    path = os.pathsep.join([os.path.dirname(__file__), os.path.dirname(os.path.dirname(tfarrow.__file__))])
    ray.init(num_cpus=3, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": path}})
    try:
        config = {"shards": str(shards), "results": str(tmp_path)}
        scaling, run = ray.train.ScalingConfig(num_workers=2), ray.train.RunConfig(storage_path=str(tmp_path))
        train.TorchTrainer(_train, train_loop_config=config, scaling_config=scaling, run_config=run).fit()
    finally:
        ray.shutdown()
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first[0] != first[1]
    for of_first, of_second in zip(first, second):
        assert len(of_first) == len(of_second) == 16
        assert sorted(i for batch in of_first + of_second for i in batch) == list(range(RECORDS))


def test_a_dataset_is_pickled_as_its_arguments(shards):
    dataset = tfarrow.torch.IterableDataset(shards, batch_size=64)
    pickled = pickle.dumps(dataset)
    assert len(pickled) < 2000
    assert ids(pickle.loads(pickled)) == ids(dataset)


def test_selected_rows(shards):
    for scan in [tfarrow.scan(shards, where="id > 900"), tfarrow.scan(shards).where("id > 3").limit(99)]:
        read = [ids(loader(scan, rank=rank, world_size=2)) for rank in range(2)]
        assert [len(batches) for batches in read] == [1, 1]
        assert sorted(sum(sum(read, []), [])) == scan.to_numpy()["id"].tolist()
    assert sum(ids(loader(shards, where="id < 9", columns=["id"])), []) == list(range(9))


def test_wrong_arguments(shards):
    with pytest.raises(ValueError, match="batch_size: expected a number from 1, found 0"):
        loader(shards, batch_size=0)
    with pytest.raises(ValueError, match="give both, or none"):
        loader(shards, rank=0)
    with pytest.raises(ValueError, match="rank: expected a number from 0 to 1, found 2"):
        ids(loader(shards, rank=2, world_size=2))
    with pytest.raises(ValueError, match="shuffle: expected"):
        loader(shards, shuffle="all")


@pytest.mark.parametrize("shuffle", ["blocks", "global"])
@pytest.mark.parametrize("workers, context", WORKERS)
def test_shuffled_records_are_in_one_batch(shards, shuffle, workers, context):
    options = {"shuffle": shuffle, "seed": 3, "world_size": 2}
    read = [ids(loader(shards, workers, context, rank=rank, **options)) for rank in range(2)]
    assert sorted(sum(sum(read, []), [])) == list(range(RECORDS)) != sum(read[0], [])
    # Workers do not change the order.
    assert read == [ids(loader(shards, rank=rank, **options)) for rank in range(2)]
    assert all(len(batch) == 64 for batches in read for batch in batches[:-1])


def test_epochs_are_shuffled_anew(shards):
    batches = loader(shards, shuffle="global", seed=1)
    first, second = ids(batches), ids(batches)
    assert first != second
    batches.dataset.set_epoch(1)
    assert ids(batches) == second
    batches.dataset.set_epoch(0)
    assert ids(batches) == first


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_see_the_epoch(shards, persistent):
    alone = loader(shards, shuffle="global", seed=1)
    expected = [ids(alone) for _ in range(3)]
    dataset = tfarrow.torch.IterableDataset(shards, batch_size=64, shuffle="global", seed=1)
    batches = DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=persistent)
    for epoch in [0, 2, 1]:
        dataset.set_epoch(epoch)
        assert ids(batches) == expected[epoch]


def test_runs_are_stopped_and_continued(shards):
    chance = random.Random(1)
    for attempt in range(20):
        shuffle, state, seen = ["blocks", "global"][attempt % 2], None, []
        for stop in range(3):
            ranks, workers = chance.choice([1, 2, 3]), chance.choice([0, 0, 1, 2])
            used = chance.randint(0, 4) if stop < 2 else None
            states = []
            for rank in range(ranks):
                batches = loader(shards, workers, shuffle=shuffle, seed=attempt, rank=rank, world_size=ranks)
                if state is not None:
                    batches.dataset.load_state_dict(state)
                seen += sum(ids(itertools.islice(batches, used)), [])
                states.append(batches.dataset.state_dict(batches=used or 0))
            assert all(found == states[0] for found in states)
            state = json.loads(json.dumps(states[0]))
        assert sorted(seen) == list(range(RECORDS))


def test_a_state_is_that_of_the_iteration(shards):
    dataset = tfarrow.torch.IterableDataset(shards, batch_size=64, shuffle="global", seed=1)
    for epoch in range(3):
        assert dataset.state_dict()["epoch"] == max(epoch - 1, 0)
        found = ids(itertools.islice(dataset, 5))
        state = dataset.state_dict(batches=5)
        assert (state["epoch"], state["position"]) == (epoch, 5 * 64)
        other = tfarrow.torch.IterableDataset(shards, batch_size=64, shuffle="global", seed=1)
        other.load_state_dict(state)
        found += ids(other)
        assert sorted(sum(found, [])) == list(range(RECORDS))
        assert other.state_dict(batches=2)["position"] == 7 * 64


# torchdata 0.11 looks at names of torch that are deprecated.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_of_torchdata(shards, workers):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        dataset = tfarrow.torch.IterableDataset(shards, batch_size=64, shuffle="global", seed=1)
        return torchdata.StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    expected = ids(make())
    for used in (1, 5, 8):
        stopped = make()
        first = ids(itertools.islice(stopped, used))
        state = stopped.state_dict()
        continued = make()
        continued.load_state_dict(state)
        assert first + ids(continued) == expected


# Lightning and torchdata look at names of torch that are deprecated.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_checkpoint_of_lightning(shards, tmp_path, workers):
    lightning = pytest.importorskip("lightning")
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer, self.seen = torch.nn.Linear(3, 1), []

        def training_step(self, batch, number):
            self.seen.append((self.current_epoch, batch["id"].tolist()))
            return self.layer(batch["embedding"]).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 1e-3)

        def train_dataloader(self):
            dataset = tfarrow.torch.IterableDataset(shards, batch_size=100, shuffle="global", seed=1)
            return torchdata.StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    def train(epochs, checkpoint=None, callbacks=()):
        model = Model()
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "default_root_dir": tmp_path}
        trainer = lightning.Trainer(accelerator="cpu", max_epochs=epochs, callbacks=[*callbacks], **quiet)
        trainer.fit(model, ckpt_path=checkpoint, weights_only=False if checkpoint else None)
        return model.seen

    whole = train(2)
    assert [epoch for epoch, _ in whole] == [0] * 11 + [1] * 11
    for epoch in (0, 1):
        assert sorted(i for at, batch in whole if at == epoch for i in batch) == list(range(RECORDS))
    saved = lightning.pytorch.callbacks.ModelCheckpoint(dirpath=tmp_path, filename="{step}", every_n_train_steps=4, save_top_k=-1)
    train(1, callbacks=[saved])
    assert train(2, tmp_path / "step=4.ckpt") == whole[4:]


def test_single_records(shards):
    dataset = tfarrow.Dataset(shards, columns=["id", "embedding", "name"])
    sampler = torch.utils.data.DistributedSampler(dataset, num_replicas=2, rank=1, shuffle=True, seed=1)
    batches = list(DataLoader(dataset, batch_size=50, sampler=sampler, num_workers=2))
    assert len({number for batch in batches for number in batch["id"].tolist()}) == RECORDS // 2 + 1
    for batch in batches:
        assert torch.equal(batch["embedding"][:, 0], batch["id"].float())
        assert batch["name"] == [f"text {number}" for number in batch["id"].tolist()]


@pytest.mark.parametrize("workers", [0, 2])
def test_corrupt_records(shards, tmp_path, workers):
    data = bytearray((shards / "3.tfrecord").read_bytes())
    data[-10] ^= 1
    (tmp_path / "corrupt.tfrecord").write_bytes(data)
    with pytest.raises(tfarrow.errors.CorruptError, match="corrupt.tfrecord"):
        ids(loader(tmp_path, workers))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_file_with_fewer_records_than_were_counted(shards, tmp_path, workers):
    path = tmp_path / "changing.tfrecord"
    shutil.copy(shards / "0.tfrecord", path)
    batches = loader(path, workers)
    os.replace(shutil.copy(shards / "2.tfrecord", tmp_path / "new"), path)
    with pytest.raises(tfarrow.errors.TfarrowError, match="changing.tfrecord"):
        ids(batches)


def test_texts_and_bytes_are_no_tensors(shards):
    batch = next(tfarrow.scan(shards).batches(5)).to_torch()
    assert isinstance(batch["name"], tfarrow.BytesColumn)
    assert isinstance(batch["name"].data, np.ndarray)


def _odd(batch):
    """A transform whose dict has values of all kinds."""
    numbers = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    return {
        **batch,
        "half": numbers.to(torch.bfloat16),
        "across": numbers.t(),
        "some": numbers[:, ::2],
        "one": torch.tensor(5),
        "none": torch.empty(0, 3),
        "weights": torch.nn.Parameter(numbers),
        "inner": {"a": numbers > 5, "b": [numbers, "text"]},
        "array": np.arange(3),
        "text": "text",
    }


def same_values(ours, theirs):
    assert type(ours) is type(theirs)
    if isinstance(ours, torch.Tensor):
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for name in ours:
            same_values(ours[name], theirs[name])
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs):
            same_values(mine, other)
    elif isinstance(ours, np.ndarray):
        assert np.array_equal(ours, theirs)
    elif isinstance(ours, tfarrow.Ragged):
        for name in ("values", "offsets", "valid"):
            same_values(getattr(ours, name), getattr(theirs, name))
    elif isinstance(ours, tfarrow.BytesColumn):
        assert ours.tolist() == theirs.tolist()
    else:
        assert ours == theirs


@pytest.mark.parametrize("transform", [None, _odd])
@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("path", ["shards", "ragged.tfrecord", "sequence.tfrecord", "states.tfrecord"])
def test_workers_send_what_the_loader_would_make(path, context, transform):
    options = {"source": TESTDATA / path, "batch_size": 5, "transform": transform}
    alone = list(DataLoader(tfarrow.torch.IterableDataset(**options), batch_size=None))
    sent = list(DataLoader(tfarrow.torch.IterableDataset(**options), batch_size=None, num_workers=1, multiprocessing_context=context))
    assert len(alone) == len(sent) > 0
    for ours, theirs in zip(sent, alone):
        same_values(ours, theirs)


def test_the_columns_of_a_batch_are_sent_as_one_block(shards):
    outbox = tfarrow.torch._Outbox()
    columns = next(tfarrow.scan(shards).batches(100)).to_torch()
    _, (message, head, sizes) = tfarrow.torch._SharedColumns(columns, outbox).__reduce__()
    assert len(head) < 2_000
    assert sum(sizes) >= columns["id"].nbytes + columns["embedding"].nbytes + len(columns["name"].data)
    assert sum(sizes) <= message.memory.nbytes <= 2 * sum(sizes) + 64 * (len(sizes) + 1)


def blocks():
    """The numbers of the blocks of the workers of this process."""
    return {worker: set(found) for worker, found in tfarrow.torch._INBOXES.items()}


@pytest.mark.parametrize("transform", [None, _odd])
def test_blocks_are_used_again(shards, transform):
    before = blocks().keys()
    count = 0
    for batch in loader(shards, 1, batch_size=1, transform=transform):
        count += len(batch["id"])
    (found,) = blocks().keys() - before
    assert count == RECORDS
    # Of the two batches that a worker reads ahead, and those that the loop and the queue hold.
    assert max(blocks()[found]) < 20


def _collated(batch):
    assert len(batch) == 4 and "id" in batch and list(batch) == list(batch.keys()) == list({**batch})
    batch["id"] += 1
    return batch


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_are_dicts_for_a_collate_function(shards, workers):
    dataset = tfarrow.torch.IterableDataset(shards, batch_size=64)
    found = list(DataLoader(dataset, batch_size=None, num_workers=workers, collate_fn=_collated))
    assert [i for batch in ids(found) for i in batch] == list(range(1, RECORDS + 1))
    columns = DataLoader(dataset, batch_size=None, num_workers=workers, collate_fn=operator.itemgetter("id"))
    assert torch.cat(list(columns)).tolist() == list(range(RECORDS))


def test_a_block_is_not_used_again_before_its_batch_is_gone(shards):
    kept = list(loader(shards, 2, batch_size=7))
    expected = list(loader(shards, 0, batch_size=7))
    assert ids(kept) == ids(expected)
    # A column, or a part of one, keeps the block of its batch.
    parts = [(batch["id"][1:2], batch["embedding"][0, :1], batch["name"].data) for batch in loader(shards, 2, batch_size=7)]
    for (label, values, name), batch in zip(parts, expected):
        assert label.tolist() == batch["id"][1:2].tolist() and values.tolist() == batch["embedding"][0, :1].tolist()
        assert name.tobytes() == batch["name"].data.tobytes()


def test_batches_may_grow():
    outbox = tfarrow.torch._Outbox()
    numbers = []
    for size in (10, 20, 20, 1000, 10):
        columns = {"x": torch.arange(size)}
        make, arguments = tfarrow.torch._SharedColumns(columns, outbox).__reduce__()
        assert make(*arguments)["x"].tolist() == list(range(size))
        message = arguments[0]
        numbers.append((message.number, message.dropped))
    assert numbers == [(1, []), (2, [1]), (2, []), (3, [2]), (3, [])]


def test_the_blocks_of_workers_that_ended_are_closed(shards):
    next(iter(loader(shards, 2)))
    gc.collect()
    next(iter(loader(shards, 2)))
    assert len(blocks()) <= 4
