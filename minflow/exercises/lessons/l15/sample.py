"""15.3 sample: the next symbol, drawn by its share."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "15.3", "sample", kind="write", level="core", tolerance=(0.08, 0.0),
    question="How does a model choose the next symbol?",
    hint="Divide the scores by the temperature, make shares of them, draw with `rng`. Only at 0 there is no draw.",
    fact="At the temperature 1 a model chooses each symbol as often as its text did. For facts, people turn it down; "
         "for ideas, they turn it up.",
    sibling="Shares 0.2, 0.5, 0.3: `rng.choice(3, p=[0.2, 0.5, 0.3])` gives a 1 in half of all draws. And temperature "
            "by hand: the scores 2 and 0 give a ratio of exp(2) to 1, about 7 to 1. At the temperature 2 the scores "
            "are 1 and 0: about 3 to 1. At 0.5 they are 4 and 0: about 55 to 1.",
)


@exercise.solution
def sample(scores, temperature, rng):
    # at 0 the largest takes all
    if temperature == 0:
        return scores.argmax().item()
    shares = (scores / temperature).softmax(0)
    # one place, by its share
    return int(rng.choice(len(scores), p=shares.numpy()))


@exercise.also_right
def sample(scores, temperature, rng):
    numbers = scores.numpy().astype(float)
    if not temperature:
        return int(np.argmax(numbers))
    weights = np.exp((numbers - numbers.max()) / temperature)
    return int(np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(), side="right"))


@exercise.also_right
def sample(scores, temperature, rng):
    """Add Gumbel noise to the scores: the largest is then a fair draw."""
    noise = flow.tensor(rng.gumbel(size=len(scores)), dtype=scores.dtype)
    return (scores + temperature * noise).argmax().item()


def shares_of(scores, temperature):
    return (scores / temperature).softmax(0).numpy()


def largest(scores):
    return scores.argmax().item()


def draw_from(shares, rng):
    shares = np.asarray(shares, float)
    return int(rng.choice(len(shares), p=shares / shares.sum()))


@exercise.wrong("always the largest",
                "You always take the largest: such a text soon repeats itself. Draw by the shares.",
                "`rng.choice(n, p=shares)`: each place as often as its share says.")
def sample(scores, temperature, rng):
    return largest(scores)


@exercise.wrong("times temperature",
                "Hot should mean wild: at a high temperature all shares come close together. You multiply.",
                "scores / temperature.")
def sample(scores, temperature, rng):
    return draw_from(shares_of(scores * temperature, 1.0), rng) if temperature else largest(scores)


@exercise.wrong("divided by 0",
                "At the temperature 0 you divide by 0. It means: take the largest one, without a draw.",
                "`if temperature == 0:` comes first.")
def sample(scores, temperature, rng):
    shares = shares_of(scores, temperature)
    return int(rng.choice(len(shares), p=shares))


@exercise.wrong("a generator of its own",
                "The same generator gives another text each time: you draw from a different one.",
                "Draw with the given `rng`.")
def sample(scores, temperature, rng):
    return draw_from(shares_of(scores, temperature), np.random.default_rng()) if temperature else largest(scores)


@exercise.wrong("a new generator with a fixed seed",
                "Each call draws the same: your generator begins anew each time.",
                "Draw with the given `rng`; it goes on from call to call.")
def sample(scores, temperature, rng):
    return draw_from(shares_of(scores, temperature), np.random.default_rng(0)) if temperature else largest(scores)


@exercise.wrong("softmax twice",
                "The shares are too flat: they went through softmax a second time.",
                "Do it once: scores / temperature, softmax, draw.")
def sample(scores, temperature, rng):
    return draw_from(flow.tensor(shares_of(scores, temperature)).softmax(0).numpy(), rng) if temperature else (
        largest(scores))


@exercise.wrong("temperature not used",
                "The temperature changes nothing in your draws.",
                "Divide the scores by it, before the softmax.")
def sample(scores, temperature, rng):
    return draw_from(shares_of(scores, 1.0), rng) if temperature else largest(scores)


# ---- what is asked --------------------------------------------------------------------------------------------------

DRAWS = 500


def draw_shares(sample, scores, temperature, seed):
    """The share of each symbol in many draws."""
    rng = np.random.default_rng(seed)
    drawn = [int(sample(scores, temperature, rng)) for _ in range(DRAWS)]
    return np.bincount(drawn, minlength=len(scores)) / DRAWS


def same_draws(sample, scores, seed):
    first, second = ([int(sample(scores, 1.0, rng)) for _ in range(12)]
                     for rng in (np.random.default_rng(seed), np.random.default_rng(seed)))
    return first == second


def expected_shares(scores, temperature):
    scores = np.asarray(scores, float) / temperature
    shares = np.exp(scores - scores.max())
    return shares / shares.sum()


def shares_case(scores, temperature, seed, hidden=False):
    return case(flow.tensor(scores, dtype=flow.float32), temperature, seed, run=draw_shares, hidden=hidden,
                expected=expected_shares(scores, temperature),
                text="" if hidden else f"scores {scores}, temperature {temperature}: how often each comes in 500 draws")


def top(scores, place, text="", hidden=False):
    return case(flow.tensor(scores), 0, np.random.default_rng(0), expected=place, text=text, hidden=hidden)


@exercise.cases
def cases(rng):
    seed = int(rng.integers(1, 10**6))
    yield top([1.0, 3.0, 2.0], 1, "scores [1, 3, 2], temperature 0")
    yield shares_case([0.0, 0.0], 1.0, seed)
    yield shares_case([2.0, 0.0, 1.0], 1.0, seed)
    yield shares_case([2.0, 0.0, 1.0], 0.5, seed)
    yield shares_case([2.0, 0.0, 1.0], 10.0, seed)
    yield shares_case([2.0, 0.0, 1.0], 0.1, seed)
    yield case(flow.zeros(5), seed, run=same_draws, expected=True,
               text="5 equal scores, the same rng twice: the same draws?")
    yield shares_case([1000.0, 999.0], 1.0, seed)
    yield shares_case(rng.normal(size=4).round(1).tolist(), 0.7, seed, hidden=True)
    yield top([-5.0, -9.0, -2.0, -7.0], 2, hidden=True)
