"""TFRecord in Keras 3, with any backend.

>>> data = tfarrow.keras.dataset("testdata/shards/", batch_size=64, inputs="embedding", targets="label", shuffle="global")
>>> inputs, targets = data[0]
>>> inputs.shape, targets.shape, len(data)
((64, 8), (64,), 4)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._extras import need
from ._loader import Dataset

if TYPE_CHECKING:
    from ._batch import Batch
    from ._loader import Shuffle
    from ._scan import Scan, Source

keras: Any = need("keras", "keras")

__all__ = ["Batches", "dataset"]

# The threads of Keras that read batches, at most.
_WORKERS = 4


class Batches(keras.utils.PyDataset):  # type: ignore[misc]
    """Batches for ``Model.fit``, ``evaluate`` and ``predict``. Made by :func:`dataset`. Each epoch is shuffled anew."""

    def __init__(self, loader: Any, inputs: Any, targets: Any, workers: int):
        super().__init__(workers=workers, use_multiprocessing=False)
        self._loader, self._inputs, self._targets = loader, inputs, targets

    def __len__(self) -> int:
        return len(self._loader)

    def __getitem__(self, index: int) -> Any:
        batch = self._loader.batch(index)
        inputs = _arrays(batch, self._inputs)
        return (inputs,) if self._targets is None else (inputs, _arrays(batch, self._targets))

    def on_epoch_end(self) -> None:
        self._loader.set_epoch(self._loader.epoch + 1)


def dataset(
    source: Dataset | Scan | Source,
    *,
    batch_size: int,
    inputs: str | Sequence[str],
    targets: str | Sequence[str] | None = None,
    shuffle: Shuffle = None,
    seed: int = 0,
    drop_last: bool = False,
    where: str | None = None,
    fill: Any | Mapping[str, Any] = None,
    images: Mapping[str, tuple[int, int]] | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    workers: int | None = None,
) -> Batches:
    """Batches of inputs and targets: ``model.fit(tfarrow.keras.dataset(..))``.

    Args:
        source: a :class:`tfarrow.Dataset`, a :class:`tfarrow.Scan`, or what :func:`tfarrow.scan` takes.
        batch_size: the number of records of a batch.
        inputs: the column of the inputs; a list of columns makes a dict of arrays.
        targets: the column of the targets, or a list of columns; none for ``predict``.
        shuffle, seed, drop_last, rank, world_size: as of :meth:`tfarrow.Scan.batches`.
        where: as of :func:`tfarrow.scan`.
        fill: as of :meth:`tfarrow.Scan.batches`.
        images: columns whose pixels are decoded: as of :class:`tfarrow.Dataset`.
        workers: the number of threads that read batches ahead; by default the number of cores, up to 4.

    Raises:
        TypeError: a column has no numbers, or rows of different lengths. Raised at its batch.
    """
    if not isinstance(source, Dataset):
        columns = list(dict.fromkeys([*_names(inputs), *_names(targets)]))
        source = Dataset(source, where=where, columns=columns, fill=fill, images=images)
    loader = source.batches(batch_size, shuffle=shuffle, seed=seed, drop_last=drop_last, rank=rank, world_size=world_size)
    return Batches(loader, inputs, targets, workers or min(_WORKERS, os.cpu_count() or 1))


def _names(columns: str | Sequence[str] | None) -> list[str]:
    if columns is None or isinstance(columns, str):
        return [] if columns is None else [columns]
    return list(columns)


def _arrays(batch: Batch, columns: str | Sequence[str]) -> Any:
    """The array of a column, or a dict of those of several."""
    if not isinstance(columns, str):
        return {name: _arrays(batch, name) for name in columns}
    found = batch[columns]
    if not isinstance(found, np.ndarray):
        kind = type(found).__name__
        raise TypeError(f"column {columns!r} is a {kind}, and no array: fill={{{columns!r}: value}} makes arrays of ragged numbers")
    return found
