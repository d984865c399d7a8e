"""Old names of the methods that a custom optimizer or schedule defines or calls: they work, with a DeprecationWarning.

Read next: `optimizer.py`.
"""

from __future__ import annotations

import warnings
from typing import Any


class RenamedHook:
    """The old name of a method or attribute of the class in which it is an attribute. now: the new name."""

    def __init__(self, now: str):
        self.now = now

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def warn(self, kind: type) -> None:
        warnings.warn(f"{kind.__name__}.{self.name} is now {self.now}", DeprecationWarning, stacklevel=4)

    def __get__(self, instance: Any, kind: type) -> Any:
        if instance is None:
            return self
        self.warn(kind)
        for base in kind.__mro__:  # a class that defines the old name calls it through super()
            if self.now in vars(base) and self.name not in vars(base):
                value = vars(base)[self.now]
                return value.__get__(instance, kind) if hasattr(value, "__get__") else value
        return getattr(instance, self.now)


def accept_old_names(kind: type, base: type) -> None:
    """Give the methods that `kind` defines under an old name, a RenamedHook of `base`, their new name."""
    for name, hook in vars(base).items():
        if isinstance(hook, RenamedHook) and name in vars(kind) and hook.now not in vars(kind):
            hook.warn(kind)
            setattr(kind, hook.now, vars(kind)[name])
