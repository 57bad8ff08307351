"""What it takes to call a version of a kernel (rooftile/ops/*/versions.py; rooftile/ops/languages.py says what one is):
finding them, what they take, and shapes as their languages have them. For driver.py, which checks them, and for the baselines'
programs, which time them.
"""

import glob
import importlib.util
import inspect
import os
import re
import sys

place = os.path.dirname(os.path.abspath(__file__))
ops = place if os.path.exists(os.path.join(place, "languages.py")) else os.path.join(place, "..", "..", "rooftile", "ops")
sys.path.insert(0, ops)
sys.dont_write_bytecode = True


class Declined(Exception):
    """The version does not take this case."""


def versions_in(language):
    """{function: [(name, version)]} of all op folders; languages.py must have been imported as this process wants it."""
    name_of = re.compile(rf"(?P<function>\w+?)_{language}(?:_\w+)?")
    found = {}
    for path in sorted(glob.glob(os.path.join(ops, "*", "versions.py"))):
        spec = importlib.util.spec_from_file_location(os.path.basename(os.path.dirname(path)) + "_versions", path)
        module = sys.modules.get(spec.name)
        if module is None:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[spec.name] = module
        for name, value in vars(module).items():
            match = name_of.fullmatch(name)
            if match and inspect.isfunction(value):
                found.setdefault(match["function"], []).append((name, value))
    return found


def count_of(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def flat_shape(operand):
    """The shape with its outer dimensions as one."""
    letters, shape = operand["letters"], operand["shape"]
    if letters < 0:
        return shape
    outer = len(shape) - letters
    return [count_of(shape[:outer])] + shape[outer:]


def contiguous(shape, strides):
    expected = 1
    for extent, stride in reversed(list(zip(shape, strides))):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def nested(values, shape):
    """A flat list as lists of lists."""
    if len(shape) < 2:
        return values
    inner = count_of(shape[1:])
    return [nested(values[i * inner : (i + 1) * inner], shape[1:]) for i in range(shape[0])]


def decline(version, own, on_cpu, request):
    """Raises Declined where the version says that it does not take a case: "inputs" with name, dtype, shape and strides
    (none: contiguous), "options", "own_options"; `own` is its language."""
    says = getattr(version, "takes", {})
    names = inspect.signature(version).parameters
    for operand in request["inputs"]:
        if operand["name"] not in names:
            raise Declined(operand["name"])
        shape, dtype = operand["shape"], operand["dtype"]
        if dtype not in says.get("dtypes", own.dtypes) or (on_cpu and dtype in own.not_on_cpu):
            raise Declined(dtype)
        if shape and shape[-1] > says.get("longest", shape[-1]):
            raise Declined(f"rows longer than {says['longest']}")
        strides = operand.get("strides")
        if strides and not says.get("strided", own.strided) and not contiguous(shape, strides):
            raise Declined("strided")
    if not request["inputs"] and on_cpu and of_output(request).get("dtype") in own.not_on_cpu:
        raise Declined(of_output(request)["dtype"])
    for name in request["own_options"]:
        if name not in names:
            raise Declined(name)
    for name, value in says.get("only", {}).items():
        if float(request["options"].get(name, 0)) != value:
            raise Declined(f"{name} other than {value}")
    given = {operand["name"] for operand in request["inputs"]} | set(request["options"]) | set(of_output(request))
    for name, parameter in names.items():
        if parameter.default is parameter.empty and name not in given:
            raise Declined(f"no {name}")


def of_output(request):
    """What says the shape of a result where no input does: "shape" and "dtype" of the first output."""
    first = request["outputs"][0] if request.get("outputs") and not request["inputs"] else {}
    return {name: first[name] for name in ("shape", "dtype") if name in first}


def options_for(version, request):
    """The options that it takes; JSON has no infinity: "inf"."""
    names = inspect.signature(version).parameters
    options = {name: float(value) for name, value in request["options"].items()} | of_output(request)
    return {name: value for name, value in options.items() if name in names}
