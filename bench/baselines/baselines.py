"""Times PyTorch and OpenCV for `rooftile bench`, one call at a time; with the argument --versions also the kernels' versions
in plain Python, NumPy and PyTorch (rooftile/ops/*/versions.py).

The bench starts this program and speaks with it in lines of JSON on standard input and output:
  {"command": "hello"}                          -> {"peers": [{"name", "version"}]}
  {"command": "prepare", "function", "operands": [{"name", "dtype", "shape", "letters", "read", "written", "pattern"}], "parameters",
   "options", "own_options", "all_outputs", "threads", "sampled"}
                                                -> {"calls": [{"id", "name", "version", "call_us"}]}
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
import struct
import sys
import time

# Libraries may print; the bench hears only answers.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the bench, which then closes our input

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import op_baselines  # noqa: E402
from call_versions import count_of  # noqa: E402
from op_baselines import TYPES, torch  # noqa: E402

op_baselines.load("cpu")
cv2, numpy = op_baselines.library("cv2"), op_baselines.library("numpy")
EVICTING_BYTES = 1 << 28  # read before each cold sample: more than any last-level cache we know holds twice


class Operand:
    """One tensor: bytes on huge pages, as the bench's own."""

    def __init__(self, description, tiny=False):
        self.name = description["name"]
        self.dtype = description["dtype"]
        # Tiny: one element each, but a pixel stays a pixel.
        self.shape = [n if n == 3 else 1 for n in description["shape"]] if tiny else description["shape"]
        self.written = description["written"]
        self.count = count_of(self.shape)
        bits = {"f64": 64, "i64": 64, "f32": 32, "i32": 32, "f16": 16, "bf16": 16}.get(self.dtype, 8)
        self.bytes = max(self.count * bits // 8, 1)
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

    @property
    def tensor(self):
        return torch.frombuffer(self.memory, dtype=getattr(torch, TYPES[self.dtype]), count=self.count).reshape(self.shape)

    def array(self, np):
        return np.frombuffer(self.memory, TYPES[self.dtype], self.count).reshape(self.shape)

    def list(self):
        """Its elements as Python's numbers."""
        if self.dtype == "bf16":  # the upper half of an f32
            halves = memoryview(self.memory)[: 2 * self.count].cast("H")
            return list(struct.unpack(f"{self.count}f", struct.pack(f"{self.count}I", *(half << 16 for half in halves))))
        letter = {"f64": "d", "f32": "f", "f16": "e", "i64": "q", "i32": "i", "i8": "b"}.get(self.dtype, "B")
        return list(struct.unpack_from(f"{self.count}{letter}", self.memory))


def libraries():
    """Name, version and make(case), which gives a list of calls."""
    found = []
    if torch:
        found.append(("PyTorch", torch.__version__, op_baselines.torch_eager))
    if cv2:
        found.append(("OpenCV", cv2.__version__, op_baselines.calls_of("OPENCV")))
    if "--versions" in sys.argv:
        found += [one[:3] for one in op_baselines.versions(("plain", "numpy", "torch"))]
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
        run = fastest(make(case_of(request, tiny=True)))
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


here = libraries()


def case_of(request, tiny=False):
    return op_baselines.Case(request, lambda description: Operand(description, tiny))


def hello(_):
    return {"peers": [{"name": name, "version": version} for name, version, _ in here]}


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
    for name, version, make in here:
        try:
            case = case or case_of(request)
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


class Flat(list):
    """Plain Python's lists of lists, or a number, as one list."""

    def __init__(self, values):
        super().__init__()
        self.add(values)
        self.size = len(self)

    def add(self, values):
        for value in values if isinstance(values, list) else [values]:
            self.add(value) if isinstance(value, list) else self.append(value)


def sampled(result, count):
    if result is None:
        return []
    if torch and isinstance(result, torch.Tensor):
        flat = result.flatten()
        n = min(flat.numel(), count)
        places = [i * flat.numel() // n for i in range(n)]
        values = flat[torch.tensor(places, dtype=torch.int64)].to(torch.float64).tolist()
    else:
        flat = result.reshape(-1) if hasattr(result, "reshape") else Flat(result)
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
