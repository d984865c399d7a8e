"""Instructions: parameters declared by name, packed into words and loaded from them."""

from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from minflow.platforms.compiled.codegen.llvm import number_at, put
from minflow.platforms.compiled.runtime.instructions import InnerTask, Words, instruction, word_at
from minflow.platforms.compiled.runtime.pointers import at
from minflow.platforms.compiled.runtime.task_scheduler import call
from tests.single_tasks import run_tasks

X = np.arange(12, dtype="f4")


class Side(NamedTuple):
    """A pair of parameters, one of which is a float."""

    array: np.ndarray
    factor: float


@instruction
def add_scaled(chunk, scratch, out, side: Side, offset: float):
    """Compute out = array * factor + offset."""
    put(out, chunk, number_at(side.array, chunk) * np.float32(side.factor) + np.float32(offset))


@instruction
def add_all(chunk, scratch, out, count, arrays: Words):
    """Add any number of arrays."""
    total = np.float32(0)
    for i in range(count):
        total += number_at(word_at(arrays, i), chunk)
    put(out, chunk, total)


@instruction
def twice(chunk, scratch, words, out, inner: InnerTask):
    """Run a task, if there is one, then double its result; write the third word, the address of `out`, checked."""
    if inner.code:
        call(inner.code, inner.words, chunk, scratch)
    put(out, chunk, number_at(word_at(words, 0), chunk) * np.float32(2))


def test_arguments_by_position_and_by_name_are_the_same():
    out = np.empty(12, "f4")
    task = add_scaled(12, out, Side(X, 3.0), 0.5, scratch=7)
    for other in (
        add_scaled(12, offset=0.5, side=Side(X, 3.0), out=out, scratch=7),
        add_scaled(12, out, offset=0.5, side=Side(X, 3), scratch=7),
    ):
        assert (other.words == task.words).all() and other[2:5] == task[2:5] == (12, 28, "add_scaled")
        assert {at(a) for a in other.holds} == {at(X), at(out)}
    run_tasks([task])
    assert (out == X * 3 + 0.5).all()


def test_any_number_of_arguments():
    out = np.empty(12, "f4")
    for count in range(4):
        run_tasks([add_all(12, out, count, *[X] * count)])
        assert (out == X * count).all()


def test_inner_tasks():
    out = np.empty(12, "f4")
    inner = add_scaled(1, out, Side(X, 1.0), 0.0)
    task = twice(12, out, inner)
    assert {at(a) for a in task.holds} == {at(X), at(out), at(inner.words)}
    run_tasks([task])
    assert (out == 2 * X).all()
    run_tasks([twice(12, out, inner=None)])
    assert (out == 4 * X).all()


@pytest.mark.parametrize(
    "arguments, named, message",
    [
        ((X, Side(X, 1.0)), {}, "add_scaled: missing a required argument: 'offset'"),
        ((X, Side(X, 1.0), 0.0, 1), {}, "add_scaled: too many positional arguments"),
        ((X, Side(X, 1.0)), {"offste": 0.0}, "offste|missing a required argument: 'offset'"),
        ((X, Side(X, 1.0), 0.0), {"out": X}, "add_scaled: multiple values for argument 'out'"),
        ((1.5, Side(X, 1.0), 0.0), {}, "add_scaled: out must be an array or an integer, got 1.5"),
        ((None, Side(X, 1.0), 0.0), {}, "add_scaled: out must be an array or an integer, got None"),
        ((X, Side(X, 1.0), None), {}, "add_scaled: offset must be float, got None"),
        ((X, (X, 1.0), 0.0), {}, "add_scaled: side must be Side, got"),
        ((X, Side(1.5, 1.0), 0.0), {}, "add_scaled: side.array must be an array or an integer, got 1.5"),
    ],
)
def test_wrong_arguments_are_named(arguments, named, message):
    with pytest.raises(TypeError, match=message):
        add_scaled(12, *arguments, **named)
