"""Names that PyTorch programs read while they are imported: base classes, types and helpers."""

import inspect
import typing
from datetime import timedelta

import pytest
from minflow.distributed.algorithms.join import Join
from minflow.distributed.constants import default_pg_timeout
from minflow.nn.modules.module import _IncompatibleKeys
from minflow.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
)
from minflow.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter

import minflow as flow
from minflow import DeviceError, StateError, nn
from minflow.utils.data import DataLoader, TensorDataset


class Doubles:
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return NotImplemented if function is sum else ("doubled", function, types, args, kwargs)


class Wrapped(flow.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)


def test_types_without_instances():
    from minflow._dynamo import OptimizedModule
    from minflow._dynamo.eval_frame import OptimizedModule as same

    model = Wrapped()
    assert same is OptimizedModule and isinstance(model, nn.Module) and model(flow.ones(1, 3)).shape == (1, 2)
    assert flow.ScriptModule is flow.jit.ScriptModule
    plain = flow.compile(nn.Linear(2, 2), disable=True)
    assert not isinstance(flow.ones(1), flow._subclasses.FakeTensor)
    for kind in (OptimizedModule, flow.jit.ScriptModule, flow.jit.ScriptFunction, flow.fx.GraphModule):
        assert inspect.isclass(kind) and not isinstance(plain, kind)


def test_decorators_and_marks_of_the_compiler_change_nothing():
    from minflow._dynamo import allow_in_graph, assume_constant_result, mark_dynamic, mark_static_address

    assert len in (allow_in_graph(len), flow.fx.wrap(len)) and assume_constant_result(len) is len
    assert mark_static_address(flow.ones(2), guard=True) is mark_dynamic(flow.ones(2), 0) is None
    flow._dynamo.config.cache_size_limit = 64
    assert flow.jit.Final[bool] is typing.Final[bool]


def test_readers_and_ranges_are_refused():
    with pytest.raises(StateError, match="records are not read one by one") as caught:
        flow.PyTorchFileReader("file.pt")
    assert "flow.load" in caught.value.hint
    with pytest.raises(DeviceError, match="NVIDIA") as caught, flow.autograd.profiler.emit_nvtx():
        pass
    assert "profile" in caught.value.hint
    with pytest.raises(StateError, match="unequal numbers of batches") as caught:
        Join([nn.Linear(2, 2)])
    assert "DistributedSampler" in caught.value.hint
    with flow.autograd.profiler.emit_nvtx(enabled=False), Join([], enable=False):
        assert flow.profiler.kineto_available()


def test_torch_function_of_arguments():
    it = Doubles()
    assert has_torch_function((flow.ones(1), it)) and not has_torch_function((flow.ones(1), 3))
    assert is_tensor_like(it) and is_tensor_like(flow.ones(1)) and not is_tensor_like(3)
    assert handle_torch_function(max, (it, 1), it, 1, key=2) == ("doubled", max, (Doubles,), (it, 1), {"key": 2})
    assert handle_torch_function(max, (flow.ones(1),), 2, 3) == 3
    with pytest.raises(TypeError, match="sum for"):
        handle_torch_function(sum, (it,), it)


def test_a_mode_that_intercepts_functions_is_refused():
    class Empty(BaseTorchFunctionMode):
        pass

    with pytest.raises(StateError, match="Empty: functions of minflow cannot be intercepted") as caught, Empty():
        pass
    assert "skip_init" in caught.value.hint and issubclass(Empty, TorchFunctionMode)


def test_attributes_that_programs_read():
    assert isinstance(flow.distributed.ReduceOp.SUM, flow.distributed.ReduceOp.RedOpType)
    assert isinstance(default_pg_timeout, timedelta) and default_pg_timeout > timedelta(0)
    assert isinstance(nn.Linear(2, 2).load_state_dict(nn.Linear(2, 2).state_dict()), _IncompatibleKeys)
    loader = DataLoader(TensorDataset(flow.ones(4)), multiprocessing_context="spawn")
    assert loader.multiprocessing_context == "spawn" and loader.in_order and loader.pin_memory_device == ""
    assert isinstance(iter(loader), _BaseDataLoaderIter) and not isinstance(
        iter(loader), _MultiProcessingDataLoaderIter
    )
    assert flow.compiler.is_compiling() is False
    assert flow.cuda._initialized is flow.cuda.is_initialized() is False
    assert isinstance(flow.device("cpu"), flow.DeviceObjType)
    assert flow._C._log_api_usage_once("use") is None


def test_the_arguments_of_to():
    parse = flow._C._nn._parse_to
    assert parse("cpu", flow.float64) == (flow.device("cpu"), flow.float64, False, None)
    assert parse(flow.float16, True) == (None, flow.float16, True, None)
    assert parse(flow.ones(1, dtype=flow.float64)) == (flow.device("cpu"), flow.float64, False, None)
    assert parse(device=None, dtype=None, non_blocking=True) == (None, None, True, None)


@pytest.mark.parametrize("name", ["_hooks", "_compute", "_computed", "_created_at"])
def test_attributes_of_a_users_module_do_not_meet_ours(name):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            setattr(self, name, None)
            self.layer = nn.Linear(3, 2)

        def forward(self, x):
            return self.layer(x)

    model, seen = Model(), []
    model.register_forward_hook(lambda module, args, output: seen.append(output.shape))
    assert model(flow.ones(1, 3)).shape == (1, 2) and seen == [(1, 2)]
    assert getattr(model, name) is None
    assert list(model.state_dict()) == ["layer.weight", "layer.bias"]
