"""`python -m minflow.compat script.py arguments ...`: run a OneFlow or PyTorch program with minflow.

`--torch` makes `import torch` return minflow even if PyTorch is installed. `-m package.module` runs a module.
The program is `__main__`, has its own sys.argv, and its tracebacks begin at its own lines.
"""

from __future__ import annotations

import os
import runpy
import sys

from .names import is_installed, substitute

USAGE = "usage: python -m minflow.compat [--torch] script.py | -m module  [arguments ...]"


def main(words: list[str]) -> int:
    """Run a program and return its exit code. words: the command line after `minflow.compat`."""
    wanted = words[:1] == ["--torch"]
    words = words[wanted:]
    by_name = words[:1] == ["-m"]
    if len(words) <= by_name or (not by_name and words[0].startswith("-")):
        print(USAGE, file=sys.stderr)
        return 2
    if not by_name and not os.path.exists(words[0]):
        print(f"python -m minflow.compat: there is no file {words[0]!r}", file=sys.stderr)
        return 2
    substitute("oneflow")
    if wanted or not is_installed("torch"):
        substitute("torch")
    sys.argv = words[by_name:]
    sys.path[0] = os.getcwd() if by_name else os.path.dirname(os.path.realpath(words[0]))
    try:
        if by_name:
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
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
