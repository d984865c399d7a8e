"""Custom ops: the example in docs, the three modes, the mistakes."""

import re
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.library import custom_op
from tests.graph_models import FunctionGraph

LESSON = Path(__file__).parent.parent / "docs" / "custom-operators.md"
NUMBERS = np.array([[-2.0, 0.5, 40.0], [0.0, -100.0, 3.0]], "float32")


def softclip():
    @custom_op("test_softclip(x; beta)", vjp=lambda g, x, beta: g * (x * beta).sigmoid())
    def op(xp, x, beta):
        return xp.logaddexp(x.dtype.type(beta) * x, x.dtype.type(0)) / x.dtype.type(beta)

    return op


def scaled_rows():
    """An op of two inputs with another output shape, whose gradients are a dict."""

    @custom_op(
        "test_scaled_rows(x, w)",
        infer=lambda x, w: x.replace(shape=x.shape[:1]),
        vjp=dict(x=lambda g, w: g.unsqueeze(1) * w, w=lambda g, x: (g.unsqueeze(1) * x).sum(0)),
    )
    def op(xp, x, w):
        return (x * w).sum(axis=1)

    return op


def test_documentation_example_runs(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", LESSON.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, "custom-operators.md", "exec"), names)
    grad, graph, job, registered = capsys.readouterr().out.strip().split("\n")
    assert registered == "tensor([ 3., 12.], dtype=minflow.float32)"
    assert grad == "tensor([0.1192, 0.5000, 1.0000], dtype=minflow.float32)"
    assert [float(x) for x in re.findall(r"\d+\.\d+", graph.partition("]")[0])] == [0.0635, 0.3466, 50.0]
    assert np.allclose([float(x) for x in job.strip("[]").split()], [0.0634640, 0.3465736, 50], rtol=1e-5)


def test_same_results_in_all_modes():
    op, rows = softclip(), scaled_rows()
    w = nn.Parameter(flow.tensor([0.5, -1.0, 2.0]))

    class Eager(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = w

        def forward(self, x):
            return op(rows(x, self.w), beta=1.5).sum()

    model = Eager()
    loss = model(flow.tensor(NUMBERS))
    loss.backward()
    eager, gradient = loss.numpy(force=True).tobytes(), w.grad.numpy().copy()

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.0))

        def build(self, x):
            loss = self.model(x)
            loss.backward()
            return loss

    w.grad = None
    graph = Step()
    assert graph(flow.tensor(NUMBERS)).numpy().tobytes() == eager
    assert graph.grads["model.w"].numpy().tobytes() == gradient.tobytes()

    seen = []

    @flow.global_function(type="train")
    def job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        w = flow.get_variable("custom-w", (3,), initializer=flow.constant_initializer(0.0))
        flow.watch_diff(w, lambda g: seen.append(g))
        loss = op(rows(x, w), beta=1.5).sum()
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.0]), momentum=0).minimize(loss)
        return loss

    flow.load_variables({"custom-w": w.detach().numpy()})
    assert job(NUMBERS).tobytes() == eager and seen[0].tobytes() == gradient.tobytes()
    flow.clear_default_session()


def test_gradients_match_finite_differences():
    x = flow.tensor(np.linspace(-2, 2, 6).reshape(2, 3), dtype=flow.float64, requires_grad=True)
    w = flow.tensor([0.3, -0.7, 1.1], dtype=flow.float64, requires_grad=True)
    op, rows = softclip(), scaled_rows()
    assert flow.autograd.gradcheck(lambda x: op(x, beta=2.0), [x])
    assert flow.autograd.gradcheck(rows, [x, w]) and flow.autograd.gradgradcheck(rows, [x, w])


def test_redefinition_replaces_the_op():
    first = softclip()
    second = softclip()
    assert first is not second and flow.allclose(first(flow.ones(2), beta=1.0), second(flow.ones(2), beta=1.0))

    @custom_op("test_replaced(x)")
    def op(xp, x):
        return x + 1

    graph = FunctionGraph(op)
    assert graph(flow.zeros(1)).item() == 1

    @custom_op("test_replaced(x)")
    def again(xp, x):
        return x + 2

    assert again(flow.zeros(1)).item() == 2 and graph(flow.zeros(1)).item() == 1, (
        "a compiled graph keeps its definition"
    )


@pytest.mark.parametrize(
    ("signature", "match"), [("relu(x)", "already.*my_relu"), ("no brackets", "signature"), ("(x)", "signature")]
)
def test_wrong_signature(signature, match):
    with pytest.raises(flow.MinflowError, match=f"(?s){match}"):
        custom_op(signature)
    assert flow.relu(flow.tensor([-1.0])).item() == 0


def test_invalid_rule_keeps_the_old_op():
    op = softclip()
    with pytest.raises(flow.MinflowError, match="(?s)test_softclip.*nothing"):
        custom_op("test_softclip(x)", vjp=lambda g, nothing: g)(lambda xp, x: x)
    assert flow.allclose(op(flow.zeros(1), beta=1.0), flow.log(flow.tensor([2.0])))


def test_kernel_violating_its_shape_rule():
    @custom_op("test_broken(x)")
    def op(xp, x):
        return x.sum(axis=0).astype("float64")

    with pytest.raises(flow.MinflowError, match=r"(?s)test_broken.*float32\[2, 3\].*float64\[3\].*infer="):
        op(flow.tensor(NUMBERS))

    with pytest.raises(flow.MinflowError, match=r"(?s)test_broken.*float32\[2, 3\].*float64\[3\]"):
        FunctionGraph(op)(flow.tensor(NUMBERS))


def test_backward_without_gradient_rule_is_an_error():
    @custom_op("test_no_gradient(x)")
    def op(xp, x):
        return x * 2

    with pytest.raises(flow.MinflowError, match="require"):
        op(flow.ones(2, requires_grad=True)).sum().backward()


# ---- functions of tensors, PyTorch's form ----------------------------------------------------------------------------


def scaled(name="tests::scaled", **options):
    @flow.library.custom_op(name, mutates_args=(), **options)
    def scaled(x: flow.Tensor, by: float = 2.0) -> flow.Tensor:
        return x * by

    return scaled


def test_registered_operator_in_every_mode():
    scale = scaled()
    scale.register_autograd(lambda ctx, g: (g * 7, None))

    class Apply(flow.nn.Graph):
        def build(self, x):
            return scale(x, by=3.0)

    x = flow.tensor([1.0, 2.0], requires_grad=True)
    assert Apply()(x).tolist() == [3, 6] == scale(x, by=3.0).tolist() and flow.ops.tests.scaled is scale
    scale(x).sum().backward()
    assert x.grad.tolist() == [7, 7]
    scale.register_kernel("cpu", lambda x, by: x * by + 1)
    assert scale(x.detach()).tolist() == [3, 5]


W = flow.ones(1, requires_grad=True)
WRONG_OPERATORS = {
    "no name": (lambda: scaled("scaled"), flow.OutOfRangeError, "(?s)'scaled' is not the name.*mylib::scale"),
    "no mutates_args": (lambda: flow.library.custom_op("a::b"), flow.ShapeError, "needs mutates_args"),
    "unknown": (lambda: flow.ops.nowhere.relu, flow.MissingNameError, r"no library 'nowhere'"),
    "unknown operator": (lambda: flow.library.register_fake("tests::no"), flow.MissingNameError, "no operator 'tests"),
    "no device": (lambda: scaled(device_types="cuda")(flow.ones(1)), flow.DeviceError, r"(?s)device cpu.*kernel"),
    "no gradient": (lambda: scaled()(W).sum().backward(), flow.GradError, "register_autograd"),
    "in place": (
        lambda: flow.library.custom_op("tests::w", lambda x: None, mutates_args="x").register_autograd(print),
        flow.GradError,
        "writes its inputs in place",
    ),
    "kernel of a gradient": (
        lambda: flow.library.impl(scaled().name, "Autograd", print), flow.GradError, "cannot be a function for autograd"
    ),
    "refused": (lambda: flow.library.opcheck, flow.MissingNameError, "autograd.gradcheck tests a gradient"),
}  # fmt: skip


@pytest.mark.parametrize("call, kind, said", WRONG_OPERATORS.values(), ids=WRONG_OPERATORS)
def test_wrong_operators(call, kind, said):
    with pytest.raises(kind, match=said):
        call()


def test_number_of_gradients():
    scale = scaled()
    scale.register_autograd(lambda ctx, g: (g, None, None))
    with pytest.raises(flow.GradError, match="returned 3 gradients for 2 inputs"):
        scale(flow.ones(1).requires_grad_()).sum().backward()
