"""Tables of legacy functions: each row is judged in a job and on eager tensors."""

import inspect
from pathlib import Path

import numpy as np
from builders import job_of, refused

import minflow as flow
import minflow.typing as tp
from tests.cases import Cases


def in_job(function, *arrays, result=tp.Numpy):
    """What `function(*blobs)` gives as a predict job of its own on these arrays, in the bits of eager."""
    config = flow.function_config()
    config.exact(True)
    given = job_of(function, *arrays, result=result, name="probe", config=config)(*arrays)
    return given if result is tp.Numpy else given.get()


def both(function, *arrays):
    """The same in a job and on eager tensors: the array, after a check that the two agree bit by bit."""
    eager = function(*[flow.tensor(x) for x in arrays]).numpy()
    found = in_job(function, *arrays)
    assert found.dtype == eager.dtype and found.shape == eager.shape
    np.testing.assert_array_equal(found, eager)
    return found


def judge(cases, tolerance=0.0, every=1):
    """Judge the rows of a table, and tell of all that fail, each with its line.

    A row is (call, error, text), or (function, wanted, *arrays): what the function gives on tensors and in a job, with
    the dtype of `wanted` if that is an array or a modern function of the same tensors; within `tolerance`, if it is
    given. The first is also run without waiting for it. every: the distance of those that are run in a job.
    """
    asynchronous = True
    with Cases() as case:
        for i, (call, wanted, *rest) in enumerate(cases):
            code = getattr(call, "__code__", None)
            with case(f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else str(call)):
                if isinstance(wanted, type):
                    assert refused(call, wanted, *rest).where, "the error names no line"
                    continue
                found = both(call, *rest) if i % every == 0 else call(*map(flow.tensor, rest)).numpy()
                if callable(wanted):
                    wanted = wanted(*map(flow.tensor, rest)).numpy()
                if isinstance(wanted, np.ndarray):
                    assert found.dtype == wanted.dtype, f"{found.dtype} instead of {wanted.dtype}"
                wanted = np.asarray(wanted)
                assert found.shape == wanted.shape, f"{found.shape} instead of {wanted.shape}"
                np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance / 2)
                if asynchronous:
                    np.testing.assert_array_equal(in_job(call, *rest, result=tp.Callback[tp.Numpy]), found)
                    asynchronous = False


def parameters(function):
    return list(inspect.signature(function).parameters)
