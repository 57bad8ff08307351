"""rooftile.torch.AdamW8bit: the operator's steps, and what one expects of an optimiser of PyTorch; and GradScaler with ours."""

import copy

import pytest

torch = pytest.importorskip("torch")
import rooftile  # noqa: E402
import rooftile.torch as rt  # noqa: E402

SHAPES = [(5,), (3, 700), (2049,), (0, 3), (), (64, 70)]
BLOCK = 256


def parameters(dtype=torch.float32, seed=0):
    random = torch.Generator().manual_seed(seed)
    made = [torch.randn(s, generator=random) for s in SHAPES]
    made.append(torch.randn(30, 20, generator=random).t())  # strides that are not row-major
    return [torch.nn.Parameter(p.to(dtype)) for p in made]


def gradients(step, *models):
    random = torch.Generator().manual_seed(1000 + step)
    for ps in zip(*models):
        g = torch.randn(ps[0].shape, generator=random)
        for p in ps:
            p.grad = torch.empty_like(p).copy_(g)


def same(ours, theirs):
    assert all(torch.equal(p, q) for p, q in zip(ours, theirs))


@pytest.mark.parametrize("dtype,master", [(torch.float32, False), (torch.bfloat16, False), (torch.float16, True)])
def test_is_the_operator(dtype, master):
    """The bits of adamw_8bit above min_8bit_size, those of adamw with f32 means below."""
    ours, theirs = parameters(dtype), parameters(dtype)
    optimizer = rt.AdamW8bit(ours, lr=1e-2, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1, maximize=True, master_weights=master,
                             min_8bit_size=2049)
    large, small = ([p for p in theirs if (p.numel() >= 2049) == yes] for yes in (True, False))
    means, codes = ([[torch.zeros(p.shape, dtype=d) for p in ps] for _ in range(2)]
                    for ps, d in ((small, torch.float32), (large, torch.uint8)))
    codes += [[torch.zeros(-(-p.numel() // BLOCK)) for p in large] for _ in range(2)]
    masters = [{"master": [p.detach().float() for p in ps]} if master else {} for ps in (small, large)]
    options = {"lr": 1e-2, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6, "weight_decay": 0.1, "maximize": True}
    for step in range(1, 6):
        gradients(step, ours, theirs)
        optimizer.step()
        with torch.no_grad():
            rooftile.adamw(small, [p.grad for p in small], *means, **masters[0], **options, step=step)
            rooftile.adamw_8bit(large, [p.grad for p in large], *codes, **masters[1], **options, step=step)
    same(ours, theirs)
    kinds = {p.numel() >= 2049: {n: s.dtype for n, s in optimizer.state[p].items()} for p in ours}
    f32 = {"step": torch.float32, **({"master": torch.float32} if master else {})}
    assert kinds[False] == {"exp_avg": torch.float32, "exp_avg_sq": torch.float32, **f32}
    assert kinds[True] == {"exp_avg_codes": torch.uint8, "exp_avg_absmax": torch.float32, "exp_avg_sq_codes": torch.uint8,
                           "exp_avg_sq_absmax": torch.float32, **f32}


def test_one_call_a_step(monkeypatch):
    calls = []
    for name in ("adamw", "adamw_8bit"):
        call = rt._optim._functions.public[name]
        monkeypatch.setitem(rt._optim._functions.public, name,
                            lambda ps, *rest, call=call, name=name, **named: calls.append((name, len(ps))) or call(ps, *rest, **named))
    ours = parameters()
    optimizer = rt.AdamW8bit(ours, min_8bit_size=2049)
    gradients(0, ours)
    optimizer.step()
    assert sorted(calls) == [("adamw", 4), ("adamw_8bit", 3)]


def test_close_to_pytorchs():
    """A hundred steps of a least-squares fit end as near to the goal as f32's."""
    random = torch.Generator().manual_seed(3)
    x, goal = torch.randn(512, 96, generator=random), torch.randn(96, 64, generator=random)
    losses = []
    for make in (lambda ps: rt.AdamW8bit(ps, lr=3e-2), lambda ps: torch.optim.AdamW(ps, lr=3e-2)):
        w = torch.nn.Parameter(torch.zeros(96, 64))
        optimizer = make([w])
        for _ in range(100):
            optimizer.zero_grad()
            loss = (x @ w - x @ goal).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] < 1.1 * losses[1] + 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_state_dict(dtype, tmp_path):
    """Saved and loaded, training goes on with the same bits: through a file, and without its tensors being shared."""
    ours, theirs = parameters(dtype), parameters(dtype)
    mine, other = (rt.AdamW8bit(ps, min_8bit_size=600, master_weights=True) for ps in (ours, theirs))
    for step in range(3):
        gradients(step, ours)
        mine.step()
    torch.save({"model": [p.detach() for p in ours], "optimizer": mine.state_dict()}, tmp_path / "checkpoint.pt")
    saved = torch.load(tmp_path / "checkpoint.pt")
    other.load_state_dict(saved["optimizer"])
    with torch.no_grad():
        for p, q in zip(theirs, saved["model"]):
            p.copy_(q)
    for step in range(3, 6):
        gradients(step, ours, theirs)
        mine.step()
        other.step()
    same(ours, theirs)
    for p, q in zip(ours, theirs):
        assert mine.state[p].keys() == other.state[q].keys()
        for name, value in mine.state[p].items():
            assert value.dtype == other.state[q][name].dtype and torch.equal(value, other.state[q][name])


@pytest.mark.parametrize("make", [rt.SGD, rt.AdamW, lambda ps, **named: rt.AdamW8bit(ps, min_8bit_size=600, **named)])
def test_copies(make):
    """A copy of parameters and optimiser goes on as the original does."""
    ours = parameters(torch.bfloat16)
    mine = make(ours, master_weights=True)
    gradients(0, ours)
    mine.step()
    theirs, other = copy.deepcopy((ours, mine))
    gradients(1, ours, theirs)
    mine.step()
    other.step()
    same(ours, theirs)
    assert other.master_weights and all(mine.state[p].keys() == other.state[q].keys() for p, q in zip(ours, theirs))


@pytest.mark.parametrize("make", [rt.AdamW, lambda ps: rt.AdamW8bit(ps, min_8bit_size=0)])
def test_a_loaded_state_is_its_own(make):
    """PyTorch's AdamW counts its steps in the tensor that it was given."""
    ours, theirs = parameters(), parameters()
    mine, other = make(ours), make(theirs)
    for step in range(4):
        gradients(step, ours, theirs)
        mine.step()
        other.step()
        same(ours, theirs)
        if step == 1:
            other.load_state_dict(mine.state_dict())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_same_bits_on_a_gpu(tmp_path):
    """And a state_dict from the host goes on there."""
    ours = parameters()
    theirs = [torch.nn.Parameter(p.detach().cuda()) for p in ours]
    mine, other = (rt.AdamW8bit(ps, min_8bit_size=0) for ps in (ours, theirs))
    for step in range(6):
        gradients(step, ours, theirs)
        mine.step()
        other.step()
        same(ours, [p.cpu() for p in theirs])
        if step == 2:
            other.load_state_dict(mine.state_dict())


def test_state_dicts_of_others():
    """torch.optim.AdamW's means stay f32; and torch.optim.AdamW does not take codes for means."""
    ours, theirs = parameters(), parameters()
    mine, other = rt.AdamW8bit(ours, lr=1e-2, min_8bit_size=0), torch.optim.AdamW(theirs, lr=1e-2)
    gradients(0, theirs)
    other.step()
    with torch.no_grad():
        for p, q in zip(ours, theirs):
            p.copy_(q)
    mine.load_state_dict(copy.deepcopy(other.state_dict()))
    for step in range(1, 4):
        gradients(step, ours, theirs)
        mine.step()
        other.step()
    for p, q in zip(ours, theirs):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-6)
    again = rt.AdamW8bit(theirs, min_8bit_size=0)
    again.step()
    other.load_state_dict(again.state_dict())
    with pytest.raises(KeyError, match="exp_avg"):
        other.step()


def test_groups_and_scheduler():
    """Each group's own numbers, and the scheduler's learning rates, against two optimisers set by hand."""
    ours, theirs = parameters(), parameters()
    mine = rt.AdamW8bit([{"params": ours[:3]}, {"params": ours[3:], "weight_decay": 0.0, "betas": (0.5, 0.9)}], lr=0.1, min_8bit_size=1000)
    scheduler = torch.optim.lr_scheduler.StepLR(mine, step_size=2, gamma=0.1)
    others = [rt.AdamW8bit(theirs[:3], min_8bit_size=1000), rt.AdamW8bit(theirs[3:], weight_decay=0.0, betas=(0.5, 0.9), min_8bit_size=1000)]
    for step in range(6):
        gradients(step, ours, theirs)
        mine.step()
        for other in others:
            other.param_groups[0]["lr"] = mine.param_groups[0]["lr"]
            other.step()
        scheduler.step()
    same(ours, theirs)
    assert mine.param_groups[1]["lr"] == pytest.approx(1e-4)
    mine.add_param_group({"params": [torch.nn.Parameter(torch.ones(5000))]})
    gradients(9, ours)
    mine.param_groups[2]["params"][0].grad = torch.ones(5000)
    mine.step()
    assert (mine.param_groups[2]["params"][0] < 1).all()


def test_closure_and_no_gradient():
    p, q = (torch.nn.Parameter(torch.ones(5000)) for _ in range(2))
    optimizer = rt.AdamW8bit([p, q], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = p.sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 5000
    assert (p < 1).all() and (q == 1).all() and q not in optimizer.state


def test_refusals():
    with pytest.raises(ValueError, match="AdamW8bit: amsgrad is True, and there is no largest mean of 8 bits; use rooftile.torch.AdamW"):
        rt.AdamW8bit([torch.nn.Parameter(torch.ones(3))], amsgrad=True)
    with pytest.raises(ValueError, match="learning rate"):
        rt.AdamW8bit([torch.nn.Parameter(torch.ones(3))], lr=-1.0)
    with pytest.raises(ValueError, match="min_8bit_size is -1, must be 0 or more"):
        rt.AdamW8bit([torch.nn.Parameter(torch.ones(3))], min_8bit_size=-1)
    table = torch.nn.Embedding(100, 64, sparse=True)
    table(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(RuntimeError, match="AdamW8bit: a gradient is sparse; use torch.optim.SparseAdam"):
        rt.AdamW8bit(table.parameters()).step()
    p = torch.nn.Parameter(torch.ones(5000, dtype=torch.float64))
    p.grad = torch.ones_like(p)
    with pytest.raises(TypeError, match=r"parameter\[0\] is 5000 f64, must be one of f32"):
        rt.AdamW8bit([p]).step()


@pytest.mark.parametrize("make", [rt.SGD, rt.AdamW, rt.AdamW8bit])
def test_gradient_scaler_of_pytorch(make):
    """torch.amp.GradScaler takes our optimisers as they are: gradients are unscaled, and a step that overflows changes nothing."""
    scaled, plain = (torch.nn.Parameter(torch.ones(70, 80)) for _ in range(2))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    mine, other = make([scaled], lr=1e-2), make([plain], lr=1e-2)
    for step in range(8):
        x = torch.randn(70, 80, generator=torch.Generator().manual_seed(step))
        overflows = step % 4 == 3
        mine.zero_grad()
        scaler.scale((scaled * x * (float("inf") if overflows else 1)).sum()).backward()
        scaler.unscale_(mine)
        rt.clip_grad_norm_([scaled], 10.0)
        scaler.step(mine)
        scaler.update()
        if not overflows:
            other.zero_grad()
            (plain * x).sum().backward()
            rt.clip_grad_norm_([plain], 10.0)
            other.step()
        assert torch.equal(scaled, plain)  # the scales are powers of two
    assert scaler.get_scale() == 1024.0 * 2 / 2 * 2 / 2
