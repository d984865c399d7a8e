"""New global tensors, nested structures of them, and `global_mode`."""

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import MinflowError
from minflow.core.sharding import local_slices
from minflow.utils.global_view import current_global_mode, global_mode, to_global, to_local

B, P, S = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
ROW, SOME = flow.placement("cpu", range(4)), flow.placement("cpu", [2, 0])
SQUARE = flow.placement("cpu", [[0, 1], [2, 3]])
PLACES = [(ROW, S(0)), (ROW, B), (ROW, P), (SOME, S(-1)), (SQUARE, [S(0), S(0)]), (SQUARE, (B, S(0))), (SQUARE, [P, B])]
X = flow.ones(5, 3)
CALLS = [
    "tensor([[1.5, 2, 3], [4, 5, 6]]",
    "Tensor([[1, 2, 3], [4, 5, 6]]",
    "tensor(np.arange(7)",
    "zeros(5, 3",
    "ones((5, 3), dtype=flow.int32",
    "full((5, 3), 7",
    "zeros_like(X",
    "ones_like(X, dtype=flow.int64",
    "full_like(X, 2.5",
    "eye(5, 3",
    "arange(1, 12, 2",
    "linspace(0, 1, 9",
    "linspace(0, 9, 4, dtype=flow.int32",
    "rand(5, 3",
    "randn(5, 3, dtype=flow.float64",
    "randint(0, 100, (5, 3)",
    "randperm(11",
    "normal(2.0, 0.5, (5, 3)",
    "rand_like(X",
    "randn_like(X",
    "randint_like(X, 9",
]
METHODS = ["new_tensor([[1, 2], [3, 4]]", "new_full((5, 3), 2", "new_zeros(5, 3", "new_ones((5, 3)"]
Pair = namedtuple("Pair", "first second")


def on_ranks(function, *args, size=4):
    with flow.virtual_ranks(size) as ranks:
        return ranks.run(function, *args)


@pytest.mark.parametrize(("placement", "sbp"), PLACES, ids=str)
def test_new_global_tensors_have_the_elements_of_local_ones(placement, sbp):
    """Each rank holds its part only, and together they are what one rank draws from the same seed."""

    def main():
        rank = flow.env.get_rank()
        for call in [f"flow.{call}" for call in CALLS] + [f"X.{call}" for call in METHODS]:
            flow.manual_seed(7)
            whole = eval(f"{call})", globals())
            flow.manual_seed(7)
            x = eval(f"{call}, placement=placement, sbp=sbp)", {**globals(), "placement": placement, "sbp": sbp})
            assert x.placement is placement and x.shape == whole.shape and x.dtype is whole.dtype, call
            index = local_slices(x.spec, rank)
            assert x.to_local().shape == ((0, *x.shape[1:]) if index is None else whole[index].shape), call
            assert rank not in placement.order or np.array_equal(x.numpy(), whole.numpy()), call

    on_ranks(main)


def test_parts_do_not_keep_whole_tensors_in_memory():
    def main():
        x = flow.tensor(np.arange(100.0), placement=ROW, sbp=S(0))
        base = x.to_local().numpy().base
        assert (x.to_local().numpy() if base is None else base).size == 25
        assert flow.empty(8, 2, placement=ROW, sbp=S(0)).to_local().shape == (2, 2)

    on_ranks(main)


def test_ranks_that_draw_different_elements_agree():
    def main():
        flow.manual_seed(flow.env.get_rank())
        x, y = flow.randn(3, placement=ROW, sbp=B), flow.randn(4, placement=ROW, sbp=S(0))
        return x.to_local().tolist(), x.numpy().tolist(), y.numpy().tolist()

    results = on_ranks(main)
    assert all(result == results[0] for result in results) and results[0][0] == results[0][1]


def test_tensors_like_a_global_one_are_global():
    def main():
        x = flow.ones(8, 2, placement=ROW, sbp=S(0), requires_grad=True)
        assert x.is_leaf and x.requires_grad
        for y in (
            flow.zeros_like(x),
            flow.randn_like(x),
            flow.full_like(x, 3),
            x.new_zeros(8, 2),
            flow.normal(x, x),
            flow.normal(0.0, flow.ones_like(x)),
        ):
            assert y.placement is ROW and y.sbp == (S(0),) and y.to_local().shape == (2, 2)
        assert flow.zeros_like(x, sbp=B).sbp == (B,) and flow.zeros_like(x, placement=SOME).placement is SOME
        assert flow.zeros_like(x, device="cpu").is_local

    on_ranks(main)


WRONG = {
    "flow.zeros(2, placement=ROW)": "sbp None",
    "flow.zeros(2, sbp=B)": "placement None",
    "flow.zeros(2, placement=ROW, sbp=B, device='cpu')": "device 'cpu'",
    "flow.zeros(2, placement=ROW, sbp=S(1))": "dim 1",
    "flow.rand(2, placement=ROW, sbp='B')": "sbp 'B'",
    "flow.tensor(1.0, placement=ROW, sbp=S(0))": "0 dims",
    "flow.zeros(2, placement=OUTSIDE, sbp=B)": "no rank 8",
    "global_mode(True)": "placement None",
    "global_mode(True, placement=ROW)": "sbp None",
    "to_global([X], ROW)": "sbp None",
}
OUTSIDE = flow.placement("cpu", [0, 8])


@pytest.mark.parametrize("call", WRONG)
def test_wrong_arguments_are_refused_in_four_parts(call):
    def main():
        with pytest.raises(MinflowError) as caught:
            eval(call, globals())
        assert WRONG[call] in " ".join(str(caught.value).split()), caught.value
        assert caught.value.hint and caught.value.where

    on_ranks(main)


def test_global_mode_makes_new_tensors_global():
    def main():
        assert not current_global_mode().is_enabled and current_global_mode().placement is None
        with global_mode(True, placement=ROW, sbp=S(0)):
            mode = current_global_mode()
            assert mode.is_enabled and mode.placement is ROW and mode.sbp == (S(0),)
            x = flow.randn(8, 2, device="cpu").to("cpu")
            assert x.placement is ROW and x.to_local().shape == (2, 2) and flow.tensor([1, 2]).is_global
            assert flow.zeros(2, placement=SOME, sbp=B).placement is SOME
            with global_mode(False):
                assert flow.randn(8, 2).is_local and not current_global_mode().is_enabled
        assert flow.randn(8, 2).is_local

    on_ranks(main)


def test_structures_become_global_and_local():
    def main():
        x = flow.ones(2, 3)
        given = OrderedDict(a=[x, (x, 4)], b=Pair(x, None), c={"d": x})
        made = to_global(given, ROW, S(0))
        assert type(made) is OrderedDict and type(made["b"]) is Pair and made["a"][1][1] == 4 and given["b"].first is x
        assert made["a"][0].shape == (8, 3) and made["b"].second is None and made["c"]["d"].sbp == (S(0),)
        again = to_global(made, sbp=B)
        assert again["c"]["d"].sbp == (B,) and again["c"]["d"].placement is ROW
        back = to_local(made)
        assert back["a"][1][0].is_local and np.array_equal(back["b"].first.numpy(), x.numpy())
        assert to_local(x) is x and to_global(3, ROW, B) == 3
        to_local(made, copy=True)["a"][0].zero_()
        assert made["a"][0].to_local().sum() == 6

    on_ranks(main)


def test_a_function_gives_the_sbp_of_each_tensor_of_a_state_dict():
    def main():
        def choose(state, tensor):
            return S(0) if tensor is state["weight"] else B

        flow.manual_seed(0)
        layer = nn.Linear(3, 4)
        state = to_global(layer.state_dict() if flow.env.get_rank() in (0, 2) else None, SOME, choose)
        assert list(state) == ["weight", "bias"]
        assert state["weight"].sbp == (S(0),) and state["weight"].shape == (8, 3) and state["bias"].sbp == (B,)
        if flow.env.get_rank() in SOME.ranks:
            assert np.array_equal(state["bias"].numpy(), layer.bias.detach().numpy())

    on_ranks(main)


def test_typed_tensors_follow_global_mode():
    def main():
        with global_mode(True, placement=ROW, sbp=S(0)):
            assert flow.LongTensor([1, 2, 3]).to_local().shape == (int(flow.env.get_rank() < 3),)
            assert flow.Tensor(4, 2).to_local().shape == (1, 2) and isinstance(flow.LongTensor([1]), flow.LongTensor)

    on_ranks(main)


FILLS = ["x.uniform_(1, 2)", "x.normal_()", "x.random_(0, 9)", "x.exponential_()", "x.bernoulli_(0.5)", "x.zero_()"]
FILLS += [
    f"nn.init.{name}(x)" for name in "xavier_uniform_ kaiming_normal_ trunc_normal_ orthogonal_ eye_ ones_".split()
]


@pytest.mark.parametrize(("placement", "sbp"), PLACES[:2] + PLACES[3:6], ids=str)
def test_global_tensors_are_filled_like_local_ones(placement, sbp):
    def main():
        for fill in FILLS:
            whole, x = flow.zeros(6, 4), flow.zeros(6, 4, placement=placement, sbp=sbp)
            for each in (whole, x):
                flow.manual_seed(3)
                eval(fill, {"x": each, "nn": nn})
            assert x.sbp == flow.zeros(6, 4, placement=placement, sbp=sbp).sbp, fill
            assert flow.env.get_rank() not in placement.order or np.array_equal(x.numpy(), whole.numpy()), fill

    on_ranks(main)


def test_modules_in_global_mode_have_global_parameters():
    def main():
        flow.manual_seed(3)
        whole = nn.Linear(6, 8)
        flow.manual_seed(3)
        with global_mode(True, placement=ROW, sbp=S(0)):
            layer = nn.Linear(6, 8)
        assert layer.weight.to_local().shape == (2, 6) and layer.bias.sbp == (S(0),)
        assert np.array_equal(layer.weight.detach().numpy(), whole.weight.detach().numpy())

    on_ranks(main)


def test_a_graph_creates_global_tensors():
    class Graph(nn.Graph):
        def build(self, x):
            with global_mode(True, placement=ROW, sbp=S(0)):
                y = flow.ones(8, 2) * flow.arange(8).reshape(8, 1)
            return x + y + flow.rand(8, 2, placement=ROW, sbp=S(0)), flow.tensor([1, 2], placement=ROW, sbp=B)

    def main():
        flow.manual_seed(3)
        expected = (1 + np.arange(8).reshape(8, 1) + flow.rand(8, 2).numpy()).astype("float32")
        flow.manual_seed(3)
        found, two = Graph()(flow.ones(8, 2, placement=ROW, sbp=S(0)))
        assert found.sbp == (S(0),) and found.to_local().shape == (2, 2) and two.sbp == (B,)
        assert np.allclose(found.numpy(), expected, rtol=1e-6, atol=0)

    on_ranks(main)
