"""03.3 fold_back: a gradient brought back to the shape that broadcasting stretched."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "03.3", "fold_back", kind="write", level="core",
    question="What is the gradient of a small tensor that was stretched?",
    hint="Write the two shapes under each other, right ends together. Which axes differ? Sum over these and no others.",
    fact="Every engine needs this in one place: in minflow it is `fit` in core/autograd.py, called after every rule. "
         "Without it, a bias of 3 numbers gets a gradient of 12.",
    sibling="A price list has one price for each of 3 fruits, shape (3,). It is used in 2 shops: g has shape (2, 3), "
            "a slope for each price in each shop. A price rises in *both* shops at once, so its slope is the sum over "
            "the shops: [[1, 2, 3], [10, 20, 30]] folds to [11, 22, 33], `g.sum(0)`. And a shipping fee for each "
            "shop, shape (2, 1), applies to all fruits: sum over the fruits and keep the axis, `g.sum(1, "
            "keepdim=True)`, [[6], [60]].",
)


@exercise.solution
def fold_back(g, shape):
    # axes that were put in front: sum them away
    while len(g.shape) > len(shape):
        g = g.sum(0)
    # axes of size 1 that were stretched: sum, and keep the axis
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.sum(axis, keepdim=True)
    return g


@exercise.also_right
def fold_back(g, shape):
    padded = (1,) * (len(g.shape) - len(shape)) + tuple(shape)
    axes = [axis for axis, size in enumerate(padded) if size != g.shape[axis]]
    for axis in axes:
        g = g.sum(axis, keepdim=True)
    return g.reshape(shape)


@exercise.also_right
def fold_back(g, shape):
    def folded(array, shape):
        if array.ndim > len(shape):
            return folded(np.add.reduce(array), shape)
        stretched = tuple(i for i in range(array.ndim) if shape[i] < array.shape[i])
        return array.sum(axis=stretched, keepdims=True)

    return flow.tensor(folded(g.numpy(), shape))


@exercise.also_right
def fold_back(g, shape):
    x = flow.zeros(shape, requires_grad=True)
    (x * g).sum().backward()
    return x.grad


@exercise.wrong("one new axis",
                "You sum over one new axis. There may be more of them, or all may be new.",
                "`shape` may be (): then both axes of (4, 3) are new. Use `while` instead of `if`.")
def fold_back(g, shape):
    if len(g.shape) > len(shape):
        g = g.sum(0)
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.sum(axis, keepdim=True)
    return g


@exercise.wrong("sizes of 1 alone",
                "You sum over the axes of size 1 in `shape`. What about axes of g that `shape` does not have at all?",
                "First the new axes in front: while g has more axes than `shape`, `g = g.sum(0)`.")
def fold_back(g, shape):
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.sum(axis, keepdim=True)
    return g


@exercise.wrong("always axis 0",
                "You sum over axis 0, whatever the shape is. Which axes were stretched?",
                "From (4, 1) to (4, 3) it is axis 1 that was stretched. From (4, 3) to (4, 3) it is none.")
def fold_back(g, shape):
    return g.sum(0)


@exercise.wrong("one copy",
                "You take one of the copies. Each of them changes the result, so their slopes add up.",
                "Nudge a number of x, and *all* its copies move. Sum over them.")
def fold_back(g, shape):
    while len(g.shape) > len(shape):
        g = g[0]
    for axis, size in enumerate(shape):
        if size < g.shape[axis]:
            g = g.narrow(axis, 0, 1)
    return g


MEAN = ("Where paths meet, slopes *add*. A mean is too small: divided by the number of copies.",
        "`sum` in place of `mean`: the total of the result is the total of g.")


@exercise.wrong("mean", *MEAN)
def fold_back(g, shape):
    while len(g.shape) > len(shape):
        g = g.mean(0)
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.mean(axis, keepdim=True)
    return g


@exercise.wrong("mean of new axes", *MEAN)
def fold_back(g, shape):
    while len(g.shape) > len(shape):
        g = g.mean(0)
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.sum(axis, keepdim=True)
    return g


@exercise.wrong("mean of stretched axes", *MEAN)
def fold_back(g, shape):
    while len(g.shape) > len(shape):
        g = g.sum(0)
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.mean(axis, keepdim=True)
    return g


@exercise.wrong("axis of size 1 lost",
                "The numbers are right, an axis is lost. It had size 1 in x: keep it.",
                "`sum(axis, keepdim=True)` leaves an axis of size 1 where it summed.")
def fold_back(g, shape):
    padded = (1,) * (len(g.shape) - len(shape)) + tuple(shape)
    for axis in reversed(range(len(padded))):
        if padded[axis] == 1:
            g = g.sum(axis)
    return g


@exercise.wrong("new axes alone",
                "You sum over axes that are new. (4, 1) was stretched to (4, 3) without a new axis.",
                "After the new axes in front, look at the others: if `shape` has a 1 there, sum and keep the axis.")
def fold_back(g, shape):
    while len(g.shape) > len(shape):
        g = g.sum(0)
    return g


@exercise.wrong("new axis kept",
                "The numbers are right, but an axis is left that x never had. New axes should go.",
                "For axes in front that `shape` does not have: `sum(0)`, without `keepdim`.")
def fold_back(g, shape):
    padded = (1,) * (len(g.shape) - len(shape)) + tuple(shape)
    for axis, size in enumerate(padded):
        if size == 1:
            g = g.sum(axis, keepdim=True)
    return g


@exercise.wrong("reshape",
                "g holds more numbers than `shape` has places. They must be summed, not moved.",
                "`reshape` keeps every number. Twelve numbers do not fit into four places: add up three for each.")
def fold_back(g, shape):
    return g.reshape(shape)


@exercise.wrong("unchanged",
                "g comes back as it came. `g.sum(0)` makes a *new* tensor: which name does your code give it?",
                "`g.sum(0)` alone is computed and thrown away, `g = g.sum(0)` keeps it.")
def fold_back(g, shape):
    return g


@exercise.wrong("one total everywhere",
                "Each number is the total of *all* of g. Add up only the copies of one number.",
                "From (3,) to (4, 3) only axis 0 is new: sum over it, and three sums stay.")
def fold_back(g, shape):
    return g.sum().expand(shape)


@exercise.wrong("one total in a shape",
                "You sum over all axes, so one number is left. Only those axes that were stretched should go.",
                "From (3,) to (4, 3) only axis 0 is new: three numbers stay.")
def fold_back(g, shape):
    return g.sum().reshape(shape)


@exercise.wrong("left ends",
                "You take the *last* axes away. Lay the right ends together: which axes of g are new?",
                "New axes are in front, on the left: `g.sum(0)`.")
def fold_back(g, shape):
    while len(g.shape) > len(shape):
        g = g.sum(-1)
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.sum(axis, keepdim=True)
    return g


@exercise.wrong("axes numbered anew",
                "After a sum over axis 0 the other axes move up: the next one is axis 0 again.",
                "Sum over axis 0 as long as g has more axes than `shape`.")
def fold_back(g, shape):
    for axis in range(len(g.shape) - len(shape)):
        g = g.sum(axis)
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.sum(axis, keepdim=True)
    return g


@exercise.wrong("sizes of 1 first",
                "While g still has new axes in front, axis 0 of `shape` is not axis 0 of g. Which loop comes first?",
                "First the new axes, `g.sum(0)`; then both have the same axes.")
def fold_back(g, shape):
    extra = len(g.shape) - len(shape)
    for axis, size in enumerate(shape):
        if size == 1:
            g = g.sum(axis, keepdim=True)
    for _ in range(extra):
        g = g.sum(0)
    return g


@exercise.wrong("one size of 1",
                "You return after the first size of 1. `shape` may have several.",
                "`return g` belongs below the loop, as far to the left as `for`.")
def fold_back(g, shape):
    while len(g.shape) > len(shape):
        g = g.sum(0)
    for axis, size in enumerate(shape):
        if size == 1:
            return g.sum(axis, keepdim=True)
    return g


@exercise.wrong("a row or a column",
                "Your code asks `shape` for an entry that it does not have. How many axes may it have?",
                "`shape` may be (), (3,) or (3, 4, 5): go through its entries with a loop.")
def fold_back(g, shape):
    if len(shape) == 1:
        return g.sum(0)
    return g.sum(0, keepdim=True) if shape[0] == 1 else g.sum(1, keepdim=True) if shape[1] == 1 else g


@exercise.wrong("everything",
                "You sum over all axes. Only those that were stretched should go.",
                "From (3,) to (4, 3) only axis 0 is new: three numbers stay.")
def fold_back(g, shape):
    return g.sum()


def reference(g, shape):
    """By NumPy alone: add each number of g to its original place."""
    result = np.zeros(shape, np.float32)  # exact, since the elements are integers
    for place in np.ndindex(*g.shape):
        behind = place[len(place) - len(shape):]
        result[tuple(0 if size == 1 else i for i, size in zip(behind, shape))] += g[place]
    return result


def fold_case(g, shape, text="", hidden=False):
    return case(flow.tensor(g, dtype=flow.float32), shape, expected=flow.tensor(reference(g, shape)), hidden=hidden,
                text=text or f"g: shape {g.shape}, all 1; shape = {shape}")


@exercise.cases
def cases(rng):
    ones = np.ones((4, 3))
    counted = np.arange(12.0).reshape(4, 3)
    yield fold_case(ones, (4, 3))
    yield fold_case(ones, (3,))
    yield fold_case(ones, (4, 1))
    yield fold_case(ones, ())
    yield fold_case(counted, (1, 3), "g: shape (4, 3), numbers 0 to 11; shape = (1, 3)")
    yield fold_case(counted, (1,), "g: shape (4, 3), numbers 0 to 11; shape = (1,)")
    yield fold_case(counted, (1, 1), "g: shape (4, 3), numbers 0 to 11; shape = (1, 1)")
    yield fold_case(np.arange(24.0).reshape(2, 3, 4), (3, 1), "g: shape (2, 3, 4), numbers 0 to 23; shape = (3, 1)")
    yield fold_case(rng.integers(-9, 9, (2, 3, 4)).astype(float), (1, 3, 1), hidden=True)
    yield fold_case(rng.integers(-9, 9, (3, 3)).astype(float), (3, 1), hidden=True)
    yield fold_case(rng.integers(-9, 9, (5, 2, 1, 3)).astype(float), (2, 1, 3), hidden=True)
