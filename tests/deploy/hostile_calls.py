"""Hostile calls of ops, with attrs and inputs beyond those of programs: `python -m tests.deploy.hostile_calls FIRST
COUNT`.

Mutant n is an example of an op with some of its attrs and inputs changed, each to a value of its own kind. The op's
rule refuses it, or its kernel gives the promised result: in a child process, so that crashes and out-of-memory errors
are found. Prints a line for each mutant that does neither; the last line has the counts.
"""

import faulthandler
import json
import math
import random
import resource
import signal
import sys
import tracemalloc
from dataclasses import dataclass

import numpy as np
from numpy.lib.array_utils import byte_bounds

from minflow.core.base.errors import MinflowError
from minflow.core.infer import consult
from minflow.core.ir import NUMBERS
from minflow.core.kernels import CALLS
from minflow.core.op import OPS
from minflow.core.ops.examples import Maker, case, cases, floats
from minflow.core.spec import DType, Spec, bfloat16, float32, spec_of
from minflow.deploy.attrs import check_inputs, decode_attrs, encode, plausible, storable

INTS = [-1, 0, 1, 2, 3, 5, 8, 64, 1000, -2, -7, 2**31, -(2**31), 2**32 + 1, 2**61, 2**62, -(2**62), 10**9]
FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, -1.0, 0.5, 1.0, 2.0, 1e300, -1e300, 1e-320, 1e6]
TEXTS = ["", "indexing", "embedding", "none", "mean", "sum", "prod", "amax", "amin", "x" * 255]
SHAPES = [(), (0,), (1,), (3,), (5, 4), (4, 5), (0, 3), (2, 3, 4), (1, 2, 4, 4), (2, 0, 4, 4), (2, 3, 0, 4), (3, 1, 1)]
DTYPES = "bool uint8 int32 int64 float16 bfloat16 float32 float64 complex64".split()
COMPLEX = Maker((3, 4), layout=lambda a: a + 1j)
MORE = {  # examples of ops that are tested elsewhere
    "complex": [case(floats(3, 4), floats(4))],
    "conj": [case(COMPLEX)],
    "real": [case(COMPLEX)],
    "imag": [case(COMPLEX)],
    "view_as_real": [case(COMPLEX)],
    "view_as_complex": [case(floats(3, 2))],
    "fft": [case(COMPLEX, axis=1, inverse=False)],
    "recompute": [case(floats(3), floats(3), call=0)],
    "unrecorded": [case(floats(3), floats(3))],
}
EXAMPLES = {name: [*cases(op), *MORE.get(name, [])] for name, op in OPS.items() if storable(op)}
NAMES = [name for name, found in EXAMPLES.items() if found]
WITH_ATTRS = [name for name in NAMES if OPS[name].attrs]
LARGEST = 1 << 24  # bytes of results: more is refused before it is allocated
SECONDS = 3  # processor time for one kernel; a thousand times what any of them takes


class TooLong(BaseException):
    pass


@dataclass
class Mutant:
    op: str
    inputs: list
    attrs: dict

    def __str__(self):
        shown = [f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in self.inputs]
        return f"{self.op}({', '.join(shown)}; {self.attrs})"


def other_value(rng, x):
    """Another value of the same kind as x."""
    if isinstance(x, bool):
        return not x
    if isinstance(x, int):
        return rng.choice([x - 1, x + 1, -x, *INTS])
    if isinstance(x, float):
        return rng.choice(FLOATS)
    if isinstance(x, str):
        return rng.choice(TEXTS)
    if isinstance(x, DType):
        return DType.table[rng.choice(DTYPES)]
    if isinstance(x, tuple):
        return other_tuple(rng, x)
    if isinstance(x, dict):
        return {name: other_value(rng, y) if rng.random() < 0.5 else y for name, y in x.items()}
    if x is None:
        return rng.choice([None, rng.choice(INTS), (rng.choice(INTS),)])
    if x is Ellipsis:
        return rng.choice([None, 0, (None, None, -1)])
    return rng.choice([op for op in OPS.values() if op.is_view])  # an op in a view path


def other_tuple(rng, x):
    entries, way = list(x), rng.random()
    at = rng.randrange(len(entries)) if entries else 0
    if not entries or way < 0.1:
        return (*x, rng.choice([rng.choice(INTS), *x]))
    if way < 0.2:
        del entries[at]
    elif way < 0.25:
        return ()
    elif way < 0.3:
        return tuple(entries * 40)
    elif way < 0.35:
        rng.shuffle(entries)
    else:
        for other in {at, rng.randrange(len(entries))}:
            entries[other] = other_value(rng, entries[other])
    return tuple(entries)


def other_input(rng, x):
    """Another array, or a number instead of an array."""
    way = rng.random()
    if not isinstance(x, np.ndarray):
        return rng.choice([*INTS[:6], *FLOATS, True, 1j, np.arange(3.0)])
    if way < 0.15:
        return rng.choice([True, 2, 2**62, 1.5, math.nan, 1j])
    if way < 0.45 and x.dtype.kind in "iu":  # indices, labels, lengths
        x = x.copy()
        wrong = [-1, -(2**31), 2**31 - 1, 7, 100] if x.dtype.itemsize > 1 else [77, 127]
        x.reshape(-1)[: rng.randrange(1, 4)] = rng.choice(wrong)
        return x
    if way < 0.45:
        x = x.copy()
        if x.dtype.kind in "fc":
            x.reshape(-1)[: rng.randrange(1, 9)] = rng.choice(FLOATS)
        return x
    if way < 0.55:
        return x.astype(DType.table[rng.choice(DTYPES)].np)
    if way < 0.6 and x.ndim:
        return np.broadcast_to(x[..., :1], x.shape)
    shape = list(x.shape)
    if way < 0.82 and shape:
        at = rng.randrange(len(shape))
        shape[at] = max(0, rng.choice([0, 1, 2, shape[at] - 1, shape[at] + 1, shape[at] * 2]))
    elif way < 0.9:
        shape = rng.choice(SHAPES)
    else:
        shape.insert(rng.randrange(len(shape) + 1), rng.choice([0, 1, 2]))
    return np.resize(x, shape) if x.size else np.ones(shape, x.dtype)


def without_numbers(rng, inputs):
    """Replace one size by 0 and another by a huge one in the inputs that have them: a loop over it would never end."""
    sizes = sorted({n for x in inputs if isinstance(x, np.ndarray) for n in x.shape})
    none, huge = rng.choice(sizes or [1]), rng.choice(sizes or [1])
    other = {huge: rng.choice([2**10, 2**20]), none: 0}
    shapes = [[other.get(n, n) for n in np.shape(x)] for x in inputs]
    return [
        np.zeros(shape, x.dtype)
        if isinstance(x, np.ndarray) and 0 in shape and math.prod(n or 1 for n in shape) < 2**50
        else x
        for x, shape in zip(inputs, shapes)
    ]


def mutant(number: int) -> Mutant:
    rng = random.Random(number)
    op = OPS[rng.choice(WITH_ATTRS if rng.random() < 0.8 else NAMES)]
    chosen = rng.choice(EXAMPLES[op.name])
    inputs, attrs = list(chosen.arrays()), dict(chosen.attrs)
    if inputs and rng.random() < 0.1:
        return Mutant(op.name, without_numbers(rng, inputs), attrs)
    for _ in range(rng.choice([1, 1, 2, 3])):
        if attrs and rng.random() < 0.7:
            name = rng.choice(list(attrs))
            attrs[name] = other_value(rng, attrs[name])
        elif inputs:
            at = rng.randrange(len(inputs))
            inputs[at] = other_input(rng, inputs[at])
        if op.variadic and rng.random() < 0.2:
            inputs = rng.choice([inputs * 2, inputs[:1], inputs[1:]])
    if rng.random() < 0.1 and "by" in op.attrs:
        attrs["by"] = rng.choice(TEXTS)
    return Mutant(op.name, inputs, attrs)


# ---- checking a mutant
# ------------------------------------------------------------------------------------------------


def promised(op, inputs, attrs):
    """(inputs in the dtypes that the rule requires, the specs of the results)."""
    specs = tuple([x.__class__ if x.__class__ in NUMBERS else spec_of(x) for x in inputs])
    dtype, outs = consult(op, specs, attrs)
    if dtype is not None:
        dtype = float32 if dtype is bfloat16 else dtype
        inputs = [
            x.astype(dtype.np) if isinstance(x, np.ndarray) and spec_of(x).dtype is not dtype else x for x in inputs
        ]
        specs = tuple([x.__class__ if x.__class__ in NUMBERS else spec_of(x) for x in inputs])
        dtype, outs = consult(op, specs, attrs)
    assert all([isinstance(s, Spec) for s in outs]), f"the rule gave {outs}"
    return inputs, outs


def places(specs, fill: int):
    """Output arrays with 64 bytes of canaries around each."""
    result = []
    for spec in specs:
        whole = np.full(spec.nbytes + 128, fill, "uint8")
        result.append((whole, whole[64 : 64 + spec.nbytes].view(spec.np).reshape(spec.shape)))
    return result


def ran(op, inputs, attrs, specs):
    """Results of the kernel, run twice over different bytes; raises AssertionError for a fault."""
    before = [x.tobytes() if isinstance(x, np.ndarray) else None for x in inputs]
    if op.is_view:
        view = CALLS[op](*inputs, **attrs)
        assert view.shape == specs[0].shape and view.dtype == specs[0].np, f"a view {view.dtype}{view.shape}"
        owner, (low, high) = view, byte_bounds(view)
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        first, last = byte_bounds(owner) if owner is not view else (low, high)
        assert not view.size or first <= low <= high <= last, "a view outside its storage"
        return
    results = []
    for fill in (0, 0x5B):
        made = places(specs, fill)
        outs = [place for _, place in made]
        if op.takes_out:
            CALLS[op](*inputs, **attrs, out=tuple(outs) if op.many else outs[0])
        else:
            found = CALLS[op](*inputs, **attrs)
            for place, array in zip(outs, found if op.many else (found,)):
                assert place.shape == array.shape, f"an array of shape {array.shape}"
                place[...] = array
        for whole, place in made:
            assert (whole[:64] == fill).all() and (whole[-64:] == fill).all(), "bytes around the result were written"
        results.append([place.tobytes() for place in outs])
    assert results[0] == results[1], "the result has bytes that were not written"
    after = [x.tobytes() if isinstance(x, np.ndarray) else None for x in inputs]
    assert before == after, "an input was written"


def fault(m: Mutant) -> str:
    """Reason why this mutant is neither refused nor run safely; "" if it is, "refused" or "ran"."""
    op = OPS[m.op]
    try:
        decode_attrs(op, json.loads(json.dumps({name: encode(x) for name, x in m.attrs.items()})))
        check_inputs(op, [x if x.__class__ in NUMBERS else spec_of(x) for x in m.inputs])
        inputs, specs = promised(op, m.inputs, m.attrs)
    except (AssertionError, NameError):
        raise
    except Exception:
        return "refused"
    total = sum([s.nbytes for s in specs])
    assert total >= 0 and all([n >= 0 for s in specs for n in s.shape]), f"a spec with negative sizes: {specs}"
    given = [spec_of(x) for x in inputs if isinstance(x, np.ndarray)]
    if total > LARGEST or not all([plausible(s.shape, s.dtype) for s in (*specs, *given)]):
        return "refused"
    given = sum([math.prod(n or 1 for n in s.shape) * s.dtype.itemsize for s in (*specs, *given)])
    tracemalloc.start()
    try:
        ran(op, inputs, m.attrs, specs)
        peak = tracemalloc.get_traced_memory()[1]
    except MinflowError:
        return "refused by numbers"
    finally:
        tracemalloc.stop()
    assert peak < 40 * (given + total) + (1 << 22), f"{peak} bytes taken, for {given} of inputs and {total} of results"
    return "ran"


def too_long(*_):
    raise TooLong


def main(first: int, count: int) -> None:
    faulthandler.enable()
    np.seterr(all="ignore")
    import warnings

    import scipy.linalg
    import scipy.special  # noqa: F401

    warnings.simplefilter("ignore")
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), -1))
    signal.signal(signal.SIGPROF, too_long)
    counts: dict[str, int] = {}
    for number in range(first, first + count):
        print(f"{number}", end="\r", file=sys.stderr, flush=True)
        m = mutant(number)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            verdict = fault(m)
        except TooLong:
            verdict = "HUNG"
        except MemoryError:
            verdict = "MEMORY"
        except AssertionError as error:
            verdict = f"WRONG {error}"
        except Exception as error:
            verdict = f"RAW {type(error).__name__}: {str(error)[:150]}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        counts[verdict.split()[0]] = counts.get(verdict.split()[0], 0) + 1
        if verdict[:3].isupper():
            print(f"{number}: {verdict}: {str(m)[:400]}", flush=True)
    print(json.dumps(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
