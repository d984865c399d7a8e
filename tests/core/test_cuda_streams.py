"""Streams and events of `flow.cuda` on the stand-in for a GPU, whose work can be delayed."""

import gc
import threading

import pytest

import minflow as flow
from minflow.core.streams import RELEASED
from minflow.core.tensor import Tensor
from minflow.utils.data import DataLoader
from tests.strict_streams import delayed


def test_work_of_two_streams_is_ordered_by_events(cuda):
    x, side = flow.ones(4).to("cuda"), flow.cuda.Stream()
    with delayed("all"):
        y = x * 2
        side.wait_stream(flow.cuda.current_stream())
        with flow.cuda.stream(side):
            assert flow.cuda.current_stream() == side
            z = y + 1
            event = side.record_event()
            assert not event.query() and not side.query()
        event.wait()
        assert (z * 10).tolist() == [30.0] * 4
        assert event.query() and side.query()
    assert flow.cuda.current_stream() == flow.cuda.default_stream() != side


def test_results_are_wrong_without_the_event(cuda):
    side = flow.cuda.Stream()
    with delayed():
        with side:
            z = flow.ones(4, device="cuda") * 3
        assert (z + 1).tolist() != [4.0] * 4
        side.synchronize()
        assert (z + 1).tolist() == [4.0] * 4


def test_a_stream_is_that_of_its_thread(cuda):
    found, side = [], flow.cuda.Stream()
    with flow.cuda.stream(side), flow.cuda.stream(None):
        thread = threading.Thread(target=lambda: found.append(flow.cuda.current_stream()))
        thread.start()
        thread.join()
        assert flow.cuda.current_stream() == side and hash(flow.cuda.current_stream()) == hash(side)
    assert found == [flow.cuda.default_stream()]
    flow.cuda.set_stream(side)
    flow.cuda.set_stream(None)
    assert flow.cuda.current_stream() == side
    flow.cuda.set_stream(flow.cuda.default_stream())


def test_synchronize_waits_for_all_streams(cuda):
    side = flow.cuda.Stream()
    with delayed():
        with flow.cuda.stream(side):
            z = flow.ones(4, device="cuda") * 3
        flow.cuda.synchronize()
        assert side.query() and z.tolist() == [3.0] * 4


def test_the_time_between_events(cuda):
    first, last = flow.cuda.Event(enable_timing=True), flow.cuda.Event(enable_timing=True)
    with pytest.raises(flow.DeviceError, match="was not recorded"):
        first.elapsed_time(last)
    first.record()
    last.record(flow.cuda.current_stream())
    last.synchronize()
    assert first.elapsed_time(last) >= 0
    untimed = flow.cuda.current_stream().record_event()
    with pytest.raises(flow.DeviceError, match="enable_timing=True"):
        first.elapsed_time(untimed)


def test_memory_is_kept_until_another_stream_has_read_it(cuda):
    side = flow.cuda.Stream()
    RELEASED.clear()
    with delayed():
        x = Tensor((flow.ones(4, device="cuda") * 3).array)
        with flow.cuda.stream(side):
            y = x + 1
        x.record_stream(side)
        del x
        gc.collect()
        assert [array.inner.tolist() for _, _, array in RELEASED] == [[3.0] * 4]
        side.synchronize()
        z = flow.ones(4, device="cuda")
        z.record_stream(side)
        del z
        gc.collect()
        assert len(RELEASED) == 1  # that of z: the work that reads x has ended
    assert y.tolist() == [4.0] * 4


def test_streams_without_a_gpu():
    for make in (flow.cuda.Stream, flow.cuda.current_stream, flow.cuda.default_stream, flow.cuda.Event().record):
        with pytest.raises(flow.DeviceError, match="there is no device cuda"):
            make()
    assert flow.cuda.Event().query()
    flow.ones(2).record_stream(None)
    with flow.cuda.stream(None):
        pass


def test_a_pinned_tensor_is_copied_without_waiting(cuda):
    x, side = flow.arange(4.0).pin_memory(), flow.cuda.Stream()
    assert x.is_pinned() and x.pin_memory() is x and not flow.arange(4.0).is_pinned()
    with delayed(), side:
        blocking, later = x.to("cuda"), x.cuda(non_blocking=True)
        x.zero_()  # too early
        assert blocking.tolist() == [0.0, 1.0, 2.0, 3.0] and later.tolist() == [0.0] * 4
    assert later.device.type == "cuda" and not later.is_pinned() and later.pin_memory() is later
    x.requires_grad_()
    x.to("cuda", non_blocking=True).sum().backward()
    assert x.grad.tolist() == [1.0] * 4 and x.pin_memory() is x


def test_pinned_memory_is_kept_until_it_was_copied(cuda):
    side = flow.cuda.Stream()
    with delayed(), side:
        RELEASED.clear()
        y = flow.arange(4.0).pin_memory().to("cuda", non_blocking=True)
        gc.collect()
        assert len(RELEASED) == 1 and y.tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_pins_the_tensors_of_a_batch(workers, cuda):
    def collate(samples):
        x = flow.stack(samples)
        return {"x": x, "pair": (x + 1, "text"), "list": [x * 2], "n": len(samples)}

    loader = DataLoader([*flow.arange(4.0)], batch_size=2, collate_fn=collate, pin_memory=True, num_workers=workers)
    for k, batch in enumerate(loader):
        assert batch["pair"][1] == "text" and batch["n"] == 2
        for t, values in ((batch["x"], [0, 1]), (batch["pair"][0], [1, 2]), (batch["list"][0], [0, 2])):
            first = 2 * k * (2 if t is batch["list"][0] else 1)
            assert t.is_pinned() and t.to("cuda", non_blocking=True).tolist() == [first + v for v in values]
