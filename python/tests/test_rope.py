"""rooftile.rope: against Hugging Face's formula and Meta's, its gradients, and the frequencies of longer contexts."""

import math

import numpy as np
import pytest

import rooftile
from rooftile.frequencies import rope_frequencies

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402


def heads(b=2, s=7, h=4, g=2, d=16, dtype=torch.float32, seed=0):
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(b, s, n, d, generator=random).to(dtype) for n in (h, g)]


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def hugging_face(x, positions, f, factor=1.0):
    """apply_rotary_pos_emb, in f64."""
    angle = positions.double()[:, :, None, None] * torch.tensor(f, dtype=torch.float32).double()
    cos, sin = (factor * torch.cat((t, t), -1) for t in (angle.cos(), angle.sin()))
    turning, rest = x.double().split((2 * len(f), x.shape[-1] - 2 * len(f)), -1)
    return torch.cat((turning * cos + rotate_half(turning) * sin, rest), -1)


def meta(x, positions, f):
    """A complex product of each pair of neighbours, in f64."""
    angle = positions.double()[:, :, None, None] * torch.tensor(f, dtype=torch.float32).double()
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("first", [0, 15962, 1 << 20])
def test_as_hugging_face_and_meta(dtype, first):
    q, k = heads(dtype=dtype)
    positions = (first + torch.arange(7)).expand(2, 7)
    f, _ = rope_frequencies(16)
    rounding = {torch.float32: 3e-7, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
    for named in ({"offset": first}, {"positions": positions}, {"positions": positions.int(), "inv_freq": torch.tensor(f)}):
        for ours, x in zip(rooftile.rope(q, k, **named), (q, k), strict=True):
            torch.testing.assert_close(ours.double(), hugging_face(x, positions, f), rtol=rounding, atol=1e-6)
        for ours, x in zip(rooftile.rope(q, k, interleaved=True, **named), (q, k), strict=True):
            torch.testing.assert_close(ours.double(), meta(x, positions, f), rtol=rounding, atol=1e-6)


def test_dimensions_that_do_not_turn_and_strided_heads():
    q, k = heads(d=24)
    positions = torch.arange(7).expand(2, 7)
    f, _ = rope_frequencies(16)
    for ours, x in zip(rooftile.rope(q, k, rotary=16, attention_factor=1.5), (q, k), strict=True):
        torch.testing.assert_close(ours.double(), hugging_face(x, positions, f, 1.5), rtol=3e-7, atol=1e-6)
        assert torch.equal(ours[..., 16:], x[..., 16:])
    by_head = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k)]  # {B, H, S, D} in memory
    for ours, theirs in zip(rooftile.rope(*by_head, rotary=16), rooftile.rope(q, k, rotary=16), strict=True):
        assert torch.equal(ours, theirs)


def test_in_place_and_without_keys():
    q, k = heads()
    yq, yk = rooftile.rope(q, k)
    (alone, none) = rooftile.rope(q, q[:, :, :0])
    assert torch.equal(alone, yq) and none.shape == (2, 7, 0, 16)
    rooftile.rope(q, k, out=(q, k))
    assert torch.equal(q, yq) and torch.equal(k, yk)


@pytest.mark.parametrize("interleaved", [False, True])
def test_gradients(interleaved):
    """Those of PyTorch's own arithmetic; the rotation by the negative angle undoes the forward."""
    q, k = (x.requires_grad_() for x in heads())
    positions, (f, factor) = torch.randint(0, 100000, (2, 7)), rope_frequencies(16, 10000.0, "yarn", factor=4, original_length=64)
    named = {"positions": positions, "inv_freq": torch.tensor(f), "attention_factor": factor, "interleaved": interleaved}
    results = rt.rope(q, k, **named)
    weights = [torch.randn_like(r) for r in results]
    ours = torch.autograd.grad(sum((r * w).sum() for r, w in zip(results, weights)), (q, k))
    if not interleaved:
        expected = torch.autograd.grad(sum((hugging_face(x, positions, f, factor) * w).sum() for x, w in zip((q, k), weights)), (q, k))
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)
    for x, back in zip((q, k), rooftile.rope_backward(*[r.detach() for r in results], **named), strict=True):
        torch.testing.assert_close(back, factor * factor * x.detach(), rtol=1e-5, atol=1e-5)


def test_gradients_on_jax():
    jax = pytest.importorskip("jax")
    import jax.test_util
    import rooftile.jax

    q, k = (jax.numpy.asarray(x.numpy()) for x in heads())
    def loss(q, k):
        yq, yk = rooftile.jax.rope(q, k, offset=5, interleaved=True)
        return (yq[..., 0] ** 2).sum() + (yk * yk[:, :, :, ::-1]).sum()

    jax.test_util.check_grads(jax.jit(loss), (q, k), order=1, modes=["rev"], eps=2**-7, atol=2e-2, rtol=2e-2)


def test_refusals():
    q, k = heads()
    with pytest.raises(ValueError, match="rope: must have rotary <= D where rotary is 18, D is 16"):
        rooftile.rope(q, k, rotary=18)
    with pytest.raises(ValueError, match=r"rope: must have rotary % 2 = 0 where rotary is 7"):
        rooftile.rope(q, k, rotary=7)
    with pytest.raises(ValueError, match="rope: must have 2"):
        rooftile.rope(q, k, inv_freq=torch.ones(9))
    with pytest.raises(ValueError, match="rope: must have rotary"):
        rooftile.rope(q, k, inv_freq=torch.ones(8), rotary=8)
    with pytest.raises(ValueError, match="rope: positions is 7"):
        rooftile.rope(q, k, positions=torch.arange(7))


# ---- Frequencies: transformers' modeling_rope_utils.py, written anew


def transformers_frequencies(kind, dim, base, factor, original, length=0.0, beta_fast=32.0, beta_slow=1.0, low=1.0, high=4.0):
    i = torch.arange(0, dim, 2, dtype=torch.float64)
    if kind == "ntk":
        length = max(length, original)
        base = base * ((factor * length / original) - (factor - 1)) ** (dim / (dim - 2))
    inv = 1.0 / base ** (i / dim)
    if kind == "linear":
        return inv / factor
    if kind == "yarn":
        def correction(rotations):
            return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(base))

        first, last = max(math.floor(correction(beta_fast)), 0), min(math.ceil(correction(beta_slow)), dim - 1)
        ramp = torch.clamp((torch.arange(dim // 2, dtype=torch.float64) - first) / (last - first), 0, 1)
        keeps = 1 - ramp
        return inv / factor * (1 - keeps) + inv * keeps
    if kind == "llama3":
        wavelength = 2 * math.pi / inv
        longest, shortest = original / low, original / high
        scaled = torch.where(wavelength > longest, inv / factor, inv)
        smooth = (original / wavelength - low) / (high - low)
        between = (1 - smooth) * scaled / factor + smooth * scaled
        return torch.where(~(wavelength < shortest) & ~(wavelength > longest), between, scaled)
    return inv


@pytest.mark.parametrize("kind", ["none", "linear", "ntk", "yarn", "llama3"])
@pytest.mark.parametrize("dim, base, factor, original", [(128, 500000.0, 8.0, 8192.0), (64, 10000.0, 4.0, 2048.0)])
def test_frequencies(kind, dim, base, factor, original):
    ours, attention = rope_frequencies(dim, base, kind, factor=factor, original_length=original, length=3 * original)
    theirs = transformers_frequencies(kind, dim, base, factor, original, length=3 * original)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert attention == (0.1 * math.log(factor) + 1 if kind == "yarn" else 1)


def test_frequencies_of_llama_3_1():
    """Three of the 64 by hand: fast pairs stay, slow ones are 8 times slower, pair 32 of wavelength 4443 is between."""
    f, _ = rope_frequencies(128, 500000.0, "llama3", factor=8, original_length=8192)
    assert f[0] == 1 and f[63] == pytest.approx(500000 ** (-63 / 64) / 8)
    smooth = (8192 * 500000**-0.5 / (2 * math.pi) - 1) / 3
    assert f[32] == pytest.approx((1 - smooth) * 500000**-0.5 / 8 + smooth * 500000**-0.5)
    with pytest.raises(ValueError, match="rope_frequencies: original_length is 0.0, must be finite and above 0"):
        rope_frequencies(128, kind="yarn", factor=2)
    with pytest.raises(ValueError, match="kind is 'longrope', must be one of: none, linear"):
        rope_frequencies(128, kind="longrope")
