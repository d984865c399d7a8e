"""The learner's copy of the course: install it in their folder and update it without touching their changes.

Unchanged files are replaced. A changed lesson stays, and its new version is written beside it, once, as
`02_downhill.new.ipynb`; a deleted lesson is written again. The old copy of a renumbered lesson is removed unless it was
changed. A record in the folder has the checksum of every file ever installed, one per line. It is only appended to, so
that concurrent or killed programs lose nothing.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import posixpath
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from .io import atomic
from .io.files import open_regular

PACKAGE = Path(__file__).resolve().parent
RECORD_NAME = ".minflow-course"
# As the kernel of this Python tells it.
LANGUAGE_INFO = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
    "version": sys.version.split()[0],
}
RENAMED_LESSONS = {
    "00_tour": "R1_from_2_plus_3_to_the_kernel",
    "05_eager_and_static": "07_eager_and_static",
    "06_debugging_graphs": "08_debugging_graphs",
    "08_job_functions": "10_job_functions",
    "09_async": "11_without_waiting",
}  # old name -> new name; for one version
# A link to another file of the repository, or code, in which nothing is replaced.
LINK_OR_CODE = re.compile(
    r"^```.*?^```|(`+)(?!`).+?(?<!`)\1(?!`)|(?P<sign>!?)\[(?P<text>(?:[^][]|\[[^][]*\])*)\]"
    r"\((?P<path>[^()\s#:]+)(?P<anchor>#[^()\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)


def checkout() -> Path | None:
    """Root of the repository that contains this package, or None if the package is installed."""
    top = PACKAGE.parent
    return top if (top / "pyproject.toml").is_file() and (top / "notebooks").is_dir() else None


def source() -> Path:
    """Folder of the original notebooks: in the repository or in the installed package."""
    top = checkout()
    return top / "notebooks" if top else PACKAGE / "_notebooks"


def files() -> dict[str, Path]:
    """Files to copy for a learner: lessons, reading tours and pages of the documentation.

    The keys are paths in the repository, such as "notebooks/02_downhill.ipynb"; links in files are relative to them.
    """
    docs = source().with_name("docs" if checkout() else "_docs")
    result = {}
    for name, top in (("notebooks", source()), ("docs", docs)):
        for file in sorted(file for file in top.rglob("*") if file.is_file() and is_visible(file, top)):
            if (name == "notebooks" and file.suffix != ".po") or file.suffix in (".md", ".svg"):  # .po: translations
                result[f"{name}/{file.relative_to(top).as_posix()}"] = file
    return result


def learner_path(name: str) -> str:
    """Path in the learner's folder of a file of the repository."""
    return name.removeprefix("notebooks/")


def lessons() -> list[Path]:
    """The course's notebooks in order: lessons, then reading tours."""
    top = source()
    return sorted(file for file in top.rglob("*.ipynb") if is_visible(file, top))


def work_folder(named: str | None = None) -> Path:
    """Folder of the learner's copy: `named`, else `$MINFLOW_COURSE`, else `~/minflow-course`.

    Raises RuntimeError if the home folder is unknown.
    """
    folder = Path(named or os.environ.get("MINFLOW_COURSE") or "~/minflow-course").expanduser().absolute()
    return Path(os.path.realpath(folder)) if ".." in folder.parts else folder


def find_notebook(name: str) -> Path | None:
    """Find a notebook by `02`, `02_downhill`, `02_downhill.ipynb`, `R1` or a path, first among the learner's copies."""
    path = Path(name)
    if path.suffix == ".ipynb" and os.path.isfile(path):
        return path
    lesson = re.compile(rf"{re.escape(path.name.removesuffix('.ipynb'))}(_.*)?\.ipynb")
    try:
        folders = [work_folder(), source()]
    except RuntimeError:  # the home folder is unknown
        folders = [source()]
    found = [
        file
        for folder in folders
        for file in sorted(folder.rglob("*.ipynb"))
        if lesson.fullmatch(file.name) and is_visible(file, folder) and file.is_file()
    ]
    return min(
        found, key=lambda file: file.stem in RENAMED_LESSONS, default=None
    )  # old copies last: another lesson has their number now


def renamed_to(name: str) -> str | None:
    """Current name of a lesson that was renamed, from its old number, name or path (`05`, `05_eager_and_static`)."""
    asked = Path(name).name.removesuffix(".ipynb")
    return next((new for old, new in RENAMED_LESSONS.items() if asked in (old, old[:2])), None)


def is_visible(file: Path, folder: Path) -> bool:
    """True if no part of the path is hidden, as Jupyter's checkpoints are."""
    return not any(part.startswith(".") for part in file.relative_to(folder).parts)


def update(
    folder: Path,
    inside: str = "",
    content: Callable[[Path, bytes], bytes] = lambda file, data: data,
    others: Iterable[Path] = (),
) -> tuple[list[Path], list[Path]]:
    """Install the course in `folder`, or update it.

    inside: subfolder for the lessons; all languages share one record and one progress file.
    content: `content(file, data)` returns the bytes to write for a file: the lesson in another language.
    others: lessons to add to those of the course, such as a teacher's own.
    Returns the replaced files, and the new versions written beside changed files.
    Raises OSError, or ValueError if the folder is inside the checkout.
    """
    check_location(folder)
    folder.mkdir(parents=True, exist_ok=True)
    replaced, new_versions = [], []
    top, known = source(), files() | {f"notebooks/{file.name}": file for file in others}
    for old in RENAMED_LESSONS:
        path = folder / inside / f"{old}.ipynb"
        for file in [path, *itertools.takewhile(os.path.lexists, sibling_paths(path))]:
            if not (top / path.name).exists() and checksum_at(file) in recorded_checksums(folder):
                remove(file)
    for name, file in known.items():
        path, data = folder / inside / learner_path(name), rewrite_links(content(file, file.read_bytes()), name, known)
        current, released, installed = checksum_at(path), checksum(path, data), recorded_checksums(folder)
        if current is None or (current != released and current in installed):
            path.parent.mkdir(parents=True, exist_ok=True)
            record_checksum(folder, released, path)  # first: a written but unrecorded file would count as changed
            write(path, data)
            replaced += [path] * (current is not None)
        elif current == released and released not in installed:
            record_checksum(folder, released, path)
        elif current != released and released not in installed:
            other = next(place for place in sibling_paths(path) if checksum_at(place) in (None, released, *installed))
            write(other, data)
            record_checksum(folder, released, other)  # last: a recorded version is not written beside again
            new_versions.append(other)
        if checksum_at(path) == released:
            for other in itertools.takewhile(os.path.lexists, sibling_paths(path)):
                if checksum_at(other) in (released, *installed):  # it is unchanged, and superseded
                    remove(other)
    return replaced, new_versions


def rewrite_links(data: bytes, name: str, known: Collection[str]) -> bytes:
    """Rewrite the links of a page or notebook for the learner's folder; complete the metadata of a notebook.

    A link to a file that is not copied, such as minflow's source, becomes plain text. With another language_info than
    that of the kernel, JupyterLab would mark the notebook as changed as soon as it is opened.
    """
    home, mine = posixpath.dirname(name), posixpath.dirname(learner_path(name))

    def new(match: re.Match) -> str:
        text, path, anchor = match["text"], match["path"], match["anchor"] or ""
        if path is None:
            return match[0]
        target = posixpath.normpath(posixpath.join(home, path))
        if target not in known:
            return text
        link = posixpath.relpath(learner_path(target), mine or ".")
        return f"{match['sign']}[{text}]({link}{anchor})"

    if name.endswith(".md"):
        return LINK_OR_CODE.sub(new, data.decode()).encode()
    if not name.endswith(".ipynb"):
        return data
    try:
        book = json.loads(data)
        cells = [cell for cell in book["cells"] if cell["cell_type"] == "markdown"]
        before = ["".join(cell["source"]) for cell in cells]
    except (ValueError, LookupError, TypeError, RecursionError):  # not a notebook: it has no links
        return data
    after = [LINK_OR_CODE.sub(new, text) for text in before]
    for cell, text in zip(cells, after):
        cell["source"] = text.splitlines(keepends=True)
    book.setdefault("metadata", {})["language_info"] = LANGUAGE_INFO
    return (json.dumps(book, indent=1, ensure_ascii=False) + "\n").encode()


def check_location(folder: Path) -> None:
    """Raise if the course cannot be in `folder`. In the checkout, git would see the files, and pulls would conflict."""
    top, folder = checkout(), Path(os.path.realpath(folder))
    if top and any(place.exists() and place.samefile(top) for place in (folder, *folder.parents)):
        raise ValueError(f"it is inside the checkout {top}, where git would see your files")
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError("it is a file")


def unwritable(place: Path) -> Path | None:
    """The folder or file that prevents writing into the folder `place`, or None if writing is possible."""
    there = next(part for part in (place, *place.parents) if os.path.exists(part))
    return None if there.is_dir() and os.access(there, os.W_OK | os.X_OK) else there


def checksum(path: Path, data: bytes) -> str:
    """SHA-256 of a file. For notebooks only cells and outputs count, since Jupyter rewrites the rest on opening."""
    if path.suffix == ".ipynb":
        try:
            cells = [
                [
                    cell["cell_type"],
                    "".join(cell["source"]),
                    cell.get("outputs") or None,
                    cell.get("attachments"),
                    cell["metadata"].get("tags"),
                ]
                for cell in json.loads(data)["cells"]
            ]
            data = json.dumps(cells, sort_keys=True).encode()
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
        ):  # not a notebook: every byte counts
            pass
    return hashlib.sha256(data).hexdigest()


def checksum_at(path: Path) -> str | None:
    """Checksum of the file at `path`; None if nothing is there, "" if it is not a readable plain file (left alone)."""
    if not os.path.lexists(path):
        return None
    try:
        return "" if path.is_symlink() else checksum(path, read_plain_file(path))
    except OSError:
        return ""


def read_plain_file(path: Path) -> bytes:
    """Contents of a plain file. Raises OSError for anything else: reading a pipe would block."""
    with open_regular(path) as file:
        return file.read()


def recorded_checksums(folder: Path) -> set[str]:
    """Checksums of all files that were ever installed in the folder."""
    try:
        data = read_plain_file(folder / RECORD_NAME)
    except FileNotFoundError:
        return set()
    return set(re.findall(r"^([0-9a-f]{64}) ", data.decode(errors="replace"), re.MULTILINE))


def record_checksum(folder: Path, digest: str, path: Path) -> None:
    """Append the checksum of a file to the record of the folder."""
    with open(folder / RECORD_NAME, "a", encoding="utf-8") as file:
        file.write(
            f"\n{digest}  {path.relative_to(folder).as_posix()}"
        )  # the newline first: a line torn by a kill spoils no other


def remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def write(path: Path, data: bytes) -> None:
    atomic.write(path, data)


def sibling_paths(path: Path) -> Iterator[Path]:
    """Yield `02_downhill.new.ipynb`, `02_downhill.new2.ipynb`, ..."""
    yield path.with_name(f"{path.stem}.new{path.suffix}")
    for i in itertools.count(2):
        yield path.with_name(f"{path.stem}.new{i}{path.suffix}")
