"""What _core asks about frameworks the first time that it meets one, or where speed is no matter."""

import collections
import sys

from rooftile import _core

#: The library's dtypes by the frameworks' names for them, in the order of rooftile/c.h.
DTYPES = {"f64": "float64", "f32": "float32", "tf32": None, "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
          "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i8": "int8", "u8": "uint8", "bool": "bool", "u4": None}
CODES = {name: code for code, name in enumerate(DTYPES.values()) if name}


def is_jax(kind):
    return kind.__module__.split(".")[0] in ("jax", "jaxlib")


def is_torch(kind):
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(kind, torch.Tensor)


def framework_of(function, operand, kind):
    """How arrays of this type are read, whether they may have gradients, whether they are immutable."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        if issubclass(kind, numpy.ma.MaskedArray):
            raise TypeError(f"{function}: {operand} is a masked array, and the mask would be ignored; pass its .filled() or .data")
        learn_numpy(numpy)
        return "numpy", False, False
    if numpy is not None and issubclass(kind, numpy.generic):
        learn_numpy(numpy)
        return "scalar", False, True
    exchange = hasattr(kind, "__dlpack_c_exchange_api__")
    if is_torch(kind):
        torch = sys.modules["torch"]
        learn_torch(torch)
        plain = kind in (torch.Tensor, torch.nn.Parameter)
        return "exchange" if plain and exchange else "dlpack", True, False
    if exchange:
        return "exchange", False, False
    if is_jax(kind):
        import jax

        return "dlpack", issubclass(kind, jax.core.Tracer), True
    if hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__"):
        return "dlpack", False, False
    raise TypeError(f"{function}: {operand} is of type {kind.__name__}, must be an array: of NumPy, PyTorch, JAX or another "
                    "framework that speaks DLPack")


learned = []


def learn_numpy(numpy):
    if learned:
        return
    sample = numpy.zeros((2, 6), numpy.float32)[:, ::2]
    sample.flags.writeable = False
    native = [(numpy.dtype(name), code) for name, code in CODES.items() if name[:5] not in ("bfloa", "float") or name in
              ("float64", "float32", "float16")]
    _core.set_numpy(numpy.empty, sample, native)
    learned.append(True)


def learn_torch(torch):
    from torch.autograd import forward_ad, graph

    _core.set_torch(torch.Tensor.is_neg, getattr(torch._C, "_increment_version", graph.increment_version), vars(forward_ad))


def dtype_code(function, operand, dtype):
    """Of a NumPy dtype that was not met before."""
    if not dtype.isnative:
        raise ValueError(f"{function}: {operand} has dtype {dtype.str}, whose bytes are in the other order than this machine's; "
                         f"pass {operand}.astype({dtype.newbyteorder('=').str!r})")
    if dtype.name not in CODES:
        raise TypeError(f"{function}: {operand} has dtype {dtype.name}, which the library does not know; it knows "
                        f"{', '.join(CODES)}")
    return CODES[dtype.name]


def numpy_dtype(name):
    import numpy

    name = DTYPES[name]
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        try:
            import ml_dtypes
        except ModuleNotFoundError:
            raise ModuleNotFoundError(f"a result of {name} is an array of the package ml_dtypes, which is missing here; pip install "
                                      "ml_dtypes, or pass PyTorch's tensors", name="ml_dtypes") from None
        return numpy.dtype(getattr(ml_dtypes, name))
    return numpy.dtype(name)


def empty(function, like, shape, dtype):
    """A new array beside `like`; where _core can not make it by itself."""
    kind = type(like)
    if is_torch(kind):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, DTYPES[dtype]), device=like.device)
    if is_jax(kind) or isinstance(like, sys.modules["numpy"].ndarray if "numpy" in sys.modules else ()):
        import numpy

        if is_jax(kind) and any(device.platform != "cpu" for device in like.devices()):
            raise ValueError(f"{function}: takes JAX arrays of the CPU, these are on {like.devices()}; call rooftile.jax.{function}")
        return numpy.empty(shape, numpy_dtype(dtype))
    if kind.__module__.split(".")[0] == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(like.device.id):
            return cupy.empty(shape, numpy_dtype(dtype))
    if hasattr(like, "__array_namespace__"):
        namespace = like.__array_namespace__()
        return namespace.empty(shape, dtype=getattr(namespace, DTYPES[dtype]), device=like.device)
    if like.__dlpack_device__()[0] == 1:  # a producer of arrays that makes no empty ones: PyArrow, tvm_ffi
        import numpy

        return numpy.empty(shape, numpy_dtype(dtype))
    raise TypeError(f"{function}: does not know how to make an array of type {kind.__name__}; pass out=")


def is_number(value):
    return isinstance(value, (int, float))


def broadcast(arrays, full, spread):
    """Arrays and numbers by name, as arrays of one shape; as they are where they have none. full(number, like) makes an array
    without dimensions, spread(array, shape) a view."""
    like = next((a for a in arrays.values() if not is_number(a)), None)
    if like is None:
        return arrays
    arrays = {n: full(a, like) if is_number(a) else a for n, a in arrays.items()}
    shape = []
    for d in range(-max(len(a.shape) for a in arrays.values()), 0):
        size = 1
        for a in arrays.values():
            its = a.shape[d] if len(a.shape) >= -d else 1
            if its != 1 and size not in (1, its):
                return arrays  # the library says so
            size = its if its != 1 else size
        shape.append(size)
    return {n: a if tuple(a.shape) == tuple(shape) else spread(a, tuple(shape)) for n, a in arrays.items()}


def broadcast_views(arrays):
    """The same of whatever framework."""
    kinds = [type(a) for a in arrays.values() if not is_number(a)]
    if any(is_torch(kind) for kind in kinds):
        torch = sys.modules["torch"]
        arrays = {n: a if is_number(a) else torch.as_tensor(a) for n, a in arrays.items()}
        return broadcast(arrays, lambda number, like: like.new_full((), number), torch.Tensor.expand)
    if any(is_jax(kind) for kind in kinds):
        import jax.numpy as namespace
    else:
        namespace = sys.modules[next((k.__module__.split(".")[0] for k in kinds if k.__module__[:5] == "cupy."), "numpy")]
    return broadcast(arrays, lambda number, like: namespace.asarray(number, like.dtype), namespace.broadcast_to)


def move(array, source, destination):
    """An array's dimensions elsewhere, as a view."""
    if is_torch(type(array)):
        return array.movedim(source, destination)
    import numpy

    return numpy.moveaxis(array, source, destination)


def array_of(scalar):
    """A NumPy scalar, whose memory is its own, as an array."""
    import numpy

    return numpy.asarray(scalar)


def stream_of(like):
    """The current stream of an array's framework on the array's GPU, as a number; 0: the default one, or none is known."""
    kind = type(like)
    if is_torch(kind):
        return sys.modules["torch"].cuda.current_stream(like.device).cuda_stream
    if kind.__module__.split(".")[0] == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(like.device.id):
            return cupy.cuda.get_current_stream().ptr
    return 0


def used_on(array, stream, device):
    """A queue's own stream uses an array that its framework made for the current one."""
    if is_torch(type(array)):
        cuda = sys.modules["torch"].cuda
        array.record_stream(cuda.ExternalStream(stream, device) if stream else cuda.default_stream(device))


def finish(like, array):
    """JAX's arrays are immutable: NumPy's was written, and becomes one of JAX's."""
    if not is_jax(type(like)):
        return array
    import jax

    return jax.device_put(array, next(iter(like.devices())))


def refuse_tangents(function, values):
    """Forward mode: a result would lose what these tensors carry, without a word."""
    import torch
    from torch.autograd import forward_ad

    if forward_ad._current_level >= 0 and any(isinstance(v, torch.Tensor) and forward_ad.unpack_dual(v).tangent is not None
                                              for v in values):
        raise RuntimeError(f"{function}: has no derivative in forward mode (jvp, jacfwd); take that of the backward")


def option_value(function, option, value):
    """An option that is a tensor or a tracer, as a float; refused where a gradient of it would be lost."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        refuse_tangents(function, [value])
        if value.requires_grad and torch.is_grad_enabled():
            raise TypeError(f"{function}: {option} is a tensor that requires a gradient, and options get none; pass "
                            f"float({option}), or multiply by it outside of {function}")
    elif is_jax(type(value)):
        import jax

        if isinstance(value, jax.core.Tracer):
            raise TypeError(f"{function}: {option} is one of JAX's tracers, and options are Python's numbers; name it in "
                            f"static_argnums, or multiply by it outside of {function}")
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{function}: {option} is {value!r}, must be a number") from None


def whole_number(function, operand, value, like):
    """Python's number as an operand of one element, where `like` is: of 64 bits, with or without a sign."""
    if not -2**63 <= value < 2**64:
        raise ValueError(f"{function}: {operand} is {value}, must be a whole number of 64 bits")
    value = value - 2**64 if value >= 2**63 else value
    if is_torch(type(like)):
        torch = sys.modules["torch"]
        return torch.full((1,), value, dtype=torch.int64, device=like.device)
    import numpy

    return numpy.array([value], numpy.int64)


def result_type(function, names):
    """Makes a named tuple of these outputs from a tuple. It is one type for all who ask: pickle looks for it here."""
    name = f"{function}_{'_'.join(names)}"
    if name not in globals():
        globals()[name] = collections.namedtuple(name, names, module=__name__)
    return globals()[name]._make
