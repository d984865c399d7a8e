"""11.3 queue: a loader and a worker, simulated."""

from ...definition import Exercise, case

exercise = Exercise(
    "11.3", "queue", kind="write", level="stretch", answer="total", tolerance=(1e-9, 1e-9),
    question="How long do a loader and a worker take, with a queue of this width?",
    hint="Keep three times for each batch: loaded, handed in, computed. What has to happen before each of them?",
    fact="A wider queue never makes the slower one faster. It helps if the times differ from batch to batch: batches "
         "that were loaded ahead bridge a slow load.",
    sibling="A cook and a waiter with a shelf for one plate. Cooking takes 1 minute, carrying 3. The first plate is "
            "ready at 1, and carried until 4. The second is ready at 2 and put on the shelf. The third is ready at 3, "
            "and the cook holds it: only at 4, when the waiter takes the second plate, is there room on the shelf.",
)


@exercise.solution
def total(load, compute, width):
    handed_in, ended = 0.0, []
    for i in range(len(load)):
        # the loader begins as soon as it has handed in the batch before
        handed_in = handed_in + load[i]
        # there is room when the batch `width` places earlier has ended
        if i >= width:
            handed_in = max(handed_in, ended[i - width])
        # the worker needs the batch, and has to be done with the one before
        start = max(handed_in, ended[-1]) if ended else handed_in
        ended.append(start + compute[i])
    return ended[-1] if ended else 0.0


@exercise.also_right
def total(load, compute, width):
    flight, loader, worker = [], 0.0, 0.0
    for seconds, work in zip(load, compute):
        loader += seconds
        while len(flight) >= width:
            loader = max(loader, flight.pop(0))
        worker = max(worker, loader) + work
        flight.append(worker)
    return worker


@exercise.also_right
def total(load, compute, width):
    """Start with rows of zeros, so that the first batch is not a special case."""
    n = len(load)
    given, ended = [0.0] * (n + 1), [0.0] * (n + width + 1)
    for i in range(1, n + 1):
        given[i] = max(given[i - 1] + load[i - 1], ended[i - 1])
        ended[i + width - 1] = max(given[i], ended[i + width - 2]) + compute[i - 1]
    return ended[n + width - 1]


@exercise.wrong("the larger sum",
                "Nothing else runs during the first load and the last step.",
                "Follow one batch: it is loaded, waits, and is computed. When does the first step start?")
def total(load, compute, width):
    return max(sum(load), sum(compute))


@exercise.wrong("never full",
                "Your loader hands in its work however many steps are in flight. What should it do when `width` steps "
                "are in flight?",
                "Batch i can be handed in when batch i - width has ended.")
def total(load, compute, width):
    loader = worker = 0.0
    for seconds, work in zip(load, compute):
        loader += seconds
        worker = max(worker, loader) + work
    return worker


@exercise.wrong("one too wide",
                "The step that is being computed is in flight too: it takes a place.",
                "With width 1 the second batch is handed in when the first has ended.")
def total(load, compute, width):
    return exercise.right(load, compute, width + 1)


@exercise.wrong("one after the other",
                "That is the time with waiting: nothing is loaded while a step is computed.",
                "The loader goes on as soon as it has handed in its batch.")
def total(load, compute, width):
    return sum(load) + sum(compute)


@exercise.wrong("starts with nothing",
                "Your worker starts at 0. With which batch?",
                "The first step starts when the first batch is loaded.")
def total(load, compute, width):
    loader, worker, ended = 0.0, 0.0, []
    for i in range(len(load)):
        loader += load[i]
        if i >= width:
            loader = max(loader, ended[i - width])
        worker = (max(worker, loader) if i else 0.0) + compute[i]
        ended.append(worker)
    return worker


@exercise.wrong("waits before it loads",
                "Your loader waits for room, and then loads. It may load while the queue is full.",
                "Only handing in has to wait: load first, then check whether there is room.")
def total(load, compute, width):
    loader, worker, ended = 0.0, 0.0, []
    for i in range(len(load)):
        if i >= width:
            loader = max(loader, ended[i - width])
        loader += load[i]
        worker = max(worker, loader) + compute[i]
        ended.append(worker)
    return worker


@exercise.wrong("the loader alone",
                "That is right if each load takes longer than a step. Here steps are longer, and the worker falls "
                "behind.",
                "A step starts when its batch is there *and* the step before has ended.")
def total(load, compute, width):
    return sum(load) + compute[-1]


@exercise.wrong("step by step",
                "Not every step takes the longer of the two times: a batch that was loaded early can wait in the "
                "queue.",
                "Keep two clocks, one of the loader and one of the worker.")
def total(load, compute, width):
    return sum(max(pair) for pair in zip(load, compute))


@exercise.wrong("two workers",
                "Steps run one after the other: there is one worker. Yours overlap.",
                "A step starts when its batch is there *and* the step before has ended.")
def total(load, compute, width):
    loader, ended = 0.0, []
    for i in range(len(load)):
        loader += load[i]
        if i >= width:
            loader = max(loader, ended[i - width])
        ended.append(loader + compute[i])
    return max(ended, default=0.0)


@exercise.wrong("the worker alone",
                "That is right if each step takes longer than a load. Here loads are longer, and the worker has to "
                "wait for its batches.",
                "A step starts when its batch is there *and* the step before has ended.")
def total(load, compute, width):
    return load[0] + sum(compute)


@exercise.wrong("all loads at once",
                "There is one loader, and it loads one batch after the other. Yours loads all of them at once.",
                "A batch is loaded `load[i]` seconds after the one before was handed in, not after 0.")
def total(load, compute, width):
    worker = 0.0
    for seconds, work in zip(load, compute):
        worker = max(seconds, worker) + work
    return worker


@exercise.wrong("one too narrow",
                "Your queue is full too early: batch i has to wait for the batch `width` places before it, not for a "
                "later one.",
                "With width 2 the third batch waits until the first has ended.")
def total(load, compute, width):
    return exercise.right(load, compute, max(1, width - 1))


@exercise.wrong("one late",
                "The first batch that may have to wait is batch number `width`: before it there are `width` others. "
                "Yours lets it pass.",
                "`if i >= width`.")
def total(load, compute, width):
    loader, worker, ended = 0.0, 0.0, []
    for i in range(len(load)):
        loader += load[i]
        if i > width:
            loader = max(loader, ended[i - width])
        worker = max(worker, loader) + compute[i]
        ended.append(worker)
    return worker


@exercise.wrong("room, and not loaded",
                "Once there is room you hand the batch in. But it may not be loaded yet: then the *later* of the two "
                "times counts.",
                "`max` of the time when it is loaded and the time when there is room.")
def total(load, compute, width):
    loader, worker, ended = 0.0, 0.0, []
    for i in range(len(load)):
        loader += load[i]
        if i >= width:
            loader = ended[i - width]
        worker = max(worker, loader) + compute[i]
        ended.append(worker)
    return worker


@exercise.wrong("in lockstep",
                "In yours each load starts together with a step, so the loader never gets ahead by more than one "
                "batch. What does the width change?",
                "The loader goes on as soon as it has handed in its batch. Keep a clock of its own for it.")
def total(load, compute, width):
    seconds = load[0]
    for i in range(1, len(load)):
        seconds += max(load[i], compute[i - 1])
    return seconds + compute[-1]


@exercise.wrong("in groups",
                "The queue is not filled and emptied in groups: each batch goes in as soon as there is room for it.",
                "Keep two clocks, one of the loader and one of the worker.")
def total(load, compute, width):
    starts = range(0, len(load), width)
    return sum(max(sum(load[i:i + width]), sum(compute[i:i + width])) for i in starts)


@exercise.wrong("nothing that far back",
                "For the first batches there is no batch `width` places earlier. Ask first whether there is one.",
                "`if i >= width`.")
def total(load, compute, width):
    loader, ended = 0.0, []
    for i in range(len(load)):
        loader = max(loader + load[i], ended[i - width])
        ended.append(loader + compute[i])
    return ended[-1]


@exercise.cases
def cases(rng):
    yield case([3.0], [2.0], 2, text="one batch: loads 3, computes 2; width 2")
    yield case([3.0, 3.0], [2.0, 2.0], 2, text="two batches: load 3, compute 2; width 2")
    yield case([1.0, 1.0], [3.0, 3.0], 2, text="two batches: load 1, compute 3; width 2")
    yield case([4.0, 1.0], [1.0, 4.0], 2, text="load 4, 1; compute 1, 4; width 2")
    yield case([1.0, 1.0, 1.0], [3.0, 1.0, 1.0], 1, text="load 1, 1, 1; compute 3, 1, 1; width 1")
    yield case([1.0, 1.0, 3.0, 3.0], [5.0, 1.0, 1.0, 2.0], 1, text="load 1, 1, 3, 3; compute 5, 1, 1, 2; width 1")
    yield case([1.0, 1.0, 4.0], [1.0, 1.0, 1.0], 1, text="load 1, 1, 4; compute 1, 1, 1; width 1")
    yield case([1.0, 1.0, 1.0, 6.0], [4.0, 4.0, 1.0, 1.0], 2, text="load 1, 1, 1, 6; compute 4, 4, 1, 1; width 2")
    yield case([1.0, 1.0, 1.0, 1.0, 6.0], [6.0, 1.0, 1.0, 1.0, 1.0], 3,
               text="load 1, 1, 1, 1, 6; compute 6, 1, 1, 1, 1; width 3")
    for width in (1, 2, 8):
        load, compute = rng.integers(1, 9, (2, 12)).astype(float).tolist()
        yield case(load, compute, width, hidden=True)
