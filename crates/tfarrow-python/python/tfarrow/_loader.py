"""Records by their numbers, and shuffled batches for training."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from . import _tfarrow
from ._batch import Batch
from ._scan import Scan, scan
from ._warn import warn
from .errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from ._scan import Source

    Shuffle = Literal["blocks", "global"] | bool | None

__all__ = ["Dataset", "Loader", "LoaderState", "Mixture", "mix"]

# The version of the states of loaders.
_VERSION = 1


class LoaderState(TypedDict):
    """What :meth:`Loader.state_dict` returns. It can be written as JSON."""

    version: int
    shuffle: str
    seed: int
    # Of a mixture: how many of 1,000 records are of each source.
    turns: list[int]
    epoch: int
    # The number of records of the epoch that all ranks have read.
    position: int
    # The number of records of all files, and a hash of each file.
    records: int
    files: list[int]
    # Of a worker of a DataLoader: the number of workers, and of the batches that this one has read since the position.
    workers: int
    batches: int


class Dataset:
    """The records of a data set by their numbers: ``len(ds)``, ``ds[7]``, ``ds[[3, 17]]``, ``ds[100:200]``.

    A number returns a dict of the record: an int, a ``numpy.float32``, a str or bytes for a feature with one value, an ndarray
    for a list of numbers, a list for another list, and None where the record does not have the feature. A slice and a sequence
    of numbers return a :class:`Batch`, which is much faster for many records.

    It is a dataset for PyTorch's ``DataLoader`` and its samplers, and a ``RandomAccessDataSource`` for Grain.

    The records of plain files are found by the headers of their frames, those of gzip and zlib files by reading the files once.
    ``tfarrow index`` writes indexes with which neither is done; they are used where they are. Files that can be read from their
    start to their end only, such as a pipe, are an error. A ``where`` condition is evaluated once, when the dataset is made.

    Args:
        source: a :class:`Scan`, which may select columns and rows, or what :func:`scan` takes.
        columns, where: as of :func:`scan`.
        fill: the value of rows that have none, or have fewer than others, in batches: as of :meth:`Scan.batches`.
        images: columns of encoded images whose pixels are decoded, with their heights and widths: ``{"image/encoded": (224,
            224)}``. BMP, GIF, JPEG, PNG, TIFF and WebP become uint8 of shape ``(rows, height, width, 3)``: red, green and blue,
            without alpha, stretched by a bilinear filter with antialiasing. A record whose image does not decode is corrupt.
        **options: the other options of :func:`scan`.

    Raises:
        UsageError: the rows are not those of TFRecord files.
        TfarrowError: what the files raise.

    >>> ds = tfarrow.Dataset("testdata/shards/", columns=["city", "label"])
    >>> len(ds), ds[7]
    (200, {'city': 'Porto', 'label': 1})
    >>> ds[[3, 17, 3]]["city"].tolist()
    ['Nairobi', 'Lima', 'Nairobi']
    """

    def __init__(
        self,
        source: Scan | Source,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        fill: Any | Mapping[str, Any] = None,
        images: Mapping[str, tuple[int, int]] | None = None,
        **options: Any,
    ):
        if not isinstance(source, Scan):
            source = scan(source, columns=columns, where=where, **options)
        elif options:
            raise TypeError(f"options of a scan are given to tfarrow.scan, not here: {', '.join(options)}")
        else:
            source = source if where is None else source.where(where)
            source = source if columns is None else source.select(*columns)
        self._scan, self._fill, self._images = source, fill, dict(images or {})
        self._raw = source.opened(self._images)
        self._lengths = source._lengths()

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._scan.columns

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, item: int, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, item: slice | Sequence[int] | np.ndarray, /) -> Batch: ...
    def __getitem__(self, item: int | slice | Sequence[int] | np.ndarray, /) -> dict[str, Any] | Batch:
        if type(item) is int and item >= 0:
            return self._raw.row(item)
        if isinstance(item, slice):
            return self.take(range(*item.indices(len(self))))
        if hasattr(item, "__index__") and not getattr(item, "shape", ()):
            number = operator.index(item)
            return self._raw.row(number + len(self) if number < 0 else _valid(number))
        return self.take(item)  # type: ignore[arg-type]

    def take(self, numbers: Sequence[int] | np.ndarray) -> Batch:
        """The records with these numbers, in this order, as a batch. A number may be given several times.

        Raises:
            IndexError: there is no record of a number.
        """
        count = len(self)
        found = []
        for number in numbers:
            number = operator.index(number)
            if not -count <= number < count:
                raise IndexError(f"record {number} of {count}")
            found.append(number % count)
        return Batch(self._raw.take(found), self._lengths, self._fill)

    def __getitems__(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """The records with these numbers, for PyTorch."""
        return [self[number] for number in numbers]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number in range(len(self)):
            yield self._raw.row(number)

    def batches(self, batch_size: int, **options: Any) -> Loader:
        """Batches of the records: a :class:`Loader`, whose arguments ``options`` are. The files are not opened again."""
        return Loader(self, batch_size, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._scan, self._fill, self._images, self._raw.fingerprint())

    def __repr__(self) -> str:
        # Checkpoints of Grain compare this.
        images = f", images={self._images!r}" if self._images else ""
        return f"tfarrow.Dataset({self._scan!r}{images})"


class Mixture(Dataset):
    """The records of several data sets, which loaders mix in proportion to weights. Made by :func:`mix`.

    ``len(ds)`` and ``ds[7]`` are of all records, one source after the other.
    """

    def __init__(self, sources: Mapping[Source, float], seed: int, options: Mapping[str, Any]):
        self._weights, self._seed, self._given = dict(sources), seed, dict(options)
        names: list[Any] = []
        for source in self._weights:
            names += [source] if isinstance(source, (str, os.PathLike)) else source
        super().__init__(names, **self._given)
        # The files of all sources are those of the first one, and then those of the next ones.
        files = [scan(source).files() for source in self._weights]
        if [file for of_source in files for file in of_source] != self._scan.files():
            raise UsageError("two sources have the same file: each record is in one source")
        weights = self._weights.values()
        self._raw = self._raw.mixed([(len(of_source), weight) for of_source, weight in zip(files, weights, strict=True)])

    def batches(self, batch_size: int, **options: Any) -> Loader:
        """Batches of the mixture: a :class:`Loader`, whose arguments ``options`` are."""
        return Loader(self, batch_size, **{"seed": self._seed, **options})

    def __reduce__(self) -> tuple[Any, ...]:
        return _remixed, (self._weights, self._seed, self._given, self._raw.fingerprint())

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._given.items())
        return f"tfarrow.mix({self._weights!r}, seed={self._seed}{options})"


def mix(sources: Mapping[Source, float], *, seed: int = 0, **options: Any) -> Mixture:
    """Mixes data sets for training: of each 1,000 records, as many are of each source as its weight says.

    The order of each source is that of a :class:`Loader`, and its turns are drawn. A source is read to its end before it is read
    again, in another order. An epoch has as many records as it takes to read the first source to end once; the next epoch goes
    on with all of them where they are. All of it is a function of the seed, so that a state is a position here, too.

    Args:
        sources: data sets, as :func:`scan` takes them, and their weights, whose sum may be any number. A weight is at least a
            thousandth of the sum.
        seed: the seed of loaders that are given none.
        **options: ``columns``, ``where``, ``fill`` and ``images`` of :class:`Dataset`, and options of :func:`scan`. Columns are
            those of all sources together.

    Raises:
        UsageError: a weight is too small, or a source has no records.

    >>> data = tfarrow.mix({"testdata/shards/train-00000*.tfrecord": 0.7, "testdata/shards/train-00001*.tfrecord": 0.3}, seed=1)
    >>> [batch.num_rows for batch in data.batches(32, shuffle="global")]
    [32, 32, 7]
    """
    return Mixture(sources, seed, options)


def _remixed(weights: dict[Source, float], seed: int, options: dict[str, Any], fingerprint: tuple[int, list[int]]) -> Mixture:
    """The mixture of another process, which has the same files."""
    mixture = Mixture(weights, seed, options)
    mixture._raw.check(*fingerprint)
    return mixture


def _valid(number: int) -> int:
    if number < 0:
        raise IndexError(f"record {number}")
    return number


def _reopened(source: Scan, fill: Any, images: dict[str, tuple[int, int]], fingerprint: tuple[int, list[int]]) -> Dataset:
    """The dataset of another process, which has the same files."""
    dataset = Dataset(source, fill=fill, images=images)
    dataset._raw.check(*fingerprint)
    return dataset


def shuffle_name(shuffle: Shuffle) -> str:
    """The name of an order."""
    match shuffle:
        case None | False:
            return "none"
        case True:
            return "blocks"
        case "none" | "blocks" | "global":
            return shuffle
    raise ValueError(f"shuffle: expected 'blocks', 'global', True or False, found {shuffle!r}")


class Loader(Iterator[Batch]):
    """Batches of the records of a data set, shuffled, for one of several ranks: an iterator over the rest of an epoch, which
    the next epoch follows. Made by :meth:`Scan.batches` and :meth:`Dataset.batches`.

    The order is a function of the seed, the epoch and the files alone:

    - ``"global"``: all records in random order, each read at its place. For files on this machine.
    - ``"blocks"``, or ``True``: blocks of 256 KiB (8 MiB in compressed files and stores) in random order; 16,384 records, at
      least 16 and at most 64 MiB, are in memory, and records are drawn from those. Blocks are read from their start to their
      end, which suits gzip files and object stores.
    - ``False``: the order of the files.

    All ranks have the same number of batches. Every batch but the last has exactly ``batch_size`` records; those of the last are
    divided evenly, so that a rank may have an empty last batch where fewer records are left than there are ranks.
    ``drop_last=True`` leaves out a last batch with fewer records. With ``on_error="skip"``, corrupt records are missing in their
    batches.

    A run that was stopped is continued with :meth:`state_dict`, with any number of ranks and any batch size.

    >>> loader = tfarrow.scan("testdata/shards/").batches(64, shuffle="global", seed=1)
    >>> first = next(loader)
    >>> state = loader.state_dict()
    >>> rest = [len(batch["label"]) for batch in loader]
    >>> loader.load_state_dict(state)
    >>> rest == [len(batch["label"]) for batch in loader] == [64, 64, 8]
    True
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        *,
        shuffle: Shuffle = None,
        seed: int = 0,
        epoch: int = 0,
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        worker: int = 0,
        workers: int = 1,
    ):
        if batch_size < 1:
            raise ValueError(f"batch_size: expected a number from 1, found {batch_size}")
        rank, world_size = ranks_of(rank, world_size)
        self._dataset = dataset
        self._shuffle, self._seed = shuffle_name(shuffle), operator.index(seed) % 2**64
        self._sizes = (batch_size, world_size, workers, drop_last)
        self._process = (rank, worker)
        self._begin(operator.index(epoch), 0, 0)

    def _begin(self, epoch: int, position: int, batches: int) -> None:
        """Begins to read an epoch at a position; this worker has read ``batches`` batches from there."""
        if epoch < 0:
            raise ValueError(f"epoch: expected a number from 0, found {epoch}")
        self._epoch, self._position, self._batches = epoch, position, batches
        self._share = self._share_from(position)
        self._raw: _tfarrow.RawLoader | None = None

    def _share_from(self, position: int) -> _tfarrow.RawShare:
        batch_size, ranks, workers, drop_last = self._sizes
        records = self._dataset._raw.epoch_records()
        return _tfarrow.RawShare(records, position, batch_size, ranks, workers, drop_last, *self._process)

    @property
    def epoch(self) -> int:
        """The number of the epoch, from 0."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch from its start. Without a call, the epoch after the last one begins where that has ended."""
        self._begin(operator.index(epoch), 0, 0)

    def __len__(self) -> int:
        """The number of batches of an epoch, of each rank."""
        return self._share_from(0).batches_of_rank

    def __iter__(self) -> Loader:
        return self

    def __next__(self) -> Batch:
        if self._raw is None:
            # Threads start with the first batch.
            load = self._dataset._raw.load
            self._raw = load(self._shuffle, self._seed, self._epoch, self._share, self._batches)
        raw = self._raw.next_batch()
        if raw is None:
            self._begin(self._epoch + 1, 0, 0)
            self._warn()
            raise StopIteration
        self._batches += 1
        return Batch(raw, self._dataset._lengths, self._dataset._fill)

    def batch(self, number: int) -> Batch:
        """The batch with this number of those that are left of the epoch, read by itself, for frameworks that ask for batches by
        their numbers. The position of the loader stays as it is."""
        read = self._dataset._raw.batch
        raw = read(self._shuffle, self._seed, self._epoch, self._share, self._batches + operator.index(number))
        return Batch(raw, self._dataset._lengths, self._dataset._fill)

    def _warn(self) -> None:
        unknown = self._dataset._raw.unknown_features()
        if unknown:
            names = ", ".join(map(repr, unknown[:10]))
            warn(f'{len(unknown)} features have no column: {names}; sample="all" infers the columns from all records')

    def state_dict(self) -> LoaderState:
        """The state after the last batch: a dict of numbers, which is the same on all ranks."""
        _, _, workers, _ = self._sizes
        return self.state_after(0) if workers == 1 else self._state(self._position, self._batches)

    def state_after(self, batches: int) -> LoaderState:
        """The state after ``batches`` more batches of each rank."""
        return self._state(self._share.position_after(self._batches + batches), 0)

    def _state(self, position: int, batches: int) -> LoaderState:
        _, _, workers, _ = self._sizes
        records, files = self._dataset._raw.fingerprint()
        return {
            "version": _VERSION,
            "shuffle": self._shuffle,
            "seed": self._seed,
            "turns": self._dataset._raw.turns(),
            "epoch": self._epoch,
            "position": position,
            "records": records,
            "files": files,
            "workers": workers,
            "batches": batches,
        }

    def load_state_dict(self, state: LoaderState) -> None:
        """Goes on after the last batch of the state, which may be that of another number of ranks, or another batch size.

        Raises:
            UsageError: the state is that of other files, of another seed or order, or of a worker among others.
        """
        if state.get("version") != _VERSION:
            raise UsageError(f"a state of version {state.get('version')}, expected {_VERSION}")
        for name, own in (("shuffle", self._shuffle), ("seed", self._seed), ("turns", self._dataset._raw.turns())):
            if state[name] != own:  # type: ignore[literal-required]
                raise UsageError(f"the state has {name}={state[name]!r}, the loader {own!r}")  # type: ignore[literal-required]
        self._dataset._raw.check(state["records"], state["files"])
        _, _, workers, _ = self._sizes
        if state["batches"] and state["workers"] != workers:
            raise UsageError(
                f"the state is that of one of {state['workers']} workers, and there are {workers}: state_dict(batches=n) of the "
                "dataset is the state after n batches of all workers"
            )
        self._begin(state["epoch"], state["position"], state["batches"])

    def __reduce__(self) -> tuple[Any, ...]:
        batch_size, ranks, workers, drop_last = self._sizes
        rank, worker = self._process
        options = {"shuffle": self._shuffle, "seed": self._seed, "drop_last": drop_last, "rank": rank, "world_size": ranks}
        return _continued, (self._dataset, batch_size, {**options, "worker": worker, "workers": workers}, self.state_dict())


def _continued(dataset: Dataset, batch_size: int, options: dict[str, Any], state: LoaderState) -> Loader:
    loader = Loader(dataset, batch_size, **options)
    loader.load_state_dict(state)
    return loader


def ranks_of(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """The rank and the number of ranks: those that are given, else those of the environment, else one rank."""
    if (rank is None) != (world_size is None):
        raise ValueError("rank and world_size: give both, or none of them")
    if rank is None or world_size is None:
        rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if not 0 <= rank < world_size:
        raise ValueError(f"rank: expected a number from 0 to {world_size - 1}, found {rank}")
    return rank, world_size
