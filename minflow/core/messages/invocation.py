"""The command line that starts minflow in this environment, for hints, pages, and `minflow doctor`.

`minflow` alone works only in an activated environment; most users start it by `uv run` or uvx, which change PATH only
for their own process. Must not import the engine; imports modules on first use.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from ..base.errors import DISTRIBUTION


def command(*words: str) -> str:
    """A command line that runs `minflow` with these arguments from the current folder.

    Uses `uv run` if uv started this process from a project, since uv also installs the dependencies of an update; uvx
    if uvx started it; else the script of this environment, by its shortest name; else `python -m minflow`.
    """
    return line(*(by_uv() or by_uvx() or by_script() or [python(), "-m", "minflow"]), *words)


def project() -> str | None:
    """The folder of the project whose environment `uv run` uses, or None if uv did not start this process."""
    top = os.path.dirname(os.path.realpath(sys.prefix))
    return top if os.environ.get("UV") and os.path.isfile(os.path.join(top, "pyproject.toml")) else None


def by_uv() -> list[str]:
    """`uv run minflow`; empty outside the project's folder, where uv would look for another project."""
    top = project()
    return [uv("uv"), "run", "minflow"] if top and found_by_uv(top) else []


def found_by_uv(top: str) -> bool:
    """True if uv, run in the current folder, finds this project: uv takes the nearest project at or above it."""
    folder, below = current(), ""
    while folder and folder != below:
        if os.path.isfile(os.path.join(folder, "pyproject.toml")):
            return folder == top
        folder, below = os.path.dirname(folder), folder
    return False


def by_uvx() -> list[str]:
    """The call of uvx, if this environment is in the cache of uvx, which may be emptied at any time; else empty."""
    cache, kind = os.path.split(os.path.dirname(sys.prefix))
    if not (
        os.environ.get("UV")
        and re.match(r"(archive|environments)-v\d", kind)
        and os.path.isfile(os.path.join(cache, "CACHEDIR.TAG"))
    ):
        return []
    return [uv("uvx"), "--from", requirement(), "minflow"]


def uv(name: str) -> str:
    """The program `uv` or `uvx`: its name if it is on PATH, else its path."""
    folder, file = os.path.split(os.environ["UV"])
    return short(os.path.join(folder, name + os.path.splitext(file)[1]), name)


def by_script() -> list[str]:
    """The script that the installation made; empty if there is none. Its name alone is used only if the PATH of the
    user's shell contains it.
    """
    import sysconfig

    name = "minflow.exe" if os.name == "nt" else "minflow"
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    places = [os.path.join(sysconfig.get_path("scripts", scheme), name) for scheme in schemes]
    there = [path for path in [*places, sys.argv[0]] if os.path.basename(path) == name and os.path.isfile(path)]
    return [short(there[0], "" if project() else name)] if there else []


def python() -> str:
    """This Python, by the shortest name that finds it. Links are not followed, since those of all environments lead to
    the same Python. `uv run` adds its environment to PATH, but the user's shell does not have it.
    """
    import shutil

    names = () if project() else ("python3", "python")
    found = next((name for name in names if shutil.which(name) == sys.executable), "")
    return found or (nearby(sys.executable) if sys.executable else "python")


def short(path: str, name: str) -> str:
    """The name of a program if PATH finds exactly this one, else its path."""
    import shutil

    found = shutil.which(name) if name else None
    if found and os.path.exists(path) and os.path.samefile(found, path):
        return name.removesuffix(".exe")
    return nearby(path)


def nearby(path: str) -> str:
    """A relative path if it is shorter, else the absolute one. Always absolute in a notebook, since the user's terminal
    is in another folder.
    """
    here = None if in_kernel() else current()
    try:
        relative = os.path.relpath(path, here) if here else ""
    except ValueError:  # another drive of Windows
        relative = ""
    if not relative or len(relative) > len(path) or relative.count("..") > 2:
        return path
    return relative if os.sep in relative else os.path.join(os.curdir, relative)


def in_kernel() -> bool:
    """True if this process runs the cells of a notebook."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return hasattr(ask() if ask else None, "kernel")


def current() -> str | None:
    """The current folder, or None if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def line(*words: str) -> str:
    """A command line for sh, PowerShell and cmd; words with special characters are quoted."""
    plain = re.compile(r"[\w./:=@+-]+" if os.name != "nt" else r"[\w./:=@+\\-]+")
    parts = [word if plain.fullmatch(word) else quoted(word) for word in words]
    return ("& " if os.name == "nt" and parts[0].startswith('"') else "") + " ".join(parts)


def quoted(word: str) -> str:
    """The word in double quotes, which all three shells accept, or quoted by shlex if sh would expand part of it."""
    import shlex

    return shlex.quote(word) if os.name != "nt" and re.search(r'["$`\\!]', word) else f'"{word}"'


# ---- the installed package, for uvx ---------------------------------------------------------------------------------


def requirement() -> str:
    """This package as a requirement for uvx, with its installed extras: the wheel, folder or URL that it was installed
    from, else its name.
    """
    import json
    from importlib import metadata
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    found = metadata.distribution(DISTRIBUTION)
    parts = [extra for extra in found.metadata.get_all("Provides-Extra") or () if has_extra(found, extra)]
    extras = f"[{','.join(parts)}]" if parts else ""
    source = json.loads(found.read_text("direct_url.json") or "{}")
    address = source.get("url", "")
    if address.startswith("file:"):
        return nearby(url2pathname(urlsplit(address).path)) + extras
    if "vcs_info" in source:
        address = f"{source['vcs_info']['vcs']}+{address}@{source['vcs_info']['commit_id']}"
    return f"{DISTRIBUTION}{extras} @ {address}" if address else DISTRIBUTION + extras


def has_extra(found: Any, extra: str) -> bool:
    """True if all packages of an extra are installed. False for an extra that only contains other extras."""
    from importlib import metadata

    names = [
        re.split(r"[^\w.-]", text, maxsplit=1)[0]
        for text in found.requires or ()
        if re.search(rf"\bextra\s*==\s*['\"]{re.escape(extra)}['\"]", text)
    ]
    installed = [any(metadata.distributions(name=name)) for name in names if name != DISTRIBUTION]
    return bool(installed) and all(installed)
