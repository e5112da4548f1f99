//! Making writable columns ([`FeatureColumn`], [`Steps`]) from the arrays of a batch, by the plans
//! of the schema.
//!
//! ```text
//! ArrayRef ─▶ lists::split ─▶ drop nulls in lists ─▶ normalize::convert ─▶ feature::column ─▶ Box<dyn FeatureColumn>
//!             offsets, values                         values of a feature
//! ```

use std::ops::Range;

use arrow_array::{Array, ArrayRef, cast::AsArray, new_empty_array};

use super::{
    feature::{self, FeatureColumn, RowValues, Steps, UnsetColumn},
    lists::{self, Lists},
    losses::Ledger,
    normalize::{convert, unpack},
    plan::ColumnPlan,
    record::Message,
};
use crate::{Kind, Result, Shape, Values};

/// Makes the column of a feature; `None` for a column of single values of type null, whose rows are
/// all absent.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for a value that would change, unless losses are
/// allowed.
pub(super) fn column(
    plan: &ColumnPlan,
    array: &ArrayRef,
    ledger: &mut Ledger<'_>,
) -> Result<Option<Box<dyn FeatureColumn>>> {
    let column = match plan.shape {
        Shape::Scalar => scalars(plan, array, ledger),
        // The steps of a feature list may come from several columns, so that `steps` makes parts of
        // them.
        Shape::List | Shape::Steps => lists(plan, array, ledger).map(Some),
    };
    column.map_err(|e| e.with_feature(&plan.name))
}

/// Makes a column of one value a row. A null is a row without the feature.
fn scalars(
    plan: &ColumnPlan,
    array: &ArrayRef,
    ledger: &mut Ledger<'_>,
) -> Result<Option<Box<dyn FeatureColumn>>> {
    let Some(values) = plan.leaf.values() else {
        return Ok(None);
    };
    let array = convert(array, &plan.leaf, &Some, ledger)?;
    let rows = RowValues::Scalars(array.nulls().cloned());
    Ok(Some(feature::column(
        &plan.feature,
        rows,
        true,
        values,
        &array,
    )))
}

/// Makes a column of a list a row. A null is a row without the feature; an empty list is a feature
/// without values.
fn lists(
    plan: &ColumnPlan,
    array: &ArrayRef,
    ledger: &mut Ledger<'_>,
) -> Result<Box<dyn FeatureColumn>> {
    let (mut lists, items) = lists::split(array)?;
    let items = items_of(plan, &mut lists, &items, &Some, ledger)?;
    let typed = typed(plan, items);
    if typed.is_none() {
        check_kind(&lists, &Some, ledger)?;
    }
    Ok(finish(plan, RowValues::Lists(lists), typed))
}

/// Makes the part of a feature list that one column has.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for a value that would change, unless losses are
/// allowed.
pub(super) fn steps(
    plan: &ColumnPlan,
    array: &ArrayRef,
    ledger: &mut Ledger<'_>,
) -> Result<Box<dyn Steps>> {
    steps_of(plan, array, ledger).map_err(|e| e.with_feature(&plan.name))
}

/// Splits two levels of lists, and makes the part. A null step is a step without a kind, or with
/// that of another column.
fn steps_of(
    plan: &ColumnPlan,
    array: &ArrayRef,
    ledger: &mut Ledger<'_>,
) -> Result<Box<dyn Steps>> {
    let (steps, inner) = lists::split(array)?;
    let (mut lists, items) = lists::split(&inner)?;
    let items = items_of(
        plan,
        &mut lists,
        &items,
        &|step| steps.list_of(step),
        ledger,
    )?;
    let typed = typed(plan, items);
    if typed.is_none() {
        check_kind(&lists, &|step| steps.list_of(step), ledger)?;
        lists.nullify_all();
    }
    let (values, items) = typed.unwrap_or_else(no_values);
    Ok(feature::steps(steps, lists, values, &items))
}

/// Checks that the columns of one feature list fit together: all of them have the same number of
/// steps in a row, and at most one of them has a list for each step.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for a row in which they do not, unless losses are
/// allowed.
///
/// ```text
/// int64 column   [[1], null]        float column   [null, [0.5]]     steps: [1], [0.5]
/// int64 column   [[1], null]        float column   [null]            rejected: 2 steps and 1 step
/// int64 column   [[1]]              float column   [[0.5]]           rejected: two lists for step 0
/// ```
pub(super) fn check_joins(
    parts: &[Box<dyn Steps>],
    rows: usize,
    ledger: &mut Ledger<'_>,
) -> Result<()> {
    let Some((first, others)) = parts.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Ok(());
    };
    let mut times = 0;
    for row in 0..rows {
        let steps = first.steps().get(row);
        let count = steps.as_ref().map(Range::len);
        let differs = others
            .iter()
            .any(|part| part.steps().get(row).as_ref().map(Range::len) != count);
        if differs || have_two_lists(parts, row, count.unwrap_or(0)) {
            ledger.refuse(
                row,
                "steps that differ from those of its other columns",
                "make one of them null",
            )?;
            times += 1;
        }
    }
    ledger.count(
        "feature lists whose columns differ taken from the first",
        times,
    );
    Ok(())
}

/// Returns whether several columns have a list for one of the first `count` steps of a row.
fn have_two_lists(parts: &[Box<dyn Steps>], row: usize, count: usize) -> bool {
    for step in 0..count {
        let lists = parts
            .iter()
            .filter(|part| part.list(row, step).is_some())
            .count();
        if lists > 1 {
            return true;
        }
    }
    false
}

/// Checks that a feature has a value in at most one of its columns.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for a row with several, unless losses are allowed.
///
/// Called for each column of a split feature after it was added to `features`. If losses are
/// allowed, all of the values are written, and readers take the last.
pub(super) fn check_kinds(
    plan: &ColumnPlan,
    features: &Message<'_>,
    rows: usize,
    ledger: &mut Ledger<'_>,
) -> Result<()> {
    let mut times = 0;
    for row in (0..rows).filter(|row| features.columns_of(&plan.feature, *row) > 1) {
        ledger.refuse(
            row,
            "values of more than one kind",
            "make all but one of its columns null",
        )?;
        times += 1;
    }
    ledger.count(
        "features of more than one kind written with the last",
        times,
    );
    Ok(())
}

/// Converts the values of all lists to the type of the plan, without the nulls among them. `row_of`
/// maps a list to its row.
fn items_of(
    plan: &ColumnPlan,
    lists: &mut Lists,
    items: &ArrayRef,
    row_of: &dyn Fn(usize) -> Option<usize>,
    ledger: &mut Ledger<'_>,
) -> Result<ArrayRef> {
    let (items, leaf) = unpack(items, &plan.leaf)?;
    let items = lists.drop_nulls(items, row_of, ledger)?;
    convert(
        &items,
        &leaf,
        &|item| lists.list_of(item).and_then(row_of),
        ledger,
    )
}

/// Returns the values and their type. For a column whose type has no values, the kind of the
/// metadata is used, without values; `None` if there is none either.
///
/// ```text
/// List<Int64>                              Int64, the values
/// List<Null>, tfarrow.kind = float_list    Float32, no values
/// List<Null>                               None
/// ```
fn typed(plan: &ColumnPlan, items: ArrayRef) -> Option<(Values, ArrayRef)> {
    if let Some(values) = plan.leaf.values() {
        return Some((values, items));
    }
    let values = match plan.kind? {
        Kind::Bytes => Values::Binary,
        Kind::Float => Values::Float32,
        Kind::Int64 => Values::Int64,
    };
    Some((values, new_empty_array(&values.data_type())))
}

/// Makes the column of a feature. Without a type, its lists are written without a kind.
fn finish(
    plan: &ColumnPlan,
    rows: RowValues,
    typed: Option<(Values, ArrayRef)>,
) -> Box<dyn FeatureColumn> {
    let has_kind = typed.is_some();
    let (values, items) = typed.unwrap_or_else(no_values);
    feature::column(&plan.feature, rows, has_kind, values, &items)
}

/// Returns an empty array, for lists without a kind, which have no values.
fn no_values() -> (Values, ArrayRef) {
    (Values::Binary, new_empty_array(&Values::Binary.data_type()))
}

/// Rejects lists of a column without a kind, or counts them as losses.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for the first list that is not null, unless losses
/// are allowed.
fn check_kind(
    lists: &Lists,
    row_of: &dyn Fn(usize) -> Option<usize>,
    ledger: &mut Ledger<'_>,
) -> Result<()> {
    let mut times = 0;
    for row in (0..lists.len())
        .filter(|list| lists.get(*list).is_some())
        .filter_map(row_of)
    {
        ledger.refuse_null_type(row, "an empty list whose type says no kind")?;
        times += 1;
    }
    ledger.count(
        "empty lists of no type written as features without a kind",
        times,
    );
    Ok(())
}

/// Makes the column of the features without a kind from the column `_tfarrow_unset`; `None` if that
/// has the type null.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for a named feature that has a value, unless
/// losses are allowed.
pub(super) fn unset(
    plan: &ColumnPlan,
    array: &ArrayRef,
    features: &Message<'_>,
    ledger: &mut Ledger<'_>,
) -> Result<Option<Box<dyn FeatureColumn>>> {
    if plan.leaf.values().is_none() {
        return Ok(None);
    }
    let (mut lists, items) = lists::split(array)?;
    let items = items_of(plan, &mut lists, &items, &Some, ledger)?;
    let name = bytes_of(&items, plan.leaf.values());
    let mut column = UnsetColumn::default();
    let mut times = 0;
    for row in 0..lists.len() {
        for index in lists.get(row).unwrap_or_default() {
            let name = str::from_utf8(name(index)).unwrap_or_default();
            if features.has(name, row) {
                ledger.refuse(
                    row,
                    format_args!("the name {name:?}, of a feature that has a value"),
                    "null one of the two",
                )?;
                times += 1;
            } else {
                column.push(name);
            }
        }
        column.end_row();
    }
    ledger.count("names of features that have a value dropped", times);
    Ok(Some(Box::new(column)))
}

/// Converts a column of single values to the type of its plan.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for a value that would change, unless losses are
/// allowed.
pub(super) fn converted(
    plan: &ColumnPlan,
    array: &ArrayRef,
    ledger: &mut Ledger<'_>,
) -> Result<ArrayRef> {
    convert(array, &plan.leaf, &Some, ledger)
}

/// Returns the column of raw records.
///
/// # Errors
/// [`ErrorKind::Lossy`](crate::ErrorKind::Lossy) for a null, unless losses are allowed.
pub(super) fn records(
    plan: &ColumnPlan,
    array: &ArrayRef,
    ledger: &mut Ledger<'_>,
) -> Result<ArrayRef> {
    let array = converted(plan, array, ledger)?;
    if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
        let first = (0..nulls.len())
            .find(|row| nulls.is_null(*row))
            .unwrap_or_default();
        ledger.refuse(first, "null in place of a record", "leave the row out")?;
        ledger.count("nulls written as empty records", nulls.null_count() as u64);
    }
    Ok(array)
}

/// Returns a function from a row to the bytes of its value, for an array of bytes or text. A null
/// has no bytes.
pub(super) fn bytes_of<'a>(
    array: &'a ArrayRef,
    values: Option<Values>,
) -> Box<dyn Fn(usize) -> &'a [u8] + 'a> {
    match values {
        Some(Values::Binary) => {
            let array = array.as_binary::<i32>();
            Box::new(move |row| {
                if array.is_valid(row) {
                    array.value(row)
                } else {
                    &[]
                }
            })
        }
        Some(Values::BinaryView) => {
            let array = array.as_binary_view();
            Box::new(move |row| {
                if array.is_valid(row) {
                    array.value(row)
                } else {
                    &[]
                }
            })
        }
        Some(Values::Utf8) => {
            let array = array.as_string::<i32>();
            Box::new(move |row| {
                if array.is_valid(row) {
                    array.value(row).as_bytes()
                } else {
                    &[]
                }
            })
        }
        Some(Values::Utf8View) => {
            let array = array.as_string_view();
            Box::new(move |row| {
                if array.is_valid(row) {
                    array.value(row).as_bytes()
                } else {
                    &[]
                }
            })
        }
        // The plan rejects these types for the columns that this function reads.
        Some(Values::Float32 | Values::Int64) | None => Box::new(|_| &[]),
    }
}
