"""Cross entropy in four languages: rooftile/ops/languages.py says how these functions are found, run and judged.

Each gives the reduced loss, each row's loss, and each row's log-sum-exp.
"""

import math

from languages import np, takes, tl, torch, trap, triton


# [cross_entropy_plain]
def cross_entropy_plain(logits, target, weight=None, reduction=0, ignore_index=-100, label_smoothing=0.0, z_loss=0.0):
    """One pass over a row: the sum so far is rescaled where a larger logit comes."""
    losses, lses, divisor = [], [], 0.0
    for row, y in zip(logits, target):
        most, total, spread = -math.inf, 0.0, 0.0
        for c, x in enumerate(row):
            if x > most:
                total, most = total * math.exp(most - x), x
            total += math.exp(x - most) if x > -math.inf or math.isnan(x) else 0.0
            spread += x * (weight[c] if weight else 1.0) if label_smoothing else 0.0
        lse = most + math.log(total) if total != 0 else -math.inf
        lses.append(lse)
        if y == ignore_index:
            losses.append(0.0)
            continue
        if not 0 <= y < len(row):
            losses.append(math.nan)
            continue
        own = weight[int(y)] if weight else 1.0
        loss = (1 - label_smoothing) * own * (most - row[int(y)] + (math.log(total) if total else -math.inf))
        if label_smoothing:
            loss += label_smoothing / len(row) * ((sum(weight) if weight else len(row)) * lse - spread)
        loss += z_loss * lse * lse if z_loss else 0.0
        losses.append(loss if abs(loss) < 3.4028236e38 else loss * math.inf)  # as a float of 32 bits
        divisor += own
    loss = sum(losses)
    if reduction == 0:
        loss = loss / divisor if divisor else math.nan
    return loss, losses, lses
# [/cross_entropy_plain]


# [cross_entropy_numpy]
def cross_entropy_numpy(logits, target, weight=None, reduction=0, ignore_index=-100, label_smoothing=0.0, z_loss=0.0):
    x, classes = logits.astype(np.float64), logits.shape[-1]
    with np.errstate(all="ignore"):
        most = x.max(-1, keepdims=True, initial=-np.inf)
        total = np.exp(x - np.where(most == -np.inf, 0, most)).sum(-1)
        lse = np.where(most[..., 0] == -np.inf, 0, most[..., 0]) + np.log(total)
        known = (target >= 0) & (target < classes)
        safe = np.where(known, target, 0).astype(np.int64)
        w = np.ones(classes) if weight is None else weight.astype(np.float64)
        picked = np.take_along_axis(x, safe[..., None], -1)[..., 0] if classes else np.zeros(target.shape)
        own = w[safe] if classes else np.zeros(target.shape)
        losses = (1 - label_smoothing) * own * (most[..., 0] - picked + np.log(total))
        if label_smoothing:
            losses = losses + label_smoothing / classes * (w.sum() * lse - (x * w).sum(-1))
        if z_loss:
            losses = losses + z_loss * lse**2
        ignored = target == ignore_index
        losses = np.where(ignored, 0.0, np.where(known, losses, np.nan)).astype(np.float32).astype(np.float64)
        loss = losses.sum()
        if reduction == 0:
            loss = loss / np.where(known & ~ignored, own, 0.0).sum()
    return np.asarray(loss, np.float32), losses.astype(np.float32), lse.astype(np.float32)
# [/cross_entropy_numpy]


# [cross_entropy_numpy_chunks]
@trap("each chunk's log-sum-exp is taken for the row's: the chunks are never merged")
def cross_entropy_numpy_chunks(logits, target, reduction=0, ignore_index=-100):
    x, classes = logits.astype(np.float64).reshape(-1, logits.shape[-1]), logits.shape[-1]
    y, chunk = target.reshape(-1), 64
    lse = np.zeros(len(x))
    with np.errstate(all="ignore"):
        for first in range(0, classes, chunk):
            part = x[:, first : first + chunk]
            most = part.max(-1)
            lse = most + np.log(np.exp(part - most[:, None]).sum(-1))  # of this chunk alone
        losses = np.array([0.0 if t == ignore_index or not 0 <= t < classes else l - row[t] for l, row, t in zip(lse, x, y)])
        loss = losses.sum() / (1 if reduction else (y != ignore_index).sum())
    return (np.asarray(loss, np.float32), losses.reshape(target.shape).astype(np.float32),
            lse.reshape(target.shape).astype(np.float32))
# [/cross_entropy_numpy_chunks]



# [cross_entropy_triton]
@triton.jit
def cross_entropy_kernel(logits, target, losses, lses, columns, ignored, CHUNK: tl.constexpr):
    """One program, one row: chunk by chunk, what was summed before is rescaled to the larger maximum."""
    row = tl.program_id(0).to(tl.int64)
    most, total = -float("inf"), 0.0
    for first in range(0, columns, CHUNK):
        column = first + tl.arange(0, CHUNK)
        x = tl.load(logits + row * columns + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(most, tl.max(x, 0))
        shift = tl.where(larger == -float("inf"), 0.0, larger)
        total = total * tl.exp(most - shift) + tl.sum(tl.exp(x - shift), 0)
        most = larger
    shift = tl.where(most == -float("inf"), 0.0, most)
    y = tl.load(target + row)
    known = (y >= 0) & (y < columns)
    picked = tl.load(logits + row * columns + tl.where(known, y, 0), mask=known, other=0.0).to(tl.float32)
    loss = tl.where(known, shift - picked + tl.log(total), float("nan"))
    tl.store(losses + row, tl.where(y == ignored, 0.0, loss))
    tl.store(lses + row, shift + tl.log(total))


def cross_entropy_triton(logits, target, reduction=0, ignore_index=-100):
    rows, columns = logits.shape
    losses, lse = logits.new_empty(rows, dtype=torch.float32), logits.new_empty(rows, dtype=torch.float32)
    if rows > 0:
        cross_entropy_kernel[(rows,)](logits, target, losses, lse, columns, int(ignore_index), CHUNK=1024)
    counted = (target != int(ignore_index)) & (target >= 0) & (target < columns)
    loss = losses.double().sum() / (1 if reduction else counted.sum())
    return loss.float(), losses, lse
# [/cross_entropy_triton]


# [cross_entropy_backward_plain]
def cross_entropy_backward_plain(logits, target, lse, weight=None, dlosses=None, dloss=None, reduction=0, ignore_index=-100,
                                 label_smoothing=0.0, z_loss=0.0):
    classes = len(logits[0]) if logits else 0
    w = weight or [1.0] * classes
    known = [0 <= y < classes for y in target]
    shared = dloss[0] if dloss else 0.0 if dlosses else 1.0
    if shared and reduction == 0:
        divisor = sum(w[int(y)] for y, ok in zip(target, known) if ok and y != ignore_index)
        shared = shared / divisor if divisor else math.nan
    dlogits, spread, total = [], label_smoothing / classes if classes else 0.0, sum(w)
    for i, (row, y, of_row) in enumerate(zip(logits, target, lse)):
        if y == ignore_index:
            dlogits.append([0.0] * classes)
            continue
        g = (shared + (dlosses[i] if dlosses else 0.0)) if known[i] else math.nan
        hit = (1 - label_smoothing) * w[int(y)] if known[i] else 0.0
        factor = hit + spread * total + 2 * z_loss * of_row
        dlogits.append([g * (factor * math.exp(x - of_row) - (hit if c == y else 0.0) - spread * w[c])
                        for c, x in enumerate(row)])
    return dlogits
# [/cross_entropy_backward_plain]

