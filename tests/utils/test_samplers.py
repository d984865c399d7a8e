"""Samplers and datasets: order, lengths, splits, and errors."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import LoaderError, OutOfRangeError, ShapeError
from minflow.core.random import bits
from minflow.utils.data import (
    BatchSampler,
    ConcatDataset,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)
from minflow.utils.data.scalar_random import SampleGenerator, philox_words, random_words, scale_to_range


def gen(seed=5):
    return flow.Generator().manual_seed(seed)


@pytest.mark.parametrize("key, counter", [(0, 0), (7, 1), (2**64 - 1, 2**33 + 5), (123456789123, 2**63)])
def test_four_words_equal_the_array_version(key, counter):
    assert list(philox_words(key, counter)) == bits(np, key, counter, 4).tolist()


@pytest.mark.parametrize("counter", [0, 31, 32, 2**64 - 1])
def test_few_words_are_the_first_of_many(counter):
    many = bits(np, 11, counter, 1000)
    for start, size in [(0, 1), (3, 5), (100, 28), (127, 1), (127, 2), (500, 3), (0, 0)]:
        assert bits(np, 11, counter, size, start).tolist() == many[start : start + size].tolist()


def test_words_accept_counters():
    g = gen()
    assert random_words(g) != random_words(g) and g.take(0) == 2
    s = SampleGenerator(5, "loader", 0, 3)
    assert random_words(s) == philox_words(s.key, 0) and s.counter == 1 and s.initial_seed() == s.key
    assert [scale_to_range(10, w) for w in (0, 2**31, 2**32 - 1)] == [0, 5, 9]


def test_sequential_and_random():
    data = range(10)
    assert list(SequentialSampler(data)) == list(data)
    g = gen()
    sampler = RandomSampler(data, generator=g)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(data) and first != second
    assert list(RandomSampler(data, generator=gen())) == first and len(sampler) == 10
    assert all(isinstance(i, int) for i in first)
    drawn = list(RandomSampler(data, replacement=True, num_samples=500, generator=g))
    assert len(drawn) == 500 and set(drawn) == set(data)
    assert len(list(RandomSampler(data, num_samples=25, generator=g))) == 25
    assert sorted(list(RandomSampler(data, num_samples=20, generator=g))) == sorted([*data, *data])
    assert list(RandomSampler([], generator=g)) == []


def test_sampler_draws_when_iteration_begins():
    g = gen()
    walk = iter(BatchSampler(RandomSampler(range(10), generator=g), 3))
    before = g.take(0)
    list(walk)
    assert before == g.take(0) == 1


def test_all_orders_are_equally_likely():
    counts = {}
    g = gen(0)
    for _ in range(3000):
        order = tuple(RandomSampler(range(3), generator=g))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6 and all(abs(n - 500) < 120 for n in counts.values())


def test_subset_and_weighted():
    g = gen()
    assert sorted(SubsetRandomSampler([3, 5, 9], g)) == [3, 5, 9]
    drawn = np.bincount(list(WeightedRandomSampler([0, 1, 3, 0], 4000, generator=g)), minlength=4)
    assert drawn[0] == drawn[3] == 0 and abs(drawn[2] / 4000 - 0.75) < 0.04
    assert sorted(WeightedRandomSampler([1, 0, 2, 5], 3, replacement=False, generator=g)) == [0, 2, 3]
    first = [next(iter(WeightedRandomSampler([1, 3], 1, replacement=False, generator=g))) for _ in range(2000)]
    assert abs(sum(first) / 2000 - 0.75) < 0.05
    with pytest.raises(LoaderError, match="4 samples without replacement, but 3"):
        WeightedRandomSampler([1, 0, 2, 5], 4, replacement=False)
    with pytest.raises(LoaderError, match="weights"):
        WeightedRandomSampler([1, -1], 4)


def test_batches():
    assert list(BatchSampler(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(BatchSampler(range(7), 3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert len(BatchSampler(range(7), 3)) == 3 and len(BatchSampler(range(7), 3, True)) == 2
    for size in (0, -1, 2.5, True):
        with pytest.raises(LoaderError, match=f"batch_size must be a positive integer, got {size}"):
            BatchSampler(range(7), size)


def test_tensor_dataset():
    x, y = flow.randn(6, 2), flow.arange(6)
    data = TensorDataset(x, y)
    assert len(data) == 6 and flow.equal(data[4][0], x[4]) and data[-1][1].item() == 5
    part = data.whole_batch([5, 0, -1])
    assert flow.equal(part[0], x[flow.tensor([5, 0, 5])]) and part[1].tolist() == [5, 0, 5]
    assert TensorDataset(np.arange(3))[1][0].item() == 1
    with pytest.raises(OutOfRangeError, match="no sample 6 in a dataset of 6"):
        data.whole_batch([0, 6])
    with pytest.raises(ShapeError, match=r"have 6, 5 rows[\s\S]*\[6, 2\][\s\S]*\[5, 2\]"):
        TensorDataset(x, flow.ones(5, 2))
    with pytest.raises(LoaderError, match="argument 1"):
        TensorDataset(x, 3)


def test_gradients_pass_through_a_batch():
    x = flow.randn(4, 2, requires_grad=True)
    (batch,) = TensorDataset(x).whole_batch([1, 1, 3])
    batch.sum().backward()
    assert x.grad.tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]


def test_concat_and_subset():
    a, b = TensorDataset(flow.arange(3)), TensorDataset(flow.arange(10, 14))
    both = a + b
    assert (
        len(both) == 7
        and [both[i][0].item() for i in range(7)] == [0, 1, 2, 10, 11, 12, 13]
        and both[-1][0].item() == 13
    )
    with pytest.raises(OutOfRangeError, match="no sample 7 in a dataset of 7"):
        both[7]
    with pytest.raises(LoaderError):
        ConcatDataset([])
    part = Subset(b, [3, 0])
    assert len(part) == 2 and part[0][0].item() == 13 and part.whole_batch([1, 0])[0].tolist() == [10, 13]
    assert not hasattr(Subset(both, [1]), "whole_batch") and not hasattr(Subset(both, [1]), "__getitems__")
    assert Subset(part, [1]).whole_batch([0])[0].tolist() == [10]


def test_random_split():
    data = TensorDataset(flow.arange(10))
    parts = random_split(data, [6, 4], generator=gen())
    again = random_split(data, [0.6, 0.4], generator=gen())
    assert [len(p) for p in parts] == [6, 4] and sorted(parts[0].indices + parts[1].indices) == list(range(10))
    assert [p.indices for p in parts] == [p.indices for p in again]
    assert [len(p) for p in random_split(range(10), [1 / 3] * 3)] == [4, 3, 3]
    with pytest.raises(LoaderError, match=r"\[5, 4\] add up to 9, and the dataset has 10"):
        random_split(data, [5, 4])


def test_required_methods_of_a_subclass():
    with pytest.raises(LoaderError, match="Mine has no __getitem__"):
        type("Mine", (Dataset,), {})()[0]
    with pytest.raises(LoaderError, match="Mine has no __iter__"):
        iter(type("Mine", (IterableDataset,), {})())
