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
