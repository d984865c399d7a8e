"""The reading tours: every question refers to source code that still contains its answer."""

import inspect
import json
import re
from pathlib import Path

import pytest

from minflow.exercises import cells, check
from minflow.exercises.inside import Source, import_object, source
from minflow.exercises.registry import all_exercises, find, readings

NOTEBOOKS = Path(__file__).parents[2] / "notebooks" / "inside"
TOURS = {"r1": 5, "r2": 5, "r3": 6, "r4": 5, "r5": 5, "r6": 5}  # tour -> number of questions
ALL = [one for tour in TOURS for one in readings(tour).values()]
QUESTIONS = pytest.mark.parametrize("reading", ALL, ids=lambda one: one.name)


def cells_of(tour):
    (path,) = NOTEBOOKS.glob(f"{tour.upper()}_*.ipynb")
    return {
        cell["id"]: (cell["cell_type"], "".join(cell["source"]))
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    }


@QUESTIONS
def test_answers_are_still_in_the_source(reading):
    assert reading.proof in inspect.getsource(import_object(reading.place))
    assert str(reading.right) in reading.proof.replace("_", "" if isinstance(reading.right, int) else "_")


@pytest.mark.parametrize("tour", TOURS)
def test_tour_shows_the_source_before_the_question(tour):
    """The source with each answer is opened before its question; the three cells are those of the definition."""
    names, opened, asked = {}, "", []
    for id, (kind, text) in cells_of(tour).items():
        if not names and kind == "code":
            exec(text, names)
        for call in re.findall(r"^source\(.*\)$", text, re.MULTILINE) if kind == "code" else ():
            opened += eval(call, names).text
        if id.endswith("-task"):
            reading = find(id.removesuffix("-task").replace("-", "_"))
            asked.append(reading)
            assert reading.proof in opened, reading.name
            assert cells_of(tour)[id.replace("task", "answer")] == ("code", cells.answer_cell(reading.name))
            assert cells_of(tour)[id.replace("task", "check")] == ("code", cells.check_cell(reading.name))
    assert asked == list(readings(tour).values()) and len(asked) == TOURS[tour]
    assert [one.number for one in asked] == [f"{tour.upper()}.{i}" for i in range(1, TOURS[tour] + 1)]


@pytest.mark.parametrize("tour", TOURS)
def test_tour_cells_are_short(tour):
    """Cells of prose have at most 120 words, cells of code at most 20 lines."""
    for id, (kind, text) in cells_of(tour).items():
        assert len(text.split()) <= 120 if kind == "markdown" else len(text.splitlines()) <= 20, id


@QUESTIONS
def test_reading_questions_are_checked(reading):
    assert "not started" in repr(check(reading.name, ...))
    right = check(reading.name, reading.right)
    assert right.ok and right.points == 0 and reading.fact in " ".join(repr(right).split())
    assert "lesson" not in repr(right), "a tour is not a lesson"
    if isinstance(reading.right, str):
        assert check(reading.name, f"`{reading.right}()` ").ok
    wrong = check(reading.name, "something")
    assert not wrong.ok and re.sub(r"[`\s]+", " ", reading.hint)[:20] in re.sub(r"[`\s]+", " ", repr(wrong))
    assert not check(reading.name, None).ok and not check(reading.name, 7).ok


def test_readings_do_not_count_as_progress():
    assert not {one.name for one in ALL} & {one.name for one in all_exercises()}
    assert len({one.name for one in ALL}) == len(ALL) == sum(TOURS.values())
    with pytest.raises(LookupError, match="r1_dor"):
        find("r1_dor")


def outer(x):
    # a step
    return x + 1


def test_source_shows_lines_and_their_location():
    whole, part = source(outer), source(outer, "# a", "return")
    line = outer.__code__.co_firstlineno
    assert whole.place == f"tests/exercises/test_inside.py:{line}" and whole.text.startswith("def outer(x):\n    # a")
    assert (part.place, part.text) == (f"tests/exercises/test_inside.py:{line + 1}", "# a step\nreturn x + 1")
    assert part._repr_mimebundle_() == {
        "text/markdown": f"`{part.place}`\n\n```python\n{part.text}\n```",
        "text/plain": f"{part.place}\n\n    # a step\n    return x + 1",
    }
    assert isinstance(source(inspect), Source)
    unloaded = source("minflow/platforms/compiled/config.py", "COMPILED =", "COMPILED =")
    assert re.fullmatch(r"minflow/platforms/compiled/config.py:\d+", unloaded.place)
    assert unloaded.text.startswith("COMPILED = ")
    for words in ({"first": "nowhere"}, {"last": "nowhere"}):
        with pytest.raises(ValueError, match="no line of outer contains 'nowhere'"):
            source(outer, **words)
