//! One record as a dict.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, RecordBatch,
    cast::AsArray,
    types::{Float32Type, Float64Type, Int64Type, UInt64Type},
};
use arrow_schema::{DataType, Schema};
use pyo3::{
    IntoPyObjectExt, intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyDict, PyList, PyString, PyTuple},
};

use crate::{
    batch::{cast, dtype, numbers, tensor_shape},
    capsule::Memory,
    ndarray::ndarray,
};

static FLOAT32: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The columns of the rows that become dicts.
pub(crate) struct RowColumns(Vec<RowColumn>);

struct RowColumn {
    /// The name, which all dicts share: making one takes as long as making a value.
    name: Py<PyString>,
    /// The shape of a tensor.
    shape: Option<Vec<usize>>,
}

impl RowColumns {
    pub(crate) fn new(py: Python<'_>, schema: &Schema) -> Self {
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            columns.push(RowColumn {
                name: PyString::new(py, field.name()).unbind(),
                shape: tensor_shape(field),
            });
        }
        Self(columns)
    }

    /// The row of a batch with one row, as a dict: an int, a `numpy.float32`, a str or bytes for one
    /// value, an array of numpy for a list of numbers or a tensor, a list for other lists, a dict for
    /// a struct, and None for no value.
    pub(crate) fn row<'py>(
        &self,
        py: Python<'py>,
        batch: &RecordBatch,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (RowColumn { name, shape }, array) in self.0.iter().zip(batch.columns()) {
            let mut found = value(py, array, 0)?;
            if let Some(shape) = shape
                && !found.is_none()
            {
                let shape = PyTuple::new(py, shape)?;
                found = found.call_method1(intern!(py, "reshape"), (shape,))?;
            }
            dict.set_item(name, found)?;
        }
        Ok(dict)
    }
}

/// A value of an array.
fn value<'py>(py: Python<'py>, array: &ArrayRef, index: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(index) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Int64 => array
            .as_primitive::<Int64Type>()
            .value(index)
            .into_bound_py_any(py),
        DataType::Float32 => {
            let number = array.as_primitive::<Float32Type>().value(index);
            FLOAT32.import(py, "numpy", "float32")?.call1((number,))
        }
        DataType::Float64 => array
            .as_primitive::<Float64Type>()
            .value(index)
            .into_bound_py_any(py),
        DataType::UInt64 => array
            .as_primitive::<UInt64Type>()
            .value(index)
            .into_bound_py_any(py),
        DataType::Boolean => array.as_boolean().value(index).into_bound_py_any(py),
        DataType::Binary => Ok(bytes(py, array.as_binary::<i32>().value(index))),
        DataType::LargeBinary => Ok(bytes(py, array.as_binary::<i64>().value(index))),
        DataType::BinaryView => Ok(bytes(py, array.as_binary_view().value(index))),
        DataType::Utf8 => array.as_string::<i32>().value(index).into_bound_py_any(py),
        DataType::LargeUtf8 => array.as_string::<i64>().value(index).into_bound_py_any(py),
        DataType::Utf8View => array.as_string_view().value(index).into_bound_py_any(py),
        DataType::List(_) => items(py, &array.as_list::<i32>().value(index)),
        DataType::LargeList(_) => items(py, &array.as_list::<i64>().value(index)),
        DataType::FixedSizeList(_, _) => items(py, &array.as_fixed_size_list().value(index)),
        DataType::Map(_, _) => {
            let entries: ArrayRef = Arc::new(array.as_map().value(index));
            items(py, &entries)
        }
        DataType::Struct(_) => {
            let structs = array.as_struct();
            let dict = PyDict::new(py);
            for (name, field) in structs.column_names().iter().zip(structs.columns()) {
                dict.set_item(name, value(py, field, index)?)?;
            }
            Ok(dict.into_any())
        }
        DataType::Dictionary(_, values) => value(py, &cast(array, values)?, index),
        DataType::Float16 => value(py, &cast(array, &DataType::Float64)?, index),
        // The other integers; another type cannot be cast, which is an error.
        _ => value(py, &cast(array, &DataType::Int64)?, index),
    }
}

/// The items of a list: an array of numpy if they are numbers.
fn items<'py>(py: Python<'py>, items: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    if let Some(dtype) = dtype(items.data_type()).filter(|_| items.null_count() == 0) {
        return ndarray(py, Memory::writable(numbers(items)?), dtype);
    }
    let list = PyList::empty(py);
    for index in 0..items.len() {
        list.append(value(py, items, index)?)?;
    }
    Ok(list.into_any())
}

fn bytes<'py>(py: Python<'py>, value: &[u8]) -> Bound<'py, PyAny> {
    PyBytes::new(py, value).into_any()
}
