"""Lesson 11: add: in plain Python, in PyTorch and in Triton. Each takes x and y and returns z = x + y.

Lesson 11 reads them (docs/course/11_triton.md). The file can be imported where PyTorch and Triton are missing; what needs
them is then not there. On a CPU, Triton runs under TRITON_INTERPRET=1, set before this file is imported.
"""

try:
    import torch
except ImportError:
    torch = None
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


# [plain]
def add_plain(x, y):
    """One element after another; x and y are lists of the same length."""
    z = [0.0] * len(x)
    for i in range(len(x)):
        z[i] = x[i] + y[i]
    return z
# [/plain]


# [blocks]
def add_blocks(x, y, block=4):
    """The same, a block of elements at a time: what each Triton program does, one program after another."""
    n = len(x)
    z = [0.0] * n
    for program in range((n + block - 1) // block):
        offsets = [program * block + i for i in range(block)]
        mask = [offset < n for offset in offsets]
        a = [x[offset] if live else None for offset, live in zip(offsets, mask)]
        b = [y[offset] if live else None for offset, live in zip(offsets, mask)]
        for offset, live, left, right in zip(offsets, mask, a, b):
            if live:
                z[offset] = left + right
    return z
# [/blocks]


if torch is not None:
    # [torch]
    def add_torch(x, y):
        """What one would write: PyTorch holds the kernel."""
        return x + y
    # [/torch]


if torch is not None and triton is not None:
    # [triton]
    @triton.jit
    def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
        program = tl.program_id(0).to(tl.int64)
        offsets = program * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        a = tl.load(x + offsets, mask=mask)
        b = tl.load(y + offsets, mask=mask)
        tl.store(z + offsets, a + b, mask=mask)
    # [/triton]

    # [launch]
    def add_triton(x, y):
        """x and y lie side by side, on one device."""
        z = torch.empty_like(x)
        n, block = x.numel(), 1024
        if n > 0:
            add_kernel[(triton.cdiv(n, block),)](x, y, z, n, BLOCK=block)
        return z
    # [/launch]
