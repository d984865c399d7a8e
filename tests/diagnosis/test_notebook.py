"""The environment of the program is detected in one module, diagnosis/notebook.py; tests of it and of its users."""

import re
import sys
import types
from pathlib import Path

import pytest

import minflow as flow
from minflow.core.base import display
from minflow.core.ir import file_name
from minflow.diagnosis import notebook
from minflow.diagnosis.frames import message_of, raised_at

TOP = Path(__file__).parents[2]
ASKS = r"get_ipython|ipykernel|ZMQInteractiveShell|import IPython|from IPython|modules.*IPython|VSCODE|google.colab"
# These check what is installed or start a kernel, not where the program runs.
OTHERS = {
    "minflow/doctor.py",
    "minflow/core/base/optional.py",
    "minflow/core/messages/invocation.py",
    "minflow/exercises/authoring/new.py",  # the metadata of a new notebook
}


def test_one_module_detects_the_environment():
    files = [file.relative_to(TOP) for room in ("minflow", "widgets") for file in sorted((TOP / room).rglob("*.py"))]
    asking = {file.as_posix() for file in files if re.search(ASKS, (TOP / file).read_text(encoding="utf-8"))}
    assert asking == {"minflow/diagnosis/notebook.py"} | OTHERS


@pytest.fixture
def shell(monkeypatch):
    """A shell of IPython with a kernel, whose cell In[4] is the file "cell4"."""
    parent = {"metadata": {"cellId": "a"}, "header": {"msg_id": "1"}}
    shell = types.SimpleNamespace(
        kernel=types.SimpleNamespace(get_parent=lambda channel: parent), user_ns={}, events=[]
    )
    shell.compile = types.SimpleNamespace(format_code_name=lambda path: ("Cell", "In[4]") if path == "cell4" else None)
    shell.events = types.SimpleNamespace(register=lambda *pair: shell.heard.append(pair))
    shell.heard, shell.shown = [], []
    page = types.SimpleNamespace(display=lambda x, **how: shell.shown.append((x, how)))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    return shell


def test_in_a_notebook(shell, capsys):
    assert notebook.in_notebook() and notebook.running_cell() == ("a", "1")
    assert not notebook.prints_into_cell()  # its output is redirected
    assert file_name("cell4") == "In[4]" and file_name("/home/net.py") == "net.py"
    flow.show(flow.tensor([1.0, 2.0]))
    ((bundle, how),) = shell.shown
    assert "text/html" in bundle and how == {"raw": True} and capsys.readouterr().out == ""
    assert notebook.follow_cells(print, repr) and shell.heard == [("pre_run_cell", print), ("post_run_cell", repr)]


def test_outside(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert not notebook.in_notebook() and notebook.running_cell() == ("", "") and not notebook.follow_cells(print, repr)
    assert file_name("/home/net.py") == "net.py" and not display.show_bundle(lambda: 1 / 0)
    flow.show(flow.tensor([1.0, 2.0]))
    assert "float32[2]" in capsys.readouterr().out
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook.ipython() is None and not notebook.in_notebook()


def test_terminal_ipython_is_not_a_notebook(shell):
    shell.kernel = None
    assert not notebook.in_notebook() and file_name("cell4") == "In[4]" and notebook.follow_cells(print, repr)


@pytest.mark.parametrize("page", ["JupyterLab", "VS Code", "VS Code on a server", "Colab"])
def test_front_ends(shell, monkeypatch, page):
    if page == "Colab":
        monkeypatch.setitem(sys.modules, "google.colab", sys)
    elif page == "VS Code":
        monkeypatch.setenv("VSCODE_PID", "1")
    elif page == "VS Code on a server":
        shell.user_ns["__vsc_ipynb_file__"] = "a.ipynb"
    assert notebook.scripts_share_page() == (page == "JupyterLab")


def test_errors_read():
    class Hostile(Exception):
        def __str__(self):
            raise RuntimeError

    assert (
        message_of(ValueError("no")) == "no"
        and message_of(Hostile()) == "(its message cannot be formatted: RuntimeError)"
    )
    with pytest.raises(flow.MinflowError) as caught:
        flow.ones(2) @ flow.ones(3)
    assert re.fullmatch(r"at test_notebook.py:\d+", raised_at(caught.value)) and raised_at(ValueError()) == ""
