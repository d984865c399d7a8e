"""DataLoader: batches of a dataset, made in the loop itself or ahead of it by workers. Read next: `workers.py`."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

from ...core.backend import is_available
from ...core.base import events
from ...core.base.errors import LoaderError
from ...core.base.interrupts import uninterrupted
from ...core.random import Generator, generator_or_default
from ...core.source_location import fail
from .collate import default_collate, default_convert, pinned
from .dataset import IterableDataset
from .fetch import END, BatchMaker, add_batch_note, get_worker_info as get_worker_info
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .workers import WORKER_POOLS


class DataLoader:
    """Iterates over a dataset in batches.

    dataset: has `__getitem__` and `__len__`, or is an IterableDataset.
    batch_size: samples per batch; None gives single samples.  drop_last: drop a last batch that is not full.
    shuffle: a new order in each epoch.  sampler, batch_sampler: custom order, or custom batches.
    num_workers: workers that make batches ahead of the loop, `prefetch_factor` each; with 0 the loop makes them.
    workers: "thread" (no copies; good while NumPy does the work) or "process" (for slow Python code).
    collate_fn: makes a batch from a list of samples.  worker_init_fn: called with the worker's index in each worker.
    timeout: seconds that a worker may take for a batch; 0 for no limit. After that, a process is killed; a thread,
    which cannot be killed, finishes its sample and then ends.
    pin_memory: yield tensors in pinned memory, if there is a GPU: see `Tensor.pin_memory`.
    pin_memory_device, multiprocessing_context, persistent_workers, in_order: accepted and ignored.
    generator: source of the order and of random transforms (default: the global one, which manual_seed resets).

    Each iteration takes one counter of the generator, its epoch, and one more if the order is random. Random numbers
    that minflow draws (transforms, flow.rand) while sample i is loaded depend only on (seed, "loader", epoch, i):
    workers do not change results. An IterableDataset has at most one worker. Raises LoaderError for contradictory
    arguments.
    """

    def __init__(
        self,
        dataset: Any,
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
        self._iterable = isinstance(dataset, IterableDataset)
        if isinstance(dataset, type):
            fail(LoaderError, f"DataLoader: {dataset.__name__} is a class, not a dataset", f"{dataset.__name__}(...)")
        if workers not in WORKER_POOLS:
            what = f"DataLoader: workers must be 'thread' or 'process', got {workers!r}"
            fail(LoaderError, what, 'workers="thread" or workers="process"')
        if not (
            isinstance(num_workers, int)
            and num_workers >= 0
            and isinstance(timeout, int | float)
            and 0 <= timeout <= threading.TIMEOUT_MAX
            and (prefetch_factor is None or (isinstance(prefetch_factor, int) and prefetch_factor >= 1))
        ):
            fail(
                LoaderError,
                "DataLoader: num_workers must be an integer of at least 0, timeout at least 0 seconds, "
                "prefetch_factor an integer of at least 1",
                "num_workers=2, timeout=10",
                num_workers=num_workers,
                timeout=timeout,
                prefetch_factor=prefetch_factor,
            )
        if sampler is not None and shuffle:
            what = "DataLoader: shuffle=True and a sampler both determine the order of samples"
            fail(LoaderError, what, "one of them")
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            what = "DataLoader: an IterableDataset determines the order of its samples"
            fail(LoaderError, what, "shuffle inside its __iter__")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            what = "DataLoader: a batch_sampler excludes batch_size, shuffle, sampler and drop_last"
            fail(LoaderError, what, "one or the other")
        if batch_size is None and drop_last:
            fail(LoaderError, "DataLoader: drop_last=True needs batches, and batch_size is None", "drop_last=False")
        if not self._iterable and sampler is None and batch_sampler is None and not hasattr(dataset, "__len__"):
            what = f"DataLoader: {type(dataset).__name__} has no __len__, so the range of its indices is not known"
            fail(LoaderError, what, "def __len__(self): return ..., or make it an IterableDataset")
        if sampler is None and not self._iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            checked = BatchSampler(sampler if sampler is not None else (), batch_size, drop_last)
            batch_sampler = None if self._iterable else checked
        self.dataset, self.batch_size, self.drop_last, self.num_workers, self.timeout = (
            dataset,
            batch_size,
            drop_last,
            num_workers,
            timeout,
        )
        self.sampler: Any = sampler
        self.batch_sampler: Any = batch_sampler
        self.generator = generator
        self._batched = batch_sampler is not None or batch_size is not None
        self.collate_fn = collate_fn or (default_collate if self._batched else default_convert)
        self.worker_init_fn, self.workers, self.prefetch_factor = worker_init_fn, workers, prefetch_factor or 2
        self.pin_memory, self.persistent_workers = pin_memory, persistent_workers
        self.multiprocessing_context, self.pin_memory_device = multiprocessing_context, pin_memory_device
        self.in_order = in_order

    def __iter__(self) -> Iterator[Any]:
        generator = generator_or_default(self.generator)
        maker = BatchMaker(
            self.dataset,
            self.collate_fn,
            self._batched,
            generator.key,
            generator.take(1),
            self.batch_size,
            self.drop_last,
        )
        # The order is drawn here, not at the first batch, so that code in between cannot change it.
        batches = (
            itertools.repeat(None)
            if self._iterable
            else iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        )
        found = self._iterate_prefetched(maker, batches) if self.num_workers else self._iterate_inline(maker, batches)
        return map(pinned, found) if self.pin_memory and is_available("cuda") else found

    def _iterate_inline(self, maker: BatchMaker, batches: Iterator) -> Iterator[Any]:
        """The batches, made when they are requested."""
        started = perf_counter()
        for number, indices in enumerate(batches):
            try:
                batch = maker.make(number, indices)
            except Exception as error:
                raise add_batch_note(error, number, indices, "the DataLoader")  # noqa: B904 (the same error)
            if batch is END:
                break
            yield batch
        self._emit_passed(started)

    def _iterate_prefetched(self, maker: BatchMaker, batches: Iterator) -> Iterator[Any]:
        """The batches, made by workers before they are requested."""
        count = 1 if self._iterable else self.num_workers
        finished, started = False, perf_counter()
        pool: Any = None
        try:
            with uninterrupted():  # Ctrl-C must come before the workers start, or after `pool` knows them
                pool = WORKER_POOLS[self.workers](maker, count, self.worker_init_fn, self.timeout, self.prefetch_factor)
            numbered = enumerate(batches)
            pending: deque[tuple[int, Any]] = deque()
            sampler_error: Exception | None = None

            def submit(upto: int) -> None:
                nonlocal sampler_error
                while len(pending) < upto and sampler_error is None:
                    try:
                        number, indices = next(numbered)
                    except StopIteration:
                        return
                    except Exception as error:  # raised by the sampler: reported in turn, after the batches before it
                        sampler_error = error
                        return
                    pending.append((number, indices))
                    pool.submit(number % count, (number, indices))

            submit(count * pool.in_flight)
            while pending:
                number, indices = pending.popleft()
                ok, batch = pool.result(number % count, number)
                if not ok:
                    raise add_batch_note(batch, number, indices, f"{pool.kind} {number % count}")
                if batch is END:
                    break
                submit(count * pool.in_flight)
                yield batch
                del batch  # do not keep it alive while waiting for the next one
            if sampler_error is not None:
                raise sampler_error
            finished = not pending
            self._emit_passed(started)
        except KeyboardInterrupt:
            if pool is not None:
                pool.join_timeout = 0.0
            raise
        finally:
            if pool is not None:
                pool.close(finished)

    def _emit_passed(self, started: float) -> None:
        """Notify listeners that all batches were yielded."""
        if events.LoaderPassed in events.LISTENERS:
            events.emit(events.LoaderPassed(self, started))

    def __len__(self) -> int:
        """The number of batches."""
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __repr__(self) -> str:
        how = f", num_workers={self.num_workers}, workers={self.workers!r}" if self.num_workers else ""
        return f"DataLoader({type(self.dataset).__name__}, batch_size={self.batch_size}{how})"
