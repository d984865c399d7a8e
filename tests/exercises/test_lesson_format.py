"""The format of lessons: exercise cells as defined, few new words, each name shown before it is needed."""

import ast
import json
import re
from pathlib import Path

import pytest

from minflow.exercises import cells
from minflow.exercises.i18n import languages
from minflow.exercises.registry import all_exercises, find, lesson_exercises
from minflow.exercises.translate.notebook import in_language

FOLDER = Path(__file__).parents[2] / "notebooks"
LESSONS = sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))
NEW_WORDS, CELL_WORDS, CODE_LINES = 9, 130, 16


def cells_of(file):
    return json.loads(file.read_text(encoding="utf-8"))["cells"]


def text(cell):
    return "".join(cell["source"])


def lesson_of(file):
    return file.name[:2]


@pytest.fixture(params=LESSONS, ids=lambda file: file.stem)
def lesson(request):
    return request.param


def test_exercise_cells_are_as_defined(lesson):
    """Each exercise of the lesson occurs once, in order, and its cells are those of its definition."""
    by_id = {cell["id"]: cell for cell in cells_of(lesson)}
    there = [id.removesuffix("-check").replace("-", "_") for id in by_id if id.endswith("-check")]
    assert there == [one.name for one in lesson_exercises(lesson_of(lesson))]
    for name in there:
        part = name.replace("_", "-")
        assert text(by_id[f"{part}-answer"]) == cells.answer_cell(name), name
        assert text(by_id[f"{part}-check"]) == cells.check_cell(name), name
        assert by_id[f"{part}-task"]["cell_type"] == "markdown"


def test_every_exercise_is_in_a_lesson():
    numbers = {lesson_of(file) for file in LESSONS}
    assert [one.name for one in all_exercises() if one.lesson not in numbers] == []


def words_cell(file):
    found = [cell for cell in cells_of(file) if cell["id"].endswith("-words")]
    assert len(found) <= 1
    return found[0] if found else None


def new_words(file):
    """Return the entries of the table of words, each in its forms: `learning rate`, `minibatch (batch)`."""
    cell = words_cell(file)
    rows = [line.split("|")[1].strip(" *`") for line in text(cell).splitlines() if line.startswith("|")] if cell else []
    return [row for row in rows[2:] if row]


def test_few_new_words(lesson):
    assert 1 <= len(new_words(lesson)) <= NEW_WORDS, new_words(lesson)


def test_words_are_explained_once():
    seen = {}
    for file in LESSONS:
        for word in new_words(file):
            assert word.lower() not in seen, f"{word}: in {seen[word.lower()]} and {file.name}"
            seen[word.lower()] = file.name


def test_cells_are_short(lesson):
    for cell in cells_of(lesson):
        if cell["cell_type"] == "markdown" and not cell["id"].endswith(("-words", "-task")):
            assert len(text(cell).split()) <= CELL_WORDS, cell["id"]
        if cell["cell_type"] == "code" and not cell["id"].endswith("-answer"):
            assert len(text(cell).splitlines()) <= CODE_LINES, cell["id"]


def test_first_code_cell_has_the_imports(lesson):
    code = [cell for cell in cells_of(lesson) if cell["cell_type"] == "code"]
    assert "from minflow.exercises import" in text(code[0])
    for cell in code[1:]:
        if not cell["id"].endswith("-answer"):
            assert "from minflow.exercises import" not in text(cell), cell["id"]


def names_in(source):
    """Return public names in code: flow.where, x.sum, nn.Linear, F.relu -> their last parts."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with top-level await or a magic
        return set(re.findall(r"\.([A-Za-z_]\w*)", source))
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def own_names(source):
    """Return attributes that the code defines."""
    tree = ast.parse(source)
    made = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    made |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return made | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


PYTHON = {
    "append",
    "pop",
    "items",
    "keys",
    "values",
    "get",
    "add",
    "extend",
    "copy",
    "index",
    "count",
    "sort",
    "join",
    "split",
    "format",
    "update",
    "insert",
    "remove",
    "discard",
    "setdefault",
    "reverse",
    "replace",
    "strip",
    "clear",
    "read",
    "write",
    "close",
    "exists",
    "name",
    "upper",
    "lower",
    "startswith",
    "endswith",
    "removesuffix",
    "perf_counter",
    "isnan",
    "ceil",
    "floor",
    "path",
    "median",
    "union",
    "difference",
}


def test_names_are_shown_before_they_are_needed(lesson):
    """The names in a solution occur in a lesson up to this one: in code, or as code in its text."""
    shown = set(PYTHON)
    for file in LESSONS:
        if file.name > lesson.name:
            break
        for cell in cells_of(file):
            if cell["cell_type"] == "markdown":
                shown |= set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`([^`]+)`", text(cell)))))
                shown |= set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"```.*?```", text(cell), re.DOTALL))))
            else:
                shown |= names_in(text(cell)) | set(re.findall(r"\b[a-z_]\w*(?==)", text(cell)))
    for exercise in lesson_exercises(lesson_of(lesson)):
        if exercise.make_cases is None or not callable(exercise.right):
            continue
        source = cells.solved_cell(exercise.name)
        missing = names_in(source) - shown - own_names(source)
        assert not missing, f"{exercise.name}: its solution needs {sorted(missing)}, which no earlier lesson shows"


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", *languages()])
def test_solved_lesson_passes_every_check(lesson, language, tmp_path, monkeypatch):
    """The teacher's edition, in its kernel: every check succeeds, also with translated strings in the code."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.reads(in_language(language, FOLDER)(lesson, lesson.read_bytes()).decode(), 4)
    for cell in book.cells:
        if cell.id.endswith("-answer"):
            cell.source = cells.solved_cell(cell.id.removesuffix("-answer").replace("-", "_"))
        elif cell.id.endswith("-check"):
            cell.source = f"checked = {cell.source}\nprint('right' if checked.ok else checked)"
    monkeypatch.setenv("MINFLOW_PROGRESS", "0")
    monkeypatch.setenv("MINFLOW_LANG", language)
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell in book.cells:
        if cell.id.endswith("-check"):
            said = "".join(output.get("text", "") for output in cell.outputs)
            assert said == "right\n", f"{cell.id}: {said}"
        for output in cell.get("outputs", ()):
            compiling = output.get("text", "").startswith("minflow: compiling kernels")  # on a machine without caches
            assert output.get("name") != "stderr" or compiling, f"{cell.id}: {output.text}"


def test_form_checks_detect_violations():
    assert names_in("x.sum(0)\nflow.where(a, b, c)") == {"sum", "where"}
    assert own_names("class A:\n    def f(self, x):\n        self.y = x") == {"A", "f", "self", "x", "y"}
    assert find("slope").name == "slope"
