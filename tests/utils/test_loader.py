"""DataLoader: the same batches with any number of workers, order, errors, and cleanup."""

import multiprocessing
import random
import threading

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DataError, LoaderError, MinflowError, ShapeError, WorkerError
from minflow.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    get_worker_info,
)

CREWS = [
    dict(num_workers=1),
    dict(num_workers=3),
    dict(num_workers=2, workers="process"),
    dict(num_workers=3, workers="process", prefetch_factor=5),
]
IDS = ["1 thread", "3 threads", "2 processes", "3 processes"]


def left_behind():
    names = [t.name for t in threading.enumerate() if t.name.startswith("minflow-loader")]
    return names + [p.name for p in multiprocessing.active_children()]


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("minflow-loader"):  # after a timeout the worker still has its sample
            thread.join(60)
    assert left_behind() == []


class Computed(Dataset):
    """n samples, each computed from its index."""

    def __init__(self, n, sample):
        self.n, self.sample = n, sample

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.sample(i)


class RandomSamples(Dataset):
    """Samples with random numbers, in all forms."""

    def __init__(self, n=23, bad=(), error=KeyError):
        self.n, self.bad, self.error = n, bad, error

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i in self.bad:
            raise self.error(f"sample {i}")
        return {
            "x": flow.rand(20, 30),
            "two": (flow.randn(2), i),
            "half": i / 2,
            "name": f"n{i}",
            "bytes": np.full(i % 2 + 3, i)[:3],
        }


def leaves(thing):
    if isinstance(thing, dict):
        thing = list(thing.values())
    if isinstance(thing, list):
        return [leaf for part in thing for leaf in leaves(part)]
    return [thing.numpy() if isinstance(thing, flow.Tensor) else thing]


def walk(dataset, epochs=2, **options):
    g = flow.Generator().manual_seed(11)
    loader = DataLoader(dataset, generator=g, **options)
    return [leaves(batch) for _ in range(epochs) for batch in loader]


def same(a, b):
    return len(a) == len(b) and all(
        len(p) == len(q)
        and all(
            type(u) is type(v) and (np.array_equal(u, v) if isinstance(u, np.ndarray) else u == v) for u, v in zip(p, q)
        )
        for p, q in zip(a, b)
    )


@pytest.mark.parametrize("crew", CREWS, ids=IDS)
@pytest.mark.parametrize(
    "options", [dict(batch_size=4, shuffle=True), dict(batch_size=5, drop_last=True), dict(batch_size=None)], ids=str
)
def test_workers_do_not_change_bits(crew, options):
    alone = walk(RandomSamples(), **options)
    assert same(alone, walk(RandomSamples(), **options, **crew))
    assert not same(alone[: len(alone) // 2], alone[len(alone) // 2 :])  # the epochs differ


@pytest.mark.parametrize("crew", CREWS, ids=IDS)
def test_sample_randomness_is_independent_of_batching(crew):
    """Its numbers depend on the epoch and its own index, not on its batch."""

    def by_sample(**options):
        loader = DataLoader(RandomSamples(), generator=flow.Generator().manual_seed(3), **options)
        return {int(i): x for b in loader for i, x in zip(b["two"][1].numpy(), b["x"].numpy())}

    a, b = by_sample(batch_size=4), by_sample(batch_size=7, sampler=[5, 22, 0, 7], **crew)
    assert all(np.array_equal(a[i], b[i]) for i in b) and len(b) == 4


def test_the_default_generator(monkeypatch):
    def draw(**crew):
        flow.manual_seed(4)
        return [leaves(b) for b in DataLoader(RandomSamples(), 4, shuffle=True, **crew)] + [[flow.rand(2).numpy()]]

    assert same(draw(), draw(num_workers=2)) and same(draw(), draw(num_workers=2, workers="process"))


def test_collate_randomness_is_reproducible():
    def collate(samples):
        return len(samples), flow.rand(3)

    def drawn(**crew):
        generator = flow.Generator().manual_seed(1)
        return [b[1].tolist() for b in DataLoader(RandomSamples(), 4, collate_fn=collate, generator=generator, **crew)]

    assert all(drawn(**crew) == drawn() for crew in CREWS)


class Stream(IterableDataset):
    def __init__(self, n=10):
        self.n = n

    def __iter__(self):
        for i in range(self.n):
            yield i, flow.rand(2)

    def __len__(self):
        return self.n


@pytest.mark.parametrize("crew", CREWS, ids=IDS)
def test_iterable(crew):
    for options in (dict(batch_size=4), dict(batch_size=4, drop_last=True), dict(batch_size=5), dict(batch_size=None)):
        alone = walk(Stream(), **options)
        assert same(alone, walk(Stream(), **options, **crew))
        assert len(alone) == 2 * len(DataLoader(Stream(), **options))
    assert [b[0].tolist() for b in DataLoader(Stream(), 4, **crew)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_lengths_and_order():
    data = TensorDataset(flow.arange(10))
    assert [b[0].tolist() for b in DataLoader(data, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(DataLoader(data, 4)) == 3 and len(DataLoader(data, 4, drop_last=True)) == 2
    own = [[3, 1], [2], [0, 9]]
    by_own = DataLoader(data, batch_sampler=own)
    assert [b[0].tolist() for b in by_own] == own and len(by_own) == 3
    assert [b[0].tolist() for b in DataLoader(data, 2, sampler=[3, 1, 2])] == [[3, 1], [2]]
    a, b = iter(DataLoader(data, 4)), iter(DataLoader(data, 4))
    assert next(a)[0].tolist() == next(b)[0].tolist()
    loader = DataLoader(data, 10, sampler=RandomSampler(data, generator=flow.Generator().manual_seed(0)))
    assert next(iter(loader))[0].tolist() != next(iter(loader))[0].tolist()


@pytest.mark.parametrize("crew", [{}, *CREWS], ids=["none", *IDS])
def test_one_gather_equals_many_samples(crew):
    x, y = flow.randn(50, 3, 4), flow.arange(50)
    quick, slow = TensorDataset(x, y), [(x[i], y[i]) for i in range(50)]
    for data in (quick, Subset(quick, list(range(49, -1, -1)))):
        plain = slow if data is quick else slow[::-1]
        assert same(walk(data, batch_size=8, shuffle=True, **crew), walk(plain, batch_size=8, shuffle=True))


def test_getitems():
    class Many(RandomSamples):
        asked = []

        def __getitems__(self, indices):
            self.asked.append(indices)
            return [(i, flow.rand(2)) for i in indices]

    data = Many(6)
    alone = walk(data, batch_size=4)
    assert data.asked == [[0, 1, 2, 3], [4, 5]] * 2 and same(alone, walk(data, batch_size=4, num_workers=2))
    data.__class__.__getitems__ = lambda self, indices: [1]
    with pytest.raises(LoaderError, match="gave 1 samples, not 4"):
        list(DataLoader(data, 4))


@pytest.mark.parametrize("crew", [{}, *CREWS], ids=["none", *IDS])
def test_error_shows_its_origin(crew):
    seen = []
    with pytest.raises(KeyError, match="sample 9") as caught:
        for batch in DataLoader(RandomSamples(bad=[9]), 4, **crew):
            seen.append(batch["two"][1].tolist())
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7]]
    (note,) = caught.value.__notes__
    assert "was making batch 2, samples [8, 9, 10, 11]" in note and ("worker" in note) == bool(crew)
    text = "".join(__import__("traceback").format_exception(caught.value))
    assert "in __getitem__" in text and 'raise self.error(f"sample {i}")' in text


class Unpicklable(Exception):
    def __init__(self, a, b=None):
        super().__init__(a)
        self.lock = threading.Lock()


def test_unpicklable_error():
    with pytest.raises(WorkerError, match="Unpicklable: sample 9") as caught:
        list(DataLoader(RandomSamples(bad=[9], error=Unpicklable), 4, num_workers=2, workers="process"))
    assert "raise self.error" in str(caught.value.__cause__)


def test_four_part_error_names_the_loop():
    said = r"other shapes[\s\S]*\[1\][\s\S]*\[2\][\s\S]*test_loader.py:\d+\n"
    for crew in [{}, *CREWS]:
        with pytest.raises(ShapeError, match=said) as caught:
            list(DataLoader(Computed(4, lambda i: flow.ones(i + 1)), 4, **crew))
        assert "batch 0" in caught.value.__notes__[0]


def test_unpicklable_batch():
    with pytest.raises(Exception, match="(?i)pickle") as caught:
        list(
            DataLoader(
                RandomSamples(), 4, num_workers=1, workers="process", collate_fn=lambda samples: threading.Lock()
            )
        )
    assert any("cannot be pickled" in line for line in str(caught.value.__cause__).splitlines())


def test_sampler_error_is_raised_in_order():
    class Own:
        def __iter__(self):
            yield from range(6)
            raise ZeroDivisionError("the sampler")

    for crew in [{}, *CREWS]:
        seen = []
        with pytest.raises(ZeroDivisionError, match="the sampler"):
            for batch in DataLoader(RandomSamples(), 2, sampler=Own(), **crew):
                seen.append(batch["name"])
        assert seen == [["n0", "n1"], ["n2", "n3"], ["n4", "n5"]]


@pytest.mark.parametrize("crew", CREWS, ids=IDS)
def test_leaving_early(crew):
    """Workers end when the loop is left; test_loader_leaks waits for slow ones."""
    for _ in DataLoader(RandomSamples(400), 2, **crew):
        break
    assert left_behind() == []
    with pytest.raises(RuntimeError, match="in the loop"):
        for _ in DataLoader(RandomSamples(400), 2, **crew):
            raise RuntimeError("in the loop")
    assert left_behind() == []


def test_two_concurrent_iterators():
    """A worker that is forked later does not hold the pipes of an earlier one."""
    for crew in CREWS:
        a, b = DataLoader(RandomSamples(), 4, **crew), DataLoader(RandomSamples(), 4, num_workers=2, workers="process")
        assert len(list(zip(a, b, strict=True))) == 6


def init(number):
    RandomSamples.hello = number


def test_worker_info():
    class Asks(RandomSamples):
        def __getitem__(self, i):
            info = get_worker_info()
            return (info.id, info.num_workers, len(info.dataset), RandomSamples.hello) if info else (-1, -1, -1, -1)

    assert get_worker_info() is None
    rows = [leaves(b) for b in DataLoader(Asks(8), 4, num_workers=2, workers="process", worker_init_fn=init)]
    assert [[int(v[0]) for v in row] for row in rows] == [[0, 2, 8, 0], [1, 2, 8, 1]]
    assert not hasattr(RandomSamples, "hello")
    assert int(next(iter(DataLoader(Stream(), 4, num_workers=3)))[0][0]) == 0

    def fails(number):
        raise OSError("no disk")

    for crew in CREWS:
        with pytest.raises(OSError, match="no disk") as caught:
            list(DataLoader(RandomSamples(), 4, worker_init_fn=fails, **crew))
        assert "in worker_init_fn" in "".join(__import__("traceback").format_exception(caught.value))


def test_other_generators_differ_between_worker_processes():
    dataset = Computed(8, lambda i: (np.random.rand(), random.random()))
    state = np.random.get_state()[1].copy()
    runs = []
    for n in (2, 3):
        g = flow.Generator().manual_seed(0)
        batches = [leaves(b) for b in DataLoader(dataset, 2, num_workers=n, workers="process", generator=g)]
        runs.append(np.concatenate([np.concatenate(b) for b in batches]))
        assert len(set(runs[-1])) == 16
    assert np.array_equal(*runs) and np.array_equal(state, np.random.get_state()[1])


def test_no_grad_holds_in_threads():
    w = flow.ones(2, requires_grad=True)
    uses = Computed(4, lambda i: (w * i).requires_grad)
    with flow.no_grad():
        assert not any(b.any().item() for b in DataLoader(uses, 2, num_workers=2))
    assert all(b.all().item() for b in DataLoader(uses, 2, num_workers=2))


@pytest.mark.parametrize("crew", CREWS, ids=IDS)
def test_timeout_does_not_wait_for_the_sample(crew):
    go = threading.Event()  # a copy in a process, which stays unchanged
    with pytest.raises(WorkerError, match="did not finish batch 0 within 0.05 s"):
        for _ in DataLoader(Computed(23, lambda i: go.wait(60)), 1, timeout=0.05, **crew):
            pass
    assert not go.is_set()
    go.set()  # the fixture checks that the threads end then


def test_large_batches_are_writable():
    x = flow.randn(64, 1000)
    for (batch,) in DataLoader(TensorDataset(x), 32, num_workers=2, workers="process"):
        batch += 1
        assert batch.is_contiguous() and batch.numpy().flags.writeable
    assert flow.equal(batch, x[32:] + 1)


@pytest.mark.parametrize("arguments, said", [
    (dict(batch_size=0), "positive integer, got 0"), (dict(batch_size=-3), "-3"), (dict(batch_size=2.5), "2.5"),
    (dict(workers="fiber"), "fiber"),
    (dict(timeout=float("nan")), "timeout +nan"), (dict(timeout="1"), "timeout +'1'"),
    (dict(timeout=1e99), r"timeout +1e\+99"),
    (dict(num_workers=1.0), r"num_workers +1\.0"), (dict(prefetch_factor=1.5), r"prefetch_factor +1\.5"),
    (dict(num_workers=-1), r"num_workers +-1"), (dict(prefetch_factor=0), r"prefetch_factor +0"),
    (dict(shuffle=True, sampler=[1]), "shuffle=True and a sampler"),
    (dict(batch_sampler=[[1]], batch_size=4), "batch_sampler excludes"),
    (dict(batch_size=None, drop_last=True), "batch_size is None"),
    (dict(dataset=RandomSamples), "RandomSamples is a class"),
    (dict(dataset=Stream(), shuffle=True), "determines the order"), (dict(dataset=iter([1])), "no __len__"),
])  # fmt: skip
def test_mistakes(arguments, said):
    with pytest.raises(LoaderError, match=said) as caught:
        DataLoader(**({"dataset": RandomSamples()} | arguments))
    assert isinstance(caught.value, MinflowError) and isinstance(caught.value, ValueError)
    assert "test_loader.py" in str(caught.value)


def test_data_errors_keep_their_parts_across_processes():
    def bad(i):
        raise DataError("image broken.png: is damaged", values={"file": "broken.png"}, hint="another copy")

    with pytest.raises(DataError, match=r"broken.png[\s\S]*another copy"):
        list(DataLoader(Computed(23, bad), 4, num_workers=1, workers="process"))


class Shifted(Dataset):
    shift = 0

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return flow.tensor(i + self.shift)


def shift(number):
    dataset = get_worker_info().dataset
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    dataset.shift = 100 * (number + 1)


@pytest.mark.parametrize("workers", ["thread", "process"])
@pytest.mark.parametrize("inside", [False, True])
def test_worker_init_fn_changes_only_its_workers_dataset(workers, inside):
    dataset = Shifted()
    loader = DataLoader(
        Subset(dataset, range(6)) if inside else dataset,
        batch_size=2,
        num_workers=2,
        worker_init_fn=shift,
        workers=workers,
    )
    assert [batch.tolist() for batch in loader] == [[100, 101], [202, 203], [104, 105]]
    assert dataset.shift == 0
