"""The handle of an async step, used as if it were the result: told in four parts, whichever way it is used."""

import re
from pathlib import Path

import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError

ONES = np.ones(2, "float32")


@pytest.fixture
def step():
    flow.clear_default_session()

    @flow.global_function()
    def double(x: tp.Numpy.Placeholder((2,))) -> tp.Callback[tp.Numpy]:
        return x * 2

    yield double(ONES)
    flow.clear_default_session()


USES = {
    "mean": lambda s: s.mean(),
    "shape": lambda s: s.shape,
    "item": lambda s: s.item(),
    "format": lambda s: f"{s:.3f}",
    "add": lambda s: s + 1,
    "subtract from": lambda s: 1 - s,
    "times an array": lambda s: ONES * s,
    "negative": lambda s: -s,
    "less": lambda s: s < 1,
    "index": lambda s: s[0],
    "unpack": lambda s: dict(zip(("labels", "logits"), s)),
    "length": lambda s: len(s),
    "float": float,
    "asarray": np.asarray,
    "np.mean": np.mean,
    "array_equal": lambda s: np.testing.assert_array_equal(s, ONES),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_handle_is_not_an_array(step, use):
    with pytest.raises(JobError, match=r"of a step of double: its call does not wait") as told:
        use(step)
    text = str(told.value)
    assert re.search(r"handle  <step 1 of double: \w+>", text)
    file = r"\w+\.py" if use in (np.mean, USES["array_equal"]) else re.escape(Path(__file__).name)  # numpy's own line
    assert re.search(rf"^  at {file}:\d+$", text, re.MULTILINE)
    assert "Try: double(...)(callback)" in text and "double(...).get()" in text
    assert (step.get() == 2).all()


def test_what_a_handle_still_is(step):
    step.get()  # a repr tells where it stands
    assert step and not hasattr(step, "shape") and f"{step}" == repr(step)
    with pytest.raises(AttributeError, match="'Step' object has no attribute 'gett'"):
        step.gett()
    assert len({step, step}) == 1 and step == step and step in [step]
