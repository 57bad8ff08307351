"""AdamW in four languages: rooftile/ops/languages.py says how these functions are found, run and judged.

Each makes one step of one parameter, and gives the new parameter, m, v, max_v, master and step counter: None for one that is absent.
"""

import math

from languages import np, tl, torch, trap, triton


# [adamw_plain]
def moved(mean, beta, x):
    """beta·mean + (1 - beta)·x from the nearer of the two: a mean far larger than x would leave none of x's digits."""
    return mean + (1 - beta) * (x - mean) if beta > 0.5 else x + beta * (mean - x)


def adamw_plain(parameter, gradient, m, v, steps, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01):
    t = steps[0] + 1
    correction1, correction2 = 1 - beta1**t, 1 - beta2**t
    ps, ms, vs = [], [], []
    for p, g, mean, square in zip(parameter, gradient, m, v):
        mean, square = moved(mean, beta1, g), moved(square, beta2, g * g)
        root = math.sqrt(square / correction2)
        ps.append(p - lr * weight_decay * p - lr * (mean / correction1) / (root + eps))
        ms.append(mean)
        vs.append(square)
    return ps, ms, vs, None, None, [t]
# [/adamw_plain]


# [adamw_numpy]
def adamw_numpy(parameter, gradient, m, v, max_v=None, master=None, steps=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8,
                weight_decay=0.01, l2=False, maximize=False):
    p, g, m64, v64 = (a.astype(np.float64) for a in (parameter if master is None else master, gradient, m, v))
    t = steps + 1
    with np.errstate(all="ignore"):
        g = -g if maximize else g
        if l2 and weight_decay:
            g = g + weight_decay * p
        m64, v64 = moved(m64, beta1, g), moved(v64, beta2, g * g)
        largest = v64 if max_v is None else np.where(v64 <= max_v, max_v, v64)
        correction1, correction2 = 1 - beta1 ** float(t.flat[0]), 1 - beta2 ** float(t.flat[0])
        step = lr / correction1 * m64 / (np.sqrt(largest) / np.sqrt(correction2) + eps)
        p = p - step if l2 else p - (lr * weight_decay * p + step)
        return (p.astype(parameter.dtype), m64.astype(m.dtype), v64.astype(v.dtype),
                None if max_v is None else largest.astype(v.dtype), None if master is None else p.astype(np.float32), t)
# [/adamw_numpy]


# [adamw_torch]
def adamw_torch(parameter, gradient, m, v, master=None, steps=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8,
                weight_decay=0.01):
    p, g, m64, v64 = (a.double() for a in (parameter if master is None else master, gradient, m, v))
    t = steps + 1
    m64, v64 = torch.lerp(m64, g, 1 - beta1), torch.lerp(v64, g * g, 1 - beta2)
    root = (v64 / (1 - beta2 ** t.double())).sqrt()
    p = p - lr * weight_decay * p - lr / (1 - beta1 ** t.double()) * m64 / (root + eps)
    return p.to(parameter.dtype), m64.to(m.dtype), v64.to(v.dtype), None, None if master is None else p.float(), t
# [/adamw_torch]


# [adamw_traps]
@trap("the decay is added to the gradient, so that m and v see it: Adam with L2")
def adamw_numpy_coupled(parameter, gradient, m, v, steps=None, lr=1e-3, weight_decay=0.01):
    g = gradient.astype(np.float64) + weight_decay * parameter.astype(np.float64)
    return adamw_numpy(parameter, g, m, v, None, None, steps, lr, weight_decay=0)


@trap("eps is inside of the root, where 1e-8 counts as 1e-4")
def adamw_numpy_eps_in_root(parameter, gradient, m, v, steps=None, lr=1e-3, eps=1e-8, weight_decay=0.01):
    _, mean, square, _, _, t = adamw_numpy(parameter, gradient, m, v, None, None, steps, lr)
    n, p = float(t.flat[0]), parameter.astype(np.float64)
    step = lr / (1 - 0.9**n) * mean / np.sqrt(square / (1 - 0.999**n) + eps)
    return (p - lr * weight_decay * p - step).astype(parameter.dtype), mean, square, None, None, t


@trap("the means begin at 0, and nothing corrects them: the first steps are too small by half")
def adamw_numpy_uncorrected(parameter, gradient, m, v, steps=None, lr=1e-3, eps=1e-8, weight_decay=0.01):
    _, mean, square, _, _, t = adamw_numpy(parameter, gradient, m, v, None, None, steps, lr)
    p = parameter.astype(np.float64)
    return (p - lr * weight_decay * p - lr * mean / (np.sqrt(square) + eps)).astype(parameter.dtype), mean, square, None, None, t


@trap("the counter is read before it counts: at step 0 both corrections are 0, and the step divides by 0")
def adamw_numpy_counts_late(parameter, gradient, m, v, steps=None, lr=1e-3, weight_decay=0.01):
    with np.errstate(all="ignore"):
        n, p = np.float64(steps.flat[0]), parameter.astype(np.float64)
        _, mean, square, _, _, t = adamw_numpy(parameter, gradient, m, v, None, None, steps, lr)
        step = lr / (1 - 0.9**n) * mean / (np.sqrt(square) / np.sqrt(1 - 0.999**n) + 1e-8)
        return (p - lr * weight_decay * p - step).astype(parameter.dtype), mean, square, None, None, t


@trap("the master weight is not written: each step begins where the first one did")
def adamw_numpy_master_kept(parameter, gradient, m, v, master, steps=None, lr=1e-3, weight_decay=0.01):
    p, mean, square, _, _, t = adamw_numpy(parameter, gradient, m, v, None, master, steps, lr, weight_decay=weight_decay)
    return p, mean, square, None, master, t
# [/adamw_traps]


# [adamw_triton]
@triton.jit
def adamw_kernel(parameter, gradient, m, v, new_parameter, new_m, new_v, count, decay, size, root_factor, beta1, beta2,
                 weight1, weight2, eps, SIZE: tl.constexpr):
    """One program, SIZE elements. What all of them share was computed on the host, in f64."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    mask = at < count
    p, g = tl.load(parameter + at, mask=mask).to(tl.float32), tl.load(gradient + at, mask=mask).to(tl.float32)
    mean, square = tl.load(m + at, mask=mask).to(tl.float32), tl.load(v + at, mask=mask, other=1.0).to(tl.float32)
    mean = tl.where(weight1 < 0.5, mean + weight1 * (g - mean), g + beta1 * (mean - g))
    square = tl.where(weight2 < 0.5, square + weight2 * (g * g - square), g * g + beta2 * (square - g * g))
    step = size * mean / (tl.sqrt(square) * root_factor + eps)
    tl.store(new_parameter + at, (p - (decay * p + step)).to(new_parameter.dtype.element_ty), mask=mask)
    tl.store(new_m + at, mean.to(new_m.dtype.element_ty), mask=mask)
    tl.store(new_v + at, square.to(new_v.dtype.element_ty), mask=mask)


def adamw_triton(parameter, gradient, m, v, steps, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01):
    made, t, SIZE = [torch.empty_like(a) for a in (parameter, m, v)], steps + 1, 1024
    n = int(t)
    if parameter.numel() > 0:
        adamw_kernel[(triton.cdiv(parameter.numel(), SIZE),)](
            parameter, gradient, m, v, *made, parameter.numel(), lr * weight_decay, lr / (1 - beta1**n),
            1 / math.sqrt(1 - beta2**n), beta1, beta2, 1 - beta1, 1 - beta2, eps, SIZE=SIZE)
    return *made, None, None, t
# [/adamw_triton]
