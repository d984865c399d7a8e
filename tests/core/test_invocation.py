"""The command named in hints and pages starts minflow from the current folder, however it was installed."""

import ast
import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from minflow.core.messages import invocation
from minflow.core.messages.invocation import command

TOP = Path(__file__).parents[2]
PROGRAM = "minflow.exe" if os.name == "nt" else "minflow"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="paths and quotes of a POSIX shell")


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nprintf '%s\\n' \"ran $0 $*\"\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A process outside any environment, in a folder `here`, with only `bin` on its PATH."""
    for name in ("UV", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "argv", ["x"])
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sysconfig, "get_path", lambda name, scheme: str(Path(sys.prefix, "bin")))
    environment(monkeypatch, tmp_path / "nowhere")
    return tmp_path


def environment(monkeypatch, prefix):
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "executable", str(prefix / "bin/python3"))


def test_uv_project(machine, monkeypatch):
    """As in the README: uv is in .tools, which is not on the PATH."""
    project = machine / "my project"
    environment(monkeypatch, project / ".venv")
    program(project / ".venv/bin" / PROGRAM)
    (project / "pyproject.toml").touch()
    monkeypatch.setenv("UV", str(program(project / ".tools/bin/uv")))
    monkeypatch.setenv(
        "PATH", str(project / ".venv/bin"), prepend=os.pathsep
    )  # as `uv run` sets it: not the user's environment
    monkeypatch.chdir(project)
    assert command() == ".tools/bin/uv run minflow"
    assert command("run", "00") == ".tools/bin/uv run minflow run 00"
    (project / "docs").mkdir()
    monkeypatch.chdir(project / "docs")
    assert command() == "../.tools/bin/uv run minflow"
    monkeypatch.chdir(machine)
    assert command() == f'"my project/.venv/bin/{PROGRAM}"'
    monkeypatch.chdir(machine / "here")
    (machine / "here/pyproject.toml").touch()  # uv would run that one
    assert command("doctor") == f'"../my project/.venv/bin/{PROGRAM}" doctor'


def test_nested_project(machine, monkeypatch):
    environment(monkeypatch, machine / ".venv")
    (machine / "pyproject.toml").touch()
    (machine / "here/pyproject.toml").touch()
    program(machine / ".venv/bin" / PROGRAM)
    monkeypatch.setenv("UV", str(program(machine / "bin/uv")))
    assert command() == f"../.venv/bin/{PROGRAM}"
    monkeypatch.chdir(machine)
    assert command() == "uv run minflow", "PATH finds this uv"
    monkeypatch.setenv("UV", str(program(machine / "other/uv")))
    assert command() == "other/uv run minflow", "PATH finds another uv"


def test_pip_environment(machine, monkeypatch):
    environment(monkeypatch, machine / "env")
    program(machine / "env/bin" / PROGRAM)
    assert command("lab") == f"../env/bin/{PROGRAM} lab"
    monkeypatch.setenv("PATH", str(machine / "env/bin"))  # activated
    assert command("lab") == "minflow lab"
    monkeypatch.setenv("PATH", str(program(machine / "bin" / PROGRAM).parent))
    assert command("lab") == f"../env/bin/{PROGRAM} lab", "PATH finds the program of another environment"
    monkeypatch.chdir("/")
    assert command("lab") == f"{machine}/env/bin/{PROGRAM} lab".removeprefix("/"), "a path from here"


def test_inherited_uv_variables(machine, monkeypatch):
    """In a terminal of a JupyterLab started by uv, the environment's own program is not uv's."""
    environment(monkeypatch, machine / "env")
    program(machine / "env/bin" / PROGRAM)
    monkeypatch.setenv("UV", str(program(machine / "bin/uv")))
    assert command() == f"../env/bin/{PROGRAM}"


def test_uv_tool(machine, monkeypatch):
    """`uv tool install` puts a link on the PATH."""
    environment(monkeypatch, machine / "share/uv/tools/minflow")
    target = program(machine / "share/uv/tools/minflow/bin" / PROGRAM)
    (machine / "bin").mkdir()
    (machine / "bin" / PROGRAM).symlink_to(target)
    assert command("doctor") == "minflow doctor"


@pytest.mark.parametrize(
    ("url", "extras", "given"),
    [
        ("file:///WHERE/dist/minflow%201.whl", [], '"../dist/minflow 1.whl"'),
        ("file:///WHERE/dist/x.whl", ["notebook", "fast"], '"../dist/x.whl[notebook,fast]"'),
        (None, [], "NAME"),
        (None, ["notebook"], '"NAME[notebook]"'),
        ("https://x.org/minflow", [], '"NAME @ git+https://x.org/minflow@abc"'),
    ],
)
def test_uvx(machine, monkeypatch, url, extras, given):
    cache = machine / "cache/uv"
    environment(monkeypatch, cache / "archive-v0/xYz")
    program(cache / "archive-v0/xYz/bin" / PROGRAM)
    (cache / "CACHEDIR.TAG").touch()
    program(machine / "bin/uvx")
    monkeypatch.setenv("UV", str(program(machine / "bin/uv")))
    source = {"url": url and url.replace("/WHERE", str(machine))}
    if url and url.startswith("https"):
        source["vcs_info"] = {"vcs": "git", "commit_id": "abc"}

    class Metadata(dict):
        get_all = dict.get

    class Distribution:
        metadata = Metadata({"Provides-Extra": ["notebook", "fast", "all"]})
        requires = [
            "numpy>=2",
            'jupyterlab>=4.2; extra == "notebook"',
            "numba; extra == 'fast' and os_name != 'x'",
            f"{invocation.DISTRIBUTION}[notebook,fast]; extra == 'all'",
        ]

        def read_text(self, name):
            return json.dumps(source) if url else None

    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Distribution())
    there = {"jupyterlab": "notebook", "numba": "fast"}
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: [1] if there[name] in extras else [])
    assert command("run", "00") == f"uvx --from {given.replace('NAME', invocation.DISTRIBUTION)} minflow run 00"


def test_missing_entry_point(machine, monkeypatch):
    """From a checkout on PYTHONPATH, for example."""
    environment(monkeypatch, machine / "env")
    program(machine / "env/bin/python3")
    assert command("doctor") == "../env/bin/python3 -m minflow doctor"
    monkeypatch.setenv("PATH", str(machine / "env/bin"))
    assert command("doctor") == "python3 -m minflow doctor"


def test_entry_point_outside_the_path(machine, monkeypatch):
    path = program(machine / "elsewhere/bin" / PROGRAM)
    monkeypatch.setattr(sys, "argv", [str(path), "doctor"])
    assert command("doctor") == f"../elsewhere/bin/{PROGRAM} doctor"


def test_deleted_working_directory(machine, monkeypatch):
    environment(monkeypatch, machine / "env")
    program(machine / "env/bin" / PROGRAM)
    (machine / "here").rmdir()
    assert command() == str(machine / "env/bin" / PROGRAM)


@pytest.mark.parametrize("name", ["a b", "it's", "$x", "é", 'a"b', "a`b", "a!b", "a;b", "a\\b"])
def test_named_command_runs(machine, monkeypatch, name):
    environment(monkeypatch, machine / name)
    path = program(machine / name / "bin" / PROGRAM)
    done = subprocess.run(["/bin/sh", "-c", command("--folder", name)], capture_output=True, text=True)
    assert done.stdout == f"ran {os.path.relpath(path)} --folder {name}\n", done.stderr
    assert shlex.split(command(name))[1:] == [name]


def test_powershell_command(monkeypatch):
    monkeypatch.setattr(os, "name", "nt")
    assert invocation.line(r".venv\Scripts\minflow.exe", "lab") == r".venv\Scripts\minflow.exe lab"
    assert invocation.line(r"C:\my files\uv.exe", "run") == r'& "C:\my files\uv.exe" run'


def test_texts_do_not_hard_code_commands():
    """`Try: minflow doctor` is "command not found" for most users. A command at the start of a text, as in "minflow
    run: there is no notebook", only says which command prints it; docstrings are for readers of the source.
    """
    named = re.compile(r"\bminflow (?:lab|run|doctor|warmup|onnx|exercises|slides)\b(?! of )")
    perhaps = re.compile(r"\bminflow (?:[\"']|lab|run|doctor|warmup|onnx|exercises|slides)")  # or a string continues
    speaks = re.compile(r"(?:minflow \w+(?: \w+)?: |minflow exercises $)")
    found = []
    for file in sorted([*(TOP / "minflow").rglob("*.py"), *(TOP / "widgets").rglob("*.py")]):
        text = file.read_text(encoding="utf-8")
        if not perhaps.search(text):
            continue
        tree = ast.parse(text)
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        found += [
            (file.name, node.lineno, node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
            and named.search(node.value)
            and not speaks.match(node.value)
        ]
    assert found == []


def test_this_process():
    """End to end: the named command runs this package from here."""
    words = shlex.split(command("--version"))
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    import minflow

    assert done.stdout.strip() == f"minflow {minflow.__version__}", (words, done.stderr)
