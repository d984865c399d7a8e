"""Messages of a page reach a live view, in a real kernel: from a reloaded page, and while a cell runs.

A page that is loaded opens a thread in the kernel (a subshell) for a moment, closes it, and opens another one for its
clicks.
"""

import ast
import time

import pytest

pytest.importorskip("anywidget")

SETUP = """
import threading, time
import minflow as flow
from minflow import nn
from minflow_widgets import LossCurve, explore

class Control:
    state = "running"
    def pause(self): self.state = "paused"

class Forward(nn.Graph):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
    def build(self, x):
        return self.layer(x)

forward = Forward()
forward(flow.ones(1, 2))
explorer = explore(forward)
explorer._ipython_display_()
explorer.shown[0][0].observe(lambda change: asked.append(change["new"]), "ask")
asked = []
control = Control()
curve = LossCurve(control=control)
over = threading.Event()
def work(over, curve):
    step = 0
    while not over.wait(0.02):
        curve.add(step, loss=1 / (step + 1))
        step += 1
worker = threading.Thread(target=work, args=(over, curve), daemon=True)
worker.start()
while curve._front is None: time.sleep(0.01)
ids = [curve._front.widget.comm.comm_id, explorer.shown[0][0].comm.comm_id]
"""


class Page:
    """A client that behaves like JupyterLab."""

    def __init__(self, client):
        self.client, self.threads = client, []

    def send(self, kind, content, thread=None):
        message = self.client.session.msg(kind, content)
        if thread is not None:
            message["header"]["subshell_id"] = thread
        (self.client.control_channel if "subshell" in kind else self.client.shell_channel).send(message)
        return message["header"]["msg_id"]

    def open_thread(self):
        self.send("create_subshell_request", {})
        self.threads.append(self.client.get_control_msg(timeout=60)["content"]["subshell_id"])
        return self.threads[-1]

    def close_thread(self, thread):
        self.threads.remove(thread)
        self.send("delete_subshell_request", {"subshell_id": thread})
        assert self.client.get_control_msg(timeout=60)["content"]["status"] == "ok"

    def until(self, found):
        """Return the first message that matches, of those that all pages get."""
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            if found(message):
                return message

    def handled(self, sent):
        self.until(lambda m: m["parent_header"].get("msg_id") == sent and m["content"].get("execution_state") == "idle")

    def press(self, comm, trait, value, thread):
        data = {"method": "update", "state": {trait: value}, "buffer_paths": []}
        return self.send("comm_msg", {"comm_id": comm, "data": data}, thread)

    def ask(self, expression):
        reply = self.client.execute_interactive(
            "", user_expressions={"it": expression}, output_hook=lambda m: None, timeout=60
        )
        return ast.literal_eval(reply["content"]["user_expressions"]["it"]["data"]["text/plain"])


@pytest.fixture(scope="module")
def page(real_kernel):
    real_kernel.fresh(SETUP)
    features = real_kernel.client.kernel_info(reply=True, timeout=60)["content"].get("supported_features", [])
    if "kernel subshells" not in features:
        pytest.skip("this kernel has one thread for cells and clicks")
    page = Page(real_kernel.client)
    yield page
    for thread in [*page.threads]:
        page.close_thread(thread)
    real_kernel.run("over.set(); worker.join(60)")


def load(page):
    """Load the page; return the thread for its clicks."""
    passing = page.open_thread()
    page.handled(page.send("comm_info_request", {"target_name": "jupyter.widget"}, passing))
    # the curve moved
    page.until(lambda m: m["msg_type"] == "comm_msg" and m["parent_header"].get("subshell_id") == passing)
    mine = page.open_thread()
    page.close_thread(passing)
    return mine


def test_button_works_after_a_reload(page):
    thread, (curve, _) = load(page), page.ask("ids")
    page.ask("setattr(control, 'state', 'running')")
    load(page)  # by a second page
    page.handled(page.press(curve, "wish", "pause 1", thread))
    assert page.ask("control.state") == "paused"


def test_button_works_while_a_cell_runs(page):
    thread, (curve, _) = load(page), page.ask("ids")
    page.ask("setattr(control, 'state', 'running')")
    cell = page.client.execute("""
until = time.time() + 60
while control.state != "paused" and time.time() < until: time.sleep(0.05)
heard = control.state""")
    time.sleep(0.3)
    page.press(curve, "wish", "pause 2", thread)
    page.handled(cell)
    assert page.ask("heard") == "paused"


def test_explorer_answers_after_its_page_was_reopened(page):
    first, (_, explorer) = load(page), page.ask("ids")
    page.handled(page.press(explorer, "ask", '{"do": "search", "text": "lay", "n": "1"}', first))
    page.close_thread(first)
    second = load(page)
    page.handled(page.press(explorer, "ask", '{"do": "search", "text": "linear", "n": "2"}', second))
    assert len(page.ask("asked")) == 2
