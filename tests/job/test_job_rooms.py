"""The rooms of job/: what runs a job knows neither that generation's names nor what trains; no circle."""

import ast
import graphlib
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent.parent
FILES = {}
for file in sorted((TOP / "minflow").rglob("*.py")):
    parts = file.relative_to(TOP).with_suffix("").parts
    FILES[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
PARTS = ("legacy", "train", "saving", "look", "queue")  # of job/; the files beside them are the engine


def imports(module, inside_functions):
    """The modules of minflow that a module imports."""
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    late = {id(child) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for child in ast.walk(node)}
    package = module if FILES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and (inside_functions or id(node) not in late):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in FILES else base


def check_no_circle(modules, inside_functions):
    try:
        graphlib.TopologicalSorter({m: set(imports(m, inside_functions)) - {m} for m in modules}).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


def test_no_imports_of_the_package_go_round():
    check_no_circle(FILES, inside_functions=False)


def test_no_imports_of_job_go_round_inside_functions_either():
    check_no_circle([m for m in FILES if m.startswith("minflow.job")], inside_functions=True)


def test_the_engine_knows_no_legacy_name_and_no_optimizer():
    """`job/__init__.py` alone names what stands there, and imports it when it is asked for."""
    engine = [m for m in FILES if m.startswith("minflow.job.") and m.split(".")[2] not in PARTS]
    assert len(engine) <= 12
    for module in engine:
        known = {it.split(".")[2] for it in imports(module, True) if it.startswith("minflow.job.")}
        assert not known & {"legacy", "train", "saving", "look"}, module


def test_the_queue_knows_no_graph():
    for module in FILES:
        if module.startswith("minflow.job.queue."):
            outside = [it for it in imports(module, True) if it.startswith(("minflow.job.", "minflow.nn"))]
            assert all(it.startswith("minflow.job.queue.") for it in outside), module


def test_of_training_the_engine_and_the_old_names_know_nothing():
    for module in FILES:
        if module.startswith("minflow.job.legacy"):
            assert not any(it.startswith("minflow.job.train") for it in imports(module, True)), module
