"""Checks of the dtypes, names, initializers and regularizers that job functions receive.

An initializer or a regularizer is recognized by its method alone; the legacy ones are in `legacy/`. Read next:
`session.py`, which keeps variables.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from ..core.base.errors import DTypeError, JobError
from ..core.host import HostArray
from ..core.random import Generator
from ..core.source_location import fail, here
from ..core.spec import DType, as_dtype
from ..core.tensor import Tensor


class Initializer(Protocol):
    """Fills a new variable."""

    def fill(self, shape: tuple[int, ...], dtype: DType, generator: Generator) -> HostArray: ...


class Regularizer(Protocol):
    """Adds a penalty's gradient to the gradient of a variable."""

    def penalty_gradient(self, weight: Tensor) -> Tensor: ...


def check_initializer(what: str, initializer: Any) -> None:
    """Raise JobError unless `initializer` is an initializer. The hint covers common mistakes: an initializer function
    that was not called, a number, or a function of nn.init.
    """
    if initializer is None or (hasattr(initializer, "fill") and not isinstance(initializer, type | HostArray)):
        return
    name = getattr(initializer, "__name__", "")
    if isinstance(initializer, int | float):
        hint = f"flow.constant_initializer({initializer})"
    elif callable(initializer) and (name.endswith("_initializer") or name == "truncated_normal"):
        hint = f"flow.{name}(...), called"
    else:
        hint = "flow.truncated_normal(0.1), flow.xavier_uniform_initializer() or another flow.*_initializer(...)"
    kind = type(initializer).__name__
    fail(JobError, f"{what}: initializer must be an initializer, got {kind}", hint, initializer=initializer)


def check_regularizer(what: str, regularizer: Any) -> None:
    """Raise JobError unless `regularizer` is a regularizer; common mistakes are a number, or a class or function."""
    if regularizer is None or (hasattr(regularizer, "penalty_gradient") and not isinstance(regularizer, type)):
        return
    hint = f"flow.regularizers.l2({regularizer if isinstance(regularizer, int | float) else 0.0005})"
    kind = type(regularizer).__name__
    fail(JobError, f"{what}: regularizer must be a regularizer, got {kind}", hint, regularizer=regularizer)


def check_name(name: Any) -> None:
    """Raise JobError unless `name` can be a folder of a checkpoint."""
    if not isinstance(name, str) or not re.fullmatch(r"[\w.+\-]+(/[\w.+\-]+)*", name) or ".." in name:
        what = "the name of a variable must consist of letters, digits and - _ . /"
        raise JobError(what, values={"name": repr(name)[:80]}, where=here(), hint='name="dense1"')


def dtype_of(owner: str, value: Any) -> DType:
    """Convert a value to a dtype. Raises DTypeError, which names the owner."""
    try:
        return as_dtype(value)
    except DTypeError as error:
        hint = "dtype=flow.float, flow.double, flow.int32, flow.int64 or flow.int8"
        what = f"{owner}: {error.what}"
        raise DTypeError(what, values={"dtype": repr(value)[:60]}, where=here(), hint=hint) from None
