"""What tests share: golden texts, and a seed, so that a test that fails fails again."""

import os
from pathlib import Path

import pytest

# Before numpy is loaded, here and in the kernels of notebooks: threads that wait for taken cores make tests slow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MINFLOW_LIVE", "0")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/*.txt; then review the diff")
    parser.addoption(
        "--seed", type=int, default=0, help="of each test's random numbers; others find what holds for one alone"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before the fixtures of the test, also those of its module."""
    import minflow

    minflow.manual_seed(item.config.getoption("--seed"))


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
