"""The line that created a module, for error cards. Read next: `failure.py`, which reads it."""

from __future__ import annotations

SITE_ATTRIBUTE = "_created_at"  # attribute of a module that stores it


class CreationSite(tuple):
    """(code, instruction), or empty if no user line created it. Meaningless in another process, so pickled
    as None.
    """

    __slots__ = ()

    def __reduce__(self):
        return type(None), ()

    def __deepcopy__(self, memo):
        return self
