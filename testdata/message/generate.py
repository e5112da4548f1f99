#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the messages of this folder with protobuf's own compiler and library, and the text that the library reads.

    python3 testdata/message/generate.py     needs `pip install protobuf grpcio-tools crc32c`; rewrites the files

shapes.desc is the output of `protoc --include_imports --descriptor_set_out` for shapes.proto. NAME.tfrecord has messages
of one type, each serialized and framed; NAME.txt has a line for each record: the message that `FromString` reads, in text
format. The output depends only on the versions of the packages, which are in the first line of NAME.txt.
"""
import os
import struct
import subprocess
import sys

import crc32c
import google.protobuf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

HERE = os.path.dirname(os.path.abspath(__file__))


def compile_protos():
    """Compile shapes.proto and its imports, and return the classes of the messages by name."""
    out = os.path.join(HERE, "shapes.desc")
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{HERE}", "--include_imports"]
    subprocess.run([*protoc, f"--descriptor_set_out={out}", os.path.join(HERE, "shapes.proto")], check=True)
    files = descriptor_pb2.FileDescriptorSet()
    with open(out, "rb") as source:
        files.ParseFromString(source.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    names = [message for file in files.file for message in file.message_type]
    classes = {}
    for name in {"Shape", "Legacy", "Point"} & {message.name for message in names}:
        classes[name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tfarrow.test.{name}"))
    return classes


def masked(data):
    """The masked CRC of TFRecord."""
    crc = crc32c.crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def shapes(classes):
    """Shapes with every kind of field, and one without any."""
    Shape, Point = classes["Shape"], classes["Point"]
    full = Shape(name="círculo", radius=-0.0, far=-5)
    scalars = full.scalars
    scalars.a_double, scalars.a_float = float("inf"), 1e-45
    scalars.an_int32, scalars.an_int64 = -(2**31), 2**63 - 1
    scalars.a_uint32, scalars.a_uint64 = 2**32 - 1, 2**64 - 1
    scalars.a_sint32, scalars.a_sint64 = -(2**31), -(2**63)
    scalars.a_fixed32, scalars.a_fixed64 = 2**32 - 1, 2**64 - 1
    scalars.a_sfixed32, scalars.a_sfixed64 = -1, -1
    scalars.a_bool, scalars.a_string, scalars.a_bytes, scalars.a_color = True, "text", b"\xff\x00", 2
    lists = full.lists
    lists.maybe_double, lists.maybe_sint32, lists.maybe_string, lists.maybe_color = 0.0, 0, "", 0
    lists.doubles.extend([0.0, -1.5])
    lists.int32s.extend([0, -1, 300])
    lists.uint64s.extend([2**64 - 1])
    lists.sint32s.extend([-1, 1, 0])
    lists.strings.extend(["", "a"])
    lists.blobs.extend([b"", b"\x80"])
    lists.colors.extend([0, 2, -3, 99])
    lists.unpacked.extend([7, 8])
    full.points.extend([Point(), Point(x=1, y=2)])
    full.counts.update({"": 0, "a": 1})
    full.corners[-1].x = 3
    full.colors[True] = 1
    full.time.FromJsonString("2001-02-03T04:05:06.789000001Z")
    full.durations.add().FromNanoseconds(-1_500_000_000)
    full.durations.add()
    full.wrapped.value = 0
    full.text.value = ""
    full.flags.add()
    full.properties.update({"list": [None, True, 2.5, {"deep": "value"}]})
    full.any.type_url, full.any.value = "type.example.com/unknown", b"\x08\x01"
    part = full.parts.add(name="part", label="a")
    part.parts.add(name="part of part", nothing={}).parts.add(name="deepest")
    early = Shape(name="early", center=Point(x=1))
    early.time.FromJsonString("1969-12-31T23:59:59.999999999Z")
    return [full, Shape(), early]


def legacies(classes):
    """Messages of proto2: groups, presence, and values that are the declared defaults."""
    Legacy = classes["Legacy"]
    full = Legacy(id=0, count=7, text="none", grade=2, unpacked=[1, -1], packed=[2, -2], grades=[1, 2])
    full.box.width = 3
    full.box.lid.color = "red"
    full.item.add(key="a", weights=[0.5, 1.5])
    full.item.add(key="")
    return [full, Legacy(id=1)]


def write(name, messages):
    text = [f"# protobuf {google.protobuf.__version__}"]
    with open(os.path.join(HERE, f"{name}.tfrecord"), "wb") as out:
        for message in messages:
            data = message.SerializeToString(deterministic=True)
            read = type(message).FromString(data)
            assert read == message
            text.append(text_format.MessageToString(read, as_one_line=True))
            out.write(frame(data))
    with open(os.path.join(HERE, f"{name}.txt"), "w", encoding="utf-8", newline="\n") as out:
        out.write("\n".join(text) + "\n")


if __name__ == "__main__":
    all_classes = compile_protos()
    write("shapes", shapes(all_classes))
    write("legacy", legacies(all_classes))
