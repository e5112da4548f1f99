//! Functions of DataFusion whose results can be far longer than their arguments, with a limit for
//! the result of one call. The memory pool of a session does not count the values of expressions,
//! so that one call could exhaust the memory of the machine.
//!
//! Workaround for DataFusion 55: apache/datafusion#5415, open. Delete when the memory pool counts
//! values of expressions.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{Array, ArrayRef, Int64Array, cast::AsArray, types::IntervalMonthDayNanoType};
use arrow_buffer::IntervalMonthDayNano;
use datafusion::{
    arrow::{
        compute::{cast, kernels::length::length},
        datatypes::{DataType, FieldRef, IntervalUnit, TimeUnit},
    },
    common::exec_err,
    error::Result,
    logical_expr::{
        ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
        ScalarUDFImpl, Signature,
        simplify::{ExprSimplifyResult, SimplifyContext},
    },
};

/// Maximum bytes of the result of one call, if the memory limit of the session is not lower.
const MAX_CALL_BYTES: usize = 1 << 30;

/// The functions that have a limit.
const NAMES: [&str; 8] = [
    "array_repeat",
    "array_resize",
    "generate_series",
    "lpad",
    "range",
    "repeat",
    "replace",
    "rpad",
];

/// The functions of a session whose results can be far longer than their arguments, with a limit.
pub(crate) fn bounded(
    functions: &HashMap<String, Arc<ScalarUDF>>,
    memory_limit: Option<usize>,
) -> impl Iterator<Item = ScalarUDF> {
    let limit = memory_limit.unwrap_or(usize::MAX).min(MAX_CALL_BYTES);
    let inner = NAMES.iter().filter_map(|name| functions.get(*name));
    inner.map(move |inner| {
        ScalarUDF::from(BoundedFunction {
            inner: ScalarUDF::clone(inner),
            limit,
        })
    })
}

/// A function that returns an error in place of a result above the limit.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BoundedFunction {
    inner: ScalarUDF,
    limit: usize,
}

impl ScalarUDFImpl for BoundedFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, context)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = result_bytes(self.name(), &args)?;
        if bytes > self.limit as u128 {
            return exec_err!(
                "the values of a call of {} take {bytes} bytes, more than the limit of {}: a memory limit, or 1 GiB; call it \
                 with smaller numbers, or for fewer rows (SET datafusion.execution.batch_size)",
                self.name(),
                self.limit
            );
        }
        self.inner.invoke_with_args(args)
    }
}

/// The bytes of the result of a call, at most.
fn result_bytes(name: &str, args: &ScalarFunctionArgs) -> Result<u128> {
    let sizes = match (name, args.args.as_slice()) {
        ("repeat", [text, count]) => product(&byte_lengths(text)?, &numbers(count)?),
        // A character has up to four bytes.
        ("lpad" | "rpad", [_, length, ..]) => product(&numbers(length)?, &Sizes::Same(4)),
        ("replace", [text, from, to]) => replaced(
            &byte_lengths(text)?,
            &byte_lengths(from)?,
            &byte_lengths(to)?,
        ),
        ("array_repeat", [value, count]) => product(&average_bytes(value), &numbers(count)?),
        ("array_resize", [list, length, ..]) => product(&average_bytes(list), &numbers(length)?),
        ("range" | "generate_series", [stop]) => product(&numbers(stop)?, &Sizes::Same(8)),
        ("range" | "generate_series", [start, stop]) => {
            series(&points(start)?, &points(stop)?, &Sizes::Same(1))
        }
        ("range" | "generate_series", [start, stop, step]) => {
            series(&points(start)?, &points(stop)?, &points(step)?)
        }
        // The function itself refuses other arguments.
        _ => Sizes::Same(0),
    };
    let rows = if args.args.iter().all(is_scalar) {
        1
    } else {
        args.number_rows
    };
    Ok((0..rows).fold(0, |sum: u128, row| {
        sum.saturating_add(sizes.at(row).unsigned_abs())
    }))
}

fn is_scalar(value: &ColumnarValue) -> bool {
    matches!(value, ColumnarValue::Scalar(_))
}

/// A number for each row: a length, a count, or a point of a series.
enum Sizes {
    Same(i128),
    Each(Vec<i128>),
}

impl Sizes {
    /// The number of a row; 0 for null.
    fn at(&self, row: usize) -> i128 {
        match self {
            Self::Same(size) => *size,
            Self::Each(sizes) => sizes.get(row).copied().unwrap_or(0),
        }
    }

    /// The numbers of a function of other numbers.
    fn of(inputs: &[&Self], size: impl Fn(usize) -> i128) -> Self {
        let rows = inputs.iter().find_map(|input| match input {
            Self::Same(_) => None,
            Self::Each(sizes) => Some(sizes.len()),
        });
        match rows {
            None => Self::Same(size(0)),
            Some(rows) => Self::Each((0..rows).map(size).collect()),
        }
    }
}

/// Products of two numbers, of which negative ones are 0.
fn product(left: &Sizes, right: &Sizes) -> Sizes {
    Sizes::of(&[left, right], |row| {
        left.at(row).max(0).saturating_mul(right.at(row).max(0))
    })
}

/// Lengths of texts in which all parts of one length are replaced by parts of another one.
fn replaced(text: &Sizes, from: &Sizes, to: &Sizes) -> Sizes {
    Sizes::of(&[text, from, to], |row| {
        let parts = text.at(row) / from.at(row).max(1) + 1;
        text.at(row) + parts.saturating_mul(to.at(row))
    })
}

/// Bytes of series of 8 bytes from a point to another one.
fn series(start: &Sizes, stop: &Sizes, step: &Sizes) -> Sizes {
    Sizes::of(&[start, stop, step], |row| {
        // Points of opposite directions make no series.
        let length = (stop.at(row) - start.at(row)).abs() / step.at(row).abs().max(1);
        if (stop.at(row) < start.at(row)) == (step.at(row) < 0) {
            (length + 1) * 8
        } else {
            0
        }
    })
}

/// Applies a function to an array; to an array of one value for a scalar.
fn each(value: &ColumnarValue, sizes: impl Fn(&ArrayRef) -> Result<Vec<i128>>) -> Result<Sizes> {
    Ok(match value {
        ColumnarValue::Array(array) => Sizes::Each(sizes(array)?),
        ColumnarValue::Scalar(scalar) => {
            Sizes::Same(sizes(&scalar.to_array()?)?.first().copied().unwrap_or(0))
        }
    })
}

fn integers(array: &dyn Array) -> Result<Vec<i128>> {
    let array = cast(array, &DataType::Int64)?;
    let array: &Int64Array = array.as_primitive();
    Ok(array
        .iter()
        .map(|value| value.unwrap_or(0).into())
        .collect())
}

fn numbers(value: &ColumnarValue) -> Result<Sizes> {
    each(value, |array| integers(array))
}

fn byte_lengths(value: &ColumnarValue) -> Result<Sizes> {
    each(value, |array| integers(&length(array)?))
}

/// Bytes of each value, on average.
fn average_bytes(value: &ColumnarValue) -> Sizes {
    Sizes::Same(match value {
        ColumnarValue::Array(array) => (array.get_array_memory_size() / array.len().max(1)) as i128,
        ColumnarValue::Scalar(scalar) => scalar.size() as i128,
    })
}

/// Points of a series, or steps between them: integers, or times in nanoseconds.
fn points(value: &ColumnarValue) -> Result<Sizes> {
    each(value, |array| match array.data_type() {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let micros = integers(&cast(
                array,
                &DataType::Timestamp(TimeUnit::Microsecond, None),
            )?)?;
            Ok(micros.into_iter().map(|micros| micros * 1_000).collect())
        }
        DataType::Interval(_) => {
            let steps = cast(array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
            Ok(steps.iter().map(|step| step.map_or(0, nanos)).collect())
        }
        _ => integers(array),
    })
}

/// The shortest time of an interval, in nanoseconds.
fn nanos(interval: IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.months) * 28 + i128::from(interval.days);
    days * 86_400_000_000_000 + i128::from(interval.nanoseconds)
}
