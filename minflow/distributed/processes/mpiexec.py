"""The launcher of the MPI library that mpi4py loads: that of the environment, or of the system.

A launcher of another library starts processes that do not find each other: each is the only rank.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from ...core.base.errors import MissingDependencyError
from ...core.base.optional import install_command

# MPI library -> words by which it and its launcher call themselves
LIBRARIES = {"Intel MPI": ("Intel(R) MPI",), "MPICH": ("MPICH", "HYDRA"), "Open MPI": ("Open MPI", "OpenRTE")}
VERSION = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
NAMES = "mpiexec", "mpiexec.mpich", "mpiexec.hydra", "mpiexec.openmpi", "mpirun"  # of systems, some with two libraries
# Open MPI otherwise refuses more ranks than cores: versions 4 and 5
OVERSUBSCRIBE = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":OVERSUBSCRIBE",
}


def launcher() -> str:
    """The mpiexec of the environment, else the first one on the PATH that belongs to the library of mpi4py."""
    without = "or --virtual, which runs the ranks as threads"
    own = Path(sysconfig.get_path("scripts")) / ("mpiexec.exe" if os.name == "nt" else "mpiexec")
    found = [path for name in NAMES if (path := shutil.which(name))]
    if importlib.util.find_spec("mpi4py") is None or not (own.exists() or found):
        raise MissingDependencyError(
            "mpi4py and MPICH are not installed, which start several processes",
            hint=f"{install_command('mpi4py')}; {without}",
        )
    if own.exists():
        return str(own)
    library = library_of(loaded_library())
    of_library = [path for path in found if library_of(version_of(path)) == library]
    if not of_library:
        raise MissingDependencyError(
            f"mpi4py loads {library}, whose mpiexec is not on the PATH",
            values={path: f"of {library_of(version_of(path))}" for path in found},
            hint=f"add it to the PATH; {without}",
        )
    return of_library[0]


def loaded_library() -> str:
    """The version text of the library that mpi4py loads. Raises MissingDependencyError if there is none."""
    loaded = subprocess.run([sys.executable, "-c", VERSION], capture_output=True, text=True, timeout=60)
    if loaded.returncode:
        *_, why = ["no message", *loaded.stderr.strip().splitlines()]
        raise MissingDependencyError(f"mpi4py cannot load an MPI library ({why})", hint=install_command("mpi4py"))
    return loaded.stdout


def version_of(mpiexec: str) -> str:
    """The version text of a launcher."""
    answer = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=60)
    return answer.stdout + answer.stderr


def library_of(text: str) -> str:
    """The MPI library that its version text, or that of its launcher, names."""
    found = [name for name, words in LIBRARIES.items() if any([word in text for word in words])]
    return found[0] if found else "an unknown MPI library"
