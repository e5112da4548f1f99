"""The division of the records of a scan among ranks and workers, without torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _tfarrow
from ._batch import Batch
from ._scan import Scan, scan
from .errors import UsageError

if TYPE_CHECKING:
    from ._scan import Source

__all__ = ["Division"]


class Division:
    """Batches of a scan for each worker of each rank: see ``tfarrow_loader::Division``."""

    def __init__(self, source: Scan | Source, *, batch_size: int, drop_last: bool):
        if batch_size < 1:
            raise ValueError(f"batch_size: expected a number from 1, found {batch_size}")
        self._scan = source if isinstance(source, Scan) else scan(source)
        self._batch_size, self._drop_last = batch_size, drop_last
        if not self._scan.is_divisible:
            raise UsageError(
                "a scan with where() or limit(), or of other files than TFRecord, cannot be divided among workers without reading it: write its rows with "
                "tfarrow.write, or filter the batches"
            )
        if self._scan.skips_errors:
            raise UsageError(
                "records that are skipped cannot be counted before they are read: tfarrow.repair copies the valid records"
            )
        self._counts = self._scan.counts()

    def count(self, ranks: int) -> int:
        """The number of batches of each rank."""
        return len(self._share(0, ranks, 0, 1)[2])

    def _share(self, rank: int, ranks: int, worker: int, workers: int) -> tuple[int, int, list[int]]:
        if not 0 <= rank < ranks:
            raise ValueError(f"rank: expected a number from 0 to {ranks - 1}, found {rank}")
        return _tfarrow.share(sum(self._counts), self._batch_size, ranks, workers, self._drop_last, rank, worker)

    def batches(self, rank: int, ranks: int, worker: int, workers: int, *, fill: Any = None) -> Iterator[Batch]:
        """The batches of a worker of a rank."""
        start, end, sizes = self._share(rank, ranks, worker, workers)
        if not sizes:
            return
        # Most batches are slices of what is decoded at once; only those that span two of these are copied.
        decoded = max(*sizes, 8192)
        stream, lengths = self._scan.stream_of(self._counts, start, end, decoded), self._scan._lengths()
        for size in sizes:
            # Where there are fewer records than ranks, some ranks have an empty batch, so that all have the same number.
            raw = stream.next_batch(size) if size > 0 else self._scan.limit(0)._stream().rest()
            if raw is None or raw.num_rows != size:
                found = 0 if raw is None else raw.num_rows
                raise UsageError(
                    f"a file was changed after its records were counted: expected a batch of {size} records, found {found}"
                )
            yield Batch(raw, lengths, fill)
