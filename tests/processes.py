"""Run Python programs in separate processes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.sources import TOP


def environment(*folders: Any, **settings: str) -> dict[str, str]:
    """Return this process's environment with these settings; modules are found in these folders, the checkout, and as
    here.
    """
    path = [*map(str, folders), str(TOP), str(TOP / "widgets"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)} | settings


def open_files(process: int) -> list[str]:
    """Return the paths of the files that this process keeps open. Linux only."""
    return [os.path.realpath(link) for link in Path(f"/proc/{process}/fd").iterdir()]


def python(*words: Any, cwd: Any = None, path: Any = (), **settings: str) -> subprocess.CompletedProcess:
    """Run Python with these arguments. path: folders of modules; settings: environment variables."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(*path, **settings),
    )


def output(*words: Any, **options: Any) -> str:
    """Return the output of Python with these arguments. It must succeed."""
    done = python(*words, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
