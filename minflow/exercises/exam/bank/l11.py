"""Variants of lesson 11."""

from ..variants import ask, mistake, question


@ask("both")
def both(rng):
    load, compute, steps = int(rng.choice([40, 50, 60])), int(rng.choice([10, 20, 30])), int(rng.choice([50, 200]))
    if rng.random() < 0.5:
        load, compute = compute, load
    together = steps * (load + compute) / 1000
    apart = (steps * max(load, compute) + min(load, compute)) / 1000
    one = question(
        "both",
        "Loading a batch takes {load} ms, computing a step {compute} ms. There are {steps} steps. How many seconds "
        "does it take if they wait for each other, and how many if they do not? Write `{answer} = (waiting, "
        "not_waiting)`, to a hundredth of a second.",
        load=load, compute=compute, steps=steps,
    )
    one.solution((together, apart))
    one.also_right([together, apart])

    @one.accept
    def close(value):
        return len(value) == 2 and abs(value[0] - together) < 0.006 and abs(value[1] - apart) < 0.006

    for name, wrong, hint in (
        ("swapped", (apart, together), "First the time with waiting."),
        ("milliseconds", (1000 * together, 1000 * apart), "The question asks for seconds."),
        ("the faster one", (together, steps * min(load, compute) / 1000), "The slower of both decides."),
        ("the same", (together, together), "If they do not wait, loading and computing overlap."),
        ("halved", (together, together / 2), "They take different times, so the time is not halved."),
    ):
        mistake(one, name, wrong, hint)
    mistake(one, "the first or last one", (together, steps * max(load, compute) / 1000),
            "The first batch must be loaded before anything is computed, or the last step comes after all loading.",
            half=True)
    return one
