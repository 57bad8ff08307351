"""examples/device_query.py, lesson 5's: here, and with a GPU that is played."""

import pathlib
import runpy
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch")

FILE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "device_query.py"


def test_here():
    said = subprocess.run([sys.executable, str(FILE)], capture_output=True, text=True)
    assert said.stdout.startswith(f"PyTorch {torch.__version__}, of CUDA ")
    if torch.cuda.is_available():
        assert said.returncode == 0 and "device 0: " in said.stdout and "code for it      sm_" in said.stdout
    else:
        assert said.returncode == 1 and said.stderr.startswith("device_query: no GPU: ") and said.stderr.count("\n") == 1


def test_a_played_gpu(monkeypatch, capsys):
    named = ("major minor multi_processor_count max_threads_per_multi_processor regs_per_multiprocessor max_threads_per_block "
             "shared_memory_per_multiprocessor shared_memory_per_block shared_memory_per_block_optin L2_cache_size name").split()
    assert all(hasattr(torch._C._CudaDeviceProperties, name) for name in named) or not torch.version.cuda
    numbers = (9, 0, 132, 2048, 65536, 1024, 228 << 10, 48 << 10, 227 << 10, 50 << 20, "A GPU")
    properties = types.SimpleNamespace(**dict(zip(named, numbers, strict=True)))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1 << 30, 80 << 30))
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_80", "sm_90"])
    runpy.run_path(str(FILE))["query"](3)
    assert capsys.readouterr().out.splitlines() == [
        "device 3: A GPU, compute capability 9.0",
        "  multiprocessors  132, each 2048 threads, 65536 registers, 228 KiB of shared memory",
        "  a block          1024 threads, 48 KiB of shared memory, 227 if the kernel opts in",
        "  memory           81920 MiB, 1024 free; L2 50 MiB",
        "  code for it      sm_90; this PyTorch holds sm_80 sm_90"]
