"""Four-part errors for wrong arguments, in place of raw errors of Python and numpy.

Public functions do not check the type of each argument, since every correct call would pay for it. If a call raises a
raw error, `suggestions.with_hints` catches it, and only then are the arguments compared with the annotations of the
signature, or with DEFAULT_ANNOTATIONS for parameters without one. If no argument is wrong by itself, the error contains
the raw text and all values. Read next: `suggestions.py`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType
from typing import Any

from ..base.dtypes import is_dtype
from ..base.errors import DTypeError, MinflowError, ModuleError, shown
from ..dispatch import INSPECTION_METHODS, raised_by_user, raw_error, special_method
from ..host import HostArray, python_number
from ..source_location import describe, here

DEFAULT_ANNOTATIONS = {  # types of parameters without annotations; others take a tensor if they have no default
    **dict.fromkeys(("dim", "dims", "axis", "source", "destination", "shifts"), "int | Sequence[int] | None"),
    **dict.fromkeys(("shape", "size", "sizes", "times"), "int | Sequence[int]"),
    **dict.fromkeys(("alpha", "beta", "min_value", "max_value"), "float"),
    **dict.fromkeys(
        ("other", "value", "weight", "fill_value", "exponent", "min", "max", "mean", "std", "a", "b", "end"),
        "Tensor | float"
    ),
    **dict.fromkeys(("start", "step", "low", "high"), "float"),
    **dict.fromkeys(("keepdim", "keepdims", "largest", "sorted", "descending", "stable", "unbiased", "requires_grad"),
                    "bool"),
    "dtype": "DType | None",
    "p": "float | str | None",
    "split_size_or_sections": "int | Sequence[int]",
    "generator": "Generator | None",
    "data": "Any",
    "device": "Any",
}  # fmt: skip


ROUTINES = FunctionType, BuiltinFunctionType, MethodType, MethodDescriptorType
OF_TENSORS = {"spec", "array", "shape", "dtype", "ndim", "numel"}  # attributes that numbers and lists lack


def is_whole(x: Any) -> bool:
    number = python_number(x)
    return (isinstance(number, int) and not isinstance(number, bool)) or whole_tensor(x)


def whole_tensor(x: Any) -> bool:
    return hasattr(x, "spec") and x.spec.shape == () and x.spec.dtype.rank == 1


# part of an annotation -> (check of a value, description)
TYPE_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "Tensor": (lambda x: hasattr(x, "spec") and hasattr(x, "array"), "a tensor"),
    "int": (is_whole, "a whole number"),
    "float": (
        lambda x: isinstance(python_number(x), int | float) or (hasattr(x, "spec") and x.spec.shape == ()),
        "a number",
    ),
    "bool": (lambda x: isinstance(python_number(x), int), "True or False"),
    "str": (lambda x: isinstance(x, str), "a text"),
    "None": (lambda x: x is None, "None"),
    "DType": (lambda x: isinstance(x, str) or is_dtype(x), "a dtype such as flow.float32"),
    "Generator": (lambda x: type(x).__name__ == "Generator", "a flow.Generator"),
    "Sequence[int]": (lambda x: all_of(x, is_whole), "several whole numbers"),
    "Sequence": (lambda x: isinstance(x, Sequence) and not isinstance(x, str), "a list or tuple"),
}
ALIASES = {
    "DTypeLike": "DType",
    "Size2": "int | Sequence[int]",
    "tuple[int, ...]": "Sequence[int]",
    "list[int]": "Sequence[int]",
}


def all_of(x: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str) and all(map(fits, x))


def explain_error(
    error: BaseException, function: Callable, args: Sequence, options: Mapping[str, Any], name: str = ""
) -> BaseException:
    """The error to raise in place of a raw one. Returns an error that has four parts or is the user's own unchanged.

    name: the function as users write it.
    """
    raw = error.raw if isinstance(error, MinflowError) else error
    if raw is None:
        return error
    if isinstance(raw, RecursionError):
        return self_containing(name or function.__name__, function, args, options) or error
    if (method := special_method(raw)) is not None:
        result = unreadable(name or function.__name__, function, args, options, raw, method)
        if result is None:
            return error
        result.__cause__ = raw
        return result
    routines = [x for x in (*args, *options.values()) if issubclass(type(x), ROUTINES)]
    if raised_by_user(raw) or (routines and not any(is_about(raw, x) for x in routines)):
        return error  # the user passed a function, which may itself have been called wrongly
    result = four_part_error(name or function.__name__, function, args, options, raw)
    result.__cause__ = raw
    return result


def is_about(error: BaseException, routine: Any) -> bool:
    """True if an error says that a function was used as data, such as `model.parameters` without parentheses."""
    if isinstance(error, AttributeError):
        return error.obj is routine
    return isinstance(error, TypeError) and str(error).startswith(f"'{type(routine).__name__}' object is not ")


def four_part_error(
    name: str, function: Callable, args: Sequence, options: Mapping[str, Any], error: BaseException
) -> MinflowError:
    """The four-part error in place of the raw error of this call."""
    signature, call = call_of(name, function)
    try:
        bound = signature.bind(*args, **options)
    except TypeError as wrong:
        return DTypeError(f"{name}: {wrong}", where=here(), hint=call)
    return (
        wrong_argument(name, signature, bound.arguments, call)
        or no_attribute(name, bound.arguments, error)
        or raw_error(name, error, bound.arguments, call)
    )


def no_attribute(name: str, arguments: Mapping[str, Any], error: BaseException) -> MinflowError | None:
    """The error for an argument, or an entry of one, that lacks an attribute of tensors."""
    if not isinstance(error, AttributeError) or error.name not in OF_TENSORS:
        return None
    for key, value in arguments.items():
        for i, x in enumerate(value if isinstance(value, list | tuple) else [value]):
            if x is error.obj:
                return not_a_tensor(name, key if x is value else f"{key}[{i}]", x)
    return None


def call_of(name: str, function: Callable) -> tuple[inspect.Signature, str]:
    """The signature, and the text of a call: "add(input, other, *, alpha=1)"."""
    signature = inspect.signature(function)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    return signature, name + str(signature.replace(parameters=plain, return_annotation=signature.empty))


def wrong_argument(
    name: str, signature: inspect.Signature, arguments: Mapping[str, Any], call: str
) -> MinflowError | None:
    """The error for the first argument whose type does not fit its parameter, or None."""
    for key, value in arguments.items():
        wanted = types_of(signature.parameters[key])
        if key != "self" and wanted and not any(matches_annotation(value, part) for part in wanted):
            return wrong_kind(name, key, value, " or ".join(TYPE_CHECKS[part][1] for part in wanted), call)
    return None


def matches_annotation(value: Any, part: str) -> bool:
    """True if the value fits this part of an annotation; False also if a method of the value raises."""
    try:
        return TYPE_CHECKS[part][0](value)
    except Exception:
        return False


def safe_hasattr(x: Any, name: str) -> bool:
    """`hasattr` for an object whose methods may raise any error."""
    try:
        return hasattr(x, name)
    except Exception:
        return False


def unreadable(
    name: str, function: Callable, args: Sequence, options: Mapping[str, Any], error: BaseException, method: str
) -> MinflowError | None:
    """The four-part error for an object whose special method raised while this call inspected it; None if the call
    accepts such objects, so that the error is the user's own.
    """
    signature, call = call_of(name, function)
    try:
        arguments = signature.bind(*args, **options).arguments
    except TypeError:
        arguments = {}
    if (wrong := wrong_argument(name, signature, arguments, call)) is not None:
        return wrong
    if method not in INSPECTION_METHODS:
        return None
    values = {key: describe(value) for key, value in arguments.items() if key != "self"}
    what = f"{name}: an argument cannot be read, its {method} raised {type(error).__name__}: {shown(error, str)}"
    return DTypeError(what, values=values, where=here(), hint=call)


def self_containing(name: str, function: Callable, args: Sequence, options: Mapping[str, Any]) -> MinflowError | None:
    """The four-part error for a list or dict that contains itself, on which recursion would not end; None if no
    argument does.
    """
    signature, _ = call_of(name, function)
    try:
        arguments = signature.bind(*args, **options).arguments
    except TypeError:
        return None
    return next((contains_itself_error(name, key, x) for key, x in arguments.items() if contains_itself(x)), None)


def contains_itself_error(name: str, argument: str, value: Any, kind: type[MinflowError] = DTypeError) -> MinflowError:
    """The error for a list or dict that contains itself."""
    return kind(
        f"{name}: {argument} is a {type(value).__name__} that contains itself",
        where=here(),
        values={argument: describe(value)},
        hint="leave out the entry that leads back",
    )


def contains_itself(x: Any) -> bool:
    """True if nested lists, tuples and dicts contain a cycle."""
    stack, inside = [(x, False)], set()
    seen: set[int] = set()
    while stack:
        part, left = stack.pop()
        if left:
            inside.discard(id(part))
        elif id(part) in inside:
            return True
        elif type(part) in (list, tuple, dict) and id(part) not in seen:
            seen.add(id(part))
            inside.add(id(part))
            stack.append((part, True))
            stack += [(entry, False) for entry in (part.values() if type(part) is dict else part)]
    return False


def unreadable_or(error: Exception, call: str, /, **values: Any) -> Exception:
    """The four-part error for an object whose special method raised while an operator inspected it; else the error."""
    if isinstance(error, RecursionError) and (name := next((k for k, x in values.items() if contains_itself(x)), "")):
        return contains_itself_error(call, name, values[name])
    if isinstance(error, MinflowError) or (method := special_method(error)) not in INSPECTION_METHODS:
        return error
    what = f"{call}: an operand cannot be read, its {method} raised {type(error).__name__}: {shown(error, str)}"
    result = DTypeError(
        what,
        values={key: describe(value) for key, value in values.items()},
        where=here(),
        hint="a tensor, a number, or a slice as an index",
    )
    result.__cause__ = error
    return result


def types_of(parameter: inspect.Parameter) -> list[str]:
    """The types that a parameter takes, as keys of `TYPE_CHECKS`; empty if they are unknown."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return []
    text = parameter.annotation if isinstance(parameter.annotation, str) else ""
    if parameter.annotation is parameter.empty:
        text = DEFAULT_ANNOTATIONS.get(parameter.name, "Tensor" if parameter.default is parameter.empty else "")
    for alias, meaning in ALIASES.items():
        text = text.replace(alias, meaning)
    parts = [part.strip() for part in re.split(r"\|(?![^\[]*\])", text) if part.strip()]
    if parameter.default is None and parts:
        parts.append("None")
    return list(dict.fromkeys(parts)) if all(part in TYPE_CHECKS for part in parts) else []


class Unquoted(str):
    """A value of an error or a warning that is shown without quotes."""

    __repr__ = str.__str__


def wrong_kind(name: str, argument: str, value: Any, wanted: str, call: str) -> MinflowError:
    """The error for an argument of the wrong kind."""
    if wanted.startswith("a tensor"):
        return not_a_tensor(name, argument, value, wanted)
    kind = "None" if value is None else type(value).__name__
    what = f"{name}: {argument} must be {wanted}, got {kind}"
    return DTypeError(what, values={argument: describe(value)}, where=here(), hint=call)


def not_a_tensor(name: str, argument: str, value: Any, wanted: str = "a tensor") -> MinflowError:
    """The error for an argument that is not a tensor, with a hint on how to make one."""
    kind, which = type(value).__name__, f"the {argument}"
    if safe_hasattr(value, "named_parameters"):
        return ModuleError(
            f"{name}: {which} is a {kind} module, not a tensor",
            where=here(),
            hint=f"call it with the tensor: layer = nn.{kind}(...) once, then layer(x)",
        )
    if value is None:
        return DTypeError(
            f"{name}: {which} is None, not {wanted}",
            where=here(),
            hint="add a return statement to the forward that it comes from",
        )
    array = issubclass(type(value), HostArray)
    what = f"{kind} of {value.dtype}, shape {list(value.shape)}" if array else kind
    text = f"{kind} {value.dtype}{list(value.shape)}" if array else describe(value)
    image = safe_hasattr(value, "getbands")  # of PIL
    created = (
        "transforms.ToTensor()"
        if image
        else "flow.from_numpy(...)"
        if safe_hasattr(value, "__array__")
        else "flow.tensor(...)"
    )
    hint = f"{created} of it, or as a transform of the dataset" if image else f"{created} around it"
    return DTypeError(f"{name}: {which} must be a tensor, got {what}", values={argument: text}, where=here(), hint=hint)
