"""Forged saved graphs: any operations with any attrs, any texts, valid hashes.

    forge(path, ["float32[4]"], [("exp", ["%0"], {}), ("topk", ["%1"], {"k": 2})])

Values are numbered as in a file: the inputs, the states, then the outputs of the nodes.
"""

import json

import numpy as np

from minflow.core.infer import consult
from minflow.core.op import OPS
from minflow.core.spec import spec_of
from minflow.deploy import folder
from minflow.deploy.attrs import decode_attrs
from minflow.deploy.document import parse_spec, spec_text
from minflow.io.files import GRAPH, META, WEIGHTS

SETTINGS = {
    "accumulation": 1,
    "static": False,
    "gradients": True,
    "without_effect": [],
    "repr_style": "seed",
    "passes": [],
}


def rows_of(inputs, arrays, nodes):
    """Nodes as in a file: (op, inputs, attrs), and their output specs if they are meant to be false."""
    specs = [parse_spec(text, "") for text in inputs] + [spec_of(array) for array in arrays]
    rows = []
    for name, given, attrs, *outs in nodes:
        if not outs:
            known = [specs[int(x[1:])] if isinstance(x, str) else type(x) for x in given]
            outs = [[spec_text(s) for s in consult(OPS[name], tuple(known), decode_attrs(OPS[name], attrs))[1]]]
        row = {"value": f"%{len(specs)}", "op": name, "in": list(given), "out": outs[0]}
        rows.append(row | ({"attrs": attrs} if attrs else {}))
        specs += [parse_spec(text, "") for text in outs[0]]
    return rows, len(specs)


def forge(path, inputs=("float32[2]",), nodes=(), constants=(), outputs=None, meta=None, **changes):
    """Write the folder. changes: replaced entries of graph.json. constants: arrays, or (state, array)."""
    held = [x if isinstance(x, tuple) else ({"name": f"c{i}", "kind": "constant"}, x) for i, x in enumerate(constants)]
    states = [{"spec": spec_text(spec_of(array)), **state} for state, array in held]
    rows, count = rows_of(inputs, [array for _, array in held], nodes)
    data = {
        "format": "minflow.graph", "version": 1, "name": "Net_0", "kind": "Net",
        "ops": {name: OPS[name].version for name, *_ in nodes}, "arguments": [f"x{i}" for i in range(len(inputs))],
        "tree": {"tuple": [{"tuple": [f"%{i}" for i in range(len(inputs))]}, {"dict": []}]}, "axes": {},
        "inputs": [{"name": f"x{i}", "spec": text} for i, text in enumerate(inputs)], "states": states, "nodes": rows,
        "outputs": f"%{count - 1}" if outputs is None else outputs, "updates": [], "gradients": [], "loss": None,
        "training": False, "modules": [], "members": {}, "met": {}, "calls": [], **changes,
    }  # fmt: skip
    description = {
        "format": "minflow.graph",
        "version": 1,
        "minflow": "0",
        "inputs": [],
        "outputs": [],
        "settings": SETTINGS,
        "optimizers": [],
        "frozen": [],
        **(meta or {}),
    }
    folder.write(path, data, description, {state["name"]: array for state, array in held})
    return path


def changed(path, graph=None, meta=None):
    """Change an existing folder with `graph(data)` and `meta(data)`, and recompute the hashes."""
    data, description = (json.loads((path / name).read_bytes()) for name in (GRAPH, META))
    arrays = folder.container.read(path / WEIGHTS)[0]
    del description["sha256"]
    if graph is not None:
        graph(data)
    if meta is not None:
        meta(description)
    folder.write(path, data, description, arrays)
    return path


def zeros(path):
    """Arguments for the inputs listed in the file."""
    rows = json.loads((path / GRAPH).read_bytes())["inputs"]
    return [np.zeros(s.shape, s.dtype.np) for s in [parse_spec(row["spec"], "") for row in rows]]
