"""Commands `minflow exercises ...` and `minflow slides`. cli.py parses the arguments."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

from ...core.base.errors import MinflowError, MissingDependencyError
from ...core.base.optional import install_command
from ...core.messages import invocation
from ...diagnosis.name_suggestions import similar_names
from ...io import atomic
from .. import external
from ..grading import sandbox
from ..grading.process import WorkerFailed
from ..i18n import say
from ..registry import UnknownExercise
from . import build as building, exam as exams, grade as grading, notebook as nb, repair as repairing
from .pages import feedback, report as reporting


class MissingPath(MinflowError, FileNotFoundError):
    """A path on the command line does not exist."""


def require_paths(paths: Iterable[str]) -> None:
    """Raise MissingPath for the first path that does not exist."""
    for path in filter(None, paths):
        if not os.path.exists(path):
            folder = os.path.dirname(os.path.abspath(path))
            names = os.listdir(folder) if os.path.isdir(folder) else []
            near = [str(Path(path).with_name(name)) for name in similar_names(os.path.basename(path), names)]
            raise MissingPath(
                say("there is no file or folder {path}", path=nb.printable(path)),
                values={say("absolute path"): os.path.abspath(path)},
                where=say("in the folder {folder}", folder=os.getcwd()),
                hint=", ".join(near) or say("cd to the folder that contains it, or give its whole path"),
            )


def build(options: argparse.Namespace) -> int:
    """Write student and teacher editions."""
    try:
        written = building.build(options.kind, Path(options.folder), options.lesson)
    except (LookupError, OSError, nb.NotebookError) as error:
        return failed("build", error)
    for path in written:
        print(path)
    print(next_step(options.kind, Path(options.folder), written))
    return 0


def next_step(kind: str, folder: Path, written: list[Path]) -> str:
    """Advice for the teacher: the next command, for the first written edition."""
    if kind == "plain":
        return say("Give students the folder student/; in teacher/ the solution is below each stub.")
    notebooks = [path for path in written if path.suffix == ".ipynb"]
    first = notebooks[0].parent.name
    rest = ", ".join(path.parent.name for path in notebooks[1:])
    if kind == "nbgrader":
        lines = [["cd", str(folder)], ["nbgrader", "generate_assignment", first]]
        gives = f"release/{first}"
    else:
        lines, gives = [["otter", "assign", str(notebooks[0]), f"{first}-out"]], f"{first}-out/student"
    advice = say(
        "Next, in a terminal where {program} is installed: {commands}; give out {folder}.",
        program=lines[-1][0],
        commands=say(", then ").join(invocation.line(*words) for words in lines),
        folder=gives,
    )
    return f"{advice} {say('The same for {names}.', names=rest)}" if rest else advice


def grade(options: argparse.Namespace) -> int:
    """Print or write the marks as CSV, each as it is known, and one line per file to stderr."""
    limits = grading.Limits(options.memory, options.seconds, options.seed, options.word, options.trust)
    try:
        require_paths([*options.files, options.release])
    except MissingPath as error:
        return failed("grade", error)
    if others := [path for path in options.files if not path.endswith(".ipynb") and not os.path.isdir(path)]:
        text = say("{path} is not a notebook: name files that end in .ipynb, or folders", path=nb.printable(others[0]))
        return failed("grade", ValueError(text))
    if not nb.notebooks(options.files):
        return failed("grade", FileNotFoundError(say("no notebooks found")))
    try:
        release = exams.read_release(Path(options.release)) if options.release else None
    except nb.NotebookError as error:
        return failed("grade", ValueError(f"{options.release}: {error}"))
    if not options.trust and (problem := sandbox.problem()):
        print(f"minflow exercises grade: {no_sandbox(problem)}", file=sys.stderr)
        return 2
    pages = options.feedback or (options.out and Path(options.out).with_suffix(".feedback"))
    marks = []
    try:
        if options.out:
            Path(options.out).parent.mkdir(parents=True, exist_ok=True)
        with open(options.out, "w", encoding="utf-8", newline="") if options.out else nullcontext(sys.stdout) as out:
            out.write(nb.to_csv([grading.COLUMNS]))
            for mark in grading.grade(options.files, limits, options.jobs, release):
                marks.append(mark)
                out.write(nb.to_csv([mark.row()]))
                out.flush()
                if mark.outcome == "unreadable":
                    print(f"minflow exercises grade: {nb.printable(mark.file)}: {mark.remark}", file=sys.stderr)
        for line in grading.summary(marks):
            print(line, file=sys.stderr)
        if options.out:
            print(options.out)
        if pages:
            print(feedback.write(marks, Path(pages)), file=sys.stdout if options.out else sys.stderr)
    except (OSError, MissingDependencyError, WorkerFailed) as error:
        return failed("grade", error)
    if all(mark.outcome == "unreadable" for mark in marks):
        return failed("grade", ValueError(say("none of the notebooks could be marked")))
    return 0


def no_sandbox(problem: str) -> MinflowError:
    """Error of a system without a sandbox. It says what is at risk, and what to install."""
    packages = "apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora)"
    remedy = f"install bubblewrap: {packages}; or " if problem == sandbox.NOT_INSTALLED else ""
    return MinflowError(
        "answers are programs of others, and without a sandbox they run with your rights",
        values={
            "sandbox": problem,
            "at risk": "your files, keys and network, the other submissions, the solutions, the marks",
        },
        where=f"in {invocation.line('minflow', 'exercises', 'grade')}",
        hint=f"{remedy}grade in a container (docs/teaching/grading.md); or --trust, if you trust all authors",
    )


def repair(options: argparse.Namespace) -> int:
    """Rebuild notebooks, next to the files or in their place."""
    if options.old_name:
        print(f"minflow exercises mend: {say('the command is now named repair')}", file=sys.stderr)
    try:
        require_paths([*options.files, options.release])
    except MissingPath as error:
        return failed("repair", error)
    worst = 0
    for path in nb.notebooks(options.files):
        if path.name.endswith((repairing.SUFFIX, ".mended.ipynb")) and str(path) not in options.files:
            continue
        try:
            release = Path(options.release) if options.release else None
            target, remarks = repairing.repair(
                path, release, path if options.in_place else None, links=str(path) in options.files
            )
        except (nb.NotebookError, LookupError, OSError) as error:
            worst = failed("repair", ValueError(f"{nb.printable(str(path))}: {error}"))
            continue
        print(target)
        for remark in remarks:
            print(f"  {nb.printable(remark)}")
    return worst


def new(options: argparse.Namespace) -> int:
    """Write a new exercise outside the package."""
    from ..authoring import new as authoring

    folders = [Path(options.folder)] if options.folder else external.folders()
    if not folders:
        return failed("new", ValueError(f"name a folder with --exercises FOLDER, or set {external.VARIABLE}"))
    try:
        written = authoring.new(options.name, folders[0], options.lesson)
    except (ValueError, OSError, LookupError) as error:
        return failed("new", error)
    for path in written:
        print(path)
    line = invocation.line("minflow", "exercises", "try", str(written[0]))
    print(f"Change both to your exercise. To prove its check: {line}")
    return 0


def try_exercise(options: argparse.Namespace) -> int:
    """Prove the check of an exercise, or show the card for one answer."""
    from ..authoring import proof
    from ..authoring.new import exercise_named

    try:
        require_paths([options.name if options.name.endswith(".py") else "", options.answer])
        exercise = exercise_named(options.name)
        if options.answer:
            print(proof.answer_card(exercise, Path(options.answer)))
            return 0
    except Exception as error:  # also those of the answer's own code
        return failed("try", error)
    show = sys.stderr.isatty()
    found = proof.prove(exercise, lambda what: print(f"\r{what[:70]:<70}", end="", file=sys.stderr) if show else None)
    print(("\r" if show else "") + proof.report(found))
    return int(bool(found.faults))


def exam(options: argparse.Namespace) -> int:
    """Write the notebooks of an exam; without names, list the plans and the exercises with variants."""
    from ..exam import plans

    if not options.names:
        having, missing = plans.coverage()
        for plan in plans.PLANS.values():
            print(f"{plan.name}: {', '.join(plan.exercises)}")
        print(say("exercises with variants: {names}", names=", ".join(having)))
        print(say("without variants: {names}", names=", ".join(missing) or say("none")))
        return 0
    try:
        files = exams.write(plans.plan_of(options.names), options.seed, Path(options.out))
    except UnknownExercise as error:
        if len(options.names) == 1 and (near := similar_names(options.names[0], plans.PLANS)):
            error.hint = f"did you mean {near[0]}?"
        return failed("exam", error)
    except (LookupError, OSError, nb.NotebookError) as error:
        return failed("exam", error)
    for path in files:
        print(path)
    return 0


def similar(options: argparse.Namespace) -> int:
    """Write the page of similar submissions."""
    from . import similarity

    try:
        require_paths([*options.files, options.release])
        page = similarity.page(options.files, options.release and Path(options.release))
    except (MissingDependencyError, MissingPath, nb.NotebookError, LookupError, OSError) as error:
        return failed("similar", error)
    return written("similar", {Path(options.out): page})


def report(options: argparse.Namespace) -> int:
    """Write the report of a class as CSV and HTML."""
    folder = Path(options.folder)
    try:
        require_paths([options.folder])
        known = reporting.read(folder)
    except OSError as error:
        return failed("report", error)
    if not known.learners:
        text = say("there is no NAME/.progress.jsonl or NAME/progress.jsonl in {folder}", folder=folder)
        return failed("report", FileNotFoundError(text))
    if known.missing:
        print(f"minflow exercises report: {reporting.without_file(known.missing)}", file=sys.stderr)
    return written(
        "report",
        {
            Path(options.csv or folder / "report.csv"): reporting.as_csv(known),
            Path(options.html or folder / "report.html"): reporting.as_html(known),
        },
    )


def slides(options: argparse.Namespace) -> int:
    """Write a lesson as slides."""
    from .pages import slides as showing

    try:
        if os.path.basename(options.lesson) != options.lesson:
            require_paths([options.lesson])
        path = showing.write(options.lesson, options.out and Path(options.out), options.reveal, not options.not_run)
    except ImportError as error:
        print(f"minflow slides: {error}. Try: {install_command('nbconvert')}", file=sys.stderr)
        return 1
    except (nb.NotebookError, LookupError, OSError, RuntimeError) as error:
        return failed("", error)
    print(path)
    return 0


def written(command: str, files: dict[Path, str]) -> int:
    """Write each file atomically and print its path. Returns the exit code."""
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(path, text.encode("utf-8", "replace"))
        except OSError as error:
            return failed(command, error)
        print(path)
    return 0


def failed(command: str, error: Exception) -> int:
    if isinstance(error, UnknownExercise):
        error.where = ""  # a line of the program `minflow`
        error.hint = error.hint.replace("progress()", invocation.command("exercises", "exam"))
    print(f"minflow {f'exercises {command}' if command else 'slides'}: {error}", file=sys.stderr)
    return 1
