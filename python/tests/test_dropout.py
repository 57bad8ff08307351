"""rooftile's dropout against its published generator, with gradients, under torch.compile, checkpoints, vmap and JAX."""

import numpy as np
import pytest

import rooftile

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

FACTORS, STEPS, LOW = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 0xFFFFFFFF


def word(seed, element, offset=0):
    counter = (offset + element // 4) % 2**64
    a, b, c, d = counter & LOW, counter >> 32, 0, 0
    key, key2 = seed & LOW, seed >> 32 & LOW
    for _ in range(10):
        first, second = FACTORS[0] * a, FACTORS[1] * c
        a, b, c, d = second >> 32 ^ b ^ key, second & LOW, first >> 32 ^ d ^ key2, first & LOW
        key, key2 = key + STEPS[0] & LOW, key2 + STEPS[1] & LOW
    return (a, b, c, d)[element % 4]


@pytest.mark.parametrize("seed", [0, 8589934593, 1099511640121, 2**63, 2**64 - 1, -5])
def test_a_seed_is_a_number_of_64_bits(seed):
    x = np.ones((3, 7), np.float32)
    kept = np.array([word(seed % 2**64, i) >= 0.3 * 2**32 for i in range(21)]).reshape(3, 7)
    np.testing.assert_array_equal(rooftile.dropout(x, seed, p=0.3) != 0, kept)
    as_signed = np.array([seed % 2**64], np.uint64).view(np.int64)
    np.testing.assert_array_equal(rooftile.dropout(x, as_signed, p=0.3) != 0, kept)
    assert torch.equal(rt.dropout(torch.ones(3, 7), seed, p=0.3) != 0, torch.from_numpy(kept))


def test_offsets_move_the_counter():
    whole = rooftile.dropout(np.ones(40, np.float32), 9)
    np.testing.assert_array_equal(rooftile.dropout(np.ones(20, np.float32), 9, offset=5), whole[20:])


@pytest.mark.parametrize("seed", [2**64, -2**63 - 1])
def test_a_seed_of_more_bits_is_refused(seed):
    with pytest.raises(ValueError, match="dropout: seed is -?[0-9]+, must be a whole number of 64 bits"):
        rooftile.dropout(np.ones(3, np.float32), seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_gradients_have_the_forwards_mask(dtype):
    x = torch.ones(5, 33, dtype=dtype, requires_grad=True)
    residual = torch.full((5, 33), 4.0, dtype=dtype, requires_grad=True)
    y = rt.dropout(x, 17, residual=residual, p=0.5)
    dy = torch.full_like(y, 3)
    dx, dresidual = torch.autograd.grad(y, (x, residual), dy)
    assert torch.equal(dx, (y.detach() - 4) * 3) and torch.equal(dresidual, dy)
    assert 0.3 < (dx != 0).double().mean() < 0.7
    y = rt.dropout(x, torch.tensor([17]), p=0.5)
    assert torch.equal(torch.autograd.grad(y, x, dy)[0], dx)


def test_the_module_draws_from_pytorchs_generator():
    drop, x = rt.nn.Dropout(0.25), torch.ones(100, 100)
    torch.manual_seed(3)
    first, second = drop(x), drop(x)
    torch.manual_seed(3)
    assert torch.equal(drop(x), first) and not torch.equal(first, second)
    assert abs((first != 0).double().mean().item() - 0.75) < 0.02
    assert torch.equal(first[first != 0], torch.full((int((first != 0).sum()),), 1 / 0.75))
    assert drop.eval()(x) is x and torch.equal(drop(x, x), 2 * x)
    assert torch.equal(rt.nn.dropout(x, 1.0), torch.zeros_like(x))
    with pytest.raises(ValueError, match="dropout: p is 2, must be a number from 0 to 1"):
        rt.nn.dropout(x, 2.0)


def test_a_checkpoint_draws_again():
    drop, x = rt.nn.Dropout(0.5), torch.randn(4, 50, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda x: drop(x * 2), x, use_reentrant=False)
    dx, = torch.autograd.grad(y.sum(), x)
    assert torch.equal(dx != 0, y != 0)


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_step_draws_anew():
    drop, x = rt.nn.Dropout(0.5), torch.ones(64, 64)
    step = torch.compile(lambda x: drop(x + 0), fullgraph=True, backend="aot_eager")
    first, second = step(x), step(x)
    assert not torch.equal(first, second) and abs((first != 0).double().mean().item() - 0.5) < 0.05


def test_vmap_is_a_loop_over_seeds():
    x, seeds = torch.randn(3, 10), torch.tensor([[1], [2], [3]])
    ours = torch.func.vmap(lambda x, seed: rt.dropout(x, seed))(x, seeds)
    assert torch.equal(ours, torch.stack([rt.dropout(a, s) for a, s in zip(x, seeds)]))


def test_patch_leaves_a_models_masks():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5))
    rt.patch(model)
    assert type(model[1]) is torch.nn.Dropout


def test_jax():
    jax = pytest.importorskip("jax")
    import rooftile.jax as rj

    x = jax.numpy.ones((5, 33))
    y, pullback = jax.vjp(lambda x: rj.dropout(x, 17, p=0.5), x)
    np.testing.assert_array_equal(y, rooftile.dropout(np.ones((5, 33), np.float32), 17))
    np.testing.assert_array_equal(pullback(x)[0], y)
    step = jax.jit(lambda x, seed: rj.dropout(x, seed))  # one compilation for all seeds
    np.testing.assert_array_equal(step(x, jax.numpy.array([17])), y)
    assert not np.array_equal(step(x, jax.numpy.array([18])), y)
