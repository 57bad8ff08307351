"""rooftile.torch.scaled_dot_product_attention against PyTorch's, and attention's gradients against those of its equation."""

import pytest

torch = pytest.importorskip("torch")

import rooftile.torch

theirs = torch.nn.functional.scaled_dot_product_attention
ours = rooftile.torch.scaled_dot_product_attention


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def both(*shapes, **options):
    """Results and gradients of both."""
    torch.manual_seed(0)
    inputs = [torch.randn(s, requires_grad=True) for s in shapes]
    for f in (ours, theirs):
        y = f(*inputs, **options)
        yield y, *torch.autograd.grad(y.sin().sum(), inputs)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}])
@pytest.mark.parametrize("lengths", [(9, 9), (5, 70), (70, 5)])
def test_is_as_pytorchs(lengths, options):
    s, t = lengths
    q, k, v = (2, 4, s, 16), (2, 4, t, 16), (2, 4, t, 24)
    for a, b in zip(*both(q, k, v, **options)):
        close(a, b)


def sizes(q, k, v=None):
    """(q, k, v) of outer sizes and lengths, 16 channels."""
    return (*q, 16), (*k, 16), (*(v or k), 16)


@pytest.mark.parametrize("shapes, options", [
    (sizes((2, 6, 9), (2, 2, 11)), {"enable_gqa": True}), (sizes((2, 6, 9), (2, 2, 11), (2, 3, 11)), {"enable_gqa": True}),
    (sizes((6, 9), (2, 11)), {"enable_gqa": True, "is_causal": True}), (sizes((3, 9), (3, 11)), {}), (sizes((9,), (11,)), {}),
    (sizes((9,), (11,)), {"is_causal": True}), (sizes((2, 3, 4, 9), (2, 3, 4, 11)), {}),
    (sizes((2, 4, 9), (1, 4, 11)), {}), (sizes((1, 4, 9), (2, 4, 11)), {}),  # PyTorch's products repeat sizes of 1
    (sizes((2, 4, 9), (2, 1, 11)), {}), (sizes((2, 1, 9), (2, 4, 11), (2, 1, 11)), {}), (sizes((2, 4, 9), (2, 4, 11), (2, 1, 11)), {}),
    (sizes((0, 4, 9), (0, 4, 11)), {}), (sizes((2, 0, 9), (2, 0, 11)), {}), (sizes((2, 4, 0), (2, 4, 11)), {}),
    (sizes((2, 4, 9), (2, 4, 0)), {}), (sizes((2, 4, 9), (2, 4, 0)), {"is_causal": True}),
    (sizes((2, 4, 9), (2, 4, 11)), {"scale": -0.3}), (sizes((2, 4, 9), (2, 4, 11)), {"scale": 0.0})], ids=str)
def test_shared_heads_and_other_ranks(shapes, options):
    for a, b in zip(*both(*shapes, **options), strict=True):
        assert a.shape == b.shape
        close(a, b)


@pytest.mark.parametrize("views", [
    lambda q, k, v: (q.reshape(2, 9, 4, 16).transpose(1, 2), k.reshape(2, 11, 4, 16).transpose(1, 2), v.reshape(2, 4, 16, 11).mT),
    lambda q, k, v: (q[:1].expand(2, -1, -1, -1), k[..., ::2].repeat(1, 1, 1, 2), v.flip(2)),
    lambda q, k, v: (q[:, ::2, 1::2], k[:, ::2], v[:, :2, :, :12])])
def test_any_strides(views):
    torch.manual_seed(0)
    inputs = [torch.randn(2, 4, n, 16, requires_grad=True) for n in (9, 11, 11)]
    made = []
    for f in (ours, theirs):
        y = f(*views(*inputs), is_causal=True)
        made.append((y, *torch.autograd.grad(y.sin().sum(), inputs)))
    for a, b in zip(*made, strict=True):
        close(a, b)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bits_and_autocast(dtype):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, n, 16) for n in (9, 11, 11))
    mask = torch.randn(9, 11)
    torch.testing.assert_close(ours(*(x.to(dtype) for x in (q, k, v)), attn_mask=mask).float(), theirs(q, k, v, mask), rtol=0.03, atol=0.03)
    with torch.autocast("cpu", dtype):
        y = ours(q, k, v, mask)
    assert y.dtype == dtype
    torch.testing.assert_close(y.float(), theirs(q, k, v, mask), rtol=0.03, atol=0.03)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": torch.rand(9, 7) > 0.4}, {"enable_gqa": True}], ids=str)
@pytest.mark.parametrize("dynamic", [None, True])
def test_it_compiles_without_a_graph_break(options, dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(lambda *x: ours(*x, **options), fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for s, t in ((9, 7),) if "attn_mask" in options else ((9, 7), (5, 8), (8, 8)):
        inputs = [torch.randn(2, h, n, 16, requires_grad=True)
                  for h, n in zip((4, 2, 2) if "enable_gqa" in options else (4, 4, 4), (s, t, t))]
        y, e = compiled(*inputs), theirs(*inputs, **options)
        close(y, e)
        for a, b in zip(torch.autograd.grad(y.sin().sum(), inputs), torch.autograd.grad(e.sin().sum(), inputs)):
            close(a, b)


def test_a_second_gradient_is_refused():
    q = torch.randn(1, 2, 5, 8, requires_grad=True)
    (g,) = torch.autograd.grad(ours(q, q, q).sin().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="attention_backward has no gradient"):
        g.sum().backward()


SEEN = torch.rand(9, 11, generator=torch.Generator().manual_seed(4)) > 0.4


@pytest.mark.parametrize("mask", [
    SEEN, SEEN.expand(2, 4, 9, 11), SEEN[:1], SEEN[:, :1], torch.zeros(9, 11, dtype=torch.bool), torch.randn(2, 1, 9, 11),
    SEEN & (torch.arange(9)[:, None] > 2), torch.randn(4, 9, 11), torch.randn(9, 11), torch.randn(11, 9).T, torch.randn(2, 1, 1, 11),
    torch.full((9, 11), -torch.inf), torch.full((9, 11), torch.finfo(torch.float32).min)], ids=lambda m: f"{m.dtype}, {tuple(m.shape)}")
def test_masks(mask):
    """Rows that see nothing, too: PyTorch gives 0."""
    for a, b in zip(*both((2, 4, 9, 8), (2, 4, 11, 8), (2, 4, 11, 8), attn_mask=mask)):
        close(a, b)


def test_refusals_say_why():
    q = torch.ones(1, 2, 3, 8)
    for options, words in (({"dropout_p": 1.5}, "dropout_p is 1.5, must be a number from 0 to 1"),
                           ({"attn_mask": torch.ones(3, 3, requires_grad=True)}, "attn_mask needs a gradient"),
                           ({"attn_mask": torch.ones(3, 3), "is_causal": True}, "both given"),
                           ({"attn_mask": torch.ones(2, 3)}, "attn_mask is 2x3, must broadcast to 1x2x3x3")):
        with pytest.raises((NotImplementedError, ValueError), match=words):
            ours(q, q, q, **options)
    four = torch.ones(1, 4, 3, 8)
    with pytest.raises(ValueError, match="query has 4 heads, key 2 and value 2; enable_gqa=True"):
        ours(four, q, q)
    with pytest.raises(ValueError, match="query has 2 heads, key 4 and value 4; must be a multiple of both"):
        ours(q, four, four, enable_gqa=True)


def test_a_bias_has_no_gradient():
    q = torch.randn(1, 3, 2, 8, requires_grad=True)
    y = rooftile.torch.attention(q, q, q, bias=torch.zeros(1, 2, 3, 3, requires_grad=True))
    with pytest.raises(RuntimeError, match="attention: the library computes no gradient of bias"):
        y.sum().backward()


@pytest.mark.parametrize("causal", [False, True])
def test_a_sink_is_one_more_score(causal):
    """As gpt-oss has it: a column beside the scores, dropped after the softmax; queries that see no key, too."""
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 9, 4, 16), torch.randn(2, 5, 2, 16), torch.randn(2, 5, 2, 8)
    sink = torch.randn(4)
    inputs = [x.requires_grad_() for x in (q, k, v, sink)]
    scores = torch.einsum("bshd,bthd->bhst", q, k.repeat_interleave(2, 2)) / 4
    if causal:
        scores = scores.masked_fill(~torch.ones(9, 5, dtype=torch.bool).tril(5 - 9), -torch.inf)
    with_sink = torch.cat([scores, sink[None, :, None, None].expand(2, 4, 9, 1)], 3)
    expected = torch.einsum("bhst,bthe->bshe", with_sink.softmax(3)[..., :-1], v.repeat_interleave(2, 2))
    y, lse = rooftile.torch.attention(q, k, v, sink=sink, causal=causal, lse=True)
    close(y, expected)
    close(lse, with_sink.logsumexp(3))
    for a, b in zip(torch.autograd.grad(y.sin().sum(), inputs), torch.autograd.grad(expected.sin().sum(), inputs)):
        close(a, b)
    none = torch.full((4,), -torch.inf)
    assert torch.equal(rooftile.torch.attention(q, k, v, sink=none, causal=causal), rooftile.torch.attention(q, k, v, causal=causal))


def packed_of(lengths, heads, d, dtype):
    return torch.randn(1, sum(lengths), heads, d).to(dtype)


def bounds(lengths):
    return torch.tensor([0, *lengths]).cumsum(0).int()


LENGTHS = [0, 1, 63, 64, 65, 5, 34, 0], [3, 64, 65, 0, 63, 130, 1, 7]


@pytest.mark.parametrize("device, dtype", [(None, torch.float32), (None, torch.bfloat16), ("emulated", torch.float32),
                                           ("emulated", torch.bfloat16)])
def test_a_sequence_among_others_has_its_bits_alone(device, dtype):
    torch.manual_seed(2)
    q, k, v = (packed_of(lengths, heads, 64, dtype) for lengths, heads in zip((LENGTHS[0], LENGTHS[1], LENGTHS[1]), (4, 2, 2)))
    cu = dict(zip(("cu_seqlens_q", "cu_seqlens_k"), map(bounds, LENGTHS)))
    y, lse = rooftile.attention(q, k, v, causal=True, lse=True, device=device, **cu)
    dy = torch.randn(q.shape).to(dtype)
    gradients = rooftile.attention_backward(q, k, v, y, dy, lse, causal=True, device=device, **cu)
    at = [0, 0]
    for lengths in zip(*LENGTHS):
        rows, keys = (slice(a, a + n) for a, n in zip(at, lengths))
        at = [a + n for a, n in zip(at, lengths)]
        q1, k1, v1, y1, dy1, lse1 = (x.contiguous() for x in (q[:, rows], k[:, keys], v[:, keys], y[:, rows], dy[:, rows], lse[..., rows]))
        if lengths[0]:
            for a, b in zip(rooftile.attention(q1, k1, v1, causal=True, lse=True, device=device), (y1, lse1)):
                assert torch.equal(a, b)
        alone = rooftile.attention_backward(q1, k1, v1, y1, dy1, lse1, causal=True, device=device)
        for a, b in zip(alone, (gradients[0][:, rows], gradients[1][:, keys], gradients[2][:, keys])):
            assert torch.equal(a, b)


def test_gradients_of_sequences_are_those_of_pytorch():
    torch.manual_seed(3)
    q, k, v = (packed_of(lengths, 2, 16, torch.float32).requires_grad_() for lengths in (LENGTHS[0], LENGTHS[1], LENGTHS[1]))
    y = rooftile.torch.attention(q, k, v, cu_seqlens_q=bounds(LENGTHS[0]), cu_seqlens_k=bounds(LENGTHS[1]))
    parts = [theirs(*(x.transpose(1, 2) for x in (a, b, c))).transpose(1, 2) if b.shape[1] else torch.zeros_like(a)
             for a, b, c in zip(q.split(LENGTHS[0], 1), k.split(LENGTHS[1], 1), v.split(LENGTHS[1], 1))]
    expected = torch.cat(parts, 1)
    close(y, expected)
    for a, b in zip(torch.autograd.grad(y.sin().sum(), (q, k, v)), torch.autograd.grad(expected.sin().sum(), (q, k, v))):
        close(a, b)


def test_what_no_sequence_has_and_wrong_lengths():
    q = torch.randn(1, 9, 2, 8)
    cu = torch.tensor([2, 5, 7], dtype=torch.int32)
    y, lse = rooftile.attention(q, q, q, cu_seqlens_q=cu, cu_seqlens_k=cu, lse=True)
    outside = [0, 1, 7, 8]
    assert (y[:, outside] == 0).all() and (lse[..., outside] == -torch.inf).all() and (y[:, 2:7] != 0).all()
    far = torch.tensor([-5, 4, 2**31 - 1], dtype=torch.int32)  # clamped where the host does not read it
    near = torch.tensor([0, 4, 9], dtype=torch.int32)
    assert torch.equal(*(rooftile.attention(q, q, q, cu_seqlens_q=its, cu_seqlens_k=its, device="emulated") for its in (far, near)))
    falling = torch.tensor([0, 7, 2**30, 3, -9, 9], dtype=torch.int32)
    rooftile.attention(q, q, q, cu_seqlens_q=falling, cu_seqlens_k=falling, device="emulated")  # of no meaning, but of its memory
    for words, options in (("cu_seqlens_q is given without cu_seqlens_k; give both, or none", {"cu_seqlens_q": cu}),
                           ("bias and cu_seqlens_q are both given",
                            {"cu_seqlens_q": cu, "cu_seqlens_k": cu, "bias": torch.zeros(1, 2, 9, 9)}),
                           (r"cu_seqlens_q\[2\] is 1073741824, must be a number from 7 to 9",
                            {"cu_seqlens_q": falling, "cu_seqlens_k": falling}),
                           ("cu_seqlens_q has no element; N sequences have N . 1", {"cu_seqlens_q": cu[:0], "cu_seqlens_k": cu[:0]})):
        with pytest.raises(ValueError, match=words):
            rooftile.attention(q, q, q, **options)
    two = torch.randn(2, 9, 2, 8)
    with pytest.raises(ValueError, match="q has 2 batches; put the sequences one after the other into one"):
        rooftile.attention(two, two, two, cu_seqlens_q=cu, cu_seqlens_k=cu)


def scores_of(q, k, causal):
    s = torch.einsum("bshd,bthd->bhst", q, k.repeat_interleave(q.shape[2] // k.shape[2], 2)) / q.shape[3] ** 0.5
    return s.masked_fill(~torch.ones(s.shape[2:], dtype=torch.bool).tril(s.shape[3] - s.shape[2]), -torch.inf) if causal else s


def dropped(w, v, seed, p, offset=0):
    """Weights by values, with the mask that the function dropout has for them: rows are rounded up to fours."""
    ones = torch.ones(*w.shape[:3], -(-w.shape[3] // 4) * 4)
    mask = rooftile.dropout(ones, seed, offset=torch.tensor([offset]), p=p)[..., :w.shape[3]]
    return torch.einsum("bhst,bthe->bshe", w * mask, v.repeat_interleave(w.shape[1] // v.shape[2], 2))


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("options", [{"dropout": 0.3}, {"dropout": 0.5, "causal": True}, {"dropout": 1.0}, {"dropout": 0.1, "offset": -3}], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropouts_mask_is_that_of_the_function_dropout(options, device, dtype):
    torch.manual_seed(4)
    q, k, v, dy = (torch.randn(2, n, h, 24).to(dtype).float().requires_grad_() for n, h in ((70, 4), (67, 2), (67, 2), (70, 4)))
    words = options | {"seed": torch.tensor([2**40 + 7])} | ({"offset": torch.tensor([options["offset"]])} if "offset" in options else {})
    causal = options.get("causal", False)
    s = scores_of(q, k, causal)
    seen = s.isfinite().any(3, keepdim=True)
    expected = dropped(torch.where(seen, s.masked_fill(~seen, 0).softmax(3), 0), v, words["seed"], options["dropout"], options.get("offset", 0))
    gradients = torch.autograd.grad(expected, (q, k, v), dy)
    given = [x.detach().to(dtype) for x in (q, k, v, dy)]
    y, lse = rooftile.attention(*given[:3], lse=True, device=device, **words)
    close(lse, s.logsumexp(3))  # of all weights
    share = {torch.float32: 1e-5, torch.bfloat16: 2e-2}[dtype]
    got = (y, *rooftile.attention_backward(*given[:3], y, given[3], lse, device=device, **words))
    for a, b in zip(got, (expected, *gradients)):
        torch.testing.assert_close(a.float(), b.detach(), rtol=share, atol=share * max(1, b.abs().max().item()))


def test_gradients_of_dropout_are_finite_differences():
    torch.manual_seed(5)
    x = torch.randn(1, 5, 2, 4, requires_grad=True)
    f = lambda q, k, v: rooftile.torch.attention(q, k, v, seed=3, dropout=0.4, causal=True)
    assert torch.autograd.gradcheck(f, (x, x.detach().clone().requires_grad_(), torch.randn_like(x, requires_grad=True)), eps=1e-2, atol=2e-3,
                                    rtol=1e-2, check_batched_grad=False)


def test_dropout_of_sequences_has_the_rows_of_the_call():
    torch.manual_seed(6)
    q, k, v = (packed_of(lengths, 2, 16, torch.float32) for lengths in (LENGTHS[0], LENGTHS[1], LENGTHS[1]))
    y = rooftile.attention(q, k, v, seed=9, dropout=0.4, cu_seqlens_q=bounds(LENGTHS[0]), cu_seqlens_k=bounds(LENGTHS[1]))
    w = torch.zeros(1, 2, q.shape[1], k.shape[1])  # a key counts from its sequence's first
    values, row, key = torch.zeros(q.shape[1], k.shape[1], 2, 16), 0, 0
    for s, t in zip(*LENGTHS):
        w[:, :, row:row + s, :t] = scores_of(q[:, row:row + s], k[:, key:key + t], False).softmax(3)
        values[row:row + s, :t] = v[0, key:key + t]
        row, key = row + s, key + t
    mask = rooftile.dropout(torch.ones(1, 2, q.shape[1], -(-k.shape[1] // 4) * 4), 9, p=0.4)[..., :k.shape[1]]
    close(y, torch.einsum("bhst,sthe->bshe", w * mask, values))


def test_pytorchs_dropout_p_draws_from_its_generator():
    torch.manual_seed(7)
    q = torch.randn(4, 8, 100, 16, requires_grad=True)
    v = torch.ones_like(q)
    first, second = ours(q, q, v, dropout_p=0.25), ours(q, q, v, dropout_p=0.25)
    torch.manual_seed(7)
    torch.randn(4, 8, 100, 16)
    assert torch.equal(ours(q, q, v, dropout_p=0.25), first) and not torch.equal(first, second)
    assert abs(first.mean().item() - 1) < 0.02 and first.std().item() > 0.01
    assert not ours(q, q, v, dropout_p=1.0).any()
    assert torch.equal(ours(q, q, v, dropout_p=0.0), ours(q, q, v))
    again = torch.utils.checkpoint.checkpoint(lambda q: ours(q, q, q, dropout_p=0.5), q, use_reentrant=False)
    (dq,) = torch.autograd.grad(again.sum(), q)
    assert dq.isfinite().all()
    torch._dynamo.reset()
    step = torch.compile(lambda q: ours(q, q, q, dropout_p=0.5), fullgraph=True, backend="aot_eager")
    a, b = step(q), step(q)
    assert not torch.equal(a, b) and torch.autograd.grad(a.sum(), q)[0].isfinite().all()


def test_dropout_without_a_seed_is_refused():
    q = torch.randn(1, 3, 2, 8)
    with pytest.raises(ValueError, match="attention: dropout is 0.5 and there is no seed; give one, of i64 or i32"):
        rooftile.attention(q, q, q, dropout=0.5)
    with pytest.raises(ValueError, match="attention: dropout is 1.5, must be a number from 0 to 1"):
        rooftile.attention(q, q, q, dropout=1.5, seed=1)
    assert torch.equal(rooftile.attention(q, q, q, seed=1), rooftile.attention(q, q, q))


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("lengths", [(9, 70), (70, 9)])
def test_alibi_is_a_bias_by_distance(lengths, device):
    """Aligned to the lower right corner, as FlashAttention's alibi_slopes."""
    torch.manual_seed(8)
    q, k, v = (torch.randn(2, n, h, 16, requires_grad=True) for n, h in zip((lengths[0], lengths[1], lengths[1]), (4, 2, 2)))
    slopes = torch.tensor([2.0**-n for n in (1, 3, 5, 7)])
    own = torch.arange(lengths[0])[:, None] + lengths[1] - lengths[0]
    bias = -slopes[:, None, None] * (own - torch.arange(lengths[1])).abs()
    expected = torch.einsum("bhst,bthe->bshe", (scores_of(q, k, False) + bias).softmax(3), v.repeat_interleave(2, 2))
    y, lse = rooftile.attention(*(x.detach() for x in (q, k, v)), alibi=slopes, lse=True, device=device)
    close(y, expected)
    dy = torch.randn(y.shape)
    gradients = rooftile.attention_backward(*(x.detach() for x in (q, k, v)), y, dy, lse, alibi=slopes, device=device)
    for a, b in zip(gradients, torch.autograd.grad(expected, (q, k, v), dy)):
        close(a, b)
    with pytest.raises(RuntimeError, match="attention: the library computes no gradient of alibi"):
        rooftile.torch.attention(q, k, v, alibi=slopes.requires_grad_()).sum().backward()


def on_devices(*dtypes):
    """Of the emulated device's the first alone: make test builds it without f16."""
    gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
    return pytest.mark.parametrize("device, dtype", [(None, t) for t in dtypes] + [("emulated", dtypes[0])] + [
        pytest.param("cuda", t, marks=gpu) for t in dtypes])


def random_tensors(d, dtype, device):
    """q, k, v and dy: 70 queries of 4 heads, 130 keys of 2."""
    torch.manual_seed(5)
    where = "cuda" if device == "cuda" else "cpu"
    return [torch.randn(2, n, heads, d).to(where, dtype) for n, heads in ((70, 4), (130, 2), (130, 2), (70, 4))]


def output_and_gradients(tensors, causal, device):
    q, k, v, dy = tensors
    options = {"causal": causal} | ({"device": device} if device == "emulated" else {})
    y, lse = rooftile.attention(q, k, v, lse=True, **options)
    return y, *rooftile.attention_backward(q, k, v, y, dy, lse, **options)


def by_the_equation(tensors, causal):
    """Every step rounded to the tensors' dtype, as PyTorch runs it."""
    q, k, v = (x.detach().clone().requires_grad_() for x in tensors[:3])
    repeated = [x.repeat_interleave(2, 2).transpose(1, 2) for x in (k, v)]
    scores = q.transpose(1, 2) @ repeated[0].mT / q.shape[3]**0.5
    if causal:
        seen = torch.ones(scores.shape[2:], dtype=torch.bool, device=q.device).tril(scores.shape[3] - scores.shape[2])
        scores = scores.masked_fill(~seen, -torch.inf)
    y = (scores.softmax(3) @ repeated[1]).transpose(1, 2)
    return y.detach(), *torch.autograd.grad(y, (q, k, v), tensors[3])


@on_devices(torch.bfloat16, torch.float16)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [40, 64, 128])
def test_errors_are_at_most_twice_those_of_the_framework(d, dtype, causal, device):
    """FlashAttention's own rule, for the output and each gradient, against f64."""
    tensors = random_tensors(d, dtype, device)
    right = by_the_equation([x.double() for x in tensors], causal)
    for a, b, exact in zip(output_and_gradients(tensors, causal, device), by_the_equation(tensors, causal), right, strict=True):
        assert (a - exact).abs().max() <= 2 * (b - exact).abs().max() + 1e-5


@on_devices(torch.bfloat16, torch.float32)
def test_a_backward_has_the_same_bits_ten_times(dtype, device):
    tensors = random_tensors(64, dtype, device)
    first = output_and_gradients(tensors, True, device)
    for threads in range(1, 10):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            again = output_and_gradients(tensors, True, device)
        finally:
            torch.set_num_threads(before)
        assert all(torch.equal(a, b) for a, b in zip(again, first, strict=True))
