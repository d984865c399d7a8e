"""Names with a legacy and a modern meaning: a test per row of the table, the dispatch, its cost, and missing names."""

import copy
import inspect
import pickle
import re

import numpy as np
import pytest
from legacy import run_in_job

import minflow as flow
from minflow.core import functions as F
from minflow.core.base import legacy_dispatch
from minflow.core.base.errors import DTypeError, MinflowError, MissingNameError
from minflow.core.base.legacy_dispatch import OVERLOADED
from minflow.core.messages.suggestions import missing_name
from minflow.job.blob import Blob
from minflow.job.legacy import arrays
from minflow.job.legacy.missing import MISSING
from minflow.job.legacy.overloads import LOSSES, NORMS, ROWS, legacy_function, legacy_meaning

X = np.float32([[3, 1, 2], [5, 9, 7]])
SQUARE = np.arange(9, dtype="float32").reshape(3, 3)
TEXT = flow.tensor([[1, 2]]), flow.tensor([2]), flow.tensor([2])  # labels, lengths of frames and labels
MASK = np.int8([[1, 0, 1], [0, 0, 1]])
IDS = np.int32([2, 0])


def blob(function, *arrays):
    """Return the result in a job, after checking that the tensor in it is a Blob."""

    def checked(*blobs):
        result = function(*blobs)
        assert isinstance(result, Blob)
        return result

    return run_in_job(checked, *arrays)


def same(a, b):
    a, b = [x.numpy() if isinstance(x, flow.Tensor) else np.asarray(x) for x in (a, b)]
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


def call(**options):
    """Arguments of a call by keyword; a tensor may have any name."""
    return options


x, ids, mask, frames = flow.tensor(X), flow.tensor(IDS), flow.tensor(MASK), flow.tensor(X.reshape(2, 1, 3))
BY_NUMBER = (lambda b: (b, 3.0), call(x=x, y=3.0), (x, 3.0))

# name -> arguments of three calls: (with a Blob, or None; eager with legacy keywords; modern)
CASES = {
    "reshape": (lambda b: (b, [3, 2]), call(x=x, shape=[3, 2]), (x, 3, 2)),
    "flatten": (lambda b: (b, 0, -1), call(input=x, name="flat"), (x,)),
    "transpose": (lambda b: (b, [1, 0]), call(a=x, perm=[0, 1]), (x, 0, 1)),
    "squeeze": (lambda b: (flow.expand_dims(b, 0), [0]), call(input=x[None], axis=[0]), (x[None], 0)),
    "expand": (lambda b: (b, [2, -1, -1]), call(x=x, expand_size=[2, 2, 3]), (x, 2, -1, -1)),
    "concat": (lambda b: ([b, b], 1), call(inputs=[x, x], axis=1), ([x, x], 1)),
    "stack": (lambda b: ([b, b], 2), call(inputs=[x, x], axis=0), ([x, x], 1)),
    "gather": (lambda b: (b, flow.tensor([1, 0])), call(params=x, indices=ids, axis=1), (x, 1, ids[:, None].long())),
    "one_hot": (lambda b: (flow.cast(b, flow.int32), 10), call(indices=ids, depth=3), (ids,)),
    "diag": (lambda b: (b, 1), call(x=x), (x,)),
    "where": (lambda b: (mask, b, -b), call(condition=mask, x=x, y=-x), (x > 2, x, 0.0)),
    "masked_fill": (lambda b: (b, mask, 0), call(x=x, mask=mask, value=0), (x, x > 2, 0)),
    "argwhere": (None, call(condition=mask), (mask,)),
    "nonzero": (None, call(a=mask), (mask,)),
    "sort": (lambda b: (b,), call(input=x, direction="DESCENDING"), (x,)),
    "argsort": (lambda b: (b,), call(input=x, direction="DESCENDING"), (x,)),
    "argmax": (lambda b: (b,), call(input=x, name="best"), (x,)),
    "matmul": (lambda b: (b, b, False, True), call(a=x, b=x, transpose_a=True), (x, x[0])),
    "clamp": (lambda b: (b, 2, 5), call(values=x, min_value=2), (x, 2)),
    "clip": (lambda b: (b, 2, 5), call(values=x, max_value=5), (x, 2)),
    "equal": (lambda b: (b, b), call(x=x, y=x), (x, x)),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), BY_NUMBER),
    "logical_and": (lambda b: (b, mask), call(x=x, y=mask), (x, mask)),
    "ctc_loss": (
        lambda b: (flow.reshape(b, [2, 1, 3]), *TEXT),
        call(log_probs=frames, targets=TEXT[0], input_lengths=TEXT[1], target_lengths=TEXT[2], name="ctc"),
        (frames, *TEXT),
    ),
    "zeros": (lambda b: ((2, 3), flow.int8), call(shape=[2]), (2, 3)),
    "ones": (lambda b: ((2, 3), flow.int8), call(shape=[2], name="one"), (2, 3)),
    "zeros_like": (lambda b: (b, flow.int32), call(like=x), (x,)),
    "ones_like": (lambda b: (b, flow.int32), call(like=x), (x,)),
}


def test_marked_functions_are_in_the_table():
    assert sorted(OVERLOADED) == sorted(f"flow.{row.name}" for row in ROWS)
    for name, definition in OVERLOADED.items():
        public = resolve(name)
        wrapped = public.__wrapped__  # its hint used to name a function of nn.functional
        assert definition in (wrapped, getattr(wrapped, "__wrapped__", None))
        assert inspect.signature(public) == inspect.signature(definition)
        assert (public.__module__, public.__name__) == ("minflow", name.rpartition(".")[2])
        assert public.__doc__ == definition.__doc__
    assert all(isinstance(resolve(name), type) and legacy_function(path) for name, path in (LOSSES | NORMS).items())


def test_each_row_has_a_case():
    assert [r.name for r in ROWS] == list(dict.fromkeys(r.name for r in ROWS)) and set(CASES) == {r.name for r in ROWS}


def outputs(result):
    return list(result) if isinstance(result, tuple | list) else [result]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_call_has_the_meaning_of_its_arguments(row):
    """A call belongs to the generation of its arguments."""
    in_a_job, by_keyword, modern = CASES[row.name]
    public, legacy = getattr(flow, row.name), legacy_function(row.legacy)
    if in_a_job is not None:
        assert same(blob(lambda b: public(*in_a_job(b)), X), legacy(*in_a_job(x)))
    assert same(public(**by_keyword), legacy(**by_keyword))
    assert all(map(same, outputs(public(*modern)), outputs(public.__wrapped__(*modern))))


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_legacy_keywords_belong_only_to_the_legacy_function(row):
    """Every keyword exists there, and none is an argument of the modern function, which would lose it."""
    assert row.keywords <= inspect.signature(legacy_function(row.legacy)).parameters.keys()
    modern = getattr(flow, row.name).__wrapped__
    if inspect.isfunction(modern):
        own = {p.name for p in inspect.signature(modern).parameters.values() if p.kind is not p.VAR_POSITIONAL}
        assert not row.keywords & own
    assert row.meaning[-1] != "." and len(row.meaning) > 15


def test_blob_with_modern_keyword_calls_the_modern_function():
    assert blob(lambda b: flow.squeeze(flow.expand_dims(b, 0), dim=1), X).shape == (1, 2, 3)
    assert blob(lambda b: flow.argmax(b, dim=0), X).dtype == np.int64
    assert same(blob(lambda b: flow.clamp(b, min=2), X), X.clip(2))
    assert same(blob(lambda b: flow.concat([b, b], dim=1), X), np.hstack([X, X]))


def test_mixed_keywords_are_refused():
    wanted = r"sort: direction belongs to job functions, descending does not(.|\n)*input, axis, direction, name"
    with pytest.raises(DTypeError, match=wanted):
        flow.sort(flow.tensor(X), direction="ASCENDING", descending=True)


def test_blob_in_any_argument_counts():
    assert same(blob(lambda b: flow.where(flow.tensor(MASK), 0.0, b), X), np.where(MASK, np.float32(0), X))
    assert same(
        blob(lambda b: flow.gather(flow.tensor(SQUARE), flow.cast(b, flow.int32)), np.float32([[2, 0]])),
        SQUARE[[[2, 0]]],
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

    run_in_job(function, X)
    assert told == [(2, 1)]


def test_modern_function_is_accessible():
    assert flow.transpose.__name__ == "transpose" and "Swap two axes" in flow.transpose.__doc__
    for row in ROWS:
        assert pickle.loads(pickle.dumps(getattr(flow, row.name))) is getattr(flow, row.name)
    assert F.transpose is not flow.transpose  # inside minflow nothing uses the dispatch


def test_modern_call_does_not_inspect_its_arguments(monkeypatch):
    """Outside a job the legacy meaning is considered only after a call with a keyword has failed."""
    asked = []
    monkeypatch.setattr(legacy_dispatch, "RESOLVERS", [lambda *call: asked.append(call) or legacy_meaning(*call)])
    flow.transpose(x, 0, 1), flow.squeeze(x, dim=0), flow.concat([x, x], dim=1), flow.zeros(2, 3), flow.eq(x, 3.0)
    with pytest.raises(DTypeError):
        flow.sort(3)
    assert not asked and flow.nn.MSELoss()(x, x).item() == 0
    assert flow.sort(x, direction="DESCENDING").tolist()[0] == [3, 2, 1]
    assert [name for name, _, _ in asked] == ["flow.sort"]


def test_name_counts_as_an_argument():
    x = flow.ones(2, 3)
    assert str(inspect.signature(flow.constant_like)).endswith("name: 'str | None' = None) -> 'Tensor'")
    assert list(inspect.signature(arrays.concat).parameters).index("name") == 3
    assert arrays.concat([x, x], 1, None, "both").shape == arrays.concat(None, 1, None, "both", [x, x]).shape == (2, 6)
    with pytest.raises(TypeError, match=r"constant_like\(\) takes from 2 to 4 positional arguments but 5 were given"):
        flow.constant_like(x, 1, None, "fill", 5)
    with pytest.raises(TypeError, match="'name'"):
        flow.constant_like(x, 1, None, "fill", name="again")


def test_failing_legacy_call_raises_its_own_error():
    with pytest.raises(MinflowError) as caught:
        flow.sort(x, direction="SIDEWAYS")
    assert caught.value.__context__ is None


# ---- missing names ---------------------------------------------------------------------------------------------------


def resolve(text):
    """Return the object that "flow.a.b" names."""
    thing = flow
    for part in text.split(".")[1:]:
        thing = getattr(thing, part)
    return thing


@pytest.mark.parametrize("room", MISSING)
def test_suggested_replacements_exist(room):
    for name, hint in MISSING[room].items():
        for text in re.findall(r"flow(?:\.\w+)+", hint):
            assert resolve(text) is not None, (name, text)


@pytest.mark.parametrize("room", MISSING)
def test_missing_names_are_missing(room):
    for name in MISSING[room]:
        assert not hasattr(resolve(room), name), f"{room}.{name} exists: remove it from the table"


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
def test_missing_name_error_has_a_suggestion(expression, wanted):
    with pytest.raises(MissingNameError, match=wanted) as caught:
        eval(expression)
    assert isinstance(caught.value, AttributeError) and "at <string>:1" in str(caught.value)


def test_dir_lists_only_functions():
    assert dir(flow.random) == ["bernoulli", "generate_random_batch_permutation_indices", "shuffle"]
    names = dir(flow.math)
    assert len(names) == 89 and "add_n" in names and "F" not in names and "named_axes" not in names


def test_dunder_lookups_raise_plain_attribute_errors():
    for name in ("__wrapped__", "_repr_html_"):
        assert type(missing_name("flow", name, ())) is AttributeError
        assert not hasattr(flow, name) and not hasattr(flow.math, name) and not hasattr(flow.nn, name)
    error = missing_name("flow.math", "sum", ())
    assert str(copy.copy(error)) == str(error) == str(pickle.loads(pickle.dumps(error)))


def test_arguments_that_a_function_of_jobs_does_not_have():
    x = flow.ones(1, 1, 3, 3)
    for call, text in (
        (
            lambda: flow.reflection_pad2d(x, padding=[0, 0, 2, 2], data_format="NCHW"),
            "reflection_pad2d has no argument 'data_format'",
        ),
        (lambda: flow.layers.dense(x, 3, unit=1), "dense has no argument 'unit'"),
        (lambda: flow.layers.conv2d(x), "conv2d also needs filters"),
        (lambda: flow.layers.batch_normalization(x, momentums=1), "batch_normalization has no argument 'momentums'"),
        (lambda: flow.math.reduce_mean(x, axes=1), "reduce_mean has no argument 'axes'(.|\n)*axis"),
    ):
        with pytest.raises(flow.CallError, match=text):
            call()
