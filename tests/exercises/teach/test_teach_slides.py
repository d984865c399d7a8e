"""Slides of a lesson: without answers, without network access."""

import re

import pytest

from minflow import cli
from minflow.exercises.teach import notebook as nb
from minflow.exercises.teach.pages import slides
from tests.exercises.teach.small_course import EXERCISES, lesson


def test_beginnings_of_slides():
    every = slides.slide_cells(lesson())["cells"]
    kinds = [(cell["id"], cell["metadata"]["slideshow"]["slide_type"]) for cell in every]
    assert kinds == [
        ("downhill-00", "slide"),
        ("downhill-01", "-"),
        ("downhill-02", "slide"),
        ("downhill-03", "-"),
        *((nb.cell_id(name, "task"), "subslide") for name in EXERCISES),
        ("downhill-04", "-"),
        ("downhill-words", "slide"),
    ]


def test_guess_and_its_answer_are_on_different_slides():
    parts = [
        nb.cell("markdown", "## Which way?\n\nGuess.", "a"),
        nb.cell("code", 'guess = "?"  # "up" or "down"', "b"),
        nb.cell("code", "print('your guess:', guess)", "c"),
        nb.cell("code", "1 + 1", "d"),
    ]
    every = slides.slide_cells({**lesson(), "cells": parts})["cells"]
    kinds = [cell["metadata"]["slideshow"]["slide_type"] for cell in every]
    assert kinds == ["slide", "-", "subslide", "-"]


def test_each_language_has_its_file(course_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINFLOW_LANG", "en")  # restored after the command has set it
    for language in ("en", "zh"):
        assert cli.main(["slides", "02", "--not-run", "--lang", language]) == 0
    assert capsys.readouterr().out.split() == ["02_downhill.slides.html", "02_downhill.zh.slides.html"]
    assert 'lang="en"' in (tmp_path / "02_downhill.slides.html").read_text(encoding="utf-8")
    assert 'lang="zh"' in (tmp_path / "02_downhill.zh.slides.html").read_text(encoding="utf-8")


def test_single_page_without_answers_and_network(course_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["slides", "02"]) == 0
    assert capsys.readouterr().out.strip() == "02_downhill.slides.html"
    text = (tmp_path / "02_downhill.slides.html").read_text(encoding="utf-8")
    assert text.count("<section ") == 7 and "7 / 7</footer>" in text and "a slope 0.99" in text
    assert "<script" not in text and 'src="http' not in text and "@import" not in text
    assert "your code here" not in text and "your answer here" not in text
    assert re.search(r'<img (?=[^>]*alt="2x")[^>]*src="data:image/svg\+xml;base64,\w{50}', text)


def test_reveal_is_loaded_from_the_given_address(course_folder, tmp_path):
    for words, expected in ((["--reveal", "own/reveal"], '"own/reveal/dist/reveal.js"'), (["--reveal"], "reveal.js")):
        assert cli.main(["slides", "02", "--not-run", "--out", str(tmp_path / "s.html"), *words]) == 0
        text = (tmp_path / "s.html").read_text(encoding="utf-8")
        assert expected in text and "your code here" not in text


def test_failing_cell_is_named(course_folder, tmp_path, capsys):
    path = tmp_path / "03_x.ipynb"
    nb.write(path, {**lesson(), "cells": [nb.cell("code", "1 / 0", "a")]})
    assert cli.main(["slides", str(path), "--out", str(tmp_path / "s.html")]) == 1
    assert "03_x.ipynb" in (err := capsys.readouterr().err) and "ZeroDivisionError" in err
    assert cli.main(["slides", "77"]) == 1 and "77" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text, drawn",
    [
        ("`$x$` and $5 or $6", 0),
        ("$x^2$ and $$y$$", 2),
        (r"\$x$", 0),
        ("```\n$x$\n```", 0),
        ("a $x$, b $\\frac{1}{2}$", 2),
    ],
)
def test_formulas_are_rendered_and_code_is_not(text, drawn):
    assert slides.MATH.sub(slides.draw_formula, text).count("<img") == drawn


def test_unsupported_formulas_stay_text():
    assert slides.MATH.sub(slides.draw_formula, r"$\begin{x}<$") == r"<code>\begin{x}&lt;</code>"
