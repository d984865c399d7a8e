"""A stand-in for a GPU: arrays in the memory of the host that behave like CuPy's, so that tests need no device.

A StrictArray refuses NumPy's functions and NumPy's arrays, and counts copies to the host in COPIES. Its namespace,
`strict`, has the names and parameters of CuPy 14.2 (`cupy_names.txt`, taken from the wheel: kind, name, and the
parameters or, of a ufunc, its methods), and CuPy's holes. It computes with NumPy, so it has NumPy's bits.
Unlike CuPy, which then returns NaN, it raises LinAlgError for a singular matrix.
"""

import contextlib
import ctypes
import functools
import inspect
import sys
import types
import weakref
from collections import Counter
from pathlib import Path

import numpy as np

from minflow.core.backend import BACKENDS, OPEN, Memory, backend_of, register_backend, to_host
from minflow.core.kernels import EAGER_PLATFORMS, clear_caches
from minflow.core.spec import DEVICE_OF_ARRAY, Device, cpu
from minflow.platforms.cupy import use_kernels
from minflow.platforms.cupy.device_code import CudaBackend
from tests import strict_streams
from tests.platforms.cuda.host_shim import compile_for_host
from tests.strict_streams import perform

NAMES = Path(__file__).with_name("cupy_names.txt")
COPIES: Counter = Counter()  # "item at file.py:12 in function" -> number of copies to the host
PINNED: dict = {}  # address of pinned memory -> a weak reference to its array
UPLOADS: Counter = Counter()  # the same of copies from the host
CHECKS: list = []  # functions of the name, the arguments, the options and the result of a call, run after each call


def place() -> str:
    """The line that called into this file."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in (__file__, to_host.__code__.co_filename):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"


def copied(how: str) -> None:
    """Count a copy to the host, which waits for the current stream."""
    strict_streams.wait()
    COPIES[f"{how} at {place()}"] += 1


def called(name: str, args, options, result=None) -> None:
    for check in CHECKS:
        check(name, args, options, result)


@contextlib.contextmanager
def counted():
    """A Counter of the copies to the host in this block."""
    before, found = COPIES.copy(), Counter()
    try:
        yield found
    finally:
        found.update(COPIES - before)


# ---- arguments and results -------------------------------------------------------------------------------------------

# parameters that are read on the host, where CuPy refuses its own arrays
ON_HOST = set(
    "axis axes axis1 axis2 shape newshape dtype n k N M num ddof kth source destination indices_or_sections decimals "
    "offset minlength start stop step order keepdims shift reps norm strides mode kind side".split()
)
# functions that wait for a number of elements, or for a check of the arguments
SYNCHRONIZE = set(
    "argwhere bincount extract flatnonzero nonzero unique unique_all unique_counts unique_inverse".split()
)
AT = {  # ufunc -> the dtypes to which CuPy can add, and so on, at positions
    "add": "int32 uint32 uint64 float16 float32 float64".split(),
    "subtract": "int32 uint32".split(),
    "maximum": (extremes := "int32 uint32 uint64 float32 float64".split()),
    "minimum": extremes,
    "bitwise": "int32 int64 uint32 uint64".split(),
}
IN_PLACE = set("copyto fill_diagonal place put put_along_axis putmask".split())
METHODS_IN_PLACE = set("fill partition put sort".split())
FROM_HOST = {"array", "asarray", "asanyarray"}
FACTS = set(
    "broadcast_shapes can_cast common_type iscomplexobj isfortran isrealobj isscalar issubdtype may_share_memory ndim "
    "promote_types result_type shape shares_memory size".split()
)


def inner(x):
    """An argument as NumPy takes it. Raises TypeError, as CuPy does, for NumPy's arrays."""
    if isinstance(x, StrictArray):
        return x.inner
    if isinstance(x, np.ndarray):
        raise TypeError(f"Unsupported type {type(x)}")
    if x.__class__ in (list, tuple):
        return x.__class__([inner(item) for item in x])
    return x


def wrapped(result, out=None):
    """A result of NumPy as CuPy returns it: scalars become 0-d arrays."""
    if result.__class__ in (tuple, list):
        outs = out if out.__class__ is tuple else [None] * len(result)
        return result.__class__([wrapped(x, y) for x, y in zip(result, outs)])
    if isinstance(out, StrictArray) and result is out.inner:
        return out
    return StrictArray(result) if isinstance(result, np.ndarray | np.generic | bool) else result


def performed(compute, inputs, out=None, in_place=False):
    """The result of NumPy as CuPy returns it, in the order of the current stream."""
    in_place = in_place or out is not None
    result = perform(compute, [x for x in inputs if isinstance(x, np.ndarray)], in_place)
    return out if in_place else wrapped(result, out)


def parameters_of(function) -> list:
    try:
        return list(inspect.signature(function).parameters)
    except ValueError:
        return []


def contains_array(x) -> bool:
    return isinstance(x, StrictArray) or (isinstance(x, list | tuple) and any(map(contains_array, x)))


def bound(name: str, parameters: list, theirs: list, args, options) -> tuple[list, dict]:
    """Arguments as NumPy's function takes them. Raises TypeError for those that CuPy's function does not take."""
    unknown = options.keys() - set(parameters)
    if unknown and "**kwargs" not in parameters:
        raise TypeError(f"{name}() got an unexpected keyword argument {min(unknown)!r}")
    variadic = next((k for k, p in enumerate(parameters) if p.startswith("*")), len(parameters))
    parameters = parameters[:variadic] + [""] * (len(args) - variadic if variadic < len(parameters) else 0)
    if len(args) > len(parameters):
        raise TypeError(f"{name}() takes {len(parameters)} arguments, got {len(args)}")
    given = [*zip(parameters, args), *options.items()]
    if wrong := [p for p, x in given if p in ON_HOST and contains_array(x)]:
        raise TypeError(f"{name}(): {wrong[0]} must be on the host")
    placed, named = [], dict(options)
    for k, x in enumerate(args):
        if (ours := parameters[k]) in theirs and theirs.index(ours) != k:
            named[ours] = x
        else:
            placed.append(x)
    return [inner(x) for x in placed], {key: inner(x) for key, x in named.items()}


class Function:
    """A function of the namespace, or a method of arrays if `method`."""

    def __init__(self, name: str, parameters: list, numpys, method: bool = False):
        self.name, self.parameters, self.numpys = name, parameters, numpys
        self.method, self.theirs = method, [] if method else parameters_of(numpys)
        self.__name__ = name

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args, **options):
        name, own = self.name.rpartition(".")[2], args[: self.method]
        given = args[self.method :]
        first = args[0] if args else None
        if not self.method and self.parameters[:1] in (["a"], ["array"], ["x"]) and name not in FROM_HOST | FACTS:
            if not isinstance(first, StrictArray):
                raise TypeError(f"{name}(): the first argument must be an array of the device, not {type(first)}")
        placed, named = bound(name, self.parameters, self.theirs, given, options)
        if name in SYNCHRONIZE or (name == "where" and len(given) == 1):
            copied(name)
        if named.get("kind") not in (None, "stable"):
            raise ValueError("kind can only be None or 'stable'")
        if name in ("sort", "argsort"):
            named["kind"] = "stable"
        if name == "einsum" and options.keys() - {"dtype", "optimize"}:
            raise TypeError("Did not understand the following kwargs")
        if name == "take":
            named["mode"] = "wrap"
        given = [*map(inner, own), *placed]

        def compute():
            with np.errstate(all="ignore"):
                return self.numpys(*given, **named)

        out = dict(zip(self.parameters, args[self.method :])).get("out", options.get("out"))
        in_place = name in (METHODS_IN_PLACE if self.method else IN_PLACE)
        result = compute() if name in FACTS else performed(compute, given, out, in_place)
        called(self.name, args, options, result)
        return result


class UFunc:
    """A ufunc, with the methods that CuPy has implemented for it."""

    def __init__(self, name: str, methods: list):
        self.__name__, self.numpys, self.methods = name, getattr(np, name), methods
        self.nin = self.numpys.nin

    def __call__(self, *args, **options):
        if options.keys() - {"out", "dtype", "casting"}:
            raise TypeError(f"Wrong arguments {options}")
        if any(isinstance(x, list | tuple) for x in args):
            raise TypeError(f"Unsupported type {list}")
        taken = args
        if self.__name__ == "power" and all(np.result_type(inner(x)).kind in "biu" for x in args):
            taken = args[0], self.computed(np.maximum, (args[1], 0), {})  # NumPy would refuse negative ones
        result = self.computed(self.numpys, taken, options)
        called(self.__name__, args, options, result)
        return result

    def computed(self, function, args, options):
        """The result of a function of NumPy with these arguments, of which the ones after `nin` are outputs."""
        out = args[self.nin :] or options.get("out")
        out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        given, named = [*map(inner, args)], {k: inner(x) for k, x in options.items()}

        def compute():
            with np.errstate(all="ignore"):
                return function(*given, **named)

        return performed(compute, given, out)

    def method(self, name: str, parameters: list, args, options):
        if name not in self.methods:
            raise NotImplementedError(f"`{self.__name__}.{name}` is not supported")
        if unknown := options.keys() - set(parameters):
            raise TypeError(f"{name}() got an unexpected keyword argument {min(unknown)!r}")
        if not isinstance(args[0], StrictArray):
            raise TypeError(f"{name}(): the first argument must be an array of the device, not {type(args[0])}")
        named = options | dict(zip(parameters[1:], args[1:]))
        result = self.computed(getattr(self.numpys, name), args[:1], named)
        called(f"{self.__name__}.{name}", args, options)
        return result

    def reduce(self, *args, **options):
        return self.method("reduce", ["array", "axis", "dtype", "out", "keepdims"], args, options)

    def accumulate(self, *args, **options):
        return self.method("accumulate", ["array", "axis", "dtype", "out"], args, options)

    def at(self, a, indices, *b):
        if "at" not in self.methods:
            raise NotImplementedError(f"`{self.__name__}.at` is not supported")
        if a.dtype.name not in AT.get(self.__name__, AT["bitwise"]):
            raise TypeError(f"cupy.{self.__name__}.at does not support {a.dtype}")
        count_masks(indices)
        given = [*map(inner, b)]
        perform(lambda: self.numpys.at(a.inner, wrapped_index(a.inner, indices), *given), in_place=True)
        called(f"{self.__name__}.at", (a, indices, *b), {})

    def outer(self, a, b, **options):
        return self(a.reshape(a.shape + (1,) * b.ndim), b, **options)


class Grid:
    """ogrid and mgrid."""

    def __init__(self, numpys):
        self.numpys = numpys

    def __getitem__(self, key):
        return wrapped(self.numpys[key])


# ---- arrays ----------------------------------------------------------------------------------------------------------


class StrictDevice:
    id = 0


class Flags:
    """The flags that CuPy has: not `writeable`."""

    def __init__(self, flags):
        self.c_contiguous, self.f_contiguous, self.owndata = flags.c_contiguous, flags.f_contiguous, flags.owndata
        self.forc, self.fnc = flags.forc, flags.fnc


def count_masks(index) -> None:
    """Count the copies of the numbers of True in an index, also to write there."""
    for x in index if isinstance(index, tuple) else (index,):
        if isinstance(x, StrictArray) and x.dtype == bool:
            copied("the number of True")


def wrapped_index(array, index):
    """An index as NumPy takes it, whose integer arrays count elements modulo the size of their axis, as in CuPy."""
    items = index if isinstance(index, tuple) else (index,)
    taken = sum(x.ndim if isinstance(x, StrictArray) and x.dtype == bool else x is not None for x in items)
    taken -= any(x is Ellipsis for x in items)
    result, axis = [], 0
    for x in items:
        if isinstance(x, list):
            x = StrictArray(np.array(x, "int64" if not x else None))
        if isinstance(x, StrictArray) and x.dtype == bool:
            axis += x.ndim
        elif isinstance(x, StrictArray):
            x = StrictArray(x.inner % array.shape[axis] if array.shape[axis] else x.inner)
            axis += 1
        elif x is Ellipsis:
            axis += array.ndim - taken
        else:
            axis += x is not None
        result.append(inner(x))
    return tuple(result)


class StrictArray:
    """An array of the stand-in. `inner` is the array of NumPy that has its elements; only this file may use it."""

    __slots__ = "__weakref__", "inner", "stream_of_dlpack"
    __hash__ = None
    device = StrictDevice()
    shape = property(lambda self: self.inner.shape)
    dtype = property(lambda self: self.inner.dtype)
    strides = property(lambda self: self.inner.strides)
    ndim = property(lambda self: self.inner.ndim)
    size = property(lambda self: self.inner.size)
    itemsize = property(lambda self: self.inner.itemsize)
    nbytes = property(lambda self: self.inner.nbytes)
    flags = property(lambda self: Flags(self.inner.flags))
    base = property(lambda self: None if self.inner.base is None else StrictArray(self.inner.base))
    T = property(lambda self: StrictArray(self.inner.T))
    mT = property(lambda self: StrictArray(self.inner.mT))

    def __init__(self, inner):
        self.inner = np.asarray(inner)
        with contextlib.suppress(ValueError):  # CuPy has no read-only arrays, such as NumPy's diagonals
            self.inner.flags.writeable = True

    @property
    def real(self):
        return StrictArray(self.inner.real)

    @real.setter
    def real(self, value):
        self.real[...] = value

    @property
    def imag(self):
        return StrictArray(self.inner.imag)

    @imag.setter
    def imag(self, value):
        self.imag[...] = value

    # NumPy's protocols

    def __array__(self, *args, **options):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_function__(self, function, types, args, options):
        raise TypeError(f"numpy.{function.__name__} was called with an array of the device")

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        """Compute with a NumPy scalar on the left of an operator; refuse all other calls."""
        if method == "__call__" and not options and isinstance(inputs[0], np.generic):
            return getattr(strict, ufunc.__name__)(*inputs)
        raise TypeError(f"numpy.{ufunc.__name__} was called with an array of the device")

    # other libraries

    @property
    def __cuda_array_interface__(self):
        return self.inner.__array_interface__

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.stream_of_dlpack = stream
        return self.inner.__dlpack__(max_version=max_version)

    def __dlpack_device__(self):
        return 2, 0

    # copies to the host

    def get(self, stream=None, order="C", out=None, blocking=True):
        copied("get")
        return np.array(self.inner, order=order)

    def item(self):
        copied("item")
        return self.inner.item()

    def tolist(self):
        copied("tolist")
        return self.inner.tolist()

    def tobytes(self, order="C"):
        copied("tobytes")
        return self.inner.tobytes(order)

    def __bool__(self):
        copied("bool")
        return bool(self.inner)

    def __int__(self):
        copied("int")
        return int(self.inner)

    def __float__(self):
        copied("float")
        return float(self.inner)

    def __complex__(self):
        copied("complex")
        return complex(self.inner)

    def __repr__(self):
        copied("repr")
        return repr(self.inner)

    def __format__(self, spec):
        copied("format")
        return format(self.inner, spec)

    def __reduce__(self):
        copied("pickle")
        return StrictArray, (self.inner,)

    # elements

    def __len__(self):
        return len(self.inner)

    def __iter__(self):
        """The rows, which stay on the device."""
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, index):
        count_masks(index)

        def compute():
            items = wrapped_index(self.inner, index)
            result = self.inner[items]
            return self.inner[(*items, ...)] if isinstance(result, np.generic) else result

        called("ndarray.__getitem__", (self, index), {})
        return StrictArray(perform(compute, [self.inner]))

    def __setitem__(self, index, value):
        if isinstance(value, list | tuple):
            raise TypeError(f"Unsupported type {type(value)}")
        count_masks(index)
        new = inner(value)
        perform(lambda: self.inner.__setitem__(wrapped_index(self.inner, index), new), in_place=True)
        called("ndarray.__setitem__", (self, index, value), {})

    def __copy__(self):
        return StrictArray(perform(self.inner.copy))

    def __deepcopy__(self, memo):
        return StrictArray(perform(self.inner.copy))


def operator(name: str, reflected: bool = False, in_place: bool = False):
    def run(self, *others):
        if any(not isinstance(x, StrictArray | np.generic | int | float | complex | np.ndarray) for x in others):
            return NotImplemented
        operands = (*others, self) if reflected else (self, *others)
        return getattr(strict, name)(*operands, out=self) if in_place else getattr(strict, name)(*operands)

    return run


BINARY = {
    **dict(add="add", sub="subtract", mul="multiply", truediv="true_divide", floordiv="floor_divide"),
    **dict(mod="remainder", pow="power", matmul="matmul", lshift="left_shift", rshift="right_shift"),
    **{"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "divmod": "divmod"},
}
for short, long in BINARY.items():
    setattr(StrictArray, f"__{short}__", operator(long))
    setattr(StrictArray, f"__r{short}__", operator(long, reflected=True))
    if short not in ("divmod", "matmul"):
        setattr(StrictArray, f"__i{short}__", operator(long, in_place=True))
COMPARISONS = dict(eq="equal", ne="not_equal", lt="less", le="less_equal", gt="greater", ge="greater_equal")
for short, long in {**COMPARISONS, "neg": "negative", "abs": "absolute", "invert": "invert", "pos": "positive"}.items():
    setattr(StrictArray, f"__{short}__", operator(long))


# ---- the namespace ---------------------------------------------------------------------------------------------------


def uploaded(array):
    """An array of the device with the elements that an array of the host has now."""
    strict_streams.refuse_capture()
    return StrictArray(perform(array.copy))


def converted(obj, dtype=None, copy=None, order="K", subok=False, ndmin=0, blocking=False):
    """`array` and `asarray`, which also take data of the host."""
    called("array", (obj,), {"dtype": dtype, "order": order, "ndmin": ndmin})
    if not isinstance(obj, StrictArray) and hasattr(obj, "__cuda_array_interface__"):
        obj = StrictArray(np.asarray(Foreign(obj)))
    if isinstance(obj, StrictArray):
        convert = functools.partial(np.array, obj.inner, dtype, copy=copy, order=order, ndmin=ndmin)
        return StrictArray(perform(convert, [obj.inner]))
    UPLOADS[f"asarray at {place()}"] += 1
    return uploaded(np.array(obj if isinstance(obj, np.ndarray) else inner(obj), dtype, ndmin=ndmin, order="C"))


class Foreign:
    """An array of another library on the device, whose memory is that of the host."""

    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__cuda_array_interface__


def array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, blocking=False):
    return converted(obj, dtype, copy, order, subok, ndmin)


def asarray(a, dtype=None, order="K", copy=None, blocking=False):
    return converted(a, dtype, copy, order)


def ascontiguousarray(a, dtype=None):
    """Unlike NumPy's, a 0-d array stays 0-d."""
    return np.ascontiguousarray(a, dtype).reshape(a.shape)


def take_along_axis(a, indices, axis):
    size = a.shape[axis] if axis is not None else a.size
    return np.take_along_axis(a, indices % size if size else indices, axis)


def as_strided(x, shape=None, strides=None):
    return np.lib.stride_tricks.as_strided(x, shape, strides)


OWN = {"ascontiguousarray": ascontiguousarray, "take_along_axis": take_along_axis, "as_strided": as_strided}
CONVERSIONS = {"array": array, "asarray": asarray, "asanyarray": asarray}


def member(name: str, kind: str, parameters: list):
    """The member of the namespace with this name; None if NumPy cannot compute it."""
    numpys = np
    for part in name.split("."):
        numpys = getattr(numpys, part, None)
    short = name.rpartition(".")[2]
    if name == "ndarray":
        return StrictArray
    if short in ("ogrid", "mgrid"):
        return Grid(numpys)
    if short in CONVERSIONS:
        return CONVERSIONS[short]
    if kind == "ufunc":
        return UFunc(short, parameters) if isinstance(numpys, np.ufunc) else numpys and Function(name, ["x"], numpys)
    return Function(name, parameters, OWN.get(short, numpys)) if kind == "function" and numpys else numpys


class Namespace(types.SimpleNamespace):
    """A namespace that is hashable, as modules are."""

    __hash__ = object.__hash__


def namespace() -> Namespace:
    """The namespace with the names of `cupy_names.txt`, whose methods become those of StrictArray."""
    spaces = {"": Namespace()}
    for line in NAMES.read_text().splitlines():
        name, kind, *parameters = line.split()
        folder, _, short = name.rpartition(".")
        if folder == "ndarray":
            if kind == "method" and not hasattr(StrictArray, short) and hasattr(np.ndarray, short):
                setattr(StrictArray, short, Function(name, parameters, getattr(np.ndarray, short), method=True))
            continue
        found = member(name, kind, parameters)
        if found is not None or short == "newaxis":
            setattr(spaces.setdefault(folder, Namespace()), short, found)
    root = spaces[""]
    root.linalg, root.fft = spaces["linalg"], spaces["fft"]
    root.lib = Namespace(stride_tricks=spaces["lib.stride_tricks"])
    return root


strict = namespace()


def stored_matrices(x, side, shape, count):
    """The matrices (count, *shape) of one side of a product as cuBLAS finds them in memory, column by column."""
    rows, columns = shape[::-1] if side.transposed else shape
    assert side.leading >= max(1, rows) and side.step >= 0, f"cuBLAS refuses {side}"
    size = side.step * (count - 1) + side.leading * (columns - 1) + rows
    low, high = np.lib.array_utils.byte_bounds(x.inner)
    start = x.inner.ctypes.data + side.offset
    assert low <= start and start + size * x.itemsize <= high, f"{side} is outside of the array"
    memory = np.frombuffer((ctypes.c_char * (size * x.itemsize)).from_address(start), x.dtype)
    strides = [x.itemsize * step for step in (side.step, 1, side.leading)]
    stored = np.lib.stride_tricks.as_strided(memory, (count, rows, columns), strides)
    return stored.swapaxes(1, 2) if side.transposed else stored


# ---- the backend -----------------------------------------------------------------------------------------------------


class StrictBackend(CudaBackend):
    """Arrays of the stand-in, as device type "cuda" has them in tests. CUDA C runs on the CPU."""

    namespace = strict
    array_type = StrictArray
    capability = 80

    def __init__(self, device):
        super().__init__(device)
        self.state = Memory(free=3 << 30, total=4 << 30, allocated=1 << 20, peak=2 << 20, reserved=3 << 20)

    @classmethod
    def count(cls):
        return 1

    def empty(self, shape, dtype):
        return StrictArray(np.empty(shape, dtype))

    def copy(self, array):
        return StrictArray(perform(functools.partial(np.array, array.inner, order="C")))

    def from_host(self, array):
        UPLOADS[f"from_host at {place()}"] += 1
        return uploaded(np.array(array, order="C"))

    def to_host(self, array):
        copied("to_host")
        return np.array(array.inner, order="C")

    def begin_copy(self, array):
        held = np.array(array.inner)
        return lambda: held

    def pinned(self, array):
        result = array.copy()
        PINNED[result.ctypes.data] = weakref.ref(result)
        return result

    def is_pinned(self, array):
        known = PINNED.get(array.ctypes.data)
        return known is not None and known() is not None

    def from_pinned(self, array):
        strict_streams.refuse_capture()
        UPLOADS[f"from_pinned at {place()}"] += 1
        return StrictArray(perform(array.copy))

    def owner(self, array):
        return backend_of(cpu).owner(array.inner)

    def storage_key(self, array):
        return array.inner.__array_interface__["data"][0]

    def address(self, array):
        return array.inner.ctypes.data

    def byte_bounds(self, array):
        return np.lib.array_utils.byte_bounds(array.inner)

    def special(self, by):
        import scipy.special

        return types.SimpleNamespace(erf=Function("erf", ["x", "out", "casting"], scipy.special.erf))

    def memory(self):
        return self.state

    def reset_peak(self):
        self.state = self.state._replace(peak=self.state.allocated)

    def empty_cache(self):
        self.state = self.state._replace(reserved=self.state.allocated)

    def limit_memory(self, fraction):
        self.state = self.state._replace(free=int(fraction * self.state.total))

    def properties(self):
        sizes = {"totalGlobalMem": self.state.total, "multiProcessorCount": 4, "warpSize": 32}
        return {"name": "Stand-in", "major": 8, "minor": 0, **sizes}

    def compile(self, source):
        function = compile_for_host(source)

        def found(name):
            call = function(name)

            def launch(grid, block, args, shared=0):
                now = [x.copy() if isinstance(x, np.ndarray) else x for x in args]  # a struct, passed by value
                strict_streams.current().submit(functools.partial(call, grid, block, now, shared))

            return launch

        return found

    def gemm(self, call, left, right, out):
        m, n, k, count, *sides = call

        def compute():
            stored = [stored_matrices(*x, count) for x in zip((left, right, out), sides, ((m, k), (k, n), (m, n)))]
            wide = [x.astype("float32") if x.dtype.itemsize == 2 else x for x in stored]
            with np.errstate(all="ignore"):
                stored[2][...] = wide[0] @ wide[1]

        perform(compute, in_place=True)

    def synchronize(self):
        strict_streams.synchronize()

    def event(self, stream=None):
        event = strict_streams.StrictEvent()
        event.record(stream or strict_streams.current())
        return event

    def seconds_between(self, before, after):
        after.wait()
        return after.time - before.time

    def has_ended(self, work):
        return work.done

    def wait_on_host(self, work):
        work.wait()

    def wait(self, event):
        strict_streams.current().submit(event.wait)

    def stream(self):
        return strict_streams.current()

    def default_stream(self):
        return strict_streams.DEFAULT

    def new_stream(self, priority=0):
        return strict_streams.StrictStream()

    def use_stream(self, stream):
        strict_streams.LOCAL.stream = stream

    def capture(self, calls, memory):
        return strict_streams.capture(calls)


@contextlib.contextmanager
def strict_cuda(kernels: bool = False):
    """Let the stand-in be the device "cuda" in this block.

    kernels: True to run the kernels of the platform "cupy"; False to run the reference kernels, with NumPy's bits.
    """
    register_backend("cuda", StrictBackend)
    use_kernels()
    if not kernels:
        EAGER_PLATFORMS["cuda"] = ("reference",)
    clear_caches()
    try:
        yield backend_of(Device("cuda")).device
    finally:
        del BACKENDS["cuda"], EAGER_PLATFORMS["cuda"], DEVICE_OF_ARRAY[StrictArray]
        for device in [device for device in OPEN if device.type == "cuda"]:  # a test may open a second one
            del OPEN[device]
        clear_caches()
