"""`flow.cuda`: which GPUs there are, their memory, and arrays of other libraries on them. The GPU is the stand-in."""

import sys

import numpy as np
import pytest

import minflow as flow
from minflow.core import backend as backends
from minflow.core.backend import backend_of
from minflow.core.spec import Device
from minflow.platforms import cupy as platform

GIB = 1 << 30


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(backends, "UNAVAILABLE", {})


def refused(kind=flow.DeviceError):
    with pytest.raises(kind) as caught:
        flow.ones(2, device="cuda")
    return caught.value


def test_without_cupy_the_error_names_the_command(no_gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    error = refused()
    assert "CuPy is not installed" in error.what and "cuda13" in error.hint
    assert error.values == {"available": "cpu"} and not flow.cuda.is_available()


def test_a_broken_cupy_says_why(no_gpu, monkeypatch):
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "cupy":
                raise ImportError("libcublas.so.13: cannot open shared object file")

    monkeypatch.setattr(platform.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert "libcublas.so.13" in refused().what


def test_without_a_gpu_the_error_says_so(no_gpu, monkeypatch):
    class NoDriver:
        class cuda:
            is_available = staticmethod(lambda: False)

    monkeypatch.setattr(platform.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "cupy", NoDriver)
    error = refused()
    assert "no GPU, or no driver" in error.what and "nvidia-smi" in error.hint


def test_the_platform_is_asked_once(no_gpu, monkeypatch):
    asked = []
    monkeypatch.setitem(backends.LOADERS, "cuda", lambda: asked.append(1) or ("it is away", "wait"))
    for _ in range(3):
        assert not flow.cuda.is_available() and "it is away" in refused().what
    assert asked == [1]


def test_queries_without_a_gpu(no_gpu):
    assert flow.cuda.device_count() == flow.cuda.memory_allocated() == flow.cuda.max_memory_allocated() == 0
    assert flow.cuda.memory_stats() == {} and not flow.cuda.is_initialized() and not flow.cuda.is_bf16_supported()
    flow.cuda.empty_cache(), flow.cuda.synchronize(), flow.cuda.reset_peak_memory_stats()
    for query in (flow.cuda.get_device_name, flow.cuda.mem_get_info, flow.cuda.init, flow.cuda.get_device_capability):
        with pytest.raises(flow.DeviceError, match="there is no device cuda:0 here"):
            query()


def test_facts_about_the_gpu(cuda):
    assert flow.cuda.is_available() and flow.cuda.device_count() == 1 and flow.cuda.is_initialized()
    assert flow.cuda.get_device_name() == "Stand-in" and flow.cuda.get_device_capability(0) == (8, 0)
    facts = flow.cuda.get_device_properties("cuda:0")
    assert (facts.total_memory, facts.multi_processor_count, facts.major) == (4 * GIB, 4, 8)
    assert repr(facts).startswith("_CudaDeviceProperties(name='Stand-in', major=8, minor=0, total_memory=4096MB")


def test_memory(cuda):
    assert flow.cuda.mem_get_info() == (3 * GIB, 4 * GIB)
    assert flow.cuda.max_memory_allocated() == 2 << 20 and flow.cuda.memory_reserved("cuda") == 3 << 20
    flow.cuda.reset_peak_memory_stats()
    flow.cuda.empty_cache()
    assert flow.cuda.max_memory_allocated() == flow.cuda.memory_reserved() == flow.cuda.memory_allocated() == 1 << 20
    assert flow.cuda.memory_stats()["allocated_bytes.all.peak"] == 1 << 20
    assert "allocated_bytes.all.current" in flow.cuda.memory_summary()


def test_an_array_that_does_not_fit_names_the_largest_tensors(cuda):
    large = flow.zeros(1 << 20, device="cuda")
    with pytest.raises(flow.OutOfMemoryError) as caught:
        flow.cuda.set_per_process_memory_fraction(0.01)
        large.expand(1 << 10, 1 << 20).contiguous()
    assert "needs 4.3 GB of memory, and 45.0 MB are free" in caught.value.what
    (largest,) = [text for name, text in caught.value.values.items() if name.startswith("tensor 1 of")]
    assert largest == "float32[1048576] on cuda:0, 4.2 MB"  # not its view, which is larger


def test_the_error_of_memory_has_pytorchs_name():
    assert flow.cuda.OutOfMemoryError is flow.OutOfMemoryError and "OutOfMemoryError" in flow.cuda.__all__


POOL = "cupy/cuda/memory.pyx"  # the file in tracebacks of CuPy


def test_an_allocation_that_fails_names_the_largest_tensors(cuda, monkeypatch):
    x = flow.zeros(300, device="cuda")
    code = compile("def fail(*args): raise MemoryError(f'Out of memory allocating {1024:,} bytes')", POOL, "exec")
    exec(code, found := {})
    monkeypatch.setattr(backend_of(cuda), "empty", found["fail"])
    with pytest.raises(flow.OutOfMemoryError, match="Out of memory allocating 1,024 bytes") as caught:
        x + x
    for error in (caught.value, refused(flow.OutOfMemoryError)):
        assert any(["float32[300] on cuda:0" in text for text in error.values.values()])


def test_the_current_gpu_is_what_cuda_means(cuda, monkeypatch):
    monkeypatch.setattr(type(backend_of(cuda)), "count", classmethod(lambda kind: 2))
    with flow.cuda.device(1):
        assert flow.cuda.current_device() == 1 and Device("cuda").index == 1 and Device("cuda:0").index == 0
    assert flow.cuda.current_device() == 0 and Device("cuda") is cuda
    with flow.cuda.device(None), flow.cuda.device(-1):
        assert flow.cuda.current_device() == 0
    with pytest.raises(flow.DeviceError, match="no device cuda:7"):
        flow.cuda.set_device(7)


def test_a_parameter_elsewhere_is_moved_with_its_model(cuda):
    with pytest.raises(flow.DeviceError, match="and Linear.weight is on cpu:0") as caught:
        flow.nn.Linear(3, 2)(flow.ones(2, 3, device=cuda))
    assert caught.value.hint == 'model.to("cuda:0")'
    with pytest.raises(flow.DeviceError) as caught:
        flow.nn.Linear(3, 2).to(cuda)(flow.ones(2, 3))
    assert caught.value.hint == 'a.to("cuda:0")'


class Foreign:
    """An array of another library, which has told its address only."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.T, lambda x: x[::2, 1:]])
def test_as_tensor_shares_the_memory_of_an_array_on_the_gpu(cuda, view):
    theirs = view(np.arange(12.0).reshape(4, 3))
    ours, copied = flow.as_tensor(Foreign(theirs)), flow.tensor(Foreign(theirs))
    assert ours.device is copied.device is cuda and ours.dtype is flow.float64
    theirs[0] = -1
    assert np.array_equal(ours.cpu().numpy(), theirs) and copied[0, 0].item() in (0, 1)
    ours.add_(1)
    assert theirs[0, 0] == 0


def test_another_library_reads_a_tensor_through_its_interface(cuda):
    x = flow.ones(2, 3, device="cuda")
    address = x.__cuda_array_interface__
    assert address["shape"] == (2, 3) and address["typestr"] == "<f4"
    for hidden in (flow.ones(2), flow.ones(2, device="cuda", requires_grad=True)):
        assert not hasattr(hidden, "__cuda_array_interface__")


def test_dlpack_on_the_gpu(cuda):
    x = flow.arange(4, device="cuda")
    assert x.__dlpack_device__() == (2, 0) and x.__dlpack__(stream=7) is not None
    assert x.array.stream_of_dlpack == 7


def test_a_traced_graph_takes_an_array_on_the_gpu_as_a_constant(cuda):
    theirs = np.ones(3, "f4")

    class Add(flow.nn.Graph):
        def build(self, x):
            return x + flow.as_tensor(Foreign(theirs))

    assert Add()(flow.zeros(3, device="cuda")).cpu().tolist() == [1, 1, 1]
