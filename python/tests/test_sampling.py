"""top_k and sample against PyTorch's, and a histogram of draws against the distribution."""

import math

import numpy as np
import pytest

import rooftile

SEED = np.array([20240229], np.int64)


def draws(logits, n, **options):
    """n tokens of one row's distribution."""
    return np.asarray(rooftile.sample(np.broadcast_to(logits, (n, logits.size)), SEED, **options))


def chi_squared(tokens, p):
    """The statistic, and its degrees of freedom; tokens of probability 0 must not come."""
    counts = np.bincount(tokens, minlength=p.size)
    assert counts[p == 0].sum() == 0
    few = np.argsort(p)[::-1]
    expected, seen = p[few] * tokens.size, counts[few]
    large = expected >= 8
    cells = np.append(expected[large], expected[~large].sum()), np.append(seen[large], seen[~large].sum())
    keep = cells[0] > 1e-9
    return ((cells[1] - cells[0])[keep] ** 2 / cells[0][keep]).sum(), keep.sum() - 1


def distribution(logits, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    order = np.argsort(-logits, kind="stable")
    p = np.exp((logits[order] - logits.max()).astype(np.float64) / temperature)
    p[top_k or p.size :] = 0
    p /= p.sum()
    p[1:][np.cumsum(p)[:-1] >= top_p] = 0
    p[p < min_p * p[0]] = 0
    out = np.empty_like(p)
    out[order] = p / p.sum()
    return out


@pytest.mark.parametrize("columns", [40, 700])
@pytest.mark.parametrize("options", [
    {}, {"temperature": 0.5}, {"top_p": 0.8}, {"top_k": 12}, {"top_k": 100, "top_p": 0.9, "temperature": 1.5},
    {"min_p": 0.1}, {"top_k": 20, "top_p": 0.7, "min_p": 0.05}])  # fmt: skip
def test_a_histogram_of_draws_is_the_distribution(columns, options):
    logits = np.random.default_rng(columns).standard_normal(columns, np.float32) * 2
    tokens = draws(logits, 20000, **options)
    statistic, freedom = chi_squared(tokens, distribution(logits, **options))
    assert statistic < freedom + 4 * math.sqrt(2 * freedom) + 8, (statistic, freedom)  # the seed is fixed
    if options.get("top_p", 1) < 1:  # and without top_p it is another: the test can tell
        statistic, freedom = chi_squared(tokens, distribution(logits, **{**options, "top_p": 1.0}))
        assert statistic > 10 * freedom


@pytest.mark.parametrize("options", [{}, {"top_k": 9, "temperature": 0.7}, {"top_p": 0.9}])
def test_a_row_draws_the_same_in_any_batch(options):
    logits = np.random.default_rng(1).standard_normal((50, 333), np.float32)
    all_rows = rooftile.sample(logits, SEED, offset=np.array([7]), **options)
    for row in (0, 13, 49):
        one = rooftile.sample(logits[row : row + 1], SEED, offset=np.array([7 + row]), **options)
        assert one[0] == all_rows[row]


@pytest.mark.parametrize("options", [{}, {"top_k": 9, "temperature": 0.7}, {"top_p": 0.9}])
def test_a_request_draws_the_same_at_any_place_of_a_batch(options):
    random = np.random.default_rng(3)
    logits = random.standard_normal((50, 333), np.float32)
    seeds, offsets = random.integers(-(2**63), 2**63 - 1, 50), random.integers(0, 4000, 50)
    zero, order = np.array([0]), random.permutation(50)
    tokens = rooftile.sample(logits, zero, seeds=seeds, offsets=offsets, **options)
    moved = rooftile.sample(logits[order], zero, seeds=seeds[order], offsets=offsets[order], **options)
    np.testing.assert_array_equal(moved, tokens[order])
    for row in (0, 13, 49):
        one = rooftile.sample(logits[row : row + 1], seeds[row : row + 1], offset=offsets[row : row + 1], **options)
        assert one[0] == tokens[row]  # the first row's key and counter are seed and offset
    for other in ({"seeds": seeds ^ 1, "offsets": offsets}, {"seeds": seeds, "offsets": offsets + 1}):
        assert (rooftile.sample(logits, zero, **other, **options) != tokens).any()


def test_temperature_0_is_the_largest():
    logits = np.random.default_rng(2).standard_normal((9, 200)).astype(np.float32).round()  # with ties
    np.testing.assert_array_equal(rooftile.sample(logits, SEED, temperature=0), logits.argmax(-1))
    np.testing.assert_array_equal(rooftile.sample(logits, SEED, top_k=1), logits.argmax(-1))
    np.testing.assert_array_equal(rooftile.sample(logits, SEED, top_p=0), logits.argmax(-1))


def test_rows_without_a_distribution():
    logits = np.zeros((4, 100), np.float32)
    logits[0] = -math.inf
    logits[1, 50] = math.nan
    logits[2] = -math.inf
    logits[2, 70] = 3
    logits[3, [20, 30]] = math.inf
    for options in ({}, {"top_k": 5}, {"temperature": 0}, {"top_p": 0.5}):
        tokens = rooftile.sample(logits, SEED, **options)
        assert tokens[0] == tokens[1] == -1 and tokens[2] == 70 and tokens[3] in (20, 30)


def test_top_p_keeps_the_fewest_that_reach_it():
    logits = np.log(np.array([0.5, 0.25, 0.125, 0.125] + [0] * 96, np.float32) + 1e-30)
    assert set(draws(logits, 500, top_p=0.5)) == {0}
    assert set(draws(logits, 500, top_p=0.6)) == {0, 1}
    assert set(draws(logits, 500, top_p=0.8)) == {0, 1, 2}


@pytest.mark.parametrize("columns", [64, 1000, 5000])
@pytest.mark.parametrize("k", [1, 5, 64])
def test_top_k(columns, k):
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(6, columns).to(dtype)
        x[1, 20] = x[1, 11] = math.nan
        x[2] = x[2].round()
        values, indices = rooftile.top_k(x, k=k)
        expected = torch.sort(x, dim=-1, descending=True, stable=True)
        torch.testing.assert_close(values, expected.values[:, :k], rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(indices, expected.indices[:, :k], rtol=0, atol=0)


def test_refusals():
    with pytest.raises(ValueError, match="k"):
        rooftile.top_k(np.zeros((2, 8), np.float32), k=9)
    with pytest.raises(ValueError, match="top_p"):
        rooftile.sample(np.zeros((2, 8), np.float32), SEED, top_p=1.5)


def test_along_another_axis_a_seed_may_be_a_number():
    logits = np.random.default_rng(3).standard_normal((9, 4)).astype(np.float32)
    np.testing.assert_array_equal(rooftile.sample(logits, 5, axis=0, offset=2), rooftile.sample(logits.T, 5, offset=2))
    np.testing.assert_array_equal(rooftile.sample(logits, seed=5, axis=0, keepdims=True)[0], rooftile.sample(logits.T, SEED * 0 + 5))
    for seed in (True, 5.0):
        with pytest.raises(TypeError, match=f"sample: seed is of type {type(seed).__name__}"):
            rooftile.sample(logits, seed, axis=0)
