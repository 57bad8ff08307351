"""rooftile.embedding against PyTorch's: rows, sums with a position table, and gradients."""

import pytest

import rooftile

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

F = torch.nn.functional


def case(shape=(3, 20), rows=13, columns=24, dtype=torch.float32, seed=0):
    random = torch.Generator().manual_seed(seed)
    tokens = torch.randint(rows, shape, generator=random)
    return tokens, torch.randn(rows, columns, generator=random).to(dtype), torch.randn(shape[-1], columns, generator=random).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("integers", [torch.int64, torch.int32])
def test_as_pytorch(dtype, integers):
    tokens, table, place = case(dtype=dtype)
    assert torch.equal(rooftile.embedding(tokens.to(integers), table), F.embedding(tokens, table))
    ours = rooftile.embedding(tokens.to(integers), table, position_table=place)
    assert torch.equal(ours, (F.embedding(tokens, table).float() + place.float()).to(dtype))


@pytest.mark.parametrize("padding", [-1, 4])
@pytest.mark.parametrize("placed", [False, True])
def test_gradients(padding, placed):
    tokens, table, place = case()
    ours, theirs, p, q = (x.clone().requires_grad_() for x in (table, table.double(), place, place.double()))
    y = rt.embedding(tokens, ours, position_table=p if placed else None, padding_idx=padding)
    expected = F.embedding(tokens, theirs, padding_idx=None if padding < 0 else padding)
    if placed:
        expected = expected + q
    weights = torch.randn_like(y)
    (y * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=1e-5, atol=1e-5)
    if placed:
        torch.testing.assert_close(p.grad.double(), q.grad, rtol=1e-5, atol=1e-5)
    if padding >= 0:
        assert not ours.grad[padding].any()


def test_all_padding_and_what_is_outside():
    dy = torch.randn(769, 8)
    dtable = rooftile.embedding_backward(torch.zeros(769, dtype=torch.int64), torch.ones(1, 8), dy, padding_idx=0)
    assert not dtable.any()
    y = rooftile.embedding(torch.tensor([0, 5, -1]), torch.ones(2, 3))
    assert y[0].tolist() == [1, 1, 1] and y[1:].isnan().all()
    dtable = rooftile.embedding_backward(torch.tensor([0, 5, -1]), torch.ones(2, 3), torch.ones(3, 3))
    assert dtable.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_the_same_bits_on_any_number_of_threads_and_on_the_emulated_device():
    tokens, table, _ = case(shape=(5000,), rows=7)
    dy = torch.randn(5000, 24)
    one, three = (rooftile.embedding_backward(tokens, table, dy, queue=rooftile.Queue(threads=n)) for n in (1, 3))
    assert torch.equal(one, three)
    assert torch.equal(one, rooftile.embedding_backward(tokens, table, dy, device="emulated"))


def test_gradients_on_jax():
    jax = pytest.importorskip("jax")
    import rooftile.jax

    tokens, table, place = (jax.numpy.asarray(x.numpy()) for x in case())
    def loss(table, place):
        return (rooftile.jax.embedding(tokens, table, position_table=place, padding_idx=2) ** 2).sum()

    def theirs(table, place):
        rows = jax.numpy.where((tokens == 2)[..., None], jax.lax.stop_gradient(table[tokens]), table[tokens])
        return ((rows + place) ** 2).sum()

    for ours, expected in zip(jax.jit(jax.grad(loss, argnums=(0, 1)))(table, place), jax.grad(theirs, argnums=(0, 1))(table, place)):
        assert jax.numpy.allclose(ours, expected, rtol=1e-4, atol=1e-4)
