"""Check where results are: `infer` decides it for every op, at the level of specs, since no GPU is needed for that."""

import contextlib
import re

import pytest

import minflow as flow
from minflow.core.autograd import grad
from minflow.core.dispatch import apply
from minflow.core.infer import data_dependent, infer, resolve, with_device
from minflow.core.ir import NUMBERS
from minflow.core.mode import using
from minflow.core.op import OPS
from minflow.core.ops import update, update_adaptive, update_moments  # noqa: F401  (define the ops of optimizers)
from minflow.core.ops.elementwise import add, where
from minflow.core.ops.examples import cases
from minflow.core.ops.index import ravel_index, take
from minflow.core.ops.reduce import sum as total
from minflow.core.ops.shape import cat, filled, full
from minflow.core.source_location import input_names
from minflow.core.spec import Device, Spec, cpu, float32, int64, spec_of
from minflow.core.trace import Trace
from tests.cases import Cases

cuda, second_gpu = Device("cuda"), Device("cuda:1")
WITH_EXAMPLES = [op for op in OPS.values() if op.examples and not op.moves]


def vector(device=cuda, dtype=float32) -> Spec:
    return Spec((3,), dtype, device)


def scalar(device=cpu, dtype=float32) -> Spec:
    return Spec((), dtype, device)


def calls(op):
    """(specs on the CPU, attrs) of each example of an op."""
    for example in cases(op):
        yield tuple([x.__class__ if x.__class__ in NUMBERS else spec_of(x) for x in example.arrays()]), example.attrs


def must_be_on_device(op, name: str, spec) -> bool:
    if not isinstance(spec, Spec) or (spec.ndim == 0 and not op.variadic):
        return False
    return name.partition("[")[0] not in (*op.host_inputs, *op.moved_inputs)


def with_numbers_on_host(op, outs) -> tuple:
    """Specs of results, with those on the CPU that replace an input which the op reads there."""
    return tuple([s.replace(device=cpu) if name in op.host_inputs else s for name, s in zip(op.outputs, outs)])


@pytest.mark.parametrize("op", WITH_EXAMPLES, ids=lambda op: op.name)
def test_results_are_on_the_device_of_the_inputs(op):
    for specs, attrs in calls(op):
        dtype, outs = resolve(op, specs, attrs)
        moved = with_device(specs, cuda)
        expected = outs if outs is None or moved == specs else with_device(outs, cuda)
        assert resolve(op, moved, attrs) == (dtype, expected and with_numbers_on_host(op, expected))


@pytest.mark.parametrize("op", WITH_EXAMPLES, ids=lambda op: op.name)
def test_each_input_on_another_device_is_refused_by_name(op):
    with Cases() as case:
        for specs, attrs in calls(op):
            names = list(input_names(op, specs))
            strict = [name for name, s in zip(names, specs) if must_be_on_device(op, name, s)]
            for k, (name, spec) in enumerate(zip(names, specs)):
                if not isinstance(spec, Spec):
                    continue
                mixed = [*with_device(specs, cuda)]
                mixed[k] = spec
                with case(f"{name} on the CPU, of {specs}"):
                    if name in strict and any(isinstance(s, Spec) for i, s in enumerate(specs) if i != k):
                        with pytest.raises(
                            flow.DeviceError, match=f"is on cuda:0, and {{{re.escape(name)}}} is on cpu"
                        ):
                            resolve(op, tuple(mixed), attrs)
                    elif any(isinstance(s, Spec) for i, s in enumerate(specs) if i != k):
                        outs = resolve(op, tuple(mixed), attrs)[1] or ()
                        assert outs == with_numbers_on_host(op, with_device(outs, cuda))


@pytest.mark.parametrize("specs", [(vector(cuda), vector(cpu)), (vector(cpu), vector(cuda))])
def test_either_order_of_two_devices_is_refused(specs):
    with pytest.raises(flow.DeviceError, match="add: {[ab]} is on cuda:0, and {[ab]} is on cpu:0"):
        resolve(add, specs, {})


@pytest.mark.parametrize(
    "op, specs",
    [
        (add, (vector(), scalar(cpu))),
        (add, (scalar(cpu), vector())),
        (add, (vector(), float)),
        (add, (scalar(cuda), scalar(cpu))),
        (where, (vector(dtype=flow.bool), scalar(cpu), scalar(cpu))),
        (where, (scalar(cpu, flow.bool), vector(), float)),
    ],
)
def test_numbers_and_0d_tensors_on_the_cpu_follow_the_other_inputs(op, specs):
    assert resolve(op, specs, {})[1][0].device is cuda


@pytest.mark.parametrize(
    "op, specs, attrs",
    [
        (add, (vector(cpu), scalar(cuda)), {}),  # only a 0-d tensor on the CPU counts as a number
        (add, (vector(cuda), scalar(second_gpu)), {}),
        (where, (vector(dtype=flow.bool), vector(cpu), scalar(cpu)), {}),
        (take, (vector(cpu), vector(cuda, int64)), {"axis": 0}),
        (cat, (vector(cuda), vector(cpu)), {"dim": 0}),
    ],
)
def test_other_mixtures_are_refused(op, specs, attrs):
    with pytest.raises(flow.DeviceError, match="cuda:0"):
        resolve(op, specs, attrs)


def test_an_index_on_the_cpu_is_accepted_on_any_device():
    assert resolve(take, (vector(cuda), vector(cpu, int64)), {"axis": 0})[1] == (vector(cuda),)
    assert resolve(ravel_index, (vector(cuda, int64), vector(cpu, int64)), {"shape": (3, 3)})[1][0].device is cuda
    assert resolve(ravel_index, (vector(cpu, int64),), {"shape": (3,)})[1][0].device is cpu


def test_without_tensors_the_rule_states_the_device():
    assert resolve(add, (int, float), {})[1][0].device is cpu
    attrs = {"shape": (3,), "value": 1.0, "dtype": float32}
    assert resolve(full, (), attrs)[1] == (vector(cpu),)
    assert resolve(full, (), attrs | {"device": cuda})[1] == (vector(cuda),)


def test_eager_code_makes_no_tensor_where_it_has_no_kernels():
    with using(Trace()):
        filled(vector(cuda), 1.0)  # the result of a trace is not taken from the cache
    for _ in range(2):
        with pytest.raises(flow.DeviceError, match="full: there is no device cuda:0 here"):
            filled(vector(cuda), 1.0)


# ---- whole programs, on symbols: a trace needs no arrays ------------------------------------------------------------


@pytest.fixture
def symbols():
    """(a vector on the GPU, a vector on the CPU, a scalar on the CPU), inside a trace."""
    mode = Trace()
    with using(mode):
        specs = Spec((2, 3), float32, cuda), Spec((2, 3), float32), scalar(cpu)
        yield [mode.symbol_of_input(spec, name) for spec, name in zip(specs, ("x", "y", "s"))]


def refused(program, *lines):
    with pytest.raises(flow.DeviceError) as caught:
        program()
    text = str(caught.value)
    for line in lines:
        assert line in text, text
    return caught.value


def test_the_error_has_four_parts(symbols):
    x, y, _ = symbols
    error = refused(
        lambda: x + y, "add: a is on cuda:0, and b is on cpu:0", "a  float32[2, 3] on cuda:0", "b  float32[2, 3]"
    )
    assert "test_devices.py" in error.where and error.hint == 'b.to("cuda:0")'
    assert refused(lambda: y * x).hint == 'a.to("cuda:0")'


def test_the_error_names_the_tensors_that_the_user_passed_before_they_are_cast(symbols):
    x, y, _ = symbols
    y = y.double()
    error = refused(lambda: x + y, "a is on cuda:0, and b is on cpu:0")
    assert "float64[2, 3]" in error.values["b"]


def test_a_program_stays_on_its_device(symbols):
    x, _, s = symbols
    results = [
        (x * 2 + s).relu(),
        x.T @ x,
        x[0],
        x[:, [0, 2]],
        x.sum(1),
        x == 1,
        x.double(),
        flow.cat([x, x]),
        x.topk(2)[1],
    ]
    assert {t.device for t in results} == {cuda}
    assert (s * 2).device is s.device is cpu


FUNCTIONS = {
    "angle": lambda x: flow.angle(x),
    "isreal": lambda x: flow.isreal(x),
    "isposinf": lambda x: flow.isposinf(x.long()),
    "vander": lambda x: flow.vander(x[0]),
    "vander, N=0": lambda x: flow.vander(x[0], 0),
    "block_diag": lambda x: flow.block_diag(x, x),
    "combinations": lambda x: flow.combinations(x[0], 0),
    "histogram": lambda x: flow.histogram(x, flow.sort(x[0])[0])[0],
    "mode": lambda x: flow.mode(x.sum())[1],
    "quantile": lambda x: flow.quantile(x, 0.3, interpolation="midpoint"),
    "matrix_power": lambda x: flow.linalg.matrix_power(x @ x.T, 0),
    "linalg.qr": lambda x: flow.linalg.qr(x, mode="r")[0],
    "svd": lambda x: flow.svd(x, compute_uv=False)[0],
    "lu": lambda x: flow.lu(x @ x.T, get_infos=True)[2],
    "bernoulli": lambda x: flow.bernoulli(x, 0.5),
    "fft": lambda x: flow.fft.fft(x, 8).real,
    "scatter": lambda x: flow.scatter(x, 0, x.long(), 1.5, reduce="add"),
    "scatter_reduce": lambda x: flow.scatter_reduce(x, 0, x.long(), x, "mean"),
    "masked_scatter": lambda x: flow.masked_scatter(x, x > 0, x),
    "diag_embed": lambda x: flow.diag_embed(x),
    "diag": lambda x: flow.diag(x[0]),
    "zeros_like": lambda x: flow.zeros_like(x),
    "ones_like": lambda x: flow.ones_like(x, dtype=flow.int64),
    "full_like": lambda x: flow.full_like(x, 2),
    "empty_like": lambda x: flow.empty_like(x),
    "new_zeros": lambda x: x.new_zeros(3),
    "new_ones": lambda x: x.new_ones(3),
    "new_full": lambda x: x.new_full((3,), 2),
    "new_empty": lambda x: x.new_empty(3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_create_tensors_on_the_device_of_their_input(name, symbols):
    assert FUNCTIONS[name](symbols[0]).device is cuda


def test_a_stack_of_0d_tensors_on_two_devices_is_refused(symbols):
    x, _, s = symbols
    refused(lambda: flow.stack([x.sum(), s]), "is on cuda:0, and tensors[1] is on cpu:0")


def test_a_write_in_place_stays_on_the_device_of_the_target(symbols):
    x, y, s = [t.clone() for t in symbols]
    assert x.add_(s) is x and x.device is cuda
    refused(lambda: x.add_(y), "a is on cuda:0, and b is on cpu:0")
    x.fill_(2.0)
    assert x.device is x._value.spec.device is cuda
    refused(lambda: s.add_(x.sum()), "add_: the result is on cuda:0, the tensor written is on cpu:0")
    for copy_to_device in (lambda: x.copy_(y), lambda: x[0].copy_(s)):  # copies between devices, as in PyTorch
        refused(copy_to_device, "there is no device cuda:0 here")


def test_out_must_be_on_the_device_of_the_result(symbols):
    x, y, _ = symbols
    error = refused(lambda: flow.add(x, x, out=y), "add: the result is on cuda:0, out is on cpu:0")
    assert error.hint == 'out=flow.empty((2, 3), device="cuda:0")'


DERIVATIVE_IS_REFUSED = set("igamma igammac zeta qr lu rnn_grad gru_grad lstm_grad lstm_projected_grad".split())
DIFFERENTIABLE = [op for op in WITH_EXAMPLES if op.differentiable and op.infer is not data_dependent]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_gradients_stay_on_the_device(op):
    """The rules of gradients create what they add on the device of their inputs."""
    refusals = (flow.GradError, flow.LinAlgError) if op.name in DERIVATIVE_IS_REFUSED else ()
    for specs, attrs in calls(op):
        mode = Trace()
        with using(mode), contextlib.suppress(*refusals):
            inputs = [symbol_or_number(mode, op, name, s) for name, s in zip(input_names(op, specs), specs)]
            leaves = [x for x in inputs if isinstance(x, flow.Tensor) and x._needs]
            results = apply(op, *inputs, **attrs)
            outputs = [t for t in (results if op.many else [results]) if t._needs]
            if outputs:
                seeds = [t.detach() * 2 for t in outputs]
                gradients = grad(outputs, leaves, seeds, allow_unused=True)
                assert {g.device for g in gradients if g is not None} <= {cuda}


def symbol_or_number(mode, op, name, spec):
    """An input of an op in a trace; one that can have a gradient needs it."""
    if not isinstance(spec, Spec):
        return spec(1)
    on_host = name.partition("[")[0] in op.host_inputs and not op.moves
    symbol = mode.symbol_of_input(spec if on_host else spec.replace(device=cuda), name)
    return symbol.detach().requires_grad_() if spec.floating else symbol


def test_results_are_cached_for_each_device():
    mode = Trace()
    with using(mode):
        x, y = [mode.symbol_of_input(vector(device)) for device in (cuda, cpu)]
        for _ in range(2):
            assert infer(total, (x,), {"axis": (0,), "keepdims": False})[1:] == ((scalar(cuda),), None)
            (spec,), kernel = infer(total, (y,), {"axis": (0,), "keepdims": False})[1:]
            assert spec is scalar(cpu) and kernel is not None  # specialized kernels are for the CPU
