"""Tables of legacy functions: each row is checked in a job and on eager tensors."""

import inspect
from pathlib import Path

import numpy as np
from builders import job_of, raised_error

import minflow as flow
import minflow.typing as tp
from tests.cases import Cases


def run_in_job(function, *arrays, result=tp.Numpy):
    """Return the result of `function(*blobs)` in a predict job on these arrays, with the bits of eager mode."""
    config = flow.function_config()
    config.exact(True)
    given = job_of(function, *arrays, result=result, name="probe", config=config)(*arrays)
    return given if result is tp.Numpy else given.get()


def in_both_modes(function, *arrays):
    """Return the array that the function computes in a job and on eager tensors, after checking that the bits are
    equal.
    """
    eager = function(*[flow.tensor(x) for x in arrays]).numpy()
    found = run_in_job(function, *arrays)
    assert found.dtype == eager.dtype and found.shape == eager.shape
    np.testing.assert_array_equal(found, eager)
    return found


def check_rows(cases, tolerance=0.0, every=1):
    """Check the rows of a table, and report each failing row with its line.

    A row is (call, error, text), or (function, expected, *arrays). The function's results on tensors and in a job must
    be `expected`, an array with the same dtype or a modern function of the same tensors, within `tolerance` if given.
    The first row also runs asynchronously. every: stride of the rows that run in a job.
    """
    asynchronous = True
    with Cases() as case:
        for i, (call, wanted, *rest) in enumerate(cases):
            code = getattr(call, "__code__", None)
            with case(f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else str(call)):
                if isinstance(wanted, type):
                    assert raised_error(call, wanted, *rest).where, "the error does not name a line"
                    continue
                found = in_both_modes(call, *rest) if i % every == 0 else call(*map(flow.tensor, rest)).numpy()
                if callable(wanted):
                    wanted = wanted(*map(flow.tensor, rest)).numpy()
                if isinstance(wanted, np.ndarray):
                    assert found.dtype == wanted.dtype, f"{found.dtype} instead of {wanted.dtype}"
                wanted = np.asarray(wanted)
                assert found.shape == wanted.shape, f"{found.shape} instead of {wanted.shape}"
                np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance / 2)
                if asynchronous:
                    np.testing.assert_array_equal(run_in_job(call, *rest, result=tp.Callback[tp.Numpy]), found)
                    asynchronous = False


def parameters(function):
    return list(inspect.signature(function).parameters)
