"""A check knows whether the cell of its answer ran to its end and bound the name, in a real kernel."""

import re

import pytest

from tests.cases import Cases

SETUP = """
import os
os.environ["MINFLOW_PROGRESS"] = "0"
import minflow as flow
from minflow.exercises import cell_runs, check
cell_runs.RUNS.runs.clear()
"""
HALF = "share = 0.5"  # a wrong answer that must not be judged again


@pytest.fixture
def kernel(real_kernel):
    real_kernel.fresh(SETUP)
    yield real_kernel
    real_kernel.run("", cell="")


def texts(outputs):
    """Return the text of a cell's outputs."""
    found = [
        "\n".join(content["traceback"]) if kind == "error" else content.get("text") or content["data"]["text/plain"]
        for kind, content in outputs
    ]
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", " ".join(found)).split())


def answered(kernel, *answers, cell="blind-answer", check='check("blind", share)'):
    """Return the text of a check after these runs of the answer's cell."""
    for answer in answers:
        kernel.run(answer, cell=cell)
    return texts(kernel.run(check)[1])


def test_stale_answers(kernel):
    """The check says what happened in the cell, and in which line."""
    wanted = {
        "share = 1/0": "stopped in line 1, before it set `share`: ZeroDivisionError: division by zero",
        "x = 1\nif x:\n    share = 1/0": "stopped in line 3, before it set `share`",
        "share = 0.1\nshare = sahre": "stopped in line 2, before it set `share`: NameError",
        "Share = 0.1": "Line 1 sets `Share`, but the check looks at `share`.",
        "x = 2\nshre = 0.1": "Line 2 sets `shre`, but the check looks at `share`.",
        "share == 0.1": "Line 1: `==` compares two values. To set `share`, write `=`.",
        "share: 0.1": "Line 1: `:` only describes the type. To set `share`, write `=`.",
        "share = = 0.1": "Python cannot read the cell of your answer, so it set nothing. Line 1: invalid syntax.",
        "share = 0.1\uff0c": "Line 1 contains \uff0c; write , in code.",
    }
    with Cases() as case:
        for cell in ("blind-answer", ""):
            for answer, text in wanted.items():
                with case(f"{answer!r} in cell {cell!r}"):
                    kernel.run("cell_runs.RUNS.runs.clear()")
                    shown = answered(kernel, HALF, answer, cell=cell)
                    assert "not checked" in shown and text in shown and "0.5" not in shown.split("not checked")[0]


def test_fresh_answers(kernel):
    """A cell that bound the name is judged, whatever other cells did, or this one afterwards."""
    with Cases() as case:
        for runs in (
            [("share = 0.1", "blind-answer")],
            [("share = 1/0", "blind-answer"), ("share = 0.1", "blind-answer")],
            [("share = 0.1\nprint(shre)", "blind-answer")],
            [("share = 0.1", "elsewhere"), ("# see above", "blind-answer")],
            [("share = 0.1", "elsewhere"), ("print(share)", "blind-answer")],
            [("share = 1/0", "blind-answer"), ("share = 0.1", "elsewhere")],
            [("share = 0.1", "blind-answer"), ("shares = 0.5", "elsewhere")],
            [("globals()['share'] = 0.1", "blind-answer")],
            [("for share in (0.5, 0.1): pass", "blind-answer")],
            [("%time share = 0.1", "blind-answer")],
            [("share = 0.1", ""), ("shares = 0.5", ""), ("x = 1", "")],
        ):
            with case(runs):
                kernel.run(f"cell_runs.RUNS.runs.clear()\n{HALF}")
                for text, cell in runs:
                    kernel.run(text, cell=cell)
                assert "blind right" in answered(kernel)


def test_missing_quotes(kernel):
    shown = answered(
        kernel, "recall = ...", "recall = b, c, a", cell="recall-01-answer", check='check("recall_01", recall)'
    )
    assert "stopped in line 1" in shown and 'A text needs quotes: `"b"`.' in shown


def test_misspelled_function(kernel):
    """A right answer is not judged again after its cell was changed to define another name."""
    right = "def slope(f, x, h=1e-3):\n    return (f(x + h) - f(x - h)) / (2 * h)"
    shown = answered(kernel, right, right.replace("slope", "slpe"), cell="slope-answer", check='check("slope", slope)')
    assert "Line 1 sets `slpe`, but the check looks at `slope`." in shown


def test_checks_without_an_answer(kernel):
    """After a restart, and for calls with other arguments."""
    with Cases() as case:
        for call, text in {
            'check("blind", share)': "run the cell above that sets share. After a restart of the kernel",
            'check("blind")': 'This check is called as `check("blind", share)`.',
            'check("blind", 0.1, 2)': 'This check is called as `check("blind", share)`.',
            'check("blind", shar)': 'This check is called as `check("blind", share)`.',
            'check("slope", print, 3)': 'This check is called as `check("slope", slope)`.',
            'check("blnd", 0.1)': "UnknownExercise there is no exercise 'blnd' where at In[",
        }.items():
            with case(call):
                assert text in texts(kernel.run(call)[1])
        with case("the answer's cell set another name"):
            kernel.run("shapse = 0.1", cell="blind-answer")
            shown = texts(kernel.run('check("blind", share)')[1])
            assert "MissingAnswer" in shown and "Line 1 sets `shapse`, but the check looks at `share`." in shown
        with case("a name without quotes in an answer that is computed from the question"):
            kernel.run("keeper = tanh", cell="who-keeps-answer")
            assert 'A text needs quotes: `"tanh"`.' in texts(kernel.run('check("who_keeps", keeper)')[1])
        with case("unknown names of other cells get no advice about checks"):
            assert "Try" not in texts(kernel.run("print(unknown)")[1])
