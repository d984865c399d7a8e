"""Graphs saved by earlier versions load and give their recorded outputs."""

import numpy as np
import pytest

import minflow as flow
from minflow.deploy.versions import VERSION
from tests.deploy.archive import KEPT, answers

FOLDERS = sorted(folder for version in KEPT.iterdir() for folder in version.iterdir() if folder.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_archived_graph_gives_its_recorded_outputs(folder):
    wanted = np.load(folder.with_suffix(".npz"))
    got = answers(folder.name, flow.load_graph(folder))
    assert set(wanted) == set(got)
    for name in wanted:  # another machine's BLAS rounds differently
        np.testing.assert_allclose(got[name], wanted[name], rtol=2e-4, atol=1e-5)


def test_current_version_is_archived():
    assert {folder.name for folder in FOLDERS if folder.parent.name == str(VERSION)} == {"train", "predict", "job"}, (
        "python -m tests.deploy.archive"
    )
