"""Target of a compilation: the platforms whose kernels its plan uses, and the passes that create calls for them.

Must not know any platform. Read next: `plan_cache.py`, `platforms/targets.py`, which chooses a target.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..core.kernels import HOST_PLATFORMS
from .passes import Pass, decompose, reduce_memory
from .passes.decomposition import decompose_for


class Target(NamedTuple):
    """platforms: names of platforms, in the order in which their kernels are tried.  passes: passes that are not exact
    and that these platforms need; without any, results have the bits of eager code.
    """

    platforms: tuple[str, ...]
    passes: tuple[Pass, ...] = ()

    def insert_passes(self, passes: Iterable[Pass]) -> list[Pass]:
        """Insert the passes of this target before `reduce_memory`, which orders the nodes that they create, and let
        `decompose` keep the composite ops for which its platforms have kernels.
        """
        passes = [decompose_for(self.platforms) if step is decompose else step for step in passes]
        at = passes.index(reduce_memory) if reduce_memory in passes else len(passes)
        return [*passes[:at], *self.passes, *passes[at:]]


HOST = Target(HOST_PLATFORMS)  # no compiled kernels
