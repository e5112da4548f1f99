//! Arrays of numpy over memory of Arrow arrays.

use pyo3::{prelude::*, sync::PyOnceLock};

use crate::capsule::Memory;

/// A type of numbers in numpy. Parsing its name takes as long as making an array, and is done once.
pub(crate) struct Dtype {
    name: &'static str,
    object: PyOnceLock<Py<PyAny>>,
}

pub(crate) static BOOL: Dtype = Dtype::new("bool");
pub(crate) static INT8: Dtype = Dtype::new("int8");
pub(crate) static INT16: Dtype = Dtype::new("int16");
pub(crate) static INT32: Dtype = Dtype::new("int32");
pub(crate) static INT64: Dtype = Dtype::new("int64");
pub(crate) static UINT8: Dtype = Dtype::new("uint8");
pub(crate) static UINT16: Dtype = Dtype::new("uint16");
pub(crate) static UINT32: Dtype = Dtype::new("uint32");
pub(crate) static UINT64: Dtype = Dtype::new("uint64");
pub(crate) static FLOAT16: Dtype = Dtype::new("float16");
pub(crate) static FLOAT32: Dtype = Dtype::new("float32");
pub(crate) static FLOAT64: Dtype = Dtype::new("float64");

static FROMBUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

impl Dtype {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            object: PyOnceLock::new(),
        }
    }

    fn object<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let object = self.object.get_or_try_init(py, || {
            let class = py.import("numpy")?.getattr("dtype")?;
            Ok::<_, PyErr>(class.call1((self.name,))?.unbind())
        })?;
        Ok(object.bind(py))
    }
}

/// An array of one dimension that borrows memory.
pub(crate) fn ndarray<'py>(
    py: Python<'py>,
    memory: Memory,
    dtype: &Dtype,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype.object(py)?;
    if memory.is_empty() {
        // `frombuffer` refuses memory without bytes.
        return EMPTY.import(py, "numpy", "empty")?.call1((0, dtype));
    }
    FROMBUFFER
        .import(py, "numpy", "frombuffer")?
        .call1((memory, dtype))
}
