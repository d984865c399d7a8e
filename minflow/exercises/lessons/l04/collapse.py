"""04.4 collapse: two layers with nothing between them are one."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "04.4", "collapse", kind="write", level="core", tolerance=(1e-5, 1e-5),
    question="Which single layer does the same as two without a bend between them?",
    hint="Write out both layers: h = x @ w1.T + b1, then h @ w2.T + b2. Put the first into the second and collect "
         "terms.",
    fact="So a hundred layers without a bend draw one straight border, like one layer. Depth needs the bend.",
    sibling="Two straight rules in a row: first double and add 1, then triple and add 5. x becomes 3 * (2x + 1) + 5 = "
            "6x + 8. That is one straight rule. The 1 was tripled too: the new offset is 3 * 1 + 5.",
)


@exercise.solution
def collapse(w1, b1, w2, b2):
    # the first layer acts first, so it is next to x
    w = w2 @ w1
    # what the first layer adds goes through the second one too
    b = w2 @ b1 + b2
    return w, b


@exercise.also_right
def collapse(w1, b1, w2, b2):
    return (w1.T @ w2.T).T, b1 @ w2.T + b2


@exercise.also_right
def collapse(w1, b1, w2, b2):
    both = lambda x: (x @ w1.T + b1) @ w2.T + b2
    b = both(flow.zeros(1, w1.shape[1]))[0]
    columns = [both(row[None])[0] - b for row in flow.eye(w1.shape[1])]
    return flow.stack(columns, 1), b


@exercise.wrong("order",
                "w1 @ w2: which layer acts first? Write out both layers and see which matrix is next to x.",
                "Weights are (out, in). The one whose *in* fits x is on the right.")
def collapse(w1, b1, w2, b2):
    return w1 @ w2, w2 @ b1 + b2


@exercise.wrong("offset added",
                "w is right. But b1 goes through the second layer too, before b2 is added.",
                "Feed it zeros: the first layer gives b1. What does the second one make of that?")
def collapse(w1, b1, w2, b2):
    return w2 @ w1, b1 + b2


@exercise.wrong("order, offset added",
                "Two things. w1 @ w2: which matrix is next to x? And b1 goes through the second layer too.",
                "Write out h = x @ w1.T + b1, put it into h @ w2.T + b2, and multiply out.")
def collapse(w1, b1, w2, b2):
    return w1 @ w2, b1 + b2


@exercise.wrong("all added",
                "The second layer *multiplies* the result of the first one, including its offset b1. It does not add "
                "to it.",
                "With one number each: 3 * (2 * x + 1) + 5 is 6 * x + 8.")
def collapse(w1, b1, w2, b2):
    return w1 + w2, b1 + b2


@exercise.wrong("offset on the wrong side",
                "w is right. In b, the second layer's weight is not transposed correctly: a Linear gives `x @ w.T + "
                "b`.",
                "b1 takes the place of x in `x @ w2.T`. `w2 @ b1` needs no transpose.")
def collapse(w1, b1, w2, b2):
    return w2 @ w1, b1 @ w2 + b2


@exercise.wrong("no second offset",
                "Feed it zeros: what comes out of both layers? b2 is missing.",
                "The second layer adds b2 at the very end.")
def collapse(w1, b1, w2, b2):
    return w2 @ w1, w2 @ b1


@exercise.wrong("no first offset",
                "Feed it zeros: the first layer gives b1, not 0. Where is it in your b?",
                "b1 goes through w2, and is then added to b2.")
def collapse(w1, b1, w2, b2):
    return w2 @ w1, b2


@exercise.wrong("turned",
                "Your w is transposed: a Linear keeps its weight as (out, in).",
                "Square sizes hide this, (3, 5) does not. Transpose it once more.")
def collapse(w1, b1, w2, b2):
    return (w2 @ w1).T, w2 @ b1 + b2


@exercise.wrong("entry by entry",
                "`*` works entry by entry. One layer after the other is a matrix product: `@`.",
                "Each result of the second layer reads *all* results of the first: sums of products.")
def collapse(w1, b1, w2, b2):
    return w2 * w1, w2 @ b1 + b2


@exercise.wrong("added weights",
                "The weights do not add up: the second layer *multiplies* the result of the first one.",
                "With one number each: 3 * (2 * x) is 6 * x, not 5 * x.")
def collapse(w1, b1, w2, b2):
    return w1 + w2, w2 @ b1 + b2


@exercise.wrong("all entry by entry",
                "`*` works entry by entry. One layer after the other is a matrix product: `@`, for b1 too.",
                "Each result of the second layer reads *all* results of the first: sums of products.")
def collapse(w1, b1, w2, b2):
    return w2 * w1, w2 * b1 + b2


@exercise.wrong("no pair",
                "That is one thing, and a layer has two: its weight and its offset. Return both, with a comma.",
                "`return w, b`")
def collapse(w1, b1, w2, b2):
    return w2 @ w1


@exercise.wrong("b first",
                "Both are there, in the other order: the weight comes first.",
                "`return w, b`")
def collapse(w1, b1, w2, b2):
    return w2 @ b1 + b2, w2 @ w1


@exercise.wrong("both offsets through",
                "b2 goes through the second layer in yours. When does that layer add it: before its product, or after?",
                "Only b1 goes through w2; b2 is added at the very end. Look at your parentheses.")
def collapse(w1, b1, w2, b2):
    return w2 @ w1, w2 @ (b1 + b2)


FIRST_LAYER = ("b1 goes through the first weight in yours. It is added after that one: which layer does it meet next?",
               "The second layer multiplies all that it gets by w2.")


@exercise.wrong("through the first layer", *FIRST_LAYER)
def collapse(w1, b1, w2, b2):
    return w2 @ w1, w1 @ b1 + b2


@exercise.wrong("through both layers", *FIRST_LAYER)
def collapse(w1, b1, w2, b2):
    return w2 @ w1, w2 @ w1 @ b1 + b2


@exercise.wrong("formula copied",
                "The `.T` of the formula turns a weight for the product with x. Your w is the weight itself.",
                "x @ w1.T @ w2.T is x @ (...).T: which product of w1 and w2 is in the brackets?")
def collapse(w1, b1, w2, b2):
    return w2.T @ w1.T, w2.T @ b1 + b2


@exercise.wrong("b as a column",
                "Your b is a column. The offset of a layer has one axis, as b1 and b2 have.",
                "Look at b1.shape. `w2 @ b1` has one axis too.")
def collapse(w1, b1, w2, b2):
    return w2 @ w1, w2 @ b1[:, None] + b2[:, None]


@exercise.wrong("b1 twice",
                "b1 is in your b twice: once through the second layer, and once as it is.",
                "Feed it zeros: the first layer gives b1, and the second makes w2 @ b1 of that, then adds b2.")
def collapse(w1, b1, w2, b2):
    return w2 @ w1, w2 @ b1 + b1 + b2


@exercise.wrong("lists",
                "The numbers are right. w and b are tensors, as w1 and b1 are: what turns yours into something else?",
                "Leave out `.tolist()` and `.numpy()`.")
def collapse(w1, b1, w2, b2):
    return (w2 @ w1).tolist(), (w2 @ b1 + b2).tolist()


@exercise.wrong("caller's b2",
                "w and b are right, but the given b2 has changed: `+=` writes into it.",
                "`b2 + ...` makes a new tensor.")
def collapse(w1, b1, w2, b2):
    b2 += w2 @ b1
    return w2 @ w1, b2


def given_after(collapse, *layers):
    collapse(*layers)
    return [one.numpy() for one in layers]


def kinds(collapse, *layers):
    return " and ".join(type(one).__name__ for one in collapse(*layers))


def collapse_case(w1, b1, w2, b2, text="", hidden=False):
    w1, b1, w2, b2 = (np.asarray(numbers, "float64") for numbers in (w1, b1, w2, b2))
    arrays = [flow.tensor(numbers.astype("float32")) for numbers in (w1, b1, w2, b2)]
    right = (w2 @ w1).astype("float32"), (w2 @ b1 + b2).astype("float32")
    return case(*arrays, expected=right, text=text, hidden=hidden)


@exercise.cases
def cases(rng):
    yield collapse_case([[2]], [1], [[3]], [5], text="double and add 1, then triple and add 5")
    yield collapse_case([[-2]], [-1], [[3]], [0], text="times -2 and subtract 1, then triple")
    yield collapse_case([[1, 2], [0, 1]], [1, 0], [[1, 0], [3, 1]], [0, 2])
    yield collapse_case([[1, 0], [0, 1]], [1, 2], [[0, 1], [1, 0]], [0, 0])
    yield collapse_case([[1, 2], [3, 4], [5, 6]], [1, 0, 1], [[1, 0, 2]], [4], text="2 -> 3 -> 1")
    yield case(*(flow.ones(*shape) for shape in ((3, 2), (3,), (1, 3), (1,))), run=kinds, text="the types of w and b")
    layers = [np.full(shape, 2, "float32") for shape in ((3, 2), (3,), (1, 3), (1,))]
    yield case(*map(flow.tensor, layers), run=given_after, expected=layers, text="are the given ones still the same?")
    sizes = rng.integers(2, 5, 2)
    first = rng.integers(-3, 4, (sizes[0], 5)), rng.integers(-3, 4, sizes[0])
    yield collapse_case(*first, rng.integers(-3, 4, (3, sizes[0])), rng.integers(-3, 4, 3), hidden=True)
    yield collapse_case(rng.integers(1, 4, (2, 2)), [1, 2], rng.integers(1, 4, (2, 2)), [3, 4], hidden=True)
