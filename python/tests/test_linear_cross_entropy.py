"""rooftile.torch.linear_cross_entropy against PyTorch's linear and cross_entropy, and what it keeps in memory."""

import pytest

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

F = torch.nn.functional


def case(shape=(4, 6), channels=24, classes=50, dtype=torch.float32, ignored=-100, seed=0):
    random = torch.Generator().manual_seed(seed)
    hidden = torch.randn(*shape, channels, generator=random).to(dtype)
    weight = (torch.randn(classes, channels, generator=random) / channels**0.5).to(dtype)
    target = torch.randint(classes, shape, generator=random)
    target.view(-1)[::5] = ignored
    return hidden, weight, target, torch.randn(classes, generator=random), torch.rand(classes, generator=random) + 0.1


def theirs(hidden, weight, target, bias=None, class_weight=None, **named):
    logits = F.linear(hidden.flatten(0, -2), weight, bias)
    return F.cross_entropy(logits, target.flatten(), class_weight, **named)


def gradients(loss, *leaves):
    return torch.autograd.grad(loss.sum(), leaves)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("chunk", [0, 1, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_pytorch(dtype, reduction, chunk, weighted):
    hidden, weight, target, bias, of_class = case(dtype=dtype)
    named = {"reduction": reduction, "label_smoothing": 0.1}
    ours = [x.clone().requires_grad_() for x in (hidden, weight, bias)]
    exact = [x.double().requires_grad_() for x in (hidden, weight, bias)]
    loss = rt.linear_cross_entropy(*ours[:2], target, bias=ours[2], class_weight=of_class if weighted else None, chunk=chunk, **named)
    expected = theirs(*exact[:2], target, exact[2], of_class.double() if weighted else None, **named)
    torch.testing.assert_close(loss.double().reshape(()), expected, rtol=1e-5, atol=1e-5)
    rounding = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]
    for its, other in zip(gradients(loss, *ours), gradients(expected, *exact)):
        torch.testing.assert_close(its.double(), other, rtol=rounding, atol=rounding * other.abs().max().item())


def test_gradients_have_their_operands_dtypes():
    hidden, weight, target, bias, _ = case(dtype=torch.bfloat16)
    leaves = [x.requires_grad_() for x in (hidden, weight, bias)]
    loss = rt.linear_cross_entropy(hidden, weight, target, bias=bias)
    assert [g.dtype for g in gradients(loss, *leaves)] == [torch.bfloat16, torch.bfloat16, torch.float32]


def test_the_mean_is_not_the_mean_of_the_chunks():
    hidden, weight, target, *_ = case(shape=(7,), ignored=-1)
    one, all_at_once = (rt.linear_cross_entropy(hidden, weight, target, ignore_index=-1, chunk=chunk) for chunk in (3, 7))
    assert torch.equal(one, all_at_once)
    torch.testing.assert_close(one.reshape(()), theirs(hidden, weight, target, ignore_index=-1))


def test_rows_do_not_depend_on_the_chunk():
    hidden, weight, target, *_ = case(shape=(3, 11))
    _, losses, lse = rt.linear_cross_entropy(hidden, weight, target, losses=True, lse=True)
    for chunk in (1, 4, 11, 12, 100):
        _, its, other = rt.linear_cross_entropy(hidden, weight, target, losses=True, lse=True, chunk=chunk)
        assert torch.equal(losses, its) and torch.equal(lse, other)


def test_shifted_hidden_states_are_not_copied_wrong():
    """hidden[:, :-1], as a language model's: outer dimensions that no single stride covers."""
    hidden, weight, target, *_ = case(shape=(3, 8))
    ours, other = (x.clone().requires_grad_() for x in (hidden, hidden))
    w = weight.clone().requires_grad_()
    found = gradients(rt.linear_cross_entropy(ours[:, :-1], w, target[:, 1:], chunk=10), ours, w)
    expected = gradients(theirs(other[:, :-1], w, target[:, 1:]), other, w)
    for its, also in zip(found, expected):
        torch.testing.assert_close(its, also, rtol=1e-5, atol=1e-6)


def test_a_frozen_weight_has_no_gradient():
    hidden, weight, target, *_ = case()
    hidden.requires_grad_()
    rt.linear_cross_entropy(hidden, weight, target).backward()
    assert hidden.grad is not None and weight.grad is None


def test_losses_and_loss_together():
    hidden, weight, target, *_ = case()
    hidden.requires_grad_()
    loss, losses = rt.linear_cross_entropy(hidden, weight, target, losses=True, chunk=7)
    (gradient,) = torch.autograd.grad(loss.sum() + 0.5 * losses.sum(), hidden)
    (its,) = torch.autograd.grad(theirs(hidden, weight, target) + 0.5 * theirs(hidden, weight, target, reduction="sum"), hidden)
    torch.testing.assert_close(gradient, its, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_every_row_ignored(reduction):
    hidden, weight, target, *_ = case()
    target.fill_(-100)
    hidden.requires_grad_()
    loss = rt.linear_cross_entropy(hidden, weight, target, reduction=reduction)
    torch.testing.assert_close(loss.reshape(()), theirs(hidden, weight, target, reduction=reduction), equal_nan=True)
    assert not gradients(loss, hidden)[0].any()


def test_compiled():
    hidden, weight, target, *_ = case()
    hidden.requires_grad_()
    step = torch.compile(lambda h: rt.linear_cross_entropy(h, weight, target, chunk=5).sum(), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(gradients(step(hidden), hidden), gradients(rt.linear_cross_entropy(hidden, weight, target), hidden))


def test_opcheck():
    hidden, weight, target, bias, _ = case(shape=(5,))
    arguments = (hidden.requires_grad_(), weight.requires_grad_(), target, bias, None)
    torch.library.opcheck(torch.ops.rooftile.linear_cross_entropy.default, arguments)


# ---- Under autocast, and as a module


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_under_autocast(dtype):
    """As PyTorch's two calls: the product of 16 bits, the loss f32, gradients of the leaves' dtypes."""
    hidden, weight, target, bias, _ = case(dtype=dtype)
    leaves, exact = [x.requires_grad_() for x in (hidden, weight, bias)], [x.detach().double().requires_grad_() for x in (hidden, weight, bias)]
    with torch.autocast("cpu", torch.bfloat16):
        loss = rt.linear_cross_entropy(*leaves[:2], target, bias=leaves[2])
        named = rt.linear_cross_entropy(weight=weight, target=target, hidden=hidden.bfloat16(), bias=bias)
        own = theirs(*leaves[:2], target, leaves[2])
    assert loss.dtype == own.dtype == torch.float32 and torch.equal(loss, named)
    rounded = theirs(*(x.detach().bfloat16().double().requires_grad_() for x in leaves[:2]), target, exact[2])
    torch.testing.assert_close(loss.double().reshape(()), rounded, rtol=1e-6, atol=1e-6)
    for its, other, wanted in zip(gradients(loss, *leaves), gradients(own, *leaves), gradients(theirs(*exact[:2], target, exact[2]), *exact)):
        assert its.dtype == other.dtype
        assert (its.double() - wanted).norm() <= 1.1 * (other.double() - wanted).norm() + 1e-6 * wanted.norm()
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False):
        assert torch.equal(rt.linear_cross_entropy(hidden, weight, target, bias=bias), rt.linear_cross_entropy(hidden, weight, target, bias=bias))


def test_compiled_under_autocast():
    hidden, weight, target, *_ = case()
    compiled = torch.compile(lambda h: rt.linear_cross_entropy(h, weight, target), backend="aot_eager", fullgraph=True)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(compiled(hidden), rt.linear_cross_entropy(hidden, weight, target))
        assert not torch.equal(compiled(hidden), torch.ops.rooftile.linear_cross_entropy(hidden, weight, target)[0])


def test_what_the_package_shows_without_torch_does_not_cast():
    """rooftile.* is the library's call, with gradients and without."""
    import rooftile

    hidden, weight, target, *_ = case()
    expected = rooftile.linear_cross_entropy(hidden, weight, target)
    with torch.autocast("cpu", torch.bfloat16):
        for leaf in (hidden, hidden.clone().requires_grad_()):
            assert torch.equal(rooftile.linear_cross_entropy(leaf, weight, target), expected)
        assert not torch.equal(rt.linear_cross_entropy(hidden, weight, target), expected)


Loss = rt.nn.LinearCrossEntropyLoss


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("bias", [False, True])
def test_module_as_pytorchs(dtype, reduction, bias):
    hidden, _, target, _, of_class = case(dtype=dtype, ignored=7)
    mine = Loss(24, 50, bias=bias, dtype=dtype, weight=of_class.to(dtype), reduction=reduction, ignore_index=7, label_smoothing=0.2)
    assert list(mine.state_dict()) == ["weight", "linear.weight"] + ["linear.bias"] * bias
    other = torch.nn.Linear(24, 50, bias, dtype=torch.float64)
    other.load_state_dict(mine.linear.state_dict())
    hidden.requires_grad_()
    exact = hidden.detach().double().requires_grad_()
    loss = mine(hidden, target)
    expected = torch.nn.functional.cross_entropy(other(exact).flatten(0, 1), target.flatten(), of_class.to(dtype).double(), ignore_index=7,
                                                 label_smoothing=0.2, reduction=reduction).view(target.shape if reduction == "none" else ())
    assert loss.dtype == torch.float32 and loss.shape == expected.shape
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)
    loss.square().sum().backward()
    expected.square().sum().backward()
    rounding = {torch.float32: 1e-5, torch.bfloat16: 2e-2}[dtype]
    for its, wanted in [(hidden.grad, exact.grad), *((p.grad, q.grad) for p, q in zip(mine.parameters(), other.parameters(), strict=True))]:
        assert its.dtype == dtype
        torch.testing.assert_close(its.double(), wanted, rtol=rounding, atol=rounding * wanted.abs().max().item())


@pytest.mark.skipif(not hasattr(torch.nn, "LinearCrossEntropyLoss"), reason="this PyTorch has no LinearCrossEntropyLoss")
def test_module_takes_pytorchs_state():
    hidden, _, target, _, of_class = case(shape=(9,))
    theirs_, mine = torch.nn.LinearCrossEntropyLoss(24, 50, bias=True, weight=of_class), Loss(24, 50, bias=True, weight=torch.ones(50))
    mine.load_state_dict(theirs_.state_dict())
    torch.testing.assert_close(mine(hidden, target), theirs_(hidden, target))


def test_module_shares_a_head():
    hidden, _, target, *_ = case()
    head = torch.nn.Linear(24, 50)
    loss = Loss.from_linear(head, reduction="sum", z_loss=0.1, chunk=5)
    assert loss.linear is head and [p is q for p, q in zip(loss.parameters(), head.parameters())] == [True, True]
    logits = head(hidden)
    counted = target != -100
    expected = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum") + 0.1 * (logits.logsumexp(-1)[counted] ** 2).sum()
    torch.testing.assert_close(loss(hidden, target), expected)
    wanted = torch.autograd.grad(expected, head.parameters())
    for its, other in zip(torch.autograd.grad(loss(hidden, target), head.parameters()), wanted):
        torch.testing.assert_close(its, other, rtol=1e-4, atol=1e-5)
    assert "z_loss=0.1" in repr(loss)


@pytest.mark.parametrize("make, error, message", [
    (lambda: Loss(4, 6, reduction="all"), ValueError, "reduction is 'all', must be one of: mean sum none"),
    (lambda: Loss(4, 6, weight=torch.ones(5)), ValueError, "weight is 5, must be 6, one for each class"),
    (lambda: Loss.from_linear(torch.nn.ReLU()), TypeError, r"from_linear: got ReLU\(\), must be a Linear without an activation"),
    (lambda: Loss.from_linear(rt.nn.Linear(4, 6, activation="relu")), TypeError, "must be a Linear without an activation"),
    (lambda: Loss(4, 6)(torch.randn(3, 5), torch.zeros(3, dtype=torch.long)), ValueError, "linear_cross_entropy: "),
    (lambda: Loss(4, 6)(torch.randn(3, 4), torch.zeros(4, dtype=torch.long)), ValueError, "linear_cross_entropy: "),
    (lambda: Loss(4, 6)(torch.randn(3, 4), torch.zeros(3, 6)), TypeError, "linear_cross_entropy: "),
    (lambda: Loss(4, 6, dtype=torch.float64)(torch.randn(3, 4).double(), torch.zeros(3, dtype=torch.long)), TypeError, "linear_cross_entropy: "),
])
def test_module_refuses(make, error, message):
    with pytest.raises(error, match=message):
        make()
