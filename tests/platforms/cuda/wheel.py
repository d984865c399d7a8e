"""The CuPy wheel without a GPU: its names and parameters, and its answers to calls.

A real array of CuPy is made over memory of the host, so that a call gets as far as the driver.
"""

import __future__

import inspect
import re

import cupy
import numpy as np
from cupy.cuda import memory, runtime
from cupyx.scipy import special

from tests.strict_backend import StrictArray

SPACES = {"": cupy, "linalg": cupy.linalg, "fft": cupy.fft, "lib.stride_tricks": cupy.lib.stride_tricks}
METHODS_OF_UFUNCS = "reduce", "accumulate", "at"
HOST = np.zeros(1)
# Errors show arrays: reading one would hide a refusal behind the driver's error.
cupy.ndarray.__repr__ = cupy.ndarray.__str__ = lambda x: f"{x.dtype}{list(x.shape)}"


def array_like(spec) -> cupy.ndarray:
    """A real array with this shape, dtype and strides, whose elements must not be read."""
    place = memory.MemoryPointer(memory.UnownedMemory(HOST.ctypes.data, 1 << 40, HOST, 0), 0)
    return cupy.ndarray(spec.shape, spec.dtype, place, spec.strides)


# ---- names -----------------------------------------------------------------------------------------------------------


def parameters(function) -> list[str]:
    """The names of the parameters; `*` if they are unknown. Methods in C state them in their docstrings."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except ValueError:
        text = re.match(r"[\w.]+\((.*?)\)(?: ->|$)", (function.__doc__ or "").partition("\n")[0])
        if text is None:
            return ["*"]
        names = [part.partition("=")[0].split()[-1] for part in text[1].split(", ") if part]
        return [name for name in names if name not in ("self", "*", "/")]
    signs = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [signs.get(p.kind, "") + p.name for p in found if p.name != "self"]


def implemented(ufunc, method: str) -> bool:
    one = array_like(np.zeros(1, "int32"))
    try:
        getattr(ufunc, method)(*[one] * (3 if method == "at" else 1))
    except NotImplementedError:
        return False
    except runtime.CUDARuntimeError:
        return True


def line(name: str, value) -> str:
    if isinstance(value, type):
        return f"{name} type"
    if isinstance(value, cupy.ufunc):
        return " ".join([name, "ufunc", *[m for m in METHODS_OF_UFUNCS if implemented(value, m)]])
    if not callable(value):
        return f"{name} value"
    return " ".join([name, "method" if name.startswith("ndarray.") else "function", *parameters(value)])


def names() -> str:
    """The lines of `tests/cupy_names.txt`."""
    lines = []
    for prefix, space in [*SPACES.items(), ("ndarray", cupy.ndarray)]:
        for name in sorted(dir(space)):
            value = getattr(space, name, None)
            if not name.startswith("_") and not inspect.ismodule(value) and not isinstance(value, __future__._Feature):
                lines.append(line(f"{prefix}.{name}" if prefix else name, value))
    return "".join(text + "\n" for text in lines)


# ---- calls -----------------------------------------------------------------------------------------------------------

PASSED: set = set()  # kinds of calls that the wheel has accepted


def kind(x):
    """Equal for arguments of which CuPy accepts all or none."""
    if isinstance(x, StrictArray | np.ndarray):
        return type(x), x.dtype, x.ndim, x.size > 0
    if isinstance(x, list | tuple):
        return type(x), *map(kind, x)
    return (type(x), x) if isinstance(x, str | type | np.dtype) else type(x)


def real(x):
    """An argument of the stand-in as one of CuPy."""
    if isinstance(x, StrictArray):
        return array_like(x)
    return type(x)(map(real, x)) if type(x) in (list, tuple) else x


def find(name: str):
    """A function of CuPy, a method of its arrays, or one of its special functions."""
    found = cupy
    for part in name.split("."):
        found = getattr(found, part, None)
    return found or getattr(special, name)


def check(name: str, args, options, result) -> None:
    """Check that CuPy gets as far as the driver, or as one of CUDA's libraries, with this call."""
    key = name, *map(kind, args), *[(key, kind(x)) for key, x in sorted(options.items())]
    if key in PASSED:
        return
    function, why = find(name), ""
    try:
        function(*real(args), **{key: real(x) for key, x in options.items()})
    except runtime.CUDARuntimeError:
        pass
    except Exception as error:
        if not (isinstance(error, ImportError) and "Failure finding" in str(error)):
            why = f"{type(error).__name__}: {error}"
    if not why and isinstance(function, cupy.ufunc) and options.get("dtype") is None:
        why = refused_dtypes(function, args[: function.nin], options, result)
    if why:
        text = ", ".join([*map(repr, real(args)), *[f"{key}={real(x)!r}" for key, x in options.items()]])
        raise AssertionError(f"CuPy has another answer to {name}({text}): {why}")
    PASSED.add(key)


WEAK = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}  # of Python's numbers


def refused_dtypes(ufunc, inputs, options, result) -> str:
    """Why CuPy has no loop for these inputs, or one that returns other dtypes than NumPy's; "" if it has one.

    It chooses the loop after the driver's first answer.
    """
    types = tuple([np.dtype(WEAK[type(x)]) if type(x) in WEAK else x.dtype for x in inputs])
    weak = tuple([type(x) in WEAK and type(x) for x in inputs])
    loop = ufunc._ops._guess_routine_from_in_types(types, None if all(weak) else weak)
    if loop is None:
        return f"its loops are {', '.join(ufunc.types)}"
    for theirs, ours in zip(loop.out_types, result if isinstance(result, tuple) else (result,), strict=True):
        cast = options.get("casting", "same_kind") if options.get("out") is not None else "no"
        if not np.can_cast(theirs, ours.dtype, cast):
            return f"the result is {theirs}, not {ours.dtype}"
    return ""
