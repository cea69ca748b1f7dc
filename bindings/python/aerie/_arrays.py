"""Float memory that the library fills: numpy arrays where numpy is there, else memoryviews of the same shape."""

import ctypes
import importlib
from typing import Any

numpy: Any = None
try:
    numpy = importlib.import_module("numpy")
except ImportError:
    pass


def floats(rows: int, columns: int) -> Any:
    if numpy is not None:
        return numpy.empty((rows, columns), numpy.float32)
    if rows * columns == 0:
        return memoryview(bytearray()).cast("f")  # no shape of a memoryview holds a zero
    return memoryview((ctypes.c_float * (rows * columns))()).cast("B").cast("f", (rows, columns))


def float_pointer(buffer: Any, rows: int, columns: int, name: str) -> Any:
    """Where the library writes `rows` x `columns` floats; `buffer` is any writable C-contiguous float32 memory."""
    view = memoryview(buffer)
    if view.readonly or not view.c_contiguous or view.format not in ("f", "<f") or view.nbytes < 4 * rows * columns:
        raise ValueError(f"{name}: not {rows} x {columns} writable contiguous float32")
    if view.nbytes == 0:
        return None
    # Not ctypes.cast, whose result refers to itself: the memory would be held until the next garbage collection.
    return ctypes.pointer(ctypes.c_float.from_buffer(view.cast("B") if view.ndim else view))
