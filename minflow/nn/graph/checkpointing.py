"""Activation checkpointing: recompute the activations of a module in backward instead of saving them.

In the graph, the module's forward appears twice: in the forward part, and after a `recompute` node in backward.
Source: Chen et al. 2016, "Training deep nets with sublinear memory cost" (arXiv:1604.06174).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core import autograd
from ...core.base.errors import GraphError
from ...core.grad.function import Function
from ...core.ir import RECOMPUTE, Value
from ...core.mode import MODE, using
from ...core.ops.shape import recompute
from ...core.source_location import fail
from ...core.tensor import Tensor
from .tree import Leaf, flatten, unflatten


def run_checkpointed(build: Any, module: Any, args: tuple, kwargs: dict) -> Any:
    """Call module(*args, **kwargs), and save only its inputs for backward."""
    tree, tensors = flatten((args, kwargs), lambda path, leaf: Leaf(leaf))
    parameters = [p for p in module.parameters() if p.requires_grad]
    run = CheckpointedCall(build, module, tree, len(tensors))
    outputs = Checkpoint.apply(run, *tensors, *parameters)
    return unflatten(run.out_tree, list(outputs))


class CheckpointedCall:
    """One checkpointed call: everything needed to repeat it."""

    count = 0

    def __init__(self, build: Any, module: Any, tree: Any, arity: int):
        self.build, self.module, self.tree, self.arity = build, module, tree, arity
        self.out_tree: Any = None
        self.before = Snapshot(build.trace)
        self.number = CheckpointedCall.count
        CheckpointedCall.count += 1

    def compute(self, tensors: list) -> list[Tensor]:
        args, kwargs = unflatten(self.tree, tensors)
        output = self.module._run_forward(args, kwargs)
        self.out_tree, outputs = flatten(output, lambda path, leaf: Leaf(leaf))
        return outputs


class Checkpoint(Function):
    """Run the module's forward without a tape; backward repeats it with a tape and differentiates that."""

    @staticmethod
    def forward(ctx: Any, run: CheckpointedCall, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.run, ctx.tensors = run, tensors
        ctx.set_materialize_grads(False)
        trace = run.build.trace
        first = len(trace.graph.nodes)
        with noting_states(run.before.states):
            outputs = tuple(run.compute(list(tensors[: run.arity])))
        refuse_outside(run, trace.graph.nodes[first:], [trace.resolve(t) for t in tensors], trace)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        run, build, mode = ctx.run, ctx.run.build, MODE.get()
        trace = build.trace
        after = next(g for g in grads if g is not None)
        inputs, leaves = list(ctx.tensors), {}
        with using(mode.replace(grad=False, origin=RECOMPUTE)):
            for i, t in enumerate(inputs[: run.arity]):
                again = recompute(t.detach(), after, call=run.number)
                inputs[i] = leaves[i] = Tensor(None, t.spec, again._value, t.requires_grad)
        now = Snapshot(trace, [symbol for symbol, *_ in run.before.states.values()])
        run.before.restore(trace)
        build.recomputing += 1
        try:
            with using(mode.replace(grad=True, origin=RECOMPUTE)), noting_states(now.states):
                outputs = run.compute(inputs[: run.arity])
        finally:
            build.recomputing -= 1
            now.restore(trace)  # the first forward updated the buffers; generators continue from their current state
        differentiable = [i for i, t in enumerate(inputs) if t.requires_grad]
        roots = [(o, g) for o, g in zip(outputs, grads) if g is not None and o.requires_grad]
        parameters = [t for t in inputs[run.arity :] if t.requires_grad]  # the calling backward runs their hooks
        with using(MODE.get().replace(seed=1)):  # the loss has scaled these gradients already
            gradients = autograd.gradients(
                [o for o, _ in roots],
                [inputs[i] for i in differentiable],
                [g for _, g in roots],
                allow_unused=True,
                quiet=parameters,
            )
        results: list = [None] * len(inputs)
        for i, g in zip(differentiable, gradients):
            results[i] = g
        return None, *results


class Snapshot:
    """The values of states, the counter of each generator, and the assigned buffers.

    states: id of the symbol of a state -> (symbol, Value, needs), for each state that the call uses. A copy of all
    states would take time quadratic in the number of checkpoints.
    """

    def __init__(self, trace: Any, states: Any = ()):
        self.states = {id(symbol): (symbol, symbol._value, symbol._needs) for symbol in states}
        self.draws = {g: entry[0] for g, entry in trace.draws.items()}
        self.bound = {key: buffers[name] for key, (buffers, name, _) in trace.rebound.items()}

    def restore(self, trace: Any) -> None:
        for key, (buffers, name, first) in trace.rebound.items():
            buffers[name] = self.bound.get(key, first)
        for symbol, value, needs in self.states.values():
            symbol._value, symbol._needs = value, needs
        for generator, entry in trace.draws.items():
            entry[0] = self.draws.get(generator, 0)


@contextmanager
def noting_states(states: dict) -> Iterator[None]:
    """Note each state that is used meanwhile, as it is at its first use."""
    mode = MODE.get()
    with using(mode.replace(states_used=states)):
        yield
    if mode.states_used is not None:  # of the enclosing checkpoint
        for key, state in states.items():
            mode.states_used.setdefault(key, state)


def refuse_outside(run: CheckpointedCall, nodes: list, tensors: list, trace: Any) -> None:
    """Refuse a tensor from outside the module that requires a gradient: it would not get one."""
    known, inside = {t._value for t in tensors}, set(nodes)
    for node in nodes:
        for x in node.inputs:
            if x.__class__ is not Value or not x.spec.floating or x.node in inside or x in known:
                continue
            leaf = trace.leaves.get(x)
            if leaf._needs if leaf is not None else x.node.needs:
                fail(
                    GraphError,
                    f"{type(run.module).__name__} is checkpointed and reads a tensor from outside that requires a "
                    f"gradient",
                    "pass the tensor as an argument of the module's forward",
                    tensor=Tensor(None, x.spec, x),
                )
