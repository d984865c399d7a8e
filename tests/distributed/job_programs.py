"""Job functions on several ranks, which must equal the same job on one. Each rank runs each program."""

import sys

import numpy as np

import minflow as flow
import minflow.typing as tp
from minflow.core.context import world
from minflow.job.session import default_session

BATCH, STEPS = 14, 20  # a batch that 4 ranks cannot share evenly
DRAWN = np.random.default_rng(5)
BATCHES = [(DRAWN.standard_normal((BATCH, 6)), DRAWN.integers(0, 4, BATCH, "int32")) for _ in range(STEPS)]
EXAMPLES = tp.Numpy.Placeholder((BATCH, 6), dtype=flow.float64)
CLASSES = tp.Numpy.Placeholder((BATCH,), dtype=flow.int32)
split, broadcast = flow.distribute.split, flow.distribute.broadcast
WIDE = flow.truncated_normal(0.3)


def constant(rate):
    return flow.optimizer.PiecewiseConstantScheduler([], [rate])


OPTIMIZERS = {
    "sgd": lambda: flow.optimizer.SGD(constant(0.2), momentum=0.9),
    "clipped": lambda: flow.optimizer.SGD(
        constant(0.2), grad_clipping=flow.optimizer.grad_clipping.by_global_norm(0.5)
    ),
    "adam": lambda: flow.optimizer.Adam(constant(0.01), do_bias_correction=True),
    "lamb": lambda: flow.optimizer.LAMB(constant(0.01)),
    "scaled": lambda: flow.optimizer.SGD(
        constant(0.2), loss_scale_policy=flow.optimizer.loss_scale.dynamic_loss_scale(2.0**20, 3)
    ),
}


def dense(x, y):
    """A network whose random numbers, statistics and weights all ranks must have in common."""
    h = flow.layers.dense(x, 8, flow.nn.relu, kernel_initializer=WIDE, name="h", **REGULARIZED)
    h = flow.nn.dropout(flow.layers.batch_normalization(h), 0.3)
    return losses(flow.layers.dense(h, 4, kernel_initializer=WIDE, name="scores"), y)


REGULARIZED = {"kernel_regularizer": flow.regularizers.l2(0.01)}


def units_split(x, y):
    """Tensor-parallel: the units of the first layer, the features of the second."""
    h = flow.layers.dense(x, 9, flow.nn.relu, kernel_initializer=WIDE, name="h", model_distribute=split(0))
    return losses(flow.layers.dense(h, 4, kernel_initializer=WIDE, name="scores", model_distribute=split(1)), y)


def cast_in_between(x, y):
    """Each way to change a distribution, of values and of gradients."""
    w = flow.get_variable("w", (6, 4), flow.float64, WIDE, distribute=split(0))
    whole = flow.parallel_cast(x, distribute=broadcast(), gradient_distribute=split(0))
    scores = flow.matmul(whole.with_distribute(split(1)).with_gradient_distribute(broadcast()), w)
    again = flow.get_variable("w", (6, 4), flow.float64, WIDE, distribute=split(1))
    return losses(flow.parallel_cast(scores + flow.matmul(x, again), distribute=flow.distribute.auto()), y)


def two_stages(x, y):
    """The layers on different ranks, the last of which needs none of the first."""
    last = f"0:{devices_now() - 1}"
    with flow.scope.placement("cpu", "0:0"):
        h = flow.layers.dense(x, 8, flow.nn.relu, kernel_initializer=WIDE, name="h")
    with flow.scope.placement("cpu", [last]):
        scores = flow.layers.dense(h, 4, kernel_initializer=WIDE, name="scores")
    return losses(scores * np.ones(4), y)


def losses(scores, y):
    return flow.nn.sparse_softmax_cross_entropy_with_logits(y, scores)


def devices_now():
    return default_session().devices


def fresh(devices=1, view="consistent"):
    """Clear the session, for a job on this number of devices of each machine. Returns its config."""
    flow.clear_default_session()
    flow.manual_seed(3)
    flow.config.cpu_device_num(devices)
    config = flow.function_config()
    config.default_data_type(flow.float64)
    config.default_logical_view(getattr(flow.scope, f"{view}_view")())
    return config


def trained(network, config, optimizer="sgd", steps=STEPS, result=tp.Numpy):
    """The losses of each step, and all variables after the last."""

    @flow.global_function(type="train", function_config=config)
    def train(x: EXAMPLES, y: CLASSES) -> result:
        found = network(x, y)
        OPTIMIZERS[optimizer]().minimize(found)
        return found

    found = []
    for batch in BATCHES[:steps]:
        if result is tp.Numpy:
            found.append(train(*batch))
        else:
            train(*batch)(found.append)
    flow.sync_default_session()
    return found, elements()


def elements():
    return {name: x.numpy().copy() for name, x in flow.get_all_variables().items()}


def assert_equal(found, expected):
    for one, other in zip(found[0], expected[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    assert found[1].keys() == expected[1].keys()
    for name, array in expected[1].items():
        np.testing.assert_allclose(found[1][name], array, rtol=0, atol=1e-12, err_msg=name)


def ranks():
    return flow.env.get_world_size()


# ---- the consistent view ---------------------------------------------------------------------------------------------


def a_job_equals_one_rank():
    for network in (dense, units_split, cast_in_between, two_stages):
        expected = trained(network, fresh())
        sent = world().sent
        assert_equal(trained(network, fresh(ranks())), expected)
        assert (world().sent > sent) == (ranks() > 1), network  # real traffic
        assert_equal(trained(network, fresh(ranks()), result=tp.Callback[tp.Numpy]), expected)


def every_optimizer_equals_one_rank():
    for name in OPTIMIZERS:
        expected = trained(units_split, fresh(), name)
        assert_equal(trained(units_split, fresh(ranks()), name), expected)


def a_rank_has_its_part_only():
    trained(units_split, fresh(ranks()), steps=1)
    weight = default_session().variables["h-weight"]
    rows = len(np.array_split(range(9), ranks())[flow.env.get_rank()])
    assert weight.tensor.array.shape == (rows, 6) and weight.shape == (9, 6) == weight.numpy().shape
    assert default_session().slots["h-weight-momentum"].tensor.array.shape == (rows, 6)


def a_job_without_devices_runs_on_each_rank_by_itself():
    sent = world().sent
    config = fresh()
    config.default_placement_scope(flow.scope.placement("cpu", "0:0"))
    if flow.env.get_rank() == 0:
        with flow.scope.placement("cpu", "0:0"):
            trained(dense, config, steps=1)
    assert world().sent == sent


def a_placement_alone_names_ranks():
    """In the config, and inside the function of a job that otherwise runs on each rank by itself."""
    everywhere = flow.scope.placement("cpu", f"0:0-{ranks() - 1}")
    expected = trained(units_split, fresh())
    config = fresh()
    config.default_placement_scope(everywhere)
    assert_equal(trained(units_split, config), expected)

    def placed(x, y):
        with everywhere:
            h = flow.layers.dense(x, 9, flow.nn.relu, kernel_initializer=WIDE, name="h", model_distribute=split(0))
        assert (h.spec.placement is None, x.spec.placement) == (ranks() == 1, None)
        return losses(flow.layers.dense(h, 4, kernel_initializer=WIDE, name="scores"), y)

    assert_equal(trained(placed, fresh()), expected)


def ranks_agree_on_the_seed():
    config = fresh(ranks())
    flow.manual_seed(flow.env.get_rank() - 5)
    mine, everyone = trained(dense, config, steps=2), [None] * ranks()
    flow.distributed.all_gather_object(everyone, mine)
    for theirs in everyone:
        assert_equal(mine, theirs)


def variables_are_shared_by_jobs_with_other_distributions():
    """A variable keeps the distribution that it was created with."""
    trained(units_split, fresh(ranks()), steps=2)
    flow.config.cpu_device_num(1)

    @flow.global_function()
    def alone(x: EXAMPLES, y: CLASSES) -> tp.Numpy:
        return units_split(x, y)

    before = alone(*BATCHES[0])
    flow.config.cpu_device_num(ranks())

    @flow.global_function()
    def together(x: EXAMPLES, y: CLASSES) -> tp.Numpy:
        return units_split(x, y)

    np.testing.assert_allclose(together(*BATCHES[0]), before, rtol=0, atol=1e-12)
    flow.load_variables({"h-bias": np.ones(9)})
    assert not np.allclose(together(*BATCHES[0]), before)
    np.testing.assert_allclose(together(*BATCHES[0]), alone(*BATCHES[0]), rtol=0, atol=1e-12)


def predictions_are_whole_on_each_rank():
    x, y = np.arange(15.0, dtype="float32").reshape(5, 3), np.ones((5, 3), "float32")

    def check(axis):
        @flow.global_function(function_config=fresh(ranks()))
        def halves(
            x: tp.Numpy.Placeholder((5, 3), batch_axis=axis), y: tp.Numpy.Placeholder((5, 3), batch_axis=None)
        ) -> tuple[tp.Numpy, tp.Numpy, tp.Numpy]:
            if ranks() > 1:
                assert (x.split_axis, x.parallel_conf) == (axis, f"cpu:{','.join(map(str, range(ranks())))}")
            return x / 2, x + y, flow.math.reduce_sum(x, axis=[0])

        for found, expected in zip(halves(x, y), (x / 2, x + y, x.sum(0)), strict=True):
            assert np.array_equal(found, expected)

    for axis in (0, 1, None):
        check(axis)


# ---- the mirrored view -----------------------------------------------------------------------------------------------


def mirrored(config, lengths, steps=5):
    """A job whose devices get batches of these lengths: (results, what the watches saw, all variables)."""
    rng, results, seen = np.random.default_rng(0), [], []
    most = max(lengths)

    @flow.global_function(type="train", function_config=config)
    def train(
        x: tp.ListNumpy.Placeholder((most, 6), dtype=flow.float64),
        y: tp.ListNumpy.Placeholder((most,), dtype=flow.int32),
    ) -> tp.ListNumpy:
        h = flow.layers.dense(x, 4, kernel_initializer=WIDE, name="h", **REGULARIZED)
        h = flow.nn.dropout(flow.layers.batch_normalization(h), 0.3)
        flow.watch(h, seen.append)
        flow.watch_diff(h, seen.append)
        found = losses(h, y)
        OPTIMIZERS["sgd"]().minimize(found)
        return found

    for _ in range(steps):
        inputs = [(rng.standard_normal((n, 6)), rng.integers(0, 4, n, "int32")) for n in lengths]
        results += train(*[list(arrays) for arrays in zip(*inputs)])
    return results, elements(), [part for value in seen for part in value.numpy_list()]


def mirrored_equals_virtual_devices(expected):
    """expected: of a program with one rank, for each number of devices."""
    for lengths in ([6] * ranks(), [4 + i % 2 for i in range(ranks())]):
        sent = world().sent
        found = mirrored(fresh(ranks(), "mirrored"), lengths)
        assert (world().sent > sent) == (ranks() > 1)
        assert_equal(found, expected[str(lengths)])
        for one, other in zip(found[2], expected[str(lengths)][2], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def a_mirrored_batch_is_split():
    """Without statistics and dropout, parts of a batch train like the whole."""
    if BATCH % ranks() == 0:
        expected = trained(cast_in_between, fresh())
        assert_equal(trained(cast_in_between, fresh(ranks(), "mirrored")), expected)
        if ranks() > 1:  # the first part of a batch belongs to the first device of the list
            config = fresh(1, "mirrored")
            config.default_placement_scope(flow.scope.placement("cpu", [f"0:{i}" for i in range(ranks())][::-1]))
            assert_equal(trained(cast_in_between, config), expected)


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def a_checkpoint_is_written_once(folder):
    """By the first rank; others than wrote it go on with it, on another number of ranks."""
    config = fresh(ranks())
    checkpoint = flow.train.CheckPoint()
    trained(units_split, config, "adam", 3)
    checkpoint.save(folder)
    try:
        checkpoint.save(folder)
    except flow.CheckpointError as error:
        assert "is not empty" in str(error)
    else:
        raise AssertionError("a checkpoint was written over another one")
    manager = flow.train.SimpleCheckPointManager(f"{folder} managed")
    assert [manager.save()] == manager.list_checkpoints()
    assert manager.initialize_or_restore().missing == []


def continued(folder, devices):
    """The steps after those of the checkpoint in a folder."""
    config = fresh(devices)
    flow.train.CheckPoint().load(folder)
    return trained(units_split, config, "adam", 3)


PROGRAMS = [
    a_job_equals_one_rank,
    every_optimizer_equals_one_rank,
    a_rank_has_its_part_only,
    a_job_without_devices_runs_on_each_rank_by_itself,
    a_placement_alone_names_ranks,
    ranks_agree_on_the_seed,
    variables_are_shared_by_jobs_with_other_distributions,
    predictions_are_whole_on_each_rank,
    a_mirrored_batch_is_split,
]


def whole_program(folder):
    """All programs on the ranks of a launcher."""
    for program in PROGRAMS:
        program()
    a_checkpoint_is_written_once(f"{folder}/checkpoint")
    assert_equal(continued(f"{folder}/checkpoint", ranks()), continued(f"{folder}/checkpoint", 1))


if __name__ == "__main__":
    flow.distributed.init_process_group(timeout=60)
    whole_program(sys.argv[2])
    print(f"{len(PROGRAMS)} programs passed on rank {flow.env.get_rank()} of {sys.argv[1]}")
    assert flow.env.get_world_size() == int(sys.argv[1])
