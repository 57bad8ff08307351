"""A language model of bytes, trained and asked: each layer is one of rooftile's calls. Lesson 57 tells of it,
python/tests/test_gpt.py judges it.

    python examples/gpt.py                                   # trains on the course's pages, some minutes on a laptop
    python examples/gpt.py --steps 20 --text my_book.txt     # a first look at something else
    python examples/gpt.py --save my_gpt                     # a folder in Hugging Face's format, for llama.py
    torchrun --nproc-per-node 2 examples/gpt.py              # two processes: of GPUs, where there are some
"""

import argparse
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import sys
import time

import torch
import torch.distributed

import rooftile.torch as rt


# [config]
@dataclasses.dataclass(frozen=True)
class Config:
    """A Llama in small: tokens are bytes, two query heads share a key head."""

    vocabulary: int = 256
    layers: int = 4
    channels: int = 128
    heads: int = 4
    key_heads: int = 2
    hidden: int = 384
    context: int = 128

    @property
    def head(self):
        return self.channels // self.heads
# [/config]


# [cache]
class Cache:
    """Keys and values of one sequence's tokens, for each layer: one page of `room` tokens."""

    def __init__(self, config, room, like):
        shape = (config.layers, 1, room, config.key_heads, config.head)
        self.keys, self.values = like.new_zeros(shape), like.new_zeros(shape)
        self.table = torch.zeros(1, 1, dtype=torch.int32, device=like.device)  # sequence 0 is page 0
        self.tokens = 0

    def attend(self, layer, q, k, v):
        """Appends the new tokens' keys and values; their queries attend to all of them."""
        keys, values, length = self.keys[layer], self.values[layer], self.tokens + k.shape[1]
        slots = torch.arange(self.tokens, length, device=k.device)
        rt.kv_cache_append(k[0], v[0], slots, keys, values)
        lengths = torch.full((1,), length, dtype=torch.int32, device=k.device)
        return rt.paged_attention(q, keys, values, self.table, lengths)
# [/cache]


# [block]
class Block(torch.nn.Module):
    def __init__(self, config, index):
        super().__init__()
        self.config, self.index = config, index
        c, kv = config.channels, config.key_heads * config.head
        self.before_attention, self.before_mlp = rt.nn.RMSNorm(c, eps=1e-6), rt.nn.RMSNorm(c, eps=1e-6)
        self.qkv = rt.nn.Linear(c, c + 2 * kv, bias=False)
        self.out = rt.nn.Linear(c, c, bias=False)
        self.mlp = rt.nn.MLP(c, config.hidden, "swiglu", bias=False)

    def forward(self, delta, stream, cache=None):
        """The stream of residuals, and what the last layer has yet to add to it."""
        x, stream = self.before_attention(delta, stream)  # one call: adds, then normalises
        delta = self.attention(x, cache)
        x, stream = self.before_mlp(delta, stream)
        return self.mlp(x), stream

    def attention(self, x, cache):
        config, (batch, length, c) = self.config, x.shape
        heads = self.qkv(x).view(batch, length, config.heads + 2 * config.key_heads, config.head)
        q, k, v = heads.split([config.heads, config.key_heads, config.key_heads], dim=2)  # views
        q, k = rt.rope(q, k, offset=cache.tokens if cache else 0)
        y = cache.attend(self.index, q, k, v) if cache else rt.attention(q, k, v, causal=True)
        return self.out(y.reshape(batch, length, c))
# [/block]


# [model]
class Model(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.table = torch.nn.Parameter(torch.randn(config.vocabulary, config.channels) * 0.02)
        self.blocks = torch.nn.ModuleList(Block(config, i) for i in range(config.layers))
        self.norm = rt.nn.RMSNorm(config.channels, eps=1e-6)
        for name, weight in self.named_parameters():
            if name.endswith(("out.weight", "down_proj.weight")):  # what enters the stream: less of each layer
                torch.nn.init.normal_(weight, std=0.02 / math.sqrt(2 * config.layers))
            elif weight.dim() == 2:
                torch.nn.init.normal_(weight, std=0.02)

    def forward(self, tokens, cache=None):
        delta = rt.embedding(tokens, self.table)
        stream = torch.zeros_like(delta)
        for block in self.blocks:
            delta, stream = block(delta, stream, cache)
        if cache:
            cache.tokens += tokens.shape[1]
        x, _ = self.norm(delta, stream)
        return rt.linear(x, self.table)  # the table is the last layer, too

    def loss(self, tokens):
        """The mean over all tokens but each sequence's first."""
        return rt.cross_entropy(self(tokens[:, :-1]), tokens[:, 1:])
# [/model]


# [data]
def batches(text, config, size, seed, share=0, shares=1):
    """For ever: windows of the text, from places that follow from the seed; of each batch one share."""
    random = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(text) - config.context, (size,), generator=random)[share::shares]
        yield torch.stack([text[at : at + config.context + 1] for at in starts.tolist()])
# [/data]


# [train]
def train(model, text, steps, size=16, lr=3e-3, seed=0, say=lambda step, loss: None):
    """The loss of each step, in 32 bits."""
    optimiser = rt.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.1)
    learns, share, shares = model, 0, 1
    if torch.distributed.is_initialized():
        share, shares = torch.distributed.get_rank(), torch.distributed.get_world_size()
        learns = torch.nn.parallel.DistributedDataParallel(Trainee(model))
    else:
        learns = Trainee(model)
    losses = []
    for step, batch in zip(range(steps), batches(text, model.config, size, seed, share, shares)):
        warm, cool = min(1, (step + 1) / 20), 0.5 + 0.5 * math.cos(math.pi * step / steps)
        optimiser.param_groups[0]["lr"] = lr * warm * (0.1 + 0.9 * cool)
        loss = learns(batch.to(model.table.device))
        loss.backward()
        rt.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
        say(step, losses[-1])
    return losses
# [/train]


class Trainee(torch.nn.Module):
    """What DistributedDataParallel wraps: its forward is the loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model.loss(tokens)


# [generate]
@torch.no_grad()
def generate(model, prompt, count, seed=0, temperature=0.7, top_p=0.95):
    """The prompt's bytes and `count` more, drawn one by one."""
    device = model.table.device
    tokens = torch.tensor([list(prompt)], device=device)
    cache = Cache(model.config, len(prompt) + count, model.table)
    seed = torch.tensor([seed], device=device)
    logits = model(tokens, cache)[:, -1]  # the prompt at once
    for drawn in range(count):
        offset = torch.full_like(seed, drawn)
        token = rt.sample(logits, seed, offset=offset, temperature=temperature, top_p=top_p)
        tokens = torch.cat([tokens, token.view(1, 1)], dim=1)
        if drawn + 1 < count:
            logits = model(tokens[:, -1:], cache)[:, -1]  # then each token alone
    return bytes(tokens[0].tolist())
# [/generate]


# [save]
def save(model, folder):
    """As config.json and model.safetensors, with a Llama's names: examples/llama.py and transformers read them."""
    import safetensors.torch

    c, folder = model.config, pathlib.Path(folder)
    named = {"model.embed_tokens": model.table, "model.norm": model.norm.weight}
    for index, block in enumerate(model.blocks):
        q, k, v = block.qkv.weight.split([c.channels, c.key_heads * c.head, c.key_heads * c.head])
        own = {"input_layernorm": block.before_attention.weight, "post_attention_layernorm": block.before_mlp.weight,
               "self_attn.q_proj": q, "self_attn.k_proj": k, "self_attn.v_proj": v, "self_attn.o_proj": block.out.weight,
               **{f"mlp.{name}": getattr(block.mlp, name).weight for name in ("gate_proj", "up_proj", "down_proj")}}
        named |= {f"model.layers.{index}.{name}": weight for name, weight in own.items()}
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": c.vocabulary, "hidden_size": c.channels,
              "intermediate_size": c.hidden, "num_hidden_layers": c.layers, "num_attention_heads": c.heads,
              "num_key_value_heads": c.key_heads, "max_position_embeddings": 4 * c.context, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
              "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None, "dtype": "float32"}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    safetensors.torch.save_file({f"{name}.weight": weight.detach().cpu().contiguous() for name, weight in named.items()},
                                folder / "model.safetensors", metadata={"format": "pt"})
# [/save]


def bits(model):
    """A fingerprint of all weights' bits."""
    sum = hashlib.sha256()
    for weight in model.state_dict().values():
        sum.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return sum.hexdigest()[:16]


def read(files):
    """Bytes of files, one after the other: of the course's pages, if there are none."""
    files = files or sorted((pathlib.Path(__file__).resolve().parents[1] / "docs" / "course").glob("*.md"))
    return torch.frombuffer(bytearray(b"".join(pathlib.Path(file).read_bytes() for file in files)), dtype=torch.uint8).long()


def start_processes():
    """Under torchrun: this process's device, once it has met the others."""
    if "RANK" not in os.environ:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    return torch.device("cuda", torch.cuda.current_device())


def main(words=None):
    parser = argparse.ArgumentParser(description="Trains a language model of bytes, and asks it.")
    parser.add_argument("--text", nargs="*", default=[], help="files to learn from; default: the course's pages")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prompt", default="A kernel ")
    parser.add_argument("--bytes", type=int, default=300, help="how many to generate")
    parser.add_argument("--save", metavar="FOLDER", help="writes the model there, for examples/llama.py")
    options = parser.parse_args(words)

    device, text, config = start_processes(), read(options.text), Config()
    if len(text) <= config.context:
        sys.exit(f"gpt: the text has {len(text)} bytes, must have more than {config.context}: name longer files by --text")
    if not options.prompt:
        sys.exit("gpt: the prompt is empty, must have a byte at least")
    torch.manual_seed(options.seed)
    model = Model(config).to(device)
    first = not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0
    began = time.perf_counter()

    def say(step, loss):
        if first and (step % 50 == 0 or step == options.steps - 1):
            print(f"step {step:4}  loss {loss:.4f}  {time.perf_counter() - began:6.1f} s", flush=True)

    if first:
        print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(text):,} bytes of text, {device}")
    train(model, text, options.steps, seed=options.seed, say=say)
    if first:
        print(f"weights {bits(model)}")
        if options.save:
            save(model, options.save)
        print(generate(model, options.prompt.encode(), options.bytes, seed=options.seed).decode(errors="replace"))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
