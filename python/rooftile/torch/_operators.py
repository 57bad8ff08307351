"""Each function of the library as an operator of PyTorch's, by a loop over the signatures: schema, kernel, fake
implementation from the shape letters, gradient from the backward's operand names, batching rule.

An operator takes the inputs in the signature's order, then the options, then with_<output> for each optional output. It
returns all outputs; one that was not asked for has no elements.
"""

import torch
from torch.autograd import forward_ad

from rooftile import _frameworks, _functions, _permute, _products, _vectors
from rooftile._signature import IN_OUT, Signature
from rooftile.torch import _dtensor


class Library(torch.library.Library):
    """PyTorch's, whose autograd layer goes straight to the kernel where there is nothing to differentiate and no mode, no
    subclass and no transform listens: the layer would send a call through the dispatcher a second time."""

    def impl(self, name, layer, key="", **words):
        super().impl(name, straight(name, layer) if key == "Autograd" else layer, key, **words)


def written_layer(name):
    """The autograd layer of an operator that writes an operand: what is differentiated must not be written unseen."""
    operator, tensors = known[name], len(known[name].order)
    written = {o["name"] for o in operator.inputs if o["role"] == IN_OUT}

    def layer(keys, *args):
        if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in args[:tensors]):
            raise RuntimeError(f"{name}: writes its operand and has no gradient; call it under torch.no_grad()")
        for operand, t in zip(operator.order, args):
            if operand in written and t.is_neg():  # of an operator that returns nothing, PyTorch would lose what is written
                raise ValueError(f"{name}: {operand} is a negated view of other memory, and the function writes it; pass a "
                                 "tensor of its own, as its .resolve_neg() is")
        with torch._C._AutoDispatchBelowAutograd():
            return operator.operator.redispatch(keys & torch._C._after_autograd_keyset, *args)

    return layer


def straight(name, layer):
    run, enabled = known[name].run, torch.is_grad_enabled
    tensors = len(known[name].order)

    def autograd(keys, *args):
        if forward_ad._current_level >= 0:
            _frameworks.refuse_tangents(name, args[:tensors])
        if keys.raw_repr() not in PLAIN:
            _dtensor.register()
            return layer(keys, *args)
        if enabled():
            for t in args[:tensors]:
                if t is not None and t.requires_grad:
                    return layer(keys, *args)
        return run(*args)

    return autograd


def plain_keys():
    """What the dispatcher knows of a call on ordinary tensors of one device, as numbers."""
    key, keys = torch._C.DispatchKey, torch._C.DispatchKeySet
    return {(keys(kernel) | keys(gradient)).raw_repr() for kernel, gradient in ((key.CPU, key.AutogradCPU),
                                                                                (key.CUDA, key.AutogradCUDA))}


PLAIN = plain_keys()
library = Library("rooftile", "DEF")


def dtype_of(name):
    return getattr(torch, _frameworks.DTYPES[name])


class Function(Signature):
    """What follows from one signature."""

    known = {}
    module = "rooftile.torch"
    row_names = _functions.DIM
    move = staticmethod(torch.movedim)

    def __init__(self, signature):
        super().__init__(signature)
        self.kernel = _functions.below_gradients[self.name]
        #: Its tensors in the operator's order: required ones may stand behind optional ones in a signature.
        self.order = self.places + self.words

    def schema(self):
        words, letter = [], ord("a")
        roles = {o["name"]: o["role"] for o in self.inputs}
        for name in self.order:
            kind = "Tensor"
            if roles[name] == IN_OUT:
                kind = f"Tensor({chr(letter)}!)"
                letter += 1
            words.append(f"{kind}? {name}=None" if name in self.words else f"{kind} {name}")
        words += [f"{type(value).__name__} {name}={value}" for name, value in self.defaults.items()]
        words += [f"bool with_{name}=False" for name in self.optional_outputs]
        result = ", ".join(["Tensor"] * len(self.outputs))
        return f"{self.name}({', '.join(words)}) -> {result if len(self.outputs) == 1 else '(' + result + ')'}"

    def split(self, args):
        """An operator's arguments: tensors by name, options by name, the names of the optional outputs asked for.
        PyTorch leaves out the last ones where they have their defaults."""
        tensors = dict.fromkeys(self.order) | dict(zip(self.order, args))
        at = len(self.order)
        options = dict(self.defaults)
        options.update(zip(self.defaults, args[at:]))
        at += len(self.options)
        wanted = {name for name, value in zip(self.optional_outputs, args[at:]) if value}
        return tensors, options, wanted

    def join(self, tensors, options, wanted):
        return (*(tensors.get(name) for name in self.order), *(options.get(n, value) for n, value in self.defaults.items()),
                *(name in wanted for name in self.optional_outputs))

    def by_name(self, result):
        return dict(zip(self.output_names, result if isinstance(result, tuple) else (result,)))

    # -- What the operator does

    def run(self, *args):
        if not self.words and not self.optional_outputs and not self.mutates:  # 3 µs less
            return self.kernel(*args[:len(self.order)], **dict(zip(self.defaults, args[len(self.order):])))
        tensors, options, wanted = self.split(args)
        like = next(t for t in tensors.values() if t is not None)
        places, words = [tensors[n] for n in self.places], {n: tensors[n] for n in self.words}
        result = self.kernel(*places, **words, **options, **dict.fromkeys(wanted, True))
        if self.mutates and not self.outputs:
            return None
        made = iter(result if isinstance(result, tuple) else (result,))
        filled = tuple(next(made) if not o["optional"] or o["name"] in wanted else like.new_empty(0)
                       for o in self.outputs)
        return filled[0] if len(filled) == 1 else filled

    # -- What it would return: shapes and dtypes from the letters

    def fake(self, *args):
        tensors, options, wanted = self.split(args)
        if not self.outputs:
            return None
        like = next(t for t in tensors.values() if t is not None)
        made = []
        for o in self.outputs:
            if o["optional"] and o["name"] not in wanted:
                made.append(like.new_empty(0))
            else:
                shape, dtype = self.infer(tensors, o, options)
                made.append(like.new_empty(shape, dtype=dtype_of(dtype) if isinstance(dtype, str) else dtype))
        return made[0] if len(made) == 1 else tuple(made)

    # -- Gradients

    def remember(self, ctx, inputs, output):
        tensors, ctx.options, wanted = self.split(inputs)
        ctx.set_materialize_grads(False)
        results = self.by_name(output)
        unasked = set(self.optional_outputs) - wanted
        if self.backward is None:
            ctx.mark_non_differentiable(*(r for n, r in results.items() if n in unasked))
            return
        ctx.present = {n for n, t in tensors.items() if t is not None}
        ctx.missing = self.needed_outputs(ctx.present) - wanted
        ctx.outputs = {n: (r.shape, r.dtype) for n, r in results.items()}
        if ctx.missing:  # the backward computes them from the inputs
            saved = {n: t for n, t in tensors.items() if t is not None}
        else:
            saved = self.saved(tensors, results)
        ctx.saved = list(saved)
        ctx.save_for_backward(*saved.values())
        names = {o["name"] for o in self.known[self.backward].inputs}
        ctx.mark_non_differentiable(*(r for n, r in results.items()
                                      if n in unasked or ("d" + n not in names and n not in self.sums)))

    def gradient(self, ctx, *gradients):
        if self.backward is None:
            raise RuntimeError(f"rooftile.{self.name} has no gradient: the library has no function for it. Call it on "
                               "x.detach(), or use PyTorch's own")
        if all(g is None for g in gradients):
            return (None,) * (len(self.order) + len(self.options) + len(self.optional_outputs))
        backward = self.known[self.backward]
        given = dict(zip(ctx.saved, ctx.saved_tensors))
        if ctx.missing:  # the operator was called without what its gradient needs; rooftile.torch asks for it
            again = self.call(*self.join(given, ctx.options, self.needed_outputs(ctx.present)))
            given = self.saved(given, self.by_name(again))
        arrived = dict(zip(self.output_names, gradients))
        for o in backward.inputs:
            name = o["name"]
            if name in given or name[1:] not in arrived:
                continue
            given[name] = arrived[name[1:]]
            if given[name] is None and not o["optional"]:  # only another output was used
                shape, dtype = ctx.outputs[name[1:]]
                given[name] = next(g for g in gradients if g is not None).new_zeros(shape, dtype=dtype)
        names = self.gradient_names(n for n, need in zip(self.order, ctx.needs_input_grad) if need and n in ctx.present)
        without = sorted(n for n, d in names.items() if d not in backward.output_names)
        if without:
            raise RuntimeError(f"rooftile.{self.name}: the library computes no gradient of {', '.join(without)}; call it on "
                               f"{without[0]}.detach(), or use PyTorch's own")
        wanted = set(names.values()) & set(backward.optional_outputs)
        results = backward.by_name(backward.call(*backward.join(given, ctx.options, wanted)))
        gradient = self.shaped(self.with_sums({n: results.get(d) for n, d in names.items()}, arrived), given)
        return (*(gradient.get(n) for n in self.order), *(None for _ in self.options), *(None for _ in self.optional_outputs))

    # -- Batches

    def batched(self, info, in_dims, *args):
        """vmap: a batch is one more outer size where all operands have such; else one call after the other."""
        tensors, options, wanted = self.split(args)
        where = dict.fromkeys(self.order) | dict(zip(self.order, in_dims))
        size = info.batch_size
        outer = {o["name"]: o["outer"] for o in self.operands}
        plain = all(outer[n] for n in self.order if where[n] is not None) and all(o["outer"] for o in self.outputs)
        # The gradient of a mean over all rows couples them, though each of its outputs is a row.
        plain = plain and not any(o["one"] and o["optional"] for o in self.operands)
        if plain:
            for n in self.order:
                if tensors[n] is None or not outer[n]:
                    continue
                tensors[n] = (tensors[n].movedim(where[n], 0) if where[n] is not None
                              else tensors[n].expand(size, *tensors[n].shape))
            result = self.call(*self.join(tensors, options, wanted))
        else:
            def one(i):
                single = {n: t.select(where[n], i) if where[n] is not None else t for n, t in tensors.items()}
                made = self.call(*self.join(single, options, wanted))
                return made if isinstance(made, tuple) else (made,)

            columns = zip(*[one(i) for i in range(size)])
            result = tuple(torch.stack(c) for c in columns)
            result = result[0] if len(result) == 1 else result
        dims = tuple(None if o["optional"] and o["name"] not in wanted and plain else 0 for o in self.outputs)
        return result, dims[0] if len(dims) == 1 else dims

    # -- Under torch.func's transforms, which take an autograd.Function and no operator with a registered gradient

    def call(self, *args):
        if self.transformed is not None and torch._C._are_functorch_transforms_active():
            return self.transformed.apply(*args)
        return self.operator(*args)

    def transformable(self):
        """The operator as an autograd.Function: the same gradient and batching rule."""
        return type(self.name, (torch.autograd.Function,), {
            "forward": staticmethod(self.call), "setup_context": staticmethod(self.remember),
            "backward": staticmethod(self.gradient), "vmap": staticmethod(self.batched)})

    # -- What rooftile.torch shows

    def tensor(self, name, array, like):
        """A tensor that shares an array's memory; of a number in the place of one integer, beside `like`."""
        if type(array).__module__ == "numpy" and type(array).__name__ == "ndarray":  # the tracer of torch.compile takes it, too
            if not torch.compiler.is_compiling() and (not array.flags.writeable or any(s < 0 for s in array.strides)):
                array = array.copy()  # PyTorch has neither
            return torch.from_numpy(array)
        operand = next(o for o in self.inputs if o["name"] == name)
        if type(array) is int and operand["one"] and "i64" in operand["dtypes"]:
            return _frameworks.whole_number(self.name, name, array, like)
        kind, *_ = _frameworks.framework_of(self.name, name, type(array))  # or a TypeError
        return torch.from_numpy(_frameworks.array_of(array)) if kind == "scalar" else torch.from_dlpack(array)

    def converted(self, tensors):
        """Tensors of arrays of other frameworks; numbers stay where they become as the others are."""
        like = next((t for t in tensors.values() if isinstance(t, torch.Tensor)), None)
        numbers = self.broadcasts and not all(map(_frameworks.is_number, tensors.values()))
        return {n: t if isinstance(t, torch.Tensor) or (numbers and _frameworks.is_number(t)) else self.tensor(n, t, like)
                for n, t in tensors.items()}

    def public(self):
        def call(*args, **named):
            tensors, options, wanted, rows = self.bind(args, named)
            if not all(isinstance(t, torch.Tensor) for t in tensors.values()):
                tensors = self.converted(tensors)
            if self.broadcasts:
                tensors = _frameworks.broadcast(tensors, lambda number, like: like.new_full((), number), torch.Tensor.expand)
            if forward_ad._current_level >= 0:  # its tangents would be zeros, without a word
                _frameworks.refuse_tangents(self.name, tensors.values())
            needs = torch.is_grad_enabled() and any(t.requires_grad for t in tensors.values())
            if needs and self.mutates:
                raise RuntimeError(f"{self.name}: writes its operand and has no gradient; call it under torch.no_grad()")
            tensors, brought = self.along(tensors, rows) if rows else (tensors, None)
            # One trace serves with gradients and without.
            computed = wanted | self.needed_outputs(tensors) if needs or torch.jit.is_tracing() else wanted
            result = self.call(*self.join(tensors, options, computed))
            if self.outputs:
                return self.show(self.by_name(result), wanted, brought)
            return self.named([o["name"] for o in self.inputs if o["role"] == IN_OUT], tensors)

        return self.dress(call)


class Composed(Function):
    """A function whose gradient is computed here, from functions of the library."""

    def remember(self, ctx, inputs, output):
        tensors, ctx.options, _ = self.split(inputs)
        ctx.set_materialize_grads(False)
        kept = self.kept(tensors, ctx.options, self.by_name(output))
        ctx.saved, ctx.present = list(kept), {n for n, t in tensors.items() if t is not None}
        ctx.save_for_backward(*kept.values())

    def gradient(self, ctx, arrived):
        made = {}
        if arrived is not None:
            needs = {n for n, need in zip(self.order, ctx.needs_input_grad) if need and n in ctx.present}
            made = self.gradients(dict(zip(ctx.saved, ctx.saved_tensors)), ctx.options, self.by_name(arrived), needs)
        return (*(made.get(n) for n in self.order), *(None for _ in self.options))

    select = staticmethod(torch.where)
    cast = staticmethod(torch.Tensor.to)
    sign = staticmethod(torch.sign)


class Vectors(_vectors.Vectors, Composed):
    def of(self, name, x, **options):
        f = self.known[name]
        return f.call(*f.join({"x": x}, options, ()))


class Product(_products.Product, Composed):
    """A product, whose gradients are products."""

    def product(self, a, b, c=None, bias=None, **options):
        return self.call(*self.join({"a": a, "b": b, "c": c, "bias": bias}, options, ()))

    def derivative(self, function, given, dy, **options):
        backward = self.known[f"{function}_backward"]
        return backward.call(*backward.join(dict(zip(backward.order, (given, dy))), options, ()))

    def like(self, operand, a, b, alpha):
        if operand.stride(-2) == 1 and operand.stride(-1) != 1:  # a weight's transpose: its gradient is as the weight is
            return self.product(b.mT, a.mT, alpha=alpha).mT
        return self.product(a, b, alpha=alpha)

    @staticmethod
    def ones(count, like):
        return like.new_ones(1).expand(1, count)

    @staticmethod
    def batch(x, count):
        return x.expand(count, *x.shape)


COMPOSED = {"gemm": Product, **dict.fromkeys(_vectors.RULES, Vectors)}
known = Function.known
# Lists, which optimisers take, are written in place by rooftile's own function: there is nothing to differentiate or trace.
lists = [name for name, f in _functions.signatures.items() if _functions.has_lists(f)]
known.update((name, COMPOSED.get(name, Function)(signature)) for name, signature in _functions.signatures.items() if name not in lists)
# [register]
for function in known.values():
    library.define(function.schema(), tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
    for device in ("CPU", "CUDA"):
        library.impl(function.name, function.run, device)
    torch.library.register_fake(f"rooftile::{function.name}", function.fake, lib=library)
    function.transformed = None if function.mutates else function.transformable()
    if function.mutates:
        library.impl(function.name, written_layer(function.name), "Autograd", with_keyset=True)
    else:
        torch.library.register_autograd(f"rooftile::{function.name}", function.gradient,
                                        setup_context=function.remember, lib=library)
        torch.library.register_vmap(f"rooftile::{function.name}", function.batched, lib=library)
    function.operator = getattr(torch.ops.rooftile, function.name).default
# [/register]

functions = {name: function.public() for name, function in known.items()} | {name: _functions.public[name] for name in lists}
if "permute" in functions:
    functions["permute"] = _permute.described(functions["permute"], "rooftile.torch", "permute(x, dims=None)")
