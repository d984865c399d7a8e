"""A legacy function inside a job function and on eager tensors, for the tests beside this file."""

import inspect

import numpy as np

import minflow as flow
import minflow.typing as tp


def in_job(function, *arrays):
    """What `function(*blobs)` gives as a predict job of its own on these arrays, in the bits of eager."""
    names = [f"x{i}" for i in range(len(arrays))]
    space = {"function": function}
    exec(f"def probe({', '.join(names)}):\n    return function({', '.join(names)})", space)
    probe = space["probe"]
    probe.__annotations__ = {name: tp.Numpy.Placeholder(array.shape, dtype=getattr(flow, array.dtype.name))
                             for name, array in zip(names, arrays)} | {"return": tp.Numpy}
    config = flow.function_config()
    config.exact(True)
    return flow.global_function(type="predict", function_config=config)(probe)(*arrays)


def both(function, *arrays):
    """The same in a job and on eager tensors: the array, after a check that the two agree bit by bit."""
    eager = function(*[flow.tensor(x) for x in arrays]).numpy()
    found = in_job(function, *arrays)
    assert found.dtype == eager.dtype and found.shape == eager.shape
    np.testing.assert_array_equal(found, eager)
    return found


def parameters(function):
    return list(inspect.signature(function).parameters)
