//! All unsafe code of the package: Arrow's C data interface, memory that Python borrows, and the
//! re-arming of Ctrl-C.

use std::{
    ffi::{CStr, c_int},
    panic::RefUnwindSafe,
    ptr::NonNull,
    sync::Arc,
};

use arrow_array::{
    Array, RecordBatch, RecordBatchReader, StructArray,
    ffi::{FFI_ArrowArray, from_ffi_and_data_type, to_ffi},
    ffi_stream::FFI_ArrowArrayStream,
};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef, ffi::FFI_ArrowSchema};
use pyo3::{
    buffer::PyBuffer,
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
pub(crate) fn export_schema<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Bound<'py, PyCapsule>> {
    let exported =
        FFI_ArrowSchema::try_from(schema).map_err(|e| PyValueError::new_err(e.to_string()))?;
    PyCapsule::new_with_value(py, exported, SCHEMA)
}

/// Exports a batch as an `arrow_schema` and an `arrow_array` capsule.
pub(crate) fn export_batch(
    py: Python<'_>,
    batch: RecordBatch,
) -> PyResult<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)> {
    let schema = export_schema(py, &batch.schema())?;
    let (array, _): (FFI_ArrowArray, _) = to_ffi(&StructArray::from(batch).to_data())
        .map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok((schema, PyCapsule::new_with_value(py, array, ARRAY)?))
}

/// The stream of another package. Its arrays have no types: `layout` compares them with the schema.
pub(crate) struct ForeignStream {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl ForeignStream {
    /// Imports the stream of an object with `__arrow_c_stream__`.
    ///
    /// # Errors
    /// The object has no stream, or the stream is no struct of columns.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let stream: NonNull<FFI_ArrowArrayStream> = pointer(&capsule, STREAM)?.cast();
        // SAFETY: A capsule of this name points to a valid stream, which `from_raw` moves out of it
        // and marks as released.
        #[expect(unsafe_code)]
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
        let mut found = Self {
            stream,
            schema: Arc::new(Schema::empty()),
        };
        found.schema = Arc::new(found.announced().map_err(PyValueError::new_err)?);
        Ok(found)
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The schema, or an error as a text.
    fn announced(&mut self) -> Result<Schema, String> {
        let mut schema = FFI_ArrowSchema::empty();
        let get_schema = self.stream.get_schema.ok_or("the stream was read before")?;
        // SAFETY: The stream is valid, and its function writes a schema where it returns 0.
        #[expect(unsafe_code)]
        let status = unsafe { get_schema(&raw mut self.stream, &raw mut schema) };
        if status != 0 {
            return Err(self.last_error(status));
        }
        Schema::try_from(&schema).map_err(|error| error.to_string())
    }

    /// The next array; none at the end.
    ///
    /// # Errors
    /// The text of the stream's error.
    pub(crate) fn next(&mut self) -> Result<Option<FFI_ArrowArray>, String> {
        let mut array = FFI_ArrowArray::empty();
        let get_next = self.stream.get_next.ok_or("the stream was read before")?;
        // SAFETY: The stream is valid, and its function writes an array where it returns 0.
        #[expect(unsafe_code)]
        let status = unsafe { get_next(&raw mut self.stream, &raw mut array) };
        if status != 0 {
            return Err(self.last_error(status));
        }
        // An array that is released is the end.
        Ok(Some(array).filter(|array| !array.is_released()))
    }

    /// The text of the last error.
    fn last_error(&mut self, status: c_int) -> String {
        if let Some(get_last_error) = self.stream.get_last_error {
            // SAFETY: The stream is valid. The text is null, or a string that lives until the next
            // call of the stream.
            #[expect(unsafe_code)]
            unsafe {
                let text = get_last_error(&raw mut self.stream);
                if !text.is_null() {
                    return CStr::from_ptr(text).to_string_lossy().into_owned();
                }
            }
        }
        format!("the stream failed with status {status}, and does not say why")
    }
}

/// Imports the array of an object with `__arrow_c_array__`, and its schema.
///
/// # Errors
/// An exception of the object, or a schema that is no struct of columns.
pub(crate) fn import_array(object: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, FFI_ArrowArray)> {
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
        object.call_method0("__arrow_c_array__")?.extract()?;
    let schema = schema_in(&schema)?;
    let array: NonNull<FFI_ArrowArray> = pointer(&array, ARRAY)?.cast();
    // SAFETY: A capsule of this name points to a valid array, which `from_raw` moves out of it and
    // marks as released.
    #[expect(unsafe_code)]
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    Ok((Arc::new(schema), array))
}

/// The values of an array whose structure is that of this type: see `layout`.
///
/// # Errors
/// A type that Arrow's Rust libraries do not import.
pub(crate) fn values_of(
    array: FFI_ArrowArray,
    data_type: DataType,
) -> Result<ArrayData, ArrowError> {
    // SAFETY: The structure is that of the type. The lengths of the buffers are a promise of the
    // interface, which does not tell them.
    #[expect(unsafe_code)]
    unsafe {
        from_ffi_and_data_type(array, data_type)
    }
}

/// A child of an array; none if it is missing.
pub(crate) fn child(array: &FFI_ArrowArray, index: usize) -> Option<&FFI_ArrowArray> {
    if array.children.is_null() || index >= array.num_children() {
        return None;
    }
    // SAFETY: There is a pointer for each child. It is null, or points to an array that lives as
    // long as its parent.
    #[expect(unsafe_code)]
    unsafe {
        array.children.add(index).read_unaligned().as_ref()
    }
}

/// Whether a buffer of an array is present.
pub(crate) fn has_buffer(array: &FFI_ArrowArray, index: usize) -> bool {
    !array.buffers.is_null() && index < array.num_buffers() && !array.buffer(index).is_null()
}

/// What a capsule of this name points to.
fn pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<std::ffi::c_void>> {
    let Ok(capsule) = capsule.cast::<PyCapsule>() else {
        let name = name.to_string_lossy();
        return Err(PyTypeError::new_err(format!("expected a capsule {name}")));
    };
    capsule.pointer_checked(Some(name))
}

/// Imports the schema of an object with `__arrow_c_schema__`.
///
/// # Errors
/// The object has no schema, or the schema is no struct of columns.
pub(crate) fn import_schema(object: &Bound<'_, PyAny>) -> PyResult<Schema> {
    schema_in(&object.call_method0("__arrow_c_schema__")?)
}

/// The schema in a capsule.
fn schema_in(capsule: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let schema: NonNull<FFI_ArrowSchema> = pointer(capsule, SCHEMA)?.cast();
    // SAFETY: A capsule of this name points to a valid schema, which the capsule keeps.
    #[expect(unsafe_code)]
    let schema = unsafe { schema.as_ref() };
    Schema::try_from(schema).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Delivers Ctrl-C again: the next Python code that runs on the main thread raises
/// KeyboardInterrupt.
pub(crate) fn interrupt_again(_attached: Python<'_>) {
    // SAFETY: The function has no preconditions.
    #[expect(unsafe_code)]
    unsafe {
        ffi::PyErr_SetInterrupt();
    }
}

/// Bytes of an Arrow array that numpy borrows through the buffer protocol, without a copy. The
/// bytes live as long as the array of numpy.
///
/// The memory is writable where no other array has it: Arrow arrays are immutable, and code that
/// reads them may rely on that.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct Memory {
    buffer: Buffer,
    is_writable: bool,
}

impl Memory {
    /// Memory that may be written to. The caller must be the only one who has the buffer.
    pub(crate) fn writable(buffer: Buffer) -> Self {
        Self {
            buffer,
            is_writable: true,
        }
    }

    /// Memory that may only be read.
    pub(crate) fn read_only(buffer: Buffer) -> Self {
        Self {
            buffer,
            is_writable: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

#[pymethods]
impl Memory {
    // SAFETY: Python calls this with a valid view. `PyBuffer_FillInfo` stores a reference to this
    // object in it, so that the buffer outlives the view; the bytes of a buffer do not move.
    // Writable memory has no other reader (see `Memory`).
    #[expect(unsafe_code)]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let Self {
            buffer,
            is_writable,
        } = slf.get();
        let bytes = buffer.as_ptr().cast_mut().cast();
        let length = buffer.len() as ffi::Py_ssize_t;
        let read_only = c_int::from(!is_writable);
        // SAFETY: See above.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), bytes, length, read_only, flags) }
        {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// The memory of a Python object, which stays alive with the buffer.
pub(crate) fn borrowed(object: &Bound<'_, PyAny>) -> PyResult<Buffer> {
    let memory = PyBuffer::<u8>::get(object)?;
    let start = NonNull::new(memory.buf_ptr().cast::<u8>());
    let (Some(start), true) = (start, memory.is_c_contiguous()) else {
        return Err(PyValueError::new_err(
            "expected bytes that follow each other",
        ));
    };
    let length = memory.len_bytes();
    // SAFETY: The buffer of the object has `length` bytes from `start` on, and keeps them in place until
    // it is dropped. The caller of Python promises that nobody writes to them.
    #[expect(unsafe_code)]
    let buffer =
        unsafe { Buffer::from_custom_allocation(start, length, Arc::new(Borrowed(memory))) };
    Ok(buffer)
}

/// Keeps the memory of an object.
struct Borrowed(#[expect(dead_code, reason = "it is dropped")] PyBuffer<u8>);

// A panic leaves the memory as it is.
impl RefUnwindSafe for Borrowed {}
