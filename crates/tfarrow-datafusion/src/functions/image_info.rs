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
    let number = |name| Field::new(name, DataType::Int32, true);
    vec![
        Field::new("format", DataType::Utf8View, true),
        number("width"),
        number("height"),
        number("channels"),
    ]
    .into()
}

fn infos(images: &ArrayRef) -> Result<ArrayRef> {
    let infos: Vec<_> = bytes_of(images)?
        .iter()
        .map(|image| ImageHeader::read(image?))
        .collect();
    let mut formats = StringViewBuilder::new();
    infos.iter().for_each(|info| {
        formats.append_option(info.as_ref().and_then(|info| name_of(info.format)))
    });
    let number = |of: fn(&ImageHeader) -> u32| {
        let mut numbers = Int32Builder::new();
        infos.iter().for_each(|info| {
            numbers.append_option(info.as_ref().and_then(|info| i32::try_from(of(info)).ok()))
        });
        Arc::new(numbers.finish()) as ArrayRef
    };
    let columns = vec![
        Arc::new(formats.finish()) as ArrayRef,
        number(|info| info.width),
        number(|info| info.height),
        number(|info| info.channels.into()),
    ];
    let nulls: NullBuffer = infos.iter().map(Option::is_some).collect();
    Ok(Arc::new(StructArray::try_new(
        fields(),
        columns,
        Some(nulls),
    )?))
}

/// The name of a format of [`ImageHeader::read`].
fn name_of(format: ImageFormat) -> Option<&'static str> {
    match format {
        ImageFormat::Jpeg => Some("jpeg"),
        other => other.extensions_str().first().copied(),
    }
}
