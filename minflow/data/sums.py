"""All sums of two numbers as sequences of symbols, to test whether a model adds or memorizes: `sums(digits)`.

Read next: `text.py`, and `../models/gpt.py`, a model that learns them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.base.errors import OutOfRangeError, ShapeError
from ..core.source_location import fail
from .points import check_integer

ALPHABET = "0123456789+=."
END = "."


class Sums(NamedTuple):
    """Sums as ids: `seen` for training, `held_out` for testing; the id of a symbol is its index in `alphabet`."""

    seen: np.ndarray
    held_out: np.ndarray
    alphabet: str = ALPHABET

    def encode(self, text: str) -> np.ndarray:
        """Return the ids of a text, `int64[len(text)]`. Raises OutOfRangeError for a symbol outside the alphabet."""
        unknown = [symbol for symbol in str(text) if symbol not in self.alphabet]
        if unknown:
            fail(OutOfRangeError, "encode: a symbol is not in the alphabet", f"only {self.alphabet}", symbol=unknown[0])
        return np.array([self.alphabet.index(symbol) for symbol in str(text)], np.int64)

    def decode(self, ids: Any) -> str:
        """Return the text for one row of ids, an array, a Tensor or a list. Raises ShapeError for several rows, and
        OutOfRangeError for an id without a symbol.
        """
        if getattr(ids, "ndim", 1) != 1:
            fail(ShapeError, "decode: ids must be a single row", "a row: decode(ids[0])", shape=list(ids.shape))
        row = [int(i) for i in ids]
        unknown = [i for i in row if not 0 <= i < len(self.alphabet)]
        if unknown:
            what = "decode: there is no symbol with this id"
            fail(OutOfRangeError, what, f"0 to {len(self.alphabet) - 1}", id=unknown[0])
        return "".join([self.alphabet[i] for i in row])


def sums(digits: int = 2, seed: int = 0, backwards: bool = False) -> Sums:
    """Generate all sums of two numbers with `digits` digits, as ids of symbols: 80 % `.seen`, the others `.held_out`.

    digits 1: 80 and 20 sums as "3+4=7..", `int64[80, 7]` and `int64[20, 7]`.
    digits 2: 8,000 and 2,000 as "03+48=51..", `int64[8000, 10]` and `int64[2000, 10]`.
    The thirteen symbols in `.alphabet` are 0 to 9, + and =, and the end mark ".". Both numbers are padded with zeros,
    so the result always begins in the same column; it is not padded itself, and end marks follow.
    seed: selects the sums that are held out, and the order of both parts.  backwards: write the result from its last
    digit ("48+57=501."), the order in which one adds by hand: the carry is then known at each position, and the model
    learns faster. `.encode(text)` gives ids, `.decode(ids)` the text. Raises OutOfRangeError for any other `digits`,
    and for a negative seed.

    >>> data = sums(1)
    >>> data.seen.shape, data.held_out.shape, data.decode(data.seen[0])
    ((80, 7), (20, 7), '8+2=10.')
    """
    if isinstance(digits, bool) or not isinstance(digits, int | np.integer) or digits not in (1, 2):
        fail(OutOfRangeError, "sums: digits must be 1 or 2", "digits=2: 10,000 sums", digits=digits)
    check_integer(0, "0", seed=seed)
    n, length = 10**digits, 3 * digits + 4
    step = -1 if backwards else 1
    texts = [f"{a:0{digits}}+{b:0{digits}}={str(a + b)[::step]}".ljust(length, END) for a in range(n) for b in range(n)]
    # the id of each symbol by its code point
    place = np.zeros(128, np.int64)
    place[[ord(symbol) for symbol in ALPHABET]] = range(len(ALPHABET))
    ids = place[np.frombuffer("".join(texts).encode(), np.uint8).reshape(-1, length)]
    ids = ids[np.random.default_rng(seed).permutation(len(ids))]
    return Sums(ids[: len(ids) * 4 // 5], ids[len(ids) * 4 // 5 :])
