"""examples/torch_binding.py, the operator that lesson 16 makes by hand."""

import pathlib
import re

import pytest

torch = pytest.importorskip("torch")

import rooftile
import rooftile.torch

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(rooftile.__file__).parent
LIBRARIES = (FOLDER / "lib" / "librooftile.so.0", FOLDER.parents[1] / "lib" / "librooftile.so")  # installed, build folder


@pytest.fixture(scope="module")
def binding():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROOFTILE_LIBRARY", str(next(file for file in LIBRARIES if file.exists())))
        patch.syspath_prepend(str(SOURCE / "examples"))
        import torch_binding
    return torch_binding


def formula(gate, up, beta):
    return gate * torch.sigmoid(beta * gate) * up


def test_its_own_judge(binding, capsys):
    for shape in ((5, 33), (), (0, 3), (2, 1, 3, 4)):
        binding.judge(shape)
        verdicts = capsys.readouterr().out
        assert verdicts.count("SUCCESS") == 4 and verdicts.count(":") == 4, verdicts


def test_the_judge_sees_swapped_gradients(binding, monkeypatch):
    """gate's gradient for up's, and the formula's without beta."""
    whole = binding.call

    def swapped(function, tensors, beta):
        if function == b"swiglu_backward":
            tensors = (*tensors[:3], tensors[4], tensors[3])
        whole(function, tensors, beta)

    for fault in (swapped, lambda function, tensors, beta: whole(function, tensors, 1.0)):
        monkeypatch.setattr(binding, "call", fault)
        verdicts = torch.library.opcheck(binding.swiglu, (*torch.randn(2, 5, 33, requires_grad=True), 1.5))
        assert set(verdicts.values()) == {"SUCCESS"}  # as lesson 16 says: it does not judge numbers
        with pytest.raises(AssertionError, match="not close"):
            binding.judge()


def test_strides_and_dtypes(binding):
    for dtype in binding.DTYPES:
        gate_up = torch.randn(6, 2, 66, dtype=torch.float32).to(dtype).transpose(0, 1)[..., ::2]
        gate, up = gate_up[0], gate_up[1].flip(0)
        y = binding.swiglu(gate, up, 1.25)
        assert y.dtype == dtype and y.is_contiguous() and not gate.is_contiguous()
        torch.testing.assert_close(y, formula(gate.double(), up.double(), 1.25).to(dtype))
        # The gradient of a sum arrives as one number, with strides of 0.
        leaf = gate.detach().requires_grad_()
        binding.swiglu(leaf, up).sum().backward()
        assert leaf.grad.shape == leaf.shape and leaf.grad.abs().sum() > 0


def test_refusals_are_sentences(binding):
    x = torch.ones(2, 3)
    for operands, words in (((x, torch.ones(3, 2)), r"must be as gate, \(2, 3\).* one is \(3, 2\)"),
                            ((x, x.half()), "one is .*float16"),
                            ((x, x.to("meta")), "one is .* on meta"),
                            ((x.double(), x.double()), "gate has dtype torch.float64, must be one of: torch.float32"),
                            ((x.expand(*[1] * 7, 2, 3), x.expand(*[1] * 7, 2, 3)), "9 dimensions, must have at most 8"),
                            ((x, x, float("nan")), "beta is nan, must be finite")):
        with pytest.raises((ValueError, TypeError), match=words):
            binding.swiglu(*operands)
    leaf = x.clone().requires_grad_()
    first, = torch.autograd.grad(binding.swiglu(leaf, x).sum(), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="swiglu_backward.*no autograd formula"):
        first.sum().backward()


def test_without_a_library(binding, monkeypatch):
    monkeypatch.setenv("ROOFTILE_LIBRARY", "/nowhere/librooftile.so")
    with pytest.raises(SystemExit, match="no library /nowhere/librooftile.so; build it with make build"):
        binding.load()


def test_the_module(binding):
    model = binding.FeedForward(8, 16)
    assert list(model.state_dict()) == ["gate_proj.weight", "up_proj.weight", "down_proj.weight"]
    assert "beta=1.0" in repr(model)
    x = torch.randn(3, 8)
    expected = model.down_proj(formula(model.gate_proj(x), model.up_proj(x), 1))
    torch.testing.assert_close(model(x), expected)
    packages = rooftile.torch.nn.GatedMLP(8, 16)
    packages.load_state_dict(model.state_dict())
    assert torch.equal(packages(x), model(x))
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    compiled(x).sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def gelu_operator(binding, name, fake):
    """The exercise's solution."""

    @torch.library.custom_op(f"by_hand::{name}", mutates_args=())
    def gelu(x: torch.Tensor, tanh: bool) -> torch.Tensor:
        y = x.new_empty(x.shape)
        binding.call(b"gelu", (x, y), tanh)
        return y

    @torch.library.custom_op(f"by_hand::{name}_backward", mutates_args=())
    def gelu_backward(x: torch.Tensor, dy: torch.Tensor, tanh: bool) -> torch.Tensor:
        dx = x.new_empty(x.shape)
        binding.call(b"gelu_backward", (x, dy, dx), tanh)
        return dx

    def remember(ctx, inputs, output):
        x, ctx.tanh = inputs
        ctx.save_for_backward(x)

    gelu.register_fake(lambda x, tanh: fake(x))
    gelu_backward.register_fake(lambda x, dy, tanh: x.new_empty(x.shape))
    gelu.register_autograd(lambda ctx, dy: (gelu_backward(*ctx.saved_tensors, dy, ctx.tanh), None), setup_context=remember)
    return gelu


def test_the_exercise(binding):
    gelu = gelu_operator(binding, "gelu", lambda x: x.new_empty(x.shape))
    (check,) = re.findall(r"```python\n(x = torch.randn.*?)```", (SOURCE / "docs/course/16_pytorch_binding.md").read_text(), re.S)
    exec(check, {"torch": torch, "gelu": gelu})
    wrong = gelu_operator(binding, "gelu_of_a_wrong_shape", lambda x: x.new_empty(x.shape[1:]))
    with pytest.raises(torch.testing._internal.optests.generate_tests.OpCheckError, match="test_faketensor failed"):
        exec(check, {"torch": torch, "gelu": wrong})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu(binding):
    with torch.cuda.stream(torch.cuda.Stream()):  # not the default one: a call on another stream would read what is not there yet
        gate, up = torch.randn(2, 4096, 4097, device="cuda")
        y = binding.swiglu(gate, up)
        torch.testing.assert_close(y, formula(gate, up, 1))
    with pytest.raises(ValueError, match="on cpu"):
        binding.swiglu(gate, up.cpu())
