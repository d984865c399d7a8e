"""Warnings about likely mistakes in training, each reported once: NaN, growing tapes, untracked parameters.

The regular cost is small: one element of each loss, a weak reference to its node, the sum of squares of each gradient
that a step uses. The tape is searched only if one of them is not finite. `notices(False)` or MINFLOW_NOTICES=0 turns
every MinflowWarning off. Read next: `source_location.warn`, which issues them; `nn/messages.py` for those of modules.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any
from weakref import WeakMethod, WeakSet, ref

from ..backend import Array, backend_of_array, namespace_of, on_host
from ..context import PerContext
from ..deferred import defer
from ..host.float_warnings import silent
from ..ir import NUMBERS, FreedMarker, Node, Source, Value, Where, outputs_of, saved_slots, toposort, where_text
from ..kernels import launch
from ..mode import mutation_counter
from ..source_location import NOTICES, caller, here, warn, warn_at
from .wrong_arguments import Unquoted

MAX_LIVE_LOSSES = 64  # number of consecutive losses that are all alive at which growing tapes are reported
MAX_SEARCHES = 20  # largest number of searches of tapes per process
GRADIENT = "gradient"
SMALLER_RATE = (
    "a smaller learning rate; `with flow.autograd.detect_anomaly():` around forward and backward stops at a gradient "
    "that is NaN"
)
BAD_SLOPE = (
    "`with flow.autograd.detect_anomaly():` around forward and backward names the operation; sqrt and x**0.5 have no "
    "slope at 0"
)
FROM_ZERO = {
    **dict.fromkeys(("log", "log2"), "x.clamp(min=1e-6) before the logarithm"),
    **dict.fromkeys(("div", "reciprocal"), "a divisor that is not 0"),
    "sqrt": "x.clamp(min=0) before the root",
    "rsqrt": "x.clamp(min=1e-6) before the root",
    "exp": "x.clamp(max=80) before exp; flow.logsumexp or F.softmax, which do not overflow",
}


class CheckState:
    """State of the checks on one rank.

    reported: the line of the last loss if it was not finite, or GRADIENT.  roots: the nodes of the last losses.
    untracked: parameters with a gradient from the last backward and without an optimizer.  optimizers: all optimizers.
    """

    def __init__(self) -> None:
        self.reported: Any = None
        self.searches = 0
        self.roots: deque = deque(maxlen=MAX_LIVE_LOSSES)
        self.untracked: list = []
        self.optimizers: WeakSet = WeakSet()


check_state = PerContext(CheckState)


def notices(on: bool = True) -> bool:
    """Turn warnings about likely mistakes on or off for the process; return the previous setting."""
    before, NOTICES.on = NOTICES.on, bool(on)
    state = check_state()
    state.reported, state.searches = None, 0
    state.roots.clear()
    return before


# ---- the loss --------------------------------------------------------------------------------------------------------


def check_losses(losses: list) -> None:
    """Check before each eager backward that the loss is finite and that the tapes of earlier losses are freed."""
    state = check_state()
    array, state.untracked = losses[0].array, []
    if array.size == 1 and not on_host(array):
        defer_loss_check(losses[0], caller(3))
    elif array.size == 1:
        if math.isfinite(array.item()):
            state.reported = None
        elif state.reported not in (GRADIENT, where := caller(3)):
            state.reported = where
            scaled = array.dtype == "float16" and math.isinf(array.item())  # a GradScaler handles this itself
            if state.searches < MAX_SEARCHES and not scaled:
                state.searches += 1
                report_loss(losses[0])
    state.roots.append(ref(losses[0]._value.node))
    if not mutation_counter.backwards % MAX_LIVE_LOSSES and len(state.roots) == MAX_LIVE_LOSSES:
        alive = {id(node) for root in state.roots if (node := root()) is not None}
        if len(alive) == MAX_LIVE_LOSSES:
            warn(
                f"backward: the last {MAX_LIVE_LOSSES} losses are all kept, each with the tape that computed it",
                "total += loss.item(), or losses.append(loss.detach()): a tensor that is kept keeps its tape, which "
                "grows at every step",
                loss=losses[0],
            )


def defer_loss_check(loss: Any, where: Where | None) -> None:
    """Check a loss on a device when the program reads a value; by then its tape is gone."""
    array, spec, node = loss.array, loss.spec, loss._value.node
    if not backend_of_array(array).has_elements:
        return
    nan = namespace_of(array).isnan(array.reshape(()))
    wrong = nan if array.dtype == "float16" else ~namespace_of(array).isfinite(array.reshape(()))
    place, origin = here(), (str(node.op), node.where)

    def report(wrong: float, nan: float) -> None:
        state = check_state()
        if not wrong:
            state.reported = None
        elif state.reported not in (GRADIENT, where):
            state.reported = where
            what = f"backward: the loss is {'nan' if nan else 'inf'}, the first that is not a finite number"
            values = {"loss": Unquoted(f"{spec}  (created by {origin[0]} at {where_text(origin[1])})")}
            warn_at(what, SMALLER_RATE, values, where, place)

    defer(("loss", origin, spec), [wrong, nan], report)


def report_loss(loss: Any) -> None:
    """Warn about a loss that is not finite, with the op where that began."""
    number = loss.array.item()
    values, hint = origin_of(loss)
    rates = rates_of(loss)
    if rates:
        values["learning rate"] = Unquoted(rates)
    warn(f"backward: the loss is {number}, the first that is not a finite number", hint, **{"loss": loss, **values})


def origin_of(loss: Any) -> tuple[dict[str, Any], str]:
    """(values, hint) for the warning: the first op whose result is not finite although its inputs are."""
    if loss.spec.placement is not None:  # other ranks do not take part
        return {}, SMALLER_RATE
    try:
        result = first_nonfinite(loss._value)
    except Exception:  # a warning must not become an error
        return {}, SMALLER_RATE
    if result is None:
        return {}, SMALLER_RATE
    node, kind, arrays = result
    if isinstance(node, Source):
        tensor = node.tensor()
        name = getattr(tensor, "_label", "") or "a leaf"
        return {
            "began in": Unquoted(f"{name}  {tensor.spec}, which {count_nonfinite(tensor.array)} before this loss")
        }, (
            "a smaller learning rate, if earlier steps produced these values; flow.isfinite(x).all() looks for "
            "them in data"
        )
    place = Unquoted(
        f"{node.op}"
        + (f" in {node.scope.lstrip('/')}" if node.scope else "")
        + f", created at {where_text(node.where)}"
    )
    if kind == "data":
        return {
            "began in": place,
            "its input": Unquoted(count_nonfinite(arrays[0])),
        }, "look at the data: flow.isfinite(x).all()"
    values = {"began in": place}
    for i, x in enumerate(a for a in arrays if getattr(a, "size", 0)):
        values[f"input {i}"] = Unquoted(f"{x.dtype}{list(x.shape)} from {float(x.min()):.4g} to {float(x.max()):.4g}")
    return values, FROM_ZERO.get(node.op.name, SMALLER_RATE)


def count_nonfinite(array: Array) -> str:
    """The number of NaN and infinities, in words."""
    xp = namespace_of(array)
    return f"has {int(xp.isnan(array).sum())} NaN and {int(xp.isinf(array).sum())} inf among {array.size} elements"


def all_finite(array: Any) -> bool:
    """True unless it is a floating array with NaN or infinities."""
    return not hasattr(array, "dtype") or array.dtype.kind != "f" or bool(namespace_of(array).isfinite(array).all())


def first_nonfinite(root: Value) -> tuple[Node, str, list] | None:
    """(node, "leaf", "data" or "op", arrays) of the first node that is not finite. Uses the saved tensors of the tape
    and recomputes the others.
    """
    known: dict[Value, Array] = {}
    for node in toposort([root.node]):
        if isinstance(node, Source):
            tensor = node.tensor()
            if tensor is not None and tensor.array is not None:
                known[Value(node, 0, node.out_specs[0])] = tensor.array
                if not all_finite(tensor.array):
                    return node, "leaf", [tensor.array]
            continue
        if node.saved.__class__ is FreedMarker or node.op.custom_backward is not None:
            continue
        kept = {slot: s[0] for slot, s in saved_slots(node) if s and s[1].version == s[2]}
        args = [
            x if x.__class__ in NUMBERS else kept.get(i, known.get(x) if x.__class__ is Value else None)
            for i, x in enumerate(node.inputs)
        ]
        for x, array in zip(node.inputs, args):
            if x.__class__ is not Value and array is not None and not all_finite(array):
                return node, "data", [array]
        outs: list = [kept.get(~k) for k in range(len(node.out_specs))]
        if any(out is None for out in outs) and all(a is not None for a in args):
            with silent():
                passed = launch(node.op, args, node.attrs, node.out_specs)
            outs = list(passed) if node.op.many else [passed]
        for value, out in zip(outputs_of(node), outs):
            if out is not None:
                known[value] = out
                if not all_finite(known[value]):
                    return node, "op", args
    return root.node, "op", []


def rates_of(loss: Any) -> str:
    """The learning rates of the optimizers whose parameters the loss depends on, such as "SGD 0.1"."""
    leaves = {id(node.tensor()) for node in toposort([loss._value.node]) if isinstance(node, Source)}
    return ", ".join(
        f"{type(o).__name__} {', '.join(f'{rate:g}' for rate in o._learning_rates())}"
        for o in list(check_state().optimizers)
        if any(id(p) in leaves for p in o._all_parameters())
    )


def check_results(
    what: str, arrays: list, most: int, step: int, rates: Callable[[], Iterable[float]], where: Where | None = None
) -> None:
    """Check after a step of a compiled graph or job that its losses are finite.

    most: largest number of elements of a result that counts as a loss.  rates: returns the learning rates of the step.
    where: the line to report; by default that of the caller.
    """
    for array in arrays:
        if array.size > most or array.dtype.kind != "f" or not array.size:
            continue
        total = array.sum()
        if on_host(array) and math.isfinite(total):
            continue
        place = where or caller(3), f"at {where_text(where)}" if where else here()
        if on_host(array):
            warn_of_result(float(total), step, what, rates, *place)
            return
        xp = namespace_of(array)
        # the check must not keep the plan of a graph
        rates_now = WeakMethod(rates) if isinstance(rates, MethodType) else lambda: rates
        defer(
            ("results", what),
            [xp.where(xp.isfinite(total), -math.inf, -step), xp.isnan(total)],
            lambda first, nan, place=place, rates_now=rates_now: (
                warn_of_result(math.nan if nan else math.inf, int(-first), what, rates_now() or tuple, *place)
                if first > -math.inf
                else None
            ),
        )


def warn_of_result(
    number: float, step: int, what: str, rates: Callable[[], Iterable[float]], where: Where | None, place: str
) -> None:
    warn_at(
        f"{what}: a training step returned {number}, the first that is not a finite number",
        "a smaller learning rate; or run the same batch eagerly, where the warning names the operation",
        {"step": step, "learning rate": Unquoted(", ".join(f"{rate:g}" for rate in rates()))},
        where,
        place,
    )


# ---- gradients -------------------------------------------------------------------------------------------------------


def check_gradients(optimizer: Any, pairs: list) -> None:
    """Warn about a gradient that is not finite. Called if the sum of all squares is not finite, which may also be an
    overflow of finite gradients.
    """
    if check_state().reported is not None:
        return  # this, or the loss, was reported already
    for p, g in pairs:
        if not all_finite(g.array):
            check_state().reported = GRADIENT
            warn(
                f"{type(optimizer).__name__}.step: the gradient of a parameter is not finite, though the loss was",
                BAD_SLOPE,
                **{
                    "parameter": p,
                    "its gradient": Unquoted(count_nonfinite(g.array)),
                    "learning rate": Unquoted(", ".join(f"{rate:g}" for rate in optimizer._learning_rates())),
                },
            )
            return


def defer_gradient_check(optimizer: Any, pairs: list) -> None:
    """Check gradients on a device when the program reads a value. pairs: parameters and gradients on one device."""
    where, place, mine, parameters = caller(3), here(), ref(optimizer), [ref(p) for p, _ in pairs]
    if not backend_of_array(pairs[0][1].array).has_elements:
        return

    def report(*wrong: float) -> None:
        if not any(wrong) or check_state().reported is not None or (optimizer := mine()) is None:
            return
        check_state().reported = GRADIENT
        warn_at(
            f"{type(optimizer).__name__}.step: the gradient of a parameter is not finite, though the loss was",
            BAD_SLOPE,
            {
                "parameter": parameters[wrong.index(max(wrong))](),
                "learning rate": Unquoted(", ".join(f"{rate:g}" for rate in optimizer._learning_rates())),
            },
            where,
            place,
        )

    flags = [~namespace_of(g.array).isfinite(g.array).all() for _, g in pairs]
    defer(("gradients", id(optimizer), *[id(p) for p, _ in pairs]), flags, report)
