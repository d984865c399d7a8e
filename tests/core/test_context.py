"""Contexts: what each rank has of its own, while several run in one process."""

import copy
import pickle
import re
import sys
import threading
import warnings

import numpy as np
import pytest

import minflow as flow
import minflow.nn.functional as F
import minflow.typing as tp
from minflow import nn
from minflow.core import mode
from minflow.core.base import events
from minflow.core.base.errors import ContextError
from minflow.core.context import PROCESS_CONTEXT, Context, PerContext, current_context, entered, virtual_contexts
from minflow.core.random import default_generator
from minflow.job.queue.stream import current_stream
from minflow.job.session import default_session
from minflow.library import custom_op
from tests.threads import LONG, run_in_threads

STEPS = 1_000


def on_ranks(count, function):
    """Call `function(rank)` on the thread of each of `count` virtual ranks, and return the results in order."""

    def run(rank):
        with entered(contexts[rank]):
            return function(rank)

    with virtual_contexts(count) as contexts:
        return run_in_threads(count, run)


def alone(function, rank):
    with entered(Context()):
        return function(rank)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(8, 16), nn.Dropout(0.3), nn.Linear(16, 4)

    def forward(self, x):
        return self.last(self.drop(self.first(x).relu()))


def model_and_data(rank):
    flow.manual_seed(rank)
    model = MLP()
    return model, flow.optim.Adam(model.parameters(), lr=0.01), flow.randn(12, 8), flow.randint(0, 4, (12,))


def train_eagerly(rank):
    model, optimizer, x, y = model_and_data(rank)
    losses = []
    for _ in range(STEPS):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.numpy(force=True).tobytes() for p in model.parameters()]


class TrainGraph(nn.Graph):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        return loss


def train_graph(rank):
    model, optimizer, x, y = model_and_data(rank)
    graph = TrainGraph(model, optimizer)
    losses = [graph(x, y).item() for _ in range(STEPS)]
    return graph.name, losses, [p.numpy(force=True).tobytes() for p in model.parameters()]


def train_job(rank):
    flow.manual_seed(rank)
    images, labels = np.random.default_rng(rank).standard_normal((12, 8)).astype("f"), np.arange(12, dtype="i4") % 4

    @flow.global_function(type="train")
    def step(x: tp.Numpy.Placeholder((12, 8)), y: tp.Numpy.Placeholder((12,), dtype=flow.int32)) -> tp.Numpy:
        start = flow.truncated_normal(0.1)
        hidden = flow.layers.dense(x, 16, activation=flow.nn.relu, kernel_initializer=start, name="hidden")
        hidden = flow.nn.dropout(hidden, rate=0.3)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(
            y, flow.layers.dense(hidden, 4, kernel_initializer=start, name="out")
        )
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(loss)
        return loss

    losses = [step(images, labels).tobytes() for _ in range(STEPS)]
    assert step.steps == STEPS and current_stream().history()[-1].number == STEPS
    return losses, {name: v.numpy().tobytes() for name, v in default_session().variables.items()}


@pytest.mark.parametrize("train", [train_eagerly, train_graph, train_job])
def test_two_ranks_train_with_the_bits_of_each_alone(train):
    wanted = [alone(train, rank) for rank in range(2)]
    assert wanted[0] != wanted[1]
    assert on_ranks(2, train) == wanted


@pytest.mark.parametrize("graphs", [False, True], ids=["jobs", "graphs"])
def test_plan_waits_for_a_plan_of_another_rank(graphs):
    """Kernels that meet, as those of a collective do: neither plan can end before the other has started."""
    meeting = threading.Barrier(2)

    @custom_op(f"meeting_of_{'graphs' if graphs else 'jobs'}(x)")
    def meet(xp, x):
        meeting.wait(LONG)
        return x + 1

    class Meeting(nn.Graph):
        def build(self, x):
            return meet(x * 2)

    def run(rank):
        if graphs:
            graph = Meeting()
            return [graph(flow.ones(3) * rank).sum().item() for _ in range(20)]

        @flow.global_function()
        def job(x: tp.Numpy.Placeholder((3,))) -> tp.Numpy:
            return meet(x * 2)

        return [job(np.full(3, rank, "f")).sum() for _ in range(20)]

    assert on_ranks(2, run) == [[3] * 20, [9] * 20]


def test_builds_of_two_ranks_take_turns():
    """A build watches `time.time` and others by wrappers, and stops the cycle collector, both in the whole process."""
    import gc
    import time

    before = time.time

    def build(rank):
        for _ in range(20):
            TrainGraph(*model_and_data(rank)[:2])(flow.ones(2, 8), flow.tensor([0, 1]))

    on_ranks(3, build)
    assert time.time is before and gc.isenabled()


def test_each_rank_has_its_own_numbers_names_and_warnings():
    class Named(nn.Graph):
        def build(self, x):
            return x + 1

    def run(rank):
        assert current_context().rank == rank and current_context().world_size == 2
        flow.manual_seed(3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            (flow.zeros(1, requires_grad=True).log() * 1).sum().backward()
        return flow.rand(2).tolist(), Named().name, len(caught)

    before = flow.get_rng_state().tolist()
    first, second = on_ranks_in_turn(2, run)
    assert first == second and first[1] == "Named_0" and first[2] >= 1
    assert flow.get_rng_state().tolist() == before and current_context() is PROCESS_CONTEXT


def on_ranks_in_turn(count, function):
    """As `on_ranks`, but one after the other, since `warnings.catch_warnings` changes the whole process."""
    with virtual_contexts(count) as contexts:
        found = []
        for rank, context in enumerate(contexts):
            with entered(context):
                found.append(function(rank))
        return found


def test_thread_of_unknown_rank_is_refused_while_ranks_are_open():
    refused = []

    def draw():
        try:
            flow.rand(2)
        except ContextError as error:
            refused.append(str(error))

    def run(rank):
        thread = threading.Thread(target=draw, name="of a user")
        thread.start()
        thread.join(LONG)
        spawned = current_context().spawn(draw)
        spawned.join(LONG)

    on_ranks(2, run)
    assert len(refused) == 2
    for message in refused:
        assert re.search(r"\n  at test_context\.py:\d+\n", message), message
        assert "none of the 2 virtual ranks" in message and "of a user" in message and "spawn" in message
    thread = threading.Thread(target=draw)
    thread.start()
    thread.join(LONG)
    assert len(refused) == 2  # no ranks are open


def test_graph_and_job_of_another_rank_are_refused():
    model, optimizer, x, y = model_and_data(0)
    graph = TrainGraph(model, optimizer)
    graph(x, y)

    @flow.global_function()
    def double(x: tp.Numpy.Placeholder((3,))) -> tp.Numpy:
        return x * 2

    def run(rank):
        with pytest.raises(ContextError, match=rf"{graph.name} is called on another rank[\s\S]*rank={rank}"):
            graph(x, y)
        with pytest.raises(ContextError, match=rf"the job double is called on another rank[\s\S]*rank={rank}"):
            double(np.ones(3, "f"))

    on_ranks_in_turn(2, run)
    assert graph._steps == 1 and (double(np.ones(3, "f")) == 2).all()


def test_events_carry_the_rank():
    seen = []

    def run(rank):
        flow.ones(2, requires_grad=True).sum().backward()

    with events.subscribe(events.BackwardDone, seen.append):
        on_ranks(3, run)
    assert sorted(event.rank for event in seen) == [0, 1, 2]


def test_threads_that_minflow_starts_inherit_the_rank():
    class Ranks(flow.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return current_context().rank

    def run(rank):
        loader = flow.utils.data.DataLoader(Ranks(), batch_size=2, num_workers=2, workers="thread")
        seen = [batch.tolist() for batch in loader]

        @flow.global_function()
        def job(x: tp.Numpy.Placeholder((1,))) -> tp.Callback[tp.Numpy]:
            return x

        job(np.ones(1, "f"))(lambda result: seen.append(current_context().rank))
        flow.sync_default_session()
        return seen

    assert on_ranks(2, run) == [[[0, 0], [0, 0], 0], [[1, 1], [1, 1], 1]]


def test_copies_of_the_default_generator_are_independent():
    flow.manual_seed(5)
    copies = [copy.deepcopy(default_generator), pickle.loads(pickle.dumps(default_generator))]
    state = default_generator.get_state().tolist()
    for generator in copies:
        assert generator.get_state().tolist() == state and generator.take() == 0
    assert default_generator.get_state().tolist() == state
    with entered(Context()):
        assert default_generator.get_state().tolist() != state


def test_writes_of_several_threads_have_different_numbers():
    """With `count += 1`, a plan that has seen the write of one thread could take that of another for it."""
    numbers = [[] for _ in range(4)]

    class Recording(type(mode.mutation_counter)):
        def __setattr__(self, name, value):
            numbers[int(threading.current_thread().name)].append(value)

    def write(number):
        threading.current_thread().name = str(number)
        for _ in range(2_000):
            mode.bump_mutations()

    before, mode.mutation_counter = mode.mutation_counter, Recording()
    try:
        run_in_threads(4, write)
    finally:
        mode.mutation_counter = before
    assert len({n for row in numbers for n in row}) == 8_000


def test_value_per_context():
    value = PerContext(list)
    value().append(1)
    with entered(Context()):
        assert value() == []
        assert len(value.known()) == 2
    assert value() == [1]


def test_known_values_while_other_threads_add_contexts():
    value, added, ended = PerContext(int), [], threading.Event()

    def add():
        while not ended.is_set():
            added[:] = [Context() for _ in range(100)]

    thread = threading.Thread(target=add)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        assert [value.known() for _ in range(2000)] == [[]] * 2000
    finally:
        sys.setswitchinterval(before)
        ended.set()
        thread.join()
