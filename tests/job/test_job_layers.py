"""flow.layers in job functions: names and shapes of variables, numbers against plain numpy, training, and mistakes."""

import numpy as np
import pytest
from builders import job_of, refused, sgd

import minflow as flow
import minflow.job.typing as tp
from minflow.core.base.errors import JobError, ShapeError
from minflow.job.session import default_session

pytestmark = pytest.mark.usefixtures("fresh")
RNG = np.random.default_rng(1)
MATRIX, IMAGE = np.zeros((4, 3), "float32"), np.zeros((1, 4, 8, 8), "float32")


@pytest.fixture
def session(fresh):
    return fresh


def numbers(*shape):
    return RNG.standard_normal(shape).astype("float32")


def ran(function, *arrays, kind="predict"):
    """What one step of a job of `function(*blobs)` gives, as numpy."""
    return job_of(function, *arrays, kind=kind, name="a_job")(*arrays)


def variable(name):
    return default_session().variables[name].numpy()


def put(name, array):
    default_session().variables[name].set(array)


INIT = flow.random_normal_initializer(0, 1)

# ---- dense -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 3)])
def test_dense_keeps_its_weight_as_units_by_features(shape):
    x = numbers(*shape)
    out = ran(lambda x: flow.layers.dense(x, 6, kernel_initializer=INIT, bias_initializer=INIT, name="fc"), x)
    weight, bias = variable("fc-weight"), variable("fc-bias")
    assert weight.shape == (6, 3) and bias.shape == (6,) and out.shape == (*shape[:-1], 6)
    assert np.allclose(out, x @ weight.T + bias, atol=1e-5)


def test_dense_starts_at_zero_and_may_lack_a_bias(session):
    assert (ran(lambda x: flow.layers.dense(x, 6, use_bias=False), numbers(4, 3)) == 0).all()
    assert list(session.variables) == ["Dense-weight"] and not variable("Dense-weight").any()


def test_an_activation_is_called_with_its_name(session):
    seen = []

    def activation(x, name):
        seen.append(name)
        return flow.nn.relu(x, name)

    x = numbers(4, 3)
    make = lambda x, **o: flow.layers.dense(x, 6, kernel_initializer=INIT, name="fc", **o)  # noqa: E731
    out = ran(lambda x: make(x, activation=activation), x)
    assert seen == ["activation"] and np.allclose(out, np.maximum(x @ variable("fc-weight").T, 0), atol=1e-5)
    for unnamed in (flow.relu, lambda x: flow.relu(x), flow.nn.ReLU()):
        assert np.array_equal(ran(lambda x, unnamed=unnamed: make(x, activation=unnamed), x), out)


def test_an_activation_may_be_a_layer(session):
    ran(lambda x: flow.layers.dense(x, 6, activation=flow.layers.prelu, name="fc"), numbers(4, 3))
    assert list(session.variables) == ["fc-weight", "fc-bias", "fc-activation-alpha"]


def test_namespaces_stand_in_front(session):
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
    layer = lambda x: flow.layers.dense(x, 2, kernel_initializer=INIT, name="shared")  # noqa: E731
    first = ran(layer, x)
    another_job = job_of(layer, x, name="another_job")
    assert np.array_equal(another_job(x), first) and first.any()


# ---- conv2d ------------------------------------------------------------------------------------------------------


def by_hand(x, w, stride, pads):
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), *pads))
    (oh, ow), (kh, kw) = [(n - k) // stride + 1 for n, k in zip(x.shape[2:], w.shape[2:])], w.shape[2:]
    out = np.zeros((len(x), len(w), oh, ow))
    for i in range(oh):
        for j in range(ow):
            seen = x[:, :, i * stride : i * stride + kh, j * stride : j * stride + kw]
            out[:, :, i, j] = np.tensordot(seen, w, ((1, 2, 3), (1, 2, 3)))
    return out


@pytest.mark.parametrize("padding, pads", [
    ("VALID", [(0, 0), (0, 0)]), ("SAME", [(1, 0), (1, 1)]), ("SAME_LOWER", [(1, 0), (1, 1)]),
    ("SAME_UPPER", [(0, 1), (1, 1)]),
    (((0, 0), (0, 0), (2, 1), (0, 3)), [(2, 1), (0, 3)]), ((0, 0, 1, 2), [(1, 1), (2, 2)]),
])  # fmt: skip
def test_conv2d_with_each_padding(padding, pads):
    x = numbers(2, 3, 8, 7)
    make = lambda x: flow.layers.conv2d(x, 4, 3, 2, padding, bias_initializer=INIT, name="conv")  # noqa: E731
    out = ran(make, x)
    weight, bias = variable("conv-weight"), variable("conv-bias")
    assert weight.shape == (4, 3, 3, 3) and bias.shape == (4,)
    assert np.allclose(out, by_hand(x, weight, 2, pads) + bias[:, None, None], atol=1e-4)


def test_conv2d_with_channels_last():
    x = numbers(2, 7, 7, 3)
    out = ran(lambda x: flow.layers.conv2d(x, 4, (3, 2), 2, "SAME", "NHWC", activation=flow.nn.relu), x)
    weight = variable("Conv2d-weight")
    assert weight.shape == (4, 3, 2, 3)
    expected = by_hand(x.transpose(0, 3, 1, 2), weight.transpose(0, 3, 1, 2), 2, [(1, 1), (1, 0)])
    assert np.allclose(out, np.maximum(expected, 0).transpose(0, 2, 3, 1), atol=1e-4)


def test_conv2d_in_groups_and_dilated():
    x = numbers(1, 4, 9, 9)
    out = ran(lambda x: flow.layers.conv2d(x, 6, 3, groups=2, dilation_rate=2, use_bias=False), x)
    weight = variable("Conv2d-weight")
    assert weight.shape == (6, 2, 3, 3) and out.shape == (1, 6, 5, 5)
    wide = np.zeros((6, 2, 5, 5))
    wide[:, :, ::2, ::2] = weight
    expected = [by_hand(x[:, 2 * g : 2 * g + 2], wide[3 * g : 3 * g + 3], 1, [(0, 0), (0, 0)]) for g in range(2)]
    assert np.allclose(out, np.concatenate(expected, 1), atol=1e-4)


def test_conv2d_fills_its_weight_by_xavier():
    ran(lambda x: flow.layers.conv2d(x, 64, 3), numbers(1, 32, 3, 3))
    limit = np.sqrt(6 / ((32 + 64) * 9))
    found = np.abs(variable("Conv2d-weight"))
    assert 0.99 * limit < found.max() <= limit and not variable("Conv2d-bias").any()


def test_conv1d():
    x = numbers(2, 3, 10)
    out = ran(lambda x: flow.layers.conv1d(x, 4, 3, 2, "SAME"), x)
    expected = by_hand(x[:, :, None], variable("Conv1d-weight")[:, :, None], 2, [(0, 0), (1, 0)])
    assert np.allclose(out, expected[:, :, 0], atol=1e-4)


def test_the_layers_of_seed_003():
    def layer_example(x):
        made = flow.layers.conv2d(x, filters=128, kernel_size=3, strides=2, padding="SAME",
                                  kernel_initializer=flow.truncated_normal(0.1), name="Conv2d")
        assert made.shape == (1, 128, 64, 64)
        return flow.layers.batch_normalization(made, axis=1)

    x = numbers(1, 64, 128, 128)
    out = ran(layer_example, x)
    weight = variable("Conv2d-weight").astype("float64")
    wide = np.pad(x.astype("float64"), ((0, 0), (0, 0), (1, 0), (1, 0)))
    for i, j in ((0, 0), (63, 63), (5, 0), (0, 17)):  # of 128x64x64 numbers these, each from its definition
        expected = np.tensordot(
            wide[0, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3], weight, ((0, 1, 2), (1, 2, 3))
        ) / np.sqrt(1.001)
        assert np.allclose(out[0, :, i, j], expected, atol=1e-3)


# ---- norms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "axis, shape", [(1, (4, 3, 2, 5)), (-1, (4, 2, 5, 3)), (-1, (8, 3)), (2, (4, 2, 3, 5)), (0, (3, 6))]
)
def test_batch_normalization_of_a_batch(axis, shape):
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
def test_batch_normalization_by_moving_numbers(kind, options, session):
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
        out = flow.layers.batch_normalization(
            flow.layers.dense(x, 3, kernel_initializer=INIT), center=False, scale=False
        )
        sgd(out, 0.1)
        return out

    ran(function, numbers(8, 2), kind="train")
    assert [n for n in session.variables if n.startswith("BatchNorm")] == [
        "BatchNorm-moving_mean",
        "BatchNorm-moving_variance",
    ]


def test_batch_normalization_sends_the_gradient_through_the_batch():
    """Against central differences in float64 of the loss as numpy computes it."""
    x, w = RNG.standard_normal((6, 2)), RNG.standard_normal((6, 3))

    def function(x, w):
        hidden = flow.layers.dense(x, 3, kernel_initializer=INIT, name="fc", use_bias=False)
        out = flow.layers.batch_normalization(hidden, axis=-1, name="bn")
        loss = flow.math.reduce_sum(out * w)
        sgd(loss)
        return loss

    def loss(weight):
        h = x @ weight.T
        return ((h - h.mean(0)) / np.sqrt(h.var(0) + 0.001) * w).sum()

    ran(lambda x: flow.layers.dense(x, 3, kernel_initializer=INIT, name="fc", use_bias=False), x)
    before = variable("fc-weight")
    assert np.isclose(ran(function, x, w, kind="train"), loss(before))
    step = before - variable("fc-weight")
    for i in np.ndindex(3, 2):
        d = np.zeros((3, 2))
        d[i] = 1e-5
        assert np.isclose(step[i], (loss(before + d) - loss(before - d)) / 2e-5, atol=1e-6)


def test_batch_normalization_with_relu():
    x, y = numbers(4, 3), numbers(4, 3)
    got = ran(lambda x: flow.layers.batch_normalization_relu(x, name="a"), x)
    assert np.allclose(got, np.maximum(x / np.sqrt(1.001), 0), atol=1e-5)
    got = ran(lambda x, y: flow.layers.batch_normalization_add_relu(x, y, axis=1, name="b"), x, y)
    assert np.allclose(got, np.maximum(x / np.sqrt(1.001) + y, 0), atol=1e-5)


def test_layer_norm_multiplies_by_gamma():
    x = numbers(2, 3, 4)
    layer = lambda x: flow.layers.layer_norm(x, name="ln")  # noqa: E731
    expected = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    assert np.allclose(ran(layer, x), expected, atol=1e-5)
    gamma, beta = numbers(4), numbers(4)
    put("ln-gamma", gamma), put("ln-beta", beta)
    assert np.allclose(ran(layer, x), expected * gamma + beta, atol=1e-5)


def test_layer_norm_of_rows_with_matrices_of_parameters(session):
    x = numbers(2, 3, 4)
    out = ran(lambda x: flow.layers.layer_norm(x, begin_norm_axis=-1, begin_params_axis=1, center=False), x)
    assert np.allclose(out, (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5), atol=1e-4)
    assert {n: v.shape for n, v in session.variables.items()} == {"LayerNorm-gamma": (3, 4)}


# ---- others ------------------------------------------------------------------------------------------------------


def test_prelu(session):
    x = numbers(4, 3, 2, 2)
    make = lambda x: flow.layers.prelu(x, flow.constant_initializer(0.25), shared_axes=[2, 3])  # noqa: E731
    assert np.allclose(ran(make, x), np.where(x > 0, x, 0.25 * x)) and variable("PRelu-alpha").shape == (3, 1, 1)


def test_upsample_2d_repeats_pixels():
    x = numbers(2, 3, 4, 5)
    expected = x.repeat(2, 2).repeat(3, 3)
    assert np.array_equal(ran(lambda x: flow.layers.upsample_2d(x, (2, 3)), x), expected)
    got = ran(lambda x: flow.layers.upsample_2d(x, (2, 3), "NHWC"), x.transpose(0, 2, 3, 1))
    assert np.array_equal(got, expected.transpose(0, 2, 3, 1))


def test_dropout_drops_in_train_jobs_only():
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


def test_a_seed_gives_a_dropout_of_its_own():
    def drops(x):
        a, b = (flow.nn.dropout(x, 0.5, seed=3, name=name) for name in "ab")
        sgd(flow.layers.dense(a + b, 1))
        return a, b

    x = np.ones((10, 10), "float32")
    seeded = job_of(drops, x, kind="train", result=tuple[tp.Numpy, tp.Numpy])
    a, b = seeded(x)
    assert np.array_equal(a, b) and not np.array_equal(seeded(x)[0], a)


def test_regularizers_shrink_what_they_are_given_to():
    def function(x):
        twos, decay = flow.constant_initializer(2.0), flow.regularizers.l2(0.5)
        out = flow.layers.dense(x, 2, kernel_initializer=twos, kernel_regularizer=decay, name="fc")
        sgd(out * 0.0, 0.1)
        return out

    ran(function, numbers(4, 3), kind="train")
    assert np.allclose(variable("fc-weight"), 2 - 0.1 * 0.5 * 2)


def test_what_is_not_trainable_stays():
    def function(x):
        hidden = flow.layers.dense(
            x, 3, kernel_initializer=flow.constant_initializer(1.0), trainable=False, name="fixed"
        )
        sgd(flow.layers.dense(hidden, 1, kernel_initializer=flow.constant_initializer(1.0), name="free"), 0.1)
        return hidden

    ran(function, np.ones((4, 2), "float32"), kind="train")
    assert (variable("fixed-weight") == 1).all() and not variable("fixed-bias").any()
    assert (variable("free-weight") != 1).all()


def test_views_call_the_ops_of_a_layer_by_its_name():
    seen = []

    def function(x):
        hidden = flow.layers.conv2d(x, 2, 3, activation=flow.nn.relu, name="conv1")
        seen.append(hidden.op_name)
        return hidden

    ran(function, numbers(1, 1, 4, 4))
    assert seen[0].startswith("conv1/activation")


def test_the_lenet_of_the_seeds_learns():
    """Two classes of images, told by their bright half: the four layers of seed 000's LeNet, smaller."""
    truncated = flow.truncated_normal(0.1)

    def lenet(x, train):
        x = flow.layers.conv2d(
            x, 4, 5, padding="SAME", activation=flow.nn.relu, name="conv1", kernel_initializer=truncated
        )
        x = flow.nn.max_pool2d(x, ksize=2, strides=2, padding="SAME", name="pool1")
        x = flow.reshape(x, [x.shape[0], -1])
        x = flow.layers.dense(x, 16, activation=flow.nn.relu, kernel_initializer=truncated, name="dense1")
        x = flow.nn.dropout(x, rate=0.5, name="dropout") if train else x
        return flow.layers.dense(x, 2, kernel_initializer=truncated, name="dense2")

    def train(images, labels):
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, lenet(images, True), name="softmax_loss")
        sgd(loss, 0.1)
        return loss

    labels = np.arange(20, dtype="int32") % 2
    images = RNG.random((20, 1, 8, 8)).astype("float32") * 0.5
    images[labels == 1, :, :4] += 0.5
    train_job, eval_job = job_of(train, images, labels, kind="train"), job_of(lambda x: lenet(x, False), images)
    flow.manual_seed(3)
    losses = [train_job(images, labels) for _ in range(60)]
    assert losses[0].shape == (20,) and losses[-1].mean() < 0.3 < losses[0].mean()
    assert (eval_job(images).argmax(1) == labels).all()


def test_losses_with_the_name_of_a_class_are_functions_of_blobs():
    x, y = numbers(4, 3), numbers(4, 3)
    assert np.isclose(ran(lambda x, y: flow.nn.MSELoss(x, y), x, y), ((x - y) ** 2).mean())
    got = ran(lambda x, y: flow.nn.L1Loss(x, target=y, reduction="sum", name="l1"), x, y)
    assert np.isclose(got, np.abs(x - y).sum(), rtol=1e-5)
    assert np.isclose(ran(lambda x, y: flow.nn.L1Loss(input=x, target=y), x, y), np.abs(x - y).mean())
    p, z = 1 / (1 + np.exp(-x)), (y > 0).astype("float32")
    expected = -(z * np.log(p) + (1 - z) * np.log(1 - p))
    assert np.allclose(ran(lambda p, z: flow.nn.BCELoss(p, z, reduction="none"), p, z), expected, atol=1e-5)
    assert np.allclose(ran(lambda x, z: flow.nn.BCEWithLogitsLoss(x, z, reduction="none"), x, z), expected, atol=1e-5)
    assert ran(lambda x, y: flow.nn.KLDivLoss(x, y * 0), x, y) == 0
    assert np.isclose(ran(lambda x, y: flow.nn.MSELoss(reduction="sum")(x, y), x, y), ((x - y) ** 2).sum(), rtol=1e-5)
    with pytest.raises(RuntimeError, match=r"nn\.NLLLoss\(\)\(") as told:
        ran(lambda x, y: flow.nn.NLLLoss(x, y), x, y)
    assert "class nn.NLLLoss" in str(told.value)


# ---- mistakes ----------------------------------------------------------------------------------------------------

PLAIN = flow.zeros(2, 3)


@pytest.mark.parametrize("name, sizes", [
    ("dense", [3]), ("conv2d", [3]), ("batch_normalization", []), ("layer_norm", [])
])  # fmt: skip
def test_a_layer_outside_a_job(name, sizes):
    text = rf"flow\.layers\.{name} works only inside a job function"
    refused(getattr(flow.layers, name), JobError, text, PLAIN, *sizes)


def dense(x, units=3, **options):
    return flow.layers.dense(x, units, name="fc", **options)


def conv(x, filters=4, size=3, **options):
    return flow.layers.conv2d(x, filters, size, name="conv", **options)


@pytest.mark.parametrize("array, function, told", [
    (MATRIX, lambda x: dense(x, 0), "units is 0"),
    (MATRIX, lambda x: dense(x, 2.5), r"units is 2\.5"),
    (MATRIX, lambda x: dense(x, activation="relu"), "activation is 'relu'"),
    (MATRIX, lambda x: dense(x, kernel_initializer=0.1), r"constant_initializer\(0\.1\)"),
    (MATRIX, lambda x: dense(x, bias_initializer=flow.ones_initializer), r"flow\.ones_initializer\(\.\.\.\), called"),
    (MATRIX, lambda x: dense(x, kernel_regularizer=0.01), r"regularizers\.l2\(0\.01\)"),
    (MATRIX, lambda x: flow.layers.dense(x, 3, name=7), "name is 7"),
    (MATRIX[0], lambda x: dense(x), "the input has 1 axes"),
    (np.zeros((4, 3), "int32"), lambda x: dense(x), "the input is int32"),
    (MATRIX, lambda x: conv(x), "2 axes, wanted 4: NCHW"),
    (IMAGE, lambda x: conv(x, groups=3), "groups=3 divides 4 channels into 4 filters"),
    (IMAGE, lambda x: conv(x, data_format="NHWC", groups=2), "groups=2 with data_format NHWC"),
    (IMAGE, lambda x: conv(x, data_format="nchw!"), "data_format is 'nchw!'"),
    (IMAGE, lambda x: conv(x, padding="HALF"), "padding is 'HALF'"),
    (IMAGE, lambda x: conv(x, size=(3, 3, 3)), r"kernel_size is \(3, 3, 3\)"),
    (IMAGE, lambda x: conv(x, size=9), "reaches over 9 pixels does not fit in 8"),
    (IMAGE, lambda x: flow.layers.batch_normalization(x, axis=4), "axis is 4, and the input has 4 axes"),
    (IMAGE, lambda x: flow.layers.layer_norm(x, begin_norm_axis=5), "axis is 5"),
    (IMAGE, lambda x: flow.layers.prelu(x, shared_axes=[0]), r"shared_axes \[0\]"),
    (IMAGE, lambda x: flow.layers.upsample_2d(x, interpolation="bilinear"), "interpolation is 'bilinear'"),
    (MATRIX, lambda x: dense(np.zeros((2, 3))), "the inputs is no tensor but ndarray"),
])  # fmt: skip
def test_mistakes_with_layers(array, function, told, session):
    refused(ran, (JobError, ShapeError, TypeError), told, function, array)
    assert not session.variables
    assert ran(dense, MATRIX).shape == (4, 3)  # and all goes on


def test_two_layers_of_one_name_are_told_with_both_lines():
    def function(x):
        x = flow.layers.dense(x, 3, use_bias=False)
        return flow.layers.dense(x, 3, use_bias=False)

    error = refused(ran, JobError, "'Dense-weight' is there already", function, MATRIX)
    first = function.__code__.co_firstlineno + 1
    assert error.values == {"first": f"at test_job_layers.py:{first}"}
    assert error.where == f"at test_job_layers.py:{first + 1}"


def test_swapped_labels_and_two_names_are_told_in_one_pass():
    labels = np.zeros(4, "int32")

    def function(x, labels):
        logits = flow.layers.dense(flow.layers.dense(x, 3, use_bias=False, kernel_initializer=INIT), 3, use_bias=False)
        return flow.nn.sparse_softmax_cross_entropy_with_logits(logits, labels)

    with pytest.raises(JobError) as told:
        ran(function, MATRIX, labels, kind="train")
    text = str(told.value)
    assert "has 3 mistakes" in text and "named alike" in text and "labels and logits are swapped" in text
    assert "no optimizer" in text


def test_a_label_of_no_class_is_told_when_the_job_runs():
    loss = lambda x, y: flow.nn.sparse_softmax_cross_entropy_with_logits(y, x)
    refused(ran, JobError, "labels go from 0 to 5, and the input has 3 classes", loss, MATRIX, np.int32([0, 1, 5, 2]))


def test_names_that_are_not_there_are_told():
    assert dir(flow.layers) == flow.layers.__all__ and dir(flow.regularizers) == ["l1", "l1_l2", "l2"]
    with pytest.raises(AttributeError, match="did you mean flow.layers.conv2d"):
        flow.layers.conv_2d  # noqa: B018
    with pytest.raises(AttributeError, match="flow.regularizers has no l3"):
        flow.regularizers.l3  # noqa: B018


# ---- layers of zeros behind each other: they never learn, and a job that trains them says so -------------------------

ROWS = np.random.default_rng(1).standard_normal((4, 3)).astype("float32")


def named(x, units, name, **options):
    return flow.layers.dense(x, units, name=name, **options)


def trained(network, kind="train"):
    """A job of `network(x)`, run for two steps."""
    def losses(x):
        loss = flow.math.square(network(x) - 1.0)
        if kind == "train":
            sgd(loss, 0.1)
        return loss

    zero_job = job_of(losses, ROWS, kind=kind, name="zero_job")
    return [zero_job(ROWS) for _ in range(2)]


def test_zeros_behind_zeros_are_told_once():
    """OneFlow's default: nothing but the last bias learns, whatever the data are."""
    def network(x):
        hidden = named(x, 5, "first", activation=flow.nn.relu)
        hidden = named(hidden * 2.0, 4, "second", activation=flow.nn.relu)
        return named(hidden, 3, "third")

    with pytest.warns(flow.MinflowWarning) as caught:
        losses = trained(network)
    assert len(caught) == 1 and caught[0].filename == __file__
    text = str(caught[0].message)
    assert text.startswith(
        "job zero_job: the weights of the layers 'first' and 'second', one behind the other, all start at 0"
    )
    assert "Try: kernel_initializer=flow.truncated_normal(0.1) for both" in text
    assert f"at test_job_layers.py:{caught[0].lineno}" in text
    assert losses[1].mean() < losses[0].mean()  # by the last bias
    assert not any(default_session().variables[f"{name}-weight"].numpy().any() for name in ("first", "second", "third"))


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
def test_zeros_that_learn_or_are_meant_are_not_told(network, kind):
    trained(network, kind)


def test_layers_that_another_job_has_filled_are_not_told():
    trained(lambda x: named(named(x, 4, "a", kernel_initializer=SMALL), 3, "b", kernel_initializer=SMALL))
    trained(lambda x: named(named(x, 4, "a"), 3, "b"))
