"""Live widgets for notebooks: each one `.py` and one `.js`. Imports minflow, never the reverse.

Importing this starts nothing and needs neither Jupyter nor anywidget: both come when a widget is first shown,
and where they are missing the widgets write plain lines instead. Read next: `curve/loss_curve.py`.
"""

from .explorer.explorer import explore
from .curve.loss_curve import LossCurve
from .runs.compare import compare
from .timeline.live_timeline import watch_timeline
from .watch import watch

__all__ = ["LossCurve", "compare", "explore", "watch", "watch_timeline"]


def __dir__() -> list[str]:
    return __all__
