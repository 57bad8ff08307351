"""Gated units in five languages: rooftile/ops/languages.py says how these functions are found, run and judged.

y = f(gate)·up; f is silu (SwiGLU) or gelu (GeGLU): rooftile/ops/activation/versions.py has them alone.
"""

import math

from languages import cuda, np, takes, tl, torch, trap, triton

K1, K3 = 1.5957691216057308, 1.5957691216057308 * 0.044715  # gelu's tanh form is x·sigmoid(K1·x + K3·x³)
BLOCK = 1024  # elements of a Triton program
THREADS = 64  # of a CUDA block


# [plain]
def sigmoid(v):
    power = math.exp(-abs(v))
    return 1 / (1 + power) if v >= 0 or math.isnan(v) else power / (1 + power)


def silu(x, beta):
    """The value, and the slope; -inf · 0 and the like are their limits."""
    v = beta * x
    share = sigmoid(v)
    slope = share if math.isinf(v) else share + v * share * sigmoid(-v)
    return 0.0 if share == 0 else x * share, slope


def gelu(x, tanh):
    square = x * x
    if tanh:
        v = x * (K1 + K3 * square)
        share, term = sigmoid(v), x * sigmoid(v) * sigmoid(-v) * (K1 + 3 * K3 * square)
    else:
        share = 0.5 * math.erfc(-x * math.sqrt(0.5))
        term = x * math.exp(-0.5 * square) / math.sqrt(2 * math.pi)
    return 0.0 if share == 0 else x * share, share if math.isinf(x) else share + term


def swiglu_plain(gate, up, beta=1.0):
    return [silu(g, beta)[0] * u for g, u in zip(gate, up)]


def geglu_plain(gate, up, tanh=False):
    return [gelu(g, tanh)[0] * u for g, u in zip(gate, up)]
# [/plain]


# [swiglu_plain_exchanged]
@trap("gate and up exchanged")
def swiglu_plain_exchanged(gate, up, beta=1.0):
    return [silu(u, beta)[0] * g for g, u in zip(gate, up)]
# [/swiglu_plain_exchanged]


# [backward_plain]
def gated_backward(gate, up, dy, function):
    """dgate = dy·up·f'(gate), dup = dy·f(gate)."""
    dgate, dup = [], []
    for g, u, slope_of_y in zip(gate, up, dy):
        value, slope = function(g)
        dgate.append(slope_of_y * u * slope)
        dup.append(slope_of_y * value)
    return dgate, dup


def swiglu_backward_plain(gate, up, dy, beta=1.0):
    return gated_backward(gate, up, dy, lambda g: silu(g, beta))


def geglu_backward_plain(gate, up, dy, tanh=False):
    return gated_backward(gate, up, dy, lambda g: gelu(g, tanh))
# [/backward_plain]


# [numpy]
def sigmoid_of(v):
    power = np.exp(-np.abs(v))
    return np.where(v < 0, power, 1) / (1 + power)


erfc = np.vectorize(math.erfc, otypes=[np.float64])  # NumPy has none


def np_silu(gate, beta):
    """Value and slope."""
    v = beta * gate
    share = sigmoid_of(v)
    return np.where(share == 0, 0, gate * share), share + np.where(np.isinf(v), 0, v * share * sigmoid_of(-v))


def np_gelu(gate, tanh):
    square = np.square(gate)
    if tanh:
        v = gate * (K1 + K3 * square)
        share, term = sigmoid_of(v), gate * sigmoid_of(v) * sigmoid_of(-v) * (K1 + 3 * K3 * square)
    else:
        share = 0.5 * erfc(-gate * math.sqrt(0.5))
        term = gate * np.exp(-0.5 * square) / math.sqrt(2 * math.pi)
    return np.where(share == 0, 0, gate * share), share + np.where(np.isinf(gate), 0, term)


def swiglu_numpy(gate, up, beta=1.0):
    return (np_silu(gate.astype(np.float64), beta)[0] * up).astype(gate.dtype)


def geglu_numpy(gate, up, tanh=False):
    return (np_gelu(gate.astype(np.float64), tanh)[0] * up).astype(gate.dtype)
# [/numpy]


# [backward_numpy]
def swiglu_backward_numpy(gate, up, dy, beta=1.0):
    value, slope = np_silu(gate.astype(np.float64), beta)
    return (dy * (up * slope)).astype(gate.dtype), (dy * value).astype(gate.dtype)


def geglu_backward_numpy(gate, up, dy, tanh=False):
    value, slope = np_gelu(gate.astype(np.float64), tanh)
    return (dy * (up * slope)).astype(gate.dtype), (dy * value).astype(gate.dtype)
# [/backward_numpy]


# [torch]
def torch_silu(gate, beta):
    """Value and slope."""
    v = beta * gate
    share = v.sigmoid()
    slope = share + torch.where(v.isinf(), 0, v * share * (-v).sigmoid())
    return torch.where(share == 0, 0, gate * share), slope


def torch_gelu(gate, tanh):
    square = gate.square()
    if tanh:
        v = gate * (K1 + K3 * square)
        share, term = v.sigmoid(), gate * v.sigmoid() * (-v).sigmoid() * (K1 + 3 * K3 * square)
    else:
        share = 0.5 * torch.special.erfc(-gate * math.sqrt(0.5))
        term = gate * (-0.5 * square).exp() / math.sqrt(2 * math.pi)
    return torch.where(share == 0, 0, gate * share), share + torch.where(gate.isinf(), 0, term)


def swiglu_torch(gate, up, beta=1.0):
    return (torch_silu(gate.double(), beta)[0] * up).to(gate.dtype)


def geglu_torch(gate, up, tanh=False):
    return (torch_gelu(gate.double(), tanh)[0] * up).to(gate.dtype)
# [/torch]


# [backward_torch]
def swiglu_backward_torch(gate, up, dy, beta=1.0):
    value, slope = torch_silu(gate.double(), beta)
    return (dy * (up * slope)).to(gate.dtype), (dy * value).to(gate.dtype)


def geglu_backward_torch(gate, up, dy, tanh=False):
    value, slope = torch_gelu(gate.double(), tanh)
    return (dy * (up * slope)).to(gate.dtype), (dy * value).to(gate.dtype)
# [/backward_torch]


# [triton]
@triton.jit
def sigmoid_block(x):
    power = tl.exp(-tl.abs(x))
    return tl.where(x < 0, power, 1.0) / (1 + power)


@triton.jit
def gated_kernel(gate, up, y, n, beta, GELU: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    g = tl.load(gate + offsets, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(up + offsets, mask=mask, other=0.0).to(tl.float32)
    if GELU:
        share = sigmoid_block(g * (1.5957691216057308 + 0.07135481282636433 * g * g))
    else:
        share = sigmoid_block(beta * g)
    value = tl.where(share == 0, 0.0, g * share)
    tl.store(y + offsets, (value * u).to(y.dtype.element_ty), mask=mask)


def gated(gate, up, beta, is_gelu):
    y, n = torch.empty_like(gate), gate.numel()
    if n > 0:
        gated_kernel[(triton.cdiv(n, BLOCK),)](gate, up, y, n, beta, is_gelu, BLOCK=BLOCK)
    return y


def swiglu_triton(gate, up, beta=1.0):
    return gated(gate, up, beta, False)


@takes(only={"tanh": 1})  # 1 + tl.erf has no digits left where x is far below 0, and there is no tl.erfc
def geglu_triton(gate, up, tanh=False):
    return gated(gate, up, 1.0, True)
# [/triton]


# [backward_triton]
@triton.jit
def swiglu_backward_kernel(gate, up, dy, dgate, dup, n, beta, BLOCK: tl.constexpr):
    """Each operand is read once for both gradients."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    g = tl.load(gate + offsets, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(up + offsets, mask=mask, other=0.0).to(tl.float32)
    slope_of_y = tl.load(dy + offsets, mask=mask, other=0.0).to(tl.float32)
    v = beta * g
    share = sigmoid_block(v)
    value = tl.where(share == 0, 0.0, g * share)
    slope = share + tl.where(tl.abs(v) == float("inf"), 0.0, v * share * sigmoid_block(-v))
    tl.store(dgate + offsets, (slope_of_y * u * slope).to(dgate.dtype.element_ty), mask=mask)
    tl.store(dup + offsets, (slope_of_y * value).to(dup.dtype.element_ty), mask=mask)


def swiglu_backward_triton(gate, up, dy, beta=1.0):
    dgate, dup, n = torch.empty_like(gate), torch.empty_like(gate), gate.numel()
    if n > 0:
        swiglu_backward_kernel[(triton.cdiv(n, BLOCK),)](gate, up, dy, dgate, dup, n, beta, BLOCK=BLOCK)
    return dgate, dup
# [/backward_triton]


# [numba]
@cuda.jit(device=True)
def sigmoid_device(v):
    power = math.exp(-abs(v))
    return 1 / (1 + power) if v >= 0 else power / (1 + power)


@cuda.jit
def gated_threads(gate, up, y, beta, is_gelu, tanh):
    i = cuda.grid(1)
    if i < y.size:
        g = np.float64(gate[i])
        if not is_gelu:
            share = sigmoid_device(beta * g)
        elif tanh:
            share = sigmoid_device(g * (K1 + K3 * g * g))
        else:
            share = 0.5 * math.erfc(-g * math.sqrt(0.5))
        y[i] = (0.0 if share == 0 else g * share) * up[i]


def gated_numba(gate, up, beta, is_gelu, tanh):
    y = cuda.device_array(gate.shape, gate.dtype)
    if y.size > 0:
        gated_threads[(y.size + THREADS - 1) // THREADS, THREADS](gate, up, y, beta, is_gelu, tanh)
    return y


def swiglu_numba(gate, up, beta=1.0):
    return gated_numba(gate, up, beta, False, False)


def geglu_numba(gate, up, tanh=False):
    return gated_numba(gate, up, 1.0, True, bool(tanh))
# [/numba]
