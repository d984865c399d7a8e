"""`.ci/run`: its stages match its help and CONTRIBUTING, it prints their times, and finds each Python once."""

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


def bash(program, **settings):
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{program}"],
        env=os.environ | settings,
        timeout=120,
        capture_output=True,
        text=True,
    )


def test_stages_are_documented():
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


@pytest.mark.parametrize(
    "docs, platforms, code, last",
    [
        (
            "SECONDS=155",
            "sleep 0",
            0,
            [
                "lint         0 min 0. s",
                "docs         2 min 3. s",
                "platforms    0 min 0. s",
                r"== all passed: lint docs platforms \(minute 2\)",
            ],
        ),
        ("false", "sleep 60", 1, ["lint         0 min 0. s", "docs failed"]),
        ("true", "false", 1, ["lint         0 min 0. s", "docs         0 min 0. s", "platforms failed"]),
    ],
)
def test_stage_times_are_printed(docs, platforms, code, last, tmp_path):
    """Also if a stage fails. The stage `platforms` runs in parallel and ends last."""
    text = RUN.read_text()
    say = re.search(r"^say\(\) .*$", text, re.MULTILINE)[0]
    done = bash(
        f"SECONDS=0\ncd {tmp_path}\n{say}\nlint() {{ :; }}\ndocs() {{ {docs}; }}\nplatforms() {{ {platforms}; }}\n"
        f"stages=(lint docs platforms)\n{text[text.index('chosen() {') :]}"
    )
    assert done.returncode == code, done.stderr
    assert re.search("\n+".join(last) + "\n*$", done.stdout), done.stdout


def test_each_python_is_listed_once(tmp_path):
    """Under any of its names; failing shims and old versions are left out."""
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
    done = bash(f"uv=false\n{function('interpreters')}\ninterpreters || true", PYENV_ROOT=str(tmp_path))
    found = [line.partition(" ") for line in done.stdout.splitlines()]
    version = ".".join(map(str, sys.version_info[:3]))
    assert (version, " ", os.path.realpath(sys.executable)) in found and done.stderr == ""
    assert len({path for *_, path in found}) == len(found)
    assert {path for *_, path in found} <= {os.path.realpath(sys.executable), os.path.realpath("/usr/bin/python3")}
    numbers = [tuple(map(int, re.findall(r"\d+", version))) for version, *_ in found]
    assert numbers == sorted(numbers) and numbers[0] >= (3, 11)
