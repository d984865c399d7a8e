"""Results that exceed the memory are refused with a complete error before anything of their size is allocated."""

import pytest

import minflow as flow
from minflow.core import memory
from minflow.core.base.errors import OutOfMemoryError
from minflow.nn import functional as F
from tests.measuring import peak

FREE = 1 << 27  # bytes
N = 1 << 28
SIDE = 1 << 14
CALLS = {
    "pad": lambda x: F.pad(x, (0, N)),
    "repeat": lambda x: x.repeat(N),
    "tile": lambda x: flow.tile(x, (N,)),
    "an expanded tensor plus 1": lambda x: x[:1].expand(N) + 1,
    "clone": lambda x: x[:1].expand(N).clone(),
    "contiguous": lambda x: x[:1].expand(N).contiguous(),
    "to another dtype": lambda x: x[:1].expand(N).double(),
    "a reshape that copies": lambda x: x[:2].expand(N, 2).reshape(-1),
    "arange": lambda x: flow.arange(N),
    "arange by a fraction": lambda x: flow.arange(0, 1, 1 / N),
    "linspace": lambda x: flow.linspace(0, 1, N),
    "logspace": lambda x: flow.logspace(0, 1, N),
    "hann_window": lambda x: flow.hann_window(N),
    "one_hot": lambda x: F.one_hot(flow.tensor([1]), N),
    "interpolate": lambda x: F.interpolate(x.reshape(1, 1, 2, 2), size=(SIDE, SIDE)),
    "interpolate a line": lambda x: F.interpolate(x.reshape(1, 1, 4), size=N, mode="linear"),
    "Upsample": lambda x: flow.nn.Upsample(scale_factor=SIDE)(x.reshape(1, 1, 2, 2)),
    "unfold": lambda x: F.unfold(x.reshape(1, 1, 2, 2), 1, padding=SIDE),
    "conv2d with padding": lambda x: F.conv2d(x.reshape(1, 1, 2, 2), flow.ones(1, 1, 1, 1), padding=SIDE),
    "zeros": lambda x: flow.zeros(N),
    "ones_like": lambda x: flow.ones_like(x[:1].expand(N)),
    "full": lambda x: flow.full((N,), 1.0),
    "empty": lambda x: flow.empty(N),
    "new_zeros": lambda x: x.new_zeros(N),
    "eye": lambda x: flow.eye(SIDE),
    "tril_indices": lambda x: flow.tril_indices(SIDE, SIDE),
    "rand": lambda x: flow.rand(N),
    "randn": lambda x: flow.randn(N),
    "randint": lambda x: flow.randint(0, 5, (N,)),
    "randperm": lambda x: flow.randperm(N),
    "bernoulli": lambda x: flow.bernoulli(x[:1].expand(N)),
    "dropout": lambda x: F.dropout(x[:1].expand(N)),
    "outer": lambda x: flow.outer(flow.ones(SIDE), flow.ones(SIDE)),
    "cartesian_prod": lambda x: flow.cartesian_prod(flow.ones(SIDE), flow.ones(SIDE)),
    "combinations": lambda x: flow.combinations(flow.ones(SIDE), 2),
    "cdist": lambda x: flow.cdist(flow.ones(SIDE, 1), flow.ones(SIDE, 1)),
    "vander": lambda x: flow.vander(x, N),
    "diag": lambda x: flow.diag(flow.ones(SIDE)),
    "stack": lambda x: flow.stack([x[:1].expand(N // 2)] * 2),
    "fft of more elements": lambda x: flow.fft.fft(x, n=N),
    "histc": lambda x: flow.histc(x, bins=N),
    "Linear": lambda x: flow.nn.Linear(SIDE, SIDE),
    "Embedding": lambda x: flow.nn.Embedding(N, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_allocation_above_the_free_memory_is_refused(name, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: FREE)
    x = flow.tensor([0.1, 0.2, 0.3, 0.4])

    def call():
        for _ in range(2):  # an inferred spec is cached
            with pytest.raises(OutOfMemoryError, match=r"(?s)of memory, and 134.2 MB are free.*Try: ") as caught:
                CALLS[name](x)
            assert int(caught.value.values["needed"].split()[0]) > FREE
            assert "test_free_memory.py" in caught.value.where

    assert peak(call, below=FREE // 2) < FREE // 2


def test_allocation_of_the_free_memory_is_allowed(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: FREE)
    assert flow.zeros(FREE // 4).shape == (FREE // 4,)
    assert flow.ones(1).expand(N).shape == (N,)  # allocates nothing


def test_process_limit(tmp_path):
    """A limit by `ulimit -v`, as clusters set it."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemAvailable:  9000 kB\n")
    (tmp_path / "proc/self/status").write_text("Name:\tx\nVmSize:\t    100 kB\n")
    limits = tmp_path / "proc/self/limits"
    limits.write_text("Limit      Soft Limit  Hard Limit  Units\nMax address space   unlimited  unlimited  bytes\n")
    assert memory.free_bytes(tmp_path) == 9000 * 1024
    limits.write_text("Limit      Soft Limit  Hard Limit  Units\nMax address space   204800  unlimited  bytes\n")
    assert memory.free_bytes(tmp_path) == 100 * 1024
    limits.write_text("Max address space   2048  2048  bytes\n")
    assert memory.free_bytes(tmp_path) == 0
