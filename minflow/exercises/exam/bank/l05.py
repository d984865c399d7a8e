"""Variants of lesson 05."""

import numpy as np

from ..variants import Change, ask, mistake, question, vary

FILTER = (
    "Write a filter as three rows of three numbers: `{answer} = [[., ., .], [., ., .], [., ., .]]`. On an even area it "
    "answers 0, however bright it is. "
)
EDGES = {  # the lesson's own would be (True, 1)
    (True, -1): FILTER + "On an edge whose left side is 1 and whose right side is 0 it answers at least 1, and 0 on an "
                "edge between top and bottom.",
    (False, 1): FILTER + "On an edge whose top is 0 and whose bottom is 1 it answers at least 1, and 0 on an edge "
                "between left and right.",
    (False, -1): FILTER + "On an edge whose top is 1 and whose bottom is 0 it answers at least 1, and 0 on an edge "
                 "between left and right.",
}


@ask("edge_finder")
def edge_finder(rng):
    upright, sign = list(EDGES)[rng.integers(3)]
    one = question("edge_finder", EDGES[upright, sign])

    def turned(kernel):
        return kernel if upright else [list(row) for row in zip(*kernel)]

    one.solution(turned([[-sign, 0, sign]] * 3))
    one.also_right(turned([[-2 * sign, 0, 2 * sign], [-sign, 0, sign], [-2 * sign, 0, 2 * sign]]))
    one.also_right(turned([[0, 0, 0], [0, -sign, sign], [0, 0, 0]]))

    @one.accept
    def finds(kernel):
        kernel = np.asarray(kernel.tolist() if hasattr(kernel, "tolist") else kernel, "float64")
        across = kernel.sum(0 if upright else 1)  # of the lines along the edge
        along = kernel.sum(1 if upright else 0)
        replies = sign * across[2], sign * (across[1] + across[2])  # the edge between two lines of the window
        return kernel.shape == (3, 3) and abs(along).max() < 1e-6 and min(replies) >= 0 and max(replies) >= 1 - 1e-6

    mistake(one, "every edge", [[0, 1, 0], [1, -4, 1], [0, 1, 0]], "It answers to edges in both directions.")
    mistake(one, "nothing", [[0, 0, 0]] * 3, "It answers to nothing.")
    mistake(one, "brightness", [[1, 1, 1]] * 3, "It answers to brightness: its numbers must sum to 0.")
    mistake(one, "the other direction", turned([[-1] * 3, [0] * 3, [1] * 3]), "It finds edges in the other direction.",
            when=lambda kernel: turned(np.asarray(kernel).tolist()) in ([[-1] * 3, [0] * 3, [1] * 3],
                                                                        [[1] * 3, [0] * 3, [-1] * 3]))
    mistake(one, "opposite sign", turned([[sign, 0, -sign]] * 3), "Dark and bright are swapped.")
    mistake(one, "faint", turned([[-0.01 * sign, 0, 0.01 * sign]] * 3), "Its answer is too weak.")
    mistake(one, "size", [[-1, 1]], "Write three rows of three numbers.", when=lambda kernel: len(kernel) != 3)
    return one


vary(
    "slide",
    "Write `{answer}(image, kernel)`. A filter slides over an image. The image is (H, W), the kernel (K, M), and "
    "neither need be square. At each place where the kernel fits, its answer is the sum of the products, entry by "
    "entry. Do not use `conv2d`. A tensor can be filled: `out = flow.zeros(2, 3)`, then `out[0, 1] = 5`.",
    [
        Change("slide_and_turn", "Return all answers as a tensor of the shape (W - M + 1, H - K + 1): a row for each "
               "*column* of places.", result="({}).T", stale="[Rr]ow|turned|swapped"),
        Change("slide_and_bend", "Return all answers as a tensor, but 0 for each answer below 0.",
               result="({}).clip(0, None)"),
        Change("slide_and_negate", "Return all answers as a tensor, each multiplied by -1.", result="-({})"),
    ],
)

vary(
    "out_size",
    "Write `{answer}(n, k, stride=1, padding=0)`. The image is n pixels wide, with `padding` zeros at each side. A "
    "window of k pixels starts at the left and moves `stride` pixels at a time while it fits.",
    [
        Change("places_in_square", "The image is square, and so is the window: it moves in both directions. Return the "
               "number of all its places, an int.", result="({}) ** 2",
               undo=lambda answer: lambda n, k: round(answer(n, k) ** 0.5)),
        Change("steps_of_window", "Return how many times it moves, without its place at the start, an int.",
               result="({}) - 1", undo=lambda answer: lambda n, k: answer(n, k) + 1, stale="One too few"),
        Change("pixels_left", "Return how many pixels, padding included, are to the right of the window at its last "
               "place, an int.", result="n + 2 * padding - k - stride * (({}) - 1)",
               undo=lambda answer: lambda n, k: n - k - answer(n, k) + 1),
    ],
)

vary(
    "shifted",
    "Write `{answer}(model, images, labels, dx)`. All images (n, 1, H, W) move dx pixels to the right, to the left if "
    "dx is below 0, and zeros come in: `flow.zeros_like(images)` gives dark images to begin with. The given images "
    "must stay as they are.",
    [
        Change("shifted_error", "Return the share that the model reads *wrongly*, a float.", result="1 - ({})",
               stale="mistakes|wrongly"),
        Change("shifted_percentage", "Return how many percent the model reads correctly, a float.",
               result="100 * ({})"),
    ],
)
