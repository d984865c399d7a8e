"""The line that made a module, for the card of an error. Knows no module. Read next: `failure.py`, which reads it."""

from __future__ import annotations


class Made(tuple):
    """(code, instruction), or empty where no line of the learner's made it. Says nothing in another process: None in a
    pickle."""

    __slots__ = ()

    def __reduce__(self):
        return type(None), ()

    def __deepcopy__(self, memo):
        return self
