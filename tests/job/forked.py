"""Run programs of job functions in separate processes; return their output and exit code.

Python and minflow start once, in a server. Each program is a fork of it and exits like any program.
"""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent.parent
LIMIT = 600  # seconds: a program without progress exits earlier

PRELUDE = """
import faulthandler, json, os, random, signal, sys, threading
import minflow as flow
LOADED = sorted(name for name in sys.modules if name.startswith("minflow.job"))
import numpy as np
import minflow.typing as tp
from minflow.core.base.errors import JobError
from minflow.job.session import default_session
from minflow.job.queue import stream
from minflow.job.queue.stream import current_stream

SIZE = 4

def training(result):
    "A train job: each step lowers the variables `a` and `b` by exactly 1, so they count the steps."
    def job(x: tp.Numpy.Placeholder((SIZE,))) -> result:
        a = flow.get_variable("a", (SIZE,), initializer=flow.zeros_initializer())
        b = flow.get_variable("b", (SIZE,), initializer=flow.zeros_initializer())
        loss = a * x + b * x
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [float(SIZE)]), momentum=0).minimize(loss)
        return loss
    job.__name__ = "train_" + ("sync" if result is tp.Numpy else "async")
    return flow.global_function(type="train")(job)

def ones():
    return np.ones(SIZE, "f")

def wait(event):
    assert event.wait(60), current_stream().thread_locations()

def progress():
    "Without another one within two minutes, the program says where it is, and ends."
    faulthandler.dump_traceback_later(120, exit=True)
"""
SERVER = """
training(tp.Numpy).compile()  # loads what a job needs
flow.clear_default_session()

def served():
    "In a fork of this process, the file of the program that it becomes."
    for line in sys.stdin:
        test, file, *outputs = json.loads(line)
        if (pid := os.fork()) == 0:
            os.environ["PYTEST_CURRENT_TEST"] = test  # for probes that record which tests reach them
            for number, path in enumerate(outputs, 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
            return file
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    os._exit(0)

exec(compile(open(file := served()).read(), file, "exec"))
"""


class Programs:
    """Run programs that begin with PRELUDE."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0
        self.server = self.start(PRELUDE + SERVER, stdin=subprocess.PIPE) if hasattr(os, "fork") else None

    def start(self, text, **options):
        self.count += 1
        file = self.folder / f"program{self.count}.py"
        file.write_text(text)
        env = os.environ | {"PYTHONPATH": str(TOP), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-X", "faulthandler", file]
        return subprocess.Popen(command, env=env, text=True, bufsize=1, stdout=subprocess.PIPE, **options)

    def alone(self, program):
        """Return (code, stdout, stderr) of a program in a new Python."""
        process = self.start(f"{PRELUDE}progress()\n{program}", stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=LIMIT)
        return process.returncode, out, err

    def forked(self, program):
        """Return (code, stdout, stderr) of a program in a fork of the server."""
        self.count += 1
        file, *outputs = paths = [self.folder / f"{self.count}.{name}" for name in ("py", "out", "err")]
        file.write_text(f"progress()\n{program}")
        test = os.environ["PYTEST_CURRENT_TEST"]
        self.server.stdin.write(json.dumps([test, *map(str, paths)]) + "\n")
        pid = int(self.server.stdout.readline())
        if not select.select([self.server.stdout], [], [], LIMIT)[0]:
            os.kill(pid, signal.SIGABRT)  # faulthandler prints the stacks of its threads
        return int(self.server.stdout.readline()), *[path.read_text() for path in outputs]

    def stop(self):
        if self.server:
            self.server.stdin.close()
            self.server.stdout.close()
            self.server.wait()


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    them = Programs(tmp_path_factory.mktemp("programs"))
    yield them
    them.stop()


@pytest.fixture
def run_program(programs):
    """Return stdout and stderr of a program, whose exit code must be `code`."""

    def run_program(program, code=0, alone=False):
        run = programs.alone if alone or programs.server is None else programs.forked
        found, out, err = run(program)
        assert found == code, out[-2000:] + err[-6000:]
        return out, err

    return run_program
