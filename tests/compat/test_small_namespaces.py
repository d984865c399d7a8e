"""Small namespaces of PyTorch: trees, windows, timers, choice of attention kernels, and helpers of programs."""

import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import CallError, FileError, MissingNameError, OutOfRangeError, ShapeError, StateError
from minflow.distributed import nn as collectives
from minflow.nn.attention import SDPBackend, flex_attention as flex, sdpa_kernel
from minflow.utils import _pytree as pytree, benchmark


def test_registered_containers():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], "context"), lambda children, context: Pair(*children))
    doubled = pytree.tree_map(lambda x: x * 2, {"pair": Pair(flow.ones(2), [3])})
    assert doubled["pair"].a.tolist() == [2, 2] and doubled["pair"].b == [6]
    assert "Pair" in repr(pytree.tree_structure(doubled)) and "context" in repr(pytree.tree_structure(doubled))
    with pytest.raises(CallError, match="Pair is registered already"):
        pytree.register_pytree_node(Pair, list, Pair)
    with pytest.raises(CallError, match="1 leaves for a structure with 2"):
        pytree.tree_unflatten([1], pytree.tree_structure([1, 2]))
    with pytest.raises(CallError, match="a dict of 1 in the first"):
        pytree.tree_map(lambda a, b: a, {"a": 1}, {"b": 1})
    with pytest.raises(CallError, match="a list of 2 in the first"):
        pytree.tree_map(lambda a, b: a, [1, 2], [1])


def test_windows_refuse():
    with pytest.raises(OutOfRangeError, match="a is empty"):
        flow.signal.windows.general_cosine(4, a=[])
    with pytest.raises(OutOfRangeError, match="'periodic'"):
        flow.signal.windows.hann(4, periodic=True)
    with pytest.raises(OutOfRangeError, match="std must be above 0, got 0"):
        flow.signal.windows.gaussian(4, std=0)
    assert flow.signal.windows.hann(4, requires_grad=True, dtype=flow.float64).requires_grad


def test_choice_of_attention_kernels():
    q = flow.ones(1, 2, 3, 4)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        assert nn.functional.scaled_dot_product_attention(q, q, q).shape == q.shape
    with pytest.raises(OutOfRangeError, match="SDPBackend"), sdpa_kernel("flash"):
        pass


def test_masks_of_flex_attention():
    causal = lambda b, h, q, kv: q >= kv
    near = lambda b, h, q, kv: q - kv < 2
    mask = flex.create_mask(flex.and_masks(causal, near), 1, 1, 3, 3)
    assert mask[0, 0].tolist() == [[True, False, False], [True, True, False], [False, True, True]]
    either = flex.create_block_mask(flex.or_masks(causal, near), 2, None, 3, 3)
    assert either.shape == (2, 1, 3, 3) and either.sparsity() == 0 and "3" in repr(either)
    nothing = flex.create_block_mask(lambda b, h, q, kv: (q > 0) & (kv >= 0), None, None, 3, 3)
    x = flow.ones(1, 1, 3, 2, requires_grad=True)
    out = flex.flex_attention(x, x, x, block_mask=nothing)
    out.sum().backward()
    assert out[0, 0].tolist() == [[0, 0], [1, 1], [1, 1]] and flow.isfinite(x.grad).all()
    with pytest.raises(ShapeError, match="batch, heads, steps, features"):
        flex.flex_attention(x[0], x[0], x[0])
    causal_out = flex.flex_attention(x, x * 2, x, block_mask=flex.create_block_mask(causal, None, None, 3, 3))
    assert flow.allclose(causal_out, nn.functional.scaled_dot_product_attention(x, x * 2, x, is_causal=True))


def test_timer():
    calls = []
    timer = benchmark.Timer(
        "f(x)", globals={"f": calls.append, "x": 1}, label="append", sub_label="one", description="list"
    )
    found = timer.timeit(200)
    assert len(calls) == 202 and found.number_per_run == 200 and len(found.raw_times) == 1
    assert found.median == found.mean == found.raw_times[0] / 200 and found.title == "append: one"
    blocks = timer.blocked_autorange(min_run_time=0.01)
    assert sum(blocks.raw_times) >= 0.01 and "runs per measurement, 1 thread" in repr(blocks)
    merged = benchmark.Measurement.merge([found, blocks])
    assert len(merged) == 1 and len(merged[0].times) == 1 + len(blocks.times)
    assert timer.adaptive_autorange(threshold=10.0, max_run_time=60.0).meets_confidence(10.0)
    spec = found.task_spec._replace(description="other", num_threads=2)
    table = str(benchmark.Compare([found, benchmark.Measurement(1, [2.0, 4.0], spec)]))
    assert "list" in table and "other" in table and "2 threads:" in table and "append" in table
    assert benchmark.select_unit(2e-5) == ("us", 1e-6)
    with pytest.raises(StateError, match="not counted"):
        timer.collect_callgrind()
    with pytest.raises(OutOfRangeError, match="only Python"):
        benchmark.Timer("x", language="c++")


def test_unequal_quartiles():
    measured = benchmark.Measurement(1, [1.0, 2.0, 3.0, 4.0, 5.0], benchmark.TaskSpec("pass"))
    assert measured.iqr == 2 and measured.median == 3 and not measured.meets_confidence(0.5)


def test_weights_by_their_url(tmp_path, monkeypatch):
    from minflow.hub import get_dir, load_state_dict_from_url, set_dir
    from minflow.utils.model_zoo import load_url

    url = "https://example.org/models/net-1234.pth?download=1"
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert get_dir() == str(tmp_path / "hub")
    with pytest.raises(FileError, match="nothing is downloaded") as caught:
        load_url(url)
    assert str(tmp_path / "hub" / "checkpoints" / "net-1234.pth") in caught.value.hint
    set_dir(str(tmp_path / "files"))
    (tmp_path / "files" / "checkpoints").mkdir(parents=True)
    flow.save({"weight": flow.ones(2)}, tmp_path / "files" / "checkpoints" / "net-1234.pth")
    assert load_state_dict_from_url(url, progress=False, map_location="cpu")["weight"].tolist() == [1, 1]
    flow.hub.DIRECTORY.clear()
    with pytest.raises(MissingNameError, match="has no load"):
        flow.hub.load


@pytest.mark.parametrize(
    "home, base, layer, other",
    [
        ("conv", "_ConvNd", nn.Conv2d, nn.Linear),
        ("conv", "_ConvNd", nn.ConvTranspose1d, nn.Linear),
        ("conv", "_ConvTransposeNd", nn.ConvTranspose2d, nn.Conv2d),
        ("pooling", "_MaxPoolNd", nn.MaxPool2d, nn.AvgPool2d),
        ("pooling", "_AvgPoolNd", nn.AvgPool2d, nn.MaxPool2d),
        ("pooling", "_AdaptiveAvgPoolNd", nn.AdaptiveAvgPool1d, nn.AdaptiveMaxPool1d),
        ("pooling", "_AdaptiveMaxPoolNd", nn.AdaptiveMaxPool1d, nn.AdaptiveAvgPool1d),
        ("pooling", "_MaxUnpoolNd", nn.MaxUnpool2d, nn.MaxPool2d),
        ("dropout", "_DropoutNd", nn.Dropout2d, nn.Linear),
        ("padding", "_ConstantPadNd", nn.ConstantPad1d, nn.ReflectionPad1d),
        ("batchnorm", "_LazyNormBase", nn.LazyBatchNorm1d, nn.BatchNorm1d),
    ],
)
def test_private_base_classes(home, base, layer, other):
    kind = getattr(getattr(nn.modules, home), base)
    assert issubclass(layer, kind) and not issubclass(other, kind)


def test_frozen_batch_norm():
    from minflow.vision.ops import FrozenBatchNorm2d

    trained = nn.BatchNorm2d(3)
    trained(flow.randn(4, 3, 5, 5) * 3 + 1)
    with flow.no_grad():
        trained.weight.add_(0.5)
    frozen = FrozenBatchNorm2d(3)
    frozen.load_state_dict(trained.state_dict())
    x = flow.randn(2, 3, 4, 4)
    assert flow.allclose(frozen(x), trained.eval()(x), atol=1e-5) and not list(frozen.parameters())
    assert repr(frozen) == "FrozenBatchNorm2d(3, eps=1e-05)"


def test_forked_generator():
    flow.manual_seed(0)
    expected = flow.rand(2)
    flow.manual_seed(0)
    with flow.random.fork_rng():
        flow.rand(5)
    assert flow.equal(flow.rand(2), expected)


def test_prefix_of_a_state():
    from minflow.nn.modules.utils import consume_prefix_in_state_dict_if_present

    state = nn.ModuleDict({"module": nn.Linear(2, 2)}).state_dict()
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"]
    nn.Linear(2, 2).load_state_dict(state)


def test_functions_in_autocast():
    seen = []

    class Square(flow.autograd.Function):
        @staticmethod
        @flow.amp.custom_fwd(device_type="cpu", cast_inputs=flow.bfloat16)
        def forward(ctx, x):
            seen.append((x.dtype, flow.is_autocast_enabled("cpu")))
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @flow.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append(flow.is_autocast_enabled("cpu"))
            return 2 * ctx.saved_tensors[0] * g

    class Plain(flow.autograd.Function):
        @staticmethod
        @flow.amp.custom_fwd
        def forward(ctx, x):
            return x * 1

        @staticmethod
        @flow.amp.custom_bwd
        def backward(ctx, g):
            seen.append(flow.is_autocast_enabled("cpu"))
            return g

    x = flow.ones(2, requires_grad=True)
    with flow.autocast("cpu"):
        y = Square.apply(x)
        z = Plain.apply(x)
    y.float().sum().backward()
    z.sum().backward()
    assert seen == [(flow.bfloat16, False), False, True]
    Square.apply(x)
    assert seen[-1] == (flow.float32, False)


def test_lazy_property():
    class Lazy:
        calls = 0

        @flow.distributions.utils.lazy_property
        def value(self):
            self.calls += 1
            return 3

    it = Lazy()
    assert (it.value, it.value, it.calls) == (3, 3, 1)


def test_collectives_with_gradients():
    """Each rank multiplies by rank + 1; the gradient of a sum over ranks reaches every rank."""

    def rank_of(rank):
        x = flow.tensor([1.0 + rank, 2.0], requires_grad=True)
        total = collectives.all_reduce(x)
        (total * (rank + 1)).sum().backward()
        grads = [x.grad.tolist()]
        for call in (
            lambda x: collectives.all_gather(x)[1],
            lambda x: collectives.broadcast(x, 0),
            lambda x: collectives.reduce_scatter(x[:1], [x[:1], x[1:]]),
            lambda x: collectives.all_to_all([flow.empty(1)] * 2, [x[:1], x[1:]])[0],
            lambda x: collectives.scatter([x[:1], x[1:]], 0),
            lambda x: collectives.gather(x, 0)[1],
            lambda x: collectives.reduce(x, 0) * (1 - rank),
            lambda x: collectives.all_to_all_single(flow.empty(2), x),
        ):
            x.grad = None
            out = call(x)
            (out * (rank + 1)).sum().backward()
            grads.append((out.tolist(), x.grad.tolist()))
        return total.tolist(), grads

    from minflow.distributed import get_rank

    with flow.virtual_ranks(2) as ranks:
        first, second = ranks.run(lambda: rank_of(get_rank()))
    assert first[0] == second[0] == [3, 4]
    assert first[1][0] == second[1][0] == [3, 3]
    assert second[1][1] == ([2, 2], [3, 3]) and first[1][1] == ([2, 2], [0, 0])
