"""Rows of `LAYERS` (`registered.py`) for the layers of signals, images and volumes."""

from minflow import nn

SPACE = {1: (2, 4, 7), 2: (2, 4, 5, 6), 3: (2, 4, 3, 4, 4)}  # axes of space -> a shape with four channels
IMAGE_LAYERS: dict[str, list[tuple]] = {}


def add(name: str, *makers) -> None:
    """`Conv{}d` for each number of axes, made in each of these ways from the class."""
    for n, shape in SPACE.items():
        cls = getattr(nn, name.format(n), None)
        rows = [(lambda make=make, cls=cls: make(cls), shape) for make in makers] if cls is not None else []
        IMAGE_LAYERS.setdefault(name.format(n), []).extend(rows)


add("Conv{}d", lambda c: c(4, 6, 3, 2, 1, groups=2), lambda c: c(4, 2, 2, padding="same"),
    lambda c: c(4, 2, 2, padding=1, padding_mode="reflect"),
    lambda c: c(4, 2, 2, padding="same", padding_mode="circular"))
add("ConvTranspose{}d", lambda c: c(4, 2, 3, 2, 1, 1), lambda c: c(4, 6, 2, groups=2, bias=False))
add("ConstantPad{}d", lambda c: c(1, 2.0))
for kind in ("Zero", "Reflection", "Replication", "Circular"):
    add(kind + "Pad{}d", lambda c: c(2))
