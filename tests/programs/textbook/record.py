"""`python -m tests.programs.textbook.record`: write down what each program of this folder gives with PyTorch."""

import json

from .running import LOSSES, PROGRAMS, losses

if __name__ == "__main__":
    rounded = {name: [float(f"{x:.7g}") for x in losses(name, "torch")] for name in PROGRAMS}
    LOSSES.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
