"""Whole modules in a file: saved without a pickle, and built only with weights_only=False."""

import argparse
import dataclasses
import enum
import functools
import io
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import minflow as flow
import minflow.nn.functional as F
from minflow import nn
from minflow.core.base.errors import CheckpointError

X = flow.randn(5, 4, generator=flow.Generator().manual_seed(0))
RUN = []  # what a hostile file has run
Pair = namedtuple("Pair", "left right")


class Kind(enum.Enum):
    WIDE = 1


@dataclasses.dataclass
class Settings:
    width: int = 4
    act: object = F.gelu


class Hostile(nn.Module):
    def __reduce_ex__(self, protocol):
        return RUN.append, (1,)


def double(module, args, output):
    return output * 2


class Block(nn.Module):
    def __init__(self, settings, parent):
        super().__init__()
        self.settings, self.act = settings, settings.act
        self.fc = nn.Linear(settings.width, settings.width)
        self.method, self.slope = self.activated, functools.partial(F.leaky_relu, negative_slope=0.5)
        object.__setattr__(self, "around", [parent])

    def activated(self, x):
        return self.slope(self.act(self.fc(x)))

    def forward(self, x):
        return self.method(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        settings = Settings()
        self.blocks = nn.ModuleList([Block(settings, self) for _ in range(2)])
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.blocks[0].fc.weight
        self.normed = nn.utils.weight_norm(nn.Linear(4, 4))
        self.norm = nn.BatchNorm1d(4).requires_grad_(False)
        self.norm.register_forward_hook(double)
        self.lazy = nn.LazyLinear(3)
        self.register_buffer("mask", flow.tril(flow.ones(4, 4)).view(1, 1, 4, 4))
        self.register_buffer("scratch", flow.ones(2), persistent=False)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(self.normed(self.tied(x))) @ self.mask[0, 0]


def saved(obj):
    stream = io.BytesIO()
    flow.save(obj, stream)
    stream.seek(0)
    return stream


def test_a_whole_module_round_trips():
    net = Net().eval()
    new = flow.load(saved(net), weights_only=False)
    assert new(X).tolist() == net(X).tolist() and repr(new) == repr(net)
    first = new.blocks[0]
    assert first.around[0] is new and first.settings is new.blocks[1].settings and first.act is F.gelu
    assert new.tied.weight is first.fc.weight and first.method.__self__ is first
    assert not new.training and not new.norm.weight.requires_grad and new.lazy.has_uninitialized_params()
    assert list(new.state_dict()) == list(net.state_dict()) and new.scratch.tolist() == [1, 1]
    new.train()(X).sum().backward()
    flow.optim.SGD(new.parameters(), lr=0.1).step()
    assert new.tied.weight.tolist() != net.tied.weight.tolist()


VALUES = {
    "a named tuple": Pair(1, flow.ones(2)),
    "an enum": Kind.WIDE,
    "sets": ({1, 2}, frozenset([3])),
    "dicts": (defaultdict(list, a=[1]), Counter("aab"), OrderedDict(a=1), {(1, 2): "x", flow.float32: 1}),
    "numbers": (1 + 2j, b"ab\0", range(3), slice(1, 2), ..., float("inf")),
    "of minflow": (flow.float64, flow.device("cpu"), flow.Size([1, 2]), flow.channels_last, flow.relu, nn.ReLU),
    "of numpy": (np.float32, np.dtype("f4"), np.complex128(2)),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_attributes_keep_their_types(value):
    module = nn.Identity()
    module.value = value
    new = flow.load(saved(module), weights_only=False).value
    assert repr(new) == repr(value) and type(new) is type(value)


def test_a_plain_load_builds_sets():
    state = {"done": {1, 2}, "names": frozenset("ab")}
    assert flow.load(saved(state)) == state and flow.load(saved(nn.Linear(1, 1).__dict__))["in_features"] == 1


def test_settings_beside_a_state():
    state = {"args": argparse.Namespace(lr=0.1, acts=[F.relu]), "settings": Settings(8), "model": nn.Linear(2, 1)}
    new = flow.load(saved(state), weights_only=False)
    assert new["args"] == state["args"] and new["settings"] == state["settings"]
    assert new["model"].weight.tolist() == state["model"].weight.tolist()


@pytest.mark.parametrize("options", [{}, {"weights_only": True}, {"weights_only": None}])
def test_a_plain_load_builds_nothing(options):
    hostile = saved({"x": Hostile()})
    with pytest.raises(CheckpointError, match=r"(?s)it holds whole objects.*weights_only=False.*state_dict") as raised:
        flow.load(hostile, **options)
    assert raised.value.__context__ is None, "a notebook shows no error of our own beside it"
    assert not RUN
    with pytest.raises(CheckpointError, match=r"first object\s+minflow.nn.modules.linear:Linear"):
        flow.load(saved(nn.Linear(1, 1)), **options)


def test_classes_that_the_program_declares_safe():
    stream = saved({"args": argparse.Namespace(lr=0.1), "settings": Settings(8, None)})
    with pytest.raises(CheckpointError, match=r"(?s)first object\s+argparse:Namespace.*add_safe_globals"):
        flow.load(stream)
    with flow.serialization.safe_globals([argparse.Namespace, (Settings, "Settings")]):
        stream.seek(0)
        assert flow.load(stream) == {"args": argparse.Namespace(lr=0.1), "settings": Settings(8, None)}
        with pytest.raises(CheckpointError, match=r"first object\s+minflow.nn.modules.linear:Linear"):
            flow.load(saved([argparse.Namespace(model=nn.Linear(1, 1))]))
    flow.serialization.add_safe_globals([Settings])
    assert flow.serialization.get_safe_globals() == [Settings]
    flow.serialization.clear_safe_globals()
    assert not flow.serialization.get_safe_globals()


def test_a_module_of_another_program(tmp_path):
    program = "import minflow as flow\nclass Net(flow.nn.Linear):\n    pass\n"
    run = [sys.executable, "-c", f"{program}flow.save(Net(2, 1), {str(tmp_path / 'net')!r})"]
    subprocess.run(run, check=True)
    with pytest.raises(CheckpointError, match="(?s)needs Net of the module __main__.*define or import Net"):
        flow.load(tmp_path / "net", weights_only=False)
    run[2] = f"{program}print(flow.load({str(tmp_path / 'net')!r}, weights_only=False))"
    assert "Net(in_features=2" in subprocess.run(run, check=True, capture_output=True, text=True).stdout


def test_code_without_a_name_is_refused():
    class Inner(nn.Module):
        pass

    lambdas, unpicklable = nn.Identity(), nn.Identity()
    lambdas.f, unpicklable.rows = lambda x: x, (n for n in range(3))
    for bad, said in [
        (Inner(), "needs the class Inner"),
        (lambdas, r'state.__dict__\["f"\] is or needs the function .*lambda'),
        (unpicklable, r'state.__dict__\["rows"\] is a generator'),
        ({"f": F.relu}, "code is not saved"),
        ({"model": nn.Linear(1, 1), "optimizer": flow.optim.SGD([flow.ones(1)])}, r'state\["optimizer"\] is a SGD'),
    ]:
        with pytest.raises(CheckpointError, match=said):
            flow.save(bad, io.BytesIO())


def test_the_attributes_of_a_module_are_saved(tmp_path):
    """The line that created it is not: it is meaningless in another process."""
    layer = nn.Linear(2, 3)
    flow.save({"layer": vars(layer)}, tmp_path / "attributes")
    loaded = flow.load(tmp_path / "attributes", weights_only=False)["layer"]
    assert loaded["_created_at"] is None and vars(layer).keys() == loaded.keys()
    assert loaded["_parameters"]["weight"].tolist() == layer.weight.tolist()
