"""The work of a call: floating-point operations, and bytes that it reads and writes.

Counted from shapes by the definition of the op: a product of (n, k) and (k, m) is 2 n k m, whatever the algorithm, so
one that needs fewer operations (Winograd's) may seem faster than the processor. A function such as exp counts as one.
Read next: `roofline.py`, which compares this with the processor's peaks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....compiler.fusion.nchw16c import result_shape
from ....core.ir import Node, Value
from ....core.spec import Spec
from ....nn.summary import MACS, recurrent


def conv_flops(shape: tuple, weight: tuple, geometry: dict[str, Any]) -> int:
    """Operations of a convolution of images of this shape with filters of that shape."""
    sizes = {name: geometry[name] for name in ("stride", "padding", "dilation")}
    return 2 * math.prod(result_shape(shape, weight, **sizes)) * math.prod(weight[1:])


# op -> operations of one call, from the specs of its result and of its inputs
FLOPS: dict[str, Callable[..., int]] = {
    **{name: lambda *specs, macs=macs, **attrs: 2 * macs(*specs, **attrs) for name, macs in MACS.items()},
    "blocks_conv2d": lambda out, x, weight, *_, shape, **attrs: conv_flops(shape, weight.shape, attrs),
    "blocks_conv2d_input_grad": lambda out, grad, weight, shape, **attrs: conv_flops(shape, weight.shape, attrs),
    "blocks_conv2d_weight_grad": lambda out, grad, x, shape, images, **attrs: conv_flops(images, shape, attrs),
    # a recurrent layer: the gradients of the sequence and of the weights, each as much as forward
    **dict.fromkeys(("rnn_grad", "gru_grad"), lambda out, gy, ghn, x, h, *w, **_: 4 * recurrent(x, *w[:2])),
    **dict.fromkeys(
        ("lstm_grad", "lstm_projected_grad"),
        lambda out, gy, ghn, gcn, x, h, c, *w, **_: 4 * recurrent(x, *w[:2], *w[5:]),
    ),
    **dict.fromkeys(("max_pool2d", "avg_pool2d"), lambda out, x, kernel_size, **_: out.size * math.prod(kernel_size)),
}
# op -> operations per element of its largest tensor; 1 for elementwise ops not listed here
FLOPS_PER_ELEMENT = {
    **dict.fromkeys(
        (
            "sum",
            "mean",
            "prod",
            "amax",
            "amin",
            "cumsum",
            "sum_to",
            "relu_grad",
            "relu6_grad",
            "leaky_relu_grad",
            "where",
            "max_pool2d_grad",
            "avg_pool2d_grad",
            "dropout",
            "accumulate",
            "index_add",
            "nll",
            "nll_grad",
            "adaptive_avg_pool2d",
            "adaptive_avg_pool2d_grad",
            "blocks_channel_sum",
            "blocks_average",
            "blocks_average_grad",
            "blocks_max_pool2d",
            "blocks_max_pool2d_grad",
        ),
        1,
    ),
    **dict.fromkeys(("sgd", "softmax_cross_entropy_grad"), 2),
    **dict.fromkeys(("sgd_momentum", "var", "softmax", "log_softmax", "softmax_cross_entropy"), 4),  # p and buf 2 each
    **dict.fromkeys(("batch_norm", "blocks_batch_norm"), 6),  # mean 1, variance 3, scale and shift 2
    **dict.fromkeys(("batch_norm_grad", "blocks_batch_norm_grad"), 9),  # two sums 5, gradient 4
    "adam": 12,  # two means 3 and 4, root, division, step
}
DATA_MOVEMENT_OPS = frozenset("take gather flip roll tril triu pad im2col to_blocks from_blocks".split())
ROW_LOOKUP_OPS = frozenset({"take", "gather"})  # ops that read only as much of their first input as they return


def flops(node: Node) -> int | None:
    """Operations of one call; None if they are not known. A fused node has the sum of its parts."""
    if node.parts:
        counts = [flops(part) for part in node.parts]
        return None if None in counts else sum(count or 0 for count in counts)
    op, specs = node.op, [x.spec if x.__class__ is Value else Spec((), node.out_specs[0].dtype) for x in node.inputs]
    if op.name in FLOPS:
        return FLOPS[op.name](node.out_specs[0], *specs, **node.attrs)
    if op.dtype_agnostic or op.name in DATA_MOVEMENT_OPS:
        return 0
    each = FLOPS_PER_ELEMENT.get(op.name, 1 if op.elementwise else None)
    return None if each is None else each * max(spec.size for spec in (*specs, *node.out_specs))


def bytes_moved(node: Node, root: Callable[[Value], Value] = lambda value: value) -> int:
    """Bytes that one call reads and writes, each tensor once. root: maps a view to its base: an expanded tensor is read
    at its stored size.
    """
    if node.op.is_view:
        return 0
    read = {root(x): min(x.spec.nbytes, root(x).spec.nbytes) for x in node.inputs if x.__class__ is Value}
    result = sum(spec.nbytes for spec in node.out_specs)
    if node.op.name in ROW_LOOKUP_OPS and (first := node.inputs[0]).__class__ is Value:
        read[root(first)] = min(read[root(first)], result)
    return sum(read.values()) + result
