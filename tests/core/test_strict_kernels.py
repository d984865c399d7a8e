"""Check that the reference kernel of each op runs on a device, with the examples of the op and the bits of NumPy.

The device is the stand-in of `tests/strict_backend.py`.
"""

import numpy as np
import pytest

import minflow  # noqa: F401  (defines the ops; those of optimizers are imported when they are used)
from minflow.core.infer import data_dependent, resolve
from minflow.core.ir import NUMBERS
from minflow.core.kernels import KERNELS, REFERENCE, call_on
from minflow.core.op import OPS
from minflow.core.ops import update, update_adaptive, update_moments  # noqa: F401
from minflow.core.ops.examples import cases
from minflow.core.source_location import input_names
from minflow.core.spec import spec_of
from tests.cases import Cases
from tests.strict_backend import StrictArray, counted, strict

WITH_KERNEL = [
    op for op in OPS.values() if op.examples and (op, REFERENCE) in KERNELS and not op.composite and not op.moves
]


def prepared(op, example) -> tuple[list, tuple]:
    """The arrays of an example as a kernel gets them, cast to the dtype of the result; and the specs of its results."""
    arrays = example.arrays()
    specs = tuple([x.__class__ if x.__class__ in NUMBERS else spec_of(x) for x in arrays])
    dtype, outs = resolve(op, specs, example.attrs)
    if outs is not None or op.infer is data_dependent:
        return arrays, outs
    arrays = [x if x.__class__ in NUMBERS else x.astype(dtype.np) for x in arrays]
    return arrays, resolve(
        op, tuple([x if x.__class__ is type else x.replace(dtype=dtype) for x in specs]), example.attrs
    )[1]


def moved(op, arrays: list) -> list:
    """Inputs on the device, apart from those that the op reads on the host."""
    names = [name.partition("[")[0] for name in input_names(op, arrays)]
    return [
        x if x.__class__ in NUMBERS or name in op.host_inputs else StrictArray(x.copy("K"))
        for x, name in zip(arrays, names)
    ]


def many(results) -> list:
    return list(results) if isinstance(results, list | tuple) else [results]


def computed(op, kernel, arrays, attrs, specs, empty) -> list:
    """The results of a kernel, as `launch` calls it."""
    if not op.takes_out:
        return many(kernel(*arrays, **attrs))
    outs = [empty(spec.shape, spec.np) for spec in specs]
    kernel(*arrays, **attrs, out=outs if op.many else outs[0])
    return outs


@pytest.mark.parametrize("op", WITH_KERNEL, ids=lambda op: op.name)
def test_the_reference_kernel_runs_on_a_device(op, cuda):
    with Cases() as case:
        for k, example in enumerate(cases(op)):
            with case(f"example {k}"):
                arrays, specs = prepared(op, example)
                with np.errstate(all="ignore"):
                    wanted = computed(op, call_on(op, REFERENCE), arrays, example.attrs, specs, np.empty)
                with counted() as copies:
                    results = computed(
                        op, call_on(op, REFERENCE, "cuda"), moved(op, arrays), example.attrs, specs, strict.empty
                    )
                for got, want in zip(results, wanted, strict=True):
                    assert isinstance(got, StrictArray) and got.dtype == want.dtype and got.shape == want.shape
                    assert got.inner.tobytes() == want.tobytes()
                assert not copies or op.infer is data_dependent or KERNELS[op, REFERENCE].on_host


@pytest.mark.parametrize("dtype", "bool int8 uint8 int32 int64 float16 float64 complex64".split())
def test_index_add_adds_to_all_dtypes(dtype, cuda):
    rng = np.random.default_rng(0)
    x, src = [rng.integers(0, 200, (n, 3)).astype(dtype) for n in (4, 9)]
    arrays, specs = [x, rng.integers(0, 4, 9), src], (spec_of(x),)
    results = [
        computed(OPS["index_add"], call_on(OPS["index_add"], REFERENCE, kind), inputs, {"axis": 0}, specs, empty)[0]
        for kind, inputs, empty in (("cpu", arrays, np.empty), ("cuda", [*map(StrictArray, arrays)], strict.empty))
    ]
    assert results[0].tobytes() == results[1].inner.tobytes() and results[1].dtype == dtype
