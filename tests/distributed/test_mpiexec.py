"""The launcher is that of the MPI library which mpi4py loads."""

import os
import sysconfig

import pytest

from minflow.core.base.errors import MissingDependencyError
from minflow.distributed.processes import mpiexec

pytestmark = pytest.mark.skipif(os.name == "nt", reason="launchers are shell scripts here")
LIBRARIES = {"MPICH": "MPICH Version: 4.0.2", "Open MPI": "Open MPI v4.1.4"}


@pytest.fixture
def system(monkeypatch, tmp_path):
    """A system whose packages have two launchers, and an environment without one."""
    for name, text in (("mpiexec", "HYDRA build details:"), ("mpiexec.openmpi", "mpiexec (OpenRTE) 4.1.4")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{text}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "environment"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    return tmp_path


@pytest.mark.parametrize("library, name", [("MPICH", "mpiexec"), ("Open MPI", "mpiexec.openmpi")])
def test_launcher_of_the_system(system, monkeypatch, library, name):
    monkeypatch.setattr(mpiexec, "loaded_library", lambda: LIBRARIES[library])
    assert mpiexec.launcher() == str(system / name)


def test_launcher_of_the_environment_comes_first(system):
    (system / "environment").mkdir()
    (system / "environment" / "mpiexec").touch()
    assert mpiexec.launcher() == str(system / "environment" / "mpiexec")


def test_launcher_of_another_library_is_refused(system, monkeypatch):
    monkeypatch.setattr(mpiexec, "loaded_library", lambda: "Intel(R) MPI Library 2021.14")
    with pytest.raises(MissingDependencyError, match=r"loads Intel MPI[\s\S]*mpiexec +of MPICH\n.*of Open MPI\n"):
        mpiexec.launcher()
