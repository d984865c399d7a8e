"""Mistakes with the state and the settings of a graph; and settings that have no effect.

Each error has values, a line and a hint, and leaves model, optimizer and graph unchanged. Read next:
`test_mistakes_build.py`.
"""

import re

import numpy as np
import pytest
from graph_mistakes import Setup, assert_fails, assert_warns
from graph_models import Predict, TrainGraph, bits

import minflow as flow
from minflow import nn
from minflow.core.base.errors import GraphError, StateError
from minflow.nn.graph.config import NO_EFFECT
from minflow.nn.graph.messages import GraphAttributeError


@pytest.fixture
def setup():
    return Setup()


@pytest.mark.parametrize(
    "error, what, values, hint, wrong",
    [
        (StateError, "takes a dict, not None", {"state_dict": "None"}, "flow.load(path)", lambda s: None),
        (StateError, "takes a dict, not a str", {"state_dict": "'run/1'"}, "flow.load(path)", lambda s: "run/1"),
        (StateError, "takes a dict, not an MLP", {"state_dict": "an MLP"}, "flow.load(path)", lambda s: s.model),
        (
            StateError, "'model' is an int, not the state of a module", {"model": "3"}, "model.state_dict()",
            lambda s: {"model": 3}
        ),
        (StateError, "1 members missing, 1 entries unexpected", {"missing": "model", "unexpected": "modle"},
         "strict=False",
         lambda s: {"modle": {}}),
        (StateError, "1 members missing, 2 entries unexpected",
         {"missing": "model", "unexpected": "state, param_groups"},
         "model.load_state_dict", lambda s: s.optimizer.state_dict()),
        (StateError, "1 wrong of 4 entries of MLP; nothing was loaded",
         {"wrong": r"layers.0.bias: must be \[32\], got \[1\]"}, "the sizes that the state was saved from",
         lambda s: {"model": {**s.model.state_dict(), "layers.0.bias": flow.ones(1)}}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("called", [False, True])
def test_state_of_another_model(called, error, what, values, hint, wrong, setup):
    graph = TrainGraph(setup.model, setup.loss_fn, setup.optimizer)
    if called:
        graph(setup.x, setup.y)
    good, bad = graph.state_dict(), wrong(setup)

    assert_fails(lambda: graph.load_state_dict(bad), error, what, values, hint)
    kept = graph.state_dict()
    assert all(bits(kept["model"][name]) == bits(good["model"][name]) for name in good["model"])
    first = bits(graph(setup.x, setup.y))
    graph.load_state_dict(good)
    assert bits(graph(setup.x, setup.y)) == first


def test_graph_can_be_saved_only_after_a_call(setup, tmp_path):
    graph = Predict(setup.model)

    def save():
        flow.save(graph, tmp_path / "graph")

    values = {"graph": r"'Predict_\d+'"}
    assert_fails(
        save, GraphError, r"Predict_\d+ was never called", values, "call it once with an example of its inputs"
    )
    flow.save(graph.state_dict(), tmp_path / "graph")
    graph.load_state_dict(flow.load(tmp_path / "graph"))


@pytest.mark.parametrize(
    "use, name, hint",
    [
        (lambda c: c.enable_ampp(True), "enable_ampp", "config.enable_amp(...)"),
        (
            lambda c: c.gradient_accumulation_steps(2),
            "gradient_accumulation_steps",
            "config.set_gradient_accumulation_steps(...)",
        ),
        (lambda c: c.qwxzv, "qwxzv", "config.set_gradient_accumulation_steps(4)"),
        (lambda c: setattr(c, "static_input", True), "static_input", "config.static_inputs(...)"),
        (lambda c: setattr(c, "enable_amp", True), "enable_amp", "config.enable_amp(...)"),
    ],
)
def test_unknown_settings(use, name, hint, setup):
    graph = Predict(setup.model)
    assert_fails(
        lambda: use(graph.config),
        GraphAttributeError,
        f"^GraphConfig has no setting '{name}'",
        {"config": "GraphConfig.*"},
        hint,
        use,
    )
    assert repr(graph.config) == "GraphConfig(training=False, )"
    graph.config.set_gradient_accumulation_steps(2)
    assert graph(setup.x).shape == (4, 5)


@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True, None])
def test_invalid_accumulation_steps(value, setup):
    graph = Predict(setup.model)

    assert_fails(
        lambda: graph.config.set_gradient_accumulation_steps(value),
        GraphError,
        "an int of 1 or more",
        {"value": repr(value)},
        "set_gradient_accumulation_steps(4)",
    )
    assert graph.config.accumulation == 1


@pytest.mark.parametrize("name", list(NO_EFFECT))
def test_settings_without_effect(name, setup):
    graph = TrainGraph(setup.model, setup.loss_fn, setup.optimizer)

    def write():
        getattr(graph.config, name)(True)

    with assert_warns("^" + re.escape(f"config.{name} has no effect on a CPU; it is for {NO_EFFECT[name]}"), at=write):
        write()
    assert f"{name}=(ignored), " in repr(graph.config)
    graph(setup.x, setup.y)
    setup.check_next_step()


def test_grad_scaler_has_no_effect(setup):
    graph = TrainGraph(setup.model, setup.loss_fn, setup.optimizer)

    def write():
        graph.set_grad_scaler(flow.amp.GradScaler(init_scale=2.0**16))

    with assert_warns("^set_grad_scaler: a GradScaler, whose factor adapts, has no effect", at=write):
        write()
    graph(setup.x, setup.y)
    setup.check_next_step()


def test_static_grad_scaler(setup):
    graph = TrainGraph(setup.model, setup.loss_fn, setup.optimizer)
    graph.set_grad_scaler(flow.amp.StaticGradScaler(2.0**10))
    assert "loss_scale=1024, " in repr(graph.config)
    graph(setup.x, setup.y)
    setup.check_next_step()
    graph.set_grad_scaler()
    assert graph.config.loss_scale == 1
    with pytest.raises(flow.MinflowError, match="scale_factor must be above 0, got -1"):
        flow.amp.StaticGradScaler(-1)


@pytest.mark.parametrize("steps", [1, 2])
def test_static_grad_scaler_keeps_small_gradients_in_half_precision(steps):
    layer = nn.Linear(4, 3)

    class Half(nn.Graph):
        def __init__(self):
            super().__init__()
            self.layer = layer
            self.add_optimizer(flow.optim.SGD(layer.parameters(), lr=0.0))
            self.config.set_gradient_accumulation_steps(steps)

        def build(self, x):
            with flow.autocast("cpu", dtype=flow.float16):
                loss = (self.layer(x).float() * 1e-8).sum()  # below the smallest float16
            loss.backward()
            return loss

    graph, x = Half(), flow.ones(8, 4)
    graph(x)
    assert graph.grads["layer.weight"].abs().sum() == 0
    graph.set_grad_scaler(flow.amp.StaticGradScaler(2.0**12))
    graph(x)
    assert np.allclose(graph.grads["layer.weight"].numpy(), 8e-8 / steps, rtol=1e-2)
