#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write TensorBoard event files of two runs with TensorBoard's own summaries, and what TensorBoard's reader reads.

    python3 testdata/events/generate.py     needs `pip install tensorflow-cpu`, which installs TensorBoard

logs/ is a folder as TensorBoard reads it: the run `.` has summaries as TensorFlow 1 and PyTorch write them, the run `train`
those of TensorFlow 2, which are tensors. expected.json has a list for each kind of value, of [run, tag, step, wall time, ..]
in order of run, tag and step, as TensorBoard's EventAccumulator and its data_compat read them.
"""
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator, event_file_loader, event_multiplexer
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboard.plugins.image.summary import pb as image_pb
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorflow.core.framework import summary_pb2
from tensorflow.core.util import event_pb2

HERE = os.path.dirname(os.path.abspath(__file__))
START = 1_700_000_000.25
KINDS = {"scalars": "scalars", "text": "texts", "images": "images", "histograms": "histograms"}


def write(path, events):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tf.io.TFRecordWriter(path) as writer:
        for event in events:
            writer.write(event.SerializeToString(deterministic=True))


def version(start):
    return event_pb2.Event(wall_time=start, file_version="brain.Event:2")


def event(start, step, values):
    return event_pb2.Event(wall_time=start, step=step, summary=summary_pb2.Summary(value=values))


def first_run(start):
    """Values of TensorFlow 1: floats, histograms, an image and audio with fields of their own."""
    Value, Histogram = summary_pb2.Summary.Value, summary_pb2.HistogramProto
    png = tf.io.encode_png(np.zeros([2, 3, 1], np.uint8)).numpy()
    image = summary_pb2.Summary.Image(height=2, width=3, colorspace=1, encoded_image_string=png)
    audio = summary_pb2.Summary.Audio(sample_rate=8000, num_channels=1, length_frames=1, encoded_audio_string=b"RIFF", content_type="audio/wav")
    # The first and the last bucket are empty, as TensorFlow writes them.
    limits, counts = [-1.0, 0.5, 1.5, 2.5, np.finfo(np.float64).max], [0, 1, 0, 2, 0]
    full = Histogram(min=0.25, max=2.0, num=3, sum=4.25, sum_squares=8.0625, bucket_limit=limits, bucket=counts)
    empty = Histogram(bucket_limit=[np.finfo(np.float64).max], bucket=[0])
    yield version(start)
    yield event(start, 0, [Value(tag="loss", simple_value=1)])
    yield event(start + 1, 1, [Value(tag="loss", simple_value=0.5), Value(tag="weights", histo=full)])
    yield event(start + 2, 2, [Value(tag="loss", simple_value=1 / 3), Value(tag="weights", histo=empty)])
    yield event(start + 2.5, 2, [Value(tag="sample", image=image), Value(tag="sound", audio=audio)])
    yield event_pb2.Event(wall_time=start + 3, step=3, session_log={"status": 2})
    yield event_pb2.Event(wall_time=start + 4, step=3, log_message={"level": 20, "message": "done"})


def second_run(start):
    """Values of TensorFlow 2: tensors, with the metadata of the plugin."""
    yield version(start)
    for step in range(2):
        summaries = [
            scalar_pb("loss", 0.5 - step),
            text_pb("note", f"step {step}\n*done*"),
            histogram_pb("weights", np.array([0.0, 1.0, 1.0]), buckets=2),
            image_pb("sample", np.full([1, 2, 3, 1], step, np.uint8)),
        ]
        # Some plugins make values of TensorBoard's own copy of the message.
        serialized = [value.SerializeToString() for summary in summaries for value in summary.value]
        yield event(start + step, step * 100, [summary_pb2.Summary.Value.FromString(value) for value in serialized])
    tensor = tf.make_tensor_proto(np.zeros([2, 3], np.float32))
    other = summary_pb2.Summary.Value(tag="other", tensor=tensor)
    other.metadata.plugin_data.plugin_name = "other"
    sound = summary_pb2.Summary.Value(tag="sound", tensor=tf.make_tensor_proto([[b"RIFF", b"label"]]))
    sound.metadata.plugin_data.plugin_name = "audio"
    yield event(start + 2, 200, [other, sound])


def shown(plugin, array):
    """The value of a tensor of a plugin, as in the table of events; None for other plugins."""
    if plugin == "scalars":
        return [float(array.reshape([]))]
    if plugin == "text":
        return ["\n".join(text.decode() for text in array.reshape([-1]))]
    if plugin == "images":
        width, height, image = array[:3]
        return [int(width), int(height), image.hex()]
    if plugin == "histograms":
        return [array[:, part].astype(float).tolist() for part in range(3)]
    return None


def expected(logs):
    found = {kind: [] for kind in KINDS.values()}
    for folder, _, files in os.walk(logs):
        run = os.path.relpath(folder, logs)
        for file in files:
            for plugin, row in values(os.path.join(folder, file)):
                found[KINDS[plugin]].append([run, *row])
    check_scalars(logs, found["scalars"])
    return {kind: sorted(rows, key=lambda row: row[:3]) for kind, rows in found.items()}


def values(path):
    """The values of a file, which TensorBoard's loader migrates to the form of TensorFlow 2."""
    plugins = {}
    for event in event_file_loader.EventFileLoader(path).Load():
        for value in event.summary.value:
            plugin = value.metadata.plugin_data.plugin_name or plugins.get(value.tag)
            plugins[value.tag] = plugin
            row = shown(plugin, tf.make_ndarray(value.tensor))
            if row is not None:
                yield plugin, [value.tag, event.step, event.wall_time, *row]


def check_scalars(logs, scalars):
    """Check the scalars with TensorBoard's EventMultiplexer, which names the runs."""
    multiplexer = event_multiplexer.EventMultiplexer(size_guidance={event_accumulator.TENSORS: 0})
    multiplexer.AddRunsFromDirectory(logs).Reload()
    read = []
    for run in multiplexer.Runs():
        tags = multiplexer.GetAccumulator(run).Tags()
        for tag in tags["tensors"]:
            if multiplexer.SummaryMetadata(run, tag).plugin_data.plugin_name == "scalars":
                for event in multiplexer.Tensors(run, tag):
                    read.append([run, tag, event.step, event.wall_time, float(tf.make_ndarray(event.tensor_proto))])
        for tag in tags["scalars"]:
            read += [[run, tag, event.step, event.wall_time, event.value] for event in multiplexer.Scalars(run, tag)]
    assert sorted(read) == sorted(scalars), (read, scalars)


if __name__ == "__main__":
    logs = os.path.join(HERE, "logs")
    write(os.path.join(logs, "events.out.tfevents.1700000000.host"), first_run(START))
    write(os.path.join(logs, "train", "events.out.tfevents.1700000010.host"), second_run(START + 10))
    with open(os.path.join(HERE, "expected.json"), "w", encoding="utf-8", newline="\n") as out:
        lists = [f'  "{kind}": [\n' + ",\n".join("    " + json.dumps(row) for row in rows) + "\n  ]" for kind, rows in expected(logs).items()]
        out.write("{\n" + ",\n".join(lists) + "\n}\n")
