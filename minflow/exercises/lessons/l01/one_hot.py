"""01.3 one_hot: a row of zeros with a single one for each label, by comparing."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

LIBRARY = "That function makes the rows for you. Make them yourself by comparing: arange, ==, and an index with None."

exercise = Exercise(
    "01.3", "one_hot", kind="write", level="stretch", exact_types=True,
    question="How does a label become a row of zeros with a single one?",
    hint="Compare a column of labels, shape (n, 1), with the row 0, 1, ..., k - 1. What is the shape of the result?",
    fact="A comparison is an operation like any other: it broadcasts. A table of rows against columns is one `==`.",
    sibling="Which day of the week is each date? `days = flow.tensor([2, 0])`: compare the column `days[:, None]` with "
            "the row `flow.arange(7)` and you have a table (2, 7) of True and False, one True in each row.",
    forbidden={"one_hot": LIBRARY, "eye": LIBRARY, "scatter": LIBRARY, "scatter_": LIBRARY,
               "for": "The task asks for no loop: compare a column with a row.",
               "while": "The task asks for no loop: compare a column with a row."},
)


@exercise.solution
def one_hot(labels, k):
    # a column of labels against the row 0, 1, ..., k - 1: True where they are the same
    same = labels[:, None] == flow.arange(k)
    # True becomes 1.0, False 0.0
    return same.float()


@exercise.also_right
def one_hot(labels, k):
    return (flow.arange(k).unsqueeze(0) == labels.unsqueeze(1)).to(flow.float32)


@exercise.also_right
def one_hot(labels, k):
    column = labels.reshape(-1, 1)
    return flow.where(column - flow.arange(k).reshape(1, k) == 0, flow.ones(1), flow.zeros(1))


@exercise.wrong("truth values",
                "These are True and False. How does True become 1.0?",
                "`.float()` turns True into 1.0 and False into 0.0.")
def one_hot(labels, k):
    return labels[:, None] == flow.arange(k)


DTYPE = "`.float()` gives float32."


@exercise.wrong("whole numbers", "These are whole numbers. The task asks for float32.", DTYPE)
def one_hot(labels, k):
    return (labels[:, None] == flow.arange(k)).long()


@exercise.wrong("whole numbers, int32", "These are whole numbers. The task asks for float32.", DTYPE)
def one_hot(labels, k):
    return (labels[:, None] == flow.arange(k)).int()


@exercise.wrong("float64", "The numbers are right, but of another dtype. The task asks for float32.", DTYPE)
def one_hot(labels, k):
    return (labels[:, None] == flow.arange(k)).double()


@exercise.wrong("columns by the largest label",
                "A class that is absent still has its column. How many columns are asked for?",
                "k says how many classes there are, whichever of them occur.")
def one_hot(labels, k):
    return (labels[:, None] == flow.arange(labels.max().item() + 1)).float()


COLUMNS = ("Count your columns: how many does the task ask for?",
           "`flow.arange(k)` gives 0, 1, ..., k - 1: k classes, for whichever k.")


def columns(count):
    """A wrong answer with `count(labels, k)` columns."""
    return lambda labels, k: (labels[:, None] == flow.arange(count(labels, k))).float()


exercise.wrong("a column too many", *COLUMNS)(columns(lambda labels, k: k + 1))
exercise.wrong("a column too few", *COLUMNS)(columns(lambda labels, k: k - 1))
exercise.wrong("a column for each label", *COLUMNS)(columns(lambda labels, k: len(labels)))
exercise.wrong("always three columns", *COLUMNS)(columns(lambda labels, k: 3))
exercise.wrong("always ten columns", *COLUMNS)(columns(lambda labels, k: 10))


@exercise.wrong("the labels themselves",
                "In each row the label itself is at the place of its class. Which number belongs there?",
                "The comparison alone gives the ones: leave out the factor.")
def one_hot(labels, k):
    return (labels[:, None] == flow.arange(k)).float() * labels[:, None]


@exercise.wrong("the example",
                "This is the answer for one example. Use the labels and the k that your function gets.",
                "Compare `labels`, as a column, with the classes.")
def one_hot(labels, k):
    return flow.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


@exercise.wrong("a Python range",
                "`range(k)` is not a tensor, so `==` compares two things of different kinds and gives a single False.",
                "`flow.arange(k)` is a tensor of the numbers 0 to k - 1.")
def one_hot(labels, k):
    return (labels[:, None] == range(k)).float()


@exercise.wrong("turned",
                "Rows and columns are swapped: one *row* for each label.",
                "The labels are the column, labels[:, None]; the classes are the row.")
def one_hot(labels, k):
    return (flow.arange(k)[:, None] == labels).float()


@exercise.wrong("from 1",
                "The one is a place too far to the left. The first class is 0.",
                "`flow.arange(k)` gives 0, 1, ..., k - 1, and the labels are compared with these.")
def one_hot(labels, k):
    return (labels[:, None] == flow.arange(1, k + 1)).float()


@exercise.wrong("one zero",
                "Zeros and ones are swapped: a one where the label *is* the class.",
                "`!=` asks where they differ.")
def one_hot(labels, k):
    return (labels[:, None] != flow.arange(k)).float()


@exercise.wrong("up to the label",
                "There are several ones in a row. Only one class is *equal* to the label.",
                "`>=` is true for all classes up to the label. Use `==`.")
def one_hot(labels, k):
    return (labels[:, None] >= flow.arange(k)).float()


@exercise.wrong("from the label on",
                "There are several ones in a row. Only one class is *equal* to the label.",
                "`<=` is true for all classes from the label on. Use `==`.")
def one_hot(labels, k):
    return (labels[:, None] <= flow.arange(k)).float()


@exercise.wrong("no new axis",
                "Each label meets only the class beside it. Each should meet *all* classes.",
                "Make the labels a column: `labels[:, None]`. Then the row of classes stretches over it.")
def one_hot(labels, k):
    return (labels == flow.arange(k)).float()


@exercise.wrong("in every row",
                "Each label puts its 1 into *every* row. It belongs in its own row only.",
                "`result[:, labels]` means these columns of all rows. Compare instead: a column of labels, a row of k.")
def one_hot(labels, k):
    result = flow.zeros(len(labels), k)
    result[:, labels] = 1
    return result


def one_hot_case(labels, k, **options):
    labels = [int(label) for label in labels]
    expected = flow.tensor(np.array([[label == i for i in range(k)] for label in labels], "float32"))
    text = f"labels = {labels}, k = {k}"
    return case(flow.tensor(labels), k, expected=expected, text=text, **options)


@exercise.cases
def cases(rng):
    yield one_hot_case([0], 1)
    yield one_hot_case([1], 2)
    yield one_hot_case([2, 0, 1], 3)
    yield one_hot_case([1, 1], 3)
    yield one_hot_case([0, 0, 0], 2)
    yield one_hot_case([3, 0, 9, 3], 10)
    yield one_hot_case(rng.integers(0, 4, 6), 6, hidden=True)
    yield one_hot_case(rng.integers(0, 12, 5), 15, hidden=True)
