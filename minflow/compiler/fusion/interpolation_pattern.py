"""Match linear interpolation as programs write it: two index lookups along an axis, each times weights, added.

Its gradient is matched too: `index_add` of weighted pixels to zeros. Only matches; `layout.py`, to be read next,
creates the node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...core.ir import CONSTANT, Node, Value
from ...core.ops import elementwise, index, shape as shapes
from ...core.spec import Spec, float32, int64


class InterpolationTap(NamedTuple):
    """One weighted lookup of pixels along an axis, or its gradient.

    x: images that are read, or the cotangent.  places, weights: index and weight for each position along `axis`.
    shape: of the images that are looked up in.  back: True for the gradient.  nodes: the nodes that compute it.
    """

    x: Value
    places: Value
    weights: Value
    axis: int
    shape: tuple
    back: bool
    nodes: tuple

    def joins(self, other: InterpolationTap) -> bool:
        """True if both taps belong to one interpolation."""
        mine, others = [(tap.x, tap.axis, tap.shape, tap.back) for tap in (self, other)]
        return mine == others and self.nodes != other.nodes


def pair_of(
    node: Node, only_reader: Callable[[Value], Node | None]
) -> tuple[InterpolationTap, InterpolationTap] | None:
    """Match the two taps that this node adds. only_reader: returns the only user of a value, or None."""
    if node.op is not elementwise.add:
        return None
    one, other = [tap_of(x, only_reader) for x in node.inputs]
    return (one, other) if one is not None and other is not None and one.joins(other) else None


def tap_of(v: object, only_reader: Callable[[Value], Node | None]) -> InterpolationTap | None:
    """Match a tap whose values have no other users."""
    if not isinstance(v, Value) or only_reader(v) is None:
        return None
    node, back = v.node, v.node.op is index.index_add
    inner = node.inputs[2 if back else 0] if back or node.op is elementwise.mul else None
    if inner.__class__ is not Value or only_reader(inner) is None:
        return None
    times, taken = (inner.node, node) if back else (node, inner.node)
    if times.op is not elementwise.mul or not (zeros_added(taken) if back else taken.op is index.take):
        return None
    x, weights = times.inputs
    axis, places, shape = taken.attrs["axis"], taken.inputs[1], taken.inputs[0].spec.shape
    x = x if back else taken.inputs[0]
    fits = weights.__class__ is Value and weights.spec.shape == (places.spec.size, *[1] * (3 - axis))
    if not fits or not on_images(taken, weights.spec):
        return None
    return InterpolationTap(x, places, weights, axis, shape, back, (inner.node, node))


def zeros_added(node: Node) -> bool:
    """True if an `index_add` adds to zeros."""
    base = node.inputs[0].node
    return base.attrs["value"] == 0 if base.op is shapes.full else base.op is CONSTANT and not base.array.any()


def on_images(node: Node, *others: Spec) -> bool:
    """True if a lookup is along rows or columns of NCHW images, with constant indices within bounds."""
    x, places = node.inputs[:2]
    array = getattr(places.node, "array", None)
    return (
        x.spec.ndim == 4
        and node.attrs["axis"] > 1
        and all(s.dtype is float32 for s in (x.spec, *others))
        and places.node.op is CONSTANT
        and array.ndim == 1
        and places.spec.dtype is int64
        and array.size > 0
        and not array.flags.writeable
        and 0 <= array.min() <= array.max() < x.spec.shape[node.attrs["axis"]]
    )
