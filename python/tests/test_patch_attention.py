"""rooftile.torch.patch() on the attention of transformers' models: small ones with random weights."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import rooftile.torch

SIZES = {"vocab_size": 97, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
         "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
SHARED = {**SIZES, "num_key_value_heads": 2}
CAPPED = {"head_dim": 16, "sliding_window": 5, "attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 16}
#: (class, config's class, its words, implementations)
MODELS = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", SHARED, ("eager", "sdpa")),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**SHARED, "sliding_window": 5}, ("eager", "sdpa")),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", SHARED, ("sdpa",)),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**SHARED, "head_dim": 16}, ("sdpa",)),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**SHARED, **CAPPED}, ("eager",)),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", SHARED, ("eager", "sdpa")),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 97, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128, "bos_token_id": 1,
                                               "eos_token_id": None, "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}, ("eager", "sdpa")),
    "bert": ("BertModel", "BertConfig", {**SIZES, "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}, ("eager", "sdpa")),
    "gpt_oss": ("GptOssForCausalLM", "GptOssConfig", {**SHARED, "head_dim": 16, "sliding_window": 5, "num_local_experts": 4, "num_experts_per_tok": 2,
                                                      "layer_types": ["sliding_attention", "full_attention"]}, ("eager",)),
}
CASES = [(name, how) for name, entry in MODELS.items() for how in entry[3]]
TOKENS = torch.randint(1, 97, (2, 13), generator=torch.Generator().manual_seed(0))
PADDED = torch.ones_like(TOKENS)
PADDED[1, :4] = 0


def made(name, how, dtype=torch.float32, **more):
    kind, config, words, _ = MODELS[name]
    torch.manual_seed(1)
    model = getattr(transformers, kind)._from_config(getattr(transformers, config)(**{**words, **more}), attn_implementation=how)
    with torch.no_grad():  # scores that tell: as they begin, they are near 0
        for n, p in model.named_parameters():
            if p.dim() == 2 and any(part in n for part in ("q_proj", "k_proj", "qkv_proj", "c_attn", "query", "key")):
                p.mul_(8)
            if n.endswith("sinks"):
                p.normal_()
    return model.eval().to(dtype)


def attention_alone(model):
    """Patched, but for all other modules."""
    done = rooftile.torch.patch(model)
    mine = [n for n, kind in done.replaced if "Attention" in kind]
    assert mine and not [kept for kept in done.kept if "Attention" in kept[1]], done
    for n, m in model.named_modules():
        if n not in mine:
            m.__class__ = getattr(type(m), "rooftile_own", type(m))
    return model


def kernels_of(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return {e.key for e in profile.key_averages() if e.key.startswith("rooftile::")}


@pytest.mark.parametrize("name, how", CASES)
def test_results_and_gradients_are_the_models_own(name, how):
    plain = made(name, how)
    patched = attention_alone(copy.deepcopy(plain))
    for mask in (None, PADDED):
        results = []
        for model in (patched, plain):
            y = model(TOKENS, attention_mask=mask)[0]
            y = y if mask is None else y[mask.bool()]
            parameters = [p for n, p in model.named_parameters() if "pooler" not in n]
            results.append((y, *torch.autograd.grad(y.sin().sum(), parameters)))
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5 * max(1, b.abs().max().item()))
    assert "rooftile::attention" in kernels_of(lambda: patched(TOKENS))
    rooftile.torch.unpatch(patched)
    assert not kernels_of(lambda: patched(TOKENS)) and torch.equal(patched(TOKENS)[0], plain(TOKENS)[0])


@pytest.mark.parametrize("name, how", CASES)
def test_bf16(name, how):
    """About as far from f32 as the model itself."""
    exact, plain = made(name, how), made(name, how, torch.bfloat16)
    patched = attention_alone(copy.deepcopy(plain))
    with torch.no_grad():
        expected = exact.to(torch.bfloat16).float()(TOKENS)[0]
        mine, own = ((m(TOKENS)[0].float() - expected).abs().max().item() for m in (patched, plain))
    assert mine <= 2 * own + 0.01 * expected.abs().max().item()


GENERATING = [case for case in CASES if case[0] != "bert"]


@pytest.mark.parametrize("name, how", GENERATING)
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_the_same_tokens_are_generated(name, how, cache):
    plain = made(name, how)
    patched = attention_alone(copy.deepcopy(plain))
    words = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0, "disable_compile": True}
    words |= {"cache_implementation": "static"} if cache == "static" else {}
    for mask in (torch.ones_like(TOKENS), PADDED):
        assert torch.equal(patched.generate(TOKENS, attention_mask=mask, **words), plain.generate(TOKENS, attention_mask=mask, **words))


def test_a_prefill_in_pieces():
    plain = made("llama", "sdpa")
    patched = attention_alone(copy.deepcopy(plain))
    with torch.no_grad():
        first = patched(TOKENS[:, :6], use_cache=True)
        second = patched(TOKENS[:, 6:], past_key_values=first.past_key_values)
        torch.testing.assert_close(torch.cat([first.logits, second.logits], 1), plain(TOKENS).logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", ["eager", "sdpa"])
def test_what_the_library_lacks_runs_on_the_models_function(how):
    plain = made("llama", how, attention_dropout=0.5)
    patched = attention_alone(copy.deepcopy(plain))
    results = []
    for model in (plain, patched):
        torch.manual_seed(2)
        results.append(model.train()(TOKENS)[0])
    assert torch.equal(*results) and not kernels_of(lambda: patched.train()(TOKENS))
    assert "rooftile::attention" in kernels_of(lambda: patched.eval()(TOKENS))
    assert torch.equal(patched.double()(TOKENS)[0], plain.eval().double()(TOKENS)[0])
    kept = rooftile.torch.patch(made("llama", how, head_dim=264)).kept
    assert ("model.layers.0.self_attn", "LlamaAttention", "its heads have 264 channels, more than 256") in kept


def test_weights_come_from_the_models_function():
    plain = made("llama", "eager")
    patched = attention_alone(copy.deepcopy(plain))
    a, b = (m(TOKENS, output_attentions=True).attentions for m in (patched, plain))
    assert len(a) == len(b) == 2 and all(torch.equal(p, q) for p, q in zip(a, b))


def test_the_implementation_may_change_afterwards():
    plain = made("llama", "sdpa")
    patched = attention_alone(copy.deepcopy(plain))
    assert patched.config._attn_implementation == "sdpa" and patched.model.layers[0].self_attn.config.hidden_size == 64
    patched.set_attn_implementation("eager")
    torch.testing.assert_close(patched(TOKENS, attention_mask=PADDED)[0][PADDED.bool()], plain(TOKENS, attention_mask=PADDED)[0][PADDED.bool()],
                               rtol=1e-4, atol=1e-5)
    assert "rooftile::attention" in kernels_of(lambda: patched(TOKENS))


def test_a_patched_model_is_copied_pickled_and_saved(tmp_path):
    patched = attention_alone(made("gpt_oss", "eager"))
    expected = patched(TOKENS)[0]
    for other in (copy.deepcopy(patched), pickle.loads(pickle.dumps(patched))):
        assert torch.equal(other(TOKENS)[0], expected) and "rooftile::attention" in kernels_of(lambda: other(TOKENS))
        assert other.model.layers[0].self_attn.config.rooftile_config is other.config
    patched.save_pretrained(tmp_path)
    assert "rooftile" not in (tmp_path / "config.json").read_text()
    again = type(patched).from_pretrained(tmp_path)
    torch.testing.assert_close(again.eval()(TOKENS)[0], expected, rtol=1e-4, atol=1e-5)


def test_it_compiles_without_a_graph_break():
    patched = attention_alone(made("llama", "sdpa"))
    compiled = torch.compile(patched, fullgraph=True, backend="aot_eager")
    y = compiled(TOKENS, use_cache=False)[0]
    torch.testing.assert_close(y, patched(TOKENS)[0], rtol=1e-4, atol=1e-5)
    y.sum().backward()


def test_under_autocast():
    plain = made("llama", "sdpa")
    patched = attention_alone(copy.deepcopy(plain))
    with torch.autocast("cpu", torch.bfloat16):
        a, b = patched(TOKENS)[0], plain(TOKENS)[0]
    assert a.dtype == b.dtype
    torch.testing.assert_close(a, b, rtol=0.05, atol=0.05)
    with torch.autocast("cpu", torch.bfloat16):
        assert "rooftile::attention" in kernels_of(lambda: patched(TOKENS))


@pytest.mark.parametrize("change, reason", [
    (lambda own: lambda module, q, *rest, **words: own(module, 2 * q, *rest, **words), "gave other numbers than rooftile's"),
    (lambda own: lambda module, q, *rest, **words: own(module, q.clamp(-9, 9), *rest, **words), "gave other numbers than rooftile's"),
    (lambda own: lambda *args, **words: (own(*args, **words)[0].transpose(1, 2), None), "gave other numbers than rooftile's"),
    (lambda own: lambda *args, **words: 1 / 0, "a trial of its attention failed: division by zero")], ids=["scale", "clamp", "layout", "error"])
def test_another_function_stays(change, reason, monkeypatch):
    import transformers.models.llama.modeling_llama as file

    monkeypatch.setattr(file, "eager_attention_forward", change(file.eager_attention_forward))
    done = rooftile.torch.patch(made("llama", "eager"))
    assert [n for n, kind, why in done.kept if kind == "LlamaAttention" and reason in why] == ["model.layers.0.self_attn", "model.layers.1.self_attn"]
