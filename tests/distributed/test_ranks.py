"""Ranks that work together: the programs of `rank_programs.py`, and what happens if one of them fails."""

import contextlib
import copy
import importlib.util
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

import minflow as flow
from minflow import distributed as dist, nn
from minflow.distributed.launch import main
from minflow.distributed.processes.mpiexec import launcher
from minflow.nn.parallel import DistributedDataParallel
from tests.clocks import until
from tests.distributed.rank_programs import PROGRAMS
from tests.processes import TOP, environment, python

mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed (extra mpi)")
launch = "-m", "minflow.distributed.launch"


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_virtual_ranks(program, size):
    with flow.virtual_ranks(size) as ranks:
        assert ranks.run(program) == [None] * size


@mpi
@pytest.mark.parametrize("size", [1, 2, 4])
def test_processes(size):
    done = python(*launch, "-n", str(size), TOP / "tests/distributed/rank_programs.py", str(size), path=[TOP])
    assert done.returncode == 0, done.stdout + done.stderr
    said = f"{len(PROGRAMS)} programs passed on rank"
    assert sorted(re.findall(rf"{said} (\d) of {size}\b", done.stdout)) == [str(r) for r in range(size)]


FAULTS = {  # what a rank does -> what the error says
    "shape": "the ranks do not call the same collective\n.*rank 0 .*all_reduce sum float32.5.",
    "order": "the ranks do not call the same collective\n.*rank 0 .*all_reduce .*\n.*rank 1 .*barrier",
    "explains": "ShapeError: matmul: .*|on rank 1 of 3",
    "missing": r"after 1 seconds not all ranks have called #1 all_reduce.* at program.py:\d+\n"
    r"(?:  rank \d .*\n)*  rank 0  is at program.py:\d+  while rank.*; it has called no collective",
    "raises": r"Traceback .most recent call last.:\n *File .*program.py., line \d+, in .module.\n"
    r"[\s\S]*ValueError: oops",
    "exits": "rank 1 has ended with exit code 3",
    "ends": r"rank 1 has ended without #2 barrier at program.py:\d+\n *rank 1  has ended; its last collective is "
    r"#1 all_reduce sum float32.4. at program.py:\d+\n",
    "exits with a message": "rank 1 has ended with exit code 1: bad settings",
    "computes on": r"after 1 seconds not all ranks have called #1 barrier.*\n"
    r"(?:  rank \d .*\n)*  rank 1  is at program.py:\d+  while rank",  # a rank that begins to wait may be named, too
}
PROGRAM = """
import sys, time
from pathlib import Path
import minflow as flow
from minflow import distributed as dist

LATE = {"missing": 0, "computes on": 1}  # the rank that does not come

def main(fault):
    dist.init_process_group(timeout=1 if fault in LATE else 60)
    rank, t = dist.get_rank(), flow.ones(4)
    arrived = Path(__file__).with_name("arrived")  # the second of the others begins there
    if rank == LATE.get(fault):
        arrived.touch()
    while fault in LATE and not arrived.exists():
        time.sleep(0.01)
    if fault == "shape":
        dist.all_reduce(t if rank else flow.ones(5))
    elif fault == "order":
        dist.barrier() if rank else dist.all_reduce(t)
        dist.all_reduce(t) if rank else dist.barrier()
    elif fault == "missing" and rank:
        dist.all_reduce(t)
    elif fault == "exits" and rank == 1:
        sys.exit(3)
    elif fault == "exits with a message" and rank == 1:
        sys.exit("bad settings")
    elif fault == "raises" and rank == 1:
        raise ValueError("oops")
    elif fault == "ends":
        dist.all_reduce(t)
        if rank == 1:
            return
    elif fault == "explains" and rank == 1:
        flow.ones(2, 3) @ flow.ones(2, 3)
    while rank == LATE.get(fault): pass  # in one line, which the error shows
    dist.barrier()

main(sys.argv[1])
"""


def by_rank(text):
    """The lines of one rank after those of another, without "[0] ": processes that write at once mix theirs."""
    lines = [re.match(r"(\[\d\] )?(.*)", line).groups() for line in text.splitlines()]
    return "".join(f"{line}\n" for _, line in sorted(lines, key=lambda pair: pair[0] or ""))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("how", ["--virtual", pytest.param("", marks=mpi)])
def test_a_fault_ends_all_ranks(fault, how, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = python(*launch, "-n", "3", *[how] * bool(how), tmp_path / "program.py", fault, path=[TOP])
    text = by_rank(done.stdout + done.stderr)
    assert re.search(FAULTS[fault], text), text
    assert done.returncode == 3 if fault == "exits" else done.returncode, text


@pytest.mark.parametrize("how", ["--virtual", pytest.param("", marks=mpi)])
def test_exit_code_and_unfinished_lines(how, tmp_path):
    (tmp_path / "program.py").write_text(
        "import os, sys, minflow as flow\n"
        "print(os.environ['MASTER_PORT'], 'half', end='')\n"
        "sys.exit(3 * flow.env.get_rank())"
    )
    done = python(*launch, "-n", "2", *[how] * bool(how), tmp_path / "program.py", path=[TOP])
    assert done.returncode == 3 and "29500 half" in done.stdout, done.stdout + done.stderr


def test_threads_of_no_rank_read_the_environment_and_print(tmp_path):
    """Threads of libraries, as one that compiles a kernel, use what belongs to the ranks."""
    (tmp_path / "program.py").write_text(
        "import os, sys, threading, minflow as flow\n"
        "def work():\n"
        "    assert os.environ.get('RANK') is None and os.environ['MASTER_PORT']\n"
        "    print('main:', sys.modules['__main__'].__name__)\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    done = python(*launch, "-n", "2", "--virtual", tmp_path / "program.py", path=[TOP])
    assert (done.returncode, done.stdout) == (0, "main: __main__\n" * 2), done.stdout + done.stderr


REFUSED = [
    (["--node_rank", "1"], "--node_rank is 1"),
    (["--logdir", "logs"], "--logdir without"),
    (["--no_python", "-m"], "--no_python does not go with -m"),
    (["--nnodes=2"], "--nnodes is 2\n  Try: mpiexec -n 4 -hosts"),
    (["--nnodes", "1:4"], "--nnodes is 1:4"),
    (["--max_restarts=3"], "--max_restarts is 3"),
    (["--nproc_per_node", "gpu"], "--nproc_per_node is gpu"),
]


@pytest.mark.parametrize("option, says", REFUSED, ids=str)
def test_options_without_effect_are_refused(option, says, capsys):
    assert main(["-n", "2", "--virtual", *option, "program.py"]) == 1
    assert says in capsys.readouterr().err


def test_options_of_torch_run_on_one_machine(tmp_path):
    (tmp_path / "program.py").write_text("import os, sys\nprint(os.environ['WORLD_SIZE'], sys.argv[1:])")
    options = "--standalone --nnodes=1:1 --nproc-per-node=auto --max_restarts=0 --rdzv-backend c10d --rdzv_id=7".split()
    words = "-m", "minflow.compat", "--torch", "-m", "torch.distributed.run", *options, "--virtual"
    done = python(*words, "program.py", "--standalone", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.endswith(" ['--standalone']\n"), done.stderr
    assert done.stdout.count("\n") == int(done.stdout.split()[1])
    assert re.search("without effect.*: --standalone, --rdzv_backend, --rdzv_id\n", done.stderr)


@pytest.mark.parametrize("how", ["--virtual", pytest.param("", marks=mpi)])
def test_lines_are_printed_whole(how, tmp_path):
    (tmp_path / "program.py").write_text("print('a', 1, 'b')\nprint('no', 'newline', end='')")
    done = python(*launch, "-n", "2", *[how] * bool(how), tmp_path / "program.py", path=[TOP])
    assert {line.strip() for line in done.stdout.splitlines()} >= {"[0] a 1 b", "[1] a 1 b"}
    assert done.stdout.count("no newline") == 2


MAIN = """
import pickle, sys
from dataclasses import dataclass
from minflow import distributed as dist

@dataclass
class Settings:
    lr: float

Settings.rank = dist.get_rank()
found = [None, None]
dist.all_gather_object(found, Settings(0.1 * dist.get_rank()))
print([s.lr for s in found], [s.rank for s in found], __package__, sys.argv[1:], file=sys.stderr)
"""


@pytest.mark.parametrize("how", ["--virtual", pytest.param("", marks=mpi)])
def test_ranks_run_a_package_and_pickle_its_classes(how, tmp_path):
    """Each rank has its own `__main__`, and what others have pickled becomes objects of its own classes."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("print('initialized as', __name__)")
    (tmp_path / "package/__main__.py").write_text(MAIN)
    done = python(*launch, "-n", "2", *[how] * bool(how), "-m", "package", "a", cwd=tmp_path)
    said = [f"[{rank}] [0.0, 0.1] [{rank}, {rank}] package ['a']" for rank in range(2)]
    assert sorted(done.stderr.splitlines()) == said and not done.returncode, done.stdout + done.stderr
    assert done.stdout.count("initialized as package") == done.stdout.count("initialized") == (1 if how else 2)


@pytest.mark.parametrize("words", [["-m", "no_such_module"], ["no_such_program.py"], ["tests"]])
def test_a_program_that_does_not_exist(words, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert main(["--virtual", *words]) == 1
    assert f"there is no program {words[-1]!r}: " in capsys.readouterr().err


@mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_launcher_ends_all_ranks(number, tmp_path):
    (tmp_path / "program.py").write_text(
        "import os, time\nprint(os.getpid(), flush=True)\nfor i in range(600):\n    time.sleep(0.1)\n"
    )
    words = [sys.executable, *launch, "-n", "2", str(tmp_path / "program.py")]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(TOP)}, start_new_session=True
    )
    ranks = [int(process.stdout.readline().split()[-1]) for _ in range(2)]
    process.send_signal(number)
    assert process.wait(timeout=60) == 128 + number
    process.stdout.close()
    for rank in ranks:
        with pytest.raises(ProcessLookupError):
            os.kill(rank, 0)


def test_interrupt_ends_virtual_ranks_that_compute():
    def work():
        if dist.get_rank() == 0:
            signal.raise_signal(signal.SIGINT)
        while True:
            pass

    with flow.virtual_ranks(3) as ranks:
        with pytest.raises(KeyboardInterrupt):
            ranks.run(work)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("rank ")]
        assert ranks.run(dist.get_rank) == [0, 1, 2]


def test_two_threads_of_a_rank_cannot_call_collectives_at_once():
    called = threading.Event()

    def work():
        if dist.get_rank():
            assert called.wait(60)
            return
        flow.core.context.current_context().spawn(other)
        while not flow.distributed.world.world().world.rounds:
            time.sleep(0.001)
        try:
            dist.barrier()
        finally:
            called.set()

    def other():
        with contextlib.suppress(flow.RankError):
            dist.barrier()

    with flow.virtual_ranks(2) as ranks, pytest.raises(flow.RankError, match="two threads of rank 0 call collectives"):
        ranks.run(work)


def test_error_of_a_rank_is_raised_with_its_rank():
    def work():
        if dist.get_rank() == 2:
            raise ValueError("oops")
        dist.barrier()

    with flow.virtual_ranks(3) as ranks, pytest.raises(ValueError, match="oops") as caught:
        ranks.run(work)
    assert caught.value.__notes__ == ["on rank 2 of 3"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rank ")]


def test_a_rank_that_has_ended_is_named():
    with flow.virtual_ranks(2) as ranks, pytest.raises(flow.RankError, match="rank 1 has ended without #1 barrier"):
        ranks.run(lambda: dist.get_rank() or dist.barrier())


def timeout_of_all():
    dist.init_process_group(timeout=0.3)
    return dist.barrier


def timeout_of_a_group():
    group = dist.new_group(timeout=timedelta(seconds=0.3))
    return lambda: dist.barrier(group)


def timeout_of_a_call():
    return lambda: dist.monitored_barrier(timeout=0.3)


PLACE = r"rank 1 +is at test_ranks.py:\d+  release\.wait.*this line"


@pytest.mark.parametrize("call_of", [timeout_of_all, timeout_of_a_group, timeout_of_a_call])
def test_place_of_a_missing_rank_is_shown(call_of):
    release = threading.Event()

    def work():
        call = call_of()
        if dist.get_rank() == 1:
            release.wait(60)  # this line
        else:
            try:
                until(lambda: release._cond._waiters)  # before the 0.3 seconds begin
                call()
            finally:
                release.set()

    with flow.virtual_ranks(2) as ranks, pytest.raises(flow.RankError, match=PLACE) as caught:
        ranks.run(work)
    assert "after 0.3 seconds not all ranks have called #1 barrier" in str(caught.value)


def test_receive_of_another_shape_is_refused():
    def work():
        if dist.get_rank():
            dist.send(flow.ones(3), 0)
        else:
            dist.recv(flow.ones(4), 1)

    with (
        flow.virtual_ranks(2) as ranks,
        pytest.raises(flow.RankError, match=r"sent +float32\[3\]\s+expected +float32\[4\]"),
    ):
        ranks.run(work)


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda: dist.broadcast(flow.ones(2), src=5), "rank 5 does not belong to the group"),
        (lambda: dist.all_reduce([1.0]), "tensor must be a tensor, got"),
        (lambda: dist.all_reduce(flow.ones(2), op="sums"), "unknown reduction 'sums'"),
        (lambda: dist.all_gather([flow.ones(2)] * 3, flow.ones(2)), "a list of 1 tensors, one for each rank, got 3"),
        (lambda: dist.all_gather_into_tensor(flow.ones(3), flow.ones(2)), "3 elements, and the ranks together 2"),
        (lambda: dist.all_gather_into_tensor(flow.arange(2), flow.ones(2)), r"sent float32\[2\].*tensor of int64\[2\]"),
        (lambda: dist.all_gather([flow.ones(2, 2)], flow.ones(2)), r"sent float32\[2\].*tensor of float32\[2, 2\]"),
        (
            lambda: dist.all_to_all_single(flow.ones(2), flow.ones(2), [1]),
            r"output_split_sizes is \[1\], .* \[2\] rows",
        ),
        (lambda: dist.init_process_group(world_size=4), "world_size is 4, and the launcher gave 1"),
        (lambda: dist.init_process_group(rank=2), r"rank is 2, .* gave 0\s+rank +2\s+rank found +0"),
        (lambda: dist.new_group([0, 1]), "there is no rank 1 among 1[\\s\\S]*minflow launch -n 2"),
        (lambda: dist.recv(flow.ones(2), 0), "waits for an array that it has not sent"),
        (lambda: dist.all_reduce(flow.ones(2), group=3), "group must be a process group, got 3"),
        (lambda: dist.P2POp(dist.send, flow.ones(2), 0), "op must be isend or irecv"),
        (lambda: flow.virtual_ranks(0).__enter__(), "a number of ranks, at least 1, not 0"),
        (lambda: DistributedDataParallel(lambda x: x), "DistributedDataParallel takes a module"),
    ],
)
def test_mistakes_are_explained(call, match):
    with pytest.raises(flow.MinflowError, match=match):
        call()


def test_world_size_without_a_launcher_is_refused():
    done = python("-c", "import minflow as flow; flow.env.get_rank()", WORLD_SIZE="2", RANK="0")
    assert "WORLD_SIZE is 2, and no launcher has started this process" in done.stderr
    assert "launch -n 2 program.py" in done.stderr


@mpi
@pytest.mark.parametrize("options", [[], ["-pmi-port"]], ids=str)
def test_programs_of_mpiexec_have_ranks(options):
    """Without our launcher; Hydra has an option by which processes do not know their number."""
    program = "import os, minflow as flow; os.write(1, b'%d %d\\n' % (flow.env.get_rank(), flow.env.get_world_size()))"
    words = [launcher(), *options, "-n", "2", sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, env=environment())
    assert sorted(done.stdout.split("\n")) == ["", "0 2", "1 2"], done.stdout + done.stderr


@mpi
def test_srun_that_does_not_connect_its_processes_is_refused():
    settings = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "1"}
    done = python("-c", "import minflow as flow; flow.env.get_rank()", **settings)
    assert "the launcher has started 4 processes, and mpi4py knows 1" in done.stderr and done.returncode == 1
    assert "srun --mpi=pmi2 -n 4 python program.py" in done.stderr


def test_collectives_are_refused_in_a_graph():
    class Reduced(nn.Graph):
        def build(self, x):
            dist.all_reduce(x)
            return x

    with pytest.raises(flow.TraceError, match=r"all_reduce\(\) reads the elements of a symbolic tensor"):
        Reduced()(flow.ones(2))


class Normalized(nn.Graph):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def build(self, x):
        return self.layer(x)


@pytest.mark.parametrize(
    "work, error, match",
    [
        (
            lambda: Normalized(nn.SyncBatchNorm(3))(flow.ones(4, 3)),
            flow.GraphError,
            "a graph cannot compute statistics",
        ),
        (
            lambda: nn.SyncBatchNorm(3)(flow.ones(1 - dist.get_rank(), 3)),
            flow.ShapeError,
            r"one element on all ranks together, \[[01], 3\] here",
        ),
        (
            lambda: nn.SyncBatchNorm(3, process_group=dist.new_group([0]))(flow.ones(4, 3)),
            flow.RankError,
            "SyncBatchNorm: this rank does not belong to the group",
        ),
    ],
)
def test_mistakes_with_statistics_over_ranks(work, error, match):
    with flow.virtual_ranks(2) as ranks, pytest.raises(error, match=match):
        ranks.run(work)


@pytest.mark.parametrize("size", [1, 2])
def test_copies_of_prepared_modules_are_ordinary_modules(size):
    """As the moving average of weights that only one rank evaluates."""

    def work():
        model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)))
        for copied in (copy.deepcopy(model.module), pickle.loads(pickle.dumps(model))):
            assert not isinstance(copied, DistributedDataParallel) and isinstance(model, DistributedDataParallel)
            assert copied[0].weight.tolist() == model[0].weight.tolist() and copied.module is copied
            if dist.get_rank() == 0:  # no collective: the other rank does not come
                copied(flow.ones(3, 2)).sum().backward()
                with copied.no_sync():
                    copied(flow.ones(3, 2)).sum().backward()
            assert model[0].weight.grad is None
        twin = DistributedDataParallel(copy.deepcopy(model))
        twin(flow.full((3, 2), dist.get_rank() + 1.0)).pow(2).sum().backward()
        return twin[0].bias.grad.tolist()

    with flow.virtual_ranks(size) as ranks:
        first, *others = ranks.run(work)
    assert others == [first] * (size - 1)


def test_unused_parameters_are_named_and_count_as_zero():
    def work():
        rank = dist.get_rank()
        own = nn.ModuleList([nn.Linear(1, 1, bias=False) for _ in range(3)])  # of rank 0, of rank 1, of none
        own.forward = lambda x: own[rank](x)
        model = DistributedDataParallel(own)
        model(flow.full((1, 1), 2.0)).sum().backward()
        return [p.grad.item() for p in model.parameters()]

    with pytest.warns(flow.MinflowWarning) as caught, flow.virtual_ranks(2) as ranks:
        assert ranks.run(work) == [[1.0, 1.0, 0.0]] * 2
    names = ["1.weight, 2.weight", "0.weight, 2.weight"]
    what = "DistributedDataParallel: 2 parameters got no gradient on rank {}, and count as zero\n  unused  '{}'"
    said = {str(warning.message).partition("\n  at")[0] for warning in caught}
    assert said == {what.format(rank, names[rank]) for rank in range(2)}


def test_tests_of_oneflow_run_on_ranks():
    import minflow.unittest

    def skipped():
        return getattr(flow.unittest.skip_unless_1n2d()(type("Case", (), {})), "__unittest_skip__", False)

    assert minflow.unittest is flow.unittest
    for size, answer in [(2, False), (4, True)]:
        with flow.virtual_ranks(size) as ranks:
            assert ranks.run(skipped) == [answer] * size


def test_ranks_train_graphs_and_jobs_side_by_side():
    """Each rank has its own graphs; a rank waits in a collective between two of their steps."""

    class Train(nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

        def build(self, x):
            loss = self.model(x).pow(2).mean()
            loss.backward()
            return loss

    def work():
        flow.manual_seed(0)
        graph, losses = Train(nn.Linear(3, 2)), []
        for _ in range(20):
            loss = graph(flow.ones(2, 3))
            dist.all_reduce(loss)
            losses.append(loss.item())
        return losses

    with flow.virtual_ranks(1) as ranks:
        (alone,) = ranks.run(work)
    with flow.virtual_ranks(3) as ranks:
        assert [[pytest.approx(3 * x) for x in alone]] * 3 == ranks.run(work)


def test_many_collectives_under_load():
    """The order of threads changes all the time; no call hangs or mixes up two calls."""
    sys.setswitchinterval(1e-5)
    try:

        def work():
            t, total = flow.ones(3), 0
            for i in range(300):
                t.fill_(float(i + dist.get_rank()))
                dist.all_reduce(t)
                total += t[0].item()
            return total

        with flow.virtual_ranks(4) as ranks:
            assert set(ranks.run(work)) == {float(sum(4 * i + 6 for i in range(300)))}
    finally:
        sys.setswitchinterval(5e-3)


def test_each_rank_prints_its_number_as_that_of_the_cpu():
    """As in OneFlow."""
    with flow.virtual_ranks(2) as ranks:
        texts = ranks.run(lambda: (str((x := flow.ones(2)).device), flow.device(str(x.device)) is x.device))
    assert texts == [("cpu:0", True), ("cpu:1", True)]
    assert str(flow.ones(2).device) == "cpu:0"
