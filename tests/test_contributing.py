"""CONTRIBUTING.md is followed literally: its code blocks are written where it says, and its promises are checked."""

import ast
import builtins
import importlib.util
import re
import shlex
import shutil
from pathlib import Path

import nbformat
import pytest

from tests.processes import output, python

TOP = Path(__file__).parent.parent
SECTIONS = {part.partition("\n")[0]: part for part in (TOP / "CONTRIBUTING.md").read_text().split("\n## ")[1:]}

# "In `path/of/file.py`:" and then the block that belongs there
PLACED = r"[Ii]n(?: a new file)?\s+`([\w/]+\.py)`[^`]*:\n\n```python\n(.*?)```"


def blocks(section, language):
    return re.findall(rf"```{language}\n(.*?)```", SECTIONS[section], re.DOTALL)


def pytest_alone(*words, **settings):
    """Return pytest's arguments without the plugins that it does not need, which take longer than many tests."""
    return python(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        *words,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        **settings,
    )


def generated_tests(folder, op, oracle):
    """Run the test that is generated for log_cosh, with its code inserted in elementwise.py and oracles.py in memory.

    Return the output of pytest.
    """
    (folder / "contributed.py").write_text(
        "import minflow.core.ops.elementwise as file, tests.core.oracles as oracles\n"
        f"exec({op!r}, vars(file))\nexec({oracle!r}, vars(oracles))\n"
    )
    return pytest_alone(
        "-p", "contributed", str(TOP / "tests/core/test_ops.py"), "-k", "log_cosh", cwd=TOP, path=[folder]
    ).stdout


@pytest.mark.slow
def test_wrong_op_fails_its_tests(tmp_path):
    """In the checks that it violates, for each of the examples."""
    op, oracle, *_ = blocks("Add an op", "python")
    said = generated_tests(tmp_path, op.replace("g * tanh(x)", "g * -tanh(x)"), oracle)
    assert "cases fail: gradient of example 0, " in said and "forward of" not in said
    said = generated_tests(tmp_path, op.replace("xp.exp(-2", "xp.exp(-3"), oracle)
    assert "cases fail: forward of example 0, " in said and "test_op[log_cosh]" in said


def insert_block(folder, path, block):
    """Insert a block where CONTRIBUTING.md says: in a new file, at the end of a file, or, if it is indented, of its
    class.
    """
    file = folder / path
    text = file.read_text() if file.exists() else ""
    if block.startswith("    "):
        lines = text.split("\n")
        end = next(node.end_lineno for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
        text = "\n".join([*lines[:end], "", block.rstrip("\n"), *lines[end:]])
    else:
        text += f"{chr(10) * 2 * bool(text)}{block}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def unknown_names(source):
    """Names that a module reads and that neither it nor Python defines, whatever their scope."""
    nodes = [*ast.walk(ast.parse(source))]
    defined = {*dir(builtins), "__file__", "__path__"} | {node.arg for node in nodes if isinstance(node, ast.arg)}
    defined |= {
        (name.asname or name.name) for node in nodes for name in getattr(node, "names", ()) if hasattr(name, "asname")
    }
    defined |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    defined |= {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    return sorted({name.id for name in names} - defined)


@pytest.mark.parametrize("section", [name for name, text in SECTIONS.items() if re.search(PLACED, text, re.DOTALL)])
def test_names_of_examples_exist(section, tmp_path):
    """The quick check; the slow tests run the examples."""
    for path, block in re.findall(PLACED, SECTIONS[section], re.DOTALL):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() and (TOP / path).exists():
            shutil.copy(TOP / path, file)
        insert_block(tmp_path, path, block)
        assert not unknown_names(file.read_text()), path


def test_unknown_names_are_found():
    assert unknown_names("import a as b\ndef f(x): return [b, y, len(x)] + [z(c) for c in x]") == ["y", "z"]


@pytest.fixture(scope="module")
def project_copy(tmp_path_factory):
    """A copy of this folder, including byte code, with everything added."""
    folder = tmp_path_factory.mktemp("house")
    for name in (
        "minflow",
        "widgets",
        "tests",
        "notebooks",
        "docs",
        "README.md",
        "CONTRIBUTING.md",
        "pyproject.toml",
        "conftest.py",
    ):
        if (TOP / name).is_dir():
            # another process may be writing byte code, under a temporary name
            shutil.copytree(TOP / name, folder / name, ignore=shutil.ignore_patterns("*.pyc.*"))
        elif (TOP / name).exists():
            shutil.copy(TOP / name, folder / name)
    for section in SECTIONS.values():
        for path, block in re.findall(PLACED, section, re.DOTALL):
            insert_block(folder, path, block)
    table = folder / "minflow/core/methods/forwarded.py"
    table.write_text(re.sub(r'("arithmetic"|apply_inplace\)): "', r"\g<0>log_cosh ", table.read_text()))
    output("-c", blocks("Add an exercise", "python")[1], cwd=folder, path=[folder])
    write_generated_files(folder)
    return folder


def write_generated_files(folder):
    """Run the commands after the last block of "Add an exercise", as someone who does not write Chinese."""
    said = "".join(blocks("Add an exercise", "sh"))
    commands = re.findall(r"^uv run (?:--group test python -m )?((?:tests\.|minflow ).*)$", said, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["tests.exercises.checks_page", "minflow"]
    for command in commands:
        output("-m", *command.split(), cwd=folder, path=[folder, folder / "widgets"])
    pages, file = re.search(r"these two pages, (`.*?), to `(.*?)`", SECTIONS["Add an exercise"], re.DOTALL).groups()
    with open(folder / file, "a") as not_yet:
        not_yet.write("\n".join(re.findall(r"`(.*?)`", pages)) + "\n")


@pytest.fixture(scope="module")
def passed_tests(project_copy):
    """The names and ids of the tests that pass in the copy: the commands of all sections, in one process."""
    commands = [
        shlex.split(command)
        for section in SECTIONS
        for command in re.findall(r"^uv run --group test pytest (.*)$", "".join(blocks(section, "sh")), re.MULTILINE)
    ]
    files = {word for command in commands for word in command if word.endswith(".py")}
    chosen = {command[command.index("-k") + 1] for command in commands if "-k" in command}
    chosen |= {Path(word).stem for command in commands if "-k" not in command for word in command if word in files}
    done = pytest_alone(
        "-rA",
        *sorted(files),
        "--update-golden",
        "-m",
        "not slow",
        "-k",
        " or ".join(sorted(chosen)),
        cwd=project_copy,
        path=[project_copy, project_copy / "widgets"],
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return re.findall(r"^PASSED .*?::(.+)$", done.stdout, re.MULTILINE)


def find_tests(passed_tests, name):
    """Return the tests that were generated for `name`."""
    return sorted({test.partition("[")[0] for test in passed_tests if name in test})


NEW_OP = """
import importlib.util, numpy as np, onnxruntime, minflow as flow
from minflow import nn
from minflow.platforms import compiled

class Program(nn.Graph):
    def build(self, x):
        return flow.log_cosh(x) * 2

x = flow.tensor(np.linspace(-100, 100, 8192, dtype="float32").reshape(64, 128))
expected = 2 * np.log(np.cosh(x.numpy().astype("float64")))
if numba := importlib.util.find_spec("numba"):
    compiled.use()
graph = Program()
graph(x)
flow.save(graph, "saved")
results = [(flow.log_cosh(x) * 2), graph(x), flow.load_graph("saved")(x)]
flow.onnx.export(graph, x, "model.onnx")
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
results = [y.numpy() for y in results] + session.run(None, {session.get_inputs()[0].name: x.numpy()})
print([bool(np.allclose(y, expected, rtol=1e-5, atol=1e-6)) for y in results])
calls = [(call.op, call.platform) for call in graph.plan.record.calls]
print(calls == [("cluster", "compiled")] or not numba or calls)
with flow.autocast("cpu"):
    print(flow.log_cosh(x.bfloat16()).dtype.name, flow.log_cosh(x).dtype.name)
y = flow.tensor([0.0, 3.0])
print([[round(v, 4) for v in z.tolist()] for z in (flow.log_cosh(y), y.log_cosh(), y.log_cosh_())])
"""


@pytest.mark.slow
def test_add_an_op(passed_tests, project_copy, tmp_path):
    """One block and one export run it in every mode; the commands include tests of the whole project."""
    assert "test_op" in find_tests(passed_tests, "log_cosh")
    assert "test_budget" in passed_tests
    assert {f"test_nothing_is_missing[{check}]" for check in ("ops", "methods", "in_place", "exports")} <= set(
        passed_tests
    )
    assert "test_no_op_changes_without_a_new_version" in passed_tests
    lines = (project_copy / "tests/golden/ops.txt").read_text().splitlines()
    assert [line for line in lines if line.startswith("log_cosh@1(x) -> log_cosh | ")]
    assert len(lines) == len((TOP / "tests/golden/ops.txt").read_text().splitlines()) + 4, "log_cosh, lion, standardize"
    said = output("-c", NEW_OP, cwd=tmp_path, path=[project_copy]).splitlines()
    assert said[:3] == ["[True, True, True, True]", "True", "bfloat16 float32"]
    assert said[3] == "[[0.0, 2.3093], [0.0, 2.3093], [0.0, 2.3093]]"


NEW_COMPOSITE = """
import numpy as np, minflow as flow
from minflow import nn

class Program(nn.Graph):
    def build(self, x):
        x = x.detach().requires_grad_()
        out = flow.standardize(x, axes=(1,), eps=1e-5)
        return out.detach(), *flow.autograd.grad(out.pow(3).sum(), x)

x = flow.tensor(np.random.default_rng(0).standard_normal((6, 8)).astype("float32"))
graph = Program()
graph.config.exact(True)
results = graph(x)
flow.save(graph, "saved")
for other in (flow.load_graph("saved")(x), graph.build(x)):
    print([a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(results, other)])
print([str(node.op) for node in graph._last.parts[0].stages[0].graph.nodes if str(node.op).startswith("standardize")])
print(flow.standardize(x.requires_grad_(), axes=(1,), eps=1e-5).grad_fn)
"""


@pytest.mark.slow
def test_add_a_composite_op(passed_tests, project_copy, tmp_path):
    assert {"test_op", "test_results_and_gradients_of_the_decomposition", "test_graph_has_the_bits_of_eager"} <= {
        *find_tests(passed_tests, "standardize")
    }
    said = output("-c", NEW_COMPOSITE, cwd=tmp_path, path=[project_copy]).splitlines()
    assert said[:2] == ["[True, True]"] * 2 and said[-1] == "<StandardizeBackward>"
    assert said[2] == "['standardize', 'standardize_grad']"


@pytest.mark.slow
def test_add_a_layer_a_loss_and_an_optimizer(passed_tests):
    assert (
        find_tests(passed_tests, "ISRU"),
        find_tests(passed_tests, "PinballLoss"),
        find_tests(passed_tests, "Lion"),
    ) == (
        ["test_layer"],
        ["test_loss"],
        ["test_optimizer"],
    )
    assert "test_op" in find_tests(passed_tests, "lion")


@pytest.mark.slow
def test_add_a_pass_and_a_compiled_kernel(passed_tests):
    assert "test_double_negation_disappears" in passed_tests
    if importlib.util.find_spec("numba"):
        assert len(find_tests(passed_tests, "cumprod")) == 2


@pytest.mark.slow
def test_add_a_platform(passed_tests):
    assert {"test_parts_have_the_bits_of_numpy", "test_plan_names_the_platform"} <= set(passed_tests)


@pytest.mark.slow
def test_add_a_view(passed_tests, project_copy):
    (text,) = blocks("Add a view", "text")
    assert "test_tally" in passed_tests and (project_copy / "tests/golden/tally.txt").read_text() == text


@pytest.mark.slow
def test_add_an_exercise(passed_tests, project_copy, tmp_path):
    assert set(find_tests(passed_tests, "mean_of_last")) == {"test_exercise"}
    assert len(find_tests(passed_tests, "02_downhill")) > 3
    last = {"test_chinese_is_up_to_date", "test_rows_are_written_from_the_definitions_of_today"}
    assert last <= set(passed_tests)
    (text,) = blocks("Add an exercise", "text")
    definition = blocks("Add an exercise", "python")[0]
    wrong = re.search(r'wrong\(\s*"always k".*?\n(def .*?)\n\n', definition, re.DOTALL)[1]
    (tmp_path / "answer.py").write_text(
        f"from minflow.exercises import check\n\n{wrong}\n\nprint(check('mean_of_last', mean_of_last))\n"
    )
    done = python("answer.py", cwd=tmp_path, path=[project_copy], MINFLOW_PROGRESS="0", PYTHONIOENCODING="utf-8")
    assert done.stdout == text, done.stderr


@pytest.fixture
def notebook(tmp_path):
    path = tmp_path / "01_name.ipynb"
    cells = [nbformat.v4.new_code_cell(source.rstrip("\n")) for source in blocks("Add a notebook", "python")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.mark.slow
def test_add_a_notebook(notebook):
    (text,) = blocks("Add a notebook", "text")
    said = output("-m", "minflow", "run", notebook, cwd=notebook.parent)
    assert said.startswith(text) and "ShapeError" in said


@pytest.mark.slow
def test_failing_notebook_fails_its_test(notebook):
    wrong = notebook.with_name("02_wrong.ipynb")
    wrong.write_text(notebook.read_text().replace("< 0.2", "< 0"))
    words = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n0",
        "--rootdir",
        str(TOP),
        "-c",
        str(TOP / "pyproject.toml"),
    ]
    done = python(*words, str(wrong), cwd=notebook.parent)
    assert done.returncode == 1 and "1 failed, 2 passed" in done.stdout, done.stdout
    assert "assert abs(x.mean().item()) < 0\n" in done.stdout
