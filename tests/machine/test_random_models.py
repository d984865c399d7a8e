"""Random models by the machine, in a process of their own: see `tests/fuzz/models.py`."""

import subprocess
import sys

import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")


def run(seed, models):
    command = [sys.executable, "-m", "tests.fuzz.models", "--here", "--models", str(models), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]
    assert done.stdout.count("seed ") == models


def test_some_models():
    run(0, 20)


@pytest.mark.slow
def test_many_models():
    run(1000, 150)
