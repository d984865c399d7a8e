"""Names of a graph's modules, tensors and inputs.

Read next: `graph.py`, whose class inherits from this one; `build.py`, which uses the names while it traces.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from ...core.mode import MODE
from ...core.spec import Spec
from ...core.tensor import Tensor
from ..module import Module
from . import messages
from .tree import Field, flatten, keys_of, leaves, unflatten


class Members:
    """Mixin of nn.Graph that names its modules and tensors."""

    # ---- modules and tensors -----------------------------------------------------------------------------------------

    def named_members(self: Any) -> Iterator[tuple[str, Module]]:
        """(attribute, module); modules in a list or dict attribute as "layers.0"."""
        yield from self._members.items()
        for name, value in vars(self).items():
            if not name.startswith("_") and isinstance(value, list | tuple | dict):
                for path, leaf in leaves(value):
                    if isinstance(leaf, Module):
                        yield ".".join([name, *map(str, path)]), leaf

    def all_modules(self: Any, nonmembers: Any = ()) -> list[tuple[str, Module]]:
        """Return (path, module) of every module of the graph, each once, including non-members that build used."""
        seen: dict[int, tuple[str, Module]] = {}
        for name, member in self.named_members():
            for path, module in member.named_modules():
                seen.setdefault(id(module), (f"{name}.{path}" if path else name, module))
        for path, module in (*self._nonmembers, *nonmembers):
            seen.setdefault(id(module), (path, module))
        return list(seen.values())

    def module_paths(self: Any) -> dict[int, str]:
        """The path of each module, by its id."""
        return {id(module): path for path, module in self.all_modules()}

    def named_tensors(self: Any, nonmembers: Any = ()) -> Iterator[tuple[Tensor, str]]:
        """(tensor, name) of every parameter, buffer and optimizer state."""
        names: dict[int, str] = {}
        for path, module in self.all_modules(nonmembers):
            for name, tensor in (*module._parameters.items(), *module._buffers.items()):
                if tensor is not None:
                    names.setdefault(id(tensor), f"{path}.{name}")
                    yield tensor, f"{path}.{name}"
        for optimizer, _ in self._optimizers:
            for i, p in enumerate(optimizer._all_parameters()):
                for key, tensor in optimizer.state.get(p, {}).items():
                    yield tensor, f"{names.get(id(p), f'parameter {i}')}-{key}"

    def parameter_names(self: Any, nonmembers: Any = ()) -> dict[int, str]:
        """Return id(parameter) -> "model.fc1.weight"; a tied parameter has its first name."""
        names: dict[int, str] = {}
        for tensor, name in self.named_tensors(nonmembers):
            names.setdefault(id(tensor), name)
        return names

    def outside_names(self: Any) -> Callable[[Tensor], str]:
        """Return a function that gives the name of a tensor that build reads from a global, a variable of an enclosing
        function, a default, or an attribute of a module; "" for others.
        """
        closed = inspect.getclosurevars(type(self).build)
        variables: dict[int, str] = {}
        for name, value in (*closed.nonlocals.items(), *closed.globals.items()):
            if isinstance(value, Tensor):
                variables.setdefault(id(value.array), name)
        attributes: dict[int, str] = {}
        for path, module in self.all_modules():
            for name, value in module.__dict__.items():
                if isinstance(value, Tensor):
                    attributes.setdefault(id(value), f"{path}.{name}")
        return lambda tensor: variables.get(id(tensor.array)) or attributes.get(id(tensor), "")

    # ---- inputs ------------------------------------------------------------------------------------------------------

    def structure(self: Any, args: tuple, kwargs: dict) -> tuple[Any, list[Tensor], tuple[Spec, ...]]:
        """Return the structure of the arguments of a call, the tensors in it, and their specs."""
        tree, tensors = flatten((args, kwargs), messages.refuse_input(self))
        if MODE.get().trace is not None:
            messages.symbolic_input(self, tensors[0] if tensors else Tensor(0.0))
        return tree, tensors, tuple([x.spec for x in tensors])

    def input_names(self: Any, tree: Any) -> list[str]:
        """The name of each input tensor in terms of build's parameters: "x", "batch[0]", "options['mask']"."""
        arguments = unflatten(tree, itertools.repeat("tensor"))
        return [self.argument_name(path) for path, leaf in leaves(arguments) if leaf is not None]

    def argument_name(self: Any, path: Any) -> str:
        """Return the name of the input at a path such as (0, 1, "key") or "[0][1]": build's parameter comes first."""
        keys = keys_of(path)
        if keys[0] == 1:
            name, rest = str(keys[1]), keys[2:]
        else:
            parameters = [p for p in inspect.signature(self.build).parameters.values() if p.kind in (0, 1, 2)]
            position = keys[1]
            plain = [p for p in parameters if p.kind != 2]
            if position < len(plain):
                name = plain[position].name
            else:
                name = f"{parameters[-1].name}[{position - len(plain)}]" if parameters else f"argument {position}"
            rest = keys[2:]
        return name + "".join([f".{key}" if isinstance(key, Field) else f"[{key!r}]" for key in rest])
