"""Programs of OneFlow and PyTorch run unchanged."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import minflow as flow
from minflow.compat.__main__ import main
from minflow.compat.names import LibraryFinder
from tests.processes import python

TOP = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the text of a program in this process, whose state is restored after the test; return stdout, stderr and exit
    code.

    site: packages that count as installed, name -> text.
    """
    for name in [n for n in sys.modules if n.partition(".")[0] in ("torch", "torchvision", "oneflow", "flowvision")]:
        monkeypatch.delitem(sys.modules, name)
    known = set(sys.modules)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(LibraryFinder, "aliases", {})
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))  # restored after the test
    monkeypatch.setattr(flow, "__version__", flow.__version__)  # restored after the test
    monkeypatch.setattr(flow.version, "__version__", flow.version.__version__)

    def running(text, *words, flags=(), site=()):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(text), encoding="utf-8")
        for name, body in dict(site).items():
            (tmp_path / "site" / name).mkdir(parents=True)
            (tmp_path / "site" / name / "__init__.py").write_text(body, encoding="utf-8")
        sys.path[1:1] = [str(tmp_path / "site")]
        try:
            code = main([*flags, str(script), *words])
        except SystemExit as ended:
            code = ended.code
        return *capsys.readouterr(), code

    yield running
    for name in set(sys.modules) - known:
        if name.partition(".")[0] in ("torch", "torchvision", "oneflow", "flowvision"):
            del sys.modules[name]
    sys.modules.pop("minflow.compat.torch", None)


def test_oneflow_program(run):
    out, err, code = run(
        """
        import sys
        import oneflow as flow
        import oneflow.nn as nn
        import oneflow.nn.functional as F
        import oneflow.typing as tp
        from oneflow.compatible import single_client as old
        import oneflow.compatible.single_client.typing as old_typing
        from oneflow.framework.tensor import Tensor
        from oneflow.utils.data import DataLoader, TensorDataset
        import flowvision.transforms as transforms
        import minflow

        assert __name__ == "__main__" and sys.argv[1:] == ["--epochs", "3"] and sys.argv[0].endswith("script.py")
        assert flow is old is minflow and nn is minflow.nn and F is minflow.nn.functional and old_typing is tp
        assert sys.modules["oneflow.nn"] is sys.modules["minflow.nn"] and Tensor is flow.Tensor
        assert sys.modules["__main__"].F is F and transforms is minflow.vision.transforms

        @flow.global_function()
        def job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
            return flow.math.relu(x)

        import numpy as np
        print(job(-np.ones((2, 3), np.float32)).sum(), nn.Linear(3, 2)(flow.ones(1, 3)).shape)
        """,
        "--epochs",
        "3",
    )
    assert (out, err, code) == ("0.0 minflow.Size([1, 2])\n", "", 0)


PYTORCH = """
    import torch, torchvision
    import torch.nn as nn
    import torch.backends.cudnn as cudnn
    from torch import optim
    from torch.autograd import Variable
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.utils.data import DataLoader, TensorDataset
    from torchvision import transforms

    cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(TensorDataset(torch.randn(8, 3), torch.zeros(8, dtype=torch.long)), 4, pin_memory=True):
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(model(Variable(x.to(device, non_blocking=True))), y)
        loss.backward()
        optimizer.step()
    print(torch.__name__, isinstance(model[1], _BatchNorm), torchvision.__name__, loss.item() > 0)
    """


def test_pytorch_program(run):
    out, err, code = run(PYTORCH, flags=["--torch"])
    assert (out, err, code) == ("minflow True minflow.vision True\n", "", 0)


def test_autoray_takes_tensors_for_those_of_torch(run, tmp_path):
    """autoray goes by the package of a tensor's class: without its alias it would call minflow.random.seed(3)."""
    (tmp_path / "site" / "autoray").mkdir(parents=True)
    (tmp_path / "site" / "autoray" / "autoray.py").write_text(
        "ALIASES = {}\ndef register_backend_alias(alias, backend): ALIASES[alias] = backend\n", encoding="utf-8"
    )
    out, err, code = run(
        "import torch\nfrom autoray.autoray import ALIASES\nprint(ALIASES[torch.Tensor.__module__.split('.')[0]])",
        flags=["--torch"],
    )
    sys.modules.pop("autoray.autoray", None)
    sys.modules.pop("autoray", None)
    assert (out, err, code) == ("torch\n", "", 0)


def test_eagerpy_takes_tensors_for_those_of_torch(run, tmp_path):
    (tmp_path / "site" / "eagerpy").mkdir(parents=True)
    (tmp_path / "site" / "eagerpy" / "astensor.py").write_text(
        "def _get_module_name(x): return type(x).__module__.split('.')[0]\n", encoding="utf-8"
    )
    program = "import torch\nfrom eagerpy.astensor import _get_module_name as name\nprint(name(torch.ones(1)), name(3))"
    out, err, code = run(program, flags=["--torch"])
    sys.modules.pop("eagerpy.astensor", None)
    sys.modules.pop("eagerpy", None)
    assert (out, err, code) == ("torch builtins\n", "", 0)


def test_multiprocessing_has_what_torch_imports():
    done = python("-c", "import minflow.compat.torch, multiprocessing as mp; print(mp.connection.Connection.__name__)")
    assert done.stdout == "Connection\n", done.stderr


def test_real_torch_is_kept_by_default(run):
    real = [("torch", "print('the real one')"), ("flowvision", "print('their own')")]
    out, err, code = run("import torch, oneflow, flowvision\nprint(oneflow.__name__)", site=real)
    assert (out, err, code) == ("the real one\ntheir own\nminflow\n", "", 0)


def test_explicit_import_replaces_torch(run):
    text = "import minflow.compat.torch, torch, torch.nn as nn, minflow\nassert torch is minflow and nn is minflow.nn"
    assert run(text, site=[("torch", "print('the real one')")]) == ("", "", 0)


def test_imported_torch_is_not_replaced(run):
    _out, err, code = run("import torch\nimport minflow.compat.torch", site=[("torch", "")])
    assert code == 1 and "StateError: compat: the real torch is already imported" in err
    assert "\n  file  '" in err and "at script.py:2" in err and "Try: import minflow.compat.torch before it" in err


def test_traceback_begins_at_the_program(run):
    _out, err, code = run("""\
        import oneflow as flow

        def product(x):
            return x @ flow.ones(3)

        product(flow.ones(2))
        """)
    lines = err.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and lines[1].endswith('script.py", line 6, in <module>')
    files = [line for line in lines if line.startswith('  File "')]
    assert files[1].endswith('script.py", line 4, in product') and "  at script.py:4" in lines and code == 1


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        ("x = = 1", "SyntaxError", 1),
        ("import sys; sys.exit(7)", "", 7),
        ("import oneflow.nowhere", "no module or name minflow.nowhere", 1),
        ("import oneflow.export; oneflow.export.export(1)", "Try: flow.save", 1),
    ],
)
def test_exit_codes(run, text, said, code):
    _out, err, ended = run(text)
    assert said in err and ended == code and "runpy" not in err and "__main__.py" not in err


def test_child_processes_import_the_aliases(tmp_path):
    """Those of multiprocessing run the program again, and unpickle its functions; others inherit the environment."""
    program = """
        import multiprocessing, subprocess, sys
        import torch

        def double(x):
            return float(2 * torch.as_tensor(x))

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(double, [1, 2]))
            other = "import torchvision, torch.nn, oneflow; print(torchvision.__name__, torch.nn is oneflow.nn)"
            print(subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=True).stdout)
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(program), encoding="utf-8")
    done = python("-m", "minflow.compat", "--torch", str(script))
    assert done.stdout.split() == ["[2.0,", "4.0]", "minflow.vision", "True"] and done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [[], ["-x"], ["-m"], ["nowhere.py"]])
def test_command_line(words, capsys):
    assert main(words) == 2 and "minflow.compat" in capsys.readouterr().err


def test_run_module_by_name(tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "train.py").write_text("import sys, oneflow\nprint(__name__, __package__, sys.argv[1:])")
    path = os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "minflow.compat", "-m", "pack.train", "a"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("__main__ pack ['a']\n", "")


def test_versions_are_those_of_the_followed_names(run):
    out, err, code = run(
        """
        import importlib.metadata
        import torch
        from torch.torch_version import TorchVersion
        assert torch.__version__ == torch.version.__version__ == importlib.metadata.version("torch") == "2.13.0"
        assert torch.__version__ >= "1.8" and "2.9" < torch.__version__ < "3" and torch.__version__ >= (1, 13)
        assert tuple(map(int, torch.__version__.split("+")[0].split(".")[:2])) == (2, 13)
        assert TorchVersion("1.10.0+cpu") > "1.9" and TorchVersion("2.13") == torch.__version__ != "2.1"
        print(torch.__version__, importlib.metadata.metadata("torch")["Name"])
        """,
        flags=["--torch"],
    )
    assert (out, err, code) == ("2.13.0 torch\n", "", 0)
