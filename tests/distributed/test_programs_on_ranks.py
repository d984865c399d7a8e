"""Check random programs of statements on global tensors: views, in-place writes, hooks and gradients, line by line.

After each line two ranks have the variables of one rank, or refuse the line.
"""

import random
import re
import warnings

import numpy as np

import minflow as flow
from minflow.core.base.errors import RankError
from minflow.core.base.placement import broadcast, partial_sum, split
from tests.cases import Cases
from tests.distributed.test_functions_on_ranks import REFUSED, OnRanks, on_ranks
from tests.fuzz import statements
from tests.fuzz.comparison import differs, is_our_error
from tests.sampling import sampled

LOCAL = re.compile(r"\bm\d|Extra|numpy\(\)")  # modules have local parameters; numpy() of a global tensor is a copy
SBPS = {"t0": [split(0), split(1), broadcast, partial_sum], "t1": [split(0), broadcast, partial_sum]}


def states(lines: list[str], sbps: dict) -> list:
    """(error, variables) after each line. sbps: of the first tensors; none on one rank."""
    flow.manual_seed(0)
    space, found = statements.space_of(OnRanks() if sbps else flow), []
    for line in lines:
        try:
            exec(line, space)
            error = None
        except RankError:
            raise
        except Exception as caught:
            error = caught
        name = line[:2]
        if name in sbps and line.startswith(f"{name} = L.tensor"):
            local = flow.tensor(space[name].tolist(), requires_grad=True)
            space[name] = on_ranks(local, sbps[name])
        found.append((error, statements.visible_state(space)))
    return found


def compare(lines: list[str], seed: int) -> None:
    choice = random.Random(seed)
    sbps = {name: choice.choice(choices) for name, choices in SBPS.items()}
    expected = states(lines, {})
    with flow.virtual_ranks(2) as ranks:
        for found in ranks.run(states, lines, sbps):
            for line, (error, mine), (refused, wanted) in zip(lines, found, expected, strict=True):
                if error is not None and refused is None:
                    assert is_our_error(error) and REFUSED.search(str(error)), f"{line}: {error}"
                    break
                assert (error is None) == (refused is None), f"{line}: one rank refuses it: {refused}"
                wrong = [name for name in wanted if differs(mine.get(name), wanted[name], False, 1e-4)]
                assert not wrong, f"{line}: {[(name, mine.get(name), wanted[name]) for name in wrong]}, {sbps}"


def test_programs_on_ranks():
    with Cases() as case, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in sampled(range(2500), 0.1):
            lines = statements.draw(f"ranks {seed}")
            if not any(map(LOCAL.search, lines)):
                with case("\n    ".join([str(seed), *lines])):
                    compare(lines, seed)
