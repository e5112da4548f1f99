"""pandas reads scans, and its operations work on every type of column."""

import math

import numpy as np
import pytest
import tfarrow
from columns import DATA, LAYOUTS
from support import TESTDATA

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture(params=LAYOUTS)
def scan(request, tmp_path_factory):
    return DATA[request.param](tmp_path_factory)


def plain(value):
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value]
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value


def dicts(frame):
    return [{name: plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def test_frames_have_the_rows(scan):
    rows = scan.to_pylist()
    for frame in (scan.to_pandas(), pd.DataFrame.from_arrow(scan), scan.to_pandas()):
        assert list(frame.columns) == scan.columns and len(frame) == len(rows)
        assert dicts(frame) == rows


def test_filter_take_sort_and_nulls(scan):
    frame, rows = scan.to_pandas(), scan.to_pylist()
    assert dicts(frame[frame["key"] > 2]) == [row for row in rows if row["key"] > 2]
    assert dicts(frame.take([5, 0, 3, 3])) == [rows[row] for row in (5, 0, 3, 3)]
    assert dicts(frame.sort_values("key", ascending=False)) == rows[::-1]
    for name in frame.columns:
        assert frame[name].isna().tolist() == [row[name] is None for row in rows]


def test_merge_with_itself(scan):
    rows = scan.to_pylist()
    merged = scan.to_pandas().merge(scan.to_pandas(), on="key")
    for name in scan.columns:
        if name != "key":
            assert [plain(value) for value in merged[name + "_x"]] == [plain(value) for value in merged[name + "_y"]] == [row[name] for row in rows]


def test_frames_can_be_written_to(scan):
    frame = scan.to_pandas()
    frame["key"] += 1
    frame.loc[0, "key"] = 77
    assert frame["key"].tolist()[:3] == [77, 2, 3]


def test_frames_are_tables_of_sql():
    df = pd.DataFrame({"label": [0, 1, 2], "name": ["a", "b", None]})
    found = tfarrow.sql(f"SELECT name, count(*) AS n FROM '{TESTDATA}/shards/' JOIN df USING (label) GROUP BY 1 ORDER BY 1", df=df)
    assert found.to_pandas()["n"].sum() == sum(label < 3 for label in tfarrow.scan(TESTDATA / "shards").to_numpy()["label"])
    assert found.to_pandas().equals(found.to_pandas())
