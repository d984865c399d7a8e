"""Import paths that other programs use, and those that are refused."""

import importlib
import os
import subprocess
import sys
import textwrap
from abc import ABC
from pathlib import Path

import pytest

import minflow as flow
from minflow import import_aliases, nn
from minflow.core import autograd, infer
from minflow.core.base.errors import MissingModuleError, MissingNameError, SbpError
from minflow.core.kernels import CALLS
from minflow.core.op import OPS
from minflow.import_aliases import RENAMED
from tests.sampling import sampled

TOP = Path(__file__).parent.parent


@pytest.mark.filterwarnings("ignore:.* is now minflow:DeprecationWarning")
@pytest.mark.parametrize("path", sorted({*import_aliases.ALIASES, *import_aliases.MERGED}))
def test_every_import_path_is_a_module(path):
    found = importlib.import_module(f"minflow.{path}")
    assert found is importlib.import_module(f"minflow.{path}")
    held = flow
    for part in path.split("."):
        held = getattr(held, part)
    assert held is found


def test_layers_import_from_pytorchs_modules():
    from minflow.nn.modules.batchnorm import BatchNorm2d, _BatchNorm
    from minflow.nn.modules.container import Sequential
    from minflow.nn.modules.module import Module

    from minflow.nn.modules import Linear, batchnorm
    from minflow.nn.modules.linear import Flatten  # minflow has them in a file of another name
    from minflow.nn.modules.loss import _Loss
    from minflow.nn.modules.utils import _ntuple, _pair

    assert (Linear, BatchNorm2d, Flatten, Sequential, Module) == (
        nn.Linear,
        nn.BatchNorm2d,
        nn.Flatten,
        nn.Sequential,
        nn.Module,
    )
    assert issubclass(nn.BatchNorm1d, _BatchNorm) and issubclass(nn.MSELoss, _Loss)
    assert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2) and _ntuple(4)(0) == (0, 0, 0, 0)
    assert "Linear" in dir(batchnorm)
    for name, layer in vars(nn).items():  # also those that are added later
        if isinstance(layer, type) and issubclass(layer, nn.Module):
            assert getattr(batchnorm, name) is layer


@pytest.mark.parametrize("name", import_aliases.NAME_ALIASES)
def test_every_underscored_name_exists(name):
    from minflow.nn.modules import loss

    home, _, attribute = import_aliases.NAME_ALIASES[name].rpartition(".")
    assert getattr(loss, name) is getattr(importlib.import_module(f"minflow.{home}"), attribute)


def test_both_names_are_the_same_module():
    import minflow.backends.cudnn as cudnn
    import minflow.compatible.single_client.nn.functional as functional
    import minflow.compatible.single_client.typing as typing
    from minflow.compatible import single_client

    assert single_client is flow and functional is nn.functional and typing is flow.typing
    assert cudnn is flow.backends.cudnn and flow.cuda.amp is flow.amp and callable(flow.tensor)


def test_size_annotations():
    from minflow.types import Device, Number

    from minflow.nn.common_types import _size_2_t

    assert isinstance((1, 2), tuple) and isinstance(1, Number) and isinstance("cpu", Device)
    assert int in _size_2_t.__args__


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("cuda.sparse", "sparse_coo_tensor"),
        ("tensorrt", "leave it out"),
        ("utils.tensorboard.backend", "flow.watch"),
        ("nn.COCOReader", "there is no reader of OFRecord"),
    ],
)
def test_refused_module_suggests_replacement(path, hint):
    with pytest.raises(MissingModuleError, match=rf"no module or name minflow.{path}") as caught:
        importlib.import_module(f"minflow.{path}")
    assert hint in caught.value.hint and "test_import_paths.py" in caught.value.where
    assert isinstance(caught.value, ModuleNotFoundError)
    assert f"minflow.{path}" not in sys.modules


@pytest.mark.parametrize(
    ("namespace", "name", "hint"),
    [
        ("quantization", "QuantStub", "not quantized"),
        ("ao.quantization.observer", "MinMaxObserver", "not quantized"),
        ("nn.quantized", "Linear", "not quantized"),
        ("distributed.tensor", "DTensor", "x.to_global(placement, sbp)"),
        ("distributed.fsdp", "FullyShardedDataParallel", "x.to_global(placement, sbp)"),
        ("distributed.checkpoint.state_dict", "get_model_state_dict", "flow.load(path)"),
        ("fx.experimental.symbolic_shapes", "guard_size_oblivious", "flow.onnx.export"),
        ("vision.models.inception", "InceptionA", "its layers are in nn"),
        ("cuda", "CUDAGraph", "second call"),
    ],
)
def test_namespace_imports_and_refuses_at_the_call(namespace, name, hint):
    kind = getattr(importlib.import_module(f"minflow.{namespace}"), name)
    assert not isinstance(nn.Linear(1, 1), kind) and kind is getattr(sys.modules[f"minflow.{namespace}"], name)
    assert kind.SOME_FIELD["x"] is kind.SOME_FIELD and not hasattr(kind, "__wrapped__") and kind | None
    derived = type("Derived", (nn.Module, kind), {"forward": lambda self: None})
    assert issubclass(type(kind)("Both", (kind, ABC), {}), kind)
    for call in (kind, derived, kind.with_args, lambda it: it in kind, lambda it: [*kind]):
        with pytest.raises(MissingNameError, match=f"flow.{namespace}.* has no ") as caught:
            call(1)
        assert hint in caught.value.hint and "test_import_paths.py" in caught.value.where


def test_kinds_of_sbp_have_pytorchs_names():
    from minflow.distributed.tensor import Partial, Replicate, Shard

    assert Shard(1) is flow.sbp.split(1) and isinstance(flow.sbp.split(0), Shard)
    assert Replicate() is flow.sbp.broadcast and Partial("sum") is flow.sbp.partial_sum
    assert not isinstance(flow.sbp.broadcast, Shard) and not isinstance("split", Shard)
    with pytest.raises(SbpError, match="parts are added"):
        Partial(reduce_op="avg")


def test_unknown_module():
    with pytest.raises(ModuleNotFoundError, match=r"minflow\.nowhere"):
        importlib.import_module("minflow.nowhere")
    with pytest.raises(MissingNameError, match=r"flow\.nn\.modules\.conv has no Conv9d") as caught:
        flow.nn.modules.conv.Conv9d
    assert "Conv2d" in caught.value.hint


def test_names_that_model_zoos_import():
    """The imports of the real flowvision, which runs unmodified with them."""
    import numpy as np
    from minflow.framework.dtype import convert_oneflow_dtype_to_numpy_dtype
    from minflow.nn.modules.instancenorm import _InstanceNorm

    from minflow.nn.init import _calculate_correct_fan, _calculate_fan_in_and_fan_out

    assert convert_oneflow_dtype_to_numpy_dtype(flow.int64) is np.int64
    assert _calculate_fan_in_and_fan_out(flow.ones(3, 2, 5, 5)) == (50, 75)
    assert _calculate_correct_fan(flow.ones(3, 2), "fan_out") == 3 and issubclass(nn.InstanceNorm2d, _InstanceNorm)
    assert flow._C.cast(flow.ones(2), flow.int64).dtype is flow.int64 and flow.jit._script_if_tracing(len) is len
    assert flow._C._log_api_usage_once("library.Metric") is None
    from minflow.vision.models._api import WeightsEnum, get_model

    assert issubclass(flow.vision.models.ResNet18_Weights, WeightsEnum) and get_model is flow.vision.models.get_model
    flow._assert(True, "never")
    with pytest.raises(AssertionError, match="three axes"):
        flow._assert(False, "three axes")
    loss = flow._C.binary_cross_entropy_with_logits_loss(flow.zeros(2), flow.ones(2), reduction="sum")
    assert loss.item() == pytest.approx(2 * np.log(2))


@pytest.mark.parametrize("old, new", RENAMED.items())
def test_renamed_module_warns(old, new):
    """Learners' copies of lessons and tours import the old paths."""
    sys.modules.pop(f"minflow.{old}", None)
    with pytest.warns(DeprecationWarning, match=rf"minflow\.{old} is now minflow\.{new}"):
        module = importlib.import_module(f"minflow.{old}")
    assert module is importlib.import_module(f"minflow.{new}")


def test_renamed_function_of_a_reading_tour_warns():
    with pytest.warns(DeprecationWarning, match=r"autograd\.argument is now autograd\.rule_argument"):
        assert autograd.argument is autograd.rule_argument
    with pytest.raises(AttributeError, match="no attribute 'arguments'"):
        autograd.arguments
    with pytest.warns(DeprecationWarning, match=r"infer\.INFERRED is now infer\.INFER_CACHE"):
        assert infer.INFERRED is infer.INFER_CACHE
    with pytest.warns(DeprecationWarning, match=r"op\.kernel is now minflow\.core\.kernels\.CALLS\[op\]"):
        assert OPS["add"].kernel is CALLS[OPS["add"]]


PACKAGES = sorted(
    path.parent.relative_to(TOP).as_posix().replace("/", ".")
    for path in (TOP / "minflow").rglob("__init__.py")
    if "exercises" not in path.parts
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the test forks a process for each package")
def test_every_package_can_be_imported_first():
    """Packages that import each other, directly or not, must not depend on which one is imported first."""
    program = """
        import os, sys
        import numpy

        for name in sys.argv[1:]:
            if (child := os.fork()) == 0:
                try:
                    __import__(name)
                except BaseException as error:
                    print(name, repr(error), flush=True)
                os._exit(0)
            os.waitpid(child, 0)
    """
    packages = [*sampled(PACKAGES, 0.2), "minflow.deploy", "minflow.introspection", "minflow.onnx"]
    command = [sys.executable, "-c", textwrap.dedent(program), *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=TOP)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
