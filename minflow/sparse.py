"""Sparse tensors on dense storage (`flow.sparse`), implemented in `core/functions/sparse.py`."""

from .core.functions.sparse import (
    addmm as addmm,
    log_softmax as log_softmax,
    make_sparse_type as _typed,
    mm as mm,
    softmax as softmax,
    sum as sum,
)
from .core.messages.suggestions import name_hints as _name_hints

BoolTensor, ByteTensor, CharTensor = _typed("BoolTensor"), _typed("ByteTensor"), _typed("CharTensor")
ShortTensor, IntTensor, LongTensor = _typed("ShortTensor"), _typed("IntTensor"), _typed("LongTensor")
HalfTensor, FloatTensor, DoubleTensor = _typed("HalfTensor"), _typed("FloatTensor"), _typed("DoubleTensor")
BFloat16Tensor = _typed("BFloat16Tensor")

__getattr__ = _name_hints("flow.sparse", globals())
