"""Runs versions of kernels (rooftile/ops/*/versions.py) on the cases that `rooftile check --versions` sends.

  check_versions.py LANGUAGE DEVICE MEMORY     one of LANGUAGES in languages.py; cpu or cuda; an inherited file descriptor

Requests and answers are lines of JSON on standard input and output; elements go through the memory behind the descriptor.
  {"command": "hello"}                 -> {"peers": [{"name", "version"}], "largest": elements of a case, "most": cases}
                                          | {"peers": [], "why": sentence}
  {"command": "versions", "function"}  -> {"versions": [{"name", "trap"}]}
  {"command": "run", "version", "inputs": [{"name", "dtype", "shape", "strides", "letters", "at"}],
   "outputs": [{"name", "dtype", "shape", "letters", "at"}], "all_outputs": [names], "options": {name: value},
   "own_options": [names]}             -> {} | {"declined": what} | {"error": sentence}
An input's elements are in memory from byte "at" on; of plain Python, which has lists, they are doubles side by side.
"letters" counts the dimensions behind the outer ones, -1: there are no outer ones. A version answers with the dtype that
it computes; it is rounded to the output's here. None stands for an output that it does not compute.
"""

import array
import importlib
import json
import mmap
import os
import signal
import sys
import traceback
import warnings

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # libraries may print; the check hears only answers
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the check, which then closes our input

language, device, memory_number = sys.argv[1], sys.argv[2], int(sys.argv[3])
if device == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
os.environ["ROOFTILE_LANGUAGE"] = f"{language}/{device}"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # cases are small: two threads take twice the time, and spin while they wait

from call_versions import Declined, count_of, decline, flat_shape, nested, options_for, versions_in  # noqa: E402
from languages import LANGUAGES, cuda, np, torch  # noqa: E402

own = LANGUAGES[language]
memory = mmap.mmap(memory_number, 0)


def element_type(dtype):
    if language in ("numpy", "numba"):
        if dtype not in own.dtypes:
            raise Declined(dtype)
        return np.dtype({"f": "float", "i": "int", "u": "uint"}[dtype[0]] + dtype[1:])
    names = {"bf16": "bfloat16", "u8": "uint8", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
    return getattr(torch, names.get(dtype) or {"f": "float", "i": "int"}[dtype[0]] + dtype[1:])


def flat_strides(operand):
    """The strides of that; None where no single one leads through the outer dimensions."""
    letters, shape, strides = operand["letters"], operand["shape"], operand["strides"]
    if letters < 0 or count_of(shape) == 0:
        return [1] * len(flat_shape(operand)) if count_of(shape) == 0 else strides
    outer = len(shape) - letters
    step, reached = 1, 1
    for extent, stride in reversed([pair for pair in zip(shape[:outer], strides[:outer]) if pair[0] > 1]):
        if reached == 1:
            step = stride
        elif stride != step * reached:
            return None
        reached *= extent
    return [step] + strides[outer:]


def unnested(values, shape, name):
    """And back; whatever has the wrong length is refused."""
    if len(shape) == 0 or not isinstance(values, (list, tuple)):
        if count_of(shape) != 1:
            raise ValueError(f"{name} is {type(values).__name__}, must be a list of {shape[0]}")
        return [float(values)]
    if count_of(shape) == 0:
        return []  # lists without elements have no second size
    if len(values) != shape[0]:
        raise ValueError(f"{name} has {len(values)} elements where {shape[0]} are due")
    if len(shape) == 1:
        return [float(value) for value in values]
    return [value for part in values for value in unnested(part, shape[1:], name)]


def value_of(operand):
    """An input as the language has it."""
    shape = flat_shape(operand) if own.flat else operand["shape"]
    if language == "plain":
        values = array.array("d")
        values.frombytes(memory[operand["at"] : operand["at"] + 8 * count_of(shape)])
        return nested([int(v) for v in values] if operand["dtype"][0] in "iu" else values.tolist(), shape)
    strides = flat_strides(operand) if own.flat else operand["strides"]
    if strides is None:
        raise Declined("strided")
    type_of_it = element_type(operand["dtype"])
    if language in ("numpy", "numba"):
        steps = [stride * type_of_it.itemsize for stride in strides]
        values = np.ndarray(shape, type_of_it, memory, operand["at"] if count_of(shape) else 0, steps)
        if language == "numba":
            return cuda.to_device(values)
        values.flags.writeable = False
        return values
    if any(stride < 0 for stride in strides):
        raise Declined("strides below 0")
    whole = torch.frombuffer(memory, dtype=type_of_it, count=len(memory) // type_of_it.itemsize)
    return whole.as_strided(shape, strides, operand["at"] // type_of_it.itemsize).to(device)


def take(operand, result):
    """Puts a result into memory, rounded to the output's dtype; of plain Python as doubles."""
    name = operand["name"]
    shape = flat_shape(operand) if own.flat else operand["shape"]
    if language == "plain":
        values = array.array("d", unnested(result, shape, name))
        memory[operand["at"] : operand["at"] + 8 * len(values)] = values.tobytes()
        return
    if language == "numba" and hasattr(result, "copy_to_host"):
        result = result.copy_to_host()
    got = list(result.shape) if hasattr(result, "shape") else []
    if got != shape and count_of(got) != 1 or count_of(got) != count_of(shape):
        raise ValueError(f"{name} is {got}, must be {shape}")
    count, type_of_it = count_of(shape), element_type(operand["dtype"])
    if count == 0:
        return
    if language in ("numpy", "numba"):
        np.ndarray(count, type_of_it, memory, operand["at"])[:] = np.asarray(result).reshape(-1)
    else:
        place_of_it = torch.frombuffer(memory, dtype=type_of_it, count=count, offset=operand["at"])
        place_of_it.copy_(torch.as_tensor(result).detach().reshape(-1))
        if type_of_it.is_floating_point and type_of_it.itemsize == 1:
            place_of_it.view(torch.uint8).masked_fill_(place_of_it.float().isnan(), 0x7F)
        elif type_of_it.is_floating_point:  # PyTorch's bf16 NaN is all ones, as memory that nobody has written
            place_of_it.masked_fill_(place_of_it.isnan(), float("nan"))


def poisoned(make):
    """empty() whose elements are NaN: what a version forgets to write is not by chance what the case before had there."""

    def filled(*arguments, **named):
        made = make(*arguments, **named)
        if hasattr(made, "fill_") and made.is_floating_point():
            made.fill_(float("nan"))
        elif hasattr(made, "fill") and made.dtype.kind == "f":
            made.fill(float("nan"))
        return made

    return filled


versions = {}  # by function: [(name, version)]


def hello(_):
    if not own.runs_on(device):
        return {"peers": [], "why": f"versions in {own.name} are left out: they run on a GPU alone (--device cuda)"}
    try:
        for module in own.modules:
            importlib.import_module(module)
    except Exception:
        return {"peers": []}
    versions.update(versions_in(language))
    warnings.simplefilter("ignore")  # hostile cases overflow on purpose
    if np:
        np.seterr(all="ignore")
        np.empty, np.empty_like = poisoned(np.empty), poisoned(np.empty_like)
    if torch:
        torch.empty, torch.empty_like = poisoned(torch.empty), poisoned(torch.empty_like)
    main_module = own.modules[0] if own.modules else ""
    version = sys.modules[main_module].__version__ if main_module else sys.version.split()[0]
    largest, most = (own.largest, own.most) if device == "cpu" else (1 << 20, 0)
    return {"peers": [{"name": own.name, "version": version}], "largest": largest, "most": most}


def listed(request):
    return {
        "versions": [
            {"name": name, "trap": getattr(version, "trap", "")} for name, version in versions.get(request["function"], [])
        ]
    }


def run(request):
    version = next(v for names in versions.values() for name, v in names if name == request["version"])
    try:
        decline(version, own, device == "cpu", request)
        arguments = {operand["name"]: value_of(operand) for operand in request["inputs"]}
        if language != "plain":
            for operand in request["outputs"]:
                element_type(operand["dtype"])  # NumPy has no bf16
    except Declined as what:
        return {"declined": str(what)}
    results = version(**arguments, **options_for(version, request))
    all_outputs = request["all_outputs"]
    results = results if len(all_outputs) > 1 else (results,)
    if len(results) != len(all_outputs):
        return {"error": f"returns {len(results)} results, not {', '.join(all_outputs)}"}
    for operand in request["outputs"]:
        result = results[all_outputs.index(operand["name"])]
        if result is None:
            return {"declined": operand["name"]}
        take(operand, result)
    return {}


shown = set()  # of which versions a traceback was printed: the first of each
commands = {"hello": hello, "versions": listed, "run": run}
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = commands[request["command"]](request)
    except BaseException as error:
        if request.get("version") not in shown:
            traceback.print_exc()
        shown.add(request.get("version"))
        said = str(error).strip().splitlines()
        answer = {"error": f"{type(error).__name__}: {said[0] if said else ''}"}
    answers.write(json.dumps(answer) + "\n")
