"""Backward: one algorithm for the tape and for a traced graph, written in ops.

Gradient rules are ordinary programs on Tensors, run by the current mode: so gradients can be differentiated again, and
a traced backward consists of ordinary nodes. Un-broadcasting and un-promotion are in one place, `fit`.
Read next: `eager.py` and `trace.py`, which restore saved tensors (`restore`) and find the leaf of a Value (`leaf`).
"""

from __future__ import annotations

import functools
import operator
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, ValuesView
from threading import get_ident
from typing import Any
from weakref import ref

from .backend import Array, namespace_of
from .base import events
from .base.errors import GradError, NonFiniteError, ShapeError
from .base.placement import Placement, Sbp, broadcast
from .context import current_context
from .dispatch import apply, refuse_symbolic
from .functionalize import apply_inplace, follow_writes, make_view, move_retain_hook
from .grad.hooks import run_after, run_after_node, run_before_node, run_hooks
from .grad.modes import no_grad
from .ir import (
    AFTER,
    INPUTS,
    LEAF,
    NUMBERS,
    FreedMarker,
    InnerTape,
    Node,
    Source,
    Value,
    Where,
    inner_nodes,
    new_value,
    outputs_of,
    toposort,
    where_text,
)
from .kernels import DECOMPOSED
from .messages.no_gradient import as_tensors, no_gradient
from .messages.training_warnings import check_losses, check_state
from .mode import MODE, Mode, mutation_counter, using
from .op import Op
from .ops.complex import conj
from .ops.elementwise import add
from .ops.global_tensors import as_local, boxed, boxed_like
from .ops.shape import cast, clone, detach, filled, sum_to
from .source_location import NOTICES, caller, fail
from .spec import Spec, cpu

# ---- the backward pass -------------------------------------------------------------------------------------------


def backprop(
    roots: Sequence,
    seeds: Sequence,
    retain_graph: bool,
    create_graph: bool,
    wanted: Iterable[Value] = (),
    finish: Callable | None = None,
    quiet: Container[Value] = (),
):
    """Value -> gradient, for every leaf that the roots depend on and for the values in `wanted`. If `wanted` is not
    empty, only nodes on a path to one of them are visited.

    finish: called with a leaf and its gradient as soon as that is complete, if hooks wait for its `.grad`.
    quiet: those of `wanted` whose hooks an enclosing backward runs.
    """
    where, wanted = caller(3), set(wanted)
    grads: dict[Value, object] = {}
    before = MODE.get()
    try:
        MODE.set(mode := before.replace(grad=create_graph))
        for root, seed in zip(roots, seeds):
            accumulate(mode, grads, mode.grad_key(root._value), seed)
        order = toposort([root._value.node for root in roots])
        passed = nodes_leading_to(mode, order, wanted) if wanted else None
        pending = None
        # the hooks of a leaf in a trace are at its first Value, which may not be in `order`
        if mode.trace is not None or any([node.hooks for node in order]):
            hooked = None if passed is None else wanted.difference(quiet)
            pending = PendingLeaves(mode, order, order if passed is None else passed, hooked, finish)
            pending.complete_roots(grads)
        while order:
            node = order.pop()
            if not node.needs:
                continue  # the gradient of a leaf stays in `grads`
            needed = passed is None or node in passed
            if node.hooks:
                run_output_hooks(node, grads, needed, wanted, quiet)
            if not wanted and len(node.out_specs) == 1:  # `outputs_of`, inlined
                gs = [grads.pop(new_value(Value, (node, 0, node.out_specs[0])), None)]
            else:
                gs = [grads.get(v) if v in wanted else grads.pop(v, None) for v in outputs_of(node)]
            if not needed:
                continue
            if gs[0] is not None or any([g is not None for g in gs]):
                pass_back(mode, node, gs, grads)
                if not retain_graph and (node.saved or mode.trace is not None):
                    free_saved(mode, node, where)
            if pending is not None:
                pending.count_down(node, grads)
    finally:
        MODE.set(before)
    return grads


def run_output_hooks(node: Node, grads: dict, needed: bool, wanted: set, quiet: Container[Value]) -> None:
    """Run the hooks of the outputs of a node whose gradients are complete.

    needed: True if the gradients of its inputs are needed.  wanted, quiet: see `backprop`.
    """
    for value in outputs_of(node):
        if value not in quiet if value in wanted else needed:
            run_hooks(value, grads)


def pass_back(mode: Mode, node: Node, gs: list, grads: dict) -> None:
    """Compute the gradients of a node's inputs from those of its outputs, and add them to `grads`."""
    if node.saved.__class__ is FreedMarker:
        raise second_backward_error(node)
    if not node.hooks and (replayed := mode.replay(node, gs)) is not None:
        for i, gi in replayed:
            if gi is not None:
                accumulate(mode, grads, node.inputs[i], gi)
        return
    mode.enter_gradient(node)
    if node.hooks:
        gs = run_before_node(node, gs)
    if node.out_specs[0].placement is None or not boxes_once(mode, node.op):
        found = input_gradients(mode, node, gs)
    else:
        with using(mode.replace(boxed={})):
            found = input_gradients(mode, node, gs)
    if node.hooks and INPUTS in node.hooks:
        found = run_after_node(node, gs, [(i, g if g is None else fit(g, node.inputs[i].spec)) for i, g in found])
    for i, gi in found:
        if gi is None:
            continue
        value = node.inputs[i] if mode.trace is None else mode.grad_key(node.inputs[i])
        if gi.spec is not value.spec:
            gi = fit(gi, value.spec)
        if mode.anomaly and gi.array is not None and has_nan(gi.array):
            raise anomaly_error(node, i, gi, gs)
        accumulate(mode, grads, value, gi)


def free_saved(mode: Mode, node: Node, where: Where | None) -> None:
    """Free the saved arrays of a node, and mark it, in a trace too, so that a second backward is refused there."""
    if node.saved or (mode.trace and node.op.saves[node.needs]):
        node.saved = FreedMarker(where)
        if node.op.custom_backward is not None:
            node.attrs["ctx"].saved = ()


def accumulate(mode: Mode, grads: dict, value: Value, g) -> None:
    if (before := grads.get(value)) is not None and (total := mode.sum_of(before, g)) is None:
        total = apply(add, before, g)
    grads[value] = g if before is None else total


def input_gradients(mode: Mode, node: Node, gs: list) -> Iterable:
    """(input index, gradient) for each input of a node that needs one."""
    if node.op.custom_backward is not None:
        return node.op.custom_backward(node, gs)
    if node.op.decompose is not None:
        return composite_gradients(mode, node, gs)
    if node.out_specs[0].dtype.rank < 3 or node.op.domain == "complex":
        return rule_gradients(mode, node, gs)
    turned = rule_gradients(mode, node, [g if g is None else conj(g) for g in gs])
    # the gradient is conj(f'(z)) * g, and the rule multiplies by f'(z)
    return [(i, conj(g) if g is not None and g.spec.dtype.is_complex else g) for i, g in turned]


def composite_gradients(mode: Any, node: Node, gs: list) -> list[tuple[int, Any]]:
    """(input index, gradient) of a composite op: by the tape of its decomposition, or by the op of its gradients."""
    op, needs, saved = node.op, node.needs, node.saved
    if saved.__class__ is InnerTape:
        if not mode.grad:
            return inner_gradients(mode, node, gs)
        saved = saved.saved
    if mode.trace is not None:
        paths = mode.paths_of(op, node.inputs, node.attrs)
        needs &= functools.reduce(operator.or_, [path for path, g in zip(paths, gs) if g is not None])
    inputs: list[Any] = list(node.inputs)
    known = dict(zip(op.saves[node.needs], saved))
    for i, x in enumerate(inputs):
        if x.__class__ not in NUMBERS:
            inputs[i] = mode.restore(node, i, known.get(i))
    indices = [i for i in range(len(inputs)) if needs >> i & 1]
    if mode.grad:  # the gradient has a gradient itself. The copies end this backward, and are contiguous in traces, too
        inputs = [x if x.__class__ in NUMBERS else clone(x) for x in inputs]
        grads = gradients_of(decomposition(op, inputs, node.attrs), gs, [inputs[i]._value for i in indices], True)
        return [(i, grads.get(inputs[i]._value)) for i in indices]
    gs = [filled(spec, 0) if g is None else g for g, spec in zip(gs, node.out_specs)]
    found = op.gradient(*gs, *inputs, **node.attrs, needs=needs)
    return [(i, found[i] if op.gradient.many else found) for i in indices]


def inner_gradients(mode: Any, node: Node, gs: list) -> list[tuple[int, Any]]:
    """(input index, gradient) of a composite op, by the tape of its decomposition."""
    grads: dict[Value, object] = {}
    for value, g in zip(node.saved.outputs, gs):
        if value is not None and g is not None:
            accumulate(mode, grads, value, g)
    for inner in reversed(inner_nodes(node)):
        arrived = [grads.pop(v, None) for v in outputs_of(inner)]
        if any([g is not None for g in arrived]):
            pass_back(mode, inner, arrived, grads)
    # `pop`: a tensor that is two inputs has one gradient, the sum of both
    return [(i, grads.pop(x, None)) for i, x in enumerate(node.inputs) if node.needs >> i & 1]


def run_decomposition(op: Op, inputs: Sequence, attrs: Mapping) -> Sequence:
    """The results of a composite op, or of the op of its gradients, by other ops; of any op, if `on_ranks` has them."""
    if op.decompose is not None:
        return decomposition(op, inputs, attrs)
    if op.on_ranks is not None:
        outs = op.on_ranks(**attrs)(*inputs, **attrs)
        return outs if op.many else [outs]
    assert op.gradient_of is not None
    mode, count, attrs = MODE.get(), len(op.gradient_of.outputs), dict(attrs)
    needs = attrs.pop("needs")
    gs, inputs = inputs[:count], inputs[count:]
    with using(mode.replace(grad=True)):
        leaf = Source(LEAF, gs[0].spec)
        leaves = [mode.isolated(x, i, leaf) if needs >> i & 1 else x for i, x in enumerate(inputs)]
        outs = decomposition(op.gradient_of, leaves, attrs)
    found = gradients_of(outs, gs, [x._value for i, x in enumerate(leaves) if needs >> i & 1], False)
    specs = [gs[0].spec.replace(shape=()) if x.__class__ in NUMBERS else x.spec for x in inputs]
    results = [found.get(x._value) if needs >> i & 1 else None for i, x in enumerate(leaves)]
    return [filled(spec, 0) if g is None else g for g, spec in zip(results, specs)]


def run_global(mode: Any, op: Op, inputs: Sequence, attrs: dict, call: Any):
    """Run an op on global tensors as its decomposition, or after boxing its inputs to the distributions it needs."""
    if call is DECOMPOSED:
        outs = run_decomposition(op, inputs, attrs)
        return outs if op.many else outs[0]
    rank = current_context().rank
    moved = [
        x
        if sbp is None or (sbp == call.whole and x.spec.placement is None)
        else boxed_once(mode, x, call.placement, sbp, rank)
        for x, sbp in zip(inputs, call.inputs)
    ]
    result = mode.run(op, tuple(moved), attrs)
    if op.is_view and len(inputs) == 1:
        result = clone(result)
        if op is not detach:
            make_view(mode, result, inputs[0], op, attrs)
            follow_writes(result)
    return result


def boxes_once(mode: Mode, op: Op) -> bool:
    """True if the gradient rules of an op may share boxed copies: they write no tensor, as a user's rules may. In a
    graph, passes merge equal boxings.
    """
    return mode.trace is None and not op.custom and op.custom_backward is None


def boxed_once(mode: Mode, x, placement: Placement, sbp: tuple[Sbp, ...], rank: int):
    """`boxed`, by which the gradient rules of one node get the same copy: that of g in a product, for both factors."""
    if mode.boxed is None:
        return boxed(x, placement, sbp, rank)
    key = id(x), placement, sbp
    if key not in mode.boxed:
        mode.boxed[key] = x, boxed(x, placement, sbp, rank)
    return mode.boxed[key][1]


def decomposition(op: Op, inputs: Sequence, attrs: Mapping) -> Sequence:
    outs = op.decompose(*inputs, **attrs)  # type: ignore[misc]  # op is a composite
    return [*outs] if op.many else [outs]


def gradients_of(outs: Sequence, gs: Sequence, wanted: Sequence[Value], create_graph: bool) -> dict:
    """Value -> gradient, for the values in `wanted`."""
    pairs = [(out, g) for out, g in zip(outs, gs) if g is not None and out._needs]
    return backprop([out for out, _ in pairs], [g for _, g in pairs], True, create_graph, wanted) if pairs else {}


def rule_gradients(mode: Mode, node: Node, gs: list) -> list[tuple[int, Any]]:
    """(input index, gradient) by the rules of the op."""
    op, needs = node.op, node.needs
    if op.variadic:
        return variadic_gradients(mode, node, gs)
    found = []
    for i, (rule, sources) in op.rules.items():
        if needs >> i & 1:
            arguments = []  # without a comprehension, which is a call
            for kind, key in sources:
                arguments.append(rule_argument(mode, node, kind, key, gs))
            found.append((i, rule(*arguments)))
    for places, mask, rule, sources in op.joint_rules:
        if needs & mask:
            result = rule(*[rule_argument(mode, node, kind, key, gs) for kind, key in sources])
            found += [(i, g) for i, g in zip(places, result) if needs >> i & 1]
    return found


def variadic_gradients(mode: Mode, node: Node, gs: list) -> list[tuple[int, Any]]:
    """(input index, gradient) by the rule that all inputs share."""
    rule, sources = node.op.rules[0]
    specs = [x.spec if isinstance(x, Value) else x for x in node.inputs]
    return [
        (
            i,
            rule(
                *[
                    i if kind == "position" else specs if kind == "specs" else rule_argument(mode, node, kind, key, gs)
                    for kind, key in sources
                ]
            ),
        )
        for i in range(len(node.inputs))
        if node.needs >> i & 1
    ]


def rule_argument(mode: Mode, node: Node, kind: str, key, gs: list):
    """The value of one argument of a rule; kind, key: see `Op.argument_source`."""
    if kind == "g":
        return gs[0] if len(gs) == 1 else tuple(gs)
    if kind == "attr":
        return node.attrs[key]
    if kind == "input_or_output" and mode.trace is not None:
        return mode.restore(node, ~0, None)
    x = node.inputs[key] if key >= 0 else None
    if kind == "spec":
        return x.spec if x.__class__ is Value else x
    if x.__class__ in NUMBERS:
        return x
    return mode.restore(node, key, node.saved and node.saved[node.op.saves[node.needs].index(key)])


def fit(g, spec: Spec):
    """Sum a gradient to the shape of its input, and convert it to its dtype and device: un-broadcast and un-promote."""
    if g.spec.ndim != spec.ndim or g.shape != spec.shape:
        g = sum_to(g, shape=spec.shape)
    g = g if g.dtype is spec.dtype else cast(g, dtype=spec.dtype)
    if spec.placement is None and g.spec.placement is not None:  # of a 0-d local input
        rank = current_context().rank
        g = as_local(boxed(g, g.spec.placement, (broadcast,) * len(g.spec.placement.hierarchy), rank), rank=rank)
    return g if g.spec.device is spec.device else g.to(spec.device)  # of a 0-d input on the CPU


def nodes_leading_to(mode: Mode, order: Sequence[Node], wanted: set[Value]) -> set[Node]:
    """The nodes whose inputs depend on one of these values. order: inputs before users."""
    leading: set[Node] = set()
    nodes = {value.node for value in wanted}  # a node hashes faster than a Value
    for node in order:
        for i, x in enumerate(node.inputs) if node.needs else ():
            if node.needs >> i & 1:
                x = x if mode.trace is None else mode.grad_key(x)
                if x.node in leading or (x.node in nodes and x in wanted):
                    leading.add(node)
                    break
    return leading


class PendingLeaves:
    """Runs the hooks of a leaf, and `finish`, as soon as its gradient is complete.

    passed: the nodes whose gradients are computed.  waiting: leaf with hooks -> number of gradients that are still to
    come.
    """

    def __init__(
        self,
        mode: Mode,
        order: Sequence[Node],
        passed: Iterable[Node],
        wanted: Container[Value] | None,
        finish: Callable | None,
    ):
        self.mode, self.finish, self.waiting = mode, finish, Counter()
        leaves = {mode.grad_key(v) for node in order if not node.needs for v in outputs_of(node)}
        self.hooked = {v for v in leaves if v.node.hooks and (wanted is None or v in wanted)}
        for node in passed if self.hooked else ():
            self.waiting.update([v for v in self.inputs_of(node) if v in self.hooked])

    def complete_roots(self, grads: dict) -> None:
        """Complete the leaves that no gradient will be added to: those among the roots."""
        for value in self.hooked - self.waiting.keys():
            self.complete(value, grads)

    def inputs_of(self, node: Node) -> list[Value]:
        return [self.mode.grad_key(x) for i, x in enumerate(node.inputs) if node.needs >> i & 1]

    def count_down(self, node: Node, grads: dict) -> None:
        """Count the gradients of `node` as added, even if there were none."""
        for value in self.inputs_of(node) if self.hooked else ():
            if value in self.hooked:
                self.waiting[value] -= 1
                if not self.waiting[value]:
                    self.complete(value, grads)

    def complete(self, value: Value, grads: dict) -> None:
        """Run the hooks of a leaf whose gradient is complete."""
        if value in grads:
            run_hooks(value, grads)
            if self.finish is not None and AFTER in value.node.hooks:
                self.finish(value, grads[value])


def second_backward_error(node: Node) -> GradError:
    first = where_text(node.saved.where)
    return GradError(
        f"backward a second time: what {node.op} saved was freed by the first backward, at {first}",
        values={"op": f"{node.op}, created at {where_text(node.where)}", "first backward": first},
        where=f"at {where_text(caller(4))}",
        hint="loss.backward(retain_graph=True) in the first call; or recompute the loss before the second",
    )


def has_nan(array: Array) -> bool:
    return bool(namespace_of(array).isnan(array).any())


def anomaly_error(node: Node, i: int, gi, gs) -> NonFiniteError:
    before = any(g is not None and g.array is not None and has_nan(g.array) for g in gs)
    name = node.op.inputs[0][1:] if node.op.variadic else node.op.inputs[i]
    count = int(namespace_of(gi.array).isnan(gi.array).sum())
    return NonFiniteError(
        f"the gradient of {node.op} with respect to {name} has {count} NaN among {gi.array.size} elements",
        values={
            "op": f"{node.op}, created at {where_text(node.where)}",
            "gradient": gi.spec,
            "module": node.scope or "-",
            "gradient that came in": "had NaN already" if before else "had none",
        },
        where=f"at {where_text(caller(4))}",
        hint="check the inputs of that line: log or sqrt of 0, 0/0, or values that grow without bound",
    )


# ---- the public functions ----------------------------------------------------------------------------------------


def as_tuple(x) -> tuple:
    return tuple(x) if not hasattr(x, "spec") and isinstance(x, list | tuple | Iterator | ValuesView) else (x,)


def seeds_for(outputs: Sequence, gradients: Sequence, verb: str) -> list:
    """The cotangents to start from: the given ones, or 1 for a scalar."""
    if len(outputs) != len(gradients):
        fail(GradError, f"{verb}: {len(outputs)} tensors and {len(gradients)} gradients", "a gradient for each tensor")
    seeds = []
    for out, g in zip(outputs, gradients):
        if not out._needs:
            raise no_gradient(out, verb)
        if g is None:
            if out.spec.size != 1:
                what = f"{verb}: only a scalar has one gradient, and this tensor has {out.spec.size} elements"
                hint = "reduce it first: .sum() or .mean(); or pass gradient=, a tensor of the same shape"
                fail(GradError, what, hint, output=out)
            if out.spec.dtype.is_complex:
                hint = ".abs() or .real of it; or pass gradient=, a complex tensor of its shape"
                fail(GradError, f"{verb}: a complex number has no single gradient", hint, output=out)
            g = filled(out.spec, MODE.get().seed)
        else:
            g = MODE.get().tensor_of(g)
            g = g if MODE.get().seed == 1 else g * MODE.get().seed
            if g.shape != out.shape:
                what = f"{verb}: the gradient has shape {g.spec.shape}, the tensor has {out.spec.shape}"
                fail(ShapeError, what, "pass a gradient of the same shape as the tensor", output=out, gradient=g)
            g = g if g.dtype is out.dtype else cast(g, dtype=out.dtype)
        seeds.append(g)
    return seeds


def backward(
    tensors, grad_tensors=None, retain_graph: bool | None = None, create_graph: bool = False, inputs=None
) -> None:
    """Add d tensors / d leaf to `.grad` of every leaf, or only of `inputs`.

    grad_tensors: cotangents, required for tensors that are not scalars.  retain_graph: keep saved tensors for another
    backward (default: create_graph).  create_graph: record the backward itself, for second derivatives.
    Raises GradError if nothing requires grad, if a tensor without a cotangent is not a scalar, at a second backward,
    and if a saved tensor was written in place.
    """
    mode, tensors = MODE.get(), as_tensors("backward", "tensors", tensors)
    refuse_symbolic(tensors)
    outputs = [mode.resolve(t) for t in tensors]
    passed = as_tuple(grad_tensors) if grad_tensors is not None else (None,) * len(outputs)
    seeds = seeds_for(outputs, passed, "backward")
    only = None if inputs is None else [mode.resolve(x) for x in as_tensors("backward", "inputs", inputs)]
    wanted = [mode.grad_key(x._value) for x in only or () if x._value is not None]
    if mode.watch is not None:
        mode.watch.backward(outputs, tensors)
    if NOTICES.on and mode.reports_mistakes():
        check_losses(outputs)
    taken: set[int] = {id(seed) for seed in seeds}
    done: set[Value] = set()

    def finish(value: Value, g) -> None:
        """Accumulate into `.grad` of the leaf of this Value, and run the hooks that wait for it."""
        leaf = mode.leaf(value) if only is None else next((x for x in only if mode.grad_key(x._value) == value), None)
        done.add(value)
        if leaf is not None:
            accumulate_grad(leaf, g, taken, create_graph)
            if value.node.hooks:
                run_after(value.node.hooks, leaf)

    keep = create_graph if retain_graph is None else retain_graph
    CALLBACKS.pop(get_ident(), None)  # of a backward that has raised an error
    grads = backprop(outputs, seeds, keep, create_graph, wanted, finish)
    mutation_counter.backwards += 1
    for value, g in grads.items():
        if value not in done:
            finish(value, g)
    for callback in CALLBACKS.pop(get_ident(), ()) if CALLBACKS else ():
        callback()
    if mode.has_listeners(events.BackwardDone):
        events.emit(events.BackwardDone(len(grads), caller(3), tuple(outputs)))


CALLBACKS: dict[int, list[Callable]] = {}  # thread -> what to call at the end of the backward that it runs


def at_end_of_backward(callback: Callable) -> bool:
    """Call a function at the end of the backward that this thread runs; for hooks. Return False if it is already."""
    callbacks = CALLBACKS.setdefault(get_ident(), [])
    if new := callback not in callbacks:
        callbacks.append(callback)
    return new


def accumulate_grad(leaf, g, taken: set[int], create_graph: bool) -> None:
    """Add g to `.grad` of a leaf. Leaves never share the array of their `.grad`, and it is never a view."""
    if leaf._label and not leaf._has_optimizer:
        check_state().untracked.append(ref(leaf))
    if leaf.spec.placement is not None:
        g = boxed_like(g, leaf.spec, current_context().rank)
    if leaf._gradient is not None:
        # accumulated_after_step: a step has used this gradient and it was not zeroed; optim warns if the sum is used
        # again
        old = leaf._gradient
        # on another device, reading it would wait for all work
        read = old.array is not None and old.spec.device is cpu
        old._accumulated_after_step = old._used_by_step and (bool(old.array.any()) if read else old.array is None)
        if create_graph:
            leaf._gradient = add(old, g)
        elif old._needs or g._needs:
            with no_grad():
                apply_inplace(add, old, g)
        else:
            apply_inplace(add, old, g)
    else:
        if g._alias is not None or id(g) in taken or (g.array is not None and g.array.base is not None):
            g = clone(g)
        taken.add(id(g))
        leaf._gradient = g


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False) -> tuple:
    """Compute d outputs / d inputs as a tuple with a tensor per input, without changing any `.grad`.

    allow_unused: return None for an input that the outputs do not depend on; otherwise raise GradError.
    """
    return gradients(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)


def gradients(
    outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False, quiet=()
) -> tuple:
    """Implementation of `grad`. quiet: inputs whose hooks are not run, see `backprop`."""
    mode = MODE.get()
    outputs = as_tensors("grad", "outputs", outputs)
    refuse_symbolic(outputs)
    outs = [mode.resolve(t) for t in outputs]
    sources = [mode.resolve(x) for x in as_tensors("grad", "inputs", inputs)]
    if not sources:
        what = "grad: inputs is empty, so there is nothing to differentiate by"
        fail(GradError, what, "autograd.grad(loss, [x])", inputs=inputs)
    for i, x in enumerate(sources):
        if not x._needs:
            what = f"grad: input {i} does not require grad"
            fail(GradError, what, "x.requires_grad_() before computing the output", input=x)
    passed = as_tuple(grad_outputs) if grad_outputs is not None else (None,) * len(outs)
    seeds = seeds_for(outs, passed, "grad")
    wanted = [mode.grad_key(x._value) for x in sources]
    keep = create_graph if retain_graph is None else retain_graph
    quiet = {mode.grad_key(mode.resolve(x)._value) for x in quiet}
    result = backprop(outs, seeds, keep, create_graph, wanted, quiet=quiet)
    results = tuple([result.get(value) for value in wanted])
    for i, (x, g) in enumerate(zip(sources, results)):
        if g is None and not allow_unused:
            what = f"grad: the outputs do not depend on input {i}"
            fail(GradError, what, "allow_unused=True gives None for it", input=x)
    return results


def retain(tensor) -> None:
    """Keep the gradient of a computed tensor: that of its Value at the time of backward."""
    if tensor._retains is None:
        home = weakref.ref(tensor)

        def keep(g):
            if (tensor := home()) is not None:
                tensor._gradient = clone(g.detach()) if tensor._gradient is None else tensor._gradient + g

        tensor._retains = keep
        move_retain_hook(tensor, None)


def __getattr__(name: str):
    if name == "argument":  # copies of the reading tour R2 show its source
        warnings.warn("autograd.argument is now autograd.rule_argument", DeprecationWarning, stacklevel=2)
        return rule_argument
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
