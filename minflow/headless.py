"""Execute a notebook without a browser and print its outputs as text, each as soon as it comes.

Called by `minflow run`; knows Jupyter's nbclient and nothing of the engine.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

LARGEST = 200_000_000  # bytes of a notebook
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def say(text: str, stream) -> None:
    """Write at once; without colours where no terminal shows them."""
    print(text if stream.isatty() else COLOURS.sub("", text), end="", flush=True, file=stream)


def text_of(output: dict) -> str:
    """What a terminal can show of one output: its text, else the kinds of data that it has."""
    if output["output_type"] == "stream":
        return output["text"]
    if output["output_type"] == "error":
        return "\n".join(output["traceback"]) + "\n"
    data = output.get("data", {})
    text = data.get("text/plain")
    return (text if text is not None else f"[{', '.join(sorted(data))}]") + "\n"


class Printing(NotebookClient):
    """A NotebookClient that prints. shown: what each display id showed last, so that an update which changes nothing
    in text is not printed again.  at: the number of the cell that runs.  expected: it is there to show an error."""

    def __init__(self, notebook, **settings):
        super().__init__(notebook, **settings)
        self.shown: dict[str, str] = {}
        self.at = 0
        self.expected = False

    def show(self, output: dict, display_id: str | None = None) -> None:
        if output["output_type"] == "error" and not self.expected:
            return                                              # printed once, with its cell, by `execute`
        text = text_of(output)
        if display_id is not None:
            if self.shown.get(display_id) == text:
                return
            self.shown[display_id] = text
        say(text, sys.stderr if output.get("name") == "stderr" else sys.stdout)

    def output(self, outs, msg, display_id, cell_index):
        kept = super().output(outs, msg, display_id, cell_index)
        if msg["msg_type"] in ("stream", "display_data", "execute_result", "error"):
            self.show(nbformat.v4.output_from_msg(msg), display_id)
        return kept

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] == "update_display_data":
            content = dict(msg, msg_type="display_data", header=dict(msg["header"], msg_type="display_data"))
            self.show(nbformat.v4.output_from_msg(content), msg["content"].get("transient", {}).get("display_id"))
        return super().process_message(msg, cell, cell_index)

    async def async_execute_cell(self, cell, cell_index, *words, **settings):
        if cell.cell_type == "markdown":
            for line in cell.source.splitlines():
                if line.startswith("#"):
                    print(f"\n{line}", flush=True)
        tags = cell.metadata.get("tags", [])
        self.at = cell_index
        self.expected = "raises-exception" in tags or "NBVAL_RAISES_EXCEPTION" in cell.source
        if self.expected:
            cell.metadata["tags"] = [*tags, "raises-exception"]
        return await super().async_execute_cell(cell, cell_index, *words, **settings)


def execute(path: Path, timeout: float = 600) -> int:
    """Run all cells of the notebook at `path` in its folder. timeout: seconds per cell. Returns 0, or 1 if a cell
    failed; then its number (counted over the cells that hold code), source and traceback go to stderr. The file is
    not changed."""
    # Nobody sees a widget here: a live curve prints what it ends with.
    os.environ.setdefault("MINFLOW_LIVE", "0")
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # damaged in any way: nbformat, json, jsonschema and the system have their own
        reason = COLOURS.sub("", str(error)).strip().partition("\n")[0][:200] or type(error).__name__
        say(f"minflow run: {path} is no notebook that can be read: {ascii(reason)[1:-1]}\n"
            "Try: open it in JupyterLab; or copy it again from where it came\n", sys.stderr)
        return 1
    client = Printing(notebook, timeout=timeout, kernel_name="python3", store_widget_state=False,
                      resources={"metadata": {"path": str(path.resolve().parent)}})
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        cell = notebook.cells[client.at]
        number = sum(cell.cell_type == "code" for cell in notebook.cells[: client.at + 1])
        source = "\n".join(f"    {line}" for line in cell.source.splitlines())
        traces = [text_of(output) for output in cell.get("outputs", []) if output["output_type"] == "error"]
        say(f"\n{path.name}: cell {number} failed:\n{source}\n\n{''.join(traces) or error}\n", sys.stderr)
        return 1
    return 0
