"""What a page tells a live view reaches it, in a real kernel: from a page that was loaded again, and while a cell runs.

A page that is loaded opens a thread in the kernel (a subshell) for a moment, closes it, and opens another one for its
clicks.
"""

import ast
import os
import time
from pathlib import Path

import pytest

pytest.importorskip("anywidget")
jupyter_client = pytest.importorskip("jupyter_client")
TOP = Path(__file__).parent.parent.parent

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
def work():
    for step in range(3000):
        curve.add(step, loss=1 / (step + 1))
        time.sleep(0.02)
threading.Thread(target=work, daemon=True).start()
while curve._front is None: time.sleep(0.01)
ids = [curve._front.widget.comm.comm_id, explorer.shown[0][0].comm.comm_id]
"""


class Page:
    """A client that does what JupyterLab does."""

    def __init__(self, client):
        self.client = client

    def send(self, kind, content, thread=None):
        message = self.client.session.msg(kind, content)
        if thread is not None:
            message["header"]["subshell_id"] = thread
        (self.client.control_channel if "subshell" in kind else self.client.shell_channel).send(message)
        return message["header"]["msg_id"]

    def open_thread(self):
        self.send("create_subshell_request", {})
        return self.client.get_control_msg(timeout=60)["content"]["subshell_id"]

    def close_thread(self, thread):
        self.send("delete_subshell_request", {"subshell_id": thread})
        assert self.client.get_control_msg(timeout=60)["content"]["status"] == "ok"

    def until(self, found):
        """The first message that it finds, of those that all pages see."""
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
        reply = self.client.execute_interactive("", user_expressions={"it": expression}, output_hook=lambda m: None, timeout=60)
        return ast.literal_eval(reply["content"]["user_expressions"]["it"]["data"]["text/plain"])


@pytest.fixture(scope="module")
def kernel():
    environment = {**os.environ, "MINFLOW_LIVE": "1", "PYTHONPATH": os.pathsep.join([str(TOP), str(TOP / "widgets")])}
    manager, client = jupyter_client.manager.start_new_kernel(startup_timeout=60, env=environment)
    try:
        reply = client.execute_interactive(SETUP, timeout=60, output_hook=lambda m: None)
        assert reply["content"]["status"] == "ok", reply["content"]
        client.kernel_info()
        if "kernel subshells" not in client.get_shell_msg(timeout=60)["content"].get("supported_features", []):
            pytest.skip("this kernel has one thread for cells and clicks")
        yield Page(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def load(page):
    """What loading a page does; the thread for its clicks."""
    passing = page.open_thread()
    page.handled(page.send("comm_info_request", {"target_name": "jupyter.widget"}, passing))
    # the curve moved
    page.until(lambda m: m["msg_type"] == "comm_msg" and m["parent_header"].get("subshell_id") == passing)
    mine = page.open_thread()
    page.close_thread(passing)
    return mine


def test_a_button_is_heard_after_the_page_was_loaded_again(kernel):
    thread, (curve, _) = load(kernel), kernel.ask("ids")
    kernel.ask("setattr(control, 'state', 'running')")
    load(kernel)  # by a second page
    kernel.handled(kernel.press(curve, "wish", "pause 1", thread))
    assert kernel.ask("control.state") == "paused"


def test_a_button_is_heard_while_a_cell_runs(kernel):
    thread, (curve, _) = load(kernel), kernel.ask("ids")
    kernel.ask("setattr(control, 'state', 'running')")
    cell = kernel.client.execute("""
until = time.time() + 60
while control.state != "paused" and time.time() < until: time.sleep(0.05)
heard = control.state""")
    time.sleep(0.3)
    kernel.press(curve, "wish", "pause 2", thread)
    kernel.handled(cell)
    assert kernel.ask("heard") == "paused"


def test_an_explorer_answers_after_its_page_was_closed_and_opened(kernel):
    first, (_, explorer) = load(kernel), kernel.ask("ids")
    kernel.handled(kernel.press(explorer, "ask", '{"do": "search", "text": "lay", "n": "1"}', first))
    kernel.close_thread(first)
    second = load(kernel)
    kernel.handled(kernel.press(explorer, "ask", '{"do": "search", "text": "linear", "n": "2"}', second))
    assert len(kernel.ask("asked")) == 2
