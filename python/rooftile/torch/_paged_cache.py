"""Keys and values of many sequences in pages, which they take, share and give back; and what a step of a model needs of them."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rooftile.torch._linear import said
from rooftile.torch._operators import functions

NAME = "rooftile.torch.nn.PagedKVCache"


def whole(name, number):
    try:
        return operator.index(number)
    except TypeError:
        raise TypeError(f"{NAME}: {name} is {number!r}, must be a whole number") from None


class PagedStep:
    """The next tokens of some sequences, one after the other, and where they belong; PagedKVCache.extend makes it. positions: of each
    token in its sequence; slots: in the cache; last: the row of each sequence's last token. It serves all layers, and until pages
    are given back or moved, or a fork copies one that it writes."""

    def __init__(self, cache: PagedKVCache, counts: Mapping[int, int]) -> None:
        rows, positions, slots, last, groups = 0, [], [], [], {}
        for sequence, count in counts.items():
            table, end = cache.tables[sequence], cache.lengths[sequence]
            places = range(end - count, end)
            positions += places
            slots += [table[at // cache.page_size] * cache.page_size + at % cache.page_size for at in places]
            groups.setdefault(count, []).append((list(range(rows, rows + count)), table, end))
            rows += count
            last.append(rows - 1)
        self.cache, self.changes, self.copies, self.tokens = cache, cache.changes, cache.copies, rows
        self.pages = {slot // cache.page_size for slot in slots}
        self.positions, self.slots, self.last = (torch.tensor(x, dtype=torch.int64, device=cache.k.device) for x in (positions, slots, last))
        self.groups = [self.group(*zip(*group)) for group in groups.values()]

    def group(self, rows, tables, lengths):
        """Sequences with as many new tokens: their rows, their pages, their lengths."""
        longest = max(map(len, tables))
        tables = [table + [0] * (longest - len(table)) for table in tables]
        device = self.cache.k.device
        tables, lengths = (torch.tensor(x, dtype=torch.int32, device=device) for x in (tables, lengths))
        return torch.tensor(rows, device=device), tables, lengths

    def refuse(self, name, x, rest):
        if self.changes != self.cache.changes:
            raise ValueError(f"{NAME}: pages were given back or moved after this step was made; extend() makes another one")
        if self.cache.copies > self.copies and any(self.cache.copied.get(page, 0) > self.copies for page in self.pages):
            raise ValueError(f"{NAME}: a page that this step writes was copied for a fork after the step was made; append in all layers "
                             "before the next extend()")
        if x.shape[:1] != (self.tokens,) or x.shape[1:] != rest:
            raise ValueError(f"{NAME}: {name} are {said(x)}, must be {self.tokens}x{'x'.join(map(str, rest))}: the step's tokens, heads, "
                             "channels")

    def append(self, k: Tensor, v: Tensor, layer: int = 0, **scales: Any) -> None:
        """Puts the tokens' keys and values, (tokens, heads, channels), into the cache. scales: kv_cache_append's, of codes."""
        for name, x in (("keys", k), ("values", v)):
            self.refuse(name, x, self.cache.k.shape[3:])
        functions["kv_cache_append"](k, v, self.slots, self.cache.k[layer], self.cache.v[layer], **scales)

    # [attend]
    def attend(self, q: Tensor, layer: int = 0, **options: Any) -> Tensor:
        """Queries of the tokens, (tokens, heads, channels), see their sequences up to themselves. options: paged_attention's. A call
        for all sequences with as many new tokens."""
        self.refuse("queries", q, (*q.shape[1:2], self.cache.k.shape[-1]))
        keys, values = self.cache.k[layer], self.cache.v[layer]
        if len(self.groups) == 1:
            rows, tables, lengths = self.groups[0]
            return functions["paged_attention"](q.unflatten(0, rows.shape), keys, values, tables, lengths, **options).flatten(0, 1)
        y = torch.empty_like(q)
        for rows, tables, lengths in self.groups:
            y[rows] = functions["paged_attention"](q[rows], keys, values, tables, lengths, **options)
        return y
    # [/attend]


class PagedKVCache:
    """Keys and values of many sequences, of each layer: `pages` pages of `page_size` tokens, which sequences take as they grow.

        cache = PagedKVCache(pages=64, page_size=16, num_key_value_heads=2, head_dim=64, layers=4)
        a, b = cache.allocate(), cache.allocate()
        step = cache.extend({a: 100, b: 1})     # so many new tokens of each
        step.append(k, v, layer)                # in each layer
        y = step.attend(q, layer)

    k and v: (layers, pages, page_size, heads, channels). tables and lengths: each sequence's pages in their order, and its tokens.
    users: of each page. free_pages: those of none. most: the most pages that were taken at once.

    A sequence is a number. fork() makes one that shares its pages; who writes into a shared page gets a copy of it first."""

    def __init__(self, pages: int, page_size: int, num_key_value_heads: int, head_dim: int, layers: int = 1, device: Any = None,
                 dtype: torch.dtype | None = None) -> None:
        sizes = {"pages": pages, "page_size": page_size, "num_key_value_heads": num_key_value_heads, "head_dim": head_dim, "layers": layers}
        for name, size in sizes.items():
            if whole(name, size) < (name != "pages"):
                raise ValueError(f"{NAME}: {name} is {size}, must be {int(name != 'pages')} or more")
        shape = (layers, pages, page_size, num_key_value_heads, head_dim)
        self.k, self.v = (torch.empty(shape, device=device, dtype=dtype) for _ in range(2))
        self.page_size, self.free_pages, self.users, self.most = page_size, list(range(pages)), [0] * pages, 0
        self.tables: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}
        self.named, self.changes = 0, 0
        #: How many shared pages were copied, and of each the number of its last copy.
        self.copies, self.copied = 0, {}

    @property
    def pages(self) -> int:
        return self.k.shape[1]

    def allocate(self) -> int:
        """A new sequence, without tokens."""
        sequence, self.named = self.named, self.named + 1
        self.tables[sequence], self.lengths[sequence] = [], 0
        return sequence

    # [reserve]
    def reserve(self, sequence: int, tokens: int) -> bool:
        """Takes pages for so many more tokens of a sequence; False where too few are free."""
        tokens = self.counted({sequence: tokens})[sequence]
        if self.missing({sequence: tokens}) > len(self.free_pages):
            return False
        table, at = self.tables[sequence], self.lengths[sequence] // self.page_size
        if tokens and at < len(table) and self.users[table[at]] > 1:  # the next token would change what others see
            shared, table[at] = table[at], self.take()
            self.copy_pages([shared], [table[at]])
            self.leave([shared])
            self.copied[shared] = self.copies = self.copies + 1
        while len(table) * self.page_size < self.lengths[sequence] + tokens:
            table.append(self.take())
        return True
    # [/reserve]

    def extend(self, tokens: Mapping[int, int]) -> PagedStep:
        """So many new tokens of each sequence: their lengths grow, and the step says where the tokens go."""
        tokens = self.counted(tokens, 1)
        missing, free = self.missing(tokens), len(self.free_pages)
        if missing > free:
            raise ValueError(f"{NAME}: the new tokens need {missing} more pages, {free} of {self.pages} are free; free a sequence, or "
                             "resize() the cache")
        for sequence, count in tokens.items():
            self.reserve(sequence, count)
            self.lengths[sequence] += count
        return PagedStep(self, tokens)

    # [fork]
    def fork(self, sequence: int, length: int | None = None) -> int:
        """A new sequence of another one's first tokens, all if length is None, in the same pages."""
        own = self.length(sequence)
        length = own if length is None else whole("length", length)
        if not 0 <= length <= own:
            raise ValueError(f"{NAME}: length is {length}, must be from 0 to {own}, the tokens of sequence {sequence}")
        other = self.allocate()
        self.tables[other] = self.tables[sequence][: -(-length // self.page_size)]
        self.lengths[other] = length
        for page in self.tables[other]:
            self.users[page] += 1
        return other
    # [/fork]

    def truncate(self, sequence: int, length: int) -> None:
        """Leaves a sequence its first tokens, and gives the other pages back."""
        length = whole("length", length)
        if not 0 <= length <= self.length(sequence):
            raise ValueError(f"{NAME}: length is {length}, must be from 0 to {self.length(sequence)}, the tokens of sequence {sequence}")
        kept = -(-length // self.page_size)
        self.leave(self.tables[sequence][kept:])
        self.tables[sequence], self.lengths[sequence] = self.tables[sequence][:kept], length
        self.changes += 1

    def free(self, sequence: int) -> None:
        """Ends a sequence, and gives back the pages that no other one shares."""
        self.truncate(sequence, 0)
        del self.tables[sequence], self.lengths[sequence]

    def length(self, sequence: int) -> int:
        """The tokens of a sequence."""
        self.counted({sequence: 0})
        return self.lengths[sequence]

    def copy_pages(self, source: list[int], target: list[int]) -> None:
        """Copies whole pages of all layers; none may be both."""
        for x in (self.k, self.v):
            x[:, target] = x[:, source]

    def defragment(self) -> int:
        """Moves pages so that those in use are the first ones; how many were moved."""
        used = [page for page, users in enumerate(self.users) if users]
        gaps = [page for page in range(len(used)) if not self.users[page]]
        source = [page for page in used if page >= len(used)]
        self.copy_pages(source, gaps)
        moved = dict(zip(source, gaps))
        self.tables = {sequence: [moved.get(page, page) for page in table] for sequence, table in self.tables.items()}
        for old, new in moved.items():
            self.users[new], self.users[old] = self.users[old], 0
        self.free_pages = list(range(len(used), self.pages))
        self.changes += 1
        return len(moved)

    def resize(self, pages: int) -> None:
        """More pages, or fewer, in new memory; those in use are kept."""
        pages, used = whole("pages", pages), self.pages - len(self.free_pages)
        if pages < used:
            raise ValueError(f"{NAME}: pages is {pages}, {used} are in use; must be as many or more: free a sequence first")
        self.defragment()
        self.k, self.v = (torch.cat([x[:, :used], x.new_empty(x.shape[0], pages - used, *x.shape[2:])], 1) for x in (self.k, self.v))
        self.users = self.users[:used] + [0] * (pages - used)
        self.free_pages = list(range(used, pages))

    # -- Pages

    def counted(self, tokens, least=0):
        """New tokens of each sequence, as whole numbers."""
        if not isinstance(tokens, Mapping):
            raise TypeError(f"{NAME}: tokens are of type {type(tokens).__name__}, must be a dict: sequences, and the new tokens of each")
        tokens = {sequence: whole(f"tokens of sequence {sequence}", count) for sequence, count in tokens.items()}
        for sequence, count in tokens.items():
            if sequence not in self.tables:
                there = ", ".join(map(str, self.tables)) or "none"
                raise ValueError(f"{NAME}: there is no sequence {sequence}; there are: {there}. allocate() makes one")
            if count < least:
                raise ValueError(f"{NAME}: {count} new tokens of sequence {sequence}, must be {least} or more")
        return tokens

    def missing(self, tokens):
        """The pages to take for new tokens: a shared page is copied for each that writes it, but for the last one."""
        pages, left = 0, {}
        for sequence, count in tokens.items():
            table, length = self.tables[sequence], self.lengths[sequence]
            pages += max(-(-(length + count) // self.page_size) - len(table), 0)
            for page in table[length // self.page_size :][: min(count, 1)]:
                if self.users[page] - left.get(page, 0) > 1:
                    pages, left[page] = pages + 1, left.get(page, 0) + 1
        return pages

    def take(self):
        page = self.free_pages.pop()
        self.users[page] = 1
        self.most = max(self.most, self.pages - len(self.free_pages))
        return page

    def leave(self, pages):
        for page in pages:
            self.users[page] -= 1
            if not self.users[page]:
                self.free_pages.append(page)
