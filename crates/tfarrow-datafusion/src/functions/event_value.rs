//! The value of a TensorBoard summary, as TensorBoard shows it.
//!
//! A summary of TensorFlow 1, and of PyTorch, has a field for the kind of its value. TensorFlow 2
//! writes tensors:
//!
//! | kind | field | tensor | plugin |
//! |---|---|---|---|
//! | `scalar` | `simple_value` | one number | `scalars` |
//! | `text` | | strings of any shape | `text` |
//! | `image` | `image` | strings: width, height, and one or more encoded images | `images` |
//! | `histogram` | `histo` | numbers of the shape `[k, 3]`: left edge, right edge and count of each bucket | `histograms` |
//! | `audio` | `audio` | strings | `audio` |
//!
//! The form of a tensor determines its kind, unless the summary names another plugin: writers may
//! name the plugin in the first summary of a tag only. Follows tensorboard/data_compat.py and the
//! `metadata.py` of these plugins.
//!
//! A tensor of a few bytes can have any number of values, the last of which is repeated. The type,
//! the shape and the plugin are therefore looked at first, and values are made only if their size
//! is within limits.

use std::{borrow::Cow, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BinaryViewArray, Float32Array, Float64Array, Int32Array, ListArray,
    StringViewArray, StructArray, TimestampMicrosecondArray,
    cast::AsArray,
    types::{Float32Type, Float64Type, Int32Type},
};
use datafusion::{
    arrow::{
        compute::cast,
        datatypes::{DataType, Field, Fields, TimeUnit},
    },
    common::{exec_err, internal_datafusion_err, internal_err, utils::take_function_args},
    error::Result,
    logical_expr::{
        ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};
use tfarrow_dataset::internals::ImageHeader;

use super::{
    bytes_of, evaluate_unary,
    tensor_proto::{TensorProto, TensorValues},
    unary_function,
};

/// The names of the columns that [`EventValue`] returns.
pub(crate) const EVENT_VALUE_COLUMNS: [&str; 6] =
    ["plugin", "kind", "value", "text", "image", "histogram"];

/// Maximum number of bytes that the values of a tensor take beyond eight times the bytes of the
/// tensor, which no tensor exceeds whose values are all stored.
const MAX_REPEATED_BYTES: usize = 64 << 10;

/// Maximum number of strings of a text. A string takes more memory than the byte that it may have
/// in a tensor.
const MAX_STRINGS: usize = 1 << 20;

/// Maximum number of bytes that the values of all tensors of a batch take beyond the bytes of the
/// tensors.
const MAX_GROWTH: usize = 256 << 20;

/// The plugins of TensorBoard.
const SCALARS: &str = "scalars";
const TEXT: &str = "text";
const IMAGES: &str = "images";
const HISTOGRAMS: &str = "histograms";
const AUDIO: &str = "audio";

/// The time zone of [`event_time`].
const UTC: &str = "UTC";

/// `event_value(value)`: a struct of `plugin`, `kind`, `value`, `text`, `image` (`bytes`, `width`,
/// `height`) and `histogram` (`left`, `right`, `count`), for a message `Summary.Value` whose
/// tensors and audio are serialized.
///
/// Texts and bytes are views if the tag of the summary is one. Plans of events call the function,
/// queries cannot.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EventValue {
    signature: Signature,
}

/// Creates the function [`EventValue`].
pub(crate) fn event_value() -> ScalarUDF {
    ScalarUDF::from(EventValue {
        signature: Signature::any(1, Volatility::Immutable),
    })
}

impl ScalarUDFImpl for EventValue {
    fn name(&self) -> &str {
        "event_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let tag = match types {
            [DataType::Struct(summary)] => summary.find("tag").map(|(_, tag)| tag.data_type()),
            _ => None,
        };
        match tag {
            Some(DataType::Utf8View) => Ok(DataType::Struct(fields(
                DataType::Utf8View,
                DataType::BinaryView,
            ))),
            Some(_) => Ok(DataType::Struct(fields(DataType::Utf8, DataType::Binary))),
            None => internal_err!("expected a summary with a tag, found {types:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [summaries] = take_function_args(self.name(), &args.args)?;
        evaluate_unary(summaries, |summaries| {
            columns(
                &Summaries::of(summaries.as_struct())?,
                args.return_field.data_type(),
            )
        })
    }
}

/// A function that returns a field of the result of [`EventValue`]. DataFusion would move its own
/// function for fields below filters, together with its argument, so that all values are read, each
/// once for every field.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EventValueField {
    signature: Signature,
    name: String,
    field: &'static str,
}

/// Creates the function [`EventValueField`] of the field `field`.
pub(crate) fn event_value_field(field: &'static str) -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    let name = format!("event_value_{field}");
    ScalarUDF::from(EventValueField {
        signature,
        name,
        field,
    })
}

impl ScalarUDFImpl for EventValueField {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let field = match types {
            [DataType::Struct(fields)] => fields.find(self.field),
            _ => None,
        };
        match field {
            Some((_, field)) => Ok(field.data_type().clone()),
            None => internal_err!("expected the value of an event, found {types:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [values] = take_function_args(self.name(), &args.args)?;
        evaluate_unary(values, |values| {
            let field = values.as_struct().column_by_name(self.field);
            field.cloned().ok_or_else(|| {
                internal_datafusion_err!("the value of an event has no {}", self.field)
            })
        })
    }
}

/// `event_time(wall_time)`: a timestamp of microseconds, for seconds since 1970. Null for a time
/// that it cannot hold. Plans of events call the function, queries cannot.
pub(crate) fn event_time() -> ScalarUDF {
    let returns = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
    unary_function("event_time", vec![DataType::Float64], returns, |times| {
        let times = times
            .as_primitive::<Float64Type>()
            .iter()
            .map(|time| micros_of(time?));
        Ok(Arc::new(
            times
                .collect::<TimestampMicrosecondArray>()
                .with_timezone(UTC),
        ))
    })
}

/// Microseconds of a time in seconds; `None` if they do not fit.
fn micros_of(seconds: f64) -> Option<i64> {
    let micros = (seconds * 1e6).round();
    (micros.abs() < 9.2e18).then_some(micros as i64)
}

/// The columns, with these types of texts and bytes.
fn fields(text: DataType, bytes: DataType) -> Fields {
    vec![
        Field::new("plugin", text.clone(), true),
        Field::new("kind", text.clone(), true),
        Field::new("value", DataType::Float64, true),
        Field::new("text", text, true),
        Field::new("image", DataType::Struct(image_fields(bytes)), true),
        Field::new("histogram", DataType::Struct(histogram_fields()), true),
    ]
    .into()
}

fn image_fields(bytes: DataType) -> Fields {
    vec![
        Field::new("bytes", bytes, true),
        Field::new("width", DataType::Int32, true),
        Field::new("height", DataType::Int32, true),
    ]
    .into()
}

fn histogram_fields() -> Fields {
    let numbers = DataType::new_list(DataType::Float64, true);
    vec![
        Field::new("left", numbers.clone(), true),
        Field::new("right", numbers.clone(), true),
        Field::new("count", numbers, true),
    ]
    .into()
}

/// The value of a summary.
#[derive(Debug, PartialEq)]
enum SummaryValue<'a> {
    Scalar(f64),
    Text(String),
    Image {
        bytes: Cow<'a, [u8]>,
        width: i32,
        height: i32,
    },
    /// The left edge, the right edge and the count of each bucket.
    Histogram(Vec<[f64; 3]>),
    Audio,
    /// A tensor of another plugin or form.
    Tensor,
    /// No value, or one that TensorBoard does not read.
    None,
}

impl SummaryValue<'_> {
    /// The value of a serialized `TensorProto` of a plugin, whose name may be empty. A tensor that
    /// does not parse, or whose values take too many bytes, is a [`Tensor`](Self::Tensor). Adds the
    /// bytes that the values take beyond the tensor to `growth`.
    fn of_tensor(tensor: &[u8], plugin: &str, growth: &mut usize) -> Self {
        match plugin {
            AUDIO => Self::Audio,
            _ => Self::read_tensor(tensor, plugin, growth).unwrap_or(Self::Tensor),
        }
    }

    fn read_tensor(tensor: &[u8], plugin: &str, growth: &mut usize) -> Option<Self> {
        let proto = TensorProto::parse(tensor).ok()?;
        let shape = proto.shape().ok()?;
        let plugins = plugins_of(&proto, &shape);
        if plugins.is_empty() || !(plugin.is_empty() || plugins.contains(&plugin)) {
            return None;
        }
        let added = proto.growth(tensor.len()).ok()?;
        let is_large = added
            > tensor
                .len()
                .saturating_mul(7)
                .saturating_add(MAX_REPEATED_BYTES);
        if is_large || proto.is_text() && proto.count().ok()? > MAX_STRINGS {
            return None;
        }
        *growth = growth.saturating_add(added);
        let value = match proto.values().ok()? {
            TensorValues::Strings(strings) => Self::of_strings(&strings),
            TensorValues::Floats(values) => Self::of_numbers(&shape, &values),
            TensorValues::Ints(values) => Self::of_numbers(
                &shape,
                &values
                    .into_iter()
                    .map(|value| value as f64)
                    .collect::<Vec<_>>(),
            ),
            TensorValues::Unsigned(values) => Self::of_numbers(
                &shape,
                &values
                    .into_iter()
                    .map(|value| value as f64)
                    .collect::<Vec<_>>(),
            ),
        };
        (plugin.is_empty() || value.plugin() == Some(plugin)).then_some(value)
    }

    fn of_numbers(shape: &[i64], values: &[f64]) -> Self {
        match (shape, values) {
            ([_, 3], values) => Self::Histogram(values.as_chunks().0.to_vec()),
            (_, [value]) => Self::Scalar(*value),
            _ => Self::Tensor,
        }
    }

    fn of_strings<B: AsRef<[u8]>>(strings: &[B]) -> Self {
        if let [width, height, image, ..] = strings
            && let (Some(width), Some(height)) =
                (number_of(width.as_ref()), number_of(height.as_ref()))
            && ImageHeader::read(image.as_ref()).is_some()
        {
            return Self::Image {
                bytes: Cow::Owned(image.as_ref().to_vec()),
                width,
                height,
            };
        }
        let texts = strings
            .iter()
            .map(|string| std::str::from_utf8(string.as_ref()).ok());
        match texts.collect::<Option<Vec<_>>>() {
            Some(texts) => Self::Text(texts.join("\n")),
            None => Self::Tensor,
        }
    }

    /// The name of the kind.
    fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Scalar(_) => Some("scalar"),
            Self::Text(_) => Some("text"),
            Self::Image { .. } => Some("image"),
            Self::Histogram(_) => Some("histogram"),
            Self::Audio => Some("audio"),
            Self::Tensor => Some("tensor"),
            Self::None => None,
        }
    }

    fn scalar(&self) -> Option<f64> {
        match self {
            Self::Scalar(value) => Some(*value),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, the width and the height of an image.
    fn image(&self) -> Option<(&[u8], i32, i32)> {
        match self {
            Self::Image {
                bytes,
                width,
                height,
            } => Some((bytes, *width, *height)),
            _ => None,
        }
    }

    fn buckets(&self) -> Option<&[[f64; 3]]> {
        match self {
            Self::Histogram(buckets) => Some(buckets),
            _ => None,
        }
    }

    /// The name of the plugin of TensorBoard that shows the kind.
    fn plugin(&self) -> Option<&'static str> {
        match self {
            Self::Scalar(_) => Some(SCALARS),
            Self::Text(_) => Some(TEXT),
            Self::Image { .. } => Some(IMAGES),
            Self::Histogram(_) => Some(HISTOGRAMS),
            Self::Audio => Some(AUDIO),
            Self::Tensor | Self::None => None,
        }
    }
}

/// The number that a string of a tensor has as text.
fn number_of(string: &[u8]) -> Option<i32> {
    std::str::from_utf8(string).ok()?.parse().ok()
}

/// The plugins that may show a tensor, by the type and the shape of the tensor.
fn plugins_of(tensor: &TensorProto, shape: &[i64]) -> &'static [&'static str] {
    match shape {
        _ if tensor.is_text() => &[TEXT, IMAGES],
        [_, 3] => &[HISTOGRAMS],
        sizes if sizes.iter().all(|size| *size == 1) => &[SCALARS],
        _ => &[],
    }
}

/// An array of messages `Summary.Value`, by their fields.
struct Summaries {
    len: usize,
    metadata: StructArray,
    plugin_data: StructArray,
    plugins: StringViewArray,
    simple: Float32Array,
    image: StructArray,
    images: BinaryViewArray,
    sizes: [Int32Array; 2],
    histo: StructArray,
    bounds: [Float64Array; 2],
    limits: ListArray,
    buckets: ListArray,
    audio: ArrayRef,
    tensors: BinaryViewArray,
}

impl Summaries {
    fn of(array: &StructArray) -> Result<Self> {
        let [metadata, image, histo] = [
            field(array, "metadata")?,
            field(array, "image")?,
            field(array, "histo")?,
        ];
        let [metadata, image, histo] =
            [metadata, image, histo].map(|array| array.as_struct().clone());
        let plugin_data = field(&metadata, "plugin_data")?.as_struct().clone();
        Ok(Self {
            len: array.len(),
            plugins: cast(field(&plugin_data, "plugin_name")?, &DataType::Utf8View)?
                .as_string_view()
                .clone(),
            simple: field(array, "simple_value")?
                .as_primitive::<Float32Type>()
                .clone(),
            images: bytes_of(field(&image, "encoded_image_string")?)?,
            sizes: [
                field(&image, "width")?.as_primitive::<Int32Type>().clone(),
                field(&image, "height")?.as_primitive::<Int32Type>().clone(),
            ],
            bounds: [
                field(&histo, "min")?.as_primitive::<Float64Type>().clone(),
                field(&histo, "max")?.as_primitive::<Float64Type>().clone(),
            ],
            limits: field(&histo, "bucket_limit")?.as_list().clone(),
            buckets: field(&histo, "bucket")?.as_list().clone(),
            audio: Arc::clone(field(array, "audio")?),
            tensors: bytes_of(field(array, "tensor")?)?,
            metadata,
            plugin_data,
            image,
            histo,
        })
    }

    /// The name of the plugin; empty if the summary names none.
    fn plugin(&self, row: usize) -> &str {
        let is_named = self.metadata.is_valid(row) && self.plugin_data.is_valid(row);
        if is_named {
            self.plugins.value(row)
        } else {
            ""
        }
    }

    /// The value of a summary. Adds the bytes that the values of a tensor take beyond the tensor to
    /// `growth`.
    fn value(&self, row: usize, growth: &mut usize) -> SummaryValue<'_> {
        if self.simple.is_valid(row) {
            return SummaryValue::Scalar(self.simple.value(row).into());
        }
        if self.image.is_valid(row) {
            let [width, height] = self.sizes.each_ref().map(|sizes| sizes.value(row));
            return SummaryValue::Image {
                bytes: Cow::Borrowed(self.images.value(row)),
                width,
                height,
            };
        }
        if self.histo.is_valid(row) {
            return self.histogram(row);
        }
        match (self.audio.is_valid(row), self.tensors.is_valid(row)) {
            (true, _) => SummaryValue::Audio,
            (false, true) => {
                SummaryValue::of_tensor(self.tensors.value(row), self.plugin(row), growth)
            }
            (false, false) => SummaryValue::None,
        }
    }

    /// A histogram of TensorFlow 1, which has the right edges of its buckets, as TensorBoard shows
    /// it: without empty buckets at the ends, and from the minimum to the maximum of the values.
    fn histogram(&self, row: usize) -> SummaryValue<'_> {
        let limits = numbers_of(&self.limits, row);
        let counts = numbers_of(&self.buckets, row);
        let [min, max] = self.bounds.each_ref().map(|bounds| bounds.value(row));
        let first = counts.iter().position(|count| *count > 0.0);
        let last = counts.iter().rposition(|count| *count > 0.0);
        let (Some(first), Some(last)) = (first, last) else {
            return SummaryValue::Histogram(Vec::new());
        };
        let mut left = min;
        let filled = counts
            .iter()
            .zip(&limits)
            .enumerate()
            .take(last + 1)
            .skip(first);
        let mut buckets = Vec::with_capacity(filled.len());
        for (bucket, (count, limit)) in filled {
            let right = if bucket == last { max } else { *limit };
            buckets.push([left, right, *count]);
            left = right;
        }
        SummaryValue::Histogram(buckets)
    }
}

/// The numbers of the list in a row.
fn numbers_of(lists: &ListArray, row: usize) -> Vec<f64> {
    let numbers = lists.value(row);
    numbers.as_primitive::<Float64Type>().values().to_vec()
}

fn field<'a>(array: &'a StructArray, name: &str) -> Result<&'a ArrayRef> {
    array
        .column_by_name(name)
        .ok_or_else(|| internal_datafusion_err!("a summary has no field {name}"))
}

/// The value of each summary.
///
/// # Errors
/// The values of tensors take more than [`MAX_GROWTH`] bytes.
fn values(summaries: &Summaries) -> Result<Vec<SummaryValue<'_>>> {
    let mut growth = 0;
    let mut values = Vec::with_capacity(summaries.len);
    for row in 0..summaries.len {
        values.push(summaries.value(row, &mut growth));
        if growth > MAX_GROWTH {
            return exec_err!(
                "the tensors of one batch of events repeat values, which take more than {MAX_GROWTH} bytes; the option message \
                 'tensorflow.Event' reads events without the values of their tensors"
            );
        }
    }
    Ok(values)
}

/// Checks that the texts and the images of a batch are within the 32-bit offsets of Arrow's types
/// that are no views.
fn check_offsets(values: &[SummaryValue<'_>]) -> Result<()> {
    let texts: usize = values
        .iter()
        .filter_map(SummaryValue::text)
        .map(str::len)
        .sum();
    let images: usize = values
        .iter()
        .filter_map(SummaryValue::image)
        .map(|(bytes, ..)| bytes.len())
        .sum();
    let found = texts.max(images);
    let most = i32::MAX;
    match i32::try_from(found) {
        Ok(_) => Ok(()),
        Err(_) => exec_err!(
            "the texts or images of one batch of events have {found} bytes, more than {most}; use the option bytes_type \
             'binary_view'"
        ),
    }
}

/// The columns of [`EventValue`], of the type `returns`: the plugin and the value of each summary.
fn columns(summaries: &Summaries, returns: &DataType) -> Result<ArrayRef> {
    let values = values(summaries)?;
    let plugins = (0..summaries.len)
        .map(|row| Some(summaries.plugin(row)).filter(|plugin| !plugin.is_empty()));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(plugins.collect::<StringViewArray>()),
        Arc::new(
            values
                .iter()
                .map(SummaryValue::kind)
                .collect::<StringViewArray>(),
        ),
        Arc::new(
            values
                .iter()
                .map(SummaryValue::scalar)
                .collect::<Float64Array>(),
        ),
        Arc::new(
            values
                .iter()
                .map(SummaryValue::text)
                .collect::<StringViewArray>(),
        ),
        Arc::new(images(&values)?),
        Arc::new(histograms(&values)?),
    ];
    let views = StructArray::try_new(
        fields(DataType::Utf8View, DataType::BinaryView),
        columns,
        None,
    )?;
    if views.data_type() == returns {
        return Ok(Arc::new(views));
    }
    check_offsets(&values)?;
    Ok(cast(&views, returns)?)
}

fn images(values: &[SummaryValue<'_>]) -> Result<StructArray> {
    let images: Vec<_> = values.iter().map(SummaryValue::image).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(
            images
                .iter()
                .map(|image| image.map(|(bytes, ..)| bytes))
                .collect::<BinaryViewArray>(),
        ),
        Arc::new(
            images
                .iter()
                .map(|image| image.map(|(_, width, _)| width))
                .collect::<Int32Array>(),
        ),
        Arc::new(
            images
                .iter()
                .map(|image| image.map(|(.., height)| height))
                .collect::<Int32Array>(),
        ),
    ];
    let nulls = images.iter().map(Option::is_some).collect();
    Ok(StructArray::try_new(
        image_fields(DataType::BinaryView),
        columns,
        Some(nulls),
    )?)
}

fn histograms(values: &[SummaryValue<'_>]) -> Result<StructArray> {
    let buckets: Vec<_> = values.iter().map(SummaryValue::buckets).collect();
    let columns = vec![
        lists_of(&buckets, |[left, ..]| *left),
        lists_of(&buckets, |[_, right, _]| *right),
        lists_of(&buckets, |[.., count]| *count),
    ];
    let nulls = buckets.iter().map(Option::is_some).collect();
    Ok(StructArray::try_new(
        histogram_fields(),
        columns,
        Some(nulls),
    )?)
}

/// The lists of one number of each bucket; null for a value that is no histogram.
fn lists_of(buckets: &[Option<&[[f64; 3]]>], number: fn(&[f64; 3]) -> f64) -> ArrayRef {
    let lists = buckets
        .iter()
        .map(|buckets| buckets.map(|buckets| buckets.iter().map(number).map(Some)));
    Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `TensorProto` with these fields.
    fn tensor(dtype: u8, shape: &[u8], values: &[u8]) -> Vec<u8> {
        let dims: Vec<u8> = shape
            .iter()
            .flat_map(|size| [0x12, 2, 0x08, *size])
            .collect();
        [&[0x08, dtype, 0x12, dims.len() as u8], &dims[..], values].concat()
    }

    fn strings(texts: &[&[u8]]) -> Vec<u8> {
        let values: Vec<u8> = texts
            .iter()
            .flat_map(|text| [&[0x42, text.len() as u8], *text].concat())
            .collect();
        tensor(7, &[texts.len() as u8], &values)
    }

    /// The value of a tensor, and the bytes that it takes beyond the tensor.
    fn read(tensor: &[u8], plugin: &str) -> (SummaryValue<'static>, usize) {
        let mut growth = 0;
        (SummaryValue::of_tensor(tensor, plugin, &mut growth), growth)
    }

    fn value(tensor: &[u8], plugin: &str) -> SummaryValue<'static> {
        read(tensor, plugin).0
    }

    #[test]
    fn the_form_of_a_tensor_determines_its_kind() {
        let number = [&[0x2a, 4][..], &0.5f32.to_le_bytes()].concat();
        assert_eq!(
            value(&tensor(1, &[], &number), ""),
            SummaryValue::Scalar(0.5)
        );
        assert_eq!(
            value(&tensor(1, &[1], &number), "scalars"),
            SummaryValue::Scalar(0.5)
        );
        let bucket = [
            &[0x2a, 12][..],
            &[0.0f32, 1.0, 3.0].map(f32::to_le_bytes).concat(),
        ]
        .concat();
        let expected = SummaryValue::Histogram(vec![[0.0, 1.0, 3.0]]);
        assert_eq!(value(&tensor(1, &[1, 3], &bucket), ""), expected);
        assert_eq!(
            value(&tensor(1, &[0, 3], &[]), ""),
            SummaryValue::Histogram(Vec::new())
        );
        assert_eq!(
            value(&strings(&[b"a", b"b"]), ""),
            SummaryValue::Text("a\nb".to_owned())
        );
        // Three texts, of which the third is no image.
        assert_eq!(
            value(&strings(&[b"3", b"2", b"1"]), "text"),
            SummaryValue::Text("3\n2\n1".to_owned())
        );
    }

    #[test]
    fn tensors_of_other_plugins_and_corrupt_ones_have_no_value() {
        let number = tensor(1, &[], &[&[0x2a, 4][..], &0.5f32.to_le_bytes()].concat());
        assert_eq!(value(&number, "hparams"), SummaryValue::Tensor);
        assert_eq!(value(&strings(&[b"a", b"b"]), "audio"), SummaryValue::Audio);
        for corrupt in [
            &b""[..],
            b"\xff",
            b"\x08\x01\x12\x04\x12\x02\x08\x09",
            &strings(&[b"\xff"]),
        ] {
            assert_eq!(value(corrupt, ""), SummaryValue::Tensor, "{corrupt:?}");
        }
    }

    /// A tensor whose sizes are varints, which has fewer values than its shape.
    fn repeated(dtype: u8, shape: &[u32], values: &[u8]) -> Vec<u8> {
        let size = |size: &u32| {
            let varint: Vec<u8> = (0..5)
                .map(|byte| (size >> (7 * byte)) as u8 & 0x7f | (u8::from(byte < 4) << 7))
                .collect();
            [&[0x12, 6, 0x08], &varint[..]].concat()
        };
        let dims: Vec<u8> = shape.iter().flat_map(size).collect();
        [&[0x08, dtype, 0x12, dims.len() as u8], &dims[..], values].concat()
    }

    #[test]
    fn values_are_repeated_up_to_a_limit() {
        let number = [&[0x2a, 4][..], &0.5f32.to_le_bytes()].concat();
        let (histogram, growth) = read(&repeated(1, &[1000, 3], &number), "histograms");
        assert_eq!(histogram, SummaryValue::Histogram(vec![[0.5; 3]; 1000]));
        assert!((23_900..24_000).contains(&growth), "{growth}");
        assert_eq!(
            value(&repeated(7, &[3], b"\x42\x01a"), ""),
            SummaryValue::Text("a\na\na".to_owned())
        );
        // 16 million values, whose repetitions take 128 MB, and some that take more bytes than a
        // machine has.
        for large in [
            repeated(1, &[5_592_405, 3], &number),
            repeated(7, &[1 << 24], b"\x42\x01a"),
            repeated(7, &[70_000], &[&[0x42, 100][..], &[b'a'; 100]].concat()),
            repeated(2, &[1 << 31, 1 << 31], &[]),
            repeated(7, &[1 << 31, 1 << 31], b"\x42\x01a"),
        ] {
            assert_eq!(read(&large, ""), (SummaryValue::Tensor, 0));
        }
        // 99,999 numbers of a byte each, which are all stored.
        let stored = [&b"\x22\x9f\x8d\x06"[..], &[1; 99_999]].concat();
        assert_eq!(
            value(&repeated(6, &[33_333, 3], &stored), ""),
            SummaryValue::Histogram(vec![[1.0; 3]; 33_333])
        );
        // Values of other plugins, and of forms without a kind, are not made.
        for (tensor, plugin) in [
            (repeated(6, &[99_999], &stored), ""),
            (repeated(1, &[1000, 3], &number), "mesh"),
        ] {
            assert_eq!(read(&tensor, plugin), (SummaryValue::Tensor, 0));
        }
    }

    #[test]
    fn times_that_do_not_fit_are_null() {
        let times: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(1.5),
            Some(f64::NAN),
            Some(1e300),
            None,
        ]));
        let value = event_time().invoke_with_args(datafusion::logical_expr::ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(times)],
            arg_fields: vec![Arc::new(Field::new("time", DataType::Float64, true))],
            number_rows: 4,
            return_field: Arc::new(Field::new("event_time", DataType::Null, true)),
            config_options: Arc::default(),
        });
        let ColumnarValue::Array(found) = value.unwrap() else {
            panic!("an array")
        };
        let expected = TimestampMicrosecondArray::from(vec![Some(1_500_000), None, None, None])
            .with_timezone(UTC);
        assert_eq!(found.as_ref(), &expected as &dyn Array);
    }
}
