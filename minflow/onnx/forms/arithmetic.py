"""Forms of arithmetic and mathematical functions, element by element.

Our inputs were promoted before the node was recorded; a Python number takes the dtype of the tensor beside it.
Read next: `../builder.py`.
"""

from __future__ import annotations

from ..builder import form


def several(kind: str):
    """The form of an op that has a twin in ONNX: inputs in order, literals in the result's dtype."""

    def same(b, node, *inputs):
        return b.op(kind, *[b.value(x, node.out_specs[0].dtype) for x in inputs])

    return same


for ours, theirs in dict(add="Add", sub="Sub", mul="Mul", div="Div", relu="Relu", exp="Exp", tanh="Tanh").items():
    form(ours)(several(theirs))


@form("cast")
def _(b, node, x):
    return b.cast(x, node.attrs["dtype"])
