"""default_collate: combine samples of the same structure into one, whose leaves are batches. Read next: `fetch.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy as copy_of
from typing import Any

from ...core import functions as F
from ...core.backend import namespace
from ...core.base.errors import DTypeError, LoaderError, MinflowError, ShapeError
from ...core.functions.creation import as_tensor, from_numpy
from ...core.host import HostArray, HostScalar
from ...core.messages.wrong_arguments import contains_itself, contains_itself_error
from ...core.spec import cpu
from ...core.tensor import Tensor


def default_collate(samples: Sequence) -> Any:
    """Combine a list of samples into a batch, as in PyTorch.

    Tensors and arrays are stacked along a new first axis; floats become float64, integers int64, and integers mixed
    with floats the default dtype; strings are kept. Each entry of a tuple, list or mapping is collated; mappings, lists
    and named tuples keep their class, tuples become lists. Raises ShapeError, with position and sample, if shapes
    differ.
    """
    if not len(samples):
        raise LoaderError(
            "default_collate: samples must not be empty",
            hint="a batch_sampler must yield lists that are not empty",
        )
    try:
        return collate(samples, "sample")
    except RecursionError as error:
        if (sample := next(filter(contains_itself, samples), None)) is None:
            raise
        raise contains_itself_error("default_collate", "sample", sample, LoaderError) from error


def collate(samples: Sequence, path: str) -> Any:
    first = samples[0]
    if isinstance(first, Tensor):
        check_types(samples, Tensor, path)
        check_shapes([t.spec for t in samples], path)
        plain = all(t.spec is first.spec and not t.requires_grad and t.array is not None for t in samples)
        if not plain or {*map(type, samples)} != {Tensor} or first.device is not cpu or first.is_global:
            return F.stack(list(samples))
        return from_numpy(namespace().stack([t.array for t in samples]))
    if isinstance(first, HostArray) and first.dtype.kind in "biufc":
        if any(not isinstance(x, HostArray) or x.dtype is not first.dtype for x in samples):
            return collate([number_tensor(x, None, f"{path}, sample {i}") for i, x in enumerate(samples)], path)
        check_shapes(samples, path)
        return from_numpy(namespace().stack(samples))
    if isinstance(first, bool | int | float) or (isinstance(first, HostScalar) and first.dtype.kind in "biufc"):
        return number_tensor(list(samples), "float64" if isinstance(first, float) else None, path)
    if isinstance(first, str | bytes):
        return samples
    if isinstance(first, Mapping):
        check_types(samples, Mapping, path)
        for i, sample in enumerate(samples):
            if sample.keys() != first.keys():
                raise LoaderError(
                    f"default_collate: {path} has other keys in sample {i} of the batch than in sample 0",
                    values={"sample 0": list(first), f"sample {i}": list(sample)},
                    hint="the same keys in each sample",
                )
        return container_like(
            first, {key: collate([sample[key] for sample in samples], f"{path}[{key!r}]") for key in first}
        )
    if isinstance(first, Sequence):
        check_types(samples, Sequence, path)
        for i, sample in enumerate(samples):
            if len(sample) != len(first):
                raise ShapeError(
                    f"default_collate: {path} has {len(sample)} parts in sample {i}, and {len(first)} in sample 0",
                    hint="pad them to one length, or give collate_fn=list to keep the samples apart",
                )
        return container_like(first, [collate(part, f"{path}[{i}]") for i, part in enumerate(zip(*samples))])
    image = "PIL" in type(first).__module__
    raise DTypeError(
        f"default_collate: {path} is a {type(first).__name__}, which cannot be collated",
        values={path: repr(first)[:80]},
        hint="transform=transforms.ToTensor() in the dataset"
        if image
        else "tensors, arrays, numbers or strings; or a custom collate_fn",
    )


def container_like(first: Any, parts: Any) -> Any:
    """Make a container of the class of `first` with other contents, as in PyTorch: a tuple becomes a list, and a class
    that cannot be built from its contents becomes a list or dict.
    """
    try:
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        if isinstance(first, MutableMapping):
            copy = copy_of(first)
            copy.update(parts)
            return copy
        if isinstance(first, MutableSequence):
            twin = copy_of(first)
            for i, part in enumerate(parts):
                twin[i] = part
            return twin
        return parts if isinstance(first, tuple) else type(first)(parts)
    except TypeError:
        return parts


def check_types(samples: Sequence, kind: Any, path: str) -> None:
    for i, sample in enumerate(samples):
        if not isinstance(sample, kind) or isinstance(sample, str | bytes):
            raise DTypeError(
                f"default_collate: {path} is a {type(samples[0]).__name__} in sample 0 of the batch and a "
                f"{type(sample).__name__} in sample {i}",
                hint="the same structure in each sample",
            )


def check_shapes(samples: Sequence, path: str) -> None:
    for i, sample in enumerate(samples):
        if sample.shape != samples[0].shape:
            raise ShapeError(
                f"default_collate: {path} has other shapes within one batch, so it cannot be stacked",
                values={"sample 0": list(samples[0].shape), f"sample {i}": list(sample.shape)},
                hint="transforms.Resize((height, width)), padding, or a custom collate_fn",
            )


def number_tensor(data: Any, dtype: str | None, path: str) -> Tensor:
    """Make a tensor of numbers in their common dtype."""
    try:
        return as_tensor(data, dtype)
    except MinflowError as error:
        raise DTypeError(
            f"default_collate: {path} is not a number in every sample",
            values={"reason": error.what},
            hint="the same structure in each sample",
        ) from None


def default_convert(sample: Any) -> Any:
    """Convert arrays in an unbatched sample to tensors."""
    if isinstance(sample, HostArray) and sample.dtype.kind in "biufc":
        return from_numpy(sample)
    if isinstance(sample, HostScalar) and sample.dtype.kind in "biufc":
        return as_tensor(sample)
    if isinstance(sample, Mapping):
        return container_like(sample, {key: default_convert(value) for key, value in sample.items()})
    if isinstance(sample, Sequence) and not isinstance(sample, str | bytes):
        return container_like(sample, [default_convert(part) for part in sample])
    return sample


Collate = Callable[[list], Any]


def pinned(batch: Any) -> Any:
    """The batch with its tensors in pinned memory, also those in lists, tuples and dicts, and in objects that have a
    `pin_memory` of their own.
    """
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, Mapping):
        return type(batch)({key: pinned(x) for key, x in batch.items()})  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(pinned, batch))
    return type(batch)(map(pinned, batch)) if isinstance(batch, list | tuple) else batch
