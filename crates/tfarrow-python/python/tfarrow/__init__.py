"""TFRecord files of tf.Example, tf.SequenceExample and other records as Arrow, numpy, torch, Polars, pandas and SQL.

>>> import tfarrow
>>> tfarrow.count("testdata/shards/")
1000
>>> tfarrow.scan("testdata/shards/").select("city", "price").where("price > 40").to_polars()  # doctest: +SKIP
>>> tfarrow.sql("SELECT city, avg(price) FROM 'testdata/shards/' GROUP BY city").to_pandas()  # doctest: +SKIP

- :func:`scan` reads a data set lazily; :class:`Scan` goes wherever Arrow goes.
- :func:`sql` queries files and frames.
- :func:`write` and :func:`convert` write TFRecord, Parquet and Arrow.
- :func:`schema`, :func:`stats`, :func:`validate` and :func:`report` describe a data set.
- :func:`verify`, :func:`repair` and :func:`diff` find and mend damage.
- ``tfarrow.torch``, ``tfarrow.ray`` and ``tfarrow.spark`` are for PyTorch, Ray Data and Spark.

numpy is required. Other packages are imported where they are used.
"""

import importlib as _importlib

from . import errors
from ._batch import Batch
from ._columns import BytesColumn, Ragged
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
    repair,
    report,
    schema,
    stats,
    validate,
    verify,
)
from ._scan import Result, Scan, read_table, scan, sql
from ._tfarrow import __version__
from ._write import write

__all__ = [
    "Batch",
    "BytesColumn",
    "Page",
    "Ragged",
    "Report",
    "Result",
    "Scan",
    "Schema",
    "Statistics",
    "Validation",
    "__version__",
    "convert",
    "count",
    "diff",
    "errors",
    "head",
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

_LAZY = ("ray", "spark", "torch")


def __getattr__(name):
    # These need packages that are not required.
    if name in _LAZY:
        return _importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*__all__, *_LAZY]
