"""Ops on a real GPU against the CPU, its memory, and arrays of CuPy that share it: `pytest -m gpu`."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.infer import data_dependent
from minflow.core.ops.examples import cases
from minflow.core.spec import as_dtype
from tests.cases import Cases
from tests.core.test_ops_on_device import REFUSED, WITH_EXAMPLES, as_graph, forward, gradients

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("reference_kernels")]
TOLERANCE = {2: 2e-2, 4: 2e-4, 8: 1e-9}  # by bytes of a real number, relative to the largest element


@pytest.fixture(autouse=True)
def gpu():
    if not flow.cuda.is_available():
        pytest.skip("there is no GPU here, or CuPy is not installed: flow.cuda.is_available() is False")
    return flow.device("cuda:0")


def compare(got, expected) -> None:
    """Compare results, each as (dtype, shape, bytes) or None."""
    for one, other in zip(got, expected, strict=True):
        assert (one is None) == (other is None)
        if one is None or one == other:
            continue
        assert one[:2] == other[:2]
        dtype = as_dtype(one[0]).np
        assert dtype.kind not in "biu", "integers differ"
        x, y = [np.frombuffer(part[2], dtype).astype("c16" if dtype.kind == "c" else "f8") for part in (one, other)]
        finite = np.isfinite(y)
        np.testing.assert_array_equal(x[~finite], y[~finite])
        allowed = TOLERANCE[dtype.itemsize // (1 + (dtype.kind == "c"))] * max(np.abs(y[finite]).max(initial=0), 1)
        np.testing.assert_allclose(x[finite], y[finite], rtol=0, atol=allowed)


@pytest.mark.parametrize("op", WITH_EXAMPLES, ids=lambda op: op.name)
def test_op(op, gpu):
    with Cases() as case:
        for k, example in enumerate(cases(op)):
            parts = [forward] if op.infer is data_dependent else [forward, as_graph, gradients]
            for part in parts if op.differentiable else parts[:2]:
                with case(f"{part.__name__} of example {k}"):
                    try:
                        expected = part(op, example.arrays(), example.attrs, flow.device("cpu"))[0]
                    except REFUSED as error:
                        with pytest.raises(type(error)):
                            part(op, example.arrays(), example.attrs, gpu)
                    else:
                        compare(part(op, example.arrays(), example.attrs, gpu)[0], expected)


# ---- arrays of CuPy --------------------------------------------------------------------------------------------------


class Foreign:
    """An array of another library, which has told its address only."""

    def __init__(self, array):
        self.__cuda_array_interface__ = array.__cuda_array_interface__


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.T, lambda x: x[::2, 1:]], ids=["all", "transposed", "part"])
@pytest.mark.parametrize("share", [flow.as_tensor, flow.from_dlpack, lambda x: flow.as_tensor(Foreign(x))])
def test_tensors_share_memory_with_arrays(share, view):
    import cupy

    array = view(cupy.arange(12, dtype="f4").reshape(4, 3))
    t = share(array)
    t.add_(1)
    assert t.is_cuda and t.tolist() == array.tolist() and flow.tensor(array).array.data.ptr != array.data.ptr
    for other in (cupy.asarray(t), cupy.from_dlpack(t)):
        assert other.data.ptr == array.data.ptr and other.strides == array.strides


def test_numpy_takes_no_tensor_of_a_gpu():
    x = flow.ones(2, device="cuda")
    for read in (np.asarray, lambda x: x.numpy()):
        with pytest.raises(flow.DeviceError, match=r"numpy\(\) of a tensor on cuda:0"):
            read(x)


# ---- memory ----------------------------------------------------------------------------------------------------------


def test_memory_is_counted_and_returned():
    flow.cuda.empty_cache()
    flow.cuda.reset_peak_memory_stats()
    before = flow.cuda.memory_allocated(), flow.cuda.memory_reserved()
    x = flow.empty(1 << 22, device="cuda")
    assert flow.cuda.memory_allocated() == before[0] + (16 << 20) == flow.cuda.max_memory_allocated()
    del x
    assert flow.cuda.memory_allocated() == before[0] and flow.cuda.memory_reserved() >= before[1] + (16 << 20)
    flow.cuda.empty_cache()
    assert flow.cuda.memory_reserved() == before[1] and flow.cuda.max_memory_allocated() == before[0] + (16 << 20)


def test_a_limit_of_memory_names_the_largest_tensors():
    x = flow.zeros(1 << 20, device="cuda")
    total = flow.cuda.mem_get_info()[1]
    try:
        flow.cuda.set_per_process_memory_fraction(0.5)
        with pytest.raises(flow.OutOfMemoryError) as caught:
            x.expand(total * 3 // 4 // x.nbytes, 1 << 20).contiguous()
    finally:
        flow.cuda.set_per_process_memory_fraction(1.0)
    assert any(["float32[1048576] on cuda:0" in text for text in caught.value.values.values()])
    assert x.sum().item() == 0


def test_tensors_of_two_gpus():
    if flow.cuda.device_count() < 2:
        pytest.skip("one GPU")
    x, y = flow.ones(3, 3, device="cuda:0"), 2 * flow.ones(3, 3, device="cuda:1")
    assert (x.array.device.id, y.array.device.id, (y @ y + y).array.device.id) == (0, 1, 1)
    with pytest.raises(flow.DeviceError, match="a is on cuda:0, and b is on cuda:1"):
        x + y
    assert (x + y.to("cuda:0")).tolist() == [[3.0] * 3] * 3
    with flow.cuda.device(1):
        assert flow.ones(1, device="cuda").array.device.id == 1
    assert flow.ones(1, device="cuda").array.device.id == 0
