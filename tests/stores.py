#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the program on objects of an S3 server and a web server, and compare its output with that for local files.

    python3 tests/stores.py target/release/tfarrow

Installs the S3 server (moto, from PyPI) into a folder of target/, which later runs use again.
"""
import functools
import http.server
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import venv

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOME = os.path.join(ROOT, "target", "stores")
PACKAGES = ["moto[server]==5.1.16", "boto3"]


def python():
    """The interpreter of an environment with the packages, which is created if it does not exist."""
    program, done = os.path.join(HOME, "bin", "python"), os.path.join(HOME, "installed")
    wanted = "\n".join(PACKAGES)
    if not os.path.exists(done) or open(done).read() != wanted:
        venv.create(HOME, with_pip=True, clear=True)
        subprocess.run([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True)
        with open(done, "w") as file:
            file.write(wanted)
    return program


class Web(http.server.SimpleHTTPRequestHandler):
    """A web server that supports range requests, as servers of large files do, and counts requests."""

    requests = 0

    def log_message(self, *_):
        pass

    def do_GET(self):
        Web.requests += 1
        path, span = self.translate_path(self.path), self.headers.get("Range")
        if not os.path.isfile(path):
            return self.send_error(404)
        content = open(path, "rb").read()
        if span is None:
            self.send_response(200)
        else:
            first, last = span.removeprefix("bytes=").split("-")
            first, last = int(first), min(int(last or len(content) - 1), len(content) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
            content = content[first : last + 1]
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", self.date_time_string(0))
        self.end_headers()
        self.wfile.write(content)


class Whole(http.server.SimpleHTTPRequestHandler):
    """A web server without range requests, for URLs that are signed for GET: it rejects HEAD and other signatures."""

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_error(403)

    def do_GET(self):
        if not self.path.endswith("?signature=a%2Fb"):
            return self.send_error(403)
        super().do_GET()


class Check:
    def __init__(self, program, environment):
        self.program, self.environment, self.count = program, environment, 0

    def run(self, *args, status=0):
        done = subprocess.run([self.program, *args], capture_output=True, text=True, cwd=ROOT, env=self.environment, timeout=120)
        assert done.returncode == status, f"{args}: status {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def prints(self, args, expected):
        found = self.run(*args).stdout
        assert found == expected, f"{args}: found {found!r}, expected {expected!r}"
        self.count += 1

    def same(self, args, here, there):
        """Both data sets give the same output."""
        put = lambda place: [arg.replace("SOURCE", place) for arg in args]
        self.prints(put(there), self.run(*put(here)).stdout)

    def refuses(self, args, *words):
        self.fails(args, *words, status=2)

    def fails(self, args, *words, status=1):
        error = self.run(*args, status=status).stderr
        for word in words:
            assert word in error, f"{args}: {word!r} is not in {error!r}"
        self.count += 1


def parts(check, s3):
    """Parts of a conversion to a store, and resumed conversions, keep the objects that were made of the same data."""
    source, whole, dest = "s3://data/sets/shards/", "s3://data/whole/", "s3://data/pieces/"

    def objects(prefix):
        found = s3.list_objects_v2(Bucket="data", Prefix=prefix).get("Contents", [])
        return {found["Key"].removeprefix(prefix): (s3.get_object(Bucket="data", Key=found["Key"])["Body"].read(), found["LastModified"]) for found in found}

    def note(key):
        return s3.head_object(Bucket="data", Key=key)["Metadata"].get("tfarrowmadeof", "")

    def contents(prefix):
        return {name: content for name, (content, _) in objects(prefix).items()}

    def totals(*args, status=0):
        return json.loads(check.run("convert", *args, "--json", status=status).stdout)

    assert totals(source, whole)["records"] == 200
    before = objects("whole/")
    again = totals(source, whole, "--resume")
    assert (again["records"], again["files"]) == (200, 4) and objects("whole/") == before, again
    name = "train-00002-of-00004"
    for count in [1, 3, 7]:
        for _ in range(2):
            records = [totals(source, dest, "--part", f"{part}/{count}")["records"] for part in range(count)]
            assert sum(records) == 200, records
            assert contents("pieces/") == contents("whole/")
    assert note(f"pieces/{name}.parquet").endswith("-50") and note(f"pieces/{name}.parquet") == note(f"whole/{name}.parquet")
    # An output that is kept is not read, and neither is its source.
    changed = {"Bucket": "data", "Key": f"pieces/{name}.parquet", "Metadata": {"tfarrowmadeof": note(f"whole/{name}.parquet")}}
    s3.put_object(Body=b"kept", **changed)
    assert totals(source, dest, "--part", "0/1")["records"] == 200
    assert contents("pieces/")[f"{name}.parquet"] == b"kept"
    # With another note, or none, the output is compared with the object.
    for metadata in [{"tfarrowmadeof": "0" * 32 + "-50"}, {}]:
        s3.put_object(Body=b"other", **dict(changed, Metadata=metadata))
        for more in [["--part", "0/1"], ["--resume"]]:
            check.fails(["convert", source, dest, *more], f"{name}.parquet: already exists, and differs from the output of this conversion; --overwrite replaces it")
        s3.put_object(Body=contents("whole/")[f"{name}.parquet"], **dict(changed, Metadata=metadata))
        assert totals(source, dest, "--part", "0/1")["records"] == 200
    # Other options, and a source that was replaced by an equal one, and by another one.
    check.fails(["convert", source, dest, "--part", "0/1", "--compression", "none"], "differs from the output of this conversion")
    original = s3.get_object(Bucket="data", Key=f"sets/shards/{name}.tfrecord")["Body"].read()
    s3.put_object(Bucket="data", Key=f"sets/shards/{name}.tfrecord", Body=original, ACL="public-read")
    totals(source, dest, "--part", "0/1")
    other = s3.get_object(Bucket="data", Key="sets/shards/train-00001-of-00004.tfrecord")["Body"].read()
    s3.put_object(Bucket="data", Key=f"sets/shards/{name}.tfrecord", Body=other)
    check.fails(["convert", source, dest, "--part", "0/1"], f"{name}.parquet: already exists, and differs")
    totals(source, dest, "--part", "0/1", "--overwrite")
    s3.put_object(Bucket="data", Key=f"sets/shards/{name}.tfrecord", Body=original, ACL="public-read")
    totals(source, dest, "--part", "0/1", "--overwrite")
    assert contents("pieces/") == contents("whole/")
    # The sources are Parquet files, which each part copies for itself.
    for part in range(3):
        totals(dest, "s3://data/pieces-back/", "--to", "tfrecord", "--part", f"{part}/3")
    check.same(["head", "SOURCE", "-n", "200", "--full"], "testdata/shards/", "s3://data/pieces-back/")
    # Where something was skipped, a later run reads the source again, and reports it again.
    damaged = ["testdata/corrupt/data_crc.tfrecord", "s3://data/damaged/", "--on-error", "skip", "--quarantine", "s3://data/lost/0.tfrecord", "--part", "0/1", "--record-type", "example"]
    for _ in range(2):
        report = totals(*damaged, status=3)
        assert report["skipped"]["records"] == 1, report
        assert note("damaged/data_crc.parquet") == "" and len(objects("lost/")) == 1
    # Attempts at the same part at the same time.
    attempts = [subprocess.Popen([check.program, "convert", source, "s3://data/raced/", "--part", "0/1"], cwd=ROOT, env=check.environment) for _ in range(3)]
    assert [attempt.wait(timeout=120) for attempt in attempts] == [0, 0, 0]
    assert contents("raced/") == contents("whole/")
    check.refuses(["convert", "testdata/shards/", "-", "--to", "parquet", "--resume"], "a conversion to a stream cannot be resumed")


def indexes(check, s3, big):
    """Indexes in a store, and in a folder, of objects: blocks that cannot match are not requested."""
    s3.upload_file(big, "data", "indexed/big.tfrecord")
    source, index = "s3://data/indexed/", "s3://data/indexed/big.tfrecord.tfindex"
    count = check.run("count", big).stdout
    middle = int(count) // 2
    range_of_records = f"SELECT city, price FROM read_tfrecord('SOURCE', metadata_columns => '_record') WHERE _record BETWEEN {middle} AND {middle + 9}"
    queries = [range_of_records, f"SELECT price FROM 'SOURCE' LIMIT 5 OFFSET {middle}", "SELECT count(*), avg(price) FROM 'SOURCE'", "SELECT count(*) FROM 'SOURCE'"]

    def pruned(options=(), source=source):
        plan = check.run("sql", *options, "--format", "csv", "EXPLAIN ANALYZE " + range_of_records.replace("SOURCE", source)).stdout
        return int(plan.partition("blocks_pruned=")[2].split(",")[0].split("]")[0] or 0)

    assert pruned() == 0
    check.run("index", source)
    assert "1 kept" in check.run("index", source, "--update").stderr
    for place in [source, source + "*.tfrecord", source + "big.tfrecord"]:
        check.prints(["count", place], count)
        for query in queries:
            check.same(["sql", query], big, place)
    assert pruned() > 30
    # A compressed object is read from access points on.
    compressed = "s3://data/indexed_gzip/"
    check.run("convert", big, compressed + "big.tfrecord.gz")
    check.run("index", compressed)
    check.prints(["count", compressed], count)
    for query in queries:
        check.same(["sql", query], big, compressed)
    assert pruned(source=compressed) > 10
    # An index in a folder of this machine.
    s3.delete_object(Bucket="data", Key="indexed/big.tfrecord.tfindex")
    folder = os.path.join(HOME, "out", "indexes")
    check.run("index", source, "--to", folder)
    assert pruned() == 0 and pruned(["--option", f"index={folder}"]) > 30
    # In another folder of the store.
    folder = "s3://data/indexes/"
    check.run("index", source, "--to", folder)
    assert pruned() == 0 and pruned(["--option", f"index={folder}"]) > 30
    check.prints(["count", source, "--index", folder], count)
    # An object that was replaced after it was indexed.
    check.run("index", source)
    s3.put_object(Bucket="data", Key="indexed/big.tfrecord", Body=open(big, "rb").read()[: os.path.getsize(big) // 2])
    error = check.run("sql", queries[2].replace("SOURCE", source), status=1).stderr
    assert index in error and "changed since the index was made" in error, error


def main():
    from moto.server import ThreadedMotoServer
    import boto3

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    program = os.path.abspath(sys.argv[1])
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    environment = dict(os.environ, AWS_ENDPOINT_URL=endpoint, AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_REGION="us-east-1")
    s3 = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    s3.create_bucket(Bucket="data")
    testdata = os.path.join(ROOT, "testdata")
    for folder in ["shards", "compressed", "tfds"]:
        for name in os.listdir(os.path.join(testdata, folder)):
            s3.upload_file(os.path.join(testdata, folder, name), "data", f"sets/{folder}/{name}", {"ACL": "public-read"})
            s3.upload_file(os.path.join(testdata, folder, name), "data", f"hive/set={folder}/{name}")
    s3.upload_file(os.path.join(testdata, "sequence.tfrecord"), "data", "a b/sequence+1.tfrecord")
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Web, directory=testdata))
    threading.Thread(target=web.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{web.server_port}"

    signed = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Whole, directory=os.path.join(HOME, "out")))
    threading.Thread(target=signed.serve_forever, daemon=True).start()

    def s3_names(prefix):
        return [object["Key"] for object in s3.list_objects_v2(Bucket="data", Prefix=prefix).get("Contents", [])]

    check = Check(program, environment)
    shards, query = "testdata/shards/", "SELECT city, count(*) AS n, sum(label) AS s FROM 'SOURCE' GROUP BY city ORDER BY city"
    for there in ["s3://data/sets/shards/", "s3://data/sets/shards", "s3://data/sets/shards/*.tfrecord", "s3://data/sets/sha*/train-0000[0-3]*", "s3://data/sets/shards/train@4"]:
        check.same(["sql", query], shards, there)
        check.same(["count", "SOURCE"], shards, there)
        check.same(["head", "SOURCE", "-n", "7"], shards, there)
        check.same(["schema", "SOURCE"], shards, there)
    check.same(["count", "SOURCE"], "testdata/shards/train-00001-of-00004.tfrecord", f"{site}/shards/train-00001-of-00004.tfrecord")
    check.same(["sql", query], "testdata/shards/train-00001-of-00004.tfrecord", f"{site}/shards/train-00001-of-00004.tfrecord")
    # The same object has a column more below a folder that is higher, in the same session.
    s3.upload_file(os.path.join(testdata, "sequence.tfrecord"), "data", "alone/kind=a/x.tfrecord")
    count = check.run("count", "testdata/sequence.tfrecord").stdout
    alone = "SELECT count(*) AS n FROM 's3://data/alone/kind=a/'; SELECT DISTINCT kind FROM 's3://data/alone/'"
    check.prints(["sql", "--format", "csv", alone], f"n\n{count}kind\na\n")
    # A second query of the same file requests no sample of its records.
    city = f"SELECT count(DISTINCT city) AS n FROM '{site}/shards/train-00001-of-00004.tfrecord'"
    requests = []
    for queries in [city, f"{city}; {city}"]:
        Web.requests = 0
        check.run("sql", queries)
        requests.append(Web.requests)
    assert requests[0] < requests[1] < 2 * requests[0], requests
    check.same(["head", "SOURCE"], "testdata/sequence.tfrecord", "s3://data/a b/sequence+1.tfrecord")
    check.same(["count", "SOURCE"], "testdata/compressed/*-of-00003*", "s3://data/sets/compressed/*-of-00003*")
    check.same(["count", "SOURCE"], "testdata/tfds/", "s3://data/sets/tfds/")
    check.prints(["sql", "--format", "csv", "SELECT \"set\", count(*) FROM 's3://data/hive/*/train-*' GROUP BY 1"], "set,count(*)\nshards,200\n")
    check.prints(["sql", "--format", "csv", "SELECT label FROM 's3://data/sets/shards/' LIMIT 0"], "label\n")

    # The description of TFDS beside the shards: a shard that lost its last record, and a second split.
    described = json.dumps({"name": "mnist", "splits": [{"name": "train", "shardLengths": ["5", "6"]}, {"name": "test", "shardLengths": ["5"]}]})
    s3.put_object(Bucket="data", Key="described/dataset_info.json", Body=described.encode())
    for number, name in enumerate(["train.tfrecord-00000-of-00002", "train.tfrecord-00001-of-00002", "test.tfrecord-00000-of-00001"]):
        s3.upload_file(os.path.join(testdata, "tfds", f"mnist-train.tfrecord-{number % 2:05}-of-00002"), "data", f"described/mnist-{name}")
    lost = "s3://data/described/mnist-train.tfrecord-00001-of-00002: has 5 records, and 6 by dataset_info.json"
    splits = "2 splits of TensorFlow Datasets: train (11 records, s3://data/described/mnist-train.tfrecord-*), test (5 records,"
    check.fails(["count", "s3://data/described/"], lost, splits, status=3)
    verified = check.run("verify", "s3://data/described/", status=3)
    assert lost in verified.stdout and splits in verified.stderr, verified
    assert splits in check.run("convert", "s3://data/described/", "s3://data/converted-splits/", "--dry-run").stderr

    out = os.path.join(HOME, "out")
    subprocess.run(["rm", "-rf", out], check=True)
    check.run("convert", "s3://data/sets/shards/", os.path.join(out, "parquet"))
    check.same(["sql", query], shards, os.path.join(out, "parquet") + "/")
    # A server without range requests, and a URL with a query string and with encoded characters.
    os.symlink(os.path.join(testdata, "shards", "train-00001-of-00004.tfrecord"), os.path.join(out, "a ü.tfrecord"))
    os.symlink(os.path.join(out, "parquet", "train-00001-of-00004.parquet"), os.path.join(out, "b.parquet"))
    for name in ["a%20%C3%BC.tfrecord", "b.parquet"]:
        url = f"http://127.0.0.1:{signed.server_port}/{name}"
        check.same(["sql", query], "testdata/shards/train-00001-of-00004.tfrecord", url + "?signature=a%2Fb")
        check.run("convert", url + "?signature=a%2Fb", os.path.join(out, "signed.arrow"), "--overwrite")
        check.same(["sql", query], "testdata/shards/train-00001-of-00004.tfrecord", os.path.join(out, "signed.arrow"))
        error = check.run("count", url + "?signature=wrong", status=1).stderr
        assert "403" in error, error
    for name in os.listdir(os.path.join(out, "parquet")):
        s3.upload_file(os.path.join(out, "parquet", name), "data", f"parquet/{name}")
    check.same(["sql", query], shards, "s3://data/parquet/")
    check.same(["sql", query], shards, "s3://data/parquet/*.parquet")
    check.run("convert", "s3://data/parquet/", os.path.join(out, "back"), "--to", "tfrecord")
    check.same(["head", "SOURCE", "-n", "200", "--full"], shards, os.path.join(out, "back"))

    # The results of parts, as one run over all objects prints them.
    for number, work in enumerate([["schema", "s3://data/sets/shards/", "--format", "json"], ["schema", "s3://data/parquet/"], ["stats", "s3://data/parquet/"]]):
        for part in range(3):
            check.run(*work, "--part", f"{part}/3", "--partial", f"s3://data/parts/{number}/{part}")
        check.prints(["merge", f"s3://data/parts/{number}/"], check.run(*work).stdout)
    # An object was replaced by one of the same size between two parts.
    shard = s3.get_object(Bucket="data", Key="sets/shards/train-00000-of-00004.tfrecord")["Body"].read()
    for part in range(2):
        for name in ["a.tfrecord", "b.tfrecord"]:
            s3.put_object(Bucket="data", Key=f"changed/{name}", Body=shard if part == 0 else shard[:19] + b"?" + shard[20:])
        check.run("stats", "s3://data/changed/", "--on-error", "skip", "--part", f"{part}/2", "--partial", f"s3://data/parts/changed/{part}")
    check.fails(["merge", "s3://data/parts/changed/"], "different data sets, or of one that has changed")
    # A result replaces an earlier one, or an empty object, and nothing else.
    shard = "sets/shards/train-00000-of-00004.tfrecord"
    content = s3.get_object(Bucket="data", Key=shard)["Body"].read()
    for work in ["stats", "schema", "report"]:
        check.refuses([work, shards, "--part", "0/1", "--partial", f"s3://data/{shard}"], "exists and is not the result of a part")
    check.refuses(["report", shards, "-o", f"s3://data/{shard}"], "exists and is not a report page")
    schema = os.path.join(HOME, "schema.pbtxt")
    with open(schema, "w") as file:
        file.write(check.run("schema", shards, "--format", "pbtxt").stdout)
    validate = ["validate", shards, "--schema", schema, "--update"]
    check.fails([*validate, f"s3://data/{shard}"], "is binary, and not a schema in text format")
    for _ in range(2):
        check.run(*validate, "s3://data/schema.pbtxt")
    assert s3.get_object(Bucket="data", Key=shard)["Body"].read() == content
    s3.put_object(Bucket="data", Key="parts/empty", Body=b"")
    for _ in range(2):
        check.run("stats", shards, "--part", "0/1", "--partial", "s3://data/parts/empty")
        check.run("report", shards, "-o", "s3://data/report.html")

    check.run("convert", "s3://data/sets/shards/", "s3://data/converted/")
    names = s3_names("converted/")
    assert names == [f"converted/train-{i:05}-of-00004.parquet" for i in range(4)], names
    check.same(["sql", query], shards, "s3://data/converted/")
    check.run("convert", "s3://data/converted/", "s3://data/back", "--to", "tfrecord", "--shards", "3", "--compression", "gzip")
    names = s3_names("back/")
    assert names == [f"back/train-{i:05}-of-00003.tfrecord.gz" for i in range(3)], names
    check.same(["head", "SOURCE", "-n", "200", "--full"], shards, "s3://data/back")
    splits = ["--to", "tfrecord", "--split", "train=0.8,test=0.2", "--shuffle", "1"]
    check.run("convert", "s3://data/sets/shards/", "s3://data/split/", *splits)
    names = s3_names("split/")
    assert names == ["split/test/train-00000-of-00001.tfrecord"] + [f"split/train/train-{i:05}-of-00004.tfrecord" for i in range(4)], names
    with tempfile.TemporaryDirectory() as local:
        check.run("convert", shards, local, *splits)
        for split in ["train", "test"]:
            rows = "SELECT city, label, price FROM 'SOURCE' ORDER BY price, city, label"
            check.same(["sql", rows], os.path.join(local, split), f"s3://data/split/{split}")
    for target in ["parquet", "arrow"]:
        check.run("convert", "testdata/events/logs/", f"s3://data/events/{target}/", "--to", target)
        values = "SELECT run, step, wall_time, tag, kind, value, text FROM 'SOURCE' ORDER BY run, tag, step, kind"
        check.same(["sql", values], "testdata/events/logs/", f"s3://data/events/{target}/")
    one = [shards + "train-00000-of-00004.tfrecord", "s3://data/one.arrow"]
    check.run("convert", *one)
    check.refuses(["convert", *one], "s3://data/one.arrow: already exists; --overwrite")
    check.run("convert", *one, "--overwrite")
    check.refuses(["convert", shards, "gcs://data/converted/"], "no URL that is known")
    check.fails(["convert", one[0], "s3://data.parquet"], "names a store without an object in it")
    check.refuses(["convert", shards, "s3://data/converted"], "(and 3 more outputs): already exists")
    check.refuses(["convert", shards, "s3://data/back", "--to", "tfrecord", "--shards", "2", "--compression", "gzip"], "is a shard of an existing set")
    check.fails(["convert", "testdata/corrupt/data_crc.tfrecord", "s3://data/damaged/"], "data_crc.tfrecord")
    assert s3_names("damaged/") == []
    parts(check, s3)
    # Large enough for a multipart upload with parts of 8 MiB.
    big = os.path.join(out, "big.tfrecord")
    record = open("testdata/shards/train-00000-of-00004.tfrecord", "rb").read()
    with open(big, "wb") as file:
        file.write(record * (40_000_000 // len(record) + 1))
    indexes(check, s3, big)
    check.run("convert", big, "s3://data/big.tfrecord.gz", "--compression", "gzip")
    check.run("convert", big, "s3://data/big.arrow")
    assert s3.head_object(Bucket="data", Key="big.arrow")["ContentLength"] > 2 * (8 << 20)
    check.same(["sql", "SELECT count(*) AS n, sum(label) AS s, count(DISTINCT city) AS c FROM 'SOURCE'"], big, "s3://data/big.tfrecord.gz")
    check.same(["sql", "SELECT count(*) AS n, sum(label) AS s, count(DISTINCT city) AS c FROM 'SOURCE'"], big, "s3://data/big.arrow")
    check.run("sql", f"COPY (SELECT * FROM '{big}') TO 's3://data/copied.arrow'")
    check.same(["sql", "SELECT count(*) AS n, sum(label) AS s FROM 'SOURCE'"], big, "s3://data/copied.arrow")
    check.run("convert", "s3://data/big.arrow", os.path.join(out, "big-back.tfrecord"))
    check.same(["head", "SOURCE", "-n", "1000000"], big, os.path.join(out, "big-back.tfrecord"))

    copy = f"COPY (SELECT * FROM '{shards}') TO 's3://data/copied/train.tfrecord' OPTIONS (shards 3, compression 'gzip')"
    check.run("sql", copy)
    names = s3_names("copied/")
    assert names == [f"copied/train-{i:05}-of-00003.tfrecord.gz" for i in range(3)], names
    check.same(["sql", query], shards, "s3://data/copied/")
    check.refuses(["sql", copy], "s3://data/copied/train-00000-of-00003.tfrecord.gz: this file exists")
    parquet = f"COPY (SELECT city, label FROM '{shards}') TO 's3://data/copied/all.parquet'"
    check.run("sql", parquet)
    check.refuses(["sql", parquet], "s3://data/copied/all.parquet: this file exists")
    check.run("sql", parquet + " OPTIONS (overwrite true)")
    check.fails(["sql", f"COPY (SELECT 1 / (label - 1) FROM '{shards}') TO 's3://data/failed.parquet'"], "Divide by zero")
    assert s3_names("failed") == []
    check.same(["sql", query], shards, "s3://data/copied/all.parquet")
    create = "CREATE EXTERNAL TABLE t STORED AS TFRECORD LOCATION 's3://data/sets/shards/'; "
    check.prints(["sql", create + query.replace("'SOURCE'", "t")], check.run("sql", query.replace("SOURCE", shards)).stdout)

    table = "CREATE EXTERNAL TABLE t (city VARCHAR, label BIGINT) STORED AS TFRECORD LOCATION 's3://data/grown/'; "
    check.run("sql", table + f"INSERT INTO t SELECT city, label FROM '{shards}'; INSERT INTO t VALUES ('x', 1)")
    check.prints(["sql", "--format", "csv", table + "SELECT count(*) AS n, count(label) AS l FROM t"], "n,l\n201,201\n")

    # Google Cloud Storage has the same API: the same server, with the URLs and variables of Google. Without a signature,
    # the server allows reading public objects and no writing.
    account = os.path.join(out, "account.json")
    with open(account, "w") as file:
        json.dump({"gcs_base_url": endpoint, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}, file)
    environment["GOOGLE_SERVICE_ACCOUNT"] = account
    check.same(["sql", query], shards, "gs://data/sets/shards/")
    check.same(["count", "SOURCE"], shards, "gs://data/sets/shards/*.tfrecord")

    check.fails(["count", "s3://data/none/"], "s3://data/none/", "no such object")
    check.fails(["sql", "SELECT * FROM 's3://data/sets/*.nothing'"], "s3://data/sets/*.nothing", "none that is a shard matches")
    check.fails(["count", "s3://nobody/x"], "s3://nobody/x")
    check.fails(["count", f"{site}/shards/*"], "web servers cannot list files")
    check.fails(["count", f"{site}/none.tfrecord"], "none.tfrecord")
    unknown = {name: value for name, value in environment.items() if "ACCESS_KEY" not in name}
    unknown = Check(program, dict(unknown, AWS_METADATA_ENDPOINT="http://127.0.0.1:1"))
    unknown.fails(["count", "s3://data/sets/shards/"], "no credentials: set AWS_ACCESS_KEY_ID")
    unknown.fails(["sql", "COPY (SELECT 1 AS x) TO 's3://data/x.parquet'"], "no credentials: set AWS_ACCESS_KEY_ID")
    unknown.fails(["convert", shards, "s3://data/x/"], "no credentials: set AWS_ACCESS_KEY_ID")
    unknown.fails(["sql", "SELECT 1 FROM 's3://data/sets/shards/'"], "no credentials: set AWS_ACCESS_KEY_ID")
    unknown.environment["AWS_SKIP_SIGNATURE"] = "true"
    unknown.same(["sql", query], shards, "s3://data/sets/shards/")
    check.count += unknown.count
    check.fails(["convert", shards, f"{site}/out/"], "cannot write to a web server")
    print(f"stores: {check.count} checks passed")
    server.stop()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if os.path.realpath(sys.prefix) != os.path.realpath(HOME):
        os.execv(python(), [python(), os.path.abspath(__file__), os.path.abspath(sys.argv[1])])
    main()
