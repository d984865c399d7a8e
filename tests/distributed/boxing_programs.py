"""Programs that box arrays between distributions and check all elements. This script runs them on processes."""

import itertools
import math
import random
import sys

import ml_dtypes
import numpy as np

from minflow.core.base.placement import Placement, broadcast, partial_sum, split
from minflow.distributed.boxing import Layout, box, place, region_of
from minflow.distributed.world import world

DTYPES = ["float32", "float16", ml_dtypes.bfloat16, "int8", "uint8", "int64", "bool", "complex64"]
SHAPES = [(8, 12), (5, 7), (2, 9, 3), (1, 4), (0, 3), (4, 0), (3,), ()]


def of_ranks(*ranks, hierarchy=None):
    return Placement.of("cpu", ranks, hierarchy or (len(ranks),))


PLACEMENTS = [
    of_ranks(0), of_ranks(1), of_ranks(0, hierarchy=(1, 1)), of_ranks(0, 1), of_ranks(2, 3), of_ranks(2, 1),
    of_ranks(3, 1, 0), of_ranks(0, 1, 2, 3), of_ranks(2, 3, 0, 1, hierarchy=(2, 2)),
    of_ranks(0, 1, 2, 3, hierarchy=(2, 2)), of_ranks(0, 1, 2, 3, 4, 5, hierarchy=(2, 3)),
]  # fmt: skip


def layouts(placement, dims):
    """All distributions of a tensor with some dims on a placement."""
    kinds = [broadcast, partial_sum, *map(split, range(dims))]
    return [Layout(placement, sbp) for sbp in itertools.product(kinds, repeat=len(placement.hierarchy))]


def whole_tensor(shape, dtype):
    return (np.arange(math.prod(shape)).reshape(shape) % 23 + 1).astype(dtype)


def local_part(whole, layout, rank):
    """The part of a rank. Partial sums along an axis are 3 times the elements, and -2 times."""
    if rank not in layout.placement.order:
        return np.empty((0, *whole.shape[1:]), whole.dtype)
    index = layout.at(rank)
    part = whole[place(region_of(whole.shape, layout, rank), [(0, size) for size in whole.shape])].copy()
    for axis in layout.axes("partial_sum"):
        count = layout.placement.hierarchy[axis]
        if whole.dtype.kind == "b":
            part &= np.arange(part.size).reshape(part.shape) % count == index[axis]
        elif count > 1:
            np.multiply(part, np.array({0: 3, 1: -2}.get(index[axis], 0)).astype(whole.dtype), out=part)
    return part


def whole_of(layout, parts, shape, dtype):
    """The tensor of which ranks hold parts. Raises AssertionError if ranks with the same part have other bits."""
    whole, seen = np.zeros(shape, dtype), {}
    for rank, part in enumerate(parts):
        if rank not in layout.placement.order:
            assert part.shape == (0, *shape[1:])
            continue
        index = layout.at(rank)
        region = region_of(shape, layout, rank)
        assert part.dtype == dtype and part.flags.c_contiguous
        assert part.shape == tuple([stop - start for start, stop in region])
        term = tuple([index[axis] for axis in layout.axes("partial_sum")])
        assert seen.setdefault((region, term), part.tobytes()) == part.tobytes()
    for (region, _), data in seen.items():
        there = whole[place(region, [(0, size) for size in shape])]
        np.add(there, np.frombuffer(data, dtype).reshape(there.shape), out=there)
    return whole


def check(shape, dtype, source, target):
    """Box a tensor and compare all elements. Returns the number of bytes that all ranks have sent."""
    everyone, whole = world(), whole_tensor(shape, dtype)
    mine, before = local_part(whole, source, everyone.rank), everyone.sent
    kept = mine.copy()
    found = box(mine, shape, whole.dtype, source, target)
    assert mine.tobytes() == kept.tobytes(), "the input has changed"
    assert (mine is found) if source == target else not np.shares_memory(mine, found)
    results = everyone.exchange(everyone.fingerprint("check"), (found, everyone.sent - before))
    boxed = whole_of(target, [part for part, _ in results], shape, whole.dtype)
    assert np.array_equal(boxed, whole), (shape, str(source), str(target), boxed, whole)
    return sum([count for _, count in results])


def check_pairs(placements, shape, most=400):
    """Box between the distributions on some placements; of many pairs, a random sample."""
    pairs = [
        pair
        for both in itertools.product(placements, repeat=2)
        for pair in itertools.product(*[layouts(placement, len(shape)) for placement in both])
    ]
    for source, target in pairs if len(pairs) <= most else random.Random(len(shape)).sample(pairs, most):
        check(shape, "float64", source, target)


def bytes_are_those_of_the_table():
    """Yuan et al. 2021, table 2: the bytes of one rank, in units of the whole tensor."""
    size = world().size
    shape = size * 4, size * 2
    table = {
        ("split", "broadcast"): (size - 1) / size,
        ("partial_sum", "broadcast"): 2 * (size - 1) / size,
        ("partial_sum", "split"): (size - 1) / size,
        ("split", "split"): (size - 1) / size**2,
    }
    everywhere = layouts(of_ranks(*range(size)), 2)
    for source, target in itertools.product(everywhere, repeat=2):
        share = 0 if source == target else table.get((source.sbp[0].kind, target.sbp[0].kind), 0)
        for dtype in ("float32", "int8"):
            tensor = math.prod(shape) * np.dtype(dtype).itemsize
            assert check(shape, dtype, source, target) == share * tensor * size, (source, target)


def all_dtypes_are_boxed():
    """Sums of booleans are their disjunction."""
    everywhere = of_ranks(*range(world().size))
    ways = [(split(0), broadcast), (partial_sum, broadcast), (partial_sum, split(1)), (split(0), partial_sum)]
    for dtype, way in itertools.product(DTYPES, ways):
        check((5, 3), dtype, *[Layout(everywhere, (sbp,)) for sbp in way])


def bits_of_sums_are_equal():
    """On all ranks, and if it is done again; also of an array that ranks add up in parts."""
    everyone = world()
    everywhere = of_ranks(*range(everyone.size))
    source, target = [(everywhere, (sbp,)) for sbp in (partial_sum, broadcast)]
    for shape in ((5, 3), (300, 101)):
        mine = np.random.default_rng(everyone.rank).standard_normal(shape)
        found = {box(mine, shape, mine.dtype, source, target).tobytes() for _ in range(3)}
        assert len(found.union(*everyone.exchange(everyone.fingerprint("check"), found))) == 1


def main(size):
    assert world().size == size
    for shape in ((5, 7), (0, 3), ()):
        check_pairs([of_ranks(*range(size))], shape)
    check_pairs([placement for placement in PLACEMENTS if max(placement.order) < size], (5, 3), most=100)
    bytes_are_those_of_the_table()
    all_dtypes_are_boxed()
    bits_of_sums_are_equal()
    first, second = [(of_ranks(rank), (broadcast,)) for rank in (0, 1)]
    if world().rank < 2:  # rank 0 ends with an array under way
        mine = np.ones(300_000 if world().rank == 0 else 0)
        found = box(mine, (300_000,), mine.dtype, first, second)
        assert np.array_equal(found, np.ones(300_000 * world().rank))
    print("boxing is right on rank", world().rank)


if __name__ == "__main__":
    main(int(sys.argv[1]))
