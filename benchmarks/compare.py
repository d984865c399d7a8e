"""Compare the speed of two commits: exit status 1 if one of the measurements became more than 5 % slower.

    python benchmarks/compare.py main HEAD                 # about five minutes on an idle core
    python benchmarks/compare.py HEAD .                    # a folder: its working tree
    python benchmarks/compare.py main HEAD --only graph    # those whose names contain one of the words
    python benchmarks/compare.py main HEAD --limit 3 --rounds 20

The files of both commits are written to a temporary folder. In each round, two new processes with one thread, one of
each commit, take turns in each measurement: A B B A, in the next round B A A B, ... A figure is processor time, which
other programs hardly change: the fastest run in the process. The ratio of a measurement is the median of B / A over the
rounds, and its interval is between the k-th smallest and the k-th largest ratio, where k is the largest number for
which the interval contains the true median with a probability of at least 95 %, whatever the noise.

A measurement is *slower* if the whole interval is above the limit, *faster* if it is below 1, *equal* if it is below
the limit, otherwise *unclear*: more rounds make the interval narrower. Only *slower* gives exit status 1; a commit that
does not exist or cannot run gives 2.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import record
from timing import human

LIMIT, ROUNDS, FEWEST_ROUNDS = 5.0, 12, 6  # percent; an interval of 95 % needs six ratios
BUDGET, BURST, FEWEST_RUNS = 0.15, 3e-4, 3  # seconds of a step in a process, and of short steps between two readings
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MINFLOW_THREADS"), "1")


# ---- statistics ------------------------------------------------------------------------------------------------------


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The median of at least six ratios between the ends of its interval of 95 %, which assumes no distribution.

    The true median is below the k-th smallest of n ratios with the probability that a coin falls heads fewer than k
    times in n throws.
    """
    n, order, outside, k = len(ratios), sorted(ratios), 2 * 0.5 ** len(ratios), 1
    while (outside := outside + 2 * math.comb(n, k) * 0.5**n) <= 0.05:
        k += 1
    return order[k - 1], statistics.median(order), order[n - k]


def verdict(low: float, high: float, limit: float) -> str:
    """ "slower", "faster", "equal" or "unclear", by the ends of the interval of B / A. limit: percent."""
    if low > 1 + limit / 100:
        return "slower"
    if high < 1:
        return "faster"
    return "equal" if high <= 1 + limit / 100 else "unclear"


# ---- in the process of a checkout ------------------------------------------------------------------------------------


def load_measurements(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("chosen_measurements", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def selected(measurements: ModuleType, words: list[str]) -> dict[str, tuple[Callable, bool]]:
    """name -> (function that prepares, True if the step runs once), for names that contain one of the words."""
    every = [(measurements.FIRST_CALLS, True), (measurements.STEPS, False)]
    found = {name: (prepare, once) for group, once in every for name, prepare in group.items()}
    return {name: entry for name, entry in found.items() if not words or any(word in name for word in words)}


def spent(step: Callable[[], Any], runs: int = 1) -> float:
    """Processor time of a run, in seconds."""
    start = time.process_time()
    for _ in range(runs):
        step()
    return (time.process_time() - start) / runs


def shortest(step: Callable[[], Any]) -> float:
    """Processor time of the fastest run."""
    step()
    runs = max(1, math.ceil(BURST / max(spent(step), 1e-7)))
    times, end = [], time.process_time() + BUDGET
    while len(times) < FEWEST_RUNS or time.process_time() < end:
        times.append(spent(step, runs))
    return min(times)


def serve(measurements: ModuleType) -> None:
    """For each name in the input, print the figure of this measurement as JSON: seconds, or why it cannot run."""
    chosen, steps = selected(measurements, []), {}
    for line in sys.stdin:
        name = line.rstrip("\n")
        prepare, once = chosen[name]
        try:
            steps[name] = steps.get(name) or prepare()
            found: float | str = spent(steps[name]) if once else shortest(steps[name])
        except Exception as error:  # a name that one of the commits does not have: reported by the parent
            found = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:140]}"
        print(json.dumps(found), flush=True)


# ---- in the parent process -------------------------------------------------------------------------------------------


def fail(message: str) -> NoReturn:
    """Exit with status 2: nothing was compared."""
    print(message, file=sys.stderr)
    sys.exit(2)


def checkout(name: str, folder: Path) -> Path:
    """The folder of this name, or the files of this commit, written to `folder`."""
    if Path(name).is_dir():
        return Path(name).resolve()
    done = subprocess.run(["git", "archive", "--format=zip", name], capture_output=True)
    if done.returncode:
        fail(f"{name!r} is neither a folder nor a commit of this repository: {done.stderr.decode().strip()}")
    with zipfile.ZipFile(io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder)
    return folder


class Child:
    """Python with one thread and the modules of a checkout; its output can be read line by line."""

    def __init__(self, place: Path, *words: Any, **settings: str):
        settings = {**THREADS, "PYTHONPATH": os.fspath(place), "PYTHONDONTWRITEBYTECODE": "", **settings}
        self.what = f"{place}: python {' '.join(map(str, words))}"
        self.process = subprocess.Popen(
            [sys.executable, *map(str, words)],
            env={**os.environ, **settings},
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            self.process.kill()
        self.process.communicate()
        if kind is None and self.process.returncode:
            fail(f"failed in {self.what}")

    def ask(self, name: str) -> float | str:
        """The figure of a measurement, or why it cannot run."""
        with contextlib.suppress(BrokenPipeError):  # then there is no answer
            self.process.stdin.write(f"{name}\n")
            self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or fail(f"no answer of {self.what} to {name!r}"))


def measure(
    places: list[Path], names: dict[str, tuple[Callable, bool]], options: argparse.Namespace, **settings: str
) -> dict[str, list[tuple[float, float]]]:
    """name -> (seconds of A, of B) of each round. Measurements that fail in one of them are printed and left out."""
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    words = [__file__, "--serve", options.measurements.resolve()]
    for index in range(options.rounds):
        order = (0, 1) if index % 2 == 0 else (1, 0)
        settings["PYTHONHASHSEED"] = str(index)
        with Child(places[0], *words, **settings) as a, Child(places[1], *words, **settings) as b:
            for name in [*pairs]:
                found: list[list[Any]] = [[], []]
                for which in order if names[name][1] else (*order, *order[::-1]):
                    found[which].append((a, b)[which].ask(name))
                failed = [f"{x}: {said}" for x, one in zip("AB", found) for said in one[-1:] if isinstance(said, str)]
                if failed:
                    print(f"  {name:26} not compared: {'; '.join(failed)}")
                    del pairs[name]
                else:
                    pairs[name].append((min(found[0]), min(found[1])))
    return pairs


def report(run: record.Run, pairs: dict[str, list[tuple[float, float]]], limit: float) -> list[str]:
    """Print a line for each measurement. Return the names of those that are slower."""
    slower = []
    for name, times in pairs.items():
        low, middle, high = interval([after / before for before, after in times])
        first, second = (statistics.median(column) for column in zip(*times))
        said = verdict(low, high, limit)
        facts = {"samples": len(times), "processors": second, "peer_processors": first, "verdict": said}
        run.add(name=name, contestant="B", peer="A", interval=[low, middle, high], **facts)
        print(f"  {name:26}{human(first):>10}{human(second):>10}   {middle:6.3f} [{low:.3f}, {high:.3f}]   {said}")
        slower += [name] * (said == "slower")
    return slower


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = record.parser(__doc__, rounds=ROUNDS)
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="two commits or folders, the older one first")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="measurements that contain a word")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"percent (default {LIMIT:g})")
    parser.add_argument("--measurements", type=Path, default=record.FOLDER / "measurements.py", metavar="FILE")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)  # the file of measurements
    options = parser.parse_args(words)
    if not options.serve and (len(options.commits) != 2 or options.rounds < FEWEST_ROUNDS):
        parser.error(f"two commits and at least {FEWEST_ROUNDS} rounds are needed")
    return options


def main() -> int:
    options = parse()
    if options.serve:
        serve(load_measurements(options.serve))
        return 0
    measurements = load_measurements(options.measurements)
    names = selected(measurements, options.only)
    if not names:
        fail(f"no measurement contains {' or '.join(options.only)}: {', '.join(selected(measurements, []))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the temporary folder is removed then, too
    run = record.Run("compare", options)
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        places = [checkout(name, Path(folder, x)) for x, name in zip("AB", options.commits)]
        kernels = os.environ.get("MINFLOW_KERNELS", str(Path(folder, "kernels")))
        if measurements.PREPARE:
            for place in places:
                with Child(place, *measurements.PREPARE, MINFLOW_KERNELS=kernels):
                    pass  # until it ends
        run.say(f"processor time of A = {options.commits[0]} and B = {options.commits[1]}, B / A [95 % interval]")
        slower = report(run, measure(places, names, options, MINFLOW_KERNELS=kernels), options.limit)
    run.finish()
    print(f"more than {options.limit:g} % slower: {', '.join(slower) or 'none'}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
