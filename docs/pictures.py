#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the pictures of the documentation from testdata/: docs/report.png and docs/report-baseline.png.

    python3 docs/pictures.py target/release/tfarrow

Needs what tests/report.py needs.
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from report import Browser  # noqa: E402

SHARDS = "testdata/shards"
LAST = f"{SHARDS}/train-00003-of-00004.tfrecord"
# The picture, the arguments of the report, the width and the height, and whether colours are dark.
PICTURES = [
    ("report.png", [SHARDS], 1400, 1500, False),
    ("report-baseline.png", [LAST, "--baseline", SHARDS, "--max-drift", "0.05", "--title", "today, and yesterday as baseline"], 1400, 1200, True),
]
MAX_BYTES = 300_000


def main():
    program, browser = os.path.abspath(sys.argv[1]), Browser()
    try:
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            for name, arguments, width, height, dark in PICTURES:
                ended = subprocess.run([program, "report", *arguments, "-o", page], cwd=ROOT, stdout=subprocess.DEVNULL)
                assert ended.returncode in (0, 3), ended
                browser.emulate(width, dark, height=height)
                browser.open(page)
                browser.wait("new Promise(done => setTimeout(done, 300))")
                path = os.path.join(ROOT, "docs", name)
                browser.picture(path, height)
                assert os.path.getsize(path) <= MAX_BYTES, (name, os.path.getsize(path))
                print(f"{name}: {os.path.getsize(path)} bytes")
    finally:
        browser.close()


main()
