"""A small saved graph for tests of its files: data as `writing.py` makes it, in three distinguishable states."""

import copy

import numpy as np


def changed(data, path, value):
    """Copy of nested data with another value at a path; `...` as the value removes the entry."""
    if not path:
        return value
    data = copy.deepcopy(data)
    *way, last = path
    place = data
    for key in way:
        place = place[key]
    place[last] = value
    if value is ...:
        del place[last]
    return data


def graph(n=0):
    """(graph, meta, arrays)."""
    nodes = [
        {"value": "%3", "op": "matmul", "in": ["%0", "%1"], "out": ["float32[2,4]"], "line": "x.py:3"},
        {"value": "%4", "op": "add", "in": ["%3", "%2"], "out": ["float32[2,4]"]},
        *({"value": f"%{5 + i}", "op": "relu", "in": [f"%{4 + i}"], "out": ["float32[2,4]"]} for i in range(n + 1)),
    ]
    states = [
        {"name": "model.weight", "kind": "parameter", "spec": "float32[3,4]"},
        {"name": "model.偏", "kind": "parameter", "spec": "float32[4]"},
    ]
    data = {
        "format": "minflow.graph",
        "version": 1,
        "name": "Net_0",
        "training": False,
        "ops": {"add": 1, "matmul": 1, "relu": 1},
        "axes": {},
        "inputs": [{"name": "input_0", "spec": "float32[2,3]"}],
        "states": states,
        "nodes": nodes,
        "outputs": {"tuple": [f"%{5 + n}"]},
        "loss": None,
    }
    meta = {"format": "minflow.graph", "version": 1, "inputs": [{"name": "input_0", "shape": ["batch", 3]}], "n": n}
    arrays = {"model.weight": np.full((3, 4), n, "f4"), "model.偏": np.full(4, n, "f4")}
    return data, meta, arrays


def number(saved):
    """Index of the graph; an error if it is a mixture."""
    data, meta, arrays = saved
    n = meta["n"]
    wanted = graph(n)
    assert data == wanted[0] and {k: x for k, x in meta.items() if k != "sha256"} == wanted[1]
    assert arrays.keys() == wanted[2].keys() and all(np.array_equal(x, arrays[k]) for k, x in wanted[2].items())
    return n
