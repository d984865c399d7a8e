"""The glossary's words of the course: introduced in the lesson that it names, and used from then on."""

import json
import re

import pytest

from minflow.exercises.translate import checks, markdown
from tests.exercises.test_lesson_format import LESSONS, lesson_of
from tests.sources import TOP

# Term -> a simpler word or form of it, and the first lesson that must not use that any more.
REPLACED = {
    "parameter": (r"\bknobs?\b", "04"),
    "run": (r"\brise divided by way\b|\\text\{way\}", "00"),
    "gradient": (r"\bslopes? of [^.,;]{1,40}? in (?:[`a-z]\b|each|everything)", "00"),
    "chain rule": (r"\balong a way\b|\bways (?:meet|lead)\b", "00"),
    "backward pass": (r"\b(?:the|one) way back\b|\bwalks? back (?:along|through)\b", "03"),
    "validation set": (r"\bthird part\b", "00"),
    "test set": (r"\bof the unseen\b|\bunseen digits\b", "06"),
    "cross-entropy": (r"\bsurprise\b", "05"),
    "activation function": (r"\bbends?\b", "05"),
}


def rows():
    section = (
        (TOP / "docs/glossary.md").read_text(encoding="utf-8").split("## Words of the course")[1].split("\n## ")[0]
    )
    found = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| ([^|]*) \| ([^|]+) \| \[(\d\d)\]\(([^)]+)\) \|$", section, re.MULTILINE
    )
    assert len(found) == section.count("\n|") - 2 > 40
    return found


def prose(file):
    """Markdown of a lesson without code and without its table of words."""
    cells = json.loads(file.read_bytes())["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return markdown.without_code("\n\n".join(text for text in texts if not text.startswith("## Words")))


TEXTS = {lesson_of(file): prose(file) for file in LESSONS}


def forms(term):
    """Pattern of a term in singular or plural."""
    return rf"(?:{re.escape(term)}(?:e?s)?|{re.escape(term.removesuffix('y'))}ies)"


@pytest.mark.parametrize("term, chinese, simpler, meaning, lesson, link", rows(), ids=lambda value: value[:20])
def test_term_is_introduced_in_its_lesson(term, chinese, simpler, meaning, lesson, link):
    assert (TOP / "docs" / link).is_file() and f"/{lesson}_" in link
    assert checks.glossary("zh")[term][0] == chinese
    assert re.search(rf"\*\*{forms(term)}\*\*", TEXTS[lesson], re.IGNORECASE), f"{term}: not bold in lesson {lesson}"
    for other, text in TEXTS.items():
        found = re.search(rf"(?<![\w-])\*\*{forms(term)}\*\*", text, re.IGNORECASE)
        assert not found or other == lesson, f"{term}: bold in {other} too"
        found = re.search(rf"(?<![\w-]){forms(term)}(?![\w-])", text, re.IGNORECASE)
        assert not found or other >= lesson, f"{term}: used in {other}, before lesson {lesson}"


@pytest.mark.parametrize("term", REPLACED)
def test_later_lessons_use_the_term(term):
    pattern, first = REPLACED[term]
    found = {lesson: re.findall(pattern, text) for lesson, text in TEXTS.items() if lesson >= first}
    assert not any(found.values()), {lesson: words for lesson, words in found.items() if words}


def test_the_first_lesson_links_to_the_glossary():
    cells = json.loads(LESSONS[0].read_bytes())["cells"]
    assert any("](../docs/glossary.md)" in "".join(cell["source"]) for cell in cells)
