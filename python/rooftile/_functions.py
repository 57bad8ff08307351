"""The library's functions as Python's, by a loop over their signatures; how they are called and what help() says."""

import keyword
import struct

from rooftile import _core, _frameworks, _permute, _rows

try:
    from rooftile._comments import comments
except ImportError:  # not installed: run from a build folder
    comments = {}

#: What each function takes, by its name, in the library's order.
signatures = {f["name"]: f for f in _core.functions()}

# What every function takes beside its own operands and options.
CALL_WORDS = {
    "out": "an array that receives the result, or a tuple of one for each output; None: new ones",
    "queue": "a rooftile.Queue; None: by the arrays, all threads of the CPU or their GPU's current stream",
    "device": "'emulated': the GPU's kernels on the CPU, on host arrays; None: where the arrays are",
    "variant": "one that `rooftile list` names; None: the library chooses",
}


def is_output(operand):
    return operand["role"] == "output"


def inputs(f):
    """The operands given by place: those that are neither optional nor outputs."""
    return [o for o in f["operands"] if not is_output(o) and not o["optional"]]


def outputs(f):
    """What a call returns when nothing else is asked for; a function without an output returns what it wrote."""
    pure = [o for o in f["operands"] if is_output(o)]
    return [o for o in pure if not o["optional"]] or [o for o in f["operands"] if o["role"] == "in_out"]


def has_lists(f):
    return any(o["list"] for o in f["operands"])


def has_out(f):
    return any(is_output(o) and not o["optional"] for o in f["operands"])


def has_rows(f):
    """Whether each operand holds rows, one for all of them, or one number for each: rows may then be along any dimensions."""
    return (not has_lists(f) and all(o["letters"] in ("", "C") for o in f["operands"]) and
            any(o["outer"] and o["letters"] for o in f["operands"]))


def reduces(f):
    """Whether a call gives one number for each row."""
    return has_rows(f) and all(o["outer"] and not o["letters"] for o in outputs(f))


#: How the dimensions of rows are called, and that results keep them: of rooftile and rooftile.jax; of rooftile.torch.
AXIS, DIM = ("axis", "keepdims"), ("dim", "keepdim")


def row_words(f, names=AXIS):
    """What a function of rows takes beside its options, with the defaults."""
    return dict(zip(names, (-1, False) if reduces(f) else (-1,) if has_rows(f) else ()))


def shortest(value):
    """A default of the library, which is a float32 or a float64, in the fewest digits that mean it."""
    if struct.unpack("f", struct.pack("f", value))[0] == value:
        for digits in range(1, 10):
            text = f"{value:.{digits}g}"
            if struct.pack("f", float(text)) == struct.pack("f", value):
                return repr(float(text))
    return repr(value)


def default_of(option):
    """As Python's source has it."""
    if option["kind"] == "flag":
        return str(bool(option["default"]))
    if option["kind"] == "choice":
        return repr(option["words"].split()[int(option["default"])])
    if option["kind"] == "whole":
        return str(int(option["default"]))
    return shortest(option["default"])


def call_words(f):
    return [w for w in CALL_WORDS if w != "out" or has_out(f)]


def usage(f, first=""):
    """softmax(x, *, scale=1.0, log=False, out=None, …)."""
    by_place = [o["name"] for o in inputs(f)]
    by_word = [o["name"] + "=None" for o in f["operands"] if o["optional"]]
    by_word += [o["name"] + "=" + default_of(o) for o in f["options"]]
    by_word += [f"{w}={value}" for w, value in row_words(f).items()]
    by_word += [w + "=None" for w in call_words(f)]
    return f"{f['name']}({first}{', '.join(by_place)}, *, {', '.join(by_word)})"


def shape_text(operand):
    if operand["one"]:
        return "one element"
    letters = list(operand["letters"])
    return "(" + ", ".join(["…"] * operand["outer"] + letters) + ("," if len(letters) + operand["outer"] == 1 else "") + ")"


def dtype_text(f, operand):
    same = next(o["name"] for o in f["operands"] if o["type"] == operand["type"])
    if same != operand["name"]:
        return f"{same}'s dtype"
    if operand["wide_as"]:
        like = next(o["name"] for o in f["operands"] if o["type"] == operand["wide_as"])
        return ", ".join(d for d in operand["dtypes"] if d != "f64") + f"; f64 where {like} is"
    return (", ".join(operand["dtypes"]) if len(operand["dtypes"]) < 12 else "any dtype") + (
        f"; or as {next(o['name'] for o in f['operands'] if o['type'] == operand['or_as'])}" if operand["or_as"] else "")


def option_text(option):
    least = " not negative," if option["least"] == 0 else ""
    if option["kind"] in ("whole", "real") and abs(option["least"]) < 2**53 and option["most"] < 2**53:
        return f"{'a whole' if option['kind'] == 'whole' else 'a'} number from {option['least']:g} to {option['most']:g}"
    return {"flag": "True or False", "choice": "one of " + ", ".join(map(repr, option["words"].split())),
            "real": f"a number,{least} finite", "any_real": "any number", "whole": f"a whole number{least.rstrip(',')}"}[option["kind"]]


def docstring(f, names=AXIS):
    """What help() says of a function: its comment in the C++ header, then what it takes."""
    lines = [comments.get(f["name"], "").strip(), ""]
    for o in f["operands"]:
        notes = {"input": "", "output": "output; ", "in_out": "read and written; "}[o["role"]]
        if o["optional"]:
            notes += "True asks for it, an array receives it; " if is_output(o) else "optional; "
        if o["list"]:
            notes += "a list of arrays; "
        if o["may_be"]:
            notes += "may be " + " or ".join(o["may_be"].split()) + "; "
        lines.append(f"{o['name']}: {shape_text(o)}, {dtype_text(f, o)}" + (f" ({notes[:-2]})" if notes else ""))
    lines += [f"{o['name']}: {option_text(o)}" for o in f["options"]]
    said = ("along which dimension rows are; several: a row is their elements in row-major order",
            "True: the result has the rows' dimensions, of size 1")
    lines += [f"{w}: {text}" for w, text in zip(row_words(f, names), said)]
    lines += [f"{w}: {CALL_WORDS[w]}" for w in call_words(f)]
    names = [o["name"] for o in outputs(f)]
    returned = names[0] if len(names) == 1 else "(" + ", ".join(names) + ")"
    if any(is_output(o) and o["optional"] for o in f["operands"]):
        returned += ", with optional outputs in a named tuple"
    lines += ["", f"Returns {returned}.", "Raises ValueError, or TypeError for a wrong type or dtype, with the library's sentence."]
    return "\n".join(lines).strip()


def checked(f):
    """A name that two things would have, or that Python keeps for itself, is a fault of a signature."""
    names = [o["name"] for o in f["operands"] + f["options"]]
    for name in names:
        if keyword.iskeyword(name) or name in (*CALL_WORDS, *AXIS, *DIM) or names.count(name) > 1:
            raise ImportError(f"rooftile: {f['name']} has an operand or option \"{name}\", a name that is taken")
    return f


def make(place, f, below_gradients):
    doc = f"{usage(checked(f), '$self, ')}\n--\n\n{docstring(f)}"
    return _core.make_function(place, usage(f), doc, below_gradients)


public = {name: make(place, f, False) for place, (name, f) in enumerate(signatures.items())}
if "permute" in public:
    public["permute"] = _permute.described(public["permute"], "rooftile", _permute.USAGE)
#: The same for the operators of rooftile.torch: they take tensors as numbers, gradients or not.
below_gradients = {name: make(place, f, True) for place, (name, f) in enumerate(signatures.items())}

#: Functions that take numbers and shapes that broadcast.
BROADCAST = ("add",)


def by_views(function, args, words):
    """A call that _core does not take as it is: one on views of its arrays."""
    if function not in BROADCAST or any(w in AXIS for w in words):
        return along(function, args, words)
    names = [o["name"] for o in inputs(signatures[function])]
    arrays = dict(zip(names, args)) | {n: words[n] for n in names if n in words}
    arrays = {n: a for n, a in arrays.items() if n in names}
    for n, a in arrays.items():
        if not _frameworks.is_number(a):
            _frameworks.framework_of(function, n, type(a))  # or a TypeError
    made = _frameworks.broadcast_views(arrays)
    rest = {n: w for n, w in words.items() if n not in names}
    shapes = {tuple(getattr(a, "shape", ())) for a in made.values()}
    call = public if len(shapes) == 1 and not any(map(_frameworks.is_number, made.values())) else below_gradients
    return call[function](**made, **rest)  # the last refuses what does not fit, and asks for no views


def along(function, args, words):
    """A call with rows along other dimensions than the last: one on views."""
    f = signatures[function]
    named = {n: w for n, w in words.items() if n not in AXIS}
    taken = row_words(f)
    wrong = next((w for w in words if w in AXIS and w not in taken), None)
    if wrong:
        raise TypeError(f"{function}: takes no {wrong!r}; it takes {usage(f)}")
    dims, keep = (words.get(n, value) for n, value in zip(AXIS, (-1, False)))
    if len(args) > len(inputs(f)):  # which it refuses
        return public[function](*args, **named)
    made = [o["name"] for o in f["operands"] if is_output(o) and not o["optional"]]
    out = named.pop("out", None)
    given = dict(zip((o["name"] for o in inputs(f)), args)) | dict(zip(made, out if isinstance(out, tuple) else (out,)))
    given |= {n: named.pop(n) for n in [o["name"] for o in f["operands"] if o["name"] in named]}
    numbers = {o["name"] for o in f["operands"] if o["one"] and "i64" in o["dtypes"]}
    arrays = {n: a for n, a in given.items() if not (a is None or isinstance(a, bool) or n in numbers and type(a) is int)}
    for n, a in arrays.items():
        if not hasattr(a, "shape"):
            _frameworks.framework_of(function, n, type(a))  # or a TypeError
    rows = _rows.Rows(function, f["operands"], arrays, AXIS[0], dims, keep, _frameworks.move)
    if len(rows.dims) > 1 and any(rows.is_of_rows(n) and o["role"] == "output" for n, o in rows.operands.items() if n in arrays):
        raise ValueError(f"{function}: an output is given and axis is {dims!r}; give one axis, or no output")
    given |= {n: rows.given(n, a) for n, a in arrays.items()}
    outs = tuple(given.pop(n, None) for n in made)
    if any(o is not None for o in outs):
        named["out"] = outs
    result = public[function](**given, **named)
    names = getattr(result, "_fields", made)
    shown = [arrays[n] if n in arrays else rows.result(n, r) for n, r in zip(names, result if hasattr(result, "_fields") else (result,))]
    return type(result)(*shown) if hasattr(result, "_fields") else shown[0]
