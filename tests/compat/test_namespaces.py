"""Settings and queries of programs for other machines: accepted, answered for one process and one CPU, or a clear
error.
"""

import inspect
import warnings

import numpy as np
import pytest

import minflow as flow
from minflow import cuda, distributed as dist, jit, nn
from minflow.core.base.errors import CallError, DeviceError, MinflowWarning, MissingNameError, OutOfRangeError


def test_backends():
    flow.backends.cudnn.benchmark = True
    flow.backends.cuda.matmul.allow_tf32 = True
    assert flow.backends.cudnn.benchmark and not flow.backends.cudnn.is_available()
    assert flow.backends.cudnn.version() is None and not flow.backends.mps.is_available()
    assert not flow.backends.mps.is_built() and not flow.backends.mkldnn.is_available()
    with flow.backends.cudnn.flags(enabled=False, benchmark=False):
        assert not flow.backends.cudnn.benchmark
    assert flow.backends.cudnn.benchmark and flow.backends.cuda.math_sdp_enabled()
    with flow.backends.cuda.sdp_kernel(enable_flash=False):
        pass
    flow.backends.cudnn.benchmark = False


def test_no_accelerator():
    assert flow.accelerator.is_available() is cuda.is_available() is False
    assert flow.accelerator.current_accelerator() is None and flow.accelerator.device_count() == 0
    assert not flow.mps.is_available() and not flow.xpu.is_available()
    device = flow.accelerator.current_accelerator().type if flow.accelerator.is_available() else "cpu"
    assert flow.ones(2, device=device).sum().item() == 2
    with pytest.raises(DeviceError, match="no device cuda:0"):
        flow.accelerator.current_device_index()


@pytest.mark.parametrize(
    "call",
    [
        lambda: cuda.get_device_name(),
        lambda: cuda.get_device_name(0),
        lambda: cuda.get_device_properties("cuda:0"),
        lambda: cuda.get_device_capability(),
        lambda: cuda.set_device(0),
        lambda: cuda.device(0),
        lambda: cuda.init(),
        lambda: cuda.mem_get_info(),
        lambda: flow.ones(2).cuda(),
        lambda: flow.ones(2).to("cuda"),
        lambda: flow.tensor([1.0], device="cuda"),
        lambda: nn.Linear(2, 2).to("cuda"),
        lambda: nn.Linear(2, 2).cuda(),
    ],
    ids=range(13),
)
def test_gpu_functions_report_that_there_is_none(call):
    with pytest.raises(DeviceError, match="no device cuda:0 here") as caught:
        call()
    assert caught.value.values["available"] == "cpu" and "is_available() else" in caught.value.hint


def test_functions_that_need_no_gpu():
    assert cuda.device_count() == cuda.memory_allocated() == cuda.max_memory_reserved() == 0
    cuda.manual_seed_all(3), cuda.empty_cache(), cuda.synchronize(), cuda.reset_peak_memory_stats(), cuda.set_device(-1)
    state = cuda.get_rng_state()
    first = flow.rand(3)
    cuda.set_rng_state(state)
    assert flow.equal(flow.rand(3), first) and cuda.get_rng_state_all() == [] and flow.version.cuda is None
    cuda.set_rng_state_all([state])
    assert flow.equal(flow.rand(3), first)
    assert flow.version.__version__ == flow.__version__ and int(flow.__version__.split(".")[0]) == 0


def test_threads_and_exactness():
    assert flow.get_num_threads() >= 1 and flow.get_num_interop_threads() == 1
    with pytest.raises(OutOfRangeError, match="0"):
        flow.set_num_threads(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MinflowWarning)
        flow.set_num_threads(1)
    assert flow.get_num_threads() == 1
    flow.set_num_interop_threads(2)
    flow.set_float32_matmul_precision("high")
    assert flow.get_float32_matmul_precision() == "high"
    flow.set_float32_matmul_precision("highest")
    with pytest.raises(OutOfRangeError, match="'low'"):
        flow.set_float32_matmul_precision("low")
    flow.use_deterministic_algorithms(True, warn_only=True)
    assert flow.are_deterministic_algorithms_enabled() and flow.get_deterministic_debug_mode() == 1
    flow.set_deterministic_debug_mode("default")
    assert not flow.are_deterministic_algorithms_enabled() and not flow.set_flush_denormal(True)


def test_compile_and_script_return_the_model_and_warn_once():
    model = nn.Linear(2, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert flow.compile(model, mode="max-autotune", fullgraph=True) is model
            assert jit.script(model) is model and jit.trace(model, flow.ones(1, 2)) is model
    said = [str(each.message).partition(":")[0] for each in caught if each.category is MinflowWarning]
    assert said == ["compile", "jit.script", "jit.trace"]

    @flow.compile(disable=True)
    def double(x):
        return x * 2

    @jit.ignore
    @jit.unused
    @jit.export
    def single(x):
        return x

    @jit.ignore(drop=True)
    def nothing(x):
        return x

    assert double(3) == 6 and single(3) == nothing(3) == 3 and not jit.is_scripting() and not jit.is_tracing()
    assert jit.wait(jit.fork(double, 2)) == 4 and jit.annotate(int, 3) == 3 and jit.Attribute(3, int).value == 3


def test_single_process_world():
    assert dist.is_available() and not dist.is_initialized()
    dist.init_process_group("nccl", init_method="env://", world_size=1, rank=0)
    assert dist.is_initialized() and (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "nccl")
    x = flow.arange(4.0)
    dist.all_reduce(x, op=dist.ReduceOp.SUM)
    dist.broadcast(x, src=0)
    dist.barrier()
    assert dist.all_reduce(x, async_op=True).wait() and x.tolist() == [0, 1, 2, 3]
    for collect in (dist.all_gather, flow.comm.all_gather):
        out = [flow.zeros(4)]
        collect(out, x)
        assert flow.equal(out[0], x)
    for gather in (dist.all_gather_into_tensor, dist.reduce_scatter_tensor, dist.all_to_all_single):
        out = flow.zeros(4)
        gather(out, x)
        assert flow.equal(out, x)
    out = flow.zeros(4)
    dist.scatter(out, [x], src=0)
    dist.reduce_scatter(out, [x])
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert flow.equal(out, x) and objects == [{"a": 1}]
    group = dist.new_group([0])
    assert (group.size(), dist.get_rank(group)) == (1, 0)
    dist.destroy_process_group()
    assert not dist.is_initialized()


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: flow.multiprocessing.spawn(print, nprocs=2), "2"),
    ],
)
def test_more_than_one_process_is_refused(call, value):
    with pytest.raises(DeviceError, match="does not start its own ranks") as caught:
        call()
    assert value in caught.value.values.values()


def test_multiprocessing():
    seen = []
    flow.multiprocessing.spawn(lambda rank, x: seen.append((rank, x)), args=(5,), nprocs=1)
    flow.multiprocessing.set_sharing_strategy("file_system")
    assert seen == [(0, 5)] and flow.multiprocessing.cpu_count() >= 1
    with pytest.raises(MissingNameError, match="flow.multiprocessing has no SpawnContext2"):
        flow.multiprocessing.SpawnContext2


def test_wrapped_model_behaves_like_the_model():
    model = nn.Linear(3, 2)
    with pytest.warns(MinflowWarning, match="DataParallel"):
        wrapped = nn.DataParallel(model, device_ids=[0])
    x = flow.randn(4, 3)
    assert flow.equal(wrapped(x), model(x)) and wrapped.module is model
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    assert flow.equal(nn.parallel.data_parallel(model, x), model(x))
    assert nn.parallel.DistributedDataParallel(model, device_ids=[0]) is model.module is model
    with model.no_sync():
        model(x).sum().backward()
    assert model.weight.grad.shape == (2, 3)


def test_dlpack_and_variables():
    from minflow.autograd import Variable
    from minflow.utils.dlpack import from_dlpack

    x = flow.arange(3.0)
    assert np.array_equal(from_dlpack(np.arange(3.0)).numpy(), [0, 1, 2])
    assert "dltensor" in repr(flow.utils.dlpack.to_dlpack(x))
    assert Variable(x) is x and isinstance(x, Variable) and not isinstance(3, Variable)
    assert Variable(flow.ones(2), requires_grad=True).requires_grad
    assert "NumPy" in flow.__config__.show() and "threads" in flow.__config__.parallel_info()


@pytest.mark.parametrize("room", ["accelerator", "comm", "cuda", "distributed", "jit", "mps"])
def test_functions_are_documented_and_name_unknown_arguments(room):
    namespace = getattr(flow, room)
    for name in dir(namespace):
        function = getattr(namespace, name)
        if inspect.isfunction(function) and not any(
            p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values()
        ):
            assert function.__doc__, name
            with pytest.raises(CallError, match="qqq"):
                function(qqq=1)
