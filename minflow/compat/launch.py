"""`python -m minflow.compat.launch --nproc_per_node 2 script.py`: a OneFlow or PyTorch program on several ranks.

The options are those of `minflow launch`, of which this is `minflow launch --compat`.
"""

from __future__ import annotations

import sys


def launch(words: list[str]) -> int:
    """Run a program on several ranks; return the exit code. words: the command line after the name of this module."""
    from ..distributed.launch import main

    return main(["--compat", *words])


if __name__ == "__main__":
    sys.exit(launch(sys.argv[1:]))
