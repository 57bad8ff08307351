"""gemm_scaled takes what quantize gives; rooftile.torch's linear_8bit and nn.Linear8bit."""

import numpy as np
import pytest

import rooftile

ml_dtypes = pytest.importorskip("ml_dtypes")

DEVICES = [{}, {"device": "emulated"}]
#: One row and many, both sides of a block, a tail of each kind, nothing.
SIZES = [(1, 256, 48), (17, 96, 33), (130, 128, 200), (3, 131, 7), (20, 300, 40), (2, 0, 5), (0, 64, 5)]
QUANTIZE = {"f8e4m3": rooftile.quantize_f8e4m3, "f8e5m2": rooftile.quantize_f8e5m2, "i8": rooftile.quantize_i8}


def quantised(rows, columns, format, block=128, seed=0):
    x = np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)
    return QUANTIZE[format](x, block=block)


def expected_of(a, w, scale_a, scale_w, block, block_n=1):
    """Of dequantised operands, in f64."""
    def dequantised(codes, scale, rows):
        each = np.repeat(np.repeat(scale.astype(np.float64), block, 1), rows, 0)
        return codes.astype(np.float64) * each[:codes.shape[0], :codes.shape[1]]
    return dequantised(a, scale_a, 1) @ dequantised(w, scale_w, block_n).T


@pytest.mark.parametrize("where", DEVICES, ids=["cpu", "emulated"])
@pytest.mark.parametrize("formats", [("f8e4m3", "f8e4m3"), ("f8e5m2", "f8e4m3"), ("i8", "i8")], ids=str)
@pytest.mark.parametrize("m,k,n", SIZES)
def test_takes_what_quantize_gives(m, k, n, formats, where):
    block = 64 if n % 2 else 128
    a, scale_a = quantised(m, k, formats[0], block, 1)
    w, scale_w = quantised(n, k, formats[1], block, 2)
    bias = np.linspace(-1, 1, n).astype(np.float32)
    y = np.empty((m, n), np.float32)
    rooftile.gemm_scaled(a, w.T, scale_a, scale_w.T, bias=bias, block=block, out=y, **where)
    np.testing.assert_allclose(y, expected_of(a, w, scale_a, scale_w, block) + bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("where", DEVICES, ids=["cpu", "emulated"])
def test_scales_of_each_granularity(where):
    m, k, n = 40, 300, 140
    a, w = quantised(m, k, "f8e4m3", k)[0], quantised(n, k, "f8e4m3", k, 1)[0]
    random = np.random.default_rng(3)
    for block, block_n, shape_a, shape_b in ((k, n, (1, 1), (1, 1)), (k, 1, (m, 1), (1, n)), (128, 128, (m, 3), (3, 2)), (4096, 4096, (1, 1), (1, 1))):
        scale_a, scale_b = (random.uniform(0.5, 2, s).astype(np.float32) for s in (shape_a, shape_b))
        whole_a = np.broadcast_to(scale_a, (m, scale_a.shape[1]))  # one for a tensor: strides of 0
        y = np.empty((m, n), np.float32)
        rooftile.gemm_scaled(a, w.T, whole_a, scale_b, block=block, block_n=block_n, out=y, **where)
        np.testing.assert_allclose(y, expected_of(a, w, whole_a, scale_b.T, block, block_n), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("where", DEVICES, ids=["cpu", "emulated"])
@pytest.mark.parametrize("format", ["f8e4m3", "i8"])
def test_a_row_has_the_same_bits_in_every_batch(format, where):
    k, n = 320, 130
    a, scale_a = quantised(150, k, format)
    w, scale_w = quantised(n, k, format, seed=1)

    def product(rows):
        y = np.empty((rows.stop - rows.start, n), np.float32)
        rooftile.gemm_scaled(a[rows], w.T, scale_a[rows], scale_w.T, out=y, **where)
        return y

    whole = product(slice(0, 150))
    for count in (1, 2, 9, 16, 17, 64, 100):
        assert np.array_equal(product(slice(37, 37 + count)), whole[37:37 + count])


@pytest.mark.parametrize("format", ["f8e4m3", "f8e5m2", "i8"])
@pytest.mark.parametrize("m,k,n,block", [(1, 256, 48, 128), (130, 320, 200, 128), (17, 130, 33, 34), (130, 512, 256, 512), (70, 300, 90, 100), (16, 304, 80, 48)])
def test_variants_have_the_same_bits(m, k, n, block, format):
    a, scale_a = quantised(m, k, format, block)
    w, scale_w = quantised(n, k, format, block, seed=1)
    for b, scale_b in ((w.T, scale_w.T), (w.T.copy(), scale_w.T.copy())):
        variants = ["mma"] + ["simt"] * (format == "i8") + ["few_rows"] * (m <= 16 and b.base is not None)
        y = np.empty((len(variants), m, n), np.float32)
        for variant, out in zip(variants, y):
            rooftile.gemm_scaled(a, b, scale_a, scale_b, block=block, out=out, variant=variant, device="emulated")
        assert all(np.array_equal(y[0], other) for other in y[1:])


def test_refusals_say_why():
    a, scale_a = quantised(3, 256, "f8e4m3")
    w, scale_w = quantised(5, 256, "f8e4m3")
    good = {"a": a, "b": w.T, "scale_a": scale_a, "scale_b": scale_w.T, "out": np.empty((3, 5), np.float32)}
    for change, words in (({"b": w.T[1:]}, "b is 255x5"), ({"scale_a": scale_a[:, 1:]}, "scale_b is 2x5.*must be 1xC"), ({"scale_b": scale_w}, "scale_b is 5x2"),
                          ({"block": 0}, "block"), ({"block": 256}, "scale_a is 3x2"), ({"block_n": 2}, "scale_b is 2x5"),
                          ({"bias": np.ones(4, np.float32)}, "4"), ({"b": quantised(5, 256, "i8")[0].T}, "a is f8e4m3, b is i8: both are i8, or neither"),
                          ({"a": np.ones((3, 256), np.float32)}, "f32, must be one of f8e4m3"),
                          ({"b": w.T.copy(), "variant": "few_rows", "device": "emulated"}, "contiguous along K"),
                          ({"a": np.repeat(a, 6, 0), "scale_a": np.repeat(scale_a, 6, 0), "out": np.empty((18, 5), np.float32), "variant": "few_rows",
                            "device": "emulated"}, "up to 16 rows of a, M is 18; mma takes all")):
        with pytest.raises((ValueError, TypeError), match=f"gemm_scaled: .*({words})"):
            rooftile.gemm_scaled(**(good | change))


# ---- PyTorch


class TestTorch:
    @pytest.fixture(autouse=True)
    def libraries(self):
        self.torch = pytest.importorskip("torch")
        import rooftile.torch

        self.rt = rooftile.torch
        self.nn = rooftile.torch.nn

    def modules(self, dtype, format="f8e4m3", sizes=(300, 40), block=128):
        """A Linear8bit, and a Linear of the weight that it has."""
        self.torch.manual_seed(5)
        theirs = self.torch.nn.Linear(*sizes, dtype=dtype)
        mine = self.nn.Linear8bit.from_linear(theirs, format, block)
        theirs.weight.data.copy_(mine.weight(dtype))
        return mine, theirs

    @pytest.mark.parametrize("format", ["f8e4m3", "f8e5m2", "i8"])
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
    def test_module_is_linear_on_what_it_quantises(self, dtype, format):
        torch, dtype = self.torch, getattr(self.torch, dtype)
        mine, theirs = self.modules(dtype, format)
        for shape in ((300,), (1, 300), (70, 300), (2, 3, 300), (0, 300)):
            x = torch.randn(shape, dtype=dtype)
            rounded = self.rt.fake_quantize(x, format="i8" if format == "i8" else "f8e4m3")
            assert mine(x).shape == theirs(x).shape and mine(x).dtype == dtype
            close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
            torch.testing.assert_close(mine(x), theirs(rounded), **close)

    @pytest.mark.parametrize("rows", [False, True], ids=["tensor", "rows"])
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_is_pytorchs_scaled_mm(self, dtype, rows):
        torch, dtype = self.torch, getattr(self.torch, dtype)
        a, w = (torch.randn(n, 256).to(torch.float8_e4m3fn) for n in (32, 64))
        scale_a, scale_b = (torch.rand(32, 1) + 0.5, torch.rand(1, 64) + 0.5) if rows else (torch.rand(()) + 0.5, torch.rand(()) + 0.5)
        try:
            expected = torch._scaled_mm(a, w.t(), scale_a, scale_b, out_dtype=dtype)
        except (RuntimeError, NotImplementedError, AttributeError) as error:
            pytest.skip(f"torch._scaled_mm on CPUs: {error}")
        y = torch.empty(32, 64, dtype=dtype)
        rooftile.gemm_scaled(a, w.t(), scale_a.expand(32, 1), scale_b.expand(1, 64), block=256, out=y)
        close = {"rtol": 1e-5, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}
        torch.testing.assert_close(y, expected, **close)

    def test_squares_of_128_share_a_scale(self):
        torch = self.torch
        codes, scale = torch.randn(200, 300).to(torch.float8_e4m3fn), torch.rand(2, 3) + 0.5
        x = torch.randn(5, 300, requires_grad=True)
        weight = codes.float() * scale.repeat_interleave(128, 0)[:200].repeat_interleave(128, 1)[:, :300]
        y = self.rt.linear_8bit(x, codes, scale, block_n=128)
        torch.testing.assert_close(y, self.rt.fake_quantize(x) @ weight.T, rtol=1e-4, atol=1e-3)
        dy = torch.randn(5, 200)
        torch.testing.assert_close(torch.autograd.grad(y, x, dy)[0], dy @ weight, rtol=1e-4, atol=1e-3)

    @pytest.mark.parametrize("bias", [False, True])
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
    def test_of_a_weight_alone(self, dtype, bias):
        """In any memory: the same as of a Linear that holds both."""
        torch, dtype, make = self.torch, getattr(self.torch, dtype), self.nn.Linear8bit
        linear = torch.nn.Linear(300, 40, bias, dtype=dtype)
        expected = make.from_linear(linear, format="i8", block=32)
        weight = linear.weight.detach().T.contiguous().T
        mine = make.from_weight(weight, linear.bias if linear.bias is None else linear.bias.detach(), format="i8", block=32)
        assert mine.state_dict().keys() == expected.state_dict().keys() and repr(mine) == repr(expected)
        assert all(torch.equal(a, b) for a, b in zip(mine.state_dict().values(), expected.state_dict().values(), strict=True))
        x = torch.randn(3, 300, dtype=dtype)
        assert torch.equal(mine(x), expected(x))
        if bias:
            assert mine.bias.requires_grad and mine.bias.data_ptr() != linear.bias.data_ptr() and mine.bias.dtype == dtype
            linear.bias.requires_grad_(False)
            assert not make.from_linear(linear).bias.requires_grad

    def test_of_a_weight_that_is_none(self):
        torch, make = self.torch, self.nn.Linear8bit
        for weight, bias, words in ((torch.randn(5), None, "weight is 5 of torch.float32, must have 2 dimensions, outputs, then"),
                                    (torch.ones(3, 5, dtype=torch.int8), None, "weight is 3x5 of torch.int8"),
                                    (torch.randn(3, 5), torch.randn(5), "bias is 5, must be 3, one for each row of weight")):
            with pytest.raises(ValueError, match=f"Linear8bit.from_weight: {words}"):
                make.from_weight(weight, bias)

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_gradients_are_x_and_bias(self, dtype):
        torch, dtype = self.torch, getattr(self.torch, dtype)
        mine, theirs = self.modules(dtype)
        x = torch.randn(4, 5, 300, dtype=dtype, requires_grad=True)
        dy = torch.randn(4, 5, 40, dtype=dtype)
        close = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 5e-2}
        for m, t in zip(torch.autograd.grad(mine(x), (x, mine.bias), dy), torch.autograd.grad(theirs(x), (x, theirs.bias), dy), strict=True):
            assert m.dtype == dtype
            torch.testing.assert_close(m, t, **close)
        assert [name for name, _ in mine.named_parameters()] == ["bias"]

    @pytest.mark.parametrize("format", ["f8e4m3", "i8"])
    def test_state_dict(self, format):
        torch = self.torch
        mine, _ = self.modules(torch.float32, format, (33, 7), 16)
        other = self.nn.Linear8bit(33, 7, format=format, block=16)
        other.load_state_dict(mine.state_dict())
        x = torch.randn(3, 33)
        assert torch.equal(mine(x), other(x)) and repr(mine) == repr(other)
        half = other.bfloat16()
        assert half.scale.dtype == torch.float32 and half.codes.dtype == mine.codes.dtype and half.bias.dtype == torch.bfloat16
        assert torch.equal(half.weight(), mine.weight())
        assert half(x.bfloat16()).dtype == torch.bfloat16
        assert self.nn.Linear8bit(33, 7, bias=False).bias is None

    def test_autocast_and_refusals(self):
        torch = self.torch
        mine, _ = self.modules(torch.float32)
        with torch.autocast("cpu", torch.bfloat16):
            assert mine(torch.randn(3, 300)).dtype == torch.bfloat16
        for call, words in ((lambda: mine(torch.randn(3, 299)), "x is 3x299, its last size must be codes' second, 300"),
                            (lambda: mine(torch.tensor(1.0)), "x is a scalar"),
                            (lambda: self.rt.linear_8bit(torch.randn(3, 300), mine.codes, mine.scale[1:]), "scale is 39x3, must be 40x3"),
                            (lambda: self.rt.linear_8bit(torch.randn(3, 300), mine.codes.float(), mine.scale), "codes are 40x300 of torch.float32"),
                            (lambda: self.rt.linear_8bit(torch.randn(3, 300), mine.codes, mine.scale, block=0), "block is 0")):
            with pytest.raises((ValueError, TypeError), match=f"linear_8bit: {words}"):
                call()
        with pytest.raises(ValueError, match="format is 'f4', must be one of: f8e4m3 f8e5m2 i8"):
            self.nn.Linear8bit(3, 3, format="f4")

    def test_compiles_without_a_graph_break(self):
        torch = self.torch
        torch._dynamo.reset()
        mine, _ = self.modules(torch.float32)
        x = torch.randn(5, 300, requires_grad=True)
        compiled = torch.compile(lambda x: mine(x * 2) + 1, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), mine(x * 2) + 1)
        torch.testing.assert_close(torch.autograd.grad(compiled(x).sum(), x), torch.autograd.grad((mine(x * 2) + 1).sum(), x))
