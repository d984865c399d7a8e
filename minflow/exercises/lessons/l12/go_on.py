"""12.1 go_on: save a training, and go on from the file with the same losses in all bits."""

import copy
import functools
import os
import tempfile
from pathlib import Path
from unittest import mock

import minflow as flow

from ...definition import Exercise, case

nn = flow.nn

exercise = Exercise(
    "12.1", "go_on", kind="complete", level="core", answer="Checkpoint", tolerance=(1e-6, 1e-6), time_limit=4.0,
    forbidden={"manual_seed": "A seed starts the random numbers anew; it does not go on where they were. Which "
                              "function returns their position?"},
    question="What must be saved so that a training goes on as if nothing had happened?",
    hint="Four things change from step to step: the model, the optimizer, the schedule and the random generator. Each "
         "must be written by `save`, and put back by `load`.",
    fact="A training graph does all this for you: `graph.state_dict()` holds the four, under names of its own. For a "
         "loop of your own you must think of them yourself.",
    sibling="A game of cards is kept overnight. The hands of all players are written down. In the morning the score "
            'is gone, and you cannot tell whose turn it is. So write `{"hands": ..., "score": ..., "turn": ...}`, and '
            "put *each* of them back. To find what belongs in it, ask about everything on the table: does it change "
            "during the game?",
)


@exercise.stub
class Checkpoint:
    def save(self, path, model, optimizer, schedule):
        flow.save({"model": model.state_dict()}, path)

    def load(self, path, model, optimizer, schedule):
        saved = flow.load(path)
        model.load_state_dict(saved["model"])


@exercise.solution
class Checkpoint:
    def save(self, path, model, optimizer, schedule):
        # all that changes from step to step
        flow.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                   "schedule": schedule.state_dict(), "generator": flow.get_rng_state()}, path)

    def load(self, path, model, optimizer, schedule):
        saved = flow.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["schedule"])
        # the random numbers go on from where they were
        flow.set_rng_state(saved["generator"])


@exercise.also_right
class Checkpoint:
    """Loop over the objects that have a state."""

    def save(self, path, *parts):
        states = {str(i): part.state_dict() for i, part in enumerate(parts)}
        states["random"] = flow.get_rng_state()
        flow.save(states, path)

    def load(self, path, *parts):
        states = flow.load(path)
        flow.set_rng_state(states.pop("random"))
        for i, part in enumerate(parts):
            part.load_state_dict(states[str(i)])


@exercise.also_right
class Checkpoint:
    """Use one file for each."""

    def save(self, path, model, optimizer, schedule):
        for name, state in (("m", model.state_dict()), ("o", optimizer.state_dict()), ("s", schedule.state_dict()),
                            ("g", {"g": flow.get_rng_state()})):
            flow.save(state, f"{path}.{name}")

    def load(self, path, model, optimizer, schedule):
        schedule.load_state_dict(flow.load(f"{path}.s"))
        model.load_state_dict(flow.load(f"{path}.m"))
        optimizer.load_state_dict(flow.load(f"{path}.o"))
        flow.set_rng_state(flow.load(f"{path}.g")["g"])


def partial_solution(skip=(), change=None):
    """The right answer without some of its pieces."""
    class Checkpoint(exercise.right):
        def load(self, path, model, optimizer, schedule):
            saved = flow.load(path)
            if change is not None:
                change(saved)
            parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
            for name, part in parts.items():
                if name not in skip:
                    part.load_state_dict(saved[name])
            if "generator" not in skip:
                flow.set_rng_state(saved["generator"])

    return Checkpoint


def no_steps(saved):
    """Reset Adam's count of steps."""
    for state in saved["optimizer"]["state"].values():
        if "step" in state:
            state["step"] = flow.zeros(())


exercise.wrong("model only",
               "Only the model comes back. The optimizer remembers earlier slopes: its memory is empty again.",
               "`optimizer.state_dict()`, `schedule.state_dict()` and `flow.get_rng_state()` belong in the file too.",
               )(partial_solution(skip=("optimizer", "schedule", "generator")))
exercise.wrong("no optimizer",
               "The memory of the optimizer is empty: its next steps are like its first ones.",
               "Save `optimizer.state_dict()`, and give it to `optimizer.load_state_dict(...)`.",
               )(partial_solution(skip=("optimizer",)))
exercise.wrong("no generator",
               "Dropout removes other numbers than before: the random generator is at another position.",
               "`flow.get_rng_state()` returns its position; `flow.set_rng_state(...)` puts it back there.",
               )(partial_solution(skip=("generator",)))
exercise.wrong("no schedule",
               "The schedule starts counting from the beginning. Look at the rate a few steps later.",
               "Save `schedule.state_dict()`, and give it to `schedule.load_state_dict(...)`.",
               )(partial_solution(skip=("schedule",)))
exercise.wrong("two of four",
               "Model and optimizer come back. The schedule and the random generator do not.",
               "Write `schedule.state_dict()` and `flow.get_rng_state()` too, and put both back.",
               )(partial_solution(skip=("schedule", "generator")))
exercise.wrong("step count lost",
               "Adam's first steps are special: it must know how many it has done.",
               "Keep the optimizer's whole `state_dict()`, the count of its steps too.",
               )(partial_solution(change=no_steps))
exercise.wrong("no model",
               "The model starts with new random parameters: they are in the file, but are not read back.",
               "`model.load_state_dict(saved[\"model\"])`.",
               )(partial_solution(skip=("model",)))


@exercise.wrong("seeded anew",
                "Dropout removes other numbers than before. A seed starts the random numbers; it does not go on.",
                "Save `flow.get_rng_state()`. `flow.set_rng_state(...)` puts the generator back to that very place.")
class Checkpoint(partial_solution(skip=("generator",))):
    def load(self, path, model, optimizer, schedule):
        super().load(path, model, optimizer, schedule)
        flow.manual_seed(0)


MEMORY = ("It is kept in the object, not in the file. Tomorrow's program has the file alone.",
          "`load` is called on another Checkpoint. Everything that it needs must come from `flow.load(path)`.")


@exercise.wrong("kept in memory", *MEMORY)
class Checkpoint:
    def save(self, path, model, optimizer, schedule):
        self.kept = model.state_dict(), optimizer.state_dict(), schedule.state_dict(), flow.get_rng_state()

    def load(self, path, model, optimizer, schedule):
        for part, state in zip((model, optimizer, schedule), self.kept):
            part.load_state_dict(state)
        flow.set_rng_state(self.kept[3])


@exercise.wrong("kept in the class",
                "It is kept in a variable, not in the file: another save replaces it, and tomorrow's program has the "
                "file alone.",
                "Everything that `load` needs must come from `flow.load(path)`.")
class Checkpoint:
    kept: tuple = ()

    def save(self, path, *parts):
        Checkpoint.kept = copy.deepcopy([part.state_dict() for part in parts]), flow.get_rng_state()

    def load(self, path, *parts):
        for part, state in zip(parts, Checkpoint.kept[0]):
            part.load_state_dict(state)
        flow.set_rng_state(Checkpoint.kept[1])


@exercise.wrong("by reference",
                "You kept the model's own tensors, not a copy: they went on training after you saved.",
                "A file cannot change with the model: `flow.save({...}, path)`.")
class Checkpoint:
    kept: dict = {}

    def save(self, path, model, optimizer, schedule):
        self.kept[str(path)] = (model.state_dict(), optimizer.state_dict(), schedule.state_dict(),
                                flow.get_rng_state())

    def load(self, path, model, optimizer, schedule):
        *states, generator = self.kept[str(path)]
        for part, state in zip((model, optimizer, schedule), states):
            part.load_state_dict(state)
        flow.set_rng_state(generator)


@exercise.wrong("not in the file",
                "`load` looks for a name that is not in the file. Does `save` write it, under the same name? And does "
                "another `flow.save` to the same path replace it?",
                "All four belong into one dict, and one `flow.save`.")
class Checkpoint(exercise.right):
    def save(self, path, model, optimizer, schedule):
        flow.save({"model": model.state_dict()}, path)


@exercise.wrong("nothing put back",
                "After `load`, the fresh objects are as fresh as before. `model = saved[\"model\"]` only gives a dict "
                "that name.",
                "`model.load_state_dict(saved[\"model\"])` changes the model itself, and the others are like it.")
class Checkpoint(exercise.right):
    def load(self, path, model, optimizer, schedule):
        flow.load(path)


@exercise.wrong("the rate alone",
                "You keep only the rate of the optimizer. It also remembers earlier slopes.",
                "Save its whole `state_dict()`.")
class Checkpoint(exercise.right):
    def load(self, path, model, optimizer, schedule):
        memory = optimizer.state_dict()["state"]
        super().load(path, model, optimizer, schedule)
        optimizer.load_state_dict(optimizer.state_dict() | {"state": memory})


@exercise.wrong("schedule stepped again",
                "You step the schedule as often as before. But the optimizer's rate was halved already, and is halved "
                "again.",
                "`schedule.state_dict()` keeps its count, without a step.")
class Checkpoint(partial_solution(skip=("schedule",))):
    def load(self, path, model, optimizer, schedule):
        super().load(path, model, optimizer, schedule)
        for _ in range(flow.load(path)["schedule"]["last_epoch"]):
            schedule.step()


def training(kind, drop, every, seed):
    """Fresh objects: a small model, its optimizer and its schedule."""
    flow.manual_seed(seed)
    model = nn.Sequential(nn.Dropout(drop), nn.Linear(4, 1, bias=False))
    optimizer = (flow.optim.Adam(model.parameters(), lr=0.02) if kind == "Adam" else
                 flow.optim.SGD(model.parameters(), lr=0.02, momentum=0.9 if kind == "momentum" else 0))
    return model, optimizer, flow.optim.lr_scheduler.StepLR(optimizer, step_size=every, gamma=0.5)


def steps(parts, n):
    """Take n steps; return the loss of each."""
    model, optimizer, schedule = parts
    generator, losses = flow.Generator().manual_seed(9), []
    x = flow.randn(6, 4, generator=generator)
    for _ in range(n):
        loss = (model(x) - x[:, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def resumed(Checkpoint, kind, drop, every, seed):
    """3 steps, save, one more; save another training; then load the first into fresh objects: the next 4 losses.

    Does not wait for the disk.
    """
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(os, "fsync", lambda file: None):
        path, parts = Path(folder) / "saved.safetensors", training(kind, drop, every, seed)
        steps(parts, 3)
        Checkpoint().save(path, *parts)
        steps(parts, 1)
        Checkpoint().save(Path(folder) / "other.safetensors", *training(kind, drop, every, seed + 2))
        parts = training(kind, drop, every, seed + 1)
        Checkpoint().load(path, *parts)
        return steps(parts, 4)


@functools.cache
def went_on(kind, drop, every, seed):
    """Losses 3 to 6 of a training that is not interrupted."""
    random = flow.get_rng_state()
    losses = steps(training(kind, drop, every, seed), 7)[3:]
    flow.set_rng_state(random)
    return losses


@exercise.cases
def cases(rng):
    def one(text, *args, hidden=False):
        seed = int(rng.integers(9))
        return case(*args, seed, run=resumed, expected=went_on(*args, seed), hidden=hidden,
                    text=text and f"{text}: 4 losses after 3 steps, save, load")

    yield one("plain SGD", "plain", 0, 99)
    yield one("SGD with momentum", "momentum", 0, 99)
    yield one("plain SGD, dropout", "plain", 0.5, 99)
    yield one("plain SGD, the rate halves every 2 steps", "plain", 0, 2)
    yield one("Adam", "Adam", 0, 99)
    yield one("Adam, dropout, the rate halves every 2 steps", "Adam", 0.5, 2)
    yield one("", "momentum", 0.3, 2, hidden=True)
    yield one("", "Adam", 0.2, 3, hidden=True)
