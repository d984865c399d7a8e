"""Random values of distributions that tensors parametrize: multinomial, Poisson and binomial.

Each value uses its own uniform values, as in `random.py`. Counts are SciPy's inverse cdf of one uniform value of 53
bits. Read next: `core/functions/sampling.py`.
"""

from __future__ import annotations

from typing import Any

from ..backend import on_host
from ..base.errors import OutOfRangeError, ShapeError
from ..deferred import defer
from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from ..sharding import Labels, elementwise_labels
from ..source_location import fail, need
from ..spec import Spec, float64, int64, spec_of
from .checks import check_range, check_unit, first_wrong, refuse
from .examples import case, floats, positive
from .random import COUNTER_EXAMPLE, Part, as_result, drawn_labels, need_counter, of_elements, uniform_floats
from .rules import broadcast_shape, need_floating, need_spec, write_out


def multinomial_spec(p: Spec, counter, num_samples: int, replacement: bool, offset: int) -> Spec:
    need_floating("multinomial", p, "p")
    need_counter("multinomial", counter)
    if p.ndim not in (1, 2):
        raise ShapeError(
            f"multinomial: {{p}} must be a vector or a matrix, got {p.ndim} axes", hint="{p}.reshape(-1, n)"
        )
    if num_samples < 1:
        raise OutOfRangeError(f"multinomial: num_samples must be at least 1, got {num_samples}", hint="at least 1")
    if num_samples > p.shape[-1] and not (replacement and p.shape[-1]):
        raise OutOfRangeError(
            f"multinomial: cannot draw {num_samples} of {p.shape[-1]} indices, each at most once",
            hint="replacement=True, which allows repeated indices",
        )
    return p.replace(shape=(*p.shape[:-1], num_samples), dtype=int64)


multinomial = define(
    "multinomial(p, counter; num_samples, replacement, offset)",
    multinomial_spec,
    host_inputs=("counter",),
    examples=[
        case(positive(4), COUNTER_EXAMPLE, num_samples=3, replacement=False, offset=0),
        case(positive(2, 5), COUNTER_EXAMPLE, num_samples=7, replacement=True, offset=1),
        case(floats(0, 3, dtype="float32"), COUNTER_EXAMPLE, num_samples=1, replacement=False, offset=0),
    ],
    doc="Indices drawn with the probabilities of a row: by their cumulative sum, or the smallest of exponential times.",
)


@kernel(multinomial)
def _(xp, p, counter, num_samples, replacement, offset, out=None):
    rows = p.astype("float64").reshape(-1, p.shape[-1])
    check_weights(xp, p, rows)
    if replacement:
        u = uniform_floats(xp, counter, offset, len(rows) * num_samples, float64).reshape(len(rows), num_samples)
        sums = rows.cumsum(1)
        u = xp.minimum(u * sums[:, -1:], xp.nextafter(sums[:, -1:], 0))
        places = [xp.searchsorted(a, b, "right") for a, b in zip(sums, u)]
    else:
        u = uniform_floats(xp, counter, offset, rows.size, float64).reshape(rows.shape)
        with silent():  # infinite, that is never drawn, if the probability is 0
            places = xp.argsort(-xp.log1p(-u) / rows, 1, kind="stable")[:, :num_samples]
    return write_out(xp, xp.asarray(places, "int64").reshape((*p.shape[:-1], num_samples)), out)


def check_weights(xp, p, rows) -> None:
    """Refuse negative or non-finite weights, and rows of zeros."""

    def error(number: float, at: str = "") -> OutOfRangeError:
        what = f"multinomial: probabilities must be finite and at least 0, got {number:.4g}{at}"
        return OutOfRangeError(what, values={"p": spec_of(p)}, hint="logits.softmax(-1)")

    def zeros() -> OutOfRangeError:
        what = "multinomial: all probabilities of a row are 0"
        return OutOfRangeError(what, values={"p": spec_of(p)}, hint="at least one above 0")

    if not on_host(p):
        check_range(p, 0, xp.finfo(p.dtype).max, lambda low, high: error(high if low >= 0 else low), ("multinomial",))
        if rows.size:
            sums = -rows.sum(1).min()
            defer(("rows of multinomial", spec_of(p)), [sums], lambda largest: zeros() if largest >= 0 else None)
        return
    if rows.size and not (rows.min() >= 0 and rows.max() < xp.inf):
        refuse(error(*first_wrong(xp, p, ~((p >= 0) & (p < xp.inf)), "the input")))
    if rows.size and not rows.sum(1).min() > 0:
        refuse(zeros())


def need_positive(xp, op: str, name: str, x) -> None:
    if x.size and not x.min() >= 0:
        number, at = first_wrong(xp, x, ~(x >= 0), name)
        what = f"{op}: {name} must be at least 0, got {number:.4g}{at}"
        fail(OutOfRangeError, what, f"{name}.clamp(min=0)", **{name: spec_of(x)})


def uniform_elements(xp, counter, offset: int, shape, part: Part | None):
    return of_elements(xp, lambda size, start: uniform_floats(xp, counter, offset, size, float64, start), shape, part)


def poisson_spec(rate: Spec, counter, **_) -> Spec:
    need_floating("poisson", rate, "rate")
    need_counter("poisson", counter)
    return rate


poisson = define(
    "poisson(rate, counter; offset)",
    poisson_spec,
    host_inputs=("counter",),
    sharding=lambda rate, counter, **_: drawn_labels(rate),
    local_attrs="part",
    examples=[
        case(positive(3, 4), COUNTER_EXAMPLE, offset=0),
        case(floats(0), COUNTER_EXAMPLE, offset=1),
        case(floats((), low=5, high=50, dtype="float32"), COUNTER_EXAMPLE, offset=0),
    ],
    doc="Poisson counts with these rates.",
)


@kernel(poisson, on_host=True)
def _(xp, rate, counter, offset, part=None, out=None):
    special = need("scipy.special", "poisson")
    need_positive(xp, "poisson", "rate", rate)
    u, rates = uniform_elements(xp, counter, offset, rate.shape, part), rate.astype("float64")
    counts = smallest_count(xp, u, special.pdtrik, special.pdtr, rates)
    return as_result(xp, counts, rate.shape, spec_of(rate).dtype, out)


def smallest_count(xp, u, inverse, below, *law):
    """The smallest count whose cdf reaches u: SciPy's inverse, corrected for rounding."""
    with silent():
        count = xp.maximum(xp.ceil(xp.nan_to_num(inverse(u, *law))), 0)
        lower = xp.maximum(count - 1, 0)
        return xp.where(below(lower, *law) >= u, lower, count)


def binomial_spec(count: Spec, prob: Spec, counter, **_) -> Spec:
    need_floating("binomial", count, "count")
    need_spec("binomial", None, prob=prob)
    need_counter("binomial", counter)
    return count.replace(shape=broadcast_shape("binomial", {"count": count.shape, "prob": prob.shape}))


def binomial_labels(count: Spec, prob: Spec, counter: Spec, **_: Any) -> list[Labels]:
    n, p, out = elementwise_labels([count, prob], [binomial_spec(count, prob, counter)])
    return [n, p, (None,), out]


binomial = define(
    "binomial(count, prob, counter; offset)",
    binomial_spec,
    host_inputs=("counter",),
    sharding=binomial_labels,
    local_attrs="part",
    examples=[
        case(floats(3, 1, low=5, high=9), floats(4, low=0.1, high=0.9), COUNTER_EXAMPLE, offset=0),
        case(
            floats((), low=5, high=9, dtype="float32"),
            floats((), low=0, high=1, dtype="float32"),
            COUNTER_EXAMPLE,
            offset=1,
        ),
    ],
    doc="The number of successes in `count` trials with probability `prob` each.",
)


@kernel(binomial, on_host=True)
def _(xp, count, prob, counter, offset, part=None, out=None):
    special = need("scipy.special", "binomial")
    check_unit(xp, "binomial", "prob", prob, "prob.sigmoid()")
    need_positive(xp, "binomial", "count", count)
    n, p = xp.broadcast_arrays(xp.floor(count.astype("float64")), prob.astype("float64"))
    u = uniform_elements(xp, counter, offset, n.shape, part)
    hits = smallest_count(xp, u, special.bdtrik, lambda k, n, p: special.bdtr(k, n.astype("int64"), p), n, p)
    # the inverse fails for prob 0 and 1
    hits = xp.where(p == 0, 0, xp.where(p == 1, n, xp.minimum(hits, n)))
    return as_result(xp, hits, n.shape, spec_of(count).dtype, out)
