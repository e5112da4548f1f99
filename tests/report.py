#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Open pages of `report` in headless Chromium: contents, scripts, network requests, accessibility, widths, colours, print.

    python3 tests/report.py target/release/tfarrow [folder for screenshots]

Needs Debian's chromium, chromium-driver and npm, and installs them if they are missing. The rules of accessibility are those of
axe-core, a package of npm.
"""
import base64
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARDS = os.path.join(ROOT, "testdata", "shards")
HOSTILE = ["<script>document.title='owned'</script>", '"><img src=x onerror=alert(1)>', "'\u0000\n\u202e", "</script><svg onload=alert(1)>"]
AXE = "axe-core@4.14.1"
# Width in pixels, and whether colours are dark.
MODES = [(1400, False), (360, True)]
ENTER, TAB, ESCAPE, BACKSPACE = "\ue007", "\ue004", "\ue00c", "\ue003"


def installed(name):
    if not shutil.which(name):
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        packages = ["npm"] if name == "npm" else ["chromium", "chromium-driver"]
        subprocess.run(["apt-get", "install", "-y", "-qq", *packages], check=True, stdout=subprocess.DEVNULL)
    return shutil.which(name)


def axe_script(folder):
    """The source of axe-core."""
    subprocess.run([installed("npm"), "pack", AXE, "--silent"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    archive = next(name for name in os.listdir(folder) if name.startswith("axe-core"))
    with tarfile.open(os.path.join(folder, archive)) as packed:
        return packed.extractfile("package/axe.min.js").read().decode()


class Browser:
    """A page in Chromium, by the WebDriver protocol."""

    def __init__(self):
        self.profile = tempfile.mkdtemp()
        self.driver = subprocess.Popen([installed("chromedriver"), "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.base = "http://127.0.0.1:" + line.rsplit(" ", 1)[1].strip().rstrip(".")
                break
        arguments = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", f"--user-data-dir={self.profile}",
            "--window-size=1400,900", "--hide-scrollbars",
        ]
        capabilities = {
            "browserName": "chrome",
            "timeouts": {"script": 55_000},
            "goog:chromeOptions": {"args": arguments, "perfLoggingPrefs": {"enableNetwork": True}},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.base += "/session/" + answer["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from error

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def emulate(self, width, dark=False, media="", height=900):
        """Sets the size of the window, the colour scheme and the medium."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.devtools("Emulation.setEmulatedMedia", media=media, features=[scheme, motion])

    def open(self, path):
        # Discards the requests of the browser's start page.
        self.log("performance")
        self.call("POST", "/url", {"url": "file://" + path})

    def run(self, script):
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def wait(self, script):
        """Runs a script that returns a promise."""
        return self.call("POST", "/execute/async", {"script": f"const done = arguments[0]; ({script}).then(done)", "args": []})

    def picture(self, path, height=6000):
        """Saves a picture of the page, from its top."""
        height = min(height, self.run("return document.body.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": self.run("return innerWidth"), "height": height, "scale": 1}
        picture = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        with open(path, "wb") as out:
            out.write(base64.b64decode(picture["data"]))

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


def write(path, records):
    with open(path, "wb") as out:
        out.writelines(frame(example(record)) for record in records)
    return path


def hostile_records():
    """Records with markup in names and values, with boxes, and with images, some of them corrupt."""
    for index in range(40):
        yield {
            "image/encoded": [png(64, 48, (index * 6, 90, 200)) if index % 5 else b"\x89PNG\r\n\x1a\nbroken"],
            "image/object/bbox/xmin": [0.1, 0.5], "image/object/bbox/xmax": [0.4, 0.9],
            "image/object/bbox/ymin": [0.2, 0.5], "image/object/bbox/ymax": [0.6, 1.0],
            "image/object/class/text": [HOSTILE[0].encode(), b"cat"],
            "mask": [png(8, 8, (0, 0, 0))],
            "image/class/text": [HOSTILE[index % len(HOSTILE)].encode()],
            "label": [index % 7], "score": [index / 3.0], "twice": [index / 1.5],
            **{name: [index] for name in HOSTILE},
        }


def episodes():
    """Episodes as those of RLDS: lists over steps, of images and of numbers."""
    for episode in range(6):
        steps = 20 + episode
        yield {
            "episode_metadata/file_path": [b"episode"],
            "steps/observation/image": [png(32, 32, (12 * step % 256, 40 * episode, 99)) for step in range(steps)],
            "steps/action": [float(step % 7 + dimension) for step in range(steps) for dimension in range(7)],
            "steps/reward": [step / steps for step in range(steps)],
            "steps/is_first": [int(step == 0) for step in range(steps)],
            "steps/language_instruction": [b"Put the blue block into the wooden bowl that stands at the left of the table."] * steps,
        }


def flawed_records():
    """Records with what alerts are about."""
    numbers = random.Random(1)
    for index in range(200):
        yield {
            "constant": [7], "zero": [0.0], "nan": [float("nan") if index % 10 == 0 else numbers.random()],
            "skewed": [numbers.random() ** -3.0], "id": [b"user-%d" % index], "imbalanced": [b"often" if index else b"rare"],
            **({"rare": [1.0 * index]} if index % 4 == 0 else {}),
        }
    yield from 3 * [{"constant": [7], "zero": [0.0], "nan": [0.5], "skewed": [1.0], "id": [b"same"], "imbalanced": [b"often"]}]


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


def check_accessible(browser, axe, part):
    """No rule of axe-core is broken, among them contrast, names, roles and the order of headings; nothing is wider than the page."""
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"
    browser.run(axe)
    found = browser.wait(f"axe.run('{part}', {{ resultTypes: ['violations'] }})")
    broken = [(rule["id"], [(node["html"][:200], node["failureSummary"][:300]) for node in rule["nodes"][:3]]) for rule in found["violations"]]
    assert not broken, json.dumps(broken, indent=1)


def check_tree(browser):
    """Readers of the accessibility tree find the landmarks, the headings, the fields and the charts by name."""
    nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    names = lambda role: [node.get("name", {}).get("value", "") for node in nodes if node.get("role", {}).get("value") == role]
    assert len(names("main")) == 1 and "Contents" in names("navigation") and "Features" in names("search"), names("navigation")
    assert "Search" in names("searchbox") and "Sort by" in names("combobox") and "Log scale" in names("checkbox"), names("searchbox")
    assert any(name.startswith("Features") for name in names("heading")), names("heading")
    # Charts are images with names, each with a button. Those far below the window are drawn later.
    charts = [name for name in names("image") + names("img") if name.startswith("Histogram of ")]
    assert charts and all(f"Enlarge: {name}" in names("button") for name in charts), (charts, names("button"))


def shown_names(browser):
    return browser.run("return [...document.querySelectorAll('.card')].filter(card => card.offsetParent).map(card => card.querySelector('h4').textContent)")


def check_tools(browser):
    """Search, order, filter, enlarged charts and the logarithmic scale work by keyboard."""
    names = shown_names(browser)
    browser.run("document.getElementById('search').focus()")
    browser.keys(*"LABEL")
    found = shown_names(browser)
    assert found and all("label" in name for name in found), found
    assert " of " in browser.run("return document.getElementById('shown').textContent")
    browser.keys(*[BACKSPACE] * 5)
    assert sorted(shown_names(browser)) == sorted(names)
    browser.keys(TAB)
    assert browser.run("return document.activeElement.id") == "sort"
    browser.run("const sort = document.getElementById('sort'); sort.value = 'name'; sort.dispatchEvent(new Event('input'))")
    groups = browser.run("return [...document.querySelectorAll('.cards')].map(section => [...section.querySelectorAll('h4')].map(h => h.textContent))")
    for group in groups:
        order = browser.call("POST", "/execute/sync", {
            "script": "return arguments[0].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))", "args": [group]})
        assert order == group, group
    browser.keys(TAB, TAB)
    assert browser.run("return document.activeElement.id") == "log"
    ticks = "return document.querySelector('.chart[data-chart=histogram] .image').innerHTML"
    browser.run("document.querySelector('.chart[data-chart=histogram]').scrollIntoView()")
    browser.wait("new Promise(done => setTimeout(done, 100))")
    linear = browser.run(ticks)
    browser.run("document.getElementById('log').focus()")
    browser.keys(" ")
    assert browser.run(ticks) != linear
    browser.keys(" ")
    assert browser.run(ticks) == linear
    browser.run("document.querySelector('.chart[data-chart=histogram] .enlarge').focus()")
    browser.keys(ENTER)
    assert browser.run("return document.querySelector('dialog').open && document.querySelector('dialog svg').clientWidth > innerWidth / 2")
    assert browser.run("return document.activeElement.type") == "checkbox"
    browser.keys(TAB)
    assert browser.run("return document.activeElement.textContent") == "Close"
    browser.keys(ESCAPE)
    assert not browser.run("return document.querySelector('dialog').open")
    assert "enlarge" in browser.run("return document.activeElement.className")


def check_pointer(browser):
    """The counts of a bucket are shown under the pointer."""
    browser.run("document.querySelector('.chart[data-chart=histogram]').scrollIntoView({ block: 'center' })")
    x, y = browser.run("const box = document.querySelector('.chart[data-chart=histogram] svg').getBoundingClientRect();"
                       " return [box.x + box.width / 2, box.y + box.height / 2]")
    move = {"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}
    browser.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [move]}]})
    browser.wait("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    tip = browser.run("return document.querySelector('.chart[data-chart=histogram] [aria-label=tip]')?.textContent ?? ''")
    assert "%" in tip, tip


def check_print(browser):
    """In print, all charts are drawn, colours are light, and the fields are gone."""
    pdf = base64.b64decode(browser.call("POST", "/print", {}))
    assert pdf.startswith(b"%PDF") and len(pdf) > 20_000, len(pdf)
    left = browser.run("return [...document.querySelectorAll('.chart')].filter(chart => chart.offsetParent && !chart.querySelector('svg')).length")
    assert left == 0, left
    browser.emulate(1000, dark=True, media="print")
    assert browser.run("return getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert browser.run("return getComputedStyle(document.querySelector('.card')).backgroundColor") == "rgb(255, 255, 255)"


class Pages:
    """Makes pages with the program, and opens each in all modes."""

    def __init__(self, browser, program, axe, folder, pictures):
        self.browser, self.program, self.axe, self.folder, self.pictures = browser, program, axe, folder, pictures

    def make(self, name, *arguments, status=0):
        page = os.path.join(self.folder, name + ".html")
        ended = subprocess.run([self.program, "report", *arguments, "-o", page], stdout=subprocess.DEVNULL).returncode
        assert ended == status, (name, ended)
        assert os.path.getsize(page) < 2_000_000, (name, os.path.getsize(page))
        return page

    def each(self, name, *arguments, status=0, part="html"):
        """Opens a page in each mode, where it is clean, and a part of it accessible."""
        page = self.make(name, *arguments, status=status)
        for width, dark in MODES:
            self.browser.emulate(width, dark)
            self.browser.open(page)
            self.browser.wait("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
            yield width
            check_accessible(self.browser, self.axe, part)
            check_clean(self.browser)
            if self.pictures:
                self.browser.picture(os.path.join(self.pictures, f"{name}-{width}.png"))


def check_hostile(pages):
    browser = pages.browser
    source = write(os.path.join(pages.folder, "<b>hostile<b>.tfrecord"), hostile_records())
    for _ in pages.each("hostile", source, "--title", HOSTILE[0]):
        assert browser.run("return document.title") == HOSTILE[0]
        assert browser.run("return document.scripts.length") == 2
        assert browser.run("return document.querySelectorAll('img, [onload], [onerror], [onclick], iframe, object, embed').length") == 0
        names = shown_names(browser)
        assert HOSTILE[0] in names and HOSTILE[1] in names and HOSTILE[3] in names, names
        assert browser.run("return [...document.querySelectorAll('.links a')].some(link => link.textContent.startsWith('<script>'))")
        pictures = browser.run("return document.querySelectorAll('.picture image').length")
        images = "document.querySelectorAll('.picture[aria-label=\"image/encoded\"]')"
        shown = browser.run(f"return {images}.length")
        assert 10 <= shown < 24 and pictures == 24 + shown, (shown, pictures)
        assert browser.run("return document.querySelectorAll('.box rect').length") == 2 * shown
        # The names of classes are on the boxes.
        assert browser.run("return [...document.querySelectorAll('.box text')].filter(text => text.textContent === 'cat').length") == shown
        assert browser.run(f"return {images}[0].querySelector('.box title').textContent") == HOSTILE[0]
        assert "not shown: corrupt or too large" in browser.run("return document.getElementById('examples').textContent")
        broken = "Promise.all([...document.querySelectorAll('.picture image')].map(i => { const p = new Image();" \
            " p.src = i.getAttribute('href'); return p.decode().then(() => p.naturalWidth); }))"
        assert sorted(browser.wait(broken)) == [8] * 24 + [64] * shown
        # The matrix has hostile names.
        assert browser.run("return document.querySelector('.chart[data-chart=matrix]') !== null")
        browser.run("document.querySelector('.chart[data-chart=matrix]').scrollIntoView()")
        browser.wait("new Promise(done => setTimeout(done, 100))")
        assert "<scr" in browser.run("return document.querySelector('.chart[data-chart=matrix] svg').textContent")
        browser.run("scrollTo(0, 0)")
        check_tools(browser)
        check_pointer(browser)
        check_tree(browser)
    # The content security policy blocks added scripts, styles and handlers.
    browser.run("const s = document.createElement('script'); s.textContent = 'document.title = 1'; document.body.append(s)")
    browser.run("document.body.insertAdjacentHTML('beforeend', '<button onclick=\"document.title = 2\">x</button>'); document.body.lastChild.click()")
    assert browser.run("return document.title") == HOSTILE[0]
    browser.log("browser")


def check_baseline(pages):
    browser = pages.browser
    one = os.path.join(SHARDS, "train-00000-of-00004.tfrecord")
    for _ in pages.each("baseline", SHARDS, "--baseline", one, "--max-drift", "0.001", status=3):
        assert "COMPARATOR_L_INFTY_HIGH" in browser.run("return document.getElementById('anomalies').textContent")
        # Anomalies are links to the cards of their features.
        link = browser.run("const link = document.querySelector('#anomalies .group a'); return [link.textContent, document.querySelector(link.hash).querySelector('h4').textContent]")
        assert link[0] == link[1], link
        drifts = browser.run("return [...document.querySelectorAll('.cards')].map(section => [...section.querySelectorAll('.card')].map(card => Number(card.dataset.drift ?? -1)))")
        assert all(group == sorted(group, reverse=True) for group in drifts) and max(max(group) for group in drifts) > 0, drifts
        browser.run("document.querySelector('.chart[data-chart=histogram]').scrollIntoView()")
        browser.wait("new Promise(done => setTimeout(done, 100))")
        both = browser.run("const svg = document.querySelector('.chart[data-chart=histogram] svg'); return [...svg.querySelectorAll('[aria-label=rect], [aria-label=line]')].length")
        assert both >= 2, both
        check_tools(browser)
    check_print(browser)


def check_flawed(pages):
    source = write(os.path.join(pages.folder, "flawed.tfrecord"), flawed_records())
    for _ in pages.each("flawed", source):
        text = pages.browser.run("return document.getElementById('alerts').textContent")
        for alert in ["NaN", "All zero", "Constant", "Mostly missing", "Duplicate records", "Imbalanced", "Skewed"]:
            assert alert in text, (alert, text)
        # Each link leads to the card of the feature.
        links = pages.browser.run("return [...document.querySelectorAll('#alerts a[href^=\"#f\"]')].map(link => [link.textContent, document.querySelector(link.hash).querySelector('h4').textContent])")
        assert len(links) >= 6 and all(link == target for link, target in links), links


def check_episodes(pages):
    source = write(os.path.join(pages.folder, "episodes.tfrecord"), episodes())
    for _ in pages.each("episodes", source):
        frames = pages.browser.run("return [...document.querySelectorAll('.film')].map(film => film.querySelectorAll('image').length)")
        assert len(frames) == 6 and all(5 <= count <= 12 for count in frames), frames
        titles = pages.browser.run("return [...document.querySelectorAll('.chart[data-chart=steps]')].map(chart => chart.dataset.title)")
        assert "steps/action: 20 steps × 7" in titles and "steps/reward: 25 steps" in titles, titles
    sequences = os.path.join(ROOT, "testdata", "sequence.tfrecord")
    for _ in pages.each("sequence", sequences):
        assert pages.browser.run("return document.querySelectorAll('.card').length") == 10


def check_events(pages):
    """The scalars of TensorBoard's event files: a chart for each tag, with a line and a row for each run."""
    logs = os.path.join(ROOT, "testdata", "events", "logs")
    for _ in pages.each("events", logs):
        charts = pages.browser.run("return [...document.querySelectorAll('#curves .chart')].map(chart => chart.dataset.title)")
        assert "loss" in charts, charts
        lines, rows = pages.browser.run(
            "const chart = document.querySelector('#curves .chart[data-title=loss]');"
            "return [chart.querySelectorAll('[aria-label=line] path').length, chart.parentElement.querySelectorAll('tbody tr').length]")
        assert lines == rows == 2, (lines, rows)
        lines = "return [...document.querySelectorAll('#curves [aria-label=line] path')].map(path => path.getAttribute('d')).join()"
        linear = pages.browser.run(lines)
        pages.browser.run("document.getElementById('curves-log').focus()")
        pages.browser.keys(" ")
        assert pages.browser.run(lines) != linear
        pages.browser.keys(" ")
        assert pages.browser.run(lines) == linear


def check_odd(pages):
    """Data sets without records, without features, with damage, and with very many features."""
    testdata = os.path.join(ROOT, "testdata")
    for name, arguments, status, text in [
        ("empty", [os.path.join(testdata, "empty.tfrecord")], 0, "Empty data set"),
        ("raw", [os.path.join(testdata, "raw.tfrecord")], 0, "The records have no features"),
        ("damaged", [os.path.join(testdata, "corrupt", "data_crc.tfrecord"), "--on-error", "skip"], 3, "skipped 1 record"),
    ]:
        for _ in pages.each(name, *arguments, status=status):
            assert text in pages.browser.run("return document.body.textContent"), name
    numbers = random.Random(2)
    record = lambda: {f"feature/{index:04}": [numbers.gauss(index, 1.0)] for index in range(2000)}
    source = write(os.path.join(pages.folder, "wide.tfrecord"), [record() for _ in range(30)])
    # Checking hundreds of equal cards would take minutes.
    for _ in pages.each("wide", source, part=".more"):
        cards, rows = pages.browser.run("return [document.querySelectorAll('.card').length, document.querySelectorAll('.more tbody tr').length]")
        assert cards > 100 and rows > 100, (cards, rows)
    source = write(os.path.join(pages.folder, "wider.tfrecord"), [{f"feature/{index:05}": [index, 1] for index in range(20000)}])
    page = pages.make("wider", source, "--limit", "columns=20000")
    pages.browser.open(page)
    assert "features are left out" in pages.browser.run("return document.getElementById('features').textContent")
    check_clean(pages.browser)


def main():
    program, pictures = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    if pictures:
        os.makedirs(pictures, exist_ok=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        axe = axe_script(folder)
        browser = Browser()
        try:
            pages = Pages(browser, program, axe, folder, pictures)
            for check in [check_hostile, check_baseline, check_flawed, check_episodes, check_events, check_odd]:
                check(pages)
                print(f"report: {check.__name__} passed after {time.monotonic() - begun:.0f} s", flush=True)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
