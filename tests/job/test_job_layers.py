"""flow.layers in job functions: names and shapes of variables, the bits of modern functions, training, and mistakes."""

from types import SimpleNamespace

import numpy as np
import pytest
from builders import job_of, raised_error, sgd
from legacy import run_in_job

import minflow as flow
import minflow.job.typing as tp
from minflow import layers
from minflow.core.base.errors import JobError, ShapeError
from minflow.job.session import default_session
from minflow.nn import functional as F

pytestmark = pytest.mark.usefixtures("empty_session")
RNG = np.random.default_rng(1)
MATRIX, IMAGE = np.zeros((4, 3), "float32"), np.zeros((1, 4, 8, 8), "float32")


@pytest.fixture
def session(empty_session):
    return empty_session


def numbers(*shape):
    return RNG.standard_normal(shape).astype("float32")


def ran(function, *arrays, kind="predict"):
    """Return the result of one step of a job of `function(*blobs)`, as NumPy."""
    return job_of(function, *arrays, kind=kind, name="a_job")(*arrays)


def variable(name):
    return default_session().variables[name].numpy()


def put(name, array):
    default_session().variables[name].set(array)


INIT = flow.random_normal_initializer(0, 1)

# ---- each layer equals a modern function of its variables -----------------------------------------------------------


def conv(pads=(0, 0, 0, 0), stride=1, **options):
    """The modern convolution of an image that is padded by (left, right, top, bottom)."""
    return lambda x, v: F.conv2d(F.pad(x, pads), v.weight, v.bias, stride=stride, **options)


def conv2d(x, **options):
    return layers.conv2d(x, 4, 3, bias_initializer=INIT, **options)


def strided(padding, pads):
    """A row of LAYERS: stride 2 with this padding, which adds `pads`."""
    return lambda x: conv2d(x, strides=2, padding=padding), (2, 3, 8, 7), (4, 3, 3, 3), conv(pads, 2)


def first(x):
    """Move channels before the spatial axes."""
    return x.permute(0, 3, 1, 2)


def conv2d_of_last(x, v):
    return conv((1, 0, 1, 1), 2)(first(x), SimpleNamespace(weight=first(v.weight), bias=v.bias)).permute(0, 2, 3, 1)


def conv1d(x, v):
    return F.conv1d(F.pad(x, (1, 0)), v.weight, v.bias, stride=2)


def dense(x, units=6, **options):
    return layers.dense(x, units, kernel_initializer=INIT, **options)


def normalized(x, v):
    return F.batch_norm(x.transpose(1, -1), v.moving_mean, v.moving_variance, v.gamma, v.beta, eps=1e-3)


# case -> (layer, input shape, shape of the first variable or None, the same with modern functions)
LAYERS = {
    "dense": (lambda x: dense(x, bias_initializer=INIT), (4, 3), (6, 3), lambda x, v: F.linear(x, v.weight, v.bias)),
    "dense of rows": (
        lambda x: dense(x, bias_initializer=INIT),
        (2, 5, 3),
        (6, 3),
        lambda x, v: F.linear(x, v.weight, v.bias),
    ),
    "dense without bias": (lambda x: dense(x, use_bias=False), (4, 3), (6, 3), lambda x, v: F.linear(x, v.weight)),
    "dense and relu": (
        lambda x: dense(x, activation=flow.nn.relu),
        (4, 3),
        (6, 3),
        lambda x, v: F.relu(F.linear(x, v.weight, v.bias)),
    ),
    "conv2d VALID": strided("VALID", (0, 0, 0, 0)),
    "conv2d SAME": strided("SAME", (1, 1, 1, 0)),
    "conv2d SAME_LOWER": strided("SAME_LOWER", (1, 1, 1, 0)),
    "conv2d SAME_UPPER": strided("SAME_UPPER", (1, 1, 0, 1)),
    "conv2d of pairs of pixels": strided(((0, 0), (0, 0), (2, 1), (0, 3)), (0, 3, 2, 1)),
    "conv2d of pixels": strided((0, 0, 1, 2), (2, 2, 1, 1)),
    "conv2d of NHWC": (
        lambda x: layers.conv2d(x, 4, (3, 2), 2, "SAME", "NHWC"),
        (2, 7, 7, 3),
        (4, 3, 2, 3),
        conv2d_of_last,
    ),
    "conv2d in groups and dilated": (
        lambda x: conv2d(x, groups=2, dilation_rate=2),
        (1, 4, 9, 9),
        (4, 2, 3, 3),
        conv(dilation=2, groups=2),
    ),
    "conv1d": (lambda x: layers.conv1d(x, 4, 3, 2, "SAME"), (2, 3, 10), (4, 3, 3), conv1d),
    "batch_normalization": (
        layers.batch_normalization,
        (2, 5, 4, 3),
        (3,),
        lambda x, v: normalized(x, v).transpose(1, -1),
    ),
    "batch_normalization_add_relu": (
        lambda x: layers.batch_normalization_add_relu(x, x * 2),
        (4, 5, 3),
        (3,),
        lambda x, v: F.relu(normalized(x, v).transpose(1, -1) + x * 2),
    ),
    "batch_normalization_relu": (
        layers.batch_normalization_relu,
        (4, 5, 3),
        (3,),
        lambda x, v: F.relu(normalized(x, v).transpose(1, -1)),
    ),
    "layer_norm": (layers.layer_norm, (2, 3, 4), (4,), lambda x, v: F.layer_norm(x, (3, 4)) * v.gamma + v.beta),
    "layer_norm of rows": (
        lambda x: layers.layer_norm(x, begin_norm_axis=-1, begin_params_axis=1, center=False),
        (2, 3, 4),
        (3, 4),
        lambda x, v: F.layer_norm(x, (4,)) * v.gamma,
    ),
    "prelu": (
        lambda x: layers.prelu(x, flow.constant_initializer(0.25), shared_axes=[2, 3]),
        (4, 3, 2, 2),
        (3, 1, 1),
        lambda x, v: F.prelu(x, v.alpha.reshape(3)),
    ),
    "upsample_2d": (
        lambda x: layers.upsample_2d(x, (2, 3)),
        (2, 3, 4, 5),
        None,
        lambda x, v: F.interpolate(x, scale_factor=(2, 3)),
    ),
    "upsample_2d of NHWC": (
        lambda x: layers.upsample_2d(x, (2, 3), "NHWC"),
        (2, 4, 5, 3),
        None,
        lambda x, v: F.interpolate(first(x), scale_factor=(2, 3)).permute(0, 2, 3, 1),
    ),
}


@pytest.mark.parametrize("case", LAYERS)
def test_layer_equals_modern_function_of_its_variables(case, session):
    layer, shape, size, modern = LAYERS[case]
    x = numbers(*shape)
    run_in_job(layer, x)
    for one in session.variables.values():
        one.set(np.abs(numbers(*one.shape)))
    parts = {name.rpartition("-")[2]: flow.tensor(one.numpy()) for name, one in session.variables.items()}
    assert size == (tuple(next(iter(parts.values())).shape) if parts else None)
    wanted = modern(flow.tensor(x), SimpleNamespace(**{"bias": None} | parts)).numpy()
    np.testing.assert_allclose(run_in_job(layer, x), wanted, rtol=2e-5, atol=2e-6)


def test_dense_starts_at_zero_and_may_lack_a_bias(session):
    assert (ran(lambda x: flow.layers.dense(x, 6, use_bias=False), numbers(4, 3)) == 0).all()
    assert list(session.variables) == ["Dense-weight"] and not variable("Dense-weight").any()


def test_activation_is_called_with_its_name():
    seen = []

    def activation(x, name):
        seen.append(name)
        return flow.nn.relu(x, name)

    x = numbers(4, 3)
    out = ran(lambda x: dense(x, activation=activation, name="fc"), x)
    assert seen == ["activation"] and out.any()
    for unnamed in (flow.relu, lambda x: flow.relu(x), flow.nn.ReLU()):
        assert np.array_equal(ran(lambda x, unnamed=unnamed: dense(x, activation=unnamed, name="fc"), x), out)


def test_namespace_prefixes_variable_names(session):
    def function(x):
        with flow.scope.namespace("net"), flow.scope.namespace("block"):
            x = flow.layers.dense(x, 3, activation=flow.layers.prelu, name="fc")
            return flow.layers.conv2d(flow.reshape(x, (4, 1, 1, 3)), 2, weight_name="w", bias_name="b")

    ran(function, numbers(4, 3))
    assert list(session.variables) == [
        f"net-block-{name}" for name in ("fc-weight", "fc-bias", "fc-activation-alpha", "w", "b")
    ]


def test_jobs_share_a_layer_by_its_name():
    x = numbers(4, 3)
    layer = lambda x: dense(x, name="shared")
    first = ran(layer, x)
    another_job = job_of(layer, x, name="another_job")
    assert np.array_equal(another_job(x), first) and first.any()


def test_conv2d_fills_its_weight_by_xavier():
    ran(lambda x: flow.layers.conv2d(x, 64, 3), numbers(1, 32, 3, 3))
    limit = np.sqrt(6 / ((32 + 64) * 9))
    found = np.abs(variable("Conv2d-weight"))
    assert 0.99 * limit < found.max() <= limit and not variable("Conv2d-bias").any()


# ---- norms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "axis, shape", [(1, (4, 3, 2, 5)), (-1, (4, 2, 5, 3)), (-1, (8, 3)), (2, (4, 2, 3, 5)), (0, (3, 6))]
)
def test_batch_normalization_with_batch_statistics(axis, shape):
    x, rest = numbers(*shape) * 3 + 2, tuple(a for a in range(len(shape)) if a != axis % len(shape))

    def function(x):
        out = flow.layers.batch_normalization(
            x, axis=axis, momentum=0.9, epsilon=0.01, gamma_initializer=INIT, name="bn"
        )
        sgd(out * 0.0, 0.1)
        return out

    out = ran(function, x, kind="train")
    wide = [3 if a == axis % len(shape) else 1 for a in range(len(shape))]
    mean, var, gamma = x.mean(rest), x.var(rest), variable("bn-gamma").reshape(wide)
    assert np.allclose(out, (x - mean.reshape(wide)) / np.sqrt(var.reshape(wide) + 0.01) * gamma, atol=1e-4)
    assert np.allclose(variable("bn-moving_mean"), 0.1 * mean, atol=1e-5)
    assert np.allclose(variable("bn-moving_variance"), 0.9 + 0.1 * var, atol=1e-4)


@pytest.mark.parametrize(
    "kind, options", [("predict", {}), ("train", {"training": False}), ("train", {"trainable": False})]
)
def test_batch_normalization_with_moving_statistics(kind, options, session):
    x = numbers(4, 5, 3)

    def function(x):
        out = flow.layers.batch_normalization(x, name="bn", **options)
        if kind == "train":
            sgd(flow.layers.dense(out, 1, name="fc"), 0.1)
        return out

    assert np.allclose(ran(function, x, kind=kind), x / np.sqrt(1.001), atol=1e-5)
    put("bn-moving_mean", [1, 2, 3]), put("bn-moving_variance", [4, 5, 6])
    out = ran(function, x, kind=kind)
    assert np.allclose(out, (x - [1, 2, 3]) / np.sqrt(np.array([4, 5, 6]) + 0.001), atol=1e-5)
    assert variable("bn-moving_mean").tolist() == [1, 2, 3] and variable("bn-moving_variance").tolist() == [4, 5, 6]
    trained = {name for name, v in session.variables.items() if v.trainable}
    assert trained & {"bn-moving_mean", "bn-moving_variance"} == set()


def test_batch_normalization_without_beta_and_gamma(session):
    def function(x):
        out = flow.layers.batch_normalization(dense(x, 3), center=False, scale=False)
        sgd(out, 0.1)
        return out

    ran(function, numbers(8, 2), kind="train")
    assert list(session.variables)[2:] == ["BatchNorm-moving_mean", "BatchNorm-moving_variance"]


def test_batch_normalization_differentiates_batch_statistics():
    x, w = RNG.standard_normal((6, 2)), RNG.standard_normal((6, 3))

    def function(x, w):
        out = flow.layers.batch_normalization(dense(x, 3, name="fc", use_bias=False), axis=-1, name="bn")
        loss = flow.math.reduce_sum(out * w)
        sgd(loss)
        return loss

    ran(lambda x: dense(x, 3, name="fc", use_bias=False), x)
    weight = flow.tensor(variable("fc-weight"), requires_grad=True)
    modern = F.batch_norm(F.linear(flow.tensor(x), weight), None, None, training=True, eps=1e-3)
    loss = (modern * flow.tensor(w)).sum()
    loss.backward()
    assert np.isclose(ran(function, x, w, kind="train"), loss.item())
    assert np.allclose(weight.detach().numpy() - variable("fc-weight"), weight.grad.numpy())


# ---- in training -------------------------------------------------------------------------------------------------


def test_dropout_is_active_only_in_train_jobs():
    x = np.ones((100, 50), "float32")

    def function(x):
        hidden = flow.nn.dropout(x, rate=0.5, name="dropout")
        sgd(flow.layers.dense(hidden, 1), 0.1) if training else None
        return hidden

    training = False
    assert (ran(function, x) == 1).all()
    training = True
    first = ran(function, x, kind="train")
    assert set(np.unique(first)) == {0, 2} and abs(first.mean() - 1) < 0.1


def test_dropout_with_a_seed_is_independent():
    def drops(x):
        a, b = (flow.nn.dropout(x, 0.5, seed=3, name=name) for name in "ab")
        sgd(flow.layers.dense(a + b, 1))
        return a, b

    x = np.ones((10, 10), "float32")
    seeded = job_of(drops, x, kind="train", result=tuple[tp.Numpy, tp.Numpy])
    a, b = seeded(x)
    assert np.array_equal(a, b) and not np.array_equal(seeded(x)[0], a)


def test_regularizers_shrink_weights_and_frozen_variables_stay():
    def function(x):
        ones, twos = flow.constant_initializer(1.0), flow.constant_initializer(2.0)
        hidden = flow.layers.dense(x, 3, kernel_initializer=ones, trainable=False, name="fixed")
        free = flow.layers.dense(hidden, 1, kernel_initializer=ones, name="free")
        decay = flow.regularizers.l2(0.5)
        shrunk = flow.layers.dense(x, 2, kernel_initializer=twos, kernel_regularizer=decay, name="shrunk")
        sgd(free + shrunk * 0.0, 0.1)
        return free

    ran(function, np.ones((4, 2), "float32"), kind="train")
    assert (variable("fixed-weight") == 1).all() and not variable("fixed-bias").any()
    assert (variable("free-weight") != 1).all() and np.allclose(variable("shrunk-weight"), 2 - 0.1 * 0.5 * 2)


def test_views_name_the_ops_of_a_layer():
    seen = []

    def function(x):
        hidden = flow.layers.conv2d(x, 2, 3, activation=flow.nn.relu, name="conv1")
        seen.append(hidden.op_name)
        return hidden

    ran(function, numbers(1, 1, 4, 4))
    assert seen[0].startswith("conv1/activation")


def test_losses_with_class_names_are_functions_of_blobs():
    x, y = 1 / (1 + np.exp(-numbers(4, 3))), 1 / (1 + np.exp(-numbers(4, 3)))
    for name in ("MSELoss", "L1Loss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss"):
        loss = getattr(flow.nn, name)
        modern = loss(reduction="none")(flow.tensor(x), flow.tensor(y)).numpy()
        assert np.allclose(ran(lambda x, y, loss=loss: loss(x, y, reduction="none"), x, y), modern, atol=1e-6), name
        assert np.allclose(ran(lambda x, y, loss=loss: loss(input=x, target=y), x, y), modern.mean()), name
        assert np.allclose(ran(lambda x, y, loss=loss: loss(reduction="sum")(x, y), x, y), modern.sum()), name
    with pytest.raises(RuntimeError, match=r"nn\.NLLLoss\(\)\(") as told:
        ran(lambda x, y: flow.nn.NLLLoss(x, y), x, y)
    assert "class nn.NLLLoss" in str(told.value)


# ---- mistakes ----------------------------------------------------------------------------------------------------

PLAIN = flow.zeros(2, 3)


@pytest.mark.parametrize("name, sizes", [
    ("dense", [3]), ("conv2d", [3]), ("batch_normalization", []), ("layer_norm", [])
])  # fmt: skip
def test_layer_outside_a_job(name, sizes):
    text = rf"flow\.layers\.{name} works only inside a job function"
    raised_error(getattr(flow.layers, name), JobError, text, PLAIN, *sizes)


def fc(x, units=3, **options):
    return flow.layers.dense(x, units, name="fc", **options)


def filtered(x, size=3, **options):
    return flow.layers.conv2d(x, 4, size, **options)


@pytest.mark.parametrize("array, function, told", [
    (MATRIX, lambda x: fc(x, 0), "units must be .*, got 0"),
    (MATRIX, lambda x: fc(x, 2.5), r"units must be .*, got 2\.5"),
    (MATRIX, lambda x: fc(x, activation="relu"), "activation is 'relu'"),
    (MATRIX, lambda x: fc(x, kernel_initializer=0.1), r"constant_initializer\(0\.1\)"),
    (MATRIX, lambda x: fc(x, bias_initializer=flow.ones_initializer), r"flow\.ones_initializer\(\.\.\.\), called"),
    (MATRIX, lambda x: fc(x, kernel_regularizer=0.01), r"regularizers\.l2\(0\.01\)"),
    (MATRIX, lambda x: flow.layers.dense(x, 3, name=7), "name is 7"),
    (MATRIX[0], lambda x: fc(x), "must have at least two axes, .N, K., got 1"),
    (np.zeros((4, 3), "int32"), lambda x: fc(x), "the input must be floating, got int32"),
    (MATRIX, lambda x: filtered(x), "must have 4 axes, NCHW, got 2"),
    (IMAGE, lambda x: filtered(x, groups=3), "groups=3 divides 4 channels into 4 filters"),
    (IMAGE, lambda x: filtered(x, data_format="NHWC", groups=2), "groups=2 with data_format NHWC"),
    (IMAGE, lambda x: filtered(x, size=(3, 3, 3)), r"kernel_size must be .*, got \(3, 3, 3\)"),
    (IMAGE, lambda x: flow.layers.batch_normalization(x, axis=4), "axis is 4, and the input has 4 axes"),
    (IMAGE, lambda x: flow.layers.layer_norm(x, begin_norm_axis=5), "axis is 5"),
    (IMAGE, lambda x: flow.layers.prelu(x, shared_axes=[0]), r"shared_axes \[0\]"),
    (IMAGE, lambda x: flow.layers.upsample_2d(x, interpolation="bilinear"), "interpolation is 'bilinear'"),
    (MATRIX, lambda x: fc(np.zeros((2, 3))), "the inputs must be a tensor, got ndarray"),
])  # fmt: skip
def test_mistakes_with_layers(array, function, told, session):
    raised_error(ran, (JobError, ShapeError, TypeError), told, function, array)
    assert not session.variables
    assert ran(fc, MATRIX).shape == (4, 3)  # and the job still works


def test_duplicate_layer_name_error_has_both_lines():
    def function(x):
        x = flow.layers.dense(x, 3, use_bias=False)
        return flow.layers.dense(x, 3, use_bias=False)

    error = raised_error(ran, JobError, "have the same name 'Dense-weight'", function, MATRIX)
    first = function.__code__.co_firstlineno + 1
    assert error.values == {"first": f"at test_job_layers.py:{first}"}
    assert error.where == f"at test_job_layers.py:{first + 1}"


def test_several_mistakes_are_reported_together():
    labels = np.zeros(4, "int32")

    def function(x, labels):
        logits = flow.layers.dense(flow.layers.dense(x, 3, use_bias=False, kernel_initializer=INIT), 3, use_bias=False)
        return flow.nn.sparse_softmax_cross_entropy_with_logits(logits, labels)

    with pytest.raises(JobError) as told:
        ran(function, MATRIX, labels, kind="train")
    text = str(told.value)
    assert "has 3 mistakes" in text and "have the same name" in text and "labels and logits are swapped" in text
    assert "no optimizer" in text


def test_out_of_range_label_is_reported_at_run_time():
    loss = lambda x, y: flow.nn.sparse_softmax_cross_entropy_with_logits(y, x)
    raised_error(
        ran, JobError, "labels go from 0 to 5, and the input has 3 classes", loss, MATRIX, np.int32([0, 1, 5, 2])
    )


def test_unknown_names():
    assert dir(flow.layers) == flow.layers.__all__ and dir(flow.regularizers) == ["l1", "l1_l2", "l2"]
    with pytest.raises(AttributeError, match="did you mean flow.layers.conv2d"):
        flow.layers.conv_2d
    with pytest.raises(AttributeError, match="flow.regularizers has no l3"):
        flow.regularizers.l3


# ---- consecutive layers of zeros never learn; a job that trains them warns -------------------------------------------

ROWS = np.random.default_rng(1).standard_normal((4, 3)).astype("float32")


def named(x, units, name, **options):
    return flow.layers.dense(x, units, name=name, **options)


def trained(network, kind="train"):
    """Train a job of `network(x)` for two steps."""

    def losses(x):
        loss = flow.math.square(network(x) - 1.0)
        if kind == "train":
            sgd(loss, 0.1)
        return loss

    zero_job = job_of(losses, ROWS, kind=kind, name="zero_job")
    return [zero_job(ROWS) for _ in range(2)]


def test_consecutive_zero_layers_warn_once():
    """OneFlow's default: only the last bias learns, whatever the data are."""

    def network(x):
        hidden = named(x, 5, "first", activation=flow.nn.relu)
        hidden = named(hidden * 2.0, 4, "second", activation=flow.nn.relu)
        return named(hidden, 3, "third")

    with pytest.warns(flow.MinflowWarning) as caught:
        losses = trained(network)
    assert len(caught) == 1 and caught[0].filename == __file__
    text = str(caught[0].message)
    what = "the weights of the layers 'first' and 'second', one behind the other, all start at 0"
    assert text.startswith(f"job zero_job: {what}") and f"at test_job_layers.py:{caught[0].lineno}" in text
    assert "Try: kernel_initializer=flow.truncated_normal(0.1) for both" in text
    assert losses[1].mean() < losses[0].mean()  # by the last bias
    assert not any(variable(f"{name}-weight").any() for name in ("first", "second", "third"))


SMALL = flow.random_normal_initializer(0, 0.1)


@pytest.mark.parametrize(("network", "kind"), [
    (lambda x: named(x, 3, "only"), "train"),
    (lambda x: named(named(x, 4, "filled", kernel_initializer=SMALL), 3, "zeros"), "train"),
    (lambda x: named(named(x, 4, "zeros"), 3, "filled", kernel_initializer=SMALL), "train"),
    (lambda x: named(x, 3, "left") + named(x, 3, "right"), "train"),
    (lambda x: named(named(x, 4, "zeros"), 3, "asked", kernel_initializer=flow.zeros_initializer()), "train"),
    (lambda x: named(named(x, 4, "frozen", trainable=False), 3, "zeros"), "train"),
    (lambda x: named(named(x, 4, "one"), 3, "two"), "predict"),
], ids=["one", "last", "first", "side by side", "asked for", "frozen", "predict"])  # fmt: skip
def test_learning_or_explicit_zeros_do_not_warn(network, kind):
    trained(network, kind)


def test_layers_initialized_by_another_job_do_not_warn():
    trained(lambda x: named(named(x, 4, "a", kernel_initializer=SMALL), 3, "b", kernel_initializer=SMALL))
    trained(lambda x: named(named(x, 4, "a"), 3, "b"))
