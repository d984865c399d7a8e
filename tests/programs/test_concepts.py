"""Features in a list of concepts of job functions: placeholders, a job with several mistakes, and two devices."""

import typing
import warnings

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import CheckpointError, JobError, MinflowWarning
from minflow.job.session import default_session

BATCH = 8
Pair = typing.Tuple  # noqa: UP006 - as programs of that generation annotate


@pytest.fixture(autouse=True)
def session():
    flow.clear_default_session()
    flow.manual_seed(3)
    before = dict(default_session().settings)
    yield
    flow.clear_default_session()
    default_session().settings.clear()
    default_session().settings.update(before)


# ---- placeholders ---------------------------------------------------------------------------------------------------


def both(
    images: tp.Numpy.Placeholder((BATCH, 1, 6, 6)), labels: tp.Numpy.Placeholder((BATCH,), dtype=flow.int32)
) -> Pair[tp.Numpy, tp.Numpy]:
    return images, labels


def test_placeholders_describe_the_inputs_of_a_job():
    images, labels = np.random.default_rng(0).random((BATCH, 1, 6, 6), "float32"), np.arange(BATCH, dtype="int32")
    assert both(images, labels) == (images, labels)  # annotations alone do not make a job
    job = flow.global_function()(both)
    first, second = job(images, labels)
    assert first.tobytes() == images.tobytes() and second.dtype == np.int32 and second.tolist() == labels.tolist()
    images[:] = 0  # the output is not the input
    assert first.any()


# ---- several mistakes in one pass ------------------------------------------------------------------------------------


IMAGES, LABELS = tp.Numpy.Placeholder((BATCH, 6)), tp.Numpy.Placeholder((BATCH,), dtype=flow.int32)
NORMAL = flow.truncated_normal(0.1)


def faulty(swapped=False, unnamed=False, no_optimizer=False):
    """Return a train job with the requested mistakes."""
    first, second = ({}, {}) if unnamed else ({"name": "first"}, {"name": "second"})

    @flow.global_function(type="train")
    def two_words(x: IMAGES, y: LABELS) -> tp.Callback[tp.Numpy]:
        hidden = flow.layers.dense(x, 5, activation=flow.nn.relu, kernel_initializer=NORMAL, **first)
        scores = flow.layers.dense(hidden, 3, kernel_initializer=NORMAL, **second)
        given = (scores, y) if swapped else (y, scores)
        losses = flow.nn.sparse_softmax_cross_entropy_with_logits(*given)
        if not no_optimizer:
            flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(losses)
        return losses

    return two_words


BATCH_OF_TWO = np.ones((BATCH, 6), "float32"), np.zeros(BATCH, "int32")
SIGNS = {"unnamed": "Dense-weight", "swapped": "logits, labels|labels, logits", "no_optimizer": "no optimizer"}


def test_three_mistakes_are_reported_in_one_pass():
    job = faulty(swapped=True, unnamed=True, no_optimizer=True)
    with pytest.raises(JobError, match="two_words has 3 mistakes") as caught:
        job(*BATCH_OF_TWO)
    line = faulty.__code__.co_firstlineno
    told = list(map(str, caught.value.problems))
    assert len(told) == 3 and all(text in str(caught.value) for text in (f"{i}. " for i in (1, 2, 3)))
    first, *_, last = str(caught.value).split("\n")
    # no line after the last mistake
    assert f"it is defined at test_concepts.py:{line + 4}" in first and "Try:" in last
    assert "Dense-weight" in told[0] and f":{line + 6}" in told[0] and f":{line + 7}" in told[0]
    assert "labels" in told[1] and f":{line + 9}" in told[1] and "float32[8, 3]" in told[1] and "int32[8]" in told[1]
    assert "no optimizer" in told[2] and "minimize" in told[2]


LEFT = ["swapped unnamed", "swapped no_optimizer", "unnamed no_optimizer", "swapped", "unnamed", "no_optimizer"]


@pytest.mark.parametrize("left", LEFT)
def test_fixed_mistakes_are_no_longer_reported(left):
    left = left.split()
    with pytest.raises(JobError) as caught:
        faulty(**dict.fromkeys(left, True))(*BATCH_OF_TWO)
    told = str(caught.value)
    problems = getattr(caught.value, "problems", (caught.value,))
    assert len(problems) == len(left)
    for name, sign in SIGNS.items():
        assert any(part in told for part in sign.split("|")) == (name in left), (name, told)


def test_fixed_job_runs_in_the_same_session():
    with pytest.raises(JobError):
        faulty(True, True, True)(*BATCH_OF_TWO)
    with pytest.raises(CheckpointError, match="job two_words"):  # the only job cannot create its variables
        flow.get_all_variables()
    assert not default_session().variables
    seen = []
    job = faulty()
    for _ in range(5):
        job(*BATCH_OF_TWO)(seen.append)
    flow.sync_default_session()
    assert len(seen) == 5 and seen[-1].mean() < seen[0].mean()
    assert set(flow.get_all_variables()) >= {"first-weight", "first-bias", "second-weight", "second-bias"}


# ---- two devices -----------------------------------------------------------------------------------------------------


def step_on(x, y):
    scores = flow.layers.dense(x, 4, kernel_initializer=flow.truncated_normal(0.3), name="scores")
    losses = flow.nn.sparse_softmax_cross_entropy_with_logits(y, scores)
    flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.2]), momentum=0.9).minimize(losses)
    return losses


def on_one_device(batches):
    @flow.global_function(type="train")
    def whole(x: tp.Numpy.Placeholder((BATCH, 6)), y: tp.Numpy.Placeholder((BATCH,), dtype=flow.int32)) -> tp.Numpy:
        return step_on(x, y)

    losses = [whole(x, y) for x, y in batches]
    return losses, {name: variable.numpy() for name, variable in flow.get_all_variables().items()}


def test_missing_gpu_is_reported_once():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        flow.config.gpu_device_num(1)
        with flow.scope.placement("gpu", "0:0"), flow.scope.placement("gpu", "0:0"):
            pass
    assert [warning.category for warning in told] == [MinflowWarning] and "gpu means cpu" in str(told[0].message)


def two_devices():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MinflowWarning)  # that there is no GPU
        flow.config.gpu_device_num(2)
    flow.config.ctrl_port(50051)
    assert "gpu_device_num=2" in repr(flow.config) and "ctrl_port=50051" in repr(flow.config)
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())
    return config


def made(steps):
    rng = np.random.default_rng(5)
    return [
        (rng.standard_normal((BATCH, 6)).astype("float32"), rng.integers(0, 4, BATCH).astype("int32"))
        for _ in range(steps)
    ]


def test_mirrored_halves_train_like_the_whole_batch():
    batches = made(6)
    expected, variables = on_one_device(batches)
    flow.clear_default_session()
    flow.manual_seed(3)
    half = BATCH // 2

    @flow.global_function(type="train", function_config=two_devices())
    def halves(
        x: tp.ListNumpy.Placeholder((half, 6)), y: tp.ListNumpy.Placeholder((half,), dtype=flow.int32)
    ) -> tp.ListNumpy:
        return step_on(x, y)

    for (x, y), losses in zip(batches, expected):
        first, second = halves([x[:half], x[half:]], [y[:half], y[half:]])
        np.testing.assert_allclose(np.concatenate([first, second]), losses, rtol=1e-5)
    found = {name: variable.numpy() for name, variable in flow.get_all_variables().items()}
    for name in ("scores-weight", "scores-bias"):
        np.testing.assert_allclose(found[name], variables[name], rtol=1e-5, atol=1e-7)
    with pytest.raises(JobError, match=r"x of job halves(.|\n)*devices +2\n +got +list of 1"):
        halves([batches[0][0][:half]], [batches[0][1][:half]])  # one array for two devices


def test_consistent_view_is_one_logical_tensor_on_two_devices():
    batches = made(3)
    expected, _ = on_one_device(batches)
    flow.clear_default_session()
    flow.manual_seed(3)
    two_devices()
    losses, _ = on_one_device(batches)  # the same job again, with two devices set
    assert [a.tobytes() for a in losses] == [b.tobytes() for b in expected]
