"""Rows along other dimensions than the last: axis= and keepdims= of rooftile and rooftile.jax, dim= and keepdim= of
rooftile.torch."""

import importlib.util
import inspect

import numpy as np
import pytest

import rooftile
from rooftile import _functions

ROWS = [name for name, f in _functions.signatures.items() if _functions.has_rows(f)]
x = np.random.default_rng(0).standard_normal((3, 4, 5, 6)).astype(np.float32)
ARRAYS = {"torch": lambda: importlib.import_module("torch").from_numpy, "jax": lambda: importlib.import_module("jax").numpy.asarray}
w = np.random.default_rng(1).standard_normal(6).astype(np.float32)


def test_which_functions_have_rows():
    assert {"softmax", "layer_norm", "rms_norm", "dyt", "l1_normalize", "l2_normalize", "row_reduce", "row_arg", "cross_entropy",
            "softmax_backward"} <= set(ROWS)
    assert not {"add", "gemm", "attention", "embedding", "adamw", "transpose", "rgb_to_gray"} & set(ROWS)
    assert {n for n in ROWS if _functions.reduces(_functions.signatures[n])} == {"row_reduce", "row_arg", "sample"}


def places(name, axis):
    """Operands whose rows are along an axis, and the same with rows last."""
    given = []
    for i, o in enumerate(_functions.inputs(_functions.signatures[name])):
        if o["one"]:
            given.append((np.full(1, 0.5, np.float32) if "f32" in o["dtypes"] else np.full(1, 7, np.int64),) * 2)
        elif not o["outer"]:
            given.append((w, w))
        elif o["letters"]:
            other = np.roll(x, i) + np.float32(i)
            given.append((other, np.moveaxis(other, axis, -1)))
        else:
            one = np.abs(np.moveaxis(x, axis, -1)[..., 0]) + 1
            given.append((one, one) if "f32" in o["dtypes"] else ((one % 3).astype(np.int64),) * 2)
    return zip(*given)


def as_list(result):
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("axis", [0, 1, -2, -1])
@pytest.mark.parametrize("name", ROWS)
def test_every_function_and_framework(name, axis):
    """As on arrays that were moved before; the order of additions may depend on strides."""
    f = _functions.signatures[name]
    given, moved = places(name, axis)
    wanted = {o["name"]: True for o in f["operands"] if o["optional"] and _functions.is_output(o) and o["name"] not in
              ("sum", "dbias", "dweight", "dalpha")}
    outputs = [o for o in f["operands"] if _functions.is_output(o) and (not o["optional"] or o["name"] in wanted)]
    expected = [np.moveaxis(e, -1, axis) if o["outer"] and o["letters"] else e
                for o, e in zip(outputs, as_list(getattr(rooftile, name)(*moved, **wanted)), strict=True)]
    calls = [lambda: getattr(rooftile, name)(*given, **wanted, axis=axis)]
    for framework, word in (("torch", "dim"), ("jax", "axis")):
        if not importlib.util.find_spec(framework):
            continue
        module, array = importlib.import_module(f"rooftile.{framework}"), ARRAYS[framework]()
        calls.append(lambda array=array, module=module, word=word:
                     getattr(module, name)(*map(array, given), **wanted, **{word: axis}))
        calls.append(lambda array=array: getattr(rooftile, name)(*map(array, given), **wanted, axis=axis))
    for call in calls:
        for a, e in zip(as_list(call()), expected, strict=True):
            assert a.shape == e.shape
            np.testing.assert_allclose(np.asarray(a), e, rtol=2e-6, atol=2e-6)


def test_several_axes_are_one_row():
    for axes in ((1, 3), (-1, 1)):
        y = rooftile.softmax(x, axis=axes)
        e = np.exp(x)
        np.testing.assert_allclose(y, e / e.sum((1, 3), keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(rooftile.row_reduce(x, axis=(0, 2)), x.sum((0, 2)), rtol=1e-5, atol=1e-5)
    weight = np.arange(24, dtype=np.float32).reshape(4, 6)
    y = rooftile.rms_norm(x, weight=weight, axis=(1, 3))
    np.testing.assert_allclose(y, x / np.sqrt((x**2).mean((1, 3), keepdims=True) + 1e-6) * weight[:, None], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 2, -1, (0, 2)])
def test_reduced_dimensions_stay(axis):
    for kind, theirs in (("sum", np.sum), ("max", np.max)):
        y = rooftile.row_reduce(x, kind=kind, axis=axis, keepdims=True)
        np.testing.assert_allclose(y, theirs(x, axis, keepdims=True), rtol=1e-5, atol=1e-5)
        out = np.empty_like(y)
        assert rooftile.row_reduce(x, kind=kind, axis=axis, keepdims=True, out=out) is out
        np.testing.assert_array_equal(out, y)
    assert rooftile.row_arg(x, axis=1, keepdims=True).shape == (3, 1, 5, 6)
    with pytest.raises(TypeError, match="softmax: takes no 'keepdims'"):
        rooftile.softmax(x, keepdims=True)
    with pytest.raises(TypeError, match="add: takes no 'axis'"):
        rooftile.add(x, x, axis=0)


def test_outputs_are_views_of_what_was_given():
    out, norm = np.empty_like(x), np.empty((3, 5, 6), np.float32)
    result = rooftile.l2_normalize(x, axis=1, out=out, norm=norm)
    assert result.y is out and result.norm is norm
    np.testing.assert_allclose(norm, np.linalg.norm(x, axis=1), rtol=1e-5)
    np.testing.assert_allclose(out, x / norm[:, None], rtol=1e-5)
    y = x.copy()
    assert rooftile.softmax(y, axis=1, out=y) is y
    np.testing.assert_array_equal(y, rooftile.softmax(x, axis=1))
    with pytest.raises(ValueError, match="an output is given and axis is \\(0, 1\\); give one axis"):
        rooftile.softmax(x, axis=(0, 1), out=out)


def refusals(softmax, layer_norm, x, word):
    for dims, error, text in ((4, ValueError, f"softmax: {word} is 4, must be from -4 to 3: x has 4 dimensions"),
                              ((0, -4), ValueError, f"softmax: {word} is \\(0, -4\\), must name each dimension once"),
                              ((), ValueError, f"softmax: {word} is \\(\\), must name a dimension"),
                              (None, TypeError, f"softmax: {word} is None, must be a whole number or several"),
                              (0.5, TypeError, f"softmax: {word} is 0.5, must be a whole number or several")):
        with pytest.raises(error, match=text):
            softmax(x, **{word: dims})
    with pytest.raises(ValueError, match=f"softmax: {word} is 0, and x has no dimensions"):
        softmax(x[0, 0, 0, 0][...], **{word: 0})
    with pytest.raises(ValueError, match=f"layer_norm: residual has 3 dimensions, x has 4; with {word}= they have as many"):
        layer_norm(x, residual=x[0], **{word: 0})


def test_refusals():
    refusals(rooftile.softmax, rooftile.layer_norm, x, "axis")
    with pytest.raises(TypeError, match="softmax: x is of type list, must be an array"):
        rooftile.softmax([1.0, 2.0], axis=0)
    with pytest.raises(TypeError, match="softmax: x is absent"):
        rooftile.softmax(axis=0)
    with pytest.raises(TypeError, match="softmax: takes 1 arrays by place, was given 2"):
        rooftile.softmax(x, x, axis=0)
    with pytest.raises(TypeError, match="softmax: takes no 'dim'"):
        rooftile.softmax(x, dim=0)


def test_they_are_told():
    assert "axis=-1" in str(inspect.signature(rooftile.softmax)) and "along which dimension" in rooftile.softmax.__doc__
    assert "keepdims=False" in str(inspect.signature(rooftile.row_reduce))
    assert "axis" not in str(inspect.signature(rooftile.add))
    for module, word in (("torch", "dim"), ("jax", "axis")):
        pytest.importorskip(module)
        call = pytest.importorskip(f"rooftile.{module}").softmax
        assert f"{word}=-1" in str(inspect.signature(call)) and f"{word}: along which" in call.__doc__


def test_torch():
    torch = pytest.importorskip("torch")
    import rooftile.torch as rt

    t = torch.from_numpy(x).requires_grad_()
    refusals(rt.softmax, rt.layer_norm, torch.from_numpy(x), "dim")
    for dim in (0, -2, 3, (1, 3)):
        reference = (torch.softmax(t, dim) if isinstance(dim, int)
                     else torch.softmax(t.movedim(dim, (2, 3)).flatten(2), -1).unflatten(2, (4, 6)).movedim((2, 3), dim))
        for run in (rt.softmax, torch.compile(rt.softmax, fullgraph=True, backend="aot_eager")):
            torch.testing.assert_close(run(t, dim=dim), reference)
            for a, e in zip(torch.autograd.grad(run(t, dim=dim)[:, 1].sum(), t), torch.autograd.grad(reference[:, 1].sum(), t, retain_graph=True)):
                torch.testing.assert_close(a, e)
        torch.testing.assert_close(rt.row_reduce(t, dim=dim, keepdim=True), t.sum(dim, keepdim=True), rtol=1e-5, atol=1e-5)
    logits, target = torch.randn(2, 7, 3, 4, requires_grad=True), torch.randint(7, (2, 3, 4))
    loss = rt.cross_entropy(logits, target, dim=1)
    theirs = torch.nn.functional.cross_entropy(logits, target)
    torch.testing.assert_close(loss, theirs)
    torch.testing.assert_close(*torch.autograd.grad(loss, logits), *torch.autograd.grad(theirs, logits))
    weight = torch.randn(4, requires_grad=True)
    y = rt.layer_norm(t, weight=weight, eps=1e-5, dim=1)
    theirs = torch.nn.functional.layer_norm(t.movedim(1, -1), (4,), weight, eps=1e-5).movedim(-1, 1)
    torch.testing.assert_close(y, theirs, rtol=1e-4, atol=1e-5)
    for a, e in zip(torch.autograd.grad(y.sin().sum(), (t, weight)), torch.autograd.grad(theirs.sin().sum(), (t, weight))):
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.vmap(lambda t: rt.softmax(t, dim=0))(t), torch.softmax(t, 1))
    torch.testing.assert_close(rooftile.softmax(t, axis=0), torch.softmax(t, 0))  # with a gradient
    compiled = torch.compile(lambda t: rooftile.row_reduce(t, axis=0, keepdims=True), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(t), t.sum(0, keepdim=True))


def test_no_copy_is_made():
    torch = pytest.importorskip("torch")
    import rooftile.torch as rt

    t = torch.from_numpy(x)
    y = rt.softmax(t, dim=1)
    assert y.movedim(1, -1).is_contiguous() and not y.is_contiguous()


def test_jax():
    jax = pytest.importorskip("jax")
    import rooftile.jax as rj

    a = jax.numpy.asarray(x)
    refusals(rj.softmax, rj.layer_norm, a, "axis")
    for axis in (0, -2, (1, 3)):
        np.testing.assert_allclose(jax.jit(lambda a: rj.softmax(a, axis=axis))(a), jax.nn.softmax(a, axis), rtol=1e-5)
        ours = jax.grad(lambda a: rj.row_reduce(a, kind="logsumexp", axis=axis, keepdims=True).sum())(a)
        np.testing.assert_allclose(ours, jax.nn.softmax(a, axis), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(lambda a: rj.softmax(a, axis=0))(a), jax.nn.softmax(a, 1), rtol=1e-5)
    np.testing.assert_allclose(rooftile.softmax(a, axis=0), jax.nn.softmax(a, 0), rtol=1e-5)


def test_log_softmax():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    import rooftile.jax
    import rooftile.torch

    t, a = torch.from_numpy(x).requires_grad_(), jax.numpy.asarray(x)
    ours, theirs = rooftile.torch.log_softmax(t, scale=0.5, dim=1), torch.log_softmax(0.5 * t, 1)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(*torch.autograd.grad(ours.sin().sum(), t), *torch.autograd.grad(theirs.sin().sum(), t))
    gradients = [jax.grad(lambda a, f=f: jax.numpy.sin(f(a, axis=1)).sum())(a) for f in (rooftile.jax.log_softmax, jax.nn.log_softmax)]
    np.testing.assert_allclose(*gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("queries, keys", [(5, 5), (3, 7), (7, 3)])  # of the last, the first four see none
def test_causal_softmax(queries, keys, log):
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    import rooftile.jax
    import rooftile.torch

    scores = np.random.default_rng(0).standard_normal((2, queries, keys)).astype(np.float32)
    seen = np.tri(queries, keys, keys - queries, bool)
    dy = np.random.default_rng(1).standard_normal(scores.shape).astype(np.float32)
    t = torch.from_numpy(scores).double().requires_grad_()
    hidden = t.masked_fill(~torch.from_numpy(seen), -torch.inf)
    expected = (torch.log_softmax if log else torch.softmax)(hidden, -1).nan_to_num(-torch.inf if log else 0, neginf=-torch.inf)
    torch.where(torch.from_numpy(seen), expected * torch.from_numpy(dy), 0).sum().backward()
    gradient = t.grad.nan_to_num(0).float().numpy()
    expected = expected.detach().float().numpy()

    unseen = np.where(seen, scores, np.nan)  # what is not seen is not read
    for given in (scores, unseen):
        np.testing.assert_allclose(rooftile.softmax(given, causal=True, log=log), expected, rtol=1e-5, atol=1e-6)
    leaf = torch.from_numpy(scores).requires_grad_()
    y = rooftile.torch.softmax(leaf, causal=True, log=log)
    y.backward(torch.from_numpy(np.where(seen, dy, np.nan)))
    np.testing.assert_allclose(y.detach(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(leaf.grad, gradient, rtol=1e-4, atol=1e-6)
    y, back = jax.vjp(lambda x: rooftile.jax.softmax(x, causal=True, log=log), scores)
    np.testing.assert_allclose(back(jax.numpy.asarray(dy))[0], gradient, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(jax.vmap(lambda x: rooftile.jax.softmax(x, causal=True, log=log))(scores), expected, rtol=1e-5, atol=1e-6)
    # The same by what an additive mask leaves.
    minus = np.where(seen, scores, -np.inf).astype(np.float32)
    np.testing.assert_array_equal(rooftile.softmax(minus, masked=True, log=log), rooftile.softmax(scores, causal=True, log=log))


def test_causal_needs_queries():
    torch = pytest.importorskip("torch")
    import rooftile.torch

    words = "softmax: x has rank 1; with causal it has queries and keys, rank 2 at least"
    for call in (rooftile.softmax, rooftile.torch.softmax, lambda x, causal: torch.vmap(lambda r: rooftile.torch.softmax(r, causal=causal))(x[None])):
        with pytest.raises(ValueError, match=words):
            call(torch.ones(4), causal=True)
