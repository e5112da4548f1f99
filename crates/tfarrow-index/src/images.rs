//! Columns of encoded images that are decoded to pixels of one size.

use std::{fmt::Display, sync::Arc};

use arrow_array::{Array, ArrayRef, FixedSizeListArray, UInt8Array, cast::AsArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use fast_image_resize::{
    FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer,
    images::{Image, ImageRef},
};
use tfarrow_dataset::internals::decode_image;

/// Maximum memory in bytes for decoding one image: 59 megapixels of JPEG, 178 of PNG without
/// transparency.
const MOST_DECODING_BYTES: u64 = 512 << 20;
/// Number of values of a pixel: red, green and blue.
const CHANNELS: usize = 3;

/// A column of encoded images (BMP, GIF, JPEG, PNG, TIFF, WebP) that is decoded to pixels.
///
/// The pixels of an image are `height` rows of `width` pixels of red, green and blue, as a fixed-shape
/// tensor of uint8. The image is stretched to this size by a bilinear filter over all pixels that a new
/// pixel covers, as Pillow's `BILINEAR` and torchvision's `antialias=True` do. Gray images have three
/// equal channels, and alpha is left out; the orientation in the metadata of a camera is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageColumn {
    /// The name of the column.
    pub name: String,
    /// Number of rows of pixels.
    pub height: u32,
    /// Number of pixels per row.
    pub width: u32,
}

/// Why a column cannot be decoded to pixels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageColumnError {
    /// There is no column of this name.
    #[error("images: there is no column {0:?}")]
    NoColumn(String),
    /// The column has values that are no byte strings.
    #[error("images: column {name:?} is {found}, expected one byte string a record")]
    NotBytes {
        /// The name of the column.
        name: String,
        /// Its type.
        found: DataType,
    },
    /// The images would have no pixels, or too many.
    #[error(
        "images: column {name:?}: expected a height and a width from 1, of up to 2 GB of pixels, found {height} and {width}"
    )]
    Size {
        /// The name of the column.
        name: String,
        /// The wanted number of rows of pixels.
        height: u32,
        /// The wanted number of pixels per row.
        width: u32,
    },
}

impl ImageColumn {
    /// Number of bytes of the pixels of an image.
    pub(crate) fn pixel_bytes(&self) -> usize {
        let row = (self.width as usize).saturating_mul(CHANNELS);
        row.saturating_mul(self.height as usize)
    }

    /// The field of the pixels, in place of the field of the encoded images.
    pub(crate) fn field(&self, encoded: &Field) -> Result<FieldRef, ImageColumnError> {
        if !matches!(encoded.data_type(), DataType::Binary | DataType::BinaryView) {
            return Err(ImageColumnError::NotBytes {
                name: self.name.clone(),
                found: encoded.data_type().clone(),
            });
        }
        let is_sized = self.height > 0 && self.width > 0;
        if !is_sized || i32::try_from(self.pixel_bytes()).is_err() {
            return Err(ImageColumnError::Size {
                name: self.name.clone(),
                height: self.height,
                width: self.width,
            });
        }
        // Arrow's canonical extension type.
        let shape = format!(r#"{{"shape":[{},{},{CHANNELS}]}}"#, self.height, self.width);
        let metadata = [
            (
                "ARROW:extension:name",
                "arrow.fixed_shape_tensor".to_owned(),
            ),
            ("ARROW:extension:metadata", shape),
        ];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value));
        let pixels = Field::new(&self.name, self.data_type(), false);
        Ok(Arc::new(pixels.with_metadata(metadata.into())))
    }

    fn data_type(&self) -> DataType {
        DataType::FixedSizeList(item(), self.pixel_bytes() as i32)
    }

    /// Decodes the images of a column, and returns the rows without an image and why. Their pixels are
    /// black.
    pub(crate) fn decode(&self, encoded: &ArrayRef) -> (ArrayRef, Vec<(usize, String)>) {
        let size = self.pixel_bytes();
        let mut pixels = vec![0; size * encoded.len()];
        let mut faults = Vec::new();
        let mut resizer = Resizer::new();
        for (row, target) in pixels.chunks_exact_mut(size).enumerate() {
            if encoded.is_null(row) {
                faults.push((row, "expected an image, found no value".to_owned()));
                continue;
            }
            let image = match encoded.data_type() {
                DataType::BinaryView => encoded.as_binary_view().value(row),
                _ => encoded.as_binary::<i32>().value(row),
            };
            if let Err(reason) = self.decode_image(image, target, &mut resizer) {
                faults.push((row, reason));
            }
        }
        let values = UInt8Array::new(ScalarBuffer::from(pixels), None);
        let list = FixedSizeListArray::new(item(), size as i32, Arc::new(values), None);
        (Arc::new(list), faults)
    }

    /// Decodes an image into memory for its pixels.
    fn decode_image(
        &self,
        image: &[u8],
        target: &mut [u8],
        resizer: &mut Resizer,
    ) -> Result<(), String> {
        let decoded = decode_image(image, MOST_DECODING_BYTES).map_err(text)?;
        let decoded = decoded.into_rgb8();
        let (width, height) = decoded.dimensions();
        if (width, height) == (self.width, self.height) {
            target.copy_from_slice(&decoded);
            return Ok(());
        }
        let source = ImageRef::new(width, height, &decoded, PixelType::U8x3).map_err(text)?;
        let mut target =
            Image::from_slice_u8(self.width, self.height, target, PixelType::U8x3).map_err(text)?;
        let options = ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
            .use_alpha(false);
        resizer.resize(&source, &mut target, &options).map_err(text)
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}

fn item() -> FieldRef {
    Arc::new(Field::new("item", DataType::UInt8, false))
}

#[cfg(test)]
mod tests {
    use std::{io::Cursor, sync::Arc};

    use arrow_array::{ArrayRef, BinaryArray, cast::AsArray, types::UInt8Type};
    use arrow_schema::{DataType, Field};
    use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

    use super::{ImageColumn, ImageColumnError};

    fn column(height: u32, width: u32) -> ImageColumn {
        let name = "image".to_owned();
        ImageColumn {
            name,
            height,
            width,
        }
    }

    fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        let written = image.into().write_to(&mut Cursor::new(&mut bytes), format);
        written.unwrap();
        bytes
    }

    /// The pixels of images, one after the other, and the rows without an image.
    fn decoded(column: &ImageColumn, images: Vec<Option<&[u8]>>) -> (Vec<u8>, Vec<usize>) {
        let images: ArrayRef = Arc::new(BinaryArray::from(images));
        let (pixels, faults) = column.decode(&images);
        assert_eq!(pixels.len(), images.len());
        let field = column.field(&Field::new("image", DataType::Binary, true));
        assert_eq!(pixels.data_type(), field.unwrap().data_type());
        let values = pixels
            .as_fixed_size_list()
            .values()
            .as_primitive::<UInt8Type>();
        let rows = faults.into_iter().map(|(row, _)| row).collect();
        (values.values().to_vec(), rows)
    }

    #[test]
    fn pixels_are_rows_of_red_green_and_blue() {
        let image = RgbImage::from_fn(3, 2, |x, y| Rgb([x as u8, y as u8, 7]));
        for format in [
            ImageFormat::Png,
            ImageFormat::Bmp,
            ImageFormat::Tiff,
            ImageFormat::WebP,
        ] {
            let bytes = encoded(image.clone(), format);
            let (pixels, lost) = decoded(&column(2, 3), vec![Some(&bytes)]);
            assert_eq!(pixels, *image.as_raw(), "{format:?}");
            assert!(lost.is_empty());
        }
    }

    #[test]
    fn gray_pixels_have_equal_channels_and_alpha_is_left_out() {
        let gray = image::GrayImage::from_raw(2, 1, vec![5, 200]).unwrap();
        let alpha = image::RgbaImage::from_raw(1, 1, vec![1, 2, 3, 0]).unwrap();
        let gray = encoded(gray, ImageFormat::Png);
        let alpha = encoded(alpha, ImageFormat::Png);
        let (pixels, _) = decoded(&column(1, 2), vec![Some(&gray), Some(&alpha)]);
        assert_eq!(pixels, [5, 5, 5, 200, 200, 200, 1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn a_smaller_image_is_the_mean_of_the_pixels_that_it_covers() {
        let image = RgbImage::from_fn(2, 1, |x, _| Rgb([200 * x as u8, 10, 0]));
        let bytes = encoded(image, ImageFormat::Png);
        let (pixels, _) = decoded(&column(1, 1), vec![Some(&bytes)]);
        assert_eq!(pixels, [100, 10, 0]);
        let stripes = RgbImage::from_fn(64, 64, |x, _| Rgb([255 * (x % 2) as u8; 3]));
        let bytes = encoded(stripes, ImageFormat::Png);
        let (pixels, _) = decoded(&column(8, 8), vec![Some(&bytes)]);
        // Without a filter, pixels are black or white.
        let is_gray = |value: &u8| (120..=135).contains(value);
        assert!(pixels.iter().all(is_gray), "{pixels:?}");
    }

    #[test]
    fn rows_without_an_image_are_reported() {
        let image = RgbImage::from_fn(40, 40, |x, y| {
            Rgb([x * y, x * x, y * y].map(|value| value as u8))
        });
        let bytes = encoded(image, ImageFormat::Jpeg);
        let cut = &bytes[..bytes.len() / 2];
        let images = vec![
            Some(&bytes[..]),
            None,
            Some(cut),
            Some(b"text".as_slice()),
            Some(&bytes),
        ];
        let images: ArrayRef = Arc::new(BinaryArray::from(images));
        let (pixels, faults) = column(4, 4).decode(&images);
        assert_eq!(pixels.len(), 5);
        assert_eq!(
            faults,
            [
                (1, "expected an image, found no value".to_owned()),
                (
                    2,
                    "found a Jpeg image that is truncated or corrupt".to_owned()
                ),
                (
                    3,
                    "expected an image (BMP, GIF, JPEG, PNG, TIFF or WebP), found other bytes"
                        .to_owned()
                ),
            ]
        );
    }

    #[test]
    fn columns_and_sizes_are_checked() {
        let bytes = Field::new("image", DataType::Binary, true);
        let text = Field::new("image", DataType::Utf8, true);
        assert!(matches!(
            column(1, 1).field(&text),
            Err(ImageColumnError::NotBytes { .. })
        ));
        for (height, width) in [(0, 1), (1, 0), (u32::MAX, u32::MAX), (30_000, 30_000)] {
            assert!(matches!(
                column(height, width).field(&bytes),
                Err(ImageColumnError::Size { .. })
            ));
        }
        let field = column(20_000, 30_000).field(&bytes).unwrap();
        assert_eq!(
            field.metadata()["ARROW:extension:metadata"],
            r#"{"shape":[20000,30000,3]}"#
        );
    }
}
