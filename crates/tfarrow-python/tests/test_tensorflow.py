# SPDX-License-Identifier: Apache-2.0
"""TensorFlow as oracle: its protos and its parsers find the same values in the same records.

The files are those of testdata/, and all TFRecord files in the folders that TFARROW_TEST_DATA names, with ":" between them.
TensorFlow is too large for each run of the tests: `tests/python.py --large` installs it.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import tfarrow
from support import described_files, masked_crc, rows_of, same_rows
from test_core import DISPUTED, joined, record_type
from tfarrow.errors import TfarrowError

tf = pytest.importorskip("tensorflow")

FOLDERS = [Path(folder) for folder in os.environ.get("TFARROW_TEST_DATA", "").split(":") if folder]
WIRE = ("wire", "wire_disputed")
# TensorFlow's parsers and versions disagree on files of these folders, and numbers.tfrecord has NaNs that Python changes: test_core.py compares
# these with values that TensorFlow wrote.
OURS = [path for path, _ in described_files() if path.parent.name not in WIRE and path.stem not in {"numbers"} | DISPUTED]
OTHERS = [path for folder in FOLDERS for path in sorted(folder.rglob("*")) if path.is_file() and "record" in path.name]
LAYOUTS = ["auto", "list"]
# Files of other payloads warn.
pytestmark = pytest.mark.filterwarnings("ignore::tfarrow.errors.TfarrowWarning")


@pytest.fixture(params=[*OURS, *OTHERS], ids=lambda path: f"{path.parent.name}/{path.name}")
def scan(request):
    """A function from a layout to a scan of a file, whose schema is inferred from all records."""
    path = request.param
    try:
        found = record_type(path) if path in OURS else tfarrow.schema(path, sample="all").to_dict()["record_type"]
    except TfarrowError as error:
        pytest.skip(f"refused: {error}")
    if found not in ("example", "sequence-example"):
        pytest.skip(f"the payloads are {found}")
    return lambda layout: tfarrow.scan(path, sample="all", layout=layout, on_conflict="split", record_type=found)


def payloads(path):
    """The records, as TensorFlow reads them."""
    head = Path(path).read_bytes()[:12]
    is_plain = masked_crc(head[:8]).to_bytes(4, "little") == head[8:]
    compression = "" if is_plain or not head else "GZIP" if head[:2] == b"\x1f\x8b" else "ZLIB"
    return [record.numpy() for record in tf.data.TFRecordDataset([os.fspath(path)], compression)]


def parsed_by_protos(records, is_sequence):
    """The rows, in the form of `support.described`."""
    if not is_sequence:
        return [features(tf.train.Example.FromString(record).features) for record in records]
    records = [tf.train.SequenceExample.FromString(record) for record in records]
    contexts = {name for record in records for name in record.context.feature}
    rows = []
    for record in records:
        row = features(record.context)
        for name, steps in record.feature_lists.feature_list.items():
            row["feature_lists/" + name if name in contexts else name] = [values(step) for step in steps.feature]
        rows.append(row)
    return rows


def features(found):
    return {name: values(feature) for name, feature in found.feature.items()}


def values(feature):
    kind = feature.WhichOneof("kind")
    if kind is None:
        return None
    found = list(getattr(feature, kind).value)
    return np.array(found, "float32").view("uint32").tolist() if kind == "float_list" else found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_those_of_the_protos(scan, layout):
    scan = scan(layout)
    expected = parsed_by_protos(payloads(scan._source[0]), is_sequence(scan))
    same_rows([joined(row) for batch in scan.batches(100) for row in rows_of(batch)], expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_those_of_the_parsers(scan, layout):
    scan = scan(layout)
    records = payloads(scan._source[0])
    schema = tfarrow.schema(scan._source, sample="all", layout=layout, record_type=scan._options["record_type"])
    spec = {}
    exec(schema.to_parse_spec(), spec)
    if not any(spec.get(name) for name in ("features", "context_features", "sequence_features")):
        pytest.skip("no feature has a kind")
    if is_sequence(scan):
        context, lists, steps = tf.io.parse_sequence_example(records, spec["context_features"], spec["sequence_features"])
        parsed = {name: rows_of_tensor(tensor) for name, tensor in context.items()}
        for name, tensor in lists.items():
            rows = rows_of_tensor(tensor)
            if name in steps:
                # Steps of one length are padded to the longest of all rows.
                rows = [[listed(step) for step in row[:count]] for row, count in zip(rows, steps[name].numpy())]
            parsed["feature_lists/" + name if name in context else name] = rows
    else:
        parsed = {name: rows_of_tensor(tensor) for name, tensor in tf.io.parse_example(records, spec["features"]).items()}
    rows = [joined(row) for batch in scan.batches() for row in rows_of(batch)]
    for name, expected in parsed.items():
        # The parsers make no difference between no list and a list without items.
        found = [row.get(name) or [] for row in rows]
        found = [[[] if step is None else step for step in row] for row in found]
        assert found == expected, name


def is_sequence(scan):
    return scan._options["record_type"] == "sequence-example"


def rows_of_tensor(tensor):
    """The values of each row, in the form of `support.rows_of`."""
    if isinstance(tensor, tf.RaggedTensor):
        return tensor.with_flat_values(bits(tensor.flat_values)).to_list()
    return [listed(row) for row in bits(tensor).numpy().tolist()]


def listed(values):
    return values if isinstance(values, list) else [values]


def bits(tensor):
    return tf.bitcast(tensor, tf.uint32) if tensor.dtype == tf.float32 else tensor
