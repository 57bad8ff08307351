"""rooftile.adamw on lists, and rooftile.torch.AdamW, against torch.optim's over 100 steps."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import rooftile  # noqa: E402
import rooftile.torch as rt  # noqa: E402

SHAPES = [(5,), (3, 700), (2049,), (0, 3), (), (64, 70)]


def parameters(dtype=torch.float32, seed=0):
    random = torch.Generator().manual_seed(seed)
    made = [torch.randn(s, generator=random) for s in SHAPES]
    made.append(torch.randn(30, 20, generator=random).t())  # strides that are not row-major
    return [torch.nn.Parameter(p.to(dtype)) for p in made]


def gradients(ours, theirs, step):
    random = torch.Generator().manual_seed(1000 + step)
    for p, q in zip(ours, theirs):
        g = torch.randn(p.shape, generator=random)
        p.grad = g.to(p.dtype)
        q.grad = torch.empty_like(q).copy_(p.grad)  # PyTorch's fused kernel takes the gradient's strides for the parameter's


def close(ours, theirs, steps, lr):
    """Each step's f32 roundings, of a parameter below 4 and of a step below lr, in both."""
    bound = steps * (4 + lr * 16) * 2**-24 * 2
    for p, q in zip(ours, theirs):
        assert (p.detach().double() - q.detach().double()).abs().max() <= bound if p.numel() else True


@pytest.mark.parametrize("how", [{"foreach": False}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize("named", [{}, {"amsgrad": True}, {"maximize": True}, {"weight_decay": 0.0}])
def test_hundred_steps(how, named):
    ours, theirs = parameters(), parameters()
    mine, other = rt.AdamW(ours, lr=1e-2, **named), torch.optim.AdamW(theirs, lr=1e-2, **named, **how)
    for step in range(100):
        gradients(ours, theirs, step)
        mine.step()
        other.step()
    close(ours, theirs, 100, 1e-2)


def test_l2_is_adam():
    ours, theirs = parameters(), parameters()
    means = [[torch.zeros_like(p) for p in ours] for _ in range(2)]
    other = torch.optim.Adam(theirs, lr=1e-2, weight_decay=0.1)
    for step in range(100):
        gradients(ours, theirs, step)
        rooftile.adamw(ours, [p.grad for p in ours], *means, lr=1e-2, weight_decay=0.1, l2=True, step=step + 1)
        other.step()
    close(ours, theirs, 100, 1e-2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_master_weights(dtype):
    """As f32 training on the same gradients; the parameter is the master, rounded."""
    ours = parameters(dtype)
    theirs = [torch.nn.Parameter(p.detach().float()) for p in ours]
    mine, other = rt.AdamW(ours, lr=1e-3, master_weights=True), torch.optim.AdamW(theirs, lr=1e-3)
    for step in range(100):
        gradients(ours, theirs, step)
        mine.step()
        other.step()
    close([mine.state[p]["master"] for p in ours], theirs, 100, 1e-3)
    for p in ours:
        assert torch.equal(p.detach(), mine.state[p]["master"].to(dtype))


def test_state_dict_both_ways():
    ours, theirs = parameters(), parameters()
    mine, other = rt.AdamW(ours, lr=1e-2), torch.optim.AdamW(theirs, lr=1e-2)
    for step in range(3):
        gradients(ours, theirs, step)
        mine.step()
        other.step()
    its = copy.deepcopy(other.state_dict())  # PyTorch's loading shares the tensors
    other.load_state_dict(copy.deepcopy(mine.state_dict()))
    mine.load_state_dict(its)
    for step in range(3, 6):
        gradients(ours, theirs, step)
        mine.step()
        other.step()
    close(ours, theirs, 6, 1e-2)


def test_state_dict_keeps_f32():
    ours = parameters(torch.bfloat16)
    mine = rt.AdamW(ours, master_weights=True)
    gradients(ours, ours, 0)
    mine.step()
    again = rt.AdamW(ours, master_weights=True)
    again.load_state_dict(mine.state_dict())
    for p in ours:
        for name in ("exp_avg", "exp_avg_sq", "master"):
            assert again.state[p][name].dtype == torch.float32
            assert torch.equal(again.state[p][name], mine.state[p][name])


def test_skipped_step():
    """found_inf leaves all as it was, the counter included; otherwise the factor scales and the counter counts."""
    p, g, m, v = (np.full((3, 4), x, np.float32) for x in (1.0, 2.0, 0.0, 0.0))
    steps, scale = np.zeros(1, np.int64), np.full(1, 0.5, np.float32)
    before = p.copy()
    rooftile.adamw([p], [g], [m], [v], steps=steps, gradient_scale=scale, found_inf=np.ones(1, np.float32))
    assert (p == before).all() and (m == 0).all() and steps[0] == 0
    rooftile.adamw([p], [g], [m], [v], steps=steps, gradient_scale=scale, found_inf=np.zeros(1, np.float32), weight_decay=0.0)
    np.testing.assert_allclose(m, 0.1, rtol=1e-6)
    np.testing.assert_allclose(p, 1 - 1e-3, rtol=1e-6)
    assert steps[0] == 1


def test_lists():
    """None at all, one array for a list of one, an item that is left out; and what is refused."""
    rooftile.adamw([], [], [], [], step=1)
    p, g, m, v = (np.ones((2, 3), np.float32) for _ in range(4))
    result = rooftile.adamw(p, g, m, v, step=1)
    assert result.parameter is p and (p != 1).all()
    more = [np.ones((2, 3), np.float32) for _ in range(4)]
    rooftile.adamw([p, more[0]], [g, more[1]], [m, more[2]], [v, more[3]], master=[None, np.ones((2, 3), np.float32)], step=2)
    with pytest.raises(ValueError, match="gradient has 1 arrays, must have 2 as parameter has"):
        rooftile.adamw([p, more[0]], [g], [m, more[2]], [v, more[3]], step=1)
    with pytest.raises(ValueError, match=r"gradient\[1\] is 3 f32, must be 2x3 where parameter\[1\]"):
        rooftile.adamw([p, more[0]], [g, np.ones(3, np.float32)], [m, more[2]], [v, more[3]], step=1)
    with pytest.raises(ValueError, match="step is 0 and steps is absent"):
        rooftile.adamw([p], [g], [m], [v])
    with pytest.raises(TypeError, match=r"gradient\[0\]"):
        rooftile.adamw([p], [3], [m], [v], step=1)
    read_only = p.copy()
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match=r"parameter\[0\] is read-only"):
        rooftile.adamw([read_only], [g], [m], [v], step=1)
