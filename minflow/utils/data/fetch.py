"""Make one batch, in the caller's thread, in a worker thread or in a worker process.

A BatchMaker has everything that a worker needs: dataset, collate_fn, and the seed words of each sample's random
numbers. Read next: `workers.py`, which runs it elsewhere.
"""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from ...core.base.errors import LoaderError, MinflowError
from ...core.base.interrupts import ContextVarScope
from ...core.random import SAMPLE_GENERATOR, derive_key
from ...core.source_location import here
from .collate import default_collate
from .dataset import IterableDataset, Subset
from .scalar_random import SampleGenerator


class WorkerInfo(NamedTuple):
    """The current worker. seed: the seed of this worker in this epoch."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


WORKER: ContextVar[WorkerInfo | None] = ContextVar("worker", default=None)


class EndOfData:
    """The result of `BatchMaker.make` when an IterableDataset has no more samples; the same object in every process."""

    def __reduce__(self) -> Any:
        return "END"


END = EndOfData()


def get_worker_info() -> WorkerInfo | None:
    """Return the worker that runs this code, or None outside workers. An IterableDataset has one worker."""
    return WORKER.get()


class random_scope(ContextVarScope):
    """Context manager in which random numbers depend only on these words."""

    variable = SAMPLE_GENERATOR

    def __init__(self, *words: object):
        super().__init__()
        self.words = words

    def value(self) -> SampleGenerator:
        return SampleGenerator(*self.words)


class BatchMaker:
    """Makes batch `number` from the sample indices `indices`.

    batched: indices is a list and collate_fn gets a list of samples; otherwise both are single.
    batch_size: for an IterableDataset, whose samples have no indices (`indices` is then None).
    """

    def __init__(
        self,
        dataset: Any,
        collate_fn: Callable,
        batched: bool,
        key: int,
        epoch: int,
        batch_size: int | None,
        drop_last: bool,
    ):
        self.dataset, self.collate_fn, self.batched = dataset, collate_fn, batched
        self.key, self.epoch, self.batch_size, self.drop_last = key, epoch, batch_size, drop_last
        self.iterator: Any = None
        self.position = 0
        self.iterable = isinstance(dataset, IterableDataset)

    def with_own_dataset(self) -> BatchMaker:
        """A copy with its own dataset object, for a worker thread whose worker_init_fn may modify it, as in a process.
        The contents of the dataset are shared.
        """
        clone = copy.copy(self)
        holder: Any = copy.copy(self.dataset)
        clone.dataset = holder
        while isinstance(holder, Subset):
            holder.dataset = holder = copy.copy(holder.dataset)
        return clone

    def make(self, number: int, indices: Any) -> Any:
        """The batch; END if an IterableDataset has no more samples."""
        if self.iterable:
            samples: Any = list(itertools.islice(self.next_samples(), self.batch_size if self.batched else 1))
            if not samples or (self.batched and self.drop_last and len(samples) < (self.batch_size or 0)):
                return END
        elif not self.batched:
            samples = self.samples([indices])
        else:
            with random_scope(self.key, "loader", self.epoch, "batch", number):
                if self.collate_fn is default_collate and hasattr(self.dataset, "whole_batch"):
                    return self.dataset.whole_batch(indices)
                load_many = getattr(self.dataset, "__getitems__", None)
                samples = load_many(indices) if load_many else None
            if samples is None:
                samples = self.samples(indices)
            elif len(samples) != len(indices):
                raise LoaderError(
                    f"{type(self.dataset).__name__}.__getitems__ gave {len(samples)} samples, not {len(indices)}",
                    hint="one sample for each index, in the same order",
                )
        with random_scope(self.key, "loader", self.epoch, "batch", number):
            return self.collate_fn(samples if self.batched else samples[0])

    def samples(self, indices: Sequence) -> list:
        """Yield the samples one by one, each loaded with its own generator."""
        dataset, key, epoch, samples = self.dataset, self.key, self.epoch, []
        token = SAMPLE_GENERATOR.set(None)
        try:
            for index in indices:
                # A sampler may yield anything that the dataset accepts; integers of all types are the same index.
                name = operator.index(index) if hasattr(index, "__index__") else index
                SAMPLE_GENERATOR.set(SampleGenerator(key, "loader", epoch, name))
                samples.append(dataset[index])
        finally:
            SAMPLE_GENERATOR.reset(token)
        return samples

    def next_samples(self) -> Iterator:
        """Yield the next samples of an IterableDataset, indexed by their position."""
        while True:
            with random_scope(self.key, "loader", self.epoch, self.position):
                try:
                    if self.iterator is None:
                        self.iterator = iter(self.dataset)
                    sample = next(self.iterator)
                except StopIteration:
                    return
            self.position += 1
            yield sample

    def seed(self, *words: object) -> int:
        """A seed for other generators, such as `random` and `numpy.random` in a worker process."""
        return derive_key(self.key, "loader", self.epoch, *words)


def add_batch_note(error: BaseException, number: int, indices: Any, maker: str) -> BaseException:
    """Add a note to an error of a worker or of the dataset: the batch, and the worker that made it."""
    if isinstance(indices, Sequence) and not isinstance(indices, str):
        few = ", ".join(map(str, indices[:8])) + (", ..." if len(indices) > 8 else "")
        samples = f", samples [{few}]"
    else:
        samples = "" if indices is None else f", sample {indices}"
    if isinstance(error, MinflowError) and (
        not error.where or "threading.py:" in error.where or "process.py:" in error.where
    ):
        error.where = here()  # no line of the learner's code ran in the worker: the loop's line is the nearest
    error.add_note(f"while {maker} was making batch {number}{samples}")
    return error
