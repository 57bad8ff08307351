"""conv2d against PyTorch's: values and gradients, each option, both layouts; the module."""

import numpy as np
import pytest

import rooftile

torch = pytest.importorskip("torch")
import rooftile.torch as rt  # noqa: E402

CASES = [  # x, w, stride, padding, dilation, groups
    ((2, 8, 12, 16), (10, 8, 3, 5), (2, 1), (4, 2), (3, 1), 1),
    ((2, 6, 9, 7), (4, 6, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((1, 6, 7, 8), (12, 2, 2, 3), (1, 2), (0, 1), (1, 2), 3),
    ((2, 5, 8, 9), (5, 1, 3, 3), (1, 1), (1, 1), (1, 1), 5),
]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("x, w, stride, padding, dilation, groups", CASES)
def test_values_and_gradients(x, w, stride, padding, dilation, groups, layout):
    x = torch.randn(x).to(memory_format=layout).requires_grad_()
    w, bias = torch.randn(w).to(memory_format=layout).requires_grad_(), torch.randn(w[0], requires_grad=True)
    ours = rt.conv2d(x, w, bias=bias, stride_h=stride[0], stride_w=stride[1], padding_h=padding[0], padding_w=padding[1],
                     dilation_h=dilation[0], dilation_w=dilation[1], groups=groups)
    wide = [t.detach().double().requires_grad_() for t in (x, w, bias)]
    theirs = torch.nn.functional.conv2d(*wide, stride, padding, dilation, groups)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-4)
    dy = torch.randn_like(ours)
    for got, expected in zip(torch.autograd.grad(ours, (x, w, bias), dy), torch.autograd.grad(theirs, wide, dy.double())):
        torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-4)


def test_only_what_needs_a_gradient():
    x, w = torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3, requires_grad=True)
    rt.conv2d(x, w).sum().backward()
    assert x.grad is None and w.grad.shape == w.shape


def test_ones_of_bf16():
    # PyTorch 163347: ones * ones was not 4 on a CPU.
    ones = torch.ones(1, 1, 2, 2, dtype=torch.bfloat16)
    assert rt.conv2d(ones, ones).item() == 4


def test_numpy():
    x, w = np.ones((1, 2, 4, 5), np.float32), np.ones((3, 2, 3, 3), np.float32)
    np.testing.assert_array_equal(rooftile.conv2d(x, w, activation="relu"), np.full((1, 3, 2, 3), 18))


def test_a_filter_larger_than_the_picture():
    with pytest.raises(ValueError, match="size P of y would be -1"):
        rooftile.conv2d(np.ones((1, 1, 2, 5), np.float32), np.ones((1, 1, 4, 3), np.float32))


def test_the_module():
    theirs = torch.nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), groups=2)
    ours = rt.nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), groups=2)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 4, 7, 8)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-5)
