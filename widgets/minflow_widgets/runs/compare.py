"""compare: several runs on one picture, each series in a panel of its own, a line for each run.

    compare("runs/")                      # what watch(..., log="runs/") has kept: the newest ten
    compare("runs/lr 0.1.csv", "runs/lr 0.01.csv")
    compare(curve_a, curve_b)             # curves that are there, also while they move

Read next: `saved_runs.py`, which finds them.
"""

from __future__ import annotations

from minflow.views.text.listing import clean

from ..curve.arguments import check_options
from ..curve.loss_curve import LossCurve
from ..curve.panels import warnings
from .saved_runs import gather, series_of

MOST = 10  # runs that one picture shows


def compare(*runs, x: str = "step", log: bool | None = None) -> Comparison:
    """Runs side by side: shown as the last line of a cell, `.explore()`d with values under the pointer, or printed.

    runs: folders that `watch(..., log=...)` has filled, single tables of them, or curves; at most MOST are shown, of a
    folder the newest, and it is said how many are not. Each has its name in the legend, with the hyper-parameters that
    differ. A run that goes on is shown as far as it is.  x: "step" or "time".  log: logarithmic scale, as of LossCurve.
    Raises MinflowError where there is no run, FormatError for a table that is named and is none; in a folder such a one
    is left out with a warning.
    """
    check_options(None, None, x)
    return Comparison(*gather(runs, MOST), x=x, log=log)


class Comparison(LossCurve):
    """Runs on one picture. It has ended: nothing can be added."""

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
                s.label().removeprefix(f"{clean(run.name)} ") + (f" ({': '.join(warnings(mine, s))})" if s.bad else "")
                for s in mine
            ]
            lines.append(f"  {clean(run.name)}: {'; '.join(words) or 'no values'}")
        return "\n".join([self._status(), *lines])

    def __repr__(self) -> str:
        return self.text()
