"""16.2 cheapest: choose the row of a table of products that sends the fewest bytes."""

import itertools
import math

from ...definition import Exercise, case

exercise = Exercise(
    "16.2", "cheapest", kind="write", level="core",
    question="Which of several ways to multiply sends the fewest bytes?",
    hint="The price of a row: what x costs from its way to the row's, plus what w costs. Take the lowest, and the "
         "first of equal ones.",
    fact="minflow and OneFlow choose so at every operation of a network. That is why you state how the weights and the "
         "batch are placed, and nothing else.",
    sibling="Two friends live in A and B, and may meet in A, in B or in C. The price of a place is the fare of the one "
            "plus the fare of the other: A: 0 + 4, B: 5 + 0, C: 2 + 1. They meet in C, though it is home to neither.",
)


@exercise.solution
def cheapest(rows, have, sizes, price):
    best, least = None, math.inf
    for row in rows:
        # both tensors, each from its way to the one of this row
        cost = price(have[0], row[0], sizes[0]) + price(have[1], row[1], sizes[1])
        # the first of equal ones stays
        if cost < least:
            best, least = row, cost
    return best


@exercise.also_right
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: sum(price(*move) for move in zip(have, row, sizes)))


@exercise.also_right
def cheapest(rows, have, sizes, price):
    costs = []
    for left, right in rows:
        costs.append(price(have[0], left, sizes[0]) + price(have[1], right, sizes[1]))
    return rows[costs.index(min(costs))]


@exercise.wrong("most expensive",
                "You take the row that sends the most.",
                "`min` instead of `max`, or `<` instead of `>`.")
def cheapest(rows, have, sizes, price):
    return max(rows, key=lambda row: sum(price(*move) for move in zip(have, row, sizes)))


@exercise.wrong("only x",
                "You count what x costs. w may have to be sent too.",
                "The price of a row is a sum of two: one for x, one for w.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: price(have[0], row[0], sizes[0]))


@exercise.wrong("only w",
                "You count what w costs. x may have to be sent too.",
                "The price of a row is a sum of two: one for x, one for w.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: price(have[1], row[1], sizes[1]))


@exercise.wrong("sizes left out",
                "You count every byte as if x and w had the same size. A small tensor is cheap to send.",
                "Pass `sizes[0]` for x and `sizes[1]` for w to `price`.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: price(have[0], row[0], 1) + price(have[1], row[1], 1))


@exercise.wrong("sizes swapped",
                "The size of w is used for x, and that of x for w.",
                "`have[0]`, `row[0]` and `sizes[0]` belong together: they are those of x.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: sum(price(*move) for move in zip(have, row, sizes[::-1])))


@exercise.wrong("backwards",
                "You ask for the price from the row to what you have. The way goes from what you *have* to the row.",
                "`price(before, after, nbytes)`: before is what you have.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: sum(price(b, a, s) for a, b, s in zip(have, row, sizes)))


@exercise.wrong("fewest changes",
                "You count how many tensors change their way. Two small ones can be cheaper than a large one.",
                "Add prices, not changes.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: sum(a != b for a, b in zip(have, row)))


@exercise.wrong("last of equal ones",
                "Two rows cost the same, and you take the later one. The first should win.",
                "`<` instead of `<=`.")
def cheapest(rows, have, sizes, price):
    return min(reversed(rows), key=lambda row: sum(price(*move) for move in zip(have, row, sizes)))


@exercise.wrong("the price",
                "You return what the row costs. The exercise asks for the row itself, such as ('S0', 'B').",
                "Keep the row beside its price.")
def cheapest(rows, have, sizes, price):
    return min(sum(price(*move) for move in zip(have, row, sizes)) for row in rows)


@exercise.wrong("only what is free",
                "You take a row only if nothing needs to be sent. Mostly something must.",
                "If no row is free, the cheapest one is right.")
def cheapest(rows, have, sizes, price):
    for row in rows:
        if sum(price(*move) for move in zip(have, row, sizes)) == 0:
            return row
    return rows[0]


def price(before, after, nbytes, n=4):
    """Bytes that each of n devices sends, to bring a tensor of `nbytes` bytes from one way to another."""
    if before in (after, "B"):
        return 0
    if after == "P":
        return math.inf
    part = nbytes * (n - 1) / n
    if before == "P":
        return 2 * part if after == "B" else part
    return part if after == "B" else part / n


ROWS = [("S0", "B"), ("B", "S1"), ("S1", "S0"), ("P", "B"), ("B", "P"), ("B", "B")]


@exercise.cases
def cases(rng):
    two = ROWS[:2]
    yield case(two, ("S0", "B"), (800, 800), price, expected=("S0", "B"))
    yield case(two, ("B", "S1"), (800, 800), price, expected=("B", "S1"))
    yield case(two, ("S0", "S1"), (800, 80), price, expected=("S0", "B"))
    yield case(two, ("S0", "S1"), (80, 800), price, expected=("B", "S1"))
    yield case([ROWS[2], ROWS[0]], ("S0", "S0"), (4000, 100), price, expected=("S0", "B"))
    yield case(ROWS[1:3], ("S0", "B"), (80, 800), price, expected=("S1", "S0"))
    yield case(ROWS[:3], ("B", "B"), (80, 80), price, expected=("S0", "B"))
    yield case(ROWS[1:], ("S0", "P"), (4000, 100), price, expected=("S1", "S0"))
    yield case(ROWS, ("P", "S1"), (100, 4000), price, expected=("B", "S1"))
    ways = list(itertools.product(("S0", "S1", "B", "P"), repeat=2))
    for i in rng.permutation(len(ways))[:3]:
        sizes = tuple(int(size) for size in rng.integers(1, 50, 2) * 8)
        yield case([ROWS[j] for j in rng.permutation(len(ROWS))], ways[i], sizes, price, hidden=True)
