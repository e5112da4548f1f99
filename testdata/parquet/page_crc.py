#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write page_crc.parquet beside this script: 100 integers in one uncompressed page whose header has a CRC.

    python3 testdata/parquet/page_crc.py          needs `pip install pyarrow`; written with pyarrow 17.0.0

The parquet crate verifies such CRCs and does not write them, so the file has to come from another writer.
"""
import os

import pyarrow as pa
import pyarrow.parquet as pq

table = pa.table({"label": pa.array(range(100), pa.int64())})
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page_crc.parquet")
pq.write_table(
    table, path, write_page_checksum=True, use_dictionary=False, compression="none", write_statistics=False,
    store_schema=False,
)  # fmt: skip
