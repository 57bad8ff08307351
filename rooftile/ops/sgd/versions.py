"""SGD in four languages: rooftile/ops/languages.py says how these functions are found, run and judged.

Each makes one step of one parameter, and gives the new parameter, momentum buffer, master and step counter: None for one that
is absent.
"""

from languages import np, tl, torch, trap, triton


# [sgd_plain]
def sgd_plain(parameter, gradient, momentum_buffer, steps, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0):
    ps, bs = [], []
    for p, g, b in zip(parameter, gradient, momentum_buffer):
        g = g + weight_decay * p if weight_decay else g
        b = g if steps[0] == 0 else momentum * b + (1 - dampening) * g
        ps.append(p - lr * b)
        bs.append(b)
    return ps, bs, None, [steps[0] + 1]
# [/sgd_plain]


# [sgd_numpy]
def sgd_numpy(parameter, gradient, momentum_buffer=None, master=None, steps=None, lr=1e-3, momentum=0.0, dampening=0.0,
              weight_decay=0.0, nesterov=False, maximize=False, step=0):
    p, g = (parameter if master is None else master).astype(np.float64), gradient.astype(np.float64)
    b, first = None, step == 1 if steps is None else steps.flat[0] == 0
    with np.errstate(all="ignore"):
        g = -g if maximize else g
        if weight_decay:
            g = g + weight_decay * p
        direction = g
        if momentum_buffer is not None:
            b = g if first else momentum * momentum_buffer.astype(np.float64) + (1 - dampening) * g
            direction = g + momentum * b if nesterov else b
        p = p - lr * direction
        return (p.astype(parameter.dtype), None if b is None else b.astype(momentum_buffer.dtype),
                None if master is None else p.astype(np.float32), None if steps is None else steps + 1)
# [/sgd_numpy]


# [sgd_torch]
def sgd_torch(parameter, gradient, momentum_buffer, master=None, steps=None, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0):
    p, g = (a.double() for a in (parameter if master is None else master, gradient))
    g = g + weight_decay * p if weight_decay else g
    b = torch.where(steps == 0, g, momentum * momentum_buffer.double() + (1 - dampening) * g)
    p = p - lr * b
    return p.to(parameter.dtype), b.to(momentum_buffer.dtype), None if master is None else p.float(), steps + 1
# [/sgd_torch]


# [sgd_traps]
@trap("the first step reads the buffer, and dampens")
def sgd_numpy_no_first(parameter, gradient, momentum_buffer, steps, lr=1e-3, momentum=0.0, dampening=0.0):
    p, b, master, t = sgd_numpy(parameter, gradient, momentum_buffer, None, steps * 0 + 1, lr, momentum, dampening)
    return p, b, master, steps + 1


@trap("the learning rate is in the buffer, as in Polyak's form: another step as soon as lr changes")
def sgd_numpy_lr_inside(parameter, gradient, momentum_buffer, steps, lr=1e-3, momentum=0.0):
    with np.errstate(all="ignore"):
        g = lr * gradient.astype(np.float64)
        b = g if steps.flat[0] == 0 else momentum * momentum_buffer.astype(np.float64) + g
        return (parameter.astype(np.float64) - b).astype(parameter.dtype), b.astype(momentum_buffer.dtype), None, steps + 1
# [/sgd_traps]


# [sgd_triton]
@triton.jit
def sgd_kernel(parameter, gradient, buffer, new_parameter, new_buffer, count, lr, momentum, share, first, SIZE: tl.constexpr):
    """One program, SIZE elements. What the first step's buffer holds may be a NaN: a select, and no factor of 0."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    mask = at < count
    p, g = tl.load(parameter + at, mask=mask).to(tl.float32), tl.load(gradient + at, mask=mask).to(tl.float32)
    b = momentum * tl.load(buffer + at, mask=mask).to(tl.float32) + share * g
    b = tl.where(first != 0, g, b)
    tl.store(new_parameter + at, (p - lr * b).to(new_parameter.dtype.element_ty), mask=mask)
    tl.store(new_buffer + at, b.to(new_buffer.dtype.element_ty), mask=mask)


def sgd_triton(parameter, gradient, momentum_buffer, steps, lr=1e-3, momentum=0.0, dampening=0.0):
    made, SIZE = [torch.empty_like(a) for a in (parameter, momentum_buffer)], 1024
    if parameter.numel() > 0:
        sgd_kernel[(triton.cdiv(parameter.numel(), SIZE),)](
            parameter, gradient, momentum_buffer, *made, parameter.numel(), lr, momentum, 1 - dampening, int(int(steps) == 0), SIZE=SIZE)
    return *made, None, steps + 1
# [/sgd_triton]
