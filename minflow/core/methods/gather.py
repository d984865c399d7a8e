"""Methods that gather elements by index or mask: `x.gather(1, index)`, `x.masked_select(mask)`.

`x[index]` is in `../tensor.py`.
"""

from __future__ import annotations

from .. import functions as F
from ..messages.suggestions import hint_methods
from .scatter import Scattering


@hint_methods
class Gathering(Scattering):
    """Gathering and scattering by index."""

    def gather(self, dim, index, *, sparse_grad=False):
        return F.gather(self, dim, index)

    def scatter(self, dim, index, src=None, *, value=None, reduce=None):
        return F.scatter(self, dim, index, src, value=value, reduce=reduce)

    def scatter_add(self, dim, index, src):
        return F.scatter_add(self, dim, index, src)

    def index_select(self, dim, index):
        return F.index_select(self, dim, index)

    def index_add(self, dim, index, source, *, alpha=1):
        return F.index_add(self, dim, index, source, alpha=alpha)

    def index_copy(self, dim, index, source):
        return F.index_copy(self, dim, index, source)

    def index_fill(self, dim, index, value):
        return F.index_fill(self, dim, index, value)

    def masked_select(self, mask):
        return F.masked_select(self, mask)

    def nonzero(self, as_tuple=False):
        return F.nonzero(self, as_tuple)

    def argwhere(self):
        return F.nonzero(self)

    def take_along_dim(self, indices, dim=None):
        return F.take_along_dim(self, indices, dim)
