"""06.4 score: measuring a network without changing it."""

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "06.4", "score", kind="write", level="core",
    question="How is a network measured without being changed?",
    hint="Remember `model.training`, switch to eval(), measure, and put the mode back.",
    fact="`model.train(mode)` takes the mode as a Boolean: `model.train(before)` restores the earlier mode.",
    sibling="To read a thermometer with the door shut: note whether the door is open, shut it, read, and leave the "
            "door as it was. In code: `was_open = door.open`, then `door.open = False`, read, and `door.open = "
            "was_open`. Always opening it would be wrong if it was shut before.",
)


@exercise.solution
def score(model, x, y):
    # the mode that the model was in
    before = model.training
    # no dropout while it is measured
    model.eval()
    right = (model(x).argmax(1) == y).float().mean().item()
    # as it was
    model.train(before)
    return right


@exercise.also_right
def score(model, x, y):
    mode = model.training
    try:
        with flow.no_grad():
            scores = model.eval()(x).numpy()
    finally:
        model.train(mode)
    return float((scores.argmax(1) == y.numpy()).mean())


@exercise.also_right
def score(model, x, y):
    was_training = model.training
    model.eval()
    hits = sum(int(row.argmax().item() == label.item()) for row, label in zip(model(x), y))
    if was_training:
        model.train()
    return hits / len(y)


def share(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


@exercise.wrong("left in eval",
                "The share is right, but the model stays in eval mode. Do you read its mode *before* you switch, and "
                "put it back before `return`?",
                "`before = model.training` comes first, `model.train(before)` after the measurement.")
def score(model, x, y):
    model.eval()
    return share(model, x, y)


@exercise.wrong("always back to train",
                "A model that was in eval mode is left in train mode. Put back the mode that you found.",
                "`before = model.training` at the start, `model.train(before)` at the end.")
def score(model, x, y):
    model.eval()
    right = share(model, x, y)
    model.train()
    return right


@exercise.wrong("no eval",
                "Dropout is on while you measure: the network is tested with parts of it missing.",
                "Call `model.eval()` before the model sees x.")
def score(model, x, y):
    return share(model, x, y)


@exercise.wrong("train mode",
                "You switch to train mode to measure. Dropout is off in eval mode.",
                "`model.train()` is for training steps, `model.eval()` for tests.")
def score(model, x, y):
    before = model.training
    model.train()
    right = share(model, x, y)
    model.train(before)
    return right


@exercise.wrong("count",
                "That is how many were right. What share is it?",
                "Divide by the number of examples: the mean of right and wrong.")
def score(model, x, y):
    before = model.training
    model.eval()
    right = float((model(x).argmax(1) == y).numpy().sum())
    model.train(before)
    return right


@exercise.wrong("mistakes",
                "That is the share of the mistakes.",
                "`==` finds the right ones, `!=` the others.")
def score(model, x, y):
    before = model.training
    model.eval()
    right = 1 - share(model, x, y)
    model.train(before)
    return right


@exercise.wrong("scores against labels",
                "Those are scores, not classes. Which class has the largest one? `argmax(1)`.",
                "(n, classes) cannot be compared with (n,). argmax over axis 1 leaves (n,).")
def score(model, x, y):
    before = model.training
    model.eval()
    right = (model(x) == y).float().mean().item()
    model.train(before)
    return right


def in_eval(measure):
    """An answer that measures in eval mode and puts the mode back."""
    def score(model, x, y):
        before = model.training
        model.eval()
        result = measure(model(x), y)
        model.train(before)
        return result

    return score


@exercise.wrong("only the outside",
                "`model.training = ...` changes the model itself, not the layers inside it. What switches all of them?",
                "`model.train(mode)` goes through all layers.")
def score(model, x, y):
    before = model.training
    model.eval()
    right = share(model, x, y)
    model.training = before
    return right


@exercise.wrong("modes swapped",
                "Afterwards the model is in the other mode than before. In which mode is `model.training` True?",
                "`model.training` is True in train mode.")
def score(model, x, y):
    before = model.training
    model.eval()
    right = share(model, x, y)
    model.train(not before)
    return right


exercise.wrong("classes down the examples",
               "`argmax(0)` looks down the examples. The scores of one example are along axis 1.",
               "One class for each example: the result has the shape (n,).")(
    in_eval(lambda scores, y: (scores.argmax(0) == y).float().mean().item()))
exercise.wrong("one class for all",
               "`argmax()` without an axis gives one place in the whole table. Each example has a class of its own.",
               "The scores of one example are along axis 1.")(
    in_eval(lambda scores, y: (scores.argmax() == y).float().mean().item()))
exercise.wrong("largest score",
               "`amax` is the largest score itself. Which *class* has it?",
               "`argmax` gives the place of the largest.")(
    in_eval(lambda scores, y: (scores.amax(1) == y).float().mean().item()))
exercise.wrong("percent",
               "That is a percentage. A share is a number from 0 to 1.",
               "Leave out the 100.")(
    in_eval(lambda scores, y: 100 * (scores.argmax(1) == y).float().mean().item()))
exercise.wrong("always 300",
               "You divide by 300. How many examples are given?",
               "`len(y)`, or the mean.")(
    in_eval(lambda scores, y: (scores.argmax(1) == y).sum().item() / 300))


class Moody(flow.nn.Module):
    """Its input is its scores: as they are in eval mode, with the last class always first in train mode."""

    def __init__(self, training):
        super().__init__()
        self.inner = flow.nn.Dropout(0.5)
        self.train(training)

    def forward(self, x):
        if self.training or self.inner.training:
            return x * 0 + flow.arange(x.shape[1])
        return x


def mode_after(score, model, x, y):
    score(model, x, y)
    return {"training": model.training, "the layer inside": model.inner.training}


def score_case(rows, labels, training=True, hidden=False, **other):
    if not other:
        mode = "train" if training else "eval"
        other = {"text": f"a model that came in {mode} mode; in eval mode its scores are {rows}; labels {labels}"}
    return case(Moody(training), flow.tensor(rows).float(), flow.tensor(labels), hidden=hidden, **other)


@exercise.cases
def cases(rng):
    yield score_case([[2, 1]], [0], training=False)
    yield score_case([[2, 1], [3, 0], [1, 4]], [0, 0, 0], training=False)
    yield score_case([[2, 1], [3, 0], [1, 4]], [0, 1, 0])
    yield score_case([[5, 1, 0], [0, 5, 1], [0, 1, 5], [5, 1, 0]], [0, 1, 0, 0])
    for training in (True, False):
        yield score_case([[2, 1]], [0], training, run=mode_after,
                         expected={"training": training, "the layer inside": training},
                 text=f"a model that came in {'train' if training else 'eval'} mode: its mode afterwards")
    labels = rng.integers(0, 2, 5).tolist()
    yield score_case([[3, 1, 0]] * 5, labels, hidden=True)
    yield score_case([[0, 3, 1]] * 5, [1, 1, 0, 1, 2], hidden=True)
