"""Match the arguments of a call of a loaded graph with those of the saved call.

A saved graph records the names of build's parameters and which of them were tensors. A tensor may therefore be passed
by position, by name, or in a dict in any order, as for the saved graph. Read next: `replay.py`, which runs it.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.base.errors import GraphError
from ..core.source_location import describe, fail, here
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..nn.graph.tree import Leaf, fields_of, flatten, leaves, unflatten
from .checks import Malformed
from .document import Document


@dataclass(frozen=True)
class InputSlot:
    """Marks the position of an input's tensor in the arguments."""

    index: int


class SavedArguments:
    """Arguments of the saved call. tree: its structure, with arguments in the order of build's parameters, so that
    positional and keyword tensors have the same order.  order: indices of the inputs in it.
    """

    def __init__(self, document: Document):
        self.document = document
        args, kwargs = saved = unflatten(document.tree[0], map(InputSlot, range(len(document.inputs))))
        self.signature = signature_of(document.arguments, saved)
        try:
            self.bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise Malformed(f"arguments of build{self.signature} ({error})", document.tree[0], "tree") from None
        self.bound.apply_defaults()
        self.saved = self.bound.args, self.bound.kwargs
        names = [name for name in self.signature.parameters if name in kwargs]
        ordered = args, {name: kwargs[name] for name in dict.fromkeys([*names, *kwargs])}
        self.tree = flatten(ordered, lambda path, x: "tensor" if isinstance(x, InputSlot) else Leaf(x))[0]
        self.order = [x.index for _, x in leaves(ordered) if isinstance(x, InputSlot)]

    def inputs(self, graph: str, args: tuple, kwargs: dict) -> list[Tensor]:
        """The tensors of a call, in the order of the inputs. Raises TypeError if the arguments do not match build's
        signature, GraphError if tensors are in other positions than in the saved call.
        """
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        tensors: dict[int, Tensor] = {}
        if not matches(self.saved, (bound.args, bound.kwargs), tensors):
            raise GraphError(
                f"{graph} was saved for a call with other arguments",
                where=here(),
                values={"saved": self.arguments_text(self.bound), "got": self.arguments_text(bound)},
                hint="arguments as they were; or save the graph again, after a call with these",
            )
        return [tensors[number] for number in range(len(tensors))]

    def check(self, graph: str, specs: Sequence[Spec]) -> None:
        """Raise GraphError unless dtypes and static sizes equal the saved ones. specs: specs of all inputs."""
        for number, (got, (label, spec)) in enumerate(zip(specs, self.document.inputs)):
            dynamic = self.axes_of(number)
            wrong = {
                axis: f"size_{axis}" if axis else "batch"
                for axis, (a, b) in enumerate(zip(got.shape, spec.shape))
                if a != b and axis not in dynamic
            }
            if got.dtype is spec.dtype and got.ndim == spec.ndim and not wrong:
                continue
            hint = f"{label}.to(flow.{spec.dtype.name})"
            if got.ndim != spec.ndim:
                hint = (
                    f"{label}.unsqueeze(0), a batch of one"
                    if got.ndim == spec.ndim - 1
                    else f"a tensor of {spec.ndim} axes"
                )
            elif wrong:
                axes = ", ".join(f'{axis}: "{axis_name}"' for axis, axis_name in sorted((dynamic | wrong).items()))
                hint = f'for other sizes, where it is saved: flow.save(graph, path, dynamic={{"{label}": {{{axes}}}}})'
            fail(GraphError, f"{graph} was saved for {label} {self.required_spec(number)}", hint, got=got)
        if self.document.axes:
            self.document.sizes(specs)

    # ---- as text -----------------------------------------------------------------------------------------------------

    def axes_of(self, number: int) -> dict[int, str]:
        """The dynamic axes of an input: axis -> name."""
        return {axis: name for name, places in self.document.axes.items() for n, axis in places if n == number}

    def required_spec(self, number: int) -> str:
        """Required spec of an input as text: "float32[batch, 3]"."""
        spec, dynamic = self.document.inputs[number][1], self.axes_of(number)
        return f"{spec.dtype.name}[{', '.join([dynamic.get(axis, str(n)) for axis, n in enumerate(spec.shape)])}]"

    def arguments_text(self, bound: inspect.BoundArguments) -> str:
        """Arguments as text: "x float32[batch, 3], mask None"."""
        return ", ".join([f"{name} {self.value_text(x)}" for name, x in bound.arguments.items()]) or "nothing"

    def value_text(self, x: Any) -> str:
        if isinstance(x, InputSlot):
            return self.required_spec(x.index)
        if isinstance(x, dict):
            return f"{{{', '.join([f'{key!r}: {self.value_text(value)}' for key, value in x.items()])}}}"
        if isinstance(x, list | tuple):
            return f"[{', '.join(map(self.value_text, x))}]"
        return describe(x)


def signature_of(names: Sequence[str], saved: Any) -> inspect.Signature:
    """Signature of build. Parameters that the saved call omitted are optional."""
    kinds = inspect.Parameter
    positional, keywords = saved
    parameters: list[inspect.Parameter] = []
    kind, optional = kinds.POSITIONAL_OR_KEYWORD, False
    for position, name in enumerate(names):
        if name.startswith("*"):
            parameters.append(
                kinds(name.lstrip("*"), kinds.VAR_KEYWORD if name.startswith("**") else kinds.VAR_POSITIONAL)
            )
            kind, optional = kinds.KEYWORD_ONLY, False
            continue
        optional = optional or (name not in keywords and position >= len(positional))
        parameters.append(kinds(name, kind, default=None if optional else kinds.empty))
    return inspect.Signature(parameters)


def matches(saved: Any, x: Any, tensors: dict[int, Tensor]) -> bool:
    """True if this call has tensors exactly where the saved one has a Place; collects them by input index."""
    if isinstance(saved, InputSlot):
        tensors[saved.index] = x
        return isinstance(x, Tensor)
    if isinstance(saved, dict):
        x = fields if (fields := fields_of(x)) is not None else x  # a dataclass is saved as a dict of its fields
        return (
            isinstance(x, dict)
            and saved.keys() == x.keys()
            and all([matches(saved[key], x[key], tensors) for key in saved])
        )
    if isinstance(saved, list | tuple):
        return (
            isinstance(x, list | tuple)
            and len(saved) == len(x)
            and all([matches(a, b, tensors) for a, b in zip(saved, x)])
        )
    return type(saved) is type(x) and saved == x
