"""Containers: Sequential calls its modules in turn; the others only hold modules or Parameters, to register them.

Read next: `module.py`, which registers them.
"""

from __future__ import annotations

import operator
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from typing import Any, Self

from ..core.base.errors import ModuleError, OutOfRangeError
from ..core.source_location import fail
from ..core.tensor import Tensor
from .module import Module
from .parameter import Parameter
from .recursion_limit import is_walked, walking


class IndexedContainer(Module):
    """Base of Sequential and ModuleList: modules under the names "0", "1", ..."""

    _fold_from = 3  # the repr folds this many equal neighbors into one row; PyTorch does not fold those of a Sequential

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __contains__(self, module: object) -> bool:
        return any(module is own for own in self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _key(self, index: int) -> str:
        """The name of the entry at `index`, which may be negative."""
        position, size = operator.index(index), len(self)
        if not -size <= position < size:
            hint = f"0 to {size - 1}, or -{size} to -1 from the end" if size else "it is empty: append a module first"
            fail(OutOfRangeError, f"{type(self).__name__}: there is no entry {position} among {size}", hint)
        return list(self._modules)[position]

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._sub_container(list(self._modules.items())[index])
        return self._modules[self._key(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        if not isinstance(module, Module):
            self.add_module(self._key(index), module)
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Module]) -> None:
        """Replace the modules by these, under the names "0", "1", ..."""
        for key in list(self._modules):
            delattr(self, key)
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def _sub_container(self, items: list[tuple[str, Module]]) -> Any:
        """Make a container of the same class with some of the modules."""
        kind: Any = type(self)
        return kind([module for _, module in items])

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the entry at `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, index: int | slice) -> Any:
        """Remove an entry and return it."""
        module = self[index]
        del self[index]
        return module

    def _repr_rows(self) -> list[tuple[str, str]]:
        """Equal neighbors share one row: `(0-2): 3 x Linear(...)`."""
        rows: list[list] = []
        for name, text in super()._repr_rows():
            if rows and rows[-1][1] == text and name.isdigit() and rows[-1][0][0].isdigit():
                rows[-1][0].append(name)
            else:
                rows.append([[name], text])
        return [
            row
            for names, text in rows
            for row in (
                [(f"{names[0]}-{names[-1]}", f"{len(names)} x {text}")]
                if len(names) >= self._fold_from
                else [(name, text) for name in names]
            )
        ]

    def __add__(self, other: Iterable[Module]) -> Any:
        kind: Any = type(self)
        return kind(*chain(self, other)) if isinstance(self, Sequential) else kind(chain(self, other))


class Sequential(IndexedContainer):
    """Modules called in turn: `Sequential(a, b)(x) = b(a(x))`. Takes modules, or one ordered dict of name -> module."""

    def __init__(self, *modules: Module | Mapping[str, Module]):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            for i, entry in enumerate(modules):
                self.add_module(str(i), entry)  # type: ignore[arg-type]  # which refuses a second dict

    def _sub_container(self, items: list[tuple[str, Module]]) -> Sequential:
        return Sequential(dict(items))

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class UncalledContainer(Module):
    """A container that is never called: the scopes of its entries start with its own name, as in "blocks.0"."""

    def _child_name(self, name: str) -> str:
        return f"{self._scope_name}.{name}" if self._scope_name else name

    def _rename_scope(self, name: str) -> None:
        super()._rename_scope(name)
        with walking("rename", self):
            for key, module in self._modules.items():
                if module is not None and not is_walked("rename", module):
                    module._rename_scope(f"{name}.{key}")


class ModuleList(UncalledContainer, IndexedContainer):
    """A list of modules that registers them. It cannot be called: loop over it in forward."""

    _fold_from = 2  # as PyTorch does
    _forward_hint = "for layer in self.layers: x = layer(x), or nn.Sequential, which does that when called"

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if isinstance(modules, Module) and not isinstance(modules, IndexedContainer):
            what = f"ModuleList takes one list of modules, not a {type(modules).__name__}"
            fail(ModuleError, what, "nn.ModuleList([layer1, layer2])")
        self.extend(modules or ())

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)


class NamedContainer(Module):
    """Base of ModuleDict and ParameterDict: named entries, stored in one of the dicts of a module."""

    _registry_name = "_modules"

    def __getitem__(self, key: str) -> Any:
        return vars(self)[self._registry_name][key]

    def __delitem__(self, key: str) -> None:
        delattr(self, key)

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: str) -> bool:
        return key in self.keys()

    def keys(self) -> KeysView[str]:
        """The names, in order."""
        return vars(self)[self._registry_name].keys()

    def values(self) -> ValuesView[Any]:
        """The values, in order."""
        return vars(self)[self._registry_name].values()

    def items(self) -> ItemsView[str, Any]:
        """The (name, value) pairs, in order."""
        return vars(self)[self._registry_name].items()

    def pop(self, key: str) -> Any:
        """Remove an entry and return it."""
        entry = self[key]
        del self[key]
        return entry

    def _add(self, entries: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add all entries of a dict, of a container of this kind, or of a list of pairs."""
        for key, entry in list(entries.items() if isinstance(entries, Mapping | NamedContainer) else entries):
            self[key] = entry


class ModuleDict(UncalledContainer, NamedContainer):
    """A dict of modules that registers them. It cannot be called: call its entries in forward."""

    _forward_hint = 'one of its entries: self.layers["name"](x)'

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None):
        super().__init__()
        self.update(modules or {})

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add all entries of a dict, ModuleDict, or list of pairs."""
        self._add(modules)

    def clear(self) -> None:
        """Remove all modules."""
        for key in list(self._modules):
            del self[key]


def as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def parameter_repr(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"


class ParameterList(Module):
    """A list of Parameters that registers them; tensors become Parameters."""

    _forward_hint = "its entries: self.weights[0] @ x"

    def __init__(self, values: Iterable[Any] | None = None):
        super().__init__()
        self.size = 0
        self.extend(values or ())

    def _key(self, index: int) -> str:
        """The name of the parameter at an index, which may be negative."""
        position = operator.index(index)
        if not -self.size <= position < self.size:
            what = f"ParameterList: there is no entry {position} among {self.size}"
            fail(OutOfRangeError, what, f"0 to {self.size - 1}")
        return str(position % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(self.size)])

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return ParameterList([self[i] for i in range(*index.indices(self.size))])
        return getattr(self, self._key(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._key(index), as_parameter(value))

    def append(self, value: Any) -> ParameterList:
        """Add a tensor at the end."""
        self.size += 1
        self[self.size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add tensors at the end."""
        if isinstance(values, Tensor):
            what = "ParameterList takes a list of tensors, not one tensor"
            fail(ModuleError, what, "nn.ParameterList([tensor])", values=values)
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def _repr_rows(self) -> list[tuple[str, str]]:
        return [(str(i), parameter_repr(value)) for i, value in enumerate(self)]


class ParameterDict(NamedContainer):
    """A dict of Parameters that registers them; tensors become Parameters."""

    _forward_hint = 'its entries: self.weights["name"]'
    _registry_name = "_parameters"

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None):
        super().__init__()
        self.update(parameters or {})

    def __setitem__(self, key: str, value: Any) -> None:
        if hasattr(self, key) and key not in self._parameters:
            self._check_name(key, "_parameters", "parameter")
        setattr(self, key, as_parameter(value))

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter with this name, or the default."""
        return self._parameters.get(key, default)

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add all entries of a dict, ParameterDict, or list of pairs."""
        self._add(parameters)

    def _repr_rows(self) -> list[tuple[str, str]]:
        return [(key, parameter_repr(value)) for key, value in self.items()]
