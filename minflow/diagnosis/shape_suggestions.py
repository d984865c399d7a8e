"""The shape or dtype that would have fit, found by trying one change at a time.

Ops are tried by their shape rule, layers of minflow by tracing them on symbols; no kernel runs and no state changes.
Read next: `failure.py`, which uses it for error cards.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from ..core.base.errors import MinflowError
from ..core.infer import consult
from ..core.ir import NUMBERS
from ..core.mode import using
from ..core.op import Op
from ..core.spec import Spec, float32, int64
from ..core.tensor import Tensor
from ..core.trace import Trace

MAX_TRIES = 400  # limit for one error
MAX_SIZES = 24  # sizes tried on an axis, at most
UNLIKELY_SIZES = (1, 1009)  # arbitrary sizes: if one of them also fits, the axis has no expected size


def reshape_candidates(spec: Spec, sizes: Sequence[int]) -> Iterator[Spec]:
    """The same elements in another shape: channels moved to their axis, or images flattened."""
    shape = spec.shape
    if len(shape) == 4:
        yield spec.replace(shape=(shape[0], shape[3], shape[1], shape[2]))
    if len(shape) > 2:
        yield spec.replace(shape=(shape[0], math.prod(shape[1:])))


def resize_candidates(spec: Spec, sizes: Sequence[int]) -> Iterator[Spec]:
    """One axis of size 1 added or removed, or one other size."""
    shape = spec.shape
    if shape:
        yield spec.replace(shape=(1, *shape))
    for axis in reversed(range(len(shape))):
        for size in sizes:
            if size != shape[axis]:
                yield spec.replace(shape=(*shape[:axis], size, *shape[axis + 1 :]))
        if shape[axis] == 1:
            yield spec.replace(shape=(*shape[:axis], *shape[axis + 1 :]))


def dtype_candidates(spec: Spec, sizes: Sequence[int]) -> Iterator[Spec]:
    yield from [spec.replace(dtype=dtype) for dtype in (float32, int64) if dtype is not spec.dtype]


def find_unique_change(
    specs: Sequence[Any], free: Sequence[int], sizes: Sequence[int], fits: Callable[[list], bool]
) -> tuple[int, Spec] | None:
    """(position, spec) of the single change that fits, or None if several fit, since none of them is certain.

    free: positions that may change. Rearrangements are tried first, other dtypes last.
    """
    sizes = [*list(dict.fromkeys(sizes))[:MAX_SIZES], *UNLIKELY_SIZES]
    tries = 0
    for changes in (reshape_candidates, resize_candidates, dtype_candidates):
        fitting = []
        for i in free:
            for other in dict.fromkeys(changes(specs[i], sizes)):
                tries += 1
                if fits([other if k == i else s for k, s in enumerate(specs)]):
                    fitting.append((i, other))
                if tries > MAX_TRIES or len(fitting) > 1:
                    return None
        if fitting:
            i, other = fitting[0]
            return None if UNLIKELY_SIZES[1] in {*other.shape} - {*specs[i].shape} else (i, other)
    return None


def op_fits(op: Op, attrs: Any) -> Callable[[list], bool]:
    """Predicate on specs by the shape rule of an op; the values of literals do not count."""

    def fits(specs: list) -> bool:
        specs = [x.__class__ if x.__class__ in NUMBERS else x for x in specs]
        try:
            dtype, out = consult(op, tuple(specs), attrs)
            if dtype is not None:  # inputs are promoted, so dtypes do not decide whether shapes fit
                out = op.infer(*[s.replace(dtype=dtype) if isinstance(s, Spec) else s for s in specs], **attrs)
            return out is not None
        except (MinflowError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            return False

    return fits


@runtime_checkable
class TraceableLayer(Protocol):
    """Protocol of a module whose forward can be tried."""

    def _input_sizes(self) -> list[int] | None:
        """Possible sizes of the axes of its inputs; None if it must not be called again, because it might print."""

    def forward(self, *args: Any) -> Any: ...


def layer_fits(module: Any) -> Callable[[list], bool]:
    """Predicate on specs by tracing a layer's forward on symbols, which writes no state."""

    def fits(specs: list) -> bool:
        trace = Trace()
        try:
            with warnings.catch_warnings(), using(trace.replace(grad=False)):
                warnings.simplefilter("ignore")
                module.forward(*[trace.symbol_of_input(spec, f"input {i}") for i, spec in enumerate(specs)])
            return True
        except Exception:
            return False

    return fits


def expected_of_op(op: Op, inputs: Sequence[Any], attrs: Any) -> tuple[int, Spec] | None:
    """(input index, spec) that the op would have accepted. Parameters are changed only if all inputs are parameters.
    None for a view op, since its axes or shape are wrong, not its input.
    """
    if op.is_view:
        return None
    specs = [x.spec if isinstance(x, Tensor) else x for x in inputs]
    tensors = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)]
    free = [i for i in tensors if not inputs[i]._label] or tensors
    sizes = [n for i in reversed(tensors) for n in specs[i].shape]
    if op_fits(op, attrs)(specs):
        return None  # the values are wrong, not the shapes
    return find_unique_change(specs, free, sizes, op_fits(op, attrs))


def expected_of_layer(module: Any, inputs: Sequence[Any]) -> tuple[int, Spec] | None:
    """(argument index, spec) that a layer would have accepted. `module._input_sizes()` returns the sizes to try, or
    None if it must not be traced; see `TraceableLayer`.
    """
    sizes = module._input_sizes() if isinstance(module, TraceableLayer) else None
    if sizes is None or not inputs or not all(isinstance(x, Tensor) for x in inputs):
        return None
    specs = [x.spec for x in inputs]
    fits = layer_fits(module)
    if fits(specs):
        return None
    return find_unique_change(specs, range(len(specs)), [*sizes, *[n for s in reversed(specs) for n in s.shape]], fits)
