"""`import minflow` is quick, silent and light."""

import json
import os
import subprocess
import sys

HEAVY = ["numba", "scipy", "matplotlib", "IPython", "ipykernel", "ipywidgets", "anywidget", "PIL", "cupy", "mpi4py",
         "torch", "jupyterlab", "nbclient", "safetensors", "graphviz", "wasmtime", "threadpoolctl"]
PROGRAM = f"""
import json, sys, time
start = time.perf_counter()
import numpy
between = time.perf_counter()
import minflow
end = time.perf_counter()
print(json.dumps([between - start, end - between, [name for name in {HEAVY} if name in sys.modules]]))
"""


def fresh():
    # Byte code is kept, as it is for every user: some test machines switch that off, and then compile all of it each time.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True, env=env)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 1, f"import printed: {lines[:-1]}"
    return json.loads(lines[0])


def test_import_is_quick_and_light():
    fresh()                                                     # writes the byte code
    runs = []
    # The best of several: other programs may keep the machine busy. A machine that stays slow shows in numpy's own
    # import, which is then most of the time; ours must stay the smaller part.
    for _ in range(10):
        numpys, ours, heavy = fresh()
        assert heavy == []
        runs.append((numpys + ours, numpys, ours))
        if numpys + ours < 0.3:
            return
    total, numpys, ours = min(runs)
    assert ours < numpys, f"import minflow took {total:.2f} s, {numpys:.2f} s of it numpy"
