"""Converters of minflow ops to ONNX, one module per family. Importing this package registers all of them."""

from . import (
    activations as activations,
    arithmetic as arithmetic,
    compare as compare,
    convolution as convolution,
    formulas as formulas,
    index as index,
    losses as losses,
    norm as norm,
    pools as pools,
    products as products,
    recurrent as recurrent,
    reduce as reduce,
    resizing as resizing,
    shape as shape,
    unsupported as unsupported,
)

formulas.register_formulas()  # after all others
