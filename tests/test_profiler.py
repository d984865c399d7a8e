"""`flow.profiler`: events of ops, blocks, graphs and steps; tables, files, and the schedule."""

import gzip
import json

import pytest

import minflow as flow
from minflow import nn, profiler
from minflow.core.base.errors import OutOfRangeError, StateError
from minflow.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def names(prof):
    return [event.key for event in prof.events()]


def test_ops_inside_named_blocks():
    layer, x = nn.Linear(4, 3), flow.ones(2, 4)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True, profile_memory=True) as prof:
        with record_function("forward"):
            loss = layer(x).relu().sum()
        loss.backward()
    rows = {event.key: event for event in prof.key_averages()}
    assert {"forward", "relu", "relu_grad", "sum"} <= set(rows)
    block = rows["forward"]
    assert block.count == 1 and block.cpu_time_total >= block.self_cpu_time_total >= 0
    inside = prof.events()[: names(prof).index("forward")]
    assert block.cpu_time_total >= sum(event.self_cpu_time_total for event in inside)
    relu = next(event for event in prof.events() if event.key == "relu")
    assert relu.input_shapes == [[2, 3]] and relu.cpu_memory_usage == 24 and "test_profiler.py" in relu.stack[0]
    assert not names(profile())
    before = len(prof.events())
    flow.ones(2).relu()
    assert len(prof.events()) == before


def test_table():
    inputs = [flow.ones(n) for n in (2, 3, 3)]
    with profile(record_shapes=True) as prof:
        for x in inputs:
            x.exp()
    text = prof.key_averages(group_by_input_shape=True).table(sort_by="count", row_limit=1)
    lines = [line.split() for line in text.splitlines()]
    assert lines[3][0] == "exp" and "[[3]]" in text and "[[2]]" not in text and "Self CPU time total" in text
    assert "Input Shapes" not in prof.key_averages().table() and str(prof).count("exp") == 1
    assert prof.key_averages().total_average().count == len(prof.events())
    assert prof.self_cpu_time_total == pytest.approx(sum(e.self_cpu_time_total for e in prof.events()))
    with pytest.raises(OutOfRangeError, match="column 'size'"):
        prof.key_averages().table(sort_by="size")


def test_autocast_and_no_grad_inside():
    x = flow.ones(2, 2)
    with profile() as prof, flow.no_grad(), flow.autocast("cpu"):
        assert (x @ x).dtype is flow.bfloat16
    with flow.autocast("cpu"), profile() as inner:
        assert (x @ x).dtype is flow.bfloat16
    assert "matmul" in names(prof) and "matmul" in names(inner)


class Twice(nn.Graph):
    def build(self, x):
        return x * 2


def test_a_graph_is_one_event():
    graph = Twice()
    graph(flow.ones(2))
    with profile() as prof:
        graph(flow.ones(2))
    assert "nn.Graph Twice" in names(prof) and "mul" not in names(prof)


def test_files(tmp_path):
    with profile(record_shapes=True) as prof:
        flow.ones(100, 100).exp()
    for name, opened in (("trace.json", open), ("trace.json.gz", gzip.open)):
        prof.export_chrome_trace(str(tmp_path / name))
        with opened(tmp_path / name, "rt") as file:
            events = json.load(file)["traceEvents"]
        event = next(event for event in events if event["name"] == "exp")
        assert event["ph"] == "X" and event["dur"] > 0 and event["args"] == {"Input Dims": [[100, 100]]}


def test_steps_of_a_schedule(tmp_path):
    """As PyTorch: 2 cycles of 4 steps, of which the last two are recorded."""
    found, x = [], flow.ones(1)
    planned = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=planned, on_trace_ready=lambda prof: found.append((prof.step_num, names(prof)))) as prof:
        for _ in range(10):
            x.exp()
            prof.step()
    steps = [(number, [key for key in keys if key != "exp"]) for number, keys in found]
    assert steps == [(3, ["ProfilerStep#2", "ProfilerStep#3"]), (7, ["ProfilerStep#6", "ProfilerStep#7"])]
    assert [keys.count("exp") for _, keys in found] == [2, 2]
    handler = profiler.tensorboard_trace_handler(str(tmp_path / "logs"), worker_name="w")
    with profile(schedule=schedule(wait=0, warmup=0, active=1), on_trace_ready=handler) as prof:
        for _ in range(3):
            prof.step()
    assert [file.name.split(".")[0] for file in (tmp_path / "logs").iterdir()] == ["w"] * 4


def test_actions():
    planned = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    N, W, R, S = ProfilerAction
    assert [planned(step) for step in range(6)] == [N, N, W, R, S, N]
    with pytest.raises(OutOfRangeError, match="active"):
        schedule(wait=1, warmup=1, active=0)


def test_start_and_stop_and_old_names():
    from minflow.autograd.profiler import profile as older, record_function as named

    assert older is profile and named is record_function and flow.profiler is profiler
    prof, x = profile(), flow.ones(1)
    prof.start()
    named("f")(x.exp)()
    prof.stop()
    assert names(prof) == ["exp", "f"]
    with older(enabled=False) as off:
        flow.ones(1).exp()
    assert not names(off)
    with pytest.raises(StateError, match="operations are not counted"):
        profile(with_flops=True)
    with pytest.raises(ZeroDivisionError), profile() as prof:
        1 / 0
    flow.ones(1).exp()
    assert not names(prof)
