#!/usr/bin/env python3
"""Checks the time, the peak memory and the error messages of the program on hostile files and full disks.

    hostile.py [--seconds S] PROGRAM [PART ..]

All parts run unless some are named. Each attack runs the program on a hostile file, and prints its exit status, duration
and peak memory. A run must not take longer than a minute, or S seconds for a program without optimization, panic, end by
a signal, or leave files. It must not use more than 192 MB above the limit that it tests, and above the memory of a query
that reads nothing, of which the code of the program is the most. The disks are small tmpfs mounts, which need root or a
user namespace. Needs no Python package.
"""
import argparse, gzip, json, os, random, shutil, struct, subprocess, sys, tempfile, time, zlib


def serve(seconds):
    """Runs programs for the main process. The peak memory of a child includes its parent's, and this process has little."""
    for line in sys.stdin:
        start = time.time()
        with tempfile.TemporaryFile() as stderr:
            child = subprocess.Popen(json.loads(line), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
            pid = 0
            while not pid:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG if time.time() < start + seconds else 0)
                if not pid:
                    time.sleep(0.005)
                    if time.time() >= start + seconds:
                        child.kill()
            child.returncode = 0
            stderr.seek(0)
            text = stderr.read().decode(errors="replace").strip()
        print(json.dumps([os.waitstatus_to_exitcode(status), text, time.time() - start, usage.ru_maxrss * 1024]), flush=True)


if sys.argv[1] == "--serve":
    serve(float(sys.argv[2]))
    sys.exit()

arguments = argparse.ArgumentParser()
arguments.add_argument("program", type=os.path.abspath)
arguments.add_argument("parts", nargs="*")
arguments.add_argument("--seconds", default="60")
arguments = arguments.parse_args()
program = arguments.program
if os.geteuid() != 0 and os.environ.get("TFARROW_UNSHARED") is None:
    os.environ["TFARROW_UNSHARED"] = "1"
    os.execvp("unshare", ["unshare", "--user", "--map-root-user", "--mount", sys.executable, *sys.argv])

TABLE = []
for i in range(256):
    for _ in range(8):
        i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
    TABLE.append(i)


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def header(length):
    length = struct.pack("<Q", length)
    return length + masked(length)


def frame(data):
    return header(len(data)) + data + masked(data)


def varint(value):
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def field(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def entry(name, feature):
    return field(1, field(1, name) + field(2, feature))


def example(*entries):
    return field(1, b"".join(entries))


def ints(*values):
    return field(3, field(1, b"".join(varint(value) for value in values)))


failures = []
MB = 1 << 20


server = subprocess.Popen([sys.executable, __file__, "--serve", arguments.seconds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run(arguments):
    """Runs the program, and returns its exit status, its standard error, the seconds, and the peak memory in bytes."""
    server.stdin.write(json.dumps([program, *arguments]) + "\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())


# The memory of a query that reads nothing.
idle = run(["sql", "SELECT 1"])[3]


def attack(case, arguments, expect, limit=0, message=""):
    """Checks a run on a hostile file. `limit` is the memory in bytes that its data may take."""
    status, text, seconds, peak = run(arguments)
    last = text.splitlines()[-1] if text else ""
    print(f"{case:58} exit {status}  {seconds:5.1f} s  {peak / MB:6.0f} MB  {last[:110]}", flush=True)
    if status not in expect:
        failures.append(f"{case}: ended with {status}: {text[-300:]}")
    limit += 192 * MB + idle
    if peak > limit:
        failures.append(f"{case}: {peak / MB:.0f} MB, more than the limit of {limit / MB:.0f} MB")
    if message not in text:
        failures.append(f"{case}: {message!r} is not in {text[-300:]}")
    if "(please report it)" in text:
        failures.append(f"{case}: a panic: {text[-300:]}")


def check(case, holds):
    if not holds:
        failures.append(case)


def left(folder):
    """The files below a folder."""
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


folder = tempfile.mkdtemp(prefix="tfarrow-hostile-")
at = lambda name: os.path.join(folder, name)


def write(name, data):
    with open(at(name), "wb") as file:
        file.write(data)
    return at(name)


def bombs():
    # 10 GB of zeros in 10 MB of gzip, as concatenated members.
    first = gzip.compress(frame(example(entry(b"x", ints(1)))), 9)
    with open(at("bomb.tfrecord.gz"), "wb") as file:
        file.write(first)
        zeros = gzip.compress(bytes(100_000_000), 9)
        for _ in range(100):
            file.write(zeros)
    size = os.path.getsize(at("bomb.tfrecord.gz"))
    check(f"a bomb of 10 GB has {size} bytes", 9e6 < size < 11e6)
    commands = [["count"], ["schema"], ["verify"], ["convert", at("x.parquet")], ["repair", at("x.tfrecord")]]
    for command, *dest in commands:
        attack(f"{command}: 10 GB in 10 MB of gzip", [command, at("bomb.tfrecord.gz"), *dest], (1, 3), message="")
        for name in dest:
            if os.path.exists(name):
                os.remove(name)
    # One record of zeros with a valid length.
    write("long.gz", gzip.compress(header(1 << 30) + bytes(1 << 28), 9))
    # `limit` is the 64 MB that any file may decompress to, whatever its ratio.
    attack("schema: a record of 1 GB of zeros in gzip", ["schema", at("long.gz")], (1,), limit=64 * MB, message="inflate-ratio")
    attack("sql: 10 GB in 10 MB of gzip", ["sql", f"SELECT count(*) FROM '{at('bomb.tfrecord.gz')}'"], (1,))


def lengths():
    write("length.tfrecord", header(1 << 62) + b"short")
    attack("schema: a record with a length of 2^62 bytes", ["schema", at("length.tfrecord")], (1,), message="bytes in one record")
    write("length.tfrecord", header((1 << 31) - 2) + bytes(100))
    attack("convert: a record of 2 GB in a short file", ["convert", at("length.tfrecord"), at("x.parquet")], (1,))
    heads = header(1 << 28)
    write("heads.tfrecord", b"\xff" + heads * (8 * MB // len(heads)))
    attack("verify: 700,000 headers of records of 256 MB", ["verify", at("heads.tfrecord")], (3,))
    attack("repair: 700,000 headers of records of 256 MB", ["repair", at("heads.tfrecord"), at("x.tfrecord")], (3,))
    os.remove(at("x.tfrecord"))
    write("garbage.tfrecord", random.Random(1).randbytes(64 * MB))
    attack("verify: 64 MB of noise", ["verify", at("garbage.tfrecord")], (3,))
    write("tiny.tfrecord", (frame(b"") + b"\xff") * 1_000_000)
    attack("verify: a million faults", ["verify", at("tiny.tfrecord")], (3,))
    attack("convert: a million faults, skipped", ["convert", at("tiny.tfrecord"), at("x.parquet"), "--on-error", "skip"], (0, 1, 3))
    if os.path.exists(at("x.parquet")):
        os.remove(at("x.parquet"))


def damaged():
    """Damage that leaves few valid records in each chunk. These must not keep the rest of the chunk in memory."""
    sound = frame(example(entry(b"x", ints(1, 2))))
    outputs = [at("x.tfrecord.gz"), at("x.parquet"), at("x.tfrecord")]
    skip = ["--on-error", "skip"]
    gathering = [
        ["repair", outputs[2], "--overwrite"], ["convert", outputs[1], *skip, "--overwrite"],
        ["convert", outputs[1], *skip, "--overwrite", "--exact", "--quarantine", at("q")],
    ]
    others = [["verify"], ["schema", *skip], ["stats", *skip], ["report", *skip, "-o", at("x.html")]]
    def each(case, source, commands):
        for name, *rest in commands:
            attack(f"{name}: {case}", [name, source, *rest], (3,))
            if os.path.exists(at("q")):
                os.remove(at("q"))
        attack(f"sql: {case}", ["sql", *skip, f"SELECT x FROM '{source}' ORDER BY 1"], (3,))
    gaps = write("gaps.tfrecord.gz", (gzip.compress(sound, 9) + b"junk") * 2000)
    each("2,000 gzip members with junk between them", gaps, gathering + others)
    attack("diff: 2,000 gzip members with junk between them", ["diff", gaps, gaps, *skip], (3,))
    for command in ("head", "count"):
        attack(f"{command}: 2,000 gzip members with junk between them", [command, gaps], (1,), message="is followed by other data")
    # One record in each 2 MB of junk.
    with gzip.open(at("sparse.tfrecord.gz"), "wb", 6) as file:
        noise, zeros = random.Random(2).randbytes(10_000), bytes(2 * MB)
        for _ in range(180):
            file.write(sound + zeros + noise)
    each("180 records among 360 MB of junk, in gzip", at("sparse.tfrecord.gz"), gathering)
    for name in (*outputs, at("x.html")):
        if os.path.exists(name):
            os.remove(name)


def records():
    values = bytes([1]) * (32 * MB)
    write("values.tfrecord", frame(example(entry(b"x", field(3, field(1, values))))))
    attack("convert: 32 million values in one list", ["convert", at("values.tfrecord"), at("x.parquet"), "--overwrite"], (0,), limit=8 * 4 * 32 * MB)
    bound = ["--limit", "values=1MB"]
    attack("convert: 32 million values, values=1MB", ["convert", at("values.tfrecord"), at("y.parquet"), *bound], (1,), limit=32 * MB, message="values")
    attack("sql: 32 million values, values=1MB", ["sql", f"SELECT sum(x[1]) FROM '{at('values.tfrecord')}'", *bound], (1,), limit=32 * MB)
    attack("convert: 32 million values, record-bytes=1MB", ["convert", at("values.tfrecord"), at("y.parquet"), "--limit", "record-bytes=1MB"], (1,), limit=MB, message="bytes in one record")
    empty = field(1, b"")
    write("steps.tfrecord", frame(field(2, field(1, field(1, b"x") + field(2, empty * 4_000_000)))))
    attack("convert: four million empty steps, values=1MB", ["convert", at("steps.tfrecord"), at("y.parquet"), *bound], (1,), limit=8 * MB)
    write("entries.tfrecord", frame(example(*[empty * 3_000_000])))
    attack("schema: three million features in one record", ["schema", at("entries.tfrecord")], (1,), limit=8 * MB, message="record-features")
    write("key.tfrecord", frame(example(entry(b"k" * (2 * MB), ints(1)))))
    attack("schema: a name of 2 MB", ["schema", at("key.tfrecord")], (1,), limit=8 * MB, message="key-bytes")
    write("group.tfrecord", frame(b"\x0b" * 1_000_000))
    attack("schema: a million nested groups", ["schema", at("group.tfrecord")], (0, 1, 3))
    def named(name, count, names, length=400):
        with open(at(name), "wb") as file:
            for row in range(count):
                file.write(frame(example(entry(b"name %0*d" % (length, row % names), ints(row)))))
        return at(name)
    names = named("names.tfrecord", 15_000, 15_000)
    attack("schema: 15,000 records with a feature name each", ["schema", names], (1,), limit=4 * MB, message="columns")
    attack("convert: 15,000 records with a feature name each", ["convert", names, at("y.parquet")], (1,), limit=4 * MB)
    attack("convert: 15,000 feature names, columns=1000", ["convert", names, at("y.parquet"), "--limit", "columns=1000"], (1,), limit=MB)
    attack("sql: 15,000 feature names, columns of a sample", ["sql", f"SELECT count(*) FROM '{names}'"], (0,))
    check("a refused conversion left its output", not os.path.exists(at("y.parquet")))
    # The largest number of columns that is allowed. Each takes memory in every file and in every batch.
    names, room = named("many.tfrecord", 10_000, 10_000), 10_000 * 20_000
    attack("schema: 10,000 records with a feature name each", ["schema", names], (0,), limit=room)
    attack("stats: 10,000 records with a feature name each", ["stats", names], (0,), limit=room)
    attack("convert: 10,000 records with a feature name each", ["convert", names, at("many.parquet"), "--exact"], (0,), limit=room)
    attack("  and back", ["convert", at("many.parquet"), at("many-back.tfrecord")], (0,), limit=room)
    check("the round trip of 10,000 columns differs", open(at("many-back.tfrecord"), "rb").read() == open(names, "rb").read())
    names = named("wide.tfrecord", 40_000, 2_000, length=4)
    attack("sql: 2,000 columns of 40,000 rows", ["sql", "--option", "sample_records=all", "--format", "csv", f"SELECT * FROM '{names}'"], (0,))
    # The scalars are sorted within 128 MB.
    seconds, loss = struct.pack("<d", 1), struct.pack("<f", 0.5)
    event = frame(b"\x09" + seconds + b"\x10\x07" + field(5, field(1, field(1, b"loss") + b"\x15" + loss)))
    write("events.out.tfevents.1", frame(b"\x09" + seconds + field(3, b"brain.Event:2")) + event * 7_500_000)
    attack("report: 7.5 million scalars", ["report", at("events.out.tfevents.1"), "-o", at("events.html")], (0,), limit=128 * MB)


def long():
    """A record of 300 MB, which a command has in memory once, and a line of JSON with 20 million values."""
    size = 300 * MB
    source, packed = at("long.tfrecord"), at("long.tfrecord.gz")
    status, text, *_ = run(["sql", f"COPY (SELECT repeat('0123456789abcdef', {size // 16}) AS x) TO '{source}'"])
    check(f"a record of 300 MB: {status}: {text[-300:]}", status == 0)
    inflate = ["--limit", "inflate-ratio=10000"]
    attack("convert: a record of 300 MB to gzip", ["convert", source, packed], (0,), limit=size)
    for command in ("count", "verify", "schema", "head", "stats"):
        attack(f"{command}: a record of 300 MB", [command, source], (0,), limit=size)
    for command in ("count", "verify", "head"):
        attack(f"{command}: a record of 300 MB in gzip", [command, packed, *inflate], (0,), limit=size)
    attack("sql: a record of 300 MB", ["sql", f"SELECT octet_length(x) FROM '{source}'"], (0,), limit=size)
    attack("repair: a record of 300 MB", ["repair", source, at("repaired.tfrecord")], (0,), limit=size)
    attack("convert: a record of 300 MB to Arrow", ["convert", source, at("long.arrow")], (0,), limit=size)
    # One copy for each side, and a part of one while it is read.
    attack("diff: a record of 300 MB", ["diff", source, at("repaired.tfrecord")], (0,), limit=3 * size)
    # Parquet's writer copies the value twice, after the record is released, and reserves as much for the compressed page.
    attack("convert: a record of 300 MB to Parquet", ["convert", source, at("long.parquet"), "--compression", "none"], (0,), limit=5 * size // 2)
    attack("  compressed", ["convert", source, at("long.parquet"), "--overwrite"], (0,), limit=4 * size)
    check("a record of 300 MB changes in Parquet", run(["diff", source, at("long.parquet")])[0] == 0)
    for name in os.listdir(folder):
        if name.startswith(("long.", "repaired.")):
            os.remove(at(name))
    with gzip.open(at("line.jsonl.gz"), "wb", 9) as file:
        file.write(b'{"x":[' + b"1," * 19_999_999 + b"1]}\n")
    # The longest line may have 240 MB. Values and text of a line are in memory at the same time.
    for command in ("count", "head", "schema"):
        attack(f"{command}: a line of 20 million integers", [command, at("line.jsonl.gz")], (0,), limit=3 * 240 * MB)
    attack("sql: a line of 20 million integers", ["sql", "--memory-limit", "256MB", f"SELECT cardinality(x) FROM '{at('line.jsonl.gz')}'"], (0,), limit=3 * 240 * MB)


def names():
    out = at("names-out/")
    odd = [b"../../x", b"", b"'\"`;--", b"a\nb\tc", b"_tfarrow_unset", b"_tfarrow_exact", b"_file", b"x" * 1_000_000, "größe \U0001f600".encode(), b"a\0b"]
    for place, name in enumerate(odd):
        shown = name[:20]
        source = write("a.tfrecord", frame(example(entry(name, ints(place)))))
        shutil.rmtree(out, ignore_errors=True)
        attack(f"convert: a feature named {shown!r}", ["convert", source, out, "--exact"], (0,), limit=16 * MB)
        attack(f"  and back", ["convert", out, at("names-back/"), "--to", "tfrecord", "--overwrite"], (0,), limit=16 * MB)
        check(f"{shown!r}: the round trip differs", open(at("names-back/a.tfrecord"), "rb").read() == open(source, "rb").read())
        check(f"{shown!r}: files outside of the destination", left(out) == ["a.parquet"])
        attack(f"  sql, schema, stats, head", ["head", source], (0,))
        for command in (["schema", source], ["stats", source], ["schema", source, "--format", "sql"], ["schema", source, "--format", "rust"], ["schema", source, "--format", "python"]):
            status, text, *_ = run(command)
            check(f"{shown!r}: {command[0]}: {status}: {text[-200:]}", status == 0)
    # Files with names of options, and links that lead out of the folder.
    os.makedirs(at("shards/sub"), exist_ok=True)
    os.makedirs(at("elsewhere"), exist_ok=True)
    payload = frame(example(entry(b"x", ints(1))))
    write("shards/--overwrite.tfrecord", payload)
    write("elsewhere/b.tfrecord", payload)
    os.symlink(at("elsewhere"), at("shards/link"))
    attack("convert: a shard named --overwrite, a link", ["convert", at("shards"), at("linked/")], (0,))
    check("an output is outside of DEST", left(at("linked")) == ["--overwrite.parquet", "link/b.parquet"] and not os.path.islink(at("linked/link")))
    os.makedirs(at("trap"), exist_ok=True)
    os.symlink(at("elsewhere/b.tfrecord"), at("trap/a.tfrecord"))
    status, text, *_ = run(["repair", at("shards/--overwrite.tfrecord"), at("trap/a.tfrecord")])
    check(f"an output that is a link is not refused: {status}", status == 2)
    status, text, *_ = run(["repair", at("shards/--overwrite.tfrecord"), at("trap/a.tfrecord"), "--overwrite"])
    check(f"a link is not replaced, or its target has changed: {status}", status == 0 and not os.path.islink(at("trap/a.tfrecord")) and open(at("elsewhere/b.tfrecord"), "rb").read() == payload)


def columnar():
    """Corrupt Parquet and Arrow files: truncated, flipped, overwritten."""
    source = write("p.tfrecord", b"".join(frame(example(entry(b"x", ints(row, row + 1)), entry(b"t", field(1, field(1, b"text %d" % row))))) for row in range(2000)))
    pick = random.Random(7)
    statuses = {}
    for name in ("p.parquet", "p.arrow", "zstd.arrow"):
        zstd = ["--compression", "zstd"] if name == "zstd.arrow" else []
        check(name, run(["convert", source, at(name), "--exact", *zstd])[0] == 0)
        whole = open(at(name), "rb").read()
        worst = 0
        for turn in range(120):
            data = bytearray(whole)
            for _ in range(pick.randrange(1, 4)):
                place = pick.randrange(len(data)) if pick.random() < 0.5 else len(data) - 1 - pick.randrange(min(2000, len(data)))
                kind = pick.randrange(4)
                if kind == 0:
                    data[place] ^= 1 << pick.randrange(8)
                elif kind == 1:
                    data[place:place + 8] = pick.choice([b"\xff" * 8, bytes(8), struct.pack("<q", 1 << 40), struct.pack("<q", -1)])
                elif kind == 2:
                    del data[place:place + pick.randrange(1, 50)]
                else:
                    data[place:place] = pick.randbytes(4)
            write("stranger", bytes(data))
            status, text, seconds, peak = run(["convert", at("stranger"), at("stranger.tfrecord"), "--to", "tfrecord", "--overwrite"])
            statuses[status] = statuses.get(status, 0) + 1
            worst = max(worst, peak)
            check(f"{name}, turn {turn}: exit {status} after {seconds:.1f} s, {peak / MB:.0f} MB: {text[-200:]}", status in (0, 1, 2) and peak < 512 * MB)
        print(f"{'convert: 120 damaged copies of ' + name:58} exit {dict(sorted(statuses.items()))}, {worst / MB:.0f} MB at most", flush=True)
    # More columns than the limit allows.
    wide = write("wide-names.tfrecord", b"".join(frame(example(*(entry(b"n%d" % (1000 * row + n), ints(n)) for n in range(1000)))) for row in range(30)))
    for name in ("wide.parquet", "wide.arrow"):
        check(name, run(["convert", wide, at(name), "--limit", "columns=1000000"])[0] == 0)
        attack(f"convert: {name} of 30,000 columns", ["convert", at(name), at("y.tfrecord")], (1,), message="--limit columns=N")
        attack("  diff", ["diff", at(name), at(name)], (1,), message="--limit columns=N")
        attack("  sql", ["sql", f"SELECT * FROM '{at(name)}'"], (1,), message="--limit columns=N")


def deflated(byte, count):
    """A zlib stream of `count` equal bytes."""
    stream, block = zlib.compressobj(9), byte * MB
    return b"".join(stream.compress(block) for _ in range(count // MB)) + stream.compress(byte * (count % MB)) + stream.flush()


def png(width, height, depth, color, interlace, pixels, *others):
    chunk = lambda name, body: struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    ihdr = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", ihdr) + b"".join(chunk(*other) for other in others) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def definitions():
    """Types of messages. A definition takes few bytes of a file and much memory."""
    write("messages.tfrecord", frame(b""))
    number = lambda field, value: bytes([field << 3]) + varint(value)
    message = field(4, field(1, b"M") + field(2, field(1, b"x") + number(3, 1) + number(4, 1) + number(5, 5)))
    values = lambda count: field(5, field(1, b"E") + b"".join(field(2, field(1, b"a%x" % i) + number(2, i)) for i in range(count)))
    comments = field(9, field(1, b"") * 10_000_000)
    files = {
        "an enum of two million values": (field(1, field(1, b"f") + message + values(2_000_000)), (1,)),
        "30 million files": (field(1, b"") * 30_000_000, (1,)),
        "an enum of 45,000 values": (field(1, field(1, b"f") + message + values(45_000)), (0,)),
        "a package of a megabyte": (field(1, field(2, b"a." * (MB // 2)) + message), (1,)),
        "10 million comments": (field(1, field(1, b"f") + message + comments), (0,)),
    }
    for case, (data, expect) in files.items():
        arguments = ["schema", at("messages.tfrecord"), "--proto", write("types.desc", data), "--message", "M"]
        attack(f"schema: types with {case}", arguments, expect, limit=len(data))


def pictures():
    """Small pictures of each format whose decoded size is large."""
    riff = lambda name, body: name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)
    vp8x = lambda flags, *chunks: riff(b"RIFF", b"WEBP" + riff(b"VP8X", bytes([flags, 0, 0, 0, 7, 0, 0, 7, 0, 0])) + b"".join(chunks))
    vp8 = riff(b"VP8 ", b"\x10\x02\0\x9d\x01\x2a\xff\x3f\xff\x3f" + bytes(500_000))
    sof = lambda marker: b"\xff" + marker + b"\0\x11\x08\xff\xff\xff\xff\x03\x01\x22\0\x02\x11\x01\x03\x11\x01"
    jpeg = lambda marker: b"\xff\xd8" + b"\xff\xdb\0\x43\0" + b"\1" * 64 + b"\xff\xdb\0\x43\1" + b"\1" * 64 + sof(marker) + b"\xff\xc4\0\x14\0\1" + bytes(16) + b"\xff\xc4\0\x14\x10\1" + bytes(16) + b"\xff\xda\0\x0c\x03\1\0\2\0\3\0\0\x3f\0" + bytes(500_000)
    gif = lambda canvas, frame: b"GIF89a" + struct.pack("<HHBBB", canvas, canvas, 0x80, 0, 0) + bytes(6) + b"," + struct.pack("<HHHHB", 0, 0, frame, frame, 0) + b"\2\2\x4c\1\0;"
    dib = lambda width, height, bits: b"BM" + struct.pack("<IIIIiiHHIIIIII", 1 << 20, 0, 54, 40, width, height, 1, bits, 0, 0, 0, 0, 0, 0) + bytes(100_000)
    tag = lambda number, kind, count, value: struct.pack("<HHII", number, kind, count, value)
    tiff = b"II*\0\x08\0\0\0" + struct.pack("<H", 8) + b"".join([tag(256, 4, 1, 60_000), tag(257, 4, 1, 60_000), tag(258, 3, 1, 16), tag(259, 3, 1, 8), tag(262, 3, 1, 1), tag(273, 4, 200_000_000, 8), tag(278, 4, 1, 60_000), tag(279, 4, 200_000_000, 8)]) + bytes(100_000)
    profile = (b"iCCP", b"x\0\0" + deflated(b"\0", 500 * MB))
    found = {
        "PNG, a profile of 500 MB": png(8, 8, 8, 2, 0, zlib.compress(bytes(200)), profile),
        "PNG, text of 500 MB": png(8, 8, 8, 2, 0, zlib.compress(bytes(200)), (b"zTXt", profile[1])),
        "PNG, a row of 39 million pixels": png(39_000_000, 1, 8, 6, 0, deflated(b"\0", 156_000_001)),
        "PNG, a column of 39 million pixels": png(1, 39_000_000, 8, 6, 0, deflated(b"\0", 5 * 39_000_000)),
        "PNG, 16 bits, 39 million pixels": png(6300, 6200, 16, 6, 0, deflated(b"\0", 6200 * (8 * 6300 + 1))),
        "PNG, 16 bits, interlaced, 20 million": png(5000, 4000, 16, 6, 1, deflated(b"\0", 4100 * (8 * 5100))),
        "PNG, 2 gigapixels of 1 bit": png(46_000, 46_000, 1, 0, 0, deflated(b"\0", 10 * MB)),
        "PNG, pixels of 8 GB": png(8, 8, 8, 2, 0, deflated(b"\0", 2000 * MB) * 4),
        "WebP, a frame larger than its canvas": vp8x(0, vp8),
        "WebP, animated, a frame larger than its canvas": vp8x(2, riff(b"ANIM", bytes(6)), riff(b"ANMF", bytes(16) + vp8)),
        "JPEG, 4 gigapixels": jpeg(b"\xc0"),
        "JPEG, progressive, 4 gigapixels": jpeg(b"\xc2"),
        "GIF, 4 gigapixels": gif(65_535, 65_535),
        "GIF, a frame larger than its canvas": gif(8, 65_535),
        "BMP, 4 gigapixels": dib(65_535, 65_535, 32),
        "BMP, a row of 30 million pixels": dib(30_000_000, 1, 32),
        "TIFF, tables of 200 million entries": tiff,
    }
    for name, picture in found.items():
        source = write("picture.tfrecord", frame(example(entry(b"image/encoded", field(1, field(1, picture))))) * 3)
        # Room for a record and its copies.
        room = 4 * len(picture)
        attack(f"stats: {name}", ["stats", source], (0,), limit=room)
        attack("  report", ["report", source, "-o", at("picture.html")], (0,), limit=room)
        attack("  image_info", ["sql", f"SELECT image_info(\"image/encoded\") FROM '{source}'"], (0,), limit=room)
    # Many large pictures within the limit: one is decoded at a time.
    source = write("picture.tfrecord", frame(example(entry(b"image/encoded", field(1, field(1, png(4000, 3300, 8, 6, 0, deflated(b"\0", 3300 * 16_001))))))) * 30)
    attack("report: 30 PNG of 13 million pixels", ["report", source, "-o", at("picture.html")], (0,))
    check("a picture of 13 million pixels is not shown", b"<image " in open(at("picture.html"), "rb").read())
    noise = random.Random(5).randbytes(15 * MB)
    source = write("picture.tfrecord", frame(example(entry(b"image/encoded", field(1, field(1, b"\xff\xd8\xff" + noise))))) * 60)
    attack("report: 60 pictures of 15 MB", ["report", source, "-o", at("picture.html"), "--examples", "1000"], (0,), limit=4 * 15 * MB)


def texts():
    """Many features with long, distinct texts."""
    def made(name, rows, columns):
        status, text, *_ = run(["sql", f"COPY (SELECT {', '.join(columns)} FROM generate_series(0, {rows - 1})) TO '{at(name)}'"])
        check(f"{name}: {text[-300:]}", status == 0)
        return at(name)
    long = [f"repeat(lpad(to_hex(value * 1000 + {n}), 8, '0'), 1250) AS t{n}" for n in range(50)]
    source = made("texts.tfrecord.gz", 1000, [*long, "value / 4 AS s"])
    # Room for a chunk of records per thread.
    room = 64 * MB
    inflate = ["--limit", "inflate-ratio=10000"]
    attack("stats: 50 features of texts of 10 kB", ["stats", source, *inflate], (0,), limit=room)
    attack("  as JSON", ["stats", source, "--format", "json", *inflate], (0,), limit=room)
    attack("  as a message", ["stats", source, "--format", "pb", *inflate], (0,), limit=room)
    attack("  by 250 slices", ["stats", source, "--by", "s", *inflate], (0,), limit=room)
    attack("  report", ["report", source, "-o", at("texts.html"), *inflate], (0,), limit=room)
    attack("  report, 1,000 examples", ["report", source, "-o", at("texts.html"), "--examples", "1000", *inflate], (0,), limit=room)
    write("texts.pbtxt", "".join('feature { name: "t%d" type: BYTES string_domain { value: "a" } }\n' % n for n in range(50)).encode())
    attack("  validate, every value is unexpected", ["validate", source, "--schema", at("texts.pbtxt"), "--update", at("new.pbtxt"), *inflate], (3,), limit=room)
    attack("  validate, against itself", ["validate", source, "--baseline", source, "--max-drift", "0.1", *inflate], (0, 3), limit=2 * room)
    # Features that occur one after another, each after the ones before it have used up the memory for figures.
    late = [f"CASE WHEN value / 600 = {n} THEN lpad(CAST(value AS VARCHAR), 400, '0') END AS late{n}" for n in range(100)]
    late = made("late.tfrecord.gz", 60_000, ["value AS n", *late])
    attack("stats: 100 features one after another", ["stats", late, *inflate], (0,), limit=room)
    short = made("short.tfrecord.gz", 30_000, [f"lpad(CAST(value * 30 + {n} AS VARCHAR), 8, '0') AS t{n}" for n in range(30)])
    attack("stats: 900,000 distinct texts of 8 bytes", ["stats", short, *inflate], (0,), limit=room)


def disks():
    disk = at("disk")
    os.makedirs(disk)
    noise = random.Random(3)
    payloads = [example(entry(b"x", field(1, field(1, noise.randbytes(500))))) for _ in range(1000)]
    records = b"".join(map(frame, payloads))
    for shard in range(8):
        write(f"d-{shard:05}-of-00008.tfrecord", records)
    sources = [at(f"d-{shard:05}-of-00008.tfrecord") for shard in range(8)]
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", disk], check=True)
    try:
        one = ["--compression", "none", "--jobs", "1"]
        for more in (["--to", "tfrecord"], ["--to", "tfrecord", *one], ["--to", "parquet", *one]):
            status, text, *_ = run(["convert", *sources, os.path.join(disk, "out/"), *more])
            print(f"{'convert: to a disk of 1.5 MB, ' + ' '.join(more):58} exit {status}  {text.splitlines()[-1][:110]}", flush=True)
            check(f"a full disk: {status}: {text}", status == 1 and "No space left" in text)
            names = [name for name in left(disk) if not os.path.basename(name).startswith(".tfarrow-")]
            for name in names:
                count = subprocess.run([program, "count", os.path.join(disk, name)], capture_output=True, text=True)
                check(f"{name} has its final name and is incomplete: {count}", count.stdout == "1000\n")
            check("complete outputs are not kept", "--resume" in text or not names and "--jobs" not in more)
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            resume = ["--resume"] if "--resume" in text else []
            status, text, *_ = run(["convert", *sources, os.path.join(disk, "out/"), *more, *resume])
            check(f"after the disk has grown: {status}: {text}", status == 0 and len(left(disk)) == 8)
            shutil.rmtree(os.path.join(disk, "out"))
            subprocess.run(["mount", "-o", "remount,size=1500k", disk], check=True)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        for command in (["convert", sources[0], os.path.join(disk, "x.parquet")], ["convert", *sources, os.path.join(disk, "out/")], ["repair", sources[0], os.path.join(disk, "y.tfrecord")]):
            status, text, *_ = run(command)
            print(f"{command[0] + ': to a read-only disk':58} exit {status}  {text[:110]}", flush=True)
            check(f"a read-only disk: {status}: {text}", status == 1 and "Read-only" in text and disk in text)
        check("files on a read-only disk", left(disk) == [])
    finally:
        subprocess.run(["umount", disk], check=True)
    with open("/dev/full", "wb") as full:
        child = subprocess.run([program, "convert", sources[0], "-", "--to", "parquet"], stdout=full, stderr=subprocess.PIPE, text=True)
    check(f"a full standard output: {child.returncode}: {child.stderr}", child.returncode == 1 and "No space left" in child.stderr)


try:
    parts = (bombs, lengths, damaged, records, long, names, definitions, pictures, texts, columnar, disks)
    for part in [part for part in parts if part.__name__ in arguments.parts or not arguments.parts]:
        print(f"-- {part.__name__}", flush=True)
        part()
finally:
    shutil.rmtree(folder)
for failure in failures:
    print("FAILED", failure)
print(f"hostile files: {'all checks passed' if not failures else str(len(failures)) + ' checks failed'}")
sys.exit(bool(failures))
