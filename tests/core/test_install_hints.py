"""Install commands in hints fit the environment of the running Python."""

import importlib.util
import os
import sys
from types import SimpleNamespace

import pytest

from minflow.core.base import optional
from minflow.core.base.errors import MissingDependencyError
from minflow.core.base.optional import import_optional, install_command

PACKAGES = {"onnx": "onnx", "scipy": "scipy", "PIL": "notebook", "llvmlite": "fast"}  # -> extra


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with an environment made by uv, and a function that sets the path of Python."""
    top = tmp_path / "minflow"
    (top / ".venv/bin").mkdir(parents=True)
    (top / "pyproject.toml").touch()
    monkeypatch.setattr(optional, "checkout", lambda: os.path.realpath(top))
    monkeypatch.setattr(optional, "uv_program", lambda: "uv")
    monkeypatch.setattr(sys, "prefix", str(top / ".venv"))
    monkeypatch.setattr(sys, "executable", str(top / ".venv/bin/python"))
    monkeypatch.chdir(top)
    return top


@pytest.fixture
def pip(monkeypatch):
    """A function that sets whether pip exists."""
    find = importlib.util.find_spec

    def there(is_there):
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name, *rest: (object() if is_there else None) if name == "pip" else find(name, *rest),
        )

    return there


@pytest.mark.parametrize("package, extra", PACKAGES.items())
def test_checkout_uses_uv_and_keeps_other_extras(checkout, package, extra):
    assert install_command(package) == f"uv sync --inexact --extra {extra}"
    (checkout / "notebooks").mkdir()
    os.chdir(checkout / "notebooks")
    assert install_command(package) == f"uv sync --inexact --extra {extra}"


def test_checkout_path_is_named_from_outside(checkout, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert install_command("onnx") == f"uv sync --inexact --extra onnx --project {os.path.realpath(checkout)}"


def test_core_package_needs_no_extra(checkout, pip, monkeypatch):
    assert install_command("threadpoolctl") == "uv sync --inexact"
    monkeypatch.setattr(optional, "checkout", lambda: None)
    pip(True)
    assert install_command("numpy").endswith("python -m pip install minflow-learn")


@pytest.mark.parametrize("package, extra", PACKAGES.items())
def test_other_environments_use_pip_of_this_python(checkout, pip, monkeypatch, package, extra):
    monkeypatch.setattr(optional, "checkout", lambda: None)
    pip(True)
    python = os.path.join(".venv", "bin", "python")
    assert install_command(package) == f'{python} -m pip install "minflow-learn[{extra}]"'
    pip(False)
    assert install_command(package) == f'uv pip install --python {python} "minflow-learn[{extra}]"'


def test_python_outside_the_checkout_environment_uses_pip(checkout, pip, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "other"))
    pip(True)
    assert install_command("onnx").endswith('-m pip install "minflow-learn[onnx]"')


def test_notebook_paths_are_absolute(checkout, pip, monkeypatch):
    """The terminal may be in another folder than the kernel."""
    monkeypatch.setattr(optional, "checkout", lambda: None)
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    pip(True)
    assert install_command("onnx") == f'{checkout / ".venv/bin/python"} -m pip install "minflow-learn[onnx]"'


def test_python_of_uv_run_is_named_by_path(checkout, pip, monkeypatch):
    """PATH finds it by name in this process only."""
    monkeypatch.setenv("UV", "/opt/bin/uv")
    monkeypatch.setattr("shutil.which", lambda name, **options: sys.executable)
    pip(False)
    assert install_command("torch") == f"uv pip install --python {os.path.join('.venv', 'bin', 'python')} torch"


def test_package_without_an_extra_is_installed_by_name(checkout, pip):
    pip(True)
    assert install_command("torch").endswith("python -m pip install torch")


def test_uv_is_found_at_the_readme_location(tmp_path, monkeypatch):
    tools = tmp_path / ".tools/bin"
    tools.mkdir(parents=True)
    program = tools / ("uv.exe" if os.name == "nt" else "uv")
    program.touch(mode=0o755)
    monkeypatch.setattr(optional, "checkout", lambda: str(tmp_path))
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert optional.uv_program() == os.path.join(".tools", "bin", program.name)
    program.unlink()
    assert optional.uv_program() is None


def test_error_says_what_needs_the_package_and_why_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        MissingDependencyError,
        match="(?s)flow.onnx.show needs the package 'onnx' .extra 'onnx' of minflow-learn.*reason .*onnx.*Try: .*onnx",
    ) as caught:
        import_optional("onnx", "flow.onnx.show")
    assert isinstance(caught.value, ImportError) and isinstance(caught.value.__cause__, ImportError)
