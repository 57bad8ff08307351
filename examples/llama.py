"""A Llama from a Hugging Face folder writes on rooftile's calls: Llama, Mistral, Qwen 2 and 3. The lesson "A model from a folder"
(57) tells of it, python/tests/test_llama.py judges it.

    python examples/gpt.py --steps 100 --save my_gpt                              # a small model to begin with
    python examples/llama.py my_gpt --prompt "A kernel " --prompt "The cache "    # two texts, in one batch
    python examples/llama.py my_gpt --prompt "A kernel " --nf4                    # weights in 4 bits
"""

import argparse
import pathlib
import sys
import time

import torch

import rooftile.torch as rt
from llama_folder import Config, Refused, Weights, read_json


class Sequence:
    """A prompt and the tokens drawn after it, and its number in the cache."""

    def __init__(self, prompt, count, number):
        self.tokens, self.prompt, self.end = list(prompt), len(prompt), len(prompt) + count
        self.number, self.done = number, count == 0


def cache_of(model, pages, page):
    """Keys and values of all sequences, for each layer: pages of `page` tokens, which sequences take and give back."""
    config = model.config
    return rt.nn.PagedKVCache(pages, page, config.key_heads, config.head, config.layers, model.table.device, model.table.dtype)


class Layer(torch.nn.Module):
    def __init__(self, config, index, weights, nf4):
        super().__init__()
        self.config, self.index, self.window = config, index, config.window(index)
        own, c, queries, keys = f"model.layers.{index}.", config.channels, config.heads * config.head, config.key_heads * config.head
        self.before_attention = weights.norm(own + "input_layernorm", c, config.eps)
        self.before_mlp = weights.norm(own + "post_attention_layernorm", c, config.eps)
        self.qkv = weights.product([own + f"self_attn.{n}_proj" for n in "qkv"], (queries, keys, keys), c, config.qkv_bias, nf4)
        self.out = weights.product([own + "self_attn.o_proj"], (c,), queries, config.out_bias, nf4)
        self.gate_up = weights.product([own + f"mlp.{n}_proj" for n in ("gate", "up")], (config.hidden,) * 2, c, config.mlp_bias, nf4)
        self.down = weights.product([own + "mlp.down_proj"], (c,), config.hidden, config.mlp_bias, nf4)
        if config.head_norms:
            self.q_norm, self.k_norm = (weights.norm(own + f"self_attn.{n}_norm", config.head, config.eps) for n in "qk")

    # [layer]
    def forward(self, delta, stream, step):
        """The stream of residuals, and what the last layer has yet to add to it: (tokens, channels) each."""
        x, stream = self.before_attention(delta, stream)
        x, stream = self.before_mlp(self.attention(x, step), stream)
        return self.down(rt.swiglu(*self.gate_up(x).chunk(2, -1))), stream

    def attention(self, x, step):
        config = self.config
        heads = self.qkv(x).view(1, -1, config.heads + 2 * config.key_heads, config.head)
        q, k, v = heads.split([config.heads, config.key_heads, config.key_heads], dim=2)  # views
        if config.head_norms:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = rt.rope(q, k, positions=step.positions[None], inv_freq=config.frequencies, attention_factor=config.attention_factor)
        step.append(k[0], v[0], self.index)
        return self.out(step.attend(q[0], self.index, window_left=self.window).flatten(1))
    # [/layer]


class Model(torch.nn.Module):
    def __init__(self, folder, dtype=None, nf4=False, device="cpu"):
        super().__init__()
        folder = pathlib.Path(folder)
        self.config = config = Config(read_json(folder / "config.json"), device)
        weights = Weights(folder, dtype or config.dtype, device)
        self.table = torch.nn.Parameter(weights.read("model.embed_tokens.weight", config.vocabulary, config.channels), requires_grad=False)
        self.layers = torch.nn.ModuleList(Layer(config, i, weights, nf4) for i in range(config.layers))
        self.norm = weights.norm("model.norm", config.channels, config.eps)
        self.head = self.table if config.tied else weights.product(["lm_head"], (config.vocabulary,), config.channels).weight
        left = [n for n in sorted(weights.unread) if n != "lm_head.weight" and not n.endswith("rotary_emb.inv_freq")]
        if left:
            raise Refused(f"{folder} has tensors that a model of its config.json does not have, as {left[0]}")

    def forward(self, tokens, step, rows=None):
        """Logits after each sequence's last token of the step; or after the step's tokens that rows names."""
        delta = rt.embedding(tokens, self.table)
        stream = torch.zeros_like(delta)
        for layer in self.layers:
            delta, stream = layer(delta, stream, step)
        rows = step.last if rows is None else rows
        x, _ = self.norm(delta[rows], stream[rows])
        return rt.linear(x, self.head)

    def bytes(self):
        return sum(t.nbytes for t in [*self.parameters(), *self.buffers()])


# [chosen]
def chosen(sequences, cache, chunk):
    """What the next step computes: of each sequence up to `chunk` tokens, the oldest sequence first. Where pages are short, the
    youngest gives its own back; its tokens are computed again later, to the same bits."""
    work = []
    for index, sequence in enumerate(sequences):
        count = min(chunk, len(sequence.tokens) - cache.length(sequence.number))
        younger = [s for s in sequences[index + 1 :] if cache.tables[s.number]]
        while not cache.reserve(sequence.number, count):
            if not younger:
                return work
            cache.truncate(younger.pop().number, 0)
        work.append((sequence, count))
    return work
# [/chosen]


def begun(work, cache):
    """The tokens of a step, and the step. work: (sequence, how many)."""
    tokens = [t for s, count in work for t in s.tokens[cache.length(s.number) :][:count]]
    return torch.tensor(tokens, device=cache.k.device), cache.extend({s.number: count for s, count in work})


@torch.no_grad()
def generate(model, prompts, count, *, page=16, pages=None, chunk=256, seed=0, ends=(), see=lambda index, logits: None, **sampling):
    """`count` tokens after each prompt, or up to one of `ends`. They follow from the prompt, the seed and sample's options; what
    else is in the batch, chunk, page and pages change nothing. Returns the tokens, and the cache."""
    refuse_prompts(model.config, prompts, count)
    needs = [-(-(len(prompt) + count) // page) for prompt in prompts]
    if pages is not None and pages < max(needs, default=0):
        raise Refused(f"the cache has {pages} pages of {page} tokens, the longest sequence needs {max(needs)}")
    cache = cache_of(model, sum(needs) if pages is None else pages, page)
    sequences = [Sequence(prompt, count, cache.allocate()) for prompt in prompts]
    while live := [sequence for sequence in sequences if not sequence.done]:
        work = chosen(live, cache, chunk)
        for logits, (sequence, _) in zip(model(*begun(work, cache)), work):
            if cache.length(sequence.number) < len(sequence.tokens):
                continue  # more of the prompt is to come
            see(sequences.index(sequence), logits)
            drawn = torch.tensor(len(sequence.tokens) - sequence.prompt, device=logits.device)
            token = int(rt.sample(logits, torch.full_like(drawn, seed), offset=drawn, **sampling))
            if token < 0:
                raise Refused("logits are no numbers: a weight is none, or float16 is too narrow for the model; try --dtype float32")
            sequence.tokens.append(token)
            sequence.done = len(sequence.tokens) == sequence.end or token in ends
            if sequence.done:
                cache.free(sequence.number)
    return [sequence.tokens[sequence.prompt :] for sequence in sequences], cache


def refuse_prompts(config, prompts, count):
    for prompt in prompts:
        if not len(prompt) or len(prompt) + count > config.context:
            raise Refused(f"a prompt has {len(prompt)} tokens, must have 1 to {config.context - count}: {config.context} of the model, "
                          f"less {count} new ones")
        if not 0 <= min(prompt) <= max(prompt) < config.vocabulary:
            raise Refused(f"a prompt has tokens from {min(prompt)} to {max(prompt)}, must be from 0 to {config.vocabulary - 1}")


def speaker(folder, config):
    """Text to tokens, and tokens to text: by tokenizer.json; a model of 256 tokens speaks bytes."""
    path = pathlib.Path(folder) / "tokenizer.json"
    if path.exists():
        import tokenizers

        told = tokenizers.Tokenizer.from_file(str(path))
        return lambda text: told.encode(text).ids, told.decode
    if config.vocabulary == 256:
        return lambda text: list(text.encode()), lambda tokens: bytes(tokens).decode(errors="replace")
    raise Refused(f"there is no {path}; give prompts as numbers by --tokens 1,2,3")


def main(words=None):
    parser = argparse.ArgumentParser(description="Continues texts by a model from a Hugging Face folder.")
    parser.add_argument("folder", help="config.json and model.safetensors, or its shards and their index")
    parser.add_argument("--prompt", action="append", default=[], help="a text; several make a batch")
    parser.add_argument("--tokens", action="append", default=[], help="a prompt as numbers: 1,2,3")
    parser.add_argument("--count", type=int, default=100, help="tokens to generate for each prompt")
    parser.add_argument("--temperature", type=float, default=0.7, help="0 takes the likeliest token")
    parser.add_argument("--top-k", type=int, default=0)
    parser.add_argument("--top-p", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", choices=Weights.DTYPES, help="default: config.json's")
    parser.add_argument("--nf4", action="store_true", help="the layers' weights in 4 bits")
    parser.add_argument("--page", type=int, default=16, help="tokens in a page of the cache")
    parser.add_argument("--pages", type=int, help="of the cache; default: as many as all prompts need at once")
    parser.add_argument("--chunk", type=int, default=256, help="tokens of a prompt that are computed at once")
    options = parser.parse_args(words)
    try:
        run(options)
    except (Refused, ValueError, TypeError) as error:  # ours; the library's sentences
        sys.exit(f"llama: {error}")


def numbers(words):
    try:
        return [int(number) for number in words.split(",")]
    except ValueError:
        raise Refused(f"--tokens is {words!r}, must be numbers with commas between them: 1,2,3") from None


def run(options):
    for name in ("count", "page", "chunk"):
        if getattr(options, name) < 1:
            raise Refused(f"--{name} is {getattr(options, name)}, must be 1 or more")
    model = Model(options.folder, options.dtype, options.nf4, options.device)
    config, prompts, tell = model.config, [numbers(words) for words in options.tokens], str
    if options.prompt:
        read, tell = speaker(options.folder, config)
        prompts = [read(text) for text in options.prompt] + prompts
    if not prompts:
        raise Refused("there is no prompt: give one by --prompt or --tokens")
    print(f"{config.kind}: {config.layers} layers, weights {model.bytes():,} bytes, activations {model.table.dtype}, {model.table.device}")
    began = time.perf_counter()
    texts, cache = generate(model, prompts, options.count, page=options.page, pages=options.pages, chunk=options.chunk, seed=options.seed,
                            ends=config.ends, temperature=options.temperature, top_k=options.top_k, top_p=options.top_p)
    for prompt, text in zip(prompts, texts):
        print(f"---\n{tell(prompt + text)}")
    token = 2 * cache.k[:, 0, 0].nbytes
    print(f"---\n{sum(map(len, texts))} tokens in {time.perf_counter() - began:.1f} s; cache: at most {cache.most} pages of {cache.page_size} tokens, "
          f"{cache.most * cache.page_size * token:,} bytes; {len(prompts)} whole contexts: {len(prompts) * config.context * token:,}")


if __name__ == "__main__":
    main()
