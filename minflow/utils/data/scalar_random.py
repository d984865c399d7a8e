"""A few random numbers at once, in plain Python: the bits of `core.random.bits`, without its arrays.

A transform draws one or two numbers per image; with NumPy, the overhead per call would be twenty times the work.
Read next: `../../core/random.py`, the same Philox generator for whole arrays.
"""

from __future__ import annotations

from ...core.backend import namespace
from ...core.host import HostArray
from ...core.random import Generator, bits, derive_key, generator_or_default
from ...core.spec import cpu

MASK = 0xFFFFFFFF


def philox_words(key: int, counter: int) -> tuple[int, int, int, int]:
    """The first four 32-bit words of (key, counter): equal to `bits(numpy, key, counter, 4)`."""
    c0 = c1 = 0
    c2, c3 = counter & MASK, counter >> 32
    k0, k1 = key & MASK, key >> 32
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & MASK, (a >> 32) ^ c3 ^ k1, a & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


def random_words(generator: Generator | None = None) -> tuple[int, int, int, int]:
    """Four random 32-bit words, for one counter of the Generator (by default that of the sample being loaded)."""
    generator = generator_or_default(generator)
    return philox_words(generator.key, generator.take(1))


def scale_to_range(n: int, word: int) -> int:
    """Map a 32-bit word to an integer in [0, n): the high half of word times n (Lemire 2019)."""
    return word * n >> 32


def with_probability(p: float, word: int) -> bool:
    """True with probability p."""
    return word < p * 2.0**32


def random_words64(n: int, generator: Generator | None = None) -> HostArray:
    """`uint64[n]` random words, for one counter of the Generator."""
    generator = generator_or_default(generator)
    pair = bits(namespace(), generator.key, generator.take(1), 2 * n).reshape(-1, 2).astype("uint64")
    return (pair[:, 0] << 32) | pair[:, 1]


class SampleGenerator(Generator):
    """The Generator of one sample: its key is computed only if something is drawn. Not thread-safe."""

    def __init__(self, *words: object):
        self.words, self.counter, self.device = words, 0, cpu
        self.cached_key: int | None = None

    @property
    def key(self) -> int:
        if self.cached_key is None:
            self.cached_key = derive_key(*self.words)  # type: ignore[arg-type]  # the first word is the seed
        return self.cached_key

    @key.setter
    def key(self, value: int) -> None:
        self.cached_key = value

    @property
    def seed_(self) -> int:
        return self.key

    @seed_.setter
    def seed_(self, value: int) -> None:
        pass

    def take(self, n: int = 1) -> int:
        self.counter += n
        return self.counter - n
