"""The tape: backward, higher derivatives, hooks, modes, custom functions, and memory."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
from programs import Compiled, both, check, f8, param

import minflow as flow
from minflow.core.base import events
from minflow.core.base.errors import GradError, NonFiniteError, ShapeError
from minflow.core.ir import where_text
from tests.core.refusals import refusals


def test_chain_of_20_000_ops():
    x = y = param(1, 2)
    for _ in range(20_000):
        y = y * 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]
    del y


def test_second_derivatives():
    x = f8(3)
    (g,) = flow.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = flow.autograd.grad(g.sum(), x)
    assert np.allclose(h.numpy(), 6 * x.detach().numpy())
    both(
        lambda x: flow.autograd.grad((x * x).exp().sum(), [x], create_graph=True)[0].exp().sum(),
        lambda: param(0.1, 0.2),
    )


def test_second_backward_names_the_first():
    def twice(x):
        loss = x.exp().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        loss.backward()

    with pytest.raises(GradError, match="freed by the first backward") as error:
        twice(param(1, 2))
    assert f"test_autograd.py:{twice.__code__.co_firstlineno + 3}" in error.value.values["first backward"]
    assert f"test_autograd.py:{twice.__code__.co_firstlineno + 4}" in error.value.where
    y = param(1, 2).sum()
    y.backward()
    y.backward()  # a sum saves nothing, so nothing was freed


test_backward_of_what_has_no_gradient = refusals(
    [
        (lambda: (param(1, 2) * 2).backward(), "only a scalar has one gradient, and this tensor has 2 elements"),
        (lambda: flow.ones(2).sum().backward(), r"(?s)not computed from anything that requires grad.*float32\[\]"),
        (lambda: (param(1, 2) * 2).backward(flow.ones(3)), r"gradient has shape \(3,\), the tensor has \(2,\)"),
    ]
)


def test_grad_computes_only_the_inputs():
    x, y = param(1, 2), param(3, 4)
    gx, gy = flow.autograd.grad((x * y).sum(), (x, y))
    assert gx.tolist() == [3, 4] and gy.tolist() == [1, 2] and x.grad is None
    h = x * 2
    (gh,) = flow.autograd.grad((h * h).sum(), h)
    assert gh.tolist() == [4, 8]


def test_leaf_gradients_are_neither_shared_nor_views():
    a, b = param(1, 2), param(3, 4)
    (a + b).sum().backward()
    a.grad.zero_()
    assert b.grad.tolist() == [1, 1] and a.grad.array.base is None and b.grad.is_contiguous()
    c = param(1, 2, 3, 4)
    c.reshape(2, 2).T.sum().backward()
    assert c.grad.array.base is None


def test_gradients_accumulate_in_the_same_tensor():
    x = param(1, 2)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first and first.tolist() == [5, 5]


def test_gradients_have_the_spec_of_their_tensor():
    x = param(1, 2)
    (x * flow.tensor(np.ones((3, 2)))).sum().backward()
    assert x.grad.spec is x.spec and x.grad.tolist() == [3, 3]


def test_only_declared_tensors_are_saved():
    x, w = param(1, 2), flow.tensor([3.0, 4.0])
    y = x * w
    assert [s[0] is w.array for s in y._value.node.saved] == [True]
    x.data.mul_(5.0)  # the old values of x are not needed
    y.sum().backward()
    assert x.grad.tolist() == [3, 4] and not (x + w)._value.node.saved


def test_unneeded_input_gradient_is_not_computed():
    images, w = flow.ones(4, 3), flow.ones(3, 2, requires_grad=True)
    node = (images @ w)._value.node
    assert node.needs == 0b10 and [s[0] is images.array for s in node.saved] == [True]


def test_tape_is_freed_without_the_cyclic_collector():
    gc.disable()
    try:
        x = param(1, 2)
        y = (x.exp() * x)[0]
        base, tape, leaf = weakref.ref(y._alias.base), weakref.ref(y._value.node), weakref.ref(x)
        array = weakref.ref(y._alias.base.array)
        y.backward()
        del y
        assert base() is None and tape() is None and array() is None
        del x
        assert leaf() is None
    finally:
        gc.enable()


def test_hooks():
    x = param(1, 2)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    h = x * 2
    h.register_hook(lambda g: g * 10)
    h.retain_grad()
    h.sum().backward()
    assert seen == [[20, 20]] and x.grad.tolist() == [20, 20] and h.grad.tolist() == [10, 10]
    handle.remove()
    (x * 1).sum().backward()
    assert len(seen) == 1


def test_grad_modes():
    x = param(1, 2)
    with flow.no_grad():
        assert not (x * 2).requires_grad
        with flow.enable_grad():
            assert (x * 2).requires_grad

    @flow.no_grad()
    def frozen():
        return x * 2

    @flow.no_grad
    def also():
        return x * 2

    assert not frozen().requires_grad and not also().requires_grad and flow.is_grad_enabled()
    with flow.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    with flow.inference_mode():
        assert not (x * 2).requires_grad

    @flow.no_grad()
    def pieces():
        yield (x * 2).requires_grad
        yield (x * 2).requires_grad

    steps = pieces()
    assert next(steps) is False and (x * 2).requires_grad and next(steps) is False


def test_detect_anomaly_names_op_and_line():
    def risky(x):
        y = (x * 0.0).sqrt()
        return (y * 0.0).sum()

    with flow.autograd.detect_anomaly(), pytest.raises(NonFiniteError, match="gradient of sqrt") as error:
        risky(param(1, 2)).backward()
    assert f"test_autograd.py:{risky.__code__.co_firstlineno + 1}" in error.value.values["op"]
    assert "2 NaN among 2" in str(error.value)


def test_node_records_the_users_line():
    y = param(1) * 2.0
    line = test_node_records_the_users_line.__code__.co_firstlineno + 1
    assert where_text(y._value.node.where) == f"test_autograd.py:{line}"
    assert y.grad_fn.where.endswith(str(line)) and repr(y.grad_fn) == "<MulBackward>"


class Cube(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        y = x * x * x
        ctx.save_for_backward(x)
        ctx.scale = scale
        return y * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * ctx.scale * g, None


def test_custom_functions():
    assert both(lambda x: Cube.apply(x, 2.0).sum(), lambda: param(1, 2)) == [[6, 24]]
    check(lambda x: (Cube.apply(x, 0.5) * x).sum(), f8(4))
    x = param(2)
    (g,) = flow.autograd.grad(Cube.apply(x, 1.0).sum(), x, create_graph=True)
    (h,) = flow.autograd.grad(g.sum(), x)
    assert g.item() == 12 and h.item() == 12


def test_custom_function_is_freed_without_the_collector():
    gc.disable()
    try:
        x = param(1, 2)
        y = Cube.apply(x, 1.0)
        node = weakref.ref(y._value.node)
        y.sum().backward()
        del y
        assert node() is None
    finally:
        gc.enable()


def test_wrong_backward_of_a_custom_function_is_reported():
    class Wrong(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g[0]

    with pytest.raises(
        ShapeError, match=r"Wrong.backward: gradient 0 has shape \(\), argument 0 of forward has \(2,\)"
    ):
        Wrong.apply(param(1, 2)).sum().backward()


def test_gradcheck():
    x = f8(3)
    assert flow.autograd.gradcheck(lambda x: (x * x).exp(), x)
    assert flow.autograd.gradgradcheck(lambda x: x.exp().sum(), x)

    class Bad(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    with pytest.raises(GradError, match=r"d output 0\[0\] / d input 0\[0\] is 3, central differences give 2"):
        flow.autograd.gradcheck(Bad.apply, x)
    with pytest.raises(GradError, match="float32, too coarse"):
        flow.autograd.gradcheck(lambda x: x, param(1))


def test_listeners_may_be_removed_during_an_event():
    heard, stop = [], threading.Event()

    def come_and_go():
        while not stop.is_set():
            with events.subscribe(events.BackwardDone, lambda record: None):
                pass

    others, before = threading.Thread(target=come_and_go), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with events.subscribe(events.BackwardDone, heard.append):
            others.start()
            for i in range(20_000):
                if events.BackwardDone in events.LISTENERS:
                    events.emit(events.BackwardDone(i, None))
            stop.set()
            others.join()
    finally:
        sys.setswitchinterval(before)
    assert len(heard) == 20_000 and events.BackwardDone not in events.LISTENERS


def test_listeners_are_notified_of_backward():
    heard = []
    with events.subscribe(events.BackwardDone, heard.append):
        param(1, 2).sum().backward()
    param(1, 2).sum().backward()
    assert len(heard) == 1 and "test_autograd.py" in where_text(heard[0].where)


def test_backward_in_a_trace_writes_no_gradients():
    x = param(1, 2)
    Compiled(lambda: ((x * x).sum().backward(), x.grad)[1])()
    assert x.grad is None
