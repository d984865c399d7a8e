"""Layout: move images from NCHW to NCHW16c before the first convolution, and back after the last.

Ops after a convolution stay in blocks if there is a rule for them: bias, activation, batch norm, pooling, sums of
branches, and all their gradients. A bias, the scale of a batch norm at inference, and an activation become the epilogue
of the convolution; the activation after a batch norm, and its gradient, become part of the batch norm. Results change
within float32 rounding, since sums run in another order. Read next: `nchw16c.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ....compiler.passes.dead_code import dead_code
from ....compiler.passes.relu_pool_reorder import reorder_relu_pool_grad
from ....compiler.uses import readers_of
from ....core.ir import Graph, Node, Value, outputs_of
from ....core.op import Op
from ....core.ops import activation, conv, elementwise, norm, pool, shape
from ....core.ops.interpolation import interpolate
from ....core.spec import Spec, float32
from . import nchw16c

LEAST = 1 << 16  # multiplications of a convolution; below, converting its images costs more than it saves
ALONE = 1 << 11  # pixels that an op must read for the conversion to pay for this op alone
FEW = 16  # channels; images with fewer are read in NCHW
ACTS = {elementwise.relu: "relu", activation.relu6: "relu6"}
SLOPES = {elementwise.relu_grad: "relu", activation.relu6_grad: "relu6"}
# Elementwise ops that map 0 to 0, so that lanes beyond the last channel stay 0.
EITHER = frozenset({*ACTS, *SLOPES, elementwise.add, elementwise.sub, elementwise.mul, elementwise.neg})


def layout(graph: Graph) -> Graph:
    """Move convolutions, and the ops between them, to blocked layout."""
    return dead_code(LayoutRewriter(reorder_relu_pool_grad(graph)).result())


class LayoutRewriter:
    """Rewrites one graph to blocked layout.

    plain, blocks: old value -> new value in NCHW and in blocks, as far as it exists.  twins: old node -> the new node
    that computes it.  readers: old value -> nodes that read it.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.nodes: list[Node] = []
        self.plain: dict[Value, Value] = {}
        self.blocks: dict[Value, Value] = {}
        self.twins: dict[Node, Node] = {}
        self.readers = readers_of(graph)
        self.shown = {*graph.outputs, *graph.updates.values()}
        self.chains: dict[Node, list[Node]] = {}  # last node -> the convolution and its epilogue
        self.waiting: set[Node] = set()  # nodes that are part of a later node
        self.normed: dict[Value, Node] = {}  # output of an activation -> the batch norm that computes it
        # Cotangent before an activation -> its node, which is fused into the gradient of a batch norm.
        self.slopes: dict[Value, Node] = {}
        self.spread: dict[Value, Node] = {}  # gradient of a max pooling -> its node

    def result(self) -> Graph:
        for node in self.graph.nodes:
            if node not in self.twins and node not in self.waiting and not self.changed(node):
                self.keep(node)
        outputs = [self.now(v) for v in self.graph.outputs]
        updates = {state: self.now(v) for state, v in self.graph.updates.items()}
        return Graph(self.graph.inputs, self.nodes, outputs, self.graph.states, updates)

    # ---- values ------------------------------------------------------------------------------------------------------

    def now(self, v: Value) -> Value:
        """Return an old value in NCHW."""
        if v not in self.plain and v in self.blocks:
            self.plain[v] = self.added(nchw16c.from_blocks, [self.blocks[v]], v.node, shape=v.spec.shape)
        return self.plain.get(v, v)

    def in_blocks(self, v: Value) -> Value:
        """Return an old value in blocks."""
        if v not in self.blocks:
            self.blocks[v] = self.added(nchw16c.to_blocks, [self.now(v)], v.node)
        return self.blocks[v]

    def images(self, v: Value, weight: tuple, groups: int) -> Value:
        """Return the input of a convolution, in blocks if that pays.

        It stays in NCHW if it has few channels, or if this convolution is its only user and copies it anyway. weight:
        the shape of the filters.
        """
        copied = math.prod(weight[2:]) > 1 and self.only_reader(v) and (groups == 1 or weight[1] in nchw16c.GROUPS)
        return self.now(v) if v not in self.blocks and (v.spec.shape[1] < FEW or copied) else self.in_blocks(v)

    def only_reader(self, v: Value) -> Node | None:
        readers = self.readers.get(v, ())
        return readers[0] if len(readers) == 1 and v not in self.shown else None

    # ---- nodes -------------------------------------------------------------------------------------------------------

    def keep(self, node: Node) -> None:
        """Keep a node, with its inputs in NCHW."""
        inputs = [self.now(x) if x.__class__ is Value else x for x in node.inputs]
        origin = self.twins.get(node.origin, node.origin)
        if origin is not node.origin or any(a is not b for a, b in zip(inputs, node.inputs)):
            old, node = node, node.replace(inputs, origin)
            self.twins[old] = node
            self.plain.update(zip(outputs_of(old), outputs_of(node)))
        self.nodes.append(node)

    def added(self, op: Op, inputs: Iterable, like: Node, **attrs) -> Value:
        """Append a node with the scope and phase of `like`; return its first output."""
        return outputs_of(self.append(op, inputs, like, attrs))[0]

    def append(self, op: Op, inputs: Iterable, like: Node, attrs: Mapping) -> Node:
        inputs = list(inputs)
        found = op.infer(*[x.spec if x.__class__ is Value else x for x in inputs], **attrs)
        node = Node(op, inputs, dict(attrs), found if op.many else (found,), scope=like.scope, where=like.where)
        node.origin = self.twins.get(like.origin, like.origin)
        self.nodes.append(node)
        return node

    def put(
        self, op: Op, inputs: Iterable, olds: Sequence[Node], values: Sequence[Value] | None = None, **attrs
    ) -> bool:
        """Append a node that replaces old ones and computes `values` (of the last one); return True."""
        node = self.append(op, inputs, olds[0], attrs)
        node.parts = tuple([part for old in olds for part in old.parts or (old,)])
        self.twins.update(dict.fromkeys(olds, node))
        for old, new in zip(values or outputs_of(olds[-1]), outputs_of(node)):
            (self.plain if new.spec is old.spec else self.blocks)[old] = new
        return True

    # ---- rules -------------------------------------------------------------------------------------------------------

    def changed(self, node: Node) -> bool:
        """Rewrite a node to blocks; False if it stays as it is."""
        if node in self.chains:
            return self.convolution(self.chains[node])
        rule = RULES.get(node.op)
        first = node.inputs[0] if node.inputs else None
        if rule is None or first.__class__ is not Value or first.spec.dtype is not float32 or first.spec.ndim != 4:
            return False
        return rule(self, node)

    def fits(self, reads: Iterable[Value], out: tuple, weight: tuple, channels: int, groups: int) -> bool:
        """True if a convolution has a kernel in blocks and is large enough, or reads a value that is in blocks already.

        out, weight: shapes of its output and of its filters.
        """
        size = math.prod(weight) * out[0] * math.prod(out[2:])
        wanted = size >= LEAST or any(x in self.blocks for x in reads)
        return wanted and (groups == channels == weight[0] or nchw16c.by_groups(groups, weight[1], weight[0] // groups))

    def conv2d(self, node: Node) -> bool:
        x, weight = node.inputs
        if not self.fits([x], node.out_specs[0].shape, weight.spec.shape, x.spec.shape[1], node.attrs["groups"]):
            return False
        chain = [node]
        while chain[-1].op not in ACTS and (after := self.only_reader(outputs_of(chain[-1])[0])):
            if after.op not in ACTS and not per_channel(after, outputs_of(chain[-1])[0]):
                break
            chain.append(after)
        self.waiting.update(chain[:-1])
        self.chains[chain[-1]] = chain
        return len(chain) > 1 or self.convolution(chain)

    def convolution(self, chain: list[Node]) -> bool:
        """Emit a convolution with its epilogue: scales and biases per channel, and an activation."""
        first = chain[0]
        x, weight = first.inputs
        filters, bias, act = self.now(weight), 0, ""
        for before, node in itertools.pairwise(chain):
            if node.op in ACTS:
                act = ACTS[node.op]
                continue
            other = self.now(*[v for v in node.inputs if v != outputs_of(before)[0]])
            vector = self.added(shape.reshape, [other], node, shape=weight.spec.shape[:1])
            if node.op is elementwise.mul:
                wide = self.added(shape.reshape, [vector], node, shape=(weight.spec.shape[0], 1, 1, 1))
                filters = self.added(elementwise.mul, [filters, wide], node)
            bias = (
                vector
                if bias == 0 and node.op is elementwise.add
                else bias and self.added(node.op, [bias, vector], node)
            )
        images = self.images(x, weight.spec.shape, first.attrs["groups"])
        inputs = [images, filters, bias]
        return self.put(nchw16c.blocks_conv2d, inputs, chain, shape=x.spec.shape, **first.attrs, act=act)

    def input_grad(self, node: Node) -> bool:
        grad, weight = node.inputs
        if not self.fits([grad], grad.spec.shape, weight.spec.shape, node.attrs["shape"][1], node.attrs["groups"]):
            return False
        inputs = [self.in_blocks(grad), self.now(weight)]
        return self.put(nchw16c.blocks_conv2d_input_grad, inputs, [node], **node.attrs)

    def weight_grad(self, node: Node) -> bool:
        grad, x = node.inputs
        if not self.fits([grad, x], grad.spec.shape, node.attrs["shape"], x.spec.shape[1], node.attrs["groups"]):
            return False
        images, spread = self.images(x, node.attrs["shape"], node.attrs["groups"]), self.spread.get(grad)
        if spread in self.waiting:
            inputs, windows = [*map(self.in_blocks, spread.inputs), images], apart_of(spread.inputs[1].node)
            attrs = node.attrs | windows
            return self.put(nchw16c.blocks_max_pool2d_weight_grad, inputs, [spread, node], images=x.spec.shape, **attrs)
        inputs = [self.in_blocks(grad), images]
        return self.put(nchw16c.blocks_conv2d_weight_grad, inputs, [node], images=x.spec.shape, **node.attrs)

    def channel_sum(self, node: Node) -> bool:
        (x,) = node.inputs
        if x in self.spread:  # each element of the pooled cotangent is at exactly one pixel, so the sum is the same
            x = self.spread[x].inputs[0]
        if x not in self.blocks or not of_channels(node.attrs["shape"], x.spec):
            return False
        return self.put(
            nchw16c.blocks_channel_sum, [self.blocks[x]], [node], shape=x.spec.shape, to=node.attrs["shape"]
        )

    def batch_norm(self, node: Node) -> bool:
        x, weight, bias = node.inputs
        if x not in self.blocks:
            return False
        y, *statistics = outputs_of(node)
        after, olds, act = self.only_reader(y), [node], ""
        if after and after.op in ACTS:
            olds, act = [node, after], ACTS[after.op]
            y = outputs_of(after)[0]
            self.normed[y] = node
        inputs, attrs = [self.blocks[x], *map(self.now, (weight, bias))], node.attrs | dict(act=act)
        return self.put(nchw16c.blocks_batch_norm, inputs, olds, [y, *statistics], shape=x.spec.shape, **attrs)

    def batch_norm_grad(self, node: Node) -> bool:
        grad, x, weight, mean, var = node.inputs
        if x not in self.blocks:
            return False
        bias, act, olds = weight, "", [node]
        if slope := self.slopes.get(grad):
            grad, bias, act, olds = slope.inputs[0], mean.node.inputs[2], SLOPES[slope.op], [slope, node]
        inputs = [self.in_blocks(grad), self.blocks[x], *map(self.now, (weight, bias, mean, var))]
        attrs = node.attrs | dict(act=act)
        return self.put(nchw16c.blocks_batch_norm_grad, inputs, olds, shape=x.spec.shape, **attrs)

    def pays(self, x: Value, taps: int) -> bool:
        """True if x is in blocks, or if an op that reads `taps` pixels per output makes up for converting it.

        With few channels most lanes of a block would be empty.
        """
        return x in self.blocks or (x.spec.shape[1] >= FEW // 2 and x.spec.size * taps >= ALONE)

    def max_pool2d(self, node: Node) -> bool:
        (x,) = node.inputs
        indices = outputs_of(node)[1]
        taps = math.prod(node.attrs["kernel_size"])
        if (
            taps > 255
            or indices in self.shown
            or not self.pays(x, taps if taps > 4 else 0)
            or any(r.op is not pool.max_pool2d_grad for r in self.readers.get(indices, ()))
        ):
            return False
        before = self.in_blocks(x).node
        if before.op is nchw16c.blocks_conv2d and self.only_reader(x) is node and does_more(before) and is_simple(node):
            self.nodes.remove(before)
            olds = [*[old for old, new in self.twins.items() if new is before], node]
            attrs = before.attrs | apart_of(node)
            return self.put(nchw16c.blocks_conv2d_max_pool2d, before.inputs, olds, **attrs)
        return self.put(nchw16c.blocks_max_pool2d, [self.blocks[x]], [node], shape=x.spec.shape, **node.attrs)

    def max_pool2d_grad(self, node: Node) -> bool:
        grad, indices = node.inputs
        if indices not in self.blocks:
            return False
        (out,) = outputs_of(node)
        small, self.spread[out] = self.in_blocks(grad), node
        if is_simple(indices.node) and self.for_filters(out):
            self.waiting.add(node)
            return True
        inputs, window = [small, self.blocks[indices]], indices.node.attrs
        return self.put(nchw16c.blocks_max_pool2d_grad, inputs, [node], shape=node.attrs["shape"], **window)

    def for_filters(self, grad: Value) -> bool:
        """True if this cotangent is used only by one weight gradient (larger than 1x1) and by sums of channels."""
        readers = self.readers.get(grad, ())
        others = [r for r in readers if r.op is not shape.sum_to or not of_channels(r.attrs["shape"], grad.spec)]
        if len(others) != 1 or others[0].op is not conv.conv2d_weight_grad or grad in self.shown:
            return False
        (g, x), filters = others[0].inputs, others[0].attrs["shape"]
        return (
            g == grad != x
            and others[0].attrs["groups"] == 1
            and math.prod(filters[2:]) > 1
            and self.fits([x], grad.spec.shape, filters, x.spec.shape[1], 1)
        )

    def avg_pool2d(self, node: Node) -> bool:
        """Rewrite a pooling, or the gradient of one."""
        (x,) = node.inputs
        if node.origin not in self.twins and not self.pays(x, math.prod(node.attrs["kernel_size"])):
            return False
        op = nchw16c.blocks_avg_pool2d if node.op is pool.avg_pool2d else nchw16c.blocks_avg_pool2d_grad
        return self.put(op, [self.in_blocks(x)], [node], **dict(shape=x.spec.shape) | node.attrs)

    def average(self, node: Node) -> bool:
        (x,) = node.inputs
        whole = x in self.blocks and outputs_of(node)[0].spec.shape[2:] == (1, 1)
        return whole and self.put(nchw16c.blocks_average, [self.blocks[x]], [node], shape=x.spec.shape)

    def average_grad(self, node: Node) -> bool:
        (grad,) = node.inputs
        whole = grad.spec.shape[2:] == (1, 1) and node.origin in self.twins
        return whole and self.put(
            nchw16c.blocks_average_grad, [self.in_blocks(grad)], [node], shape=node.attrs["shape"]
        )

    def interpolate(self, node: Node) -> bool:
        (x,), (y,) = node.inputs, outputs_of(node)
        before_conv = any(reader.op is conv.conv2d for reader in self.readers.get(y, ()))
        if x not in self.blocks and not (before_conv and x.spec.shape[1] >= FEW):
            return False
        return self.put(nchw16c.blocks_interpolate, [self.in_blocks(x)], [node], shape=x.spec.shape, **node.attrs)

    def interpolate_grad(self, node: Node) -> bool:
        grad, x = node.inputs
        if grad not in self.blocks and x not in self.blocks:
            return False
        attrs = {name: node.attrs[name] for name in interpolate.attrs}
        return self.put(nchw16c.blocks_interpolate_grad, [self.in_blocks(grad)], [node], shape=x.spec.shape, **attrs)

    def joined(self, node: Node) -> bool:
        """Rewrite a concatenation of channels; all but the last must be whole blocks."""
        values = node.inputs
        if node.attrs["dim"] != 1 or not any(x in self.blocks for x in values):
            return False
        if any(x.spec.dtype is not float32 or x.spec.shape[1] % nchw16c.LANES for x in values[:-1]):
            return False
        return self.put(node.op, map(self.in_blocks, values), [node], dim=0)

    def some_channels(self, node: Node) -> bool:
        """Rewrite a slice of channels that starts at a block and ends at one, or at the last channel."""
        (x,) = node.inputs
        whole, *rest = node.attrs["index"]
        if x not in self.blocks or whole != (None, None, None) or len(rest) != 1 or rest[0].__class__ is not tuple:
            return False
        channels = x.spec.shape[1]
        start, stop, step = slice(*rest[0]).indices(channels)
        if step != 1 or start >= stop or start % nchw16c.LANES or (stop % nchw16c.LANES and stop < channels):
            return False
        some = (start // nchw16c.LANES, -(-stop // nchw16c.LANES), None)
        return self.put(node.op, [self.blocks[x]], [node], index=(some,))

    def elementwise(self, node: Node) -> bool:
        values = [x for x in node.inputs if x.__class__ is Value]
        (out,) = outputs_of(node)
        if not any(x in self.blocks for x in values) or any(x.spec is not out.spec for x in values):
            return False
        if node.op in SLOPES and self.before_norm(node):
            return True
        numbers = [x for x in node.inputs if x.__class__ is not Value]
        if numbers and not (node.op is elementwise.mul and np.isfinite(numbers).all()):
            return False  # adding a number would write to the empty lanes, and infinity times 0 is NaN
        return self.put(node.op, [self.in_blocks(x) if x.__class__ is Value else x for x in node.inputs], [node])

    def before_norm(self, node: Node) -> bool:
        """True if this activation gradient can be fused into the gradient of the batch norm before the activation."""
        (out,) = outputs_of(node)
        after, forward = self.only_reader(out), self.normed.get(node.inputs[1])
        if forward is None or after is None or after.op is not norm.batch_norm_grad or after.inputs[0] != out:
            return False
        x, weight, _ = forward.inputs
        if tuple(after.inputs[1:]) != (x, weight, *outputs_of(forward)[1:]) or after.attrs != forward.attrs:
            return False
        self.slopes[out] = node
        self.waiting.add(node)
        return True


def is_simple(node: Node) -> bool:
    """True if the windows of this max pooling have no padding, and neither dilation nor ceil mode."""
    return node.attrs == nchw16c.simple(node.attrs["kernel_size"], node.attrs["stride"])


def apart_of(node: Node) -> dict:
    """Return size and stride of the windows, under other names than the stride of a convolution."""
    return dict(kernel_size=node.attrs["kernel_size"], window_stride=node.attrs["stride"])


def does_more(node: Node) -> bool:
    """True if this convolution is dense and its filters are larger than 1x1."""
    return node.attrs["groups"] == 1 and math.prod(node.inputs[1].spec.shape[2:]) > 1


def of_channels(size: tuple, images: Spec) -> bool:
    """True if this is the shape of one element per channel of these images."""
    return tuple(size) in ((1, images.shape[1], 1, 1), (images.shape[1], 1, 1))


def per_channel(node: Node, image: Value) -> bool:
    """True if this node adds to the image, or multiplies it by, one element per channel."""
    others = [x for x in node.inputs if x != image]
    if node.op not in (elementwise.add, elementwise.mul) or len(others) != 1 or others[0].__class__ is not Value:
        return False
    return of_channels(others[0].spec.shape, image.spec) and others[0].spec.dtype is image.spec.dtype


RULES = {
    conv.conv2d: LayoutRewriter.conv2d,
    conv.conv2d_input_grad: LayoutRewriter.input_grad,
    conv.conv2d_weight_grad: LayoutRewriter.weight_grad,
    shape.sum_to: LayoutRewriter.channel_sum,
    norm.batch_norm: LayoutRewriter.batch_norm,
    norm.batch_norm_grad: LayoutRewriter.batch_norm_grad,
    pool.max_pool2d: LayoutRewriter.max_pool2d,
    pool.max_pool2d_grad: LayoutRewriter.max_pool2d_grad,
    pool.avg_pool2d: LayoutRewriter.avg_pool2d,
    pool.avg_pool2d_grad: LayoutRewriter.avg_pool2d,
    pool.adaptive_avg_pool2d: LayoutRewriter.average,
    pool.adaptive_avg_pool2d_grad: LayoutRewriter.average_grad,
    interpolate: LayoutRewriter.interpolate,
    interpolate.gradient: LayoutRewriter.interpolate_grad,
    shape.cat: LayoutRewriter.joined,
    shape.getitem: LayoutRewriter.some_channels,
    **dict.fromkeys(EITHER, LayoutRewriter.elementwise),
}
