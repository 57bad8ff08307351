"""rooftile's functions for JAX on CPUs and GPUs: under jit, grad and vmap.

    y = rooftile.jax.softmax(x, scale=0.125)
    dx = jax.grad(lambda x: rooftile.jax.softmax(x)[..., 0].sum())(x)

Options are Python's numbers, not traced ones. A function that writes an operand, as axpby, returns it anew. Gradients come
from the library's backward functions; statistics (mean, rstd) have none. Each call is one of XLA's custom calls, by jax.ffi.
"""

import functools

import jax
import numpy

from rooftile import _core, _frameworks, _functions, _permute, _products, _reverse_only, _sharding, _vectors
from rooftile._signature import IN_OUT, OUTPUT, Signature

TARGET = "rooftile_call"
for platform in ("cpu", "CUDA"):
    jax.ffi.register_ffi_target(TARGET, _core.xla_handler(platform == "CUDA"), platform=platform)


def short(dtype):
    """The library's name for a dtype, where it has one."""
    return next((n for n, name in _frameworks.DTYPES.items() if name == dtype), dtype)


class Function(Signature):
    """What follows from one signature. Arrays go by their names, in dicts; options and outputs asked for are static."""

    known = {}
    module = "rooftile.jax"
    move = staticmethod(jax.numpy.moveaxis)

    def __init__(self, place, signature):
        super().__init__(signature)
        self.place = place
        self.results = [o for o in self.operands if o["role"] in (OUTPUT, IN_OUT)]
        self.renewed = {o["may_be"] for o in self.results if o["optional"]}  # by an optional output, in place: no gradient
        if self.has_gradient():
            self.apply = jax.custom_vjp(self.run, nondiff_argnums=(0, 1))
            self.apply.defvjp(self.forward, self.gradient)
        else:
            self.apply = jax.custom_jvp(self.run, nondiff_argnums=(0, 1))
            self.apply.defjvp(self.refuse)

    def has_gradient(self):
        return self.backward is not None

    def run(self, options, wanted, arrays):
        """The call itself: all outputs that are not optional or asked for, by name."""
        made = [o for o in self.results if not o["optional"] or o["name"] in wanted]
        present = [o for o in self.inputs if o["name"] in arrays]
        given = [arrays[o["name"]] for o in present]

        def whole(*parts):
            return self.call(options, present, made, dict(zip((o["name"] for o in present), parts)))

        traced = any(isinstance(a, jax.core.Tracer) for a in given)
        if not traced and any(isinstance(a, jax.Array) and len(a.devices()) > 1 for a in given):
            return jax.jit(lambda parts: self.run(options, wanted, parts))(arrays)
        results = None
        if traced and self.rows_are_apart(present, made):
            rows = _sharding.Rows(present, made, whole, fixed=int(dict(zip(self.defaults, options)).get("causal", 0)))
            shapes = self.shapes(options, made, arrays)
            results = rows.explicit(given, shapes)
            if results is None and not any(map(_sharding.varying, given)):
                results = rows.automatic(given, shapes)
        return dict(zip([o["name"] for o in made], whole(*given) if results is None else results))

    def shapes(self, options, made, arrays):
        shapes = []
        for o in made:
            shape, dtype = self.infer(arrays, o, dict(zip(self.defaults, options)))
            if o["role"] == IN_OUT:
                shape, dtype = arrays[o["name"]].shape, arrays[o["name"]].dtype
            elif isinstance(dtype, str):
                dtype = _frameworks.DTYPES[dtype]
            shapes.append(jax.ShapeDtypeStruct(tuple(shape), dtype))
        return shapes

    def call(self, options, present, made, arrays):
        # A batch is one more outer size, where all have such.
        outer = all(o["outer"] for o in (*present, *made))
        shapes = self.shapes(options, made, arrays)
        call = jax.ffi.ffi_call(TARGET, shapes, vmap_method="broadcast_all" if outer else "sequential")

        def mask(operands):
            return sum(1 << self.operands.index(o) for o in operands)

        results = call(*(arrays[o["name"]] for o in present), place=numpy.int64(self.place), inputs=numpy.int64(mask(present)),
                       outputs=numpy.int64(mask(made)), options=numpy.array([*options, 0.0], numpy.float64))
        return _sharding.varied(results, arrays.values())

    def refuse(self, options, wanted, arrays, tangents):
        raise TypeError(f"{self.name} has no gradient: the library has no function for it; put jax.lax.stop_gradient around its arrays")

    def forward(self, options, wanted, arrays):
        results = self.apply(options, tuple({*wanted, *self.needed_outputs(arrays)}), arrays)
        shown = {n: r for n, r in results.items() if n not in self.optional_outputs or n in wanted}
        return shown, (self.saved(arrays, results), _sharding.kinds(arrays))

    def gradient(self, options, wanted, saved, arrived):
        given, present = saved
        backward = self.known[self.backward]
        given = dict(given)
        for o in backward.inputs:
            if o["name"] not in given and o["name"][1:] in arrived:
                given[o["name"]] = arrived[o["name"][1:]]
        names = self.gradient_names(dict(present))
        asked = tuple(set(names.values()) & set(backward.optional_outputs))
        by_name = dict(zip(self.defaults, options))
        results = backward.apply(tuple(by_name[o] for o in backward.defaults), asked, given)
        gradients = {n: results.get(d) for n, d in names.items()}  # None of what has none: such is constant
        return (_sharding.summed(self.shaped(self.with_sums(gradients, arrived), given), present),)

    def argument(self, name, array):
        """A traced operand, that refuses what the library has no derivative of."""
        if self.backward and name not in self.renewed and not jax.numpy.issubdtype(array.dtype, jax.numpy.integer):
            if self.gradient_names([name])[name] not in self.known[self.backward].output_names:
                return _reverse_only.constant(array, self.name, name)
        return _reverse_only.argument(array, self.name)

    def check_dtypes(self, arrays):
        """The library's own check runs inside of XLA, whose errors are no TypeErrors."""
        bound = {}
        for o in self.inputs:
            if o["name"] not in arrays:
                continue
            dtype = arrays[o["name"]].dtype.name
            allowed, follows = self.narrow(o), bound.get(o["or_as"])
            if (wide := self.wide(o, arrays)) is not None and dtype != wide.dtype.name:
                like = next(n for n, a in arrays.items() if a is wide)
                raise TypeError(f"{self.name}: {o['name']} is {'x'.join(map(str, arrays[o['name']].shape)) or 'scalar'} {short(dtype)}, "
                                f"must be f64 as {like} is")
            if wide is not None:
                continue
            if follows:  # its own dtypes are those that the other letter has not, and f32
                others = next(p for p in self.operands if p["type"] == o["or_as"])["dtypes"]
                allowed = [n for n in allowed if n not in others or n == "f32" or _frameworks.DTYPES[n] == follows[0]]
            known = dtype in [_frameworks.DTYPES[n] for n in allowed]
            first = bound.setdefault(o["type"], (dtype, o["name"]))
            if known and first[0] == dtype:
                continue
            shown = f"{self.name}: {o['name']} is {'x'.join(map(str, arrays[o['name']].shape)) or 'scalar'} {short(dtype)}, must be "
            if known:
                raise TypeError(shown + f"{short(first[0])} as {first[1]} is")
            if not follows:
                raise TypeError(shown + f"one of {', '.join(allowed)}")
            own = [n for n in allowed if _frameworks.DTYPES[n] != follows[0]]
            raise TypeError(shown + ", ".join(own) + f"{', or ' if own else ''}{short(follows[0])} as {follows[1]} is")

    def public(self):
        def call(*args, **named):
            arrays, options, wanted, rows = self.bind(args, named)
            numbers = self.broadcasts and not all(map(_frameworks.is_number, arrays.values()))
            arrays = {n: a if numbers and _frameworks.is_number(a) else jax.numpy.asarray(a) for n, a in arrays.items()}
            if self.broadcasts:
                arrays = _frameworks.broadcast_views(arrays)
            self.check_dtypes(arrays)
            arrays, brought = self.along(arrays, rows) if rows else (arrays, None)
            if self.has_gradient():
                arrays = {n: self.argument(n, a) if isinstance(a, jax.core.Tracer) else a for n, a in arrays.items()}
            results = self.apply(tuple(float({**self.defaults, **options}[n]) for n in self.defaults), tuple(sorted(wanted)), arrays)
            if not self.outputs:  # of those it updates; under jit a dict comes back sorted
                return self.named([o["name"] for o in self.operands if o["name"] in results], results)
            if self.backward:
                names = {o["name"] for o in self.known[self.backward].inputs}
                results = {n: r if "d" + n in names or n in self.sums else jax.lax.stop_gradient(r)
                           for n, r in results.items()}
            return self.show(results, wanted, brought)

        return self.dress(call)


class Composed(Function):
    """A function whose gradient is computed here, from functions of the library."""

    def has_gradient(self):
        return True

    def forward(self, options, wanted, arrays):
        results = self.apply(options, wanted, arrays)  # a second gradient goes through it
        return results, (self.kept(arrays, dict(zip(self.defaults, options)), results), _sharding.kinds(arrays))

    def gradient(self, options, wanted, saved, arrived):
        kept, present = saved
        names = dict(present)
        if any(d.dtype == jax.dtypes.float0 for d in arrived.values()):  # of integers
            return (dict.fromkeys(names),)
        made = self.gradients(kept, dict(zip(self.defaults, options)), arrived, set(names))
        return (_sharding.summed({n: made.get(n) for n in names}, present),)

    select = staticmethod(jax.numpy.where)
    cast = staticmethod(jax.numpy.astype)
    sign = staticmethod(jax.numpy.sign)


class Vectors(_vectors.Vectors, Composed):
    def of(self, name, x, **options):
        f = self.known[name]
        (y,) = f.apply(tuple(float(v) for v in (f.defaults | options).values()), (), {"x": x}).values()
        return y


class Product(_products.Product, Composed):
    """A product, whose gradients are products."""

    def product(self, a, b, c=None, bias=None, **options):
        arrays = {n: x for n, x in {"a": a, "b": b, "c": c, "bias": bias}.items() if x is not None}
        return self.apply(tuple(float({**self.defaults, **options}[n]) for n in self.defaults), (), arrays)["y"]

    def derivative(self, function, given, dy, **options):
        backward = self.known[f"{function}_backward"]
        names = [o["name"] for o in backward.inputs]
        made = backward.apply(tuple(float(v) for v in (backward.defaults | options).values()), (), dict(zip(names, (given, dy))))
        return made["dx"]

    def like(self, operand, a, b, alpha):
        return self.product(a, b, alpha=alpha)

    @staticmethod
    def ones(count, like):
        return jax.numpy.ones((1, count), like.dtype)

    @staticmethod
    def batch(x, count):
        return jax.numpy.broadcast_to(x, (count, *x.shape))


COMPOSED = {"gemm": Product, **dict.fromkeys(_vectors.RULES, Vectors)}
known = Function.known
known.update((name, COMPOSED.get(name, Function)(place, signature))
             for place, (name, signature) in enumerate(_functions.signatures.items())
             if not _functions.has_lists(signature))  # written in place, which JAX's arrays are not
functions = {name: function.public() for name, function in known.items()}


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def permuted(dims, x):
    """One of XLA's custom calls that sees x by a permuted view: XLA itself moves nothing. dims count from the last one, so that
    the outer size of a batch stays where it is."""
    shape = [*x.shape[:x.ndim - len(dims)], *(x.shape[d] for d in dims)]
    call = jax.ffi.ffi_call(TARGET, jax.ShapeDtypeStruct(shape, x.dtype), vmap_method="broadcast_all")
    return call(x, place=numpy.int64(known["permute"].place), inputs=numpy.int64(1), outputs=numpy.int64(2),
                options=numpy.array([0.0], numpy.float64), order=numpy.array([d + len(dims) for d in dims], numpy.int64))


def permuted_backward(dims, _, dy):
    if dy.dtype == jax.dtypes.float0:  # of integers
        return (numpy.zeros([dy.shape[d] for d in _permute.inverse([e + len(dims) for e in dims])], jax.dtypes.float0),)
    back = _permute.inverse([d + len(dims) for d in dims])
    return (permuted(tuple(d - len(dims) for d in back), dy),)


permuted.defvjp(lambda dims, x: (permuted(dims, x), None), permuted_backward)


def permute(x, dims=None):
    """y = x with its dimensions in the order of dims, negative ones from the end; without dims a copy. Under jit, grad and vmap."""
    x = jax.numpy.asarray(x)
    dims = tuple(range(x.ndim)) if dims is None else _permute.order(dims, x.ndim)
    known["permute"].check_dtypes({"x": x})
    return permuted(tuple(d - x.ndim for d in dims), x) if x.ndim else x


if "permute" in functions:
    functions["permute"] = permute
globals().update(functions)
__all__ = ["log_softmax", *functions]


def log_softmax(x, *, scale=1.0, causal=False, masked=False, axis=-1):
    """softmax(x, log=True): the logarithm of softmax, with its gradient."""
    return functions["softmax"](x, scale=scale, log=True, causal=causal, masked=masked, axis=axis)
