"""01.2 distances: the squared distance from each point to each other, without a loop."""

import numpy as np

import minflow as flow

from ...definition import Exercise, case

exercise = Exercise(
    "01.2", "distances", kind="write", level="core", tolerance=(1e-5, 1e-5),
    question="How far is each of n points from each of m others, without a loop?",
    hint="Give x the shape (n, 1, d) and y the shape (1, m, d). What is the shape of their difference?",
    fact="Each of n rows meets each of m rows without a loop: an axis of size 1 is all that it takes.",
    sibling="Which prices are above which limits? `prices[:, None] > limits[None, :]` with 3 prices and 2 limits: (3, "
            "1) over (1, 2) gives (3, 2), a row for each price and a column for each limit. For points there is one "
            "more axis, the coordinates; it comes last, and the sum goes over it.",
    forbidden={"for": "The task asks for no loop: let an axis of size 1 stretch.",
               "while": "The task asks for no loop: let an axis of size 1 stretch.",
               "cdist": "That is the answer's name. Build it from a difference, a square and a sum."},
)


@exercise.solution
def distances(x, y):
    # each row of x meets each row of y: (n, 1, d) and (1, m, d) give (n, m, d)
    apart = x[:, None, :] - y[None, :, :]
    # the last axis holds the coordinates
    return (apart**2).sum(2)


@exercise.also_right
def distances(x, y):
    apart = x.unsqueeze(1) - y
    return (apart * apart).sum(dim=-1)


@exercise.also_right
def distances(x, y):
    n, d = x.shape
    m = y.shape[0]
    apart = y.reshape(1, m, d) - x.reshape(n, 1, d)
    return flow.einsum("nmd,nmd->nm", apart, apart)


@exercise.wrong("one number",
                "You add up everything to one number. Who met whom?",
                "x[:, None] has one more axis. Then each row of x meets each row of y, not only the row beside it.")
def distances(x, y):
    return ((x - y)**2).sum()


@exercise.wrong("one number of all pairs",
                "Each point met each other, but then you add up everything. What should a row and a column keep?",
                "`sum()` takes away all axes. Name the one that should go: the axis of the coordinates.")
def distances(x, y):
    return ((x[:, None] - y[None])**2).sum()


@exercise.wrong("new axis in the same place",
                "x and y have their new axis in the same place. So points still meet only those beside them.",
                "x becomes (n, 1, d) and y becomes (1, m, d): `x[:, None]` and `y[None, :]`.")
def distances(x, y):
    return ((x[:, None] - y[:, None])**2).sum(2)


@exercise.wrong("row by row",
                "Each row of x meets only the row of y beside it. Each should meet *all* rows of y.",
                "Give x a new axis, x[:, None], so that its rows stretch over those of y.")
def distances(x, y):
    return ((x - y)**2).sum(1)


@exercise.wrong("wrong axis",
                "You sum over the wrong axis. Which axis of the difference holds the coordinates?",
                "The difference has the shape (n, m, d). The d should go.")
def distances(x, y):
    return ((x[:, None] - y[None])**2).sum(0)


@exercise.wrong("middle axis",
                "You sum over the axis of the points of y. Which axis holds the coordinates?",
                "The difference has the shape (n, m, d). The d should go.")
def distances(x, y):
    return ((x[:, None] - y[None])**2).sum(1)


@exercise.wrong("no sum",
                "You have a square for each coordinate. How far is that in all?",
                "The difference has the shape (n, m, d). Add up over the axis of the coordinates.")
def distances(x, y):
    return (x[:, None] - y[None])**2


@exercise.wrong("mean",
                "You take the mean over the coordinates. The task asks for the *sum* of their squares.",
                "With d coordinates you are off by the factor d.")
def distances(x, y):
    return ((x[:, None] - y[None])**2).mean(2)


@exercise.wrong("turned",
                "Rows and columns are swapped: each row belongs to a point of x.",
                "x keeps axis 0, (n, 1, d), and y keeps axis 1, (1, m, d).")
def distances(x, y):
    return ((y[:, None] - x[None])**2).sum(2)


@exercise.wrong("root",
                "You took the root. The task asks for the *squared* distance.",
                "Leave out the last step.")
def distances(x, y):
    return ((x[:, None] - y[None])**2).sum(2).sqrt()


@exercise.wrong("abs",
                "You take the size of the differences, not their square. Look at a point that is 3 away: the answer "
                "must be 9.",
                "Square each difference: `**2`.")
def distances(x, y):
    return (x[:, None] - y[None]).abs().sum(2)


@exercise.wrong("no square",
                "You add up the differences themselves; some of them are below 0. What happened to the square?",
                "First square each difference, then sum.")
def distances(x, y):
    return (x[:, None] - y[None]).sum(2)


@exercise.wrong("square of the sum",
                "You sum first and then square. The square of a sum is not the sum of squares.",
                "First square each difference, then sum.")
def distances(x, y):
    return (x[:, None] - y[None]).sum(2)**2


@exercise.wrong("a hat",
                "In Python `^` is not a power: it combines the bits of whole numbers. How is a square written?",
                "`3**2` is 9.")
def distances(x, y):
    return ((x[:, None] - y[None]) ^ 2).sum(2)


@exercise.wrong("times 2",
                "You double each difference. How is a square written?",
                "`3 * 2` is 6, `3**2` is 9.")
def distances(x, y):
    return ((x[:, None] - y[None]) * 2).sum(2)


@exercise.wrong("no brackets",
                "Python takes a power before a difference: only y is squared. What belongs in brackets?",
                "`(a - b)**2` is the square of the difference, `a - b**2` is not.")
def distances(x, y):
    return (x[:, None] - y[None]**2).sum(2)


@exercise.wrong("difference of squares",
                "You subtract the squares. The square of a difference is not the difference of squares.",
                "First the difference of the coordinates, then its square: (1 - 4)**2 is 9, 1**2 - 4**2 is -15.")
def distances(x, y):
    return (x[:, None]**2 - y[None]**2).sum(2)


@exercise.wrong("difference of sums",
                "You subtract sums of squares. The square of a difference is not the difference of squares.",
                "First the difference of the coordinates, then its square: (1 - 4)**2 is 9, 1**2 - 4**2 is -15.")
def distances(x, y):
    return (x**2).sum(1)[:, None] - (y**2).sum(1)


@exercise.wrong("products",
                "You multiply the points. A distance begins with a difference.",
                "First the difference of each pair of points, then its square, then the sum.")
def distances(x, y):
    return x @ y.transpose(0, 1)


@exercise.wrong("sum of squares",
                "You add the squares of both points. A distance depends on their difference alone.",
                "From (10, 0) to (11, 0) it is as far as from (0, 0) to (1, 0). Subtract first, then square.")
def distances(x, y):
    return (x[:, None]**2 + y[None]**2).sum(2)


@exercise.wrong("both in front",
                "x and y have both got their new axis in front. So points still meet only those beside them.",
                "x becomes (n, 1, d) and y becomes (1, m, d): `x[:, None]` and `y[None, :]`.")
def distances(x, y):
    return ((x[None] - y[None])**2).sum(2)


@exercise.wrong("two coordinates",
                "You ask for the coordinates 0 and 1. A point may have one coordinate, or three.",
                "`x[:, None]` and `y[None, :]` keep the coordinates as the last axis, however many there are.")
def distances(x, y):
    return (x[:, 0][:, None] - y[:, 0])**2 + (x[:, 1][:, None] - y[:, 1])**2


@exercise.wrong("the notebook's points",
                "This is the answer for the `points` of the notebook. Use the x and y that your function gets.",
                "Inside the function only x and y may hold the points.")
def distances(x, y):
    return flow.tensor([[0.0, 25.0, 2.0], [25.0, 0.0, 13.0], [2.0, 13.0, 0.0]])


@exercise.wrong("large numbers cancel",
                "That is right near 0. Farther away, two large numbers cancel, and float32 keeps about 7 digits.",
                "xx + yy - 2xy subtracts numbers that are nearly the same. Take the difference first, then the square.")
def distances(x, y):
    return (x**2).sum(1)[:, None] + (y**2).sum(1)[None] - 2 * (x @ y.transpose(0, 1))


def expected_distances(x, y):
    """Expected result, by NumPy in float64: a wrong engine must not be compared with itself."""
    a, b = (np.asarray(points.tolist(), np.float64) for points in (x, y))
    return flow.tensor(((a[:, None] - b[None])**2).sum(2).astype(np.float32))


def distances_case(x, y, text="", **options):
    x, y = (flow.tensor(np.asarray(points, np.float32)) for points in (x, y))
    return case(x, y, text=text or f"x = {x.tolist()}, y = {y.tolist()}", expected=expected_distances(x, y), **options)


def to_itself(distances, x):
    """Summarize the distances of points to themselves."""
    found = distances(x, x)
    found = np.asarray(found.tolist() if hasattr(found, "tolist") else found)
    if found.shape != (len(x), len(x)):
        return f"the shape {found.shape}"
    there = "the same" if np.allclose(found, found.T) else "not the same"
    own = "0" if np.allclose(found.diagonal(), 0) else "not 0"
    return f"{there} from i to j and from j to i, {own} from i to i"


@exercise.cases
def cases(rng):
    yield distances_case([[1.0]], [[4.0]])
    yield distances_case([[0.0, 0.0]], [[3.0, 4.0], [1.0, 0.0]])
    yield distances_case([[0.0, 0.0], [1.0, 2.0]], [[2.0, 1.0], [0.0, -1.0]])
    yield distances_case([[0.0, 1.0, 2.0], [2.0, 2.0, 0.0]],
                [[1.0, 1.0, 1.0], [3.0, 0.0, 3.0], [0.0, 0.0, 0.5], [1.0, 2.0, 4.0]],
                text="2 points x and 4 points y, of 3 coordinates")
    yield distances_case([[0.0], [2.0], [5.0]], [[1.0], [5.0]])
    points = flow.tensor(rng.normal(size=(4, 2)).astype(np.float32))
    yield case(points, run=to_itself, text="4 points to each other, x = y",
               expected="the same from i to j and from j to i, 0 from i to i")
    yield distances_case([[10000.0, 10000.0], [10002.0, 10001.0]],
                         [[10001.0, 9998.0], [10003.0, 10004.0], [9999.0, 10000.0]],
                text="points near (10000, 10000), 1 to 4 apart")
    yield distances_case(rng.normal(size=(5, 3)), rng.normal(size=(3, 3)), hidden=True)
    yield distances_case(rng.normal(size=(2, 4)) * 10, rng.normal(size=(6, 4)), hidden=True)
    yield distances_case(rng.integers(0, 5, (3, 2)) + 20000, rng.integers(0, 5, (2, 2)) + 20000, hidden=True)
