"""Operations on whole data sets give what the program gives, and writing restores the same records."""

import gzip
import json
import os
import shutil
import warnings

import numpy as np
import pytest
import tfarrow
from support import ROOT, TESTDATA, example, program, program_json, write_records
from tfarrow import errors

pytestmark = pytest.mark.usefixtures("in_root")

SETS = [
    "testdata/scalar.tfrecord",
    "testdata/ragged.tfrecord",
    "testdata/states.tfrecord",
    "testdata/sequence.tfrecord",
    "testdata/numbers.tfrecord",
    "testdata/tensors.tfrecord",
    "testdata/text.tfrecord",
    "testdata/names.tfrecord",
    "testdata/raw.tfrecord",
    "testdata/empty.tfrecord",
    "testdata/shards",
    "testdata/compressed/gzip_members.tfrecord.gz",
    "testdata/mixed_kinds",
]


@pytest.fixture
def in_root(monkeypatch):
    """Names of files are the same in the program and here."""
    monkeypatch.chdir(ROOT)


def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TfarrowWarning)
        return call()


def statuses(source):
    return 3 if source == "testdata/mixed_kinds" else 0


# --------------------------------------------------------------------------------------------------------------- reports


@pytest.mark.parametrize("layout", ["auto", "list"])
@pytest.mark.parametrize("source", SETS)
def test_schema(source, layout):
    found = quietly(lambda: tfarrow.schema(source, layout=layout))
    status, text, _ = program("schema", source, "--layout", layout)
    assert found.text().strip() == text.strip()
    assert status == statuses(source)
    assert found.to_dict() == program_json("schema", source, "--layout", layout, status=status)
    assert found.num_records == tfarrow.count(source)
    assert str(found) == repr(found)
    assert found.features == found.to_dict()["features"]


@pytest.mark.parametrize("source", ["testdata/scalar.tfrecord", "testdata/shards", "testdata/sequence.tfrecord"])
def test_parse_spec_and_pbtxt(source):
    found = tfarrow.schema(source)
    assert found.to_parse_spec().strip() == program("schema", source, "--format", "python")[1].strip()
    assert found.to_pbtxt().strip() == program("schema", source, "--format", "pbtxt")[1].strip()


@pytest.mark.parametrize("source", SETS)
def test_stats(source):
    found = quietly(lambda: tfarrow.stats(source))
    status, text, _ = program("stats", source)
    assert found.text().strip() == text.strip()
    assert found.to_dict() == program_json("stats", source, status=status)
    assert found["records"] == tfarrow.count(source)
    assert isinstance(found.to_pb(), bytes) and len(found) == len(list(found))


def test_stats_by_a_feature():
    found = tfarrow.stats("testdata/shards", by="label")
    assert found.to_dict() == program_json("stats", "testdata/shards", "--by", "label")
    assert found.text().strip() == program("stats", "testdata/shards", "--by", "label")[1].strip()


def test_statistics_are_those_of_tensorflow_data_validation():
    assert tfarrow.schema("testdata/shards").to_pbtxt().split() == (TESTDATA / "tfdv" / "train.schema.pbtxt").read_text().split()


@pytest.mark.parametrize("source", SETS)
def test_verify_of_intact_files(source):
    found = tfarrow.verify(source)
    assert found.ok
    expected = program_json("verify", source)
    assert found.to_dict().items() <= expected.items()


CORRUPT = sorted(str(path.relative_to(ROOT)) for path in (TESTDATA / "corrupt").glob("*.tfrecord*"))


@pytest.mark.parametrize("path", CORRUPT)
def test_verify_of_corrupt_files(path):
    found = tfarrow.verify(path)
    expected = program_json("verify", path, status=0 if found.ok else 3)
    assert found.to_dict().items() <= expected.items()
    assert found["faults"] == expected["faults"]
    assert found.ok == (path == "testdata/corrupt/good.tfrecord")
    lines = program("verify", path)[1].splitlines()
    assert found.text().splitlines()[: len(lines)] == lines


def test_verify_has_all_of_the_programs_json():
    assert tfarrow.verify("testdata/shards").to_dict() == program_json("verify", "testdata/shards")


def test_maximum_number_of_faults(tmp_path):
    path = tmp_path / "x.tfrecord"
    data = bytearray(b"".join(write_records(tmp_path / "y", [example(x=[i])]).read_bytes() for i in range(20)))
    size = len(data) // 20
    for i in range(0, 20, 2):
        data[i * size + 14] ^= 1
    path.write_bytes(data)
    assert len(tfarrow.verify(path)["faults"]) == 10
    few = tfarrow.verify(path, max_faults=3)
    assert len(few["faults"]) == 3 and sum(few["counts"].values()) == 10 and not few.ok


def test_validate(tmp_path):
    assert tfarrow.validate("testdata/shards", "testdata/tfdv/train.schema.pbtxt").ok
    found = tfarrow.validate("testdata/scalar.tfrecord", baseline="testdata/shards")
    expected = program_json("validate", "testdata/scalar.tfrecord", "--baseline", "testdata/shards", status=3)
    assert not found.ok and found.to_dict() == expected
    assert found.anomalies == expected["anomalies"]
    assert found.text().strip() == program("validate", "testdata/scalar.tfrecord", "--baseline", "testdata/shards")[1].strip()
    (tmp_path / "updated.pbtxt").write_text(found.updated_pbtxt())
    assert tfarrow.validate("testdata/scalar.tfrecord", tmp_path / "updated.pbtxt").ok
    drift = tfarrow.validate("testdata/shards", baseline=["testdata/shards/train-00000-of-00004.tfrecord"], max_drift=0.001)
    assert not drift.ok


@pytest.mark.parametrize(
    "left, right",
    [
        ("testdata/scalar.tfrecord", "testdata/scalar.tfrecord"),
        ("testdata/scalar.tfrecord", "testdata/text.tfrecord"),
        ("testdata/shards", "testdata/shards/train-00000-of-00004.tfrecord"),
    ],
)
def test_diff(left, right):
    found = tfarrow.diff(left, right)
    expected = program_json("diff", left, right, status=0 if found.ok else 3)
    assert found.to_dict() == expected and found.ok == expected["equal"] == (left == right)
    assert found.text().strip() == program("diff", left, right)[1].strip()
    assert len(tfarrow.diff(left, right, records=1).to_dict()["first"]) <= 1


def test_diff_by_key(tmp_path):
    pytest.importorskip("pyarrow")
    left, right = tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"
    tfarrow.write({"id": np.array([1, 2, 3]), "x": np.array([1, 2, 3], "float32")}, left)
    tfarrow.write({"id": np.array([3, 1, 4]), "x": np.array([3, 1.5, 4], "float32")}, right)
    assert not tfarrow.diff(left, right).ok
    found = tfarrow.diff(left, right, on=["id"], only_a=tmp_path / "only_a.tfrecord", only_b=tmp_path / "only_b.tfrecord")
    assert found["pairs"] == {"equal": 1, "different": 1} and found["alone"] == [1, 1]
    assert found["keys"] == {"features": ["id"], "missing": [0, 0], "repeated": [0, 0], "passes": 1}
    assert found["first"][0]["key"] == [[1]] and "record 0: id = 1" in found.text()
    assert tfarrow.scan(tmp_path / "only_a.tfrecord").to_pylist() == [{"id": 2, "x": 2.0}]
    assert tfarrow.scan(tmp_path / "only_b.tfrecord").to_pylist() == [{"id": 4, "x": 4.0}]
    expected = program_json("diff", left, right, "--on", "id", status=3)
    assert tfarrow.diff(left, right, on="id").to_dict() == expected
    for rules in [{"tolerance": 0.5}, {"relative_tolerance": 0.4}, {"exclude": ["x*"]}]:
        assert tfarrow.diff(left, right, on=["id"], memory_limit=1000, **rules)["pairs"]["equal"] == 2
    for wrong in [{"on": 1}, {"tolerance": -1}, {"memory_limit": "x"}, {"exclude": ["["]}, {"on": ["none"]}]:
        with pytest.raises(tfarrow.errors.UsageError):
            tfarrow.diff(left, right, **wrong)
    with pytest.raises(tfarrow.errors.ExistsError):
        tfarrow.diff(left, right, only_a=tmp_path / "only_a.tfrecord")
    assert tfarrow.diff(left, left, only_a=tmp_path / "only_a.tfrecord", overwrite=True).ok


def test_report(tmp_path):
    page = tfarrow.report("testdata/shards", tmp_path / "x.html", title="A <title>")
    html = (tmp_path / "x.html").read_text()
    assert page.html == html and html.startswith("<!doctype html>") and "A &lt;title&gt;" in html
    assert os.listdir(tmp_path) == ["x.html"]
    status, _, err = program("report", "testdata/shards", "-o", tmp_path / "y.html", "--title", "A <title>")
    assert status == 0, err
    assert (tmp_path / "y.html").read_text() == html
    assert tfarrow.report("testdata/shards", baseline="testdata/scalar.tfrecord", examples=0, sample=10).html
    with pytest.raises(OSError):
        page.save(tmp_path / "no" / "x.html")


def test_jobs_take_all_sources():
    shards = sorted((TESTDATA / "shards").glob("*.tfrecord"))
    assert tfarrow.count(shards) == tfarrow.count("testdata/shards/train@4.tfrecord") == 200
    assert tfarrow.stats(shards)["records"] == tfarrow.schema(shards).num_records == 200
    assert tfarrow.verify(shards)["files"] == 4


# ------------------------------------------------------------------------------------------------------- convert, repair


def folder_bytes(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")}


@pytest.mark.parametrize("to", ["parquet", "arrow"])
@pytest.mark.parametrize("source", [source for source in SETS if "mixed" not in source])
def test_convert_gives_the_programs_files(source, to, tmp_path):
    found = quietly(lambda: tfarrow.convert(source, tmp_path / "ours", to=to))
    assert program("convert", source, tmp_path / "theirs", "--to", to)[0] == 0
    if source != "testdata/raw.tfrecord":
        assert folder_bytes(tmp_path / "ours") == folder_bytes(tmp_path / "theirs")
    assert found["bytes_out"] == sum(map(len, folder_bytes(tmp_path / "ours").values()))
    assert found["records"] == tfarrow.count(source) == tfarrow.count(tmp_path / "ours")
    assert quietly(lambda: tfarrow.diff(source, tmp_path / "ours")).ok
    quietly(lambda: tfarrow.convert(tmp_path / "ours", tmp_path / "back", to="tfrecord"))
    assert quietly(lambda: tfarrow.diff(source, tmp_path / "back")).ok


def test_exact_conversions_restore_the_bytes(tmp_path):
    tfarrow.convert("testdata/shards", tmp_path / "parquet", exact=True)
    tfarrow.convert(tmp_path / "parquet", tmp_path / "back", to="tfrecord")
    expected = {path.name: path.read_bytes() for path in (TESTDATA / "shards").glob("*.tfrecord")}
    assert folder_bytes(tmp_path / "back") == expected


def test_convert_options(tmp_path):
    found = tfarrow.convert("testdata/shards", tmp_path / "a", shards=3, compression="zstd", row_group_rows=10, threads=1)
    assert found["files"] == 3 and found.ok and "200 records" in str(found)
    tfarrow.convert("testdata/shards", tmp_path / "b", shard_size=5000)
    assert len(folder_bytes(tmp_path / "b")) > 3
    tfarrow.convert("testdata/shards", tmp_path / "c", layout="list", resume=True)
    tfarrow.convert("testdata/shards", tmp_path / "c", layout="list", resume=True)
    with pytest.raises(errors.ExistsError):
        tfarrow.convert("testdata/shards", tmp_path / "c")
    found = tfarrow.convert("testdata/shards", tmp_path / "all.parquet", columns=["label", "c*"], compression="zstd:9")
    assert found["files"] == 1
    rows = tfarrow.sql(f"SELECT * FROM '{tmp_path}/all.parquet'").to_numpy()
    assert list(rows) == ["label", "city"] and len(rows["label"]) == 200
    tfarrow.convert("testdata/shards", tmp_path / "all.tfrecord", exclude="image/*")
    assert "image/height" not in tfarrow.scan(tmp_path / "all.tfrecord").to_numpy()
    for wrong in [{"columns": ["no"]}, {"columns": 1}, {"exclude": ["["]}, {"compression": "zstd:99"}, {"compression": "none:1"}]:
        with pytest.raises(tfarrow.errors.UsageError):
            tfarrow.convert("testdata/shards", tmp_path / "wrong", **wrong)
    tfarrow.convert("testdata/mixed_kinds", tmp_path / "d", on_conflict="split")
    assert tfarrow.diff("testdata/mixed_kinds", tmp_path / "d").ok
    tfarrow.convert("testdata/shards", tmp_path / "e", to="tfrecord", compression="gzip", shards=2)
    assert all(data[:2] == b"\x1f\x8b" for data in folder_bytes(tmp_path / "e").values())


def test_convert_dry_run_bloom_filter_and_page_index(tmp_path):
    plan = tfarrow.convert("testdata/shards", tmp_path / "out", dry_run=True)
    assert not (tmp_path / "out").exists()
    assert plan["files"] == 4 and plan["dry_run"] and "nothing was written" in str(plan)
    done = tfarrow.convert("testdata/shards", tmp_path / "out")
    outputs = {output for job in plan["jobs"] for output in job["outputs"]}
    assert outputs == {str(path) for path in (tmp_path / "out").iterdir()}
    assert all(plan[name] == done[name] for name in ["dest", "shards", "files", "bytes_in"])
    sizes = {}
    for name, options in {"plain": {}, "filter": {"bloom_filter": ["label", "c*"]}, "no_index": {"page_index": False}}.items():
        sizes[name] = tfarrow.convert("testdata/shards", tmp_path / f"{name}.parquet", **options)["bytes_out"]
        assert tfarrow.verify(tmp_path / f"{name}.parquet").ok
    assert sizes["no_index"] < sizes["plain"] < sizes["filter"]
    for wrong in [{"bloom_filter": ["lable"]}, {"bloom_filter": 1}, {"bloom_filter": "label", "to": "arrow"}, {"resume": True}]:
        with pytest.raises(errors.UsageError):
            tfarrow.convert("testdata/shards", tmp_path / "wrong", dry_run=True, **wrong)
    assert not (tmp_path / "wrong").exists()


def test_convert_timestamps_of_messages(tmp_path):
    shape = {"proto": "testdata/message/shapes.desc", "message": "Shape", "timestamp_unit": "us"}
    with pytest.raises(errors.DataError, match="field time: expected a time of whole microseconds"):
        tfarrow.convert("testdata/message/shapes.tfrecord", tmp_path / "a.parquet", **shape)
    with pytest.warns(errors.TfarrowWarning, match="skipped 2 records"):
        tfarrow.convert("testdata/message/shapes.tfrecord", tmp_path / "a.parquet", on_error="skip", **shape)
    found = tfarrow.sql(f"SELECT arrow_typeof(time) AS type FROM '{tmp_path}/a.parquet'").to_numpy()
    assert list(found["type"]) == ['Timestamp(\u00b5s, "UTC")']
    for options in [{}, {"timestamp_unit": "ms"}]:
        with pytest.raises(errors.UsageError):
            tfarrow.convert("testdata/shards", tmp_path / "b", **{"timestamp_unit": "us", **options})


def test_repair(tmp_path):
    with pytest.warns(errors.TfarrowWarning, match="skipped 1 record"):
        found = tfarrow.repair("testdata/corrupt/data.tfrecord", tmp_path / "a.tfrecord", quarantine=tmp_path / "lost.tfrecord")
    assert found["records"] == 2 and found["skipped"]["records"] == 1
    assert tfarrow.verify(tmp_path / "a.tfrecord").ok
    assert tfarrow.head(tmp_path / "lost.tfrecord")[0]["record"] == 1
    program("repair", "testdata/corrupt/data.tfrecord", tmp_path / "b.tfrecord")
    assert (tmp_path / "a.tfrecord").read_bytes() == (tmp_path / "b.tfrecord").read_bytes()


def test_lossy_conversions_warn(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [0.1]}), tmp_path / "x.parquet")
    with pytest.raises(errors.DataError, match="lossy=True"):
        tfarrow.convert(tmp_path / "x.parquet", tmp_path / "x.tfrecord")
    with pytest.warns(errors.TfarrowWarning):
        found = tfarrow.convert(tmp_path / "x.parquet", tmp_path / "x.tfrecord", lossy=True)
    assert sum(found["lossy_changes"].values()) == 1


def test_text_files(tmp_path):
    (tmp_path / "x.csv").write_text("id,price\n1,0.1\n2,0.5\n")
    with pytest.warns(errors.TfarrowWarning, match="float32"):
        found = tfarrow.convert(tmp_path / "x.csv", tmp_path / "x.tfrecord")
    assert list(found["rounded"].values()) == [1] and found["records"] == 2 and not found["lossy_changes"]
    assert tfarrow.diff(tmp_path / "x.csv", tmp_path / "x.tfrecord").ok
    assert tfarrow.count(tmp_path / "x.csv") == 2
    (tmp_path / "x.jsonl").write_text('{"id": 1}\n{"id": [1]}\n')
    with pytest.raises(errors.TfarrowError, match="line 2 .row 1.: field .id.: found a list"):
        tfarrow.convert(tmp_path / "x.jsonl", tmp_path / "y.tfrecord")
    assert not (tmp_path / "y.tfrecord").exists()


# -------------------------------------------------------------------------------------------------------------- progress

PROGRESS = {
    "schema": lambda tmp_path, **options: tfarrow.schema("testdata/shards", **options),
    "count": lambda tmp_path, **options: tfarrow.count("testdata/shards", **options),
    "stats": lambda tmp_path, **options: tfarrow.stats("testdata/shards", **options),
    "verify": lambda tmp_path, **options: tfarrow.verify("testdata/shards", **options),
    "validate": lambda tmp_path, **options: tfarrow.validate("testdata/shards", baseline="testdata/shards", **options),
    "report": lambda tmp_path, **options: tfarrow.report("testdata/shards", **options),
    "convert": lambda tmp_path, **options: tfarrow.convert("testdata/shards", tmp_path / "out", **options),
    "repair": lambda tmp_path, **options: tfarrow.repair("testdata/shards", tmp_path / "repaired", **options),
    "diff": lambda tmp_path, **options: tfarrow.diff("testdata/shards", "testdata/shards", **options),
}


@pytest.mark.parametrize("job", PROGRESS)
def test_progress(job, tmp_path):
    calls = []
    PROGRESS[job](tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert calls
    done, total = calls[-1]
    assert 0 < done <= total
    assert calls == sorted(calls)


@pytest.mark.parametrize("job", PROGRESS)
def test_progress_can_stop(job, tmp_path):
    class Stop(Exception):
        pass

    def stop(done, total):
        raise Stop

    with pytest.raises(Stop):
        PROGRESS[job](tmp_path, progress=stop)


@pytest.mark.parametrize("job", PROGRESS)
def test_progress_bars(job, tmp_path, capsys):
    pytest.importorskip("tqdm")
    PROGRESS[job](tmp_path, progress=True)
    assert job in capsys.readouterr().err


def test_progress_that_stops_a_long_operation_stops_it_soon(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(x=[1.5] * 1000)] * 4000)
    calls = []

    def stop(done, total):
        calls.append(done)
        raise RuntimeError("stop")

    links = []
    for number in range(200):
        link = tmp_path / f"{number}.tfrecord"
        link.symlink_to(path)
        links.append(link)
    with pytest.raises(RuntimeError, match="stop"):
        tfarrow.stats(links, progress=stop)
    assert len(calls) == 1
    assert calls[0] < 200 * path.stat().st_size


# ------------------------------------------------------------------------------------------------------------------ HTML


HOSTILE = "<script>alert('x')</script>&\""


def test_html_is_escaped(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(**{HOSTILE: [HOSTILE + "é"], "n": [1], "l": [1, 2]})] * 3)
    for value in (
        tfarrow.schema(path), tfarrow.stats(path), tfarrow.verify(path), tfarrow.scan(path), tfarrow.report(path),
        tfarrow.sql(f"SELECT * FROM '{path}'"), tfarrow.validate(path, baseline=path), tfarrow.diff(path, path),
    ):  # fmt: skip
        html = value._repr_html_()
        assert "<script>alert" not in html
        assert html.startswith(("<table>", "<pre>", "<iframe")) and html.count("<table>") == html.count("</table>")
    html = tfarrow.report(path).html
    assert "<script>alert('x')" not in html


@pytest.mark.parametrize("source", SETS)
def test_notebooks_show_all_data_sets(source):
    assert "<table>" in tfarrow.scan(source, on_conflict="split")._repr_html_()
    assert quietly(lambda: tfarrow.schema(source))._repr_html_().startswith(("<table>", "<pre>"))
    assert quietly(lambda: tfarrow.stats(source))._repr_html_().startswith("<table>")


def test_names_with_bars_are_shown_whole(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(**{"a | b": [1], "c": [2]})])
    html = tfarrow.schema(path)._repr_html_()
    rows = html.split("<tbody>")[1].split("</tr>")[:-1]
    assert [row.count("<td>") for row in rows] == [html.split("<tbody>")[0].count("<th>")] * 2
    assert "a | b" in html


def test_rows_are_shown_up_to_ten():
    html = tfarrow.scan("testdata/scalar.tfrecord")._repr_html_()
    assert html.count("<tr>") == 11 and "the first 10 rows" in html
    assert "3 rows" in tfarrow.scan("testdata/scalar.tfrecord").limit(3)._repr_html_()
    assert "0 rows" in tfarrow.scan("testdata/scalar.tfrecord").limit(0)._repr_html_()


# --------------------------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("layout", ["auto", "list"])
@pytest.mark.parametrize("source", [source for source in SETS if "mixed" not in source and "empty" not in source])
def test_write_of_a_scan_restores_the_records(source, layout, tmp_path):
    scan = tfarrow.scan(source, layout=layout, sample="all")
    assert tfarrow.write(scan, tmp_path / "x.tfrecord") == tfarrow.count(source)
    assert tfarrow.verify(tmp_path / "x.tfrecord").ok
    again = tfarrow.scan(tmp_path / "x.tfrecord", layout=layout, sample="all").to_pylist()
    rows = scan.to_pylist()
    # A column without a value in any record leaves no trace in a file.
    assert len(again) == len(rows)
    for ours, theirs in zip(again, rows):
        for name, value in theirs.items():
            assert repr(ours.get(name)) == repr(value), name


def test_write_shards_and_compression(tmp_path):
    scan = tfarrow.scan("testdata/shards")
    assert tfarrow.write(scan, tmp_path / "train.tfrecord", shards=8, compression="gzip") == 200
    names = sorted(os.listdir(tmp_path))
    assert names == [f"train-{number:05d}-of-00008.tfrecord" for number in range(8)] or names == [
        f"train-{number:05d}-of-00008.tfrecord.gz" for number in range(8)
    ]
    for name in names:
        assert gzip.decompress((tmp_path / name).read_bytes())
    rows = tfarrow.scan(tmp_path).to_pylist()
    assert sorted(map(repr, rows)) == sorted(map(repr, scan.to_pylist()))
    assert tfarrow.write(scan, tmp_path / "y.tfrecord.gz") == 200
    assert (tmp_path / "y.tfrecord.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert tfarrow.write(scan, tmp_path / "z.tfrecord", compression="zlib") == 200
    assert tfarrow.count(tmp_path / "z.tfrecord") == 200


def test_write_of_results(tmp_path):
    query = "SELECT city, count(*) AS n, array_agg(label) AS labels FROM 'testdata/shards/' GROUP BY city ORDER BY city"
    assert tfarrow.write(tfarrow.sql(query), tmp_path / "x.tfrecord") == 5
    assert tfarrow.scan(tmp_path / "x.tfrecord").select("city", "n").to_pylist() == [
        {"city": row["city"], "n": row["n"]} for row in tfarrow.sql(query).to_pylist()
    ]


def test_write_of_raw_records(tmp_path):
    scan = tfarrow.scan("testdata/raw.tfrecord")
    assert tfarrow.write(scan, tmp_path / "x.tfrecord", record_type="raw") == 5
    assert (tmp_path / "x.tfrecord").read_bytes() == (TESTDATA / "raw.tfrecord").read_bytes()
    examples = tfarrow.scan("testdata/scalar.tfrecord", record_type="raw")
    tfarrow.write(examples, tmp_path / "y.tfrecord", record_type="raw")
    assert (tmp_path / "y.tfrecord").read_bytes() == (TESTDATA / "scalar.tfrecord").read_bytes()


def test_write_of_columns_of_arrays(tmp_path):
    pytest.importorskip("pyarrow")
    columns = {
        "i": np.arange(4), "f": np.arange(4, dtype="float32") / 2, "m": np.arange(12, dtype="float32").reshape(4, 3),
        "s": ["a", "b", "é", ""], "b": [b"\xff", b"", b"x", b"y"], "r": [[1], [], [2, 3], None], "flag": [True, False, True, None],
        "none": np.zeros((4, 0), dtype="int64"),
    }  # fmt: skip
    assert tfarrow.write(columns, tmp_path / "x.tfrecord") == 4
    rows = tfarrow.scan(tmp_path / "x.tfrecord").to_pylist()
    assert [row["i"] for row in rows] == [0, 1, 2, 3]
    assert [row["m"] for row in rows] == columns["m"].tolist()
    assert [row["s"] for row in rows] == columns["s"]
    assert [row["b"] for row in rows] == columns["b"]
    assert [row["r"] for row in rows] == columns["r"]
    assert [row["flag"] for row in rows] == [1, 0, 1, None]
    # What batches() gives can be written again.
    batches = [batch.to_numpy() for batch in tfarrow.scan(tmp_path / "x.tfrecord", columns=["i", "f", "m"]).batches()]
    assert tfarrow.write(batches[0], tmp_path / "y.tfrecord") == 4
    assert tfarrow.diff(tmp_path / "y.tfrecord", tmp_path / "y.tfrecord").ok


@pytest.mark.parametrize("kind", ["batches", "generator", "tfarrow", "table", "reader", "batch"])
def test_write_of_batches(kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": range(10), "y": [[i] * (i % 3) for i in range(10)]})
    data = {
        "batches": lambda: table.to_batches(max_chunksize=3),
        "generator": lambda: (batch for batch in table.to_batches(max_chunksize=3)),
        "table": lambda: table,
        "reader": lambda: table.to_reader(3),
        "batch": lambda: table.to_batches()[0],
        "tfarrow": lambda: tfarrow.sql("SELECT * FROM t", t=table).batches(3),
    }[kind]()
    assert tfarrow.write(data, tmp_path / "x.tfrecord") == 10
    assert tfarrow.scan(tmp_path / "x.tfrecord").to_pylist() == table.to_pylist()


def test_write_of_frames(tmp_path):
    pytest.importorskip("pyarrow")
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    data = {"x": [1, 2, None], "s": ["a", None, "c"], "l": [[1.0, 2.0], [], None]}
    for number, frame in enumerate([pl.DataFrame(data), pl.DataFrame(data).with_columns(pl.col("l").cast(pl.List(pl.Float32)))]):
        assert tfarrow.write(frame, tmp_path / f"{number}.tfrecord") == 3
        assert tfarrow.scan(tmp_path / f"{number}.tfrecord").to_pylist() == [{key: data[key][row] for key in ("l", "s", "x")} for row in range(3)]
    frame = pd.DataFrame({"x": [1, 2], "s": ["a", "b"]}, index=[5, 6])
    assert tfarrow.write(frame, tmp_path / "p.tfrecord") == 2
    assert tfarrow.scan(tmp_path / "p.tfrecord", columns=["s", "x"]).to_pylist() == [{"s": "a", "x": 1}, {"s": "b", "x": 2}]


def test_write_of_feature_lists(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"steps": pa.array([[[1, 2], [3]], [], None, [[]]], pa.list_(pa.list_(pa.int64()))), "id": [1, 2, 3, 4]})
    with pytest.raises(errors.TfarrowError):
        tfarrow.write(table, tmp_path / "x.tfrecord")
    assert tfarrow.write(table, tmp_path / "x.tfrecord", record_type="sequence-example") == 4
    rows = tfarrow.scan(tmp_path / "x.tfrecord").to_pylist()
    assert [row["steps"] for row in rows] == [[[1, 2], [3]], [], None, [[]]]


def test_write_of_what_cannot_be_written(tmp_path):
    pa = pytest.importorskip("pyarrow")
    target = tmp_path / "x.tfrecord"
    with pytest.raises(errors.TfarrowError):
        tfarrow.write(pa.table({"x": [{"a": 1}]}), target)
    with pytest.raises(errors.TfarrowError):
        tfarrow.write(pa.table({"x": [0.1]}), target, strict=True)
    with pytest.raises(ValueError):
        tfarrow.write([], target)
    for data in (5, None, "text.tfrecord", b"x"):
        with pytest.raises((TypeError, ValueError)):
            tfarrow.write(data, target)
    assert os.listdir(tmp_path) == []
    with pytest.warns(errors.TfarrowWarning, match="rounded to float32"):
        assert tfarrow.write(pa.table({"x": [0.1]}), target, lossy=True) == 1


def test_write_of_no_rows(tmp_path):
    assert tfarrow.write(tfarrow.scan("testdata/shards").limit(0), tmp_path / "x.tfrecord") == 0
    assert tfarrow.count(tmp_path / "x.tfrecord") == 0


def test_names_with_quotes(tmp_path):
    folder = tmp_path / "it's \"a\" folder"
    folder.mkdir()
    assert tfarrow.write(tfarrow.scan("testdata/scalar.tfrecord"), folder / "x'y.tfrecord") == 20
    assert tfarrow.scan(folder).count() == 20
    assert tfarrow.write(tfarrow.scan("testdata/names.tfrecord"), folder / "names.tfrecord") == 3
    assert tfarrow.scan(folder / "names.tfrecord").columns == tfarrow.scan("testdata/names.tfrecord").columns


def read_parts(work, source, count, **options):
    return quietly(lambda: [tfarrow.read_part(work, source, (index, count), **options) for index in range(count)])


@pytest.mark.parametrize("source", SETS)
def test_merged_parts_are_the_whole(source):
    for count in [1, 3]:
        merged = quietly(lambda: tfarrow.merge(read_parts("stats", source, count)))
        whole = quietly(lambda: tfarrow.stats(source))
        assert merged.to_dict() == whole.to_dict() and merged.text() == whole.text() and merged.to_pb() == whole.to_pb()
        merged = quietly(lambda: tfarrow.merge(read_parts("schema", source, count, layout="list")))
        whole = quietly(lambda: tfarrow.schema(source, layout="list"))
        assert merged.to_dict() == whole.to_dict() and merged.text() == whole.text()
        with pytest.raises(errors.UsageError, match=r"call tfarrow.schema\(source\).to_pbtxt\(\)"):
            merged.to_pbtxt()


def test_all_records_of_parts_are_read(tmp_path):
    for name, records in [("a", 3000), ("b", 10)]:
        write_records(tmp_path / f"{name}.tfrecord", [example(x=[i]) for i in range(records)])
    merged = tfarrow.merge(read_parts("stats", tmp_path, 2))
    assert merged["records"] == 3010 and merged.to_dict() == tfarrow.stats(tmp_path).to_dict()
    assert tfarrow.merge(read_parts("schema", tmp_path, 2)).to_dict() == tfarrow.schema(tmp_path).to_dict()


def test_merged_slices_and_parts_of_the_program(tmp_path):
    parts = read_parts("stats", "testdata/shards", 5, by="label")
    assert parts == read_parts("stats", "testdata/shards", 5, by="label", threads=1)
    whole = program_json("stats", "testdata/shards", "--by", "label")
    assert tfarrow.merge(reversed(parts)).to_dict() == whole
    # The program merges the same parts, and makes them.
    for index, part in enumerate(parts[:3]):
        (tmp_path / str(index)).write_bytes(part)
    for index in [3, 4]:
        file = str(tmp_path / str(index))
        assert program("stats", "testdata/shards", "--by", "label", "--part", f"{index}/5", "--partial", file)[0] == 0
    assert program_json("merge", str(tmp_path)) == whole
    assert tfarrow.merge([file.read_bytes() for file in tmp_path.iterdir()]).to_dict() == whole


def test_other_work_has_no_parts():
    with pytest.raises(errors.UsageError, match='work: expected schema or stats, found "validate"'):
        tfarrow.read_part("validate", "testdata/shards", (0, 3))


def test_errors_of_parts():
    parts = read_parts("schema", "testdata/shards", 3)
    with pytest.raises(errors.TfarrowError, match="1 of 3 parts is missing: 1/3"):
        tfarrow.merge([parts[0], parts[2]])
    with pytest.raises(errors.TfarrowError, match="different commands"):
        tfarrow.merge([parts[0], *read_parts("stats", "testdata/shards", 3)])
    with pytest.raises(errors.TfarrowError, match="item 0 of the parts: not a partial result: it is truncated or corrupt"):
        tfarrow.merge([parts[0][:-1]])
    with pytest.raises(errors.UsageError, match="part: expected"):
        tfarrow.read_part("stats", "testdata/shards", (3, 3))
    with pytest.raises(errors.UsageError, match="a schema has no slices"):
        tfarrow.read_part("schema", "testdata/shards", (0, 3), by="label")
    with pytest.raises(errors.CorruptError) as raised:
        tfarrow.read_part("stats", "testdata/corrupt/data_crc.tfrecord", (0, 1))
    with pytest.raises(errors.CorruptError) as whole:
        tfarrow.stats("testdata/corrupt/data_crc.tfrecord")
    assert (str(raised.value), raised.value.record) == (str(whole.value), whole.value.record)


def test_several_splits_of_tfds_are_named(tmp_path):
    folder, out = tmp_path / "mnist", tmp_path / "out.parquet"
    folder.mkdir()
    for name in ["train", "test"]:
        shutil.copy(f"{TESTDATA}/tfds/mnist-train.tfrecord-00000-of-00002", folder / f"mnist-{name}.tfrecord-00000-of-00001")
    splits = [{"name": name, "shardLengths": [5]} for name in ["train", "test"]]
    (folder / "dataset_info.json").write_text(json.dumps({"name": "mnist", "fileFormat": "tfrecord", "splits": splits}))
    train = folder / "mnist-train.tfrecord-*"
    for call in [
        tfarrow.count,
        tfarrow.verify,
        tfarrow.schema,
        tfarrow.stats,
        lambda source: tfarrow.diff(train, source),
        lambda source: tfarrow.convert(source, out, overwrite=True),
        lambda source: tfarrow.scan(source).to_numpy(),
        lambda source: tfarrow.sql(f"SELECT count(*) FROM '{source}'").to_numpy(),
    ]:
        with pytest.warns(errors.TfarrowWarning) as found:
            call(folder)
        (warning,) = found
        assert str(warning.message).startswith("2 splits of TensorFlow Datasets: train (5 records, ")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(train)
