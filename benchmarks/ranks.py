"""Benchmark training on 2 processes of one machine against PyTorch's DistributedDataParallel with gloo.

    minflow warmup                                   # compile kernels first
    python benchmarks/ranks.py                       # all models, all modes
    python benchmarks/ranks.py --only mlp --quick    # a quick look
    python benchmarks/ranks.py --output result.json  # the figures as JSON

Every rank trains on the batch of `trainings.py`, with one thread. A round runs each mode on 1 and on 2 processes, in
turn; the figure of a run is the median of its steps. The efficiency is the time of a step on 1 process, divided by that
on 2: 1 if communication cost nothing. Modes: minflow's DistributedDataParallel; nn.Graph with global tensors; PyTorch's
DistributedDataParallel with gloo, if PyTorch is installed.
"""

import importlib.util
import json
import os
import socket
import statistics
import subprocess
import sys
import time

import record
import trainings

MODELS = ("mlp", "lenet", "gpt")
MODES = ("minflow", "minflow graph", "torch")
STEPS = {"mlp": 60, "lenet": 12, "gpt": 12}  # timed steps of one run
WARM_UP = 3
AIM = 0.85


# ---- one run, in each of its processes -------------------------------------------------------------------------------


def minflow_step(training, ranks: int):
    """The function of one step with DistributedDataParallel."""
    from minflow.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(training.model) if ranks > 1 else training.model
    return lambda: eager_step(training, model)


def graph_step(training, ranks: int):
    """The function of one step of a graph; on several ranks with global tensors: data split, parameters broadcast."""
    import minflow as flow
    from minflow import nn

    everywhere, batch = flow.placement.all("cpu"), training.batch
    if ranks > 1:
        training.model.to_global(everywhere, flow.sbp.broadcast)
        batch = [x.to_global(everywhere, flow.sbp.split(0)) for x in batch]

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model, self.loss = training.model, training.loss_fn
            self.add_optimizer(training.optimizer)

        def build(self, x, labels):
            loss = self.loss(self.model(x), labels)
            loss.backward()
            return loss

    graph = Step()

    def step() -> None:
        with flow.utils.global_view.global_mode(ranks > 1, everywhere, flow.sbp.broadcast):
            graph(*batch)  # a model may create tensors while it is built

    return step


def torch_step(training, ranks: int):
    """The function of one step with PyTorch's DistributedDataParallel."""
    import torch

    torch.set_num_threads(1)
    model = training.model
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    return lambda: eager_step(training, model)


def eager_step(training, model) -> None:
    x, labels = training.batch
    training.optimizer.zero_grad()
    training.loss_fn(model(x), labels).backward()
    training.optimizer.step()


def run_child(mode: str, name: str, ranks: int, steps: int) -> None:
    """Train in this process; rank 0 prints the seconds of each step."""
    library = trainings.torch_library() if mode == "torch" else trainings.flow_library()
    library[0].manual_seed(0)
    training = trainings.make(library, name)
    step = {"minflow": minflow_step, "minflow graph": graph_step, "torch": torch_step}[mode](training, ranks)
    times = []
    for _ in range(WARM_UP + steps):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    if mode == "torch" and ranks > 1:
        library[0].distributed.barrier()
    if int(os.environ.get("RANK", 0)) == 0:
        print("times", json.dumps(times[WARM_UP:]), flush=True)
    if mode == "torch":
        os._exit(0)  # threads of gloo may abort or block the end of a process


# ---- all runs --------------------------------------------------------------------------------------------------------


def time_run(mode: str, name: str, ranks: int, steps: int) -> float:
    """The median seconds of a step of one run."""
    child = [os.path.abspath(__file__), "--child", mode, name, str(ranks), str(steps)]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MINFLOW_THREADS": "1"}
    if ranks == 1 or mode != "torch":
        launch = [] if ranks == 1 else ["-m", "minflow.distributed.launch", "--nproc_per_node", str(ranks)]
        done = [subprocess.Popen([sys.executable, *launch, *child], env=settings, stdout=subprocess.PIPE, text=True)]
    else:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
        done = [
            subprocess.Popen(
                [sys.executable, *child],
                env={**settings, **meeting, "RANK": str(rank), "WORLD_SIZE": str(ranks)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
    said = [process.communicate(timeout=600)[0] for process in done]
    if any(process.returncode for process in done):
        raise SystemExit(f"{mode}, {name} on {ranks} processes has failed")
    return statistics.median(json.loads("".join(said).split("times ")[1].splitlines()[0]))


def measure(names, modes, rounds: int, steps) -> list[dict]:
    """A row for each model and mode: medians over rounds of the seconds on 1 and 2 processes, and of their ratio."""
    rows = []
    for name in names:
        pairs = {mode: [] for mode in modes}
        for _ in range(rounds):
            for mode in modes:
                pairs[mode].append([time_run(mode, name, ranks, steps[name]) for ranks in (1, 2)])
        for mode in modes:
            alone, both = (statistics.median(times) for times in zip(*pairs[mode]))
            efficiency = statistics.median(one / two for one, two in pairs[mode])
            figures = {"samples": rounds, "one": alone, "two": both, "efficiency": efficiency}
            rows.append({"name": name, "contestant": mode, **figures})
    return rows


def text_of(rows: list[dict]) -> str:
    lines = [f"{'model':8}{'mode':16}{'1 process':>12}{'2 processes':>13}{'efficiency':>12}"]
    for row in rows:
        times = f"{row['one'] * 1e3:9.2f} ms{row['two'] * 1e3:10.2f} ms{row['efficiency']:12.2f}"
        missed = "  aim MISSED" if row["contestant"] != "torch" and row["efficiency"] < AIM else ""
        lines.append(f"{row['name']:8}{row['contestant']:16}{times}{missed}")
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        mode, name, ranks, steps = sys.argv[2:]
        return run_child(mode, name, int(ranks), int(steps))
    parser = record.parser(__doc__, rounds=7)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--quick", action="store_true", help="one short round")
    options = parser.parse_args()
    modes = [mode for mode in options.modes if mode != "torch" or importlib.util.find_spec("torch")]
    steps = dict.fromkeys(STEPS, 2) if options.quick else STEPS
    run = record.Run("ranks", options)
    run.say("median time of a step on 1 and 2 processes, and the efficiency: the median of their ratios")
    rows = measure(options.only, modes, 1 if options.quick else options.rounds, steps)
    print(text_of(rows))
    for row in rows:
        run.add(**row)
    run.finish()


if __name__ == "__main__":
    main()
