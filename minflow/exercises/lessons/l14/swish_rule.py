"""14.1 swish_rule: the gradient of a new operation."""

import math

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "14.1", "swish_rule", kind="write", level="core", answer="rule", tolerance=(1e-9, 1e-9),
    question="What is the gradient of an operation that is new?",
    hint="Put an x into the formula, nudge it, and compare with your slope. Where is the first x at which they differ?",
    fact="Swish is used in many networks today, also under the name SiLU. Its slope at 0 is 1/2, and far to the right "
         "it is 1: a ReLU with a round corner.",
    sibling="The same for x * tanh(x). It is a product of x and of tanh(x). The slope of a product is: slope of one "
            "times the other, plus one times the slope of the other. That of x is 1, that of tanh is 1 - tanh(x)**2. "
            "So it is tanh(x) + x * (1 - tanh(x)**2), and the rule gives g times that.",
)


@exercise.solution
def rule(g, x):
    s = x.sigmoid()
    # x is in the product twice: as it is, and inside the sigmoid
    slope = s + x * s * (1 - s)
    return g * slope


@exercise.also_right
def rule(g, x):
    out = x * x.sigmoid()
    return g * out + g * x.sigmoid() * (1 - out)


@exercise.also_right
def rule(g, x):
    half = 0.5 * (1 + (0.5 * x).tanh())
    return g * half * (1 + x * (1 - half))


@exercise.wrong("without g",
                "That works only where g is 1. g, which comes back from the result, must go on through your rule.",
                "Multiply along the way: the slope of your operation, times g.")
def rule(g, x):
    s = x.sigmoid()
    return s + x * s * (1 - s)


@exercise.wrong("sigmoid alone",
                "You nudge one x and hold the other: x is in the formula twice.",
                "Two paths lead from x to the result, and where paths meet, slopes add. One goes through sigmoid.")
def rule(g, x):
    return g * x.sigmoid()


@exercise.wrong("inner half alone",
                "That is the way through the sigmoid. There is a second way: the x in front of it.",
                "Hold the sigmoid still and nudge the x in front. What is that slope? Add it.")
def rule(g, x):
    s = x.sigmoid()
    return g * x * s * (1 - s)


@exercise.wrong("slope of sigmoid without x",
                "That is the slope of the sigmoid alone. The x in front of it is missing.",
                "The operation is a product, x times sigmoid(x): two terms.")
def rule(g, x):
    s = x.sigmoid()
    return g * s * (1 - s)


@exercise.wrong("slope of sigmoid with +",
                "The slope of the sigmoid s is s * (1 - s). Nudge it at 0: it rises by 1/4 per unit.",
                "A minus, not a plus: at 0, s is 1/2 and the slope is 1/2 * 1/2.")
def rule(g, x):
    s = x.sigmoid()
    return g * (s + x * s * (1 + s))


@exercise.wrong("1 / (1 + exp(-x))",
                "exp(1000) is too large for a number, so the gradient of your gradient is not a number. The engine "
                "has a sigmoid that avoids this: `x.sigmoid()`.",
                "Do not write exp: use x.sigmoid().")
def rule(g, x):
    s = 1 / (1 + (-x).exp())
    return g * (s + x * s * (1 - s))


@exercise.wrong("exp(x) / (1 + exp(x))",
                "exp(1000) is too large for a number, and infinite divided by infinite is not one. The engine has a "
                "sigmoid that avoids this: `x.sigmoid()`.",
                "Do not write exp: use x.sigmoid().")
def rule(g, x):
    s = x.exp() / (1 + x.exp())
    return g * (s + x * s * (1 - s))


@exercise.wrong("off the tape",
                "The gradient is right, but it has no gradient itself: it was computed from a copy off the tape.",
                "Write the rule in the engine's operations on x itself: no detach, numpy or item.")
def rule(g, x):
    s = x.detach().sigmoid()
    return g * (s + x.detach() * s * (1 - s)) + 0 * x


@exercise.wrong("new numbers",
                "The gradient is right, but it has no gradient itself: new numbers are not on the tape.",
                "Write the rule in the engine's operations on x itself: no detach, numpy or item.")
def rule(g, x):
    return flow.tensor(expected_gradient(g.numpy(), x.detach().numpy()))


@exercise.wrong("value in place of slope",
                "That is the operation itself, times g. The rule needs its slope, times g.",
                "Two ways lead from x to the result: the x in front, and the one inside the sigmoid.")
def rule(g, x):
    return g * x * x.sigmoid()


@exercise.wrong("operation itself",
                "That is the operation itself, and g is not in it. The rule needs the slope, times g.",
                "Two ways lead from x to the result: the x in front, and the one inside the sigmoid.")
def rule(g, x):
    return x * x.sigmoid()


@exercise.wrong("g times the first term only",
                "g is multiplied by the first term only: the product comes before the sum.",
                "Put the whole slope in brackets.")
def rule(g, x):
    s = x.sigmoid()
    return g * s + x * s * (1 - s)


@exercise.wrong("terms subtracted",
                "Two ways lead from x to the result. Do their slopes subtract where they meet?",
                "They add.")
def rule(g, x):
    s = x.sigmoid()
    return g * (s - x * s * (1 - s))


@exercise.wrong("second term without x",
                "The way through the sigmoid is too steep. Hold the x in front still: what multiplies the sigmoid?",
                "The slope of the sigmoid, times the x in front.")
def rule(g, x):
    s = x.sigmoid()
    return g * (s + s * (1 - s))


@exercise.wrong("x times the slope",
                "There is one x too many: at 0 your slope is 0. Nudge x there: does the result stay as it is?",
                "The slope is a sum of two terms, and x is in one of them.")
def rule(g, x):
    s = x.sigmoid()
    return g * x * (s + x * s * (1 - s))


@exercise.wrong("x for the sigmoid",
                "`s * (1 - s)` is right if s is the sigmoid of x. In yours it is x itself.",
                "`s = x.sigmoid()`")
def rule(g, x):
    return g * x * (1 - x)


@exercise.wrong("slope of tanh",
                "That is the rule of tanh. The operation here is x times its sigmoid.",
                "The slope of the sigmoid s is `s * (1 - s)`.")
def rule(g, x):
    t = x.tanh()
    return g * (1 - t * t)


@exercise.wrong("g added",
                "You add g. What does a slope do with what comes back from the result?",
                "Multiply along the way: the slope of your operation, times g.")
def rule(g, x):
    s = x.sigmoid()
    return g + s + x * s * (1 - s)


@exercise.wrong("summed up",
                "You return one number. Each x has a slope of its own: the gradient has the shape of x.",
                "No `sum`.")
def rule(g, x):
    s = x.sigmoid()
    return (g * (s + x * s * (1 - s))).sum()


@exercise.wrong("an array",
                "The numbers are right, but they are an array of NumPy. The tape needs a tensor.",
                "Write the rule in the engine's operations on x itself: no numpy.")
def rule(g, x):
    return expected_gradient(g.numpy(), x.detach().numpy())


@exercise.wrong("two gradients",
                "You return two things. There is one x, and both ways lead to it.",
                "Where ways meet, slopes add: return the sum.")
def rule(g, x):
    s = x.sigmoid()
    return g * s, g * x * s * (1 - s)


@exercise.wrong("nudges",
                "That is nearly right: a nudge gives a slope to a few digits only. A rule is exact.",
                "The slope of a product: slope of one times the other, plus one times the slope of the other.")
def rule(g, x):
    h = 1e-4
    return g * (((x + h) * (x + h).sigmoid() - x * x.sigmoid()) / h)


@exercise.wrong("sigmoid off the tape",
                "The gradient is right, but the gradient of your gradient is not: the sigmoid is off the tape.",
                "No `detach`: then the way through the sigmoid counts too.")
def rule(g, x):
    s = x.sigmoid().detach()
    return g * (s + x * s * (1 - s))


ONE = ("x has several elements here. `math.exp`, `float` and `.item()` take one number.",
       "`x.sigmoid()` works on all elements at once.")


@exercise.wrong("exp of math", *ONE)
def rule(g, x):
    s = 1 / (1 + math.exp(-x))
    return g * (s + x * s * (1 - s))


@exercise.wrong("a single number", *ONE)
def rule(g, x):
    s = x.sigmoid().item()
    return g * (s + x * s * (1 - s))


def sigmoid(x):
    with np.errstate(over="ignore"):
        return np.where(x < 0, np.exp(np.minimum(x, 0)) / (1 + np.exp(np.minimum(x, 0))), 1 / (1 + np.exp(-abs(x))))


def expected_gradient(g, x):
    """Expected result of the rule, by NumPy."""
    s = sigmoid(x)
    return g * (s + x * s * (1 - s))


def gradient_case(g, x, hidden=False):
    g, x = np.asarray(g, float), np.asarray(x, float)
    return case(flow.tensor(g), flow.tensor(x), expected=expected_gradient(g, x), hidden=hidden,
                text="" if hidden else f"g = {g.tolist()}, x = {x.tolist()}")


def second_gradient(rule, g, x):
    """The gradient of the sum of the gradient."""
    x.requires_grad_()
    rule(g, x).sum().backward()
    return x.grad


def second_gradient_case(x, text, hidden=False):
    x = np.asarray(x, float)
    s = sigmoid(x)
    slope = s * (1 - s)
    return case(flow.ones(len(x), dtype=flow.float64), flow.tensor(x), run=second_gradient, text=text, hidden=hidden,
                expected=2 * slope + x * slope * (1 - 2 * s))


@exercise.cases
def cases(rng):
    yield gradient_case([1.0], [0.0])
    yield gradient_case([1.0, 1.0], [1.0, -2.0])
    yield gradient_case([10.0, -1.0], [1.0, -2.0])
    yield gradient_case([[1.0, 2.0], [0.0, 3.0]], [[0.5, 1.5], [3.0, -0.5]])
    yield gradient_case([1.0, 1.0], [-1000.0, 1000.0])
    yield second_gradient_case([0.0, 1.0], "the gradient of your gradient, g = [1, 1], x = [0, 1]")
    yield second_gradient_case([-1000.0, 1000.0], "the gradient of your gradient, g = [1, 1], x = [-1000, 1000]")
    yield gradient_case(rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), hidden=True)
    yield second_gradient_case(rng.normal(size=5), "", hidden=True)
