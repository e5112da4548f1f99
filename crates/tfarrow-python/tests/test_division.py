"""The division of records among ranks and workers, without torch."""

import gzip
import itertools
import pickle

import pytest
import tfarrow
from support import TESTDATA, example, frame, write_records
from tfarrow import errors
from tfarrow._division import Division
from tfarrow._tfarrow import share

CASES = list(itertools.product([1, 2, 3], [1, 2]))


def read(division, ranks, workers, **options):
    """The batches of each worker of each rank: lists of the values of column i."""
    found = {}
    for rank in range(ranks):
        for worker in range(workers):
            batches = division.batches(rank, ranks, worker, workers, **options)
            found[rank, worker] = [batch["i"].tolist() for batch in batches]
    return found


@pytest.fixture
def source(tmp_path):
    """Files of 0 to 40 records, of which some are compressed: records 0 to 104 by their column i."""
    start = 0
    for number, count in enumerate([7, 0, 40, 1, 33, 0, 24]):
        data = b"".join(frame(example(i=[i], s=[f"record {i}"])) for i in range(start, start + count))
        start += count
        if number in (2, 4):
            (tmp_path / f"part-{number:05d}-of-00007.tfrecord.gz").write_bytes(gzip.compress(data))
        else:
            (tmp_path / f"part-{number:05d}-of-00007.tfrecord").write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("ranks, workers", CASES)
@pytest.mark.parametrize("batch_size", [1, 4, 10, 64, 500])
def test_each_record_is_in_one_batch(source, ranks, workers, batch_size):
    division = Division(source, batch_size=batch_size, drop_last=False)
    found = read(division, ranks, workers)
    # Ranks, and their workers, have consecutive records.
    assert [i for batches in found.values() for batch in batches for i in batch] == list(range(105))
    counts = {sum(len(found[rank, worker]) for worker in range(workers)) for rank in range(ranks)}
    assert counts == {division.count(ranks)}
    assert all(len(batch) <= batch_size for batches in found.values() for batch in batches)
    # Batches of one record cannot be as many on each rank otherwise.
    assert batch_size == 1 or all(batch for batches in found.values() for batch in batches)
    sizes = [len(batch) for batches in found.values() for batch in batches]
    assert max(sizes) - min(sizes) <= 2
    assert read(division, ranks, workers) == found
    assert read(pickle.loads(pickle.dumps(division)), ranks, workers) == found


@pytest.mark.parametrize("ranks, workers", CASES)
@pytest.mark.parametrize("batch_size", [1, 4, 10, 64])
def test_dropped_records_leave_whole_batches(source, ranks, workers, batch_size):
    division = Division(source, batch_size=batch_size, drop_last=True)
    found = read(division, ranks, workers)
    seen = [i for batches in found.values() for batch in batches for i in batch]
    assert seen == sorted(set(seen))
    assert all(len(batch) == batch_size for batches in found.values() for batch in batches)
    counts = {sum(len(found[rank, worker]) for worker in range(workers)) for rank in range(ranks)}
    assert counts == {division.count(ranks)} == {105 // ranks // batch_size}


def test_selected_columns(source):
    scan = tfarrow.scan(source).select("i")
    batches = list(Division(scan, batch_size=10, drop_last=False).batches(1, 2, 0, 1))
    assert list(batches[0]) == ["i"]
    assert batches[0]["i"].flags.writeable


def test_real_shards():
    expected = [row["label"] for row in tfarrow.scan(TESTDATA / "shards").to_pylist()]
    for ranks, workers in CASES:
        division = Division(TESTDATA / "shards", batch_size=16, drop_last=False)
        parts = [division.batches(rank, ranks, worker, workers) for rank in range(ranks) for worker in range(workers)]
        assert [label for part in parts for batch in part for label in batch["label"].tolist()] == expected


def test_feature_lists_and_raw_records():
    for name, count in (("sequence", 9), ("raw", 5)):
        division = Division(TESTDATA / f"{name}.tfrecord", batch_size=2, drop_last=False)
        expected = tfarrow.scan(TESTDATA / f"{name}.tfrecord").to_pylist()
        rows = [row for rank in range(2) for batch in division.batches(rank, 2, 0, 1) for row in batch.to_pylist()]
        assert rows == expected and len(rows) == count


def test_fill(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(i=[1]), example(), example(i=[3])])
    division = Division(path, batch_size=3, drop_last=False)
    assert [batch["i"].tolist() for batch in division.batches(0, 1, 0, 1, fill=0)] == [[1, 0, 3]]


def test_fewer_records_than_ranks(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(i=[0]), example(i=[1])])
    division = Division(path, batch_size=4, drop_last=False)
    found = [batch["i"].tolist() for rank in range(3) for batch in division.batches(rank, 3, 0, 1)]
    assert sorted(i for batch in found for i in batch) == [0, 1]
    assert len(found) == 3 * division.count(3)


def test_empty_data_sets(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [])
    division = Division(path, batch_size=4, drop_last=False)
    assert division.count(2) == 0
    assert list(division.batches(0, 2, 0, 1)) == []


@pytest.mark.parametrize("change", ["longer", "shorter", "removed"])
def test_changed_files_are_errors(tmp_path, change):
    paths = [write_records(tmp_path / f"{number}.tfrecord", [example(i=[i]) for i in range(10)]) for number in range(3)]
    division = Division(paths, batch_size=4, drop_last=False)
    if change == "removed":
        paths[1].unlink()
    else:
        write_records(paths[1], [example(i=[i]) for i in range(13 if change == "longer" else 7)])
    if change == "longer":
        # Records that were not counted are not read. Each of the others is still in one batch.
        seen = [i for batches in read(division, 2, 1).values() for batch in batches for i in batch]
        assert seen == list(range(10)) * 3
    else:
        with pytest.raises(errors.TfarrowError):
            read(division, 2, 1)


def test_ranges_that_end_before_the_change_are_read(tmp_path):
    paths = [write_records(tmp_path / f"{number}.tfrecord", [example(i=[i]) for i in range(10)]) for number in range(2)]
    division = Division(paths, batch_size=5, drop_last=False)
    # Fewer records in more bytes: a file that has become shorter is another error.
    write_records(paths[1], [example(i=[2**62 + i]) for i in range(8)])
    assert len(list(division.batches(0, 2, 0, 1))) == 2
    with pytest.raises(errors.TfarrowError, match="changed after its records were counted"):
        list(division.batches(1, 2, 0, 1))


@pytest.mark.parametrize("scan", [lambda scan: scan.limit(3), lambda scan: scan.where("i > 3")])
def test_rows_that_are_no_records_cannot_be_divided(source, scan):
    with pytest.raises(errors.UsageError):
        Division(scan(tfarrow.scan(source)), batch_size=2, drop_last=False)


def test_skipped_records_cannot_be_counted(source):
    with pytest.raises(errors.UsageError):
        Division(tfarrow.scan(source, on_error="skip"), batch_size=2, drop_last=False)


def test_wrong_numbers(source):
    with pytest.raises(ValueError):
        Division(source, batch_size=0, drop_last=False)
    division = Division(source, batch_size=2, drop_last=False)
    for rank in (-1, 2):
        with pytest.raises(ValueError):
            list(division.batches(rank, 2, 0, 1))


def test_share_is_a_division():
    for records, size, (ranks, workers), drop in itertools.product(range(0, 60, 7), (1, 3, 8), CASES, (False, True)):
        shares = [[share(records, size, ranks, workers, drop, rank, worker) for worker in range(workers)] for rank in range(ranks)]
        batches = [[batch for _, _, own in of_rank for batch in own] for of_rank in shares]
        assert len({len(own) for own in batches}) == 1
        ends = [(start, end) for of_rank in shares for start, end, own in of_rank if own]
        assert all(left[1] <= right[0] for left, right in itertools.pairwise(ends))
        assert all(end - start == sum(own) for of_rank in shares for start, end, own in of_rank)
        total = sum(map(sum, batches))
        assert total == records if not drop else records - total < ranks * (size + 1)
