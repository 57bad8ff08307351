"""A row of a product has the same bits alone and among any number of rows: on a CPU, and on a GPU where there is one."""

import pytest

import rooftile

torch = pytest.importorskip("torch")

ROWS = [1, 2, 3, 7, 16, 64, 100, 128, 1000, 8192]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8]
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def numbers(shape, dtype, device, seed):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return (x * (40 if dtype == torch.int8 else 1)).to(dtype).to(device)


def product(a, b):
    y = a.new_empty(a.shape[0], b.shape[1], dtype=torch.int32 if a.dtype == torch.int8 else a.dtype)
    return rooftile.gemm(a, b, out=y)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", [130, 136])  # rows of whole 16-byte words, as TMA wants them, and others
@pytest.mark.parametrize("a_turned, b_turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).split(".")[1])
def test_a_rows_bits_are_its_own(dtype, a_turned, b_turned, k, device):
    n = 96
    b = numbers((n, k), dtype, device, 1).T if b_turned else numbers((k, n), dtype, device, 1)
    whole = numbers((ROWS[-1], k), dtype, device, 2)
    expected = product(whole, b)
    for m in ROWS[:-1]:
        a = whole[-m:]  # the last ones: their places change, too
        a = a.T.contiguous().T if a_turned else a
        assert torch.equal(product(a, b), expected[-m:]), f"{m} rows"


@pytest.mark.parametrize("b_turned", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_so_are_those_of_few_rows_times_a_b_from_memory(dtype, b_turned):
    k, n = 4100, 4200  # 69 MB of f32: more than a cache's share of a call
    b = numbers((n, k), dtype, "cpu", 1).T if b_turned else numbers((k, n), dtype, "cpu", 1)
    whole = numbers((32, k), dtype, "cpu", 2)
    expected = product(whole, b)
    for m in (1, 2, 4, 5, 16, 17):
        assert torch.equal(product(whole[-m:], b), expected[-m:]), f"{m} rows"
