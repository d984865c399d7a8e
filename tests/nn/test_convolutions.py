"""1d and transposed convolutions, and padding: small sums by hand, sizes, and errors."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.nn import functional as F


def values(tensor):
    return tensor.detach().numpy().tolist()


def test_conv1d_by_hand():
    x, w = flow.tensor([[[1.0, 2.0, 4.0, 8.0]]]), flow.tensor([[[1.0, -1.0]]])
    assert values(F.conv1d(x, w)) == [[[-1.0, -2.0, -4.0]]]
    assert values(F.conv1d(x, w, flow.tensor([10.0]), stride=2, padding=1)) == [[[9.0, 8.0, 18.0]]]
    assert values(F.conv1d(x, w, dilation=2)) == [[[-3.0, -6.0]]]
    assert values(F.conv1d(x, w, padding="same")) == [[[-1.0, -2.0, -4.0, 8.0]]]
    assert F.conv1d(x[0], w).shape == (1, 3)


def test_output_size_sets_output_padding():
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    x = flow.zeros(1, 2, 4, 4)
    assert layer(x).shape == (1, 3, 7, 7)
    assert layer(x, output_size=(8, 7)).shape == (1, 3, 8, 7)
    assert layer(x, (1, 3, 7, 8)).shape == (1, 3, 7, 8)


def test_conv_transpose1d_shapes_and_initialization():
    layer = nn.ConvTranspose1d(4, 6, 5, groups=2)
    assert {k: tuple(v.shape) for k, v in layer.state_dict().items()} == {"weight": (4, 3, 5), "bias": (6,)}
    bound = 1 / np.sqrt(3 * 5)
    assert max(layer.weight.abs().max().item(), layer.bias.abs().max().item()) <= bound
    assert repr(nn.Conv3d(2, 4, 3, padding=1)) == (
        "Conv3d(2, 4, kernel_size=(3, 3, 3), stride=(1, 1, 1), padding=(1, 1, 1))"
    )
    assert repr(nn.ConvTranspose1d(4, 4, 3, 2, 1, 1, 2, False)) == (
        "ConvTranspose1d(4, 4, kernel_size=(3,), stride=(2,), padding=(1,), output_padding=(1,), groups=2, bias=False)"
    )
    assert repr(nn.Conv1d(2, 2, 3, padding="same", padding_mode="reflect")) == (
        "Conv1d(2, 2, kernel_size=(3,), stride=(1,), padding=same, padding_mode=reflect)"
    )


@pytest.mark.parametrize(
    ("mode", "widths", "want"),
    [
        ("reflect", (2, 1), [3, 2, 1, 2, 3, 2]),
        ("reflect", (-1, 2), [2, 3, 2, 1]),
        ("replicate", (2, 0), [1, 1, 1, 2, 3]),
        ("circular", (2, 3), [2, 3, 1, 2, 3, 1, 2, 3]),
        ("circular", (-1, 2), [2, 3, 2, 3]),
        ("constant", (1, -1), [0, 1, 2]),
    ],
)
def test_pad(mode, widths, want):
    x = flow.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    y = F.pad(x, widths, mode)
    assert values(y) == [want]
    y.sum().backward()
    assert values(x.grad) == [[want.count(n) for n in (1, 2, 3)]]


def test_pad_of_several_axes():
    x = flow.arange(12.0).reshape(1, 1, 3, 4)
    for mode, numpys in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        want = np.pad(x.numpy(), ((0, 0), (0, 0), (1, 2), (2, 1)), mode=numpys)
        assert np.array_equal(F.pad(x, (2, 1, 1, 2), mode).numpy(), want)
    assert nn.ZeroPad2d((1, 0, 0, 2))(x).shape == (1, 1, 5, 5)
    assert repr(nn.ConstantPad2d(1, 2.5)) == "ConstantPad2d(padding=(1, 1, 1, 1), value=2.5)"
    assert repr(nn.ReplicationPad1d((1, 2))) == "ReplicationPad1d((1, 2))"


ONES = flow.ones
WRONG = [
    (lambda: F.conv1d(ONES(2, 3, 5), ONES(4, 2, 3)), "3 channels .axis 1., weight takes 2"),
    (lambda: F.conv1d(ONES(2, 5, 2), ONES(4, 2, 3)), r"movedim\(-1, 1\)"),
    (lambda: F.conv1d(ONES(5), ONES(4, 2, 3)), r"the input must be \(N, C, L\) or .*, got 1 axes"),
    (lambda: F.conv1d(ONES(2, 2, 5), ONES(4, 2)), r"weight must be \(F, C / groups, KL\), got 2 axes"),
    (lambda: F.conv1d(ONES(1, 2, 2), ONES(4, 2, 3)), r"the dilated filter has size \[3\], the padded input \[2\]"),
    (
        lambda: F.conv1d(ONES(1, 2, 5), ONES(4, 2, 3), ONES(3)),
        r"bias must be \(4,\), one element for each filter, got \(3,\)",
    ),
    (lambda: F.conv1d(ONES(1, 4, 5), ONES(5, 2, 3), groups=2), "5 filters cannot be split into 2 groups"),
    (lambda: F.conv1d(ONES(1, 2, 5), ONES(4, 2, 3), stride=2, padding="same"), r'"same" with stride \(2,\)'),
    (
        lambda: F.conv3d(ONES(1, 2, 5, 5, 5), ONES(4, 2, 3, 3, 3), stride=(1, 2)),
        r"stride must be .*three of them, got \(1, 2\)",
    ),
    (lambda: F.conv3d(ONES(1, 2, 3, 3, 3).long(), ONES(4, 2, 3, 3, 3).long()), "conv3d: the input must be floating"),
    (lambda: F.conv_transpose2d(ONES(1, 3, 4, 4), ONES(2, 3, 2, 2)), "3 channels .axis 1., weight takes 2"),
    (lambda: F.conv_transpose2d(ONES(1, 2, 4, 4), ONES(2, 3, 2, 2), output_padding=1), "is not below the stride"),
    (lambda: F.conv_transpose2d(ONES(1, 2, 1, 1), ONES(2, 3, 2, 2), padding=1), r"would have the size \(0, 0\)"),
    (lambda: nn.ConvTranspose2d(2, 3, 3, padding_mode="reflect"), "padding_mode is 'reflect'"),
    (lambda: nn.Conv1d(2, 3, 3, padding_mode="mirror"), "padding_mode is 'mirror'"),
    (lambda: nn.Conv1d(2, 3, 3, 2, "same"), r'padding "same" with stride \(2,\)'),
    (lambda: nn.Conv3d(3, 4, 3, groups=2), "in_channels is 3, which groups=2 does not divide"),
    (
        lambda: nn.ConvTranspose2d(2, 3, 3, 2)(ONES(1, 2, 4, 4), (8, 9)),
        r"must be from \(9, 9\) to .*, got \(8, 9\)",
    ),
    (lambda: nn.ConvTranspose2d(2, 3, 3, 2)(ONES(1, 2, 4, 4), (8,)), r"output_size is \(8,\) for an input of 4 axes"),
    (lambda: F.pad(ONES(1, 3), (3, 0), "reflect"), "3 and 0 in mode 'reflect' for axis 1 of size 3"),
    (lambda: F.pad(ONES(1, 3), (4, 0), "circular"), "4 and 0 in mode 'circular' for axis 1 of size 3"),
    (lambda: F.pad(ONES(3), (1, 1), "reflect"), "2 widths for 1 axes in mode 'reflect'"),
    (lambda: F.pad(ONES(1, 3), (1, 1), "reflect", 2.0), "takes its elements from the input, and value is 2.0"),
    (lambda: F.pad(ONES(1, 3), (1, 1), "mirror"), "mode is 'mirror'"),
]


@pytest.mark.parametrize(("call", "match"), WRONG)
def test_errors(call, match):
    with pytest.raises(flow.MinflowError, match=match):
        call()
