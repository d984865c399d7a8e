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
import small_ops

PROGRAMS: dict[str, Callable] = {**small_ops.PROGRAMS, **large_kernels.PROGRAMS}
AIMS = {"median": 1.0, "worst": 1.5}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def serve(library: str, name: str) -> None:
    """Run a round for each line of the input, and print its processor and wall time in seconds."""
    module = importlib.import_module(library)
    module.manual_seed(0)
    one_round = PROGRAMS[name](module)
    for _ in sys.stdin:
        start, wall = time.process_time(), time.perf_counter()
        one_round()
        print(time.process_time() - start, time.perf_counter() - wall, flush=True)


class Child:
    """A process in which one library runs a program."""

    def __init__(self, library: str, name: str, threads: int):
        limits = {key: str(threads) for key in THREADS} if threads else {}
        command = [sys.executable, __file__, name, "--serve", library]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env={**os.environ, **limits}, **pipes)

    def one_round(self) -> tuple[float, float]:
        """Processor and wall time of a round, in seconds."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(self.process.args)} failed")
        processor, wall = map(float, line.split())
        return processor, wall

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def compare(name: str, libraries: list[str], threads: int, rounds: int) -> float | None:
    """Print the times of a program. Return the ratio of processor times: the median of the paired rounds."""
    children = [Child(library, name, threads) for library in libraries]
    for child in children:
        child.one_round()
    times = [[child.one_round() for child in children] for _ in range(rounds)]
    for child in children:
        child.close()
    processor, wall = [[[pair[k] for pair in row] for row in times] for k in (0, 1)]
    line = f"  {name:16}" + "".join(f"{statistics.median(column) * 1e3:9.0f} ms" for column in zip(*processor))
    if threads != 1:
        line += "   wall" + "".join(f"{statistics.median(column) * 1e3:9.0f} ms" for column in zip(*wall))
    if len(libraries) == 1:
        print(line, flush=True)
        return None
    ratios = sorted(mine / other for mine, other in processor)
    print(f"{line}   {statistics.median(ratios):5.2f}  [{ratios[0]:.2f}, {ratios[-1]:.2f}]", flush=True)
    return statistics.median(ratios)


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
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--rounds", type=int, default=7)
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
    libraries = ["minflow", "torch"] if has_torch else ["minflow"]
    print(f"processor time of a round, median of {options.rounds}: {', '.join(libraries)}, ratio [lowest, highest]")
    ratios = [compare(name, libraries, options.threads, options.rounds) for name in names]
    if has_torch:
        middle, worst = statistics.median(ratios), max(ratios)
        print(f"\nmedian {middle:.2f}, aim {AIMS['median']}; worst {worst:.2f}, aim {AIMS['worst']}")


if __name__ == "__main__":
    main()
