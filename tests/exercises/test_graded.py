"""The check of graded editions: the functions and exercises on disk judge, whatever a cell assigned."""

import builtins
import importlib
import pkgutil
import sys
from runpy import run_module

import pytest

import minflow as flow
import minflow.exercises
from minflow.exercises import checker, compare, judge, registry
from tests.exercises.teach.small_course import RIGHT, WRONG


@pytest.fixture(autouse=True)
def grading(monkeypatch):
    monkeypatch.setenv("MINFLOW_GRADING", "1")


def check(source):
    """Run a cell with an answer, and then the check cell."""
    space = {}
    exec(source, space)
    return run_module("minflow.exercises.graded")["check"]("slope", space["slope"])


def test_every_module_of_the_checker_is_unchanged():
    for found in pkgutil.walk_packages(minflow.exercises.__path__, "minflow.exercises."):
        if not found.name.startswith(("minflow.exercises.inside", "minflow.exercises.lessons")):
            importlib.import_module(found.name)
    assert run_module("minflow.exercises.graded")["find_replaced"]() == ""
    assert check(RIGHT["slope"]) == 1.0
    with pytest.raises(checker.WrongAnswer, match="Do you look to both sides"):
        check(WRONG["slope"])


def of_notebook(*arguments, **keywords):
    return 2.0


of_notebook.__module__ = "__main__"


@pytest.mark.parametrize(
    "space, name",
    [
        (minflow.exercises, "check"),
        (checker, "check"),
        (judge, "difference"),
        (compare, "difference"),
        (judge.Verdict, "ok"),
        (registry, "find"),
        (builtins, "abs"),
        (flow, "allclose"),
    ],
)
def test_replaced_function_is_named(monkeypatch, space, name):
    monkeypatch.setattr(space, name, of_notebook)
    with pytest.raises(AssertionError, match=rf"\b{name} has been replaced\. Nothing was checked") as caught:
        check(WRONG["slope"])
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_replaced_code_and_module_are_named(monkeypatch):
    monkeypatch.setattr(judge.judge, "__code__", of_notebook.__code__)
    with pytest.raises(AssertionError, match="judge.judge has been replaced"):
        check(WRONG["slope"])
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "minflow.exercises.judge", flow)
    with pytest.raises(AssertionError, match=r"minflow\.exercises\.judge\.\S+ has been replaced"):
        check(WRONG["slope"])


def test_changed_exercise_is_read_again(monkeypatch):
    monkeypatch.setattr(registry.find("slope"), "tolerance", (9.0, 9.0))
    monkeypatch.setattr(registry.find("slope"), "make_cases", lambda *arguments: [])
    with pytest.raises(checker.WrongAnswer, match="both sides"):
        check(WRONG["slope"])


def test_outside_grading_the_card_is_shown(monkeypatch):
    monkeypatch.setenv("MINFLOW_GRADING", "0")
    assert check(WRONG["slope"]).name == "one side"
