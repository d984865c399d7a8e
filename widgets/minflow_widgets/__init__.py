"""Live widgets for notebooks, each one `.py` and one `.js`. Imports minflow, never the reverse.

Importing this package starts nothing and needs neither Jupyter nor anywidget: they are imported when a widget is first
shown, and if they are missing, the widgets print plain lines. Read next: `curve/loss_curve.py`.
"""

from .curve.loss_curve import LossCurve
from .explorer.explorer import explore
from .runs.compare import compare
from .timeline.live_timeline import watch_timeline
from .watch import watch

__all__ = ["LossCurve", "compare", "explore", "watch", "watch_timeline"]


def __dir__() -> list[str]:
    return __all__
