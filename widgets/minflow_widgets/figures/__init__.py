"""Figures drawn with matplotlib: the history of a run, a confusion matrix, the landscape of a loss, filters, and more.

Each function draws into `ax`, or into a new figure, and returns the Axes, so that everything can be changed afterwards.
Each figure also has a plain-text form for terminals. Names are drawn literally, never as TeX formulas.
`from minflow_widgets.figures import History, confusion_matrix`. Read next: `drawing.py`.
"""

from .activations import activations, activations_text
from .attention import attention, attention_text
from .confusion import confusion_counts, confusion_matrix, confusion_text
from .devices import on_devices
from .filters import filters
from .history import History
from .landscape import Landscape, landscape, landscape_text
from .lines import line_and_points, slope_at
from .plane import Plane, plane, plane_text

__all__ = [
    "History",
    "Landscape",
    "Plane",
    "activations",
    "activations_text",
    "attention",
    "attention_text",
    "confusion_counts",
    "confusion_matrix",
    "confusion_text",
    "filters",
    "landscape",
    "landscape_text",
    "line_and_points",
    "on_devices",
    "plane",
    "plane_text",
    "slope_at",
]
