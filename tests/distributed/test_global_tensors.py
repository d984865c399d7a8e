"""Global tensors as users have them: the programs of `global_programs.py`, and errors."""

import re

import numpy as np
import pytest

import minflow as flow
from minflow import distributed as dist
from minflow.core import op
from tests.distributed.global_programs import NUMBERS, PROGRAMS, WITH_FILES, B, S, global_of
from tests.distributed.test_ranks import launch, mpi
from tests.processes import TOP, python


def run(size, program, *args):
    with flow.virtual_ranks(size) as ranks:
        return ranks.run(program, *args)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_virtual_ranks(program, size):
    assert run(size, program) == [None] * size


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("program", WITH_FILES, ids=lambda program: program.__name__)
def test_files(program, size, tmp_path):
    assert run(size, program, tmp_path) == [None] * size


@mpi
@pytest.mark.parametrize("size", [2, 4])
def test_processes(size, tmp_path):
    program = TOP / "tests/distributed/global_programs.py"
    done = python(*launch, "-n", str(size), program, str(size), str(tmp_path), path=[TOP])
    assert done.returncode == 0, done.stdout + done.stderr
    said = f"{len(PROGRAMS)} programs passed on rank"
    assert sorted(re.findall(rf"{said} (\d) of {size}\b", done.stdout)) == [str(r) for r in range(size)]


@pytest.mark.parametrize(
    ("error", "message", "use"),
    [
        (flow.SbpError, r"DLPack .*\n  tensor +float64\[5, 3\] split\(0\) on ranks \[0, 1\]", np.from_dlpack),
        (flow.SbpError, "resize_ of a global tensor", lambda x: x.resize_(2, 2)),
        (flow.DeviceError, r"a local tensor is written into a global one", lambda x: x.copy_(flow.zeros(5, 3))),
        (flow.DeviceError, r"a local tensor is written into a global one", lambda x: x.__setitem__(0, flow.zeros(3))),
        (flow.DeviceError, r"take: x is a global tensor, and index is a local", lambda x: x[flow.tensor([1])]),
        (flow.DeviceError, r"add: a is a global tensor, and b is a local one", lambda x: x + np.ones(3)),
        (flow.ShapeError, r"split\(0\) on .*\n.*broadcast on", lambda x: setattr(x, "grad", x.to_global(sbp=B))),
        (flow.ShapeError, r"item\(\) of a tensor with 15 elements", lambda x: x.item()),
        (flow.CheckpointError, r'state\["w"\] is a global tensor, and no rank', lambda x: flow.save({"w": x}, "w.pt")),
        (flow.RankError, r"global_dst_rank must be a rank from 0 to 1, got 2", lambda x: flow.save(x, "w.pt", 2)),
        (flow.CheckpointError, r"no rank reads the file", lambda x: flow.load("w.pt", map_location=x.placement)),
        (flow.ModuleError, "DistributedDataParallel: weight is a global tensor", lambda x: replicated(x)),
        (flow.SbpError, r"(?s)all_reduce: tensor is a global.*Try: tensor.to_global", dist.all_reduce),
    ],
)
def test_refused(error, message, use):
    def program():
        with pytest.raises(error, match=message):
            use(global_of(NUMBERS, flow.placement("cpu", [0, 1]), S(0)))

    run(2, program)


@pytest.mark.parametrize("ranks, sbp", [([0, 1], "flow.sbp.broadcast"), ([[0], [1]], "[flow.sbp.broadcast] * 2")])
def test_the_hint_for_a_local_tensor_can_be_followed(ranks, sbp):
    def program():
        placement = flow.placement("cpu", ranks)
        a, b = global_of(NUMBERS, placement, [B] * len(placement.hierarchy)), flow.tensor(NUMBERS)
        with pytest.raises(flow.DeviceError) as caught:
            a + b
        call = f"b.to_global(a.placement, {sbp})"
        assert f"Try: {call}, if each rank has the same elements; or a.to_local()" in str(caught.value)
        assert np.array_equal((a + eval(call, {"flow": flow, "a": a, "b": b})).numpy(), 2 * NUMBERS)

    run(2, program)


def replicated(x):
    layer = flow.nn.Linear(3, 5)
    layer.weight = flow.nn.Parameter(x)
    flow.nn.parallel.DistributedDataParallel(layer)


def test_a_global_tensor_prints_after_its_ranks_have_ended():
    x = run(2, lambda: global_of(NUMBERS, flow.placement("cpu", [0, 1]), S(0)))[0]
    assert repr(x).startswith("tensor(..., size=(5, 3), placement=minflow.placement(")
    with pytest.raises(flow.RankError, match="there is no rank 1: the world has 1 rank"):
        x.numpy()


def test_a_notebook_shows_the_part_of_the_rank():
    placement = flow.placement("cpu", [0, 1])
    shown = run(2, lambda: flow.ones(60, 50, placement=placement, sbp=S(0))._repr_mimebundle_())
    assert all("Tensor float32[60, 50], this rank" in part["text/html"] for part in shown)


def test_each_rank_has_the_data_of_the_first_one():
    """Arrays and lists that differ by rank, as from NumPy's random numbers, are taken from the first rank."""

    def program():
        rank = flow.env.get_rank()
        x = global_of(NUMBERS, flow.placement("cpu", [0, 1]), B)
        x[0] = [rank, 1, 2]
        x[[rank, 2]] = np.full((2, 3), rank)
        return x.to_local().tolist()

    first, second = run(2, program)
    assert first == second
    assert first[:3] == [[0.0] * 3, [3.0, 4.0, 5.0], [0.0] * 3]


def test_an_error_of_the_rank_that_reads_or_writes_is_raised_on_all(tmp_path):
    def program():
        x = global_of(NUMBERS, flow.placement("cpu", [0, 1]), S(0))
        with pytest.raises(flow.CheckpointError) as not_written:
            flow.save({"x": x}, tmp_path / "no" / "folder.safetensors", global_dst_rank=1)
        with pytest.raises(flow.CheckpointError) as not_read:
            flow.load(tmp_path / "missing.safetensors", global_src_rank=1)
        return str(not_written.value), str(not_read.value)

    waiting, alone = run(2, program)
    assert "cannot be written" in alone[0] and "there is no file" in alone[1]
    assert re.search("save: rank 1, for which this rank waited, has .*\n.*MissingFileError: save: .*", waiting[0])
    assert re.search("load: rank 1, for which this rank waited, has .*\n.*MissingFileError: load: there", waiting[1])


def test_a_message_of_one_rank_does_not_wait_for_the_others():
    def program():
        x = global_of(NUMBERS, flow.placement("cpu", [0, 1]), S(0))
        if flow.env.get_rank() == 1:
            with pytest.raises(flow.DTypeError, match=re.escape("{'x': tensor(..., size=(5, 3), placement=")):
                x[{"x": x}]
        return flow.comm.barrier()

    run(2, program)


def running_sums(g):
    """A gradient rule that writes between two uses, which other ranks' elements are needed for."""
    g = g.clone()
    once = g.cumsum(0)
    g.mul_(2.0)
    return once + g.cumsum(0)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_gradient_that_a_rule_writes_is_boxed_again(size, monkeypatch):
    monkeypatch.setattr(op, "OPS", dict(op.OPS))
    copied = flow.library.custom_op("copied_for_test(x)", vjp=running_sums)(lambda xp, x: x.copy())

    def program():
        x, ones = [global_of(a, flow.placement.all("cpu"), S(0)) for a in (NUMBERS, np.ones_like(NUMBERS))]
        (copied(x.requires_grad_()) * ones).sum().backward()
        return x.grad.numpy()

    for found in run(size, program):
        np.testing.assert_array_equal(found, 3 * np.ones_like(NUMBERS).cumsum(0))
