"""The programs and snippets of OneFlow's pages on job functions, with only their import lines changed.

The pages are not part of this project: MINFLOW_SEEDS names a folder that has them as `000*.txt` to `003*.txt`. Each of
the four complete programs runs in a separate process, on a small MNIST, and the two that evaluate load what the two
others saved. Read next: `restored.py`, which finds the code in the text; `small_mnist.py`.
"""

import ast
import functools
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from restored import blocks, for_minflow, programs
from small_mnist import TEST, TRAIN, sizes, write_mnist

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError
from minflow.core.context import world
from minflow.data import mnist
from minflow.job.session import default_session

SEEDS = os.environ.get("MINFLOW_SEEDS")
HERE = Path(__file__).parent
RUNNER = HERE / "small_mnist.py"
ROOT = Path(flow.__file__).parents[1]
FILES = ["lenet_train.py", "lenet_eval.py", "mlp_train.py", "mlp_eval.py"]  # our names, in the order of the page
GPU = "there is no GPU here"

pytestmark = [
    pytest.mark.skipif(
        not SEEDS, reason="needs the pages: MINFLOW_SEEDS names the folder that holds them as 000*.txt to 003*.txt"
    ),
    pytest.mark.filterwarnings(f"ignore:{GPU}"),
]


@functools.cache
def page(number):
    found = sorted(Path(SEEDS).glob(f"{number}*"))
    assert len(found) == 1, f"MINFLOW_SEEDS is {SEEDS}, and one file {number}* is expected in it: {found}"
    return found[0].read_text(encoding="utf-8")


def one(sources, *known):
    """Return the only piece of code that contains all of these words."""
    found = [source for source in sources if all(word in source for word in known)]
    assert len(found) == 1, (known, len(found))
    return found[0]


def whole_programs():
    return [source for source in blocks(page("000")) if "__main__" in source]


# ---- the four programs -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The output of each of the four programs, run in one folder in turn."""
    folder = tmp_path_factory.mktemp("mnist")
    write_mnist(folder)
    out = {}
    for file, source in zip(FILES, whole_programs(), strict=True):
        (folder / file).write_text(for_minflow(source), encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, RUNNER, file],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert ran.returncode == 0, (file, ran.stderr)
        notices = [line for line in ran.stderr.splitlines() if "Warning" in line]
        assert all(GPU in line for line in notices) and "Error" not in ran.stderr, ran.stderr
        lines = ran.stdout.splitlines()
        assert lines[0] == "File mnist.npz already exist, path: ./mnist.npz"
        assert lines[1].startswith("./mnist.npz does not have the checksum")
        out[file] = lines[2:]
    return folder, out


def test_only_import_lines_are_changed():
    for source in whole_programs():
        pairs = zip(source.splitlines(), for_minflow(source).splitlines(), strict=True)
        changed = [pair for pair in pairs if pair[0] != pair[1]]
        assert changed == [
            ("import oneflow as flow", "import minflow as flow"),
            ("import oneflow.typing as tp", "import minflow.typing as tp"),
        ]


def test_sync_training_prints_falling_losses_and_saves(printed):
    folder, out = printed
    *losses, last = out["lenet_train.py"]
    losses = [float(x) for x in losses]
    assert last == "model saved" and len(losses) == 20  # one per epoch: an epoch has fewer than 20 batches
    assert losses[0] > 2.3 and losses[-1] < 0.5
    assert (folder / "lenet_models_1" / "snapshot_done").read_bytes() == b""
    assert np.fromfile(folder / "lenet_models_1" / "conv2-weight" / "out", "<f4").size == 64 * 32 * 5 * 5


def test_async_training_calls_back_once_per_step(printed):
    folder, out = printed
    losses = [float(x) for x in out["mlp_train.py"]]
    assert len(losses) == 20 * (TRAIN // 100) // 20  # every 20th of the steps of 20 epochs
    assert losses[0] > 2 and losses[-1] < 0.5
    steps = np.fromfile(folder / "mlp_models_1" / "System-Train-TrainStep-train_job" / "out", "<i8")
    assert steps == [20 * (TRAIN // 100)]


@pytest.mark.parametrize("file", ["lenet_eval.py", "mlp_eval.py"])
def test_evaluation_loads_the_saved_variables(file, printed):
    [line] = printed[1][file]
    accuracy = float(re.fullmatch(r"accuracy: ([\d.]+)%", line)[1])
    assert 80 < accuracy <= 100  # of the few digits of a small training set
    assert TEST == 300


# ---- snippets --------------------------------------------------------------------------------------------------------


@pytest.fixture
def names(tmp_path, monkeypatch):
    """The names that a snippet uses, as if the page's programs had begun: imports, a batch size, one batch, nets."""
    flow.clear_default_session()
    flow.manual_seed(0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mnist, "EXPECTED", sizes())
    write_mnist(tmp_path)
    (images, labels), _ = flow.data.digits(100, image_size=28)
    yield {
        "flow": flow,
        "tp": tp,
        "np": np,
        "Tuple": tuple,
        "BATCH_SIZE": 100,
        "images": images[0],
        "labels": labels[0],
    }
    flow.clear_default_session()
    for setting in ("gpu_device_num", "ctrl_port"):
        default_session().settings.pop(setting, None)


def run(source, names, file="snippet.py"):
    Path(file).write_text(for_minflow(source), encoding="utf-8")
    exec(compile(for_minflow(source), file, "exec"), names)


def function_of(source, name):
    """Return the source of one function of a program."""
    found = [part for part in ast.parse(source).body if isinstance(part, ast.FunctionDef) and part.name == name]
    return ast.get_source_segment(source, found[0])


def test_page_on_definition_and_call(names, capsys):
    sources = programs(page("001"))
    body = one(sources, "tp.Callback[tp.Numpy]")
    seen = []
    run(body, names)
    names["train_job"](names["images"], names["labels"])(seen.append)
    flow.sync_default_session()
    assert seen[0].shape == (100,)

    run(one(sources, "def get_train_config"), names)
    head = re.search(r"^@\S+\(.*function_config.*\n(?:.*\n)*?\) -> tp\.Numpy:\n", page("001"), re.MULTILINE)[0]
    # the page omits its body: same as before
    run(head + body.partition("-> tp.Callback[tp.Numpy]:\n")[2], names)
    assert names["train_job"].config.data_type is flow.float32
    capsys.readouterr()
    run(one(sources, "for epoch in range(3)"), names)
    losses = [float(line) for line in capsys.readouterr().out.splitlines()[2:]]
    assert len(losses) == 3 and losses[2] < 0.6 * losses[0] and names["train_job"].steps == 1 + 3 * (TRAIN // 100)


@pytest.mark.parametrize("number", ["000", "002"])
def test_page_on_results(number, names, capsys):
    sources = [source for source in blocks(page(number)) if "__main__" not in source]
    run(function_of(whole_programs()[0], "lenet"), names)
    run(function_of(whole_programs()[3], "mlp"), names)
    names |= {"i": 0, "g_i": 0}

    run(one(sources, "-> tp.Numpy:", "def train_job"), names)
    run(one(sources, "print(loss.mean())"), names)
    assert isinstance(names["loss"], np.ndarray) and capsys.readouterr().out == f"{names['loss'].mean()!s}\n"

    run(one(sources, "-> tp.Callback[tp.Numpy]:"), names)
    run(one(sources, "def cb_print_loss"), names)
    run(one(sources, "callbacker = "), names)
    run(
        one([source for source in sources if "\n" not in source.strip()], "train_job(images, labels)(cb_print_loss)"),
        names,
    )
    flow.sync_default_session()
    assert names["g_i"] == 2 and 2 < float(capsys.readouterr().out) < 5

    run(one(sources, "def eval_job"), names)
    run(one(sources, "def acc("), names)
    names["eval_job"](names["images"], names["labels"])(names["acc"])
    flow.sync_default_session()
    assert names["g_total"] == 100 and 0 <= names["g_correct"] <= 100


# ---- the list of concepts --------------------------------------------------------------------------------------------


def concept(word, names):
    run(one(blocks(page("003")), word), names)


def test_concepts_placeholder(names):
    concept("def test_job", names)
    images, labels = np.random.default_rng(0).random((32, 1, 28, 28), "float32"), np.arange(32, dtype="int32")
    assert names["test_job"](images, labels) == (images, labels)  # no decorator: a plain function


def test_concepts_tensors(names, capsys):
    concept("tensor1", names)
    assert names["tensor1"].tolist() == [[1, -1], [1, -1]] and names["tensor1"].dtype is flow.float32
    assert names["tensor2"].tolist() == [[1, 2, 3], [4, 5, 6]] and names["tensor2"].dtype is flow.int64
    concept("x[0][1] = 8", names)
    assert capsys.readouterr().out.startswith("tensor(6") and names["x"].tolist() == [[1, 8, 3], [4, 5, 6]]


def test_concepts_layers(names):
    concept("def layer_example", names)
    out = names["out"]
    assert out.shape == (1, 128, 64, 64) and out.dtype == np.float32 and np.isfinite(out).all() and out.std() > 1


def test_concepts_all_three_mistakes_are_reported_together(names):
    concept("(logits, labels)", names)
    with pytest.raises(JobError, match="3 mistakes") as caught:
        names["train_job"](names["images"], names["labels"])
    same_name, swapped, no_optimizer = map(str, caught.value.problems)
    assert "Dense-weight" in same_name and "labels" in swapped and "minimize" in no_optimizer


def test_concepts_two_devices(names):
    run(one(programs(page("003")), "ctrl_port"), names)
    assert all(text in repr(flow.config) for text in ("gpu_device_num=2", "ctrl_port=50051", "2 virtual CPU devices"))


# ---- the list of concepts on two ranks -------------------------------------------------------------------------------

CORRECTIONS = {
    "hidden, 10,": 'hidden, 10, name="output",',
    "(logits, labels)": "(labels, logits)",
    "    return loss": """\
    flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0.9).minimize(loss)
    return loss""",
}
TRAINING = """
(digits, classes), _ = flow.data.digits(100, image_size=28)
losses, steps = [], 20
for step in range(steps):
    train_job(digits[step % 3], classes[step % 3])(losses.append)
flow.sync_default_session()
"""
REPORT = """
before = world().sent
train_job(digits[0], classes[0])(losses.append)
flow.sync_default_session()
weight = flow.get_all_variables()["Dense-weight"].numpy()
assert world().sent - before >= weight.nbytes, "each rank sends its term of a gradient"
print("rank", world().rank, *[float(loss.mean()) for loss in losses[:20]])
"""


def concepts(devices):
    """The programs of the page about devices, training and layers, as one that trains."""
    source = one(blocks(page("003")), "(logits, labels)")
    for wrong, right in CORRECTIONS.items():
        assert wrong in source
        source = source.replace(wrong, right)
    settings = one(programs(page("003")), "ctrl_port") if devices == 2 else ""
    head = "import numpy as np\nimport oneflow as flow\nflow.manual_seed(0)\nnp.random.seed(0)\nBATCH_SIZE = 100\n"
    return for_minflow(head + settings + source + one(blocks(page("003")), "def layer_example") + TRAINING)


def run_concepts(devices, folder):
    rank = flow.env.get_rank()
    flow.clear_default_session()
    names, file = {"__name__": "program"}, folder / f"concepts_{devices}_{rank}.py"
    file.write_text(concepts(devices), encoding="utf-8")
    exec(compile(file.read_text(encoding="utf-8"), file, "exec"), names)
    return names["losses"], names["out"], world().sent


def test_concepts_on_two_virtual_ranks(names, tmp_path):
    losses, out, _ = run_concepts(1, tmp_path)
    with flow.virtual_ranks(2) as ranks:
        results = ranks.run(run_concepts, 2, tmp_path)
    assert np.array_equal(results[0][1], results[1][1]) and results[0][1].shape == out.shape
    for found, _, sent in results:
        np.testing.assert_allclose(found, losses, rtol=0, atol=2e-4)  # float32, of numbers around 1
        assert sent > 20 * 4 * 784 * 512


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed (extra mpi)")
def test_concepts_on_two_processes(names, tmp_path):
    losses, _, _ = run_concepts(1, tmp_path)
    text = concepts(2) + "from minflow.core.context import world\n" + REPORT
    (tmp_path / "concepts.py").write_text(text, encoding="utf-8")
    words = "-m", "minflow.distributed.launch", "-n", "2", "concepts.py"
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    printed = sorted(re.findall(r"rank ([01] [\d. e-]+)", ran.stdout))
    assert [line[0] for line in printed] == ["0", "1"]
    for line in printed:
        found = [float(word) for word in line.split()[1:]]
        np.testing.assert_allclose(found, [loss.mean() for loss in losses], rtol=0, atol=2e-5)
