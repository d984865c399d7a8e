"""Measure how many small faults the tests find.

`python -m tests.mutation_testing` plants random faults, seeded, and prints which were caught and by which test;
`--help` lists its options.

A mutant is the source with one change: another operator, another bound, a number increased by one, a removed statement.
The short test command runs once, in a clone, with a probe at each place that records the tests that reach it. Then each
mutant is run against these tests, those that reach the fewest other mutants first, until one fails. A test that also
fails without a mutant does not count.

A test that only sees a value from a cache that an earlier test has filled is not known to reach the mutant. If only
such a test would find a mutant, the mutant counts as missed.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

TOP = Path(__file__).parents[1]
PACKAGES = ("core", "compiler", "introspection", "platforms", "nn", "optim", "job", "io")
SIGNS = {ast.Add: "-", ast.Sub: "+"}
BOUNDS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
DROPPED = (ast.Expr, ast.AugAssign, ast.Raise, ast.Delete, ast.Assign)
# Nested functions; texts, whose positions Python 3.11 does not know; types.
APART = (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.JoinedStr, ast.Match, ast.AnnAssign)
ITEMS, REPORT = "MUTATION_ITEMS", "MUTATION_REPORT"  # what the plugin below reads and writes
PROBE = """import os
FOLDER, SEEN = {folder!r}, set()
def reach(number):
    pair = number, os.environ.get("PYTEST_CURRENT_TEST", "")
    if pair not in SEEN:
        SEEN.add(pair)
        with open(os.path.join(FOLDER, str(os.getpid())), "a") as file:
            file.write(f"{{number}} {{pair[1]}}\\n")
"""
MEMORY = 12 << 30  # address space of a test run, in bytes
PROCESSOR, PATIENCE = 60.0, 300.0  # seconds for a mutant's tests, plus four times their time without it


class Mutant(NamedTuple):
    """One change of one file. Positions are byte offsets."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    new: str
    probe: tuple[int, int] | None  # evaluates it; None if compiled code would have to call the probe

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {' '.join(self.kind.split())[:80]}"


def candidates(file: Path, top: Path) -> Iterator[Mutant]:
    """Return all mutants of a file."""
    source = file.read_bytes()
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    name = file.relative_to(top).as_posix()

    def place(node: Any) -> tuple[int, int]:
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset

    def text(node: Any) -> str:
        return source[slice(*place(node))].decode()

    def inside(function: ast.FunctionDef, compiled: bool) -> Iterator[Mutant]:
        stack: list[ast.AST] = [*function.body]
        while stack:
            node = stack.pop()
            if isinstance(node, APART):
                continue
            stack += ast.iter_child_nodes(node)
            yield from changes(node, compiled)

    def changes(node: Any, compiled: bool) -> Iterator[Mutant]:
        probe = None if compiled or not hasattr(node, "lineno") else place(node)
        if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
            if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
                return
            start, end = place(node.left)[1], place(node.right)[0]
            sign = source.find(b"+" if isinstance(node.op, ast.Add) else b"-", start, end)
            new = SIGNS[type(node.op)]
            yield Mutant(name, node.lineno, f"{new} in {text(node)}", sign, sign + 1, new, probe)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            start = place(node)[0]
            yield Mutant(name, node.lineno, f"no minus in {text(node)}", start, start + 1, "+", probe)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in BOUNDS:
            start, end = place(node.left)[1], place(node.comparators[0])[0]
            new = BOUNDS[type(node.ops[0])]
            yield Mutant(name, node.lineno, f"{new} in {text(node)}", start, end, f" {new} ", probe)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield Mutant(name, node.lineno, f"{node.value} + 1", *place(node), str(node.value + 1), probe)
        elif isinstance(node, DROPPED) and droppable(node):
            start, end = place(node)
            here = None if compiled else (start, start)
            rest = "\\\n" * (node.end_lineno - node.lineno)
            yield Mutant(name, node.lineno, f"without {text(node)}", start, end, f"pass{rest}", here)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            yield from inside(node, compiled=name.startswith("minflow/platforms/compiled/"))


def droppable(node: Any) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):  # a missing plain name would be found at once
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return True


def chosen(count: int, seed: int, only: str = "", top: Path = TOP) -> list[Mutant]:
    """Choose `count` mutants on different lines, with all kinds equally often."""
    kinds: dict[str, list[Mutant]] = collections.defaultdict(list)
    for package in PACKAGES:
        for file in sorted((top / "minflow" / package).rglob("*.py")):
            for mutant in candidates(file, top) if only in file.relative_to(top).as_posix() else ():
                what = mutant.kind
                kind = (
                    "line"
                    if what.startswith("without ")
                    else "one"
                    if what.endswith(" + 1")
                    else "sign"
                    if what[:2] in ("+ ", "- ", "no")
                    else "bound"
                )
                kinds[kind].append(mutant)
    chances = random.Random(seed)
    for some in kinds.values():
        chances.shuffle(some)
    taken, result = set(), []
    while len(result) < count and any(kinds.values()):
        for some in map(kinds.__getitem__, ("line", "one", "sign", "bound")):
            while some:
                mutant = some.pop()
                if (mutant.file, mutant.line) not in taken:
                    taken.add((mutant.file, mutant.line))
                    result.append(mutant)
                    break
    return result[:count]


def plant(mutant: Mutant, top: Path) -> bytes:
    """Write the change. Return the previous content."""
    file = top / mutant.file
    source = file.read_bytes()
    write(file, source[: mutant.start] + mutant.new.encode() + source[mutant.end :])
    return source


stamps = iter(range(int(time.time()) - 10_000_000, 1 << 40))


def write(file: Path, data: bytes) -> None:
    """Write a file with a new mtime: Python takes a file of the same second and size for the compiled one."""
    file.write_bytes(data)
    stamp = next(stamps)
    os.utime(file, (stamp, stamp))


def probe(mutants: list[Mutant], top: Path, folder: Path) -> None:
    """Insert code that reports each place as reached."""
    (top / "mutation_probe.py").write_text(PROBE.format(folder=str(folder)))
    edits: dict[str, list[tuple[int, bytes]]] = collections.defaultdict(list)
    for number, mutant in enumerate(mutants):
        if mutant.probe:
            (start, end), call = mutant.probe, f"__import__('mutation_probe').reach({number})"
            if start == end:
                edits[mutant.file].append((start, f"{call}; ".encode()))
            else:
                edits[mutant.file] += [(start, f"({call} or ".encode()), (end, b")")]
    for name, places in edits.items():
        source = (top / name).read_bytes()
        for where, text in sorted(places, key=lambda one: one[0], reverse=True):
            source = source[:where] + text + source[where:]
        write(top / name, source)


# As a plugin of pytest (-p tests.mutation_testing): runs only the chosen items, and writes their outcomes.


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if path := os.environ.get(ITEMS):
        wanted = {name: place for place, name in enumerate(json.loads(Path(path).read_text()))}
        files = {}
        for name, where in wanted.items():
            files.setdefault(name.partition("::")[0], where)
        mine = [item for item in items if item.nodeid in wanted]
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
        items[:] = sorted(mine, key=lambda item: files[item.nodeid.partition("::")[0]])


def pytest_runtest_logreport(report: Any) -> None:
    if (path := os.environ.get(REPORT)) and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(path, "a") as file:
            file.write(json.dumps([report.nodeid, report.when, report.outcome, report.duration]) + "\n")


def pytest_collectreport(report: Any) -> None:
    if report.failed and (path := os.environ.get(REPORT)):
        with open(path, "a") as file:
            file.write(json.dumps([report.nodeid, "collect", "failed", 0.0]) + "\n")


def limit(seconds: float | None) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))


def run(
    top: Path, arguments: list[str], report: Path, items: Path | None = None, seconds: float | None = None
) -> tuple[int | None, list[list[Any]]]:
    """Run pytest in a clone. Return its exit status and its report.

    It ends after PROCESSOR and `seconds` of CPU time, and after PATIENCE and `seconds` of real time: the status is then
    negative or None.
    """
    report.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{top}{os.pathsep}{top / 'widgets'}",
        REPORT: str(report),
        "PYTHONHASHSEED": "0",
    }
    environment.pop(ITEMS, None)
    if items:
        environment[ITEMS] = str(items)
    with open(report.with_suffix(".log"), "w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "tests.mutation_testing", "-q", "--tb=line", *arguments],
            cwd=top,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=lambda: limit(None if seconds is None else PROCESSOR + seconds),
        )
        status: int | None
        try:
            status = process.wait(None if seconds is None else PATIENCE + seconds)
        except subprocess.TimeoutExpired:
            status = None
        with_children(process.pid)
        process.wait()
    lines = report.read_text().splitlines() if report.exists() else []
    return status, [json.loads(line) for line in lines]


def with_children(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def clone(folder: Path, name: str) -> Path:
    """Copy the checkout with its uncommitted changes. Remove a mutant that a killed run has left there."""
    top = folder / name
    if top.exists():
        subprocess.run(["git", "checkout", "-q", "."], cwd=top, check=True)
    else:
        subprocess.run(["git", "clone", "-q", str(TOP), str(top)], check=True)
    changed = ["git", "ls-files", "-mo", "--exclude-standard"]
    for name in subprocess.check_output(changed, cwd=TOP, text=True).splitlines():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(TOP / name, top / name)
    return top


def measure_reach(mutants: list[Mutant], folder: Path, tests: list[str]) -> dict[str, Any]:
    """Run the short command, or these tests, with probes. Return which tests reach which mutant, and the time of each
    test.
    """
    hits = folder / "hits"
    shutil.rmtree(hits, ignore_errors=True)
    shutil.rmtree(folder / "probed", ignore_errors=True)
    hits.mkdir(parents=True)
    top = clone(folder, "probed")
    probe(mutants, top, hits)
    started = time.time()
    _, lines = run(top, tests, folder / "probed.jsonl")
    seconds: dict[str, float] = collections.defaultdict(float)
    for name, _, _, took in lines:
        seconds[name] += took
    reach: list[set[str]] = [set() for _ in mutants]
    everywhere = set()
    for file in hits.iterdir():
        for line in file.read_text().splitlines():
            number, _, test = line.partition(" ")
            name, _, phase = test.rpartition(" (")
            if not test:
                everywhere.add(int(number))  # while modules are imported
            elif phase == "call)" and not name.partition("::")[0].endswith(".ipynb"):
                reach[int(number)].add(name)
            else:  # a fixture serves several tests; cells need those before them
                here = name.partition("::")[0] + "::"
                reach[int(number)] |= {one for one in seconds if one.startswith(here)}
    for number in {*everywhere, *(n for n, mutant in enumerate(mutants) if not mutant.probe)}:
        package = mutants[number].file.split("/")[1]
        reach[number] |= {name for name in seconds if name.startswith(f"tests/{package}/")}
    return {"took": time.time() - started, "seconds": dict(seconds), "reach": [sorted(one) for one in reach]}


class Trial:
    """The mutants of a folder with their results. A run continues where the previous one ended."""

    def __init__(self, mutants: list[Mutant], folder: Path, tests: list[str]) -> None:
        self.mutants, self.folder = mutants, folder
        known = folder / "reach.json"
        if not known.exists():
            known.write_text(json.dumps(measure_reach(mutants, folder, tests)))
        reach = json.loads(known.read_text())
        self.seconds: dict[str, float] = reach["seconds"]
        # Tests that run other tests elsewhere cannot be selected here.
        self.reach = [[name for name in tests if name in self.seconds] for tests in reach["reach"]]
        self.shared = collections.Counter(name for tests in self.reach for name in tests)
        self.untrusted: set[str] = set()  # tests that fail without a mutant
        self.file = folder / "results.json"
        old = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.results: dict[int, dict[str, Any]] = {int(number): result for number, result in old.items()}
        self.lock = threading.Lock()

    def run(self, workers: int) -> None:
        """Judge the mutants without a result, until no result depends on a test that fails anyway."""
        while waiting := [number for number in range(len(self.mutants)) if number not in self.results]:
            threads = [
                threading.Thread(target=self.work, args=(clone(self.folder, f"worker{i}"), waiting))
                for i in range(workers)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.drop_untrusted()

    def work(self, top: Path, waiting: list[int]) -> None:
        while True:
            with self.lock:
                if not waiting:
                    return
                number = waiting.pop(0)
            result = self.judge(number, top)
            with self.lock:
                self.results[number] = result
                self.file.write_text(json.dumps(self.results, indent=1))
                print(len(self.results), result["mutant"], "<-", result["caught by"] or "MISSED", flush=True)

    def judge(self, number: int, top: Path) -> dict[str, Any]:
        """Run the tests that reach a mutant until one of them fails."""
        mutant, tests = self.mutants[number], [name for name in self.reach[number] if name not in self.untrusted]
        result: dict[str, Any] = {"mutant": str(mutant), "reached by": len(tests), "caught by": None}
        if not tests:
            return result
        best: dict[str, int] = {}
        for name in tests:
            file = file_of(name)
            best[file] = min(best.get(file, 1 << 30), self.shared[name])
        tests.sort(key=lambda name: (best[file_of(name)], file_of(name)))
        before = plant(mutant, top)
        started = time.time()
        try:
            status, lines = self.run_tests(tests, top, ["-x"], 4 * sum(map(self.seconds.__getitem__, tests)))
        finally:
            write(top / mutant.file, before)
        if status == 5 or not all((top / file_of(name)).exists() for name in tests):
            raise RuntimeError(f"found none of the tests that reach {mutant}: remove {self.folder}, and begin again")
        if status != 0:
            how = "it does not end" if status is None or status < 0 else f"pytest ended with {status}"
            failed = [name for name, _, outcome, _ in lines if outcome == "failed"]
            result["caught by"] = failed[0] if failed else f"({how}, after {lines[-1][0] if lines else 'nothing'})"
        result["took"] = time.time() - started
        return result

    def run_tests(
        self,
        tests: list[str],
        top: Path,
        options: list[str],
        seconds: float | None = None,
    ) -> tuple[int | None, list[list[Any]]]:
        items = self.folder / f"items-{top.name}.json"
        items.write_text(json.dumps(tests))
        files = dict.fromkeys(map(file_of, tests))
        return run(top, ["-n", "0", *options, *files], self.folder / f"report-{top.name}.jsonl", items, seconds)

    def drop_untrusted(self) -> None:
        """Run the tests that caught a mutant without it. Drop the results of those that fail."""
        names = sorted({one["caught by"] for one in self.results.values() if "::" in (one["caught by"] or "(")})
        _, lines = self.run_tests([name for name in names if name[0] != "("], clone(self.folder, "worker0"), [])
        wrong = {name for name, _, outcome, _ in lines if outcome == "failed"} - self.untrusted
        self.untrusted |= wrong
        self.results = {number: one for number, one in self.results.items() if one["caught by"] not in wrong}

    def __str__(self) -> str:
        caught = [one["caught by"] for one in self.results.values() if one["caught by"]]
        missed = [one["mutant"] for _, one in sorted(self.results.items()) if not one["caught by"]]
        files = collections.Counter(map(file_of, caught)).most_common()
        return "\n".join(
            [
                f"{len(caught)} of {len(self.results)} mutants are caught; missed:",
                *missed,
                "",
                "by the tests of",
                *(f"{count:5} {file}" for file, count in files),
            ]
        )


def file_of(name: str) -> str:
    return name.partition("::")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", help="files and folders of tests (all of the short command)")
    parser.add_argument("--count", type=int, default=200, help="mutants (200)")
    parser.add_argument("--seed", type=int, default=29, help="which ones (29)")
    parser.add_argument("--only", default="", help="of files whose names contain this")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=TOP / "build" / "mutation", help="clones and results")
    parser.add_argument("--list", action="store_true", help="print the mutants, and end")
    options = parser.parse_args()
    mutants = chosen(options.count, options.seed, options.only)
    if options.list:
        print(*mutants, sep="\n")
        return
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    trial = Trial(mutants, folder, options.tests)
    trial.run(options.workers)
    print(f"\n{trial}")


if __name__ == "__main__":
    main()
