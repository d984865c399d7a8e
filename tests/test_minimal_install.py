"""The core alone: NumPy and three small packages can train, save and display. Other features name the extra they need.

The other packages are hidden from a new process, so no separate environment is needed. One test, marked slow, installs
such an environment.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minflow.core.base import optional

TOP = Path(__file__).parent.parent
PROGRAM = """
import warnings
from typing import Tuple

import minflow as flow
from minflow import nn
from minflow import typing as tp

flow.manual_seed(0)
x, y = flow.randn(32, 4), flow.randint(0, 3, (32,))


def network():
    flow.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 3))


loss_fn = nn.CrossEntropyLoss()


def eager(steps):
    model = network()
    optimizer = flow.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(steps):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, loss


class Training(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model, self.loss_fn = network(), loss_fn
        self.add_optimizer(flow.optim.Adam(self.model.parameters(), lr=0.05))

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


model, last = eager(5)
graph = Training()
for _ in range(5):
    again = graph(x, y)
assert again.item() == last.item()

table = nn.Embedding(50, 32)                      # large enough for the gradient that SciPy would add up
words = flow.randint(0, 50, (1000,))
table(words).sum().backward()
assert table.weight.grad.sum().item() == 32000


@flow.global_function(type="train")
def job(x: tp.Numpy.Placeholder((32, 4)), y: tp.Numpy.Placeholder((32,), dtype=flow.int32)) -> tp.Numpy:
    logits = flow.layers.dense(x, 3, name="dense")
    loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(loss)
    return loss


losses = [job(x.numpy(), y.numpy().astype("int32")).mean() for _ in range(5)]
assert losses[-1] < losses[0]

flow.show(last)
flow.save(model.state_dict(), "model.safetensors")
other = network()
other.load_state_dict(flow.load("model.safetensors"))
flow.save(graph, "graph")
flow.load_graph("graph")
assert (other.eval()(x) == model.eval()(x)).all()
assert flow.ones(2, dtype=flow.bfloat16).sum().item() == 2
print("trained")
"""
# Calls every public name, as `python -m tests.fuzz` does. Prints {package: names that needed it}, and the names that
# raised another ImportError.
WALK = """
import json, re, signal, warnings

import numpy as np

import minflow as flow
from tests.fuzz.calls import call_of, called_names

warnings.simplefilter("ignore")
needs, raw = {}, []
for name in called_names():
    for seed in range(3):
        space = {"L": flow, "inf": np.inf, "nan": np.nan, "np": np}
        try:
            exec("\\n".join(call_of(name, seed, valid=True)), space)
        except flow.MissingDependencyError as error:
            by, package, extra = re.match(r"(\\S+) needs the package '(\\w+)' \\(extra '(\\w+)' of minflow-learn\\)",
                                          error.what).groups()
            assert f"[{extra}]" in error.hint or f"--extra {extra}" in error.hint, error.hint
            assert error.where.startswith(("at ", "in ")), error.where
            needs.setdefault(package, set()).add(by)
        except ImportError as error:
            raw.append((name, repr(error)))
        except Exception:
            pass
print(json.dumps([{package: sorted(names) for package, names in needs.items()}, raw]))
"""
BY_SCIPY = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "binomial",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "igamma",
    "igammac",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "lgamma",
    "log_ndtr",
    "matrix_exp",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "ndtri",
    "poisson",
    "polygamma",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "spherical_bessel_j0",
    "zeta",
]


def run(program, folder, shown=optional.REQUIRED_PACKAGES):
    """Return the output of a program in a process that finds only `shown` and our packages."""
    packages = Path(folder) / "packages"
    packages.mkdir()
    for name in shown:
        spec = importlib.util.find_spec(name)
        place = Path(spec.origin)
        place = place.parent if place.name == "__init__.py" else place
        try:
            (packages / place.name).symlink_to(place)
        except OSError as error:  # Windows
            pytest.skip(f"no symbolic links here: {error}")
    (Path(folder) / "program.py").write_text(program)
    path = os.pathsep.join(map(str, (packages, TOP, TOP / "widgets")))
    done = subprocess.run(
        [sys.executable, "-S", "-W", "error::UserWarning", "program.py"],
        cwd=folder,
        timeout=300,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_core_trains_saves_and_shows(tmp_path):
    lines = run(PROGRAM, tmp_path).splitlines()
    assert lines[-1] == "trained" and any("softmax_cross_entropy" in line for line in lines)


def test_numpy_alone_trains(tmp_path):
    """bfloat16 and reading safetensors need another package of the core; an error names it."""
    program = (
        PROGRAM[: PROGRAM.index("flow.show(last)")]
        + """
flow.show(last)
flow.save(model.state_dict(), "model.safetensors")
for need in (lambda: flow.load("model.safetensors"), lambda: flow.ones(2, dtype=flow.bfloat16)):
    try:
        need()
    except flow.MissingDependencyError as error:
        print(error.hint)
"""
    )
    hints = run(program, tmp_path, ("numpy",)).splitlines()[-2:]
    assert len(hints) == 2 and all("minflow-learn" in hint or "uv sync" in hint for hint in hints)


def test_names_needing_extras_are_known_and_raise(tmp_path):
    needs, raw = json.loads(run(WALK, tmp_path).splitlines()[-1])
    assert raw == []
    assert needs == {"scipy": BY_SCIPY}


CALLS = {  # call -> (package, extra) in its error; ("", "") if it works
    "flow.nn.functional.gelu(flow.ones(2))": ("scipy", "scipy"),
    "flow.nn.init.trunc_normal_(flow.empty(3))": ("scipy", "scipy"),
    "flow.onnx.export(flow.nn.Linear(2, 2), flow.ones(1, 2), 'net.onnx')": ("onnx", "onnx"),
    "flow.vision.transforms.ToPILImage()(flow.ones(1, 4, 4))": ("PIL", "notebook"),
    "flow.vision.datasets.FakeData()[0]": ("PIL", "notebook"),
    "minflow_widgets.figures.confusion_matrix([0], [0])": ("matplotlib", "notebook"),
    "minflow_widgets.LossCurve()": ("", ""),
    "flow.machine.use()": ("numba", "fast"),
    "flow.utils.tensor.to_torch(flow.ones(2))": ("torch", ""),
}
COMMANDS = {  # arguments of the command line -> its message
    "--version": "minflow 0.",
    "doctor": "not installed: jupyterlab",
    "lab": "notebook",
    "run 00": "notebook",
    "slides 00": "notebook",
    "warmup": "fast",
    "onnx x y": "Try: ",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Return the output, including errors, of each of CALLS and COMMANDS in one process with only the core."""
    program = f"""
import contextlib, io, json, os
import minflow as flow, minflow_widgets, minflow.platforms.compiled, minflow_widgets.figures
from minflow.cli import main

os.environ["MINFLOW_COURSE"] = os.curdir + "/course"
said = {{}}
for line in {[*CALLS, *(f"main({words.split()!r})" for words in COMMANDS)]!r}:
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.redirect_stderr(text):
        try:
            exec(compile(line, "program.py", "exec"))
        except SystemExit:
            pass
        except flow.MissingDependencyError as error:
            print(error)
        except Exception as error:
            print("Traceback", repr(error))
    said[line] = text.getvalue()
print(json.dumps(said))
"""
    return json.loads(run(program, tmp_path_factory.mktemp("said")).splitlines()[-1])


@pytest.mark.parametrize("call", CALLS)
def test_missing_package_error_names_its_extra(call, said):
    (package, extra), lines = CALLS[call], said[call].splitlines()
    if not package:
        assert lines == []
        return
    assert package in lines[0] and (not extra or extra in lines[-1])
    assert lines[-1].startswith("  Try: ") and "program.py" in lines[-2]


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_report_missing_packages(words, said):
    output = said[f"main({words.split()!r})"]
    assert COMMANDS[words] in output and "Traceback" not in output


@pytest.mark.slow
def test_environment_with_only_the_core(uv, built, tmp_path):
    folder = tmp_path / "venv"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True, timeout=120)
    subprocess.run([uv, "pip", "install", "-q", "--python", str(python), str(built[1])], check=True, timeout=300)
    done = subprocess.run(
        [uv, "pip", "list", "-q", "--format", "json", "--python", str(python)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    names = {package["name"].replace("-", "_") for package in json.loads(done.stdout)}
    assert names == {optional.DISTRIBUTION.replace("-", "_"), *optional.REQUIRED_PACKAGES}
    (tmp_path / "program.py").write_text(
        PROGRAM + "\ntry:\n    flow.special.erf(x)\n"
        "except flow.MissingDependencyError as error:\n    print(error.hint)\n"
    )
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-W", "error::UserWarning", "program.py"],
        cwd=tmp_path,
        env=outside,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2] == "trained" and "minflow-learn[scipy]" in done.stdout.splitlines()[-1]
