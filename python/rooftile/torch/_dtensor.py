"""rooftile's operators on DTensors: rows stay where they are, and what is not a row comes to every device. A weight's gradient is
each device's part of a sum."""

import sys

done = []


def register():
    """Tells torch.distributed.tensor, where it is in use, how each operator may be sharded; once."""
    if done or "torch.distributed.tensor" not in sys.modules:
        return
    done.append(True)
    try:
        from torch.distributed.tensor import DTensor
        from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
        from torch.distributed.tensor.experimental import register_sharding
    except ImportError:  # an older PyTorch
        return
    from rooftile.torch._operators import known

    infos = getattr(DTensor._op_dispatcher.sharding_propagator, "op_to_schema_info", None)
    for f in known.values():
        if f.mutates or not f.outputs:
            continue
        register_sharding(f.operator)(shardings(f))
        if infos is not None:  # what is asked for by flags decides shapes and shards: a call's plan is kept by these, too
            infos[f.operator] = RuntimeSchemaInfo(len(f.order), needs_pytree=True)


def shardings(f):
    """Of one operator, which placements of its results go with which of its arguments."""
    from torch.distributed.tensor import Partial, Replicate, Shard

    def of_call(*args, **named):
        tensors, options, wanted = f.split((*args, *named.values()))
        rest = [None] * (len(args) + len(named) - len(f.order))
        present = [o for o in f.inputs if tensors[o["name"]] is not None]
        made = [o for o in f.outputs if not o["optional"] or o["name"] in wanted]

        def placed(of_input, of_output):
            by_name = {o["name"]: of_input(o) for o in present}
            return [of_output(o) if o in made else Replicate() for o in f.outputs], [*map(by_name.get, f.order), *rest]

        found = [placed(lambda _: Replicate(), lambda _: Replicate())]
        if f.rows_are_apart(present, made):
            outer = max(len(tensors[o["name"]].shape) - len(o["letters"]) for o in present if o["outer"])
            for d in range(outer - int(options.get("causal", False))):
                found.append(placed(lambda o, d=d: Shard(d) if o["outer"] else Replicate(),
                                    lambda o, d=d: Shard(d) if o["outer"] else Partial()))
        return found

    return of_call
