"""A function without inputs: out= says the result's sizes, dtype and place."""

import math

import numpy as np
import pytest

import rooftile

pytestmark = pytest.mark.skipif(not hasattr(rooftile, "color_pattern"), reason="a build without the op pattern")


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8])
def test_out_receives_the_colours(dtype, device):
    y = np.zeros((7, 40, 4), dtype)
    assert rooftile.color_pattern(out=y, t=2.5, device=device) is y
    i, j = np.arange(7)[:, None], np.arange(40)[None, :]
    for k, angle in enumerate((0.01 * j + 2.5, 0.01 * i + 0.7 * 2.5, 0.01 * (i + j) + 1.3 * 2.5)):
        expected = np.broadcast_to(0.5 + 0.5 * np.sin(angle), (7, 40))
        most, within = (255, 0.5001) if dtype == np.uint8 else (1, 1e-3 if dtype == np.float16 else 3e-7)
        np.testing.assert_allclose(y[..., k].astype(np.float64), most * expected, rtol=0, atol=within)
    assert (y[..., 3] == (255 if dtype == np.uint8 else 1)).all()


def test_a_time_is_a_double():
    y = np.zeros((1, 1, 4), np.float32)
    rooftile.color_pattern(out=y, t=1795000000.75)
    assert abs(y[0, 0, 0] - (0.5 + 0.5 * math.sin(1795000000.75))) < 3e-7


def test_without_an_array_nothing_says_the_size():
    with pytest.raises(ValueError, match="size H of y does not follow from the inputs; pass y"):
        rooftile.color_pattern(t=1)
    with pytest.raises(ValueError, match="t is 1e"):
        rooftile.color_pattern(out=np.zeros((1, 1, 4), np.float32), t=1e16)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_operators_with_gradients_refuse_it(framework):
    pytest.importorskip(framework)
    module = pytest.importorskip(f"rooftile.{framework}")
    with pytest.raises(TypeError, match=r"takes no array.*call rooftile\.color_pattern\(out=array\)"):
        module.color_pattern(t=1)


def test_a_tensor_of_pytorch():
    torch = pytest.importorskip("torch")
    y = torch.zeros(3, 5, 4, dtype=torch.bfloat16)
    assert rooftile.color_pattern(out=y, t=1) is y
    assert abs(float(y[0, 0, 0]) - (0.5 + 0.5 * math.sin(1))) < 4e-3
