"""The sources of the documentation site; `.ci/run docs` builds it from them, with warnings as errors."""

import inspect
import json
import re
from types import ModuleType

import nbformat
import pytest

from docs.site import pages, reference
from minflow.exercises import welcome
from tests.processes import output
from tests.sources import TOP
from tests.test_completion import MODULES

HERE = object()  # its text contains an address


@pytest.fixture(scope="module")
def api():
    """In a separate process: another test may have imported modules that are not public."""
    program = "import json; from docs.site import reference; print(json.dumps(reference.pages()))"
    return json.loads(output("-c", program, cwd=TOP))


def documented(api):
    """Return (name, line under its signature) for all names of the reference."""
    found = []
    for text in api.values():
        room = ""
        for line in re.finditer(r"^:{3,4}\{py:(\w+)\} ([\w.]+).*\n(.*)$", text, re.MULTILINE):
            kind, name, first = line.groups()
            if kind in ("module", "currentmodule"):
                room = name
            elif line[0].startswith("::::"):
                found.append((name if name.startswith("flow.Tensor.") else f"{room}.{name}", first))
    return found


def test_every_public_name_is_in_the_reference_once(api):
    names = [name for name, _ in documented(api)]
    wanted = (
        {
            f"{room}.{name}"
            for room, module in MODULES.items()
            for name in dir(module)
            if not isinstance(getattr(module, name, None), ModuleType)
        }
        - set(MODULES)
        - {"flow.Tensor"}
    )
    assert sorted(name for name in names if not name.startswith("flow.Tensor.")) == sorted(wanted)
    assert len(set(names)) == len(names) and "flow.Tensor.backward" in names


def test_every_name_has_a_summary(api):
    assert not [name for name, first in documented(api) if not first.strip(": ")]


def test_reference_pages_are_not_too_long(api):
    long = {name: count for name, text in api.items() if (count := text.count("\n::::{py:")) > 120}
    assert not long
    assert all(text.startswith("# ") for text in api.values())


def test_every_reference_page_is_listed(api):
    listed = {
        line
        for text in api.values()
        for part in re.findall(r"^```\{toctree\}\n(.*?)```", text, re.M | re.S)
        for line in part.split("\n")
        if line and line[0] != ":"
    }
    assert {f"reference/{name}.md" for name in listed} == set(api) - {"reference/index.md"}


def test_aliases_link_to_the_first_name(api):
    first = dict(documented(api))
    for name, text in first.items():
        if found := re.fullmatch(r"The same as \{py:obj\}`(.+)`\.", text):
            assert "{py:obj}" not in first[found[1]], name
    assert first["flow.absolute"] == "The same as {py:obj}`flow.abs`."


def test_signatures_are_reproducible():
    def f(self, x: "int | None" = None, *, by=len, where=HERE, name="a"): ...

    assert reference.signature(f, "function") == "(self, x: int | None = None, *, by=len, where=..., name='a')"
    assert reference.signature(f, "method").startswith("(x: int | None")
    assert reference.signature(3, "data") == "" and reference.signature(KeyError, "exception") == ""


def test_docstring_becomes_markdown():
    doc = """x ** 2 < 3 * y_1, of `(N, C)` and `a*b`.

        >>> f(1)
        2

    - one: $5
    - two

    1. first
    """
    assert reference.docstring_to_markdown(inspect.cleandoc(doc)) == (
        "x \\*\\* 2 \\< 3 \\* y\\_1, of `(N, C)` and `a*b`.\n\n```python\n>>> f(1)\n2\n```\n\n"
        "- one\\: \\$5\n- two\n\n1\\. first"
    )


def test_file_links_lead_to_source_pages():
    folder = pages.TOP / "docs"
    text = (
        "[a](../minflow/core/op.py) [b](curves.md#what-is-kept) ![c](tape.svg) [d](../notebooks/) "
        "[e](../README.md#try-it) [f](https://x.y/z)\n\n```\n[a](../minflow/core/op.py)\n```\n"
    )
    assert pages.rewrite_links(text, folder) == (
        "[a](../source/minflow/core/op.py.md) [b](curves.md#what-is-kept) ![c](tape.svg) [d](../notebooks/README.md) "
        "[e](../index.md#try-it) [f](https://x.y/z)\n\n```\n[a](../minflow/core/op.py)\n```\n"
    )
    linked_sources = pages.linked_sources({"docs/p.md": pages.rewrite_links(text, folder)})
    assert "optim/sgd.py\n" in pages.source_page("minflow")
    assert (
        list(linked_sources) == ["source/minflow/core/op.py.md"]
        and "```python\n" in linked_sources["source/minflow/core/op.py.md"]
    )


def test_every_page_is_listed_on_the_first_page():
    found = pages.repository_pages()
    listed = set(re.findall(r"^((?:docs|notebooks|reference)/\S+|\w+)$", found["index.md"], re.MULTILINE))
    by_hand = {name.removesuffix(".md") for name in found if name.endswith(".md")} - {"index"}
    assert by_hand | {"glossary", "notebooks/README", "reference/index"} == listed - {"CONTRIBUTING_"}
    assert "<!-- packages -->" not in found["docs/how-it-works.md"] and "<svg" in found["docs/how-it-works.md"]


def test_package_picture_matches_the_layering_table():
    package_imports = pages.package_imports()
    assert (
        package_imports["core"] == []
        and package_imports["compiler"] == ["core"]
        and "core" not in package_imports["diagnosis"]
    )
    assert {"nn", "optim", "job", "deploy", "onnx", "views"} <= set(package_imports)
    assert all(f"| `{package}` |" in pages.packages() for package in package_imports)
    svg = (TOP / "docs/packages.svg").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<text[^>]*>([^<]+)</text>", svg)) == sorted(package_imports), (
        "update it with: python -m docs.site.pages"
    )


def lesson(path, *words):
    rows = "\n".join(f"| {word} | {meaning} |" for word, meaning in words)
    cells = [
        nbformat.v4.new_markdown_cell("# 02 - Down\n\n**Question:** Where?\n\n**Time:** 5 minutes"),
        nbformat.v4.new_markdown_cell(f"## Words\n\n| word | meaning |\n|---|---|\n{rows}\n"),
    ]
    cells[1]["id"] = "down-words"
    path.write_text(json.dumps(nbformat.v4.new_notebook(cells=cells)), encoding="utf-8")


def test_glossary_is_generated_from_the_lessons(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(pages, "TOP", tmp_path.parent)
    assert "not named a word" in pages.glossary()
    lesson(tmp_path / "02_down.ipynb", ("**slope**", "how fast `f` rises"), ("loss", "a \\| b"))
    (tmp_path / "zh").mkdir()
    (tmp_path / "zh/02_down.po").write_text('msgid "**slope**"\nmsgstr "斜率"\n', encoding="utf-8")
    place = f"[02]({tmp_path.name}/02_down.ipynb)"
    assert pages.glossary().splitlines()[-2:] == [
        f"| loss |  | a \\| b | {place} |",
        f"| **slope** | 斜率 | how fast `f` rises | {place} |",
    ]


def test_course_list_has_questions_and_minutes(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "NOTEBOOKS", tmp_path)
    lesson(tmp_path / "02_down.ipynb")
    text = "# Lessons\n\n| notebook | what |\n|---|---|\n| `02_down.ipynb` | slopes |\n| `03_none.ipynb` | none |\n"
    (tmp_path / "README.md").write_text(text)
    assert pages.course().split("\n")[2:6] == [
        "| notebook | its question | minutes | what |",
        "|---|---|---|---|",
        "| [02 - Down](02_down.ipynb) | Where? | 5 | slopes |",
        "| `03_none.ipynb` | none |",
    ]
    assert "\n02_down\n" in pages.course()


@pytest.mark.parametrize(
    "one", [*welcome.lessons(pages.NOTEBOOKS), *welcome.tours(pages.NOTEBOOKS)], ids=lambda one: one.path.stem
)
def test_lesson_begins_with_its_question_and_time(one):
    assert one.number == json.loads(one.path.read_bytes())["cells"][0]["source"][0].split()[1]
    assert one.question.endswith("?") and len(one.question) <= 100, one.question
    assert 5 <= one.minutes <= 150
