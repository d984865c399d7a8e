"""Calls with PyTorch's argument names. Whether every name is accepted: `../test_public_calls.py`."""

import pytest

import minflow as flow

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(
    "by_name, by_place",
    [
        ("flow.permute(x, dims=(1, 0))", "x.t()"),
        ("x.permute(dims=(1, 0))", "x.t()"),
        ("flow.flip(input=x, dims=(0,))", "x.flip(0)"),
        ("x.tile(dims=(2, 1))", "x.tile(2, 1)"),
        ("flow.tile(x, dims=(2, 1))", "x.tile(2, 1)"),
        ("x.view(size=(3, 2))", "x.view(3, 2)"),
        ("x.view(dtype=flow.float32)", "x"),
        ("x.reshape(shape=(3, 2))", "x.reshape(3, 2)"),
        ("flow.reshape(input=x, shape=(3, 2))", "x.reshape(3, 2)"),
        ("x[:, :1].expand(size=(2, 5), implicit=False)", "x[:, :1].expand(2, 5)"),
        ("x.repeat(repeats=(1, 2))", "x.repeat(1, 2)"),
        ("x.new_zeros(size=(2,), dtype=flow.int64)", "x.new_zeros(2, dtype=flow.int64)"),
        ("x.to(other=flow.tensor(1))", "x.long()"),
        ("x.max(other=x.flip(1))", "flow.maximum(x, x.flip(1))"),
        ("flow.dot(x[0], tensor=x[1])", "x[0].dot(x[1])"),
        ("flow.hsplit(x, sections=3)[2]", "x[:, 2:]"),
        ("x.tensor_split(indices=(1,))[1]", "x[1:]"),
        ("flow.broadcast_to(x, size=(1, 2, 3))", "x[None]"),
        ("flow.searchsorted(x[0], input=x[1])", "flow.searchsorted(x[0], x[1])"),
        ("flow.kron(input=x, other=x)", "flow.kron(x, x)"),
        ("flow.result_type(tensor=x, other=flow.tensor(1j)) is flow.complex64", "True"),
        ("flow.utils.data.default_collate(batch=[x, x])", "flow.stack([x, x])"),
    ],
)
def test_keyword_call_equals_positional_call(by_name, by_place):
    names = {"x": flow.tensor(X), "flow": flow}
    a, b = eval(by_name, names), eval(by_place, names)
    assert a is b if isinstance(a, bool) else (a.dtype, a.tolist()) == (b.dtype, b.tolist())


def test_save_and_load_take_pytorchs_argument_names(tmp_path):
    flow.save(obj={"x": 1}, f=tmp_path / "x.pt")
    assert flow.load(f=tmp_path / "x.pt") == {"x": 1}


def test_duplicate_argument_is_refused():
    x = flow.tensor(X)
    for call in (
        lambda: x.view(3, 2, size=(2, 3)),
        lambda: x.reshape(3, 2, shape=(2, 3)),
        lambda: flow.dot(x[0], other=x[0], tensor=x[0]),
        lambda: x.permute(1, 0, dims=(1, 0)),
    ):
        with pytest.raises(flow.MinflowError):
            call()
