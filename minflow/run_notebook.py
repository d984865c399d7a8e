"""Execute a notebook without a browser and print its outputs as text as they arrive.

Called by `minflow run`. Depends on Jupyter's nbclient and on nothing of the engine. The kernel's own log goes to a
file, and is shown if the kernel dies.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import math
import os
import re
import signal
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import IO

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from .core.messages.invocation import command

MAX_BYTES = 200_000_000  # bytes of a notebook that `execute` accepts
SILENT_LOG = logging.getLogger(__name__)  # nbclient's log is discarded: `execute` reports its errors
SILENT_LOG.addHandler(logging.NullHandler())
SILENT_LOG.propagate = False
ANSI_COLORS = re.compile(r"\x1b\[[0-9;]*m")


def print_text(text: str, stream) -> None:
    """Print and flush; without colors unless the stream is a terminal."""
    print(text if stream.isatty() else ANSI_COLORS.sub("", text), end="", flush=True, file=stream)


def output_text(output: dict) -> str:
    """Text of one output for a terminal; if it has none, its MIME types."""
    if output["output_type"] == "stream":
        return output["text"]
    if output["output_type"] == "error":
        return "\n".join(output["traceback"]) + "\n"
    data = output.get("data", {})
    text = data.get("text/plain")
    return (text if text is not None else f"[{', '.join(sorted(data))}]") + "\n"


class PrintingClient(NotebookClient):
    """A NotebookClient that prints.

    last_text: last text of each display id, so that an update that leaves the text unchanged is not printed again.
    cell_index: index of the running cell. expects_error: True if that cell is meant to raise.
    stop_signal: the signal that ended the run, 0 for none. ready: True once the kernel has answered.
    """

    def __init__(self, notebook, **settings):
        super().__init__(notebook, **settings)
        self.last_text: dict[str, str] = {}
        self.cell_index = 0
        self.expects_error = False
        self.stop_signal = 0
        self.ready = False

    async def async_start_new_kernel(self, **settings):
        """Start the kernel, and replace nbclient's handler of Ctrl-C, which ends in an error of its own."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(RuntimeError):  # Windows, where Ctrl-C is a KeyboardInterrupt
                loop.add_signal_handler(number, self.stop, number, task)
        await super().async_start_new_kernel(**settings)

    async def async_start_new_kernel_client(self):
        client = await super().async_start_new_kernel_client()
        self.ready = True
        return client

    def stop(self, number: int, task: asyncio.Task) -> None:
        self.stop_signal, self.shutdown_kernel = number, "immediate"
        task.cancel()

    def show(self, output: dict, display_id: str | None = None) -> None:
        if output["output_type"] == "error" and not self.expects_error:
            return  # printed once, with its cell, by `execute`
        text = output_text(output)
        if display_id is not None:
            if self.last_text.get(display_id) == text:
                return
            self.last_text[display_id] = text
        print_text(text, sys.stderr if output.get("name") == "stderr" else sys.stdout)

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
        self.cell_index = cell_index
        self.expects_error = "raises-exception" in tags or "NBVAL_RAISES_EXCEPTION" in cell.source
        if self.expects_error:
            cell.metadata["tags"] = [*tags, "raises-exception"]
        return await super().async_execute_cell(cell, cell_index, *words, **settings)


def execute(path: Path, timeout: float = 600, in_notebook_folder: bool = False) -> int:
    """Run all cells of the notebook at `path`. The file is not changed.

    timeout: seconds per cell, rounded up.
    in_notebook_folder: run in the notebook's own folder. By default it runs in a temporary folder and can only import
    from its own.
    Returns 0; 1 if a cell failed (its number among the code cells and its traceback go to stderr); 128 + n if it was
    stopped by signal n, as a shell does.
    """
    # A terminal shows neither widgets nor cards: a live curve prints its final state, an error its text.
    os.environ.setdefault("MINFLOW_LIVE", "0")
    os.environ.setdefault("MINFLOW_CARDS", "0")
    warnings.filterwarnings("ignore", "Proactor event loop", RuntimeWarning)  # on Windows: slower, but it works
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        content = path.read_text(encoding="utf-8")
        if "nbformat" not in json.loads(content):  # nbformat would take it for version 1, whose cells are elsewhere
            raise ValueError("it has no nbformat")
        notebook = nbformat.reads(content, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # nbformat, json, jsonschema and the OS all raise their own types
        reason = ANSI_COLORS.sub("", str(error)).strip().partition("\n")[0][:200] or type(error).__name__
        print_text(
            f"minflow run: {path} is not a readable notebook: {ascii(reason)[1:-1]}\n"
            "Try: open it in JupyterLab, or copy it again from its source\n",
            sys.stderr,
        )
        return 1
    own = path.resolve().parent
    with (
        tempfile.TemporaryDirectory(prefix="minflow-run-", ignore_cleanup_errors=True) as work,
        tempfile.TemporaryFile("w+", errors="replace") as log,
    ):
        importing = f"__import__('sys').path.insert(1, {str(own)!r})"
        client = PrintingClient(
            notebook,
            timeout=min(math.ceil(timeout), 10**7),
            kernel_name="python3",
            store_widget_state=False,
            resources={"metadata": {"path": str(own if in_notebook_folder else work)}},
            log=SILENT_LOG,
            extra_arguments=[
                "--IPKernelApp.log_level=ERROR",
                "--InteractiveShell.xmode=Plain",
                f"--IPKernelApp.exec_lines={importing}",
            ],
        )
        try:
            client.execute(stdout=log, stderr=log)
        except (CellExecutionError, CellTimeoutError, DeadKernelError, asyncio.CancelledError) as error:
            return report_failure(client, path, error, log, in_notebook_folder)
        except Exception as error:  # jupyter_client and the system raise many kinds if a kernel cannot start
            if client.ready:
                raise
            atexit.unregister(client._cleanup_kernel)  # registered by nbclient, which has cleaned up already
            return report_start_failure(path, error, log)
    return 0


def report_start_failure(path: Path, error: Exception, log: IO[str]) -> int:
    """Report why the kernel did not start. Returns the exit code."""
    log.seek(0)
    lines, hint = "", f"{command('doctor')}; a firewall, a VPN or a sandbox must allow connections to 127.0.0.1"
    if "died" in str(error):  # otherwise the kernel was reached too late, and its log only says that it was stopped
        lines, hint = "".join(log.readlines()[-20:]), "fix what the kernel reports above"
    print_text(f"minflow run: the kernel for {path.name} did not start: {error}\n{lines}Try: {hint}\n", sys.stderr)
    return 1


def report_failure(
    client: PrintingClient, path: Path, error: BaseException, log: IO[str], in_notebook_folder: bool
) -> int:
    """Report why the notebook stopped. Returns the exit code."""
    cell = client.nb.cells[client.cell_index]
    number = sum(cell.cell_type == "code" for cell in client.nb.cells[: client.cell_index + 1])
    place = f"\n{path.name}: cell {number}"
    if client.stop_signal:
        print_text(f"{place} was interrupted\n", sys.stderr)
        return 128 + client.stop_signal
    traces = "".join(output_text(output) for output in cell.get("outputs", []) if output["output_type"] == "error")
    source = "".join(f"    {line}\n" for line in cell.source.splitlines())
    if isinstance(error, CellTimeoutError):
        print_text(
            f"{place} took longer than {client.timeout} s and was stopped:\n{traces or source}"
            f"Try: {command('run', '--timeout', 'SECONDS', str(path))}, with more of them\n",
            sys.stderr,
        )
    elif isinstance(error, DeadKernelError):
        log.seek(0)
        print_text(f"{place} ended its kernel:\n{source}{''.join(log.readlines()[-20:])}", sys.stderr)
    else:
        print_text(f"{place} failed:\n{traces or error}", sys.stderr)
        if "FileNotFoundError" in traces and not in_notebook_folder:
            print_text(
                f"Try: {command('run', '--here', str(path))}, if it reads a file of its own folder\n", sys.stderr
            )
    return 1
