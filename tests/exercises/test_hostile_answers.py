"""Hostile answers: objects that never end, lie or explode, and code that changes its environment."""

import cProfile
import functools
import gc
import os
import random
import signal
import sys
import threading
import time
import unittest.mock

import numpy as np
import pytest

import minflow as flow
from minflow.core import mode
from minflow.exercises import WrongAnswer, answer_source, check, checker, isolation, judge, registry, runner
from tests.exercises.answers import exercise_of, typed

pytestmark = pytest.mark.usefixtures("unraisable_errors_are_printed")


def half(x):
    return x / 2


@pytest.fixture(autouse=True)
def exercise(monkeypatch):
    """An exercise `half`, with enough time also on a busy machine."""
    one = exercise_of(half, [0.0, 1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr(checker, "find", lambda name: one)
    for name in ("NBGRADER_EXECUTION", "MINFLOW_GRADING", "MINFLOW_LANG"):
        monkeypatch.delenv(name, raising=False)
    return one


@pytest.fixture
def hasty(exercise):
    """A short time limit, for endless answers."""
    exercise.time_limit = 0.04


def checked(body, before=""):
    text = f"{before}\ndef half(x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return check("half", typed(text, "half"))


# ---- objects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "base, method",
    [
        ("object", "__repr__"),
        ("object", "__getattr__"),
        ("object", "detach"),
        ("list", "__len__"),
        ("list", "__iter__"),
        ("float", "__float__"),
    ],
)
def test_endless_return_values(exercise, base, method):
    before = f"class Evil({base}):\n    numpy = 1\n    def {method}(self, *rest):\n        while True: pass"
    body = "return Evil()" if base == "object" else "return Evil([1])" if base == "list" else "return Evil(9)"
    for exercise.time_limit in (0.04, 0.4, 4.0):  # a busy machine reaches the endless line later
        result = checked(body, before)
        if result.verdict.outcome == "wrong" or "while True: pass" in repr(result):
            break
    assert not result.ok and result.verdict.outcome in ("stopped", "wrong")
    assert result.verdict.outcome == "wrong" or "while True: pass" in repr(result)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_endless_answers_are_wrong_when_graded(hasty, monkeypatch):
    monkeypatch.setenv("MINFLOW_GRADING", "1")
    with pytest.raises(WrongAnswer, match="half"):
        checked("return Evil()", "class Evil:\n    def __repr__(self):\n        while True: pass")


@pytest.mark.parametrize(
    "base, method",
    [
        ("object", "__getattribute__"),
        ("object", "__repr__"),
        ("object", "__getattr__"),
        ("list", "__len__"),
        ("float", "__float__"),
        ("dict", "__iter__"),
    ],
)
@pytest.mark.parametrize("error", ["SystemExit", "ValueError"])
def test_return_values_that_raise(base, method, error):
    result = checked("return Evil()", f"class Evil({base}):\n    def {method}(self, *rest):\n        raise {error}")
    assert not result.ok and repr(result)


@pytest.mark.parametrize(
    "body",
    [
        "a = []\na.append(a)\nreturn a",
        "a = {}\na[1] = a\nreturn a",
        "a = []\na += [a, a, a]\nreturn a",
        "a = []\nfor i in range(100_000):\n    a = [a]\nreturn a",
        "return 10 ** 10_000",
        "return [0.0] * 2_000_000",
        "return 'x' * 10_000_000",
        "return iter(int, 1)",
        "return ...",
        "import numpy\nreturn numpy.array([object()])",
    ],
)
def test_odd_values(body):
    result = checked(body)
    assert not result.ok and len(repr(result)) < 2000 and result._repr_mimebundle_()


@pytest.mark.parametrize(
    "body, kind",
    [
        ("import sys\nsys.exit(3)", "SystemExit"),
        ("exit()", "SystemExit NameError"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise BaseException", "BaseException"),
        ("class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E()", "Exception"),
        ("return half(x)", "RecursionError"),
        ("import numpy\nreturn numpy.ones(2**60)", "MemoryError ValueError"),
        ("import functools\nreturn functools.reduce(lambda a, b: half(x), [1, 2])", "RecursionError"),
    ],
)
def test_ways_to_end(body, kind):
    result = checked(body)
    assert result.verdict.outcome == "stopped" and "in your line" in repr(result)
    assert result.verdict.result.error.is_a(*kind.split())


def test_error_with_endless_text(exercise):
    exercise.time_limit = 0.2
    text = repr(checked("raise E()", "class E(Exception):\n    def __str__(self):\n        while True: pass"))
    assert "stopped in your line" in text


# ---- answers of all kinds -------------------------------------------------------------------------------------------


class Callable:
    def __call__(self, x):
        return x / 2

    def method(self, x):
        return x / 2


def with_more(x, more):
    return x / 2 + more


@functools.wraps(half)
def decorated(*args):
    return half(*args)


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: x / 2,
        functools.partial(with_more, more=0),
        Callable(),
        Callable().method,
        decorated,
        functools.cache(half),
        eval("lambda x: x / 2"),
    ],
)
def test_right_in_every_form(answer):
    assert check("half", answer).ok


class SaysYes:
    """An object with every attribute."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args):
        return self


@pytest.mark.parametrize(
    "answer",
    [
        max,
        len,
        int,
        np.add,
        np.square,
        flow.add,
        flow.nn.Linear(1, 1),
        np,
        3,
        "half",
        SaysYes(),
        unittest.mock.MagicMock(),
        [half],
        type("Class", (), {}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_wrong_in_every_form(answer):
    result = check("half", answer)
    assert not result.ok and repr(result) and result.verdict.outcome != "right"


def test_function_without_a_result():
    assert "coroutine" in repr(check("half", typed("async def half(x):\n    return x / 2\n", "half")))
    assert "generator" in repr(checked("yield x / 2"))


def test_fingerprints_of_answers_differ():
    space = {}
    exec("def one(x):\n    return 1\ndef two(x):\n    return 2", space)
    answers = [
        functools.partial(with_more, more=0),
        Callable(),
        space["one"],
        space["two"],
        max,
        len,
        [1],
        [2],
        [0] * 999 + [1],
        [0] * 999 + [2],
        SaysYes(),
    ]
    marks = [answer_source.fingerprint(one) for one in answers]
    assert len(set(marks)) == len(marks) and marks == [answer_source.fingerprint(one) for one in answers]


# ---- environment ----------------------------------------------------------------------------------------------------


def states():
    return {
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "numpy": [np.geterr(), np.get_printoptions()],
        "interrupt": signal.getsignal(signal.SIGINT),
        "profile": sys.getprofile(),
        "gc": gc.isenabled(),
        "recursion": sys.getrecursionlimit(),
        "streams": [sys.stdout, sys.stderr],
        "mode": mode.MODE.get(),
        "dtype": flow.get_default_dtype(),
        "grad": flow.is_grad_enabled(),
        "print": repr(flow.tensor([1 / 3])),
        "random": [np.asarray(flow.get_rng_state()).tolist(), random.getstate(), np.random.get_state()[1].tolist()],
    }


def test_profiler_is_kept():
    """The profiler of `%prun check(...)` is not a function, as sys.setprofile requires."""
    profiler = cProfile.Profile()
    assert profiler.runcall(lambda: check("half", half)).ok and profiler.getstats()


def test_state_is_restored(tmp_path, capsys):
    before = states()
    result = checked(f"""
import gc, os, random, signal, sys, numpy, minflow
os.chdir({str(tmp_path)!r}); os.environ["ZOO"] = "1"; os.environ.pop("PATH"); numpy.seterr(all="raise")
numpy.set_printoptions(precision=1); signal.signal(signal.SIGINT, signal.SIG_IGN); sys.setprofile(lambda *rest: None)
minflow.manual_seed(5), numpy.random.seed(5), random.seed(5); minflow.set_grad_enabled(False); minflow.notices(False)
minflow.set_printoptions(precision=2); minflow.no_grad().__enter__()
gc.disable(); minflow.set_default_dtype(minflow.float64); sys.setrecursionlimit(777); sys.stdout.close(); sys.stdout = 3
return x / 2""")
    after = states()
    assert result.ok and {name: state for name, state in after.items() if state != before[name]} == {}
    print("still")
    assert capsys.readouterr().out == "still\n"


@pytest.mark.parametrize("end", ["return x / 2", "raise ValueError", "raise KeyboardInterrupt", "while True: pass"])
def test_draws_of_an_answer_are_restored_and_repeat(hasty, end):
    """However the answer ends, the notebook draws on as if it had not run; and it draws the same each time."""
    before, draws = states()["random"], []
    for _ in range(2):
        result = checked(f"""
import random, numpy, minflow
print(random.random(), numpy.random.rand(), minflow.rand(1).item())
{end}""")
        draws += result.verdict.result.printed if result.verdict.result else []
        assert states()["random"] == before
    assert draws[:1] == draws[1:]


def test_a_value_that_never_ends_does_not_interrupt_restoring(monkeypatch):
    class Endless:
        def __getattr__(self, name):
            while True:
                pass

    def put(state):
        end = time.perf_counter() + 0.05  # several intervals of the timer
        while time.perf_counter() < end:
            pass
        restored.append(state)

    one, restored = registry.find("blind"), []
    monkeypatch.setattr(one, "time_limit", 0.1)
    monkeypatch.setattr(checker, "find", lambda name: one)
    monkeypatch.setattr(isolation, "STATES", [*isolation.STATES, (lambda: 5, put)])
    assert "stopped when its result was checked" in repr(check("blind", Endless())) and restored == [5]


def test_direct_writes_to_stdout_are_captured(capsys):
    assert checked("import sys\nsys.stdout.writelines(['a\\n'] * 1000)\nreturn x / 2").ok
    assert capsys.readouterr().out == ""


def test_changes_during_an_answer_are_detected():
    kept = np.isclose
    try:
        result = checked("import numpy\nnumpy.isclose = lambda *rest, **more: numpy.array(True)\nreturn 0.0")
    finally:
        np.isclose = kept
    assert result.verdict.outcome == "changed" and "numpy.isclose" in repr(result)


def test_concurrent_checks_keep_the_output():
    out = sys.stdout
    threads = [threading.Thread(target=lambda: [check("half", half) for i in range(3)]) for j in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sys.stdout is out and check("half", half).ok


def test_answer_that_calls_check():
    result = check("half", typed("def half(x):\n    return check('half', half)\n", "half", check=check))
    assert result.verdict.outcome == "stopped" and "check is called by an answer" in repr(result)


def test_input_is_refused():
    assert "EOFError: input() is not available" in repr(checked("return float(input('number: '))"))


def test_deep_recursion_is_bounded():
    result = checked("import sys\nsys.setrecursionlimit(10 ** 9)\nreturn half(x)")
    assert "RecursionError" in repr(result) and sys.setrecursionlimit.__name__ == "setrecursionlimit"


def test_line_without_source():
    space = {}
    exec("def half(x):\n    return x / 0", space)
    assert repr(check("half", space["half"])).splitlines()[0].endswith("stopped in your line 2")


def test_long_error_text_is_truncated():
    assert len(repr(checked("raise ValueError('x' * 10_000_000)"))) < 2000


def test_large_results_are_not_kept(monkeypatch, exercise):
    monkeypatch.setattr(runner, "MAX_RESULT_BYTES", 1000)
    verdict = judge.judge(exercise, lambda x: np.zeros(1000))
    assert verdict.number == 1 and verdict.right == 0


def test_lock_is_left_held():
    assert isolation.ONE_AT_A_TIME.acquire(blocking=False)
    isolation.ONE_AT_A_TIME.release()


# ---- in a notebook --------------------------------------------------------------------------------------------------


def test_kernel_remains_usable(real_kernel):
    real_kernel.fresh("from minflow.exercises import check")
    head = "def slope(f, x, h=1e-3):\n    "
    for body, shown in [
        ("exit()", "SystemExit"),
        ("return input()", "EOFError"),
        ("import os, signal\n    os.kill(os.getpid(), signal.SIGINT)", "KeyboardInterrupt"),
        ("for i in range(1000): display(i)\n    return 0", "smallest case"),
    ]:
        status, outputs = real_kernel.run(f"{head}{body}\ncheck('slope', slope)")
        text = "".join(content.get("data", {}).get("text/plain", "") for kind, content in outputs)
        assert status == "ok" and shown in text, outputs
        assert len(outputs) <= 20 * 8 + 1
    assert real_kernel.run("print(1 + 1)")[0] == "ok"
