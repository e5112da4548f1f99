//! Records to be looked at: their images, with boxes where there are some, and what else they hold.

use std::io::Cursor;

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use image::{DynamicImage, ImageReader, Limits};
use tfarrow_dataset::guard;
use tfarrow_stats::{Example, ExampleFeature, ExampleValues, Format};

use super::{
    Page,
    html::{bytes, text},
};
use crate::output::{count, short};

/// Pixels of a thumbnail, either way.
const SIDE: u32 = 192;
/// Pixels of an image that is made one, either way, and bytes that it may take.
const MOST_SIDE: u32 = 16_384;
const MOST_MEMORY: u64 = 256 << 20;
/// Bytes of all thumbnails together.
const MOST_BYTES: usize = 800_000;
/// Features that are told of a record, and characters of each.
const TOLD: usize = 12;
const CHARACTERS: usize = 60;
/// Boxes of an image.
const MOST_BOXES: usize = 50;

/// Writes the section of examples, where there are some.
pub(super) fn write(page: &Page<'_>, out: &mut String) {
    if page.examples.is_empty() {
        return;
    }
    out.push_str("<section id=\"examples\">\n<h2>Examples</h2>\n<div class=\"gallery\">\n");
    let end = out.len() + MOST_BYTES;
    for example in page.examples {
        out.push_str("<figure>");
        for (name, picture) in example.features.iter().filter_map(picture) {
            if out.len() + picture.data.len() < end {
                out.push_str(&tag(name, &picture, &boxes(example)));
            }
        }
        out.push_str(&format!(
            "<figcaption><small>{}</small>{}</figcaption></figure>\n",
            page.place(example.place),
            facts(example)
        ));
    }
    out.push_str("</div>\n</section>\n");
}

/// A thumbnail, as a URL, and its size.
struct Picture {
    data: String,
    width: u32,
    height: u32,
}

/// The first image of a feature, small.
fn picture(feature: &ExampleFeature) -> Option<(&str, Picture)> {
    let ExampleValues::Bytes(values) = &feature.values else { return None };
    let image = values.iter().find(|value| Format::of(value, false).is_image())?;
    // Nobody has promised that a library never panics at a hostile image.
    let small = guard(|| thumbnail(image)).ok()??;
    Some((&feature.name, small))
}

fn thumbnail(image: &[u8]) -> Option<Picture> {
    let mut reader = ImageReader::new(Cursor::new(image)).with_guessed_format().ok()?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MOST_SIDE);
    limits.max_image_height = Some(MOST_SIDE);
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let whole = reader.decode().ok()?;
    let small = if whole.width().max(whole.height()) > SIDE { whole.thumbnail(SIDE, SIDE) } else { whole };
    let (width, height) = (small.width(), small.height());
    // Pictures with transparent parts, and those of few pixels, are small enough as they are.
    let (kind, small) = match small.color().has_alpha() || width.max(height) <= 32 {
        true => ("png", small),
        false => ("jpeg", DynamicImage::from(small.to_rgb8())),
    };
    let mut encoded = Vec::new();
    let format = if kind == "png" { image::ImageFormat::Png } else { image::ImageFormat::Jpeg };
    small.write_to(&mut Cursor::new(&mut encoded), format).ok()?;
    Some(Picture { data: format!("data:image/{kind};base64,{}", STANDARD.encode(encoded)), width, height })
}

/// The picture, with boxes over it.
fn tag(name: &str, picture: &Picture, boxes: &[[f32; 4]]) -> String {
    let Picture { data, width, height } = picture;
    let mut out = format!(
        "<svg class=\"picture\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{0}\"><title>{0}</title>\
         <image width=\"{width}\" height=\"{height}\" href=\"{data}\"/>",
        text(name)
    );
    for [left, top, right, bottom] in boxes {
        let (w, h) = (*width as f32, *height as f32);
        out.push_str(&format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            left * w,
            top * h,
            (right - left) * w,
            (bottom - top) * h
        ));
    }
    out.push_str("</svg>");
    out
}

/// The boxes of an object-detection record, as TensorFlow's object-detection API names them: left, top, right, bottom, as
/// shares of the image.
fn boxes(example: &Example) -> Vec<[f32; 4]> {
    let side = |name: &str| {
        let feature = example.features.iter().find(|feature| feature.name == format!("image/object/bbox/{name}"))?;
        match &feature.values {
            ExampleValues::Float(values) => Some(values.clone()),
            ExampleValues::Bytes(_) | ExampleValues::Int64(_) => None,
        }
    };
    let (Some(left), Some(top), Some(right), Some(bottom)) = (side("xmin"), side("ymin"), side("xmax"), side("ymax"))
    else {
        return Vec::new();
    };
    let boxes = left.into_iter().zip(top).zip(right.into_iter().zip(bottom));
    let boxes = boxes.map(|((left, top), (right, bottom))| [left, top, right, bottom].map(|side| side.clamp(0.0, 1.0)));
    boxes.filter(|[left, top, right, bottom]| left < right && top < bottom).take(MOST_BOXES).collect()
}

/// What a record holds besides images: labels first.
fn facts(example: &Example) -> String {
    let is_label = |feature: &&ExampleFeature| {
        ["label", "class", "text", "caption"].iter().any(|word| feature.name.to_lowercase().contains(word))
    };
    let is_image = |feature: &&ExampleFeature| match &feature.values {
        ExampleValues::Bytes(values) => values.iter().any(|value| Format::of(value, false).is_image()),
        ExampleValues::Float(_) | ExampleValues::Int64(_) => false,
    };
    let mut told: Vec<_> = example.features.iter().filter(|feature| !is_image(feature)).collect();
    told.sort_by_key(|feature| !is_label(feature));
    let line = |feature: &&ExampleFeature| format!("<dt>{}</dt><dd>{}</dd>", text(&feature.name), values(feature));
    let lines: String = told.iter().take(TOLD).map(line).collect();
    let more = told.len().saturating_sub(TOLD);
    let more = if more > 0 { format!("<dt>and {} more</dt>", count(more as u64)) } else { String::new() };
    format!("<dl>{lines}{more}</dl>")
}

fn values(feature: &ExampleFeature) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = match &feature.values {
        ExampleValues::Bytes(values) => values.iter().take(SHOWN).map(|value| bytes(value, CHARACTERS)).collect(),
        ExampleValues::Float(values) => values.iter().take(SHOWN).map(|value| short(f64::from(*value))).collect(),
        ExampleValues::Int64(values) => values.iter().take(SHOWN).map(ToString::to_string).collect(),
    };
    let more = if feature.length > shown.len() {
        format!(", … <small>{}</small>", count(feature.length as u64))
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}
