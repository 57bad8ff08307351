"""gpt.py's model in JAX, on the same weights: the same bits. Lesson 57 tells of it, python/tests/test_gpt.py judges it."""

import jax.numpy as jnp

import rooftile.jax as rj


def weights_of(model):
    """A PyTorch model's parameters by their names."""
    return {name: jnp.asarray(weight.detach().cpu().numpy()) for name, weight in model.state_dict().items()}


# [forward]
def forward(weights, tokens, config):
    """The logits of (batch, length) tokens."""
    batch, length = tokens.shape

    def linear(x, name):
        rows = x.reshape(batch * length, -1)
        return rj.gemm(rows, weights[name].T).reshape(batch, length, -1)

    def norm(x, residual, name):
        return rj.rms_norm(x, residual=residual, weight=weights[name], sum=True, eps=1e-6)

    delta = rj.embedding(tokens, weights["table"])
    stream = jnp.zeros_like(delta)
    for index in range(config.layers):
        own = f"blocks.{index}."
        x, stream = norm(delta, stream, own + "before_attention.weight")
        heads = linear(x, own + "qkv.weight").reshape(batch, length, -1, config.head)
        q, k, v = jnp.split(heads, [config.heads, config.heads + config.key_heads], axis=2)
        q, k = rj.rope(q, k)
        y = rj.attention(q, k, v, causal=True).reshape(batch, length, -1)
        x, stream = norm(linear(y, own + "out.weight"), stream, own + "before_mlp.weight")
        gate, up = linear(x, own + "mlp.gate_proj.weight"), linear(x, own + "mlp.up_proj.weight")
        delta = linear(rj.swiglu(gate, up), own + "mlp.down_proj.weight")
    x, _ = norm(delta, stream, "norm.weight")
    return linear(x, "table")
# [/forward]
