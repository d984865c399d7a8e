"""Answers that run in another process, from which only plain data returns, get the verdicts of `check`."""

import ast
import concurrent.futures
import contextlib
import inspect
import os
import sys
import textwrap

import pytest

from minflow.exercises import cells
from minflow.exercises.authoring import proof
from minflow.exercises.grading import process
from minflow.exercises.judge import definition_value, judge
from minflow.exercises.registry import all_exercises, find
from minflow.exercises.teach import grade
from tests.exercises.teach.sandboxes import needs_sandbox
from tests.sampling import place

SAMPLE = ("edge", "mixed_up", "one_hot", "parking", "who_keeps")
LIMITS = grade.Limits(seconds=120)
IMPORTS = """
import math, os, statistics, time
import numpy as np
import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.compiler.passes.rewrite import rewrite
from minflow.core.ir import outputs_of
from minflow.exercises import draw
"""


def helpers(exercise):
    """Return cells with the imports and undecorated parts of a definition, which its answers may use."""
    if exercise.make_cases is None:
        return []
    module, parts = sys.modules[exercise.make_cases.__module__], []
    for node in ast.parse(inspect.getsource(module)).body:
        text = ast.unparse(node)
        if isinstance(node, ast.ImportFrom) and node.level:
            origin = ".".join([*module.__name__.split(".")[: -node.level], node.module])
            if not origin.startswith("minflow.exercises"):
                parts.append(text.replace("." * node.level + node.module, origin, 1))
        elif not getattr(node, "decorator_list", ()) and "exercise" not in text:
            parts.append(text)
    return parts


# Wrong answers that count in a global variable: their results depend on how often they ran in this process before.
KEEP_STATE = {("stuck_counter", "global")}


def answers_of(exercise, share):
    """Yield (name, cell) of the right answers of a definition, and of a share of the wrong ones."""
    given, code = proof.given_to(exercise), exercise.make_cases is not None
    every = [("the solution", exercise.right)]
    every += [(f"right answer {number}", one) for number, one in enumerate(exercise.other_solutions, 2)]
    wrongs = [wrong for wrong in exercise.wrongs if (exercise.name, wrong.name) not in KEEP_STATE]
    every += [(wrong.name, wrong.answer) for wrong in wrongs if place(f"{exercise.name} {wrong.name}") < share]
    for name, answer in every:
        if not code:
            value = definition_value(answer, given)
            if not callable(value):  # a function has no literal
                yield name, f"{exercise.answer} = {value!r}"
        elif callable(answer) and getattr(answer, "__name__", "") == exercise.answer:
            yield name, textwrap.dedent(cells.definition_source(answer))


def run_cells(before, cell, names):
    """Run the cells here, as a process does."""
    space = dict(names)
    for text in before:
        with contextlib.suppress(Exception):
            space = proof.run_cell(text, space)
    return proof.run_cell(cell, space)


def described(outcome, wrong):
    return f"{outcome} ({wrong})" if wrong else outcome


def lasting_differences(exercise, pool, share):
    """The differences; on busy cores an answer may reach its limit, so they are looked for again with five times it."""
    return differences(exercise, pool, share) and differences(exercise, pool, share, patience=25)


def differences(exercise, pool, share=1.0, patience=5):
    """Return the answers of an exercise whose mark differs from the verdict of `check`. patience: factor of limits."""
    given, before, found, futures = proof.given_to(exercise), [IMPORTS, *helpers(exercise)], [], {}
    with proof.patient(exercise, patience):
        for name, cell in answers_of(exercise, share):
            try:
                answer = run_cells(before, cell, zip(exercise.given, given))[exercise.answer]
            except NameError:  # it uses another answer of the definition
                continue
            data = process.request(exercise, before, cell, LIMITS)
            futures[name] = cell, answer, pool.submit(process.run, data, LIMITS, LIMITS.seconds)
        for name, (cell, answer, future) in futures.items():
            finding = grade.judged(exercise, before, cell, future, lambda: given, LIMITS)
            verdict = judge(exercise, answer, given, LIMITS.seed)
            here = described(verdict.outcome, verdict.wrong and verdict.wrong.name)
            there = described(finding.outcome, finding.wrong)
            if here != there:
                found.append(f"{exercise.name}: {name!r} is {here} here, {there} in its process: {finding.remark}")
    return found


@pytest.fixture(scope="module")
def pool():
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as made:
        yield made


@needs_sandbox
@pytest.mark.parametrize("name", SAMPLE)
def test_verdicts_of_a_sample(name, pool):
    assert lasting_differences(find(name), pool, 0.2) == []


@needs_sandbox
@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in all_exercises()])
def test_verdicts_of_all_exercises(name, pool):
    assert lasting_differences(find(name), pool, 0.4) == []
