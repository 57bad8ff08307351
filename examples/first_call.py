"""Softmax from Python, by the library's C face and nothing but the standard library. (The package rooftile, which
takes arrays of PyTorch, JAX and NumPy, is to come.)
    python3 examples/first_call.py [librooftile.so]
"""

import ctypes
import sys
from array import array


class View(ctypes.Structure):  # rooftile_view of rooftile/c.h
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_uint8), ("rank", ctypes.c_int32)]
    _fields_ += [("shape", ctypes.c_int64 * 8), ("stride", ctypes.c_int64 * 8)]


class Status(ctypes.Structure):
    _fields_ = [("message", ctypes.c_char * 400)]


class Workspace(ctypes.Structure):
    _fields_ = [("pointer", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


def dense(values, rows, columns):
    f32, eight = 1, ctypes.c_int64 * 8
    return View(values.buffer_info()[0], f32, 2, eight(rows, columns), eight(columns, 1))


library = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "build/release/lib/librooftile.so")
library.rooftile_queue_cpu.restype = library.rooftile_call.restype = Status

# [first_call]
x, y = array("f", [1, 2, 3, 4]), array("f", [0, 0, 0, 0])
queue = ctypes.c_void_p()
library.rooftile_queue_cpu(0, ctypes.byref(queue))
views = (ctypes.POINTER(View) * 2)(*map(ctypes.pointer, (dense(x, 1, 4), dense(y, 1, 4))))
options = (ctypes.c_double * 2)(1.0, 0.0)  # scale, log
status = library.rooftile_call(queue, b"softmax", views, options, None, Workspace())
if status.message:
    sys.exit(status.message.decode())
print(*(f"{value:.3f}" for value in y))  # 0.032 0.087 0.237 0.644
# [/first_call]
