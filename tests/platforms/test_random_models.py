"""Random models with compiled kernels, in a child process: see `tests/fuzz/models.py` and `uses.py`."""

import subprocess
import sys

import pytest

from tests import sampling

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")


@pytest.mark.parametrize(
    "module, seed, count",
    [
        ("models", 0, 20 if sampling.complete else 6),
        ("uses", 3000, 6 if sampling.complete else 2),
        pytest.param("models", 1000, 100, marks=pytest.mark.slow),
        pytest.param("uses", 1000, 40, marks=pytest.mark.slow),
    ],
)
def test_random_models(module, seed, count):
    command = [sys.executable, "-m", f"tests.fuzz.{module}", "--here", "--models", str(count), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]
    assert done.stdout.count("seed ") == count
