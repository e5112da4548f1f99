//! Records to be looked at: their images, with boxes where there are some, and what else they hold.

use std::io::Cursor;

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use image::{DynamicImage, ImageFormat};
use tfarrow_dataset::{ImageHeader, decode_image};
use tfarrow_stats::{ExampleFeature, ExampleRecord, ExampleValues, ValueFormat};

use super::{
    NAME, Page,
    html::{beginning, bytes},
};
use crate::output::{blob, count, short};

/// Pixels of a thumbnail, either way.
const SIDE: u32 = 192;
/// Memory that decoding an image for a thumbnail takes at most, in bytes: 18 megapixels of JPEG, 55 of PNG without
/// transparency. Images are decoded one after another.
const MOST_DECODING_BYTES: u64 = 160 << 20;
/// Pixels that are decoded for all thumbnails of a page, which bounds its time.
const ALL_PIXELS: u64 = 400_000_000;
/// Bytes of the section.
const MOST_BYTES: usize = 800_000;
/// Images of a record.
const MOST_IMAGES: usize = 3;
/// Features that are told of a record, values of each, and characters of each.
const TOLD: usize = 12;
const VALUES: usize = 8;
const CHARACTERS: usize = 200;
/// Boxes of an image.
const MOST_BOXES: usize = 50;
/// The feature that the boxes of TensorFlow's object-detection API are about.
const BOXED: &str = "image/encoded";

/// Writes the section of examples, where there are some.
pub(super) fn write(page: &Page<'_>, out: &mut String) {
    if page.examples.is_empty() {
        return;
    }
    out.push_str("<section id=\"examples\">\n<h2>Examples</h2>\n<div class=\"gallery\">\n");
    let end = out.len() + MOST_BYTES;
    let mut pixels = ALL_PIXELS;
    for (index, example) in page.examples.iter().enumerate() {
        let card = card(page, example, end.saturating_sub(out.len()), &mut pixels);
        if out.len() + card.len() > end {
            let rest = count((page.examples.len() - index) as u64);
            out.push_str(&format!("<p class=\"note\">and {rest} more, for which the page has no room</p>\n"));
            break;
        }
        out.push_str(&card);
    }
    out.push_str("</div>\n</section>\n");
}

/// A record, in so many bytes of HTML at most but for its words.
fn card(page: &Page<'_>, example: &ExampleRecord, room: usize, pixels: &mut u64) -> String {
    let (mut pictures, mut notes) = (String::new(), String::new());
    let images = example.features.iter().filter_map(|feature| Some((feature, first_image(feature)?)));
    for (index, (feature, image)) in images.enumerate() {
        let name = beginning(&feature.name, NAME);
        let why = if index >= MOST_IMAGES || pictures.len() > room / 2 {
            "not shown, for want of room"
        } else if image.0.len() < image.1 {
            "not shown, for it is too long"
        } else {
            match thumbnail(&image.0, pixels) {
                Some(picture) => {
                    let boxes = if feature.name == BOXED { boxes(example) } else { Boxes::default() };
                    pictures.push_str(&tag(&name, &picture, &boxes));
                    if boxes.outside > 0 {
                        let outside = count(boxes.outside as u64);
                        notes.push_str(&format!("<dt>boxes that are not within the image</dt><dd>{outside}</dd>"));
                    }
                    continue;
                }
                None => "not shown, for it is damaged or too large",
            }
        };
        let looks = beginning(&blob(&image.0, image.1), NAME);
        notes.push_str(&format!("<dt>{name}</dt><dd>{looks}, {why}</dd>"));
    }
    let place = page.place(example.place);
    format!(
        "<figure>{pictures}<figcaption><small>{place}</small><dl>{notes}{}</dl></figcaption></figure>\n",
        facts(example)
    )
}

/// The first value of a feature where that is an image, and its length.
fn first_image(feature: &ExampleFeature) -> Option<&(Vec<u8>, usize)> {
    let ExampleValues::Bytes(values) = &feature.values else { return None };
    values.first().filter(|(value, _)| ValueFormat::of(value, false).is_image())
}

/// A thumbnail, as a URL, and its size.
struct Picture {
    data: String,
    width: u32,
    height: u32,
}

fn thumbnail(image: &[u8], pixels: &mut u64) -> Option<Picture> {
    let header = ImageHeader::read(image).filter(|header| header.decoding_bytes <= MOST_DECODING_BYTES)?;
    let (width, height) = (header.width, header.height);
    *pixels = pixels.checked_sub(u64::from(width) * u64::from(height))?;
    let whole = decode_image(image, MOST_DECODING_BYTES)?;
    let small = if width.max(height) > SIDE { whole.thumbnail(SIDE, SIDE) } else { whole };
    let (width, height) = (small.width(), small.height());
    // Pictures with transparent parts, and those of few pixels, are small enough as they are.
    let (kind, format, small) = match small.color().has_alpha() || width.max(height) <= 32 {
        true => ("png", ImageFormat::Png, small),
        false => ("jpeg", ImageFormat::Jpeg, DynamicImage::from(small.to_rgb8())),
    };
    let mut encoded = Vec::new();
    small.write_to(&mut Cursor::new(&mut encoded), format).ok()?;
    Some(Picture { data: format!("data:image/{kind};base64,{}", STANDARD.encode(encoded)), width, height })
}

/// The picture, with boxes over it.
fn tag(name: &str, picture: &Picture, boxes: &Boxes) -> String {
    let Picture { data, width, height } = picture;
    let mut out = format!(
        "<svg class=\"picture\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{name}\"><title>{name}</title>\
         <image width=\"{width}\" height=\"{height}\" href=\"{data}\"/>",
    );
    let (w, h) = (*width as f32, *height as f32);
    for ([left, top, right, bottom], label) in &boxes.within {
        let (x, y, width, height) = (left * w, top * h, (right - left) * w, (bottom - top) * h);
        out.push_str(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{label}</title></rect>"
        ));
    }
    out.push_str("</svg>");
    out
}

/// The boxes of an object-detection record, as TensorFlow's object-detection API names them.
#[derive(Default)]
struct Boxes {
    /// Left, top, right, bottom, as shares of the image; and what is in it, as HTML.
    within: Vec<([f32; 4], String)>,
    /// Those that are not within the image, or not boxes.
    outside: usize,
}

fn boxes(example: &ExampleRecord) -> Boxes {
    let of = |name: &str| example.features.iter().find(|feature| feature.name == format!("image/object/{name}"));
    let side = |name: &str| match of(name).map(|feature| &feature.values) {
        Some(ExampleValues::Float(values)) => values.clone(),
        _ => Vec::new(),
    };
    let labels = match of("class/text").or_else(|| of("class/label")).map(|feature| &feature.values) {
        Some(ExampleValues::Bytes(values)) => values.iter().map(|(value, n)| bytes(value, *n, NAME)).collect(),
        Some(ExampleValues::Int64(values)) => values.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    let mut labels = labels.into_iter();
    let mut boxes = Boxes::default();
    let corners = side("bbox/xmin").into_iter().zip(side("bbox/ymin"));
    for ((left, top), (right, bottom)) in corners.zip(side("bbox/xmax").into_iter().zip(side("bbox/ymax"))) {
        let label = labels.next().unwrap_or_default();
        let is_share = |side: f32| (-0.01..=1.01).contains(&side);
        let is_box = [left, top, right, bottom].into_iter().all(is_share) && left < right && top < bottom;
        if is_box && boxes.within.len() < MOST_BOXES {
            boxes.within.push(([left, top, right, bottom], label));
        }
        boxes.outside += usize::from(!is_box);
    }
    boxes
}

/// What a record holds besides images: labels and texts first.
fn facts(example: &ExampleRecord) -> String {
    let rank = |feature: &&ExampleFeature| {
        let name = feature.name.to_lowercase();
        let is_label = ["label", "class", "text", "caption"].iter().any(|word| name.contains(word));
        (!is_label, !matches!(feature.values, ExampleValues::Bytes(_)))
    };
    let mut told: Vec<_> = example.features.iter().filter(|feature| first_image(feature).is_none()).collect();
    told.sort_by_key(rank);
    let line =
        |feature: &&ExampleFeature| format!("<dt>{}</dt><dd>{}</dd>", beginning(&feature.name, NAME), values(feature));
    let lines: String = told.iter().take(TOLD).map(line).collect();
    match told.len().saturating_sub(TOLD) {
        0 => lines,
        more => format!("{lines}<dt>and {} more features</dt>", count(more as u64)),
    }
}

fn values(feature: &ExampleFeature) -> String {
    let shown: Vec<String> = match &feature.values {
        ExampleValues::Bytes(values) => {
            values.iter().take(VALUES).map(|(value, length)| bytes(value, *length, CHARACTERS)).collect()
        }
        ExampleValues::Float(values) => values.iter().take(VALUES).map(|value| short(f64::from(*value))).collect(),
        ExampleValues::Int64(values) => values.iter().take(VALUES).map(ToString::to_string).collect(),
    };
    let more = match feature.length > shown.len() {
        true => format!(", … <small>{} values</small>", count(feature.length as u64)),
        false => String::new(),
    };
    format!("{}{more}", shown.join(", "))
}
