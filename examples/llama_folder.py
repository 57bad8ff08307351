"""What a model's folder in Hugging Face's format holds: config.json and safetensors files, read and checked for llama.py."""

import json

import safetensors
import torch

import rooftile.torch as rt
from rooftile.frequencies import rope_frequencies


class Refused(ValueError):
    """What cannot be run, in a sentence."""


def read_json(path):
    try:
        said = json.loads(path.read_text())
    except OSError:
        raise Refused(f"there is no {path}; a model is a folder of config.json and model.safetensors") from None
    except ValueError as error:
        raise Refused(f"{path} is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise Refused(f"{path} holds a {type(said).__name__}, must hold an object: names and values")
    return said


class Config:
    """What config.json says, as far as the model needs it."""

    KINDS = ("llama", "mistral", "qwen2", "qwen3")
    ROPES = {"default": "none", "linear": "linear", "yarn": "yarn", "llama3": "llama3"}
    ROPE_OPTIONS = {"factor", "original_length", "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow", "truncate"}

    def __init__(self, said, device):
        self.said, self.kind = said, said.get("model_type")
        if self.kind not in self.KINDS:
            raise Refused(f"model_type is {self.kind!r}, must be one of: {' '.join(self.KINDS)}")
        if said.get("quantization_config"):
            raise Refused("the weights are quantised (quantization_config), must be floats; --nf4 quantises floats")
        if said.get("hidden_act", "silu") != "silu":
            raise Refused(f"hidden_act is {said['hidden_act']!r}, must be 'silu'")
        self.vocabulary, self.channels, self.hidden = (self.size(n) for n in ("vocab_size", "hidden_size", "intermediate_size"))
        self.layers, self.heads = self.size("num_hidden_layers"), self.size("num_attention_heads")
        self.context, self.key_heads = self.size("max_position_embeddings"), self.size("num_key_value_heads", self.heads)
        self.head = self.size("head_dim", self.channels // self.heads)
        if self.heads % self.key_heads:
            raise Refused(f"num_attention_heads is {self.heads}, must be a multiple of num_key_value_heads, {self.key_heads}")
        self.eps, self.tied = said.get("rms_norm_eps", 1e-6), said.get("tie_word_embeddings", False)
        self.out_bias, self.mlp_bias = said.get("attention_bias", False), said.get("mlp_bias", False)
        self.qkv_bias, self.head_norms = self.out_bias or self.kind == "qwen2", self.kind == "qwen3"
        self.dtype, ends = said.get("dtype") or said.get("torch_dtype") or "float32", said.get("eos_token_id")
        self.ends = ends if isinstance(ends, list) else [ends]
        self.frequencies, self.attention_factor = self.rope(device)

    def size(self, name, otherwise=None):
        value = self.said.get(name)
        value = otherwise if value is None else value
        if not isinstance(value, int) or value < 1:
            raise Refused(f"{name} is {value!r}, must be a number from 1 on")
        return value

    def rope(self, device):
        """Inverse frequencies and the attention factor: files say them in rope_parameters, older ones in rope_scaling."""
        rope = {"rope_theta": self.said.get("rope_theta", 10000.0), **(self.said.get("rope_scaling") or {}),
                **(self.said.get("rope_parameters") or {})}
        kind, base, factor = rope.pop("rope_type", rope.pop("type", "default")), rope.pop("rope_theta"), rope.pop("attention_factor", None)
        rope["original_length"] = rope.pop("original_max_position_embeddings", self.context)
        if kind not in self.ROPES:
            raise Refused(f"rope_type is {kind!r}, must be one of: {' '.join(self.ROPES)}")
        strange = sorted(set(rope) - self.ROPE_OPTIONS)
        if strange or (kind != "default" and "factor" not in rope):
            raise Refused(f"rope_type {kind!r} has {'the option ' + strange[0] if strange else 'no factor'}, which this program cannot compute")
        frequencies, own = rope_frequencies(self.head, base, self.ROPES[kind], **rope)
        return torch.tensor(frequencies, dtype=torch.float32, device=device), own if factor is None else factor

    def window(self, layer):
        """How many tokens a layer's queries see before their own; -1: all."""
        kinds, tokens = self.said.get("layer_types"), self.said.get("sliding_window")
        if self.kind == "mistral":
            slides = True
        elif kinds:
            slides = kinds[layer] == "sliding_attention"
        else:
            slides = self.said.get("use_sliding_window") and layer >= self.said.get("max_window_layers", 0)
        return tokens - 1 if slides and tokens else -1


class Weights:
    """The tensors of a folder's safetensors files, read when they are used."""

    DTYPES = ("float32", "bfloat16", "float16")

    def __init__(self, folder, dtype, device):
        if dtype not in self.DTYPES:
            raise Refused(f"dtype is {dtype!r}, must be one of: {' '.join(self.DTYPES)}; --dtype converts")
        self.folder, self.dtype, self.places = folder, getattr(torch, dtype), {}
        index, files = folder / "model.safetensors.index.json", ["model.safetensors"]
        if index.exists():  # sharded: the index says which tensor is in which file
            files = sorted(set(read_json(index).get("weight_map", {}).values()))
            if not files:
                raise Refused(f"{index} names no files, must have a weight_map: of each tensor its file")
        for file in files:
            if not (folder / file).exists():
                raise Refused(f"{folder} has no {file}; weights in another format must be converted by save_pretrained")
            try:
                opened = safetensors.safe_open(folder / file, "pt", device=str(device))
            except safetensors.SafetensorError as error:
                raise Refused(f"{folder / file} is damaged: {error}") from None
            self.places.update(dict.fromkeys(opened.keys(), opened))
        self.unread = set(self.places)

    def read(self, name, *shape):
        if name not in self.places:
            raise Refused(f"{self.folder} has no tensor {name}, which a model of its config.json needs")
        size = tuple(self.places[name].get_slice(name).get_shape())
        if size != shape:
            raise Refused(f"tensor {name} is {'x'.join(map(str, size))}, must be {'x'.join(map(str, shape))} by config.json")
        self.unread.discard(name)
        return self.places[name].get_tensor(name).to(self.dtype)

    def product(self, names, rows, columns, bias=False, nf4=False):
        """x·Wᵀ + b as a module, of weights put one below the other; in 4 bits, if nf4."""
        weight = torch.cat([self.read(n + ".weight", r, columns) for n, r in zip(names, rows)])
        offset = torch.cat([self.read(n + ".bias", r) for n, r in zip(names, rows)]) if bias else None
        if nf4:
            return rt.nn.LinearNF4.from_weight(weight, offset).requires_grad_(False)
        linear = rt.nn.Linear(columns, len(weight), bias=bias, device="meta")
        linear.weight, linear.bias = (x if x is None else torch.nn.Parameter(x, requires_grad=False) for x in (weight, offset))
        return linear

    def norm(self, name, channels, eps):
        norm = rt.nn.RMSNorm(channels, eps=eps, device="meta")
        norm.weight = torch.nn.Parameter(self.read(name + ".weight", channels), requires_grad=False)
        return norm
