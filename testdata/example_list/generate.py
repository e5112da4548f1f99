#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write ExampleListWithContext records with TensorFlow's protos, and the values that protobuf's library reads.

    python3 testdata/example_list/generate.py     needs `pip install tensorflow-cpu`; rewrites the files

The message is that of tensorflow_serving/apis/input.proto, made here from its field numbers: examples = 1, context = 2.
queries.txt has a line for each Example that `FromString` reads, in the form of ../generate.py: the word `record` begins a
record, and `context` or `example` a part of it. The output depends only on the versions in the first line.
"""
import base64
import json
import os
import struct

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import google.protobuf
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

HERE = os.path.dirname(os.path.abspath(__file__))


def example_list_class():
    """The class of ExampleListWithContext, whose Examples are TensorFlow's."""
    file = descriptor_pb2.FileDescriptorProto(name="input.proto", package="tensorflow.serving", syntax="proto3")
    file.dependency.append(tf.train.Example.DESCRIPTOR.file.name)
    message = file.message_type.add(name="ExampleListWithContext")
    label = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="examples", number=1, label=label.LABEL_REPEATED, type=label.TYPE_MESSAGE,
                      type_name=".tensorflow.Example")
    message.field.add(name="context", number=2, label=label.LABEL_OPTIONAL, type=label.TYPE_MESSAGE,
                      type_name=".tensorflow.Example")
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.serving.ExampleListWithContext"))


def feature(*values):
    if values and isinstance(values[0], (str, bytes)):
        values = [value.encode() if isinstance(value, str) else value for value in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature=features))


def records(ExampleListWithContext):
    return [
        ExampleListWithContext(
            context=example(query=feature("rust arrow"), tokens=feature(17, 4)),
            examples=[
                example(relevance=feature(2), title=feature("Arrow in Rust"), scores=feature(0.5, -0.25)),
                example(relevance=feature(0), title=feature("Bows"), scores=feature(0.125)),
            ],
        ),
        # No examples, and a feature without a kind.
        ExampleListWithContext(context=example(query=feature("grün"), tokens=tf.train.Feature())),
        # No context; an example without features, an empty list, and a missing feature.
        ExampleListWithContext(examples=[example(), example(relevance=feature(), title=feature(b"a title"))]),
        ExampleListWithContext(),
        ExampleListWithContext(
            context=example(query=feature("last"), tokens=feature(1)),
            examples=[example(relevance=feature(1, 2), title=feature("x" * 200), scores=feature(float("inf")))] * 3,
        ),
    ]


def value(feature):
    """The value of a feature in the form of ../generate.py."""
    kind = feature.WhichOneof("kind")
    if kind is None:
        return None
    values = getattr(feature, kind).value
    if kind == "bytes_list":
        return {"bytes": [base64.b64encode(value).decode() for value in values]}
    if kind == "float_list":
        return {"float": [struct.unpack("<I", struct.pack("<f", value))[0] for value in values]}
    return {"int64": [str(value) for value in values]}


def line(part, example):
    features = {name: value(example.features.feature[name]) for name in sorted(example.features.feature)}
    return f"{part} {json.dumps({'features': features}, ensure_ascii=False)}"


if __name__ == "__main__":
    message = example_list_class()
    lines = [f"# protobuf {google.protobuf.__version__}, TensorFlow {tf.__version__}"]
    with tf.io.TFRecordWriter(os.path.join(HERE, "queries.tfrecord")) as writer:
        for record in records(message):
            data = record.SerializeToString(deterministic=True)
            writer.write(data)
            read = message.FromString(data)
            lines.append("record")
            if read.HasField("context"):
                lines.append(line("context", read.context))
            lines.extend(line("example", one) for one in read.examples)
    with open(os.path.join(HERE, "queries.txt"), "w", encoding="utf-8", newline="\n") as out:
        out.write("\n".join(lines) + "\n")
