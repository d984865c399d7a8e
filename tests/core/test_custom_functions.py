"""autograd.Function: what forward declares about its arguments and results, and what backward may return, as in
PyTorch.
"""

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import GradError, MinflowWarning
from tests.core.programs import both, param
from tests.graphs import Predict

Function = flow.autograd.Function


class Double(Function):
    """x *= 2."""

    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        assert ctx.saved_tensors[0].shape == g.shape
        return g * 2


def test_dirty_argument_is_the_result():
    def written(w):
        y = w * 3
        assert Double.apply(y) is y
        return (y * y).sum()

    assert both(written, lambda: param(1, 2)) == [[72, 144]]
    y = flow.ones(2) * 3
    assert Double.apply(y) is y and y.tolist() == [6, 6] and not y.requires_grad
    with flow.no_grad():
        y = param(1, 2)
        assert Double.apply(y) is y and y.tolist() == [2, 4] and y.is_leaf


def test_dirty_view_changes_its_base():
    def written(w):
        y = w * 3
        view = y[:1]
        assert Double.apply(view) is view
        return y.sum() + view.sum()

    assert both(written, lambda: param(1, 1)) == [[12, 3]]


def test_dirty_buffer_of_a_graph_is_updated():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", flow.ones(1))

        def forward(self, x):
            assert Double.apply(self.n) is self.n
            return x * self.n

    model, x = Counts(), flow.ones(1)
    graph = Predict(model)
    assert [graph(x).item() for _ in range(3)] == [2, 4, 8] and model.n.item() == 8


def test_hooks_of_a_dirty_argument():
    seen, x = [], param(1, 1)
    y = x * 3
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    Double.apply(y)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    assert seen == [("after", [1, 1]), ("before", [2, 2])] and x.grad.tolist() == [6, 6]


def test_write_after_saving_is_detected_in_backward():
    class Times(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x.clone(), w)
            ctx.mark_dirty(x)
            return x.mul_(w)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w, g * x

    x, w = param(3), param(5)
    h = x * 2
    k = h * h  # needs the old value of h
    Times.apply(h, w)
    (h * h).sum().backward()
    assert x.grad.tolist() == [600] and w.grad.tolist() == [360]
    with pytest.raises(
        GradError, match="mul: backward needs .* but it was changed in place at test_custom_functions.py"
    ):
        k.sum().backward()


def call(*, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g, x=None):
    kind = type("F", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    return kind.apply(param(1, 2) * 1 if x is None else x)


@pytest.mark.parametrize(("forward", "what"), [
    (lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2) * 1)[1], r"marked dirty and not returned(.|\n)*float32\[2\]"),
    (lambda ctx, x: ctx.mark_dirty(3), r"ctx.mark_dirty: argument 0 must be a tensor, got an int(.|\n)*3"),
    (lambda ctx, x: ctx.mark_non_differentiable(x, "y"), r"argument 1 must be a tensor, got a str(.|\n)*'y'"),
    (lambda ctx, x: ctx.save_for_backward(x, None, 2.5), r"argument 2 must be a tensor, got a float(.|\n)*2.5"),
    (lambda ctx, x: ctx.save_for_forward(x), "save_for_forward keeps tensors for jvp"),
])  # fmt: skip
def test_forward_declarations_are_checked(forward, what):
    with pytest.raises(GradError, match=what):
        call(forward=forward)


def test_leaf_cannot_be_dirty():
    with pytest.raises(GradError, match=r"a leaf that requires grad is written in place(.|\n)*float32\[2\]"):
        Double.apply(param(1, 2))


def test_dirty_tensor_must_be_an_argument():
    def forward(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    with pytest.warns(MinflowWarning, match="mark_dirty of a tensor that is not an argument has no effect"):
        call(forward=forward)


@pytest.mark.parametrize(("backward", "gradient"), [
    (lambda ctx, g: flow.ones(5, 2), [5, 5]),  # summed, like a broadcast
    (lambda ctx, g: g.double(), [1, 1]),
    (lambda ctx, g: (g * 3, None, None), [3, 3]),
    (lambda ctx, g: None, None),
])  # fmt: skip
def test_backward_results_are_fitted_to_their_inputs(backward, gradient):
    x = param(1, 2)
    call(backward=backward, x=x).sum().backward()
    assert (x.grad if gradient is None else x.grad.tolist()) == gradient


@pytest.mark.parametrize(("backward", "what"), [
    (lambda ctx, g: 3, r"F.backward: gradient 0 must be a tensor or None, got an int(.|\n)*3"),
    (lambda ctx, g: [g.tolist()], r"gradient 0 must be a tensor or None, got a list(.|\n)*\[1.0, 1.0\]"),
    (lambda ctx, g: flow.ones(3), r"gradient 0 has shape \(3,\), argument 0 of forward has \(2,\)"),
    (lambda ctx, g: flow.ones(1), r"gradient 0 has shape \(1,\), argument 0 of forward has \(2,\)"),
    (lambda ctx, g: (g, g), "F.backward returned 2 gradients for the 1 arguments of forward"),
])  # fmt: skip
def test_backward_results_are_checked(backward, what):
    with pytest.raises((GradError, flow.ShapeError), match=what):
        call(backward=backward).sum().backward()


def test_non_differentiable_results():
    seen = []

    class Parts(Function):
        @staticmethod
        def forward(ctx, x, y, k):
            seen.append(ctx.needs_input_grad)
            constant = x * 3
            ctx.mark_non_differentiable(constant)
            ctx.set_materialize_grads(k > 1)
            return x * 2, constant, y * k

        @staticmethod
        def backward(ctx, *grads):
            seen.append([None if g is None else g.tolist() for g in grads])
            return grads[0] * 2, None, None

    for k, missing in ((1, None), (2, [0, 0])):
        x = param(1, 2)
        a, b, c = Parts.apply(x, flow.ones(2), k)
        assert (a.requires_grad, b.requires_grad, c.requires_grad) == (True, False, True)
        a.sum().backward()
        assert x.grad.tolist() == [2, 2] and seen[-1] == [[1, 1], missing, missing]
        assert seen[-2] == (True, False, False)
    with flow.no_grad():
        Parts.apply(param(1, 2), param(1, 2), 1)
    assert seen[-1] == (True, True, False)


def test_separate_setup_context():
    class Scaled(Function):
        @staticmethod
        def forward(x, k):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            assert ctx.saved_tensors[0].shape == g.shape
            return g * ctx.k, None

    assert both(lambda w: Scaled.apply(w, 3).sum(), lambda: param(1, 2)) == [[3, 3]]


def test_uncalled_methods_are_reported():
    for name, instead in (("jvp", "func.jvp"), ("vmap", "func.vmap")):
        with pytest.warns(MinflowWarning, match=rf"Rule.{name} is not called here\n.*\n.*{instead}"):
            type("Rule", (Double,), {name: staticmethod(lambda *args: None)})


def test_function_without_forward_or_backward_is_refused():
    class Empty(flow.autograd.Function):
        pass

    class Doubled(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(GradError, match="this Function has no forward"):
        Empty.apply(param(1))
    with pytest.raises(GradError, match="this Function has no backward"):
        Doubled.apply(param(1)).sum().backward()


def test_vjp_is_backward():
    kind = type(
        "Named", (Function,), {"forward": staticmethod(lambda ctx, x: x * 2), "vjp": staticmethod(lambda ctx, g: g * 2)}
    )
    assert both(lambda w: kind.apply(w).sum(), lambda: param(1, 2)) == [[2, 2]]
    with pytest.raises(GradError, match="Both defines both backward and vjp"):
        type("Both", (Double,), {"backward": Double.backward, "vjp": Double.backward})
