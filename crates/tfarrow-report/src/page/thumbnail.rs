//! Images of examples as small pictures, with bounding boxes and their class names.

use std::io::Cursor;

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use image::{DynamicImage, ImageFormat};
use maud::{Markup, html};
use tfarrow_dataset::internals::{ImageHeader, decode_image};
use tfarrow_stats::{ExampleRecord, ExampleValues};

use super::{
    chart,
    excerpt::{bytes_excerpt, excerpt},
};

/// Memory limit for decoding one image, in bytes: 18 megapixels of JPEG, 55 of PNG without
/// transparency. Images are decoded one after another.
const MAX_DECODING_BYTES: u64 = 160 << 20;
/// Number of boxes shown of an image, and characters of the name of each.
const MAX_BOXES: usize = 50;
const CLASS_CHARS: usize = 24;

/// A small image as a data URL, and its size in pixels.
pub(super) struct Thumbnail {
    url: String,
    width: u32,
    height: u32,
}

impl Thumbnail {
    /// Decodes an image and encodes it anew, with sides of up to `side` pixels. `None` if it is
    /// corrupt or too large, or if `pixels` are used up.
    pub(super) fn of(image: &[u8], side: u32, pixels: &mut u64) -> Option<Self> {
        let header = ImageHeader::read(image)
            .filter(|header| header.decoding_bytes <= MAX_DECODING_BYTES)?;
        let width = header.width;
        let height = header.height;
        *pixels = pixels.checked_sub(u64::from(width) * u64::from(height))?;
        let full = decode_image(image, MAX_DECODING_BYTES).ok()?;
        let small = if width.max(height) > side {
            full.thumbnail(side, side)
        } else {
            full
        };
        let width = small.width();
        let height = small.height();
        // JPEG has no transparency, and saves nothing for very small images.
        let (kind, format, small) = match small.color().has_alpha() || width.max(height) <= 32 {
            true => ("png", ImageFormat::Png, small),
            false => (
                "jpeg",
                ImageFormat::Jpeg,
                DynamicImage::from(small.to_rgb8()),
            ),
        };
        let mut encoded = Vec::new();
        small
            .write_to(&mut Cursor::new(&mut encoded), format)
            .ok()?;
        Some(Self {
            url: format!("data:image/{kind};base64,{}", STANDARD.encode(encoded)),
            width,
            height,
        })
    }

    /// The image with boxes over it.
    pub(super) fn html(&self, name: &str, boxes: &Boxes) -> Markup {
        let Self { url, width, height } = self;
        html! {
            svg class="picture" viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(name) {
                title { (name) }
                image class=[(width.max(height) <= &32).then_some("tiny")] width=(width) height=(height) href=(url) {}
                @for (sides, class) in &boxes.within { g class="box" { title { (class) } (self.boxed(*sides, class)) } }
            }
        }
    }

    /// A box with its class in the upper left corner. Text has the size of a fourteenth of the
    /// longer side.
    fn boxed(&self, sides: [f32; 4], class: &str) -> Markup {
        let size = f64::from(self.width.max(self.height)) / 14.0;
        let at = self.scaled(sides);
        let x = at[0] + size / 4.0;
        let y = (at[1] + size).min(f64::from(self.height) - size / 4.0);
        html! {
            (chart::rect(at))
            @if !class.is_empty() {
                text x=(format!("{x:.1}")) y=(format!("{y:.1}")) font-size=(format!("{size:.1}")) { (excerpt(class, CLASS_CHARS)) }
            }
        }
    }

    /// A box in pixels, as left edge, upper edge, width and height.
    fn scaled(&self, [left, top, right, bottom]: [f32; 4]) -> [f64; 4] {
        let width = self.width as f32;
        let height = self.height as f32;
        [
            left * width,
            top * height,
            (right - left) * width,
            (bottom - top) * height,
        ]
        .map(f64::from)
    }
}

/// The bounding boxes of a record, whose features are named as in TensorFlow's object-detection
/// API.
#[derive(Default)]
pub(super) struct Boxes {
    /// Left, upper, right and lower edge as fractions of the image, and the class.
    within: Vec<([f32; 4], String)>,
    /// Number of boxes that are not within the image, or have no area.
    pub(super) outside: usize,
}

impl Boxes {
    /// The boxes of a record.
    pub(super) fn of(example: &ExampleRecord) -> Self {
        let classs = match object_values(example, "class/text")
            .or_else(|| object_values(example, "class/label"))
        {
            Some(ExampleValues::Bytes(values)) => values
                .iter()
                .map(|(value, length)| bytes_excerpt(value, *length, 2 * CLASS_CHARS))
                .collect(),
            Some(ExampleValues::Int64(values)) => values.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        let mut classs = classs.into_iter();
        let mut boxes = Self::default();
        let lefts = edges(example, "bbox/xmin");
        let tops = edges(example, "bbox/ymin");
        let rights = edges(example, "bbox/xmax");
        let bottoms = edges(example, "bbox/ymax");
        let corners = lefts.into_iter().zip(tops);
        for ((left, top), (right, bottom)) in corners.zip(rights.into_iter().zip(bottoms)) {
            let class = classs.next().unwrap_or_default();
            let is_within = [left, top, right, bottom]
                .into_iter()
                .all(|edge| (-0.01..=1.01).contains(&edge));
            let is_box = is_within && left < right && top < bottom;
            if is_box && boxes.within.len() < MAX_BOXES {
                boxes.within.push(([left, top, right, bottom], class));
            }
            boxes.outside += usize::from(!is_box);
        }
        boxes
    }
}

/// The values of a feature of the objects in an image.
fn object_values<'e>(example: &'e ExampleRecord, name: &str) -> Option<&'e ExampleValues> {
    let name = format!("image/object/{name}");
    let feature = example
        .features
        .iter()
        .find(|feature| feature.name == name)?;
    Some(&feature.values)
}

/// One edge of each box; none where the feature has no floats.
fn edges(example: &ExampleRecord, name: &str) -> Vec<f32> {
    match object_values(example, name) {
        Some(ExampleValues::Float(values)) => values.clone(),
        _ => Vec::new(),
    }
}
