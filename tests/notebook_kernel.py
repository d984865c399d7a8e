"""The one real notebook kernel of a test process; conftest.py has its fixture `real_kernel`."""

import os
import queue
from pathlib import Path

from jupyter_client.manager import start_new_kernel

TOP = Path(__file__).parent.parent
SHOWN = "display_data", "update_display_data", "execute_result", "stream", "error"
NEW = """
__import__("ipywidgets").Widget.close_all()
__import__("minflow").clear_default_session()
get_ipython().reset(new_session=True)
__import__("gc").collect();
"""


class Kernel:
    def __init__(self):
        path = os.pathsep.join([str(TOP), str(TOP / "widgets")])
        environment = {**os.environ, "MINFLOW_LIVE": "1", "PYTHONPATH": path}
        self.manager, self.client = start_new_kernel(startup_timeout=60, kernel_name="python3", env=environment)

    def run(self, code, hook=None, cell=None):
        """Run a cell; return (its status, its outputs as (type, content)). hook is called with each (type, content).

        cell: id of the cell, as JupyterLab sends it; None: as before.
        """
        if cell is not None:
            self.client.session.metadata = {"cellId": cell} if cell else {}
        shown = []

        def heard(message):
            if message["msg_type"] in SHOWN:
                shown.append((message["msg_type"], message["content"]))
                if hook is not None:
                    hook(*shown[-1])

        reply = self.client.execute_interactive(code, output_hook=heard, timeout=120)
        return reply["content"]["status"], shown

    def fresh(self, setup=""):
        """Reset the kernel, except for imported modules, and run the cell."""
        for code in (NEW, setup):
            status, shown = self.run(code)
            assert status == "ok", shown
        for get in (self.client.get_iopub_msg, self.client.get_shell_msg):  # unread messages
            try:
                while True:
                    get(timeout=0.1)
            except queue.Empty:
                pass

    def stop(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
