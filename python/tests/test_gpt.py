"""examples/gpt.py and gpt_jax.py, the whole model of lesson 57."""

import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import gpt  # noqa: E402

CONFIG = gpt.Config(layers=2, channels=64, heads=4, key_heads=2, hidden=96, context=48)
TEXT = torch.frombuffer(bytearray(b"the quick brown fox jumps over the lazy dog; " * 40), dtype=torch.uint8).long()


def trained(steps, **options):
    torch.manual_seed(0)
    model = gpt.Model(CONFIG)
    return model, gpt.train(model, TEXT, steps, size=4, **options)


@pytest.fixture(scope="module")
def learned():
    return trained(90)


def test_it_learns_and_says_what_it_learned(learned):
    model, losses = learned
    assert losses[0] == pytest.approx(5.545, abs=0.1)  # ln 256: it knows nothing
    assert losses[-1] < 0.5, losses
    assert gpt.generate(model, b"the quick ", 25, temperature=0.0) == b"the quick brown fox jumps over the "


def test_training_again_gives_the_same_bits_at_any_number_of_threads(learned):
    _, losses = learned
    before = torch.get_num_threads()
    first, _ = trained(8)
    try:
        torch.set_num_threads(1)
        again, its = trained(8)
    finally:
        torch.set_num_threads(before)
    assert gpt.bits(again) == gpt.bits(first)
    other, _ = trained(8, seed=1)
    assert gpt.bits(other) != gpt.bits(first)


def test_a_token_decoded_has_the_bits_of_a_prefill(learned):
    model, _ = learned
    tokens = TEXT[None, :40]
    with torch.no_grad():
        whole = model(tokens)
        cache = gpt.Cache(CONFIG, 40, model.table)
        parts = [model(tokens[:, :17], cache)] + [model(tokens[:, at : at + 1], cache) for at in range(17, 40)]
    assert torch.equal(torch.cat(parts, dim=1), whole)


def test_a_sequence_has_the_same_bits_in_any_batch(learned):
    model, _ = learned
    tokens = torch.stack([TEXT[at : at + 40] for at in range(5)])
    with torch.no_grad():
        assert torch.equal(model(tokens)[3], model(tokens[3:4])[0])


def test_generating_follows_from_the_seed(learned):
    model, _ = learned
    told = [gpt.generate(model, b"the ", 40, seed=seed, temperature=2.0) for seed in (0, 0, 1)]
    assert told[0] == told[1] != told[2]


def test_compiles_whole(learned):
    model, _ = learned
    tokens = TEXT[None, :33].expand(2, -1)
    compiled = torch.compile(model.loss, fullgraph=True, backend="aot_eager")
    eager = model.loss(tokens)
    assert torch.equal(compiled(tokens), eager)


def test_jax_gives_the_same_bits(learned):
    jax = pytest.importorskip("jax")
    import gpt_jax

    model, _ = learned
    tokens = torch.stack([TEXT[at : at + 33] for at in range(3)])
    with torch.no_grad():
        ours = model(tokens)
    forward = jax.jit(gpt_jax.forward, static_argnums=2)
    theirs = forward(gpt_jax.weights_of(model), jax.numpy.asarray(tokens.numpy(), dtype="int32"), CONFIG)
    assert (ours.numpy() == jax.device_get(theirs)).all()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")
def test_two_processes_learn_as_one(tmp_path):
    text = tmp_path / "text"
    text.write_bytes(bytes(TEXT.tolist()))
    command = [str(EXAMPLES / "gpt.py"), "--text", str(text), "--steps", "3", "--bytes", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}

    def losses(start):
        told = subprocess.run([sys.executable, *start, *command], env=environment, capture_output=True, text=True, timeout=600)
        assert told.returncode == 0, told.stderr
        return [float(line.split()[3]) for line in told.stdout.splitlines() if line.startswith("step")], told.stdout

    alone, _ = losses([])
    both, told = losses(["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"])
    assert len(both) == len(alone) == 2 and told.count("weights") == 1
    # Each process has half of the batch and tells its own loss; the gradient is the mean of both.
    assert both == pytest.approx(alone, rel=0.02)


def test_says_what_it_cannot_do(tmp_path, capsys):
    short = tmp_path / "short"
    short.write_bytes(b"too short")
    for words, message in [(["--text", str(short)], "has 9 bytes, must have more than 128"), (["--prompt", ""], "is empty")]:
        with pytest.raises(SystemExit, match=message):
            gpt.main(words)
