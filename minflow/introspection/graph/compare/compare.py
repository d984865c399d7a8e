"""`graph.compare(reference)` and `graph.compare_eager(...)`: two runs on the same inputs, compared op by op.

Against eager the plan runs as in a call; against another implementation the trace is computed node by node, before any
pass. There are no side effects: everything that was written is restored. Read next: `eager_run.py`, the other side;
`result.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ....compiler.executor import run, run_node
from ....core.backend import Array, is_array, namespace_of
from ....core.base.errors import GraphError
from ....core.base.interrupts import uninterrupted
from ....core.context import current_context
from ....core.host import HostArray, host_array
from ....core.host.float_warnings import silent
from ....core.ir import Node, Source, Value, outputs_of, where_text
from ....core.random import default_generator
from ....core.source_location import fail
from ....core.tensor import Tensor
from ....nn.graph.compiled import batch_part
from ....nn.graph.tree import Leaf, flatten, leaves, unflatten
from ....nn.module import Module
from ....views.records.graph import walk
from ....views.renderers.divergence import GraphComparison
from .closeness import EXACT, Tolerance
from .eager_run import RecordedOp, Recording, record_eager
from .restore import input_arrays, preserve_last_call, restore_on_exit, states_of
from .result import Pairing

MAX_NAME = 60  # maximum length of the reference's name


def compare_with(graph: Any, reference: Any, args: tuple, kwargs: dict, rtol: Any, atol: Any) -> GraphComparison:
    """Check the arguments and compare the graph with another graph, a module or a function."""
    if not callable(reference):
        what = f"the reference is {type(reference).__name__}, which cannot be called"
        hint = "another graph, a module, or a function of the same inputs"
        fail(GraphError, f"{graph.name}.compare: {what}", hint, reference=reference)
    for option, x in (("rtol", rtol), ("atol", atol)):
        if x is not None and not (isinstance(x, int | float) and x >= 0):
            what = f"{graph.name}.compare: {option} is {x!r}"
            fail(GraphError, what, "a number of at least 0, or None for that of the dtype")
    return run_comparison(graph, reference, args, kwargs, Tolerance(rtol, atol))


def run_comparison(
    graph: Any, reference: Any, args: tuple, kwargs: dict, tolerance: Tolerance = EXACT
) -> GraphComparison:
    """Compare with `reference`, or if it is None with an eager run of the graph's own build and optimizer step.

    A graph built without compiled passes gives the bits of that run.
    """
    graphs = [graph, reference] if hasattr(reference, "compiled_for") else [graph]
    with preserve_last_call(*graphs):
        plans = [g.compiled_for(args, kwargs) for g in graphs]
        compiled, other, ir = plans[0], plans[-1], plans[0].parts[0].stages[0].graph
        if other.steps != compiled.steps:
            counts = f"takes a batch in {compiled.steps} parts and {reference.name} in {other.steps}"
            hint = "config.set_gradient_accumulation_steps with the same number in both"
            fail(GraphError, f"{graph.name}.compare: {graph.name} {counts}", hint)
        tolerance = tolerance if reference is not None or compiled.exact else Tolerance()
        generators = {default_generator, *[g for plan in plans for g in plan.build.trace.draws]}
        links = [link for plan in plans for link in plan.links]
        with restore_on_exit(arrays_of(graphs, plans, reference, args, kwargs), generators, links) as restore:
            record = record_plan if reference is None else record_trace
            graph_run = record(compiled, args, kwargs)
            restore()
            compared_nodes = set(ir.nodes)
            if len(graphs) > 1:
                other_run, other_name = record_trace(other, args, kwargs), reference.name
            elif reference is None:
                other_run, other_name = record_eager_step(graph, compiled, args, kwargs), "eager"
            else:
                other_name = reference_name(reference)
                other_run = record_reference(graph, reference, compiled, args, kwargs)
                # leave out counters and running statistics: those of eager are not compared
                compared_nodes = set(walk(dict.fromkeys(v.node for v in ir.outputs[: len(compiled.build.outputs)])))
    leave_out_composites(graph_run, other_run)
    whole = compared_nodes.issuperset(ir.nodes)
    graph_run.ops = [op for op in graph_run.ops if whole or op.node in compared_nodes]
    return Pairing(graph.name, other_name, graph_run, other_run, tolerance).comparison(ir, whole)


def leave_out_composites(graph_run: Recording, other_run: Recording) -> None:
    """Compare a composite op that ran as one in the graph, and the ops that it consists of otherwise."""
    ran = {op.op_name for op in graph_run.ops if op.arrays}
    other_run.ops = [op for op in other_run.ops if op.whole not in ran and not (op.opened and op.op_name not in ran)]


def arrays_of(graphs: list, plans: list, reference: Any, args: tuple, kwargs: dict) -> Iterator[Array]:
    """All arrays that the two runs may write, through ops or NumPy."""
    for graph, plan in zip(graphs, plans):
        yield from states_of(plan)
        yield from [t.array for t, _ in graph.named_tensors()]
    yield from [t.array for t in (reference.buffers() if isinstance(reference, Module) else ())]
    yield from [x.array for _, x in leaves((args, list(kwargs.values()))) if isinstance(x, Tensor)]


def reference_name(reference: Any) -> str:
    if isinstance(reference, Module):
        return type(reference).__name__
    return str(getattr(reference, "__name__", "the reference"))[:MAX_NAME]


# ---- a graph ---------------------------------------------------------------------------------------------------------


def record_plan(compiled: Any, args: tuple, kwargs: dict) -> Recording:
    """The ops of the trace (without arrays if no call of the plan computes them), then nodes that passes added. The ops
    of a decomposition are in the place of the composite op.
    """
    part, ran, added, read = compiled.parts[0], {}, [], {}
    before = {Value(s, 0, s.out_specs[0]): s.array.copy() for s in part.plan.graph.updates}

    def watch(node: Node, arrays: list[Array]) -> None:
        copies = [a.copy() for a in arrays]
        if node.phase == "optimizer":  # the array of the gradient is not yet reused
            read[node.number, node.op] = [
                before[x] if x in before else part.plan.array_of(x).copy() if isinstance(x, Value) else x
                for x in node.inputs
            ]
        if node.number is None:
            added.append(recorded_op(part, node, [], copies))
        else:
            ran.setdefault(node.number, copies)

    with current_context().plan_lock, uninterrupted():
        results = run(part.plan, input_arrays(compiled, args, kwargs), watch=watch)
    ops = []
    inside = decompositions(part)
    for node in part.stages[0].graph.nodes:
        for own in inside.get(node.number, [node]):
            ops.append(recorded_op(part, own, read.get((own.number, own.op), []), ran.get(own.number, [])))
    return Recording(ops + added, outputs_as_built(compiled, results))


def decompositions(part: Any) -> dict[int | None, list[Node]]:
    """Number of a composite op -> the nodes that it was replaced by, also those that later passes merged."""
    inside: dict[int | None, list[Node]] = {}
    for stage in part.stages:
        for node in stage.graph.nodes:
            if node.whole is not None:
                inside.setdefault(node.whole.number, []).append(node)
        if inside:
            break
    return inside


def record_trace(compiled: Any, args: tuple, kwargs: dict) -> Recording:
    """Every op of the trace, in order; with gradient accumulation the first part. No state is written."""
    part = compiled.parts[0]
    ir = part.stages[0].graph
    arrays = input_arrays(compiled, args, kwargs)
    env: dict[Value, Any] = {Value(s, 0, s.out_specs[0]): a for s, a in zip(ir.inputs, arrays)}
    ops = []
    with current_context().plan_lock, silent():
        for s in ir.states:
            env[Value(s, 0, s.out_specs[0])] = (
                s.array if s.read is None else namespace_of(s.array).array(s.read(), s.array.dtype)
            )
        for node in ir.nodes:
            inputs = [env[x] if isinstance(x, Value) else x for x in node.inputs]
            results = run_node(node, inputs)
            env.update(zip(outputs_of(node), results))
            ops.append(recorded_op(part, node, inputs, results))
    outputs = [env[v] for v in ir.outputs[: len(compiled.build.outputs)]]
    written = {state.name: env[v] for state, v in ir.updates.items() if state.name}
    return Recording(ops, outputs_as_built(compiled, outputs), written)


def recorded_op(part: Any, node: Node, inputs: list, arrays: list[Array]) -> RecordedOp:
    reads = [x.node.name if isinstance(x, Value) and isinstance(x.node, Source) else "" for x in node.inputs]
    name, where = part.name_of(node), where_text(node.where)
    return RecordedOp(node.op.name, name, where, inputs, arrays, tuple(reads), node.scope, node)


def outputs_as_built(compiled: Any, arrays: list[Array]) -> list[tuple[tuple, Array]]:
    """(path, array) of the outputs of build."""
    tree = unflatten(compiled.build.out_tree, arrays)
    return [(path, x) for path, x in leaves(tree) if is_array(x)]


# ---- eager -----------------------------------------------------------------------------------------------------------


def record_eager_step(graph: Any, compiled: Any, args: tuple, kwargs: dict) -> Recording:
    """Run build and the optimizer step in eager; with gradient accumulation the first part, up to its gradients."""
    args, kwargs = first_part(args, kwargs, compiled.steps)

    def step() -> Any:
        output = graph.build(*args, **kwargs)
        for optimizer, _ in graph.optimizers if compiled.steps == 1 else ():
            optimizer.clip_grad()
            optimizer.step()
        return output

    return record_eager(step, parameters_of(graph), 1 / compiled.steps, whole=True)


def record_reference(graph: Any, reference: Callable, compiled: Any, args: tuple, kwargs: dict) -> Recording:
    """Run a module or a function. Raises GraphError if it returns anything but tensors, arrays and numbers."""
    args, kwargs = first_part(args, kwargs, compiled.steps)

    def call() -> Any:
        output = reference(*args, **kwargs)
        values = [x for _, x in leaves(output) if x is not None]
        wrong = [x for x in values if not isinstance(x, Tensor) and host_array(x).dtype.kind not in "fiub"]
        for x in wrong or [output] * (not values):
            what = f"an array of {x.dtype}" if isinstance(x, HostArray) else f"something of type {type(x).__name__}"
            hint = "return tensors, arrays or numbers, in lists and dicts as build does"
            fail(GraphError, f"{graph.name}.compare: the reference returns {what}, which cannot be compared", hint)
        return output

    return record_eager(call, parameters_of(graph), 1, whole=False)


def parameters_of(graph: Any) -> list[Tensor]:
    """The parameters that may have gradients from before."""
    own = [t for t, _ in graph.named_tensors()]
    return own + [p for optimizer, _ in graph.optimizers for p in optimizer._all_parameters()]


def first_part(args: tuple, kwargs: dict, steps: int) -> tuple[tuple, dict]:
    """The inputs of a call, or with gradient accumulation of its first part."""
    tree, tensors = flatten((args, kwargs), lambda path, leaf: Leaf(leaf))
    return unflatten(tree, batch_part(tensors, 0, steps))
