"""Columns of images as pixels, compared with those of Pillow."""

import io
import pickle
import struct
import zlib

import numpy as np
import pytest

import tfarrow
from support import TESTDATA, example, write_records
from tfarrow import errors

COUNT = 20


def png(pixels):
    """A PNG of pixels of shape (height, width, 3)."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def picture(number, height=6, width=8):
    """Pixels that differ from those of other numbers."""
    values = np.arange(height * width * 3) * 7 + number * 31
    return (values % 256).astype(np.uint8).reshape(height, width, 3)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Two files of records with a number and its picture."""
    folder = tmp_path_factory.mktemp("images")
    for part in range(2):
        numbers = range(part * COUNT // 2, (part + 1) * COUNT // 2)
        write_records(folder / f"{part}.tfrecord", [example(i=[i], image=[png(picture(i))]) for i in numbers])
    return folder


def compare(batch):
    for i, pixels in zip(batch["i"], batch["image"], strict=True):
        assert np.array_equal(pixels, picture(i))


@pytest.mark.parametrize("shuffle", [None, False, "blocks", "global"])
def test_batches_have_the_pixels_of_their_records(source, shuffle):
    found = []
    for batch in tfarrow.scan(source).batches(6, shuffle=shuffle, seed=1, images={"image": (6, 8)}):
        assert batch["image"].dtype == np.uint8 and batch["image"].shape == (batch.num_rows, 6, 8, 3)
        assert batch["image"].flags.writeable
        compare(batch)
        found += batch["i"].tolist()
    assert sorted(found) == list(range(COUNT))


def test_a_dataset_has_pixels(source):
    dataset = tfarrow.Dataset(source, where="i % 3 = 1", images={"image": (6, 8)})
    assert np.array_equal(dataset[2]["image"], picture(7)) and dataset[2]["i"] == 7
    compare(dataset[1:4])
    compare(pickle.loads(pickle.dumps(dataset))[[0, 2]])
    assert repr(dataset).endswith("images={'image': (6, 8)})")
    # Views have as many bytes of the encoded images as they need.
    compare(tfarrow.Dataset(source, bytes_type="binary_view", images={"image": (6, 8)})[3:])


def test_images_beside_the_columns_of_folders(source, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"split={name}").symlink_to(source)
    batch = tfarrow.Dataset(tmp_path, columns=["split", "image", "i"], images={"image": (6, 8)})[15:25]
    assert batch["split"].tolist() == ["a"] * 5 + ["b"] * 5
    compare(batch)


def test_arrow_has_tensors(source):
    pa = pytest.importorskip("pyarrow")
    batch = tfarrow.Dataset(source, images={"image": (6, 8)})[:3].to_arrow()
    column = batch.column("image")
    assert column.type == pa.fixed_shape_tensor(pa.uint8(), (6, 8, 3))
    assert np.array_equal(column.to_numpy_ndarray(), [picture(i) for i in range(3)])


def of_pillow(encoded, height, width):
    image = pytest.importorskip("PIL.Image")
    opened = image.open(io.BytesIO(encoded)).convert("RGB")
    return np.asarray(opened.resize((width, height), image.Resampling.BILINEAR))


@pytest.mark.parametrize(("height", "width"), [(16, 24), (100, 130), (47, 10), (1, 1)])
def test_sizes_are_those_of_pillow(tmp_path, height, width):
    encoded = png(picture(3, 47, 61))
    path = write_records(tmp_path / "x.tfrecord", [example(image=[encoded])])
    found = tfarrow.Dataset(path, images={"image": (height, width)})[0]["image"]
    difference = np.abs(found.astype(int) - of_pillow(encoded, height, width))
    assert found.shape == (height, width, 3) and difference.max() <= 1


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}, {"quality": 30}])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_pixels_of_jpeg_are_those_of_pillow(tmp_path, mode, options):
    image = pytest.importorskip("PIL.Image")
    rows, columns = np.mgrid[0:90, 0:120]
    pixels = np.stack([rows * 2, columns * 2, rows + columns], axis=-1).astype(np.uint8)
    encoded = io.BytesIO()
    image.fromarray(pixels).convert(mode).save(encoded, "jpeg", **options)
    path = write_records(tmp_path / "x.tfrecord", [example(image=[encoded.getvalue()])])
    found = tfarrow.Dataset(path, images={"image": (90, 120)})[0]["image"].astype(int)
    difference = np.abs(found - of_pillow(encoded.getvalue(), 90, 120))
    # Decoders differ in how they interpolate colors.
    assert difference.mean() < 1.5 and difference.max() < 25


def test_a_record_without_an_image_is_corrupt(tmp_path):
    encoded = png(picture(1))
    path = tmp_path / "x.tfrecord"
    images = [encoded, encoded[: len(encoded) // 2], b"text", encoded]
    write_records(path, [example(i=[i], image=[image]) for i, image in enumerate(images)])
    with pytest.raises(errors.DataError, match="x.tfrecord: record 1 .*'?image.*: found a Png image that is truncated") as caught:
        list(tfarrow.scan(path).batches(2, images={"image": (6, 8)}))
    assert (caught.value.record, caught.value.feature) == (1, "image") and caught.value.offset > 0
    with pytest.raises(errors.DataError, match="record 2 .*expected an image .BMP, GIF, JPEG, PNG, TIFF or WebP., found other"):
        tfarrow.Dataset(path, images={"image": (6, 8)})[2]
    loader = tfarrow.scan(path, on_error="skip").batches(2, images={"image": (6, 8)})
    with pytest.warns(errors.TfarrowWarning, match="2 records"):
        assert [batch["i"].tolist() for batch in loader] == [[0], [3]]


@pytest.mark.parametrize(
    ("images", "text"),
    [
        ({"picture": (6, 8)}, "no column 'picture'|no column \"picture\""),
        ({"i": (6, 8)}, "Int64, expected one byte string a record"),
        ({"image": (0, 8)}, "from 1, .* found 0 and 8"),
        ({"image": (40_000, 40_000)}, "up to 2 GB of pixels, found 40000 and 40000"),
    ],
)
def test_wrong_columns_and_sizes(source, images, text):
    with pytest.raises(errors.UsageError, match=text):
        tfarrow.Dataset(source, images=images)


def test_an_unset_image_is_corrupt(tmp_path):
    path = write_records(tmp_path / "x.tfrecord", [example(i=[0], image=[png(picture(1))]), example(i=[1])])
    with pytest.raises(errors.DataError, match="record 1 .*expected an image, found no value"):
        list(tfarrow.scan(path, sample="all").batches(2, images={"image": (6, 8)}))


def test_images_of_the_test_data():
    batch = next(tfarrow.scan(TESTDATA / "shards").batches(50, images={"image/encoded": (8, 5)}))
    assert batch["image/encoded"].shape == (50, 8, 5, 3)
    first = tfarrow.Dataset(TESTDATA / "shards")[0]["image/encoded"]
    assert np.array_equal(batch["image/encoded"][0], of_pillow(first, 8, 5))
