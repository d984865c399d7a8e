"""How many threads there are, and that nothing depends on it. Who takes which chunk: `test_program.py`."""

import functools
import os

import numpy as np
import pytest

from minflow.accepted.threads import Settings
from minflow.machine import threads


def test_the_number_of_threads(monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Settings, "threads", None)
    assert 1 <= threads.number() <= os.cpu_count()
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.number() == 3
    monkeypatch.setattr(Settings, "threads", 5)
    assert threads.number() == 5


@pytest.mark.parametrize("size, channels", [(5, 16), (3, 16), (4, 16), (5, 1)])
def test_the_same_bits_with_any_number_of_threads(monkeypatch, size, channels):
    pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")
    from minflow.core.ops import conv
    from minflow.machine.eager import by_steps
    from minflow.machine.start import builder_of

    rng = np.random.default_rng(0)
    x = rng.standard_normal((23, channels, 14, 14)).astype("f4")
    weight = rng.standard_normal((32, channels, size, size)).astype("f4")
    forward, images, filters = [functools.partial(
        by_steps, op, builder_of(op), stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1)
        for op in (conv.conv2d, conv.conv2d_input_grad, conv.conv2d_weight_grad)]
    found = []
    for count in (1, 2, 3, 8):
        monkeypatch.setattr(Settings, "threads", count)
        y = forward(x, weight)
        found.append([y, filters(y, x, shape=weight.shape)])
        if channels > 1:
            found[-1].append(images(y, weight, shape=x.shape))
    for others in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], others))
