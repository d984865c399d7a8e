"""The signature of a job function, read when it is defined: placeholders of its arguments, the kind of its result.

Also checks and copies the arguments of each call, and arranges its results. Read next: `build.py`.
"""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..core.backend import namespace
from ..core.base.errors import JobError, with_article
from ..core.host import HostArray, host_array
from ..core.spec import DType
from ..core.tensor import Tensor
from .queue.handle import Handle
from .typing import KINDS, ArrayType, Bundle, Callback, ListListNumpy, ListNumpy, Numpy, text

ALLOWED = (
    "tp.Numpy, tp.ListNumpy, tp.ListListNumpy, or Tuple, List and Dict of them, or tp.Callback[...] or tp.Bundle[...] "
    "around that"
)


class NoAnnotation:
    """Marks a missing return annotation: a call returns a handle."""


class ArrayArgument(NamedTuple):
    """An array argument. path: "images", or "pair[1]" inside a tuple.  kind: its placeholder."""

    path: str
    kind: type[ArrayType]


class LocalTensor(HostArray):
    """Result of a job without annotation: an array that also has the methods of a result on several devices.

    parts: one array per device; empty for arrays computed from such a result.
    """

    parts: list[HostArray]

    @classmethod
    def from_parts(cls, parts: list[HostArray]) -> LocalTensor:
        whole = parts[0] if len(parts) == 1 else concatenate_parts(parts)
        result = whole.view(cls)
        result.parts = parts
        return result

    def __array_finalize__(self, other: Any) -> None:
        self.parts = []

    def numpy(self, parallel_id: int | None = None) -> HostArray:
        """The whole array, or the part of one device."""
        if parallel_id is None:
            return self.view(HostArray)
        parts = self.numpy_list()
        if parallel_id not in range(len(parts)):
            from ..core.source_location import here

            what = "numpy(parallel_id) of a device that is not there"
            hint = "numpy_list() gives all parts"
            values = {"parallel_id": repr(parallel_id), "devices": len(parts)}
            raise JobError(what, where=here(), values=values, hint=hint)
        return parts[parallel_id]

    def numpy_list(self, parallel_id: int | None = None) -> list[HostArray]:
        """The parts of all devices, or of one; with one device, the whole array."""
        return [self.numpy(parallel_id)] if parallel_id is not None else list(self.parts) or [self.view(HostArray)]

    ndarray, ndarray_list = numpy, numpy_list  # names before OneFlow 0.3

    def parallel_num(self) -> int:
        return max(len(self.parts), 1)


def concatenate_parts(parts: list[HostArray]) -> HostArray:
    """Concatenate the parts of a batch; 0-d parts are stacked into one axis."""
    xp = namespace()
    return xp.concatenate(parts) if parts[0].ndim else xp.stack(parts)


class Signature:
    """arguments: name -> a placeholder, or a tuple of them (nested).  result: the annotation after `->`, without
    Callback.

    style: "sync", "callback", "handle" (no annotation) or "none" (`-> None`).
    """

    def __init__(self, function: Callable, name: str):
        self.name, self.function = name, function
        self.where = def_line(function)
        self.python = inspect.signature(function)
        self.parameters = self.python.parameters
        hints = resolved_annotations(function)
        self.arguments: dict[str, Any] = {}
        for key, parameter in self.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                stars = "**" if parameter.kind is parameter.VAR_KEYWORD else "*"
                what = f"the argument {stars}{key} of job {name} takes any number of values"
                self.fail(what, {}, "one placeholder for each argument")
            if key not in hints:
                others = [k for k in self.parameters if k in hints]
                hint = f"{key}: tp.Numpy.Placeholder((100, 28, 28)), with the shape of one batch"
                if key == "self":
                    hint = "a job takes no self: define it inside a method, where self is seen"
                what = f"the argument {key} of job {name} has no annotation"
                self.fail(what, {"annotated": ", ".join(others) or "none"}, hint)
            self.arguments[key] = self.argument(key, hints[key])
        annotation = hints.get("return", NoAnnotation)
        self.style = "sync"
        if annotation is NoAnnotation:
            self.style, annotation = "handle", NoAnnotation
        elif annotation is None or annotation is type(None):
            self.style, annotation = "none", NoAnnotation
        elif typing.get_origin(annotation) is Callback or annotation is Callback:
            arguments = typing.get_args(annotation)
            if not arguments:
                what = f"job {name} returns a Callback of nothing"
                self.fail(what, {"annotation": "tp.Callback"}, "-> tp.Callback[tp.Numpy]")
            self.style, annotation = "callback", arguments[0]
        self.result = annotation if annotation is NoAnnotation else self.check_annotation(annotation)

    def fail(self, what: str, values: dict, hint: str) -> typing.NoReturn:
        raise JobError(what, values=values, where=self.where, hint=hint)

    def argument(self, path: str, annotation: Any) -> Any:
        if isinstance(annotation, type) and issubclass(annotation, ArrayType):
            if annotation.shape is None:
                hint = f"{path}: tp.{annotation.__name__}.Placeholder((100, 28, 28), dtype=flow.float)"
                self.fail(
                    f"the argument {path} of job {self.name} has no shape", {"annotation": text(annotation)}, hint
                )
            return annotation
        if typing.get_origin(annotation) is tuple and Ellipsis not in typing.get_args(annotation):
            return tuple(self.argument(f"{path}[{i}]", inner) for i, inner in enumerate(typing.get_args(annotation)))
        what = f"the annotation of argument {path} of job {self.name} is not a placeholder"
        hint = f"{path}: tp.Numpy.Placeholder((100, 28, 28), dtype=flow.float), or a Tuple of placeholders"
        self.fail(what, {"annotation": text(annotation)}, hint)

    def check_annotation(self, annotation: Any, inside: bool = False) -> Any:
        """Check an annotation of a result."""
        if annotation in KINDS:
            return annotation
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Bundle and not inside and len(arguments) == 1 and arguments[0] in KINDS:
            return annotation
        if origin in (tuple, list, dict) and arguments and Ellipsis not in arguments:
            for inner in arguments[origin is dict :]:
                self.check_annotation(inner, True)
            return annotation
        what = f"the return annotation of job {self.name} is not supported"
        self.fail(what, {"annotation": text(annotation)}, f"-> {ALLOWED}")

    # ---- a call ------------------------------------------------------------------------------------------------------

    def leaves(self) -> Iterator[ArrayArgument]:
        def inside(path: str, tree: Any) -> Iterator[ArrayArgument]:
            if isinstance(tree, tuple):
                for i, inner in enumerate(tree):
                    yield from inside(f"{path}[{i}]", inner)
            else:
                yield ArrayArgument(path, tree)

        for key, tree in self.arguments.items():
            yield from inside(key, tree)

    def pair_arguments(self, args: tuple, kwargs: dict) -> list[tuple[ArrayArgument, Any]]:
        """Pair each placeholder with its argument. Raises JobError for a wrong count or name."""
        from ..core.source_location import here

        try:
            bound = self.python.bind(*args, **kwargs)
        except TypeError as error:
            expected = ", ".join(
                f"{key}: {text(tree) if not isinstance(tree, tuple) else 'a tuple'}"
                for key, tree in self.arguments.items()
            )
            what = f"job {self.name} was called with the wrong arguments: {error}"
            hint = f"{self.name}({', '.join(self.arguments)})"
            values = {
                "it takes": expected or "nothing",
                "given": f"{len(args)} by position" + (f", {', '.join(kwargs)} by name" if kwargs else ""),
            }
            raise JobError(what, values=values, where=here(), hint=hint) from None
        bound.apply_defaults()
        pairs: list[tuple[ArrayArgument, Any]] = []

        def inside(path: str, tree: Any, value: Any) -> None:
            if not isinstance(tree, tuple):
                pairs.append((ArrayArgument(path, tree), value))
                return
            if not isinstance(value, tuple | list) or len(value) != len(tree):
                got = (
                    f"{type(value).__name__} of {len(value)}"
                    if isinstance(value, tuple | list)
                    else type(value).__name__
                )
                what = (
                    f"the argument {path} of job {self.name} must be a tuple of {len(tree)} arrays, "
                    f"got {kind_of(value)}"
                )
                hint = f"{self.name}(..., ({', '.join(['array'] * len(tree))}))"
                raise JobError(what, values={"got": got}, where=here(), hint=hint)
            for i, (inner, part) in enumerate(zip(tree, value)):
                inside(f"{path}[{i}]", inner, part)

        for key, tree in self.arguments.items():
            inside(key, tree, bound.arguments[key])
        return pairs

    def copy_argument(self, argument: ArrayArgument, value: Any, devices: int) -> list[Any]:
        """Check and copy an argument: one array per device. The caller may reuse its own array at once."""
        kind = argument.kind
        if issubclass(kind, Numpy):
            array = self.checked(argument, value, kind.shape)
            if devices == 1:
                return [host_array(array)]
            axis = kind.batch_axis
            if axis is None or array.shape[axis] % devices:
                what = "does not split into one part for each device"
                hint = "a batch that the number of devices divides, or tp.ListNumpy with a list"
                self.refuse(argument, what, {"shape": array.shape, "devices": devices}, hint)
            return [host_array(part) for part in namespace().split(array, devices, axis)]
        if not isinstance(value, list | tuple) or len(value) != devices:
            got = f"{type(value).__name__} of {len(value)}" if isinstance(value, list | tuple) else describe(value)
            one = "array" if issubclass(kind, ListNumpy) else "list of arrays"
            what = f"must be a list with one {one} for each device, got {kind_of(value)}"
            hint = f"[{', '.join(['array'] * min(devices, 4))}]; flow.config.cpu_device_num(n)"
            self.refuse(argument, what, {"devices": devices, "got": got}, hint)
        if issubclass(kind, ListNumpy):
            return [host_array(self.checked(argument, part, None, f"[{i}]")) for i, part in enumerate(value)]
        result = []
        for i, inner in enumerate(value):
            if not isinstance(inner, list | tuple) or not inner:
                what = f"must have a list of arrays for device {i}"
                self.refuse(argument, what, {"got": describe(inner)}, "[[array, array], ...]")
            result.append(
                [host_array(self.checked(argument, part, None, f"[{i}][{j}]")) for j, part in enumerate(inner)]
            )
        return result

    def checked(self, argument: ArrayArgument, array: Any, shape: tuple | None, at: str = "") -> HostArray:
        """Check an array. shape: the exact shape; None: the placeholder's rank and at most its number of elements."""
        kind = argument.kind
        sizes = kind.shape or ()
        if not isinstance(array, HostArray):
            hint = "np.asarray(..., dtype=...) makes an array of numbers"
            if isinstance(array, Handle):
                hint = f"{array.name}(...).get() waits for the array"
            elif isinstance(array, Tensor):
                symbolic = array.array is None
                hint = (
                    "return the Blob from its job: a call gives the array"
                    if symbolic
                    else ".numpy() gives the array of a tensor"
                )
            what = f"must be a NumPy array, got {kind_of(array)}"
            self.refuse(argument, what, {"expected": text(kind), f"got {argument.path}{at}": describe(array)}, hint)
        if hasattr(array, "mask"):
            what = "must not be a masked array: jobs do not support masks"
            hint = f"{argument.path.partition('[')[0]}.filled(0) gives an array of numbers"
            self.refuse(argument, what, {"masked": f"{array.mask.sum()} of {array.size}"}, hint)
        if shape is not None and array.shape != shape:
            remedy = "reshape it to" if array.size == math.prod(shape) else "give an array of shape"
            hint = f"{remedy} {list(shape)}, or change the placeholder"
            if array.ndim and array.shape < shape and array.shape[1:] == shape[1:]:
                hint = "the batch size is fixed by the placeholder: drop the last, smaller batch, or pad it"
            what = "does not have the shape of its placeholder"
            values = {"expected": f"{kind.dtype.name}{list(shape)}", f"got {argument.path}{at}": describe(array)}
            self.refuse(argument, what, values, hint)
        if shape is None and (array.ndim != len(sizes) or array.size > math.prod(sizes) or not array.size):
            what = "does not fit into its placeholder"
            hint = "as many axes as the placeholder, and at most as many elements"
            values = {"at most": f"{kind.dtype.name}{list(sizes)}", f"got {argument.path}{at}": describe(array)}
            self.refuse(argument, what, values, hint)
        if array.dtype != kind.dtype.np:
            dtype = array.dtype.name
            there = array.dtype.isnative and dtype in DType.table
            what = "does not have the dtype of its placeholder"
            hint = (
                f'{argument.path.partition("[")[0]}.astype("{kind.dtype.name}")'
                + f", or dtype=flow.{dtype} in the placeholder" * there
            )
            values = {"expected": f"{kind.dtype.name}{list(sizes)}", f"got {argument.path}{at}": describe(array)}
            self.refuse(argument, what, values, hint)
        return array

    def refuse(self, argument: ArrayArgument, what: str, values: dict, hint: str) -> typing.NoReturn:
        from ..core.source_location import here

        what = f"the argument {argument.path} of job {self.name} {what}"
        raise JobError(what, values=values, where=here(), hint=hint)

    # ---- results -----------------------------------------------------------------------------------------------------

    def check_result(self, value: Any) -> None:
        """Raise JobError if the function's result does not match its annotation."""
        if self.style == "none":
            if value is not None:
                what = f"job {self.name} is annotated `-> None` and returns something"
                self.fail(what, {"returned": describe(value)}, "-> tp.Numpy")
            return
        if self.result is NoAnnotation:
            if value is not None:
                self.check_bundle(value, "what it returns")
            return
        self.check(self.result, value, "what it returns")

    def check(self, wanted: Any, value: Any, path: str) -> None:
        origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
        if origin is Bundle:
            self.check_bundle(value, path)
        elif origin is tuple:
            if not isinstance(value, tuple) or len(value) != len(arguments):
                self.refuse_result(path, wanted, value)
            for i, (inner, part) in enumerate(zip(arguments, value)):
                self.check(inner, part, f"{path}[{i}]")
        elif origin is list:
            if not isinstance(value, list):
                self.refuse_result(path, wanted, value)
            for i, part in enumerate(value):
                self.check(arguments[0], part, f"{path}[{i}]")
        elif origin is dict:
            if not isinstance(value, dict) or any(type(key) is not arguments[0] for key in value):
                self.refuse_result(path, wanted, value)
            for key, part in value.items():
                self.check(arguments[1], part, f"{path}[{key!r}]")
        elif not isinstance(value, Tensor) and not (wanted is ListListNumpy and is_tensor_list(value)):
            self.refuse_result(path, wanted, value)
        elif wanted is Numpy and getattr(value, "is_dynamic", False):
            what = f"job {self.name}: the length of {path} depends on elements, tp.Numpy has a fixed shape"
            self.fail(what, {"returned": describe(value)}, "-> tp.ListNumpy, one array for each device")

    def check_bundle(self, value: Any, path: str) -> None:
        if isinstance(value, tuple | list):
            for i, part in enumerate(value):
                self.check_bundle(part, f"{path}[{i}]")
        elif isinstance(value, dict):
            for key, part in value.items():
                self.check_bundle(part, f"{path}[{key!r}]")
        elif not isinstance(value, Tensor):
            self.refuse_result(path, Numpy, value)

    def refuse_result(self, path: str, wanted: Any, value: Any) -> typing.NoReturn:
        hint = "return Blobs only: values that are known without running the job need not be returned"
        if value is None:
            hint = "end the function with `return loss`; or annotate it `-> None`"
        elif isinstance(value, Tensor | tuple | list | dict):
            hint = f"-> {annotation_of(value)}"
        what = f"job {self.name}: {path} does not match its annotation"
        self.fail(what, {"annotation": text(wanted), "returned": describe(value)}, hint)

    def result_of(self, value: Any, arrays: Iterator[list[HostArray]], wanted: Any = None) -> Any:
        """Arrange the results of a step in the structure that the function returned. arrays: for each Blob, one array
        per device.
        """
        wanted = self.result if wanted is None else wanted
        origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
        if origin is Bundle:
            wanted, origin, inner = inner[0], None, ()
        if wanted is ListListNumpy and is_tensor_list(value):
            return [list(column) for column in zip(*[next(arrays) for _ in value])]
        if isinstance(value, tuple):
            parts = [
                self.result_of(part, arrays, inner[i] if origin is tuple else wanted) for i, part in enumerate(value)
            ]
            return type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)  # a namedtuple keeps its names
        if isinstance(value, list):
            return [self.result_of(part, arrays, inner[0] if origin is list else wanted) for part in value]
        if isinstance(value, dict):
            return {
                key: self.result_of(part, arrays, inner[1] if origin is dict else wanted) for key, part in value.items()
            }
        if value is None:
            return None
        parts = next(arrays)
        if wanted is ListNumpy:
            return parts
        if wanted is ListListNumpy:
            return [[part] for part in parts]
        if wanted is NoAnnotation:
            return LocalTensor.from_parts(parts)
        return parts[0] if len(parts) == 1 else concatenate_parts(parts)


def blobs_of(value: Any) -> list[Tensor]:
    """The Blobs of a result, in the order in which `result_of` consumes them."""
    if isinstance(value, tuple | list):
        return [blob for part in value for blob in blobs_of(part)]
    if isinstance(value, dict):
        return [blob for part in value.values() for blob in blobs_of(part)]
    return [] if value is None else [value]


def is_tensor_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, Tensor) for part in value)


def annotation_of(value: Any) -> str:
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(annotation_of(part) for part in value)}]"
    if isinstance(value, list):
        return f"List[{annotation_of(value[0]) if value else 'tp.Numpy'}]"
    if isinstance(value, dict):
        key, part = next(iter(value.items()), ("", None))
        return f"Dict[{type(key).__name__}, {annotation_of(part)}]"
    return "tp.Numpy"


def kind_of(value: Any) -> str:
    """Describe the kind of a value: "a list of 2", "an int", "a Tensor"."""
    kind = with_article(value)
    return f"{kind} of {len(value)}" if isinstance(value, tuple | list) else kind


def describe(value: Any) -> str:
    if isinstance(value, HostArray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, Tensor):
        return f"{type(value).__name__} {value.spec.dtype.name}{list(value.spec.shape)}"
    if isinstance(value, tuple | list | dict):
        return f"{type(value).__name__} of {len(value)}"
    try:
        return " ".join(f"{type(value).__name__} {value!r:.60}".split())[:60]
    except Exception:  # a user's __repr__ may raise
        return type(value).__name__


def def_line(function: Callable) -> str:
    """The location of a function's definition: "at In[3]:1"."""
    from ..core.ir import where_text

    code = getattr(function, "__code__", None)
    return f"at {where_text((code, 0))}" if code is not None else ""


def resolved_annotations(function: Callable) -> dict[str, Any]:
    """Annotations of a function. Strings, as left by `from __future__ import annotations`, are evaluated in the
    function's namespace.
    """
    annotations = dict(getattr(function, "__annotations__", {}))
    if any(isinstance(value, str) for value in annotations.values()):
        names = inspect.getclosurevars(function).nonlocals if hasattr(function, "__closure__") else {}
        for key, value in annotations.items():
            if isinstance(value, str):
                try:
                    annotations[key] = eval(value, function.__globals__, dict(names))
                except (NameError, SyntaxError, AttributeError, TypeError) as error:
                    what = f"the annotation of {key} in job {function.__name__} cannot be read: {error}"
                    hint = "define its names at the top of the file, or leave out `from __future__ import annotations`"
                    raise JobError(what, values={"annotation": value}, where=def_line(function), hint=hint) from None
    return annotations
