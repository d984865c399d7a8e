"""Counter-based random numbers: the same bits on every backend, for any slice, in any order.

`bits(key, counter, ...)` is Philox4x32-10: a pure function, so a shard or a loader worker can draw its own part.
A Generator only counts: each application of a random op takes the next counter, on the caller's thread, in program
order. Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3.
"""

from __future__ import annotations

import functools
import os
from contextvars import ContextVar

from .backend import namespace, to_host
from .base.errors import StateError
from .base.locks import new_lock
from .context import PerContext
from .host import HostArray, host_array
from .source_location import fail
from .spec import Device, cpu

CHUNK = 1 << 15  # blocks of four drawn at a time, so that the temporaries stay in cache
FEW, MANY, AHEAD = 32, 512, 2048  # blocks: up to MANY, those of the next counters are drawn at once, AHEAD in all


def bits(xp, key: int, counter: int, size: int, start: int = 0):
    """32 random bits for each element index in [start, start + size), as uint32[size]. key, counter: below 2**64.

    The result may be read-only.
    """
    first, last = start // 4, (start + size + 3) // 4
    if last <= MANY and xp is namespace():
        width = max(FEW, 1 << (last - 1).bit_length()) if last else FEW
        group, place = divmod(counter, AHEAD // width)
        return bits_ahead(key, group, width)[place, start : start + size]
    out = xp.empty(4 * (last - first), "uint32")
    for low in range(first, last, CHUNK):
        high = min(low + CHUNK, last)
        blocks = xp.arange(low, high, dtype="uint64")
        counters = xp.full_like(blocks, counter)
        philox(xp, key, blocks, counters, out[4 * (low - first) : 4 * (high - first)].reshape(-1, 4))
    return out[start % 4 : start % 4 + size]


@functools.lru_cache(maxsize=16)
def bits_ahead(key: int, group: int, width: int):
    """The first words of AHEAD // width counters, as read-only uint32[counters, 4 * width]: programs take one counter
    after another, and a call of its own for each would take up to fifty times as long.
    """
    xp, ahead = namespace(), AHEAD // width
    counters = xp.repeat(xp.arange(ahead, dtype="uint64") + xp.uint64(group * ahead), width)
    blocks = xp.tile(xp.arange(width, dtype="uint64"), ahead)
    out = xp.empty((AHEAD, 4), "uint32")
    philox(xp, key, blocks, counters, out)
    out.flags.writeable = False
    return out.reshape(ahead, -1)


def philox(xp, key: int, blocks, counters, out) -> None:
    """Ten Philox rounds for these blocks and counters, uint64[n], four words each; written into `out`, uint32[n, 4]."""
    low, shift = xp.uint64(0xFFFFFFFF), xp.uint64(32)
    column = lambda *numbers: xp.stack([xp.full(1, n, "uint64") for n in numbers])  # made on the device
    factors, steps = column(0xD2511F53, 0xCD9E8D57), column(0x9E3779B9, 0xBB67AE85)
    even, odd = xp.stack((blocks & low, counters & low)), xp.stack((blocks >> shift, counters >> shift))
    first = column(key & 0xFFFFFFFF, key >> 32)
    for keys in (first + steps * xp.arange(10, dtype="uint64").reshape(10, 1, 1)) & low:
        products = even * factors
        even, odd = (products >> shift)[::-1] ^ odd ^ keys, (products & low)[::-1]
    for i, word in enumerate((even[0], odd[0], even[1], odd[1])):
        out[:, i] = word


def derive_key(seed: int, *words: object) -> int:
    """A 64-bit key from a seed and words, the same in every process: derive_key(seed, "loader", epoch, index)."""
    from hashlib import blake2b  # imported on first use, since it loads OpenSSL

    text = "/".join([str(seed), *map(str, words)]).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


class Generator:
    """A source of random numbers: a key (from the seed) and the next counter.

    >>> Generator(7).take(2), Generator(7).initial_seed()
    (0, 7)
    """

    def __init__(self, seed: int | None = None, device: str | Device = "cpu"):
        if isinstance(seed, (str, Device)):  # PyTorch's first argument
            seed, device = None, seed
        self.device = Device(device)
        self.lock = new_lock()
        self.manual_seed(int.from_bytes(os.urandom(6), "little") if seed is None else seed)

    def manual_seed(self, seed: int) -> Generator:
        """Restart from `seed`, an int; negative ones count from 2**64."""
        self.seed_, self.key, self.counter = int(seed), int(seed) % 2**64, 0
        return self

    def seed(self) -> int:
        """Restart from a new seed from the system, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(6), "little"))
        return self.seed_

    def initial_seed(self) -> int:
        """The last seed."""
        return self.seed_

    def take(self, n: int = 1) -> int:
        """The next counter; advances by n."""
        with self.lock:
            self.counter += n
            return self.counter - n

    def draw(self, n: int = 1) -> HostArray:
        """The key and the next counter, as int64[2]; advances by n."""
        return host_array([self.key, self.take(n)], "uint64").view("int64")

    def get_state(self) -> HostArray:
        """The key and the counter, as int64[2]."""
        return host_array([self.key, self.counter], "uint64").view("int64")

    def set_state(self, state) -> Generator:
        """Continue where `get_state` was called. Raises StateError for anything but two integers."""
        self.key, self.counter = words_of(state)
        self.seed_ = self.key
        return self

    def __getstate__(self):
        return self.seed_, self.key, self.counter, self.device

    def __setstate__(self, state):
        self.seed_, self.key, self.counter, self.device = state
        self.lock = new_lock()


def words_of(state) -> list[int]:
    """Key and counter of a state from `get_state`."""
    try:
        array = to_host(state.array) if hasattr(state, "spec") else host_array(state)
        if array.shape == (2,) and array.dtype.kind in "iu":
            return [int(word) % 2**64 for word in array.tolist()]
    except (TypeError, ValueError, OverflowError):
        pass
    what = "this is not a state of a generator"
    fail(StateError, what, "pass the int64[2] that get_state() or flow.get_rng_state() returned", state=state)


current_generator = PerContext(Generator)


def of_current_generator(name: str) -> property:
    return property(
        lambda self: getattr(current_generator(), name), lambda self, value: setattr(current_generator(), name, value)
    )


class DefaultGenerator(Generator):
    """The generator that ops draw from if the program names none. Each rank has its own."""

    seed_, key, counter, lock = map(of_current_generator, ("seed_", "key", "counter", "lock"))

    def __init__(self) -> None:
        self.device = cpu

    def take(self, n: int = 1) -> int:
        return current_generator().take(n)

    def draw(self, n: int = 1) -> HostArray:
        return current_generator().draw(n)

    def __reduce__(self):
        return object.__new__, (Generator,), self.__getstate__()  # a copy is a generator of its own


default_generator = DefaultGenerator()
SAMPLE_GENERATOR: ContextVar = ContextVar(
    "sample", default=None
)  # the Generator of the sample that a DataLoader is making


def generator_or_default(generator: Generator | None = None) -> Generator:
    """The Generator to draw from: the argument, else that of the sample being loaded, else the default one."""
    return generator or SAMPLE_GENERATOR.get() or default_generator


def manual_seed(seed: int) -> Generator:
    """Restart the default generator from `seed`: the same program then draws the same numbers."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Restart the default generator from a new seed from the system, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> HostArray:
    """The state of the default generator: key and counter."""
    return default_generator.get_state()


def set_rng_state(state) -> None:
    """Continue with the default generator where `get_rng_state` was called."""
    default_generator.set_state(state)
