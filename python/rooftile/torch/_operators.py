"""Each function of the library as an operator of PyTorch's, by a loop over the signatures: schema, kernel, fake
implementation from the shape letters, gradient from the backward's operand names, batching rule.

An operator takes the inputs in the signature's order, then the options, then with_<output> for each optional output. It
returns all outputs; one that was not asked for has no elements.
"""

import inspect

import torch

from rooftile import _frameworks, _functions

library = torch.library.Library("rooftile", "DEF")
OUTPUT, IN_OUT = "output", "in_out"


def dtype_of(name):
    return getattr(torch, _frameworks.DTYPES[name])


class Function:
    """What follows from one signature."""

    def __init__(self, signature):
        self.name = signature["name"]
        self.operands = signature["operands"]
        self.options = signature["options"]
        self.inputs = [o for o in self.operands if o["role"] != OUTPUT]
        self.outputs = [o for o in self.operands if o["role"] == OUTPUT]
        self.optional_outputs = [o["name"] for o in self.outputs if o["optional"]]
        self.required = len([o for o in self.inputs if not o["optional"]])
        self.mutates = any(o["role"] == IN_OUT for o in self.operands)
        self.backward = signature["backward"]
        self.kernel = _functions.below_gradients[self.name]
        self.defaults = {o["name"]: self.default(o) for o in self.options}

    def schema(self):
        words, letter = [], ord("a")
        for o in self.inputs:
            kind = "Tensor"
            if o["role"] == IN_OUT:
                kind = f"Tensor({chr(letter)}!)"
                letter += 1
            words.append(f"{kind}? {o['name']}=None" if o["optional"] else f"{kind} {o['name']}")
        # Required ones may stand behind optional ones in a signature; a schema has them first.
        words.sort(key=lambda w: "=" in w)
        self.order = [w.split()[1].split("=")[0] for w in words]
        for o in self.options:
            value = self.defaults[o["name"]]
            words.append(f"{type(value).__name__} {o['name']}={value}")
        words += [f"bool with_{name}=False" for name in self.optional_outputs]
        result = ", ".join(["Tensor"] * len(self.outputs))
        return f"{self.name}({', '.join(words)}) -> {result if len(self.outputs) == 1 else '(' + result + ')'}"

    def split(self, args):
        """An operator's arguments: tensors by name, options by name, the names of the optional outputs asked for.
        PyTorch leaves out the last ones where they have their defaults."""
        tensors = dict.fromkeys(self.order) | dict(zip(self.order, args))
        at = len(self.order)
        options = dict(self.defaults)
        options.update((o["name"], value) for o, value in zip(self.options, args[at:]))
        at += len(self.options)
        wanted = {name for name, value in zip(self.optional_outputs, args[at:]) if value}
        return tensors, options, wanted

    def join(self, tensors, options, wanted):
        return (*(tensors.get(name) for name in self.order),
                *({**self.defaults, **options}[o["name"]] for o in self.options),
                *(name in wanted for name in self.optional_outputs))

    @staticmethod
    def default(option):
        value = option["default"]
        if option["kind"] == "flag":
            return bool(value)
        return int(value) if option["kind"] == "choice" else float(_functions.shortest(value))

    # -- What the operator does

    def run(self, *args):
        if len(self.order) == self.required and not self.optional_outputs and not self.mutates:  # 3 µs less
            return self.kernel(*args[:self.required], **dict(zip(self.defaults, args[self.required:])))
        tensors, options, wanted = self.split(args)
        like = next(t for t in tensors.values() if t is not None)
        places = [tensors[o["name"]] for o in self.inputs if not o["optional"]]
        words = {o["name"]: tensors[o["name"]] for o in self.inputs if o["optional"]}
        result = self.kernel(*places, **words, **options, **{name: True for name in wanted})
        if self.mutates and not self.outputs:
            return None
        made = iter(result if isinstance(result, tuple) else (result,))
        filled = tuple(next(made) if not o["optional"] or o["name"] in wanted else like.new_empty(0)
                       for o in self.outputs)
        return filled[0] if len(filled) == 1 else filled

    # -- What it would return: shapes and dtypes from the letters

    def infer(self, tensors, operand):
        dtype = None
        letter = operand["type"]
        while letter and dtype is None:  # its own letter's, else that of the letter which it may follow
            bound = [o for o in self.inputs if o["type"] == letter and tensors[o["name"]] is not None]
            dtype = tensors[bound[0]["name"]].dtype if bound else None
            letter = next(o for o in self.operands if o["type"] == letter)["or_as"]
        shape = []
        for o in self.inputs if operand["outer"] else ():
            tensor = tensors[o["name"]]
            if o["outer"] and tensor is not None:
                shape += tensor.shape[:tensor.dim() - len(o["letters"])]
                break
        for letter in operand["letters"]:
            size = int(letter) if letter.isdigit() else None
            for o in self.inputs:
                tensor = tensors[o["name"]]
                if size is None and letter in o["letters"] and tensor is not None:
                    size = tensor.shape[tensor.dim() - len(o["letters"]) + o["letters"].index(letter)]
            shape.append(size)
        return shape, dtype or dtype_of(operand["dtypes"][0])

    def fake(self, *args):
        tensors, _, wanted = self.split(args)
        if not self.outputs:
            return None
        like = next(t for t in tensors.values() if t is not None)
        made = []
        for o in self.outputs:
            if o["optional"] and o["name"] not in wanted:
                made.append(like.new_empty(0))
            else:
                shape, dtype = self.infer(tensors, o)
                made.append(like.new_empty(shape, dtype=dtype))
        return made[0] if len(made) == 1 else tuple(made)

    # -- Gradients

    def sums(self):
        """Outputs that are the sum of inputs: {"sum": ["x", "residual"]}."""
        return {o["name"]: o["sum_of"].split() for o in self.outputs if o["sum_of"]}

    def needed_outputs(self, tensors):
        """The optional outputs without which the backward can not run."""
        if self.backward is None:
            return set()
        names = {o["name"] for o in known[self.backward].inputs}
        needed = names & set(self.optional_outputs)
        for output, summands in self.sums().items():
            if summands[0] in names and any(tensors.get(s) is not None for s in summands[1:]):
                needed.add(output)
        return needed

    def remember(self, ctx, inputs, output):
        tensors, ctx.options, wanted = self.split(inputs)
        results = dict(zip([o["name"] for o in self.outputs], output if isinstance(output, tuple) else (output,)))
        ctx.set_materialize_grads(False)
        if self.backward is None:
            return
        missing = self.needed_outputs(tensors) - wanted
        ctx.missing = sorted(missing)
        if missing:
            return
        backward = known[self.backward]
        given = dict(tensors)
        for summed, summands in self.sums().items():
            if summed in self.needed_outputs(tensors):
                given[summands[0]] = results[summed]
        given.update({n: r for n, r in results.items() if n not in given})
        names = [o["name"] for o in backward.inputs]
        ctx.saved = [n for n in names if n in given]
        ctx.save_for_backward(*(given[n] for n in ctx.saved))
        ctx.present = {n for n, t in tensors.items() if t is not None}
        differentiable = {"d" + n for n in results} & set(names)
        still = [r for n, r in results.items() if "d" + n not in differentiable and n not in self.sums()]
        ctx.mark_non_differentiable(*still)

    def gradient(self, ctx, *gradients):
        if self.backward is None:
            raise RuntimeError(f"rooftile.{self.name} has no gradient: the library has no function for it. Call it on "
                               "x.detach(), or use PyTorch's own")
        if ctx.missing:
            raise RuntimeError(f"rooftile.{self.name}: its gradient needs the outputs {', '.join(ctx.missing)}; call "
                               f"rooftile.torch.{self.name}, or the operator with with_<output>=True")
        backward = known[self.backward]
        given = dict(zip(ctx.saved, ctx.saved_tensors))
        arrived = dict(zip([o["name"] for o in self.outputs], gradients))
        for o in backward.inputs:
            name = o["name"]
            if name in given or name[0] != "d":
                continue
            given[name] = arrived[name[1:]]
            if given[name] is None and not o["optional"]:  # only another output was used
                given[name] = torch.zeros_like(next(given[n] for n in (name[1:], *given) if given.get(n) is not None))
        needs = {n for n, need in zip(self.order, ctx.needs_input_grad) if need and n in ctx.present}
        replaced = {s: summands[0] for summands in self.sums().values() for s in summands}
        wanted = {"d" + replaced.get(n, n) for n in needs} & set(backward.optional_outputs)
        options = {o["name"]: ctx.options[o["name"]] for o in backward.options}
        results = backward.operator(*backward.join(given, options, wanted))
        results = dict(zip([o["name"] for o in backward.outputs], results if isinstance(results, tuple) else (results,)))
        gradient = {}
        for n in needs:
            gradient[n] = results.get("d" + replaced.get(n, n))
            for summed, summands in self.sums().items():
                if n in summands and arrived[summed] is not None:
                    gradient[n] = gradient[n] + arrived[summed]
        return (*(gradient.get(n) for n in self.order), *(None for _ in self.options), *(None for _ in self.optional_outputs))

    # -- Batches

    def batched(self, info, in_dims, *args):
        """vmap: a batch is one more outer size where all operands have such; else one call after the other."""
        tensors, options, wanted = self.split(args)
        where = dict.fromkeys(self.order) | dict(zip(self.order, in_dims))
        size = info.batch_size
        outer = {o["name"]: o["outer"] for o in self.operands}
        plain = all(outer[n] for n in self.order if where[n] is not None) and all(o["outer"] for o in self.outputs)
        if plain:
            for n in self.order:
                if tensors[n] is None or not outer[n]:
                    continue
                tensors[n] = (tensors[n].movedim(where[n], 0) if where[n] is not None
                              else tensors[n].expand(size, *tensors[n].shape))
            result = self.operator(*self.join(tensors, options, wanted))
        else:
            def one(i):
                single = {n: t.select(where[n], i) if where[n] is not None else t for n, t in tensors.items()}
                made = self.operator(*self.join(single, options, wanted))
                return made if isinstance(made, tuple) else (made,)

            columns = zip(*[one(i) for i in range(size)])
            result = tuple(torch.stack(c) for c in columns)
            result = result[0] if len(result) == 1 else result
        dims = tuple(None if o["optional"] and o["name"] not in wanted and plain else 0 for o in self.outputs)
        return result, dims[0] if len(dims) == 1 else dims

    # -- What rooftile.torch shows

    def public(self):
        places = [o["name"] for o in self.inputs if not o["optional"]]
        words = [o["name"] for o in self.inputs if o["optional"]]
        numbers = {o["name"]: o for o in self.options}
        asked = self.optional_outputs
        name, outputs = self.name, [o["name"] for o in self.outputs]

        def call(*args, **named):
            if len(args) > len(places):
                raise TypeError(f"{name}: takes {len(places)} tensors by place, was given {len(args)}")
            tensors = dict(zip(places, args))
            options, wanted = {}, set()
            for word, value in named.items():
                if word in tensors:
                    raise TypeError(f"{name}: {word} is given twice")
                if word in places or word in words:
                    tensors[word] = value
                elif word in numbers:
                    options[word] = number(name, numbers[word], value)
                elif word in asked:
                    if not isinstance(value, bool) and value is not None:
                        raise TypeError(f"{name}: {word} must be True or False where gradients are")
                    if value:
                        wanted.add(word)
                elif word in _functions.CALL_WORDS:
                    if value is not None:
                        raise TypeError(f"{name}: {word}= does not go together with gradients, torch.compile and vmap; "
                                        "call it under torch.no_grad() on plain tensors")
                else:
                    raise TypeError(f"{name}: takes no '{word}'; it takes {signature}")
            for place in places:
                if place not in tensors:
                    raise TypeError(f"{name}: {place} is absent; it takes {signature}")
            needs = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors.values())
            if needs and self.mutates:
                raise RuntimeError(f"{name}: writes its operand and has no gradient; call it under torch.no_grad()")
            result = self.operator(*self.join(tensors, options, wanted | (self.needed_outputs(tensors) if needs else set())))
            if not outputs:
                written = tuple(tensors[o["name"]] for o in self.inputs if o["role"] == IN_OUT)
                return written[0] if len(written) == 1 else written
            if len(outputs) == 1:
                return result
            shown = tuple(r for n, r in zip(outputs, result) if n not in asked or n in wanted)
            return shown[0] if len(shown) == 1 else shown

        parameters = [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in places]
        parameters += [inspect.Parameter(w, inspect.Parameter.KEYWORD_ONLY, default=None) for w in words]
        parameters += [inspect.Parameter(w, inspect.Parameter.KEYWORD_ONLY, default=False) for w in asked]
        parameters += [inspect.Parameter(w, inspect.Parameter.KEYWORD_ONLY, default=value)
                       for w, value in self.defaults.items()]
        signature = f"{name}{inspect.Signature(parameters)}"
        call.__name__ = call.__qualname__ = name
        call.__signature__ = inspect.Signature(parameters)
        call.__module__ = "rooftile.torch"
        call.__doc__ = _functions.docstring(_functions.signatures[name])
        return call


def number(name, option, value):
    """An option as the operator takes it."""
    if option["kind"] == "flag" and value in (0, 1):
        return bool(value)
    if option["kind"] == "choice":
        words = option["words"].split()
        if isinstance(value, str) and value not in words:
            raise ValueError(f"{name}: {option['name']} is {value!r}, must be one of: {option['words']}")
        return words.index(value) if isinstance(value, str) else int(value)
    if option["kind"] == "flag" or isinstance(value, str):
        raise TypeError(f"{name}: {option['name']} is {value!r}, must be "
                        f"{'True or False' if option['kind'] == 'flag' else 'a number'}")
    return float(value)


known = {name: Function(signature) for name, signature in _functions.signatures.items()}
for function in known.values():
    library.define(function.schema(), tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
    for device in ("CPU", "CUDA"):
        library.impl(function.name, function.run, device)
    torch.library.register_fake(f"rooftile::{function.name}", function.fake, lib=library)
    if not function.mutates:
        torch.library.register_autograd(f"rooftile::{function.name}", function.gradient,
                                        setup_context=function.remember, lib=library)
        torch.library.register_vmap(f"rooftile::{function.name}", function.batched, lib=library)
    function.operator = getattr(torch.ops.rooftile, function.name).default

functions = {name: function.public() for name, function in known.items()}
