"""Base class of a curve's sources. Read next: `optimizer.py`, `graph.py`, `job.py`."""

from __future__ import annotations

from typing import Any

from .gradient_norm import GradientNorm


class Source:
    """A watched source. prefix: prefix of the names of its series.  panels: words of these names, known in advance."""

    panels: tuple[str, ...] = ("loss",)
    passes = True  # True if a pass of a DataLoader around its steps is an epoch
    norm: GradientNorm | None = None
    # processor seconds to record a step, in a loop that sleeps between steps: benchmarks/widgets.py
    cost = 7e-6

    def __init__(self, name: str):
        self.name, self.prefix, self.problem = name, "", ""
        self.curve: Any = None  # the LossCurve and the Feed, set before the source listens
        self.feed: Any = None

    def listeners(self) -> dict:
        return {}

    def steps(self) -> dict:
        """Event -> function that returns True for an event between two steps, in the loop's thread and without locks,
        where the loop can be held.
        """
        return {}

    def catch_errors(self, listener):
        """Wrap a listener so that its errors never stop the training; the curve reports them at its end."""

        def heard(event) -> None:
            try:
                listener(event)
            except Exception as error:
                self.problem = f"{self.name} is not watched well: {type(error).__name__}: {error}"

        return heard

    def config(self) -> dict:
        """The known hyperparameters."""
        return {}

    def wait(self) -> None:
        pass

    def last(self) -> None:
        """Record the rest of the last step."""

    def note(self) -> str:
        return self.problem
