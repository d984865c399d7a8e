"""The table of names that two generations share: a test per row, the dispatch, its cost, and names that are not
there."""

import copy
import inspect
import pickle
import re

import numpy as np
import pytest
from legacy import in_job

import minflow as flow
from minflow.core import functions as F
from minflow.core.base import two_meanings
from minflow.core.base.errors import DTypeError, MinflowError, MissingNameError
from minflow.core.base.two_meanings import SHARED
from minflow.core.messages.near import no_name
from minflow.job.blob import Blob
from minflow.job.legacy.meanings import LOSSES, NORMS, ROWS, legacy_function, legacy_meaning
from minflow.job.legacy.missing import MISSING

X = np.float32([[3, 1, 2], [5, 9, 7]])
SQUARE = np.arange(9, dtype="float32").reshape(3, 3)
TEXT = flow.tensor([[1, 2]]), flow.tensor([2]), flow.tensor([2])  # labels, and how many frames and labels
MASK = np.int8([[1, 0, 1], [0, 0, 1]])
IDS = np.int32([2, 0])


def blob(function, *arrays):
    """What a job gives, with a check that the tensor in it is a Blob."""
    def checked(*blobs):
        result = function(*blobs)
        assert isinstance(result, Blob)
        return result

    return in_job(checked, *arrays)


def same(a, b):
    a, b = [x.numpy() if isinstance(x, flow.Tensor) else np.asarray(x) for x in (a, b)]
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


# name -> (positional call on a Blob, its result; eager call by a legacy keyword, its result; eager modern call, its
# result)
x, ids, mask = flow.tensor(X), flow.tensor(IDS), flow.tensor(MASK)
CASES = {
    "reshape": (lambda b: flow.reshape(b, [3, 2]), X.reshape(3, 2), lambda: flow.reshape(x=x, shape=[3, 2]),
                X.reshape(3, 2), lambda: flow.reshape(x, 3, 2), X.reshape(3, 2)),
    "flatten": (lambda b: flow.flatten(b, 0, -1), X.ravel(), lambda: flow.flatten(x, name="flat"), X.ravel(),
                lambda: flow.flatten(x), X.ravel()),
    "transpose": (lambda b: flow.transpose(b, [1, 0]), X.T, lambda: flow.transpose(x, perm=[0, 1]), X,
                  lambda: flow.transpose(x, 0, 1), X.T),
    "squeeze": (lambda b: flow.squeeze(flow.expand_dims(b, 0), [0]), X, lambda: flow.squeeze(x[None], axis=[0]), X,
                lambda: flow.squeeze(x, 0), X),
    "expand": (lambda b: flow.expand(b, [2, -1, -1]), np.stack([X, X]), lambda: flow.expand(x, expand_size=[2, 2, 3]),
               np.stack([X, X]), lambda: flow.expand(x, 2, -1, -1), np.stack([X, X])),
    "concat": (lambda b: flow.concat([b, b], 1), np.hstack([X, X]), lambda: flow.concat(inputs=[x, x], axis=1),
               np.hstack([X, X]), lambda: flow.concat([x, x], dim=1), np.hstack([X, X])),
    "stack": (lambda b: flow.stack([b, b], 2), np.stack([X, X], 2), lambda: flow.stack(inputs=[x, x]), np.stack([X, X]),
              lambda: flow.stack([x, x], dim=1), np.stack([X, X], 1)),
    "gather": (lambda b: flow.gather(b, ids, axis=1), X[:, [2, 0]], lambda: flow.gather(params=x, indices=ids, axis=1),
               X[:, [2, 0]], lambda: flow.gather(x, 1, ids[:, None].long()), X[[[0], [1]], [[2], [0]]]),
    "one_hot": (lambda b: flow.one_hot(flow.cast(b, flow.int32), 10), np.eye(10, dtype="int32")[X.astype(int)],
                lambda: flow.one_hot(ids, depth=3), np.eye(3, dtype="int32")[IDS],
                lambda: flow.one_hot(ids), np.eye(3, dtype="int64")[IDS]),
    "diag": (lambda b: flow.diag(b, 1), np.diag(X, 1), lambda: flow.diag(x=x), np.diag(X),
             lambda: flow.diag(x), np.diag(X)),
    "where": (lambda b: flow.where(mask, b, -b), np.where(MASK, X, -X),
              lambda: flow.where(mask, x=x, y=-x),
              np.where(MASK, X, -X), lambda: flow.where(x > 2, x, 0.0), np.where(X > 2, X, np.float32(0))),
    "masked_fill": (lambda b: flow.masked_fill(b, mask, 0), np.where(MASK, np.float32(0), X),
                    lambda: flow.masked_fill(x=x, mask=mask, value=0), np.where(MASK, np.float32(0), X),
                    lambda: flow.masked_fill(x, x > 2, 0), np.where(X > 2, np.float32(0), X)),
    "argwhere": (None, None, lambda: flow.argwhere(condition=mask), np.argwhere(MASK).astype("int32"),
                 lambda: flow.argwhere(mask), np.argwhere(MASK)),
    "nonzero": (None, None, lambda: flow.nonzero(a=mask), np.argwhere(MASK).T.astype("int32"),
                lambda: flow.nonzero(mask), np.argwhere(MASK)),
    "sort": (lambda b: flow.sort(b), np.sort(X), lambda: flow.sort(x, direction="DESCENDING"), np.sort(X)[:, ::-1],
             lambda: flow.sort(x)[0], np.sort(X)),
    "argsort": (lambda b: flow.argsort(b), np.argsort(X).astype("int32"),
                lambda: flow.argsort(x, direction="DESCENDING"), np.argsort(-X).astype("int32"),
                lambda: flow.argsort(x), np.argsort(X)),
    "argmax": (lambda b: flow.argmax(b), np.int32([0, 1]), lambda: flow.argmax(x, name="best"), np.int32([0, 1]),
               lambda: flow.argmax(x), np.int64(4)),
    "matmul": (lambda b: flow.matmul(b, b, False, True), X @ X.T, lambda: flow.matmul(x, x, transpose_a=True), X.T @ X,
               lambda: flow.matmul(x, x[0]), X @ X[0]),
    "clamp": (lambda b: flow.clamp(b, 2, 5), X.clip(2, 5), lambda: flow.clamp(x, min_value=2), X.clip(2),
              lambda: flow.clamp(x, max=5), X.clip(None, 5)),
    "clip": (lambda b: flow.clip(b, 2, 5), X.clip(2, 5), lambda: flow.clip(x, max_value=5), X.clip(None, 5),
             lambda: flow.clip(x, min=2), X.clip(2)),
    "equal": (lambda b: flow.equal(b, b), np.ones_like(X, "int8"), lambda: flow.equal(x=x, y=x),
              np.ones_like(X, "int8"), lambda: flow.equal(x, x), True),
    **{name: (lambda b, name=name: getattr(flow, name)(b, 3.0), ufunc(X, 3).astype("int8"),
              lambda name=name: getattr(flow, name)(x=x, y=3.0), ufunc(X, 3).astype("int8"),
              lambda name=name: getattr(flow, name)(x, 3.0), ufunc(X, 3))
       for name, ufunc in (("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal),
                           ("gt", np.greater), ("ge", np.greater_equal))},
    "logical_and": (lambda b: flow.logical_and(b, mask), MASK, lambda: flow.logical_and(x=x, y=mask), MASK,
                    lambda: flow.logical_and(x, mask), MASK.astype(bool)),
    "ctc_loss": (lambda b: flow.ctc_loss(b.reshape(2, 1, 3), *TEXT), np.array([-4.0], "float32"),
                 lambda: flow.ctc_loss(x.reshape(2, 1, 3), *TEXT, name="ctc"), np.array([-4.0], "float32"),
                 lambda: flow.ctc_loss(x.reshape(2, 1, 3), *TEXT), np.array(-4.0, "float32")),
    "zeros": (lambda b: flow.zeros((2, 3), flow.int8), np.zeros((2, 3), "int8"), lambda: flow.zeros(shape=[2]),
              np.zeros(2, "float32"), lambda: flow.zeros(2, 3), np.zeros((2, 3), "float32")),
    "ones": (lambda b: flow.ones((2, 3), flow.int8), np.ones((2, 3), "int8"), lambda: flow.ones([2], name="one"),
             np.ones(2, "float32"), lambda: flow.ones(2, 3), np.ones((2, 3), "float32")),
    "zeros_like": (lambda b: flow.zeros_like(b, flow.int32), np.zeros((2, 3), "int32"),
                   lambda: flow.zeros_like(like=x), np.zeros((2, 3), "float32"),
                   lambda: flow.zeros_like(x, dtype=flow.int64), np.zeros((2, 3), "int64")),
    "ones_like": (lambda b: flow.ones_like(b, flow.int32), np.ones((2, 3), "int32"),
                   lambda: flow.ones_like(like=x), np.ones((2, 3), "float32"),
                  lambda: flow.ones_like(x, dtype=flow.int64), np.ones((2, 3), "int64")),
}  # fmt: skip


def test_what_is_marked_at_its_definition_is_a_row_of_the_table():
    assert sorted(SHARED) == sorted(f"flow.{row.name}" for row in ROWS)
    for name, definition in SHARED.items():
        public = resolve(name)
        wrapped = public.__wrapped__  # a function of nn.functional was hinted there before
        assert definition in (wrapped, getattr(wrapped, "__wrapped__", None))
        assert inspect.signature(public) == inspect.signature(definition)
        assert (public.__module__, public.__name__) == ("minflow", name.rpartition(".")[2])
        assert public.__doc__ == definition.__doc__
    assert all(isinstance(resolve(name), type) and legacy_function(path) for name, path in (LOSSES | NORMS).items())


def test_each_row_has_a_case():
    assert [r.name for r in ROWS] == list(dict.fromkeys(r.name for r in ROWS)) and set(CASES) == {r.name for r in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_row(row):
    on_blob, in_a_job, legacy, by_keyword, modern, eager = CASES[row.name]
    if on_blob is not None:
        assert same(blob(on_blob, X), in_a_job)
    assert same(legacy(), by_keyword)
    assert same(modern(), eager)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_legacy_keywords_are_the_legacy_function_s_own(row):
    """Every keyword exists there; none of them is an argument of the modern function, which would lose it."""
    assert row.keywords <= inspect.signature(legacy_function(row.legacy)).parameters.keys()
    modern = getattr(flow, row.name).__wrapped__
    if inspect.isfunction(modern):
        own = {p.name for p in inspect.signature(modern).parameters.values() if p.kind is not p.VAR_POSITIONAL}
        assert not row.keywords & own
    assert row.meaning[-1] != "." and len(row.meaning) > 15


def test_a_modern_keyword_of_a_blob_means_the_modern_function():
    assert blob(lambda b: flow.squeeze(flow.expand_dims(b, 0), dim=1), X).shape == (1, 2, 3)
    assert blob(lambda b: flow.argmax(b, dim=0), X).dtype == np.int64
    assert same(blob(lambda b: flow.clamp(b, min=2), X), X.clip(2))
    assert same(blob(lambda b: flow.concat([b, b], dim=1), X), np.hstack([X, X]))


def test_keywords_of_both_are_refused():
    wanted = r"sort: direction belongs to job functions, descending does not(.|\n)*input, axis, direction, name"
    with pytest.raises(DTypeError, match=wanted):
        flow.sort(flow.tensor(X), direction="ASCENDING", descending=True)


def test_a_blob_in_any_place_counts():
    assert same(blob(lambda b: flow.where(flow.tensor(MASK), 0.0, b), X), np.where(MASK, np.float32(0), X))
    assert same(
        blob(lambda b: flow.gather(flow.tensor(SQUARE), flow.cast(b, flow.int32)), np.float32([[2, 0]])),
        SQUARE[[[2, 0]]]
    )
    assert same(blob(lambda b: flow.concat([flow.tensor(X), b], 1), X), np.hstack([X, X]))


def test_graphs_keep_the_modern_meaning():
    class Swap(flow.nn.Graph):
        def build(self, x):
            return flow.transpose(x, 0, 1), flow.argmax(x), flow.sort(x).values

    swapped, best, ordered = Swap()(flow.tensor(X))
    assert same(swapped, X.T) and best.item() == 4 and best.dtype is flow.int64 and same(ordered, np.sort(X))


def test_eager_tensors_in_a_job_keep_the_modern_meaning():
    told = []

    def function(b):
        told.append(flow.gather(flow.tensor(X), 1, flow.tensor([[0], [1]])).shape)
        return b

    in_job(function, X)
    assert told == [(2, 1)]


def test_the_modern_function_is_still_known():
    assert flow.transpose.__name__ == "transpose" and "swapped" in flow.transpose.__doc__
    for row in ROWS:
        assert pickle.loads(pickle.dumps(getattr(flow, row.name))) is getattr(flow, row.name)
    assert F.transpose is not flow.transpose                          # inside minflow nothing goes through the dispatch


def test_a_modern_call_looks_at_none_of_its_arguments(monkeypatch):
    """Outside a job nobody asks for the other meaning, but after a call that has failed and has a keyword."""
    asked = []
    monkeypatch.setattr(two_meanings, "CHOICES", [lambda *call: asked.append(call) or legacy_meaning(*call)])
    flow.transpose(x, 0, 1), flow.squeeze(x, dim=0), flow.concat([x, x], dim=1), flow.zeros(2, 3), flow.eq(x, 3.0)
    with pytest.raises(DTypeError):
        flow.sort(3)
    assert not asked and flow.nn.MSELoss()(x, x).item() == 0
    assert flow.sort(x, direction="DESCENDING").tolist()[0] == [3, 2, 1]
    assert [name for name, _, _ in asked] == ["flow.sort"]


def test_a_legacy_call_that_fails_shows_no_other_error():
    with pytest.raises(MinflowError) as caught:
        flow.sort(x, direction="SIDEWAYS")
    assert caught.value.__context__ is None


# ---- names that are not there ------------------------------------------------------------------------------------


def resolve(text):
    """The object that "flow.a.b" names."""
    thing = flow
    for part in text.split(".")[1:]:
        thing = getattr(thing, part)
    return thing


@pytest.mark.parametrize("room", MISSING)
def test_what_takes_their_place_is_there(room):
    for name, hint in MISSING[room].items():
        for text in re.findall(r"flow(?:\.\w+)+", hint):
            assert resolve(text) is not None, (name, text)


@pytest.mark.parametrize("room", MISSING)
def test_missing_names_are_missing(room):
    for name in MISSING[room]:
        assert not hasattr(resolve(room), name), f"{room}.{name} is there: strike it from the table"


@pytest.mark.parametrize("expression, wanted", [
    ("flow.user_op_builder", "flow has no user_op_builder(.|\n)*library.custom_op"),
    ("flow.tranpose", r"did you mean flow\.transpose"),
    ("flow.nn.batch_normalization_relu", "flow.nn has no batch_normalization_relu(.|\n)*relu"),
    ("flow.nn.reluu", r"did you mean flow\.nn\.relu "),
    ("flow.math.sum", r"flow.math has no sum(.|\n)*Try: flow\.math\.reduce_sum"),
    ("flow.math.sigmoidd", r"did you mean flow\.math\.sigmoid"),
    ("flow.random.coin_flip", r"flow\.random\.bernoulli"),
    ("flow.math.aliasd", r"dir\(flow\.math\)"),
    ("flow.scope.name_scope", r"flow\.scope\.namespace"),
    ("flow.qqqq", r"dir\(flow\)"),
])  # fmt: skip
def test_a_name_that_is_not_there(expression, wanted):
    with pytest.raises(MissingNameError, match=wanted) as caught:
        eval(expression)
    assert isinstance(caught.value, AttributeError) and "at <string>:1" in str(caught.value)


def test_dir_lists_functions_alone():
    assert dir(flow.random) == ["bernoulli", "generate_random_batch_permutation_indices", "shuffle"]
    names = dir(flow.math)
    assert len(names) == 88 and "add_n" in names and "F" not in names and "named_axes" not in names


def test_python_s_own_questions_are_answered_plainly():
    for name in ("__wrapped__", "_repr_html_"):
        assert type(no_name("flow", name, ())) is AttributeError
        assert not hasattr(flow, name) and not hasattr(flow.math, name) and not hasattr(flow.nn, name)
    error = no_name("flow.math", "sum", ())
    assert str(copy.copy(error)) == str(error) == str(pickle.loads(pickle.dumps(error)))
