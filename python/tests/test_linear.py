"""gemm's gradients, and rooftile.torch.linear beside torch.nn.functional.linear."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rooftile.torch
from rooftile.torch import linear
from rooftile.torch._operators import known

F, ours = torch.nn.functional, rooftile.torch.nn
FUNCTIONS = {"none": lambda x: x, "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
             "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh}
EPS = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}


def plain(a, b, c=None, bias=None, alpha=1.0, beta=0.0, activation="none"):
    z = alpha * (a @ b)
    y = FUNCTIONS[activation](z if bias is None else z + bias)
    return y if c is None or beta == 0 else y + beta * c


def operands(*shapes, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for s in shapes]


def gradients(f, inputs, dy=None):
    y = f(*inputs)
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(y.dtype) if dy is None else dy
    return y.detach(), *torch.autograd.grad(y, inputs, dy, allow_unused=True)


def no_worse(mine, theirs, exact, dtype, factor=2.0):
    """An error at most twice PyTorch's, or some roundings of the largest value."""
    for m, t, e in zip(mine, theirs, exact, strict=True):
        assert m.dtype == t.dtype and m.shape == t.shape
        error, other = ((x.double() - e).abs().max().item() if e.numel() else 0.0 for x in (m, t))
        assert error <= max(factor * other, 2 * EPS[dtype] * e.abs().max().item() if e.numel() else 0), (error, other)


# ---- gemm


@pytest.mark.parametrize("activation", ["none", "relu"])
@pytest.mark.parametrize("outer", [(), (2,), (2, 3)])
def test_gemms_gradients_and_second_ones_by_differences_in_f64(outer, activation):
    inputs = operands((*outer, 4, 3), (*outer, 3, 5), (*outer, 4, 5), (5,), dtype=torch.float64)

    def run(a, b, c, bias):
        return rooftile.torch.gemm(a, b, c=c, bias=bias, alpha=0.7, beta=-1.3, activation=activation)

    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("activation", list(FUNCTIONS))
@pytest.mark.parametrize("with_bias", [False, True])
def test_gemms_gradients_are_pytorchs(activation, beta, with_bias):
    inputs = operands((2, 6, 7), (2, 7, 5), (2, 6, 5), *(((5,),) if with_bias else ()))

    def ours_(a, b, c, bias=None):
        return rooftile.gemm(a, b, c=c, bias=bias, alpha=0.5, beta=beta, activation=activation)

    def theirs(a, b, c, bias=None):
        return plain(a, b, c, bias, 0.5, beta, activation)

    for m, t in zip(gradients(ours_, inputs), gradients(theirs, inputs), strict=True):
        if t is None:
            assert m is None  # of a c that is not read
            continue
        torch.testing.assert_close(m, t, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", list(FUNCTIONS))
def test_a_gates_gradients_are_pytorchs(activation):
    inputs = operands((2, 6, 7), (2, 7, 5), (2, 6, 5), (5,))

    def mine(a, b, c, bias):
        return rooftile.gemm(a, b, c=c, bias=bias, alpha=0.5, activation=activation, gate=True)

    def theirs(a, b, c, bias):
        return plain(a, b, None, bias, 0.5, 0.0, activation) * c

    for m, t in zip(gradients(mine, inputs), gradients(theirs, inputs), strict=True):
        torch.testing.assert_close(m, t, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="gemm: c is a gate, and beta is 1, must be 0"):
        rooftile.gemm(*(t.detach() for t in inputs[:2]), c=inputs[2].detach(), beta=1.0, gate=True)
    with pytest.raises(ValueError, match="gemm: gate multiplies by c, but c is absent"):
        rooftile.gemm(*(t.detach() for t in inputs[:2]), gate=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_bias_of_f32_gets_a_gradient_of_f32(dtype):
    a, b = operands((9, 4), (4, 3), dtype=dtype)
    (bias,) = operands((3,))
    y = rooftile.torch.gemm(a, b, bias=bias)
    (dbias,) = torch.autograd.grad(y, bias, torch.ones_like(y))
    assert y.dtype == dtype and dbias.dtype == torch.float32 and dbias.tolist() == [9.0] * 3


def test_column_sums_of_many_rows():
    """f32: errors grow by chunks of rows, not by rows."""
    for rows in (1, 63, 64, 65, 128, 10001):
        dy = torch.rand(rows, 3, generator=torch.Generator().manual_seed(rows))
        bias = torch.zeros(3, requires_grad=True)
        (sums,) = torch.autograd.grad(rooftile.torch.gemm(torch.zeros(rows, 2), torch.zeros(2, 3), bias=bias), bias, dy)
        exact = dy.double().sum(0)
        assert ((sums.double() - exact).abs() / exact).max() < 2e-6
        (other,) = torch.autograd.grad(rooftile.torch.gemm(torch.zeros(rows, 2), torch.zeros(2, 3), bias=bias), bias,
                                       dy.t().contiguous().t())
        assert torch.equal(sums, other)


def test_gemm_in_transforms_and_opcheck():
    a, b, c, bias = operands((4, 3), (3, 5), (4, 5), (5,))
    torch.library.opcheck(known["gemm"].operator, (a, b, c, bias, 0.5, 2.0, 4))
    torch.library.opcheck(known["gemm"].operator, (a[None].expand(2, 4, 3), b.detach().expand(2, 3, 5), None, bias))

    def loss(*given):
        return rooftile.torch.gemm(given[0], given[1], c=given[2], bias=given[3], beta=2.0, activation="gelu").square().sum()

    def same(*given):
        return plain(*given, beta=2.0, activation="gelu").square().sum()

    inputs = [t.detach() for t in (a, b, c, bias)]
    every = (0, 1, 2, 3)
    for m, t in zip(torch.func.grad(loss, argnums=every)(*inputs), torch.func.grad(same, argnums=every)(*inputs), strict=True):
        torch.testing.assert_close(m, t, rtol=1e-4, atol=1e-4)
    stacked = [torch.stack([t, 2 * t]) for t in inputs]
    mine = torch.vmap(torch.func.grad(loss, argnums=every))(*stacked)
    for m, t in zip(mine, torch.vmap(torch.func.grad(same, argnums=every))(*stacked), strict=True):
        torch.testing.assert_close(m, t, rtol=1e-4, atol=1e-4)


def test_jaxs_gradients():
    jax = pytest.importorskip("jax")
    import rooftile.jax

    theirs = {"none": lambda x: x, "relu": jax.nn.relu, "gelu": lambda x: jax.nn.gelu(x, approximate=False),
              "gelu_tanh": jax.nn.gelu, "silu": jax.nn.silu, "sigmoid": jax.nn.sigmoid, "tanh": jax.numpy.tanh}
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(s).astype(np.float32) for s in ((2, 70, 7), (2, 7, 5), (2, 70, 5), (5,))]
    for activation, beta in itertools.product(theirs, (0.0, 0.5)):
        def run(a, b, c, bias, activation=activation, beta=beta):
            return jax.numpy.sin(rooftile.jax.gemm(a, b, c=c, bias=bias, alpha=0.5, beta=beta, activation=activation)).sum()

        def same(a, b, c, bias, activation=activation, beta=beta):
            return jax.numpy.sin(theirs[activation](0.5 * (a @ b) + bias) + beta * c).sum()

        for m, t in zip(jax.jit(jax.grad(run, argnums=(0, 1, 2, 3)))(*inputs), jax.grad(same, argnums=(0, 1, 2, 3))(*inputs)):
            np.testing.assert_allclose(m, t, rtol=2e-4, atol=2e-4)
    (g,) = jax.grad(lambda a: jax.grad(lambda b: (rooftile.jax.gemm(a, b) ** 2).sum())(inputs[1]).sum(), argnums=(0,))(inputs[0])
    (e,) = jax.grad(lambda a: jax.grad(lambda b: ((a @ b) ** 2).sum())(inputs[1]).sum(), argnums=(0,))(inputs[0])
    np.testing.assert_allclose(g, e, rtol=1e-3, atol=1e-3)
    grads = jax.vmap(jax.grad(lambda a, b: rooftile.jax.gemm(a, b).sum()))(*inputs[:2])
    np.testing.assert_allclose(grads, np.broadcast_to(inputs[1].sum(-1)[:, None], grads.shape), rtol=1e-5, atol=1e-5)


# ---- linear


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("activation", list(FUNCTIONS))
def test_linear_is_no_worse_than_pytorchs(activation, dtype):
    inputs = operands((3, 50, 129), (65, 129), (65,), dtype=dtype)
    exact = [t.detach().double().requires_grad_() for t in inputs]
    dy = torch.randn(3, 50, 65, generator=torch.Generator().manual_seed(2)).to(dtype)

    def theirs(x, w, b):
        return FUNCTIONS[activation](F.linear(x, w, b))

    no_worse(gradients(lambda *g: linear(*g, activation), inputs, dy), gradients(theirs, inputs, dy),
             gradients(theirs, exact, dy.double()), dtype)
    with torch.no_grad():
        no_worse([linear(*inputs, activation)], [theirs(*inputs)], [theirs(*exact)], dtype)


def test_linear_of_f64_by_differences():
    x, w, b = operands((2, 3, 4), (5, 4), (5,), dtype=torch.float64)
    assert torch.autograd.gradcheck(linear, (x, w, b))
    assert torch.autograd.gradcheck(lambda *g: linear(*g, "relu"), (x, w, b))
    with pytest.raises(ValueError, match="gemm: activation is 4, must be none"):
        linear(x, w, b, "silu")


@pytest.mark.parametrize("shape", [(4,), (1, 4), (0, 4), (2, 0, 4), (2, 3, 5, 4)])
@pytest.mark.parametrize("outputs", [0, 1, 6])
def test_linear_of_any_leading_sizes(shape, outputs):
    inputs = operands(shape, (outputs, 4), (outputs,))
    for m, t in zip(gradients(linear, inputs), gradients(F.linear, inputs), strict=True):
        assert m.shape == t.shape
        torch.testing.assert_close(m, t, rtol=1e-5, atol=1e-5)


def test_linear_of_no_inputs_is_its_bias():
    inputs = operands((3, 0), (5, 0), (5,))
    y, dx, dw, db = gradients(linear, inputs, torch.ones(3, 5))
    assert torch.equal(y, inputs[2].detach().expand(3, 5)) and dx.shape == (3, 0) and dw.shape == (5, 0)
    assert db.tolist() == [3.0] * 5


def test_linear_of_strided_operands():
    views = {((7, 2, 9), (9, 5), (10,)): lambda x, w, b: (x.transpose(0, 1), w.t(), b[::2]),
             ((9, 14), (5, 18), (5,)): lambda x, w, b: (x.t()[::2], w[:, ::2], b),
             ((6, 8), (5, 9), (7,)): lambda x, w, b: (x[:, 1:], w[:, 2:], b[2:]),
             ((1, 4), (3, 1), (1,)): lambda x, w, b: (x.expand(6, 4), w.expand(3, 4), b.expand(3))}
    for shapes, view in views.items():
        inputs = operands(*shapes)
        for m, t in zip(gradients(lambda *g, view=view: linear(*view(*g)), inputs),
                        gradients(lambda *g, view=view: F.linear(*view(*g)), inputs), strict=True):
            torch.testing.assert_close(m, t, rtol=1e-5, atol=1e-5)


def test_nothing_is_copied():
    """A weight's gradient comes as the weight lies, or PyTorch would copy it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Listener(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), words=None):
            seen.append(operator.name())
            return operator(*args, **(words or {}))

    x, w, b = operands((6, 8), (5, 8), (5,))
    with Listener():
        linear(x, w, b, "relu").backward(torch.ones(6, 5))
    assert seen.count("rooftile::gemm") == 4 and w.grad.is_contiguous()
    assert not [name for name in seen if any(word in name for word in ("clone", "copy", "contiguous"))], seen


def test_linear_under_autocast_is_as_pytorchs():
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        x, w, b = operands((3, 8), (5, 8), (5,), dtype=dtype)
        with torch.autocast("cpu", torch.bfloat16):
            y, e = linear(x, w, b), F.linear(x, w, b)
        assert y.dtype == e.dtype
        torch.testing.assert_close(y, e, rtol=2**-7, atol=2**-7)
        for g, h in zip(torch.autograd.grad(y.sum(), (x, w, b)), torch.autograd.grad(e.sum(), (x, w, b)), strict=True):
            assert g.dtype == h.dtype == dtype
            torch.testing.assert_close(g, h, rtol=2**-6, atol=2**-6)
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False):
        assert linear(*operands((3, 8), (5, 8))).dtype == torch.float32


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "sigmoid"])
def test_linear_compiles_without_a_graph_break(activation, dynamic):
    torch._dynamo.reset()

    def step(x, w, b):
        return linear(x * 2, w, b, activation) + 1

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for rows in (3, 70):
        inputs = operands((2, rows, 8), (5, 8), (5,))
        for m, t in zip(gradients(compiled, inputs), gradients(step, inputs), strict=True):
            torch.testing.assert_close(m, t)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            torch.testing.assert_close(compiled(*inputs), step(*inputs))


def test_linear_under_torch_func():
    x, w, b = (t.detach() for t in operands((4, 3, 8), (5, 8), (5,)))

    def loss(f, activation):
        return lambda w, b, x: FUNCTIONS[activation](f(x, w, b)).square().sum()

    per_sample = torch.vmap(torch.func.grad(lambda w, b, x: linear(x, w, b, "silu").square().sum(), argnums=(0, 1)), in_dims=(None, None, 0))
    expected = torch.vmap(torch.func.grad(loss(F.linear, "silu"), argnums=(0, 1)), in_dims=(None, None, 0))
    for m, t in zip(per_sample(w, b, x), expected(w, b, x), strict=True):
        torch.testing.assert_close(m, t, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("activation", ["none", "silu", "gelu_tanh", "relu"])
def test_linear_with_a_gate(activation):
    inputs = operands((2, 3, 8), (5, 8), (5,), (2, 3, 5))

    def theirs(x, w, b, gate):
        return FUNCTIONS[activation](F.linear(x, w, b)) * gate

    def mine(x, w, b, gate):
        return linear(x, w, b, activation, gate)

    for m, t in zip(gradients(mine, inputs), gradients(theirs, inputs), strict=True):
        torch.testing.assert_close(m, t, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(mine(*inputs), theirs(*inputs), rtol=1e-5, atol=1e-5)
        with torch.autocast("cpu", torch.bfloat16):
            assert mine(*inputs).dtype == torch.bfloat16
    with pytest.raises(ValueError, match="linear: gate is 3x5, must be as the result, 2x3x5"):
        linear(*inputs[:3], gate=inputs[3][0])


def test_a_result_does_not_depend_on_gradients_or_the_batch():
    x, w, b = operands((40, 33), (17, 33), (17,))
    for activation in FUNCTIONS:
        y = linear(x, w, b, activation)
        with torch.no_grad():
            assert torch.equal(y, linear(x, w, b, activation))
            assert torch.equal(y[5:6], linear(x[5:6], w, b, activation))


def test_refusals_say_why():
    x, w, b = torch.ones(3, 4), torch.ones(5, 4), torch.ones(5)
    for args, words, kind in (((x, w.t(), b), "x is 3x4, its last size must be weight's second, 5", ValueError),
                              ((x, w[0], b), "weight is 4, must have 2 dimensions", ValueError),
                              ((x, w, b[:4]), "bias is 4, must be 5", ValueError),
                              ((x[0, 0], w, b), "x is a scalar", ValueError),
                              ((x, w, b, "swish"), "activation is 'swish', must be one of: none relu", ValueError),
                              ((x, w.bfloat16(), b), "weight is torch.bfloat16, must be torch.float32", TypeError)):
        with pytest.raises(kind, match=f"rooftile.torch.linear: {words}"):
            linear(*args)


# ---- Modules


def test_linear_module_is_pytorchs():
    torch.manual_seed(3)
    mine = ours.Linear(8, 5)
    torch.manual_seed(3)
    theirs = torch.nn.Linear(8, 5)
    assert list(mine.state_dict()) == list(theirs.state_dict()) and repr(mine) == repr(theirs)
    assert all(torch.equal(p, q) for p, q in zip(mine.parameters(), theirs.parameters(), strict=True))
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(mine(x), theirs(x), rtol=1e-5, atol=1e-6)
    assert "activation='relu'" in repr(ours.Linear(8, 5, bias=False, activation="relu"))
    with pytest.raises(ValueError, match="Linear: activation is 'swish'"):
        ours.Linear(8, 5, activation="swish")
    assert ours.Linear(8, 5, True, None, torch.bfloat16).weight.dtype == torch.bfloat16


@pytest.mark.parametrize("activation", [*FUNCTIONS, *ours.MLP.GATES])
def test_mlp(activation):
    torch.manual_seed(4)
    mlp, x = ours.MLP(8, 12, activation, bias=activation != "silu"), torch.randn(2, 3, 8, requires_grad=True)

    def theirs(x):
        up = F.linear(x, mlp.up_proj.weight, mlp.up_proj.bias)
        if activation in FUNCTIONS:
            h = FUNCTIONS[activation](up)
        else:
            gate = F.linear(x, mlp.gate_proj.weight, mlp.gate_proj.bias)
            h = FUNCTIONS[{"swiglu": "silu", "geglu": "gelu", "geglu_tanh": "gelu_tanh"}[activation]](gate) * up
        return F.linear(h, mlp.down_proj.weight, mlp.down_proj.bias)

    inputs = (x, *mlp.parameters())
    for m, t in zip((mlp(x), *torch.autograd.grad(mlp(x).sin().sum(), inputs)),
                    (theirs(x), *torch.autograd.grad(theirs(x).sin().sum(), inputs)), strict=True):
        torch.testing.assert_close(m, t, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(mlp(x), theirs(x), rtol=1e-4, atol=1e-5)
    if activation in ours.MLP.GATES:
        ours.GatedMLP(8, 12, bias=True).load_state_dict(mlp.state_dict())


def test_an_unknown_mlp_is_refused():
    with pytest.raises(ValueError, match="MLP: activation is 'swish', must be one of: none relu .* geglu_tanh"):
        ours.MLP(8, 12, "swish")
