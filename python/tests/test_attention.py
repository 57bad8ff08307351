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


def test_shared_heads_and_other_ranks():
    for shapes, options in ((((2, 6, 9, 8), (2, 2, 11, 8), (2, 2, 11, 8)), {"enable_gqa": True}),
                            (((3, 9, 8), (3, 11, 8), (3, 11, 8)), {}),
                            (((2, 3, 4, 9, 8), (2, 3, 4, 11, 8), (2, 3, 4, 11, 8)), {})):
        for a, b in zip(*both(*shapes, **options)):
            close(a, b)


def test_masks():
    seen = torch.rand(9, 11) > 0.4
    seen[:, 0] = True
    for mask in (seen, torch.randn(2, 1, 9, 11), torch.randn(9, 11)):
        for a, b in zip(*both((2, 4, 9, 8), (2, 4, 11, 8), (2, 4, 11, 8), attn_mask=mask)):
            close(a, b)
    nothing = ours(torch.ones(1, 1, 2, 8), torch.ones(1, 1, 3, 8), torch.ones(1, 1, 3, 8), torch.zeros(2, 3, dtype=torch.bool))
    assert nothing.tolist() == torch.zeros(1, 1, 2, 8).tolist()


def test_refusals_say_why():
    q = torch.ones(1, 2, 3, 8)
    for options, words in (({"dropout_p": 0.1}, "dropout_p is 0.1, must be 0"),
                           ({"attn_mask": torch.ones(3, 3, requires_grad=True)}, "attn_mask needs a gradient"),
                           ({"attn_mask": torch.ones(3, 3), "is_causal": True}, "both given")):
        with pytest.raises((NotImplementedError, ValueError), match=words):
            ours(q, q, q, **options)
    with pytest.raises(ValueError, match="query has 2 heads and key 1; enable_gqa=True"):
        ours(q, q[:, :1], q[:, :1])


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
