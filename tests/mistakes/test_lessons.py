"""Each mistake is reported in four parts: problem, values by name, the learner's line, suggestion; no state is lost."""

import pytest
from lessons import ERRORS, HEAD, WARNINGS, run, warned

import minflow as flow
from minflow.core.base import errors
from minflow.core.mode import MODE
from minflow.core.source_location import warned_lines


def marked(program: str) -> str | None:
    """Return "lesson.py:7": the line that must be named."""
    lines = (HEAD + program).splitlines()
    found = [i for i, line in enumerate(lines, 1) if line.rstrip().endswith("# <-")]
    return f"lesson.py:{found[0]}" if found else None


@pytest.mark.parametrize("what, kind, says, program", ERRORS, ids=[e[0] for e in ERRORS])
def test_mistake_is_reported(what, kind, says, program, tmp_path):
    before = MODE.get()
    with pytest.raises(getattr(errors, kind)) as caught:
        run(program, tmp_path)
    text = str(caught.value)
    missing = [part for part in says if part not in text]
    assert not missing, f"{missing} not in:\n{text}"
    assert caught.value.hint, f"no hint in:\n{text}"
    line = marked(program)
    assert line is None or line in text, f"{line} not named in:\n{text}"
    assert MODE.get() is before and flow.is_grad_enabled(), "the mode is as it was"


@pytest.mark.parametrize("what, says, program", WARNINGS, ids=[w[0] for w in WARNINGS])
def test_silent_mistake_warns_once(what, says, program, tmp_path):
    warned_lines().clear()
    caught = warned(program, tmp_path)
    assert len(caught) == 1, [str(w.message) for w in caught]
    text = str(caught[0].message)
    assert issubclass(caught[0].category, flow.MinflowWarning)
    missing = [part for part in (*says, "Try:") if part not in text]
    assert not missing, f"{missing} not in:\n{text}"
    line = marked(program)
    assert (
        line in text and caught[0].lineno == int(line.partition(":")[2]) and caught[0].filename.endswith("lesson.py")
    ), text


def test_refused_write_changes_nothing():
    w = flow.ones(3, requires_grad=True)
    with pytest.raises(errors.GradError):
        w.mul_(2.0)
    x = flow.tensor([1, 2])
    with pytest.raises(errors.DTypeError):
        x.add_(0.5)
    assert w.tolist() == [1, 1, 1] and x.tolist() == [1, 2]


def test_error_survives_pickling():
    import pickle

    with pytest.raises(errors.ShapeError) as caught:
        flow.ones(2) + flow.ones(3)
    twin = pickle.loads(pickle.dumps(caught.value))
    assert type(twin) is errors.ShapeError and str(twin) == str(caught.value)
