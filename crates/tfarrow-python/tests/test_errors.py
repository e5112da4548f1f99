"""Exceptions and warnings: their classes, places and texts."""

import os
import pickle
import shutil
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import tfarrow
from support import TESTDATA, example, feature, field, program, write_records
from tfarrow import errors

CORRUPT = TESTDATA / "corrupt"
SCALAR = TESTDATA / "scalar.tfrecord"

# The same remedy is an option in the program and an argument in the package.
REMEDIES = ("; on_error=", "; limits=", "; on_conflict=", "; overwrite=", "; if it was TFRecord, ", "; record_type=", "; layout=")


def without_remedy(text):
    for remedy in REMEDIES:
        text = text.split(remedy)[0]
    return text


def place(error):
    return {name: getattr(error, name) for name in ("file", "record", "offset", "feature", "errno") if getattr(error, name) is not None}


READERS = {
    "schema": lambda path: tfarrow.schema(path),
    "columns": lambda path: tfarrow.scan(path, sample="all").columns,
    "numpy": lambda path: tfarrow.scan(path, sample=1).to_numpy(),
    "batches": lambda path: list(tfarrow.scan(path, sample=1).batches(1)),
    "head": lambda path: tfarrow.head(path, sample=1),
    "sql": lambda path: tfarrow.sql(f"SELECT * FROM '{path}'", options={"sample": 1}).to_pylist(),
    "stats": lambda path: tfarrow.stats(path),
    "report": lambda path: tfarrow.report(path),
    "validate": lambda path: tfarrow.validate(path, baseline=path),
    "pbtxt": lambda path: tfarrow._tfarrow.schema_pbtxt([os.fspath(path)], {}),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "name, expected",
    [
        ("data.tfrecord", {"record": 1, "offset": 72}),
        ("data_crc.tfrecord", {"record": 1, "offset": 72}),
        ("length.tfrecord", {"record": 1, "offset": 72}),
        ("length_crc.tfrecord", {"record": 1, "offset": 72}),
        ("length_high.tfrecord", {"record": 1, "offset": 72}),
        ("truncated.tfrecord", {"record": 2, "offset": 144}),
        ("truncated_header.tfrecord", {"record": 2, "offset": 144}),
        ("truncated_crc.tfrecord", {"record": 2, "offset": 144}),
        ("trailing.tfrecord", {"record": 3, "offset": 216}),
        ("bad_deflate.tfrecord.gz", {"record": 2, "offset": 99}),
        ("bad_gzip_crc.tfrecord.gz", {"record": 3, "offset": 111}),
        ("garbage.tfrecord", {}),
    ],
)
def test_corrupt_files(name, expected, reader):
    path = CORRUPT / name
    with pytest.raises(errors.CorruptError) as found:
        READERS[reader](path)
    assert place(found.value) == {"file": str(path), **expected}
    assert isinstance(found.value, OSError) and isinstance(found.value, errors.TfarrowError)
    assert str(found.value).startswith(str(path))


def test_counting_finds_corrupt_lengths():
    with pytest.raises(errors.CorruptError) as found:
        tfarrow.count(CORRUPT / "length.tfrecord")
    assert place(found.value) == {"file": str(CORRUPT / "length.tfrecord"), "record": 1, "offset": 72}


@pytest.mark.parametrize("path", sorted((TESTDATA / "wire_bad").glob("*.tfrecord")), ids=lambda path: path.stem)
def test_records_that_tensorflow_rejects(path, tmp_path):
    good = field(1, field(1, field(1, b"x") + field(2, feature([7]))))
    record_type = "example"
    if path.stem.startswith("sequence"):
        good, record_type = good + field(2, field(1, field(1, b"l") + field(2, field(1, feature([7]))))), "sequence-example"
    bad = write_records(tmp_path / "x.tfrecord", [good, path.read_bytes()[12:-4]])
    with pytest.raises(errors.DataError) as found:
        tfarrow.scan(bad, record_type=record_type).to_numpy()
    assert (found.value.file, found.value.record, found.value.offset) == (str(bad), 1, len(good) + 16)


@pytest.mark.parametrize("reader", READERS)
def test_missing_files(reader):
    with pytest.raises(errors.NotFoundError) as found:
        READERS[reader]("no/such/file.tfrecord")
    assert place(found.value) == {"file": "no/such/file.tfrecord", "errno": 2}
    assert isinstance(found.value, FileNotFoundError)


@pytest.mark.parametrize("reader", READERS)
def test_empty_folders(reader, tmp_path):
    with pytest.raises(errors.NotFoundError, match="nothing to read") as found:
        READERS[reader](f"{tmp_path}/")
    assert found.value.file.rstrip("/") == str(tmp_path)


def test_globs_that_match_nothing(tmp_path):
    with pytest.raises(errors.NotFoundError):
        tfarrow.count(f"{tmp_path}/*.tfrecord")


def test_no_source_is_wrong_usage():
    with pytest.raises(errors.UsageError):
        tfarrow.count([])


@pytest.mark.parametrize("reader", READERS)
def test_files_that_are_no_tfrecord(reader, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("This is text, and not TFRecord.\n" * 10)
    with pytest.raises((errors.DataError, errors.SqlError, errors.NotFoundError)) as found:
        READERS[reader](path)
    if reader != "sql":
        assert type(found.value) is errors.DataError
        assert found.value.file == str(path)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tfarrow.scan(SCALAR, layout="no"),
        lambda: tfarrow.scan(SCALAR, record_type="no"),
        lambda: tfarrow.scan(SCALAR, on_error="no"),
        lambda: tfarrow.scan(SCALAR, on_conflict="no"),
        lambda: tfarrow.scan(SCALAR, partial_tail="no"),
        lambda: tfarrow.scan(SCALAR, verify_crc="no"),
        lambda: tfarrow.scan(SCALAR, bytes_type="no"),
        lambda: tfarrow.scan(SCALAR, metadata_columns=["no"]),
        lambda: tfarrow.scan(SCALAR, sample=-1),
        lambda: tfarrow.scan(SCALAR, sample="no"),
        lambda: tfarrow.scan(SCALAR, threads=0),
        lambda: tfarrow.scan(SCALAR, threads=-1),
        lambda: tfarrow.scan(SCALAR, limits={"no": 1}),
        lambda: tfarrow.scan(SCALAR, limits={"values": "x"}),
        lambda: tfarrow.scan(SCALAR, limits=5),
        lambda: tfarrow.schema(SCALAR, layout="no"),
        lambda: tfarrow.stats(SCALAR, sample="no"),
        lambda: tfarrow.verify(SCALAR, record_type="no"),
        lambda: tfarrow.convert(SCALAR, "no/", to="no"),
        lambda: tfarrow.convert(SCALAR, "no/", compression="no"),
        lambda: tfarrow.convert(SCALAR, "no/", shards=0),
        lambda: tfarrow.convert(SCALAR, "no/", row_group_rows=0),
        lambda: tfarrow.convert(SCALAR, "no/", shuffle=-1),
        lambda: tfarrow.convert(SCALAR, "no/", shuffle=True),
        lambda: tfarrow.convert(SCALAR, "no/", fraction=1.5),
        lambda: tfarrow.convert(SCALAR, "no/", fraction="x"),
        lambda: tfarrow.convert(SCALAR, "no/", split={"a": 2.0}),
        lambda: tfarrow.convert(SCALAR, "no/", split={"..": 0.5}),
        lambda: tfarrow.convert(SCALAR, "no/", split="a=0.5"),
        lambda: tfarrow.convert(SCALAR, "no/", seed=1),
        lambda: tfarrow.convert(SCALAR, "no/", quarantine="no.tfrecord"),
        lambda: tfarrow.sql("SELECT 1", options={"no": 1}).to_pylist(),
        lambda: tfarrow.sql("SELECT 1", memory_limit="x").to_pylist(),
        lambda: tfarrow.validate(SCALAR),
    ],
)
def test_wrong_options(call):
    with pytest.raises(errors.UsageError) as found:
        call()
    assert isinstance(found.value, ValueError)
    assert "panic" not in str(found.value) and "Invalid or Unsupported" not in str(found.value) or "tfarrow.no" in str(found.value)
    assert not os.path.exists("no")


@pytest.mark.parametrize("options", [{"compression": "no"}, {"record_type": "no"}, {"shards": 0}])
def test_wrong_options_of_write(options, tmp_path):
    with pytest.raises(errors.UsageError):
        tfarrow.write(tfarrow.scan(SCALAR), tmp_path / "x.tfrecord", **options)


def test_options_have_their_names_in_texts():
    with pytest.raises(errors.UsageError, match="^sample: "):
        tfarrow.scan(SCALAR, sample=-1)


def test_unknown_arguments_are_type_errors():
    with pytest.raises(TypeError):
        tfarrow.scan(SCALAR, colums=["x"])


@pytest.mark.parametrize(
    "call",
    [
        lambda scan: scan.select("nope").to_numpy(),
        lambda scan: scan.select("nope").columns,
        lambda scan: scan.select("nope").__arrow_c_schema__(),
        lambda scan: scan.where("nope > 1").to_numpy(),
        lambda scan: scan.where("nope > 1").count(),
        lambda scan: tfarrow.sql("SELECT nope FROM t", t=scan).to_pylist(),
        lambda scan: tfarrow.sql(f"SELECT nope FROM '{SCALAR}'").to_pylist(),
    ],
)
def test_unknown_columns(call):
    with pytest.raises(errors.SqlError, match="no column nope; there are .*id, payload, score, title"):
        call(tfarrow.scan(SCALAR))


@pytest.mark.parametrize(
    "query", ["", "selekt", "SELECT", "SELECT * FROM nope", "SELECT 1/0", "SELECT CAST('x' AS INT)", "SELECT 1 +", "EXPLAIN", "SELECT abs('x', 1)"]
)
def test_bad_queries(query):
    with pytest.raises(errors.SqlError) as found:
        tfarrow.sql(query).to_pylist()
    assert isinstance(found.value, ValueError)


@pytest.mark.parametrize("condition", ["", "((", "id", "id > 'x'", "id = = 1", "id > 1; DROP TABLE x", "payload + 1 > 2"])
def test_bad_conditions(condition):
    with pytest.raises(errors.SqlError):
        tfarrow.scan(SCALAR).where(condition).to_numpy()


@pytest.mark.parametrize("limits", [{"record-features": 1}, {"record_features": 1}, {"record-bytes": 10}, {"values": 0}, {"key-bytes": 1}])
def test_limits(limits):
    name = next(iter(limits)).replace("_", "-")
    with pytest.raises(errors.LimitError, match=f'limits={{"{name}": N}}') as found:
        tfarrow.scan(SCALAR, limits=limits).to_numpy()
    assert (found.value.file, found.value.record, found.value.offset) == (str(SCALAR), 0, 0)
    with pytest.raises(errors.LimitError):
        tfarrow.schema(SCALAR, limits=limits)


def test_limit_of_columns():
    with pytest.raises(errors.LimitError):
        tfarrow.scan(SCALAR, limits={"columns": 2}).columns


def test_outputs_that_exist(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1])])
    calls = [
        lambda: tfarrow.write(tfarrow.scan(SCALAR), path),
        lambda: tfarrow.convert(SCALAR, path),
        lambda: tfarrow.repair(SCALAR, path),
    ]
    for call in calls:
        before = path.read_bytes()
        with pytest.raises(errors.ExistsError) as found:
            call()
        assert found.value.file == str(path)
        assert isinstance(found.value, FileExistsError)
        assert path.read_bytes() == before
    assert tfarrow.write(tfarrow.scan(SCALAR), path, overwrite=True) == 20
    assert tfarrow.count(path) == 20


def test_write_words_its_remedies_as_arguments(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1])])
    with pytest.raises(errors.ExistsError, match="overwrite=True replaces it"):
        tfarrow.write(tfarrow.scan(SCALAR), path)


def test_features_of_several_kinds():
    with pytest.raises(errors.DataError, match='feature "x" has two kinds: .*on_conflict="split"'):
        tfarrow.scan(TESTDATA / "mixed_kinds").to_numpy()
    with pytest.warns(errors.TfarrowWarning, match='feature "x" has more than one kind'):
        tfarrow.schema(TESTDATA / "mixed_kinds")


def test_features_of_several_kinds_are_named():
    with pytest.raises(errors.DataError) as found:
        tfarrow.scan(TESTDATA / "mixed_kinds").to_numpy()
    assert found.value.feature == "x"


def test_kinds_that_were_not_sampled(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1])] * 3 + [example(x=[1.5])])
    with pytest.raises(errors.DataError) as found:
        tfarrow.scan(path, sample=3).to_numpy()
    assert place(found.value) == {"file": str(path), "record": 3, "offset": 3 * (len(example(x=[1])) + 16), "feature": "x"}
    with pytest.raises(errors.DataError) as found:
        tfarrow.sql(f"SELECT x FROM '{path}'", options={"sample": 3}).to_pylist()
    assert (found.value.file, found.value.record, found.value.feature) == (str(path), 3, "x")


def test_two_kinds_of_records():
    with pytest.raises(errors.DataError, match="two kinds of records"):
        tfarrow.scan([SCALAR, TESTDATA / "raw.tfrecord"]).to_numpy()


def test_files_that_vanish(tmp_path):
    path = tmp_path / "x.tfrecord"
    shutil.copy(SCALAR, path)
    scan = tfarrow.scan(path)
    assert scan.columns == ["id", "payload", "score", "title"]
    path.unlink()
    for call in (scan.to_numpy, scan.to_pylist, scan.count, lambda: list(scan.batches(1)), lambda: tfarrow.sql("SELECT * FROM s", s=scan).to_pylist()):
        with pytest.raises((errors.NotFoundError, errors.SqlError)) as found:
            call()
        assert str(path) in str(found.value)
    with pytest.raises(errors.NotFoundError) as found:
        scan.to_numpy()
    assert place(found.value) == {"file": str(path), "errno": 2}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can read all files")
def test_files_that_may_not_be_read(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1])])
    path.chmod(0)
    with pytest.raises(errors.IoError) as found:
        tfarrow.scan(path).to_numpy()
    assert found.value.errno == 13


def test_targets_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for call in (
        lambda: tfarrow.write(tfarrow.scan(SCALAR), tmp_path / "file" / "x.tfrecord"),
        lambda: tfarrow.convert(SCALAR, tmp_path / "file" / "x.parquet"),
    ):
        with pytest.raises(OSError) as found:
            call()
        assert isinstance(found.value, errors.TfarrowError)
        assert str(tmp_path / "file") in str(found.value)


def test_errors_of_schema_files(tmp_path):
    with pytest.raises(errors.NotFoundError, match="no.pbtxt"):
        tfarrow.validate(SCALAR, tmp_path / "no.pbtxt")
    (tmp_path / "bad.pbtxt").write_text("{ this is no schema")
    with pytest.raises(errors.UsageError, match="bad.pbtxt"):
        tfarrow.validate(SCALAR, tmp_path / "bad.pbtxt")


def test_errors_of_schema_files_have_a_place(tmp_path):
    with pytest.raises(errors.NotFoundError) as found:
        tfarrow.validate(SCALAR, tmp_path / "no.pbtxt")
    assert place(found.value) == {"file": str(tmp_path / "no.pbtxt"), "errno": 2}
    with pytest.raises(errors.UsageError) as found:
        tfarrow.validate(SCALAR, TESTDATA.parent / "README.md")
    assert found.value.file == str(TESTDATA.parent / "README.md")


# -------------------------------------------------------------------------------------------------------------- warnings


def warned(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    assert all(issubclass(warning.category, errors.TfarrowWarning) for warning in found)
    return result, [str(warning.message) for warning in found]


@pytest.mark.parametrize("name, text", [("data.tfrecord", "skipped 1 record; the first: "), ("length.tfrecord", "skipped 72 bytes in 1 place")])
def test_own_calls_warn_once_of_what_was_skipped(name, text, tmp_path):
    path = CORRUPT / name
    calls = [
        lambda: tfarrow.schema(path, on_error="skip").num_records,
        lambda: tfarrow.stats(path, on_error="skip")["records"],
        lambda: tfarrow.convert(path, tmp_path / "x.parquet", on_error="skip")["records"],
        lambda: tfarrow.repair(path, tmp_path / "x.tfrecord")["records"],
        lambda: len(tfarrow.sql(f"SELECT * FROM '{path}'", options={"on_error": "skip"}).to_pylist()),
    ]
    for call in calls:
        records, texts = warned(call)
        assert records == 2
        assert len(texts) == 1
        assert texts[0].startswith(text) and f"{path}: record 1 (byte 72)" in texts[0]


SCANS = {
    "to_numpy": lambda scan: len(scan.to_numpy()["i"]),
    "to_pylist": lambda scan: len(scan.to_pylist()),
    "batches": lambda scan: sum(batch.num_rows for batch in scan.batches(1)),
    "count": lambda scan: scan.count(),
    "select": lambda scan: len(scan.select("i").to_pylist()),
    "where": lambda scan: len(scan.where("i >= 0").to_pylist()),
}


@pytest.mark.parametrize("name, text", [("data.tfrecord", "skipped 1 record; the first: "), ("length.tfrecord", "skipped 72 bytes in 1 place")])
@pytest.mark.parametrize("reader", SCANS)
def test_scans_warn_once_of_what_was_skipped(reader, name, text):
    scan = tfarrow.scan(CORRUPT / name, on_error="skip")
    for _ in range(2):
        records, texts = warned(lambda: SCANS[reader](scan))
        assert records == 2
        assert len(texts) == 1 and texts[0].startswith(text)


def test_scans_skip_what_is_corrupt():
    for reader in SCANS.values():
        for name in ("data.tfrecord", "length.tfrecord", "bad_deflate.tfrecord.gz"):
            records, _ = warned(lambda: reader(tfarrow.scan(CORRUPT / name, on_error="skip")))
            assert records == 2


def test_pyarrow_warns_once_of_what_was_skipped():
    pa = pytest.importorskip("pyarrow")
    records, texts = warned(lambda: pa.table(tfarrow.scan(CORRUPT / "data.tfrecord", on_error="skip")).num_rows)
    assert records == 2
    assert len(texts) == 1 and texts[0].startswith("skipped 1 record")


def test_scans_warn_of_features_without_a_column(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1])] * 3 + [example(x=[1], late=[1])])
    rows, texts = warned(lambda: tfarrow.scan(path, sample=3).to_pylist())
    assert rows == [{"x": 1}] * 4
    assert len(texts) == 1 and "late" in texts[0]


def test_warnings_can_be_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(errors.TfarrowWarning):
            tfarrow.schema(CORRUPT / "data.tfrecord", on_error="skip")
        with pytest.raises(errors.TfarrowWarning):
            tfarrow.sql(f"SELECT * FROM '{CORRUPT / 'data.tfrecord'}'", options={"on_error": "skip"}).to_pylist()


# ------------------------------------------------------------------------------------------------------- other packages


def test_the_text_survives_in_pyarrow():
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(pa.ArrowInvalid, match=r"record 1 \(byte 72\)") as found:
        pa.table(tfarrow.scan(CORRUPT / "data.tfrecord", sample=1))
    assert str(CORRUPT / "data.tfrecord") in str(found.value)


def test_the_text_survives_in_polars():
    pl = pytest.importorskip("polars")
    with pytest.raises(pl.exceptions.ComputeError, match=r"record 1 \(byte 72\)"):
        pl.DataFrame(tfarrow.scan(CORRUPT / "data.tfrecord", sample=1))
    with pytest.raises(Exception, match=r"record 1 \(byte 72\)"):
        tfarrow.scan(CORRUPT / "data.tfrecord", sample=1).lazy().collect()


def test_the_text_survives_in_duckdb():
    duckdb = pytest.importorskip("duckdb")
    scan = tfarrow.scan(CORRUPT / "data.tfrecord", sample=1)  # noqa: F841, DuckDB finds it by its name
    with pytest.raises(duckdb.Error, match=r"record 1 \(byte 72\)"):
        duckdb.sql("SELECT * FROM scan").fetchall()


@pytest.mark.parametrize("package, call", [("pyarrow", "to_arrow"), ("polars", "to_polars"), ("pandas", "to_pandas")])
def test_own_calls_raise_own_classes(package, call):
    pytest.importorskip("pyarrow")
    pytest.importorskip(package)
    with pytest.raises(errors.CorruptError) as found:
        getattr(tfarrow.scan(CORRUPT / "data.tfrecord", sample=1), call)()
    assert place(found.value) == {"file": str(CORRUPT / "data.tfrecord"), "record": 1, "offset": 72}


def test_errors_of_the_streams_of_others():
    pa = pytest.importorskip("pyarrow")

    def batches():
        yield pa.record_batch({"x": [1]})
        raise RuntimeError("the reason")

    def reader():
        return pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), batches())

    with pytest.raises(RuntimeError, match="the reason"):
        tfarrow.sql("SELECT * FROM t", t=reader()).to_pylist()


def test_errors_of_streams_leave_no_output(tmp_path):
    pa = pytest.importorskip("pyarrow")

    def batches():
        yield pa.record_batch({"x": [1]})
        raise RuntimeError("the reason")

    with pytest.raises(RuntimeError, match="the reason"):
        tfarrow.write(pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), batches()), tmp_path / "x.tfrecord")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(errors.CorruptError):
        tfarrow.convert(CORRUPT / "data.tfrecord", tmp_path / "x.parquet", sample=1)
    assert [path for path in tmp_path.iterdir() if not path.name.startswith(".")] == []


# ------------------------------------------------------------------------------------------------------------------ rest

CLASSES = [getattr(errors, name) for name in errors.__all__ if name != "TfarrowWarning"]


@pytest.mark.parametrize("kind", CLASSES)
def test_exceptions_pickle(kind):
    error = kind("the text", file="f", record=1, offset=2, feature="x", errno=None)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == "the text"
    assert place(again) == {"file": "f", "record": 1, "offset": 2, "feature": "x"}
    assert isinstance(error, errors.TfarrowError)


def test_raised_exceptions_pickle():
    for call in (lambda: tfarrow.count("no/such/file"), lambda: tfarrow.scan(CORRUPT / "data.tfrecord").to_numpy(), lambda: tfarrow.sql("x").to_pylist()):
        with pytest.raises(errors.TfarrowError) as found:
            call()
        again = pickle.loads(pickle.dumps(found.value))
        assert type(again) is type(found.value) and str(again) == str(found.value) and place(again) == place(found.value)


@pytest.mark.parametrize(
    "call, command",
    [
        (lambda: tfarrow.count("no/such/file"), ["count", "no/such/file"]),
        (lambda: tfarrow.count("testdata/corrupt/length.tfrecord"), ["count", "testdata/corrupt/length.tfrecord"]),
        *[
            (lambda name=name: tfarrow.schema(f"testdata/corrupt/{name}"), ["schema", f"testdata/corrupt/{name}"])
            for name in ("data.tfrecord", "truncated.tfrecord", "garbage.tfrecord", "bad_deflate.tfrecord.gz", "trailing.tfrecord")
        ],
        (lambda: tfarrow.stats("testdata/corrupt/data.tfrecord"), ["stats", "testdata/corrupt/data.tfrecord"]),
        (
            lambda: tfarrow.stats("testdata/scalar.tfrecord", limits={"record-features": 1}),
            ["stats", "testdata/scalar.tfrecord", "--limit", "record-features=1"],
        ),
        (lambda: tfarrow.sql("SELECT nope FROM 'testdata/scalar.tfrecord'").to_pylist(), ["sql", "SELECT nope FROM 'testdata/scalar.tfrecord'"]),
        (lambda: tfarrow.sql("selekt").to_pylist(), ["sql", "selekt"]),
        (lambda: tfarrow.sql("SELECT * FROM 'testdata/mixed_kinds/'").to_pylist(), ["sql", "SELECT * FROM 'testdata/mixed_kinds/'"]),
        (lambda: tfarrow.convert("testdata/scalar.tfrecord", "testdata/empty.tfrecord"), ["convert", "testdata/scalar.tfrecord", "testdata/empty.tfrecord"]),
        (lambda: tfarrow.count("README.md"), ["count", "README.md"]),
        (lambda: tfarrow.validate("testdata/scalar.tfrecord", "no.pbtxt"), ["validate", "testdata/scalar.tfrecord", "--schema", "no.pbtxt"]),
    ],
)
def test_texts_are_those_of_the_program(call, command, monkeypatch):
    monkeypatch.chdir(TESTDATA.parent)
    status, _, err = program(*command)
    assert status in (1, 2)
    with pytest.raises(errors.TfarrowError) as found:
        call()
    text = without_remedy(str(found.value))
    assert err.removeprefix("tfarrow: ").removeprefix("error: ").startswith(text), (err, str(found.value))


def test_attributes_of_oserror_are_those_of_the_error():
    with pytest.raises(OSError) as found:
        tfarrow.count("no/such/file")
    assert found.value.errno == 2


class _Failing(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


# Each call of the package that reads a data set.
CALLS = {
    **READERS,
    "arrow stream": lambda url: tfarrow._tfarrow.Source([url], {}).schema([]),
    "count": lambda url: tfarrow.count(url),
    "scan.count": lambda url: tfarrow.scan(url).count(),
    "verify": lambda url: tfarrow.verify(url),
    "diff": lambda url: tfarrow.diff(url, SCALAR),
    "convert": lambda url: tfarrow.convert(url, "no/such/folder/"),
    "repair": lambda url: tfarrow.repair(url, "no/such/folder/"),
    "write": lambda url: tfarrow.write(tfarrow.scan(url), "no/such/folder/x.tfrecord"),
    "table of sql": lambda url: tfarrow.sql("SELECT * FROM t", t=tfarrow.scan(url)).to_pylist(),
}


def test_servers_that_fail(tmp_path, monkeypatch):
    """All calls at once: each repeats its requests for some seconds."""
    monkeypatch.chdir(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Failing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url, found = f"http://127.0.0.1:{server.server_port}/x.tfrecord", {}

    def run(name):
        try:
            CALLS[name](url)
            found[name] = None
        except BaseException as error:
            found[name] = error

    threads = [threading.Thread(target=run, args=[name], daemon=True) for name in CALLS]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        server.shutdown()
        server.server_close()
    assert found.keys() == CALLS.keys()
    assert {name: type(error) for name, error in found.items()} == dict.fromkeys(CALLS, errors.IoError)
    assert all("x.tfrecord" in str(error) and "500" in str(error) for error in found.values()), found
    assert list(tmp_path.iterdir()) == []
