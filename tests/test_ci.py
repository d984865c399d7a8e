"""`.ci/run`: its stages are those that it and CONTRIBUTING name, and it finds each Python once."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
RUN = TOP / ".ci" / "run"
pytestmark = pytest.mark.skipif(shutil.which("bash") is None or not RUN.exists(), reason=".ci/run is a program of bash")


def function(name):
    return re.search(rf"^{name}\(\) \{{\n.*?^\}}$", RUN.read_text(), re.MULTILINE | re.DOTALL)[0]


def test_its_stages_are_named_everywhere():
    text = RUN.read_text()
    stages = re.search(r"`\.ci/run ([\w|]+)`", text)[1].split("|")
    assert re.findall(r"^#   (\w+) ", text, re.MULTILINE) == stages
    assert re.search(r"^all=\(([\w ]+)\)$", text, re.MULTILINE)[1].split() == stages
    assert all(function(stage) for stage in stages)
    said = (TOP / "CONTRIBUTING.md").read_text().partition("\n\n")[2].partition("\n\n")[0]
    assert [stage for stage in stages if f"`{stage}`" not in said.replace(".ci/run ", "")] == []
    done = subprocess.run(["bash", str(RUN), "lint", "nowhere"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert "no stage nowhere" in done.stderr and f"[{' '.join(stages)}]" in done.stderr


def test_each_python_is_found_once(tmp_path):
    """Whatever names it has; a shim that fails and one that is too old are left out."""
    for name, text in {
        "mine": f'exec {sys.executable} "$@"',
        "again": f'exec {sys.executable} "$@"',
        "broken": "echo 'pyenv: command not found' >&2; exit 127",
        "older": "exit 0",
    }.items():
        file = tmp_path / "versions" / name / "bin" / "python"
        file.parent.mkdir(parents=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    program = f"set -euo pipefail\nuv=false\n{function('interpreters')}\ninterpreters || true"
    done = subprocess.run(["bash", "-c", program], env=os.environ | {"PYENV_ROOT": str(tmp_path)}, capture_output=True,
                          text=True, timeout=120)
    found = [line.partition(" ") for line in done.stdout.splitlines()]
    version = ".".join(map(str, sys.version_info[:3]))
    assert (version, " ", os.path.realpath(sys.executable)) in found and done.stderr == ""
    assert len({path for *_, path in found}) == len(found)
    assert {path for *_, path in found} <= {os.path.realpath(sys.executable), os.path.realpath("/usr/bin/python3")}
    numbers = [tuple(map(int, re.findall(r"\d+", version))) for version, *_ in found]
    assert numbers == sorted(numbers) and numbers[0] >= (3, 11)
