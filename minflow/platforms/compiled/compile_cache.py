"""The compile cache: compiled kernels on disk, which a process loads as machine code without compiling.

It consists of two object files, since two processes compile half of the kernels each. Functions are inlined across
files, so a change of any source file of this package invalidates both: the hash of the sources is part of their names,
like the processor that the code is for. Read next: `codegen/jit.py`, which compiles.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import io
import json
import os
import sys
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import llvmlite
from llvmlite import binding

from ...core.files import atomic

ROOM = Path(__file__).parent
PARTS = (0, 1)
FOLDER = "MINFLOW_KERNELS"  # environment variable: folder of the archives
CODE = "kernels.o"  # in an archive: the object file
SYMBOLS = "symbols.json"  # in an archive: {name of a function: its symbol}
NEEDED = "needed.json"  # in an archive: external symbols that the code needs
ADDRESSES: dict[str, int] = {}  # name of a compiled function -> address
LOADED: set[int] = set()  # parts
ENGINES: list[binding.ExecutionEngine] = []  # they own the code in memory
# Symbols for errors that the kernels never raise; numba defines them if it is imported.
UNREACHED = (
    "numba_gil_ensure",
    "numba_gil_release",
    "numba_unpickle",
    "numba_do_raise",
    "numba_runtime_build_excinfo_struct",
)


def processor() -> tuple[str, str]:
    """Return the name and the features of the processor that numba compiles for."""
    return (
        os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name(),
        os.environ.get("NUMBA_CPU_FEATURES") or binding.get_host_cpu_features().flatten(),
    )


def tested() -> bool:
    """True if the kernels are tested on this kind of system. On others they run only if a program asks for them."""
    return sys.platform == "linux" and {"+avx2", "+fma"} <= {*processor()[1].split(",")}


@functools.cache
def stamp() -> str:
    """Hash of the processor, the version of LLVM, and all source files of this package."""
    here = hashlib.sha256("\n".join([*processor(), llvmlite.__version__, sys.platform]).encode())
    files = sorted([*ROOM.glob("*.py*"), *ROOM.glob("[!_]*/*.py*")])  # .pyc if there are no sources; not __pycache__
    code = hashlib.sha256(b"".join([file.read_bytes() for file in files]))
    return f"{here.hexdigest()[:8]}-{code.hexdigest()[:16]}"


def folders() -> list[Path]:
    """Return the folders of archives in order of preference: Python's __pycache__, then the user's cache."""
    if said := os.environ.get(FOLDER):
        return [Path(said)]
    base = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    try:
        return [ROOM / "__pycache__", (Path(base) if base else Path.home() / ".cache") / "minflow"]
    except RuntimeError:  # a user without a home
        return [ROOM / "__pycache__"]


def name_of(part: int) -> str:
    return f"kernels-{stamp()}-{part}.zip"


def folder() -> Path | None:
    """Return the first folder that this user may write to."""
    return next((path for path in folders() if writable(path)), None)


def writable(path: Path) -> bool:
    with suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        return os.access(path, os.W_OK)
    return False


def load() -> bool:
    """Load all compiled kernels; False if some are not in the cache."""
    return all([load_part(part) for part in PARTS])


def load_part(part: int) -> bool:
    """Load one part; False if it is not in the cache or cannot be read."""
    if part in LOADED:
        return True
    for folder in folders():
        try:
            with zipfile.ZipFile(folder / name_of(part)) as archive:
                code, symbols, needed = archive.read(CODE), *[json.loads(archive.read(x)) for x in (SYMBOLS, NEEDED)]
            addresses = linked(symbols, code, needed)
        except Exception:  # damaged: zipfile has a dozen kinds of errors for that
            continue
        LOADED.add(part)
        ADDRESSES.update(addresses)
        return True
    return False


def resolved(name: str) -> bool:
    """True if this process has the symbol; LLVM would abort the process if one were missing."""
    if binding.address_of_symbol(name) is None and name in UNREACHED:
        binding.add_symbol(name, ctypes.cast(ctypes.pythonapi.Py_FatalError, ctypes.c_void_p).value)
    return binding.address_of_symbol(name) is not None


def target() -> binding.TargetMachine:
    """Return LLVM's target: this processor, JIT code model."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    name, features = processor()
    triple = binding.get_process_triple()
    return binding.Target.from_triple(triple).create_target_machine(
        cpu=name,
        features=features,
        opt=3,
        jit=True,
        codemodel="jitdefault",
        reloc="static" if triple.startswith("x86") else "default",
    )


def linked(symbols: Mapping[str, str], code: bytes, needed: Iterable[str]) -> dict[str, int]:
    """Load an object file; return {name of a function: address}.

    symbols: {name of a function: its symbol}.  needed: external symbols. Raises OSError if one of these is missing.
    """
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target())
    if missing := [name for name in needed if not resolved(name)]:
        raise OSError(f"compiled kernels need {missing[0]}, which is not in this process")
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    ENGINES.append(engine)
    return {name: engine.get_function_address(symbol) for name, symbol in symbols.items()}


def save(part: int, symbols: Mapping[str, str], code: bytes, needed: Iterable[str]) -> None:
    """Save a part, if the folder is writable. needed: external symbols of the code."""
    target = folder()
    if target is None:
        return
    with suppress(OSError):  # such as a full disk
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(CODE, code)
            archive.writestr(SYMBOLS, json.dumps(symbols))
            archive.writestr(NEEDED, json.dumps(sorted(needed)))
        atomic.replace(target / name_of(part), lambda out: out.write(file.getvalue()))
        os.chmod(target / name_of(part), 0o644)
        for old in ROOM.glob(f"__pycache__/kernels-{stamp()[:9]}*"):  # of older sources
            if stamp() not in old.name:
                old.unlink(missing_ok=True)
