"""Boxing between all distributions on virtual ranks: elements, bytes and bits."""

import itertools
import math
import re

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.placement import broadcast, partial_sum, split
from minflow.distributed.boxing import Layout, box, route, sent
from minflow.distributed.world import world
from tests.distributed.boxing_programs import (
    PLACEMENTS,
    SHAPES,
    all_dtypes_are_boxed,
    bits_of_sums_are_equal,
    bytes_are_those_of_the_table,
    check,
    check_pairs,
    layouts,
    of_ranks,
)
from tests.distributed.test_ranks import launch, mpi
from tests.processes import TOP, python


def run(size, program, *args):
    with flow.virtual_ranks(size) as ranks:
        return ranks.run(program, *args)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_pairs(size, shape):
    run(size, check_pairs, [of_ranks(*range(size))], shape)


@pytest.mark.parametrize("hierarchy", [(2, 2), (2, 3), (3, 2), (1, 2), (2, 1, 2)], ids=str)
@pytest.mark.parametrize("shape", [(8, 12), (5, 3), (1, 4), (3, 0), ()], ids=str)
def test_all_pairs_of_hierarchies(hierarchy, shape):
    size = math.prod(hierarchy)
    run(size, check_pairs, [of_ranks(*range(size), hierarchy=hierarchy)], shape)


@pytest.mark.parametrize("shape", [(5, 3), (2,), ()], ids=str)
def test_all_pairs_of_placements(shape):
    run(6, check_pairs, PLACEMENTS, shape, 3000)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_bytes(size):
    run(size, bytes_are_those_of_the_table)


def test_a_rank_keeps_the_elements_that_it_has():
    """Only rank 2 receives elements, and from one rank; of a pipeline, each rank sends its part to one other."""

    def bytes_from(sources, targets, sbp):
        return check((6, 4), "float64", *[Layout(of_ranks(*ranks), (sbp,)) for ranks in (sources, targets)])

    assert run(3, bytes_from, (0, 1), (1, 2), broadcast) == [6 * 4 * 8] * 3
    assert run(3, bytes_from, (0, 1, 2), (1, 2), broadcast) == [0] * 3
    for sbp in (split(0), partial_sum):
        assert run(4, bytes_from, (0, 1), (2, 3), sbp) == [(1 if sbp is split(0) else 2) * 6 * 4 * 8] * 4


def steps_between(layouts_of_ranks, shape):
    """The bytes of each step that makes no partial sums, by source and target."""
    return {
        (source, target): sum(sent(shape, source, target).values())
        for source, target in itertools.product(layouts_of_ranks, repeat=2)
        if all(
            [after.kind != "partial_sum" or before is after for before, after in zip(source.sbp, target.sbp)],
        )
    }


@pytest.mark.parametrize("hierarchy", [(4,), (2, 2), (2, 3)], ids=str)
def test_no_sequence_of_steps_sends_fewer_bytes(hierarchy):
    """To a tensor without partial sums. Shortest paths by Floyd and Warshall."""
    shape, found = (12, 12), layouts(of_ranks(*range(math.prod(hierarchy)), hierarchy=hierarchy), 2)
    steps = steps_between(found, shape)
    best = {pair: steps.get(pair, math.inf) for pair in itertools.product(found, repeat=2)}
    for middle, source, target in itertools.product(found, repeat=3):
        best[source, target] = min(best[source, target], best[source, middle] + best[middle, target])
    for source, target in itertools.product(found, repeat=2):
        if partial_sum not in target.sbp:
            taken = sum([steps[step] for step in itertools.pairwise(route(shape, source, target))])
            assert taken == best[source, target], (str(source), str(target))


@pytest.mark.parametrize("size", [2, 3])
def test_dtypes_and_bits(size):
    run(size, all_dtypes_are_boxed)
    run(size, bits_of_sums_are_equal)


@mpi
@pytest.mark.parametrize("size", [2, 4])
def test_processes(size):
    done = python(*launch, "-n", str(size), TOP / "tests/distributed/boxing_programs.py", str(size), path=[TOP])
    assert done.returncode == 0 and "MPICH" not in done.stderr + done.stdout, done.stdout + done.stderr
    assert sorted(re.findall(r"boxing is right on rank (\d)", done.stdout)) == [str(rank) for rank in range(size)]


def test_a_rank_that_boxes_otherwise_is_explained():
    everywhere = of_ranks(0, 1)

    def work():
        target = broadcast if world().rank else split(0)
        box(np.ones((4, 2)), (4, 2), np.dtype("float64"), (everywhere, (partial_sum,)), (everywhere, (target,)))

    with pytest.raises(flow.RankError, match="the ranks do not call the same collective") as caught:
        run(2, work)
    assert re.search(r"rank 0 .*boxing float64\[4, 2\] \[partial_sum\] -> \[split\(0\)\]", str(caught.value))
    assert re.search(r"rank 1 .*boxing float64\[4, 2\] \[partial_sum\] -> \[broadcast\]", str(caught.value))


def test_a_message_of_another_boxing_is_explained():
    def work():
        shape = 2 + world().rank, 3
        mine = np.ones(shape if world().rank == 0 else (0, 3))
        first, second = [(of_ranks(rank), (broadcast,)) for rank in (0, 1)]
        box(mine, shape, mine.dtype, first, second)

    with pytest.raises(flow.RankError, match="rank 0 has sent an array of another shape") as caught:
        run(2, work)
    assert re.search(r"sent +boxing float64\[2, 3\] \[broadcast\] -> \[broadcast\]", str(caught.value))
    assert re.search(r"expected +boxing float64\[3, 3\] \[broadcast\] -> \[broadcast\]", str(caught.value))


def test_subsets_of_ranks_box_without_the_others():
    """Each pair of ranks in its own order; rank 4 takes no part."""

    def work():
        rank = world().rank
        pair = {0: (0, 1), 1: (1, 0), 2: (2, 3), 3: (3, 2)}.get(rank)
        if pair is None:
            return None
        placement = of_ranks(*sorted(pair))
        parts = []
        for step in range(rank // 2 + 1):
            mine = np.full(3, rank + 10.0 * step)
            parts.append(box(mine, (6,), mine.dtype, (placement, (split(0),)), (placement, (broadcast,))).tolist())
        return parts

    first, third = [[0.0] * 3 + [1.0] * 3], [[2.0] * 3 + [3.0] * 3, [12.0] * 3 + [13.0] * 3]
    assert run(5, work) == [first, first, third, third, None]


def test_a_rank_that_sends_to_another_placement_goes_on():
    """As the stages of a pipeline: the second one takes the arrays when it needs them."""

    def work():
        found = []
        for step in range(3):
            mine = np.full(2 if world().rank == 0 else 0, float(step))
            here, there = [(of_ranks(rank), (broadcast,)) for rank in (0, 1)]
            found.append(box(mine, (2,), mine.dtype, here, there).tolist())
        world().barrier()
        return found

    assert run(2, work) == [[[]] * 3, [[float(step)] * 2 for step in range(3)]]


def test_two_groups_of_the_same_ranks_are_apart():
    def work():
        first, second = [flow.distributed.new_group([0, 1]).communicator for _ in range(2)]
        assert first.key != second.key
        return [group.exchange(group.fingerprint("mine"), name) for group, name in ((first, "a"), (second, "b"))]

    assert run(2, work) == [[["a", "a"], ["b", "b"]]] * 2
