"""Check the rows of every op with its examples: ranks that each run it on their part give the result of one rank.

The parts are cut and joined here, in one process, for each row that an op has on 1 to 5 ranks; the examples have sizes
that none of these divides, axes shorter than the ranks, and axes of size 0. Gradients are checked on virtual ranks. An
op without a row of parts is in `WHOLE`, with the reason.
"""

import numpy as np
import pytest

import minflow as flow
from minflow.core.autograd import grad
from minflow.core.base.placement import Placement, broadcast, partial_sum, split
from minflow.core.context import current_context
from minflow.core.functions.creation import from_numpy
from minflow.core.infer import data_dependent, resolve
from minflow.core.ir import NUMBERS
from minflow.core.kernels import launch
from minflow.core.op import OPS
from minflow.core.ops import update, update_adaptive, update_moments  # noqa: F401  (they define ops)
from minflow.core.ops.examples import cases
from minflow.core.ops.global_tensors import as_global, whole_array
from minflow.core.sharding import local_attrs, local_slices, local_spec, rows_of
from minflow.core.spec import Spec, spec_of
from tests.cases import Cases
from tests.core.test_ops import differentiable, many, outputs, tensors, wanting, weight
from tests.sampling import sampled

SIZES = 1, 2, 3, 4, 5
WHOLE = {  # why an op has no row of parts -> its names
    "strides address the elements of the whole": "as_strided",
    "one result of all elements": "median nanmedian groups",
    "no tensor is given": "full uniform normal randint randperm",
    "other ops run in its place": "batch_norm lamb mean",
    "the samples of a row draw by their place in the whole": "multinomial",
}
EXEMPT = {op.name for op in OPS.values() if op.composite or op.distributes or op.infer is data_dependent}


def examples_of(op) -> list:
    """(arrays, attrs) of each example, in the dtype in which the op runs."""
    found = [(example.arrays(), dict(example.attrs)) for example in cases(op)]
    return [*map(lambda call: in_one_dtype(op, *call), found), *MORE_EXAMPLES.get(op.name, [])]


def in_one_dtype(op, arrays: list, attrs: dict) -> tuple[list, dict]:
    dtype, _ = resolve(op, specs_of(arrays), attrs)
    arrays = [np.array(x, order="C") if hasattr(x, "dtype") else x for x in arrays]
    return [x.astype(dtype.np) if dtype is not None and hasattr(x, "dtype") else x for x in arrays], attrs


def complex_array(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


MORE_EXAMPLES = {
    "reshape": [([weight(1, (4, 6))], {"shape": shape}) for shape in ((4, 2, 3), (24,), (1, 4, 1, 6), (2, 2, 3, 2))],
    "expand": [([weight(1, (4, 1))], {"shape": (2, 4, 3)})],
    "complex": [([weight(1, (3, 4)), weight(2, (4,))], {})],
    **{name: [([complex_array(3, 4)], {})] for name in ("conj", "real", "imag", "view_as_real")},
    "view_as_complex": [([weight(1, (3, 4, 2))], {})],
    "fft": [([complex_array(3, 4)], {"axis": 0, "inverse": inverse}) for inverse in (False, True)],
}


def specs_of(arrays: list) -> tuple:
    return tuple([x.__class__ if x.__class__ in NUMBERS else spec_of(x) for x in arrays])


def line(count: int) -> Placement:
    return Placement.of("cpu", tuple(range(count)), (count,))


def placed_spec(spec, sbp, count: int):
    """The spec of a global tensor; that of a number is unchanged."""
    return spec if sbp is None else spec.replace(placement=line(count), sbp=(sbp,))


def cut(x: np.ndarray, sbp, count: int) -> list[np.ndarray]:
    """The local arrays of ranks that hold x with this sbp."""
    if sbp is broadcast:
        return [x] * count
    if sbp is partial_sum:
        rng = np.random.default_rng(5)
        terms = [rng.normal(size=x.shape).astype(x.dtype) for _ in range(count - 1)]
        return [*terms, np.asarray(x - sum(terms, np.zeros_like(x)))]
    spec = placed_spec(spec_of(x), sbp, count)
    return [x[local_slices(spec, rank)].copy() for rank in range(count)]


def joined(parts: list[np.ndarray], spec, sbp) -> np.ndarray:
    """The tensor of which ranks hold these parts."""
    if sbp is broadcast:
        for other in parts[1:]:
            np.testing.assert_array_equal(other, parts[0])
        return parts[0]
    if sbp is partial_sum:
        return np.sum(parts, 0)
    result, spec = np.empty(spec.shape, parts[0].dtype), placed_spec(spec, sbp, len(parts))
    for rank, part in enumerate(parts):
        result[local_slices(spec, rank)] = part
    return result


def assert_equal(got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == want.shape and got.dtype == want.dtype
    if want.dtype.kind in "fc":
        tolerance = 1e-12 if want.dtype.itemsize >= 8 and want.dtype.char != "F" else 2e-6
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=10 * tolerance)
    else:
        np.testing.assert_array_equal(got, want)


def check_row(op, arrays: list, attrs: dict, outs: tuple, row, count: int) -> None:
    """Ranks that hold parts as a row says get parts of the results as it says."""
    ins = [placed_spec(spec, sbp, count) for spec, sbp in zip(specs_of(arrays), row.inputs)]
    whole = [placed_spec(spec, sbp, count) for spec, sbp in zip(outs, row.outputs)]
    parts = [[x] * count if sbp is None else cut(x, sbp, count) for x, sbp in zip(arrays, row.inputs)]
    results = []
    for rank in range(count):
        local = [local_spec(spec, rank) for spec in whole]
        found = many(launch(op, [x[rank] for x in parts], local_attrs(op, attrs, ins, whole, rank), local))
        assert [spec_of(np.asarray(x)) for x in found] == local
        results.append(found)
    for k, want in enumerate(many(launch(op, arrays, attrs, outs))):
        assert_equal(joined([found[k] for found in results], outs[k], row.outputs[k]), want)


WITH_ROWS = [op for op in OPS.values() if (op.examples or op.name in MORE_EXAMPLES) and op.name not in EXEMPT]


@pytest.mark.parametrize("op", WITH_ROWS, ids=lambda op: op.name)
def test_rows(op):
    distributed = False
    with Cases() as case, np.errstate(all="ignore"):
        for k, (arrays, attrs) in enumerate(examples_of(op)):
            specs = specs_of(arrays)
            _, outs = resolve(op, specs, attrs)
            for count in SIZES:
                for row in rows_of(op, specs, attrs, outs, count):
                    distributed |= any(s is not None and s.kind == "split" for s in row.inputs)
                    with case(f"example {k} on {count} ranks, {row}"):
                        check_row(op, arrays, attrs, outs, row, count)
    reasons = [reason for reason, names in WHOLE.items() if op.name in names.split()]
    assert len(reasons) + distributed == 1, f"{op.name}: rows of parts: {distributed}; reasons for none: {reasons}"


def test_shape_rules_do_not_see_distributions():
    """The sbp of a result comes from the row; whatever its inputs have, the shape is that of the whole."""
    with Cases() as case, np.errstate(all="ignore"):
        for op in WITH_ROWS:
            for k, (arrays, attrs) in enumerate(examples_of(op)):
                specs = specs_of(arrays)
                _, plain = resolve(op, specs, attrs)
                for sbp in (split(0), broadcast, partial_sum):
                    fits = [s.__class__ is Spec and (s.ndim or sbp is not split(0)) for s in specs]
                    fits = [fit and (sbp is not partial_sum or s.differentiable) for fit, s in zip(fits, specs)]
                    placed = tuple([placed_spec(s, sbp, 2) if fit else s for s, fit in zip(specs, fits)])
                    if not any(fits):
                        continue
                    with case(f"{op.name}, example {k}, {sbp}"):
                        assert resolve(op, placed, attrs) == (None, plain)


# ---- gradients on virtual ranks ----------------------------------------------------------------------------------


def leaf(x: np.ndarray, sbp, count: int, rank: int, wanted: bool):
    """A global tensor with the elements of an array."""
    part = from_numpy(cut(x, sbp, count)[rank].copy())
    result = as_global(part, shape=x.shape, target=(line(count), (sbp,)), rank=rank)
    result.requires_grad = wanted
    return result


def results_and_gradients(op, attrs: dict, inputs: list, wanted: list[int], weigh) -> list[np.ndarray]:
    results = outputs(op, inputs, attrs)
    seeds = [weigh(weight(k, t.spec.shape)) for k, t in enumerate(results)]
    found = grad(results, [inputs[k] for k in wanted], seeds, allow_unused=True)
    return [whole_array(t) if t.is_global else t.array for t in (*results, *found) if t is not None]


def of_one_rank(op, arrays: list, attrs: dict, wanted: list[int]) -> list[np.ndarray]:
    inputs = tensors(arrays)
    for k in wanted:
        inputs[k].requires_grad = True
    return [x.copy() for x in results_and_gradients(op, attrs, inputs, wanted, from_numpy)]


def check_gradients(op, count: int, calls: list) -> None:
    """One of the ranks. calls: (arrays, attrs, inputs with a gradient, sbp of all inputs, results of one rank)."""
    rank = current_context().rank
    whole = lambda x: leaf(x, broadcast, count, rank, False)
    for arrays, attrs, wanted, sbps, expected in calls:
        try:
            inputs = [
                x if sbp is None else leaf(x, sbp, count, rank, k in wanted)
                for k, (x, sbp) in enumerate(zip(arrays, sbps))
            ]
            found = results_and_gradients(op, attrs, inputs, wanted, whole)
            for got, want in zip(found, expected, strict=True):
                assert_equal(got, want)
        except BaseException as error:
            error.add_note(f"inputs {specs_of(arrays)} {attrs}, {sbps}")
            raise


def calls_by_rows(op, arrays: list, attrs: dict, count: int) -> set:
    """The sbp of the inputs in each row of a call; of an op that runs as others, one input after the other
    in parts.
    """
    specs = specs_of(arrays)
    if not op.composite and op.on_ranks is None:
        _, outs = resolve(op, specs, attrs)
        return {row.inputs for row in rows_of(op, specs, attrs, outs, count)}
    whole = [None if isinstance(s, type) else broadcast for s in specs]
    found = {tuple(whole)}
    for k, s in enumerate(specs):
        if isinstance(s, Spec):
            parts = [*map(split, range(s.ndim)), *[partial_sum] * s.differentiable]
            found |= {(*whole[:k], sbp, *whole[k + 1 :]) for sbp in parts}
    return found


def gradient_calls(op, count: int) -> list:
    calls = []
    for arrays, attrs in examples_of(op):
        if differentiable(op, arrays, attrs):
            wanted = wanting(op, arrays)
            expected = of_one_rank(op, arrays, attrs, wanted)
            calls += [(arrays, attrs, wanted, sbps, expected) for sbps in calls_by_rows(op, arrays, attrs, count)]
    return calls


@pytest.mark.parametrize("count", [2, 3])
def test_gradients(count):
    ops = sampled([op for op in OPS.values() if op.examples], 0.4, lambda op: f"{op.name} {count}")
    calls = {op: gradient_calls(op, count) for op in ops}
    with Cases() as case, flow.virtual_ranks(count) as ranks:
        for op, mine in calls.items():
            with case(op.name):
                ranks.run(check_gradients, op, count, mine)
