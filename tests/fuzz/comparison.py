"""Run one call in minflow and in PyTorch, and compare. Read next: `differences.py`."""

from __future__ import annotations

import re
import signal
import traceback
import warnings
from collections.abc import Callable
from contextlib import contextmanager, suppress
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

import minflow
from minflow.core.base.errors import InternalError, MinflowError

from .calls import RANDOM

TOLERANCE = {"float16": 4e-3, "float32": 3e-5, "float64": 1e-8}
SILENT = ("value", "dtype", "shape", "gradient", "written")  # written: an argument or a buffer, or through a view
KINDS = (*SILENT, "accepted", "raw", "hang", "refused")
# Python itself refuses a call that does not match the signature
SIGNATURE = re.compile(
    r"required positional|unexpected keyword|positional arguments? but|multiple values for|required "
    r"keyword-only|takes no arguments"
)


class Finding(NamedTuple):
    name: str
    kind: str
    lines: tuple
    ours: str
    theirs: str


class Hung(Exception):
    pass


class Outcome(NamedTuple):
    """Result of a program: arrays by name, or the error (its text, if it was recorded)."""

    seen: dict
    error: BaseException | str | None
    grads: dict
    grad_error: BaseException | str | None = None


def alarm(*_):
    raise Hung("more than 10 seconds of processor time")


def to_plain_values(x: Any) -> Any:
    """A result of either library as arrays, numbers and lists."""
    if hasattr(x, "detach") and hasattr(x, "dtype"):
        if "bfloat16" in str(x.dtype):  # NumPy has no bfloat16
            return ["bfloat16", to_plain_values(x.detach().float())]
        return str(x.detach()) if "complex" in str(x.dtype) else np.array(x.detach().numpy(force=True))
    if isinstance(x, (list, tuple)):
        return [to_plain_values(i) for i in x]
    if isinstance(x, (bool, int, float, type(None))):
        return float(x) if isinstance(x, float) else x
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, dict):
        return {str(k): to_plain_values(v) for k, v in x.items()}
    return str(x).replace("torch.", "").replace("minflow.", "")


def tensors_in(x: Any) -> list:
    if hasattr(x, "detach") and hasattr(x, "dtype"):
        return [x]
    return [t for i in x for t in tensors_in(i)] if isinstance(x, (list, tuple)) else []


def weights(shape) -> np.ndarray:
    """Gradient with which a backward starts: small nonzero values that float16 represents."""
    n = int(np.prod(shape, dtype=np.int64))
    return ((np.arange(n) % 5 - 1.5) / 2).reshape(shape)


def observe(lib, lines) -> Outcome:
    """Run the program; then backward from its floating results."""
    lib.manual_seed(0)
    space = {"L": lib, "inf": inf, "nan": nan, "np": np}
    try:
        exec(compile("\n".join(lines), "<call>", "exec"), space)
    except Hung as error:
        return Outcome({}, error, {})
    except Exception as error:
        return Outcome({}, error, {})
    seen = {"r": space["r"], **{k: v for k, v in space.items() if re.fullmatch(r"x\d+", k)}}
    module = space.get("m")
    if module is not None:
        seen.update({f"m.{k}": v for k, v in module.state_dict().items()})
    grads, grad_error = {}, None
    outs = [t for t in tensors_in(space["r"]) if t.requires_grad and t.is_floating_point()]
    values = {k: to_plain_values(v) for k, v in seen.items()}
    if outs:
        try:
            lib.autograd.backward(
                outs,
                [
                    lib.tensor(
                        weights(tuple(t.shape)).tolist() if 0 not in t.shape else np.zeros(tuple(t.shape)),
                        dtype=t.dtype,
                    )
                    for t in outs
                ],
            )
            leaves = {k: v for k, v in seen.items() if k[0] == "x"}
            if module is not None:
                leaves.update({f"m.{k}": v for k, v in module.named_parameters()})
            grads = {
                k: None if v.grad is None else to_plain_values(v.grad)
                for k, v in leaves.items()
                if v.is_leaf and v.requires_grad
            }
        except Exception as error:
            grad_error = error
    values["needs"] = [bool(t.requires_grad) for t in tensors_in(space["r"]) if t.is_floating_point()]
    values["shared"] = overwritten(tensors_in(space["r"]), {k: v for k, v in seen.items() if k[0] == "x"})
    return Outcome(values, None, grads, grad_error)


def overwritten(results: list, inputs: dict) -> list[str] | None:
    """Indices of inputs that change when the results are written to, since they alias. None if a write is refused."""
    before = {k: to_plain_values(v) for k, v in inputs.items()}
    for t in results:
        try:
            t.detach().fill_(77)
        except Exception:  # a view with several elements in one place
            return None
    return [
        k
        for k, v in inputs.items()
        if not np.array_equal(to_plain_values(v), before[k], equal_nan=v.is_floating_point())
    ]


@contextmanager
def time_limit():
    """Raise `Hung` after ten seconds of processor time."""
    old = signal.signal(signal.SIGVTALRM, alarm)
    signal.setitimer(signal.ITIMER_VIRTUAL, 10)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)


def limited(lib, lines) -> Outcome:
    with time_limit(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return observe(lib, lines)


def close(a: np.ndarray, b: np.ndarray, tol: float = 0.0, truth: np.ndarray | None = None) -> bool:
    """True if equal within the tolerance, or, if the double precision values are known, as accurate as PyTorch."""
    if a.dtype.kind != "f":
        return bool((a == b).all())
    tol = max(tol, TOLERANCE[a.dtype.name])
    with np.errstate(all="ignore"):
        x, y = a.astype("float64"), b.astype("float64")
        good = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= tol * (np.abs(y) + 0.2))
        if truth is not None and truth.shape == a.shape and truth.dtype.kind == "f":
            mine, yours = np.abs(x - truth), np.abs(y - truth)
            good |= mine <= 4 * yours + tol * np.abs(truth)
            good |= np.isfinite(x) & ~np.isfinite(y) & (mine <= 4 * tol * np.abs(truth) + tol)
            good |= (x == truth) | (np.isnan(x) & np.isnan(truth))
    return bool(good.all())


# functions with sums: cancellation leaves an error relative to the largest input
SUMS = re.compile(
    r"sum|mean|var|std|norm|pool|conv|linear|mm|mv|mul|dot|einsum|loss|entropy|softmax|inner|kron|Norm|Pool|Conv|Linear|Loss"
)


def differs(a: Any, b: Any, random: bool, tol: float, truth: Any = None) -> str | None:
    """Kind of difference of two plain results, or None."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.shape != b.shape:
            return "shape"
        if a.dtype != b.dtype:
            return "dtype"
        return None if random or close(a, b, tol, truth if isinstance(truth, np.ndarray) else None) else "value"
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return "shape"
        truths = truth if isinstance(truth, list) and len(truth) == len(a) else [None] * len(a)
        return next((k for x, y, t in zip(a, b, truths) if (k := differs(x, y, random, tol, t))), None)
    if isinstance(a, dict) and isinstance(b, dict):
        return "shape" if list(a) != list(b) else differs(list(a.values()), list(b.values()), random, tol)
    if type(a) is not type(b):
        return "dtype"
    if isinstance(a, float):
        return None if random or close(np.array(a), np.array(b), 3e-5) else "value"
    if isinstance(a, str):  # of a complex tensor; only one of the two libraries omits the default dtype
        a, b = (re.sub(r",\s+dtype=[\w.]+", "", x) for x in (a, b))
    return None if random or a == b else "value"


def text(x: Any) -> str:
    if isinstance(x, str):
        return x[:600]
    if isinstance(x, BaseException):
        lines = str(x).strip().splitlines() or [""]
        return f"{type(x).__name__}: {' | '.join(lines[:6])}"[:600]
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)} {x.tolist()}"[:500]
    if isinstance(x, list):
        return "[" + ", ".join(text(i) for i in x)[:700] + "]"
    return repr(x)[:300]


def place(error: BaseException) -> str:
    """File in which an error was raised: "<call>" is the program itself."""
    return traceback.extract_tb(error.__traceback__)[-1].filename


def raw_place(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{text(error)}   ({last.filename.rpartition('minflow/')[2]}:{last.lineno})"


def is_our_error(error: BaseException) -> bool:
    """True if minflow raised this error on purpose."""
    return isinstance(error, MinflowError) and not isinstance(error, InternalError)


def compare_with_torch(name: str, lines: list[str], torch) -> Finding | None:
    """Difference between minflow and PyTorch for one call; None if they agree."""
    return compare(name, lines, limited(minflow, lines), limited(torch, lines), lambda: in_double(lines, torch))


def in_double(lines: list[str], torch) -> Outcome:
    """PyTorch's result of the call in double precision."""
    exact = [re.sub(r"float(16|32)", "float64", line) for line in lines]
    return limited(torch, [f"{line}.double()" if line.startswith("m = L.nn.") else line for line in exact])


def picks(seen: dict) -> bool:
    """True if the two results of a topk are elements of an input, and their indices."""
    values, places = seen["r"]
    for x in seen.values():
        for axis in range(getattr(x, "ndim", 0) if values.shape == places.shape else 0):
            with suppress(ValueError, IndexError):
                if np.array_equal(np.take_along_axis(x, places, axis), values, equal_nan=x.dtype.kind == "f"):
                    return True
    return False


def compare(  # noqa: C901
    name: str, lines: list[str], ours: Outcome, theirs: Outcome, double: Callable[[], Outcome | None]
) -> Finding | None:
    """First difference of two outcomes. `double` computes the result in double precision, if needed."""
    found = lambda kind, a, b: Finding(name, kind, tuple(lines), a, b)
    if ours.error is not None:
        if isinstance(ours.error, Hung):
            return found("hang", text(ours.error), text(theirs.error or theirs.seen.get("r")))
        if not is_our_error(ours.error) and not isinstance(ours.error, SyntaxError):
            by_python = isinstance(ours.error, TypeError) and SIGNATURE.search(str(ours.error))
            outside = place(ours.error) == "<call>"  # not in minflow: [] & ()
            if not by_python and not (outside and theirs.error is not None):
                return found("raw", raw_place(ours.error), text(theirs.error or theirs.seen.get("r")))
        if theirs.error is None:
            return found("refused", text(ours.error), text(theirs.seen["r"]))
        return None
    if theirs.error is not None:
        return found("accepted", text(ours.seen["r"]), text(theirs.error))
    random = name in RANDOM
    if name in ("topk", "Tensor.topk") and all(picks(outcome.seen) for outcome in (ours, theirs)):
        theirs.seen["r"][1] = ours.seen["r"][1]  # any of several ties may be returned: PyTorch promises no order
    tol = max([TOLERANCE[t] for t in re.findall(r"float\d\d", " ".join(lines))], default=TOLERANCE["float32"])
    known: list = []
    if SUMS.search(name):
        numbers = [
            *[v for k, v in theirs.seen.items() if k[0] == "x"],
            *[v for v in theirs.grads.values() if v is not None],
        ]
        sizes = [np.abs(v[np.isfinite(v)]).max(initial=1) for v in numbers if v.dtype.kind == "f"]
        tol = max([tol, *(4 * np.finfo(np.float32).eps * float(size) for size in sizes)])

    def truth(part: str, key: str):
        if not known:
            known.append(double())
        return None if known[0] is None else getattr(known[0], part).get(key)

    for key, value in theirs.seen.items():
        if key == "shared" and None in (value, ours.seen[key]):
            continue
        if key == "needs":  # zeros and no gradient are equal: ours may know that there is none
            value = [a and b for a, b in zip(ours.seen[key], value)] + ours.seen[key][len(value) :]
        kind = differs(ours.seen.get(key), value, random, tol)
        if kind == "value":
            kind = differs(ours.seen[key], value, random, tol, truth("seen", key))
        if kind:
            kind = kind if key == "r" else "gradient" if key == "needs" else "written"
            return found(kind, f"{key} = {text(ours.seen.get(key))}", f"{key} = {text(value)}")
    if ours.grad_error is not None:
        error = ours.grad_error
        kind = "refused" if is_our_error(error) else "raw"
        if theirs.grad_error is not None and kind == "refused":
            return None
        return found(kind, "in backward: " + raw_place(error), text(theirs.grad_error or theirs.grads))
    if theirs.grad_error is not None:
        return found("accepted", f"backward gives {text(ours.grads)}", "in backward: " + text(theirs.grad_error))
    if random:
        return None
    for key in {**theirs.grads, **ours.grads}:
        a, b = ours.grads.get(key), theirs.grads.get(key)
        if a is None and b is None:
            continue
        a = np.zeros_like(b) if a is None else a
        b = np.zeros_like(a) if b is None else b
        kind = differs(a, b, False, tol)
        if kind == "value":
            kind = differs(a, b, False, tol, truth("grads", key))
        if kind:
            return found(
                "gradient", f"{key}.grad = {text(ours.grads.get(key))}", f"{key}.grad = {text(theirs.grads.get(key))}"
            )
    return None


def reproduction(finding: Finding) -> str:
    """A program of two lines; replace `minflow` by `torch` to run it in PyTorch."""
    if any(line.startswith("with ") for line in finding.lines):
        body = "\n".join(finding.lines)
    else:
        body = "; ".join(finding.lines)
    tail = "; print(r)"
    if finding.kind == "gradient":
        tail = (
            "; L.autograd.backward([r], [((L.arange(r.numel()) % 5 - 1.5) / 2).reshape(r.shape).to(r.dtype)]); "
            "print(x0.grad)"
        )
    return f"import minflow as L; import numpy as np; from math import inf, nan\n{body}{tail}"
