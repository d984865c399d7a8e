"""Textbook programs, as their authors wrote them: with changed import lines they give PyTorch's losses.

`python -m tests.programs.textbook.record` recorded these; PyTorch is not needed here.
"""

import json

import pytest

from tests.programs.textbook import running

RECORDED = json.loads(running.LOSSES.read_text(encoding="utf-8"))


def test_each_program_has_its_losses():
    assert sorted(RECORDED) == running.PROGRAMS


@pytest.mark.parametrize("name", running.PROGRAMS)
def test_losses_match_pytorch(name):
    assert running.losses(name, "minflow") == pytest.approx(RECORDED[name], rel=2e-3, abs=2e-5)


@pytest.mark.parametrize(
    "line, expected",
    [
        ("import torch", "import minflow as torch"),
        ("import torch.nn as nn", "import minflow.nn as nn"),
        ("from torch.nn import functional as F", "from minflow.nn import functional as F"),
        ("from torchvision import models", "from torchvision import models"),
    ],
)
def test_only_import_lines_are_changed(line, expected):
    assert running.changed(line) == expected
