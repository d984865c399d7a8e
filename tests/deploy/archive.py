"""Archive of graphs saved by each format version: `python -m tests.deploy.archive` adds those of the current version.

An existing folder is never written again, because it represents what users have on disk. `test_archived_graphs.py`
loads each.
"""

from pathlib import Path

import numpy as np

import minflow as flow
from minflow import nn, typing as tp
from minflow.deploy.versions import VERSION

KEPT = Path(__file__).parent / "kept"


class Small(nn.Module):
    """Many kinds of operations with few elements."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 3, 3, stride=2, padding=1), nn.BatchNorm2d(3), nn.ReLU())
        self.rnn = nn.LSTM(12, 4, batch_first=True)
        self.norm, self.drop, self.head = nn.LayerNorm(4), nn.Dropout(0.25), nn.Linear(4, 3)

    def forward(self, images):
        rows = self.conv(images).permute(0, 2, 1, 3).reshape(images.size(0), 4, 12)
        states, _ = self.rnn(rows)
        return self.head(self.drop(self.norm(states[:, -1])))


class KeptPredict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, images):
        scores = self.model(images)
        return {"scores": scores, "best": [scores.argmax(1), flow.arange(images.size(0))]}


class KeptTrain(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss()
        optimizer = flow.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.1)
        self.add_optimizer(optimizer, lr_sch=flow.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10))

    def build(self, images, labels):
        loss = self.loss_fn(self.model(images), labels)
        loss.backward()
        return loss


def images(n):
    return flow.tensor(np.random.default_rng(n).standard_normal((n, 1, 8, 8)).astype("float32"))


LABELS = flow.tensor([0, 1, 2, 0])


def answers(name, graph):
    """Outputs of an archived graph, to be compared."""
    if name == "predict":
        results = [graph(images(n)) for n in (4, 1, 3)]
        return {
            f"{i}.{k}": r["scores"].numpy() if k == "scores" else r["best"][0].numpy()
            for i, r in enumerate(results)
            for k in ("scores", "best")
        }
    if name == "train":
        return {"losses": np.array([graph(images(4), LABELS).item() for _ in range(5)])}
    given = np.random.default_rng(5).standard_normal((2, 3)).astype("float32")
    return {"result": graph(flow.tensor(given)).numpy()}


def make(folder):
    flow.manual_seed(0)
    model = Small()
    train = KeptTrain(model)
    for _ in range(3):
        train(images(4), LABELS)
    flow.save(train, folder / "train")
    predict = KeptPredict(model.eval())
    predict(images(4))
    flow.save(predict, folder / "predict", dynamic={"images": {0: "batch"}})

    @flow.global_function(type="predict")
    def kept_job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        return flow.layers.dense(x, 2, activation=flow.nn.relu, name="kept-fc")

    kept_job(np.zeros((2, 3), "float32"))
    flow.save(kept_job, folder / "job")
    flow.clear_default_session()
    for name in ("train", "predict", "job"):
        np.savez(folder / f"{name}.npz", **answers(name, flow.load_graph(folder / name)))


if __name__ == "__main__":
    target = KEPT / str(VERSION)
    if target.exists():
        raise SystemExit(f"{target} is there, and what is kept is never written again")
    target.mkdir(parents=True)
    make(target)
    print(target)
