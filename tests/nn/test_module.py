"""Module: members, traversal, copies, conversion and printing."""

import copy
import inspect
import pickle
import sys

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import MinflowWarning, NonFiniteError, ShapeError
from minflow.core.mode import mutation_counter


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.scale = nn.Parameter(flow.ones(2))
        self.register_buffer("seen", flow.zeros(2))
        self.register_buffer("scratch", flow.zeros(1), persistent=False)

    def forward(self, x):
        return self.fc(x) * self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Sequential(nn.Linear(2, 4), nn.ReLU())

    def forward(self, x):
        return self.head(self.block(x))


def test_names_are_in_order():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == [
        "block.scale",
        "block.fc.weight",
        "block.fc.bias",
        "head.0.weight",
        "head.0.bias",
    ]
    assert [name for name, _ in net.named_buffers()] == ["block.seen", "block.scratch"]
    assert [name for name, _ in net.named_modules()] == ["", "block", "block.fc", "head", "head.0", "head.1"]
    assert [name for name, _ in net.named_children()] == ["block", "head"]
    assert list(net.named_parameters(recurse=False)) == []
    assert len(list(net.parameters())) == 5 and len(list(net.modules())) == 6 and len(list(net.children())) == 2


def test_state_dict_shares_storage_and_omits_non_persistent_buffers():
    net = Net()
    state = net.state_dict()
    assert list(state) == [
        "block.scale",
        "block.seen",
        "block.fc.weight",
        "block.fc.bias",
        "head.0.weight",
        "head.0.bias",
    ]
    assert not state["block.scale"].requires_grad
    state["block.scale"].fill_(7.0)
    assert net.block.scale.tolist() == [7.0, 7.0]
    assert net.state_dict(keep_vars=True)["block.scale"] is net.block.scale


def test_load_state_dict_takes_tensors_and_arrays():
    net, other = Net(), Net()
    assert repr(net.load_state_dict(other.state_dict())) == "<All keys matched successfully>"
    x = flow.randn(5, 3)
    assert np.array_equal(net(x).detach().numpy(), other(x).detach().numpy())
    arrays = {name: np.full(t.shape, 2.0) for name, t in net.state_dict().items()}
    weight = net.block.fc.weight
    net.load_state_dict(arrays)
    assert net.block.fc.weight is weight and weight.dtype is flow.float32 and weight.requires_grad
    assert (weight.detach().numpy() == 2).all()


def test_load_state_dict_not_strict():
    net = nn.Linear(3, 2)
    missing, unexpected = net.load_state_dict({"weight": flow.ones(2, 3), "more": flow.ones(1)}, strict=False)
    assert missing == ["bias"] and unexpected == ["more"]
    assert net.weight.sum().item() == 6


def test_load_state_dict_assign():
    net, weight = nn.Linear(3, 2, bias=False), flow.ones(2, 3)
    net.load_state_dict({"weight": weight}, assign=True)
    weight.fill_(5.0)
    assert net.weight[0, 0].item() == 5.0 and isinstance(net.weight, nn.Parameter)


def test_train_and_eval_reach_all_submodules():
    net = Net()
    assert net.eval() is net and not any(m.training for m in net.modules())
    net.train()
    assert all(m.training for m in net.modules())


def test_zero_grad_requires_grad_apply():
    net = Net()
    net(flow.randn(4, 3)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad(set_to_none=False)
    assert all((p.grad.numpy() == 0).all() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Block", "Linear", "ReLU", "Sequential", "Net"]


def test_to_dtype_keeps_identity():
    net = Net()
    before = list(net.parameters())
    assert net.double() is net
    assert all(a is b for a, b in zip(before, net.parameters()))
    assert {t.dtype for t in net.state_dict().values()} == {flow.float64}
    assert net(flow.randn(2, 3, dtype=flow.float64)).dtype is flow.float64
    assert net.to(flow.float32).block.seen.dtype is flow.float32
    assert net.half().block.scale.dtype is flow.float16
    assert net.float().to("cpu").block.scale.dtype is flow.float32


def test_integer_buffers_stay_integers():
    norm = nn.BatchNorm2d(3).double()
    assert norm.num_batches_tracked.dtype is flow.int64 and norm.running_mean.dtype is flow.float64


def test_deepcopy_and_pickle_keep_ties():
    net = Net()
    net.block.fc.weight = nn.Parameter(flow.randn(2, 3))
    net.twin = net.block.fc
    net.head[0].bias = nn.Parameter(flow.zeros(4))
    net.tied = net.head[0].bias
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other.tied is other.head[0].bias and other.tied is not net.tied
        assert other.twin is other.block.fc
        assert isinstance(other.tied, nn.Parameter) and other.tied.requires_grad
        x = flow.randn(2, 3)
        assert np.array_equal(net(x).detach().numpy(), other(x).detach().numpy())
        other.block.scale.data.fill_(3.0)
        assert net.block.scale.tolist() == [1.0, 1.0]
        assert len(list(other.parameters())) == len(list(net.parameters()))


def test_tied_parameter_counts_once():
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    b.weight = a.weight
    both = nn.Sequential(a, b)
    assert len(list(both.parameters())) == 3
    assert len(both.state_dict()) == 4


def test_attributes_change_between_kinds():
    net = nn.Module()
    net.x = 3
    net.x = nn.Parameter(flow.ones(2))
    assert "x" in net._parameters and "x" not in net.__dict__
    net.x = None
    assert net.x is None and net._parameters == {"x": None}
    net.x = nn.ReLU()
    assert list(net._modules) == ["x"] and not net._parameters
    del net.x
    assert not hasattr(net, "x")
    net.register_buffer("b", flow.ones(2))
    assert "b" in dir(net)
    net.b = None
    assert net.b is None


def test_get_submodule_parameter_buffer():
    net = Net()
    assert net.get_submodule("head.0") is net.head[0] and net.get_submodule("") is net
    assert net.get_parameter("block.fc.weight") is net.block.fc.weight
    assert net.get_buffer("block.seen") is net.block.seen
    with pytest.raises(AttributeError, match="head.7|'7'"):
        net.get_submodule("head.7")
    with pytest.raises(AttributeError, match="seen"):
        net.get_parameter("block.seen")


def test_mutation_counter_is_bumped_only_by_changes():
    net = Net()
    net.rate = 0.5

    def moved(action):
        before = mutation_counter.count
        action()
        return mutation_counter.count != before

    assert not moved(lambda: setattr(net, "rate", 0.5))
    assert moved(lambda: setattr(net, "rate", 0.25))
    assert not moved(net.train)
    assert moved(net.eval)
    assert moved(lambda: setattr(net.block, "scale", nn.Parameter(flow.ones(2))))
    assert moved(lambda: net.block.scale.requires_grad_(False))
    assert moved(lambda: setattr(net, "head", nn.Identity()))
    assert moved(lambda: net.add_module("more", nn.Identity()))
    assert moved(net.double)
    assert not moved(lambda: net(flow.ones(1, 3, dtype=flow.float64)))


def test_recorded_nodes_have_scopes():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.ModuleList([nn.Linear(2, 2)]), nn.Linear(2, 2)])
            self.named = nn.ModuleDict({"out": nn.Linear(2, 1)})

        def forward(self, x):
            self.scopes = []
            for layer in (self.layers[0][0], self.layers[1], self.named["out"]):
                x = layer(x)
                self.scopes.append(x._value.node.scope)
            return x

    net = Deep()
    net(flow.ones(1, 2))
    assert net.scopes == ["Deep.layers.0.0", "Deep.layers.1", "Deep.named.out"]
    lone = nn.Linear(2, 2)(flow.ones(1, 2))
    assert lone._value.node.scope == "Linear"


def test_source_location_is_the_line_of_the_call():
    from minflow.core.ir import where_text

    net = Net()
    out = net(flow.ones(1, 3))
    line = Net.forward.__code__.co_firstlineno + 1  # the innermost line outside minflow: where Net calls its Sequential
    assert where_text(out._value.node.where).endswith(f"test_module.py:{line}")
    out = nn.Sequential(nn.ReLU())(out)
    line = sys._getframe().f_lineno - 1
    assert where_text(out._value.node.where).endswith(f"test_module.py:{line}")


def test_repr():
    assert repr(Net()) == (
        "Net(\n"
        "  (block): Block(\n"
        "    (fc): Linear(in_features=3, out_features=2, bias=True)\n"
        "  )\n"
        "  (head): Sequential(\n"
        "    (0): Linear(in_features=2, out_features=4, bias=True)\n"
        "    (1): ReLU()\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Identity()) == "Identity()"
    assert repr(nn.Parameter(flow.ones(1))).startswith("Parameter containing:\ntensor(")


def test_forward_hook_with_always_call():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("no")

    net, seen = Fails(), []
    net.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(KeyError):
        net(flow.ones(1))
    assert seen == [None]


def test_always_called_hooks_get_the_current_output():
    layer, seen = nn.Linear(2, 3), []

    def fails(m, args, out):
        raise KeyError("here")

    layer.register_forward_hook(fails)
    layer.register_forward_hook(lambda m, args, out: seen.append(out.shape), always_call=True)
    with pytest.raises(KeyError, match="here"):
        layer(flow.ones(1, 2))
    assert seen == [(1, 3)]
    layer.register_forward_hook(lambda m, args, out: 1 / 0, always_call=True)
    with pytest.warns(MinflowWarning, match="always_call=True raised ZeroDivisionError"):
        with pytest.raises(KeyError, match="here"):
            layer(flow.ones(1, 2))


def test_full_backward_hooks_of_several_inputs():
    class Mixed(nn.Module):
        def forward(self, a, b, i, k):
            return a * 2, b + 1, i, k

    def numbers(grads):
        return [None if g is None else g.tolist() for g in grads]

    net, seen = Mixed(), []
    net.register_full_backward_pre_hook(lambda m, outs: seen.append(numbers(outs)))
    net.register_full_backward_hook(lambda m, ins, outs: seen.append(numbers(ins)))
    a = flow.ones(2, requires_grad=True)
    net(a, flow.ones(2), flow.tensor([1]), "x")[0].sum().backward()
    assert seen == [[[1, 1], None, None, None], [[2, 2], [0, 0], [0], None]] and a.grad.tolist() == [2, 2]
    net.w, seen[:] = nn.Parameter(flow.ones(2)), []
    net.forward = lambda a, i: a * net.w
    net(flow.ones(2), flow.tensor(1)).sum().backward()
    assert seen == [[[1, 1]], [None, None]]


def test_full_backward_hooks_with_a_dict_output_warn():
    class Named(nn.Module):
        def forward(self, x):
            return {"y": x * 2}

    net = Named()
    net.register_full_backward_hook(lambda m, ins, outs: None)
    with pytest.warns(MinflowWarning, match="backward hooks of Named are not called: its output is a dict"):
        net(flow.ones(2, requires_grad=True))["y"].sum().backward()


def test_utils_refusals():
    layer = nn.Linear(3, 2)
    with pytest.raises(ShapeError, match="8 elements"):
        nn.utils.vector_to_parameters(flow.ones(7), layer.parameters())
    layer.bias.grad = flow.full((2,), float("inf"))
    with pytest.raises(NonFiniteError, match="inf"):
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0, error_if_nonfinite=True)


def test_call_leaves_no_reference_cycles():
    import gc
    import weakref

    net = Net()
    net.block.register_full_backward_hook(lambda m, grad_input, grad_output: None)
    gc.disable()
    try:
        x = flow.ones(2, 3, requires_grad=True)
        out = net(x)
        loss = out.sum()
        loss.backward()
        refs = [weakref.ref(out._value.node), weakref.ref(x)]
        del out, loss, x
        assert all(ref() is None for ref in refs)
    finally:
        gc.enable()


def test_class_signature_is_that_of_its_constructor():
    """Python 3.11.2 inspects `__new__` first."""

    class Own(nn.Linear):
        def __init__(self, width: int, *, depth: int = 2):
            super().__init__(width, depth)

    class Plain(nn.Module):
        pass

    assert str(inspect.signature(Own)) == "(width: int, *, depth: int = 2)"
    assert [*inspect.signature(nn.Linear).parameters][:2] == ["in_features", "out_features"]
    assert [*inspect.signature(nn.LazyConv2d).parameters][:2] == ["out_channels", "kernel_size"]
    assert not inspect.signature(Plain).parameters
    assert [*inspect.signature(Own(1)).parameters] == ["args", "kwargs"]  # its `__call__`


class UserNames(nn.Sequential):
    """A container with attributes and methods that PyTorch's Sequential leaves free."""

    def __init__(self):
        super().__init__(nn.Linear(2, 3), nn.ReLU())
        self._computed, self.renumber = 3, True
        self.key = nn.Linear(3, 2)

    def sub_container(self):
        return self[:2]


def test_a_container_may_use_any_name_that_pytorch_leaves_free():
    model = UserNames()
    assert "__signature__" not in dir(model) and all(hasattr(model, name) for name in dir(model))
    nn.utils.parametrizations.weight_norm(model.key)
    model.append(nn.Tanh())
    assert model(flow.ones(4, 2)).shape == (4, 2) and len(model) == 4 and len(model.sub_container()) == 2
    assert model._computed == 3 and model.renumber is True
