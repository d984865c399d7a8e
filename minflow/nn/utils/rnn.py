"""Sequences of different lengths in one tensor: padded to the longest, or packed step by step.

Packed: the rows of step 0 of all sequences, longest first, then those of step 1 of all that are long enough, ...
Lengths must be known, so packing runs only eagerly. Read next: `../functional/rnn.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Self

from ...core.base.errors import DTypeError, ShapeError
from ...core.functions import cat, stack
from ...core.functions.arguments import integer
from ...core.functions.creation import full, tensor
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.mode import MODE
from ...core.source_location import fail
from ...core.spec import float16, float32, float64, int32, int64
from ...core.tensor import Tensor
from ..functional.arguments import check_tensor
from ..functional.rnn import batch_sizes_as_ints, refuse_packed


class Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(Packed):
    """Sequences packed step by step: `data` (rows, ...) and `batch_sizes` (T,), the number of rows at each step.

    sorted_indices: the index in the batch of the longest sequence, of the second longest, ... (None: already sorted).
    unsorted_indices is its inverse. Made by `pack_padded_sequence` and `pack_sequence`; RNN, LSTM and GRU take one and
    return one.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same sequences with `data.to(...)`."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def float(self) -> PackedSequence:
        """The same sequences in float32."""
        return self.to(float32)

    def double(self) -> PackedSequence:
        """The same sequences in float64."""
        return self.to(float64)

    def half(self) -> PackedSequence:
        """The same sequences in float16."""
        return self.to(float16)

    def long(self) -> PackedSequence:
        """The same sequences in int64."""
        return self.to(int64)

    def int(self) -> PackedSequence:
        """The same sequences in int32."""
        return self.to(int32)

    def cpu(self) -> PackedSequence:
        """The same sequences on the CPU."""
        return self.to("cpu")

    def pin_memory(self) -> PackedSequence:
        """Return itself: memory of the CPU needs no pinning."""
        return self

    @property
    def is_cuda(self) -> bool:
        """True if the data is on a GPU."""
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse permutation: result[permutation[i]] = i, int64 (N,); None if permutation is None."""
    return None if permutation is None else permutation.argsort()


def checked_lengths(name: str, lengths: Any, batch: int, longest: int) -> list[int]:
    """Return the lengths as Python ints, one for each sequence, each from 1 to `longest`."""
    if MODE.get().trace is not None:
        refuse_packed(name)
    counts = lengths.tolist() if hasattr(lengths, "tolist") else list(lengths)
    counts = [integer(n, "lengths") for n in (counts if isinstance(counts, list) else [counts])]
    if len(counts) != batch:
        what = f"{name}: {len(counts)} lengths for {batch} sequences"
        fail(ShapeError, what, "one length for each sequence; batch_first=True if the batch is axis 0", lengths=counts)
    if counts and not 0 < min(counts) <= max(counts) <= longest:
        what = f"{name}: lengths must be from 1 to {longest}, got {min(counts)} to {max(counts)}"
        fail(ShapeError, what, "leave out empty sequences; lengths are those before padding", lengths=counts)
    return counts


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences: (T, N, ...), or (N, T, ...) with batch_first.

    lengths: the length of each sequence. enforce_sorted: True if they are sorted already, longest first; else they are
    sorted here, and `pad_packed_sequence` undoes that. Raises ShapeError if lengths do not fit or are not sorted,
    TraceError in a graph.
    """
    check_tensor("pack_padded_sequence", input)
    if input.spec.ndim < 2:
        what = f"pack_padded_sequence: the input must be (T, N, ...), got {input.spec.ndim} axes"
        fail(ShapeError, what, "pad_sequence(sequences)", input=input)
    x = input.transpose(0, 1) if batch_first else input
    steps, batch = x.spec.shape[:2]
    counts = checked_lengths("pack_padded_sequence", lengths, batch, steps)
    if not counts:
        fail(ShapeError, "pack_padded_sequence: there are no sequences", "at least one", input=input)
    order = sorted(range(batch), key=counts.__getitem__, reverse=True)
    if enforce_sorted and counts != sorted(counts, reverse=True):
        what = "pack_padded_sequence: the sequences are not sorted, longest first"
        fail(ShapeError, what, "enforce_sorted=False sorts them, and pad_packed_sequence undoes that", lengths=counts)
    sizes = [sum(n > t for n in counts) for t in range(max(counts))]
    rows = tensor([t * batch + i for t, n in enumerate(sizes) for i in order[:n]], device=x.device)
    data = x.reshape(steps * batch, *x.spec.shape[2:]).index_select(0, rows)
    return PackedSequence(data, tensor(sizes), None if enforce_sorted else tensor(order, device=x.device))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The inverse of `pack_padded_sequence`: ((T, N, ...), or (N, T, ...) with batch_first, and lengths int64 (N,)).

    Other elements are `padding_value`. T is the longest length, or total_length. Raises ShapeError if that is shorter,
    TraceError in a graph.
    """
    if not isinstance(sequence, PackedSequence):
        what = f"pad_packed_sequence: sequence must be a PackedSequence, got {type(sequence).__name__}"
        fail(DTypeError, what, "pack_padded_sequence(x, lengths)", sequence=sequence)
    sizes = batch_sizes_as_ints("pad_packed_sequence", sequence.batch_sizes)
    steps, batch, data = total_length or len(sizes), sizes[0], sequence.data
    if steps < len(sizes):
        what = f"pad_packed_sequence: total_length is {total_length}, the longest sequence {len(sizes)}"
        fail(ShapeError, what, f"total_length={len(sizes)} or more")
    sizes += (0,) * (steps - len(sizes))
    order = range(batch) if sequence.unsorted_indices is None else sequence.unsorted_indices.tolist()
    padding = sum(sizes)  # index of the padding row, which is appended to the data
    table = [[end - n + i if i < n else padding for i in order] for n, end in zip(sizes, accumulate(sizes))]
    rows = tensor(table, device=data.device)
    if batch_first:
        rows = rows.T
    shape = data.spec.shape[1:]
    filled = cat([data, full((1, *shape), padding_value, dtype=data.dtype, device=data.device)])
    result = filled.index_select(0, rows.reshape(-1)).reshape(*rows.shape, *shape)
    return result, tensor([sum([n > i for n in sizes]) for i in order])


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack tensors (L_i, ...), each padded to the longest: (T, N, ...), or (N, T, ...) with batch_first.

    padding_side: "right" pads at the end, "left" at the start. Raises ShapeError if the other axes differ.
    """
    if padding_side not in ("left", "right"):
        fail(ShapeError, f"pad_sequence: padding_side is {padding_side!r}", 'padding_side="right" or "left"')
    parts = list(sequences)
    for part in parts:
        check_tensor("pad_sequence", part, "sequences")
        if not part.spec.ndim or part.spec.shape[1:] != parts[0].spec.shape[1:]:
            what = f"pad_sequence: a sequence has shape {list(part.spec.shape)}, the first {list(parts[0].spec.shape)}"
            fail(ShapeError, what, "only the first axis, the steps, may differ", sequence=part)
    if not parts:
        fail(ShapeError, "pad_sequence: there are no sequences", "at least one")
    steps, padded = max(len(part) for part in parts), []
    for part in parts:
        missing = full((steps - len(part), *part.spec.shape[1:]), padding_value, dtype=part.dtype, device=part.device)
        order = [part, missing] if padding_side == "right" else [missing, part]
        padded.append(cat(order) if len(part) < steps else part)
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The inverse of `pad_sequence`: a list of the first lengths[i] steps of each sequence."""
    check_tensor("unpad_sequence", padded_sequences)
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [x[i, :n].clone() for i, n in enumerate(checked_lengths("unpad_sequence", lengths, *x.spec.shape[:2]))]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors (L_i, ...): pads them and calls `pack_padded_sequence`."""
    parts = list(sequences)
    return pack_padded_sequence(pad_sequence(parts), [len(part) for part in parts], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The inverse of `pack_sequence`: a list of tensors (L_i, ...)."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
__getattr__ = _name_hints("flow.nn.utils.rnn", globals())
