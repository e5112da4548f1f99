"""TFRecord in JAX.

>>> batches = tfarrow.jax.batches("testdata/shards/", 64, columns=["label", "embedding"], shuffle="global", seed=1)
>>> [batch["embedding"].shape for batch in batches]
[(64, 8), (64, 8), (64, 8)]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._extras import need
from ._loader import Dataset, Loader, LoaderState
from .errors import DataError

if TYPE_CHECKING:
    from ._scan import Scan, Source

jax: Any = need("jax", "jax")

__all__ = ["Batches", "batches"]


class Batches(Iterator[dict[str, Any]]):
    """Batches as dicts of arrays of JAX. Made by :func:`batches`. It has the epochs and the states of a :class:`tfarrow.Loader`."""

    def __init__(self, loader: Loader, sharding: Any):
        self._loader, self._sharding = loader, sharding

    def __iter__(self) -> Batches:
        return self

    def __len__(self) -> int:
        """The number of batches of an epoch, of each process."""
        return len(self._loader)

    def __next__(self) -> dict[str, Any]:
        columns = next(self._loader).to_numpy()
        return {name: self._put(name, column) if isinstance(column, np.ndarray) else column for name, column in columns.items()}

    def _put(self, name: str, column: np.ndarray) -> Any:
        if not jax.config.jax_enable_x64:
            _check(name, column)
        if self._sharding is None:
            return jax.device_put(column)
        return jax.make_array_from_process_local_data(self._sharding, column)

    @property
    def epoch(self) -> int:
        """The number of the epoch, from 0."""
        return self._loader.epoch

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch from its start."""
        self._loader.set_epoch(epoch)

    def state_dict(self) -> LoaderState:
        """The state after the last batch, which is the same in all processes."""
        return self._loader.state_dict()

    def load_state_dict(self, state: LoaderState) -> None:
        """Goes on after the last batch of a state, which may be that of another number of processes."""
        self._loader.load_state_dict(state)


def batches(
    source: Dataset | Scan | Source,
    batch_size: int,
    *,
    sharding: Any = None,
    drop_last: bool = True,
    fill: Any | Mapping[str, Any] = None,
    rank: int | None = None,
    world_size: int | None = None,
    **options: Any,
) -> Batches:
    """Reads batches of equal size for a training loop.

    Numbers are arrays of JAX; bytes, texts and ragged columns are as in :class:`tfarrow.Batch`. ``fill`` makes arrays of ragged
    numbers. Without ``jax_enable_x64``, JAX holds int64 in 32 bits; a value that does not fit is an error, and is not cut off.

    Args:
        source: a :class:`tfarrow.Dataset`, a :class:`tfarrow.Scan`, or what :func:`tfarrow.scan` takes.
        batch_size: the number of records of a batch of one process.
        sharding: a sharding of the batches of all processes, whose first axis is that of records; one device by default.
        drop_last: whether a last batch of fewer records is left out. Another shape would compile a jitted function again.
        fill: as of :meth:`tfarrow.Scan.batches`.
        rank, world_size: the process and the number of processes; by default those of JAX.
        **options: ``columns``, ``where`` and ``images`` of :class:`tfarrow.Dataset`; ``shuffle``, ``seed`` and ``epoch`` of
            :meth:`tfarrow.Scan.batches`.

    Raises:
        DataError: a column of int64 has a value that 32 bits do not hold. Raised at its batch.
    """
    if not isinstance(source, Dataset):
        given = {name: options.pop(name, None) for name in ("columns", "where", "images")}
        source = Dataset(source, fill=fill, **given)
    if rank is None and world_size is None:
        rank, world_size = jax.process_index(), jax.process_count()
    return Batches(source.batches(batch_size, drop_last=drop_last, rank=rank, world_size=world_size, **options), sharding)


def _check(name: str, column: np.ndarray) -> None:
    """Checks that JAX does not change the values of a column."""
    narrow = {"int64": np.int32, "uint64": np.uint32}.get(column.dtype.name)
    if narrow is None or column.size == 0:
        return
    limits = np.iinfo(narrow)
    for value in (column.min(), column.max()):
        if not limits.min <= value <= limits.max:
            raise DataError(
                f"column {name!r} has {value}, which JAX would hold as {limits.dtype} and cut off: "
                'call jax.config.update("jax_enable_x64", True), or leave the column out',
                feature=name,
            )
