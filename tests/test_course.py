"""The learner's copy of the course: created, updated, and never overwritten."""

import errno
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from minflow import course
from minflow.exercises import welcome
from minflow.exercises.translate.notebook import in_language
from minflow.io import atomic
from tests.processes import environment
from tests.sources import TOP
from tests.test_documentation import links


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with a course of two lessons; `publish` makes another version of it."""
    place = tmp_path / "site" / "minflow"
    monkeypatch.setattr(course, "PACKAGE", place)
    publish(place, {"00_first.ipynb": "tour 1", "extra/01_more.ipynb": "more 1", "README.md": "read 1"})
    return place


@pytest.fixture
def folder(package, tmp_path):
    """A learner's folder with the course of `package`."""
    course.update(tmp_path / "c")
    return tmp_path / "c"


def publish(package, files):
    for name, text in files.items():
        file = package / "_notebooks" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def content(folder):
    """Return name -> text of all files that a learner sees."""
    return {
        file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(folder.rglob("*"))
        if file.is_file() and course.is_visible(file, folder)
    }


def names(update):
    return tuple([path.name for path in part] for part in update)


FIRST = {"00_first.ipynb": "tour 1", "README.md": "read 1", "extra/01_more.ipynb": "more 1"}
# Also if a home has such a name.
FOLDERS = ["course", "Zoë's course, 50% #1 [a] 学生", "deep/er/course"]


@pytest.mark.parametrize("name", FOLDERS)
def test_copy_is_created_once(package, tmp_path, name):
    folder = tmp_path / name
    assert course.update(folder) == ([], [])
    assert content(folder) == FIRST
    record = (folder / course.RECORD_NAME).read_bytes()
    assert course.update(folder) == ([], []) and content(folder) == FIRST
    assert (folder / course.RECORD_NAME).read_bytes() == record, "without news nothing is written"
    lines = record.decode().split("\n")[1:]
    assert [line.split("  ", 1) for line in lines] == [
        [hashlib.sha256(text.encode()).hexdigest(), path] for path, text in FIRST.items()
    ]


def test_unchanged_lesson_is_replaced_and_changed_one_kept(folder, package):
    (folder / "00_first.ipynb").write_text("mine")
    publish(package, {"00_first.ipynb": "tour 2", "extra/01_more.ipynb": "more 2", "02_new.ipynb": "new 2"})
    assert names(course.update(folder)) == (["01_more.ipynb"], ["00_first.new.ipynb"])
    assert content(folder) == {
        "00_first.ipynb": "mine",
        "00_first.new.ipynb": "tour 2",
        "02_new.ipynb": "new 2",
        "README.md": "read 1",
        "extra/01_more.ipynb": "more 2",
    }
    assert course.update(folder) == ([], [])


OPENED = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}, "language_info": {"version": "3"}}


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda book: book.metadata.update(OPENED), False),  # by Jupyter, when it is opened
        (lambda book: book.cells[1].update(execution_count=3, id="other"), False),
        (lambda book: book.cells[1].outputs.append(nbformat.v4.new_output("stream", text="5")), True),
        (lambda book: book.cells[1].update(source="2 + 4"), True),
        (lambda book: book.cells.pop(), True),
        (lambda book: book.cells[0].update(cell_type="raw"), True),
    ],
)
def test_which_changes_count(package, tmp_path, change, changed):
    def written(file, *sources):
        cells = [nbformat.v4.new_markdown_cell("# Sum"), *map(nbformat.v4.new_code_cell, sources)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), file)

    folder, lesson = tmp_path / "c", package / "_notebooks/00_first.ipynb"
    written(lesson, "2 + 3")
    course.update(folder)
    book = nbformat.read(folder / "00_first.ipynb", 4)
    change(book)
    (folder / "00_first.ipynb").write_text(json.dumps(book))
    assert course.update(folder) == ([], [])
    written(lesson, "2 + 3", "print(5)")
    laid = (["00_first.ipynb"], []) if not changed else ([], ["00_first.new.ipynb"])
    assert names(course.update(folder)) == laid
    assert nbformat.read(folder / (laid[0] or laid[1])[0], 4).cells == nbformat.read(lesson, 4).cells


def test_new_version_is_added_beside_once(folder, package):
    (folder / "00_first.ipynb").write_text("mine")
    assert course.update(folder) == ([], []), "they have changed their copy of this version"
    publish(package, {"00_first.ipynb": "tour 2"})
    course.update(folder)
    (folder / "00_first.new.ipynb").unlink()
    assert course.update(folder) == ([], []), "they have deleted it"
    publish(package, {"00_first.ipynb": "tour 3"})
    assert names(course.update(folder)) == ([], ["00_first.new.ipynb"])
    publish(package, {"00_first.ipynb": "tour 4"})
    assert names(course.update(folder)) == ([], ["00_first.new.ipynb"]), "the existing one is unchanged"
    (folder / "00_first.new.ipynb").write_text("mine too")
    publish(package, {"00_first.ipynb": "tour 5"})
    assert names(course.update(folder)) == ([], ["00_first.new2.ipynb"])
    publish(package, {"00_first.ipynb": "tour 2"})
    assert course.update(folder) == ([], []), "an older package"
    assert content(folder) == FIRST | {
        "00_first.ipynb": "mine",
        "00_first.new.ipynb": "mine too",
        "00_first.new2.ipynb": "tour 5",
    }


@pytest.mark.parametrize("how", ["rename", "delete", "undo"])
def test_taking_the_new_version_leaves_one_file(folder, package, how):
    tour, new = folder / "00_first.ipynb", folder / "00_first.new.ipynb"
    tour.write_text("mine")
    publish(package, {"00_first.ipynb": "tour 2"})
    course.update(folder)
    if how == "rename":
        os.replace(new, tour)
    elif how == "delete":
        tour.unlink()
    else:
        tour.write_text("tour 1")
    assert names(course.update(folder)) == (["00_first.ipynb"] * (how == "undo"), [])
    assert content(folder) == FIRST | {"00_first.ipynb": "tour 2"}


def test_deleted_lesson_is_restored(folder):
    (folder / "00_first.ipynb").unlink()
    (folder / "extra/01_more.ipynb").unlink()
    (folder / "extra").rmdir()
    assert course.update(folder) == ([], []) and content(folder) == FIRST


def test_renumbered_lesson(package, tmp_path):
    folder, old, gone = tmp_path / "c", "05_eager_and_static.ipynb", "06_debugging_graphs.ipynb"
    publish(package, {old: "static 1", gone: "debug 1"})
    course.update(folder)
    for file in (old, gone):
        (folder / file).write_text("mine")
        publish(package, {file: "new"})
    course.update(folder)
    (folder / gone).write_text("new")  # their change is undone
    (folder / "05_eager_and_static-Copy1.ipynb").write_text("new")  # created by them: not one of our names
    for file in (old, gone):
        (package / "_notebooks" / file).unlink()
    publish(package, {"07_eager_and_static.ipynb": "static 2", "08_debugging_graphs.ipynb": "debug 2"})
    now = FIRST | {
        "07_eager_and_static.ipynb": "static 2",
        "08_debugging_graphs.ipynb": "debug 2",
        "05_eager_and_static-Copy1.ipynb": "new",
        old: "mine",
    }
    for _ in range(2):
        assert course.update(folder) == ([], []) and content(folder) == now, (
            "unchanged copies are removed, changed ones kept"
        )


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe\0\0", b"tour 1  00_first.ipynb", None])
def test_without_a_record_files_count_as_changed(folder, package, damage):
    if damage is None:
        (folder / course.RECORD_NAME).unlink()
    else:
        (folder / course.RECORD_NAME).write_bytes(damage)
    publish(package, {"00_first.ipynb": "tour 2"})
    assert names(course.update(folder)) == ([], ["00_first.new.ipynb"])
    assert content(folder) == FIRST | {"00_first.new.ipynb": "tour 2"}


def test_truncated_line_affects_no_other(folder, package):
    with (folder / course.RECORD_NAME).open("a") as file:
        file.write("\n" + "ab" * 20)
    publish(package, {"00_first.ipynb": "tour 2"})
    assert names(course.update(folder)) == (["00_first.ipynb"], [])
    publish(package, {"00_first.ipynb": "tour 3"})
    assert names(course.update(folder)) == (["00_first.ipynb"], [])


needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")


@needs_pipes
def test_pipe_in_place_of_a_lesson_is_not_opened(folder, package):
    """Reading it would wait for a writer."""
    for name in ("00_first.ipynb", "README.md", "extra/01_more.ipynb", "extra/01_more.new.ipynb"):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
    publish(package, {"00_first.ipynb": "tour 2", "extra/01_more.ipynb": "more 2"})
    assert names(course.update(folder)) == ([], ["00_first.new.ipynb", "01_more.new2.ipynb"])
    assert (folder / "00_first.ipynb").is_fifo() and (folder / "00_first.new.ipynb").read_text() == "tour 2"


@needs_pipes
def test_pipe_is_not_listed_as_a_lesson(package, tmp_path, monkeypatch):
    monkeypatch.setenv("MINFLOW_COURSE", str(tmp_path / "c"))
    (tmp_path / "c").mkdir()
    os.mkfifo(tmp_path / "c/00_first.ipynb")
    assert course.find_notebook("00") == package / "_notebooks/00_first.ipynb"


@needs_pipes
def test_pipe_in_place_of_the_record(package, tmp_path):
    (tmp_path / "c").mkdir()
    os.mkfifo(tmp_path / "c" / course.RECORD_NAME)
    with pytest.raises(OSError, match="it is a pipe, not a file"):
        course.update(tmp_path / "c")


# ---- links --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", ["", "zh"])
def test_links_of_the_copy_stay_inside_it(tmp_path, inside):
    """No link leaves the folder either: JupyterLab serves nothing else."""
    folder = tmp_path / "c" / inside
    course.update(tmp_path / "c", inside, in_language(inside or "en", course.source()))
    assert welcome.write(folder)
    count = 0
    for file in sorted(file for file in folder.rglob("*") if file.suffix in (".md", ".ipynb")):
        for link in filter(None, [link.partition("#")[0] for link in links(file)]):
            target = Path(os.path.normpath(file.parent / unquote(link)))
            assert target.is_file() and target.is_relative_to(folder), (file, link)
            count += 1
    assert count > 50
    assert "docs/deployment.md" in links(folder / "12_it_leaves_home.ipynb")
    assert (folder / "docs/custom-operators.md").is_file(), "lesson 14 names it"


@pytest.mark.parametrize(
    ("name", "text", "now"),
    [
        ("notebooks/a.md", "[x](../docs/p.md#part) [y](b.md)", "[x](docs/p.md#part) [y](b.md)"),
        (
            "notebooks/in/c.md",
            "[x](../../docs/p.md), ![p](../../docs/t/q.svg)",
            "[x](../docs/p.md), ![p](../docs/t/q.svg)",
        ),
        ("docs/p.md", "[`f`](../minflow/f.py) and ![picture](x.png)", "`f` and picture"),
        (
            "docs/t/r.md",
            "[a [b]](../p.md)[c](../../notebooks/a.md)[\nd](../../README.md#x)",
            "[a [b]](../p.md)[c](../../a.md)\nd",
        ),
        (
            "docs/p.md",
            "`[x](y.md)`, ``[`](z)``, [w](https://w.org/a.md), [v](#here)\n\n```py\na[0](b)\n```\n",
            "`[x](y.md)`, ``[`](z)``, [w](https://w.org/a.md), [v](#here)\n\n```py\na[0](b)\n```\n",
        ),
    ],
)
def test_links_are_rewritten_for_the_copy(name, text, now):
    known = ["notebooks/a.md", "notebooks/b.md", "notebooks/in/c.md", "docs/p.md", "docs/t/q.svg", "docs/t/r.md"]
    assert course.rewrite_links(text.encode(), name, known).decode() == now
    if name.endswith(".md"):
        known = [*known, (book := name.replace(".md", ".ipynb"))]
        cells = [{"cell_type": "code", "source": ["[x](y.md)"]}, {"cell_type": "markdown", "source": [text]}]
        data = json.dumps({"cells": cells}).encode()
        copy = json.loads(course.rewrite_links(data, book, known))
        code, words = copy["cells"]
        assert code == cells[0] and "".join(words["source"]) == now
        assert copy["metadata"]["language_info"]["version"] == platform.python_version()


def test_documentation_comes_with_the_wheel():
    """Each page is named in pyproject.toml, since docs/site is not shipped."""
    listed = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    shipped = {name: place for name, place in listed["force-include"].items() if name.startswith("docs/")}
    assert all(place == f"minflow/_{name}" for name, place in shipped.items())
    pages = {name for name in course.files() if name.startswith("docs/")}
    assert {name for name in pages if not name.startswith("docs/teaching/")} | {"docs/teaching"} == {*shipped}


def test_only_plain_files_are_touched(folder, package, tmp_path):
    elsewhere = tmp_path / "elsewhere.ipynb"
    (folder / "00_first.ipynb").rename(elsewhere)
    (folder / "00_first.ipynb").symlink_to(elsewhere)
    (folder / "README.md").unlink()
    (folder / "README.md").mkdir()
    publish(package, {"00_first.ipynb": "tour 2", "README.md": "read 2"})
    assert names(course.update(folder)) == ([], ["00_first.new.ipynb", "README.new.md"])
    assert elsewhere.read_text() == "tour 1" and (folder / "README.md").is_dir()


def test_checkpoints_and_hidden_files_are_not_lessons(package, tmp_path):
    publish(package, {".ipynb_checkpoints/00_first-checkpoint.ipynb": "old", ".hidden": "x"})
    course.update(tmp_path / "c")
    assert content(tmp_path / "c") == FIRST and not (tmp_path / "c/.ipynb_checkpoints").exists()
    (tmp_path / "c/.ipynb_checkpoints").mkdir()
    (tmp_path / "c/.ipynb_checkpoints/77_old.ipynb").touch()
    assert course.find_notebook("77") is None


# ---- its folder -----------------------------------------------------------------------------------------------------


def test_the_work_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "Zoë K"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "Zoë K"))
    monkeypatch.delenv("MINFLOW_COURSE", raising=False)
    assert course.work_folder() == tmp_path / "Zoë K" / "minflow-course"
    monkeypatch.setenv("MINFLOW_COURSE", "~/lessons")
    assert course.work_folder() == tmp_path / "Zoë K" / "lessons"
    monkeypatch.chdir(tmp_path)
    assert course.work_folder("here") == tmp_path / "here"
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    assert course.work_folder("../here") == (tmp_path / "here").resolve()


def test_never_inside_a_checkout(tmp_path, monkeypatch):
    top = tmp_path / "checkout"
    publish(top / "minflow", {"00_first.ipynb": "packaged"})
    publish(top, {})
    (top / "notebooks").mkdir()
    (top / "notebooks/00_first.ipynb").write_text("tour 1")
    (top / "pyproject.toml").touch()
    monkeypatch.setattr(course, "PACKAGE", top / "minflow")
    (tmp_path / "link").symlink_to(top)
    for folder in (top, top / "notebooks", top / "new" / "er", tmp_path / "link" / "mine"):
        with pytest.raises(ValueError, match=f"inside the checkout {top}"):
            course.update(folder)
    assert [path.name for path in sorted(top.iterdir())] == ["minflow", "notebooks", "pyproject.toml"]
    course.update(top / ".." / "mine")
    assert content(tmp_path / "mine") == {"00_first.ipynb": "tour 1"}


def test_impossible_folder(package, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError, match="it is a file"):
        course.update(tmp_path / "file")
    with pytest.raises(OSError):
        course.update(tmp_path / "file" / "inside")
    assert (tmp_path / "file").read_text() == "mine"


def test_full_disk_keeps_existing_files(folder, package, monkeypatch):
    publish(package, {"00_first.ipynb": "tour 2"})

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        course.update(folder)
    monkeypatch.undo()
    assert content(folder) == FIRST and not list(folder.glob(".*.tmp"))
    monkeypatch.setattr(course, "PACKAGE", package)
    assert names(course.update(folder)) == (["00_first.ipynb"], [])


# ---- two processes, and a kill --------------------------------------------------------------------------------------

LOOP = """
import sys
from pathlib import Path
from minflow import course
course.PACKAGE = Path(sys.argv[1])
folder = Path(sys.argv[2])
for i in range(int(sys.argv[3])):
    course.update(folder)
    (folder / "00_first.ipynb").unlink(missing_ok=True)
    print("went", flush=True)
"""


def program(package, folder, rounds):
    return subprocess.Popen(
        [sys.executable, "-c", LOOP, str(package), str(folder), str(rounds)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )


def test_two_concurrent_updates(package, tmp_path):
    folder = tmp_path / "c"
    both = [program(package, folder, 30) for _ in range(2)]
    for one in both:
        assert one.communicate(timeout=120)[1] == ""
    course.update(folder)
    assert content(folder) == FIRST


def test_killed_at_any_time(package, tmp_path):
    folder = tmp_path / "c"
    for i in range(6):
        one = program(package, folder, 10_000)
        assert one.stdout.readline() == "went\n"
        time.sleep(0.003 * i)  # at another time in each run
        one.send_signal(signal.SIGKILL)
        one.communicate()
        publish(package, {"00_first.ipynb": f"tour {i}"})
        course.update(folder)
        assert content(folder) == FIRST | {"00_first.ipynb": f"tour {i}"}
        assert not list(folder.glob(".*.tmp"))
