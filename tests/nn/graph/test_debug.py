"""Output of `graph.debug` level by level, and the partial tree if a build fails."""

import json
import re
import subprocess
import sys

import pytest
from graph_models import MLP, Predict, TrainGraph, graph_of

import minflow as flow
from minflow import nn
from minflow.core.context import PerContext
from minflow.nn.graph import graph as module

X, Y = flow.ones(3, 4), flow.tensor([0, 1, 1])


@pytest.fixture(autouse=True)
def numbers_from_zero(monkeypatch):
    monkeypatch.setattr(module, "graph_counts", PerContext(dict))


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
    graph.config.exact(True)  # the passes that every machine has
    graph.debug(level, **options)
    graph(X, Y)
    text = re.sub(r"\d+\.\d+s\b", "0.00s", capsys.readouterr().out)
    return re.sub(r"(\.py):\d+", r"\1:0", text) if plain else text


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_each_level(level, capsys, golden):
    golden(f"graph_debug_{level}", printed(level, capsys, plain=True))


@pytest.mark.parametrize("parts", [1, 2])
def test_every_operation_is_printed_once_with_its_plan_name(parts, capsys):
    """Including operations of an autograd.Function, of a recomputed module, and of the update after accumulation."""

    class Twice(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Doubled(Net):
        def forward(self, x):
            return super().forward(Twice.apply(x * self.fc1.bias.sum()))

    model = Doubled()
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.Adam(model.parameters(), lr=0.1))
    graph.model.fc1.to(nn.graph.GraphModule).activation_checkpointing = True
    graph.passes = []
    graph.config.exact(True)
    graph.config.set_gradient_accumulation_steps(parts)
    graph.debug(2)
    graph(flow.ones(4, 4), flow.tensor([0, 1, 1, 0]))
    printed_by_failure = re.findall(r"\(OPERATOR: (.+?)\(", capsys.readouterr().out)
    assert printed_by_failure == [name for part in graph._last.parts for name in part.names.values()]
    assert len(set(printed_by_failure)) == len(printed_by_failure) > 20 or parts == 2
    assert any("Twice" in name or "function" in name.lower() for name in printed_by_failure)


def test_inputs_of_operations_have_the_names_of_the_listing(capsys):
    outside, layer = flow.ones(3, 4), nn.Linear(4, 4)

    graph = graph_of(lambda self, x: layer(x + outside)[1:].chunk(2, 1)[1] * 0.5)
    graph.debug(2)
    graph(X)
    lines = [line.strip() for line in capsys.readouterr().out.split("\n") if "OPERATOR" in line]
    assert lines[0].startswith("(OPERATOR: add-0(x: float32[3, 4], ")
    assert lines[1].startswith("(OPERATOR: Linear-matmul-0(add-0: float32[3, 4], Linear.weight: ")
    assert lines[-1].startswith("(OPERATOR: mul-0(")
    assert ", 0.5) -> (float32[2, 2]), device=cpu:0, sbp=(B))" in lines[-1]


def test_positions_are_in_user_code_with_requested_depth(capsys):
    text = printed(3, capsys, max_py_stack_depth=3)
    first = text.partition("matmul-0")[2].split("(OPERATOR")[0].strip().split("\n")
    places = [line.strip() for line in first if line.strip().startswith("at ")]
    assert re.fullmatch(r"at test_debug.py:\d+ in forward < return self.fc2.*>", places[0])
    assert re.fullmatch(r"at graph_models.py:\d+ in build < loss = .*>", places[1]) and len(places) == 2
    assert "    at " not in printed(3, capsys, max_py_stack_depth=0)


class Normalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(4), nn.Linear(4, 2)

    def forward(self, x):
        return nn.functional.gelu(self.fc(self.norm(x)))


def normalized(capsys, level=2, style="seed", **options):
    graph = TrainGraph(model := Normalized(), nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1))
    graph.repr_style = style
    graph.config.exact(True)
    graph.debug(level, **options)
    graph(X, Y)
    return graph, capsys.readouterr().out


def test_parts_of_composite_operations_are_indented(capsys, kernels_of_numpy):
    """With the names that they have in the plan, in which `decompose` puts them."""
    graph, text = normalized(capsys, open="layer_norm")
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "(OPERATOR: model.norm-layer_norm-0(" in line)
    depth = len(lines[at]) - len(lines[at].lstrip())
    parts = [re.match(rf" {{{depth + 2}}}\(OPERATOR: ([^(]*)\(", line) for line in lines[at + 1 : at + 10]]
    assert all(parts) and "(OPERATOR" not in lines[at + 10]
    plan = list(graph._last.parts[0].names.values())
    assert [part[1] for part in parts] == [
        name for name in plan if re.fullmatch(r"model.norm/layer_norm-[a-z]+-\d", name)
    ]
    assert "x: float32[3, 4], axis=(1,), keepdims=True" in lines[at + 1] and "/gelu-" not in text
    grad = next(i for i, line in enumerate(lines) if "model.norm-layer_norm_grad-0(" in line)
    assert "model.norm/layer_norm-mean_grad-0" in lines[grad + 1] and "backward" in lines[grad + 1]
    assert "full" not in "".join(lines[grad + 1 : grad + 14]), "a gradient that is not needed"


def test_all_composite_operations_and_wrong_names(capsys, kernels_of_numpy):
    _, text = normalized(capsys, open=True)
    assert "model.norm/layer_norm-rsqrt-0" in text and "model/gelu-erf-0" in text
    _, text = normalized(capsys, open=["gelu", "relu"])
    assert "no composite operation is called 'relu'" in text and "model/gelu-erf-0" in text
    assert "one of layer_norm, gelu" in text
    assert "layer_norm-" in normalized(capsys, open=False)[1] and "/layer_norm-" not in normalized(capsys)[1]
    with pytest.raises(flow.MinflowError, match="got 3"):
        trained().debug(2, open=3)


def test_listing_v1_indents_the_parts(capsys, kernels_of_numpy):
    from minflow.compiler.passes import decompose

    graph = TrainGraph(model := Normalized(), nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1))
    graph.passes.remove(decompose)  # as with a kernel for each
    graph.repr_style = "v1"
    graph.config.exact(True)
    graph(X, Y)
    closed = str(graph)
    graph.debug(-1, open=True)
    lines = str(graph).splitlines()
    at = next(i for i, line in enumerate(lines) if "model.norm-layer_norm-0(" in line)
    assert lines[at + 1].startswith(lines[at].partition("(")[0] + "  (OPERATOR: model.norm/layer_norm-mean-0(x/out")
    assert [line for line in lines if "/layer_norm-" not in line and "/gelu-" not in line] == [
        line for line in closed.splitlines() if "/layer_norm-" not in line and "/gelu-" not in line
    ]


def test_gradient_has_the_lines_of_its_forward(capsys):
    text = printed(3, capsys)
    after = text.partition("model-relu_grad-0")[2].split("(OPERATOR")[0]
    assert re.search(r"at test_debug.py:\d+ in forward <.*>\n +at graph_models.py:\d+ in build < loss = ", after)
    optimizer = text.partition("start building graph optimizer.")[2]
    assert "model.fc1.weight_optimizer(" in optimizer and "    at " not in optimizer
    assert "minflow" not in text.replace("minflow.", "")
    assert re.search(r"at linear.py:\d+ in forward", printed(3, capsys, only_user_py_stack=False))


def test_positions_in_a_notebook():
    pytest.importorskip("IPython")
    program = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in CELLS:
    shell.run_cell(cell, store_history=True)
"""
    cells = [
        "import minflow as flow\nfrom minflow import nn",
        "class Net(nn.Module):\n    def forward(self, x):\n        y = x.exp()\n        return y @ y",
        "class G(nn.Graph):\n    def __init__(self):\n        super().__init__()\n        self.model = Net()\n"
        "    def build(self, x):\n        return self.model(x)",
        "g = G()\ng.debug(3)\ng(flow.ones(2, 3))",
    ]
    run = subprocess.run(
        [sys.executable, "-c", program.replace("CELLS", repr(cells))], capture_output=True, text=True, timeout=120
    )
    assert "at In[2]:3 in forward < y = x.exp() >\n" in run.stdout, run.stdout + run.stderr
    assert "at In[3]:6 in build < return self.model(x) >\n" in run.stdout
    assert re.search(
        r">>> \(MODULE:model:Net\(\)\)  float32\[2, 3\]\n>>>   ShapeError.*\n>>>   at In\[2\]:4 < return y @ y >",
        run.stdout,
    )


def test_debug_defaults_to_level_0_and_affects_later_builds(capsys):
    graph = trained()
    graph(X, Y)
    assert capsys.readouterr().out == ""
    graph.debug()
    graph(X, Y)
    assert capsys.readouterr().out == ""  # nothing is built
    graph(flow.ones(2, 4), Y[:2].clone())
    lines = capsys.readouterr().out.split("\n")
    assert lines[0] == "(GRAPH:TrainGraph_0:TrainGraph) makes plan number 1, for x: float32[2, 4], y: int64[2]."
    assert lines[1] == "(GRAPH:TrainGraph_0:TrainGraph) start building graph."
    graph.debug(-1)
    graph(flow.ones(1, 4), Y[:1].clone())
    graph.debug(1, mode=False)
    graph(flow.ones(4, 4), flow.tensor([0, 0, 1, 1]))
    assert capsys.readouterr().out == ""


@pytest.mark.filterwarnings("ignore:.*build uses")
def test_lines_are_flushed_during_the_build(capsys):
    seen = []

    class Looks(nn.Module):
        def forward(self, x):
            seen.append(capsys.readouterr().out)
            return x * 1

    graph = Predict(Looks())
    graph.debug(1)
    graph(X)
    head, line = seen[0].split("\n")[-3:-1]
    assert head == "  (MODULE:model:Looks())" and line.startswith("    (INPUT:_model-input_0:tensor(")


def test_printing_error_stops_only_the_printing(capsys, monkeypatch):
    from minflow.introspection.graph.listing import text as listing

    def broken(*args):
        raise RuntimeError("no head today")

    monkeypatch.setattr(listing, "module_head", broken)
    graph = trained()
    graph.debug(1)
    graph(X, Y)
    assert capsys.readouterr().out.endswith("debug stopped: RuntimeError: no head today\n")


def test_level_minus_1_and_other_ranks_print_nothing(capsys):
    assert printed(-1, capsys) == printed(0, capsys, ranks=1) == printed(0, capsys, ranks=[1, 2]) == ""
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


def printed_by_failure(graph, *inputs, capsys, error=flow.MinflowError, match=None):
    """Lines printed by a failing call, and the error."""
    with pytest.raises(error, match=match) as caught:
        graph(*inputs)
    return capsys.readouterr().out.rstrip("\n").split("\n"), caught.value


def test_failed_build_shows_the_partial_tree(capsys, golden):
    lines, error = printed_by_failure(Predict(Wrong()), X, capsys=capsys, match="takes 4")
    golden("graph_debug_failing", re.sub(r"(\.py):\d+", r"\1:0", "\n".join(lines)))
    marked = [line for line in lines if line.startswith(">>>")]
    assert re.fullmatch(
        r">>> +\(MODULE:model.head:Linear\(in_features=4, out_features=2, bias=True\)\)  float32\[3, 3\]", marked[0]
    )
    assert "ShapeError: linear: the input has 3 features" in marked[1] and len(marked) == 3
    assert re.fullmatch(r">>> +at test_debug.py:\d+ < return self.head\(self.blocks\(x\)\) >", marked[2])
    (note,) = error.__notes__
    assert re.fullmatch(r"while building Predict_0: in model.head \(Linear\), at test_debug.py:\d+ < return .* >", note)


def test_long_tree_is_folded_where_nothing_failed(capsys):
    class Long(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.Sequential(*[nn.Sequential(nn.Linear(4 + i, 5 + i), nn.ReLU()) for i in range(30)])
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.parts(x))

    graph = Predict(Long())
    lines, _ = printed_by_failure(graph, X, capsys=capsys)
    assert len(lines) < 40 and lines[-4].startswith("        (MODULE:model.parts.29:Sequential())")
    assert lines[-3].startswith(">>>   (MODULE:model.head:")
    assert sum("(2 modules inside)" in line for line in lines) == 30
    graph.model.parts[28][0] = nn.Linear(9, 9)
    lines, _ = printed_by_failure(graph, X, capsys=capsys)
    assert lines[-3].startswith(">>>       (MODULE:model.parts.28.0:Linear")
    assert lines[-4].startswith("        (MODULE:model.parts.28:")


def test_endless_modules(capsys):
    class Endless(nn.Module):
        def forward(self, x):
            return self(x + 1)

    lines, error = printed_by_failure(Predict(Endless()), X, capsys=capsys, error=RecursionError)
    said = r"Python allows [\d,]+ nested calls; \d+ modules were nested\.\nTry: .*"
    assert re.fullmatch(said, error.__notes__[1])
    assert len(lines) < 100 and any(re.search(r"\.\.\. \d+ rows \.\.\.", line) for line in lines)
    assert max(map(len, lines)) < 160


class Nested(nn.Module):
    def __init__(self, depth, sizes):
        super().__init__()
        self.inner = Nested(depth - 1, sizes) if depth else nn.Linear(*sizes)

    def forward(self, x):
        return self.inner(x)


def test_200_nested_modules(capsys):
    assert Predict(Nested(200, (4, 2)))(X).shape == (3, 2)
    lines, error = printed_by_failure(Predict(Nested(190, (5, 2))), X, capsys=capsys, error=flow.MinflowError)
    assert max(map(len, lines)) < 300 and len("\n".join(lines)) < 16_000 and len(error.__notes__[0]) < 300
    assert "(MODULE:model.inner.inner." in lines[-4] and " ... " in lines[-4] and ".inner.inner:Nested())" in lines[-4]


def test_error_in_build_and_foreign_error(capsys):
    def build(self, x):
        self.model(x)
        return json.loads("{")

    graph = graph_of(build, model=MLP((4, 3)))
    lines, error = printed_by_failure(graph, X, capsys=capsys, error=json.JSONDecodeError, match="double quotes")
    assert lines[-2].startswith(">>> JSONDecodeError: Expecting")
    assert re.fullmatch(r'>>> at test_debug.py:\d+ < return json.loads\("\{"\) >', lines[-1])
    assert "(MODULE:model.layers.0:Linear" in lines[3] and "in build, at test_debug.py" in error.__notes__[0]


@pytest.mark.parametrize(("body", "words", "line"), [
    ("x + 1", "None", "def build(self, x):"), ("return x @ flow.ones(7, 7)", "7", "return x @ flow.ones(7, 7)"),
    ("return 3", "int", "def build(self, x):"), ("return x if x.sum() > 0 else -x", "bool", "return x if x.sum()"),
    ("self.held = [x * 2]; return x", "self.held", "def build(self, x):"),
])  # fmt: skip
def test_errors_outside_modules_mark_a_line_of_build(body, words, line, capsys, tmp_path, monkeypatch):
    program = f"import minflow as flow\nclass Plain(flow.nn.Graph):\n    def build(self, x):\n        {body}\n"
    (tmp_path / "plain_graph.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "plain_graph", raising=False)
    lines, error = printed_by_failure(__import__("plain_graph").Plain(), X, capsys=capsys, match=words)
    assert lines[0] == "(GRAPH:Plain_0:Plain) failed before any module was called:"
    assert f"< {line}" in lines[2]
    assert lines[2].startswith(f">>> at plain_graph.py:{3 if line.startswith('def') else 4} ")
    assert line in error.__notes__[0]


def test_caught_error_is_not_reported_as_the_failure(capsys):
    def build(self, x):
        try:
            y = self.one(x)
        except flow.MinflowError:
            y = self.two(x)
        return {"y": y}["z"]

    lines, error = printed_by_failure(
        graph_of(build, one=nn.Linear(5, 4), two=nn.Linear(4, 4)), X, capsys=capsys, error=KeyError
    )
    assert lines[1].endswith("float32[3, 4]  (raised, and the program caught it)")
    assert lines[1].startswith("    (MODULE:one:")
    assert [line.startswith(">>>") for line in lines] == [False, False, False, True, True]
    assert "in build" in error.__notes__[0]


def test_error_in_a_pass(capsys):
    def broken(graph):
        raise RuntimeError("no pass")

    graph = Predict(MLP((4, 3)))
    graph.passes.append(broken)
    lines, error = printed_by_failure(graph, X, capsys=capsys, error=RuntimeError)
    assert lines[0] == "(GRAPH:Predict_0:Predict) was built, and could not be compiled:"
    assert "in its passes and plan" in error.__notes__[0]


def test_error_is_reported_once_and_unchanged(capsys):
    mistake = ValueError("always the same")

    class Raises(nn.Module):
        def forward(self, x):
            raise mistake

    graph = Predict(Raises())
    lines, error = printed_by_failure(graph, X, capsys=capsys, error=ValueError)
    assert error is mistake and len(lines) == 4
    lines, error = printed_by_failure(graph, X, capsys=capsys, error=ValueError)
    assert lines == [""] and len(error.__notes__) == 1


def test_graph_works_after_a_failed_build(capsys):
    graph = Predict(nn.Linear(4, 2))
    printed_by_failure(graph, flow.ones(3, 5), capsys=capsys)
    assert graph(X).shape == (3, 2) and capsys.readouterr().out == ""


def test_hostile_texts_in_the_tree(capsys):
    class Evil(nn.Module):
        def extra_repr(self):
            raise RuntimeError("no repr")

        def forward(self, x):
            raise ValueError("\x1b[31mred\nsecond line")

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module("\x1b[2J\n", Evil())

        def forward(self, x):
            return self._modules["\x1b[2J\n"](x)

    lines, error = printed_by_failure(Predict(Holder()), X, capsys=capsys, error=ValueError)
    assert "\x1b" not in "\n".join(lines) + error.__notes__[0] and len(lines) == 5
    assert "Evil(extra_repr fails: RuntimeError)" in lines[2] and "ValueError: \\x1b[31mred" in lines[3]


def test_streamed_lines_come_before_the_error(capsys):
    graph = Predict(Wrong())
    graph.debug(1)
    with pytest.raises(flow.MinflowError):
        graph(X)
    out = capsys.readouterr().out
    assert out.index("(MODULE:model.head:") < out.index("was built up to here") and "Done!" not in out


def test_printing_failure_does_not_hide_the_error(capsys, monkeypatch):
    from minflow.introspection.graph.listing import build_failure

    def broken(*args):
        raise RuntimeError("telling failed")

    monkeypatch.setattr(build_failure, "partial_tree", broken)
    with pytest.raises(flow.MinflowError, match="takes 4") as caught:
        Predict(Wrong())(X)
    assert "Predict_0: in model.head" in caught.value.__notes__[0] and capsys.readouterr().out == ""
    monkeypatch.setattr(build_failure, "calls_of", broken)
    with pytest.raises(flow.MinflowError, match="takes 4") as caught:
        Predict(Wrong())(X)
    assert caught.value.__notes__ == ["while building Predict_1 (its modules could not be listed: RuntimeError)"]


def test_interrupt_is_not_reported_as_an_error(capsys):
    def build(self, x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        graph_of(build)(X)
    assert capsys.readouterr().out == ""


# ---- in a notebook ---------------------------------------------------------------------------------------------------


@pytest.fixture
def displayed(monkeypatch):
    """MIME bundles of each display, as a notebook gets them."""
    from minflow.diagnosis import notebook
    from minflow.introspection.graph.listing import build_log as debug

    display = pytest.importorskip("IPython.display")
    log = []

    class Handle:
        def display(self, bundle, raw):
            log.append([bundle])
            self.place = log[-1]

        def update(self, bundle, raw):
            self.place.append(bundle)

    monkeypatch.setattr(display, "DisplayHandle", Handle)
    monkeypatch.setattr(debug, "prints_into_cell", lambda: True)
    monkeypatch.setattr(notebook, "live_updates_enabled", lambda: True)
    return log


@pytest.mark.parametrize("level", [1, 2, 3])
def test_notebook_shows_one_tree_with_the_terminal_lines(level, displayed, capsys, golden):
    assert printed(level, capsys) == "" and len(displayed) == 1
    assert len(displayed[0]) <= 4, "at most ten updates a second"
    last = displayed[0][-1]
    text = re.sub(r"(\.py):\d+", r"\1:0", re.sub(r"\d+\.\d+s\b", "0.00s", last["text/plain"]))
    golden(f"graph_debug_{level}", text)
    assert "TrainGraph_0:TrainGraph) was built in" in last["text/html"] and last["text/html"].count("<details") >= 7
    assert "(GRAPH:" in displayed[0][0]["text/html"] and "is being built" in displayed[0][0]["text/html"]


def test_notebook_keeps_phases_as_lines(displayed, capsys):
    assert "start building graph." in printed(0, capsys) and displayed == []


def test_notebook_shows_the_tree_of_a_build_that_fails(displayed, capsys):
    class Wrong(Net):
        def forward(self, x):
            return self.fc2(self.fc1(x)[:, :3])

    graph = Predict(Wrong())
    graph.debug(2)
    with pytest.raises(flow.MinflowError):
        graph(X)
    last = displayed[0][-1]
    assert "could not be built" in last["text/html"] and "model.fc2" in last["text/plain"]
    assert "was built up to here" in capsys.readouterr().out


def test_notebook_falls_back_to_lines(displayed, capsys, monkeypatch):
    def wrong(*args):
        raise RuntimeError("no display")

    monkeypatch.setattr("minflow.introspection.graph.listing.build_tree.live_bundle", wrong)
    text = printed(2, capsys)
    assert displayed == [] and "(OPERATOR: model.fc1-matmul-0" in text
    assert text.count("start building graph modules.") == 1


def test_newer_style_ends_with_the_operators(capsys):
    graph, text = normalized(capsys, 1, "v1")
    assert text.endswith(f"{graph.name} with operators:\n{graph}\n") and "(OPERATOR: model.fc-matmul-0(" in text
    assert "with operators" not in normalized(capsys, 0, "v1")[1] and "with operators" not in normalized(capsys, 2)[1]


def test_keywords_of_the_constructor(capsys):
    class Plain(nn.Graph):
        def __init__(self, **options):
            super().__init__(**options)

        def build(self, x):
            return x * 2

    Plain(debug_v_level=3, debug_max_py_stack_depth=1, debug_ranks=[0])(X)
    lines = capsys.readouterr().out
    assert "(OPERATOR: mul-0(" in lines and lines.count(" at test_debug.py:") == 1
    Plain(debug_v_level=1, debug_ranks=2)(X)
    Plain()(X)
    assert capsys.readouterr().out == ""
    with pytest.raises(flow.MinflowError, match="level 7"):
        Plain(debug_v_level=7)
    with pytest.raises(AttributeError) as caught:
        trained().model.to(nn.graph.GraphModule).debug(1)
    assert "graph.debug(1)" in caught.value.hint
