"""Guarantees of a training step: gradient accumulation, checkpointing, interrupts, errors within a step."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from graph_models import MLP, Block, Step, TrainGraph, bits, state_bits

import minflow as flow
from minflow import nn
from minflow.compiler.passes.rewrite import rewrite
from minflow.core.ir import outputs_of
from tests import sampling
from tests.graphs import Predict, Training


def data(n=8, seed=0):
    rng = np.random.default_rng(seed)
    return flow.tensor(rng.standard_normal((n, 20)).astype("float32")), flow.tensor(rng.integers(0, 5, n))


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.norm, self.drop, self.fc2 = (
            nn.Linear(20, 16),
            nn.BatchNorm1d(16),
            nn.Dropout(0.3),
            nn.Linear(16, 5),
        )

    def forward(self, x):
        return self.fc2(self.drop(self.norm(self.fc1(x)).relu()))


# ---- gradient accumulation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 4])
def test_accumulation_matches_eager_micro_batches(n):
    states, losses = [], []
    for as_graph in (False, True):
        flow.manual_seed(0)
        model, loss_fn = Normed(), nn.CrossEntropyLoss()
        optimizer = flow.optim.Adam(model.parameters(), lr=0.01)
        graph = TrainGraph(model, loss_fn, optimizer)
        graph.config.set_gradient_accumulation_steps(n)
        flow.manual_seed(1)
        for step in range(4):
            x, y = data(seed=step)
            if as_graph:
                loss = graph(x, y)
                assert loss.shape == (n,)
                losses.append([v for v in loss.tolist()])
                continue
            optimizer.zero_grad()
            parts = []
            for xs, ys in zip(x.chunk(n), y.chunk(n)):
                loss = loss_fn(model(xs), ys)
                (loss / n).backward()
                parts.append(loss.item())
            optimizer.step()
            losses.append(parts)
        states.append(state_bits(model, optimizer))
    assert losses[:4] == losses[4:]
    assert states[0] == states[1]
    assert model.norm.num_batches_tracked.item() == 4 * n
    assert [part.name for part in graph._last.parts] == ["micro-step", "update"]


def test_accumulated_gradients_can_be_read():
    model = MLP()
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.0))
    graph.config.set_gradient_accumulation_steps(4)
    x, y = data()
    graph(x, y)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    for name, p in model.named_parameters():
        np.testing.assert_allclose(graph.grads[f"model.{name}"].numpy(), p.grad.numpy(), atol=1e-6)


def test_other_outputs_are_concatenated_and_the_setting_can_change():
    class Both(Step):
        def build(self, x):
            h = self.model(x)
            loss = h.square().mean()
            loss.backward()
            return {"h": h, "loss": loss, "pair": [h.sum(0)]}

    model = nn.Linear(20, 3)
    graph = Both(model, flow.optim.SGD(model.parameters(), lr=0.0))
    x, _ = data()
    whole = graph(x)
    graph.config.set_gradient_accumulation_steps(2)
    out = graph(x)
    assert bits(out["h"]) == bits(whole["h"]) and out["loss"].shape == (2,) and out["pair"][0].shape == (6,)
    assert [what for what, _, _ in graph._history[1].reason] == ["config.gradient_accumulation_steps"]


def test_indivisible_batch():
    graph = TrainGraph(model := MLP(), nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1))
    graph.config.set_gradient_accumulation_steps(3)
    with pytest.raises(flow.MinflowError, match=r"8.*3") as caught:
        graph(*data(8))
    assert isinstance(caught.value, ValueError)
    assert graph(*data(9)).shape == (3,)


def test_clipping_by_group_uses_the_accumulated_gradient():
    model = nn.Linear(20, 5)
    optimizer = flow.optim.SGD([{"params": model.parameters(), "clip_grad_max_norm": 0.01}], lr=1.0)
    graph = TrainGraph(model, nn.CrossEntropyLoss(), optimizer)
    graph.config.set_gradient_accumulation_steps(2)
    graph(*data())
    norm = sum(float((g * g).sum()) for g in graph.grads.values()) ** 0.5
    assert norm == pytest.approx(0.01, rel=1e-3)


# ---- checkpointing ---------------------------------------------------------------------------------------------------


class Deep(nn.Module):
    def __init__(self, checkpoint=()):
        super().__init__()
        self.blocks = nn.ModuleList([Block(16, 2, 6, 0.2) for _ in range(3)])
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(16, 4)
        for i in checkpoint:
            self.blocks[i].to(nn.graph.GraphModule).activation_checkpointing = True

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).mean(1)


@pytest.mark.parametrize("checkpoint, accumulate", [((1,), 1), ((0, 1, 2), 1), ((1, 2), 2)])
def test_checkpointing_gives_the_same_bits_with_less_memory(checkpoint, accumulate):
    states, arenas = [], []
    rng = np.random.default_rng(0)
    x, y = flow.tensor(rng.standard_normal((4, 6, 16)).astype("float32")), flow.tensor([0, 1, 2, 3])
    for which in ((), checkpoint):
        flow.manual_seed(0)
        model = Deep(which)
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        graph = TrainGraph(model, nn.CrossEntropyLoss(), optimizer)
        graph.config.keep_gradients(False)
        graph.config.exact(True)
        graph.config.set_gradient_accumulation_steps(accumulate)
        flow.manual_seed(1)
        losses = [bits(graph(x, y)) for _ in range(5)]
        states.append((losses, state_bits(model, optimizer)))
        arenas.append(graph._last.parts[0].plan.arena_bytes)
        phases = {node.phase for node in graph.nodes}
        assert ("recompute" in phases) == bool(which)
        if which:
            scopes = {node.scope for node in graph.nodes if node.phase == "recompute"}
            assert {f"model.blocks.{i}" for i in which} == {".".join(s.split(".")[:3]) for s in scopes}
    assert states[0] == states[1]
    assert arenas[1] < arenas[0]


def test_checkpointed_batch_norm_updates_its_buffers_once():
    flow.manual_seed(0)
    model = Normed()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    twin = Normed()
    twin.load_state_dict(model.state_dict())
    model.to(nn.graph.GraphModule).activation_checkpointing = True
    graphs = [TrainGraph(m, nn.CrossEntropyLoss(), flow.optim.SGD(m.parameters(), lr=0.1)) for m in (model, twin)]
    for graph in graphs:
        flow.manual_seed(5)
        for step in range(3):
            graph(*data(seed=step))
    assert state_bits(model) == state_bits(twin) and model.norm.num_batches_tracked.item() == 3
    assert optimizer._steps_taken == 0


def test_checkpointing_can_be_disabled_and_handles_have_a_repr():
    model = MLP()
    handle = model.to(nn.graph.GraphModule)
    handle.activation_checkpointing = True
    graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1))
    graph(*data())
    assert any(node.op.name == "recompute" for node in graph.nodes)
    handle.activation_checkpointing = False
    graph(*data())
    assert not any(node.op.name == "recompute" for node in graph.nodes)
    assert handle.to(nn.Module) is model and handle.origin is model
    with pytest.raises(AttributeError, match="parameters"):
        handle.parameters()
    with pytest.raises(flow.MinflowError, match="activation_checkpoint"):
        handle.activation_checkpoint = True


def test_checkpointed_module_with_a_captured_tensor():
    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(20, 20), nn.Linear(20, 5)
            self.inner = Inner(self)
            self.inner.to(nn.graph.GraphModule).activation_checkpointing = True

        def forward(self, x):
            self.__dict__["hidden"] = self.fc1(x)
            out = self.fc2(self.inner(x))
            del self.__dict__["hidden"]
            return out

    class Inner(nn.Module):
        def __init__(self, outer):
            super().__init__()
            self.__dict__["outer"] = outer

        def forward(self, x):
            return x * self.outer.hidden

    graph = TrainGraph(model := Reads(), nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(flow.MinflowError, match="from outside"):
        graph(*data())


# ---- interrupts and errors -------------------------------------------------------------------------------------------


class Slow(nn.Module):
    """Parameters that are all equal at the end of each step, but not within one."""

    def __init__(self, n=40):
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(flow.zeros(20_000)) for _ in range(n)])

    def forward(self, x):
        return sum((p * x).sum() for p in self.parts)


def test_interrupt_waits_for_the_end_of_the_step(collector_off):
    model = Slow()
    optimizer = flow.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    graph, x = Step(model, optimizer, model), flow.ones(20_000)
    graph(x)
    handler = signal.getsignal(signal.SIGINT)
    caught, tries = 0, 60 if sampling.complete else 20
    rng = np.random.default_rng(0)
    for _ in range(tries):
        timer = threading.Timer(float(rng.uniform(0, 0.004)), os.kill, (os.getpid(), signal.SIGINT))
        done, deadline = False, time.monotonic() + 60
        try:
            timer.start()
            while time.monotonic() < deadline:
                graph(x)
            done = True
        except KeyboardInterrupt:
            caught += 1
        finally:
            timer.join()
        assert not done
        values = {float(p.numpy(force=True).ravel()[i]) for p in model.parts for i in (0, -1)}
        assert len(values) == 1, "an incomplete step"
        moments = {float(optimizer.state[p]["momentum_buffer"].numpy()[0]) for p in model.parts}
        assert len(moments) == 1 and signal.getsignal(signal.SIGINT) is handler
        expected, p, buf = graph._steps, 0.0, 0.0
        for _ in range(expected):
            buf = 0.5 * buf + 1
            p -= buf
        assert values.pop() == pytest.approx(p) and optimizer._steps_taken == expected
    assert caught == tries


def test_wrong_labels_change_nothing():
    flow.manual_seed(0)
    model = Normed()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    graph = TrainGraph(model, nn.CrossEntropyLoss(), optimizer)
    x, y = data()
    graph(x, y)
    before, steps = state_bits(model, optimizer), optimizer._steps_taken
    bad = y.clone()
    bad[3] = 5
    with pytest.raises(flow.MinflowError, match="5 classes") as caught:
        graph(x, bad)
    assert isinstance(caught.value, IndexError) and "loss_fn" in str(caught.value)
    assert state_bits(model, optimizer) == before and optimizer._steps_taken == steps
    graph(x, y)


# ---- inspection ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trains", [False, True])
def test_values_within_a_composite_op(trains):
    """By the names that the plan prints; the names of all other operations stay."""
    flow.manual_seed(0)
    model, x = nn.Sequential(nn.LayerNorm(4), nn.GELU(), nn.LayerNorm(4), nn.GELU()), flow.randn(3, 4)
    if trains:
        plain, graph = [Training(model, flow.optim.SGD(model.parameters(), lr=0.0)) for _ in range(2)]
    else:
        plain, graph = Predict(model, exact=True), Predict(model, exact=True)
    names = ["model.0/layer_norm-mean-0", "model.3/gelu-erf-1", "model.2"]
    graph.keep(*names)
    assert bits(plain(x)) == bits(graph(x))
    assert [call.name for call in plain.plan.record.calls] == [call.name for call in graph.plan.record.calls]
    with pytest.raises(flow.GraphError, match="erf-1.*from the next call on"):
        plain.values("model.3/gelu-erf-1")
    plain(x)
    normal = model[2](model[1](model[0](x)))
    wanted = [x.mean(-1, keepdim=True), flow.erf(normal * 0.5**0.5), normal]
    assert [bits(graph.values(name)) for name in names] == [bits(t) for t in wanted]
    assert bits(plain.values("model.3/gelu-erf-1")) == bits(wanted[1])
    graph.keep("model.3/gelu-erf-2")
    with pytest.raises(flow.GraphError, match="(?s)erf-2.*near +model.3/gelu-erf-1"):
        graph(x)
    assert bits(graph(x)) == bits(plain(x))


def test_gradients_rates_and_values():
    flow.manual_seed(0)
    model = MLP()
    optimizer = flow.optim.SGD(
        [{"params": model.layers[0].parameters()}, {"params": model.layers[2].parameters(), "lr": 0.5}], lr=0.1
    )
    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    graph = TrainGraph(model, nn.CrossEntropyLoss(), optimizer, lr_sch=scheduler)
    x, y = data()
    with pytest.raises(flow.MinflowError, match="not been called"):
        graph.grads["model.layers.0.weight"]
    graph.keep("model.layers.0")
    start = {k: v.clone() for k, v in model.state_dict().items()}
    assert graph.lr == [0.1, 0.5]
    graph(x, y)
    assert graph.lr == [0.05, 0.25]
    twin = MLP()
    twin.load_state_dict(start)
    nn.functional.cross_entropy(twin(x), y).backward()
    assert {k: bits(g) for k, g in graph.grads.items()} == {
        f"model.{k}": bits(p.grad) for k, p in twin.named_parameters()
    }
    assert bits(graph.values("model.layers.0")) == bits(twin.layers[0](x))
    with pytest.raises(flow.MinflowError, match="model.layers.2.*from the next call on"):
        graph.values("model.layers.2")
    now = {k: v.clone() for k, v in model.state_dict().items()}
    graph(x, y)
    twin.load_state_dict(now)
    assert bits(graph.values("model.layers.2")) == bits(twin(x))
    graph.keep("model.layers.7")
    with pytest.raises(flow.MinflowError, match="model.layers.7.*\n.*model.layers"):
        graph(x, y)
    graph(x, y)
    with pytest.raises(KeyError, match="model.layers.2.bias"):
        graph.grads["model.layers.2.bia"]
    graph.config.keep_gradients(False)
    graph(x, y)
    assert not len(graph.grads)
    with pytest.raises(KeyError, match="keep_gradients"):
        graph.grads["model.layers.2.bias"]


def test_compare_eager_covers_forward_backward_and_update():
    """It restores the state of model, optimizer and generator, and marks the first operation that differs."""
    flow.manual_seed(0)
    model = Normed()
    optimizer = flow.optim.Adam(model.parameters(), lr=0.1)
    graph = TrainGraph(model, nn.CrossEntropyLoss(), optimizer)
    x, y = data()
    graph(x, y)
    before, drawn = state_bits(model, optimizer), flow.get_rng_state().tolist()
    same = graph.compare_eager(x, y)
    assert len(same.rows) > 20 and same.largest == 0 and same.first is None and "bit for bit" in repr(same)
    assert {row.phase for row in same.rows} == {"forward", "backward", "optimizer"}
    assert state_bits(model, optimizer) == before and flow.get_rng_state().tolist() == drawn

    def without_relu(graph):
        """Read relu(x) as x: a mistake of the kind that a fusion may make."""
        relu = next(node for node in graph.nodes if node.op.name == "relu")
        return rewrite(graph, [n for n in graph.nodes if n is not relu], {outputs_of(relu)[0]: relu.inputs[0]})

    graph.passes.append(without_relu)
    found = graph.compare_eager(x, y)
    assert found.largest > 0 and found.first.name == "model.drop-dropout-0"
    assert found.first.where.startswith("test_graph_train.py:")
    assert "model.drop-dropout-0" in repr(found) and state_bits(model, optimizer) == before
