"""attention_scaled: attention to codes with scales."""

import pytest

import rooftile

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

FORMATS = [torch.float8_e4m3fn, torch.float8_e5m2]
WHERE = [(None, torch.float32), (None, torch.float16), (None, torch.bfloat16),
         ("emulated", torch.float32), ("emulated", torch.bfloat16)]  # make test builds no f16 there
B, S, T, H, G, D, E = 2, 37, 50, 4, 2, 24, 40


def codes_of(format, seed=0):
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=random).to(format) for shape in ((B, S, H, D), (B, T, G, D), (B, T, G, E))]


def scales_of(seed=0):
    random = torch.Generator().manual_seed(seed)
    return {name: torch.rand(B, G, generator=random) + 0.5 for name in ("q_scale", "k_scale", "v_scale")}


def scaled(q, k, v, dtype, device=None, **more):
    y = torch.empty(*q.shape[:3], v.shape[3], dtype=dtype)
    lse = torch.empty(q.shape[0], q.shape[2], q.shape[1])
    rooftile.attention_scaled(q, k, v, out=y, lse=lse, device=device, **more)
    return y, lse


@pytest.mark.parametrize("device, dtype", WHERE)
@pytest.mark.parametrize("format", FORMATS)
def test_has_the_bits_of_attention_on_numbers(format, device, dtype):
    q, k, v = codes_of(format)
    scale = torch.tensor(0.3) * (torch.tensor(0.7) * torch.tensor(1.9))  # in f32, as the library has it
    ones = {"q_scale": torch.tensor([0.7]).expand(B, G), "k_scale": torch.tensor([1.9]).expand(B, G)}
    y, lse = scaled(q, k, v, dtype, device, causal=True, scale=0.3, **ones)
    same, its = rooftile.attention(*(x.to(dtype) for x in (q, k, v)), causal=True, scale=scale.item(), lse=True, device=device)
    assert torch.equal(y, same) and torch.equal(lse, its)
    plain, _ = scaled(q, k, v, dtype, device, causal=True)
    same = rooftile.attention(*(x.to(dtype) for x in (q, k, v)), causal=True, device=device)
    assert torch.equal(plain, same if torch.is_tensor(same) else same[0])


@pytest.mark.parametrize("device, dtype", WHERE)
@pytest.mark.parametrize("causal", [False, True])
def test_each_head_of_each_batch_has_its_scales(causal, device, dtype):
    q, k, v = codes_of(torch.float8_e4m3fn)
    scales = scales_of()
    y, lse = scaled(q, k, v, dtype, device, causal=causal, **scales)

    def number(x, name):
        return (x.double() * scales[name].double().repeat_interleave(x.shape[2] // G, 1)[:, None, :, None]).repeat_interleave(H // x.shape[2], 2)

    s = torch.einsum("bshd,bthd->bhst", number(q, "q_scale"), number(k, "k_scale")) / D**0.5
    if causal:
        s = s.masked_fill(~torch.ones(S, T, dtype=torch.bool).tril(T - S), -torch.inf)
    exact = torch.einsum("bhst,bthe->bshe", s.softmax(3), number(v, "v_scale"))
    digits = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    torch.testing.assert_close(y.double(), exact, rtol=digits, atol=digits)
    torch.testing.assert_close(lse.double(), s.logsumexp(3), rtol=1e-5, atol=1e-4)


def test_f8_by_name_is_near():
    q, k, v = (torch.nn.functional.pad(x.float(), (0, -x.shape[3] % 16)).to(x.dtype) for x in codes_of(torch.float8_e4m3fn))
    scales = scales_of()
    y, lse = scaled(q, k, v, torch.bfloat16, "emulated", causal=True, variant="wgmma_f8", **scales)
    near, its = scaled(q, k, v, torch.bfloat16, "emulated", causal=True, **scales)
    torch.testing.assert_close(y, near, rtol=0.1, atol=0.15)
    torch.testing.assert_close(lse, its, rtol=1e-3, atol=1e-2)
    assert not torch.equal(y, near)


def test_takes_packed_sequences():
    q, k, v = (x[:1] for x in codes_of(torch.float8_e4m3fn))
    scales = {name: x[:1] for name, x in scales_of().items()}
    begins_q, begins_k = (torch.tensor(x, dtype=torch.int32) for x in ((0, 9, 9, S), (0, 20, 31, T)))
    y, _ = scaled(q, k, v, torch.bfloat16, causal=True, cu_seqlens_q=begins_q, cu_seqlens_k=begins_k, **scales)
    for a, b, c, d in zip(begins_q[:-1], begins_q[1:], begins_k[:-1], begins_k[1:]):
        alone, _ = scaled(q[:, a:b], k[:, c:d], v[:, c:d], torch.bfloat16, causal=True, **scales)
        assert torch.equal(y[:, a:b], alone)


def test_refuses_in_words():
    q, k, v = codes_of(torch.float8_e4m3fn)
    for change, words in (({"q": q.float()}, "q"), ({"k": k.to(torch.float8_e5m2)}, "k"), ({"q_scale": torch.ones(B, H)}, "q_scale"),
                          ({"v": v[:, :, :1]}, "2x50x2xE"), ({"variant": "simt"}, "GPU"), ({"window_left": -2}, "window_left")):
        with pytest.raises((ValueError, TypeError), match=f"attention_scaled: .*{words}"):
            rooftile.attention_scaled(**({"q": q, "k": k, "v": v} | change))
    cut = torch.tensor([0, 5, 3], dtype=torch.int32)
    with pytest.raises(ValueError, match=r"attention_scaled: cu_seqlens_q\[2\] is 3"):
        scaled(q[:1], k[:1], v[:1], torch.float32, cu_seqlens_q=cut, cu_seqlens_k=torch.tensor([0, 5, 9], dtype=torch.int32))


def test_has_no_gradient_and_says_so():
    q, k, v = codes_of(torch.float8_e4m3fn)
    scales = scales_of()
    with pytest.raises(Exception, match="gradient"):
        y = rt.attention_scaled(q, k, v, **(scales | {"v_scale": scales["v_scale"].requires_grad_()}))
        (y if torch.is_tensor(y) else y[0]).sum().backward()
