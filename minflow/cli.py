"""The command line: `minflow lab | run | doctor`. Start at `main`.

`lab` opens JupyterLab on the course, `run 00` executes one notebook headless and prints what it prints, `doctor`
says what this machine has (its checks are in doctor.py). Nothing here is imported by `import minflow`; Jupyter is
imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
FIRST = "00"


def main(argv: list[str] | None = None) -> int:
    """Run one command. argv: words after the program's name, sys.argv's by default. Returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words.insert(0, "lab")
    options, rest = parser().parse_known_args(words)
    if rest and options.command is not lab:
        parser().error(f"unrecognized arguments: {' '.join(rest)}")
    if options.command is lab:
        options.jupyter = rest
    try:
        return options.command(options)
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="minflow", description="A deep-learning framework that you can see through.")
    top.add_argument("--version", action="version", version=f"minflow {version()}")
    commands = top.add_subparsers(title="commands", metavar="lab | run | doctor", required=True)

    one = commands.add_parser("lab", help="open JupyterLab on the course (the default)",
                              description="Open JupyterLab on the course. Other options go to JupyterLab as they are.")
    one.set_defaults(command=lab)

    one = commands.add_parser("run", help="execute a notebook without a browser and print its outputs as text")
    one.add_argument("notebook", help="its number (00), its name (00_tour) or a path")
    one.add_argument("--timeout", type=seconds, default=600, help="seconds that one cell may take (default 600)")
    one.set_defaults(command=run)

    one = commands.add_parser("doctor", help="say what this machine has, and what to do about what is missing")
    one.set_defaults(command=lambda options: doctor())
    return top


def seconds(text: str) -> float:
    """A length of time, above 0 and finite."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def version() -> str:
    import minflow

    return minflow.__version__


# ---- where the notebooks are ------------------------------------------------------------------------------------

def checkout() -> Path | None:
    """The folder of the repository that this package is run from, or None for an installed package."""
    top = PACKAGE.parent
    return top if (top / "pyproject.toml").is_file() and (top / "notebooks").is_dir() else None


def copy_notebooks(target: Path) -> list[Path]:
    """Copy the packaged course to `target`; a file that is already there stays as it is. Returns the files kept that
    differ from the packaged ones."""
    kept = []
    source = PACKAGE / "_notebooks"
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        to = target / file.relative_to(source)
        if not to.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to)
        elif to.read_bytes() != file.read_bytes():
            kept.append(to)
    return kept


def find_notebook(name: str) -> Path | None:
    """`00`, `00_tour`, `00_tour.ipynb` or a path -> the file. Looks here, in ./minflow-notebooks, in the checkout, in
    the package, and takes the first that is there."""
    path = Path(name)
    if path.suffix == ".ipynb" and os.path.isfile(path):
        return path
    top = checkout()
    folders = [Path.cwd() / "minflow-notebooks", *([top / "notebooks"] if top else []), PACKAGE / "_notebooks"]
    stem = re.escape(path.name.removesuffix(".ipynb"))
    for folder in folders:
        result = [file for file in sorted(folder.rglob("*.ipynb"))
                 if re.match(rf"{stem}(_|\.ipynb$)", file.name) and ".ipynb_checkpoints" not in file.parts]
        if result:
            return result[0]
    return None


# ---- the commands -----------------------------------------------------------------------------------------------

def one_blas_thread() -> None:
    """Let kernels of the course multiply on one thread, unless the user has said how many.

    A class shares its machine: where the cores are taken, BLAS threads wait for one another at each product, and the
    tour took 280 s in place of 24.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def lab(options: argparse.Namespace) -> int:
    """Open JupyterLab in the folder of the notebooks, on the first one."""
    one_blas_thread()
    top = checkout()
    folder = top / "notebooks" if top else Path.cwd() / "minflow-notebooks"
    if top is None:
        kept = copy_notebooks(folder)
        print(f"The course is in {folder}")
        if kept:
            print(f"Kept as you left them: {', '.join(path.name for path in kept)} (delete one to get a fresh copy)")
    try:
        from jupyterlab.labapp import LabApp
    except ImportError as error:
        print(f"minflow lab: JupyterLab cannot be imported ({error}). Try: pip install jupyterlab", file=sys.stderr)
        return 1
    first = sorted(folder.glob(f"{FIRST}_*.ipynb"))
    words = [*(str(path) for path in first[:1]), f"--ServerApp.root_dir={folder}", *options.jupyter]
    # The server refuses to start for root, and in a container one often is root: the one command has to work there.
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in words:
        words.append("--allow-root")
    LabApp.launch_instance(argv=words)
    return 0


def run(options: argparse.Namespace) -> int:
    """Execute a notebook cell by cell in its own folder; print its headings and outputs as they come."""
    one_blas_thread()
    path = find_notebook(options.notebook)
    if path is None:
        print(f"minflow run: there is no notebook {options.notebook!r}. Here are:", file=sys.stderr)
        top = checkout()
        for file in sorted((top / "notebooks" if top else PACKAGE / "_notebooks").glob("*.ipynb")):
            print(f"  {file.stem}", file=sys.stderr)
        return 1
    try:
        from minflow.headless import execute
    except ImportError as error:
        print(f"minflow run: nbclient cannot be imported ({error}). Try: pip install jupyterlab", file=sys.stderr)
        return 1
    return execute(path, options.timeout)


def doctor() -> int:
    """Print one line per thing that matters; exit code 1 if something that is needed does not work."""
    from minflow.doctor import checks

    ok = True
    for state, name, text in checks():
        print(f"{state:<8} {name:<10} {text}")
        ok = ok and state != "broken"
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
