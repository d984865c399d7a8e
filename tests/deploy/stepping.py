"""Steps of a training graph and all state that they change. `python -m tests.deploy.stepping FOLDER...` loads graphs
and continues with the batches in FOLDER.npz, in a process without the classes of their models.
"""

import json
import sys

import numpy as np

import minflow as flow
from tests.graphs import bits


def batches(path):
    """Inputs of each of five steps."""
    data = np.load(path)
    return [[data[f"{step}.{i}"] for i in range(len(data.files) // 5)] for step in range(5)]


def text(values):
    """All bits, in an order that does not depend on the process."""
    return json.dumps(bits(values), default=repr, sort_keys=True)


def rates(graph):
    return [list(optimizer._learning_rates()) for optimizer, _ in graph.optimizers]


def stepped(graph, batch):
    """Outputs and learning rates after one step."""
    return {"outs": text(graph(*map(flow.tensor, batch))), "rates": rates(graph)}


def state_of(graph):
    """All state that a step changes, including the generator's."""
    return {name: text(value) for name, value in graph.state_dict().items()}


def resume_steps(graph, batches):
    """Results of some steps, and the state after them."""
    rows = [stepped(graph, batch) for batch in batches]
    return {"rows": rows, "state": state_of(graph), "steps": graph._steps, "config": repr(graph.config)}


if __name__ == "__main__":
    print(json.dumps({path: resume_steps(flow.load_graph(path), batches(path + ".npz")) for path in sys.argv[1:]}))
