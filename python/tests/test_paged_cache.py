"""rooftile.torch.nn.PagedKVCache: sequences that grow, share and give back pages, against attention over what each has seen."""

import random

import pytest

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

LAYERS, HEADS, KEYS, D = 2, 4, 2, 8
DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()


class Model:
    """Keys, values and queries of tokens by their number, and what each sequence has seen: [token, …]."""

    def __init__(self, device="cpu", dtype=torch.float32, tokens=50):
        random_ = torch.Generator().manual_seed(0)
        self.q, self.k, self.v = (torch.randn(LAYERS, tokens, heads, D, generator=random_).to(device, dtype) for heads in (HEADS, KEYS, KEYS))
        self.seen = {}

    def run(self, cache, counts):
        """A step of new tokens: each query has the bits of attention over its whole sequence."""
        new = {s: [random.randrange(50) for _ in range(n)] for s, n in counts.items()}
        step, rows = cache.extend(counts), torch.tensor([t for s in counts for t in new[s]])
        for s in counts:
            self.seen[s] = self.seen[s] + new[s]
        assert step.positions.tolist() == [i for s, n in counts.items() for i in range(len(self.seen[s]) - n, len(self.seen[s]))]
        assert rows[step.last.cpu()].tolist() == [new[s][-1] for s in counts]
        for layer in range(LAYERS):
            step.append(self.k[layer, rows], self.v[layer, rows], layer)
        self.check(step, counts, rows)

    def check(self, step, counts, rows):
        for layer in range(LAYERS):
            y = step.attend(self.q[layer, rows], layer).split(list(counts.values()))
            for (s, n), its in zip(counts.items(), y):
                q, k, v = (x[layer, self.seen[s]][None] for x in (self.q, self.k, self.v))
                assert torch.equal(its, rt.attention(q, k, v, causal=True)[0, -n:])


def consistent(cache):
    """Each page has as many users as tables that hold it, and pages of none are free, once."""
    taken = [page for table in cache.tables.values() for page in table]
    assert cache.users == [taken.count(page) for page in range(cache.pages)]
    assert sorted(cache.free_pages) == [page for page in range(cache.pages) if page not in taken]


def made(pages=20, size=4, device="cpu", dtype=torch.float32):
    return rt.nn.PagedKVCache(pages, size, KEYS, D, LAYERS, device, dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [1, 3, 16])
def test_whatever_sequences_do_each_sees_its_own_tokens(size, dtype, device):
    random.seed(size)
    model, cache = Model(device, dtype), made(300 // size, size, device, dtype)
    for _ in range(60):
        there = list(cache.tables)
        deed = random.choice(["new", "step", "step", "step", "fork", "prefix", "truncate", "free", "defragment", "resize", "reserve"])
        if deed == "new" or not there:
            model.seen[cache.allocate()] = []
        elif deed == "step":
            counts = {s: random.choice([1, 1, 1, 2, 7]) for s in random.sample(there, random.randrange(1, len(there) + 1))}
            if cache.missing(counts) <= len(cache.free_pages):
                free, missing = len(cache.free_pages), cache.missing(counts)
                model.run(cache, counts)
                assert len(cache.free_pages) == free - missing
        elif deed in ("fork", "prefix"):
            parent = random.choice(there)
            length = random.randrange(cache.length(parent) + 1) if deed == "prefix" else None
            model.seen[cache.fork(parent, length)] = model.seen[parent][:length]
        elif deed == "truncate":
            s = random.choice(there)
            model.seen[s] = model.seen[s][: random.randrange(len(model.seen[s]) + 1)]
            cache.truncate(s, len(model.seen[s]))
        elif deed == "free":
            s = there[0]
            cache.free(s)
            del model.seen[s]
        elif deed == "defragment":
            used = cache.pages - len(cache.free_pages)
            cache.defragment()
            assert sorted(cache.free_pages) == list(range(used, cache.pages))
        elif deed == "resize":
            cache.resize(cache.pages - len(cache.free_pages) + random.randrange(40))
        else:
            cache.reserve(random.choice(there), random.randrange(9))
        consistent(cache)
        assert cache.lengths == {s: len(tokens) for s, tokens in model.seen.items()}
    assert cache.most > 10 // size


def test_a_fork_shares_pages_until_it_writes():
    model, cache = Model(), made()
    a = cache.allocate()
    model.seen[a] = []
    model.run(cache, {a: 10})  # two whole pages, half a page
    b = cache.fork(a)
    c = cache.fork(a, 8)
    model.seen |= {b: list(model.seen[a]), c: model.seen[a][:8]}
    assert cache.most == 3 and cache.tables[b] == cache.tables[a] and cache.tables[c] == cache.tables[a][:2]
    assert cache.missing({a: 1, b: 1}) == 1 and cache.missing({c: 1}) == 1
    model.run(cache, {a: 1, b: 1, c: 1})
    assert [x[:2] for x in cache.tables.values()] == [cache.tables[a][:2]] * 3
    assert len({x[2] for x in cache.tables.values()}) == 3 and cache.most == 5
    cache.free(a)
    model.run(cache, {c: 2, b: 3})
    cache.free(b)
    cache.free(c)
    consistent(cache)
    assert len(cache.free_pages) == 20


@pytest.mark.parametrize("writer", ["a", "b"])
def test_a_step_whose_page_is_copied_in_between_is_refused(writer):
    """What it would append is missing in the copy, or would change what the fork sees."""
    cache = made()
    s = {"a": cache.allocate()}
    x, q = torch.zeros(3, KEYS, D), torch.zeros(3, HEADS, D)
    step = cache.extend({s["a"]: 3})
    s["b"] = cache.fork(s["a"])
    step.append(x, x)  # both share it still
    other = cache.extend({s[writer]: 1})
    for call in (lambda: step.append(x, x, 1), lambda: step.attend(q, 1)):
        with pytest.raises(ValueError, match="a page that this step writes was copied for a fork after the step was made; append in all"):
            call()
    other.append(x[:1], x[:1], 1)
    other.attend(q[:1], 1)
    third = cache.fork(s["b"])
    steps = [cache.extend({n: 1}) for n in (*s.values(), third)]  # none writes another one's page
    for step in steps:
        step.append(x[:1], x[:1])


def test_reserved_pages_are_there_when_they_are_needed():
    cache = made(4)
    a, b = cache.allocate(), cache.allocate()
    assert cache.reserve(a, 9) and len(cache.free_pages) == 1 and cache.length(a) == 0
    assert not cache.reserve(b, 5) and not cache.tables[b] and cache.reserve(b, 4)
    assert cache.reserve(a, 12) and not cache.reserve(a, 13)
    cache.extend({a: 12, b: 4})
    consistent(cache)


def test_defragmented_pages_hold_what_they_held():
    model, cache = Model(), made()
    s = [cache.allocate() for _ in range(3)]
    model.seen = {x: [] for x in s}
    for _ in range(4):
        model.run(cache, dict.fromkeys(s, 3))
    cache.free(s[1])
    del model.seen[s[1]]
    before = sorted(p for x in cache.tables.values() for p in x)
    assert before != list(range(6)) and cache.defragment() == sum(p >= 6 for p in before) > 0
    assert sorted(p for x in cache.tables.values() for p in x) == list(range(6)) and cache.defragment() == 0
    model.run(cache, {s[0]: 1, s[2]: 2})
    used = cache.pages - len(cache.free_pages)
    cache.resize(used)
    assert cache.pages == used and not cache.free_pages
    cache.resize(used + 2)
    model.run(cache, {s[0]: 8})


def one(cache, count=3):
    s = cache.allocate()
    return s, cache.extend({s: count})


def stale(change):
    def call(cache):
        s, step = one(cache)
        change(cache, s)
        step.attend(torch.zeros(3, HEADS, D))

    return call


@pytest.mark.parametrize("call, message", [
    (lambda cache: cache.extend({cache.allocate(): 81}), "the new tokens need 21 more pages, 20 of 20 are free; free a sequence, or resize"),
    (lambda cache: cache.extend({7: 1}), r"there is no sequence 7; there are: none. allocate\(\) makes one"),
    (lambda cache: (one(cache), cache.allocate(), cache.free(5)), "there is no sequence 5; there are: 0, 1. allocate"),
    (lambda cache: cache.free(cache.free(cache.allocate()) or 0), "there is no sequence 0"),
    (lambda cache: cache.extend({cache.allocate(): 0}), "0 new tokens of sequence 0, must be 1 or more"),
    (lambda cache: cache.reserve(cache.allocate(), -1), "-1 new tokens of sequence 0, must be 0 or more"),
    (lambda cache: cache.fork(one(cache)[0], 4), "length is 4, must be from 0 to 3, the tokens of sequence 0"),
    (lambda cache: cache.truncate(one(cache)[0], -1), "length is -1, must be from 0 to 3, the tokens of sequence 0"),
    (lambda cache: (one(cache), cache.resize(0)), "pages is 0, 1 are in use; must be as many or more"),
    (lambda cache: one(cache)[1].append(*[torch.zeros(2, KEYS, D)] * 2), "keys are 2x2x8, must be 3x2x8: the step's tokens, heads, channels"),
    (lambda cache: one(cache)[1].append(torch.zeros(3, KEYS, D), torch.zeros(3, KEYS, 9)), "values are 3x2x9, must be 3x2x8"),
    (lambda cache: one(cache)[1].attend(torch.zeros(3, HEADS, 9)), "queries are 3x4x9, must be 3x4x8"),
    (lambda cache: one(cache)[1].attend(torch.zeros(3, 3, D)), "paged_attention: "),
    (stale(lambda cache, s: cache.truncate(s, 1)), "pages were given back or moved after this step was made; extend"),
    (stale(lambda cache, s: cache.defragment()), "pages were given back or moved"),
    (stale(lambda cache, s: cache.resize(30)), "pages were given back or moved"),
    (lambda cache: rt.nn.PagedKVCache(4, 0, 1, 8), "page_size is 0, must be 1 or more"),
    (lambda cache: rt.nn.PagedKVCache(-1, 4, 1, 8), "pages is -1, must be 0 or more"),
])
def test_says_what_it_cannot_do(call, message):
    cache = made()
    with pytest.raises(ValueError, match=message):
        call(cache)
    consistent(cache)


def test_what_is_refused_changes_nothing():
    cache = made(3)
    a, b = cache.allocate(), cache.allocate()
    with pytest.raises(ValueError, match="need 4 more pages, 3 of 3 are free"):
        cache.extend({a: 4, b: 9})
    assert cache.lengths == {a: 0, b: 0} and len(cache.free_pages) == 3


@pytest.mark.parametrize("call, message", [
    (lambda cache, s: cache.extend({s: 1.5}), "tokens of sequence 0 is 1.5, must be a whole number"),
    (lambda cache, s: cache.extend({s: 1, 1: None}), "tokens of sequence 1 is None, must be a whole number"),
    (lambda cache, s: cache.extend([s]), "tokens are of type list, must be a dict: sequences, and the new tokens of each"),
    (lambda cache, s: cache.reserve(s, 1.5), "tokens of sequence 0 is 1.5, must be a whole number"),
    (lambda cache, s: cache.fork(s, 0.5), "length is 0.5, must be a whole number"),
    (lambda cache, s: cache.truncate(s, 1.0), "length is 1.0, must be a whole number"),
    (lambda cache, s: cache.resize(40.0), "pages is 40.0, must be a whole number"),
    (lambda cache, s: rt.nn.PagedKVCache(4, 2.0, 1, 8), "page_size is 2.0, must be a whole number"),
])
def test_takes_whole_numbers_and_else_changes_nothing(call, message):
    cache = made()
    s = cache.allocate()
    cache.allocate()
    cache.extend({s: 6})
    cache.fork(s)
    before = {n: str(x) for n, x in vars(cache).items() if n not in "kv"}
    with pytest.raises(TypeError, match=message):
        call(cache, s)
    assert {n: str(x) for n, x in vars(cache).items() if n not in "kv"} == before


def test_a_cache_of_codes_takes_scales():
    torch.manual_seed(0)
    cache, plain = made(dtype=torch.float8_e4m3fn), made()
    k, v, q = (torch.randn(9, heads, D) for heads in (KEYS, KEYS, HEADS))
    scales = {"k_scale": torch.tensor([0.01, 0.3]), "v_scale": torch.tensor([2.0, 0.05])}
    steps = [x.extend({x.allocate(): 9}) for x in (cache, plain)]
    steps[0].append(k, v, 1, **scales)
    codes = [x[1].flatten(0, 1)[steps[0].slots].float() * scale[:, None] for x, scale in zip((cache.k, cache.v), scales.values())]
    steps[1].append(*codes, 1)
    for x, own in zip(codes, (k, v)):
        assert ((x - own).abs() <= own.abs() / 16 + 1e-3).all() and not torch.equal(x, own)
    y = steps[1].attend(q, 1)
    torch.testing.assert_close(steps[0].attend(q, 1, **scales), y, rtol=1e-5, atol=1e-5)
    other = cache.fork(0)
    cache.extend({other: 1})  # a copy of a page
    cache.free(0)
    assert cache.defragment()
    cache.resize(5)
    assert torch.equal(cache.k[1, cache.tables[other]].flatten(0, 1)[:9].float() * scales["k_scale"][:, None], codes[0])
