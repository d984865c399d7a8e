"""Compiled kernels are kept on disk: a process that finds them loads machine code, and compiles nothing.

They are two object files of LLVM, since two processes compile half of them each. A compiled function holds
code of the room's other files, too, so any change of any of these files makes all of it stale: their hash is part of
the archives' names, as is the processor that the code is for. Who changes the code of this room compiles anew.
Read next: `codegen/jit.py`, which compiles.
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
FOLDER = "MINFLOW_KERNELS"  # the environment's name for where archives are to be
CODE = "kernels.o"  # of an archive: an object file
SYMBOLS = "symbols.json"  # of an archive: name of a function -> what LLVM calls it
NEEDED = "needed.json"  # of an archive: functions of others that its code calls
ADDRESSES: dict[str, int] = {}  # of compiled functions, by their names
LOADED: set[int] = set()  # parts
ENGINES: list[binding.ExecutionEngine] = []  # who holds the code
# What the code names for errors that it never raises; numba itself, where it is imported, brings them.
UNREACHED = (
    "numba_gil_ensure",
    "numba_gil_release",
    "numba_unpickle",
    "numba_do_raise",
    "numba_runtime_build_excinfo_struct",
)


def processor() -> tuple[str, str]:
    """The name and the features that numba compiles for."""
    return (
        os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name(),
        os.environ.get("NUMBA_CPU_FEATURES") or binding.get_host_cpu_features().flatten(),
    )


def tested() -> bool:
    """Is this a system that the kernels have run on? On others graphs take them where a program says so."""
    return sys.platform == "linux" and {"+avx2", "+fma"} <= {*processor()[1].split(",")}


@functools.cache
def stamp() -> str:
    """Changes with the processor, with LLVM, and with any file of this room."""
    here = hashlib.sha256("\n".join([*processor(), llvmlite.__version__, sys.platform]).encode())
    files = sorted([*ROOM.glob("*.py*"), *ROOM.glob("[!_]*/*.py*")])  # or .pyc alone; not __pycache__
    code = hashlib.sha256(b"".join([file.read_bytes() for file in files]))
    return f"{here.hexdigest()[:8]}-{code.hexdigest()[:16]}"


def folders() -> list[Path]:
    """Where archives may be, the first choice first: with Python's own compiled files, or in the user's cache."""
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
    """The first one in which this user may write."""
    return next((path for path in folders() if writable(path)), None)


def writable(path: Path) -> bool:
    with suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        return os.access(path, os.W_OK)
    return False


def load() -> bool:
    """Have all of it in this process, if it was compiled."""
    return all([load_part(part) for part in PARTS])


def load_part(part: int) -> bool:
    """Have a part in this process. What cannot be read is as if it were not there."""
    if part in LOADED:
        return True
    for folder in folders():
        try:
            with zipfile.ZipFile(folder / name_of(part)) as archive:
                code, symbols, needed = archive.read(CODE), *[json.loads(archive.read(x)) for x in (SYMBOLS, NEEDED)]
            found = linked(symbols, code, needed)
        except Exception:  # damaged: zipfile has a dozen kinds of errors for that
            continue
        LOADED.add(part)
        ADDRESSES.update(found)
        return True
    return False


def resolved(name: str) -> bool:
    """Is there such a function for an engine's code? Without one LLVM would end the process."""
    if binding.address_of_symbol(name) is None and name in UNREACHED:
        binding.add_symbol(name, ctypes.cast(ctypes.pythonapi.Py_FatalError, ctypes.c_void_p).value)
    return binding.address_of_symbol(name) is not None


def target() -> binding.TargetMachine:
    """What is compiled for: this processor, with the addresses that code in memory has."""
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
    """The addresses of an object file's functions in memory. symbols: their names -> what LLVM calls them. OSError
    where something is missing that they need.
    """
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target())
    if missing := [name for name in needed if not resolved(name)]:
        raise OSError(f"compiled kernels need {missing[0]}, which is not in this process")
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    ENGINES.append(engine)
    return {name: engine.get_function_address(symbol) for name, symbol in symbols.items()}


def save(part: int, symbols: Mapping[str, str], code: bytes, needed: Iterable[str]) -> None:
    """Keep what was compiled, if it can be kept. needed: functions of others that it calls."""
    target = folder()
    if target is None:
        return
    with suppress(OSError):  # a full disk, for one
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(CODE, code)
            archive.writestr(SYMBOLS, json.dumps(symbols))
            archive.writestr(NEEDED, json.dumps(sorted(needed)))
        atomic.replace(target / name_of(part), lambda out: out.write(file.getvalue()))
        os.chmod(target / name_of(part), 0o644)
        for old in ROOM.glob(f"__pycache__/kernels-{stamp()[:9]}*"):  # of files that have changed
            if stamp() not in old.name:
                old.unlink(missing_ok=True)
