"""TFRecord in PyTorch.

>>> from torch.utils.data import DataLoader
>>> dataset = tfarrow.torch.IterableDataset("testdata/shards/", batch_size=64)
>>> [len(batch["label"]) for batch in DataLoader(dataset, batch_size=None)]
[64, 64, 64, 8]
"""

from __future__ import annotations

import functools
import io
import multiprocessing
import os
import pickle
import secrets
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _tfarrow
from ._batch import Batch
from ._extras import need
from ._loader import Dataset, Loader, LoaderState, ranks_of

if TYPE_CHECKING:
    import numpy as np

    from ._loader import Shuffle
    from ._scan import Scan, Source

if TYPE_CHECKING:
    import torch
else:
    torch = need("torch", "torch")

__all__ = ["IterableDataset"]


class IterableDataset(torch.utils.data.IterableDataset):
    """Shuffled batches of a data set, each record in one batch of one worker of one rank.

    The dataset makes the batches itself: give it to a ``DataLoader`` with ``batch_size=None``. Orders, ranks and sizes of batches
    are those of :class:`tfarrow.Loader`: all ranks have the same number of batches, and every batch but the last has
    ``batch_size`` records.

    Threads decode batches also with ``num_workers=0``, which is often the fastest; workers are for slow transforms.

    The records are found when the dataset is made. Workers that are not forked open the files anew: with compressed files, make
    indexes (``tfarrow index``). Records that are appended later are not read.

    Each iteration is another epoch, after the one of :meth:`set_epoch`. Workers that end with an epoch do not know of the one
    before: with ``num_workers``, call :meth:`set_epoch` before each epoch, as of a ``DistributedSampler``.

    Args:
        source: a :class:`tfarrow.Scan`, which may select columns and rows, a :class:`tfarrow.Dataset`, or what
            :func:`tfarrow.scan` takes.
        batch_size: the number of records of a batch.
        shuffle: ``"blocks"`` or True, ``"global"``, or False: see :class:`tfarrow.Loader`.
        seed: the seed of the order, the same on all ranks.
        drop_last: whether a last batch of fewer records is left out.
        columns, where: as of :func:`tfarrow.scan`.
        fill: as of :meth:`tfarrow.Scan.batches`.
        images: columns whose pixels are decoded: as of :class:`tfarrow.Dataset`.
        transform: is called with each batch, a dict as of :meth:`tfarrow.Batch.to_torch`, in the worker.
        rank, world_size: the rank and the number of ranks. By default those of ``torch.distributed``, else of the environment
            (``RANK``, ``WORLD_SIZE``), else one rank.
    """

    def __init__(
        self,
        source: Dataset | Scan | Source,
        *,
        batch_size: int,
        shuffle: Shuffle = None,
        seed: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        fill: Any | Mapping[str, Any] = None,
        images: Mapping[str, tuple[int, int]] | None = None,
        transform: Callable[[dict[str, Any]], Any] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ):
        super().__init__()
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size: give both, or none of them")
        if not isinstance(source, Dataset):
            source = Dataset(source, columns=columns, where=where, fill=fill, images=images)
        self._dataset, self._batch_size = source, batch_size
        self._options = {"shuffle": shuffle, "seed": seed, "drop_last": drop_last}
        self._transform = transform
        self._rank, self._world_size = rank, world_size
        # Workers that stay alive see the epoch that is set here. The second number counts the calls of set_epoch.
        self._set = torch.zeros(2, dtype=torch.int64).share_memory_()
        self._epochs = _Epochs()
        # The state that the next iteration begins with, and the one that the last one began with.
        self._state: LoaderState | None = None
        self._begun: LoaderState | None = None
        self._loader(0, 1)

    def _loader(self, worker: int, workers: int) -> Loader:
        rank, world_size = self._ranks()
        process = {"rank": rank, "world_size": world_size, "worker": worker, "workers": workers}
        return self._dataset.batches(self._batch_size, **self._options, **process)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration, also of workers that are alive."""
        self._set[0] = epoch
        self._set[1] += 1
        self._state = self._begun = None

    def state_dict(self, batches: int = 0) -> LoaderState:
        """The state after ``batches`` batches of this iteration, which began where :meth:`set_epoch` or a state says.

        A ``DataLoader`` reads ahead, so that only its caller knows how many batches were used. torchdata's ``StatefulDataLoader``
        counts them itself.

        >>> dataset = tfarrow.torch.IterableDataset("testdata/shards/", batch_size=64, shuffle="global")
        >>> dataset.load_state_dict(dataset.state_dict(batches=2))
        >>> [len(batch["label"]) for batch in dataset]
        [64, 8]
        """
        loader = self._loader(0, 1)
        # With workers, this process has begun no iteration.
        state = self._begun or self._state
        if state is None:
            loader.set_epoch(self._epochs.next(self._set, peek=True))
        else:
            loader.load_state_dict(state)
        return loader.state_after(batches)

    def load_state_dict(self, state: LoaderState) -> None:
        """Begins the next iteration after the last batch of a state, of any number of ranks and workers. Workers that are alive
        do not see it: make the ``DataLoader`` afterwards."""
        loader = self._loader(0, 1)
        loader.load_state_dict({**state, "batches": 0})
        self._state, self._begun = state, None

    def __iter__(self) -> _Batches:
        info = torch.utils.data.get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        loader = self._loader(worker, workers)
        if self._state is None:
            loader.set_epoch(self._epochs.next(self._set))
        else:
            loader.load_state_dict(self._state)
            self._epochs.follow(self._set, loader.epoch)
            self._state = None
        self._begun = loader.state_dict()
        return _Batches(loader, self._transform, info is not None)

    def __len__(self) -> int:
        """The number of batches of a rank, of an epoch."""
        return len(self._loader(0, 1))

    def _ranks(self) -> tuple[int, int]:
        if self._rank is not None and self._world_size is not None:
            return self._rank, self._world_size
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank()), int(distributed.get_world_size())
        return ranks_of(None, None)


class _Epochs:
    """The epochs of the iterations of one process."""

    def __init__(self) -> None:
        # The epoch of the next iteration, and the calls of set_epoch that were seen.
        self._next, self._seen = 0, 0

    def next(self, given: torch.Tensor, peek: bool = False) -> int:
        """The epoch of the next iteration: the one that was set, or the one after the last."""
        epoch, calls = map(int, given.tolist())
        if calls == self._seen:
            epoch = self._next
        if not peek:
            self._next, self._seen = epoch + 1, calls
        return epoch

    def follow(self, given: torch.Tensor, epoch: int) -> None:
        """Makes the epoch after ``epoch`` the next one."""
        self._next, self._seen = epoch + 1, int(given[1])


class _Batches(Iterator[Any]):
    """The batches of an iteration, and their state, for torchdata."""

    def __init__(self, loader: Loader, transform: Callable[[dict[str, Any]], Any] | None, is_worker: bool):
        self._loader, self._transform = loader, transform
        self._outbox = _Outbox() if is_worker else None
        self._is_over = False

    def __next__(self) -> Any:
        if self._is_over:
            raise StopIteration
        try:
            batch = next(self._loader)
        except StopIteration:
            self._is_over = True
            raise
        if self._transform is None:
            return batch.to_torch() if self._outbox is None else _SharedBatch(batch, self._outbox)
        found = self._transform(batch.to_torch())
        return found if self._outbox is None or type(found) is not dict else _SharedColumns(found, self._outbox)

    def state_dict(self) -> LoaderState:
        return self._loader.state_dict()

    def load_state_dict(self, state: LoaderState) -> None:
        self._loader.load_state_dict(state)


class _SharedBatch:
    """A batch that a worker sends to the loader, in a block of shared memory. The process of the loader makes the tensors.

    torch sends each tensor with a file descriptor of its own, and arrays of numpy through a pipe: for a batch of 40 columns
    that takes 20 times as long as reading it.

    A ``collate_fn`` of the worker may read it like a dict of columns. It is no Mapping, because torch would read all columns and
    make a dict.
    """

    def __init__(self, batch: Batch, outbox: _Outbox):
        self._batch, self._outbox = batch, outbox

    @functools.cached_property
    def _columns(self) -> dict[str, Any]:
        return self._batch.to_torch()

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __setitem__(self, name: str, values: Any) -> None:
        self._columns[name] = values

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __getattr__(self, name: str) -> Any:
        """The other methods of a dict."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._columns, name)

    def __reduce__(self) -> tuple[Any, ...]:
        batch = self._batch
        if "_columns" in self.__dict__:
            # They may have been written to.
            return _SharedColumns(self._columns, self._outbox).__reduce__()
        stream = batch._raw.to_ipc()
        block, message = self._outbox.take(len(stream))
        block.memory()[: len(stream)] = stream
        return _batch_of, (message, len(stream), batch._lengths, batch._fill)


def _batch_of(message: _Message, size: int, lengths: dict[str, int] | None, fill: Any) -> dict[str, Any]:
    """The columns of a batch, over a block of shared memory."""
    # A slice of an array would refer to the block, and not to the array.
    raw = _tfarrow.RawBatch.of_ipc(_memory_of(message).data[:size])
    return Batch(raw, lengths, fill).to_torch()


class _SharedColumns(dict[str, Any]):
    """The columns that a transform has made, likewise."""

    def __init__(self, columns: dict[str, Any], outbox: _Outbox):
        super().__init__(columns)
        self._outbox = outbox

    def __copy__(self) -> _SharedColumns:
        # torch copies the dict, and not what it would be sent as.
        return _SharedColumns(self, self._outbox)

    def __reduce__(self) -> tuple[Any, ...]:
        buffers: list[pickle.PickleBuffer] = []
        head = io.BytesIO()
        _Pickler(head, 5, buffer_callback=buffers.append).dump(dict(self))
        views = [buffer.raw() for buffer in buffers]
        sizes = [view.nbytes for view in views]
        block, message = self._outbox.take(sum(map(_aligned, sizes)))
        for view, place in zip(views, _places(block.memory(), sizes), strict=True):
            place[:] = view
        return _columns_of, (message, head.getvalue(), sizes)


def _columns_of(message: _Message, head: bytes, sizes: list[int]) -> dict[str, Any]:
    """The columns that a transform has made, over a block of shared memory."""
    columns: dict[str, Any] = pickle.loads(head, buffers=_places(_memory_of(message), sizes))
    return columns


class _Block:
    """Shared memory for a batch. The worker uses it again when the columns of the batch are gone in the process of the loader."""

    # The first bytes say whether columns are in the block.
    HEAD = 64

    def __init__(self, tensor: torch.Tensor):
        self._bytes: np.ndarray = tensor.numpy()

    @property
    def size(self) -> int:
        """The number of bytes for columns."""
        return len(self._bytes) - self.HEAD

    def memory(self) -> np.ndarray:
        """The bytes for columns, as another array each time."""
        return self._bytes[self.HEAD :]

    @property
    def is_taken(self) -> bool:
        return bool(self._bytes[0])

    def take(self) -> None:
        self._bytes[0] = 1

    def free(self) -> None:
        self._bytes[0] = 0


class _Message(NamedTuple):
    """Where the columns of a batch are."""

    # The worker.
    pid: int
    outbox: int
    # The number of the block, and its memory when it is sent for the first time.
    number: int
    memory: torch.Tensor | None
    # The blocks that will not be used again.
    dropped: list[int]


class _Outbox:
    """The blocks of a worker, by their numbers. To open shared memory takes longer than to read a small batch."""

    # Free blocks that are kept.
    _MOST_FREE = 4

    def __init__(self) -> None:
        self._name, self._made = secrets.randbits(63), 0
        self._blocks: dict[int, _Block] = {}

    def take(self, size: int) -> tuple[_Block, _Message]:
        """A block for so many bytes, and what tells the process of the loader of it."""
        found, dropped, free = None, [], 0
        for number, block in list(self._blocks.items()):
            if block.is_taken:
                continue
            if block.size < size or free == self._MOST_FREE:
                del self._blocks[number]
                dropped.append(number)
                continue
            found, free = number, free + 1
        memory = None
        if found is None:
            # The next batches may be somewhat larger.
            memory = torch.zeros(_Block.HEAD + size + size // 4, dtype=torch.uint8).share_memory_()
            found = self._made = self._made + 1
            self._blocks[found] = _Block(memory)
        block = self._blocks[found]
        block.take()
        return block, _Message(os.getpid(), self._name, found, memory, dropped)


# The blocks of the workers of this process, by the names of their outboxes.
_INBOXES: dict[tuple[int, int], dict[int, _Block]] = {}


def _memory_of(message: _Message) -> np.ndarray:
    """The bytes of a block, which the worker uses again when this array is gone."""
    worker = message.pid, message.outbox
    if worker not in _INBOXES:
        _forget_workers(message.pid)
    blocks = _INBOXES.setdefault(worker, {})
    for number in message.dropped:
        blocks.pop(number, None)
    if message.memory is not None:
        blocks[message.number] = _Block(message.memory)
    block = blocks[message.number]
    memory = block.memory()
    weakref.finalize(memory, block.free).atexit = False
    return memory


def _forget_workers(pid: int) -> None:
    """Closes the blocks of the workers that have ended. ``pid`` is one that has not."""
    running = {child.pid for child in multiprocessing.active_children()}
    if pid not in running:
        # The loader is in another process than the one that started its workers.
        return
    for worker in list(_INBOXES):
        if worker[0] not in running:
            del _INBOXES[worker]


class _Pickler(pickle.Pickler):
    """Writes tensors as arrays, whose memory is pickled apart from them."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not torch.Tensor:
            return NotImplemented
        try:
            return torch.from_numpy, (obj.numpy(),)
        except (RuntimeError, TypeError):
            # The tensor of a transform may have no form in numpy.
            return NotImplemented


def _places(memory: np.ndarray, sizes: list[int]) -> list[memoryview]:
    """The places of buffers of these sizes in a block."""
    places, start, data = [], 0, memory.data
    for size in sizes:
        places.append(data[start : start + size])
        start += _aligned(size)
    return places


def _aligned(size: int) -> int:
    return -(-size // 64) * 64
