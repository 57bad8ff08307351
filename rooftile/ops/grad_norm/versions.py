"""The norm of gradients and clipping in four languages: rooftile/ops/languages.py says how these functions are found, run and
judged.

Each takes one tensor; the norm of many is that of their norms.
"""

import math

from languages import np, tl, torch, trap, triton


# [grad_norm_plain]
def clip_coefficient(norm, max_norm):
    ratio = max_norm / (norm + 1e-6)
    return 1.0 if ratio >= 1 else ratio  # a NaN stays one


def grad_norm_plain(gradient, gradient_scale=(1.0,), max_norm=1.0):
    norm = math.sqrt(sum(g * g for g in gradient)) * abs(gradient_scale[0])
    finite = all(math.isfinite(g) for g in gradient)
    return [norm], [gradient_scale[0] * clip_coefficient(norm, max_norm)], [0.0 if finite else 1.0]


def clip_by_norm_plain(gradient, norm, gradient_scale=(1.0,), max_norm=1.0):
    factor = gradient_scale[0] * clip_coefficient(norm[0], max_norm)
    return [g * factor for g in gradient]
# [/grad_norm_plain]


# [grad_norm_numpy]
def grad_norm_numpy(gradient, gradient_scale=None, max_norm=1.0):
    with np.errstate(all="ignore"):
        scale = 1.0 if gradient_scale is None else float(gradient_scale.flat[0])
        g = gradient.astype(np.float64)
        norm = np.sqrt(np.sum(g * g)) * abs(scale)
        coefficient = scale * np.minimum(max_norm / (norm + 1e-6), 1.0)
        return np.float32(norm), np.float32(coefficient), np.float32(not np.isfinite(g).all())


def clip_by_norm_numpy(gradient, norm, gradient_scale=None, max_norm=1.0):
    with np.errstate(all="ignore"):
        scale = 1.0 if gradient_scale is None else float(gradient_scale.flat[0])
        factor = scale * np.minimum(max_norm / (float(norm.flat[0]) + 1e-6), 1.0)
        return (gradient.astype(np.float64) * factor).astype(gradient.dtype)
# [/grad_norm_numpy]


# [grad_norm_torch]
def grad_norm_torch(gradient, gradient_scale=None, max_norm=1.0):
    scale = torch.ones((), dtype=torch.float64) if gradient_scale is None else gradient_scale.double()
    norm = torch.linalg.vector_norm(gradient.double()) * scale.abs()
    coefficient = scale * torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    return norm.float(), coefficient.float(), (~torch.isfinite(gradient).all()).float()


def clip_by_norm_torch(gradient, norm, gradient_scale=None, max_norm=1.0):
    factor = torch.clamp(max_norm / (norm.double() + 1e-6), max=1.0)
    return (gradient.double() * (factor if gradient_scale is None else factor * gradient_scale)).to(gradient.dtype)
# [/grad_norm_torch]


# [grad_norm_traps]
@trap("squares are added in f32 as they are: of 1e20 the square is infinite, of 1e-30 it is 0")
def grad_norm_numpy_f32(gradient, gradient_scale=None, max_norm=1.0):
    with np.errstate(all="ignore"):
        scale = np.float32(1) if gradient_scale is None else gradient_scale.astype(np.float32).flat[0]
        g = gradient.astype(np.float32)
        norm = np.sqrt(np.sum(g * g, dtype=np.float32)) * abs(scale)
        coefficient = scale * np.minimum(np.float32(max_norm) / (norm + np.float32(1e-6)), np.float32(1))
        return norm, coefficient, np.float32(not np.isfinite(g).all())


@trap("the overflow flag is the norm's, which is infinite for finite gradients, too")
def grad_norm_numpy_flag_of_norm(gradient, gradient_scale=None, max_norm=1.0):
    norm, coefficient, _ = grad_norm_numpy_f32(gradient, gradient_scale, max_norm)
    return norm, coefficient, np.float32(not np.isfinite(norm))


@trap("the factor may exceed 1: small gradients grow to the norm that is a maximum")
def clip_by_norm_numpy_grows(gradient, norm, gradient_scale=None, max_norm=1.0):
    with np.errstate(all="ignore"):
        scale = 1.0 if gradient_scale is None else float(gradient_scale.flat[0])
        factor = scale * np.float64(max_norm) / (float(norm.flat[0]) + 1e-6)
        return (gradient.astype(np.float64) * factor).astype(gradient.dtype)


@trap("each tensor is clipped by its own norm, which turns the direction of the step")
def clip_by_norm_numpy_own_norm(gradient, norm, gradient_scale=None, max_norm=1.0):
    with np.errstate(all="ignore"):
        own = np.sqrt(np.sum(gradient.astype(np.float64) ** 2))
        return clip_by_norm_numpy(gradient, np.array(own), gradient_scale, max_norm)
# [/grad_norm_traps]


# [grad_norm_triton]
@triton.jit
def clip_kernel(gradient, norm, out, count, max_norm, scale, SIZE: tl.constexpr):
    """The norm is read by the kernel: nothing waits for it on the host."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    ratio = max_norm / (tl.load(norm).to(tl.float64) + 1e-6)
    factor = (scale * tl.where(ratio >= 1, 1.0, ratio)).to(tl.float32)
    g = tl.load(gradient + at, mask=at < count).to(tl.float32)
    tl.store(out + at, (g * factor).to(out.dtype.element_ty), mask=at < count)


def clip_by_norm_triton(gradient, norm, max_norm=1.0):
    out, SIZE = torch.empty_like(gradient), 1024
    if gradient.numel() > 0:
        clip_kernel[(triton.cdiv(gradient.numel(), SIZE),)](gradient, norm, out, gradient.numel(), max_norm, 1.0, SIZE=SIZE)
    return out
# [/grad_norm_triton]
