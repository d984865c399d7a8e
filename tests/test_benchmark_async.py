"""benchmarks/async.py: its computations, and a run of the smallest configuration."""

import pytest

from tests import benchmarks


@pytest.fixture(scope="module")
def bench():
    with benchmarks.loaded("async") as module:
        yield module


def test_ideal_speedup_is_two_for_equal_parts(bench):
    assert bench.ideal(3.0, 3.0) == 2
    assert bench.ideal(1.0, 4.0) == bench.ideal(4.0, 1.0) == 1.25


def test_gain_is_relative_to_ideal_overlap(bench):
    assert bench.gain(5.0, 4.0, 1.0, 4.0) == 1  # as fast as the longer part alone
    assert bench.gain(5.0, 5.0, 1.0, 4.0) == 0  # no faster
    assert bench.gain(4.0, 3.2, 2.0, 2.0) == pytest.approx(0.25)
    assert bench.gain(4.0, 5.0, 2.0, 2.0) == pytest.approx(-0.2)  # slower


def test_best_uses_shortest_runs_and_median_uses_pairs(bench):
    def pair(load, call, step):
        return bench.Run(load + call, load, call, b"bits"), bench.Run(step, load, 0.0, b"bits")

    pairs = [pair(2.0, 2.0, 2.0), pair(3.0, 3.0, 6.0), pair(2.0, 2.0, 3.2)]  # gains 1, 0 and 0.25
    row = bench.figures(pairs)
    assert row["median"] == pytest.approx(0.25)
    assert row["best"] == pytest.approx(1)
    assert (row["load"], row["compute"], row["ideal"]) == (2.0, 2.0, 2.0)
    assert (row["synchronous"], row["asynchronous"]) == (4.0, 3.2)
    assert row["same losses"]
    assert bench.verdict(row, "zlib", 1.0, "idle") == "aim 80%"
    assert bench.verdict({**row, "best": 0.79}, "zlib", 1.0, "idle") == "aim 80%  MISSED"
    assert bench.verdict({**row, "best": 0.1}, "python", 1.0, "idle") == ""  # holds the GIL: no target
    assert (
        bench.verdict({**row, "best": 0.1}, "zlib", 1.0, "busy")
        == bench.verdict({**row, "best": 0.1}, "zlib", 2.0, "idle")
        == ""
    )


def test_one_differing_bit_is_reported(bench):
    run = bench.Run(4.0, 2.0, 2.0, b"bits")
    row = bench.figures([(run, run), (run, run._replace(losses=b"bitt"))])
    assert not row["same losses"]
    assert bench.verdict(row, "python", 0.3, "busy") == "LOSSES DIFFER"


@pytest.mark.parametrize("kind", ["numpy", "zlib", "python"])
def test_batches_depend_only_on_index_and_size(bench, kind):
    first, second = bench.Loader(kind, 130), bench.Loader(kind, 130)
    images, labels = first(3)
    assert images.shape == bench.SHAPE and images.dtype == "f4" and labels.dtype == "i4"
    second(0)
    assert (second(3)[0] == images).all()
    assert (second(4)[0] != images).any() and (images != first.ready).any()


def test_synchronous_step_is_the_load_and_the_call(bench, monkeypatch):
    """By a clock that advances by 3 in the loader and by 5 in the job."""
    now = 0.0

    def during(seconds, call):
        def timed(*words):
            nonlocal now
            now += seconds
            return call(*words)

        return timed

    monkeypatch.setattr(bench, "clock", lambda: now)
    runs = bench.Bench("mlp", 4)
    runs.jobs = [during(5.0, job) for job in runs.jobs]
    run = runs.run(during(3.0, bench.Loader("numpy")), False)
    assert (run.step, run.load, run.call) == (8.0, 3.0, 5.0) and len(run.losses) == 4 * 100 * 4  # of float32


def test_arguments_select_rows(bench):
    options = bench.parse(["--only", "lenet", "zlib", "sleep"])
    assert (options.models, options.loaders, options.rounds) == (["lenet"], ["zlib", "sleep"], 7)
    assert options.shares == (0.3, 1.0, 2.0) and options.cores == ("idle", "busy")


@pytest.mark.slow
def test_smallest_configuration_runs(tmp_path):
    words = "--quick --only mlp sleep --cores idle busy --rounds 2"
    rows, text = benchmarks.figures("async", words, tmp_path)
    assert "the same bits in every run of every row" in text
    assert [(row["loader"], row["share"], row["cores"]) for row in rows] == [
        ("sleep", 1.0, "idle"),
        ("sleep", 1.0, "busy"),
    ]
    assert all(row["same losses"] and row["load"] > 0 and 1 < row["ideal"] <= 2 for row in rows)
