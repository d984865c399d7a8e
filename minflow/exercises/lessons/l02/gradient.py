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


def slopes_at(f, w, h):
    """The right answer, for wrong ones to begin with."""
    places = range(len(w))
    nudged = [[[*w[:i], w[i] + nudge, *w[i + 1:]] for nudge in (h, -h)] for i in places]
    return [(f(right) - f(left)) / (2 * h) for right, left in nudged]


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


@exercise.wrong("nudges stay in both lists",
                "Your first entry is right. In each later one all knobs up to it are nudged together.",
                "Make both lists inside the loop, as fresh copies of w.")
def gradient(f, w, h=1e-3):
    right, left, slopes = list(w), list(w), []
    for i in range(len(w)):
        right[i] += h
        left[i] -= h
        slopes.append((f(right) - f(left)) / (2 * h))
    return slopes


@exercise.wrong("the caller's knobs",
                "Your nudges stay in the caller's own list: after your call its knobs are not what they were. Nudge a "
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
                "Both nudges happen to the same list, so they cancel. Does `new = w` make a new list?",
                "`new = w` is a second name for the same list. `new = list(w)` is a new one.")
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


@exercise.wrong("turned",
                "Right size, wrong sign. A rise is right minus left.",
                "If f grows with a knob, the slope of this knob is above 0.")
def gradient(f, w, h=1e-3):
    return [-one for one in slopes_at(f, w, h)]


@exercise.wrong("rise only",
                "That is how much f rises. How much is it *per* unit of the knob?",
                "Divide each rise by how far apart your two places are.")
def gradient(f, w, h=1e-3):
    return [one * 2 * h for one in slopes_at(f, w, h)]


@exercise.wrong("in reverse",
                "The slopes are right, but in reverse. The first entry belongs to w[0].",
                "`slopes.append(...)` adds at the end, `slopes.insert(0, ...)` at the beginning.")
def gradient(f, w, h=1e-3):
    return slopes_at(f, w, h)[::-1]


@exercise.wrong("without the last",
                "The slope of the last knob is missing. How often does your loop run?",
                "`range(len(w))` already ends at the last place, `range(len(w) - 1)` ends before it.")
def gradient(f, w, h=1e-3):
    return slopes_at(f, w, h)[:-1]


@exercise.wrong("without the first",
                "The slope of the first knob is missing. At which place does your loop begin?",
                "The first place of a list is 0. `range(1, ...)` leaves it out.")
def gradient(f, w, h=1e-3):
    return slopes_at(f, w, h)[1:]


@exercise.wrong("a place too far",
                "Your code asks the list for a place that it does not have. How many knobs are there in this case?",
                "The places are 0 to len(w) - 1, and f reads all of them: `for i in range(len(w))`.")
def gradient(f, w, h=1e-3):
    return slopes_at(f, [*w, 0.0], h)[len(w) + 1]


@exercise.wrong("two knobs",
                "You write down two knobs. There may be one, or six: how does your code find out?",
                "A loop over `range(len(w))` goes through all knobs, however many there are.")
def gradient(f, w, h=1e-3):
    return slopes_at(f, [w[0], w[1]], h)


@exercise.wrong("one knob in a list",
                "f reads several knobs, and you pass it a list with one. Which knobs does it need?",
                "Copy the whole list, and nudge one place of the copy.")
def gradient(f, w, h=1e-3):
    return [(f([knob + h]) - f([knob - h])) / (2 * h) for knob in w]


@exercise.wrong("knobs as places",
                "`for i in w` goes through the knobs themselves. Which numbers are their places?",
                "`for i in range(len(w))` goes through 0, 1, 2: w[i] is the knob at place i.")
def gradient(f, w, h=1e-3):
    return [w[knob] for knob in w]


@exercise.wrong("a list plus a number",
                "`+` joins two lists. A list plus a number is an error: nudge one number *in* a list.",
                "`right = list(w)` makes a copy, `right[i] += h` nudges one place of it.")
def gradient(f, w, h=1e-3):
    return (f(w + h) - f(w - h)) / (2 * h)


@exercise.wrong("a list minus a list",
                "Lists cannot be subtracted: only tensors can. Nudge one number *in* a list.",
                "`left = list(w)` makes a copy, `left[i] -= h` nudges one place of it.")
def gradient(f, w, h=1e-3):
    return f(w - [h] * len(w))


@exercise.wrong("the example",
                "That is the answer for one example. What is it for another f and another w?",
                "The slopes come from calls of f: two for each knob.")
def gradient(f, w, h=1e-3):
    return [1.0, 3.0]


OWN_STEP = ("You nudge by a step of your own. The answer depends on h: use the one that is given.",
            "The function is called with h=0.1 in some of the cases.")


@exercise.wrong("own h", *OWN_STEP)
def gradient(f, w, h=1e-3):
    return slopes_at(f, w, 1e-3)


@exercise.wrong("own h of 0.01", *OWN_STEP)
def gradient(f, w, h=1e-3):
    return slopes_at(f, w, 0.01)


@exercise.wrong("put back by adding",
                "You add and subtract until the knob is back, but rounding leaves a little: the list is not the same.",
                "Keep the old number in a variable and put that back. Or nudge a copy.")
def gradient(f, w, h=1e-3):
    slopes = []
    for i in range(len(w)):
        w[i] += h
        right = f(w)
        w[i] -= 2 * h
        slopes.append((right - f(w)) / (2 * h))
        w[i] += h
    return slopes


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
    """Say whether the caller's list was changed."""
    before = list(w)
    gradient(f, w, h)
    return "as it was" if w == before else f"changed: {w}"


@exercise.cases
def cases(rng):
    yield case(weighted, [3.0], text="f = w[0]**2, w = [3.0]: one knob")
    yield case(curved, [1.0, 2.0], 0.1, text="f = w[0]**3 + w[0]*w[1], w = [1.0, 2.0], h = 0.1")
    yield case(first_alone, [1.0, 1.0, 1.0], text="f = 5*w[0], w = [1.0, 1.0, 1.0]")
    yield case(product, [2.0, 3.0, 4.0], 0.1, text="f = w[0]*w[1]*w[2], w = [2.0, 3.0, 4.0], h = 0.1")
    yield case(weighted, [3, 1, 2], text="f = 1*w[0]**2 + 2*w[1]**2 + 3*w[2]**2, w = [3, 1, 2]: whole numbers")
    yield case(product, [1.9, 0.3], 0.1, run=knobs_afterwards, expected="as it was",
               text="w itself, after gradient(f, w, h=0.1) with w = [1.9, 0.3]")
    yield case(weighted, rng.uniform(1, 2, 6).tolist(), hidden=True)
    yield case(curved, rng.uniform(1, 2, 2).tolist(), hidden=True)
    yield case(product, rng.uniform(1, 2, 4).tolist(), 0.05, hidden=True)
