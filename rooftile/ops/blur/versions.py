"""Blurs in three languages: rooftile/ops/languages.py says how these functions are found, run and judged.

Whole numbers throughout, so that every machine rounds alike. Borders: 0 replicate, 1 reflect_101, 2 zero.
"""

import math

from languages import np, torch, trap


def border_pixel(border, size, i):
    """Where position i of a line leads; None: 0 stands there."""
    if 0 <= i < size:
        return i
    if border == 2:
        return None
    if border == 0:
        return 0 if i < 0 else size - 1
    period = max(1, 2 * (size - 1))
    i = abs(i) % period
    return i if i < size else period - i


def reached(border, size, reach):
    """The pixels of a line with `reach` positions before and behind it; `size` stands for a 0."""
    line = (border_pixel(int(border), size, i) for i in range(-reach, size + reach))
    return [size if i is None else i for i in line]


# [box_blur_plain]
def running_sums(line, radius):
    """Of each 2·radius + 1 neighbours: one enters, one leaves."""
    total = sum(line[:2 * radius + 1])
    sums = [total]
    for i in range(len(line) - 2 * radius - 1):
        total += line[i + 2 * radius + 1] - line[i]
        sums.append(total)
    return sums


def box_blur_plain(x, radius=1, border=0):
    r = int(radius)
    n = (2 * r + 1) ** 2
    pictures = []
    for picture in x:
        height, width = len(picture), len(picture[0]) if picture else 0
        channels = len(picture[0][0]) if width else 0
        y = [[[0] * channels for _ in range(width)] for _ in range(height)]
        rows, columns = reached(border, height, r), reached(border, width, r)
        for c in range(channels):
            across = [running_sums([([p[c] for p in row] + [0])[j] for j in columns], r) for row in picture]
            across.append([0] * width)
            for j in range(width):
                for i, total in enumerate(running_sums([across[k][j] for k in rows], r)):
                    y[i][j][c] = (total + n // 2) // n
        pictures.append(y)
    return pictures
# [/box_blur_plain]


# [box_blur_numpy]
def box_blur_numpy(x, radius=1, border=0):
    """A window's sum is a difference of two prefix sums."""
    r = int(radius)
    n = (2 * r + 1) ** 2
    sums = x.astype(np.int64)
    for axis in (-3, -2):
        size = sums.shape[axis]
        edge = np.zeros_like(np.take(sums, [0] if size else [], axis=axis))
        padded = np.take(np.concatenate([sums, edge], axis=axis), reached(border, size, r), axis=axis)
        prefix = np.cumsum(np.concatenate([edge, padded], axis=axis), axis=axis)
        sums = np.take(prefix, range(2 * r + 1, 2 * r + 1 + size), axis=axis) - np.take(prefix, range(size), axis=axis)
    return ((sums + n // 2) // n).astype(np.uint8)
# [/box_blur_numpy]


# [box_blur_torch]
def box_blur_torch(x, radius=1, border=0):
    r = int(radius)
    n = (2 * r + 1) ** 2
    sums = x.long()
    for axis in (x.dim() - 3, x.dim() - 2):
        size = sums.shape[axis]
        zero = torch.zeros_like(sums.narrow(axis, 0, min(size, 1)))
        line = torch.tensor(reached(border, size, r), dtype=torch.long, device=x.device)
        padded = torch.cat([sums, zero], axis).index_select(axis, line)
        prefix = torch.cat([zero, padded], axis).cumsum(axis)
        sums = prefix.narrow(axis, 2 * r + 1, size) - prefix.narrow(axis, 0, size)
    return ((sums + n // 2) // n).to(torch.uint8)
# [/box_blur_torch]


# [box_blur_torch_rounds_down]
@trap("a mean cut instead of rounded: half a step too dark")
def box_blur_torch_rounds_down(x, radius=1, border=0):
    n = (2 * int(radius) + 1) ** 2
    return (box_blur_torch(x, radius, border).long() * n // (n + 1)).to(torch.uint8)
# [/box_blur_torch_rounds_down]


def gaussian_weights(sigma):
    """Whole numbers of sum 2^bits, from the middle outwards."""
    radius, bits = int(4 * sigma + 0.5), 16 if sigma < 8 else 19
    part = [math.exp(-0.5 * k * k / (sigma * sigma)) for k in range(radius + 1)]
    total = 1
    for k in range(radius, 0, -1):
        total += 2 * part[k]
    weights = [int(p / total * 2**bits + 0.5) for p in part]
    weights[0] = 2**bits - 2 * sum(weights[1:])
    return weights, bits


# [gaussian_blur_numpy]
def gaussian_blur_numpy(x, sigma=1, border=0):
    """Down the columns to 12 bits, 4 of them behind the point; then along the rows."""
    weights, bits = gaussian_weights(sigma)
    r = len(weights) - 1
    values = x.astype(np.int64)
    for axis, shift in ((-3, bits - 4), (-2, bits + 4)):
        size = values.shape[axis]
        edge = np.zeros_like(np.take(values, [0] if size else [], axis=axis))
        padded = np.take(np.concatenate([values, edge], axis=axis), reached(border, size, r), axis=axis)
        total = np.full_like(values, 1 << (shift - 1))
        for k in range(-r, r + 1):
            total += weights[abs(k)] * np.take(padded, range(r + k, r + k + size), axis=axis)
        values = total >> shift
    return values.astype(np.uint8)
# [/gaussian_blur_numpy]


# [gaussian_blur_torch]
def gaussian_blur_torch(x, sigma=1, border=0):
    weights, bits = gaussian_weights(sigma)
    r = len(weights) - 1
    values = x.long()
    for axis, shift in ((x.dim() - 3, bits - 4), (x.dim() - 2, bits + 4)):
        size = values.shape[axis]
        zero = torch.zeros_like(values.narrow(axis, 0, min(size, 1)))
        line = torch.tensor(reached(border, size, r), dtype=torch.long, device=x.device)
        padded = torch.cat([values, zero], axis).index_select(axis, line)
        total = torch.full_like(values, 1 << (shift - 1))
        for k in range(-r, r + 1):
            total += weights[abs(k)] * padded.narrow(axis, r + k, size)
        values = total >> shift
    return values.to(torch.uint8)
# [/gaussian_blur_torch]


# [gaussian_blur_plain]
def gaussian_blur_plain(x, sigma=1, border=0):
    weights, bits = gaussian_weights(sigma)
    r = len(weights) - 1

    def weighed(line, shift):
        return [((1 << (shift - 1)) + sum(weights[abs(k)] * line[i + r + k] for k in range(-r, r + 1))) >> shift
                for i in range(len(line) - 2 * r)]  # fmt: skip

    pictures = []
    for picture in x:
        height, width = len(picture), len(picture[0]) if picture else 0
        channels = len(picture[0][0]) if width else 0
        y = [[[0] * channels for _ in range(width)] for _ in range(height)]
        rows, columns = reached(border, height, r), reached(border, width, r)
        for c in range(channels if height else 0):
            down = [weighed([([row[j][c] for row in picture] + [0])[i] for i in rows], bits - 4) for j in range(width)]
            down.append([0] * height)
            for i in range(height):
                for j, value in enumerate(weighed([down[k][i] for k in columns], bits + 4)):
                    y[i][j][c] = value
        pictures.append(y)
    return pictures
# [/gaussian_blur_plain]
