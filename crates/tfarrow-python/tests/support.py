"""Paths, files, the program and TensorFlow's values, for the tests. Needs numpy alone."""

import base64
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np

import tfarrow
from tfarrow import BytesColumn, Ragged

ROOT = Path(__file__).resolve().parents[3]
TESTDATA = ROOT / "testdata"

# The type of the values that a row has of each column in `rows_of`: None, or a list of them. Lists of lists are feature lists.
# Floats are their bits, so that NaNs and zeros are compared as well.


def program(*args, stdin=None, timeout=120):
    """Runs the program, and returns its status, output and messages."""
    command = [sys.executable, "-m", "tfarrow", *map(os.fspath, args)]
    done = subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, timeout=timeout, text=True)
    return done.returncode, done.stdout, done.stderr


def program_json(*args, status=0):
    """The JSON that a command prints with ``--format json``."""
    found, out, err = program(*args, "--format", "json")
    assert found == status, err
    return json.loads(out)


# ------------------------------------------------------------------------------------------------------------- TFRecord


def _crc_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table.tolist()


_TABLE = _crc_table()


def masked_crc(data):
    """The masked CRC-32C of a frame of TFRecord."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payload):
    """A record as a file has it."""
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked_crc(length)) + payload + struct.pack("<I", masked_crc(payload))


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def feature(values):
    """A tf.train.Feature. The kind is that of the first value; None is a feature without a kind."""
    if values is None:
        return b""
    if isinstance(values[0], int):
        return field(3, field(1, b"".join(map(varint, values))))
    if isinstance(values[0], float):
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
    texts = [value.encode() if isinstance(value, str) else value for value in values]
    return field(1, b"".join(field(1, text) for text in texts))


def example(**features):
    """A tf.train.Example: a list of values for each name."""
    entries = [field(1, field(1, name.encode()) + field(2, feature(values))) for name, values in features.items()]
    return field(1, b"".join(entries))


def write_records(path, payloads):
    """Writes a TFRecord file, and returns its path."""
    Path(path).write_bytes(b"".join(map(frame, payloads)))
    return Path(path)


def write_repeated(path, payloads, times):
    """Writes the same records many times, and returns the path."""
    block = b"".join(map(frame, payloads))
    with open(path, "wb") as file:
        for _ in range(times):
            file.write(block)
    return Path(path)


# ----------------------------------------------------------------------------------------------------- TensorFlow's values


def described_files():
    """The files of TensorFlow that have their values beside them, with the file of these."""
    found = []
    for values in sorted(TESTDATA.rglob("*.json")):
        for name in (values.with_suffix(".tfrecord"), values.with_suffix(".tfrecord.gz"), values.with_suffix("")):
            if name.is_file() and name != values:
                found.append((name, values))
    return found


def described(path):
    """The records of a file of TensorFlow's values, each as a dict of lists; feature lists are lists of lists."""
    records = json.loads(Path(path).read_text())
    contexts = {name for record in records for name in record.get("context", {})}
    rows = []
    for record in records:
        row = {name: _values(value) for name, value in record.get("features", record.get("context", {})).items()}
        for name, steps in record.get("feature_lists", {}).items():
            row["feature_lists/" + name if name in contexts else name] = [_values(step) for step in steps]
        rows.append(row)
    return rows


def _values(value):
    if value is None:
        return None
    if "bytes" in value:
        return [base64.b64decode(item) for item in value["bytes"]]
    if "int64" in value:
        return [int(item) for item in value["int64"]]
    return list(value["float"])


def rows_of(batch):
    """The rows of a batch, in the form of `described`."""
    columns = {name: values_of(batch[name]) for name in batch}
    return [{name: values[row] for name, values in columns.items()} for row in range(batch.num_rows)]


def values_of(column):
    """The values of each row of a column: None, or a list."""
    if isinstance(column, BytesColumn):
        return [None if value is None else [_bytes(value)] for value in column]
    if isinstance(column, Ragged) and isinstance(column.values, Ragged):
        steps = [None if step is None else _bits(step) for step in column.values]
        rows = [steps[start:end] for start, end in zip(column.offsets[:-1], column.offsets[1:])]
        return [row if column.valid is None or column.valid[place] else None for place, row in enumerate(rows)]
    if isinstance(column, Ragged):
        return [None if row is None else _bits(row) for row in column]
    return [_bits(np.atleast_1d(row)) for row in column]


def _bits(row):
    if isinstance(row, np.ndarray):
        return row.view("uint32").tolist() if row.dtype == np.float32 else row.tolist()
    return [_bytes(value) for value in row]


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def same_rows(found, expected):
    """Asserts that the rows of batches are TensorFlow's. A column without a value is None."""
    assert len(found) == len(expected)
    for row, (ours, theirs) in enumerate(zip(found, expected)):
        for name in ours.keys() | theirs.keys():
            assert ours.get(name) == theirs.get(name), f"row {row}, column {name!r}"


def bit_floats(values):
    """Floats of their bits."""
    return struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}I", *values))


def scan_all(source, **options):
    """A scan whose schema is inferred from all records."""
    return tfarrow.scan(source, sample="all", **options)


def heed_interrupt():
    """Makes a child process end at SIGINT, also if this process ignores it, as a background job of a shell does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
