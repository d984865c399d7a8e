"""Which values count as equal, and how differences are described."""

import math

import numpy as np
import pytest

import minflow as flow
from minflow.exercises.compare import clue, difference, form_difference, format_value

CLOSE = (1e-6, 1e-5)
NAN = math.nan


@pytest.mark.parametrize(
    "got, expected",
    [
        (2, 2),
        (2.0, 2.0),
        (2.0000001, 2.0),
        (2, 2.0),
        (np.float32(0.1), 0.1),
        (np.int64(3), 3),
        (flow.tensor(2.0), 2.0),
        (flow.tensor([1.0, 2.0]), np.array([1, 2.0])),
        ([1.0, 2.0], np.array([1.0, 2.0])),
        (np.array([1.0, 2]), [1.0, 2.0]),
        ((1, 2), [1, 2]),
        (NAN, NAN),
        (math.inf, math.inf),
        ("error", "error"),
        ({1, 2}, {2, 1}),
        (None, None),
        ({"a": 1.0}, {"a": 1.0}),
        ([(4, 3), "error"], [(4, 3), "error"]),
        (True, True),
        (np.bool_(True), True),
        (flow.tensor([1.0], requires_grad=True), [1.0]),
        ([], []),
        ((2.0, [1.0, NAN]), (2.0, [1.0, NAN])),
        (np.zeros((0, 3)), np.zeros((0, 3))),
        ([np.zeros(2), np.ones(3)], [np.zeros(2), np.ones(3)]),
    ],
)
def test_equal_values(got, expected):
    assert difference(got, expected, CLOSE) is None


@pytest.mark.parametrize(
    "got, expected, kind",
    [
        (2.1, 2.0, "value"),
        (None, 2.0, "type"),
        ("2", 2.0, "type"),
        (2.0, 2, "dtype"),
        (True, 1.0, "dtype"),
        (1.0, True, "dtype"),
        (np.array([True]), np.array([1.0]), "dtype"),
        (np.ones(3), np.ones((3, 1)), "shape"),
        (np.array([NAN, 1.0]), np.ones(2), "nan"),
        (1.0, NAN, "value"),
        ([1, 2], [1, 2, 3], "length"),
        ({"a": 1}, {"b": 1}, "keys"),
        ({"a": 1}, {"a": 2}, "value"),
        ("Error", "error", "value"),
        (4, "error", "type"),
        ([(4, 3), 1], [(4, 3), "error"], "type"),
        (lambda: 1, 2.0, "type"),
        (math.inf, 2.0, "value"),
        (-math.inf, math.inf, "value"),
        ([[1, 2], [3]], [[1, 2], [3, 4]], "length"),
        (iter([1]), [1], "type"),
        (object(), 1.0, "type"),
        ([], [1.0], "length"),
    ],
)
def test_different_values(got, expected, kind):
    assert difference(got, expected, CLOSE).kind == kind


def test_exact_types():
    one, other = np.ones(2, np.float32), np.ones(2)
    assert difference(one, other, CLOSE) is None
    assert difference(one, other, CLOSE, exact_types=True).kind == "dtype"
    assert difference([1.0, 1.0], other, CLOSE, exact_types=True).kind == "type"


def test_object_that_refuses_comparison():
    class Hostile:
        def __eq__(self, other):
            raise RuntimeError

        __hash__ = None

        def __repr__(self):
            raise RuntimeError

    assert difference(Hostile(), object(), CLOSE).kind == "type"
    assert "its repr raises RuntimeError" in format_value(Hostile())


@pytest.mark.parametrize(
    "got, expected, says",
    [
        ([-1.0, -2.0], [1.0, 2.0], "sign"),
        ([2.0, 4.0], [1.0, 2.0], "2 times"),
        ([1.5, 2.5], [1.0, 2.0], "off by 0.5"),
        (np.array([[1, 3], [2, 4.0]]), np.array([[1, 2], [3, 4.0]]), "rows and columns swapped"),
        ([3.0, 2, 1], [1.0, 2, 3], "opposite order"),
        (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3).T, "rows and columns swapped"),
        (np.arange(6.0), np.arange(6.0).reshape(2, 3), "but their shape"),
        ([5.0, 1.0], [1.0, 2.0], ""),
    ],
)
def test_differences_are_described(got, expected, says):
    got, expected = np.asarray(got), np.asarray(expected)
    text = clue(got, expected, difference(got, expected, CLOSE))
    assert says in text and bool(text) == bool(says)


def test_nearly_equal_is_not_called_equal():
    got, expected = np.array([1.0, 2.0]) * (1 + 1e-8), np.array([1.0, 2.0])
    assert clue(got, expected, difference(got, expected, (1e-12, 1e-12))) == ""


@pytest.mark.parametrize(
    "value, text",
    [
        (3.0, "3"),
        (3.31, "3.31"),
        (2, "2"),
        (True, "True"),
        ("error", "'error'"),
        (None, "None"),
        (1e-20, "1e-20"),
        ([1.0, 2.5], "[1, 2.5]"),
        ((4, 3), "(4, 3)"),
        ((4,), "(4,)"),
        ([(4, 3), "error"], "[(4, 3), 'error']"),
        (range(3), "range(0, 3)"),
        ({"a": np.ones(2)}, "{'a': float64[2]  [1 1]}"),
        ("x" * 200, "'" + "x" * 71 + " ..."),
        (np.ones((4, 3), np.float32), "float32[4, 3]  all 1"),
        (np.zeros((2, 0)), "float64[2, 0]  []"),
        (flow.tensor([4.0, 5.0]), "float32[2]  [4 5]"),
        (np.arange(20), "int64[20]  [0 1 2 3 4 5 6 7 ...]"),
        (np.array([[3], [3.5]]), "float64[2, 1]  [[3] [3.5]]"),
    ],
)
def test_values_on_a_line(value, text):
    assert format_value(value) == text


@pytest.mark.parametrize(
    "got, expected, text",
    [
        ([1.0], flow.tensor([1.0]), "It must be a tensor, got a list."),
        (np.array([1.0]), flow.tensor([1.0]), "It must be a tensor, got a NumPy array."),
        (flow.tensor(1.0), 1.0, "It must be a number, got a tensor."),
        (iter([1]), [1], "It must be a list, got a generator."),
        ([1], (i for i in [1]), "It must be a generator, got a list."),
        (flow.tensor(1.0).item, 1.0, "got a method (are its parentheses missing?)."),
    ],
)
def test_form_of_a_result(got, expected, text):
    assert text in form_difference(got, expected).text


@pytest.mark.parametrize(
    "got, expected", [(np.float64(1), 1), (np.array([1]), [1]), ((1, 2), [1, 2]), ("a", 1), (None, 1)]
)
def test_forms_that_do_not_differ(got, expected):
    assert form_difference(got, expected) is None
