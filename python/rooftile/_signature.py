"""What follows from a function's signature for rooftile.torch and rooftile.jax alike: how it is called, shapes and dtypes of
its outputs, and which values its gradient needs."""

import inspect
import itertools
import math
import re

from rooftile import _frameworks, _functions, _rows

OUTPUT, IN_OUT = "output", "in_out"


class Signature:
    """One function; `known` holds those of its framework by their names."""

    known = {}
    module = "rooftile"
    row_names = _functions.AXIS

    def __init__(self, signature):
        self.name = signature["name"]
        self.operands = signature["operands"]
        self.options = signature["options"]
        self.where = signature["where"]
        self.inputs = [o for o in self.operands if o["role"] != OUTPUT]
        self.outputs = [o for o in self.operands if o["role"] == OUTPUT]
        self.output_names = [o["name"] for o in self.outputs]
        self.optional_outputs = [o["name"] for o in self.outputs if o["optional"]]
        self.places = [o["name"] for o in self.inputs if not o["optional"]]
        self.words = [o["name"] for o in self.inputs if o["optional"]]
        self.broadcasts = self.name in _functions.BROADCAST
        self.mutates = any(o["role"] == IN_OUT for o in self.operands)
        self.backward = signature["backward"]
        self.defaults = {o["name"]: self.default(o) for o in self.options}
        self.row_words = _functions.row_words(signature, self.row_names)
        self.numbers = {o["name"]: o for o in self.options}
        #: Outputs that are the sum of inputs: {"sum": ["x", "residual"]}.
        self.tuples = self.result_types()
        self.sums = {o["name"]: o["sum_of"].split() for o in self.outputs if o["sum_of"]}

    @staticmethod
    def default(option):
        value = option["default"]
        if option["kind"] == "flag":
            return bool(value)
        return int(value) if option["kind"] in ("choice", "whole") else float(_functions.shortest(value))

    # -- Calls

    def parameters(self):
        kinds = inspect.Parameter
        return [*(kinds(p, kinds.POSITIONAL_OR_KEYWORD) for p in self.places),
                *(kinds(w, kinds.KEYWORD_ONLY, default=None) for w in self.words),
                *(kinds(w, kinds.KEYWORD_ONLY, default=False) for w in self.optional_outputs),
                *(kinds(w, kinds.KEYWORD_ONLY, default=value) for w, value in (self.defaults | self.row_words).items())]

    def bind(self, args, named):
        """The arrays of a call by name, its options by name, the optional outputs that it asks for, and where its rows are."""
        name, places = self.name, self.places
        if len(args) > len(places):
            raise TypeError(f"{name}: takes {len(places)} arrays by place, was given {len(args)}; it takes {self.usage}")
        arrays, options, wanted, rows = dict(zip(places, args)), {}, set(), dict(self.row_words)
        for word, value in named.items():
            if word in arrays:
                raise TypeError(f"{name}: {word} is given twice")
            if word in places:
                arrays[word] = value
            elif word in self.words:
                if value is not None:
                    arrays[word] = value
            elif word in self.numbers:
                options[word] = self.number(self.numbers[word], value)
            elif word in self.row_words:
                rows[word] = value
            elif word in self.optional_outputs:
                if not isinstance(value, bool) and value is not None:
                    raise TypeError(f"{name}: {word} is an array; where gradients are it can be True or False")
                if value:
                    wanted.add(word)
            elif word in _functions.CALL_WORDS:
                if value is not None:
                    raise TypeError(f"{name}: {word}= does not go together with gradients, compiling and vmap; leave it out, or "
                                    f"call rooftile.{name} on arrays without gradients")
            else:
                raise TypeError(f"{name}: takes no '{word}'; it takes {self.usage}")
        for place in places:
            if place not in arrays:
                raise TypeError(f"{name}: {place} is absent; it takes {self.usage}")
        if not self.inputs:
            raise TypeError(f"{name}: takes no array, so nothing says the result's sizes, dtype and device; call "
                            f"rooftile.{name}(out=array)")
        first = self.inputs[0]
        if options.get("causal") and first["outer"] and len(first["letters"]) == 1 and len(getattr(arrays[first["name"]], "shape", "QK")) < 2:
            # The library's own words; under vmap it would take the batch for queries.
            raise ValueError(f"{name}: {first['name']} has rank 1; with causal it has queries and keys, rank 2 at least")
        return arrays, options, wanted, rows if rows != self.row_words else None

    def number(self, option, value):
        """An option as a bool, an int or a float."""
        name, kind = option["name"], option["kind"]
        if kind == "choice":
            words = option["words"].split()
            if isinstance(value, str) and value not in words:
                raise ValueError(f"{self.name}: {name} is {value!r}, must be one of: {option['words']}")
            return words.index(value) if isinstance(value, str) else int(value)
        if isinstance(value, str):
            raise TypeError(f"{self.name}: {name} is {value!r}, must be {'True or False' if kind == 'flag' else 'a number'}")
        number = value if isinstance(value, (bool, int, float)) else _frameworks.option_value(self.name, name, value)
        if kind == "flag" and number not in (0, 1):
            raise TypeError(f"{self.name}: {name} is {value!r}, must be True or False")
        if kind == "whole" and int(number) != number:
            raise ValueError(f"{self.name}: {name} is {value!r}, must be a whole number")
        return bool(number) if kind == "flag" else int(number) if kind == "whole" else float(number)

    def along(self, arrays, rows):
        """A call's arrays with the rows last, and what brings its results back."""
        dims, keep = (*rows.values(), False)[:2]
        brought = _rows.Rows(self.name, self.operands, arrays, self.row_names[0], dims, keep, self.move)
        return {n: brought.given(n, a) for n, a in arrays.items()}, brought

    def show(self, results, wanted, brought=None):
        """Of all outputs by name those that a call asked for."""
        names = [n for n in self.output_names if n not in self.optional_outputs or n in wanted]
        return self.named(names, {n: brought.result(n, results[n]) for n in names} if brought else results)

    def named(self, names, results):
        """One result, or the named tuple that rooftile's own function returns."""
        if len(names) == 1:
            return results[names[0]]
        return self.tuples[tuple(names)](*[results[n] for n in names])

    def result_types(self):
        """Of each selection of optional outputs; all now, as torch.compile follows no making of types."""
        types = {}
        for count in range(len(self.optional_outputs) + 1):
            for wanted in itertools.combinations(self.optional_outputs, count):
                names = tuple(n for n in self.output_names if n not in self.optional_outputs or n in wanted)
                names = names or tuple(o["name"] for o in self.inputs if o["role"] == IN_OUT)
                if len(names) > 1:
                    types[names] = _frameworks.result_type(self.name, names).__self__
        return types

    def dress(self, call):
        """Name, signature and documentation for what the framework's module shows."""
        signature = inspect.Signature(self.parameters())
        self.usage = f"{self.name}{signature}"
        call.__name__ = call.__qualname__ = self.name
        call.__signature__ = signature
        call.__module__ = self.module
        call.__doc__ = _functions.docstring(_functions.signatures[self.name], self.row_names)
        return call

    # -- Outputs

    def size_of(self, letter, arrays, options):
        """What a letter stands for in a call: a size of an input, or what a relation of the signature says; None where
        neither tells. Sizes may be symbolic."""
        if letter.isdigit():
            return int(letter)
        for o in self.inputs:
            array = arrays.get(o["name"])
            if letter in o["letters"] and array is not None:
                at = len(array.shape) - len(o["letters"]) + o["letters"].index(letter)
                if at < 0:
                    raise ValueError(f"{self.name}: {o['name']} has {len(array.shape)} dimensions, needs at least "
                                     f"{len(o['letters'])}")
                return array.shape[at]
        for relation in self.where.split(";"):
            left, _, right = relation.partition("=")
            if left.strip() != letter:
                continue
            names = {name: self.size_of(name, arrays, options) for name in re.findall(r"\b[A-Z]\b", right)}
            names |= {name: int(options.get(name, default)) for name, default in self.defaults.items()
                      if self.numbers[name]["kind"] not in ("real", "any_real")}
            names["outer"] = math.prod(self.outer_of(arrays))
            return eval(right.replace("/", "//"), {"__builtins__": {}}, names)  # the library's own text
        return None

    def outer_of(self, arrays):
        """The outer sizes of a call."""
        for o in self.inputs:
            array = arrays.get(o["name"])
            if o["outer"] and array is not None:
                return list(array.shape[:len(array.shape) - len(o["letters"])])
        return []

    def infer(self, arrays, operand, options):
        """An output's shape, and its dtype as an array of the call has it or by the library's name. The library's own check
        refuses what does not fit."""
        wide = self.wide(operand, arrays)
        dtype, letter = None if wide is None else wide.dtype, operand["type"]
        while letter and dtype is None:  # its own letter's, else that of the letter which it may follow
            bound = [o for o in self.inputs if o["type"] == letter and arrays.get(o["name"]) is not None]
            dtype = arrays[bound[0]["name"]].dtype if bound else None
            letter = next(o for o in self.operands if o["type"] == letter)["or_as"]
        known = not operand["outer"] or any(o["outer"] for o in self.inputs)
        shape = self.outer_of(arrays) if operand["outer"] and known else []
        shape += [self.size_of(letter, arrays, options) for letter in operand["letters"]]
        if not known or None in shape:
            raise ValueError(f"{self.name}: the sizes of {operand['name']} do not follow from the inputs; pass rooftile.{self.name} "
                             "an array for it by out=")
        return shape, self.narrow(operand)[0] if dtype is None else dtype

    def wide(self, operand, arrays):
        """An array of f64 as which this operand is f64, too: rows' statistics."""
        same = (arrays.get(o["name"]) for o in self.inputs if operand["wide_as"] and o["type"] == operand["wide_as"])
        return next((a for a in same if a is not None and a.dtype.itemsize == 8), None)

    def narrow(self, operand):
        """What it may have where it is not f64 as another is."""
        return [n for n in operand["dtypes"] if n != "f64" or not operand["wide_as"]]

    def rows_are_apart(self, present, made):
        """Whether rows, or elements, know nothing of each other, but for a weight's gradient, which is a sum over them: whether
        devices may share them out. `present`, `made`: a call's operands."""
        if not any(o["outer"] for o in present) or self.mutates:
            return False
        if any(o["one"] and (o["optional"] if "f32" in o["dtypes"] else o in present) for o in self.operands):
            return False  # a mean over all rows; a seed, beside which an element's place counts
        if any(o["one"] and not o["optional"] for o in made):
            return False  # a number of the whole tensor
        return all(o["outer"] or self.name.endswith("_backward") for o in made)

    # -- Gradients

    def needed_outputs(self, present):
        """The optional outputs without which the backward can not run, where these inputs are present."""
        if self.backward is None:
            return set()
        names = {o["name"] for o in self.known[self.backward].inputs}
        needed = names & set(self.optional_outputs)
        for output, summands in self.sums.items():
            if summands[0] in names and any(s in present for s in summands[1:]):
                needed.add(output)
        return needed

    def saved(self, arrays, results):
        """What the backward takes of a call's inputs and outputs, by the backward's names."""
        given = {n: a for n, a in arrays.items() if a is not None}
        for summed in self.needed_outputs(given) & set(self.sums):
            given[self.sums[summed][0]] = results[summed]
        given = {**results, **given}
        return {o["name"]: given[o["name"]] for o in self.known[self.backward].inputs if o["name"] in given}

    def gradient_names(self, needs):
        """For each of these inputs, the backward's output that is its gradient."""
        first = {s: summands[0] for summands in self.sums.values() for s in summands}
        return {n: "d" + first.get(n, n) for n in needs}

    def shaped(self, gradients, arrays):
        """A gradient of one element in its operand's shape: the library takes one in any number of dimensions."""
        for o in self.inputs:
            if o["one"] and gradients.get(o["name"]) is not None:
                gradients[o["name"]] = gradients[o["name"]].reshape(arrays[o["name"]].shape)
        return gradients

    def with_sums(self, gradients, arrived):
        """Adds what came to an output that is a sum: it goes to each summand in addition."""
        for summed, summands in self.sums.items():
            if arrived.get(summed) is not None:
                for n in summands:
                    if gradients.get(n) is not None:
                        gradients[n] = gradients[n] + arrived[summed]
        return gradients
