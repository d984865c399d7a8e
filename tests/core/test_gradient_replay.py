"""Gradients that recorded kernels compute: the cases that a key or a register could confuse.

That they have the bits of the rules, for each op: `test_ops.py`.
"""

import math
import warnings

import pytest

import minflow as flow
from minflow.core.grad.replay import RECORDINGS, SEEN, factory_of


@pytest.fixture(autouse=True)
def no_recordings():
    RECORDINGS.clear()


def gradients(function, *leaves):
    leaves = [flow.tensor(x, requires_grad=True) for x in leaves]
    function(*leaves).backward(flow.ones(2))
    return [x.grad.tolist() for x in leaves]


def recordings():
    return [r for r in RECORDINGS.values() if r is not SEEN]


def test_third_equal_node_is_replayed():
    for _ in range(3):
        assert gradients(lambda x, y: x * y, [1.0, 2.0], [3.0, 4.0]) == [[3.0, 4.0], [1.0, 2.0]]
    assert [len(r.calls) for r in recordings()] == [2]


def test_square_and_product_have_recordings_of_their_own():
    for _ in range(3):
        assert gradients(lambda x: x * x, [1.0, 2.0]) == [[2.0, 4.0]]
    for _ in range(3):
        assert gradients(lambda x, y: x * y, [1.0, 2.0], [3.0, 4.0]) == [[3.0, 4.0], [1.0, 2.0]]
    assert gradients(lambda x: x * x, [1.0, 2.0]) == [[2.0, 4.0]]
    assert len(recordings()) == 2


def test_gradient_that_is_a_saved_array():
    for _ in range(3):
        x, y = flow.tensor([1.0, 2.0], requires_grad=True), flow.tensor([3.0, 4.0])
        (x * y).backward(y)
        assert x.grad.tolist() == [9.0, 16.0]
    assert not recordings()


def test_composite_op_has_one_recording():
    def program(x, y):
        return flow.nn.functional.smooth_l1_loss(x, y, reduction="none")

    for _ in range(3):
        assert gradients(program, [1.0, 2.0], [1.5, 4.0]) == [[-0.5, -1.0], [0.5, 1.0]]
    (whole,) = [r for key, r in RECORDINGS.items() if key[0].name == "smooth_l1_loss"]
    assert len(whole.calls) > 5


def test_numbers_belong_to_the_key():
    for _ in range(3):
        assert gradients(lambda x: x * 2.0, [1.0, 2.0]) == [[2.0, 2.0]]
    assert gradients(lambda x: x * 3.0, [1.0, 2.0]) == [[3.0, 3.0]]
    for zero in (0.0, 0.0, 0.0, -0.0):
        assert str(gradients(lambda x, zero=zero: x * zero, [1.0, 2.0])) == f"[[{zero}, {zero}]]"


def test_written_input_is_still_refused():
    def program(x, write):
        y = x * 1.5
        z = y * y.exp()
        if write:
            y.add_(1)
        return z

    for _ in range(3):
        gradients(lambda x: program(x, False), [1.0, 2.0])
    with pytest.raises(flow.GradError, match="mul: backward needs a as it was"):
        gradients(lambda x: program(x, True), [1.0, 2.0])


def test_gradient_of_a_leaf_shares_no_memory():
    """A recorded view of the arriving gradient is cloned into `.grad`, as by the rules."""
    for _ in range(3):
        x = flow.ones(2, 1, requires_grad=True)
        g = flow.ones(1, 2)
        x.T.backward(g)
        g.zero_()
        assert x.grad.tolist() == [[1.0], [1.0]]


def test_custom_functions_run_each_time():
    class Scale(flow.autograd.Function):
        factor = 1.0

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g * Scale.factor

    for factor in (1.0, 2.0, 3.0, 4.0):
        Scale.factor = factor
        assert gradients(Scale.apply, [1.0, 2.0]) == [[factor, factor]]


def test_hooks_on_saved_tensors_run_each_time():
    calls = []

    def unpack(x):
        calls.append(x)
        return x * 2

    for count in (2, 4, 6, 8):
        x, y = flow.tensor([1.0, 2.0], requires_grad=True), flow.tensor([3.0, 4.0], requires_grad=True)
        with flow.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
            z = x * y
        z.backward(flow.ones(2))
        assert x.grad.tolist() == [6.0, 8.0]
        assert len(calls) == count


def test_second_derivatives_follow_the_rules():
    for _ in range(4):
        x = flow.tensor([2.0, 3.0], requires_grad=True)
        (first,) = flow.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = flow.autograd.grad(first.sum(), x)
        assert second.tolist() == [12.0, 18.0]


def test_views_without_attributes():
    """The rules of `complex` return the real and the imaginary part of a gradient, which are views."""
    for _ in range(4):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        (flow.complex(x, x * x) * (1 + 2j)).imag.sum().backward()
        assert x.grad.tolist() == [4.0, 6.0]


def test_gradient_of_a_part_is_written_into_its_zeros():
    x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(4):
        g = flow.tensor([4.0, 5.0])
        y = x[1:]
        y.backward(g)
        assert (x.grad.tolist(), g.tolist(), y.tolist()) == ([0.0, 4.0, 5.0], [4.0, 5.0], [2.0, 3.0])
        x.grad = None
    (recording,) = recordings()
    assert [kernel.__name__ for kernel, *_ in recording.calls][1:] == ["overwrite"]


def test_part_of_a_gradient_is_not_overwritten():
    """A rule that writes into a view of the arriving gradient, or into zeros that it also returns, copies them."""

    class Written(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return flow.slice_scatter(g.reshape(2), flow.tensor([7.0]), 0, 0, 1)

    for _ in range(4):
        x, g = flow.ones(2, requires_grad=True), flow.tensor([1.0, 2.0])
        Written.apply(x).backward(g)
        assert (x.grad.tolist(), g.tolist()) == ([7.0, 2.0], [1.0, 2.0])


def test_recordings_of_one_form_share_a_source():
    factory_of.cache_clear()
    for n in (2, 3, 4):
        for _ in range(3):
            x, y = flow.ones(n, requires_grad=True), flow.ones(n, requires_grad=True)
            (x * y).backward(flow.ones(n))
    assert len(recordings()) == 3
    assert factory_of.cache_info().currsize == 1


def test_sums_of_gradients():
    """Gradients are added in the order of the rules, and an infinite sum raises nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            x = flow.tensor([1.0, 2.0], requires_grad=True)
            (x * 3e38 + x * 2e38 + x.reshape(2) * 1.0).backward(flow.ones(2))
            assert x.grad.tolist() == [math.inf, math.inf]
            y = flow.tensor([1.0, 2.0], requires_grad=True)
            (first,) = flow.autograd.grad((y * y + y * y * y).sum(), y, create_graph=True)
            first.sum().backward()
            assert y.grad.tolist() == [8.0, 14.0]


def test_gradients_of_many_parts_need_no_source():
    factory_of.cache_clear()
    xs = [flow.tensor(float(i), requires_grad=True) for i in range(20)]
    for k in range(1, 5):
        flow.stack(xs).backward(flow.arange(20.0))
        assert [x.grad.item() for x in xs] == [float(k * i) for i in range(20)]
    assert len(recordings()) == 1
    assert factory_of.cache_info().currsize == 0
