"""Datasets: access to samples by index, or by iteration.

`__getitems__(indices)` may return many samples at once, as in PyTorch; `whole_batch(indices)` may return the result
that default_collate would give. Both are optimizations that do not change results. Read next: `fetch.py`, which uses
them.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...core.base.errors import LoaderError, OutOfRangeError, ShapeError
from ...core.functions.creation import from_numpy
from ...core.host import HostArray, host_array
from ...core.source_location import fail
from ...core.spec import cpu
from ...core.tensor import Tensor
from .sampler import permutation

if TYPE_CHECKING:
    from ...core.random import Generator


class Dataset:
    """A dataset with indexed samples: a subclass defines `__getitem__(index)` and `__len__()`."""

    def __getitem__(self, index: Any) -> Any:
        what = f"{type(self).__name__} has no __getitem__"
        fail(LoaderError, what, "def __getitem__(self, index): return image, label")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """A dataset whose samples come in sequence: a subclass defines `__iter__()`."""

    def __iter__(self) -> Iterator:
        fail(LoaderError, f"{type(self).__name__} has no __iter__", "def __iter__(self): yield image, label")

    def __getitem__(self, index: Any) -> Any:
        what = f"{type(self).__name__} is an IterableDataset: its samples have no indices"
        fail(LoaderError, what, "for sample in dataset: ...")

    def __add__(self, other: Dataset) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Tensors (or arrays) of the same length: sample i is the tuple of their rows i."""

    def __init__(self, *tensors: Tensor):
        self.tensors = tuple(from_numpy(t) if isinstance(t, HostArray) else t for t in tensors)
        if not tensors:
            fail(LoaderError, "TensorDataset needs at least one tensor", "TensorDataset(images, labels)")
        for i, t in enumerate(self.tensors):
            if not isinstance(t, Tensor) or t.ndim == 0:
                what = f"TensorDataset: argument {i} is not a tensor with rows"
                fail(LoaderError, what, "flow.tensor(...)", argument=t)
        if len({len(t) for t in self.tensors}) > 1:
            named = {f"tensor {i}": t for i, t in enumerate(self.tensors)}
            fail(
                ShapeError,
                f"TensorDataset: the tensors have {', '.join(str(len(t)) for t in self.tensors)} rows, not one number",
                "one row per sample in each of them",
                **named,
            )

    def __getitem__(self, index: Any) -> Any:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __repr__(self) -> str:
        return f"TensorDataset({', '.join(str(t.spec) for t in self.tensors)})"

    def whole_batch(self, indices: Sequence[int]) -> list[Tensor]:
        """Return the rows `indices` of each tensor: one gather instead of many slices and a stack."""
        where = check_indices(indices, len(self))
        return [
            from_numpy(t.numpy().take(where, axis=0))
            if t.__class__ is Tensor and t.device is cpu and not t.requires_grad
            else t[from_numpy(where).to(t.device)]
            for t in self.tensors
        ]


def check_indices(indices: Sequence[int], length: int) -> HostArray:
    """Convert sample indices, which may be negative, to `int64[n]` in [0, length)."""
    where = host_array(indices, "int64")
    if where.size and (where.min() < -length or where.max() >= length):
        wrong = next(int(i) for i in where if not -length <= i < length)
        what = f"there is no sample {wrong} in a dataset of {length}"
        fail(OutOfRangeError, what, "a sampler must yield indices below len(dataset)")
    return where % length if where.size and where.min() < 0 else where


class ConcatDataset(Dataset):
    """Several datasets, one after the other."""

    def __init__(self, datasets: Any):
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(d, IterableDataset) for d in self.datasets):
            what = "ConcatDataset takes at least one dataset, and no IterableDataset"
            fail(LoaderError, what, "ConcatDataset([first, second])")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> Any:
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            what = f"there is no sample {index} in a dataset of {len(self)}"
            fail(OutOfRangeError, what, "an index below len(dataset)")
        part = bisect.bisect_right(self.cumulative_sizes, number)
        return self.datasets[part][number - (self.cumulative_sizes[part - 1] if part else 0)]


class ChainDataset(IterableDataset):
    """Several iterable datasets, one after the other."""

    def __init__(self, datasets: Any):
        self.datasets = list(datasets)
        for i, each in enumerate(self.datasets):
            if not isinstance(each, IterableDataset):
                what = f"ChainDataset: entry {i} must be an IterableDataset, got a {type(each).__name__}"
                fail(LoaderError, what, "ConcatDataset for datasets with indexed samples", entry=i)

    def __iter__(self) -> Iterator:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(each) for each in self.datasets)


class StackDataset(Dataset):
    """Zip datasets of the same length: sample i is the tuple of their samples i, or, with keywords, a dict of them."""

    def __init__(self, *args: Any, **kwargs: Any):
        if bool(args) == bool(kwargs):
            what = "StackDataset takes at least one dataset, either all by position or all by keyword"
            fail(LoaderError, what, "StackDataset(images, labels) or StackDataset(image=images, label=labels)")
        self.datasets = args or kwargs
        lengths = {len(each) for each in self._parts()}
        if len(lengths) > 1:
            counts = ", ".join(map(str, sorted(lengths)))
            what = f"StackDataset: the datasets have {counts} samples, not one number"
            fail(LoaderError, what, "datasets of the same length")

    def _parts(self) -> list:
        """The datasets, in order."""
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def __len__(self) -> int:
        return len(self._parts()[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: each[index] for name, each in self.datasets.items()}
        return tuple(each[index] for each in self.datasets)


class Subset(Dataset):
    """The samples of a dataset at `indices`, in that order."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getattr__(self, name: str) -> Any:
        # Only the batch methods that the dataset itself has.
        if name in ("__getitems__", "whole_batch") and "dataset" in self.__dict__:
            many = getattr(self.dataset, name)
            return lambda indices: many([self.indices[i] for i in indices])
        raise AttributeError(f"'Subset' object has no attribute '{name}'")


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset]:
    """Split a dataset into random, disjoint parts. lengths: numbers of samples, or fractions that add up to 1.

    Takes one counter of the generator. Raises LoaderError if the lengths do not add up to the whole.
    """
    count = len(dataset)
    sizes: list[Any] = list(lengths)
    if all(0 <= n <= 1 for n in sizes) and abs(sum(sizes) - 1) < 1e-6:
        sizes = [int(count * share) for share in sizes]
        for i in range(count - sum(sizes)):  # the samples left over by rounding go to the first parts, one each
            sizes[i % len(sizes)] += 1
    if sum(sizes) != count or any(n < 0 for n in sizes):
        what = f"random_split: the lengths {list(lengths)} add up to {sum(sizes)}, and the dataset has {count} samples"
        hint = "lengths that add up to len(dataset), or fractions that add up to 1, such as [0.8, 0.2]"
        fail(LoaderError, what, hint)
    order = permutation(count, generator).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - n : end]) for n, end in zip(sizes, ends)]
