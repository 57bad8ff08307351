"""rooftile's functions as PyTorch's operators, with gradients.

    y = rooftile.torch.softmax(x, scale=0.125)          # gradients, torch.compile, vmap
    torch.ops.rooftile.softmax(x, 0.125, False)         # the operator itself

linear and scaled_dot_product_attention are torch.nn.functional's on the library's product and attention; linear_nf4 and linear_int4 are linear with a frozen weight in 4 bits, linear_8bit with one in 8 and x quantised on the fly; linear_cross_entropy casts under autocast as linear does. AdamW, AdamW8bit and SGD are torch.optim's, one call a step for all parameters; so are clip_grad_norm_ and get_ema_multi_avg_fn. rooftile.torch.nn has modules; patch(model) lets a model's own modules and its attention run on them, unpatch(model) undoes it.
"""

from rooftile.torch import _operators
from rooftile.torch._operators import functions

globals().update(functions)


def log_softmax(x, *, scale=1.0, causal=False, masked=False, dim=-1):
    """softmax(x, log=True): the logarithm of softmax, with its gradient."""
    return functions["softmax"](x, scale=scale, log=True, causal=causal, masked=masked, dim=dim)


from rooftile.torch import nn  # noqa: E402
from rooftile.torch._8bit import linear_8bit  # noqa: E402
from rooftile.torch._attention import scaled_dot_product_attention  # noqa: E402
from rooftile.torch._int4 import linear_int4  # noqa: E402
from rooftile.torch._linear import linear  # noqa: E402
from rooftile.torch._nf4 import linear_nf4  # noqa: E402
from rooftile.torch._optim import SGD, AdamW, AdamW8bit, clip_grad_norm_, get_ema_multi_avg_fn  # noqa: E402
from rooftile.torch._patch import patch, unpatch  # noqa: E402

if "linear_cross_entropy" in functions:
    from rooftile.torch._linear_cross_entropy import linear_cross_entropy  # noqa: F401

__all__ = ["SGD", "AdamW", "AdamW8bit", "clip_grad_norm_", "get_ema_multi_avg_fn", "linear", "linear_8bit", "linear_int4", "linear_nf4",
           "log_softmax", "nn", "patch", "scaled_dot_product_attention", "unpatch", *functions]
