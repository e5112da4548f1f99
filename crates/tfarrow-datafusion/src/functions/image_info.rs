//! `image_info`: format and size of an encoded image, from its header.

use std::sync::Arc;

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
use image::ImageFormat;
use tfarrow_dataset::internals::ImageHeader;

use super::{BYTES, bytes_of, unary_function};

/// `image_info(bytes)`: a struct of `format` (`jpeg`, `png`, `gif`, `webp`, `bmp`, `tiff`),
/// `width`, `height` and `channels`. Null for bytes that are not an image of these formats, and for
/// a corrupt header.
pub(super) fn image_info() -> ScalarUDF {
    unary_function(
        "image_info",
        BYTES.to_vec(),
        DataType::Struct(fields()),
        infos,
    )
}

fn fields() -> Fields {
    vec![
        Field::new("format", DataType::Utf8View, true),
        Field::new("width", DataType::Int32, true),
        Field::new("height", DataType::Int32, true),
        Field::new("channels", DataType::Int32, true),
    ]
    .into()
}

fn infos(images: &ArrayRef) -> Result<ArrayRef> {
    let infos: Vec<_> = bytes_of(images)?
        .iter()
        .map(|image| ImageHeader::read(image?))
        .collect();
    let mut formats = StringViewBuilder::new();
    for info in &infos {
        formats.append_option(info.as_ref().and_then(|info| name_of(info.format)));
    }
    let columns = vec![
        Arc::new(formats.finish()) as ArrayRef,
        numbers(&infos, |info| info.width),
        numbers(&infos, |info| info.height),
        numbers(&infos, |info| info.channels.into()),
    ];
    let nulls: NullBuffer = infos.iter().map(Option::is_some).collect();
    Ok(Arc::new(StructArray::try_new(
        fields(),
        columns,
        Some(nulls),
    )?))
}

/// The column of one number of each image; null if an INTEGER cannot hold it.
fn numbers(infos: &[Option<ImageHeader>], number: fn(&ImageHeader) -> u32) -> ArrayRef {
    let mut numbers = Int32Builder::new();
    for info in infos {
        let number = info.as_ref().map(number);
        numbers.append_option(number.and_then(|number| i32::try_from(number).ok()));
    }
    Arc::new(numbers.finish())
}

/// The name of a format of [`ImageHeader::read`].
fn name_of(format: ImageFormat) -> Option<&'static str> {
    match format {
        ImageFormat::Jpeg => Some("jpeg"),
        other => other.extensions_str().first().copied(),
    }
}
