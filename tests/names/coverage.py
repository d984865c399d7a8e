"""`python -m tests.names.coverage`: write docs/coverage.md, the status of OneFlow's and PyTorch's public names.

A name exists, exists with a difference (a row of docs/differences.md is about it), is refused (`refused.py` of the
package suggests an alternative), or is missing. Nothing here needs PyTorch: `collect.py` recorded its names.
"""

from __future__ import annotations

import importlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import minflow
from minflow.compat.refused import RefusedType, hint_of
from minflow.core.messages import unsupported
from minflow.core.messages.suggestions import attribute_hint
from minflow.core.messages.unsupported import IMPORTED_NAMESPACES
from tests.fuzz import differences

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "coverage.md"
LISTS = {"OneFlow 1.0": "oneflow-1.0.tsv", "PyTorch 2.13": "torch.tsv"}
GLOBAL = {"placement": minflow.placement("cpu", [0]), "sbp": minflow.sbp.broadcast}
OBJECTS = {
    "Tensor": minflow.ones(1, **GLOBAL),
    "nn.Module": minflow.nn.Linear(1, 1),
}  # namespaces whose attributes are listed
MOST = 12  # names that a pattern of differences.md may match without being about most names
SHORT = {"nn.functional.": "F.", "nn.init.": "init."}  # spelling of a namespace in docs/differences.md


class Name(NamedTuple):
    page: str
    name: str  # below the root: `nn.Linear`
    status: str  # there | different | refused | missing
    reason: str = ""


def listed(file: str) -> list[tuple[str, str]]:
    """(page, name) of each line, without the root of the library."""
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(page, name.removeprefix("oneflow.")) for page, name in rows]


def kernels() -> list[str]:
    lines = (HERE / "kernels.txt").read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[0] for line in lines if not line.startswith("#")]


def hint_for(name: str) -> str | None:
    """Hint of the error that a program gets for this name, at the latest when it calls it; None if it exists as an
    attribute or as an importable module.
    """
    it, steps = minflow, name.split(".")
    for i, step in enumerate(steps, 1):
        try:
            it = getattr(OBJECTS.get(".".join(steps[: i - 1]), it), step)
        except AttributeError as error:
            try:
                it = importlib.import_module("minflow." + ".".join(steps[:i]))
            except ImportError:
                return getattr(error, "hint", "") or attribute_hint(error)
    return hint_of(name) if isinstance(it, RefusedType) or f"{name}.".startswith(IMPORTED_NAMESPACES) else None


def differing_patterns() -> list[tuple[str, str]]:
    """(pattern of a public name, reason) of the rows about other values or refusals of some names. If minflow accepts
    more, programs do not notice; a row for most names is a general rule.
    """
    names = [short_name(name) for file in LISTS.values() for _, name in listed(file)]
    rows = [(call, row.reason) for row in differences.read() if set(row.kinds) != {"accepted"} for call in row.calls]
    return [
        (call, reason)
        for call, reason in rows
        if "*" not in call or sum(fnmatchcase(name, call) for name in names) <= MOST
    ]


def short_name(name: str) -> str:
    for long, abbreviation in SHORT.items():
        name = name.replace(long, abbreviation)
    return name


def status(page: str, name: str, rows: list[tuple[str, str]]) -> Name:
    if (hint := hint_for(name)) is not None:
        return Name(page, name, "refused", hint) if unsupported.reason(name) else Name(page, name, "missing")
    reasons = [reason for pattern, reason in rows if fnmatchcase(short_name(name), pattern)]
    return Name(page, name, "different", "; ".join(dict.fromkeys(reasons))) if reasons else Name(page, name, "there")


def coverage(library: str) -> list[Name]:
    """Names of one library, without those of its kernels."""
    rows, kernel = differing_patterns(), kernels()
    called = [
        (page, name)
        for page, name in listed(LISTS[library])
        if not any(
            fnmatchcase(text, pattern) for pattern in kernel for text in (name.rpartition(".")[2], f"{page}.{name}")
        )
    ]
    return [status(page, name, rows) for page, name in called]


def counts(names: list[Name]) -> dict[str, int]:
    return {kind: sum(name.status == kind for name in names) for kind in ("there", "different", "refused", "missing")}


def row(cells) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def section(library: str, names: list[Name]) -> list[str]:
    """The totals of each page, then the names of each status."""
    pages = {page: counts([n for n in names if n.page == page]) for page in dict.fromkeys(n.page for n in names)}
    lines = [
        "",
        f"## {library}",
        "",
        row(["page", "available", "with a difference", "refused by name", "missing"]),
        row(["---"] * 5),
    ]
    lines += [row([f"`{page}`", *count.values()]) for page, count in pages.items()]
    lines += [row(["all", *counts(names).values()])]
    for page in pages:
        mine = {kind: [n for n in names if n.page == page and n.status == kind] for kind in counts(names)}
        lines += ["", f"### {library}: `{page}`"]
        for kind, title in (("there", "Available"), ("missing", "Missing")):
            if mine[kind]:
                lines += ["", f"{title}: {', '.join(f'`{n.name}`' for n in mine[kind])}."]
        if mine["different"]:
            lines += ["", row(["with a difference", "why"]), row(["---"] * 2)]
            lines += [row([f"`{n.name}`", n.reason]) for n in mine["different"]]
        if mine["refused"]:
            lines += ["", row(["refused", "why, and what to use"]), row(["---"] * 2)]
            lines += [row([f"`{n.name}`", n.reason]) for n in mine["refused"]]
    return lines


def page(every: dict[str, list[Name]]) -> str:
    lines = [
        "# Coverage of public names",
        "",
        "Public names of OneFlow and PyTorch, and their status in minflow. A name *with a difference* has a row in",
        "[differences.md](differences.md); a name that is *refused* raises an error that says what to use. Names of",
        "PyTorch's internal kernels are left out (`tests/names/kernels.txt`). `python -m tests.names.coverage` writes",
        "this page, and a test compares it with the package.",
        "",
        row(["library", "names", "available", "with a difference", "refused by name", "missing"]),
        row(["---"] * 6),
    ]
    lines += [row([library, len(names), *counts(names).values()]) for library, names in every.items()]
    for library, names in every.items():
        lines += section(library, names)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page({library: coverage(library) for library in LISTS}), encoding="utf-8")
