"""Peaks of the roofline: measured once, and little affected by other programs."""

import pytest

from minflow.platforms.compiled import roofline_peaks
from minflow.platforms.compiled.roofline_peaks import SIZES, copy_rate, measured, product_rate


def test_peaks_are_measured_once_per_thread_count(monkeypatch):
    asked = []
    monkeypatch.setattr(roofline_peaks, "product_rate", lambda *args: asked.append(args) or 1.0)
    monkeypatch.setattr(roofline_peaks, "copy_rate", lambda *args: asked.append(args) or 2.0)
    measured.cache_clear()
    first = measured(1, False)
    assert first == (1.0, tuple((size, 2.0) for size in SIZES), 1, False)
    assert measured(1, False) is first and len(asked) == 1 + len(SIZES)
    assert measured(2, False).threads == 2 and (SIZES[-1], 2) in asked and (2, False) in asked
    measured.cache_clear()


class Clock:
    """Each read of the clock takes a microsecond; a timed call takes `seconds`."""

    def __init__(self, seconds):
        self.now, self.seconds = 0.0, iter(seconds)

    def perf_counter(self):
        self.now += 1e-6
        return self.now

    def work(self):
        self.now += next(self.seconds, 1.0)


def test_fastest_run_after_the_first_counts(monkeypatch):
    clock = Clock([0.001, 0.03, 0.02, 0.01, 0.05])
    monkeypatch.setattr(roofline_peaks.time, "perf_counter", clock.perf_counter)
    assert roofline_peaks.shortest(clock.work) == pytest.approx(0.01, abs=1e-5)
    slow = Clock([9.0, 5.0, 4.0, 3.0])
    monkeypatch.setattr(roofline_peaks.time, "perf_counter", slow.perf_counter)
    assert roofline_peaks.shortest(slow.work) == pytest.approx(3.0, abs=1e-5), "three, however long they take"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rates(threads, monkeypatch):
    monkeypatch.setattr(roofline_peaks, "SHORT", 0.0)
    assert copy_rate(SIZES[0], threads) > 0 and product_rate(threads, False) > 0


def test_rate_is_work_divided_by_time(monkeypatch):
    monkeypatch.setattr(roofline_peaks, "shortest", lambda call, long=1.0: [call(), 0.25][1])
    monkeypatch.setattr(roofline_peaks, "SHORT", 0.5)
    assert product_rate(2, False) == 2 * (2 * roofline_peaks.ROWS) * roofline_peaks.SIDE * roofline_peaks.SIDE / 0.25
    assert copy_rate(SIZES[0], 2) == SIZES[0] * 2 / 0.25, "half a second is two simultaneous copies"
