"""Gradients of y = f(alpha·a·b + bias) + beta·c. They are products, too: da = alpha·dz·bᵀ, db = alpha·aᵀ·dz, dbias the columns'
sums of dz, dc = beta·dy, where dz = dy·f'(z). Where c is a gate, y = f(z)·c: dc = dy·f(z), dz = dy·c·f'(z). Each is one of the library's own, on views: nothing is transposed in memory."""

import math

#: Functions whose derivative follows from their value. The others need what they were given, which is computed again.
BY_VALUE = ("relu", "sigmoid", "tanh")
#: Rows that are summed at a time, then their sums: the error of f32 grows by the logarithm of rows.
CHUNK = 16


class Product:
    """gemm with gradients, for the Function of a framework. That one adds product(a, b, …), derivative(function, given, dy,
    **options), select(condition, x, y), ones(count, like) as a row, batch(x, count), cast(x, dtype), and like(operand, a, b, alpha): their
    product laid out as the operand is."""

    def function(self, options):
        return self.numbers["activation"]["words"].split()[int(options["activation"])]

    def kept(self, arrays, options, results):
        """What a call leaves for its gradient, by name."""
        kept = {n: arrays[n] for n in ("a", "b", "bias") if arrays.get(n) is not None}
        if options["gate"]:
            kept["c"] = arrays["c"]
        elif self.function(options) in BY_VALUE and options["beta"] == 0:
            kept["y"] = results["y"]
        return kept

    def before_activation(self, kept, options, dy):
        """dz."""
        f, value = self.function(options), kept.get("y")
        if f == "none":
            return dy
        if value is None:
            again = options["activation"] if f in BY_VALUE else 0
            value = self.product(kept["a"], kept["b"], bias=kept.get("bias"), alpha=options["alpha"], activation=again)
        if f == "relu":
            return self.select(value <= 0, 0, dy)
        return self.derivative(f.removesuffix("_tanh"), value, dy, **({"tanh": f == "gelu_tanh"} if f[:4] == "gelu" else {}))

    def gradients(self, kept, options, arrived, needs):
        """Of those that need one, by name; beta = 0 reads no c, which gets none."""
        made, a, b, dy = {}, kept["a"], kept["b"], arrived["y"]
        if options["gate"]:
            if "c" in needs:
                made["c"] = self.product(a, b, c=dy, bias=kept.get("bias"), **{**options, "beta": 0.0})
            dy = dy * kept["c"]
        elif "c" in needs and options["beta"] != 0:
            made["c"] = dy * options["beta"]
        if needs & {"a", "b", "bias"}:
            dz = self.before_activation(kept, options, dy)
        if "a" in needs:
            made["a"] = self.like(a, dz, b.mT, options["alpha"])
        if "b" in needs:
            made["b"] = self.like(b, a.mT, dz, options["alpha"])
        if "bias" in needs:
            sums = self.column_sums(dz.reshape(math.prod(dz.shape[:-1]), dz.shape[-1]))
            made["bias"] = self.cast(sums, kept["bias"].dtype)
        return made

    def column_sums(self, x):
        """By products with ones."""
        rows, columns = x.shape
        if rows <= CHUNK or x.dtype.itemsize < 4:  # of 16 bits sums are in f32, with digits to spare
            return self.product(self.ones(rows, x), x)[0]
        chunks, ones = rows // CHUNK, self.ones(CHUNK, x)
        parts = self.product(self.batch(ones, chunks), x[:chunks * CHUNK].reshape(chunks, CHUNK, columns))
        sums = self.column_sums(parts.reshape(chunks, columns))[None]
        return self.product(ones[:, :rows - chunks * CHUNK], x[chunks * CHUNK:], c=sums, beta=1.0)[0]
