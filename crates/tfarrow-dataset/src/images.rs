//! Encoded images: reading headers, and decoding within a memory limit.
//!
//! Reading a header decodes no pixels and inflates no color profile, and takes no more memory than
//! a copy of the image.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use memchr::memmem;
use png::{Decoded, Info, StreamingDecoder, chunk::IDAT};

use crate::catch_panic::catch_panic;

/// Maximum memory in bytes for the metadata of one image, such as its color profile.
const METADATA_BYTES: u64 = 4 << 20;

/// Largest side of a block of JPEG and WebP, in pixels. Buffers consist of complete blocks.
const BLOCK: u32 = 32;
/// Number of rows that a PNG decoder buffers in addition to the image.
const PNG_ROWS: u64 = 8;

/// The header of an encoded image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageHeader {
    /// The format: BMP, GIF, JPEG, PNG, TIFF or WebP.
    pub format: ImageFormat,
    /// Number of pixels per row.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
    /// Number of channels per pixel, including alpha. 3 for GIF, because only its frames define
    /// transparency.
    pub channels: u8,
    /// Maximum memory in bytes for decoding the image, including all buffers.
    pub decoding_bytes: u64,
}

impl ImageHeader {
    /// Reads the header of `image`. `None` if it has another format than those of
    /// [`format`](Self::format), or if the header is truncated or corrupt.
    pub fn read(image: &[u8]) -> Option<Self> {
        let format = known_format(image)?;
        // Libraries panic on some corrupt headers.
        catch_panic(|| match format {
            ImageFormat::Png => png(image),
            _ => not_png(image, format),
        })
        .ok()?
    }
}

/// The format that the first bytes are those of, if it is one of [`ImageHeader::format`].
fn known_format(image: &[u8]) -> Option<ImageFormat> {
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    let format = image::guess_format(image).ok()?;
    matches!(format, Bmp | Gif | Jpeg | Png | Tiff | WebP).then_some(format)
}

/// Why an image is not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageFault {
    /// The bytes are not those of a known format.
    #[error("expected an image (BMP, GIF, JPEG, PNG, TIFF or WebP), found other bytes")]
    Format,
    /// Decoding takes more memory than is allowed.
    #[error(
        "expected an image that is decoded in {most_bytes} bytes, found one of {width} x {height} \
         pixels, which takes {bytes}"
    )]
    TooLarge {
        /// Number of pixels per row.
        width: u32,
        /// Number of rows.
        height: u32,
        /// Memory in bytes for decoding it, including all buffers.
        bytes: u64,
        /// The memory that is allowed.
        most_bytes: u64,
    },
    /// The image is truncated or corrupt.
    #[error("found a {format:?} image that is truncated or corrupt")]
    Corrupt {
        /// The format.
        format: ImageFormat,
    },
}

/// Decodes an image, or the first frame of an animation.
///
/// # Errors
/// The image would take more than `most_bytes` of memory, including all buffers, or it is truncated
/// or corrupt.
pub fn decode_image(image: &[u8], most_bytes: u64) -> Result<DynamicImage, ImageFault> {
    let format = known_format(image).ok_or(ImageFault::Format)?;
    let corrupt = ImageFault::Corrupt { format };
    let header = ImageHeader::read(image).ok_or(corrupt)?;
    if header.decoding_bytes > most_bytes {
        return Err(ImageFault::TooLarge {
            width: header.width,
            height: header.height,
            bytes: header.decoding_bytes,
            most_bytes,
        });
    }
    if format == ImageFormat::Jpeg && !has_end(image) {
        return Err(corrupt);
    }
    // Libraries panic on some corrupt images.
    let decoded = catch_panic(|| pixels(image, &header));
    decoded.ok().flatten().ok_or(corrupt)
}

/// Whether a JPEG has the marker of its end after its last scan. A decoder makes grey pixels of what is
/// missing.
fn has_end(jpeg: &[u8]) -> bool {
    let scan = memmem::rfind(jpeg, b"\xff\xda");
    let end = memmem::rfind(jpeg, b"\xff\xd9");
    scan < end
}

/// The pixels of an image.
fn pixels(image: &[u8], header: &ImageHeader) -> Option<DynamicImage> {
    let metadata_bytes = METADATA_BYTES + 8 * u64::from(header.width);
    let mut decoder = decoder(image, header.format, metadata_bytes)?;
    let mut limits = Limits::no_limits();
    // In addition to the image that is returned. A frame of a GIF may be larger than its canvas.
    let buffers = header.decoding_bytes.saturating_sub(decoder.total_bytes());
    limits.max_alloc = Some(METADATA_BYTES + buffers);
    decoder.set_limits(limits).ok()?;
    DynamicImage::from_decoder(decoder).ok()
}

/// Creates a decoder that takes at most `most_bytes` for metadata and, for PNG, a row.
fn decoder(image: &[u8], format: ImageFormat, most_bytes: u64) -> Option<impl ImageDecoder> {
    let mut reader = ImageReader::with_format(Cursor::new(image), format);
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(most_bytes);
    reader.limits(limits);
    reader.into_decoder().ok()
}

/// Reads the chunks of a PNG up to its pixels, and ignores compressed chunks, because a small color
/// profile may inflate to any size.
fn png(image: &[u8]) -> Option<ImageHeader> {
    let mut decoder = StreamingDecoder::new();
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut rest = image;
    while !rest.is_empty() {
        let (read, event) = decoder.update(rest, None).ok()?;
        if matches!(event, Decoded::ChunkBegin(_, IDAT)) {
            return png_header(decoder.info()?);
        }
        rest = rest.get(read..)?;
    }
    None
}

fn png_header(info: &Info<'_>) -> Option<ImageHeader> {
    let (width, height) = info.size();
    let alpha = u8::from(info.trns.is_some());
    let channels = match info.color_type {
        png::ColorType::Grayscale => 1 + alpha,
        png::ColorType::GrayscaleAlpha => 2,
        png::ColorType::Rgb | png::ColorType::Indexed => 3 + alpha,
        png::ColorType::Rgba => 4,
    };
    let sample = if info.bit_depth == png::BitDepth::Sixteen {
        2
    } else {
        1
    };
    let row = u64::from(width) * u64::from(channels) * sample;
    let decoding_bytes = row.checked_mul(u64::from(height) + PNG_ROWS)?;
    Some(ImageHeader {
        format: ImageFormat::Png,
        width,
        height,
        channels,
        decoding_bytes,
    })
}

/// Reads the header of an image of another format than PNG.
fn not_png(image: &[u8], format: ImageFormat) -> Option<ImageHeader> {
    let decoder = decoder(image, format, METADATA_BYTES)?;
    let (width, height) = decoder.dimensions();
    let channels = match format {
        ImageFormat::Gif => 3,
        _ => decoder.original_color_type().channel_count(),
    };
    let decoding_bytes = match format {
        // A channel of a pixel takes 2 bytes for the coefficient of a progressive image, and 1 byte
        // for the value.
        ImageFormat::Jpeg => blocks(width, height)?.checked_mul(3 * u64::from(channels.max(3)))?,
        // Planes or transforms of a frame, the frame, its alpha channel, and the canvas.
        ImageFormat::WebP => webp_pixels(image, blocks(width, height)?)?.checked_mul(14)?,
        // A frame, and the canvas.
        ImageFormat::Gif => blocks(width, height)?.checked_mul(8)?,
        // The image, twice if its channels are stored one after the other.
        _ => decoder.total_bytes().checked_mul(2)?,
    };
    Some(ImageHeader {
        format,
        width,
        height,
        channels,
        decoding_bytes,
    })
}

/// Returns the number of pixels of an image that is extended to complete blocks.
fn blocks(width: u32, height: u32) -> Option<u64> {
    let width = width.checked_next_multiple_of(BLOCK)?;
    let height = height.checked_next_multiple_of(BLOCK)?;
    u64::from(width).checked_mul(u64::from(height))
}

/// Returns the number of pixels of the largest frame of a WebP, or of its canvas if that is larger.
/// A decoder rejects a frame that is larger than the canvas only after decoding it.
fn webp_pixels(image: &[u8], canvas: u64) -> Option<u64> {
    let mut most = canvas;
    for (name, body) in riff_chunks(image.get(12..)?) {
        let frame = if name == b"ANMF" {
            body.get(16..).unwrap_or_default()
        } else {
            &[]
        };
        let frames = riff_chunks(frame)
            .chain([(name, body)])
            .filter(|(name, _)| *name == b"VP8 ");
        for (_, frame) in frames {
            // A frame tag of 3 bytes, a start code of 3 bytes, and the width and height in 14 bits
            // each.
            let &[_, _, _, _, _, _, a, b, c, d, ..] = frame else {
                continue;
            };
            let [width, height] =
                [[a, b], [c, d]].map(|side| u32::from(u16::from_le_bytes(side) & 0x3fff));
            most = most.max(blocks(width, height)?);
        }
    }
    Some(most)
}

/// Returns the names and bodies of the chunks of a RIFF file. The body of a truncated last chunk is
/// as long as the file.
fn riff_chunks(mut rest: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (length, after) = after.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        rest = after
            .get(length.saturating_add(length % 2)..)
            .unwrap_or_default();
        Some((name, after.get(..length).unwrap_or(after)))
    })
}
