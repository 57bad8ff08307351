"""The same calls on a GPU, where there is one and the package has its plug-in."""

import gc
import itertools

import numpy as np
import pytest
from conftest import ON_CPUS_ALONE, arguments, follows, learns

torch = pytest.importorskip("torch")

import rooftile
import rooftile.torch
from rooftile import _functions
from rooftile.torch._operators import known

if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)
try:
    rooftile.Queue("cuda")
except ValueError as error:
    pytest.skip(str(error), allow_module_level=True)

DIFFERENTIABLE = [n for n, f in known.items() if learns(f) and not f.mutates]
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there is one GPU")


@pytest.fixture(params=[n for n, f in _functions.signatures.items() if follows(f) and n not in ON_CPUS_ALONE])
def function(request):
    return request.param


def as_list(result):
    return list(result) if isinstance(result, tuple) else [result]


def tensors(name, optional=False, device="cuda"):
    places, words = arguments(name, optional)
    return [torch.from_numpy(p).to(device) for p in places], {n: torch.from_numpy(w).to(device) for n, w in words.items()}


def busy(seconds=0.05):
    """Work on the current stream that takes about so long."""
    torch.cuda._sleep(int(seconds * 1.5e9))


# ---- Results


def numpy_of(tensor):
    """NumPy has no 8-bit floats of its own."""
    tensor = tensor.cpu()
    return (tensor.float() if tensor.is_floating_point() and tensor.itemsize == 1 else tensor).numpy()


def assert_like(ours, theirs):
    """Sums in another order: where terms cancel, the rounding is that of the largest numbers."""
    if theirs.dtype.kind == "V":  # ml_dtypes' 8-bit floats
        theirs = theirs.astype(np.float32)
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5 * np.abs(theirs).max(initial=1))


@pytest.mark.parametrize("optional", [False, True])
def test_tensors_give_what_the_cpu_gives(function, call, optional):
    places, words = tensors(function, optional)
    numpy_places, numpy_words = arguments(function, optional)
    wanted = dict.fromkeys(known[function].optional_outputs, True) if optional else {}
    for ours, theirs in zip(as_list(call(*places, **words, **wanted)), as_list(call(*numpy_places, **numpy_words, **wanted)),
                            strict=True):
        assert ours.is_cuda
        assert_like(numpy_of(ours), theirs)


def test_out_receives_it(function, call):
    if not _functions.has_out(_functions.signatures[function]):
        pytest.skip("writes its operand")
    places, words = tensors(function)
    fresh = as_list(call(*places, **words))
    out = [torch.empty_like(f) for f in fresh]
    results = as_list(call(*places, **words, out=out[0] if len(out) == 1 else tuple(out)))
    for r, o, f in zip(results, out, fresh, strict=True):
        assert r is o and torch.equal(o, f)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_strides_and_dtypes(dtype):
    x = torch.randn(5, 8, 66, device="cuda").to(dtype).transpose(0, 1)[..., ::2]
    y = rooftile.softmax(x)
    assert y.dtype == dtype
    torch.testing.assert_close(y.float(), torch.softmax(x.float(), -1), rtol=torch.finfo(dtype).eps * 2, atol=1e-6)
    assert rooftile.softmax(torch.empty(0, 5, device="cuda")).shape == (0, 5)


# ---- The same bits


@pytest.mark.parametrize("size", [1, 16, 64, 2100])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_decoding_gives_the_bits_of_a_prefill(size, dtype):
    """200 random lengths in one call, their pages anywhere in the cache."""
    tokens, heads, keys, d = 2100, 8, 2, 64
    random = torch.Generator("cuda").manual_seed(size)
    q, k, v = (torch.randn(1, tokens, h, d, generator=random, device="cuda").to(dtype) for h in (heads, keys, keys))
    prefill, lse = rooftile.attention(q, k, v, causal=True, lse=True)
    pages = -(-tokens // size)
    where = torch.randperm(pages, generator=random, device="cuda")
    k_cache, v_cache = (torch.full((pages, size, keys, d), float("nan"), dtype=dtype, device="cuda") for _ in range(2))
    slots = (where[:, None] * size + torch.arange(size, device="cuda")).flatten()[:tokens]
    rooftile.kv_cache_append(k[0], v[0], slots, k_cache, v_cache)
    lengths = torch.randint(1, tokens + 1, (200,), generator=random, device="cuda").int()
    last = lengths.long() - 1
    y, its = rooftile.paged_attention(q[0, last][:, None].contiguous(), k_cache, v_cache, where.int().repeat(200, 1), lengths, lse=True)
    assert torch.equal(y[:, 0], prefill[0, last]) and torch.equal(its[..., 0], lse[0][:, last].T)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("function, words", [("nf4", {"block": 64}), ("int4", {"group": 128})])
def test_products_of_codes_have_the_bits_of_products_of_their_numbers(function, words, dtype):
    """Whatever the number of rows."""
    n, k = 1024, 2048
    w, x = torch.randn(n, k, device="cuda"), torch.randn(600, k, device="cuda").to(dtype)
    packed, scales, *_ = getattr(rooftile, f"quantize_{function}")(w, **words)
    numbers = torch.empty(n, k, dtype=dtype, device="cuda")
    getattr(rooftile, f"dequantize_{function}")(packed, scales, **words, out=numbers)
    whole = rooftile.gemm(x, numbers.T)
    for rows in (1, 2, 8, 9, 16, 17, 64, 65, 600):
        y = torch.empty_like(whole[:rows])
        getattr(rooftile, f"gemm_{function}")(x[:rows], packed, scales, **words, out=y)
        assert torch.equal(y, whole[:rows])


# ---- Streams


def test_calls_follow_the_current_stream():
    x = torch.zeros(64, 1 << 20, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        busy()
        x += 1  # not yet done when the copy is called: on another stream it would see 0
        y = rooftile.copy(x)
    stream.synchronize()
    assert (y == 1).all()


def test_a_call_does_not_wait():
    x, y = torch.randn(8, 64, device="cuda"), torch.empty(8, 64, device="cuda")
    rooftile.softmax(x, out=y)
    torch.cuda.synchronize()
    busy(0.5)
    for _ in range(10):
        rooftile.softmax(x, out=y)
        rooftile.torch.softmax(x)
        rooftile.layer_norm_backward(x, x, x[:, 0].float(), x[:, 0].float(), dweight=True)
    assert not torch.cuda.current_stream().query()  # nobody synchronised
    torch.cuda.synchronize()


def test_memory_of_a_queue_on_another_stream_is_not_given_away_too_soon():
    """A workspace and an output belong to the queue's stream until it is done, whoever else asks for memory meanwhile."""
    rows, columns = 1 << 14, 256
    x, dy = (torch.randn(rows, columns, device="cuda") for _ in range(2))
    mean, rstd = x.mean(-1), 1 / x.std(-1, correction=0)
    expected = rooftile.layer_norm_backward(x, dy, mean, rstd, dweight=True, dbias=True)
    stream = torch.cuda.Stream()
    queue = rooftile.Queue("cuda", index=x.device.index, stream=stream.cuda_stream)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        busy(0.2)
    result = rooftile.layer_norm_backward(x, dy, mean, rstd, dweight=True, dbias=True, queue=queue)
    others = [torch.full((1 << 16,), float("nan"), device="cuda") for _ in range(200)]  # takes what is free, and writes it
    others += [torch.full((1 << 20,), float("nan"), device="cuda") for _ in range(20)]
    torch.cuda.synchronize()
    for a, e in zip(result, expected, strict=True):
        assert torch.equal(a, e)
    del others


# ---- Graphs


@pytest.mark.parametrize("call", [lambda x: rooftile.softmax(x), lambda x: rooftile.torch.softmax(x),
                                  lambda x: rooftile.dot(x, x), lambda x: rooftile.rms_norm(x)],
                         ids=["softmax", "operator", "dot", "rms_norm"])
def test_a_graph_replays(call):
    """Its stream is met for the first time while it is captured: the queue is made then."""
    x = torch.randn(8, 1024, device="cuda")
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        y = call(x)
    for _ in range(3):
        x.normal_()
        graph.replay()
        torch.testing.assert_close(y, call(x), rtol=0, atol=0)


def test_a_graph_of_a_step_with_a_workspace():
    norm = rooftile.torch.nn.LayerNorm(256).cuda()
    x = torch.randn(4096, 256, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            norm(x).square().sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    for p in (x, *norm.parameters()):
        p.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        norm(x).square().sum().backward()
    with torch.no_grad():
        x.normal_()
    graph.replay()
    actual = [p.grad.clone() for p in (x, *norm.parameters())]
    expected = torch.autograd.grad(norm(x).square().sum(), (x, *norm.parameters()))
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=0, atol=0)


def test_compiled_with_cuda_graphs():
    torch._dynamo.reset()
    norm = rooftile.torch.nn.RMSNorm(1024).cuda()
    step = torch.compile(lambda x: rooftile.torch.softmax(norm(x) * 2), fullgraph=True, mode="reduce-overhead")
    for _ in range(4):
        x = torch.randn(8, 1024, device="cuda")
        torch.testing.assert_close(step(x), torch.softmax(norm(x) * 2, -1), rtol=1e-5, atol=1e-6)


# ---- Devices


def test_device_mixes_are_refused():
    x = torch.ones(2, 3, device="cuda")
    with pytest.raises(ValueError, match="y is on the CPU, x on CUDA device 0"):
        rooftile.softmax(x, out=torch.empty(2, 3))
    with pytest.raises(ValueError, match='the arrays are on CUDA, the queue\'s device is "cpu"'):
        rooftile.softmax(x, queue=rooftile.Queue(threads=1))
    with pytest.raises(ValueError, match='the arrays are on CUDA, the queue\'s device is "emulated"|no such plug-in'):
        rooftile.softmax(x, device="emulated")
    with pytest.raises(ValueError, match='the arrays are on the CPU, the queue\'s device is "cuda"'):
        rooftile.softmax(torch.ones(2, 3), device="cuda")
    with pytest.raises(ValueError, match="x on CUDA device 0"):
        rooftile.softmax(x, out=np.empty((2, 3), np.float32))


def test_a_queue_knows_its_gpu():
    queue = rooftile.Queue("cuda")
    assert queue.index == torch.cuda.current_device() and queue.architecture >= 80 and queue.isa.startswith("sm_")
    with pytest.raises(ValueError, match="device is 99, there are"):
        rooftile.Queue("cuda", index=99)


@two_gpus
def test_the_second_gpu(function, call):
    for current in (0, 1):
        with torch.cuda.device(current):
            for device in ("cuda:0", "cuda:1"):
                places, words = tensors(function, device=device)
                numpy_places, numpy_words = arguments(function)
                for ours, theirs in zip(as_list(call(*places, **words)), as_list(call(*numpy_places, **numpy_words))):
                    assert str(ours.device) == device
                    np.testing.assert_allclose(ours.cpu().numpy(), theirs, rtol=2e-5, atol=2e-5)
            assert torch.cuda.current_device() == current


@two_gpus
def test_mixes_of_gpus_are_refused():
    x, y = torch.ones(2, 3, device="cuda:0"), torch.ones(2, 3, device="cuda:1")
    with pytest.raises(ValueError, match="y is on CUDA device 1, x on CUDA device 0"):
        rooftile.softmax(x, out=y)
    with pytest.raises(ValueError, match="the arrays are on CUDA device 1, the queue is of device 0"):
        rooftile.softmax(y, queue=rooftile.Queue("cuda", index=0))


# ---- Operators


@pytest.mark.parametrize("optional", [False, True])
def test_opcheck(function, optional):
    f = known[function]
    places, words = tensors(function, optional)
    given = dict(zip([o["name"] for o in f.inputs if not o["optional"]], places)) | words
    args = f.join(given, {}, set(f.optional_outputs) if optional else set())
    if function in DIFFERENTIABLE and optional:
        args = [a.clone().requires_grad_() if n in learns(f) and isinstance(a, torch.Tensor) else a for n, a in itertools.zip_longest(f.order, args)]
    torch.library.opcheck(f.operator, tuple(args))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_the_cpus(name):
    gradients = []
    for device in ("cpu", "cuda"):
        places, words = tensors(name, device=device)
        names = [o["name"] for o in known[name].inputs if not o["optional"]]
        inputs = [p.requires_grad_() for n, p in zip(names, places) if n in learns(known[name])]
        result = as_list(getattr(rooftile.torch, name)(*places, **words))[0]
        gradients.append([g.cpu() for g in torch.autograd.grad((result * result.detach()).sum(), inputs)])
    for cpu, gpu in zip(*gradients, strict=True):
        torch.testing.assert_close(gpu, cpu, rtol=1e-4, atol=1e-5 * max(1, cpu.abs().max().item()))


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_weights_have_gradients(kind):
    x = torch.randn(100, 64, device="cuda", requires_grad=True)
    w = torch.randn(64, device="cuda", requires_grad=True)
    ours = torch.autograd.grad(getattr(rooftile, kind)(x, weight=w, eps=1e-5).square().sum(), (x, w))
    theirs = torch.autograd.grad(getattr(torch.nn.functional, kind)(x, (64,), w, eps=1e-5).square().sum(), (x, w))
    for a, e in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-3, atol=1e-3)
    assert _functions.signatures["layer_norm_backward"]["workspace"]


def test_a_backward_on_another_stream_than_the_default():
    x = torch.randn(1000, 64, device="cuda", requires_grad=True)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = rooftile.layer_norm(x)
        (g,) = torch.autograd.grad((y * y.detach()).sum(), x)
    stream.synchronize()
    (e,) = torch.autograd.grad((rooftile.layer_norm(x) * y.detach()).sum(), x)
    assert torch.equal(g, e)


def test_autocast_and_vmap():
    x = torch.randn(5, 3, 64, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        y = rooftile.torch.nn.LayerNorm(64).cuda()(torch.nn.Linear(64, 64).cuda()(x))
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(torch.vmap(rooftile.torch.softmax)(x), torch.softmax(x, -1), rtol=1e-5, atol=1e-6)


def test_patch_on_a_gpu():
    norm = torch.nn.LayerNorm(64, device="cuda", dtype=torch.bfloat16)
    model = torch.nn.Sequential(norm, torch.nn.GELU(), rooftile.torch.nn.GatedMLP(64, 96, device="cuda", dtype=torch.bfloat16))
    x = torch.randn(3, 64, device="cuda", dtype=torch.bfloat16)
    expected = model(x)
    assert rooftile.torch.patch(model).kept == []
    torch.testing.assert_close(model(x), expected, rtol=2**-5, atol=2**-5)


def test_memory_does_not_grow():
    x = torch.randn(2000, 1024, device="cuda")

    def run():
        y, mean, rstd = rooftile.layer_norm(x, mean=True, rstd=True)
        rooftile.layer_norm_backward(x, y, mean, rstd, dweight=True, dbias=True)
        with pytest.raises(ValueError):
            rooftile.softmax(x, out=x[:2])

    run()
    gc.collect()
    before = torch.cuda.memory_allocated()
    for _ in range(100):
        run()
    assert torch.cuda.memory_allocated() == before


# ---- JAX


def test_jax_on_a_gpu(function):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX has no GPU")
    import rooftile.jax

    numpy_places, numpy_words = arguments(function, True)
    places, words = [jax.numpy.asarray(p) for p in numpy_places], {n: jax.numpy.asarray(w) for n, w in numpy_words.items()}
    call = getattr(rooftile.jax, function)
    expected = as_list(getattr(rooftile, function)(*numpy_places, **numpy_words))
    for result in (call(*places, **words), jax.jit(lambda p, w: call(*p, **w))(places, words)):
        for a, e in zip(as_list(result), expected, strict=True):
            assert next(iter(a.devices())).platform == "gpu"
            assert_like(np.asarray(a), e)
    f = rooftile.jax.known[function]
    if f.backward and np.issubdtype(numpy_places[0].dtype, np.floating):
        ours = jax.grad(lambda x: as_list(call(x, *places[1:], **words))[0].sum())(places[0])
        cpu = jax.devices("cpu")[0]
        on_cpu = [jax.device_put(p, cpu) for p in numpy_places]
        theirs = jax.grad(lambda x: as_list(call(x, *on_cpu[1:], **{n: jax.device_put(w, cpu) for n, w in numpy_words.items()}))[0]
                          .sum())(on_cpu[0])
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-5)
