"""`import minflow` is quick, silent and light."""

import json
import os
import subprocess
import sys

HEAVY = ["numba", "scipy", "matplotlib", "IPython", "ipykernel", "ipywidgets", "anywidget", "PIL", "cupy", "mpi4py",
         "torch", "jupyterlab", "nbclient", "safetensors", "graphviz", "wasmtime", "threadpoolctl"]
PROGRAM = f"""
import json, sys, time
start = time.process_time()
import numpy
between = time.process_time()
import minflow
end = time.process_time()
print(json.dumps([between - start, end - between, [name for name in {HEAVY} if name in sys.modules]]))
"""


def fresh():
    # Byte code is kept, as it is for every user: some test machines switch that off, and then compile all of it each
    # time.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True, env=env
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 1, f"import printed: {lines[:-1]}"
    return json.loads(lines[0])


def test_import_is_quick_and_light():
    fresh()                                                     # writes the byte code
    runs = []
    for _ in range(5):  # the best one, in processor time: other programs keep the machine busy
        numpys, ours, heavy = fresh()
        assert heavy == []
        runs.append((numpys + ours, numpys, ours))
        if numpys + ours < 0.5:
            break
    total, numpys, ours = min(runs)
    assert total < 0.5, f"import minflow took {total:.2f} s of the processor, {numpys:.2f} s of it numpy"
