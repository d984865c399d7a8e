"""Mistakes in build: backward and steps, values of symbolic tensors, outputs of build.

Each error has values, a line and a hint, and leaves model, optimizer and graph unchanged. Read next:
`test_mistakes_leaks.py`.
"""

import math
import re

import numpy as np
import pytest
from graph_mistakes import Setup, assert_fails, line_of
from graph_models import MLP, Predict, bits, eager_step, state_bits

import minflow as flow
from minflow import nn
from minflow.core.base.errors import DeviceError, DTypeError, GradError, GraphError, MinflowWarning, TraceError


@pytest.fixture
def setup():
    found = Setup()
    yield found
    assert flow.ones(2).sum().item() == 2, "the build did not leave its mode"
    found.check_next_step()


def refused(setup, build, kind, what, values, hint, optimizer=True, at_call=False):
    """Assert that a graph with this build is refused, twice with the same text, without side effects.

    values: `@here` is replaced by the marked line of build, `@before` by the line before it, `@def` by that of its def.
    """
    before = setup.state()
    graph = setup.graph(build, *[setup.optimizer] * optimizer)
    inputs = (setup.x, setup.y)[: build.__code__.co_argcount - 1]
    file, line = line_of(build).split(":")
    for mark, number in (("@here", line), ("@before", int(line) - 1), ("@def", build.__code__.co_firstlineno)):
        values = {name: value.replace(mark, rf"{re.escape(file)}:{number}") for name, value in values.items()}
    for _ in range(2):
        error = assert_fails(lambda: graph(*inputs), kind, what, values, hint, None if at_call else build)
        assert error.__notes__[0].startswith(f"while building {graph.name}: in ")
        assert setup.state() == before and not graph.is_compiled and not graph._plans
    return graph


MISTAKES = []


def mistake(kind, what, values, hint, **options):
    """Add a build to the table of those refused with this error: see `refused`."""
    return lambda build: MISTAKES.append(pytest.param(build, (kind, what, values, hint), options, id=build.__name__))


# ---- backward and steps ----------------------------------------------------------------------------------------------


@mistake(
    GraphError,
    "has an optimizer, and its build calls no backward",
    {"optimizer": "SGD", "build": "at @def"},
    "loss.backward() in build, before return loss",
    at_call=True,
)
def an_optimizer_without_backward(self, x, y):
    return self.loss_fn(self.model(x), y)


@mistake(
    GradError,
    "only a scalar has one gradient, and this tensor has 20 elements",
    {"output": r"float32\[4, 5\]  \(created at @before\)"},
    "reduce it first: .sum() or .mean()",
)
def backward_of_a_vector(self, x, y):
    out = self.model(x) * 2
    out.backward()  # here
    return out


@mistake(
    GradError,
    "backward a second time: what softmax_cross_entropy saved was freed by the first backward",
    {"op": r"softmax_cross_entropy, created at .*", "first backward": "@here"},
    "retain_graph=True",
)
def backward_twice(self, x, y):
    loss = self.loss_fn(self.model(x), y)
    loss.backward(), loss.backward()  # here
    return loss


NO_GRAD = GradError, "not computed from anything that requires grad", {"output": r"float32\[\]  \(created at .*\)"}


@mistake(*NO_GRAD, "it is lost by .detach()")
def a_loss_of_detached_scores(self, x, y):
    loss = self.loss_fn(self.model(x).detach(), y)
    loss.backward()  # here
    return loss


@mistake(*NO_GRAD, "it is lost by .detach()")
def a_loss_of_constants(self, x, y):
    loss = self.loss_fn(flow.ones(4, 5), y)
    loss.backward()  # here
    return loss


@mistake(*NO_GRAD, "under no_grad")
def a_loss_under_no_grad(self, x, y):
    with flow.no_grad():
        loss = self.loss_fn(self.model(x), y)
    loss.backward()  # here
    return loss


@mistake(
    GraphError,
    "backward reaches none of the 4 parameters of SGD",
    {"backward": "at @here"},
    "compute the loss from the model's output",
    at_call=True,
)
def a_loss_of_other_parameters(self, x, y):
    loss = self.loss_fn(OTHER(x), y)
    loss.backward()  # here
    return loss


@mistake(
    GraphError,
    r"^Learner_\d+: build returns None",
    {"build": "at @def"},
    "return loss, or another result",
    at_call=True,
)
def build_without_return(self, x, y):
    loss = self.loss_fn(self.model(x), y)
    loss.backward()


@mistake(
    TraceError,
    r"^bool\(\) reads the elements of a symbolic tensor",
    {"tensor": r"bool\[\]  \(created at @here\)"},
    "flow.where",
    optimizer=False,
)
def branching_on_a_comparison(self, x):
    if x.mean() > 0:  # here
        return self.model(x)
    return x


@mistake(
    TraceError,
    r"^bool\(\) reads the elements of a symbolic tensor",
    {"tensor": r"bool\[\]  \(created at @here\)"},
    "flow.where",
    optimizer=False,
)
def looping_on_a_comparison(self, x):
    while (x > 3).any():  # here
        x = x / 2
    return x


@mistake(
    DTypeError,
    "iteration over a 0-d tensor",
    {"tensor": r"float32\[\]  \(created at @here\)"},
    "one number",
    optimizer=False,
)
def iterating_over_a_scalar(self, x):
    return [t for t in x.sum()]  # here


@mistake(
    DeviceError, "there is no device cuda:0 here", {"available": "cpu"}, "flow.cuda.is_available()", optimizer=False
)
def another_device(self, x):
    return self.model(x.to("cuda"))  # here


@mistake(
    TraceError,
    r"^(Learner_\d+) is called inside the build of \1",
    {"input": r"float32\[4, 20\]  \(input x\)"},
    "in build call the modules, self.model, self.loss_fn",
    optimizer=False,
)
def a_graph_that_calls_itself(self, x):
    return self(x)  # here


OTHER = MLP()


@pytest.mark.parametrize(("build", "error", "options"), MISTAKES)
def test_mistakes(build, error, options, setup):
    refused(setup, build, *error, **options)


def test_backward_without_an_optimizer(setup):
    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()  # here
        return loss

    graph = refused(
        setup,
        build,
        GraphError,
        r"build calls backward\(\), and the graph has no optimizer",
        {"backward": "at @here"},
        "self.add_optimizer(optimizer) in",
        optimizer=False,
        at_call=True,
    )
    graph.add_optimizer(setup.optimizer)
    assert graph(setup.x, setup.y).shape == ()


@pytest.mark.filterwarnings("ignore:.*build uses")
@pytest.mark.parametrize("options", [{"retain_graph": True}, {"create_graph": True}])
def test_repeated_backward_allowed_in_eager(options, setup):
    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward(**options)
        loss.backward()
        return loss

    twin, optimizer = MLP(), None
    twin.load_state_dict(setup.model.state_dict())
    optimizer = flow.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    optimizer.load_state_dict(setup.optimizer.state_dict())
    loss = setup.loss_fn(twin(setup.x), setup.y)
    loss.backward(**options)
    loss.backward()
    optimizer.step()
    assert bits(setup.graph(build, setup.optimizer)(setup.x, setup.y)) == bits(loss)
    assert state_bits(setup.model, setup.optimizer) == state_bits(twin, optimizer)


def test_backward_of_a_tensor_from_before_the_build(setup):
    w = flow.ones(3, requires_grad=True)
    before = (w * 2).sum()

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        before.backward()  # here
        return loss

    refused(
        setup,
        build,
        GradError,
        "backward of a tensor that was computed before build",
        {"tensor": r"float32\[\]  \(created at .*\)"},
        "compute the loss in build",
    )
    assert w.grad is None
    before.backward()
    assert w.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "what, hint, act",
    [
        (r"SGD.step\(\) inside build: the graph steps by itself", "self.add_optimizer(optimizer) in __init__",
         lambda g, s, sch: s.optimizer.step()),
        (r"StepLR.step\(\) inside build: the graph steps by itself", "self.add_optimizer(optimizer, lr_sch=scheduler)",
         lambda g, s, sch: sch.step()),
        (r"SGD.zero_grad\(\) inside build: the graph forgets the gradients by itself", "leave it out",
         lambda g, s, sch: s.optimizer.zero_grad()),
        (r"MLP.zero_grad\(\) inside build: the graph forgets the gradients by itself", "leave it out",
         lambda g, s, sch: g.model.zero_grad()),
        ("^Learner.add_optimizer is called inside build", "call it in Learner.__init__",
         lambda g, s, sch: g.add_optimizer(s.optimizer)),
    ],
)  # fmt: skip
def test_calls_that_the_graph_makes_itself(what, hint, act, setup):
    scheduler = flow.optim.lr_scheduler.StepLR(setup.optimizer, 3)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        act(self, setup, scheduler)
        return loss

    graph, before = setup.graph(build, setup.optimizer), (setup.state(), scheduler.state_dict())
    assert_fails(lambda: graph(setup.x, setup.y), GraphError, what, {"graph": graph.name}, hint, act)
    assert (setup.state(), scheduler.state_dict()) == before


@pytest.mark.filterwarnings("ignore:.*build uses")
def test_zero_grad_before_backward_is_allowed(setup):
    def build(self, x, y):
        setup.optimizer.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss

    twin = Setup()
    wanted = eager_step(twin.model, twin.loss_fn, twin.optimizer, twin.x, twin.y)
    assert bits(setup.graph(build, setup.optimizer)(setup.x, setup.y)) == bits(wanted)
    assert state_bits(setup.model, setup.optimizer) == state_bits(twin.model, twin.optimizer)


def test_settings_inside_build(setup):
    def build(self, x):
        self.config.set_gradient_accumulation_steps(2)
        return self.model(x)

    graph = refused(
        setup,
        build,
        GraphError,
        "the config of a graph is set inside build",
        {"value": "2"},
        "in __init__",
        optimizer=False,
    )
    assert graph.config.accumulation == 1


# ---- values of symbolic tensors -------------------------------------------------------------------------------------

RETURN_IT = "to look at it, return it from build"


@pytest.mark.parametrize(
    "verb, hint, ask",
    [
        ("item", RETURN_IT, lambda t: t.item()),
        ("numpy", RETURN_IT, lambda t: t.numpy()),
        ("numpy", RETURN_IT, lambda t: np.asarray(t)),
        ("tolist", RETURN_IT, lambda t: t.tolist()),
        ("int", RETURN_IT, lambda t: int(t)),
        ("float", RETURN_IT, lambda t: float(t)),
        ("float", RETURN_IT, lambda t: math.sqrt(t)),
        ("format", RETURN_IT, lambda t: f"{t:.3f}"),
        ("index", "x.shape[0]", lambda t: [1, 2][t]),
        ("index", "x.shape[0]", lambda t: list(range(t))),
        ("bool", "flow.where(cond, a, b) takes the place of if", lambda t: 1 if t else 2),
        ("bool", "flow.where(cond, a, b) takes the place of if", lambda t: t and 1),
        ("bool", "flow.where(cond, a, b) takes the place of if", lambda t: not t),
    ],
)
def test_values_of_symbolic_tensors(verb, hint, ask, setup):
    def build(self, x):
        t = self.model(x).sum()  # here
        ask(t)
        return t

    graph = setup.graph(build)
    values = {"tensor": rf"float32\[\]  \(created at {re.escape(line_of(build))}\)"}
    assert_fails(
        lambda: graph(setup.x), TraceError, rf"^{verb}\(\) reads the elements of a symbolic tensor", values, hint, ask
    )
    ask(flow.tensor(1))  # the condition is a plain tensor


@pytest.mark.parametrize(
    "function",
    [
        lambda x: flow.where(x.mean() > 0, x, -x),
        lambda x: flow.stack([row.sum() for row in x]),  # its length is known: the loop is unrolled
    ],
)
def test_allowed_branches_and_loops(function, setup):
    assert bits(setup.graph(lambda self, x: function(x))(setup.x)) == bits(function(setup.x))


@pytest.mark.parametrize("pick", [lambda x: x[x > 0], lambda x: x.nonzero(), lambda x: flow.masked_select(x, x > 0)])
def test_data_dependent_shape(pick, setup):
    graph = setup.graph(lambda self, x: pick(x))
    with pytest.raises(TraceError) as caught:
        graph(setup.x)
    error = caught.value
    assert "the shape of the result depends on elements" in error.what and line_of(pick) in error.where
    assert re.search(r"\[4, 20\]|\[80\]", error.values["x"]) and "flow.where(mask, x, 0) keeps the shape" in error.hint
    assert pick(setup.x).ndim


@pytest.mark.filterwarnings("ignore:.*build uses")
def test_printing_a_symbolic_tensor_is_allowed(setup):
    seen = []

    def build(self, x):
        h = self.model(x)
        seen.append((repr(h), str(h), f"{h}", h.shape, h.dtype, len(h), h.requires_grad))
        return h

    setup.graph(build)(setup.x)
    text, *others, shape, dtype, size, needs = seen[0]
    assert text.startswith("tensor(..., is_lazy='True', size=(4, 5), dtype=minflow.float32") and others == [text, text]
    assert (shape, dtype, size, needs) == ((4, 5), flow.float32, 4, True)


def test_input_written_in_place(setup):
    def build(self, x):
        x.add_(1)
        return self.model(x)

    before, graph = bits(setup.x), setup.graph(build)
    with pytest.warns(
        MinflowWarning, match=r"an input of a graph is written in place[\s\S]*float32\[4, 20\]  \(input x\)"
    ) as told:
        results = [bits(graph(setup.x)) for _ in range(2)]
    assert len(told) == 1 and bits(setup.x) == before
    assert results[0] == results[1] == bits(setup.model(setup.x + 1))


# ---- graphs inside graphs --------------------------------------------------------------------------------------------


def test_graph_called_inside_a_build(setup):
    inner = Predict(setup.model)

    def build(self, x):
        return inner(x)

    refused(
        setup,
        build,
        TraceError,
        rf"^{inner.name} is called inside the build of Learner_\d+",
        {"input": r"float32\[4, 20\]  \(input x\)"},
        "call the Module that both use",
        optimizer=False,
    )
    assert not inner.is_compiled and bits(inner(setup.x)) == bits(setup.model(setup.x))


# ---- outputs of build -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, path, shown, hint, result",
    [
        ("an int", "", "3", "return tensors only", 3),
        ("a str", "", "'a'", "return tensors only", "a"),
        ("an ndarray", "", r"array\(\[0.\]\)", "return tensors only", np.zeros(1)),
        ("a ReLU", "", r"ReLU\(\)", "return tensors only", nn.ReLU()),
        ("a set", "", r"\{3\}", "a list or a tuple of tensors", {3}),
        ("a float", "[1]", "0.5", "return tensors only", (None, 0.5)),
        ("a bool", "['a']['b']", "True", "return tensors only", {"a": {"b": True}}),
    ],
)
def test_unsupported_outputs(kind, path, shown, hint, result, setup):
    def build(self, x):
        return (self.model(x), result)[1]

    refused(
        setup,
        build,
        GraphError,
        rf"^Learner_\d+: build returns {kind}; a graph returns tensors and None",
        {f"output{path}": shown, "build": "at @def"},
        hint,
        optimizer=False,
        at_call=True,
    )
