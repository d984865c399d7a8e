"""Slides fit a window of 1280 x 720, whatever a lesson contains."""

import json
import subprocess
from pathlib import Path

import nbformat
import pytest
from pages import NODE, PLAYWRIGHT, SHOTS, shots_folder

from minflow.exercises.teach import notebook as nb
from minflow.exercises.teach.pages import slides

pytestmark = pytest.mark.browser


def overflowing(browser, page, tmp_path):
    """Count of slides, and number, height and width of those that do not fit."""
    file = tmp_path / "slides.html"
    file.write_text(page, encoding="utf-8")
    words = [NODE, str(Path(__file__).with_name("slides.mjs")), str(PLAYWRIGHT), browser, str(file)]
    if SHOTS:
        words.append(str(shots_folder(tmp_path, "slides")))
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout)


def page_of(*cells):
    notebook = nbformat.from_dict(
        slides.slide_cells({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    return slides.standalone_page(notebook, "Slides")


def test_long_cells_are_continued_or_shrink(browser, tmp_path):
    paragraph = "A line of prose that goes on for a while, until it needs a second line on the slide. " * 3
    code = nb.cell("code", "\n".join(f"x{i} = {i}" for i in range(60)), "code")
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="1500"><rect width="900" height="1500"/></svg>'
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": "a line\n" * 80},
        {"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": svg}},
        {"output_type": "display_data", "metadata": {}, "data": {"text/html": f"<div>{svg}<p>text</p></div>"}},
    ]
    parts = [nb.cell("markdown", "# Title\n\n" + "\n\n".join([paragraph] * 12), "text"), code]
    parts += [nb.cell("code", "show()", f"out{i}") | {"outputs": [output]} for i, output in enumerate(outputs)]
    count, large = overflowing(browser, page_of(*parts), tmp_path)
    assert count > 5 and large == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_text_and_code_of_all_lessons_fit(browser, tmp_path, monkeypatch, language):
    monkeypatch.setenv("MINFLOW_LANG", language)
    for lesson, path in nb.releases().items():
        count, large = overflowing(browser, page_of(*nb.read_release(path)["cells"]), tmp_path)
        assert count > 10 and large == [], lesson
