"""`minflow exercises repair`: rebuild a notebook whose cells were copied, split or deleted.

All cells come from the release; only the answers come from the learner's file, so nothing else in it can break marking.
Code that is left out is listed, and a file that is replaced is kept beside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...io import atomic
from ..i18n import say
from . import nbgrader, notebook as nb

SUFFIX = ".repaired.ipynb"
ORIGINAL = ".original"  # not a notebook's ending: it would be marked as another submission
SHOWN = 70  # characters of a cell that a remark quotes


def repair(
    path: Path, release: Path | None = None, target: Path | None = None, links: bool = True
) -> tuple[Path, list[str]]:
    """Write the release with the learner's answers. Returns (written file, remarks).

    release: the released notebook; by default the course's in the language of the command, with nbgrader's metadata if
    the file has it.
    target: file to write; by default NAME.repaired.ipynb next to the file. If it is the file itself and code is left
    out, the file is kept as NAME.ipynb.original. links: False if the file must not be a link.
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
    nb.require_release(notebook, whole)
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
    missing = [f"{say('left out:')} {source.strip().splitlines()[0][:SHOWN]}" for source in left_out(notebook, new)]
    if missing and target == path:
        kept = path.with_name(path.name + ORIGINAL)
        if os.path.lexists(kept):
            raise nb.NotebookError(say("{name} exists: rename or delete it first", name=kept.name))
        atomic.write(kept, nb.content(path, links))
        missing.append(say("the file with these cells is kept as {name}", name=kept.name))
    nb.write(target, {**whole, "cells": new})
    return target, remarks + missing


def left_out(notebook: dict[str, Any], new: list[dict[str, Any]]) -> Iterator[str]:
    """Sources of the learner's code cells that the new cells lack: own ones, and changed ones that bind new names."""
    ids = {name for cell in new for name in nb.cell_ids(cell)}
    names = nb.names_of({"cells": new})
    for cell in notebook["cells"]:
        source = cell["source"].strip()
        if cell.get("cell_type") != "code" or not source or any(source in other["source"] for other in new):
            continue
        if ids.isdisjoint(nb.cell_ids(cell)) or not nb.bound_names(source) <= names:
            yield source
