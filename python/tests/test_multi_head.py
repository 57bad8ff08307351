"""rooftile.torch.nn.MultiHeadAttention: as torch.nn.MultiheadAttention, against its equation, and with a cache."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")

import rooftile.torch

nn, F, ours = torch.nn, torch.nn.functional, rooftile.torch.nn


def shaken(module):
    """Parameters that tell: PyTorch's biases begin as 0."""
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    return module


def pair(**words):
    torch.manual_seed(0)
    mine, theirs = shaken(ours.MultiHeadAttention(32, 4, **words)), nn.MultiheadAttention(32, 4, **words)
    theirs.load_state_dict(mine.state_dict())
    mine.load_state_dict(theirs.state_dict())
    return mine, theirs


def close(a, b, share=1e-5):
    """Sums of many terms, by the largest."""
    torch.testing.assert_close(a, b, rtol=1e-4, atol=share * max(1, b.abs().max().item()))


def same(mine, theirs, inputs, **words):
    """Results, weights, and the gradients of inputs and parameters."""
    made = []
    for module in (mine, theirs):
        leaves = [x.detach().clone().requires_grad_() for x in inputs]
        by_place = [leaves[min(i, len(leaves) - 1)] for i in range(3)]
        y, w = module(*by_place, **words)
        loss = y.sin().sum() + (0 if w is None else (w * w).sum())
        made.append((y, w, *torch.autograd.grad(loss, (*leaves, *module.parameters()))))
    for a, b in zip(*made, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            close(a, b)


TRIANGLE = torch.ones(7, 7, dtype=torch.bool).triu(1)
LATE = torch.arange(7) >= torch.tensor([7, 4])[:, None]  # what of two sequences is padding


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("words", [
    {}, {"average_attn_weights": False}, {"need_weights": False}, {"need_weights": False, "attn_mask": TRIANGLE},
    {"need_weights": False, "attn_mask": TRIANGLE, "is_causal": True}, {"attn_mask": TRIANGLE, "is_causal": True},
    {"need_weights": False, "attn_mask": torch.randn(7, 7)}, {"need_weights": False, "key_padding_mask": LATE},
    {"need_weights": False, "key_padding_mask": LATE, "attn_mask": TRIANGLE},
    {"key_padding_mask": LATE, "attn_mask": TRIANGLE, "is_causal": True},
    {"need_weights": False, "attn_mask": torch.randn(8, 7, 7), "key_padding_mask": LATE.float() * -3}], ids=lambda w: " ".join(w))
def test_is_as_pytorchs(words, batch_first):
    mine, theirs = pair(batch_first=batch_first)
    same(mine, theirs, [torch.randn(*((2, 7) if batch_first else (7, 2)), 32)], **words)


@pytest.mark.parametrize("words", [{"bias": False}, {"kdim": 12, "vdim": 20}, {"kdim": 12, "vdim": 20, "bias": False}], ids=str)
def test_other_keys_and_parameters(words):
    mine, theirs = pair(batch_first=True, **words)
    inputs = [torch.randn(2, 7, 32), torch.randn(2, 5, words.get("kdim", 32)), torch.randn(2, 5, words.get("vdim", 32))]
    for options in ({}, {"need_weights": False}, {"need_weights": False, "attn_mask": torch.randn(7, 5)}):
        same(mine, theirs, inputs, **options)
    if "kdim" not in words:
        same(mine, theirs, inputs[:2], need_weights=False)  # value is key


def test_one_sequence_without_a_batch():
    mine, theirs = pair()
    x = torch.randn(7, 32)
    for words in ({}, {"need_weights": False}, {"need_weights": False, "key_padding_mask": LATE[1]}, {"attn_mask": torch.randn(4, 7, 7)}):
        same(mine, theirs, [x], **words)
    y, w = mine(x)  # self-attention, no weights
    assert w is None
    torch.testing.assert_close(y, theirs(x, x, x)[0], rtol=1e-4, atol=1e-5)


def test_dropout_in_training_and_f64():
    mine, theirs = pair(dropout=0.5)
    x = torch.randn(7, 2, 32)
    torch.manual_seed(3)
    a = mine(x, x, x)
    torch.manual_seed(3)
    b = theirs(x, x, x)
    for p, q in zip(a, b):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)
    torch.manual_seed(3)
    y, _ = mine(x)  # without weights: on the kernels, with a mask of their own
    torch.manual_seed(3)
    seed = rooftile.torch._linear.drawn_seed(None)
    mask = rooftile.torch.dropout(torch.ones(2, 4, 7, 8), seed, p=0.5)[..., :7]
    w = mine.eval()(x, x, x, average_attn_weights=False)[1]
    v = mine.products(x, x, x)[2].unflatten(-1, (4, 8))
    expected = mine.out_proj(torch.einsum("bhst,tbhe->sbhe", w * mask, v).flatten(-2))
    for p, q in zip(*((a, *torch.autograd.grad(a.sin().sum(), tuple(mine.parameters()))) for a in (y, expected))):
        close(p, q)
    assert not torch.allclose(y, mine(x)[0], atol=0.01)
    same(mine.double(), theirs.double().eval(), [x.double()], need_weights=False)


def test_a_row_that_sees_nothing_gives_the_bias():
    mine, _ = pair(batch_first=True)
    y, w = mine(*[torch.randn(2, 7, 32)] * 3, key_padding_mask=torch.ones(2, 7, dtype=torch.bool))
    z, _ = mine(torch.randn(2, 7, 32), key_padding_mask=torch.ones(2, 7, dtype=torch.bool))
    assert not w.any() and torch.equal(y, mine.out_proj.bias.expand(y.shape)) and torch.equal(y, z)


def equation(m, x, positions=None, padding=None):
    """In f64, head by head."""
    d, h, g = m.head_dim, m.num_heads, m.num_key_value_heads
    w = {n: p.double() for n, p in m.state_dict().items()}
    x = x.double()
    q, k, v = (F.linear(x, w["in_proj_weight"], w.get("in_proj_bias"))).split([h * d, g * d, g * d], -1)
    q, k, v = (t.unflatten(-1, (-1, d)).transpose(1, 2) for t in (q, k, v))
    if "q_norm.weight" in w:
        q, k = F.rms_norm(q, (d,), w["q_norm.weight"], 1e-6), F.rms_norm(k, (d,), w["k_norm.weight"], 1e-6)
    if m.turns:
        at = torch.arange(x.shape[1])[None] if positions is None else positions
        angle = at[..., None] * (m.rope_base ** (-torch.arange(0, d, 2).double() / d))
        cos, sin = (torch.cat([f(angle)] * 2, -1)[:, None] for f in (torch.cos, torch.sin))
        q, k = (t * cos + torch.cat([-t[..., d // 2:], t[..., :d // 2]], -1) * sin for t in (q, k))
    k, v = (t.repeat_interleave(h // g, 1) for t in (k, v))
    s = q @ k.mT * (m.scale or d ** -0.5)
    s = s if not m.softcap else m.softcap * torch.tanh(s / m.softcap)
    behind = torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])
    unseen = (behind < 0) & m.causal | (behind.abs() >= (m.window or 10**9))
    s = s.masked_fill(unseen, -torch.inf)
    if padding is not None:
        s = s.masked_fill(padding[:, None, None], -torch.inf)
    if "sinks" in w:
        s = torch.cat([s, w["sinks"][:, None, None].expand(*s.shape[:3], 1)], -1)
    y = s.softmax(-1)[..., :x.shape[1]] @ v
    return F.linear(y.transpose(1, 2).flatten(2), w["out_proj.weight"], w.get("out_proj.bias"))


FORMS = [{}, {"causal": True}, {"num_key_value_heads": 2}, {"num_key_value_heads": 1, "head_dim": 24, "bias": False},
         {"rope_base": 10000.0, "causal": True}, {"qk_norm": True}, {"causal": True, "window": 3}, {"window": 3}, {"softcap": 2.0},
         {"sinks": True}, {"scale": 0.5},
         {"num_key_value_heads": 2, "head_dim": 16, "rope_base": 500.0, "qk_norm": True, "causal": True, "window": 4, "sinks": True,
          "softcap": 3.0, "bias": False}]


@pytest.mark.parametrize("words", FORMS, ids=lambda w: " ".join(w) or "plain")
def test_it_computes_its_equation(words):
    torch.manual_seed(1)
    m = shaken(ours.MultiHeadAttention(32, 4, batch_first=True, **words))
    x = torch.randn(2, 7, 32, requires_grad=True)
    y, _ = m(x)
    torch.testing.assert_close(y, equation(m, x).float(), rtol=1e-4, atol=1e-5)
    z, w = m(x, need_weights=True)  # the same with its scores in memory
    torch.testing.assert_close(z, y, rtol=1e-4, atol=1e-5)
    assert w.shape == (2, 7, 7)
    for a, b in zip(torch.autograd.grad(y.sin().sum(), (x, *m.parameters())), torch.autograd.grad(z.sin().sum(), (x, *m.parameters())),
                    strict=True):
        close(a, b)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert torch.equal(other(x)[0], y)
    half = m.bfloat16()
    torch.testing.assert_close(half(x.bfloat16())[0].float(), equation(half, x.bfloat16()).float(), rtol=0.05, atol=0.05)


def test_frequencies_and_positions():
    from rooftile.frequencies import rope_frequencies

    frequencies = torch.tensor(rope_frequencies(8, 10000.0)[0])
    m = shaken(ours.MultiHeadAttention(32, 4, batch_first=True, causal=True, rope_base=10000.0))
    other = ours.MultiHeadAttention(32, 4, batch_first=True, causal=True, inv_freq=frequencies)
    other.load_state_dict(m.state_dict())
    x, at = torch.randn(2, 7, 32), torch.arange(7) * torch.tensor([[2], [5]])
    torch.testing.assert_close(m(x, positions=at)[0], equation(m, x, at).float(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(other(x)[0], m(x)[0], rtol=1e-5, atol=1e-6)
    assert torch.equal(other(x)[0], copy.deepcopy(other)(x)[0])


CACHED = [{}, {"num_key_value_heads": 2, "rope_base": 10000.0, "qk_norm": True}, {"window": 5, "sinks": True, "softcap": 4.0}]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("words", CACHED, ids=lambda w: " ".join(w) or "plain")
def test_a_decoded_token_has_the_bits_of_a_prefill(words, dtype):
    """Token by token, in pieces, and all at once."""
    torch.manual_seed(2)
    m = shaken(ours.MultiHeadAttention(64, 4, batch_first=True, causal=True, dtype=dtype, **words)).eval()
    x = torch.randn(2, 37, 64).to(dtype)
    with torch.no_grad():
        whole, _ = m(x)
        cache = ours.KVCache(2, 40, words.get("num_key_value_heads", 4), 16, dtype=dtype)
        for pieces in ((1,) * 37, (20, 1, 1, 15), (37,)):
            cache.reset()
            parts = [m(part, cache=cache)[0] for part in x.split(pieces, 1)]
            assert torch.equal(torch.cat(parts, 1), whole)
        assert cache.lengths.tolist() == [37, 37]
        with pytest.raises(ValueError, match="37 tokens and 4 new ones exceed its capacity, 40"):
            m(x[:, :4], cache=cache)


def test_prompts_of_different_lengths():
    """Padding stands before them; each sequence has the bits that it has alone."""
    torch.manual_seed(2)
    m = shaken(ours.MultiHeadAttention(64, 4, batch_first=True, causal=True, rope_base=10000.0)).eval()
    x, more = torch.randn(2, 9, 64), torch.randn(2, 3, 64)
    padding = torch.arange(9) < torch.tensor([0, 4])[:, None]
    with torch.no_grad():
        cache = ours.KVCache(2, 12, 4, 16)
        first, _ = m(x, key_padding_mask=padding, cache=cache)
        then = [m(more[:, i:i + 1], cache=cache)[0] for i in range(3)]
        for i, begin in enumerate((0, 4)):
            alone, _ = m(torch.cat([x[i:i + 1, begin:], more[i:i + 1]], 1))
            assert torch.equal(torch.cat([first[i:i + 1, begin:], *(t[i:i + 1] for t in then)], 1), alone)


def test_refusals_say_why():
    for words, said in (({"num_key_value_heads": 3}, "num_key_value_heads is 3, must divide num_heads, 4"),
                        ({"add_zero_attn": True}, "add_bias_kv and add_zero_attn must be False"), ({"window": 0}, "window is 0, must be"),
                        ({"num_key_value_heads": 2, "kdim": 8}, "kdim or vdim is given beside")):
        with pytest.raises(ValueError, match=said):
            ours.MultiHeadAttention(32, 4, **words)
    with pytest.raises(ValueError, match="embed_dim is 30, must be a multiple of num_heads, 4"):
        ours.MultiHeadAttention(30, 4)
    m, x, cache = ours.MultiHeadAttention(32, 4, batch_first=True, causal=True, rope_base=100.0, window=2), torch.randn(2, 7, 32), ours.KVCache(2, 9, 4, 8)
    for args, words, said in (((x[..., :8],), {}, "query is 2x7x8, must have 2 or 3 dimensions as query has, the last of 32"),
                              ((x, x[:, :3]), {}, "query has 7 tokens and key 3; with RoPE"),
                              ((x,), {"attn_mask": torch.zeros(3, 3)}, "masks are 3x3 together, must broadcast to 2x4x7x7"),
                              ((x,), {"attn_mask": torch.zeros(7, 7), "cache": cache}, "and attn_mask is given; call it without"),
                              ((x,), {"need_weights": True, "cache": cache}, "and need_weights is True")):
        with pytest.raises(ValueError, match=said):
            m(*args, **words)
    with pytest.raises(ValueError, match="the module is not causal"):
        ours.MultiHeadAttention(32, 4)(x, cache=cache)
    with pytest.raises(RuntimeError, match="kv_cache_append: writes its operand and has no gradient; call it under torch.no_grad()"):
        m(x, cache=cache)


@pytest.mark.parametrize("words", [{}, FORMS[-1]], ids=["plain", "all"])
def test_it_compiles_without_a_graph_break(words):
    m = shaken(ours.MultiHeadAttention(32, 4, batch_first=True, **words))
    x = torch.randn(2, 7, 32, requires_grad=True)
    compiled = torch.compile(m, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x)[0], m(x)[0])
    compiled(x)[0].sum().backward()


def test_an_encoder_layer_of_pytorchs_uses_it_as_it_is():
    """Its own short cut knows PyTorch's parameters only."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True).eval()
    layer.self_attn = shaken(ours.MultiHeadAttention(32, 4, batch_first=True, num_key_value_heads=2)).eval()
    x = torch.randn(2, 7, 32)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), layer.train()(x), rtol=1e-4, atol=1e-5)


def kernels_of(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return {e.key for e in profile.key_averages() if e.key.startswith("rooftile::")}


def test_patch_takes_pytorchs_over():
    mine, theirs = pair(batch_first=True, dropout=0.1)
    x = torch.randn(2, 7, 32)
    expected = copy.deepcopy(theirs).eval()(x, x, x, need_weights=False)[0]
    done = rooftile.torch.patch(theirs)
    assert ("", "MultiheadAttention") in done.replaced and isinstance(theirs, ours.MultiHeadAttention)
    torch.testing.assert_close(theirs.eval()(x, x, x, need_weights=False)[0], expected, rtol=1e-4, atol=1e-5)
    assert "rooftile::attention" in kernels_of(lambda: theirs(x, x, x, need_weights=False))
    for call in (lambda: theirs(x, x, x), lambda: theirs.train()(x, x, x, need_weights=False),
                 lambda: theirs.eval().double()(*[x.double()] * 3, need_weights=False)):
        assert not kernels_of(call)
    for other in (nn.MultiheadAttention(32, 4, add_zero_attn=True), nn.MultiheadAttention(32, 4, add_bias_kv=True)):
        rooftile.torch.patch(other)
        y = torch.randn(7, 2, 32)
        assert not kernels_of(lambda: other(y, y, y, need_weights=False))
    assert type(rooftile.torch.unpatch(theirs)) is nn.MultiheadAttention
