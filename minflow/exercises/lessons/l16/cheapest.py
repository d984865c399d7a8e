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


def costs(rows, have, sizes, price):
    return [sum(price(*move) for move in zip(have, row, sizes)) for row in rows]


@exercise.wrong("larger of both",
                "The price of a row is the larger of two prices in yours. Both messages are sent.",
                "Add the two.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: max(price(*move) for move in zip(have, row, sizes)))


@exercise.wrong("product",
                "You multiply the two prices: if one of them is 0, the other no longer counts.",
                "Add the two.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: price(have[0], row[0], sizes[0]) * price(have[1], row[1], sizes[1]))


@exercise.wrong("difference",
                "You subtract the price for w: the dearer it is, the better the row looks.",
                "Both are sent: add the two.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: price(have[0], row[0], sizes[0]) - price(have[1], row[1], sizes[1]))


@exercise.wrong("bytes twice",
                "You multiply the price by the bytes. `price` has counted them already.",
                "`price(before, after, nbytes)` is the number of bytes that are sent.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: sum(price(a, b, s) * s for a, b, s in zip(have, row, sizes)))


@exercise.wrong("a price of its own",
                "You have a price list of your own. Not every change moves the whole tensor.",
                "Call the `price` that the function gets.")
def cheapest(rows, have, sizes, price):
    return exercise.right(rows, have, sizes, lambda a, b, nbytes: 0 if a in (b, "B") else nbytes)


FIXED = ("Your search begins with a fixed price. What if every row costs more than that?",
         "`math.inf` is above every price; or begin with the price of the first row.")


@exercise.wrong("fixed price at the start", *FIXED)
def cheapest(rows, have, sizes, price):
    best = min(costs(rows, have, sizes, price))
    return exercise.right(rows, have, sizes, price) if best < 10**6 else None


@exercise.wrong("fixed price and the first row at the start", *FIXED)
def cheapest(rows, have, sizes, price):
    best = min(costs(rows, have, sizes, price))
    return exercise.right(rows, have, sizes, price) if best < 10**6 else rows[0]


@exercise.wrong("first row",
                "You always return the first row. No price is below 0: is your first one ever replaced?",
                "Begin with `math.inf`, or with the price of the first row.")
def cheapest(rows, have, sizes, price):
    return rows[0]


@exercise.wrong("first possible row",
                "You return the first row that is possible at all. Your loop ends before it has seen the others.",
                "`return` comes after the loop: how far is it indented?")
def cheapest(rows, have, sizes, price):
    return next(row for row, cost in zip(rows, costs(rows, have, sizes, price)) if cost < math.inf)


@exercise.wrong("last row",
                "You return the last row that is possible. With which price is each row compared?",
                "If a row is better, keep the row *and* its price.")
def cheapest(rows, have, sizes, price):
    return [row for row, cost in zip(rows, costs(rows, have, sizes, price)) if cost < math.inf][-1]


@exercise.wrong("0 as no price",
                "A price of 0 counts as none in yours: `not 0` is true. A row that costs nothing is the best.",
                "Begin with `math.inf`, and compare by `<` alone.")
def cheapest(rows, have, sizes, price):
    best, least = None, 0
    for row, cost in zip(rows, costs(rows, have, sizes, price)):
        if not least or cost < least:
            best, least = row, cost
    return best


@exercise.wrong("equal ones by letters",
                "Two rows have the same price, and you take the one whose letters come first. The first in the list "
                "should win.",
                "Sort by the price alone: `key=`.")
def cheapest(rows, have, sizes, price):
    return min(zip(costs(rows, have, sizes, price), rows))[1]


@exercise.wrong("letters compared",
                "`min(rows)` compares letters. Which row is cheap?",
                "`min` takes a `key`: a function that gives the price of a row.")
def cheapest(rows, have, sizes, price):
    return min(rows)


@exercise.wrong("index of the row",
                "That is the index of the row. The exercise asks for the row itself.",
                "`rows[index]`")
def cheapest(rows, have, sizes, price):
    return rows.index(exercise.right(rows, have, sizes, price))


@exercise.wrong("row and price",
                "You return the row together with its price. The exercise asks for the row.",
                "The row is the first of the two.")
def cheapest(rows, have, sizes, price):
    row = exercise.right(rows, have, sizes, price)
    return row, sum(price(*move) for move in zip(have, row, sizes))


@exercise.wrong("all of the cheapest",
                "You return a list of all rows with the lowest price. One row is wanted.",
                "If several cost the same, the first.")
def cheapest(rows, have, sizes, price):
    every = costs(rows, have, sizes, price)
    return [row for row, cost in zip(rows, every) if cost == min(every)]


@exercise.wrong("pairs for price",
                "`price` is for one tensor: before, after, and its bytes. You give it pairs.",
                "Call it once for x and once for w, and add.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=lambda row: price(have, row, sizes))


@exercise.wrong("price as the key",
                "`key=price` calls `price(row)`. But it takes three things: before, after, and bytes.",
                "A function of a row, which calls `price` twice: `lambda row: ...`.")
def cheapest(rows, have, sizes, price):
    return min(rows, key=price)


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
    yield case([("P", "B"), *two], ("S0", "B"), (800, 800), price, expected=("S0", "B"))
    yield case([("B", "S1"), ("S0", "B")], ("S0", "S0"), (400, 500), price, expected=("S0", "B"))
    yield case([("B", "S0"), ("S0", "S1")], ("S0", "S0"), (100, 300), price, expected=("S0", "S1"))
    yield case(two, ("S0", "S1"), (4 * 10**9, 8 * 10**9), price, expected=("B", "S1"))
    yield case(ROWS[1:], ("S0", "P"), (4000, 100), price, expected=("S1", "S0"))
    yield case(ROWS, ("P", "S1"), (100, 4000), price, expected=("B", "S1"))
    ways = list(itertools.product(("S0", "S1", "B", "P"), repeat=2))
    for i in rng.permutation(len(ways))[:3]:
        sizes = tuple(int(size) for size in rng.integers(1, 50, 2) * 8)
        yield case([ROWS[j] for j in rng.permutation(len(ROWS))], ways[i], sizes, price, hidden=True)
