"""The same calls on a GPU, where there is one and the package has its plug-in."""

import numpy as np
import pytest
from conftest import arguments

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


def as_list(result):
    return list(result) if isinstance(result, tuple) else [result]


def tensors(name):
    places, words = arguments(name)
    return [torch.from_numpy(p).cuda() for p in places], {n: torch.from_numpy(w).cuda() for n, w in words.items()}


def test_tensors_give_what_the_cpu_gives(function, call):
    places, words = tensors(function)
    numpy_places, numpy_words = arguments(function)
    for ours, theirs in zip(as_list(call(*places, **words)), as_list(call(*numpy_places, **numpy_words)), strict=True):
        assert ours.is_cuda
        np.testing.assert_allclose(ours.cpu().numpy(), theirs, rtol=2e-5, atol=2e-5)


def test_calls_follow_the_current_stream():
    x = torch.zeros(64, 1 << 20, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(20):
            x += 1  # still running when the copy is called: on another stream it would see less
        y = rooftile.copy(x)
    stream.synchronize()
    assert (y == 20).all()


def test_a_graph_replays():
    x, y = torch.randn(8, 1024, device="cuda"), torch.empty(8, 1024, device="cuda")
    rooftile.softmax(x, out=y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rooftile.softmax(x, out=y)
    x.normal_()
    graph.replay()
    torch.testing.assert_close(y, torch.softmax(x, -1))


def test_device_mixes_are_refused():
    x = torch.ones(2, 3, device="cuda")
    with pytest.raises(ValueError, match="y is on the CPU, x on CUDA device 0"):
        rooftile.softmax(x, out=torch.empty(2, 3))
    with pytest.raises(ValueError, match='the arrays are on CUDA, the queue\'s device is "cpu"'):
        rooftile.softmax(x, queue=rooftile.Queue(threads=1))
    with pytest.raises(ValueError, match='the arrays are on the CPU, the queue\'s device is "cuda"'):
        rooftile.softmax(torch.ones(2, 3), device="cuda")


@pytest.mark.parametrize("name", [n for n, f in known.items() if f.backward])
def test_gradients_are_the_cpus(name):
    places, words = arguments(name)
    gradients = []
    for device in ("cpu", "cuda"):
        inputs = [torch.from_numpy(p).to(device).requires_grad_() for p in places]
        result = as_list(getattr(rooftile.torch, name)(*inputs, **words))[0]
        gradients.append([g.cpu() for g in torch.autograd.grad((result * result.detach()).sum(), inputs)])
    for a, e in zip(*gradients, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-5)


def test_layer_norms_weights_have_gradients():
    x = torch.randn(100, 64, device="cuda", requires_grad=True)
    w, b = (torch.randn(64, device="cuda", requires_grad=True) for _ in range(2))
    ours = torch.autograd.grad(rooftile.layer_norm(x, weight=w, bias=b).square().sum(), (x, w, b))
    theirs = torch.autograd.grad(torch.nn.functional.layer_norm(x, (64,), w, b).square().sum(), (x, w, b))
    for a, e in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-3, atol=1e-3)
    assert _functions.signatures["layer_norm_backward"]["workspace"]
