"""Answers do not affect the notebook kernel that they run in."""

import sys
import threading
import warnings

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.compiler.target import HOST
from minflow.core.kernels import EAGER_PLATFORMS, HOST_PLATFORMS, PlatformsBySize, use_platforms
from minflow.core.spec import LARGE
from minflow.exercises import isolation
from minflow.exercises.judge import judge
from minflow.platforms.compiled.config import PLATFORMS, CompiledKernelConfig
from minflow.platforms.compiled.policy import target
from minflow.platforms.compiled.switch import passes, use
from tests.exercises.answers import exercise_of, typed


def double(x):
    return x * 2


def exercise(time_limit=60.0):
    return exercise_of(double, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], time_limit)


def verdict(text, time_limit=60.0):
    return judge(exercise(time_limit), typed(text, "double", flow=flow, np=np, sys=sys))


def test_jobs_of_the_notebook_keep_their_session():
    """An answer that defines jobs, fills the queue and clears the session leaves those of the notebook unchanged."""

    def job_of(name, rate):
        source = f"""
            @flow.global_function(type="train")
            def {name}(x: tp.Numpy.Placeholder((2,))) -> tp.Callback[tp.Numpy]:
                w = flow.get_variable("w", shape=(2,), initializer=flow.ones_initializer())
                rate = flow.optimizer.PiecewiseConstantScheduler([], [{rate}])
                flow.optimizer.SGD(rate, momentum=0).minimize(w * x)
                return w * 1
        """
        return typed(source, name, flow=flow, tp=tp)

    flow.clear_default_session()
    flow.config.cpu_device_num(2)
    x = np.ones(2, "float32")
    mine = job_of("mine", 0.5)
    for _ in range(2):
        last = mine(x).get()
    run = flow.start(mine, [(x,)], epochs=10_000)
    text = """
        def double(x):
            assert not mine.session.variables and mine.session.devices == 1
            job, seen = job_of("mine", 5.0), []
            for _ in range(3):
                job(np.ones(2, "float32"))(seen.append)
            flow.sync_default_session()
            assert len(seen) == 3 and job.steps == 3
            job(np.ones(2, "float32"))(lambda w: 1 / 0)
            return 2 * x
    """
    answer = typed(text, "double", flow=flow, np=np, job_of=job_of, mine=mine)
    done = run.steps
    found = judge(exercise(), answer)
    assert found.ok, found.result
    run.stop()
    run.result()
    flow.sync_default_session()
    assert "cpu_device_num=2" in repr(flow.config) and mine.session.devices == 2
    assert mine.steps > 2 and run.steps >= done and mine.session.jobs == {"mine": mine}
    weights = flow.get_all_variables()["w"].numpy()
    np.testing.assert_allclose(last, [0.75, 0.75])
    assert (weights < last).all() and len(flow.timeline(mine, steps=3)) == min(3, mine.steps)
    flow.config.cpu_device_num(1)
    flow.clear_default_session()


@pytest.mark.usefixtures("unraisable_errors_are_printed")
@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "while True:\n        try:\n            while True: pass\n        except BaseException: continue",
        "import time; time.sleep(99)",
        "while True: print('flood')",
    ],
)
def test_endless_answer_is_stopped_at_its_line(body):
    found = verdict(f"def double(x):\n    {body}\n", time_limit=0.1)
    assert found.outcome == "stopped" and found.result.timed_out and found.number == 1


def test_output_flood_is_counted_not_shown(capsys):
    found = verdict("def double(x):\n    for i in range(5_000): print('line', i)\n    return 0\n")
    assert found.result.printed[:2] == ["line 0", "line 1"] and len(found.result.printed) == 20
    assert found.result.omitted_lines == 5_000 - 20
    assert capsys.readouterr().out == ""


def test_other_threads_print_as_before(capsys):
    printed = threading.Event()

    def speak():
        print("from elsewhere")
        printed.set()

    with isolation.isolated() as alone:
        thread = threading.Thread(target=speak)
        thread.start()
        assert printed.wait(60)
        thread.join()
        print("mine")
    assert alone.printed == ["mine"]
    assert capsys.readouterr().out == "from elsewhere\n"


def test_warnings_are_kept_for_the_card():
    with warnings.catch_warnings(record=True) as outside:
        warnings.simplefilter("always")
        found = verdict("import warnings\ndef double(x):\n    warnings.warn('careful')\n    return 0\n")
    assert outside == [] and found.result.warned == ["careful"]


def test_arguments_are_fresh_for_each_call():
    one = exercise_of(double, [np.ones(2) * i for i in range(5)])
    spoils = typed("def double(x):\n    x *= 2\n    return x\n", "double")
    for _ in range(2):
        verdict = judge(one, spoils)
        assert (verdict.number, verdict.difference.kind) == (2, "argument")  # zeros, doubled, are unchanged
        assert "changes its argument `x`: compute with a copy" in verdict.difference.text


def test_arguments_may_change_if_the_solution_changes_them():
    def double(x):
        x *= 2
        return x

    assert judge(exercise_of(double, [np.ones(2)]), typed("def double(x):\n    x += x\n    return x\n", "double")).ok


@pytest.mark.parametrize(
    "space, name",
    [
        (flow.Tensor, "__add__"),
        (flow.Tensor, "sum"),
        (flow, "exp"),
        (flow.nn, "Linear"),
        (np, "exp"),
        (flow.nn.Module, "__call__"),
        (flow.nn.functional, "relu"),
        (flow.optim, "SGD"),
        (np, "allclose"),
    ],
)
def test_modified_library_prevents_the_check(monkeypatch, space, name):
    right = typed("def double(x):\n    return 2 * x\n", "double")
    assert judge(exercise(), right).ok
    monkeypatch.setattr(space, name, lambda *args, **kwargs: 3, raising=True)
    found = judge(exercise(), right)
    assert found.outcome == "changed" and found.message.endswith(f".{name}") and not found.ok
    monkeypatch.undo()
    assert judge(exercise(), right).ok


def test_expected_value_cannot_be_read_from_the_caller():
    """An answer that searches the calling frames for the expected value does not find that of its own case."""
    found = verdict("""
        def double(x):
            frame = sys._getframe(1)
            while frame:
                if "expected" in frame.f_locals:
                    return frame.f_locals["expected"]
                frame = frame.f_back
    """)
    assert not found.ok


def test_verdict_does_not_depend_on_compiled_kernels(monkeypatch):
    monkeypatch.setattr(CompiledKernelConfig, "graphs", "all")
    assert target([], exact=False).platforms == PLATFORMS
    with isolation.isolated():
        assert target([], exact=False) == HOST
    assert CompiledKernelConfig.graphs == "all"


def test_answer_does_not_change_the_kernels_of_the_process(monkeypatch):
    monkeypatch.setattr(CompiledKernelConfig, "graphs", "large")
    monkeypatch.setattr(CompiledKernelConfig, "passes", passes())
    before = target([], exact=True)
    with isolation.isolated():
        use(False)
        use_platforms("cpu", ("reference",))
        assert target([], exact=True) != before
    assert (CompiledKernelConfig.graphs, CompiledKernelConfig.passes) == ("large", passes())
    assert target([], exact=True) == before


def test_answer_runs_numpy_on_large_arrays():
    """The notebook may use compiled kernels there, or not yet have them: a verdict must not depend on it."""
    before, x = EAGER_PLATFORMS["cpu"], flow.zeros(LARGE)
    loads = []
    by_size = PlatformsBySize(HOST_PLATFORMS, lambda: loads.append(1) or HOST_PLATFORMS)
    use_platforms("cpu", by_size)
    try:
        with isolation.isolated():
            x.erf()
            assert not loads
        x.erf()
        assert loads and EAGER_PLATFORMS["cpu"] is by_size
    finally:
        use_platforms("cpu", before)
