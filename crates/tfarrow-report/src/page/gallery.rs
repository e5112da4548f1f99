//! The section of example records: their images, film strips and curves of episodes, and their
//! other values.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use tfarrow_stats::{ExampleFeature, ExampleRecord, ExampleValues, ValueFormat};

use super::{
    Page, chart,
    excerpt::{NAME_CHARS, bytes_excerpt, excerpt, feature_name},
    thumbnail::{Boxes, Thumbnail},
};
use crate::text::{blob, count, plural, short};

/// Width and height limit of images, and of the frames of a film strip, in pixels.
const SIDE: u32 = 192;
const FRAME_SIDE: u32 = 96;
/// Number of pixels decoded for all images of a page, which bounds the time.
const MAX_PIXELS: u64 = 400_000_000;
/// Size limit of the section in bytes.
const MAX_BYTES: usize = 560_000;
/// Number of images or film strips shown of a record.
const MAX_IMAGES: usize = 3;
/// Number of curves shown of an episode, of dimensions of each, and of steps of each.
const MAX_CURVES: usize = 6;
const MAX_DIMENSIONS: usize = 8;
const MAX_STEPS: usize = 60;
/// Number of features shown of a record, values shown of each, and characters of each value.
const MAX_FEATURES: usize = 14;
const MAX_VALUES: usize = 8;
const VALUE_CHARS: usize = 240;
/// Length from which a text has lines of its own, in characters.
const LONG_TEXT: usize = 60;
/// The feature of the images to which the boxes of TensorFlow's object-detection API belong.
const BOXED: &str = "image/encoded";
/// The features of RLDS that have one value for each step of an episode.
const STEP_FEATURES: [&str; 5] = [
    "steps/is_first",
    "steps/is_last",
    "steps/is_terminal",
    "steps/reward",
    "steps/discount",
];

/// The section, which is empty where the page has no examples.
pub(super) fn section(page: &Page<'_>) -> Markup {
    let examples = &page.profile.examples;
    let order = order(examples);
    let mut cards = String::new();
    let mut shown = 0;
    let mut pixels = MAX_PIXELS;
    for example in examples {
        let mut card = ExampleCard {
            page,
            example,
            room: MAX_BYTES.saturating_sub(cards.len()),
            notes: Vec::new(),
        };
        let card = card.html(&order, &mut pixels).into_string();
        if cards.len() + card.len() > MAX_BYTES {
            break;
        }
        cards.push_str(&card);
        shown += 1;
    }
    let rest = examples.len() - shown;
    html! {
        @if !examples.is_empty() {
            section id="examples" {
                h2 { "Examples " span class="count" { (count(examples.len() as u64)) } }
                p class="note" { "A random sample of the records, the same each time." }
                div class=(if examples.iter().any(is_episode) { "gallery wide" } else { "gallery" }) { (PreEscaped(cards)) }
                @if rest > 0 { p class="note" { "and " (count(rest as u64)) " more, omitted to limit the size of the page" } }
            }
        }
    }
}

/// The features that cards list, in one order for all: labels and texts first. Images and curves
/// are not listed.
fn order(examples: &[ExampleRecord]) -> Vec<(&str, bool)> {
    let mut ranks = BTreeMap::new();
    for example in examples {
        let steps = rlds_steps(example);
        for feature in &example.features {
            if first_image(feature).is_some() || dimensions(feature, steps).is_some() {
                continue;
            }
            let name = feature.name.to_lowercase();
            let is_label = ["label", "class", "text", "caption", "instruction"]
                .iter()
                .any(|word| name.contains(word));
            let rank = (
                !is_label,
                !matches!(feature.values, ExampleValues::Bytes(_)),
            );
            ranks
                .entry((feature.name.as_str(), feature.is_list))
                .or_insert(rank);
        }
    }
    let mut order: Vec<_> = ranks.into_iter().collect();
    order.sort_by_key(|(name, rank)| (*rank, *name));
    order.into_iter().map(|(name, _)| name).collect()
}

/// Returns whether a record is an episode, whose card is wide.
fn is_episode(example: &ExampleRecord) -> bool {
    let steps = rlds_steps(example);
    example
        .features
        .iter()
        .any(|feature| !feature.frames.is_empty() || dimensions(feature, steps).is_some())
}

/// The number of steps of an episode of RLDS; 0 for other records.
fn rlds_steps(example: &ExampleRecord) -> usize {
    let of_step = example
        .features
        .iter()
        .find(|feature| feature.length > 1 && STEP_FEATURES.contains(&feature.name.as_str()));
    of_step.map_or(0, |feature| feature.length)
}

/// The number of steps and of dimensions of numbers over the steps of a feature list, or of an
/// episode of RLDS with so many steps: at least two steps of equal length.
fn dimensions(feature: &ExampleFeature, rlds_steps: usize) -> Option<(usize, usize)> {
    let steps = match feature.is_list {
        true => feature.steps,
        false if feature.name.starts_with("steps/") => rlds_steps,
        false => 0,
    };
    let is_numeric = !matches!(feature.values, ExampleValues::Bytes(_));
    let is_even =
        steps > 1 && feature.length > 0 && feature.length.is_multiple_of(steps) && feature.is_even;
    (is_numeric && is_even).then(|| (steps, feature.length / steps))
}

/// The first value of a feature where that is an image, and its length.
fn first_image(feature: &ExampleFeature) -> Option<&(Vec<u8>, usize)> {
    let ExampleValues::Bytes(values) = &feature.values else {
        return None;
    };
    values
        .first()
        .filter(|(value, _)| ValueFormat::of(value, false).is_image())
}

/// The card of one record.
struct ExampleCard<'a> {
    page: &'a Page<'a>,
    example: &'a ExampleRecord,
    /// Size limit of the images in bytes.
    room: usize,
    /// Features, each with the reason why it is not shown.
    notes: Vec<(String, String)>,
}

impl ExampleCard<'_> {
    fn html(&mut self, order: &[(&str, bool)], pixels: &mut u64) -> Markup {
        let pictures = self.pictures(pixels);
        let curves = self.curves();
        html! {
            figure class="example" {
                (PreEscaped(pictures))
                (PreEscaped(curves))
                figcaption {
                    p class="place" { (self.page.place(self.example.place)) }
                    dl {
                        @for (name, note) in &self.notes { div { dt { (name) } dd { (note) } } }
                        (self.values(order))
                    }
                    @let more = order.len().saturating_sub(MAX_FEATURES);
                    @if more > 0 { p class="place" { "and " (count(more as u64)) " more features" } }
                }
            }
        }
    }

    /// The images, and film strips of features with several.
    fn pictures(&mut self, pixels: &mut u64) -> String {
        let mut pictures = String::new();
        let images = self
            .example
            .features
            .iter()
            .filter_map(|feature| Some((feature, first_image(feature)?)));
        for (index, (feature, (image, length))) in images.enumerate() {
            let name = feature_name(&feature.name, feature.is_list);
            let why = if index >= MAX_IMAGES || pictures.len() > self.room / 2 {
                "not shown: no space left on the page"
            } else if image.len() < *length {
                "not shown: too long"
            } else if !feature.frames.is_empty() {
                pictures.push_str(&film(feature, image, &name, pixels).into_string());
                continue;
            } else if let Some(thumbnail) = Thumbnail::of(image, SIDE, pixels) {
                let boxes = if feature.name == BOXED {
                    Boxes::of(self.example)
                } else {
                    Boxes::default()
                };
                pictures.push_str(&thumbnail.html(&name, &boxes).into_string());
                if boxes.outside > 0 {
                    self.notes.push((
                        "boxes outside the image".to_owned(),
                        count(boxes.outside as u64),
                    ));
                }
                continue;
            } else {
                "not shown: corrupt or too large"
            };
            self.notes
                .push((name, format!("{}, {why}", blob(image, *length))));
        }
        pictures
    }

    /// Curves of the numbers of an episode.
    fn curves(&self) -> String {
        let mut curves = String::new();
        let steps = rlds_steps(self.example);
        let features = self
            .example
            .features
            .iter()
            .filter_map(|feature| Some((feature, dimensions(feature, steps)?)));
        for (feature, (steps, size)) in features.take(MAX_CURVES) {
            let numbers: Vec<f64> = match &feature.values {
                ExampleValues::Float(values) => {
                    values.iter().map(|value| f64::from(*value)).collect()
                }
                ExampleValues::Int64(values) => values.iter().map(|value| *value as f64).collect(),
                ExampleValues::Bytes(_) => continue,
            };
            let rows: Vec<&[f64]> = numbers.chunks_exact(size).collect();
            let stride = rows.len().div_ceil(MAX_STEPS).max(1);
            let shown = size.min(MAX_DIMENSIONS);
            let mut lines = Vec::with_capacity(shown);
            for dimension in 0..shown {
                let line = rows
                    .iter()
                    .step_by(stride)
                    .map(|row| row.get(dimension).copied().unwrap_or(f64::NAN));
                lines.push(line.collect::<Vec<_>>());
            }
            let title = match size {
                1 => format!(
                    "{}: {}",
                    feature_name(&feature.name, feature.is_list),
                    plural(steps as u64, "step")
                ),
                _ => format!(
                    "{}: {} × {size}",
                    feature_name(&feature.name, feature.is_list),
                    plural(steps as u64, "step")
                ),
            };
            let least = short(numbers.iter().copied().fold(f64::NAN, f64::min));
            let most = short(numbers.iter().copied().fold(f64::NAN, f64::max));
            let markup = html! {
                div class="curve" {
                    p { (title) " " span class="count" { (least) " to " (most) } }
                    (chart::steps(&title, &lines, stride))
                }
            };
            curves.push_str(&markup.into_string());
        }
        curves
    }

    /// The values of the features, in the order of all cards.
    fn values(&self, order: &[(&str, bool)]) -> Markup {
        html! {
            @for (name, is_list) in order.iter().take(MAX_FEATURES) {
                @let feature = self.example.features.iter().find(|feature| feature.name == *name && feature.is_list == *is_list);
                div {
                    dt { (feature_name(name, *is_list)) }
                    @match feature {
                        Some(feature) => (feature_values(feature)),
                        None => dd class="none" { "–" },
                    }
                }
            }
        }
    }
}

/// The images of a list as a film strip, each with its index.
fn film(feature: &ExampleFeature, first: &[u8], name: &str, pixels: &mut u64) -> Markup {
    let further = feature
        .frames
        .iter()
        .map(|(index, image)| (*index, image.as_slice()));
    let frames: Vec<(usize, &[u8])> = std::iter::once((0, first)).chain(further).collect();
    html! {
        div class="film" role="group" aria-label={ (name) ", " (count(feature.length as u64)) " images" } tabindex="0" {
            @for (index, image) in &frames {
                @if let Some(frame) = Thumbnail::of(image, FRAME_SIDE, pixels) {
                    div { (frame.html(&format!("{name}, image {index}"), &Boxes::default())) span { (index) } }
                }
            }
        }
        p class="place" { (name) ": " (frames.len()) " of " (plural(feature.length as u64, "image")) }
    }
}

/// The first values. Values that are all equal, such as the instruction of each step of an episode,
/// are shown once.
fn feature_values(feature: &ExampleFeature) -> Markup {
    let mut shown: Vec<String> = match &feature.values {
        ExampleValues::Bytes(values) => values
            .iter()
            .take(MAX_VALUES)
            .map(|(value, length)| bytes_excerpt(value, *length, VALUE_CHARS))
            .collect(),
        ExampleValues::Float(values) => values
            .iter()
            .take(MAX_VALUES)
            .map(|value| short(f64::from(*value)))
            .collect(),
        ExampleValues::Int64(values) => values
            .iter()
            .take(MAX_VALUES)
            .map(ToString::to_string)
            .collect(),
    };
    let is_text = matches!(feature.values, ExampleValues::Bytes(_));
    let is_repeated =
        is_text && feature.length > 1 && shown.len() == MAX_VALUES.min(feature.length);
    let is_repeated = is_repeated && shown.windows(2).all(|pair| pair.first() == pair.last());
    if is_repeated {
        shown.truncate(1);
    }
    let is_long = is_text && shown.iter().any(|text| text.chars().count() > LONG_TEXT);
    let length = count(feature.length as u64);
    html! {
        dd class=[is_long.then_some("text")] {
            @if feature.length == 0 { span class="none" { "no values" } }
            (excerpt(&shown.join(", "), NAME_CHARS.max(VALUE_CHARS * 2)))
            @if is_repeated {
                " " span class="count" { @if feature.length > MAX_VALUES { "first of " (length) " values" } @else { (length) " times" } }
            } @else if feature.length > shown.len() {
                ", … " span class="count" { (length) " values" }
            }
        }
    }
}
