"""default_collate: many samples of the same form become one of that form, each leaf a batch. Read next: `fetch.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core import functions as F
from ...core.functions.creation import from_numpy, tensor
from ...core.base.errors import DTypeError, LoaderError, ShapeError
from ...core.tensor import Tensor


def default_collate(samples: Sequence) -> Any:
    """One batch of a list of samples, as PyTorch makes it.

    Tensors and arrays are stacked along a new first axis; floats become float64, integers int64; texts stay a list;
    of tuples, lists and dicts each position is collated. Raises ShapeError where shapes differ, naming position and
    sample.
    """
    if not len(samples):
        raise LoaderError(
            "default_collate: there is no sample to make a batch of",
            hint="a batch_sampler gives lists that are not empty",
        )
    return collate(samples, "sample")


def collate(samples: Sequence, path: str) -> Any:
    first = samples[0]
    if isinstance(first, Tensor):
        same_kind(samples, Tensor, path)
        check_shapes([t.spec for t in samples], path)
        if any(t.requires_grad or t.array is None for t in samples):
            return F.stack(list(samples))
        return from_numpy(np.stack([t.array for t in samples]))
    if isinstance(first, np.ndarray) and first.dtype.kind in "biuf":
        same_kind(samples, np.ndarray, path)
        check_shapes(samples, path)
        return from_numpy(np.stack(samples))
    if isinstance(first, bool | np.bool_):
        return from_numpy(np.array(samples, "bool"))
    if isinstance(first, np.generic) and first.dtype.kind in "iuf":
        return from_numpy(np.array(samples))
    if isinstance(first, float):
        return from_numpy(leaf(samples, "float64", path))
    if isinstance(first, int):
        return from_numpy(leaf(samples, "int64", path))
    if isinstance(first, str | bytes):
        return list(samples)
    if isinstance(first, Mapping):
        same_kind(samples, Mapping, path)
        for i, sample in enumerate(samples):
            if sample.keys() != first.keys():
                raise LoaderError(
                    f"default_collate: {path} has other keys in sample {i} of the batch than in sample 0",
                    values={"sample 0": list(first), f"sample {i}": list(sample)},
                    hint="the same keys in each sample",
                )
        return {key: collate([sample[key] for sample in samples], f"{path}[{key!r}]") for key in first}
    if isinstance(first, tuple | list):
        same_kind(samples, (tuple, list), path)
        for i, sample in enumerate(samples):
            if len(sample) != len(first):
                raise ShapeError(
                    f"default_collate: {path} has {len(sample)} parts in sample {i}, and {len(first)} in sample 0",
                    hint="pad them to one length, or give collate_fn=list to keep the samples apart",
                )
        parts = [collate(part, f"{path}[{i}]") for i, part in enumerate(zip(*samples))]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    image = "PIL" in type(first).__module__
    raise DTypeError(
        f"default_collate: {path} is a {type(first).__name__}, of which no batch can be made",
        values={path: repr(first)[:80]},
        hint="transform=transforms.ToTensor() in the dataset"
        if image
        else "tensors, arrays, numbers or texts, or an own collate_fn",
    )


def same_kind(samples: Sequence, kind, path: str) -> None:
    for i, sample in enumerate(samples):
        if not isinstance(sample, kind):
            raise DTypeError(
                f"default_collate: {path} is a {type(samples[0]).__name__} in sample 0 of the batch and a "
                f"{type(sample).__name__} in sample {i}",
                hint="the same form in each sample",
            )


def check_shapes(samples: Sequence, path: str) -> None:
    for i, sample in enumerate(samples):
        if sample.shape != samples[0].shape:
            raise ShapeError(
                f"default_collate: {path} has other shapes within one batch, so it cannot be stacked",
                values={"sample 0": list(samples[0].shape), f"sample {i}": list(sample.shape)},
                hint="transforms.Resize((height, width)), padding, or an own collate_fn",
            )


def leaf(samples: Sequence, dtype: str, path: str) -> np.ndarray:
    try:
        return np.array(samples, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise DTypeError(
            f"default_collate: {path} is not a number in every sample",
            values={"reason": error},
            hint="the same form in each sample",
        ) from None


def default_convert(sample: Any) -> Any:
    """A sample that is not batched: its arrays become tensors."""
    if isinstance(sample, np.ndarray) and sample.dtype.kind in "biuf":
        return from_numpy(sample)
    if isinstance(sample, np.generic) and sample.dtype.kind in "biuf":
        return tensor(sample)
    if isinstance(sample, Mapping):
        return {key: default_convert(value) for key, value in sample.items()}
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*map(default_convert, sample))
    if isinstance(sample, tuple | list):
        return [default_convert(part) for part in sample]
    return sample


Collate = Callable[[list], Any]
