"""Files that tasks of a cluster write: what :mod:`tfarrow.ray` and :mod:`tfarrow.spark` share.

Tasks write files to a folder of their own inside of the target, with a name for each attempt. The driver moves the files of
the attempts that count to the target when all tasks have ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._dataset import absolute, is_url
from ._extras import need
from ._scan import Scan
from ._write import write
from .errors import ExistsError, NotFoundError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MODES", "Output", "Part", "record_type_of"]

MODES = ("error", "append", "overwrite")
# The compressions of files, and the endings of their names.
SUFFIXES = {"none": "", "gzip": ".gz", "zlib": ".zlib", "snappy": ".snappy"}


@dataclass(frozen=True)
class Part:
    """A file that an attempt of a task has written."""

    written: str
    name: str
    records: int


@dataclass
class Output:
    """Files that tasks write to a folder."""

    folder: str
    mode: str = "error"
    record_type: str | None = None
    compression: str | None = None
    strict: bool = False
    lossy: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    is_new: bool = False

    @classmethod
    def of(cls, target: str | os.PathLike[str], mode: str, **options: Any) -> Output:
        """Checks the options."""
        if mode not in MODES:
            raise UsageError(f"mode: expected one of {', '.join(MODES)}, found {mode!r}")
        if (compression := options.get("compression")) not in (None, *SUFFIXES):
            raise UsageError(f"compression: expected one of {', '.join(SUFFIXES)}, found {compression!r}")
        folder = absolute(os.fspath(target)).rstrip("/")
        if mode == "overwrite" and is_url(folder):
            raise UsageError(f"{folder}: files of a store cannot be replaced as a whole; remove them first, and append")
        return cls(folder, mode, **{name: value for name, value in options.items() if value is not None})

    @property
    def _staging(self) -> str:
        # Names that begin with an underscore are not read.
        return os.path.join(self.folder, f"_tfarrow-{self.id}")

    @property
    def _marker(self) -> str:
        """A file that tells attempts that the job has not ended: engines abort a job before its last attempts have ended."""
        return os.path.join(self._staging, "_open")

    def prepare(self) -> None:
        """Checks the target. Called by the driver, before tasks write."""
        if is_url(self.folder):
            if self.mode == "error":
                with contextlib.suppress(NotFoundError):
                    Scan(self.folder + "/", {"record_type": "raw"}).columns
                    raise ExistsError(f"{self.folder}: the folder has files; mode=\"append\" adds others", file=self.folder)
            return
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):
            raise ExistsError(f"{self.folder}: expected a folder, found a file", file=self.folder)
        found = self._found()
        if self.mode == "error" and found:
            text = f'{self.folder}: the folder has files; mode="append" adds others, mode="overwrite" replaces them'
            raise ExistsError(text, file=self.folder)
        if self.mode == "overwrite":
            for path in found:
                if ".tfrecord" not in os.path.basename(path).lower():
                    text = f"{path}: overwrite replaces files with .tfrecord in their names only; remove this one first"
                    raise ExistsError(text, file=path)
        self.is_new = not os.path.exists(self.folder)
        os.makedirs(self._staging, exist_ok=True)
        with open(self._marker, "x"):
            pass

    def _found(self) -> list[str]:
        """The files of the target that a scan of it may read."""
        found = []
        for folder, inner, names in os.walk(self.folder):
            inner[:] = [name for name in inner if not name.startswith((".", "_"))]
            found += [os.path.join(folder, name) for name in names if not name.startswith((".", "_"))]
        return sorted(found)

    def write(self, data: Any, task: int, job: str | None = None) -> Part:
        """Writes rows to a file. Called by a task. ``job`` tells the writings to one target apart."""
        suffix = SUFFIXES[self.compression or "none"]
        name = f"part-{task:05d}-{job or self.id}.tfrecord{suffix}"
        # A store shows a file when it is complete, and a later attempt writes the same one.
        written = f"{self.folder}/{name}"
        if not is_url(self.folder):
            self._check()
            written = os.path.join(self._staging, f"{uuid.uuid4().hex[:8]}-{name}")
        options = {"record_type": self.record_type, "compression": self.compression}
        records = write(data, written, overwrite=True, strict=self.strict, lossy=self.lossy, **options)
        if not is_url(self.folder) and not os.path.exists(self._marker):
            self.abort()
            self._check()
        return Part(written, name, records)

    def _check(self) -> None:
        if not os.path.exists(self._marker):
            raise NotFoundError(
                f"{self._staging}: a task does not find this folder, which the driver has made: the job has ended, or the target "
                "is not in a file system that all machines share, nor in a store",
                file=self._staging,
            )

    def commit(self, parts: Iterable[Part | None], schema: pa.Schema | None = None) -> None:
        """Shows the files of all tasks. Without rows, shows one empty file if the schema is given. Called by the driver."""
        parts = [part for part in parts if part is not None]
        if not parts and schema is not None:
            parts = [self.write(schema.empty_table(), 0)]
        if is_url(self.folder):
            return
        old = self._found() if self.mode == "overwrite" else []
        for part in parts:
            if not os.path.exists(part.written):
                raise NotFoundError(
                    f"{part.written}: a task has written this file, and the driver does not find it: the target must be in a "
                    "file system that all machines share, or in a store",
                    file=part.written,
                )
        for part in parts:
            os.replace(part.written, os.path.join(self.folder, part.name))
        for path in old:
            os.remove(path)
        shutil.rmtree(self._staging, ignore_errors=True)

    def abort(self) -> None:
        """Removes what tasks have written. Called by the driver."""
        if not is_url(self.folder):
            shutil.rmtree(self._staging, ignore_errors=True)
            if self.is_new:
                with contextlib.suppress(OSError):
                    os.rmdir(self.folder)


def record_type_of(schema: pa.Schema, given: str | None) -> str | None:
    """The type of the records to write: feature lists are columns of lists of lists."""
    pa = need("pyarrow", "pyarrow")
    known = (schema.metadata or {}).get(b"tfarrow.record_type")
    if given is not None or known is not None:
        return given

    def is_list(type_) -> bool:
        return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)

    is_nested = any(is_list(field.type) and is_list(field.type.value_type) for field in schema)
    return "sequence-example" if is_nested else None
