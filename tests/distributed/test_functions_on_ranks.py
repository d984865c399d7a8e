"""Check public functions on global tensors: random calls on two ranks give the results and gradients of one rank.

With infinities, all ranks hold all elements: terms of a sum, such as 0 * inf, would add up to NaN. A call that also has
local tensors may be refused.
"""

import random
import re
import warnings

import numpy as np

import minflow as flow
from minflow.core.base.errors import RankError
from minflow.core.base.placement import Placement, broadcast, partial_sum, split
from tests.cases import Cases
from tests.fuzz.calls import RANDOM, call_of, called_names
from tests.fuzz.comparison import differs, is_our_error, tensors_in, to_plain_values, weights
from tests.sampling import sampled

OTHERS = ("nn.", "optim.", "lr_scheduler.", "init.")  # modules and optimizers have tests of their own
NOT_COMPARED = {*RANDOM, "Tensor.device", "Tensor.is_distributed"}
TWO = Placement.of("cpu", (0, 1), (2,))
REFUSED = re.compile(r"is a local one|into a local one|of a global tensor|cannot be split along|must keep its shape")


def on_ranks(x, sbp):
    """A tensor as a global one; other values are unchanged."""
    if not hasattr(x, "to_global") or x.is_global:
        return x
    whole = x.detach().contiguous().to_global(TWO, broadcast)
    return whole.to_global(TWO, sbp).detach().requires_grad_(x.requires_grad)


class OnRanks:
    """minflow, with global tensors from the functions that create them in the last lines of a call."""

    def __getattr__(self, name: str):
        function = getattr(flow, name)
        if name not in ("eye", "tensor", "zeros", "ones"):
            return function
        return lambda *args, **options: on_ranks(function(*args, **options), broadcast)


def sbp_of(x, kind: str, choice: random.Random):
    """A distribution that a tensor can have."""
    splits = [split(d) for d in range(x.ndim)]
    if kind == "split":
        return (splits or [broadcast])[0]
    sums = [partial_sum] * x.is_floating_point()
    return broadcast if kind == "whole" else choice.choice([broadcast, *splits, *sums])


def plain(x):
    if isinstance(x, list | tuple):
        return [plain(i) for i in x]
    is_complex = hasattr(x, "is_complex") and x.is_complex()
    return to_plain_values(flow.view_as_real(x.detach()) if is_complex else x)


def outcome(lines: list[str], kind: str = "", seed: str = "") -> dict:
    """Tensors and gradients of a program, by name. kind: how its tensors are distributed; "" for local ones."""
    flow.manual_seed(0)
    space, choice = {"L": flow, "inf": np.inf, "nan": np.nan, "np": np}, random.Random(seed)
    for line in lines:
        name = re.match(r"(x\d+) = ", line)
        if kind and not name:
            space["L"] = OnRanks()
        exec(line, space)
        if kind and name:
            x = space[name[1]]
            space[name[1]] = on_ranks(x, sbp_of(x, kind, choice))
    tensors = {name: x for name, x in space.items() if re.fullmatch(r"x\d+|r", name)}
    found = {name: plain(x) for name, x in tensors.items()}
    outs = [t for t in tensors_in(space["r"]) if t.requires_grad and t.is_floating_point()]
    seeds = [flow.tensor(weights(t.shape).astype(t.dtype.np)) for t in outs]
    if outs:
        flow.autograd.backward(outs, [on_ranks(g, broadcast) if t.is_global else g for t, g in zip(outs, seeds)])
    leaves = {name: x for name, x in tensors.items() if name != "r" and x.is_leaf and x.grad is not None}
    return found | {f"{name}.grad": plain(x.grad) for name, x in leaves.items()}


def finite(value) -> bool:
    """True if no number in a result is infinite."""
    if isinstance(value, dict | list):
        return all(map(finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float | np.ndarray) or not np.isinf(value).any()


def compare(name: str, lines: list[str], kind: str) -> None:
    try:
        expected = outcome(lines)
    except Exception:
        return  # one rank refuses it, too
    try:
        with flow.virtual_ranks(2) as ranks:
            found = ranks.run(outcome, lines, kind if finite(expected) else "whole", f"{name} {kind}")
    except Exception as error:
        assert is_our_error(error) and not isinstance(error, RankError) and REFUSED.search(str(error)), error
        return
    numbers = [v for v in expected.values() if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    largest = max([abs(v[np.isfinite(v)]).max(initial=1) for v in numbers], default=1)
    tolerance = 1e-2 if "float16" in " ".join(lines) else max(3e-5, 5e-7 * float(largest))
    for result in found:
        assert result.keys() == expected.keys()
        for key, value in expected.items():
            kind_of_difference = differs(result[key], value, name in NOT_COMPARED, tolerance)
            assert not kind_of_difference, f"{key}: {result[key]}, one rank has {value}"


def test_functions_on_ranks():
    names = [name for name in called_names() if not name.startswith(OTHERS)]
    with Cases() as case, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in sampled(names, 0.2):
            for kind in ("split", "whole", "mixed"):
                lines = call_of(name, f"ranks {kind}")
                with case(f"{name}, {kind}: {'; '.join(lines)}"):
                    compare(name, lines, kind)
