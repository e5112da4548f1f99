#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Open pages of `report` in headless Chromium, and check their contents, scripts and network requests.

    python3 tests/report.py target/release/tfarrow

Needs Debian's chromium and chromium-driver, and installs them if they are missing.
"""
import base64
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOSTILE = ["<script>document.title='owned'</script>", '"><img src=x onerror=alert(1)>', "'\u0000\n\u202e"]


def installed(name):
    if not shutil.which(name):
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "chromium", "chromium-driver"], check=True, stdout=subprocess.DEVNULL)
    return shutil.which(name)


class Browser:
    """A page in Chromium, by the WebDriver protocol."""

    def __init__(self, dark=False, width=1200):
        self.profile = tempfile.mkdtemp()
        self.driver = subprocess.Popen([installed("chromedriver"), "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.base = "http://127.0.0.1:" + line.rsplit(" ", 1)[1].strip().rstrip(".")
                break
        arguments = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", f"--user-data-dir={self.profile}",
            f"--window-size={width},900",
        ] + (["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else [])
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments, "perfLoggingPrefs": {"enableNetwork": True}},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.base += "/session/" + answer["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["value"]

    def open(self, path):
        # Discards the requests of the browser's start page.
        self.log("performance")
        self.call("POST", "/url", {"url": "file://" + path})

    def run(self, script):
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def keys(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def log(self, kind):
        return self.call("POST", "/se/log", {"type": kind})

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.profile, ignore_errors=True)


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def crc(data):
    """The masked CRC-32C of TFRecord."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frame(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", crc(length)) + data + struct.pack("<I", crc(data))


def example(features):
    entries = b""
    for name, values in features.items():
        if isinstance(values[0], bytes):
            body = field(1, b"".join(field(1, value) for value in values))
        elif isinstance(values[0], float):
            body = field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
        else:
            body = field(3, field(1, b"".join(varint(value) for value in values)))
        entries += field(1, field(1, name.encode()) + field(2, body))
    return field(1, entries)


def png(width, height, color):
    row = b"\0" + bytes(color) * width
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")


def hostile_set(path):
    """Records with markup in names and values, with boxes, and with images, some of them corrupt."""
    with open(path, "wb") as out:
        for index in range(40):
            features = {
                "image/encoded": [png(64, 48, (index * 6, 90, 200)) if index % 5 else b"\x89PNG\r\n\x1a\nbroken"],
                "image/object/bbox/xmin": [0.1, 0.5], "image/object/bbox/xmax": [0.4, 0.9],
                "image/object/bbox/ymin": [0.2, 0.5], "image/object/bbox/ymax": [0.6, 1.0],
                "image/object/class/text": [HOSTILE[0].encode(), b"cat"],
                "mask": [png(8, 8, (0, 0, 0))],
                "image/class/text": [HOSTILE[index % len(HOSTILE)].encode()],
                "label": [index % 7], "score": [index / 3.0],
            }
            features.update({name: [1] for name in HOSTILE})
            out.write(frame(example(features)))


def check_clean(browser):
    """The page has no errors and sends no network requests."""
    errors = [entry["message"] for entry in browser.log("browser")]
    assert not errors, errors
    for entry in browser.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            # The browser loads the style of its input fields from chrome: URLs.
            assert url.startswith(("file://", "data:", "chrome://")), url


NAMES = "return [...document.querySelectorAll('#table tbody tr')].filter(row => !row.hidden).map(row => row.cells[0].dataset.sort)"


def column(browser, index):
    return browser.run(
        f"return [...document.querySelectorAll('#table tbody tr')].map(row => row.cells[{index}].dataset.sort)")


def check_table(browser):
    """Sorting and searching work by keyboard."""
    names = browser.run(NAMES)
    focus = "document.querySelectorAll('#table thead button')[%d].focus()"
    tab, enter = "\ue004", "\ue007"
    browser.run(focus % 0)
    browser.keys(enter)
    assert browser.run("return document.querySelector('#table thead th').getAttribute('aria-sort')") == "ascending"
    browser.keys(enter)
    assert browser.run(NAMES) != names or len(names) < 2, names
    assert sorted(browser.run(NAMES)) == sorted(names)
    # The ninth column is the mean: values are sorted as numbers, and empty cells are last.
    browser.run(focus % 8)
    browser.keys(enter)
    means = [value for value in column(browser, 8)]
    numbers = [float(value) for value in means if value]
    assert numbers == sorted(numbers, reverse=True) and means[len(numbers):] == [""] * (len(means) - len(numbers)), means
    browser.run("document.getElementById('search').focus()")
    browser.keys(*"LABEL")
    assert browser.run(NAMES) and all("label" in name for name in browser.run(NAMES)), browser.run(NAMES)
    assert " of " in browser.run("return document.getElementById('shown').textContent")
    browser.keys(*["\ue003"] * 5)
    assert len(browser.run(NAMES)) == len(names)
    browser.keys(tab)
    assert browser.run("return document.activeElement.className") == "scroll"


def check_hostile(browser, folder, program):
    source, page = os.path.join(folder, "<b>hostile<b>.tfrecord"), os.path.join(folder, "hostile.html")
    hostile_set(source)
    subprocess.run([program, "report", source, "-o", page, "--title", HOSTILE[0]], check=True)
    browser.open(page)
    assert browser.run("return document.title") == HOSTILE[0]
    assert browser.run("return document.scripts.length") == 1
    assert browser.run("return document.querySelectorAll('img').length") == 0
    names = browser.run(NAMES)
    assert HOSTILE[0] in names and HOSTILE[1] in names, names
    pictures = browser.run("return document.querySelectorAll('.picture image').length")
    images = "document.querySelectorAll('.picture[aria-label=\"image/encoded\"]')"
    shown = browser.run(f"return {images}.length")
    assert 10 <= shown < 24 and pictures == 24 + shown, (shown, pictures)
    assert browser.run("return document.querySelectorAll('.picture rect').length") == 2 * shown
    assert browser.run(f"return {images}[0].querySelector('rect title').textContent") == HOSTILE[0]
    assert "not shown: corrupt or too large" in browser.run("return document.getElementById('examples').textContent")
    broken = "return Promise.all([...document.querySelectorAll('.picture image')].map(i => { const p = new Image();" \
        " p.src = i.getAttribute('href'); return p.decode().then(() => p.naturalWidth); }))"
    assert sorted(browser.run(broken)) == [8] * 24 + [64] * shown
    check_table(browser)
    check_clean(browser)
    # The content security policy blocks an added script.
    browser.run("const s = document.createElement('script'); s.textContent = 'document.title = 1'; document.body.append(s)")
    assert browser.run("return document.title") == HOSTILE[0]
    browser.log("browser")


def check_baseline(browser, folder, program):
    page = os.path.join(folder, "baseline.html")
    shards = os.path.join(ROOT, "testdata", "shards")
    one = os.path.join(shards, "train-00000-of-00004.tfrecord")
    command = [program, "report", shards, "-o", page, "--baseline", one, "--max-drift", "0.001"]
    assert subprocess.run(command).returncode == 3
    browser.open(page)
    assert "COMPARATOR_L_INFTY_HIGH" in browser.run("return document.getElementById('anomalies').textContent")
    assert browser.run("return document.querySelectorAll('svg.before').length") >= 5
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    check_table(browser)
    check_clean(browser)


def check_wide(browser, folder, program):
    """With many features the page stays small, and names the command that shows the others."""
    source, page = os.path.join(folder, "wide.tfrecord"), os.path.join(folder, "wide.html")
    with open(source, "wb") as out:
        out.write(frame(example({f"feature/{index:05}": [index, 1] for index in range(20000)})))
    subprocess.run([program, "report", source, "-o", page, "--limit", "columns=20000"], check=True)
    assert os.path.getsize(page) < 2_000_000, os.path.getsize(page)
    browser.open(page)
    assert "more are in tfarrow stats" in browser.run("return document.getElementById('features').textContent")
    check_clean(browser)


def main():
    program = os.path.abspath(sys.argv[1])
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for dark, width in [(False, 1200), (True, 390)]:
            browser = Browser(dark, width)
            try:
                check_hostile(browser, folder, program)
                check_baseline(browser, folder, program)
                ink = browser.run("return getComputedStyle(document.body).color")
                assert (ink == "rgb(230, 234, 240)") == dark, (dark, ink)
                if not dark:
                    check_wide(browser, folder, program)
                if len(sys.argv) > 2:
                    with open(f"{sys.argv[2]}-{width}.png", "wb") as out:
                        out.write(base64.b64decode(browser.call("GET", "/screenshot")))
            finally:
                browser.close()
    print(f"report: all pages passed after {time.monotonic() - begun:.0f} s")


main()
