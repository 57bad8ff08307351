"""Convolution in four languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import functools

from languages import np, takes, tl, torch, trap, triton


def whole_options(version):
    """Options arrive as floats."""

    @functools.wraps(version)
    def call(x, w, bias=None, **options):
        return version(x, w, bias, **{name: int(value) for name, value in options.items()})

    return call


def windows(size, taps, stride, padding, dilation):
    """How many windows there are along one dimension."""
    return (size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1


# [conv2d_plain]
@takes(only={"channels_last": 0})
@whole_options
def conv2d_plain(x, w, bias=None, stride_h=1, stride_w=1, padding_h=0, padding_w=0, dilation_h=1, dilation_w=1, groups=1):
    """Seven loops: pictures, filters, windows down and across, and a filter's taps and channels."""
    if not (x and x[0] and w and w[0]):
        return None  # lists without elements have no width
    high, wide, channels, taps_h, taps_w = len(x[0][0]), len(x[0][0][0]), len(w[0]), len(w[0][0]), len(w[0][0][0])
    down = windows(high, taps_h, stride_h, padding_h, dilation_h)
    across = windows(wide, taps_w, stride_w, padding_w, dilation_w)

    def pixel(plane, i, j):
        return plane[i][j] if 0 <= i < high and 0 <= j < wide else 0.0

    def window(picture, k, p, q):
        first = k // (len(w) // groups) * channels
        return sum(w[k][c][r][s] * pixel(picture[first + c], p * stride_h - padding_h + r * dilation_h,
                                         q * stride_w - padding_w + s * dilation_w)
                   for r in range(taps_h) for s in range(taps_w) for c in range(channels)) + (bias[k] if bias else 0.0)

    return [[[[window(picture, k, p, q) for q in range(across)] for p in range(down)] for k in range(len(w))]
            for picture in x]
# [/conv2d_plain]


# [conv2d_numpy]
@takes(only={"channels_last": 0})
@whole_options
def conv2d_numpy(x, w, bias=None, stride_h=1, stride_w=1, padding_h=0, padding_w=0, dilation_h=1, dilation_w=1, groups=1):
    """Views of all windows, which copy nothing, and one product."""
    k, channels, taps_h, taps_w = w.shape
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding_h, padding_h), (padding_w, padding_w)))
    reach = (dilation_h * (taps_h - 1) + 1, dilation_w * (taps_w - 1) + 1)
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))
    seen = seen[:, :, ::stride_h, ::stride_w, ::dilation_h, ::dilation_w]
    n, _, p, q = seen.shape[:4]
    seen = seen.reshape(n, groups, channels, p, q, taps_h, taps_w)
    filters = w.astype(np.float64).reshape(groups, k // groups, channels, taps_h, taps_w)
    y = np.einsum("ngcpqrs,gkcrs->ngkpq", seen, filters, optimize=False).reshape(n, k, p, q)
    return (y if bias is None else y + bias[:, None, None].astype(np.float64)).astype(x.dtype)
# [/conv2d_numpy]


# [conv2d_torch]
@takes(only={"channels_last": 0})
@whole_options
def conv2d_torch(x, w, bias=None, stride_h=1, stride_w=1, padding_h=0, padding_w=0, dilation_h=1, dilation_w=1, groups=1):
    if 0 in x.shape[:2] or 0 in w.shape:
        return conv2d_empty(x, w, bias, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w)
    y = torch.nn.functional.conv2d(x.double(), w.double(), None if bias is None else bias.double(), (stride_h, stride_w),
                                   (padding_h, padding_w), (dilation_h, dilation_w), groups)
    return y.to(x.dtype)
# [/conv2d_torch]


def conv2d_empty(x, w, bias, stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w):
    """Without pictures or channels, which torch.nn.functional.conv2d does not take."""
    y = x.new_zeros(x.shape[0], w.shape[0], windows(x.shape[2], w.shape[2], stride_h, padding_h, dilation_h),
                    windows(x.shape[3], w.shape[3], stride_w, padding_w, dilation_w))
    return y if bias is None else y + bias[:, None, None].to(x.dtype)


# [conv2d_torch_flipped]
@trap("the flipped filter: what a mathematician calls a convolution")
@takes(only={"channels_last": 0})
@whole_options
def conv2d_torch_flipped(x, w, bias=None, stride_h=1, stride_w=1, padding_h=0, padding_w=0, dilation_h=1, dilation_w=1, groups=1):
    return conv2d_torch(x, w.flip(2, 3), bias, stride_h=stride_h, stride_w=stride_w, padding_h=padding_h, padding_w=padding_w,
                        dilation_h=dilation_h, dilation_w=dilation_w, groups=groups)
# [/conv2d_torch_flipped]


# [conv2d_triton]
@triton.jit
def conv2d_kernel(x, w, bias, y, C, H, W, K, R, S, P, Q, D, sh, sw, ph, pw, dh, dw, each, HAS_BIAS: tl.constexpr,
                  SIZE: tl.constexpr):
    """One program: SIZE windows of one picture and one filter."""
    n, k = tl.program_id(1) // K, tl.program_id(1) % K
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    p, q = at // Q, at % Q
    sums = tl.zeros([SIZE], tl.float32)
    for t in range(0, R * S * D):
        r, s, c = t // D // S, t // D % S, t % D
        i, j = p * sh - ph + r * dh, q * sw - pw + s * dw
        inside = (i >= 0) & (i < H) & (j >= 0) & (j < W) & (at < P * Q)
        pixels = tl.load(x + ((n * C + k // each * D + c) * H + i) * W + j, mask=inside, other=0.0)
        sums += tl.load(w + ((k * D + c) * R + r) * S + s).to(tl.float32) * pixels.to(tl.float32)
    if HAS_BIAS:
        sums += tl.load(bias + k).to(tl.float32)
    tl.store(y + (n * K + k) * P * Q + at, sums, mask=at < P * Q)


@takes(only={"channels_last": 0})
@whole_options
def conv2d_triton(x, w, bias=None, stride_h=1, stride_w=1, padding_h=0, padding_w=0, dilation_h=1, dilation_w=1, groups=1):
    (n, c, high, wide), (k, channels, taps_h, taps_w) = x.shape, w.shape
    p, q = windows(high, taps_h, stride_h, padding_h, dilation_h), windows(wide, taps_w, stride_w, padding_w, dilation_w)
    y = x.new_empty(n, k, p, q)
    if y.numel():
        conv2d_kernel[((p * q + 127) // 128, n * k)](
            x, w, x if bias is None else bias, y, c, high, wide, k, taps_h, taps_w, p, q, channels, stride_h, stride_w,
            padding_h, padding_w, dilation_h, dilation_w, k // groups, HAS_BIAS=bias is not None, SIZE=128)
    return y
# [/conv2d_triton]
