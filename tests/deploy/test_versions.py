"""Versions of operations in a saved graph: current ones, older ones that are converted, and unknown ones that are
refused.
"""

import pytest

import minflow as flow
from minflow import GraphFormatError, nn
from minflow.core.op import OPS
from minflow.deploy import versions
from minflow.deploy.checks import Malformed
from minflow.deploy.program import program_of
from minflow.deploy.versions import check_versions, convert_nodes, versions_of
from minflow.library import custom_op

NODE = {"value": "%2", "op": "sum", "in": ["%1"], "attrs": {"axis": [0], "keepdims": False}}


class Matrix(nn.Graph):
    """A module that uses diagonal only in the path of a view_write."""

    def build(self, x):
        return flow.diag(x * 2)


@pytest.fixture
def older(monkeypatch):
    """`older("sum", 3)`: pretend that our sum has version 3."""
    return lambda name, version: monkeypatch.setitem(vars(OPS[name]), "version", version)


def test_graph_records_op_versions(older):
    graph = Matrix()
    graph(flow.ones(2))
    older("mul", 4)
    nodes = program_of(graph).graph.nodes
    assert "diagonal" not in {node.op.name for node in nodes}
    ops = versions_of(nodes)
    assert ops == {"diagonal": 1, "full": 1, "mul": 4, "view_write": 1} and list(ops) == sorted(ops)
    assert check_versions(ops) == ops and convert_nodes([NODE], ops) == [NODE]


def test_unknown_op_is_refused():
    with pytest.raises(GraphFormatError, match="(?s)uses squish.*import the module.*custom_op"):
        check_versions({"add": 1, "squish": 1})
    with pytest.raises(GraphFormatError, match=r"(?s)uses os\.system.*damaged"):
        check_versions({"os.system": 1})


def test_newer_op_version_is_refused():
    with pytest.raises(GraphFormatError, match="(?s)sum.*version 2, by a newer minflow.*file *2.*here *1.*upgrade"):
        check_versions({"sum": 2})


def test_custom_op_versions():
    @custom_op("test_versioned(x)", version=3)
    def op(xp, x):
        return x + 1

    assert op.version == 3 and check_versions({"test_versioned": 3})
    with pytest.raises(GraphFormatError, match="(?s)test_versioned.*version 4, by a newer definition.*import"):
        check_versions({"test_versioned": 4})
    with pytest.raises(GraphFormatError, match="(?s)test_versioned.*version 2, and nothing converts version 2"):
        check_versions({"test_versioned": 2})
    for wrong in (0, True, "2"):
        with pytest.raises(flow.OutOfRangeError, match=f"(?s)test_unversioned.*version *{wrong!r}.*version=2"):
            custom_op("test_unversioned(x)", version=wrong)(lambda xp, x: x)


def test_older_op_is_converted_step_by_step(monkeypatch, older):
    """Version 2 of our sum hypothetically calls its axis `dim`; version 3 counts the axes from the end."""

    def second(node):
        return {**node, "attrs": {"dim": node["attrs"]["axis"], "keepdims": node["attrs"]["keepdims"]}}

    def third(node):
        return {**node, "attrs": {**node["attrs"], "dim": [d - 2 for d in node["attrs"]["dim"]]}}

    older("sum", 3)
    monkeypatch.setitem(versions.CONVERTERS, ("sum", 2), third)
    with pytest.raises(GraphFormatError, match="(?s)sum.*version 1, and nothing converts version 1.*here *3.*again"):
        check_versions({"sum": 1})
    monkeypatch.setitem(versions.CONVERTERS, ("sum", 1), second)
    other = {"value": "%3", "op": "add", "in": ["%2", 1]}
    now = convert_nodes([NODE, other], check_versions({"sum": 1, "add": 1}))
    assert now == [{**NODE, "attrs": {"dim": [-2], "keepdims": False}}, other]
    assert NODE["attrs"]["axis"] == [0], "loaded data is not written to"
    half = {**NODE, "attrs": now[0]["attrs"] | {"dim": [1]}}
    assert convert_nodes([half], check_versions({"sum": 2})) == [{**half, "attrs": {"dim": [-1], "keepdims": False}}]


def test_view_in_a_write_path_is_converted(monkeypatch, older):
    def second(node):
        return {**node, "attrs": {"at": node["attrs"]["index"]}}

    older("getitem", 2)
    monkeypatch.setitem(versions.CONVERTERS, ("getitem", 1), second)
    path = [["permute", {"dims": [1, 0]}], ["getitem", {"index": [1]}]]
    node = {"value": "%2", "op": "view_write", "in": ["%0", "%1"], "attrs": {"path": path}}
    now = convert_nodes([node], check_versions({"getitem": 1, "permute": 1, "view_write": 1}))
    assert now[0]["attrs"]["path"] == [["permute", {"dims": [1, 0]}], ["getitem", {"at": [1]}]]


@pytest.mark.parametrize(
    "node",
    [None, [], {}, {"op": []}, {"op": "sum"}, {"op": "sum", "attrs": 3}, {"op": "view_write", "attrs": {"path": [1]}}],
    ids=str,
)
def test_converter_accepts_any_node(monkeypatch, older, node):
    older("sum", 2)
    monkeypatch.setitem(versions.CONVERTERS, ("sum", 1), lambda node: {**node, "attrs": node["attrs"]["axis"]})
    with pytest.raises(Malformed, match=r"nodes\[1\] must be a node, got"):
        convert_nodes([NODE, node], {"sum": 1})


def test_saved_graph_of_another_version(monkeypatch, older, tmp_path):
    """As if two of our ops had changed since the graph was saved."""
    graph, x = Matrix(), flow.tensor([1.0, -3.0])
    wanted = graph(x)
    flow.save(graph, tmp_path / "model")
    older("mul", 2)
    with pytest.raises(GraphFormatError, match="(?s)mul.*version 1, and nothing converts version 1"):
        flow.load_graph(tmp_path / "model")
    seen = []
    for name in ("mul", "diagonal"):
        monkeypatch.setitem(versions.CONVERTERS, (name, 1), lambda node: seen.append(node["op"]) or node)
    older("diagonal", 2)
    assert flow.load_graph(tmp_path / "model")(x).tolist() == wanted.tolist() and seen == ["mul", "diagonal"]
    flow.save(graph, tmp_path / "newer")
    older("mul", 1)
    with pytest.raises(GraphFormatError, match="(?s)mul.*version 2, by a newer minflow"):
        flow.load_graph(tmp_path / "newer")
