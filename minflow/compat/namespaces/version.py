"""`flow.version`: the version of minflow; those of CUDA and ROCm are None.

When `import torch` returns minflow, the version is that of the PyTorch whose names it follows: see `../names.py`.
"""

import re as _re
from typing import Any as _Any

from ...core.base import __version__ as __version__
from ...core.messages.suggestions import missing_names as _missing_names

FOLLOWED = {"oneflow": "1.0.0", "torch": "2.13.0"}  # library -> the version whose names minflow follows


class TorchVersion(str):
    """A version that compares with texts and tuples by its numbers: `TorchVersion("2.13.0") > "1.8"`."""

    def __lt__(self, other: _Any) -> bool:
        return _numbers(self) < _numbers(other)

    def __le__(self, other: _Any) -> bool:
        return _numbers(self) <= _numbers(other)

    def __gt__(self, other: _Any) -> bool:
        return _numbers(self) > _numbers(other)

    def __ge__(self, other: _Any) -> bool:
        return _numbers(self) >= _numbers(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str | tuple) and _numbers(self) == _numbers(other)

    __hash__ = str.__hash__


def _numbers(version: _Any) -> tuple[int, ...]:
    """The release of a version, without zeros at its end: (2, 13) for "2.13.0+cpu" and for (2, 13, 0)."""
    text = version if isinstance(version, str) else ".".join(map(str, version))
    release = _re.match(r"[0-9.]*", text.removeprefix("v"))
    parts = [int(n) for n in release.group().split(".") if n] if release else []
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


cuda = hip = xpu = rocm = None
debug = False
git_version = "unknown"

__all__ = ["TorchVersion", "__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
__getattr__ = _missing_names("flow.version", globals())
