"""`import minflow` is quick, silent and light."""

import json
import subprocess
import sys

HEAVY = ["numba", "scipy", "matplotlib", "IPython", "ipykernel", "ipywidgets", "anywidget", "PIL", "cupy", "mpi4py",
         "torch", "jupyterlab", "nbclient", "safetensors", "graphviz", "wasmtime", "threadpoolctl"]
PROGRAM = f"""
import json, sys, time
start = time.perf_counter()
import minflow
seconds = time.perf_counter() - start
print(json.dumps([seconds, [name for name in {HEAVY} if name in sys.modules]]))
"""


def fresh():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 1, f"import printed: {lines[:-1]}"
    return json.loads(lines[0])


def test_import_is_quick_and_light():
    seconds, heavy = fresh()
    assert heavy == []
    # The best of several: other programs may keep the machine busy.
    for _ in range(9):
        if seconds < 0.3:
            break
        seconds = min(seconds, fresh()[0])
    assert seconds < 0.3, f"import minflow took {seconds:.2f} s"
