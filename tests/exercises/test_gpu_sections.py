"""The sections of lessons about GPUs: on the stand-in, and without a GPU, where one sentence says so."""

import json
import statistics
import time

import pytest

import minflow as flow
from minflow import nn
from tests.sources import TOP

SETTING_UP = {"09_why_it_can_be_fast": ("fast-16", "fast-16b", "fast-23"), "11_without_waiting": ()}
SECTIONS = {"09_why_it_can_be_fast": ("fast-49", "fast-50"), "11_without_waiting": ("async-48",)}


def run_section(lesson: str, capsys) -> str:
    """The text that the cells of the section print."""
    cells = json.loads((TOP / "notebooks" / f"{lesson}.ipynb").read_text())["cells"]
    by_id = {cell["id"]: "".join(cell["source"]).replace("4096", "40") for cell in cells}
    names = {"flow": flow, "nn": nn, "time": time, "statistics": statistics, "guess": 1}
    for cell in SETTING_UP[lesson]:
        exec(by_id[cell], names)
    capsys.readouterr()
    for cell in SECTIONS[lesson]:
        exec(by_id[cell], names)
    return capsys.readouterr().out


@pytest.mark.parametrize("lesson", SECTIONS)
def test_without_a_gpu_one_sentence_says_so(lesson, capsys, monkeypatch):
    monkeypatch.setattr(flow.cuda, "is_available", lambda: False)
    said = run_section(lesson, capsys)
    assert said.startswith("No GPU can be used here, so ") and said.count("\n") == 1


def test_eager_code_and_a_graph_are_timed(cuda, capsys):
    assert [line.split(":")[0] for line in run_section("09_why_it_can_be_fast", capsys).splitlines()] == [
        "eager",
        "graph",
    ]


def test_a_call_returns_before_its_result(cuda, capsys):
    assert "the call returned after" in run_section("11_without_waiting", capsys)
