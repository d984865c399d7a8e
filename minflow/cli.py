"""The command line: `minflow lab | run | launch | doctor | onnx | exercises | slides`. Start at `main`.

`lab` opens JupyterLab on the learner's copy of the course (see course.py), `run 00` executes one notebook without a
browser and prints its outputs, `doctor` reports what is installed (doctor.py), `onnx` writes a saved graph as an ONNX
file, `exercises` and `slides` are tools for teachers (exercises/teach). `import minflow` imports none of this; Jupyter
is imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from . import course
from .core.base.optional import install_command, without_grammars
from .core.messages.invocation import command

PACKAGE = Path(__file__).resolve().parent
VERSION = ("-v", "-V", "--version")
SETTINGS_FOLDER = ".jupyter"  # in the learner's folder: Jupyter's own files, if the home folder is read-only


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code. argv: the arguments after the program name (default: sys.argv[1:])."""
    typed = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a Windows console cannot encode every character of a path or a tape
            stream.reconfigure(errors="backslashreplace")
    if typed[:1] == ["launch"]:
        from minflow.distributed.launch import main as launch

        return launch(typed[1:])
    start = not typed or (typed[0].startswith("-") and typed[0] not in ("-h", "--help", *VERSION))
    options, rest = parser().parse_known_args(["lab", *typed] if start else typed)
    if rest and options.command is not lab:
        options.parser.reject(rest)
    if options.command is lab:
        options.jupyter, options.typed = rest, typed
    if folder := getattr(options, "exercises", None):
        from .exercises import external

        if not Path(folder).is_dir():
            parser().error(f"there is no folder {folder!r} with exercises")
        external.add_folder(Path(folder))
    try:
        return options.command(options)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `minflow run 00 | head`: the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


class Parser(argparse.ArgumentParser):
    """Parser of a command, which its options name as `parser`: an error shows the usage of that command."""

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.set_defaults(parser=self)

    def reject(self, unknown: list[str]) -> NoReturn:
        """End with an error about arguments that the command does not have, and the options they resemble."""
        from .diagnosis.name_suggestions import similar_names

        known = [name for action in self._actions for name in action.option_strings]
        near = [
            name for word in unknown if word[0:1] == "-" for name in similar_names(word.partition("=")[0], known, 1)
        ]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="minflow",
        description="A deep-learning framework that you can see through.",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # do not wrap commands
        epilog=f"From this folder, for example: {command('run', '00')}",
    )
    top.add_argument(*VERSION, action="version", version=f"minflow {version()}")
    commands = top.add_subparsers(
        title="commands", metavar="lab | run | launch | doctor | onnx | exercises | slides | warmup", required=True
    )

    text = "open JupyterLab on your copy of the course"
    sub = commands.add_parser(
        "lab",
        help=f"{text} (the default)",
        allow_abbrev=False,
        description=f"{text}, which is created or updated first. Other options go to JupyterLab.",
    )
    sub.add_argument("--folder", help="where your copy is (default: $MINFLOW_COURSE, else ~/minflow-course)")
    sub.add_argument(
        "--lang",
        type=language,
        help="the language of lessons and checks: en or zh (default: "
        "$MINFLOW_LANG, else en); lessons in zh are in the folder zh of your copy",
    )
    add_exercises_option(sub)
    sub.set_defaults(command=lab)

    sub = commands.add_parser("run", help="execute a notebook without a browser and print its outputs as text")
    sub.add_argument("notebook", help="its number (00), its name (07_eager_and_static) or a path")
    sub.add_argument("--timeout", type=positive, default=600, help="seconds that one cell may take (default 600)")
    sub.add_argument(
        "--here",
        action="store_true",
        help="in the notebook's own folder, not in a temporary one: it reads or writes files there",
    )
    add_exercises_option(sub)
    sub.set_defaults(command=run)

    commands.add_parser("launch", help="run a program on several ranks: minflow launch -n 4 program.py")

    sub = commands.add_parser("doctor", help="check the installation and say what to do about missing parts")
    sub.set_defaults(command=lambda options: doctor())

    sub = commands.add_parser("onnx", help="write a graph that flow.save wrote as an ONNX file")
    sub.add_argument("folder", help="the folder of the saved graph")
    sub.add_argument("file", help="the file to write, such as model.onnx")
    sub.set_defaults(command=onnx)

    sub = commands.add_parser(
        "exercises", help="for teachers: editions of lessons, marks, a report, your own exercises"
    )
    add_exercise_commands(
        sub.add_subparsers(
            title="commands",
            metavar="build | grade | repair | exam | similar | report | new | try | translate",
            required=True,
        )
    )

    sub = commands.add_parser("slides", help="write a lesson as slides: one page that needs no network")
    sub.add_argument("lesson", help="its number (05), its name or a path")
    sub.add_argument(
        "--out", help="the file to write (default: 05_NAME.slides.html here, in Chinese 05_NAME.zh.slides.html)"
    )
    sub.add_argument(
        "--reveal",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="write reveal.js slides with nbconvert; reveal.js is loaded from ADDRESS (default: the network)",
    )
    sub.add_argument("--not-run", action="store_true", help="do not run the lesson: show code without results")
    add_exercises_option(sub)
    add_language(sub)
    sub.set_defaults(command=teacher_command("slides"))

    sub = commands.add_parser(
        "warmup", help="compile the kernels for this processor ahead of use, for instance in a container image"
    )
    sub.set_defaults(command=lambda options: warmup())
    return top


def add_exercises_option(command: argparse.ArgumentParser) -> None:
    text = "folder of exercises and lessons that are not the course's (default: $MINFLOW_EXERCISES)"
    command.add_argument("--exercises", metavar="FOLDER", help=text)


def language(text: str) -> str:
    """Argparse type: a language that has translations, or "en"."""
    from minflow.exercises.i18n import language_code, languages

    if language_code(text) not in ("en", *languages()):
        raise argparse.ArgumentTypeError(f"must be en or {', '.join(languages())}, got {text!r}")
    return language_code(text)


def add_language(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--lang", type=language, help="en or zh (default: $MINFLOW_LANG, else en)")


def add_exercise_commands(commands: Any) -> None:
    sub = commands.add_parser("build", help="write student and teacher editions of lessons with exercises")
    sub.add_argument("--for", dest="kind", choices=("plain", "nbgrader", "otter"), default="plain", help="format")
    sub.add_argument("folder", help="the folder to write into")
    sub.add_argument("--lesson", nargs="+", action="extend", default=[], metavar="02", help="only these lessons")
    add_exercises_option(sub)
    add_language(sub)
    sub.set_defaults(command=teacher_command("build"))

    sub = commands.add_parser(
        "grade",
        help="mark answers, each in a sandbox, and write a CSV file",
        description="Each answer runs in a sandbox (Linux with bubblewrap): with limits of time and memory, without "
        "network, your files and the solutions.",
    )
    sub.add_argument("files", nargs="+", help="notebooks, or folders of them")
    sub.add_argument("--out", help="the file to write (default: print)")
    sub.add_argument(
        "--release", help="the notebook that was given out, or the teacher's one of an exam (default: the lesson)"
    )
    sub.add_argument(
        "--feedback", metavar="FOLDER", help="write a page per student into it (default: with --out, MARKS.feedback)"
    )
    sub.add_argument("--seed", type=int, default=0, help="seed of the cases (default 0)")
    sub.add_argument(
        "--word",
        default="",
        help="word of the class, as in MINFLOW_WORD: it selects the questions of some exercises (default: none)",
    )
    sub.add_argument(
        "--memory", type=positive, default=2.0, metavar="GB", help="limit for one answer (default 2; Linux only)"
    )
    sub.add_argument(
        "--seconds", type=positive, help="limit for one answer (default: set by its exercise, at least 60)"
    )
    sub.add_argument("--jobs", type=count, help="answers graded in parallel (default: one per core)")
    sub.add_argument(
        "--trust", action="store_true", help="run answers with your rights, where there is no sandbox (bubblewrap)"
    )
    add_exercises_option(sub)
    add_language(sub)
    sub.set_defaults(command=teacher_command("grade"))

    text = "rebuild a notebook whose cells were copied, split or deleted"
    for name, shown in (("repair", {"help": text}), ("mend", {})):  # the old name works for one version
        sub = commands.add_parser(name, **shown)
        sub.add_argument("files", nargs="+", help="notebooks, or folders of them")
        sub.add_argument("--release", help="the notebook that was given out (default: the course's own)")
        sub.add_argument(
            "--in-place", action="store_true", help="replace the file (default: write NAME.repaired.ipynb)"
        )
        add_exercises_option(sub)
        add_language(sub)
        sub.set_defaults(command=teacher_command("repair"), old_name=name == "mend")

    text = "write a definition of a new exercise, and its cells, as a beginning that already works"
    sub = commands.add_parser("new", help=text, description=text)
    sub.add_argument("name", help="its name in Python, such as mean_error")
    sub.add_argument(
        "--exercises",
        dest="folder",
        metavar="FOLDER",
        help="folder to write into, made if it does not exist (default: $MINFLOW_EXERCISES)",
    )
    sub.add_argument("--lesson", default="17", metavar="17", help="its lesson, from 17 on (default 17)")
    add_language(sub)
    sub.set_defaults(command=teacher_command("new"))

    text = "try the check of an exercise with all answers of its definition, and with mutants of its solution"
    sub = commands.add_parser("try", help=text, description=text)
    sub.add_argument("name", help="its name, or the file that defines it")
    sub.add_argument("--answer", metavar="FILE", help="show the card for the answer in this file instead")
    add_exercises_option(sub)
    add_language(sub)
    sub.set_defaults(command=teacher_command("try_exercise"))

    sub = commands.add_parser(
        "exam", help="write an exam: notebooks for students and, with solutions and rubric, for you"
    )
    sub.add_argument("names", nargs="*", help="midterm, final, or names of exercises (default: list what there is)")
    sub.add_argument("--seed", type=int, default=0, help="selects the variants (default 0); keep it to yourself")
    sub.add_argument("--out", default="exam", help="the folder to write into (default: exam)")
    add_language(sub)
    sub.set_defaults(command=teacher_command("exam"))

    sub = commands.add_parser("similar", help="write a page of submissions whose answers have much in common")
    sub.add_argument("files", nargs="+", help="notebooks, or folders of them")
    sub.add_argument(
        "--release", help="the notebook that was given out, or the teacher's one of an exam (default: the lesson)"
    )
    sub.add_argument("--out", default="similar.html", help="the page to write (default: similar.html)")
    add_language(sub)
    sub.set_defaults(command=teacher_command("similar"))

    sub = commands.add_parser("report", help="write a table of a class from the files NAME/progress.jsonl in a folder")
    sub.add_argument("folder", help="folder that contains one folder per learner")
    sub.add_argument("--csv", help="the file to write (default: report.csv in the folder)")
    sub.add_argument("--html", help="the page to write (default: report.html in the folder)")
    add_exercises_option(sub)
    add_language(sub)
    sub.set_defaults(command=teacher_command("report"))

    sub = commands.add_parser("translate", help="bring translations up to date, check them, build lessons from them")
    task = sub.add_mutually_exclusive_group(required=True)
    task.add_argument(
        "--update",
        nargs="+",
        metavar=("LANGUAGE", "PAGE"),
        help="write new and changed texts into the "
        "PO files, of all pages or of those named, such as 02_downhill, l02, checker",
    )
    task.add_argument("--check", nargs="+", metavar=("LANGUAGE", "PAGE"), help="list what remains to be translated")
    task.add_argument("--build", nargs=2, metavar=("LANGUAGE", "FOLDER"), help="write the lessons into a folder")
    sub.set_defaults(command=translate)


def teacher_command(name: str) -> Callable[[argparse.Namespace], int]:
    """A command of exercises/teach, imported when it is called."""

    def command(options: argparse.Namespace) -> int:
        one_blas_thread()
        if options.lang:
            os.environ["MINFLOW_LANG"] = options.lang
        from .exercises.teach import commands

        return getattr(commands, name)(options)

    return command


def positive(text: str) -> float:
    """Argparse type: a positive, finite number."""
    with suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")


def count(text: str) -> int:
    """Argparse type: a whole number from 1."""
    with suppress(ValueError):
        if int(text) > 0:
            return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, got {text!r}")


def version() -> str:
    import minflow

    return minflow.__version__


# ---- the commands -----------------------------------------------------------------------------------------------


def one_blas_thread() -> None:
    """Limit BLAS in kernels of the course to one thread, unless the user has set a number.

    Classes often share one computer. On busy cores, BLAS threads wait for each other at each product: the tour took
    280 s instead of 24 s.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def lab(options: argparse.Namespace) -> int:
    """Open JupyterLab in the learner's folder, at the page that lists the lessons."""
    from .exercises import external, i18n as texts, welcome
    from .exercises.translate import notebook

    one_blas_thread()
    if options.lang:
        os.environ["MINFLOW_LANG"] = options.lang  # inherited by the kernels that the server starts
    try:
        top = course.work_folder(options.folder)
    except RuntimeError as error:
        return report_setup_error("your home folder", error)
    ensure_home(top)
    try:
        with without_grammars():
            from jupyter_client.manager import KernelManager
            from jupyter_server import serverapp
            from jupyterlab.labapp import LabApp
    except ImportError as error:
        print(
            f"minflow lab: JupyterLab cannot be imported ({error}). Try: {install_command('jupyterlab')}",
            file=sys.stderr,
        )
        return 1
    if wrong := unknown_option(options.jupyter, [*LabApp.flags, *LabApp.aliases, *serverapp.flags, *serverapp.aliases]):
        print(
            f"minflow lab: there is no option {wrong}\nTry: {command('lab', '--help')} for those of minflow, "
            f"{command('lab', '--help-all')} for those of JupyterLab",
            file=sys.stderr,
        )
        return 2
    inside = texts.language().removeprefix("en")
    try:
        ours = [path for path in course.lessons() if path.parent == course.source()]
        others = [path for path in external.notebooks(ours).values() if path not in ours]
        content = notebook.in_language(inside or "en", course.source())
        replaced, new_versions = course.update(top, inside, content, others)
    except (OSError, ValueError, external.DefinitionError) as error:
        return report_setup_error(top, error)
    folder = top / inside
    print(f"Your copy of the course is in {folder}")
    if replaced:
        print(f"Updated: {', '.join(path.name for path in replaced)}")
    if new_versions:
        print(
            f"New versions of files you have changed are beside yours: {', '.join(path.name for path in new_versions)}"
        )
    if closed := redirect_settings(top):
        print(f"You cannot write to {', '.join(closed)}, so Jupyter's own files are in {top / SETTINGS_FOLDER}")
    print(
        "JupyterLab opens in your browser; if it does not, copy the address below into one.\n"
        "Leave this window open while you work. To end: Ctrl-C here, then y and Enter.\n"
        f"To start again on another day: {command(*options.typed)}",
        flush=True,
    )
    # Settings for this start only: the user's own are not written, and take precedence.
    paths = [os.environ.get("JUPYTER_CONFIG_PATH", ""), str(PACKAGE / "_jupyter")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    os.environ.setdefault(
        "PYDEVD_DISABLE_FILE_VALIDATION", "1"
    )  # otherwise some kernel versions warn about the debugger
    words = [f"--ServerApp.root_dir={folder}", "--ServerApp.log_level=ERROR", "--LabApp.log_level=ERROR"]
    if not any(
        word.startswith("--LabApp.default_url") for word in options.jupyter
    ):  # the printed address contains it too
        pages = filter(None, [welcome.write(folder), *course.lessons()])
        words.append(f"--LabApp.default_url=/lab/tree/{next(pages).name}")
    if hasattr(KernelManager, "transport_encryption"):  # otherwise each kernel warns that its traffic is not encrypted
        words.append("--KernelManager.transport_encryption=auto")
    words += options.jupyter
    # The server refuses to run as root; in a container the user often is root, and the command must work there too.
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in words:
        words.append("--allow-root")
    LabApp.launch_instance(argv=words)
    return 0


def report_setup_error(place: object, error: Exception) -> int:
    print(
        f"minflow lab: the course cannot be copied to {place}: {error}\n"
        f"Try: {command('lab', '--folder', 'PLACE')}, or set MINFLOW_COURSE, to a folder that you may write to",
        file=sys.stderr,
    )
    return 1


def unknown_option(words: list[str], known: list[Any]) -> str | None:
    """The first option that JupyterLab does not have, or None. (Its own answer is 60 lines of usage.).

    known: the names of its options, each a string or a tuple of strings.
    """
    there = {"h", "help", "help-all", "version"}
    for names in known:
        there |= {names} if isinstance(names, str) else {*names}
    options = ((word, word.lstrip("-").partition("=")[0]) for word in words if word.startswith("-"))
    return next((word for word, name in options if "." not in name and name not in there), None)


def ensure_home(top: Path) -> None:
    """Set HOME if it is unknown, as for a nameless user in a container: Jupyter's modules raise without one."""
    if os.path.expanduser("~") == "~":
        os.environ["HOME"] = str(top / SETTINGS_FOLDER)


def redirect_settings(top: Path) -> list[str]:
    """Redirect the files of Jupyter and its kernels to `top` if the home folder is read-only.

    JupyterLab would end in a traceback otherwise, and Matplotlib would warn. Returns the read-only folders.
    """
    from jupyter_core import paths

    home = Path("~").expanduser()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    places = {
        "JUPYTER_CONFIG_DIR": paths.jupyter_config_dir(),
        "JUPYTER_DATA_DIR": paths.jupyter_data_dir(),
        "JUPYTER_RUNTIME_DIR": paths.jupyter_runtime_dir(),
        "IPYTHONDIR": os.environ.get("IPYTHONDIR") or home / ".ipython",
        "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR")
        or (config / "matplotlib" if sys.platform == "linux" else home / ".matplotlib"),
    }
    closed = {name: str(folder) for name, place in places.items() if (folder := course.unwritable(Path(place)))}
    for name in closed:
        place = top / SETTINGS_FOLDER / name.lower()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)  # IPython requires an existing folder
        os.environ[name] = str(place)
    return list(dict.fromkeys(closed.values()))


def run(options: argparse.Namespace) -> int:
    """Execute a notebook cell by cell, and print its headings and outputs as they arrive."""
    one_blas_thread()
    path, new = course.find_notebook(options.notebook), course.renamed_to(options.notebook)
    if new and not (path and options.notebook == "00"):  # no notice for 00: newcomers run the first lesson
        print(f"minflow run: what was {options.notebook} is now {new}: {command('run', new[:2])}", file=sys.stderr)
    if path is None:
        print(f"minflow run: there is no notebook {options.notebook!r}. Here are:", file=sys.stderr)
        for file in course.lessons():
            print(f"  {file.stem}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="minflow-home-", ignore_cleanup_errors=True) as home:
        ensure_home(Path(home))
        try:
            with without_grammars():
                from minflow.run_notebook import execute
        except ImportError as error:
            print(
                f"minflow run: nbclient cannot be imported ({error}). Try: {install_command('nbclient')}",
                file=sys.stderr,
            )
            return 1
        redirect_settings(Path(home))
        return execute(path, options.timeout, options.here)


def doctor() -> int:
    """Print one line per check, then what to do next. Returns 1 if something that is needed does not work."""
    from minflow.doctor import checks, next_step

    lines = []
    for line in checks():
        print("{:<8} {:<10} {}".format(*line), flush=True)
        lines.append(line)
    print(f"\n{next_step(lines)}")
    return int(any(state == "broken" for state, name, text in lines))


def warmup() -> int:
    """Compile all kernels ahead of use, so that no learner waits for them."""
    from .core.base.errors import MissingDependencyError
    from .platforms import compiled

    try:
        print(f"ready after {compiled.warmup():.1f} s: large arrays and graphs use them")
    except MissingDependencyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def translate(options: argparse.Namespace) -> int:
    """Update or check translations, or build lessons from them."""
    from minflow.exercises.translate import command

    task = next(task for task in ("update", "check", "build") if getattr(options, task))
    language, *rest = getattr(options, task)
    return command(task, language, course.source(), rest)


def onnx(options: argparse.Namespace) -> int:
    """Write a saved graph as an ONNX file, with the dynamic axes it was saved with."""
    import minflow as flow

    try:
        graph = flow.load_graph(options.folder)
        flow.onnx.export(graph, None, options.file)
    except flow.MinflowError as error:
        error.where = ""  # a command has no source line to point at
        print(f"minflow onnx: {error}", file=sys.stderr)
        return 1
    print(f"{options.file}: {graph.name}, {Path(options.file).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
