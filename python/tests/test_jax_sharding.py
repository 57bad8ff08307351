"""rooftile.jax on arrays that several devices share. XLA reads how many devices a CPU is when it starts: a process of its own."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("jax")

DEVICES = 4
if os.environ.get("ROOFTILE_TEST_DEVICES") != str(DEVICES):

    def test_on_several_devices():
        env = os.environ | {"ROOFTILE_TEST_DEVICES": str(DEVICES), "JAX_PLATFORMS": "cpu",
                            "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}"}
        run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__], env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert run.returncode == 0, run.stdout

else:
    import jax
    import jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    import rooftile.jax as ours

    def numbers(*shape, seed=0):
        return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)

    @pytest.fixture(params=[AxisType.Auto, AxisType.Explicit], ids=["automatic", "explicit"])
    def mesh(request):
        return jax.make_mesh((DEVICES,), ("d",), axis_types=(request.param,))

    def on(mesh, x, *spec):
        return jax.device_put(x, NamedSharding(mesh, P(*spec)))

    def spec_of(x):
        named = [*x.sharding.spec]
        return tuple(named + [None] * (x.ndim - len(named)))

    def same(ours, theirs):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-5)

    def gathers(call, *arrays):
        return "all-gather" in jax.jit(call).lower(*arrays).compile().as_text()

    x, w = numbers(8, 16), numbers(16, seed=1)
    ROWS = {"softmax": ours.softmax, "rms_norm": ours.rms_norm, "gelu": ours.gelu, "add": lambda x: ours.add(x, x)}

    @pytest.mark.parametrize("name", ROWS)
    def test_rows_stay_where_they_are(mesh, name):
        call = ROWS[name]
        grad = jax.grad(lambda x: (call(x) ** 2)[:, 0].sum())
        shared = on(mesh, x, "d")
        for run in (call, grad):
            assert not gathers(run, shared)
            assert spec_of(jax.jit(run)(shared)) == ("d", None)
            same(jax.jit(run)(shared), run(x))
        assert spec_of(call(shared)) == ("d", None)

    def test_rows_in_two_dimensions(mesh):
        y = numbers(4, 8, 16)
        for spec in (("d",), (None, "d")):
            result = jax.jit(ours.softmax)(on(mesh, y, *spec))
            assert spec_of(result)[:2] == (*spec, None)[:2]
            same(result, ours.softmax(y))

    def test_a_row_that_is_shared_comes_together(mesh):
        shared = on(mesh, x, None, "d")
        same(jax.jit(ours.softmax)(shared), ours.softmax(x))
        assert spec_of(jax.jit(ours.gelu)(shared)) == (None, "d")

    def test_causal_queries_come_together(mesh):
        y = numbers(2, 8, 16)
        if "causal" not in ours.known["softmax"].defaults:
            pytest.skip("a library without")
        call = jax.jit(lambda x: ours.softmax(x, causal=True))
        same(call(on(mesh, y, None, "d")), call(y))
        y = numbers(4, 8, 16)
        assert spec_of(call(on(mesh, y, "d"))) == ("d", None, None)
        same(call(on(mesh, y, "d")), call(y))

    def loss(x, w):
        return (ours.layer_norm(x, weight=w) ** 2)[:, 0].sum()

    def test_a_weights_gradient_is_the_sum_over_devices(mesh):
        dx, dw = jax.jit(jax.grad(loss, (0, 1)))(on(mesh, x, "d"), w)
        for got, expected in zip((dx, dw), jax.grad(loss, (0, 1))(x, w)):
            same(got, expected)
        assert spec_of(dx) == ("d", None) and spec_of(dw) == (None,)

    def test_vmap(mesh):
        y = numbers(4, 2, 16)
        result = jax.jit(jax.vmap(ours.softmax))(on(mesh, y, "d"))
        assert spec_of(result)[0] == "d"
        same(result, ours.softmax(y))

    def test_an_elements_place_counts(mesh):
        jax.config.update("jax_enable_x64", True)
        try:
            run = lambda x: ours.dropout(x, jnp.zeros(1, jnp.int64))
            same(jax.jit(run)(on(mesh, x, "d")), run(x))
        finally:
            jax.config.update("jax_enable_x64", False)

    def in_shards(mesh, call, *specs):
        return jax.shard_map(call, mesh=mesh, in_specs=specs, out_specs=P("d"))

    @pytest.mark.parametrize("name", ROWS)
    def test_shard_map(mesh, name):
        call, shared = ROWS[name], on(mesh, x, "d")
        mapped = in_shards(mesh, call, P("d"))
        same(jax.jit(mapped)(shared), call(x))
        objective = lambda f: lambda x: (f(x) ** 2)[:, 0].sum()
        expected = jax.grad(objective(call))(x)
        same(jax.jit(jax.grad(objective(mapped)))(shared), expected)
        same(jax.jit(in_shards(mesh, jax.grad(objective(call)), P("d")))(shared), expected)

    def test_shard_map_with_a_weight_that_all_devices_have(mesh):
        mapped = in_shards(mesh, lambda x, w: ours.layer_norm(x, weight=w), P("d"), P())
        got = jax.jit(jax.grad(lambda x, w: (mapped(x, w) ** 2)[:, 0].sum(), (0, 1)))(on(mesh, x, "d"), w)
        for its, expected in zip(got, jax.grad(loss, (0, 1))(x, w)):
            same(its, expected)

    def test_products_in_a_shard_map(mesh):
        b = numbers(16, 8, seed=2)
        mapped = in_shards(mesh, ours.gemm, P("d"), P())
        got = jax.jit(jax.grad(lambda x, b: (mapped(x, b) ** 2).sum(), (0, 1)))(on(mesh, x, "d"), b)
        for its, expected in zip(got, jax.grad(lambda x, b: ((x @ b) ** 2).sum(), (0, 1))(x, b)):
            np.testing.assert_allclose(np.asarray(its), np.asarray(expected), rtol=1e-4, atol=1e-3)
