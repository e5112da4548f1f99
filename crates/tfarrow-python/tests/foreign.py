"""A stream of Arrow's C interface whose arrays are made by hand, so that each of their parts can be wrong."""

import ctypes

# The structures of https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html.


class Array(ctypes.Structure):
    pass


Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class Stream(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")]


_GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_release_array = _RELEASE(lambda array: setattr(Array.from_address(array), "release", None))
_release_stream = _RELEASE(lambda stream: setattr(Stream.from_address(stream), "release", None))
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def array_of(found):
    """The structure of an array of pyarrow, whose memory it borrows. What it refers to is in its attribute ``kept``."""
    buffers = found.buffers()[: 1 + _own_buffers(found.type)]
    addresses = [None if buffer is None else buffer.address for buffer in buffers]
    children = [array_of(child) for child in _children(found)]
    array = Array(len(found), found.null_count, found.offset, len(buffers), len(children))
    array.buffers = (ctypes.c_void_p * len(buffers))(*addresses)
    array.children = (ctypes.POINTER(Array) * len(children))(*map(ctypes.pointer, children))
    if hasattr(found, "dictionary"):
        array.dictionary = ctypes.pointer(array_of(found.dictionary))
    array.release = ctypes.cast(_release_array, ctypes.c_void_p)
    array.kept = (found, children)
    return array


def _own_buffers(kind):
    """The number of buffers of an array itself, without that of its nulls."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return 0
    return 2 if pa.types.is_string(kind) or pa.types.is_binary(kind) else 1


def _children(found):
    import pyarrow as pa

    if pa.types.is_struct(found.type):
        return [found.field(index) for index in range(found.type.num_fields)]
    return [found.values] if pa.types.is_list(found.type) else []


class LyingStream:
    """Batches that `lie` may change: it is called with the structure of each batch and its number."""

    def __init__(self, schema, batches, lie=lambda array, number: None, status=0):
        self.schema, self.batches, self.lie, self.status = schema, batches, lie, status
        self.kept = []

    def __arrow_c_stream__(self, requested_schema=None):
        batches = enumerate(self.batches)

        def get_schema(_, out):
            self.schema._export_to_c(out)
            return 0

        def get_next(_, out):
            number, batch = next(batches, (None, None))
            if batch is None:
                Array.from_address(out).release = None
                return self.status
            array = array_of(batch.to_struct_array())
            self.lie(array, number)
            self.kept.append(array)
            ctypes.memmove(out, ctypes.byref(array), ctypes.sizeof(array))
            return 0

        functions = [_GET(get_schema), _GET(get_next), _ERROR(lambda _: None), _release_stream]
        stream = Stream(*(ctypes.cast(function, ctypes.c_void_p) for function in functions))
        self.kept += [functions, stream]
        return _new_capsule(ctypes.addressof(stream), b"arrow_array_stream", None)
