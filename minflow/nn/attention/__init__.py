"""`flow.nn.attention`: choice of the kernel of attention, of which there is one, and flex_attention.

Read next: `flex_attention.py`; `../functional/attention.py`, the function itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from ...core.base.errors import OutOfRangeError
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.source_location import fail

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """PyTorch's kernels of scaled_dot_product_attention. MATH: products and a softmax, which is what runs here."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[None]:
    """Accept a choice of kernels in a `with` block: the results of all are the same, up to rounding."""
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not chosen or not all(isinstance(backend, SDPBackend) for backend in chosen):
        what = "sdpa_kernel: backends must be a SDPBackend or a list of them"
        fail(OutOfRangeError, what, "SDPBackend.MATH", backends=backends)
    yield


__getattr__ = _name_hints("flow.nn.attention", globals(), {"flex_attention": "flex_attention."})
