"""rooftile: the kernels that transformers are made of, on the arrays that you have.

Each function of the library takes arrays of NumPy, PyTorch, JAX, CuPy and of all else that speaks DLPack, without copies,
and returns arrays of the same kind:

    y = rooftile.softmax(x)
    y, mean, rstd = rooftile.layer_norm(x, weight=w, bias=b, mean=True, rstd=True)

help(rooftile.softmax) tells what a function takes. rooftile.Queue chooses threads, instruction set or device.
rooftile.torch has the same as operators with gradients, and modules; rooftile.jax with gradients under jit.
"""

from rooftile import _compile, _functions, _helpers
from rooftile._core import Queue
from rooftile._version import version as __version__

globals().update(_functions.public)
_helpers.register()
_compile.listen()

__all__ = ["Queue", "__version__", *_functions.public]
