"""Datasets made of datasets, the sampler for several processes, and the import paths of PyTorch."""

import functools
import operator

import pytest

import minflow as flow
from minflow.core.base.errors import LoaderError
from minflow.utils.data import (
    ChainDataset,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    StackDataset,
    TensorDataset,
)
from tests.pytorch import needs_torch, torch


class Stream(IterableDataset):
    def __init__(self, *numbers):
        self.numbers = numbers

    def __iter__(self):
        return iter(self.numbers)

    def __len__(self):
        return len(self.numbers)


def test_chain():
    chain = Stream(1, 2) + ChainDataset([Stream(3), Stream(4, 5)])
    assert isinstance(chain, ChainDataset) and list(chain) == [1, 2, 3, 4, 5] and len(chain) == 5
    assert [batch.tolist() for batch in DataLoader(chain, batch_size=2)] == [[1, 2], [3, 4], [5]]
    with pytest.raises(LoaderError, match="entry 1 must be an IterableDataset, got a list"):
        ChainDataset([Stream(1), [2]])


def test_stack():
    rows = TensorDataset(flow.arange(3))
    assert StackDataset(rows, "abc")[1] == ((flow.tensor(1),), "b") and len(StackDataset(rows, "abc")) == 3
    named = StackDataset(number=[1, 2, 3], letter="abc")
    batch = next(iter(DataLoader(named, batch_size=3)))
    assert batch["number"].tolist() == [1, 2, 3] and batch["letter"] == ["a", "b", "c"]
    for wrong in (lambda: StackDataset(), lambda: StackDataset([1], two=[2])):
        with pytest.raises(LoaderError, match="by position or all by keyword"):
            wrong()
    with pytest.raises(LoaderError, match="2, 3 samples"):
        StackDataset([1, 2], [1, 2, 3])


@needs_torch
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("count", "processes"), [(10, 3), (9, 3), (2, 5), (7, 1)])
def test_each_process_gets_its_part(count, processes, drop_last):
    for rank in range(processes):
        options = {"num_replicas": processes, "rank": rank, "shuffle": False, "drop_last": drop_last}
        theirs = torch.utils.data.DistributedSampler(list(range(count)), **options)
        ours = DistributedSampler(list(range(count)), **options)
        assert list(ours) == list(theirs) and len(ours) == len(theirs) and ours.total_size == theirs.total_size


def test_shuffled_parts_are_disjoint_and_differ_by_epoch():
    samplers = [DistributedSampler(range(12), 3, rank, seed=5) for rank in range(3)]
    first = [list(sampler) for sampler in samplers]
    assert sorted(functools.reduce(operator.iadd, first, [])) == list(range(12)) and first == [
        list(sampler) for sampler in samplers
    ]
    samplers[0].set_epoch(1)
    assert list(samplers[0]) != first[0]
    assert sorted(DistributedSampler(range(5))) == list(range(5)) and list(DistributedSampler([])) == []
    with pytest.raises(LoaderError, match="rank must be below 3, the number of processes, got 3"):
        DistributedSampler(range(5), 3, 3)


def test_accepted_arguments():
    loader = DataLoader(
        [1, 2],
        2,
        False,
        None,
        None,
        0,
        None,
        True,
        False,
        0,
        None,
        "spawn",
        flow.Generator(3),
        pin_memory_device="cuda",
        persistent_workers=False,
        in_order=True,
        prefetch_factor=None,
    )
    assert next(iter(loader)).tolist() == [1, 2]
