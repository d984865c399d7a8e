"""graph.submit and flow.start of a graph: the bits of the synchronous call, order, errors, pause and stop, memory."""

import gc
import threading
import weakref

import numpy as np
import pytest
from builders import LONG, job_of, raised_error, thread, wait

import minflow as flow
from minflow import nn
from minflow.core import dispatch, in_flight, mode
from minflow.job.queue.stream import current_stream
from tests.clocks import until

pytestmark = pytest.mark.usefixtures("clean_queue")
X = flow.ones(3, 4)


class Train(nn.Graph):
    def __init__(self, model, optimizer, loss=None, **options):
        super().__init__()
        self.model, self.loss = model, loss or (lambda y, *_: y.square().mean())
        self.add_optimizer(optimizer, **options)

    def build(self, x, *labels):
        loss = self.loss(self.model(x), *labels)
        loss.backward()
        return loss


class Evaluate(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


class Count(nn.Module):
    """A model whose weight is the number of steps of `counting`."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(flow.zeros(4))

    def forward(self, x):
        return (x * self.weight).sum(0)


def counting():
    """A graph whose step adds 1 to `weight` and returns it from before the step, and its model."""
    model = Count()
    graph = Train(model, flow.optim.SGD(model.parameters(), 1.0, maximize=True), lambda y: y.sum())
    graph(flow.zeros(1, 4))
    return graph, model


ONE = flow.ones(1, 4)


# ---- the bits of the synchronous call --------------------------------------------------------------------------------


def mlp():
    return nn.Sequential(nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 3))


def cnn():
    pool = nn.AdaptiveAvgPool2d(1)
    return nn.Sequential(nn.Unflatten(1, (1, 6, 6)), nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), pool,
                         nn.Flatten(), nn.Linear(8, 3))  # fmt: skip


def dropped():
    return nn.Sequential(nn.Linear(36, 16), nn.Dropout(0.4), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))


def batches(count):
    rng = np.random.default_rng(5)
    xs, ys = rng.standard_normal((count, 24, 36)).astype("f"), rng.integers(0, 3, (count, 24))
    return [(flow.tensor(x), flow.tensor(y)) for x, y in zip(xs, ys)]


def trained(make, call, **settings):
    """Losses, learning rates, draws of the program, and all states after 10 steps, as bytes."""
    flow.manual_seed(11)
    model = make()
    optimizer = flow.optim.AdamW(model.parameters(), 0.02)
    schedule = flow.optim.lr_scheduler.CosineAnnealingLR(optimizer, 7)
    graph = Train(model, optimizer, nn.CrossEntropyLoss(), lr_sch=schedule)
    for name, value in settings.items():
        getattr(graph.config, name)(value)
    losses = call(graph, batches(10))
    states = [t for _, t in sorted(model.state_dict().items())]
    states += [t for p in model.parameters() for t in optimizer.state[p].values()]
    rates = schedule.get_last_lr(), schedule.last_epoch, graph._steps
    return [x.numpy(force=True).tobytes() for x in (*losses, *states, flow.rand(3))], rates


def called(graph, data):
    return [result for x, y in data for result in (graph(x, y), flow.rand(2))]


def submitted(graph, data):
    losses, draws = [], []
    for x, y in data:
        graph.submit(x, y)(losses.append)
        draws.append(flow.rand(2))
    flow.sync_default_session(LONG)
    return [result for pair in zip(losses, draws) for result in pair]


def started(graph, data):
    losses, draws = [], []

    def loader():
        for batch in data:
            yield batch
            draws.append(flow.rand(2))

    assert flow.start(graph, loader(), callback=losses.append).result(LONG) is losses[-1]
    return [result for pair in zip(losses, draws) for result in pair]


@pytest.mark.parametrize("call", [submitted, started])
@pytest.mark.parametrize("settings", [{}, {"exact": True}, {"set_gradient_accumulation_steps": 2}], ids=str)
@pytest.mark.parametrize("make", [mlp, cnn, dropped])
def test_bits_of_the_synchronous_call(make, settings, call):
    wanted = trained(make, called, **settings)
    found = trained(make, call, **settings)
    assert found == wanted


def test_bits_of_an_evaluation_between_training_steps():
    """One model, with dropout in train mode and running statistics in eval mode."""

    def run(submits):
        flow.manual_seed(4)
        model = nn.Sequential(nn.Linear(36, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
        train = Train(model, flow.optim.SGD(model.parameters(), 0.1, momentum=0.9), nn.CrossEntropyLoss())
        evaluate, found = Evaluate(model), []
        for x, y in batches(6):
            model.train()
            found.append(train.submit(x, y) if submits else train(x, y))
            model.eval()
            found.append(evaluate.submit(x) if submits else evaluate(x))
        return [(step.get(LONG) if submits else step).numpy().tobytes() for step in found]

    assert run(True) == run(False)


def test_strided_inputs_of_an_exact_graph():
    model = nn.Sequential(nn.Linear(36, 16), nn.LayerNorm(16))
    graph = Evaluate(model)
    graph.config.exact(True)
    x = flow.rand(36, 24).T
    assert graph.submit(x).get(LONG).numpy().tobytes() == model(x).detach().numpy().tobytes()


def test_inputs_are_copied():
    graph, x = Evaluate(nn.Identity()), flow.ones(4)
    step = graph.submit(x)
    x.zero_()
    assert step.get(LONG).tolist() == [1, 1, 1, 1]


# ---- order -----------------------------------------------------------------------------------------------------------


def test_graphs_and_jobs_share_one_order():
    (first, _), (second, _), seen = counting(), counting(), []
    job = job_of(lambda x: x * 2, (4,), result=None)
    for _ in range(5):
        first.submit(ONE)(lambda loss: seen.append(("first", loss.item())))
        job(np.ones(4, "f"))(lambda result: seen.append(("job", result.numpy()[0])))
        second.submit(ONE)(lambda loss: seen.append(("second", loss.item())))
    flow.sync_default_session(LONG)
    assert seen == [entry for i in range(5) for entry in (("first", 4 * i), ("job", 2), ("second", 4 * i))]


def test_at_most_two_steps_are_in_flight(worker_hold, monkeypatch):
    (graph, model), full, room, steps = counting(), threading.Event(), current_stream().wait_for, []
    hold(worker_hold, graph)
    monkeypatch.setattr(current_stream(), "wait_for", lambda gate, timeout=None: (full.set(), room(gate, timeout))[1])
    with thread(lambda: [steps.append(graph.submit(ONE)) for _ in range(4)]):
        wait(full)
        assert len(steps) == 1 and len(flow.jobs()) == 2
        worker_hold.go.set()
    flow.sync_default_session(LONG)
    assert model.weight.tolist() == [5] * 4 and max(step.record.blocked for step in steps) > 0


def hold(worker_hold, graph):
    """Block the worker in the callback of a step of this graph."""
    step = graph.submit(ONE)
    step(worker_hold)
    wait(worker_hold.entered)
    return step


LATER = {
    "an op": lambda graph, model: (model.weight * 1).tolist(),
    "an op on a view": lambda graph, model: (model.weight[1:].detach() * 1).tolist(),
    "elements": lambda graph, model: model.weight.tolist(),
    "numpy": lambda graph, model: model.weight.detach().numpy().tolist(),
    "a module": lambda graph, model: model(flow.ones(1, 4)).tolist(),
    "a copy": lambda graph, model: flow.clone(model.weight).tolist(),
    "another graph": lambda graph, model: Evaluate(model)(ONE).tolist(),
    "the state": lambda graph, model: graph.state_dict()["model"]["weight"].tolist(),
}


@pytest.mark.parametrize("use", LATER)
def test_reads_wait_for_the_steps_that_write(worker_hold, use):
    (graph, model), found = counting(), []
    hold(worker_hold, graph)
    graph.submit(ONE)
    with thread(lambda: found.append(LATER[use](graph, model))) as reader:
        reader.join(0.05)
        assert reader.is_alive() and found == []
        worker_hold.go.set()
    assert {number for number in np.ravel(found)} == {2}


def step_by(optimizer, p, gradient):
    p.grad = flow.full(p.shape, gradient)
    optimizer.step()


WRITES = {
    "in place": lambda graph, model: model.weight.data.fill_(10.0),
    "a state dict": lambda graph, model: model.load_state_dict({"weight": flow.full((4,), 10.0)}),
    "a synchronous call": lambda graph, model: graph(9 * ONE),
    "an optimizer": lambda graph, model: step_by(graph.optimizers[0][0], model.weight, 9.0),
}


@pytest.mark.parametrize("write", WRITES)
def test_writes_are_ordered_with_steps(worker_hold, write):
    graph, model = counting()
    with flow.no_grad():
        model.weight.fill_(-1.0)
    hold(worker_hold, graph)
    before = graph.submit(ONE)
    threading.Timer(0.05, worker_hold.go.set).start()
    WRITES[write](graph, model)
    after = graph.submit(ONE)
    assert before.get(LONG).item() == 0 and model.weight.tolist()[0] in (11, 12)
    assert after.get(LONG).item() == 4 * (model.weight.tolist()[0] - 1)


def test_learning_rate_is_ordered_with_steps(worker_hold):
    graph, model = counting()
    hold(worker_hold, graph)
    graph.submit(ONE)
    threading.Timer(0.05, worker_hold.go.set).start()
    graph.optimizers[0][0].param_groups[0]["lr"] = 10.0
    graph.submit(ONE)
    assert model.weight.tolist() == [12] * 4


def test_ops_cost_the_same_after_the_steps():
    graph, _ = counting()
    step = graph.submit(ONE)
    step(lambda loss: None)
    assert dispatch.current is in_flight.OrderedReads or step.finished.opened
    flow.sync_default_session(LONG)
    assert in_flight.IN_FLIGHT == [] and dispatch.current is mode.current


def test_callback_reads_the_model_and_calls_other_graphs():
    (graph, model), seen = counting(), []
    evaluate = Evaluate(model)
    for _ in range(3):
        graph.submit(ONE)(lambda loss: seen.append((model.weight.sum().item(), evaluate(ONE).tolist())))
    flow.sync_default_session(LONG)
    assert seen == [(4 * i, [i] * 4) for i in (1, 2, 3)]


# ---- handles ---------------------------------------------------------------------------------------------------------


def test_handle():
    graph, _ = counting()
    step = graph.submit(ONE)
    assert step.get(LONG).item() == 0 and step.done() and step.get().item() == 0 and not step.cancel()
    assert repr(step) == f"<step 1 of {graph.name}: done>"
    step.async_get(seen := [].append)
    flow.sync_default_session(LONG)
    assert seen.__self__[0] is step.get()
    error = raised_error(lambda: step + 1, flow.MinflowError, "arithmetic of a step of Train_")
    assert "graph.submit(...).get() waits for it" in error.hint
    error = raised_error(lambda: step(3), flow.MinflowError, "not callable")
    assert error.hint.startswith("graph.submit(...)(callback)")


def test_watch_of_a_run_names_the_curve():
    """`flow.watch` is a job's; what draws a run has the same name elsewhere."""
    error = raised_error(lambda: flow.watch(flow.start(counting()[0], [])), flow.MinflowError, "only inside a job")
    assert "from minflow_widgets import watch" in error.hint


def test_cancelled_step_does_not_run(worker_hold):
    graph, model = counting()
    hold(worker_hold, graph)
    step = graph.submit(ONE)
    assert step.cancel() and step.state == "cancelled"
    worker_hold.go.set()
    flow.sync_default_session(LONG)
    assert model.weight.tolist() == [1] * 4
    raised_error(step.get, flow.MinflowError, "was cancelled")


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_error_of_build_is_raised_where_it_is_submitted():
    graph, model = counting()
    error = raised_error(lambda: graph.submit(flow.ones(1, 3)), flow.MinflowError, r"mul.*\[1, 3\]|3")
    assert "test_async_graphs.py" in str(error)
    raised_error(lambda: graph.submit(3), flow.MinflowError, "the input x is an int")
    graph.submit(ONE)
    assert model.weight.tolist() == [1] * 4


def test_error_of_a_kernel_cancels_the_steps_behind_it(worker_hold):
    model = Count()
    graph = Evaluate(nn.Embedding(3, 2))
    index = flow.tensor([1])
    step = graph.submit(index)
    step(worker_hold)
    wait(worker_hold.entered)
    wrong = graph.submit(flow.tensor([7]))
    worker_hold.go.set()
    error = raised_error(wrong.get, flow.MinflowError, "step 2 of Evaluate_.* raised OutOfRangeError: .*7")
    assert error.step == 2
    assert graph.submit(index).get(LONG).shape == (1, 2) and model.weight.tolist() == [0] * 4


def test_error_of_a_callback_is_raised_once():
    graph, _ = counting()
    graph.submit(ONE)(lambda loss: 1 // 0)
    raised_error(lambda: flow.sync_default_session(LONG), flow.MinflowError, "callback <lambda> of step 1 of Train_")
    flow.sync_default_session(LONG)
    assert graph(ONE).item() == 4


REFUSED = {
    "submitting": (lambda graph, model: graph.submit(ONE), "submitting to Train_.* inside a callback"),
    "writing": (lambda graph, model: model.weight.data.zero_(), "a callback writes a tensor that graph Train_"),
    "training": (lambda graph, model: graph(ONE), "a callback writes a tensor that graph Train_"),
}


@pytest.mark.parametrize("use", REFUSED)
def test_callback_may_not_wait_or_write(use):
    graph, model = counting()
    call, text = REFUSED[use]
    graph.submit(ONE)(lambda loss: call(graph, model))
    raised_error(lambda: flow.sync_default_session(LONG), flow.MinflowError, text)
    assert model.weight.tolist() == [1] * 4


def test_submitting_inside_build_is_refused():
    graph, _ = counting()

    class Outer(nn.Graph):
        def build(self, x):
            return graph.submit(x).get()

    raised_error(lambda: Outer()(ONE), flow.MinflowError, "submitting to Train_.* inside the build of Outer")


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_run_of_a_graph():
    (graph, model), seen = counting(), []
    run = flow.start(graph, [ONE] * 3, epochs=2, callback=lambda loss: seen.append(loss.item()))
    assert run.result(LONG).item() == 20 and seen == run.values == [0, 4, 8, 12, 16, 20]
    assert model.weight.tolist() == [6] * 4
    assert repr(run) == f"<run of {graph.name}: done, epoch 2 of 2, 6 steps>"


def test_batches_by_name_and_of_numpy():
    graph, model = counting()
    run = flow.start(graph, [{"x": ONE}, {"x": np.ones((1, 4), "f")}, [ONE], np.ones((1, 4), "f")])
    run.result(LONG)
    assert model.weight.tolist() == [4] * 4


def test_pause_resume_and_stop():
    graph, model = counting()
    taken = []

    def loader():
        while True:
            taken.append(None)
            yield ONE

    run = flow.start(graph, loader())
    while run.steps < 3:
        threading.Event().wait(0.001)
    run.pause()
    assert run.state == "paused"
    until(lambda: run.resumed.waiters)  # a batch that was loaded before the pause
    assert current_stream().wait_until_idle(LONG)
    steps = run.steps
    threading.Event().wait(0.05)
    assert run.steps == steps and model.weight.tolist() == [steps] * 4
    run.resume()
    while run.steps <= steps:
        threading.Event().wait(0.001)
    run.stop()
    assert run.finished.wait(LONG) and run.state == "stopped"
    assert model.weight.tolist() == [run.steps] * 4 and run.steps <= len(taken)
    assert graph(ONE).item() == 4 * run.steps


def test_errors_of_a_run():
    graph, model = counting()
    run = flow.start(graph, [ONE, ONE, flow.ones(1, 3)])
    raised_error(lambda: run.result(LONG), flow.MinflowError, "3")
    assert run.state == "failed" and model.weight.tolist() == [2] * 4

    def loader():
        yield ONE
        raise KeyError("no such batch")

    run = flow.start(graph, loader())
    for _ in range(2):
        with pytest.raises(KeyError, match="no such batch") as caught:
            run.result(LONG)
        assert [entry.name for entry in caught.traceback] == ["test_errors_of_a_run", "result", "loader"]
    run = flow.start(graph, [ONE] * 9, callback=lambda loss: [][1] if loss.item() > 14 else None)
    raised_error(lambda: run.result(LONG), flow.MinflowError, "callback <lambda> of step .* raised IndexError")
    assert model.weight.tolist() == [5] * 4
    graph(ONE)
    assert model.weight.tolist() == [6] * 4


def test_refused_runs():
    graph, _ = counting()
    raised_error(lambda: flow.start(graph, [ONE], own_session=True), flow.MinflowError, "a session of its own")
    raised_error(lambda: flow.start(nn.Linear(2, 2), [ONE]), flow.MinflowError, "a job function or a graph")
    raised_error(lambda: flow.start(graph, [{"y": ONE}]).result(LONG), flow.MinflowError, "x is missing")
    error = raised_error(lambda: flow.start(type(graph), [ONE]), flow.MinflowError, "a job function or a graph")
    assert error.hint == "graph = Train(), and flow.start(graph, loader)"
    error = raised_error(lambda: flow.start(graph, 3), flow.MinflowError, "something to loop over")
    assert error.hint.startswith("flow.start(graph, zip(")


def test_run_may_be_timed():
    graph, _ = counting()
    run = flow.start(graph, [ONE] * 5)
    run.result(LONG)
    for timeline in (flow.timeline(run), flow.timeline(graph), flow.timeline(graph.name)):
        assert len(timeline) == 5 and timeline.mode == "async"
        assert timeline.text.startswith(f"{graph.name}, async: 5 steps in ")


# ---- memory ----------------------------------------------------------------------------------------------------------


def test_steps_and_graphs_are_freed():
    graph, model = counting()
    dead = [weakref.ref(graph.submit(ONE).get(LONG)) for _ in range(3)]
    flow.start(graph, [ONE] * 3, callback=lambda loss: dead.append(weakref.ref(loss))).result(LONG)
    flow.sync_default_session(LONG)
    current_stream().runs.clear()
    gc.collect()
    assert [ref() for ref in dead] == [None] * 6
    ref = weakref.ref(graph)
    del graph
    gc.collect()
    assert ref() is None and model.weight.tolist() == [6] * 4


# ---- virtual ranks ---------------------------------------------------------------------------------------------------


def test_data_parallel_graph_on_virtual_ranks():
    def program(submits):
        flow.manual_seed(2)
        everyone = flow.placement("cpu", [0, 1])
        model = mlp().to_global(placement=everyone, sbp=flow.sbp.broadcast)
        graph = Train(model, flow.optim.SGD(model.parameters(), 0.1), nn.CrossEntropyLoss())
        losses = []
        for x, y in batches(4):
            x, y = [t.to_global(placement=everyone, sbp=flow.sbp.broadcast) for t in (x, y)]
            x, y = x.to_global(sbp=flow.sbp.split(0)), y.to_global(sbp=flow.sbp.split(0))
            losses.append(graph.submit(x, y) if submits else graph(x, y))
        losses = [step.get(LONG) if submits else step for step in losses]
        return [t.numpy(force=True).tobytes() for t in (*losses, *model.parameters())]

    found = []
    for submits in (False, True):
        with flow.virtual_ranks(2) as ranks:
            found.append(ranks.run(program, submits))
    assert found[0] == found[1]
