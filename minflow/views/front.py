"""The front door: `show(x)` draws a tensor, a graph or a module tree in a notebook and prints it in a terminal.

Also the renderer behind `core.display.Display`. What draws is imported when something is first shown, so that
`import minflow` is quick. Read next: `show.py`.
"""

from __future__ import annotations

from typing import Any

from ..core.base import display as core_display
from . import BOXES


def show(
    x: Any,
    *,
    values: bool = False,
    numbers: bool = False,
    images: bool = False,
    memory: bool = False,
    labels: Any = None,
    boxes: int = BOXES,
    names: dict[str, Any] | None = None,
) -> None:
    """Show a Tensor, the tree of a Module, or a Graph: a picture in a notebook, text in a terminal.

    A Tensor of one number, such as a loss, shows its tape: what it was computed from. One of several shows its numbers
    as a heat map, more axes than two as a grid of such maps, and below them its tape, folded; one without a tape, of
    which no gradient is wanted, its numbers alone. A repr shows numbers only.

    It shows at once, wherever in a cell it stands. Of a Tensor also, instead: numbers, the numbers alone;  images, the
    images that it holds, (N, C, H, W) or the like;  memory, what its tape keeps in memory, for which operation and
    until when.
    labels: with images, a list or tensor of what to write under them, one for each.
    values: the tape with the numbers of leaves and of the caller's variables, and after backward with their gradients.
    What an engine of your own computed has a tape too, if it has `.data`, `.grad` and `.inputs`, a tuple of what it was
    computed from; `.op`, if there, is written into its box.
    boxes: fold the picture to so many boxes.  names: name -> tensor; default: the variables of the caller.
    Raises DTypeError for what has no picture. `picture(x)` gives the same as an object with `.save(path)`.
    """
    from .show import learner_tensors, tensors_in, view_of

    view = view_of(
        x, values, boxes, learner_tensors() if names is None else tensors_in(names), numbers, images, memory, labels
    )
    if not core_display.show_bundle(view._repr_mimebundle_):
        print(view.text)


def render(x: Any) -> dict[str, str]:
    """What a notebook shows of an object besides its text."""
    from .show import shown

    return shown(x)


core_display.register(render)
