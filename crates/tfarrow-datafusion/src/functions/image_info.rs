//! `image_info`: what an encoded image is, from its header alone.

use std::{io::Cursor, sync::Arc};

use arrow_array::{
    ArrayRef, StructArray,
    builder::{Int32Builder, StringViewBuilder},
};
use arrow_buffer::NullBuffer;
use datafusion::{
    arrow::datatypes::{DataType, Field, Fields},
    error::Result,
    logical_expr::ScalarUDF,
};
use image::{ImageDecoder, ImageFormat, ImageReader};
use tfarrow_dataset::guard;

use super::{BYTES, bytes_of, of_one};

/// `image_info(bytes)`: a struct of `format` (`jpeg`, `png`, `gif`, `webp`, `bmp`, `tiff`), `width`, `height` and
/// `channels`. Null where the bytes are no such image, or its header is damaged.
pub(super) fn image_info() -> ScalarUDF {
    of_one("image_info", BYTES.to_vec(), DataType::Struct(fields()), infos)
}

fn fields() -> Fields {
    let number = |name| Field::new(name, DataType::Int32, true);
    vec![Field::new("format", DataType::Utf8View, true), number("width"), number("height"), number("channels")].into()
}

fn infos(images: &ArrayRef) -> Result<ArrayRef> {
    let infos: Vec<_> = bytes_of(images)?.iter().map(|image| Header::read(image?)).collect();
    let mut formats = StringViewBuilder::new();
    infos.iter().for_each(|info| formats.append_option(info.as_ref().map(|info| info.format)));
    let number = |of: fn(&Header) -> u32| {
        let mut numbers = Int32Builder::new();
        infos
            .iter()
            .for_each(|info| numbers.append_option(info.as_ref().and_then(|info| i32::try_from(of(info)).ok())));
        Arc::new(numbers.finish()) as ArrayRef
    };
    let columns = vec![
        Arc::new(formats.finish()) as ArrayRef,
        number(|info| info.width),
        number(|info| info.height),
        number(|info| info.channels),
    ];
    let nulls: NullBuffer = infos.iter().map(Option::is_some).collect();
    Ok(Arc::new(StructArray::try_new(fields(), columns, Some(nulls))?))
}

/// What a header says.
struct Header {
    format: &'static str,
    width: u32,
    height: u32,
    channels: u32,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let format = image::guess_format(bytes).ok()?;
        let name = *format.extensions_str().first()?;
        // Nobody has promised that a library never panics at a hostile header.
        let (width, height, channels) = guard(|| {
            let decoder = ImageReader::with_format(Cursor::new(bytes), format).into_decoder().ok()?;
            let (width, height) = decoder.dimensions();
            Some((width, height, decoder.original_color_type().channel_count()))
        })
        .ok()??;
        // A palette has no transparency unless a frame says so, which is no part of the header.
        let channels = if format == ImageFormat::Gif { 3 } else { channels.into() };
        let format = if name == "jpg" { "jpeg" } else { name };
        Some(Self { format, width, height, channels })
    }
}
