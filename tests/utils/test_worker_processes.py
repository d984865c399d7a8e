"""Worker processes in separate programs: notebooks, Ctrl-C, kills, live BLAS threads, systems without fork."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import minflow as flow
from minflow.core.base.errors import LoaderError, WorkerError
from minflow.utils.data import DataLoader, Dataset, TensorDataset, workers

TOP = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at in /proc")

PRELUDE = """
import os, sys, time
import minflow as flow
from minflow.utils.data import DataLoader, Dataset
class Mine(Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i):
        {body}
        return os.getpid(), i
"""


def start(body, program, **environment):
    words = "-W", "error", "-W", "default::DeprecationWarning", "-c", PRELUDE.format(body=body) + program
    environment = os.environ | {"PYTHONPATH": str(TOP)} | environment
    return subprocess.Popen(
        [sys.executable, *words],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids, seconds=60):
    end = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(alive, pids))


LOOP = """
pids = set()
for pid, i in DataLoader(Mine(), 2, num_workers=2, workers="process"):
    pids.update(pid.tolist())
    if len(pids) == 2 and i[0] < 8: print(*pids, flush=True)
"""


@pytest.mark.parametrize(
    "body", ["time.sleep(0.02)", "time.sleep(600 if i > 40 else 0)"], ids=["between batches", "in the middle of one"]
)
def test_ctrl_c_leaves_no_process_running(body):
    with start(body, LOOP) as program:
        pids = list(map(int, program.stdout.readline().split()))
        assert len(pids) == 2 and all(map(alive, pids))
        time.sleep(0.2)
        os.killpg(program.pid, signal.SIGINT)
        _, err = program.communicate(timeout=60)
        assert program.returncode == -signal.SIGINT and "KeyboardInterrupt" in err and err.count("Traceback") == 1
        assert gone(pids, 0)


def test_killed_parent():
    with start("time.sleep(0.02)", LOOP) as program:
        pids = list(map(int, program.stdout.readline().split()))
        program.kill()
        program.communicate(timeout=60)
        assert gone(pids)


def test_class_of_main_and_live_blas_threads():
    """Forked while BLAS has threads, with BLAS in the workers and here, and Python's warnings as errors."""
    body = "a = flow.ones(200, 200) @ flow.ones(200, 200); assert a[0, 0].item() == 200"
    program = """
import numpy as np
a = np.ones((500, 500)); a @ a
n = 0
for pid, i in DataLoader(Mine(), 10, sampler=range(60), num_workers=3, workers="process"):
    a @ a; n += len(i); assert pid[0] != os.getpid()
print(n)
"""
    with start(body, program, OPENBLAS_NUM_THREADS="4") as program:
        out, err = program.communicate(timeout=60)
        assert out == "60\n" and err == ""


def test_open_iterator_at_exit():
    """A loop that is still open does not keep the program from exiting."""
    program = (
        'it = iter(DataLoader(Mine(), 2, num_workers=2, workers="process")); print(next(it)[0][0].item(), flush=True)'
    )
    with start("pass", program) as program:
        out, err = program.communicate(timeout=60)
        assert program.returncode == 0 and gone([int(out)]) and err == ""


class Dies(Dataset):
    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 20

    def __getitem__(self, i):
        if i == 9:
            os.kill(os.getpid(), signal.SIGKILL) if self.how == "killed" else os._exit(3)
        return i


@pytest.mark.parametrize("how, said", [("killed", "killed by SIGKILL"), ("exits", "exit code 3")])
def test_dying_worker(how, said):
    seen = []
    with pytest.raises(
        WorkerError, match=rf"process 0 died while it was making batch 2[\s\S]*{said}[\s\S]*test_worker_processes.py"
    ):
        for batch in DataLoader(Dies(how), 4, num_workers=2, workers="process"):
            seen.append(batch.tolist())
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_memory_is_released():
    """Batches in shared memory leave neither descriptors nor mappings nor files."""
    data = TensorDataset(flow.zeros(64, 4096))

    def state():
        maps = Path("/proc/self/maps").read_text().count("minflow-batch")
        return len(os.listdir("/proc/self/fd")), maps, sorted(os.listdir("/dev/shm"))

    list(DataLoader(data, 8, num_workers=2, workers="process"))
    before = state()
    for _ in range(3):
        kept = list(DataLoader(data, 8, num_workers=2, workers="process"))
        assert state()[1] == 8
        del kept
    assert state() == before


def test_many_large_tasks_and_results_do_not_deadlock():
    data = TensorDataset(flow.arange(200_000))
    crew = dict(num_workers=2, workers="process", prefetch_factor=20)
    assert sum(b[0].sum().item() for b in DataLoader(data, 4000, shuffle=True, **crew)) == sum(range(200_000))
    texts = [f"text number {i}" for i in range(40_000)]
    assert sum(map(len, DataLoader(texts, 1000, **crew))) == 40_000


def test_without_fork(monkeypatch):
    """With the spawn method: importable objects work, others are refused early."""
    monkeypatch.setattr(workers, "START_METHOD", "spawn")
    data = TensorDataset(flow.arange(10))
    assert [b[0].tolist() for b in DataLoader(data, 4, num_workers=1, workers="process")] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9],
    ]
    with pytest.raises(LoaderError, match=r"cannot be sent to a worker process[\s\S]*spawn"):
        list(DataLoader(data, 4, num_workers=1, workers="process", collate_fn=lambda samples: samples))


def test_without_fork_in_a_notebook(monkeypatch):
    monkeypatch.setattr(workers, "START_METHOD", "spawn")
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    cell = type(
        "Cell", (Dataset,), {"__module__": "__main__", "__len__": lambda self: 4, "__getitem__": lambda self, i: i}
    )
    with pytest.raises(
        LoaderError, match=r'cannot see definitions in notebook cells[\s\S]*Cell[\s\S]*workers="thread"'
    ):
        list(DataLoader(cell(), 4, num_workers=1, workers="process"))


@pytest.mark.slow
def test_in_a_notebook(real_kernel):
    """A class of a cell, both kinds of workers, an interrupt, and no process afterwards, in a real kernel."""

    def interrupt(kind, content):
        if "started" in content.get("text", ""):
            time.sleep(0.3)
            real_kernel.manager.interrupt_kernel()

    def run(code, hook=None):
        status, shown = real_kernel.run(code, hook)
        return status, "".join([content.get("text") or "\n".join(content.get("traceback", ())) for _, content in shown])

    real_kernel.fresh(PRELUDE.format(body="time.sleep(0.001)"))
    for kind in ("thread", "process"):
        status, text = run(f'print(sum(len(i) for _, i in DataLoader(Mine(), 50, num_workers=2, workers="{kind}")))')
        assert (status, text.strip()) == ("ok", "1000"), text
    loop = 'for _, i in DataLoader(Mine(), 2, num_workers=2, workers="process"):\n    time.sleep(.1)\n    '
    loop += 'print("started", flush=True) if i[0] == 4 else 0'
    status, text = run(loop, interrupt)
    assert status == "error" and "KeyboardInterrupt" in text
    assert run("import multiprocessing; print(multiprocessing.active_children())")[1].strip() == "[]"
