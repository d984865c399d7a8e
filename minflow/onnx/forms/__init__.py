"""The forms of our ops in ONNX, one file for each family. Importing this lists all of them in FORMS."""

from . import (
    arithmetic as arithmetic,
    convolution as convolution,
    losses as losses,
    norm as norm,
    pools as pools,
    recurrent as recurrent,
    windows as windows,
)
