"""`python -m tests.oracle.record`: run the cases of every public name in PyTorch and record the results.

    python -m tests.oracle.record                 all names
    python -m tests.oracle.record --only add,mul  these names, keeping the others
    python -m tests.oracle.record --families      the programs of `families.py`
    python -m tests.oracle.record --check         compare the record with PyTorch's results here, writing nothing

The cases of a name cover the kinks (0, -0, ties, saturation, infinities, NaN), the dtypes, shapes without elements or
axes, and arrays that are not contiguous; other arguments are drawn as the fuzzer draws them.
"""

from __future__ import annotations

import argparse
import re
import sys

import numpy as np

from tests.fuzz.calls import RANDOM, call_of, called_names
from tests.fuzz.comparison import Outcome, close, differs, in_double, limited, text
from tests.fuzz.draw import DTYPES

from . import families, signatures, store

PROFILES = "plain kinks ties edges infinite saturated unit large zeros".split()
KINKS = [{"profile": p, "dtype": "float32"} for p in [*PROFILES, "one nan"]]
TYPES = [{"dtype": d, "profile": "small" if "int" in d else "plain"} for d in dict.fromkeys(DTYPES)]
SHAPES = [{"shape": s, "dtype": "float32", "profile": "plain"} for s in ((), (0,), (0, 3), (2, 3))]
LAYOUTS = [{"layout": x, "dtype": "float32", "profile": "plain"} for x in ("turned", "strided")]
SETTINGS = [*KINKS, *TYPES, *SHAPES, *LAYOUTS]
FEWER = [*KINKS[1:6:2], *TYPES, SHAPES[0], SHAPES[1], LAYOUTS[0]]  # of a method: a single line calls its function
REPEATS = {"F": 3, "nn": 3, "optim": 2}  # programs per setting, for calls with many options
TRIES = 8  # seeds per setting, until PyTorch accepts the call; otherwise its refusal is the case


def settings_of(name: str) -> list[dict]:
    return FEWER if name.startswith("Tensor.") else SETTINGS


def error_texts(outcome: Outcome) -> Outcome:
    """Errors as short texts."""
    short = lambda e: None if e is None else text(e)[:160]
    return outcome._replace(error=short(outcome.error), grad_error=short(outcome.grad_error))


def inexact(outcome: Outcome, double: Outcome) -> bool:
    """True if PyTorch's result is so far from double precision that a different one may be as good."""

    def far(a, b) -> bool:
        if isinstance(a, list) and isinstance(b, list):
            return any(far(x, y) for x, y in zip(a, b))
        both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype.kind == "f"
        with np.errstate(over="ignore"):
            return both and not close(a, b.astype(a.dtype))

    return any(
        far(mine[k], yours.get(k))
        for mine, yours in ((outcome.seen, double.seen), (outcome.grads, double.grads))
        for k in mine
    )


def blank(x):
    return [blank(i) for i in x] if isinstance(x, list) else np.zeros_like(x) if hasattr(x, "shape") else x


def case_of(name: str, lines: list[str], torch) -> dict:
    outcome = error_texts(limited(torch, lines))
    if name in RANDOM:  # random results: compare only shapes and dtypes
        outcome = outcome._replace(seen={k: blank(v) for k, v in outcome.seen.items()}, grads={})
    case = {"p": lines, **store.pack(outcome)}
    if outcome.error is None and name not in RANDOM:
        double = in_double(lines, torch)
        if double.error is None and inexact(outcome, double):
            case["t"] = store.pack(error_texts(double))
    return case


def cases_of(name: str, torch) -> list[dict]:
    cases, seen = [], set()
    settings = settings_of(name) * REPEATS.get(name.partition(".")[0], 1)
    for i, setting in enumerate(settings):
        for seed in range(TRIES):
            lines = call_of(name, f"oracle {i} {seed}", valid=True, grad=True, **setting)
            if limited(torch, lines).error is None:
                break
        if tuple(lines) not in seen:
            seen.add(tuple(lines))
            cases.append(case_of(name, lines, torch))
    return cases


def family_case(name: str, lines: list[str], torch) -> dict:
    outcome = error_texts(limited(torch, lines))
    if name in RANDOM:
        outcome = outcome._replace(seen={k: blank(v) for k, v in outcome.seen.items()}, grads={})
    return {"n": name, "p": lines, **store.pack(outcome)}


def family_cases(torch) -> dict[str, list[dict]]:
    """Dictionary from family to its cases. For writes, the first call of each name that has a gradient; "w" is the
    index of a case's program, 0 for the one without a write.
    """
    cases = {name: [family_case(*program, torch) for program in make()] for name, make in families.FAMILIES.items()}
    cases["writes"], done = [], set()
    for name, programs in families.writes():
        if name not in done:
            first = family_case(name, programs[0], torch)
            if any(first.get("g", {}).values()) and not {"e", "b"} & first.keys():
                done.add(name)
                rest = [family_case(name, program, torch) for program in programs[1:]]
                cases["writes"] += [case | {"w": i} for i, case in enumerate([first, *rest])]
    return cases


def agrees(name: str, one: Outcome, other: Outcome) -> bool:
    """True if the other outcome has each result of this one."""
    return not any(
        differs(b.get(k), v, name in RANDOM, 0.0)
        for a, b in ((one.seen, other.seen), (one.grads, other.grads))
        for k, v in a.items()
        if v is not None
    )


def equally_accurate(was: Outcome, now: Outcome, double: Outcome) -> bool:
    """True if the record is as accurate as PyTorch's result here, on a processor that rounds differently. If values
    cancel, both err by more than the tolerance; both signs of an eigenvector are right, and complex numbers are texts.
    """

    def exact(a, b, truth) -> bool:
        if isinstance(a, list) and isinstance(b, list) and isinstance(truth, list):
            return len(a) == len(b) == len(truth) and all(map(exact, a, b, truth))
        if isinstance(a, str) and isinstance(b, str):
            one, other = numbers(a), numbers(b)
            return len(one) == len(other) and np.allclose(one, other, rtol=1e-3, atol=1e-3)
        if differs(b, a, False, 0.0) is None:
            return True
        if not all(isinstance(x, np.ndarray) and x.shape == a.shape and x.dtype.kind == "f" for x in (a, b, truth)):
            return False
        mine, theirs, size = (np.abs(x.astype("float64")).max() for x in (a - truth, b - truth, truth))
        return bool(mine <= 8 * theirs + 1e-5 * size)  # of the whole array: a small element may come from large ones

    return all(
        exact(v, b.get(k), t.get(k))
        for a, b, t in ((was.seen, now.seen, double.seen), (was.grads, now.grads, double.grads))
        for k, v in a.items()
        if v is not None
    )


def numbers(text: str) -> list[float]:
    """Numbers in a text, without their signs."""
    return [float(one) for one in re.findall(r"\d+\.\d*(?:e[-+]\d+)?", text)]


def check(torch) -> list[str]:
    """Recorded outcomes that PyTorch does not give here."""
    wrong = []
    recorded = [(name, case) for name, cases in store.read().items() for case in cases]
    recorded += [(case["n"], case) for cases in store.read(store.FAMILIES).values() for case in cases]
    for name, case in recorded:
        was, now = store.unpack(case), store.unpack(store.pack(error_texts(limited(torch, case["p"]))))
        if (
            (was.error is None) != (now.error is None)
            or (was.grad_error is None) != (now.grad_error is None)
            or not (agrees(name, was, now) or equally_accurate(was, now, in_double(case["p"], torch)))
        ):
            wrong.append("\n".join([name, *case["p"], text(now.error or now.seen.get("r"))]))
    return wrong


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(prog="python -m tests.oracle.record")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--families", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.check:
        wrong = check(torch)
        if signatures.signatures(torch) != signatures.read():
            wrong.append("signatures.txt: python -m tests.oracle.signatures writes it anew")
        print("\n\n".join(wrong[:400]))
        print(f"{len(wrong)} recorded cases differ from PyTorch {torch.__version__}")
        return 1 if wrong else 0
    if options.families:
        store.write(cases := family_cases(torch), store.FAMILIES)
        print({name: len(rows) for name, rows in cases.items()}, f"{store.FAMILIES.stat().st_size:,} bytes")
        return 0
    known, public = store.read() if options.only else {}, called_names()
    names = [n for n in public if not options.only or n in options.only.split(",")]
    cases = {n: c for n, c in known.items() if n in public} | {name: cases_of(name, torch) for name in names}
    store.write(cases)
    print(f"{sum(map(len, cases.values()))} cases of {len(cases)} names, {store.FILE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
