"""rooftile.unscale and update_loss_scale against the functions of torch.amp.GradScaler over 50 steps: the same bits."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import rooftile  # noqa: E402

SHAPES = [(5,), (3, 700), (2049,), (0, 3), ()]


def gradients(step, dtypes):
    random = torch.Generator().manual_seed(step)
    made = [(torch.randn(s, generator=random) * 1e3).to(d) for s in SHAPES for d in dtypes]
    made.append(torch.randn(30, 20, generator=random).t())  # strides that are not row-major
    return made


@pytest.mark.parametrize("dtypes", [(torch.float32,), (torch.float16, torch.bfloat16, torch.float32)])
def test_fifty_steps(dtypes):
    ours = torch.full((), 2.0**15), torch.zeros((), dtype=torch.int32)
    theirs = tuple(t.clone() for t in ours)
    changes = 0
    for step in range(50):
        mine, other = gradients(step, dtypes), gradients(step, dtypes)
        if step % 7 == 3:
            for each in (mine, other):
                each[step % 2].view(-1)[-1] = (float("inf"), float("nan"), -float("inf"))[step % 3]
        found = rooftile.unscale(mine, ours[0])
        others_found = torch.zeros(())
        for dtype in dtypes:  # PyTorch's takes one dtype in a call
            same = [g for g in other if g.dtype == dtype]
            torch._amp_foreach_non_finite_check_and_unscale_(same, others_found, theirs[0].double().reciprocal().float())
        assert torch.equal(found, others_found) and found.item() == (step % 7 == 3)
        for g, h in zip(mine, other):
            assert torch.equal(g.nan_to_num(1e4, 2e4, -2e4), h.nan_to_num(1e4, 2e4, -2e4))
        before = ours[0].item()
        rooftile.update_loss_scale(*ours, found, growth_factor=1.7, backoff_factor=0.3, growth_interval=3)
        torch._amp_update_scale_(*theirs, others_found, 1.7, 0.3, 3)
        assert torch.equal(ours[0], theirs[0]) and torch.equal(ours[1], theirs[1])
        changes += ours[0].item() != before
    assert changes > 15


def test_scaler_of_torch():
    """A whole GradScaler's scales, beside ours, where each fifth step overflows."""
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    p = torch.nn.Parameter(torch.ones(7))
    optimizer = torch.optim.SGD([p], lr=0.1)
    scale, tracker = torch.full((1,), 1024.0), torch.zeros(1, dtype=torch.int32)
    for step in range(50):
        x = torch.arange(7.0) * (float("inf") if step % 5 == 4 else 1)
        optimizer.zero_grad()
        scaler.scale((p * x).sum()).backward()
        g = p.grad.clone()
        scaler.step(optimizer)
        scaler.update()
        found = rooftile.unscale([g], scale)
        rooftile.update_loss_scale(scale, tracker, found, growth_interval=3)
        assert scale.item() == scaler.get_scale()


def test_a_step_is_skipped():
    p, m, v = (np.full(5, x, np.float32) for x in (1, 0, 0))
    g, steps = np.full(5, 1024, np.float16), np.zeros(1, np.int64)
    scale, tracker = np.full(1, 1024, np.float32), np.zeros(1, np.int32)
    g[3] = np.inf
    found = rooftile.unscale([g], scale)
    rooftile.adamw([p], [g], [m], [v], steps=steps, found_inf=found)
    assert (p == 1).all() and (m == 0).all() and steps[0] == 0
    rooftile.update_loss_scale(scale, tracker, found)
    assert scale[0] == 512
    g[:] = 512
    found = rooftile.unscale([g], scale)
    rooftile.adamw([p], [g], [m], [v], steps=steps, found_inf=found)
    assert found == 0 and (g == 1).all() and (p < 1).all() and steps[0] == 1


def test_versions_of_tensors():
    """What was written in place is newer than what a backward kept."""
    g, scale, tracker = torch.ones(3), torch.ones(()), torch.zeros((), dtype=torch.int32)
    found = rooftile.unscale([g], scale)
    assert g._version == 1
    rooftile.update_loss_scale(scale, tracker, found)
    assert scale._version == 1 and tracker._version == 1


def test_refusals():
    g, scale = np.ones(3, np.float32), np.ones(1, np.float32)
    assert rooftile.unscale([], scale) == 0
    with pytest.raises(ValueError, match="scale is 2 f32, must have one element"):
        rooftile.unscale([g], np.ones(2, np.float32))
    with pytest.raises((ValueError, TypeError), match=r"gradient\[1\] is 3 f64"):
        rooftile.unscale([g, np.ones(3)], scale)
    with pytest.raises(ValueError, match="growth_interval is 0"):
        rooftile.update_loss_scale(scale, np.zeros(1, np.int32), np.zeros(1, np.float32), growth_interval=0)
