"""What tests share: golden texts, and warnings as errors except those that are not ours."""

import os
from pathlib import Path

import pytest

# Before numpy is loaded, here and in the kernels of notebooks: threads that wait for taken cores make tests slow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MINFLOW_LIVE", "0")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/*.txt; then review the diff")


@pytest.fixture
def golden(request):
    """`golden("tape_small", text)` compares with tests/golden/tape_small.txt, or rewrites it with --update-golden."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / f"{name.removesuffix('.txt')}.txt"
        text = text.rstrip("\n") + "\n"
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if not file.exists():
            pytest.fail(f"{file.name} does not exist: write it with --update-golden, then review it. Got:\n{text}")
        assert text == file.read_text(encoding="utf-8"), f"differs from {file.name}; --update-golden rewrites it"

    return check
