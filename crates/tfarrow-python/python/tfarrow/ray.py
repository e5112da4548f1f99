"""TFRecord in Ray Data.

>>> import ray, tfarrow  # doctest: +SKIP
>>> ds = ray.data.read_datasource(tfarrow.ray.datasource("shards/"))  # doctest: +SKIP
>>> ds.write_datasink(tfarrow.ray.datasink("copy/", compression="gzip"))  # doctest: +SKIP

The schema is inferred once, by the driver. Tasks read groups of files of about equal bytes, one file at least, and yield
blocks of Arrow. Files must have the same names on all machines, or be in a store whose credentials each machine has.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from ._dataset import DataSet, File, Reader, literal, quoted
from ._extras import need
from ._output import Output, Part, record_type_of

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data.expressions import Expr

    from ._scan import Scan, Source

ray_data = need("ray.data", "ray")
_datasource = need("ray.data.datasource", "ray")
_block = need("ray.data.block", "ray")

__all__ = ["TFRecordDatasink", "TFRecordDatasource", "datasink", "datasource"]

# The name of Ray's own for a column without values, which tells the number of rows where no column is needed.
_NO_COLUMN = "__bsp_stub"


def datasource(
    source: Source | Scan, *, columns: Sequence[str] | None = None, where: str | None = None, **scan_options: Any
) -> TFRecordDatasource:
    """A data set for ``ray.data.read_datasource``.

    The files are listed, and the schema is inferred, by this call. ``override_num_blocks=N`` of ``read_datasource`` makes at
    most N groups of files. Columns that are selected, comparisons of integers and texts
    (``ds.filter(expr=col("label") == 1)``), and ``count`` reach the files.

    Args:
        source: what :func:`tfarrow.scan` takes, or a :class:`tfarrow.Scan` without a limit.
        columns, where: as of :func:`tfarrow.scan`.
        **scan_options: as of :func:`tfarrow.scan`. ``threads`` is that of each task, and 1 by default.

    Raises:
        TfarrowError: the files cannot be listed, or their schema cannot be inferred. Tasks fail with errors of the same classes,
            inside of Ray's.

    Ray hands on the blocks of tasks as these end. ``DataContext.get_current().execution_options.preserve_order = True`` keeps the
    order of the files.
    """
    return TFRecordDatasource(DataSet.of(source, columns=columns, where=where, options=scan_options))


class TFRecordDatasource(_datasource.Datasource):
    """Made by :func:`datasource`."""

    def __init__(self, data: DataSet):
        super().__init__()
        self._data, self._projection_map = data, None

    def get_name(self) -> str:
        return "TFRecord"

    def estimate_inmemory_data_size(self) -> int | None:
        return _bytes(self._data.files)

    def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None) -> list:
        reader = self._data.reader
        predicate = getattr(self, "_predicate_expr", None)
        if predicate is not None:
            reader = reader.filter(condition_of(predicate, reader.schema))
        if self._projection_map == {}:
            read, schema = partial(_count, reader), need("pyarrow", "pyarrow").schema([(_NO_COLUMN, "null")])
        else:
            if self._projection_map is not None:
                reader = reader.select([name for name in self._projection_map if name in reader.output.names])
            read, schema = partial(_read, reader), reader.output
        limit = {} if per_task_row_limit is None else {"per_task_row_limit": per_task_row_limit}
        tasks = []
        for group in self._data.groups(parallelism):
            metadata = _block.BlockMetadata(
                num_rows=None,
                size_bytes=_bytes(group),
                exec_stats=None,
                input_files=[file.path for file in group],
            )
            tasks.append(_datasource.ReadTask(partial(read, group), metadata, schema=schema, **limit))
        return tasks

    def supports_projection_pushdown(self) -> bool:
        return True

    def supports_predicate_pushdown(self) -> bool:
        return True

    def apply_predicate(self, predicate_expr: Expr) -> TFRecordDatasource:
        # Ray filters by itself if this object is returned.
        if condition_of(predicate_expr, self._data.reader.output) is None:
            return self
        return super().apply_predicate(predicate_expr)


def _read(reader: Reader, files: list[File]) -> Iterator[pa.Table]:
    pa = need("pyarrow", "pyarrow")
    for batch in reader.read(files):
        yield pa.Table.from_batches([batch])


def _count(reader: Reader, files: list[File]) -> Iterator[pa.Table]:
    pa = need("pyarrow", "pyarrow")
    for rows in reader.counts(files):
        yield pa.table({_NO_COLUMN: pa.nulls(rows)})


def _bytes(files: list[File]) -> int:
    return sum(file.estimated_bytes for file in files)


_COMPARISONS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def condition_of(expr: Expr, schema: pa.Schema) -> str | None:
    """An expression of Ray in SQL, which is true for the same rows; None if there is none.

    It compares columns of integers and texts with literals. Arrow and SQL order NaN in different ways, so that floats are left
    to Ray.
    """
    expressions = need("ray.data.expressions", "ray")
    match expr:
        case expressions.BinaryExpr(op=op, left=left, right=right) if op.value in ("and", "or"):
            parts = [condition_of(left, schema), condition_of(right, schema)]
            return None if None in parts else f"({parts[0]}) {op.value.upper()} ({parts[1]})"
        case expressions.BinaryExpr(op=op, left=left, right=right) if op.value in _COMPARISONS:
            sign = _COMPARISONS[op.value]
            if isinstance(left, expressions.LiteralExpr):
                left, right, sign = right, left, _FLIPPED[sign]
            if isinstance(left, expressions.ColumnExpr) and isinstance(right, expressions.LiteralExpr):
                if is_comparable(schema, left.name, right.value):
                    return f"{quoted(left.name)} {sign} {literal(right.value)}"
        case expressions.UnaryExpr(op=op, operand=operand) if op.value in ("is_null", "is_not_null"):
            if isinstance(operand, expressions.ColumnExpr) and operand.name in schema.names:
                return f"{quoted(operand.name)} {op.value.upper().replace('_', ' ')}"
    return None


def is_comparable(schema: pa.Schema, name: str, value: Any) -> bool:
    """Whether SQL compares a column with a value as other engines do: integers of 64 bits, and texts."""
    types = need("pyarrow.types", "pyarrow")
    if name not in schema.names:
        return False
    kind = schema.field(name).type
    # A bool is an int in Python.
    if type(value) is int:
        return types.is_integer(kind) and -(2**63) <= value < 2**63
    return type(value) is str and (types.is_string(kind) or types.is_string_view(kind))


def datasink(
    target: str | os.PathLike[str],
    *,
    mode: Literal["error", "append", "overwrite"] = "error",
    record_type: Literal["example", "sequence-example", "example-list", "raw"] | None = None,
    compression: Literal["none", "gzip", "zlib", "snappy"] | None = None,
    strict: bool = False,
    lossy: bool = False,
    min_rows_per_file: int | None = None,
) -> TFRecordDatasink:
    """A folder for ``Dataset.write_datasink``, to which each task writes a file.

    Files appear in the folder when all tasks have ended, and not at all if one fails for good. In a store (``s3://``), each file
    appears when it is complete; files of a job that fails are left.

    Args:
        target: a folder in a file system that all machines share, or in a store.
        mode: ``"append"`` adds files, ``"overwrite"`` replaces the TFRecord files of the folder at the end, ``"error"`` raises if
            the folder has files.
        record_type, compression, strict, lossy: as of :func:`tfarrow.write`. Columns of lists of lists make SequenceExamples by default.
        min_rows_per_file: the number of rows that each task gets at least, if there are as many.

    Raises:
        ExistsError: the folder has files.
    """
    output = Output.of(target, mode, record_type=record_type, compression=compression, strict=strict, lossy=lossy)
    return TFRecordDatasink(output, min_rows_per_file)


class TFRecordDatasink(_datasource.Datasink):
    """Made by :func:`datasink`."""

    def __init__(self, output: Output, min_rows_per_file: int | None = None):
        self._output, self._min_rows, self._schema = output, min_rows_per_file, None

    def get_name(self) -> str:
        return "TFRecord"

    def on_write_start(self, schema: pa.Schema | None = None) -> None:
        self._output.prepare()

    @property
    def min_rows_per_write(self) -> int | None:
        return self._min_rows

    def write(self, blocks: Iterable[Any], ctx: Any) -> Part | None:
        # Ray keeps the blocks of a task until its end, so that there is no use in a stream. Functions of the user run on this
        # thread, as Ray wants it.
        tables = [_features(_block.BlockAccessor.for_block(block).to_arrow()) for block in blocks]
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return None
        pa = need("pyarrow", "pyarrow")
        table = pa.concat_tables(tables, promote_options="permissive")
        self._output.record_type = record_type_of(table.schema, self._output.record_type)
        return self._output.write(table, ctx.task_idx, _job(ctx.kwargs, self._output.id))

    def on_write_complete(self, write_result: Any) -> None:
        self._output.commit(write_result.write_returns)

    def on_write_failed(self, error: Exception) -> None:
        self._output.abort()


def _job(given: Mapping[str, Any], default: str) -> str:
    """What tells this writing from others to the same folder."""
    return str(given.get("write_uuid", default))[:12]


def _features(table: pa.Table) -> pa.Table:
    """The columns as features. Tensors of one dimension, as which Ray stores arrays of numpy, are lists."""
    pa = need("pyarrow", "pyarrow")
    for index, field in enumerate(table.schema):
        if not isinstance(field.type, pa.BaseExtensionType):
            continue
        shape = getattr(field.type, "shape", None)
        dimensions = getattr(field.type, "ndim", None) if shape is None else len(shape)
        if dimensions != 1:
            raise TypeError(
                f"column {field.name!r}: a feature has no shape, found {field.type}: flatten the arrays, and write their shape to "
                "another column"
            )
        chunks = [chunk.storage for chunk in table.column(index).chunks]
        if pa.types.is_struct(field.type.storage_type):
            chunks = [chunk.field("data") for chunk in chunks]
        values = pa.chunked_array(chunks) if chunks else pa.chunked_array([], field.type.storage_type)
        table = table.set_column(index, field.name, values)
    return table
