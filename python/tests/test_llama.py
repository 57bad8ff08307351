"""examples/llama.py, the model from a folder of lesson 57: against transformers, and against itself in other batches."""

import json
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("safetensors")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import gpt  # noqa: E402
import llama  # noqa: E402

SIZES = {"vocab_size": 97, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
#: (class, config's class, its words)
MODELS = {
    "llama": ("Llama", {}),
    "tied": ("Llama", {"tie_word_embeddings": True, "head_dim": 24, "rms_norm_eps": 1e-3}),
    "biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama3": ("Llama", {"rope_parameters": {**LLAMA3, "rope_theta": 500000.0}}),
    "yarn": ("Llama", {"rope_parameters": {**YARN, "rope_theta": 10000.0}}),
    "yarn, its factor": ("Llama", {"rope_parameters": {**YARN, "rope_theta": 10000.0, "attention_factor": 1.5, "truncate": False}}),
    "linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}}),
    "mistral": ("Mistral", {"sliding_window": 5}),
    "mistral, no window": ("Mistral", {"sliding_window": None}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen2, a window": ("Qwen2", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
}
DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
PROMPTS = [torch.randint(1, 97, (length,), generator=torch.Generator().manual_seed(length)).tolist() for length in (13, 1, 40, 7)]


def made(name, dtype=torch.float32):
    kind, words = MODELS[name]
    torch.manual_seed(1)
    model = getattr(transformers, kind + "ForCausalLM")(getattr(transformers, kind + "Config")(**{**SIZES, **words}))
    with torch.no_grad():  # numbers that tell: as they begin, scores and biases are near 0, and norms do nothing
        for n, p in model.named_parameters():
            if p.dim() == 1:
                p.add_(torch.randn_like(p) * 0.2)
            elif "q_proj" in n or "k_proj" in n or "embed" in n:
                p.mul_(8)
    return model.eval().to(dtype)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder for each model and dtype."""
    there = {}

    def folder(name, dtype=torch.float32):
        if (name, dtype) not in there:
            there[name, dtype] = tmp_path_factory.mktemp("model")
            made(name, dtype).save_pretrained(there[name, dtype])
        return there[name, dtype]

    return folder


@torch.no_grad()
def logits_of(model, tokens, chunk, page=4):
    """After each of a prompt's tokens."""
    cache = llama.cache_of(model, -(-len(tokens) // page), page)
    sequence = llama.Sequence(tokens, 0, cache.allocate())
    rows = []
    while cache.length(sequence.number) < len(tokens):
        rows.append(model(*llama.begun(llama.chosen([sequence], cache, chunk), cache), slice(None)))
    return torch.cat(rows)


def drawn(model, prompts, count=9, **options):
    """Tokens, and the logits from which each of them was drawn."""
    seen = [[] for _ in prompts]
    options = {"temperature": 0.0, **options}
    tokens, cache = llama.generate(model, prompts, count, see=lambda index, logits: seen[index].append(logits), **options)
    assert sorted(cache.free_pages) == list(range(cache.pages))  # all pages came back
    return tokens, [torch.stack(rows) for rows in seen], cache


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_logits_and_tokens_are_those_of_transformers(name, device, folders):
    theirs, mine = made(name), llama.Model(folders(name), device=device)
    expected = theirs(torch.tensor([PROMPTS[2]])).logits[0]
    assert expected.std() > 0.1
    torch.testing.assert_close(logits_of(mine, PROMPTS[2], 16).cpu(), expected, rtol=1e-4, atol=2e-5 * expected.abs().max().item())
    tokens, _, _ = drawn(mine, PROMPTS, chunk=8, page=4)
    for prompt, told in zip(PROMPTS, tokens):
        whole = theirs.generate(torch.tensor([prompt]), max_new_tokens=9, do_sample=False, pad_token_id=0)[0].tolist()
        assert prompt + told == whole


@pytest.mark.parametrize("name", ["llama", "qwen2", "mistral"])
def test_bf16(name, folders):
    """About as far from f32 as transformers' model itself."""
    theirs, mine = made(name, torch.bfloat16), llama.Model(folders(name, torch.bfloat16))
    assert mine.table.dtype == torch.bfloat16
    tokens = torch.tensor([PROMPTS[2]])
    with torch.no_grad():
        exact = made(name, torch.bfloat16).float()(tokens).logits[0]
        own = (theirs(tokens).logits[0].float() - exact).abs()
    error = (logits_of(mine, PROMPTS[2], 16).float() - exact).abs()
    assert error.max() <= 1.5 * own.max() and error.mean() <= 1.2 * own.mean()


@pytest.mark.parametrize("name, dtype", [("llama", torch.float32), ("mistral", torch.float32), ("llama3", torch.bfloat16)])
@pytest.mark.parametrize("nf4", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_a_sequence_has_the_same_bits_in_any_batch(name, dtype, nf4, device, folders):
    model = llama.Model(folders(name, dtype), nf4=nf4, device=device)
    alone = [drawn(model, [prompt]) for prompt in PROMPTS]
    for options in [{}, {"chunk": 1}, {"chunk": 5, "page": 1}, {"chunk": 16, "page": 3, "pages": 17}, {"pages": 4, "page": 16}]:
        tokens, logits, cache = drawn(model, PROMPTS, **options)
        assert cache.most <= options.get("pages", 1000)
        for (its_tokens, its_logits, _), told, seen in zip(alone, tokens, logits):
            assert its_tokens == [told]
            assert torch.equal(its_logits[0], seen), options


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_a_token_decoded_has_the_bits_of_a_prefill(name, device, folders):
    model = llama.Model(folders(name), device=device)
    whole = logits_of(model, PROMPTS[2], 40)
    for chunk, page in [(1, 4), (7, 16), (16, 5)]:
        assert torch.equal(logits_of(model, PROMPTS[2], chunk, page), whole)
    _, logits, _ = drawn(model, [PROMPTS[2][:30]], 1)
    assert torch.equal(logits[0][0], whole[29])


def test_the_number_of_threads_changes_no_bit(folders):
    model = llama.Model(folders("llama"))
    before, logits = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            logits += [logits_of(model, PROMPTS[2], chunk) for chunk in (1, 40)]
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(its, logits[0]) for its in logits)


def test_drawn_tokens_follow_from_prompt_and_seed(folders):
    model = llama.Model(folders("llama"))
    options = {"temperature": 1.5, "top_k": 20, "top_p": 0.9, "count": 20}
    alone = [drawn(model, [prompt], seed=3, **options)[0][0] for prompt in PROMPTS]
    assert drawn(model, PROMPTS[::-1], seed=3, chunk=3, **options)[0] == alone[::-1]
    assert drawn(model, PROMPTS[:1], seed=4, **options)[0] != alone[:1] != drawn(model, PROMPTS[:1], count=20)[0]


def test_pages_that_are_short_are_given_back_and_computed_again(folders):
    model = llama.Model(folders("llama"))
    calls = []
    forward = model.forward
    model.forward = lambda tokens, step: (calls.append(len(tokens)), forward(tokens, step))[1]
    plenty, _, cache = drawn(model, PROMPTS, count=30)
    computed = sum(calls)
    assert computed == sum(map(len, PROMPTS)) + 4 * 29  # each token but the last ones passes once
    few, _, scarce = drawn(model, PROMPTS, count=30, pages=5)
    assert few == plenty and scarce.most == 5 < cache.most
    assert sum(calls) - computed > computed


def test_a_page_serves_one_sequence(folders):
    """Pages that a sequence shares with another one would be overwritten."""
    model = llama.Model(folders("llama"))
    cache = llama.cache_of(model, 9, 4)
    sequences = [llama.Sequence(prompt, 3, cache.allocate()) for prompt in PROMPTS]
    assert llama.chosen(sequences, cache, 8) == list(zip(sequences, (8, 1, 8, 7)))
    taken = [page for sequence in sequences for page in cache.tables[sequence.number]]
    assert len(set(taken)) == len(taken) == 2 + 1 + 2 + 2 and len(cache.free_pages) == 2


def test_nf4_has_the_bits_of_its_weights_in_memory(folders):
    """And they take the memory that is said."""
    plain, packed = llama.Model(folders("biases")), llama.Model(folders("biases"), nf4=True)
    for layer, small in zip(plain.layers, packed.layers):
        for n in ("qkv", "out", "gate_up", "down"):
            getattr(layer, n).weight.data = getattr(small, n).weight()
    assert torch.equal(logits_of(packed, PROMPTS[2], 16), logits_of(plain, PROMPTS[2], 16))
    weights = 3 * ((64 + 2 * 32) * 64 + 64 * 64 + 3 * 64 * 96)
    others = 2 * 97 * 64 + 7 * 64 + 3 * ((64 + 2 * 32) + 64 + 2 * 96 + 64)  # embedding, head, norms, biases
    assert plain.bytes() == 4 * (weights + others)
    assert packed.bytes() == weights // 2 + 4 * weights // 64 + 4 * others


def test_shards_are_one_model(folders, tmp_path):
    made("llama").save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    whole, parts = llama.Model(folders("llama")), llama.Model(tmp_path)
    assert torch.equal(logits_of(parts, PROMPTS[0], 16), logits_of(whole, PROMPTS[0], 16))


def test_older_files_say_rope_scaling(folders, tmp_path):
    made("llama3").save_pretrained(tmp_path)
    said = json.loads((tmp_path / "config.json").read_text())
    del said["rope_parameters"]
    (tmp_path / "config.json").write_text(json.dumps({**said, "rope_theta": 500000.0, "rope_scaling": LLAMA3}))
    assert torch.equal(logits_of(llama.Model(tmp_path), PROMPTS[0], 16), logits_of(llama.Model(folders("llama3")), PROMPTS[0], 16))


def test_it_stops_at_an_end(folders):
    model = llama.Model(folders("llama"))
    whole, _, _ = drawn(model, PROMPTS, count=20)
    end = whole[2][4]
    cut = [tokens[: tokens.index(end) + 1] if end in tokens else tokens for tokens in whole]
    assert drawn(model, PROMPTS, count=20, ends=[end])[0] == cut != whole


def test_gpts_folder_gives_gpts_bits(tmp_path):
    config = gpt.Config(layers=2, channels=64, heads=4, key_heads=2, hidden=96, context=48)
    torch.manual_seed(0)
    model = gpt.Model(config)
    gpt.save(model, tmp_path)
    tokens = list(b"the quick brown fox")
    with torch.no_grad():
        expected = model(torch.tensor([tokens]))[0]
    assert torch.equal(logits_of(llama.Model(tmp_path), tokens, 5), expected)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)(torch.tensor([tokens])).logits[0]
    torch.testing.assert_close(theirs, expected, rtol=1e-4, atol=1e-5)
    told = gpt.generate(model, bytes(tokens), 12, seed=5)
    assert bytes(tokens + llama.generate(llama.Model(tmp_path), [tokens], 12, seed=5, temperature=0.7, top_p=0.95)[0][0]) == told


def test_the_command(folders, tmp_path, capsys):
    tokenizers = pytest.importorskip("tokenizers")
    made("llama").save_pretrained(tmp_path)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(97)}))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    llama.main([str(tmp_path), "--device", "cpu", "--prompt", "w5 w6 w7", "--prompt", "w8", "--count", "4", "--temperature", "0"])
    told = capsys.readouterr().out
    tokens, _, _ = drawn(llama.Model(tmp_path), [[5, 6, 7], [8]], 4)
    for prompt, its in zip(([5, 6, 7], [8]), tokens):
        assert " ".join(f"w{t}" for t in prompt + its) in told
    page = 2 * 3 * 16 * 2 * 16 * 4  # keys and values, layers, tokens, heads, channels, bytes
    assert "8 tokens in" in told and f"at most 2 pages of 16 tokens, {2 * page:,} bytes" in told and f"{2 * 128 * page // 16:,}" in told
    llama.main([str(folders("llama")), "--device", "cpu", "--tokens", "5,6,7", "--count", "4", "--temperature", "0"])
    assert str([5, 6, 7] + tokens[0]) in capsys.readouterr().out


def change_config(**changes):
    def change(folder):
        said = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps({n: v for n, v in said.items() if v != "gone"}))

    return change


def change_tensors(change):
    def write(folder):
        from safetensors.torch import load_file, save_file

        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return write


UP = "model.layers.1.mlp.up_proj.weight"
TOKENS = ["--tokens", "5,6,7"]
INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize("change, words, message", [
    (lambda folder: (folder / "config.json").unlink(), TOKENS, "there is no .*config.json; a model is a folder of config.json and"),
    (lambda folder: (folder / "config.json").write_text("{"), TOKENS, "config.json is not JSON"),
    (lambda folder: (folder / "config.json").write_text("[]"), TOKENS, "config.json holds a list, must hold an object"),
    (lambda folder: (folder / "model.safetensors").unlink(), TOKENS, "has no model.safetensors"),
    (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), TOKENS, "model.safetensors is damaged"),
    (lambda folder: (folder / INDEX).write_text("{}"), TOKENS, "model.safetensors.index.json names no files"),
    (lambda folder: (folder / INDEX).write_text('{"weight_map": {"a": "part.safetensors"}}'), TOKENS, "has no part.safetensors"),
    (change_config(model_type="gpt2"), TOKENS, "model_type is 'gpt2', must be one of: llama mistral qwen2 qwen3"),
    (change_config(model_type="gone"), TOKENS, "model_type is None, must be one of"),
    (change_config(vocab_size="gone"), TOKENS, "vocab_size is None, must be a number from 1 on"),
    (change_config(num_key_value_heads=3), TOKENS, "num_attention_heads is 4, must be a multiple of num_key_value_heads, 3"),
    (change_config(hidden_act="gelu"), TOKENS, "hidden_act is 'gelu', must be 'silu'"),
    (change_config(quantization_config={"bits": 4}), TOKENS, "the weights are quantised"),
    (change_config(dtype="float64"), TOKENS, "dtype is 'float64', must be one of: float32 bfloat16 float16"),
    (change_config(rope_parameters={"rope_type": "dynamic", "factor": 2.0}), TOKENS, "rope_type is 'dynamic', must be one of: default linear"),
    (change_config(rope_parameters={"rope_type": "linear"}), TOKENS, "rope_type 'linear' has no factor"),
    (change_config(rope_parameters={"rope_type": "yarn", "factor": 2.0, "mscale": 1.0}), TOKENS, "rope_type 'yarn' has the option mscale"),
    (change_tensors(lambda tensors: tensors.pop(UP)), TOKENS, f"has no tensor {UP}, which"),
    (change_tensors(lambda tensors: tensors.update({UP: tensors[UP][1:].clone()})), TOKENS, f"tensor {UP} is 95x64, must be 96x64"),
    (change_tensors(lambda tensors: tensors.update({"more": tensors[UP].clone()})), TOKENS, "has tensors that .*, as more"),
    (change_tensors(lambda tensors: tensors[UP].fill_(float("nan"))), TOKENS, "logits are no numbers"),
    (lambda folder: None, [], "there is no prompt"),
    (lambda folder: None, ["--prompt", "words"], "there is no .*tokenizer.json; give prompts as numbers"),
    (lambda folder: None, ["--tokens", "1,2,x"], "--tokens is '1,2,x', must be numbers"),
    (lambda folder: None, ["--tokens", "1,97"], "tokens from 1 to 97, must be from 0 to 96"),
    (lambda folder: None, [*TOKENS, "--count", "126"], "has 3 tokens, must have 1 to 2"),
    (lambda folder: None, [*TOKENS, "--count", "0"], "--count is 0, must be 1 or more"),
    (lambda folder: None, [*TOKENS, "--pages", "2", "--page", "4", "--count", "9"], "has 2 pages of 4 tokens, the longest sequence needs 3"),
    (lambda folder: None, [*TOKENS, "--temperature", "-1"], "temperature is -1"),
])
def test_says_what_it_cannot_do(change, words, message, tmp_path):
    made("llama").save_pretrained(tmp_path)
    change(tmp_path)
    with pytest.raises(SystemExit, match=message):
        llama.main([str(tmp_path), "--count", "4", *words])
