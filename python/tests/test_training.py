"""rooftile.grad_norm, clip_by_norm, sgd and ema on lists, and rooftile.torch's clip_grad_norm_, SGD and averages, against
PyTorch's."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import rooftile  # noqa: E402
import rooftile.torch as rt  # noqa: E402
from test_adamw import close, gradients, parameters  # noqa: E402


def f64_norm(tensors):
    return float(sum((t.double() ** 2).sum() for t in tensors) ** 0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("max_norm", [1.0, 1e6, float("inf"), 0.0])
def test_clip_grad_norm(dtype, max_norm):
    ours, theirs = parameters(dtype), parameters(dtype)
    gradients(ours, theirs, 0)
    before = [p.grad.clone() for p in ours]
    norm = rt.clip_grad_norm_(iter(ours), max_norm)
    assert norm.dtype == torch.float32 and norm.shape == ()
    assert abs(float(norm) - f64_norm(before)) <= 1e-6 * f64_norm(before)
    factor = min(1.0, max_norm / (f64_norm(before) + 1e-6))
    for p, was in zip(ours, before):
        torch.testing.assert_close(p.grad.double(), (was.double() * factor).to(dtype).double(), rtol=2**-7, atol=1e-7)
    if dtype == torch.float32:
        other = torch.nn.utils.clip_grad_norm_(theirs, max_norm)
        torch.testing.assert_close(norm, other)
        for p, q in zip(ours, theirs):
            torch.testing.assert_close(p.grad, q.grad)


def test_clip_grad_norm_of_what():
    """One tensor, none with gradients, what is not finite, and what is refused."""
    p = torch.nn.Parameter(torch.ones(3))
    assert float(rt.clip_grad_norm_([p], 1.0)) == 0
    p.grad = torch.full((3,), 2.0)
    assert abs(float(rt.clip_grad_norm_(p, 1.0)) - 12**0.5) < 1e-6
    assert abs(float(p.grad.norm()) - 1) < 1e-5
    p.grad[1] = float("nan")
    with pytest.raises(RuntimeError, match="the norm is nan"):
        rt.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert float(p.grad[0]) == float(p.grad[2])  # left as it was
    rt.clip_grad_norm_(p, 1.0)
    assert p.grad.isnan().all()
    with pytest.raises(ValueError, match="norm_type is 1"):
        rt.clip_grad_norm_(p, 1.0, norm_type=1)


def test_norm_of_what_squares_lose():
    """Squares beyond f32 on both sides; the flag is that of elements; the coefficient of a norm that f32 cannot hold. Of powers of
    two, whose sums no instruction set's order of additions rounds."""
    large, small = np.full((3, 1000), 2.0**100, np.float32), np.full(500, 2.0**-100, np.float32)
    norm, found = rooftile.grad_norm([small], found_inf=True)
    np.testing.assert_allclose(norm, 2.0**-100 * 500**0.5, rtol=1e-6)
    norm, coefficient, found = rooftile.grad_norm([small, large], coefficient=True, found_inf=True, max_norm=2.0)
    np.testing.assert_allclose(norm, 2.0**100 * 3000**0.5, rtol=1e-6)
    np.testing.assert_allclose(coefficient, 2 / (2.0**100 * 3000**0.5), rtol=1e-6)
    assert found == 0
    huge = np.full(20000, 2.0**127, np.float32)
    norm, coefficient, found = rooftile.grad_norm([huge], coefficient=True, found_inf=True, max_norm=1e5)
    assert np.isinf(norm) and found == 0
    np.testing.assert_allclose(coefficient, 1e5 / (2.0**127 * 20000**0.5), rtol=1e-6)
    huge[19999] = np.inf
    assert rooftile.grad_norm([small, huge], found_inf=True).found_inf == 1


def test_coefficient_clips_in_the_optimizer():
    """AdamW with the coefficient is AdamW after clipping, and a gradient that overflowed skips the step."""
    ours, theirs = parameters(), parameters()
    gradients(ours, theirs, 0)
    means = [[torch.zeros_like(p) for p in ours] for _ in range(2)]
    _, coefficient, found = rooftile.grad_norm([p.grad for p in ours], coefficient=True, found_inf=True, max_norm=0.5)
    rooftile.adamw(ours, [p.grad for p in ours], *means, gradient_scale=coefficient, found_inf=found, lr=1e-2, step=1)
    rt.clip_grad_norm_(theirs, 0.5)
    torch.optim.AdamW(theirs, lr=1e-2).step()
    close(ours, theirs, 1, 1e-2)
    before = [p.detach().clone() for p in ours]
    ours[1].grad[0, 0] = float("inf")
    _, coefficient, found = rooftile.grad_norm([p.grad for p in ours], coefficient=True, found_inf=True)
    rooftile.sgd(ours, [p.grad for p in ours], gradient_scale=coefficient, found_inf=found, lr=1e-2)
    assert all(torch.equal(p, was) for p, was in zip(ours, before))


@pytest.mark.parametrize("how", [{"foreach": False}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize("named", [
    {}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "dampening": 0.5},
    {"momentum": 0.9, "maximize": True}, {"momentum": 0.9, "weight_decay": 0.1}])  # fmt: skip
def test_sgd_hundred_steps(how, named):
    ours, theirs = parameters(), parameters()
    mine, other = rt.SGD(ours, lr=1e-3, **named), torch.optim.SGD(theirs, lr=1e-3, **named, **how)
    for step in range(100):
        gradients(ours, theirs, step)
        mine.step()
        other.step()
    close(ours, theirs, 100, 1e-1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sgd_master_weights(dtype):
    """As f32 training on the same gradients; the parameter is the master, rounded."""
    ours = parameters(dtype)
    theirs = [torch.nn.Parameter(p.detach().float()) for p in ours]
    mine, other = rt.SGD(ours, lr=1e-4, momentum=0.9, master_weights=True), torch.optim.SGD(theirs, lr=1e-4, momentum=0.9)
    for step in range(100):
        gradients(ours, theirs, step)
        mine.step()
        other.step()
    close([mine.state[p]["master"] for p in ours], theirs, 100, 1e-1)
    for p in ours:
        assert torch.equal(p.detach(), mine.state[p]["master"].to(dtype))


def test_sgd_state_dict_both_ways():
    ours, theirs = parameters(), parameters()
    named = {"lr": 1e-3, "momentum": 0.9, "dampening": 0.5}
    mine, other = rt.SGD(ours, **named), torch.optim.SGD(theirs, **named)
    for step in range(3):
        gradients(ours, theirs, step)
        mine.step()
        other.step()
    mine.load_state_dict(other.state_dict())
    other.load_state_dict(copy.deepcopy(mine.state_dict()))
    for step in range(3, 6):
        gradients(ours, theirs, step)
        mine.step()
        other.step()
    close(ours, theirs, 6, 1e-1)
    halves = parameters(torch.bfloat16)
    mine = rt.SGD(halves, lr=1e-3, momentum=0.9, master_weights=True)
    gradients(halves, halves, 0)
    mine.step()
    again = rt.SGD(halves, lr=1e-3, momentum=0.9, master_weights=True)
    again.load_state_dict(mine.state_dict())
    for p in halves:
        for name in ("master", "momentum_buffer"):
            assert again.state[p][name].dtype == torch.float32
            assert torch.equal(again.state[p][name], mine.state[p][name])


def test_sgd_refuses():
    p, g, b = (np.ones((2, 3), np.float32) for _ in range(3))
    with pytest.raises(ValueError, match=r"momentum is 0.9.* momentum_buffer\[0\] is absent"):
        rooftile.sgd([p], [g], momentum=0.9)
    with pytest.raises(ValueError, match="dampening is 0.5, step is 0 and steps is absent"):
        rooftile.sgd([p], [g], momentum_buffer=[b], momentum=0.9, dampening=0.5)
    assert (p == 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_averages(dtype):
    """As PyTorch's AveragedModel with its own function, for f32; in bf16 an f32 average still moves."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(30, 20), torch.nn.Linear(20, 3)).to(dtype)
    averages = [torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=f(0.9))
                for f in (rt.get_ema_multi_avg_fn, torch.optim.swa_utils.get_ema_multi_avg_fn)]  # fmt: skip
    wide = [p.detach().clone().float() for p in model.parameters()]
    for _ in range(20):
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p), alpha=0.1)
        for average in averages:
            average.update_parameters(model)
        rooftile.ema(wide, list(model.parameters()), decay=0.999)
    for p, q in zip(averages[0].parameters(), averages[1].parameters()):
        torch.testing.assert_close(p, q, rtol=1e-5 if dtype == torch.float32 else 2**-4, atol=1e-5 if dtype == torch.float32 else 0.05)
    assert all(w.dtype == torch.float32 and w.isfinite().all() for w in wide)


def test_ema_moves_by_less_than_bf16_shows():
    average, parameter = np.ones(5, np.float32), np.full(5, 2, np.float32)
    rooftile.ema([average], [parameter], decay=0.9999)
    np.testing.assert_allclose(average, 1.0001, rtol=1e-7)
    with pytest.raises(ValueError, match="decay is 1.5, must be a number from 0 to 1"):
        rooftile.ema([average], [parameter], decay=1.5)


def test_same_bits_by_threads_and_strides():
    g = [torch.randn(300, 700), torch.randn(5), torch.randn(70000)]
    norms = {float(rooftile.grad_norm(g, queue=rooftile.Queue("cpu", threads=t))) for t in (1, 2, 3)}
    norms.add(float(rooftile.grad_norm([g[0].t().contiguous().t(), g[1], torch.cat([g[2][:1], g[2]])[1:]])))
    assert len(norms) == 1
