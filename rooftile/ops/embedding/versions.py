"""Embedding in four languages: rooftile/ops/languages.py says how these functions are found, run and judged.

The forward gives rows of the table; the backward the table's gradient, and the position table's.
"""

import math

from languages import np, takes, tl, torch, trap, triton


# [embedding_plain]
def embedding_plain(tokens, table, position_table=None):
    """Token by token; one that is none of the table's gives NaN."""
    if tokens and isinstance(tokens[0], list):
        return [embedding_plain(row, table, position_table) for row in tokens]
    width = len((table or position_table or [[]])[0])
    y = [table[int(t)] if 0 <= t < len(table) else [math.nan] * width for t in tokens]
    if position_table is None:
        return y
    return [[a + b for a, b in zip(row, place)] for row, place in zip(y, position_table)]
# [/embedding_plain]


# [embedding_numpy]
def embedding_numpy(tokens, table, position_table=None):
    known = (tokens >= 0) & (tokens < len(table))
    y = np.full((*tokens.shape, table.shape[1]), np.nan, np.float64)
    y[known] = table[tokens[known]]
    with np.errstate(all="ignore"):
        return (y if position_table is None else y + position_table.astype(np.float64)).astype(table.dtype)
# [/embedding_numpy]


# [embedding_torch]
def embedding_torch(tokens, table, position_table=None):
    """PyTorch's refuses a token that is none of the table's, and on a GPU ends the process."""
    known = (tokens >= 0) & (tokens < len(table))
    if len(table):
        y = torch.nn.functional.embedding(tokens.where(known, 0), table).float()
    else:
        y = table.new_empty(*tokens.shape, table.shape[1]).float()
    y = y.where(known[..., None], math.nan)
    return (y if position_table is None else y + position_table.float()).to(table.dtype)
# [/embedding_torch]


# [embedding_triton]
@triton.jit
def embedding_kernel(tokens, table, y, rows, columns, BLOCK: tl.constexpr):
    """One program, one token."""
    i = tl.program_id(0).to(tl.int64)
    token = tl.load(tokens + i).to(tl.int64)
    known = (token >= 0) & (token < rows)
    for first in range(0, columns, BLOCK):
        column = first + tl.arange(0, BLOCK)
        x = tl.load(table + tl.where(known, token, 0) * columns + column, mask=column < columns)
        tl.store(y + i * columns + column, tl.where(known, x, float("nan")), mask=column < columns)


def embedding_triton(tokens, table):
    y = table.new_full((*tokens.shape, table.shape[1]), math.nan)
    if y.numel() and len(table):
        embedding_kernel[(tokens.numel(),)](tokens, table, y, *table.shape, 1024)
    return y
# [/embedding_triton]


# [embedding_backward_plain]
def embedding_backward_plain(tokens, table, dy, padding_idx=-1):
    """Each row of dy is added to its token's row, and to its place's. A list without sequences says nothing of places."""
    width = len(table[0]) if table else 0
    dtable = [[0.0] * width for _ in table]
    places = [[0.0] * len(row) for row in dy[0]] if dy else None
    for sequence, rows in zip(tokens, dy):
        for place, (token, row) in enumerate(zip(sequence, rows)):
            places[place] = [a + b for a, b in zip(places[place], row)]
            if 0 <= token < len(table) and token != padding_idx:
                dtable[int(token)] = [a + b for a, b in zip(dtable[int(token)], row)]
    return dtable, places
# [/embedding_backward_plain]


# [embedding_backward_numpy]
def embedding_backward_numpy(tokens, table, dy, padding_idx=-1):
    t, g = tokens.reshape(-1), dy.reshape(tokens.size, dy.shape[-1]).astype(np.float64)
    takes_part = (t >= 0) & (t < len(table)) & (t != padding_idx)
    dtable = np.zeros(table.shape)
    with np.errstate(all="ignore"):
        np.add.at(dtable, t[takes_part], g[takes_part])  # one after the other, in ascending order
        places = dy.astype(np.float64).reshape(math.prod(dy.shape[:-2]), *dy.shape[-2:]).sum(0)
        return dtable.astype(dy.dtype), places.astype(dy.dtype)
# [/embedding_backward_numpy]


# [embedding_backward_numpy_assigned]
@takes(dtypes=("f32", "i64"))
@trap("dtable[tokens] += dy adds a token's last row alone: NumPy reads all before it writes")
def embedding_backward_numpy_assigned(tokens, table, dy, padding_idx=-1):
    t, g = tokens.reshape(-1), dy.reshape(tokens.size, dy.shape[-1])
    takes_part = (t >= 0) & (t < len(table)) & (t != padding_idx)
    dtable = np.zeros_like(table)
    dtable[t[takes_part]] += g[takes_part]
    return dtable, dy.reshape(math.prod(dy.shape[:-2]), *dy.shape[-2:]).sum(0)
# [/embedding_backward_numpy_assigned]
