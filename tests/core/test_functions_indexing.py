"""x[index] and x[index] = value against numpy, for indices of mixed kinds."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import minflow as flow
from minflow.core.base.errors import DTypeError, OutOfRangeError, ShapeError, TraceError
from minflow.core.trace import trace
from tests import sampling
from tests.core.refusals import refusals


@st.composite
def shapes(draw):
    return tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))


@st.composite
def indices(draw, shape):
    """A tuple index for an array of this shape: ints, slices, None, Ellipsis, integer arrays that broadcast, masks."""
    parts: list = []
    common = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    axis, dots = 0, False
    while axis < len(shape):
        kind = draw(st.sampled_from(["int", "slice", "none", "array", "array", "mask", "list", "dots", "stop"]))
        n = shape[axis]
        if kind == "stop":
            break
        if kind == "none":
            parts.append(None)
            continue
        if kind == "dots":
            if not dots:
                parts.append(Ellipsis)
                dots = True
                axis = max(axis, len(shape) - draw(st.integers(0, len(shape) - axis)))
            continue
        if kind == "int":
            parts.append(int(rng.integers(-n, n)))
        elif kind == "slice":
            start, stop = [draw(st.one_of(st.none(), st.integers(-n - 1, n + 1))) for _ in range(2)]
            parts.append(slice(start, stop, draw(st.sampled_from([None, 1, 2]))))
        elif kind == "array":
            sizes = tuple([1 if rng.random() < 0.3 else k for k in common[rng.integers(0, len(common) + 1) :]])
            parts.append(rng.integers(-n, n, sizes))
        elif kind == "list":
            parts.append([int(i) for i in rng.integers(-n, n, common[-1] if common else 1)])
        else:
            parts.append(rng.random(n) < 0.6)
        axis += 1
    return tuple(parts)


def numpy_takes(x, index) -> bool:
    try:
        x[index]
    except IndexError:
        return False
    return True


def selected(x, index):
    """A view of x and an index of it with which numpy gives PyTorch's x[index]: integers remove their axes first.

    numpy counts an integer among the arrays, so that in x[0, :, [1, 2]] it puts the new axis first.
    """
    used = sum(
        p.ndim if isinstance(p, np.ndarray) and p.dtype == bool else p is not None and p is not Ellipsis for p in index
    )
    first, rest = [], []
    for part in index:
        if part is Ellipsis:
            first += [slice(None)] * (x.ndim - used)
            rest += [slice(None)] * (x.ndim - used)
        elif isinstance(part, int) or (isinstance(part, np.ndarray) and not part.ndim):
            first.append(int(part))
        else:
            first += [slice(None)] * (part is not None)
            rest.append(part)
    return x[(*first, Ellipsis)], tuple(rest)


def index_result(index):
    """Convert arrays to tensors, every second one."""
    return tuple([flow.from_numpy(p) if isinstance(p, np.ndarray) and p.size % 2 else p for p in index])


@settings(max_examples=400 if sampling.complete else 120, deadline=None, derandomize=True)
@given(st.data())
def test_getitem_matches_numpy(data):
    shape = data.draw(shapes())
    index = data.draw(indices(shape))
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    if not numpy_takes(x, index):
        with pytest.raises((IndexError, ShapeError)):
            flow.from_numpy(x)[index_result(index)]
        return
    for base in (x, x.T.copy().T):
        t = flow.from_numpy(base.copy()) if base is x else flow.from_numpy(x.T.copy()).permute(*range(x.ndim)[::-1])
        view, rest = selected(x, index)
        got = t[index_result(index)]
        assert got.shape == view[rest].shape
        np.testing.assert_array_equal(got.numpy(), view[rest])


@settings(max_examples=300 if sampling.complete else 100, deadline=None, derandomize=True)
@given(st.data())
def test_setitem_matches_numpy(data):
    shape = data.draw(shapes())
    index = data.draw(indices(shape))
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    if not numpy_takes(x, index):
        return
    want = x.copy()
    view, rest = selected(want, index)
    place = view[rest].shape
    kind = data.draw(st.sampled_from(["number", "full", "row"]))
    rng = np.random.default_rng(3)
    value = {"number": 7.5, "full": rng.random(place), "row": rng.random(place[-1:])}[kind]
    if not isinstance(value, float):
        value = value.astype("float32")
    t = flow.from_numpy(x.copy())
    view[rest] = value
    t[index_result(index)] = flow.from_numpy(np.asarray(value)) if not isinstance(value, float) else value
    np.testing.assert_array_equal(t.numpy(), want)


def test_masks_of_any_number_of_axes():
    x = np.arange(24.0).reshape(2, 3, 4)
    t = flow.from_numpy(x)
    for mask in (x > 5, x[..., 0] > 4, x[:, 0, 0] > 3, np.array(True), np.array(False)):
        np.testing.assert_array_equal(t[flow.from_numpy(mask.copy())].numpy(), x[mask])
        np.testing.assert_array_equal(t[mask].numpy(), x[mask])
    mask = x[0, 0] > 1
    np.testing.assert_array_equal(t[:, [1, 0], :][..., mask].numpy(), x[:, [1, 0], :][..., mask])
    np.testing.assert_array_equal(t[True].numpy(), x[True])
    np.testing.assert_array_equal(t[0, x[0] > 5].numpy(), x[0, x[0] > 5])


SHAPES = {  # of x[index] with x of 3 x 4 x 5 x 6, from PyTorch
    "0, :, [1, 2]": (4, 2, 6), "t(0), :, [0, 1]": (4, 2, 6), "None, 0, :, [0, 1]": (1, 4, 2, 6),
    ":, [0, 1], :, 0": (3, 2, 5),
    ":, [0, 1], :, t(0)": (3, 2, 5), ":, [0, 1], 1, [1, 2]": (3, 2), ":, [0, 1], t(1), [1, 2]": (3, 2),
    ":, True, 0, [0, 1]": (3, 2, 6),
    ":, [0, 1], ..., [1, 2]": (2, 3, 5), ":, :, [0, 1], ..., [1, 2]": (3, 4, 2),
    ":, [0, 1], None, [1, 2]": (2, 3, 1, 6),
    "True, :, [0, 1]": (2, 3, 5, 6), "0, :, [True, False, True, False, True]": (4, 3, 6),
}  # fmt: skip


@pytest.mark.parametrize("index", SHAPES)
def test_integers_remove_their_axes_first(index):
    x = flow.arange(360).reshape(3, 4, 5, 6)
    got = eval(f"x[{index}]", {"x": x, "t": flow.tensor})
    assert got.shape == SHAPES[index]
    exec(f"x[{index}] = got + 1000", {"x": x, "got": got, "t": flow.tensor})
    assert flow.equal(eval(f"x[{index}]", {"x": x, "t": flow.tensor}), got + 1000) and (x >= 1000).sum() == got.numel()


def test_gradient_of_advanced_indexing():
    x = flow.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    (x[[0, 1, 0], [1, 1, 1]] * flow.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [[0, 101, 0], [0, 10, 0]]
    x.grad = None
    x[x > 2.5].sum().backward()
    assert x.grad.tolist() == [[0, 0, 1], [1, 1, 1]]


def test_gradient_through_assignment():
    x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = flow.tensor([10.0, 20.0], requires_grad=True)
    y = x * 2
    y[[0, 2]] = v * 3
    (y * flow.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert y.tolist() == [30, 4, 60] and x.grad.tolist() == [0, 4, 0] and v.grad.tolist() == [3, 9]
    z = x * 1
    z[z > 1.5] = 0.0
    assert z.tolist() == [1, 0, 0]


def test_data_dependent_index_in_a_graph_suggests_an_alternative():
    x = flow.arange(4.0)
    for program in (lambda x: x[x > 1], lambda x: flow.nonzero(x), lambda x: flow.masked_select(x, x > 1)):
        program(x)  # eager first: its cache must not let the trace pass
        with pytest.raises(TraceError, match="flow.where"):
            trace(program, [x])


X = flow.zeros(3, 4)
test_mistakes_name_the_number_its_place_and_the_size = refusals(
    [
        (OutOfRangeError, lambda: X[:, [0, 4]], "index 4 .at position 1 .*axis 1, which has size 4"),
        (OutOfRangeError, lambda: X[flow.tensor([[0, -4]])], r"-4 .at position \(0, 1\).*size 3"),
        (OutOfRangeError, lambda: X[flow.tensor(5), [0, 1]], "5 is outside axis 0.*size 3"),
        (DTypeError, lambda: X[flow.tensor([0.0])], "float32"),
        (DTypeError, lambda: X["a"], "str"),
        (ShapeError, lambda: X[[0], [0], [0]], "3 axes are indexed, and the tensor has 2"),
        (OutOfRangeError, lambda: X[flow.tensor([True, False])], "2 .axis 0 of the mask. for 3 .axis 0"),
        (ShapeError, lambda: X[[0, 1], [0, 1, 2]], "2.*3"),
        (ShapeError, lambda: X.__setitem__([0, 1], flow.zeros(5)), r"\(5,\).*\(2, 4\)"),
        (OutOfRangeError, lambda: X[::-1, [0]], "step -1"),
    ]
)
