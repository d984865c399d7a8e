"""Mutants are reproducible, are valid programs, and know their positions."""

import ast
from pathlib import Path

from tests import mutation_testing

TOP = Path(__file__).parents[1]
PROGRAM = '''"""At 1 - 2."""

def f(x: int = 5) -> int:
    """A text - with 3."""
    if x < 0:
        raise ValueError(
            f"{x + 7}")
    x[:] = -x + (
        "a" + "b")
    return x
'''


def test_a_seed_chooses_the_mutants():
    some = mutation_testing.chosen(40, 1, "minflow/optim/")
    assert some == mutation_testing.chosen(40, 1, "minflow/optim/") != mutation_testing.chosen(40, 2, "minflow/optim/")
    assert len({(one.file, one.line) for one in some}) == 40
    assert all(one.file.startswith("minflow/optim/") for one in some)


def test_which_changes_are_made(tmp_path):
    file = tmp_path / "one.py"
    file.write_text(PROGRAM)
    found = list(mutation_testing.candidates(file, tmp_path))
    assert sorted(str(one).split(": ", 1)[1] for one in found) == [
        '- in -x + ( "a" + "b")',
        "0 + 1",
        "<= in x < 0",
        "no minus in -x",
        'without raise ValueError( f"{x + 7}")',
        'without x[:] = -x + ( "a" + "b")',
    ]
    for one in found:
        before = mutation_testing.plant(one, tmp_path)
        assert before == PROGRAM.encode() != file.read_bytes()
        assert file.read_text().count("\n") == PROGRAM.count("\n"), "errors name lines of the source"
        ast.parse(file.read_bytes())
        file.write_bytes(before)


def test_probe_records_the_test_that_reaches_it(tmp_path, monkeypatch):
    some = mutation_testing.chosen(40, 1, "minflow/optim/")
    for one in some:
        (tmp_path / one.file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one.file).write_bytes((TOP / one.file).read_bytes())
    mutation_testing.probe(some, tmp_path, tmp_path)
    for file in tmp_path.rglob("*.py"):
        ast.parse(file.read_bytes())
    (tmp_path / "hits").mkdir()
    text = mutation_testing.PROBE.format(folder=str(tmp_path / "hits"))
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/test_a.py::test_b (call)")
    space = {}
    exec(text, space)
    for number in (3, 3, 4):
        space["reach"](number)
    (file,) = (tmp_path / "hits").iterdir()
    assert file.read_text() == "3 tests/test_a.py::test_b (call)\n4 tests/test_a.py::test_b (call)\n"
