//! Batches of rows, and their columns as memory that numpy reads without a copy.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, GenericListArray, OffsetSizeTrait,
    RecordBatch,
    cast::AsArray,
    types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type},
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_ipc::{reader::StreamDecoder, writer::StreamWriter};
use arrow_schema::{ArrowError, DataType, Field};
use pyo3::{
    exceptions::{PyIndexError, PyTypeError, PyValueError},
    intern,
    prelude::*,
    types::{PyCapsule, PyTuple},
};
use tfarrow_dataset::internals::Lock;

use crate::{
    capsule::{Memory, borrowed, export_batch, export_schema},
    ndarray::{
        BOOL, Dtype, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32,
        UINT64, ndarray,
    },
};

/// A batch of rows.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct RawBatch {
    batch: RecordBatch,
    /// Whether the arrays were made for this batch, so that their memory may be lent for writing.
    is_own: bool,
    lent: Lock<Lent>,
}

/// How the memory of a batch was lent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lent {
    No,
    /// To numpy, which may write to it.
    Writable,
    /// As Arrow arrays, which nobody may write to.
    Arrow,
}

impl RawBatch {
    pub(crate) fn new(batch: RecordBatch, is_own: bool) -> Self {
        Self {
            batch,
            is_own,
            lent: Lock::new(Lent::No),
        }
    }

    /// The batch itself.
    pub(crate) fn into_batch(self) -> RecordBatch {
        self.batch
    }

    /// A copy of the batch that shares its memory.
    ///
    /// # Errors
    /// Numpy may write to the memory.
    pub(crate) fn batch(&self) -> PyResult<RecordBatch> {
        self.lend(Lent::Arrow)?;
        Ok(self.batch.clone())
    }

    /// Claims the memory for a use. Returns whether numpy may write to it.
    fn lend(&self, to: Lent) -> PyResult<bool> {
        let mut lent = self.lent.lock();
        match (*lent, to) {
            (Lent::Writable, Lent::Arrow) => {
                let why = "the batch was read as numpy arrays, which may be written to; read it as Arrow first, or copy them";
                Err(PyValueError::new_err(why))
            }
            (Lent::Arrow, _) => Ok(false),
            _ => {
                *lent = if self.is_own { to } else { Lent::Arrow };
                Ok(*lent == Lent::Writable)
            }
        }
    }
}

#[pymethods]
impl RawBatch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.batch
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.batch.schema())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        export_batch(py, self.batch()?)
    }

    /// The batch as a stream of Arrow IPC, in an array of bytes.
    fn to_ipc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.batch()?;
        let stream = py.detach(|| write_ipc(&batch)).map_err(invalid)?;
        ndarray(py, Memory::writable(Buffer::from_vec(stream)), &UINT8)
    }

    /// The batch of a stream of Arrow IPC, which it refers to. Nobody else may write to the stream.
    #[staticmethod]
    fn of_ipc(stream: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut stream = borrowed(stream)?;
        let batch = StreamDecoder::new().decode(&mut stream).map_err(invalid)?;
        match batch {
            Some(batch) => Ok(Self::new(batch, true)),
            None => Err(PyValueError::new_err("an IPC stream without a batch")),
        }
    }

    /// The parts of a column, by its place in `names`: see [`parts`].
    fn parts<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyTuple>> {
        let schema = self.batch.schema_ref();
        let field = schema.fields().get(column);
        let (Some(field), Some(column)) = (field, self.batch.columns().get(column)) else {
            return Err(PyIndexError::new_err(column));
        };
        let is_writable = self.lend(Lent::Writable)?;
        match (tensor_shape(field), column.as_fixed_size_list_opt()) {
            (Some(shape), Some(list)) => fixed(py, list, shape, is_writable),
            _ => parts(py, column, is_writable),
        }
    }
}

/// The parts of an array, as tuples whose first item is the kind:
///
/// ```text
/// ("numbers", values, valid)                     one value a row
/// ("bytes", is_text, data, offsets, valid)       bytes of row i: data[offsets[i]:offsets[i + 1]]
/// ("list", offsets, valid, parts)                items of row i: offsets[i] to offsets[i + 1] of the parts
/// ("fixed", rows, shape, valid, parts)           items of row i, whose number is the product of the shape
/// ("struct", rows, names, valid, [parts, ..])    a field for each name
/// ```
///
/// `values`, `data`, `offsets` and `valid` are arrays of numpy. Offsets are int64 and begin at 0.
/// `valid` has a bool for each row; it is None if no row is null.
fn parts<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    is_writable: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let valid = valid(py, array.nulls())?;
    match array.data_type() {
        DataType::Boolean => {
            let flags: &BooleanArray = array.as_boolean();
            let bytes: Vec<u8> = flags.values().iter().map(u8::from).collect();
            tuple(
                py,
                (
                    intern!(py, "numbers"),
                    ndarray(py, Memory::writable(Buffer::from_vec(bytes)), &BOOL)?,
                    valid,
                ),
            )
        }
        DataType::Binary => bytes::<BinaryType>(py, array, false, valid),
        DataType::LargeBinary => bytes::<LargeBinaryType>(py, array, false, valid),
        DataType::Utf8 => bytes::<Utf8Type>(py, array, true, valid),
        DataType::LargeUtf8 => bytes::<LargeUtf8Type>(py, array, true, valid),
        DataType::BinaryView => parts(py, &cast(array, &DataType::LargeBinary)?, is_writable),
        DataType::Utf8View => parts(py, &cast(array, &DataType::LargeUtf8)?, is_writable),
        DataType::Dictionary(_, values) => parts(py, &cast(array, values)?, is_writable),
        DataType::List(_) => list(py, array.as_list::<i32>(), valid, is_writable),
        DataType::LargeList(_) => list(py, array.as_list::<i64>(), valid, is_writable),
        DataType::FixedSizeList(_, width) => {
            let shape = vec![*width as usize];
            fixed(py, array.as_fixed_size_list(), shape, is_writable)
        }
        DataType::Struct(_) => {
            let structs = array.as_struct();
            let fields = structs
                .columns()
                .iter()
                .map(|field| parts(py, field, is_writable));
            let fields = fields.collect::<PyResult<Vec<_>>>()?;
            tuple(
                py,
                (
                    intern!(py, "struct"),
                    structs.len(),
                    structs.column_names(),
                    valid,
                    fields,
                ),
            )
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            let (offsets, from, to) = rebased(py, map.offsets())?;
            let entries: ArrayRef = Arc::new(map.entries().slice(from, to - from));
            tuple(
                py,
                (
                    intern!(py, "list"),
                    offsets,
                    valid,
                    parts(py, &entries, is_writable)?,
                ),
            )
        }
        other => match dtype(other) {
            Some(dtype) => {
                let memory = numbers(array)?;
                let memory = if is_writable {
                    Memory::writable(memory)
                } else {
                    Memory::read_only(memory)
                };
                tuple(
                    py,
                    (intern!(py, "numbers"), ndarray(py, memory, dtype)?, valid),
                )
            }
            None => Err(PyTypeError::new_err(format!(
                "a column of type {other} has no form in numpy: read it with to_arrow(), or cast it in SQL"
            ))),
        },
    }
}

/// The dtype of a type of numbers.
pub(crate) fn dtype(of: &DataType) -> Option<&'static Dtype> {
    Some(match of {
        DataType::Int8 => &INT8,
        DataType::Int16 => &INT16,
        DataType::Int32 => &INT32,
        DataType::Int64 => &INT64,
        DataType::UInt8 => &UINT8,
        DataType::UInt16 => &UINT16,
        DataType::UInt32 => &UINT32,
        DataType::UInt64 => &UINT64,
        DataType::Float16 => &FLOAT16,
        DataType::Float32 => &FLOAT32,
        DataType::Float64 => &FLOAT64,
        _ => return None,
    })
}

/// The values of an array of numbers.
pub(crate) fn numbers(array: &ArrayRef) -> PyResult<Buffer> {
    let data = array.to_data();
    let width = data.data_type().primitive_width().unwrap_or(1);
    let values = data
        .buffers()
        .first()
        .ok_or_else(|| PyValueError::new_err("an array without values"))?;
    Ok(values.slice_with_length(data.offset() * width, data.len() * width))
}

fn bytes<'py, T: ByteArrayType>(
    py: Python<'py>,
    array: &ArrayRef,
    is_text: bool,
    valid: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let array = array.as_bytes::<T>();
    let (offsets, from, to) = rebased(py, array.offsets())?;
    let data = ndarray(
        py,
        Memory::read_only(array.values().slice_with_length(from, to - from)),
        &UINT8,
    )?;
    tuple(py, (intern!(py, "bytes"), is_text, data, offsets, valid))
}

fn list<'py, O: OffsetSizeTrait>(
    py: Python<'py>,
    list: &GenericListArray<O>,
    valid: Option<Bound<'py, PyAny>>,
    is_writable: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let (offsets, from, to) = rebased(py, list.offsets())?;
    let items = list.values().slice(from, to - from);
    tuple(
        py,
        (
            intern!(py, "list"),
            offsets,
            valid,
            parts(py, &items, is_writable)?,
        ),
    )
}

/// Lists of one length by their type, whose items have this shape.
fn fixed<'py>(
    py: Python<'py>,
    list: &FixedSizeListArray,
    shape: Vec<usize>,
    is_writable: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let width = list.value_length() as usize;
    let items = list
        .values()
        .slice(list.value_offset(0) as usize, list.len() * width);
    tuple(
        py,
        (
            intern!(py, "fixed"),
            list.len(),
            PyTuple::new(py, shape)?,
            valid(py, list.nulls())?,
            parts(py, &items, is_writable)?,
        ),
    )
}

/// The shape of a fixed-shape tensor, a canonical extension type of Arrow; `None` for other fields, and
/// for a tensor whose axes are permuted.
pub(crate) fn tensor_shape(field: &Field) -> Option<Vec<usize>> {
    let DataType::FixedSizeList(_, width) = field.data_type() else {
        return None;
    };
    let name = field.metadata().get("ARROW:extension:name")?;
    if name != "arrow.fixed_shape_tensor" {
        return None;
    }
    let metadata = field.metadata().get("ARROW:extension:metadata")?;
    let tensor: serde_json::Value = serde_json::from_str(metadata).ok()?;
    if tensor.get("permutation").is_some() {
        return None;
    }
    let mut shape = Vec::new();
    for side in tensor.get("shape")?.as_array()? {
        shape.push(usize::try_from(side.as_u64()?).ok()?);
    }
    let count = shape
        .iter()
        .try_fold(1_usize, |count, side| count.checked_mul(*side));
    (count == Some(*width as usize)).then_some(shape)
}

/// The offsets from 0 on as int64, and the first and the last of the array's own.
fn rebased<'py, O: OffsetSizeTrait>(
    py: Python<'py>,
    offsets: &OffsetBuffer<O>,
) -> PyResult<(Bound<'py, PyAny>, usize, usize)> {
    let from = offsets.first().map_or(0, |first| first.as_usize());
    let to = offsets.last().map_or(0, |last| last.as_usize());
    let rebased: Vec<i64> = offsets
        .iter()
        .map(|offset| (offset.as_usize() - from) as i64)
        .collect();
    Ok((
        ndarray(py, Memory::writable(Buffer::from_vec(rebased)), &INT64)?,
        from,
        to,
    ))
}

fn valid<'py>(py: Python<'py>, nulls: Option<&NullBuffer>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
        return Ok(None);
    };
    let valid: Vec<u8> = nulls.iter().map(u8::from).collect();
    ndarray(py, Memory::writable(Buffer::from_vec(valid)), &BOOL).map(Some)
}

fn write_ipc(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
    writer.write(batch)?;
    writer.into_inner()
}

fn invalid(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(crate) fn cast(array: &ArrayRef, to: &DataType) -> PyResult<ArrayRef> {
    arrow_cast::cast(array, to).map_err(invalid)
}

fn tuple<'py>(
    py: Python<'py>,
    items: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
) -> PyResult<Bound<'py, PyTuple>> {
    items.into_pyobject(py).map_err(Into::into)
}
