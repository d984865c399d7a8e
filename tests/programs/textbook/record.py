"""`python -m tests.programs.textbook.record`: write down what each program of this folder gives with PyTorch."""

import json

from .running import LOSSES, PROGRAMS, losses

if __name__ == "__main__":
    rows = [f' "{name}": {json.dumps([float(f"{x:.7g}") for x in losses(name, "torch")])}' for name in PROGRAMS]
    LOSSES.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
