"""Refuses forward mode in our words, under jit too, where JAX's own refusal of a custom_vjp names neither function nor way out.

An argument passes an identity on its way into a function. The identity's derivative is linear and can be transposed, all that
reverse mode does with it; to run it is forward mode, and raises.
"""

from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

same_p = Primitive("rooftile_argument")
same_p.def_impl(lambda x, *, name: x)
same_p.def_abstract_eval(lambda x, *, name: x)
mlir.register_lowering(same_p, lambda context, x, *, name: [x])
batching.defvectorized(same_p)


def refuse(*_, name, **__):
    raise TypeError(f"{name}: has no derivative in forward mode (jvp, jacfwd, hessian); take jax.grad, jax.vjp or jax.jacrev, or "
                    "JAX's own function of the kind")


tangent_p = Primitive("rooftile_tangent")
tangent_p.def_impl(refuse)
tangent_p.def_abstract_eval(lambda t, *, name: t)
mlir.register_lowering(tangent_p, refuse)
batching.primitive_batchers[tangent_p] = refuse  # jacfwd's; reverse mode transposes before it maps
ad.deflinear2(tangent_p, lambda ct, t, *, name: [ct])


def derivative(primals, tangents, *, name):
    (x,), (t,) = primals, tangents
    return same_p.bind(x, name=name), tangent_p.bind(t, name=name)


ad.primitive_jvps[same_p] = derivative


def argument(x, name):
    """x, on its way into the function of that name."""
    return same_p.bind(x, name=name)


# An operand of which there is no gradient passes another identity: only who differentiates with respect to it gets to its derivative.
constant_p = Primitive("rooftile_constant")
constant_p.def_impl(lambda x, *, name, operand: x)
constant_p.def_abstract_eval(lambda x, *, name, operand: x)
mlir.register_lowering(constant_p, lambda context, x, *, name, operand: [x])
batching.defvectorized(constant_p)


def refuse_constant(primals, tangents, *, name, operand):
    raise TypeError(f"{name}: there is no gradient of {operand}; put jax.lax.stop_gradient around it, or leave it out where you take gradients")


ad.primitive_jvps[constant_p] = refuse_constant


def constant(x, name, operand):
    """x, on its way into the function of that name as that operand."""
    return constant_p.bind(x, name=name, operand=operand)
