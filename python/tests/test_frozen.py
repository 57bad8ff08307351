"""The layers with a frozen weight under torch.func's transforms, and on the device meta."""

import pytest

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

LAYERS = {"nf4": rt.nn.LinearNF4, "int4": rt.nn.LinearInt4, "8bit": rt.nn.Linear8bit}


@pytest.fixture(params=LAYERS)
def layer(request):
    torch.manual_seed(3)
    return LAYERS[request.param].from_linear(torch.nn.Linear(96, 40))


def test_torch_func_takes_them(layer):
    x, dy = torch.randn(3, 5, 96), torch.randn(3, 5, 40)
    leaf = x.clone().requires_grad_()
    y = layer(leaf)
    dx, dbias = torch.autograd.grad(y, (leaf, layer.bias), dy)
    same, pull = torch.func.vjp(layer, x)
    assert torch.equal(same, y) and torch.equal(pull(dy)[0], dx)
    assert torch.equal(torch.func.vmap(layer)(x), y)
    per_sample = torch.func.vmap(torch.func.grad(lambda x, dy: (layer(x) * dy).sum()))(x, dy)
    assert torch.equal(per_sample, dx)

    def loss(bias, x, dy):
        return (torch.func.functional_call(layer, {"bias": bias}, x) * dy).sum()

    biases = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(layer.bias.detach(), x, dy)
    torch.testing.assert_close(biases.sum(0), dbias, rtol=1e-5, atol=1e-5)
    own = torch.stack([layer.bias.detach(), torch.zeros(40)])
    each = torch.func.vmap(lambda bias: torch.func.functional_call(layer, {"bias": bias}, x))(own)
    assert torch.equal(each[0], y) and not torch.equal(each[1], y)


def test_forward_mode_is_refused(layer):
    x = torch.randn(3, 96)
    for function in (lambda: torch.func.jvp(layer, (x,), (x,)), lambda: torch.func.jacfwd(layer)(x)):
        with pytest.raises(RuntimeError, match=r"rooftile.torch.linear_\w+: has no derivative in forward mode"):
            function()


def test_shapes_follow_on_meta(layer):
    x = torch.empty(2, 3, 96, device="meta")
    assert layer.to("meta")(x).shape == (2, 3, 40)
    for other in (rt.nn.Linear(96, 40), rt.nn.MLP(96, 8, "swiglu")):
        y = other.to("meta")(x)
        assert y.is_meta and y.shape[:2] == (2, 3)
