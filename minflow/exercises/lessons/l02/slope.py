"""02.1 slope: the rise per unit, found by nudging."""

import math

from ...definition import Exercise, case

exercise = Exercise(
    "02.1", "slope", kind="write", level="warm-up", tolerance=(1e-6, 1e-6),
    question="How steep is a curve at one place?",
    hint="Walk from x - h to x + h: how much does f rise, and how far do you walk?",
    fact="If you look to both sides, the error shrinks with h*h, not with h: that is why h may be large.",
    sibling="A path is 2.0 m high at 99 m and 2.6 m high at 101 m. Between the two it rises by 2.6 - 2.0 = 0.6 m over "
            "a distance of 101 - 99 = 2 m. Its slope at 100 m is about 0.6 / 2 = 0.3: a rise *per* meter.",
)


@exercise.solution
def slope(f, x, h=1e-3):
    # how much f rises from one side to the other
    rise = f(x + h) - f(x - h)
    # and how far apart the two sides are
    return rise / (2 * h)


@exercise.also_right
def slope(f, x, h=1e-3):
    left, right = x - h, x + h
    return (f(right) - f(left)) / (right - left)


@exercise.also_right
def slope(f, x, h=1e-3):
    heights = [f(x + side * h) for side in (-1, 1)]
    return (heights[1] - heights[0]) / h / 2


@exercise.also_right
def slope(f, x, h=1e-3):
    """The mean of the slopes to the right and to the left."""
    right, left = (f(x + h) - f(x)) / h, (f(x) - f(x - h)) / h
    return (right + left) / 2


@exercise.wrong("one side",
                "The error is about as large as h. Do you look to both sides of x?",
                "From x to x + h is one side. Walk from x - h to x + h.")
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x)) / h


@exercise.wrong("half the way",
                "Twice too much. How far apart are your two places?",
                "From x - h to x + h the way is h + h long.")
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x - h)) / h


@exercise.wrong("no brackets",
                "Python divides before it subtracts: only the second value is divided.",
                "Put the whole rise in brackets: `(f(x + h) - f(x - h))`.")
def slope(f, x, h=1e-3):
    return f(x + h) - f(x - h) / (2 * h)


@exercise.wrong("no brackets at all",
                "Python divides and multiplies before it subtracts. What belongs together?",
                "Two pairs of brackets: one around the whole rise, one around the whole way.")
def slope(f, x, h=1e-3):
    return f(x + h) - f(x - h) / 2 * h


@exercise.wrong("by 2 alone",
                "You divide the rise by 2. How far apart are your two places?",
                "The way from x - h to x + h is 2 * h, and h is small.")
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x - h)) / 2


@exercise.wrong("one side, half",
                "You look to the right alone, but divide by the distance of *both* sides. Which two places?",
                "From x - h to x + h the distance is 2 * h.")
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x)) / (2 * h)


@exercise.wrong("left side",
                "You look to the left alone, and the error is about as large as h. Look to both sides.",
                "From x - h to x is one side. Walk from x - h to x + h.")
def slope(f, x, h=1e-3):
    return (f(x) - f(x - h)) / h


@exercise.wrong("size alone",
                "A slope may be below 0, where the curve falls. Where do you lose the sign?",
                "Leave out `abs`: right minus left is below 0 where f falls.")
def slope(f, x, h=1e-3):
    return abs(f(x + h) - f(x - h)) / (2 * h)


@exercise.wrong("turned",
                "Right size, wrong sign. A rise is right minus left.",
                "A curve that goes up to the right has a slope above 0: see the first case.")
def slope(f, x, h=1e-3):
    return (f(x - h) - f(x + h)) / (2 * h)


@exercise.wrong("times h",
                "That is the rise times the way. A slope is the rise *per* unit of x.",
                "Divide the rise by the distance; do not multiply.")
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x - h)) * h


@exercise.wrong("brackets",
                "Python divides from left to right: `a / 2 * h` divides by 2 and then multiplies by h.",
                "Divide by the whole distance: `/ (2 * h)`.")
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x - h)) / 2 * h


@exercise.wrong("rise only",
                "That is how much f rises. How much is it *per* unit of x?",
                "Divide the rise by how far apart your two places are.")
def slope(f, x, h=1e-3):
    return f(x + h) - f(x - h)


OWN_STEP = ("You nudge by a step of your own. The answer depends on h: use the one that is given.",
            "The function is called with h=0.1 in one case, and one far too small loses digits to rounding.")


def by_own_step(own):
    return lambda f, x, h=1e-3: (f(x + own) - f(x - own)) / (2 * own)


exercise.wrong("own h", *OWN_STEP)(by_own_step(1e-9))
exercise.wrong("own h of 0.01", *OWN_STEP)(by_own_step(0.01))
exercise.wrong("own h of 0.1", *OWN_STEP)(by_own_step(0.1))
exercise.wrong("own h of 0.5", *OWN_STEP)(by_own_step(0.5))


@exercise.wrong("the slope of x**2",
                "2 * x is the slope of x**2 alone. Here f is any function: ask f itself.",
                "The slope comes from two calls of f, at x - h and at x + h.")
def slope(f, x, h=1e-3):
    return 2 * x


@exercise.wrong("the example",
                "6 is the answer for one example. What is it for another f, or at another x?",
                "The slope comes from two calls of f, at x - h and at x + h.")
def slope(f, x, h=1e-3):
    return 6.0


@exercise.wrong("height by place",
                "You divide a height by its place. A slope compares the heights at *two* places.",
                "The slope of a flat curve is 0, however high it is: see the first case.")
def slope(f, x, h=1e-3):
    return f(x) / x


@exercise.wrong("sum of heights",
                "You add the two heights. A rise is their difference.",
                "A curve that is 7 everywhere does not rise: 7 - 7 is 0, 7 + 7 is not.")
def slope(f, x, h=1e-3):
    return (f(x + h) + f(x - h)) / (2 * h)


@exercise.wrong("a share of x",
                "You nudge by a share of x: at x = 3 that is three times as far. Which two places are asked for?",
                "The places are x - h and x + h.")
def slope(f, x, h=1e-3):
    return (f(x * (1 + h)) - f(x * (1 - h))) / (2 * h)


@exercise.wrong("f times a number",
                "`f * (x + h)` is a product. How do you call the function f?",
                "`f(x + h)` is the height at x + h.")
def slope(f, x, h=1e-3):
    return (f * (x + h) - f * (x - h)) / (2 * h)


@exercise.wrong("whole division",
                "`//` cuts off the fraction. A slope may be 0.3 as well.",
                "`/` divides, `//` divides and rounds down.")
def slope(f, x, h=1e-3):
    return (f(x + h) - f(x - h)) // (2 * h)


ROUNDED = ("You round the slope. Nothing asks for that, and the digits are lost.",
           "Return the quotient as it is. Rounding is for printing.")


def rounded(digits):
    return lambda f, x, h=1e-3: round((f(x + h) - f(x - h)) / (2 * h), digits)


exercise.wrong("rounded", *ROUNDED)(rounded(0))
exercise.wrong("rounded to one digit", *ROUNDED)(rounded(1))
exercise.wrong("rounded to two digits", *ROUNDED)(rounded(2))
exercise.wrong("rounded to three digits", *ROUNDED)(rounded(3))


@exercise.wrong("half a nudge",
                "You go only h / 2 to each side. Which two places are asked for?",
                "From x - h to x + h the distance is 2 * h.")
def slope(f, x, h=1e-3):
    return (f(x + h / 2) - f(x - h / 2)) / h


@exercise.wrong("two nudges",
                "You go 2 * h to each side. Which two places are asked for?",
                "From x - h to x + h the distance is 2 * h.")
def slope(f, x, h=1e-3):
    return (f(x + 2 * h) - f(x - 2 * h)) / (2 * h)


@exercise.wrong("two nudges and their distance",
                "You go 2 * h to each side. Which two places are asked for?",
                "From x - h to x + h the distance is 2 * h.")
def slope(f, x, h=1e-3):
    return (f(x + 2 * h) - f(x - 2 * h)) / (4 * h)


@exercise.wrong("the height nudged",
                "You add h to the height. Nudge the *place*, and ask f there.",
                "`f(x + h)` is the height a little to the right, `f(x) + h` is not.")
def slope(f, x, h=1e-3):
    return (f(x) + h - (f(x) - h)) / (2 * h)


@exercise.wrong("one place",
                "Both heights are taken at the same place, so they do not differ. Which two places are asked for?",
                "One is to the left, x - h, and one to the right, x + h.")
def slope(f, x, h=1e-3):
    return 0.0


@exercise.wrong("upside down",
                "You divide the distance by the rise. A slope is how much f rises *per* unit of x.",
                "A flat curve rises by 0. Its slope is 0 divided by the distance.")
def slope(f, x, h=1e-3):
    return (2 * h) / (f(x + h) - f(x - h))


def square(x):
    return x**2


def cube(x):
    return x**3


def flat(x):
    return 7.0


def calls(slope, f, x):
    """Is f called two to four times?"""
    asked = []
    slope(lambda place: asked.append(place) or f(place), x)
    return 2 <= len(asked) <= 4


@exercise.cases
def cases(rng):
    yield case(flat, 1.0, text="f = 7 everywhere, x = 1")
    yield case(square, 3.0, text="f = x**2, x = 3")
    yield case(square, -1.0, text="f = x**2, x = -1")
    yield case(cube, 1.0, 0.1, text="f = x**3, x = 1, h = 0.1")
    yield case(math.sin, 0.5, text="f = sin, x = 0.5")
    yield case(square, 3.0, run=calls, text="is f called two to four times?")
    yield case(cube, float(rng.uniform(1, 2)), 0.25, hidden=True)
    yield case(math.exp, float(rng.uniform(-1, 1)), hidden=True)
