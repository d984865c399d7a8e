"""Samplers: the order of a dataset's samples, and how they are grouped into batches.

A random sampler takes the next counter of its generator for each iteration, at `iter(sampler)` on the caller's thread.
Read next: `loader.py`.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterable, Iterator, Sequence
from types import GenericAlias
from typing import Any

from ...core.backend import namespace
from ...core.base.errors import LoaderError
from ...core.host import HostArray
from ...core.host.float_warnings import silent
from ...core.random import Generator
from ...core.source_location import fail
from ...distributed import get_rank, get_world_size
from .scalar_random import random_words64


def permutation(n: int, generator: Generator | None = None) -> HostArray:
    """0 to n - 1 in random order, `int64[n]`: sorted by random words of 64 bits."""
    return random_words64(n, generator).argsort(kind="stable")


class Sampler:
    """Yields indices of samples: a subclass defines `__iter__()` and `__len__()`. Annotations name `Sampler[int]`."""

    __class_getitem__: Any = classmethod(GenericAlias)

    def __init__(self, data_source: Any = None):
        self.data_source = data_source

    def __iter__(self) -> Iterator:
        fail(LoaderError, f"{type(self).__name__} has no __iter__", "def __iter__(self): return iter([3, 1, 2])")


class SequentialSampler(Sampler):
    """0, 1, 2, ..., in order."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All samples in random order; with `replacement`, `num_samples` independent draws."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        super().__init__(data_source)
        self.replacement, self._num_samples, self.generator = replacement, num_samples, generator
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            what = f"RandomSampler: num_samples must be positive, got {num_samples}"
            fail(LoaderError, what, "a positive number of samples")

    @property
    def num_samples(self) -> int:
        """Number of indices that are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, count = len(self.data_source), self.num_samples
        if count and not n:
            fail(LoaderError, "RandomSampler: the dataset is empty", "a dataset with samples")
        if self.replacement:
            return iter((random_words64(count, self.generator) % n).tolist())
        rounds = [permutation(n, self.generator).tolist() for _ in range(-(-count // n))] if n else []
        return itertools.islice(itertools.chain.from_iterable(rounds), count)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        super().__init__()
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[i] for i in permutation(len(self.indices), self.generator).tolist()])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """`num_samples` indices, i with probability proportional to `weights[i]`, with or without replacement."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ):
        super().__init__()
        xp = namespace()
        self.weights = xp.asarray(weights, "float64")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator
        if (
            self.weights.ndim != 1
            or not xp.isfinite(self.weights).all()
            or (self.weights < 0).any()
            or not self.weights.any()
        ):
            what = "WeightedRandomSampler: weights must be finite, not negative, and not all 0"
            fail(LoaderError, what, "one weight per sample")
        if not replacement and num_samples > (positive := xp.count_nonzero(self.weights)):
            fail(
                LoaderError,
                f"WeightedRandomSampler: {num_samples} samples without replacement, but "
                f"{positive} have a weight above 0",
                "replacement=True",
            )

    def __iter__(self) -> Iterator[int]:
        if self.replacement:
            unit = (random_words64(self.num_samples, self.generator) >> 11) * 2.0**-53
            ends = self.weights.cumsum()
            last = int(self.weights.nonzero()[0][-1])  # rounding may move a draw past the end
            return iter(ends.searchsorted(unit * ends[-1], side="right").clip(max=last).tolist())
        # The indices with the smallest of independent exponential times with these rates (Efraimidis & Spirakis 2006).
        unit = ((random_words64(len(self.weights), self.generator) >> 11) + 0.5) * 2.0**-53
        with silent():
            times = -namespace().log(unit) / self.weights
        return iter(times.argsort(kind="stable")[: self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(Sampler):
    """The samples for process `rank` of `num_replicas`: every num_replicas-th sample of a common order.

    The order is that of the dataset, or a shuffle from `seed` and the epoch (call `set_epoch(n)` before each one),
    which is the same in all processes. All processes get equally many: the first samples are repeated, or with
    drop_last the last ones are dropped. Without rank and num_replicas they are those of this rank.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        super().__init__(dataset)
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, shuffle, seed, drop_last, 0
        self.num_replicas = get_world_size() if num_replicas is None else num_replicas
        self.rank = get_rank() if rank is None else rank
        if (
            not isinstance(self.num_replicas, int)
            or not isinstance(self.rank, int)
            or not 0 <= self.rank < self.num_replicas
        ):
            fail(
                LoaderError,
                f"DistributedSampler: rank must be below {self.num_replicas}, the number of processes, got {self.rank}",
                "0 <= rank < num_replicas",
                rank=self.rank,
                num_replicas=self.num_replicas,
            )

    @property
    def num_samples(self) -> int:
        """The number of indices of this process."""
        count = len(self.dataset)
        return count // self.num_replicas if self.drop_last else -(-count // self.num_replicas)

    @property
    def total_size(self) -> int:
        """The number of indices of all processes."""
        return self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = permutation(count, Generator(self.seed + self.epoch)).tolist() if self.shuffle else list(range(count))
        repeated = order * -(-self.total_size // max(count, 1))
        return iter(repeated[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Use another shuffle from the next iteration on."""
        self.epoch = epoch


class BatchSampler(Sampler):
    """Lists of `batch_size` indices from another sampler; drop_last drops a last, shorter one."""

    def __init__(self, sampler: Iterable, batch_size: int, drop_last: bool = False):
        super().__init__()
        if not isinstance(batch_size, int | numbers.Integral) or isinstance(batch_size, bool) or batch_size <= 0:
            fail(LoaderError, f"batch_size must be a positive integer, got {batch_size!r}", "batch_size=64")
        self.sampler, self.batch_size, self.drop_last = sampler, int(batch_size), drop_last

    def __iter__(self) -> Iterator[list]:
        return self._batches(iter(self.sampler))  # the inner sampler draws now, not at the first batch

    def _batches(self, numbers: Iterator) -> Iterator[list]:
        """The indices, in lists of `batch_size`."""
        batch = []
        for number in numbers:
            batch.append(number)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]  # Python's error if it has no length
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
