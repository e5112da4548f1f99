#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the test data of this folder with TensorFlow: TFRecord files, each with a JSON of the values that TensorFlow reads.

    python3 testdata/generate.py          needs `pip install tensorflow-cpu`; rewrites this folder

Records are made of TensorFlow's own protos and framed by its TFRecordWriter. Only the unusual forms of wire/,
wire_disputed/ and wire_bad/ (and NaN payloads, which Python's floats lose) are written byte by byte, with the wire writer
below. The output depends only on the versions in versions.txt.

NAME.json next to NAME.tfrecord has the result of `tf.train.Example.FromString` (or SequenceExample), one record per line:

    {"features": {NAME: VALUE, ..}}                                        Example
    {"context": {NAME: VALUE, ..}, "feature_lists": {NAME: [VALUE, ..]}}   SequenceExample
    VALUE: null (no kind set), {"bytes": [BASE64, ..]}, {"float": [BITS AS u32, ..]} or {"int64": ["DECIMAL", ..]}

`FromString` is the upb parser of the Python package. Unusual forms are also read by the C++ parser in TensorFlow's kernels
(see `cpp_parse`). The script fails if the results for a file are not those of its folder:

    wire/           both parsers read the record, with equal results
    wire_disputed/  the results differ; README.md there lists them
    wire_bad/       both parsers reject the record
"""
import base64
import gzip
import json
import os
import platform
import shutil
import struct
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import google.protobuf
import numpy as np
import tensorflow as tf
from google.protobuf.internal import api_implementation

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ["mixed_kinds", "shards", "compressed", "tfds", "magic", "wire", "wire_disputed", "wire_bad", "corrupt"]

Example, SequenceExample = tf.train.Example, tf.train.SequenceExample
Feature, Features = tf.train.Feature, tf.train.Features
FeatureList, FeatureLists = tf.train.FeatureList, tf.train.FeatureLists
DTYPES = {"bytes": tf.string, "float": tf.float32, "int64": tf.int64}


# ---------------------------------------------------------------------------------------------- TensorFlow's protos


def blobs(*values):
    return Feature(bytes_list=tf.train.BytesList(value=[v.encode() if isinstance(v, str) else v for v in values]))


def floats(*values):
    return Feature(float_list=tf.train.FloatList(value=values))


def float_bits(*bits):
    """A float_list of these bit patterns: a NaN would lose its payload on the way through Python."""
    return Feature.FromString(length_delimited(FLOAT_LIST, length_delimited(1, struct.pack(f"<{len(bits)}I", *bits))))


def ints(*values):
    return Feature(int64_list=tf.train.Int64List(value=values))


def unset():
    """A feature that is present and has no kind."""
    return Feature()


def example(features):
    return Example(features=Features(feature=features)).SerializeToString(deterministic=True)


def sequence(context=None, lists=None):
    message = SequenceExample()
    if context is not None:
        message.context.CopyFrom(Features(feature=context))
    if lists is not None:
        lists = {name: FeatureList(feature=steps) for name, steps in lists.items()}
        message.feature_lists.CopyFrom(FeatureLists(feature_list=lists))
    return message.SerializeToString(deterministic=True)


# -------------------------------------------------------------------------------------------------- the wire writer

VARINT, FIXED64, LEN, GROUP, END_GROUP, FIXED32 = range(6)
BYTES_LIST, FLOAT_LIST, INT64_LIST = 1, 2, 3  # the fields of Feature


def varint(value, width=0):
    """`value` as a varint of at least `width` bytes."""
    value &= (1 << 64) - 1
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        if not value and len(out) + 1 >= width:
            return bytes(out) + bytes([low])
        out.append(low | 0x80)


def tag(field, wire_type, width=0):
    return varint(field << 3 | wire_type, width)


def length_delimited(field, payload, tag_width=0, length_width=0):
    return tag(field, LEN, tag_width) + varint(len(payload), length_width) + payload


def integer(field, value, width=0):
    return tag(field, VARINT) + varint(value, width)


def fixed32(field, value=b"1234"):
    return tag(field, FIXED32) + value


def fixed64(field, value=b"12345678"):
    return tag(field, FIXED64) + value


def group(field, payload=b""):
    return tag(field, GROUP) + payload + tag(field, END_GROUP)


def nested_groups(depth, payload=b""):
    return tag(9, GROUP) * depth + payload + tag(9, END_GROUP) * depth


def packed(*values, width=0):
    """The field `value` of an Int64List, packed."""
    return length_delimited(1, b"".join(varint(v, width) for v in values))


def packed_floats(*values):
    return length_delimited(1, struct.pack(f"<{len(values)}f", *values))


def unpacked_float(value):
    return fixed32(1, struct.pack("<f", value))


def int64_list(payload, **widths):
    return length_delimited(INT64_LIST, payload, **widths)


def float_list(payload, **widths):
    return length_delimited(FLOAT_LIST, payload, **widths)


def bytes_list(payload, **widths):
    return length_delimited(BYTES_LIST, payload, **widths)


def key(name, **widths):
    return length_delimited(1, name, **widths)


def value(feature, **widths):
    return length_delimited(2, feature, **widths)


def raw_entry(payload, **widths):
    return length_delimited(1, payload, **widths)


def entry(name, feature):
    return raw_entry(key(name) + value(feature))


def features(*entries, **widths):
    """The field `features` of an Example, or `context` of a SequenceExample."""
    return length_delimited(1, b"".join(entries), **widths)


def feature_lists(*entries):
    return length_delimited(2, b"".join(entries))


def steps(*step_features):
    """The payload of a FeatureList."""
    return b"".join(length_delimited(1, f) for f in step_features)


def x(feature):
    """An Example with one feature named x."""
    return features(entry(b"x", feature))


def widened(tag_width=0, length_width=0):
    """Three Examples (int64, float, bytes) in which every tag and length takes this number of bytes."""
    w = dict(tag_width=tag_width, length_width=length_width)
    kinds = [(INT64_LIST, b"\x07\x08"), (FLOAT_LIST, struct.pack("<2f", 1.5, -2.5)), (BYTES_LIST, b"abc")]
    for field, payload in kinds:
        feature = length_delimited(field, length_delimited(1, payload, **w), **w)
        yield features(raw_entry(key(b"x", **w) + value(feature, **w), **w), **w)


SEVEN = int64_list(packed(7))
OVERFLOWING = b"\x87" + b"\x80" * 8  # 7, and a tenth byte to come
UNKNOWN = {  # an unknown field of each wire type
    "varint": integer(9, 1),
    "fixed64": fixed64(10),
    "length_delimited": length_delimited(11, b"xyz"),
    "fixed32": fixed32(12),
    "group": group(13, integer(1, 5) + group(14)),
}

# A description, and the payloads. Names that start with `sequence_` are SequenceExamples, others are Examples.
WIRE = {
    "unpacked_int64": ("int64 values one by one", [x(int64_list(integer(1, 1) + integer(1, -2) + integer(1, 3)))]),
    "unpacked_float": ("float values one by one", [x(float_list(unpacked_float(1.5) + unpacked_float(-2.5)))]),
    "packed_chunks": (
        "several packed chunks in one list",
        [x(int64_list(packed(1, 2) + packed(3) + packed(4, 5))), x(float_list(packed_floats(1) + packed_floats(2, 3)))],
    ),
    "mixed_packed": (
        "packed and unpacked values in one list",
        [
            x(int64_list(integer(1, 1) + packed(2, 3) + integer(1, 4))),
            x(int64_list(packed(1) + integer(1, 2))),
            x(float_list(packed_floats(1) + unpacked_float(2) + packed_floats(3))),
        ],
    ),
    "empty_chunk": (
        "packed chunks without a value: alone, and amid others",
        [x(int64_list(packed())), x(int64_list(packed(1) + packed() + packed(2))), x(float_list(packed_floats()))],
    ),
    "value_before_key": ("map entries whose value comes first", [features(raw_entry(value(SEVEN) + key(b"x")))]),
    "shuffled_features": (
        "features in another order in each record",
        [features(*(entry(bytes([c]), int64_list(packed(c))) for c in order)) for order in (b"abc", b"cab", b"bca")],
    ),
    "unknown_in_example": ("unknown fields of all wire types around `features`", [u + x(SEVEN) + u for u in UNKNOWN.values()]),
    "unknown_in_features": (
        "unknown fields of all wire types between map entries",
        [features(u + entry(b"x", SEVEN) + u) for u in UNKNOWN.values()],
    ),
    "unknown_in_feature": ("unknown fields of all wire types beside the kind", [x(u + SEVEN + u) for u in UNKNOWN.values()]),
    "unknown_in_list": ("unknown fields of all wire types beside the values", [x(int64_list(u + packed(7) + u)) for u in UNKNOWN.values()]),
    "unknown_only": ("nothing but unknown fields: no features; a feature with no kind", [b"".join(UNKNOWN.values()), x(b"".join(UNKNOWN.values()))]),
    "unknown_highest_field": ("field number 2^29 - 1", [x(SEVEN) + integer((1 << 29) - 1, 1)]),
    "group_depth_limit": (
        "groups nested as deep as the parsers go: 100 levels with the messages around them",
        [
            x(SEVEN) + nested_groups(100),
            x(SEVEN) + nested_groups(100, integer(1, 1)),
            x(int64_list(packed(7) + nested_groups(96))),
        ],
    ),
    "duplicate_key": (
        "one key in two map entries: the last entry wins whole",
        [
            features(entry(b"x", int64_list(packed(1))), entry(b"x", int64_list(packed(2)))),
            features(entry(b"x", int64_list(packed(1))), entry(b"y", SEVEN), entry(b"x", float_list(packed_floats(2)))),
            features(entry(b"x", int64_list(packed(1))), raw_entry(key(b"x"))),
            features(entry(b"x", int64_list(packed(1))), entry(b"x", int64_list(b""))),
        ],
    ),
    "features_split": (
        "`features` given twice: merged, and of a key in both the last wins",
        [
            features(entry(b"x", int64_list(packed(1)))) + features(entry(b"y", int64_list(packed(2)))),
            features(entry(b"x", int64_list(packed(1)))) + features(entry(b"x", int64_list(packed(2)))),
            features() + features(entry(b"x", int64_list(packed(1)))) + features(),
        ],
    ),
    "value_twice": (
        "a map entry with two values: merged, unlike two entries",
        [
            features(raw_entry(key(b"x") + value(int64_list(packed(1))) + value(int64_list(packed(2))))),
            features(raw_entry(key(b"x") + value(int64_list(packed(1))) + value(float_list(packed_floats(2))))),
            features(raw_entry(key(b"x") + value(int64_list(packed(1))) + value(b""))),
        ],
    ),
    "key_twice": (
        "a map entry with two keys: the last wins",
        [
            features(raw_entry(key(b"a") + key(b"x") + value(SEVEN))),
            features(raw_entry(key(b"a") + value(SEVEN) + key(b"x"))),
        ],
    ),
    "list_split": (
        "one kind given twice: merged",
        [
            x(int64_list(packed(1)) + int64_list(packed(2))),
            x(float_list(packed_floats(1)) + float_list(b"") + float_list(packed_floats(2))),
            x(bytes_list(length_delimited(1, b"a")) + bytes_list(length_delimited(1, b"b"))),
        ],
    ),
    "kind_twice": (
        "two kinds in one feature: the last wins, and forgets what was before it",
        [
            x(int64_list(packed(1)) + float_list(packed_floats(2))),
            x(int64_list(packed(1)) + float_list(packed_floats(2)) + int64_list(packed(3))),
            x(bytes_list(length_delimited(1, b"a")) + float_list(b"")),
        ],
    ),
    "missing_key": ("a map entry without a key: the empty name", [features(raw_entry(value(SEVEN)))]),
    "missing_value": ("a map entry without a value: a feature with no kind", [features(raw_entry(key(b"x")))]),
    "empty_entry": ("a map entry without key or value", [features(raw_entry(b""))]),
    "empty_value": ("values of no bytes: no kind; each kind with an empty list", [x(b""), x(int64_list(b"")), x(float_list(b"")), x(bytes_list(b""))]),
    "empty_example": ("an empty record, and one with empty features", [b"", features()]),
    "negative": ("negative int64: ten bytes each", [x(int64_list(packed(-1, -(1 << 63)) + integer(1, -2)))]),
    "nonminimal_value": (
        "int64 values of 2, 5, 9 and 10 bytes where one would do",
        [x(int64_list(packed(7, width=w) + integer(1, 7, w))) for w in (2, 5, 9, 10)],
    ),
    "overflowing_value": (
        "ten-byte values whose last byte has more than the one bit that is left: the rest is dropped",
        [x(int64_list(length_delimited(1, OVERFLOWING + last) + tag(1, VARINT) + OVERFLOWING + last)) for last in (b"\x02", b"\x03", b"\x7f")],
    ),
    "overflowing_unknown": ("the same in an unknown field", [x(SEVEN) + tag(9, VARINT) + OVERFLOWING + b"\x7f"]),
    "nonminimal_length_2": ("every length in 2 bytes", list(widened(length_width=2))),
    "nonminimal_length_5": ("every length in 5 bytes: the most that both parsers take", list(widened(length_width=5))),
    "nonminimal_tag_2": ("every tag in 2 bytes", list(widened(tag_width=2))),
    "nonminimal_tag_5": ("every tag in 5 bytes: the most that both parsers take", list(widened(tag_width=5))),
    "wrong_type_features": ("`features` as a varint and as a group: unknown fields", [integer(1, 5) + x(SEVEN), group(1) + x(SEVEN)]),
    "wrong_type_entry": ("the map field as a varint: an unknown field", [features(integer(1, 5), entry(b"x", SEVEN))]),
    "wrong_type_kind": ("a kind as a varint: an unknown field, and no kind", [x(integer(INT64_LIST, 5) + SEVEN), x(integer(INT64_LIST, 5))]),
    "wrong_type_value": (
        "values of another wire type: unknown fields",
        [
            x(int64_list(packed(1) + fixed32(1) + fixed64(1) + group(1) + packed(2))),
            x(float_list(integer(1, 5) + fixed64(1) + packed_floats(2))),
            x(bytes_list(integer(1, 5) + fixed32(1) + length_delimited(1, b"q"))),
        ],
    ),
    "sequence_lists_split": (
        "`feature_lists` given twice: merged, and of a key in both the last wins",
        [
            feature_lists(entry(b"x", steps(SEVEN))) + feature_lists(entry(b"y", steps(SEVEN, SEVEN))),
            feature_lists(entry(b"x", steps(SEVEN))) + feature_lists(entry(b"x", steps(SEVEN, SEVEN))),
        ],
    ),
    "sequence_lists_first": ("`feature_lists` before and around `context`", [feature_lists(entry(b"l", steps(SEVEN))) + x(SEVEN) + feature_lists(entry(b"m", steps()))]),
    "sequence_context_split": ("`context` given twice", [x(SEVEN) + feature_lists() + features(entry(b"y", SEVEN))]),
    "sequence_duplicate_list": ("one list in two map entries: the last wins whole", [feature_lists(entry(b"l", steps(SEVEN, SEVEN)), entry(b"l", steps(b"")))]),
    "sequence_list_value_twice": (
        "a map entry with two FeatureLists: their steps follow one another",
        [feature_lists(raw_entry(key(b"l") + value(steps(int64_list(packed(1)))) + value(steps(int64_list(packed(2)), b""))))],
    ),
    "sequence_value_before_key": ("map entries whose FeatureList comes first", [feature_lists(raw_entry(value(steps(SEVEN)) + key(b"l")))]),
    "sequence_missing": ("a list without a name; a list without a FeatureList; an empty record", [feature_lists(raw_entry(value(steps(SEVEN)))), feature_lists(raw_entry(key(b"l"))), b""]),
    "sequence_step_split": ("a step with two kinds and with one kind twice", [feature_lists(entry(b"l", steps(float_list(packed_floats(1)) + SEVEN, int64_list(packed(1)) + int64_list(packed(2)))))]),
    "sequence_unknown": (
        "unknown fields at every level but the map entry",
        [u + feature_lists(u + entry(b"l", u + steps(u + int64_list(u + packed(7))) + u)) + u for u in UNKNOWN.values()],
    ),
}

DISPUTED = {
    "length_6_bytes": ("every length in 6 bytes", list(widened(length_width=6))),
    "length_10_bytes": ("every length in 10 bytes", list(widened(length_width=10))),
    "tag_33_bits": ("a five-byte tag of an unknown field whose fifth byte has bits beyond 32", [x(SEVEN) + b"\xc8\x80\x80\x80\x10\x01"]),
    "tag_35_bits": ("the same, all bits set", [x(SEVEN) + b"\xf8\xff\xff\xff\x7f\x01"]),
    "unknown_in_entry": (
        "unknown fields of all wire types in a map entry, beside key and value",
        [features(raw_entry(key(b"x") + u + value(SEVEN)), entry(b"y", SEVEN)) for u in UNKNOWN.values()],
    ),
    "wrong_type_map_key": ("the key of a map entry as a varint, before the key", [features(raw_entry(integer(1, 5) + key(b"x") + value(SEVEN)))]),
    "wrong_type_map_value": ("the value of a map entry as a varint, before the value", [features(raw_entry(key(b"x") + integer(2, 5) + value(SEVEN)))]),
    "sequence_unknown_in_entry": ("an unknown field in a map entry of `feature_lists`", [feature_lists(raw_entry(key(b"l") + integer(9, 1) + value(steps(SEVEN))))]),
}

BAD = {
    "truncated_varint": ("an int64 value that ends with a byte that announces another", [x(int64_list(integer(1, 300)[:-1]))]),
    "truncated_tag": ("the record ends inside a tag", [x(SEVEN) + b"\x88"]),
    "truncated_length": ("the record ends inside a length", [x(SEVEN) + tag(9, LEN) + b"\x80"]),
    "truncated_fixed32": ("an unpacked float of three bytes", [x(float_list(unpacked_float(1.5)[:-1]))]),
    "truncated_fixed64": ("an unknown fixed64 of seven bytes", [x(SEVEN) + fixed64(9)[:-1]]),
    "packed_float_length": ("packed floats of six bytes", [x(float_list(length_delimited(1, bytes(6))))]),
    "packed_ends_inside": ("a packed chunk that ends inside a varint", [x(int64_list(length_delimited(1, b"\x01\x80")))]),
    "packed_overruns": ("the same, and the bytes behind the chunk would complete the varint", [x(int64_list(length_delimited(1, b"\x01\x80") + integer(1, 1)))]),
    "varint_11_bytes": ("an int64 value of 11 bytes", [x(int64_list(integer(1, 7, 11)))]),
    "packed_varint_11_bytes": ("a packed int64 value of 11 bytes", [x(int64_list(packed(7, width=11)))]),
    "unknown_varint_11_bytes": ("an unknown varint of 11 bytes", [x(SEVEN) + integer(9, 7, 11)]),
    "tag_6_bytes": ("a known tag in 6 bytes", [x(int64_list(length_delimited(1, b"\x07", tag_width=6)))]),
    "tag_10_bytes": ("a known tag in 10 bytes", [x(int64_list(length_delimited(1, b"\x07", tag_width=10)))]),
    "unknown_tag_6_bytes": ("an unknown tag in 6 bytes", [x(SEVEN) + tag(9, VARINT, 6) + b"\x01"]),
    "length_11_bytes": ("a length in 11 bytes", [x(int64_list(length_delimited(1, b"\x07", length_width=11)))]),
    "length_2_31": ("a length of 2^31 + 3", [x(SEVEN) + tag(9, LEN) + varint((1 << 31) + 3) + b"abc"]),
    "length_33_bits": ("a length of 2^32 + 3: its low 32 bits would do", [x(bytes_list(tag(1, LEN) + varint((1 << 32) + 3) + b"abc"))]),
    "length_64_bits": ("a length of 2^64 - 1", [x(SEVEN) + tag(9, LEN) + varint(-1) + b"abc"]),
    "key_not_utf8": ("a feature name that is not UTF-8", [features(entry(b"\xff\xfe", SEVEN))]),
    "key_surrogate": ("a feature name with a surrogate", [features(entry(b"\xed\xa0\x80", SEVEN))]),
    "key_not_utf8_replaced": ("a feature name that is not UTF-8, and a good one after it in the same map entry", [features(raw_entry(key(b"\xff") + key(b"x") + value(SEVEN)))]),
    "length_past_end": ("a known field longer than the record", [x(SEVEN)[:-1]]),
    "unknown_length_past_end": ("an unknown field longer than the record", [x(SEVEN) + length_delimited(9, b"abc")[:-1]]),
    "length_past_parent": ("a submessage longer than its parent, not than the record", [features(raw_entry(key(b"x") + tag(2, LEN) + varint(len(SEVEN) + 4) + SEVEN)) + length_delimited(9, bytes(8))]),
    "field_zero": ("field number 0 beside `features`", [x(SEVEN) + b"\x00\x00"]),
    "field_zero_length_delimited": ("field number 0, length-delimited", [x(SEVEN) + b"\x02\x00"]),
    "field_zero_in_list": ("field number 0 beside the values", [x(int64_list(b"\x00\x01" + packed(7)))]),
    "field_zero_nonminimal": ("field number 0 in a tag of two bytes", [x(SEVEN) + b"\x80\x00\x00"]),
    "field_zero_in_group": ("field number 0 in an unknown group", [x(SEVEN) + group(9, b"\x00\x00")]),
    "wire_type_6": ("wire type 6", [x(SEVEN) + tag(9, 6) + b"\x00"]),
    "wire_type_7": ("wire type 7", [x(SEVEN) + tag(9, 7) + b"\x00"]),
    "wire_type_6_known": ("wire type 6 of a known field", [x(int64_list(tag(1, 6) + b"\x00"))]),
    "end_group": ("an end-group without a start", [x(SEVEN) + tag(9, END_GROUP)]),
    "end_group_in_list": ("the same beside the values", [x(int64_list(packed(7) + tag(9, END_GROUP)))]),
    "group_mismatched": ("a group that another field's end-group closes", [x(SEVEN) + tag(9, GROUP) + tag(8, END_GROUP)]),
    "group_unclosed": ("a group without an end", [x(SEVEN) + tag(9, GROUP)]),
    "group_closed_outside": ("a group that is closed outside of its message", [x(int64_list(packed(7) + tag(9, GROUP))) + tag(9, END_GROUP)]),
    "group_too_deep": ("101 groups beside `features`", [x(SEVEN) + nested_groups(101)]),
    "group_too_deep_in_list": ("97 groups in the fifth message", [x(int64_list(packed(7) + nested_groups(97)))]),
    "sequence_truncated": ("a FeatureList longer than the record", [feature_lists(entry(b"l", steps(SEVEN)))[:-1]]),
    "sequence_key_not_utf8": ("a feature list's name that is not UTF-8", [feature_lists(entry(b"\xff", steps(SEVEN)))]),
}


# ------------------------------------------------------------------------------------------------ TensorFlow's parsers


def proto(is_sequence):
    return SequenceExample if is_sequence else Example


def float_list_bits(message):
    """The bits of a FloatList's values, from its own packed serialization."""
    clean = tf.train.FloatList()
    clean.CopyFrom(message)
    clean.DiscardUnknownFields()
    return np.frombuffer(clean.SerializeToString()[-4 * len(clean.value) :] if clean.value else b"", "<u4").tolist()


def reading(feature):
    """A Feature as the VALUE of NAME.json."""
    kind = feature.WhichOneof("kind")
    if kind == "bytes_list":
        return {"bytes": [base64.b64encode(v).decode() for v in feature.bytes_list.value]}
    if kind == "float_list":
        return {"float": float_list_bits(feature.float_list)}
    if kind == "int64_list":
        return {"int64": [str(v) for v in feature.int64_list.value]}
    return None


def readings(named_features):
    return {name: reading(f) for name, f in sorted(named_features.items())}


def upb_reading(payload, is_sequence):
    """A record in the form of NAME.json, or None if FromString rejects it."""
    try:
        message = proto(is_sequence).FromString(payload)
    except google.protobuf.message.DecodeError:
        return None
    if not is_sequence:
        return {"features": readings(message.features.feature)}
    lists = message.feature_lists.feature_list
    return {
        "context": readings(message.context.feature),
        "feature_lists": {name: [reading(f) for f in lists[name].feature] for name in sorted(lists)},
    }


def kernel_reading(parse):
    """The result of a parsing kernel: VALUE, "absent" (also for no kind or no value), or None if it rejects the record.

    `parse` calls the kernel for one feature, as a flat tensor of the given type."""
    for kind, dtype in DTYPES.items():
        try:
            values = parse(dtype).numpy()
        except UnicodeDecodeError:  # the kernel's message contains the rejected record
            return None
        except tf.errors.InvalidArgumentError as e:
            if "Data types don't match" in str(e):
                continue
            return None
        if not len(values):
            return "absent"
        if kind == "bytes":
            return {kind: [base64.b64encode(v).decode() for v in values]}
        if kind == "float":
            return {kind: values.view("<u4").tolist()}
        return {kind: [str(v) for v in values]}
    raise AssertionError("a feature of none of the three kinds")


def cpp_parse(payload, context=(), lists=()):
    """The kernel that reads a complete SequenceExample with the C++ proto parser. (Newer kernels have their own parsers.)

    An Example's `features` are a SequenceExample's `context` on the wire, so that it reads both."""
    return tf.raw_ops.ParseSingleSequenceExample(
        serialized=payload, debug_name="", context_dense_keys=[], context_dense_defaults=[], feature_list_dense_keys=[],
        feature_list_dense_missing_assumed_empty=tf.constant([], tf.string),
        context_sparse_keys=[name for name, _ in context], context_sparse_types=[dtype for _, dtype in context],
        feature_list_sparse_keys=[name for name, _ in lists], feature_list_sparse_types=[dtype for _, dtype in lists],
    )  # fmt: skip


def cpp_reading(payload, name):
    """Feature `name` by the C++ proto parser."""
    return kernel_reading(lambda dtype: cpp_parse(payload, context=[(name, dtype)]).context_sparse_values[0])


def cpp_steps(payload, name):
    """Feature list `name` of int64 steps by the C++ proto parser: the values of each step."""
    read = cpp_parse(payload, lists=[(name, tf.int64)])
    steps_read = [[] for _ in range(int(read.feature_list_sparse_shapes[0][0]))]
    for (step, _), v in zip(read.feature_list_sparse_indices[0].numpy(), read.feature_list_sparse_values[0].numpy()):
        steps_read[step].append(str(v))
    return steps_read


def fast_reading(payload, name):
    """Feature `name` by TensorFlow's hand-written Example parser."""
    return kernel_reading(lambda dtype: tf.io.parse_single_example(payload, {name: tf.io.VarLenFeature(dtype)})[name].values)


def as_kernel(read):
    """VALUE in the form of a kernel's result, which is the same for no kind, an empty list and a missing feature."""
    return "absent" if read is None or not next(iter(read.values())) else read


def same_in_cpp(payload, is_sequence):
    """Whether the C++ parser and FromString have equal results. (Feature lists: of int64.)"""
    upb = upb_reading(payload, is_sequence)
    context = upb["context" if is_sequence else "features"]
    lists = upb["feature_lists"] if is_sequence else {}
    return all(cpp_reading(payload, n) == as_kernel(context.get(n)) for n in {"x", "y", *context}) and all(
        cpp_steps(payload, n) == [step["int64"] if step else [] for step in lists[n]] for n in lists
    )


def spell(answer):
    """A kernel's result as text for a README."""
    if answer is None:
        return "rejects"
    if answer == "absent":
        return "nothing"
    kind, values = next(iter(answer.items()))
    if kind == "bytes":
        values = [base64.b64decode(v).decode() for v in values]
    if kind == "float":
        values = [f"{v:g}" for v in np.array(values, "<u4").view("<f4")]
    return f"{kind} {', '.join(values)}"


# ------------------------------------------------------------------------------------------------------- the files


def write(path, payloads, compression=""):
    """Write a TFRecord file under HERE, and return its path."""
    path = os.path.join(HERE, path)
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=compression)) as writer:
        for payload in payloads:
            writer.write(payload)
    return path


def write_bytes(path, content):
    with open(os.path.join(HERE, path), "wb") as f:
        f.write(content)


def write_text(path, lines):
    with open(os.path.join(HERE, path), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


def records(path, compression=""):
    """The payloads of a file under HERE, as TensorFlow reads them."""
    return list(tf.data.TFRecordDataset(os.path.join(HERE, path), compression).as_numpy_iterator())


def describe(path, payloads, is_sequence=False):
    """Write the result of FromString for `payloads` to NAME.json."""
    for suffix in (".gz", ".tfrecord"):
        path = path.removesuffix(suffix)
    read = [upb_reading(p, is_sequence) for p in payloads]
    assert None not in read, f"{path}: FromString rejects a record"
    lines = [json.dumps(r, separators=(",", ":"), ensure_ascii=False) for r in read]
    write_text(path + ".json", ["[", ",\n".join(lines), "]"] if lines else ["[]"])


def save(path, payloads, compression="", is_sequence=False):
    """Write a TFRecord file and its NAME.json; TensorFlow must read the same payloads."""
    payloads = list(payloads)
    write(path, payloads, compression)
    assert records(path, compression) == payloads, path
    describe(path, payloads, is_sequence)


def scalar():
    words = ["amber", "birch", "cedar", "dune", "ember"]
    for i in range(20):
        yield example({"id": ints(i * 1001 - 5), "score": floats(i / 8 - 1), "payload": blobs(bytes([255 - i, 0, i])), "title": blobs(f"{words[i % 5]} {i}")})


def ragged(rng):
    """Lists of 0..5 values; each feature is missing in a third of the records."""
    words = ["red", "green", "blue", "żółty", ""]
    for i in range(30):
        n = [int(k) for k in rng.integers(0, 6, 3)]
        record = {
            "ints": ints(*rng.integers(-1000, 1 << 40, n[0]).tolist()),
            "floats": floats(*rng.standard_normal(n[1]).astype(np.float32).tolist()),
            "words": blobs(*(words[k] for k in rng.integers(0, 5, n[2]))),
            "bytes": blobs(*(b"\x80" + bytes([k]) for k in range(n[0]))),
        }
        missing = {name for j, name in enumerate(record) if (i + j) % 3 == 0}
        yield example({name: f for name, f in record.items() if name not in missing})


def states():
    """Every state of a feature for every kind, in combination with each state of the other kinds."""
    turns = [None, "unset", 0, 1, 3]
    makers = {"b": lambda n: blobs(*[b"v%d" % k for k in range(n)]), "f": lambda n: floats(*[k + 0.5 for k in range(n)]), "i": lambda n: ints(*range(n))}
    for shift in range(1, 3):
        for at in range(5):
            record = {"never": unset(), "b_empty": blobs(), "f_empty": floats(), "i_empty": ints()}
            for j, (name, make) in enumerate(makers.items()):
                state = turns[(at + j * shift) % 5]
                if state is not None:
                    record[name] = unset() if state == "unset" else make(state)
            yield example(record)
    yield b""
    yield example({})
    yield features()


def tensors():
    """Tensors of each dtype from tf.io.serialize_tensor, and messages with the other forms of values."""
    numeric = [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64]
    for dtype in numeric:
        yield tf.io.serialize_tensor(tf.cast(tf.reshape(tf.range(6), [2, 3]), dtype)).numpy()
    yield tf.io.serialize_tensor(tf.constant([[True], [False]])).numpy()
    yield tf.io.serialize_tensor(tf.constant([["a", "żółw"], ["", "d" * 200]])).numpy()
    yield tf.io.serialize_tensor(tf.constant(7, tf.int64)).numpy()
    yield tf.io.serialize_tensor(tf.zeros([0, 4])).numpy()
    yield tf.io.serialize_tensor(tf.constant([2**63 - 1, -(2**63)], tf.int64)).numpy()
    yield tf.io.serialize_tensor(tf.constant([2**64 - 1], tf.uint64)).numpy()
    for dtype in numeric + [tf.bool, tf.string]:
        one = tf.make_tensor_proto([{tf.string: b"x", tf.bool: True}.get(dtype, 1)], dtype, [1])
        yield one.SerializeToString()
    # The last value is repeated for missing ones.
    for proto, values in [(tf.make_tensor_proto([1.5], tf.float32, [1]), "float_val"), (tf.make_tensor_proto([3], tf.int32, [1]), "int_val")]:
        number = getattr(proto, values)[0] if getattr(proto, values) else np.frombuffer(proto.tensor_content, "<f4" if values == "float_val" else "<i4")[0].item()
        proto.ClearField("tensor_content")
        proto.ClearField(values)
        getattr(proto, values).extend([number + 1, number])
        proto.tensor_shape.dim[0].size = 5
        yield proto.SerializeToString()
        proto.ClearField(values)
        yield proto.SerializeToString()


def tensor_example(payload):
    """A message, and TensorFlow's result for it: the dtype, the shape and the values as text."""
    proto = tf.make_tensor_proto(0)
    proto.ParseFromString(payload)
    tensor = tf.io.parse_tensor(payload, tf.DType(proto.dtype))
    values = tf.reshape(tensor, [-1]).numpy().tolist()
    words = [v.decode() if isinstance(v, bytes) else repr(int(v) if isinstance(v, bool) else v) for v in values]
    return example({"tensor": blobs(payload), "dtype": blobs(tensor.dtype.name), "shape": ints(*tensor.shape), "values": blobs(*words)})


def sequences():
    both = {"id": ints(1), "shared": blobs("context"), "speaker": blobs("ann")}
    yield sequence(both, {"frame": [floats(1, 2, 3), floats(4), floats()], "token": [blobs("a"), blobs("b", "c")], "shared": [ints(1), ints(2, 3)]})
    yield sequence({"id": ints(2)}, {"frame": [], "token": [blobs(), blobs("d")]})
    yield sequence({"id": ints(3)}, {"frame": [unset(), floats(5), unset()], "token": [unset()], "shared": [ints()]})
    yield sequence({"id": ints(4), "shared": unset()}, {})
    yield sequence({"id": ints(5)}, None)
    yield sequence(None, {"frame": [floats(float(i)) for i in range(20)], "shared": []})
    yield sequence({}, None)
    yield b""
    yield sequence({"speaker": blobs("żaneta"), "rates": ints(1, 2, 3)}, {"empty": [], "unset": [unset(), unset()], "tags": [ints(*range(n)) for n in (3, 0, 1)]})


def numbers():
    low, high = -(1 << 63), (1 << 63) - 1
    bits = {
        "zero": 0x0000_0000, "minus_zero": 0x8000_0000, "smallest_denormal": 0x0000_0001, "largest_denormal": 0x007F_FFFF,
        "minus_denormal": 0x8000_0001, "smallest_normal": 0x0080_0000, "largest": 0x7F7F_FFFF, "infinity": 0x7F80_0000,
        "minus_infinity": 0xFF80_0000, "nan": 0x7FC0_0000, "minus_nan": 0xFFC0_0000, "nan_payload": 0x7FC1_2345,
        "signaling_nan": 0x7F80_0001, "signaling_nan_payload": 0xFFA5_5A5A, "one": 0x3F80_0000,
    }  # fmt: skip
    integers = [low, high, -1, 0, 1, 127, 128, 1 << 31, 1 << 32, low + 1, (1 << 53) + 1, -128, 255, 256, 16384]
    for i, f in zip(integers, bits.values()):
        yield example({"i": ints(i), "f": float_bits(f)})
    yield example({"i": ints(*integers), "f": float_bits(*bits.values()), "is": ints(*integers), "fs": float_bits(*bits.values())})


def texts():
    utf8 = ["plain", "żółw", "日本語", "🦀", "a\u0000b", "", "line\nbreak", '"quoted", \\ and tab\t']
    for i, text in enumerate(utf8):
        yield example({
            "utf8": blobs(text), "blob": blobs([b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"ok"][i % 4]), "empty": blobs(""),
            "late": blobs("fine" if i < len(utf8) - 1 else b"\x80 not so"), "texts": blobs(*utf8[:i]), "mixed": blobs("fine", b"\xf8", "fine"),
        })  # fmt: skip


NAMES = ["record", "_file", "_tfarrow_unset", "feature_lists/x", "", "a.b", "a/b", 'Quote"d', "Capital", "capital", "ünï", "with space", "x"]


def names():
    for i in range(3):
        yield example({name: (ints(i), floats(i), blobs(f"{name}={i}"))[j % 3] for j, name in enumerate(NAMES) if i != 1 or j % 2})


def shard(number, rng):
    """Fifty records of a small data set of photographs for sale."""
    cities = ["Gdańsk", "Lima", "Nairobi", "Oslo", "Porto"]
    tags = ["night", "river", "market", "snow", "people"]
    for _ in range(50):
        height, width = (int(k) for k in rng.integers(4, 9, 2))
        slope = rng.integers(1, 16, 3)
        pixels = (np.add.outer(np.arange(height), np.arange(width))[:, :, None] * slope + 10 * number) % 256
        yield example({
            "label": ints(int(rng.integers(0, 4))),
            "price": floats(round(float(rng.gamma(2, 20)), 2)),
            "city": blobs(cities[int(rng.integers(0, 5))]),
            "embedding": floats(*rng.standard_normal(8).astype(np.float32).tolist()),
            "tags": blobs(*(tags[k] for k in np.flatnonzero(rng.random(5) < 0.3))),
            "image/encoded": blobs(tf.io.encode_png(pixels.astype(np.uint8)).numpy()),
            "image/height": ints(height),
            "image/width": ints(width),
        })  # fmt: skip


def compressed(rng):
    payloads = [list(ragged(rng)) for _ in range(3)]
    save("compressed/plain-00000-of-00003.tfrecord", payloads[0])
    save("compressed/gzip-00001-of-00003.tfrecord.gz", payloads[1], "GZIP")
    save("compressed/zlib-00002-of-00003.tfrecord", payloads[2], "ZLIB")
    plain = open(os.path.join(HERE, "compressed/plain-00000-of-00003.tfrecord"), "rb").read()
    border = sum(len(p) + 16 for p in payloads[0][:10])
    inside = sum(len(p) + 16 for p in payloads[0][:20]) + 20
    members = [plain[:border], plain[border:inside], plain[inside:]]
    write_bytes("compressed/gzip_members.tfrecord.gz", b"".join(gzip.compress(m, mtime=0) for m in members))
    describe("compressed/gzip_members.tfrecord.gz", payloads[0])
    assert records("compressed/gzip_members.tfrecord.gz", "GZIP") == payloads[0], "TensorFlow stops at a gzip member's end"


def snappy(path):
    """Snappy of tf.data's writer, which starts a block where the next part of a record exceeds 256 KiB."""
    payloads = [example({"id": ints(i), "zeros": blobs(bytes(90_000))}) for i in range(6)]
    values = tf.data.Dataset.from_generator(lambda: iter(payloads), output_signature=tf.TensorSpec((), tf.string))
    tf.data.experimental.TFRecordWriter(os.path.join(HERE, path), "SNAPPY").write(values)
    assert records(path, "SNAPPY") == payloads


def tfds(rng):
    """MNIST's shape in the names and side files of TensorFlow Datasets."""
    total = 0
    for number in range(2):
        payloads = []
        for i in range(5):
            digit = (i + 5 * number) % 10
            pixels = np.zeros((28, 28, 1), np.uint8)
            pixels[6:22, 6 + digit : 10 + digit] = int(rng.integers(100, 256))
            payloads.append(example({"image": blobs(tf.io.encode_png(pixels).numpy()), "label": ints(digit)}))
        total += sum(map(len, payloads))
        save(f"tfds/mnist-train.tfrecord-{number:05d}-of-00002", payloads)
    info = {
        "citation": "", "description": "Ten drawings that look like no digit.", "fileFormat": "tfrecord",
        "moduleName": "tensorflow_datasets.image_classification.mnist", "name": "mnist", "releaseNotes": {},
        "splits": [{"filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}", "name": "train", "numBytes": str(total), "shardLengths": ["5", "5"]}],
        "supervisedKeys": {"tuple": {"items": [{"featureKey": "image"}, {"featureKey": "label"}]}}, "version": "3.0.1",
    }  # fmt: skip
    package = "tensorflow_datasets.core.features."
    structure = {
        "pythonClassName": package + "features_dict.FeaturesDict",
        "featuresDict": {"features": {
            "image": {"pythonClassName": package + "image_feature.Image", "image": {"shape": {"dimensions": ["28", "28", "1"]}, "dtype": "uint8", "encodingFormat": "png"}},
            "label": {"pythonClassName": package + "class_label_feature.ClassLabel", "classLabel": {"numClasses": "10"}},
        }},
    }  # fmt: skip
    write_text("tfds/dataset_info.json", [json.dumps(info, indent=2)])
    write_text("tfds/features.json", [json.dumps(structure, indent=2)])


def magic():
    """Plain files that begin with a compressor's magic number: the length of the first record has these bytes."""
    for length, head in ((35_615, b"\x1f\x8b"), (40_056, b"\x78\x9c")):
        pad = length
        while len(first := example({"pad": blobs(bytes(pad))})) > length:
            pad -= len(first) - length
        assert len(first) == length
        save(f"magic/{length}.tfrecord", [first, example({"pad": blobs(b"small")})])
        assert open(os.path.join(HERE, f"magic/{length}.tfrecord"), "rb").read(2) == head


def wire():
    rows = ["# Unusual forms that TensorFlow reads",
            "",
            "Written by generate.py. `FromString` and the C++ parser agree on all of them. TensorFlow's hand-written `tf.io.parse_single_example`",
            "differs on some: the last column has its result for each record, or \"same\". (\"nothing\" is an empty result.)",
            "",
            "| file | form | parse_single_example |",
            "|---|---|---|"]  # fmt: skip
    for name, (what, payloads) in WIRE.items():
        is_sequence = name.startswith("sequence_")
        save(f"wire/{name}.tfrecord", payloads, is_sequence=is_sequence)
        for i, payload in enumerate(payloads):
            assert same_in_cpp(payload, is_sequence), f"wire/{name}: record {i} is not the same to C++"
        rows.append(f"| {name} | {what} | {'' if is_sequence else '; '.join(fast_difference(p) for p in payloads)} |".replace("|  |", "| |"))
    write_text("wire/README.md", rows)


def fast_difference(payload):
    upb = upb_reading(payload, False)["features"]
    answers = {n: fast_reading(payload, n) for n in sorted(set(upb) | {"x"})}
    if None in answers.values():
        return "rejects"
    odd = {n: a for n, a in answers.items() if a != as_kernel(upb.get(n))}
    return ", ".join(spell(a) for a in odd.values()) or "same"


def wire_disputed():
    rows = ["# Unusual forms on which TensorFlow's own parsers disagree",
            "",
            "Written by generate.py. If FromString reads a file, NAME.json has its result. The last columns have the result of each parser for",
            "feature `x` (for a SequenceExample, the feature list): one result for all records, or one for each record.",
            "",
            "| file | form | FromString (upb) | C++ | parse_single_example |",
            "|---|---|---|---|---|"]  # fmt: skip
    for name, (what, payloads) in DISPUTED.items():
        is_sequence, path = name.startswith("sequence_"), f"wire_disputed/{name}.tfrecord"
        write(path, payloads)
        assert records(path) == payloads, path
        upb = [upb_reading(p, is_sequence) for p in payloads]
        if None not in upb:
            describe(path, payloads, is_sequence)
        if is_sequence:
            assert all(u is not None and "l" not in u["feature_lists"] for u in upb)
            rows.append(f"| {name} | {what} | no such list | {'; '.join(str(cpp_steps(p, 'l')) for p in payloads)} | |")
            continue
        answers = [["rejects" if u is None else spell(as_kernel(u["features"].get("x"))) for u in upb]]
        answers += [[spell(read(p, "x")) for p in payloads] for read in (cpp_reading, fast_reading)]
        assert answers[0] != answers[1], f"{name} is not disputed"
        rows.append(f"| {name} | {what} | " + " | ".join("; ".join(dict.fromkeys(a)) for a in answers) + " |")
    write_text("wire_disputed/README.md", rows)


def wire_bad():
    rows = ["# Records that TensorFlow rejects",
            "",
            "Written by generate.py. `FromString` and the C++ parser reject all of them. The last column has the result of",
            "`tf.io.parse_single_example`, which checks less.",
            "",
            "| file | form | FromString (upb) | C++ | parse_single_example |",
            "|---|---|---|---|---|"]  # fmt: skip
    for name, (what, payloads) in BAD.items():
        is_sequence, path = name.startswith("sequence_"), f"wire_bad/{name}.tfrecord"
        write(path, payloads)
        assert records(path) == payloads, path
        for payload in payloads:
            assert upb_reading(payload, is_sequence) is None, f"{path}: FromString reads it"
            assert cpp_reading(payload, "x") is None, f"{path}: C++ reads it"
        fast = "" if is_sequence else "; ".join(spell(fast_reading(p, "x")) for p in payloads)
        rows.append(f"| {name} | {what} | rejects | rejects | {fast} |".replace("|  |", "| |"))
    write_text("wire_bad/README.md", rows)


def corrupt(rng):
    """Corrupt copies of a valid file of three records; record 1 is the middle one."""
    payloads = [example({"i": ints(i), "s": blobs(f"record {i}, long enough to be cut")}) for i in range(3)]
    save("corrupt/good.tfrecord", payloads)
    good = open(os.path.join(HERE, "corrupt/good.tfrecord"), "rb").read()
    start, size = len(payloads[0]) + 16, len(payloads[1])

    def flipped(offset, bit=1):
        return good[:offset] + bytes([good[offset] ^ bit]) + good[offset + 1 :]

    zipped = gzip.compress(good, mtime=0)
    deflate = zlib.compressobj(wbits=31)
    two_records = deflate.compress(good[: start + size + 16]) + deflate.flush(zlib.Z_FULL_FLUSH)
    reserved_block = b"\x07"  # the last block, and of the type that deflate reserves
    files = {
        "length.tfrecord": (flipped(start), "a bit of record 1's length"),
        "length_high.tfrecord": (flipped(start + 7, 0x40), "the second highest bit of record 1's length"),
        "length_crc.tfrecord": (flipped(start + 8), "a bit of record 1's length CRC"),
        "data.tfrecord": (flipped(start + 12 + size // 2), "a bit of record 1's data"),
        "data_crc.tfrecord": (flipped(start + 12 + size), "a bit of record 1's data CRC"),
        "truncated.tfrecord": (good[:-20], "ends inside the data of record 2"),
        "truncated_header.tfrecord": (good[: 2 * start + 5], "ends inside the length of record 2"),
        "truncated_crc.tfrecord": (good[:-2], "ends inside the data CRC of record 2"),
        "garbage.tfrecord": (b"\x00" + rng.bytes(999), "random bytes"),
        "trailing.tfrecord": (good + b"\x00" * 7, "seven zeros after record 2"),
        "truncated.tfrecord.gz": (zipped[: len(zipped) // 2], "half of a gzip file"),
        "truncated_trailer.tfrecord.gz": (zipped[:-4], "gzip without its last four bytes"),
        "bad_deflate.tfrecord.gz": (two_records + reserved_block, "an invalid deflate block after record 1"),
        "bad_gzip_crc.tfrecord.gz": (zipped[:-8] + bytes([zipped[-8] ^ 1]) + zipped[-7:], "a bit of gzip's own CRC"),
        "trailing.tfrecord.gz": (zipped + b"\x00" * 7, "seven zeros after the gzip member"),
    }
    assert len(good) == 3 * start
    rows = ["# Corrupt files",
            "",
            "Written by generate.py: copies of good.tfrecord with one fault each. Records are numbered from 0. The last column is the",
            "number of records that TensorFlow reads, and its error.",
            "",
            "| file | fault | TensorFlow |",
            "|---|---|---|"]  # fmt: skip
    for name, (content, what) in files.items():
        write_bytes(f"corrupt/{name}", content)
        read, error = 0, "no error"
        try:
            for _ in tf.data.TFRecordDataset(os.path.join(HERE, "corrupt", name), "GZIP" if name.endswith(".gz") else ""):
                read += 1
        except tf.errors.OpError as e:
            error = f"{type(e).__name__}: {e.message.split('}} ')[-1].split(' [Op')[0].split(HERE)[0].strip()}"
        rows.append(f"| {name} | {what} | {read}, {error} |")
    write_text("corrupt/README.md", rows)


def main():
    versions = [
        f"python {platform.python_version()}", f"tensorflow {tf.__version__}", f"numpy {np.__version__}",
        f"protobuf {google.protobuf.__version__} ({api_implementation.Type()})", f"zlib {zlib.ZLIB_RUNTIME_VERSION}",
    ]  # fmt: skip
    print("\n".join(versions))
    for folder in FOLDERS:
        shutil.rmtree(os.path.join(HERE, folder), ignore_errors=True)
        os.makedirs(os.path.join(HERE, folder))

    save("scalar.tfrecord", scalar())
    save("ragged.tfrecord", ragged(np.random.default_rng(1)))
    write_bytes("empty.tfrecord", b"")
    save("states.tfrecord", states())
    save("sequence.tfrecord", sequences(), is_sequence=True)
    save("numbers.tfrecord", numbers())
    write("tensors.tfrecord", [tensor_example(payload) for payload in tensors()])
    save("text.tfrecord", texts())
    save("names.tfrecord", names())
    save("mixed_kinds/part-00000-of-00002.tfrecord", [example({"x": ints(i), "y": ints(i)}) for i in range(3)])
    save("mixed_kinds/part-00001-of-00002.tfrecord", [example({"x": floats(i + 0.5), "y": ints(i)}) for i in range(3)])
    raw = [f"line {i}: plain text, no proto".encode() for i in range(5)]
    write("raw.tfrecord", raw)
    assert all(upb_reading(p, s) is None for p in raw for s in (False, True))
    for number in range(4):
        save(f"shards/train-{number:05d}-of-00004.tfrecord", shard(number, np.random.default_rng([2, number])))
    compressed(np.random.default_rng(3))
    snappy("blocks.tfrecord.snappy")
    tfds(np.random.default_rng(4))
    magic()
    wire()
    wire_disputed()
    wire_bad()
    corrupt(np.random.default_rng(5))
    write_text("versions.txt", versions)


if __name__ == "__main__":
    main()
