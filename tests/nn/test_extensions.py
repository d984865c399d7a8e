"""Overridden methods of user classes, and state hooks: all that PyTorch calls is called, or refused."""

import copy
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import ModuleError, StateError
from minflow.nn.messages import UNSUPPORTED_OVERRIDES
from tests.graphs import Training
from tests.pytorch import needs_torch, torch


class Counter(nn.Module):
    """Extra state: numbers beside its tensors."""

    _version = 3

    def __init__(self):
        super().__init__()
        self.w, self.count = nn.Parameter(flow.ones(2)), 5

    def forward(self, x):
        return x * self.w

    def get_extra_state(self):
        return {"count": self.count, "at": flow.tensor([1.0])}

    def set_extra_state(self, state):
        self.count = state["count"]


def trained(model):
    return Training(model, flow.optim.SGD(model.parameters(), lr=0.5))


def test_extra_state_is_saved(tmp_path):
    model, other = nn.Sequential(Counter(), nn.Linear(2, 1)), nn.Sequential(Counter(), nn.Linear(2, 1))
    model[0].count = 7
    state = model.state_dict()
    assert list(state) == ["0.w", "0._extra_state", "1.weight", "1.bias"]
    flow.save(state, tmp_path / "model")
    assert not other.load_state_dict(flow.load(tmp_path / "model")).missing_keys and other[0].count == 7
    del state["0._extra_state"]
    with pytest.raises(StateError, match=r"1 missing of .*\n  missing +0._extra_state"):
        other.load_state_dict(state)
    assert other.load_state_dict(state, strict=False).missing_keys == ["0._extra_state"] and other[0].count == 7
    with pytest.raises(StateError, match=r"1 unexpected of .*\n  unexpected +_extra_state"):
        nn.Linear(1, 1).load_state_dict({**nn.Linear(1, 1).state_dict(), "_extra_state": 1})


def test_graph_state_includes_extra_state():
    for whole in (True, False):
        model = Counter()
        graph = trained(model)
        graph(flow.ones(2))
        saved = graph.state_dict() if whole else model.state_dict()
        before = model.w.tolist()
        graph(flow.ones(2))
        model.count = 9
        graph.load_state_dict(copy.deepcopy(saved) if whole else saved)
        assert model.count == 5 and (model.w.tolist() == before) is whole  # state_dict() of a module does not copy


def test_incomplete_extra_state_is_refused():
    class Half(nn.Module):
        def get_extra_state(self):
            return 1

    module = Half()
    state = module.state_dict()
    assert state["_extra_state"] == 1
    with pytest.raises(StateError, match="1 unexpected of"):  # as in PyTorch: the key is unexpected
        module.load_state_dict(state)
    for verb in ("get", "set"):
        with pytest.raises(StateError, match=f"Linear has no {verb}_extra_state"):
            getattr(nn.Linear(1, 1), f"{verb}_extra_state")(*[{}] * (verb == "set"))


class Renames(nn.Module):
    """Its entry was called `old` in version 1, and it caches what it loads."""

    _version = 2

    def __init__(self):
        super().__init__()
        self.w, self.cache, self.seen = nn.Parameter(flow.ones(2)), None, []

    def forward(self, x):
        return x * self.w

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "more"] = flow.tensor([4.0])

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        version = local_metadata.get("version")
        self.seen.append((prefix, version, strict, sorted(state_dict)))
        if version is None or version < 2:
            state_dict[prefix + "w"] = state_dict.pop(prefix + "old")
        state_dict.pop(prefix + "more", None)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)
        self.cache = (self.w * 2).tolist()


def test_saving_and_loading_may_be_overridden():
    model = nn.Sequential(Renames(), nn.Linear(2, 1))
    state = model.state_dict()
    assert list(state) == ["0.w", "0.more", "1.weight", "1.bias"] and state["0.more"].item() == 4
    state["0.w"] = flow.tensor([5.0, 6.0])
    assert not model.load_state_dict(state).unexpected_keys
    assert model[0].cache == [10, 12]  # the loaded values are in place when super() returns
    assert model[0].seen == [("0.", 2, True, ["0.more", "0.w"])]
    old = {"0.old": flow.tensor([7.0, 8.0]), "1.weight": flow.ones(1, 2), "1.bias": flow.ones(1)}
    model.load_state_dict(old)
    assert model[0].w.tolist() == [7, 8] and "0.old" in old


def test_mismatched_state_restores_all_tensors():
    model = nn.Sequential(Renames(), nn.Linear(2, 1))
    before = copy.deepcopy(model.state_dict())
    for key, value, what in (
        ("1.weight", flow.ones(3), r"1 wrong .*\n  wrong +1.weight: must be \[1, 2\], got \[3\]"),
        ("1.other", flow.ones(1), r"1 unexpected .*\n  unexpected +1.other"),
    ):
        state = {**before, "0.w": flow.zeros(2), "0.old": flow.zeros(2), key: value}
        for assign in (False, True):
            with pytest.raises(StateError, match=what):
                model.load_state_dict(state, assign=assign)
            assert all(flow.equal(model.state_dict()[k], before[k]) for k in before)
    with pytest.raises(KeyError, match="0.old"):
        model.load_state_dict({"1.weight": flow.zeros(1, 2)})
    assert all(flow.equal(model.state_dict()[k], before[k]) for k in before)


def test_loading_by_parts_does_not_rebuild_a_graph():
    graph = trained(Counter())
    graph(flow.ones(2))
    saved = graph.state_dict()
    losses = [graph(flow.ones(2)).item() for _ in range(2)]
    graph.load_state_dict(saved)
    assert [graph(flow.ones(2)).item() for _ in range(2)] == losses and len(graph._history) == 1


def test_self_containing_module_is_loaded_once():
    model, twice = nn.Sequential(nn.Linear(1, 1)), []
    model.register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: twice.append(prefix))
    model[0].register_load_state_dict_post_hook(lambda module, keys: twice.append("after"))
    model[0].outer = model
    model.load_state_dict({"0.weight": flow.ones(1, 1), "0.bias": flow.ones(1)}, strict=False)
    assert twice == ["", "after"] and model[0].weight.item() == 1


def test_loading_by_parts_accepts_the_same_states():
    model = nn.Sequential(Renames(), nn.BatchNorm1d(2), nn.Linear(2, 2))
    state = {k: np.asarray(v.numpy(force=True)) * 0 + 3 for k, v in model.state_dict().items()}
    model.load_state_dict({**state, "0.old": state["0.w"]})
    assert model[2].weight.tolist() == [[3, 3], [3, 3]] and model[1].num_batches_tracked.item() == 3
    new = {**model.state_dict(), "0.old": flow.ones(2)}
    new["2.weight"], new["0.w"] = flow.ones(2, 2), new["0.w"]
    weight = model[2].weight
    model.load_state_dict(
        {**new, "2.bias": model[1].bias, "1.bias": model[2].bias}
    )  # each overwrites the other's memory
    assert model[2].weight is weight and weight.tolist() == [[1, 1], [1, 1]]
    model.load_state_dict(new, assign=True)
    assert model[2].weight is not weight and isinstance(model[2].weight, nn.Parameter)


def test_assigned_state_uses_setattr():
    """As in PyTorch: a class that overrides it sees each assigned tensor."""
    seen = []

    class Watches(nn.Linear):
        def __setattr__(self, name, value):
            seen.append(name)
            super().__setattr__(name, value)

    model = Watches(2, 2)
    seen.clear()
    model.load_state_dict(model.state_dict(), assign=True)
    assert seen == ["weight", "bias"]


def test_module_versions_are_saved(tmp_path):
    model = nn.Sequential(Renames(), nn.BatchNorm1d(2))
    state = OrderedDict(other=OrderedDict(), model=model.state_dict(), last=OrderedDict(a=1))
    flow.save(state, tmp_path / "state")
    loaded = flow.load(tmp_path / "state", map_location="cpu")
    assert loaded["model"]._metadata == {"": {"version": 1}, "0": {"version": 2}, "1": {"version": 2}}
    assert not hasattr(loaded["other"], "_metadata") and not hasattr(loaded["last"], "_metadata")
    model.load_state_dict(loaded["model"])
    assert model[0].seen[-1][1] == 2
    graph = trained(model)
    graph(flow.ones(2, 2))
    flow.save(graph.state_dict(), tmp_path / "graph")
    graph.load_state_dict(flow.load(tmp_path / "graph"))
    assert model[0].seen[-1][1] == 2


@needs_torch
def test_module_versions_in_a_pytorch_file(tmp_path):
    torch.save({"net": torch.nn.Sequential(torch.nn.BatchNorm1d(2)).state_dict()}, tmp_path / "net.pt")
    net = nn.Sequential(nn.BatchNorm1d(2))
    state = flow.load(tmp_path / "net.pt")["net"]
    assert state._metadata == {"": {"version": 1}, "0": {"version": 2}}
    assert not net.load_state_dict(state).missing_keys


def test_module_versions():
    model = nn.Sequential(Counter(), nn.BatchNorm1d(1))
    assert model.state_dict()._metadata == {"": {"version": 1}, "0": {"version": 3}, "1": {"version": 2}}
    assert copy.copy(model.state_dict())._metadata["0"] == {"version": 3}
    assert trained(model).state_dict()["model"]._metadata["0"] == {"version": 3}
    inner = model.state_dict(destination={}, prefix="model.")
    assert not hasattr(inner, "_metadata") and "model.0.w" in inner


# ---- state hooks -----------------------------------------------------------------------------------------------------


def test_pre_load_hooks_see_their_part_and_extend_the_lists():
    model, seen = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1)), []

    def before(module, state, prefix, metadata, strict, missing, unexpected, errors):
        seen.append((type(module).__name__, prefix, metadata, sorted(state)))
        state[prefix + "bias"] = state.pop(prefix + "shift")

    model[1].register_load_state_dict_pre_hook(before)
    state = model.state_dict()
    state["1.shift"] = state.pop("1.bias") * 0 + 2
    model.load_state_dict(state)
    assert model[1].bias.item() == 2 and seen == [("Linear", "1.", {"version": 1}, ["1.shift", "1.weight"])]
    assert "1.shift" in state

    model = nn.Linear(1, 1)
    model._register_load_state_dict_pre_hook(lambda state, *rest: rest[5].append("of another house"))
    with pytest.raises(StateError, match=r"1 wrong of 2 entries of Linear.*\n  wrong +of another house"):
        model.load_state_dict(model.state_dict(), strict=False)
    model = nn.Linear(1, 1)
    model._register_load_state_dict_pre_hook(lambda module, state, *rest: rest[3].append("mine"), with_module=True)
    assert model.load_state_dict(model.state_dict(), strict=False).missing_keys == ["mine"]
    with pytest.raises(StateError, match=r"missing +mine"):
        model.load_state_dict(model.state_dict())


def test_bound_hook_is_copied_with_its_module():
    class Own(nn.Linear):
        def __init__(self):
            super().__init__(1, 1)
            self.loaded = 0
            self._register_load_state_dict_pre_hook(self.before)

        def before(self, state, *rest):
            self.loaded += 1

    model = Own()
    twin = copy.deepcopy(model)
    twin.load_state_dict(model.state_dict())
    assert (model.loaded, twin.loaded) == (0, 1)


def test_post_load_hooks_run_before_the_strict_check():
    model, order = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1)), []

    def forgive(module, keys):
        order.append((type(module).__name__, list(keys.missing_keys)))
        keys.missing_keys.clear()
        keys.unexpected_keys.clear()

    model[1].register_load_state_dict_post_hook(forgive)
    model.register_load_state_dict_post_hook(lambda module, keys: order.append(model[0].bias.item()))
    one = flow.ones(1)
    state = {"0.weight": flow.ones(1, 2), "0.bias": one * 3, "1.weight": flow.ones(1, 1), "2.x": one}
    assert not model.load_state_dict(state).missing_keys
    assert order == [("Linear", ["1.bias"]), 3]
    model[1].register_load_state_dict_post_hook(lambda module, keys: 3)
    with pytest.raises(StateError, match=r"the hook <lambda> must return None, got an int(.|\n)*returned +3"):
        model.load_state_dict({**state, "0.bias": flow.tensor([4.0])})
    assert model[0].bias.item() == 3


def test_state_dict_hooks_return_none_or_have_the_old_form():
    model = nn.Sequential(nn.Linear(1, 1))
    with model.register_state_dict_post_hook(lambda module, state, prefix, metadata: state):
        with pytest.raises(StateError, match="must return None, got an OrderedDict"):
            model.state_dict()
    model._register_state_dict_hook(lambda module, state, prefix, metadata: {"v": metadata["version"], **state})
    assert list(model.state_dict()) == ["v", "0.weight", "0.bias"]
    assert list(nn.Sequential(model).state_dict()) == [
        "0.0.weight",
        "0.0.bias",
    ]  # as in PyTorch: only of the outermost module


def test_graph_uses_the_state_hooks_of_its_modules():
    model, seen = nn.Linear(1, 1), []
    model.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append("saves"))
    model.register_state_dict_post_hook(lambda module, state, prefix, metadata: state.update(note=flow.ones(1)))
    model.register_load_state_dict_pre_hook(lambda module, state, *rest: state.pop("note"))
    model.register_load_state_dict_post_hook(lambda module, keys: seen.append("loaded"))
    graph = trained(model)
    graph(flow.ones(1, 1))
    saved, weight = graph.state_dict(), model.weight.item()
    assert list(saved["model"]) == ["weight", "bias", "note"] and seen == ["saves"]
    graph(flow.ones(1, 1))
    graph.load_state_dict(saved)
    assert model.weight.item() == weight and seen[-1] == "loaded"
    saved["model"]["weight"] = flow.ones(2)
    graph(flow.ones(1, 1))
    before = copy.deepcopy(graph.state_dict())
    with pytest.raises(StateError, match=r"weight: must be \[1, 1\], got \[2\]"):
        graph.load_state_dict(saved)
    assert graph.state_dict()["model"]["weight"].item() == before["model"]["weight"].item()
    assert graph.state_dict()["System-Train-TrainStep"].item() == 2


# ---- other methods ---------------------------------------------------------------------------------------------------


class Holds(nn.Module):
    """A module with a tensor that is not a parameter."""

    def __init__(self):
        super().__init__()
        self.layer, self.held = nn.Linear(1, 1), flow.ones(1)

    def _apply(self, fn, recurse=True):
        super()._apply(fn)
        self.held = fn(self.held)
        return self


def test_conversions_call_apply_of_each_module():
    for convert, dtype in (
        (lambda m: m.double(), flow.float64),
        (lambda m: m.half(), flow.float16),
        (lambda m: m.to(flow.float64), flow.float64),
        (lambda m: m.type(flow.float64), flow.float64),
        (lambda m: m.bfloat16(), flow.bfloat16),
    ):
        for outer in (Holds(), nn.Sequential(Holds())):
            inner = outer if isinstance(outer, Holds) else outer[0]
            assert convert(outer) is outer
            assert inner.held.dtype is dtype and inner.layer.weight.dtype is dtype
    outer = nn.Sequential(nn.Linear(1, 1))
    assert outer._apply(lambda t: t.double(), recurse=False)[0].weight.dtype is flow.float32


def test_class_names_and_pickles():
    class Other(nn.Linear):
        def _get_name(self):
            return "Renamed"

        def extra_repr(self):
            return "as it is"

    assert repr(nn.Sequential(Other(1, 1))) == "Sequential(\n  (0): Renamed(as it is)\n)"
    twin = pickle.loads(pickle.dumps(Pickled(1, 1)))
    assert (twin.note, twin.entered) == ("kept", True) and copy.deepcopy(twin).note == "kept"


class Pickled(nn.Linear):
    def __getstate__(self):
        return {**self.__dict__, "note": "kept"}

    def __setstate__(self, state):
        self.__dict__.update(state, entered=True)


@pytest.mark.parametrize("name", UNSUPPORTED_OVERRIDES)
def test_unsupported_override_is_refused(name):
    with pytest.raises(ModuleError, match=f"Mine defines {name}, which has no effect here") as caught:
        type("Mine", (nn.Module,), {name: lambda self, *args: None})
    assert caught.value.hint and "lambda" in caught.value.values["defined"]
