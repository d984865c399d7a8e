"""Entry point: `show(x)` draws a tensor, a graph or a module tree in a notebook and prints it in a terminal.

Also registers the renderer for `core.display.Display`. The drawing code is imported on first use, so that
`import minflow` stays fast. Read next: `show.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.base import display as core_display
from . import MAX_BOXES


def show(
    x: Any,
    *,
    values: bool = False,
    numbers: bool = False,
    images: bool = False,
    memory: bool = False,
    labels: Any = None,
    boxes: int = MAX_BOXES,
    open: bool | str | Sequence[str] = False,
    names: dict[str, Any] | None = None,
) -> None:
    """Show a Tensor, the tree of a Module, or a Graph: a picture in a notebook, text in a terminal.

    Output appears immediately, anywhere in a cell. A Tensor with one element, such as a loss, shows its tape: the
    operations that it was computed from. A larger one shows its elements as a heat map (a grid of heat maps if it has
    more than two axes) and, folded below, its tape; without a tape, because no gradient is required, only its elements.
    A repr shows only elements.

    values: draw the tape with the elements of leaves and of the caller's variables; after backward, also gradients.
    numbers, images, memory: show another aspect of a Tensor instead: only its elements; the images that it holds,
    (N, C, H, W) or similar; the memory that its tape keeps, for which operation and until when.
    labels: with images, a list or tensor with one caption for each.
    boxes: fold the picture to at most about this many boxes.
    open: open composite operations, such as layer_norm, into the operations that they consist of, in a frame with
    their name: True for all, or names of operations or paths of modules, `open="gelu"`, `open=["model.norm1"]`. They
    are not folded, unless they have more than eight times as many parts as `boxes`.
    names: name -> tensor; default: the caller's variables.
    Values of your own autograd engine can be shown as well, if they have `.data`, `.grad` and `.inputs`, a tuple of the
    values that they were computed from; `.op`, if present, is written into the box.
    Raises DTypeError if `x` cannot be shown. `picture(x)` returns the same as an object with `.save(path)`.
    """
    from .show import picture

    view = picture(
        x,
        values=values,
        numbers=numbers,
        images=images,
        memory=memory,
        labels=labels,
        boxes=boxes,
        open=open,
        names=names,
    )
    if not core_display.show_bundle(view._repr_mimebundle_):
        print(view.text)


def render(x: Any) -> dict[str, str]:
    """MIME bundle that a notebook shows for an object, without its text."""
    from .show import display_bundle

    return display_bundle(x)


core_display.register(render)
