"""04.2 softmax: scores to shares."""

import math

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "04.2", "softmax", kind="write", level="core", tolerance=(1e-6, 1e-5),
    question="How do scores become shares that sum to 1?",
    hint="Three steps for each row: subtract its largest score, take exp, divide by the row's sum.",
    fact="Only differences of scores count: if you add the same number to a whole row, no share changes.",
    sibling="Here numbers become shares without exp: the rows [2, 6] and [1, 1] have the sums 8 and 2. `t / t.sum(1, "
            "keepdim=True)` divides each row by its own sum: [0.25, 0.75] and [0.5, 0.5]. `keepdim=True` leaves the "
            "sums as a column, (2, 1): one number beside each row.",
    forbidden={name: "That is the library's function. Build it from exp and sums."
               for name in ("softmax", "log_softmax", "Softmax", "LogSoftmax", "logsumexp")},
)


@exercise.solution
def softmax(scores):
    # the largest score of each row becomes 0, so that exp stays small
    lowered = scores - scores.amax(1, keepdim=True)
    # above 0, whatever the score
    weights = lowered.exp()
    # the shares of each row sum to 1
    return weights / weights.sum(1, keepdim=True)


@exercise.also_right
def softmax(scores):
    rows = []
    for row in scores:
        weights = flow.exp(row - row.max())
        rows.append(weights / weights.sum())
    return flow.stack(rows)


@exercise.also_right
def softmax(scores):
    array = scores.numpy()
    weights = np.exp(array - array.max(axis=1)[:, None])
    return flow.tensor(weights / weights.sum(axis=1)[:, None])


@exercise.wrong("smallest taken away",
                "You subtract the smallest score. Then the largest exp may still be infinite: subtract the largest.",
                "`amax`, not `amin`: then every score is 0 or less, and exp is at most 1.")
def softmax(scores):
    weights = flow.exp(scores - scores.amin(1, keepdim=True))
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("plain exp",
                "exp(1000) is inf, and inf/inf is NaN. What may you subtract from a row without changing its shares?",
                "Subtract the largest score of the row first: then the largest exp is exp(0) = 1.")
def softmax(scores):
    weights = scores.exp()
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("one maximum",
                "You use one maximum for all rows: a row of small scores becomes 0/0. Each row needs its own.",
                "`scores.max()` is one number. You need one for each row, as a column.")
def softmax(scores):
    weights = flow.exp(scores - scores.max())
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("columns",
                "Your columns sum to 1. The shares of each *example* sum to 1, and an example is a row.",
                "Axis 0 goes down the rows. The classes of one example are along axis 1.")
def softmax(scores):
    weights = flow.exp(scores - scores.amax(0, keepdim=True))
    return weights / weights.sum(0, keepdim=True)


@exercise.wrong("lost axis",
                "The sums lost their axis: (n, k) meets (n,), and their right ends are lined up. Keep the axis.",
                "`sum(1)` of (2, 3) is (2,). `sum(1, keepdim=True)` is (2, 1): a number beside each row.")
def softmax(scores):
    weights = flow.exp(scores - scores.amax(1, keepdim=True))
    return weights / weights.sum(1)


@exercise.wrong("logarithms",
                "Those are logarithms of shares. A share is between 0 and 1.",
                "The exp of your result would be right. Why take its logarithm at all?")
def softmax(scores):
    lowered = scores - scores.amax(1, keepdim=True)
    return lowered - lowered.exp().sum(1, keepdim=True).log()


@exercise.wrong("caller's scores",
                "The shares are right, but the caller's scores have changed. `-=` writes into them.",
                "`scores = scores - ...` makes a new tensor; `scores -= ...` changes the one that was given.")
def softmax(scores):
    scores -= scores.amax(1, keepdim=True)
    weights = scores.exp()
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("not divided",
                "The rows do not sum to 1 yet. Divide each by its own sum.",
                "exp makes every number larger than 0. To be shares, they must add up to 1.")
def softmax(scores):
    return flow.exp(scores - scores.amax(1, keepdim=True))


@exercise.wrong("no exp",
                "Scores may be below 0, and shares may not. Which step makes every number larger than 0?",
                "Take exp of the scores before you divide.")
def softmax(scores):
    lowered = scores - scores.amax(1, keepdim=True)
    return lowered / lowered.sum(1, keepdim=True)


def lowered(scores):
    return scores - scores.amax(1, keepdim=True)


@exercise.wrong("mean taken away",
                "You subtract the mean of the row. The largest score may still be far above it, and its exp infinite.",
                "Which number of the row makes all others 0 or less when it is subtracted?")
def softmax(scores):
    weights = flow.exp(scores - scores.mean(1, keepdim=True))
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("added",
                "You make the scores larger. Which sign makes the largest of each row 0?",
                "Subtract the largest score.")
def softmax(scores):
    weights = flow.exp(scores + scores.amax(1, keepdim=True))
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("divided by the largest",
                "You divide by the largest score. That changes the differences of the scores, and so the shares.",
                "Only a number that is added or subtracted leaves the shares as they are.")
def softmax(scores):
    weights = flow.exp(scores / scores.amax(1, keepdim=True))
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("lowered too late",
                "You take exp first, and subtract the largest *score* from the result. What should come first?",
                "exp(s) - m is not exp(s - m): look at your parentheses.")
def softmax(scores):
    weights = scores.exp() - scores.amax(1, keepdim=True)
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("exp of the largest only",
                "Only the largest score goes through exp. A method takes what is directly in front of its dot.",
                "Put the difference in parentheses: `(a - b).exp()`.")
def softmax(scores):
    weights = scores - scores.amax(1, keepdim=True).exp()
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("sum of the columns",
                "You divide by the sums of the columns. Which sum belongs to a row?",
                "Axis 0 goes down the rows, axis 1 along each row.")
def softmax(scores):
    weights = flow.exp(lowered(scores))
    return weights / weights.sum(0, keepdim=True)


@exercise.wrong("one sum",
                "You divide by one sum, that of the whole table. The shares of each *row* sum to 1.",
                "`sum()` is one number. You need one for each row, as a column.")
def softmax(scores):
    weights = flow.exp(lowered(scores))
    return weights / weights.sum()


@exercise.wrong("lost axis of the maximum",
                "The largest scores lost their axis: (n, k) meets (n,), and their right ends are lined up.",
                "`amax(1)` of (2, 3) is (2,). What keeps it a column, (2, 1)?")
def softmax(scores):
    weights = flow.exp(scores - scores.amax(1))
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("both results of max",
                "`max` along an axis gives two things, the largest numbers and their places. Which do you need?",
                "`amax` gives the largest numbers alone.")
def softmax(scores):
    weights = flow.exp(scores - scores.max(1, keepdim=True))
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("exp of math",
                "The functions of `math` take one number. Here is a table of them: which exp takes a tensor?",
                "`flow.exp(t)` or `t.exp()`.")
def softmax(scores):
    weights = flow.tensor(math.exp(lowered(scores)))
    return weights / weights.sum(1, keepdim=True)


@exercise.wrong("scores over their sum",
                "Scores may be 0 or below, and shares may not. Which step makes every number larger than 0?",
                "Take exp of the scores before you divide.")
def softmax(scores):
    return scores / scores.sum(1, keepdim=True)


@exercise.wrong("logarithms of shares",
                "Those are logarithms of shares. A share is between 0 and 1.",
                "Your result before the last step would be right. Why take its logarithm at all?")
def softmax(scores):
    weights = flow.exp(lowered(scores))
    return (weights / weights.sum(1, keepdim=True)).log()


@exercise.wrong("two classes",
                "With two classes that is right. How many columns do the scores of this case have?",
                "Nothing in your code should depend on the number of columns: sum along axis 1.")
def softmax(scores):
    second = 1 / (1 + flow.exp(scores[:, 0] - scores[:, 1]))
    return flow.stack([1 - second, second], 1)


def expected_shares(rows):
    """Expected shares, in float64."""
    rows = np.asarray(rows, "float32").astype("float64")  # as the answer gets them
    weights = np.exp(rows - rows.max(1, keepdims=True))
    return (weights / weights.sum(1, keepdims=True)).astype("float32")


def scores_after(softmax, scores):
    """The given scores, after softmax has returned."""
    softmax(scores)
    return scores


def softmax_case(rows, hidden=False):
    return case(flow.tensor(np.asarray(rows, "float32")), expected=expected_shares(rows), hidden=hidden)


@exercise.cases
def cases(rng):
    yield case(flow.tensor([[0.0, 0.0]]))
    yield softmax_case([[0, 1, 2], [1, 1, 1]])
    yield softmax_case([[0, 2], [3, 1]])
    yield softmax_case([[5], [-7]])
    yield softmax_case([[1000, 1001]])
    yield softmax_case([[0, 120]])
    yield softmax_case([[0, 200]])
    yield softmax_case([[-1000, -1001], [1000, 999]])
    rows = [[3.0, 1.0], [2.0, 5.0]]
    yield case(flow.tensor(rows), run=scores_after, expected=np.array(rows, "float32"),
               text="are the given scores still the same?")
    yield softmax_case(np.round(rng.normal(0, 3, (3, 4)), 2), hidden=True)
    yield softmax_case(np.round(rng.normal(0, 3, (2, 2)), 2) + [[500.0], [-500.0]], hidden=True)
