"""Registry of compiled kernels: which ops have one, when they replace NumPy's, and when they are compiled.

Kernel modules and numba are imported on first use. Read next: `runtime/tasks.py`.
"""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path

from ...core.base.errors import MinflowWarning, MissingDependencyError
from ...core.base.locks import exclusive_lock
from ...core.base.optional import install_command
from ...core.kernels import EAGER_PLATFORMS, HOST_PLATFORMS, use_platforms
from ...core.memory import retain_freed_memory
from ...core.messages.invocation import command
from ...core.source_location import here
from .config import COMPILED, EAGER_COMPILED, CompiledKernelConfig

SINCE, UNTIL = "0.61", "0.68"  # versions of numba that compile all kernels
LATE = 1.0  # seconds after which a message about compiling is printed


def used() -> bool:
    """True if compiled kernels also run in eager code, on arrays of any size."""
    return COMPILED in EAGER_PLATFORMS["cpu"]


def use(on: bool = True, without: Sequence[str] = (), eager: bool = True) -> None:
    """Switch to compiled kernels, or back to NumPy's. Graphs that are built keep their kernels.

    By default, large graphs and jobs use compiled kernels, and calls of eager code on large arrays.

    without: names of passes of `minflow.platforms.compiled.passes()` to leave out of new graphs.  eager: True to use
    compiled kernels in eager code, on arrays of any size; False to use NumPy's there.

    The first call after an installation compiles, which takes some seconds. Raises MissingDependencyError without
    numba.
    """
    if on:
        warmup()
    use_platforms("cpu", HOST_PLATFORMS)
    CompiledKernelConfig.graphs, CompiledKernelConfig.passes = "none", ()
    if on:
        CompiledKernelConfig.graphs = "all"
        CompiledKernelConfig.passes = tuple([step for step in passes() if step.__name__ not in without])
        if eager:
            use_platforms("cpu", EAGER_COMPILED)


def load_by_default() -> str:
    """Load kernels from the compile cache; if it is empty, start a process that compiles them.

    Returns why this process has none, or "" if it has.
    """
    try:
        from . import compile_cache
    except (ImportError, OSError):  # llvmlite is missing, or its library is for another system
        return warn(missing_numba())
    if not compile_cache.tested():
        return "compiled kernels are tested only on Linux with AVX2; compiled.use() tries them here"
    if compile_cache.load():
        import_all()
        CompiledKernelConfig.passes = passes()
        return ""
    if importlib.util.find_spec("numba") is None:
        return warn(missing_numba())
    if not known_numba():
        return warn(
            f"numba {metadata.version('numba')} is not one of those that compiled the kernels for large arrays and "
            f"graphs, {SINCE} to {UNTIL}: NumPy's run instead. Install one of those; minflow.platforms.compiled.use() "
            "tries this one, MINFLOW_MACHINE=0 does without"
        )
    reason = compile_for_later()
    print(f"minflow: {reason}", file=sys.stderr, flush=True)
    return reason


def compile_for_later() -> str:
    """Start a process that compiles the kernels; return why this process has none, and what happens next."""
    from . import compile_cache

    if compile_cache.folder() is None:
        return (
            "compiled kernels cannot be stored, so NumPy's run on large arrays and graphs: "
            "set MINFLOW_KERNELS to a writable folder"
        )
    compiler = spawn_compiler("switch.compile_all(patient=True)")
    if compiler is None:
        return f"no process can be started to compile kernels; NumPy's run instead. Try: {command('warmup')}"
    compiler.returncode = 0  # suppress the warning that the child still runs; nothing waits for it
    return (
        "kernels for this processor are compiled in the background, once per installation (half a minute).\n"
        "This process runs NumPy's kernels until it ends; large arrays and graphs of those that start afterwards are "
        f"faster. Try: {command('warmup')}, then restart"
    )


def known_numba() -> bool:
    """True if this version of numba has been tested: jit.py depends on undocumented parts of it."""
    try:
        version = tuple(map(int, metadata.version("numba").split(".")[:2]))
    except ValueError:  # a development version
        return False
    return tuple(map(int, SINCE.split("."))) <= version <= tuple(map(int, UNTIL.split(".")))


def missing_numba() -> str:
    return (
        "numba is not installed, which compiles kernels for large arrays and graphs: NumPy's run instead. "
        f"Try: {install_command('numba')}, or MINFLOW_MACHINE=0, which does without"
    )


def warn(text: str) -> str:
    warnings.warn(text, MinflowWarning, stacklevel=3)
    return text


def passes() -> tuple[Callable, ...]:
    """The passes of graphs that use compiled kernels, in order."""
    from .passes.copy_elision import copies
    from .passes.elementwise_fusion import clusters
    from .passes.gemm_epilogue import dense
    from .passes.layout import layout

    return copies, layout, dense, clusters


def warmup() -> float:
    """Compile all kernels, or load those that an earlier process has compiled; return the seconds that it took."""
    if any([importlib.util.find_spec(name) is None for name in ("numba", "llvmlite")]):
        raise MissingDependencyError(
            "numba is not installed, which compiles the machine's kernels", where=here(), hint=install_command("numba")
        )
    begun = time.perf_counter()
    compile_all()
    return time.perf_counter() - begun


def compile_all(patient: bool = False) -> None:
    """Compile all kernels, or load them from the cache. Another process compiles half of them.

    patient: run at low priority, and leave if another process is already compiling.
    """
    from . import compile_cache

    if compile_cache.load() and not patient:
        import_all()
        return
    if patient and hasattr(os, "nice"):
        os.nice(10)
    with (
        exclusive_lock(compile_cache.folder(), wait=not patient)
        if compile_cache.folder()
        else nullcontext(True) as free
    ):
        if free and compile_cache.load():  # another process has compiled them meanwhile
            import_all()
        elif free:
            compile_halves(quiet=patient)


def compile_halves(quiet: bool) -> None:
    """Compile one part here, and the other in another process."""
    notice = threading.Timer(
        LATE,
        print,
        ["minflow: compiling kernels for this processor, once per installation ..."],
        {"file": sys.stderr, "flush": True},
    )
    notice.daemon = True
    if not quiet:
        notice.start()
    try:
        from . import compile_cache

        theirs, ours = compile_cache.PARTS
        other = spawn_compiler(f"switch.compile_part({theirs})")
        compile_part(ours)
        if other is not None:
            other.wait()
        if not compile_cache.load_part(theirs):  # if nothing can be saved, each process compiles everything
            compile_part(theirs)
    finally:
        notice.cancel()


def spawn_compiler(code: str) -> subprocess.Popen | None:
    """Start a process that runs `code` and may outlive this one; None if that is impossible."""
    path = str(Path(__file__).parents[3])
    try:
        return subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import sys; sys.path.insert(0, {path!r}); from minflow.platforms.compiled import switch; {code}",
            ],
            env={**os.environ, "MINFLOW_MACHINE": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, TypeError):  # out of memory, or an embedded Python whose executable is unknown
        return None


def import_all() -> None:
    """Import all modules with compiled functions. Those in `kernels/` register their kernels.

    Their arrays are large: let them reuse the memory of freed ones.
    """
    from . import kernels

    retain_freed_memory()
    names = [f"kernels.{module.name}" for module in pkgutil.iter_modules(kernels.__path__)]
    for module in [*names, "runtime.recorder"]:
        importlib.import_module(f".{module}", __package__)


def compile_part(part: int) -> None:
    """Compile one part in this process."""
    from .codegen import jit

    import_all()
    jit.compile_part(part)


def by_environment() -> None:
    """Call `use()` when minflow is imported with MINFLOW_MACHINE set."""
    try:
        use()
    except MissingDependencyError as error:
        warnings.warn(f"MINFLOW_MACHINE is set, but {error.what}: NumPy's kernels run", MinflowWarning, stacklevel=2)
