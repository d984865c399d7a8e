"""Record which modules a call enters, in order, on every thread; test_call_paths.py checks five calls.

A separate program, so that no thread is older than the recording: `python -m tests.call_paths` prints JSON.
"""

import contextlib
import io
import json
import sys
import threading
from pathlib import Path

import numpy as np

import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow.job.queue.stream import current_stream
from tests.clocks import LONG

HOMES = {Path(flow.__file__).parent: "", Path(__file__).parents[1] / "widgets/minflow_widgets": "widgets"}
# A decorator counts as the public function that it wraps.
WRAPPERS = {"core/messages/suggestions.py"}


def module_of(file: str) -> str | None:
    """Return core.dispatch for .../minflow/core/dispatch.py; None for a file that is not ours, or a wrapper's."""
    for home, name in HOMES.items():
        if file.startswith(f"{home}/"):
            inner = Path(file).relative_to(home)
            parts = [*([name] if name else []), *inner.with_suffix("").parts]
            return None if not name and inner.as_posix() in WRAPPERS else ".".join(parts).removesuffix(".__init__")
    return None


def package_of(module: str) -> str:
    return module.split(".")[0]


class Recorder:
    """Modules per thread, in the order of their first entry, and every call that returns to a package."""

    def __init__(self):
        self.modules, self.returns = {}, set()
        self.on = self.waiting = False  # waiting: the caller's own thread is no longer recorded
        threading.setprofile(self.event)  # for threads that are started from now on
        sys.setprofile(self.event)

    def event(self, frame, kind, _):
        if kind != "call" or not self.on:
            return
        thread = threading.current_thread()
        if self.waiting and thread is threading.main_thread():
            return
        if (me := module_of(frame.f_code.co_filename)) is None:
            return
        entered = self.modules.setdefault(thread.name, [])
        if me not in entered:
            entered.append(me)
        packages = [package_of(me)]  # packages of the pending calls, innermost first
        caller = frame.f_back
        while caller is not None:
            if (module := module_of(caller.f_code.co_filename)) and package_of(module) != packages[-1]:
                packages.append(package_of(module))
            caller = caller.f_back
        if packages[0] in packages[1:]:
            self.returns.add(f"{me}.{frame.f_code.co_name}: {' < '.join(packages)}")

    def record(self, call, ready=lambda: None) -> dict:
        """Record `call()`. ready: waits until the other threads are done with it."""
        self.modules, self.returns = {}, set()
        self.on, self.waiting = True, False
        try:
            call()
            self.waiting = True
            ready()
        finally:
            self.on = False
        return {"modules": self.modules, "returns": sorted(self.returns)}


class Predict(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(2, 2)

    def build(self, x):
        return self.model(x)


@flow.global_function()
def job(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
    return x + 1


class FrontEnd:
    """A stub of a notebook front end."""

    def __init__(self):
        self.updated = threading.Event()

    def update(self, curve):
        self.updated.set()

    def finish(self, curve):
        pass


def main() -> None:
    recorder, paths = Recorder(), {}
    x, graph, array = flow.tensor([1.0, 2.0]), Predict(), np.ones(2, "f")
    taped = flow.ones(2, requires_grad=True) * 2
    with contextlib.redirect_stdout(io.StringIO()):
        for name, call in {
            "x + 1": lambda: x + 1,
            "graph(x)": lambda: graph(x),
            "job(x)": lambda: job(array),
            "show(x)": lambda: flow.show(taped),
        }.items():
            call()  # the first call builds, compiles and imports; later calls all take the same path
            call()
            paths[name] = recorder.record(call, current_stream().sync)
    from minflow_widgets import frontends, watch

    from minflow.core.base import events
    from minflow.nn.graph.compiled import GraphRan

    front_end = FrontEnd()
    frontends.choose_frontend = lambda *kinds: front_end
    heard = []
    with events.subscribe(GraphRan, heard.append):
        graph(x)
    with watch(graph):
        events.emit(heard[0])
        front_end.updated.wait(LONG)
        front_end.updated.clear()
        paths["event"] = recorder.record(lambda: events.emit(heard[0]), lambda: front_end.updated.wait(LONG))
    sys.setprofile(None)
    print(json.dumps(paths, indent=1))


if __name__ == "__main__":
    main()
