"""The reduction of `embedding_bag`: sums, means or maxima of the rows of each bag. Read next: `index.py`."""

from __future__ import annotations

import math

from ..backend import namespace
from ..op import define
from .elementwise import where
from .examples import bools, case, floats, ints, strided
from .index import index_add
from .shape import cast, constant_beside, filled, in_float32


@in_float32
def bag_parts(rows, place, counted, bags, pooling):
    size, width = rows.spec.shape
    add = lambda shape, source: index_add(
        filled(rows.spec.replace(shape=shape), 0), place, source, axis=0, by="index_add"
    )
    many = add((bags,), cast(counted, dtype=rows.spec.dtype)).unsqueeze(1)
    counted = counted.unsqueeze(1)
    if pooling != "max" or not size * width:
        total = add((bags, width), where(counted, rows, 0.0))
        return total / many.clamp(min=1.0) if pooling == "mean" else total
    inside = (place == constant_beside(place, namespace().arange(bags)).unsqueeze(1)).unsqueeze(2) & counted
    return where(many > 0, where(inside, rows, -math.inf).amax(1), 0.0)


reduce_bags = define(
    "reduce_bags(rows, place, counted; bags, pooling)",
    decompose=bag_parts,
    examples=[
        case(floats(4, 3), ints(4, high=3), bools(4), bags=3, pooling="mean"),
        case(floats(4, 3), ints(4, high=3), bools(4), bags=4, pooling="sum"),
        case(strided(4, 3), ints(4, high=3), bools(4), bags=3, pooling="max"),
        case(floats(0, 3), ints(0), bools(0), bags=2, pooling="max"),
        case(floats(4, 2, dtype="float32"), ints(4, high=2), bools(4), bags=2, pooling="mean"),
    ],
    doc="The sum, mean or max of the counted rows of each bag, 0 if there are none. place: the bag of each row.",
)
