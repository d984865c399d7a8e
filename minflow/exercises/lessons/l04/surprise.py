"""04.3 surprise: cross-entropy, the mean surprise at the right classes."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "04.3", "surprise", kind="write", level="core", answer="cross_entropy", tolerance=(2e-4, 1e-5),
    question="How surprised is the network by the right answers, on average?",
    hint="ln(share) is the lowered score minus ln(sum of exp). Take it at each row's label, change the sign, average.",
    fact="Its slope in each score is (share - 1 at the right class) / n: by how much the share is too large or too "
         "small.",
    sibling="One number from each row: of the rows [5, 6, 7] and [8, 9, 4] take places 2 and 0. "
            "`t[flow.arange(2), flow.tensor([2, 0])]` pairs row 0 with place 2 and row 1 with place 0: [7, 8]. "
            "Their mean, with a minus, is -7.5.",
    forbidden={"cross_entropy": "That is the library's function of the same name. Build it from exp, log and sums.",
               "CrossEntropyLoss": "That is the library's function. Build it from exp, log and sums.",
               "nll_loss": "That takes the last step for you. Pick the numbers with an index.",
               **{name: "That is the library's function. Build it from exp, log and sums."
                  for name in ("log_softmax", "LogSoftmax", "logsumexp")}},
)


@exercise.solution
def cross_entropy(scores, labels):
    # ln of all shares, without a share: score minus ln of the sum of exp
    lowered = scores - scores.amax(1, keepdim=True)
    logs = lowered - lowered.exp().sum(1, keepdim=True).log()
    # from each row the one at its label
    right = logs[flow.arange(len(labels)), labels]
    # a surprise is never below 0
    return -right.mean()


@exercise.also_right
def cross_entropy(scores, labels):
    total = 0
    for row, label in zip(scores, labels):
        highest = row.max()
        total = total + highest + (row - highest).exp().sum().log() - row[label]
    return total / len(labels)


@exercise.also_right
def cross_entropy(scores, labels):
    chosen = (labels[:, None] == flow.arange(scores.shape[1])).float()
    top = scores.amax(1, keepdim=True)
    sums = (scores - top).exp().sum(1).log()
    return (sums - ((scores - top) * chosen).sum(1)).mean()


def log_shares(scores):
    return flow.nn.functional.log_softmax(scores, 1)


def at_labels(table, labels):
    return table[flow.arange(len(labels)), labels]


@exercise.wrong("sum",
                "That is the sum. With a mean, a batch of 10 and one of 100 can be compared.",
                "Divide by the number of rows: `.mean()`.")
def cross_entropy(scores, labels):
    lowered = scores - scores.amax(1, keepdim=True)
    logs = lowered - lowered.exp().sum(1, keepdim=True).log()
    return -logs[flow.arange(len(labels)), labels].sum()


@exercise.wrong("log of a share",
                "A tiny share is rounded to 0, and ln 0 is -inf. Stay in logarithms: do not compute the share.",
                "ln(e / s) is ln(e) - ln(s), and ln(e) is the lowered score itself.")
def cross_entropy(scores, labels):
    shares = flow.nn.functional.softmax(scores, 1)
    return -shares[flow.arange(len(labels)), labels].log().mean()


@exercise.wrong("plain exp",
                "exp(1000) is inf. Subtract the largest score of each row first.",
                "ln(sum of exp) stays finite if the largest score of the row is 0.")
def cross_entropy(scores, labels):
    logs = scores - scores.exp().sum(1, keepdim=True).log()
    return -logs[flow.arange(len(labels)), labels].mean()


@exercise.wrong("all pairs",
                "`logs[:, labels]` takes *every* label from every row: n x n numbers. You need one from each row.",
                "Give the rows as an index too: `flow.arange(n)` pairs row 0 with label 0, row 1 with label 1.")
def cross_entropy(scores, labels):
    return -log_shares(scores)[:, labels].mean()


@exercise.wrong("no minus",
                "Right size, wrong sign: a surprise is never below 0.",
                "ln of a share is 0 or less. Put a minus in front.")
def cross_entropy(scores, labels):
    return log_shares(scores)[flow.arange(len(labels)), labels].mean()


@exercise.wrong("softmax twice",
                "It starts right, and never gets small: you take softmax of shares. Once is enough.",
                "log_softmax takes scores. Yours have been through softmax already.")
def cross_entropy(scores, labels):
    shares = flow.nn.functional.softmax(scores, 1)
    return -flow.nn.functional.log_softmax(shares, 1)[flow.arange(len(labels)), labels].mean()


@exercise.wrong("wrong answers counted",
                "That is the share of mistakes. It jumps: a small step usually changes nothing, so there is no slope "
                "to follow.",
                "Use the share of the right class, not whether it is the largest.")
def cross_entropy(scores, labels):
    return (scores.argmax(1) != labels).float().mean()


@exercise.wrong("all classes",
                "You average over all classes. Only the share of the *right* class counts.",
                "Each row gives one number: the one at its label.")
def cross_entropy(scores, labels):
    return -log_shares(scores).mean()


@exercise.wrong("all classes, plain exp",
                "You average over all classes. Only the share of the *right* class counts: where are the labels?",
                "Each row gives one number: the one at its label.")
def cross_entropy(scores, labels):
    return -(scores - scores.exp().sum(1, keepdim=True).log()).mean()


@exercise.wrong("all pairs, plain exp",
                "`[:, labels]` takes *every* label from every row: n x n numbers. You need one from each row.",
                "Give the rows as an index too: `flow.arange(n)` pairs row 0 with label 0, row 1 with label 1.")
def cross_entropy(scores, labels):
    return -(scores - scores.exp().sum(1, keepdim=True).log())[:, labels].mean()


@exercise.wrong("ln of the mean",
                "You take ln of the mean share. The answer is the mean of the surprises: first ln, then the mean.",
                "ln of each row's share at its label, then `.mean()`.")
def cross_entropy(scores, labels):
    shares = flow.nn.functional.softmax(scores, 1)
    return -shares[flow.arange(len(labels)), labels].mean().log()


@exercise.wrong("score only",
                "That is the score at the label. A score is not a share: what about the sum of exp of its row?",
                "ln(share) is the score minus ln(sum of exp).")
def cross_entropy(scores, labels):
    return -scores[flow.arange(len(labels)), labels].mean()


@exercise.wrong("a number of Python",
                "A Python number is not on a tape: `backward` finds no way through it. Keep it a tensor.",
                "No `.item()`, no `float`, no `math.log` on the way: `.log()` of a tensor.")
def cross_entropy(scores, labels):
    return -log_shares(scores)[flow.arange(len(labels)), labels].mean().item()


@exercise.wrong("off the tape",
                "The number is right, but it is not on the tape any more: `backward` finds no way to the scores.",
                "NumPy, `.detach()`, `.item()` and `flow.tensor(...)` leave the tape.")
def cross_entropy(scores, labels):
    return -at_labels(log_shares(scores.detach()), labels).mean()


@exercise.wrong("one for each row",
                "That is one surprise for each row. The answer is one number.",
                "Take the mean of the rows.")
def cross_entropy(scores, labels):
    return -at_labels(log_shares(scores), labels)


@exercise.wrong("lowered score only",
                "That is the lowered score at the label. It is ln of exp: where is the sum by which exp is divided?",
                "ln(share) is the lowered score minus ln(sum of exp).")
def cross_entropy(scores, labels):
    return -at_labels(scores - scores.amax(1, keepdim=True), labels).mean()


@exercise.wrong("sum without exp",
                "You sum scores and take ln of that. What is summed in a share?",
                "The share is exp(score) divided by the sum of all exp of its row.")
def cross_entropy(scores, labels):
    lowered = scores - scores.amax(1, keepdim=True)
    return (lowered.sum(1).log() - at_labels(lowered, labels)).mean()


@exercise.wrong("share without ln",
                "That is the mean share with a minus. The surprise at a share is -ln(share).",
                "The step from a share to a surprise is missing: ln.")
def cross_entropy(scores, labels):
    return -at_labels(log_shares(scores).exp(), labels).mean()


@exercise.wrong("lowered on one side",
                "The sum comes from lowered scores, the score at the label is not lowered. Use the same ones for both.",
                "If you subtract a number from the scores, subtract it everywhere.")
def cross_entropy(scores, labels):
    lowered = scores - scores.amax(1, keepdim=True)
    return (lowered.exp().sum(1).log() - at_labels(scores, labels)).mean()


@exercise.wrong("sum down the columns",
                "You sum exp down the columns. The shares of each *row* sum to 1.",
                "Axis 0 goes down the rows, axis 1 along each row.")
def cross_entropy(scores, labels):
    lowered = scores - scores.amax(1, keepdim=True)
    return (lowered.exp().sum(0).log() - at_labels(lowered, labels)).mean()


@exercise.wrong("log10",
                "You take log10. The surprise is measured with ln.",
                "ln is `.log()`.")
def cross_entropy(scores, labels):
    return -at_labels(log_shares(scores), labels).mean() / np.log(10)


@exercise.wrong("log2",
                "You take log2, which measures in bits. The surprise is measured with ln.",
                "ln is `.log()`.")
def cross_entropy(scores, labels):
    return -at_labels(log_shares(scores), labels).mean() / np.log(2)


@exercise.wrong("divided by the classes",
                "You divide by the number of classes. The mean is over the rows: how many are there?",
                "`scores.shape` is (rows, classes).")
def cross_entropy(scores, labels):
    return -at_labels(log_shares(scores), labels).sum() / scores.shape[1]


@exercise.wrong("largest instead of right",
                "You take the class with the largest score. How do the labels come in?",
                "The network may be wrong: the surprise is at the class that the label names.")
def cross_entropy(scores, labels):
    return -log_shares(scores).amax(1).mean()


@exercise.wrong("rows at the labels",
                "`[labels]` alone takes whole *rows*. You need one place from each row.",
                "Two indices: `flow.arange(n)` for the rows, the labels for the places.")
def cross_entropy(scores, labels):
    return -log_shares(scores)[labels].mean()


@exercise.wrong("arguments swapped",
                "The scores come first, then the labels.",
                "`def cross_entropy(scores, labels)`: the names are yours, the order is not.")
def cross_entropy(labels, scores):
    lowered = scores - scores.amax(1, keepdim=True)
    return -at_labels(lowered, labels).mean()


def logs_of(rows):
    rows = np.asarray(rows, "float32").astype("float64")  # as the answer gets them
    lowered = rows - rows.max(1, keepdims=True)
    return lowered - np.log(np.exp(lowered).sum(1, keepdims=True))


def gradient(cross_entropy, scores, labels):
    """The slope of the mean surprise in each score."""
    scores.requires_grad_(True)
    result = cross_entropy(scores, labels)
    if not isinstance(result, flow.Tensor):
        return f"none: the result is a {type(result).__name__}, not a tensor"
    result.backward()
    return scores.grad


def loss_case(rows, labels, hidden=False):
    right = -logs_of(rows)[np.arange(len(labels)), labels].mean()
    return case(flow.tensor(np.asarray(rows, "float32")), flow.tensor(labels), expected=right, hidden=hidden)


@exercise.cases
def cases(rng):
    yield loss_case([[0, 0]], [1])
    yield loss_case([[0, 0, 0], [0, 0, 0]], [0, 2])
    yield loss_case([[1, 2, 0]], [1])
    yield loss_case([[2, 0], [1, 3], [0, 4]], [0, 0, 1])
    yield loss_case([[1000, 0]], [1])
    yield loss_case([[-1000, -1001], [1000, 999]], [0, 1])
    rows, labels = [[2.0, 0.0], [0.0, 1.0]], [0, 0]
    slopes = (np.exp(logs_of(rows)) - [[1, 0], [1, 0]]).astype("float32") / 2
    yield case(flow.tensor(rows), flow.tensor(labels), run=gradient, expected=slopes, text="its slope in each score")
    yield loss_case(np.round(rng.normal(0, 2, (4, 5)), 2), rng.integers(0, 5, 4).tolist(), hidden=True)
    yield loss_case(np.round(rng.normal(0, 2, (3, 3)), 2) + 300, rng.integers(0, 3, 3).tolist(), hidden=True)
