"""docs/coverage.md tells the truth, and the aims it was made for are reached."""

import pytest

import minflow
from minflow.core.messages import unsupported
from tests.names import coverage


@pytest.fixture(scope="module")
def names():
    return {library: coverage.coverage(library) for library in coverage.LISTS}


def test_the_page_is_as_the_package(names):
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page(names), "python -m tests.names.coverage"


def test_oneflow_is_there_or_refused_by_name(names):
    count = coverage.counts(names["OneFlow 1.0"])
    assert count["there"] + count["different"] >= 850
    assert not [n.name for n in names["OneFlow 1.0"] if n.status == "missing"]


def test_pytorch_is_there_to_nine_tenths(names):
    count = coverage.counts(names["PyTorch 2.13"])
    assert count["there"] + count["different"] >= 0.9 * sum(count.values())


def test_what_is_refused_says_what_to_use(names):
    """A sentence of the table, or of what the job functions' generation had."""
    said = {n.name: n.reason for library in names.values() for n in library if n.status == "refused"}
    assert not [name for name, hint in said.items() if not hint or "lists what is there" in hint or "did you" in hint]
    jobs = ("placement", "sbp", "nn.image")
    assert all(hint == unsupported.reason(name) or name.startswith(jobs) for name, hint in said.items())
    assert "utils.data.Dataset" in said["nn.COCOReader"] and "lie in the memory" in said["Tensor.offload"]


def test_a_name_that_goes_is_missed(monkeypatch):
    monkeypatch.delattr(minflow.nn, "Linear")
    assert coverage.status("nn", "nn.Linear", []).status == "missing"
    assert coverage.status("nn", "nn.ReLU", []).status == "there"
    assert coverage.status("nn", "nn.ReLU", [("nn.R*", "why")]) == ("nn", "nn.ReLU", "different", "why")
