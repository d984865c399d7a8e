"""`python -m tests.onnx.page`: write docs/onnx.md, which layers, losses and ops can leave as ONNX.

Each layer is exported as `registered.py` makes it, in eval mode; its file passes onnx.checker and runs in onnxruntime.
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
from minflow.onnx.builder import FORMS, OPSET
from minflow.onnx.model import TAPE
from tests.onnx.runs import run
from tests.registered import TARGETS, layer_cases, loss_cases

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"
AIM = 1e-5  # of the largest value of an output
REFUSED = "minflow.onnx.forms.refused"  # where ops stand that have a reason and no form
RULES = "minflow.core.ops.update"  # of optimizers, which no file has
HEAD = """# Models as ONNX files

`flow.onnx.export(model, x, "model.onnx")` writes what a module or an `nn.Graph` computes as an ONNX file of opset
{opset}, which onnxruntime and other systems run without minflow. `x` is an example of its input, or a tuple of several;
of a graph that was called it may be None. The packages come with `pip install "minflow[onnx]"`.

- A module is exported in eval mode; its own mode comes back. A graph is exported as it was called: of one that trains
  the forward part, with the loss, where no op of it is a matter of training (dropout, running statistics).
- Parameters keep their names: of a module those of `model.state_dict()`, of a graph those of its listing.
- `dynamic={{"x": {{0: "batch"}}}}` leaves an axis open; sizes that follow from it are computed in the file.
- What has no form in ONNX is refused before anything is written: all ops together, each with its line.
- The file passes `onnx.checker`. onnxruntime differs by at most 1e-5 of the largest value of an output; where numbers
  tie or are NaN, it may choose otherwise than we do.

Written by `python -m tests.onnx.page`; a test compares.
"""


class Row(NamedTuple):
    name: str
    options: str
    reason: str  # why it cannot be written; "" if it can


def difference(model: nn.Module, inputs: tuple) -> float:
    """Of onnxruntime on the exported file, by the largest value of each output."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a notice about a layer is not what is asked here
        path = Path(folder, "model.onnx")
        arrays = [x.numpy().copy() for x in inputs]  # a layer may write into its input
        flow.onnx.export(model, inputs, path)
        want = [t.detach().numpy() for t in tensors_in(model.eval()(*inputs))]
        got = run(onnx.load(path), *arrays)
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if b.size:
            worst = max(worst, float(np.abs(a.astype("float64") - b).max() / max(np.abs(b).max(), 1e-30)))
    return worst


def tried(name: str, model: nn.Module, inputs: tuple, options: str = "") -> Row:
    """Export it, and compare; a difference is no row of a table but a mistake."""
    try:
        worst = difference(model, inputs)
    except GraphError as error:
        reasons = [f"`{op}` {text.partition('; at ')[0]}" for op, text in error.values.items()]
        return Row(name, options, "; ".join(reasons))
    assert worst <= AIM, (name, options, worst)
    return Row(name, options, "")


def layers() -> list[Row]:
    rows = []
    for name, make, x in layer_cases():
        flow.manual_seed(0)
        x = np.random.default_rng(0).standard_normal(x).astype("float32") if isinstance(x, tuple) else x
        rows.append(tried(name, make(), (flow.tensor(x),)))
    return rows


def losses() -> list[Row]:
    """Of numbers between 0 and 1, which are probabilities, logits and log-probabilities enough."""
    rows = []
    numbers = np.random.default_rng(0).uniform(0.1, 0.9, (2, 4, 3)).astype("float32")
    for name, options in loss_cases():
        targets = TARGETS.get(name, numbers[1])
        targets = targets if isinstance(targets, tuple) else (targets,)
        said = ", ".join(f"{key}={value!r}" for key, value in options.items() if not hasattr(value, "spec"))
        inputs = flow.tensor(numbers[0]), *map(flow.tensor, targets)
        rows.append(tried(name, getattr(nn, name)(**options), inputs, said))
    return rows


def listed(title: str, rows: list[Row]) -> str:
    """A list of what can be written in every way that was tried, and a table of what cannot."""
    refused = [row for row in rows if row.reason]
    whole = [row.name for row in rows if row.name not in {r.name for r in refused}]
    names = list(dict.fromkeys([row.name for row in rows]))
    good = ", ".join(f"`{name}`" for name in sorted(set(whole), key=str.lower))
    text = (f"\n## {title}\n\n{len(set(whole))} of {len(names)} can be written with all options that the tests have:\n"
            f"{good}.\n")
    if refused:
        text += "\n| not | because |\n| --- | --- |\n"
        for name in dict.fromkeys(row.name for row in refused):
            reasons = dict.fromkeys(row.reason for row in refused if row.name == name)
            some = " (some options)" if any(r.name == name and not r.reason for r in rows) else ""
            text += f"| `{name}`{some} | {'; '.join(reasons)} |\n"
    return text


def ops() -> str:
    """Those of the forward part: no gradient, no optimizer, nothing that a graph cannot have."""
    names = [name for name, op in OPS.items() if not name.endswith("_grad") and op.__module__ not in RULES
             and not op.__module__.startswith(RULES) and op.infer is not data_dependent and name not in TAPE]
    have = [name for name in names if name in FORMS and FORMS[name].__module__ != REFUSED]
    lack = ", ".join(f"`{name}`" for name in sorted(set(names) - set(have)))
    return (f"\n## Operations\n\n{len(have)} of {len(names)} operations of a forward pass have a form (some refuse a "
            f"few options, by name). These have none:\n{lack}.\n")


def page() -> str:
    return HEAD.format(opset=OPSET) + listed("Layers", layers()) + listed("Losses", losses()) + ops()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
