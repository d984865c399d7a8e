"""04.5 n_times_n: a column meets a row, and every number meets every other."""

import warnings

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "04.5", "n_times_n", kind="mend", level="core", answer="loss_of", tolerance=(1e-5, 1e-5),
    question="Why does this network learn nothing but the mean?",
    hint="Print the shapes of both sides. They must be equal before you subtract one from the other.",
    fact="The best answer to n x n pairs is the mean of y, for every x: that is what such a network learns.",
    sibling="A column [[1], [2]] minus a row [1, 2] is [[0, -1], [1, 0]]: four differences, of which you want two. "
            "`column[:, 0] - row` gives the two: [0, 0]. So does `column - row[:, None]`, as a column.",
)


@exercise.solution
def loss_of(model, x, y):
    # (n, 1) and (n, 1): each prediction meets its own target
    prediction, target = model(x), y[:, None]
    return flow.nn.functional.mse_loss(prediction, target)


@exercise.also_right
def loss_of(model, x, y):
    return ((model(x)[:, 0] - y) ** 2).mean()


@exercise.also_right
def loss_of(model, x, y):
    pairs = zip(model(x).reshape(-1), y)
    return sum((prediction - target) ** 2 for prediction, target in pairs) / len(y)


@exercise.stub
def loss_of(model, x, y):
    prediction = model(x)
    return flow.nn.functional.mse_loss(prediction, y)


@exercise.wrong("all pairs",
                "Every prediction still meets every target. Which shapes meet? Print both.",
                "(n, 1) and (n,) stretch to (n, n); so do (n, 1) and (1, n). Make both (n,) or both (n, 1).")
def loss_of(model, x, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flow.nn.functional.mse_loss(model(x), y)


@exercise.wrong("sum",
                "The shapes fit now. But that is the sum, which depends on the size of the batch.",
                "A *mean* squared error: divide by the number of rows.")
def loss_of(model, x, y):
    return ((model(x)[:, 0] - y) ** 2).sum()


@exercise.wrong("no square",
                "The differences are not squared. In such a mean, plus and minus cancel.",
                "A prediction 1 too high and one 1 too low give 0 here, though both are wrong.")
def loss_of(model, x, y):
    return (model(x)[:, 0] - y).mean()


@exercise.wrong("absolute",
                "That is the mean *absolute* error. The error of this lesson is squared.",
                "A miss by 3 counts 9, not 3.")
def loss_of(model, x, y):
    return (model(x)[:, 0] - y).abs().mean()


@exercise.wrong("first row",
                "Only the first prediction is compared with all the targets: `[0]` takes a row.",
                "The column of all predictions is `[:, 0]`: all rows, place 0.")
def loss_of(model, x, y):
    return ((model(x)[0] - y) ** 2).mean()


@exercise.wrong("a number of Python",
                "The number is right, but `backward` finds no way through a Python number. Return the tensor.",
                "Leave out `.item()`.")
def loss_of(model, x, y):
    return ((model(x)[:, 0] - y) ** 2).mean().item()


@exercise.wrong("root",
                "That is the root of the mean squared error. The task does not ask for a root.",
                "Leave out the last step.")
def loss_of(model, x, y):
    return ((model(x)[:, 0] - y) ** 2).mean().sqrt()


@exercise.wrong("first target",
                "All predictions are compared with one target: `[0]` takes the first.",
                "Each prediction has its own target. Which shape must y have?")
def loss_of(model, x, y):
    return ((model(x) - y[0]) ** 2).mean()


@exercise.wrong("flat input",
                "You flatten what goes *into* the model: a layer takes a column, (n, 1). Look at what comes out of it.",
                "The column is the prediction: take its numbers, or make y a column.")
def loss_of(model, x, y):
    return ((model(x.squeeze(1)) - y) ** 2).mean()


@exercise.wrong("caret",
                "`^` is not a power in Python. How is a square written?",
                "`difference ** 2`")
def loss_of(model, x, y):
    return ((model(x)[:, 0] - y) ^ 2).mean()


@exercise.wrong("off the tape",
                "The number is right, but it is not on the tape any more: `backward` finds no way to the weight.",
                "NumPy, `.detach()`, `.item()` and `flow.tensor(...)` leave the tape.")
def loss_of(model, x, y):
    return ((model(x).detach()[:, 0] - y) ** 2).mean()


@exercise.wrong("all pairs added",
                "Every prediction still meets every target, and their squares are added. Print the shape of the "
                "difference.",
                "(n, 1) and (n,) stretch to (n, n). Make both (n,) or both (n, 1).")
def loss_of(model, x, y):
    return ((model(x) - y) ** 2).sum(1).mean()


def doubling(x):
    """A layer of the weight 2: it takes a column, like nn.Linear."""
    return x @ flow.tensor([[2.0]])


def slope(loss_of, weight, x, y):
    """The slope of the loss in the one weight of a model."""
    weight.requires_grad_(True)
    loss = loss_of(lambda x: x @ weight, x, y)
    if not isinstance(loss, flow.Tensor):
        return f"none: the loss is a {type(loss).__name__}, not a tensor"
    loss.backward()
    return weight.grad.item()


def loss_case(x, y, text="", hidden=False):
    x, y = (np.asarray(numbers, "float32").astype("float64") for numbers in (x, y))
    right = ((2 * x - y) ** 2).mean()
    tensors = flow.tensor(x[:, None].astype("float32")), flow.tensor(y.astype("float32"))
    return case(doubling, *tensors, expected=right, text=text, hidden=hidden)


@exercise.cases
def cases(rng):
    yield loss_case([1], [2], text="1 row: x = [[1]], y = [2], the model doubles")
    yield loss_case([1], [5], text="1 row: x = [[1]], y = [5], the model doubles")
    yield loss_case([1, 3], [2, 6], text="2 rows: x = [[1], [3]], y = [2, 6], the model doubles")
    yield loss_case([0, 0], [1, -1], text="2 rows: x = [[0], [0]], y = [1, -1], the model doubles")
    yield loss_case([1, 2, 3], [2, 5, 7], text="3 rows: x = [[1], [2], [3]], y = [2, 5, 7], the model doubles")
    yield loss_case(np.arange(50) / 50, np.arange(50) / 25, text="50 rows; the model doubles, and so does y")
    yield case(flow.tensor([[3.0]]), flow.tensor([[1.0], [2.0]]), flow.tensor([2.0, 4.0]), run=slope, expected=5.0,
               text="the slope of the loss in the weight 3: x = [[1], [2]], y = [2, 4]")
    x = rng.normal(0, 1, 50)
    yield loss_case(x, 2 * x + rng.normal(0, 0.1, 50), hidden=True)
    yield loss_case(rng.normal(0, 1, 4), rng.normal(0, 1, 4), hidden=True)
