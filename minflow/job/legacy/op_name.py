"""What `name=` means to a legacy function: a scope, so that views and errors call its ops by the learner's name.

Knows nothing of jobs: the functions of `math.py` and `arrays.py` run on eager tensors as well. Read next: `math.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from ...core.base.errors import DTypeError
from ...core.mode import MODE
from ...core.source_location import fail


def takes_name(function: Callable, otherwise: str = "") -> Callable:
    """Run a function whose last argument is `name` in a scope of that name; without one in that of `otherwise`, if any.

    The function itself need not look at `name`. Raises DTypeError for a name that is no string.
    """
    place = list(inspect.signature(function).parameters).index("name")

    @functools.wraps(function)
    def scoped(*args, **options):
        name = args[place] if len(args) > place else options.get("name")
        if name is None and not otherwise:
            return function(*args, **options)
        if name is not None and not isinstance(name, str):
            hint = f'name="{function.__name__}1"; what are several numbers is one list: [2, 3]'
            what = f"{function.__name__}: argument {place + 1} is the name, and {name!r} is not a string"
            fail(DTypeError, what, hint, name=name)
        mode = MODE.get()
        try:
            MODE.set(mode.replace(scope=f"{mode.scope}/{name or otherwise}" if mode.scope else name or otherwise))
            return function(*args, **options)
        finally:
            MODE.set(mode)

    return scoped


def also_called(**others: str) -> Callable:
    """Accept keywords of OneFlow's later generation: input="x" where x stood then."""

    def decorated(function: Callable) -> Callable:
        @functools.wraps(function)
        def either(*args, **options):
            for later, name in others.items():
                if later in options and name not in options:
                    options[name] = options.pop(later)
            return function(*args, **options)

        return either

    return decorated


def public(names: dict) -> Callable:
    """A `__dir__` for a module of such functions: they alone, not what it imports. names: its globals()."""

    def is_legacy(thing) -> bool:
        return (
            inspect.isfunction(thing)
            and hasattr(thing, "__wrapped__")
            and "name" in inspect.signature(thing).parameters
        )

    return lambda: sorted([name for name, thing in names.items() if is_legacy(thing)])


def folded(function: Callable) -> Callable:
    """As takes_name; without a name its several ops stand in a scope of the function's own, which views fold to one
    row."""
    return takes_name(function, function.__name__)
