"""Forks while other threads work: the child can compute, whatever locks were held.

Each program runs in its own process; a child that hangs is ended by SIGALRM.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import sampling

TOP = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])}
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows cannot fork")

BEGINNING = """
import os, signal, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
import minflow as flow
from minflow import nn

def forked(work):
    "The return code of a child process that does `work`."
    pid = os.fork()
    if pid == 0:
        signal.alarm(120)
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

class Net(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)
"""


def ran(program):
    ended = subprocess.run([sys.executable, "-c", BEGINNING + program], capture_output=True, text=True, env=ENVIRONMENT)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


def test_forks_while_a_thread_runs_a_large_graph():
    """Without jobs, whose module is imported on first use: the lock of the plans is not part of the package."""
    assert (
        ran(
            f"COUNT = {30 if sampling.complete else 8}"
            + """
import sys
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))
graph, x = Net(), flow.rand(256, 512)
want = graph(x)
assert "minflow.job.queue.stream" not in sys.modules
began, ended = threading.Semaphore(0), threading.Event()

def work():
    while not ended.is_set():
        began.release()
        graph(x)

thread = threading.Thread(target=work)
thread.start()

def child():
    assert (graph(x) == want).all()
    Net()(x[:3])  # a plan of its own

for i in range(COUNT):
    began.acquire()
    assert forked(child) == 0, i
ended.set()
thread.join()
print("end")
"""
        )
        == "end\n"
    )


def test_fork_with_every_lock_held():
    """A thread holds all locks of the package during the fork; the child draws random numbers, emits events, builds a
    graph, calls nested modules, and draws a picture.
    """
    assert (
        ran("""
from minflow.core.base import events, locks
from minflow.nn.graph.compiled import GraphRan
import minflow.nn.recursion_limit, minflow.views.draw.engines
model = nn.Sequential(*[nn.Sequential(nn.Linear(2, 2)) for _ in range(3)])
generator = flow.Generator(1)
held, ended = threading.Event(), threading.Event()

def hold():
    taken = list(locks.LOCKS)
    for lock in taken:
        lock.acquire()
    held.set()
    ended.wait()
    for lock in taken:
        lock.release()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
assert len(locks.LOCKS) >= 5

def child():
    flow.rand(2, generator=generator), flow.rand(2)
    heard = []
    with events.subscribe(GraphRan, heard.append):
        Net()(flow.ones(1, 2))
    deep = nn.Identity()
    for _ in range(300):
        deep = nn.Sequential(deep)
    deep(flow.ones(1))
    assert heard
    assert all(lock.acquire(False) for lock in locks.LOCKS)

assert forked(child) == 0
ended.set()
thread.join()
print("end")
""").splitlines()[-1]
        == "end"
    )


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_loader_iterator_is_refused_in_the_child(mode):
    assert (
        ran(f"""
from minflow.utils.data import DataLoader
from minflow.core.base.errors import WorkerError
batches = iter(DataLoader(list(range(12)), batch_size=2, num_workers=1, workers={mode!r}))
assert next(batches).tolist() == [0, 1]

def child():
    try:
        next(batches)
    except WorkerError as error:
        assert f"process {{os.getppid()}}" in str(error) and f"process {{os.getpid()}}" in str(error), error
    else:
        raise AssertionError

assert forked(child) == 0
assert [batch.tolist() for batch in batches] == [[2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
print("end")
""")
        == "end\n"
    )
