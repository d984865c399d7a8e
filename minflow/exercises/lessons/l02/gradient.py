"""02.2 gradient: the slope of each knob, with the others left alone."""

import numpy as np

from ...definition import Exercise, case

exercise = Exercise(
    "02.2", "gradient", kind="write", level="core", tolerance=(1e-6, 1e-6),
    question="Which way is up, when there are many knobs?",
    hint="Take the first knob alone. Which two lists do you pass to f? Only one number in each differs from w.",
    fact="For n knobs f is called 2*n times. With a million knobs that is too often: lesson 03 needs two passes.",
    sibling="A price is 3 for each apple and 2 for each pear: `price([4, 5])` is 22. Nudge the apples alone by 0.5 to "
            "both sides: `price([4.5, 5])` is 23.5 and `price([3.5, 5])` is 20.5. They differ by 3 over a distance of "
            "1, so the slope of the apples is 3. Then go back to `[4, 5]` and nudge the pears alone: 23 - 21 = 2 over "
            "a distance of 1. The gradient is `[3, 2]`.",
)


@exercise.solution
def gradient(f, w, h=1e-3):
    slopes = []
    for i in range(len(w)):
        # two copies, in which knob i alone is nudged
        right, left = list(w), list(w)
        right[i] += h
        left[i] -= h
        # the slope of this knob
        slopes.append((f(right) - f(left)) / (2 * h))
    return slopes


@exercise.also_right
def gradient(f, w, h=1e-3):
    def along(i, nudge):
        return f([knob + nudge if place == i else knob for place, knob in enumerate(w)])

    return [(along(i, h) - along(i, -h)) / (2 * h) for i in range(len(w))]


@exercise.also_right
def gradient(f, w, h=1e-3):
    w = np.array(w, dtype=float)
    slopes = np.zeros(len(w))
    for i, old in enumerate(w):
        w[i] = old + h
        slopes[i] = f(w)
        w[i] = old - h
        slopes[i] -= f(w)
        w[i] = old
    return slopes / (2 * h)


@exercise.wrong("all at once",
                "Every entry is the same number. Whose slope is it? Nudge one knob at a time.",
                "The list that f gets may differ from w in one place only, in place i.")
def gradient(f, w, h=1e-3):
    rise = f([knob + h for knob in w]) - f([knob - h for knob in w])
    return [rise / (2 * h) for knob in w]


@exercise.wrong("nudges stay",
                "Your first entry is right, the later ones are a little off. Is the first nudge undone?",
                "Put a knob back, or take a fresh copy of w, before you nudge the next one.")
def gradient(f, w, h=1e-3):
    w, slopes = list(w), []
    for i in range(len(w)):
        w[i] += h
        right = f(w)
        w[i] -= 2 * h
        slopes.append((right - f(w)) / (2 * h))
    return slopes


@exercise.wrong("the caller's knobs",
                "Your nudges stay in the caller's own list: w[0] is still nudged when it is the turn of w[1]. Nudge a "
                "copy.",
                "`list(w)` makes a new list with the same numbers. `w` alone is the caller's own list.")
def gradient(f, w, h=1e-3):
    slopes = []
    for i in range(len(w)):
        w[i] += h
        right = f(w)
        w[i] -= 2 * h
        slopes.append((right - f(w)) / (2 * h))
    return slopes


@exercise.wrong("whole numbers",
                "Your array holds integers. In it, 3 + 0.001 is 3 again.",
                "Make the array with `dtype=float`, or nudge a plain list.")
def gradient(f, w, h=1e-3):
    slopes = []
    for i in range(len(w)):
        right, left = np.array(w), np.array(w)
        right[i] = right[i] + h
        left[i] = left[i] - h
        slopes.append((f(right) - f(left)) / (2 * h))
    return slopes


@exercise.wrong("values of f",
                "These are values of f. A slope is a difference of two of them, divided by the distance.",
                "For each knob you need f at two places: a little to the right, a little to the left.")
def gradient(f, w, h=1e-3):
    values = []
    for i in range(len(w)):
        right = list(w)
        right[i] += h
        values.append(f(right))
    return values


@exercise.wrong("one side",
                "Close: the larger h is, the larger is the error. Do you look to both sides of each knob?",
                "As in 02.1: from w[i] - h to w[i] + h. The value at w itself is not needed.")
def gradient(f, w, h=1e-3):
    slopes = []
    for i in range(len(w)):
        right = list(w)
        right[i] += h
        slopes.append((f(right) - f(w)) / h)
    return slopes


@exercise.wrong("half the way",
                "Each entry is twice too large. How far apart are the two places?",
                "From w[i] - h to w[i] + h the way is h + h long.")
def gradient(f, w, h=1e-3):
    slopes = []
    for i in range(len(w)):
        right, left = list(w), list(w)
        right[i] += h
        left[i] -= h
        slopes.append((f(right) - f(left)) / h)
    return slopes


@exercise.wrong("brackets",
                "Python divides from left to right: `a / 2 * h` divides by 2 and then multiplies by h.",
                "Divide by the whole distance: `/ (2 * h)`.")
def gradient(f, w, h=1e-3):
    slopes = []
    for i in range(len(w)):
        right, left = list(w), list(w)
        right[i] += h
        left[i] -= h
        slopes.append((f(right) - f(left)) / 2 * h)
    return slopes


@exercise.wrong("the first alone",
                "One number came back. A gradient has a slope for each knob.",
                "Is your `return` inside the loop? Collect the slopes in a list first.")
def gradient(f, w, h=1e-3):
    right, left = list(w), list(w)
    right[0] += h
    left[0] -= h
    return (f(right) - f(left)) / (2 * h)


@exercise.wrong("the first, in a list",
                "Only the first slope comes back. Where is your `return`?",
                "Move `return` out of the loop: below it, as far to the left as `for`.")
def gradient(f, w, h=1e-3):
    slopes = []
    for i in range(len(w)):
        right, left = list(w), list(w)
        right[i] += h
        left[i] -= h
        slopes.append((f(right) - f(left)) / (2 * h))
        return slopes


@exercise.wrong("the last, in a list",
                "Only the last slope comes back. Where do you make the empty list?",
                "`slopes = []` belongs above the loop. Inside it, each knob starts a new list.")
def gradient(f, w, h=1e-3):
    for i in range(len(w)):
        slopes = []
        right, left = list(w), list(w)
        right[i] += h
        left[i] -= h
        slopes.append((f(right) - f(left)) / (2 * h))
    return slopes


@exercise.wrong("two names, one list",
                "Both nudges happen to the same list, so they cancel. Does `right = w` make a new list?",
                "`right = w` is a second name for the same list. `right = list(w)` is a new one.")
def gradient(f, w, h=1e-3):
    slopes = []
    for i in range(len(w)):
        right = left = w
        right[i] += h
        left[i] -= h
        slopes.append((f(right) - f(left)) / (2 * h))
    return slopes


@exercise.wrong("one knob for the list",
                "`f` takes the whole list of knobs, not one number. And a list plus a number is an error.",
                "Copy the list, nudge one number in the copy, and give f the copy.")
def gradient(f, w, h=1e-3):
    return [(f(knob + h) - f(knob - h)) / (2 * h) for knob in w]


def weighted(w):
    return sum(i * knob**2 for i, knob in enumerate(w, 1))


def product(w):
    result = 1.0
    for knob in w:
        result = result * knob
    return result


def curved(w):
    return w[0] ** 3 + w[0] * w[1]


def first_alone(w):
    return 5.0 * w[0]


def knobs_afterwards(gradient, f, w, h):
    """The caller's list after the call."""
    gradient(f, w, h)
    return w


@exercise.cases
def cases(rng):
    yield case(weighted, [3.0], text="f = w[0]**2, w = [3.0]: one knob")
    yield case(curved, [1.0, 2.0], 0.1, text="f = w[0]**3 + w[0]*w[1], w = [1.0, 2.0], h = 0.1")
    yield case(first_alone, [1.0, 1.0, 1.0], text="f = 5*w[0], w = [1.0, 1.0, 1.0]")
    yield case(product, [2.0, 3.0, 4.0], 0.1, text="f = w[0]*w[1]*w[2], w = [2.0, 3.0, 4.0], h = 0.1")
    yield case(weighted, [3, 1, 2], text="f = 1*w[0]**2 + 2*w[1]**2 + 3*w[2]**2, w = [3, 1, 2]: whole numbers")
    yield case(product, [2.0, 3.0], 0.1, run=knobs_afterwards, expected=[2.0, 3.0],
               text="w itself, after gradient(f, w, h=0.1) with w = [2.0, 3.0]")
    yield case(weighted, rng.uniform(1, 2, 6).tolist(), hidden=True)
    yield case(curved, rng.uniform(1, 2, 2).tolist(), hidden=True)
    yield case(product, rng.uniform(1, 2, 4).tolist(), 0.05, hidden=True)
