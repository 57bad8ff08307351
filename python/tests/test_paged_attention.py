"""rooftile.kv_cache_append and rooftile.paged_attention: a loop of decoding steps against a prefill, and PyTorch's attention."""

import pytest

import rooftile

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

TOKENS, HEADS, KEYS, D = 37, 4, 2, 24


def tokens_of(dtype, seed=0):
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(1, TOKENS, heads, D, generator=random).to(dtype) for heads in (HEADS, KEYS, KEYS)]


def caches_of(dtype, size):
    """Of unwritten places NaN, and the pages of one sequence, in disorder."""
    pages = (TOKENS + size - 1) // size + 1
    table = torch.randperm(pages, generator=torch.Generator().manual_seed(1))[None, : pages - 1].int().contiguous()
    return [torch.full((pages, size, KEYS, D), float("nan")).to(dtype) for _ in range(2)], table


def slot_of(table, token, size):
    return (table[0, token // size] * size + token % size).reshape(1)


@pytest.mark.parametrize("size", [1, 16, TOKENS])
@pytest.mark.parametrize("device, dtype", [(None, torch.float32), (None, torch.float16), (None, torch.bfloat16),
                                           ("emulated", torch.float32), ("emulated", torch.bfloat16)])  # make test builds no f16 there
def test_decoding_gives_the_bits_of_a_prefill(size, device, dtype):
    q, k, v = tokens_of(dtype)
    prefill, lse = rooftile.attention(q, k, v, causal=True, lse=True, device=device)
    (k_cache, v_cache), table = caches_of(dtype, size)
    for token in range(TOKENS):
        now = slice(token, token + 1)
        rooftile.kv_cache_append(k[0, now], v[0, now], slot_of(table, token, size), k_cache, v_cache, device=device)
        length = torch.tensor([token + 1], dtype=torch.int32)
        y, its = rooftile.paged_attention(q[:, now].contiguous(), k_cache, v_cache, table, length, lse=True, device=device)
        assert torch.equal(y[:, 0], prefill[:, token]) and torch.equal(its[..., 0], lse[..., token])


@pytest.mark.parametrize("device, dtype", [(None, torch.bfloat16), ("emulated", torch.float32), ("emulated", torch.bfloat16)])
def test_decoding_over_chunks_gives_the_bits_of_a_prefill(device, dtype):
    """A GPU's keys are cut into chunks of 512, each of which may be another block's: then the call takes a workspace."""
    lengths = torch.tensor([511, 512, 513, 1023, 1024, 1025, 1100], dtype=torch.int32)
    tokens, size, random = 1100, 16, torch.Generator().manual_seed(2)
    q, k, v = (torch.randn(1, tokens, heads, 16, generator=random).to(dtype) for heads in (2, 1, 1))
    prefill, lse = rooftile.attention(q, k, v, causal=True, lse=True, device=device)
    pages = -(-tokens // size)
    k_cache, v_cache = (torch.nn.functional.pad(x[0], (0, 0, 0, 0, 0, pages * size - tokens)).reshape(pages, size, 1, 16) for x in (k, v))
    table = torch.arange(pages, dtype=torch.int32).repeat(len(lengths), 1)
    last = lengths.long() - 1
    y, its = rooftile.paged_attention(q[0, last][:, None].contiguous(), k_cache, v_cache, table, lengths, lse=True, device=device)
    assert torch.equal(y[:, 0], prefill[0, last]) and torch.equal(its[..., 0], lse[0][:, last].T)


@pytest.mark.parametrize("codes, quantize", [(torch.float8_e4m3fn, "quantize_f8e4m3"), (torch.float8_e5m2, "quantize_f8e5m2")])
@pytest.mark.parametrize("device, dtype", [(None, torch.float32), (None, torch.float16), (None, torch.bfloat16),
                                           ("emulated", torch.float32), ("emulated", torch.bfloat16)])
def test_codes_give_the_bits_of_their_numbers(codes, quantize, device, dtype):
    q, k, v = tokens_of(dtype)
    (k_cache, v_cache), table = caches_of(codes, 8)
    slots = torch.cat([slot_of(table, token, 8) for token in range(TOKENS)])
    scales = {"k_scale": torch.tensor([0.3, 0.001]), "v_scale": torch.tensor([7.0, 0.02])}
    rooftile.kv_cache_append(k[0], v[0], slots, k_cache, v_cache, **scales, device=device)
    for x, cache, scale in ((k, k_cache, scales["k_scale"]), (v, v_cache, scales["v_scale"])):
        theirs, _ = getattr(rooftile, quantize)(x[0], given=scale[:, None].expand(TOKENS, KEYS, 1), block=D)
        assert torch.equal(cache.flatten(0, 1).view(torch.uint8)[slots], theirs.view(torch.uint8))
    lengths = torch.tensor([TOKENS], dtype=torch.int32)

    def decode(*caches, **scales):
        return rooftile.paged_attention(q[:, -5:].contiguous(), *caches, table, lengths, lse=True, **scales, device=device)

    y, lse = decode(k_cache, v_cache, **scales)
    same, its = decode(k_cache.to(dtype), v_cache.to(dtype), **scales)
    assert torch.equal(y, same) and torch.equal(lse, its)
    exact, _ = decode(k_cache.float().mul(scales["k_scale"][:, None]).to(dtype), v_cache.float().mul(scales["v_scale"][:, None]).to(dtype))
    torch.testing.assert_close(y, exact, rtol=3e-2 if dtype == torch.bfloat16 else 4e-3, atol=3e-1 if dtype == torch.bfloat16 else 3e-2)
    plain, _ = decode(k_cache, v_cache)
    assert not torch.equal(y, plain)


def test_is_as_pytorchs_and_speculates():
    q, k, v = tokens_of(torch.float32)
    (k_cache, v_cache), table = caches_of(torch.float32, 8)
    slots = torch.cat([slot_of(table, token, 8) for token in range(TOKENS)])
    rt.kv_cache_append(k[0], v[0], slots, k_cache, v_cache)
    last = q[:, -5:].contiguous()
    y = rt.paged_attention(last, k_cache, v_cache, table, torch.tensor([TOKENS], dtype=torch.int32))
    mask = torch.ones(5, TOKENS, dtype=torch.bool).tril(TOKENS - 5)
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in (last, k, v)), attn_mask=mask, enable_gqa=True).transpose(1, 2)
    torch.testing.assert_close(y, theirs, rtol=1e-5, atol=1e-5)


def test_what_no_cache_has():
    q, k, v = tokens_of(torch.float32)
    (k_cache, v_cache), table = caches_of(torch.float32, 8)
    before = k_cache.clone()
    rooftile.kv_cache_append(k[0, :3], v[0, :3], torch.tensor([-1, k_cache.shape[0] * 8, -9]), k_cache, v_cache)
    assert torch.equal(k_cache.nan_to_num(7), before.nan_to_num(7))
    k_cache.zero_(), v_cache.fill_(1)
    one = q[:, :1].contiguous()
    def decode(length, pages):
        return rooftile.paged_attention(one, k_cache, v_cache, pages, torch.tensor([length], dtype=torch.int32))

    assert torch.equal(decode(9, table), torch.ones_like(one))
    assert not decode(0, table).any()
    assert decode(-1, table).isnan().all() and decode(8 * table.shape[1] + 1, table).isnan().all()
    nowhere = table.clone()
    nowhere[0, 1] = k_cache.shape[0]
    assert decode(9, nowhere).isnan().all() and torch.equal(decode(8, nowhere), torch.ones_like(one))


def test_has_no_gradient_and_says_so():
    q, k, v = tokens_of(torch.float32)
    (k_cache, v_cache), table = caches_of(torch.float32, 8)
    k_cache.zero_(), v_cache.zero_()
    with pytest.raises(Exception, match="gradient"):
        y = rt.paged_attention(q[:, :1].clone().requires_grad_(), k_cache, v_cache, table, torch.tensor([3], dtype=torch.int32))
        y.sum().backward()
