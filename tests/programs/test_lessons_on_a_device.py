"""Run programs of lessons on a device, the stand-in of `strict_backend.py`: results have the bits of the CPU.

A lesson runs with the device as default. As in any program for a GPU, NumPy's arrays become tensors by `as_tensor`,
and tensors become arrays by `.cpu().numpy()`.
"""

import ast
import contextlib
import io
import json
import linecache
from pathlib import Path

import pytest
from matplotlib import pyplot

import minflow as flow
from minflow import nn
from tests.cases import Cases

pytestmark = [pytest.mark.usefixtures("reference_kernels"), pytest.mark.filterwarnings("ignore")]
LESSONS = sorted((Path(__file__).parents[2] / "notebooks").glob("[0-9]*.ipynb"))
QUICK = "01", "03", "10", "13"
LONG = "04", "05"  # more than 20 seconds
FOR_A_DEVICE = {"flow.from_numpy(": "flow.as_tensor(", ".numpy()": ".cpu().numpy()"}


def lessons():
    for path in LESSONS:
        if (number := path.name[:2]) in (*QUICK, *LONG):
            yield pytest.param(path, id=number, marks=[] if number in QUICK else pytest.mark.slow)


def cells(path):
    """(number, source, True if it must raise) of each code cell."""
    found = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(found, 1):
        source = "".join(cell["source"])
        raises = "raises-exception" in cell["metadata"].get("tags", []) or "NBVAL_RAISES_EXCEPTION" in source
        for here, there in FOR_A_DEVICE.items():
            source = source.replace(here, there)
        yield number, source, raises


def run_cell(name, source, variables):
    """Run a cell and show its last expression, as a notebook does."""
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), variables)
    if last is not None and (shown := eval(compile(ast.Expression(last.value), name, "eval"), variables)) is not None:
        getattr(shown, "_repr_mimebundle_", shown.__repr__)()


def run_lesson(path, device):
    """The bits of the tensors and modules that its variables refer to at the end."""
    variables = {"__name__": "__main__"}
    flow.manual_seed(0)
    with Cases() as case, flow.device(device):
        for number, source, raises in cells(path):
            with case(f"cell {number} on {device}"), contextlib.redirect_stdout(io.StringIO()):
                with pytest.raises(Exception) if raises else contextlib.nullcontext():
                    run_cell(f"<{path.name[:2]}, cell {number}>", source, variables)
    pyplot.close("all")
    return {name: bits(x) for name, x in variables.items() if isinstance(x, flow.Tensor | nn.Module)}


def bits(x):
    if isinstance(x, nn.Module):
        return {name: bits(t) for name, t in x.state_dict().items()}
    return x.dtype, tuple(x.shape), x.detach().cpu().tolist().__repr__()


@pytest.mark.parametrize("path", list(lessons()))
def test_lesson(path, cuda, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINFLOW_CARDS", "0")
    there, here = run_lesson(path, cuda), run_lesson(path, "cpu")
    assert there == here
