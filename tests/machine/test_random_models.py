"""Random models by the machine, in a process of their own: see `tests/fuzz/models.py` and `uses.py`."""

import subprocess
import sys

import pytest

from tests import sampling

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")


def run(seed, models, module="models"):
    command = [sys.executable, "-m", f"tests.fuzz.{module}", "--here", "--models", str(models), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]
    assert done.stdout.count("seed ") == models


def test_some_models():
    run(0, 20 if sampling.complete else 6)


def test_some_uses():
    run(3000, 6 if sampling.complete else 2, "uses")


@pytest.mark.slow
def test_many_models():
    run(1000, 150)


@pytest.mark.slow
def test_many_uses():
    run(1000, 40, "uses")
