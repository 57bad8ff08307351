"""rooftile.torch on DTensors: two processes of a group on one machine."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without distributed", allow_module_level=True)
pytest.importorskip("torch.distributed.tensor")
experimental = pytest.importorskip("torch.distributed.tensor.experimental")
if not hasattr(experimental, "register_sharding"):
    pytest.skip("an older PyTorch", allow_module_level=True)

PROGRAM = r"""
import sys
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import rooftile.torch as ours

rank, world, store = int(sys.argv[1]), 2, sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
mesh = init_device_mesh("cpu", (world,))
torch.manual_seed(0)
x, w, residual = torch.randn(6, 8), torch.randn(8), torch.randn(6, 8)


def check(call, arrays, placements, expected):
    plain = [a.clone().requires_grad_() for a in arrays]
    shared = [distribute_tensor(a, mesh, [p]).requires_grad_() for a, p in zip(arrays, placements)]
    y, theirs = call(*shared), call(*plain)
    assert isinstance(y, DTensor) and y.placements == (expected,), (y.placements, expected)
    torch.testing.assert_close(y.full_tensor(), theirs)
    (y.full_tensor() ** 2)[..., :3].sum().backward()
    (theirs ** 2)[..., :3].sum().backward()
    for s, p in zip(shared, plain):
        torch.testing.assert_close(s.grad.full_tensor(), p.grad)
    return [s.grad.placements[0] for s in shared]


rows, whole = Shard(0), Replicate()
for call in (ours.softmax, ours.gelu, ours.rms_norm, lambda x: ours.softmax(x, log=True)):
    assert check(call, [x], [rows], rows) == [rows]
    check(call, [x], [whole], whole)
check(ours.softmax, [x], [Shard(1)], whole)  # a row that is shared comes together
check(ours.gelu, [x], [Shard(1)], Shard(1))
check(ours.add, [x, residual], [rows, rows], rows)
check(ours.add, [x, residual], [rows, whole], rows)
assert check(lambda x, w: ours.layer_norm(x, weight=w), [x, w], [rows, whole], rows)[0] == rows
check(lambda x, w, r: ours.rms_norm(x, weight=w, residual=r), [x, w, residual], [rows, whole, rows], rows)
check(lambda x: ours.softmax(x), [torch.randn(2, 3, 8)], [Shard(1)], Shard(1))
if "causal" in ours._operators.known["softmax"].defaults:
    y = torch.randn(4, 6, 8)
    check(lambda x: ours.softmax(x), [y], [Shard(1)], Shard(1))
    check(lambda x: ours.softmax(x, causal=True), [y], [rows], rows)
    check(lambda x: ours.softmax(x, causal=True), [y], [Shard(1)], whole)  # a query counts those before it
y, mean = ours.layer_norm(distribute_tensor(x, mesh, [rows]), mean=True)  # another flag, another plan
assert mean.placements == (rows,), mean.placements
torch.testing.assert_close(mean.full_tensor(), x.mean(1))
direct = torch.ops.rooftile.relu(distribute_tensor(x, mesh, [rows]))
torch.testing.assert_close(direct.full_tensor(), x.relu())
dist.destroy_process_group()
"""


def test_two_processes(tmp_path):
    store = tmp_path / "store"
    runs = [subprocess.Popen([sys.executable, "-c", PROGRAM, str(rank), str(store)], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True) for rank in range(2)]
    said = [run.communicate(timeout=300)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], "\n".join(said)
