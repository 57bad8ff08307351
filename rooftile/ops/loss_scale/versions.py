"""Loss scaling in four languages: rooftile/ops/languages.py says how these functions are found, run and judged.

unscale takes one tensor; of many, found_inf is the largest.
"""

import math
from ctypes import c_float

from languages import np, tl, torch, trap, triton


# [loss_scale_plain]
def unscale_plain(gradient, scale):
    factor = c_float(1 / scale[0]).value
    return [c_float(g * factor).value for g in gradient], [0.0 if all(math.isfinite(g) for g in gradient) else 1.0]


def update_loss_scale_plain(scale, growth_tracker, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    if found_inf[0] != 0:
        return [scale[0] * backoff_factor], [0]
    if growth_tracker[0] + 1 < growth_interval:
        return scale, [growth_tracker[0] + 1]
    larger = scale[0] * growth_factor
    return [larger] if larger < 2.0**128 else scale, [0]
# [/loss_scale_plain]


# [loss_scale_numpy]
def unscale_numpy(gradient, scale):
    with np.errstate(all="ignore"):
        factor = (1 / scale.astype(np.float64)).astype(np.float32)
        unscaled = (gradient.astype(np.float32) * factor).astype(gradient.dtype)
        return unscaled.reshape(gradient.shape), np.float32(not np.isfinite(gradient).all())


def update_loss_scale_numpy(scale, growth_tracker, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    with np.errstate(all="ignore"):
        if found_inf.flat[0] != 0:
            return np.float32(np.float64(scale.flat[0]) * backoff_factor), np.int32(0)
        if int(growth_tracker.flat[0]) + 1 < growth_interval:
            return scale, growth_tracker + np.int32(1)
        larger = np.float32(np.float64(scale.flat[0]) * growth_factor)
        return larger if np.isfinite(larger) else scale, np.int32(0)
# [/loss_scale_numpy]


# [loss_scale_torch]
def unscale_torch(gradient, scale):
    found_inf = torch.zeros((), device=gradient.device)
    unscaled = gradient.contiguous().clone()
    torch._amp_foreach_non_finite_check_and_unscale_([unscaled], found_inf, scale.reshape(()).double().reciprocal().float())
    return unscaled, found_inf


def update_loss_scale_torch(scale, growth_tracker, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    tracker = growth_tracker.clamp(max=int(growth_interval) - 1)  # PyTorch's grows at the interval alone
    scale = scale.clone()
    torch._amp_update_scale_(scale, tracker, found_inf, growth_factor, backoff_factor, int(growth_interval))
    return scale, tracker
# [/loss_scale_torch]


# [loss_scale_traps]
@trap("the flag is about the quotients: what a tiny scale makes infinite is no overflow of the backward pass")
def unscale_numpy_flag_after(gradient, scale):
    unscaled, _ = unscale_numpy(gradient, scale)
    return unscaled, np.float32(not np.isfinite(unscaled).all())


@trap("a NaN is not infinite, and the step is done with it")
def unscale_numpy_infinities_alone(gradient, scale):
    return unscale_numpy(gradient, scale)[0], np.float32(np.isinf(gradient).any())


@trap("the scale doubles until it is infinite, and each gradient with it")
def update_loss_scale_numpy_to_infinity(scale, growth_tracker, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    with np.errstate(all="ignore"):
        if found_inf.flat[0] == 0 and int(growth_tracker.flat[0]) + 1 >= growth_interval:
            return np.float32(np.float64(scale.flat[0]) * growth_factor), np.int32(0)
        return update_loss_scale_numpy(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval)


@trap("an overflow leaves the count: the scale grows back at once")
def update_loss_scale_numpy_count_kept(scale, growth_tracker, found_inf, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000):
    made, tracker = update_loss_scale_numpy(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval)
    return made, growth_tracker if found_inf.flat[0] != 0 else tracker
# [/loss_scale_traps]


# [loss_scale_triton]
@triton.jit
def unscale_kernel(gradient, scale, out, found_inf, count, SIZE: tl.constexpr):
    """Blocks that find something write the same number; none of them waits for another."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    factor = (1.0 / tl.load(scale).to(tl.float64)).to(tl.float32)
    g = tl.load(gradient + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(out + at, (g * factor).to(out.dtype.element_ty), mask=at < count)
    tl.store(found_inf, 1.0, mask=tl.sum((g - g != 0).to(tl.int32)) > 0)


def unscale_triton(gradient, scale):
    out, found_inf, SIZE = torch.empty_like(gradient), torch.zeros((), device=gradient.device), 1024
    if gradient.numel() > 0:
        unscale_kernel[(triton.cdiv(gradient.numel(), SIZE),)](gradient, scale, out, found_inf, gradient.numel(), SIZE=SIZE)
    return out, found_inf
# [/loss_scale_triton]
