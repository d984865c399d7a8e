"""The timeline in a real JupyterLab: it moves while jobs run, and leaves a picture that an untrusted notebook shows."""

import pytest
from pages import act, drive, shots_folder, write

pytestmark = pytest.mark.browser

JOBS = """
import time
import numpy as np
import minflow as flow
import minflow.typing as tp
from minflow_widgets import watch_timeline

def fresh(result):
    flow.clear_default_session()

    @flow.global_function(type="train")
    def train_job(x: tp.Numpy.Placeholder((100, 784)), y: tp.Numpy.Placeholder((100,), dtype=flow.int32)) -> result:
        h = flow.layers.dense(x, 1024, activation=flow.nn.relu, name="h")
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, flow.layers.dense(h, 10, name="o"))
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.02])).minimize(loss)
        return loss

    return train_job

x, y = np.random.rand(100, 784).astype("f"), np.zeros(100, "i")
seen = []

def loop(job, n):
    for i in range(n):
        time.sleep(0.006)  # the loader
        step = job(x, y)
        if not isinstance(step, np.ndarray):
            step(lambda loss: seen.append(loss.mean()))
    flow.sync_default_session()
"""
BOTH = """
with watch_timeline() as live:
    loop(fresh(tp.Numpy), 120)
    loop(fresh(tp.Callback[tp.Numpy]), 120)
"""
CHECK = """
both = live.timeline
assert (both.first.mode, both.second.mode) == ("sync", "async") and len(both.second) == 120
both.second
"""
RUN = """
run = flow.start(fresh(tp.Callback[tp.Numpy]), [(x, y)] * 400)
live = watch_timeline(run)
"""
SHOWN = """
free = watch_timeline()
free
"""
FREE = """
loop(fresh(tp.Callback[tp.Numpy]), 60)
assert free.timeline.mode == "async" and len(free.timeline) == 60
"""
SIDE_BY_SIDE = """
def batches():
    for _ in range(300):
        time.sleep(0.006)
        yield x, y

jobs = fresh(tp.Numpy), fresh(tp.Callback[tp.Numpy])  # first: each clears the session, which stops runs
runs = [flow.start(job, batches(), own_session=True) for job in jobs]
pair = watch_timeline(*runs)
"""
ENDED = """
for run in runs: run.result()
assert pair.gain().startswith("async is ") and "the formula promises" in pair.gain()
"""
WAIT = "run.result(); live.stop(); flow.timeline(run, steps=30)"


def test_lanes_move_and_remain(lab, dark, tmp_path):
    write(lab[1], JOBS, BOTH, CHECK, SHOWN, FREE, "free.stop()", RUN, WAIT, SIDE_BY_SIDE, ENDED)
    report = drive(lab, shots_folder(tmp_path, "timeline"))
    assert report["errors"] == []
    assert report["live"] >= 1 and report["liveFrames"] >= 5, "the lanes did not move"
    assert report["atEnd"]["good"] == 6 and report["atEnd"]["unnamed"] == 0 and report["atEnd"]["canvases"] == 0
    assert report["again"]["good"] == 6 and not report["again"]["lost"] and not report["again"]["broken"]
    names = report["atEnd"]["names"]
    assert ["train_job, sync" in name for name in names] == [True, False, False, False, False, True]
    assert all("train_job, async" in name for name in names[1:-1])


def test_words_have_the_colors_of_the_page(lab, tmp_path):
    """Live and as a picture that remains: the halos of words are as dark as a dark page."""
    write(
        lab[1],
        JOBS,
        "live = watch_timeline()\nlive",
        "loop(fresh(tp.Callback[tp.Numpy]), 30)",
        "live.stop(); live.timeline",
    )
    canvas = "document.querySelector('.jp-OutputArea canvas')"
    halos = f"""(() => {{
        const {{ width, height }} = {canvas};
        const bytes = {canvas}.getContext('2d').getImageData(0, 0, width, height).data;
        let n = 0;
        for (let i = 0; i < bytes.length; i += 4) n += bytes[i] === 17 && bytes[i + 2] === 17 && bytes[i + 3] === 255;
        return n;
    }})()"""
    picture = "getComputedStyle([...document.querySelectorAll('.jp-OutputArea svg [paint-order]')].pop()).stroke"
    actions = [
        ["theme", "JupyterLab Dark"],
        ["cell", 0],
        ["idle"],
        ["cell", 1],
        ["until", f"{canvas}"],
        ["cell", 2],
        ["idle"],
        ["until", f"{halos} > 500"],
        ["shot", "live"],
        ["cell", 3],
        ["idle"],
        ["eval", picture],
        ["shot", "remains"],
    ]
    report = act(lab, shots_folder(tmp_path, "timeline-dark"), actions, pictures=True)
    assert report["values"] == ["rgb(17, 17, 17)"]
