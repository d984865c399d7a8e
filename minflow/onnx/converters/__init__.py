"""Forms of our ops in ONNX, in one independent module per family. Importing this package registers all in FORMS."""

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
