"""docs/coverage.md is up to date, and its goals are reached."""

import pytest

import minflow
from minflow.core.messages import unsupported
from tests.names import coverage


@pytest.fixture(scope="module")
def names():
    return {library: coverage.coverage(library) for library in coverage.LISTS}


def test_page_matches_the_package(names):
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page(names), "python -m tests.names.coverage"


def test_oneflow_names_exist_or_are_refused(names):
    count = coverage.counts(names["OneFlow 1.0"])
    assert count["there"] + count["different"] >= 850
    assert not [n.name for n in names["OneFlow 1.0"] if n.status == "missing"]


def test_nine_tenths_of_pytorch_names_exist(names):
    count = coverage.counts(names["PyTorch 2.13"])
    assert count["there"] + count["different"] >= 0.9 * sum(count.values())


def test_refused_names_suggest_an_alternative(names):
    """By a sentence of the table, or of the hints of legacy names."""
    said = {n.name: n.reason for library in names.values() for n in library if n.status == "refused"}
    assert not [name for name, hint in said.items() if not hint or "lists what is there" in hint or "did you" in hint]
    jobs = ("placement", "sbp", "nn.image")
    assert all(hint == unsupported.reason(name) or name.startswith(jobs) for name, hint in said.items())
    assert "utils.data.Dataset" in said["nn.COCOReader"] and "memory of a GPU" in said["Tensor.offload"]


def test_removed_name_is_detected(monkeypatch):
    monkeypatch.delattr(minflow.nn, "Linear")
    assert coverage.status("nn", "nn.Linear", []).status == "missing"
    assert coverage.status("nn", "nn.ReLU", []).status == "there"
    assert coverage.status("nn", "nn.ReLU", [("nn.R*", "why")]) == ("nn", "nn.ReLU", "different", "why")
