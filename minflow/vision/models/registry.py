"""Models by name: `get_model("resnet18", num_classes=10)`."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from types import FunctionType
from typing import Any

from ...core.base.errors import OutOfRangeError
from ...core.messages.suggestions import did_you_mean, nearest
from ...core.source_location import fail
from ...nn import Module


def list_models(include: str = "*") -> list[str]:
    """List the names of the models that take `pretrained` and `weights`. include: a pattern, such as "resnet*"."""
    names = vars(sys.modules[__package__])
    return sorted(
        name
        for name, it in names.items()
        if isinstance(it, FunctionType) and fnmatchcase(name, include) and "progress" in it.__annotations__
    )


def get_model(name: str, **config: Any) -> Module:
    """Build a model by name. config: its arguments. Raises OutOfRangeError if there is no such model."""
    known = list_models()
    if name.lower() not in known:
        what = f"get_model: there is no model {name!r}"
        fail(OutOfRangeError, what, did_you_mean(nearest(name, known)) or f"one of {', '.join(known)}")
    return getattr(sys.modules[__package__], name.lower())(**config)
