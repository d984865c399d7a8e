"""Programs of job functions, each in a separate process, as users run them: each loads what the previous one saved."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Tuple  # noqa: UP035

import digit_nets as nets
import numpy as np
import pytest

import minflow as flow
import minflow.typing as tp

HERE = Path(__file__).parent
BOTH = Tuple[tp.Numpy, tp.Numpy]  # noqa: UP006
ROOT = Path(flow.__file__).parents[1]


def run(folder, *command):
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)])},
    )


def program(name, folder):
    """Return the output of a program, which must succeed."""
    ran = run(folder, HERE / name)
    assert ran.returncode == 0 and "Traceback" not in ran.stderr, ran.stderr
    return ran.stdout


def test_train_save_load_evaluate(tmp_path):
    printed = program("mlp_train_async_job.py", tmp_path)
    steps = int(re.search(r"saved mlp_model after (\d+) steps", printed)[1])
    saved = tmp_path / "mlp_model"
    found = {p.name for p in saved.iterdir()}
    assert {"mlp1-weight", "mlp1-bias", "mlp2-weight", "mlp2-bias", "snapshot_done"} <= found
    [counter] = [name for name in found if name.startswith("System-Train-TrainStep-")]
    assert np.fromfile(saved / counter / "out", "<i8") == [steps] and steps > 100
    losses = [float(x) for x in re.findall(r"loss ([\d.]+)", printed)]
    assert len(losses) > 5 and losses[-1] < losses[0] / 2
    printed = program("mlp_eval_async_job.py", tmp_path)
    assert int(re.fullmatch(r"(\d+) of 300 right\n", printed)[1]) > 270


def test_second_save_into_the_folder_is_refused(tmp_path):
    (tmp_path / "mlp_model").mkdir()
    (tmp_path / "mlp_model" / "mine").touch()
    ran = run(tmp_path, "-c", "import mlp_train_async_job as program; program.main(epochs=1)")
    assert ran.returncode == 1 and "mlp_model" in ran.stderr and "CheckpointError" in ran.stderr
    assert [p.name for p in (tmp_path / "mlp_model").iterdir()] == ["mine"]


# ---- the same training, sync and async -------------------------------------------------------------------------------


@pytest.fixture
def session():
    flow.clear_default_session()
    flow.manual_seed(7)
    yield
    flow.clear_default_session()


def training_job(net, gives):
    def training(
        images: tp.Numpy.Placeholder(nets.IMAGES), labels: tp.Numpy.Placeholder(nets.LABELS, dtype=flow.int32)
    ) -> gives:
        logits = net(images)
        return nets.train_on(labels, logits), logits

    return flow.global_function(type="train")(training)


def trained(gives, net, steps):
    """Return the result of each step, and the final variables."""
    flow.clear_default_session()
    flow.manual_seed(7)
    (images, labels), _ = flow.data.digits(nets.BATCH, image_size=28)
    job, given = training_job(net, gives), []
    buffer = np.empty_like(images[0])
    for i in range(steps):
        np.copyto(buffer, images[i % len(images)])  # one buffer for all batches: a call copies its arguments
        answer = job(buffer, labels[i % len(images)])
        given.append(answer) if gives is BOTH else answer(given.append)
    numbers = {name: variable.numpy() for name, variable in flow.get_all_variables().items()}
    return given, numbers


@pytest.mark.parametrize(
    ("net", "steps"), [(nets.mlp, 60), (lambda images: nets.lenet(images, dropout=True), 12)], ids=["mlp", "lenet"]
)
def test_sync_and_async_give_the_same_bits(net, steps, session):
    at_once, variables = trained(BOTH, net, steps)
    later, same = trained(tp.Callback[BOTH], net, steps)
    assert len(later) == steps and list(variables) == list(same) and len(variables) >= 4
    for (losses, logits), (other_losses, other_logits) in zip(at_once, later):
        assert losses.tobytes() == other_losses.tobytes() and logits.tobytes() == other_logits.tobytes()
    assert all(variables[name].tobytes() == same[name].tobytes() for name in variables)
    assert at_once[-1][0].mean() < at_once[0][0].mean()
