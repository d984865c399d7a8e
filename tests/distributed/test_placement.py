"""`flow.placement` and `flow.sbp`: the values that describe a global tensor, and the errors of wrong ones."""

import copy
import pickle
import re

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import MinflowError
from minflow.core.base.placement import parse_sbp

B, P, S = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
PAIR = flow.placement("cpu", ranks=[0, 1])
SQUARE = flow.placement("cpu", [[0, 1], [2, 3]])


@pytest.mark.parametrize("ranks", [[0, 1], (0, 1), range(2), np.arange(2), np.array([0, 1], "uint8"), flow.arange(2)])
def test_ranks_of_any_sequence(ranks):
    assert flow.placement("cpu", ranks) is flow.placement(type="cpu", ranks=ranks) is PAIR


def test_a_placement_has_a_type_and_an_array_of_ranks():
    assert isinstance(SQUARE, flow.placement) and SQUARE.type == "cpu"
    assert SQUARE.order == (0, 1, 2, 3) and SQUARE.hierarchy == (2, 2)
    assert np.array_equal(SQUARE.ranks, [[0, 1], [2, 3]]) and 3 in SQUARE.ranks and SQUARE.ranks.flat[0] == 0
    assert flow.placement("cpu", [3, 1]).order == (3, 1) and flow.placement("cpu", 1).hierarchy == (1,)
    assert repr(PAIR) == str(PAIR) == 'minflow.placement(type="cpu", ranks=[0, 1])'
    assert repr(SQUARE) == 'minflow.placement(type="cpu", ranks=[[0, 1], [2, 3]])'


def test_equal_values_are_one_object():
    different = [PAIR, SQUARE, flow.placement("cpu", [1, 0]), flow.placement("cpu", [[0, 1]]), B, P, S(0), S(1), S(-1)]
    assert len(set(different)) == len(different)
    for value in different:
        assert pickle.loads(pickle.dumps(value)) is copy.copy(value) is copy.deepcopy([value])[0] is value
        field = type(value).__slots__[0]
        with pytest.raises(AttributeError, match="minflow"):
            setattr(value, field, "cuda")


def test_sbp_is_written_as_in_oneflow():
    assert flow.sbp.broadcast() is B and flow.sbp.partial_sum() is P and S(1)() is S(1)
    assert flow.sbp.split(dim=1) is flow.sbp.split(axis=1) is S(1) != S(0)
    assert all([isinstance(sbp, flow.sbp.sbp) for sbp in (B, P, S(0))])
    assert str((S(0), B, P)) == "(minflow.sbp.split(dim=0), minflow.sbp.broadcast, minflow.sbp.partial_sum)"


def test_all_ranks_of_the_world():
    assert flow.placement.all("cpu") is flow.env.all_device_placement("cpu") is flow.placement("cpu", [0])
    with flow.virtual_ranks(3) as ranks:
        assert ranks.run(flow.placement.all, "cpu") == [flow.placement("cpu", range(3))] * 3


def test_parse_sbp_gives_one_value_for_each_axis():
    assert parse_sbp(B, PAIR, 0) == parse_sbp([B], PAIR, 2) == (B,)
    assert parse_sbp(S(-1), PAIR, 3) == (S(2),)
    assert parse_sbp((S(-2), P), SQUARE, 2) == (S(0), P)


WRONG = {
    "placement()": "type None .*ranks=.0, 1.",
    "placement([0, 1])": r"type \[0, 1\]",
    "placement('gpu', [0, 1])": "type 'gpu'",
    "placement('cuda', [[0, 1]])": r'no CUDA .*placement\("cpu", ranks=\[\[0, 1\]\]\)',
    "placement('cpu')": "ranks None",
    "placement('cpu', [])": r"at least one rank ranks \[\]",
    "placement('cpu', [0, 1, 0])": r"rank 0 .*ranks \[0, 1, 0\] .*ranks=\[0, 1\]",
    "placement('cpu', [0, -1])": r"got -1 .*ranks \[0, -1\]",
    "placement('cpu', [0.0, 1.0])": r"integers .*ranks \[0.0, 1.0\]",
    "placement('cpu', [True])": r"integers .*ranks \[True\]",
    "placement('cpu', {0: [0, 1]})": r"ranks \{0: \[0, 1\]\} .*ranks=\[0, 1\]",
    "placement('cpu', '0:0-3')": "ranks '0:0-3'",
    "placement('cpu', [[0], [1, 2]])": r"length .*ranks \[\[0\], \[1, 2\]\]",
    "placement('cpu', [0, 3]).check_world()": "no rank 3: .*1 rank.*launch -n 4 .*virtual_ranks.4.",
    "sbp.split()": "needs dim",
    "sbp.split('rows')": "dim 'rows'",
    "sbp.split(True)": "dim True",
    "sbp.spilt": "flow.sbp.split",
    "parse_sbp(None, PAIR, 2)": "sbp None",
    "parse_sbp([S(0), 'B'], SQUARE, 2)": r"sbp \[minflow.sbp.split\(dim=0\), 'B'\]",
    "parse_sbp(B, SQUARE, 2)": "2, got 1 .*sbp minflow.sbp.broadcast .*placement .*sbp=.flow.sbp.broadcast, flow.sbp.b",
    "parse_sbp([], PAIR, 2)": "1, got 0",
    "parse_sbp(S(2), PAIR, 2)": r"2 dims .*dim 2 .*sbp minflow.sbp.split\(dim=2\) .*from -2 to 1",
    "parse_sbp(S(-3), PAIR, 2)": "dim -3",
    "parse_sbp(S(0), PAIR, 0)": "0 dims .*Try: flow.sbp.broadcast",
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_values_are_refused_in_four_parts(call):
    with pytest.raises(MinflowError) as caught:
        eval(call, {**globals(), "placement": flow.placement, "sbp": flow.sbp})
    assert re.search(WRONG[call], " ".join(str(caught.value).split())), caught.value
    assert caught.value.hint and caught.value.where


def test_a_rank_outside_the_world_is_refused_where_the_world_is_known():
    outside = flow.placement("cpu", [0, 5])  # no world yet: a program may define it before it opens virtual ranks
    with flow.virtual_ranks(2) as ranks:
        with pytest.raises(MinflowError, match=r"no rank 5: the world has 2 ranks.*\n.*ranks=\[0, 5\]"):
            ranks.run(flow.placement, "cpu", [0, 5])
        with pytest.raises(MinflowError, match="no rank 5"):
            ranks.run(outside.check_world)


def test_tensors_of_ranks_outside_of_the_placement_do_not_count():
    def main():
        inside = flow.env.get_rank() != 1
        x = flow.ones(2, 3, dtype=flow.float64) if inside else flow.zeros(7)
        y = x.to_global(flow.placement("cpu", [0, 2]), S(0), copy=True)
        assert (y.shape, y.dtype, y.sbp) == ((4, 3), flow.float64, (S(0),))
        assert y.to_local().shape == ((2, 3) if inside else (0, 3)) and y.to_local().dtype is flow.float64
        y.to_local().zero_()
        assert not inside or x.sum() == 6

    with flow.virtual_ranks(3) as ranks:
        ranks.run(main)


def test_local_to_global_and_global_to_global_take_one_kind():
    x, one = flow.ones(2), flow.placement("cpu", [0])
    y = x.local_to_global(one, B)
    assert y.is_global and not hasattr(x, "placement") and not hasattr(x, "sbp") and y.placement is one
    assert y.global_to_global(sbp=S(0)).sbp == (S(0),)
    with pytest.raises(MinflowError, match=r"x  float32\[2\]"):
        x.global_to_global(one, B)
    with pytest.raises(MinflowError, match=r"x  float32\[2\]"):
        y.local_to_global(one, B)


@pytest.mark.parametrize(
    "args", ["None, S(0)", "PAIR, None", "'cpu', S(0)", "PAIR, S(2)", "SQUARE, [S(0)]", "SQUARE, B"]
)
def test_wrong_arguments_of_to_global(args):
    def main():
        with pytest.raises(MinflowError) as caught:
            eval(f"flow.ones(2, 3).to_global({args})", globals())
        assert caught.value.hint and caught.value.where

    with flow.virtual_ranks(2) as ranks:
        ranks.run(main)
