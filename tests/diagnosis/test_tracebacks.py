"""minflow's errors in IPython: all of the learner's frames, and none of the engine's."""

import json
import os
import re
import subprocess
import sys
import types

import pytest

from minflow.diagnosis.frames import user_frames, user_lines

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
pytest.importorskip("IPython", reason="pip install ipython: there is nothing to show tracebacks in")

MODEL = """
import minflow as flow
from minflow import nn
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
    def forward(self, x):
        return self.fc(x)
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        return self.inner(x)
"""
JOB = (
    MODEL
    + """
import numpy as np
import minflow.typing as tp
@flow.global_function()
def job(x: tp.Numpy.Placeholder((4, 3)), y: tp.Numpy.Placeholder((4,), dtype=flow.int32)) -> tp.Numpy:
    return flow.nn.sparse_softmax_cross_entropy_with_logits(y, flow.layers.dense(x, 3, name="out"))
"""
)
STOP = (
    MODEL
    + """
import os, signal
class Graph(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(3, 4)
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.1))
    def build(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss
graph = Graph()
x = flow.ones(2, 3)
graph(x)
run = type(graph._last.parts[0].plan).run
def stopped(*args):
    os.kill(os.getpid(), signal.SIGINT)  # waits until the end of the step
    return run(*args)
type(graph._last.parts[0].plan).run = stopped
def train():
    while True:
        graph(x)
"""
)
CALL = "Outer()(flow.ones(2, 5))"
FAILING_JOB = [
    JOB,
    'job(np.ones((4, 3), "f4"), np.array([0, 1, 2, 9], "i4"))',
    "import sys; print(type(sys.last_value.__cause__).__name__)",
]
CALLBACK = (
    JOB
    + """
@flow.global_function()
def doubled(x: tp.Numpy.Placeholder((2,))) -> tp.Callback[tp.Numpy]:
    return x + x
def fails(result):
    raise KeyError("mine")
"""
)
HANDLED = """
try:
    1 / 0
except ZeroDivisionError as zero:
    try:
        Outer()(flow.ones(2, 5))
    except flow.MinflowError as error:
        get_ipython().showtraceback()
        print(error.__context__ is zero, zero.__traceback__.tb_lineno)
"""
TYPO = "class Typo(nn.Module):\n    def forward(self, x):\n        return x + y\nTypo()(flow.ones(1))"
OWN = (
    "get_ipython().set_custom_exc((KeyboardInterrupt,), lambda shell, kind, error, trace, tb_offset=None: "
    "print('my own'))"
)
# name -> (cells, $MINFLOW_TRACEBACK)
SESSIONS = {
    "model": ([MODEL, CALL], ""),
    "model, full": ([MODEL, CALL], "full"),
    "callback": ([CALLBACK, "doubled(np.ones(2, 'float32'))(fails)\nflow.sync_default_session()"], ""),
    "handled": ([MODEL, HANDLED], ""),
    "job": (FAILING_JOB, ""),
    "job, full": (FAILING_JOB, "full"),
    "stop": ([STOP, "train()", "print('goes on', graph._steps)"], ""),
    "stop, full": ([STOP, "train()"], "full"),
    "own interrupt": ([MODEL, "def wait():\n    raise KeyboardInterrupt\nwait()"], ""),
    "own way": ([OWN, STOP, "train()"], ""),
    "typo": ([MODEL, TYPO], ""),
}
# One process per session, forked from one that has imported the modules of tracebacks.
PROGRAM = """
import json, os, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
shell.history_manager.enabled = False
shell.run_cell("import minflow as flow; flow.ones(2, 3) @ flow.ones(2, 3)")
for name, (cells, traceback) in json.load(sys.stdin).items():
    print("\\0", name, "\\0", sep="", end="", flush=True)
    if os.fork() == 0:
        os.environ["MINFLOW_TRACEBACK"] = traceback
        for cell in cells:
            shell.run_cell(cell)
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return name of a session -> its IPython output."""
    environment = {name: value for name, value in os.environ.items() if name != "MINFLOW_TRACEBACK"}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(SESSIONS),
        capture_output=True,
        text=True,
        timeout=300,
        env=environment | {"IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))},
    )
    assert found.returncode == 0, found.stderr
    parts = re.sub(r"\x1b\[[0-9;]*m", "", found.stdout).split("\0")[1:]
    return dict(zip(parts[::2], parts[1::2]))


def functions(text):
    return re.findall(r" in ([\w.]+)\(", text)


def test_only_the_learners_frames(shown):
    text = shown["model"]
    assert "----> 1 Outer()(flow.ones(2, 5))" in text and functions(text) == ["Outer.forward", "Inner.forward"]
    assert "minflow/nn/module.py" not in text
    assert re.search(
        r"ShapeError: linear.*\n  input +float32\[2, 5\]\n(.*\n)*  Try: nn.Linear\(5, 4\)\n"
        r"\(\d+ frames inside minflow are left out; MINFLOW_TRACEBACK=full shows them\)",
        text,
    )


def test_every_frame_on_request(shown):
    text = shown["model, full"]
    assert "Module.__call__" in functions(text) and "left out" not in text and "nn.Linear(5, 4)" in text


def test_causes_are_shown(shown):
    """A previously handled error, and the cause of a job's error; their own tracebacks are unchanged."""
    text = shown["callback"]
    assert 'raise KeyError("mine")' in text and "JobError" in text and "direct cause" in text
    assert functions(text) == ["fails"]
    text = shown["handled"]
    assert "1 / 0" in text and "During handling" in text and text.rstrip().endswith("True 2")


def test_job_error_is_printed_once(shown):
    """Its cause was not raised by a line of the learner, and has the same message."""
    text = shown["job"]
    assert text.count("labels go from 0 to 9") == 1 and "direct cause" not in text
    assert text.rstrip().endswith("OutOfRangeError")
    head = r"JobError: the work of step 1 of job raised OutOfRangeError: .*\n  target +int32\[4\]\n"
    assert re.search(head + r"(.*\n)*  Try: .*\n\(\d+ frames", text)
    full = shown["job, full"]
    assert full.count("labels go from 0 to 9") > 1 and "direct cause" in full


def test_interrupt_shows_only_the_learners_line(shown):
    text, full = shown["stop"], shown["stop, full"]
    assert "KeyboardInterrupt" in text and functions(text) == ["train"] and "---->" in text and "minflow/" not in text
    assert re.search(r"\(\d+ frames inside minflow are left out; MINFLOW_TRACEBACK=full shows them\)", text)
    assert "goes on 2" in text
    assert "RunningGraph.__call__" in functions(full) and "uninterrupted.__exit__" in functions(full)
    assert "left out" not in full


def test_other_interrupts_and_custom_handlers_are_unchanged(shown):
    text = shown["own interrupt"]
    assert functions(text) == ["wait"] and "KeyboardInterrupt" in text and "left out" not in text
    assert "my own" in shown["own way"] and "left out" not in shown["own way"]


def test_other_errors_are_unchanged(shown):
    text = shown["typo"]
    assert "NameError: name 'y' is not defined" in text and "Module.__call__" in functions(text)
    assert "left out" not in text


def test_interrupt_at_an_instruction_without_a_line():
    def wait(done=None):
        while True:
            try:
                return sys._getframe()
            finally:
                done = done

    code = wait.__code__
    places = list(code.co_lines())
    at = next(start for start, _, line in places if line is None)
    entry = types.TracebackType(None, wait(), at, -1)
    assert entry.tb_lineno in (None, -1)
    kept, _ = user_frames(entry)
    assert kept.tb_lineno == [line for start, _, line in places if start < at][-1]
    error = KeyboardInterrupt().with_traceback(entry)
    assert user_lines(error)[0].startswith(f"test_tracebacks.py:{kept.tb_lineno} in ")
