"""Benchmark whole eager programs in minflow and in PyTorch: processor time of a round, and the ratio.

    python benchmarks/programs.py                    # every program, one thread
    python benchmarks/programs.py seq2seq gan        # some programs
    python benchmarks/programs.py --threads 0        # threads as each library chooses; wall time is printed, too
    python benchmarks/programs.py gpt --profile      # the functions of minflow that take longest

The programs are in `small_ops.py` and `large_kernels.py`: functions of the library. Each library runs in a process of
its own; the two take turns, round by round, so that a busy machine slows both. The first round, which fills caches, is
not counted.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import os
import pstats
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import large_kernels
import record
import small_ops
import timing
from timing import human

PROGRAMS: dict[str, Callable] = {**small_ops.PROGRAMS, **large_kernels.PROGRAMS}
PEER = "PyTorch"
AIMS = {"median": 1.0, "worst": 1.5}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def serve(library: str, name: str) -> None:
    """Run a round for each line of the input, and print its wall and processor time in seconds."""
    module = importlib.import_module(library)
    module.manual_seed(0)
    one_round = PROGRAMS[name](module)
    for _ in sys.stdin:
        start, wall = time.process_time(), time.perf_counter()
        one_round()
        print(time.perf_counter() - wall, time.process_time() - start, flush=True)


class Child:
    """A process in which one library runs a program."""

    def __init__(self, library: str, name: str, threads: int):
        limits = {key: str(threads) for key in THREADS} if threads else {}
        command = [sys.executable, __file__, name, "--serve", library]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env={**os.environ, **limits}, **pipes)

    def one_round(self) -> tuple[float, float]:
        """Wall and processor time of a round, in seconds."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(self.process.args)} failed")
        wall, processor = map(float, line.split())
        return wall, processor

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def compare(run: record.Run, name: str, libraries: dict[str, str], threads: int, rounds: int) -> float | None:
    """Time a program. Return the ratio of processor times: the median of the paired rounds."""
    children = [Child(module, name, threads) for module in libraries.values()]
    for child in children:
        child.one_round()
    times: dict[str, list] = {library: [] for library in libraries}
    for _ in range(rounds):
        for library, child in zip(libraries, children):
            times[library].append(child.one_round())
    for child in children:
        child.close()
    peer = PEER if PEER in times else None
    row = run.add(name=name, threads=threads, **timing.figures(times, "minflow", peer))
    line = f"  {name:16} processors {human(row['processors']):>8}   wall {human(row['seconds']):>8}"
    if peer:
        line += (
            f"   PyTorch {human(row['peer_seconds']):>8}   ratio of processors {timing.shown(row['processors_ratio'])}"
        )
    print(line, flush=True)
    return row["processors_ratio"][1] if peer else None


def profile(name: str, rounds: int) -> None:
    """Print the functions that take longest in minflow, after a first round."""
    import minflow as flow

    flow.manual_seed(0)
    one_round = PROGRAMS[name](flow)
    one_round()
    with cProfile.Profile() as profiler:
        for _ in range(rounds):
            one_round()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


def main() -> None:
    parser = record.parser(__doc__, rounds=7)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--threads", type=int, default=1, help="of each library; 0: as it chooses")
    parser.add_argument("--profile", action="store_true", help="profile minflow instead")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.names) - PROGRAMS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    names = options.names or list(PROGRAMS)
    if options.serve:
        serve(options.serve, names[0])
        return
    if options.profile:
        for name in names:
            profile(name, options.rounds)
        return
    has_torch = importlib.util.find_spec("torch") is not None
    libraries = {"minflow": "minflow", PEER: "torch"} if has_torch else {"minflow": "minflow"}
    run = record.Run("programs", options)
    run.say("median time of a round, and minflow / PyTorch: median [quartiles]")
    ratios = [compare(run, name, libraries, options.threads, options.rounds) for name in names]
    if has_torch:
        middle, worst = statistics.median(ratios), max(ratios)
        print(f"\nmedian {middle:.2f}, aim {AIMS['median']}; worst {worst:.2f}, aim {AIMS['worst']}")
    run.finish()


if __name__ == "__main__":
    main()
