//! Headers of images, and decoding within a memory limit, also of images that were made to exceed
//! it.

use std::io::{Cursor, Write};

use flate2::{Compression, Crc, write::ZlibEncoder};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use tfarrow_dataset::internals::{ImageHeader, decode_image};

const MIB: u64 = 1 << 20;

fn zlib(parts: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    parts
        .into_iter()
        .for_each(|part| encoder.write_all(&part).unwrap());
    encoder.finish().unwrap()
}

fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(name);
    crc.update(body);
    [
        &(body.len() as u32).to_be_bytes(),
        name.as_slice(),
        body,
        &crc.sum().to_be_bytes(),
    ]
    .concat()
}

/// Returns a PNG with this size, bit depth, color type and interlace method, with other chunks
/// before its pixels.
fn png(
    [width, height]: [u32; 2],
    [depth, color, interlace]: [u8; 3],
    others: &[Vec<u8>],
    pixels: &[u8],
) -> Vec<u8> {
    let header = [
        &width.to_be_bytes()[..],
        &height.to_be_bytes(),
        &[depth, color, 0, 0, interlace],
    ]
    .concat();
    let start = [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &header)].concat();
    [
        start,
        others.concat(),
        chunk(b"IDAT", pixels),
        chunk(b"IEND", b""),
    ]
    .concat()
}

fn size(image: &[u8]) -> Option<[u32; 2]> {
    ImageHeader::read(image).map(|header| [header.width, header.height])
}

/// Returns an image of each enabled format.
fn samples() -> impl Iterator<Item = (ImageFormat, Vec<u8>)> {
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    [Bmp, Gif, Jpeg, Png, Tiff, WebP].into_iter().map(|format| {
        let mut encoded = Vec::new();
        let image = RgbImage::from_fn(33, 7, |x, y| {
            Rgb([x * y, x + y, 7 * x].map(|value| value as u8))
        });
        DynamicImage::from(image)
            .write_to(&mut Cursor::new(&mut encoded), format)
            .unwrap();
        (format, encoded)
    })
}

#[test]
fn headers_of_all_formats_are_read() {
    for (format, image) in samples() {
        let header = ImageHeader::read(&image).unwrap();
        assert_eq!(
            (header.format, header.width, header.height, header.channels),
            (format, 33, 7, 3)
        );
        let decoded = decode_image(&image, header.decoding_bytes).unwrap();
        assert_eq!((decoded.width(), decoded.height()), (33, 7), "{format:?}");
        assert!(
            decode_image(&image, header.decoding_bytes - 1).is_err(),
            "{format:?}"
        );
        assert!(
            33 * 7 * u64::from(decoded.color().bytes_per_pixel()) <= header.decoding_bytes,
            "{format:?}"
        );
    }
}

#[test]
fn truncated_images_have_no_size_or_pixels_and_do_not_panic() {
    for (format, image) in samples() {
        assert_eq!(size(&image[..8]), None, "{format:?}");
        let whole = decode_image(&image, MIB).unwrap();
        for end in 0..image.len() {
            if let Some(size) = size(&image[..end]) {
                assert_eq!(size, [33, 7], "{format:?}");
            }
            // The end of a GIF is a byte without pixels.
            if let Ok(decoded) = decode_image(&image[..end], MIB) {
                assert_eq!(decoded, whole, "{format:?} {end}");
            }
        }
    }
}

#[test]
fn color_profiles_are_not_inflated() {
    let zeros = zlib(std::iter::repeat_n(vec![0; 1 << 20], 64));
    let profile = chunk(b"iCCP", &[b"x\0\0".as_slice(), &zeros].concat());
    let text = chunk(b"zTXt", &[b"x\0\0".as_slice(), &zeros].concat());
    let image = png(
        [1, 1],
        [8, 2, 0],
        &[profile, text],
        &zlib([vec![0, 1, 2, 3]]),
    );
    assert!(image.len() < 200_000);
    let header = ImageHeader::read(&image).unwrap();
    assert!(header.decoding_bytes < 100, "{header:?}");
    assert_eq!(
        decode_image(&image, MIB).unwrap().into_rgb8().into_raw(),
        [1, 2, 3]
    );
}

#[test]
fn buffers_count_toward_the_memory_limit() {
    let pixels = zlib([vec![0; 1000]]);
    // A single row, 16 bits per sample, interlacing: each takes several times the memory of one
    // byte per pixel.
    for (sides, kind, least) in [
        ([10_000_000, 1], [8, 2, 0], 200 * MIB),
        ([1_000_000, 16], [16, 6, 0], 180 * MIB),
        ([1_000_000, 16], [16, 6, 1], 180 * MIB),
        ([5000, 5000], [16, 6, 1], 190 * MIB),
    ] {
        let image = png(sides, kind, &[], &pixels);
        let header = ImageHeader::read(&image).unwrap();
        assert_eq!([header.width, header.height], sides);
        assert!(
            header.decoding_bytes > least,
            "{sides:?} {kind:?}: {header:?}"
        );
        assert!(decode_image(&image, 160 * MIB).is_err());
    }
    assert_eq!(
        ImageHeader::read(&png(
            [u32::MAX >> 1, u32::MAX >> 1],
            [16, 6, 0],
            &[],
            &pixels
        )),
        None
    );
}

#[test]
fn palettes_and_transparency_count_as_channels() {
    let pixels = zlib([vec![0; 8]]);
    let (palette, transparent) = (chunk(b"PLTE", &[0; 6]), chunk(b"tRNS", &[0, 0]));
    for (color, others, channels) in [
        (0, vec![], 1),
        (0, vec![transparent.clone()], 2),
        (2, vec![], 3),
        (3, vec![palette.clone()], 3),
        (3, vec![palette, transparent], 4),
        (4, vec![], 2),
        (6, vec![], 4),
    ] {
        let image = png([1, 1], [8, color, 0], &others, &pixels);
        assert_eq!(
            ImageHeader::read(&image).unwrap().channels,
            channels,
            "color type {color}"
        );
    }
}

#[test]
fn a_frame_larger_than_its_canvas_counts_toward_the_memory_limit() {
    let chunk =
        |name: &[u8; 4], body: &[u8]| [name, &(body.len() as u32).to_le_bytes()[..], body].concat();
    let frame = chunk(
        b"VP8 ",
        &[0x10, 0, 0, 0x9d, 0x01, 0x2a, 0xff, 0x3f, 0xff, 0x3f],
    );
    let still = frame.clone();
    let moving = [
        chunk(b"ANIM", &[0; 6]),
        chunk(b"ANMF", &[&[0; 16], frame.as_slice()].concat()),
    ]
    .concat();
    for (flags, frames) in [(0, still), (2, moving)] {
        let body = [
            b"WEBP".as_slice(),
            &chunk(b"VP8X", &[flags, 0, 0, 0, 7, 0, 0, 7, 0, 0]),
            &frames,
        ]
        .concat();
        let header = ImageHeader::read(&chunk(b"RIFF", &body)).unwrap();
        assert_eq!([header.width, header.height], [8, 8]);
        assert!(header.decoding_bytes > 1 << 30, "{header:?}");
    }
}
