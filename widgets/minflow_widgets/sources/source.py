"""One thing that a curve is filled from. Read next: `optimizer.py`, `graph.py`, `job.py`."""

from __future__ import annotations

from ..curve.feed import Feed
from ..curve.loss_curve import LossCurve
from .gradient_norm import GradientNorm


class Source:
    """One thing that is watched. prefix: of the names of its series.  panels: words of them, known in advance."""

    panels: tuple[str, ...] = ("loss",)
    passes = True  # is a pass of a DataLoader around its steps an epoch?
    norm: GradientNorm | None = None
    # seconds of processor that a step takes to be recorded, in a loop that sleeps between them: benchmarks/widgets.py
    cost = 7e-6

    def __init__(self, name: str):
        self.name, self.prefix, self.problem = name, "", ""
        self.curve: LossCurve | None = None
        self.feed: Feed | None = None

    def listeners(self) -> dict:
        return {}

    def safely(self, listener):
        """What is watched goes on, whatever goes wrong here; the curve says it at its end."""

        def heard(event) -> None:
            try:
                listener(event)
            except Exception as error:
                self.problem = f"{self.name} is not watched well: {type(error).__name__}: {error}"

        return heard

    def config(self) -> dict:
        """The hyper-parameters that it knows."""
        return {}

    def wait(self) -> None:
        pass

    def last(self) -> None:
        """Record what is left of the last step."""

    def note(self) -> str:
        return self.problem
