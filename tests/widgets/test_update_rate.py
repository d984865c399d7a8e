"""Messages of a real kernel while live widgets run: at most ten per second, and none into a later cell."""

import queue
import time

import pytest

pytest.importorskip("anywidget")

SENT = (
    "comm_open",
    "comm_msg",
    "display_data",
    "update_display_data",
    "execute_result",
    "stream",
    "error",
    "clear_output",
)
SETUP = """
import time
import numpy as np
import minflow as flow
import minflow.typing as tp
from minflow import nn
from minflow_widgets import LossCurve, explore, watch, watch_timeline

def steps(do, rate=1000, seconds=1.1, least=200):
    begun, n = time.perf_counter(), 0
    while (now := time.perf_counter() - begun) < seconds or n < least:
        if n <= now * rate:
            do(n)
            n += 1
        else:
            time.sleep(0.0003)
    print(n)

def job(result, name):
    def function(x: tp.Numpy.Placeholder((4,))) -> result:
        return x + x
    function.__name__ = name
    return flow.global_function(type="predict")(function)

class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(4, 1)
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.01))
    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        return loss

x, ones = flow.ones(2, 4), np.ones(4, "f")
graph, waits, hands = Train(), job(tp.Numpy, "waits"), job(tp.Callback[tp.Numpy], "hands")
graph(x), waits(ones);
"""
LOOPS = {
    "graph": "with watch(graph) as curve: steps(lambda n: graph(x))",
    "timeline": "with watch_timeline() as live: steps(lambda n: waits(ones))",
    "debug": "graph.debug(3); steps(lambda n: None)\nfor size in range(3, 9): graph(flow.ones(size, 4))",
}


@pytest.fixture(scope="module")
def client(real_kernel):
    real_kernel.fresh(SETUP)
    return real_kernel.client


def messages(kc, code, after=0.0):
    """Return the messages of a cell: (time, type, content, whether they name the cell). after: seconds to keep
    listening.
    """
    asked, found, end = kc.execute(code), [], None
    while end is None or time.monotonic() < end:
        try:
            message = kc.get_iopub_msg(timeout=60 if end is None else max(end - time.monotonic(), 0.001))
        except queue.Empty:
            break
        mine = message["parent_header"].get("msg_id") == asked
        found.append((message["header"]["date"].timestamp(), message["msg_type"], message["content"], mine))
        if mine and message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            end = time.monotonic() + after
    return found


def told(kc, code, after=0.0):
    """Return (seconds, type, content, mine) of messages that a page would display or pass to a widget."""
    found = [m for m in messages(kc, code, after) if m[1] in SENT]
    errors = [m[2] for m in found if m[1] == "error"]
    assert errors == [], errors
    return found


def most_in_a_second(times):
    return max((len([u for u in times[i:] if u < t + 1.0]) for i, t in enumerate(times)), default=0)


@pytest.mark.parametrize("what", LOOPS)
def test_thousand_steps_per_second_give_few_messages(client, what):
    least = 1 if what == "debug" else 3
    for _ in range(4):  # a busy machine, on which updates are expensive, sends fewer: try again
        found = told(client, LOOPS[what], after=0.25)
        times = [t for t, kind, content, _ in found if kind in ("comm_msg", "update_display_data")]
        if len(times) >= least:
            break
    assert len(times) >= least, "nothing moved"
    # Ten updates per second, and the end (a last value, the picture in its place).
    seconds = times[-1] - times[0]
    assert len(times) <= 10 * seconds + 6, f"{len(times)} messages in {seconds} seconds"
    assert most_in_a_second(times) <= 13
    assert all(mine for *_, mine in found)


def test_no_output_in_a_later_cell(client):
    """A run watched by a curve, one by a timeline, and a curve that a thread fills, concurrently."""
    shown = told(
        client,
        """import threading
first, second = (flow.start(hands, [(ones,)] * 100_000) for _ in range(2))
curve, live, begun, over = watch(first), watch_timeline(second), threading.Event(), threading.Event()
def train():
    with LossCurve() as curve:
        while not over.wait(0.001):
            curve.add(loss=1.0)
            begun.set()
thread = threading.Thread(target=train); thread.start(); begun.wait(60);""",
        after=0.3,
    )
    assert [kind for _, kind, _, _ in shown].count("display_data") >= 2
    while_they_run = told(client, "time.sleep(1.1)", after=0.1)
    last = told(client, "first.stop()\nsecond.stop()\nover.set()\nthread.join()", after=0.8)
    for _, kind, content, _ in while_they_run + last:
        assert kind in ("comm_msg", "comm_close", "update_display_data"), (kind, content)
        if kind == "update_display_data":
            assert content["transient"]["display_id"]
    comms = {content["comm_id"] for _, kind, content, _ in while_they_run if kind == "comm_msg"}
    for comm in comms:
        assert (
            most_in_a_second(
                [t for t, kind, content, _ in while_they_run if kind == "comm_msg" and content["comm_id"] == comm]
            )
            <= 13
        )
