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


@exercise.wrong("mean of everything",
                "`x.mean()` is one mean of all numbers. Each column has its own.",
                "The axis that you name is the one that goes. A mean for each column: the rows go.")
def same_scale(x):
    x -= x.mean()
    return x / (x**2).mean(0).sqrt()


@exercise.wrong("rows",
                "You bring each *row* to the same scale. Rows are examples, columns are measurements.",
                "The axis that you name is the one that goes. The rows, axis 0, should go.")
def same_scale(x):
    x -= x.mean(1, keepdim=True)
    return x / (x**2).mean(1, keepdim=True).sqrt()


@exercise.wrong("variance",
                "You divide by the mean of the squares. Its *root* is the deviation.",
                "A column in meters has a mean square in square meters. The root is in meters again.")
def same_scale(x):
    x -= x.mean(0)
    return x / (x**2).mean(0)


@exercise.wrong("n - 1",
                "Off by a factor near 1: you divide by n - 1, but the task says n.",
                "`std` divides by n - 1 unless you say `unbiased=False`. `(...**2).mean(0).sqrt()` divides by n.")
def same_scale(x):
    return (x - x.mean(0)) / x.std(0)


@exercise.wrong("one spread for all",
                "You divide all columns by one number. Each column has its own spread.",
                "Say which axis goes in the second line too: `.mean(0)`.")
def same_scale(x):
    x -= x.mean(0)
    return x / (x**2).mean().sqrt()


@exercise.wrong("before the mean is taken off",
                "You take the spread of the numbers as they came. It should be the spread around the mean.",
                "Subtract the mean first; the next line uses the result.")
def same_scale(x):
    return (x - x.mean(0)) / (x**2).mean(0).sqrt()


@exercise.wrong("a mean of each row",
                "`x.mean(1)` is a mean for each row. Each *column* needs its own.",
                "The axis that you name is the one that goes. A mean for each column: the rows go.")
def same_scale(x):
    x = x - x.mean(1)
    return x / (x**2).mean(0).sqrt()


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
    return case(flow.tensor(x), text=text or f"x = {x.tolist()}", expected=expected.astype(np.float32), **options)


@exercise.cases
def cases(rng):
    yield scale_case([[1.0], [3.0]])
    yield scale_case([[1.0, 10.0], [3.0, 30.0]])
    yield scale_case([[0.0, 4.0, -2.0], [1.0, 4.5, 2.0], [5.0, 2.0, 3.0]])
    yield case(flow.tensor([[1.0, 10.0], [3.0, 30.0]]), run=unchanged, expected="x is as it was",
               text="x is the same after the call as before")
    yield scale_case([[2.0, 5.0], [4.0, 5.0]])
    yield scale_case([[7.0, 3.0]], text="one row: x = [[7.0, 3.0]]")
    yield scale_case(rng.integers(-9, 9, (8, 3)) * [1, 10, 1000] + [0, 50, 3], hidden=True)
    yield scale_case(np.column_stack([rng.normal(size=6), np.full(6, 0.25), rng.normal(3, 0.1, 6)]), hidden=True)
