"""The folder of a saved graph: graph.json and meta.json, which are text, and weights.safetensors.

Read next: `checks.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..io import atomic, container
from .checks import refuse

GRAPH, META, WEIGHTS = "graph.json", "meta.json", "weights.safetensors"


def write(path: str | os.PathLike, graph: Mapping, meta: Mapping, arrays: Mapping[str, np.ndarray]) -> None:
    def fill(folder: Path) -> None:
        for name, data in ((GRAPH, graph), (META, meta)):
            atomic.replace(folder / name, lambda out, data=data: out.write(json.dumps(data).encode()))
        atomic.replace(folder / WEIGHTS, lambda out: container.write(out, arrays, ""))

    atomic.new_folder(Path(path), fill, META)


def read(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]:
    folder = Path(path)
    if not (folder / META).is_file():
        refuse(f"{path} is no folder that flow.save(graph, path) wrote", "the path that was saved to", path=path)
    graph, meta = (json.loads((folder / name).read_text(encoding="utf-8")) for name in (GRAPH, META))
    return graph, meta, container.read(folder / WEIGHTS)[0]
