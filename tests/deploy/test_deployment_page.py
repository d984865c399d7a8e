"""Programs of docs/deployment.md, run in order like a reader would: saved, loaded without the classes, served."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "deployment.md"
SAVING, LOADING, SERVING = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(SAVING, "saving.py", "exec"), {"__name__": "saving"})
    return tmp_path


def test_saved_graph_loads_in_another_process(folder):
    (folder / "use.py").write_text("import minflow as flow\n" + LOADING)
    done = subprocess.run(
        [sys.executable, "use.py"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert not done.returncode, done.stderr
    assert done.stdout.strip() == "minflow.Size([32, 10])"


def test_saved_graph_is_served(folder):
    from fastapi.testclient import TestClient

    space = {"__name__": "serve"}
    exec(compile(SERVING, "serve.py", "exec"), space)
    client = TestClient(space["app"])
    images = np.random.default_rng(0).random((3, 1, 8, 8), "float32")
    answer = client.post("/predict", json={"images": images.tolist()})
    assert answer.status_code == 200
    scores = space["graph"](space["flow"].tensor(images)).numpy()
    assert answer.json()["classes"] == scores.argmax(1).tolist()
    np.testing.assert_array_equal(np.array(answer.json()["scores"], "float32"), scores)
    wrong = client.post("/predict", json={"images": images[:, :, :5].tolist()})
    assert wrong.status_code == 422 and "was saved for images float32[batch, 1, 8, 8]" in wrong.json()["detail"]
    assert client.post("/predict", json={"images": "no"}).status_code == 422
