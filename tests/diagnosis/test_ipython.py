"""Errors and warnings in a real notebook kernel: the card first, the message once, the standard error in the
protocol.
"""

import re
import types
import warnings

import pytest

import minflow as flow
from minflow.diagnosis import card_record, frames, ipython as cards, notebook

SETUP = """
import sys
import warnings
import minflow as flow
from minflow import nn
from minflow.core.source_location import warn
from minflow.diagnosis.ipython import error_cards
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
    def forward(self, x):
        return self.fc(x)
a, b = flow.ones(2, 3), flow.ones(4, 5)
def warns(kind):
    warn(f"{kind}: a likely mistake", "the other way", x=a)
"""


@pytest.fixture
def page(real_kernel):
    """The notebook kernel, with cell ids as sent by a page."""
    real_kernel.fresh(SETUP)
    real_kernel.client.session.metadata = {"cellId": "cell"}
    yield real_kernel
    real_kernel.client.session.metadata = {}
    real_kernel.run("error_cards(True)\n%xmode Context")


def failing(kernel, code):
    """Return (bundle of the card, the error's message) of a cell."""
    status, shown = kernel.run(code)
    assert status == "error" and [kind for kind, _ in shown] == ["display_data", "error"], shown
    return shown[0][1]["data"], shown[1][1]


def test_card_comes_before_the_learners_frames(page):
    card, error = failing(page, "net = Net()\nnet(flow.ones(2, 5))")
    text = "\n".join(error["traceback"])
    assert re.fullmatch(
        r"In\[\d+\]:2\n    net\(flow.ones\(2, 5\)\)\nIn\[\d+\]:\d+ in Net.forward\n"
        r"    return self.fc\(x\)\nShapeError: see the card above",
        text,
    )
    assert error["ename"] == "ShapeError" and error["evalue"].startswith("linear: the input has 5 features")
    assert "Try: nn.Linear(5, 4)" in error["evalue"], "the whole message is in the protocol"
    assert "linear: the input has 5 features" in card["text/plain"] and "ShapeError in Net.fc" in card["text/html"]
    fold = card["text/html"].partition("traceback</summary>")[2]
    assert "in forward" in fold and "in __call__" in fold and "ipykernel" not in fold, "all frames, cells by name"
    assert card["text/html"].count("Linear.weight takes") == 0 and "<img" not in card["text/html"]


def test_without_a_front_end_the_error_has_its_message(real_kernel):
    """nbclient and papermill print only the traceback."""
    real_kernel.fresh(SETUP)
    card, error = failing(real_kernel, "a @ b")
    text = "\n".join(error["traceback"])
    assert "matmul: inner sizes differ, 3" in text and "Try: " in text and "matmul" in card["text/plain"]


def test_foreign_errors_are_unchanged(page):
    for code, said in (
        ("int('x')", "invalid literal"),
        ("Net()(undefined)", "name 'undefined'"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("class Own(nn.Module):\n    def forward(self, x):\n        return x + y\nOwn()(a)", "'y'"),
        ("raise ExceptionGroup('several', [ValueError(1)])", "several"),
    ):
        status, shown = page.run(code)
        assert status == "error" and all(kind in ("error", "stream") for kind, _ in shown), shown
        assert said in str(shown) and "see the card above" not in str(shown)


def test_misspelled_attribute_of_a_tensor(page):
    """Python's own AttributeError becomes a card with the tensor by its name."""
    card, error = failing(page, "def size(image):\n    return image.shpe\nsize(a)")
    shown = " ".join(card["text/plain"].split())
    assert "MissingNameError 'Tensor' object has no attribute 'shpe'" in shown and "did you mean shape?" in shown
    assert "image float32[2, 3]" in shown and "return image.shpe" in shown
    assert [line.split()[-1] for line in error["traceback"]][-1] == "above"


def test_chained_errors(page):
    raised = "try:\n    int('x')\nexcept ValueError as first:\n    raise flow.MinflowError('mine') from first"
    _, error = failing(page, raised)
    text = "\n".join(error["traceback"])
    assert "    int('x')\nValueError: invalid literal" in text and text.endswith("MinflowError: see the card above")
    _, error = failing(page, "def deep(n):\n    return a @ b if n == 0 else deep(n - 1)\ndeep(50)")
    assert "... 44 more ..." in error["traceback"] and len(error["traceback"]) == frames.MAX_USER_LINES + 2


def test_await(page):
    _, error = failing(page, "async def go():\n    return a @ b\nawait go()")
    assert [line.split()[-1] for line in error["traceback"]] == ["go()", "b", "above"]


def test_once_per_run_of_a_cell(page):
    cell = "try:\n    a @ b\nexcept Exception as error:\n    kept = error\nraise kept"
    failing(page, cell), failing(page, cell), failing(page, "raise kept")


def test_requested_traceback_modes(page):
    """%xmode, MINFLOW_TRACEBACK, and no cards."""
    page.run("%xmode Verbose")
    _, error = failing(page, "a @ b")
    assert "Try: " in "".join(error["traceback"]) and "Traceback (most recent" in error["traceback"][1]
    page.run("%xmode Context")
    page.run("import os; os.environ['MINFLOW_TRACEBACK'] = 'full'")
    _, error = failing(page, "a @ b")
    assert "core/infer.py" in "".join(error["traceback"])
    page.run("del os.environ['MINFLOW_TRACEBACK']; error_cards(False)")
    ((kind, error),) = page.run("a @ b")[1]
    assert kind == "error" and "Try: " in "".join(error["traceback"])


def test_debugger_after_a_card(page):
    failing(page, "Net()(flow.ones(2, 5))")
    asked = ["p sorted(locals())", "down", "q"]
    shown = []
    reply = page.client.execute_interactive(
        "print(type(sys.last_value).__name__, sys.last_traceback is not None)\n%debug",
        allow_stdin=True,
        timeout=60,
        stdin_hook=lambda message: page.client.input(asked.pop(0) if asked else "q"),
        output_hook=lambda message: shown.append(message["content"].get("text", "")),
    )
    text = re.sub(r"\x1b\[[0-9;]*m", "", "".join(shown))
    first, _, below = text.partition("['self', 'x']")
    assert reply["content"]["status"] == "ok" and not asked and first.startswith("ShapeError True\n> /")
    assert "(12)forward()" in first and "module.py" in below, "the learner's line; what called the layer is below it"


def test_warning_is_a_card(page):
    status, ((kind, card),) = page.run("for _ in range(3): warns('same')")
    assert status == "ok" and kind == "display_data"
    text = card["data"]["text/plain"]
    assert text.startswith("Warning\n  same: a likely mistake\n  values    x  float32[2, 3]")
    assert "ipykernel" not in str(card["data"])
    assert re.search(r"where +at In\[\d+\]:15\n +warn\(f", text) and "! Warning" in card["data"]["text/html"]


def test_warning_filters_keep_their_meaning(page):
    with_filter = "with warnings.catch_warnings():\n    warnings.simplefilter('{0}')\n    warns('{0}')"
    assert page.run(with_filter.format("ignore")) == ("ok", [])
    status, ((kind, error),) = page.run(with_filter.format("error"))
    assert (status, kind, error["ename"]) == ("error", "error", "MinflowWarning")
    for prints in (
        "with warnings.catch_warnings(record=True) as kept:\n    warns('kept')\nprint(len(kept))",
        "import contextlib, io\nwith contextlib.redirect_stderr(io.StringIO()) as kept:\n    warns('text')\n"
        "print(kept.getvalue().count('text: a likely mistake'))",
    ):
        _, ((kind, content),) = page.run(prints)
        assert (kind, content["text"].strip()) == ("stream", "1")
    _, ((kind, content),) = page.run("warnings.warn('of another')")
    assert kind == "stream" and "UserWarning: of another" in content["text"]


# ---- without a kernel ------------------------------------------------------------------------------------------------


@pytest.fixture
def kernel(monkeypatch):
    """A shell as in a notebook; its `shown` has the bundles."""
    shell = types.SimpleNamespace(kernel=object(), shown=[])
    monkeypatch.setattr(notebook, "ipython", lambda: shell)
    monkeypatch.setattr(notebook, "display", lambda bundle, raw: shell.shown.append(bundle))
    return shell


def test_display_errors_are_never_raised(kernel, monkeypatch):
    def wrong(*args):
        raise RuntimeError("ours")

    assert cards.show_card(flow.MinflowError("x")) and len(kernel.shown) == 1
    monkeypatch.setattr(card_record, "card_of", wrong)
    assert not cards.show_card(flow.MinflowError("x")) and len(kernel.shown) == 1
    monkeypatch.setattr("minflow.diagnosis.card_record.warning_record", wrong)
    others = []
    monkeypatch.setattr(cards.CardState, "original_showwarning", lambda *args: others.append(args))
    monkeypatch.setattr(notebook, "prints_into_cell", lambda stream: True)
    message = flow.MinflowWarning("x")
    message.parts = flow.MinflowError("x")
    cards.show_warning(message, flow.MinflowWarning, "file.py", 1)
    assert len(others) == 1 and len(kernel.shown) == 1


def test_switched_off(kernel, monkeypatch):
    monkeypatch.setattr(cards.CardState, "enabled", True)
    assert cards.shows_cards() and not cards.error_cards(False) and not cards.show_card(flow.MinflowError("x"))
    assert kernel.shown == [] and cards.error_cards()
    kernel.kernel = None
    assert not cards.error_cards() and not cards.show_card(flow.MinflowError("x"))


def test_terminal_keeps_pythons_warnings():
    assert warnings.showwarning is not cards.show_warning


def test_traceback_of_another_process_is_not_a_separate_error():
    """It is in the folded traceback."""
    error = flow.ShapeError("what failed")
    error.__cause__ = type("RemoteTraceback", (Exception,), {"__str__": lambda self: '\n"""\nTraceback'})()
    assert frames.lines_below_card(error) == ["ShapeError: see the card above"]
