//! The section of example records: their images, with bounding boxes, and their other values.

use std::io::Cursor;

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use image::{DynamicImage, ImageFormat};
use maud::{Markup, PreEscaped, html};
use tfarrow_dataset::{ImageHeader, decode_image};
use tfarrow_stats::{ExampleFeature, ExampleRecord, ExampleValues, ValueFormat};

use super::{
    Page, chart,
    text::{NAME_CHARS, bytes_excerpt, excerpt},
};
use crate::output::{blob, count, short};

/// Width and height limit of thumbnails in pixels.
const SIDE: u32 = 192;
/// Memory limit for decoding one image, in bytes: 18 megapixels of JPEG, 55 of PNG without transparency. Images are decoded
/// one after another.
const MAX_DECODING_BYTES: u64 = 160 << 20;
/// Number of pixels decoded for all thumbnails of a page, which bounds the time.
const MAX_PIXELS: u64 = 400_000_000;
/// Size limit of the section in bytes.
const MAX_BYTES: usize = 800_000;
/// Number of images shown of a record.
const MAX_IMAGES: usize = 3;
/// Number of features shown of a record, values shown of each, and characters of each value.
const MAX_FEATURES: usize = 12;
const MAX_VALUES: usize = 8;
const VALUE_CHARS: usize = 200;
/// Number of boxes shown of an image.
const MAX_BOXES: usize = 50;
/// The feature of the images to which the boxes of TensorFlow's object-detection API belong.
const BOXED: &str = "image/encoded";

/// The section, which is empty where the page has no examples.
pub(super) fn section(page: &Page<'_>) -> Markup {
    let (mut cards, mut shown, mut pixels) = (String::new(), 0, MAX_PIXELS);
    for example in page.examples {
        let card = card(page, example, MAX_BYTES.saturating_sub(cards.len()), &mut pixels).into_string();
        if cards.len() + card.len() > MAX_BYTES {
            break;
        }
        cards.push_str(&card);
        shown += 1;
    }
    let rest = page.examples.len() - shown;
    html! {
        @if !page.examples.is_empty() {
            section id="examples" {
                h2 { "Examples" }
                div class="gallery" {
                    (PreEscaped(cards))
                    @if rest > 0 { p class="note" { "and " (count(rest as u64)) " more, omitted to limit the size of the page" } }
                }
            }
        }
    }
}

/// A record. `room` limits the size of its images in bytes.
fn card(page: &Page<'_>, example: &ExampleRecord, room: usize, pixels: &mut u64) -> Markup {
    let (mut pictures, mut notes) = (String::new(), Vec::new());
    let images = example.features.iter().filter_map(|feature| Some((feature, first_image(feature)?)));
    for (index, (feature, (image, length))) in images.enumerate() {
        let name = excerpt(&feature.name, NAME_CHARS);
        let why = if index >= MAX_IMAGES || pictures.len() > room / 2 {
            "not shown: no space left on the page"
        } else if image.len() < *length {
            "not shown: too long"
        } else if let Some(thumbnail) = Thumbnail::of(image, pixels) {
            let boxes = if feature.name == BOXED { Boxes::of(example) } else { Boxes::default() };
            pictures.push_str(&thumbnail.html(&name, &boxes).into_string());
            if boxes.outside > 0 {
                notes.push(("boxes outside the image".to_owned(), count(boxes.outside as u64)));
            }
            continue;
        } else {
            "not shown: corrupt or too large"
        };
        notes.push((name, format!("{}, {why}", blob(image, *length))));
    }
    html! {
        figure {
            (PreEscaped(pictures))
            figcaption {
                small { (page.place(example.place)) }
                dl {
                    @for (name, note) in notes { dt { (name) } dd { (note) } }
                    (values(example))
                }
            }
        }
    }
}

/// The first value of a feature where that is an image, and its length.
fn first_image(feature: &ExampleFeature) -> Option<&(Vec<u8>, usize)> {
    let ExampleValues::Bytes(values) = &feature.values else { return None };
    values.first().filter(|(value, _)| ValueFormat::of(value, false).is_image())
}

/// A small image as a data URL, and its size in pixels.
struct Thumbnail {
    url: String,
    width: u32,
    height: u32,
}

impl Thumbnail {
    /// Decodes an image and encodes it anew. `None` if it is corrupt or too large, or if `pixels` are used up.
    fn of(image: &[u8], pixels: &mut u64) -> Option<Self> {
        let header = ImageHeader::read(image).filter(|header| header.decoding_bytes <= MAX_DECODING_BYTES)?;
        let (width, height) = (header.width, header.height);
        *pixels = pixels.checked_sub(u64::from(width) * u64::from(height))?;
        let full = decode_image(image, MAX_DECODING_BYTES)?;
        let small = if width.max(height) > SIDE { full.thumbnail(SIDE, SIDE) } else { full };
        let (width, height) = (small.width(), small.height());
        // JPEG has no transparency, and saves nothing for very small images.
        let (kind, format, small) = match small.color().has_alpha() || width.max(height) <= 32 {
            true => ("png", ImageFormat::Png, small),
            false => ("jpeg", ImageFormat::Jpeg, DynamicImage::from(small.to_rgb8())),
        };
        let mut encoded = Vec::new();
        small.write_to(&mut Cursor::new(&mut encoded), format).ok()?;
        Some(Self { url: format!("data:image/{kind};base64,{}", STANDARD.encode(encoded)), width, height })
    }

    /// The image with boxes over it.
    fn html(&self, name: &str, boxes: &Boxes) -> Markup {
        let Self { url, width, height } = self;
        html! {
            svg class="picture" viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(name) {
                title { (name) }
                image width=(width) height=(height) href=(url) {}
                @for (sides, label) in &boxes.within { (chart::rect(self.scaled(*sides), label)) }
            }
        }
    }

    /// A box in pixels, as left edge, upper edge, width and height.
    fn scaled(&self, [left, top, right, bottom]: [f32; 4]) -> [f64; 4] {
        let (width, height) = (self.width as f32, self.height as f32);
        [left * width, top * height, (right - left) * width, (bottom - top) * height].map(f64::from)
    }
}

/// The bounding boxes of a record, whose features are named as in TensorFlow's object-detection API.
#[derive(Default)]
struct Boxes {
    /// Left, upper, right and lower edge as fractions of the image, and the label.
    within: Vec<([f32; 4], String)>,
    /// Number of boxes that are not within the image, or have no area.
    outside: usize,
}

impl Boxes {
    fn of(example: &ExampleRecord) -> Self {
        let of = |name: &str| example.features.iter().find(|feature| feature.name == format!("image/object/{name}"));
        let edges = |name: &str| match of(name).map(|feature| &feature.values) {
            Some(ExampleValues::Float(values)) => values.clone(),
            _ => Vec::new(),
        };
        let labels = match of("class/text").or_else(|| of("class/label")).map(|feature| &feature.values) {
            Some(ExampleValues::Bytes(values)) => {
                values.iter().map(|(value, length)| bytes_excerpt(value, *length, NAME_CHARS)).collect()
            }
            Some(ExampleValues::Int64(values)) => values.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        let mut labels = labels.into_iter();
        let mut boxes = Self::default();
        let corners = edges("bbox/xmin").into_iter().zip(edges("bbox/ymin"));
        for ((left, top), (right, bottom)) in corners.zip(edges("bbox/xmax").into_iter().zip(edges("bbox/ymax"))) {
            let label = labels.next().unwrap_or_default();
            let is_fraction = |edge: f32| (-0.01..=1.01).contains(&edge);
            let is_box = [left, top, right, bottom].into_iter().all(is_fraction) && left < right && top < bottom;
            if is_box && boxes.within.len() < MAX_BOXES {
                boxes.within.push(([left, top, right, bottom], label));
            }
            boxes.outside += usize::from(!is_box);
        }
        boxes
    }
}

/// The values of a record except images: labels and texts first.
fn values(example: &ExampleRecord) -> Markup {
    let rank = |feature: &&ExampleFeature| {
        let name = feature.name.to_lowercase();
        let is_label = ["label", "class", "text", "caption"].iter().any(|word| name.contains(word));
        (!is_label, !matches!(feature.values, ExampleValues::Bytes(_)))
    };
    let mut features: Vec<_> = example.features.iter().filter(|feature| first_image(feature).is_none()).collect();
    features.sort_by_key(rank);
    let more = features.len().saturating_sub(MAX_FEATURES);
    html! {
        @for feature in features.iter().take(MAX_FEATURES) {
            dt { (excerpt(&feature.name, NAME_CHARS)) }
            dd { (feature_values(feature)) }
        }
        @if more > 0 { dt { "and " (count(more as u64)) " more features" } }
    }
}

fn feature_values(feature: &ExampleFeature) -> Markup {
    let shown: Vec<String> = match &feature.values {
        ExampleValues::Bytes(values) => {
            values.iter().take(MAX_VALUES).map(|(value, length)| bytes_excerpt(value, *length, VALUE_CHARS)).collect()
        }
        ExampleValues::Float(values) => values.iter().take(MAX_VALUES).map(|value| short(f64::from(*value))).collect(),
        ExampleValues::Int64(values) => values.iter().take(MAX_VALUES).map(ToString::to_string).collect(),
    };
    html! {
        (shown.join(", "))
        @if feature.length > shown.len() { ", … " small { (count(feature.length as u64)) " values" } }
    }
}
