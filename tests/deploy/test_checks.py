"""Each check returns valid values, and names expected value, actual value and path of invalid ones."""

import math

import pytest

from minflow.core.base.errors import GraphFormatError
from minflow.deploy import checks
from minflow.deploy.checks import (
    Malformed,
    check_bool,
    check_choice,
    check_each,
    check_fields,
    check_int,
    check_list,
    check_mapping,
    check_real,
    check_text,
    checking_file,
)

HUGE = "x" * 1_000_000
DEEP = []
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "check, right",
    [
        (check_bool, [True, False]),
        (check_int, [0, 2**63 - 1]),
        (check_real, [0, -3, 0.5, -1e300, 2**62]),
        (check_text, ["", "fc1.weight", "权重", "é" * 255]),
        (check_list, [[], [1, "2"]]),
    ],
)
def test_valid_values_are_returned(check, right):
    for x in right:
        assert check(x, "here") is x


@pytest.mark.parametrize(
    "check, wrong",
    [
        (check_bool, [0, 1, None, "true"]),
        (check_int, [True, 1.0, "1", None, -1, 2**63, [1]]),
        (check_real, [True, "1", None, 2**70, math.inf, [], {"float": "1"}, {"float": []}, {}]),
        (check_text, [1, None, "a\n", "\x1b[31m", "\u202e", "\ud800", HUGE, b"x"]),
        (check_list, [(), {}, "ab", None]),
    ],
)
def test_error_names_the_value_briefly(check, wrong):
    for x in wrong:
        with pytest.raises(Malformed) as caught:
            check(x, "nodes[12].attrs.axis")
        assert caught.value.place == "nodes[12].attrs.axis" and caught.value.expected and len(str(caught.value)) < 300
        assert str(caught.value).startswith("nodes[12].attrs.axis must be ")


@pytest.mark.parametrize("x", [HUGE, DEEP, [HUGE] * 1000, {"a": DEEP, "b": 10**4000}, {str(i): i for i in range(9999)}])
def test_long_values_are_truncated(x):
    with pytest.raises(Malformed) as caught:
        check_bool(x, "p")
    assert 0 < len(caught.value.actual) < 400


def test_limits():
    assert check_int(-4, "p", -4, 3) == -4 and check_text("ab", "p", 2) == "ab" and check_list([1], "p", 1, 1) == [1]
    for call, words in [
        (lambda: check_int(4, "p", -4, 3), "whole number from -4 to 3, got 4"),
        (lambda: check_int(-1, "p"), "whole number from 0, got -1"),
        (lambda: check_text("abc", "p", 2), "0 to 2 characters.*'abc'"),
        (lambda: check_text("", "p", min_length=1), "1 to 255 characters"),
        (lambda: check_list([1, 2], "p", 1), r"0 to 1 entries.*\[1, 2\]"),
        (lambda: check_list([1], "p", 2, 2), "list of 2 entries"),
        (lambda: check_list([], "p", min_length=1), "at least 1 entries"),
        (lambda: check_choice("b", "p", ["c", "a"]), "one of a, c, got 'b'"),
        (lambda: check_choice([], "p", {"a"}), "one of a"),
        (lambda: check_choice("b", "p", [f"op{i}" for i in range(40)]), "or one of 28 more"),
    ]:
        with pytest.raises(Malformed, match=words):
            call()
    assert check_text("a\n\tb", "p", lines=True) and check_choice("a", "p", {"a": 1}) == "a"


def test_error_names_the_path_in_a_structure():
    assert check_fields({"a": 1}, "p", ["a"], ["b"]) == {"a": 1} and check_fields({"a": 1, "b": 2}, "p", ["a"], ["b"])
    assert check_each([1, 2], "p", check_int, 2) == [1, 2] and check_mapping({"a": 1}, "p", check_int, 1) == {"a": 1}
    for call, place, found in [
        (lambda: check_fields([], "p", ["a"]), "p", "[]"),
        (lambda: check_fields({"b": 1}, "p", ["a"]), "p", "['b']"),
        (lambda: check_fields({"a": 1, "z": 2}, "p", ["a"], ["b"]), "p", "['z']"),
        (lambda: check_each([1, -2], "p", check_int), "p[1]", "-2"),
        (lambda: check_mapping({"a": -1}, "p", check_int), "p.a", "-1"),
        (lambda: check_mapping({"a": 1, "b": 1}, "p", check_int, 1), "p", "{'a': 1, 'b': 1}"),
        (lambda: check_mapping({"\n": 1}, "p", check_int), "a name in p", r"'\n'"),
    ]:
        with pytest.raises(Malformed) as caught:
            call()
        assert (caught.value.place, caught.value.actual) == (place, found)


def test_one_error_of_four_parts():
    with pytest.raises(GraphFormatError) as caught, checking_file("graph.json"):
        check_int(-2, "nodes[3].axis")
    error = caught.value
    assert error.what == "graph.json: nodes[3].axis must be a whole number from 0" and error.hint == checks.RESAVE_HINT
    assert error.values == {"place": "nodes[3].axis", "found": "-2"} and "test_checks.py" in error.where
    with (
        pytest.raises(GraphFormatError, match="(?s)whole file must.*Try: a newer one"),
        checking_file("x", "a newer one"),
    ):
        check_bool(1, "")
