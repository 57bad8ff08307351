"""Codes of 8 bits against the frameworks' own conversions, and scales by row and block."""

import numpy as np
import pytest

import rooftile

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

FORMATS = {"f8e4m3": (torch.float8_e4m3fn, 448.0), "f8e5m2": (torch.float8_e5m2, 57344.0), "i8": (torch.int8, 127.0)}
QUANTIZE = {name: getattr(rooftile, f"quantize_{name}") for name in FORMATS}


def values():
    """All of bf16 as they are, and a million f32 of all sizes."""
    all_bf16 = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16)
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (500_000,), generator=generator).int().view(torch.float32)
    near = torch.randn(500_000, generator=generator) * torch.logspace(-8, 6, 500_000, base=10)
    return [all_bf16, bits, near]


@pytest.mark.parametrize("name", ["f8e4m3", "f8e5m2"])
def test_every_conversion_is_that_of_pytorch_and_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype, largest = FORMATS[name]
    for x in values():
        codes, _ = QUANTIZE[name](x[None], given=torch.ones(1, 1), block=len(x))
        assert codes.dtype == dtype
        ours = codes[0].view(torch.uint8)
        within = x.float().clamp(-largest, largest)
        nan = within.isnan()
        assert (ours[nan] == 0x7F).all()
        assert torch.equal(ours[~nan], within.to(dtype).view(torch.uint8)[~nan])
        theirs = within[~nan].numpy().astype(getattr(ml_dtypes, str(dtype).split(".")[1])).view(np.uint8)
        np.testing.assert_array_equal(ours[~nan].numpy(), theirs)


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_comes_back(name):
    dtype, _ = FORMATS[name]
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype)[None]
    one = torch.ones(1, 1)
    y = rooftile.dequantize(codes, one, block=256)
    assert y.dtype == torch.float32
    number = ~codes.float().isnan()
    assert torch.equal(y.isnan(), ~number) and torch.equal(y[number].view(torch.int32), codes.float()[number].view(torch.int32))
    again, _ = QUANTIZE[name](y, given=one, block=256)
    finite = y.isfinite() & (codes.float() != -128)  # i8 from -127 on
    assert torch.equal(again.view(torch.uint8)[finite], codes.view(torch.uint8)[finite])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("block", [128, 300])
def test_scales(name, dtype, block):
    x = torch.randn(5, 7, 300).to(dtype)
    codes, scale = QUANTIZE[name](x, block=block)
    theirs, largest = FORMATS[name]
    parts = x.float().split(block, -1)
    expected = torch.stack([p.abs().amax(-1) / largest for p in parts], -1)
    assert torch.equal(scale, expected)
    each = scale.repeat_interleave(block, -1)[..., :300]
    products = (x.float() * (1 / scale).repeat_interleave(block, -1)[..., :300]).clamp(-largest, largest)
    assert torch.equal(codes.float(), (products if theirs.is_floating_point else products.round()).to(theirs).float())
    y = torch.empty_like(x)
    rooftile.dequantize(codes, scale, block=block, out=y)
    assert torch.equal(y, (codes.float() * each).to(dtype))


def test_one_scale_for_a_tensor_is_given_by_strides_of_0():
    x = torch.randn(40, 256)
    scale = (x.abs().max() / 448)[None, None]
    codes, used = rooftile.quantize_f8e4m3(x, given=scale.expand(40, 2))
    assert torch.equal(used, scale.expand(40, 2))
    assert torch.equal(codes.float(), (x * (1 / scale)).clamp(-448, 448).to(torch.float8_e4m3fn).float())
    assert torch.equal(rooftile.dequantize(codes, scale.expand(40, 2)), codes.float() * scale)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_scale_for_a_tensor_is_found_in_the_same_call(name, dtype):
    x = torch.randn(7, 5, 300).to(dtype)
    theirs, largest = FORMATS[name]
    codes, scale = getattr(rooftile, f"quantize_tensor_{name}")(x)
    assert codes.dtype == theirs and codes.shape == x.shape and scale.numel() == 1
    assert scale.item() == (x.abs().amax().float() / largest).item()
    products = (x.float() * (1 / scale)).clamp(-largest, largest)
    assert torch.equal(codes.float(), (products if theirs.is_floating_point else products.round()).to(theirs).float())


@pytest.mark.parametrize("name", FORMATS)
def test_a_seed_rounds_by_chance(name):
    x = torch.randn(64, 1024)
    codes, scale = QUANTIZE[name](x, block=1024, seed=5)
    again, _ = QUANTIZE[name](x, block=1024, seed=5)
    other, _ = QUANTIZE[name](x, block=1024, seed=6)
    nearest, _ = QUANTIZE[name](x, block=1024)
    assert torch.equal(codes.view(torch.uint8), again.view(torch.uint8))
    for different in (other, nearest):
        assert (codes.float() != different.float()).float().mean() > 0.1
    # Over many seeds the mean is x: the errors' own deviation is at most half a step, a step at most an eighth of x.
    mean = sum(rooftile.dequantize(QUANTIZE[name](x, block=1024, seed=s)[0], scale, block=1024) for s in range(64)) / 64
    error = (mean - x).mean(-1)
    assert (error.abs() <= 6 * scale[:, 0] * (1 if name == "i8" else 32 if name == "f8e4m3" else 8192) / 2 / 256).all()


def test_zeros_nan_and_infinity():
    x = torch.zeros(3, 8)
    x[1, 2], x[2, 5] = float("nan"), float("inf")
    codes, scale = rooftile.quantize_f8e4m3(x)
    assert scale[0] == 2.0**-126 and scale[1].isnan() and scale[2].isinf()
    y = rooftile.dequantize(codes, scale)
    assert (y[0] == 0).all() and y[1:].isnan().all()


def test_operators_of_pytorch():
    x = torch.randn(4, 256, requires_grad=True)
    codes, scale = rt.quantize_f8e5m2(x.detach())
    assert codes.dtype == torch.float8_e5m2 and rt.dequantize(codes, scale).shape == x.shape


@pytest.mark.parametrize("name", FORMATS)
def test_jax(name):
    jax = pytest.importorskip("jax")
    rj = pytest.importorskip("rooftile.jax")
    x = jax.numpy.asarray(np.random.default_rng(0).standard_normal((3, 300), np.float32))
    codes, scale = getattr(rj, f"quantize_{name}")(x)
    expected, expected_scale = QUANTIZE[name](torch.from_numpy(np.array(x)))
    np.testing.assert_array_equal(np.asarray(codes).astype(np.float32), expected.float().numpy())
    np.testing.assert_array_equal(np.asarray(scale), expected_scale.numpy())
    y = jax.jit(rj.dequantize)(codes, scale)
    np.testing.assert_array_equal(np.asarray(y), rooftile.dequantize(expected, expected_scale).numpy())


@pytest.mark.parametrize("name", ["f8e4m3", "f8e5m2"])
def test_numpy_has_ml_dtypes_arrays(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.random.default_rng(0).standard_normal((3, 300), np.float32)
    codes, scale = QUANTIZE[name](x)
    assert codes.dtype == np.dtype(getattr(ml_dtypes, str(FORMATS[name][0]).split(".")[1]))
    assert np.abs(rooftile.dequantize(codes, scale) - x).max() <= scale.max() * (16 if name == "f8e4m3" else 4096)


def test_refusals():
    with pytest.raises(ValueError, match="block"):
        rooftile.quantize_i8(np.zeros((2, 3), np.float32), block=0)
    with pytest.raises((TypeError, ValueError), match="x is .* must be one of f32, f16, bf16"):
        rooftile.quantize_i8(np.zeros((2, 3)))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fake_quantize_is_both_ways(name, dtype):
    x = torch.randn(5, 300).to(dtype)
    codes, scale = QUANTIZE[name](x)
    y = torch.empty_like(x)
    rooftile.dequantize(codes, scale, out=y)
    assert torch.equal(rt.fake_quantize(x, format=name), y)


def test_fake_quantize_and_its_gradient_are_those_of_pytorch():
    x = torch.randn(6, 256, requires_grad=True)
    scale = torch.full((6, 1), 0.01)  # beyond 1.27 values are clamped
    dy = torch.randn(6, 256)
    ours = rt.fake_quantize(x, given=scale, block=256, format="i8")
    theirs = torch.fake_quantize_per_channel_affine(x, scale[:, 0], torch.zeros(6, dtype=torch.int32), 0, -127, 127)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    ours, = torch.autograd.grad(ours, x, dy)
    theirs, = torch.autograd.grad(theirs, x, dy)
    assert torch.equal(ours, theirs) and (ours == 0).sum() > 100


@pytest.mark.parametrize("name", FORMATS)
def test_computed_scales_clamp_nothing(name):
    x = torch.randn(6, 300, requires_grad=True)
    dy = torch.randn(6, 300)
    dx, = torch.autograd.grad(rt.fake_quantize(x, format=name), x, dy)
    assert torch.equal(dx, dy)


def test_the_gradient_in_jax():
    jax = pytest.importorskip("jax")
    rj = pytest.importorskip("rooftile.jax")
    x = jax.numpy.asarray(np.random.default_rng(0).standard_normal((4, 300), np.float32))
    dx = jax.grad(lambda x: (rj.fake_quantize(x, format="i8") * 3).sum())(x)
    np.testing.assert_array_equal(np.asarray(dx), 3)
    given = jax.numpy.ones((4, 3), jax.numpy.float32)  # a scale has none, and stands in nobody's way
    quantised = jax.grad(lambda x, given: rj.fake_quantize(x, given=given, format="i8").sum(), argnums=0)(x, given)
    np.testing.assert_array_equal(np.asarray(quantised), (abs(x) <= 127).astype(np.float32))
    with pytest.raises(TypeError, match="there is no gradient of given"):
        jax.grad(lambda given: rj.fake_quantize(x, given=given).sum())(given)
