"""05.1 edge_finder: a filter by hand."""

import numpy as np

from ...definition import Exercise, case

exercise = Exercise(
    "05.1", "edge_finder", kind="write", level="warm-up", answer="kernel", value=True,
    question="Which nine numbers find a vertical edge, and nothing else?",
    hint="Left and right must count against each other; above and below must not.",
    fact="Such filters are no longer written by hand: a network finds them while it trains, together with others that "
         "have no name.",
    sibling="In a row of numbers, [-1, 1] answers where they change: [2, 2, 7, 7] gives 0, 5, 0. On flat ground its "
            "two numbers cancel, because they sum to 0. [1, 1] would answer 4, 9, 14: that is brightness, not change.",
)

exercise.solution([[-1, 0, 1], [-1, 0, 1], [-1, 0, 1]])
exercise.also_right([[1, 0, -1], [2, 0, -2], [1, 0, -1]])
exercise.also_right([[0, 0, 0], [-1, 1, 0], [0, 0, 0]])
exercise.wrong_value("every edge", [[0, 1, 0], [1, -4, 1], [0, 1, 0]],
                     "It answers to every edge, to horizontal ones as well.",
                     "Within each column the numbers should be alike, so that a horizontal edge cancels.")
exercise.wrong_value("nothing", [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
                     "It answers to nothing. Which numbers differ at a vertical edge?",
                     "Let the right column be positive and the left one negative.")
exercise.wrong_value("brightness", [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
                     "It answers to brightness, on flat ground too. What must its nine numbers sum to?",
                     "On a white square each number counts once: their sum is the answer. Make it 0.")
exercise.wrong_value("horizontal", [[-1, -1, -1], [0, 0, 0], [1, 1, 1]],
                     "That finds horizontal edges. Turn it.",
                     "Yours compares above with below. Compare left with right.")
exercise.wrong_value("size", [[-1, 1]],
                     "Write three rows of three numbers: [[., ., .], [., ., .], [., ., .]].",
                     "Write it as a list of three lists.")
exercise.wrong_value("no numbers", [["-1", "0", "1"]] * 3,
                     "Its entries must be nine numbers: without quotes, and finite.",
                     "A number in quotes is text; a method gives nothing without its parentheses.")
exercise.wrong_value("faint", [[-0.01, 0, 0.01], [-0.01, 0, 0.01], [-0.01, 0, 0.01]],
                     "The right idea, but its answer to a vertical edge is too weak. Take larger numbers.",
                     "Whole numbers such as -1, 0 and 1 are easiest to read.")


def reply(kernel, image):
    """Say in words how far from 0 the largest answer of the filter on the image is."""
    try:
        kernel = np.asarray(getattr(kernel, "numpy", lambda: kernel)())
    except ValueError:  # rows of different lengths
        return "not 3 x 3"
    if kernel.dtype.kind not in "iuf" or not np.isfinite(kernel).all():
        return "not numbers"
    if kernel.shape != (3, 3):
        return "not 3 x 3"
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    largest = np.abs((windows * kernel).sum((2, 3))).max()
    return "0" if largest < 1e-6 else "near 0" if largest < 0.5 else "far from 0"


def edge_case(kind, rows, expected, hidden=False):
    drawn = " ".join("".join("#" if bright > 0.5 else "+" if bright else "." for bright in row) for row in rows)
    text = f"{kind}: {drawn}   (. is 0, + is 0.4, # is 1)"
    return case(np.asarray(rows, "float64"), run=reply, expected=expected, text=text, hidden=hidden)


@exercise.cases
def cases(rng):
    across = np.tile([0.0, 0.0, 1.0, 1.0], (4, 1))
    yield edge_case("flat, white", np.ones((4, 4)), "0")
    yield edge_case("flat, gray", np.full((4, 4), 0.4), "0")
    yield edge_case("a horizontal edge", across.T, "0")
    yield edge_case("a vertical edge", across, "far from 0")
    yield edge_case("a vertical edge", 1 - across, "far from 0")
    width, place = rng.integers(5, 8), rng.integers(2, 4)
    row = (np.arange(width) >= place).astype("float64")
    yield edge_case("a vertical edge", np.tile(row, (5, 1)), "far from 0", hidden=True)
    yield edge_case("a horizontal edge", np.tile(row, (5, 1)).T, "0", hidden=True)
