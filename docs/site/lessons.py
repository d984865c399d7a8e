"""Execute the lessons for the site; results are cached until the lesson or minflow changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
CACHE = TOP / "build/site-lessons"


def run_all(source: Path, jobs: int) -> bool:
    """Put outputs into the notebooks of `source`. Returns True if all of them ran; prints the cells that failed."""
    files = sorted(source.glob("notebooks/**/*.ipynb"))
    code = source_hash()
    cached = {file: CACHE / f"{hashlib.sha256(code + file.read_bytes()).hexdigest()}.ipynb" for file in files}
    CACHE.mkdir(parents=True, exist_ok=True)
    for path in set(CACHE.glob("*.ipynb")) - set(cached.values()):
        path.unlink()
    missing = [file for file in files if not cached[file].exists()]
    with ProcessPoolExecutor(jobs) as pool:
        said = list(pool.map(run, missing, [cached[file] for file in missing]))
    for text in filter(None, said):
        print(text, file=sys.stderr)
    for file in files:
        if cached[file].exists():
            shutil.copy(cached[file], file)
    return not any(said)


def source_hash() -> bytes:
    """Hash of all of minflow that a lesson can import."""
    files = sorted(
        file
        for folder in ("minflow", "widgets")
        for file in (TOP / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    )
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.relative_to(TOP)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.digest()


def run(file: Path, result: Path) -> str:
    """Execute a notebook without recording progress or drawing live curves. Returns an error message, or ""."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = nbformat.read(file, as_version=4)
    for cell in notebook.cells:
        if "NBVAL_RAISES_EXCEPTION" in cell.source:
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "raises-exception"]
    path = os.pathsep.join([str(TOP), str(TOP / "widgets"), os.environ.get("PYTHONPATH", "")])
    settings = {"MINFLOW_LIVE": "0", "MINFLOW_PROGRESS": "0", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
    with tempfile.TemporaryDirectory(prefix="minflow-site-", ignore_cleanup_errors=True) as folder:
        client = NotebookClient(
            notebook,
            timeout=600,
            kernel_name="python3",
            store_widget_state=False,
            resources={"metadata": {"path": folder}},
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
        )
        try:
            client.execute(env=os.environ | settings)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            return f"{file.name}: {error}"
    notebook.metadata.pop("widgets", None)
    part = result.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(notebook), encoding="utf-8")
    part.replace(result)
    return ""
