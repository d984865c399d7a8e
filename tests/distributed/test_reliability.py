"""Ranks that are killed, that wait, and that run for long: all end in time, and none leaves anything behind."""

import contextlib
import importlib.util
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import minflow as flow
from minflow import distributed as dist, nn
from minflow.distributed.processes import board
from minflow.nn.parallel import DistributedDataParallel
from tests.clocks import until
from tests.processes import environment, open_files, python

mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed (extra mpi)")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which process has ended first")
launch = sys.executable, "-m", "minflow.distributed.launch"
TOPOLOGY = "/tmp/hydra_hwloc_xmlfile_"  # the name of a file that Hydra's proxy, the parent of ranks, keeps open
LIMIT = 60  # seconds in which all ranks end; a launch takes most of them on a busy machine
TRAINING = """
import os, signal, sys, threading
import minflow as flow
from minflow import distributed as dist

phase, victim = sys.argv[1], int(sys.argv[2])

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Unwritable:
    def __reduce__(self):
        die()

rank = dist.get_rank()
dist.init_process_group(timeout=40)
for step in range(100_000):
    weights = flow.full((200, 1000), float(step))
    if rank == 0:
        dying = phase == "saving" and step == 2
        flow.save({"step": step, "weights": weights, "last": [Unwritable()] if dying else []}, "checkpoint.pt")
    if step == 0:
        dist.barrier()
        print("process", os.getpid(), flush=True)
    if step == 3 and rank == victim:
        if phase == "computing":
            die()
        if phase == "exiting":
            os._exit(0)
        threading.Timer(0.5, die).start()
        dist.recv(flow.zeros(1), 1 - rank)  # which is not sent
    weights = weights @ flow.ones(1000, 10)
    dist.all_reduce(weights)
"""


def start(folder, phase="", victim=-1):
    """Start 3 ranks; return the launcher and the processes of the ranks."""
    (folder / "program.py").write_text(TRAINING)
    words = [*launch, "-n", "3", "program.py", phase, str(victim)]
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment(TMPDIR=str(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = [re.fullmatch(r"\[(\d)\] process (\d+)\n", process.stdout.readline()) for _ in range(3)]
    return process, {int(line[1]): int(line[2]) for line in lines}


def check_all_have_ended(folder, process, ranks, victim):
    """All ranks end in time, with an exit code and a card that names the rank; the checkpoint is whole."""
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode > 0, errors
    assert f"rank {victim} has ended before the end of its program" in errors, errors
    entry = r"^  rank \d .*(?:#\d+ \w+|receive of).* at program.py:\d+$"
    assert len(re.findall(entry, errors, re.MULTILINE)) == 3, errors
    for rank in ranks.values():
        with pytest.raises(ProcessLookupError):
            os.kill(rank, 0)
    saved = flow.load(folder / "checkpoint.pt")
    assert (saved["weights"] == saved["step"]).all()
    assert not list(folder.glob("minflow_ranks_*"))


@mpi
@linux
@pytest.mark.parametrize("phase, victim", [("computing", 2), ("receiving", 1), ("saving", 0), ("exiting", 1)])
def test_a_rank_that_dies_is_named(phase, victim, tmp_path):
    process, ranks = start(tmp_path, phase, victim)
    check_all_have_ended(tmp_path, process, ranks, victim)


@mpi
@linux
@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ranks_killed_at_random_instants(part, tmp_path):
    """A hundred kills in all."""
    dice = random.Random(part)
    for kill in range(10):
        folder = tmp_path / str(kill)
        folder.mkdir()
        process, ranks = start(folder)
        time.sleep(dice.uniform(0, 0.5))
        victim = dice.randrange(3)
        os.kill(ranks[victim], signal.SIGKILL)
        check_all_have_ended(folder, process, ranks, victim)


@mpi
@linux
@pytest.mark.parametrize("killed", ["launcher", "proxy"])
def test_ranks_end_with_their_launcher(killed, tmp_path):
    process, ranks = start(tmp_path)
    parent = int(Path(f"/proc/{ranks[0]}/stat").read_text().rpartition(")")[2].split()[1])
    topologies = [path for path in open_files(parent) if TOPOLOGY in path]
    os.kill(process.pid if killed == "launcher" else parent, signal.SIGKILL)
    process.communicate(timeout=LIMIT)
    end = time.monotonic() + LIMIT
    while any([Path(f"/proc/{rank}").exists() for rank in ranks.values()]) and time.monotonic() < end:
        time.sleep(0.05)
    for rank in ranks.values():
        with pytest.raises(ProcessLookupError):
            os.kill(rank, 0)
    assert not list(tmp_path.glob("minflow_ranks_*"))
    for path in topologies:  # a proxy that is killed leaves its file behind
        Path(path).unlink(missing_ok=True)


def test_entries_of_a_board():
    path = board.new_board()
    mine, theirs, launchers = [board.Board(path, 3) for _ in range(3)]
    mine.join(0)
    theirs.join(1)
    mine.look_around()
    mine.enter("#7 barrier at a.py:3", 5, 7)
    assert launchers.describe(0, alive=False) == "waited in #7 barrier at a.py:3" and not mine.has_ended(1)
    assert mine.missing([0, 1, 2], 5, 7) == [1, 2]
    assert "test_reliability.py" in mine.describe(1) and mine.describe(1).endswith("it has called no collective")
    assert "another machine" in mine.describe(2)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    theirs.enter("x" * 5000, 5, 6)
    theirs.memory[theirs.begin + 1 : theirs.begin + 9] = ended.pid.to_bytes(8, sys.byteorder)
    assert mine.has_ended(1) and mine.describe(1).startswith("has ended; its last collective is xxx")
    mine.fail("has raised ValueError: oops", 3)
    assert launchers.read(0).number == 3
    assert launchers.describe(0) == "has raised ValueError: oops; its last collective is #7 barrier at a.py:3"
    assert not launchers.claimed and mine.claim(71) and not theirs.claim(71) and launchers.claimed == 71
    board.remove_board(path)


WAITING = """
import os, sys, time
from pathlib import Path
from minflow import distributed as dist
from tests.processes import open_files

dist.barrier()
if sys.platform == "linux":
    shared = [line for line in Path("/proc/self/maps").read_text().splitlines() if "/dev/shm/" in line]
    assert all(line.endswith("(deleted)") for line in shared), shared
    print("parent has", *open_files(os.getppid()), flush=True)
if dist.get_rank() == 0:
    time.sleep(2)
else:
    begin = time.process_time()
    dist.barrier()
    print(f"waited {time.process_time() - begin:.3f}", flush=True)
    sys.exit(5)
dist.barrier()
dist.barrier()
"""


@mpi
def test_waiting_ranks_sleep_and_leave_no_files(tmp_path):
    """More ranks than a small computer has cores; the memory that they share has no name that could stay."""
    (tmp_path / "program.py").write_text(WAITING)
    done = python(*launch[1:], "-n", "4", "program.py", cwd=tmp_path)
    used = [float(seconds) for seconds in re.findall(r"waited (\S+)", done.stdout)]
    assert len(used) >= 1 and max(used) < 0.5 and done.returncode == 5, done.stdout + done.stderr
    topologies = re.findall(rf"{TOPOLOGY}\w+", done.stdout)
    assert "parent has" in done.stdout or sys.platform != "linux", done.stdout
    until(lambda: not any(map(os.path.exists, topologies)))


@pytest.mark.slow
def test_ten_thousand_steps_under_random_load():
    """Threads of ranks take turns at random; the losses are those of one rank with the same batches."""

    def train(steps, jitter):
        size, rank, dice = dist.get_world_size(), dist.get_rank(), random.Random(dist.get_rank())
        flow.manual_seed(0)
        x = flow.randn(64, 3, dtype=flow.float64)
        y = (x.sum(1, keepdim=True) * x[:, :1]).tanh()
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()
        model = DistributedDataParallel(model)
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for step in range(steps):
            if jitter and dice.random() < 0.05:
                time.sleep(dice.expovariate(1000))
            mine = slice(rank + 8 * (step % 8), 8 * (step % 8) + 8, size)
            optimizer.zero_grad()
            loss = (model(x[mine]) - y[mine]).square().mean()
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                mean = loss.detach().clone()
                dist.all_reduce(mean, op=dist.ReduceOp.AVG)
                losses.append(mean.item())
        return losses

    stop = threading.Event()

    def load():
        dice = random.Random(1)
        while not stop.wait(dice.expovariate(200)):
            sum(range(dice.randrange(100_000)))

    with flow.virtual_ranks(1) as ranks:
        (alone,) = ranks.run(train, 10_000, False)
    switch = sys.getswitchinterval()
    threads = [threading.Thread(target=load, daemon=True) for _ in range(2)]
    with contextlib.ExitStack() as after:
        after.callback(sys.setswitchinterval, switch)
        after.callback(stop.set)
        sys.setswitchinterval(1e-4)
        for thread in threads:
            thread.start()
        with flow.virtual_ranks(4) as ranks:
            found = ranks.run(train, 10_000, True)
    assert alone[-1] < alone[0] / 10 and len(alone) == 1000
    assert all([losses == pytest.approx(alone, rel=1e-9, abs=1e-12) for losses in found])
