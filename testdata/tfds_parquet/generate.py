#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a shard as TensorFlow Datasets does with `file_format="parquet"`: one column of serialized Examples.

    python3 testdata/tfds_parquet/generate.py     needs `pip install tensorflow-cpu tensorflow-datasets`

The records are those of testdata/tfds/mnist-train.tfrecord-00000-of-00002.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf
from tensorflow_datasets.core import file_adapters

HERE = os.path.dirname(os.path.abspath(__file__))

records = tf.data.TFRecordDataset(os.path.join(HERE, "../tfds/mnist-train.tfrecord-00000-of-00002"))
numbered = list(enumerate(records.as_numpy_iterator()))
adapter = file_adapters.ADAPTER_FOR_FORMAT[file_adapters.FileFormat.PARQUET]
adapter.write_examples(os.path.join(HERE, "mnist-train.parquet-00000-of-00001"), numbered)
