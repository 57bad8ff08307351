"""rooftile.adamw_8bit against its definition in f64 step by step, bitsandbytes' in NumPy, and AdamW in f32."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import rooftile  # noqa: E402

SHAPES = [(5,), (3, 700), (2049,), (0, 3), (), (64, 70)]
BLOCK = 256


def dynamic_map(with_signs):
    """bitsandbytes' create_dynamic_map, in f64."""
    data = []
    for i in range(7):
        ends = np.linspace(0.1, 1, 2 ** (i if with_signs else i + 1) + 1)
        middles = (ends[:-1] + ends[1:]) / 2 * 10.0 ** (i - 6)
        data += [*middles, *(-middles if with_signs else [])]
    return np.array(sorted([*data, 0, 1]))


MAPS = dynamic_map(True), dynamic_map(False)


def state(p):
    n = -(-p.numel() // BLOCK)
    return [torch.zeros(p.shape, dtype=torch.uint8) for _ in range(2)] + [torch.zeros(n) for _ in range(2)]


def parameters(dtype=torch.float32, seed=0):
    random = torch.Generator().manual_seed(seed)
    made = [torch.randn(s, generator=random) for s in SHAPES]
    made.append(torch.randn(30, 20, generator=random).t())  # blocks are in row-major order
    return [p.to(dtype) for p in made]


def gradients(like, step):
    random = torch.Generator().manual_seed(1000 + step)
    return [torch.randn(p.shape, generator=random) * 10 ** (i % 3 - 1) + 0.1 for i, p in enumerate(like)]


def in_blocks(x):
    flat = x.double().numpy().reshape(-1)
    return np.pad(flat, (0, -flat.size % BLOCK)).reshape(-1, BLOCK)


def widened(codes, absmax, numbers):
    c = np.pad(codes.numpy().reshape(-1), (0, -codes.numel() % BLOCK)).reshape(-1, BLOCK)
    return numbers[c] * absmax.double().numpy()[:, None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_each_step_in_f64(dtype):
    ps = parameters(dtype)
    states = [state(p) for p in ps]
    lr, decay = 1e-2, 0.1
    for t in range(1, 31):
        gs = gradients(ps, t)
        before = [(in_blocks(p), *(widened(s[o], s[2 + o], MAPS[o]) for o in (0, 1))) for p, s in zip(ps, states)]
        m, v, m_absmax, v_absmax = zip(*states)
        rooftile.adamw_8bit(ps, gs, list(m), list(v), list(m_absmax), list(v_absmax), lr=lr, weight_decay=decay, step=t)
        for p, g, (old, mean, square), its in zip(ps, gs, before, states):
            g, n = in_blocks(g), p.numel()
            # Four roundings of f32 of each mean, of numbers as large as what is added up.
            errors = [2.0**-22 * (np.abs(x) + np.abs(y)) for x, y in ((mean, g), (square, g * g))]
            mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
            divisor, size = np.sqrt(square / (1 - 0.999**t)) + 1e-8, lr / (1 - 0.9**t)
            expected = old - lr * decay * old - size * mean / divisor
            live = (np.arange(square.size) < n).reshape(square.shape)
            with np.errstate(all="ignore"):  # six more for the step, and that to the parameter's dtype
                bound = size * (errors[0] + 6 * 2.0**-24 * np.abs(mean)) / divisor * (1 + errors[1] / square)
            bound += 4 * 2.0**-24 * np.abs(old) + np.maximum(np.abs(expected) * torch.finfo(dtype).eps, torch.finfo(dtype).tiny)
            assert (np.abs(in_blocks(p) - expected) <= bound)[live].all()
            for o, (x, error) in enumerate(zip((mean, square), errors)):
                most, off = (np.where(live, y, 0).max(axis=1, initial=0, keepdims=True) for y in (np.abs(x), error))
                assert (np.abs(its[2 + o].double().numpy() - most[:, 0]) <= off[:, 0]).all()
                middles = (MAPS[o][1:] + MAPS[o][:-1]) / 2
                most = np.maximum(most, 1e-300)
                ratio, off = x / most, error / most + np.abs(x / most) * (off / most + 2.0**-22)
                codes = np.pad(its[o].numpy().reshape(-1).astype(int), (0, -n % BLOCK)).reshape(-1, BLOCK)
                low, high = ratio - off, ratio + off
                low, high = (np.searchsorted(middles, y) for y in (low, high))
                if o == 0:  # what is negative has a negative number
                    low = np.where((low == 127) & (ratio - off < 0), 126, low)
                assert ((low <= codes) & (codes <= high))[live].all()


def bitsandbytes_step(p, g, m, v, m_absmax, v_absmax, t, lr, decay):
    """kOptimizerStatic8bit2StateBlockwise as its source reads, in f64, of a flat parameter in place."""
    factor = math.sqrt(1 - 0.999**t)
    for b, begin in enumerate(range(0, p.size, BLOCK)):
        at = slice(begin, begin + BLOCK)
        s1 = MAPS[0][m[at]] * m_absmax[b] * 0.9 + 0.1 * g[at]
        s2 = MAPS[1][v[at]] * v_absmax[b] * 0.999 + 0.001 * g[at] ** 2
        m_absmax[b], v_absmax[b] = np.abs(s1).max(), s2.max()
        p[at] = (p[at] - lr * factor / (1 - 0.9**t) * s1 / (np.sqrt(s2) + factor * 1e-8)) * (1 - lr * decay)
        for codes, numbers, x in ((m, MAPS[0], s1 / m_absmax[b]), (v, MAPS[1], s2 / v_absmax[b])):
            code = np.abs(numbers[None, :] - x[:, None]).argmin(axis=1)
            if numbers[0] < 0:
                code += np.where((numbers[code] < 0) == (x < 0), 0, np.where(x > 0, 1, -1))
            codes[at] = code


def test_hundred_steps_of_bitsandbytes():
    """The same training but for a code in ten thousand that a last bit decides, and lr²·decay of the decay's place."""
    lr, decay, n = 1e-3, 0.01, 3000
    random = np.random.default_rng(5)
    p = random.standard_normal(n)
    q, m, v, a, b = p.copy(), np.zeros(n, int), np.zeros(n, int), np.zeros(12), np.zeros(12)
    ours, its = torch.tensor(p, dtype=torch.float32), state(torch.zeros(n))
    same = []
    for t in range(1, 101):
        g = random.standard_normal(n).astype(np.float32) + 0.3
        bitsandbytes_step(q, g.astype(np.float64), m, v, a, b, t, lr, decay)
        rooftile.adamw_8bit([ours], [torch.tensor(g)], *([s] for s in its), lr=lr, weight_decay=decay, step=t)
        same.append(np.mean((its[0].numpy() == m) & (its[1].numpy() == v)))
    assert np.mean(same) > 0.99
    way = np.sqrt(np.mean((q - p) ** 2))
    assert np.sqrt(np.mean((ours.numpy() - q) ** 2)) < 1e-3 * way


def test_close_to_adamw():
    """What 8 bits cost: a hundredth of the way."""
    ours, theirs = parameters(), parameters()
    start = [p.clone() for p in ours]
    states = [state(p) for p in ours]
    means = [[torch.zeros_like(p) for p in theirs] for _ in range(2)]
    for t in range(1, 101):
        gs = gradients(ours, t)
        rooftile.adamw_8bit(ours, gs, *map(list, zip(*states)), lr=1e-3, step=t)
        rooftile.adamw(theirs, gs, *means, lr=1e-3, step=t)
    for p, q, s in zip(ours, theirs, start):
        if p.numel() >= BLOCK:
            assert (p - q).norm() < 0.03 * (q - s).norm()


def test_same_bits_on_the_emulated_device():
    ours, theirs = ([p.numpy().copy() for p in parameters()] for _ in range(2))
    states = [[[t.numpy() for t in state(torch.tensor(p))] for p in ours] for _ in range(2)]
    for t in range(1, 4):
        gs = [g.numpy() for g in gradients([torch.tensor(p) for p in ours], t)]
        rooftile.adamw_8bit(ours, gs, *map(list, zip(*states[0])), lr=1e-2, step=t)
        rooftile.adamw_8bit(theirs, gs, *map(list, zip(*states[1])), lr=1e-2, step=t, device="emulated")
    for p, q in zip(ours, theirs):
        assert p.tobytes() == q.tobytes()
    for a, b in zip(*states):
        assert all(x.tobytes() == y.tobytes() for x, y in zip(a, b))


def test_overflow_of_one_element():
    """It loses its own means; its parameter and the others' stay what they are."""
    p, g = torch.ones(300), torch.ones(300)
    g[7], g[299] = math.inf, math.nan
    its = state(p)
    rooftile.adamw_8bit([p], [g], *([s] for s in its), lr=0.1, weight_decay=0.0, step=1)
    left = torch.zeros(300, dtype=torch.bool)
    left[7] = left[299] = True
    assert (p[left] == 1).all() and (p[~left] < 0.91).all()
    assert (its[0][left] == 127).all() and (its[1][left] == 0).all() and (its[0][~left] == 255).all()


def test_in_place_and_refusals():
    p, g = torch.ones(300), torch.ones(300)
    its = state(p)
    rooftile.adamw_8bit([p], [g], *([s] for s in its), step=1)
    assert p._version == 1 and g._version == 0 and all(s._version == 1 for s in its)
    steps, found = torch.zeros(1, dtype=torch.int64), torch.ones(1)
    before = p.clone()
    rooftile.adamw_8bit([p], [g], *([s] for s in its), steps=steps, found_inf=found)
    assert torch.equal(p, before) and steps.item() == 0
    with pytest.raises(ValueError, match=r"m_absmax\[0\] is 1 f32.*B is 1, must be 2 = \(outer \+ 255\)/256"):
        rooftile.adamw_8bit([p], [g], [its[0]], [its[1]], [torch.zeros(1)], [torch.zeros(1)], step=1)
    with pytest.raises(ValueError, match="step is 0 and steps is absent"):
        rooftile.adamw_8bit([p], [g], *([s] for s in its))
