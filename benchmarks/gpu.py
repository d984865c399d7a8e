"""Benchmark minflow on a GPU against PyTorch's modes, train steps and predictions, alternating in one run.

    python benchmarks/gpu.py                        # six models: six minutes
    python benchmarks/gpu.py --only mlp gpt         # some models
    python benchmarks/gpu.py --no-compile           # without torch.compile
    python benchmarks/gpu.py --output result.json   # the figures as JSON

A round runs each contestant for a while without waiting for the GPU, as a training loop does, and waits at its end. A
ratio is the median, with quartiles, of a contestant's time divided by that of a peer in the same round. Launches and
copies of a step are counted by PyTorch's profiler, which sees all of the process; peak memory by each library's pool.
Without a GPU it says so and measures nothing.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import compiled
import graph as graphs
import networks
import record
import timing
import trainings
from timing import human

MODELS = ("mlp", "lenet", "mobilenet", "resnet18", "gpt", "LSTM")
SMALL = ("mlp", "lenet", "gpt", "LSTM")  # whose time is that of launches
KINDS = ("train", "predict")
GRAPH, EAGER, TORCH, COMPILE, CAPTURED = "graph", "eager", "PyTorch", "torch.compile", "PyTorch CUDA graph"
CONTESTANTS = (GRAPH, EAGER, TORCH, COMPILE, CAPTURED)
AIMS = {(GRAPH, TORCH): 0.5, (GRAPH, CAPTURED): 1.1, (EAGER, TORCH): 1.2}  # largest ratios; the first of SMALL only
WARM_UP = 4  # steps: kernels are compiled, and graphs captured


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    parser = record.parser(__doc__, rounds=9)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS, metavar="MODEL", help=" ".join(MODELS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="train steps, predictions")
    parser.add_argument("--seconds", type=float, default=0.1, help="of a contestant in a round (default 0.1)")
    parser.add_argument("--no-torch", action="store_true", help="minflow's own figures only")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    return parser.parse_args(words)


# ---- contestants -----------------------------------------------------------------------------------------------------


def training_on(library: tuple, name: str, device: str) -> trainings.Training:
    """A model with its optimizer and batch on a device."""
    make = trainings.make if name in graphs.TRAININGS else networks.training
    found = make(library, name)
    found.model.to(device)
    return found._replace(batch=tuple([x.to(device) for x in found.batch]))


def our_step(name: str, kind: str, contestant: str, device: str) -> Callable[[], Any]:
    training = training_on(trainings.flow_library(), name, device)
    return compiled.our_step(training, kind, contestant == GRAPH)


def torch_step(name: str, kind: str, contestant: str, device: str) -> Callable[[], Any]:
    training = training_on(trainings.torch_library(), name, device)
    if contestant == CAPTURED:
        return captured(training, kind)
    return compiled.torch_step(training, kind, contestant)


def captured(training: trainings.Training, kind: str) -> Callable[[], Any]:
    """A step of PyTorch that is recorded in a CUDA graph and replayed, whose inputs stay in place."""
    import torch

    for group in training.optimizer.param_groups:
        if "capturable" in group:  # the count of steps is on the GPU
            group["capturable"] = True
    step = compiled.torch_step(training, kind, TORCH)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        step()
    return recorded.replay


def names_of_contestants(options: argparse.Namespace) -> list[str]:
    left_out = {TORCH, COMPILE, CAPTURED} if options.no_torch else {COMPILE} if options.no_compile else set()
    return [name for name in CONTESTANTS if name not in left_out]


# ---- measurements ----------------------------------------------------------------------------------------------------


def wait(contestant: str) -> None:
    """Wait until the GPU is idle."""
    library = trainings.flow_library if contestant in (GRAPH, EAGER) else trainings.torch_library
    library()[0].cuda.synchronize()


def seconds_of(step: Callable, contestant: str, steps: int) -> float:
    """The seconds of a step."""
    wait(contestant)
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wait(contestant)
    return (time.perf_counter() - start) / steps


def counts_of(step: Callable, contestant: str) -> dict[str, int]:
    """The numbers of launches and copies of a step; none without PyTorch."""
    try:
        from torch.profiler import ProfilerActivity, profile
    except ImportError:
        return {}
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        step()
        wait(contestant)
    names = [event.name for event in profiler.events()]
    launches = [name for name in names if "Launch" in name and name.startswith(("cuda", "cu"))]
    return {"launches": len(launches), "copies": len([name for name in names if name.startswith("Memcpy")])}


def peak_of(step: Callable, contestant: str) -> int:
    """The most bytes of arrays during a step."""
    library = trainings.flow_library if contestant in (GRAPH, EAGER) else trainings.torch_library
    cuda = library()[0].cuda
    wait(contestant)
    cuda.reset_peak_memory_stats()
    step()
    wait(contestant)
    return cuda.max_memory_allocated()


def measure(name: str, kind: str, options: argparse.Namespace, device: str = "cuda") -> dict[str, Any]:
    """The figures of each contestant. One that cannot run here has its reason instead."""
    steps, found = {}, {}
    for contestant in names_of_contestants(options):
        make = our_step if contestant in (GRAPH, EAGER) else torch_step
        try:
            step = make(name, kind, contestant, device)
            for _ in range(WARM_UP):
                step()
            steps[contestant] = step
            found[contestant] = {"peak": peak_of(step, contestant), **counts_of(step, contestant)}
        except (ImportError, RuntimeError, OSError) as error:
            found[contestant] = {"unavailable": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:140]}"}
    many = {key: max(1, int(options.seconds / seconds_of(step, key, 3))) for key, step in steps.items()}
    times = {key: [] for key in steps}
    for _ in range(options.rounds):
        for key, step in steps.items():
            times[key].append(seconds_of(step, key, many[key]))
    for key, values in times.items():
        found[key]["seconds"] = statistics.median(values)
    pairs = [pair for pair in AIMS if {*pair} <= {*times}]
    ratios = {f"{ours} / {peer}": timing.quartiles(times[ours], times[peer]) for ours, peer in pairs}
    return {"model": name, "kind": kind, "contestants": found, "ratios": ratios}


def lines_of(row: dict[str, Any]) -> Iterator[str]:
    """The table of one model: contestants, then ratios."""
    yield f"{row['model']}, {row['kind']}"
    for name, found in row["contestants"].items():
        if "unavailable" in found:
            yield f"  {name:20} {found['unavailable']}"
            continue
        counts = "".join([f"{found[key]:7} {key}" for key in ("launches", "copies") if key in found])
        yield f"  {name:20}{human(found['seconds']):>12}{counts}{found['peak'] / 1e6:10.1f} MB"
    for name, (low, middle, high) in row["ratios"].items():
        pair = tuple(name.split(" / "))
        missed = middle > AIMS[pair] and (pair != (GRAPH, TORCH) or row["model"] in SMALL)
        aim = f"  aim {AIMS[pair]} MISSED" if missed else ""
        yield f"  {name:40}{middle:6.2f} [{low:.2f}, {high:.2f}]{aim}"


def main() -> None:
    import minflow as flow

    options = parse_options()
    if not flow.cuda.is_available():
        reason = flow.core.backend.UNAVAILABLE.get("cuda", ("no GPU",))[0]
        print(f"no figures: {reason}")
        return
    if not options.no_torch:
        try:
            import torch
        except ImportError:
            torch = None
        if torch is None or not torch.cuda.is_available():
            print("PyTorch with CUDA is not installed: minflow's own figures only")
            options.no_torch = True
    run = record.Run("gpu", options)
    run.facts["machine"]["gpu"] = flow.cuda.get_device_name()
    run.say(f"minflow {flow.__version__}; ratios: median [quartiles]")
    for name in options.only:
        for kind in options.kinds:
            row = measure(name, kind, options)
            print("\n".join(lines_of(row)), flush=True)
            for contestant, found in row["contestants"].items():
                run.add(name=name, case=kind, contestant=contestant, **found)
            for pair, ratio in row["ratios"].items():
                ours, peer = pair.split(" / ")
                run.add(name=name, case=kind, contestant=ours, peer=peer, ratio=ratio)
            gc.collect()
            flow.cuda.empty_cache()
    run.finish()


if __name__ == "__main__":
    main()
