"""rooftile.torch.patch(model, loss=True) on transformers' causal language models: small ones with random weights."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import rooftile.torch
from rooftile.torch._patch import Patched, patch_loss
from test_patch_attention import SHARED, TOKENS, kernels_of
from test_patch_attention import made as model_of

#: More models: (class, config's class, words). Gemma's weights are tied to the embedding, as GPT-2's.
MORE = {"gemma": ("GemmaForCausalLM", "GemmaConfig", {**SHARED, "head_dim": 16, "tie_word_embeddings": True}),
        "phi": ("PhiForCausalLM", "PhiConfig", {**SHARED, "resid_pdrop": 0.0, "embd_pdrop": 0.0})}  # its head has a bias
TAKEN = ["llama", "mistral", "qwen2", "qwen3", "gemma", "phi", "phi3", "gpt2", "gpt_oss"]
LABELS = TOKENS.clone()
LABELS[0, :4] = LABELS[1, 7] = -100


def made(name, dtype=torch.float32, **more):
    if name not in MORE:
        return model_of(name, "eager", dtype, **more).train()
    kind, config, words = MORE[name]
    torch.manual_seed(1)
    model = getattr(transformers, kind)(getattr(transformers, config)(**{**words, **more}))
    with torch.no_grad():
        for n, p in model.named_parameters():
            if n.endswith("bias"):
                p.normal_()
    return model.train().to(dtype)


def loss_alone(model):
    """Patched, but for all other modules."""
    done = Patched([], [])
    patch_loss(model, done)
    assert [n for n, _ in done.replaced] == ["", "lm_head"] and not done.kept, done
    return model


def step(model, *args, **words):
    """The loss, and all gradients by name."""
    model.zero_grad()
    loss = model(*args, **words).loss
    loss.backward()
    return loss.detach(), {n: p.grad for n, p in model.named_parameters()}


class Made(torch.utils._python_dispatch.TorchDispatchMode):
    """Whether a program makes all logits."""

    logits = False

    def __torch_dispatch__(self, operator, types, args=(), words=None):
        result = operator(*args, **(words or {}))
        made = [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
        self.logits |= any(t.numel() == TOKENS.numel() * 97 and t.shape[-1] == 97 for t in made)
        return result


WORDS = {"a number of items": {"num_items_in_batch": 31}, "a tensor of it": {"num_items_in_batch": torch.tensor(31)},
         "shifted labels": {"shift_labels": LABELS.flip(1)}, "another index": {"ignore_index": int(TOKENS[0, 5])}}


def compare(plain, labels, **words):
    patched = loss_alone(copy.deepcopy(plain))
    (loss, mine), (expected, own) = (step(m, TOKENS, labels=labels, **words) for m in (patched, plain))
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    for n, g in own.items():
        torch.testing.assert_close(mine[n], g, rtol=1e-4, atol=1e-5 * max(g.abs().max().item(), 1e-3), msg=n)
    return patched, expected


@pytest.mark.parametrize("name", TAKEN)
def test_loss_and_gradients_are_the_models_own(name):
    patched, expected = compare(made(name), LABELS)
    assert "rooftile::linear_cross_entropy" in kernels_of(lambda: patched(TOKENS, labels=LABELS))
    output = rooftile.torch.unpatch(patched)(TOKENS, labels=LABELS)
    assert torch.equal(output.loss, expected) and output.logits is not None


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_words_of_the_loss(words):
    compare(made("llama"), TOKENS if "ignore_index" in words else LABELS, **words)


@pytest.mark.parametrize("name", ["llama", "qwen2", "phi", "gpt2"])
def test_bf16(name):
    """Not farther from the same numbers in f32 than the model itself."""
    plain = made(name, torch.bfloat16)
    patched = loss_alone(copy.deepcopy(plain))
    exact, far = step(copy.deepcopy(plain).float(), TOKENS, labels=LABELS)
    (loss, mine), (other, own) = (step(m, TOKENS, labels=LABELS) for m in (patched, plain))
    assert loss.dtype == torch.float32 and abs(loss - exact) <= abs(other - exact) + 1e-3
    for n, g in far.items():
        assert mine[n].dtype == torch.bfloat16
        error, its = ((x[n].float() - g).norm() for x in (mine, own))
        assert error <= 1.3 * its + 1e-3 * g.norm(), n


@pytest.mark.parametrize("name", ["llama", "phi", "gpt2"])
def test_autocast(name):
    plain = made(name)
    patched = loss_alone(copy.deepcopy(plain))
    exact, far = step(copy.deepcopy(plain), TOKENS, labels=LABELS)
    with torch.autocast("cpu", torch.bfloat16):
        (loss, mine), (other, own) = (step(m, TOKENS, labels=LABELS) for m in (patched, plain))
    assert loss.dtype == torch.float32 and abs(loss - exact) <= abs(other - exact) + 1e-2
    for n, g in far.items():
        assert mine[n].dtype == torch.float32
        assert (mine[n] - g).norm() <= 1.3 * (own[n] - g).norm() + 1e-3 * g.norm(), n


def test_logits_are_made_only_where_they_are_wanted():
    model = loss_alone(made("llama"))
    model.config.use_cache = False

    def made_by(**words):
        with Made() as mode:
            output = model(TOKENS, labels=LABELS, **words)
        assert output.logits is None or output.logits.shape == (2, 13, 97)
        assert ("logits" in output) == (output.logits is not None) == mode.logits
        return mode.logits, output.loss

    assert not made_by()[0] and made_by(skip_logits=False)[0]
    assert model(TOKENS).logits.shape == (2, 13, 97)
    model.eval()
    (whole, _), (skipped, loss) = made_by(), made_by(skip_logits=True)
    assert whole and not skipped
    assert len(model(TOKENS, labels=LABELS, return_dict=False)) == 2
    (its,) = model(TOKENS, labels=LABELS, return_dict=False, skip_logits=True)
    assert torch.equal(its, loss)
    assert torch.equal(model(TOKENS, None, None, None, None, LABELS, skip_logits=True).loss, loss)  # by place


def test_what_changes_the_logits_keeps_its_loss():
    """A soft cap, as Gemma 2's."""
    plain = made("gemma2", final_logit_softcapping=1.5)
    patched = copy.deepcopy(plain)
    done = Patched([], [])
    patch_loss(patched, done)
    assert ("", "Gemma2ForCausalLM", "its logits are changed before the loss, or its loss is not ForCausalLMLoss") in done.kept
    assert not any(n in ("", "lm_head") for n, _ in done.replaced)
    assert patched(TOKENS, labels=LABELS).logits is not None
    uncapped = made("gemma2", final_logit_softcapping=None)
    patched = loss_alone(copy.deepcopy(uncapped))
    assert patched(TOKENS, labels=LABELS).logits is None
    for model in (uncapped, patched):
        model.config.final_logit_softcapping = 1.5  # afterwards
    ours, own = (m(TOKENS, labels=LABELS) for m in (patched, uncapped))
    assert torch.equal(ours.loss, own.loss) and torch.equal(ours.logits, own.logits)


def test_what_was_not_tried_runs_on_the_models_own():
    plain = made("llama")
    patched = loss_alone(copy.deepcopy(plain))
    exact = plain(TOKENS, labels=LABELS)

    def is_own(call=lambda m: m(TOKENS, labels=LABELS)):
        ours, own = (call(m) for m in (patched, plain))
        return torch.equal(ours.loss, own.loss) and torch.equal(ours.logits, own.logits)

    hook = patched.lm_head.register_forward_hook(lambda module, args, y: None)
    assert is_own()
    hook.remove()
    assert not patched(TOKENS, labels=LABELS).logits
    patched.loss_function = plain.loss_function = lambda logits, labels, vocab_size, **words: logits.square().mean()
    assert is_own() and not torch.equal(plain(TOKENS, labels=LABELS).loss, exact.loss)
    for model in (patched, plain):
        del model._loss_function
        model.double()
    assert is_own()
    for model in (patched, plain):
        model.float().lm_head = torch.nn.Sequential(copy.deepcopy(plain.float().lm_head))
    assert is_own()


def test_unmade_logits_are_a_tensor_to_who_uses_them():
    from rooftile.torch._patch_loss import Unmade

    model = loss_alone(made("llama"))
    hidden = torch.randn(2, 3, 64)
    y = torch.nn.functional.linear(hidden, model.lm_head.weight)
    for use in (lambda x: x / 3, lambda x: 3 - x, lambda x: x[:, 1:], lambda x: torch.tanh(x), lambda x: torch.cat([x, x], 1),
                lambda x: x.float().view(-1), lambda x: -x, lambda x: x @ x.mT, lambda x: torch.stack(tensors=[x])):
        assert torch.equal(use(Unmade(model.lm_head, hidden)), use(y))
    written = Unmade(model.lm_head, hidden)
    with torch.no_grad():
        written[:, :, 0] = -1
        written *= 2
    assert torch.equal(written[:, :, 0], torch.full((2, 3), -2.0)) and len(Unmade(model.lm_head, hidden)) == 2


def test_compiled_without_a_graph_break():
    plain = made("llama", use_cache=False)
    patched = loss_alone(copy.deepcopy(plain))
    compiled = torch.compile(lambda tokens, labels: patched(tokens, labels=labels).loss, backend="aot_eager", fullgraph=True)
    patched.zero_grad()
    loss = compiled(TOKENS, LABELS)
    loss.backward()
    expected, own = step(plain, TOKENS, labels=LABELS)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    for n, p in patched.named_parameters():
        torch.testing.assert_close(p.grad, own[n], rtol=1e-4, atol=1e-5)


def test_copies_pickles_and_checkpointing():
    patched = loss_alone(made("llama"))
    expected = patched(TOKENS, labels=LABELS).loss
    for model in (copy.deepcopy(patched), pickle.loads(pickle.dumps(patched))):
        output = model(TOKENS, labels=LABELS)
        assert output.logits is None and torch.equal(output.loss, expected)
    patched.model.gradient_checkpointing = True
    assert torch.equal(patched(TOKENS, labels=LABELS).loss, expected)


def test_an_error_leaves_the_head_as_it_was():
    patched = loss_alone(made("llama"))
    with pytest.raises(IndexError):
        patched(torch.full_like(TOKENS, 99), labels=LABELS)
    assert not patched.lm_head.rooftile_waits and isinstance(patched.lm_head(torch.randn(2, 64)), torch.Tensor)


def test_it_is_for_who_names_it():
    model = made("llama")
    assert not any(n in ("", "lm_head") for n, _ in rooftile.torch.patch(model).replaced)
    assert model(TOKENS, labels=LABELS).logits is not None
    assert [n for n, _ in rooftile.torch.patch(model, loss=True).replaced] == ["", "lm_head"]
    assert not rooftile.torch.patch(model, loss=True).replaced


def test_models_without_such_a_loss_say_so():
    kept = rooftile.torch.patch(torch.nn.Linear(3, 3), loss=True).kept
    assert kept == [("", "Linear", "no module of it makes its loss as transformers' causal language models do")]
    assert rooftile.torch.patch(torch.nn.Linear(3, 3)).kept == []
    model = made("llama")
    model.lm_head = torch.nn.Sequential(model.lm_head)
    assert ("", "LlamaForCausalLM", "its head is Sequential, must be Linear") in rooftile.torch.patch(model, loss=True).kept
