"""Rotary position embedding in four languages: rooftile/ops/languages.py says how these functions are found, run and judged.

Each gives the rotated queries and the rotated keys.
"""

import math
import struct

from languages import np, takes, tl, torch, trap, triton


# [rope_plain]
def rope_plain(q, k, positions=None, inv_freq=None, interleaved=0, rotary=0, offset=0, base=10000.0, attention_factor=1.0):
    """Token by token: the cosine and the sine of each pair once, then every head."""
    size = len((q[0][0] or k[0][0])[0]) if q and q[0] and (q[0][0] or k[0][0]) else 0
    pairs = len(inv_freq) if inv_freq is not None else int(rotary or size) // 2
    f = inv_freq or [struct.unpack("f", struct.pack("f", base ** (-i / pairs)))[0] for i in range(pairs)]

    def turned(x, b, s, head):
        p, y = (positions[b][s] if positions is not None else s) + offset, list(head)
        for i in range(pairs):
            first, second = (2 * i, 2 * i + 1) if interleaved else (i, i + pairs)
            c, sine = attention_factor * math.cos(p * f[i]), attention_factor * math.sin(p * f[i])
            y[first] = head[first] * c - head[second] * sine
            y[second] = head[second] * c + head[first] * sine
        return y

    return tuple([[[turned(x, b, s, head) for head in heads] for s, heads in enumerate(tokens)] for b, tokens in enumerate(x)]
                 for x in (q, k))
# [/rope_plain]


# [rope_numpy]
def rope_numpy(q, k, positions=None, inv_freq=None, interleaved=0, rotary=0, offset=0, base=10000.0, attention_factor=1.0):
    pairs = len(inv_freq) if inv_freq is not None else int(rotary or q.shape[3]) // 2
    f = inv_freq if inv_freq is not None else (base ** (-np.arange(pairs) / pairs)).astype(np.float32)
    p = np.arange(q.shape[1])[None] if positions is None else positions
    angle = (p.astype(np.float64) + offset)[:, :, None, None] * f.astype(np.float64)
    c, s = attention_factor * np.cos(angle), attention_factor * np.sin(angle)
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleaved else (slice(pairs), slice(pairs, 2 * pairs))

    def turned(x):
        y, a, b = x.copy(), x[..., first].astype(np.float64), x[..., second].astype(np.float64)
        with np.errstate(all="ignore"):
            y[..., first], y[..., second] = a * c - b * s, b * c + a * s
        return y

    return turned(q), turned(k)
# [/rope_numpy]


def frequencies(q, inv_freq, rotary, base):
    """As transformers has them: 1 / base^(2i/d), rounded to f32."""
    if inv_freq is not None:
        return inv_freq
    d = int(rotary or q.shape[3]) // 2 * 2
    return (base ** -(torch.arange(0, d, 2, dtype=torch.float64, device=q.device) / max(d, 1))).float()


def places(q, positions, offset):
    p = torch.arange(q.shape[1], device=q.device)[None] if positions is None else positions
    return p.double() + offset


# [rope_torch]
def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def turn_halves(x, angles, factor):
    """x·cos + rotate_half(x)·sin: transformers' apply_rotary_pos_emb, in f32, of the first dimensions."""
    turning, rest = x.float().split((2 * angles.shape[-1], x.shape[-1] - 2 * angles.shape[-1]), -1)
    cos, sin = ((factor * f).float().repeat(1, 1, 2)[:, :, None] for f in (angles.cos(), angles.sin()))
    return torch.cat((turning * cos + rotate_half(turning) * sin, rest), -1).to(x.dtype)


@takes(only={"interleaved": 0})
def rope_torch(q, k, positions=None, inv_freq=None, interleaved=0, rotary=0, offset=0, base=10000.0, attention_factor=1.0):
    """Hugging Face's, but for its angles, which are f32 there."""
    f = frequencies(q, inv_freq, rotary, base)
    angles = places(q, positions, offset)[..., None] * f
    return tuple(turn_halves(x, angles, attention_factor) for x in (q, k))
# [/rope_torch]


# [rope_torch_float_angles]
@takes(only={"interleaved": 0})
@trap("the angle is a product of f32: at position 10^6 it is off by 0.03, and the turn with it")
def rope_torch_float_angles(q, k, positions=None, inv_freq=None, interleaved=0, rotary=0, offset=0, base=10000.0,
                            attention_factor=1.0):
    f = frequencies(q, inv_freq, rotary, base)
    angles = places(q, positions, offset).float()[..., None] * f
    return tuple(turn_halves(x, angles, attention_factor) for x in (q, k))
# [/rope_torch_float_angles]


# [rope_torch_pairs]
@takes(only={"interleaved": 1})
def rope_torch_pairs(q, k, positions=None, inv_freq=None, interleaved=1, rotary=0, offset=0, base=10000.0, attention_factor=1.0):
    """Meta's: each pair of neighbours is a complex number, and a turn a product with e^(iθ)."""
    f = frequencies(q, inv_freq, rotary, base)
    angles = places(q, positions, offset)[..., None] * f
    turn = torch.polar(torch.full_like(angles, attention_factor), angles)[:, :, None]

    def turned(x):
        turning, rest = x.split((2 * len(f), x.shape[-1] - 2 * len(f)), -1)
        pairs = torch.view_as_complex(turning.double().unflatten(-1, (len(f), 2)).contiguous())
        return torch.cat((torch.view_as_real(pairs * turn).flatten(-2).float().to(x.dtype), rest), -1)

    return turned(q), turned(k)
# [/rope_torch_pairs]


# [rope_triton]
@triton.jit
def rope_kernel(x, y, positions, inv_freq, heads, size, pairs, factor, NEIGHBOURS: tl.constexpr, BLOCK: tl.constexpr):
    """One program, one token: its cosines and sines in f64, then its heads."""
    token = tl.program_id(0).to(tl.int64)
    pair = tl.arange(0, BLOCK)
    live = pair < pairs
    angle = tl.load(positions + token) * tl.load(inv_freq + pair, mask=live, other=0.0).to(tl.float64)
    c, s = (tl.cos(angle) * factor).to(tl.float32), (tl.sin(angle) * factor).to(tl.float32)
    first = 2 * pair if NEIGHBOURS else pair
    second = first + 1 if NEIGHBOURS else pair + pairs
    for head in range(0, heads):
        at = (token * heads + head) * size
        a = tl.load(x + at + first, mask=live, other=0.0).to(tl.float32)
        b = tl.load(x + at + second, mask=live, other=0.0).to(tl.float32)
        tl.store(y + at + first, a * c - b * s, mask=live)
        tl.store(y + at + second, b * c + a * s, mask=live)


def rope_triton(q, k, positions=None, inv_freq=None, interleaved=0, rotary=0, offset=0, base=10000.0, attention_factor=1.0):
    f = frequencies(q, inv_freq, rotary, base)
    p = places(q, positions, offset).expand(q.shape[:2]).contiguous()
    results = []
    for x in (q, k):
        y = x.clone()  # what does not turn stays
        if x.numel() and len(f):
            rope_kernel[(p.numel(),)](x, y, p, f, x.shape[2], x.shape[3], len(f), float(attention_factor), bool(interleaved),
                                      triton.next_power_of_2(len(f)))
        results.append(y)
    return tuple(results)
# [/rope_triton]


# [rope_backward_numpy]
def rope_backward_numpy(dyq, dyk, positions=None, inv_freq=None, interleaved=0, rotary=0, offset=0, base=10000.0,
                        attention_factor=1.0):
    """A rotation's transpose turns back: the same function at the negative frequencies."""
    pairs = len(inv_freq) if inv_freq is not None else int(rotary or dyq.shape[3]) // 2
    f = inv_freq if inv_freq is not None else (base ** (-np.arange(pairs) / pairs)).astype(np.float32)
    return rope_numpy(dyq, dyk, positions, -f, interleaved, rotary, offset, base, attention_factor)
# [/rope_backward_numpy]
