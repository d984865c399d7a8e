"""The line that created a module, for the card of an error. Read next: `failure.py`, which reads it."""

from __future__ import annotations

ATTRIBUTE = "_created_at"  # of a module that remembers it


class CreationSite(tuple):
    """(code, instruction), or empty where no line of the learner's created it. Says nothing in another process: None in
    a pickle."""

    __slots__ = ()

    def __reduce__(self):
        return type(None), ()

    def __deepcopy__(self, memo):
        return self
