"""15.3 sample: the next symbol, drawn by its share."""

import numbers

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


@exercise.wrong("a tensor",
                "At the temperature 0 you give a tensor. The place should be a plain whole number.",
                "`.item()` makes a number of a tensor with one element.")
def sample(scores, temperature, rng):
    return exercise.right(scores, temperature, rng) if temperature else scores.argmax()


@exercise.wrong("always a tensor",
                "You give a tensor. The place should be a plain whole number.",
                "`.item()` makes a number of a tensor with one element.")
def sample(scores, temperature, rng):
    return flow.tensor(exercise.right(scores, temperature, rng))


@exercise.wrong("nothing",
                "At temperatures above 0 nothing is returned: the place is drawn, and then lost.",
                "Each way through the function ends with a `return`.")
def sample(scores, temperature, rng):
    return None if temperature else largest(scores)


@exercise.wrong("a number with a fraction",
                "Your places are numbers with a fraction, such as 1.0. A place is a whole number.",
                "`int(...)`, or no `float(...)`.")
def sample(scores, temperature, rng):
    return float(exercise.right(scores, temperature, rng))


@exercise.wrong("score in place of its place",
                "That is the largest score itself. Which place has it?",
                "`argmax` gives the place, `max` the score.")
def sample(scores, temperature, rng):
    return exercise.right(scores, temperature, rng) if temperature else scores.max().item()


@exercise.wrong("share in place of its place",
                "You return a share. The exercise asks for the place that was drawn.",
                "`rng.choice(n, p=shares)` gives the place.")
def sample(scores, temperature, rng):
    shares = shares_of(scores, temperature or 1)
    return float(shares[draw_from(shares, rng)] if temperature else shares.max())


@exercise.wrong("all equally often",
                "You draw each symbol equally often. What are the scores for?",
                "`rng.choice(n, p=shares)`: each place as often as its share says.")
def sample(scores, temperature, rng):
    return int(rng.integers(len(scores))) if temperature else largest(scores)


@exercise.wrong("smallest",
                "At the temperature 0 you take the place of the smallest score.",
                "`argmax`")
def sample(scores, temperature, rng):
    return exercise.right(scores, temperature, rng) if temperature else scores.argmin().item()


@exercise.wrong("13 symbols",
                "The number of symbols is fixed in yours. How many scores are there in this case?",
                "`len(scores)`")
def sample(scores, temperature, rng):
    return int(rng.choice(13, p=shares_of(scores, temperature))) if temperature else largest(scores)


@exercise.wrong("no softmax",
                "Scores are no shares yet: shares are not below 0, and sum to 1.",
                "`softmax` makes shares of scores.")
def sample(scores, temperature, rng):
    return int(rng.choice(len(scores), p=(scores / temperature).numpy())) if temperature else largest(scores)


@exercise.wrong("exp overflows",
                "exp(1000) is too large for a number, and infinite by infinite is none.",
                "`softmax` subtracts the largest score first, and avoids this.")
def sample(scores, temperature, rng):
    weights = np.exp(scores.numpy() / temperature) if temperature else None
    return int(rng.choice(len(scores), p=weights / weights.sum())) if temperature else largest(scores)


@exercise.wrong("low temperatures as 0",
                "You take the largest at low temperatures too. If two scores are close, even a low one draws both.",
                "Only `temperature == 0` has no draw.")
def sample(scores, temperature, rng):
    return exercise.right(scores, temperature, rng) if temperature >= 0.5 else largest(scores)


@exercise.wrong("nearly 0",
                "A very low temperature is not 0: if two scores are close, it draws both.",
                "At 0 there is no draw: `if temperature == 0`.")
def sample(scores, temperature, rng):
    return exercise.right(scores, max(temperature, 1e-3), rng)


@exercise.wrong("is 0",
                "`is` asks whether two things are the same object. The number 0.0 is not the object 0.",
                "`==` compares numbers.")
def sample(scores, temperature, rng):
    if type(temperature) is int and temperature == 0:
        return largest(scores)
    return int(rng.choice(len(scores), p=shares_of(scores, temperature)))


# ---- what is asked --------------------------------------------------------------------------------------------------

DRAWS = 500


def draw_shares(sample, scores, temperature, seed):
    """The share of each symbol in many draws."""
    rng = np.random.default_rng(seed)
    drawn = [sample(scores, temperature, rng) for _ in range(DRAWS)]
    if None in drawn[:1]:
        return None
    return np.bincount([int(place) for place in drawn], minlength=len(scores)) / DRAWS


def kinds(sample, scores, *temperatures):
    """The type of the result at each temperature; any whole number counts as int."""
    results = [sample(scores, temperature, np.random.default_rng(0)) for temperature in temperatures]
    return ["int" if isinstance(one, numbers.Integral) else type(one).__name__ for one in results]


def tops(sample, scores, temperature, seed):
    """The places of 20 draws, each once."""
    rng = np.random.default_rng(seed)
    return sorted({int(sample(scores, temperature, rng)) for _ in range(20)})


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
    yield case(flow.tensor([1.0, 3.0, 2.0]), 0, 1.0, run=kinds, expected=["int", "int"],
               text="scores [1, 3, 2], temperatures 0 and 1: the types")
    yield shares_case([0.0, 0.0], 1.0, seed)
    yield shares_case([2.0, 0.0, 1.0], 1.0, seed)
    yield shares_case([2.0, 0.0, 1.0], 0.5, seed)
    yield shares_case([2.0, 0.0, 1.0], 10.0, seed)
    yield shares_case([2.0, 0.0, 1.0], 0.1, seed)
    yield case(flow.zeros(5), seed, run=same_draws, expected=True,
               text="5 equal scores, the same rng twice: the same draws?")
    yield shares_case([1000.0, 999.0], 1.0, seed)
    yield shares_case([0.0, 0.0001], 0.0001, seed)
    yield case(flow.tensor([1.0, 1.0001]), 0.0, seed, run=tops, expected=[1],
               text="scores [1.0, 1.0001], temperature 0.0: all places in 20 draws")
    yield shares_case(rng.normal(size=4).round(1).tolist(), 0.7, seed, hidden=True)
    yield top([-5.0, -9.0, -2.0, -7.0], 2, hidden=True)
