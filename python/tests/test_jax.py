"""rooftile on JAX's arrays, and rooftile.jax under jit, grad and vmap."""

import functools

import numpy as np
import pytest
from conftest import STAIRCASE, arguments, choices, learns

jax = pytest.importorskip("jax")

import jax.numpy as jnp
import jax.test_util

import rooftile
import rooftile.jax
from rooftile.jax import known

DIFFERENTIABLE = [n for n, f in known.items() if learns(f)]


def arrays(name, optional=False, outer=(3, 4)):
    places, words = arguments(name, optional, outer)
    return [jnp.asarray(p) for p in places], {n: jnp.asarray(w) for n, w in words.items()}


def as_list(result):
    return list(result) if isinstance(result, tuple) else [result]


def same(ours, theirs, rtol=1e-6):
    for a, e in zip(as_list(ours), as_list(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=rtol, atol=1e-6)


def test_arrays_of_jax_without_rooftile_jax(function, call):
    if known[function].mutates:
        with pytest.raises(ValueError, match="is an immutable array, and the function writes it"):
            call(*arrays(function)[0])
        return
    places, words = arrays(function)
    results = as_list(call(*places, **words))
    assert all(isinstance(r, jax.Array) for r in results)
    numpy_places, numpy_words = arguments(function)
    same(tuple(results), tuple(as_list(call(*numpy_places, **numpy_words))), rtol=0)


def test_errors():
    x = jnp.ones((2, 3))
    with pytest.raises(ValueError, match="y is an immutable array"):
        rooftile.softmax(np.ones((2, 3), np.float32), out=x)
    with pytest.raises(TypeError, match="under jit, grad and vmap call rooftile.jax.softmax"):
        jax.jit(rooftile.softmax)(x)
    with pytest.raises(TypeError, match="softmax: x is 2x3 i32, must be one of f64, f32, f16, bf16"):
        rooftile.jax.softmax(jnp.ones((2, 3), jnp.int32))
    with pytest.raises(TypeError, match="layer_norm: weight is 3 f16, must be f32, or bf16 as x is"):
        rooftile.jax.layer_norm(jnp.ones((2, 3), jnp.bfloat16), weight=jnp.ones(3, jnp.float16))
    with pytest.raises(TypeError, match="softmax: x is 2x3 int16, must be one of f64, f32, f16, bf16"):
        rooftile.jax.softmax(jnp.ones((2, 3), jnp.int16))
    with pytest.raises(TypeError, match="add: y is 2x3 f16, must be f32 as x is"):
        rooftile.jax.add(x, jnp.ones((2, 3), jnp.float16))
    with pytest.raises(Exception, match="add: y is 3x2 f32, must be 2x3"):
        jax.block_until_ready(rooftile.jax.add(x, x.T))
    with pytest.raises(TypeError, match="takes no 'scales'"):
        rooftile.jax.softmax(x, scales=1)
    for function, arrays in (("dequantize_int4", [jnp.zeros((3, 8), jnp.uint8), jnp.ones((3, 1))]),
                             ("gemm_nf4", [jnp.ones((3, 8)), jnp.zeros(12, jnp.uint8), jnp.ones(1)])):
        if function in known:
            with pytest.raises(ValueError, match=f"{function}: the sizes of y do not follow from the inputs; pass rooftile.{function} an"):
                getattr(rooftile.jax, function)(*arrays)


@pytest.mark.parametrize("optional", [False, True])
def test_jit_gives_what_numpy_gives(function, optional):
    places, words = arrays(function, optional)
    wanted = dict.fromkeys(known[function].optional_outputs, True) if optional else {}
    numpy_places, numpy_words = arguments(function, optional)
    expected = getattr(rooftile, function)(*numpy_places, **numpy_words, **wanted)
    call = getattr(rooftile.jax, function)
    same(call(*places, **words, **wanted), expected)
    same(jax.jit(lambda p, w: call(*p, **w, **wanted))(places, words), expected)


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n not in STAIRCASE])
def test_gradients(name, optional):
    f, (places, words) = known[name], arrays(name, optional, outer=(3,))
    given = dict(zip([o["name"] for o in f.inputs if not o["optional"]], places)) | words
    learnt = [n for n in given if n in learns(f)]
    inputs = [given[n] + jnp.sign(given[n]) * 0.25 for n in learnt]  # away from relu's kink
    wanted = dict.fromkeys(f.sums, True) if optional else {}
    for options in choices(f, given):
        def run(*its):
            return getattr(rooftile.jax, name)(**given | dict(zip(learnt, its)), **wanted, **options)

        jax.test_util.check_grads(run, inputs, order=1, modes=["rev"], eps=2**-7, atol=2e-2, rtol=2e-2)


def test_results_are_named_as_rooftiles(function, call):
    places, words = arrays(function, True)
    wanted = dict.fromkeys(known[function].optional_outputs, True)
    numpy_places, numpy_words = arguments(function, True)
    theirs = call(*numpy_places, **numpy_words, **wanted)
    for ours in (getattr(rooftile.jax, function)(*places, **words, **wanted),
                 jax.jit(lambda p, w: getattr(rooftile.jax, function)(*p, **w, **wanted))(places, words)):
        assert type(ours) is type(theirs) or not isinstance(theirs, tuple)


def test_a_traced_option_is_refused():
    with pytest.raises(TypeError, match="softmax: scale is one of JAX's tracers, and options are Python's numbers"):
        jax.grad(lambda s: rooftile.jax.softmax(jnp.ones((2, 3)), scale=s).sum())(1.0)
    with pytest.raises(TypeError, match="softmax: scale is one of JAX's tracers"):
        jax.jit(lambda x, s: rooftile.jax.softmax(x, scale=s))(jnp.ones((2, 3)), 1.0)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint], ids=["eager", "jit", "checkpoint"])
@pytest.mark.parametrize("name, operand", [("cross_entropy", "weight"), ("linear_cross_entropy", "class_weight"), ("rope", "inv_freq"),
                                           ("attention", "bias")])
def test_an_operand_without_a_gradient_is_a_constant(name, operand, wrap):
    """Beside it others have theirs; only who differentiates with respect to it is told."""
    f, (places, words) = known[name], arrays(name, True)
    first = next(o["name"] for o in f.inputs if not o["optional"])
    given = dict(zip([o["name"] for o in f.inputs if not o["optional"]], places)) | words

    def loss(its, other):
        return (as_list(getattr(rooftile.jax, name)(**given | {first: its, operand: other}))[0] ** 2).sum()

    expected = jax.grad(lambda x: loss(x, words[operand]))(given[first])
    for gradient in (jax.grad(wrap(loss)), wrap(jax.grad(loss)), lambda x, other: jax.grad(wrap(loss), argnums=(0,))(x, other)[0],
                     jax.vmap(jax.grad(wrap(loss)), in_axes=(None, None), axis_size=1)):
        same(jnp.squeeze(jnp.asarray(gradient(given[first], words[operand]))).reshape(expected.shape), expected, rtol=1e-5)
    message = f"{name}: there is no gradient of {operand}; put jax.lax.stop_gradient around it"
    for argnums in (1, (0, 1)):
        with pytest.raises(TypeError, match=message):
            jax.grad(wrap(loss), argnums=argnums)(given[first], words[operand])
    stopped = jax.grad(lambda x, other: loss(x, jax.lax.stop_gradient(other)), argnums=(0, 1))(given[first], words[operand])
    same(stopped[0], expected, rtol=1e-5)
    assert not stopped[1].any()


def test_what_has_no_gradient_says_so():
    x = jnp.ones((2, 3))
    with pytest.raises(TypeError, match="softmax_backward has no gradient"):
        jax.grad(lambda x: jax.grad(lambda x: rooftile.jax.softmax(x)[..., 0].sum())(x).sum())(x)
    for run in (rooftile.jax.relu_backward, jax.jit(rooftile.jax.relu_backward)):
        with pytest.raises(TypeError, match="relu_backward has no gradient: .*; put jax.lax.stop_gradient around its arrays"):
            jax.grad(lambda x: run(x, x).sum())(x)
    with pytest.raises(TypeError, match="row_arg has no gradient"):
        jax.jvp(rooftile.jax.row_arg, (x,), (x,))
    assert rooftile.jax.row_arg(jax.lax.stop_gradient(x)).shape == (2,)


def test_gradients_against_jax():
    x = jnp.asarray(np.random.default_rng(0).standard_normal((4, 33)), jnp.float32)
    dy = jnp.asarray(np.random.default_rng(1).standard_normal((4, 33)), jnp.float32)
    ours = jax.jit(jax.grad(lambda x: (rooftile.jax.softmax(x, scale=0.5) * dy).sum()))(x)
    same(ours, jax.grad(lambda x: (jax.nn.softmax(0.5 * x) * dy).sum())(x), rtol=1e-4)


def test_vmap():
    x = jnp.asarray(np.random.default_rng(0).standard_normal((5, 3, 8)), jnp.float32)
    same(jax.vmap(rooftile.jax.softmax)(x), jax.nn.softmax(x), rtol=1e-5)
    w = jnp.asarray(np.random.default_rng(1).standard_normal((5, 8)), jnp.float32)
    ours = jax.vmap(lambda x, w: rooftile.jax.layer_norm(x, weight=w))(x, w)
    same(ours, rooftile.jax.layer_norm(x) * w[:, None], rtol=1e-5)
    same(jax.vmap(jax.grad(lambda x: rooftile.jax.softmax(x)[..., 0].sum()))(x),
         jax.grad(lambda x: jax.nn.softmax(x)[..., 0].sum())(x), rtol=1e-4)


def test_a_written_operand_comes_anew():
    x, y = jnp.arange(4.0), jnp.ones(4)
    np.testing.assert_array_equal(rooftile.jax.axpby(x, y, alpha=2, beta=1), [1, 3, 5, 7])
    np.testing.assert_array_equal(y, np.ones(4))


def test_dtypes():
    for dtype in (jnp.bfloat16, jnp.float16):
        x = jnp.arange(8, dtype=dtype).reshape(2, 4)
        assert rooftile.jax.softmax(x).dtype == dtype and rooftile.softmax(x).dtype == dtype
        np.testing.assert_array_equal(np.asarray(rooftile.jax.softmax(x)), np.asarray(rooftile.softmax(x)))
    assert rooftile.jax.layer_norm(jnp.ones((2, 4), jnp.bfloat16), mean=True)[1].dtype == jnp.float32


def test_a_gradient_of_one_element_has_its_shape():
    x, alpha = jnp.linspace(-2, 2, 12).reshape(3, 4), jnp.full((1,), 0.7)
    ours = jax.grad(lambda x, alpha: (rooftile.jax.dyt(x, alpha) ** 2).sum(), argnums=(0, 1))(x, alpha)
    theirs = jax.grad(lambda x, alpha: (jnp.tanh(alpha * x) ** 2).sum(), argnums=(0, 1))(x, alpha)
    same(ours, theirs, rtol=1e-5)


FORWARD = {
    "jvp": lambda call, x: jax.jvp(call, (x,), (x,)),
    "jvp_of_jit": lambda call, x: jax.jvp(jax.jit(call), (x,), (x,)),
    "jit_of_jvp": lambda call, x: jax.jit(lambda x: jax.jvp(call, (x,), (x,)))(x),
    "jit_of_jacfwd": lambda call, x: jax.jit(jax.jacfwd(call))(x),
    "hessian": lambda call, x: jax.hessian(lambda x: call(x).sum())(x),
    "jit_of_hessian": lambda call, x: jax.jit(jax.hessian(lambda x: call(x).sum()))(x),
    "linearize": lambda call, x: jax.linearize(jax.jit(call), x)[1](x),
    "scan": lambda call, x: jax.jvp(lambda x: jax.lax.scan(lambda x, _: (call(x), None), x, None, length=2)[0], (x,), (x,)),
}


@pytest.mark.parametrize("how", FORWARD)
@pytest.mark.parametrize("function", ["softmax", "gelu", "gemm"])
def test_forward_mode_is_refused(function, how):
    ours = getattr(rooftile.jax, function)
    with pytest.raises(TypeError, match=f"^{function}: has no derivative in forward mode .*; take jax.grad, jax.vjp or jax.jacrev, "
                                        "or JAX's own function"):
        FORWARD[how](lambda x: ours(x, x) if function == "gemm" else ours(x), jnp.ones((3, 3)))


@pytest.mark.parametrize("function", ["softmax", "gelu"])
def test_reverse_mode_passes_where_forward_mode_is_refused(function):
    ours, theirs = getattr(rooftile.jax, function), getattr(jax.nn, function)
    theirs = functools.partial(theirs, approximate=False) if function == "gelu" else theirs
    x = jnp.linspace(-2, 2, 12).reshape(3, 4)
    for wrap in (jax.jit, jax.checkpoint, jax.vmap,
                 lambda call: lambda x: jax.lax.scan(lambda x, _: (call(x), None), x, None, length=2)[0]):
        def loss(call):
            return lambda x: (wrap(call)(x) ** 2).sum()

        same(jax.jit(jax.grad(loss(ours)))(x), jax.grad(loss(theirs))(x), rtol=1e-4)
        same(jax.jit(jax.jacrev(wrap(ours)))(x), jax.jacrev(wrap(theirs))(x), rtol=1e-4)
