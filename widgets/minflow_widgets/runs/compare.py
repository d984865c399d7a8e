"""compare: several runs in one picture, with a panel for each series and a line for each run.

    compare("runs/")                      # runs kept by watch(..., log="runs/"): the newest ten
    compare("runs/lr 0.1.csv", "runs/lr 0.01.csv")
    compare(curve_a, curve_b)             # curves in memory, also live ones

Read next: `saved_runs.py`, which finds them.
"""

from __future__ import annotations

from typing import Any

from minflow.views.text.listing import clean

from ..curve.arguments import check_options
from ..curve.legend import series_warnings
from ..curve.loss_curve import LossCurve
from .saved_runs import gather_runs, series_of

MAX_RUNS = 10  # runs in one picture


def compare(*runs: Any, x: str = "step", log: bool | None = None) -> RunComparison:
    """Compare runs: shown in the last line of a cell, with hover values by `.explore()`, or printed.

    runs: folders filled by `watch(..., log=...)`, single tables of them, or curves. At most 10 are shown, the newest
    of a folder, and the picture says how many are not. The legend has the name of each run, with the hyperparameters
    that differ. An unfinished run is shown up to its last value.  x: "step" or "time".  log: logarithmic scale, as in
    LossCurve. Raises MinflowError if there is no run, and FormatError for an argument that is not the table of a run;
    inside a folder, such a file is left out with a warning.
    """
    check_options(None, None, x)
    return RunComparison(*gather_runs(runs, MAX_RUNS), x=x, log=log)


class RunComparison(LossCurve):
    """Runs in one picture. It is finished: nothing can be added."""

    def __init__(self, runs: list, note: str, x: str, log: bool | None):
        super().__init__(x=x, log=log)
        self.runs = runs
        self._series = {s.name: s for s in series_of(runs)}
        self._finished = self._left = True
        self._left_out = note

    def put(self, *args, **more) -> None:
        from minflow.core.base.errors import MinflowError

        hint = "with LossCurve() as curve: curve.add(loss=loss)"
        raise MinflowError("These runs have ended", values={"runs": len(self.runs)}, hint=hint)

    def _status(self) -> str:
        return f"{len(self.runs)} run{'s' * (len(self.runs) > 1)}" + (f"; {self._left_out}" if self._left_out else "")

    def text(self) -> str:
        """A line for each run: the last and the best value of each series."""
        lines = []
        for number, run in enumerate(self.runs):
            mine = [s for s in self._series.values() if s.style == number]
            words = [
                s.label().removeprefix(f"{clean(run.name)} ")
                + (f" ({': '.join(series_warnings(mine, s))})" if s.first_nonfinite else "")
                for s in mine
            ]
            lines.append(f"  {clean(run.name)}: {'; '.join(words) or 'no values'}")
        return "\n".join([self._status(), *lines])

    def __repr__(self) -> str:
        return self.text()
