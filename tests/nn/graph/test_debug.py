"""What is printed while a graph is built, level by level, and the tree so far where a build fails."""

import re

import pytest
from graph_models import MLP, Predict, TrainGraph

import minflow as flow
from minflow import nn
from minflow.nn.graph import graph as module

X, Y = flow.ones(3, 4), flow.tensor([0, 1, 1])


@pytest.fixture(autouse=True)
def numbers_from_zero(monkeypatch):
    monkeypatch.setattr(module, "COUNTS", {})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.drop, self.fc2 = nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, 2)

    def forward(self, x):
        return self.fc2(self.drop(self.fc1(x).relu()))


def trained():
    model = Net()
    return TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))


def printed(level, capsys, plain=False, **options):
    graph = trained()
    graph.debug(level, **options)
    graph(X, Y)
    text = re.sub(r"\d+\.\d\ds", "0.00s", capsys.readouterr().out)
    return re.sub(r"(\.py):\d+", r"\1:0", text) if plain else text


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_each_level(level, capsys, golden):
    golden(f"graph_debug_{level}", printed(level, capsys, plain=True))


def test_levels_add_to_each_other(capsys):
    texts = [printed(level, capsys) for level in (-1, 0, 1, 2, 3)]
    assert texts[0] == ""
    for fewer, more in zip(texts[1:], texts[2:]):
        lines = [line for line in more.split("\n")]
        assert all(line in lines for line in fewer.split("\n") if "TrainGraph_" not in line)
    heads = re.findall(r"\(MODULE:(\S+?):", texts[2])
    assert heads == ["model", "model.fc1", "model.drop", "model.fc2", "loss_fn"]
    assert "(BUFFER" not in texts[2] and texts[2].count("(PARAMETER") == 4
    assert texts[3].count("(OPERATOR: ") == len([1 for _ in re.finditer("OPERATOR", texts[3])]) > 15
    assert "backward, device=cpu:0" in texts[3] and "optimizer, device=cpu:0" in texts[3] and "test_debug.py" not in texts[3]
    assert "at test_debug.py:" in texts[4] and "at graph_models.py:" in texts[4] and "minflow/" not in texts[4]


def test_positions_are_the_learners_own_and_as_deep_as_asked(capsys):
    text = printed(3, capsys, max_py_stack_depth=3)
    first = text.partition("matmul-0")[2].split("(OPERATOR")[0].strip().split("\n")
    places = [line.strip() for line in first if line.strip().startswith("at ")]
    assert re.fullmatch(r"at test_debug.py:\d+ in forward < return self.fc2.*>", places[0])
    assert re.fullmatch(r"at graph_models.py:\d+ in build < loss = .*>", places[1]) and len(places) == 2
    assert "    at " not in printed(3, capsys, max_py_stack_depth=0)


def test_debug_alone_is_level_0_and_later_builds_hear_of_it(capsys):
    graph = trained()
    graph(X, Y)
    assert capsys.readouterr().out == ""
    graph.debug()
    graph(X, Y)
    assert capsys.readouterr().out == ""  # nothing is built
    graph(flow.ones(2, 4), Y[:2].clone())
    assert capsys.readouterr().out.startswith("(GRAPH:TrainGraph_0:TrainGraph) start building graph.\n")
    graph.debug(-1)
    graph(flow.ones(1, 4), Y[:1].clone())
    assert capsys.readouterr().out == ""


def test_other_ranks_say_nothing(capsys):
    assert printed(0, capsys, ranks=1) == printed(0, capsys, ranks=[1, 2]) == ""
    assert printed(0, capsys, ranks=-1) and printed(0, capsys, ranks=[0, 3])


@pytest.mark.parametrize(("arguments", "options", "words"), [
    ((4,), {}, "level 4"), ((-2,), {}, "level -2"), (("1",), {}, "level '1'"), ((True,), {}, "level True"),
    ((0,), {"ranks": "all"}, "'all'"), ((0,), {"ranks": [0, "1"]}, "'1'"), ((0,), {"max_py_stack_depth": -1}, "-1"),
    ((0,), {"verbose": 1}, "verbose"),
])  # fmt: skip
def test_wrong_arguments(arguments, options, words):
    with pytest.raises(flow.MinflowError, match=words):
        Predict(MLP()).debug(*arguments, **options)


# ---- a build that fails ----------------------------------------------------------------------------------------------


class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*[nn.Linear(4, 4) for _ in range(9)], nn.Linear(4, 3))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.blocks(x))


def test_the_tree_so_far_with_the_failing_line(capsys):
    graph = Predict(Wrong())
    with pytest.raises(flow.MinflowError, match="takes 4") as caught:
        graph(X)
    out = capsys.readouterr().out.rstrip("\n").split("\n")
    assert out[0] == "(GRAPH:Predict_0:Predict) was built up to here:"
    marked = [line for line in out if line.startswith(">>>")]
    assert re.fullmatch(r">>> +model.head: Linear\(in_features=4, out_features=2, bias=True\)  float32\[3, 3\] ->", marked[0])
    assert re.fullmatch(r">>> +at test_debug.py:\d+ < return self.head\(self.blocks\(x\)\) >", marked[1])
    assert "ShapeError: linear: the input has 3 features" in marked[2] and len(marked) == 3
    assert any("model.blocks: Sequential()  float32[3, 4] -> float32[3, 3]" in line for line in out)
    assert sum("Linear" in line for line in out) < 8, "equal modules are folded"
    (note,) = caught.value.__notes__
    assert "Predict_0" in note and "model.head (Linear)" in note and "test_debug.py:" in note


def test_an_error_in_build_itself_and_a_foreign_one(capsys):
    class Foreign(nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def build(self, x):
            h = self.model(x)
            return {"h": h}["missing"]

    with pytest.raises(KeyError, match="missing") as caught:
        Foreign(MLP((4, 3)))(X)
    out = capsys.readouterr().out
    assert re.search(r'>>>  at test_debug.py:\d+ < return \{"h": h\}\["missing"\] >\n>>>  KeyError: .missing', out)
    assert "model.layers.0: Linear" in out and "in build" in caught.value.__notes__[0]

    class Empty(nn.Graph):
        def build(self, x):
            x + 1

    with pytest.raises(flow.MinflowError, match="None"):
        Empty()(X)
    assert "was built up to here" in capsys.readouterr().out


def test_streamed_lines_come_before_the_error(capsys):
    graph = Predict(Wrong())
    graph.debug(1)
    with pytest.raises(flow.MinflowError):
        graph(X)
    out = capsys.readouterr().out
    assert out.index("(MODULE:model.head:") < out.index("was built up to here") and "Done!" not in out


def test_a_failure_in_telling_hides_nothing(capsys, monkeypatch):
    from minflow.nn.graph import debug

    def broken(*args):
        raise RuntimeError("telling failed")

    monkeypatch.setattr(debug, "tree_so_far", broken)
    with pytest.raises(flow.MinflowError, match="takes 4") as caught:
        Predict(Wrong())(X)
    assert caught.value.__notes__ == ["while building Predict_0"]


def test_an_interrupt_is_no_mistake(capsys):
    class Stopped(nn.Graph):
        def build(self, x):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stopped()(X)
    assert capsys.readouterr().out == ""
