"""Mistakes around a graph: defining it, adding optimizers, calling it.

Each error has values, a line and a hint, and leaves model, optimizer and graph unchanged. Read next:
`test_mistakes_settings.py`, and `test_mistakes_build.py` for mistakes in build.
"""

import functools
import re

import numpy as np
import pytest
from graph_mistakes import Setup, assert_fails, assert_warns
from graph_models import MLP, Predict, TrainGraph, bits

import minflow as flow
from minflow import nn
from minflow.core.base.errors import GradError, GraphError, ShapeError
from minflow.nn.graph.messages import GraphArgumentError, GraphAttributeError

StepLR = flow.optim.lr_scheduler.StepLR
HINT_SGD = "self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))"


@pytest.fixture
def setup():
    return Setup()


# ---- defining --------------------------------------------------------------------------------------------------------


class MissingSuperInit(nn.Graph):
    """A graph whose __init__ does not call super().__init__() first."""

    def __init__(self, first=None, value=None):
        if first:
            setattr(self, first, value)  # here

    def build(self, x):
        return self.model(x)


@pytest.mark.parametrize("value", [nn.ReLU(), 3, [1]])
def test_attribute_before_super_init(value):
    assert_fails(
        lambda: MissingSuperInit("model", value),
        GraphError,
        "^MissingSuperInit is given the attribute 'model' before nn.Graph.__init__",
        {"graph": "MissingSuperInit"},
        "super().__init__() as the first line of MissingSuperInit.__init__",
        MissingSuperInit.__init__,
    )


@pytest.mark.parametrize(
    "what, use",
    [
        ("is called", lambda g, s: g(s.x)),
        ("is given an optimizer", lambda g, s: g.add_optimizer(s.optimizer)),
        ("is given the attribute 'rate'", lambda g, s: setattr(g, "rate", 3)),
    ],
)
def test_use_before_super_init(what, use, setup):
    graph = MissingSuperInit()
    assert_fails(
        lambda: use(graph, setup),
        GraphError,
        f"^MissingSuperInit {what} before",
        {"graph": "MissingSuperInit"},
        "super().__init__()",
        use,
    )
    nn.Graph.__init__(graph)
    graph.model = setup.model
    assert bits(graph(setup.x)) == bits(setup.model(setup.x))


def test_reading_before_super_init():
    assert_fails(
        lambda: MissingSuperInit().model,
        GraphAttributeError,
        "^MissingSuperInit is asked for model before",
        {"graph": "MissingSuperInit"},
        "super().__init__()",
    )
    assert not hasattr(MissingSuperInit(), "model") and "not initialized" in repr(MissingSuperInit())


@pytest.mark.parametrize(
    "name, what, hint",
    [
        ("forward", "^Net has a forward, and a graph has a build", "rename Net.forward to build"),
        ("biuld", "^Net has no build", "rename Net.biuld to build"),
        ("Build", "^Net has no build", "rename Net.Build to build"),
        ("compute", "^Net has no build", "def build(self, x): return self.model(x)"),
    ],
)
def test_missing_build(name, what, hint, setup):
    Net = type("Net", (nn.Graph,), {name: lambda self, x: self.model(x)})
    graph = Net()
    graph.model = setup.model

    assert_fails(lambda: graph(setup.x), GraphError, what, {"graph": r"Net_\d+"}, hint)
    Net.build = vars(Net)[name]
    assert bits(graph(setup.x)) == bits(setup.model(setup.x))


TAKEN = ["name", "config", "add_optimizer", "state_dict", "nodes", "_plans"]
LACKING = [
    ("forward", "graph(x): a call runs build"),
    ("train", "model.train() or model.eval()"),
    ("to", "model.to(...)"),
    ("parameters", "ask the Module that the graph holds"),
    ("zero_grad", "loss.backward() in build, self.add_optimizer(optimizer) in __init__"),
    ("modle", "did you mean model"),
    ("qwxzv", "it holds model"),
]
NO_OPTIMIZER = [  # (what it is, its repr, hint, the object)
    ("None", "None", HINT_SGD, lambda s: None),
    ("the class Adam", ".*Adam'>", "flow.optim.Adam(model.parameters(), lr=0.1)", lambda s: flow.optim.Adam),
    ("a float", "0.1", HINT_SGD, lambda s: 0.1),
    ("an MLP", "an MLP", HINT_SGD, lambda s: s.model),
    ("a list", "a list", "once for each", lambda s: [s.optimizer]),
    ("a StepLR", "a StepLR", "lr_sch=scheduler", lambda s: StepLR(s.optimizer, 3)),
]
NO_SCHEDULER = [
    ("the class StepLR", ".*StepLR'>", lambda s: StepLR),
    ("an int", "3", lambda s: 3),
    ("an SGD", "an SGD", lambda s: s.optimizer),
]
MISUSES = [  # (error class, sentence, values, hint, misuse)
    (
        GraphError,
        ": an optimizer is set as the attribute 'thing'",
        {"optimizer": "SGD"},
        "self.add_optimizer(optimizer)",
        lambda g, s: setattr(g, "thing", s.optimizer),
    ),
    (
        GraphError,
        ": a tensor is set as the attribute 'thing'",
        {"tensor": r"float32\[4, 20\]"},
        "register_buffer",
        lambda g, s: setattr(g, "thing", s.x),
    ),
    (
        GraphError,
        ": a tensor is set as the attribute 'thing'",
        {"weight": r"float32\[32, 20\]"},
        "a Module holds tensors",
        lambda g, s: setattr(g, "thing", s.model.layers[0].weight),
    ),
    (
        GraphError,
        r": the graph Predict_\d+ is set as the attribute 'thing', and a graph cannot contain another",
        {"inner": r"Predict_\d+"},
        "hold the Module that both use",
        lambda g, s: setattr(g, "thing", Predict(s.model)),
    ),
    *[
        (
            GraphError,
            f": '{name}' is a name of nn.Graph itself",
            {"value": "'mine'"},
            f"{name.strip('_')}_of_mine",
            lambda g, s, name=name: setattr(g, name, "mine"),
        )
        for name in TAKEN
    ],
    *[
        (
            GraphAttributeError,
            f" has no attribute '{name}'",
            {"graph": r"Predict_\d+"},
            hint,
            lambda g, s, name=name: getattr(g, name),
        )
        for name, hint in LACKING
    ],
    *[
        (
            GraphError,
            f".add_optimizer takes an optimizer, not {what}$",
            {"optimizer": shown},
            hint,
            lambda g, s, make=make: g.add_optimizer(make(s)),
        )
        for what, shown, hint, make in NO_OPTIMIZER
    ],
    *[
        (
            GraphError,
            f".* takes a learning rate scheduler, not {what}",
            {"lr_sch": shown},
            "StepLR(optimizer, 30)",
            lambda g, s, make=make: g.add_optimizer(s.optimizer, lr_sch=make(s)),
        )
        for what, shown, make in NO_SCHEDULER
    ],
    (
        GraphError,
        ".* the scheduler sets the learning rate of another optimizer",
        {"lr_sch": "StepLR of an SGD", "optimizer": "SGD"},
        "StepLR(optimizer, ...) of the optimizer that is added",
        lambda g, s: g.add_optimizer(s.optimizer, lr_sch=StepLR(flow.optim.SGD(s.model.parameters(), lr=1.0), 3)),
    ),
]


@pytest.mark.parametrize("kind, what, values, hint, misuse", MISUSES)
def test_misuse_is_refused_and_changes_nothing(kind, what, values, hint, misuse, setup):
    graph, before = Predict(setup.model), setup.state()[:2]  # a schedule changes the groups of its optimizer
    taken = [getattr(graph, name) for name in TAKEN]
    assert_fails(lambda: misuse(graph, setup), kind, f"^Predict{what}", values, hint, misuse)
    assert [getattr(graph, name) for name in TAKEN] == taken and setup.state()[:2] == before
    assert not graph.training and not graph.optimizers
    assert not any(hasattr(graph, name) for name in ("thing", *dict(LACKING)))
    graph.thing = 3
    assert bits(graph(setup.x)) == bits(setup.model(setup.x))
    setup.check_next_step()


def test_members_are_the_modules_themselves(setup):
    graph = Predict(setup.model)
    assert graph.model is setup.model and graph.model.state_dict().keys() == setup.model.state_dict().keys()
    handle = setup.model.to(nn.graph.GraphModule)

    assert_fails(
        lambda: handle.state_dict(),
        GraphAttributeError,
        "'state_dict' is not an attribute of the handle",
        {"handle of": "MLP"},
        "handle.origin.state_dict",
    )
    assert handle.to(nn.Module) is setup.model and handle.origin.state_dict().keys() == setup.model.state_dict().keys()


# ---- add_optimizer ---------------------------------------------------------------------------------------------------


def test_optimizer_added_twice(setup):
    graph = TrainGraph(setup.model, setup.loss_fn, setup.optimizer)
    for optimizer, shared in ((setup.optimizer, 4), (flow.optim.Adam([setup.model.layers[0].weight]), 1)):
        assert_fails(
            lambda: graph.add_optimizer(optimizer),  # noqa: B023
            GraphError,
            f": {shared} parameters are in an optimizer of this graph already",
            {"added": type(optimizer).__name__, "already": "SGD"},
            "each parameter in one optimizer",
        )
    assert len(graph.optimizers) == 1
    graph(setup.x, setup.y)
    setup.check_next_step()


def test_optimizer_of_other_parameters(setup):
    before = setup.state()
    graph = TrainGraph(setup.model, setup.loss_fn, flow.optim.Adam(MLP().parameters()))

    assert_fails(
        lambda: graph(setup.x, setup.y),
        GraphError,
        "4 of the 4 parameters of Adam are not in the graph",
        {
            "not in the graph": r"weight float32\[32, 20\], bias float32\[32\], .*",
            "in no optimizer": "model.layers.0.weight, model.layers.0.bias, model.layers.2.weight, model.layers.2.bias",
        },
        "flow.optim.Adam(model.parameters(), ...)",
    )
    assert setup.state() == before and not graph.is_compiled
    setup.check_next_step()


def test_layer_replaced_after_creating_the_optimizer(setup):
    setup.model.layers[2] = nn.Linear(32, 5)
    graph = TrainGraph(setup.model, setup.loss_fn, setup.optimizer)

    assert_fails(
        lambda: graph(setup.x, setup.y),
        GraphError,
        "2 of the 4 parameters of SGD are not in the graph",
        {
            "not in the graph": r"weight float32\[5, 32\], bias float32\[5\]",
            "in no optimizer": "model.layers.2.weight, model.layers.2.bias",
        },
        "when the model is complete",
    )
    setup.optimizer = flow.optim.SGD(setup.model.parameters(), lr=0.1, momentum=0.9)
    setup.check_next_step()


def test_optimizer_with_more_parameters_than_the_graph(setup):
    aside = nn.Linear(2, 2)
    before = bits(aside.weight)
    graph = TrainGraph(
        setup.model, setup.loss_fn, flow.optim.SGD([*setup.model.parameters(), *aside.parameters()], lr=0.1)
    )

    def call():
        graph(setup.x, setup.y)

    with assert_warns(
        r"2 of the 6 parameters of SGD .* never trained by it\n  not in the graph  weight, bias\n", at=call
    ):
        call()
    call()
    assert bits(aside.weight) == before
    setup.check_next_step()


# ---- calling it ------------------------------------------------------------------------------------------------------


def test_training_under_no_grad(setup):
    before, graph = setup.state(), TrainGraph(setup.model, setup.loss_fn, setup.optimizer)

    def call():
        with flow.no_grad():
            graph(setup.x, setup.y)  # here

    assert_fails(
        call,
        GraphError,
        "trains, and is called where no gradients are recorded",
        {"optimizer": "SGD"},
        "flow.no_grad()",
    )
    assert setup.state() == before
    setup.check_next_step()
    graph(setup.x, setup.y)
    after = setup.model.layers[0].weight.detach().clone()
    with pytest.raises(GraphError, match="no gradients are recorded"):
        call()
    assert bits(setup.model.layers[0].weight) == bits(after)


@pytest.mark.parametrize(
    "value, name, kind, shown, hint",
    [
        (3, "x", "an int", "3", "flow.tensor(3) for a number that changes"),
        (0.5, "x", "a float", "0.5", "flow.tensor(0.5)"),
        (True, "x", "a bool", "True", "flow.tensor(True)"),
        ("mean", "x", "a str", "'mean'", "an attribute of the graph"),
        (np.zeros(2), "x", "an ndarray", r"array\(\[0., 0.\]\)", "flow.from_numpy(array)"),
        (np.zeros((50, 20), "f4"), "x", "an ndarray", r"ndarray float32\[50, 20\]", "flow.from_numpy(array)"),
        (np.float32(2), "x", "a float32", r"np.float32\(2.0\)", "flow.tensor(number)"),
        (nn.ReLU(), "x", "a ReLU", r"ReLU\(\)", "self.model = model"),
        ({3}, "x", "a set", r"\{3\}", "a list or a tuple of tensors"),
        ((i for i in "a"), "x", "a generator", "a generator", "a list or a tuple of tensors"),
        (flow.float32, "x", "a DType", "minflow.float32", "an attribute of the graph"),
        ([None, 3], "x[1]", "an int", "3", "flow.tensor(3)"),
        ({"mask": {"size": "a"}}, "x['mask']['size']", "a str", "'a'", "an attribute of the graph"),
        (flow.Size([4, 20]), "x[0]", "an int", "4", "flow.tensor(4)"),
    ],
)
def test_input_must_be_a_tensor(value, name, kind, shown, hint, setup):
    graph = Predict(setup.model)
    calls = [lambda: graph(value), lambda: graph(x=value)]
    what = f": the input {re.escape(name)} is {kind}; a graph takes tensors and None"
    for call in [*calls, *calls]:
        error = assert_fails(call, GraphError, what, {name: shown}, hint)
        assert error.__context__ is None, "frames inside minflow are hidden from the learner"
        if not graph.is_compiled or call is calls[1]:
            assert bits(graph(setup.x)) == bits(setup.model(setup.x))


class TwoInputs(nn.Graph):
    def build(self, x, y, scale=None, *, shift=None):
        return x + y


@pytest.mark.parametrize(
    ("args", "kwargs", "what", "given"),
    [
        (1, (), "and y is missing", "x float32[4, 20]"),
        (0, (), "and x and y are missing", "nothing"),
        (0, "y", "and x is missing", "y=float32[4, 20]"),
        (
            4,
            (),
            "and 1 more is given by position",
            "x float32[4, 20], y float32[4, 20], scale float32[4, 20], float32[4, 20]",
        ),
        (
            5,
            (),
            "and 2 more are given by position",
            "x float32[4, 20], y float32[4, 20], scale " + ", ".join(["float32[4, 20]"] * 3),
        ),
        (1, "z", "and y is missing; it has no z", "x float32[4, 20], z=float32[4, 20]"),
        (2, "x", "and x is given twice", "x float32[4, 20], y float32[4, 20], x=float32[4, 20]"),
    ],
)
def test_arguments_must_match_build(args, kwargs, what, given, setup, capsys):
    graph = TwoInputs()
    call = lambda: graph(*[setup.x] * args, **dict.fromkeys(kwargs, setup.x))
    said = re.escape(f": build takes (x, y, scale=None, *, shift=None), {what}")
    values = {"build": r"at test_mistakes_graph.py:\d+", "got": re.escape(given)}
    error = assert_fails(call, GraphArgumentError, said, values, "graph(x, y)")
    assert isinstance(error, TypeError | GraphError) and error.__context__ is None
    assert not capsys.readouterr().out
    assert bits(graph(setup.x, y=setup.x)) == bits(setup.x + setup.x)


def test_wrapped_build_has_the_signature_of_its_wrapper(setup):
    def halved(build):
        @functools.wraps(build)
        def wrapper(self, x, y, other):
            return build(self, x, y)

        return wrapper

    class Wrapped(nn.Graph):
        @halved
        def build(self, x, y):
            return x + y

    assert bits(Wrapped()(setup.x, setup.x, setup.x)) == bits(setup.x + setup.x)
    with pytest.raises(TypeError, match=r"build takes \(x, y, other\), and other is missing"):
        Wrapped()(setup.x, setup.x)


def test_type_error_inside_build_is_unchanged(setup):
    class Wrong(nn.Graph):
        def build(self, x):
            return len(x, x)

    with pytest.raises(TypeError) as caught:
        Wrong()(setup.x)
    assert not isinstance(caught.value, GraphError)


@pytest.mark.parametrize(
    "change, values",
    [
        (lambda g, s: g(s.x[:3], s.y[:3]),
         {
             "x": r"float32\[4, 20\] at the first call, float32\[3, 20\] now",
             "y": r"int64\[4\] at the first call, int64\[3\] now"
         }),
        (lambda g, s: g(s.x, s.y.int()), {"y": r"int64\[4\] at the first call, int32\[4\] now"}),
        (lambda g, s: g(s.x, y=s.y), {"structure of the inputs": "not as at the first call"}),
    ],
)  # fmt: skip
def test_static_inputs(change, values, setup):
    graph = TrainGraph(setup.model, setup.loss_fn, setup.optimizer)
    graph.config.static_inputs(True)
    graph(setup.x, setup.y)
    weight = bits(setup.model.layers[0].weight)
    assert_fails(
        lambda: change(graph, setup),
        ShapeError,
        f"takes static inputs, and {len(values)} of them changed: {', '.join(values)}",
        values,
        "drop_last=True",
        change,
    )
    assert bits(setup.model.layers[0].weight) == weight
    graph(setup.x, setup.y)
    assert len(graph._history) == 1
    graph.config.static_inputs(False)
    change(graph, setup)
    assert len(graph._history) == 2


@pytest.mark.parametrize("train", [False, True])
def test_backward_on_a_graph_output(train, setup):
    graph = TrainGraph(setup.model, setup.loss_fn, setup.optimizer) if train else Predict(setup.model)
    result = graph(setup.x, setup.y) if train else graph(setup.x)

    assert_fails(
        lambda: result.backward(),
        GradError,
        f"this tensor is a result of {graph.name}, which has no tape",
        {"output": r"float32\[(4, 5)?\]"},
        "call loss.backward() inside build",
    )
    total = result.sum()
    with pytest.raises(GradError, match=r"(?s)not computed from anything that requires grad.*result of an nn\.Graph"):
        total.backward()
    setup.check_next_step()


def test_graph_without_operations_copies_its_input(setup):
    graph = setup.graph(lambda self, x: x)
    given = graph(setup.x)
    assert bits(given) == bits(setup.x) and given is not setup.x
    given.zero_()
    assert bits(graph(setup.x)) == bits(setup.x) != bits(given)
