"""Resolve what a learner and the tests install, for other systems and Pythons: `python -m tests.resolve_dependencies`.

Nothing is installed: uv asks the index which wheels there are. Wheels alone count, since a learner has no compiler.
`.ci/run platforms` runs it. Read next: `test_packaging.py`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOP = Path(__file__).parent.parent
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())
NAME = PROJECT["project"]["name"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]

PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
SYSTEMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "aarch64-pc-windows-msvc",
)  # the newest macOS that uv assumes is 13
# Has no wheel there, and is built without a compiler.
BUILT = {("aarch64-pc-windows-msvc", "3.11"): "pyyaml"}


def requirements_of(*extras: str) -> list[str]:
    """The requirements of the core and these extras, with those of the extras that they include."""
    return [*PROJECT["project"]["dependencies"], *(text for extra in extras for text in expanded(EXTRAS[extra]))]


def group_of(name: str) -> list[str]:
    """The requirements of a dependency group and of the core."""
    return [*PROJECT["project"]["dependencies"], *expanded(GROUPS[name])]


def expanded(requirements: list) -> Iterator[str]:
    """Requirements, with the extras of this project and the groups among them replaced by theirs."""
    for text in requirements:
        if isinstance(text, dict):
            yield from expanded(GROUPS[text["include-group"]])
        elif inner := re.fullmatch(rf"{NAME}\[([\w,]+)\]", text):
            for extra in inner[1].split(","):
                yield from expanded(EXTRAS[extra])
        else:
            yield text


def uv() -> str:
    """The program that the README's command installs, else the one on PATH."""
    found = shutil.which("uv", path=os.pathsep.join([str(TOP / ".tools/bin"), os.environ["PATH"]]))
    if found is None:
        raise FileNotFoundError("run the README's first command: it installs uv into .tools")
    return found


def locked() -> list[str]:
    """Packages of the README's two commands: the versions that uv chooses for all systems at once, with markers."""
    with tempfile.TemporaryDirectory() as folder:  # where no older choice is kept
        for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "minflow/core/base/__init__.py"):
            place = Path(folder, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, place)
        words = ["export", "--quiet", "--no-hashes", "--no-emit-project", "--no-header", "--no-annotate"]
        done = subprocess.run(
            [uv(), *words, "--group", "test", "--project", folder],
            stdout=subprocess.PIPE,
            text=True,
            timeout=600,
            check=True,
        )
    return done.stdout.splitlines()


def failure(requirements: list[str], system: str, python: str, *options: str) -> str:
    """Why these cannot be installed there from wheels; empty if they can."""
    built = BUILT.get((system, python))
    lines = [line for line in requirements if not built or not re.match(rf"{built}\b", line)]
    done = subprocess.run(
        [
            uv(),
            "pip",
            "compile",
            "--quiet",
            "--no-header",
            "--only-binary",
            ":all:",
            "--python-platform",
            system,
            "--python-version",
            python,
            *options,
            "-",
        ],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=300,
    )
    return "" if done.returncode == 0 else done.stderr.strip()


def main() -> int:
    """Print a line for each case, and uv's reason for each that cannot be installed; 1 if there is one."""
    versions = locked()
    cases = [(versions, system, python, "--no-deps") for system in SYSTEMS for python in PYTHONS]
    with ThreadPoolExecutor(4) as pool:
        reasons = list(pool.map(lambda case: failure(*case), cases))
    for (_, system, python, _), reason in zip(cases, reasons):
        print(f"{system:<26} {python} {reason or 'ok'}")
    failed = sum(map(bool, reasons))
    print(f"{len(cases) - failed} of {len(cases)} can be installed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
