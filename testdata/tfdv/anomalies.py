#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write anomalies.json: the anomalies of TensorFlow Data Validation 1.16.1 for the statistics and schemas in this folder.

    python3 testdata/tfdv/anomalies.py

One feature of each type in each file of testdata/ is validated against schemas that it violates. A case is the name of the
file, the schema, and the names of the anomalies of the feature.
"""
import json
import logging
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.disable(logging.WARNING)

import tensorflow_data_validation as tfdv
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ["scalar", "ragged", "numbers", "states", "text", "train"]
EDITS = [
    "type: INT", "type: FLOAT", "type: BYTES", "name: 'not there'",
    "presence { min_count: 1000000 }", "presence { min_count: 1 min_fraction: 1.0 }", "presence { min_fraction: 0.5 }",
    "shape { dim { size: 1 } }", "shape { dim { size: 2 } dim { size: 2 } }", "shape { }", "shape { dim { size: 0 } }",
    "value_count { min: 2 }", "value_count { max: 0 }", "value_count { min: 1 max: 1 }",
    "value_counts { value_count { min: 2 max: 3 } }",
    "bool_domain { }", "bool_domain { true_value: 'yes' false_value: 'no' }",
    "int_domain { min: 1 max: 1 }", "int_domain { }", "float_domain { min: 0.5 max: 0.5 }", "float_domain { }",
    "float_domain { disallow_nan: true disallow_inf: true }", "string_domain { value: 'Oslo' value: 'x' }",
    "string_domain { value: 'Oslo' } distribution_constraints { min_domain_mass: 0.1 }", "domain: 'nowhere'",
    "unique_constraints { min: 100000 max: 200000 }", "unique_constraints { min: 0 max: 1 }",
    "lifecycle_stage: DEPRECATED type: FLOAT", "not_in_environment: 'SERVING'",
]


def main():
    cases = []
    for name in FILES:
        stats = tfdv.load_stats_text(os.path.join(HERE, f"{name}.stats.pbtxt"))
        schema = tfdv.load_schema_text(os.path.join(HERE, f"{name}.schema.pbtxt"))
        seen = set()
        for feature in schema.feature:
            is_optional = not feature.presence.min_fraction
            if (feature.type, is_optional) in seen:
                continue
            seen.add((feature.type, is_optional))
            for edit in EDITS:
                edited = schema_pb2.Feature(name=feature.name, type=feature.type)
                edited.MergeFrom(text_format.Parse(edit, schema_pb2.Feature()))
                asked = schema_pb2.Schema(feature=[edited])
                found = tfdv.validate_statistics(stats, asked)
                info = found.anomaly_info.get(edited.name, anomalies_pb2.AnomalyInfo())
                types = sorted(anomalies_pb2.AnomalyInfo.Type.Name(reason.type) for reason in info.reason)
                cases.append([name, text_format.MessageToString(asked, as_one_line=True), types])
    with open(os.path.join(HERE, "anomalies.json"), "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


main()
