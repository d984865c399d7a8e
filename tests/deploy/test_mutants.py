"""Mutants of a saved graph give one GraphFormatError, or a graph that runs."""

import itertools
import json
import resource
from collections import Counter

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import GraphFormatError, MinflowError
from minflow.deploy.document import parse_spec
from minflow.io.files import GRAPH
from tests import sampling
from tests.deploy.mutants import Mutants
from tests.graph_models import Step
from tests.graphs import Predict

LARGEST = 10_000_000  # elements of an input: larger ones add nothing


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = flow.relu(self.norm(self.conv(x)))
        x = flow.cat([x, x * 2], dim=0)[:2]
        return {"y": self.fc(x.flatten(1)).softmax(dim=-1), "of": (x.mean(), x.argmax(dim=1))}


def training():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    return Step(model, flow.optim.Adam(model.parameters(), lr=0.1))


def saved(path, graph, *args, **options):
    graph(*args)
    flow.save(graph, path, **options)
    return path


def outcome(path):
    """Outcome for a folder: refused, ran, refused when it ran, or too large to try."""
    try:
        graph = flow.load_graph(path)
    except GraphFormatError as error:
        assert error.what and error.where and error.hint and len(str(error)) < 30_000
        return "refused"
    inputs = [parse_spec(row["spec"], "") for row in json.loads((path / GRAPH).read_bytes())["inputs"]]
    if sum(s.size for s in inputs) > LARGEST:
        return "too large"
    print(graph)
    try:
        graph(*[flow.tensor(np.zeros(s.shape, s.dtype.np)) for s in inputs])
    except MinflowError:  # changes visible only in values, or arguments with other names
        return "refused when run"
    return "ran"


def judged(folder, count, seed, train):
    if train:
        first, second = (saved(folder / n, training(), flow.ones(2, 3)) for n in ("a", "b"))
    else:
        first = saved(folder / "a", Predict(Small()), flow.ones(2, 1, 4, 4))
        second = saved(folder / "b", Predict(Small().eval()), flow.ones(2, 1, 4, 4))
    seen, mutants = Counter(), Mutants(first, folder, seed, second)
    for name in itertools.islice(mutants, count):
        try:
            seen[outcome(mutants.path)] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, mutant {sum(seen.values())}: {name}") from error
    return seen


@pytest.mark.parametrize("train", [False, True])
def test_mutants(tmp_path, train, capsys):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = 1000 if sampling.complete else 300
    seen = judged(tmp_path, count, 0, train)
    assert seen["refused"] > 0.6 * count and seen["ran"] > 0.01 * count, seen
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # KB: of all loads and runs


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_many_mutants(tmp_path, seed, capsys):
    assert judged(tmp_path, 2000, seed, seed % 2)["refused"] > 1200
