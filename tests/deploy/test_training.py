"""Optimizers and schedules as data and back: training continues with the same bits at every step."""

import copy
import json
import math

import numpy as np
import pytest

import minflow as flow
from minflow import GraphFormatError, nn
from minflow.deploy.training import built_in
from minflow.deploy.training.optimizers import optimizers_as_data, optimizers_from_data, state_names
from minflow.deploy.training.settings import config_as_data, config_from_data
from tests.cases import Cases
from tests.deploy.saved import changed
from tests.exported_cases import OPTIMIZERS, SCHEDULES, exported, optimizers, s, schedules
from tests.graphs import bits

X = np.random.default_rng(2).standard_normal((5, 4)).astype("float32")


class Training(nn.Graph):
    def __init__(self, model, *optimizers):
        super().__init__()
        self.model = model
        for optimizer, schedulers in optimizers:
            self.add_optimizer(optimizer, lr_sch=schedulers)

    def build(self, x):
        loss = (self.model(x) ** 2).mean()
        loss.backward()
        return loss


def new_model():
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))


def two_groups(model, kind, **options):
    """Two groups with different hyperparameters, one of them clipped."""
    first, last = model[0].parameters(), model[2].parameters()
    return kind([{"params": first, "clip_grad_max_norm": 0.1}, {"params": last, "lr": 0.02}], **options)


def graph_of(kind=flow.optim.SGD, change=lambda optimizer: None, **options):
    """A graph with an optimizer of all parameters, whose options are changed afterwards."""
    model = new_model()
    optimizer = kind(model.parameters(), **{"lr": 0.1, **options})
    graph = Training(model, (optimizer, []))
    change(optimizer)
    return graph


def scheduled(make, **options):
    """A graph with an optimizer of two groups and the schedule, or list of schedules, that `make` returns for it."""
    model = new_model()
    optimizer = two_groups(model, flow.optim.SGD, lr=0.1, **options)
    scheduler = make(optimizer)
    return Training(model, (optimizer, scheduler if isinstance(scheduler, list) else [scheduler]))


def eager_step(graph):
    """One step without compiling, like the graph's own."""
    loss = (graph.model(flow.tensor(X)) ** 2).mean()
    for optimizer, _ in graph.optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer, schedulers in graph.optimizers:
        optimizer.clip_grad()
        optimizer.step()
        for scheduler in schedulers:
            scheduler.step()


def through_text(graph):
    """A graph with another model of the same elements, and optimizers that were converted to text and back."""
    model = copy.deepcopy(graph.model)
    data, tensors = optimizers_as_data(graph)
    text = json.dumps(data, allow_nan=False)
    again = json.loads(text)
    assert sorted(state_names(data)) == sorted(tensors)
    parameters = dict(model.named_parameters(prefix="model"))
    restored = Training(model, *optimizers_from_data(again, parameters, {n: t.numpy() for n, t in tensors.items()}))
    assert json.dumps(optimizers_as_data(restored)[0], allow_nan=False) == text
    return restored


def everything(graph):
    """All bits that a step changes."""
    return bits(
        [
            graph.state_dict(),
            [o._learning_rates() for o, _ in graph.optimizers],
            [s.state_dict() for _, schedulers in graph.optimizers for s in schedulers],
        ]
    )


def same_at_each_step(graph, other, steps):
    for _ in range(steps):
        eager_step(graph)
        eager_step(other)
        assert everything(graph) == everything(other)


STEPS = {0: 1, 1: 6, 7: 5}  # before conversion to text: the steps that are compared afterwards


@pytest.mark.parametrize("name", optimizers())
def test_optimizers(name):
    with Cases() as case:
        for options in [{}, *OPTIMIZERS.get(name, [])]:
            model = new_model()
            optimizer = two_groups(model, getattr(flow.optim, name), **options)
            graph = Training(model, (optimizer, []))
            names = set(optimizer._state_names(optimizer.param_groups[0]))
            assert names <= set(built_in.OPTIMIZERS[type(optimizer)].split())
            for steps, more in STEPS.items():
                with case(f"{name} {options} after {steps} steps"):
                    other = through_text(graph)
                    restored = other.optimizers[0][0]
                    assert restored._steps_taken == steps and type(restored) is type(optimizer)
                    same_at_each_step(graph, other, more)


MORE = {
    "MultiStepLR twice": lambda o: s.MultiStepLR(o, [2, 2, 4], 0.5),
    "WarmupLR of a schedule": lambda o: s.WarmupLR(s.CosineDecayLR(o, 9), 0.1, 2, warmup_prefix=True),
    "WarmupLR constant": lambda o: s.WarmupLR(o, 0.5, 3, "constant"),
    "WarmupLR along": lambda o: s.WarmupLR(s.StepLR(o, 3), 0.1, 2, "constant"),
    "PolynomialLR of OneFlow": lambda o: s.PolynomialLR(o, steps=3, end_learning_rate=1e-3, cycle=True),
    "OneCycleLR in epochs": lambda o: s.OneCycleLR(
        o, 0.3, epochs=3, steps_per_epoch=5, cycle_momentum=False, three_phase=True, anneal_strategy="linear"
    ),
    "CyclicLR by range": lambda o: s.CyclicLR(o, [0.1, 0.2], 0.3, 2, 3, "exp_range", 0.9, cycle_momentum=False),
    "CosineAnnealingWarmRestarts falling": lambda o: s.CosineAnnealingWarmRestarts(
        o, 2, 1, decay_rate=0.5, restart_limit=3
    ),
    "SequentialLR not anew": lambda o: s.SequentialLR(o, [s.StepLR(o, 2), s.ExponentialLR(o, 0.5)], [3], False),
    "nested": lambda o: s.SequentialLR(
        o,
        [
            s.SequentialLR(o, [s.StepLR(o, 1, 0.5), s.CosineAnnealingLR(o, 4)], [2]),
            s.ChainedScheduler([s.ExponentialLR(o, 0.9), s.StepLR(o, 2)]),
        ],
        [4],
    ),
    "SWALR": lambda o: flow.optim.swa_utils.SWALR(o, [0.05, 0.01], 4),
    "StepLR to infinity": lambda o: s.StepLR(o, 1, -1e300),
}
REFUSED = ("LambdaLR", "MultiplicativeLR")
CASES = {name: make for name, make in SCHEDULES.items() if name not in REFUSED} | MORE


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::minflow.MinflowWarning")
def test_schedules(name):
    with Cases() as case:
        for steps in STEPS:
            with case(f"{name} after {steps} steps"):
                graph = scheduled(CASES[name], momentum=0.9)
                ((optimizer, (scheduler,)),) = graph.optimizers
                if name == "StepLR to infinity":
                    scheduler.gamma = 1e300
                for _ in range(steps):
                    eager_step(graph)
                ((other, (twin,)),) = through_text(graph).optimizers
                for _ in range(8 - steps if "OneCycleLR" in name else 20):  # which ends
                    for each, schedule in ((optimizer, scheduler), (other, twin)):
                        each.step()
                        schedule.step()
                    assert optimizer._learning_rates() == other._learning_rates()
                    assert scheduler.get_last_lr() == twin.get_last_lr()


def test_tables_have_every_built_in_class():
    assert {kind.__name__ for kind in built_in.OPTIMIZERS} == set(optimizers())
    known = {kind.__name__ for kind in built_in.SCHEDULES}
    assert known == set(schedules()) - set(REFUSED) | {*exported(flow.optim.swa_utils, s.LRScheduler)}


def test_extra_param_group_options():
    model = new_model()
    named = [("weight", model[0].weight), ("bias", model[0].bias)]
    groups = [
        {"params": named, "name": "first", "lr": np.float32(0.1), "scale": [1, 2.5, None]},
        {
            "params": list(model[2].named_parameters()),
            "clip_grad_max_norm": flow.tensor(2.0),
            "clip_grad_norm_type": math.inf,
        },
    ]
    optimizer = flow.optim.Adam(groups, lr=1, betas=[0.5, 0.9], amsgrad=1)
    group, second = through_text(Training(model, (optimizer, []))).optimizers[0][0].param_groups
    assert group["name"] == "first" and group["scale"] == [1, 2.5, None] and group["lr"] == float(np.float32(0.1))
    assert group["param_names"] == ["weight", "bias"] and group["betas"] == (0.5, 0.9) and group["amsgrad"] is True
    assert second["clip_grad_max_norm"] == 2.0 and second["clip_grad_norm_type"] == math.inf and second["lr"] == 1


def test_state_after_option_changes():
    """Buffers of a disabled option exist again when it is re-enabled."""
    graph = graph_of(momentum=0.9)
    eager_step(graph)
    graph.optimizers[0][0].param_groups[0]["momentum"] = 0.0
    other = through_text(graph)
    for each in (graph, other):
        each.optimizers[0][0].param_groups[0]["momentum"] = 0.9
    same_at_each_step(graph, other, 2)


def test_tied_parameters_are_written_once():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    graph = Training(model, (flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []))
    eager_step(graph)
    (entry,), tensors = optimizers_as_data(graph)
    assert entry["groups"][0]["params"] == ["model.0.weight", "model.0.bias", "model.1.bias"]
    assert list(tensors) == [f"{name}-momentum_buffer" for name in entry["groups"][0]["params"]]
    same_at_each_step(graph, through_text(graph), 2)


# ---- refused when saving ---------------------------------------------------------------------------------------------


class Mine(flow.optim.SGD):
    pass


class MyStep(s.StepLR):
    pass


def same_twice(o):
    inner = s.ExponentialLR(o, 0.9)
    return s.ChainedScheduler([inner, inner])


def with_attribute(name, value):
    """A function that makes a schedule with this attribute."""

    def make(o):
        scheduler = s.StepLR(o, 2)
        setattr(scheduler, name, value)
        return scheduler

    return make


def scaled(o):
    return s.CyclicLR(o, 0.1, 0.2, 2, scale_fn=lambda cycle: 0.5, cycle_momentum=False)


REFUSALS = {
    "a lambda": (lambda: scheduled(lambda o: s.LambdaLR(o, lambda k: 0.9)), "LambdaLR holds a function.*MultiStepLR"),
    "a product": (lambda: scheduled(lambda o: s.MultiplicativeLR(o, lambda k: 0.9)), "MultiplicativeLR holds"),
    "a lambda inside": (lambda: scheduled(lambda o: s.ChainedScheduler([s.LambdaLR(o, lambda k: 0.9)])), "LambdaLR"),
    "a subclass": (lambda: scheduled(lambda o: MyStep(o, 2)), "MyStep is not a built-in schedule"),
    "own optimizer": (lambda: graph_of(Mine), "Mine is not a built-in optimizer"),
    "hooks": (lambda: graph_of(change=lambda o: o.register_step_post_hook(print)), "SGD has step hooks.*hooks +1"),
    "a step put on": (
        lambda: graph_of(change=lambda o: setattr(o, "_update_rule", print)),
        "SGD._update_rule was replaced",
    ),
    "a rate put on": (lambda: scheduled(with_attribute("get_lr", lambda: [0.1, 0.2])), "StepLR.get_lr is not part"),
    "a scale": (lambda: scheduled(scaled), "CyclicLR.scale_fn is not part"),
    "twice": (lambda: scheduled(same_twice), "the same ExponentialLR occurs twice"),
    "NaN": (lambda: scheduled(with_attribute("gamma", math.nan)), "gamma must be a number, got nan"),
    "an object": (
        lambda: graph_of(change=lambda o: o.param_groups[0].update(tag=object())),
        "'tag' of a group must be .*, got <object",
    ),
    "a loose parameter": (
        lambda: graph_of(change=lambda o: o.add_param_group({"params": nn.Parameter(flow.ones(2))})),
        "belongs to no module of the graph",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_unserializable_state_is_refused_by_name(name):
    make, words = REFUSALS[name]
    with pytest.raises(flow.GraphError, match=f"(?s)flow.save: Training_[0-9]+ cannot be saved.*{words}.*state_dict"):
        optimizers_as_data(make())


# ---- refused when loading --------------------------------------------------------------------------------------------


G, S = (0, "groups", 0), (0, "schedulers", 0)
DEEP = {
    "class": "ChainedScheduler",
    "verbose": False,
    "last_epoch": 0,
    "count": 1,
    "base_lrs": [0.1, 0.02],
    "rates": [0.1, 0.02],
}
HOSTILE = [
    ((), {"a": 1}), ((0,), None), ((0, "class"), "Optimizer"), ((0, "class"), "LBFGS"), ((0, "class"), ["SGD"]),
    ((0, "class"), "__import__"), ((0, "class"), "Adam"), ((0, "steps"), -1), ((0, "steps"), 2.0),
    ((0, "steps"), 1e999), ((0, "steps"), True),
    ((0, "steps"), 2**60), ((0, "more"), 1), ((0, "groups"), []), ((0, "groups"), ...),
    ((0, "defaults"), []), ((0, "defaults", "lr"), ...), ((0, "defaults", "lr"), "0.1"),
    ((0, "defaults", "extra"), {"lr": 1}),
    ((*G, "lr"), math.nan), ((*G, "lr"), -1.0), ((*G, "lr"), None), ((*G, "lr"), [0.1]), ((*G, "lr"), 10**400),
    ((*G, "lr"), {"float": "nan"}), ((*G, "lr"), {"float": "1"}), ((*G, "lr"), {"float": []}), ((*G, "lr"), math.inf),
    ((*G, "momentum"), True), ((*G, "nesterov"), 1), ((*G, "nesterov"), "yes"), ((*G, "rule"), 1),
    ((*G, "clip_grad_max_norm"), -1), ((*G, "initial_lr"), -0.5), ((*G, "extra"), None), ((*G, "extra"), {"lr": 1}),
    ((*G, "extra"), {"a": {"b": 1}}), ((*G, "extra"), {"x" * 10**6: 1}), ((*G, "extra"), {"x": "y" * 10**6}),
    ((*G, "params"), "model.0.weight"), ((*G, "params", 0), "model.9.weight"), ((*G, "params", 0), 3),
    ((*G, "params", 1), "model.0.weight"), ((*G, "params", 1), "model.2.weight"), ((*G, "param_names"), ["a"]),
    ((0, "state"), []), ((0, "state", "model.9.weight"), ["momentum_buffer"]),
    ((0, "state", "model.0.weight"), ["__class__"]), ((0, "state", "model.0.weight"), ["step"]),
    ((0, "state", "model.0.weight"), "momentum_buffer"), ((0, "schedulers"), {}), ((*S, "class"), "LambdaLR"),
    ((*S, "class"), "SGD"), ((*S, "class"), ...), ((*S, "class"), {}), (S, DEEP), (S, DEEP | {"schedulers": []}),
    (S, DEEP | {"schedulers": [7]}), ((*S, "step_size"), 0), ((*S, "step_size"), 1.5), ((*S, "gamma"), math.nan),
    ((*S, "gamma"), "0.1"), ((*S, "count"), -1), ((*S, "last_epoch"), -21), ((*S, "rates"), [0.1]),
    ((*S, "rates"), [0.1, {"float": "nan"}]), ((*S, "base_lrs"), [0.1, -0.1]), ((*S, "base_lrs"), None),
    ((*S, "optimizer"), 1), ((*S, "get_lr"), "x"), ((*S, "verbose"), 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def saved():
    graph = scheduled(lambda o: s.StepLR(o, 2), momentum=0.9)
    eager_step(graph)
    data, tensors = optimizers_as_data(graph)
    return json.loads(json.dumps(data)), tensors, dict(graph.model.named_parameters(prefix="model"))


@pytest.mark.parametrize("case", range(len(HOSTILE)), ids=lambda i: f"{HOSTILE[i][0]} {HOSTILE[i][1]!r}"[:70])
def test_hostile_data_is_one_error(saved, case):
    (path, value), (data, tensors, parameters) = HOSTILE[case], saved
    with pytest.raises(GraphFormatError, match=r"meta\.json: .*must be"):
        optimizers_from_data(changed(data, path, value), parameters, tensors)


def nested(depth):
    innermost = {"class": "ExponentialLR", **{k: v for k, v in DEEP.items() if k != "class"}, "gamma": 0.9}
    for _ in range(depth):
        innermost = DEEP | {"schedulers": [innermost]}
    return innermost


def test_nested_schedules(saved):
    data, tensors, parameters = saved
    optimizers_from_data(changed(data, S, nested(20)), parameters, tensors)
    for depth in (21, 500):
        with pytest.raises(GraphFormatError, match="at most 20 nested schedules"):
            optimizers_from_data(changed(data, S, nested(depth)), parameters, tensors)


@pytest.mark.parametrize("state", [None, np.zeros(4, "float32"), np.zeros((3, 4)), np.zeros((3, 4), "int32")])
def test_mismatched_states_are_refused(saved, state):
    data, tensors, parameters = saved
    name = "model.0.weight-momentum_buffer"
    others = {key: x for key, x in tensors.items() if key != name} | ({} if state is None else {name: state})
    found = "nothing" if state is None else str(state.dtype)
    with pytest.raises(GraphFormatError, match=rf"{name} must be a state that is float32\[3, 4\](?s:.*){found}"):
        optimizers_from_data(data, parameters, others)


@pytest.mark.parametrize("steps", [math.nan, -1, 1.5, math.inf])
def test_invalid_counts_are_refused(steps):
    graph = graph_of(flow.optim.Adam)
    eager_step(graph)
    data, tensors = optimizers_as_data(graph)
    tensors["model.0.weight-step"] = np.float32(steps)
    with pytest.raises(GraphFormatError, match="model.0.weight-step must be a number of steps"):
        optimizers_from_data(data, dict(graph.model.named_parameters(prefix="model")), tensors)


def test_parameter_of_two_optimizers(saved):
    data, tensors, parameters = saved
    with pytest.raises(GraphFormatError, match=r"optimizers\[1\] must be a parameter in one group of one optimizer"):
        optimizers_from_data([*data, *data], parameters, tensors)


def test_state_is_a_copy(saved):
    data, tensors, parameters = saved
    array = tensors["model.0.weight-momentum_buffer"].numpy().copy()
    array.flags.writeable = False
    ((optimizer, _),) = optimizers_from_data(data, parameters, tensors | {"model.0.weight-momentum_buffer": array})
    state = optimizer.state[parameters["model.0.weight"]]["momentum_buffer"]
    assert state.array is not array and state.array.flags.writeable


# ---- settings of the graph -------------------------------------------------------------------------------------------


def configured():
    graph = graph_of()
    graph.config.set_gradient_accumulation_steps(2)
    graph.config.static_inputs()
    graph.config.keep_gradients(False)
    graph.config.without_effect["enable_xla_jit"] = (True,)
    graph.repr_style = "v1"
    graph.passes.pop(0)
    graph.__dict__["_steps"] = 12
    return graph


def test_settings():
    graph = configured()
    flow.manual_seed(-5)
    flow.rand(3)
    state = flow.get_rng_state()
    data = json.loads(json.dumps(config_as_data(graph), allow_nan=False))
    other = graph_of()
    flow.manual_seed(0)
    config_from_data(data, other)
    assert repr(other.config) == repr(graph.config) and "accumulation_steps=2" in repr(other.config)
    assert other.passes == graph.passes and other.repr_style == "v1" and other._steps == 12
    np.testing.assert_array_equal(flow.get_rng_state(), state)
    assert config_as_data(other) == data
    config_from_data(data | {"without_effect": ["enable_zero", "enable_xla_jit"]}, other)  # of an older version
    assert config_as_data(other) == data


def test_settings_of_an_inference_graph():
    graph, other = Training(new_model()), Training(new_model())
    data = config_as_data(graph)
    assert "steps" not in data and "generator" not in data
    before = flow.get_rng_state()
    config_from_data(data, other)
    np.testing.assert_array_equal(flow.get_rng_state(), before)


def test_custom_pass_is_refused():
    def my_pass(graph):
        return graph

    graph = Training(new_model())
    graph.passes.append(my_pass)
    with pytest.raises(flow.GraphError, match=r"the pass my_pass(?s:.*)graph\.passes\.remove\(my_pass\)"):
        config_as_data(graph)


@pytest.mark.parametrize(("name", "value"), [
    ("accumulation", 0), ("accumulation", True), ("static", 1), ("gradients", None), ("without_effect", ["x"]),
    ("without_effect", None), ("repr_style", "v2"), ("passes", ["exec"]), ("passes", None), ("steps", -1),
    ("steps", 0.5), ("generator", [1]), ("generator", [1, 2**63]), ("generator", [1, -1.0]), ("more", 1),
    ("steps", ...),
])  # fmt: skip
def test_hostile_settings_are_one_error(name, value):
    graph = configured()
    data = config_as_data(graph)
    flow.manual_seed(3)
    before, style = flow.get_rng_state(), repr(graph)
    with pytest.raises(GraphFormatError, match=r"meta\.json: config"):
        config_from_data(changed(data, (name,), value), graph)
    np.testing.assert_array_equal(flow.get_rng_state(), before)
    assert repr(graph) == style
