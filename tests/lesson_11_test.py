"""The kernels of docs/course/11_triton.py against known numbers: plain Python always, PyTorch and Triton (interpreted, on
the CPU) where they are installed.
  lesson_11_test.py SOURCE_FOLDER
"""

import importlib.util
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"
source = sys.argv[1]


def load():
    spec = importlib.util.spec_from_file_location("lesson_11", os.path.join(source, "docs", "course", "11_triton.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expect(name, got, want):
    if got != want:
        at = next((i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1]), min(len(got), len(want)))
        sys.exit(f"lesson_11: {name}: {len(got)} elements, {len(want)} expected; the first that differs is {at}: "
                 f"{got[at:at + 1]}, must be {want[at:at + 1]}")


ran = []
for size in (0, 1, 7, 1023, 1024, 1025, 3000):
    x = [0.5 * i for i in range(size)]
    y = [float(-i) for i in range(size)]
    z = [-0.5 * i for i in range(size)]  # exact in f32
    versions = load()
    expect("add_plain", versions.add_plain(x, y), z)
    expect("add_blocks", versions.add_blocks(x, y), z)
    for name in ("add_torch", "add_triton"):
        if not hasattr(versions, name):
            continue
        add = getattr(versions, name)
        expect(name, add(versions.torch.tensor(x), versions.torch.tensor(y)).tolist(), z)
        ran.append(name)

# As on a machine that has neither.
for module in ("torch", "triton"):
    sys.modules[module] = None
bare = load()
if hasattr(bare, "add_torch") or hasattr(bare, "add_triton"):
    sys.exit("lesson_11: docs/course/11_triton.py found torch or triton where there is none")
expect("add_plain, alone", bare.add_plain([1.0, 2.0], [3.0, 4.0]), [4.0, 6.0])
print("lesson_11: ok, plain Python" + "".join(", " + name for name in dict.fromkeys(ran)))
