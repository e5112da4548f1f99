"""TFRecord files of tf.Example, tf.SequenceExample and other records as Arrow, numpy, torch, Polars, pandas and SQL.

>>> import tfarrow
>>> tfarrow.count("testdata/shards/")
200
>>> tfarrow.scan("testdata/shards/").select("city", "price").where("price > 100").to_numpy()["price"].max()
np.float32(209.28)
>>> tfarrow.sql("SELECT city, count(*) AS n FROM 'testdata/shards/' GROUP BY city ORDER BY n DESC LIMIT 1").to_pylist()
[{'city': 'Porto', 'n': 47}]

- :func:`scan` reads a data set lazily; :class:`Scan` goes wherever Arrow goes.
- :func:`sql` queries files and frames.
- :class:`Dataset` has the records by their numbers, :class:`Loader` shuffled batches for training, and :func:`mix` mixtures.
- :func:`write` writes TFRecord files, and :func:`convert` TFRecord, Parquet and Arrow.
- :func:`schema`, :func:`stats`, :func:`validate` and :func:`report` describe a data set.
- :func:`verify`, :func:`repair` and :func:`diff` find and mend damage.
- ``tfarrow.torch``, ``.keras``, ``.jax`` and ``.grain`` are for training, ``tfarrow.ray`` and ``tfarrow.spark`` for Ray Data and Spark.

Examples read files of ``testdata/`` in the root of the repository. numpy is required; other packages are imported by the
functions that use them.
"""

import importlib as _importlib
from types import ModuleType as _ModuleType

from . import errors
from ._batch import Batch
from ._columns import BytesColumn, Ragged, StructColumn
from ._jobs import (
    Page,
    Report,
    Schema,
    Statistics,
    Validation,
    convert,
    count,
    diff,
    head,
    merge,
    read_part,
    repair,
    report,
    schema,
    stats,
    validate,
    verify,
)
from ._loader import Dataset, Loader, LoaderState, Mixture, mix
from ._scan import Result, Scan, read_table, scan, sql
from ._tfarrow import __version__
from ._write import write

__all__ = [
    "Batch",
    "BytesColumn",
    "Dataset",
    "Loader",
    "LoaderState",
    "Mixture",
    "Page",
    "Ragged",
    "Report",
    "Result",
    "Scan",
    "Schema",
    "Statistics",
    "StructColumn",
    "Validation",
    "__version__",
    "convert",
    "count",
    "diff",
    "errors",
    "head",
    "merge",
    "mix",
    "read_part",
    "read_table",
    "repair",
    "report",
    "scan",
    "schema",
    "sql",
    "stats",
    "validate",
    "verify",
    "write",
]

_LAZY = ("grain", "jax", "keras", "ray", "spark", "torch")


def __getattr__(name: str) -> _ModuleType:
    # These need packages that are not required.
    if name in _LAZY:
        return _importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_LAZY]
