"""Hostile submissions, marked in one run: each has its own lines in the marks, and none changes another's mark, ends
the run, earns points, reads or writes anything outside its sandbox.
"""

import csv
import json
import os
import re
import socket
from pathlib import Path

import pytest

from minflow import cli
from minflow.exercises.registry import find
from minflow.exercises.teach import notebook as nb
from tests.exercises.teach.sandboxes import needs_sandbox
from tests.exercises.teach.small_course import EXERCISES, RIGHT, WRONG, answered

SLOPE = RIGHT["slope"]
SECONDS = 20  # limit of one answer: those that hang take so long

# Attempts, one per line: those of a group run in one answer, and none may work.
ATTEMPTS = {
    "reading": """
open({secret!r}).read()  # reads a file of the teacher
assert os.listdir({folder!r})  # lists the folder of the teacher
assert open({neighbor!r}).read()  # reads another submission
os.listdir('/home')  # lists homes
assert [name for name in os.listdir('/root') if name[0] != '.']  # lists the home of root
assert open('/etc/passwd').read()  # reads passwords
os.environ['SECRET_OF_THE_TEACHER']  # reads the environment of the teacher
assert 'SECRET' in open(f'/proc/{{os.getppid()}}/environ').read()  # reads the environment of its parent
assert [name for name in os.listdir('/proc') if name.isdigit() and int(name) > 2]  # sees other processes
from minflow.exercises.registry import find; find('slope').right  # reads the solution by its name
import minflow.exercises.lessons.l02.slope  # imports the solution
assert glob.glob(PACKAGE + '/exercises/lessons/*/*')  # reads the source of the solution
assert glob.glob(PACKAGE + '/exercises/inside/*.py')  # reads the solutions of the tours
assert glob.glob(os.path.dirname(PACKAGE) + '/[nt]*/*')  # reads tests and notebooks
assert [one for one in gc.get_objects() if repr(one).startswith('<function slope') and 'lessons' in one.__module__]
assert [frame for frame in all_frames() if 'expected' in frame.f_locals]  # finds expected results in frames
assert sys.modules['minflow.exercises.judge'].__dict__['exercise']  # finds the judge
""",
    "writing": """
open({secret!r}, 'w')  # empties a file
os.open({secret!r}[1:], os.O_WRONLY | os.O_TRUNC, dir_fd=os.open('/', os.O_RDONLY))  # empties a file by dir_fd
sqlite3.connect({secret!r}).execute('create table a (b)')  # empties a file by sqlite3
assert ctypes.CDLL(None).unlink({secret!r}.encode()) == 0  # removes a file by ctypes
import shutil; shutil.rmtree({folder!r})  # removes a folder
open(PACKAGE + '/sitecustomize.py', 'w').write('x')  # writes into the package
open(os.path.dirname(os.path.dirname(numpy.__file__)) + '/a.pth', 'w').write('x')  # writes into the packages
open({marks!r}, 'a').write('all right')  # writes marks
os.chmod('/dev/null', 0)  # changes a device
assert ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0  # mounts
assert ctypes.CDLL(None).unshare(0x10000000) == 0  # leaves by a new namespace
os.setuid(0)  # becomes root
""",
    "other processes": """
subprocess.run('true')  # starts a program
os.posix_spawn('/usr/bin/true', ['true'], {{}})  # starts a program by posix_spawn
multiprocessing.util.spawnv_passfds(b'/usr/bin/true', ['true'], [])  # starts a program by spawnv_passfds
assert os.fork() >= 0  # forks
assert ctypes.CDLL(None).fork() >= 0  # forks by ctypes
assert os.getppid() != 1; resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))  # limits its parent by prlimit
assert os.getppid() != 1; signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)  # kills its parent by pidfd
os.kill({process}, signal.SIGKILL)  # kills the teacher's process
assert ctypes.CDLL(None).ptrace(16, {process}, 0, 0) == 0  # traces another process
""",
    "network and sockets": """
socket.create_connection(('192.0.2.1', 80), 1)  # connects to the network
socket.create_connection(('127.0.0.1', {port}), 1)  # connects to this machine
socket.socket(socket.AF_UNIX).connect({socket!r})  # connects to a socket of the teacher
socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')  # connects to docker
socket.socket(40)  # connects to the virtual machine
""",
    "memory and floods": """
data = bytearray(4_000_000_000)  # takes memory
data = mmap.mmap(-1, 4_000_000_000); data[0] = 1  # takes shared memory
for i in range(2): open(str(i), 'wb').write(bytes(40_000_000))  # takes memory in files
os.memfd_create('x')  # takes memory by memfd
for i in range(2000): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()  # starts 2,000 threads
files = [open('a', 'w') for i in range(2000)]  # opens 2,000 files
""",
}
# Answers that do something else than answer: those of the file, and cells that Python cannot read. None is right.
ANSWERS = dict(
    part.split("\n", 1)
    for part in re.split(r"^# %% ", (Path(__file__).parent / "hostile.txt").read_text("utf-8"), flags=re.MULTILINE)[1:]
) | {
    "too long": "slope = 3\n" + "# long\n" * 20_000,
    "deep syntax": "slope = " + "-" * 90_000 + "1",
    "many constants": "slope = [" + "1," * 45_000 + "]",
    "null bytes": "slope = 3\0",
    "lone surrogates": "slope = '\ud800'",
}
HEAD = (
    "import ctypes, gc, glob, mmap, multiprocessing.util, os, resource, signal, socket, sqlite3, subprocess, sys, "
    "threading, time, types, minflow, numpy\n"
)
TOOLS = '''
PACKAGE = os.path.dirname(minflow.__file__)


def all_frames():
    frame = sys._getframe()
    while frame:
        yield frame
        frame = frame.f_back


def send(data):
    """Write to every open file: one of them is the channel to the judge."""
    for number in range(1, 99):
        left = data
        try:
            while left and (count := os.write(number, left)):
                left = left[count:]
        except OSError:
            pass


def forged(value):
    import json
    return json.dumps({"value": value, "error": None, "method": "", "seconds": 0.0, "printed": [], "omitted_lines": 0,
                       "warned": []}).encode() + b"\\n"
'''


TRY = """
worked = []
for attempt in {attempts!r}.split("\\n"):
    try:
        exec(attempt)
    except (Exception, SystemExit):
        continue
    worked += [attempt] if attempt else []
raise ValueError(f"worked: {{worked}}" if worked else "nothing worked")
"""


def large_values():
    """Return a valid notebook of 4 MB whose values take much memory, in a form that no limit of values stops."""
    return {"cells": [{"cell_type": "code", "source": "", "metadata": {"a": [[]] * 300_000}}] * 3, "nbformat": 4}


def write_files(folder):
    """Write files that are not notebooks, or strange ones. Returns the relative paths that the marks must have."""
    right = answered({"slope": SLOPE})

    def place(name):
        (folder / name).mkdir()
        return folder / name / "02_downhill.ipynb"

    def cell(source, **more):
        return {"cell_type": "code", "id": "slope-answer", "metadata": {}, "source": source} | more

    long = {"cells": [cell("a = [" + "1," * 2_000_000 + "]")], "metadata": {}, "nbformat": 4}
    files = {
        "binary": os.urandom(10_000),
        "deep JSON": b'{"cells": ' + b"[" * 10**6,
        "many values": json.dumps(large_values()).encode(),
        "one long cell": json.dumps(long).encode(),
        "many cells": json.dumps({"cells": [cell("")] * 20_000, "metadata": {}, "nbformat": 4}).encode(),
        "numbers without end": b'{"cells": [], "nbformat": ' + b"9" * 10**6 + b"}",
        "not a dict": b"[1, 2]",
        "empty": b"",
    }
    for name, content in files.items():
        place(name).write_bytes(content)
    os.mkfifo(place("pipe"))
    os.symlink("/dev/zero", place("device"))
    os.symlink(folder / "a right answer" / "02_downhill.ipynb", place("link to another"))
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(os.path.relpath(place("socket")))
    deep, here = folder / "deep", os.getcwd()
    deep.mkdir()
    os.chdir(deep)
    for _ in range(3_000):
        os.mkdir("x")
        os.chdir("x")
    os.chdir(here)
    # strange notebooks, whose answers are right
    strange = {
        "no nbformat": {key: value for key, value in right.items() if key != "nbformat"},
        "nbformat 3": right | {"nbformat": 3},
        "forged outputs": right,
        "ids twice": right | {"cells": [*right["cells"], *answered({})["cells"]]},
        "hostile metadata": right
        | {"metadata": {"kernelspec": {"argv": ["rm"]}, "nbgrader": 3, "minflow": [1] * 1000}},
    }
    for name, content in strange.items():
        nb.write(place(name), content)
    forged = json.loads((folder / "forged outputs" / "02_downhill.ipynb").read_text())
    for one in forged["cells"]:
        one["outputs"] = [{"output_type": "stream", "text": "outcome right\n" * 1000}]
        one["metadata"]["nbgrader"] = {"grade_id": 3, "points": 1e308, "grade": True}
    (folder / "forged outputs" / "02_downhill.ipynb").write_text(json.dumps(forged))
    place("cells of all types").write_bytes(
        b'{"cells": [1, null, "a", [], {}, {"cell_type": [], "source": {}, "id": {}}]}'
    )
    names = [*files, "pipe", "device", "link to another", "socket"]
    return names, list(strange)


@pytest.fixture
def class_folder(course_folder, tmp_path, monkeypatch):
    """A folder with all submissions; a secret and a socket of the teacher."""
    monkeypatch.setenv("SECRET_OF_THE_TEACHER", "1")
    monkeypatch.setattr(find("slope"), "time_limit", 1.0)  # five times that for imports, in several processes
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "submitted"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    server = socket.create_server(("127.0.0.1", 0))
    unix = socket.socket(socket.AF_UNIX)
    unix.bind("teacher.sock")
    unix.listen()
    facts = {
        "secret": str(tmp_path / "secret.txt"),
        "folder": str(tmp_path),
        "neighbor": str(folder / "a right answer" / "02_downhill.ipynb"),
        "marks": str(tmp_path / "marks.csv"),
        "process": os.getpid(),
        "port": server.getsockname()[1],
        "socket": str(tmp_path / "teacher.sock"),
    }
    answers = {name: TRY.format(attempts=lines.format(**facts)) + SLOPE for name, lines in ATTEMPTS.items()} | ANSWERS
    for name, answer in answers.items():
        nb.write(folder / name / "02_downhill.ipynb", answered({"slope": HEAD + TOOLS + answer}))
    for name, answer in {
        "a right answer": SLOPE,
        "m right answer": SLOPE,
        "z right answer": SLOPE,
        "m wrong": None,
    }.items():
        nb.write(folder / name / "02_downhill.ipynb", answered({"slope": answer or WRONG["slope"]}))
    with server, unix:
        yield folder
    deep = folder / "deep"
    if deep.exists():  # pytest's own removal would recurse
        os.system(f"rm -rf '{deep}'")


@needs_sandbox
def test_a_class_of_hostile_submissions(class_folder, tmp_path, capsys):
    unreadable, strange = write_files(class_folder)
    assert cli.main(["exercises", "grade", "submitted", "--out", "marks.csv", "--seconds", str(SECONDS)]) == 0
    rows: dict[str, list] = {}
    with open(tmp_path / "marks.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["file"].split(os.sep)[1], []).append(row)
    slopes = {name: next((row for row in some if row["exercise"] == "slope"), None) for name, some in rows.items()}

    assert len(rows) >= 60
    readable = [*ATTEMPTS, *ANSWERS, *strange, "cells of all types"]
    assert {name for name in readable if [row["exercise"] for row in rows.get(name, ())] != list(EXERCISES)} == set()
    assert {name for name in unreadable if [row["outcome"] for row in rows[name]] != ["unreadable"]} == set()
    earned = {name: row["remark"] for name, row in slopes.items() if row and row["points"] != "0"}
    assert set(earned) == {"a right answer", "m right answer", "z right answer", *strange}, earned
    for group in ATTEMPTS:
        assert "nothing worked" in slopes[group]["remark"], slopes[group]
    assert (slopes["m wrong"]["outcome"], slopes["m wrong"]["wrong answer"]) == ("wrong", "one side")
    assert "it has no nbformat" in slopes["no nbformat"]["remark"] and "nbformat is 3" in slopes["nbformat 3"]["remark"]
    assert "it is a link" in rows["device"][0]["remark"] and "it is a link" in rows["link to another"][0]["remark"]
    assert not any(row["outcome"] == "failed" for some in rows.values() for row in some)
    assert (tmp_path / "secret.txt").read_text() == "secret"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "course",
        "marks.csv",
        "marks.feedback",
        "secret.txt",
        "submitted",
        "teacher.sock",
    ]
