"""L-BFGS: a quasi-Newton method for full-batch training, whose step calls the closure several times.

Eager only, because the number of calls depends on the data. Read next: `optimizer.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..core.backend import Array, namespace, to_host
from ..core.base.errors import OptimError
from ..core.grad.modes import enable_grad, no_grad
from ..core.ops.global_tensors import on_each_rank, whole_array
from ..core.sharding import logical
from ..core.source_location import fail
from ..core.spec import Spec, spec_of
from ..core.tensor import Tensor
from ..nn.loading import Refused, array_of, integer, number, plain_data, refuse, tensor_of
from .groups import Params, as_number, check_range
from .optimizer import Optimizer, hyperparameters, rate_of


class Point(NamedTuple):
    """A point along a search direction: step size, loss, gradient, and directional derivative."""

    t: float
    loss: float
    grad: Array
    slope: float


def cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """Return the minimum, within bounds, of the cubic through two points with slopes. Nocedal & Wright, eq. 3.59."""
    first, last = (a, b) if a.t <= b.t else (b, a)
    mean = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = mean * mean - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    share = (last.slope + root - mean) / (last.slope - first.slope + 2 * root)
    return min(max(last.t - (last.t - first.t) * share, low), high)


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    t: float,
    largest_element: float,
    min_step: float,
    max_evaluations: int,
    sufficient_decrease: float = 1e-4,
    curvature: float = 0.9,
) -> tuple[Point, int]:
    """Line search: (a point that satisfies the strong Wolfe conditions, number of evaluations).

    largest_element: of the direction, in absolute value.  min_step: a smaller step ends the search.  max_evaluations:
    limit of calls of `evaluate`. Source: Nocedal & Wright 2006, algorithms 3.5, 3.6.
    """
    before, point, count, done, bracket = start, evaluate(t), 0, False, None
    while count < max_evaluations:  # extrapolate until the minimum is bracketed
        high = point.loss > start.loss + sufficient_decrease * point.t * start.slope or (
            count > 1 and point.loss >= before.loss
        )
        if not high and abs(point.slope) <= -curvature * start.slope:
            return point, count + 1
        if high or point.slope >= 0:
            bracket = [before, point]
            break
        further = cubic_minimum(before, point, point.t + 0.01 * (point.t - before.t), point.t * 10)
        before, point, count = point, evaluate(further), count + 1
    bracket = bracket or [start, point]
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    stuck = False
    while (
        not done and count < max_evaluations and abs(bracket[1].t - bracket[0].t) * largest_element >= min_step
    ):  # shrink the bracket
        left, right = sorted((bracket[0].t, bracket[1].t))
        t, margin = cubic_minimum(bracket[0], bracket[1], left, right), 0.1 * (right - left)
        at_edge = min(right - t, t - left) < margin
        if at_edge and (stuck or t >= right or t <= left):
            t, at_edge = right - margin if abs(t - right) < abs(t - left) else left + margin, False
        stuck = at_edge
        point, count = evaluate(t), count + 1
        if point.loss > start.loss + sufficient_decrease * point.t * start.slope or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        done = abs(point.slope) <= -curvature * start.slope
        if not done and point.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
    return bracket[low], count + 1


STATE_NAMES = ("func_evals", "n_iter", "d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


def elements_of(tensor: Tensor) -> Array:
    """All elements of a tensor: its array, or those that all ranks have."""
    return tensor.array if tensor.is_local else whole_array(tensor)


class LBFGS(Optimizer):
    """p += t * d, d = -(gradient times an estimate of the inverse Hessian from the last `history_size` steps).

    `step(closure)` takes up to max_iter such steps, with at most max_eval calls of the closure (default 5 / 4 of
    max_iter), until no element of the gradient is above tolerance_grad or nothing changes by tolerance_change.
    line_search_fn: None uses t = lr; "strong_wolfe" searches for a t that satisfies the strong Wolfe conditions.
    Accepts only one parameter group. A graph refuses it.
    Source: Liu & Nocedal 1989; Nocedal & Wright 2006, algorithm 7.4.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        contiguous_params: bool = False,
    ):
        max_eval = int(as_number("LBFGS", "max_iter", max_iter)) * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, hyperparameters(locals()))
        if len(self.param_groups) != 1:
            what = f"LBFGS has one group of parameters, not {len(self.param_groups)}: its steps see them all together"
            fail(OptimError, what, "LBFGS(model.parameters())", groups=len(self.param_groups))

    def _check_hyperparameters(self, group: Mapping[str, Any]) -> None:
        for name in ("lr", "tolerance_grad", "tolerance_change", "max_iter", "max_eval", "history_size"):
            check_range("LBFGS", group, name)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            what = f"LBFGS: line_search_fn must be None or 'strong_wolfe', got {group['line_search_fn']!r}"
            fail(OptimError, what, "None or 'strong_wolfe'", line_search_fn=group["line_search_fn"])

    def _copy_data(self, value: Any) -> Any:
        """Copy a value of a state, which has no objects as those of other custom steps."""
        return plain_data(value)

    def _convert_custom_state(self, p: Tensor, passed: Mapping[str, Any]) -> dict[str, Any]:
        """Return a checked copy of the state of the first parameter, which has one element per element of all
        parameters.
        """
        owner, hint = type(self).__name__, "a state that was saved from an LBFGS of the same parameters"
        copy, size = super()._convert_custom_state(p, passed), sum([q.numel() for q in self._all_parameters()])
        if not copy:
            return copy
        if p is not self._all_parameters()[0]:
            refuse(owner, "only the first parameter may have a state", hint, found=sorted(map(str, copy)))
        copy.pop("al", None)  # PyTorch's scratch memory
        if set(copy) != set(STATE_NAMES):
            what = f"the state must have {', '.join(STATE_NAMES)}, got {', '.join(sorted(map(str, copy)))}"
            refuse(owner, what, hint)
        histories = [copy[name] for name in ("old_dirs", "old_stps", "ro")]
        if not all(isinstance(held, list | tuple) and len(held) == len(histories[0]) for held in histories):
            refuse(owner, "old_dirs, old_stps and ro must be lists of one length", hint, ro=copy["ro"])
        try:
            result: dict[str, Any] = {name: integer(copy[name], 1) for name in ("func_evals", "n_iter")}
            result |= {name: number(copy[name]) for name in ("t", "H_diag", "prev_loss")}
            result["ro"] = [number(x) for x in copy["ro"]]
        except Refused as reason:
            refuse(owner, f"an entry of the state cannot be used: {reason}", hint)
        for name in ("d", "prev_flat_grad", "old_dirs", "old_stps"):
            held = copy[name] if name.startswith("old") else [copy[name]]
            arrays = [array_of(x) for x in held]
            if wrong := [x for x, a in zip(held, arrays) if a is None or a.dtype.kind != "f" or a.shape != (size,)]:
                what = f"{name} must have {size} floating elements, one for each of the parameters"
                refuse(owner, what, hint, found=wrong[0])
            tensors = [tensor_of(a, Spec((size,), p.spec.dtype, p.spec.device)) for a in arrays if a is not None]
            result[name] = tensors if name.startswith("old") else tensors[0]
        return result

    def _gather_gradient(self) -> Array:
        """Concatenate the gradients of all parameters, with zeros for missing ones."""
        parameters = self._all_parameters()
        xp = namespace(parameters[0].spec.device)
        return xp.concatenate(
            [xp.zeros(p.numel(), p.spec.np) if p.grad is None else elements_of(p.grad).reshape(-1) for p in parameters]
        )

    def _add_direction(self, t: float, d: Array, start: list[Array] | None = None) -> None:
        """Add t * d to the parameters, or to `start`."""
        offset = 0
        with no_grad():
            for i, p in enumerate(self._all_parameters()):
                part = d[offset : offset + p.numel()].reshape(p.shape)
                base = elements_of(p) if start is None else start[i]
                moved = namespace(p.spec.device).asarray(base + part * p.spec.np.type(t), p.spec.np)
                new = Tensor(moved, logical(p.spec))
                p.copy_(new if p.is_local else on_each_rank(new, p.placement))
                offset += p.numel()

    def _direction(self, state: dict[str, Any], grad: Array) -> Array:
        """The descent direction, scaled by the curvature of the last steps."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -grad
        y, s = grad - state["prev_flat_grad"], state["d"] * grad.dtype.type(state["t"])
        curvature, history = number_of(y.dot(s)), int(self.param_groups[0]["history_size"])
        if curvature > 1e-10:
            for name, value in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / curvature)):
                state[name] = [*state[name], value][-history:] if history else []
            state["H_diag"] = curvature / number_of(y.dot(y))
        q, shares = -grad, []
        pairs = list(zip(state["old_dirs"], state["old_stps"], state["ro"]))
        for y, s, ro in reversed(pairs):
            shares.append(s.dot(q) * ro)
            q = q - shares[-1] * y
        q = q * state["H_diag"]
        for (y, s, ro), share in zip(pairs, reversed(shares)):
            q = q + (share - y.dot(q) * ro) * s
        return q

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]  # it is required
        """Take up to max_iter steps.

        closure: recomputes the loss (zero_grad, forward, backward) and returns it. Returns the first loss.
        """
        if not callable(closure):
            hint = "def closure(): optimizer.zero_grad(); loss = ...; loss.backward(); return loss"
            fail(OptimError, "LBFGS.step needs a closure, which it calls several times", hint, closure=closure)
        group, parameters = self.param_groups[0], self._all_parameters()
        if not parameters:
            fail(OptimError, "LBFGS.step: there are no parameters", "LBFGS(model.parameters())", params=parameters)
        lr, search = rate_of(self, group), group["line_search_fn"] is not None
        with enable_grad():
            first = closure()
        loss, grad, evaluations = float(first), self._gather_gradient(), 1
        kept = self.state[parameters[0]]
        state = {"func_evals": 0, "n_iter": 0, **{name: as_arrays(value) for name, value in kept.items()}}
        state["func_evals"] += 1
        flat_enough = max_abs(grad) <= group["tolerance_grad"]
        count = 0
        while count < group["max_iter"] and not flat_enough:
            count, state["n_iter"] = count + 1, state["n_iter"] + 1
            state["d"] = d = self._direction(state, grad)
            state["prev_flat_grad"], state["prev_loss"] = grad, loss
            state["t"] = t = min(1.0, 1.0 / number_of(abs(grad).sum())) * lr if state["n_iter"] == 1 else lr
            slope, last, calls = number_of(grad.dot(d)), count == group["max_iter"], 0
            if slope > -group["tolerance_change"]:
                break
            if search:
                start = [elements_of(p).copy() for p in parameters]
                point, calls = strong_wolfe(
                    functools.partial(self._evaluate_at, closure, start, d),
                    Point(0, loss, grad, slope),
                    t,
                    max_abs(d),
                    group["tolerance_change"],
                    int(group["max_eval"]) - evaluations,
                )
                loss, grad, state["t"] = point.loss, point.grad, point.t
                self._add_direction(point.t, d, start)
            else:
                self._add_direction(t, d)
                if not last:
                    with enable_grad():
                        loss = float(closure())
                    grad, calls = self._gather_gradient(), 1
            evaluations, state["func_evals"] = evaluations + calls, state["func_evals"] + calls
            flat_enough = max_abs(grad) <= group["tolerance_grad"]
            tiny = group["tolerance_change"]
            small = max_abs(d * grad.dtype.type(state["t"])) <= tiny or abs(loss - state["prev_loss"]) < tiny
            if last or small or evaluations >= group["max_eval"]:
                break
        kept.update({name: as_tensors(value) for name, value in state.items()})
        return first

    def _evaluate_at(self, closure: Callable[[], Any], start: list[Array], d: Array, t: float) -> Point:
        """The point at step size t along d."""
        self._add_direction(t, d, start)
        with enable_grad():
            loss = float(closure())
        grad = self._gather_gradient()
        return Point(t, loss, grad, number_of(grad.dot(d)))


def number_of(array: Array) -> Any:
    """Read a number to the host, in its own dtype."""
    return to_host(array)[()]


def max_abs(array: Array) -> float:
    return number_of(abs(array).max()) if array.size else 0.0


def as_arrays(value: Any) -> Any:
    return [as_arrays(x) for x in value] if isinstance(value, list) else getattr(value, "array", value)


def as_tensors(value: Any) -> Any:
    if isinstance(value, list):
        return [as_tensors(x) for x in value]
    if getattr(value, "ndim", 0):
        return Tensor(value, spec_of(value))
    return value.item() if hasattr(value, "item") else value
