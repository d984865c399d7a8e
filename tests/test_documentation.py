"""README and docs/: their programs run, and their links lead to existing files, as do the links of the lessons.

A block that cannot run says why on its fence: ```python no-run: needs PyTorch.
"""

import doctest
import json
import os
import re
from pathlib import Path

import pytest

from minflow import cli
from minflow.exercises import checker, registry
from tests.processes import output

TOP = Path(__file__).parent.parent
PAGES = {
    file.relative_to(TOP).as_posix(): file.read_text(encoding="utf-8")
    for file in [*TOP.glob("*.md"), *sorted((TOP / "docs").rglob("*.md")), *(TOP / "notebooks").rglob("*.md")]
}
BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^([ \t]*)(`{3,}).*?^\1\2[ \t]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FOLLOWED = {"CONTRIBUTING.md": "tests/test_contributing.py puts each block where the page says"}
TRAINING = """
import minflow as flow
from minflow import nn

flow.manual_seed(0)
loader = flow.utils.data.DataLoader(flow.utils.data.TensorDataset(flow.randn(8, 4), flow.randint(0, 2, (8,))), 4)
loss_fn = nn.CrossEntropyLoss()


def fresh(lr):
    model = nn.Linear(4, 2)
    return model, flow.optim.SGD(model.parameters(), lr=lr)


def train(model, optimizer):
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


model, optimizer = fresh(0.1)
x, y = next(iter(loader))
"""
# Steps of the reader before the page begins.
BEFORE = {
    "docs/curves.md": TRAINING,
    "docs/loading-weights.md": TRAINING + 'flow.save(model.state_dict(), "torch_model.safetensors")\n',
}


def blocks(page):
    """Return (why it is not run, the program) for each Python block."""
    return [
        (words.strip().removeprefix("no-run").lstrip(": "), text)
        for words, text in BLOCK.findall(PAGES[page])
        if not text.startswith(">>>")
    ]


WITH_PROGRAMS = [page for page in PAGES if blocks(page) and page not in FOLLOWED]


def test_skipped_blocks_give_a_reason():
    fences = [(page, words) for page, text in PAGES.items() for words, _ in BLOCK.findall(text) if words.strip()]
    assert not [fence for fence in fences if not re.fullmatch(r" no-run: \w.{8,}", fence[1])]


@pytest.mark.parametrize("page", WITH_PROGRAMS)
def test_programs_of_a_page_run_in_order(page, tmp_path):
    """In a separate process, because a page may replace another library by minflow."""
    programs = [BEFORE.get(page, ""), *(text for why, text in blocks(page) if not why)]
    (tmp_path / "page.py").write_text("\n\n".join(programs), encoding="utf-8")
    said = output("page.py", cwd=tmp_path, PYTHONIOENCODING="utf-8", MINFLOW_PROGRESS="0")
    if page == "README.md":
        (shown,) = re.findall(r"^```text\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)
        assert shown in said


def table(page, corner):
    """Return the rows of the table whose first header is `corner`, including the header."""
    (text,) = re.findall(rf"^\| ?{re.escape(corner)} ?\|.*\n\|[-|]+\n(?:\|.*\n)+", PAGES[page], re.MULTILINE)
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return [rows[0], *rows[2:]]


def test_readme_states_course_hours():
    for part, *_, hours in table("README.md", "lessons")[1:]:
        first, last = part.split("-")
        files = [*(TOP / "notebooks").glob("[0-9]*.ipynb"), *(TOP / "notebooks/inside").glob("R*.ipynb")]
        inside = [file.read_text(encoding="utf-8") for file in files if first <= file.name.partition("_")[0] <= last]
        minutes = [int(re.search(r"\*\*Time:\*\* (\d+) minutes", text)[1]) for text in inside]
        assert float(hours) == pytest.approx(sum(minutes) / 60, abs=0.5), part


def test_the_counts_in_the_readme():
    assert "course of seventeen" in PAGES["README.md"] and len([*(TOP / "notebooks").glob("[0-9]*.ipynb")]) == 17
    (needed,) = re.findall(r"^dependencies = \[\n(.*?)^\]", (TOP / "pyproject.toml").read_text(), re.M | re.S)
    assert "NumPy and three small packages" in PAGES["README.md"] and len(re.findall('^ *"', needed, re.M)) == 1 + 3


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if ">>> " in text and page not in FOLLOWED])
def test_prompt_examples_print_what_pages_show(page):
    for block in re.findall(r"^```python\n(>>>.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL):
        said = []
        test = doctest.DocTestParser().get_doctest(block, {}, page, page, 0)
        assert doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)


# ---- pictures ---------------------------------------------------------------------------------------------------


def test_pictures_of_the_readme_have_two_themes_and_are_small():
    dark = r'<source media="\(prefers-color-scheme: dark\)" srcset="docs/images/(\w+)-dark\.(\w+)">'
    light = r'<img src="docs/images/(\w+)-light\.(\w+)"[^>]* alt="[^"]{40,}">'
    shown = re.findall(rf"{dark}\n  {light}", PAGES["README.md"])
    assert [name for name, *_ in shown] == ["curve", "tape", "wrong", "explorer"]
    assert all((name, kind) == (again, same) for name, kind, again, same in shown)
    files = {f"{name}-{theme}.{kind}" for name, kind, *_ in shown for theme in ("light", "dark")}
    there = {file.name: file.stat().st_size for file in (TOP / "docs/images").iterdir()}
    assert set(there) == files
    assert max(there.values()) <= 400_000
    assert max(size for name, size in there.items() if name.endswith(".png")) <= 150_000


def test_programs_in_the_pictures_are_those_of_the_readme():
    text = (TOP / "docs/pictures.py").read_text(encoding="utf-8")
    tape, wrong = (re.search(rf'^{name} = """\\\n(.*?)"""', text, re.M | re.S)[1] for name in ("TAPE", "WRONG"))
    (prompt,) = re.findall(r"^```python\n(>>>.*?)^```", PAGES["README.md"], re.M | re.S)
    program = [line.removeprefix(">>> ") for line in prompt.splitlines() if line.startswith(">>> ")]
    assert [line for line in tape.splitlines() if line] == [*program[:-1], "flow.show(loss, values=True)"]
    (answer,) = (block for _, block in blocks("README.md") if "def out_size" in block)
    assert wrong.splitlines()[1] in answer.splitlines(), "the wrong line"


# ---- links ------------------------------------------------------------------------------------------------------


def markdown(name):
    """Return the text of a page, or of the Markdown cells of a notebook, without code. name: in the checkout, or a
    path.
    """
    if Path(name).suffix == ".ipynb":
        cells = json.loads((TOP / name).read_text(encoding="utf-8"))["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    else:
        text = PAGES[name] if name in PAGES else (TOP / name).read_text(encoding="utf-8")
    return FENCED.sub(lambda found: "" if "\n" in found[0] else "`", text)


def anchors(name):
    """Return the anchors of the headings of a page, as code hosts and the site generate them."""
    text = PAGES[name] if name in PAGES else (TOP / name).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found = []
    for heading in re.findall(r"^#+[ \t]+(.+?)[ \t]*$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return found


def links(name):
    """Return the relative links of a page: in text, pictures and HTML."""
    text = markdown(name)
    found = re.findall(r"\]\(<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\)", text)
    found += re.findall(r"(?:href|src|srcset)=\"([^\"]+)\"", text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


NOTEBOOKS = [
    file.relative_to(TOP).as_posix()
    for file in sorted((TOP / "notebooks").rglob("*.ipynb"))
    if ".ipynb_checkpoints" not in file.parts
]


def broken(name):
    wrong = []
    for link in links(name):
        place, _, anchor = link.partition("#")
        path = Path(os.path.normpath(TOP / Path(name).parent / place)) if place else TOP / name
        if (
            not path.exists()
            or not path.is_relative_to(TOP)
            or (anchor and path.suffix == ".md" and anchor not in anchors(path.relative_to(TOP).as_posix()))
        ):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("name", [*PAGES, *NOTEBOOKS])
def test_links_resolve(name):
    assert broken(name) == []


def test_broken_links_are_found(monkeypatch):
    page = "# A `b` c!\n\n## Twice\n\n## Twice\n\n"
    right = "[x](#a-b-c) [x](#twice-1) [x](../README.md#try-it) ![x](tape.svg) [x](https://a.b/c) `[x](no)`"
    monkeypatch.setitem(PAGES, "docs/p.md", page + right + "\n\n```\n[x](nowhere)\n```\n")
    monkeypatch.setattr(Path, "exists", lambda path, old=Path.exists: path.name == "p.md" or old(path))
    assert broken("docs/p.md") == []
    wrong = ["no.md", "#no", "../README.md#no", "../../outside.md", "no.svg"]
    monkeypatch.setitem(PAGES, "docs/p.md", page + " ".join(f"![x]({link})" for link in wrong))
    assert broken("docs/p.md") == wrong


# ---- commands -----------------------------------------------------------------------------------------------------

COMMANDS = re.compile(r"`(?:\.tools/bin/uv run )?minflow (?:lab|run|doctor|warmup|onnx|exercises|slides)\b")


@pytest.mark.parametrize(
    "name", [name for name, text in PAGES.items() if COMMANDS.search(text) and name != "CHANGELOG.md"]
)
def test_pages_with_commands_say_how_to_type_them(name):
    """README's start does not put `minflow` on the PATH of a terminal."""
    page = "docs/commands.md"
    assert name == page or page in {
        os.path.normpath(os.path.join(os.path.dirname(name), link.partition("#")[0])) for link in links(name)
    }


def test_commands_page_lists_every_command():
    page = PAGES["docs/commands.md"]
    table = page[: page.index("## How")]
    (commands,) = (action.choices for action in cli.parser()._actions if isinstance(action.choices, dict))
    assert set(re.findall(r"`minflow (\w+)", table)) == {*commands}
    (parts,) = (action.choices for action in commands["exercises"]._actions if isinstance(action.choices, dict))
    (row,) = re.findall(r"`minflow exercises` \|(.*)", table)
    assert set(re.findall(r"`(\w+)`", row)) == {*parts} - {"mend"}  # the old name of repair


def test_second_day_command_is_the_end_of_the_first():
    """README's first command after the installation of uv."""
    first = re.search(r"^python3 -m pip .*&& (.*minflow)$", PAGES["README.md"], re.MULTILINE)[1]
    assert all(f"`{first}`" in PAGES[name] for name in ("README.md", "docs/commands.md"))


def test_pictured_questions_are_listed():
    section = PAGES["docs/teaching/grading.md"].partition("## Other questions for each class")[2].partition("\n## ")[0]
    numbers = dict(re.findall(r"^\| (\d\d\.\d) \| `(\w+)`", PAGES["docs/exercises.md"], re.MULTILINE))
    drawn = {one.name for one in registry.all_exercises() if one.draw_object}
    listed = dict(re.findall(r"(\d\d\.\d) `(\w+)`", section))
    assert listed == {no: name for no, name in numbers.items() if name in drawn}
    assert f"`{checker.WORD_VARIABLE}`" in section
