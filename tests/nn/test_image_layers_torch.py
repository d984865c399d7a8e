"""Layers of signals, images and volumes against PyTorch: outputs, gradients, state and reprs, from the same numbers."""

import re

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch
SPACE = {1: (7,), 2: (5, 6), 3: (4, 5, 4)}
ROWS = [  # name, arguments, channels of the input
    ("Conv{}d", lambda n: dict(in_channels=4, out_channels=6, kernel_size=3, stride=2, padding=1, groups=2)),
    ("Conv{}d", lambda n: dict(in_channels=4, out_channels=2, kernel_size=(2, 3, 2)[:n], padding="same", dilation=2)),
    ("Conv{}d", lambda n: dict(in_channels=4, out_channels=2, kernel_size=2, padding="same", padding_mode="circular")),
    ("Conv{}d", lambda n: dict(in_channels=4, out_channels=2, kernel_size=3, padding=1, padding_mode="reflect",
                               bias=False)),
    ("Conv{}d", lambda n: dict(in_channels=4, out_channels=2, kernel_size=3, padding=2, padding_mode="replicate")),
    ("ConvTranspose{}d", lambda n: dict(in_channels=4, out_channels=2, kernel_size=3, stride=2, padding=1,
                                        output_padding=1)),
    ("ConvTranspose{}d", lambda n: dict(in_channels=4, out_channels=6, kernel_size=(3, 2, 1)[:n], groups=2)),
    ("ConvTranspose{}d", lambda n: dict(in_channels=4, out_channels=2, kernel_size=2, dilation=3, output_padding=2)),
    ("ConstantPad{}d", lambda n: dict(padding=1, value=2.0)),
    ("ZeroPad{}d", lambda n: dict(padding=(1, 0, 2, -1, 0, 1)[:2 * n])),
    ("InstanceNorm{}d", lambda n: dict(num_features=4)),
    ("MaxPool{}d", lambda n: dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
    ("MaxPool{}d", lambda n: dict(kernel_size=2, dilation=2, stride=1)),
    ("AvgPool{}d", lambda n: dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
    ("AvgPool{}d", lambda n: dict(kernel_size=2, padding=1, count_include_pad=False)),
    ("LPPool{}d", lambda n: dict(norm_type=2, kernel_size=2)),
    ("LPPool{}d", lambda n: dict(norm_type=float("inf"), kernel_size=2, stride=1)),
    ("AdaptiveAvgPool{}d", lambda n: dict(output_size=3)),
    ("AdaptiveMaxPool{}d", lambda n: dict(output_size=(3, 4, 6)[:n])),
    ("InstanceNorm{}d", lambda n: dict(num_features=4, affine=True, track_running_stats=True, momentum=0.3)),
    *[(f"{kind}Pad{{}}d", lambda n: dict(padding=(1, 2, 0, 1, 2, 0)[:2 * n]))
      for kind in ("Reflection", "Replication", "Circular")],
]


@pytest.mark.parametrize("n", SPACE)
@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize(("name", "options"), ROWS, ids=lambda p: p if isinstance(p, str) else "")
@pytest.mark.filterwarnings("ignore")
def test_as_in_pytorch(name, options, n, batch):
    ours, theirs = [getattr(lib, name.format(n))(**options(n)).double() for lib in (nn, torch.nn)]
    assert repr(ours) == (re.sub(", bias=(True|False)", "", repr(theirs)) if "Norm" in name else repr(theirs))
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    numbers = np.random.default_rng(0).standard_normal((*[2] * batch, 4, *SPACE[n]))
    x, y = flow.tensor(numbers, requires_grad=True), torch.tensor(numbers, requires_grad=True)
    for out, inputs in ((ours(x), x), (theirs(y), y)):
        (out * out).sum().backward()
    np.testing.assert_allclose(ours(x).detach().numpy(), theirs(y).detach().numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-8, atol=1e-10)
    for (key, mine), (other_key, other) in zip(ours.state_dict().items(), theirs.state_dict().items(), strict=True):
        assert key == other_key
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-9, err_msg=key)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-8, atol=1e-10)
