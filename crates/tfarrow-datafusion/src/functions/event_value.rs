//! The value of a TensorBoard summary, as TensorBoard shows it.
//!
//! A summary of TensorFlow 1, and of PyTorch, has a field for the kind of its value. TensorFlow 2 writes tensors:
//!
//! | kind | field | tensor | plugin |
//! |---|---|---|---|
//! | `scalar` | `simple_value` | one number | `scalars` |
//! | `text` | | strings of any shape | `text` |
//! | `image` | `image` | strings: width, height, and one or more encoded images | `images` |
//! | `histogram` | `histo` | numbers of the shape `[k, 3]`: left edge, right edge and count of each bucket | `histograms` |
//! | `audio` | `audio` | strings | `audio` |
//!
//! The form of a tensor determines its kind, unless the summary names another plugin: writers may name the plugin in the first
//! summary of a tag only. Follows tensorboard/data_compat.py and the `metadata.py` of these plugins.

use std::{borrow::Cow, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BinaryViewArray, Float32Array, Float64Array, Int32Array, ListArray, StringViewArray, StructArray,
    TimestampMicrosecondArray,
    cast::AsArray,
    types::{Float32Type, Float64Type, Int32Type},
};
use datafusion::{
    arrow::{
        compute::cast,
        datatypes::{DataType, Field, Fields, TimeUnit},
    },
    common::internal_datafusion_err,
    error::Result,
    logical_expr::{ColumnarValue, ScalarUDF, Signature, SimpleScalarUDF, Volatility},
};
use tfarrow_dataset::ImageHeader;

use super::{
    bytes_of, evaluate_unary,
    tensor_proto::{TensorProto, TensorValues},
};

/// The names of the columns that [`event_value`] returns.
pub(crate) const EVENT_VALUE_COLUMNS: [&str; 6] = ["plugin", "kind", "value", "text", "image", "histogram"];

/// The time zone of [`event_time`].
const UTC: &str = "UTC";

/// `event_value(value)`: a struct of `plugin`, `kind`, `value`, `text`, `image` (`bytes`, `width`, `height`) and `histogram`
/// (`left`, `right`, `count`), for a message `Summary.Value` whose tensors and audio are serialized.
pub(crate) fn event_value() -> ScalarUDF {
    function("event_value", DataType::Struct(fields()), |summaries| columns(&Summaries::of(summaries.as_struct())?))
}

/// `event_time(wall_time)`: a timestamp of microseconds, for seconds since 1970. Null for a time that it cannot hold.
pub(crate) fn event_time() -> ScalarUDF {
    let returns = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
    function("event_time", returns, |times| {
        let micros = |seconds: f64| Some((seconds * 1e6).round()).filter(|micros| micros.abs() < 9.2e18);
        let times = times.as_primitive::<Float64Type>().iter().map(|time| Some(micros(time?)? as i64));
        Ok(Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone(UTC)))
    })
}

/// Creates a function of one argument of any type. Plans of events call it, queries cannot.
fn function(
    name: &str,
    returns: DataType,
    evaluate: impl Fn(&ArrayRef) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let call = move |args: &[ColumnarValue]| match args {
        [value] => evaluate_unary(value, &evaluate),
        _ => Err(internal_datafusion_err!("expected one argument")),
    };
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::from(SimpleScalarUDF::new_with_signature(name, signature, returns, Arc::new(call)))
}

fn fields() -> Fields {
    let text = |name| Field::new(name, DataType::Utf8View, true);
    vec![
        text("plugin"),
        text("kind"),
        Field::new("value", DataType::Float64, true),
        text("text"),
        Field::new("image", DataType::Struct(image_fields()), true),
        Field::new("histogram", DataType::Struct(histogram_fields()), true),
    ]
    .into()
}

fn image_fields() -> Fields {
    let number = |name| Field::new(name, DataType::Int32, true);
    vec![Field::new("bytes", DataType::BinaryView, true), number("width"), number("height")].into()
}

fn histogram_fields() -> Fields {
    let list = |name| Field::new(name, DataType::new_list(DataType::Float64, true), true);
    vec![list("left"), list("right"), list("count")].into()
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
    /// The value of a serialized `TensorProto` of a plugin, whose name may be empty. A tensor that does not parse is a
    /// [`Tensor`](Self::Tensor).
    fn of_tensor(tensor: &[u8], plugin: &str) -> Self {
        if plugin == "audio" {
            return Self::Audio;
        }
        let Ok(proto) = TensorProto::parse(tensor) else { return Self::Tensor };
        let (Ok(shape), Ok(values)) = (proto.shape(), proto.values()) else { return Self::Tensor };
        let value = match values {
            TensorValues::Strings(strings) => Self::of_strings(&strings),
            TensorValues::Floats(values) => Self::of_numbers(&shape, &values),
            TensorValues::Ints(values) => {
                Self::of_numbers(&shape, &values.into_iter().map(|value| value as f64).collect::<Vec<_>>())
            }
            TensorValues::Unsigned(values) => {
                Self::of_numbers(&shape, &values.into_iter().map(|value| value as f64).collect::<Vec<_>>())
            }
        };
        if plugin.is_empty() || value.plugin() == Some(plugin) { value } else { Self::Tensor }
    }

    fn of_numbers(shape: &[i64], values: &[f64]) -> Self {
        match (shape, values) {
            ([_, 3], values) => Self::Histogram(values.as_chunks().0.to_vec()),
            (_, [value]) => Self::Scalar(*value),
            _ => Self::Tensor,
        }
    }

    fn of_strings<B: AsRef<[u8]>>(strings: &[B]) -> Self {
        let text = |text: &B| std::str::from_utf8(text.as_ref()).ok().map(str::to_owned);
        if let [width, height, image, ..] = strings
            && let (Some(width), Some(height)) = (text(width), text(height))
            && let (Ok(width), Ok(height)) = (width.parse(), height.parse())
            && ImageHeader::read(image.as_ref()).is_some()
        {
            return Self::Image { bytes: Cow::Owned(image.as_ref().to_vec()), width, height };
        }
        let texts: Option<Vec<_>> = strings.iter().map(text).collect();
        texts.map_or(Self::Tensor, |texts| Self::Text(texts.join("\n")))
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

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, the width and the height of an image.
    fn image(&self) -> Option<(&[u8], i32, i32)> {
        match self {
            Self::Image { bytes, width, height } => Some((bytes, *width, *height)),
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
            Self::Scalar(_) => Some("scalars"),
            Self::Text(_) => Some("text"),
            Self::Image { .. } => Some("images"),
            Self::Histogram(_) => Some("histograms"),
            Self::Audio => Some("audio"),
            Self::Tensor | Self::None => None,
        }
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
        let [metadata, image, histo] = [field(array, "metadata")?, field(array, "image")?, field(array, "histo")?];
        let [metadata, image, histo] = [metadata, image, histo].map(|array| array.as_struct().clone());
        let plugin_data = field(&metadata, "plugin_data")?.as_struct().clone();
        let number = |name| field(&image, name).map(|array| array.as_primitive::<Int32Type>().clone());
        let bound = |name| field(&histo, name).map(|array| array.as_primitive::<Float64Type>().clone());
        Ok(Self {
            len: array.len(),
            plugins: cast(field(&plugin_data, "plugin_name")?, &DataType::Utf8View)?.as_string_view().clone(),
            simple: field(array, "simple_value")?.as_primitive::<Float32Type>().clone(),
            images: bytes_of(field(&image, "encoded_image_string")?)?,
            sizes: [number("width")?, number("height")?],
            bounds: [bound("min")?, bound("max")?],
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
        if is_named { self.plugins.value(row) } else { "" }
    }

    fn value(&self, row: usize) -> SummaryValue<'_> {
        if self.simple.is_valid(row) {
            return SummaryValue::Scalar(self.simple.value(row).into());
        }
        if self.image.is_valid(row) {
            let [width, height] = self.sizes.each_ref().map(|sizes| sizes.value(row));
            return SummaryValue::Image { bytes: Cow::Borrowed(self.images.value(row)), width, height };
        }
        if self.histo.is_valid(row) {
            return self.histogram(row);
        }
        match (self.audio.is_valid(row), self.tensors.is_valid(row)) {
            (true, _) => SummaryValue::Audio,
            (false, true) => SummaryValue::of_tensor(self.tensors.value(row), self.plugin(row)),
            (false, false) => SummaryValue::None,
        }
    }

    /// A histogram of TensorFlow 1, which has the right edges of its buckets, as TensorBoard shows it: without empty buckets at
    /// the ends, and from the minimum to the maximum of the values.
    fn histogram(&self, row: usize) -> SummaryValue<'_> {
        let numbers = |lists: &ListArray| lists.value(row).as_primitive::<Float64Type>().values().to_vec();
        let (limits, counts) = (numbers(&self.limits), numbers(&self.buckets));
        let [min, max] = self.bounds.each_ref().map(|bounds| bounds.value(row));
        let is_filled = |count: &f64| *count > 0.0;
        let (first, last) = (counts.iter().position(is_filled), counts.iter().rposition(is_filled));
        let (Some(first), Some(last)) = (first, last) else { return SummaryValue::Histogram(Vec::new()) };
        let mut left = min;
        let filled = counts.iter().zip(&limits).enumerate().take(last + 1).skip(first);
        let buckets = filled.map(|(bucket, (count, limit))| {
            let right = if bucket == last { max } else { *limit };
            [std::mem::replace(&mut left, right), right, *count]
        });
        SummaryValue::Histogram(buckets.collect())
    }
}

fn field<'a>(array: &'a StructArray, name: &str) -> Result<&'a ArrayRef> {
    array.column_by_name(name).ok_or_else(|| internal_datafusion_err!("a summary has no field {name}"))
}

/// The columns of [`event_value`]: the plugin and the value of each summary.
fn columns(summaries: &Summaries) -> Result<ArrayRef> {
    let values: Vec<_> = (0..summaries.len).map(|row| summaries.value(row)).collect();
    let plugins = (0..summaries.len).map(|row| Some(summaries.plugin(row)).filter(|plugin| !plugin.is_empty()));
    let scalar = |value: &SummaryValue<'_>| match value {
        SummaryValue::Scalar(value) => Some(*value),
        _ => None,
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(plugins.collect::<StringViewArray>()),
        Arc::new(values.iter().map(SummaryValue::kind).collect::<StringViewArray>()),
        Arc::new(values.iter().map(scalar).collect::<Float64Array>()),
        Arc::new(values.iter().map(SummaryValue::text).collect::<StringViewArray>()),
        Arc::new(images(&values)?),
        Arc::new(histograms(&values)?),
    ];
    Ok(Arc::new(StructArray::try_new(fields(), columns, None)?))
}

fn images(values: &[SummaryValue<'_>]) -> Result<StructArray> {
    let images: Vec<_> = values.iter().map(SummaryValue::image).collect();
    let size = |side: fn(&(&[u8], i32, i32)) -> i32| images.iter().map(move |image| image.as_ref().map(side));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(images.iter().map(|image| image.map(|(bytes, ..)| bytes)).collect::<BinaryViewArray>()),
        Arc::new(size(|(_, width, _)| *width).collect::<Int32Array>()),
        Arc::new(size(|(.., height)| *height).collect::<Int32Array>()),
    ];
    let nulls = images.iter().map(Option::is_some).collect();
    Ok(StructArray::try_new(image_fields(), columns, Some(nulls))?)
}

fn histograms(values: &[SummaryValue<'_>]) -> Result<StructArray> {
    let buckets: Vec<_> = values.iter().map(SummaryValue::buckets).collect();
    let part = |part: fn(&[f64; 3]) -> f64| {
        let lists = buckets.iter().map(|buckets| buckets.map(|buckets| buckets.iter().map(part).map(Some)));
        Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists)) as ArrayRef
    };
    let columns = vec![part(|[left, ..]| *left), part(|[_, right, _]| *right), part(|[.., count]| *count)];
    let nulls = buckets.iter().map(Option::is_some).collect();
    Ok(StructArray::try_new(histogram_fields(), columns, Some(nulls))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `TensorProto` with these fields.
    fn tensor(dtype: u8, shape: &[u8], values: &[u8]) -> Vec<u8> {
        let dims: Vec<u8> = shape.iter().flat_map(|size| [0x12, 2, 0x08, *size]).collect();
        [&[0x08, dtype, 0x12, dims.len() as u8], &dims[..], values].concat()
    }

    fn strings(texts: &[&[u8]]) -> Vec<u8> {
        let values: Vec<u8> = texts.iter().flat_map(|text| [&[0x42, text.len() as u8], *text].concat()).collect();
        tensor(7, &[texts.len() as u8], &values)
    }

    #[test]
    fn the_form_of_a_tensor_determines_its_kind() {
        let number = [&[0x2a, 4][..], &0.5f32.to_le_bytes()].concat();
        assert_eq!(SummaryValue::of_tensor(&tensor(1, &[], &number), ""), SummaryValue::Scalar(0.5));
        assert_eq!(SummaryValue::of_tensor(&tensor(1, &[1], &number), "scalars"), SummaryValue::Scalar(0.5));
        let bucket = [&[0x2a, 12][..], &[0.0f32, 1.0, 3.0].map(f32::to_le_bytes).concat()].concat();
        let expected = SummaryValue::Histogram(vec![[0.0, 1.0, 3.0]]);
        assert_eq!(SummaryValue::of_tensor(&tensor(1, &[1, 3], &bucket), ""), expected);
        assert_eq!(SummaryValue::of_tensor(&tensor(1, &[0, 3], &[]), ""), SummaryValue::Histogram(Vec::new()));
        assert_eq!(SummaryValue::of_tensor(&strings(&[b"a", b"b"]), ""), SummaryValue::Text("a\nb".to_owned()));
        // Three texts, of which the third is no image.
        assert_eq!(
            SummaryValue::of_tensor(&strings(&[b"3", b"2", b"1"]), "text"),
            SummaryValue::Text("3\n2\n1".to_owned())
        );
    }

    #[test]
    fn tensors_of_other_plugins_and_corrupt_ones_have_no_value() {
        let number = tensor(1, &[], &[&[0x2a, 4][..], &0.5f32.to_le_bytes()].concat());
        assert_eq!(SummaryValue::of_tensor(&number, "hparams"), SummaryValue::Tensor);
        assert_eq!(SummaryValue::of_tensor(&strings(&[b"a", b"b"]), "audio"), SummaryValue::Audio);
        for corrupt in [&b""[..], b"\xff", b"\x08\x01\x12\x04\x12\x02\x08\x09", &strings(&[b"\xff"])] {
            assert_eq!(SummaryValue::of_tensor(corrupt, ""), SummaryValue::Tensor, "{corrupt:?}");
        }
    }

    #[test]
    fn times_that_do_not_fit_are_null() {
        let times: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.5), Some(f64::NAN), Some(1e300), None]));
        let value = event_time().invoke_with_args(datafusion::logical_expr::ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(times)],
            arg_fields: vec![Arc::new(Field::new("time", DataType::Float64, true))],
            number_rows: 4,
            return_field: Arc::new(Field::new("event_time", DataType::Null, true)),
            config_options: Arc::default(),
        });
        let ColumnarValue::Array(found) = value.unwrap() else { panic!("an array") };
        let expected = TimestampMicrosecondArray::from(vec![Some(1_500_000), None, None, None]).with_timezone(UTC);
        assert_eq!(found.as_ref(), &expected as &dyn Array);
    }
}
