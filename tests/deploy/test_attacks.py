"""Folders written by an attacker who knows the code: loading or each call is refused with one complete error; nothing
in them is executed, and nothing takes unbounded time or memory.

All hashes are valid. Random changes: `mutants.py`.
"""

import os

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import GraphFormatError, MinflowError
from minflow.io.files import SAVED_GRAPH
from tests.deploy.forged import changed, forge, zeros
from tests.graph_models import Step
from tests.measuring import peak

EXP = [("exp", ["%0"], {})]
CALL = {"module": 0, "depth": 0, "nodes": [0, 1], "in": {"tuple": [{"tuple": ["%0"]}, {"dict": []}]}, "out": "%1"}


def whole(error):
    assert error.what and error.where and error.hint and len(str(error)) < 30_000


def refused(path, *words):
    with pytest.raises(GraphFormatError) as caught:
        flow.load_graph(path)
    whole(caught.value)
    assert all(word in str(caught.value) for word in words), caught.value


def call_refused(path, *args, words=()):
    """Assert that it loads, and that each call ends with one of our errors."""
    graph = flow.load_graph(path)
    for _ in range(2):
        with pytest.raises(MinflowError) as caught:
            graph(*args)
        whole(caught.value)
        assert all(word in str(caught.value) for word in words), caught.value


def runs(path):
    """Assert that it loads, and that typical uses of a graph end soon."""
    graph = flow.load_graph(path)
    result = graph(*[flow.tensor(x) for x in zeros(path)])
    print(graph)
    graph.tree()
    return result


def module(path="m", kind="Linear", **more):
    return {"path": path, "class": kind, "training": False, **more}


# ---- names ----------------------------------------------------------------------------------------------------------

ATTRIBUTES = [
    "__class__",
    "__dict__",
    "__init__",
    "build",
    "passes",
    "replay",
    "_plans",
    "_document",
    "_named",
    "config",
    "_tensors",
    "_saved_frozen",
    "_last",
    "training",
    "name",
    "_modules_by_number",
    "structure",
    "__call__",
]


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_modules_cannot_shadow_graph_attributes(tmp_path, name):
    refused(forge(tmp_path / "x", nodes=EXP, modules=[module()], members={name: 0}), name)


@pytest.mark.parametrize("name", ["__class__", "__dict__", "forward", "_parameters", "_modules", "a.b", "extra_repr"])
@pytest.mark.parametrize("what", ["children", "parameters", "buffers"])
def test_modules_cannot_shadow_module_attributes(tmp_path, name, what):
    held = [({"name": "w", "kind": "parameter"}, np.ones(2, "f4"))]
    modules = [module(**{what: {name: int(what == "children")}}), module("m.x")]
    refused(forge(tmp_path / "x", nodes=EXP, constants=held, outputs="%2", modules=modules, members={"m": 0}))


@pytest.mark.parametrize(
    "names",
    [["class"], ["None"], ["*None"], ["self"], ["x.y"], ["**a", "*b"], ["***a"], ["1"], [f"a{i}" for i in range(300)]],
    ids=lambda x: str(x)[:30],
)
def test_arguments_that_no_function_has(tmp_path, names):
    refused(forge(tmp_path / "x", ["float32[2]"] * len(names), EXP, arguments=names))


@pytest.mark.parametrize("name", ["object", "type", "None", "LoadedGraph", "Module", "print"])
def test_class_names_are_never_resolved(tmp_path, name):
    path = forge(
        tmp_path / "x", nodes=EXP, kind=name, name=name, modules=[module(kind=name)], members={"m": 0}, calls=[CALL]
    )
    assert runs(path).tolist() == [1, 1]


# ---- sizes that follow the call -------------------------------------------------------------------------------------


def follows(*terms):
    return {"follows": [[factor, ["n"] * power] for factor, power in terms]}


@pytest.mark.parametrize(("shape", "first", "step", "array", "size", "word"), [
    ([follows((1, 20), (3 - 2**20, 0))], 1.0, 0, np.ones(3, "f4"), 9, "memory"),
    ([follows((1, 10), (3 - 2**10, 0))], 1, 0, np.ones(3, "i8"), 14, "memory"),
    ([follows((1, 30), (3 - 2**30, 0))], 0, 2**40, 2**40 * np.arange(3), 5, "memory"),
    ([3], follows((1, 1), (1, 0)), 0, np.full(3, 3, "u1"), 500, "501"),
    ([follows((-1, 1), (5, 0))], 1, 0, np.ones(3, "f4"), 9, "shape"),
], ids=str)  # fmt: skip
def test_growing_constants(tmp_path, shape, first, step, array, size, word):
    state = {"name": "c", "kind": "constant", "filled": {"shape": shape, "first": first, "step": step}}
    path = forge(
        tmp_path / "x", nodes=EXP, constants=[(state, array)], axes={"n": [[0, 0]]}, outputs={"tuple": ["%1", "%2"]}
    )
    call_refused(path, flow.ones(size), words=[word])


@pytest.mark.parametrize(
    "filled",
    [
        {"shape": [10**8], "first": 1.0, "step": 0},
        {"shape": [2], "first": 0, "step": 1},
        {"shape": [10**7], "first": 0, "step": 1},
    ],
    ids=str,
)
def test_constants_match_their_size(tmp_path, filled):
    state = {"name": "c", "kind": "constant", "filled": filled}
    refused(forge(tmp_path / "x", nodes=EXP, constants=[(state, np.ones(3, "f4"))], axes={"n": [[0, 0]]}), "filled")


@pytest.mark.parametrize(("node", "size"), [
    (("full", [], {"shape": [follows((1, 30), (3 - 2**30, 0))], "value": 1, "dtype": "float32"}, ["float32[3]"]), 500),
    (("full", [], {"shape": [follows((-1, 1), (5, 0))], "value": 1, "dtype": "float32"}, ["float32[3]"]), 9),
    (("mul", ["%0", follows((1, 60))], {}, ["float32[2]"]), 10**4),
    (("mul", ["%0", {"ratio": [1.0, follows((1, 60)), follows((1, 1))]}], {}, ["float32[2]"]), 10**4),
    (("one_hot", ["%1"], {"num_classes": follows((-1, 1), (5, 0))}, ["int64[3]"]), 9),
], ids=str)  # fmt: skip
def test_growing_attrs(tmp_path, node, size):
    path = forge(tmp_path / "x", nodes=[node], constants=[np.array(0)], axes={"n": [[0, 0]]})
    call_refused(path, flow.ones(size))


def test_fixed_attrs_are_checked(tmp_path):
    minus = {"follows": [[-3, []]]}
    refused(
        forge(
            tmp_path / "x",
            nodes=[("as_strided", ["%0"], {"size": [2], "stride": [1], "offset": minus}, ["float32[2]"])],
        ),
        "offset",
    )


# ---- random numbers -------------------------------------------------------------------------------------------------


def drawing(path, draws, op="dropout", outputs="%2"):
    """One node that reads a generator, with a false number of draws."""
    forge(path, nodes=EXP)

    def change(data):
        data["states"] = [{"name": "generator", "kind": "generator", "draws": draws, "words": [-(2**63), 2**63 - 1]}]
        node = {"value": "%2", "op": op, "in": ["%0", "%1"], "out": ["float32[2]"] * 2}
        if op == "dropout":
            node["attrs"] = {"p": 0.5, "offset": -(2**62)}
        data.update(ops={op: 1}, nodes=[node], outputs=outputs)

    return changed(path, change)


def test_huge_words_and_offsets(tmp_path):
    assert runs(drawing(tmp_path / "x", 1)).shape == (2,)


@pytest.mark.parametrize(
    ("draws", "more"), [(0, {}), (2, {}), (10**6, {}), (1, {"outputs": "%1"}), (1, {"op": "add"})], ids=str
)
def test_generators_are_only_drawn_from(tmp_path, draws, more):
    refused(drawing(tmp_path / "x", draws, **more))


# ---- time and memory ------------------------------------------------------------------------------------------------


def test_exponentially_shared_modules(tmp_path):
    modules = [module(f"m{i}", children={"a": i + 1, "b": i + 1} if i < 39 else {}) for i in range(40)]
    refused(forge(tmp_path / "x", nodes=EXP, modules=modules, members={"m": 0}), "counted once per path")


def test_module_names_that_fill_memory(tmp_path):
    modules = [module(f"m{i}", children={"a" * 200: i + 1} if i < 599 else {}) for i in range(600)]
    path = forge(tmp_path / "x", nodes=EXP, modules=modules, members={"m": 0})
    assert peak(lambda: refused(path, "characters in the names"), below=1 << 25) < 1 << 25


def test_shared_module(tmp_path):
    modules = [module("m", children={"a": 1, "b": 1}), module("m.a", text="shared")]
    runs(forge(tmp_path / "x", nodes=EXP, modules=modules, members={"m": 0}))


def test_more_inputs_than_bits(tmp_path):
    path = forge(tmp_path / "x", nodes=[("cat", ["%0"] * 10_000, {"dim": 0})])
    runs(path)
    refused(changed(path, lambda data: data["nodes"][0].update(needs=-1)), "needs")
    refused(forge(tmp_path / "y", nodes=[("cat", ["%0"] * 10_001, {"dim": 0})]), "nodes[0].in")


@pytest.mark.parametrize("outputs", [{"is": 1}, {"tuple": [None, {"is": 2.5}]}, {"list": []}])
def test_graph_without_outputs(tmp_path, outputs):
    refused(forge(tmp_path / "x", nodes=EXP, outputs=outputs), "outputs", "at least one tensor")


SUM = {"axis": None, "keepdims": False}
WINDOW = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1]}


@pytest.mark.parametrize("nodes", [
    [("expand", ["%0"], {"shape": [2**37]}), ("sum", ["%2"], SUM)],
    [("expand", ["%1"], {"shape": [2**37]}), ("sum", ["%2"], SUM)],  # of a constant
    [("expand", ["%0"], {"shape": [2**37]}), ("cumsum", ["%2"], {"axis": 0})],
    [("expand", ["%0"], {"shape": [2**18, 2**18]}), ("reshape", ["%2"], {"shape": [2**36]}), ("sum", ["%3"], SUM)],
    [("full", [], {"shape": [2**37], "value": 1, "dtype": "float32"}), ("sum", ["%2"], SUM)],
    [("one_hot", ["%1"], {"num_classes": 2**36}), ("sum", ["%2"], SUM)],
    [("histc", ["%0"], {"bins": 2**36, "low": 0.0, "high": 1.0})],
    [("pad", ["%0"], {"widths": [[0, 2**36]], "value": 0.0})],
    [("cat", ["%0"] * 3, {"dim": 0}), ("expand", ["%2"], {"shape": [2**36, 3]}), ("mul", ["%3", "%3"], {})],
], ids=lambda nodes: nodes[0][0])  # fmt: skip
def test_oversized_results(tmp_path, nodes):
    path = forge(tmp_path / "x", ["float32[1]"], nodes, [np.zeros(1, "i8")])
    call_refused(path, flow.ones(1), words=["bytes"])


def test_oversized_kernel_workspace(tmp_path):
    """With 16 million pixels and a window of 4 million, the columns would be 128 TiB."""
    nodes = [
        ("expand", ["%0"], {"shape": [1, 1, 2**12, 2**12]}),
        ("expand", ["%1"], {"shape": [1, 1, 2**11, 2**11]}),
        ("conv2d", ["%2", "%3"], {**WINDOW, "groups": 1}),
    ]
    path = forge(tmp_path / "x", ["float64[1,1,1,1]"], nodes, [np.ones((1, 1, 1, 1))])
    call_refused(path, flow.ones(1, 1, 1, 1, dtype=flow.float64), words=["conv2d", "memory"])


# ---- training --------------------------------------------------------------------------------------------------------

HUGE = 2**53
COMMON = {"verbose": False, "last_epoch": 0, "count": 1, "base_lrs": [0.1], "rates": [0.1]}
WARM = {"T_0": 1, "T_i": 1, "T_mult": 1, "T_cur": HUGE, "cycles": HUGE, "eta_min": 0, "restart_limit": 0}
CYCLIC = {
    "step_size_up": 1,
    "step_size_down": 1,
    "scale_fn": None,
    "cycle_momentum": False,
    "bases": [0.1],
    "tops": [1],
    "gamma": 3,
    "last_epoch": HUGE,
}


@pytest.fixture
def trained(tmp_path):
    """Folder of a training graph."""
    model = flow.nn.Linear(2, 1)
    graph = Step(model, flow.optim.SGD(model.parameters(), lr=0.1))
    graph(flow.ones(3, 2))
    flow.save(graph, tmp_path / "x")
    return tmp_path / "x"


@pytest.mark.filterwarnings("ignore::minflow.core.base.errors.MinflowWarning")
@pytest.mark.parametrize("schedule", [
    {"class": "MultiStepLR", "milestones": [[1, HUGE]], "gamma": 2},
    {"class": "MultiStepLR", "milestones": [[1, -HUGE]], "gamma": 0},
    {"class": "ExponentialLR", "gamma": 10, "last_epoch": 10**7},
    {"class": "StepLR", "step_size": 1, "gamma": HUGE, "last_epoch": HUGE - 5},
    {"class": "CosineAnnealingWarmRestarts", **WARM, "decay_rate": 3},
    {"class": "PolynomialLR", "total_iters": 2, "power": -5, "cycle": True, "end_learning_rate": 0, "last_epoch": 1},
    {"class": "CyclicLR", **CYCLIC, "mode": "triangular2", "scale_mode": "cycle"},
    {"class": "CyclicLR", **CYCLIC, "mode": "exp_range", "scale_mode": "iterations"},
], ids=lambda x: x["class"])  # fmt: skip
def test_infinite_schedule_values(trained, schedule):
    """2 ** (2 ** 53) has more digits than memory holds; as a float it is infinite at once."""
    changed(trained, meta=lambda meta: meta["optimizers"][0].update(schedulers=[COMMON | schedule]))
    loaded = flow.load_graph(trained)
    for _ in range(3):
        loaded(flow.ones(3, 2))


def test_exact_must_be_a_bool(trained):
    refused(changed(trained, meta=lambda meta: meta.update(exact=1)), "exact must be")


@pytest.mark.parametrize("change", [
    {"training": False}, {"loss": None}, {"gradients": []}, {"loss": "%0"},
    {"gradients": [[0, "%0"]]}, {"gradients": [[0, "%1"], [0, "%1"]]},
], ids=str)  # fmt: skip
def test_incomplete_training_graph(trained, change):
    refused(changed(trained, lambda data: data.update(change)))


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAVED_GRAPH)
def test_sparse_terabyte_file(tmp_path, name):
    path = forge(tmp_path / "x", nodes=EXP)
    os.truncate(path / name, 1 << 43)
    refused(path, "bytes")
