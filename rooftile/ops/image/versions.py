"""Gray in five languages: rooftile/ops/languages.py says how these functions are found, run and judged.

Weights are thousandths: 299, 587, 114, or by luminosity 210, 720, 70. Whole numbers, so that every machine rounds alike.
"""

from languages import cuda, np, tl, torch, trap, triton

BLOCK = 1024  # pixels of a Triton program
THREADS = 64  # of a CUDA block


def weights(luminosity):
    return (210, 720, 70) if luminosity else (299, 587, 114)


# [rgb_to_gray_plain]
def rgb_to_gray_plain(rgb, luminosity=False):
    a, b, c = weights(luminosity)
    gray = []
    for red, green, blue in rgb:
        gray.append((a * red + b * green + c * blue + 500) // 1000)
    return gray
# [/rgb_to_gray_plain]


# [rgb_to_gray_numpy]
def rgb_to_gray_numpy(rgb, luminosity=False):
    """A u8 holds up to 255: sums are taken in i32."""
    total = (rgb.astype(np.int32) * np.array(weights(luminosity), np.int32)).sum(axis=-1)
    return ((total + 500) // 1000).astype(np.uint8)
# [/rgb_to_gray_numpy]


# [rgb_to_gray_numpy_overflow]
@trap("a mean of u8 taken in u8: sums wrap around at 256")
def rgb_to_gray_numpy_overflow(rgb, luminosity=False):
    return (rgb[..., 0] + rgb[..., 1] + rgb[..., 2]) // np.uint8(3)
# [/rgb_to_gray_numpy_overflow]


# [rgb_to_gray_torch]
def rgb_to_gray_torch(rgb, luminosity=False):
    total = (rgb.int() * torch.tensor(weights(luminosity), dtype=torch.int32, device=rgb.device)).sum(-1)
    return ((total + 500) // 1000).to(torch.uint8)
# [/rgb_to_gray_torch]


# [rgb_to_gray_triton]
@triton.jit
def gray_kernel(rgb, gray, n, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr):
    pixel = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = pixel < n
    red = tl.load(rgb + 3 * pixel, mask=mask).to(tl.int32)
    green = tl.load(rgb + 3 * pixel + 1, mask=mask).to(tl.int32)
    blue = tl.load(rgb + 3 * pixel + 2, mask=mask).to(tl.int32)
    tl.store(gray + pixel, ((A * red + B * green + C * blue + 500) // 1000).to(tl.uint8), mask=mask)


def rgb_to_gray_triton(rgb, luminosity=False):
    n = rgb.shape[0]
    gray = torch.empty(n, dtype=torch.uint8, device=rgb.device)
    if n > 0:
        gray_kernel[(triton.cdiv(n, BLOCK),)](rgb, gray, n, *weights(luminosity), BLOCK=BLOCK)
    return gray
# [/rgb_to_gray_triton]


# [rgb_to_gray_numba]
@cuda.jit
def gray_threads(rgb, gray, a, b, c):
    i = cuda.grid(1)
    if i < gray.size:
        total = a * np.int32(rgb[i, 0]) + b * np.int32(rgb[i, 1]) + c * np.int32(rgb[i, 2])
        gray[i] = (total + 500) // 1000


def rgb_to_gray_numba(rgb, luminosity=False):
    gray = cuda.device_array(rgb.shape[0], np.uint8)
    if gray.size > 0:
        gray_threads[(gray.size + THREADS - 1) // THREADS, THREADS](rgb, gray, *weights(luminosity))
    return gray
# [/rgb_to_gray_numba]
