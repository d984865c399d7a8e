"""Operators that a program registers by name, `"space::name"`: a function of tensors, with a gradient of its own.

This is PyTorch's `library.custom_op`. Without gradients the function is simply called. With them, the call is an
autograd Function whose backward is the registered one. A graph records the operations of the function.
Read next: `function.py`; `../../library.py`, for operators of array code.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ..base.errors import DeviceError, GradError, MissingNameError, OutOfRangeError
from ..source_location import fail, here
from .function import Function
from .hooks import check_callable
from .modes import is_grad_enabled, no_grad

OPERATORS: dict[str, Operator] = {}  # by name
ANY_DEVICE = "any"  # the key of a function for all devices
AUTOGRAD_KEYS = "autograd", "autogradcpu", "autogradcuda"


def is_tensor(x: Any) -> bool:
    return hasattr(x, "spec") and hasattr(x, "array")


def is_list(x: Any) -> bool:
    """True for a list of tensors, which counts as one input."""
    return isinstance(x, list | tuple) and any(map(is_tensor, x))


def flatten(values: Iterable, inputs: Iterable) -> list:
    """The values that belong to the inputs, with the entries of those that belong to lists of tensors."""
    return [leaf for value, x in zip(values, inputs) for leaf in (value if is_list(x) else (value,))]


def unflatten(leaves: Iterable, inputs: Iterable) -> tuple:
    """The values of `flatten` from its result."""
    rest = iter(leaves)
    return tuple([[next(rest) for _ in x] if is_list(x) else next(rest) for x in inputs])


class OperatorFunction(Function):
    """The call of an operator with a gradient; its first argument is (operator, inputs, keyword arguments)."""

    @staticmethod
    def forward(ctx: Any, call: tuple, *leaves: Any) -> Any:
        operator, inputs, options = call
        ctx.call, ctx.needs_input_grad = call, unflatten(ctx.needs_input_grad[1:], inputs)
        output = operator.kernel(leaves)(*inputs, **options)
        if operator.setup_context is not None:
            if options:
                operator.setup_context(ctx=ctx, inputs=inputs, keyword_only_inputs=options, output=output)
            else:
                operator.setup_context(ctx, inputs, output)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        operator, inputs, _ = ctx.call
        if operator.backward is None:
            what = f"{operator.name} has no gradient"
            fail(GradError, what, f"{operator.short}.register_autograd(backward, setup_context=...)")
        found = operator.backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(inputs):
            what = f"{operator.name}: backward returned {len(found)} gradients for {len(inputs)} inputs"
            fail(GradError, what, "one for each input, None for one without a gradient")
        nested = [g if not is_list(x) else g or [None] * len(x) for g, x in zip(found, inputs)]
        return None, *flatten(nested, inputs)


class Operator:
    """An operator that a program has registered; it is called like its function.

    name: "space::name".  mutates: True if the function writes some of its inputs in place.
    """

    def __init__(self, name: str, mutates: bool):
        space, _, self.short = name.partition("::")
        if not (space.isidentifier() and self.short.isidentifier()):
            hint = '"mylib::scale": the name of the library, two colons, and the name of the operator'
            fail(OutOfRangeError, f"library: {name!r} is not the name of an operator", hint)
        self.name, self.mutates = name, mutates
        self.kernels: dict[str, Callable] = {}  # type of device -> function
        self.signature: inspect.Signature | None = None  # of the first of them
        self.backward: Callable | None = None
        self.setup_context: Callable | None = None
        self.function: Any = type(self.short, (OperatorFunction,), {})
        OPERATORS[name] = self

    @property
    def default(self) -> Operator:
        """The operator itself, as PyTorch calls its only overload."""
        return self

    def kernel(self, leaves: Iterable) -> Callable:
        """The function for the device of the first tensor."""
        device = next((x.spec.device.type for x in leaves if is_tensor(x)), ANY_DEVICE)
        found = self.kernels.get(device) or self.kernels.get(ANY_DEVICE)
        if found is None:
            known = ", ".join(self.kernels) or "none"
            what = f"{self.name} has no function for the device {device}"
            fail(DeviceError, what, f'{self.short}.register_kernel("{device}")', devices=known)
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.signature is None:
            inputs, options = args, kwargs
        else:
            bound = self.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            inputs, options = bound.args, bound.kwargs
        leaves = flatten(inputs, inputs)
        if self.mutates or not is_grad_enabled() or not any(is_tensor(x) and x.requires_grad for x in leaves):
            with no_grad():
                return self.kernel(leaves)(*inputs, **options)
        return self.function.apply((self, inputs, options), *leaves)

    # ---- registering ---------------------------------------------------------------------------------------------

    def register_kernel(self, device_types: Any = None, func: Callable | None = None, /) -> Any:
        """Register the function for some types of devices: "cpu", "cuda" or several; None for all. Also a decorator."""
        if func is None:
            return functools.partial(self.register_kernel, device_types)
        check_callable(func, "kernel(x)")
        if not self.kernels:
            self.signature, self.__doc__ = inspect.signature(func), func.__doc__
        types = [device_types] if device_types is None or isinstance(device_types, str) else device_types
        for device in types:
            self.kernels[device or ANY_DEVICE] = func
        return func

    def register_fake(self, fn: Callable, /) -> Callable:
        """Register the function for tensors without elements, on the device "meta". Other calls do not need it."""
        check_callable(fn, "fake(x)")
        self.kernels["meta"] = fn
        return fn

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Register `backward(ctx, *grads)`, which returns a gradient or None for each input.

        setup_context: `setup_context(ctx, inputs, output)`, which saves for backward, as that of autograd.Function.
        """
        check_callable(backward, "backward(ctx, grad)")
        if self.mutates:
            what = f"{self.name} writes its inputs in place, so it has no gradient"
            fail(GradError, what, "an operator that returns new tensors: mutates_args=()")
        self.backward, self.setup_context = backward, setup_context

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


def operator_named(op: Any) -> Operator:
    """An operator, also given by its name. Raises MissingNameError for an unknown name."""
    if isinstance(op, Operator):
        return op
    if op not in OPERATORS:
        hint = f"flow.library.custom_op({op!r}, mutates_args=()) first"
        raise MissingNameError(f"library: there is no operator {op!r}", where=here(), hint=hint)
    return OPERATORS[op]


def writes_inputs(mutates_args: Any) -> bool:
    """True unless `mutates_args` is empty."""
    return isinstance(mutates_args, str) or bool(list(mutates_args))


class Space:
    """The operators of one library as attributes: `flow.ops.mylib.scale`."""

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, short: str) -> Operator:
        if short.startswith("__"):
            raise AttributeError(short)
        return operator_named(f"{self.name}::{short}")


class Spaces:
    """`flow.ops`: the operators that the program has registered, by library."""

    __name__ = "flow.ops"

    def __getattr__(self, name: str) -> Space:
        if name.startswith("__") or not any(known.startswith(f"{name}::") for known in OPERATORS):
            known = ", ".join(dict.fromkeys(n.partition("::")[0] for n in OPERATORS)) or "none"
            hint = 'flow.library.custom_op("space::name", mutates_args=()) makes one; flow.relu is a built-in operation'
            what = f"flow.ops has no library {name!r}"
            raise MissingNameError(what, values={"libraries": known}, where=here(), hint=hint)
        return Space(name)


ops = Spaces()


class Library:
    """PyTorch's object for operators of one library: define(schema), impl(name, function).

    ns: the name of the library.  kind: "DEF", "IMPL" or "FRAGMENT".  dispatch_key: the device of `impl`.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by a schema such as `"scale(Tensor x, float by) -> Tensor"`; return its name."""
        name = schema.partition("(")[0].strip()
        Operator(f"{self.ns}::{name}", "!" in schema)
        return name

    def impl(self, op_name: Any, fn: Callable, dispatch_key: str = "", **options: Any) -> None:
        """Register the function of an operator for "CPU", "CUDA", or all devices."""
        short = getattr(op_name, "short", None) or str(op_name).rpartition("::")[2]
        implement(f"{self.ns}::{short}", dispatch_key or self.dispatch_key, fn)


def implement(name: str, types: Any, fn: Callable) -> Callable:
    """Register a function for types of devices, or for "Meta"; that of a gradient is refused."""
    operator = operator_named(name)
    for key in [types] if isinstance(types, str) else types:
        key = str(key).lower()
        if key in AUTOGRAD_KEYS:
            hint = f"flow.library.register_autograd({name!r}, backward, setup_context=...)"
            fail(GradError, f"library: the gradient of {name} cannot be a function for {key}", hint)
        operator.register_kernel(key if key in ("cpu", "cuda", "meta") else None, fn)
    return fn


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Library | None = None
) -> None:
    """`Operator.register_autograd` for an operator, or its name."""
    operator_named(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: Any, func: Callable | None = None, /, *, lib: Library | None = None, **options: Any) -> Any:
    """`Operator.register_fake` for an operator, or its name. Also a decorator."""
    register = operator_named(op).register_fake
    return register if func is None else register(func)


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Library | None = None) -> Any:
    """`Operator.register_kernel` for an operator, or its name. Also a decorator."""
    return operator_named(op).register_kernel(device_types, func)


def impl(qualname: str, types: Any, func: Callable | None = None, *, lib: Library | None = None) -> Any:
    """Register the function of a defined operator for "cpu", "cuda" or "default". Also a decorator."""
    return functools.partial(implement, qualname, types) if func is None else implement(qualname, types, func)


def define_operator(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Define an operator: `define("mylib::scale", "(Tensor x, float by) -> Tensor")`. `impl` gives it a function."""
    Operator(qualname, "!" in schema)


def registered_op(name: str, mutates_args: Any, device_types: Any, fn: Callable | None) -> Any:
    """Make an operator of a function of tensors; without a function, return a decorator."""

    def decorate(function: Callable) -> Operator:
        operator = Operator(name, writes_inputs(mutates_args))
        operator.register_kernel(device_types, function)
        return operator

    return decorate if fn is None else decorate(fn)
