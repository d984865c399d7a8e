"""Complete programs, run unmodified in a folder with generated CIFAR-10 files, as a user of the tutorial would."""

import contextlib
import functools
import io
import math
import re
import runpy
from pathlib import Path

import pytest
from cifar_files import write_cifar10

from minflow.data import files
from minflow.vision.datasets import base

HERE = Path(__file__).parent
ROWS = 40  # images in each of the six parts of an archive
HEAD_THAT_NEVER_RAN = {"model.classifer", "model.classifer.0", "model.classifer.1"}  # sic


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a program in a new folder, once. Return its globals, its output and the folder."""

    @functools.cache
    def ran(name):
        folder, printed = tmp_path_factory.mktemp(name), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
            patch.setattr(files, "CIFAR_ROWS", ROWS)
            patch.setattr(base, "fetch", lambda *args: pytest.fail("a download was tried, and the files are there"))
            patch.setenv("MINFLOW_DATA", str(folder / "cache"))
            patch.chdir(folder)
            write_cifar10(folder / "data", ROWS)
            return runpy.run_path(str(HERE / name)), printed.getvalue(), folder

    return ran


def bits(tensor):
    return tensor.numpy().tobytes()


def state_bits(run):
    found = {name: bits(tensor) for name, tensor in run.model.state_dict().items()}
    for i, parameter in enumerate(run.optimizer._all_parameters()):
        found |= {f"{i} {key}": bits(tensor) for key, tensor in run.optimizer.state[parameter].items()}
    return found


def test_train_eager(run):
    names, printed, _ = run("train_eager.py")
    assert len(names["losses"]) == 4 and names["seen"] == 5 * ROWS  # the last batch has 8 images
    assert abs(names["losses"][0] - math.log(1000)) < 0.15  # the head with a thousand outputs, not the one with ten
    head = dict(names["model"].named_parameters())
    assert head["classifer.1.weight"].grad is None and head["classifier.1.weight"].grad is not None
    assert "200 of 200: loss" in printed


def test_train_graph(run):
    names, printed, _ = run("train_graph.py")
    step = names["step"]
    assert len(names["losses"]) == 3 and names["seen"] == 3 * 64 and len(step._plans) == 1
    assert abs(names["losses"][0] - math.log(1000)) < 0.15
    assert "-input_" not in names["before"] and "(CONFIG:config:GraphConfig(training=True, ))" in names["before"]
    modules, inputs = re.compile(r"\(MODULE:[\w.]+:\w+"), "(INPUT:_model.features.18.1-input_0:"
    assert modules.findall(names["before"]) == modules.findall(names["after"])
    assert len(modules.findall(names["after"])) == 1 + len(list(names["model"].modules())) and inputs in names["after"]

    # The new head is in the model and has no effect: three rows of the tree say so, and no other.
    rows = step.tree().record.rows
    assert {row.path for row in rows if "never ran" in row.badges} == HEAD_THAT_NEVER_RAN
    assert [row.path for row in rows if "no gradient" in row.badges] == ["model.classifer.1"]
    assert len(re.findall(r"classifer: Sequential .*\[never ran\]$", str(step.tree()), re.MULTILINE)) == 1

    # debug(1) reported the only build, module by module, before the first loss was printed.
    assert printed.count("start building graph.") == 1
    assert printed.index("start building graph.") < printed.index("(MODULE:model:MobileNetV2())\n")
    assert (
        printed.index("(OUTPUT:_model-output_0")
        < printed.index("end building graph modules.")
        < printed.index("64 of 200")
    )
    lines = {line.strip() for line in printed.splitlines()}
    assert "(MODULE:model.classifier.1:Linear(in_features=1280, out_features=1000, bias=True))" in lines
    assert not any(line.startswith("(MODULE:model.classifer") for line in lines)  # not called, so no line


def test_both_trainings_agree(run):
    (eager, _, _), (graph, _, _) = run("train_eager.py"), run("train_graph.py")
    assert eager["losses"][:3] == graph["losses"]


def test_resume_graph(run):
    names, _, folder = run("resume_graph.py")
    whole, at_once, later = names["whole"], names["at_once"], names["later"]
    assert (folder / "checkpoint").is_dir()
    expected = [*map(bits, whole.losses[2:])]
    assert len(set(map(bits, whole.losses))) == 4
    for other in (at_once, later):
        assert [*map(bits, other.losses)] == expected
        assert state_bits(other) == state_bits(whole) and other.step.lr == whole.step.lr != 0.05
    assert any(key.endswith("momentum_buffer") for key in state_bits(whole)) and len(state_bits(whole)) > 400
