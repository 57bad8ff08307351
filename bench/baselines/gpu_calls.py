"""What a user would pick instead on a GPU: for gpu_baselines.py, which times it. A case is what the bench asks for; each baseline
gives a list of ways to compute it.
"""

import base64
import glob
import importlib
import importlib.util
import os
import sys

try:
    import torch
except Exception:
    torch = None

device = sys.argv[1] if len(sys.argv) > 1 else "cuda"


def load(module):
    try:
        return importlib.import_module(module)
    except Exception:
        return None


here = torch is not None and (device == "cpu" or torch.cuda.is_available())
if here:
    torch.set_grad_enabled(False)
    ours = load("rooftile_triton") or load("triton_kernels")
    if device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        ours = None
    on_gpu = load if device == "cuda" else lambda module: None
    liger_softmax, liger_norm = on_gpu("liger_kernel.ops.softmax"), on_gpu("liger_kernel.ops.layer_norm")
    quack_softmax, quack_norm = on_gpu("quack.softmax"), on_gpu("quack.rmsnorm")


def folders_baselines():
    """What op folders say themselves (rooftile/ops/<op>/baselines.py): beside this file, or in the source tree."""
    place = os.path.dirname(os.path.abspath(__file__))
    paths = glob.glob(os.path.join(place, "rooftile_baselines_*.py")) or glob.glob(
        os.path.join(place, "..", "..", "rooftile", "ops", "*", "baselines.py")
    )
    modules = []
    for path in sorted(paths):
        spec = importlib.util.spec_from_file_location("baselines_" + str(len(modules)), path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        modules.append(module)
    return modules


baselines = folders_baselines() if here else []


def version_of(package):
    try:
        from importlib.metadata import version

        return version(package)
    except Exception:
        return "unknown"


TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "u8": "uint8", "i8": "int8",
         "i32": "int32", "i64": "int64"}  # fmt: skip


class Operand:
    """A dense tensor of the pattern, repeated, `offset` elements behind an allocation's start."""

    def __init__(self, description):
        self.name = description["name"]
        self.shape = description["shape"]
        self.written = description["written"]
        self.dtype = getattr(torch, TYPES[description["dtype"]])
        self.count = 1
        for extent in self.shape:
            self.count *= extent
        offset = description.get("offset", 0)
        self.tensor = torch.empty(self.count + offset, dtype=self.dtype, device=device)[offset:].view(self.shape)
        self.pattern = description.get("pattern")
        self.fill()

    def fill(self):
        if self.pattern is None:
            self.tensor.zero_()
            return
        pattern = torch.frombuffer(bytearray(base64.b64decode(self.pattern)), dtype=self.dtype).to(device)
        flat = self.tensor.view(-1)
        whole = self.count // pattern.numel() * pattern.numel()
        if whole:
            flat[:whole].view(-1, pattern.numel()).copy_(pattern)
        flat[whole:] = pattern[: self.count - whole]


class Case:
    def __init__(self, request):
        self.function = request["function"]
        self.parameters = request["parameters"] or {}
        self.named = request["named"]
        self.operands = {o["name"]: Operand(o) for o in request["operands"]}
        self.inputs = [o.tensor for o in self.operands.values() if not o.written]
        self.outputs = [o for o in self.operands.values() if o.written]
        self.output = self.outputs[0].tensor

    def get(self, name):
        return self.operands[name].tensor if name in self.operands else None

    def parameter(self, name, otherwise):
        return self.parameters.get(name, otherwise)

    def rows(self, name):
        tensor = self.get(name)
        return tensor.view(-1, tensor.shape[-1])

    def ordered(self, **named):
        """Results in the order of the written operands; None for what was not computed."""
        return tuple(named.get(o.name) for o in self.outputs)


# ---- The functions, as a user writes them. Each baseline gives a list of ways to compute a case; the fastest counts. A way
# returns one tensor or None for each written operand.


def add_of(x, y):
    return x + y


def axpby_of(x, y, a, b):
    return y.copy_(a * x + b * y)


def dot_of(x, y):
    return (x.float() * y.float()).sum() if x.dtype != torch.float64 else (x * y).sum()


def copy_of(x):
    return x.clone()


def softmax_of(x, log):
    return torch.log_softmax(x, -1) if log else torch.softmax(x, -1)


def softmax_backward_of(dy, y, log):
    backward = torch.ops.aten._log_softmax_backward_data if log else torch.ops.aten._softmax_backward_data
    return backward(dy, y, -1, dy.dtype)


def layer_norm_of(x, weight, bias, eps):
    return torch.native_layer_norm(x, [x.shape[-1]], weight, bias, eps)


def layer_norm_backward_of(dy, x, mean, rstd, weight, bias):
    return torch.ops.aten.native_layer_norm_backward(dy, x, [x.shape[-1]], mean, rstd, weight, bias, [True] * 3)


def transpose_of(x):
    return x.transpose(-1, -2).contiguous()


def gray_of(rgb, r, g, b):
    rgb = rgb.float()
    return (rgb[..., 0] * r + rgb[..., 1] * g + rgb[..., 2] * b + 0.5).to(torch.uint8)


def gray_by_product(rgb, weights):
    return (rgb.float() @ weights + 0.5).to(torch.uint8)


def arguments_of(case):
    """The function of a case and what it is called with; None for a case that it does not compute."""
    f, inputs = case.function, case.inputs
    for module in baselines:
        if f in module.PYTORCH:
            return module.PYTORCH[f](case)
    if f in ("softmax", "softmax_backward") and case.parameter("scale", 1) != 1:
        return None
    if f == "add":
        return add_of, inputs
    if f == "axpby":
        return axpby_of, [inputs[0], case.output, case.parameter("alpha", 0.7), case.parameter("beta", -0.3)]
    if f == "dot":
        return dot_of, [x.flatten() for x in inputs]
    if f == "copy":
        return copy_of, inputs
    if f == "softmax":
        return softmax_of, [inputs[0], bool(case.parameter("log", 0))]
    if f == "softmax_backward":
        return softmax_backward_of, [case.get("dy"), case.get("y"), bool(case.parameter("log", 0))]
    if f == "layer_norm" and case.get("residual") is None:
        return layer_norm_of, [case.get("x"), case.get("weight"), case.get("bias"), case.parameter("eps", 1e-5)]
    if f == "layer_norm_backward" and len(case.outputs) == 3 and case.get("weight") is not None:
        x, mean, rstd = case.get("x"), case.get("mean"), case.get("rstd")
        one = [*mean.shape, 1]
        return layer_norm_backward_of, [case.get("dy"), x, mean.view(one), rstd.view(one), case.get("weight"),
                                        torch.zeros_like(case.get("weight"))]  # fmt: skip
    if f == "transpose":
        return transpose_of, inputs
    if f == "rgb_to_gray":
        return gray_of, [inputs[0], *((0.21, 0.72, 0.07) if case.parameter("luminosity", 0) else (0.299, 0.587, 0.114))]
    return None


def in_order(case, results):
    """What a function returned, in the order of the written operands."""
    if torch.is_tensor(results):
        return (results,)
    if any(case.function in module.PYTORCH for module in baselines):
        return tuple(results)
    results = [r.flatten() if r is not None else None for r in results]
    names = {"layer_norm": ("y", "mean", "rstd"), "layer_norm_backward": ("dx", "dweight", "dbias")}[case.function]
    return case.ordered(**dict(zip(names, results)))


def torch_eager(case):
    found = arguments_of(case)
    if found is None:
        return []
    function, arguments = found
    x = case.inputs[0] if case.inputs else None
    ways = [lambda: in_order(case, function(*arguments))]
    out = case.output
    if case.function == "add":
        ways = [lambda: (torch.add(*arguments, out=out),)]
    elif case.function == "axpby":
        ways = [lambda: (out.mul_(arguments[3]).add_(x, alpha=arguments[2]),), *ways]
    elif case.function == "dot":
        return []  # torch.dot is cuBLAS's
    elif case.function == "copy":
        ways = [lambda: (out.copy_(x),)]
    elif case.function == "softmax" and not arguments[1]:
        ways.append(lambda: (torch.softmax(x, -1, out=out),))
    elif case.function == "rgb_to_gray":
        weights = torch.tensor(arguments[1:], device=device)
        ways.append(lambda: (gray_by_product(x, weights),))
    return ways


def compiled(case, **options):
    found = arguments_of(case)
    if found is None:
        return []
    function, arguments = found
    fast = torch.compile(function, fullgraph=True, dynamic=False, **options)
    return [lambda: in_order(case, fast(*arguments))]


def torch_compile(case):
    return compiled(case)


def torch_autotuned(case):
    return compiled(case, mode="max-autotune-no-cudagraphs") if case.named else []  # graphs are captured below


def cublas(case):
    if case.function != "dot":
        return []
    x, y = (t.flatten() for t in case.inputs)
    return [lambda: (torch.dot(x, y),)]


def triton_ours(case):
    f, out = case.function, case.output
    if f == "add":
        x, y = case.inputs

        def run():
            ours.add(x, y, out)
            return (out,)

    elif f == "softmax" and case.parameter("scale", 1) == 1 and not case.parameter("log", 0):
        x, y = case.rows("x"), case.rows("y")

        def run():
            ours.softmax(x, y)
            return (out,)

    elif f == "layer_norm" and len(case.outputs) == 3 and case.get("residual") is None and case.get("bias") is not None:
        x, y = case.rows("x"), case.rows("y")
        mean, rstd, eps = case.get("mean").view(-1), case.get("rstd").view(-1), case.parameter("eps", 1e-5)
        weight, bias = case.get("weight"), case.get("bias")

        def run():
            ours.layer_norm(x, weight, bias, y, mean, rstd, eps)
            return case.ordered(y=y, mean=mean, rstd=rstd)

    else:
        return []
    return [run]


def liger(case):
    f = case.function
    for module in baselines:
        if f in module.LIGER and device == "cuda":
            return module.LIGER[f](case)
    plain = case.parameter("scale", 1) == 1 and not case.parameter("log", 0)
    if f == "softmax" and plain and liger_softmax:
        x = case.rows("x")
        return [lambda: (liger_softmax._softmax_forward(x)[0],)]
    if f == "softmax_backward" and plain and liger_softmax:
        y, dy = case.rows("y"), case.rows("dy")
        _, *settings = liger_softmax._softmax_forward(y)
        return [lambda: (liger_softmax._softmax_backward(dy, y, *settings),)]
    if f == "layer_norm" and case.get("residual") is None and case.get("bias") is not None and liger_norm:
        x, weight, bias, eps = case.rows("x"), case.get("weight"), case.get("bias"), case.parameter("eps", 1e-5)

        def run():
            y, _, mean, rstd, _, _ = liger_norm.layer_norm_forward(x, weight, bias, eps)
            return case.ordered(y=y, mean=mean, rstd=rstd)

        return [run]
    if f == "layer_norm_backward" and len(case.outputs) == 3 and case.get("weight") is not None and liger_norm:
        dy, x, weight = case.rows("dy"), case.rows("x"), case.get("weight")
        mean, rstd = case.get("mean").view(-1), case.get("rstd").view(-1)

        def run():
            dx, dw, db = liger_norm.layer_norm_backward(dy, x, weight, weight, mean, rstd)
            return case.ordered(dx=dx, dweight=dw, dbias=db)

        return [run]
    return []


def quack(case):
    f = case.function
    plain = case.parameter("scale", 1) == 1 and not case.parameter("log", 0)
    if f == "softmax" and plain and quack_softmax:
        x = case.rows("x")
        return [lambda: (quack_softmax.softmax_fwd(x),)]
    if f == "softmax_backward" and plain and quack_softmax:
        y, dy = case.rows("y"), case.rows("dy")
        return [lambda: (quack_softmax.softmax_bwd(dy, y),)]
    if f == "layer_norm" and case.get("residual") is None and case.get("bias") is not None and quack_norm:
        # It takes float32 weights alone; what they cost to read is nothing beside the rows.
        x, weight, bias, eps = case.rows("x"), case.get("weight"), case.get("bias"), case.parameter("eps", 1e-5)
        weight, bias = weight.float(), bias.float()

        def run():
            y, rstd, mean = quack_norm.layernorm_fwd(x, weight, bias, eps, True, True)
            return case.ordered(y=y, mean=mean, rstd=rstd)

        return [run]
    if f == "layer_norm_backward" and len(case.outputs) == 3 and case.get("weight") is not None and quack_norm:
        dy, x, weight = case.rows("dy"), case.rows("x"), case.get("weight")
        mean, rstd = case.get("mean").view(-1), case.get("rstd").view(-1)

        def run():
            dx, dw, db = quack_norm.layernorm_bwd(x, weight, dy, rstd, mean)
            return case.ordered(dx=dx, dweight=dw, dbias=db)

        return [run]
    return []


def baselines():
    """Name, version, ways, and whether it is warmed: what compiles."""
    found = []
    if not here:
        return found
    found.append(("PyTorch", torch.__version__, torch_eager, False))
    found.append(("torch.compile", torch.__version__, torch_compile, True))
    found.append(("max-autotune", torch.__version__, torch_autotuned, True))
    if device == "cuda":
        found.append(("cuBLAS", f"CUDA {torch.version.cuda}", cublas, False))
    if ours:
        found.append(("Triton", ours.triton.__version__, triton_ours, True))
    if liger_softmax or liger_norm or any(module.LIGER for module in baselines):
        found.append(("Liger", version_of("liger-kernel"), liger, True))
    if quack_softmax or quack_norm:
        found.append(("QuACK", version_of("quack-kernels"), quack, True))
    return found


def chosen(request):
    only = request.get("only") or []
    return [baseline for baseline in baselines() if not only or baseline[0] in only]
