"""Job functions on several ranks: the programs of `job_programs.py`, settings of a cluster, and errors."""

import re

import pytest

import minflow as flow
import minflow.typing as tp
from minflow.core.base.errors import JobError, RankError
from minflow.core.context import world
from minflow.job.session import default_session
from tests.distributed import job_programs
from tests.distributed.job_programs import PROGRAMS, ranks
from tests.distributed.test_ranks import launch, mpi
from tests.processes import TOP, python


def run(size, program, *args):
    with flow.virtual_ranks(size) as opened:
        return opened.run(program, *args)


@pytest.fixture(autouse=True)
def settings():
    before = dict(default_session().settings)
    yield
    flow.clear_default_session()
    default_session().settings.clear()
    default_session().settings.update(before)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_virtual_ranks(program, size):
    assert run(size, program) == [None] * size


@mpi
@pytest.mark.parametrize("size", [2, 4])
def test_processes(size, tmp_path):
    program = TOP / "tests/distributed/job_programs.py"
    done = python(*launch, "-n", str(size), program, str(size), tmp_path, path=[TOP])
    assert done.returncode == 0, done.stdout + done.stderr
    said = f"{len(PROGRAMS)} programs passed on rank"
    assert sorted(re.findall(rf"{said} (\d) of {size}\b", done.stdout)) == [str(r) for r in range(size)]


@pytest.mark.parametrize("size", [2, 3])
def test_mirrored_view(size):
    lengths = [6] * size, [4 + i % 2 for i in range(size)]
    expected = {str(n): job_programs.mirrored(job_programs.fresh(size, "mirrored"), n) for n in lengths}
    run(size, job_programs.mirrored_equals_virtual_devices, expected)


@pytest.mark.parametrize(("wrote", "reads"), [(2, 1), (3, 2), (1, 4)])
def test_checkpoint_on_another_number_of_ranks(wrote, reads, tmp_path):
    folder = tmp_path / "checkpoint"
    run(wrote, job_programs.a_checkpoint_is_written_once, folder)
    expected = job_programs.continued(folder, 1)
    for found in run(reads, job_programs.continued, folder, reads):
        job_programs.assert_equal(found, expected)


# ---- settings --------------------------------------------------------------------------------------------------------


LAUNCH = r"(.|\n)*\n  Try: .*launch -n {} program.py"


@pytest.mark.parametrize(
    ("error", "message", "use"),
    [
        (RankError, "cpu_device_num: .*fewer ranks" + LAUNCH.format(3), lambda: flow.config.cpu_device_num(3)),
        (RankError, "machine_num: (.|\n)*stated +2(.|\n)*mpiexec -n 4 -hosts", lambda: flow.config.machine_num(2)),
        (RankError, "machine: .*another number of machines", lambda: flow.env.machine([{"addr": "a"}, {"addr": "b"}])),
        (RankError, "env.ctrl_port takes a port", lambda: flow.env.ctrl_port("50051")),
        (RankError, "config.data_port takes a port", lambda: flow.config.data_port(0)),
        (JobError, 'must be "machine:device"', lambda: flow.scope.placement("cpu", "0-1")),
        (JobError, 'must be "machine:device"', lambda: flow.scope.placement("cpu", [])),
        (RankError, "none of the ranks(.|\n)*0:2" + LAUNCH.format(3), lambda: placed("0:0-2")),
        (RankError, "none of the ranks(.|\n)*1:0", lambda: placed(["0:0", "1:0"])),
        (JobError, r"distribute.split\(1\) of a Blob with 1 axis\n", lambda: placed("0:0-1", 1)),
    ],
)
def test_refused(error, message, use):
    def program():
        with pytest.raises(error, match=message):
            use()

    run(2, program)


def placed(devices, axis=0):
    @flow.global_function()
    def job() -> tp.Numpy:
        with flow.scope.placement("cpu", devices):
            return flow.get_variable("x", (3,), distribute=flow.distribute.split(axis)) + 1

    job()


def test_mirrored_view_needs_all_ranks():
    def program():
        with pytest.raises(RankError, match="mirrored view, which needs one device for each rank"):
            job_programs.trained(job_programs.dense, job_programs.fresh(2, "mirrored"))

    run(3, program)


def test_settings_that_state_what_the_launcher_does():
    def program():
        flow.config.machine_num(1)
        flow.config.ctrl_port(50051)
        flow.config.data_port(50052)
        flow.config.cpu_device_num(ranks())
        flow.env.machine({"addr": "127.0.0.1"})
        flow.env.ctrl_port(50051)
        assert "machine_num=1, ctrl_port=50051" in repr(flow.config) and "2 devices" in repr(flow.config)
        assert flow.env.current_resource()["ctrl_port"] == 50051

    run(2, program)


def test_fewer_devices_than_ranks():
    def program():
        expected = job_programs.trained(job_programs.dense, job_programs.fresh(), steps=3)
        job_programs.assert_equal(job_programs.trained(job_programs.dense, job_programs.fresh(2), steps=3), expected)
        return default_session().variables["h-weight"].tensor.array.size

    assert run(3, program) == [48, 48, 0]


def test_devices_of_two_machines():
    """The first ranks of a machine come before those of the next."""

    def program():
        expected = job_programs.trained(job_programs.dense, job_programs.fresh(), steps=3)
        world().machines = 2
        flow.config.machine_num(2)
        held = []
        for devices in (1, 2):
            config = job_programs.fresh(devices)
            job_programs.assert_equal(job_programs.trained(job_programs.dense, config, steps=3), expected)
            held.append(default_session().variables["h-weight"].ranks.order)
        with flow.scope.placement("cpu", ["1:0-1", "0:1"]) as place:
            assert place.ranks().order == (2, 3, 1)
        return held

    assert run(4, program) == [[(0, 2), (0, 1, 2, 3)]] * 4


def test_an_error_of_a_step_names_the_ranks():
    """A rank that does not call the job ends the others."""

    def program():
        config = job_programs.fresh(2)
        if flow.env.get_rank() == 0:
            job_programs.trained(job_programs.dense, config, steps=1)

    with pytest.raises(RankError, match="rank 1 has ended without"):
        run(2, program)
