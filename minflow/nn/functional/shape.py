"""pad, normalize and depend. Read next: `../../core/ops/padding.py` for the modes that repeat the input."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions.arguments import integer, is_symbolic, normalize_axes
from ...core.functions.fill import number_of
from ...core.ops import distance
from ...core.ops.elementwise import where
from ...core.ops.padding import INDEX_MAPS, pad_from_input
from ...core.ops.shape import filled, pad as padded
from ...core.source_location import fail
from ...core.spec import bool_
from ...core.tensor import Tensor
from .arguments import check_tensor, norm_order


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the input: pad is (left, right) of the last axis, then of the one before it, ...

    mode: "constant" inserts `value` (0 if None); "reflect" mirrors the input at its edge, "replicate" repeats the edge,
    "circular" continues at the other end. Negative widths crop. Raises ShapeError if pad has an odd length or is longer
    than twice the number of axes; and if a mode needs more elements than the input has.
    """
    check_tensor("pad", input)
    if not isinstance(pad, list | tuple):
        what = f"pad: pad is a tuple of ints, not {type(pad).__name__}"
        fail(DTypeError, what, "(1, 1) for one zero left and right", pad=pad)
    widths, ndim = [integer(n, "pad") for n in pad], input.spec.ndim
    if mode != "constant":
        return pad_border(input, widths, mode, value)
    if len(widths) % 2 or len(widths) > 2 * ndim:
        what = f"pad: {len(widths)} widths for {ndim} axes"
        fail(ShapeError, what, "(left, right) of the last axis, then of the one before it", input=input)
    out, around = input, [(0, 0)] * ndim
    for i in range(len(widths) // 2):
        axis, before, after = ndim - 1 - i, widths[2 * i], widths[2 * i + 1]
        size = out.spec.shape[axis]
        if size + before + after < 0:
            what = f"pad: cutting {-before} and {-after} from axis {axis} of size {size}"
            fail(ShapeError, what, "smaller cuts", input=input)
        if before < 0 or after < 0:
            out = out.narrow(axis, max(-before, 0), size - max(-before, 0) - max(-after, 0))
        around[axis] = max(before, 0), max(after, 0)
    if not is_symbolic(value):
        value = 0 if value is None else number_of(value, "pad", "value", "pad(x, (1, 1), value=1.5)")
    if all(n <= 0 for n in widths):
        return out.clone()  # never a view of the input; `value` is not used, as nothing is inserted
    if is_symbolic(value):
        inside = padded(filled(out.spec.replace(dtype=bool_), True), widths=tuple(around), value=False)
        border = value.detach().to(out.dtype)
        return where(inside, padded(out, widths=tuple(around), value=0), border)
    return padded(out, widths=tuple(around), value=value)


def pad_border(input: Tensor, widths: list[int], mode: str, value: float | None) -> Tensor:
    """pad with elements of the input. widths: (left, right) of the last axis, then of the one before it, ..."""
    ndim, axes = input.spec.ndim, len(widths) // 2
    if mode not in INDEX_MAPS:
        what = f"pad: mode is {mode!r}"
        fail(ShapeError, what, f'"constant", {", ".join(map(repr, INDEX_MAPS))}', input=input)
    if value:
        what = f"pad: mode {mode!r} takes its elements from the input, and value is {value!r}"
        fail(ShapeError, what, 'mode="constant"', input=input)
    if len(widths) % 2 or not 1 <= axes <= 3 or ndim not in (axes + 1, axes + 2):
        what = f"pad: {len(widths)} widths for {ndim} axes in mode {mode!r}"
        fail(ShapeError, what, "2 widths for (N, C, L), 4 for (N, C, H, W), 6 for (N, C, D, H, W)", input=input)
    return pad_from_input(input, widths=tuple(zip(widths[-2::-2], widths[::-2])), mode=mode)


def normalize(input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12) -> Tensor:
    """input / max(norm of order p along dim, eps)."""
    check_tensor("normalize", input)
    axes = normalize_axes(dim, input)
    return distance.normalize(input, p=norm_order(p), axes=axes, eps=float(eps))


def depend(input: Tensor, depends: Tensor | Sequence[Tensor]) -> Tensor:
    """Return the input itself, as OneFlow's function that orders it after the tensors `depends`.

    Eager code runs in program order. A graph needs no such order: its ops have no side effects, and its writes to
    parameters and buffers always run, in program order.
    """
    for tensor in (input, *(depends if isinstance(depends, list | tuple) else [depends])):
        check_tensor("depend", tensor)
    return input
