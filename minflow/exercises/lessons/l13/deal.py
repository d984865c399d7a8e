"""13.2 deal: cut an array into n parts along an axis."""

import math

import numpy as np

from ...definition import Exercise, case

exercise = Exercise(
    "13.2", "deal", kind="write", level="core",
    question="How is an array dealt out to n devices?",
    hint="`size // n` entries for each, and one more for the first `size % n` of them. Count from where to where each "
         "part goes.",
    fact="The devices wait for the one with the most work. That is why no part may be larger than another by more "
         "than one.",
    sibling="Seven apples for three children: 7 // 3 is 2 for each, 7 % 3 is 1 left over, for the first: 3, 2, 2. The "
            "first takes apples 0 to 3 (3 is not hers), the second 3 to 5, the third 5 to 7. And `np.take(x, [3, 4], "
            "axis=1)` takes columns 3 and 4 of x, as new numbers.",
)


@exercise.solution
def deal(x, n, axis):
    # how many each device gets: the rest goes to the first ones
    size = x.shape[axis]
    sizes = [size // n + (i < size % n) for i in range(n)]
    parts, start = [], 0
    for length in sizes:
        # take makes new numbers, not a view
        parts.append(np.take(x, range(start, start + length), axis=axis))
        start += length
    return parts


@exercise.also_right
def deal(x, n, axis):
    return [part.copy() for part in np.array_split(x, n, axis)]


@exercise.also_right
def deal(x, n, axis):
    small, rest = divmod(x.shape[axis], n)
    turned = np.moveaxis(x, axis, 0)
    return [np.moveaxis(turned[i * small + min(i, rest):(i + 1) * small + min(i + 1, rest)], 0, axis).copy()
            for i in range(n)]


@exercise.also_right
def deal(x, n, axis):
    ends = np.cumsum([0] + [math.ceil((x.shape[axis] - i) / n) for i in range(n)])
    parts = []
    for i in range(n):
        place = [slice(None)] * x.ndim
        place[axis] = slice(ends[i], ends[i + 1])
        parts.append(np.array(x[tuple(place)]))
    return parts


def split_at(x, sizes, axis):
    """Parts of these sizes, one after the other."""
    ends = np.cumsum([0, *sizes])
    return [np.take(x, range(a, min(b, x.shape[axis])), axis=axis) for a, b in zip(ends, ends[1:])]


@exercise.wrong("rest in the last",
                "The last part is too small: 10 by 4 gives 3, 3, 3, 1. It should be 3, 3, 2, 2.",
                "10 // 4 is 2 for each, and 10 % 4 is 2: one more for the first two.")
def deal(x, n, axis):
    size = x.shape[axis]
    most = -(-size // n)
    return split_at(x, [max(0, min(most, size - i * most)) for i in range(n)], axis)


@exercise.wrong("last one larger",
                "The last part takes the whole rest: 10 by 4 gives 2, 2, 2, 4. It should be 3, 3, 2, 2.",
                "One more for each of the first `size % n` parts.")
def deal(x, n, axis):
    size = x.shape[axis]
    return split_at(x, [size // n] * (n - 1) + [size - size // n * (n - 1)], axis)


@exercise.wrong("n entries in each",
                "Each of your parts has n entries. n is how many parts there are.",
                "A part has `size // n` entries, or one more.")
def deal(x, n, axis):
    return [np.take(x, range(at, min(at + n, x.shape[axis])), axis) for at in range(0, x.shape[axis], n)]


@exercise.wrong("rest dropped",
                "Some entries are in no part. Count them: do all parts together have as many as x?",
                "`size % n` entries are left over. Give one each to the first parts.")
def deal(x, n, axis):
    return split_at(x, [x.shape[axis] // n] * n, axis)


EQUAL = ("`np.split` only cuts into equal parts. 10 by 4 must work too.",
         "Compute the size of each part yourself: `size // n`, and one more for the first `size % n`.")


@exercise.wrong("equal parts only", *EQUAL)
def deal(x, n, axis):
    return [part.copy() for part in np.split(x, n, axis)]


@exercise.wrong("views of equal parts only", *EQUAL)
def deal(x, n, axis):
    return np.split(x, n, axis)


@exercise.wrong("always axis 0",
                "You cut rows, whatever `axis` is.",
                "`x.shape[axis]` is the size to cut; `np.take(x, range(a, b), axis=axis)` takes a piece.")
def deal(x, n, axis):
    return exercise.right(x, n, 0)


@exercise.wrong("length of axis 0",
                "You cut along `axis`, but count rows: `len(x)` is the size of axis 0.",
                "`x.shape[axis]` is the size to cut.")
def deal(x, n, axis):
    return split_at(x, [len(x) // n + (i < len(x) % n) for i in range(n)], axis)


@exercise.wrong("views",
                "Writing into a part writes into the whole array: it is a view. Another device has memory of its own.",
                "Return a `.copy()` of each part.")
def deal(x, n, axis):
    return np.array_split(x, n, axis)


@exercise.wrong("larger last",
                "The larger parts come last. The first parts should have the extra entry.",
                "`i < size % n` is true for the first ones.")
def deal(x, n, axis):
    size = x.shape[axis]
    return split_at(x, [size // n + (i >= n - size % n) for i in range(n)], axis)


@exercise.wrong("first one larger",
                "The first part takes the whole rest: 10 by 4 gives 4, 2, 2, 2. By how much may two parts differ?",
                "One more for each of the first `size % n` parts.")
def deal(x, n, axis):
    size = x.shape[axis]
    return split_at(x, [size // n + size % n] + [size // n] * (n - 1), axis)


@exercise.wrong("larger in between",
                "The larger parts are not the first ones: 10 by 4 gives 2, 3, 2, 3.",
                "One more for each of the first `size % n` parts.")
def deal(x, n, axis):
    size = x.shape[axis]
    ends = [d * size // n for d in range(n + 1)]
    return split_at(x, [b - a for a, b in zip(ends, ends[1:])], axis)


@exercise.wrong("one more too often",
                "One part too many has an extra entry, even if it divides evenly. How many entries are left over?",
                "If `size % n` is 0, no part gets one more.")
def deal(x, n, axis):
    size = x.shape[axis]
    return split_at(x, [size // n + (i <= size % n) for i in range(n)], axis)


@exercise.wrong("slices of rows",
                "You count along `axis`, but `x[a:b]` takes rows, whatever `axis` is.",
                "`np.take(x, range(a, b), axis=axis)` takes a piece along any axis.")
def deal(x, n, axis):
    ends = np.cumsum([0, *(x.shape[axis] // n + (i < x.shape[axis] % n) for i in range(n))])
    return [x[a:b].copy() for a, b in zip(ends, ends[1:])]


@exercise.wrong("sizes only",
                "These are the sizes of the parts. The exercise asks for the parts, as arrays.",
                "The sizes say from where to where each part goes.")
def deal(x, n, axis):
    return [x.shape[axis] // n + (i < x.shape[axis] % n) for i in range(n)]


@exercise.wrong("lists in the list",
                "Each part is a list of numbers. A device needs an array.",
                "`.tolist()` is not needed: `np.take` and `.copy()` give arrays.")
def deal(x, n, axis):
    return [part.tolist() for part in exercise.right(x, n, axis)]


@exercise.wrong("four devices",
                "Your places are those of 10 entries for 4 devices. Other arrays and other n need other places.",
                "Compute them from `x.shape[axis]` and n.")
def deal(x, n, axis):
    return [np.take(x, range(a, b), axis=axis) for a, b in ((0, 3), (3, 6), (6, 8), (8, 10))]


@exercise.wrong("a fraction",
                "`/` gives a number with a fraction, such as 2.5, even if it divides evenly: 2.0. A place must be a "
                "whole number.",
                "`size // n` is the whole part, and `size % n` the rest.")
def deal(x, n, axis):
    size = x.shape[axis] / n
    return [np.take(x, range(d * size, (d + 1) * size), axis=axis) for d in range(n)]


@exercise.wrong("dealt like cards",
                "You deal like cards: one to each in turn. The entries of a part must be neighbors in x.",
                "Joined end to end, the parts must be x again.")
def deal(x, n, axis):
    return [np.take(x, range(i, x.shape[axis], n), axis=axis) for i in range(n)]


@exercise.wrong("no empty parts",
                "With more devices than entries some get an empty part. Your list is too short.",
                "The list always has n entries.")
def deal(x, n, axis):
    return [part for part in exercise.right(x, n, axis) if part.size]


@exercise.wrong("one after the other",
                "Your function is a generator: `yield` gives one array after the other. The exercise asks for a list.",
                "Collect the arrays in a list, and return it.")
def deal(x, n, axis):
    yield from exercise.right(x, n, axis)


def kinds(deal, x, n, axis):
    """The types in the returned list."""
    parts = deal(x, n, axis)
    if not isinstance(parts, list | tuple):
        return None if parts is None else type(parts).__name__
    return f"[{', '.join(type(part).__name__ for part in parts)}]"


def sizes(deal, x, n, axis):
    return [np.shape(part)[axis] for part in deal(x, n, axis)]


def part_lists(deal, x, n, axis):
    return [np.asarray(part).tolist() for part in deal(x, n, axis)]


def collected(deal, x, n, axis):
    """The parts, put together again."""
    return np.concatenate(list(deal(x, n, axis)), axis)


def parts_are_copies(deal, x, n, axis):
    """True if writing into the parts leaves x unchanged."""
    before = x.copy()
    for part in deal(x, n, axis):
        part[...] = -1
    return bool((x == before).all())


@exercise.cases
def cases(rng):
    def table(*shape):
        return np.arange(math.prod(shape), dtype=np.float64).reshape(shape) + int(rng.integers(1, 9))

    four, ten = np.arange(4.0), np.arange(10.0)
    yield case(four, 2, 0, run=kinds, expected="[ndarray, ndarray]", text="[0 1 2 3] to 2: the types in the list")
    yield case(four, 2, 0, run=part_lists, expected=[[0.0, 1.0], [2.0, 3.0]], text="[0 1 2 3] to 2")
    yield case(ten, 4, 0, run=sizes, expected=[3, 3, 2, 2], text="10 numbers to 4: the sizes")
    yield case(ten, 4, 0, run=part_lists, expected=[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0], [8.0, 9.0]],
               text="[0 ... 9] to 4")
    yield case(np.arange(8.0).reshape(2, 4), 2, 1, run=part_lists,
               expected=[[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]], text="(2, 4) to 2, axis 1")
    yield case(np.arange(2.0), 3, 0, run=sizes, expected=[1, 1, 0], text="2 numbers to 3: the sizes")
    yield case(four, 2, 0, run=parts_are_copies, expected=True,
               text="[0 1 2 3] to 2: does writing into the parts leave x as it was?")
    for shape, n, axis in (((3, 5, 4), 3, 2), ((7, 2), 5, 0), ((2, 11, 3), 4, 1)):
        x = table(*shape)
        yield case(x, n, axis, run=collected, expected=x, hidden=axis != 2,
                   text=f"{shape} to {n}, axis {axis}: together")
