"""Whole trainings on global tensors equal those on one rank; memory and bytes are those of the parts."""

import re

import pytest

import minflow as flow
from tests.distributed.test_ranks import launch, mpi
from tests.distributed.training_programs import (
    MODELS,
    B,
    S,
    bytes_of_steps,
    data_parallel,
    expected,
    tensor_parallel,
    train_sharded,
    trains_as_one_rank,
    two_axes,
)
from tests.measuring import peak
from tests.processes import TOP, python

LARGE = ("mobilenet", "resnet")


def run(size, program, *args):
    with flow.virtual_ranks(size) as ranks:
        return ranks.run(program, *args)


@pytest.mark.parametrize(
    ("strategy", "size"),
    [(data_parallel, 2), (data_parallel, 4), (tensor_parallel, 2), (tensor_parallel, 4), (two_axes, 4)],
    ids=lambda value: getattr(value, "__name__", value),
)
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in MODELS])
def test_trainings(name, strategy, size):
    run(size, trains_as_one_rank, name, strategy, *expected(name))


@pytest.mark.parametrize(
    ("how", "strategy", "size"),
    [
        ("graph", data_parallel, 3),
        ("graph", tensor_parallel, 2),
        ("graph", two_axes, 4),
        *[(f"zero {stage}", data_parallel, 2) for stage in (1, 2, 3)],
        ("zero 2", two_axes, 4),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in MODELS])
def test_trainings_in_graphs(name, how, strategy, size):
    run(size, trains_as_one_rank, name, strategy, *expected(name), how)


@mpi
@pytest.mark.parametrize("size", [2, 4])
def test_processes(size):
    done = python(*launch, "-n", str(size), TOP / "tests/distributed/training_programs.py", path=[TOP])
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(rf"trained on rank (\d) of {size}", done.stdout)) == [str(rank) for rank in range(size)]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_data_parallel_step_sends_each_gradient_once(size):
    """All-reduces of T bytes: the gradients, and two numbers of the loss: 2 T (N - 1) bytes (Yuan et al. 2021)."""
    found = run(size, bytes_of_steps, *data_parallel(size))
    assert sum(sent for sent, _ in found) == 2 * (size - 1) * (found[0][1] + 2 * 8)


@pytest.mark.parametrize("size", [2, 4])
def test_a_tensor_parallel_step_sends_no_parameter(size):
    """Columns of the first layer and rows of the second: only activations of the last layer move."""
    columns = lambda state, tensor: S(0) if tensor.shape[0] == 33 else S(1) if tensor.ndim == 2 else B
    found = run(size, bytes_of_steps, flow.placement("cpu", range(size)), B, columns)
    activations = 6 * 5 * 8
    assert sum(sent for sent, _ in found) <= 4 * (size - 1) * activations


def test_each_rank_holds_a_part_of_parameters_gradients_and_moments():
    """The peak of 4 virtual ranks, which share the memory of this process."""
    one = peak(lambda: run(1, train_sharded))
    assert peak(lambda: run(4, train_sharded), 0.3 * 4 * one) < 0.3 * 4 * one
