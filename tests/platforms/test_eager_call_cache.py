"""The cache of eager calls: other arrays give correct results, no array is kept alive, and no wrong call is cached."""

import gc
import weakref

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

import minflow as flow
from minflow.compat.namespaces.threads import Settings
from minflow.core.kernels import CALLS, observed
from minflow.core.ops import activation, norm, pool
from minflow.platforms.compiled.runtime import eager
from minflow.platforms.compiled.runtime.eager import run_compiled
from minflow.platforms.compiled.runtime.instructions import instruction
from tests.platforms.kernel_checks import builder_of
from tests.threads import run_in_threads

EPS = dict(eps=1e-5)


@pytest.fixture(autouse=True)
def call_cache(monkeypatch):
    monkeypatch.setattr(Settings, "threads", 1)
    monkeypatch.setattr(eager, "CALL_CACHE", eager.CallCache())
    return eager.CALL_CACHE.calls


def images(seed, shape=(4, 20, 3, 3)):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype("f4") for s in (shape, shape[1:2], shape[1:2])]


def normed(*arrays, **more):
    return run_compiled(norm.batch_norm, builder_of(norm.batch_norm), *arrays, **EPS, **more)


def fresh(monkeypatch, *arrays):
    """Run on a thread with an empty cache."""
    with monkeypatch.context() as patch:
        patch.setattr(eager, "CALL_CACHE", eager.CallCache())
        return normed(*arrays)


def equal(found, wanted):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("shape", [(4, 20, 3, 3), (3, 17, 5, 5), (64, 33)])
def test_cached_call_is_correct_for_other_arrays(call_cache, monkeypatch, shape):
    first = normed(*images(0, shape))
    copies = [a.copy() for a in first]
    (call,) = call_cache.values()
    for seed in (1, 2):
        given = images(seed, shape)
        assert equal(normed(*given), fresh(monkeypatch, *given))
    assert equal(first, copies) and list(call_cache.values()) == [call]  # returned arrays keep their values
    out = tuple(np.empty_like(a) for a in first)
    assert normed(*given, out=out) is out and equal(out, fresh(monkeypatch, *given)) and len(call_cache) == 2


def test_cache_key_has_shape_dtype_and_literals(call_cache):
    x, weight, bias = images(0)
    double = [a.astype("f8") for a in (x, weight, bias)]
    for arrays in ((x, weight, bias), (x[:2].copy(), weight, bias), double):
        normed(*arrays)
    run_compiled(norm.batch_norm, builder_of(norm.batch_norm), x, weight, bias, eps=1e-3)
    assert len(call_cache) == 4 and list(call_cache.values()).count(False) == 1
    assert normed(*double) is NotImplemented and len(call_cache) == 4


def test_cache_keeps_no_array_alive(call_cache):
    given = images(0)
    watched = [weakref.ref(a) for a in (*given, *normed(*given))]
    del given
    gc.collect()
    assert call_cache and not any(one() is not None for one in watched)


def test_overlapping_arrays_move_together_and_strided_ones_are_copied(call_cache):
    x = np.arange(64, dtype="f4") - 30
    op, builder = activation.relu6_grad, builder_of(activation.relu6_grad)
    wanted = CALLS[op](x[:32], x[32:])
    assert np.array_equal(run_compiled(op, builder, x[:32], x[32:]), wanted) and len(call_cache) == 1
    wanted = CALLS[op](x, x)
    for y in (x, x.copy()):
        assert np.array_equal(run_compiled(op, builder, y, y), wanted) and len(call_cache) == 2
    for y in (x, x[::-1].copy()):
        for first, second in ((y[:48], y[16:]), (y[16:], y[:48]), (y[:48], y[8:56])):
            assert np.array_equal(run_compiled(op, builder, first, second), CALLS[op](first, second))
    assert len(call_cache) == 5
    assert np.array_equal(run_compiled(op, builder, x[::2], x[1::2]), CALLS[op](x[::2], x[1::2]))
    given = x.copy()
    assert run_compiled(op, builder, given, x, out=given) is given and np.array_equal(given, wanted)


def test_cached_call_accepts_one_array_twice():
    op, builder, x = activation.relu6_grad, builder_of(activation.relu6_grad), np.arange(64, dtype="f4") - 30
    for y in (x.copy(), x):
        assert np.array_equal(run_compiled(op, builder, x, y), CALLS[op](x, y))


def test_unhashable_argument_is_not_cached(call_cache):
    x = images(0, (2, 3, 4, 4))[0]
    window = dict(kernel_size=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1], ceil_mode=False)
    y, _ = run_compiled(pool.max_pool2d, builder_of(pool.max_pool2d), x, **window)
    assert np.array_equal(y, x.reshape(2, 3, 2, 2, 2, 2).max((3, 5))) and not call_cache


def test_refusal_is_not_cached(call_cache):
    op, g = pool.max_pool2d_grad, np.ones((1, 1, 2, 2), "f4")
    for index, fits in ((0, True), (16, False), (15, True)):
        found = run_compiled(op, builder_of(op), g, np.full((1, 1, 2, 2), index), shape=(1, 1, 4, 4), apart=False)
        assert (found is not NotImplemented) == fits and (not fits or found.flat[index] == 4)
    assert len(call_cache) == 1


def test_larger_workspace_invalidates_cache(call_cache, monkeypatch):
    small, large = images(0), images(1, (64, 40, 4, 4))
    normed(*small)
    before = eager.CALL_CACHE.memory
    normed(*large)
    assert eager.CALL_CACHE.memory.nbytes > before.nbytes and len(call_cache) == 1
    before[:] = 0
    assert equal(normed(*small), fresh(monkeypatch, *small)) and equal(normed(*large), fresh(monkeypatch, *large))


@instruction
def nested(chunk, scratch, table, out):
    """Do nothing: only its builder is tested."""


def test_nested_call_has_its_own_tasks(call_cache, monkeypatch):
    """As when a signal handler calls the same operation while pointers are written."""
    given, other, inner = images(0), images(1), []
    normed(*given)
    usual = eager.CachedCall.__call__

    def interrupted(self, arrays):
        if not inner:
            inner.append(None)
            inner[0] = normed(*other)
        return usual(self, arrays)

    monkeypatch.setattr(eager.CachedCall, "__call__", interrupted)
    found = normed(*given)
    monkeypatch.undo()
    assert equal(found, fresh(monkeypatch, *given)) and equal(inner[0], fresh(monkeypatch, *other))


def test_pointer_array_is_not_cached(call_cache):
    """For a builder whose arguments contain an address in an unexpected place."""

    def builder(arrays, outs, workspace, **attrs):
        return [nested(1, np.array([arrays[0].ctypes.data]), *outs)]

    x = images(0)[0]
    run_compiled(activation.relu6, builder, x)
    assert not call_cache


def test_cache_is_per_thread(call_cache, monkeypatch):
    wanted = [fresh(monkeypatch, *images(seed)) for seed in range(4)]

    def run(seed):
        given = images(seed)
        return all(equal(normed(*given), wanted[seed]) for _ in range(200))

    assert all(run_in_threads(4, run)) and not call_cache


def test_cache_size_is_bounded(call_cache, monkeypatch):
    monkeypatch.setattr(eager, "MOST", 3)
    for n in range(1, 6):
        normed(*images(0, (n, 20, 3, 3)))
        assert len(call_cache) <= 3


def test_strided_array_is_copied_if_the_builder_does_not_support_it(on):
    """The gradient of a sum, or of a transposed result; a composite op would otherwise run its decomposition again."""
    x = flow.randn(64, 300, requires_grad=True)
    weight = flow.randn(300, requires_grad=True)
    y = flow.nn.functional.layer_norm(x, (300,), weight)
    seen = {}
    with observed(lambda op, platform, arrays, result: seen.setdefault(op.name, platform)):
        grads = flow.autograd.grad(y.sum(), [x, weight], retain_graph=True)
    assert seen["layer_norm_grad"] == "compiled"
    contiguous = flow.autograd.grad(y, [x, weight], flow.ones(64, 300), retain_graph=True)
    assert all(flow.equal(a, b) for a, b in zip(grads, contiguous))
    seen.clear()
    with observed(lambda op, platform, arrays, result: seen.setdefault(op.name, platform)):
        transposed = flow.autograd.grad(y.T, [x, weight], flow.ones(300, 64))
    assert seen["layer_norm_grad"] == "compiled"
    assert all(flow.equal(a, b) for a, b in zip(transposed, contiguous))


def test_interleaved_views_of_one_array_are_cached(on, call_cache, monkeypatch):
    """Queries, keys and values are often parts of one product."""
    built, attend = [], flow.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(eager, "new_call", lambda *args, call=eager.new_call: built.append(1) or call(*args))
    products = [flow.randn(2, 40, 96) for _ in range(3)]
    inputs = [[part.view(2, 40, 4, 8).transpose(1, 2) for part in x.split(32, dim=2)] for x in products]
    results = [attend(*parts) for parts in inputs]
    assert len(built) == 1
    for parts, found in zip(inputs, results):
        assert abs(found.numpy() - attend(*[part.double() for part in parts]).numpy()).max() < 1e-5
