"""02.3 fit_line: walk down the mean squared error of a line."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "02.3", "fit_line", kind="write", level="core", tolerance=(1e-4, 1e-4),
    question="Can a line find its best position by itself?",
    hint="Do the first step on paper: at w = 0, b = 0 the error of each point is 0 - y. What are the two slopes?",
    fact="The two slopes at 0, 0 are only means over the points. The best line could even be found in one go, by "
         "solving two equations. A network cannot; walking downhill works for both.",
    sibling="One knob: find the number c that is nearest to 1, 2 and 6. The loss is the mean of (c - y)**2. At c = 0 "
            "the errors c - y are -1, -2, -6. The slope is 2 * mean(c - y) = 2 * (-3) = -6. It is below 0, so c must "
            "grow: with rate 0.1, c = 0 - 0.1 * (-6) = 0.6. The next step starts at 0.6, with errors 0.6 - y.",
)


@exercise.solution
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        # how far is the line above each point?
        error = w * x + b - y
        # the two slopes of the mean of error**2, at one and the same place
        slope_w, slope_b = (2 * error * x).mean().item(), (2 * error).mean().item()
        # a step downhill
        w, b = w - rate * slope_w, b - rate * slope_b
    return w, b


@exercise.also_right
def fit_line(x, y, rate, steps):
    def loss(w, b):
        return sum((w * xi + b - yi) ** 2 for xi, yi in zip(xs, ys)) / len(xs)

    xs, ys = [float(xi) for xi in x], [float(yi) for yi in y]
    w, b, h = 0.0, 0.0, 1e-3
    for _ in range(steps):
        slope_w = (loss(w + h, b) - loss(w - h, b)) / (2 * h)
        slope_b = (loss(w, b + h) - loss(w, b - h)) / (2 * h)
        w -= rate * slope_w
        b -= rate * slope_b
    return w, b


@exercise.also_right
def fit_line(x, y, rate, steps):
    columns = flow.stack([x, flow.ones_like(x)], 1)
    knobs = flow.zeros(2)
    for _ in range(steps):
        knobs = knobs - rate * 2 * columns.T @ (columns @ knobs - y) / len(x)
    return knobs[0].item(), knobs[1].item()


@exercise.wrong("climbs",
                "Your line moves away from the points: you climb. To go downhill, move *against* the slope.",
                "Either the sign of your step is wrong, or the sign of your error. The error is line minus point.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        error = w * x + b - y
        w, b = w + rate * 2 * (error * x).mean(), b + rate * 2 * error.mean()
    return w, b


def walk(x, y, rate, steps, start=(0.0, 0.0), error_of=None, moves=(1, 1)):
    """w and b after a walk. error_of: `error_of(w, b, x, y)` of each point; moves: factors of the steps of w and b."""
    w, b = start
    for step in range(steps):
        error = error_of(w, b, x, y) if error_of else w * x + b - y
        slope_w, slope_b = 2 * (error * x).mean().item(), 2 * error.mean().item()
        w, b = w - moves[0] * rate * slope_w, b - moves[1] * rate * slope_b
    return w, b


@exercise.wrong("error without brackets",
                "In `y - w * x + b` the b is added to y. Is it added in the line too?",
                "The error is line minus point, `w * x + b - y`. The other way round it needs brackets: "
                "`y - (w * x + b)`, and the step changes its sign.")
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, error_of=lambda w, b, x, y: y - w * x + b)


@exercise.wrong("error without brackets, uphill",
                "In `y - w * x + b` the b is added to y. Is it added in the line too?",
                "The error is line minus point, `w * x + b - y`. The other way round it needs brackets: "
                "`y - (w * x + b)`, and the step changes its sign.")
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, error_of=lambda w, b, x, y: y - w * x + b, moves=(-1, -1))


@exercise.wrong("line plus point",
                "You add the point to the line. An error says how far they are *apart*.",
                "The error is line minus point: `w * x + b - y`.")
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, error_of=lambda w, b, x, y: w * x + b + y)


@exercise.wrong("line without b",
                "b moves, but it does not move your line. What is the error of a point?",
                "The line is at `w * x + b` at each place x.")
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, error_of=lambda w, b, x, y: w * x - y)


@exercise.wrong("squared error in the slope",
                "You take the square of the error where the slope of the square belongs. What is the slope of e**2?",
                "The slope of e**2 is 2*e: the formula has `2 * error`, without a square.")
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, error_of=lambda w, b, x, y: (w * x + b - y)**2)


@exercise.wrong("only w moves",
                "b stays where it is. How many knobs has the line?",
                "In each step both knobs move: w by its slope, b by its own.")
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, moves=(1, 0))


@exercise.wrong("only b moves",
                "w stays where it is. How many knobs has the line?",
                "In each step both knobs move: w by its slope, b by its own.")
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, moves=(0, 1))


@exercise.wrong("w climbs",
                "b goes downhill, and w goes uphill. Compare the signs of the two steps.",
                "Both knobs move *against* their slope: minus rate times slope.")
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, moves=(-1, 1))


@exercise.wrong("b climbs",
                "w goes downhill, and b goes uphill. Compare the signs of the two steps.",
                "Both knobs move *against* their slope: minus rate times slope.")
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, moves=(1, -1))


COUNT = ("Count your steps. How many does the call ask for?",
         "`for step in range(steps)` takes `steps` steps: range(3) is 0, 1, 2.")


@exercise.wrong("a step too many", *COUNT)
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps + 1)


@exercise.wrong("a step too few", *COUNT)
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps - 1)


@exercise.wrong("always a hundred steps", *COUNT)
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, 100)


@exercise.wrong("always 0.2",
                "Your rate is always 0.2. Which rate does the call ask for?",
                "The rate is an argument of the function: use its name, not a number.")
def fit_line(x, y, rate, steps):
    return walk(x, y, 0.2, steps)


@exercise.wrong("always 0.1",
                "Your rate is always 0.1. Which rate does the call ask for?",
                "The rate is an argument of the function: use its name, not a number.")
def fit_line(x, y, rate, steps):
    return walk(x, y, 0.1, steps)


START = ("Where does your walk start? The task says at which w and b.",
         "Both knobs are 0 before the first step.")


@exercise.wrong("starts at w = 1", *START)
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, start=(1.0, 0.0))


@exercise.wrong("starts at b = 1", *START)
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, start=(0.0, 1.0))


@exercise.wrong("starts at 1, 1", *START)
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, start=(1.0, 1.0))


@exercise.wrong("starts at w = 1, b = -1", *START)
def fit_line(x, y, rate, steps):
    return walk(x, y, rate, steps, start=(1.0, -1.0))


@exercise.wrong("no walk",
                "You compute the best line in one go. Here the line takes `steps` steps downhill, and stops there.",
                "A loop over the steps: in each one, the two slopes at the current w and b, then a step against them.")
def fit_line(x, y, rate, steps):
    w = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean())**2).sum()
    return w, y.mean() - w * x.mean()


@exercise.wrong("the notebook's line",
                "(3, -1) is the line of the notebook's points. Which points does your function get?",
                "Compute w and b from `x` and `y`, step by step.")
def fit_line(x, y, rate, steps):
    return 3.0, -1.0


@exercise.wrong("the notebook's points",
                "The walk is right for the points of the notebook. Which points does your function get?",
                "`loss` and `slopes` above read the notebook's x and y. Compute the error inside your function.")
def fit_line(x, y, rate, steps):
    return walk(*(flow.from_numpy(one) for one in flow.data.points("line", n=20)), rate, steps)


@exercise.wrong("slopes swapped",
                "w moves by the slope of b, and b by that of w. Which slope has the factor x?",
                "A nudge of w moves each error by x times as much, so the slope of *w* has the factor x.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        error = w * x + b - y
        w, b = w - rate * 2 * error.mean(), b - rate * 2 * (error * x).mean()
    return w, b


@exercise.wrong("b sees the new w",
                "Your w is right after the first step, your b is not. At which w did you compute its slope?",
                "Both slopes belong to one place. Compute both first, then move both.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        w = w - rate * 2 * ((w * x + b - y) * x).mean()
        b = b - rate * 2 * (w * x + b - y).mean()
    return w, b


@exercise.wrong("sum for mean",
                "It is right with one point. With n points the step is n times too large. Sum or mean?",
                "The loss is the *mean* of the squared errors, so both slopes are means as well.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        error = w * x + b - y
        w, b = w - rate * 2 * (error * x).sum(), b - rate * 2 * error.sum()
    return w, b


@exercise.wrong("half the pace",
                "Your steps are half as long as they should be. What is the slope of e**2?",
                "Nudge it: 3.01**2 is 9.0601 and 2.99**2 is 8.9401. The slope of e**2 at e = 3 is 6, which is 2*e.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        error = w * x + b - y
        w, b = w - rate * (error * x).mean(), b - rate * error.mean()
    return w, b


@exercise.wrong("starts again",
                "However many steps you take, you end where the first one ends. Which lines are inside your loop?",
                "`w, b = 0, 0` belongs above the loop, `return w, b` below it. Neither belongs inside.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        w, b = 0.0, 0.0
        error = w * x + b - y
        w, b = w - rate * 2 * (error * x).mean(), b - rate * 2 * error.mean()
    return w, b


@exercise.wrong("rate twice",
                "Your steps are too small by the factor `rate`. How often do you multiply by it?",
                "0.1 * 0.1 is 0.01. Multiply the slope by the rate once, where you move.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        error = w * x + b - y
        w, b = w - rate * rate * 2 * (error * x).mean(), b - rate * rate * 2 * error.mean()
    return w, b


@exercise.wrong("w like b",
                "w and b move by the same amount. Does a nudge of w lift each point by the same amount?",
                "A nudge of w lifts the line by x times as much. So the slope of w is the mean of 2 * error * x.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        error = w * x + b - y
        w, b = w - rate * 2 * error.mean(), b - rate * 2 * error.mean()
    return w, b


@exercise.wrong("point by point",
                "You move after each point. Here a step looks at *all* points first, and moves once.",
                "The slopes are means over the points: finish the mean, then move w and b.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        for xi, yi in zip(x.tolist(), y.tolist()):
            error = w * xi + b - yi
            w, b = w - rate * 2 * error * xi, b - rate * 2 * error
    return w, b


@exercise.wrong("b and w",
                "These are the right numbers, in the wrong order. Return (w, b).",
                "`return w, b`: first how steep the line is, then how high it is at x = 0.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        error = w * x + b - y
        w, b = w - rate * 2 * (error * x).mean(), b - rate * 2 * error.mean()
    return b, w


@exercise.wrong("old error",
                "The first step is right, and each later one repeats it. At which w and b is your error?",
                "The line moves, so its errors change. Compute `error` inside the loop.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    error = w * x + b - y
    for step in range(steps):
        w, b = w - rate * 2 * (error * x).mean(), b - rate * 2 * error.mean()
    return w, b


@exercise.wrong("no rate",
                "Your steps are as long as the slope itself. What is the rate for?",
                "A step is `rate` times the slope, against it.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        error = w * x + b - y
        w, b = w - 2 * (error * x).mean(), b - 2 * error.mean()
    return w, b


@exercise.wrong("no mean",
                "Each point has got a line of its own: your w has one number for each point.",
                "A slope of the loss is one number, a mean over the points: `.mean()`.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        error = w * x + b - y
        w, b = w - rate * 2 * error * x, b - rate * 2 * error
    return w, b


@exercise.wrong("no mean, half the pace",
                "Each point has got a line of its own. And what is the slope of e**2?",
                "The two slopes are `(2 * error * x).mean()` and `(2 * error).mean()`.")
def fit_line(x, y, rate, steps):
    w, b = 0.0, 0.0
    for step in range(steps):
        error = w * x + b - y
        w, b = w - rate * error * x, b - rate * error
    return w, b


def reference(x, y, rate, steps):
    """In float64 by NumPy, so that no operation of minflow is judged by itself."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    w = b = 0.0
    for _ in range(steps):
        error = w * x + b - y
        w, b = w - rate * 2 * float(np.mean(error * x)), b - rate * 2 * float(np.mean(error))
    return w, b


def fit_case(x, y, rate, steps, text="", hidden=False):
    if not text:
        xs, ys = (" ".join(f"{value:g}" for value in values) for values in (x, y))
        text = f"x = [{xs}], y = [{ys}], rate = {rate:g}, steps = {steps}"
    return case(flow.tensor(x, dtype=flow.float32), flow.tensor(y, dtype=flow.float32), rate, steps, text=text,
                run=as_numbers, expected=reference(x, y, rate, steps), hidden=hidden)


def as_numbers(fit_line, x, y, rate, steps):
    """w and b as plain numbers, also if they are tensors."""
    result = fit_line(x, y, rate, steps)
    if not isinstance(result, tuple | list) or len(result) != 2:
        return result
    if any(getattr(one, "shape", ()) not in ((), (1,), (1, 1)) for one in result):
        return result
    return float(result[0]), float(result[1])


@exercise.cases
def cases(rng):
    yield fit_case([2], [1], 0.1, 1)
    yield fit_case([0, 1, 2], [1, 3, 5], 0.1, 1)
    yield fit_case([0, 1, 2], [1, 3, 5], 0.1, 2)
    yield fit_case([0, 1, 2, 3], [-1, 2, 5, 8], 0.1, 200)
    yield fit_case([-1, 0, 1], [4, 4, 4], 0.25, 3)
    x = rng.uniform(-1, 1, 20)
    yield fit_case(x, 2 * x - 1 + rng.normal(0, 0.1, 20), 0.3, 50,
                   "20 points near the line 2*x - 1, rate 0.3, 50 steps")
    yield fit_case(rng.uniform(-1, 1, 7), rng.uniform(-1, 1, 7), 0.2, 5, hidden=True)
    yield fit_case(rng.uniform(0, 2, 50), rng.uniform(-1, 1, 50), 0.1, 30, hidden=True)
