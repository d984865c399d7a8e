"""`flow.onnx.show`: pictures of ONNX files of other programs, and of malicious files."""

import os
import random
import re
import sys

import numpy as np
import onnx
import pytest
from minflow_widgets import explore
from onnx import TensorProto, helper, numpy_helper

import minflow as flow
from minflow.onnx.reading.contents import MAX_NODES
from minflow.onnx.reading.describe import dim_text, spec_of
from minflow.onnx.reading.scopes import line_of, parameter_word, place_of
from minflow.views.text.trees import MAX_BYTES

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
EXTREME = (0, 1, -1, 3, -(2**63), 2**63 - 1, 2**31 - 1, -(2**31), 2**40)


def value(name, shape=None, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def array(name, *shape, dtype="float32"):
    return numpy_helper.from_array(np.arange(np.prod(shape), dtype=dtype).reshape(shape), name)


def node(kind, inputs, outputs, name="", **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), name=name, **attributes)


def model(nodes, inputs, outputs, tensors=(), functions=(), opsets=(), **more):
    graph = helper.make_graph(nodes, more.pop("graph", ""), inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", 18), *[helper.make_opsetid(*x) for x in opsets]]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, **more)


def conv_net(name="conv1"):
    """A small net with the names of PyTorch's exporter."""
    nodes = [
        node("Conv", f"x {name}.weight {name}.bias", "a", f"/features/{name}/Conv", kernel_shape=[3, 3], pads=[1] * 4),
        node("Relu", "a", "b", "/features/relu/Relu"),
        node("Constant", "", "to", "/Constant", value=array("v", 2, dtype="int64")),
        node("Reshape", "b to", "c", "/Reshape"),
        node("Gemm", "c fc.weight fc.bias", "logits", "/fc/Gemm", transB=1),
    ]
    tensors = [
        array(f"{name}.weight", 4, 3, 3, 3),
        array(f"{name}.bias", 4),
        array("fc.weight", 10, 16),
        array("fc.bias", 10),
    ]
    return model(
        nodes,
        [value("x", ["batch", 3, 2, 2])],
        [value("logits", ["batch", 10])],
        tensors,
        graph="main",
        producer_name="pytorch",
        producer_version="2.13.0",
    )


def mixed():
    """Everything else that a file may hold: subgraphs, a function, a small constant."""
    then = helper.make_graph([node("Add", "b w", "t")], "then", [], [value("t")])
    other = helper.make_graph([node("Identity", "b", "e")], "else", [], [value("e")])
    body = helper.make_graph(
        [node("Neg", "s", "s2"), node("Identity", "go", "go2")],
        "body",
        [value("i", [], INT64), value("go", [], TensorProto.BOOL), value("s", [4])],
        [value("go2", [], TensorProto.BOOL), value("s2", [4])],
    )
    step = helper.make_graph([node("Mul", "row row", "square")], "step", [value("row", [4])], [value("square", [4])])
    twice = helper.make_function(
        "my.own", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], [helper.make_opsetid("", 18)]
    )
    nodes = [
        node("Clip", "x low high", "b"),
        node("If", "go b w", "c", "choose", then_branch=then, else_branch=other),
        node("Loop", "trips go c", "d", "repeat", body=body),
        node("Scan", "d", "f", "scan", body=step, num_scan_inputs=1),
        node("Twice", "f", "y", domain="my.own"),
    ]
    nodes[1].input[:] = ["go"]
    tensors = [
        array("w", 4),
        numpy_helper.from_array(np.float32(0.5), "low"),
        numpy_helper.from_array(np.float32(6), "high"),
        numpy_helper.from_array(np.int64(3), "trips"),
    ]
    return model(
        nodes, [value("x", [4]), value("go", [], TensorProto.BOOL)], [value("y")], tensors, [twice], [("my.own", 1)]
    )


@pytest.fixture
def shown(tmp_path):
    """Show a model, or the bytes of one, through a file."""

    def show(what, name="model.onnx"):
        path = tmp_path / name
        path.write_bytes(what if isinstance(what, bytes) else what.SerializeToString())
        return flow.onnx.show(path)

    return show


def refused(show, what, match):
    with pytest.raises(flow.GraphFormatError, match=match) as caught:
        show(what)
    error = caught.value
    assert error.values and error.where and error.hint, str(error)


# ---- pictures --------------------------------------------------------------------------------------------------------


def test_conv_net_is_drawn(shown):
    view = shown(conv_net())
    assert view.head["producer"] == "pytorch 2.13.0" and view.head["graph"] == "main"
    assert view.head["opset"].startswith("18 (IR version ")
    assert view.head["inputs"] == "x float32[batch, 3, 2, 2]" and view.head["outputs"] == "logits float32[batch, 10]"
    assert view.head["parameters"] == "4 tensors, 282 numbers, 1.13 kB"
    assert view.head["operations"] == "1 Conv, 1 Relu, 1 Reshape, 1 Gemm"
    rows = view.text.split("\n\n")[1].splitlines()
    assert rows[0] == "model.onnx, 4 operations"
    assert [re.sub("  +", "  ", row) for row in rows[1:]] == [
        "· x  input  batch×3×2×2",
        "▾ features  Conv, Relu",
        "  ▸ conv1  Conv  batch×3×2×2 → batch×4×2×2; weight, bias (112)",
        "  ▸ relu  Relu  batch×4×2×2 → batch×4×2×2",
        "· Reshape  shape=(0, 1)  batch×4×2×2 → batch×1",
        "▸ fc  Gemm  batch×1 → batch×10; weight, bias (170)",
        "· output  batch×10",
    ]
    assert repr(view) == view.text and view.bundle()["text/plain"] == view.text


def test_modules_open_and_show_attributes(shown):
    view = shown(conv_net()).open("features.conv1")
    assert "· Conv  kernel_shape=(3, 3), pads=(1, 1, 1, 1)" in view.text
    assert "kernel_shape" in view.svg and "kernel_shape" in view.bundle()["image/svg+xml"]
    with pytest.raises(flow.GraphError, match=r"nothing in model\.onnx is called 'encoder'"):
        view.open("encoder")


def test_default_attributes_are_omitted(shown):
    view = shown(
        model(
            [node("Conv", "x w", "y", strides=[1, 1], dilations=[1, 1], group=1, pads=[0] * 4)],
            [value("x", [1, 2, 5, 5])],
            [value("y")],
            [array("w", 2, 2, 3, 3)],
        )
    )
    step = view.record.nodes[-1]
    assert step.attrs == "" and step.outs == ("float32[1, 2, 3, 3]",)
    assert "strides=(1, 1)" in step.every and "group=1" in step.every


def test_subgraphs_and_functions_are_one_box(shown):
    view = shown(mixed())
    by_name = {n.name: n for n in view.record.nodes}
    branches = "then_branch: 1 operation (Add)", "else_branch: 1 operation (Identity)"
    assert set(by_name["choose"].notes) == set(branches) and all(words in view.text for words in branches)
    assert by_name["repeat"].notes == ("body: 2 operations (Neg, Identity)",)
    assert by_name["scan"].notes == ("body: 1 operation (Mul)",) and by_name["scan"].attrs == "num_scan_inputs=1"
    twice = next(n for n in by_name.values() if n.label == "Twice")
    assert twice.attrs == "my.own" and twice.notes == ("function: 1 operation (Add)",)
    assert "function: 1 operation (Add)" in view.svg and "body: 1 operation (Mul)" in view.svg
    clip = next(n for n in by_name.values() if n.label == "Clip")
    assert clip.attrs == "min=0.5, max=6" and [x.name for x in clip.inputs] == ["input"]
    captured = {
        by_id.name
        for x in by_name["choose"].inputs
        if x.name == "captured"
        for by_id in view.record.nodes
        if by_id.id == x.ref
    }
    assert captured == {clip.name, "w"}
    assert view.head["functions"] == "Twice: 1 operation (Add)" and view.head["opset"].startswith("18, my.own 1")
    assert "Twice" in view.svg and "then_branch" in view.dot
    explorer = explore(view)
    item = next(item for item in explorer.session.tree.items if item.name == "If")
    explorer.session.act({"do": "select", "id": item.id})
    assert ["holds", branches[0]] in explorer.session.detail()["rows"]


def test_sizes_have_names_or_are_unknown(shown):
    view = shown(
        model(
            [node("NonZero", "x", "i"), node("Cast", "i", "y", to=FLOAT)],
            [value("x", ["batch", "2 * time", None])],
            [value("y")],
        )
    )
    assert view.head["inputs"] == "x float32[batch, 2 * time, ?]"
    assert view.record.nodes[-1].outs == ("float32[3, ?]",) and view.record.nodes[-1].attrs == "to=float32"
    assert "int64 3×?" in view.text and view.head["shapes"].startswith("2 values")
    view = shown(
        model(
            [node("Mystery", "x", "y", domain="elsewhere")],
            [value("x", ["a[0], b"])],
            [value("y")],
            opsets=[("elsewhere", 1)],
        )
    )
    assert view.record.nodes[-1].outs == ("float32[...]",) and view.head["inputs"] == "x float32[a(0); b]"


@pytest.mark.parametrize("text, proto", [
    ("float16[]", helper.make_tensor_type_proto(TensorProto.FLOAT16, [])),
    ("int4[...]", helper.make_tensor_type_proto(TensorProto.INT4, None)),
    ("sparse float32[3]", helper.make_sparse_tensor_type_proto(FLOAT, [3])),
    ("sequence(float32[2])", helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))),
    ("map(int64, string[])", helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(TensorProto.STRING, []))),
    ("?", onnx.TypeProto()),
    ("float32[0, 1, 2, 3, 4, 5, ... 14 more axes]", helper.make_tensor_type_proto(FLOAT, range(20))),
])  # fmt: skip
def test_types_as_text(text, proto):
    assert spec_of(proto) == text


def test_inferred_dimension_names_are_unknown_sizes():
    assert dim_text(onnx.TensorShapeProto.Dimension(dim_param="unk__3")) == "?"


@pytest.mark.parametrize("name, scope", [
    ("/layer1/layer1.0/conv1/Conv", "layer1.0.conv1"), ("model/dense/MatMul", "model.dense"), ("MatMul_3", ""),
    ("", ""), ("a/b;c/d/e", "a"), ("///", ""), ("encoder.layers.0/attention/Add", "encoder.layers.0.attention"),
])  # fmt: skip
def test_modules_from_node_names(name, scope):
    assert place_of(helper.make_node("Add", [], [], name=name), False).scope == scope


def test_modules_from_metadata_and_our_own_names():
    ours = helper.make_node("Conv", [], [], name="model.conv1-conv2d-0/Conv")
    assert place_of(ours, True).scope == "model.conv1" and place_of(ours, False).scope == "model.conv1-conv2d-0"
    torch = helper.make_node("Conv", [], [], name="node_conv")
    torch.metadata_props.add(
        key="namespace",
        value=(": __main__.Net/features: torch.nn.Sequential/features.0: torch.nn.Conv2d/conv2d: aten.conv2d.default"),
    )
    assert place_of(torch, False) == ("features.0", {"features": "Sequential", "features.0": "Conv2d"})
    assert place_of(helper.make_node("Reshape", [], [], name="reshape-2/Reshape"), True).scope == ""
    torch.metadata_props.add(
        key="pkg.torch.onnx.stack_trace",
        value=(
            'File "/home/me/net.py", line 12, in forward\n    return self.fc(x)\n'
            'File "/lib/site-packages/torch/nn/modules/linear.py", line 134, in forward'
        ),
    )
    assert line_of(torch) == "net.py:12" and line_of(ours) == ""
    deep = helper.make_node("Add", [], [], name="/".join("abc" * 1000))
    assert place_of(deep, False).scope.count(".") == 40 and place_of(deep, False).scope.endswith("and 2959 more")


@pytest.mark.parametrize("name, formal, word", [
    ("fc1.weight", "B", "weight"), ("onnx::MatMul_12", "B", "B"), ("model/dense/kernel:0", "B", "B"), ("w", "", "w"),
])  # fmt: skip
def test_parameter_names(name, formal, word):
    assert parameter_word(name, formal) == word


def test_duplicate_and_missing_names_are_distinguished(shown):
    view = shown(
        model([node("Relu", f"v{i}", f"v{i + 1}", "same") for i in range(4)], [value("v0", [2])], [value("v4")])
    )
    names = [n.name for n in view.record.nodes]
    assert len(set(names)) == 5


def test_optional_input_may_be_omitted(shown):
    clip = helper.make_node("Clip", ["x", "", "high"], ["y"])
    view = shown(model([clip], [value("x", [2])], [value("y")], [numpy_helper.from_array(np.float32(6), "high")]))
    assert view.record.nodes[-1].attrs == "max=6"


def test_outputs_that_are_inputs_or_initializers(shown):
    view = shown(model([], [value("x", [2])], [value("x", [2]), value("w", [3])], [array("w", 3)]))
    assert view.head["outputs"] == "x float32[2], w float32[3]" and view.svg and view.dot


def test_unsorted_nodes_are_sorted(shown):
    view = shown(model([node("Neg", "b", "c"), node("Relu", "x", "b")], [value("x", [2])], [value("c")]))
    assert [n.label for n in view.record.nodes if n.kind == "op"] == ["Relu", "Neg"]


def test_picture_is_saved_in_all_formats(shown, tmp_path):
    view = shown(conv_net())
    for suffix, begin in ((".svg", "<svg"), (".html", "<div"), (".txt", "file"), (".dot", "digraph")):
        view.save(tmp_path / f"picture{suffix}")
        assert (tmp_path / f"picture{suffix}").read_text(encoding="utf-8").startswith(begin)


def test_exported_models_are_shown(tmp_path):
    net = flow.nn.Sequential(flow.nn.Conv2d(1, 4, 3, bias=False), flow.nn.ReLU())
    flow.onnx.export(net, flow.ones(3, 1, 5, 5), tmp_path / "net.onnx")
    view = flow.onnx.show(tmp_path / "net.onnx")
    assert "minflow" in view.head["producer"]
    assert "3×4×3×3" in view.text and "weight (36)" in view.text


# ---- the explorer ----------------------------------------------------------------------------------------------------


def test_explorer_takes_a_path_and_shows_values(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(conv_net(), path)
    explorer = explore(str(path)).open("fc.weight")
    picture = explorer.session.picture(arena=True)
    assert picture["pass"] == "4 operations" and picture["stages"] == 0 and picture["steps"] == 0
    item = next(item for item in explorer.session.tree.items if item.states and item.name == "Gemm")
    explorer.session.act({"do": "select", "id": item.id, "column": 2})
    detail = explorer.session.detail()
    assert [h["label"] for h in detail["arrays"]] == ["weight", "bias"] and "0 to 159" in detail["arrays"][0]["text"]
    explorer.session.act({"do": "select", "id": item.id, "column": 0})
    rows = dict(map(tuple, explorer.session.detail()["rows"]))
    assert rows["operation"] == "Gemm(transB=1)" and rows["output"] == "float32[batch, 10]"
    assert not {"time", "line", "phase", "bytes"} & rows.keys()
    with pytest.raises(flow.GraphError, match="no operation of net.onnx is run"):
        explorer.record(flow.ones(1))
    assert explore(flow.onnx.show(path)).text.startswith("net.onnx, 4 operations")


def test_external_tensors_are_not_opened(tmp_path):
    outside = tmp_path / "secret"
    outside.write_bytes(b"\0" * 4 * 160)
    for location in ("../secret", str(outside), "/dev/zero", "weights.bin"):
        net = conv_net()
        tensor = net.graph.initializer[2]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        path = tmp_path / "in" / "net.onnx"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(net.SerializeToString())
        with files_opened() as names:
            view = flow.onnx.show(path)
            view.bundle()
            explorer = explore(view).open("fc.weight")
            item = next(item for item in explorer.session.tree.items if item.states and item.name == "Gemm")
            explorer.session.act({"do": "select", "id": item.id, "column": 2})
            detail = explorer.session.detail()
        assert names == [str(path)]
        assert view.head["elsewhere"] == f"1 tensor in {location}, not read"
        assert any(text.endswith(f"in {location}, not read") for _, text in detail["rows"])
        assert [h["label"] for h in detail["arrays"]] == ["bias"]


WATCHED: list[list[str]] = []


def watch(event, args):
    if event == "open" and WATCHED and isinstance(args[0], str | bytes | os.PathLike):
        name = os.fsdecode(args[0])
        if not name.endswith((".py", ".pyc", ".so")):
            WATCHED[-1].append(name)


sys.addaudithook(watch)


class files_opened:
    """Names of the files opened in the block."""

    def __enter__(self):
        WATCHED.append([])
        return WATCHED[-1]

    def __exit__(self, *error):
        WATCHED.clear()


# ---- large files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scoped", [False, True])
def test_three_thousand_nodes_give_a_small_picture(shown, scoped):
    nodes = [
        node(
            ("Conv", "Relu", "Neg")[i % 3],
            f"v{i} w{i}" if i % 3 == 0 else f"v{i}",
            f"v{i + 1}",
            f"/blocks.{i // 30}/layers.{i // 3 % 10}/op" if scoped else "",
        )
        for i in range(3000)
    ]
    tensors = [array(f"w{i}", 2, 2, 1, 1) for i in range(0, 3000, 3)]
    view = shown(model(nodes, [value("v0", ["n", 2, 8, 8])], [value("v3000")], tensors))
    bundle = view.bundle()
    assert len(view.session.layout.rows) <= 26 and view.dot.count("[label=") < 60
    assert all(len(text.encode()) <= MAX_BYTES for text in bundle.values())
    assert "3,000 op" in view.text and view.head["parameters"].startswith("1,000 tensors, 4,000 numbers")
    assert view.record.nodes[-1].outs == ("float32[n, 2, 8, 8]",)


def test_long_lists_and_names_are_truncated(shown):
    long = "n" * 1_000_000
    view = shown(
        model(
            [node("Mystery", "x", "y", long, ints=list(range(100_000)), text=long, domain="d" * 100_000)],
            [value("x", [long[:9999]])],
            [value("y")],
            opsets=[("d" * 100_000, 1)],
            graph=long,
            producer_name=long,
        )
    )
    assert all(len(text.encode()) <= MAX_BYTES for text in view.bundle().values())
    assert len(view.record.nodes[-1].every) <= 400 and len(view.record.nodes[-1].name) < 300
    view = shown(
        model(
            [node("Mystery", "x", "y", ints=range(100_000), domain="d")], [value("x")], [value("y")], opsets=[("d", 1)]
        )
    )
    assert view.record.nodes[-1].every == "d, ints=(0, 1, 2, 3, 4, 5, 6, 7, ... 100,000 in all)"


# ---- invalid files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data, what", [
    (b"", "no graph"), (b"\x08\x0a", "no graph"), (b"PK\x03\x04 a zip", "not an ONNX"),
    (b"{}" * 50, "not an ONNX file"),
    (b"\0" * 64, "not an ONNX file"),
])  # fmt: skip
def test_other_files_are_refused(shown, data, what):
    refused(shown, data, what)


def test_invalid_paths(tmp_path):
    for path, what in (
        (tmp_path, "a folder"),
        (tmp_path / "none.onnx", "cannot be read"),
        ("", "is not a path"),
        (7, "the path is of type int"),
        ("a\0b", "is not a path"),
        ("/dev/null", "cannot be read"),
    ):
        refused(flow.onnx.show, path, what)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused(flow.onnx.show, pipe, "cannot be read")


def graph_of(*nodes, tensors=(), inputs=(), **more):
    return model(list(nodes), [value("x", [2]), *inputs], [value("y")], tensors, **more)


def changed(net, change):
    change(net)
    return net


def function(name, calls):
    nodes = [helper.make_node(other, ["a"], [f"b{i}"], domain="f") for i, other in enumerate(calls)]
    nodes.append(node("Neg", "a", "out"))
    return helper.make_function("f", name, ["a"], ["out"], nodes, [helper.make_opsetid("", 18)])


CALL = helper.make_node("A", ["x"], ["y"], domain="f")
HOSTILE = {
    "circle": (
        lambda: graph_of(node("Add", "x b", "a", "first"), node("Neg", "a", "b"), node("Neg", "a", "y")),
        "first",
    ),
    "a value of itself": (lambda: graph_of(node("Add", "x y", "y", "self")), "self"),
    "a value twice": (lambda: graph_of(node("Neg", "x", "y"), node("Relu", "x", "y", "again")), "again"),
    "an input given": (lambda: graph_of(node("Neg", "x", "x", "over")), "over"),
    "an unknown value": (lambda: graph_of(node("Add", "x lost", "y")), "lost"),
    "an unknown output": (lambda: graph_of(node("Neg", "x", "z")), "'y'"),
    "two inputs": (lambda: graph_of(node("Neg", "x", "y"), inputs=[value("x", [2])]), "two inputs"),
    "two tensors": (lambda: graph_of(node("Add", "x w", "y"), tensors=[array("w", 2), array("w", 2)]), "'w'"),
    "nothing given": (lambda: graph_of(node("Neg", "x", "", "silent")), "silent"),
    "too few bytes": (
        lambda: changed(conv_net(), lambda m: setattr(m.graph.initializer[0], "raw_data", b"123")),
        "3 bytes of data, and its shape needs 432",
    ),
    "no bytes": (lambda: changed(conv_net(), lambda m: m.graph.initializer[0].ClearField("raw_data")), "no elements"),
    "a negative size": (lambda: changed(conv_net(), lambda m: m.graph.initializer[0].dims.append(-1)), "negative size"),
    "sizes that overflow": (
        lambda: changed(conv_net(), lambda m: m.graph.initializer[0].dims.extend([2**62] * 99)),
        "overflow",
    ),
    "functions in a circle": (
        lambda: graph_of(CALL, functions=[function("A", "B"), function("B", "A")], opsets=[("f", 1)]),
        "A, B|B, A",
    ),
    "a function of itself": (lambda: graph_of(CALL, functions=[function("A", "A")], opsets=[("f", 1)]), "cycle"),
    "not UTF-8": (lambda: conv_net("secret").SerializeToString().replace(b"secret", b"\xff\xfecret"), "UTF-8"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files_are_refused(shown, what):
    make, match = HOSTILE[what]
    refused(shown, make(), match)


def test_exponentially_nested_functions(shown):
    """Each calls the next one ten times: 10**12 operations. Shapes are not inferred in that case."""
    functions = [function(chr(65 + i), [chr(66 + i)] * 10 if i < 12 else []) for i in range(13)]
    view = shown(graph_of(CALL, functions=functions, opsets=[("f", 1)]))
    assert "13 functions" in view.head["functions"] or "and 9 more" in view.head["functions"]


def test_function_may_call_a_namesake(shown):
    functions = [function("A", ["A"]), function("A", [])]
    functions[1].overload = "other"
    functions[0].node[0].overload = "other"
    view = shown(graph_of(CALL, functions=functions, opsets=[("f", 1)]))
    assert view.record.nodes[-1].notes == ("function: 2 operations (A, Neg)",)


@pytest.mark.parametrize(
    "net",
    [
        lambda: graph_of(node("Sum", "x " * 10_001, "y", "wide")),
        lambda: model([], [value(f"x{i}", [2]) for i in range(10_001)], [value("x0", [2])]),
    ],
    ids=["an operation", "a graph"],
)
def test_too_many_inputs(shown, net):
    refused(shown, net(), "10,001")


def test_too_many_nodes(shown, monkeypatch):
    monkeypatch.setattr("minflow.onnx.reading.contents.MAX_NODES", 50)
    refused(shown, graph_of(*[node("Neg", "x", f"y{i or ''}") for i in range(51)]), "51")
    assert MAX_NODES == 100_000


def test_deeply_nested_subgraphs(shown):
    def nested(depth):
        graph = helper.make_graph([node("Neg", "x", "out")], "g", [], [value("out")])
        for _ in range(depth):
            graph = helper.make_graph(
                [node("If", "go", "out", then_branch=graph, else_branch=graph)]
                if depth < 8
                else [node("Loop", "trips go", "out", body=graph)],
                "g",
                [],
                [value("out")],
            )
        return changed(
            model([], [value("x", [2]), value("go", [], TensorProto.BOOL), value("trips", [], INT64)], []),
            lambda m: (m.graph.node.extend(graph.node), m.graph.output.append(value("out"))),
        )

    view = shown(nested(7))
    assert "then_branch: 1 operation (If)" in view.record.nodes[-1].notes
    assert shown(nested(25)).svg
    inner = b""
    for _ in range(60):  # deeper than onnx.helper can: NodeProto's attribute, its graph, the graph's node
        for field in (6, 5, 1):
            inner = written(field, inner)
    refused(shown, b"\x08\x0a" + written(7, inner), "not an ONNX file")


def written(field, data):
    """A message in a field of another."""
    length, size = bytearray(), len(data)
    while size > 127:
        length.append(size % 128 + 128)
        size //= 128
    return bytes([field * 8 + 2, *length, size]) + data


def test_truncated_files(shown):
    data = mixed().SerializeToString()
    pictures = 0
    for length in range(0, len(data), 7):
        try:
            pictures += bool(shown(data[:length]).bundle())
        except flow.GraphFormatError:
            continue
    assert pictures < len(data) // 14


def test_mutants_are_drawn_or_refused(shown, tmp_path):
    """100 with other bytes, 100 with other fields. No other file is opened."""
    rng = random.Random(5)
    net = mixed()
    net.graph.node.extend(conv_net().graph.node[1:2])
    net.graph.node[-1].input[0], net.graph.node[-1].output[0] = "y", "y2"
    data = net.SerializeToString()
    words = ["", "x", "y", "b", "w", "Loop", "Scan", "Reshape", "Twice", "my.own", "body", "../../etc/passwd"]
    pictures = 0
    for k in range(200):
        mutant = bytes_changed(data, rng) if k < 100 else fields_changed(data, rng, words)
        with files_opened() as names:
            try:
                view = shown(mutant)
                view.bundle(), view.diagram, view.session.detail()
                pictures += 1
            except flow.GraphFormatError as error:
                assert error.values and error.where and error.hint
        assert set(names) <= {str(tmp_path / "model.onnx")}
    assert 50 < pictures < 175


def bytes_changed(data, rng):
    mutant = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(mutant))
        if rng.random() < 0.7:
            mutant[at] = rng.randrange(256)
        else:
            del mutant[at : at + rng.randrange(1, 6)]
    return bytes(mutant)


def messages(message):
    found = [message]
    for kind, inner in message.ListFields():
        if kind.cpp_type == kind.CPPTYPE_MESSAGE:
            for one in [inner] if hasattr(inner, "ListFields") else inner:
                found += messages(one)
    return found


def fields_changed(data, rng, words):
    """Mutations that byte mutants seldom reach: the file is well-formed, but its fields differ."""
    net = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice([1, 2, 3, 6])):
        message = rng.choice(messages(net))
        fields = message.ListFields()
        if not fields:
            continue
        kind, inner = rng.choice(fields)
        if hasattr(inner, "ListFields"):
            message.ClearField(kind.name)
        elif isinstance(inner, str):
            setattr(message, kind.name, rng.choice(words))
        elif isinstance(inner, bytes):
            setattr(message, kind.name, inner[: rng.randrange(len(inner) + 1)])
        elif isinstance(inner, int | float):
            number = rng.choice(EXTREME)
            setattr(
                message,
                kind.name,
                number
                if kind.type in (kind.TYPE_INT64, kind.TYPE_FLOAT)
                else number % 2
                if kind.type == kind.TYPE_ENUM
                else number % 40,
            )
        elif rng.random() < 0.4:
            del inner[rng.randrange(len(inner))]
        elif kind.cpp_type == kind.CPPTYPE_MESSAGE:
            inner.add().CopyFrom(inner[rng.randrange(len(inner))])
        elif kind.type == kind.TYPE_STRING:
            inner[rng.randrange(len(inner))] = rng.choice(words)
        elif kind.type == kind.TYPE_INT64:
            inner[rng.randrange(len(inner))] = rng.choice(EXTREME)
    return net.SerializeToString()


def test_missing_onnx_package(tmp_path, monkeypatch):
    path = tmp_path / "net.onnx"
    path.write_bytes(conv_net().SerializeToString())
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(flow.MissingDependencyError, match="(?s)'onnx' .extra 'onnx'.*Try: .*onnx"):
        flow.onnx.show(path)
