"""16.4 deal_heads: give each device whole heads of attention."""

import numpy as np

from ...definition import Exercise, case

exercise = Exercise(
    "16.4", "deal_heads", kind="write", level="core",
    question="How is attention dealt out, so that each device can look back alone?",
    hint="Cut w into questions, keys and values first: three equal blocks of columns. Then cut each block into n.",
    fact="Programs that load large models for several cards all do this. A plain split runs without an error, and the "
         "model then writes nonsense.",
    sibling="A pack of cards is sorted: all hearts, then all spades. Each of two players should have half of both. To "
            "cut the pack in the middle gives one player all hearts. So take the hearts and cut them, take the spades "
            "and cut them, and give each player a half of both.",
)


@exercise.solution
def deal_heads(w, n):
    # questions, keys and values, each cut into n
    blocks = [np.split(block, n, axis=1) for block in np.split(w, 3, axis=1)]
    # device d gets its piece of all three, side by side
    return [np.concatenate([block[d] for block in blocks], axis=1) for d in range(n)]


@exercise.also_right
def deal_heads(w, n):
    rows, columns = w.shape
    own = columns // 3 // n
    result = []
    for d in range(n):
        chosen = [block * columns // 3 + d * own + i for block in range(3) for i in range(own)]
        result.append(w[:, chosen])
    return result


@exercise.also_right
def deal_heads(w, n):
    rows, columns = w.shape
    four = w.reshape(rows, 3, n, columns // 3 // n)
    return [four[:, :, d].reshape(rows, columns // n) for d in range(n)]


@exercise.wrong("plain split",
                "You cut w as it is. The first devices get the questions, and others the values: none can look back "
                "alone.",
                "First into questions, keys and values, then each of them into n.")
def deal_heads(w, n):
    return np.split(w, n, axis=1)


@exercise.wrong("rows",
                "You cut rows. Each device needs all of x's numbers, so all rows of w, but other columns.",
                "axis=1.")
def deal_heads(w, n):
    return np.array_split(w, n, axis=0)


@exercise.wrong("like cards",
                "You deal columns like cards, one to each in turn. A head needs neighbors: columns that belong "
                "together.",
                "Device d gets the d-th of n equal pieces of each block.")
def deal_heads(w, n):
    return [w[:, d::n] for d in range(n)]


@exercise.wrong("all keys and values",
                "Only the questions are dealt out. Each device has all keys and all values, and most are never used.",
                "Questions, keys and values are cut in the same way.")
def deal_heads(w, n):
    q, k, v = np.split(w, 3, axis=1)
    return [np.concatenate([one, k, v], axis=1) for one in np.split(q, n, axis=1)]


@exercise.wrong("only questions",
                "The parts have questions only. Each device needs its keys and values too.",
                "Put the pieces of all three blocks side by side.")
def deal_heads(w, n):
    return np.split(np.split(w, 3, axis=1)[0], n, axis=1)


@exercise.wrong("one above the other",
                "The three pieces of a device are below each other. They should be side by side.",
                "np.concatenate(pieces, axis=1).")
def deal_heads(w, n):
    blocks = [np.split(block, n, axis=1) for block in np.split(w, 3, axis=1)]
    return [np.concatenate([block[d] for block in blocks], axis=0) for d in range(n)]


@exercise.wrong("by device, not by block",
                "You give a list for each block. The outer list should have an entry for each device.",
                "For device d: the d-th piece of each block, put together.")
def deal_heads(w, n):
    return [np.split(block, n, axis=1) for block in np.split(w, 3, axis=1)]


@exercise.wrong("not put together",
                "Each device has a list of three pieces. It should have one array.",
                "np.concatenate(pieces, axis=1).")
def deal_heads(w, n):
    blocks = [np.split(block, n, axis=1) for block in np.split(w, 3, axis=1)]
    return [[block[d] for block in blocks] for d in range(n)]


@exercise.wrong("order of blocks",
                "A device has its values first. The order should stay: questions, keys, values.",
                "The pieces go side by side in the order of the blocks.")
def deal_heads(w, n):
    rows, columns = w.shape
    return [np.concatenate(np.split(own, 3, axis=1)[::-1], axis=1) for own in exercise.right(w, n)]


@exercise.wrong("cuts swapped",
                "You cut into n first, and each piece into three. The first cut must be into questions, keys and "
                "values.",
                "`np.split(w, 3, axis=1)` first; each result by `np.split(block, n, axis=1)`.")
def deal_heads(w, n):
    blocks = [np.array_split(block, 3, axis=1) for block in np.split(w, n, axis=1)]
    return [np.concatenate([block[i] for block in blocks], axis=1) for i in range(3)]


def own_pieces(w, n, blocks=3, axis=1, order=slice(None)):
    """For each device, the list of its pieces."""
    cut = [np.split(block, n, axis=axis) for block in np.split(w, blocks, axis=axis)][order]
    return [list(pieces) for pieces in zip(*cut)]


@exercise.wrong("a block for each",
                "Device 0 has all questions, device 1 all keys. To look back alone, a device needs some of each.",
                "That is the first cut. Then each of the three blocks is cut into n.")
def deal_heads(w, n):
    return np.split(w, 3, axis=1)


@exercise.wrong("blocks of rows",
                "You cut rows into three: axis 0, as without `axis`. Questions, keys and values are *columns*.",
                "`np.split(w, 3, axis=1)`")
def deal_heads(w, n):
    return [np.concatenate(pieces, axis=1) for pieces in own_pieces(w, n, axis=0)]


@exercise.wrong("pieces of rows",
                "You cut the blocks into n pieces along axis 0: rows. Heads are columns.",
                "`np.split(block, n, axis=1)`")
def deal_heads(w, n):
    cut = [np.split(block, n) for block in np.split(w, 3, axis=1)]
    return [np.concatenate(pieces, axis=1) for pieces in zip(*cut)]


COUNT = ("The number of devices is fixed in yours. How many are there in this case?", "It is n.")


@exercise.wrong("two devices", *COUNT)
def deal_heads(w, n):
    return exercise.right(w, 2)


@exercise.wrong("four devices", *COUNT)
def deal_heads(w, n):
    return exercise.right(w, 4)


WIDTH = ("The width of a piece is fixed in yours. How wide is it here: a block, cut into n?",
         "`w.shape[1] // 3 // n`")


@exercise.wrong("pieces of two columns", *WIDTH)
def deal_heads(w, n):
    blocks = np.split(w, 3, axis=1)
    return [np.concatenate([block[:, 2 * d:2 * d + 2] for block in blocks], axis=1) for d in range(n)]


@exercise.wrong("blocks of eight columns", *WIDTH)
def deal_heads(w, n):
    own = 8 // n
    return [np.concatenate([w[:, 8 * b + d * own:8 * b + (d + 1) * own] for b in range(3)], axis=1) for d in range(n)]


@exercise.wrong("n columns from d on",
                "Device d gets the n columns from d on. How wide is one of n equal pieces, and where does it begin?",
                "Let `np.split(block, n, axis=1)` cut: device d gets piece d.")
def deal_heads(w, n):
    return [np.concatenate([block[:, d:d + n] for block in np.split(w, 3, axis=1)], axis=1) for d in range(n)]


@exercise.wrong("a fraction",
                "`/` gives a number with a fraction, even if it divides evenly: 2.0. A place must be a whole number.",
                "`//`")
def deal_heads(w, n):
    own = w.shape[1] / 3 / n
    return [np.concatenate([w[:, (b * n + d) * own:(b * n + d + 1) * own] for b in range(3)], axis=1)
            for d in range(n)]


@exercise.wrong("keys first",
                "A device has its keys first. The order should stay: questions, keys, values.",
                "The pieces go side by side in the order of the blocks.")
def deal_heads(w, n):
    return [np.concatenate([k, q, v], axis=1) for q, k, v in own_pieces(w, n)]


@exercise.wrong("no values",
                "The values are missing. Without them, a device has nothing to take a mean of.",
                "Put the pieces of all three blocks side by side.")
def deal_heads(w, n):
    return [np.concatenate([q, k], axis=1) for q, k, v in own_pieces(w, n)]


@exercise.wrong("added up",
                "You add questions, keys and values. They should be side by side.",
                "np.concatenate(pieces, axis=1).")
def deal_heads(w, n):
    return [q + k + v for q, k, v in own_pieces(w, n)]


@exercise.wrong("next device",
                "Each device has the piece of the next one. Pieces are counted from 0, as devices are.",
                "Device 0 gets the first piece of each block.")
def deal_heads(w, n):
    right = exercise.right(w, n)
    return [*right[1:], right[0]]


@exercise.wrong("only the first device",
                "Your list has one entry, that of device 0. Each of the n devices has its part.",
                "Do it for each d in `range(n)`.")
def deal_heads(w, n):
    return exercise.right(w, n)[:1]


@exercise.wrong("put together again",
                "You join the parts of all devices into one array. The exercise asks for a list, an array for each.",
                "Join only what belongs to *one* device.")
def deal_heads(w, n):
    return np.concatenate(exercise.right(w, n), axis=1)


@exercise.wrong("flat",
                "Your arrays have one axis only. `np.append` without an axis makes one long row of everything.",
                "np.concatenate(pieces, axis=1).")
def deal_heads(w, n):
    return [np.concatenate([piece.ravel() for piece in pieces]) for pieces in own_pieces(w, n)]


@exercise.wrong("turned",
                "Rows and columns are swapped in each of your arrays.",
                "Leave the `.T` out.")
def deal_heads(w, n):
    return [part.T for part in exercise.right(w, n)]


@exercise.wrong("arguments swapped",
                "`np.concatenate(arrays, axis)`: the arrays come first.",
                "Write `axis=1` with its name, and the order can't be wrong.")
def deal_heads(w, n):
    return [np.concatenate(1, pieces) for pieces in own_pieces(w, n)]


@exercise.wrong("lists of numbers",
                "Each part is a list of numbers. A device needs an array, to multiply by it.",
                "`.tolist()` is not needed.")
def deal_heads(w, n):
    return [part.tolist() for part in exercise.right(w, n)]


@exercise.wrong("one after the other",
                "Your function is a generator: `yield` gives one array after the other. The exercise asks for a list.",
                "Collect the arrays in a list, and return it.")
def deal_heads(w, n):
    yield from exercise.right(w, n)


def kinds(deal_heads, w, n):
    """The types in the returned list."""
    results = deal_heads(w, n)
    if not isinstance(results, list | tuple):
        return None if results is None else type(results).__name__
    return f"[{', '.join('list' if isinstance(one, tuple) else type(one).__name__ for one in results)}]"


def parts(deal_heads, w, n):
    return [np.asarray(part).tolist() for part in deal_heads(w, n)]


def look(rows, heads):
    """Attention without a mask, by several heads. rows: questions, keys and values side by side."""
    results = []
    for q, k, v in zip(*[np.split(block, heads, axis=1) for block in np.split(rows, 3, axis=1)]):
        shares = np.exp(q @ k.T)
        results.append(shares / shares.sum(1, keepdims=True) @ v)
    return np.concatenate(results, axis=1)


def looked(deal_heads, x, w, n):
    """The results of all devices, side by side."""
    return np.concatenate([look(x @ np.asarray(part), 1) for part in deal_heads(w, n)], axis=1)


@exercise.cases
def cases(rng):
    names = np.array([[1.0, 2, 11, 12, 21, 22]])
    yield case(np.array([[1.0, 11, 21]]), 1, run=kinds, expected="[ndarray]",
               text="[1 11 21], one device: the types in the list")
    yield case(np.array([[1.0, 11, 21]]), 1, run=parts, expected=[[[1.0, 11.0, 21.0]]], text="[1 11 21], one device")
    yield case(names, 2, run=parts, expected=[[[1.0, 11.0, 21.0]], [[2.0, 12.0, 22.0]]],
               text="[1 2 | 11 12 | 21 22] to 2")
    four = np.array([[1.0, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24]])
    yield case(four, 2, run=parts, expected=[[[1.0, 2, 11, 12, 21, 22]], [[3.0, 4, 13, 14, 23, 24]]],
               text="[1 2 3 4 | 11 12 13 14 | 21 22 23 24] to 2")
    yield case(four, 4, run=parts, expected=[[[i, 10 + i, 20 + i]] for i in (1.0, 2.0, 3.0, 4.0)],
               text="the same to 4")
    tall = np.arange(24.0).reshape(2, 12)
    halves = [tall[:, [0, 1, 4, 5, 8, 9]].tolist(), tall[:, [2, 3, 6, 7, 10, 11]].tolist()]
    yield case(tall, 2, run=parts, expected=halves, text="two rows, 12 columns, to 2")
    for n, width in ((2, 4), (4, 8), (3, 6)):
        x, w = rng.normal(size=(5, width)), rng.normal(size=(width, 3 * width))
        yield case(x, w, n, run=looked, expected=look(x @ w, n), hidden=n != 2,
                   text=f"attention with {n} heads on {n} devices, width {width}")
