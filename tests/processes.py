"""Programs of Python that tests run in processes of their own."""

import os
import subprocess
import sys
from typing import Any

from tests.sources import TOP


def environment(*folders: Any, **settings: str) -> dict[str, str]:
    """That of this process, with these settings; modules are found in these folders, in the checkout, and as here."""
    path = [*map(str, folders), str(TOP), str(TOP / "widgets"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)} | settings


def python(*words: Any, cwd: Any = None, path: Any = (), **settings: str) -> subprocess.CompletedProcess:
    """Run Python with these words. path: folders of modules; settings: of its environment."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(*path, **settings),
    )


def output(*words: Any, **options: Any) -> str:
    """What Python prints with these words. It must succeed."""
    done = python(*words, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
