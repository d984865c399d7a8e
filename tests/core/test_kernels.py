"""The registry of kernels: registration, selection by platform, declined arrays, and what a change invalidates."""

import numpy as np
import pytest

import minflow as flow
from minflow.core import kernels
from minflow.core.base.errors import InternalError
from minflow.core.infer import INFER_CACHE
from minflow.core.kernels import CALLS, HOST_PLATFORMS, KERNELS, OBSERVERS, Kernel, launch, observed, register, select
from minflow.core.op import OPS
from minflow.core.spec import LARGE, spec_of
from minflow.views.html.reports import report_html

X = np.float32([-1, 2])


@pytest.fixture
def platform(monkeypatch):
    """Register kernels on a platform "test", which is tried first; undone at the end."""
    before = kernels.EAGER_PLATFORMS["cpu"]
    kernels.use_platforms("cpu", ("test", *before))
    added = []

    def add(name, call, **facts):
        register(OPS[name], "test", Kernel(call, **facts))
        added.append((OPS[name], "test"))

    yield add
    for key in added:
        del KERNELS[key]
    kernels.use_platforms("cpu", before)


def test_second_registration_is_refused():
    with pytest.raises(InternalError, match="the op 'neg' has two kernels on the platform 'reference'"):
        register(OPS["neg"], "reference", Kernel(np.negative))
    assert select(OPS["neg"], ("reference",)).call(X).tolist() == [1, -2]


class Negate(flow.nn.Graph):
    def build(self, x):
        return -x


def test_first_platform_runs_in_eager_code_and_graphs(platform):
    platform("neg", lambda x, out=None: np.add(x, 100, out=out))
    x = flow.tensor(X)
    assert (-x).tolist() == Negate()(x).tolist() == [99, 102]
    assert select(OPS["neg"]).platforms == ("test",)
    assert select(OPS["neg"], HOST_PLATFORMS).call(X).tolist() == [1, -2]


def test_declined_arrays_run_on_the_next_platform(platform):
    def large_only(x, out=None):
        return NotImplemented if x.size < 3 else np.add(x, 100, out=out)

    platform("neg", large_only, declines=True)
    assert (-flow.tensor(X)).tolist() == [1, -2] and (-flow.tensor([1.0, 2.0, 3.0])).tolist() == [101, 102, 103]
    assert select(OPS["neg"]).platforms == ("test", "reference")


@pytest.mark.parametrize("size, expected", [(2, "reference"), (3, "test"), (10_000, "test")])
def test_plan_listing_names_the_platform_that_ran(platform, size, expected):
    """A kernel may decline; the input of 10,000 elements is new at each call."""
    platform("neg", lambda x, out=None: NotImplemented if x.size < 3 else np.negative(x, out=out), declines=True)
    graph = Negate()
    graph(flow.zeros(size))
    assert [call.platform for call in graph.plan.record.calls] == [expected]
    assert f"  {expected}  " in repr(graph.plan) and f">{expected}<" in report_html(graph.plan.record)


def test_plan_listing_names_the_platform_that_lowers(platform):
    class Lowering:
        lone, steady = True, 0

        def __call__(self, arrays, outs):
            return lambda: np.add(*arrays, 100, out=outs[0])

    platform("neg", None, lower=Lowering())
    graph = Negate()
    assert graph(flow.tensor(X)).tolist() == [99, 102] and (-flow.tensor(X)).tolist() == [1, -2]
    assert [call.platform for call in graph.plan.record.calls] == ["test"]


def test_observer_is_told_each_platform_and_leaves_nothing_behind(platform):
    """Kernels of a whole op, specialized ones, and nested ones; not those of a graph."""
    platform("neg", lambda x, out=None: NotImplemented if x.size < 3 else np.negative(x, out=out), declines=True)
    x, y, graph, seen = flow.tensor(X), flow.ones(70, 80), Negate(), []
    -x, y.sum(), y.t()
    with observed(lambda op, platform, arrays, result: seen.append((op.name, platform))):
        -x, -y, graph(y), y.sum(), y.t()
    -x, -y
    assert seen == [("neg", "reference"), ("neg", "test"), ("sum", "numpy"), ("permute", "reference")], seen
    assert not OBSERVERS


def test_in_place_writes_and_launch_use_the_registry(platform):
    platform("neg", lambda x, out=None: np.add(x, 100, out=out))
    x = flow.tensor(X)
    x.neg_()
    assert x.tolist() == [99, 102]
    out = np.empty(2, "f4")
    assert launch(OPS["neg"], (X,), {}, out=out) is out and out.tolist() == [99, 102]
    assert launch(OPS["neg"], (X,), {}, (spec_of(X),)).tolist() == [99, 102]


def test_change_of_platforms_clears_caches(platform):
    (-flow.tensor(X)).reshape(2, 1), flow.tensor(X).sum()
    assert OPS["neg"] in CALLS and INFER_CACHE
    platform("neg", lambda x, out=None: np.add(x, 100, out=out))
    assert OPS["neg"] not in CALLS and not INFER_CACHE
    assert (-flow.tensor(X)).tolist() == [99, 102]


class Relu(flow.nn.Graph):
    def build(self, x):
        return flow.relu(x)


def test_large_calls_choose_their_platforms(platform):
    """Eager code, in-place updates and graphs agree for each size; only a large call of a slow op loads platforms."""
    choices, before = [], kernels.EAGER_PLATFORMS["cpu"]

    def large():
        choices.append(1)
        return "test", *HOST_PLATFORMS

    kernels.use_platforms("cpu", kernels.PlatformsBySize(HOST_PLATFORMS, large))
    platform("relu", lambda x, out=None: np.add(x, 100, out=out))
    platform("neg", lambda x, out=None: np.add(x, 100, out=out))
    assert OPS["relu"].slow_on_numpy and not OPS["neg"].slow_on_numpy
    for size, expected in (LARGE - 1, 2), (LARGE, 102):
        x = flow.full((size,), 2.0)
        graph = Relu()
        assert not choices and flow.relu(x)[0] == flow.relu(x[:, None])[-1, 0] == graph(x)[0] == expected
        assert flow.relu(x[::2]).unique() == 2, "half the size"
        assert (-x)[0] == -2
        assert x.clone().relu_()[0] == expected
        assert ([call.platform for call in graph.plan.record.calls] == ["test"]) == (size == LARGE)
    assert choices
    kernels.use_platforms("cpu", before)


def test_attrs_of_equal_keys_reach_the_kernel():
    """The calls that are prepared once for a spec contain the attrs, but 0 == 0.0 == -0.0 and 1 == True."""
    x = flow.ones(1)
    for zero in (0, 0.0, -0.0, 0.0):
        padded, filled = flow.nn.functional.pad(x, (0, 1), value=zero), flow.full((2,), float(zero))
        assert [str(t[1].item()) for t in (padded, filled)] == [str(float(zero))] * 2
    described = []
    op = flow.library.custom_op("describe(x; value_of)")(lambda xp, x, value_of: described.append(value_of) or x + 1)
    values = [1, True, 1.0, 0.0, -0.0]
    for value in values:
        op(x, value_of=value)
    assert [*map(repr, described)] == [*map(repr, values)]


def test_every_op_has_a_reference_kernel_and_others_declare_their_tolerance():
    assert [name for name, op in OPS.items() if not kernels.has_kernel(op) and op.infer is not None] == []
    for (op, name), kernel in KERNELS.items():
        assert kernel.tolerance >= 0 and (name != "reference" or kernel.tolerance == 0), op


def test_op_without_a_kernel_on_these_platforms_is_refused():
    with pytest.raises(InternalError, match="the op 'neg' has no kernel for cpu"):
        select(OPS["neg"], ("numpy",))
