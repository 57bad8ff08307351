"""The activations in five languages: rooftile/ops/languages.py says how these functions are found, run and judged.

In each language, what one element is stands first, and what applies it to all elements last. x·sigmoid is 0 where the
sigmoid is: -inf · 0 would be NaN.
"""

import math

from languages import cuda, np, takes, tl, torch, trap, triton

K1, K3 = 1.5957691216057308, 1.5957691216057308 * 0.044715  # gelu's tanh form is x·sigmoid(K1·x + K3·x³)
BLOCK = 1024  # elements of a Triton program
THREADS = 64  # of a CUDA block


# [plain]
def sigmoid(v):
    """Of -|v| a power never overflows."""
    power = math.exp(-abs(v))
    return 1 / (1 + power) if v >= 0 or math.isnan(v) else power / (1 + power)


def times_share(x, share):
    return 0.0 if share == 0 else x * share


def relu_plain(x):
    return [0.0 if v <= 0 else v for v in x]  # not max(v, 0), which may lose a NaN


def sigmoid_plain(x):
    return [sigmoid(v) for v in x]


def tanh_plain(x):
    return [math.tanh(v) for v in x]


def silu_plain(x, beta=1.0):
    return [times_share(v, sigmoid(beta * v)) for v in x]


def gelu_plain(x, tanh=False):
    if tanh:
        return [times_share(v, sigmoid(v * (K1 + K3 * v * v))) for v in x]
    return [times_share(v, 0.5 * math.erfc(-v * math.sqrt(0.5))) for v in x]
# [/plain]


# [relu_plain_maximum]
@trap("max(0, v) is 0 where v is NaN: an error upstream vanishes")
def relu_plain_maximum(x):
    return [max(0.0, v) for v in x]
# [/relu_plain_maximum]


# [sigmoid_numpy_overflow]
@trap("e^v / (1 + e^v) is inf / inf from 89 on")
def sigmoid_numpy_overflow(x):
    power = np.exp(x.astype(np.float32))
    return (power / (1 + power)).astype(x.dtype)
# [/sigmoid_numpy_overflow]


# [backward_plain]
def slope_of(v, share, term):
    """share + term; of an infinite v the limit, share."""
    return share if math.isinf(v) else share + term


def silu_slope(x, beta):
    v = beta * x
    return slope_of(v, sigmoid(v), v * sigmoid(v) * sigmoid(-v))


def gelu_slope(x, tanh):
    square = x * x
    if not tanh:
        density = math.exp(-0.5 * square) / math.sqrt(2 * math.pi)
        return slope_of(x, 0.5 * math.erfc(-x * math.sqrt(0.5)), x * density)
    v = x * (K1 + K3 * square)
    return slope_of(x, sigmoid(v), x * sigmoid(v) * sigmoid(-v) * (K1 + 3 * K3 * square))


def relu_backward_plain(x, dy):
    return [0.0 if v <= 0 else slope for v, slope in zip(x, dy)]


def sigmoid_backward_plain(y, dy):
    return [slope * (v * (1 - v)) for v, slope in zip(y, dy)]


def tanh_backward_plain(y, dy):
    return [slope * (1 - v * v) for v, slope in zip(y, dy)]


def silu_backward_plain(x, dy, beta=1.0):
    return [slope * silu_slope(v, beta) for v, slope in zip(x, dy)]


def gelu_backward_plain(x, dy, tanh=False):
    return [slope * gelu_slope(v, tanh) for v, slope in zip(x, dy)]
# [/backward_plain]


# [numpy]
def sigmoid_of(v):
    power = np.exp(-np.abs(v))
    return np.where(v < 0, power, 1) / (1 + power)


def share_of(x, share):
    return np.where(share == 0, 0, x * share)


erfc = np.vectorize(math.erfc, otypes=[np.float64])  # NumPy has none


def relu_numpy(x):
    return np.where(x <= 0, x.dtype.type(0), x)  # of np.maximum(-0, 0) the sign is left open


def sigmoid_numpy(x):
    return sigmoid_of(x.astype(np.float64)).astype(x.dtype)


def tanh_numpy(x):
    return np.tanh(x.astype(np.float64)).astype(x.dtype)


def silu_numpy(x, beta=1.0):
    values = x.astype(np.float64)
    return share_of(values, sigmoid_of(beta * values)).astype(x.dtype)


def gelu_numpy(x, tanh=False):
    values = x.astype(np.float64)
    share = sigmoid_of(values * (K1 + K3 * values * values)) if tanh else 0.5 * erfc(-values * math.sqrt(0.5))
    return share_of(values, share).astype(x.dtype)
# [/numpy]


# [backward_numpy]
def relu_backward_numpy(x, dy):
    return np.where(x <= 0, dy.dtype.type(0), dy)


def sigmoid_backward_numpy(y, dy):
    values = y.astype(np.float64)
    return (dy * (values * (1 - values))).astype(y.dtype)


def tanh_backward_numpy(y, dy):
    return (dy * (1 - np.square(y.astype(np.float64)))).astype(y.dtype)


def silu_backward_numpy(x, dy, beta=1.0):
    v = beta * x.astype(np.float64)
    slope = sigmoid_of(v) + np.where(np.isinf(v), 0, v * sigmoid_of(v) * sigmoid_of(-v))
    return (dy * slope).astype(x.dtype)


def gelu_backward_numpy(x, dy, tanh=False):
    values = x.astype(np.float64)
    square = np.square(values)
    v = values * (K1 + K3 * square)
    if tanh:
        share, term = sigmoid_of(v), values * sigmoid_of(v) * sigmoid_of(-v) * (K1 + 3 * K3 * square)
    else:
        share = 0.5 * erfc(-values * math.sqrt(0.5))
        term = values * np.exp(-0.5 * square) / math.sqrt(2 * math.pi)
    return (dy * (share + np.where(np.isinf(values), 0, term))).astype(x.dtype)
# [/backward_numpy]


# [torch]
def share_of_torch(x, share):
    return torch.where(share == 0, 0, x * share)


def relu_torch(x):
    return torch.where(x <= 0, 0, x)  # torch.relu(-0) is -0


def sigmoid_torch(x):
    return torch.sigmoid(x.double()).to(x.dtype)


def tanh_torch(x):
    return torch.tanh(x.double()).to(x.dtype)


def silu_torch(x, beta=1.0):
    values = x.double()
    return share_of_torch(values, torch.sigmoid(beta * values)).to(x.dtype)


def gelu_torch(x, tanh=False):
    """torch.nn.functional.gelu takes 1 + erf, whose digits are gone where x is far below 0: erfc keeps them."""
    values = x.double()
    if tanh:
        share = torch.sigmoid(values * (K1 + K3 * values * values))
    else:
        share = 0.5 * torch.special.erfc(-values * math.sqrt(0.5))
    return share_of_torch(values, share).to(x.dtype)
# [/torch]


# [backward_torch]
def relu_backward_torch(x, dy):
    return torch.where(x <= 0, 0, dy)


def sigmoid_backward_torch(y, dy):
    values = y.double()
    return (dy * (values * (1 - values))).to(y.dtype)


def tanh_backward_torch(y, dy):
    return (dy * (1 - y.double().square())).to(y.dtype)


def silu_backward_torch(x, dy, beta=1.0):
    v = beta * x.double()
    slope = v.sigmoid() + torch.where(v.isinf(), 0, v * v.sigmoid() * (-v).sigmoid())
    return (dy * slope).to(x.dtype)


def gelu_backward_torch(x, dy, tanh=False):
    values = x.double()
    square = values.square()
    v = values * (K1 + K3 * square)
    if tanh:
        share, term = v.sigmoid(), values * v.sigmoid() * (-v).sigmoid() * (K1 + 3 * K3 * square)
    else:
        share = 0.5 * torch.special.erfc(-values * math.sqrt(0.5))
        term = values * (-0.5 * square).exp() / math.sqrt(2 * math.pi)
    return (dy * (share + torch.where(values.isinf(), 0, term))).to(x.dtype)
# [/backward_torch]


# [triton_elements]
@triton.jit
def relu_block(x, beta):
    return tl.where(x <= 0, 0.0, x)


@triton.jit
def sigmoid_block(x, beta):
    power = tl.exp(-tl.abs(x))
    return tl.where(x < 0, power, 1.0) / (1 + power)


@triton.jit
def tanh_block(x, beta):
    power = tl.exp(-2 * tl.abs(x).to(tl.float64))  # 1 - power cancels near 0, where tanh x = x
    result = (1 - power) / (1 + power)
    return tl.where(tl.abs(x) < 1e-4, x, tl.where(x < 0, -result, result))


@triton.jit
def silu_block(x, beta):
    share = sigmoid_block(beta * x, 1.0)
    return tl.where(share == 0, 0.0, x * share)


@triton.jit
def gelu_block(x, beta):
    share = sigmoid_block(x * (1.5957691216057308 + 0.07135481282636433 * x * x), 1.0)
    return tl.where(share == 0, 0.0, x * share)
# [/triton_elements]


# [triton]
@triton.jit
def each_kernel(x, y, n, beta, F: tl.constexpr, BLOCK: tl.constexpr):
    """F of each element, in f32; F is a function that is compiled with the kernel."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(y + offsets, F(values, beta).to(y.dtype.element_ty), mask=offsets < n)


def each_triton(x, function, beta=1.0):
    y = torch.empty_like(x)
    if x.numel() > 0:
        each_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), beta, F=function, BLOCK=BLOCK)
    return y


def relu_triton(x):
    return each_triton(x, relu_block)


def sigmoid_triton(x):
    return each_triton(x, sigmoid_block)


def tanh_triton(x):
    return each_triton(x, tanh_block)


def silu_triton(x, beta=1.0):
    return each_triton(x, silu_block, beta)


@takes(only={"tanh": 1})  # 1 + tl.erf has no digits left where x is far below 0, and there is no tl.erfc
def gelu_triton(x, tanh=False):
    return each_triton(x, gelu_block)
# [/triton]


# [numba]
@cuda.jit(device=True)
def sigmoid_device(v):
    power = math.exp(-abs(v))
    return 1 / (1 + power) if v >= 0 else power / (1 + power)


@cuda.jit(device=True)
def share_device(x, share):
    return 0.0 if share == 0 else x * share


@cuda.jit(device=True)
def gelu_device(x, tanh):
    if tanh:
        return share_device(x, sigmoid_device(x * (K1 + K3 * x * x)))
    return share_device(x, 0.5 * math.erfc(-x * math.sqrt(0.5)))


def each(function):
    """A kernel in which a thread applies the function to one element, in f64."""

    @cuda.jit
    def kernel(x, y, option):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = function(np.float64(x[i]), option)

    return kernel
# [/numba]


# [numba_kernels]
relu_threads = each(cuda.jit(device=True)(lambda v, _: 0.0 if v <= 0 else v))
sigmoid_threads = each(cuda.jit(device=True)(lambda v, _: sigmoid_device(v)))
tanh_threads = each(cuda.jit(device=True)(lambda v, _: math.tanh(v)))
silu_threads = each(cuda.jit(device=True)(lambda v, beta: share_device(v, sigmoid_device(beta * v))))
gelu_threads = each(gelu_device)


def each_numba(x, kernel, option=0.0):
    y = cuda.device_array(x.shape, x.dtype)
    if x.size > 0:
        kernel[(x.size + THREADS - 1) // THREADS, THREADS](x, y, option)
    return y


def relu_numba(x):
    return each_numba(x, relu_threads)


def sigmoid_numba(x):
    return each_numba(x, sigmoid_threads)


def tanh_numba(x):
    return each_numba(x, tanh_threads)


def silu_numba(x, beta=1.0):
    return each_numba(x, silu_threads, beta)


def gelu_numba(x, tanh=False):
    return each_numba(x, gelu_threads, tanh)
# [/numba_kernels]
