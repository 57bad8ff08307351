"""gemm_packed has the bits of gemm with the b that gemm_pack packed, and refuses other bytes."""

import numpy as np
import pytest

import rooftile

ml_dtypes = pytest.importorskip("ml_dtypes")

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int8]


def numbers(shape, dtype, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * (40 if dtype == np.int8 else 1)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=[np.dtype(d).name for d in DTYPES])
@pytest.mark.parametrize("m,k,n", [(1, 300, 70), (7, 64, 33), (20, 130, 96), (3, 0, 5)])
def test_bits_are_gemms(m, k, n, dtype):
    weight, x = numbers((n, k), dtype), numbers((2, m, k), dtype, 1)
    packed = rooftile.gemm_pack(weight.T)
    assert packed.shape == (64 + k * n,) and packed.dtype == dtype
    expected, y = (np.empty((2, m, n), np.int32 if dtype == np.int8 else dtype) for _ in range(2))
    rooftile.gemm(x, np.broadcast_to(weight.T, (2, k, n)), out=expected)
    rooftile.gemm_packed(x, packed, out=y)
    assert np.array_equal(y.view(np.uint8), expected.view(np.uint8))


def test_refusals_say_why():
    x, y = np.ones((3, 24), np.float32), np.empty((3, 40), np.float32)
    packed = rooftile.gemm_pack(np.ones((24, 40), np.float32))
    turned = rooftile.gemm_pack(np.ones((40, 24), np.float32))
    for wrong, words in ((packed[1:], "P is 1023, must be 1024"), (turned, "holds a b of 40x24 f32, this product's is 24x40 f32"),
                         (np.ones_like(packed), "does not begin with gemm_pack's header")):
        with pytest.raises(ValueError, match=words):
            rooftile.gemm_packed(x, wrong, out=y)
    with pytest.raises(ValueError, match="is for CPUs alone"):
        rooftile.gemm_pack(np.ones((24, 40), np.float32), device="emulated")
