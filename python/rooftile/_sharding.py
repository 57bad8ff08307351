"""rooftile.jax on arrays that several devices share: rows stay where they are, and what is not a row is brought to every device.

Where a mesh's axes are explicit, an array's type says how it is sharded, and a call is a shard_map over its rows. Where they are
automatic the compiler chooses, by a rule of one factor for each outer size. In a shard_map of the caller's, results vary along
the axes that their inputs vary along.
"""

import jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as Spec


def varying(array):
    """The axes of a shard_map along which an array differs."""
    of = jax.typeof(array)
    kind = getattr(of, "manual_axis_type", None)
    return frozenset(getattr(of, "vma", None) or ()) if kind is None else frozenset(kind.varying)


def varied(results, arrays):
    """What a custom call made of these arrays, which JAX takes for the same everywhere, varying as they together do."""
    axes = frozenset().union(*map(varying, arrays))

    def one(result):
        more = tuple(sorted(axes - varying(result)))
        if not more:
            return result
        return jax.lax.pcast(result, more, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(result, more)

    return [one(r) for r in results]


@jax.tree_util.register_static
class Kinds(tuple):
    """Of each array of a call by name, the axes along which it varies: what its gradient must be."""


def kinds(arrays):
    return Kinds((n, varying(a)) for n, a in arrays.items())


def summed(gradients, kinds):
    """A gradient that varies along more axes than its operand is one of several devices' parts."""
    def one(n, g):
        more = varying(g) - dict(kinds)[n] if g is not None else ()
        return jax.lax.psum(g, tuple(sorted(more))) if more else g

    return {n: one(n, g) for n, g in gradients.items()}


class Rows:
    """A call whose rows may be shared out. inputs, outputs: of the signature, as the call has them; call: from arrays to results;
    fixed: the last outer sizes that rows know of each other by."""

    def __init__(self, inputs, outputs, call, fixed=0):
        self.inputs, self.outputs, self.call, self.fixed = inputs, outputs, call, fixed

    def outer(self, operand, rank):
        return rank - len(operand["letters"]) if operand["outer"] else 0

    def ranks(self, arrays):
        """How many outer sizes the call has, and how many of them may be shared out."""
        count = max(self.outer(o, len(a.shape)) for o, a in zip(self.inputs, arrays))
        return count, max(count - self.fixed, 0)

    def specs(self, arrays, results, spec_of):
        """For inputs and outputs how they are to be sharded: as the first input that is sharded says, over rows alone."""
        _, free = self.ranks(arrays)
        rows = [None] * free
        for o, a in zip(self.inputs, arrays):
            if o["outer"]:
                its = [*spec_of(a), *[None] * free][:free]
                taken = {n for r in rows if r for n in (r if isinstance(r, tuple) else (r,))}
                for d, axis in enumerate(its):
                    names = set(axis if isinstance(axis, tuple) else (axis,)) - {None}
                    if rows[d] is None and names and not names & taken:
                        rows[d], taken = axis, taken | names
        of_rows = lambda o, a: Spec(*rows, *[None] * (len(a.shape) - free)) if o["outer"] else Spec(*[None] * len(a.shape))
        names = tuple(n for r in rows if r for n in (r if isinstance(r, tuple) else (r,)))
        return [[of_rows(o, a) for o, a in zip(*pair)] for pair in ((self.inputs, arrays), (self.outputs, results))], names

    def on_part(self, arrays, names):
        """On one device's rows; what is summed over rows is summed over the devices."""
        results = self.call(*arrays)
        return [r if o["outer"] or not names else jax.lax.psum(r, names) for o, r in zip(self.outputs, results)]

    def explicit(self, arrays, shapes):
        """The call where the types of its arrays say how they are sharded; None where they do not."""
        types = [jax.typeof(a) for a in arrays]
        mesh = next((t.sharding.mesh for t in types if any(t.sharding.spec)), None)
        if mesh is None:
            return None
        (given, made), names = self.specs(types, shapes, lambda t: t.sharding.spec)
        arrays = [jax.reshard(a, NamedSharding(mesh, s)) if tuple(jax.typeof(a).sharding.spec) != tuple(s) else a
                  for a, s in zip(arrays, given)]
        run = jax.shard_map(lambda *parts: self.on_part(parts, names), mesh=mesh, in_specs=tuple(given), out_specs=made)
        return run(*arrays)

    def rule(self, arrays, results):
        """The compiler's rule: "o0 a0, a1 -> o0 a2" of a row function with a weight. Factors but the rows' are not shared out."""
        count, free = self.ranks(arrays)
        fixed = []

        def factors(o, a, place):
            rank = len(a.shape)
            outer = [f"o{d}" for d in range(count)] if o["outer"] else []
            own = [f"{place}{d}" for d in range(rank - len(outer))]
            fixed.extend([f for f in (*outer[free:], *own) if f not in fixed])
            return " ".join([*outer, *own])

        left, right = (", ".join(factors(o, a, f"{side}{i}_") for i, (o, a) in enumerate(zip(*pair)))
                       for side, pair in (("a", (self.inputs, arrays)), ("r", (self.outputs, results))))
        return f"{left} -> {right}", tuple(fixed)

    def automatic(self, arrays, shapes):
        """The call where the compiler shares rows out."""
        def partition(mesh, given, made):
            (its, results), names = self.specs(given, made, lambda a: a.sharding.spec)
            sharding = lambda specs: tuple(NamedSharding(mesh, s) for s in specs)
            return mesh, lambda *parts: tuple(self.on_part(parts, names)), sharding(results), sharding(its)

        def infer(mesh, given, made):
            return tuple(NamedSharding(mesh, s) for s in self.specs(given, made, lambda a: a.sharding.spec)[0][1])

        def whole(*parts):
            return tuple(self.call(*parts))

        rule, fixed = self.rule(arrays, shapes)
        run = custom_partitioning(whole)
        run.def_partition(partition, infer_sharding_from_operands=infer, sharding_rule=rule, need_replication_factors=fixed)
        together = jax.custom_batching.custom_vmap(run)

        @together.def_vmap
        def batch(size, batched, *parts):
            parts = [p if b else jax.numpy.broadcast_to(p, (size, *p.shape)) for p, b in zip(parts, batched)]
            if all(o["outer"] for o in (*self.inputs, *self.outputs)):
                made = self.automatic(parts, self.batched_shapes(shapes, size))
            else:
                made = jax.lax.map(lambda its: whole(*its), tuple(parts))
            return tuple(made), (True,) * len(made)

        return together(*arrays)

    @staticmethod
    def batched_shapes(shapes, size):
        return [jax.ShapeDtypeStruct((size, *s.shape), s.dtype) for s in shapes]
