"""Checkpoints of job functions: resumed runs, pending names, reports, barriers, and errors."""

import os
import threading
import time

import numpy as np
import pytest
from builders import fails, job_of, raised_error, sgd, thread

import minflow as flow
from minflow.core.base.errors import CheckpointError, JobError, MinflowWarning
from minflow.core.random import default_generator
from minflow.job import typing as tp
from minflow.job.function import clear_default_session, get_variable
from minflow.job.legacy.initializers import random_normal_initializer
from minflow.job.queue.stream import current_stream
from minflow.job.saving.folder import FileVariable
from minflow.job.saving.manager import (
    CheckPoint,
    LoadReport,
    SimpleCheckPointManager,
    get,
    get_all_variables,
    load_variables,
    save,
)
from minflow.job.session import default_session
from minflow.job.train.optimizer import SGD, Adam
from minflow.job.train.schedule import PiecewiseConstantScheduler

X = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
NORMAL = random_normal_initializer()


@pytest.fixture(autouse=True)
def session():
    clear_default_session()
    flow.manual_seed(5)
    yield default_session()
    clear_default_session()


def rate(value=0.1):
    return PiecewiseConstantScheduler([], [value])


def model(x, units=2, names=("w", "b")):
    w = get_variable(names[0], (units, 3), initializer=NORMAL)
    b = get_variable(names[1], (units,))
    return x @ w.T + b


def train_job(optimizer=Adam, drop=0.5, units=2, name="train", returns=tp.Numpy):
    def train(x):
        loss = model(flow.nn.functional.dropout(x, drop), units) ** 2
        optimizer(rate()).minimize(loss)
        return loss

    return job_of(train, X, kind="train", result=returns, name=name)


def eval_job(units=2, names=("w", "b"), name="evaluate"):
    return job_of(lambda x: model(x, units, names), X, name=name)


def restart():
    """Simulate a new process: another seed, nothing defined."""
    clear_default_session()
    flow.manual_seed(99)


def checkpoint(folder, *jobs):
    """Save a checkpoint after a call of each job, and return its folder, for a new process to load."""
    for job in jobs:
        job(X)
    CheckPoint().save(folder / "m")
    restart()
    return folder / "m"


def complained(call, *texts):
    """Return the result of the call, which warns once, with these texts and a line of this file."""
    with pytest.warns(MinflowWarning, match="(?s)" + ".*".join(texts)) as told:
        result = call()
    assert len(told) == 1 and "test_job_checkpoint.py" in str(told[0].message)
    return result


# ---- resuming a run --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", [Adam, SGD])
@pytest.mark.parametrize("compiled", [False, True])
def test_resumed_run_equals_uninterrupted_run(tmp_path, optimizer, compiled):
    """Bit by bit: variables, optimizer state, the step (warm-up and decay), and the masks of dropout."""
    train = train_job(optimizer)
    for _ in range(3):
        train(X)
    CheckPoint().save(tmp_path / "m")
    expected = [train(X) for _ in range(4)]
    restart()
    train = train_job(optimizer)
    if compiled:
        train(X)
    report = CheckPoint().load(tmp_path / "m")
    assert set(report.loaded) == ({"w", "b", *report.names} if compiled else set())
    got = [train(X) for _ in range(4)]
    assert all(np.array_equal(a, b) for a, b in zip(expected, got))
    assert not np.array_equal(expected[0], expected[1])
    assert default_session().steps == {"train": 7} and report.missing == report.unexpected == []


def test_schedule_continues_at_the_saved_step(tmp_path):
    def weight(x):
        w = get_variable("w", (2, 3))
        SGD(PiecewiseConstantScheduler([1], [1.0, 100.0]), momentum=0).minimize((x + 1) @ w.T)
        return w

    define = lambda: job_of(weight, X, kind="train", name="train")
    train = define()
    folder = checkpoint(tmp_path, train, train)
    train = define()
    CheckPoint().load(folder)
    before, after = train(X), train(X)
    assert np.allclose(after - before, 50 * before)  # after two steps at rate 1, this one is at 100


def test_evaluation_in_another_program(tmp_path):
    """It does not require the optimizer state and the step, and has its own random numbers."""
    train, evaluate = train_job(), eval_job()
    train(X)
    expected = evaluate(X)
    folder = checkpoint(tmp_path)
    evaluate = eval_job()
    report = CheckPoint().load(folder)
    assert default_generator.initial_seed() == 99
    assert np.array_equal(evaluate(X), expected)
    assert report.loaded == ["w", "b"] and sorted(report.unexpected) == ["b-m", "b-v", "w-m", "w-v"]
    assert sorted(get_all_variables()) == ["b", "w"]


def test_optimizer_state_waits_for_the_train_job(tmp_path):
    train = train_job()
    train(X)
    CheckPoint().save(tmp_path / "m")
    expected = [train(X), train(X)]
    restart()
    evaluate, train = eval_job(), train_job()
    report = CheckPoint().load(tmp_path / "m")
    evaluate(X)
    assert report.loaded == ["w", "b"] and "(waiting for train)" in repr(report)
    assert [train(X).tolist(), train(X).tolist()] == [x.tolist() for x in expected]
    assert report.unexpected == [] and not default_session().waiting


def test_failed_trace_keeps_pending_state(tmp_path):
    expected = eval_job()(X)
    folder = checkpoint(tmp_path)
    bad = [True]
    evaluate = job_of(lambda x: [] if (y := model(x)) is None or bad else y, X, name="evaluate")
    CheckPoint().load(folder)
    raised_error(evaluate, JobError, "returns", X)
    bad.clear()
    assert np.array_equal(evaluate(X), expected)


def test_saved_before_the_first_call(tmp_path):
    """Saving compiles the jobs so that there are variables; training then starts from them."""
    train, evaluate = train_job(), eval_job()
    CheckPoint().save(tmp_path / "m")
    expected = train(X)
    restart()
    train = train_job()
    CheckPoint().load(tmp_path / "m")
    assert np.array_equal(train(X), expected)
    assert get(tmp_path / "m")["System-Train-TrainStep-train"].numpy().tolist() == [0]
    del evaluate


# ---- the folder ------------------------------------------------------------------------------------------------------


def test_layout(tmp_path):
    folder = checkpoint(tmp_path, train_job(SGD))
    names = {"w", "b", "w-momentum", "b-momentum", "System-Train-TrainStep-train", "System-Random-State"}
    assert {p.name for p in folder.iterdir()} == {*names, "snapshot_done"}
    assert (folder / "System-Train-TrainStep-train/out").read_bytes() == (1).to_bytes(8, "little")


def test_oldest_layout(tmp_path):
    """Without meta: existing and later variables know their shapes."""
    expected = eval_job()(X)
    folder = checkpoint(tmp_path)
    for meta in folder.glob("*/meta"):
        meta.unlink()
    for called in (True, False):
        restart()
        evaluate = eval_job()
        if called:
            assert not np.array_equal(evaluate(X), expected)
        CheckPoint().load(folder)
        assert np.array_equal(evaluate(X), expected)
    restart()
    evaluate = eval_job(units=3)
    CheckPoint().load(folder)
    raised_error(evaluate, CheckpointError, r"(?s)w must be float32\[3, 3\], got 24 bytes", X)


def test_get_variables_and_save_again(tmp_path):
    train = train_job()
    train(X)
    everything = get_all_variables()
    save(tmp_path / "m")
    found = get(tmp_path / "m")
    assert set(everything) == set(found) - {"System-Random-State"}
    assert all(isinstance(v, FileVariable) for v in found.values())
    assert all(np.array_equal(found[n].numpy(), v.numpy()) for n, v in everything.items())
    assert get(tmp_path / "m/w").numpy().tolist() == everything["w"].numpy().tolist()
    kinds = {"w": found["w"], "t": everything["b"], "a": X, "v": default_session().variables["b"], "n": np.float64(3)}
    save(tmp_path / "n", kinds)
    again = get(tmp_path / "n")
    assert {n: f"{v.dtype.name}{v.shape}" for n, v in again.items()} == {
        "a": "float32(4, 3)",
        "n": "float64()",
        "t": "float32(2,)",
        "v": "float32(2,)",
        "w": "float32(2, 3)",
    }
    assert again["n"].numpy() == 3.0 and np.array_equal(again["a"].numpy(), X)


def test_variables_are_returned_as_copies(session):
    """Returned arrays do not change with training, nor training with them."""
    train = train_job(drop=0.0)
    train(X)
    before = get_all_variables()
    kept = before["w"].numpy().copy()
    train(X)
    assert np.array_equal(before["w"].numpy(), kept) and not np.array_equal(get_all_variables()["w"].numpy(), kept)
    before["w"].fill_(0)
    assert session.variables["w"].numpy().any()
    array = np.ones((2, 3), "float32")
    load_variables({"w": array})
    array[:] = 7
    assert (session.variables["w"].numpy() == 1).all()


# ---- loading into existing variables ---------------------------------------------------------------------------------


def test_partial_dict(session):
    """A dict of some variables is valid; unknown names are reported, or raise if asked to."""
    evaluate = eval_job()
    evaluate(X)
    report = load_variables({"w": np.zeros((2, 3), "float32")})
    assert report.missing == ["b"]
    complained(lambda: load_variables({"W": np.ones((2, 3), "float32")}), "loaded +none", "unexpected +W")
    values = {"bb": np.zeros(2, "float32"), "w": np.ones((2, 3), "float32")}
    raised_error(
        lambda: load_variables(values, ignore_mismatch=False),
        CheckpointError,
        "(?s)load_variables: 'bb' is not a variable.*unknown.*bb.*there are.*w, b.*did you mean b",
    )
    assert not session.variables["w"].numpy().any()
    values = {"w": np.full((2, 3), 2, "float32"), "b": flow.ones(2), "later-w": np.zeros(3)}
    text = "the dict fits in part: 1 name", "loaded +w, b", "unexpected +later-w"
    report = complained(lambda: load_variables(values), *text)
    assert evaluate(X).tolist() == (X @ np.full((3, 2), 2, "float32") + 1).tolist()
    assert isinstance(report, LoadReport) and report.loaded == ["w", "b"] and report.unexpected == ["later-w"]
    assert "2 variables loaded" in repr(report) and "later-w" in repr(report)


@pytest.mark.parametrize("called", [True, False])
def test_partial_checkpoint_is_reported(tmp_path, called):
    """Fine-tuning: variables missing from the checkpoint are initialized and named, and so are unused entries."""
    folder = checkpoint(tmp_path, eval_job(names=("w", "old")))
    evaluate = eval_job(names=("w", "head"))
    load, call = lambda: CheckPoint().load(folder), lambda: evaluate(X)
    before, tells = (call, load) if called else (load, call)
    text = "fits in part: 1 variable", "loaded +w\n", "missing +head\n", "unexpected +old"
    report = [before(), complained(tells, *text)][called]
    assert (report.loaded, report.missing, report.unexpected) == (["w"], ["head"], ["old"])
    evaluate(X)
    with pytest.warns(MinflowWarning, match="1 variable.*not in it\n") as told:  # "old" has been reported
        eval_job(names=("w", "tail"), name="another")(X)
    assert len(told) == 1 and "unexpected" not in str(told[0].message)


@pytest.mark.parametrize("called", [True, False])
def test_wrong_checkpoint(tmp_path, called):
    folder = checkpoint(tmp_path, eval_job(names=("conv1-weight", "conv1-bias")))
    evaluate = eval_job(names=("conv2-weight", "dense-bias"))
    what = "another model", "it has +conv1-bias, conv1-weight", "expected +conv2-weight, dense-bias"
    text = "(?s)" + ".*".join([*what, "conv1-weight may be conv2-weight"])
    if called:
        expected = evaluate(X)
        raised_error(CheckPoint().load, CheckpointError, text, folder)
        assert np.array_equal(evaluate(X), expected)
    else:
        CheckPoint().load(folder)
        raised_error(evaluate, CheckpointError, text, X)
        evaluate(X)
        eval_job(names=("more", "most"), name="another")(X)  # reported once


def test_jobs_unrelated_to_a_checkpoint(tmp_path):
    """A job without variables, and one that is defined later, do not indicate a wrong checkpoint."""
    folder = checkpoint(tmp_path, eval_job())
    double = job_of(lambda x: x * 2, X, name="double")
    CheckPoint().load(folder)
    double(X)
    eval_job()(X)
    restart()
    CheckPoint().load(folder)
    eval_job(names=("v", "c"), name="first")(X)
    eval_job(name="second")(X)


def test_different_shapes(tmp_path):
    folder = checkpoint(tmp_path, train_job())
    evaluate = eval_job(units=5)
    CheckPoint().load(folder)  # before variables exist
    for _ in range(2):
        raised_error(evaluate, JobError, r"(?s)variable w.*float32\[2, 3\].*float32\[5, 3\]", X)
    assert eval_job(units=2)(X).shape == (4, 2)
    restart()
    evaluate = eval_job(units=5)
    before = evaluate(X)
    error = raised_error(CheckPoint().load, CheckpointError, "2 variables .*not fit, so nothing was loaded", folder)
    assert "w  float32[2, 3] is loaded, the variable is float32[5, 3]" in str(error) and "b  float32[2]" in str(error)
    raised_error(
        load_variables,
        CheckpointError,
        r"(?s)1 variable of the dict does not fit.*b +float64\[5\] is loaded.*float32\[5\]",
        {"w": np.zeros((5, 3), "float32"), "b": np.zeros(5)},
    )
    assert np.array_equal(evaluate(X), before)


VALUES = [  # (value of a variable, message)
    ([1.0], "'w' must be .*, got a list.*np.array"),
    (np.array(["a"]), "no variable can be of dtype <U1"),
    (np.zeros(2, "complex64"), "complex64.*astype"),
    (None, "'w' must be .*, got a NoneType"),
]
STEP, STEPS = "System-Train-TrainStep-train", "System-Train-TrainStep-train must be a number of steps"
DICTS = [
    *[({"w": value}, text) for value, text in VALUES],
    ([("w", X)], "load_variables: .*dict name -> array"),
    (None, "load_variables: .*dict name -> array"),
    ({3: X}, "load_variables: .*names of variables must be strings"),
    ({STEP: np.array([-1])}, STEPS),
    ({STEP: np.array([1, 2])}, STEPS),
    ({STEP: np.array([0.5])}, STEPS),
    ({STEP: np.zeros((0,), "int64")}, STEPS),
    ({"System-Random-State": np.zeros(3, "int64")}, "System-Random-State is not the state of a generator"),
]


@pytest.mark.parametrize("values, text", DICTS)
def test_invalid_dicts_are_refused(session, values, text):
    error = raised_error(lambda: load_variables(values), CheckpointError, f"(?s){text}")
    assert "at test_job_checkpoint.py" in str(error) and session.steps == {}


@pytest.mark.parametrize("value, text", VALUES)
def test_invalid_values_are_not_saved(tmp_path, value, text):
    error = raised_error(lambda: save(tmp_path / "m", {"w": value}), CheckpointError, f"(?s){text}")
    assert "at test_job_checkpoint.py" in str(error) and not (tmp_path / "m").exists()


# ---- folders that are not checkpoints --------------------------------------------------------------------------------


def test_existing_checkpoint_is_not_overwritten(tmp_path):
    train = train_job()
    train(X)
    CheckPoint().save(tmp_path / "m")
    raised_error(CheckPoint().save, CheckpointError, "(?s)CheckPoint.save: the folder .*m is not empty", tmp_path / "m")
    train(X)  # training goes on
    clear_default_session()
    raised_error(CheckPoint().save, CheckpointError, "is not empty", tmp_path / "m")  # before anything is compiled


def test_missing_checkpoint(tmp_path):
    eval_job()(X)
    CheckPoint().save(tmp_path / "lenet_models_1")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("")
    flow.save({"w": flow.zeros(2)}, tmp_path / "other")
    for call, path, text in [
        (CheckPoint().load, "lenet_model_1", 'no folder .*checkpoints there +lenet_models_1.*Try: ".*lenet_models_1"'),
        (CheckPoint().load, "nowhere/m", "no folder .*getcwd"),
        (CheckPoint().load, "notes", "notes is not a checkpoint.*a.txt"),
        (get, "other", "other is not a checkpoint.*flow.load"),
        (get, "other/data.safetensors", "must be a folder.*flow.load"),
        (CheckPoint().load, "lenet_models_1/w", 'folder of one variable.*"[^"]*lenet_models_1"'),
        (CheckPoint().load, "", 'snapshot_done.*Try: "[^"]*lenet_models_1"'),
    ]:
        raised_error(call, CheckpointError, f"(?s){text}", tmp_path / path)


def test_unfinished_checkpoint(tmp_path):
    eval_job()(X)
    CheckPoint().save(tmp_path / "m")
    (tmp_path / "m" / "snapshot_done").unlink()
    raised_error(CheckPoint().load, CheckpointError, "(?s)no file snapshot_done.*b, w.*load_variables", tmp_path / "m")
    assert load_variables(get(tmp_path / "m")).loaded == ["w", "b"]


def test_damaged_variable_loads_nothing(tmp_path, session):
    evaluate = eval_job()
    evaluate(X)
    CheckPoint().save(tmp_path / "m")
    load_variables({"w": np.ones((2, 3), "float32")})
    out = tmp_path / "m" / "b" / "out"
    out.write_bytes(out.read_bytes()[:-1])
    raised_error(
        CheckPoint().load,
        CheckpointError,
        r"(?s)'b' of the checkpoint: its file is truncated: 7 bytes, and float32\[2\] has 8",
        tmp_path / "m",
    )
    assert (session.variables["w"].numpy() == 1).all()


def test_nothing_to_save(tmp_path):
    raised_error(
        CheckPoint().save, CheckpointError, "(?s)CheckPoint.save: .*no job function is defined", tmp_path / "m"
    )
    double = job_of(lambda x: x * 2, X, name="double")
    raised_error(get_all_variables, CheckpointError, "(?s)no job function has a layer.*jobs +double")
    broken = job_of(model, X, kind="train", name="broken")
    raised_error(
        CheckPoint().save,
        CheckpointError,
        "(?s)cannot be compiled.*job broken +JobError: .*no optimizer",
        tmp_path / "m",
    )
    del double, broken
    assert not (tmp_path / "m").exists()


# ---- between the steps -----------------------------------------------------------------------------------------------


def test_saving_waits_for_the_queue(tmp_path):
    """A save includes the asynchronous steps that were submitted, after their callbacks."""
    train = train_job(name="sync_one", drop=0.0)
    for _ in range(6):
        train(X)
    expected = get_all_variables()["w"].numpy()
    restart()
    flow.manual_seed(5)
    train, calls, gate = train_job(drop=0.0, returns=tp.Callback[tp.Numpy]), [], threading.Event()
    train(X)(lambda loss: (gate.wait(60), calls.append(loss)))
    threading.Timer(0.05, gate.set).start()
    for _ in range(5):
        train(X)(calls.append)
    CheckPoint().save(tmp_path / "m")
    assert len(calls) == 6
    assert np.array_equal(get(tmp_path / "m")["w"].numpy(), expected)
    assert get(tmp_path / "m")["System-Train-TrainStep-train"].numpy() == 6


def test_no_partial_step_while_another_thread_trains():
    """Two variables that every step makes equal are equal in each copy."""

    def lowered(x):
        a, b = get_variable("a", (200, 3)), get_variable("b", (200, 3))
        sgd([x @ a.T, x @ b.T], 0.1)
        return x

    train, stop = job_of(lowered, X, kind="train", result=tp.Callback[tp.Numpy], name="train"), threading.Event()

    def go():
        while not stop.is_set():
            train(X + 1)

    train(X + 1).get()
    steps, end = [], time.monotonic() + 60
    with thread(go):
        try:
            while len(set(steps)) < 30 and time.monotonic() < end:
                found = get_all_variables()
                assert np.array_equal(found["a"].numpy(), found["b"].numpy())
                steps.append(found["System-Train-TrainStep-train"].item())
        finally:
            stop.set()
    assert steps == sorted(steps) and len(set(steps)) == 30


def test_get_variables_inside_a_callback():
    """Variables that a callback reads are those of its own step."""
    train, seen = train_job(returns=tp.Callback[tp.Numpy]), []
    for _ in range(2):
        train(X)(lambda loss: seen.append((get_all_variables()["w"].numpy(), default_session().variables["w"].numpy())))
    current_stream().sync()
    assert all(np.array_equal(*both) for both in seen) and not np.array_equal(seen[0][0], seen[1][0])
    assert np.array_equal(seen[1][0], get_all_variables()["w"].numpy())


def test_step_error_is_raised_first(tmp_path):
    train_job(returns=tp.Callback[tp.Numpy])(X)(fails)
    raised_error(CheckPoint().save, JobError, r"step \d+ of train.*mean", tmp_path / "m")
    CheckPoint().save(tmp_path / "m")


def test_init_does_nothing_and_warns_if_training_would_restart():
    """No effect before and after the first call; it warns if training would seem to restart."""
    check_point = CheckPoint()
    check_point.init()
    train = train_job()
    check_point.init()
    train(X)
    before = get_all_variables()["w"].numpy()
    with pytest.warns(MinflowWarning, match="(?s)CheckPoint.init leaves.*steps of train +1.*clear_default_session"):
        check_point.init()
    assert np.array_equal(get_all_variables()["w"].numpy(), before)


# ---- the manager -----------------------------------------------------------------------------------------------------


def test_manager_keeps_the_last_checkpoints(tmp_path):
    train = train_job()
    manager = SimpleCheckPointManager(tmp_path / "a" / "b")
    assert manager.list_checkpoints() == [] and manager.latest_checkpoint() is None
    assert manager.initialize_or_restore() is None
    train(X)
    names = [manager.list_checkpoints()[0], manager.save()]
    expected = train(X)
    assert manager.list_checkpoints() == names and manager.latest_checkpoint() == names[1]
    assert all(name.startswith("snapshot_2") for name in names)
    os.mkdir(tmp_path / "a/b/snapshot_9")  # not finished
    os.mkdir(tmp_path / "a/b/other")
    restart()
    train = train_job()
    report = SimpleCheckPointManager(tmp_path / "a" / "b").initialize_or_restore()
    assert np.array_equal(train(X), expected) and "w" in report.loaded


def test_manager_orders_by_time_even_if_the_clock_goes_back(tmp_path):
    eval_job()(X)
    manager = SimpleCheckPointManager(str(tmp_path), prefix="m-")
    (tmp_path / "m-29990101_000000_999999").mkdir()
    (tmp_path / "m-29990101_000000_999999" / "snapshot_done").write_text("")
    assert [manager.save(), manager.save()] == ["m-29990101_000001_000000", "m-29990101_000001_000001"]
    (tmp_path / "m-x").mkdir()
    (tmp_path / "m-x" / "snapshot_done").write_text("")
    assert manager.save() == "m-x_1" == manager.latest_checkpoint()


def test_manager_in_an_invalid_folder(tmp_path):
    (tmp_path / "file").write_text("")
    raised_error(SimpleCheckPointManager, CheckpointError, "file cannot be a folder", tmp_path / "file")
    for prefix in ("a/b", "../x", 3):
        raised_error(
            SimpleCheckPointManager, CheckpointError, "prefix must be the beginning of a name", tmp_path, prefix
        )
