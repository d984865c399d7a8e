"""mypy's errors by package, which may only fall: `python -m tests.type_errors`, a step of `.ci/run lint`.

A package that is not in LIMITS has no errors. Lower a limit after you have corrected types: the counts are printed.
"""

import collections
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parent.parent
LIMITS = {
    "minflow": 3,
    "minflow/compat": 3,
    "minflow/compiler": 16,
    "minflow/core": 46,
    "minflow/core/base": 2,
    "minflow/core/files": 2,
    "minflow/core/grad": 6,
    "minflow/core/messages": 5,
    "minflow/core/ops": 72,
    "minflow/deploy": 6,
    "minflow/diagnosis": 12,
    "minflow/exercises": 37,
    "minflow/introspection": 22,
    "minflow/onnx": 3,
    "minflow/platforms": 56,
    "minflow/views": 49,
    "minflow/vision": 17,
}


def package_of(path: str) -> str:
    """The package of a source file: "minflow/nn", in core "minflow/core/ops"; for single files the one around them."""
    parts = path.replace("\\", "/").split("/")[:-1]
    return "/".join(parts[: 3 if parts[:2] == ["minflow", "core"] else 2])


def count_errors(report: str) -> collections.Counter[str]:
    """Number of errors per package in a report of mypy."""
    return collections.Counter(map(package_of, re.findall(r"^([^:\n]+):\d+: error: ", report, re.MULTILINE)))


def main() -> int:
    command = [sys.executable, "-m", "mypy", "minflow", "widgets/minflow_widgets"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
    if done.returncode not in (0, 1):  # not a report
        print(done.stdout + done.stderr, file=sys.stderr)
        return done.returncode
    counts = count_errors(done.stdout)
    risen = [name for name in sorted(counts) if counts[name] > LIMITS.get(name, 0)]
    for name in sorted({*counts, *LIMITS}):
        print(f"{counts[name]:5} of {LIMITS.get(name, 0):5}  {name}{'  <- more than before' if name in risen else ''}")
    for line in done.stdout.splitlines():
        if ": error: " in line and package_of(line.partition(":")[0]) in risen:
            print(line, file=sys.stderr)
    return 1 if risen else 0


if __name__ == "__main__":
    sys.exit(main())
