"""Rules for all source files: references that resolve, tables that are tables, names and prose in plain English."""

import ast
import functools
import re
import tokenize

import pytest

from tests import prose, sampling
from tests.sources import FILES, TOP, name_of, text_of, tree_of

# Word of ours -> what the field says. A part of an identifier: `told_by` and `Told` hold the word `told`.
DIALECT = {
    "told": "recorded, said, reported",
    "teller": "report, log",
    "dear": "expensive",
    "manyeth": "number, index",
    "parting": "divergence",
    "following": "recording eager",
    "looking": "details",
    "exploring": "explorer",
    "failing": "failed",
    "kin": "related, relatives",
    "fed": "inputs",
    "made": "created",
}


def resolves(file, reference):
    """Whether a file that a docstring names is there: beside the file, in its package, or at the top."""
    package = TOP / ("widgets/minflow_widgets" if "widgets" in file.parts else "minflow")
    bases = [file.parent, package, TOP, TOP / "minflow", TOP / "widgets", TOP / "minflow/core"]
    return any((base / reference).exists() for base in bases)


def test_references_resolve():
    lost = [
        f"{name_of(file)}:{number} {reference}"
        for file in FILES
        for number, line in enumerate(text_of(file).split("\n"), 1)
        for reference in re.findall(r"`([\w./]+\.(?:py|js))`", line)
        if not resolves(file, reference)
    ]
    assert not lost, "\n".join(lost)


def is_table(statement):
    """Whether a statement holds a list, tuple, set or dict of at least three rows, each of which begins a line."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set):
            rows = node.values if isinstance(node, ast.Dict) else node.elts
            if len({row.lineno for row in rows}) >= 3:
                return True
    return False


def no_tables(text):
    """Lines with `# fmt: skip` whose statement is not a table."""
    if "fmt: skip" not in text:
        return
    marked = [
        token.start[0]
        for token in tokenize.generate_tokens(iter(text.splitlines(True)).__next__)
        if token.type == tokenize.COMMENT and "fmt: skip" in token.string
    ]
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)] if marked else []
    for line in marked:
        around = [node for node in statements if node.lineno <= line <= node.end_lineno]
        if not is_table(max(around, key=lambda node: node.lineno)):
            yield line


def test_only_tables_keep_their_own_layout():
    assert not [f"{name_of(file)}:{line}" for file in FILES for line in no_tables(text_of(file))]


def test_tables_are_known():
    table = "ROWS = [\n    1, 2,\n    3, 4,\n    5, 6,\n]  # fmt: skip\n"
    assert list(no_tables(table)) == []
    assert list(no_tables("f(1,\n  2)  # fmt: skip\n")) == [2]
    assert list(no_tables(f'TEXT = "# fmt: skip"\n{table}')) == []


NAMED = {
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
    ast.arg: "arg",
    ast.Attribute: "attr",
    ast.Name: "id",
    ast.keyword: "arg",
    ast.alias: "asname",
}


def identifiers(tree):
    """Names of classes, functions, arguments, attributes and variables: (name, line)."""
    for node in ast.walk(tree):
        if (field := NAMED.get(type(node))) and (name := getattr(node, field) or getattr(node, "name", None)):
            yield name, node.lineno


@functools.cache
def words(name):
    """build_log, BuildLog -> build, log."""
    return frozenset(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name))


@functools.cache
def places():
    """Word of DIALECT -> where it is a part of an identifier, or of the name of a file or folder."""
    found = {word: [] for word in DIALECT}
    for file in FILES:
        names = [(part, name_of(file)) for part in name_of(file).split("/")]
        if any(words(name) & DIALECT.keys() for name in set(re.findall(r"[^\W\d]\w*", text_of(file)))):
            names += [(name, f"{name_of(file)}:{line} {name}") for name, line in identifiers(tree_of(file))]
        for name, place in names:
            for word in words(name) & DIALECT.keys():
                found[word].append(place)
    return found


@pytest.mark.parametrize("word", DIALECT)
def test_the_words_of_the_field(word):
    assert not places()[word], f"{word}: use {DIALECT[word]}\n" + "\n".join(places()[word])


def test_identifiers_are_found():
    tree = ast.parse("import a as told_b\nclass Kin:\n    def dear(self, *, looking): self.parting = f(failing=1)\n")
    found = {name for name, _ in identifiers(tree)}
    assert {"told_b", "Kin", "dear", "looking", "parting", "failing"} <= found
    assert words("toldBy_HTMLPage2") == {"told", "by", "html", "page"}


# Package -> markers of translated English (tests/prose.py) that are left in it; every other package has none. A count
# may only fall.
MARKERS_LEFT = {
    "minflow/exercises": 3,
    "notebooks": 2,
}


def test_prose_has_no_new_markers():
    """tests/ and notebooks/ are read with `--complete` only."""
    found = {}
    for file in prose.sources():
        package = prose.package_of(name_of(file))
        if sampling.complete or package not in ("tests", "notebooks"):
            found.setdefault(package, []).extend(prose.markers(file))
    too_many = [line for name, lines in found.items() if len(lines) > MARKERS_LEFT.get(name, 0) for line in lines]
    assert not too_many, "\n".join(too_many)
    fewer = {name: len(lines) for name, lines in found.items() if len(lines) < MARKERS_LEFT.get(name, 0)}
    assert not fewer, f"lower MARKERS_LEFT: {fewer}"


@pytest.mark.parametrize(
    "text, markers",
    [
        ('"""Of one thread. It reads so many numbers, that is no reason."""', 3),
        ('"""One of many. There is no reason, so it is no longer read."""', 0),
        ("# What others read is kept. Who reads it is found.\n", 2),
        ("fail('stride is 0, where at least 1 is wanted')", 1),
        ("def test_nobody_reads_it(): ...", 1),
        ("# Initialised in the centre; `06_learnt_or_remembered` is a path\n", 2),
        ('def f(x) -> bool:\n    """Is it there?"""', 1),
        ('def f(x) -> bool:\n    """True if it is there. Why?"""\n# it stands in ops/', 2),
    ],
)
def test_markers_are_found(text, markers, tmp_path, monkeypatch):
    monkeypatch.setattr(prose, "TOP", tmp_path)
    file = tmp_path / "module.py"
    file.write_text(text)
    assert len(prose.markers(file)) == markers


# ---- functions that can be read at once -----------------------------------------------------------------------------

MAX_LINES, MAX_COMPLEXITY = 60, 15  # of a function of core or compiler, without its docstring
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def lines_of(function) -> int:
    doc = function.body[0] if ast.get_docstring(function, clean=False) is not None else None
    return function.end_lineno - function.lineno + 1 - (doc.end_lineno - doc.lineno + 1 if doc else 0)


def complexity(node) -> int:
    """McCabe's: one, and one for each branch, loop, handler of an exception and nested function."""
    branches = ast.If | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | FUNCTIONS
    found = sum(isinstance(x, branches) for x in ast.walk(node))
    return found + sum(isinstance(x, ast.Try) and bool(x.orelse) for x in ast.walk(node))


def too_long(name, tree) -> list[str]:
    sizes = [(x.name, lines_of(x), complexity(x)) for x in ast.walk(tree) if isinstance(x, FUNCTIONS)]
    return [
        f"{name}: {function} has {lines} lines, complexity {paths}"
        for function, lines, paths in sizes
        if lines > MAX_LINES or paths > MAX_COMPLEXITY
    ]


def test_functions_of_core_and_compiler_are_short_and_simple():
    """Split a longer one by ideas. `define` blocks of ops are checked in test_layering.py."""
    files = [file for file in FILES if name_of(file).startswith(("minflow/core/", "minflow/compiler/"))]
    assert len(files) > 100
    found = [line for file in files for line in too_long(name_of(file), tree_of(file))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "body, expected",
    [
        ("    pass", 1),
        ("    if x: pass\n    elif y: pass\n    else: pass", 3),
        ("    try: pass\n    except A: pass\n    except B: pass\n    else: pass", 4),
        ("    for x in y:\n        while x: pass", 3),
        ("    def inner():\n        if x: pass", 3),
    ],
)
def test_complexity_is_that_of_ruff(body, expected):
    assert complexity(ast.parse(f"def f():\n{body}").body[0]) == expected


def test_long_functions_are_found():
    assert not too_long("file", ast.parse("def f():\n" + "    x = 1\n" * (MAX_LINES - 1)))
    assert too_long("file", ast.parse("def f():\n" + "    x = 1\n" * MAX_LINES))
    assert too_long("file", ast.parse("def f():\n" + "    if x: pass\n" * MAX_COMPLEXITY))
