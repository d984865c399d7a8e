"""Suggestions of similar names are computed in one module."""

from pathlib import Path

import minflow
from minflow.diagnosis.name_suggestions import similar_names


def test_similar():
    assert similar_names("fc1.wieght", ["fc1.weight", "fc1.bias", "fc2.weight"]) == ["fc1.weight", "fc2.weight"]
    assert similar_names("lr", {"learning_rate": 1}) == [] and similar_names(3, ["3d"], cutoff=0.5) == ["3d"]
    assert similar_names("w" * 10**6, ["w" * 100]) == ["w" * 100], "an absurdly long name costs no time"


def test_one_module_compares_names():
    top = Path(minflow.__file__).parent
    asking = [f for f in sorted(top.rglob("*.py")) if "get_close_matches" in f.read_text(encoding="utf-8")]
    assert [f.relative_to(top).as_posix() for f in asking] == ["diagnosis/name_suggestions.py"]
