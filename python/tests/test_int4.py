"""gemm_int4 has the bits of dequantize_int4, then gemm; rooftile.torch's linear_int4 and nn.LinearInt4, also of GPTQ's and AWQ's
checkpoints, beside unpackers that read as the layouts' definitions."""

import numpy as np
import pytest

import rooftile

ml_dtypes = pytest.importorskip("ml_dtypes")

EMULATED = {"device": "emulated"}  # make test builds no f16 there
MACHINES = [({}, np.float32), ({}, np.float16), (EMULATED, np.float32), (EMULATED, ml_dtypes.bfloat16)]
IDS = ["cpu-f32", "cpu-f16", "emulated-f32", "emulated-bf16"]
#: Few rows of x and many; runs of 32 with one scale, and others; rows that end within a byte.
SIZES = [(1, 64, 48, 32), (16, 544, 70, 64), (17, 96, 33, 96), (130, 128, 200, 128), (3, 33, 7, 32), (20, 130, 40, 50), (2, 0, 5, 128), (0, 64, 5, 64)]


def packed_weight(n, k, group=64, zeros=True, dtype=np.float32):
    w = np.random.default_rng(0).standard_normal((n, k)).astype(np.float32) + 0.5
    made = (np.empty((n, (k + 1) // 2), np.uint8), np.empty((n, -(-k // group)), dtype))
    z = np.empty(made[1].shape, np.uint8) if zeros else None
    rooftile.quantize_int4(w, group=group, zeros=z, out=made)
    return (*made, z, w)


@pytest.mark.parametrize("where,dtype", MACHINES, ids=IDS)
@pytest.mark.parametrize("m,k,n,group", SIZES)
@pytest.mark.parametrize("zeros", [False, True])
def test_bits_are_gemms_on_the_dequantised_weight(m, k, n, group, zeros, where, dtype):
    packed, scales, z, _ = packed_weight(n, k, group, zeros, np.float16 if m % 2 else np.float32)
    x = np.random.default_rng(1).standard_normal((m, k)).astype(dtype)
    bias = np.linspace(-1, 1, n).astype(dtype)
    w, y = np.empty((n, k), dtype), np.empty((m, n), dtype)
    rooftile.dequantize_int4(packed, scales, zeros=z, group=group, out=w)
    rooftile.gemm_int4(x, packed, scales, zeros=z, bias=bias, group=group, out=y, **where)
    expected = rooftile.gemm(x, w.T, bias=bias, **where)
    assert np.array_equal(y.view(np.uint8), expected.view(np.uint8))
    if m and k:
        rooftile.gemm_int4(x, packed << 4 | packed >> 4, scales, zeros=z, bias=bias, group=group, out=y, **where)
        assert not np.array_equal(y, expected)


@pytest.mark.parametrize("where,dtype", MACHINES, ids=IDS)
def test_a_row_has_the_same_bits_in_every_batch(where, dtype):
    packed, scales, z, _ = packed_weight(130, 576)
    x = np.random.default_rng(2).standard_normal((150, 576)).astype(dtype)
    whole = rooftile.gemm_int4(x, packed, scales, zeros=z, group=64, **where)
    for count in (1, 2, 9, 16, 17, 64, 100):
        assert np.array_equal(rooftile.gemm_int4(x[37:37 + count], packed, scales, zeros=z, group=64, **where), whole[37:37 + count])


@pytest.mark.parametrize("where", [{}, EMULATED], ids=["cpu", "emulated"])
@pytest.mark.parametrize("zeros", [False, True])
def test_a_weight_is_within_half_a_step(zeros, where):
    w = np.random.default_rng(3).standard_normal((5, 200)).astype(np.float32) * 3
    made = rooftile.quantize_int4(w, group=64, zeros=zeros or None, **where)
    packed, scales, z = (made.packed, made.scales, made.zeros) if zeros else (*made, None)
    back = np.empty_like(w)
    rooftile.dequantize_int4(packed, scales, zeros=z, group=64, out=back, **where)
    steps = np.repeat(scales, 64, axis=1)[:, :200]
    assert (np.abs(back - w) <= steps * 0.5001 * (2 if zeros else 1)).all() and (np.abs(back - w) > steps * 0.4).any()


def test_refusals_say_why():
    packed, scales, z, _ = packed_weight(5, 64, 32)
    x, y = np.ones((3, 64), np.float32), np.empty((3, 5), np.float32)
    for change, words in (({"packed": packed[:, 1:]}, "packed"), ({"scales": scales[:, 1:], "zeros": None}, "scales is 5x1"), ({"zeros": z[1:]}, "zeros"),
                          ({"x": x[:, 2:]}, "packed"), ({"bias": np.ones(4, np.float32)}, "bias|y is 3x5 f32"), ({"group": 33}, "group % 2"),
                          ({"group": 0}, "group"), ({"x": x.astype(np.float64)}, "f64, must be one of f32"),
                          ({"zeros": scales}, "zeros"), ({"packed": packed.view(np.int8)}, "packed"),
                          ({"variant": "few_rows", "device": "emulated"}, "tensor cores take")):
        with pytest.raises((ValueError, TypeError), match=f"gemm_int4: .*({words})"):
            rooftile.gemm_int4(**({"x": x, "packed": packed, "scales": scales, "zeros": z, "group": 32, "out": y} | change))


# ---- PyTorch

torch = pytest.importorskip("torch")


@pytest.fixture
def nn():
    import rooftile.torch

    return rooftile.torch.nn


def modules(nn, dtype=torch.float32, sizes=(96, 40), **words):
    torch.manual_seed(5)
    theirs = torch.nn.Linear(*sizes, dtype=dtype)
    mine = nn.LinearInt4.from_linear(theirs, **{"group": 32} | words)
    with torch.no_grad():
        theirs.weight.copy_(mine.weight(dtype))
    return mine, theirs


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_module_is_linear_on_the_dequantised_weight(nn, dtype, zeros):
    mine, theirs = modules(nn, dtype, zeros=zeros)
    assert mine.scales.dtype == dtype and (mine.zeros is not None) == zeros
    expected = nn.Linear(96, 40, dtype=dtype)
    expected.load_state_dict(theirs.state_dict())
    for shape in ((2, 3, 96), (96,), (1, 96), (70, 96), (2, 2, 2, 96), (0, 96)):
        x = torch.randn(shape, dtype=dtype)
        assert torch.equal(mine(x), expected(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_gradients_are_x_and_bias(nn, dtype):
    mine, theirs = modules(nn, dtype, zeros=True)
    x = torch.randn(4, 5, 96, dtype=dtype, requires_grad=True)
    dy = torch.randn(4, 5, 40, dtype=dtype)
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 5e-2}
    for m, t in zip(torch.autograd.grad(mine(x), (x, mine.bias), dy), torch.autograd.grad(theirs(x), (x, theirs.bias), dy), strict=True):
        assert m.dtype == dtype
        torch.testing.assert_close(m, t, **close)
    assert [name for name, _ in mine.named_parameters()] == ["bias"]


@pytest.mark.parametrize("zeros", [False, True])
def test_state_dict(nn, zeros):
    mine, _ = modules(nn, sizes=(33, 7), zeros=zeros, scale_dtype=torch.float16)
    assert list(mine.state_dict()) == ["bias", "packed", "scales"] + ["zeros"] * zeros
    other = nn.LinearInt4(33, 7, group=32, zeros=zeros, scale_dtype=torch.float16)
    other.load_state_dict(mine.state_dict())
    x = torch.randn(3, 33)
    assert torch.equal(mine(x), other(x)) and repr(mine) == repr(other)
    half = other.bfloat16()
    assert half.scales.dtype == torch.float16 and half.bias.dtype == torch.bfloat16 and half.packed.dtype == torch.uint8
    assert torch.equal(half.weight(), mine.weight())
    assert half(x.bfloat16()).dtype == torch.bfloat16
    assert nn.LinearInt4(33, 7, bias=False).bias is None
    with pytest.raises(ValueError, match="LinearInt4: group is 33, must be an even number from 2 up; 34 is one for each row"):
        nn.LinearInt4(33, 7, group=33)


def test_autocast_refusals_and_activations(nn):
    mine, _ = modules(nn)
    with torch.autocast("cpu", torch.bfloat16):
        assert mine(torch.randn(3, 96)).dtype == torch.bfloat16
    for x, words in ((torch.randn(3, 94), "x is 3x94"), (torch.tensor(1.0), "x is a scalar")):
        with pytest.raises(ValueError, match=f"linear_int4: packed is 40x48 and {words}"):
            rooftile.torch.linear_int4(x, mine.packed, mine.scales, group=32)
        with pytest.raises(ValueError, match=f"LinearInt4: {words}, its last size must be 96"):
            mine(x)
    with pytest.raises(ValueError, match="LinearInt4: x is 3x34, its last size must be 33"):  # as many bytes of codes
        modules(nn, sizes=(33, 7))[0](torch.randn(3, 34))
    with pytest.raises(ValueError, match="scales are 40x2, must be 40x3: one for 32 of x's last size, 96"):
        rooftile.torch.linear_int4(torch.randn(3, 96), mine.packed, mine.scales[:, 1:], group=32)
    with pytest.raises(ValueError, match="LinearInt4.from_linear: the layer's activation is 'relu', must be 'none'"):
        nn.LinearInt4.from_linear(nn.MLP(24, 32, "relu").up_proj)


def test_of_a_weight(nn):
    weight, bias = torch.randn(7, 33), torch.randn(7)
    theirs = torch.nn.Linear(33, 7)
    theirs.weight.data, theirs.bias.data = weight, bias
    theirs.bias.requires_grad_(False)
    mine, same = nn.LinearInt4.from_weight(weight, bias, 32, True, torch.float16), nn.LinearInt4.from_linear(theirs, 32, True, torch.float16)
    x = torch.randn(3, 33)
    assert torch.equal(mine(x), same(x)) and repr(mine) == repr(same) and mine.bias.requires_grad and not same.bias.requires_grad
    assert nn.LinearInt4.from_weight(weight).bias is None
    with pytest.raises(ValueError, match="LinearInt4.from_weight: bias is 6, must be 7"):
        nn.LinearInt4.from_weight(weight, bias[1:])


def test_compiles_without_a_graph_break(nn):
    torch._dynamo.reset()
    mine, _ = modules(nn, zeros=True)
    x = torch.randn(5, 96, requires_grad=True)
    compiled = torch.compile(lambda x: mine(x * 2) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), mine(x * 2) + 1)
    torch.testing.assert_close(torch.autograd.grad(compiled(x).sum(), x), torch.autograd.grad((mine(x * 2) + 1).sum(), x))


# ---- checkpoints


def nibble(word, place):
    return word >> 4 * place & 15


def gptq_weight(qweight, qzeros, scales, g_idx, v2):
    """(outputs, inputs): scale · (code - zero) of each input k's group, one at a time."""
    inputs, outputs = qweight.shape[0] * 8, qweight.shape[1]
    w = torch.empty(outputs, inputs, dtype=scales.dtype)
    for k in range(inputs):
        group = int(g_idx[k])
        for n in range(outputs):
            code = nibble(int(qweight[k // 8, n]), k % 8)
            zero = nibble(int(qzeros[group, n // 8]), n % 8) + (0 if v2 else 1)
            w[n, k] = scales[group, n] * (code - zero)
    return w


def awq_weight(qweight, qzeros, scales, group):
    inputs, outputs = qweight.shape[0], qweight.shape[1] * 8
    w = torch.empty(outputs, inputs, dtype=scales.dtype)
    for k in range(inputs):
        for word in range(outputs // 8):
            for place, column in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
                n = 8 * word + column
                zero = nibble(int(qzeros[k // group, word]), place)
                w[n, k] = scales[k // group, n] * (nibble(int(qweight[k, word]), place) - zero)
    return w


def words(*shape):
    return torch.randint(-2**31, 2**31, shape, dtype=torch.int64).to(torch.int32)


@pytest.mark.parametrize("v2", [False, True])
@pytest.mark.parametrize("order", ["none", "natural", "act_order"])
@pytest.mark.parametrize("group", [32, 48, 96])
def test_a_gptq_layer_has_the_checkpoints_weight(nn, group, order, v2):
    torch.manual_seed(group)
    inputs, outputs = 96, 16
    qweight, qzeros = words(inputs // 8, outputs), words(inputs // group, outputs // 8)
    scales = (torch.rand(inputs // group, outputs) * 0.1 + 0.01).half()
    natural = torch.arange(inputs, dtype=torch.int32) // group
    g_idx = natural[torch.randperm(inputs)] if order == "act_order" else natural
    mine = nn.LinearInt4.from_gptq(qweight, qzeros, scales, None if order == "none" else g_idx, bias=torch.randn(outputs), v2=v2)
    assert torch.equal(mine.weight(torch.float16), gptq_weight(qweight, qzeros, scales, g_idx, v2))
    w = gptq_weight(qweight, qzeros, scales.float(), g_idx, v2)
    assert torch.equal(mine.weight(), w)
    assert (mine.columns is not None) == (order == "act_order" and group < inputs) and mine.group == group
    x = torch.randn(3, 5, inputs, requires_grad=True)
    torch.testing.assert_close(mine(x), torch.nn.functional.linear(x, w, mine.bias), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.autograd.grad(mine(x).sum(), x)[0], w.sum(0).expand(3, 5, inputs), rtol=1e-4, atol=1e-4)
    other = nn.LinearInt4(inputs, outputs, group=group, zeros=True, act_order=mine.columns is not None,
                          scale_dtype=torch.float16)
    other.load_state_dict(mine.state_dict())
    assert torch.equal(other(x), mine(x))


@pytest.mark.parametrize("group", [32, 64, 128])
def test_an_awq_layer_has_the_checkpoints_weight(nn, group):
    torch.manual_seed(group)
    inputs, outputs = 128, 24
    qweight, qzeros = words(inputs, outputs // 8), words(inputs // group, outputs // 8)
    scales = (torch.rand(inputs // group, outputs) * 0.1 + 0.01).half()
    mine = nn.LinearInt4.from_awq(qweight, qzeros, scales)
    w = awq_weight(qweight, qzeros, scales, group)
    assert torch.equal(mine.weight(torch.float16), w) and mine.bias is None
    x = torch.randn(7, inputs).half()
    torch.testing.assert_close(mine(x).float(), x.float() @ w.float().T, rtol=2e-3, atol=2e-2)


def test_layers_have_memory_of_their_own(nn):
    """Whatever strides a checkpoint's tensors have, and of eight inputs, whose words are one row."""
    torch.manual_seed(1)
    for inputs in (8, 96):
        qweight, qzeros, scales = (x.T.contiguous().T for x in (words(inputs // 8, 16), words(1, 2), torch.rand(1, 16)))
        mine = nn.LinearInt4.from_gptq(qweight, qzeros, torch.nn.Parameter(scales))
        w = gptq_weight(qweight, qzeros, scales, torch.zeros(inputs), False)
        for x in (qweight, scales):
            x.zero_()
        assert torch.equal(mine.weight(), w) and not mine.scales.requires_grad


def test_act_order_takes_no_more_columns_than_it_has(nn):
    g_idx = torch.arange(96).flip(0) // 32
    mine = nn.LinearInt4.from_gptq(words(12, 16), words(3, 2), torch.rand(3, 16), g_idx)
    for count in (95, 97, 104):
        with pytest.raises(ValueError, match=f"LinearInt4: x is 2x{count}, its last size must be 96"):
            mine(torch.randn(2, count))


def test_checkpoints_that_do_not_fit_are_refused(nn):
    qweight, qzeros, scales = words(12, 16), words(3, 2), torch.rand(3, 16).half()
    of = nn.LinearInt4.from_gptq
    for call, sentence in (
            (lambda: of(qweight, qzeros[1:], scales), "from_gptq: qweight is 12x16, inputs/8 times outputs of 96 inputs and 16 outputs"),
            (lambda: of(qweight, qzeros, scales, torch.arange(96) // 16), "from_gptq: g_idx has groups of other sizes than 32 each"),
            (lambda: of(qweight, qzeros, scales, torch.arange(95)), "from_gptq: g_idx is 95, must be 96"),
            (lambda: of(qweight, qzeros, scales, group=64), "from_gptq: group is 64, scales have 3 groups of 96 inputs"),
            (lambda: of(qweight, qzeros, scales, torch.arange(96) / 32), "from_gptq: g_idx is of torch.float32, must be whole numbers"),
            (lambda: of(qweight, qzeros, scales.double()), "from_gptq: scales are 3x16 of torch.float64, must be float32, float16 or bfloat16"),
            (lambda: of(qweight, qzeros, scales, bias=scales[:1]), "LinearInt4: bias is 1x16 of torch.float16, must be 16 floats"),
            (lambda: of(qweight.long(), qzeros, scales), "from_gptq: qweight is 12x16 of torch.int64, must be of 2 dimensions and int32"),
            (lambda: nn.LinearInt4.from_awq(qweight, qzeros, scales), "from_awq: qweight is 12x16, inputs times outputs/8 of 12 inputs")):
        with pytest.raises((ValueError, TypeError), match=sentence):
            call()
