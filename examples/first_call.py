"""The README's Python example; a test runs it where PyTorch is."""

# [first_call]
import numpy, torch
import rooftile, rooftile.torch

a = numpy.array([[1, 2, 3, 4]], numpy.float32)
print(rooftile.softmax(a).round(3))                          # [[0.032 0.087 0.237 0.644]]

x = torch.randn(8, 1024, requires_grad=True)
w = torch.nn.Parameter(torch.ones(1024))
y = rooftile.layer_norm(x, weight=w)                         # a torch.Tensor, on x's device, with gradients
y.square().sum().backward()

model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.LayerNorm(1024), torch.nn.GELU())
print(rooftile.torch.patch(model))                           # its LayerNorm and GELU run on rooftile's kernels
# [/first_call]
model(x).sum().backward()
