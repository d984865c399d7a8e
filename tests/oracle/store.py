"""Recorded results of PyTorch in one file: packed JSON, with the same bytes for the same contents.

A case is a program of `tests.fuzz.calls` with its result. Nothing here needs PyTorch.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np

from tests.fuzz.comparison import Outcome

FILE = Path(__file__).parent / "expected.json.xz"
FAMILIES = Path(__file__).parent / "families.json.xz"
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 24}]


def packed(x):
    """A plain result as JSON: an array is {"d": dtype, "s": shape, "v": numbers}."""
    if isinstance(x, complex) or (isinstance(x, np.ndarray) and x.dtype.kind == "c"):
        return str(x)  # minflow has no such dtype: its refusal is listed
    if isinstance(x, np.ndarray):
        short = (lambda v: float(str(v))) if x.dtype.kind == "f" else (lambda v: v.item())
        return {"d": str(x.dtype), "s": list(x.shape), "v": [short(v) for v in x.reshape(-1)]}
    if isinstance(x, (list, tuple)):
        return [packed(i) for i in x]
    return {"x": {k: packed(v) for k, v in x.items()}} if isinstance(x, dict) else x


def unpacked(x):
    if isinstance(x, dict):
        return {k: unpacked(v) for k, v in x["x"].items()} if "x" in x else np.array(x["v"], x["d"]).reshape(x["s"])
    return [unpacked(i) for i in x] if isinstance(x, list) else x


def pack(outcome: Outcome) -> dict:
    """An outcome without its empty parts and its inputs: cases with writes work on a copy."""
    parts = {
        "r": {k: packed(v) for k, v in outcome.seen.items() if k[0] != "x"},
        "g": {k: packed(v) for k, v in outcome.grads.items()},
        "e": outcome.error,
        "b": outcome.grad_error,
    }
    return {k: v for k, v in parts.items() if v}


def unpack(case: dict) -> Outcome:
    seen, grads = ({k: unpacked(v) for k, v in case.get(part, {}).items()} for part in ("r", "g"))
    return Outcome(seen, case.get("e"), grads, case.get("b"))


def write(cases: dict[str, list[dict]], file: Path = FILE) -> None:
    text = json.dumps(cases, separators=(",", ":"), sort_keys=True)
    file.write_bytes(lzma.compress(text.encode(), lzma.FORMAT_XZ, lzma.CHECK_CRC64, filters=FILTERS))


def read(file: Path = FILE) -> dict[str, list[dict]]:
    """Dictionary from public name to its cases; for `FAMILIES` from family to its cases, each with its public name
    under "n".
    """
    return json.loads(lzma.decompress(file.read_bytes()))
