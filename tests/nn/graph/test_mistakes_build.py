"""Mistakes inside build: backward and steps, numbers of symbolic tensors, what build returns.

Each is told with its values, the line and a hint, and leaves model, optimizer and graph as they were.
Read next: `test_mistakes_leaks.py`.
"""

import math
import re

import numpy as np
import pytest
from graph_mistakes import Setup, line_of, told
from graph_models import MLP, Predict, bits, eager_step, state_bits

import minflow as flow
from minflow import nn
from minflow.core.base.errors import DeviceError, DTypeError, GradError, GraphError, MinflowWarning, TraceError


@pytest.fixture
def setup():
    found = Setup()
    yield found
    assert flow.ones(2).sum().item() == 2, "the mode of a build is still on"
    found.goes_on()


def made(function):
    return rf"  \(made at {line_of(function)}\)".replace(".", r"\.")


def refused(setup, build, kind, what, values, hint, optimizer=True, at=None):
    """A graph of this build is refused, twice in the same words, and nothing moves."""
    before = setup.state()
    graph = setup.graph(build, *[setup.optimizer] * optimizer)
    inputs = (setup.x, setup.y)[: build.__code__.co_argcount - 1]

    def call():
        graph(*inputs)

    for _ in range(2):
        with told(kind, what, values, hint, call if at == "call" else build) as caught:
            call()
        assert caught.value.__notes__[0].startswith(f"while building {graph.name}: in ")
        assert setup.state() == before and not graph.is_compiled and not graph._plans
    return graph


# ---- backward and steps ----------------------------------------------------------------------------------------------


def test_an_optimizer_without_backward(setup):
    def build(self, x, y):
        return self.loss_fn(self.model(x), y)

    place = line_of(build).rpartition(":")
    at = f"at {place[0]}:{int(place[2]) - 1}"
    refused(
        setup,
        build,
        GraphError,
        "has an optimizer, and its build calls no backward",
        {"optimizer": "SGD", "build": at},
        "loss.backward() in build, before return loss",
        at="call",
    )


def test_backward_without_an_optimizer(setup):
    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()  # here
        return loss

    what, values = r"build calls backward\(\), and the graph has no optimizer", {"backward": f"at {line_of(build)}"}
    graph = refused(
        setup, build, GraphError, what, values, "self.add_optimizer(optimizer) in", optimizer=False, at="call"
    )
    graph.add_optimizer(setup.optimizer)
    assert graph(setup.x, setup.y).shape == ()


def test_backward_on_what_is_no_scalar(setup):
    def build(self, x, y):
        out = self.model(x) * 2
        out.backward()  # here
        return out

    place = line_of(build).rpartition(":")
    refused(setup, build, GradError, "only a scalar has one gradient, and this tensor has 20 numbers",
            {"output": rf"float32\[4, 5\]  \(made at {place[0]}:{int(place[2]) - 1}\)"},
            "reduce it first: .sum() or .mean()")


def test_backward_twice(setup):
    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward(), loss.backward()  # here
        return loss

    refused(
        setup,
        build,
        GradError,
        "backward a second time: what softmax_cross_entropy saved was freed by the first backward",
        {"op": r"softmax_cross_entropy, made at .*", "first backward": line_of(build)},
        "retain_graph=True",
    )


@pytest.mark.filterwarnings("ignore:.*build uses")
@pytest.mark.parametrize("options", [{"retain_graph": True}, {"create_graph": True}])
def test_backward_twice_where_eager_may(options, setup):
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


def test_backward_of_a_tensor_from_before(setup):
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
        {"tensor": r"float32\[\]  \(made at .*\)"},
        "compute the loss in build",
    )
    assert w.grad is None
    before.backward()
    assert w.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("lose", [lambda t: t.detach(), lambda t: flow.ones(4, 5)])
def test_a_loss_without_gradients(lose, setup):
    def build(self, x, y):
        loss = self.loss_fn(lose(self.model(x)), y)
        loss.backward()  # here
        return loss

    refused(
        setup,
        build,
        GradError,
        "not computed from anything that requires grad",
        {"output": r"float32\[\]  \(made at .*\)"},
        "it is lost by .detach()",
    )


def test_a_loss_under_no_grad(setup):
    def build(self, x, y):
        with flow.no_grad():
            loss = self.loss_fn(self.model(x), y)
        loss.backward()  # here
        return loss

    refused(
        setup,
        build,
        GradError,
        "not computed from anything that requires grad",
        {"output": r"float32\[\]  \(made at .*\)"},
        "under no_grad",
    )


def test_a_loss_of_other_parameters(setup):
    other = MLP()

    def build(self, x, y):
        loss = self.loss_fn(other(x), y)
        loss.backward()  # here
        return loss

    refused(
        setup,
        build,
        GraphError,
        "backward reaches none of the 4 parameters of SGD",
        {"backward": f"at {line_of(build)}"},
        "compute the loss from what the model gives",
        at="call",
    )


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
def test_what_the_graph_does_by_itself(what, hint, act, setup):
    scheduler = flow.optim.lr_scheduler.StepLR(setup.optimizer, 3)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        act(self, setup, scheduler)
        return loss

    graph, before = setup.graph(build, setup.optimizer), (setup.state(), scheduler.state_dict())
    with told(GraphError, what, {"graph": graph.name}, hint, act):
        graph(setup.x, setup.y)
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
        setup, build, GraphError, "the config of a graph is set inside build", {"value": "2"}, "in __init__",
        optimizer=False
    )
    assert graph.config.accumulation == 1


# ---- numbers of symbolic tensors -------------------------------------------------------------------------------------

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
def test_numbers_that_are_not_there(verb, hint, ask, setup):
    def build(self, x):
        t = self.model(x).sum()  # here
        ask(t)
        return t

    graph = setup.graph(build)
    with told(
        TraceError, rf"^{verb}\(\) asks a symbolic tensor for its numbers", {"tensor": r"float32\[\]" + made(build)},
        hint, ask
    ):
        graph(setup.x)
    ask(flow.tensor(1))  # a plain tensor may be asked


def test_branching_and_looping_on_a_comparison(setup):
    def branch(self, x):
        if x.mean() > 0:  # here
            return self.model(x)
        return x

    def loop(self, x):
        while (x > 3).any():  # here
            x = x / 2
        return x

    for build in (branch, loop):
        refused(
            setup, build, TraceError, r"^bool\(\) asks", {"tensor": r"bool\[\]" + made(build)}, "flow.where",
            optimizer=False
        )
    graph = setup.graph(lambda self, x: flow.where(x.mean() > 0, x, -x))
    assert bits(graph(setup.x)) == bits(flow.where(setup.x.mean() > 0, setup.x, -setup.x))


def test_for_over_a_symbolic_tensor(setup):
    def scalar(self, x):
        return [t for t in x.sum()]  # here

    values = {"tensor": r"float32\[\]" + made(scalar)}
    refused(setup, scalar, DTypeError, "iteration over a 0-d tensor", values, "one number", optimizer=False)
    # its length is known: the loop is unrolled
    rows = setup.graph(lambda self, x: flow.stack([row.sum() for row in x]))
    assert bits(rows(setup.x)) == bits(flow.stack([row.sum() for row in setup.x]))


@pytest.mark.parametrize("pick", [lambda x: x[x > 0], lambda x: x.nonzero(), lambda x: flow.masked_select(x, x > 0)])
def test_a_shape_that_depends_on_numbers(pick, setup):
    graph = setup.graph(lambda self, x: pick(x))
    with pytest.raises(TraceError) as caught:
        graph(setup.x)
    error = caught.value
    assert "the shape of the result would depend on numbers" in error.what and line_of(pick) in error.where
    assert re.search(r"\[4, 20\]|\[80\]", error.values["x"]) and "flow.where(mask, x, 0) keeps the shape" in error.hint
    assert pick(setup.x).ndim


@pytest.mark.filterwarnings("ignore:.*build uses")
def test_looking_at_a_symbolic_tensor_is_allowed(setup):
    seen = []

    def build(self, x):
        h = self.model(x)
        seen.append((repr(h), str(h), f"{h}", h.shape, h.dtype, len(h), h.requires_grad))
        return h

    setup.graph(build)(setup.x)
    text, *others, shape, dtype, size, needs = seen[0]
    assert text.startswith("tensor(..., is_lazy='True', size=(4, 5), dtype=minflow.float32") and others == [text, text]
    assert (shape, dtype, size, needs) == ((4, 5), flow.float32, 4, True)


def test_another_device(setup):
    def build(self, x):
        return self.model(x.to("cuda"))

    refused(
        setup, build, DeviceError, "there is no device cuda:0 here", {"available": "cpu"}, "flow.cuda.is_available()",
        optimizer=False
    )


def test_an_input_written_in_place(setup):
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


def test_a_graph_called_inside_a_build(setup):
    inner = Predict(setup.model)

    def build(self, x):
        return inner(x)

    what, values = rf"^{inner.name} is called inside the build of Learner_\d+", {
        "input": r"float32\[4, 20\]  \(input x\)"
    }
    refused(setup, build, TraceError, what, values, "call the Module that both use", optimizer=False)
    assert not inner.is_compiled and bits(inner(setup.x)) == bits(setup.model(setup.x))


def test_a_graph_that_calls_itself(setup):
    def build(self, x):
        return self(x)

    refused(
        setup,
        build,
        TraceError,
        r"^(Learner_\d+) is called inside the build of \1",
        {"input": r"float32\[4, 20\]  \(input x\)"},
        "in build call the modules, self.model, self.loss_fn",
        optimizer=False,
    )


# ---- what build returns ----------------------------------------------------------------------------------------------


def test_build_without_return(setup):
    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()

    name, _, number = line_of(build).rpartition(":")
    refused(setup, build, GraphError, r"^Learner_\d+: build returns None", {"build": f"at {name}:{int(number) - 1}"},
            "return loss, or what else it computed", at="call")


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
def test_what_a_graph_cannot_give(kind, path, shown, hint, result, setup):
    def build(self, x):
        return (self.model(x), result)[1]

    name, _, number = line_of(build).rpartition(":")
    refused(setup, build, GraphError, rf"^Learner_\d+: build returns {kind}; a graph gives tensors and None",
            {f"output{path}": shown, "build": f"at {name}:{int(number) - 1}"}, hint, optimizer=False, at="call")
