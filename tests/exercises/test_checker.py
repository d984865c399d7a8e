"""The learner's view of checks, and the records of attempts."""

import json
import os

import numpy as np
import pytest

import minflow as flow
from minflow.exercises import WrongAnswer, check, draw, hint, progress, record
from minflow.exercises.card import card_html, card_text, make_card, markdown_to_html, strip_emphasis
from minflow.exercises.judge import judge
from minflow.exercises.registry import find
from tests.exercises.answers import exercise_of, typed

RIGHT = "def slope(f, x, h=1e-3):\n    return (f(x + h) - f(x - h)) / (2 * h)\n"
ONE_SIDE = "def slope(f, x, h=1e-3):\n    return (f(x + h) - f(x)) / h\n"


@pytest.fixture(autouse=True)
def own_file(monkeypatch, tmp_path):
    monkeypatch.setenv("MINFLOW_PROGRESS", str(tmp_path / ".progress.jsonl"))
    for name in ("NBGRADER_EXECUTION", "MINFLOW_GRADING", "MINFLOW_LANG"):
        monkeypatch.delenv(name, raising=False)


def tried(text, name="slope", **names):
    return check(name, typed(text, name, **names))


def lines():
    return [json.loads(line) for line in record.progress_file().read_text().splitlines()]


# ---- texts ----------------------------------------------------------------------------------------------------------


def test_right_answer():
    result = tried(RIGHT)
    text = repr(result)
    assert result.ok and result.points == 1 and result.name == "" and result.case == 0
    assert text.startswith("\u2713 slope   right: 8 of 8 cases")
    assert "lesson 02: 1 of" in text and "Worth knowing" in text


def test_only_changed_attempts_sharpen_hints():
    hints = find("slope").wrongs[0].hints
    for change, expected in [
        ("", hints[0]),
        ("", hints[0]),
        ("  # only a remark", hints[0]),
        (" + 0", hints[1]),
        (" + 0", hints[1]),
        (" + 0 * 1", hints[1]),
    ]:
        result = tried(ONE_SIDE.rstrip() + change + "\n")
        assert strip_emphasis(expected) in " ".join(repr(result).split()), change
        assert (result.name, result.case, result.ok) == ("one side", 2, False)
    assert "A related problem, worked" in repr(result)  # the third changed one
    other = tried("def slope(f, x, h=1e-3):\n    return f(x + h) - f(x - h)\n")
    assert other.name == "rise only" and "how much f rises" in repr(other)


def test_values_of_the_first_failing_case():
    text = repr(tried(ONE_SIDE))
    assert "the smallest case that fails: 2 of 6" in text
    assert "f = x**2, x = 3" in text and "6.001" in text and "0.001, allowed 1e-06" in text


def test_nearly_right_answer():
    result = tried("def slope(f, x, h=1e-3):\n    return (f(x + h) - f(x - h)) / (2 * h) * 1.001\n")
    assert result.verdict.outcome == "nearly" and repr(result).startswith("\u2248")


def test_learners_line_and_suggested_name():
    text = repr(
        tried("""
        def slope(f, x, h=1e-3):
            rise = f(x + h) - f(x - h)
            return ris / (2 * h)
    """)
    )
    assert "stopped in your line 4:  return ris / (2 * h)" in text
    assert "NameError: name 'ris' is not defined" in text and "Did you mean 'rise' from line 3?" in text


def test_engine_error_keeps_its_parts():
    text = repr(tried("def slope(f, x, h=1e-3):\n    return flow.ones(2, 3) + flow.ones(4)\n", flow=flow))
    assert "ShapeError" in text and "float32[2, 3]" in text and "Try:" in text and "your line 2" in text


def test_wrong_parameters():
    text = repr(tried("def slope(f):\n    return 1\n"))
    assert "slope(f, x, h=0.001)" in text and "takes 1 positional argument" in text


@pytest.mark.parametrize("body", ["...", "pass", "'Doc.'", "'Doc.'\n    raise NotImplementedError()", None])
def test_not_started(body):
    result = check("slope", typed(f"def slope(f, x, h=1e-3):\n    {body}\n", "slope") if body else ...)
    assert not result.ok and result.verdict.outcome == "not started" and not record.progress_file().exists()


def test_value_in_place_of_a_function():
    assert 'check("slope", slope)' in repr(check("slope", 6.0))


@pytest.mark.parametrize("value", [64, 64.0, flow.tensor(64.0), 64.00003])
def test_number_is_right_in_any_type(value):
    assert check("diamond", value).ok and check("diamond", value / 2).name == "half"


def test_number_in_quotes():
    result = check("diamond", "64")
    assert not result.ok and "without quotes" in repr(result)


@pytest.mark.parametrize("letters", ["bca", "B, C, A", ["b", "c", "a"], ("B", "C", "A"), "(b, c, a)"])
def test_letters_in_any_case(letters):
    assert check("recall_01", letters).ok and not check("recall_01", letters[::-1]).ok


@pytest.mark.parametrize("name", ["shapes", "recall_01"])
def test_list_with_blanks_is_not_started(name):
    assert check(name, [(4, 3), ..., ...]).verdict.outcome == "not started"


def test_cell_with_a_syntax_error_is_not_an_answer(real_kernel):
    """The function of the previous cell still exists, and would be judged."""

    def checked(text):
        real_kernel.run(text)
        status, shown = real_kernel.run("check('slope', slope)")
        assert status == "ok"
        return shown[-1][1]["data"]["text/plain"]

    real_kernel.fresh("from minflow.exercises import check")
    assert "right: 8 of 8" in checked(RIGHT)
    text = checked(RIGHT.replace("2 * h)", "2 * h"))
    assert "so it set nothing. Line 2:" in " ".join(text.split()) and "right" not in text
    text = checked(RIGHT.replace("(f, x, h=1e-3)", "\uff08f, x, h=1e-3)"))
    assert "Line 1 contains \uff08; write ( in code." in " ".join(text.split())
    assert "right: 8 of 8" in checked("%%time\n" + RIGHT)


def test_mistake_is_named_though_another_case_raises():
    """The error of a later case does not belong to the named mistake."""
    result = tried("def slope(f, x, h=1e-3):\n    assert h == 1e-3\n    return (f(x + h) - f(x)) / h\n")
    assert result.name == "one side"


def test_lines_of_the_answer_take_precedence():
    helper = typed("def helper(x):\n    return x[0]\n", "helper")
    text = repr(tried("def slope(f, x, h=1e-3):\n    two = 2\n    return helper(x)\n", helper=helper))
    assert "your line 3:  return helper(x)" in text and "not subscriptable" in text


def test_unusable_result_is_not_blamed_on_a_line():
    text = repr(tried("def distances(x, y):\n    return [1.0, 'a']\n", "distances", flow=flow))
    assert "before its first line" not in text
    text = repr(check("forgot", typed("def train_step(model, loss_fn, optimizer, x, y):\n    x\n", "train_step")))
    assert "It is called as" not in text
    text = repr(check("parents_first", typed("def order(node, inputs):\n    print(node)\n", "order")))
    assert "It is None: did you forget a return?" in text and "Error" not in text


def test_line_of_a_loop_in_a_comprehension():
    text = repr(tried("def distances(x, y):\n    return [1 for a in x]\n", "distances"))
    assert "(Line 2 uses 'for'.)" in text


def test_output_and_warnings_are_folded():
    result = tried("""
        import warnings
        def slope(f, x, h=1e-3):
            print('here', x)
            warnings.warn('mind')
            return 1
    """)
    folded = dict(result.card.folded)
    assert folded["what your code printed"] == "here 1.0" and folded["a warning"] == "mind"


def test_hidden_case_shows_no_values():
    answer = typed(RIGHT.replace("    return", "    if h == 0.25: return 0.0\n    return"), "slope")
    text = card_text(make_card(judge(find("slope"), answer)))
    assert "all 6 cases shown are right; 1 of 2 hidden cases failed." in text and "expected" not in text


def test_html_has_the_same_text_and_no_scripts():
    evil = "<script>alert(1)</script>"
    result = check("slope", typed(f"def slope(f, x, h=1e-3):\n    raise ValueError({evil!r})\n", "slope"))
    bundle = result._repr_mimebundle_()
    assert bundle["text/plain"] == repr(result)
    assert "<script" not in bundle["text/html"] and "&lt;script&gt;" in bundle["text/html"]
    assert markdown_to_html("a `x < 1` *is* **so** 2 * 3 * 4") == (
        'a <code style="background:transparent;color:inherit">x &lt; 1</code> <em>is</em> <b>so</b> 2 * 3 * 4'
    )


def test_matrices_mark_differences_with_signs():
    def matrix():
        return np.arange(4.0).reshape(2, 2)

    html = card_html(make_card(judge(exercise_of(matrix, [()] * 5), lambda: matrix().T)))
    assert html.count("\u2260") == 2 and "rows and columns swapped" in html


# ---- records ---------------------------------------------------------------------------------------------------------


def test_recorded_attempts():
    tried(ONE_SIDE), tried(ONE_SIDE), tried(RIGHT)
    assert [(one["exercise"], one["attempt"], one["outcome"], one["wrong"]) for one in lines()] == [
        ("slope", 1, "wrong", "one side"),
        ("slope", 2, "right", ""),
    ]
    assert set(lines()[0]) == {"time", "exercise", "attempt", "outcome", "wrong", "seconds", "source", "versions"}
    assert "return" not in record.progress_file().read_text()


def test_truncated_and_foreign_lines_are_skipped():
    tried(ONE_SIDE)
    with open(record.progress_file(), "a") as file:
        file.write('{"exercise": "slo\n[1, 2]\n{"exercise": 3, "outcome": "right"}\n\xff\n{"outcome": "right"}\n')
    assert [one["outcome"] for one in record.attempts()] == ["wrong"]
    assert tried(RIGHT).ok and record.states() == {"slope": "right"}


@pytest.mark.parametrize(
    "line",
    [
        '{"exercise": "slope", "outcome": "wrong", "wrong": 3}',
        '{"exercise": 3, "outcome": "right", "wrong": ""}',
        '{"exercise": "slope", "outcome": {}}',
        "[" * 10_000,
        "1" * 10_000,
        "\0\0",
    ],
)
def test_concurrent_writer(line):
    record.progress_file().write_text(f"{line}\n{line}")  # and was killed before the end of the line
    assert not tried(ONE_SIDE).ok and repr(hint("slope")) and progress().points == 0
    assert [one["wrong"] for one in record.attempts()] == ["one side"]


def test_only_the_end_of_a_huge_file_is_read(monkeypatch):
    tried(ONE_SIDE)
    monkeypatch.setattr(record, "MAX_BYTES", 1000)
    with open(record.progress_file(), "a") as file:
        file.write("x" * 100_000 + "\n")
    assert record.attempts() == [] and tried(RIGHT).ok
    assert [one["outcome"] for one in record.attempts()] == ["right"]


@pytest.mark.parametrize("make", ["mkdir", "mkfifo", "symlink"])
def test_only_regular_files_are_read(make, tmp_path):
    if not hasattr(os, make):
        return
    getattr(os, make)(*[tmp_path / "nowhere" / "x"] * (make == "symlink"), record.progress_file())
    assert not tried(ONE_SIDE).ok and tried(RIGHT).ok and progress().points == 1


def test_unwritable_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MINFLOW_PROGRESS", str(tmp_path / "no" / "such" / "folder"))
    tried(ONE_SIDE)
    assert find("slope").wrongs[0].hints[1] in repr(tried(ONE_SIDE.rstrip() + " + 0\n"))  # remembered anyway


def test_location_of_the_record(monkeypatch, tmp_path):
    monkeypatch.delenv("MINFLOW_PROGRESS")
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    (tmp_path / record.COURSE_RECORD).write_text("")
    assert record.progress_file() == tmp_path / record.FILE
    monkeypatch.setenv("MINFLOW_PROGRESS", "0")
    assert record.progress_file() is None


def test_many_attempts_show_help():
    for i in range(8):
        result = tried(f"def slope(f, x, h=1e-3):\n    return {i + 100}\n")
        assert ("You may leave this one" in repr(result)) == (i == 7)
    assert "A related problem, worked" in repr(result)


def test_progress():
    assert "slope" in repr(progress()) and progress().points == 0
    tried(RIGHT)
    now = progress()
    assert now.lessons["02"]["slope"] == "right" and now.points == 1
    count = sum(len(names) for names in now.lessons.values())
    assert (
        now.headline()
        == f"1 of {count} exercises are right: 1 of {now.max_points} points. Next: gradient, in lesson 02."
    )
    assert "\u2713 slope" in repr(now) and "\u2713 slope" in now._repr_mimebundle_()["text/html"]


def test_next_exercise():
    """The lesson of the last attempt is finished first; then the first that is not done."""
    lessons = {"00": ["a", "b"], "01": ["c"], "02": ["d", "e"]}

    def after(*attempts):
        return record.next_exercise(lessons, [{"exercise": one[0], "outcome": one[1:]} for one in attempts])

    assert after() == ("00", "a") and after("dwrong") == ("02", "d") and after("dright") == ("02", "e")
    assert after("dright", "eright") == ("00", "a") and after("dwrong", "aright") == ("00", "b")
    assert after("recall_02right", "cright") == ("00", "a")
    assert after(*[f"{name}right" for names in lessons.values() for name in names]) == ("", "")


def test_hints():
    assert "Write an answer first" in repr(hint("slope")) or find("slope").hint in " ".join(repr(hint("slope")).split())
    tried(ONE_SIDE)
    text = " ".join(repr(hint("slope")).split())
    assert all(one in text for one in find("slope").wrongs[0].hints) and "the solution" not in text
    tried(RIGHT)
    text = repr(hint("slope"))
    assert "the solution" in text and "rise / (2 * h)" in text and "turned" in text


def test_unknown_names():
    with pytest.raises(LookupError, match="there is no exercise 'slopes'(.|\n)*Try: did you mean slope?"):
        check("slopes", 1)
    with pytest.raises(LookupError, match="nothing is drawn for 'slope'"):
        draw("slope")


# ---- grading --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, value", [("NBGRADER_EXECUTION", "autograde"), ("NBGRADER_EXECUTION", "validate"), ("MINFLOW_GRADING", "1")]
)
def test_grading_raises_or_returns_points(monkeypatch, capfd, name, value):
    monkeypatch.setenv(name, value)
    assert tried(RIGHT) == 1.0
    monkeypatch.setattr(find("slope"), "time_limit", 0.05)
    for wrong in (ONE_SIDE, "def slope(f, x, h=1e-3):\n    ...\n", "def slope(f, x, h=1e-3):\n    while True: pass\n"):
        with pytest.raises(WrongAnswer, match="slope"):
            tried(wrong)
    with pytest.raises(WrongAnswer, match="not started"):
        check("slope", ...)
    assert capfd.readouterr() == ("", "") and not record.progress_file().exists()


def test_output_of_a_solution_is_not_shown(capsys):
    """The answer to a card is taken from a build that fails and reports its line."""
    assert not check("read_card", ("model.stem", 32, 30)).ok
    assert capsys.readouterr().out == ""
