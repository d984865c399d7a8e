"""01.4 same_scale: three lines that should bring columns to the same scale, but do not."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "01.4", "same_scale", kind="mend", level="core", tolerance=(1e-5, 1e-4),
    question="Why do these three lines not bring the columns to the same scale?",
    hint="Print each step with its shape: the mean of each column, the numbers after you subtract it, and their "
         "spread.",
    fact="This is the most common first step before learning from tables: columns in meters and in grams then count "
         "alike.",
    sibling="Times of two runs in seconds, a row for each runner: [[10, 100], [14, 100]]. The column means are 12 and "
            "100. Without them: [[-2, 0], [2, 0]]. The squares have the means 4 and 0, the roots are 2 and 0. "
            "Divided: [[-1, 0 / 0], [1, 0 / 0]]. Both runners were equally fast in run 2: there is nothing to "
            "compare, so 0 is right.",
)


@exercise.solution
def same_scale(x):
    # one mean for each column; a new tensor, the caller's stays as it was
    centered = x - x.mean(0)
    # typical distance of a column's numbers from 0
    spread = (centered**2).mean(0).sqrt()
    # a column without spread is divided by 1: it stays 0
    return centered / (spread + (spread == 0).float())


@exercise.also_right
def same_scale(x):
    centered = x - x.mean(dim=0, keepdim=True)
    spread = x.std(dim=0, unbiased=False)
    return flow.where(spread > 0, centered / spread, flow.zeros_like(centered))


@exercise.also_right
def same_scale(x):
    columns = []
    for i in range(x.shape[1]):
        column = x[:, i] - x[:, i].mean()
        spread = (column * column).mean().sqrt().item()
        columns.append(column / spread if spread > 0 else column)
    return flow.stack(columns, dim=1)


@exercise.also_right
def same_scale(x):
    centered = x - x.sum(0) / len(x)
    variance = (centered**2).sum(0) / len(x)
    return centered / (variance + 1e-12)**0.5


@exercise.stub
def same_scale(x):
    x -= x.mean()                           # each column to mean 0
    spread = (x**2).mean(0).sqrt()          # how far its numbers lie from 0
    return x / spread                       # each column to deviation 1


@exercise.wrong("no spread",
                "0 / 0 is NaN. If all numbers of a column are the same, its spread is 0: what should such a column "
                "give?",
                "If the spread is 0, divide by 1. `(spread == 0).float()` is 1.0 for exactly those columns.")
def same_scale(x):
    centered = x - x.mean(0)
    return centered / (centered**2).mean(0).sqrt()


@exercise.wrong("in place",
                "`-=` writes into the tensor of the caller: x has changed there too.",
                "`x = x - ...` makes a new tensor. `x -= ...` changes the one that was passed in.")
def same_scale(x):
    x -= x.mean(0)
    return x / (x**2).mean(0).sqrt()


@exercise.wrong("a column or not",
                "`spread` holds a number for each column, so `spread == 0` is an answer for each column. `if` needs a "
                "single one. Treat each column by itself, without `if`.",
                "`(spread == 0).float()` is 1.0 for the columns whose spread is 0, and 0.0 for the others.")
def same_scale(x):
    centered = x - x.mean(0)
    spread = (centered**2).mean(0).sqrt()
    return centered if spread == 0 else centered / spread


@exercise.wrong("all columns zero",
                "One column without a spread makes *all* columns zero. What should the others give?",
                "Treat each column by itself: divide by 1 only where the spread is 0.")
def same_scale(x):
    centered = x - x.mean(0)
    spread = (centered**2).mean(0).sqrt()
    return centered / spread if spread.all() else flow.zeros_like(x)


@exercise.wrong("no column divided",
                "One column without a spread, and *no* column is divided. What should the others give?",
                "Treat each column by itself: divide by 1 only where the spread is 0.")
def same_scale(x):
    centered = x - x.mean(0)
    spread = (centered**2).mean(0).sqrt()
    return centered / spread if spread.all() else centered


@exercise.wrong("least and greatest",
                "You bring each column to the range from 0 to 1. Which mean and which deviation are asked for?",
                "Subtract the mean of each column, then divide by its deviation: the least number plays no part.")
def same_scale(x):
    low, high = x.min(0).values, x.max(0).values
    return (x - low) / (high - low)


@exercise.wrong("not divided",
                "Each column has the mean 0 now. And its deviation?",
                "Divide by the spread, as the third line says.")
def same_scale(x):
    return x - x.mean(0)


@exercise.wrong("multiplied",
                "You multiply by the spread, so wide columns get wider still. What makes each deviation 1?",
                "Numbers between -6 and 6 are between -1 and 1 after you *divide* by 6.")
def same_scale(x):
    centered = x - x.mean(0)
    return centered * (centered**2).mean(0).sqrt()


@exercise.wrong("at least 1",
                "A spread below 1 is replaced as well. Which columns need another number?",
                "Only a spread of 0 has to be replaced: 0.1 is a spread like any other.")
def same_scale(x):
    centered = x - x.mean(0)
    return centered / (centered**2).mean(0).sqrt().clamp(min=1.0)


def add_always(extra):
    """A wrong answer that adds `extra` to each spread."""

    def same_scale(x):
        centered = x - x.mean(0)
        return centered / ((centered**2).mean(0).sqrt() + extra)

    return same_scale


for extra in (1.0, 0.1, 0.01, 0.001):
    exercise.wrong(
        f"{extra:g} added",
        "You add a number to each spread, so no deviation is 1 any more. Which columns need it?",
        "`(spread == 0).float()` is 1.0 for the columns whose spread is 0, and 0.0 for the others.",
    )(add_always(extra))


def root_mean_square(x):
    return (x**2).mean(0).sqrt()


MEAN_OF_EACH = "The axis that you name is the one that goes. A mean for each column: the rows go."
# name, the numbers around their mean, the spread of these (or of x) and the two hints
STEPS = (
    ("mean of everything", lambda x: x - x.mean(), lambda x, centered: root_mean_square(centered),
     "`x.mean()` is one mean of all numbers. Each column has its own.", MEAN_OF_EACH),
    ("rows", lambda x: x - x.mean(1, keepdim=True), lambda x, centered: (centered**2).mean(1, keepdim=True).sqrt(),
     "You bring each *row* to the same scale. Rows are examples, columns are measurements.",
     "The axis that you name is the one that goes. The rows, axis 0, should go."),
    ("variance", lambda x: x - x.mean(0), lambda x, centered: (centered**2).mean(0),
     "You divide by the mean of the squares. Its *root* is the deviation.",
     "A column in meters has a mean square in square meters. The root is in meters again."),
    ("n - 1", lambda x: x - x.mean(0), lambda x, centered: x.std(0),
     "Off by a factor near 1: you divide by n - 1, but the task says n.",
     "`std` divides by n - 1 unless you say `unbiased=False`. `(...**2).mean(0).sqrt()` divides by n."),
    ("one spread for all", lambda x: x - x.mean(0), lambda x, centered: (centered**2).mean().sqrt(),
     "You divide all columns by one number. Each column has its own spread.",
     "Say which axis goes in the second line too: `.mean(0)`."),
    ("before the mean is taken off", lambda x: x - x.mean(0), lambda x, centered: root_mean_square(x),
     "You take the spread of the numbers as they came. It should be the spread around the mean.",
     "Subtract the mean first; the next line uses the result."),
    ("a mean of each row", lambda x: x - x.mean(1), lambda x, centered: root_mean_square(centered),
     "`x.mean(1)` is a mean for each row. Each *column* needs its own.", MEAN_OF_EACH),
    ("sum for mean", lambda x: x - x.mean(0), lambda x, centered: (centered**2).sum(0).sqrt(),
     "You take the root of the *sum* of the squares. It grows with the number of rows.",
     "The deviation is the root of the *mean* of the squares: divide by n."),
    ("mean distance", lambda x: x - x.mean(0), lambda x, centered: centered.abs().mean(0),
     "You take the mean distance from the mean. The deviation is made of squares.",
     "Square, take the mean, then the root: in this order."),
)


def make_step(center, spread_of, undivided):
    """A wrong answer of these two steps, in place; with `undivided`, a column with spread 0 is not divided."""

    def same_scale(x):
        centered = center(x)
        spread = spread_of(x, centered)
        x.copy_(centered)
        return centered / (flow.where(spread == 0, flow.ones_like(spread), spread) if undivided else spread)

    return same_scale


for name, center, spread_of, *hints in STEPS:
    exercise.wrong(name, *hints)(make_step(center, spread_of, undivided=False))
    if name not in ("mean of everything", "before the mean is taken off", "one spread for all", "a mean of each row"):
        exercise.wrong(f"{name}, no division by 0", *hints)(make_step(center, spread_of, undivided=True))


def unchanged(same_scale, x):
    """Say whether the caller's tensor was changed."""
    before = x.tolist()
    same_scale(x)
    return "x is as it was" if x.tolist() == before else "x has changed"


def scale_case(x, text="", **options):
    x = np.asarray(x, np.float32)
    centered = x.astype(np.float64) - x.mean(0, dtype=np.float64)
    spread = np.sqrt((centered**2).mean(0))
    expected = np.divide(centered, spread, out=np.zeros_like(centered), where=spread > 0)
    expected = flow.tensor(expected.astype(np.float32))
    return case(flow.tensor(x), text=text or f"x = {x.tolist()}", expected=expected, **options)


@exercise.cases
def cases(rng):
    yield scale_case([[1.0], [3.0]])
    yield scale_case([[1.0, 10.0], [3.0, 30.0]])
    yield scale_case([[0.0, 4.0, -2.0], [1.0, 4.5, 2.0], [5.0, 2.0, 3.0]])
    yield case(flow.tensor([[1.0, 10.0], [3.0, 30.0]]), run=unchanged, expected="x is as it was",
               text="x is the same after the call as before")
    yield scale_case([[2.0, 5.0], [8.0, 5.0]])
    yield scale_case([[0.1, 4.0], [0.3, 6.0]], text="x = [[0.1, 4.0], [0.3, 6.0]]")
    yield scale_case([[7.0, 3.0]], text="one row: x = [[7.0, 3.0]]")
    yield scale_case(rng.integers(-9, 9, (8, 3)) * [1, 10, 1000] + [0, 50, 3], hidden=True)
    yield scale_case(np.column_stack([rng.normal(size=6), np.full(6, 0.25), rng.normal(3, 0.1, 6)]), hidden=True)
