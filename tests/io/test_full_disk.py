"""All writers on a disk that fills up in the middle of a file: the old file stays complete, and the call reports it.

The operating system refuses (RLIMIT_FSIZE) after writing a part, which a raw `file.write` takes for success.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent.parent

PROGRAM = r"""
import contextlib, errno, io, json, os, resource, signal, sys
from pathlib import Path
import numpy as np
import minflow as flow
from minflow import course, nn
from minflow.core.files import atomic
from minflow.exercises import translate, welcome
from minflow.exercises.teach import build, commands, notebook
from minflow.exercises.teach.pages import slides
from minflow.introspection.job.timeline import Displayable
from minflow.platforms.compiled import compile_cache
from minflow.views.show import picture
from minflow_widgets import LossCurve
import minflow_widgets.runs.log as run_log
from tests.deploy.saved import graph
from minflow.deploy import folder as saved_graph

top = Path(sys.argv[1])
os.chdir(top)
big = {"w": flow.ones(5000)}
x = flow.ones(3, 4, requires_grad=True)
model = nn.Linear(40, 40)
curve = LossCurve()
for i in range(400):
    curve.add(loss=1 / (i + 1))

class Timeline(Displayable):
    svg, text = "<svg/>" * 1000, "text " * 1000

def lesson(text):
    return {"cells": [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": text * 1000}], "metadata": {},
            "nbformat": 4, "nbformat_minor": 5}

def raw(path, write):
    with open(path, "wb", buffering=0) as file:
        write(file)

def log(folder):
    writer = run_log.RunFile(Path(folder), "run", {"config": "x" * 2000})
    writer.path = Path(folder) / "run.csv"
    writer.describe()

def quiet(call, *args):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        code = call(*args)
    if code:
        raise RuntimeError(said.getvalue())

WRITERS = {  # name -> what writes into the folder `here`; the second call writes over what the first one wrote
    "flow.save": lambda here: flow.save(big, here / "x.safetensors"),
    "flow.save, a folder": lambda here: flow.save(big, here / "x"),
    "flow.save of a graph": lambda here: saved_graph.write(here / "x", *graph(1)),
    "checkpoint.save": lambda here: flow.checkpoint.save(
        here / f"x{len(os.listdir(here))}", {"w": np.ones(5000, "f4")}),
    "onnx.export": lambda here: flow.onnx.export(model, flow.ones(1, 40), here / "x.onnx"),
    "view.save, svg": lambda here: picture(x * 2).save(here / "x.svg"),
    "view.save, dot": lambda here: picture(x * 2).save(here / "x.dot"),
    "view.save, html": lambda here: picture(x * 2).save(here / "x.html"),
    "view.save, txt": lambda here: picture(model).save(here / "x.txt"),
    "view.save, png": lambda here: picture(flow.rand(1, 3, 40, 40), images=True).save(here / "x.png"),
    "timeline.save": lambda here: Timeline().save(here / "x.svg"),
    "curve.csv": lambda here: curve.csv(here / "x.csv"),
    "a run's log": log,
    "notebook.write": lambda here: notebook.write(here / "x.ipynb", lesson("words ")),
    "grade --out": lambda here: quiet(commands.written, "grade", {here / "x.csv": "a,b\n" * 1000}),
    "slides": lambda here: slides.write("01", here / "x.html", run=False),
    "exercises build": lambda here: build.build("plain", here / "x", ["01"]),
    "translate build": lambda here: translate.build("zh", top / "english", here),
    "the course": lambda here: course.write(here / "x.ipynb", b"{}" * 1000),
    "the welcome page": lambda here: welcome.write(here),
    "compiled kernels": lambda here: (os.environ.update(MINFLOW_KERNELS=str(here)),
                                      compile_cache.save(0, {"a": "b"}, b"code" * 1000, [])),
}
WRITERS = {name: call for name, call in WRITERS.items() if name not in sys.argv[2:]}

def contents(folder):
    return {str(p.relative_to(folder)): (p.read_bytes() if p.is_file() else None, p.lstat().st_mode, p.lstat().st_ino)
            for p in sorted(folder.rglob("*"))}

folders = {name: top / name.replace(" ", "-").replace("/", "-") for name in WRITERS}
for name, call in WRITERS.items():
    folders[name].mkdir()
    if name == "translate build":
        (top / "english").mkdir()
        notebook.write(top / "english" / "a.ipynb", lesson("words "))
    call(folders[name])
    assert any(data and len(data) > 300 for data, *_ in contents(folders[name]).values()), name
before = {name: contents(folder) for name, folder in folders.items()}
new = {name: top / ("new-" + folder.name) for name, folder in folders.items()}
for folder in new.values():
    folder.mkdir()
result = {}
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for limit in (300, 0):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    for name, call in WRITERS.items():
        for there in (folders[name], new[name]):
            try:
                said = f"no error, but {call(there)}"
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            result[f"{name}, {there.name.startswith('new')}, {limit}"] = said
    for name, call in {"flow.save": lambda file: flow.save(big, file),
                       "onnx.export": lambda file: flow.onnx.export(model, flow.ones(1, 40), file)}.items():
        for buffering in (0, -1):
            file = open(top / "stream", "wb", buffering=buffering)
            try:
                call(file)
                said = "no error"
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            with contextlib.suppress(OSError):
                file.close()
            result[f"{name} into a file, {buffering}, {limit}"] = said
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
changed = [name for name, folder in folders.items() if contents(folder) != before[name]]
left = {name: files for name, folder in new.items()
        if (files := [file for file, (data, *_) in contents(folder).items() if data is not None])}
print(json.dumps({"said": result, "changed": changed, "left": left}))
"""
# Kernels are a cache, which can be rebuilt; a learner's page is written again after the next exercise.
SILENT = {"compiled kernels": "no error", "the welcome page": "no error, but None"}

# Writers that do not use `core/files/atomic.py`, and why.
OTHER_WRITERS = {
    "minflow/core/files/atomic.py": "the writer of a file",
    "minflow/io/atomic.py": "the writer of a folder",
    "minflow/core/files/temporary.py": "makes the private folder of a new folder",
    "minflow/deploy/folder.py": "new files in the private folder of a new folder",
    "minflow/job/saving/folder.py": "new files in the private folder of a new folder",
    "minflow/io/file_objects.py": "a copy for reading, in a temporary folder",
    "minflow/data/download.py": "appends to NAME.part, which is renamed after its sha256 was checked",
    "minflow/exercises/record.py": "appends a line to a log; a torn line is skipped",
    "minflow/course.py": "appends a line to a record; a torn line is skipped",
    "widgets/minflow_widgets/runs/log.py": "appends rows to the log of a run, and writes rows again after an error",
    "minflow/platforms/compiled/compile_cache.py": "an archive in memory",
    "minflow/utils/data/channel.py": "memory that is shared with worker processes",
    "minflow/exercises/grading/worker.py": "the standard output of a worker process",
    "minflow/exercises/teach/commands.py": "rows of marks, each written as soon as it is known",
    "minflow/distributed/launch.py": "the standard output of a rank, to which lines are appended",
    "minflow/distributed/processes/board.py": "a file that processes map, and which ends with them",
    "minflow/cli.py": "/dev/null in the place of a closed standard output",
    "minflow/exercises/lessons/l12/all_or_nothing.py": "answers to an exercise about writing files",
}


def test_every_writer_keeps_the_old_file(tmp_path):
    pytest.importorskip("resource")
    without = [] if __import__("importlib").util.find_spec("onnx") else ["onnx.export"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), str(TOP / "widgets")]), "MINFLOW_LIVE": "0"}
    ended = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM, str(tmp_path), *without],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["changed"] == [] and found["left"] == {}
    for name, said in found["said"].items():
        if quiet := SILENT.get(name.partition(",")[0]):
            assert said.startswith(quiet), (name, said)
        else:
            assert "File too large" in said and "Try: " in said, (name, said)


def writes(call):
    """True if a call writes, moves or copies a file."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    words = [*call.args, *[word.value for word in call.keywords]]
    texts = [word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    if name in ("open", "fdopen", "ZipFile"):
        return any(set(text) <= set("rwaxb+t") and set(text) & set("wax+") for text in texts)
    owner = getattr(getattr(call.func, "value", None), "id", "")
    return (
        name
        in (
            "write_text",
            "write_bytes",
            "tofile",
            "savez",
            "savez_compressed",
            "savetxt",
            "save_file",
            "NamedTemporaryFile",
            "mkstemp",
            "copyfile",
            "copytree",
            "copy2",
        )
        or (owner == "os" and name in ("replace", "rename", "link", "truncate"))
        or (owner, name) == ("np", "save")
    )


@pytest.mark.parametrize(
    "text, answer",
    [
        ('open(path, "w")', True),
        ("open(path, mode='ab')", True),
        ('path.open("r+b")', True),
        ("path.write_text(x)", True),
        ("os.replace(a, b)", True),
        ("np.savez(path)", True),
        ("open(path)", False),
        ('open(path, "rb")', False),
        ('text.replace("a", "b")', False),
        ('explorer.open("fc1")', False),
    ],
)
def test_writers_are_found(text, answer):
    assert writes(ast.parse(text).body[0].value) == answer


def test_other_writers_use_the_atomic_writer():
    found = {}
    for file in [*(TOP / "minflow").rglob("*.py"), *(TOP / "widgets").rglob("*.py")]:
        lines = [
            node.lineno
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and writes(node)
        ]
        if lines and file.relative_to(TOP).as_posix() not in OTHER_WRITERS:
            found[file.relative_to(TOP).as_posix()] = lines
    assert not found, "use minflow.core.files.atomic.write, or say why not in OTHER_WRITERS"
