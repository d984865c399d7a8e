"""`python -m tests.fuzz.uses --models 300 --seed N`: graphs as programs use them, with compiled kernels and NumPy.

A use is a random model (`models.py`) whose training graph is called repeatedly, with other events between the calls:
batches of other sizes, empty ones, in another memory order or written to, parameters that are set, loaded and frozen,
another learning rate, a second graph that predicts with the same model, outputs that are kept, training that stops and
resumes in new objects. The results of all calls are compared: with NumPy's graphs within rounding; and bit for bit with
another thread count, a second run, and a run that stops and resumes.
"""

from __future__ import annotations

import copy
import functools
import pickle
import sys
import traceback

import numpy as np

import minflow as flow
from minflow import nn
from minflow.compat.namespaces.threads import Settings
from minflow.core.base.errors import MinflowError
from minflow.platforms import compiled

from .models import CLASSES, Case, differences, graphs_of, main, thresholds

schedulers = flow.optim.lr_scheduler
OPTIMIZERS = [
    lambda p: flow.optim.SGD(p, lr=0.02),
    lambda p: flow.optim.SGD(p, lr=0.02, momentum=0.9),
    lambda p: flow.optim.SGD(p, lr=0.02, momentum=0.9, dampening=0.1, weight_decay=0.05),
    lambda p: flow.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True, weight_decay=0.05),
    lambda p: flow.optim.SGD(p, lr=0.02, weight_decay=0.1, maximize=True),
    lambda p: flow.optim.Adam(p, 1e-3, eps=1e-2),
    lambda p: flow.optim.Adam(p, 1e-3, amsgrad=True, weight_decay=0.1, eps=1e-2),
    lambda p: flow.optim.AdamW(p, 1e-3, weight_decay=0.1, eps=1e-2),
    lambda p: flow.optim.RMSprop(p, 1e-3, eps=1e-2),
    lambda p: flow.optim.RMSprop(p, 1e-3, momentum=0.5, centered=True, eps=1e-2),
    lambda p: flow.optim.Adagrad(p, 1e-2, eps=1e-2),
    lambda p: flow.optim.LAMB(p, 1e-3, eps=1e-2),
    lambda p: flow.optim.NAdam(p, 1e-3, eps=1e-2),
]
SCHEDULERS = [
    lambda o: None,
    lambda o: None,
    lambda o: schedulers.StepLR(o, 2, 0.5),
    lambda o: schedulers.ExponentialLR(o, 0.8),
    lambda o: schedulers.CosineAnnealingLR(o, 5),
    lambda o: schedulers.LinearLR(o, 0.5, total_iters=3),
    lambda o: schedulers.LambdaLR(o, lambda k: 1 / (k + 1)),
]
EVENTS = {
    "call": 6,
    "other batch": 2,
    "no batch": 0.4,
    "one": 0.6,
    "strided": 1,
    "written": 1,
    "assign": 1,
    "load": 1,
    "rate": 1,
    "predict": 2,
    "keep": 0.7,
    "freeze": 0.5,
    "mode": 0.5,
    "eager": 0.5,
    "thaw": 0.3,
    "resume": 1,
    "exact": 0.3,
}


class Use(Case):
    """events: a list in order, each with its own numbers.  clip: of gradients, or None."""

    def __init__(self, seed: object):
        super().__init__(f"use {seed}")
        d = self.d
        self.optimizer_of, self.scheduler_of, self.clip = d.one(*OPTIMIZERS), d.one(*SCHEDULERS), d.one(None, None, 0.5)
        self.spoiled = False
        self.double = not self.words and d.chance(0.1)
        if self.double:
            self.model.double()
            self.start = {k: v.numpy().copy() for k, v in self.model.state_dict().items()}
        names, weights = list(EVENTS), list(EVENTS.values())
        self.events = [("call", 0), ("call", 1)] + [
            (d.choices(names, weights)[0], d.randint(0, 1 << 20)) for _ in range(d.randint(2, 9))
        ]
        self.dtype = np.dtype("f8" if self.double else "f4")

    def made(self, model: nn.Module) -> tuple:
        """(training, predicting, optimizer): graphs of this model."""
        groups = list(model.parameters())
        if self.clip:
            groups = [{"params": groups[::2], "clip_grad_max_norm": self.clip}, {"params": groups[1::2]}]
        optimizer = self.optimizer_of(groups)
        training, predicting = graphs_of(self, model, more=True)
        return training(optimizer, self.scheduler_of(optimizer)), predicting(), optimizer

    def batch_of(self, number: int, size: int):
        random = np.random.RandomState(number)
        if self.words:
            x = random.randint(0, 30, (size, *self.shape))
        else:
            x = random.randn(size, *self.shape).astype(self.dtype)
        return x, random.randint(0, CLASSES, (size,))

    def results(self, train: bool = True, steps: int = 2, stops: bool = False) -> dict[str, np.ndarray]:
        """Results of all events, and the final model. stops: training resumes in new objects at the events that
        say so.
        """
        self.fresh()
        self.model.train()
        for p in self.model.parameters():
            p.requires_grad_(True)
        model = self.model
        graph, predicting, optimizer = self.made(model)
        found: dict[str, np.ndarray] = {}
        for k, (event, number) in enumerate(self.events):
            out: list = []
            try:
                if event == "resume":
                    if stops:
                        model, graph, predicting, optimizer = self.resumed(number, model, graph)
                else:
                    out = self.happens(event, number, model, graph, predicting, optimizer)
            except MinflowError as error:
                found[f"{k} {event} refused"] = np.array(type(error).__name__)
            found.update({f"{k} {event}.{i}": t.detach().numpy().copy() for i, t in enumerate(out)})
        found.update({name: v.numpy().copy() for name, v in model.state_dict().items()})
        return found

    def happens(self, event: str, number: int, model: nn.Module, graph, predicting, optimizer) -> list:
        """Run one event; return its tensors."""
        size, parameters = self.batch * self.accumulated, list(model.parameters())
        if event in ("other batch", "no batch", "one"):
            size = self.accumulated * {"other batch": 1 + number % 9, "no batch": 0, "one": 1}[event]
        x, y = self.batch_of(number, size)
        if event in ("call", "other batch", "no batch", "one"):
            out = [*graph(flow.tensor(x), flow.tensor(y))[:2]]
            return out + list(graph.grads.values()) if self.gradients else out
        if event == "strided":
            doubled = (
                flow.tensor(np.repeat(x, 2, -1))
                if number % 2
                else flow.tensor(np.ascontiguousarray(np.moveaxis(x, 0, -1)))
            )
            x = doubled[..., ::2] if number % 2 else doubled.permute(x.ndim - 1, *range(x.ndim - 1))
            return [*graph(x, flow.tensor(y))[:2]]
        if event == "written":
            x, y = flow.tensor(x), flow.tensor(y)
            out = [t.clone() for t in graph(x, y)[:2]]
            x.copy_(x.flip(0))
            last = graph(x, y)
            return [*out, *last[:2], last[2]["first"], last[2]["sum"]]
        if event == "predict":
            training = model.training
            model.eval()
            out = [predicting(flow.tensor(x)), predicting(flow.tensor(x[: 1 + number % 3]))]
            model.train(training)
            return out
        if event == "eager":
            return [model(flow.tensor(x))]
        if event == "assign":
            for i, p in enumerate(parameters):
                if i % 2:
                    p.data = p.data * 0.9
                else:
                    with flow.no_grad():
                        p.mul_(0.95)
        elif event == "load":
            model.load_state_dict({name: flow.tensor(v.copy()) for name, v in self.start.items()})
        elif event == "rate":
            for group in optimizer.param_groups:
                group["lr"] *= 0.5
        elif event == "keep":
            graph.keep([f"model.{name}" for name, _ in model.named_modules()][-1])
        elif event in ("freeze", "thaw"):
            parameters[0].requires_grad_(event == "thaw")
        elif event == "mode":
            model.train(not model.training)
        elif event == "exact":
            graph.config.exact(bool(number % 3))
        return []

    def resumed(self, number: int, model: nn.Module, graph) -> tuple:
        """(model, training, predicting, optimizer): new objects that resume."""
        state, random = graph.state_dict(), flow.get_rng_state()
        other = pickled(model) if number % 2 else copy.deepcopy(model)
        for p, before in zip(other.parameters(), model.parameters()):
            p.requires_grad_(before.requires_grad)
        training, predicting, optimizer = self.made(other)
        training.config.exact(graph.config.bits)
        if number % 3 == 0:  # a graph that was called before
            training(*[flow.tensor(a) for a in self.batch_of(3, self.batch * self.accumulated)])
        training.load_state_dict(state)
        flow.set_rng_state(random)
        return other, training, predicting, optimizer

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.events}, double {self.double}, clip {self.clip}"


def pickled(model: nn.Module) -> nn.Module:
    """Copy by pickle if the functions can be pickled."""
    try:
        return pickle.loads(pickle.dumps(model))
    except Exception:
        return copy.deepcopy(model)


def unequal(a: dict, b: dict) -> list[str]:
    return [
        f"{name} differs"
        for name in {**a, **b}
        if name not in a or name not in b or a[name].tobytes() != (b[name].tobytes())
    ][:4]


def findings(seed: object) -> list[str]:
    """All faults of the use of this seed."""
    thresholds(small=int(str(seed)) % 2 == 0)
    compiled.use(False)
    Settings.threads = 1
    case, found = Use(seed), []
    plain = case.results()
    compiled.use()
    try:
        fast = case.results()
        found += [f"again: {line}" for line in unequal(fast, case.results())]
        Settings.threads = case.d.one(2, 3, 4, 8)
        found += [f"threads: {line}" for line in unequal(fast, case.results())]
        found += [f"resumed: {line}" for line in unequal(fast, case.results(stops=True))]
        Settings.threads = 1
        found += differences(plain, fast, case, functools.partial(case.results))
    except Exception:
        found.append(traceback.format_exc()[-2500:])
    finally:
        compiled.use(False)
    return found


if __name__ == "__main__":
    sys.exit(main("tests.fuzz.uses", findings, Use))
