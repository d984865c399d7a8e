"""Results from an answer's process: plain data returns unchanged, anything else costs only that result."""

import dataclasses
import itertools
import json
import pickle

import numpy as np
import pytest

import minflow as flow
from minflow.exercises.definition import Case
from minflow.exercises.grading import process, request, sandbox, wire
from minflow.exercises.registry import all_exercises, find
from minflow.exercises.runner import RaisedError, Result
from tests.exercises.teach.sandboxes import needs_sandbox

VALUES = [
    *(None, True, 3, -(2**70), 1.5, float("inf"), 2 + 3j, "text\ud800", b"\0bytes", ..., range(2, 9, 3)),
    *([1, [2.0, "a"]], (1, (2,)), {1, 2}, frozenset({"a"}), {"a": [1], (1, 2): None}),
    *(np.arange(6.0).reshape(2, 3), np.zeros((0, 3)), np.float32(0.1), np.bool_(True), np.array(["a", "bc"])),
    *(flow.ones(2, 3), flow.tensor([1, 2]), flow.tensor(True), flow.nn.Parameter(flow.ones(2), requires_grad=False)),
]


def sent(value):
    return wire.load_result(wire.dump_result(Result(value))).value


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_plain_data_returns_unchanged(value):
    got = sent(value)
    assert type(got) is type(value) and repr(got) == repr(value)
    assert getattr(got, "dtype", None) == getattr(value, "dtype", None)


@pytest.mark.parametrize(
    "value, name",
    [
        (len, "builtin_function_or_method"),
        ((i for i in range(3)), "generator"),
        (object(), "object"),
        (np.zeros(10**7), "ndarray"),
        ([0.0] * 10**6, "list"),
        (10**10_000, "int"),
        (itertools.count(), "count"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_values_are_named(value, name):
    got = sent(value)
    assert isinstance(got, wire.Opaque) and type(got).__name__ == name and repr(got)


def test_every_field_of_a_result_is_sent():
    """A field that is added to the classes must be added to the messages."""
    assert wire.RESULT_FIELDS.keys() == {field.name for field in dataclasses.fields(Result)}
    assert wire.ERROR_FIELDS.keys() == {field.name for field in dataclasses.fields(RaisedError)}
    error = RaisedError("KeyError", "builtins.KeyError", ("KeyError", "object"), "'a'", (3, "x['a']"), "a", True)
    result = Result(None, error, "forward", (1,), 0.5, ["printed"], 7, ["warned"])
    assert wire.load_result(wire.dump_result(result)) == result


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        ["list"],
        ["list", 3],
        ["unknown", 1],
        ["array", "float64", [2], ""],
        ["array", "object", [1], "AAAA"],
        ["array", "float64", [-1], ""],
        ["array", "float64", [2**62, 2**62], ""],
        ["scalar", "float64", [0], ""],
        ["Tensor", "float64", "shape", ""],
        ["objects", [3], [1]],
        ["dict", [[["list", []], 1]]],
        ["dict", [[i, i] for i in range(3000)]],
        ["set", [["dict", []]]],
        ["set", [i * (2**61 - 1) for i in range(3000)]],
        ["range", 1, 2, 0],
        ["range", "a", 2, 1],
        ["bytes", "?"],
        ["complex", "1", 2.0],
        ["opaque", 3, "x"],
        ["opaque", "a\0b", "x"],
        ["tuple", [["tuple", [[]]]]],
        10**1000,
    ],
    ids=lambda value: repr(value)[:30],
)
def test_values_of_a_wrong_form_are_refused(value):
    fields = {**vars(Result()), "value": value}
    with pytest.raises(wire.WireError):
        wire.load_result(json.dumps(fields).encode())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"{",
        b'"text"',
        b"[" * 10_000,
        b'{"value": 1}',
        b"\xff\xfe",
        b"[" + b"0," * 10**6 + b"0]",
        b'"' + b"x" * 9_000_000 + b'"',
    ],
    ids=lambda line: repr(line[:12]),
)
def test_messages_of_a_wrong_form_are_refused(line):
    with pytest.raises(wire.WireError):
        wire.load_result(line)


# ---- what is sent to the process ------------------------------------------------------------------------------------


def test_requests_contain_no_answer_and_no_expected_result():
    """Pickling refuses exercises and their answers, so each exercise is pickled here."""
    for exercise in all_exercises():
        if exercise.make_cases is not None:
            cases = pickle.loads(process.prepared(exercise, 0).cases)
            assert all(repr(case.expected) == "NOT_GIVEN" and not case.text for case in cases)
        if exercise.draw_object is not None:
            assert list(pickle.loads(process.draws(frozenset([exercise.name])))) == [exercise.name]


@pytest.mark.parametrize("secret", ["right", "wrong", "exercise"])
def test_cases_with_an_answer_are_refused(secret):
    exercise = find("slope")
    value = {"right": exercise.right, "wrong": exercise.wrongs[0].answer, "exercise": exercise}[secret]
    with pytest.raises(pickle.PicklingError, match="slope"):
        request.dump_cases(exercise, [Case((1,), {}, run=lambda answer, x: value)])


# ---- the sandbox ----------------------------------------------------------------------------------------------------


def test_hidden_folders_are_masked_under_all_their_names(tmp_path):
    (tmp_path / "real/inside/solutions").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    places = [str(tmp_path / "real"), str(tmp_path / "link"), str(tmp_path / "link/inside")]
    masked = sandbox.masked(places, [tmp_path / "link/inside/solutions", tmp_path])
    assert masked == [f"{place}/solutions" for place in (f"{places[0]}/inside", f"{places[1]}/inside")]


@needs_sandbox
def test_answers_of_root_run_as_another_user():
    """In the sandbox no process is root's, and none has capabilities."""
    answer = (
        "lines = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "assert lines['Uid'].split()[0] != '0' and int(lines['CapEff'], 16) == 0 and lines['NoNewPrivs'] == '\\t1\\n'\n"
        "share = 0.1"
    )
    limits = process.Limits()
    response = process.run(process.request(find("blind"), [], answer, limits), limits, 60)
    assert wire.load_result(response.lines[1]).value == 0.1, response
