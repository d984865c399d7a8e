"""Memory formats and layouts: accepted where PyTorch accepts them, without effect on values."""

import inspect
import pickle

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import CallError, DTypeError

MAKERS = {
    "zeros": (2,),
    "ones": (2,),
    "empty": (2,),
    "full": ((2,), 1.0),
    "rand": (2,),
    "randn": (2,),
    "eye": (2,),
    "arange": (2,),
    "linspace": (0, 1, 2),
    "randperm": (2,),
    "randint": (0, 5, (2,)),
    "tensor": ([1.0],),
}
LIKE = ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")


@pytest.mark.parametrize("name", MAKERS)
def test_factories_take_a_layout(name):
    x = getattr(flow, name)(*MAKERS[name], layout=flow.strided, pin_memory=True)
    assert x.layout is flow.strided and not x.is_pinned()


@pytest.mark.parametrize("name", LIKE)
def test_like_functions_take_a_memory_format(name):
    x = flow.ones(2, 3, 4, 4)
    more = {"full_like": (2.0,), "randint_like": (0, 9)}.get(name, ())
    y = getattr(flow, name)(x, *more, memory_format=flow.preserve_format, layout=flow.strided, pin_memory=False)
    assert y.shape == x.shape and y.is_contiguous()


@pytest.mark.parametrize("name", ["new_zeros", "new_ones", "new_empty"])
def test_factory_methods(name):
    assert getattr(flow.ones(1), name)(2, layout=flow.strided, pin_memory=True).shape == (2,)


def test_memory_format_does_not_move_a_tensor():
    x = flow.arange(48.0).reshape(1, 3, 4, 4)
    assert x.to(memory_format=flow.channels_last, non_blocking=True) is x and x.pin_memory() is x.share_memory_() is x
    assert x.to("cpu", flow.float64, non_blocking=True).dtype is flow.float64 and x.cpu() is x and not x.is_shared()
    assert flow.equal(x.contiguous(memory_format=flow.channels_last), x)
    assert flow.equal(x.clone(memory_format=flow.preserve_format), x)
    model = nn.Conv2d(3, 2, 1)
    assert model.to(memory_format=flow.channels_last) is model.to("cpu", non_blocking=True) is model.share_memory()
    assert model(x).shape == (1, 2, 4, 4)


def test_layout_attributes():
    x = flow.zeros(2, 4, 5, 3)
    assert x.is_contiguous() and x.is_contiguous(memory_format=flow.contiguous_format)
    assert not x.is_contiguous(memory_format=flow.channels_last)
    last = x.permute(0, 3, 1, 2)
    assert last.is_contiguous(memory_format=flow.channels_last) and not last.is_contiguous()
    assert not last.is_contiguous(memory_format=flow.channels_last_3d)
    with pytest.raises(DTypeError, match="memory_format must be a flow.memory_format, got a str"):
        x.is_contiguous(memory_format="channels_last")


def test_names():
    assert repr(flow.strided) == "minflow.strided" and isinstance(flow.strided, flow.layout)
    assert isinstance(flow.channels_last, flow.memory_format) and str(flow.channels_last) == "minflow.channels_last"
    for each in (flow.strided, flow.channels_last, flow.contiguous_format, flow.preserve_format):
        assert pickle.loads(pickle.dumps(each)) is each
    assert "layout" in inspect.signature(flow.zeros).parameters
    with pytest.raises(CallError, match="layuot"):
        flow.zeros(2, layuot=flow.strided)
