"""`python -m tests.fuzz --calls 20000 --programs 2000 --seed N`: random calls and programs, in minflow and in PyTorch.

Calls cover every public name (`calls.py`); programs are sequences of statements (`statements.py`), and functions in
four modes (`modes.py`). Returns 0 if every difference is in docs/differences.md or is a refusal of minflow; prints, and
with --out writes, each finding with a minimized program.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

import hypothesis
from hypothesis import strategies

from . import differences, modes, statements
from .calls import call_of, called_names
from .comparison import KINDS, Finding, compare_with_torch, reproduction

BAD = [kind for kind in KINDS if kind != "refused"]


def run(calls: int, seed: int, only: str = "", progress: bool = False) -> tuple[list[Finding], Counter]:
    """Return the findings that are not deliberate differences, and a count of deliberate ones by row."""
    import torch

    torch.set_num_threads(1)
    rows = differences.read()
    names = [n for n in called_names() if not only or n in only.split(",")]
    order = random.Random(seed)
    found, met = [], Counter()
    for i in range(calls):
        name = order.choice(names)
        finding = compare_with_torch(name, call_of(name, f"{seed} {i}"), torch)
        if progress and i % 1000 == 999:
            print(f"  {i + 1} calls, {len(found)} findings", file=sys.stderr, flush=True)
        if finding is None:
            continue
        row = next((row for row in rows if row.fits(finding)), None)
        if row is None:
            found.append(finding if finding.kind == "refused" else smallest(finding, rows, torch))
        else:
            met[row] += 1
    return found, met


def smallest(finding: Finding, rows: list, torch, examples: int = 300) -> Finding:
    """Smallest call of this name with this kind of fault that seeds or hypothesis find, or the finding itself.

    Hypothesis also draws constants of loaded modules, so it may find another call in another process.
    """
    least = finding

    def has_the_fault(choices) -> bool:
        nonlocal least
        other = compare_with_torch(finding.name, call_of(finding.name, choices), torch)
        if other is None or other.kind != finding.kind or any(row.fits(other) for row in rows):
            return False
        least = min(least, other, key=lambda f: sum(map(len, f.lines)))
        return True

    @hypothesis.seed(len(finding.lines))
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategies.randoms(use_true_random=False))
    def none_has_the_fault(choices):
        assert not has_the_fault(choices)

    for seed in range(examples):
        has_the_fault(seed)
    with suppress(AssertionError):
        none_has_the_fault()
    return least


def run_programs(programs: int, seed: int) -> tuple[list[Finding], list[str]]:
    """Minimized findings of programs of statements, and reports of programs that differ between modes."""
    import torch

    found, reports = [], []
    for i in range(programs):
        if finding := statements.fault(statements.draw(f"{seed} {i}"), torch):
            found.append(finding if finding.kind == "refused" else statements.minimized(finding, torch))
        program = modes.draw(f"{seed} {i}")
        if kind := modes.fault(program):
            reports.append(modes.report(program, kind))
    return found, reports


def report(finding: Finding) -> str:
    program = statements.source(finding.lines) if finding.name == "program" else reproduction(finding)
    return f"{program}\n# minflow: {finding.ours}\n# PyTorch: {finding.theirs}\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="public names, separated by commas")
    parser.add_argument("--out", type=Path, help="a folder: NAME__KIND.md for each group of findings")
    parser.add_argument("--examples", type=int, default=3, help="of each group")
    options = parser.parse_args()
    with suppress(ImportError):  # a wild size fails immediately, in both libraries
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, resource.RLIM_INFINITY))
    found, met = run(options.calls, options.seed, options.only, progress=True)
    of_programs, reports = run_programs(0 if options.only else options.programs, options.seed)
    found += of_programs
    print(*reports, sep="\n\n")
    groups = defaultdict(list)
    for finding in found:
        groups[finding.kind, finding.name].append(finding)
    for (kind, name), members in sorted(groups.items(), key=lambda g: KINDS.index(g[0][0])):
        members.sort(key=lambda f: sum(map(len, f.lines)))
        text = f"## {name}: {kind}, {len(members)} times\n\n" + "\n".join(map(report, members[: options.examples]))
        print(text)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{name}__{kind}.md").write_text(text, encoding="utf-8")
    counts = Counter(f.kind for f in found)
    print(
        f"{options.calls} calls, {options.programs} programs, seed {options.seed}:",
        ", ".join(f"{counts[k]} {k}" for k in KINDS),
        f"; {sum(met.values())} deliberate; {len(reports)} between modes",
    )
    return 1 if reports or any(counts[k] for k in BAD) else 0


if __name__ == "__main__":
    sys.exit(main())
