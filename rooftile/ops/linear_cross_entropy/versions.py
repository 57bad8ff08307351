"""Linear cross entropy in three languages: rooftile/ops/languages.py says how these functions are found, run and judged.

Each gives the reduced loss, each row's loss, and each row's log-sum-exp; none has the logits of more rows than a chunk's.
"""

import math

from languages import np, torch, trap


# [linear_cross_entropy_plain]
def linear_cross_entropy_plain(hidden, weight, target, bias=None, class_weight=None, reduction=0, ignore_index=-100,
                               label_smoothing=0.0, z_loss=0.0, chunk=0):
    """A chunk is one row: its logits, then its loss. What is kept of them are two numbers and two sums."""
    classes = len(weight)
    w = class_weight or [1.0] * classes
    losses, lses, divisor = [], [], 0.0
    for row, y in zip(hidden, target):
        logits = [sum(a * b for a, b in zip(row, of_class)) + (bias[c] if bias else 0.0) for c, of_class in enumerate(weight)]
        most = max(logits, default=-math.inf)
        if not all(math.isfinite(x) for x in logits):
            most, total = math.nan, math.nan
        else:
            total = sum(math.exp(x - most) for x in logits)
        lse = most + math.log(total) if total else -math.inf
        lses.append(lse)
        if y == ignore_index:
            losses.append(0.0)
            continue
        if not 0 <= y < classes:
            losses.append(math.nan)
            continue
        loss = (1 - label_smoothing) * w[int(y)] * (lse - logits[int(y)])
        loss += label_smoothing / classes * sum(of_class * (lse - x) for of_class, x in zip(w, logits)) if label_smoothing else 0.0
        losses.append(loss + (z_loss * lse * lse if z_loss else 0.0))
        divisor += w[int(y)]
    loss = sum(losses)
    if reduction == 0:
        loss = loss / divisor if divisor else math.nan
    return loss, losses, lses
# [/linear_cross_entropy_plain]


def rows_of_chunk(x, y, w, weight, bias, ignore_index, label_smoothing, z_loss):
    """In f64: losses, log-sum-exps and what each row adds to the mean's divisor."""
    classes = len(weight)
    logits = x @ weight.T + (0.0 if bias is None else bias)
    most = logits.max(-1, initial=-np.inf)
    with np.errstate(all="ignore"):
        lse = most + np.log(np.exp(logits - most[:, None]).sum(-1))
        known = (y >= 0) & (y < classes)
        safe = np.where(known, y, 0).astype(np.int64)
        own, picked = (w[safe], np.take_along_axis(logits, safe[:, None], 1)[:, 0]) if classes else (lse, lse)
        losses = (1 - label_smoothing) * own * (lse - picked)
        if label_smoothing:
            losses = losses + label_smoothing / classes * (w.sum() * lse - logits @ w)
        if z_loss:
            losses = losses + z_loss * lse**2
    ignored = y == ignore_index
    return np.where(ignored, 0.0, np.where(known, losses, np.nan)), lse, np.where(known & ~ignored, own, 0.0)


# [linear_cross_entropy_numpy]
def linear_cross_entropy_numpy(hidden, weight, target, bias=None, class_weight=None, reduction=0, ignore_index=-100,
                               label_smoothing=0.0, z_loss=0.0, chunk=0):
    x, y = hidden.astype(np.float64).reshape(target.size, hidden.shape[-1]), target.reshape(-1)
    w = np.ones(len(weight)) if class_weight is None else class_weight.astype(np.float64)
    matrix, step = weight.astype(np.float64), int(chunk) or 512
    losses, lse, divisor = np.zeros(y.size), np.zeros(y.size), 0.0
    for first in range(0, y.size, step):
        rows = slice(first, first + step)
        losses[rows], lse[rows], own = rows_of_chunk(x[rows], y[rows], w, matrix, bias, ignore_index, label_smoothing, z_loss)
        divisor += own.sum()
    with np.errstate(all="ignore"):
        loss = losses.sum() / (divisor if reduction == 0 else 1.0)
    return (np.asarray([loss], np.float32), losses.reshape(target.shape).astype(np.float32),
            lse.reshape(target.shape).astype(np.float32))
# [/linear_cross_entropy_numpy]


# [linear_cross_entropy_torch]
def linear_cross_entropy_torch(hidden, weight, target, reduction=0, ignore_index=-100, label_smoothing=0.0, chunk=0):
    x, y = hidden.reshape(target.numel(), hidden.shape[-1]), target.reshape(-1)
    losses, lse = x.new_empty(y.numel(), dtype=torch.float32), x.new_empty(y.numel(), dtype=torch.float32)
    known = (y >= 0) & (y < len(weight))
    for rows in torch.arange(y.numel()).split(int(chunk) or 512):
        logits = x[rows].float() @ weight.float().T
        its = torch.where(known[rows], y[rows], 0)  # PyTorch refuses a target that is no class
        lse[rows] = logits.logsumexp(-1)
        if logits.numel():
            losses[rows] = torch.nn.functional.cross_entropy(logits, its.long(), reduction="none", label_smoothing=label_smoothing)
    losses = torch.where(y == ignore_index, 0.0, torch.where(known, losses, torch.nan))
    counted = (known & (y != ignore_index)).sum()
    loss = losses.double().sum() / (1 if reduction else counted)
    return loss.float().reshape(1), losses.reshape(target.shape), lse.reshape(target.shape)
# [/linear_cross_entropy_torch]


# [linear_cross_entropy_torch_means]
@trap("the mean of the chunks' means, although the last chunk is shorter and rows are ignored in some")
def linear_cross_entropy_torch_means(hidden, weight, target, reduction=0, ignore_index=-100, chunk=0):
    x, y = hidden.reshape(target.numel(), hidden.shape[-1]), target.reshape(-1)
    losses, lse, means = torch.zeros(y.numel()), torch.zeros(y.numel()), []
    counted = (y >= 0) & (y < len(weight)) & (y != ignore_index)
    for rows in torch.arange(y.numel()).split(int(chunk) or 512):
        logits = x[rows].float() @ weight.float().T
        lse[rows] = logits.logsumexp(-1)
        its = torch.where(counted[rows], y[rows], 0).long()
        if logits.numel():
            losses[rows] = torch.nn.functional.cross_entropy(logits, its, reduction="none") * counted[rows]
        means.append(losses[rows].sum() / counted[rows].sum())
    loss = losses.sum() if reduction else torch.stack(means).mean()
    return loss.reshape(1), losses.reshape(target.shape), lse.reshape(target.shape)
# [/linear_cross_entropy_torch_means]


# [linear_cross_entropy_backward_plain]
def linear_cross_entropy_backward_plain(hidden, weight, target, lse, bias=None, class_weight=None, dlosses=None, dloss=None,
                                        reduction=0, ignore_index=-100, label_smoothing=0.0, z_loss=0.0, chunk=0):
    classes, channels = len(weight), len(hidden[0]) if hidden else len(weight[0]) if weight else 0
    w = class_weight or [1.0] * classes
    shared = dloss[0] if dloss else 0.0 if dlosses else 1.0
    if shared and reduction == 0:
        divisor = sum(w[int(y)] for y in target if 0 <= y < classes and y != ignore_index)
        shared = shared / divisor if divisor else math.nan
    dweight, dbias, dhidden = [[0.0] * channels for _ in weight], [0.0] * classes, []
    spread = label_smoothing / classes if classes else 0.0
    for i, (row, y, of_row) in enumerate(zip(hidden, target, lse)):
        drow = [0.0] * channels
        g = (shared + (dlosses[i] if dlosses else 0.0)) if 0 <= y < classes else math.nan
        hit = (1 - label_smoothing) * w[int(y)] if 0 <= y < classes else 0.0
        factor = hit + spread * sum(w) + 2 * z_loss * of_row
        for c, of_class in enumerate(weight):
            x = sum(a * b for a, b in zip(row, of_class)) + (bias[c] if bias else 0.0)
            p = math.exp(min(x - of_row, 0.0)) if math.isfinite(x) else math.nan
            dx = 0.0 if y == ignore_index else g * (factor * p - (hit if c == y else 0.0) - spread * w[c])
            for d in range(channels):
                drow[d] += dx * of_class[d]
                dweight[c][d] += dx * row[d]
            dbias[c] += dx
        dhidden.append(drow)
    return dhidden, dweight, dbias
# [/linear_cross_entropy_backward_plain]
