"""Rows of other packages: what a batch is not, compared with the schema of its rows, is an error and never other values."""

import ctypes
import os
import random
import signal
import threading
import time

import pytest
import tfarrow
from foreign import LyingStream, array_of
from tfarrow.errors import DataError, TfarrowError, UsageError

pa = pytest.importorskip("pyarrow")

LIST = pa.list_(pa.float32())
SCHEMA = pa.schema([("x", pa.int64()), ("t", pa.string()), ("l", LIST)])
ROWS = [{"x": row, "t": f"row {row}", "l": [row / 2] * (row % 3)} for row in range(100)]
BATCH = pa.RecordBatch.from_pylist(ROWS, SCHEMA)


def changed(name, values):
    """The batch with other values in a column."""
    return BATCH.set_column(BATCH.schema.names.index(name), name, values)


def from_buffers(kind, buffers):
    return pa.Array.from_buffers(kind, 100, [None, *map(pa.py_buffer, buffers)])


OFFSETS = (ctypes.c_int32 * 101)(*range(101))
DECREASING = (ctypes.c_int32 * 101)(*range(50), 3, *range(51, 101))

# Batches that are not of the schema, and the column that the error names.
OTHERS = {
    "another type": (changed("x", pa.array(range(100), pa.int32())), "x"),
    "text": (changed("x", pa.array(["a"] * 100)), "x"),
    "bytes": (changed("t", pa.array([b"\xff"] * 100)), "t"),
    "another item": (changed("l", pa.array([[1]] * 100)), "l"),
    "another list": (changed("l", pa.array([[1.0]] * 100, pa.large_list(pa.float32()))), "l"),
    "nulls without a type": (changed("x", pa.nulls(100)), "x"),
    "fewer columns": (BATCH.select(["x", "t"]), "l"),
    "more columns": (BATCH.append_column("y", pa.array(range(100))), "y"),
    "another name": (BATCH.rename_columns(["x", "u", "l"]), "u"),
    "no columns": (pa.RecordBatch.from_arrays([], names=[]), "x"),
    "offsets that decrease": (changed("t", from_buffers(pa.string(), [DECREASING, b"x" * 100])), "t"),
    "text that is not UTF-8": (changed("t", from_buffers(pa.string(), [OFFSETS, b"\xff" * 100])), "t"),
}


def reader_of(batches):
    """A reader of pyarrow, which does not compare its batches with its schema."""
    return pa.RecordBatchReader.from_batches(SCHEMA, iter(batches))


def summed(reader):
    return tfarrow.sql("SELECT count(*) AS n, sum(x) AS x, count(t) AS t, count(l) AS l FROM r", r=reader).to_pylist()


@pytest.mark.parametrize("place", [1, 5])
@pytest.mark.parametrize("other", OTHERS)
def test_batches_of_another_schema_are_errors(other, place, tmp_path):
    batch, column = OTHERS[other]
    batches = [BATCH] * place + [batch, BATCH]
    target = tmp_path / "kept.tfrecord"
    tfarrow.write({"x": [1]}, target)
    before = target.read_bytes()
    for write in (reader_of, iter, list):
        with pytest.raises(DataError, match=rf"^batch {place}: ") as caught:
            tfarrow.write(write(batches), target, overwrite=True)
        assert caught.value.feature == column
        assert f'column "{column}": ' in str(caught.value)
    with pytest.raises(DataError, match=rf"batch {place}: "):
        summed(reader_of(batches))
    # The file has what it had, and nothing else is there.
    assert [path.name for path in tmp_path.iterdir()] == ["kept.tfrecord"]
    assert target.read_bytes() == before


def test_types_are_named_as_found_and_as_expected():
    batches = [BATCH, OTHERS["another type"][0]]
    with pytest.raises(DataError, match=r'^table r: batch 1: column "x": expected Int64, found Int32: '):
        summed(reader_of(batches))


def test_columns_are_found_by_name(tmp_path):
    swapped = BATCH.select(["l", "x", "t"])
    assert tfarrow.write(reader_of([BATCH, swapped, BATCH]), tmp_path / "x.tfrecord") == 300
    assert tfarrow.scan(tmp_path / "x.tfrecord").select("x", "t").to_pylist() == [{"x": row["x"], "t": row["t"]} for row in ROWS] * 3


def test_items_of_lists_may_have_other_names():
    items = pa.list_(pa.field("element", pa.float32(), nullable=False))
    batch = changed("l", BATCH["l"].cast(items))
    assert tfarrow.sql("SELECT * FROM r", r=reader_of([BATCH, batch])).to_pylist() == ROWS * 2


# ------------------------------------------------------------------------------------------------- streams of C


def nodes(array):
    """An array and all arrays in it."""
    yield array
    for child in range(array.n_children):
        yield from nodes(array.children[child].contents)


def set_to(name, value):
    return lambda array: setattr(array, name, value)


def without_buffer(index):
    def lie(array):
        array.buffers[min(index, array.n_buffers - 1)] = None

    return lie


LIES = {
    "negative length": set_to("length", -1),
    "negative offset": set_to("offset", -(2**40)),
    "length beyond memory": set_to("length", 2**62),
    "offset beyond memory": set_to("offset", 2**63 - 1),
    "more nulls than rows": set_to("null_count", 2**33),
    "nulls without a buffer": set_to("null_count", 3),
    "negative nulls": set_to("null_count", -7),
    "no buffers": set_to("n_buffers", 0),
    "fewer buffers": lambda array: setattr(array, "n_buffers", array.n_buffers - 1),
    "more buffers": lambda array: setattr(array, "n_buffers", array.n_buffers + 1),
    "negative buffers": set_to("n_buffers", -1),
    "no buffer pointers": set_to("buffers", None),
    "a missing buffer": without_buffer(1),
    "fewer children": lambda array: setattr(array, "n_children", array.n_children - 1),
    "more children": lambda array: setattr(array, "n_children", array.n_children + 1),
    "no child pointers": set_to("children", None),
    "a dictionary": lambda array: setattr(array, "dictionary", ctypes.pointer(array)),
    "fewer rows than expected": lambda array: setattr(array, "length", array.length - 1),
}


def read(stream):
    return tfarrow.sql("SELECT * FROM t", t=stream).to_pylist()


def test_honest_streams_are_read():
    assert read(LyingStream(SCHEMA, [BATCH] * 3)) == ROWS * 3
    assert read(LyingStream(SCHEMA, [BATCH.slice(7, 20), BATCH.slice(0, 0)])) == ROWS[7:27]
    keys = pa.table({"d": pa.array(["a", "b", None, "a"]).dictionary_encode()})
    assert read(LyingStream(keys.schema, keys.to_batches())) == keys.to_pylist()


@pytest.mark.parametrize("lie", LIES)
def test_arrays_that_are_none_of_their_schema_are_errors(lie):
    seed = random.Random(lie)
    for node in range(len(list(nodes(array_of(BATCH.to_struct_array()))))):
        number = seed.randrange(3)

        def told(array, batch):
            if batch == number:
                LIES[lie](list(nodes(array))[node])

        # Fewer rows are no lie where it is the batch that has them. An array without children needs no pointers to them.
        shorter = lie == "fewer rows than expected" and node == 0
        expected = ROWS * number + ROWS[:-1] + ROWS * (2 - number) if shorter else ROWS * 3
        try:
            assert read(LyingStream(SCHEMA, [BATCH] * 3, told)) == expected
        except TfarrowError as error:
            assert f"batch {number}: " in str(error)


@pytest.mark.parametrize(
    "column, values",
    [
        ("t", from_buffers(pa.string(), [DECREASING, b"x" * 100])),
        ("t", from_buffers(pa.string(), [OFFSETS, b"\xc3" * 100])),
        ("l", pa.Array.from_buffers(LIST, 100, [None, pa.py_buffer(DECREASING)], children=[pa.array([0.5] * 100, "float32")])),
    ],
)
def test_values_that_are_none_of_their_type_are_errors(column, values):
    with pytest.raises(DataError, match=rf'batch 1: column "{column}": '):
        read(LyingStream(SCHEMA, [BATCH, changed(column, values)]))


def test_offsets_beyond_the_values_are_errors():
    def shortened(array, number):
        # The values of the lists.
        array.children[2].contents.children[0].contents.length = 10

    with pytest.raises(DataError, match=r'batch 0: column "l": '):
        read(LyingStream(SCHEMA, [BATCH], shortened))


def test_keys_without_a_value_are_errors():
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1, 9], "int32"), pa.array(["a", "b"]), safe=False)
    batch = pa.record_batch({"d": keys})
    with pytest.raises(DataError, match='column "d": '):
        read(LyingStream(batch.schema, [batch]))


def test_nulls_in_a_column_without_nulls_are_errors():
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    for rows in (LyingStream(schema, [pa.record_batch({"x": [1, None]})]), pa.RecordBatchReader.from_batches(schema, iter([pa.record_batch({"x": [1, None]})]))):
        with pytest.raises(DataError, match="batch 0: .*non-nullable"):
            read(rows)


def test_rows_that_are_null_are_errors():
    nulls = pa.StructArray.from_arrays([pa.array([1, 2])], ["x"], mask=pa.array([False, True]))

    class Batches:
        def to_struct_array(self):
            return nulls

    with pytest.raises(DataError, match="batch 0: a row is null"):
        read(LyingStream(pa.schema([("x", pa.int64())]), [Batches()]))


def test_streams_that_fail_without_a_text_are_errors(tmp_path):
    stream = LyingStream(SCHEMA, [BATCH] * 3, status=5)
    with pytest.raises(TfarrowError, match="status 5"):
        read(stream)
    with pytest.raises(TfarrowError, match="status 5"):
        tfarrow.write(stream, tmp_path / "x.tfrecord")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------- exceptions


class Boom(Exception):
    pass


@pytest.mark.parametrize("kind", [Boom, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, tfarrow.errors.CorruptError])
@pytest.mark.parametrize("place", [0, 1, 4])
def test_exceptions_of_iterators_come_back(kind, place, tmp_path):
    def batches(error):
        yield from [BATCH] * place
        raise error

    def caught(call):
        error = kind("told")
        with pytest.raises(kind) as caught:
            call(batches(error))
        # The same object, with the traceback of the iterator.
        assert caught.value is error
        assert any(entry.name == "batches" for entry in caught.traceback)

    caught(lambda rows: tfarrow.write(rows, tmp_path / "x.tfrecord"))
    caught(lambda rows: tfarrow.write(reader_of(rows), tmp_path / "x.tfrecord"))
    caught(lambda rows: summed(reader_of(rows)))
    caught(lambda rows: tfarrow.sql("SELECT x FROM r ORDER BY x", r=reader_of(rows)).to_arrow())
    assert list(tmp_path.iterdir()) == []


def test_errors_of_scans_in_queries_are_their_own(tmp_path):
    scan = tfarrow.scan("testdata/corrupt/data.tfrecord")
    for call in (lambda: tfarrow.write(scan, tmp_path / "x.tfrecord"), lambda: read(scan), lambda: read(tfarrow.sql("FROM s", s=scan))):
        with pytest.raises(tfarrow.errors.CorruptError) as caught:
            call()
        assert (caught.value.record, caught.value.offset) == (1, 72)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_interrupts_of_slow_iterators_come_back(tmp_path):
    began = threading.Event()

    def slow():
        while True:
            began.set()
            time.sleep(0.01)
            yield BATCH

    def interrupt():
        began.wait()
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread = threading.Thread(target=interrupt)
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            tfarrow.write(slow(), tmp_path / "x.tfrecord")
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert list(tmp_path.iterdir()) == []


def test_rows_after_an_error_are_no_end():
    def batches():
        yield BATCH
        raise Boom

    stream = tfarrow.sql("SELECT x FROM r", r=reader_of(batches()))._stream()
    with pytest.raises(Boom):
        while stream.next_batch() is not None:
            pass
    for _ in range(2):
        with pytest.raises(UsageError, match="an error ended the rows"):
            stream.next_batch()


def test_texts_of_errors_may_have_a_nul():
    result = tfarrow.sql("SELECT CAST(t AS BIGINT) FROM r", r=pa.table({"t": ["1\0x"]}))
    with pytest.raises(Exception, match=r"1\\0x|1\\x00x|1\\u\{0\}x"):
        pa.table(result)
