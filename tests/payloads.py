#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check with TensorBoard and protobuf what the program reads from and writes to files of other messages than Examples.

    python3 tests/payloads.py target/release/tfarrow

- TensorBoard reads the event files of testdata/events, converted to Parquet and back, as it reads the originals.
- SQL returns the scalars, texts, images and histograms that TensorBoard reads.
- protobuf reads the messages of testdata/message, and random ones, converted to Parquet and back, as the originals.

Installs TensorBoard and protobuf from PyPI into a folder of target/, which later runs use again.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOME = os.path.join(ROOT, "target", "payloads")
PACKAGES = ["tensorboard==2.20.0", "protobuf==6.31.1", "setuptools<80"]
LOGS = os.path.join(ROOT, "testdata", "events", "logs")
MESSAGES = os.path.join(ROOT, "testdata", "message")
DESCRIPTORS = os.path.join(MESSAGES, "shapes.desc")
RANDOM_MESSAGES = 500


def python():
    """The interpreter of an environment with the packages, which is created if it does not exist."""
    program, done = os.path.join(HOME, "bin", "python"), os.path.join(HOME, "installed")
    wanted = "\n".join(PACKAGES)
    if not os.path.exists(done) or open(done).read() != wanted:
        venv.create(HOME, with_pip=True, clear=True)
        subprocess.run([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)
        with open(done, "w") as file:
            file.write(wanted)
    return program


def run(program, *args):
    """The standard output of the program."""
    done = subprocess.run([program, *args], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{args}: {done.stderr}"
    return done.stdout


def query(program, sql):
    """The rows of a query, as lists."""
    lines = run(program, "sql", "--format", "ndjson", sql).splitlines()
    return [list(json.loads(line).values()) for line in lines]


def records(path):
    """The records of a TFRecord file."""
    with open(path, "rb") as file:
        while header := file.read(12):
            (length,) = struct.unpack("<Q", header[:8])
            yield file.read(length)
            file.read(4)


def crc32c(data):
    """The CRC of Castagnoli, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def frame(data):
    masked = lambda part: struct.pack("<I", ((crc32c(part) >> 15 | crc32c(part) << 17) + 0xA282EAD8) & 0xFFFFFFFF)
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def event_files(logs):
    """The event files of a folder, with their runs."""
    for folder, _, files in sorted(os.walk(logs)):
        for file in sorted(files):
            yield os.path.relpath(folder, logs), os.path.join(folder, file)


def summaries(logs):
    """For each plugin, the values that TensorBoard reads: run, tag, step, wall time, array."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util.tensor_util import make_ndarray

    found, plugins = {}, {}
    for name, path in event_files(logs):
        for event in EventFileLoader(path).Load():
            for value in event.summary.value:
                plugin = value.metadata.plugin_data.plugin_name or plugins[name, value.tag]
                plugins[name, value.tag] = plugin
                row = [name, value.tag, event.step, event.wall_time, make_ndarray(value.tensor)]
                found.setdefault(plugin, []).append(row)
    return found


def check_sql(program):
    """SQL returns the values that TensorBoard reads. Wall times are rounded to microseconds."""
    found = summaries(LOGS)
    columns = "run, tag, step, CAST(CAST(wall_time AS BIGINT) AS DOUBLE) / 1000000 AS wall_time"
    shown = {
        "scalar": ("scalars", "value", lambda array: [float(array.reshape([]))]),
        "text": ("text", "text", lambda array: ["\n".join(text.decode() for text in array.reshape([-1]))]),
        "image": (
            "images",
            "image['width'] AS w, image['height'] AS h, encode(image['bytes'], 'hex') AS b",
            lambda array: [int(array[0]), int(array[1]), array[2].hex()],
        ),
        "histogram": (
            "histograms",
            "histogram['left'] AS l, histogram['right'] AS r, histogram['count'] AS c",
            lambda array: [array[:, part].astype(float).tolist() for part in range(3)],
        ),
    }
    for kind, (plugin, value, of_array) in shown.items():
        rows = query(program, f"SELECT {columns}, {value} FROM '{LOGS}/' WHERE kind = '{kind}'")
        expected = [[*row[:4], *of_array(row[4])] for row in found[plugin]]
        assert rows and sorted(rows) == sorted(expected), (kind, rows, expected)
    # Every value that TensorBoard reads has a kind.
    counts = query(program, f"SELECT count(*), count(kind), count(DISTINCT run) FROM '{LOGS}/'")
    values = sum(map(len, found.values()))
    assert counts == [[values, values, 2]], (counts, values)
    print(f"SQL: {sum(len(found[plugin]) for plugin, _, _ in shown.values())} values as TensorBoard reads them")


def check_events(program, folder):
    """TensorBoard reads the same events and runs after a conversion to Parquet and back."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    parquet, back = os.path.join(folder, "parquet", ""), os.path.join(folder, "back", "")
    run(program, "convert", LOGS, parquet)
    run(program, "convert", parquet, back, "--to", "tfrecord")
    before, after = [[(name, list(RawEventFileLoader(path).Load())) for name, path in event_files(logs)] for logs in (LOGS, back)]
    assert before == after and len(before) == 2, (before, after)
    multiplexer = EventMultiplexer().AddRunsFromDirectory(back).Reload()
    assert set(multiplexer.Runs()) == {".", "train"}, multiplexer.Runs()
    kinds = {name: multiplexer.GetAccumulator(name).Tags() for name in multiplexer.Runs()}
    lists = {name: [tags for tags in kinds[name].values() if isinstance(tags, list)] for name in kinds}
    tags = {name: sorted({tag for tags in lists[name] for tag in tags}) for name in lists}
    runs = {name: sorted({row[1] for rows in summaries(LOGS).values() for row in rows if row[0] == name}) for name in tags}
    assert tags == runs, (tags, runs)
    print(f"TensorBoard: {sum(len(events) for _, events in after)} events after a conversion to Parquet and back")


def message_classes():
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    with open(DESCRIPTORS, "rb") as file:
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tfarrow.test.{name}")) for name in ("Shape", "Legacy")}


def random_value(field, random):
    from google.protobuf.descriptor import FieldDescriptor as Field

    numbers = {
        Field.CPPTYPE_INT32: lambda: random.choice([0, 1, -1, 2**31 - 1, -(2**31), random.getrandbits(16)]),
        Field.CPPTYPE_INT64: lambda: random.choice([0, 1, -1, 2**63 - 1, -(2**63), random.getrandbits(40)]),
        Field.CPPTYPE_UINT32: lambda: random.choice([0, 1, 2**32 - 1, random.getrandbits(16)]),
        Field.CPPTYPE_UINT64: lambda: random.choice([0, 1, 2**64 - 1, random.getrandbits(40)]),
        Field.CPPTYPE_DOUBLE: lambda: random.choice([0.0, -0.0, 1e300, float("inf"), random.random()]),
        Field.CPPTYPE_FLOAT: lambda: random.choice([0.0, -0.0, 1.5, float("-inf"), random.randrange(99) / 4]),
        Field.CPPTYPE_BOOL: lambda: random.random() < 0.5,
        Field.CPPTYPE_ENUM: lambda: random.choice(field.enum_type.values).number,
    }
    if field.type == Field.TYPE_STRING:
        return "".join(random.choices("aé😀\n\"", k=random.randrange(4)))
    if field.type == Field.TYPE_BYTES:
        return random.randbytes(random.randrange(4))
    return numbers[field.cpp_type]()


def fill(message, random, depth=0):
    """Sets random fields of a message."""
    from google.protobuf.descriptor import FieldDescriptor as Field

    name = message.DESCRIPTOR.full_name
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        message.FromNanoseconds(random.randrange(-(10**18), 10**18))
        return
    for field in message.DESCRIPTOR.fields:
        is_many = field.is_repeated if hasattr(field, "is_repeated") else field.label == Field.LABEL_REPEATED
        if depth > 3 or random.random() < 0.5:
            continue
        is_message = field.cpp_type == Field.CPPTYPE_MESSAGE
        for _ in range(random.randrange(4) if is_many else 1):
            if is_message and field.message_type.GetOptions().map_entry:
                key, value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
                entries, key = getattr(message, field.name), random_value(key, random)
                if value.cpp_type == Field.CPPTYPE_MESSAGE:
                    fill(entries[key], random, depth + 1)
                else:
                    entries[key] = random_value(value, random)
            elif is_message:
                value = getattr(message, field.name)
                value = value.add() if is_many else value
                value.SetInParent() if not is_many else None
                fill(value, random, depth + 1)
            elif is_many:
                getattr(message, field.name).append(random_value(field, random))
            else:
                setattr(message, field.name, random_value(field, random))


def check_messages(program, folder):
    """protobuf reads the same messages after a conversion to Parquet and to Arrow and back."""
    classes = message_classes()
    sources = {"Shape": [os.path.join(MESSAGES, "shapes.tfrecord")], "Legacy": [os.path.join(MESSAGES, "legacy.tfrecord")]}
    generator = random.Random(1)
    for name, message_class in classes.items():
        path = os.path.join(folder, f"random-{name}.tfrecord")
        with open(path, "wb") as file:
            for _ in range(RANDOM_MESSAGES):
                message = message_class()
                fill(message, generator)
                file.write(frame(message.SerializePartialToString()))
        sources[name].append(path)
    count = 0
    for name, paths in sources.items():
        for path in paths:
            for target in ("parquet", "arrow"):
                columnar, back = (os.path.join(folder, f"{os.path.basename(path)}.{end}") for end in (target, f"{target}.back.tfrecord"))
                run(program, "convert", path, columnar, "--proto", DESCRIPTORS, "--message", name)
                run(program, "convert", columnar, back)
                before, after = ([parse(classes[name], record) for record in records(file)] for file in (path, back))
                assert before == after and before, f"{path}: {target}"
                count += len(after)
    print(f"protobuf: {count} messages after a conversion to Parquet or Arrow and back")


def parse(message_class, record):
    message = message_class()
    message.MergeFromString(record)
    return message


def main(program):
    if os.path.realpath(sys.prefix) != os.path.realpath(HOME):
        # Isolated, because TensorBoard would import tensorflow.py of this folder.
        inner = python()
        os.execv(inner, [inner, "-I", os.path.abspath(__file__), program])
    with tempfile.TemporaryDirectory() as folder:
        check_sql(program)
        check_events(program, folder)
        check_messages(program, folder)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
