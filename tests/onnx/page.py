"""`python -m tests.onnx.page`: write docs/onnx.md, the layers, losses and ops that can be exported to ONNX.

Each layer of `exported_cases.py` is exported in eval mode; its file passes onnx.checker and runs in onnxruntime.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx

import minflow as flow
from minflow import nn
from minflow.core.base.errors import GraphError
from minflow.core.infer import data_dependent
from minflow.core.op import OPS
from minflow.nn.summary import tensors_in
from minflow.onnx.builder import CONVERTERS, OPSET
from minflow.onnx.model import IDENTITY_OPS
from tests.exported_cases import TARGETS, layer_cases, loss_cases
from tests.onnx.edge_cases import CORNERS
from tests.onnx.helpers import run

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"
AIM = 1e-5  # relative to the largest element of an output
REFUSED = "minflow.onnx.converters.unsupported"  # modules of the ops that have a reason instead of a converter
RULES = "minflow.core.ops.update"  # of optimizers, which are never exported
HEAD = """# ONNX

`flow.onnx.export(model, x, "model.onnx")` writes the computation of a module or an `nn.Graph` as an ONNX file of opset
{opset}, which onnxruntime and other systems run without minflow. `x` is an example input, or a tuple of several; it may
be None for a graph that has been called. `pip install "minflow-learn[onnx]"` installs the packages that this needs.

The call of a PyTorch program is accepted unchanged: `torch.onnx.export(model, x, "model.onnx", opset_version=11,
input_names=["input"], output_names=["output"], dynamic_axes={{"input": {{0: "batch"}}}})`, or with `dynamic_shapes=`,
`kwargs=`, `dynamo=True`, with or without a file. The opset stays 18, with a warning; an option that would change the
file (without weights, training mode) is refused by name.

- A module is exported in eval mode, and its mode is restored. A graph is exported as it was last called. For a training
  graph that is the forward part with the loss, unless an op depends on training mode (dropout, running statistics).
- Parameters keep their names: those of `model.state_dict()` for a module, those of the listing for a graph.
- `dynamic={{"x": {{0: "batch"}}}}` makes an axis dynamic; sizes that follow from it are computed in the file.
- Operations without an ONNX equivalent are refused before anything is written, all in one error, each with its line.
- The file passes `onnx.checker`, and results of onnxruntime differ by at most 1e-5 of the largest value of an output.
  onnxruntime lacks some operations in float64: call `model.float()` first. Before version 1.29 it averages windows at
  the edge incorrectly if `ceil_mode=True`.
- `minflow onnx FOLDER model.onnx` does the same on the [command line](commands.md), for a graph that `flow.save` wrote.

`flow.onnx.show("model.onnx")` draws any ONNX file (from PyTorch, TensorFlow, the converters of scikit-learn): modules
that open, operations, shapes, parameters, and facts about the whole file. Nothing in the file is executed, and files
that it refers to are not opened. `minflow_widgets.explore("model.onnx")` is the interactive form, with the values of
the parameters.

`python -m tests.onnx.page` writes this page, and a test compares it.
"""


class Row(NamedTuple):
    name: str
    options: str
    reason: str  # reason why it cannot be exported; "" if it can


def difference(model: nn.Module, inputs: tuple, dynamic: dict | None = None) -> float:
    """Difference between onnxruntime and minflow, relative to the largest element of each output. With a dynamic axis
    it runs on a longer input than the exported one.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about layers are not tested here
        path = Path(folder, "model.onnx")
        flow.onnx.export(model, inputs, path, dynamic)
        arrays = [x.numpy().copy() for x in inputs]  # a layer may write to its input
        arrays = [np.concatenate([x, x, x[:1]]) for x in arrays] if dynamic else arrays
        want = [t.detach().numpy() for t in tensors_in(model.eval()(*map(flow.tensor, arrays)))]
        got = run(onnx.load(path), *arrays)
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if b.size:
            worst = max(worst, float(np.abs(a.astype("float64") - b).max() / max(np.abs(b).max(), 1e-30)))
    return worst


def export_and_compare(
    name: str, model: nn.Module, inputs: tuple, options: str = "", dynamic: dict | None = None
) -> Row:
    """Export it and compare; a numeric difference is an error, not a row of the table."""
    try:
        worst = difference(model, inputs, dynamic)
    except GraphError as error:
        if dynamic:
            return Row(name, options, error.what)
        reasons = [f"`{op}` {text.partition('; at ')[0]}" for op, text in error.values.items()]
        return Row(name, options, "; ".join(reasons))
    assert worst <= AIM, (name, options, worst)
    return Row(name, options, "")


def layers(dynamic: dict | None = None) -> list[Row]:
    rows = []
    for name, make, x in layer_cases():
        flow.manual_seed(0)
        x = np.random.default_rng(0).standard_normal(x).astype("float32") if isinstance(x, tuple) else x
        rows.append(export_and_compare(name, make(), (flow.tensor(x),), dynamic=dynamic))
    return rows


def losses() -> list[Row]:
    """With values between 0 and 1, which serve as probabilities, logits and log-probabilities."""
    rows = []
    numbers = np.random.default_rng(0).uniform(0.1, 0.9, (2, 4, 3)).astype("float32")
    for name, options in loss_cases():
        targets = TARGETS.get(name, numbers[1])
        targets = targets if isinstance(targets, tuple) else (targets,)
        said = ", ".join(f"{key}={value!r}" for key, value in options.items() if not hasattr(value, "spec"))
        inputs = flow.tensor(numbers[0]), *map(flow.tensor, targets)
        rows.append(export_and_compare(name, getattr(nn, name)(**options), inputs, said))
    return rows


def listed(title: str, rows: list[Row]) -> str:
    """A list of those that can be exported in every tried way, and a table of the others."""
    names = set(row.name for row in rows)
    good = sorted(names - {row.name for row in rows if row.reason}, key=str.lower)
    return (
        f"\n## {title}\n\n{len(good)} of {len(names)} can be exported with all options that the tests cover:\n"
        f"{', '.join(f'`{name}`' for name in good)}.\n"
    ) + table("not", rows)


def table(head: str, rows: list[Row]) -> str:
    """Table of those that cannot be exported, and why."""
    if not any(row.reason for row in rows):
        return ""
    text = f"\n| {head} | because |\n| --- | --- |\n"
    for name in dict.fromkeys(row.name for row in rows if row.reason):
        reasons = dict.fromkeys(row.reason for row in rows if row.name == name and row.reason)
        some = " (some options)" if any(row.name == name and not row.reason for row in rows) else ""
        text += f"| `{name}`{some} | {'; '.join(reasons)} |\n"
    return text


def ops() -> str:
    """Ops of forward passes: without gradients, optimizers, and ops that cannot be in a graph."""
    names = [
        name
        for name, op in OPS.items()
        if not name.endswith("_grad")
        and op.__module__ not in RULES
        and not op.__module__.startswith(RULES)
        and op.infer is not data_dependent
        and name not in IDENTITY_OPS
        and op.__module__ != "minflow.core.ops.global_tensors"  # of several ranks
    ]
    have = [name for name in names if is_exported(OPS[name])]
    lack = ", ".join(f"`{name}`" for name in sorted(set(names) - set(have)))
    different = "".join(f"| `{op}` | {why} |\n" for op, why in CORNERS.items())
    return (
        f"\n## Operations\n\n{len(have)} of {len(names)} operations of a forward pass can be exported (some refuse "
        f"a few options, by name). These cannot:\n{lack}.\n"
        f"\nFor NaN, infinities and signed zeros, these give other results in onnxruntime:\n"
        f"\n| operation | in onnxruntime |\n| --- | --- |\n{different}"
    )


def is_exported(op) -> bool:
    """True if an op has a converter; a composite op without one is exported as its decomposition."""
    converter = CONVERTERS.get(op.name)
    return op.composite if converter is None else converter.__module__ != REFUSED


def page() -> str:
    whole, open_ended = layers(), layers({"input_0": {0: "batch"}})
    refused = {row.name for row in whole if row.reason}
    more = "\nThe first axis of the input can be dynamic in all of these except:\n"
    return (
        HEAD.format(opset=OPSET)
        + listed("Layers", whole)
        + more
        + table("not with a dynamic first axis", [row for row in open_ended if row.name not in refused])
        + listed("Losses", losses())
        + ops()
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
