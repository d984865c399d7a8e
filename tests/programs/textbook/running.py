"""Run a program of this folder as its author wrote it, on PyTorch, or with the import lines changed, on minflow.

Weights and draws come from NumPy, so that both start from the same numbers; all else is the program's own.
"""

from __future__ import annotations

import importlib
import re
from contextlib import contextmanager
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LOSSES = HERE / "losses.json"
PROGRAMS = sorted(file.stem for file in HERE.glob("*.py") if "def main(prepare)" in file.read_text("utf-8")
                  and file.stem != "running")


def changed(text: str) -> str:
    """The import lines of a program of PyTorch's, changed to minflow's."""
    text = re.sub(r"^import torch$", "import minflow as torch", text, flags=re.M)
    return re.sub(r"^(import|from) torch\b(?! as)", r"\1 minflow", text, flags=re.M)


def prepared(library, seed: int = 0):
    """A function that sets the weights of a model, drawn by NumPy, and returns the model."""
    rng = np.random.default_rng(seed)

    def prepare(model):
        for parameter in model.parameters():
            width = parameter.shape[-1] if len(parameter.shape) > 1 else 4
            values = rng.standard_normal(tuple(parameter.shape)) / np.sqrt(width)
            with library.no_grad():
                parameter.copy_(library.from_numpy(values.astype("float32")))
        return model

    return prepare


@contextmanager
def drawing_by_numpy(library, seed: int = 1):
    """The functions that draw, with NumPy's numbers in both libraries."""
    rng = np.random.default_rng(seed)
    normal = lambda shape: library.from_numpy(rng.standard_normal(tuple(shape)).astype("float32"))
    flat = lambda sizes: sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes

    def multinomial(weights, count, replacement=False):
        p = weights.numpy().astype("float64")
        return library.from_numpy(rng.choice(len(p), count, replacement, p / p.sum()))

    draws = {
        "randn": lambda *sizes, device=None, dtype=None: normal(flat(sizes)),
        "randn_like": lambda x: normal(x.shape),
        "multinomial": multinomial,
    }
    kept = {name: getattr(library, name) for name in draws}
    try:
        for name, draw in draws.items():
            setattr(library, name, draw)
        yield
    finally:
        for name, own in kept.items():
            setattr(library, name, own)


def losses(name: str, library: str) -> list[float]:
    """The losses that the program returns. library: "torch" or "minflow"."""
    module = importlib.import_module(library)
    text = (HERE / f"{name}.py").read_text(encoding="utf-8")
    names = {"__name__": f"textbook_{name}"}
    exec(compile(text if library == "torch" else changed(text), f"{name}.py", "exec"), names)
    with drawing_by_numpy(module):
        return [float(x) for x in names["main"](prepared(module))]
