"""Functions of several ops in a graph: they never read elements, and give the bits of eager mode."""

import pytest

import minflow as flow
from tests.core.programs import Compiled
from tests.graphs import bits

X, Y = flow.arange(24.0).reshape(2, 3, 4), flow.tensor([[1.0, 4.0, 2.0], [4.0, -4.0, 0.0]])
IDS, PLACES = flow.tensor([1, 0]), flow.tensor([[0, 0], [1, 1]])
A, B = flow.tensor([0.25, 0.5, 0.75]), flow.tensor([0.5, 0.125, 2.0])
ONE = """acos acosh asin asinh atan atanh cosh sinh digamma erfc erfinv exp2 frac i0 lgamma log10 sinc deg2rad rad2deg
logit nan_to_num""".split()
TWO = "atan2 copysign float_power heaviside hypot igamma igammac ldexp nextafter xlogy".split()


def placed(x):
    y = x.clone()
    y.unfold(1, 2, 1)[0] = 5.0
    y.as_strided((2,), (4,)).mul_(2.0)
    y[1:].as_strided((2,), (1,)).add_(1.0)
    y.index_put_((IDS, IDS), flow.tensor([1.0, 2.0]), accumulate=True)
    return [
        y,
        x.scatter_reduce(1, PLACES, x, "prod"),
        x.masked_scatter(x > 1, -x),
        x.index_reduce(0, IDS, x, "mean"),
        x.select_scatter(x[0], 0, 1),
        x.diagonal_scatter(x[0, :2]),
        x.slice_scatter(x[:, :2], 1, 0, 2),
        flow.diag_embed(x),
        flow.batch_gather(x, IDS.reshape(2, 1)),
        x.put(IDS, x[0, :2]),
        x.sum_to_size(1, 3),
        x.clone().fill_diagonal_(7.0),
        *flow.unravel_index(IDS, (2, 2)),
    ]


def indexed(x):
    y, i = x * 1, flow.tensor([1, 0, -1])
    y[i, 1] = 5.0
    y[y > 9] = -1.0
    return [y[:, [0, 2]], x[i], y[None, i, 1:3]]


PROGRAMS = {
    "elementary": (A, lambda x: [getattr(flow, name)(x) for name in ONE]),
    "of two": (A, lambda x: [getattr(flow, name)(x, B) for name in TWO]),
    "reductions": (
        Y,
        lambda x: [
            x.std(),
            x.var(0),
            x.logsumexp(1),
            x.norm(dim=1),
            x.clamp(min=0).prod(1),
            x.median(1).values,
            x.nanmedian(),
            x.nanmean(1),
            *x.aminmax(),
        ],
    ),
    "products": (Y, lambda x: [x @ x.T, flow.einsum("ij,kj->ki", x, x), flow.inner(x, x), flow.kron(x, x[0])]),
    "order": (
        Y,
        lambda x: [
            *x.topk(2),
            x.kthvalue(2).values,
            x.msort(),
            x.mode().values,
            flow.isin(x, 4.0),
            flow.searchsorted(flow.tensor([0.0, 2.0]), x),
        ],
    ),
    "counts": (
        Y,
        lambda x: [x.quantile(flow.tensor([0.2, 0.7]), 1), flow.nanquantile(x, 0.4), x.histc(3), *flow.histogram(x, 4)],
    ),
    "running": (
        Y,
        lambda x: [
            x.cumprod(1),
            *x.cummax(0),
            *x.cummin(1),
            x.logcumsumexp(1),
            x.diff(dim=0),
            flow.trapezoid(x),
            *flow.gradient(x),
        ],
    ),
    "shapes": (
        X,
        lambda x: [
            x.rot90(),
            x.fliplr(),
            x.flipud(),
            *x.tensor_split(2, 2),
            flow.ravel(x.mT),
            flow.cat([x, x]),
            flow.stack([x, x]).permute(2, 0, 1, 3) * 2,
        ],
    ),
    "combinations": (
        X[0],
        lambda x: [
            flow.block_diag(x, x.T),
            flow.cartesian_prod(x[0], x[1]),
            flow.vander(x[0], 3),
            flow.combinations(x[0]),
            flow.hann_window(4),
        ],
    ),
    "places": (Y, placed),
    "indices": (Y, indexed),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_graph_has_the_bits_of_eager(name):
    x, program = PROGRAMS[name]
    assert bits(Compiled(program)(x)) == bits([t.contiguous() for t in program(x)])
