"""Compiled fused regions against float64: broadcasting of every kind, every size, any number of threads."""

import math

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from numba import njit

import minflow as flow
from minflow.compiler.fusion import run
from minflow.compiler.passes import PASSES, run_passes
from minflow.core.kernels import CALLS
from minflow.core.op import OPS
from minflow.core.scalar import operations_of
from minflow.core.spec import bool_
from minflow.core.trace import trace
from minflow.platforms.compiled.codegen import vector_math
from minflow.platforms.compiled.codegen.llvm import function, load, store
from minflow.platforms.compiled.kernels import elementwise_fusion as built, formula_lowering
from minflow.platforms.compiled.passes.elementwise_fusion import OPERATIONS, clusters
from minflow.platforms.compiled.runtime.pointers import at
from tests import sampling
from tests.fusion_programs import inputs_of, random_program, training
from tests.single_tasks import run_builder, run_tasks, same_bits, tasks_of

EDGES = [
    0.0,
    -0.0,
    1e-45,
    -1e-45,
    1e-40,
    -1e-40,
    1e-30,
    3.4e38,
    -3.4e38,
    88.7,
    88.8,
    -87.4,
    -103.9,
    -104.1,
    math.inf,
    -math.inf,
    math.nan,
]
EXACT = {
    "exp": math.exp,
    "log": math.log,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda x: math.exp(min(x, 0)) / (1 + math.exp(-abs(x))),
}


# ---- functions -------------------------------------------------------------------------------------------------------


def of_vectors(name):
    """Return a function of arrays of whole vectors."""

    @function(f"test_{name}", 2)
    def one(builder, x, y):
        store(builder, getattr(vector_math, name)(builder, load(builder, x)), y)

    @njit(error_model="numpy")
    def every(x, y, count):
        for i in range(0, count * 4, 64):
            one(x + i, y + i)

    def of(x):
        y = np.empty_like(x)
        every(at(x), at(y), x.size)
        return y

    return of


def exactly(name, x):
    def of(x):
        try:
            return EXACT[name](x) if x or name != "log" else -math.inf
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return np.array([of(v) for v in x.tolist()])


@pytest.mark.parametrize(
    "name, ranges",
    [
        ("exp", [(-104, 89), (-1, 1), (88, 89)]),
        ("log", [(1e-38, 4), (0.9, 1.1), (1e-3, 1e30)]),
        ("sigmoid", [(-87, 20), (-1, 1)]),
        ("tanh", [(-1, 1), (-10, 10), (0.6, 0.65)]),
        ("erf", [(-1, 1), (-4, 4), (0.9, 1.1)]),
    ],
)
def test_functions_are_within_two_ulp(name, ranges):
    """Except for a quotient of rounded values."""
    of = of_vectors(name)
    for low, high in ranges:
        x = np.linspace(low, high, 1 << (14 if sampling.complete else 12)).astype("f4")
        wanted, mine = exactly(name, x), of(x)
        there = np.abs(wanted) < 3.4e38
        unit = np.spacing(np.abs(wanted[there]).astype("f4")).astype("f8")
        assert (np.abs(mine[there] - wanted[there]) / unit).max() < (3 if name == "sigmoid" else 2) and there.any()
    x = np.array((EDGES * 2)[:32], "f4")
    with np.errstate(over="ignore"):
        wanted, mine = exactly(name, x).astype("f4"), of(x)
    assert np.array_equal(np.isnan(mine), np.isnan(wanted)) and np.array_equal(np.isinf(mine), np.isinf(wanted))
    assert np.array_equal(np.signbit(mine), np.signbit(wanted)) or name in ("log", "sigmoid")  # of NaN
    finite = np.isfinite(wanted)
    np.testing.assert_allclose(mine[finite], wanted[finite], rtol=3e-7, atol=3e-45)


# ---- fused regions ---------------------------------------------------------------------------------------------------


def clusters_of(program, arrays):
    """Fused regions of a program."""
    graph = run_passes(trace(program, [flow.tensor(x) for x in arrays])[0], PASSES[:-1])[-1].graph
    return [node for node in clusters(graph).nodes if node.op.name == "cluster"]


def compiled(node, arrays):
    return run_builder(built.cluster, arrays, node.out_specs, **node.attrs)


def reference(node, arrays):
    found = run(np, *arrays, **node.attrs)
    return found if isinstance(found, tuple) else (found,)


def some(spec, seed):
    rng = np.random.default_rng(seed)
    return rng.random(spec.shape) < 0.5 if spec.dtype is bool_ else rng.standard_normal(spec.shape).astype("f4")


def near(node, arrays):
    for mine, wanted in zip(compiled(node, arrays), reference(node, arrays)):
        scale = np.abs(wanted).max(initial=0.1) * (1 + len(node.attrs["code"].nodes))
        assert mine.shape == wanted.shape
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=2e-6 * scale)


def reads(node):
    """Access patterns of a region's inputs."""
    code = node.attrs["code"]
    return [
        code.read(x, one.out_specs[0].shape)
        for one in code.nodes
        if not one.op.is_view
        for x in one.inputs
        if x in code.inputs
    ]


SHAPES = [
    (1, 1),
    (1, 16),
    (3, 5),
    (16, 16),
    (7, 130),
    (2, 3, 33),
    (5, 4, 64),
    (1000, 3),
    (9, 1500),
    (700, 128),
    (2, 40, 40),
    (33, 1),
    (64, 1, 2),
    (9, 3, 1, 17),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows_too", [False, True])
def test_random_programs(shape, rows_too):
    for seed in range(6 if sampling.complete else 3):
        arrays = inputs_of(shape, seed)
        for node in clusters_of(random_program(seed, rows_too), arrays):
            near(node, [some(x.spec, seed) for x in node.inputs])


BROADCASTS = {
    "a row for all": lambda x, row, column, mask: (x * row).tanh() + row,
    "a number a row": lambda x, row, column, mask: (x * column).tanh() - column,
    "a mask that begins again": lambda x, row, column, mask: flow.where(mask, x * 2, -1e9) + 1,
    "one row of a mask": lambda x, row, column, mask: flow.where(mask[:1], x * 2, x) + 1,
    "rows that begin again": lambda x, row, column, mask: (x + column[0]).exp() * x[0],
    "a number": lambda x, row, column, mask: (x * column.sum()).sigmoid() + x.mean(),
    "rows that are the same": lambda x, row, column, mask: (x * (x[:, :1] + 1)).exp() + x,
    "numbers that are the same": lambda x, row, column, mask: (x * (column[:, :1] + 1)).exp() + x,
    "masks that are the same": lambda x, row, column, mask: flow.where((x[:, :1] > 0), x * 2, x) + 1,
    "expanded": lambda x, row, column, mask: column.expand(*x.shape) * x + row.expand(*x.shape),
    "a mask with one number a row": lambda x, row, column, mask: (
        flow.where(column > 0, column * 2, column).clamp(-1, 1) * x + x.mean(-1, keepdim=True)
    ),
    "rows alone": lambda x, row, column, mask: ((x.mean(-1, keepdim=True) + column) * 2, x * 2),
    "a number made of numbers": lambda x, row, column, mask: (
        (number := x.mean().expand(*x.shape) * 2) * x,
        number,
        x.sum().expand(*x.shape[:-1], 1) - 1,
    ),
    "columns": lambda x, row, column, mask: ((x * 2).reshape(-1, x.shape[-1]).sum(0), x * 3),
    "softmax": lambda x, row, column, mask: flow.softmax(x * row, dim=-1) * column,
    "log_softmax": lambda x, row, column, mask: flow.log_softmax(x + column, dim=-1) * 2,
}


@pytest.mark.parametrize("name", BROADCASTS)
@pytest.mark.parametrize(
    "shape",
    [
        (3, 4, 5),
        (4, 16, 16),
        (2, 7, 31),
        (3, 1, 700),
        (6, 50, 48),
        (2, 33, 2000),
        (40, 1, 20),
        (5, 9, 257),
        (40, 3, 272),
    ],
)
def test_broadcasting(name, shape):
    arrays = inputs_of(shape)
    nodes = clusters_of(
        lambda x, row, column, mask: BROADCASTS[name](x, row, column, mask),
        [arrays[0], arrays[1], arrays[2], arrays[4]],
    )
    assert nodes
    if "the same" in name and shape[1] > 1:
        assert any(line.repeat > 1 for node in nodes for line in reads(node))
    for node in nodes:
        near(node, [some(x.spec, i) for i, x in enumerate(node.inputs)])


@pytest.mark.parametrize("columns", [16, 33, 48, 125, 250, 1000, 1504])
def test_products_fuse_with_sums_and_row_operands(columns):
    def layer_norm(x, weight, bias):
        centered = x - x.mean(-1, keepdim=True)
        return centered * (centered * centered).mean(-1, keepdim=True).rsqrt() * weight + bias

    arrays = [some(flow.empty(*shape).spec, 3) for shape in ((37, columns), (columns,), (columns,))]
    (node,) = clusters_of(layer_norm, arrays)
    near(node, [some(x.spec, i) for i, x in enumerate(node.inputs)])
    names, bytecode = list(built.OPCODES), node.attrs["code"].program
    lines = [names[line[0]] for line in bytecode.lines]
    assert lines.count("row_dot") == lines.count("mul_add") == lines.count("row_sum") == 1 and "add" not in lines
    assert lines.count("spread") == (0 if columns % 16 == 0 or columns > 256 else 2)


PAIRS = {
    "add_add": lambda x, y, z: x + y + z, "add_taken": lambda x, y, z: z - (x + y),
    "add_sub": lambda x, y, z: x + y - z, "add_mul": lambda x, y, z: z * (x + y),
    "sub_add": lambda x, y, z: z + (x - y), "sub_taken": lambda x, y, z: z - (x - y),
    "sub_sub": lambda x, y, z: x - y - z, "sub_mul": lambda x, y, z: (x - y) * z,
    "mul_add": lambda x, y, z: z + x * y, "mul_taken": lambda x, y, z: z - x * y,
    "mul_sub": lambda x, y, z: x * y - z, "mul_mul": lambda x, y, z: z * (x * y),
    "sub_exp": lambda x, y, z: (x - z).exp(), "mul_exp": lambda x, y, z: (x * z).exp(),
    "mul_erf": lambda x, y, z: (z * x).erf(),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("shape", [(20, 300), (20, 1), (1, 300), ()])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1)])
def test_two_operations_are_fused(name, shape, order):
    """Two of: an array, a scalar per row, a row, and a scalar."""
    arrays = [np.empty(one, "f4") for one in ((20, 300), (20, 300), shape)]
    (node,) = clusters_of(lambda *operands: PAIRS[name](*[operands[i] for i in order]), arrays)
    near(node, [some(x.spec, i) for i, x in enumerate(node.inputs)])
    assert [built.NAMES[line[0]] for line in node.attrs["code"].program.lines] == [name]


@pytest.mark.parametrize("shape", [(27, 7), (2, 27, 5), (40, 33), (16, 7)])
def test_operands_of_a_sum_of_products_are_kept(shape):
    """Rows of odd length are copied and a row's scalar is broadcast, but never over the copy."""
    arrays = [np.random.default_rng(0).standard_normal(shape).astype("f4")]
    (node,) = clusters_of(lambda x: x / (x.square().sum(-1, keepdim=True) + 1).sqrt(), arrays)
    near(node, arrays)


@pytest.mark.parametrize("size", [1, 17, 5000])
def test_cross_entropy_of_logits(size):
    """Close to float64 even if log(1 + e) is small; NumPy's result if x or the target is infinite or NaN."""
    entropy = lambda x, y: flow.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none") * 1
    rng = np.random.default_rng(size)
    x, y = rng.uniform(-90, 90, size).astype("f4") * rng.random(size).astype("f4") ** 3, rng.random(size).astype("f4")
    (node,) = clusters_of(entropy, [x, y])
    a, b = x.astype("f8"), y.astype("f8")
    wanted = b * np.maximum(-a, 0) + (1 - b) * np.maximum(a, 0) + np.log1p(np.exp(-np.abs(a)))
    (found,) = compiled(node, [x, y])
    np.testing.assert_allclose(found, wanted, rtol=5e-7)
    x, y = np.resize(np.array(EDGES, "f4"), size), np.resize(np.array([0, 1, 0.5], "f4"), size)
    with np.errstate(all="ignore"):
        (mine,), (wanted,) = compiled(node, [x, y]), reference(node, [x, y])
    np.testing.assert_allclose(mine, wanted, rtol=1e-6, atol=1e-44)


FUSIBLE = [op for op in OPS.values() if op.elementwise in ("same", "float") and operations_of(op)]
FUSIBLE = [op for op in FUSIBLE if OPERATIONS.issuperset(operations_of(op)) and not op.custom]


def test_ops_are_fused_by_their_formulas():
    assert {op.name for op in FUSIBLE} >= {"neg", "softplus", "clamp", "lerp", "sign", "floor", "trunc_divide", "log1p"}
    assert set(formula_lowering.LOWERINGS) == OPERATIONS | {"pow"}
    assert {*formula_lowering.SHORTER} <= {op.name for op in FUSIBLE}


def test_powers_are_flattened_like_products():
    """A region without broadcasting is one long row, whatever its ops are; other exponents are not fused."""
    x = np.ones((50, 40, 3), "f4")
    (product,), (power,) = clusters_of(lambda x: x * 2 * x, [x]), clusters_of(lambda x: (x * 2) ** 3, [x])
    assert power.attrs["code"].columns == product.attrs["code"].columns != 3
    assert not [n for n in clusters_of(lambda x: (x * 2) ** 2.5 + 1, [x]) if "pow" in repr(n.attrs["code"])]


@pytest.mark.parametrize("size", [5, 1024, 1025, 5000, 70001])
def test_nan_and_infinity_match_numpy(size):
    """For each op with a fusible formula, and powers."""
    x = np.resize(np.array(EDGES, "f4"), size)
    y = np.roll(x, 5)
    programs = [lambda x, y, op=op: op(*(x, y, 0.3, 0.7)[: len(op.inputs)]) * 1 for op in FUSIBLE]
    programs += [lambda x, y: flow.nn.functional.relu6(x) ** 2, lambda x, y: (x * 1) ** 3]
    for program in programs:
        (node,) = clusters_of(program, [x, y])
        with np.errstate(all="ignore"):
            arrays = {2: [x, y], 1: [x]}[len(node.inputs)]
            (mine,), (wanted,) = compiled(node, arrays), reference(node, arrays)
        assert np.array_equal(np.isnan(mine), np.isnan(wanted)), repr(node.attrs["code"])
        finite = np.isfinite(wanted)
        assert np.array_equal(mine[~finite], wanted[~finite], equal_nan=True), repr(node.attrs["code"])
        np.testing.assert_allclose(
            mine[finite], wanted[finite], rtol=1e-6, atol=1e-44, err_msg=repr(node.attrs["code"])
        )


def test_relu_gradient_propagates_nan():
    def program(x, y):
        x = x * 1
        x.requires_grad_()
        ((flow.relu(x) + flow.nn.functional.relu6(x)) * y).sum().backward()
        return x.grad

    x = np.resize(np.array([*EDGES, 3.0, 6.0, 7.0, -1.0], "f4"), 5000)
    y = np.random.default_rng(0).standard_normal(5000).astype("f4")
    for node in clusters_of(program, [x, y]):
        arrays = [x if i % 2 == 0 else y for i in range(len(node.inputs))]
        with np.errstate(all="ignore"):
            for mine, wanted in zip(compiled(node, arrays), reference(node, arrays)):
                np.testing.assert_allclose(mine, wanted, rtol=1e-6)


def test_sums_of_many_rows_are_accurate():
    x = np.random.default_rng(0).random((25600, 3)).astype("f4") + 2
    (node,) = clusters_of(lambda x: (x * 1.5).sum(0), [x])
    np.testing.assert_allclose(compiled(node, [x])[0], (x * 1.5).sum(0, dtype="f8"), rtol=5e-7)


def test_bits_do_not_depend_on_thread_count():
    nodes = clusters_of(random_program(3, True), inputs_of((900, 96)))
    same_bits(
        lambda: [x for node in nodes for x in compiled(node, [some(x.spec, 1) for x in node.inputs])], (1, 2, 3, 4)
    )


@pytest.mark.parametrize("columns", [90, 273, 1000])
def test_result_may_overwrite_an_operand(columns):
    (node,) = clusters_of(lambda x, y: flow.softmax(x * y + 1, dim=-1) - x, [np.ones((70, columns), "f4")] * 2)
    x, y = some(node.inputs[0].spec, 0), some(node.inputs[1].spec, 1)
    (wanted,) = compiled(node, [x, y])
    run_tasks(tasks_of(built.cluster, [x, y], [x], **node.attrs))
    assert np.array_equal(x, wanted)


def test_strided_operands_fall_back_to_numpy():
    (node,) = clusters_of(lambda x: (x * 2).exp(), [np.ones((70, 90), "f4")])
    apart = np.ones((90, 70), "f4").T
    assert tasks_of(built.cluster, [apart], [np.empty((70, 90), "f4")], **node.attrs) is None
    assert (CALLS[node.op](apart, **node.attrs) == np.exp(np.float32(2))).all()


@pytest.mark.parametrize("name", ["decoder", "dense"])
def test_training_matches_eager_within_rounding(on, name):
    found = []
    for passes in (PASSES, (*PASSES[:-1], clusters, PASSES[-1])):
        graph, batch = training(name, passes, flow.optim.SGD, 0.5)
        graph.config.exact(True)
        losses = [graph(*batch).item() for _ in range(5)]
        found.append((losses, [p.numpy().copy() for p in graph.model.parameters()]))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5) and found[0][0][-1] < found[0][0][0]
    for mine, wanted in zip(found[1][1], found[0][1]):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-5)
