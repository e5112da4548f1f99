//! Encoded images: their headers, and decoding within a limit of memory.
//!
//! Reading a header decodes no pixel and inflates no profile: it takes no more memory than a copy of the image.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use png::{Decoded, Info, StreamingDecoder, chunk::IDAT};

use crate::guard;

/// Bytes that a decoder may take for the metadata of one image, such as its color profile.
const METADATA_BYTES: u64 = 4 << 20;

/// The largest side of a block that JPEG and WebP decode at once, in pixels: their buffers are whole blocks.
const BLOCK: u32 = 32;
/// Rows that a PNG decoder buffers besides the image.
const PNG_ROWS: u64 = 8;

/// The header of an encoded image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageHeader {
    /// The format: BMP, GIF, JPEG, PNG, TIFF or WebP.
    pub format: ImageFormat,
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Channels of a pixel, an alpha channel included. A GIF has 3: only its frames say whether they are transparent.
    pub channels: u8,
    /// Bytes that decoding the image takes at most, all buffers included.
    pub decoding_bytes: u64,
}

impl ImageHeader {
    /// Reads the header of `image`. `None` if the format is none of those listed, or the header is truncated or corrupt.
    pub fn read(image: &[u8]) -> Option<Self> {
        let format = image::guess_format(image).ok()?;
        // A panic of a library at a corrupt header is an image that cannot be read.
        guard(|| match format {
            ImageFormat::Png => png(image),
            ImageFormat::Bmp | ImageFormat::Gif | ImageFormat::Jpeg | ImageFormat::Tiff | ImageFormat::WebP => {
                other(image, format)
            }
            _ => None,
        })
        .ok()?
    }
}

/// Decodes an image that takes at most `most_bytes` of memory, all buffers included; of an animation, the first frame.
/// `None` if it would take more, or is truncated or corrupt.
pub fn decode_image(image: &[u8], most_bytes: u64) -> Option<DynamicImage> {
    let header = ImageHeader::read(image).filter(|header| header.decoding_bytes <= most_bytes)?;
    // A panic of a library at corrupt pixels is an image that cannot be read.
    guard(|| {
        let mut decoder = decoder(image, header.format, METADATA_BYTES + 8 * u64::from(header.width))?;
        let mut limits = Limits::no_limits();
        // Besides the image that is returned. A frame of a GIF may be larger than its canvas.
        limits.max_alloc = Some(METADATA_BYTES + header.decoding_bytes.saturating_sub(decoder.total_bytes()));
        decoder.set_limits(limits).ok()?;
        DynamicImage::from_decoder(decoder).ok()
    })
    .ok()?
}

/// A decoder that takes at most so many bytes for metadata and, of a PNG, for a row.
fn decoder(image: &[u8], format: ImageFormat, most_bytes: u64) -> Option<impl ImageDecoder> {
    let mut reader = ImageReader::with_format(Cursor::new(image), format);
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(most_bytes);
    reader.limits(limits);
    reader.into_decoder().ok()
}

/// Reads the chunks of a PNG up to its pixels, without those that are compressed: a small profile inflates to any size.
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
    let sample = if info.bit_depth == png::BitDepth::Sixteen { 2 } else { 1 };
    let row = u64::from(width) * u64::from(channels) * sample;
    let decoding_bytes = row.checked_mul(u64::from(height) + PNG_ROWS)?;
    Some(ImageHeader { format: ImageFormat::Png, width, height, channels, decoding_bytes })
}

fn other(image: &[u8], format: ImageFormat) -> Option<ImageHeader> {
    let decoder = decoder(image, format, METADATA_BYTES)?;
    let (width, height) = decoder.dimensions();
    let channels = match format {
        ImageFormat::Gif => 3,
        _ => decoder.original_color_type().channel_count(),
    };
    let decoding_bytes = match format {
        // Coefficients of a progressive image take 2 bytes each, pixels 1 a channel.
        ImageFormat::Jpeg => blocks(width, height)?.checked_mul(3 * u64::from(channels.max(3)))?,
        // Planes or transforms of a frame, the frame, its alpha channel and the canvas.
        ImageFormat::WebP => webp_pixels(image, blocks(width, height)?)?.checked_mul(14)?,
        // A frame and the canvas.
        ImageFormat::Gif => blocks(width, height)?.checked_mul(8)?,
        // The image, and once more where its channels are stored one after another.
        _ => decoder.total_bytes().checked_mul(2)?,
    };
    Some(ImageHeader { format, width, height, channels, decoding_bytes })
}

/// Pixels of an image of whole blocks.
fn blocks(width: u32, height: u32) -> Option<u64> {
    let whole = |side: u32| Some(u64::from(side.checked_next_multiple_of(BLOCK)?));
    whole(width)?.checked_mul(whole(height)?)
}

/// Pixels of the largest frame of a WebP, or of its canvas. A decoder finds a frame larger than the canvas to be wrong
/// after it has decoded the frame.
fn webp_pixels(image: &[u8], canvas: u64) -> Option<u64> {
    let mut most = canvas;
    for (name, body) in riff_chunks(image.get(12..)?) {
        let frame = if name == b"ANMF" { body.get(16..).unwrap_or_default() } else { &[] };
        let frames = riff_chunks(frame).chain([(name, body)]).filter(|(name, _)| *name == b"VP8 ");
        for (_, frame) in frames {
            // A frame tag of 3 bytes, a start code of 3, and the sides in 14 bits each.
            let &[_, _, _, _, _, _, a, b, c, d, ..] = frame else { continue };
            let [width, height] = [[a, b], [c, d]].map(|side| u32::from(u16::from_le_bytes(side) & 0x3fff));
            most = most.max(blocks(width, height)?);
        }
    }
    Some(most)
}

/// The chunks of a RIFF file: their names and bodies, the last one cut where it is truncated.
fn riff_chunks(mut rest: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (length, after) = after.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        rest = after.get(length.saturating_add(length % 2)..).unwrap_or_default();
        Some((name, after.get(..length).unwrap_or(after)))
    })
}
