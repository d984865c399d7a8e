"""06.2 batches: shuffled pairs, a few at a time."""

import random

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "06.2", "batches", kind="write", level="core",
    question="How are examples mixed and dealt out in batches?",
    hint="Draw one order for all examples. Cut it into pieces of `size`, and take x and y at the same places.",
    fact="A new seed in each epoch gives new batches: the network never sees the same order twice.",
    sibling="Deal [10, 20, 30, 40, 50] by twos: the pieces start at 0, 2 and 4, which is `range(0, 5, 2)`. The last "
            "piece, `cards[4:6]`, has one card only: a slice may go past the end. And with an order: "
            "`x[flow.tensor([2, 0, 1])]` takes rows 2, 0 and 1, in this order.",
)


@exercise.solution
def batches(x, y, size, seed):
    # one order for both, so that pairs stay together
    order = flow.randperm(len(x), generator=flow.Generator().manual_seed(seed))
    for start in range(0, len(x), size):
        # the last piece is shorter automatically
        chosen = order[start:start + size]
        yield x[chosen], y[chosen]


@exercise.also_right
def batches(x, y, size, seed):
    places = list(range(len(x)))
    random.Random(seed).shuffle(places)
    while places:
        chosen, places = places[:size], places[size:]
        yield flow.stack([x[i] for i in chosen]), flow.stack([y[i] for i in chosen])


@exercise.also_right
def batches(x, y, size, seed):
    order = np.random.default_rng(seed).permutation(len(x))
    x, y = x.numpy()[order], y.numpy()[order]
    pieces = -(-len(x) // size)
    return iter([(flow.tensor(x[i * size:(i + 1) * size]), flow.tensor(y[i * size:(i + 1) * size]))
                 for i in range(pieces)])


def order_of(n, seed):
    return flow.randperm(n, generator=flow.Generator().manual_seed(seed))


def pieces(x, y, order, size):
    for start in range(0, len(order), size):
        yield x[order[start:start + size]], y[order[start:start + size]]


@exercise.wrong("torn apart",
                "x and y are shuffled apart: a 3 gets the label of a 7.",
                "Draw the order once, and use it for x and for y.")
def batches(x, y, size, seed):
    return pieces(x[order_of(len(x), seed)], y[order_of(len(x), seed + 1)], flow.arange(len(x)), size)


@exercise.wrong("last one dropped",
                "The last, smaller batch is missing: these examples are never seen.",
                "`range(0, len(x), size)` starts that batch too; its slice is shorter automatically.")
def batches(x, y, size, seed):
    return pieces(x, y, order_of(len(x), seed)[:len(x) // size * size], size)


@exercise.wrong("one order for all seeds",
                "Two seeds give the same order: the network sees the same order in each epoch.",
                "Give `seed` to whatever draws the order.")
def batches(x, y, size, seed):
    return pieces(x, y, order_of(len(x), 0), size)


@exercise.wrong("batches mixed only",
                "You mix the batches. Neighbors always stay in one batch: mix the examples, then cut.",
                "Draw an order of all examples, not of the batches.")
def batches(x, y, size, seed):
    starts = list(range(0, len(x), size))
    random.Random(seed).shuffle(starts)
    for start in starts:
        yield x[start:start + size], y[start:start + size]


@exercise.wrong("not shuffled",
                "The examples come in their original order. Mix them.",
                "`flow.randperm(n)` is a random order of 0 to n - 1.")
def batches(x, y, size, seed):
    return pieces(x, y, flow.arange(len(x)), size)


@exercise.wrong("seed not used",
                "The same seed gives another order each time, so your run cannot be repeated.",
                "`flow.Generator().manual_seed(seed)` starts from the seed; give it to randperm.")
def batches(x, y, size, seed):
    return pieces(x, y, order_of(len(x), random.SystemRandom().randrange(2**31)), size)


@exercise.wrong("one tensor for all",
                "Your first batch changes when the second is made: both are the same tensor.",
                "`x[chosen]` makes a new tensor for each batch. You need not fill one.")
def batches(x, y, size, seed):
    order, room = order_of(len(x), seed), flow.zeros(size)
    for start in range(0, len(x), size):
        chosen = order[start:start + size]
        room[:len(chosen)] = x[chosen]
        yield room[:len(chosen)], y[chosen]


@exercise.wrong("first ones missing",
                "The first batch is missing: your first piece starts at `size`.",
                "range(0, ...): the first piece starts at 0.")
def batches(x, y, size, seed):
    order = order_of(len(x), seed)
    for start in range(size, len(x), size):
        yield x[order[start:start + size]], y[order[start:start + size]]


@exercise.wrong("no pair",
                "Each batch is a pair: its examples and their labels. Yield both, once for each batch.",
                "`yield x[chosen], y[chosen]`, inside the loop.")
def batches(x, y, size, seed):
    order = order_of(len(x), seed)
    for start in range(0, len(x), size):
        yield x[order[start:start + size]]


@exercise.wrong("return in the loop",
                "`return` ends the function at the first batch. A generator goes on after each `yield`.",
                "Write `yield` instead of `return`.")
def batches(x, y, size, seed):
    order = order_of(len(x), seed)
    for start in range(0, len(x), size):
        return x[order[start:start + size]], y[order[start:start + size]]


@exercise.wrong("drawn with repeats",
                "Some examples come twice and others never. Draw an order, not places one by one.",
                "`randint` may draw a place again; `randperm` gives each place once.")
def batches(x, y, size, seed):
    places = random.Random(seed).choices(range(len(x)), k=len(x) - 1)
    return pieces(x, y, flow.tensor([*places, places[0]]), size)


@exercise.wrong("a list",
                "That is a list: all batches exist at once. A generator hands out one at a time. Which word does that?",
                "`yield` the pair where you append it to the list; then there is nothing to return.")
def batches(x, y, size, seed):
    return list(pieces(x, y, order_of(len(x), seed), size))


@exercise.wrong("all in one",
                "You yield once, all batches in one list. Each batch is yielded by itself.",
                "`yield` belongs in the loop.")
def batches(x, y, size, seed):
    yield list(pieces(x, y, order_of(len(x), seed), size))


@exercise.wrong("nothing yielded",
                "Nothing comes out of your function. Which word hands out a batch?",
                "A generator is a function with `yield` in it.")
def batches(x, y, size, seed):
    for a, b in pieces(x, y, order_of(len(x), seed), size):
        print(a, b)


@exercise.wrong("a batch dropped",
                "The last batch is missing, even if it is full. Where does your loop end?",
                "`range(0, len(x), size)` starts every batch; a slice may go past the end.")
def batches(x, y, size, seed):
    order = order_of(len(x), seed)
    for start in range(0, len(x) - size, size):
        yield x[order[start:start + size]], y[order[start:start + size]]


@exercise.wrong("single examples",
                "Your batch is a list of single examples. It is one pair: a tensor of examples and one of labels.",
                "An index tensor takes all of them at once: `x[chosen], y[chosen]`.")
def batches(x, y, size, seed):
    for a, b in pieces(x, y, order_of(len(x), seed), size):
        yield [(a[i], b[i]) for i in range(len(a))]


@exercise.wrong("labels left behind",
                "x is mixed, y is not: most labels are now at another example.",
                "Use the same order for both.")
def batches(x, y, size, seed):
    return pieces(x[order_of(len(x), seed)], y, flow.arange(len(x)), size)


@exercise.wrong("y first",
                "Each x has its own y, but y comes first in your pairs.",
                "The pair is (x part, y part).")
def batches(x, y, size, seed):
    return pieces(y, x, order_of(len(x), seed), size)


@exercise.wrong("steps of one",
                "Your batches overlap: the next one begins one example further on. How far should it be?",
                "`range` takes a third number, the length of its steps.")
def batches(x, y, size, seed):
    order = order_of(len(x), seed)
    for start in range(len(x)):
        yield x[order[start:start + size]], y[order[start:start + size]]


@exercise.wrong("first batch only",
                "Only one batch comes. Which loop goes on to the next ones?",
                "`range(0, len(x), size)` gives the beginnings of all.")
def batches(x, y, size, seed):
    order = order_of(len(x), seed)
    yield x[order[:size]], y[order[:size]]


@exercise.wrong("always 20",
                "Your batches have 20 examples, whatever is asked for.",
                "The number is given as `size`.")
def batches(x, y, size, seed):
    return pieces(x, y, order_of(len(x), seed), 20)


@exercise.wrong("mixed inside",
                "You mix each batch inside. Neighbors always stay in one batch: mix the examples, then cut.",
                "Draw one order of all examples before the loop.")
def batches(x, y, size, seed):
    for start in range(0, len(x), size):
        a, b = x[start:start + size], y[start:start + size]
        chosen = order_of(len(a), seed)
        yield a[chosen], b[chosen]


@exercise.wrong("last one filled up",
                "The last batch is filled up with examples that have come already.",
                "It may be smaller: just take what is left.")
def batches(x, y, size, seed):
    order = order_of(len(x), seed)
    for start in range(0, len(x), size):
        chosen = order[max(0, min(start, len(x) - size)):][:size]
        yield x[chosen], y[chosen]


@exercise.wrong("an empty one",
                "If the size fits, an empty batch comes at the end.",
                "Stop where the examples end: `range(0, len(x), size)`.")
def batches(x, y, size, seed):
    order = order_of(len(x), seed)
    for start in range(0, len(x) + 1, size):
        yield x[order[start:start + size]], y[order[start:start + size]]


@exercise.wrong("no tensors",
                "The parts of a pair are tensors, as x and y are.",
                "Leave out `.tolist()` and `.numpy()`: a network reads tensors.")
def batches(x, y, size, seed):
    for a, b in pieces(x, y, order_of(len(x), seed), size):
        yield a.tolist(), b.tolist()


@exercise.wrong("caller's examples",
                "The batches are right, but the given x and y are mixed now, too: `x[:] = ...` writes into them.",
                "`x[order]` makes a new tensor.")
def batches(x, y, size, seed):
    chosen = order_of(len(x), seed)
    x[:], y[:] = x[chosen], y[chosen]
    return pieces(x, y, flow.arange(len(x)), size)


def numbered_pairs(n):
    """x = 10, 20, 30, ... and y = 1, 2, 3, ...: pairs that belong together."""
    y = flow.arange(1, n + 1)
    return y.float() * 10, y


def sizes(batches, n, size, seed):
    """Kind and lengths of the batches."""
    given = batches(*numbered_pairs(n), size, seed)
    every = list(given)
    if not hasattr(given, "__next__"):
        return f"a {type(given).__name__} of {len(every)}, not one batch at a time"
    if any(not isinstance(one, tuple | list) or len(one) != 2 for one in every):
        return f"{len(every)} batches, of which one is no pair (x part, y part)"
    if not all(isinstance(part, flow.Tensor) and part.ndim == 1 for pair in every for part in pair):
        return "a part of a pair is not a tensor with a row of examples"
    return ", ".join(f"({len(x)}, {len(y)})" for x, y in every) or "no batch"


def count_seen(batches, n, size, seed):
    """Count the examples that come once, and those that come more often."""
    labels = [label for x, y in batches(*numbered_pairs(n), size, seed) for label in x.numpy().tolist()]
    times = [labels.count(label) for label in set(labels)]
    return "each once" if times.count(1) == n else "some twice" if max(times, default=0) > 1 else "some never"


def pairs_match(batches, n, size, seed):
    every = list(batches(*numbered_pairs(n), size, seed))
    if all((y.numpy() == 10 * x.numpy()).all() for x, y in every):
        return "together, y first"
    return "together" if all((x.numpy() == 10 * y.numpy()).all() for x, y in every) else "torn apart"


def order(batches, n, seed):
    return [label for x, y in batches(*numbered_pairs(n), 7, seed) for label in x.numpy().tolist()]


def is_shuffled(batches, n, seed):
    return order(batches, n, seed) != sorted(order(batches, n, seed))


def neighbors(batches, n, seed):
    """Origin of the examples of a batch, in words."""
    every = [y.numpy().tolist() for x, y in batches(*numbered_pairs(n), 5, seed)]
    if any(sorted(one) != list(range(min(one), min(one) + len(one))) for one in every):
        return "from all over"
    return "neighbors, batch after batch" if [min(one) for one in every] == sorted(map(min, every)) else "neighbors"


def orders(batches, n, seed):
    """Whether a seed gives its order again, and another seed another one."""
    first, again, other = (order(batches, n, one) for one in (seed, seed, seed + 1))
    return f"{'the same' if first == again else 'another'}, {'the same' if first == other else 'another'}"


def given_after(batches, n, size, seed):
    """x and y, after all batches were dealt out."""
    x, y = numbered_pairs(n)
    list(batches(x, y, size, seed))
    return [x.numpy(), y.numpy()]


def batches_stay_unchanged(batches, n, size, seed):
    """True if each batch keeps its numbers when later ones are made."""
    kept, copies = [], []
    for x, y in batches(*numbered_pairs(n), size, seed):
        kept.append((x, y))
        copies.append((x.numpy().tolist(), y.numpy().tolist()))
    return [(x.numpy().tolist(), y.numpy().tolist()) for x, y in kept] == copies


@exercise.cases
def cases(rng):
    seed = int(rng.integers(1, 1000))
    yield case(2, 5, seed, run=sizes, expected="(2, 2)",
               text="2 examples, size 5: the lengths of x and y in each batch")
    yield case(5, 2, seed, run=sizes, expected="(2, 2), (2, 2), (1, 1)",
               text="5 examples, size 2: the lengths of x and y in each batch")
    yield case(6, 2, seed, run=sizes, expected="(2, 2), (2, 2), (2, 2)",
               text="6 examples, size 2: the lengths of x and y in each batch")
    yield case(5, 2, seed, run=count_seen, expected="each once",
               text="5 examples, size 2: how often does each one come?")
    yield case(30, 7, seed, run=pairs_match, expected="together",
               text="30 pairs (10, 1), (20, 2), ...: do they stay together?")
    yield case(30, seed, run=is_shuffled, expected=True, text="30 examples: are they mixed?")
    yield case(30, seed, run=neighbors, expected="from all over",
               text="30 examples, size 5: where are those of a batch from?")
    yield case(30, seed, run=orders, expected="the same, another",
               text="30 examples: the order with the same seed once more, and with another seed")
    yield case(6, 2, seed, run=batches_stay_unchanged, expected=True,
               text="6 examples, size 2: do earlier batches keep their numbers?")
    x, y = numbered_pairs(6)
    yield case(6, 2, seed, run=given_after, expected=[x.numpy(), y.numpy()], text="are x and y still the same?")
    yield case(12, 4, seed, run=sizes, expected="(4, 4), (4, 4), (4, 4)", hidden=True)
    yield case(40, 9, seed, run=pairs_match, expected="together", hidden=True)
