"""MobileNetV2 against the same weights in PyTorch."""

import inspect

import numpy as np

import minflow as flow
from minflow.vision import models
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch


def twin(module):
    """The same layers in PyTorch, built from ours."""
    import torch.nn as tnn

    from minflow import nn

    if isinstance(module, nn.Conv2d):
        return tnn.Conv2d(module.in_channels, module.out_channels, module.kernel_size, module.stride, module.padding,
                          groups=module.groups, bias=False)
    if isinstance(module, nn.BatchNorm2d):
        return tnn.BatchNorm2d(module.num_features)
    if isinstance(module, nn.Linear):
        return tnn.Linear(module.in_features, module.out_features)
    if isinstance(module, nn.Dropout):
        return tnn.Dropout(module.p)
    if isinstance(module, nn.ReLU6):
        return tnn.ReLU6()
    if isinstance(module, inspect.unwrap(models.mobilenet_v2).__globals__["InvertedResidual"]):

        class Block(tnn.Module):
            def __init__(self):
                super().__init__()
                self.conv = twin(module.conv)

            def forward(self, x):
                return x + self.conv(x) if module.use_res_connect else self.conv(x)

        return Block()
    return tnn.Sequential(*map(twin, module))


def test_same_logits():
    flow.manual_seed(0)
    ours = models.mobilenet_v2(num_classes=10).eval()
    theirs = torch.nn.Module()
    theirs.features, theirs.classifier = twin(ours.features), twin(ours.classifier)
    theirs.load_state_dict(
        {name: torch.from_numpy(np.array(t.numpy())) for name, t in ours.state_dict().items()}, strict=True
    )
    theirs.eval()
    x = np.random.default_rng(0).standard_normal((2, 3, 64, 64)).astype("float32")
    with torch.no_grad(), flow.no_grad():
        expected = theirs.classifier(theirs.features(torch.from_numpy(x)).mean((2, 3))).numpy()
        assert np.allclose(ours(flow.from_numpy(x)).numpy(), expected, rtol=1e-4, atol=1e-5)
