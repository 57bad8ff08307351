"""rooftile.torch.nn: modules beside torch.nn's, and patch() on models."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import rooftile
import rooftile.torch

nn, F, ours = torch.nn, torch.nn.functional, rooftile.torch.nn


def same(mine, theirs, *shapes):
    """Each takes the other's state_dict; one result, the same gradients of inputs and parameters."""
    with torch.no_grad():
        for p in mine.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    theirs.load_state_dict(mine.state_dict())
    mine.load_state_dict(theirs.state_dict())
    inputs = [torch.randn(*s, requires_grad=True) for s in shapes]
    a, e = mine(*inputs), theirs(*inputs)
    torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-5)
    for g, h in zip(torch.autograd.grad((a * e.detach()).sum(), (*inputs, *mine.parameters())),
                    torch.autograd.grad((e * e.detach()).sum(), (*inputs, *theirs.parameters())), strict=True):
        torch.testing.assert_close(g, h, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("words", [{}, {"bias": False}, {"elementwise_affine": False}, {"eps": 0.1}], ids=str)
def test_layer_norm(words):
    same(ours.LayerNorm(8, **words), nn.LayerNorm(8, **words), (3, 5, 8))
    same(ours.LayerNorm((5, 8), **words), nn.LayerNorm((5, 8), **words), (3, 5, 8))


@pytest.mark.parametrize("words", [{}, {"elementwise_affine": False}, {"eps": 0.1}], ids=str)
def test_rms_norm(words):
    same(ours.RMSNorm(8, **words), nn.RMSNorm(8, **words), (3, 5, 8))
    same(ours.RMSNorm((5, 8), **words), nn.RMSNorm((5, 8), **words), (3, 5, 8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rms_norms_eps_of_none_is_pytorchs(dtype):
    x = torch.full((2, 8), 1e-3, dtype=dtype)
    torch.testing.assert_close(ours.RMSNorm(8, dtype=dtype)(x), nn.RMSNorm(8, dtype=dtype)(x))


def test_rms_norm_with_weight_plus_1():
    x = torch.randn(3, 8)
    norm = ours.RMSNorm(8, eps=1e-6, unit_offset=True)
    assert not norm.weight.any() and "unit_offset=True" in repr(norm)
    torch.testing.assert_close(norm(x), F.rms_norm(x, (8,), eps=1e-6))
    with torch.no_grad():
        norm.weight.copy_(torch.randn(8))
    torch.testing.assert_close(norm(x), F.rms_norm(x, (8,), norm.weight + 1, 1e-6))


class PlainDyT(nn.Module):
    """As its paper writes it."""

    def __init__(self, shape, init_alpha=0.5, elementwise_affine=True, bias=True):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((1,), init_alpha))
        self.weight = nn.Parameter(torch.ones(shape)) if elementwise_affine else None
        self.bias = nn.Parameter(torch.zeros(shape)) if elementwise_affine and bias else None

    def forward(self, x):
        y = torch.tanh(self.alpha * x)
        y = y if self.weight is None else y * self.weight
        return y if self.bias is None else y + self.bias


@pytest.mark.parametrize("words", [{}, {"bias": False}, {"elementwise_affine": False}, {"init_alpha": 0.8}], ids=str)
def test_dyt(words):
    for shape in (8, (5, 8)):
        mine, plain = ours.DyT(shape, **words), PlainDyT(shape, **words)
        assert all(torch.equal(p, q) for p, q in zip(mine.parameters(), plain.parameters(), strict=True))
        same(mine, plain, (3, 5, 8))
    assert f"init_alpha={words.get('init_alpha', 0.5)}" in repr(mine)
    with pytest.raises(ValueError, match="DyT: x is 3x5x7, its last sizes must be"):
        mine(torch.ones(3, 5, 7))


@pytest.mark.parametrize("shape", [(8,), (5, 8)])
def test_norms_of_a_sum(shape):
    for module, plain in ((ours.LayerNorm(shape), nn.LayerNorm(shape)), (ours.RMSNorm(shape, 1e-6), nn.RMSNorm(shape, 1e-6))):
        x, r, a, b = (torch.randn(3, 5, 8, requires_grad=True) for _ in range(4))
        y, total = module(x, r)
        assert torch.equal(total, x + r)
        torch.testing.assert_close(y, plain(x + r), rtol=1e-4, atol=1e-5)
        grads = torch.autograd.grad((y * a + total * b).sum(), (x, r))
        (expected,) = torch.autograd.grad((plain(x + r) * a + (x + r) * b).sum(), x)
        for g in grads:
            torch.testing.assert_close(g, expected, rtol=1e-3, atol=1e-4)
        with pytest.raises(ValueError, match=f"{type(module).__name__}: residual is 3x5x1, must be as x, 3x5x8"):
            module(x, r[..., :1])
        with pytest.raises(ValueError, match=f"{type(module).__name__}: x is 3x5x7, its last sizes must be"):
            module(x[..., :7])


@pytest.mark.parametrize("dim", [-1, 0, 1, 2, -3])
def test_softmax_along_any_dimension(dim):
    same(ours.Softmax(dim), nn.Softmax(dim), (3, 5, 8))
    same(ours.LogSoftmax(dim), nn.LogSoftmax(dim), (3, 5, 8))


@pytest.mark.parametrize("kind", ["ReLU", "Sigmoid", "Tanh", "SiLU", "GELU"])
def test_activations(kind):
    same(getattr(ours, kind)(), getattr(nn, kind)(), (3, 5))
    if kind == "GELU":
        same(ours.GELU("tanh"), nn.GELU("tanh"), (3, 5))


@pytest.mark.parametrize("p", [1, 2, 1.0, 2.0])
@pytest.mark.parametrize("dim", [-1, 0, 1, 2])
def test_normalize(p, dim):
    x = torch.randn(3, 5, 8, requires_grad=True)
    x.data[:, 1] = 0
    dy = torch.randn(3, 5, 8)
    y, e = ours.Normalize(p, dim)(x), F.normalize(x, p, dim)
    torch.testing.assert_close(y, e)
    torch.testing.assert_close(ours.normalize(x, p, dim), e)
    torch.testing.assert_close(ours.normalize(x, p, dim, eps=3.0), F.normalize(x, p, dim, eps=3.0))
    kept = x.detach() != 0  # at 0 both divide by 1e-12
    for a, b in zip(torch.autograd.grad((y * dy)[kept].sum(), x), torch.autograd.grad((e * dy)[kept].sum(), x)):
        torch.testing.assert_close(a[kept], b[kept], rtol=1e-3, atol=1e-5)


def test_normalize_of_another_p_is_refused():
    with pytest.raises(ValueError, match="p is 3, must be 1 or 2"):
        ours.normalize(torch.ones(2, 3), 3)
    assert repr(ours.Normalize(1)) == "Normalize(p=1, dim=1, eps=1e-12)"


def test_gates():
    gate, up = torch.randn(3, 8), torch.randn(3, 8)
    for module, expected in ((ours.SwiGLU(), F.silu(gate) * up), (ours.SwiGLU(1.5), gate * torch.sigmoid(1.5 * gate) * up),
                             (ours.GEGLU(), F.gelu(gate) * up),
                             (ours.GEGLU("tanh"), F.gelu(gate, approximate="tanh") * up)):
        torch.testing.assert_close(module(gate, up), expected)
        torch.testing.assert_close(module(torch.cat([gate, up], -1)), expected)
    with pytest.raises(ValueError, match="must be even"):
        ours.SwiGLU()(torch.randn(3, 7))


@pytest.mark.parametrize("word", ["tahn", "Tanh", "", None, True])
def test_a_misspelt_gelu_is_refused(word):
    for kind in (ours.GELU, ours.GEGLU):
        with pytest.raises(ValueError, match=f"{kind.__name__}: approximate is {word!r}, must be one of: none tanh"):
            kind(word)
    module = nn.GELU(word)  # PyTorch's own says so when it is called
    rooftile.torch.patch(module)
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        module(torch.ones(2, 3))


class LlamaMLP(nn.Module):
    def __init__(self, act_fn, bias=False):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(8, 12, bias), nn.Linear(8, 12, bias)
        self.down_proj = nn.Linear(12, 8, bias)
        self.act_fn = act_fn

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaRMSNorm(nn.Module):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        h = hidden_states.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * h.to(hidden_states.dtype)


class GemmaRMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(8)), 1e-6

    def forward(self, x):
        h = x.float()
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps) * (1 + self.weight.float())).type_as(x)


class ScaledRMSNorm(LlamaRMSNorm):
    def forward(self, hidden_states):
        return 2 * super().forward(hidden_states)


class T5LayerNorm(LlamaRMSNorm):
    """By its name another, by what it computes the same."""


class CohereLayerNorm(LlamaRMSNorm):
    def forward(self, hidden_states):
        h = hidden_states.float()
        h = h - h.mean(-1, keepdim=True)
        return self.weight * (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)).to(hidden_states.dtype)


class BrokenRMSNorm(LlamaRMSNorm):
    def forward(self, hidden_states):
        raise KeyError("no config")


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = LlamaRMSNorm(1e-5), GemmaRMSNorm()
        self.mlp, self.other = LlamaMLP(nn.SiLU()), LlamaMLP(nn.GELU(approximate="tanh"), bias=True)

    def forward(self, x):
        x = x + self.mlp(self.input_layernorm(x))
        return x + self.other(self.post_attention_layernorm(x))


ACTS = {"silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}


@pytest.mark.parametrize("activation", list(ACTS))
@pytest.mark.parametrize("bias", [False, True])
def test_gated_mlp_has_llamas_state_dict(activation, bias):
    same(ours.GatedMLP(8, 12, activation, bias), LlamaMLP(ACTS[activation], bias), (3, 8))
    assert f"activation='{activation}'" in repr(ours.GatedMLP(8, 12, activation))
    with pytest.raises(ValueError, match="activation is 'relu', must be one of: silu gelu gelu_tanh"):
        ours.GatedMLP(8, 12, "relu")


MODULES = [ours.LayerNorm(8), ours.RMSNorm(8), ours.DyT(8), ours.Softmax(-1), ours.Softmax(0), ours.LogSoftmax(-1), ours.Normalize(),
           ours.Dropout(0), ours.ReLU(), ours.Sigmoid(), ours.Tanh(), ours.SiLU(), ours.GELU(), ours.GELU("tanh"), ours.SwiGLU(), ours.GEGLU(),
           ours.GatedMLP(8, 12), ours.Linear(8, 12), ours.MLP(8, 12), ours.MLP(8, 12, "swiglu")]


def test_each_module_is_in_the_list():
    """But those with a file of their own."""
    assert {type(m) for m in MODULES} == {m for m in vars(ours).values() if isinstance(m, type) and issubclass(m, nn.Module)
                                          and m.__module__ == ours.__name__ and m is not ours.Gated
                                          and not issubclass(m, (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.Conv2d, ours.LinearNF4,
                                                                  ours.Linear8bit, ours.LinearInt4))}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", MODULES, ids=repr)
def test_jit_trace(module):
    """The trace's own check runs it again without gradients."""
    x, other = torch.randn(3, 8), torch.randn(5, 8)
    for args in ((x,), (x, x)) if isinstance(module, (ours.LayerNorm, ours.RMSNorm, ours.Gated)) else ((x,),):
        traced, args = torch.jit.trace(module, args), [other] * len(args)
        torch.testing.assert_close(traced(*args), tuple(e) if isinstance(e := module(*args), tuple) else e)
        with torch.no_grad():
            torch.jit.trace(module, tuple(args))


# ---- patch


def test_patch_and_unpatch(capsys):
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.ReLU(inplace=True), nn.LayerNorm(8).double(),
                          nn.Sequential(nn.SiLU(), nn.Softmax(-1), nn.Softmax()), nn.RMSNorm(8), ours.LayerNorm(8))
    plain = nn.Sequential(*model[:4], model[6])
    x = torch.randn(3, 8)
    before, state = plain(x), {k: v.clone() for k, v in model.state_dict().items()}
    done = rooftile.torch.patch(model)
    assert capsys.readouterr().out == ""  # it says what it did by what it returns
    said = str(done)
    assert "5 modules run on its kernels, 3 that could keep their own" in said
    assert "  1: LayerNorm\n" in said and "  5.1: Softmax\n" in said and "  6: RMSNorm\n" in said
    assert "3: ReLU stays, it works in place" in said and "5.2: Softmax stays, it names no dimension" in said
    assert "4: LayerNorm stays, it has parameters of torch.float64" in said
    assert done.kept[0] == ("3", "ReLU", "it works in place") and ("2", "GELU") in done.replaced
    assert isinstance(model[1], ours.LayerNorm) and type(model[4]) is nn.LayerNorm
    torch.testing.assert_close(plain(x), before, rtol=1e-4, atol=1e-5)
    assert set(model.state_dict()) == set(state) and all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    assert rooftile.torch.patch(model).replaced == []  # once is enough
    assert rooftile.torch.unpatch(model) is model
    assert type(model[1]) is nn.LayerNorm and type(model[5][1]) is nn.Softmax
    assert type(model[7]) is ours.LayerNorm  # that was none of patch's
    assert torch.equal(plain(x), before)


def error_of(actual, exact):
    return [(a.float() - e).abs().max().item() for a, e in zip(actual, exact, strict=True)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_patch_knows_modules_by_their_looks(dtype):
    """Patched, a model is about as far from itself in f64 as it was, by fewer roundings; weights of 0 hide no activation."""
    torch.manual_seed(5)
    model = Decoder().to(dtype)
    with torch.no_grad():
        model.post_attention_layernorm.weight.normal_()
        model.input_layernorm.weight.normal_()
    names = {n: type(m) for n, m in model.named_modules()}
    x = torch.randn(2, 3, 8).to(dtype).requires_grad_()

    def step(model, x):
        y = model(x)
        return [y, *torch.autograd.grad(y.square().sum(), (x, *model.parameters()))]

    exact = [e.float() for e in step(copy.deepcopy(model).double(), x.detach().double().requires_grad_())]
    plain = step(model, x)
    down = model.mlp.down_proj.weight.detach().clone()
    model.mlp.down_proj.weight.data.zero_()
    done = rooftile.torch.patch(model)
    model.mlp.down_proj.weight.data.copy_(down)
    assert done.kept == [] and [n for n, _ in done.replaced] == ["input_layernorm", "post_attention_layernorm", "mlp", "mlp.act_fn",
                                                                 "other", "other.act_fn"]
    assert isinstance(model.input_layernorm, LlamaRMSNorm) and isinstance(model.mlp, LlamaMLP)
    patched = step(model, x)
    unit = torch.finfo(dtype).eps
    for ours, theirs, e in zip(error_of(patched, exact), error_of(plain, exact), exact, strict=True):
        assert ours <= 1.5 * theirs + 4 * unit * e.abs().max().item()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), patched[0])
    rooftile.torch.unpatch(model)
    assert {n: type(m) for n, m in model.named_modules()} == names and torch.equal(model(x), plain[0])


def test_a_patched_model_is_copied_and_pickled():
    model, x = Decoder(), torch.randn(2, 8)
    rooftile.torch.patch(model)
    expected = model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(other.mlp) is type(model.mlp) and torch.equal(other(x), expected)
        assert other.mlp.gate_proj.weight is not model.mlp.gate_proj.weight
        rooftile.torch.unpatch(other)
        assert type(other.mlp) is LlamaMLP


@pytest.mark.parametrize("module, reason", [
    (ScaledRMSNorm(), "a trial of it gave other numbers than RMS normalisation"),
    (CohereLayerNorm(), "a trial of it gave other numbers than RMS normalisation"),
    (BrokenRMSNorm(), "a trial of it failed: 'no config'"),
    (LlamaMLP(F.relu), "a trial of it gave other numbers than a gated MLP of SiLU or GELU"),
    (LlamaRMSNorm().double(), "it has parameters of torch.float64"),
])
def test_what_only_looks_like_one_stays(module, reason):
    own = type(module)
    done = rooftile.torch.patch(module)
    assert done.replaced == [] and done.kept[0][:2] == ("", own.__name__) and reason in done.kept[0][2]
    assert type(module) is own and module.training


class T5Norm(LlamaRMSNorm):
    """Gives the dtype of its weight."""

    def forward(self, hidden_states):
        h = hidden_states.float()
        h = hidden_states * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * (h.to(self.weight.dtype) if self.weight.dtype in (torch.float16, torch.bfloat16) else h)


class ChannelFirstRMSNorm(LlamaRMSNorm):
    def forward(self, x):
        h, shape = x.float(), (1, -1, *[1] * (x.dim() - 2))
        return (h * torch.rsqrt(h.pow(2).mean(1, keepdim=True) + self.variance_epsilon) * self.weight.view(shape)).to(x.dtype)


class ClampedRMSNorm(LlamaRMSNorm):
    def forward(self, x):
        return super().forward(x.clamp(-1000, 1000))


class EpsOutsideRMSNorm(LlamaRMSNorm):
    def forward(self, x):
        return self.weight * x / (x.pow(2).mean(-1, keepdim=True).sqrt() + self.variance_epsilon)


class NoisyRMSNorm(LlamaRMSNorm):
    def forward(self, x):
        return super().forward(x + torch.randn_like(x) if self.training else x)


class GatedRMSNorm(LlamaRMSNorm):
    """As Mamba has it."""

    def forward(self, hidden_states, gate=None):
        return super().forward(hidden_states if gate is None else hidden_states * F.silu(gate))


class DroppingMLP(LlamaMLP):
    def __init__(self, p=0.1):
        super().__init__(nn.GELU(approximate="tanh"))
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        return self.down_proj(self.dropout(self.act_fn(self.gate_proj(x)) * self.up_proj(x)))


class ClampedMLP(LlamaMLP):
    def __init__(self):
        super().__init__(nn.SiLU())

    def forward(self, x):
        gate, up = self.gate_proj(x).clamp(max=70), self.up_proj(x).clamp(-70, 70)
        return self.down_proj(self.act_fn(gate) * up)


class PackedMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_up_proj, self.down_proj = nn.Linear(8, 24, False), nn.Linear(12, 8, False)
        self.activation_fn = nn.SiLU()

    def forward(self, hidden_states):
        gate, up = self.gate_up_proj(hidden_states).chunk(2, -1)
        return self.down_proj(up * self.activation_fn(gate))


class UpThenGateMLP(PackedMLP):
    def forward(self, x):
        up, gate = self.gate_up_proj(x).chunk(2, -1)
        return self.down_proj(up * self.activation_fn(gate))


class T5DenseGatedActDense(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.wi_0, self.wi_1, self.wo = nn.Linear(8, 12, False), nn.Linear(8, 12, False), nn.Linear(12, 8, False)
        self.dropout, self.act = nn.Dropout(p), nn.GELU(approximate="tanh")

    def forward(self, hidden_states):
        return self.wo(self.dropout(self.act(self.wi_0(hidden_states)) * self.wi_1(hidden_states)))


class NewGELUActivation(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x.pow(3))))


class QuickGELUActivation(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class L2Norm(nn.Module):
    """Llama 4's: by its name another, by what it computes RMS normalisation."""

    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x)


class TrueL2Norm(L2Norm):
    def forward(self, x):
        return F.normalize(x.float(), dim=-1, eps=self.eps).type_as(x)


class EpsAddedL2Norm(L2Norm):
    def forward(self, x):
        return x / (x.float().norm(dim=-1, keepdim=True) + self.eps).type_as(x)


class GroupsNorm(L2Norm):
    def forward(self, x):
        return super().forward(x.unflatten(-1, (2, -1))).flatten(-2)


class W123(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(8, 12, False), nn.Linear(12, 8, False), nn.Linear(8, 12, False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


LOOKING = [LlamaRMSNorm, L2Norm, TrueL2Norm, EpsAddedL2Norm, GroupsNorm, W123, GemmaRMSNorm, T5Norm, ChannelFirstRMSNorm, ClampedRMSNorm, EpsOutsideRMSNorm, NoisyRMSNorm, GatedRMSNorm,
           DroppingMLP, lambda: DroppingMLP(0.0), ClampedMLP, PackedMLP, UpThenGateMLP, T5DenseGatedActDense, NewGELUActivation,
           QuickGELUActivation, lambda: LlamaMLP(nn.SiLU()), lambda: nn.LayerNorm(8), lambda: nn.RMSNorm(8), lambda: nn.GELU(),
           lambda: nn.Softmax(-1), lambda: nn.Softmax(1), nn.ReLU, nn.SiLU, nn.Tanh]


def outcome(module, x, *more):
    torch.manual_seed(7)
    try:
        return module(x, *more)
    except Exception as error:
        return error


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("make", LOOKING, ids=lambda m: getattr(m, "__name__", "").strip("<>") or None)
def test_a_patched_module_takes_and_gives_what_its_own_class_did(make, training):
    """Dtypes of x and of the parameters, dimensions, sizes, sizes of numbers, modes: an error where there was one, else the same
    dtype and numbers."""
    torch.manual_seed(5)
    plain = make().train(training)
    with torch.no_grad():
        for p in plain.parameters():
            p.copy_(torch.randn_like(p))
    patched = copy.deepcopy(plain)
    rooftile.torch.patch(patched)
    kinds = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
    inputs = [torch.randn(shape) for shape in ((8,), (2, 8), (8, 8), (2, 3, 8), (2, 8, 8), (2, 2, 3, 8), (2, 8, 2, 8),
                                               (1, 2, 1, 3, 8), (0, 8), ())]
    inputs += [scale * x for x in (inputs[1], inputs[4]) for scale in (1e-3, 1e4)]
    for dtype in kinds:
        plain, patched = plain.to(dtype), patched.to(dtype)
        for x_dtype in (*kinds, torch.int64):
            if x_dtype not in (torch.float32, torch.float64, dtype) and dtype != torch.float32:
                continue
            for x in inputs:
                x = x.clamp(-1000, 1000).to(x_dtype) if x_dtype == torch.float16 else x.to(x_dtype)
                expected, actual = outcome(plain, x), outcome(patched, x)
                if isinstance(expected, Exception):
                    assert type(actual) is type(expected), (x_dtype, dtype, x.shape, actual)
                    continue
                assert isinstance(actual, torch.Tensor), (x_dtype, dtype, x.shape, actual)
                assert actual.dtype == expected.dtype and actual.shape == expected.shape
                if expected.isfinite().all():
                    unit = max(torch.finfo(d).eps for d in (x_dtype, dtype, torch.float32) if d.is_floating_point)
                    largest = expected.abs().max().item() if expected.numel() else 0
                    torch.testing.assert_close(actual, expected, rtol=16 * unit, atol=16 * unit * largest + 1e-30)
    x = torch.randn(2, 8)
    for more in ((x,), (None,), (x, x)):  # arguments that its own class may know
        expected, actual = outcome(plain.float(), x, *more), outcome(patched.float(), x, *more)
        assert type(actual) is type(expected)
        if isinstance(expected, torch.Tensor):
            torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("make, modes", [(DroppingMLP, (False,)), (T5DenseGatedActDense, (False,)), (PackedMLP, (False, True)),
                                         (lambda: T5DenseGatedActDense(0.0), (False, True)), (NewGELUActivation, (False, True)),
                                         (GatedRMSNorm, (False, True)), (L2Norm, (False, True)), (TrueL2Norm, (False, True)),
                                         (W123, (False, True)), (NoisyRMSNorm, (False,)), (T5Norm, (False, True))])
def test_what_runs_on_kernels_in_which_mode(make, modes):
    module = make()
    done = rooftile.torch.patch(module)
    assert done.replaced[0] == ("", type(module).__name__)
    own = type(module).rooftile_own
    for child in module.children():
        rooftile.torch.unpatch(child)
    assert tuple(m for m in (False, True) if m in type(module).rooftile_form.modes) == modes
    theirs = []
    for training in (False, True):
        module.train(training)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            module(torch.randn(2, 3, 8))
        theirs.append(not any(e.key.startswith("rooftile::") for e in profile.key_averages()))
    assert theirs == [False not in modes, True not in modes] and own is type(make())


class Experts(nn.Module):
    """As transformers' have it: their products are grouped, and the gate is a method."""

    def __init__(self, act_fn):
        super().__init__()
        self.gate_up_proj, self.down_proj = nn.Parameter(torch.randn(3, 24, 8)), nn.Parameter(torch.randn(3, 8, 12))
        self.act_fn = act_fn

    def _apply_gate(self, gate_up_out):
        gate, up = gate_up_out.chunk(2, dim=-1)
        return self.act_fn(gate) * up

    def forward(self, x, expert):
        up = torch.stack([self.gate_up_proj[e] @ row for e, row in zip(expert, x)])
        return torch.stack([self.down_proj[e] @ row for e, row in zip(expert, self._apply_gate(up))])


class ClampedExperts(Experts):
    def _apply_gate(self, gate_up_out):
        return super()._apply_gate(gate_up_out.clamp(-7, 7))


class InterleavedExperts(Experts):
    def _apply_gate(self, gate_up_out):
        return self.act_fn(gate_up_out[..., ::2]) * gate_up_out[..., 1::2]


@pytest.mark.parametrize("activation", [nn.SiLU, nn.GELU, NewGELUActivation])
def test_experts_gates(activation):
    torch.manual_seed(8)
    module, x, expert = Experts(activation()), torch.randn(5, 8, requires_grad=True), [2, 0, 1, 2, 2]
    expected = module(x, expert)
    gradients = torch.autograd.grad(expected.square().sum(), (x, *module.parameters()))
    done = rooftile.torch.patch(module)
    assert done.replaced[0] == ("", "Experts") and isinstance(module, Experts)
    rooftile.torch.unpatch(module.act_fn)
    called = []
    module.act_fn.register_forward_hook(lambda *_: called.append(1))
    torch.testing.assert_close(module(x, expert), expected, rtol=1e-4, atol=1e-5)
    assert not called
    for a, e in zip(torch.autograd.grad(module(x, expert).square().sum(), (x, *module.parameters())), gradients, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-6 * e.abs().max().item())  # its terms cancel
    for other in (copy.deepcopy(module), rooftile.torch.unpatch(module).double()):  # f64 runs as it did
        torch.testing.assert_close(other.double()(x.double(), expert), expected.double(), rtol=1e-4, atol=1e-4)


class EagerExperts(Experts):
    def forward(self, x, expert):
        return x  # and no gate is called


def test_a_gate_that_is_not_called_stays():
    done = rooftile.torch.patch(EagerExperts(nn.Tanh()))
    assert [n for n, _ in done.replaced] == ["act_fn"] and done.kept == []


@pytest.mark.parametrize("kind", [ClampedExperts, InterleavedExperts])
def test_other_gates_stay(kind):
    done = rooftile.torch.patch(kind(nn.SiLU()))
    assert ("", kind.__name__, "a trial of it gave other numbers than a gate of SiLU or GELU") in done.kept


def test_a_keyword_of_forwards_reaches_the_kernel():
    module, x = LlamaRMSNorm(), torch.randn(2, 8)
    expected = module(hidden_states=x)
    rooftile.torch.patch(module)
    torch.testing.assert_close(module(hidden_states=x), expected)
    with pytest.raises(TypeError):
        module(x=x)


def test_a_patched_module_still_has_a_derivative_in_forward_mode():
    module, x = nn.LayerNorm(8), torch.randn(2, 8)
    expected = torch.func.jvp(module, (x,), (x,))
    rooftile.torch.patch(module)
    torch.testing.assert_close(torch.func.jvp(module, (x,), (x,)), expected)


def test_a_name_does_not_decide():
    norm, x = T5LayerNorm(), torch.randn(3, 8)
    expected = norm(x)
    assert rooftile.torch.patch(norm).replaced == [("", "T5LayerNorm")]
    torch.testing.assert_close(norm(x), expected)


def test_a_model_without_numbers_is_patched():
    model = Decoder().to("meta")
    assert rooftile.torch.patch(model).kept == []
    assert model(torch.empty(2, 8, device="meta")).shape == (2, 8)


def test_patch_leaves_random_numbers_alone():
    torch.manual_seed(6)
    expected = torch.randn(3)
    torch.manual_seed(6)
    rooftile.torch.patch(LlamaRMSNorm())
    assert torch.equal(torch.randn(3), expected)


def test_a_model_trains_on_it():
    torch.manual_seed(3)
    x, target = torch.randn(64, 16), torch.randint(0, 4, (64,))

    def losses(patched):
        torch.manual_seed(4)
        model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4), nn.LogSoftmax(-1))
        if patched:
            rooftile.torch.patch(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        history = []
        for _ in range(30):
            loss = F.nll_loss(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        return history

    patched, plain = losses(True), losses(False)
    assert patched[-1] < 0.5 * patched[0]
    np.testing.assert_allclose(patched, plain, rtol=1e-3)
