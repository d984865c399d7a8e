"""The command that starts minflow again, as it has to be typed here: for hints, pages, and `minflow doctor`.

`minflow` alone is found only in an activated environment. A learner's was most often started by `uv run` or uvx, which
change no PATH but that of their own process. Independent of the engine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from ..base.errors import DISTRIBUTION as DISTRIBUTION


def command(*words: str) -> str:
    """The command line of `minflow` with these words that works in the current folder.

    If uv started this process from a project: by uv, which also installs what an update needs; if uvx did: by uvx.
    Else the program of this environment by the shortest name that finds it, else `python -m minflow`.
    """
    return line(*(by_uv() or by_uvx() or by_script() or [python(), "-m", "minflow"]), *words)


def project() -> Path | None:
    """The folder of the project whose environment `uv run` made, or None if uv did not start this process."""
    top = Path(sys.prefix).resolve().parent
    return top if os.environ.get("UV") and (top / "pyproject.toml").is_file() else None


def by_uv() -> list[str]:
    """`uv run minflow`; empty outside of the project's folder, where uv would look for another project."""
    top = project()
    return [uv("uv"), "run", "minflow"] if top and found_by_uv(top) else []


def found_by_uv(top: Path) -> bool:
    """True if uv, run in the current folder, takes this project: the nearest above it."""
    here = current()
    above = (here, *here.parents) if here else ()
    return next((folder for folder in above if (folder / "pyproject.toml").is_file()), None) == top


def by_uvx() -> list[str]:
    """The call of uvx, which runs programs in an environment of its cache. The cache may be emptied at any time."""
    kind = Path(sys.prefix).parent
    if not (os.environ.get("UV") and re.match(r"(archive|environments)-v\d", kind.name)
            and (kind.parent / "CACHEDIR.TAG").is_file()):
        return []
    return [uv("uvx"), "--from", requirement(), "minflow"]


def uv(name: str) -> str:
    """The program `uv` or `uvx`, by its name if PATH finds it."""
    path = Path(os.environ["UV"])
    return short(path.with_name(name + path.suffix), name)


def by_script() -> list[str]:
    """The program that the installation wrote. PATH counts only as the user's shell has it."""
    name = "minflow.exe" if os.name == "nt" else "minflow"
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    places = [Path(sysconfig.get_path("scripts", scheme), name) for scheme in schemes]
    path = next((path for path in [*places, Path(sys.argv[0])] if path.name == name and path.is_file()), None)
    return [short(path, "" if project() else name)] if path else []


def python() -> str:
    """This Python, by the shortest name that finds it; links are not followed, since those of an environment all lead
    to one Python."""
    names = ("python3", "python")
    return next((name for name in names if shutil.which(name) == sys.executable), "") or nearby(Path(sys.executable))


def short(path: Path, name: str = "") -> str:
    """A program by its name if PATH finds this very one, else by its path."""
    found = shutil.which(name) if name else None
    if found and path.exists() and os.path.samefile(found, path):
        return name.removesuffix(".exe")
    return nearby(path)


def nearby(path: Path) -> str:
    """A path from the current folder if that is shorter, else the whole one."""
    here = current()
    try:
        relative = os.path.relpath(path, here) if here else ""
    except ValueError:  # another drive of Windows
        relative = ""
    if not relative or len(relative) > len(str(path)) or relative.count("..") > 2:
        return str(path)
    return relative if os.sep in relative else os.path.join(os.curdir, relative)


def current() -> Path | None:
    """The current folder; None if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def line(*words: str) -> str:
    """A command line for sh, PowerShell and cmd: words with other than plain letters are quoted."""
    plain = re.compile(r"[\w./:=@+-]+" if os.name != "nt" else r"[\w./:=@+\\-]+")
    parts = [word if plain.fullmatch(word) else quoted(word) for word in words]
    return ("& " if os.name == "nt" and parts[0].startswith('"') else "") + " ".join(parts)


def quoted(word: str) -> str:
    """In the quotes that all three shells know, unless it holds what sh would replace in them."""
    return shlex.quote(word) if os.name != "nt" and re.search(r'["$`\\!]', word) else f'"{word}"'


# ---- the installed package, for uvx ---------------------------------------------------------------------------------

def requirement() -> str:
    """This package as uvx takes it: the wheel, folder or address that it was installed from, else its name; with the
    extras that are installed."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # half of the standard library: uvx alone waits for it

    found = metadata.distribution(DISTRIBUTION)
    parts = [extra for extra in found.metadata.get_all("Provides-Extra") or () if has_extra(found, extra)]
    extras = f"[{','.join(parts)}]" if parts else ""
    source = json.loads(found.read_text("direct_url.json") or "{}")
    address = source.get("url", "")
    if address.startswith("file:"):
        return nearby(Path(url2pathname(urlsplit(address).path))) + extras
    if "vcs_info" in source:
        address = f"{source['vcs_info']['vcs']}+{address}@{source['vcs_info']['commit_id']}"
    return f"{DISTRIBUTION}{extras} @ {address}" if address else DISTRIBUTION + extras


def has_extra(found: metadata.Distribution, extra: str) -> bool:
    """True if all packages of an extra are installed; of one that only collects other extras nothing is said."""
    names = [re.match(r"[\w.-]+", text)[0] for text in found.requires or ()
             if re.search(rf"\bextra\s*==\s*['\"]{re.escape(extra)}['\"]", text)]
    installed = [any(metadata.distributions(name=name)) for name in names if name != DISTRIBUTION]
    return bool(installed) and all(installed)
