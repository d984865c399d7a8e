"""Short-time Fourier transforms: the spectra of overlapping windowed frames of a signal, and their inverse.

Source: Griffin & Lim 1984, "Signal estimation from modified short-time Fourier transform". Read next: `fourier.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..backend import namespace
from ..base.errors import DTypeError, OutOfRangeError, ShapeError
from ..mode import MODE
from ..ops import complex as z, elementwise as e, index as i, shape as s
from ..source_location import fail, warn
from .arguments import integer, to
from .fourier import fft, ifft, irfft, rfft
from .reduction import amin
from .scatter import unfold
from .shape import cat, narrow

if TYPE_CHECKING:
    from ..tensor import Tensor

PADDINGS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap", "constant": ""}  # pad_mode -> that of NumPy
MIN_ENVELOPE = 1e-11  # smallest sum of squared windows by which a sample is divided


class Frames(NamedTuple):
    """How a signal is cut into frames. size: elements of one.  hop: distance between two.  window: (size,) factors."""

    size: int
    hop: int
    window: Tensor


def frames_of(
    name: str, input: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None
) -> Frames:
    """Check the sizes; the window is centered in a frame, with zeros on both sides."""
    size = integer(n_fft, "n_fft")
    hop = size // 4 if hop_length is None else integer(hop_length, "hop_length")
    width = size if win_length is None else integer(win_length, "win_length")
    if size < 1 or hop < 1 or not 1 <= width <= size:
        what = f"{name}: n_fft is {size}, hop_length {hop}, win_length {width}"
        fail(OutOfRangeError, what, "hop_length of at least 1, win_length from 1 to n_fft", input=input)
    if window is None:
        what = f"{name}: without a window, frames end abruptly, which spreads each frequency over others"
        warn(what, f"window=flow.hann_window({width}); flow.ones({width}) for none")
        real = input.spec.dtype.to_real() if input.spec.dtype.is_complex else input.spec.dtype
        window = s.filled(input.spec.replace(shape=(width,), dtype=real), 1)
    if window.spec.shape != (width,):
        what = f"{name}: window has shape {list(window.spec.shape)}, win_length is {width}"
        fail(ShapeError, what, f"window=flow.hann_window({width})", input=input, window=window)
    left = (size - width) // 2
    if width < size:
        before, after = [s.zeros_of(window.spec.replace(shape=(n,))) for n in (left, size - width - left)]
        window = cat([before, window, after])
    return Frames(size, hop, window)


def padded(name: str, input: Tensor, width: int, mode: str) -> Tensor:
    """The signal with `width` samples more on both sides."""
    if mode not in PADDINGS:
        hint = f"one of {', '.join(map(repr, PADDINGS))}"
        fail(DTypeError, f"{name}: pad_mode is {mode!r}", hint, input=input)
    length, axis = input.spec.shape[-1], input.spec.ndim - 1
    if mode == "constant":
        zeros = s.zeros_of(input.spec.replace(shape=(*input.spec.shape[:-1], width)))
        return cat([zeros, input, zeros], axis)
    if length < width + (mode == "reflect"):
        what = f"{name}: {length} samples cannot be padded by {width} on both sides, with pad_mode={mode!r}"
        fail(ShapeError, what, 'a smaller n_fft, pad_mode="constant" or center=False', input=input)
    xp = namespace()
    places = xp.pad(xp.arange(length), width, mode=PADDINGS[mode])
    return i.take(input, s.constant_beside(input, places), axis=axis, by=name)


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The spectra of the frames `input[..., k * hop : k * hop + n_fft] * window`, one column each.

    input: float or complex (T,) or (B, T).  Returns complex (B, F, K): F = n_fft // 2 + 1 frequencies of a real signal
    (`onesided`), else n_fft, and K frames.  hop_length: n_fft // 4 by default.  window: (win_length,), centered in a
    frame.  center: frame k is around sample k * hop_length, and the signal is padded by n_fft // 2 on both sides.
    normalized: divide by sqrt(n_fft).  return_complex: must be given for a real signal; False returns the real and
    imaginary part along a last axis of size 2.  align_to_window: must be None or False.
    """
    dtype = input.spec.dtype
    if input.spec.ndim not in (1, 2) or not input.spec.size or dtype.rank < 2:
        what = f"stft: input must be floating or complex of shape (T,) or (B, T), got {input.spec}"
        fail(ShapeError if dtype.rank > 1 else DTypeError, what, "x.float(), x.flatten(0, -2)", input=input)
    if align_to_window:
        fail(DTypeError, "stft: align_to_window=True", "a window of n_fft elements, without win_length", input=input)
    size, hop, window = frames_of("stft", input, n_fft, hop_length, win_length, window)
    real = not dtype.is_complex and not window.spec.dtype.is_complex
    if return_complex is None and real:
        hint = "return_complex=True; or False, which gives real and imaginary parts along a last axis"
        fail(DTypeError, "stft: return_complex must be given for a real signal", hint, input=input)
    if onesided and not real:
        what = "stft: a complex signal or window has no onesided spectrum"
        fail(DTypeError, what, "onesided=False", input=input, window=window)
    signal = padded("stft", input, size // 2, pad_mode) if center else input
    length = signal.spec.shape[-1]
    if length < size:
        what = f"stft: n_fft is {size}, and the signal has {length} samples"
        fail(ShapeError, what, "a smaller n_fft, or center=True", input=input)
    transform = rfft if real and onesided is not False else fft
    spectra = transform(unfold(signal, -1, size, hop) * window, norm="ortho" if normalized else None)
    result = spectra.transpose(-2, -1)
    return z.view_as_real(result.contiguous()) if return_complex is False else result


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose stft is nearest to `input`: frames are added up, and divided by the sum of squared windows.

    input: complex (F, K) or (B, F, K), from `stft` with the same arguments.  length: samples of the result, by default
    those of K frames, without the padding of `center`.  return_complex: the signal is complex.
    Raises OutOfRangeError if the windows leave samples out; a graph does not check this.
    """
    if not input.spec.dtype.is_complex or input.spec.ndim not in (2, 3) or not input.spec.size:
        what = f"istft: input must be complex of shape (F, K) or (B, F, K), got {input.spec}"
        fail(DTypeError, what, "flow.view_as_complex(x) of real and imaginary parts", input=input)
    size, hop, window = frames_of("istft", input, n_fft, hop_length, win_length, window)
    bins, count = input.spec.shape[-2:]
    onesided = bins != size if onesided is None else bool(onesided)
    if bins != (size // 2 + 1 if onesided else size):
        what = f"istft: input has {bins} frequencies, n_fft is {size}, onesided {onesided}"
        fail(ShapeError, what, f"n_fft={2 * (bins - 1)}, the one of stft", input=input)
    if (onesided and return_complex) or (window.spec.dtype.is_complex and not return_complex):
        what = f"istft: onesided {onesided}, return_complex {bool(return_complex)}, and window {window.spec.dtype.name}"
        fail(DTypeError, what, "onesided=False, return_complex=True of a complex signal", input=input, window=window)
    columns, norm = input.transpose(-2, -1), "ortho" if normalized else None
    if return_complex:
        frames = ifft(columns, norm=norm)
    else:
        frames = irfft(narrow(columns, -1, 0, size // 2 + 1), size, norm=norm)
    frames = frames * window
    xp, total = namespace(), size + hop * (count - 1)
    places = s.constant_beside(input, xp.arange(count)[:, None] * hop + xp.arange(size))
    signal = s.zeros_of(frames.spec.replace(shape=(*frames.spec.shape[:-2], total)))
    signal = i.index_add(signal, places, frames, axis=signal.spec.ndim - 1, by="istft")
    squares = s.clone(s.expand(to(window * window, frames.spec.dtype), shape=(count, size)))
    envelope = i.index_add(s.zeros_of(squares.spec.replace(shape=(total,))), places, squares, axis=0, by="istft")
    start = size // 2 if center else 0
    stop = start + integer(length, "length") if length is not None else total - start
    kept = max(min(stop, total) - start, 0)
    signal, envelope = narrow(signal, -1, start, kept), narrow(envelope, 0, start, kept)
    if MODE.get().trace is None and kept and (amin(e.abs(envelope)) < MIN_ENVELOPE).item():
        what = "istft: the windows that cover a sample are 0 there, so it is not known"
        fail(OutOfRangeError, what, "a smaller hop_length, or center=True", input=input, window=window)
    signal = signal / envelope
    if stop > start + kept:
        what = f"istft: {count} frames have {kept} samples, length is {length}: the others are 0"
        warn(what, "length of the original signal")
        rest = s.zeros_of(signal.spec.replace(shape=(*signal.spec.shape[:-1], stop - start - kept)))
        signal = cat([signal, rest], -1)
    return signal
