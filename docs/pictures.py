#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the pictures of the documentation from testdata/: docs/prompt.png, docs/report.png and docs/report-baseline.png.

    python3 docs/pictures.py target/release/tfarrow

Needs what tests/report.py needs, and `pip install pyte`, a terminal emulator, for the picture of the prompt.
"""
import fcntl
import html
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pyte

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from report import Browser  # noqa: E402

SHARDS = "testdata/shards"
LAST = f"{SHARDS}/train-00003-of-00004.tfrecord"
# The picture, the arguments of the report, the width and the height, and whether colours are dark.
PICTURES = [
    ("report.png", ["photos.tfrecord", "--title", "photos, with mistakes"], 1400, 1500, False),
    ("report-baseline.png", [LAST, "--baseline", SHARDS, "--max-drift", "0.05", "--title", "today, and yesterday as baseline"], 1400, 1200, True),
]
# The photos of testdata/ with common mistakes: NaN, a constant, a feature that most records lack, records that occur twice.
MISTAKES = f"""
    COPY (SELECT label, city, tags, embedding, "image/encoded", 'v2' AS version, price * price * price AS turnover,
                 CASE WHEN label = 0 THEN arrow_cast('NaN', 'Float32') ELSE price END AS price,
                 CASE WHEN label = 3 AND price > 60 THEN price END AS discount
          FROM '{SHARDS}'
          UNION ALL SELECT label, city, tags, embedding, "image/encoded", 'v2', price * price * price, price, NULL
          FROM '{SHARDS}' WHERE label = 1) TO 'FILE'"""
MAX_BYTES = 300_000

# The session at the prompt: what is typed, and a text that the screen then has.
SESSION = [
    ("SELECT city, count(*) AS n, avg(price) AS price\r", "AS price"),
    ("FROM 'testdata/shards/' WHERE label > 0 GROUP BY city ORDER BY n DESC;\r", "Gda"),
    ("SELECT labl FROM 'testdata/shards/';\r", "did you mean"),
    ("SELECT label, tags, embedding[1] AS first FROM 'testdata/shards/' ORDER BY price DESC LIMIT 2;\r", " first |"),
    ("SELECT image\t", "image_info"),
]
ROWS, COLUMNS = 30, 100
COLORS = {
    "default": "#d4d4d4", "black": "#666", "red": "#f48771", "green": "#89d185", "brown": "#e5c07b", "yellow": "#e5c07b",
    "blue": "#6cb6ff", "magenta": "#d2a8ff", "cyan": "#76d7ea", "white": "#fff",
}


def prompt_screen(program):
    """The screen after the session, as an emulated terminal shows it."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    with tempfile.TemporaryDirectory() as state:
        child, terminal = pty.fork()
        if child == 0:
            environment = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": state, "TFARROW_CONFIG": ""}
            environment.pop("NO_COLOR", None)
            os.chdir(ROOT)
            os.execve(program, [program, "sql"], environment)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

        def read(shows):
            """Reads until the screen shows a text and nothing follows for a moment."""
            end = time.monotonic() + 30
            while time.monotonic() < end:
                if select.select([terminal], [], [], 0.5)[0]:
                    stream.feed(os.read(terminal, 65536))
                elif any(shows in line for line in screen.display):
                    return
            raise RuntimeError(f"{shows!r} is not on the screen:\n" + "\n".join(screen.display))

        read("tfarrow> ")
        os.write(terminal, b"\\timing\r\f")
        read("tfarrow> ")
        for keys, shows in SESSION:
            os.write(terminal, keys.encode())
            read(shows)
        os.close(terminal)
        os.waitpid(child, 0)
    return screen


def prompt_page(screen):
    """The screen as a page."""
    lines = []
    for row in range(max(row for row, text in enumerate(screen.display) if text.strip()) + 1):
        spans = []
        for column in range(COLUMNS):
            char = screen.buffer[row][column]
            style = f"color:{COLORS.get(char.fg, char.fg)}" + (";font-weight:bold" if char.bold else "")
            if spans and spans[-1][0] == style:
                spans[-1][1] += char.data
            else:
                spans.append([style, char.data])
        lines.append("".join(f'<span style="{style}">{html.escape(text)}</span>' for style, text in spans))
    style = "margin:0;padding:16px;background:#1e1e1e;font:14px/1.35 'DejaVu Sans Mono',monospace;display:inline-block"
    return f"<meta charset=utf-8><body style='margin:0;background:#1e1e1e'><pre style=\"{style}\">" + "\n".join(lines) + "</pre>"


def save(browser, name, height):
    path = os.path.join(ROOT, "docs", name)
    browser.picture(path, height)
    assert os.path.getsize(path) <= MAX_BYTES, (name, os.path.getsize(path))
    print(f"{name}: {os.path.getsize(path)} bytes")


def main():
    program, browser = os.path.abspath(sys.argv[1]), Browser()
    try:
        with tempfile.TemporaryDirectory() as folder:
            page, screen = (os.path.join(folder, name) for name in ("page.html", "screen.html"))
            with open(screen, "w", encoding="utf-8") as out:
                out.write(prompt_page(prompt_screen(program)))
            browser.emulate(900, height=100)
            browser.open(screen)
            save(browser, "prompt.png", 1000)
            photos = os.path.join(folder, "photos.tfrecord")
            subprocess.run([program, "-q", "sql", MISTAKES.replace("FILE", photos)], cwd=ROOT, check=True)
            for name, arguments, width, height, dark in PICTURES:
                ended = subprocess.run([program, "report", *(photos if argument == "photos.tfrecord" else argument for argument in arguments), "-o", page], cwd=ROOT, stdout=subprocess.DEVNULL)
                assert ended.returncode in (0, 3), ended
                browser.emulate(width, dark, height=height)
                browser.open(page)
                browser.wait("new Promise(done => setTimeout(done, 300))")
                save(browser, name, height)
    finally:
        browser.close()


main()
