"""Fuse layer norm and group norm, and their gradients, into one node each.

    after = norms(graph)

Programs write layer norm as means, products and a root, and gradient rules expand it further. The pass matches exactly
this pattern, and leaves a partial match unchanged. Group norm is matched as batch norm of one image, followed by a
scale. Results change within float32 rounding. Read next: `gemm_epilogue.py`,
`../../platforms/compiled/kernels/row_norms.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...core.ir import CONSTANT, Graph, Node, Value, outputs_of
from ...core.op import Op
from ...core.ops import elementwise, norm, reduce, shape as shapes
from ...core.spec import Spec, float32
from ..passes.dead_code import dead_code
from ..passes.rewrite import rewrite
from .nchw16c import internal, run

LEAST = 16  # elements of a plane; fewer do not fill a vector


# ---- operations ------------------------------------------------------------------------------------------------------


@internal("layer_norm(x, weight, bias; columns, eps)", lambda x, weight, bias, columns, eps: x)
def layer_norm(xp, x, weight, bias, columns, eps):
    """Normalize rows of `columns` elements to mean 0 and variance 1, then compute row * weight + bias.

    weight, bias: one element per column, or the numbers 1 and 0.
    """
    hat, _ = standardized(xp, x.reshape(-1, columns), eps)
    return (hat * flat(weight) + flat(bias)).reshape(x.shape)


@internal(
    "layer_norm_grad(grad, x, weight; columns, eps) -> gx, gweight, gbias",
    lambda grad, x, weight, columns, eps: (
        x,
        *[weight if weight.__class__ is Spec else x.replace(shape=(columns,))] * 2,
    ),
)
def layer_norm_grad(xp, grad, x, weight, columns, eps):
    """Compute the gradients of layer_norm with respect to x, weight and bias."""
    (hat, inverse), grad = standardized(xp, x.reshape(-1, columns), eps), grad.reshape(-1, columns)
    direct = grad * flat(weight)
    mean, along = direct.mean(1, keepdims=True), (direct * hat).mean(1, keepdims=True)
    sums = [a.sum(0).reshape(getattr(weight, "shape", (columns,))) for a in (grad * hat, grad)]
    return ((direct - mean - hat * along) * inverse).reshape(x.shape), *sums


@internal(
    "group_norm(x, weight, bias; groups, eps) -> y, mean, var",
    lambda x, weight, bias, groups, eps: (x, *[weight.replace(shape=(x.shape[0] * groups,))] * 2),
)
def group_norm(xp, x, weight, bias, groups, eps):
    """Normalize each group of channels of each image to mean 0 and variance 1, then scale and shift per channel."""
    rows, ones = as_rows(xp, x, groups)
    hat, mean, var = run(norm.batch_norm, rows, ones, 0 * ones, eps=eps)
    return hat.reshape(x.shape) * channels(weight, x) + channels(bias, x), mean, var


@internal(
    "group_norm_grad(grad, x, weight, mean, var; groups, eps) -> gx, gweight, gbias",
    lambda grad, x, weight, mean, var, groups, eps: (x, weight, weight),
)
def group_norm_grad(xp, grad, x, weight, mean, var, groups, eps):
    """Compute the gradients of group_norm with respect to x, weight and bias. mean, var: of each group of x."""
    (rows, ones), (n, c) = as_rows(xp, x, groups), x.shape[:2]
    scaled = (grad * channels(weight, x)).reshape(rows.shape)
    gx, _, _ = run(norm.batch_norm_grad, scaled, rows, ones, mean, var, eps=eps)
    hat = (rows[0] - mean.reshape(-1, 1)) / xp.sqrt(var + x.dtype.type(eps)).reshape(-1, 1)
    grad = grad.reshape(n, c, -1)
    return gx.reshape(x.shape), (grad * hat.reshape(n, c, -1)).sum((0, 2)), grad.sum((0, 2))


def standardized(xp, x, eps):
    """Normalize rows to mean 0 and variance 1; also return the factors 1 / sqrt(var + eps)."""
    centered = x - x.mean(1, keepdims=True)
    inverse = 1 / xp.sqrt((centered * centered).mean(1, keepdims=True) + x.dtype.type(eps))
    return centered * inverse, inverse


def flat(numbers):
    return numbers.reshape(-1) if hasattr(numbers, "reshape") else numbers


def channels(numbers, x):
    """Reshape one element per channel to broadcast with x."""
    return numbers.reshape((1, -1) + (1,) * (x.ndim - 2)) if hasattr(numbers, "reshape") else numbers


def as_rows(xp, x, groups: int):
    """Reshape each group of each image to a channel of one image; also return ones, as weights."""
    rows = x.reshape(1, x.shape[0] * groups, x.size // (x.shape[0] * groups))
    return rows, xp.ones(rows.shape[1], x.dtype)


# ---- the pass --------------------------------------------------------------------------------------------------------


def norms(graph: Graph) -> Graph:
    """Replace each norm that is recognized by one node, and its gradient by another."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for x in dict.fromkeys(x for x in node.inputs if x.__class__ is Value):
            readers.setdefault(x, []).append(node)
    shown, position = {*graph.outputs, *graph.updates.values()}, {node: i for i, node in enumerate(graph.nodes)}
    instead: dict[Value, Value] = {}
    before: dict[Node, list[Node]] = {}  # old node -> nodes to insert before it
    gone: set[Node] = set()
    for node in graph.nodes:
        found = NormMatcher(readers, position) if node.op in FINDERS else None
        if found is not None and FINDERS[node.op](found, node) and found.whole(shown):
            instead.update(found.instead)
            gone |= {one for one in found.nodes if not found.instead.keys().isdisjoint(outputs_of(one))}
            for place, new in found.added:
                before.setdefault(place, []).append(new)
    if not instead:
        return graph
    nodes = [one for node in graph.nodes for one in (*before.get(node, ()), node) if one not in gone]
    return dead_code(rewrite(graph, nodes, instead))


class NormMatcher:
    """A match of one norm.

    nodes: old nodes that it replaces.  instead: old value -> new value.  added: (old node before which to insert, new
    node).
    """

    def __init__(self, readers: dict[Value, list[Node]], position: dict[Node, int]):
        self.readers, self.position = readers, position
        self.nodes: dict[Node, None] = {}
        self.instead: dict[Value, Value] = {}
        self.added: list[tuple[Node, Node]] = []

    def take(self, node: Node) -> Value:
        self.nodes[node] = None
        return outputs_of(node)[0]

    def read(self, op: Op, *inputs, shape: tuple | None = None) -> Value | None:
        """Return the output of an existing node `op(*inputs)`, and add it to the match; None if there is none."""
        for node in () if None in inputs else self.readers.get(inputs[0], ()):
            if node.op is op and node.inputs == [*inputs] and shape in (None, node.out_specs[0].shape):
                return self.take(node)
        return None

    def met(self, op: Op, x: Value, shape: tuple) -> tuple[Value, Value | None]:
        """Match x times or plus a tensor of `shape`, in the phase of x: (result, tensor), or (x, None)."""
        for node in self.readers.get(x, ()):
            if node.op is op and node.phase == x.node.phase:
                other = node.inputs[0] if node.inputs[1] == x else node.inputs[1]
                if other != x and is_scale(other, x.spec, shape):
                    return self.take(node), other
        return x, None

    def spread(self, x: Value | None, count: int, column: tuple, shape: tuple) -> Value | None:
        """Match the gradient of a mean: x / count, expanded to the shape that was averaged."""
        x = self.read(elementwise.div, x, count)
        return self.read(shapes.expand, self.read(shapes.reshape, x, shape=column), shape=shape)

    def reshaped(self, x: Value | None, shape: tuple) -> Value | None:
        """Match x in `shape`: x itself, or the end of a chain of reshapes without other users."""
        while x is not None and x.spec.shape != shape:
            readers = self.readers.get(x, ())
            x = self.take(readers[0]) if len(readers) == 1 and readers[0].op is shapes.reshape else None
        return x

    def scaled(self, direct: Value, weight: Value | None, shape: tuple) -> tuple[Value, Value | None] | None:
        """Match the multiplication by the weight before the cotangent `direct` of the normalized value.

        Returns the cotangent of the norm and the weight; None if another weight was used.
        """
        node = direct.node
        scale = node.inputs[1] if node.op is elementwise.mul and node.phase == "backward" else None
        if is_scale(scale, direct.spec, shape) and weight in (None, scale):
            self.take(node)
            return node.inputs[0], scale
        return (direct, None) if weight is None else None

    def sums(self, grad: Value, hat: Value, shape: tuple) -> list[Value | None]:
        """Match the gradients of weight and bias; None for those that are not computed."""
        return [
            self.read(shapes.sum_to, self.read(elementwise.mul, grad, hat), shape=shape),
            self.read(shapes.sum_to, grad, shape=shape),
        ]

    def put(self, op: Op, inputs: list, attrs: dict, olds: list[Node]) -> list[Value]:
        """Add a node that replaces old ones; return its outputs.

        It is inserted at the first of their positions where its inputs are ready.
        """
        olds = sorted(olds, key=self.position.__getitem__)
        ready = max([self.position.get(x.node, -1) for x in inputs if x.__class__ is Value])
        before = next(node for node in olds if self.position[node] > ready)
        node = Node(op, inputs, attrs, (), scope=olds[0].scope, where=olds[0].where)
        found = op.infer(*[x.spec if x.__class__ is Value else x for x in inputs], **attrs)
        node.out_specs = found if op.many else (found,)
        node.origin, node.number = olds[-1].origin, olds[-1].number
        node.parts = tuple([part for old in olds for part in old.parts or (old,)])
        self.added.append((before, node))
        return outputs_of(node)

    def whole(self, shown: set[Value]) -> bool:
        """True if no removed value has users outside the match."""
        return all(
            v in self.instead or (v not in shown and all(r in self.nodes for r in self.readers.get(v, ())))
            for node in self.nodes
            for v in outputs_of(node)
        )


def rows_normed(found: NormMatcher, node: Node) -> bool:
    """Match the layer norm whose mean is `node`; True if it can be replaced."""
    x, mean, attrs = node.inputs[0], found.take(node), node.attrs
    size, axes = x.spec.shape, attrs["axis"]
    if not attrs["keepdims"] or axes != (*range(len(size) - len(axes), len(size)),) or not fits(x.spec):
        return False
    shape = size[axes[0] :]
    c = found.read(elementwise.sub, x, mean)
    var = found.read(reduce.mean, found.read(elementwise.mul, c, c), shape=mean.spec.shape)
    plus = [r for r in found.readers.get(var, ()) if r.op is elementwise.add and r.inputs[1].__class__ is float]
    if len(plus) != 1 or var.node.attrs != attrs:
        return False
    r = found.read(elementwise.rsqrt, found.take(plus[0]))
    h = found.read(elementwise.mul, c, r)
    if h is None:
        return False
    y, weight = found.met(elementwise.mul, h, shape)
    y, bias = found.met(elementwise.add, y, shape)
    forward, numbers = [*found.nodes], dict(columns=math.prod(shape), eps=plus[0].inputs[1])
    (found.instead[y],) = found.put(layer_norm, [x, given(weight, 1), given(bias, 0)], numbers, forward)
    direct = next(
        (
            node.inputs[0]
            for node in found.readers[c]
            if node.op is elementwise.mul
            and node.inputs[1] == c
            and node.inputs[0] in found.readers
            and node.phase == "backward"
            and found.read(elementwise.mul, node.inputs[0], r)
        ),
        None,
    )
    if direct is None:
        return True
    met, last = found.scaled(direct, weight, shape), rows_sent_back(found, x, c, r, direct, numbers["columns"])
    if met is None or last is None:
        return False
    (grad, weight), (end, other), sums = met, last, found.sums(met[0], h, shape)
    gx, *found_sums = found.put(layer_norm_grad, [grad, x, given(weight, 1)], numbers, [*found.nodes][len(forward) :])
    found.instead.update({old: new for old, new in zip(sums, found_sums) if old is not None})
    if other is not None:
        (gx,) = found.put(elementwise.add, [other, gx], {}, [end])
    found.instead[outputs_of(end)[0]] = gx
    return True


def rows_sent_back(found: NormMatcher, x: Value, c: Value, r: Value, direct: Value, count: int) -> tuple | None:
    """Match the cotangent of x in a layer norm, in the order in which the gradient rules write it.

    It starts at the cotangent of the normalized value. Returns the last addition, and the other term that it adds to
    the gradient of the norm or None; None without a match.
    """
    size, column, mul = x.spec.shape, r.spec.shape, elementwise.mul
    along = found.read(shapes.sum_to, found.read(mul, direct, c), shape=column)
    root = found.read(mul, found.read(mul, found.read(mul, r, r), r), -0.5)
    squares = found.read(mul, found.spread(found.read(mul, along, root), count, column, size), c)
    moved = found.read(elementwise.add, found.read(elementwise.add, found.read(mul, direct, r), squares), squares)
    total = found.read(shapes.sum_to, found.read(elementwise.neg, moved), shape=column)
    mean = found.spread(total, count, column, size)
    last = found.readers.get(mean, ()) if mean is not None else ()
    if len(last) != 1 or last[0].op is not elementwise.add or last[0].inputs[1] != mean:
        return None
    found.take(last[0])
    before = last[0].inputs[0]
    if before == moved:
        return last[0], None
    if before.__class__ is not Value or before.node.op is not elementwise.add or moved not in before.node.inputs:
        return None
    others = [v for v in before.node.inputs if v != moved]
    found.take(before.node)
    return (last[0], others[0]) if others and others[0].__class__ is Value and others[0].spec == x.spec else None


def groups_normed(found: NormMatcher, node: Node) -> bool:
    """Match the group norm whose batch norm is `node`; True if it can be replaced."""
    rows, ones, zeros = node.inputs
    if (
        not fits(rows.spec)
        or rows.spec.ndim != 3
        or rows.spec.shape[0] != 1
        or not (full_of(ones, 1) and full_of(zeros, 0))
    ):
        return False
    hat, mean, var = outputs_of(node)
    while after := [r for r in found.readers.get(hat, ()) if r.op is shapes.reshape and r.phase == node.phase]:
        hat = found.take(after[0])
    size, x = hat.spec.shape, rows
    while x.spec.shape != size and x.node.op is shapes.reshape:
        x = x.node.inputs[0]
    groups = rows.spec.shape[1] // max(size[0], 1)
    if (
        x.spec.shape != size
        or len(size) < 3
        or groups * size[0] != rows.spec.shape[1]
        or math.prod(size[2:]) < LEAST
        or size[1] % groups
    ):
        return False
    shape, attrs = (1, size[1]) + (1,) * (len(size) - 2), dict(groups=groups, eps=node.attrs["eps"])
    y, weight = found.met(elementwise.mul, hat, shape)
    y, bias = found.met(elementwise.add, y, shape)
    vectors = [vector_of(v) for v in (weight, bias)]
    if weight is not None:
        forward = [*found.nodes, node]
        found.take(node)
        found.instead.update(
            zip(
                (y, mean, var),
                found.put(group_norm, [x, *[given(v, n) for v, n in zip(vectors, (1, 0))]], attrs, forward),
            )
        )
    back = [r for r in found.readers.get(mean, ()) if r.op is norm.batch_norm_grad]
    if not back:
        return weight is not None
    count, direct = len(found.nodes), back[0].inputs[0]
    while direct.spec.shape != size and direct.node.op is shapes.reshape:
        found.take(direct.node)
        direct = direct.node.inputs[0]
    met = found.scaled(direct, weight, shape)
    if met is None or met[1] is None or back[0].inputs[1:] != [rows, ones, mean, var]:
        return False
    grad, weight = met
    sums = [found.reshaped(v, size[1:2]) for v in found.sums(grad, hat, shape)]
    end = found.reshaped(found.take(back[0]), size)
    if end is None:
        return False
    mean, var = [found.instead.get(v, v) for v in (mean, var)]
    gradients = found.put(group_norm_grad, [grad, x, vector_of(weight), mean, var], attrs, [*found.nodes][count:])
    found.instead.update({old: new for old, new in zip((end, *sums), gradients) if old is not None})
    return True


def vector_of(value: Value | None) -> Value | None:
    """Return the vector of which this value is a reshape."""
    return value.node.inputs[0] if value is not None else None


def is_scale(x: object, spec: Spec, shape: tuple) -> bool:
    """True if this is one element per column, or a reshaped vector with one element per channel."""
    return (
        x.__class__ is Value
        and x.spec == spec.replace(shape=shape)
        and (x.spec.shape[:1] != (1,) or (x.node.op is shapes.reshape and x.node.inputs[0].spec.ndim == 1))
    )


def given(value: Value | None, number: int) -> Value | int:
    return number if value is None else value


def fits(spec: Spec) -> bool:
    return spec.dtype is float32 and spec.size > 0 and spec.placement is None


def full_of(x: Value, number: float) -> bool:
    """True if x is a constant whose elements all equal `number`."""
    if x.node.op is shapes.full:
        return x.node.attrs["value"] == number
    return x.node.op is CONSTANT and bool((x.node.array == number).all())


FINDERS: dict[Op, Callable[[NormMatcher, Node], bool]] = {reduce.mean: rows_normed, norm.batch_norm: groups_normed}
