"""The public name of the figures: `from minflow_widgets.figures import History, confusion_matrix`.

Read next: `static_figures/figures.py`.
"""

from .static_figures.figures import (
    History, activations, activations_text, confusion_counts, confusion_matrix, confusion_text, filters,
)

__all__ = ["History", "activations", "activations_text", "confusion_counts", "confusion_matrix", "confusion_text", "filters"]
