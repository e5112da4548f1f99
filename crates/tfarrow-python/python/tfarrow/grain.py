"""TFRecord in Grain.

>>> import grain
>>> data = tfarrow.grain.source("testdata/shards/", columns=["label", "embedding"])
>>> batches = grain.MapDataset.source(data).shuffle(seed=1).batch(32)
>>> batches[0]["embedding"].shape
(32, 8)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._loader import Dataset

if TYPE_CHECKING:
    from ._scan import Scan, Source

__all__ = ["source"]


def source(source: Scan | Source, **options: Any) -> Dataset:
    """The records of a data set as a ``RandomAccessDataSource``: a :class:`tfarrow.Dataset` with these options.

    Grain shuffles, divides and batches it, and its checkpoints compare the ``repr`` of it, which names the files and the options.
    """
    return Dataset(source, **options)
