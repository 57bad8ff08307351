"""gemm_nf4 has the bits of dequantize_nf4, then gemm; rooftile.torch's linear_nf4 and nn.LinearNF4."""

import numpy as np
import pytest

import rooftile

ml_dtypes = pytest.importorskip("ml_dtypes")

EMULATED = {"device": "emulated"}  # make test builds no f16 there
MACHINES = [({}, np.float32), ({}, np.float16), (EMULATED, np.float32), (EMULATED, ml_dtypes.bfloat16)]
IDS = ["cpu-f32", "cpu-f16", "emulated-f32", "emulated-bf16"]
#: Few rows of x and many; rows of the weight that begin within a byte or a block, and those that do not.
SIZES = [(1, 64, 48), (16, 544, 70), (17, 96, 33), (130, 128, 200), (3, 33, 7), (20, 130, 40), (2, 0, 5), (0, 64, 5)]


def packed_weight(n, k, block=64, seed=0):
    w = np.random.default_rng(seed).standard_normal((n, k)).astype(np.float32)
    return rooftile.quantize_nf4(w, block=block)


@pytest.mark.parametrize("where,dtype", MACHINES, ids=IDS)
@pytest.mark.parametrize("m,k,n", SIZES)
def test_bits_are_gemms_on_the_dequantised_weight(m, k, n, where, dtype):
    block = 32 if n % 2 else 64
    packed, absmax = packed_weight(n, k, block)
    x = np.random.default_rng(1).standard_normal((m, k)).astype(dtype)
    bias = np.linspace(-1, 1, n).astype(dtype)
    w, y = np.empty((n, k), dtype), np.empty((m, n), dtype)
    rooftile.dequantize_nf4(packed, absmax, block=block, out=w)
    rooftile.gemm_nf4(x, packed, absmax, bias=bias, block=block, out=y, **where)
    expected = rooftile.gemm(x, w.T, bias=bias, **where)
    assert np.array_equal(y.view(np.uint8), expected.view(np.uint8))
    wrong = (packed << 4) | (packed >> 4)
    if m and k:
        rooftile.gemm_nf4(x, wrong, absmax, bias=bias, block=block, out=y, **where)
        assert not np.array_equal(y, expected)


@pytest.mark.parametrize("where,dtype", MACHINES, ids=IDS)
def test_a_row_has_the_same_bits_in_every_batch(where, dtype):
    k, n = 576, 130
    packed, absmax = packed_weight(n, k)
    x = np.random.default_rng(2).standard_normal((150, k)).astype(dtype)

    def product(rows):
        y = np.empty((len(rows), n), dtype)
        rooftile.gemm_nf4(rows, packed, absmax, out=y, **where)
        return y

    whole = product(x)
    for count in (1, 2, 9, 16, 17, 64, 100):
        assert np.array_equal(product(x[37:37 + count]), whole[37:37 + count])


def test_refusals_say_why():
    packed, absmax = packed_weight(5, 64)
    x, y = np.ones((3, 64), np.float32), np.empty((3, 5), np.float32)
    for change, words in (({"packed": packed[1:]}, "packed"), ({"absmax": absmax[1:]}, "absmax"), ({"x": x[:, 1:]}, "packed|absmax"),
                          ({"bias": np.ones(4, np.float32)}, "y is 3x5 f32, must be 3x4"), ({"block": 48}, "block"),
                          ({"x": x.astype(np.float64)}, "f64, must be one of f32"), ({"variant": "few_rows", "device": "emulated"}, "tensor cores take")):
        with pytest.raises((ValueError, TypeError), match=f"gemm_nf4: .*({words})"):
            rooftile.gemm_nf4(**({"x": x, "packed": packed, "absmax": absmax, "out": y} | change))


# ---- PyTorch


class TestTorch:
    @pytest.fixture(autouse=True)
    def libraries(self):
        self.torch = pytest.importorskip("torch")
        import rooftile.torch

        self.nn = rooftile.torch.nn

    def modules(self, dtype, double=False, sizes=(96, 40), bias=True):
        self.torch.manual_seed(5)
        theirs = self.torch.nn.Linear(*sizes, bias=bias, dtype=dtype)
        mine = self.nn.LinearNF4.from_linear(theirs, double=double)
        theirs.weight.data.copy_(mine.weight(dtype))
        return mine, theirs

    @pytest.mark.parametrize("double", [False, True])
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
    def test_module_is_linear_on_the_dequantised_weight(self, dtype, double):
        torch, dtype = self.torch, getattr(self.torch, dtype)
        mine, theirs = self.modules(dtype, double)
        expected = self.nn.Linear(96, 40, dtype=dtype)
        expected.load_state_dict(theirs.state_dict())
        x = torch.randn(2, 3, 96, dtype=dtype)
        assert torch.equal(mine(x), expected(x))
        for shape in ((96,), (1, 96), (70, 96), (2, 2, 2, 96), (0, 96)):
            x = torch.randn(shape, dtype=dtype)
            assert mine(x).shape == theirs(x).shape
            torch.testing.assert_close(mine(x), theirs(x), rtol=2e-2 if dtype != torch.float32 else 1e-5, atol=2e-2)

    @pytest.mark.parametrize("bias", [False, True])
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
    def test_of_a_weight_alone(self, dtype, bias):
        """In any memory: the same as of a Linear that holds both."""
        torch, dtype, make = self.torch, getattr(self.torch, dtype), self.nn.LinearNF4
        linear = torch.nn.Linear(96, 40, bias, dtype=dtype)
        expected = make.from_linear(linear, double=True)
        weight = linear.weight.detach().T.contiguous().T
        mine = make.from_weight(weight, linear.bias if linear.bias is None else linear.bias.detach(), double=True)
        assert mine.state_dict().keys() == expected.state_dict().keys() and repr(mine) == repr(expected)
        assert all(torch.equal(a, b) for a, b in zip(mine.state_dict().values(), expected.state_dict().values(), strict=True))
        x = torch.randn(3, 96, dtype=dtype)
        assert torch.equal(mine(x), expected(x))
        if bias:
            assert mine.bias.requires_grad and mine.bias.data_ptr() != linear.bias.data_ptr() and mine.bias.dtype == dtype
            linear.bias.requires_grad_(False)
            assert not make.from_linear(linear).bias.requires_grad

    def test_of_a_weight_that_is_none(self):
        torch, make = self.torch, self.nn.LinearNF4
        for weight, bias, words in ((torch.randn(5), None, "weight is 5 of torch.float32, must have 2 dimensions, outputs, then"),
                                    (torch.ones(3, 5, dtype=torch.int8), None, "weight is 3x5 of torch.int8"),
                                    (torch.randn(3, 5), torch.randn(5), "bias is 5, must be 3, one for each row of weight")):
            with pytest.raises(ValueError, match=f"LinearNF4.from_weight: {words}"):
                make.from_weight(weight, bias)

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_gradients_are_x_and_bias(self, dtype):
        torch, dtype = self.torch, getattr(self.torch, dtype)
        mine, theirs = self.modules(dtype)
        x = torch.randn(4, 5, 96, dtype=dtype, requires_grad=True)
        dy = torch.randn(4, 5, 40, dtype=dtype)
        close = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 5e-2}
        for m, t in zip(torch.autograd.grad(mine(x), (x, mine.bias), dy), torch.autograd.grad(theirs(x), (x, theirs.bias), dy), strict=True):
            assert m.dtype == dtype
            torch.testing.assert_close(m, t, **close)
        assert [name for name, _ in mine.named_parameters()] == ["bias"]

    @pytest.mark.parametrize("double", [False, True])
    def test_state_dict(self, double):
        torch = self.torch
        mine, _ = self.modules(torch.float32, double, (33, 7))
        other = self.nn.LinearNF4(33, 7, double=double)
        other.load_state_dict(mine.state_dict())
        x = torch.randn(3, 33)
        assert torch.equal(mine(x), other(x)) and repr(mine) == repr(other)
        half = other.bfloat16()
        assert half.absmax.dtype == torch.float32 and half.bias.dtype == torch.bfloat16
        assert torch.equal(half.weight(), mine.weight())
        assert half(x.bfloat16()).dtype == torch.bfloat16
        assert other.bias.shape == (7,) and self.nn.LinearNF4(33, 7, bias=False).bias is None

    @pytest.mark.parametrize("activation", ["swiglu", "geglu_tanh"])
    @pytest.mark.parametrize("quantised", [["gate_proj"], ["gate_proj", "up_proj", "down_proj"]])
    def test_layers_of_a_gated_mlp(self, activation, quantised):
        torch = self.torch
        mlp = self.nn.MLP(24, 32, activation)
        for name in quantised:
            setattr(mlp, name, self.nn.LinearNF4.from_linear(getattr(mlp, name)))
        x = torch.randn(5, 24)
        y = mlp(x.clone().requires_grad_())  # the gated op by itself
        with torch.no_grad():
            torch.testing.assert_close(mlp(x), y, rtol=1e-5, atol=1e-6)

    def test_an_activation_is_not_left_out(self):
        up = self.nn.MLP(24, 32, "relu").up_proj
        for quantised in (self.nn.LinearNF4, self.nn.Linear8bit):
            with pytest.raises(ValueError, match=f"{quantised.__name__}.from_linear: the layer's activation is 'relu', must be 'none'"):
                quantised.from_linear(up)

    def test_autocast_and_refusals(self):
        torch = self.torch
        mine, _ = self.modules(torch.float32)
        with torch.autocast("cpu", torch.bfloat16):
            assert mine(torch.randn(3, 96)).dtype == torch.bfloat16
        with pytest.raises(ValueError, match="LinearNF4: x is 3x95, its last size must be 96"):
            mine(torch.randn(3, 95))
        with pytest.raises(ValueError, match="LinearNF4: x is a scalar, its last size must be 96"):
            mine(torch.tensor(1.0))

    def test_compiles_without_a_graph_break(self):
        torch = self.torch
        torch._dynamo.reset()
        mine, _ = self.modules(torch.float32)
        x = torch.randn(5, 96, requires_grad=True)
        compiled = torch.compile(lambda x: mine(x * 2) + 1, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), mine(x * 2) + 1)
        torch.testing.assert_close(torch.autograd.grad(compiled(x).sum(), x), torch.autograd.grad((mine(x * 2) + 1).sum(), x))
