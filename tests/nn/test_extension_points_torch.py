"""Programs that extend modules and optimizers as PyTorch allows: each gives the same values in both libraries."""

import copy
from collections import OrderedDict
from importlib import import_module

import pytest

import minflow as flow
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch


def linear(lib, inputs=3, outputs=2):
    layer = lib.nn.Linear(inputs, outputs)
    with lib.no_grad():
        layer.weight.copy_(lib.arange(inputs * outputs).reshape(outputs, inputs).float() / 10)
        layer.bias.fill_(0.5)
    return layer


def batch(lib, *shape):
    return (lib.arange(float(lib.ones(shape).numel())).reshape(shape) - 2) / 5


def hidden_layers(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self._layers = [linear(lib)]

    net = Net()
    net.zero_grad()
    return list(net.parameters()), list(net.requires_grad_().state_dict())


def optimizer_of_lazy_layers(lib):
    net = lib.nn.Sequential(lib.nn.LazyConv2d(4, 3), lib.nn.LazyBatchNorm2d(), lib.nn.Flatten(), lib.nn.LazyLinear(2))
    optimizer = lib.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        net(batch(lib, 5, 3, 4, 4)).sum().backward()
        optimizer.step()
    return [tuple(p.shape) for p in optimizer.param_groups[0]["params"]], len(optimizer.state)


def step_before_the_first_call(lib):
    optimizer = lib.optim.SGD(lib.nn.LazyLinear(4).parameters(), lr=0.1)
    optimizer.zero_grad()
    optimizer.step()
    return len(optimizer.state_dict()["state"])


def hook_dicts(lib):
    layer, log = linear(lib), []
    hook = layer.register_forward_hook(lambda *args: log.append(len(args)))
    known = hook.id in layer._forward_hooks, len(layer._forward_pre_hooks), len(layer._backward_hooks)
    copy.deepcopy(layer)(batch(lib, 2, 3))
    layer._forward_hooks.clear()
    layer(batch(lib, 2, 3))
    layer._forward_pre_hooks[7] = lambda module, args: log.append("pre")
    layer(batch(lib, 2, 3))
    layer._forward_pre_hooks = OrderedDict()
    layer(batch(lib, 2, 3))
    return known, log


def hooks_with_options(lib):
    layer, log = linear(lib), []
    layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"input": kwargs["input"] * 2}), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, kwargs, out: log.append(sorted(kwargs)), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, out: log.append("first"), prepend=True)
    return layer(input=batch(lib, 2, 3)), log


def always_called(lib):
    class Broken(lib.nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    log, broken = [], Broken()
    broken.register_forward_hook(lambda m, args, out: log.append(out), always_call=True)
    with pytest.raises(ValueError, match="broken"):
        broken(batch(lib, 2))
    return log


def blocks_of_transformers(lib):
    """Subclasses call and override the blocks of the layers."""

    class Doubling(lib.nn.TransformerDecoderLayer):
        def _ff_block(self, x):
            return 2 * super()._ff_block(x)

        def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
            return super()._mha_block(x, mem, attn_mask, key_padding_mask, is_causal) - 1

    encoder, decoder = lib.nn.TransformerEncoderLayer(4, 2, 8, 0.0), Doubling(4, 2, 8, 0.0)
    for layer in (encoder, decoder):
        for p in layer.parameters():
            p.data.fill_(0.25)
        layer.linear2.bias.data.copy_(batch(lib, 4))
    x, mask = batch(lib, 3, 2, 4), lib.ones(3, 3).triu(1).bool()
    return encoder._sa_block(x, mask, None), encoder._ff_block(x), encoder(x, mask), decoder(x, x + 1, mask)


def attributes_of_programs(lib):
    """Names that programs give to attributes of their own modules."""

    class Net(lib.nn.Module):
        _name = "net"

        def __init__(self):
            super().__init__()
            self.hooks, self.rename, self.discard, self.named_tensors, self._compute = [], 1, 2, 3, 4
            self.check_name = self.bind_module = self.get_tensor = self.child_name = self._hooks = 5
            self.layer = lib.nn.Linear(2, 2)
            self.register_buffer("total", lib.zeros(2))
            self.hooks.append(self.layer.register_forward_hook(lambda module, args, out: 2 * out))

        def forward(self, x):
            return self.layer(x) + self.total

    net = Net()
    with_hook, names = net(batch(lib, 2)), [name for name, _ in net.named_parameters()]
    net.hooks.pop().remove()
    return (with_hook - 2 * net(batch(lib, 2))).abs().sum().item(), names, net._name, "hooks" in repr(net)


def registration_hooks(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = lib.nn.Linear(2, 2)
            self.register_buffer("mask", lib.ones(2))
            self.scale = lib.nn.Parameter(lib.ones(1))
            self.add_module("act", lib.nn.ReLU())

    log, every = [], lib.nn.modules.module
    handles = [
        every.register_module_parameter_registration_hook(lambda m, name, p: log.append(f"parameter {name}")),
        every.register_module_buffer_registration_hook(lambda m, name, b: b * 3),
        every.register_module_module_registration_hook(lambda m, name, new: log.append(f"module {name}")),
    ]
    try:
        net = Net()
    finally:
        for handle in handles:
            handle.remove()
    return log, net.mask, len(list(Net().parameters()))


def initialized_mixin(lib):
    class Mixin:
        def __init__(self, width):
            self.width = width

    class Net(lib.nn.Module, Mixin):
        call_super_init = True

        def __init__(self):
            super().__init__(width=3)

    return Net().width


def positional_state_dict(lib):
    class Net(lib.nn.Linear):
        def state_dict(self, destination=None, prefix="", keep_vars=False):
            return super().state_dict(destination, prefix, keep_vars)

    return list(lib.nn.Sequential(Net(2, 1)).state_dict(prefix="a."))


def skipped_names(lib):
    result = linear(lib).load_state_dict({"weight": lib.ones(2, 3), "z": lib.ones(1)}, strict=False)
    return repr(result), result.missing_keys, result.unexpected_keys


def transient_buffers(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", lib.ones(1), persistent=False)
            self.b = lib.nn.Buffer(lib.ones(2))

    return list(Net().state_dict()), Net()._non_persistent_buffers_set


def recurrent_weights(lib):
    lstm, gru = lib.nn.LSTM(3, 4, num_layers=2, bidirectional=True), lib.nn.GRU(3, 4, bias=False)
    lstm._flat_weights = [getattr(lstm, name) for name in lstm._flat_weights_names]
    lstm.flatten_parameters()
    shapes = [tuple(w.shape) for w in lstm._flat_weights]
    return lstm._flat_weights_names, lstm._all_weights, shapes, gru._flat_weights_names, len(gru.all_weights)


def loaded_bfloat16(lib):
    layer = linear(lib).to(lib.bfloat16)
    other = linear(lib).to(lib.bfloat16)
    with lib.no_grad():
        other.weight.mul_(2)
    layer.load_state_dict(other.state_dict())
    assigned = lib.nn.Linear(3, 2)
    assigned.load_state_dict(other.state_dict(), assign=True)
    return layer.weight.float(), assigned.weight.dtype is lib.bfloat16


def copied_step(lib):
    optimizers = import_module(f"{lib.__name__}.optim.optimizer")

    class Plain(lib.optim.Optimizer):
        def __init__(self, params, lr=optimizers.required, differentiable=False):
            super().__init__(params, dict(lr=lr, differentiable=differentiable))

        @optimizers._use_grad_for_differentiable
        def step(self, closure=None):
            self._cuda_graph_capture_health_check()
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-optimizers._get_value(group["lr"]))

    layer = linear(lib)
    layer(batch(lib, 2, 3)).sum().backward()
    Plain(layer.parameters(), lr=0.1).step()
    return layer.weight


def operators_with_gradients(lib):
    @lib.library.custom_op("points::power", mutates_args=())
    def power(x: lib.Tensor, n: float = 2.0, *, scale: float = 1.0) -> lib.Tensor:
        return lib.from_numpy(x.detach().numpy() ** n * scale)

    @power.register_fake
    def _(x, n=2.0, *, scale=1.0):
        return lib.empty_like(x)

    def setup(ctx, inputs, keyword_only_inputs, output):
        x, ctx.n = inputs
        ctx.scale, ctx.flags = keyword_only_inputs["scale"], ctx.needs_input_grad
        ctx.save_for_backward(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.scale * ctx.n * x ** (ctx.n - 1), None

    power.register_autograd(backward, setup_context=setup)
    x = batch(lib, 3).requires_grad_()
    out = power(x, n=3.0, scale=2.0)
    out.sum().backward()
    (first,) = lib.autograd.grad(lib.ops.points.power(x).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    return out, x.grad, first, second, lib.ops.points.power.default(x.detach())


def operators_of_lists(lib):
    @lib.library.custom_op("points::join", mutates_args=())
    def join(parts: list[lib.Tensor], other: lib.Tensor) -> tuple[lib.Tensor, lib.Tensor]:
        return lib.stack([p + other for p in parts]).sum(0), other * 2

    lib.library.register_autograd("points::join", lambda ctx, a, b: ([a, a * 2], a * 3 + b))
    xs = [batch(lib, 2).requires_grad_(), batch(lib, 2), batch(lib, 2).requires_grad_()]
    one, two = join(xs[:2], xs[2])
    (one * 2 + two).sum().backward()
    return one, two, xs[0].grad, xs[2].grad


def operators_in_place(lib):
    @lib.library.custom_op("points::double_", mutates_args={"x"})
    def double_(x: lib.Tensor) -> None:
        x.mul_(2)

    x = batch(lib, 3)
    return double_(x), x


def defined_operators(lib):
    lib.library.define("points2::quad", "(Tensor x) -> Tensor")
    lib.library.impl("points2::quad", "cpu", lambda x: x * 4)
    library = lib.library.Library("points3", "DEF")
    library.define("triple(Tensor x) -> Tensor")
    library.impl("triple", lambda x: x * 3, "CPU")
    return lib.ops.points2.quad(batch(lib, 2)), lib.ops.points3.triple(batch(lib, 2))


def operator_without_gradient(lib):
    @lib.library.custom_op("points::plain", mutates_args=(), device_types="cpu")
    def plain(x: lib.Tensor) -> lib.Tensor:
        return x * 2

    out = plain(batch(lib, 2).requires_grad_())
    with pytest.raises(RuntimeError):
        out.sum().backward()
    return out.requires_grad, out


def packed_tensors(lib):
    sizes = []

    def pack(tensor):
        sizes.append(tuple(tensor.shape))
        return tensor.numpy().copy()

    x = batch(lib, 3).requires_grad_()
    with lib.autograd.graph.saved_tensors_hooks(pack, lib.from_numpy):
        out = x.exp().sum()
    out.backward()
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2):
        doubled = x.exp()
        with lib.autograd.graph.save_on_cpu():
            plain = x.exp()
    (first,) = lib.autograd.grad(doubled.sum(), x)
    (second,) = lib.autograd.grad(plain.sum(), x)
    return sizes, x.grad, first, second


def written_after_a_save(lib):
    x = batch(lib, 3).requires_grad_()
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        a = x * 1
        out = a * a
        a.zero_()
        out.sum().backward()
    return x.grad


def hooks_of_the_tape_disabled(lib):
    with lib.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        with lib.autograd.graph.save_on_cpu():
            pass


def several_gradients(lib):
    a, b, c = [batch(lib, 3).requires_grad_() for _ in range(3)]
    log, hook = [], lib.autograd.graph.register_multi_grad_hook
    every = hook([a, b, c], lambda grads: log.append([g is not None for g in grads]))
    first = hook([a, b], lambda g: log.append(round(g.sum().item(), 4)), mode="any")
    (a * b).sum().backward()
    (a * b * c).sum().backward()
    every.remove()
    first.remove()
    (a * b).sum().backward()
    return log


def edges(lib):
    x = batch(lib, 3).requires_grad_()
    out, before = x.exp(), x._version
    edge = lib.autograd.graph.get_gradient_edge(out)
    lib.autograd.graph.increment_version(x)
    return (
        isinstance(out.grad_fn, lib.autograd.graph.Node),
        edge.output_nr,
        edge.node == out.grad_fn,
        x._version - before,
    )


def copied_methods(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = linear(lib)
            self.run, self.total = self.half, (self.fc.weight * 2).sum

        def half(self, x):
            return self.fc(x) / 2

        def forward(self, x):
            return self.run(x)

    twin = copy.deepcopy(Net())
    with lib.no_grad():
        twin.fc.weight.zero_()
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(twin.fc.weight * 2)
    return twin(batch(lib, 1, 3)), twin.total(), copy.deepcopy(batch(lib, 3).sum)()


def wrapped_optimizers(lib):
    class Wrapper(lib.optim.Optimizer):
        def __init__(self, optimizer):
            self.optimizer, self.defaults = optimizer, optimizer.defaults
            self.param_groups, self.state = optimizer.param_groups, {}

        def step(self, closure=None):
            return self.optimizer.step(closure)

    layer = linear(lib)
    wrapper = Wrapper(lib.optim.SGD(layer.parameters(), lr=0.1))
    schedule = lib.optim.lr_scheduler.StepLR(wrapper, 1, 0.5)
    for _ in range(2):
        wrapper.zero_grad()
        layer(batch(lib, 2, 3)).sum().backward()
        wrapper.step()
        schedule.step()
    return layer.weight, schedule.get_last_lr()


def kinds_of_errors(lib):
    layer, optimizer = linear(lib), lib.optim.SGD(linear(lib).parameters(), lr=0.1)
    for wrong in [
        lambda: setattr(layer, "weight", lib.ones(2)),
        lambda: layer.register_parameter("x", lib.ones(1)),
        lambda: layer.add_module("x", 3),
        lambda: layer.register_buffer("x", 3),
        lambda: lib.nn.Sequential(3),
        lambda: lib.optim.SGD(layer.weight, lr=0.1),
        lambda: lib.optim.SGD([1, 2], lr=0.1),
        lambda: optimizer.add_param_group([layer.weight]),
    ]:
        with pytest.raises(TypeError):
            wrong()
    for wrong in [lambda: layer.register_buffer("weight", lib.ones(1)), lambda: layer.register_parameter("a.b", None)]:
        with pytest.raises(KeyError):
            wrong()


def prefix_of_a_state(lib):
    state = lib.nn.Sequential(OrderedDict(module=linear(lib))).state_dict()
    lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return list(state), sorted(state._metadata)


PROGRAMS = [
    copied_methods,
    wrapped_optimizers,
    kinds_of_errors,
    prefix_of_a_state,
    packed_tensors,
    written_after_a_save,
    hooks_of_the_tape_disabled,
    several_gradients,
    edges,
    operators_with_gradients,
    operators_of_lists,
    operators_in_place,
    defined_operators,
    operator_without_gradient,
    hidden_layers,
    optimizer_of_lazy_layers,
    step_before_the_first_call,
    hook_dicts,
    hooks_with_options,
    always_called,
    attributes_of_programs,
    blocks_of_transformers,
    registration_hooks,
    initialized_mixin,
    positional_state_dict,
    skipped_names,
    transient_buffers,
    recurrent_weights,
    loaded_bfloat16,
    copied_step,
]


def plain(value):
    """Numbers, strings and tuples of a result, for a comparison."""
    if isinstance(value, list | tuple):
        return tuple([plain(x) for x in value])
    return [round(x, 5) for x in value.detach().flatten().tolist()] if hasattr(value, "detach") else value


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_both_libraries_agree(program):
    assert plain(program(flow)) == plain(program(torch))


def test_weights_of_a_torch_module_are_loaded():
    for theirs in (torch.nn.Linear(3, 2), torch.nn.Linear(3, 2).bfloat16(), torch.nn.Linear(3, 2).double()):
        mine = flow.nn.Linear(3, 2)
        mine.load_state_dict(theirs.state_dict())
        assert mine.weight.tolist() == theirs.weight.float().tolist() and mine.weight.dtype is flow.float32
        mine.load_state_dict(dict(theirs.named_parameters()), assign=True)
        assert str(mine.bias.dtype).partition(".")[2] == str(theirs.bias.dtype).partition(".")[2]
    norm = flow.nn.Sequential(flow.nn.BatchNorm1d(3))
    found = norm.load_state_dict({"0.running_mean": torch.arange(3.0), "x": torch.ones(1)}, strict=False)
    assert norm[0].running_mean.tolist() == [0, 1, 2] and found.unexpected_keys == ["x"]


@pytest.mark.parametrize("lib", [flow, torch], ids=["minflow", "torch"])
def test_an_optimizer_of_nothing_is_refused(lib):
    for params in ([], lib.nn.ReLU().parameters()):
        with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
            lib.optim.SGD(params, lr=0.1)
    assert len(lib.optim.SGD([{"params": []}], lr=0.1).param_groups) == 1


class Doubled:
    """Wrapper of a tensor that functions see as twice the tensor; `called` lists the functions."""

    def __init__(self, tensor, lib):
        self.tensor, self.lib, self.called = tensor, lib, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.called.append((func, types))
        if func is self.lib.numel:
            return NotImplemented

        def inner(x):
            return 2 * x.tensor if isinstance(x, Doubled) else [inner(y) for y in x] if isinstance(x, list) else x

        return func(*map(inner, args), **{name: inner(x) for name, x in (kwargs or {}).items()})


@pytest.mark.parametrize("lib", [flow, torch], ids=["minflow", "torch"])
def test_torch_function(lib):
    x, doubled, F = batch(lib, 2, 2), Doubled(lib.ones(2, 2), lib), lib.nn.functional
    assert lib.sum(doubled, dim=0).tolist() == [4, 4] and lib.cat([doubled, x]).shape == (4, 2)
    assert doubled.called == [(lib.sum, (Doubled,)), (lib.cat, (Doubled,))]
    for got, expected in (
        (x + doubled, x + 2),
        (x * doubled, x * 2),
        (x @ doubled, x @ (2 * lib.ones(2, 2))),
        (x < doubled, x < 2),
        (lib.exp(doubled), lib.exp(2 * lib.ones(2, 2))),
        (lib.add(x, other=doubled), x + 2),
        (x.sub(doubled), x - 2),
        (F.linear(x, weight=doubled, bias=None), x @ (2 * lib.ones(2, 2))),
        (F.mse_loss(doubled, x), F.mse_loss(2 * lib.ones(2, 2), x)),
    ):
        assert got.tolist() == expected.tolist()
    functions = [func for func, _ in doubled.called]
    assert lib.matmul in functions or lib.Tensor.matmul in functions
    with pytest.raises(TypeError):
        lib.numel(doubled)
    with pytest.raises(TypeError):
        x + object()
