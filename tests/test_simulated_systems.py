"""Windows and macOS, simulated on Linux by disabling the features they lack; then everything is used.

A `sitecustomize.py` on the path of a new Python disables them, also in worker processes. Features that Windows has but
implements differently (paths, locks on open files, consoles) are not simulated.
"""

import ctypes
import sys

import pytest

from minflow.core.files import temporary
from minflow.io import atomic
from tests.processes import python

# The standard library and our dependencies check the platform on import: import them first, unmodified.
TAKE_AWAY = """
import asyncio, concurrent.futures, ctypes, email, http.client, json, logging, platform, shutil, ssl, sysconfig, uuid
import multiprocessing.connection, multiprocessing.popen_spawn_posix, multiprocessing.shared_memory
import multiprocessing.synchronize, os, random, secrets, signal, subprocess, sys, tempfile, threading, urllib.request
import numpy, scipy.special, threadpoolctl

sysconfig.get_config_vars()
threadpoolctl.threadpool_info()  # it keeps the C library, which old versions find by os.uname

def ask(pid, number, kill=os.kill):
    assert number, "signal 0 is Ctrl-C on Windows"
    kill(pid, number)

class System:  # to start processes and to find libraries, which has to be done as this system does it
    platform = sys.platform
    __getattr__ = lambda self, name: getattr(sys, name)
    __setattr__ = lambda self, name, value: setattr(sys, name, value)

multiprocessing.spawn.sys = threadpoolctl.sys = System()

OURS = ["fork", "register_at_fork", "sched_getaffinity", "memfd_create", "MFD_CLOEXEC"]
WINDOWS = OURS + ["fchown", "chown", "uname", "getuid", "geteuid", "O_NONBLOCK", "mkfifo", "getpgid", "killpg"]
for name in WINDOWS if "SYSTEM" == "win32" else OURS:
    vars(os).pop(name)
if "SYSTEM" == "win32":
    os.kill, multiprocessing.resource_tracker._HAVE_SIGMASK = ask, False
    for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "setitimer", "pthread_sigmask", "pthread_kill"):
        vars(signal).pop(name)
    for name in ("fcntl", "resource", "pwd", "grp", "termios", "posix"):
        sys.modules[name] = None
    shutil.which = lambda name, *words, **settings: None
sys.platform = "SYSTEM"
"""
DATA = """
import numpy as np
import minflow as flow

class Squares(flow.utils.data.Dataset):
    def __len__(self): return 12
    def __getitem__(self, i): return np.full(40_000, i, np.float32), i * i
"""
PROGRAM = """
import os, sys
import numpy as np
import minflow as flow
from squares import Squares

flow.manual_seed(0)
model = flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.ReLU(), flow.nn.Linear(8, 1))
x, y = flow.randn(16, 4), flow.randn(16, 1)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(5):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0]

for _ in range(2):                                  # into a new file, and over an old one
    flow.save(model.state_dict(), f"weights ü {os.getpid()}")
model.load_state_dict(flow.load(f"weights ü {os.getpid()}"))

if __name__ == "__main__":                          # processes are spawned: they import this file
    for kind in ("thread", "process"):
        loader = flow.utils.data.DataLoader(Squares(), batch_size=3, num_workers=2, workers=kind)
        assert [int(b[1].sum()) for b in loader] == [5, 50, 149, 302], kind

    @flow.global_function()
    def double(x: flow.typing.Numpy.Placeholder((2, 2))) -> flow.typing.Numpy:
        return x * 2

    @flow.global_function()
    def later(x: flow.typing.Numpy.Placeholder((2, 2))) -> flow.typing.Callback[flow.typing.Numpy]:
        return x * 3

    assert (double(np.ones((2, 2), np.float32)) == 2).all()
    came = []
    later(np.ones((2, 2), np.float32))(came.append)
    flow.sync_default_session()
    assert (came[0] == 3).all()
    from minflow import doctor
    states = {line[1]: line[0] for line in doctor.checks()}
    assert "broken" not in states.values(), states
    print("all ran", sys.platform, hasattr(os, "fork"))
"""


def run_on(system, folder, program, *words):
    """Run a program without the features that `system`, "win32" or "darwin", lacks."""
    (folder / "sitecustomize.py").write_text(TAKE_AWAY.replace("SYSTEM", system))
    (folder / "squares.py").write_text(DATA)
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = python("program.py", *words, cwd=folder, path=[folder], HOME=str(folder))
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_everything_runs_without_linux_features(system, tmp_path):
    done = run_on(system, tmp_path, PROGRAM)
    assert done.stdout.splitlines()[-1] == f"all ran {system} False", done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("handle", "error", "code", "lives"),
    [(0, 87, None, False), (0, 5, None, True), (7, 0, 259, True), (7, 0, 1, False)],
)
def test_owner_of_temporary_files_on_windows(monkeypatch, tmp_path, handle, error, code, lives):
    """With a stub of the Windows kernel that returns the documented values."""

    class Kernel:
        OpenProcess = type("", (), {"__call__": lambda self, rights, inherit, pid: handle})()  # it has a `restype`

        def GetExitCodeProcess(self, opened, place):
            place._obj.value = code

        def CloseHandle(self, opened):
            closed.append(opened.value)

    closed = []
    monkeypatch.setattr(ctypes, "WinDLL", lambda name, use_last_error: Kernel(), raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: error, raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    left = tmp_path / f".minflow.{temporary.host()}.99999999.0123456789abcdef.tmp"
    left.touch()
    atomic.sweep(tmp_path)
    assert left.exists() == lives and set(closed) == {handle} - {0}
