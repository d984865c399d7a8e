"""03.4 forgot: a training step that also uses the slopes of all earlier steps."""

from numbers import Real

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "03.4", "forgot", kind="mend", level="core", answer="train_step", tolerance=(1e-5, 1e-5),
    question="Why does the walk never come to rest?",
    hint="Say what each line does, in order. What does `.grad` hold before the step, and what should it hold?",
    fact="`backward` adds, it does not replace. That is on purpose: where paths meet, slopes add. It also helps with "
         "data that do not fit into memory at once: take them in parts, and their slopes add up.",
    sibling="A shop counts its customers with a clicker. On Monday it shows 30. It is not set to 0, so on Tuesday, "
            "with 20 customers, it shows 50. The clicker is right: it adds. To count *one* day, set it to 0 in the "
            "morning: before the day begins, never between the last customer and the reading.",
)


@exercise.stub
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


@exercise.solution
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    # forget the slopes of the last step before new ones are added
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


right_step = exercise.right


@exercise.also_right
def train_step(model, loss_fn, optimizer, x, y):
    model.zero_grad()
    prediction = model(x)
    loss = loss_fn(prediction, y)
    loss.backward()
    optimizer.step()
    return float(loss)


@exercise.also_right
def train_step(model, loss_fn, optimizer, x, y):
    for parameter in model.parameters():
        parameter.grad = None
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.numpy().item()


@exercise.wrong("y as the prediction",
                "`loss_fn` gets y first, as if it were the prediction. For other losses than this one that is wrong.",
                "`loss_fn(model(x), y)`: first what the model says, then what is true.")
def train_step(model, loss_fn, optimizer, x, y):
    return right_step(model, lambda prediction, target: loss_fn(target, prediction), optimizer, x, y)


@exercise.wrong("cleared at the end",
                "Your steps after the first are right. What if `backward` had been called before the first?",
                "Clear *before* `backward`: then it does not matter what was left in `.grad`.")
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


@exercise.wrong("never cleared",
                "Today's slope plus all of yesterday's: the second step is too long. Which line clears `.grad`?",
                "`optimizer.zero_grad()` clears it. Where must you call it, so that only this step's slope is used?")
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


@exercise.wrong("cleared too late",
                "The weights do not move: you clear the slopes between `backward` and `step`.",
                "`step` reads what `backward` wrote. Clear before `backward`.")
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    return loss.item()


@exercise.wrong("step before backward",
                "It moves by the slope of the previous step: `step` comes before `backward`.",
                "First the slopes of *this* loss (`backward`), then the step that uses them.")
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    optimizer.step()
    optimizer.zero_grad()
    loss.backward()
    return loss.item()


@exercise.wrong("the tensor itself",
                "The training is right. But you return a tensor, which holds its tape: return a plain number.",
                "`loss.item()` is only the number.")
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@exercise.wrong("cut off",
                "This loss has no path back to the knobs. Is it made from `model(x)`, and is it still on the tape?",
                "`detach()`, `no_grad()` and `item()` leave no tape. `loss_fn` compares `model(x)` with y.")
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y).detach()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@exercise.wrong("step before backward, after clearing",
                "The weights do not move: `step` comes before `backward`, when there is no slope to go by.",
                "First the slopes of *this* loss (`backward`), then the step that uses them.")
def train_step(model, loss_fn, optimizer, x, y):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    optimizer.step()
    loss.backward()
    return loss.item()


@exercise.wrong("no backward",
                "The weights do not move: the knobs have no slopes. Which line finds them?",
                "`loss.backward()` writes the slope of each knob into its `.grad`.")
def train_step(model, loss_fn, optimizer, x, y):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    optimizer.step()
    return loss.item()


@exercise.wrong("two steps",
                "Your function takes two steps by the same slope. How many should it take?",
                "One `backward`, then one `step`.")
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    optimizer.step()
    return loss.item()


@exercise.wrong("ten steps",
                "Your function trains several steps. The notebook's loop calls it once for each step.",
                "No loop is needed inside: one call is one step.")
def train_step(model, loss_fn, optimizer, x, y):
    for _ in range(10):
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


@exercise.wrong("own optimizer",
                "The optimizer that your function gets takes no step. Whose `step` do you call?",
                "The caller chose the optimizer and its rate: use the argument `optimizer`, and make no other.")
def train_step(model, loss_fn, optimizer, x, y):
    own = flow.optim.SGD(model.parameters(), lr=RATE)
    loss = loss_fn(model(x), y)
    own.zero_grad()
    loss.backward()
    own.step()
    return loss.item()


@exercise.wrong("own loss",
                "You compute a mean squared error, whatever the loss function is. Which one does the caller want?",
                "`loss_fn(model(x), y)` calls the loss function that is passed in.")
def train_step(model, loss_fn, optimizer, x, y):
    loss = ((model(x) - y)**2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@exercise.wrong("no such method",
                "The object before the dot has no such method: the error says which kind it is. The table above says "
                "what a loss and an optimizer can do.",
                "`loss.backward()` needs the loss itself, not its number. `optimizer.zero_grad()` clears the slopes.")
def train_step(model, loss_fn, optimizer, x, y):
    optimizer.clear_grad()


NUMBER = ("The training is right. But what you return is not a plain number.",
          "`return loss.item()` returns the number itself: no text, no list, nothing rounded, and `item` is called.")


@exercise.wrong("a method", *NUMBER)
def train_step(model, loss_fn, optimizer, x, y):
    right_step(model, loss_fn, optimizer, x, y)
    return flow.tensor(0.0).item


@exercise.wrong("a text", *NUMBER)
def train_step(model, loss_fn, optimizer, x, y):
    return str(right_step(model, loss_fn, optimizer, x, y))


@exercise.wrong("a text of three digits", *NUMBER)
def train_step(model, loss_fn, optimizer, x, y):
    return f"{right_step(model, loss_fn, optimizer, x, y):.3f}"


@exercise.wrong("a list", *NUMBER)
def train_step(model, loss_fn, optimizer, x, y):
    return [right_step(model, loss_fn, optimizer, x, y)]


@exercise.wrong("rounded",
                "The training is right. But you round the loss, and its digits are lost.",
                "Return the number as it is. Rounding is for printing.")
def train_step(model, loss_fn, optimizer, x, y):
    return round(right_step(model, loss_fn, optimizer, x, y), 2)


@exercise.wrong("no step",
                "The weights do not move, though their slopes are there. Which line takes the step?",
                "`optimizer.step()` moves each weight against its slope.")
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    return loss.item()


@exercise.wrong("w alone cleared",
                "The slope of w is cleared, that of b is not. How many knobs are there?",
                "`optimizer.zero_grad()` clears the slope of each knob that it knows.")
def train_step(model, loss_fn, optimizer, x, y):
    model.weight.grad = None
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


@exercise.wrong("nothing returned",
                "The training is right, but nothing comes back. Is there a `return`?",
                "The last line is `return loss.item()`.")
def train_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@exercise.wrong("the loss afterwards",
                "You return the loss after the step. Return the loss from which the step was taken.",
                "Compute the loss once: `backward` walks back from it, and you return its number.")
def train_step(model, loss_fn, optimizer, x, y):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
    return loss_fn(model(x), y).item()


RATE = 0.1
IN_ORDER = "backward, then step"


def model_of(x, y):
    """A line at w = 0.5, b = 0, its loss and its optimizer."""
    model = flow.nn.Linear(1, 1)
    with flow.no_grad():
        model.weight.fill_(0.5)
        model.bias.fill_(0.0)
    return model, flow.nn.MSELoss(), flow.optim.SGD(model.parameters(), lr=RATE), flow.tensor(x), flow.tensor(y)


def weights(train_step, x, y, steps, left=False):
    """w and b after n steps. left: True if backward was called before the first one."""
    model, loss_fn, optimizer, x, y = model_of(x, y)
    if left:
        loss_fn(model(x), y).backward()
    for _ in range(steps):
        train_step(model, loss_fn, optimizer, x, y)
    return [model.weight.item(), model.bias.item()]


def slopes(train_step, x, y, steps):
    """The slope of w that the last step used, or "none": it was never called, or found nothing."""
    model, loss_fn, optimizer, x, y = model_of(x, y)
    used, own_step = [], optimizer.step

    def step():
        gradient = model.weight.grad
        used.append("none" if gradient is None else gradient.item())
        return own_step()

    optimizer.step = step
    for _ in range(steps):
        train_step(model, loss_fn, optimizer, x, y)
    return used[-1] if used else "step was not called"


def what_happens(train_step, x, y):
    """Describe the calls of backward and step, and whether step finds slopes; IN_ORDER if they are right."""
    model, loss_fn, optimizer, x, y = model_of(x, y)
    calls, empty, own_step, own_loss, swapped = [], [], optimizer.step, loss_fn, []

    def loss_fn(prediction, target):
        swapped.append(prediction is y)
        return own_loss(prediction, target)

    def step():
        calls.append("step")
        empty.append(model.weight.grad is None or model.weight.grad.item() == 0)
        return own_step()

    optimizer.step = step
    model.weight.register_hook(lambda slope: calls.append("backward"))
    train_step(model, loss_fn, optimizer, x, y)
    if any(swapped):
        return "loss_fn gets y as the prediction"
    if missing := [name for name in ("backward", "step") if name not in calls]:
        return f"{missing[0]} is not called"
    if calls[0] == "step":
        return "step is called before backward"
    if empty[0]:
        return "there is no slope left when step is called"
    return IN_ORDER if calls == ["backward", "step"] else " and ".join(calls)


def loss_of(train_step, x, y):
    """The result of a step with another loss function: the mean of the distances."""
    model, loss_fn, optimizer, x, y = model_of(x, y)
    return float(train_step(model, flow.nn.L1Loss(), optimizer, x, y))


def losses(train_step, x, y, steps):
    """The result of each call, as a number."""
    model, loss_fn, optimizer, x, y = model_of(x, y)
    return [float(train_step(model, loss_fn, optimizer, x, y)) for _ in range(steps)]


def kind(train_step, x, y):
    result = train_step(*model_of(x, y))
    return "float" if isinstance(result, Real) else type(result).__name__


def reference(x, y, steps):
    """(weights after the steps, the last slope of w, the losses), by NumPy in float64."""
    x, y, w, b, slope, found = np.asarray(x, np.float64), np.asarray(y, np.float64), 0.5, 0.0, 0.0, []
    for _ in range(steps):
        error = w * x + b - y
        found.append(float(np.mean(error**2)))
        slope = float(np.mean(2 * error * x))
        w, b = w - RATE * slope, b - RATE * float(np.mean(2 * error))
    return [w, b], slope, found


@exercise.cases
def cases(rng):
    x, y = [[1.0], [2.0]], [[2.0], [3.0]]
    data = "x = [1 2], y = [2 3], the line at w = 0.5, b = 0"
    yield case(x, y, 1, run=weights, expected=reference(x, y, 1)[0], text=f"w and b after 1 step; {data}")
    yield case(x, y, 1, run=slopes, expected=reference(x, y, 1)[1], text=f"the slope of w that step 1 uses; {data}")
    yield case(x, y, run=what_happens, expected=IN_ORDER, text="what is called, and in which order")
    yield case(x, y, 2, run=weights, expected=reference(x, y, 2)[0], text=f"w and b after 2 steps; {data}")
    yield case(x, y, 2, run=slopes, expected=reference(x, y, 2)[1], text=f"the slope of w that step 2 uses; {data}")
    yield case(x, y, 1, True, run=weights, expected=reference(x, y, 1)[0],
               text="w and b after 1 step, where backward ran once before it")
    yield case(x, y, run=kind, expected="float", text="the type of what train_step returns")
    yield case(x, y, 4, run=losses, expected=reference(x, y, 4)[2], text=f"what 4 steps return; {data}")
    distances = np.abs(0.5 * np.asarray(x) - np.asarray(y))
    yield case(x, y, run=loss_of, expected=float(distances.mean()),
               text="what a step returns if loss_fn is nn.L1Loss(), the mean distance")
    x, y = rng.uniform(-1, 1, (6, 1)).round(2).tolist(), rng.uniform(-1, 1, (6, 1)).round(2).tolist()
    yield case(x, y, 5, run=weights, expected=reference(x, y, 5)[0], hidden=True)
    yield case(x, y, 5, run=losses, expected=reference(x, y, 5)[2], hidden=True)
