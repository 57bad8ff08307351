"""Times PyTorch and OpenCV for `rooftile bench`, one call at a time.

The bench starts this program and speaks with it in lines of JSON on standard input and output:
  {"command": "hello"}                          -> {"peers": [{"name", "version"}]}
  {"command": "prepare", "function", "operands": [{"name", "dtype", "shape", "written", "pattern"}],
   "parameters", "threads", "sampled"}          -> {"calls": [{"id", "name", "version", "call_us"}]}
  {"command": "results", "id"}                  -> {"results": [[values] of each written operand]}
  {"command": "time", "id", "calls", "before"}  -> {"seconds": of all calls together}
                                                   before: "call" once, "evict" the caches, or nothing
  {"command": "release", "id"}                  -> {}
It works on copies of its own of the bench's data: each operand is its pattern, repeated.
"""

import base64
import gc
import json
import mmap
import os
import signal
import sys
import time

# Libraries may print; the bench hears only answers.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the bench, which then closes our input

try:
    import torch
except Exception:
    torch = None
try:
    import cv2
    import numpy
except Exception:
    cv2 = None

EVICTING_BYTES = 1 << 28  # read before each cold sample: more than any last-level cache we know holds twice


class Operand:
    """One tensor: bytes on huge pages, as the bench's own."""

    def __init__(self, description, tiny=False):
        self.name = description["name"]
        self.dtype = description["dtype"]
        # Tiny: one element each, but a pixel stays a pixel.
        self.shape = [n if n == 3 else 1 for n in description["shape"]] if tiny else description["shape"]
        self.written = description["written"]
        size = 1
        for extent in self.shape:
            size *= extent
        bits = {"f64": 64, "i64": 64, "f32": 32, "i32": 32, "f16": 16, "bf16": 16}.get(self.dtype, 8)
        self.bytes = max(size * bits // 8, 1)
        self.memory = mmap.mmap(-1, self.bytes)
        if hasattr(mmap, "MADV_HUGEPAGE") and self.bytes >= 1 << 21:
            self.memory.madvise(mmap.MADV_HUGEPAGE)
        self.read = description["pattern"] is not None
        self.pattern = base64.b64decode(description["pattern"]) if self.read else b"\1"
        self.fill()

    def fill(self):
        # In pieces of whole patterns of about 1 MiB: the pages are touched, the copies are few.
        piece = self.pattern * max(1, (1 << 20) // len(self.pattern))
        for at in range(0, self.bytes, len(piece)):
            part = min(len(piece), self.bytes - at)
            self.memory[at : at + part] = piece[:part]

    def tensor(self):
        types = {
            "f64": torch.float64,
            "f32": torch.float32,
            "f16": torch.float16,
            "bf16": torch.bfloat16,
            "i64": torch.int64,
            "i32": torch.int32,
            "u8": torch.uint8,
            "i8": torch.int8,
        }
        count = 1
        for extent in self.shape:
            count *= extent
        return torch.frombuffer(self.memory, dtype=types[self.dtype], count=count).reshape(self.shape)


class Case:
    def __init__(self, request, tiny=False):
        self.function = request["function"]
        self.parameters = request["parameters"] or {}
        self.operands = {o["name"]: Operand(o, tiny) for o in request["operands"]}
        self.inputs = [o for o in self.operands.values() if not o.written]
        self.outputs = [o for o in self.operands.values() if o.written]

    def get(self, *names):
        """The tensor of the first operand that has one of these names, or None."""
        for name in names:
            if name in self.operands:
                return self.operands[name].tensor()
        return None

    def parameter(self, names, otherwise):
        for name in names:
            if name in self.parameters:
                return self.parameters[name]
        return otherwise


# Each of these gives a list of ways to compute the case; the fastest counts. A way returns what it computed, one
# tensor or None for each written operand.


def torch_softmax(case):
    x, y = case.get("x"), case.get("y")
    if case.parameter(["scale"], 1) != 1:
        return []
    f = torch.log_softmax if case.parameter(["log"], 0) else torch.softmax

    def run():
        f(x, -1, out=y)
        return (y,)

    return [run]


def torch_softmax_backward(case):
    y, dy, dx = case.get("y"), case.get("dy"), case.get("dx")
    if case.parameter(["scale"], 1) != 1:
        return []
    dtype = y.dtype
    if case.parameter(["log"], 0):
        f, g, out = torch.ops.aten._log_softmax_backward_data.out, torch._log_softmax_backward_data, "out"
    else:
        f, g, out = torch.ops.aten._softmax_backward_data.out, torch._softmax_backward_data, "grad_input"
    into = {out: dx}

    def run_into():
        f(dy, y, -1, dtype, **into)
        return (dx,)

    def run():
        return (g(dy, y, -1, dtype),)

    return [run_into, run]


def norm_operands(case):
    x, weight, bias = case.get("x"), case.get("weight", "w", "gamma"), case.get("bias", "b", "beta")
    return x, weight, bias, case.parameter(["eps", "epsilon"], 1e-5)


def ordered(case, **named):
    """Results in the order of the written operands: by name, aliases parted by _or_."""
    flat = {}
    for names, value in named.items():
        for name in names.split("_or_"):
            flat[name] = value
    return tuple(flat.get(o.name) for o in case.outputs)


def torch_layer_norm(case):
    x, weight, bias, eps = norm_operands(case)
    residual, total, y = case.get("residual", "r"), case.get("sum", "s", "h"), case.get("y")
    shape = [x.shape[-1]]
    source = x
    if residual is not None:
        source = total if total is not None else torch.empty_like(x)
    into = torch.ops.aten.native_layer_norm.out
    _, mean, rstd = torch.native_layer_norm(x, shape, weight, bias, eps)

    def run_into():
        if residual is not None:
            torch.add(x, residual, out=source)
        into(source, shape, weight, bias, eps, out0=y, out1=mean, out2=rstd)
        return ordered(case, y=y, mean=mean, rstd=rstd, sum_or_s_or_h=total)

    def run():
        if residual is not None:
            torch.add(x, residual, out=source)
        a, b, c = torch.native_layer_norm(source, shape, weight, bias, eps)
        return ordered(case, y=a, mean=b, rstd=c, sum_or_s_or_h=total)

    return [run_into, run]


def torch_layer_norm_backward(case):
    x, weight, _, _ = norm_operands(case)
    dy, mean, rstd = case.get("dy"), case.get("mean"), case.get("rstd")
    dx = case.get("dx")
    if case.get("dsum", "dresidual", "ds") is not None or mean is None or rstd is None:
        return []
    shape = [x.shape[-1]]
    bias = torch.zeros_like(weight) if weight is not None else None
    # In the shape and type that the forward gives them.
    like = torch.native_layer_norm(x, shape, weight, bias, 1e-5)[1]
    mean, rstd = mean.reshape(like.shape).to(like.dtype), rstd.reshape(like.shape).to(like.dtype)
    mask = [True, weight is not None, bias is not None]
    f = torch.ops.aten.native_layer_norm_backward
    grads = f(dy, x, shape, mean, rstd, weight, bias, mask)
    into = {"out0": dx, "out1": grads[1], "out2": grads[2]} if weight is not None else None

    def name(a, b, c):
        return ordered(case, dx=a, dweight_or_dw_or_dgamma=b, dbias_or_db_or_dbeta=c)

    def run_into():
        f.out(dy, x, shape, mean, rstd, weight, bias, mask, **into)
        return name(dx, grads[1], grads[2])

    def run():
        return name(*f(dy, x, shape, mean, rstd, weight, bias, mask))

    return [run_into, run] if into else [run]


def torch_copy(case):
    x, y = case.inputs[0].tensor(), case.outputs[0].tensor()

    def run():
        y.copy_(x)
        return (y,)

    return [run]


def torch_transpose(case):
    x, y = case.inputs[0].tensor(), case.outputs[0].tensor()

    def run_into():
        y.copy_(x.mT)
        return (y,)

    def run():
        return (x.mT.contiguous(),)

    return [run_into, run]


def torch_add(case):
    a, b, y = case.inputs[0].tensor(), case.inputs[1].tensor(), case.outputs[0].tensor()

    def run():
        torch.add(a, b, out=y)
        return (y,)

    return [run]


def torch_axpby(case):
    x, y = case.inputs[0].tensor(), case.outputs[0].tensor()
    a, b = case.parameter(["alpha"], 0.7), case.parameter(["beta"], -0.3)

    def run():
        y.mul_(b).add_(x, alpha=a)
        return (y,)

    return [run]


def torch_dot(case):
    a, b = case.inputs[0].tensor().flatten(), case.inputs[1].tensor().flatten()

    def run():
        return (torch.dot(a, b),)

    return [run]


def torch_swap(case):
    x, y = case.outputs[0].tensor(), case.outputs[1].tensor()

    def run():
        return y.clone(), x.clone()

    return [run]


def torch_scal(case):
    x, y, a = case.inputs[0].tensor(), case.outputs[0].tensor(), case.parameter(["alpha"], 0.7)

    def run():
        torch.mul(x, a, out=y)
        return (y,)

    return [run]


def torch_norm(order):
    def ways(case):
        x = case.inputs[0].tensor()

        def run():
            return (torch.linalg.vector_norm(x, order, dtype=wide(x)),)

        return [run]

    return ways


def wide(x):
    """What sums are in: halves' in f32."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


TORCH = {
    "softmax": torch_softmax,
    "softmax_backward": torch_softmax_backward,
    "layer_norm": torch_layer_norm,
    "layer_norm_backward": torch_layer_norm_backward,
    "copy": torch_copy,
    "transpose": torch_transpose,
    "add": torch_add,
    "axpby": torch_axpby,
    "dot": torch_dot,
    "swap": torch_swap,
    "scal": torch_scal,
    "nrm2": torch_norm(2),
    "asum": torch_norm(1),
}


def cv2_gray(case):
    source, target = case.inputs[0], case.outputs[0]
    if source.dtype != "u8" or source.shape[-1] != 3 or case.parameter(["luminosity"], 0):
        return []
    height = source.shape[0] if len(source.shape) > 2 else 1
    rgb = numpy.frombuffer(source.memory, numpy.uint8, source.bytes).reshape(height, -1, 3)
    gray = numpy.frombuffer(target.memory, numpy.uint8, target.bytes).reshape(height, -1)

    def run():
        cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY, dst=gray)
        return (gray,)

    return [run]


CV2 = {"rgb_to_gray": cv2_gray}


def libraries():
    found = []
    if torch:
        found.append(("PyTorch", torch.__version__, TORCH))
    if cv2:
        found.append(("OpenCV", cv2.__version__, CV2))
    return found


def seconds_of(run, calls):
    start = time.perf_counter_ns()
    for _ in range(calls):
        run()
    return (time.perf_counter_ns() - start) * 1e-9


def fastest(ways):
    """The fastest way that works; alternated, best of three, of one where a call takes long."""
    best, choice = None, None
    for _ in range(3):
        if best is not None and best > 0.02:
            break
        for way in list(ways):
            try:
                way()
                seconds = seconds_of(way, 1)
            except Exception:
                if len(ways) == 1:
                    raise
                ways.remove(way)
                continue
            if best is None or seconds < best:
                best, choice = seconds, way
    return choice


def call_overhead_us(make, request):
    """What a call costs that has next to nothing to do: the same one on operands of one element, or in vain."""
    try:
        run = fastest(make(Case(request, tiny=True)))
        run()
        return min(seconds_of(run, 200) for _ in range(5)) / 200 * 1e6
    except Exception:
        return 0.0


evicting = None


def evict():
    """Every line of ours out of the caches, and clean ones of a large array in, so that none must be written back."""
    global evicting
    if torch:
        if evicting is None:
            evicting = torch.ones(EVICTING_BYTES // 8, dtype=torch.int64)
        evicting.sum()
    else:
        if evicting is None:
            evicting = numpy.ones(EVICTING_BYTES // 8, dtype=numpy.int64)
        evicting.sum()


calls = {}
last_id = 0
last_case = (None, None)  # what it was made from, and the case: the next number of threads wants the same


def hello(_):
    return {"peers": [{"name": name, "version": version} for name, version, _ in libraries()]}


def prepare(request):
    global last_id, last_case
    calls.clear()
    threads = request["threads"]
    description = [request["function"], request["parameters"], request["operands"]]
    if torch:
        torch.set_num_threads(threads)
    if cv2:
        cv2.setNumThreads(threads)
    answer = {"calls": []}
    case = last_case[1] if last_case[0] == description else None
    last_case = (None, None)  # before another is made: both may not fit
    for name, version, functions in libraries():
        make = functions.get(request["function"])
        if not make:
            continue
        try:
            case = case or Case(request)
            ways = make(case)
            run = fastest(ways) if ways else None
        except Exception as error:
            reason = str(error).strip().splitlines()
            answer["error"] = f"{name} is left out of {request['function']}: {reason[0] if reason else type(error)}"
            continue
        if run is None:
            continue
        last_id += 1
        calls[last_id] = (run, case, request["sampled"])
        overhead = call_overhead_us(make, request)
        answer["calls"].append({"id": last_id, "name": name, "version": version, "call_us": overhead})
    last_case = (description, case)
    return answer


def sampled(result, count):
    if result is None:
        return []
    if torch and isinstance(result, torch.Tensor):
        flat = result.flatten()
        n = min(flat.numel(), count)
        places = [i * flat.numel() // n for i in range(n)]
        values = flat[torch.tensor(places, dtype=torch.int64)].to(torch.float64).tolist()
    else:
        flat = result.reshape(-1)
        n = min(flat.size, count)
        values = [float(flat[i * flat.size // n]) for i in range(n)]
    return [v if v == v and abs(v) != float("inf") else None for v in values]


def results(request):
    run, case, count = calls[request["id"]]
    for operand in case.outputs:
        if operand.read:
            operand.fill()  # it was run before, and each run changes what the next one reads
    return {"results": [sampled(result, count) for result in run()]}


def timed(request):
    run = calls[request["id"]][0]
    if request["before"] == "evict":
        evict()
    elif request["before"] == "call":
        run()
    return {"seconds": seconds_of(run, request["calls"])}


def release(request):
    """The call; its operands stay until the next case, which may want the same."""
    calls.pop(request["id"], None)
    return {}


def main():
    commands = {"hello": hello, "prepare": prepare, "results": results, "time": timed, "release": release}
    if torch:
        torch.inference_mode().__enter__()
    gc.disable()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = commands[request["command"]](request)
        except Exception as error:
            answer = {"error": f"{request['command']}: {error}"}
        if request["command"] == "release":
            gc.collect()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


main()
