"""Inverse frequencies for rooftile.rope's inv_freq, as models whose context was made longer have them.

    f, attention_factor = rope_frequencies(128, 500000.0, "llama3", factor=8, original_length=8192)
    yq, yk = rooftile.rope(q, k, inv_freq=torch.tensor(f), attention_factor=attention_factor)
"""

import math

KINDS = ("none", "linear", "ntk", "yarn", "llama3")


def rope_frequencies(rotary, base=10000.0, kind="none", *, factor=1.0, original_length=0.0, length=0.0, beta_fast=32.0,
                     beta_slow=1.0, truncate=True, low_freq_factor=1.0, high_freq_factor=4.0):
    """rotary/2 frequencies as a list, and the attention factor. In double, by the formulas of transformers'
    modeling_rope_utils.py; rooftile::rope_frequencies of rooftile/ops/rope/rope.h is the same in C++.

    kind: "none": base^(-2i/rotary); "linear": each / factor (Chen et al., arXiv:2306.15595); "ntk": with
        base · (factor·L/O - (factor - 1))^(d/(d-2)), L = length and O = original_length, or without a length
        base · factor^(d/(d-2)); "yarn" (Peng et al., arXiv:2309.00071), whose attention factor is 0.1·ln(factor) + 1;
        "llama3": by wavelengths.
    original_length: positions that the model was trained for.
    """
    def check(name, value, fine, must):
        if not (fine and math.isfinite(value)):
            raise ValueError(f"rope_frequencies: {name} is {value!r}, must be {must}")

    if kind not in KINDS:
        raise ValueError(f"rope_frequencies: kind is {kind!r}, must be one of: {', '.join(KINDS)}")
    check("rotary", rotary, rotary >= 0 and rotary % 2 == 0, "even and not negative")
    check("base", base, base > 1, "finite and above 1")
    check("factor", factor, factor >= 1, "finite and 1 or more")
    if kind in ("yarn", "llama3") or (kind == "ntk" and length):
        check("original_length", original_length, original_length > 0, "finite and above 0")
    if kind == "ntk":
        check("length", length, length >= 0, "finite and not negative")
    if kind == "yarn":
        check("beta_fast", beta_fast, beta_fast >= beta_slow > 0, "finite and beta_slow or more, which is above 0")
    if kind == "llama3":
        check("high_freq_factor", high_freq_factor, high_freq_factor > low_freq_factor > 0,
              "finite and above low_freq_factor, which is above 0")

    if kind == "ntk" and rotary > 2:
        longer = factor * max(length / original_length, 1) - (factor - 1) if length else factor
        base *= longer ** (rotary / (rotary - 2))
    frequencies = [base ** (-2 * i / rotary) for i in range(rotary // 2)]
    if kind == "linear":
        frequencies = [f / factor for f in frequencies]
    elif kind == "yarn":
        low, high = (rotary * math.log(original_length / (turns * 2 * math.pi)) / (2 * math.log(base))
                     for turns in (beta_fast, beta_slow))
        if truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, rotary - 1)
        high += 0.001 * (low == high)
        ramp = [min(max((i - low) / (high - low), 0), 1) for i in range(rotary // 2)]
        frequencies = [f / factor * slow + f * (1 - slow) for f, slow in zip(frequencies, ramp)]
    elif kind == "llama3":
        for i, f in enumerate(frequencies):
            turns = original_length * f / (2 * math.pi)
            smooth = min(max((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0), 1)
            frequencies[i] = (1 - smooth) * f / factor + smooth * f
    return frequencies, 0.1 * math.log(factor) + 1 if kind == "yarn" else 1.0
