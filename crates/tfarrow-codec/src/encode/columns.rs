//! A batch's arrays as columns that can be measured and written, by their plans.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, cast::AsArray, new_empty_array};

use super::{
    feature::{self, Column, Rows, Steps, UnsetColumn},
    lists::{self, Lists},
    losses::Ledger,
    normalize::{convert, unpack},
    plan::ColumnPlan,
    record::Message,
};
use crate::{Kind, Result, Shape, Values};

/// The column of a feature, `None` where its type says that no row has it.
///
/// # Errors
/// A value that would change, where no loss is allowed.
pub(super) fn column(plan: &ColumnPlan, array: &ArrayRef, ledger: &mut Ledger<'_>) -> Result<Option<Box<dyn Column>>> {
    let column = match plan.shape {
        Shape::Scalar => scalars(plan, array, ledger),
        // Steps are no column of their own: a feature list may have several.
        Shape::List | Shape::Steps => lists(plan, array, ledger).map(Some),
    };
    column.map_err(|e| e.with_feature(&plan.name))
}

fn scalars(plan: &ColumnPlan, array: &ArrayRef, ledger: &mut Ledger<'_>) -> Result<Option<Box<dyn Column>>> {
    let Some(values) = plan.leaf.values() else { return Ok(None) };
    let array = convert(array, &plan.leaf, &Some, ledger)?;
    let rows = Rows::Scalars(array.nulls().cloned());
    Ok(Some(feature::column(&plan.feature, rows, true, values, &array)))
}

fn lists(plan: &ColumnPlan, array: &ArrayRef, ledger: &mut Ledger<'_>) -> Result<Box<dyn Column>> {
    let (mut lists, items) = lists::split(array)?;
    let items = items_of(plan, &mut lists, &items, &Some, ledger)?;
    let typed = typed(plan, items);
    if typed.is_none() {
        check_kind(&lists, &Some, ledger)?;
    }
    Ok(finish(plan, Rows::Lists(lists), typed))
}

/// The steps of a feature list that one column holds.
///
/// # Errors
/// A value that would change, where no loss is allowed.
pub(super) fn steps(plan: &ColumnPlan, array: &ArrayRef, ledger: &mut Ledger<'_>) -> Result<Box<dyn Steps>> {
    steps_of(plan, array, ledger).map_err(|e| e.with_feature(&plan.name))
}

fn steps_of(plan: &ColumnPlan, array: &ArrayRef, ledger: &mut Ledger<'_>) -> Result<Box<dyn Steps>> {
    let (steps, inner) = lists::split(array)?;
    let (mut lists, items) = lists::split(&inner)?;
    let row_of = |step| steps.list_of(step);
    let items = items_of(plan, &mut lists, &items, &row_of, ledger)?;
    let typed = typed(plan, items);
    if typed.is_none() {
        check_kind(&lists, &row_of, ledger)?;
        lists.nullify_all();
    }
    let (values, items) = typed.unwrap_or_else(no_values);
    Ok(feature::steps(steps, lists, values, &items))
}

/// Refuses columns of one feature list that do not join: with other steps, or with two lists for one step.
pub(super) fn check_joins(parts: &[Box<dyn Steps>], rows: usize, ledger: &mut Ledger<'_>) -> Result<()> {
    let Some((first, others)) = parts.split_first().filter(|(_, others)| !others.is_empty()) else { return Ok(()) };
    let mut times = 0;
    for row in 0..rows {
        let steps = first.steps().get(row);
        let count = steps.as_ref().map(Range::len);
        let differs = others.iter().any(|part| part.steps().get(row).as_ref().map(Range::len) != count);
        let lists = |step| parts.iter().filter(|part| part.list(row, step).is_some()).count();
        if differs || (0..count.unwrap_or(0)).any(|step| lists(step) > 1) {
            ledger.refuse(row, "steps that differ from those of its other columns", "make one of them null")?;
            times += 1;
        }
    }
    ledger.count("feature lists whose columns differ taken from the first", times);
    Ok(())
}

/// Refuses a feature that has values in more than one of its columns.
pub(super) fn check_kinds(
    plan: &ColumnPlan,
    features: &Message<'_>,
    rows: usize,
    ledger: &mut Ledger<'_>,
) -> Result<()> {
    let mut times = 0;
    for row in (0..rows).filter(|row| features.columns_of(&plan.feature, *row) > 1) {
        ledger.refuse(row, "values of more than one kind", "make all but one of its columns null")?;
        times += 1;
    }
    ledger.count("features of more than one kind written with the last", times);
    Ok(())
}

/// The values of all lists, which have no nulls then, of the type that the plan says.
fn items_of(
    plan: &ColumnPlan,
    lists: &mut Lists,
    items: &ArrayRef,
    row_of: &dyn Fn(usize) -> Option<usize>,
    ledger: &mut Ledger<'_>,
) -> Result<ArrayRef> {
    let (items, leaf) = unpack(items, &plan.leaf)?;
    let items = lists.drop_nulls(items, row_of, ledger)?;
    convert(&items, &leaf, &|item| lists.list_of(item).and_then(row_of), ledger)
}

/// The values and their type. Where the column's type says none, the metadata's kind does, and there are no values.
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

fn finish(plan: &ColumnPlan, rows: Rows, typed: Option<(Values, ArrayRef)>) -> Box<dyn Column> {
    let has_kind = typed.is_some();
    let (values, items) = typed.unwrap_or_else(no_values);
    feature::column(&plan.feature, rows, has_kind, values, &items)
}

fn no_values() -> (Values, ArrayRef) {
    (Values::Binary, new_empty_array(&Values::Binary.data_type()))
}

/// Refuses lists of no kind, or counts them.
fn check_kind(lists: &Lists, row_of: &dyn Fn(usize) -> Option<usize>, ledger: &mut Ledger<'_>) -> Result<()> {
    let mut times = 0;
    for row in (0..lists.len()).filter(|list| lists.get(*list).is_some()).filter_map(row_of) {
        ledger.refuse(
            row,
            "an empty list whose type says no kind",
            "give the column a type, with CAST or arrow_cast",
        )?;
        times += 1;
    }
    ledger.count("empty lists of no type written as features without a kind", times);
    Ok(())
}

/// The column of the features without a kind, `None` where its type says that no row has any.
///
/// # Errors
/// A feature that has a value all the same, where no loss is allowed.
pub(super) fn unset(
    plan: &ColumnPlan,
    array: &ArrayRef,
    features: &Message<'_>,
    ledger: &mut Ledger<'_>,
) -> Result<Option<Box<dyn Column>>> {
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

/// A column of single values, as the type that its plan says.
///
/// # Errors
/// A value that would change, where no loss is allowed.
pub(super) fn converted(plan: &ColumnPlan, array: &ArrayRef, ledger: &mut Ledger<'_>) -> Result<ArrayRef> {
    convert(array, &plan.leaf, &Some, ledger)
}

/// The column of raw records.
///
/// # Errors
/// A null, where no loss is allowed.
pub(super) fn records(plan: &ColumnPlan, array: &ArrayRef, ledger: &mut Ledger<'_>) -> Result<ArrayRef> {
    let array = converted(plan, array, ledger)?;
    if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
        let first = (0..nulls.len()).find(|row| nulls.is_null(*row)).unwrap_or_default();
        ledger.refuse(first, "null in place of a record", "leave the row out")?;
        ledger.count("nulls written as empty records", nulls.null_count() as u64);
    }
    Ok(array)
}

/// The bytes of each value of an array of bytes or text. Null has none.
pub(super) fn bytes_of<'a>(array: &'a ArrayRef, values: Option<Values>) -> Box<dyn Fn(usize) -> &'a [u8] + 'a> {
    let valid = |row| array.is_valid(row);
    match values {
        Some(Values::Binary) => {
            let array = array.as_binary::<i32>();
            Box::new(move |row| if valid(row) { array.value(row) } else { &[] })
        }
        Some(Values::BinaryView) => {
            let array = array.as_binary_view();
            Box::new(move |row| if valid(row) { array.value(row) } else { &[] })
        }
        Some(Values::Utf8) => {
            let array = array.as_string::<i32>();
            Box::new(move |row| if valid(row) { array.value(row).as_bytes() } else { &[] })
        }
        Some(Values::Utf8View) => {
            let array = array.as_string_view();
            Box::new(move |row| if valid(row) { array.value(row).as_bytes() } else { &[] })
        }
        // The plan has refused them for what this is for.
        Some(Values::Float32 | Values::Int64) | None => Box::new(|_| &[]),
    }
}
