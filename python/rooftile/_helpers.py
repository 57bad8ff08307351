"""What _core calls Python for, and where calls go that it does not make itself: those with gradients."""

from rooftile import _core, _frameworks, _functions


def with_gradients(function, args, words):
    """A call with a tensor that requires a gradient, or is no plain one, or a tracer of JAX."""
    arrays = [*args, *words.values()]
    if any(_frameworks.is_jax(type(a)) for a in arrays):
        raise TypeError(f"{function}: got one of JAX's tracers; under jit, grad and vmap call rooftile.jax.{function}")
    import torch

    out = words.get("out")
    _frameworks.refuse_tangents(function, [*arrays, *(out if isinstance(out, tuple) else ())])
    tensors = [a for a in arrays if isinstance(a, torch.Tensor)]
    plain = all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in tensors)
    transformed = torch._C._are_functorch_transforms_active()
    if plain and not transformed and not (torch.is_grad_enabled() and any(t.requires_grad for t in tensors)):
        return _functions.below_gradients[function](*args, **words)
    from rooftile.torch._operators import functions

    return functions[function](*args, **words)


def register():
    _core.set_helpers(_frameworks.framework_of, _frameworks.empty, _frameworks.finish, _frameworks.dtype_code,
                      with_gradients, _frameworks.result_type, _frameworks.stream_of, _frameworks.used_on,
                      _frameworks.option_value, _frameworks.whole_number, _frameworks.array_of, _functions.by_views)
