"""DataLoader: batches of a dataset, made in the loop itself or ahead of it by workers. Read next: `workers.py`."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

from ...core.base import events
from ...core.base.errors import LoaderError
from ...core.base.interrupts import uninterrupted
from ...core.random import Generator, source
from ...core.source_location import fail
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .fetch import END, Recipe, noted
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .workers import KINDS


class DataLoader:
    """Walks through a dataset in batches.

    dataset: has `__getitem__` and `__len__`, or is an IterableDataset.
    batch_size: samples per batch; None gives single samples.  drop_last: leave out a last batch that is not full.
    shuffle: another order each time.  sampler, batch_sampler: the order, or the batches, of one's own.
    num_workers: how many workers make batches ahead of the loop, `prefetch_factor` each; 0 makes them in the loop.
    workers: "thread" (no copies; good while numpy does the work) or "process" (for Python code that takes long).
    collate_fn: makes a batch of a list of samples.  worker_init_fn: called with its number in each worker.
    timeout: in seconds, how long a worker may take for a batch; 0 is forever. After that, a process is ended; a thread,
    which nothing can end, goes on with its sample alone, and then ends.
    pin_memory, pin_memory_device, multiprocessing_context, persistent_workers, in_order: accepted and without effect.
    generator: where order and random transforms come from (by default flow's own, which manual_seed starts again).

    Each walk takes one counter of the generator, its epoch, and one more where the order is random. What minflow draws
    (transforms, flow.rand) while sample i is loaded depends on (seed, "loader", epoch, i) alone: workers change no bit.
    An IterableDataset has at most one worker. Raises LoaderError for arguments that exclude each other.
    """

    def __init__(
        self,
        dataset,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable | None = None,
        batch_sampler: Iterable | None = None,
        num_workers: int = 0,
        collate_fn: Callable | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        workers: str = "thread",
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        self.iterable = isinstance(dataset, IterableDataset)
        if isinstance(dataset, type):
            fail(LoaderError, f"DataLoader: {dataset.__name__} is a class, not a dataset", f"{dataset.__name__}(...)")
        if workers not in KINDS:
            fail(LoaderError, f"DataLoader: there are no workers {workers!r}", 'workers="thread" or workers="process"')
        if not (
            isinstance(num_workers, int)
            and num_workers >= 0
            and isinstance(timeout, int | float)
            and 0 <= timeout <= threading.TIMEOUT_MAX
            and (prefetch_factor is None or (isinstance(prefetch_factor, int) and prefetch_factor >= 1))
        ):
            fail(
                LoaderError,
                "DataLoader: num_workers is an integer from 0, timeout seconds from 0, "
                "prefetch_factor an integer from 1",
                "num_workers=2, timeout=10",
                num_workers=num_workers,
                timeout=timeout,
                prefetch_factor=prefetch_factor,
            )
        if sampler is not None and shuffle:
            fail(
                LoaderError,
                "DataLoader: shuffle=True and a sampler both say in which order samples come",
                "one of them",
            )
        if self.iterable and (shuffle or sampler is not None or batch_sampler is not None):
            fail(
                LoaderError,
                "DataLoader: the samples of an IterableDataset come in its own order",
                "shuffle inside its __iter__",
            )
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            fail(
                LoaderError,
                "DataLoader: a batch_sampler excludes batch_size, shuffle, sampler and drop_last",
                "one or the other",
            )
        if batch_size is None and drop_last:
            fail(
                LoaderError,
                "DataLoader: without batches (batch_size=None) there is no last one to drop",
                "drop_last=False",
            )
        if not self.iterable and sampler is None and batch_sampler is None and not hasattr(dataset, "__len__"):
            fail(
                LoaderError,
                f"DataLoader: {type(dataset).__name__} has no __len__, so nobody knows which samples it has",
                "def __len__(self): return ..., or make it an IterableDataset",
            )
        if sampler is None and not self.iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            checked = BatchSampler(sampler if sampler is not None else (), batch_size, drop_last)
            batch_sampler = None if self.iterable else checked
        self.dataset, self.batch_size, self.drop_last, self.num_workers, self.timeout = (
            dataset,
            batch_size,
            drop_last,
            num_workers,
            timeout,
        )
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        self.batched = batch_sampler is not None or batch_size is not None
        self.collate_fn = collate_fn or (default_collate if self.batched else default_convert)
        self.worker_init_fn, self.workers, self.prefetch_factor = worker_init_fn, workers, prefetch_factor or 2
        self.pin_memory, self.persistent_workers = pin_memory, persistent_workers

    def __iter__(self) -> Iterator[Any]:
        generator = source(self.generator)
        recipe = Recipe(
            self.dataset,
            self.collate_fn,
            self.batched,
            generator.key,
            generator.take(1),
            self.batch_size,
            self.drop_last,
        )
        # The order is drawn here, not at the first batch, so that it does not depend on what happens in between.
        batches = (
            itertools.repeat(None)
            if self.iterable
            else iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        )
        return self.ahead(recipe, batches) if self.num_workers else self.in_loop(recipe, batches)

    def in_loop(self, recipe: Recipe, batches: Iterator) -> Iterator[Any]:
        """The batches, fetched when they are asked for."""
        started = perf_counter()
        for number, indices in enumerate(batches):
            try:
                batch = recipe.make(number, indices)
            except Exception as error:
                raise noted(error, number, indices, "the DataLoader")  # noqa: B904 (it is the same error)
            if batch is END:
                break
            yield batch
        self.passed(started)

    def ahead(self, recipe: Recipe, batches: Iterator) -> Iterator[Any]:
        """The batches, fetched by workers before they are asked for."""
        count = 1 if self.iterable else self.num_workers
        crew, finished, started = None, False, perf_counter()
        try:
            with uninterrupted():  # Ctrl-C comes before the workers are started, or when `crew` knows them
                crew = KINDS[self.workers](recipe, count, self.worker_init_fn, self.timeout, self.prefetch_factor)
            numbered, under_way, broken = enumerate(batches), deque(), None

            def submit(upto: int) -> None:
                nonlocal broken
                while len(under_way) < upto and broken is None:
                    try:
                        number, indices = next(numbered)
                    except StopIteration:
                        return
                    except Exception as error:  # of the sampler: raised when its turn comes
                        broken = error
                        return
                    under_way.append((number, indices))
                    crew.submit(number % count, (number, indices))

            submit(count * crew.in_flight)
            while under_way:
                number, indices = under_way.popleft()
                good, batch = crew.result(number % count, number)
                if not good:
                    raise noted(batch, number, indices, f"{crew.kind} {number % count}")
                if batch is END:
                    break
                submit(count * crew.in_flight)
                yield batch
                del batch  # not kept while the next one is waited for
            if broken is not None:
                raise broken
            finished = not under_way
            self.passed(started)
        except KeyboardInterrupt:
            if crew is not None:
                crew.patience = 0.0
            raise
        finally:
            if crew is not None:
                crew.close(finished)

    def passed(self, started: float) -> None:
        """Tell who listens that all batches were given."""
        if events.LoaderPassed in events.LISTENERS:
            events.emit(events.LoaderPassed(self, started))

    def __len__(self) -> int:
        """The number of batches."""
        if not self.iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __repr__(self) -> str:
        how = f", num_workers={self.num_workers}, workers={self.workers!r}" if self.num_workers else ""
        return f"DataLoader({type(self.dataset).__name__}, batch_size={self.batch_size}{how})"
