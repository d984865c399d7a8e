"""The forms of our ops in ONNX, one file for each family, which is read alone. Importing this lists all of them
in FORMS."""

from . import (
    arithmetic as arithmetic,
    compare as compare,
    convolution as convolution,
    index as index,
    losses as losses,
    norm as norm,
    pools as pools,
    products as products,
    recurrent as recurrent,
    reduce as reduce,
    refused as refused,
    shape as shape,
)
