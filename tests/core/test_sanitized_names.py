"""Names given by a user, a file or a stranger are sanitized in all output: errors, warnings, reports, reprs.

Control characters, terminal escapes and bidirectional marks are escaped; long names are shortened in the middle.
"""

import warnings

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base import errors
from minflow.core.base.errors import (
    MAX_LINE,
    MAX_NAME,
    CheckpointError,
    MinflowError,
    MinflowWarning,
    StateError,
    clean,
)
from minflow.core.source_location import warn
from minflow.io import container
from minflow.job.saving.folder import FileVariable
from minflow.job.saving.manager import LoadReport
from minflow.job.session import Session
from tests.cases import in_cases
from tests.graphs import Predict

NAMES = {
    "title": "\x1b]0;owned\x07",
    "color": "\x1b[31mred\x1b[0m",
    "eight bit": "\x9b31m\x90q\x9c",
    "right to left": "\u202egnp.exe\u2066\u200f\u061c",
    "invisible": "a\u200bb\ufeff\u00ad",
    "lines": "a\u2028b\u2029c\x85d\x0be\x0c",
    "back": "harmless\b\b\b\b\b\b\b\bevil\r",
    "tags": "\U000e0041\U000e0042",
    "long": "n" * 1_000_000,
    "long with spaces": "n m " * 250_000,
    "long path": "n/" * 500_000,
    "combining": "a" + "\u0300" * 100_000,
}


def report(name):
    found = LoadReport(Session(), f"the checkpoint {name}", [name, f"{name}2"], True)
    found.loaded, found.missing = [name], [name] * 9
    return repr(found)


def variable(name, folder):
    (folder / "v").mkdir(exist_ok=True)
    (folder / "v" / "out").write_bytes(b"1234")
    return repr(FileVariable(folder / "v", name))


def optimizer(name):
    return repr(flow.optim.SGD([{"params": [flow.ones(1)], name: 1, "b": name}], lr=0.1))


def module(name):
    made = nn.Sequential(nn.ReLU())
    made.add_module(name.replace(".", "_"), nn.ReLU())
    return repr(made)


def refused(call, kind=MinflowError):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def from_a_file(name, folder):
    """A tensor of that name in a file, with an unknown dtype."""
    header = container.json.dumps({name: {"dtype": "Q7", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (folder / "x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"1")
    return refused(lambda: flow.load(folder / "x.safetensors"), CheckpointError)


def meta(name, folder):
    variable("v", folder)
    (folder / "v" / "meta").write_text(f"shape {{ dim: 1 }} data_type: {name}", encoding="utf-8", errors="replace")
    return refused(lambda: flow.checkpoint.get(folder), CheckpointError)


def warned(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn(f"{name} warns", name, value=name)
    return str(caught[0].message) if caught else "warned of in this line already"


SHOWN = {
    "error": lambda name, folder: str(MinflowError(name, values={name: name, "b": name}, where=name, hint=name)),
    "error of a subclass": lambda name, folder: str(errors.CheckpointError(f"{name}: damaged", values={"file": name})),
    "renamed": lambda name, folder: str(MinflowError("{x} is wrong", hint="{x}").renamed({"x": name})),
    "warning": lambda name, folder: warned(name),
    "load_state_dict": lambda name, folder: refused(lambda: nn.Linear(1, 1).load_state_dict({name: 1}), StateError),
    "a key of a scheduler": lambda name, folder: refused(
        lambda: flow.optim.lr_scheduler.StepLR(flow.optim.SGD([flow.ones(1)], lr=1), 1).load_state_dict({name: 1}),
        StateError),
    "file name": lambda name, folder: refused(lambda: flow.load(folder / name[:100])),
    "save": lambda name, folder: refused(lambda: flow.save({name: print}, folder / "x.mf")),
    "tensor in a file": from_a_file,
    "meta": meta,
    "report": lambda name, folder: report(name),
    "variable in a file": variable,
    "optimizer": lambda name, folder: optimizer(name),
    "module": lambda name, folder: module(name),
    "incompatible": lambda name, folder: repr(nn.Linear(1, 1).load_state_dict({name: 1}, strict=False)),
}  # fmt: skip


@pytest.mark.parametrize("what", SHOWN)
@in_cases("key", NAMES)
def test_names_are_escaped_everywhere(what, key, tmp_path_factory):
    text = SHOWN[what](NAMES[key], tmp_path_factory.mktemp("shown"))
    strange = {c for c in text if not c.isprintable() and c != "\n"}
    assert not strange and text, strange
    assert len(text) < 150_000 and max(map(len, text.split("\n"))) < 2 * MAX_LINE


def test_truncation_is_reported():
    assert clean("a\u202eb\x1b[0m") == "a\\u202eb\\x1b[0m" and clean("名前 імʼя\U0001f600") == "名前 імʼя\U0001f600"
    assert (
        clean("x" * MAX_NAME) == "x" * MAX_NAME
        and clean(f"/{'x' * MAX_NAME}/{'y' * MAX_NAME}") == f"/{'x' * MAX_NAME}/{'y' * MAX_NAME}"
    )
    cut = clean(f"first{'x' * 1000}last")
    assert len(cut) <= MAX_NAME + 8 and cut.startswith("first") and cut.endswith("last") and "...771 more..." in cut
    assert "more..." in clean("a b " * MAX_LINE) and len(clean("a b " * MAX_LINE)) <= MAX_LINE + 16


def test_our_own_lines_are_kept():
    text = str(MinflowError("two\nlines", values={"x": "a\nb"}, hint="one\n  two"))
    assert text.splitlines() == ["two", "lines", "  x  a", "b", "  Try: one", "  two"]


@pytest.mark.filterwarnings("ignore")
def test_long_names_in_a_graph_are_truncated(capsys):
    """61 lines with a name of a million letters would be 61 MB."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module("n" * 1_000_000, nn.Linear(2, 2))

        def forward(self, x):
            return self.get_submodule("n" * 1_000_000)(x).sum()

    step = Predict(Model())
    step.debug(3)
    step(flow.ones(1, 2))
    assert 500 < len(capsys.readouterr().out) < 100_000
    assert len(repr(step)) < 50_000 and "more..." in repr(step)
    with pytest.raises(MinflowError) as caught:
        step(flow.ones(1, 3))
    assert len(str(caught.value)) < 50_000
    assert np.isfinite(step(flow.ones(1, 2)).item()) and MinflowWarning
