//! All unsafe code of the package: Arrow's C data interface, memory that Python borrows, and the re-arming of Ctrl-C.

use std::{
    ffi::{CStr, c_int},
    ptr::NonNull,
};

use arrow_array::{
    Array, RecordBatch, RecordBatchReader, StructArray,
    ffi::{FFI_ArrowArray, to_ffi},
    ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream},
};
use arrow_buffer::Buffer;
use arrow_schema::{Schema, ffi::FFI_ArrowSchema};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    ffi,
    prelude::*,
    types::{PyCapsule, PyCapsuleMethods},
};

/// The names of the capsules, which the Arrow PyCapsule interface defines.
const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// Exports batches as an `arrow_array_stream` capsule.
pub(crate) fn export_stream(
    py: Python<'_>,
    batches: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

/// Exports a schema as an `arrow_schema` capsule.
pub(crate) fn export_schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let exported = FFI_ArrowSchema::try_from(schema).map_err(|e| PyValueError::new_err(e.to_string()))?;
    PyCapsule::new_with_value(py, exported, SCHEMA)
}

/// Exports a batch as an `arrow_schema` and an `arrow_array` capsule.
pub(crate) fn export_batch(
    py: Python<'_>,
    batch: RecordBatch,
) -> PyResult<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)> {
    let schema = export_schema(py, &batch.schema())?;
    let (array, _): (FFI_ArrowArray, _) =
        to_ffi(&StructArray::from(batch).to_data()).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok((schema, PyCapsule::new_with_value(py, array, ARRAY)?))
}

/// Imports the stream of an object with `__arrow_c_stream__`.
///
/// # Errors
/// The object has no stream, or the stream is no struct of columns.
pub(crate) fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("__arrow_c_stream__: no capsule"))?;
    let stream: NonNull<FFI_ArrowArrayStream> = capsule.pointer_checked(Some(STREAM))?.cast();
    // SAFETY: A capsule of this name points to a valid stream, which `from_raw` moves out of it and marks as released.
    #[expect(unsafe_code)]
    let reader = unsafe { ArrowArrayStreamReader::from_raw(stream.as_ptr()) };
    reader.map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Imports the schema of an object with `__arrow_c_schema__`.
///
/// # Errors
/// The object has no schema, or the schema is no struct of columns.
pub(crate) fn import_schema(object: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let capsule = object.call_method0("__arrow_c_schema__")?;
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("__arrow_c_schema__: no capsule"))?;
    let schema: NonNull<FFI_ArrowSchema> = capsule.pointer_checked(Some(SCHEMA))?.cast();
    // SAFETY: A capsule of this name points to a valid schema, which the capsule keeps.
    #[expect(unsafe_code)]
    let schema = unsafe { schema.as_ref() };
    Schema::try_from(schema).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Delivers Ctrl-C again: the next Python code that runs on the main thread raises KeyboardInterrupt.
pub(crate) fn interrupt_again(_attached: Python<'_>) {
    // SAFETY: The function has no preconditions.
    #[expect(unsafe_code)]
    unsafe {
        ffi::PyErr_SetInterrupt();
    }
}

/// Bytes of an Arrow array that numpy borrows through the buffer protocol, without a copy. The bytes live as long as the
/// array of numpy.
///
/// The memory is writable where no other array has it: Arrow arrays are immutable, and code that reads them may rely on
/// that.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct Memory {
    buffer: Buffer,
    is_writable: bool,
}

impl Memory {
    /// Memory that may be written to. The caller must be the only one who has the buffer.
    pub(crate) fn writable(buffer: Buffer) -> Self {
        Self { buffer, is_writable: true }
    }

    /// Memory that may only be read.
    pub(crate) fn read_only(buffer: Buffer) -> Self {
        Self { buffer, is_writable: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

#[pymethods]
impl Memory {
    // SAFETY: Python calls this with a valid view. `PyBuffer_FillInfo` stores a reference to this object in it, so that the
    // buffer outlives the view; the bytes of a buffer do not move. Writable memory has no other reader (see `Memory`).
    #[expect(unsafe_code)]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let Self { buffer, is_writable } = slf.get();
        let (bytes, length) = (buffer.as_ptr().cast_mut().cast(), buffer.len() as ffi::Py_ssize_t);
        let read_only = c_int::from(!is_writable);
        // SAFETY: See above.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), bytes, length, read_only, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}
