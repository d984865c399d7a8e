"""Test widgets and views in other front ends: `python tests/browser/matrix.py --scratch FOLDER`.

Creates a virtual environment for each row of FRONTS in the scratch folder (or reuses it), runs the tests of
tests/widgets and tests/browser in it, through a browser, and writes docs/front-ends.md. Not part of pytest or .ci/run:
it downloads some hundred MB and takes half an hour, or less with `--jobs 3` on enough cores.
"""

import argparse
import datetime
import os
import subprocess
import sys
import tomllib
import venv
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOP = Path(__file__).parent.parent.parent
FRONTS = {  # name -> (packages, MINFLOW_FRONT, packages whose versions are printed)
    "JupyterLab 4.4, ipykernel 6": (["jupyterlab==4.4.*", "ipykernel<7"], "lab", "jupyterlab"),
    "JupyterLab, ipykernel 7": (["jupyterlab", "ipykernel>=7"], "lab", "jupyterlab"),
    "Notebook 7, ipykernel 7": (["notebook>=7", "ipykernel>=7"], "notebook", "notebook"),
}
TESTS = {  # column -> files
    "Python side": ["tests/widgets"],
    "curves": ["tests/browser/test_curves.py"],
    "timeline": ["tests/browser/test_timeline_lab.py"],
    "explorer": ["tests/browser/test_explorer_lab.py"],
    "cards, trees": ["tests/browser/test_cards.py"],
    "tensors, figures": ["tests/browser/test_tensors.py"],
    "hostile names": ["tests/browser/test_hostile.py"],
    "untrusted, themes, reload": ["tests/browser/test_states.py"],
}
TOLD = "ipykernel", "ipywidgets", "anywidget"
HEAD = """# Front ends

`tests/browser/matrix.py` tests the live widgets and pictures in these front ends: each test opens a notebook in a headless
Chromium, runs it, and asserts on what is drawn. A cell shows the number of tests that passed, of those that ran.

"""


def packages() -> list[str]:
    """Return the requirements of minflow and its tests, without a front end."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    needed = project["project"]["dependencies"] + project["dependency-groups"]["test"]
    return [name for name in needed if not name.startswith("jupyterlab")]


def environment(folder: Path, wanted: list[str]) -> Path:
    """Return the Python of a virtual environment with these packages."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages(), *wanted], check=True
    )
    return python


def version(python: Path, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def run(python: Path, front: str, files: list[str], report: Path) -> None:
    """Run the tests; pytest writes the report, if it gets that far."""
    report.unlink(missing_ok=True)
    inside = {
        "MINFLOW_FRONT": front,
        "MINFLOW_BROWSER": "required",
        "MINFLOW_SHOTS": str(report.with_suffix("")),
        "PYTHONPATH": os.pathsep.join([str(TOP), str(TOP / "widgets")]),
    }
    subprocess.run(
        [
            python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "browser or not browser",
            f"--junitxml={report}",
            *files,
        ],
        cwd=TOP,
        env={**os.environ, **inside},
    )


def told(report: Path, files: list[str]) -> tuple[str, list[str]]:
    """Return (cell of the table, names of the failed tests)."""
    if not report.exists():
        return "did not run", files
    cases = list(ET.parse(report).iter("testcase"))
    ran = [case for case in cases if case.find("skipped") is None]
    failed = [
        case.get("name", "?") for case in ran if case.find("failure") is not None or case.find("error") is not None
    ]
    return f"{len(ran) - len(failed)} of {len(ran)}" + (" **failed**" if failed else ""), failed


def row(scratch: Path, name: str, again: str) -> tuple[list[str], list[str]]:
    """Return (cells of a front end's row, a note for each failed test). again: the columns to run, if not all."""
    wanted, front, package = FRONTS[name]
    folder = scratch / "".join(c if c.isalnum() else "-" for c in name)
    python = environment(folder, wanted)
    cells = [
        ", ".join(
            [
                f"{name.split(',')[0].split(' ')[0]} {version(python, package)}",
                *[f"{p} {version(python, p)}" for p in TOLD],
            ]
        )
    ]
    notes = []
    for column, files in TESTS.items():
        report = folder / f"{column.split(',')[0].replace(' ', '-')}.xml"
        if again in column:
            run(python, front, files, report)
        cell, failed = told(report, files)
        cells.append(cell)
        notes += [f"- {name}: `{test}` failed" for test in failed]
    return cells, notes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scratch", type=Path, required=True, help="a folder for the environments")
    parser.add_argument(
        "--only", default="", help="the front ends whose name has this in it; the table is printed, not written"
    )
    parser.add_argument("--jobs", type=int, default=1, help="front ends that are tested at the same time")
    parser.add_argument(
        "--again", default="", help="the columns that are run, by a part of their name; the others stay as they are"
    )
    asked = parser.parse_args()
    asked.scratch.mkdir(parents=True, exist_ok=True)
    names = [name for name in FRONTS if asked.only in name]
    with ThreadPoolExecutor(asked.jobs) as pool:
        done = list(pool.map(lambda name: row(asked.scratch.resolve(), name, asked.again), names))
    rows, notes = [cells for cells, _ in done], [note for _, notes in done for note in notes]
    lines = ["| front end | " + " | ".join(TESTS) + " |", "|---" * (len(TESTS) + 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += [
        "",
        f"Date: {datetime.date.today().isoformat()}, Python {sys.version_info.major}.{sys.version_info.minor}.",
    ]
    text = HEAD + "\n".join(lines + (["", *notes] if notes else [])) + "\n"
    print(text)
    if not asked.only:
        page = TOP / "docs/front-ends.md"
        rest = page.read_text(encoding="utf-8").partition("\n## ")  # sections below the table, written by hand
        page.write_text(text + "".join(rest[1:]), encoding="utf-8")
    return 1 if notes else 0


if __name__ == "__main__":
    sys.exit(main())
