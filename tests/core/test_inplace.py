"""In-place writes by rebinding, eager and traced."""

import numpy as np
import pytest
from programs import Compiled, both, check, f8, param

import minflow as flow
import minflow.nn.functional as F
from minflow.core.base.errors import DTypeError, GradError, MinflowWarning, ShapeError, TraceError
from minflow.core.functionalize import writes_of
from minflow.core.trace import Trace
from tests.cases import in_cases


def scaled_view(x):
    y = x * 2.0
    y[0].mul_(3.0)
    return y.sum()


def chained_view(x):
    y = x.reshape(2, 2) * 1.0
    y[0][1] = 8.0
    return (y * y).sum()


def residual(x):
    out = x * 3.0
    out += x * x
    return (out * out).sum()


def relu_after_view(x):
    y = x * 2.0
    first = y[0]
    y.relu_()
    return first * 5.0 + (y * y).sum()


def assigned(x, z):
    y = x * 2.0
    y[0] = z
    return (y * y).sum()


def column(x):
    h = x.reshape(2, 2) * x.reshape(2, 2)
    h[:, 0] = 0.0
    h.T[1].mul_(3.0)
    return h.exp().sum()


def masked(x):
    y = x * 2.0
    y[y > 3.0] = 0.0
    return (y * y).sum()


def listed(x):
    y = x * 1.0
    y[[0, 2]] = x[1] * 5.0
    return (y * y).sum()


def test_gradients():
    assert both(scaled_view, lambda: param(1, 2, 3)) == [[6, 2, 2]]
    assert both(chained_view, lambda: param(1, 2, 3, 4)) == [[2, 0, 6, 8]]
    assert both(residual, lambda: param(1, 2)) == [[40, 140]]
    assert both(relu_after_view, lambda: param(1, -2)) == [[18, 0]]
    assert both(relu_after_view, lambda: param(-1, 2)) == [[0, 16]]
    assert both(assigned, lambda: param(1, 2), lambda: flow.tensor(5.0, requires_grad=True)) == [[0, 16], 10]
    assert both(listed, lambda: param(1, 2, 3)) == [[0, 4 + 200, 0]]
    assert both(masked, lambda: param(1, 2, 3)) == [[8, 0, 0]]


@pytest.mark.parametrize("program", [scaled_view, residual, relu_after_view, column, listed])
def test_gradients_match_finite_differences(program):
    check(program, f8(4))


def test_view_sees_a_write_to_its_base():
    x = param(1, 2)
    y = x * 1.0
    head = y[0]
    y.mul_(7.0)
    assert float(head) == 7
    head.backward()
    assert x.grad.tolist() == [7, 0]


def test_item_assignment_program():
    x = flow.tensor([[1, 2, 3], [4, 5, 6]])
    assert x[1][2].item() == 6
    x[0][1] = 8
    assert x.tolist() == [[1, 8, 3], [4, 5, 6]]


def test_changed_saved_tensor_names_the_line_of_the_write():
    def blame(x):
        y = x.exp()
        loss = y.sum()
        y.mul_(2.0)
        loss.backward()

    with pytest.raises(GradError, match="exp: backward needs its result") as error:
        blame(param(1, 2))
    assert f"test_inplace.py:{blame.__code__.co_firstlineno + 3}" in str(error.value)
    assert "float32[2]" in str(error.value)


def test_leaf_cannot_be_written():
    x = param(1, 2)
    for write in (lambda: x.mul_(2.0), lambda: x.__setitem__(0, 1.0), lambda: Compiled(lambda: x.mul_(2.0))()):
        with pytest.raises(GradError, match=r"leaf  float32\[2\]"):
            write()
    with flow.no_grad():
        x.mul_(2.0)
    assert x.tolist() == [2, 4] and x.requires_grad


def test_write_to_a_graph_input_copies_it():
    def program(x):
        x[0] = 5.0
        x.mul_(2.0)
        return x.sum()

    x, graph = flow.tensor([1.0, 2.0]), Compiled(program)
    with pytest.warns(MinflowWarning, match=r"eager would change the caller's tensor[\s\S]*float32\[2\]") as told:
        assert graph(x)[0] == 14 == graph(x)[0] == float(program(x.clone()))
    assert len(told) == 1 and x.tolist() == [1, 2]


def test_write_must_fit_its_target():
    x = flow.tensor([1, 2])
    with pytest.raises(DTypeError, match="float32, which int64 cannot hold"):
        x.add_(0.5)
    with pytest.raises(ShapeError, match=r"shape \(3, 2\), the tensor written has \(2,\)"):
        flow.zeros(2).add_(flow.zeros(3, 2))
    with pytest.raises(ShapeError, match="repeated or read-only"):
        flow.zeros(1).expand(3).add_(1.0)
    assert x.tolist() == [1, 2]


@in_cases("written", [lambda x: x, lambda x: x.data])
def test_overlapping_operands(written):
    x = flow.arange(9).reshape(3, 3).float()
    want = x.numpy() + x.numpy().T
    written(x).add_(x.T)
    assert np.array_equal(x.numpy(), want)


def unrecorded_writes(x):
    h = x * 2.0
    with flow.no_grad():
        h.mul_(3.0)
    h.detach()[0] = 7.0
    return (h * h).sum() + (x.data * x).sum()


def test_writes_outside_the_tape():
    assert both(unrecorded_writes, lambda: param(1, 2)) == [[29, 50]]


OVERWRITES = {  # of elements computed from x that are replaced without being read
    "zero_": lambda y: y.zero_(),
    "fill_": lambda y: y.fill_(3.0),
    "fill_ of a view": lambda y: y[:].fill_(3.0),
    "an item": lambda y: y.__setitem__(slice(None), 3.0),
    "copy_": lambda y: y.copy_(flow.tensor([4.0, 5.0], dtype=flow.float64)),
    "copy_ of a transposed tensor": lambda y: y.copy_(flow.ones(2, 2, dtype=flow.float64).t()[0]),
    **{
        f"{name}_": lambda y, name=name: getattr(y, f"{name}_")()
        for name in ("uniform normal bernoulli random exponential cauchy log_normal logical_not").split()
    },
    "geometric_": lambda y: y.geometric_(0.5),
    **{f"{name}_": lambda y, name=name: getattr(y, f"{name}_")(0.5) for name in "eq ne lt le gt ge".split()},
    "logical_and_": lambda y: y.logical_and_(flow.ones(2)),
}


@pytest.mark.parametrize("name", OVERWRITES)
def test_overwritten_values_get_zero_gradient(name):
    """As in PyTorch: weight decay distinguishes a gradient of zeros from none."""

    def program(x):
        y = x * 2.0
        OVERWRITES[name](y)
        assert y.requires_grad and not y.is_leaf
        return y.sum()

    assert both(program, lambda: param(1, 2)) == [[0, 0]]


def test_gradient_flows_to_the_written_value():
    def program(x, z):
        y, first = x * 2.0, x * 3.0
        y.copy_(z)
        first[0].fill_(z.sum())
        return (y * y).sum() + first.sum()

    assert both(program, lambda: param(1, 2), lambda: param(3, 4)) == [[0, 3], [7, 9]]


def test_weight_decay_applies_to_overwritten_parameters():
    x = param(1, 2)
    optimizer = flow.optim.SGD([x], lr=1.0, weight_decay=0.5)
    (x * 2.0).zero_().sum().backward()
    optimizer.step()
    assert x.tolist() == [0.5, 1.0]


def written_by_data(x):
    y, w = x * 2.0, x * 3.0
    p = y * y + w[:1] * w[:1]
    y.data.mul_(10.0)
    y.data[1] = 7.0
    w[:1].data.add_(1.0)
    return p.sum() + (x * x.data.mul(2.0)).sum()


def test_write_through_data_bypasses_the_tape():
    """The gradient reads the current elements, and nothing is refused; in a graph too."""
    assert both(written_by_data, lambda: param(1, 2)) == [[4 * 20 + 2 * (6 * 4) + 2, 4 * 7 + 4]]
    x = param(1, 2)
    y = x * 2.0
    p = y * y
    y.detach().mul_(10.0)
    with pytest.raises(GradError, match="mul: backward needs b"):
        p.sum().backward()


def tracked_write_after_data(x):
    t = x * 2.0
    d = t.data
    with flow.no_grad():
        d.mul_(3.0)
    result = d * t.sum()
    t.unsqueeze(0).tanh_()
    return result.sum()


def test_backward_reads_data_that_a_tracked_write_changed():
    """As in PyTorch: the tape saves the array of `.data` without its version, and reads it when backward runs."""
    [found] = both(tracked_write_after_data, lambda: param(1, 2))
    np.testing.assert_allclose(found, 2 * sum(np.tanh([6.0, 12.0])) * np.ones(2), rtol=1e-6)


def reshaped_base(x):
    t = x * 2.0
    with flow.no_grad():
        view = t.reshape(2, 1)
        t.unsqueeze_(0)
        view.fill_(5.0)
    return (t * t).sum()


def test_view_follows_a_base_that_became_a_view_of_itself():
    assert both(reshaped_base, lambda: param(1, 2)) == [[20.0, 20.0]]


def test_writes_are_counted_also_through_data():
    """A comparison of a copy with its storage counts all writes; a tape uses the version."""
    x = flow.ones(3)
    row = x[1:]
    version, before = x._version_counter.version, writes_of(x)
    row.data.mul_(2.0)
    x.data.data.zero_()
    assert x._version_counter.version == version and writes_of(x) == writes_of(row) == writes_of(x.data) == before + 2
    row.detach().add_(1.0)
    assert x._version_counter.version == version + 1 and writes_of(x) == before + 3


def softmax_by_hand(x):
    e = x.exp()
    p = e / e.sum()
    p[0] = 0.0
    return (p * p).sum()


def bounded(x):
    y = F.relu6(x * 4.0)
    y.mul_(3.0)
    z = F.relu6(x * 4.0, inplace=True)
    z.mul_(2.0)
    return y.sum() + z.sum()


def layers_by_hand(x):
    y = [F.softsign(x), F.normalize(x, dim=0), x.mul(0.1).erfinv(), 2.0 / x, (x - x.mean()) / x.std()]
    for part in y:
        part.mul_(2.0)
    return sum([(part * part).sum() for part in y])


@pytest.mark.parametrize("program", [softmax_by_hand, bounded, layers_by_hand])
def test_unsaved_result_may_be_written(program):
    check(program, f8(4) + 2.0)


def test_recurrent_output_may_be_written():
    for kind in (flow.nn.LSTM, flow.nn.GRU, flow.nn.RNN):
        flow.manual_seed(0)
        layer, x = kind(3, 2), flow.randn(4, 1, 3)
        want = flow.autograd.grad((layer(x)[0] * 2.0).sum(), list(layer.parameters()))
        got = flow.autograd.grad(layer(x)[0].mul_(2.0).sum(), list(layer.parameters()))
        assert all(flow.equal(a, b) for a, b in zip(want, got))


def test_write_to_the_real_view_of_a_complex_result():
    def program(x):
        pairs = flow.view_as_real(flow.complex(x, x * 2.0))
        pairs.mul_(3.0)
        return (pairs * flow.tensor([1.0, 10.0], dtype=flow.float64)).sum()

    assert both(program, lambda: param(1, 2)) == [[63, 63]]


def test_bits_do_not_depend_on_strides_left_by_a_write():
    x = flow.tensor(np.random.default_rng(0).standard_normal((300, 70)).astype("f4"))

    def program():
        y = x.T * 1.0
        y.copy_((x * 3.0).T)
        return y.sum(0), y.sum(1)

    assert all(np.array_equal(a.numpy(), b) for a, b in zip(program(), Compiled(program)()))


def test_swapped_states():
    a, b = flow.tensor([1.0, 2.0]), flow.tensor([3.0, 4.0])

    def swap():
        old = a.clone()
        a.copy_(b * 1.0)
        b.copy_(old)
        return a, b

    graph = Compiled(swap)
    assert [x.tolist() for x in graph()] == [[3, 4], [1, 2]] == [a.tolist(), b.tolist()]
    assert [x.tolist() for x in graph()] == [[1, 2], [3, 4]] == [a.tolist(), b.tolist()]


def test_input_may_share_storage_with_a_state():
    a = flow.tensor([1.0, 2.0])

    def step(x):
        a.mul_(2.0)
        return x + a

    assert Compiled(step)(a.data)[0].tolist() == [3, 6]


def test_states_are_identified_by_storage():
    a = param(1, 2)
    b, c = a.data, a

    def step():
        with flow.no_grad():
            a.mul_(2.0)
            b.add_(1.0)
            c[0] = 9.0
        return a + b * c

    graph = Compiled(step)
    assert graph()[0].tolist() == [90, 30] and a.tolist() == [9, 5] and len(graph.graph.states) == 1


def test_partially_overlapping_states_are_refused():
    whole = np.zeros(4, "f4")
    a, b = flow.from_numpy(whole[:3]), flow.from_numpy(whole[1:])
    with pytest.raises(TraceError, match="overlap in memory"):
        Compiled(lambda: a + b)()


def test_captured_tensors_are_read_at_each_call():
    c = flow.tensor([1.0, 2.0])
    graph = Compiled(lambda x: (x * c, c[0] + x))
    x = flow.tensor([1.0, 1.0])
    first, _ = graph(x)
    c.mul_(10.0)
    second, _ = graph(x)
    assert first.tolist() == [1, 2] and second.tolist() == [10, 20]


def test_symbolic_tensors_have_no_elements():
    for program in (lambda x: 1 if x * 2.0 else 0, lambda x: (x * 2.0).item(), lambda x: float(x), lambda x: x.numpy()):
        with pytest.raises(TraceError, match=r"symbolic[\s\S]*float32\[1\]"):
            Compiled(program)(flow.tensor([1.0]))
    with pytest.raises(TraceError, match="shape of the result depends"):
        Compiled(lambda x: x[x > 0])(flow.tensor([1.0]))


@in_cases("seed", range(4))
def test_states_overlap_if_their_byte_ranges_do(seed):
    rng, base = np.random.default_rng(seed), np.zeros((12, 8), "float32")
    for _ in range(60):
        arrays = []
        for _ in range(4):
            (a, b), (c, d) = sorted(rng.integers(0, 13, 2)), sorted(rng.integers(0, 9, 2))
            arrays.append(base[a:b, c:d][:: int(rng.choice([1, 2, -1])), :: int(rng.choice([1, -1]))])
        mode = Trace()
        for i, array in enumerate(arrays):
            known = any(
                array.ctypes.data == x.ctypes.data and array.shape == x.shape and array.strides == x.strides
                for x in arrays[:i]
            )
            if not known and any(np.may_share_memory(array, x) for x in arrays[:i] if x.size):
                with pytest.raises(TraceError, match="overlap in memory"):
                    mode.state(array)
                break
            mode.state(array)


@in_cases("traced", [False, True])
def test_copy_is_independent(traced):
    p = param(1, 2)

    def program():
        a, b = flow.zeros(2), p * 1.0
        a.copy_(p)  # not p itself: it can be written, and has its own hooks
        a.mul_(2.0)
        c = flow.zeros(2)
        c.copy_(b)
        c.register_hook(lambda g: g * 10.0)
        (found,) = flow.autograd.grad((a + b + c).sum(), [p])
        return [found]

    (found,) = Compiled(program)() if traced else program()
    assert found.tolist() == [13, 13]


@in_cases("traced", [False, True])
def test_retain_grad_applies_to_the_current_value(traced):
    p = param(1, 2)

    def program():
        y = p * 1.0
        y.retain_grad()
        y.retain_grad()
        y.mul_(3.0)
        y.register_hook(lambda g: g * 2.0)
        (y * 5.0).sum().backward()
        return [y.grad, p.grad]

    y, leaf = Compiled(program)() if traced else program()
    assert y.tolist() == [10, 10] and leaf.tolist() == [30, 30]


def rnn(p, a):
    h = a.detach()
    for _ in range(3):
        h = h.detach()
        h += p
    return h.sum() + a.sum()


@in_cases("leaf", [False, True])
def test_detached_tensor_has_its_own_history(leaf):
    p, a = param(1, 1), flow.tensor([1.0, 1.0], requires_grad=leaf)
    before = a.tolist()
    rnn(p, a).backward()
    assert p.grad.tolist() == [1, 1] and (not leaf or a.grad.tolist() == [1, 1])
    p, a = param(1, 1), flow.tensor(before, requires_grad=leaf)

    def program():
        rnn(p, a).backward()
        return [p.grad, *([a.grad] if leaf else [])]

    assert all(g.tolist() == [1, 1] for g in Compiled(program)()) and a.tolist() == [4, 4]


SELF_SAVING = """clamp_min_ clamp_max_ abs_ square_ sin_ cos_ tanh_ sigmoid_ exp_ log_ log1p_ log2_ sqrt_ rsqrt_
                 reciprocal_ tan_ erf_ expm1_ relu_ neg_""".split()


@pytest.mark.parametrize("name", [*SELF_SAVING, "pow_", "clamp_", "mul_", "div_", "fmod_", "remainder_", "lerp_"])
def test_in_place_ops_have_the_gradients_of_functional_ops(name):
    args = {"pow_": (3,), "clamp_": (0.6, 1.2), "clamp_min_": (0.7,), "clamp_max_": (0.7,)}.get(name)

    def run(method, p, q):
        y = p * 1.0
        rest = args or (
            (q,) if name in ("mul_", "div_", "fmod_", "remainder_") else (q, q * 0.3) if name == "lerp_" else ()
        )
        result = getattr(y, method)(*rest)
        first = flow.autograd.grad(((y if method[-1] == "_" else result) ** 2).sum(), [p], create_graph=True)[0]
        return [
            first,
            *[g for g in flow.autograd.grad((first * first).sum(), [p, q], allow_unused=True) if g is not None],
        ]

    make = lambda: (param(0.5, 0.9, 1.4), param(0.8, 0.7, 0.6))
    wanted = run(name[:-1], *make())
    for a, b in zip(run(name, *make()), wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    p, q = make()
    for a, b in zip(Compiled(lambda: run(name, p, q))(), wanted, strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-5)


def test_view_of_a_leaf_view_cannot_be_written():
    x = flow.zeros(2, 3).t().requires_grad_()
    with pytest.raises(GradError, match=r"(?s)leaf that requires grad is written in place.*no_grad"):
        x[0] = 1
    with pytest.raises(GradError, match="leaf"):
        x[0].add_(1)
    (x[0] * 2).sum().backward()
    assert x.grad.tolist() == [[2, 2], [0, 0], [0, 0]]
    with flow.no_grad():
        x[0] = 1
    assert x.tolist() == [[1, 1], [0, 0], [0, 0]]


@in_cases("dtype", [flow.int8, flow.int64])
def test_in_place_op_cannot_enlarge_its_target(dtype):
    x = flow.tensor(2)
    with pytest.raises(ShapeError, match=r"shape \(1,\), the tensor .*\(\)"):
        x -= flow.tensor([1], dtype=dtype)
