"""Legacy `flow.random`: bernoulli, shuffle and the permutation behind it.

It also has the generator state of PyTorch's module of the same name. In a job every step draws new numbers. seed: use a
separate stream, the same in every run. Read next: `../core/random.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core import functions as F
from ...core.functions.arguments import to
from ...core.messages.suggestions import missing_names
from ...core.ops import index as i
from ...core.random import (
    Generator,
    get_rng_state as get_rng_state,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    seed as seed,
    set_rng_state as set_rng_state,
)
from ...core.spec import as_dtype, int32
from .op_name import folded, public, takes_name

if TYPE_CHECKING:
    from ...core.spec import DType
    from ...core.tensor import Tensor


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: str = "cuda") -> Iterator[None]:
    """Context manager: restore the state of the random numbers at the end of the block. One state serves all devices,
    so `devices` changes nothing.
    """
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


def source(seed: int | None) -> Generator | None:
    return None if seed is None else Generator(seed)


@partial(takes_name, default="Bernoulli")
def bernoulli(x: Tensor, seed: int | None = None, dtype: DType | None = None) -> Tensor:
    """1 with the probability given by each element of x, else 0. dtype: that of x by default."""
    drawn = F.bernoulli(x, generator=source(seed))
    return drawn if dtype is None else to(drawn, as_dtype(dtype))


@takes_name
def generate_random_batch_permutation_indices(value: Any, seed: int | None = None) -> Tensor:
    """`int32 (n,)`: 0 to n - 1 in random order, n the size of the first axis."""
    return F.randperm_of(value.spec.shape[0], int32, source(seed))


@folded
def shuffle(value: Any, seed: int | None = None) -> Tensor:
    """The slices along the first axis in random order."""
    return i.take(value, generate_random_batch_permutation_indices(value, seed), axis=0)


__dir__ = public(globals())
__getattr__ = missing_names("flow.random", globals())
