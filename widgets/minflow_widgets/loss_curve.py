"""LossCurve: numbers of a training run, drawn while it runs and kept as a picture when it ends.

`add` only appends; one thread, the pump, shows what is there at most ten times a second, the last value always.
Knows nothing of how things are shown: that is `frontends.py`. Read next: `series.py`, what is sent and why so little.
"""

from __future__ import annotations

import threading
import time
import weakref

from . import frontends
from .series import Series, number

PERIOD = 0.1  # seconds between two updates: more are not seen, and the notebook server allows 1 MB a second


class LossCurve:
    """A live curve: `with LossCurve() as curve: curve.add(step, loss=..., accuracy=...)`.

    In a notebook it is a canvas that follows the run; when the block ends, also by an error or an interrupt, a still
    picture takes its place, which a saved notebook keeps. In a terminal it is a line of text. `MINFLOW_LIVE=0` shows
    only what stays at the end. Series whose names end in the same word (`loss`, `val_loss`) share a panel.

    >>> curve = LossCurve()
    >>> curve.data
    {}
    """

    def __init__(self):
        self._series: dict[str, Series] = {}
        self._lock = threading.RLock()  # guards the series; never held while something is shown
        self._front = None
        self._pump: Pump | None = None
        self._note = ""
        self._finished = False
        self._started = time.perf_counter()

    # -- what a training loop calls

    def add(self, step: float | None = None, **values: float) -> None:
        """Append one number per name at `step` (default: the next one).

        A value is anything that `float()` takes: a number, a 0-d array, a one-element Tensor. NaN and infinity are
        kept, drawn as a gap, and their first step is marked. Raises DTypeError for anything else.
        """
        numbers = {name: as_number(name, value) for name, value in values.items()}
        at = None if step is None else as_number("step", step)
        with self._lock:
            if at is None:
                at = max((s.steps[-1] + 1 for s in self._series.values() if s.count), default=0.0)
            for name, value in numbers.items():
                series = self._series.get(name)
                if series is None:
                    series = self._series[name] = Series(name)
                series.add(at, value)
            if self._finished:
                return
            if self._front is None:
                self._start()
        self._pump.wake()

    @property
    def data(self) -> dict[str, tuple]:
        """All numbers so far: name -> (steps, values), two float64 arrays of the same length."""
        with self._lock:
            return {name: (s.steps.copy(), s.values.copy()) for name, s in self._series.items()}

    def finish(self, note: str = "") -> None:
        """Show the last values and leave the still picture in place of the live one. Leaving the `with` block does this."""
        with self._lock:
            if self._finished:
                return
            self._finished = True
            self._note = note
            if self._front is None:
                self._front = frontends.choose() if self._series else None
        if self._pump is not None:
            self._pump.stop()
        if self._front is not None:
            self._front.finish(self)

    def __enter__(self) -> LossCurve:
        with self._lock:
            if self._front is None and not self._finished:
                self._start()
        return self

    def __exit__(self, kind, error, traceback) -> None:
        self.finish("" if kind is None else f"stopped by {kind.__name__}")

    def _start(self) -> None:
        self._started = time.perf_counter()
        self._front = frontends.choose()
        self._pump = Pump(self)

    # -- what is shown

    def _update(self) -> None:
        self._front.update(self)

    def encode(self) -> bytes:
        """The decimated curve as the front end reads it."""
        from .series import encode

        with self._lock:
            return encode(list(self._series.values()), self._status())

    def _status(self) -> str:
        longest = max(self._series.values(), key=lambda s: s.count, default=None)
        if longest is None or not longest.count:
            return ""
        seconds = max(time.perf_counter() - self._started, 1e-9)
        return f"step {number(longest.steps[-1])} · {number(round(longest.count / seconds, 1))} steps/s · {seconds:.0f} s"

    def line(self) -> str:
        """Where the run is, in one line: `step 120  loss 0.0512  accuracy 0.991`."""
        with self._lock:
            last = max((s.steps[-1] for s in self._series.values() if s.count), default=None)
            parts = [] if last is None else [f"step {number(last)}"]
            parts += [s.now() + (f" ({s.warning()})" if s.bad else "") for s in self._series.values()]
        return "  ".join(parts) or "no values yet"

    def text(self) -> str:
        """The whole run in words: the last and the best value of each series."""
        from .figure import describe

        with self._lock:
            return describe(list(self._series.values()), self._note)

    def __repr__(self) -> str:
        return f"LossCurve({self.text()})"

    def svg(self) -> str:
        """The curve as a still picture."""
        from .figure import draw

        with self._lock:
            return draw(list(self._series.values()), self._note)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        from minflow.views.html import picture_bundle

        try:
            return picture_bundle(self.svg(), f"Curves: {self.text()}", repr(self))
        except Exception as error:  # showing a thing must not break a cell
            return {"text/plain": f"{self!r}\n(no picture: {type(error).__name__}: {error})"}


def as_number(name: str, value) -> float:
    """`float(value)`, or an error that says what was given."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        from minflow.core.errors import DTypeError, MinflowError

        if isinstance(error, MinflowError) and "shape" not in dir(value):
            raise
        shape = getattr(value, "shape", None)
        given = f"shape {tuple(shape)}" if shape is not None else type(value).__name__
        raise DTypeError(
            f"LossCurve.add: {name} must be one number, got {given}",
            hint=f"curve.add(step, {name}=value.mean())" if shape is not None else "a float, or a tensor with one element",
        ) from error


class Pump:
    """The thread that shows a curve: at most one update per PERIOD, none while nothing is new, the last one always.

    It holds the curve weakly: a curve that nobody holds any more ends its thread. Where threads cannot start
    (WebAssembly), the same work is done by the caller.
    """

    def __init__(self, curve: LossCurve):
        self.curve = weakref.ref(curve)
        self.news = threading.Event()
        self.stopping = threading.Event()
        self.shown_at = -PERIOD
        self.thread: threading.Thread | None = threading.Thread(target=self.run, name="minflow-curve", daemon=True)
        try:
            self.thread.start()
        except RuntimeError:
            self.thread = None

    def wake(self) -> None:
        if self.thread is not None:
            self.news.set()
        elif time.perf_counter() - self.shown_at >= PERIOD:
            self.shown_at = time.perf_counter()
            self.show()

    def run(self) -> None:
        while not self.stopping.is_set():
            if not self.news.wait(timeout=1.0):  # now and then: is there still somebody who holds the curve?
                if self.curve() is None:
                    return
                continue
            self.news.clear()
            if self.stopping.is_set() or not self.show():
                return
            self.stopping.wait(PERIOD)

    def show(self) -> bool:
        curve = self.curve()
        if curve is None:
            return False
        try:
            curve._update()
        except Exception:  # a front end that went away must not stop a training run; finish() shows the rest
            return False
        return True

    def stop(self) -> None:
        self.stopping.set()
        self.news.set()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(timeout=5.0)
