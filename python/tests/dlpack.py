"""Objects that speak DLPack, and such as lie about it."""

import ctypes

import numpy as np


class Speaks:
    """What DLPack asks of an array; `answer` makes the capsule."""

    def __init__(self, answer, device=(1, 0)):
        self.answer, self.device = answer, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **words):
        return self.answer(**words)


def speaking(x, **words):
    return Speaks(lambda **w: x.__dlpack__(), **words)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
KEPT = []


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), *Tensor._fields_[:-2]]


def versioned(major, flags, given_back):
    """2x3 ones in a structure of version `major`; `given_back` grows when its deleter is called."""
    data, shape = np.ones(6, np.float32), (ctypes.c_int64 * 2)(2, 3)
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(given_back.append)
    tensor = Versioned(major=major, deleter=ctypes.cast(deleter, ctypes.c_void_p), flags=flags, data=data.ctypes.data,
                       device_type=1, ndim=2, code=2, bits=32, lanes=1, shape=shape)
    KEPT.append((data, shape, tensor, deleter))
    return Speaks(lambda **w: new_capsule(ctypes.addressof(tensor), b"dltensor_versioned", None))


def lying(**lies):
    data, shape = np.ones(6, np.float32), (ctypes.c_int64 * 2)(2, 3)
    fields = {"data": data.ctypes.data, "device_type": 1, "ndim": 2, "code": 2, "bits": 32, "lanes": 1, "shape": shape, **lies}
    tensor = Tensor(**fields)
    KEPT.append((data, shape, tensor))
    return Speaks(lambda **w: new_capsule(ctypes.addressof(tensor), b"dltensor", None))
