"""`minflow exercises repair`: rebuild a notebook whose cells were copied, split or deleted.

All cells come from the release; only the answers come from the learner's file, so nothing else in it can break marking.
"""

from __future__ import annotations

from pathlib import Path

from . import nbgrader, notebook as nb

SUFFIX = ".repaired.ipynb"


def repair(
    path: Path, release: Path | None = None, target: Path | None = None, links: bool = True
) -> tuple[Path, list[str]]:
    """Write the release with the learner's answers. Returns (written file, remarks).

    release: the released notebook; by default the course's in the language of the command, with nbgrader's metadata if
    the file has it.
    target: file to write; by default NAME.repaired.ipynb next to the file. links: False if the file must not be a link.
    Raises NotebookError, OSError.
    """
    notebook = nb.read(path, links)
    if release is None:
        lesson = nb.lesson_of(notebook, path)
        whole = nb.read_release(nb.releases([lesson])[lesson])
        if nbgrader.is_release(notebook):
            whole = nbgrader.add_metadata(whole)
    else:
        whole = nb.read(release)
    known, remarks, new = nb.exercise_cells(whole), [], []
    for cell in whole["cells"]:
        exercise, part = next((known[name] for name in nb.cell_ids(cell) if name in known), (None, ""))
        if exercise and part == "answer":
            source, remark = nb.find_answer(notebook, exercise)
            cell = {**cell, "source": source or cell["source"]}
            remarks += [f"{exercise.name}: {remark}"] if remark else []
        new.append(cell)
    target = target or path.with_name(path.stem + SUFFIX)
    if target != path and target.is_symlink():  # a learner may have made it
        raise nb.NotebookError(f"{target.name} is a link")
    nb.write(target, {**whole, "cells": new})
    return target, remarks
