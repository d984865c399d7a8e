"""15.1 next_one: windows of a text, and what comes next at every place."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "15.1", "next_one", kind="write", level="warm-up", answer="windows",
    question="How does a text become examples with answers?",
    hint="Write the smallest case that fails on paper: the text, below it x, below that y. Each y is one place "
         "further on.",
    fact="A text needs no labels: it contains its own answers. That is why language models could become so large.",
    sibling="From 10 20 30 40, pairs of neighbors: [10 20], [20 30], [30 40]. Four numbers, windows of two: "
            "4 - 2 + 1 = 3 windows, and window i is `row[i:i + 2]`. But if each window also needs the number *behind* "
            "it, the last one has none: then there are only 2.",
)


@exercise.solution
def windows(ids, length):
    # the last window needs one more symbol after it
    starts = range(len(ids) - length)
    x = flow.stack([ids[i:i + length] for i in starts])
    # the same, one place on
    y = flow.stack([ids[i + 1:i + 1 + length] for i in starts])
    return x, y


@exercise.also_right
def windows(ids, length):
    places = flow.arange(len(ids) - length)[:, None] + flow.arange(length)
    return ids[places], ids[places + 1]


@exercise.also_right
def windows(ids, length):
    both = np.lib.stride_tricks.sliding_window_view(ids.numpy(), length + 1)
    return flow.tensor(both[:, :-1].copy()), flow.tensor(both[:, 1:].copy())


def stack_windows(ids, length, starts):
    return flow.stack([ids[i:i + length] for i in starts])


@exercise.wrong("y is x",
                "y is the same as x. If the answer is the input itself, copying it is enough, and nothing is learned.",
                "y begins one place later than x.")
def windows(ids, length):
    x = stack_windows(ids, length, range(len(ids) - length))
    return x, x


@exercise.wrong("the one before",
                "Your y holds the *previous* symbols: it predicts the past. Which of the two begins later?",
                "x begins at i, and y at i + 1.")
def windows(ids, length):
    starts = range(len(ids) - length)
    return stack_windows(ids, length, [i + 1 for i in starts]), stack_windows(ids, length, starts)


@exercise.wrong("one window too many",
                "You have one window too many: the last symbol of the text has no next one.",
                "A text of length + 1 symbols has one window.")
def windows(ids, length):
    longer = flow.cat([ids, ids[:1]])
    starts = range(len(ids) - length + 1)
    return stack_windows(longer, length, starts), stack_windows(longer[1:], length, starts)


@exercise.wrong("one window too few",
                "A window is missing. How many windows does a text of length + 1 symbols have?",
                "range(n) already ends before n: no further - 1.")
def windows(ids, length):
    starts = range(len(ids) - length - 1)
    if not starts:
        return ids[:0].reshape(0, length), ids[:0].reshape(0, length)
    return stack_windows(ids, length, starts), stack_windows(ids[1:], length, starts)


@exercise.wrong("no window at all",
                "This text has length + 1 symbols: one window and its answer. Yours finds no window in it.",
                "range(n) already ends before n: no further - 1.")
def windows(ids, length):
    starts = range(len(ids) - length - 1)
    return stack_windows(ids, length, starts), stack_windows(ids[1:], length, starts)


@exercise.wrong("two places later",
                "The next symbol of a place is the one right after it. How far on is your y?",
                "x begins at i, and y at i + 1. Then one more window fits.")
def windows(ids, length):
    starts = range(len(ids) - length - 1)
    return stack_windows(ids, length, starts), stack_windows(ids[2:], length, starts)


@exercise.wrong("windows too long",
                "A slice `[a:b]` ends before b. How many symbols has `[i:i + length + 1]`?",
                "`[i:i + length]` has `length` symbols.")
def windows(ids, length):
    starts = range(len(ids) - length - 1)
    return stack_windows(ids, length + 1, starts), stack_windows(ids[1:], length + 1, starts)


@exercise.wrong("windows of two",
                "Your windows always have two symbols, as in the example. `length` says how many.",
                "`length` replaces each 2, and `length + 1` a 3.")
def windows(ids, length):
    starts = range(len(ids) - 2)
    return stack_windows(ids, 2, starts), stack_windows(ids[1:], 2, starts)


@exercise.wrong("the example",
                "These are the windows of the example. Other texts have others.",
                "Cut them out of `ids`.")
def windows(ids, length):
    return flow.tensor([[3, 1], [1, 4], [4, 1]]), flow.tensor([[1, 4], [4, 1], [1, 5]])


MANY = ("The last symbol of the text has no next one. So how many windows have an answer?",
        "A text of length + 1 symbols has one window.")


@exercise.wrong("one window too many, cut short", *MANY)
def windows(ids, length):
    starts = range(len(ids) - length + 1)
    return stack_windows(ids, length, starts), stack_windows(ids[1:], length, starts)


@exercise.wrong("one window more in x", *MANY)
def windows(ids, length):
    starts = range(len(ids) - length)
    return stack_windows(ids, length, range(len(ids) - length + 1)), stack_windows(ids[1:], length, starts)


@exercise.wrong("one long row",
                "Your windows are one after the other in a single row. They should be one *below* the other.",
                "`flow.stack` makes a new axis, `flow.cat` does not.")
def windows(ids, length):
    starts = range(len(ids) - length)
    return tuple(stack_windows(row, length, starts).flatten() for row in (ids, ids[1:]))


@exercise.wrong("windows as columns",
                "Each of your windows is a column. It should be a row.",
                "`flow.stack(rows)` puts rows one below the other; with axis 1 they stand side by side.")
def windows(ids, length):
    starts = range(len(ids) - length)
    return tuple(stack_windows(row, length, starts).T for row in (ids, ids[1:]))


@exercise.wrong("the whole text",
                "That is one pair for the whole text. Windows of `length` symbols are wanted.",
                "Cut both into windows: one from each place.")
def windows(ids, length):
    return ids[:-1], ids[1:]


@exercise.wrong("only the first window",
                "You return one window. How many are there in this text?",
                "Collect the windows in a list, and return after the loop.")
def windows(ids, length):
    return ids[:length], ids[1:length + 1]


@exercise.wrong("only the last window",
                "Each round of your loop overwrites the windows of the round before.",
                "Collect them: a list before the loop, `append` in it.")
def windows(ids, length):
    return ids[-length - 1:-1], ids[-length:]


@exercise.wrong("a list of pairs",
                "You return a pair for each window. One pair is wanted: all windows in x, all answers in y.",
                "Two lists, one for x and one for y; then `flow.stack` each.")
def windows(ids, length):
    return [(ids[i:i + length], ids[i + 1:i + 1 + length]) for i in range(len(ids) - length)]


@exercise.wrong("one tensor",
                "You put both into one tensor. The exercise asks for a pair: two tensors.",
                "`return x, y`")
def windows(ids, length):
    return flow.stack(list(exercise.right(ids, length)))


@exercise.wrong("lists",
                "x and y are lists. A network takes tensors.",
                "`flow.stack` makes a tensor of a list of rows.")
def windows(ids, length):
    return tuple(list(one) for one in exercise.right(ids, length))


@exercise.wrong("the last next one alone",
                "Your y has one symbol for each window. *Every* place of a window has a next symbol to learn.",
                "y has the shape of x: it is the text, one place further on.")
def windows(ids, length):
    starts = range(len(ids) - length)
    return stack_windows(ids, length, starts), flow.stack([ids[i + length] for i in starts])


@exercise.wrong("side by side",
                "Your windows do not overlap. A window begins at every place of the text.",
                "The starts are 0, 1, 2, ..., not 0, length, 2 * length, ...")
def windows(ids, length):
    starts = range(0, len(ids) - length, length)
    return stack_windows(ids, length, starts), stack_windows(ids[1:], length, starts)


@exercise.wrong("numbers with a fraction",
                "ids are whole numbers: they say which symbol, and they index the table of symbols.",
                "Keep the dtype of `ids`: no float.")
def windows(ids, length):
    starts = range(len(ids) - length)
    return stack_windows(ids, length, starts).float(), stack_windows(ids[1:], length, starts).float()


def kinds(windows, ids, length):
    """The types of the pair, or that of what is returned instead."""
    pair = windows(ids, length)
    names = [type(one).__name__ for one in pair] if isinstance(pair, list | tuple) else []
    return f"({', '.join(names)})" if names else type(pair).__name__


def windows_case(ids, length, hidden=False):
    n = len(ids) - length
    expected = [np.array([ids[i + on:i + on + length] for i in range(n)], np.int64) for on in (0, 1)]
    return case(flow.tensor(ids), length, expected=tuple(expected), hidden=hidden,
                text="" if hidden else f"ids = {list(ids)}, length = {length}")


@exercise.cases
def cases(rng):
    yield windows_case([7, 8], 1)
    yield case(flow.tensor([7, 8]), 1, run=kinds, expected="(Tensor, Tensor)",
               text="ids = [7, 8], length = 1: the types")
    yield windows_case([7, 8, 9], 2)
    yield windows_case([3, 1, 4, 1, 5], 2)
    yield windows_case([3, 1, 4, 1, 5, 9], 1)
    yield windows_case([3, 1, 4, 1, 5, 9, 2, 6], 3)
    yield windows_case([12, 11, 10, 9, 8], 4)
    yield windows_case(rng.integers(0, 50, 30).tolist(), 8, hidden=True)
    yield windows_case(rng.integers(0, 50, 12).tolist(), 5, hidden=True)
