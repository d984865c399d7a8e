"""Programs of tasks: Python's results, with the same bits at any thread count and beside other callers."""

import os
import signal
import threading
import time

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from graph_models import FunctionGraph
from kernel_checks import printed

import minflow as flow
from minflow.compat.namespaces.threads import Settings
from minflow.compiler.plan import Plan
from minflow.core import memory as free_memory
from minflow.core.kernels import KERNELS, Kernel, clear_caches
from minflow.core.ops.elementwise import add, neg
from minflow.platforms.compiled.codegen.llvm import number_at, put
from minflow.platforms.compiled.config import CompiledKernelConfig
from minflow.platforms.compiled.lowering import BATCH_SETUP, Lowering
from minflow.platforms.compiled.runtime import task_scheduler
from minflow.platforms.compiled.runtime.instructions import instruction
from tests import sampling
from tests.clocks import until
from tests.single_tasks import tasks_of
from tests.threads import run_in_threads

PART = 8  # elements of a chunk


@instruction
def scale(chunk, scratch, x, out, factor: float):
    """Compute out = x * factor through scratch memory."""
    for i in range(8):
        put(scratch, i, number_at(x, chunk * 8 + i) * np.float32(factor))
    for i in range(8):
        put(out, chunk * 8 + i, number_at(scratch, i))


@instruction
def mix(chunk, scratch, x, y, out):
    """Compute out = x + y."""
    for i in range(8):
        put(out, chunk * 8 + i, number_at(x, chunk * 8 + i) + number_at(y, chunk * 8 + i))


@instruction
def partial(chunk, scratch, x, sums):
    """Sum the elements of a chunk."""
    total = np.float32(0)
    for i in range(8):
        total += number_at(x, chunk * 8 + i)
    put(sums, chunk, total)


@instruction
def total(chunk, scratch, sums, count, out):
    """Add the sums of all chunks in order."""
    found = np.float32(0)
    for i in range(count):
        found += number_at(sums, i)
    put(out, 0, found)


@instruction
def long(chunk, scratch, out, rounds):
    """Take some time and write 2 plus an element of scratch memory."""
    x = np.float32(chunk)
    for _ in range(rounds):
        x = x * np.float32(0.5) + np.float32(1)
    put(out, chunk, np.float32(((scratch >> 6) & 0xFFFFF) * 8) + x)


@pytest.fixture(autouse=True)
def restore_threads():
    before = Settings.threads
    yield
    Settings.threads = before


def random_program(seed, count=40):
    """Arrays, tasks on them, and the same in Python."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(PART * int(rng.integers(1, 24))).astype("f4") for _ in range(4)]
    arrays = [np.concatenate([a, a[:-PART], a]) if len(a) > PART else a for a in arrays] + [np.zeros(1, "f4")]
    steps, python = [], []
    for _ in range(count):
        kind, x, y = rng.integers(3), *[arrays[i] for i in rng.integers(4, size=2)]
        least = min(len(x), len(y)) // PART
        if kind == 0:
            factor = np.float32(rng.uniform(0.5, 1.5))
            steps.append(scale(least, x, y, float(factor), scratch=PART))
            python.append(lambda x=x, y=y, n=least * PART, f=factor: np.multiply(x[:n], f, out=y[:n]))
        elif kind == 1:
            steps.append(mix(least, x, y, y))
            python.append(lambda x=x, y=y, n=least * PART: np.add(x[:n], y[:n], out=y[:n]))
        else:
            sums = np.empty(len(x) // PART, "f4")
            steps += [partial(len(sums), x, sums), total(1, sums, len(sums), arrays[4]), mix(0, x, x, x)]
            python.append(lambda x=x, out=arrays[4]: out.__setitem__(0, in_order([in_order(p) for p in parts(x)])))
    return arrays, steps, python


def parts(x):
    return x.reshape(-1, PART)


def in_order(numbers):
    found = np.float32(0)
    for one in numbers:
        found = np.float32(found + one)
    return found


def bits(arrays):
    return b"".join([a.tobytes() for a in arrays])


def by_python(seed):
    arrays, _, calls = random_program(seed)
    with np.errstate(all="ignore"):
        for call in calls:
            call()
    return bits(arrays)


def compiled_bits(seed):
    arrays, steps, _ = random_program(seed)
    task_scheduler.Program(steps)()
    return bits(arrays)


@pytest.mark.parametrize("seed", range(8))
def test_results_match_python_at_any_thread_count(seed):
    for Settings.threads in (1, 2, 3, 8):
        assert compiled_bits(seed) == by_python(seed), Settings.threads


def test_thread_count_may_change_between_runs():
    out = np.zeros(64, "f4")
    run = task_scheduler.Program([long(64, out, 1000)])
    for count in (1, 4, 2, 8, 3, 1):
        Settings.threads = count
        out[:] = 0
        run()
        assert out.all()
    assert task_scheduler.TEAM.helpers == 7


def test_empty_program():
    task_scheduler.Program([])()
    Settings.threads = 2
    task_scheduler.Program([mix(0, np.zeros(0, "f4"), np.zeros(0, "f4"), np.zeros(0, "f4"))])()


def test_workers_take_chunks():
    """Each thread has its own scratch memory: in some run, chunks have seen more than one."""
    Settings.threads = 2
    out = np.zeros(400, "f4")
    run = task_scheduler.Program([long(400, out, 20000, scratch=16)])
    for _ in range(200):
        run()
        if len(set(out.tolist())) == 2:
            return
    pytest.fail("the helper has never worked")


def repeated(seed, runs, stop=None):
    """A random program, run repeatedly from the same inputs, has the same bits each time."""
    arrays, steps, _ = random_program(seed)
    begin, run, first = [a.copy() for a in arrays], task_scheduler.Program(steps), None
    for _ in range(runs):
        for a, b in zip(arrays, begin):
            a[:] = b
        run()
        first = first or bits(arrays)
        assert bits(arrays) == first
        if stop is not None and stop.is_set():
            return


def test_concurrent_callers():
    Settings.threads = 3
    run_in_threads(3, lambda number: repeated(number, 300))


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="this system does not say what memory is used")
def test_many_runs_under_load():
    """Two callers, a third thread that holds the GIL now and then, a process that takes a core now and then."""
    Settings.threads = 2
    stop, rng = threading.Event(), np.random.default_rng(0)
    child = os.fork()
    if child == 0:
        while True:
            time.sleep(rng.uniform(0, 0.01))
            end = time.perf_counter() + rng.uniform(0, 0.02)
            while time.perf_counter() < end:
                pass

    def load():
        while not stop.is_set():
            sum(range(int(rng.integers(100_000))))
            time.sleep(rng.uniform(0, 0.005))

    busy = threading.Thread(target=load)
    busy.start()
    try:
        run_in_threads(2, lambda number: repeated(number, 500))
        for _ in range(3):  # other threads of this process may allocate, in one of the tries
            before = memory()
            run_in_threads(2, lambda number: repeated(number, 5000 if sampling.complete else 700))
            if (grown := memory() - before) < 4 << 20:
                break
        assert grown < 4 << 20
    finally:
        stop.set()
        busy.join()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_during_a_run():
    """Fork while another thread runs programs: the child starts its own workers, the parent keeps its workers."""
    Settings.threads = 2
    stop = threading.Event()
    other = threading.Thread(target=repeated, args=(1, 10**9, stop))
    other.start()
    try:
        for _ in range(3):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    repeated(2, 50)
                    code = 0 if task_scheduler.TEAM.helpers == 1 else 2
                finally:
                    os._exit(code)
            repeated(3, 20)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        other.join()


def test_interrupt_is_raised_after_the_program(collector_off):
    Settings.threads = 2
    out = np.zeros(100, "f4")
    run = task_scheduler.Program([long(100, out, 3000)] * 200)
    timer = threading.Timer(0.01, os.kill, [os.getpid(), signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        while True:
            out[:] = 0
            run()
    timer.join()
    run()
    assert out.all()
    repeated(1, 20)


def test_program_is_freed_while_workers_sleep():
    Settings.threads = 2
    for seed in range(20):
        repeated(seed, 2)
        until(lambda: task_scheduler.TEAM.words[task_scheduler.SLEEPING // 8] == task_scheduler.TEAM.helpers)


def test_process_exits_while_workers_spin():
    code = """
        from minflow.compat.namespaces.threads import Settings
        from minflow.platforms.compiled.runtime import task_scheduler
        Settings.threads = 3
        task_scheduler.TEAM.grow(2, 64)
        task_scheduler.TEAM.words[task_scheduler.WANTED // 8] = 3
        """
    for _ in range(3 if sampling.complete else 1):
        printed(code)


# ---- in plans --------------------------------------------------------------------------------------------------------


def adding(arrays, outs, space, **attrs):
    """Builder of a sum as two tasks through a workspace."""
    (x, y), (out,) = arrays, outs
    if not all(isinstance(a, np.ndarray) and a.size % PART == 0 and a.dtype == np.float32 for a in (x, y)):
        return None
    between = space.take(x.size)
    return [scale(x.size // PART, x, between, 1.0, scratch=PART), mix(x.size // PART, between, y, out)]


@pytest.fixture
def set_kernel(monkeypatch):
    """A function (op, platform, kernel) that replaces a kernel until the test ends."""

    def replace(op, platform, kernel):
        monkeypatch.setitem(KERNELS, (op, platform), kernel)
        clear_caches()

    yield replace
    monkeypatch.undo()
    clear_caches()


@pytest.fixture
def steps_for_add(monkeypatch, set_kernel):
    lower = Lowering(add, adding, BATCH_SETUP, True, None)
    set_kernel(add, "compiled", Kernel(None, lower=lower, declines=True))
    monkeypatch.setattr(CompiledKernelConfig, "graphs", "all")


def chain(x, y):
    z = x + y + x  # two sums, one call
    z = (-z) + y  # a NumPy call before the third
    return z + x + 1.0  # a scalar operand is not supported


def plan_of(graph) -> Plan:
    return graph._last.parts[0].plan


def test_adjacent_tasks_are_one_call(steps_for_add):
    x, y = flow.randn(4, 16), flow.randn(4, 16)
    graph, expected = FunctionGraph(chain), chain(x, y)
    assert np.array_equal(graph(x, y).numpy(), expected.numpy())
    plan = plan_of(graph)
    units, firsts = plan.units
    assert [node.op.name for node in plan.nodes] == ["add", "add", "neg", "add", "add", "add"]
    assert [isinstance(unit, task_scheduler.Program) for unit in units] == [True, False, True, False]
    assert firsts == [plan.nodes[i] for i in (0, 2, 3, 5)]
    assert [len(unit.steps) for unit in units[::2]] == [4, 4]
    graph.profile()
    assert np.array_equal(graph(x, y).numpy(), expected.numpy()) and len(plan.seconds) == 6
    for count in (1, 2, 3):
        Settings.threads = count
        assert np.array_equal(graph(x, y).numpy(), expected.numpy())


def test_large_inputs_are_not_copied(steps_for_add):
    x, y = flow.randn(1000, 320), flow.randn(1000, 320)
    graph = FunctionGraph(chain)
    assert np.array_equal(graph(x, y).numpy(), chain(x, y).numpy())
    assert [isinstance(unit, task_scheduler.Program) for unit in plan_of(graph).units[0]].count(True) == 0


def test_observer_sees_tasks_one_by_one(steps_for_add):
    x, y = np.ones(16, "f4"), np.full(16, 2, "f4")
    graph = FunctionGraph(chain)
    graph(flow.tensor(x), flow.tensor(y))
    plan, seen = plan_of(graph), []
    plan.run([x, y], watch=lambda node, arrays: seen.append((node.op.name, float(arrays[0][0]))))
    assert seen == [("add", 3.0), ("add", 4.0), ("neg", -4.0), ("add", -2.0), ("add", -1.0), ("add", 0.0)]


def test_error_names_its_node_in_a_merged_call(steps_for_add, set_kernel):
    wrong = []

    def negative(x, out):
        if wrong:
            raise ValueError("now")
        return np.negative(x, out=out)

    set_kernel(neg, "reference", Kernel(negative))
    graph, (x, y) = FunctionGraph(chain), (flow.randn(4, 16), flow.randn(4, 16))
    expected = graph(x, y).numpy()
    wrong.append(True)
    with pytest.raises(ValueError, match="now"):
        graph(x, y)
    assert plan_of(graph).failed.op is neg
    wrong.clear()
    assert np.array_equal(graph(x, y).numpy(), expected)


def test_workspace_is_shared(steps_for_add):
    """All ops of a plan share one workspace, of the largest size needed."""
    graph = FunctionGraph(chain)
    graph(flow.randn(4, 16), flow.randn(4, 16))
    calls = [call for call in plan_of(graph).calls if hasattr(call, "join")]
    assert len({step.words[1] for call in calls for step in call.steps if step.name == "scale"}) == 1


@pytest.mark.parametrize("count", [1, 3])
def test_kernel_memory_is_checked(steps_for_add, monkeypatch, count):
    """The plan's workspace and the scratch memory of each thread count; the rest alone would fit."""
    Settings.threads = count
    x = flow.randn(300, 16)
    graph = FunctionGraph(chain)
    graph(x, x)
    plan = plan_of(graph)
    kernels = x.nbytes + count * PART * 4
    needed = plan.arena_bytes + x.nbytes + kernels
    monkeypatch.setattr(free_memory, "MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr(free_memory, "free_bytes", lambda: needed - 1)
    with pytest.raises(flow.OutOfMemoryError) as found:
        FunctionGraph(chain)(x, x)
    error = found.value
    assert "the plan of this graph needs 0.1 MB of memory" in error.what and "test_task_scheduler.py:" in error.where
    assert error.values["needed"] == f"{needed} bytes, 0.0 MB of them for kernels to compute with"
    assert error.values["free"] == f"{needed - 1} bytes" and "smaller batch" in error.hint
    monkeypatch.setattr(free_memory, "free_bytes", lambda: needed)
    assert np.array_equal(FunctionGraph(chain)(x, x).numpy(), graph(x, x).numpy())


def test_thread_creation_failure(monkeypatch):
    """The calling thread does the work."""

    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr(task_scheduler, "TEAM", task_scheduler.Team())
    Settings.threads = 4
    assert compiled_bits(3) == by_python(3)


def test_growing_workspace_uses_at_most_twice_its_size():
    team = task_scheduler.Team()
    for bytes in range(1000, 100_000, 1000):
        if team.bytes < bytes:
            team.grow(0, bytes)
        assert bytes <= team.bytes
    assert len(team.held) < 20


def test_tasks_of_one_op():
    x, y, out = np.arange(16, dtype="f4"), np.ones(16, "f4"), np.empty(16, "f4")
    task_scheduler.Program(tasks_of(adding, [x, y], [out]))()
    assert np.array_equal(out, x + 1) and tasks_of(adding, [x, 1.0], [out]) is None
