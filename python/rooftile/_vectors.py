"""Gradients of blas1's functions, of transpose and of permute: the library's own functions, or products by a number that a call computed."""

#: Of each function's inputs: the gradient from f, a framework's Vectors; d, what arrived at the outputs, by name; what KEPT
#: names; options. None is 0: a factor of 0 reads nothing.
RULES = {
    "copy": {"x": lambda f, d: d["y"]},
    "scal": {"x": lambda f, d, alpha: f.of("scal", d["y"], alpha=alpha)},
    "add": {"x": lambda f, d: d["z"], "y": lambda f, d: d["z"]},
    "axpby": {"x": lambda f, d, alpha, beta: f.of("scal", d["y"], alpha=alpha) if alpha else None,
              "y": lambda f, d, alpha, beta: f.of("scal", d["y"], alpha=beta) if beta else None},
    "swap": {"x": lambda f, d: d["y"], "y": lambda f, d: d["x"]},
    "transpose": {"x": lambda f, d: f.of("transpose", d["y"])},
    "permute": {"x": lambda f, d: d["y"]},  # of the permuted view, whose own gradient is the framework's
    "dot": {"x": lambda f, d, x, y: d["result"] * y, "y": lambda f, d, x, y: d["result"] * x},
    # Of zeros, whose norm has no derivative, 0. The quotient first: it is in [-1, 1].
    "nrm2": {"x": lambda f, d, x, result: x / f.select(result == 0, 1, result) * d["result"]},
    "asum": {"x": lambda f, d, x: f.sign(x) * d["result"]},
}
#: What a call leaves for its gradient.
KEPT = {"dot": ("x", "y"), "nrm2": ("x", "result"), "asum": ("x",)}


class Vectors:
    """A function of RULES, for the Function of a framework. That one adds of(name, x, **options): another function, with its
    gradient; select(condition, x, y) and sign(x)."""

    def kept(self, arrays, options, results):
        return {n: a for n, a in (arrays | results).items() if n in KEPT.get(self.name, ())}

    def gradients(self, kept, options, arrived, needs):
        return {n: rule(self, arrived, **kept, **options) for n, rule in RULES[self.name].items() if n in needs}
