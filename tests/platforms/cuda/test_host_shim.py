"""The CPU stand-in for CUDA C finds errors that a GPU may not report."""

import numpy as np
import pytest

from tests.guard_pages import at_page_edge
from tests.platforms.cuda.host_shim import KernelError, backwards, compile_for_host
from tests.strict_backend import StrictArray


def run(body: str, n=64, blocks=3, shared=0, x=None, helpers="") -> np.ndarray:
    """Run a kernel of one array x, by default of one int per thread. `t` is the thread's index."""
    x = np.zeros(n * blocks, "i4") if x is None else x
    source = (
        f'{helpers}\nextern "C" __global__ void kernel(int* x) {{\n'
        f"  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n{body}\n}}\n"
    )
    compile_for_host(source)("kernel")((blocks,), (n,), (StrictArray(x),), shared)
    return x


def test_barriers_and_shuffles():
    reverse = "__shared__ int s[64]; s[t] = i; __syncthreads(); x[i] = s[63 - t];"
    expected = np.arange(192).reshape(3, 64)
    np.testing.assert_array_equal(run(reverse).reshape(3, 64), expected[:, ::-1])
    up = run("x[i] = __shfl_up_sync(~0u, t, 1) + 1000 * (__ballot_sync(~0u, t % 2) == 0xaaaaaaaau);")
    np.testing.assert_array_equal(up[:34] - 1000, [0, *range(31), 32, 32])
    half = "if (t % 32 < 16) x[i] = __shfl_xor_sync(0xffff, t, 8); else { __syncwarp(0xffff0000); x[i] = -1; }"
    np.testing.assert_array_equal(run(half)[:32], [*range(8, 16), *range(8), *[-1] * 16])
    source = """extern "C" __global__ void at(int* x) {
      int i = threadIdx.x + 2 * threadIdx.y + 6 * (blockIdx.x + 2 * blockIdx.y);
      x[i] = i;
    }"""
    x = np.zeros(24, "i4")
    compile_for_host(source)("at")((2, 2), (2, 3), (StrictArray(x),))
    np.testing.assert_array_equal(x, range(24))


RACES = {
    "a missing barrier of the block": "__shared__ int s[64]; s[t] = i; x[i] = s[63 - t];",
    "a missing barrier of the warp": "__shared__ int s[64]; s[t] = i; x[i] = s[t ^ 1];",
    "a shared element that two threads write": "__shared__ int s; s = t; __syncthreads(); x[i] = s;",
    "an element that all blocks write": "x[t] = blockIdx.x;",
    "a sum in the order of arrival": "float* y = (float*)x; atomicAdd(y, 1.0f / (i + 1));",
}


@pytest.mark.parametrize("name", RACES)
def test_order_shows_a_race(name):
    forward = run(RACES[name])
    with backwards():
        assert (run(RACES[name]) != forward).any()


def test_shared_memory_is_not_zero():
    x = run("__shared__ int s[64]; x[i] = s[t]; s[t] = 7;")
    np.testing.assert_array_equal(x, -1)  # also in later blocks
    dynamic = run("int* s = (int*)host_shared; x[i] = s[t]; s[t] = 7;", shared=256)
    np.testing.assert_array_equal(dynamic, -1)


ERRORS = {
    "different barriers .thread 1 of block .1": "if (blockIdx.x) t ? __syncwarp() : __syncthreads();",
    "lane 3 is not in the mask 7": "if (t < 4) __syncwarp(7);",
    "lane 0 reads from lane 9, which does not": "if (t < 9) __shfl_sync(0x1ff, t, 9); ",
    "lane 5 reads from lane 8, which does not": "if (t < 8) x[i] = __shfl_down_sync(0xff, t, t == 5 ? 3 : 0);",
    r"index 64 .*: x\[i\] = s\[t \+ 1\]": "__shared__ int s[64];\nx[i] = s[t + 1];",
    "no memory": "int* s = (int*)host_shared; x[i] = s[t + 1];",
}


@pytest.mark.parametrize("message", ERRORS)
def test_error(message):
    with pytest.raises(KernelError, match=message):
        run(ERRORS[message], shared=256)
    assert run("x[i] = 1;").all()  # the next call works


@pytest.mark.parametrize("begins", [False, True])
def test_access_beyond_an_array(begins):
    x = at_page_edge(np.zeros(192, "i4"), begins)
    with pytest.raises(KernelError, match="no memory at"):
        run(f"x[i + {-1 if begins else 1}] = 1;", x=x)
    x = at_page_edge(np.zeros(192, "i4"), begins)
    assert run("x[i] = 1;", x=x).all()


def test_dtypes_of_arguments():
    kernel = compile_for_host('extern "C" __global__ void f(float* x, long long n, double y) {}')("f")
    x, y = [StrictArray(np.zeros(3, dtype)) for dtype in ("f4", "f8")]
    kernel((1,), (32,), (x, 1, 1.0))
    for wrong in ((y, 1, 1.0), (x, 1.0, 1.0), (x, 1, 1), (x, 1)):
        with pytest.raises(AssertionError, match="parameter|takes 3"):
            kernel((1,), (32,), wrong)
