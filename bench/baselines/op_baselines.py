"""What a user would pick instead, as the op folders say it (rooftile/ops/<op>/baselines.py): for baselines.py, which times it on
a CPU, and gpu_baselines.py, which does on a GPU.

A folder's tables go from a function's name to what makes something of a case:
  PYTORCH  a function of tensors and its arguments, as a user writes it, or None where it does not compute the case. It is called
           as it is and, on a GPU, compiled. It returns the outputs in the order of the library's; a third item names them
           where the case may have others.
  OUT      a list of PyTorch calls that write into the case's outputs; not compiled.
  CUBLAS, TRITON, LIGER, QUACK (GPU), OPENCV (CPU)
           a list of calls.
Each call takes nothing and returns one array or None for each written operand. Of several the fastest counts.
"""

import glob
import importlib
import importlib.util
import os
import sys

try:
    import torch
except Exception:
    torch = sys.modules["torch"] = None  # whoever imports it gets an ImportError

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import call_versions  # noqa: E402

TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
         "u8": "uint8", "i8": "int8", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}  # fmt: skip
MAX_PLAIN = 1 << 20  # elements of a case that plain Python is timed on

device = "cpu"
folders = []


def library(name):
    """A module that may not be here, or not work: None."""
    try:
        return importlib.import_module(name)
    except Exception:
        return None


def gpu_library(name):
    """One that is of use on a GPU alone; Triton's kernels on a CPU, too, where it interprets them."""
    interpreted = name == "triton_kernels" and os.environ.get("TRITON_INTERPRET") == "1"
    return library(name) if device == "cuda" or interpreted else None


def load(for_device):
    """Reads all folders' tables; those of PyTorch are left out where it is not here."""
    global device
    device = for_device
    for path in sorted(glob.glob(os.path.join(call_versions.ops, "*", "baselines.py"))):
        spec = importlib.util.spec_from_file_location("baselines_of_" + os.path.basename(os.path.dirname(path)), path)
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except ImportError:
            if torch:
                raise
            continue
        folders.append(module)


def entry(table, function):
    for module in folders:
        found = getattr(module, table, {}).get(function)
        if found:
            return found
    return None


def any_in(table):
    return any(getattr(module, table, {}) for module in folders)


class Case:
    """One call of the bench: its operands, made by `operand`, which gives them .name, .shape, .written, .tensor, .fill()."""

    def __init__(self, request, operand):
        self.request = request
        self.function = request["function"]
        self.parameters = request["parameters"] or {}
        self.named = request.get("named", False)
        self.operands = {one["name"]: operand(one) for one in request["operands"]}
        self.outputs = [o for o in self.operands.values() if o.written]

    def get(self, name):
        return self.operands[name].tensor if name in self.operands else None

    def many(self, *names):
        return [self.get(name) for name in names]

    def parameter(self, name, otherwise):
        return self.parameters.get(name, otherwise)

    def rows(self, name):
        tensor = self.get(name)
        return tensor.reshape(-1, tensor.shape[-1])

    def ordered(self, **named):
        """Results in the order of the written operands; None for what was not computed."""
        return tuple(named.get(o.name) for o in self.outputs)


def calls_of(table):
    """make(case) of a table that holds lists of calls."""

    def make(case):
        found = entry(table, case.function)
        return found(case) if found else []

    return make


def pytorch_of(case):
    """The function of a case and what it is called with; None for a case that it does not compute."""
    found = entry("PYTORCH", case.function)
    return found(case) if found else None


def in_order(case, results, names):
    results = results if isinstance(results, tuple) else (results,)
    return case.ordered(**dict(zip(names, results))) if names else tuple(results)


def torch_eager(case):
    found = pytorch_of(case)
    ways = calls_of("OUT")(case)
    if found:
        function, arguments, *names = found
        ways = [*ways, lambda: in_order(case, function(*arguments), *(names or [()]))]
    return ways


def torch_compiled(**options):
    def make(case):
        found = pytorch_of(case)
        if found is None or (options and not case.named):
            return []
        function, arguments, *names = found
        fast = torch.compile(function, fullgraph=True, dynamic=False, **options)
        return [lambda: in_order(case, fast(*arguments), *(names or [()]))]

    return make


# ---- The same kernels in Python's languages (--versions)


def value_of(language, operand, letters, own):
    """An operand as the language has it: rows of C elements, whatever the tensor's rank, where the language is flat."""
    from languages import cuda, np

    shape = call_versions.flat_shape({"shape": operand.shape, "letters": letters}) if own.flat else operand.shape
    if language == "plain":
        return call_versions.nested(operand.list(), shape)
    if language == "numpy":
        return operand.array(np).reshape(shape)
    tensor = operand.tensor.reshape(shape)
    return cuda.as_cuda_array(tensor) if language == "numba" else tensor


def version_calls(function, language, version, own):
    def make(case):
        if case.function != function:
            return []
        inputs = [one for one in case.request["operands"] if one["read"]]
        if language == "plain" and max(call_versions.count_of(one["shape"]) for one in inputs) > MAX_PLAIN:
            return []
        try:
            call_versions.decline(version, own, device == "cpu", {**case.request, "inputs": inputs})
        except call_versions.Declined:
            return []
        for operand in case.outputs:
            operand.fill()  # a call before this one may have written over what is read, too
        values = {one["name"]: value_of(language, case.operands[one["name"]], one["letters"], own) for one in inputs}
        values.update(call_versions.options_for(version, case.request))
        names = case.request["all_outputs"]

        def run():
            results = version(**values)
            return case.ordered(**dict(zip(names, results if len(names) > 1 else (results,))))

        return [run]

    return make


def versions(wanted):
    """Name, version, make(case), compiles: of each right version in these languages whose library is here."""
    from languages import LANGUAGES

    found = []
    for language in wanted:
        own = LANGUAGES[language]
        try:
            modules = [importlib.import_module(module) for module in own.modules]
        except ImportError:
            continue
        number = modules[0].__version__ if modules else sys.version.split()[0]
        for function, ones in call_versions.versions_in(language).items():
            for name, version in ones:
                if not getattr(version, "trap", ""):
                    found.append((name, number, version_calls(function, language, version, own), language in ("triton", "cutile")))
    return found
