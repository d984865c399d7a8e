"""CONTRIBUTING.md is followed to the letter: its code blocks are put where it says, and what it promises must come."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

TOP = Path(__file__).parent.parent
SECTIONS = {part.partition("\n")[0]: part for part in (TOP / "CONTRIBUTING.md").read_text().split("\n## ")[1:]}


def blocks(section, language):
    return re.findall(rf"```{language}\n(.*?)```", SECTIONS[section], re.DOTALL)


def python(*words, cwd, path=(), **settings):
    paths = [*map(str, path), str(TOP), str(TOP / "widgets"), os.environ.get("PYTHONPATH", "")]
    return subprocess.run([sys.executable, *words], cwd=cwd, capture_output=True, text=True, timeout=300,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | settings)


def generated_tests(folder, op, oracle):
    """Run the tests that are generated for hypot; its code is put into elementwise.py and oracles.py in memory."""
    (folder / "contributed.py").write_text(
        "import minflow.core.ops.elementwise as file, tests.core.oracles as oracles\n"
        f"exec({op!r}, vars(file))\nexec({oracle!r}, vars(oracles))\n")
    # Without the plugins that it does not need, which take longer than its tests.
    done = python("-m", "pytest", "-q", "-rA", "-p", "contributed", "-p", "no:cacheprovider", "-o", "addopts=",
                  str(TOP / "tests/core/test_ops.py"), "-k", "hypot", cwd=TOP, path=[folder],
                  PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    said = re.findall(r"^(PASSED|FAILED) .*::(\w+)", done.stdout, re.MULTILINE)
    return done, {name for word, name in said if word == "PASSED"}, {name for word, name in said if word == "FAILED"}


def test_add_an_op(tmp_path):
    op, oracle = blocks("Add an op", "python")
    done, passed, failed = generated_tests(tmp_path, op, oracle)
    assert done.returncode == 0 and not failed, done.stdout[-3000:] + done.stderr[-1000:]
    assert {"test_forward", "test_out", "test_traced", "test_gradient", "test_second_order"} <= passed
    large = ("import contributed, minflow as flow; x = flow.tensor(3e38); "
             "print(round(float(contributed.file.hypot(x * 0.3, x * 0.4) / x), 6))")
    assert python("-c", large, cwd=tmp_path, path=[tmp_path]).stdout == "0.5\n"


def test_a_wrong_op_is_noticed(tmp_path):
    op, oracle = blocks("Add an op", "python")
    assert "test_gradient" in generated_tests(tmp_path, op.replace("g * (a / out)", "-g * (a / out)"), oracle)[2]
    assert "test_forward" in generated_tests(tmp_path, op.replace('ufunc="hypot"', 'ufunc="add"'), oracle)[2]


def test_add_a_view(tmp_path):
    view, test = blocks("Add a view", "python")
    text, = blocks("Add a view", "text")
    module = type(sys)("minflow.views.kinds.tally")
    module.__package__ = "minflow.views.kinds"
    exec(view, vars(module))
    sys.modules[module.__name__] = module
    try:
        given = {}
        exec(test, given)
        got = []
        given["test_tally"](lambda name, text: got.append((name, text + "\n")))
    finally:
        del sys.modules[module.__name__]
    assert got == [("tally", text)]


@pytest.fixture
def notebook(tmp_path):
    path = tmp_path / "01_name.ipynb"
    cells = [nbformat.v4.new_code_cell(source.rstrip("\n")) for source in blocks("Add a notebook", "python")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_add_a_notebook(notebook):
    text, = blocks("Add a notebook", "text")
    done = python("-m", "minflow", "run", str(notebook), cwd=notebook.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(text) and "ShapeError" in done.stdout


def test_a_notebook_that_fails_is_noticed(notebook):
    wrong = notebook.with_name("02_wrong.ipynb")
    wrong.write_text(notebook.read_text().replace("< 0.2", "< 0"))
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", "--rootdir", str(TOP), "-c", str(TOP / "pyproject.toml")]
    done = python(*words, str(notebook), str(wrong), cwd=notebook.parent)
    assert done.returncode == 1 and "1 failed, 5 passed" in done.stdout, done.stdout
    assert "assert abs(x.mean().item()) < 0\n" in done.stdout
