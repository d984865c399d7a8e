"""`python -m minflow.compat script.py arguments ...`: run a OneFlow or PyTorch program with minflow.

`--torch` makes `import torch` return minflow even if PyTorch is installed. `-m package.module` runs a module;
`-m oneflow.distributed.launch`, and PyTorch's launchers, are `launch.py`.
The program is `__main__`, has its own sys.argv, and its tracebacks begin at its own lines.
"""

from __future__ import annotations

import os
import runpy
import sys

from .launch import launch
from .names import alias_libraries

USAGE = "usage: python -m minflow.compat [--torch] script.py | -m module  [arguments ...]"
LAUNCHERS = "oneflow.distributed.launch", "torch.distributed.launch", "torch.distributed.run"


def main(argv: list[str]) -> int:
    """Run a program and return its exit code. argv: the command line after `minflow.compat`."""
    force_torch = argv[:1] == ["--torch"]
    argv = argv[force_torch:]
    run_as_module = argv[:1] == ["-m"]
    if len(argv) <= run_as_module or (not run_as_module and argv[0].startswith("-")):
        print(USAGE, file=sys.stderr)
        return 2
    if not run_as_module and not os.path.exists(argv[0]):
        print(f"python -m minflow.compat: there is no file {argv[0]!r}", file=sys.stderr)
        return 2
    if run_as_module and argv[1] in LAUNCHERS:
        return launch([*["--torch"] * force_torch, *argv[2:]])
    alias_libraries(force_torch)
    sys.argv = argv[run_as_module:]
    sys.path[0] = os.getcwd() if run_as_module else os.path.dirname(os.path.realpath(argv[0]))
    try:
        if run_as_module:
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(argv[0], run_name="__main__")
    except Exception as error:
        trace = error.__traceback__
        while (
            trace is not None
            and trace.tb_frame.f_globals.get("__name__") in (__name__, "__main__", "runpy")
            and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>", "<string>")
        ):
            trace = trace.tb_next
        error.__traceback__ = trace
        sys.excepthook(type(error), error, trace)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
