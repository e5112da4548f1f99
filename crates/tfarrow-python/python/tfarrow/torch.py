"""TFRecord in PyTorch.

>>> from torch.utils.data import DataLoader
>>> dataset = tfarrow.torch.IterableDataset("testdata/shards/", batch_size=64)
>>> [len(batch["label"]) for batch in DataLoader(dataset, batch_size=None)]
[50, 50, 50, 50]
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._division import Division
from ._extras import need

if TYPE_CHECKING:
    from ._scan import Scan, Source

if TYPE_CHECKING:
    import torch
else:
    torch = need("torch", "torch")

__all__ = ["IterableDataset"]


class IterableDataset(torch.utils.data.IterableDataset):
    """The batches of a data set, each record in one batch of one worker of one rank.

    The dataset makes the batches itself: give it to a ``DataLoader`` with ``batch_size=None``. All ranks have the same number
    of batches, in the same order in each epoch. The records of a rank are spread over its batches evenly, so that no batch is
    larger than ``batch_size`` and the last one is hardly smaller than the others.

    The records of each file are counted when the dataset is made, by their frames; compressed files are decompressed for
    that. Records that are appended later are not read. Threads decode batches also with ``num_workers=0``, which is often the
    fastest; workers are for slow transforms.

    Args:
        source: a :class:`tfarrow.Scan`, which may select columns, or what :func:`tfarrow.scan` takes.
        batch_size: maximum number of records of a batch.
        drop_last: whether all batches have exactly ``batch_size`` records, and the records that are left over are dropped.
        fill: as of :meth:`tfarrow.Scan.batches`.
        transform: is called with each batch, a dict as of :meth:`tfarrow.Batch.to_torch`, in the worker.
        rank, world_size: the rank and the number of ranks. By default those of ``torch.distributed``, else of the environment
            (``RANK``, ``WORLD_SIZE``), else one rank.
    """

    def __init__(
        self,
        source: Scan | Source,
        *,
        batch_size: int,
        drop_last: bool = False,
        fill: Any | Mapping[str, Any] = None,
        transform: Callable[[dict[str, Any]], Any] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ):
        super().__init__()
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size: give both, or none of them")
        self._division = Division(source, batch_size=batch_size, drop_last=drop_last)
        self._fill, self._transform = fill, transform
        self._rank, self._world_size = rank, world_size

    def __iter__(self) -> Iterator[Any]:
        rank, ranks = self._ranks()
        info = torch.utils.data.get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        for batch in self._division.batches(rank, ranks, worker, workers, fill=self._fill):
            tensors = batch.to_torch()
            found = tensors if self._transform is None else self._transform(tensors)
            yield _SharedBatch(found) if info is not None and type(found) is dict else found

    def __len__(self) -> int:
        """The number of batches of a rank."""
        return self._division.count(self._ranks()[1])

    def _ranks(self) -> tuple[int, int]:
        if self._rank is not None and self._world_size is not None:
            return self._rank, self._world_size
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


class _SharedBatch(dict[str, Any]):
    """The columns of a batch that a worker sends to the loader, in one block of shared memory.

    torch sends each tensor with a file descriptor of its own, and arrays of numpy through a pipe: for a batch of 40 columns
    that takes 20 times as long as reading it.
    """

    def __copy__(self) -> _SharedBatch:
        return _SharedBatch(self)

    def __reduce__(self) -> tuple[Any, ...]:
        buffers: list[pickle.PickleBuffer] = []
        head = io.BytesIO()
        _Pickler(head, 5, buffer_callback=buffers.append).dump(dict(self))
        views = [buffer.raw() for buffer in buffers]
        sizes = [view.nbytes for view in views]
        block = torch.empty(sum(map(_aligned, sizes)), dtype=torch.uint8)
        for view, place in zip(views, _places(block, sizes), strict=True):
            place[:] = view
        return _from_shared, (head.getvalue(), sizes, block)


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


def _from_shared(head: bytes, sizes: list[int], block: torch.Tensor) -> dict[str, Any]:
    """The columns of a batch, over one block of shared memory."""
    columns: dict[str, Any] = pickle.loads(head, buffers=_places(block, sizes))
    return columns


def _places(block: torch.Tensor, sizes: list[int]) -> list[memoryview]:
    """The places of buffers of these sizes in a block."""
    places, start, memory = [], 0, block.numpy().data
    for size in sizes:
        places.append(memory[start : start + size])
        start += _aligned(size)
    return places


def _aligned(size: int) -> int:
    return -(-size // 64) * 64
