"""rooftile on PyTorch's tensors, and its operators: opcheck, gradients against differences, torch.compile, vmap, modules."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from conftest import NUMPY, REFUSED, STAIRCASE, arguments, choices, follows, learns, tried, values

torch = pytest.importorskip("torch")

import rooftile
import rooftile.torch
from rooftile import _functions
from rooftile.torch._operators import functions, known

torch.manual_seed(0)
DIFFERENTIABLE = [n for n, f in known.items() if learns(f) and not f.mutates]


def tensors(name, optional=False, outer=(3, 4)):
    places, words = arguments(name, optional, outer)
    return [torch.from_numpy(p) for p in places], {n: torch.from_numpy(w) for n, w in words.items()}


def operands(name, optional=False, outer=(3, 4)):
    """By name: those that have a gradient, and all others."""
    f, (places, words) = known[name], tensors(name, optional, outer)
    given = dict(zip([o["name"] for o in f.inputs if not o["optional"]], places)) | words
    return {n: t for n, t in given.items() if n in learns(f)}, {n: t for n, t in given.items() if n not in learns(f)}


def as_list(result):
    return list(result) if isinstance(result, tuple) else [result]


def operator_arguments(name, optional, wanted=None):
    f = known[name]
    places, words = tensors(name, optional)
    given = dict(zip([o["name"] for o in f.inputs if not o["optional"]], places)) | words
    return f.join(given, {}, set(f.optional_outputs if wanted is None and optional else wanted or ()))


# ---- Plain calls


def test_tensors_give_what_numpy_gives(function, call):
    places, words = tensors(function)
    numpy_places, numpy_words = arguments(function)
    results = as_list(call(*places, **words))
    for ours, theirs in zip(results, as_list(call(*numpy_places, **numpy_words)), strict=True):
        assert type(ours) is torch.Tensor
        np.testing.assert_array_equal(ours.float().numpy() if is_f8(ours) else ours.numpy(),
                                      theirs.astype(np.float32) if is_f8(ours) else theirs)
    out = [torch.empty_like(r) for r in results]
    if _functions.has_out(_functions.signatures[function]):
        again = as_list(call(*places, **words, out=out[0] if len(out) == 1 else tuple(out)))
        for a, o, r in zip(again, out, results, strict=True):
            assert a is o and torch.equal(o, r)


def test_half_dtypes_and_strides():
    x = torch.randn(5, 8, 33).transpose(0, 1)
    for dtype, tolerance in ((torch.bfloat16, 2**-8), (torch.float16, 2**-10)):
        y = rooftile.softmax(x.to(dtype))
        assert y.dtype == dtype
        torch.testing.assert_close(y.float(), torch.softmax(x.to(dtype).float(), -1), rtol=tolerance, atol=1e-6)
    y = rooftile.copy(torch.arange(4).to(torch.float8_e4m3fn))
    assert y.dtype == torch.float8_e4m3fn and y.tolist() == [0, 1, 2, 3]
    assert rooftile.layer_norm(torch.nn.Parameter(torch.randn(3, 4)).detach()).shape == (3, 4)


def test_mixed_frameworks_and_their_errors():
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    out = torch.empty(2, 3)
    assert rooftile.softmax(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), rooftile.softmax(x))
    with pytest.raises(TypeError, match="softmax: x is 2x3 i32, must be one of f64, f32, f16, bf16"):
        rooftile.softmax(torch.ones(2, 3, dtype=torch.int32))
    for dtype in (torch.int16, torch.uint16, torch.complex64):
        with pytest.raises(TypeError, match=f"softmax: x has dtype {str(dtype)[6:]}, which the library does not know"):
            rooftile.softmax(torch.ones(2, 3, dtype=dtype))
    with pytest.raises(ValueError, match="softmax: x has no dense memory of its own: it is sparse"):
        rooftile.softmax(torch.ones(2, 3).to_sparse())
    with pytest.raises(ValueError, match="DLPack's type|no dense memory"):
        rooftile.softmax(torch.ones(2, 3, device="meta"))


def test_a_call_with_gradients_has_them():
    x = torch.randn(3, 7, requires_grad=True)
    y = rooftile.softmax(x, scale=0.5)
    y[:, 0].sum().backward()
    expected = x.detach().clone().requires_grad_()
    torch.softmax(0.5 * expected, -1)[:, 0].sum().backward()
    torch.testing.assert_close(x.grad, expected.grad)
    with torch.no_grad():
        out = torch.empty(3, 7)
        assert rooftile.softmax(x, out=out) is out and not rooftile.softmax(x).requires_grad
    with pytest.raises(TypeError, match="out= does not go together with gradients"):
        rooftile.softmax(x, out=torch.empty(3, 7))


def test_results_of_calls_with_gradients_and_without_are_one_type():
    import pickle

    x = torch.randn(2, 3)
    plain = rooftile.layer_norm(x, mean=True, rstd=True)
    _functions.below_gradients["layer_norm"](x, mean=True, rstd=True)
    assert torch.equal(pickle.loads(pickle.dumps(plain)).mean, plain.mean)


# ---- Operators


@pytest.mark.parametrize("optional", [False, True])
def test_opcheck(function, optional):
    """With gradients where there are some, and each selection of the optional outputs."""
    f = known[function]
    for count in range(len(f.optional_outputs) + 1):
        for wanted in itertools.combinations(f.optional_outputs, count):
            if not optional and any(n.startswith("new_running") for n in wanted):  # without the old one
                continue
            args = operator_arguments(function, optional, wanted)
            smooth = learns(f) if function in DIFFERENTIABLE else ()
            args = [a.clone().requires_grad_() if n in smooth and isinstance(a, torch.Tensor) else a
                    for n, a in itertools.zip_longest(f.order, args)]
            torch.library.opcheck(f.operator, tuple(args))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_an_operators_gradient_does_not_depend_on_what_was_asked_for(name):
    f, args = known[name], operator_arguments(name, True, ())
    args = [a.requires_grad_() if n in learns(f) and isinstance(a, torch.Tensor) else a for n, a in itertools.zip_longest(f.order, args)]
    inputs = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]

    def gradients(operator, wanted):
        first = as_list(operator(*args[:len(args) - len(f.optional_outputs)], *(n in wanted for n in f.optional_outputs)))[0]
        return torch.autograd.grad(first.square().sum(), inputs, allow_unused=True)

    outputs = [n for n in f.optional_outputs if not n.startswith("new_running")]  # they need the old ones
    expected = gradients(f.operator, outputs)
    torch._dynamo.reset()
    compiled = torch.compile(f.operator, fullgraph=True, backend="aot_eager")
    for wanted in ((), *((n,) for n in outputs)):
        for operator in (f.operator, compiled):
            for a, e in zip(gradients(operator, wanted), expected, strict=True):
                assert a is e is None or torch.equal(a, e)


def is_f8(t):
    """PyTorch neither adds nor compares them, and NumPy does not know them."""
    return t.is_floating_point() and t.element_size() == 1


def away_from_zero(x):
    return x + torch.sign(x) * 0.25


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n not in STAIRCASE])
def test_gradients_against_differences(name, optional):
    """In f32: differences over 2·2^-7 have an error of 2^-14 by curvature and about 2^-16 by rounding. Indices and seeds stay."""
    f, call = known[name], getattr(rooftile.torch, name)
    learnt, fixed = operands(name, optional, outer=(3,))
    inputs = [away_from_zero(t).requires_grad_() for t in learnt.values()]
    wanted = dict.fromkeys(f.sums, True) if optional else {}
    for options in choices(f, (*learnt, *fixed)):
        def run(*given):
            return call(**dict(zip(learnt, given)), **fixed, **wanted, **options)

        torch.autograd.gradcheck(run, inputs, eps=2**-7, atol=2e-3, rtol=2e-3, nondet_tol=0.0)


def test_gradients_against_pytorch():
    x, r = (torch.randn(6, 33, requires_grad=True) for _ in range(2))
    w, b = torch.randn(33, requires_grad=True), torch.randn(33, requires_grad=True)
    dy, dsum = torch.randn(6, 33), torch.randn(6, 33)
    y, total = rooftile.torch.layer_norm(x, residual=r, weight=w, bias=b, sum=True)
    ours = torch.autograd.grad((y * dy).sum() + (total * dsum).sum(), (x, r, w, b))
    h = x + r
    theirs = torch.autograd.grad((torch.nn.functional.layer_norm(h, (33,), w, b) * dy).sum() + (h * dsum).sum(), (x, r, w, b))
    for a, e in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-5)
    y, total = rooftile.torch.layer_norm(x, residual=r, weight=w, sum=True)
    (only_sum,) = torch.autograd.grad(total.sum(), (r,))  # y unused
    torch.testing.assert_close(only_sum, torch.ones_like(r))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_gradient_of_one_element_has_its_shape(shape):
    x, w, dy = (torch.randn(6, 33, requires_grad=True), torch.randn(33, requires_grad=True), torch.randn(6, 33))
    alpha = torch.full(shape, 0.7, requires_grad=True)
    ours = torch.autograd.grad((rooftile.torch.dyt(x, alpha, weight=w) * dy).sum(), (x, alpha, w))
    theirs = torch.autograd.grad((torch.tanh(alpha.reshape(()) * x) * w * dy).sum(), (x, alpha, w))
    for a, e in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name, option, word", [(*of, word) for of, words in REFUSED.items() if of[0] in known for word in words])
def test_options_without_a_gradient_say_so(name, option, word):
    learnt, fixed = operands(name)
    learnt = {n: t.requires_grad_() for n, t in learnt.items()}
    y = getattr(rooftile.torch, name)(**learnt, **fixed, **{option: word})
    with pytest.raises(ValueError, match=f"{name}_backward: {option} is .*, must be "):
        y.sum().backward()


def test_what_has_no_gradient_says_so():
    x = torch.randn(3, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match="rooftile.relu_backward has no gradient"):
        rooftile.torch.relu_backward(x, x).sum().backward()
    with pytest.raises(RuntimeError, match="axpby: writes its operand and has no gradient"):
        rooftile.torch.axpby(x, torch.zeros(3, 4))
    y = rooftile.torch.softmax(x)
    (g,) = torch.autograd.grad(y[:, 0].sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="softmax_backward has no gradient"):
        g.sum().backward()
    y, mean, rstd = rooftile.torch.layer_norm(x, mean=True, rstd=True)
    assert y.requires_grad and not mean.requires_grad and not rstd.requires_grad
    with pytest.raises(TypeError, match="softmax: takes no 'scales'"):
        rooftile.torch.softmax(x, scales=2)


def test_compile_has_no_graph_break(function):
    learnt, f = function in DIFFERENTIABLE, known[function]
    places, words = tensors(function, True)
    names = [o["name"] for o in f.inputs if not o["optional"]]
    inputs = [t.requires_grad_() for n, t in zip(names, places) if n in learns(f)] if learnt else []
    call = getattr(rooftile.torch, function)

    def step(*given):
        results = as_list(call(*[g + g if g.is_floating_point() else g for g in given] if not f.mutates else given, **words))
        return [r.float() if is_f8(r) else r + r for r in results]

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    ours, theirs = compiled(*[i.clone() for i in places]), step(*[i.clone() for i in places])
    for a, e in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, e)
    if learnt:
        gradients = [torch.autograd.grad(results[0].sum(), inputs) for results in (compiled(*places), step(*places))]
        for a, e in zip(*gradients, strict=True):
            torch.testing.assert_close(a, e)


def test_compile_of_rooftiles_own_functions_dispatches_to_the_operators(function, call):
    places, words = tensors(function, True)
    learnt = function in DIFFERENTIABLE
    expected = as_list(call(*[p.clone() for p in places], **words))
    seen = []

    def backend(graph, examples):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    torch._dynamo.reset()
    compiled = torch.compile(lambda *given: call(*given, **words), fullgraph=True, backend=backend)
    for a, e in zip(as_list(compiled(*[p.clone().requires_grad_(learnt and p.is_floating_point()) for p in places])), expected, strict=True):
        torch.testing.assert_close(a.detach(), e)
    assert f"rooftile.{function}.default" in seen or f"rooftile.{function}" in seen, seen


def test_compile_of_calls_that_have_no_operator_runs_them():
    x, out = torch.randn(3, 4), torch.empty(3, 4)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(lambda x: rooftile.softmax(x, out=out) + 1, backend="eager")(x), torch.softmax(x, -1) + 1)
    torch.testing.assert_close(out, torch.softmax(x, -1))
    y, mean = torch.compile(lambda x: rooftile.layer_norm(x, mean=True), fullgraph=True, backend="eager")(x.numpy())
    assert type(y) is type(mean) is np.ndarray
    np.testing.assert_array_equal(y, rooftile.layer_norm(x.numpy()))
    with pytest.raises(TypeError, match="softmax: takes no 'scales'"):
        torch.compile(lambda x: rooftile.softmax(x, scales=2), backend="eager")(x)


@pytest.mark.parametrize("imports", ["import rooftile, torch", "import torch, rooftile.torch", "import torch._dynamo, rooftile"])
def test_the_tracer_is_told_by_whatever_import_comes_first(imports):
    program = (f"{imports}\nimport sys, torch\nassert 'rooftile.torch' in '{imports}' or '_dynamo' in '{imports}' or "
               "'rooftile.torch' not in sys.modules\nx = torch.ones(2, 4)\n"
               "print(torch.compile(lambda x: rooftile.softmax(x), fullgraph=True, backend='eager')(x).sum().item())")
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "2.0\n"


def test_export_and_checkpoint():
    x = torch.randn(3, 8, requires_grad=True)
    module = torch.nn.Sequential(rooftile.torch.nn.LayerNorm(8), rooftile.torch.nn.Softmax(-1))
    torch.testing.assert_close(torch.export.export(module, (x.detach(),)).module()(x), module(x))
    plain, again = module(x), torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False)
    for a, e in zip(torch.autograd.grad(again[:, 0].sum(), x), torch.autograd.grad(plain[:, 0].sum(), x), strict=True):
        assert torch.equal(a, e)


def test_compile_with_changing_sizes():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: rooftile.torch.softmax(x) * 2, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows, columns in ((3, 5), (4, 7), (2, 9)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(compiled(x), torch.softmax(x, -1) * 2)


def test_vmap():
    x = torch.randn(5, 3, 8)
    torch.testing.assert_close(torch.vmap(rooftile.torch.softmax)(x), torch.softmax(x, -1))
    torch.testing.assert_close(torch.vmap(rooftile.torch.softmax, in_dims=1, out_dims=1)(x), torch.softmax(x, -1))
    w = torch.randn(5, 8)  # a weight for each: one call after the other
    ours = torch.vmap(lambda x, w: rooftile.torch.layer_norm(x, weight=w))(x, w)
    torch.testing.assert_close(ours, torch.nn.functional.layer_norm(x, (8,)) * w[:, None], rtol=1e-4, atol=1e-5)
    up = torch.randn(3, 8)  # the same for all
    torch.testing.assert_close(torch.vmap(rooftile.torch.swiglu, in_dims=(0, None))(x, up), torch.nn.functional.silu(x) * up)


@pytest.mark.parametrize("optional", [False, True])
def test_vmap_is_a_loop(function, optional):
    f, call = known[function], getattr(rooftile.torch, function)
    places, words = tensors(function, optional)
    names, count = list(words), len(places)
    single = [[t + (i if t.dtype.is_floating_point else 0) for t in (*places, *words.values())] for i in range(3)]
    stacked = [torch.stack(column) for column in zip(*single)]
    wanted = dict.fromkeys(f.optional_outputs, True) if optional else {}

    def run(*given):
        return call(*given[:count], **dict(zip(names, given[count:])), **wanted)

    if f.mutates:
        with pytest.raises(RuntimeError, match="(?i)batching rule"):
            torch.vmap(run)(*stacked)
        return
    for dim in (0, 1):
        if any(t.dim() < 2 for t in stacked):
            dim = 0
        moved = [t.movedim(0, dim) for t in stacked]
        ours = as_list(torch.vmap(run, in_dims=dim)(*moved))
        for a, e in zip(ours, zip(*[as_list(run(*one)) for one in single]), strict=True):
            if is_f8(a):
                a, e = a.float(), [t.float() for t in e]
            torch.testing.assert_close(a, torch.stack(e), rtol=1e-5, atol=1e-5)


def test_autocast_takes_what_arrives(function):
    """Those that cast, as linear_cross_entropy, are others than the operators; they have tests of their own."""
    places, words = tensors(function, True)
    call = functions[function]
    expected = as_list(call(*[p.clone() for p in places], **words))
    with torch.autocast("cpu", torch.bfloat16):
        actual = as_list(call(*[p.clone() for p in places], **words))
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype and torch.equal(a, e)


def test_autocast_around_modules():
    linear = torch.nn.Linear(8, 8)
    for norm in (rooftile.torch.nn.LayerNorm(8), rooftile.torch.nn.RMSNorm(8)):
        with torch.autocast("cpu", torch.bfloat16):
            y = norm(linear(torch.randn(3, 8)))
        assert y.dtype == torch.bfloat16
        y.float().square().sum().backward()
        assert norm.weight.grad.dtype == torch.float32


# ---- What PyTorch must not miss: writes, signs, tangents, gradients of options


def writings(name):
    """Each way in which a function writes tensors of the caller's: (the call, [which])."""
    f, call = known[name], getattr(rooftile, name)
    places, words = tensors(name)
    if f.mutates:
        written = [p for p, o in zip(places, (o for o in f.inputs if not o["optional"])) if o["role"] == "in_out"]
        args = f.join(dict(zip(f.places, places)) | words, {}, set())
        yield lambda: call(*places, **words), written
        yield lambda: f.operator(*args), written
        yield lambda: getattr(rooftile.torch, name)(*places, **words), written
        return
    out = [torch.zeros_like(r) for r in as_list(call(*places, **words))]
    yield lambda: call(*places, **words, out=out[0] if len(out) == 1 else tuple(out)), out
    for extra in f.optional_outputs:
        if extra in f.sums or extra.startswith("new_running"):
            words = tensors(name, True)[1]
        result = call(*places, **words, **{extra: True})
        receiver = torch.zeros_like(getattr(result, extra))
        yield lambda extra=extra, receiver=receiver: call(*places, **words, **{extra: receiver}), [receiver]


def test_every_write_is_seen_by_autograd(function):
    """What was saved for a backward and then written is stale: that backward must say so."""
    for write, written in writings(function):
        for t in written:
            version = t._version
            leaf = torch.ones(t.shape, requires_grad=True)
            if not t.dtype.is_floating_point or is_f8(t):
                write()
                assert t._version > version
                continue
            saved = (leaf * t).sum()  # its backward needs t
            write()
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                saved.backward()
    with torch.inference_mode():
        for write, _ in writings(function):  # such tensors have no versions
            write()


def test_a_write_that_gradients_would_miss_is_refused():
    a = torch.randn(3, 4, requires_grad=True)
    for write in (lambda c: rooftile.axpby(torch.ones(3, 4), c), lambda c: torch.ops.rooftile.axpby(torch.ones(3, 4), c),
                  lambda c: rooftile.torch.axpby(torch.ones(3, 4), c)):
        with pytest.raises(RuntimeError, match="axpby: writes its operand and has no gradient"):
            write(a.exp())
    c = a.exp()
    with torch.no_grad():
        rooftile.scal(c, alpha=10.0, out=c)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        c.sum().backward()


@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (3, 4, 1), (1, 3, 1, 4)])
def test_negated_views_are_read_with_their_sign_and_not_written(shape):
    complex_ = torch.complex(torch.randn(shape), torch.randn(shape))
    negated = complex_.conj().imag
    for view in (negated, negated[..., None], negated.expand(2, *shape)[:1], torch._neg_view(torch.randn(shape)),
                 torch._neg_view(torch.randn(shape).bfloat16())):
        assert view.is_neg() and torch.equal(rooftile.copy(view), view) and torch.equal(rooftile.torch.copy(view), view)
        assert torch.equal(rooftile.copy(view.detach().requires_grad_()), view)
        before = view.clone()
        with pytest.raises(ValueError, match="y is a negated view of other memory, and the function writes it"):
            rooftile.copy(torch.ones_like(before), out=view)
        assert torch.equal(view, before)
    y = torch._neg_view(torch.randn(3, 4))
    for write in (rooftile.axpby, rooftile.torch.axpby, torch.ops.rooftile.axpby):
        with pytest.raises(ValueError, match="y is a negated view of other memory, and the function writes it"):
            write(torch.ones(3, 4), y)
        receiver = torch.zeros(3, 4)
        write(y, receiver)
        assert torch.equal(receiver, y)


def test_tangents_are_refused_and_never_dropped(function):
    f, call = known[function], getattr(rooftile, function)
    places, words = tensors(function)
    at = next((i for i, p in enumerate(places) if p.dtype.is_floating_point), None)
    if at is None:
        return
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        call(*places, **words)  # none of these has one
        getattr(rooftile.torch, function)(*places, **words)
        places[at] = ad.make_dual(places[at], torch.ones_like(places[at]))
        args = f.join(dict(zip(f.places, places)) | words, {}, set())
        for run in (lambda: call(*places, **words), lambda: f.operator(*args),
                    lambda: getattr(rooftile.torch, function)(*places, **words)):
            with pytest.raises(RuntimeError, match=f"{function}: has no derivative in forward mode"):
                run()
    with pytest.raises(RuntimeError, match=f"{function}: has no derivative in forward mode"):
        torch.func.jvp(lambda x: getattr(rooftile.torch, function)(*places[:at], x, *places[at + 1:], **words),
                       (places[at].detach().clone(),), (places[at].detach().clone(),))


def test_an_option_that_requires_a_gradient_is_refused(signature, call):
    name = signature["name"]
    places, words = tensors(name, name in ("gemm", "gemv"))  # whose beta of 1 wants a c
    if any(o["name"] == "dropout" for o in signature["options"]):
        words["seed"] = torch.tensor([1])
    for option in signature["options"]:
        if option["kind"] not in ("real", "any_real"):
            continue
        learnt = torch.tensor(1.0, requires_grad=True)
        for run in (call, getattr(rooftile.torch, name)):
            with pytest.raises(TypeError, match=f"{name}: {option['name']} is a tensor that requires a gradient"):
                run(*places, **words, **{option["name"]: learnt})
            with torch.no_grad():
                run(*[p.clone() for p in places], **words, **{option["name"]: learnt})
            run(*[p.clone() for p in places], **words, **{option["name"]: learnt.detach()})
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.tensor(1.0), torch.tensor(1.0))
        with pytest.raises(RuntimeError, match="softmax: has no derivative in forward mode"):
            rooftile.softmax(torch.ones(2, 3), scale=dual)


def test_results_are_one_type_in_each_grad_mode(function, call):
    """A named tuple by the same names, wherever there are several outputs."""
    places, words = tensors(function, True)
    wanted = dict.fromkeys(known[function].optional_outputs, True)
    plain = call(*[p.clone() for p in places], **words, **wanted)
    learnt = [p.clone().requires_grad_(function in DIFFERENTIABLE and p.is_floating_point()) for p in places]
    for result in (getattr(rooftile.torch, function)(*[p.clone() for p in places], **words, **wanted),
                   call(*learnt, **words, **wanted)):
        assert type(result) is type(plain)
        if isinstance(plain, tuple):
            assert result._fields == plain._fields and len(plain) > 1


def test_arrays_of_other_frameworks_beside_a_tensor_with_a_gradient():
    x, w = torch.randn(3, 8, requires_grad=True), np.random.default_rng(0).standard_normal(8).astype(np.float32)
    y = rooftile.layer_norm(x, weight=w)
    torch.testing.assert_close(y, torch.nn.functional.layer_norm(x, (8,), torch.from_numpy(w)), rtol=1e-4, atol=1e-5)
    assert y.requires_grad
    frozen = w[::-1]
    frozen.flags.writeable = False
    for given in (frozen, np.broadcast_to(np.float32(2), 8)):
        torch.testing.assert_close(rooftile.layer_norm(x, weight=given), rooftile.layer_norm(x, weight=torch.from_numpy(given.copy())))
    torch.testing.assert_close(rooftile.dyt(x, np.float32(0.5)), rooftile.dyt(x, torch.tensor([0.5])))
    with pytest.raises(TypeError, match="layer_norm: weight is of type list, must be an array"):
        rooftile.layer_norm(x, weight=[1.0] * 8)


# ---- torch.func


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_transforms_of_torch_func(name, optional):
    f, call = known[name], getattr(rooftile, name)
    learnt, fixed = operands(name, optional)
    inputs = list(learnt.values())
    wanted = dict.fromkeys(f.sums, True) if optional else {}

    def run(*given):
        results = as_list(call(**dict(zip(learnt, given)), **fixed, **wanted))
        return sum(r.square().sum() for r in results)

    every = tuple(range(len(inputs)))
    leaves = [t.clone().requires_grad_() for t in inputs]
    expected = torch.autograd.grad(run(*leaves), leaves, materialize_grads=True)
    _, pull = torch.func.vjp(run, *inputs)
    for gradients in (torch.func.grad(run, argnums=every)(*inputs), pull(torch.tensor(1.0))):
        for a, e in zip(gradients, expected, strict=True):
            torch.testing.assert_close(a, e)
    stacked = [torch.stack([t, 2 * t]) for t in inputs]
    batched = torch.vmap(torch.func.grad(run, argnums=every))(*stacked)
    for i in (0, 1):
        leaves = [s[i].clone().requires_grad_() for s in stacked]
        for a, e in zip(batched, torch.autograd.grad(run(*leaves), leaves, materialize_grads=True), strict=True):
            torch.testing.assert_close(a[i], e, rtol=1e-5, atol=1e-5)
    per = torch.func.grad(lambda *given: torch.vmap(run)(*given).sum(), argnums=every)(*stacked)
    for a, e in zip(per, batched, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-5, atol=1e-5)


# ---- The way past PyTorch's autograd layer, for calls that nothing differentiates


def test_the_straight_way_is_taken_where_nothing_listens(monkeypatch):
    class Dispatched(Exception):
        pass

    def below():
        raise Dispatched

    x, w = torch.randn(3, 8), torch.randn(8, requires_grad=True)
    monkeypatch.setattr(torch._C, "_AutoDispatchBelowAutograd", below)
    torch.testing.assert_close(torch.ops.rooftile.softmax(x), torch.softmax(x, -1))
    with torch.no_grad():
        torch.ops.rooftile.softmax(w)
        torch.ops.rooftile.layer_norm(x, None, w)
    for call in (lambda: torch.ops.rooftile.softmax(w), lambda: torch.ops.rooftile.layer_norm(x, None, w, None)):
        with pytest.raises(Dispatched):
            call()


def test_modes_subclasses_and_transforms_still_listen():
    from torch.utils._python_dispatch import TorchDispatchMode

    heard = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), words=None):
            heard.append(operator)
            return operator(*args, **(words or {}))

    class Subclass(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, operator, types, args=(), words=None):
            heard.append(operator)
            return torch.zeros(3, 8)

    x = torch.randn(3, 8)
    with Mode():
        torch.ops.rooftile.softmax(x)
    assert heard == [torch.ops.rooftile.softmax.default]
    assert not torch.ops.rooftile.softmax(torch.Tensor._make_subclass(Subclass, x)).any()
    assert len(heard) == 2
    with torch.inference_mode():
        torch.testing.assert_close(torch.ops.rooftile.softmax(x), torch.softmax(x, -1))
    negated = torch.ones(3, 8, dtype=torch.complex64).conj().imag
    assert torch.equal(torch.ops.rooftile.copy(negated), negated)


# ---- What is tried of each function: pytest -s -k each_function_is_listed

CHECKS = {"opcheck": "test_opcheck", "gradients": "test_gradients_against_differences", "compile": "test_compile_has_no_graph_break",
          "vmap": "test_vmap_is_a_loop", "autocast": "test_autocast_takes_what_arrives", "jit": "test_jit_gives_what_numpy_gives",
          "check_grads": "test_gradients"}


def test_each_function_is_listed(pytestconfig):
    """A function for which the library has a gradient is in all lists, another in all but those of gradients; but for those
    whose outputs' sizes do not follow from their inputs."""
    follow = [name for name in known if follows(_functions.signatures[name])]
    collected = pytestconfig.stash[tried]
    files = {"jit": "test_jax.py", "check_grads": "test_jax.py"}
    lists = {check: {f for file, name, f in collected if name == test and file == files.get(check, "test_torch.py")}
             for check, test in CHECKS.items() if any(file == files.get(check, "test_torch.py") for file, _, _ in collected)}
    print(f"\n{'':24}" + "".join(f"{check:>12}" for check in lists))
    for name in known:
        print(f"{name:24}" + "".join(f"{'yes' if name in its else '-':>12}" for its in lists.values()))
    learnt = {"gradients": set(DIFFERENTIABLE) - STAIRCASE, "check_grads": {n for n, f in known.items() if learns(f)} - STAIRCASE}
    for check, its in lists.items():
        assert its == (learnt[check] if check in learnt else set(follow)), check


def test_operator_takes_numbers_by_place():
    x = torch.from_numpy(values({"letters": "C", "one": False, "outer": True, "dtypes": ["f32"]}))
    torch.testing.assert_close(torch.ops.rooftile.softmax(x, 0.5, True), torch.log_softmax(0.5 * x, -1))
    assert NUMPY["f32"] is np.float32
