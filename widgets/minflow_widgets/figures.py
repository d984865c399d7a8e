"""The public name of the figures: `from minflow_widgets.figures import History, confusion_matrix`.

Read next: `static_figures/drawing.py`.
"""

from .static_figures.activations import activations, activations_text
from .static_figures.attention import attention, attention_text
from .static_figures.confusion import confusion_counts, confusion_matrix, confusion_text
from .static_figures.filters import filters
from .static_figures.history import History
from .static_figures.landscape import Landscape, landscape, landscape_text
from .static_figures.lines import line_and_points, slope_at
from .static_figures.plane import Plane, plane, plane_text

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
    "plane",
    "plane_text",
    "slope_at",
]
