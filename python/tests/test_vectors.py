"""First and second gradients of blas1's functions and of transpose, in PyTorch and JAX; which functions have none."""

import numpy as np
import pytest

import rooftile
from rooftile import _functions, _vectors

#: Functions that have no gradient, as they give integers or take nothing else, update a state, or are themselves gradients.
WITHOUT = {"adamw", "row_arg", "rgb_to_gray", "quantize_nf4", "dequantize_nf4", "gemm_nf4", "gemm_pack", "gemm_packed", "quantize_int4", "dequantize_int4", "gemm_int4", "gemm_scaled", "attention_scaled", "quantize_scales",
           "dequantize_scales", "quantize_f8e4m3", "quantize_f8e5m2", "quantize_i8", "quantize_tensor_f8e4m3",
           "quantize_tensor_f8e5m2", "quantize_tensor_i8", "dequantize", "kv_cache_append", "paged_attention",
           "top_k", "sample", "batch_norm_inference", "box_blur", "gaussian_blur", "update_loss_scale",
           "color_pattern"}
OPTIONS = {"scal": {"alpha": -1.5}, "axpby": {"alpha": -1.5, "beta": 0.75}}
NAMES = list(_vectors.RULES)


def inputs(name, dtype=np.float64):
    """Away from |x|'s kink."""
    random = np.random.default_rng(0)
    count = len(_functions.inputs(_functions.signatures[name]))
    xs = [random.standard_normal((2, 3, 5)) for _ in range(count)]
    return [(x + 0.25 * np.sign(x)).astype(dtype) for x in xs]


def test_every_other_function_has_a_gradient():
    for module in ("torch", "jax"):
        pytest.importorskip(module)
        known = pytest.importorskip(f"rooftile.{'torch._operators' if module == 'torch' else 'jax'}").known
        without = {n for n, f in known.items() if not f.backward and n not in _vectors.RULES and n != "gemm"}
        assert {n for n in without if not n.endswith("_backward")} == WITHOUT & set(known)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("axpby", "swap")])
class TestTorch:
    def run(self, name):
        pytest.importorskip("torch")
        import rooftile.torch

        return lambda *xs: getattr(rooftile.torch, name)(*xs, **OPTIONS.get(name, {}))

    def tensors(self, name, dtype=np.float64):
        import torch

        return [torch.from_numpy(x).requires_grad_() for x in inputs(name, dtype)]

    def test_gradients(self, name):
        run = self.run(name)
        import torch

        xs = self.tensors(name)
        torch.autograd.gradcheck(run, xs)
        torch.autograd.gradgradcheck(run, xs)
        # of the own functions, too
        torch.autograd.gradcheck(lambda *xs: getattr(rooftile, name)(*xs, **OPTIONS.get(name, {})), xs)

    def test_operator_compile_and_transforms(self, name):
        run = self.run(name)
        import torch

        xs = self.tensors(name, np.float32)
        torch.library.opcheck(getattr(torch.ops.rooftile, name).default, tuple(xs))
        expected = torch.autograd.grad(run(*xs).square().sum(), xs)
        torch._dynamo.reset()
        compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
        plain = [x.detach() for x in xs]
        every = tuple(range(len(xs)))
        batched = torch.vmap(torch.func.grad(lambda *xs: run(*xs).square().sum(), argnums=every))(*[x[None] for x in plain])
        for gradients in (torch.autograd.grad(compiled(*xs).square().sum(), xs), [g[0] for g in batched],
                          torch.func.grad(lambda *xs: run(*xs).square().sum(), argnums=every)(*plain)):
            for a, e in zip(gradients, expected, strict=True):
                torch.testing.assert_close(a, e)


@pytest.mark.parametrize("name", NAMES)
def test_jax(name):
    jax = pytest.importorskip("jax")
    import jax.test_util

    import rooftile.jax

    def run(*xs):
        return getattr(rooftile.jax, name)(*xs, **OPTIONS.get(name, {}))

    with jax.enable_x64(True):
        xs = [jax.numpy.asarray(x) for x in inputs(name)]
        jax.test_util.check_grads(run, xs, order=2, modes=["rev"], rtol=1e-4)
        jax.test_util.check_grads(jax.jit(jax.vmap(run)), xs, order=1, modes=["rev"], rtol=1e-4)


def test_at_zero_and_of_what_is_not_read():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    import rooftile.jax
    import rooftile.torch

    for name in ("nrm2", "asum"):
        x = torch.zeros(5, requires_grad=True)
        assert torch.autograd.grad(getattr(rooftile.torch, name)(x), x)[0].tolist() == [0] * 5
        assert jax.grad(getattr(rooftile.jax, name))(jax.numpy.zeros(5)).tolist() == [0] * 5
    y = jax.numpy.full(3, np.inf)
    gradients = jax.grad(lambda x, y: rooftile.jax.axpby(x, y, alpha=2, beta=0).sum(), argnums=(0, 1))(y, y)
    assert [g.tolist() for g in gradients] == [[2] * 3, [0] * 3]


def test_half_and_integers():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    import rooftile.jax
    import rooftile.torch

    x = torch.full((8,), 2e4, dtype=torch.float16, requires_grad=True)  # its squares overflow
    (g,) = torch.autograd.grad(rooftile.torch.nrm2(x), x)
    torch.testing.assert_close(g, torch.full((8,), 8 ** -0.5, dtype=torch.float16))
    i = jax.numpy.arange(6).reshape(2, 3)
    assert jax.grad(lambda w: (w * rooftile.jax.transpose(i)).sum())(1.0) == 15
    assert jax.vjp(rooftile.jax.copy, i)[1](np.zeros((2, 3), jax.dtypes.float0))[0].dtype == jax.dtypes.float0
