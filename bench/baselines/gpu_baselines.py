"""Times what a user would pick instead on a GPU, for `rooftile bench --device cuda`: PyTorch and its compiler, cuBLAS,
Triton kernels of ours, and Liger and QuACK where they are installed; with the argument --versions also the kernels' versions in
PyTorch, Triton, Numba, cuTile and CuTe DSL (rooftile/ops/*/versions.py).

The bench starts this program (`gpu_baselines.py cuda`) and speaks with it in lines of JSON on standard input and output:
  {"command": "hello"}                                -> {"peers": [{"name", "version"}], "device"}
  {"command": "warm", "cases": [case], "only", "seconds"}
                                                      -> {"warmed": how many of the cases, "workers"}
  {"command": "prepare", case…, "only", "sampled", "copy_bytes"}
                                                      -> {"calls": [{"name", "version", "way", "results"}],
                                                          "errors": [sentence]}
  {"command": "time", "names", "rounds", "warm_up"}   -> {"copy": [us], "calls": {name: [us]}, "clock_mhz",
                                                          "power_w", "throttled"}
  {"command": "release"}                              -> {}
A case is {"function", "parameters", "options", "own_options", "all_outputs", "named": whether max-autotune is wanted,
"operands": [{"name", "dtype", "shape", "letters", "read", "written", "offset": elements past a 256-byte boundary, "pattern": base64,
null for what is only written}]}; "only" holds the names of the baselines to time, none: all. "results" are the values of each written operand at `sampled` places.

Each sample begins with 256 MiB written over, as the bench does it. Before that the case's operands become such lines of
the second cache as others are: torch.compile's kernels ask for theirs to be evicted last, and these outlast the 256 MiB,
to their own good and to that of who comes next (layer_norm, bf16 8192x4096, H200: Triton's 38 us behind one of them, by
itself 40). The copy and all calls take turns, with events around each, and everything is queued before the first begins:
the device never waits for Python. A call that can be captured in a CUDA graph is timed as one and as it is; the faster
way counts.

`gpu_baselines.py cpu` is for tests of this program: the same on the CPU, whose times mean nothing (and the Triton kernels
only under TRITON_INTERPRET=1).
"""

import base64
import ctypes
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

if __name__ == "__main__":
    # Libraries may print; the bench hears only answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the bench, which then closes our input

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import op_baselines  # noqa: E402
from call_versions import count_of  # noqa: E402
from op_baselines import TYPES, torch  # noqa: E402

device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
here = torch is not None and (device == "cpu" or torch.cuda.is_available())
triton_kernels = None
if here:
    torch.set_grad_enabled(False)
    op_baselines.load(device)
    triton_kernels = op_baselines.gpu_library("triton_kernels")
worker = "--worker" in sys.argv
FLUSH_BYTES = 256 << 20  # five times an H200's L2; as the bench's own
SLOW_US = 5000  # a call that takes longer gets a third of the rounds


class Operand:
    """A dense tensor of the pattern, repeated, `offset` elements past an allocation's start."""

    def __init__(self, description):
        self.name = description["name"]
        self.shape = description["shape"]
        self.written = description["written"]
        self.dtype = getattr(torch, TYPES[description["dtype"]])
        self.count = count_of(self.shape)
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


def case_of(request):
    return op_baselines.Case(request, Operand)


def version_of(package):
    try:
        from importlib.metadata import version

        return version(package)
    except Exception:
        return "unknown"


def baselines():
    """Name, version, what makes calls of a case, and whether it is warmed: what compiles."""
    if not here:
        return []
    found = [
        ("PyTorch", torch.__version__, op_baselines.torch_eager, False),
        ("torch.compile", torch.__version__, op_baselines.torch_compiled(), True),
        ("max-autotune", torch.__version__, op_baselines.torch_compiled(mode="max-autotune-no-cudagraphs"), True),
    ]  # graphs are captured below
    if triton_kernels:
        found.append(("Triton", triton_kernels.triton.__version__, op_baselines.calls_of("TRITON"), True))
    if device == "cuda":
        found.append(("cuBLAS", f"CUDA {torch.version.cuda}", op_baselines.calls_of("CUBLAS"), False))
        for name, table, package in (("Liger", "LIGER", "liger-kernel"), ("QuACK", "QUACK", "quack-kernels")):
            if op_baselines.any_in(table):
                found.append((name, version_of(package), op_baselines.calls_of(table), True))
    if "--versions" in sys.argv:
        on_gpu = ("torch", "triton", "numba", "cutile", "cute")
        found += op_baselines.versions(on_gpu if device == "cuda" else ("torch",))
    return found


all_baselines = baselines()


def chosen(request):
    only = request.get("only") or []
    return [baseline for baseline in all_baselines if not only or baseline[0] in only]


# ---- Timing


class Clock:
    """Samples of calls in turns, the device's times between two events; or the host's, on a CPU."""

    def __init__(self):
        self.flushed = torch.empty(FLUSH_BYTES if device == "cuda" else 1, dtype=torch.uint8, device=device)
        self.driver = ctypes.CDLL("libcuda.so.1") if device == "cuda" else None
        self.turn = 0
        self.demote = None

    def begin_with(self, tensors):
        """Lets flush() demote these before it writes over the rest; of none, or where that cannot be, nothing."""

        def demote():
            for tensor in tensors:
                triton_kernels.demote(tensor)

        self.demote = captured(demote) if tensors and device == "cuda" and triton_kernels else None

    def flush(self):
        if self.demote:
            self.demote()
        self.turn = (self.turn + 1) % 256
        self.driver.cuMemsetD8Async(
            ctypes.c_uint64(self.flushed.data_ptr()),
            ctypes.c_ubyte(self.turn),
            ctypes.c_size_t(FLUSH_BYTES),
            ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
        )

    def samples(self, runs, rounds, sensors=None):
        """`rounds[i]` times of each run, in microseconds."""
        times = [[] for _ in runs]
        if device == "cpu":
            for turn in range(max(rounds)):
                for i, run in enumerate(runs):
                    if turn < rounds[i]:
                        begin = time.perf_counter()
                        run()
                        times[i].append((time.perf_counter() - begin) * 1e6)
            return times
        # The device sleeps while the host queues: some 60 us for each sample, at 2 GHz or less.
        torch.cuda._sleep(min(sum(rounds) * 120_000, 200_000_000))
        marks = [[] for _ in runs]
        for turn in range(max(rounds)):
            for i, run in enumerate(runs):
                if turn < rounds[i]:
                    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                    self.flush()
                    begin.record()
                    run()
                    end.record()
                    marks[i].append((begin, end))
        if sensors is not None:
            sensors.read_until(end)
        torch.cuda.synchronize()
        return [[begin.elapsed_time(end) * 1000 for begin, end in pairs] for pairs in marks]


class Field(ctypes.Structure):
    """nvmlFieldValue_t, whose value is 8 bytes."""

    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("time", ctypes.c_longlong),
                ("latency", ctypes.c_longlong), ("type", ctypes.c_uint), ("error", ctypes.c_uint),
                ("number", ctypes.c_uint), ("rest", ctypes.c_uint)]  # fmt: skip


class Sensors:
    """Clock, power and throttling while calls run, by the driver's own library; nothing where it cannot be read."""

    POWER_OR_HEAT = 0x4 | 0x8 | 0x20 | 0x40 | 0x80  # nvmlClocksEventReason…

    def __init__(self):
        self.nvml, self.handle = None, ctypes.c_void_p()
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}".encode()
            if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(self.handle)) == 0:
                self.nvml = nvml
        except Exception:
            pass
        self.clocks, self.powers, self.throttled = [], [], False

    def milliwatts(self):
        """This moment's where the driver tells it: the older call means the last second, most of it spent idle."""
        now = Field(id=186)  # NVML_FI_DEV_POWER_INSTANT
        if self.nvml.nvmlDeviceGetFieldValues(self.handle, 1, ctypes.byref(now)) == 0 and now.error == 0:
            return now.number
        mean = ctypes.c_uint()
        return None if self.nvml.nvmlDeviceGetPowerUsage(self.handle, ctypes.byref(mean)) else mean.value

    def read_until(self, end):
        while self.nvml and not end.query():
            mhz, why = ctypes.c_uint(), ctypes.c_ulonglong()
            power = self.milliwatts()
            if power is None or self.nvml.nvmlDeviceGetClockInfo(self.handle, 1, ctypes.byref(mhz)):
                return
            if self.nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle, ctypes.byref(why)):
                return
            self.clocks.append(mhz.value)
            self.powers.append(power / 1000)
            self.throttled = self.throttled or bool(why.value & self.POWER_OR_HEAT)
            time.sleep(0.001)

    def take(self):
        told = {}
        if self.clocks:
            told = {
                "clock_mhz": sum(self.clocks) / len(self.clocks),
                "power_w": sum(self.powers) / len(self.powers),
                "throttled": self.throttled,
            }
        self.clocks, self.powers, self.throttled = [], [], False
        return told


clock = sensors = None


def captured(run):
    """The call as a CUDA graph; None where it cannot be one."""
    try:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = run()
        graph.replay()
        torch.cuda.synchronize()
    except Exception:
        torch.cuda.synchronize()
        return None

    def replay(kept=kept):  # holds what the graph writes to
        graph.replay()

    return replay


def fastest(ways):
    """Of the ways that work, each as it is and as a graph: the fastest, the way it is, its kind and its time."""
    runs, kinds, failure = [], [], None
    for way in ways:
        try:
            for _ in range(2):  # what compiles or tunes itself does so now
                way()
        except Exception as error:
            failure = error
            continue
        runs.append(way)
        kinds.append((way, "call"))
        graph = captured(way) if device == "cuda" else None
        if graph:
            runs.append(graph)
            kinds.append((way, "graph"))
    if not runs:
        raise failure
    medians = [sorted(times)[1] for times in clock.samples(runs, [3] * len(runs))]
    best = medians.index(min(medians))
    return runs[best], *kinds[best], medians[best]


def sampled(result, count):
    if result is None:
        return []
    flat = torch.as_tensor(result, device=device).reshape(-1)
    n = min(flat.numel(), count)
    places = torch.tensor([i * flat.numel() // n for i in range(n)], dtype=torch.int64, device=device)
    values = flat[places].to(torch.float64).tolist()
    return [v if v == v and abs(v) != float("inf") else None for v in values]


# ---- Commands


calls = {}
copy = None
kept_case = None


def hello(_):
    name = torch.cuda.get_device_name() if here and device == "cuda" else device
    return {"peers": [{"name": name, "version": version} for name, version, _, _ in all_baselines], "device": name}


def reason_of(error):
    lines = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().splitlines()  # without colours
    return (lines[0] if lines else type(error).__name__)[:300]


def release(_):
    global copy, kept_case
    calls.clear()
    copy = kept_case = None
    if clock:
        clock.begin_with([])
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    return {}


def end_if_lost(name, request):
    """After an illegal access nothing works any more in this process; the bench starts another."""
    try:
        if device == "cuda":
            torch.cuda.synchronize()
    except Exception as error:
        sys.stderr.write(f"{name} in {request['function']} broke CUDA: {reason_of(error)}\n")
        os._exit(1)


def prepare(request):
    global clock, sensors, copy, kept_case
    release(None)
    if clock is None:
        clock = Clock()
        sensors = Sensors() if device == "cuda" else None
    # The compiler keeps what it made of a function for other shapes, and gives up after eight.
    torch._dynamo.reset()
    case = kept_case = case_of(request)
    clock.begin_with([operand.tensor for operand in case.operands.values()])
    half = max(request["copy_bytes"] // 2, 1)
    memory = torch.empty((half + 255) // 256 * 256 + half, dtype=torch.uint8, device=device)
    to, source = memory[-half:], memory[:half]

    def copy_bytes():
        to.copy_(source)

    copy = copy_bytes
    answer = {"calls": [], "errors": []}
    if device == "cuda" and not clock.demote:
        answer["errors"].append("baselines' kernels may find what they asked the second cache to keep: it could not be demoted")
    for name, version, make, _ in chosen(request):
        try:
            ways = make(case)
            if not ways:
                continue
            run, way, kind, us = fastest(ways)
            for operand in case.outputs:
                operand.fill()  # what is read and written has its first values again, all else is zero
            results = [sampled(result, request["sampled"]) for result in way()]
        except Exception as error:
            answer["errors"].append(f"{name} is left out of {request['function']}: {reason_of(error)}")
            end_if_lost(name, request)
            continue
        calls[name] = (run, us)
        answer["calls"].append({"name": name, "version": version, "way": kind, "results": results})
    return answer


def timed(request):
    """Copy and calls in turns; who takes long comes less often."""
    rounds, warm_up = request["rounds"], request["warm_up"]
    names = [name for name in calls if name in request["names"]]
    runs, turns = [copy], [rounds + warm_up]
    for run, us in (calls[name] for name in names):
        runs.append(run)
        turns.append(warm_up + (rounds if us < SLOW_US else max(1, rounds // 3)))
    # A round is some microseconds of queueing for each call; what does not fit the driver's queue of about 1000 waits.
    times = [samples[warm_up:] for samples in clock.samples(runs, turns, sensors)]
    answer = {"copy": times[0], "calls": dict(zip(names, times[1:]))}
    if sensors:
        answer.update(sensors.take())
    return answer


def warm(request):
    """Compiles the cases in several processes at once, into the caches that the libraries keep on disk: one by one it
    would take longer than all the timing."""
    cases = [dict(case, only=request.get("only")) for case in request["cases"]]
    deadline = time.monotonic() + request["seconds"]
    count = min(os.cpu_count() or 1, 16, len(cases))
    if device == "cuda":  # each has a context and a case's operands
        count = min(count, int(torch.cuda.mem_get_info()[0] // (5 << 30)))
    lock, done = threading.Lock(), []

    def work(process):
        while True:
            with lock:
                if not cases:
                    return
                case = cases.pop(0)
            try:
                process.stdin.write(json.dumps(case) + "\n")
                process.stdin.flush()
                if not process.stdout.readline():
                    return
            except Exception:
                return
            done.append(case)

    processes, threads = [], []
    for _ in range(count):
        command = [sys.executable, os.path.abspath(__file__), device, "--worker", *[word for word in sys.argv if word == "--versions"]]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        threads.append(threading.Thread(target=work, args=(process,), daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    for process in processes:
        try:
            process.stdin.close()
            process.wait(1 if time.monotonic() < deadline else 0)
        except Exception:
            process.kill()
    return {"warmed": len(done), "workers": count}


def work_along():
    """One of warm()'s processes: a case a line. What it measures is not kept, since others compute beside it."""
    import torch._inductor.config as inductor

    inductor.autotune_local_cache = False
    inductor.compile_threads = 1
    for line in sys.stdin:
        request = json.loads(line)
        torch._dynamo.reset()
        try:
            case = case_of(request)
            for _, _, make, compiles in chosen(request):
                if not compiles:
                    continue
                try:
                    for way in make(case):
                        way()
                except Exception:
                    pass  # prepare() will say so
        except Exception:
            pass
        case = None
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
        answers.write("done\n")
        answers.flush()


def main():
    if worker:
        return work_along()
    commands = {"hello": hello, "warm": warm, "prepare": prepare, "time": timed, "release": release}
    gc.disable()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = commands[request["command"]](request)
        except Exception as error:
            answer = {"error": f"{request['command']}: {reason_of(error)}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
